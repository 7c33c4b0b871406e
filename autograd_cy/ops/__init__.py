"""THE TABLE of operations, and the code generator that turns its elementwise rows into loops.

Relies on nothing. The build, the engine, the tests, the documentation and the benchmarks read it.
What the engine asks for at import is answered without evaluating rules on symbols, which would take as long as all else.
"""

from .rows import Row
from .symbols import Symbol
from .table import TABLE

# Name of every loop ("mul", "mul.da", ...) -> its id in the kernel table: the loops are generated in this order.
LOOP_IDS = {name: i for i, (name, _) in enumerate(loop for row in TABLE.values() for loop in row.loops)}


def loop_id(name):
    """The id in the kernel table of a forward loop ("mul") or of a derivative's ("mul.da")."""
    return LOOP_IDS[name]


def is_identity(row, name):
    """Whether the derivative for input `name` is g itself (and its rule names nothing else)."""
    g = Symbol("g")
    return row.parameters(name) == ("g",) and row.rules[name](g) is g


def is_masked(row, name):
    """Whether the derivative for input `name` is forced to 0 where g is 0 and the formula gives NaN."""
    from . import formulas     # evaluates the rule on symbols: not at import
    return formulas.is_masked(row, name)


__all__ = ["LOOP_IDS", "Row", "TABLE", "is_identity", "is_masked", "loop_id"]
