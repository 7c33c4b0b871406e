# Types of memory overwritten, exchanged or copied.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from collections.abc import Sequence
from typing import Any, TypeVar

from .tensor import Tensor, _Operand

_T = TypeVar("_T", bound=Tensor)

def copy_(x: _T, source: _Operand | Sequence[Any], non_blocking: bool = False) -> _T: ...
def set_data(self: Tensor, value: Tensor) -> None: ...
def copied_with_storage(x: Tensor, memo: dict[Any, Any]) -> Tensor: ...
def drop_history(x: _T) -> _T: ...
