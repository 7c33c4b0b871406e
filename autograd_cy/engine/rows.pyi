# Types of what operations written in Python need of the engine.
#
# Relies on tensor.pyi. convolve.py, pooling.py and normalize.py rely on it.

from typing import Any

from .tensor import Tensor

def record_row(name: str, out: Tensor, inputs: tuple[Any, ...], attrs: tuple[Any, ...], aux: Any = None) -> Tensor: ...
def packed(x: Any) -> Any: ...
