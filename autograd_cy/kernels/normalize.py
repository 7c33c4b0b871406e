"""The routines of normalisation (normalize.pyx), at the instruction-set level that fits the processor.

Relies on the level that kernels/__init__ chose. Whoever first asks for a routine "normalize...." imports this.
"""

from . import import_levelled

import_levelled("normalize")
