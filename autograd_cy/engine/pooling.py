"""Pooling over windows: max, average, adaptive, power-average; and max_unpool.

Relies on kernels/pooling (routines), convolve.py (arguments) and rows.pyx. nn.functional has the functions, the rules of the table
call the rows.

`geometry` is what the routines read: (d, *kernel, *stride, *padding, *dilation, adaptive, whether padding counts, divisor).
"""

from functools import partial
from math import prod
from operator import index

from ..array.dtypes import int64
from ..array.errors import ShapeError
from .convolve import batched, need_float, plan_of_windows, rows_of, sizes
from .gradients import FUNCTIONS
from .reduce import mean
from .rows import RowPlan, backward_by, packed, planned, run_planned
from .choose import where
from .tensor import Tensor

INF = float("inf")


# ---- the rows; sizes were checked

def _plan_of_largest(x, geometry, size, returned=1, single=False):
    return RowPlan("max_pool", "pooling.max", 1, ((size, -1), (size, int64.code)), geometry, (), (geometry, size), aux=(1, 2),
                   returned=returned, single=single, lean="pooling.max_values" if returned == 1 else None)


def _planes(shape, indices):
    """The integers of pooling.take and put: planes, elements of one of `shape`, elements of one of indices."""
    return shape[0] * shape[1], prod(shape[2:]), prod(indices.shape[2:])


def _plan_of_put(x, indices, shape, adds):
    return RowPlan("put_planes", "pooling.put", 2, ((shape, -1),), (*_planes(shape, indices), int(adds)), (), (shape, adds), aux=(2, 3),
                   recorded=1)


def _plan_of_taken(x, indices, shape):
    return RowPlan("take_planes", "pooling.take", 2, ((shape, -1),), _planes(x.shape, indices), (), (shape,), aux=(2, 3), recorded=1)


def _plan_of_samples(row, image, low, taps, out, attrs):
    return RowPlan(row, "pooling." + row, 3, ((out, -1),), (*image[:2], low.shape[2], low.shape[1], taps, *image[2:]), (), attrs,
                   aux=(3, 4), recorded=2)


def _plan_of_sampled(x, weight, low, taps):
    """Sums of neighbours with weights (N, taps ** d, P), of x (N, C, *sizes) at the places whose lowest ones are low (N, d, P)."""
    return _plan_of_samples("sampled", x.shape, low, taps, (*x.shape[:2], low.shape[2]), (taps,))


def _plan_of_sampled_input(z, weight, low, shape, taps):
    return _plan_of_samples("sampled_input", shape, low, taps, shape, (shape, taps))


def _plan_of_sampled_weight(z, x, low, taps):
    return _plan_of_samples("sampled_weight", x.shape, low, taps, (x.shape[0], taps ** low.shape[1], low.shape[2]), (taps,))


sampled = partial(run_planned, _plan_of_sampled)
FUNCTIONS.update({"sampled": sampled, "sampled_input": partial(run_planned, _plan_of_sampled_input),
                  "sampled_weight": partial(run_planned, _plan_of_sampled_weight)})
FUNCTIONS.update({"max_pool": partial(run_planned, _plan_of_largest), "put_planes": partial(run_planned, _plan_of_put),
                  "take_planes": partial(run_planned, _plan_of_taken)})
rows_of(average_windows="pooling.average", average_windows_back="pooling.average_back")
backward_by("max_pool", lambda g, indices, geometry, size, shape: _plan_of_put(g, indices, shape, True))
backward_by("average_windows", lambda g, geometry, size, shape: RowPlan(None, "pooling.average_back", 1, ((shape, -1),), geometry))


# ---- arguments

def _windows(x, kernel, stride, padding, dilation, ceil_mode, d, name, *flags):
    """(geometry, size, whether x has no batch dimension) of pooling; flags: of an average."""
    ceil_mode = bool(ceil_mode)
    if flags or not isinstance(x, Tensor):
        need_float(x, name)
    if x.dtype.name == "bool":
        raise RuntimeError(f"{name}: not implemented for bool tensors")
    x, single = batched(x, d, name)
    shape = x.shape
    kernel = sizes(kernel, d, name, "kernel_size", 1)
    stride = kernel if stride is None or isinstance(stride, (tuple, list)) and not stride else sizes(stride, d, name, "stride", 1)
    padding, dilation = sizes(padding, d, name, "padding"), sizes(dilation, d, name, "dilation", 1)
    for p, k in zip(padding, kernel, strict=True):
        if 2 * p > k:
            raise RuntimeError(f"{name}: pad should be at most half of effective kernel size, but got pad={list(padding)}, "
                               f"kernel_size={list(kernel)}")
    places = []
    for n, k, s, p, a in zip(shape[len(shape) - d:], kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - a * (k - 1) - 1
        count = (room + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:        # a window must start inside, or in the padding before
            count -= 1
        places.append(count)
    if min(places) < 1 or 0 in shape[1:]:
        raise ShapeError(f"{name}: Given input size {list(shape[1:])}, calculated output size: "
                         f"{[*shape[1:len(shape) - d], *places]}. Output size is too small")
    return (d, *kernel, *stride, *padding, *dilation, *(flags or (0, 0, 0))), (*shape[:2], *places), single


def _plan_of_max(x, *args):
    *args, return_indices, d, name = args
    geometry, size, single = _windows(x, *args, d, name)
    return _plan_of_largest(x, geometry, size, 2 if return_indices else 1, single)


def _largest(plan, x, *args, return_indices):
    """What the plan of a maximum makes. Short integers are float64 meanwhile: the routine knows three dtypes."""
    short = isinstance(x, Tensor) and x.dtype.name in ("int32", "uint8")
    out = run_planned(plan, x.double() if short else x, *args)
    values = out[0] if return_indices else out
    if short:
        values = values.to(x.dtype)
    return (values, out[1].clone()) if return_indices else values               # the node keeps its own indices


def _max(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, d, name):
    return_indices = bool(return_indices)
    return _largest(_plan_of_max, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, d, name,
                    return_indices=return_indices)


def max_pool1d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False):
    """The largest element of every window of (N, C, L) or (C, L); the first of equals, and NaN before all. stride: kernel_size.

    return_indices: also the places of these elements in their planes. RuntimeError where numbers or shapes do not fit.
    """
    return _max(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1, "max_pool1d")


def max_pool2d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False):
    """As max_pool1d, for (N, C, H, W) or (C, H, W)."""
    return _max(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2, "max_pool2d")


def max_pool3d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False):
    """As max_pool1d, for (N, C, D, H, W) or (C, D, H, W)."""
    return _max(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3, "max_pool3d")


def _average(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, d, name):
    """The plan of an average."""
    count_include_pad, divisor = bool(count_include_pad), None if divisor is None else index(divisor)
    if divisor == 0:
        raise RuntimeError(f"{name}: divisor must be not zero")
    return plan_of_windows("average_windows", "pooling.average", 1, *_windows(x, kernel_size, stride, padding, 1, ceil_mode, d, name, 0,
                                                                              int(count_include_pad), divisor or 0))


def avg_pool1d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of every window of (N, C, L) or (C, L), with the zeros of the padding unless count_include_pad is false."""
    return run_planned(_average, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1, "avg_pool1d")


def avg_pool2d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """As avg_pool1d, for (N, C, H, W) or (C, H, W); divisor_override: what sums are divided by instead of the number of elements."""
    return run_planned(_average, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2, "avg_pool2d")


def avg_pool3d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """As avg_pool2d, for (N, C, D, H, W) or (C, D, H, W)."""
    return run_planned(_average, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3, "avg_pool3d")


def _adaptive(x, output_size, d, name):
    """(geometry, size, whether x has no batch dimension) of adaptive pooling."""
    need_float(x, name)
    x, single = batched(x, d, name)
    shape = x.shape
    wanted = (output_size,) * d if isinstance(output_size, int) else tuple(output_size)
    if len(wanted) == 1:
        wanted *= d
    if len(wanted) != d:
        raise ShapeError(f"{name}: output_size must be one number or {d}, but got {list(wanted)}")
    wanted = tuple([n if w is None else w for n, w in zip(shape[2:], wanted, strict=True)])
    if min(wanted) < 0:
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0, but got {list(wanted)}")
    if 0 in shape[1:]:
        raise ShapeError(f"{name}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)}")
    return (d, *(1,) * d, *(1,) * d, *(0,) * d, *(1,) * d, 1, 0, 0), (*shape[:2], *wanted), single


def _plan_of_adaptive_average(x, *args):
    return plan_of_windows("average_windows", "pooling.average", 1, *_adaptive(x, *args))


def _adaptive_average(x, output_size, d, name):
    if not (type(output_size) is int and output_size == 1 or type(output_size) in (tuple, list) and tuple(output_size) == (1,) * d):
        return run_planned(_plan_of_adaptive_average, x, output_size, d, name)
    planned(_adaptive, x, output_size, d, name)
    return mean(x, tuple(range(-d, 0)), True)              # several times as fast


def adaptive_avg_pool1d(input: Tensor, output_size) -> Tensor:
    """The means of output_size windows, from floor(i L / size) to ceil((i + 1) L / size), of (N, C, L) or (C, L)."""
    return _adaptive_average(input, output_size, 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """As adaptive_avg_pool1d in both dimensions of (N, C, H, W) or (C, H, W); a size of None: as many as the input has."""
    return _adaptive_average(input, output_size, 2, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """As adaptive_avg_pool2d, for (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_average(input, output_size, 3, "adaptive_avg_pool3d")


def _plan_of_adaptive_max(x, output_size, return_indices, d, name):
    geometry, size, single = _adaptive(x, output_size, d, name)
    return _plan_of_largest(x, geometry, size, 2 if return_indices else 1, single)


def _adaptive_max(input, output_size, return_indices, d, name):
    return_indices = bool(return_indices)
    return _largest(_plan_of_adaptive_max, input, output_size, return_indices, d, name, return_indices=return_indices)


def adaptive_max_pool1d(input: Tensor, output_size, return_indices: bool = False):
    """As adaptive_avg_pool1d, with the largest element of each window."""
    return _adaptive_max(input, output_size, return_indices, 1, "adaptive_max_pool1d")


def adaptive_max_pool2d(input: Tensor, output_size, return_indices: bool = False):
    """As adaptive_avg_pool2d, with the largest element of each window."""
    return _adaptive_max(input, output_size, return_indices, 2, "adaptive_max_pool2d")


def adaptive_max_pool3d(input: Tensor, output_size, return_indices: bool = False):
    """As adaptive_avg_pool3d, with the largest element of each window."""
    return _adaptive_max(input, output_size, return_indices, 3, "adaptive_max_pool3d")


# ---- reversed

def _unpool(x, indices, kernel_size, stride, padding, output_size, d, name):
    need_float(x, name)
    if not isinstance(indices, Tensor) or indices.dtype != int64:
        raise RuntimeError(f"{name}: elements in indices should be type int64 but got "
                           f"{indices.dtype.name if isinstance(indices, Tensor) else type(indices).__name__}")
    if indices.shape != x.shape:
        raise ShapeError(f"{name}: Expected shape of indices to be: {list(x.shape)} but got: {list(indices.shape)}")
    kernel = sizes(kernel_size, d, name, "kernel_size", 1)
    stride, padding = kernel if stride is None else sizes(stride, d, name, "stride", 1), sizes(padding, d, name, "padding")
    places, single = batched(x, d, name)
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(places.shape[2:], stride, kernel, padding, strict=True)]
    wanted = default if output_size is None else list(output_size)
    if len(wanted) == x.ndim and len(wanted) != d:
        wanted = wanted[-d:]
    if len(wanted) != d:
        raise ValueError(f"{name}: output_size should be a sequence containing {d} or {d + 2} elements, but it has a length of "
                         f"'{len(wanted)}'")
    if any(not n - s < w < n + s for n, s, w in zip(default, stride, wanted, strict=True)):
        raise ValueError(f"{name}: invalid output_size {wanted}; it must lie within one stride of {default}")
    out = FUNCTIONS["put_planes"](places, packed(indices.clone().reshape(places.shape)), (*places.shape[:2], *wanted), False)
    return out.squeeze(0) if single else out


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Zeros with the input's elements at indices, which max_pool1d returned: its partial reverse."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 1, "max_unpool1d")


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Zeros with the input's elements at indices, which max_pool2d returned: its partial reverse."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 2, "max_unpool2d")


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Zeros with the input's elements at indices, which max_pool3d returned: its partial reverse."""
    return _unpool(input, indices, kernel_size, stride, padding, output_size, 3, "max_unpool3d")


# ---- power-average

def _lp(x, norm_type, kernel_size, stride, ceil_mode, d, name):
    if norm_type in (INF, -INF):
        most = _max(need_float(x, name).abs() * (1 if norm_type > 0 else -1), kernel_size, stride, 0, 1, ceil_mode, False, d, name)
        return most if norm_type > 0 else -most
    count = 1
    for k in sizes(kernel_size, d, name, "kernel_size", 1):
        count *= k
    # As PyTorch has it: the mean times the size of a whole window.
    total = run_planned(_average, need_float(x, name).pow(norm_type), kernel_size, stride, 0, ceil_mode, True, None, d, name) * count
    return where(total == 0, total, where(total == 0, 1, total).pow(1.0 / norm_type))           # the gradient of a sum of 0 is 0


def lp_pool1d(input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** p) ** (1 / p) of every window, p = norm_type."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 1, "lp_pool1d")


def lp_pool2d(input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool1d, for (N, C, H, W) or (C, H, W)."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 2, "lp_pool2d")


def lp_pool3d(input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool1d, for (N, C, D, H, W) or (C, D, H, W)."""
    return _lp(input, norm_type, kernel_size, stride, ceil_mode, 3, "lp_pool3d")


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]
