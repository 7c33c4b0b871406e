# Folds over strided arrays, of elements that may first be mapped (a square, an exponential of a difference).
#
# Relies on fold.pxd (contiguous folds), reduce_plan.pxd and table.pxd (exp and power, which the module of loops puts there).
# reduce.pyx relies on it.
#
# Every element type is folded in one of three accumulator types.  When the smallest stride is a reduced dim, an output is the
# fold of a stream of blocks (fold_one); when it is a kept dim, a row of outputs is accumulated at once (fold_many).

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.kernels.fold cimport (OP_SUM, acc_t, fold_columns, fold_contiguous, fold_row, fold_rows8, fold_squares, identity, load)
from autograd_cy.kernels.reduce_plan cimport Plan, advance
from autograd_cy.kernels.table cimport K

cdef extern from "fold.h" nogil:
    long long ag_sum_u8(const unsigned char* x, Py_ssize_t n) noexcept

cdef extern from "math.h" nogil:
    float fabsf(float x) noexcept
    double fabs(double x) noexcept

cdef enum:
    STREAM = 1024             # elements of one block of a stream
    PERIOD = 512              # bytes: narrow rows are read as rows of 512 to 1024: 150x10 takes 70 ns instead of 430
    WIDE = 256                # 2 * PERIOD bytes of float
    LEVELS = 12               # levels of accumulators: 64 rows, then 16 times more per level

cdef enum Before:             # what happens to an element before the unary function
    NOTHING
    SUBTRACT
    DIVIDE

cdef enum Unary:
    PLAIN
    NONZERO
    ABS
    SQUARE
    EXP
    POWER


cdef inline void apply(int before, int unary, acc_t* b, Py_ssize_t n, const acc_t* by, int by_step, double param) noexcept nogil:
    """b = unary(b before by): `by` is one value (by_step 0) or one per element."""
    cdef Py_ssize_t i
    cdef acc_t s, p
    cdef char* pointers[3]
    if acc_t is float or acc_t is double:
        if before == SUBTRACT:
            if by_step:
                for i in range(n):
                    b[i] = b[i] - by[i]
            else:
                s = by[0]
                for i in range(n):
                    b[i] = b[i] - s
        elif before == DIVIDE:
            for i in range(n):
                b[i] = b[i] / by[i * by_step]
        p = <acc_t> param
        pointers[0], pointers[1], pointers[2] = <char*> b, <char*> b, <char*> &p
        if unary == SQUARE:
            for i in range(n):
                b[i] = b[i] * b[i]
        elif unary == ABS or unary == POWER:
            for i in range(n):
                if acc_t is float:
                    b[i] = fabsf(b[i])
                else:
                    b[i] = fabs(b[i])
        # The loops of the table: the formulas exist once, and at the best level.
        if unary == EXP:
            if acc_t is float:
                K.exp[0](n, pointers, NULL)
            else:
                K.exp[1](n, pointers, NULL)
        elif unary == POWER:
            if acc_t is float:
                K.power[0](n, pointers, NULL)
            else:
                K.power[1](n, pointers, NULL)
    if unary == NONZERO:
        for i in range(n):
            b[i] = b[i] != 0


cdef inline acc_t combine(int op, acc_t a, acc_t b) noexcept nogil:
    if op == OP_SUM:
        if acc_t is float or acc_t is double:
            return a + b
        else:
            return <long long> (<unsigned long long> a + <unsigned long long> b)
    fold_row(op, &a, &b, 1)
    return a


cdef inline acc_t fold_one(const Plan* p, const char* x, int op, int before, int unary, const acc_t* by,
                           acc_t* block) noexcept nogil:
    """All reduced elements of one output, in blocks; sums of blocks are combined pairwise. `block` has room for STREAM."""
    cdef Py_ssize_t inner = 1, stride = 1, outer = 1, i, at, m, filled = 0, offset = 0, pushed = 0, c
    cdef Py_ssize_t index[MAX_NDIM]
    cdef acc_t stack[64]
    cdef acc_t value
    cdef int d, nr = p.nr, top = 0
    cdef bint direct, squares, bytes = False
    if nr:
        inner = p.rshape[nr - 1]
        stride = p.rx[nr - 1]
    direct = p.direct and stride == 1 and before == NOTHING and unary == PLAIN
    squares = p.direct and stride == 1 and before == NOTHING and unary == SQUARE and inner >= 64
    if acc_t is float or acc_t is double:
        pass
    else:
        bytes = p.itemsize == 1 and stride == 1 and op == OP_SUM and unary == PLAIN and inner >= 32
    if direct and nr <= 1:
        return fold_contiguous(op, <const acc_t*> x, inner)
    value = identity(op, <acc_t> 0)
    if p.count == 0:
        return value
    for d in range(nr - 1):
        outer *= p.rshape[d]
        index[d] = 0
    for i in range(outer):
        at = 0
        while at < inner:
            if squares:
                m = inner - at if inner - at < 2 * STREAM else STREAM
                value = fold_squares(<const acc_t*> x + offset + at, m)
                at += m
            elif bytes:
                value = <acc_t> ag_sum_u8(<const unsigned char*> x + offset, inner)
                at = inner
            elif direct and inner >= 64:
                value = fold_contiguous(op, <const acc_t*> x + offset, inner)
                at = inner
            else:
                m = min(inner - at, STREAM - filled)
                load(block + filled, p.dtype, x + (offset + at * stride) * p.itemsize, m, stride)
                filled += m
                at += m
                if filled < STREAM and (at < inner or i < outer - 1):
                    continue
                apply(before, unary, block, filled, by, 0, p.param)
                value = fold_contiguous(op, block, filled)
                filled = 0
            c = pushed
            pushed += 1
            while c & 1:
                top -= 1
                value = combine(op, stack[top], value)
                c >>= 1
            stack[top] = value
            top += 1
        if outer > 1:
            advance(nr - 1, p.rshape, p.rx, index, &offset)
    top -= 1
    value = stack[top]
    while top > 0:
        top -= 1
        value = combine(op, stack[top], value)
    return value


cdef inline int levels_for(Py_ssize_t rows) noexcept nogil:
    cdef int levels = 0
    rows >>= 6
    while rows:
        rows >>= 4
        levels += 1
    return levels


cdef inline void fold_rows(const Plan* p, int nr, const Py_ssize_t* shape, const Py_ssize_t* strides, const char* x,
                           Py_ssize_t w, Py_ssize_t column, int op, int before, int unary, const acc_t* by, acc_t* acc,
                           acc_t* scratch) noexcept nogil:
    """acc[0:w]: w columns, `column` elements apart, folded over nr dims, eight rows at a time.

    Sums keep levels of accumulators: 64 rows go to the first, 16 of these to the second, and so on.  scratch: room for
    eight rows, then for the upper levels.
    """
    cdef Py_ssize_t n = 1, done = 0, steps = 0, offset = 0, c, j
    cdef Py_ssize_t index[MAX_NDIM]
    cdef char* rows[8]
    cdef int d, i, m, level, used = 0
    cdef acc_t zero = identity(op, <acc_t> 0)
    cdef acc_t* levels = scratch + 8 * w
    cdef acc_t* lower
    cdef bint direct = p.direct and column == 1 and before == NOTHING and unary == PLAIN
    for d in range(nr):
        n *= shape[d]
        index[d] = 0
    for j in range(w):
        acc[j] = zero
    while done < n:
        m = <int> min(8, n - done)
        for i in range(m):
            rows[i] = <char*> x + offset * p.itemsize
            if not direct:
                load(scratch + i * w, p.dtype, rows[i], w, column)
                if before or unary:
                    apply(before, unary, scratch + i * w, w, by, 1, p.param)
                rows[i] = <char*> (scratch + i * w)
            if nr == 1:
                offset += strides[0]
            else:
                advance(nr, shape, strides, index, &offset)
        if m == 8:
            fold_rows8(op, acc, rows, w)
        else:
            for i in range(m):
                fold_row(op, acc, <const acc_t*> rows[i], w)
        done += m
        steps += 1
        if op == OP_SUM and steps & 7 == 0 and done < n:
            lower = acc
            level = 0
            c = steps >> 3
            while True:               # a full level empties into the next one
                if level == used:
                    for j in range(w):
                        levels[level * w + j] = 0
                    used += 1
                fold_row(op, levels + level * w, lower, w)
                for j in range(w):
                    lower[j] = 0
                if c & 15 or level == LEVELS - 1:
                    break
                c >>= 4
                lower = levels + level * w
                level += 1
    for level in range(used):
        fold_row(op, acc, levels + level * w, w)


cdef inline Py_ssize_t period(Py_ssize_t rows, Py_ssize_t w, Py_ssize_t size) noexcept nogil:
    """How many narrow contiguous rows to read as one."""
    cdef Py_ssize_t k = 1
    while k * w * size < PERIOD and rows >= 4 * k:
        k *= 2
    return k


cdef inline bint fold_few_rows(int op, const acc_t* x, Py_ssize_t rows, Py_ssize_t w, acc_t* acc) noexcept nogil:
    """acc[0:w] = the fold of contiguous rows; False when there are too many for one level of accumulators."""
    cdef acc_t wide[WIDE]
    cdef Py_ssize_t k = period(rows, w, sizeof(acc_t)), rest, j
    if k == 1:
        if rows > 64 or rows == 0:
            return False
        fold_columns(op, x, rows, w, w, acc)
        return True
    if rows // k > 64:
        return False
    fold_columns(op, x, rows // k, k * w, k * w, wide)
    rest = rows % k * w
    if rest:
        fold_row(op, wide, x + rows * w - rest, rest)
    while k > 1:
        k //= 2
        fold_row(op, wide, wide + k * w, k * w)
    for j in range(w):
        acc[j] = wide[j]
    return True


cdef inline void fold_many(const Plan* p, const char* x, Py_ssize_t w, int op, int before, int unary, const acc_t* by,
                           acc_t* result, acc_t* scratch, Py_ssize_t room) noexcept nogil:
    """result[0:w]: a row of outputs at once. Narrow contiguous rows are first read as fewer, longer rows."""
    cdef Py_ssize_t column = p.kx[p.nk - 1], k, n, wide, rest, j, i
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]
    cdef acc_t* acc
    cdef acc_t* tiled
    if p.nr == 1 and column == 1 and p.rx[0] == w:
        n = p.rshape[0]
        if p.direct and before == NOTHING and unary == PLAIN and fold_few_rows(op, <const acc_t*> x, n, w, result):
            return
        k = period(n, w, sizeof(acc_t))
        if k > 1 and room >= k * w * (10 + levels_for(n // k)):
            wide = k * w
            acc = scratch
            tiled = scratch + wide
            scratch += 2 * wide
            if before:
                for i in range(k):
                    for j in range(w):
                        tiled[i * w + j] = by[j]
            shape[0] = n // k
            strides[0] = wide
            fold_rows(p, 1, shape, strides, x, wide, 1, op, before, unary, tiled, acc, scratch)
            rest = n % k * w
            if rest:
                load(scratch, p.dtype, x + (n // k) * wide * p.itemsize, rest, 1)
                apply(before, unary, scratch, rest, tiled, 1, p.param)
                fold_row(op, acc, scratch, rest)
            while k > 1:
                k //= 2
                fold_row(op, acc, acc + k * w, k * w)
            for j in range(w):
                result[j] = acc[j]
            return
    fold_rows(p, p.nr, p.rshape, p.rx, x, w, column, op, before, unary, by, result, scratch)


cdef inline void fold(const Plan* p, const char* x, Py_ssize_t w, int op, int before, int unary, const acc_t* by, acc_t* result,
                      acc_t* scratch, Py_ssize_t room) noexcept nogil:
    if p.rows:
        result[0] = fold_one(p, x, op, before, unary, by, scratch)
    else:
        fold_many(p, x, w, op, before, unary, by, result, scratch, room)
