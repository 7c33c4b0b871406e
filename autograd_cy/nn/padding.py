"""Layers that pad the last one, two or three dimensions: by a number, mirrored, with the edge, from the other end.

Relies on functional.pad and Module; nothing relies on it.
"""

from collections.abc import Sequence

from autograd_cy.engine.blocks import pad
from autograd_cy.engine.tensor import Tensor

from .module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class _Padding(Module):
    """padding: a number for all sides, or (left, right, top, bottom, front, back), as many as there are dimensions."""

    _n: int
    _mode: str = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        sides = 2 * self._n
        self.padding = (padding,) * sides if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != sides:
            raise ValueError(f"{type(self).__name__}: expected a number or {sides} of them, got {padding}")

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self._n + 1, self._n + 2) and self._mode != "constant":
            raise RuntimeError(f"{type(self).__name__}: expected {self._n + 1} or {self._n + 2} dimensions, got shape {input.shape}")
        return pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Padding):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "constant", self.value)

    extra_repr = Module.extra_repr
    _repr_names = "padding value"


class ConstantPad1d(_ConstantPad):
    """The last dimension padded with `value`."""

    _n = 1


class ConstantPad2d(_ConstantPad):
    """The last two dimensions padded with `value`."""

    _n = 2


class ConstantPad3d(_ConstantPad):
    """The last three dimensions padded with `value`."""

    _n = 3


class ZeroPad1d(ConstantPad1d):
    """The last dimension padded with zeros."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Padding.extra_repr


class ZeroPad2d(ConstantPad2d):
    """The last two dimensions padded with zeros."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Padding.extra_repr


class ZeroPad3d(ConstantPad3d):
    """The last three dimensions padded with zeros."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Padding.extra_repr


class ReflectionPad1d(_Padding):
    """The last dimension padded mirrored, without the edge."""

    _n, _mode = 1, "reflect"


class ReflectionPad2d(_Padding):
    """The last two dimensions padded mirrored, without the edge."""

    _n, _mode = 2, "reflect"


class ReflectionPad3d(_Padding):
    """The last three dimensions padded mirrored, without the edge."""

    _n, _mode = 3, "reflect"


class ReplicationPad1d(_Padding):
    """The last dimension padded with their edge."""

    _n, _mode = 1, "replicate"


class ReplicationPad2d(_Padding):
    """The last two dimensions padded with their edge."""

    _n, _mode = 2, "replicate"


class ReplicationPad3d(_Padding):
    """The last three dimensions padded with their edge."""

    _n, _mode = 3, "replicate"


class CircularPad1d(_Padding):
    """The last dimension padded from their other end."""

    _n, _mode = 1, "circular"


class CircularPad2d(_Padding):
    """The last two dimensions padded from their other end."""

    _n, _mode = 2, "circular"


class CircularPad3d(_Padding):
    """The last three dimensions padded from their other end."""

    _n, _mode = 3, "circular"
