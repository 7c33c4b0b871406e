# What the table says of each row, read once into the C arrays that dispatch and record look at.
#
# Relies on record (needs, named_inputs) and the table. No operation can run before; the package imports it at once.

from autograd_cy.array.dtype cimport N_DTYPES
from autograd_cy.engine.record cimport named_inputs, needs

from autograd_cy.ops import TABLE, is_identity, loop_id

# For a row's `dtypes`: the dtypes in which it computes as they are.
cdef dict DIRECT = {"float": (1, 1, 0, 0, 0, 0), "number": (1, 1, 1, 1, 1, 0), "integer": (0, 0, 1, 1, 1, 0),
                    "integral": (0, 0, 1, 1, 1, 1), "all": (1, 1, 1, 1, 1, 1)}


cdef int read_rule(int opcode, object row, int i, str name, dict places) except -1:
    """The derivative for input i: what it needs of inputs (by number), output (after them) and gradient (-1)."""
    cdef OpInfo* info = &OPS[opcode]
    for parameter in row.parameters(name):
        place = places.get(parameter, -1)
        if place >= 0:
            needs[opcode][i] |= 1 << <int> place
    if info.loop < 0:
        return 0
    info.dloop[i] = loop_id(f"{row.name}.d{name}")
    info.identity[i] = is_identity(row, name)
    for parameter in row.rule_inputs(name):
        info.rule_inputs[i][info.n_rule_inputs[i]] = place = places[parameter]
        info.n_rule_inputs[i] += 1
        if place >= 0:
            info.need[i] |= 1 << <int> place
    return 0


def _read_table():
    for opcode, row in enumerate(TABLE.values()):
        info = &OPS[<int> opcode]
        info.loop = -1
        named_inputs[<int> opcode] = len(row.inputs)
        if row.kind == "elementwise":
            info.n_inputs = len(row.inputs)
            info.n_attrs = len(row.attrs)
            info.loop = loop_id(row.name)
            info.bool_result = row.result == "bool"
            info.bool_first = row.types.get(row.inputs[0]) == "bool"
            info.careful = row.name in ("floor_divide", "remainder", "fmod", "pow")
            direct = DIRECT[row.dtypes]
            for i in range(N_DTYPES):
                info.direct[i] = direct[i]
            for i in range(info.n_inputs):
                info.dloop[i] = -1
        places = {name: i for i, name in enumerate((*row.inputs, "y"))} | {"g": -1}
        for i, name in enumerate(row.inputs):
            if name in row.rules:
                read_rule(opcode, row, i, name, places)


_read_table()
