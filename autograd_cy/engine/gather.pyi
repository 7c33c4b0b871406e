# Types of gather and its gradient.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from collections.abc import Sequence

from .tensor import Tensor

def gather(x: Tensor, dim: int, index: Tensor) -> Tensor: ...
def rule_gather(x: Tensor, index: Tensor, dim: int) -> Tensor: ...
def put(g: Tensor, index: Tensor, shape: Sequence[int], dim: int) -> Tensor: ...
