"""Modules and names that are imported when they are first asked for, so that the package's own import is short.

Relies on nothing. The package and the thin lists of names (optim, autograd, utils, nn.utils) rely on it.
"""

from importlib import import_module
from sys import modules
from types import ModuleType


# A `__getattr__` of the package would do that too, but where a module has one, CPython 3.11 looks every `ag.relu` up anew, 35 ns.
class Later(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, attribute):
        module = import_module(self.__name__)      # which takes this object's place in the package
        vars(self).update(vars(module))
        self.__class__ = type(module)              # whoever took hold of this object: no `__getattr__` any more, 70 ns
        return getattr(module, attribute)

    def __dir__(self):                             # for completion and help()
        self.__getattr__("__doc__")
        return dir(self)


def later(module, places):
    """(__getattr__, __dir__) for the module of that name. places: name -> the module that has it, or is it; from within the module, but
    "..tools" is relative as in an import."""
    def __getattr__(name):
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = import_module("." * (not places[name].startswith(".")) + places[name], module)
        return found if places[name] == name else getattr(found, name)

    def __dir__():
        return sorted({*vars(modules[module]), *places})
    return __getattr__, __dir__
