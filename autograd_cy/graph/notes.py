"""What the recorder needs of Python: the operands of every loop, and blocks of memory.

Relies on ops. recorder relies on it.
"""

from autograd_cy import ops

# What the loops are called, how many inputs they take, and which of their operands are bool whatever the dtype.
LOOP_NAMES = list(ops.LOOP_IDS)
LOOP_INPUTS = []
for _row in ops.TABLE.values():
    for _name, _by in _row.loops:
        LOOP_INPUTS.append(_row.inputs if _by is None else _row.rule_inputs(_by))
LOOP_BOOLS = []
for _row in ops.TABLE.values():
    for _name, _by in _row.loops:
        LOOP_BOOLS.append((_by is None and _row.result == "bool",
                           *[_row.types.get(p) == "bool" for p in LOOP_INPUTS[len(LOOP_BOOLS)]]))
LOOP_ATTRS = [len(row.attrs) for row in ops.TABLE.values() for _ in row.loops]


class Block:
    """Memory that the capture met: one Buffer of the program to be."""

    __slots__ = ("content", "id", "kind", "name", "nbytes", "owner", "position", "start", "touched")

    def __init__(self, id, kind, start, nbytes):
        self.id, self.kind, self.start, self.nbytes = id, kind, start, nbytes
        self.name, self.content, self.owner, self.touched, self.position = "", None, None, False, 0
