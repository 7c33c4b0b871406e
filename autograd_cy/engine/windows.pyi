# Types of windows on memory.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from typing import Any

from .tensor import Tensor

def as_strided(x: Tensor, base: tuple[Any, ...], view: tuple[Any, ...]) -> Tensor: ...
def as_strided_back(x: Tensor, base: tuple[Any, ...], view: tuple[Any, ...]) -> Tensor: ...
def fill_strided(x: Tensor, base: tuple[Any, ...], view: tuple[Any, ...]) -> Tensor: ...
