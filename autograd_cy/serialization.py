"""save and load: objects with tensors in them, as files (torch.save, torch.load).

The files are pickles; PyTorch's own are another format, which is an error here that says so. Relies on the tensors' pickling.
"""

import pickle
from os import PathLike, fspath
from typing import Any

# What tensors, parameters and state dictionaries are rebuilt by; a file that names anything else may run code.
_HARMLESS = {("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "set"), ("builtins", "frozenset"),
             ("builtins", "complex"), ("builtins", "slice"), ("builtins", "range"), ("builtins", "bytearray"),
             ("autograd_cy.engine.methods", "_from_bytes"), ("autograd_cy", "Tensor"), ("autograd_cy.engine.tensor", "Tensor"),
             ("autograd_cy.nn.parameter", "Parameter"), ("autograd_cy.array.dtypes", "DType"), ("autograd_cy.array.dtypes", "as_dtype")}


class _Careful(pickle.Unpickler):
    """Reads tensors, numbers, strings and containers only."""

    def find_class(self, module, name):
        if (module, name) in _HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"load: the file holds {module}.{name}, which weights_only=True does not read; pass "
                                     "weights_only=False if you trust its source, since loading it may run code")


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 4, _use_new_zipfile_serialization: bool = True) -> None:
    """Write obj (tensors, state dictionaries, modules, or containers of them) to f, a path or a file open for writing bytes."""
    if isinstance(f, (str, PathLike)):
        with open(fspath(f), "wb") as file:
            pickle_module.dump(obj, file, protocol=pickle_protocol)
    else:
        pickle_module.dump(obj, f, protocol=pickle_protocol)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = True, mmap: bool | None = None) -> Any:
    """Read what save wrote, from a path or a file open for reading bytes.

    With weights_only, files that hold more than tensors, numbers, strings and containers raise pickle.UnpicklingError;
    without it, loading a file may run code, so do it only with files that you trust. map_location and mmap have no effect on a CPU.
    """
    if isinstance(f, (str, PathLike)):
        with open(fspath(f), "rb") as file:
            return load(file, map_location, pickle_module, weights_only=weights_only)
    start = f.tell()
    if f.read(2) == b"PK":
        raise RuntimeError("load: this is a file in PyTorch's own format; in PyTorch, save the tensors as NumPy arrays")
    f.seek(start)
    return _Careful(f).load() if weights_only else (pickle_module or pickle).load(f)
