"""Layers of pooling, and of images in other sizes.

Relies on Module and functional.  Models rely on it.
"""

from ..engine.convolve import sizes
from . import functional as F
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "ChannelShuffle", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input):
        return self._function(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
                              return_indices=self.return_indices)

    _repr_names = "kernel_size stride padding dilation ceil_mode"


class MaxPool1d(_MaxPool):
    """The largest element of every window of (N, C, L): F.max_pool1d."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of every window of (N, C, H, W): F.max_pool2d."""

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of every window of (N, C, D, H, W): F.max_pool3d."""

    _function = staticmethod(F.max_pool3d)


class _MaxUnpool(Module):
    dims = 0

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        name, d = type(self).__name__, self.dims
        self.kernel_size = sizes(kernel_size, d, name, "kernel_size")
        self.stride = sizes(stride if stride is not None else kernel_size, d, name, "stride")
        self.padding = sizes(padding, d, name, "padding")

    def forward(self, input, indices, output_size=None):
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    _repr_names = "kernel_size stride padding"


class MaxUnpool1d(_MaxUnpool):
    """The elements of MaxPool1d put back at their indices: F.max_unpool1d."""

    dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The elements of MaxPool2d put back at their indices: F.max_unpool2d."""

    dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The elements of MaxPool3d put back at their indices: F.max_unpool3d."""

    dims = 3
    _function = staticmethod(F.max_unpool3d)


class _AvgPool(Module):
    _repr_names = "kernel_size stride padding"


class AvgPool1d(_AvgPool):
    """The mean of every window of (N, C, L): F.avg_pool1d."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = sizes(kernel_size, 1, "AvgPool1d", "kernel_size")
        self.stride = sizes(stride if stride is not None else kernel_size, 1, "AvgPool1d", "stride")
        self.padding = sizes(padding, 1, "AvgPool1d", "padding")
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOverridden(_AvgPool):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride if stride is not None else kernel_size, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        return self._function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                              self.divisor_override)


class AvgPool2d(_AvgPoolOverridden):
    """The mean of every window of (N, C, H, W): F.avg_pool2d."""

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolOverridden):
    """The mean of every window of (N, C, D, H, W): F.avg_pool3d."""

    _function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    _repr_names = "norm_type kernel_size stride ceil_mode"


class LPPool1d(_LPPool):
    """The power-average of every window of (N, C, L): F.lp_pool1d."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The power-average of every window of (N, C, H, W): F.lp_pool2d."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The power-average of every window of (N, C, D, H, W): F.lp_pool3d."""

    _function = staticmethod(F.lp_pool3d)


class _AdaptiveMaxPool(Module):
    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):
        return self._function(input, self.output_size, self.return_indices)

    _repr_names = "output_size"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of output_size windows: F.adaptive_max_pool1d."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of output_size windows: F.adaptive_max_pool2d."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of output_size windows: F.adaptive_max_pool3d."""

    _function = staticmethod(F.adaptive_max_pool3d)


class _AdaptiveAvgPool(Module):
    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return self._function(input, self.output_size)

    _repr_names = "output_size"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of output_size windows: F.adaptive_avg_pool1d."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of output_size windows: F.adaptive_avg_pool2d."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of output_size windows: F.adaptive_avg_pool3d."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class Upsample(Module):
    """Images in another size, or scaled: F.interpolate."""

    def __init__(self, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode, self.align_corners, self.recompute_scale_factor = size, mode, align_corners, recompute_scale_factor
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple([float(f) for f in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample in mode "nearest"."""

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample in mode "bilinear", with aligned corners."""

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels as pixels: F.pixel_shuffle."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    _repr_names = "upscale_factor"


class PixelUnshuffle(Module):
    """Pixels as channels: F.pixel_unshuffle."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)

    _repr_names = "downscale_factor"


class ChannelShuffle(Module):
    """Channels of groups dealt out in turn: F.channel_shuffle."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    _repr_names = "groups"
