"""From the table's elementwise rows to Cython source of their public functions.

Relies on the table. setup.py writes what `function_module` returns into the build directory and compiles it; stubs.py asks
`parameters` how an attribute is written.
"""

from .table import TABLE

_FUNCTIONS_HEAD = """# Generated from autograd_cy/ops/table by autograd_cy/ops/wrappers.py: do not edit.

from cpython.object cimport PyObject

from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.dispatch cimport binary, combined, elementwise, unary, unary_with
from autograd_cy.engine.inplace cimport inplace, inplace_with
from autograd_cy.engine.node cimport NO_REDUCTION
from autograd_cy.engine.object cimport own

from autograd_cy.engine.tensor import OPCODES


cdef tuple named(str name, str signature, str doc, object function, object in_place):
    for function_, name_, doc_ in ((function, name, doc), (in_place, name + "_", "In place: " + doc)):
        function_.__name__ = function_.__qualname__ = name_
        function_.__doc__ = f"{name_}{signature}\\n{doc_}"
    return function, in_place


# One function serves all rows that have neither attributes nor names of their own: each copy would take 1 kB.

def _unary(str name, str doc):
    cdef int opcode = OPCODES[name]
    cdef str place = name + "_"

    def function(input):
        return own(unary(opcode, <PyObject*> input))

    def in_place(input):
        cdef PyObject* args[1]
        need_tensor(input, place)
        args[0] = <PyObject*> input
        return own(inplace_with(opcode, 1, args, NULL))

    return named(name, "(input)", doc, function, in_place)


def _binary(str name, str doc):
    cdef int opcode = OPCODES[name]
    cdef str place = name + "_"

    def function(input, other):
        return combined(name, binary(opcode, <PyObject*> input, <PyObject*> other))

    def in_place(input, other):
        need_tensor(input, place)
        return combined(place, inplace(opcode, <PyObject*> input, <PyObject*> other))

    return named(name, "(input, other)", doc + "; a is `input`, b is `other`.", function, in_place)
"""

_UNARY = '''
cdef int {NAME} = OPCODES["{name}"]


def {name}(input{signature}):
    """{doc}"""
{attrs}{inplace}    return own({call})


def {name}_(input{plain_signature}):
    """In place: {doc}"""
    cdef PyObject* args[1]
    need_tensor(input, "{name}_")
    args[0] = <PyObject*> input
{attrs}    return own(inplace_with({NAME}, 1, args, {attrs_pointer}))
'''

# A text that a loop goes through: a call for each row would take 300 bytes, a tuple 60.
_SHARED = """
for make, text in ((_unary, {unary!r}), (_binary, {binary!r})):
    for line in text.split("\\n"):
        name, _, doc = line.partition("\\t")
        globals()[name], globals()[name + "_"] = make(name, doc)
"""

_SEVERAL = '''
cdef int {NAME} = OPCODES["{name}"]


def {name}({inputs}{signature}):
    """{doc}"""
    cdef PyObject* args[{n}]
{attrs}    {pointers}
    return combined("{name}", elementwise({NAME}, {n}, args, {attrs_pointer}, NO_REDUCTION))


def {name}_({inputs}{signature}):
    """In place: {doc}"""
    cdef PyObject* args[{n}]
    need_tensor({first}, "{name}_")
{attrs}    {pointers}
    return combined("{name}_", inplace_with({NAME}, {n}, args, {attrs_pointer}))
'''


def _several(row, values):
    """A function whose parameters are the row's inputs, and its attributes by keyword."""
    n = len(row.inputs)
    signature = ", *" + values["signature"] if row.attrs else ""
    return _SEVERAL.format(**values | {
        "inputs": ", ".join(row.inputs), "first": row.inputs[0], "n": n, "signature": signature,
        "pointers": "; ".join(f"args[{k}] = <PyObject*> {i}" for k, i in enumerate(row.inputs))})


def parameters(row):
    """The attributes of a row as parameters: [(name, text of the default or None)]."""
    defaults = [None] * (len(row.attrs) - len(row.defaults)) + [repr(float(value)) for value in row.defaults]
    return list(zip(row.attrs, defaults, strict=True))


def _attributes(row):
    """The parts of a function with attributes."""
    values = "; ".join(f"attrs[{k}] = {a}" for k, a in enumerate(row.attrs))
    return {"signature": "".join(f", {a}" if d is None else f", {a}={d}" for a, d in parameters(row)),
            "attrs": f"    cdef double attrs[{len(row.attrs)}]\n    {values}\n", "attrs_pointer": "attrs"}


def function_module():
    """Cython source of a function for every public elementwise row, and of its in-place form."""
    parts, shared = [_FUNCTIONS_HEAD], {"unary": [], "binary": []}
    for row in TABLE.values():
        if row.kind != "elementwise" or not (row.public or row.rare):
            continue
        doc = row.doc[0].upper() + row.doc[1:] + (f" ({row.special})" if row.special else "")
        values = {"name": row.name, "NAME": f"OP_{row.name.upper()}", "doc": doc, "attrs": "", "signature": "",
                  "attrs_pointer": "NULL", "inplace": ""}
        if row.attrs:
            values |= _attributes(row)
        if len(row.inputs) == 1 and not row.attrs and not row.inplace:
            shared["unary"].append((row.name, doc))
        elif len(row.inputs) == 1:
            values["call"] = f"unary({values['NAME']}, <PyObject*> input)"
            values["plain_signature"] = values["signature"]
            if row.attrs:
                values["call"] = f"unary_with({values['NAME']}, <PyObject*> input, attrs)"
            if row.inplace:
                values["signature"] += ", inplace=False"
                arguments = "".join(f", {a}" for a in row.attrs)
                values["inplace"] = f"    if inplace:\n        return {row.name}_(input{arguments})\n"
            parts.append(_UNARY.format(**values))
        elif row.inputs != ("a", "b"):
            parts.append(_several(row, values))
        else:
            shared["binary"].append((row.name, doc))
    parts.append(_SHARED.format(**{kind: "\n".join(f"{name}\t{doc}" for name, doc in rows) for kind, rows in shared.items()}))
    return "\n".join(parts)
