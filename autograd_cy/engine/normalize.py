"""Normalisation: batch, layer, group, instance, RMS and local response norm.

Relies on kernels/normalize (routines), pooling.py (local response) and rows.pyx. nn.functional has the functions, the rules of the
table call the gradients: the fused routine, or tensor code where they are to be differentiated again.
"""

import math
from functools import partial

from ..array.errors import ShapeError
from . import creation
from .arguments import need_tensor
from .convolve import need_float
from .elementwise import rsqrt
from .gradients import FUNCTIONS
from .reduce import total
from .rows import RowPlan, backward_by, run_planned
from .tensor import Tensor


# ---- rows: group g of an example has `cols` elements, `span` of them per weight

def _plan_of_rows(x, w, b, cols, groups, span, eps, centred):
    size, rows = x.shape, (x.numel() // cols if cols else 0,)
    return RowPlan("normalize_rows", "normalize.rows", 3, ((size, -1), (rows, -1), (rows, -1)), (*rows, cols, groups, span, centred),
                   (eps,), (cols, groups, span, eps, centred), aux=(1, 3), ones=(1, (groups * cols // span,) if b is None else b.shape))


def _plan_of_rows_back(g, x, w, mean, scale, cols, groups, span, eps, centred, shape):
    return RowPlan(None, "normalize.rows_back", 5, ((shape, -1), (w.shape, -1), (w.shape, -1)), (mean.numel(), cols, groups, span, centred),
                   returned=3)


def _normalize_rows_back(g, x, w, mean, scale, cols, groups, span, eps, centred):
    """The gradients by x, w and b, as tensor code."""
    channels = cols // span
    split = (mean.numel() // groups, groups, channels, span)
    dx, dw, db = _by_rule(g.reshape(split), x.reshape(split), w.reshape(groups, channels, 1), (2, 3), (0, 3), cols, eps, centred)
    return dx.reshape(x.shape), dw.reshape(w.shape), db.reshape(w.shape)


def _plan_of_channels(row, x, b, numbers, attrs, way):
    """way: as kernels/normalize has it."""
    size = x.shape
    each = ((size[1],), -1)
    return RowPlan(row, "normalize.channels_by" if way else "normalize.channels", 5, ((size, -1), each, each),
                (size[0], size[1], math.prod(size[2:]), way), numbers, attrs, aux=(1, 3), recorded=3,
                ones=(1, (size[1],) if b is None else b.shape))


def _plan_of_batch(x, w, b, running_mean, running_var, eps):
    return _plan_of_channels("normalize_channels", x, b, (eps, 0.0), (eps,), 0)


def _plan_of_scaling(x, w, b, mean, scale):
    return _plan_of_channels("scale_channels", x, b, (), None, 2)


def _plan_of_channels_back(g, x, w, mean, scale, *numbers):
    """numbers: eps, if the statistics are those of x, and its shape."""
    *eps, size = numbers
    each = ((size[1],), -1)
    return RowPlan(None, "normalize.channels_back", 5, ((size, -1), each, each), (size[0], size[1], math.prod(size[2:]), not eps),
                   returned=3)


def _normalize_channels_back(g, x, w, mean, scale, eps):
    """The gradients by x, w and b, as tensor code; eps None: mean and scale are constants."""
    split = (x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    g, split_x, each = g.reshape(split), x.reshape(split), w.reshape(-1, 1)
    if eps is None:
        normal = (split_x - mean.reshape(-1, 1)) * scale.reshape(-1, 1)
        dx, dw, db = g * each * scale.reshape(-1, 1), total(g * normal, (0, 2), False), total(g, (0, 2), False)
    else:
        dx, dw, db = _by_rule(g, split_x, each, (0, 2), (0, 2), split[0] * split[2], eps, True)
    return dx.reshape(x.shape), dw.reshape(w.shape), db.reshape(w.shape)


def _by_rule(g, x, w, dims, others, n, eps, centred):
    """As tensor code: statistics over dims, of n elements; weights are shared over `others`."""
    off = x - total(x, dims, True) / n if centred else x
    scale = rsqrt(total(off * off, dims, True) / n + eps)
    normal = off * scale
    inner = g * w
    dx = inner - normal * (total(inner * normal, dims, True) / n)
    if centred:
        dx = dx - total(inner, dims, True) / n
    return dx * scale, total(g * normal, others, False), total(g, others, False)


FUNCTIONS.update({"normalize_rows": partial(run_planned, _plan_of_rows), "normalize_rows_back": _normalize_rows_back,
                  "normalize_channels": lambda x, w, b, eps: run_planned(_plan_of_batch, x, w, b, None, None, eps),
                  "normalize_channels_back": _normalize_channels_back, "scale_channels": partial(run_planned, _plan_of_scaling)})
backward_by("normalize_rows", _plan_of_rows_back)
backward_by("normalize_channels", _plan_of_channels_back)
backward_by("scale_channels", _plan_of_channels_back)


# ---- functions

def _affine(x, weight, bias, shape, name, what):
    """Check weight and bias."""
    for key, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: expected {key} to be a Tensor or None, but got {type(value).__name__}")
        if value.shape != shape:
            raise ShapeError(f"{name}: Expected {key} to be of {what} {list(shape)}, but got {key} of shape {list(value.shape)} and input "
                             f"of shape {list(x.shape)}")
        if value.dtype != x.dtype:
            raise RuntimeError(f"{name}: expected {key} of dtype {x.dtype.name}, as the input's, but got {value.dtype.name}")


def _several(values, size, what="value per channel"):
    if values == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {list(size)}")


class _Apart(Exception):
    """The running statistics can't be part of the routine: they have another dtype than the input."""


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of (N, C, ...).

    training: mean and (biased) variance are those of the batch, and the running ones, where given, take over a share `momentum` of
    the batch's mean and unbiased variance, in place; else they are the running ones, which get no gradient. Raises ValueError for one
    value per channel in training, RuntimeError where shapes do not fit.
    """
    training = bool(training)
    try:
        if training and isinstance(momentum, Tensor):
            raise _Apart
        return run_planned(_plan_of_batch_norm, input, weight, bias, running_mean, running_var, training, momentum, eps)
    except _Apart:
        running = (running_mean, running_var)
    if not training:
        found = [v.to(input.dtype) for v in running]
        return run_planned(_plan_of_batch_norm, input, weight, bias, *found, False, momentum, eps)
    found = [None if v is None else creation.zeros(v.shape, dtype=input.dtype) for v in running]
    out = run_planned(_plan_of_batch_norm, input, weight, bias, *found, True, 1.0, eps)
    for old, new in zip(running, found, strict=True):
        _follow(old, new, momentum)
    return out


def _plan_of_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    need_float(x, "batch_norm")
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: expected an input of at least 2 dimensions, but got input of shape {list(x.shape)}")
    channels = x.shape[1]
    if training:
        _several(x.shape[0] * math.prod(x.shape[2:]), x.shape)
    for key, value in (("running_mean", running_mean), ("running_var", running_var)):
        if value is not None and need_tensor(value, "batch_norm").shape != (channels,):
            raise ShapeError(f"batch_norm: {key} should contain {channels} elements not {value.numel()}")
        if value is None and not training:
            raise RuntimeError(f"batch_norm: {key} must be defined in evaluation mode")
    _affine(x, weight, bias, (channels,), "batch_norm", "one element per channel,")
    if eps < 0 or training and eps == 0:
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    if any(value is not None and value.dtype != x.dtype for value in (running_mean, running_var)):
        raise _Apart
    if training:
        return _plan_of_channels("normalize_channels", x, bias, (eps, momentum), (eps,), 0)
    return _plan_of_channels("scale_channels", x, bias, (eps,), None, 1)


def _follow(running, value, share):
    """running = (1 - share) running + share value, in place and without a record."""
    if running is not None:
        value = value if value.dtype is running.dtype else value.to(running.dtype)
        running.detach().mul_(1 - share).add_(value * share)


def _plan_of_trailing(x, weight, bias, normalized_shape, eps, centred):
    name = "layer_norm" if centred else "rms_norm"
    need_float(x, name)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError(f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
                           f"got normalized_shape = {list(shape)}")
    if len(shape) > x.ndim or x.shape[x.ndim - len(shape):] != shape:
        raise ShapeError(f"{name}: Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
                         f"got input of size {list(x.shape)}")
    _affine(x, weight, bias, shape, name, "same shape as normalized_shape,")
    if eps is None:
        eps = 2.0 ** -23 if x.dtype.name == "float32" else 2.0 ** -52
    return _plan_of_rows(x, weight, bias, math.prod(shape), 1, 1, eps, centred)


def layer_norm(input: Tensor, normalized_shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions normalized_shape; RuntimeError where shapes do not fit."""
    return run_planned(_plan_of_trailing, input, weight, bias, normalized_shape, eps, True)


def rms_norm(input: Tensor, normalized_shape, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x ** 2) + eps) * weight over the trailing dimensions normalized_shape; eps: that of the dtype."""
    return run_planned(_plan_of_trailing, input, weight, None, normalized_shape, eps, False)


def _plan_of_groups(x, weight, bias, groups, eps, name):
    channels, span = _channels(x, name)
    if name == "instance_norm":
        groups = channels
        _several(span, x.shape, "spatial element")
    else:
        if groups <= 0:
            raise RuntimeError(f"group_norm: Expected num groups to be greater than 0, got {groups}")
        each = x.shape[0] * channels // groups
        _several(each * span, [each, groups, *x.shape[2:]])
        if channels % groups:
            raise ShapeError(f"group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape "
                             f"{list(x.shape)} and num_groups={groups}")
    _affine(x, weight, bias, (channels,), name, "a vector of size equal to the number of channels in input,")
    return _plan_of_rows(x, weight, bias, *((channels // groups * span, groups, span) if x.numel() else (1, channels, 1)), eps, True)


def _channels(x, name):
    """How many there are, and the elements of each."""
    need_float(x, name)
    if x.ndim < 2:
        raise ShapeError(f"{name}: Expected at least 2 dimensions for input tensor but received {x.ndim}: {list(x.shape)}")
    return x.shape[1], math.prod(x.shape[2:])


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for (N, C, ...), over num_groups groups of channels; weight and bias: (C,).

    Raises RuntimeError where the channels can't be divided or shapes do not fit, ValueError for a single value per group.
    """
    return run_planned(_plan_of_groups, input, weight, bias, num_groups, eps, "group_norm")


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """As batch_norm for each example of (N, C, ...) by itself; the running statistics take over the examples' means."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false")
        _channels(input, "instance_norm")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    out = run_planned(_plan_of_groups, input, weight, bias, None, eps, "instance_norm")
    if running_mean is not None or running_var is not None:
        x = input.detach()
        dims = tuple(range(2, x.ndim))
        _follow(running_mean, x.mean(dims).mean(0), momentum)
        _follow(running_var, x.var(dims, correction=1).mean(0), momentum)
    return out


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * the mean of x ** 2 over `size` neighbouring channels) ** beta; channels beyond the first and last count as 0."""
    x = need_float(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if size < 1:
        raise RuntimeError(f"local_response_norm: size must be positive, got {size}")
    if x.numel() == 0:
        return x
    planes = (x.shape[0], 1, x.shape[1], math.prod(x.shape[2:]))
    means = FUNCTIONS["average_windows"]((x * x).reshape(planes), (2, size, 1, 1, 1, size // 2, 0, 1, 1, 0, 1, size), planes)
    return x / (means.reshape(x.shape) * alpha + k).pow(beta)


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]
