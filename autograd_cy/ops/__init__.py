"""THE TABLE of operations, and the code generator that turns its elementwise rows into loops.

Relies on nothing. The build, the engine, the tests, the documentation and the benchmarks read it.
"""

from .codegen import is_identity, is_masked, loop_ids, rule_inputs
from .rows import Row
from .table import TABLE

LOOP_IDS = loop_ids()


def loop_id(name):
    """The id in the kernel table of a forward loop ("mul") or of a derivative's ("mul.da")."""
    return LOOP_IDS[name]


__all__ = ["LOOP_IDS", "Row", "TABLE", "is_identity", "is_masked", "loop_id", "rule_inputs"]
