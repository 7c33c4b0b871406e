# Types of the nodes of the graph.
#
# Relies on tensor.pyi. tensor.pyi, __init__.pyi and users' type checkers rely on it.

from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from ..array.dtypes import DType
from .handles import RemovableHandle
from .tensor import Tensor

NUMBERS: dict[int, type]

@disjoint_base
class Node:
    def name(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def next_functions(self) -> tuple[tuple[Node | Tensor | None, int], ...]: ...
    @property
    def inputs(self) -> tuple[tuple[tuple[int, ...], DType] | float | None, ...]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def sequence_nr(self) -> int: ...
    @property
    def line(self) -> str | None: ...
    @property
    def metadata(self) -> dict[Any, Any]: ...
    def register_hook(
        self, hook: Callable[[tuple[Tensor | None, ...], tuple[Tensor | None, ...]], tuple[Tensor | None, ...] | None]
    ) -> RemovableHandle: ...
    def register_prehook(self, hook: Callable[[tuple[Tensor | None, ...]], tuple[Tensor | None, ...] | None]) -> RemovableHandle: ...

def set_record_lines(mode: bool) -> None: ...
