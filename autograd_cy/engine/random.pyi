# Types of what draws floats.
#
# Relies on tensor.pyi. generators.pyi relies on it.

from typing import Any

from .generators import Generator
from .tensor import Tensor, _DType

def draw(t: Tensor, name: str, generator: Generator | None, p: float = 0.0, scale: float = 1.0, tells: bool = True) -> None: ...
def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: _DType | None = None, requires_grad: bool = False,
    device: Any = None
) -> Tensor: ...
def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: _DType | None = None, requires_grad: bool = False,
    device: Any = None
) -> Tensor: ...
def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor: ...
