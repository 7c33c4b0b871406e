# Types of the nodes of the graph.
#
# Relies on tensor.pyi. tensor.pyi, __init__.pyi and users' type checkers rely on it.

from typing_extensions import disjoint_base

from .tensor import Tensor

NAMES: tuple[str, ...]
PACKAGE: str

@disjoint_base
class Node:
    def name(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def next_functions(self) -> tuple[tuple[Node | Tensor | None, int], ...]: ...
    @property
    def line(self) -> str | None: ...

def set_record_lines(mode: bool) -> None: ...
