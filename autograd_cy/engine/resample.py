"""Images in other sizes: interpolate, upsample; and channels traded for pixels: pixel_shuffle, pixel_unshuffle, channel_shuffle.

Relies on kernels/pooling (the routine of one dim), pooling.py ("area") and rows.pyx. nn.functional has the functions, the rules of
the table call the rows.

`how` is what the routine reads: (the way of interpolation, input elements per output element).
"""

import math
import warnings
from functools import partial

from ..array.errors import ShapeError
from .arguments import need_tensor
from .convolve import need_float
from .gradients import FUNCTIONS
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .rows import RowPlan, backward_by, planned, run_planned
from .tensor import Tensor

NEAREST, NEAREST_EXACT, LINEAR, LINEAR_CORNERS, CUBIC, CUBIC_CORNERS = range(6)
_MODES = {"linear": 3, "bilinear": 4, "trilinear": 5, "bicubic": 4}


def _line(x, dim, size, how, back=False):
    """The plan of one dim."""
    before, n, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1:]
    return RowPlan("resample_back" if back else "resample", "pooling.resample_back" if back else "pooling.resample", 1,
                   (((*before, size, *after), -1),), (math.prod(before), *((size, n) if back else (n, size)), math.prod(after), how[0]),
                   how[1:], (dim, size, how))


FUNCTIONS.update({"resample": partial(run_planned, _line),
                  "resample_back": lambda x, dim, size, how: run_planned(_line, x, dim, size, how, True)})
backward_by("resample", lambda g, dim, size, how, shape: _line(g, dim, shape[dim], how, True))


def _wanted(input, size, scale_factor, recompute):
    """(output sizes, one factor per dim or None where they follow from the sizes)."""
    d = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = size if size is not None else scale_factor
    values = [given] * d if isinstance(given, (int, float)) else list(given)
    if len(values) != d:
        raise ValueError(f"interpolate: Input and output must have the same number of spatial dimensions, but got input with spatial "
                         f"dimensions of {list(input.shape[2:])} and {'size' if size is not None else 'scale_factor'} {values}")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [int(v) for v in values], None
    sizes = [math.floor(n * float(v)) for n, v in zip(input.shape[2:], values, strict=True)]
    return sizes, None if recompute else [float(v) for v in values]


def interpolate(input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Images (N, C, ...) of one to three dimensions in another size, or scaled.

    mode: "nearest", "nearest-exact", "linear" (3-d input), "bilinear", "bicubic" (4-d), "trilinear" (5-d), "area" (adaptive means).
    align_corners: the first and last elements lie on each other, instead of the outer borders. Raises ValueError or
    NotImplementedError where arguments do not fit; antialias is not implemented.
    """
    if align_corners is not None:
        align_corners = bool(align_corners)
    if antialias is not False:
        antialias = bool(antialias)
    if recompute_scale_factor is not None:
        recompute_scale_factor = bool(recompute_scale_factor)
    if isinstance(size, Tensor):                  # its values count
        size = size.tolist()
    if isinstance(scale_factor, Tensor):
        scale_factor = scale_factor.tolist()
    sizes, steps = planned(_steps, input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    if sizes:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.ndim - 3](input, sizes)
    for step in steps:
        input = run_planned(_line, input, *step)
    return input


def _steps(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    """(output sizes of mode "area", the arguments of _line for each dim that changes)."""
    need_float(input, "interpolate")
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif mode not in _MODES:
        raise NotImplementedError(f"interpolate: unknown mode {mode!r}")
    sizes, factors = _wanted(input, size, scale_factor, recompute_scale_factor or mode == "area" and size is None)
    if input.ndim not in (3, 4, 5):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: nearest | "
                                  f"linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})")
    if _MODES.get(mode, input.ndim) != input.ndim:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_MODES[mode]}D input")
    if antialias:
        if mode not in ("bilinear", "bicubic"):
            raise ValueError("Anti-alias option is only supported for bilinear and bicubic modes")
        raise NotImplementedError("interpolate: antialias is not implemented")
    if mode == "area":
        return tuple(sizes), ()
    if min(sizes) < 1 or 0 in input.shape[1:]:
        raise ShapeError(f"interpolate: Input and output sizes should be greater than 0, but got input {list(input.shape)} "
                         f"and output {sizes}")
    shape, steps = input.shape[2:], []
    # what shrinks first, then the last dims: whole lines are copied faster than single elements
    for i in sorted(range(len(sizes)), key=lambda i: (sizes[i] > shape[i], -i)):
        n, m = shape[i], sizes[i]
        scale = n / m if factors is None else 1.0 / factors[i]
        if align_corners:
            scale = (n - 1) / (m - 1) if m > 1 else 0.0
        way = {"nearest": NEAREST, "nearest-exact": NEAREST_EXACT, "bicubic": CUBIC}.get(mode, LINEAR) + (1 if align_corners else 0)
        if n == m and way == LINEAR:
            continue
        steps.append((i + 2, m, (way, scale)))
    return (), tuple(steps)


def upsample(input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """The older name of interpolate."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The older name of interpolate with mode="nearest"."""
    return upsample(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The older name of interpolate with mode="bilinear" and align_corners=True."""
    return upsample(input, size, scale_factor, "bilinear", True)


def _shuffled(shape, r):
    """(sizes of the parts, their new order, the new shape) of pixel_shuffle."""
    if len(shape) < 3:
        raise ShapeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                         f"input.size(-3)={c} is not divisible by {r * r}")
    n = len(lead)
    return (*lead, c // (r * r), r, r, h, w), (*range(n), n, n + 3, n + 1, n + 4, n + 2), (*lead, c // (r * r), h * r, w * r)


def _unshuffled(shape, r):
    """As _shuffled, of pixel_unshuffle."""
    if len(shape) < 3:
        raise ShapeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but sizes {h} and {w} are not "
                         f"divisible by {r}")
    n = len(lead)
    return (*lead, c, h // r, r, w // r, r), (*range(n), n, n + 2, n + 4, n + 1, n + 3), (*lead, c * r * r, h // r, w // r)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r r, H, W) as (..., C, H r, W r). RuntimeError where the channels can't be divided."""
    need_tensor(input, "pixel_shuffle")
    parts, order, size = planned(_shuffled, input.shape, upscale_factor)
    return input.reshape(parts).permute(order).reshape(size)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) as (..., C r r, H, W): the reverse of pixel_shuffle. RuntimeError where the sizes can't be divided."""
    need_tensor(input, "pixel_unshuffle")
    parts, order, size = planned(_unshuffled, input.shape, downscale_factor)
    return input.reshape(parts).permute(order).reshape(size)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, ...) in `groups` groups, dealt out in turn. RuntimeError where they can't be divided."""
    need_tensor(input, "channel_shuffle")
    if input.ndim < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    n, c = input.shape[:2]
    if groups <= 0 or c % groups:
        raise ShapeError(f"channel_shuffle: Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return input.reshape(n, groups, c // groups, *input.shape[2:]).transpose(1, 2).reshape(input.shape)


__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample"]
