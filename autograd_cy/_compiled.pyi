# Types of a library of compiled modules (library.h), which is also the loader of its modules.
#
# Relies on nothing. _libraries.py relies on it.

from importlib.machinery import ModuleSpec
from types import ModuleType

def names() -> tuple[str, ...]: ...
def create_module(spec: ModuleSpec, /) -> ModuleType: ...
def exec_module(module: ModuleType, /) -> None: ...
