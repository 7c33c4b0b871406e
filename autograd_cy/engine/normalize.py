"""Normalisation: batch, layer, group, instance, RMS and local response norm.

Relies on kernels/normalize (routines), pooling.py (local response) and rows.pyx. nn.functional has the functions, the rules of the
table call the gradients: the fused routine, or tensor code where they are to be differentiated again.
"""

import math

from ..array.errors import ShapeError
from . import creation
from .convolve import need_float
from .elementwise import rsqrt
from .gradients import FUNCTIONS
from .reduce import total
from .routines import call_routine
from .rows import empty_as, packed, planned, record_row
from .tensor import Tensor


# ---- rows: group g of an example has `cols` elements, `span` of them per weight

def _normalize_rows(x, w, b, cols, groups, span, eps, centred):
    out, rows = empty_as(x, x.shape), x.numel() // cols if cols else 0
    mean, scale = empty_as(x, (rows,)), empty_as(x, (rows,))
    if w is None:
        w = creation.ones_code((groups * cols // span,) if b is None else b.shape, x.dtype.code)
    call_routine("normalize.rows", (out, mean, scale, packed(x), packed(w), packed(b)), (rows, cols, groups, span, centred), (eps,))
    return record_row("normalize_rows", out, (x, w, b), (cols, groups, span, eps, centred), (mean, scale))


def _normalize_rows_back(g, x, w, mean, scale, cols, groups, span, eps, centred):
    """The gradients by x, w and b."""
    if not (g.requires_grad or x.requires_grad or w.requires_grad):
        dx, dw, db = empty_as(x, x.shape), empty_as(x, w.shape), empty_as(x, w.shape)
        call_routine("normalize.rows_back", (dx, dw, db, packed(g), packed(x), packed(w), mean, scale),
                     (mean.numel(), cols, groups, span, centred))
        return dx, dw, db
    channels = cols // span
    split = (mean.numel() // groups, groups, channels, span)
    dx, dw, db = _by_rule(g.reshape(split), x.reshape(split), w.reshape(groups, channels, 1), (2, 3), (0, 3), cols, eps, centred)
    return dx.reshape(x.shape), dw.reshape(w.shape), db.reshape(w.shape)


def _normalize_channels(x, w, b, eps):
    """(y, mean and biased variance of each channel)."""
    shape = x.shape
    channels, out = shape[1], empty_as(x, shape)
    if w is None:
        w = creation.ones_code((channels,), x.dtype.code)
    mean, variance, scale = empty_as(x, (channels,)), empty_as(x, (channels,)), empty_as(x, (channels,))
    call_routine("normalize.channels", (out, mean, variance, scale, packed(x), packed(w), packed(b)),
                 (shape[0], channels, math.prod(shape[2:])), (eps,))
    return record_row("normalize_channels", out, (x, w, b), (eps,), (mean, scale)), mean, variance


def _normalize_channels_back(g, x, w, mean, scale, eps):
    """The gradients by x, w and b."""
    n, channels, span = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    if not (g.requires_grad or x.requires_grad or w.requires_grad):
        dx, dw, db = empty_as(x, x.shape), empty_as(x, (channels,)), empty_as(x, (channels,))
        call_routine("normalize.channels_back", (dx, dw, db, packed(g), packed(x), packed(w), mean, scale), (n, channels, span))
        return dx, dw, db
    split = (n, channels, span)
    dx, dw, db = _by_rule(g.reshape(split), x.reshape(split), w.reshape(channels, 1), (0, 2), (0, 2), n * span, eps, True)
    return dx.reshape(x.shape), dw.reshape(channels), db.reshape(channels)


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


FUNCTIONS.update({"normalize_rows": _normalize_rows, "normalize_rows_back": _normalize_rows_back,
                  "normalize_channels": lambda x, w, b, eps: _normalize_channels(x, w, b, eps)[0],
                  "normalize_channels_back": _normalize_channels_back})


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


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of (N, C, ...).

    training: mean and (biased) variance are those of the batch, and the running ones, where given, take over a share `momentum` of
    the batch's mean and unbiased variance, in place; else they are the running ones. Raises ValueError for one value per channel in
    training, RuntimeError where shapes do not fit.
    """
    training = bool(training)                  # before shapes are looked at: it may change them
    size, n = planned(_channels, input, running_mean, running_var, weight, bias, training)
    if eps < 0 or training and eps == 0:
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    if training:
        out, mean, variance = _normalize_channels(input, weight, bias, eps)
        _follow(running_mean, mean, momentum)
        _follow(running_var, variance * (n / (n - 1)) if n else variance, momentum)
        return out
    factor = rsqrt(running_var + eps)
    if weight is not None:
        factor = factor * weight
    shift = -running_mean * factor
    if bias is not None:
        shift = shift + bias
    return input * factor.reshape(size) + shift.reshape(size)


def _channels(x, running_mean, running_var, weight, bias, training):
    """The shape of a value per channel against x, and the number of elements of a channel."""
    need_float(x, "batch_norm")
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: expected an input of at least 2 dimensions, but got input of shape {list(x.shape)}")
    channels, n = x.shape[1], x.shape[0] * math.prod(x.shape[2:])
    if training:
        _several(n, x.shape)
    for key, value in (("running_mean", running_mean), ("running_var", running_var)):
        if value is not None and value.shape != (channels,):
            raise ShapeError(f"batch_norm: {key} should contain {channels} elements not {value.numel()}")
        if value is None and not training:
            raise RuntimeError(f"batch_norm: {key} must be defined in evaluation mode")
    _affine(x, weight, bias, (channels,), "batch_norm", "one element per channel,")
    return (channels, *(1,) * (x.ndim - 2)), n


def _follow(running, value, share):
    """running = (1 - share) running + share value, in place and without a record."""
    if running is not None:
        value = value if value.dtype is running.dtype else value.to(running.dtype)
        running.detach().mul_(1 - share).add_(value * share)


def _trailing(x, normalized_shape, weight, bias, name):
    """The number of the elements that are normalised together."""
    need_float(x, name)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError(f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
                           f"got normalized_shape = {list(shape)}")
    if len(shape) > x.ndim or x.shape[x.ndim - len(shape):] != shape:
        raise ShapeError(f"{name}: Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
                         f"got input of size {list(x.shape)}")
    _affine(x, weight, bias, shape, name, "same shape as normalized_shape,")
    return math.prod(shape)


def layer_norm(input: Tensor, normalized_shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions normalized_shape; RuntimeError where shapes do not fit."""
    return _normalize_rows(input, weight, bias, planned(_trailing, input, normalized_shape, weight, bias, "layer_norm"), 1, 1, eps, True)


def rms_norm(input: Tensor, normalized_shape, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x ** 2) + eps) * weight over the trailing dimensions normalized_shape; eps: that of the dtype."""
    cols = planned(_trailing, input, normalized_shape, weight, None, "rms_norm")
    if eps is None:
        eps = 2.0 ** -23 if input.dtype.name == "float32" else 2.0 ** -52
    return _normalize_rows(input, weight, None, cols, 1, 1, eps, False)


def _groups(x, groups, weight, bias, name):
    """(elements of a group, groups, elements per weight)."""
    channels, span = x.shape[1], math.prod(x.shape[2:])
    if name == "instance_norm":
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
    return (channels // groups * span, groups, span) if x.numel() else (1, channels, 1)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for (N, C, ...), over num_groups groups of channels; weight and bias: (C,).

    Raises RuntimeError where the channels can't be divided or shapes do not fit, ValueError for a single value per group.
    """
    x = need_float(input, "group_norm")
    if x.ndim < 2:
        raise ShapeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    return _normalize_rows(x, weight, bias, *planned(_groups, x, num_groups, weight, bias, "group_norm"), eps, True)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """As batch_norm for each example of (N, C, ...) by itself; the running statistics take over the examples' means."""
    use_input_stats = bool(use_input_stats)
    x = need_float(input, "instance_norm")
    if x.ndim < 2:
        raise ShapeError(f"instance_norm: expected an input of at least 2 dimensions, but got input of shape {list(x.shape)}")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    out = _normalize_rows(x, weight, bias, *planned(_groups, x, x.shape[1], weight, bias, "instance_norm"), eps, True)
    if running_mean is not None or running_var is not None:
        dims = tuple(range(2, x.ndim))
        _follow(running_mean, x.detach().mean(dims).mean(0), momentum)
        _follow(running_var, x.detach().var(dims, correction=1).mean(0), momentum)
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
