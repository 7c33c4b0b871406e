"""Finds the package's compiled modules, which lie in a few shared libraries (library.h; setup.py says which module in which).

Relies on the library `_compiled`. The package's __init__ imports it first; kernels adds the library of the instruction-set level.
"""

import os
import sys
from importlib.machinery import ModuleSpec          # importlib.util would import threading, 1 ms

from . import _compiled

DIRECTORY = os.path.dirname(__file__) + os.sep           # of the package: what its frames' filenames begin with
_where: dict = {}       # full name of a module -> its library


class _Finder:
    """An entry of sys.meta_path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        library = _where.get(name)
        if library is None:
            return None
        spec = ModuleSpec(name, library, origin=library.__file__)
        spec.has_location = True
        return spec


def add(library):
    """From now on, modules of this library can be imported."""
    _where.update(dict.fromkeys(library.names(), library))


add(_compiled)
# First, as modules that an earlier version built one by one may still lie about.
sys.meta_path.insert(0, _Finder)
