"""The loops of rare rows (ops/table/special.py), which are lists of other rows' loops, and what these call: series.

Relies on symbols.py and formulas.py, and on kernels/special.h and special_gamma.h. codegen.py puts it into the modules of loops.
"""

from .formulas import DTYPES
from .symbols import Expression, Symbol
from .table import TABLE

# Special functions of one number by series, which K.special has under these numbers (kernels/special.h).
SERIES = ("i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "scaled_modified_bessel_k0",
          "modified_bessel_k1", "scaled_modified_bessel_k1", "airy_ai", "airy_derivative", "erfcx", "log_ndtr", "ndtri")
# Functions of two numbers, under these numbers in of_two (RARE, below; kernels/special_gamma.h).
OF_TWO = ("zeta", "gammainc", "gammaincc")


class Steps:
    """What the loops of rare rows do, one loop of another row after the other, and the numbers that occur in them.

    A step is a loop's id or one of FILL and MASK, the place that is written and those that are read. The first places are the inputs,
    place -1 is the output; what is read beyond PLACES is a number, which a loop of two inputs takes as a repeated value.
    """

    FILL, MASK, PLACES = -1, -2, 10

    def __init__(self, arguments, letters):
        self.arguments, self.letters = arguments, letters       # of codegen.py: a loop's formula, and the names of inputs in it
        self.steps, self.numbers, self.known = [], [], {}

    def add(self, loop, expression):
        """(the first step, how many): of a formula of the loop's inputs."""
        from . import LOOP_IDS
        first, uses, free = len(self.steps), {}, list(range(self.PLACES - 1, len(loop.inputs) - 1, -1))
        places = {letter: k for k, letter in enumerate(self.letters[:len(loop.inputs)])}

        def count(e):
            uses[e] = uses.get(e, 0) + 1
            if uses[e] == 1 and isinstance(e, Expression):
                for a in e.args:
                    count(a)

        def place(e, out=None):
            if isinstance(e, Symbol):
                return places[e.name]
            if e not in places:
                if isinstance(e, Expression):
                    repeated = self.repeated(e)
                    for a in sorted(e.args, key=lambda a: not isinstance(a, Expression)):       # numbers last: they take a place each
                        if a is not repeated:
                            place(a)
                    read = [self.PLACES + self.number(a) if a is repeated else place(a) for a in e.args]
                    step = self.MASK if e.name == "masked" else LOOP_IDS[e.name]
                else:
                    step, read = self.FILL, [self.number(e)]
                places[e] = free.pop() if out is None else out
                self.steps.append((step, places[e], *read, *[0] * (3 - len(read))))
                for a in e.args if isinstance(e, Expression) else ():
                    uses[a] -= 1
                    if not uses[a] and a in places and not isinstance(a, Symbol):
                        free.append(places[a])
            return places[e]

        count(expression)
        place(expression, -1)
        return first, len(self.steps) - first

    def number(self, value):
        """Where a number stands among all."""
        if value not in self.numbers:
            self.numbers.append(value)
        return self.numbers.index(value)

    @staticmethod
    def repeated(e):
        """The one argument of two that is a number, if the loop has a variant for it."""
        row, numbers = TABLE.get(e.name), [a for a in e.args if not isinstance(a, (Expression, Symbol))]
        return numbers[0] if row and len(row.inputs) == 2 == len(e.args) and len(numbers) == 1 and not row.rare and not row.types else None

    def loop(self, loop, dtype, variant, name="LOOP", vectors=None):
        """Source of a loop of vectors under the given name."""
        code = DTYPES.index(dtype)
        head = f"cdef void {name}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:\n"
        expression = self.arguments(loop)
        if expression.name in SERIES and loop.name == expression.name:
            return f"{head}    K.special({SERIES.index(expression.name)}, {code}, n, p)"
        if expression.name in OF_TWO and loop.name == expression.name:
            return f"{head}    of_two({OF_TWO.index(expression.name)}, {code}, n, p)"
        if expression not in self.known:
            self.known[expression] = self.add(loop, expression)
        first, count = self.known[expression]
        return f"{head}    run_steps({first}, {count}, {len(loop.inputs)}, {code}, n, p)"

    def filled(self, text):
        """Source with the steps (as C: a table of them and one of numbers) in their places."""
        steps = ", ".join(f"{{{', '.join(map(str, step))}}}" for step in self.steps)
        numbers = ", ".join(repr(float(n)) if abs(n) != float("inf") else "-INFINITY" if n < 0 else "INFINITY" for n in self.numbers)
        tables = f"static const short ag_steps[][5] = {{{steps}}};\n    static const double ag_numbers[] = {{{numbers}}};"
        from . import LOOP_IDS
        fields = {"tables": tables, "FILL": self.FILL, "PLACES": self.PLACES,
                  **{name: LOOP_IDS[name] for name in ("exp", "log", "sin", "cos", "expm1", "erfcx")}}
        for name, value in fields.items():
            text = text.replace("{" + name + "}", str(value))
        return text


# What rare loops need beside vecmath.h.
RARE = '''
cdef extern from *:
    """
    #define AG_WANTS_SERIES
    #include "special_gamma.h"
    {tables}
    """
    const char ag_all_series
    const short ag_steps[1][5]
    const double ag_numbers[1]

cdef extern from "special_gamma.h" nogil:
    ctypedef struct AG_Series:
        pass
    ctypedef struct AG_Loops:
        Loop exp, log, expm1, erfcx
    void ag_of_two_f32(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, char** p) noexcept
    void ag_of_two_f64(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, char** p) noexcept

K.series = &ag_all_series


cdef void of_two(int which, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    cdef AG_Loops loops
    loops.exp, loops.log = K.loops[{exp}][1][0], K.loops[{log}][1][0]
    loops.expm1, loops.erfcx = K.loops[{expm1}][1][0], K.loops[{erfcx}][1][0]
    if dtype == 0:
        ag_of_two_f32(<const AG_Series*> K.series, &loops, which, n, p)
    else:
        ag_of_two_f64(<const AG_Series*> K.series, &loops, which, n, p)


cdef inline double masked(double g, double r) noexcept nogil:
    """A gradient of 0 stays 0."""
    return 0 if g == 0 and r != r else r


cdef void run_steps(int first, int count, int inputs, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    cdef double blocks[{PLACES}][128]
    cdef char* at[{PLACES}]
    cdef char* q[4]
    cdef Py_ssize_t start = 0, length, size = 8 if dtype else 4, i
    cdef const short* step
    cdef double element
    cdef int k, j, variant
    for k in range({PLACES}):
        at[k] = <char*> blocks[k]
    while start < n:
        length = min(n - start, <Py_ssize_t> 128)
        for k in range(inputs):
            at[k] = p[k + 1] + start * size
        for k in range(first, first + count):
            step = ag_steps[k]
            q[0] = p[0] + start * size if step[1] < 0 else at[step[1]]
            if step[0] == {FILL}:                # step[2] is a number's, not a place
                for i in range(length):
                    if dtype:
                        (<double*> q[0])[i] = ag_numbers[step[2]]
                    else:
                        (<float*> q[0])[i] = <float> ag_numbers[step[2]]
                continue
            variant = 0
            for j in range(1, 4):
                if step[j + 1] < {PLACES}:
                    q[j] = at[step[j + 1]]
                    continue
                variant = 1 if j == 2 else 2
                q[j] = <char*> &element
                if dtype:
                    element = ag_numbers[step[j + 1] - {PLACES}]
                else:
                    (<float*> q[j])[0] = <float> ag_numbers[step[j + 1] - {PLACES}]
            if step[0] >= 0:
                K.loops[step[0]][dtype][variant](length, q, NULL)
            elif dtype:
                for i in range(length):
                    (<double*> q[0])[i] = masked((<double*> q[1])[i], (<double*> q[2])[i])
            else:
                for i in range(length):
                    (<float*> q[0])[i] = <float> masked((<float*> q[1])[i], (<float*> q[2])[i])
        start += length
'''

# The series; the functions that they call are loops of the best level, which give the same bits as this level's.
SPECIAL = '''
cdef extern from "special.h" nogil:
    ctypedef struct AG_Series:
        pass
    ctypedef struct AG_Loops:
        Loop exp
        Loop log
        Loop sin
        Loop cos
    void ag_special_f32(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, char** p) noexcept
    void ag_special_f64(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, char** p) noexcept


cdef void special(int which, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    cdef AG_Loops loops
    loops.exp, loops.log = K.loops[{exp}][1][0], K.loops[{log}][1][0]
    loops.sin, loops.cos = K.loops[{sin}][1][0], K.loops[{cos}][1][0]
    if dtype == 0:
        ag_special_f32(<const AG_Series*> K.series, &loops, which, n, p)
    else:
        ag_special_f64(<const AG_Series*> K.series, &loops, which, n, p)


K.special = special
'''
