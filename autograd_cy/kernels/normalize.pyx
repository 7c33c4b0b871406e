# Normalisation of rows (layer, group, instance and RMS norm) and of channels (batch norm), forward and backward, fused.
#
# Relies on table (routines), normalize.h and fold.pxd (sums). engine/normalize.py relies on it.
#
# Mean and variance come from blocks that stay in the first-level cache: two passes over each, and the blocks' moments are merged
# in double (Chan, Golub and LeVeque, 1983), so that memory is read once and nothing cancels.
#
# Arrays are contiguous and of one dtype, float32 or float64.
# rows: x (rows, cols); ints rows, cols, groups, span, centred. Element j of row r has weight and bias number
# (r % groups) * (cols / span) + j / span: span 1 for layer norm, a channel's elements for group norm. Not centred: mean is 0.
# channels: x (n, channels, span); ints n, channels, span, and where statistics come from: 0 the batch, which the running ones follow;
# 1 the running ones; 2 these, and the second is 1 / sqrt(var + eps) already. The gradient knows whether they come from elsewhere.

from libc.math cimport sqrt

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.fold cimport OP_SUM, fold_columns
from autograd_cy.kernels.table cimport BLOCK, Array, add_routine

ctypedef fused real:
    float
    double

cdef extern from "normalize.h" nogil:
    double ag_run_sum_f32(Py_ssize_t n, const float* x) noexcept
    double ag_run_sum_f64(Py_ssize_t n, const double* x) noexcept
    double ag_run_squares_f32(Py_ssize_t n, const float* x, float middle) noexcept
    double ag_run_squares_f64(Py_ssize_t n, const double* x, double middle) noexcept
    void ag_run_weighted_f32(Py_ssize_t n, const float* g, const float* x, const float* w, float mean, float scale, double* sums) noexcept
    void ag_run_weighted_f64(Py_ssize_t n, const double* g, const double* x, const double* w, double mean, double scale,
                             double* sums) noexcept
    void ag_run_products_f32(Py_ssize_t n, const float* g, const float* x, float mean, float scale, double* sums) noexcept
    void ag_run_products_f64(Py_ssize_t n, const double* g, const double* x, double mean, double scale, double* sums) noexcept
    void ag_row_back_f32(Py_ssize_t n, const float* g, const float* x, const float* w, float mean, float scale, float a, float t,
                         float* dx, float* dw, float* db) noexcept
    void ag_row_back_f64(Py_ssize_t n, const double* g, const double* x, const double* w, double mean, double scale, double a, double t,
                         double* dx, double* dw, double* db) noexcept

cdef enum:
    ROWS = 64                 # of a block of columns
    GATHERED = 512            # elements of a channel of an image up to which those of several are gathered

cdef struct Moments:
    double count, mean, squares       # squares: the sum of (x - mean) ** 2


cdef inline double run_sum(const real* x, Py_ssize_t n) noexcept nogil:
    if real is float:
        return ag_run_sum_f32(n, x)
    else:
        return ag_run_sum_f64(n, x)


cdef inline double run_squares(const real* x, Py_ssize_t n, real middle) noexcept nogil:
    if real is float:
        return ag_run_squares_f32(n, x, middle)
    else:
        return ag_run_squares_f64(n, x, middle)


cdef void add_block(Moments* m, const real* x, Py_ssize_t n, bint centred) noexcept nogil:
    """Take up to BLOCK elements into the moments."""
    cdef double total = <double> n, mean = 0, squares, off
    cdef real middle
    if centred:
        mean = run_sum(x, n) / total
    middle = <real> mean
    squares = run_squares(x, n, middle) - total * (mean - middle) * (mean - middle)
    if m.count == 0:
        m.count, m.mean, m.squares = total, mean, squares
        return
    off = mean - m.mean
    m.mean += off * total / (m.count + total)
    m.squares += squares + off * off * m.count * total / (m.count + total)
    m.count += total


cdef void add_run(Moments* m, const real* x, Py_ssize_t n, bint centred) noexcept nogil:
    cdef Py_ssize_t at = 0
    while at < n:
        add_block(m, x + at, min(n - at, <Py_ssize_t> BLOCK), centred)
        at += BLOCK


# ---- rows

cdef Py_ssize_t rows_of(real tag, const Array* arrays, const Py_ssize_t* ints, double eps) noexcept nogil:
    cdef real* y = <real*> arrays[0].data
    cdef real* means = <real*> arrays[1].data
    cdef real* scales = <real*> arrays[2].data
    cdef const real* x = <const real*> arrays[3].data
    cdef const real* w = <const real*> arrays[4].data
    cdef const real* b = <const real*> arrays[5].data
    cdef Py_ssize_t r, j, c, k, cols = ints[1], span = ints[3], channels = ints[1] // ints[3] if ints[3] else 0
    cdef Moments m
    cdef real mean, scale, factor, shift
    for r in range(ints[0]):
        m.count = m.mean = m.squares = 0
        add_run(&m, x, cols, ints[4])
        mean, scale = <real> m.mean, <real> (1.0 / sqrt(m.squares / cols + eps))
        means[r], scales[r] = mean, scale
        k = r % ints[2] * channels
        if span == 1:
            if b != NULL:
                for j in range(cols):
                    y[j] = (x[j] - mean) * scale * w[k + j] + b[k + j]
            else:
                for j in range(cols):
                    y[j] = (x[j] - mean) * scale * w[k + j]
            x += cols
            y += cols
            continue
        for c in range(channels):
            factor = scale * w[k + c]
            shift = b[k + c] if b != NULL else 0
            for j in range(span):
                y[j] = (x[j] - mean) * factor + shift
            x += span
            y += span
    return -1


cdef void products(const real* g, const real* x, const real* w, real mean, real scale, Py_ssize_t n, double* sums) noexcept nogil:
    """sums[0] += the sum of g w, sums[1] += the sum of g w (x - mean) scale; w NULL: 1."""
    cdef Py_ssize_t at = 0, some
    while at < n:
        some = min(n - at, <Py_ssize_t> BLOCK)
        if real is float:
            if w != NULL:
                ag_run_weighted_f32(some, g + at, x + at, w + at, mean, scale, sums)
            else:
                ag_run_products_f32(some, g + at, x + at, mean, scale, sums)
        else:
            if w != NULL:
                ag_run_weighted_f64(some, g + at, x + at, w + at, mean, scale, sums)
            else:
                ag_run_products_f64(some, g + at, x + at, mean, scale, sums)
        at += some


cdef Py_ssize_t rows_back(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    cdef real* dx = <real*> arrays[0].data
    cdef real* dw = <real*> arrays[1].data
    cdef real* db = <real*> arrays[2].data
    cdef const real* g = <const real*> arrays[3].data
    cdef const real* x = <const real*> arrays[4].data
    cdef const real* w = <const real*> arrays[5].data
    cdef const real* means = <const real*> arrays[6].data
    cdef const real* scales = <const real*> arrays[7].data
    cdef Py_ssize_t r, j, c, k, at, cols = ints[1], span = ints[3], channels = ints[1] // ints[3] if ints[3] else 0
    cdef real mean, scale, factor, a, t
    cdef double sums[2]
    cdef double each[2]
    for j in range(channels * ints[2]):
        dw[j] = db[j] = 0
    for r in range(ints[0]):
        mean, scale = means[r], scales[r]
        sums[0] = sums[1] = 0
        k = r % ints[2] * channels
        if span == 1:
            products(g, x, w + k, mean, scale, cols, sums)
        else:
            for c in range(channels):
                each[0] = each[1] = 0
                products(g + c * span, x + c * span, NULL, mean, scale, span, each)
                dw[k + c] += <real> each[1]
                db[k + c] += <real> each[0]
                sums[0] += each[0] * w[k + c]
                sums[1] += each[1] * w[k + c]
        a, t = <real> (sums[0] / cols) if ints[4] else 0, <real> (sums[1] / cols)
        if span == 1:
            if real is float:
                ag_row_back_f32(cols, g, x, w + k, mean, scale, a, t, dx, dw + k, db + k)
            else:
                ag_row_back_f64(cols, g, x, w + k, mean, scale, a, t, dx, dw + k, db + k)
        else:
            for c in range(channels):
                factor = w[k + c]
                at = c * span
                for j in range(at, at + span):
                    dx[j] = (g[j] * factor - a - (x[j] - mean) * scale * t) * scale
        dx += cols
        g += cols
        x += cols
    return -1


# ---- channels

cdef Py_ssize_t gathered(const real* x, Py_ssize_t n, Py_ssize_t step, Py_ssize_t span, Py_ssize_t* image, real* block) noexcept nogil:
    """As many runs of one channel, from image on, as fit into a block; returns their elements."""
    cdef Py_ssize_t filled = 0, j
    x += image[0] * step
    while image[0] < n and filled + span <= BLOCK:
        if span == 1:
            block[filled] = x[0]
        else:
            for j in range(span):
                block[filled + j] = x[j]
        filled += span
        x += step
        image[0] += 1
    return filled


cdef void columns_of(const real* x, Py_ssize_t n, Py_ssize_t channels, Py_ssize_t width, real* means, real* variances) noexcept nogil:
    """Mean and variance of `width` columns of (n, channels), up to BLOCK, by blocks of rows."""
    cdef real sums[BLOCK]
    cdef real middle[BLOCK]
    cdef real squares[BLOCK]
    cdef real base[BLOCK]               # the first block's means, from which the others are counted: small numbers round less
    cdef Py_ssize_t i, c, first = 0, rows
    cdef real done, share, off
    while first < n:
        rows = min(n - first, <Py_ssize_t> ROWS)
        fold_columns(OP_SUM, x, rows, channels, width, sums)
        for c in range(width):
            middle[c] = sums[c] / rows
            squares[c] = sums[c] = 0
        for i in range(rows):
            for c in range(width):
                off = x[i * channels + c] - middle[c]
                sums[c] += off
                squares[c] += off * off
        for c in range(width):              # the rounding of the mean
            off = sums[c] / rows
            middle[c] += off
            squares[c] -= off * sums[c]
        if first == 0:
            for c in range(width):
                base[c], means[c], variances[c] = middle[c], 0, squares[c]
        else:
            done = <real> first
            share = <real> rows / (done + <real> rows)
            for c in range(width):
                off = middle[c] - base[c] - means[c]
                means[c] += off * share
                variances[c] += squares[c] + off * off * done * share
        first += rows
        x += rows * channels
    for c in range(width):
        means[c] += base[c]
        variances[c] = variances[c] / <real> n


cdef void follow(real* running, real* found, Py_ssize_t channels, double share, double factor) noexcept nogil:
    """running = (1 - share) running + share factor found."""
    cdef Py_ssize_t c
    if running != NULL:
        for c in range(channels):
            running[c] = running[c] * <real> (1 - share) + found[c] * <real> factor * <real> share


cdef Py_ssize_t channels_of(real tag, const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef real* y = <real*> arrays[0].data
    cdef real* means = <real*> arrays[1].data
    cdef real* scales = <real*> arrays[2].data          # the variances at first
    cdef const real* x = <const real*> arrays[3].data
    cdef const real* w = <const real*> arrays[4].data
    cdef const real* b = <const real*> arrays[5].data
    cdef real* running_mean = <real*> arrays[6].data
    cdef real* running_var = <real*> arrays[7].data
    cdef Py_ssize_t n = ints[0], channels = ints[1], span = ints[2], step = ints[1] * ints[2], _, i, c, j, image
    cdef real block[BLOCK]
    cdef real mean, factor, shift
    cdef double total = <double> n * span
    cdef Moments m
    for c in range(channels):
        if ints[3]:
            means[c], scales[c] = running_mean[c], running_var[c]
            continue
        if span == 1:
            if c % BLOCK == 0:
                columns_of(x + c, n, channels, min(channels - c, <Py_ssize_t> BLOCK), means + c, scales + c)
            continue
        m.count = m.mean = m.squares = 0
        image = 0
        if span > GATHERED:
            for i in range(n):
                add_run(&m, x + i * step + c * span, span, True)
        else:
            while image < n:
                j = gathered(x + c * span, n, step, span, &image, block)
                add_block(&m, block, j, True)
        means[c], scales[c] = <real> m.mean, <real> (m.squares / m.count)
    if not ints[3] and total > 0:
        follow(running_mean, means, channels, numbers[1], 1)
        follow(running_var, scales, channels, numbers[1], total / (total - 1) if total > 1 else 1)
    if ints[3] < 2:
        for c in range(channels):
            scales[c] = <real> (1.0 / sqrt(scales[c] + numbers[0]))
    for _ in range(n):
        if span == 1:
            if b != NULL:             # within the loop the test would keep it from being vectorised
                for c in range(channels):
                    y[c] = (x[c] - means[c]) * scales[c] * w[c] + b[c]
            else:
                for c in range(channels):
                    y[c] = (x[c] - means[c]) * scales[c] * w[c]
            x += channels
            y += channels
            continue
        for c in range(channels):
            mean, factor, shift = means[c], scales[c] * w[c], b[c] if b != NULL else 0
            for j in range(span):
                y[j] = (x[j] - mean) * factor + shift
            x += span
            y += span
    return -1


cdef void columns_back(real* dx, real* dw, real* db, const real* g, const real* x, const real* w, const real* means, const real* scales,
                       Py_ssize_t n, Py_ssize_t channels, bint fixed) noexcept nogil:
    """channels_back for a span of 1: all channels at once, row by row; sums of ROWS rows before they meet the others."""
    cdef real dot[BLOCK]
    cdef real sum[BLOCK]
    cdef Py_ssize_t _, i, c, first, width, at = 0
    cdef real count = <real> n
    for c in range(channels):
        dw[c] = db[c] = 0
    while at < channels:
        width = min(channels - at, <Py_ssize_t> BLOCK)
        first = 0
        while first < n:
            for c in range(width):
                dot[c] = sum[c] = 0
            for i in range(first, min(n, first + ROWS)):
                for c in range(width):
                    sum[c] += g[i * channels + at + c]
                    dot[c] += g[i * channels + at + c] * ((x[i * channels + at + c] - means[at + c]) * scales[at + c])
            for c in range(width):
                dw[at + c] += dot[c]
                db[at + c] += sum[c]
            first += ROWS
        at += width
    for _ in range(n):
        for c in range(channels if fixed else 0):
            dx[c] = g[c] * (scales[c] * w[c])
        for c in range(0 if fixed else channels):
            dx[c] = (g[c] - db[c] / count - (x[c] - means[c]) * scales[c] * (dw[c] / count)) * (scales[c] * w[c])
        dx += channels
        g += channels
        x += channels


cdef Py_ssize_t channels_back(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    cdef real* dx = <real*> arrays[0].data
    cdef real* dw = <real*> arrays[1].data
    cdef real* db = <real*> arrays[2].data
    cdef const real* g = <const real*> arrays[3].data
    cdef const real* x = <const real*> arrays[4].data
    cdef const real* w = <const real*> arrays[5].data
    cdef const real* means = <const real*> arrays[6].data
    cdef const real* scales = <const real*> arrays[7].data
    cdef Py_ssize_t n = ints[0], channels = ints[1], span = ints[2], step = ints[1] * ints[2], _, i, c, j, image, same
    cdef real first[BLOCK]
    cdef real second[BLOCK]
    cdef real mean, scale, factor, a, t
    cdef double sums[2]
    if span == 1:
        columns_back(dx, dw, db, g, x, w, means, scales, n, channels, ints[3])
        return -1
    for c in range(channels):
        sums[0] = sums[1] = 0
        mean, scale = means[c], scales[c]
        image = 0
        if span > GATHERED:
            for i in range(n):
                products(g + i * step + c * span, x + i * step + c * span, NULL, mean, scale, span, sums)
        else:
            while image < n:
                same = image
                gathered(g + c * span, n, step, span, &same, first)
                j = gathered(x + c * span, n, step, span, &image, second)
                products(first, second, NULL, mean, scale, j, sums)
        dw[c], db[c] = <real> sums[1], <real> sums[0]
    sums[0] = <double> n * span
    for _ in range(n):
        for c in range(channels):
            mean, scale, a, t = means[c], scales[c], <real> (db[c] / sums[0]), <real> (dw[c] / sums[0])
            factor = scale * w[c]
            for j in range(span if ints[3] else 0):
                dx[j] = g[j] * factor
            for j in range(0 if ints[3] else span):
                dx[j] = (g[j] - a - (x[j] - mean) * scale * t) * factor
            dx += span
            g += span
            x += span
    return -1


cdef Py_ssize_t rows(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return rows_of[float](0, arrays, ints, numbers[0]) if arrays[0].dtype == FLOAT32 else rows_of[double](0, arrays, ints, numbers[0])


cdef Py_ssize_t rows_backward(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return rows_back[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else rows_back[double](0, arrays, ints)


cdef Py_ssize_t channels(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return channels_of[float](0, arrays, ints, numbers) if arrays[0].dtype == FLOAT32 else \
        channels_of[double](0, arrays, ints, numbers)


cdef Py_ssize_t channels_backward(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return channels_back[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else channels_back[double](0, arrays, ints)


add_routine("normalize.rows", "wwwrrr", rows)
add_routine("normalize.rows_back", "wwwrrrrr", rows_backward)
add_routine("normalize.channels", "wwwrrruu", channels)
add_routine("normalize.channels_by", "wwwrrrrr", channels)
add_routine("normalize.channels_back", "wwwrrrrr", channels_backward)
