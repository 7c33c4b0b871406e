"""Layers of convolutions, and of windows as columns.

Relies on Module, Parameter, init and functional.  Models rely on it.
"""

import math

from ..engine import convolve, creation
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What the convolutions of all dimensions share; `dims` of them."""

    dims = 0
    transposed = False

    def _set_up(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode,
                dtype, device):
        name, d = type(self).__name__, self.dims
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in convolve.sizes(stride, d, name, "stride")):
                raise ValueError("padding='same' is not supported for strided convolutions")
        else:
            padding = convolve.sizes(padding, d, name, "padding")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode={padding_mode!r}")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride = convolve.sizes(kernel_size, d, name, "kernel_size"), convolve.sizes(stride, d, name, "stride")
        self.padding, self.dilation = padding, convolve.sizes(dilation, d, name, "dilation")
        self.output_padding = convolve.sizes(output_padding, d, name, "output_padding")
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(creation.empty((first, second // groups, *self.kernel_size), dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(creation.empty((out_channels,), dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew: uniform(-b, b), b = 1 / sqrt(channels of a window * its elements)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None) -> None:
        super().__init__()
        self._set_up(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, dtype, device)

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = self._padded(input), 0
        return self._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _padded(self, input):
        """The input with elements of its own around it."""
        d = self.dims
        for i in range(d):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                before, after = total // 2, total - total // 2
            else:
                before = after = 0 if self.padding == "valid" else self.padding[i]
            if before or after:
                axis = input.ndim - d + i
                where = creation.tensor(_sources(input.shape[axis], before, after, self.padding_mode))
                input = input[(slice(None),) * axis + (where,)]
        return input


def _sources(n, before, after, mode):
    """Which element stands at each place of a padded dimension of n."""
    if mode == "reflect" and max(before, after) >= n or mode == "circular" and max(before, after) > n or n == 0:
        raise RuntimeError(f"padding of size ({before}, {after}) is too large for a dimension of size {n} with padding_mode={mode!r}")
    places = range(-before, n + after)
    if mode == "replicate":
        return [min(max(i, 0), n - 1) for i in places]
    if mode == "circular":
        return [i % n for i in places]
    return [abs(i) if i < n else 2 * n - 2 - i for i in places]


class Conv1d(_Conv):
    """The convolution of (N, C, L): F.conv1d with a weight (out_channels, in_channels / groups, kernel) and a bias."""

    dims = 1
    _function = staticmethod(convolve.conv1d)


class Conv2d(_Conv):
    """The convolution of (N, C, H, W): F.conv2d with a weight (out_channels, in_channels / groups, *kernel) and a bias."""

    dims = 2
    _function = staticmethod(convolve.conv2d)


class Conv3d(_Conv):
    """The convolution of (N, C, D, H, W): F.conv3d with a weight (out_channels, in_channels / groups, *kernel) and a bias."""

    dims = 3
    _function = staticmethod(convolve.conv3d)


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1,
                 bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._set_up(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, dtype,
                     device)

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return self._function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        """The output_padding that gives this output_size."""
        d = self.dims
        wanted = tuple(output_size)
        if len(wanted) == input.ndim:
            wanted = wanted[-d:]
        if len(wanted) != d:
            raise ValueError(f"{type(self).__name__}: for {input.ndim}D input, output_size must have {d} or {input.ndim} elements "
                             f"(got {len(wanted)})")
        least = [(n - 1) * s - 2 * p + a * (k - 1) + 1
                 for n, s, p, a, k in zip(input.shape[-d:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for n, low, high in zip(wanted, least, most, strict=True)):
            raise ValueError(f"requested an output size of {list(wanted)}, but valid sizes range from {least} to {most} "
                             f"(for an input of {list(input.shape[-d:])})")
        return tuple([n - low for n, low in zip(wanted, least, strict=True)])


class ConvTranspose1d(_ConvTranspose):
    """F.conv_transpose1d with a weight (in_channels, out_channels / groups, kernel) and a bias."""

    dims = 1
    _function = staticmethod(convolve.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """F.conv_transpose2d with a weight (in_channels, out_channels / groups, *kernel) and a bias."""

    dims = 2
    _function = staticmethod(convolve.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """F.conv_transpose3d with a weight (in_channels, out_channels / groups, *kernel) and a bias."""

    dims = 3
    _function = staticmethod(convolve.conv_transpose3d)


class Unfold(Module):
    """The windows of images as columns: F.unfold."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    _repr_names = "kernel_size dilation padding stride"


class Fold(Module):
    """Columns added up in images: F.fold."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    _repr_names = "output_size kernel_size dilation padding stride"
