# Reductions over any dims of a strided array: sums, products, extremes, argmax, variance, logsumexp, norms, unbroadcast.
#
# Relies on fold.pxd (the contiguous folds, and the order of addition) and on vecmath.h.  The engine relies on it, through K.
#
# A reduction is planned first: dims of size 1 are dropped, dims are split into kept and reduced, sorted by stride and
# coalesced.  Every element type is folded in one of three accumulator types (float, double, int64; `load` converts blocks).
# When the smallest stride is a reduced dim, each output is the fold of a stream of blocks (`fold_one`); when it is a kept
# dim, a row of outputs is accumulated at once (`fold_many`).  Kinds that need several folds (variance, logsumexp, norm)
# are written once, over rows of outputs, in `evaluate`.

from libc.math cimport INFINITY, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, itemsize_of
from autograd_cy.kernels.fold cimport (FOLD_BLOCK, OP_MAX, OP_MIN, OP_PROD, OP_SUM, acc_t, fold_columns, fold_contiguous,
                                       fold_each, fold_row, fold_rows8, identity)
from autograd_cy.kernels.table cimport (BLOCK, REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_LOGSUMEXP, REDUCE_MAX,
                                        REDUCE_MEAN, REDUCE_MIN, REDUCE_NORM, REDUCE_PROD, REDUCE_SUM, REDUCE_VAR, K)

cdef extern from "vecmath.h" nogil:
    float ag_exp_f32(float x) noexcept
    double ag_exp_f64(double x) noexcept
    float ag_log_f32(float x) noexcept
    double ag_log_f64(double x) noexcept
    float ag_pow_f32(float x, float y) noexcept
    double ag_pow_f64(double x, double y) noexcept
    float fabsf(float x) noexcept
    double fabs(double x) noexcept
    float sqrtf(float x) noexcept
    double sqrt(double x) noexcept

cdef enum:
    SCRATCH = 1536            # accumulators of scratch memory on the stack: 12 KB, threads may have stacks of 64 KB
    STREAM = 1024             # elements of one block of a stream
    MANY = 1024               # most columns accumulated at once (with scratch memory from the heap)
    PERIOD = 128              # narrow rows are read as rows of 128 to 256 columns: 150x10 takes 50 ns instead of 430
    FEW = 32                  # folds of at most so many elements go across rows, even when rows are contiguous
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

cdef struct Plan:
    int kind
    int dtype
    int nk                    # kept dims, outermost first
    int nr                    # reduced dims
    bint direct               # the elements are stored in the accumulator's own type
    bint rows                 # the innermost dim is reduced
    Py_ssize_t itemsize
    Py_ssize_t count          # reduced elements per output
    double param
    Py_ssize_t kshape[MAX_NDIM]
    Py_ssize_t kx[MAX_NDIM]
    Py_ssize_t kout[MAX_NDIM]
    Py_ssize_t rshape[MAX_NDIM]
    Py_ssize_t rx[MAX_NDIM]


# ---- blocks: load and convert, then map in place

cdef void load(acc_t* dst, int dtype, const char* x, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """n elements, `stride` elements apart, as contiguous accumulators."""
    cdef Py_ssize_t i
    cdef const acc_t* own
    cdef const int* i32
    cdef const unsigned char* u8
    if acc_t is float or acc_t is double:
        own = <const acc_t*> x
        if stride == 1:
            for i in range(n):
                dst[i] = own[i]
        else:
            for i in range(n):
                dst[i] = own[i * stride]
    else:
        if dtype == INT64:
            own = <const acc_t*> x
            for i in range(n):
                dst[i] = own[i * stride]
        elif dtype == INT32:
            i32 = <const int*> x
            if stride == 1:
                for i in range(n):
                    dst[i] = i32[i]
            else:
                for i in range(n):
                    dst[i] = i32[i * stride]
        else:
            u8 = <const unsigned char*> x
            if stride == 1:
                for i in range(n):
                    dst[i] = u8[i]
            else:
                for i in range(n):
                    dst[i] = u8[i * stride]


cdef void apply(int before, int unary, acc_t* b, Py_ssize_t n, const acc_t* by, int by_step, double param) noexcept nogil:
    """b = unary(b before by): `by` is one value (by_step 0) or one per element."""
    cdef Py_ssize_t i
    cdef acc_t s, p
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
        if unary == SQUARE:
            for i in range(n):
                b[i] = b[i] * b[i]
        elif unary == ABS:
            for i in range(n):
                if acc_t is float:
                    b[i] = fabsf(b[i])
                else:
                    b[i] = fabs(b[i])
        elif unary == EXP:
            for i in range(n):
                if acc_t is float:
                    b[i] = ag_exp_f32(b[i])
                else:
                    b[i] = ag_exp_f64(b[i])
        elif unary == POWER:
            for i in range(n):
                if acc_t is float:
                    b[i] = ag_pow_f32(fabsf(b[i]), p)
                else:
                    b[i] = ag_pow_f64(fabs(b[i]), p)
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


cdef inline void advance(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t* index,
                         Py_ssize_t* offset) noexcept nogil:
    """The next index of an odometer over ndim dims, and its offset in elements."""
    cdef int d = ndim - 1
    while d >= 0:
        index[d] += 1
        offset[0] += strides[d]
        if index[d] < shape[d]:
            return
        offset[0] -= shape[d] * strides[d]
        index[d] = 0
        d -= 1


# ---- the two ways of folding

cdef acc_t fold_one(const Plan* p, const char* x, int op, int before, int unary, const acc_t* by, acc_t* block) noexcept nogil:
    """All reduced elements of one output, in blocks; sums of blocks are combined pairwise. `block` has room for STREAM."""
    cdef Py_ssize_t inner = 1, stride = 1, outer = 1, i, at, m, filled = 0, offset = 0, pushed = 0, c
    cdef Py_ssize_t index[MAX_NDIM]
    cdef acc_t stack[64]
    cdef acc_t value
    cdef int d, nr = p.nr, top = 0
    cdef bint direct
    if nr:
        inner = p.rshape[nr - 1]
        stride = p.rx[nr - 1]
    direct = p.direct and stride == 1 and before == NOTHING and unary == PLAIN
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
            if direct and filled == 0 and inner >= STREAM:
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


cdef void fold_rows(const Plan* p, int nr, const Py_ssize_t* shape, const Py_ssize_t* strides, const char* x, Py_ssize_t w,
                    Py_ssize_t column, int op, int before, int unary, const acc_t* by, acc_t* acc,
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


cdef inline Py_ssize_t period(Py_ssize_t rows, Py_ssize_t w) noexcept nogil:
    """How many narrow contiguous rows to read as one."""
    cdef Py_ssize_t k = 1
    while k * w < PERIOD and rows >= 4 * k:
        k *= 2
    return k


cdef bint fold_few_rows(int op, const acc_t* x, Py_ssize_t rows, Py_ssize_t w, acc_t* acc) noexcept nogil:
    """acc[0:w] = the fold of contiguous rows; False when there are too many for one level of accumulators."""
    cdef acc_t wide[2 * PERIOD]
    cdef Py_ssize_t k = period(rows, w), rest, j
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


cdef void fold_many(const Plan* p, const char* x, Py_ssize_t w, int op, int before, int unary, const acc_t* by, acc_t* result,
                    acc_t* scratch, Py_ssize_t room) noexcept nogil:
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
        k = period(n, w)
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


cdef inline int levels_for(Py_ssize_t rows) noexcept nogil:
    cdef int levels = 0
    rows >>= 6
    while rows:
        rows >>= 4
        levels += 1
    return levels


cdef inline void fold(const Plan* p, const char* x, Py_ssize_t w, int op, int before, int unary, const acc_t* by, acc_t* result,
                      acc_t* scratch, Py_ssize_t room) noexcept nogil:
    if p.rows:
        result[0] = fold_one(p, x, op, before, unary, by, scratch)
    else:
        fold_many(p, x, w, op, before, unary, by, result, scratch, room)


# ---- kinds

cdef void evaluate(const Plan* p, const char* x, Py_ssize_t w, acc_t* r, acc_t* by, acc_t* scratch,
                   Py_ssize_t room) noexcept nogil:
    """r[0:w]: the outputs of w columns (one when the innermost dim is reduced). by: room for w more."""
    cdef Py_ssize_t j
    cdef int kind = p.kind
    cdef double n = <double> p.count, q = p.param
    cdef bint again = False
    cdef acc_t tiny, huge
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
            for j in range(w):
                if acc_t is float:
                    r[j] = ag_log_f32(r[j]) + by[j]
                else:
                    r[j] = ag_log_f64(r[j]) + by[j]
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
            # Squares lose bits below `tiny` (the smallest normal number over the rounding error) and overflow above.
            if acc_t is float:
                tiny, huge = <acc_t> 1e-30, <acc_t> 3e38
            else:
                tiny, huge = <acc_t> 1e-290, <acc_t> 1e308
            for j in range(w):
                if tiny < r[j] < huge:
                    if acc_t is float:
                        r[j] = sqrtf(r[j])
                    else:
                        r[j] = sqrt(r[j])
                else:
                    again = True
                    r[j] = -1
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


cdef int out_itemsize(int kind, int dtype) noexcept nogil:
    if kind == REDUCE_ANY or kind == REDUCE_ALL:
        return 1
    if kind == REDUCE_ARGMAX or kind == REDUCE_ARGMIN:
        return 8
    if (kind == REDUCE_SUM or kind == REDUCE_PROD) and dtype >= INT64:
        return 8
    return <int> itemsize_of(dtype)


cdef inline int fold_of(int kind) noexcept nogil:
    """The fold that sum, mean, prod, max and min are."""
    return (OP_SUM if kind <= REDUCE_MEAN else OP_PROD if kind == REDUCE_PROD else OP_MAX if kind == REDUCE_MAX else OP_MIN)


cdef inline bint each_row(const Plan* p) noexcept nogil:
    """Is every output the plain fold of one contiguous row?"""
    return (p.kind <= REDUCE_MIN and p.direct and p.nr == 1 and p.rx[0] == 1 and 0 < p.count <= FOLD_BLOCK)


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
    if nk:
        inner = p.kshape[nk - 1]
        kx = p.kx[nk - 1]
        kout = p.kout[nk - 1]
    for d in range(nk - 1):
        outer *= p.kshape[d]
        index[d] = 0
    if each_row(p):
        for i in range(outer):
            if i:
                advance_pair(nk - 1, p, index, &offset, &out_offset)
            fold_each(fold_of(p.kind), <const acc_t*> x + offset, inner, kx, p.count, <acc_t*> out + out_offset, kout)
            if p.kind == REDUCE_MEAN:
                divide(<acc_t*> out + out_offset, inner, kout, p.count)
        return
    if not p.rows:
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
            evaluate(p, x + (offset + j * kx) * p.itemsize, m, scratch, scratch + w, scratch + 2 * w, room - 2 * w)
            store(p.kind, p.dtype, out + (out_offset + j * kout) * size, kout, scratch, m)
            j += m
    free(heap)


cdef inline void advance_pair(int ndim, const Plan* p, Py_ssize_t* index, Py_ssize_t* offset,
                              Py_ssize_t* out_offset) noexcept nogil:
    cdef int d = ndim - 1
    while d >= 0:
        index[d] += 1
        offset[0] += p.kx[d]
        out_offset[0] += p.kout[d]
        if index[d] < p.kshape[d]:
            return
        offset[0] -= p.kshape[d] * p.kx[d]
        out_offset[0] -= p.kshape[d] * p.kout[d]
        index[d] = 0
        d -= 1


# ---- argmax and argmin

cdef inline bint is_nan(acc_t a) noexcept nogil:
    if acc_t is float or acc_t is double:
        return a != a
    else:
        return False


cdef inline bint better(int op, acc_t a, acc_t b) noexcept nogil:
    """a replaces the earlier b"""
    if is_nan(a):
        return not is_nan(b)
    return a > b if op == OP_MAX else a < b


cdef inline Py_ssize_t find(const acc_t* x, Py_ssize_t n, acc_t value) noexcept nogil:
    """The first position of a value (or of a NaN) that is there: 64 elements at a time, so that gcc vectorises."""
    cdef Py_ssize_t i = 0, j
    cdef int hits
    while i + 64 <= n:
        hits = 0
        for j in range(64):
            hits |= (x[i + j] == value) | is_nan(x[i + j])
        if hits:
            break
        i += 64
    while not (x[i] == value or is_nan(x[i])):
        i += 1
    return i


cdef void arg_run(const Plan* p, const char* x, char* out, acc_t tag) noexcept nogil:
    """The reduced dims are in their own order, so that positions count in row-major order."""
    cdef acc_t block[BLOCK]
    cdef acc_t best
    cdef acc_t m
    cdef const acc_t* b
    cdef Py_ssize_t outputs = 1, inner = 1, stride = 1, outer = 1, i, j, k, at, n, position, where
    cdef Py_ssize_t offset = 0, out_offset = 0, roffset
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rindex[MAX_NDIM]
    cdef int d, op = OP_MAX if p.kind == REDUCE_ARGMAX else OP_MIN
    for d in range(p.nk):
        outputs *= p.kshape[d]
        index[d] = 0
    if p.nr:
        inner = p.rshape[p.nr - 1]
        stride = p.rx[p.nr - 1]
    for d in range(p.nr - 1):
        outer *= p.rshape[d]
    for i in range(outputs):
        for d in range(p.nr):
            rindex[d] = 0
        roffset = position = where = 0
        load(&best, p.dtype, x + offset * p.itemsize, 1, 1)
        for j in range(outer):
            at = 0
            while at < inner:
                n = min(inner - at, <Py_ssize_t> BLOCK)
                b = <const acc_t*> (x + (offset + roffset + at * stride) * p.itemsize)
                if not p.direct or stride != 1:
                    load(block, p.dtype, <const char*> b, n, stride)
                    b = block
                if n <= FEW:
                    for k in range(n):
                        if better(op, b[k], best):
                            best = b[k]
                            where = position + k
                    position += n
                    at += n
                    continue
                m = fold_contiguous(op, b, n)
                if better(op, m, best):
                    best = m
                    where = position + find(b, n, m)
                position += n
                at += n
            if outer > 1:
                advance(p.nr - 1, p.rshape, p.rx, rindex, &roffset)
        (<long long*> out)[out_offset] = where
        advance_pair(p.nk, p, index, &offset, &out_offset)


cdef void arg_columns(const Plan* p, const char* x, char* out, acc_t tag) noexcept nogil:
    """As arg_run, for a row of outputs at once: the innermost dim is kept."""
    cdef acc_t best[BLOCK]
    cdef acc_t block[BLOCK]
    cdef long long where[BLOCK]
    cdef const acc_t* b
    cdef bint swap
    cdef Py_ssize_t inner = p.kshape[p.nk - 1], column = p.kx[p.nk - 1], step = p.kout[p.nk - 1], outputs = 1, i, j, k, w, r
    cdef Py_ssize_t offset = 0, out_offset = 0, roffset
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rindex[MAX_NDIM]
    cdef int d, op = OP_MAX if p.kind == REDUCE_ARGMAX else OP_MIN
    for d in range(p.nk - 1):
        outputs *= p.kshape[d]
        index[d] = 0
    for i in range(outputs):
        j = 0
        while j < inner:
            w = min(inner - j, BLOCK)
            for d in range(p.nr):
                rindex[d] = 0
            roffset = 0
            for r in range(p.count):
                b = <const acc_t*> (x + (offset + j * column + roffset) * p.itemsize)
                if not p.direct or column != 1:
                    load(block, p.dtype, <const char*> b, w, column)
                    b = block
                if r == 0:
                    for k in range(w):
                        best[k] = b[k]
                        where[k] = 0
                elif op == OP_MAX:
                    for k in range(w):
                        swap = (b[k] > best[k]) | (is_nan(b[k]) & (not is_nan(best[k])))
                        best[k] = b[k] if swap else best[k]
                        where[k] = r if swap else where[k]
                else:
                    for k in range(w):
                        swap = (b[k] < best[k]) | (is_nan(b[k]) & (not is_nan(best[k])))
                        best[k] = b[k] if swap else best[k]
                        where[k] = r if swap else where[k]
                advance(p.nr, p.rshape, p.rx, rindex, &roffset)
            for k in range(w):
                (<long long*> out)[out_offset + (j + k) * step] = where[k]
            j += w
        advance_pair(p.nk - 1, p, index, &offset, &out_offset)


# ---- the plan

cdef inline Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    """The sort key of a stride: repeated elements (stride 0) belong in the outermost loop."""
    if stride == 0:
        return (<Py_ssize_t> 1) << 62
    return stride if stride > 0 else -stride


cdef bint make_plan(Plan* p, int ndim, const Py_ssize_t* shape, const char** x, const Py_ssize_t* x_strides, char** out,
                    const Py_ssize_t* out_strides) noexcept nogil:
    """False when there is no output at all."""
    cdef int d, at
    cdef Py_ssize_t n, sx, so
    cdef bint arg = p.kind == REDUCE_ARGMAX or p.kind == REDUCE_ARGMIN
    p.nk = p.nr = 0
    p.count = 1
    for d in range(ndim):
        n = shape[d]
        if n == 1:
            continue
        sx = x_strides[d]
        so = out_strides[d]
        if so == 0:
            p.count *= n
            if sx < 0 and not arg and n > 0:
                x[0] += (n - 1) * sx * p.itemsize
                sx = -sx
            at = p.nr
            if not arg:
                while at > 0 and magnitude(p.rx[at - 1]) < magnitude(sx):
                    p.rshape[at] = p.rshape[at - 1]
                    p.rx[at] = p.rx[at - 1]
                    at -= 1
            p.rshape[at] = n
            p.rx[at] = sx
            p.nr += 1
        else:
            if n == 0:
                return False
            if sx < 0:
                x[0] += (n - 1) * sx * p.itemsize
                out[0] += (n - 1) * so * out_itemsize(p.kind, p.dtype)
                sx = -sx
                so = -so
            at = p.nk
            while at > 0 and magnitude(p.kx[at - 1]) < magnitude(sx):
                p.kshape[at] = p.kshape[at - 1]
                p.kx[at] = p.kx[at - 1]
                p.kout[at] = p.kout[at - 1]
                at -= 1
            p.kshape[at] = n
            p.kx[at] = sx
            p.kout[at] = so
            p.nk += 1
    coalesce(p)
    p.rows = p.nk == 0 or (p.nr > 0 and magnitude(p.rx[p.nr - 1]) < magnitude(p.kx[p.nk - 1]))
    if p.rows and p.count <= FEW and p.nk and p.kshape[p.nk - 1] >= 8 and not (arg or each_row(p)):
        p.rows = False        # many folds of a few elements
    return True


cdef void coalesce(Plan* p) noexcept nogil:
    """Merge neighbours that step as one dim."""
    cdef int d, top = 0
    for d in range(1, p.nk):
        if p.kx[top] == p.kx[d] * p.kshape[d] and p.kout[top] == p.kout[d] * p.kshape[d]:
            p.kshape[top] *= p.kshape[d]
        else:
            top += 1
            p.kshape[top] = p.kshape[d]
        p.kx[top] = p.kx[d]
        p.kout[top] = p.kout[d]
    if p.nk:
        p.nk = top + 1
    top = 0
    for d in range(1, p.nr):
        if p.rx[top] == p.rx[d] * p.rshape[d]:
            p.rshape[top] *= p.rshape[d]
        else:
            top += 1
            p.rshape[top] = p.rshape[d]
        p.rx[top] = p.rx[d]
    if p.nr:
        p.nr = top + 1


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


cdef void reduce(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                 char* out, const Py_ssize_t* out_strides, double param) noexcept nogil:
    if kind <= REDUCE_MIN:
        if dtype == FLOAT32:
            if quick(kind, ndim, shape, <const float*> x, x_strides, <float*> out, out_strides):
                return
        elif dtype == FLOAT64:
            if quick(kind, ndim, shape, <const double*> x, x_strides, <double*> out, out_strides):
                return
    general(kind, dtype, ndim, shape, x, x_strides, out, out_strides, param)


K.reduce = reduce
