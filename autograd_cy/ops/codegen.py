"""From the table's elementwise rows to typed Cython loops.

Relies on symbols.py and the table. setup.py writes what `float_loops`, `integer_loops` and `function_module` return into the
build directory and compiles it. `python -m autograd_cy.ops.codegen [row]` prints the source.

For every elementwise row there is a loop of the forward formula and one for each derivative, for each dtype and for up to three
variants (all inputs vectors; the last or the first a repeated value). Repeated subexpressions are computed once.
"""

from .symbols import Expression, Symbol
from .table import TABLE

# code, C type, suffix of the vecmath functions
DTYPES = (("float32", "float", "f32"), ("float64", "double", "f64"), ("int64", "int64_t", "i64"), ("int32", "int32_t", "i32"),
          ("uint8", "uint8_t", "u8"), ("bool", "uint8_t", "b8"))
FLOATS = DTYPES[:2]
_BY_KIND = {"float": DTYPES[:2], "number": DTYPES[:5], "integer": DTYPES[2:5], "integral": DTYPES[2:], "all": DTYPES}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_MATH = ("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan",
         "sigmoid", "logsigmoid", "softplus", "erf", "erfc", "erfinv", "lgamma", "digamma", "sqrt", "rsqrt",
         "abs", "sign", "floor", "ceil", "round", "trunc")
_MATH2 = ["atan2", "pow", "floor_divide", "remainder", "maximum", "minimum", "polygamma", "hypot", "copysign", "fmod", "nextafter"]
_CHEAP = {"abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "maximum", "minimum", "copysign"}     # an instruction or a few
_INTEGER_MATH = {"abs": 1, "sign": 1, "floor_divide": 2, "remainder": 2, "maximum": 2, "minimum": 2, "pow": 2, "fmod": 2,
                 "bitwise_left_shift": 2, "bitwise_right_shift": 2}


class Loop:
    """One loop to generate: the id by which it is found, its name, and what it computes."""

    def __init__(self, number, name, row, output, inputs, expression, dtypes):
        self.number, self.name, self.row, self.output, self.inputs, self.expression, self.dtypes = (
            number, name, row, output, inputs, expression, dtypes)

    def input_type(self, name, ctype):
        return "uint8_t" if self.row.types.get(name) == "bool" else ctype

    @property
    def variants(self):
        """ALL_VECTORS, and where an input may well be one repeated value LAST_SCALAR or FIRST_SCALAR (kernels/table.pxd)."""
        if len(self.inputs) == 1:
            return (0,)
        # What a row of one input saves has the shape of g: there LAST_SCALAR would be a tenth of the code for nothing.
        return (0, 1, 2) if len(self.inputs) == 2 and len(self.row.inputs) > 1 and not self.row.types else (0, 2)


def needs_mask(expression, names):
    """Whether g = 0 could meet an infinite factor: g is multiplied or divided by something that depends on the data."""
    if not isinstance(expression, Expression) or not expression.args:
        return False
    if expression.name in ("mul", "div") and any(depends(a, names) for a in expression.args):
        return True
    return any(needs_mask(a, names) for a in expression.args)


def is_long(expression):
    """Whether the formula holds a function of many instructions: a polynomial, or a call into the C library."""
    if not isinstance(expression, Expression):
        return False
    return expression.name in {*_MATH, *_MATH2} - _CHEAP or any(map(is_long, expression.args))


def depends(expression, names):
    if isinstance(expression, Symbol):
        return expression.name in names
    return isinstance(expression, Expression) and any(depends(a, names) for a in expression.args)


def is_masked(row, name):
    """Whether the derivative for input `name` is forced to 0 where g is 0 and the formula gives NaN."""
    expression = row.rules[name](*map(Symbol, row.parameters(name)))
    return needs_mask(expression, set(row.rule_inputs(name)) - {"g"})


def formula(row, name):
    """(inputs, expression) of the forward loop (name None) or of the derivative for input `name`."""
    if name is None:
        return row.inputs, row.forward(*map(Symbol, (*row.inputs, *row.attrs)))
    expression = row.rules[name](*map(Symbol, row.parameters(name)))
    if is_masked(row, name):
        expression = Expression("masked", Symbol("g"), expression)
    return row.rule_inputs(name), expression


def loops():
    """All loops in the order of their ids."""
    result = []
    for row in TABLE.values():
        for loop_name, name in row.loops:
            output, dtypes = (row.result, _BY_KIND[row.dtypes]) if name is None else ("same", FLOATS)
            result.append(Loop(len(result), loop_name, row, output, *formula(row, name), dtypes))
    return result


class _Writer:
    """Statements for one expression in one dtype."""

    def __init__(self, ctype, suffix):
        self.ctype, self.suffix = ctype, suffix
        self.uses = {}
        self.names = {}
        self.lines = []
        self.temporaries = []

    def count(self, e):
        if isinstance(e, Expression) and e.args:
            self.uses[e] = self.uses.get(e, 0) + 1
            if self.uses[e] == 1:
                for a in e.args:
                    self.count(a)

    def code(self, e):
        if not isinstance(e, Expression):
            if self.suffix[0] == "f":
                value = repr(float(e)) if abs(e) != float("inf") else "-INFINITY" if e < 0 else "INFINITY"
                return f"(<{self.ctype}> {value})"
            return f"(<{self.ctype}> {int(e)})"
        if isinstance(e, Symbol):
            return e.name
        if e in self.names:
            return self.names[e]
        text = self.operation(e)
        if self.uses[e] > 1 and e.name not in ("lt", "le", "gt", "ge", "eq", "ne", "logical_and", "logical_or"):
            name = f"t{len(self.temporaries)}"
            self.temporaries.append(name)
            self.lines.append(f"{name} = {text}")
            self.names[e] = name
            return name
        return text

    def operation(self, e):
        name = e.name
        if name == "masked":
            value = self.code(e.args[1])
            self.temporaries.append("r")
            self.lines.append(f"r = {value}")
            return f"(<{self.ctype}> 0) if (r != r) & (g == 0) else r"
        args = [self.code(a) for a in e.args]
        if name in ("add", "mul") and self.suffix == "b8":
            return f"({args[0]} {'|' if name == 'add' else '&'} {args[1]})"
        if name in _INFIX:
            return f"({args[0]} {_INFIX[name]} {args[1]})"
        if name == "neg":
            return f"(-{args[0]})"
        if name == "where":
            return f"({args[1]} if {args[0]} else {args[2]})"
        if name in ("logical_and", "logical_or", "logical_xor"):
            sign = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}[name]
            return f"({self.truth(e.args[0], args[0])} {sign} {self.truth(e.args[1], args[1])})"
        if name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            return f"({args[0]} {({'and': '&', 'or': '|', 'xor': '^'})[name[8:]]} {args[1]})"
        if name == "bitwise_not":
            return f"({args[0]} ^ 1)" if self.suffix == "b8" else f"(~{args[0]})"
        if name == "logical_not":
            return f"({args[0]} == 0)"
        if name in ("isnan", "isinf", "isfinite", "signbit"):
            return self.classification(name, args[0])
        if self.suffix[0] != "f" and name in ("floor", "ceil", "round", "trunc"):
            return args[0]
        suffix = "u8" if self.suffix == "b8" else self.suffix
        return f"ag_{'floordiv' if name == 'floor_divide' else name}_{suffix}({', '.join(args)})"

    def classification(self, name, x):
        if name == "signbit":
            return f"(ag_copysign_{self.suffix}(1, {x}) < 0)" if self.suffix[0] == "f" else "0" if self.suffix == "b8" else f"({x} < 0)"
        if self.suffix[0] != "f":
            return "1" if name == "isfinite" else "0"
        if name == "isnan":
            return f"({x} != {x})"
        magnitude = f"ag_abs_{self.suffix}({x})"
        return f"({magnitude} == INFINITY)" if name == "isinf" else f"({magnitude} < INFINITY)"

    @staticmethod
    def truth(e, text):
        boolean = isinstance(e, Expression) and e.name in ("lt", "le", "gt", "ge", "eq", "ne", "logical_and", "logical_or")
        return text if boolean else f"({text} != 0)"


def _loop_source(loop, dtype, variant):
    name, ctype, suffix = dtype
    function = f"{loop.name.replace('.', '_')}_{suffix}_{variant}"
    if variant and suffix[0] == "f" and is_long(loop.expression):
        vectors = function[:-1] + "0"
        place = len(loop.inputs) if variant == 1 else 1
        return function, "\n".join([
            f"cdef void {function}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:",
            f"    repeat_{suffix}({vectors}, {place}, {len(loop.inputs)}, n, p, attrs)"])
    out_type = "uint8_t" if loop.output == "bool" else ctype
    writer = _Writer(ctype, suffix)
    writer.count(loop.expression)
    result = writer.code(loop.expression)
    scalar = {0: None, 1: loop.inputs[-1], 2: loop.inputs[0]}[variant]
    head = [f"cdef void {function}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:",
            f"    cdef {out_type}_r out_ = <{out_type}*> p[0]"]
    body = []
    for k, input_name in enumerate(loop.inputs, 1):
        t = loop.input_type(input_name, ctype)
        if input_name == scalar:
            head.append(f"    cdef {t} {input_name} = (<{t}*> p[{k}])[0]")
        else:
            head.append(f"    cdef {t}_r {input_name}_ = <{t}*> p[{k}]")
            head.append(f"    cdef {t} {input_name}")
            body.append(f"{input_name} = {input_name}_[i]")
    for k, attr in enumerate(loop.row.attrs):
        head.append(f"    cdef {ctype} {attr} = <{ctype}> attrs[{k}]")
    for temporary in writer.temporaries:
        head.append(f"    cdef {ctype} {temporary}")
    head.append("    cdef Py_ssize_t i")
    head.append("    for i in range(n):")
    body += [*writer.lines, f"out_[i] = <{out_type}> ({result})"]
    return function, "\n".join([*head, *("        " + line for line in body)])


def _declarations():
    lines = ["from libc.stdint cimport int64_t, int32_t, uint8_t", "from libc.math cimport INFINITY", "",
             "from autograd_cy.kernels.table cimport Chain, K, Loop", "", "cdef extern from *:"]
    for ctype in ("float", "double", "int64_t", "int32_t", "uint8_t"):
        lines.append(f'    ctypedef {ctype}* {ctype}_r "{ctype}* __restrict"')
    lines += ["", 'cdef extern from "vecmath.h" nogil:']
    for _, ctype, suffix in FLOATS:
        lines += [f"    {ctype} ag_{f}_{suffix}({ctype}) noexcept" for f in _MATH]
        lines += [f"    {ctype} ag_{'floordiv' if f == 'floor_divide' else f}_{suffix}({ctype}, {ctype}) noexcept" for f in _MATH2]
    for _, ctype, suffix in DTYPES[2:5]:
        for f, arity in _INTEGER_MATH.items():
            f = "floordiv" if f == "floor_divide" else f
            lines.append(f"    {ctype} ag_{f}_{suffix}({', '.join([ctype] * arity)}) noexcept")
    return "\n".join(lines)


# What a long formula does instead of having variants, which were a fifth of all code: its loop of vectors runs over blocks,
# with a block of the repeated value. 256 values are 1 or 2 kB, which stay in the first-level cache.
_REPEAT = '''
cdef void repeat_{suffix}(Loop loop, int place, int n_inputs, Py_ssize_t n, char** p, const double* attrs) noexcept nogil:
    cdef {ctype} block[256]
    cdef char* q[8]
    cdef {ctype} value = (<{ctype}*> p[place])[0]
    cdef Py_ssize_t start = 0, i, length
    cdef int k
    for i in range(min(n, 256)):
        block[i] = value
    while start < n:
        length = min(n - start, 256)
        for k in range(n_inputs + 1):
            q[k] = p[k] + start * <Py_ssize_t> sizeof({ctype})
        q[place] = <char*> block
        loop(length, q, attrs)
        start += length
'''


def _module(dtypes, *more):
    """Cython source of all loops of these dtypes."""
    parts = ["# Generated from autograd_cy/ops/table by autograd_cy/ops/codegen.py: do not edit.\n", _declarations()]
    parts += [_REPEAT.strip().format(ctype=ctype, suffix=suffix) for _, ctype, suffix in dtypes if suffix[0] == "f"]
    register = []
    for loop in loops():
        for dtype in loop.dtypes:
            if dtype not in dtypes:
                continue
            for variant in loop.variants:
                function, source = _loop_source(loop, dtype, variant)
                parts.append(source)
                register.append(f"K.loops[{loop.number}][{DTYPES.index(dtype)}][{variant}] = {function}")
    parts += ["\n".join(register), *more]
    return "\n\n\n".join(parts) + "\n"


def float_loops():
    """Cython source of the loops of floating point, which are compiled once per instruction-set level."""
    from .chains import source
    return _module(FLOATS, source())


def integer_loops():
    """Cython source of the loops of integers and bools, which are compiled for every processor alike: they are rare and small."""
    return _module(DTYPES[len(FLOATS):])


# ---- the public functions of elementwise rows

_FUNCTIONS_HEAD = """# Generated from autograd_cy/ops/table by autograd_cy/ops/codegen.py: do not edit.

from cpython.object cimport PyObject

from autograd_cy.engine.dispatch cimport binary, elementwise, inplace, inplace_with, unary, unary_with
from autograd_cy.engine.node cimport NO_REDUCTION
from autograd_cy.engine.shape cimport own
from autograd_cy.engine.tensor cimport is_tensor

from autograd_cy.engine.tensor import OPCODES


cdef object combined(str name, object result):
    if result is NotImplemented:
        raise TypeError(f"{name}: expected tensors (or a tensor and a number)")
    return result


cdef int need_tensor(object x, str name) except -1:
    if not is_tensor(<PyObject*> x):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    return 0


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
        return combined(name, own(binary(opcode, <PyObject*> input, <PyObject*> other)))

    def in_place(input, other):
        need_tensor(input, place)
        return combined(place, own(inplace(opcode, <PyObject*> input, <PyObject*> other)))

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

_SHARED = '''
{name}, {name}_ = {kind}("{name}", """{doc}""")
'''

_SEVERAL = '''
cdef int {NAME} = OPCODES["{name}"]


def {name}({inputs}{signature}):
    """{doc}"""
    cdef PyObject* args[{n}]
{attrs}    {pointers}
    return combined("{name}", own(elementwise({NAME}, {n}, args, {attrs_pointer}, NO_REDUCTION)))


def {name}_({inputs}{signature}):
    """In place: {doc}"""
    cdef PyObject* args[{n}]
    need_tensor({first}, "{name}_")
{attrs}    {pointers}
    return combined("{name}_", own(inplace_with({NAME}, {n}, args, {attrs_pointer})))
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
    defaults = [None] * (len(row.attrs) - len(row.defaults)) + [f"{value:g}" for value in row.defaults]
    return list(zip(row.attrs, defaults, strict=True))


def function_module():
    """Cython source of a function for every public elementwise row, and of its in-place form."""
    parts = [_FUNCTIONS_HEAD]
    for row in TABLE.values():
        if row.kind != "elementwise" or not row.public:
            continue
        doc = row.doc[0].upper() + row.doc[1:] + (f" ({row.special})" if row.special else "")
        values = {"name": row.name, "NAME": f"OP_{row.name.upper()}", "doc": doc, "attrs": "", "signature": "",
                  "attrs_pointer": "NULL", "inplace": ""}
        if row.attrs:
            values["signature"] = "".join(f", {a}" if d is None else f", {a}={d}" for a, d in parameters(row))
            values["attrs"] = f"    attrs = ({', '.join(f'float({a})' for a in row.attrs)},)\n"
            values["attrs_pointer"] = "<PyObject*> attrs"
        if len(row.inputs) == 1 and not row.attrs and not row.inplace:
            parts.append(_SHARED.format(kind="_unary", **values))
        elif len(row.inputs) == 1:
            values["call"] = f"unary({values['NAME']}, <PyObject*> input)"
            values["plain_signature"] = values["signature"]
            if row.attrs:
                values["attrs"] = f'    need_tensor(input, "{row.name}")\n' + values["attrs"]
                values["call"] = f"unary_with({values['NAME']}, <PyObject*> input, <PyObject*> attrs)"
            if row.inplace:
                values["signature"] += ", inplace=False"
                arguments = "".join(f", {a}" for a in row.attrs)
                values["inplace"] = f"    if inplace:\n        return {row.name}_(input{arguments})\n"
            parts.append(_UNARY.format(**values))
        elif row.inputs != ("a", "b"):
            parts.append(_several(row, values))
        else:
            parts.append(_SHARED.format(kind="_binary", **values))
    return "\n".join(parts)


if __name__ == "__main__":
    import sys
    wanted = sys.argv[1:] or list(TABLE)
    for loop in loops():
        if loop.row.name in wanted:
            for dtype in loop.dtypes:
                print(_loop_source(loop, dtype, 0)[1], end="\n\n")
