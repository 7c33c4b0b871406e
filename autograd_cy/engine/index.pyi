# Types of indexing with arrays.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from collections.abc import Sequence
from typing import Literal, overload

from typing_extensions import disjoint_base

from .tensor import Tensor

@overload
def nonzero(x: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(x: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

@disjoint_base
class Plan: ...

def index(x: Tensor, plan: Plan) -> Tensor: ...
def index_back(g: Tensor, shape: Sequence[int], plan: Plan) -> Tensor: ...
def index_fill(x: Tensor, plan: Plan) -> Tensor: ...
