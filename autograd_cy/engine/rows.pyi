# Types of what operations written in Python need of the engine.
#
# Relies on tensor.pyi. convolve.py, pooling.py and normalize.py rely on it.

from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from .tensor import Tensor

def record_row(name: str, out: Tensor, inputs: tuple[Any, ...], attrs: tuple[Any, ...], aux: Any = None) -> Tensor: ...
def make_row(opcode: int, routine: int, *args: Any) -> Tensor: ...
def empty_as(x: Tensor | int, shape: Any, name: str = "empty") -> Tensor: ...
def planned(plan: Callable[..., Any], *args: Any) -> Any: ...
def packed(x: Any) -> Any: ...
def run_planned(plan: Callable[..., RowPlan], *args: Any) -> Any: ...

@disjoint_base
class RowPlan:
    def __init__(
        self, row: str | None, routine: str, inputs: int, outs: tuple[Any, ...], ints: tuple[int, ...], numbers: tuple[float, ...] = (),
        attrs: tuple[Any, ...] | None = None, *, aux: tuple[int, ...] = (), returned: int = 1, recorded: int = 4,
        ones: tuple[Any, ...] | None = None, single: bool = False, lean: str | None = None
    ) -> None: ...
