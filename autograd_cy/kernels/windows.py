"""The routines of convolutions (windows.pyx), at the instruction-set level that fits the processor.

Relies on the level that kernels/__init__ chose. Whoever first asks for a routine "windows...." imports this.
"""

from . import import_levelled

import_levelled("windows")
