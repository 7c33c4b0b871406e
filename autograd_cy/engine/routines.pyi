# Types of the call of a routine.
#
# Relies on tensor.pyi. Modules of operations rely on it.

from .tensor import Tensor

def call_routine(name: str, tensors: tuple[Tensor | None, ...], ints: tuple[int, ...] = (), numbers: tuple[float, ...] = ()) -> None: ...
def exchanged() -> int: ...
