"""Finds the package's compiled modules, which lie in a few shared libraries (library.h; setup.py says which module in which). Several
sources make one module (merging.py), whose names are found under theirs, too: those of `autograd_cy._core` in `autograd_cy.engine.node`.

Relies on the library `_compiled`. The package's __init__ imports it first; kernels adds the library of the instruction-set level.
"""

import os
import sys
from importlib.machinery import ModuleSpec          # importlib.util would import threading, 1 ms

from . import _compiled

DIRECTORY = os.path.dirname(__file__) + os.sep           # of the package: what its frames' filenames begin with
_where: dict = {}       # full name of a module or of a part -> its library, the module's name
_parts: dict = {}       # name of a merged module -> names of its parts
_ITS_OWN = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__builtins__", "__test__"}      # of every module


class _Part(type(sys)):
    """A merged module under the name of one of its parts: it has the same names, and what is set here is set there."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name not in _ITS_OWN:
            setattr(sys.modules[_where[self.__name__][1]], name, value)


def _fill(part, module):
    vars(part).update({name: value for name, value in vars(module).items() if name not in _ITS_OWN})


class _Merged:
    """The loader of a module of several parts, and of its parts."""

    def __init__(self, library, module):
        self.library, self.module = library, module

    def create_module(self, spec):
        return self.library.create_module(spec) if spec.name == self.module else _Part(spec.name)

    def exec_module(self, module):
        if module.__name__ != self.module:
            __import__(self.module)
            _fill(module, sys.modules[self.module])
            return
        self.library.exec_module(module)
        for name in _parts[self.module]:             # here rather than one by one as they are asked for, which takes longer
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                _fill(sys.modules.setdefault(name, _Part(name)), module)
                setattr(sys.modules[package], last, sys.modules[name])


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
