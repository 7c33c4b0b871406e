"""THE TABLE: every operation with its derivative beside it.

Relies on rows.py and functions.py only. The build generates loops from it, the engine runs and differentiates by it,
the tests, the documentation and the benchmarks are driven by it. A rule never mentions broadcasting: the engine sums every
gradient back to its input's shape. A gradient of exactly zero stays zero where the local derivative is infinite.
"""

from ..rows import TABLE
from . import elementwise, special, reductions, sorting, products, network, shapes  # noqa: F401  the order of the rows

__all__ = ["TABLE"]
