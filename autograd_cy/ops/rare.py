"""The loops of rare rows (ops/table/special.py), which are lists of other rows' loops, and what these call: series, SciPy's functions.

Relies on symbols.py and formulas.py, and on the header kernels/special.h. codegen.py puts it into the modules of loops.
"""

from .formulas import DTYPES
from .symbols import Expression, Symbol

# Special functions of one number by series, which K.special has under these numbers (kernels/special.h).
SERIES = ("i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "scaled_modified_bessel_k0",
          "modified_bessel_k1", "scaled_modified_bessel_k1", "airy_ai", "airy_derivative", "erfcx", "log_ndtr", "ndtri")
# Special functions of two numbers, under these numbers in run_of_two (RARE, below).
OF_TWO = ("zeta", "gammainc", "gammaincc")


class Steps:
    """What the loops of rare rows do, one loop of another row after the other, and the numbers that occur in them.

    A step is a loop's id or one of FILL and MASK, the place that is written and those that are read. The first places are the inputs,
    place -1 is the output.
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
                    for a in sorted(e.args, key=lambda a: not isinstance(a, Expression)):       # numbers last: they take a place each
                        place(a)
                    read = [place(a) for a in e.args]
                    step = self.MASK if e.name == "masked" else LOOP_IDS[e.name]
                else:
                    if e not in self.numbers:
                        self.numbers.append(e)
                    step, read = self.FILL, [self.numbers.index(e)]
                places[e] = free.pop() if out is None else out
                self.steps.append((step, places[e], *read, *[0] * (3 - len(read))))
                for a in e.args if isinstance(e, Expression) else ():
                    uses[a] -= 1
                    if not uses[a] and not isinstance(a, Symbol):
                        free.append(places[a])
            return places[e]

        count(expression)
        place(expression, -1)
        return first, len(self.steps) - first

    def loop(self, loop, dtype, variant, name="LOOP", vectors=None):
        """Source of a loop of vectors under the given name."""
        code = DTYPES.index(dtype)
        head = f"cdef void {name}(Py_ssize_t n, char** p, const double* attrs) noexcept nogil:\n"
        expression = self.arguments(loop)
        if expression.name in SERIES and loop.name == expression.name:
            return f"{head}    K.special({SERIES.index(expression.name)}, {code}, n, p)"
        if expression.name in OF_TWO and loop.name == expression.name:
            return f"{head}    run_of_two({OF_TWO.index(expression.name)}, {code}, n, p)"
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
        fields = {"tables": tables, "FILL": self.FILL, "PLACES": self.PLACES, "exp": LOOP_IDS["exp"], "log": LOOP_IDS["log"]}
        for name, value in fields.items():
            text = text.replace("{" + name + "}", str(value))
        return text


# What rare loops need beside vecmath.h. SciPy's functions are taken from it when one is first called.
RARE = '''
from libc.math cimport NAN
from cpython.pycapsule cimport PyCapsule_GetPointer

cdef extern from *:
    """
    #define AG_WANTS_SERIES
    #include "special_series.h"
    {tables}
    """
    const char ag_all_series
    const short ag_steps[1][5]
    const double ag_numbers[1]

cdef extern from "vecmath.h" nogil:
    double ag_zeta_f64(double, double) noexcept
    double ag_zeta_tail_f64(double, double) noexcept

ctypedef double (*OfTwo)(double, double, int) noexcept nogil
cdef OfTwo of_scipy[2]
K.series = &ag_all_series


cdef double no_function(double a, double b, int _) noexcept nogil:
    return NAN


cdef void bind() noexcept with gil:              # an exception is printed
    try:
        from scipy.special import cython_special
        for i, name in enumerate(("gammainc", "gammaincc")):
            of_scipy[<int> i] = <OfTwo> PyCapsule_GetPointer(cython_special.__pyx_capi__[name],
                                                             "double (double, double, int __pyx_skip_dispatch)")
    finally:
        for k in range(2):
            if of_scipy[<int> k] == NULL:
                of_scipy[<int> k] = no_function


cdef double gamma_of_scipy(int which, double a, double x) noexcept nogil:
    if of_scipy[which] == NULL:
        bind()
    return of_scipy[which](a, x, 0)


cdef void zeta_block(Py_ssize_t m, const double* s, const double* q, double* y) noexcept nogil:
    """Fourteen terms as e ** (-s log(q + k)) and the tail; what is not usual by itself."""
    cdef double t[64]
    cdef char* p[2]
    cdef Py_ssize_t i
    cdef int k
    p[0] = p[1] = <char*> t
    for i in range(m):
        y[i] = 0
    for k in range(15):
        for i in range(m):
            t[i] = q[i] + k
        K.loops[{log}][1][0](m, p, NULL)
        for i in range(m):
            t[i] *= -s[i]
        K.loops[{exp}][1][0](m, p, NULL)
        for i in range(m if k < 14 else 0):
            y[i] += t[i]
    for i in range(m):
        if s[i] > 1 and s[i] < 100 and q[i] > 0 and q[i] < 1e15:
            y[i] += t[i] * ag_zeta_tail_f64(s[i], q[i] + 14)
        else:
            y[i] = ag_zeta_f64(s[i], q[i])


cdef void run_of_two(int which, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    cdef double numbers[3][64]
    cdef Py_ssize_t start = 0, length, i
    cdef int k
    while start < n:
        length = min(n - start, <Py_ssize_t> 64)
        for k in range(1, 3):
            for i in range(length):
                numbers[k][i] = (<double*> p[k])[start + i] if dtype else (<float*> p[k])[start + i]
        if which == 0:
            zeta_block(length, numbers[1], numbers[2], numbers[0])
        else:
            for i in range(length):
                numbers[0][i] = gamma_of_scipy(which - 1, numbers[1][i], numbers[2][i])
        for i in range(length):
            if dtype:
                (<double*> p[0])[start + i] = numbers[0][i]
            else:
                (<float*> p[0])[start + i] = <float> numbers[0][i]
        start += length


cdef inline double masked(double g, double r) noexcept nogil:
    """A gradient of 0 stays 0."""
    return 0 if g == 0 and r != r else r


cdef void run_steps(int first, int count, int inputs, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    cdef double blocks[{PLACES}][128]
    cdef char* at[{PLACES}]
    cdef char* q[4]
    cdef Py_ssize_t start = 0, length, size = 8 if dtype else 4, i
    cdef const short* step
    cdef int k
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
            q[1], q[2], q[3] = at[step[2]], at[step[3]], at[step[4]]
            if step[0] >= 0:
                K.loops[step[0]][dtype][0](length, q, NULL)
            elif dtype:
                for i in range(length):
                    (<double*> q[0])[i] = masked((<double*> q[1])[i], (<double*> q[2])[i])
            else:
                for i in range(length):
                    (<float*> q[0])[i] = <float> masked((<float*> q[1])[i], (<float*> q[2])[i])
        start += length
'''

# The series; the functions that they call are loops of the same level.
SPECIAL = '''
cdef extern from "special.h" nogil:
    ctypedef struct AG_Series:
        pass
    ctypedef struct AG_Loops:
        Loop exp
        Loop log
        Loop sin
        Loop cos
    void ag_special_f32(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, float* out, const float* x) noexcept
    void ag_special_f64(const AG_Series* series, const AG_Loops* loops, int which, Py_ssize_t n, double* out, const double* x) noexcept

cdef AG_Loops loops_of_double
loops_of_double.exp, loops_of_double.log, loops_of_double.sin, loops_of_double.cos = exp_f64_0, log_f64_0, sin_f64_0, cos_f64_0


cdef void special(int which, int dtype, Py_ssize_t n, char** p) noexcept nogil:
    if dtype == 0:
        ag_special_f32(<const AG_Series*> K.series, &loops_of_double, which, n, <float*> p[0], <const float*> p[1])
    else:
        ag_special_f64(<const AG_Series*> K.series, &loops_of_double, which, n, <double*> p[0], <const double*> p[1])


K.special = special
'''
