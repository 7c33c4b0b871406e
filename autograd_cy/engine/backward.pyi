# Types of the backward passes.
#
# Relies on tensor.pyi. __init__.pyi, autograd.py, tools and users' type checkers rely on it.

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from .node import Node
from .tensor import Tensor

ENGINES: tuple[str, ...]

def set_engine(engine: str) -> None: ...
def get_engine() -> str: ...
def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None,
    engine: str | None = None
) -> None: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, allow_unused: Literal[False] = False, is_grads_batched: bool = False,
    materialize_grads: bool = False, engine: str | None = None, only_inputs: bool = True
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, allow_unused: bool = False, is_grads_batched: bool = False, materialize_grads: bool = False,
    engine: str | None = None, only_inputs: bool = True
) -> tuple[Any, ...]: ...
def inner_grad(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Sequence[Tensor | None] | None, create_graph: bool = False,
    materialize_grads: bool = False
) -> tuple[Any, ...]: ...
def observed_backward(
    root: Tensor, gradient: Tensor | None, retain_graph: bool,
    observer: Callable[[Node, list[Tensor | None], list[Tensor | None]], object]
) -> None: ...
def tensor_backward(
    self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None, engine: str | None = None
) -> None: ...
