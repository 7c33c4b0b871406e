# Softmax, log_softmax and cross entropy over the rows of a contiguous matrix, and their gradients.
#
# Relies on fold.pxd (sums and maxima of a row) and on vecmath.h.  The engine relies on it, through K.
#
# Narrow rows are handled in groups whose elements fit the cache, so that exp runs over one long vector: per row, exp of
# three elements costs as much as of sixteen.

from libc.math cimport INFINITY

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.fold cimport OP_MAX, OP_SUM, fold_contiguous
from autograd_cy.kernels.table cimport BLOCK, K

cdef extern from "vecmath.h" nogil:
    float ag_exp_f32(float x) noexcept
    double ag_exp_f64(double x) noexcept
    float ag_log_f32(float x) noexcept
    double ag_log_f64(double x) noexcept

ctypedef fused real:
    float
    double

cdef enum:
    NARROW = 32               # columns up to which rows are handled in groups


cdef void exp_block(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if real is float:
            x[i] = ag_exp_f32(x[i])
        else:
            x[i] = ag_exp_f64(x[i])


cdef inline real log_of(real x) noexcept nogil:
    if real is float:
        return ag_log_f32(x)
    else:
        return ag_log_f64(x)


cdef inline real row_max(const real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef real m
    if n >= NARROW:
        return fold_contiguous(OP_MAX, x, n)
    m = x[0]                  # a NaN shows through the exponentials anyway
    for i in range(1, n):
        m = x[i] if x[i] > m else m
    return m


cdef inline real row_sum(const real* x, Py_ssize_t n) noexcept nogil:
    return fold_contiguous(OP_SUM, x, n)


cdef Py_ssize_t group_of(Py_ssize_t cols) noexcept nogil:
    """Rows handled at once."""
    return BLOCK // cols if cols <= NARROW else 1


cdef void softmax_group(Py_ssize_t rows, Py_ssize_t cols, const real* x, real* y, real* logs) noexcept nogil:
    """y = exp(x - max) / sum; when logs is not NULL, also logs[i] = max + log(sum) of row i."""
    cdef Py_ssize_t i, j
    cdef real m
    cdef real s
    cdef const real* a
    cdef real* b
    for i in range(rows):
        a = x + i * cols
        b = y + i * cols
        m = row_max(a, cols)
        if logs != NULL:
            logs[i] = m
        for j in range(cols):
            b[j] = a[j] - m
    exp_block(y, rows * cols)
    for i in range(rows):
        b = y + i * cols
        s = row_sum(b, cols)
        if logs != NULL:
            logs[i] += log_of(s)
        s = <real> 1 / s
        for j in range(cols):
            b[j] = b[j] * s


cdef void log_softmax_group(Py_ssize_t rows, Py_ssize_t cols, const real* x, real* y) noexcept nogil:
    """y = (x - max) - log(sum(exp(x - max)))"""
    cdef Py_ssize_t i, j, at, n
    cdef real block[BLOCK]
    cdef real sums[BLOCK]
    cdef real m
    cdef real s
    cdef const real* a
    cdef real* b
    for i in range(rows):
        a = x + i * cols
        b = y + i * cols
        m = row_max(a, cols)
        for j in range(cols):
            b[j] = a[j] - m
    if rows * cols <= BLOCK:
        for i in range(rows * cols):
            block[i] = y[i]
        exp_block(block, rows * cols)
        for i in range(rows):
            sums[i] = log_of(row_sum(block + i * cols, cols))
    else:                     # one long row
        at = n = 0
        s = 0
        while at < cols:
            n = min(cols - at, <Py_ssize_t> BLOCK)
            for j in range(n):
                block[j] = y[at + j]
            exp_block(block, n)
            s += row_sum(block, n)
            at += n
        sums[0] = log_of(s)
    for i in range(rows):
        b = y + i * cols
        s = sums[i]
        for j in range(cols):
            b[j] = b[j] - s


cdef void softmax_rows(Py_ssize_t rows, Py_ssize_t cols, const real* x, real* out, bint log) noexcept nogil:
    cdef Py_ssize_t i = 0, n
    if cols == 0:
        return
    while i < rows:
        n = min(group_of(cols), rows - i)
        if log:
            log_softmax_group(n, cols, x + i * cols, out + i * cols)
        else:
            softmax_group(n, cols, x + i * cols, out + i * cols, NULL)
        i += n


cdef void backward_rows(Py_ssize_t rows, Py_ssize_t cols, const real* g, const real* y, real* dx, bint log) noexcept nogil:
    """softmax: y * (g - sum(g * y)); log_softmax: g - exp(y) * sum(g)"""
    cdef Py_ssize_t i, j, k, at, n
    cdef real block[BLOCK]
    cdef real s
    cdef const real* a
    cdef const real* b
    cdef real* d
    for i in range(rows):
        a = g + i * cols
        b = y + i * cols
        d = dx + i * cols
        if log:
            s = row_sum(a, cols)
            at = 0
            while at < cols:
                n = min(cols - at, <Py_ssize_t> BLOCK)
                for j in range(n):
                    block[j] = b[at + j]
                exp_block(block, n)
                for j in range(n):
                    d[at + j] = a[at + j] - block[j] * s
                at += n
        else:
            s = 0
            at = 0
            while at < cols:
                n = min(cols - at, <Py_ssize_t> BLOCK)
                for j in range(n):
                    block[j] = a[at + j] * b[at + j]
                s += row_sum(block, n)
                at += n
            for j in range(cols):
                d[j] = b[j] * (a[j] - s)


cdef Py_ssize_t entropy_rows(Py_ssize_t rows, Py_ssize_t cols, const real* x, const long long* target, const real* weight,
                             long long ignore_index, double smoothing, real* prob, real* losses) noexcept nogil:
    cdef Py_ssize_t i = 0, j, k, n, bad = -1
    cdef real logs[BLOCK]
    cdef real s
    cdef real loss
    cdef real w
    cdef const real* a
    for i in range(rows):
        if target[i] != ignore_index and not 0 <= target[i] < cols:
            return i
    i = 0
    while i < rows:
        n = min(group_of(cols), rows - i)
        softmax_group(n, cols, x + i * cols, prob + i * cols, logs)
        for k in range(n):
            if target[i + k] == ignore_index:
                losses[i + k] = 0
                continue
            a = x + (i + k) * cols
            w = weight[target[i + k]] if weight != NULL else <real> 1
            loss = w * (logs[k] - a[target[i + k]])
            if smoothing != 0:
                s = 0
                for j in range(cols):
                    s += (logs[k] - a[j]) * (weight[j] if weight != NULL else <real> 1)
                loss = <real> (1 - smoothing) * loss + <real> (smoothing / cols) * s
            losses[i + k] = loss
        i += n
    return -1


cdef void entropy_backward_rows(Py_ssize_t rows, Py_ssize_t cols, const real* g, Py_ssize_t g_stride, const real* prob,
                                const long long* target, const real* weight, long long ignore_index, double smoothing,
                                real* dx) noexcept nogil:
    """(1 - s) w[t] (p - onehot(t)) + s / C (p sum(w) - w), times g; rows that are ignored or whose g is 0 are 0."""
    cdef Py_ssize_t i, j, t
    cdef real total = <real> cols, hit, even, gi, c
    cdef const real* p
    cdef real* d
    if weight != NULL and smoothing != 0:
        total = row_sum(weight, cols)
    for i in range(rows):
        p = prob + i * cols
        d = dx + i * cols
        gi = g[i * g_stride]
        if target[i] == ignore_index or gi == 0:
            for j in range(cols):
                d[j] = 0
            continue
        t = target[i]
        hit = gi * <real> (1 - smoothing) * (weight[t] if weight != NULL else <real> 1)
        if smoothing == 0:
            for j in range(cols):
                d[j] = hit * p[j]
        else:
            even = gi * <real> (smoothing / cols)
            c = hit + even * total
            if weight != NULL:
                for j in range(cols):
                    d[j] = c * p[j] - even * weight[j]
            else:
                for j in range(cols):
                    d[j] = c * p[j] - even
        d[t] -= hit


# ---- the entries of K

cdef void softmax(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* x, char* out, int log) noexcept nogil:
    if dtype == FLOAT32:
        softmax_rows(rows, cols, <const float*> x, <float*> out, log)
    else:
        softmax_rows(rows, cols, <const double*> x, <double*> out, log)


cdef void softmax_backward(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* g, const char* y, char* dx,
                           int log) noexcept nogil:
    if dtype == FLOAT32:
        backward_rows(rows, cols, <const float*> g, <const float*> y, <float*> dx, log)
    else:
        backward_rows(rows, cols, <const double*> g, <const double*> y, <double*> dx, log)


cdef Py_ssize_t cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* x, const long long* target,
                              const char* weight, long long ignore_index, double smoothing, char* prob,
                              char* losses) noexcept nogil:
    if dtype == FLOAT32:
        return entropy_rows(rows, cols, <const float*> x, target, <const float*> weight, ignore_index, smoothing,
                            <float*> prob, <float*> losses)
    return entropy_rows(rows, cols, <const double*> x, target, <const double*> weight, ignore_index, smoothing,
                        <double*> prob, <double*> losses)


cdef void cross_entropy_backward(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* g, Py_ssize_t g_stride,
                                 const char* prob, const long long* target, const char* weight, long long ignore_index,
                                 double smoothing, char* dx) noexcept nogil:
    if dtype == FLOAT32:
        entropy_backward_rows(rows, cols, <const float*> g, g_stride, <const float*> prob, target, <const float*> weight,
                              ignore_index, smoothing, <float*> dx)
    else:
        entropy_backward_rows(rows, cols, <const double*> g, g_stride, <const double*> prob, target, <const double*> weight,
                              ignore_index, smoothing, <double*> dx)


K.softmax = softmax
K.softmax_backward = softmax_backward
K.cross_entropy = cross_entropy
K.cross_entropy_backward = cross_entropy_backward
