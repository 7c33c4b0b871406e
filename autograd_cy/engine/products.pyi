# Types of the matrix products.
#
# Relies on tensor.pyi. __init__.pyi, nn and users' type checkers rely on it.

from typing import Any

import numpy.typing as npt

from .tensor import Tensor

def matmul(input: Tensor | npt.NDArray[Any], other: Tensor | npt.NDArray[Any]) -> Tensor: ...
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
