"""Typed loops over raw pointers, reached through one table of function pointers (`table.K`).

Relies on array (dtype codes) and on the loops generated from ops. The engine relies on it.
Modules of loops are compiled once per instruction-set level, and the one that fits the processor is loaded here; what moves memory
or divides integers gains nothing from that and exists once (integer_loops, index).
AUTOGRAD_CY_LEVEL=base|v3|v4 forces a level (for tests and measurements).
"""

import importlib
import os

from autograd_cy import _libraries

from . import table

LEVELS = ("base", "v3", "v4")
MODULES = ("elementwise", "casts", "reduce", "rows", "update", "micro", "loops")


def _choose_level():
    highest = table.cpu_level()
    asked = os.environ.get("AUTOGRAD_CY_LEVEL")
    if asked:
        if asked not in LEVELS or LEVELS.index(asked) > highest:
            raise ImportError(f"AUTOGRAD_CY_LEVEL={asked!r}: this processor runs {', '.join(LEVELS[:highest + 1])}")
        return asked
    return LEVELS[highest]


level = _choose_level()
# Of 512 bits, memory and short formulas gain nothing (setup.py), so v4 has some of the modules only, and of the loops the long ones.
_levels = ("v3", "v4") if level == "v4" else (level,)
_modules = {}
for _level in _levels:
    _libraries.add(_library := importlib.import_module(f"._{_level}", __name__))
    _modules.update({name.rpartition(f"._{_level}_")[2]: name for name in _library.names()})


def import_levelled(name):
    """Imports a module of loops, which fills its part of the table, at the best level that there is of it."""
    importlib.import_module(_modules[name])


if level == "v4":
    importlib.import_module("._v3_loops", __name__)          # those that v4 has come after them
for _name in ("integer_loops", "index"):
    importlib.import_module(f".{_name}", __name__)
for _name in MODULES:
    import_levelled(_name)
