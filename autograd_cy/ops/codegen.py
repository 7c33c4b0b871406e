"""From the table's elementwise rows to typed Cython loops.

Relies on symbols.py, formulas.py and the table. setup.py writes what `levelled_loops` and `integer_loops` return into the build directory
and compiles it. `python -m autograd_cy.ops.codegen [row]` prints the source.

For every elementwise row there is a loop of the forward formula and one for each derivative, for each dtype and for up to three
variants (all inputs vectors; the last or the first a repeated value). Repeated subexpressions are computed once, equal formulas
are one loop. Each loop is compiled at three levels, so its size matters: most variants are a call of `repeat`, and long formulas
are compiled for whole vectors only (kernels/padding.h). That made the loops less than half as large. Rare rows have lists of other rows'
loops instead (rare.py).
"""

from functools import cache

from .formulas import DTYPES, FLOATS, formula
from .rare import RARE, SPECIAL, Steps
from .symbols import Expression, Symbol
from .table import TABLE

_BY_KIND = {"float": DTYPES[:2], "number": DTYPES[:5], "integer": DTYPES[2:5], "integral": DTYPES[2:], "all": DTYPES}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_MATH = ("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan",
         "sigmoid", "logsigmoid", "softplus", "erf", "erfc", "erfinv", "normal_cdf", "lgamma", "digamma", "trigamma", "sqrt", "rsqrt",
         "abs", "sign", "floor", "ceil", "round", "trunc")
_MATH2 = ["atan2", "pow", "floor_divide", "remainder", "maximum", "minimum", "polygamma", "hypot", "copysign", "fmod", "nextafter"]
_CHEAP = {"abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "maximum", "minimum", "copysign"}     # an instruction or a few
_INTEGER_MATH = {"abs": 1, "sign": 1, "floor_divide": 2, "remainder": 2, "maximum": 2, "minimum": 2, "pow": 2, "fmod": 2,
                 "bitwise_left_shift": 2, "bitwise_right_shift": 2}
# Loops that have code of their own for a repeated value, as training and arithmetic with numbers use them all the time.
OWN_VARIANTS = ("add", "sub", "mul", "div", "maximum", "minimum", "mul.da", "div.da", "mse_loss.dx", "mse_loss.dt", "prelu")
# Functions of a number of steps that depends on the data: loops over them are not vectorised, so that there are no tiles.
_STEPWISE = {"floor_divide", "remainder", "fmod", "polygamma", "sin", "cos", "tan"}
# Of these, those that are vectorised where a test of the arguments says that all are small (kernels/vecmath.h).
_CIRCULAR, _DIVIDING = {"sin", "cos", "tan"}, {"floor_divide", "remainder", "fmod"}
# What other kernels call by these names (kernels/table.pxd), in a variant.
_SERVING = {("exp", 0): "exp", ("pow", 1): "power"}


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
        if len(self.inputs) == 1 or self.row.rare:
            return (0,)
        # What a row of one input saves has the shape of g: there LAST_SCALAR would be a tenth of the code for nothing.
        return (0, 1, 2) if len(self.inputs) == 2 and len(self.row.inputs) > 1 and not self.row.types else (0, 2)


def is_long(expression):
    """Whether the formula holds a function of many instructions: a polynomial, or a call into the C library."""
    if not isinstance(expression, Expression):
        return False
    return expression.name in {*_MATH, *_MATH2} - _CHEAP or any(map(is_long, expression.args))


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

    def __init__(self, ctype, suffix, fast=False):
        self.ctype, self.suffix, self.fast = ctype, suffix, fast
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
            return f"(<{self.ctype}> 0) if (r != r) & ({self.code(e.args[0])} == 0) else r"
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
        fast = "_fast" if self.fast and name in _CIRCULAR | _DIVIDING else ""
        return f"ag_{'floordiv' if name == 'floor_divide' else name}{fast}_{suffix}({', '.join(args)})"

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


_LETTERS = "abcdefh"


def _arguments(loop):
    """The formula with inputs a, b, ... and attributes k0, k1, ..., so that equal formulas of different rows are one loop."""
    names = {name: Symbol(letter) for name, letter in zip(loop.inputs, _LETTERS, strict=False)}
    names |= {name: Symbol(f"k{i}") for i, name in enumerate(loop.row.attrs)}

    def renamed(e):
        if isinstance(e, Symbol):
            return names[e.name]
        return Expression(e.name, *map(renamed, e.args)) if isinstance(e, Expression) else e

    return renamed(loop.expression)


def _has(e, names):
    return isinstance(e, Expression) and (e.name in names or any(_has(a, names) for a in e.args))


def _is_tiled(expression, suffix):
    """Whether the loop computes whole tiles only (kernels/padding.h)."""
    return suffix[0] == "f" and is_long(expression) and not _has(expression, _STEPWISE)


def _tests(expression, suffix):
    """What must be true of inputs for the fast functions: {test over `length` elements from `start`}; None if no test is known."""
    found, ctype = set(), {"f32": "float", "f64": "double"}[suffix]

    def place(symbol):
        return f"<{ctype}*> p[{_LETTERS.index(symbol.name) + 1}] + start"

    def search(e):
        if not isinstance(e, Expression):
            return True
        if e.name in _CIRCULAR:
            argument = e.args[0]
            if isinstance(argument, Expression) and argument.name == "mul" and isinstance(argument.args[1], float) and argument.args[1] < 4:
                argument = argument.args[0]                     # pi x: the limit has room for a factor of 4
            if not isinstance(argument, Symbol):
                return False
            found.add(f"ag_within_{suffix}(length, {place(argument)}, 0.25 * AG_TRIG_LIMIT_{suffix.upper()})")
        elif e.name in _DIVIDING:
            if not all(isinstance(a, Symbol) and a.name in _LETTERS for a in e.args):
                return False
            found.add(f"ag_small_quotients_{suffix}(length, {', '.join(map(place, e.args))})")
        return all(map(search, e.args))

    return sorted(found) if search(expression) and found else None


@cache
def _own_variants():
    return {(_arguments(loop), loop.output) for loop in loops() if loop.name in OWN_VARIANTS}


def _loop_source(loop, dtype, variant, name="LOOP", vectors="VECTORS"):
    """Source of one loop under the given name; `vectors` is the name of its variant ALL_VECTORS."""
    _, ctype, suffix = dtype
    expression = _arguments(loop)
    types = [loop.input_type(name, ctype) for name in loop.inputs]
    out_type = "uint8_t" if loop.output == "bool" else ctype
    bytes_ = sum(1 << k for k, t in enumerate((out_type, *types)) if t == "uint8_t")
    head = f"cdef void {name}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:"
    if variant and (expression, loop.output) not in _own_variants():
        place = len(loop.inputs) if variant == 1 else 1
        return f"{head}\n    repeat_{suffix}({vectors}, {place}, {len(loop.inputs)}, {bytes_}, n, p, attrs)"
    if expression.name == "lgamma" and suffix == "f32":
        return _LGAMMA.strip().format(name=name, number=loop.number)
    tests = _tests(expression, suffix) if suffix[0] == "f" and not variant and not bytes_ else None
    inputs, parameters, values = _LETTERS[:len(types)], [], []
    scalar = {0: None, 1: inputs[-1], 2: inputs[0]}[variant]
    start = " + start" if tests else ""
    for k, (t, letter) in enumerate(zip(types, inputs, strict=True), 1):
        parameters.append(f"{t} {letter}" if letter == scalar else f"{t}_r {letter}_")
        values.append(f"(<{t}*> p[{k}])[0]" if letter == scalar else f"<{t}*> p[{k}]{start}")
    for k in range(len(loop.row.attrs)):
        parameters.append(f"{ctype} k{k}")
        values.append(f"<{ctype}> attrs[{k}]")

    def body(name, fast=False):
        writer = _Writer(ctype, suffix, fast)
        writer.count(expression)
        result = writer.code(expression)
        # The pointers must be parameters: for those gcc believes __restrict, for variables it writes a second loop in case they overlap.
        lines = [f"cdef inline void {name}(Py_ssize_t n, {out_type}_r out_, {', '.join(parameters)}) noexcept nogil:"]
        lines += [f"    cdef {t} {letter}" for t, letter in zip(types, inputs, strict=True) if letter != scalar]
        lines += [f"    cdef {ctype} {temporary}" for temporary in writer.temporaries]
        lines += ["    cdef Py_ssize_t i", "    for i in range(n):"]
        lines += [f"        {letter} = {letter}_[i]" for letter in inputs if letter != scalar]
        lines += ["        " + line for line in writer.lines]
        return [*lines, f"        out_[i] = <{out_type}> ({result})", "", ""]

    def call(name, n):
        return f"{name}({n}, <{out_type}*> p[0]{start}, {', '.join(values)})"

    lines = body(f"{name}_body") + (body(f"{name}_fast", True) if tests else []) + [head]
    if not bytes_ and not variant and (tests or _is_tiled(expression, suffix)):
        lines += ["    cdef Py_ssize_t start, length"] if tests else []
        lines += [f"    if n & (AG_TILE_{suffix} - 1):", f"        ag_pad_{suffix}({name}, {len(types)}, n, p, attrs)", "        return"]
        if tests:                   # by blocks that stay in the first-level cache
            lines += ["    for start in range(0, n, 1024):", "        length = min(n - start, 1024)", f"        if {' and '.join(tests)}:",
                      f"            {call(f'{name}_fast', f'length & -AG_TILE_{suffix}')}", "        else:",
                      f"            {call(f'{name}_body', 'length')}"]
        else:
            lines.append(f"    {call(f'{name}_body', f'n & -AG_TILE_{suffix}')}")
    else:
        lines.append(f"    {call(f'{name}_body', 'n')}")
    return "\n".join(lines)


# lgamma of float32: of what is negative by the loop of float64.
_LGAMMA = """
cdef inline void {name}_fast(Py_ssize_t n, float_r out_, float_r a_) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out_[i] = ag_lgamma_fast_f32(a_[i])


cdef void {name}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:
    cdef double rest[512]
    cdef short at[512]
    cdef char* q[2]
    cdef Py_ssize_t start, length, count, i
    if n & (AG_TILE_f32 - 1):
        ag_pad_f32({name}, 1, n, p, attrs)
        return
    q[0] = q[1] = <char*> rest
    for start in range(0, n, 512):
        length = min(n - start, 512)
        count = ag_set_aside(length, <float*> p[1] + start, rest, at)
        {name}_fast(length & -AG_TILE_f32, <float*> p[0] + start, <float*> p[1] + start)
        if count:
            K.loops[{number}][1][0](count, q, NULL)
            for i in range(count):
                (<float*> p[0])[start + at[i]] = <float> rest[i]
"""


def _declarations():
    lines = ["from libc.stdint cimport int64_t, int32_t, uint8_t", "from libc.math cimport INFINITY",
             "from libc.string cimport memset", "",
             "from autograd_cy.kernels.table cimport Chain, K, Loop", "", "cdef extern from *:"]
    for ctype in ("float", "double", "int64_t", "int32_t", "uint8_t"):
        lines.append(f'    ctypedef {ctype}* {ctype}_r "{ctype}* __restrict"')
    lines += ["", 'cdef extern from "padding.h" nogil:', "    const Py_ssize_t AG_TILE_f32, AG_TILE_f64"]
    lines += [f"    void ag_pad_{suffix}(Loop loop, int inputs, Py_ssize_t n, char** p, const double* attrs) noexcept"
              for _, _, suffix in FLOATS]
    lines += ["", 'cdef extern from "vecmath.h" nogil:']
    for _, ctype, suffix in FLOATS:
        lines += [f"    {ctype} ag_{f}_{suffix}({ctype}) noexcept" for f in _MATH]
        lines += [f"    {ctype} ag_{'floordiv' if f == 'floor_divide' else f}_{suffix}({ctype}, {ctype}) noexcept" for f in _MATH2]
        lines += [f"    {ctype} ag_{f}_{suffix}({ctype}) noexcept" for f in (f"{f}_fast" for f in sorted(_CIRCULAR))]
        lines += [f"    {ctype} ag_{f}_fast_{suffix}({ctype}, {ctype}) noexcept" for f in ("floordiv", "fmod", "remainder")]
        lines += [f"    const {ctype} AG_TRIG_LIMIT_{suffix.upper()}",
                  f"    int ag_within_{suffix}(Py_ssize_t n, const {ctype}* x, {ctype} limit) noexcept",
                  f"    int ag_small_quotients_{suffix}(Py_ssize_t n, const {ctype}* a, const {ctype}* b) noexcept"]
    lines += ["    float ag_lgamma_fast_f32(float) noexcept",
              "    Py_ssize_t ag_set_aside(Py_ssize_t n, const float* x, double* rest, short* at) noexcept"]
    for _, ctype, suffix in DTYPES[2:5]:
        for f, arity in _INTEGER_MATH.items():
            f = "floordiv" if f == "floor_divide" else f
            lines.append(f"    {ctype} ag_{f}_{suffix}({', '.join([ctype] * arity)}) noexcept")
    return "\n".join(lines)


# What most loops do instead of having variants, which were a fifth of all code: the loop of vectors runs over blocks, with a
# block of the repeated value. 256 values are 1 or 2 kB, which stay in the first-level cache. `bytes` has a bit for each operand
# that consists of bytes (0 is the output).
_REPEAT = '''
cdef void repeat_{suffix}(Loop loop, int place, int count, int bytes, Py_ssize_t n, char** p, const double* attrs) noexcept nogil:
    cdef {ctype} block[256]
    cdef char* q[8]
    cdef Py_ssize_t start = 0, i, length = min(n, 256)
    cdef int k
    if bytes >> place & 1:
        memset(block, p[place][0], length)
    else:
        for i in range(length):
            block[i] = (<{ctype}*> p[place])[0]
    while start < n:
        length = min(n - start, 256)
        for k in range(count + 1):
            q[k] = p[k] + (start if bytes >> k & 1 else start * <Py_ssize_t> sizeof({ctype}))
        q[place] = <char*> block
        loop(length, q, attrs)
        start += length
'''


def _module(dtypes, wanted, head="", *more):
    """Cython source of the loops of these dtypes with wanted(loop, dtype); loops of equal source are one function."""
    register, known, steps, parts = [], {}, Steps(_arguments, _LETTERS), []
    for loop in loops():
        for dtype in loop.dtypes:
            if dtype not in dtypes or not wanted(loop, dtype):
                continue
            vectors = None
            for variant in loop.variants:
                write = steps.loop if loop.row.rare else _loop_source
                source = write(loop, dtype, variant, vectors=vectors)
                if source not in known:
                    known[source] = f"{loop.name.replace('.', '_')}_{dtype[2]}_{variant}"
                    parts.append(write(loop, dtype, variant, known[source], vectors))
                vectors = vectors or known[source]
                register.append(f"K.loops[{loop.number}][{DTYPES.index(dtype)}][{variant}] = {known[source]}")
                if (loop.name, variant) in _SERVING and dtype in FLOATS:
                    register.append(f"K.{_SERVING[loop.name, variant]}[{FLOATS.index(dtype)}] = {known[source]}")
    return "\n\n\n".join([
        "# Generated from autograd_cy/ops/table by autograd_cy/ops/codegen.py: do not edit.\n", _declarations(),
        steps.filled(head).strip(),
        *(_REPEAT.strip().format(ctype=ctype, suffix=suffix) for _, ctype, suffix in dtypes), *parts, "\n".join(register), *more]) + "\n"


def _divides(loop, dtype):
    """Whether it is a loop of integers with a division or a power, which no level has vectors for."""
    return dtype not in FLOATS and _has(_arguments(loop), _DIVIDING | {"pow"})


def levelled_loops(long_only=False):
    """Cython source of the loops that are compiled once per instruction-set level.

    Vectors of 512 bits make long formulas 1.4 to 1.8 times as fast as vectors of 256. The others wait for memory, so v4 has the long
    ones only, and no integers. Those gain much from v3, as SSE2 knows no maximum, no comparison and no product of 64 bits.
    """
    from .chains import source
    if long_only:
        return _module(FLOATS, lambda loop, dtype: not loop.row.rare and is_long(_arguments(loop)), "", source())
    return _module(DTYPES, lambda loop, dtype: not loop.row.rare and not _divides(loop, dtype), SPECIAL, source())


def integer_loops():
    """Cython source of the loops of rare rows, and of those of integers and bools that are compiled for every processor alike."""
    return _module(DTYPES, lambda loop, dtype: loop.row.rare or _divides(loop, dtype), RARE)


if __name__ == "__main__":
    import sys
    wanted = sys.argv[1:] or list(TABLE)
    for loop in loops():
        if loop.row.name in wanted:
            for dtype in loop.dtypes:
                write = Steps(_arguments, _LETTERS).loop if loop.row.rare else _loop_source
                print(write(loop, dtype, 0, loop.name.replace('.', '_')), end="\n\n")
