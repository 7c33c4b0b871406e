"""The routines of normalisation (normalize.pyx), at the instruction-set level that fits the processor.

Relies on the level that kernels/__init__ chose. Whoever first asks for a routine "normalize...." imports this.
"""

from importlib import import_module

from . import level

import_module(f"._{level}_normalize", __package__)
