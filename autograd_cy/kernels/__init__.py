"""Typed loops over raw pointers, reached through one table of function pointers (`table.K`).

Relies on array (dtype codes) and on the loops generated from ops. The engine relies on it.
Modules of loops are compiled once per instruction-set level, and the one that fits the processor is loaded here; what moves memory
or counts integers gains nothing from that and exists once (integer_loops, index).
AUTOGRAD_CY_LEVEL=base|v3|v4 forces a level (for tests and measurements).
"""

import importlib
import os

from autograd_cy import _libraries

from . import table

LEVELS = ("base", "v3", "v4")
MODULES = ("elementwise", "reduce", "rows", "update", "micro", "loops")


def _choose_level():
    highest = table.cpu_level()
    asked = os.environ.get("AUTOGRAD_CY_LEVEL")
    if asked:
        if asked not in LEVELS or LEVELS.index(asked) > highest:
            raise ImportError(f"AUTOGRAD_CY_LEVEL={asked!r}: this processor runs {', '.join(LEVELS[:highest + 1])}")
        return asked
    return LEVELS[highest]


level = _choose_level()
_libraries.add(importlib.import_module(f"._{level}", __name__))
for _name in ("integer_loops", "index", *(f"_{level}_{name}" for name in MODULES)):        # each fills its part of the table
    importlib.import_module(f".{_name}", __name__)
