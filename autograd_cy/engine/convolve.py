"""Convolutions, transposed convolutions, and windows as columns: conv1d to conv3d, conv_transpose1d to 3d, unfold, fold.

Relies on kernels/windows (routines) and rows.pyx. nn.functional has the functions, the rules of the table call the rows.

`geometry` is what the routines read: (d, *kernel, *stride, *padding, *dilation, groups).
"""

from functools import partial
from operator import index

from ..array.errors import ShapeError
from ..kernels.table import routine_number
from .gradients import FUNCTIONS
from .routines import exchanged
from .rows import RowPlan, make_row, planned, run_planned
from .tensor import OPCODES, Tensor


# ---- the rows; sizes were checked

def rows_of(**routines):
    """Functions of inputs, integers and a size that make rows by one routine each."""
    FUNCTIONS.update({name: partial(make_row, OPCODES[name], routine_number(routine)) for name, routine in routines.items()})


rows_of(convolution="windows.convolve", convolution_input="windows.convolve_input", convolution_weight="windows.convolve_weight",
        unfold_windows="windows.unfold", fold_windows="windows.fold")


def plan_of_windows(row, routine, inputs, geometry, size, single):
    """A plan of one output, whose attributes are the geometry and its size."""
    return RowPlan(row, routine, inputs, ((size, -1),), geometry, (), (geometry, size), single=single)


# ---- arguments

def sizes(value, d, name, argument, least=0):
    """An integer, or a sequence of one or d of them, as d integers of at least `least`."""
    if type(value) is int and least <= value < 1 << 31:
        return (value,) * d
    before = exchanged()
    values = (value,) if isinstance(value, int) and not isinstance(value, bool) else tuple(value)
    if len(values) == 1:
        values *= d
    if len(values) != d:
        raise ShapeError(f"{name}: expected {argument} to be one number or {d}, but got {list(values)}")
    for v in values:
        if not hasattr(v, "__index__"):
            raise TypeError(f"{name}: expected {argument} to be of integers, but got {type(v).__name__}")
    values = tuple([index(v) for v in values])
    if exchanged() != before:
        raise RuntimeError(f"{name}: {argument} changed the memory or the shape of a tensor while it was read")
    if min(values) < least:
        what = {0: "negative", 1: "non-positive"}[least]
        raise RuntimeError(f"{name}: {what} {argument} is not supported, got {list(values)}")
    if max(values) >= 1 << 31:
        raise RuntimeError(f"{name}: {argument} is too large, got {list(values)}")
    return values


def need_float(x, name, argument="input"):
    """x, if it is a tensor of floating-point numbers."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected {argument} to be a Tensor, but got {type(x).__name__}")
    if not x.is_floating_point():
        raise RuntimeError(f"{name}: not implemented for {x.dtype.name} tensors ({argument}); convert it to a floating-point dtype")
    return x


def batched(x, d, name):
    """(x with a batch dimension, whether it had none)."""
    if x.ndim not in (d + 1, d + 2):
        raise ShapeError(f"Expected {d + 1}D (unbatched) or {d + 2}D (batched) input to {name}, but got input of size: {list(x.shape)}")
    return (x, False) if x.ndim == d + 2 else (x.unsqueeze(0), True)


def _operands(x, weight, bias, groups, d, name, outputs):
    """Check what both directions share; `outputs`: the number of channels that the bias has."""
    need_float(x, name)
    need_float(weight, name, "weight")
    if x.dtype != weight.dtype:
        raise RuntimeError(f"{name}: Input type ({x.dtype.name}) and weight type ({weight.dtype.name}) should be the same")
    if weight.ndim != d + 2:
        raise ShapeError(f"{name}: expected a weight of {d + 2} dimensions, but got weight of size {list(weight.shape)}")
    if not isinstance(groups, int) or groups < 1:
        raise RuntimeError(f"{name}: non-positive groups is not supported, got {groups}")
    if weight.shape[0] % groups:
        raise ShapeError(f"{name}: Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
                         f"size {list(weight.shape)} instead")
    if 0 in weight.shape[2:]:
        raise ShapeError(f"{name}: weight has an empty kernel, size {list(weight.shape)}")
    if bias is not None:
        if not isinstance(bias, Tensor):
            raise TypeError(f"{name}: expected bias to be a Tensor or None, but got {type(bias).__name__}")
        if bias.shape != (outputs,):
            raise ShapeError(f"{name}: Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {outputs} "
                             f"elements, but got bias of size {list(bias.shape)} instead")
        if bias.dtype != x.dtype:
            raise RuntimeError(f"{name}: Input type ({x.dtype.name}) and bias type ({bias.dtype.name}) should be the same")


def _shapes(x, weight, bias, stride, padding, dilation, groups, d, name):
    """The plan of a convolution."""
    _operands(x, weight, bias, groups, d, name, weight.shape[0] if isinstance(weight, Tensor) and weight.ndim else 0)
    x, single = batched(x, d, name)
    kernel, stride, dilation = weight.shape[2:], sizes(stride, d, name, "stride", 1), sizes(dilation, d, name, "dilation", 1)
    reach = [a * (k - 1) for a, k in zip(dilation, kernel, strict=True)]
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"{name}: Invalid padding string: '{padding}'")
        if padding == "same" and max(stride) > 1:
            raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions")
        both = reach if padding == "same" else [0] * d
        padding = tuple([r // 2 for r in both])
    else:
        padding = sizes(padding, d, name, "padding")
        both = [2 * p for p in padding]
    if x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(f"{name}: Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have "
                         f"{weight.shape[1] * groups} channels, but got {x.shape[1]} channels instead")
    padded = [n + p for n, p in zip(x.shape[2:], both, strict=True)]
    if any(n <= r for n, r in zip(padded, reach, strict=True)):
        raise ShapeError(f"{name}: Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                         f"({' x '.join(str(r + 1) for r in reach)}). Kernel size can't be greater than actual input size")
    size = (x.shape[0], weight.shape[0], *[(n - r - 1) // s + 1 for n, r, s in zip(padded, reach, stride, strict=True)])
    return plan_of_windows("convolution", "windows.convolve", 3, (d, *kernel, *stride, *padding, *dilation, groups), size, single)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """out[n, m, p] = b[m] + sum over c, k of w[m, c, k] x[n, c, p * stride + k * dilation - padding]; x (N, C, L) or (C, L).

    weight (M, C / groups, K); padding: a number, "valid" (0) or "same" (as long as the input, stride 1). RuntimeError where shapes,
    dtypes or numbers do not fit.
    """
    return run_planned(_shapes, input, weight, bias, stride, padding, dilation, groups, 1, "conv1d")


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """As conv1d over two dimensions: input (N, C, H, W) or (C, H, W), weight (M, C / groups, KH, KW)."""
    return run_planned(_shapes, input, weight, bias, stride, padding, dilation, groups, 2, "conv2d")


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """As conv1d over three dimensions: input (N, C, D, H, W) or (C, D, H, W), weight (M, C / groups, KD, KH, KW)."""
    return run_planned(_shapes, input, weight, bias, stride, padding, dilation, groups, 3, "conv3d")


def _transposed_shapes(x, weight, bias, stride, padding, output_padding, groups, dilation, d, name):
    """As _shapes, of a transposed convolution."""
    _operands(x, weight, bias, groups, d, name, weight.shape[1] * groups if isinstance(weight, Tensor) and weight.ndim > 1 else 0)
    x, single = batched(x, d, name)
    kernel, stride, dilation = weight.shape[2:], sizes(stride, d, name, "stride", 1), sizes(dilation, d, name, "dilation", 1)
    padding, extra = sizes(padding, d, name, "padding"), sizes(output_padding, d, name, "output_padding")
    if any(e >= max(s, a) for e, s, a in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(f"{name}: output padding must be smaller than either stride or dilation, but got output_padding "
                           f"{list(extra)}, stride {list(stride)} and dilation {list(dilation)}")
    if x.shape[1] != weight.shape[0]:
        raise ShapeError(f"{name}: Given transposed=1, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have "
                         f"{weight.shape[0]} channels, but got {x.shape[1]} channels instead")
    space = [(n - 1) * s - 2 * p + a * (k - 1) + e + 1
             for n, s, p, a, k, e in zip(x.shape[2:], stride, padding, dilation, kernel, extra, strict=True)]
    if min(space) < 1 or 0 in x.shape[2:]:
        raise ShapeError(f"{name}: Given input size per channel: {list(x.shape[2:])}. Calculated output size per channel: {space}. "
                         f"Output size is too small")
    size = (x.shape[0], weight.shape[1] * groups, *space)
    return plan_of_windows("convolution_input", "windows.convolve_input", 3, (d, *kernel, *stride, *padding, *dilation, groups), size,
                           single)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0, groups: int = 1,
                     dilation=1) -> Tensor:
    """The gradient of conv1d by its input, as an operation: input (N, M, L) or (M, L), weight (M, C / groups, K), result C channels
    of (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1."""
    return run_planned(_transposed_shapes, input, weight, bias, stride, padding, output_padding, groups, dilation, 1, "conv_transpose1d")


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0, groups: int = 1,
                     dilation=1) -> Tensor:
    """As conv_transpose1d over two dimensions."""
    return run_planned(_transposed_shapes, input, weight, bias, stride, padding, output_padding, groups, dilation, 2, "conv_transpose2d")


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0, groups: int = 1,
                     dilation=1) -> Tensor:
    """As conv_transpose1d over three dimensions."""
    return run_planned(_transposed_shapes, input, weight, bias, stride, padding, output_padding, groups, dilation, 3, "conv_transpose3d")


def _patches(size, kernel_size, dilation, padding, stride, name):
    """(geometry, places per dim) of unfold and fold over images of `size`."""
    kernel, stride = sizes(kernel_size, 2, name, "kernel_size", 1), sizes(stride, 2, name, "stride", 1)
    dilation, padding = sizes(dilation, 2, name, "dilation", 1), sizes(padding, 2, name, "padding")
    places = [(n + 2 * p - a * (k - 1) - 1) // s + 1 for n, p, a, k, s in zip(size, padding, dilation, kernel, stride, strict=True)]
    if min(places) < 1:
        raise ShapeError(f"{name}: Given an image of spatial size {list(size)}, kernel_size={kernel}, dilation={dilation}, "
                         f"padding={padding}, stride={stride}, calculated shape of the array of sliding blocks as {places}, but its "
                         f"components must be at least one")
    return (2, *kernel, *stride, *padding, *dilation, 1), places


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The windows of images (N, C, H, W) or (C, H, W) as columns: (N, C * KH * KW, number of windows)."""
    single, geometry, size, columns = planned(_columns, input, kernel_size, dilation, padding, stride)
    out = FUNCTIONS["unfold_windows"](input.unsqueeze(0) if single else input, geometry, size).reshape(columns)
    return out.squeeze(0) if single else out


def _columns(x, *numbers):
    """(whether x has no batch dimension, geometry, size with the kernel and the places, size of unfold's result)."""
    need_float(x, "unfold")
    x, single = batched(x, 2, "unfold")
    geometry, places = _patches(x.shape[2:], *numbers, "unfold")
    n, c, kernel = x.shape[0], x.shape[1], geometry[1:3]
    return single, geometry, (n, c, *kernel, *places), (n, c * kernel[0] * kernel[1], places[0] * places[1])


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The reverse of unfold: columns (N, C * KH * KW, L) or without N added up in images (N, C, *output_size)."""
    need_float(input, "fold")
    if input.ndim not in (2, 3):
        raise ShapeError(f"fold: Expected 2D or 3D (batch mode) tensor for input, but got size {list(input.shape)}")
    x = input if input.ndim == 3 else input.unsqueeze(0)
    size = sizes(output_size, 2, "fold", "output_size", 1)
    geometry, places = _patches(size, kernel_size, dilation, padding, stride, "fold")
    taps = geometry[1] * geometry[2]
    if x.shape[1] % taps:
        raise ShapeError(f"fold: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                         f"input.size(1)={x.shape[1]} and kernel_size={geometry[1:3]}")
    if x.shape[2] != places[0] * places[1]:
        raise ShapeError(f"fold: Given output_size={size} and kernel_size={geometry[1:3]}, expected size of input's dimension 2 to match "
                         f"the calculated number of sliding blocks {places[0]} * {places[1]} = {places[0] * places[1]}, but got "
                         f"input.size(2)={x.shape[2]}")
    n, c = x.shape[0], x.shape[1] // taps
    out = FUNCTIONS["fold_windows"](x.reshape(n, c, *geometry[1:3], *places), geometry, (n, c, *size))
    return out if input.ndim == 3 else out.squeeze(0)


__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold"]
