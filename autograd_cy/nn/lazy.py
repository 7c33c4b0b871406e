"""Layers that learn the number of their input's features or channels from the first input: LazyLinear, LazyConv2d and their kind.

Relies on the layers that they become. Models rely on it.

Until then their parameters are there, without elements: `model.to(...)` and an optimiser made before the first call hold the very
parameters that get their shape and values in it.
"""

from ..array.errors import CaptureError
from ..engine.creation import capturing
from ..engine.modes import no_grad
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]


class _Lazy(Module):
    _counted, _axis = "num_features", 1         # the attribute, and the dimension of the input that it counts

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(0, *args, **kwargs)
        self._given = args, kwargs

    def forward(self, input):
        if capturing():
            raise CaptureError(f"{type(self).__name__}: the first input decides on the layer's shape: call the model once before it is "
                               f"compiled")
        if not -input.ndim <= self._axis < input.ndim:
            raise ValueError(f"{type(self).__name__}: expected an input with {self._counted} in dimension {self._axis}, got shape "
                             f"{input.shape}")
        (args, kwargs), bases = self._given, type(self).__mro__
        count, becomes = input.shape[self._axis], bases[bases.index(_Lazy) + 1]
        made = becomes(count, *args, **kwargs)
        with no_grad():
            for own, new in zip((*self.parameters(), *self.buffers()), (*made.parameters(), *made.buffers()), strict=True):
                own.data = new.detach().to(own.dtype)
        setattr(self, self._counted, count)
        del self._given
        object.__setattr__(self, "__class__", becomes)
        return self.forward(input)


class LazyLinear(_Lazy, Linear):
    """Linear(in_features, out_features, bias), with in_features the last size of the first input."""

    _counted, _axis = "in_features", -1


class LazyConv1d(_Lazy, Conv1d):
    """Conv1d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -2


class LazyConv2d(_Lazy, Conv2d):
    """Conv2d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -3


class LazyConv3d(_Lazy, Conv3d):
    """Conv3d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -4


class LazyConvTranspose1d(_Lazy, ConvTranspose1d):
    """ConvTranspose1d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -2


class LazyConvTranspose2d(_Lazy, ConvTranspose2d):
    """ConvTranspose2d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -3


class LazyConvTranspose3d(_Lazy, ConvTranspose3d):
    """ConvTranspose3d with as many in_channels as the first input has."""

    _counted, _axis = "in_channels", -4


class LazyBatchNorm1d(_Lazy, BatchNorm1d):
    """BatchNorm1d with as many features as the first input has."""


class LazyBatchNorm2d(_Lazy, BatchNorm2d):
    """BatchNorm2d with as many features as the first input has."""


class LazyBatchNorm3d(_Lazy, BatchNorm3d):
    """BatchNorm3d with as many features as the first input has."""


class LazyInstanceNorm1d(_Lazy, InstanceNorm1d):
    """InstanceNorm1d with as many features as the first input has."""


class LazyInstanceNorm2d(_Lazy, InstanceNorm2d):
    """InstanceNorm2d with as many features as the first input has."""


class LazyInstanceNorm3d(_Lazy, InstanceNorm3d):
    """InstanceNorm3d with as many features as the first input has."""
