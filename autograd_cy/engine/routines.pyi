# Types of what operations written in Python need.
#
# Relies on tensor.pyi. Modules of operations rely on it.

from .tensor import Tensor

def call_routine(name: str, tensors: tuple[Tensor | None, ...], ints: tuple[int, ...] = (), numbers: tuple[float, ...] = ()) -> None: ...
def record_operation(name: str, out: Tensor, inputs: tuple[Tensor | None, ...], attrs: tuple[object, ...] | None = None) -> Tensor: ...
