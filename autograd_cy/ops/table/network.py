"""What networks are made of, beside elementwise rows and products: convolutions, pooling, normalisations, losses of whole rows.

Relies on rows.py and functions.py only. Windows are described by `geometry`, integers as kernels/windows.pyx reads them.
"""

from ..functions import (
    average_windows, average_windows_back, convolution, convolution_input, convolution_weight, cross_entropy_back, fold_windows,
    normalize_channels_back, normalize_rows_back, put_planes, resample, resample_back, sampled, sampled_input, sampled_weight, spread,
    take_planes, total, unfold_windows,
)
from ..rows import op

op("cross_entropy", "x", attrs="target weight ignore_index smoothing reduce", aux="prob counted",
   dx=lambda g, x, counted, target, weight, ignore_index, smoothing, reduce:
   cross_entropy_back(g, x, counted, target, weight, ignore_index, smoothing, reduce),
   doc="-log softmax(x)[target] along the dimension of classes; all, their sum, or their mean over the weights that count")
op("nll_loss", "x", attrs="target weight ignore_index smoothing reduce", aux="prob counted",
   dx=lambda g, x_shape, counted, target, weight, ignore_index, smoothing, reduce:
   cross_entropy_back(g, x_shape, counted, target, weight, ignore_index, smoothing, reduce),
   doc="-x[target] along the dimension of classes; all, their sum, or their mean over the weights that count")
op("multilabel_margin", "x", attrs="target", aux="slopes", public=False, dx=lambda g, slopes: spread(g, None, (1,), False) * slopes,
   doc="sum of max(0, 1 - x[t] + x[c]) / C over the target classes t of each row and others c", special="1 - x[t] + x[c] = 0: 0")


# ---- windows

def _per_channel(g):
    """The sum over all dimensions but the second."""
    return total(g, (0, *range(2, g.ndim)), False)


op("convolution", "x w b", attrs="geometry size", doc="the products of w (M, C / groups, *kernel) and every window of x (N, C, ...), plus b",
   dx=lambda g, w, x_shape, geometry: convolution_input(g, w, None, geometry, x_shape),
   dw=lambda g, x, w_shape, geometry: convolution_weight(g, x, geometry, w_shape), db=lambda g: _per_channel(g))
op("convolution_input", "z w b", attrs="geometry size", doc="z times w added into the windows of zeros: a transposed convolution",
   dz=lambda g, w, z_shape, geometry: convolution(g, w, None, geometry, z_shape),
   dw=lambda g, z, w_shape, geometry: convolution_weight(z, g, geometry, w_shape), db=lambda g: _per_channel(g))
op("convolution_weight", "z x", attrs="geometry size", doc="the sum over all windows of x times z at their places",
   dz=lambda g, x, z_shape, geometry: convolution(x, g, None, geometry, z_shape),
   dx=lambda g, z, x_shape, geometry: convolution_input(z, g, None, geometry, x_shape))
op("unfold_windows", "x", attrs="geometry size", doc="the windows of x (N, C, ...) as (N, C, *kernel, *places)",
   dx=lambda g, x_shape, geometry: fold_windows(g, geometry, x_shape))
op("fold_windows", "x", attrs="geometry size", doc="windows added into zeros at their places",
   dx=lambda g, x_shape, geometry: unfold_windows(g, geometry, x_shape))
op("max_pool", "x", attrs="geometry size", aux="indices", doc="the largest element of every window; NaN wins",
   dx=lambda g, x_shape, indices: put_planes(g, indices, x_shape, True), special="the gradient goes to the first of equal elements")
op("put_planes", "x", attrs="shape adds", aux="indices", doc="x at indices of each flattened plane (N, C) of zeros",
   dx=lambda g, x_shape, indices: take_planes(g, indices, x_shape))
op("take_planes", "x", attrs="shape", aux="indices", doc="the elements of each flattened plane (N, C) of x at indices",
   dx=lambda g, x_shape, indices: put_planes(g, indices, x_shape, True))
op("average_windows", "x", attrs="geometry size", doc="the mean of every window",
   dx=lambda g, x_shape, geometry: average_windows_back(g, geometry, x_shape))
op("average_windows_back", "x", attrs="geometry size", doc="x spread over the windows that it is the mean of",
   dx=lambda g, x_shape, geometry: average_windows(g, geometry, x_shape))
op("sampled", "x w", attrs="taps", aux="low", doc="sums of the pixels of x (N, C, ...) around places, times w (N, pixels, places)",
   dx=lambda g, w, x_shape, low, taps: sampled_input(g, w, low, x_shape, taps), dw=lambda g, x, low, taps: sampled_weight(g, x, low, taps))
op("sampled_input", "z w", attrs="shape taps", aux="low", doc="z times w added to the pixels of zeros around places",
   dz=lambda g, w, low, taps: sampled(g, w, low, taps), dw=lambda g, z, low, taps: sampled_weight(z, g, low, taps))
op("sampled_weight", "z x", attrs="taps", aux="low", doc="the sum over all channels of z times the pixels of x around places",
   dz=lambda g, x, low, taps: sampled(x, g, low, taps), dx=lambda g, z, x_shape, low, taps: sampled_input(z, g, low, x_shape, taps))
op("resample", "x", attrs="dim size how", doc="x at other points along dim, interpolated",
   dx=lambda g, x_shape, dim, how: resample_back(g, dim, x_shape[dim], how))
op("resample_back", "x", attrs="dim size how", doc="x added to the points that it is interpolated from",
   dx=lambda g, x_shape, dim, how: resample(g, dim, x_shape[dim], how))


# ---- normalisation: rules give the gradients of all inputs at once


def _normalize_rows(g, x, w, mean, scale, cols, groups, span, eps, centred):
    """The gradients of x, w and b."""
    return normalize_rows_back(g, x, w, mean, scale, cols, groups, span, eps, centred)


def _normalize_channels(g, x, w, mean, scale, eps):
    """The gradients of x, w and b."""
    return normalize_channels_back(g, x, w, mean, scale, eps)


def _scale_channels(g, x, w, mean, scale):
    """The gradients of x, w and b."""
    return normalize_channels_back(g, x, w, mean, scale, None)


op("normalize_rows", "x w b", attrs="cols groups span eps centred", aux="mean scale", doc="(x - mean) / sqrt(var + eps) * w + b of each row",
   dx=_normalize_rows, dw=_normalize_rows, db=_normalize_rows)
op("normalize_channels", "x w b", attrs="eps", aux="mean scale", doc="(x - mean) / sqrt(var + eps) * w + b of each channel of (N, C, ...)",
   dx=_normalize_channels, dw=_normalize_channels, db=_normalize_channels)
op("scale_channels", "x w b", attrs="mean scale", doc="(x - mean) * scale * w + b of each channel of (N, C, ...)",
   dx=_scale_channels, dw=_scale_channels, db=_scale_channels)
