# Types of the choices between values.
#
# Relies on tensor.pyi. __init__.pyi, nn and users' type checkers rely on it.

from typing import TypeVar, overload

from .tensor import Tensor, _Operand

_T = TypeVar("_T", bound=Tensor)

@overload
def where(condition: Tensor, input: None = None, other: None = None) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: _Operand, other: _Operand) -> Tensor: ...
def clamp(input: Tensor, min: float | Tensor | None = None, max: float | Tensor | None = None) -> Tensor: ...
def clamp_(input: _T, min: float | Tensor | None = None, max: float | Tensor | None = None) -> _T: ...
def masked_fill(input: Tensor, mask: Tensor, value: _Operand) -> Tensor: ...
def masked_fill_(input: _T, mask: Tensor, value: _Operand) -> _T: ...

__all__ = ["clamp", "clamp_", "masked_fill", "masked_fill_", "where"]
