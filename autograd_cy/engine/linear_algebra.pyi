# Types of linear algebra.
#
# Relies on tensor.pyi. linalg.py and users' type checkers rely on it.

from .tensor import Tensor

def inv(input: Tensor) -> Tensor: ...
