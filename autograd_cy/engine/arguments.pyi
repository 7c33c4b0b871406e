# Types of what functions in Python check arguments with.
#
# Relies on tensor.pyi. Functions composed of others rely on it.

from .tensor import Tensor

def need_tensor(x: object, name: str) -> Tensor: ...
