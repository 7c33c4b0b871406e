# Types of padding.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from collections.abc import Sequence
from typing import Any

from .tensor import Tensor

def need_tensor(x: object, name: str) -> Tensor: ...
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor: ...
