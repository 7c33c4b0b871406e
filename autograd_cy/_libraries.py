"""Finds the package's compiled modules, which lie in a few shared libraries (library.h; setup.py says which module in which). Several
sources make one module (merging.py), which is known under their names, too: `autograd_cy.engine.node` is `autograd_cy._core`.

Relies on the library `_compiled`. The package's __init__ imports it first; kernels adds the library of the instruction-set level.
"""

import os
import sys
from importlib.machinery import ModuleSpec          # importlib.util would import threading, 1 ms

from . import _compiled

DIRECTORY = os.path.dirname(__file__) + os.sep           # of the package: what its frames' filenames begin with
_where: dict = {}       # full name of a module or of a part -> its library, the module's name
_parts: dict = {}       # name of a merged module -> names of its parts


class _Merged:
    """The loader of a module of several parts, or of one of these by its own name: that is the same module."""

    def __init__(self, library, module):
        self.library, self.module = library, module

    def create_module(self, spec):
        if spec.name == self.module:
            return self.library.create_module(spec)
        __import__(self.module)
        module = sys.modules[self.module]
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        if module.__spec__.name != self.module:
            module.__spec__ = self.spec              # importing a part has put its own there
            return
        self.library.exec_module(module)
        for name in _parts[self.module]:             # here rather than one by one as they are asked for, which takes longer
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                sys.modules[name] = module
                setattr(sys.modules[package], last, module)


class _Finder:
    """An entry of sys.meta_path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _where:
            return None
        library, module = _where[name]
        spec = ModuleSpec(name, _Merged(library, module) if module in _parts else library, origin=library.__file__)
        spec.has_location = True
        return spec


def add(library):
    """From now on, modules of this library can be imported."""
    for name, module in library.names().items():
        _where[name] = library, module
        if name != module:
            _parts.setdefault(module, []).append(name)


add(_compiled)
# First, as modules that an earlier version built one by one may still lie about.
sys.meta_path.insert(0, _Finder)
