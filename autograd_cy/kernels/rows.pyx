# Softmax, log_softmax and cross entropy over the rows of a contiguous matrix, and their gradients; probabilities checked.
#
# Relies on fold.pxd (sums and maxima of a row), vecmath.h and a sum of normalize.h.  The engine relies on it, through K.
#
# Narrow rows are transposed in groups, so that every loop runs over the rows: exp of three elements costs as much as of
# sixteen, and one log per row costs more than all the rest.  Softmax over another dim than the last is a routine: it takes
# some adjacent columns at a time.

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.fold cimport OP_MAX, OP_SUM, fold_columns, fold_contiguous, fold_each, fold_row
from autograd_cy.kernels.table cimport BLOCK, Array, K, add_routine

cdef extern from "vecmath.h" nogil:
    float ag_exp_f32(float x) noexcept
    double ag_exp_f64(double x) noexcept
    float ag_log_f32(float x) noexcept
    double ag_log_f64(double x) noexcept

cdef extern from "normalize.h" nogil:
    double ag_run_dot_f32(Py_ssize_t n, const float* x, const float* y) noexcept
    double ag_run_dot_f64(Py_ssize_t n, const double* x, const double* y) noexcept

ctypedef fused real:
    float
    double

cdef enum:
    NARROW = 32               # columns up to which rows are transposed in groups
    FEW = 4                   # rows from which they are
    GROUP = 32                # rows of a group: 32 x 32 doubles are 8 KB of stack
    STRIP = 128               # adjacent columns taken at once
    PART = 1024               # their elements: 8 KB of stack


cdef inline real exp_of(real x) noexcept nogil:
    if real is float:
        return ag_exp_f32(x)
    else:
        return ag_exp_f64(x)


cdef inline real log_of(real x) noexcept nogil:
    if real is float:
        return ag_log_f32(x)
    else:
        return ag_log_f64(x)


cdef inline Py_ssize_t whole(Py_ssize_t n) noexcept nogil:
    """n rounded up to whole vectors: what is behind n in a buffer of our own may be computed, too."""
    return (n + 15) // 16 * 16


cdef inline Py_ssize_t chunk(Py_ssize_t cols, Py_ssize_t at, Py_ssize_t width) noexcept nogil:
    """Elements of each of `width` columns that are taken at once, from `at` on."""
    return min(min(<Py_ssize_t> 64, PART // width), cols - at)


cdef inline Py_ssize_t strip_of(Py_ssize_t cols) noexcept nogil:
    """How many adjacent columns are taken at once: so few that all of their elements fit, unless that is too few."""
    return PART // cols // 16 * 16 if PART // STRIP < cols <= 16 else <Py_ssize_t> STRIP


cdef void softmax_strip(Py_ssize_t cols, Py_ssize_t step, Py_ssize_t width, const real* x, real* y, real* logs, bint log) noexcept nogil:
    """softmax_group for up to STRIP adjacent columns, whose elements are `step` apart. Exponentials run over a block that is gathered
    from the columns, as these may be few."""
    cdef real t[PART]
    cdef real some[STRIP]
    cdef real largest[STRIP]
    cdef real sums[STRIP]
    cdef const real* e
    cdef Py_ssize_t at = 0, n, i, j
    cdef bint once = chunk(cols, 0, width) == cols
    for j in range(STRIP):
        sums[j] = 0
        largest[j] = -INFINITY
    while at < cols:
        n = chunk(cols, at, width)
        fold_columns(OP_MAX, x + at * step, n, step, width, some)
        fold_row(OP_MAX, largest, some, width)
        at += n
    at = 0
    while at < cols:
        n = chunk(cols, at, width)
        for i in range(n):
            for j in range(width):
                t[i * width + j] = x[(at + i) * step + j] - largest[j]
        for i in range(whole(n * width)):
            t[i] = exp_of(t[i])
        fold_columns(OP_SUM, t, n, width, width, some)
        fold_row(OP_SUM, sums, some, width)
        if not (log or once):
            for i in range(n):
                for j in range(width):
                    y[(at + i) * step + j] = t[i * width + j]
        at += n
    if log or logs != NULL:
        for j in range(whole(width)):
            some[j] = log_of(sums[j])
    if logs != NULL:
        for j in range(width):
            logs[j] = largest[j] + some[j]
    for j in range(whole(width)):
        sums[j] = <real> 1 / sums[j]
    for i in range(cols):
        if log:
            for j in range(width):
                y[j] = x[j] - largest[j] - some[j]
        else:
            e = t + i * width
            if not once:
                memcpy(some, y, width * sizeof(real))
                e = some
            for j in range(width):
                y[j] = e[j] * sums[j]
        x += step
        y += step


cdef void narrow_rows(Py_ssize_t rows, Py_ssize_t cols, const real* x, real* y, real* logs, bint log) noexcept nogil:
    """softmax_group for up to GROUP rows of up to NARROW columns, transposed."""
    cdef real t[GROUP * NARROW]
    cdef real u[GROUP * NARROW]
    cdef Py_ssize_t i, c
    for c in range(cols):
        for i in range(rows):
            t[c * GROUP + i] = x[i * cols + c]
    softmax_strip(cols, GROUP, rows, t, u, logs, log)
    for c in range(cols):
        for i in range(rows):
            y[i * cols + c] = u[c * GROUP + i]


cdef void wide_row(Py_ssize_t cols, const real* x, real* y, real* logs, bint log) noexcept nogil:
    cdef Py_ssize_t j, at = 0, n
    cdef real block[BLOCK]
    cdef real m = fold_contiguous(OP_MAX, x, cols)
    cdef real s = 0
    if log:
        while at < cols:
            n = min(cols - at, <Py_ssize_t> BLOCK)
            for j in range(n):
                block[j] = exp_of(x[at + j] - m)
            s += fold_contiguous(OP_SUM, block, n)
            at += n
        s = log_of(s)
        for j in range(cols):
            y[j] = x[j] - m - s
        return
    for j in range(cols):
        y[j] = exp_of(x[j] - m)
    s = fold_contiguous(OP_SUM, y, cols)
    if logs != NULL:
        logs[0] = m + log_of(s)
    s = <real> 1 / s
    for j in range(cols):
        y[j] = y[j] * s


cdef inline Py_ssize_t group_of(Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """Rows handled at once. A few rows are not worth the transposition: one row of 10 takes 115 ns with it, 30 without."""
    return GROUP if cols <= NARROW and rows >= FEW else 1


cdef void softmax_group(Py_ssize_t group, Py_ssize_t rows, Py_ssize_t cols, const real* x, real* y, real* logs,
                        bint log) noexcept nogil:
    """y = exp(x - max) / sum, or its logarithm; when logs is not NULL, also logs[i] = max + log(sum) of row i."""
    if group > 1:
        narrow_rows(rows, cols, x, y, logs, log)
    else:
        wide_row(cols, x, y, logs, log)


cdef void softmax_rows(Py_ssize_t rows, Py_ssize_t cols, const real* x, real* out, bint log) noexcept nogil:
    cdef Py_ssize_t i = 0, n, group = group_of(rows, cols)
    if cols == 0:
        return
    while i < rows:
        n = min(group, rows - i)
        softmax_group(group, n, cols, x + i * cols, out + i * cols, NULL, log)
        i += n


cdef void narrow_backward(Py_ssize_t rows, Py_ssize_t cols, const real* g, const real* y, real* dx, bint log) noexcept nogil:
    """backward_rows for up to GROUP rows of up to NARROW columns."""
    cdef real t[GROUP * NARROW]
    cdef real sums[GROUP]
    cdef Py_ssize_t i, _j, k = 0, n = rows * cols
    if log:
        fold_each(OP_SUM, g, rows, cols, cols, sums, 1)
        for i in range(n):
            t[i] = exp_of(y[i])
        for i in range(rows):
            for _j in range(cols):
                dx[k] = g[k] - t[k] * sums[i]
                k += 1
        return
    for i in range(n):
        t[i] = g[i] * y[i]
    fold_each(OP_SUM, t, rows, cols, cols, sums, 1)
    for i in range(rows):
        for _j in range(cols):
            dx[k] = y[k] * (g[k] - sums[i])
            k += 1


cdef void backward_rows(Py_ssize_t rows, Py_ssize_t cols, const real* g, const real* y, real* dx, bint log) noexcept nogil:
    """softmax: y * (g - sum(g * y)); log_softmax: g - exp(y) * sum(g)"""
    cdef Py_ssize_t i = 0, j, at, n
    cdef real s
    if cols == 0:
        return
    while i < rows:
        if cols <= NARROW:
            n = min(<Py_ssize_t> GROUP, rows - i)
            narrow_backward(n, cols, g, y, dx, log)
        else:
            n = 1
            if log:
                s = fold_contiguous(OP_SUM, g, cols)
                for j in range(cols):
                    dx[j] = g[j] - exp_of(y[j]) * s
            else:
                s = 0                 # in registers: products in a block beside three rows would not fit into the first-level cache
                at = 0
                while at < cols:
                    n = min(cols - at, <Py_ssize_t> BLOCK)
                    if real is float:
                        s += <real> ag_run_dot_f32(n, g + at, y + at)
                    else:
                        s += ag_run_dot_f64(n, g + at, y + at)
                    at += n
                n = 1
                for j in range(cols):
                    dx[j] = y[j] * (g[j] - s)
        i += n
        g += n * cols
        y += n * cols
        dx += n * cols


# ---- losses of classes: x is (outer, cols, step) with classes in the middle, target and losses are (outer, step). ints: outer, cols, step,
# the target that counts for nothing, and what happens to losses: 0 nothing, 1 their mean over weights, 2 their sum.

cdef void even_shares(Py_ssize_t n, Py_ssize_t cols, Py_ssize_t step, const real* x, const real* logs, const real* weight,
                      real* sums) noexcept nogil:
    """sums[k] = the sum over classes of weight (logs[k] - x), for n positions."""
    cdef real block[BLOCK]
    cdef Py_ssize_t c, k, at, width
    cdef real w
    for k in range(n):
        sums[k] = 0
    if step != 1:
        for c in range(cols):
            w = weight[c] if weight != NULL else <real> 1
            for k in range(n):
                sums[k] += (logs[k] - x[c * step + k]) * w
        return
    for k in range(n):
        at = 0
        while at < cols:
            width = min(cols - at, <Py_ssize_t> BLOCK)
            for c in range(width):
                block[c] = logs[k] - x[at + c]
            for c in range(width if weight != NULL else 0):
                block[c] *= weight[at + c]
            sums[k] += fold_contiguous(OP_SUM, block, width)
            at += width
        x += cols


cdef Py_ssize_t entropy(real tag, const Array* arrays, const Py_ssize_t* ints, double smoothing) noexcept nogil:
    """Cross entropy of softmax(x), which prob becomes (NULL: x are logarithms already); counted: the sum of the weights that count."""
    cdef real* out = <real*> arrays[0].data
    cdef real* counted = <real*> arrays[1].data
    cdef real* prob = <real*> arrays[2].data
    cdef const real* x = <const real*> arrays[3].data
    cdef const long long* target = <const long long*> arrays[4].data
    cdef const real* weight = <const real*> arrays[5].data
    cdef Py_ssize_t cols = ints[1], step = ints[2], rows = ints[0] * ints[2], i = 0, k, n, at, t
    cdef Py_ssize_t apart = cols if step == 1 else 1, group = group_of(rows, cols)
    cdef Py_ssize_t count = 0
    cdef double total = 0
    cdef double sum = 0
    cdef real logs[STRIP]
    cdef real shares[STRIP]
    cdef real part[STRIP]
    cdef real* losses = part
    cdef real loss
    for k in range(STRIP):
        logs[k] = 0
    for k in range(rows):
        if target[k] == ints[3]:
            continue
        if not 0 <= target[k] < cols:
            return k
        count += 1
        if weight != NULL:
            total += weight[target[k]]
    total = total if weight != NULL else <double> count
    counted[0] = <real> total
    while i < rows:
        n, at = min(group if prob != NULL else <Py_ssize_t> STRIP, rows - i), i * cols
        if step != 1:
            n, at = min(strip_of(cols), step - i % step), i // step * cols * step + i % step
        if prob != NULL and cols:
            if step == 1:
                softmax_group(group, n, cols, x + at, prob + at, logs, False)
            else:
                softmax_strip(cols, step, n, x + at, prob + at, logs, False)
        if smoothing != 0:
            even_shares(n, cols, step, x + at, logs, weight, shares)
        if ints[4] == 0:
            losses = out + i
        for k in range(n):
            t = target[i + k]
            loss = 0
            if t != ints[3]:
                loss = (weight[t] if weight != NULL else <real> 1) * (logs[k] - x[at + k * apart + t * step])
                if smoothing != 0:
                    loss = <real> (1 - smoothing) * loss + <real> (smoothing / cols) * shares[k]
            losses[k] = loss
        if ints[4]:
            sum += fold_contiguous(OP_SUM, part, n)
        i += n
    if ints[4]:
        out[0] = <real> (sum / total if ints[4] == 1 else sum)
    return -1


cdef Py_ssize_t entropy_back(real tag, const Array* arrays, const Py_ssize_t* ints, double smoothing) noexcept nogil:
    """(1 - s) w[t] (p - onehot(t)) + s / C (p sum(w) - w), times g; 0 where that is 0 or the target ignored. Without prob p is 0."""
    cdef real* dx = <real*> arrays[0].data
    cdef const real* g = <const real*> arrays[1].data
    cdef const real* prob = <const real*> arrays[2].data
    cdef const long long* target = <const long long*> arrays[3].data
    cdef const real* weight = <const real*> arrays[4].data
    cdef const real* counted = <const real*> arrays[5].data
    cdef Py_ssize_t cols = ints[1], step = ints[2], rows = ints[0] * ints[2], i = 0, j, k, n, at, line
    cdef Py_ssize_t apart = cols if step == 1 else 1
    cdef Py_ssize_t each = 1 if ints[4] == 0 else 0
    cdef real total = <real> cols, gi
    cdef real mean = g[0] / counted[0] if ints[4] == 1 else 0
    cdef real hit[STRIP]
    cdef real even[STRIP]
    cdef real both[STRIP]
    if ints[4] == 1:
        g = &mean
    if weight != NULL and smoothing != 0:
        total = fold_contiguous(OP_SUM, weight, cols)
    while i < rows:
        n, at = min(<Py_ssize_t> STRIP, rows - i), i * cols
        if step != 1:
            n, at = min(<Py_ssize_t> STRIP, step - i % step), i // step * cols * step + i % step
        for k in range(n):
            gi = g[(i + k) * each] if target[i + k] != ints[3] else 0
            hit[k] = even[k] = 0
            if gi != 0:
                hit[k] = gi * <real> (1 - smoothing) * (weight[target[i + k]] if weight != NULL else <real> 1)
                even[k] = gi * <real> (smoothing / cols)
            both[k] = hit[k] + even[k] * total
        if step == 1 and prob == NULL:
            memset(dx + at, 0, n * cols * sizeof(real))
        for k in range(n if step == 1 and prob != NULL else 0):
            line, gi = at + k * cols, both[k]
            if gi == 0:
                memset(dx + line, 0, cols * sizeof(real))
                continue
            for j in range(cols):
                dx[line + j] = gi * prob[line + j]
            gi = even[k]
            for j in range(cols if smoothing != 0 else 0):
                dx[line + j] -= gi * (weight[j] if weight != NULL else <real> 1)
        for j in range(0 if step == 1 else cols):
            line = at + j * step
            if prob == NULL:
                memset(dx + line, 0, n * sizeof(real))
                continue
            gi = weight[j] if weight != NULL else <real> 1
            for k in range(n):
                dx[line + k] = both[k] * prob[line + k] - even[k] * gi if both[k] != 0 else 0
        for k in range(n):
            if target[i + k] != ints[3]:
                dx[at + k * apart + target[i + k] * step] -= hit[k]
        i += n
    return -1


cdef Py_ssize_t cross_entropy(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return entropy[float](0, arrays, ints, numbers[0]) if arrays[0].dtype == FLOAT32 else entropy[double](0, arrays, ints, numbers[0])


cdef Py_ssize_t cross_entropy_back(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return entropy_back[float](0, arrays, ints, numbers[0]) if arrays[0].dtype == FLOAT32 else \
        entropy_back[double](0, arrays, ints, numbers[0])


cdef Py_ssize_t first_outside(Py_ssize_t n, const real* x) noexcept nogil:
    """-1, or the first element that lies outside [0, 1]: in blocks, so that the loop within one has no exit."""
    cdef Py_ssize_t i, at = 0, size
    cdef int outside
    while at < n:
        size = min(n - at, <Py_ssize_t> BLOCK)
        outside = 0
        for i in range(size):
            outside |= (x[at + i] < 0) | (x[at + i] > 1)
        if outside:
            for i in range(size):
                if x[at + i] < 0 or x[at + i] > 1:
                    return at + i
        at += size
    return -1


cdef void softmax_columns(Py_ssize_t outer, Py_ssize_t cols, Py_ssize_t step, const real* x, real* y, bint log) noexcept nogil:
    cdef Py_ssize_t _, j, width = strip_of(cols)
    for _ in range(outer):
        j = 0
        while j < step:
            softmax_strip(cols, step, min(width, step - j), x + j, y + j, NULL, log)
            j += width
        x += cols * step
        y += cols * step


cdef Py_ssize_t softmax_along(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """Softmax, or its logarithm, of a contiguous array seen as (outer, cols, step), over cols; none of them is 0."""
    if arrays[0].dtype == FLOAT32:
        softmax_columns(ints[0], ints[1], ints[2], <const float*> arrays[1].data, <float*> arrays[0].data, ints[3])
    else:
        softmax_columns(ints[0], ints[1], ints[2], <const double*> arrays[1].data, <double*> arrays[0].data, ints[3])
    return -1


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


cdef Py_ssize_t outside_unit(int dtype, Py_ssize_t n, const char* x) noexcept nogil:
    if dtype == FLOAT32:
        return first_outside(n, <const float*> x)
    return first_outside(n, <const double*> x)


K.softmax = softmax
K.softmax_backward = softmax_backward
K.outside_unit = outside_unit
add_routine("rows.softmax", "wr", softmax_along)
add_routine("rows.cross_entropy", "wwwrrr", cross_entropy, (IndexError, "a target is no class"))
add_routine("rows.cross_entropy_back", "wrrrrr", cross_entropy_back)
