# Reductions over any dims of a strided array: sums, products, extremes, argmax, variance, logsumexp, norms, unbroadcast.
#
# Relies on reduce_plan, reduce_fold, reduce_arg, reduce_extremes (all .pxd, inlined here, at this module's level) and fold.pxd, which
# documents the order of addition.  The engine relies on it, through K.
#
# Small contiguous folds are done at once (`quick`); everything else is planned.  Kinds that need several folds (variance,
# logsumexp, norm) are written once, over rows of outputs, in `evaluate`.

from libc.math cimport INFINITY, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, itemsize_of
from autograd_cy.kernels.fold cimport (FOLD_BLOCK, OP_MAX, OP_MIN, OP_PROD, OP_SUM, acc_t, fold_columns, fold_contiguous, fold_each,
                                       fold_squares)
from autograd_cy.kernels.reduce_arg cimport arg_columns, arg_run
from autograd_cy.kernels.reduce_extremes cimport extremes, is_extreme
from autograd_cy.kernels.reduce_fold cimport (ABS, DIVIDE, EXP, NONZERO, NOTHING, PERIOD, PLAIN, POWER, SQUARE, STREAM, SUBTRACT,
                                              fold, fold_few_rows, levels_for)
from autograd_cy.kernels.reduce_plan cimport Plan, advance_pair, each_row, make_plan, out_itemsize, two_folds
from autograd_cy.kernels.table cimport (REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_LOGSUMEXP, REDUCE_MAX,
                                        REDUCE_MEAN, REDUCE_MIN, REDUCE_NORM, REDUCE_PROD, REDUCE_SUM, REDUCE_VAR, K)

cdef extern from "vecmath.h" nogil:
    float ag_log_f32(float x) noexcept
    double ag_log_f64(double x) noexcept
    float ag_pow_f32(float x, float y) noexcept
    double ag_pow_f64(double x, double y) noexcept
    float sqrtf(float x) noexcept
    double sqrt(double x) noexcept

cdef enum:
    SCRATCH = 1536            # accumulators of scratch memory on the stack: 12 KB, threads may have stacks of 64 KB
    SQUARES = 1024            # of them, of short rows
    FEW = 128                 # elements that are mapped on the stack
    SHORT = 32
    MANY = 1024               # most columns accumulated at once (with scratch memory from the heap)


cdef void add_logs(acc_t* sums, const acc_t* by, Py_ssize_t n) noexcept nogil:
    """sums = log(sums) + by"""
    cdef Py_ssize_t i
    for i in range(n):
        if acc_t is float:
            sums[i] = ag_log_f32(sums[i]) + by[i]
        else:
            sums[i] = <acc_t> ag_log_f64(<double> sums[i]) + by[i]


cdef inline acc_t root_of(acc_t x) noexcept nogil:
    """The root of a sum of squares; -1 where these lost bits, below the smallest normal number over the rounding error, or overflowed."""
    if acc_t is float:
        return sqrtf(x) if <float> 1e-30 < x < <float> 3e38 else -1
    else:
        return <acc_t> sqrt(<double> x) if 1e-290 < x < 1e308 else -1


cdef void evaluate(const Plan* p, const char* x, Py_ssize_t w, acc_t* r, acc_t* by, acc_t* scratch,
                   Py_ssize_t room) noexcept nogil:
    """r[0:w]: the outputs of w columns (one when the innermost dim is reduced). by: room for w more."""
    cdef Py_ssize_t j
    cdef int kind = p.kind
    cdef double n = <double> p.count, q = p.param
    cdef bint again = False
    if kind == REDUCE_SUM:
        fold(p, x, w, OP_SUM, NOTHING, PLAIN, by, r, scratch, room)
    elif kind == REDUCE_PROD:
        fold(p, x, w, OP_PROD, NOTHING, PLAIN, by, r, scratch, room)
    elif kind == REDUCE_MAX:
        fold(p, x, w, OP_MAX, NOTHING, PLAIN, by, r, scratch, room)
    elif kind == REDUCE_MIN:
        fold(p, x, w, OP_MIN, NOTHING, PLAIN, by, r, scratch, room)
    elif kind == REDUCE_ANY:
        fold(p, x, w, OP_MAX, NOTHING, NONZERO, by, r, scratch, room)
        for j in range(w):
            r[j] = r[j] == 1
    elif kind == REDUCE_ALL:
        fold(p, x, w, OP_MIN, NOTHING, NONZERO, by, r, scratch, room)
        for j in range(w):
            r[j] = r[j] != 0
    elif acc_t is float or acc_t is double:
        if kind == REDUCE_MEAN:
            fold(p, x, w, OP_SUM, NOTHING, PLAIN, by, r, scratch, room)
            for j in range(w):
                r[j] = <acc_t> (r[j] / n)
        elif kind == REDUCE_VAR:
            fold(p, x, w, OP_SUM, NOTHING, PLAIN, by, r, scratch, room)
            for j in range(w):
                by[j] = <acc_t> (r[j] / n)
            fold(p, x, w, OP_SUM, SUBTRACT, SQUARE, by, r, scratch, room)
            n = max(n - q, 0.)
            for j in range(w):
                r[j] = <acc_t> (r[j] / n)
        elif kind == REDUCE_LOGSUMEXP:
            fold(p, x, w, OP_MAX, NOTHING, PLAIN, by, r, scratch, room)
            for j in range(w):        # an infinite or NaN maximum shows through unshifted: log(0), log(inf), NaN
                by[j] = r[j] if isfinite(r[j]) else 0
            fold(p, x, w, OP_SUM, SUBTRACT, EXP, by, r, scratch, room)
            add_logs(r, by, w)
        elif p.count == 0:
            for j in range(w):
                r[j] = 0
        elif q == 0:
            fold(p, x, w, OP_SUM, NOTHING, NONZERO, by, r, scratch, room)
        elif q == 1:
            fold(p, x, w, OP_SUM, NOTHING, ABS, by, r, scratch, room)
        elif q == INFINITY:
            fold(p, x, w, OP_MAX, NOTHING, ABS, by, r, scratch, room)
        elif q == -INFINITY:
            fold(p, x, w, OP_MIN, NOTHING, ABS, by, r, scratch, room)
        elif q == 2:
            fold(p, x, w, OP_SUM, NOTHING, SQUARE, by, r, scratch, room)
            for j in range(w):
                r[j] = root_of(r[j])
                again = again or r[j] < 0
            if again:
                rescaled_norm(p, x, w, r, by, scratch, room)
        else:
            fold(p, x, w, OP_SUM, NOTHING, POWER, by, r, scratch, room)
            for j in range(w):
                if acc_t is float:
                    r[j] = ag_pow_f32(r[j], <acc_t> (1 / q))
                else:
                    r[j] = ag_pow_f64(r[j], 1 / q)


cdef void rescaled_norm(const Plan* p, const char* x, Py_ssize_t w, acc_t* r, acc_t* by, acc_t* scratch,
                        Py_ssize_t room) noexcept nogil:
    """The 2-norm of columns whose sum of squares left the range of the type (r[j] < 0): max |x| * norm(x / max |x|)."""
    cdef Py_ssize_t j
    cdef acc_t* largest = scratch
    cdef acc_t* sums = scratch + w
    scratch += 2 * w
    room -= 2 * w
    fold(p, x, w, OP_MAX, NOTHING, ABS, by, largest, scratch, room)
    for j in range(w):                # 0, inf and NaN show through
        by[j] = largest[j] if largest[j] > 0 and isfinite(largest[j]) else 1
    fold(p, x, w, OP_SUM, DIVIDE, SQUARE, by, sums, scratch, room)
    for j in range(w):
        if r[j] < 0:
            if acc_t is float:
                r[j] = by[j] * sqrtf(sums[j])
            elif acc_t is double:
                r[j] = by[j] * sqrt(sums[j])


cdef inline void store(int kind, int dtype, char* out, Py_ssize_t stride, const acc_t* r, Py_ssize_t w) noexcept nogil:
    cdef Py_ssize_t j
    if kind == REDUCE_ANY or kind == REDUCE_ALL:
        for j in range(w):
            (<unsigned char*> out)[j * stride] = r[j] != 0
    elif acc_t is float or acc_t is double or kind == REDUCE_SUM or kind == REDUCE_PROD or dtype == INT64:
        if stride == 1:
            for j in range(w):
                (<acc_t*> out)[j] = r[j]
        else:
            for j in range(w):
                (<acc_t*> out)[j * stride] = r[j]
    elif dtype == INT32:
        for j in range(w):
            (<int*> out)[j * stride] = <int> r[j]
    else:
        for j in range(w):
            (<unsigned char*> out)[j * stride] = <unsigned char> r[j]


cdef inline int fold_of(int kind) noexcept nogil:
    """The fold that sum, mean, prod, max and min are, and norms of squares."""
    return (OP_SUM if kind <= REDUCE_MEAN or kind == REDUCE_NORM else OP_PROD if kind == REDUCE_PROD else OP_MAX if kind == REDUCE_MAX
            else OP_MIN)


cdef inline void divide(acc_t* out, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    if acc_t is float or acc_t is double:
        for i in range(n):
            out[i * stride] = <acc_t> (out[i * stride] / <double> count)


cdef void run(const Plan* p, const char* x, char* out, acc_t tag) noexcept nogil:
    """Every output: the outer kept dims by odometer, the innermost one in rows of outputs or one by one."""
    cdef double stack[SCRATCH]
    cdef acc_t* scratch = <acc_t*> stack
    cdef void* heap = NULL
    cdef Py_ssize_t room = SCRATCH * 8 // sizeof(acc_t), inner = 1, kx = 0, kout = 0, outer = 1, w = 1, per, i, j, m
    cdef Py_ssize_t offset = 0, out_offset = 0
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int nk = p.nk, d, size = out_itemsize(p.kind, p.dtype)
    cdef bint two = two_folds(p), squares, few, norms = False
    cdef const acc_t* source
    cdef acc_t* target
    cdef acc_t* to
    cdef Py_ssize_t rows, stride, step
    if nk:
        inner = p.kshape[nk - 1]
        kx = p.kx[nk - 1]
        kout = p.kout[nk - 1]
    for d in range(nk - 1):
        outer *= p.kshape[d]
        index[d] = 0
    # Norms of short rows that lie one behind the other: the squares of some rows at a time, and their sums.
    if acc_t is float or acc_t is double:
        norms = (p.kind == REDUCE_NORM and p.param == 2 and p.direct and nk == 1 and p.nr == 1 and p.rx[0] == 1
                 and 0 < p.count == kx < 64)
    if two or norms or each_row(p):
        per = SQUARES // p.count if norms else 1
        for i in range(outer):
            if i:
                advance_pair(nk - 1, p, index, &offset, &out_offset)
            for j in range((inner + per - 1) // per if norms else inner if two else 1):
                source, target = <const acc_t*> x + offset + j * per * kx, <acc_t*> out + out_offset + j * per * kout
                rows, stride, m, to, step = inner, kx, p.count, target, kout
                if two:
                    rows, stride, m, to, step = p.rshape[0], p.rx[0], p.rshape[1], scratch, 1
                if norms:
                    rows = min(per, inner - j * per)
                    for w in range(rows * m):
                        scratch[w] = source[w] * source[w]
                    source = scratch
                while True:                        # one call: two more would cost 6 kB
                    fold_each(fold_of(p.kind), source, rows, stride, m, to, step)
                    if to == target:
                        break
                    source, rows, m, to = to, 1, rows, target
            if p.kind == REDUCE_MEAN:
                divide(<acc_t*> out + out_offset, inner, kout, p.count)
        if not norms:
            return
        w = 1
    # A norm of each of many contiguous rows, and the plain fold of few rows, as they are; the rest by `evaluate`.
    squares = p.kind == REDUCE_NORM and p.param == 2 and p.direct and p.rows and p.nr == 1 and p.rx[0] == 1 and 64 <= p.count <= STREAM
    few = (p.kind <= REDUCE_MIN and p.direct and not p.rows and p.nr == 1 and 0 < p.count <= 64 and kx == 1 and kout == 1
           and inner * sizeof(acc_t) >= PERIOD)
    if not p.rows and not norms:
        # Per column: result, by, two more for the rescaled norm, eight loaded rows and the levels of accumulators.
        per = 12 + levels_for(p.count)
        w = min(inner, room // per)
        if w < inner and p.count * inner >= 1 << 14:
            m = min(inner, MANY)
            heap = malloc(m * per * sizeof(acc_t))
            if heap != NULL:
                scratch = <acc_t*> heap
                room = m * per
                w = m
    for i in range(outer):
        if i:
            advance_pair(nk - 1, p, index, &offset, &out_offset)
        j = 0
        while j < inner:
            m = min(w, inner - j)
            target = <acc_t*> out + out_offset + j * kout
            if few:
                fold_columns(fold_of(p.kind), <const acc_t*> x + offset + j, p.count, p.rx[0], m, target)
                if p.kind == REDUCE_MEAN:
                    divide(target, m, 1, p.count)
                j += m
                continue
            if squares or norms:
                target[0] = root_of(target[0] if norms else fold_squares(<const acc_t*> x + offset + j * kx, p.count))
                if target[0] >= 0:                 # no overflow, no lost bits, no NaN
                    j += 1
                    continue
            evaluate(p, x + (offset + j * kx) * p.itemsize, m, scratch, scratch + w, scratch + 2 * w, room - 2 * w)
            store(p.kind, p.dtype, out + (out_offset + j * kout) * size, kout, scratch, m)
            j += m
    free(heap)


cdef bint bytes_any(const unsigned char* x, Py_ssize_t n) noexcept nogil:
    """All bytes are equal exactly when x[:-1] equals x[1:]; libc compares 32 bytes and more at a time."""
    return n > 0 and (x[0] != 0 or memcmp(x, x + 1, n - 1) != 0)


cdef void general(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                  char* out, const Py_ssize_t* out_strides, double param) noexcept nogil:
    cdef Plan p
    p.kind = kind
    p.dtype = dtype
    p.param = param
    p.itemsize = itemsize_of(dtype)
    p.direct = dtype == FLOAT32 or dtype == FLOAT64 or dtype == INT64
    if not make_plan(&p, ndim, shape, &x, x_strides, &out, out_strides):
        return
    if kind == REDUCE_ARGMAX or kind == REDUCE_ARGMIN:
        if dtype == FLOAT32:
            if p.rows:
                arg_run(&p, x, out, <float> 0)
            else:
                arg_columns(&p, x, out, <float> 0)
        elif dtype == FLOAT64:
            if p.rows:
                arg_run(&p, x, out, <double> 0)
            else:
                arg_columns(&p, x, out, <double> 0)
        elif p.rows:
            arg_run(&p, x, out, <long long> 0)
        else:
            arg_columns(&p, x, out, <long long> 0)
    elif (kind == REDUCE_ANY or kind == REDUCE_ALL) and p.itemsize == 1 and p.nk == 0 and p.nr == 1 and p.rx[0] == 1:
        if kind == REDUCE_ANY:
            out[0] = bytes_any(<const unsigned char*> x, p.count)
        else:
            out[0] = memchr(x, 0, p.count) == NULL
    elif is_extreme(&p):
        if dtype == INT32:
            extremes(&p, x, out, <int> 0)
        else:
            extremes(&p, x, out, <unsigned char> 0)
    elif dtype == FLOAT32:
        run(&p, x, out, <float> 0)
    elif dtype == FLOAT64:
        run(&p, x, out, <double> 0)
    else:
        run(&p, x, out, <long long> 0)


cdef inline bint quick(int kind, int ndim, const Py_ssize_t* shape, const acc_t* x, const Py_ssize_t* x_strides, acc_t* out,
                       const Py_ssize_t* out_strides) noexcept nogil:
    """Plain folds of small contiguous arrays, without a plan: a plan takes 40 ns, a sum of 16 elements 2. False: not one."""
    cdef Py_ssize_t n = 1, rows, w
    cdef int d = ndim - 1, op = fold_of(kind)
    while d >= 0:
        if shape[d] != 1:
            if out_strides[d] != 0 or x_strides[d] != n:
                break
            n *= shape[d]
        d -= 1
    if d < 0:
        out[0] = fold_contiguous(op, x, n)
        if kind == REDUCE_MEAN:
            divide(out, 1, 1, n)
        return True
    if ndim != 2:
        return False
    rows = shape[0]
    w = shape[1]
    if x_strides[1] != 1 or x_strides[0] != w or rows < 2 or w < 2:
        return False
    if out_strides[1] == 0:
        if w > FOLD_BLOCK:
            return False
        fold_each(op, x, rows, w, w, out, out_strides[0])
        if kind == REDUCE_MEAN:
            divide(out, rows, out_strides[0], w)
        return True
    if out_strides[0] != 0 or out_strides[1] != 1 or w > MANY or not fold_few_rows(op, x, rows, w, out):
        return False
    if kind == REDUCE_MEAN:
        divide(out, w, 1, rows)
    return True


cdef inline bint quick_mapped(int kind, int ndim, const Py_ssize_t* shape, const acc_t* x, const Py_ssize_t* x_strides, acc_t* out,
                              const Py_ssize_t* out_strides, double q) noexcept nogil:
    """As quick, the folds of `evaluate` that map elements: of all elements, contiguous rows or columns. False: not these, or not few."""
    cdef acc_t mapped[FEW]
    cdef acc_t by[FEW]
    cdef Py_ssize_t n = 1, w = 1, i, j, at
    cdef int d = ndim - 1
    cdef bint columns = ndim == 2 and out_strides[0] == 0 and out_strides[1] == 1
    cdef char* p[2]
    if columns:
        n = shape[0]
        w = shape[1]
        if x_strides[1] != 1 or x_strides[0] != w or n < 2 or w < 2:
            return False
    else:
        while d >= 0 and (shape[d] == 1 or out_strides[d] == 0 and x_strides[d] == n):
            n *= shape[d]
            d -= 1
        while d >= 0:
            if shape[d] != 1 and (out_strides[d] != w or x_strides[d] != n * w):
                return False
            w *= shape[d]
            d -= 1
    if n * w == 0 or n * w > FEW or n > SHORT or kind == REDUCE_NORM and q != 2 or not columns and n >= 8 and w >= 8:
        return False                               # (eight rows of eight and more are added in another order)
    fold_short(OP_MAX if kind == REDUCE_LOGSUMEXP else OP_SUM, x, w, n, columns, by)
    for i in range(w):
        if kind == REDUCE_NORM:
            by[i] = 0
        elif kind == REDUCE_VAR:
            by[i] = <acc_t> (by[i] / <double> n)
        elif not isfinite(by[i]):
            by[i] = 0
        for j in range(n):
            at = j * w + i if columns else i * n + j
            mapped[at] = x[at] - by[i]
            if kind != REDUCE_LOGSUMEXP:
                mapped[at] *= mapped[at]
    if kind == REDUCE_LOGSUMEXP:
        p[0] = p[1] = <char*> mapped
        if acc_t is float:
            K.exp[0](n * w, p, NULL)
        else:
            K.exp[1](n * w, p, NULL)
    fold_short(OP_SUM, mapped, w, n, columns, out)
    if kind == REDUCE_LOGSUMEXP:
        add_logs(out, by, w)
        return True
    for i in range(w):
        if kind == REDUCE_VAR:
            out[i] = <acc_t> (out[i] / max(n - q, 0.))
        else:
            out[i] = root_of(out[i])
            if out[i] < 0:                         # to be scaled, or nothing but zeros
                for j in range(n):
                    if x[j * w + i if columns else i * n + j] != 0:
                        return False
                out[i] = 0
    return True


cdef inline void fold_short(int op, const acc_t* x, Py_ssize_t w, Py_ssize_t n, bint columns, acc_t* out) noexcept nogil:
    """w folds of n elements, contiguous or side by side."""
    if columns:
        fold_few_rows(op, x, n, w, out)
    else:
        fold_each(op, x, w, n, n, out, 1)


cdef void reduce(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                 char* out, const Py_ssize_t* out_strides, double param) noexcept nogil:
    if kind <= REDUCE_MIN:
        if dtype == FLOAT32:
            if quick(kind, ndim, shape, <const float*> x, x_strides, <float*> out, out_strides):
                return
        elif dtype == FLOAT64:
            if quick(kind, ndim, shape, <const double*> x, x_strides, <double*> out, out_strides):
                return
    elif kind >= REDUCE_VAR:
        if dtype == FLOAT32:
            if quick_mapped(kind, ndim, shape, <const float*> x, x_strides, <float*> out, out_strides, param):
                return
        elif quick_mapped(kind, ndim, shape, <const double*> x, x_strides, <double*> out, out_strides, param):
            return
    general(kind, dtype, ndim, shape, x, x_strides, out, out_strides, param)


K.reduce = reduce
