# Scans: running sums, products, extremes and log-sum-exp along an axis, and the linear recurrence that their gradients are.
#
# Relies on table and lines. engine/scans runs them, as routines.
#
# Above 500 lines because each scan goes along single lines and along many neighbouring ones, and all share how these are found.
#
# As PyTorch's, sums and products of float32 are carried in double.

from libc.math cimport INFINITY, exp, isfinite, log1p
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, element, itemsize_of, real
from autograd_cy.kernels.lines cimport Lines, next_line, start_lines
from autograd_cy.kernels.table cimport ALL_VECTORS, OUT_OF_MEMORY, REDUCE_SUM, Array, K, add_routine

from autograd_cy.ops import loop_id

ctypedef void (*ReduceFunction)(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                                char* out, const Py_ssize_t* out_strides, double param) noexcept nogil
ctypedef void (*CopyFunction)(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides, int src_dtype,
                              const char* src, const Py_ssize_t* src_strides) noexcept nogil

cdef enum:
    COLUMNS = 256             # lines side by side whose carries stay in the first-level cache
    PIECE = 2048              # elements of a copy that does

cdef Py_ssize_t ONE = 1


# ---- sums and products: ints are axis, reverse

cdef inline void sum_line(const element* x, Py_ssize_t sx, element* out, Py_ssize_t so, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double carry = 0
    cdef int64_t whole = 0
    for i in range(n):
        if element is float or element is double:
            carry += x[i * sx]
            out[i * so] = <element> carry
        else:
            whole += x[i * sx]
            out[i * so] = <element> whole


cdef inline void product_line(const element* x, Py_ssize_t sx, element* out, Py_ssize_t so, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double carry = 1
    cdef int64_t whole = 1
    for i in range(n):
        if element is float or element is double:
            carry *= x[i * sx]
            out[i * so] = <element> carry
        else:
            whole *= x[i * sx]
            out[i * so] = <element> whole


cdef void sum_lines(const element* x, Py_ssize_t sx, Py_ssize_t next_x, element* out, Py_ssize_t so, Py_ssize_t next_out, Py_ssize_t n,
                    Py_ssize_t lines, bint product) noexcept nogil:
    """Lines one after the other; strides of 1 are spelled out, a fifth faster."""
    cdef Py_ssize_t _
    for _ in range(lines):
        if product and sx == 1 and so == 1:
            product_line(x, 1, out, 1, n)
        elif product:
            product_line(x, sx, out, so, n)
        elif sx == 1 and so == 1:
            sum_line(x, 1, out, 1, n)
        else:
            sum_line(x, sx, out, so, n)
        x += next_x
        out += next_out


cdef void columns(const element* x, Py_ssize_t sx, element* out, Py_ssize_t so, Py_ssize_t n, Py_ssize_t width,
                  bint product) noexcept nogil:
    """`width` neighbouring lines at once, in the order of memory."""
    cdef double carry[COLUMNS]
    cdef int64_t whole[COLUMNS]
    cdef Py_ssize_t _, j
    for j in range(width):
        carry[j] = whole[j] = product
    for _ in range(n):
        if element is float or element is double:
            if product:
                for j in range(width):
                    carry[j] *= x[j]
                    out[j] = <element> carry[j]
            else:
                for j in range(width):
                    carry[j] += x[j]
                    out[j] = <element> carry[j]
        elif product:
            for j in range(width):
                whole[j] *= x[j]
                out[j] = <element> whole[j]
        else:
            for j in range(width):
                whole[j] += x[j]
                out[j] = <element> whole[j]
        x += sx
        out += so


cdef Py_ssize_t together(const Lines* lines, bint side_by_side) noexcept nogil:
    """How many lines from the current one on follow each other; side by side: only neighbours in memory, as many as carries fit."""
    cdef int k, last = lines.ndim - 1
    if last < 0:
        return 1
    if side_by_side:
        for k in range(lines.n_arrays):
            if lines.strides[k][last] != 1:
                return 1
        return min(lines.shape[last] - lines.position[last], <Py_ssize_t> COLUMNS)
    return lines.shape[last] - lines.position[last]


cdef void skip_lines(Lines* lines, Py_ssize_t count) noexcept nogil:
    cdef int k, last = lines.ndim - 1
    if count > 1:                                  # to the last of these; from there one step on
        lines.position[last] += count - 1
        for k in range(lines.n_arrays):
            lines.at[k] += (count - 1) * lines.strides[k][last]
    next_line(lines)


cdef void accumulate(const Array* arrays, const Py_ssize_t* ints, element* out, const element* x, bint product) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t i = 0, back, width, step_x, step_out, next_x = 0, next_out = 0
    cdef int last
    start_lines(&lines, arrays, 2, 1, <int> ints[0])
    if lines.n == 0:
        return
    last = lines.ndim - 1
    if last >= 0:
        next_x, next_out = lines.strides[1][last], lines.strides[0][last]
    back = (lines.n - 1) if ints[1] else 0
    step_x, step_out = -lines.step[1] if back else lines.step[1], -lines.step[0] if back else lines.step[0]
    x += back * lines.step[1]
    out += back * lines.step[0]
    while i < lines.count:
        width = together(&lines, True)
        if width > 1:
            columns(x + lines.at[1], step_x, out + lines.at[0], step_out, lines.n, width, product)
        else:
            width = together(&lines, False)
            sum_lines(x + lines.at[1], step_x, next_x, out + lines.at[0], step_out, next_out, lines.n, width, product)
        i += width
        skip_lines(&lines, width)


cdef Py_ssize_t by_dtype(const Array* arrays, const Py_ssize_t* ints, bint product) noexcept nogil:
    cdef char* out = arrays[0].data
    cdef char* x = arrays[1].data
    if arrays[1].dtype == FLOAT32:
        accumulate[float](arrays, ints, <float*> out, <float*> x, product)
    elif arrays[1].dtype == FLOAT64:
        accumulate[double](arrays, ints, <double*> out, <double*> x, product)
    elif arrays[1].dtype == INT64:
        accumulate[int64_t](arrays, ints, <int64_t*> out, <int64_t*> x, product)
    elif arrays[1].dtype == INT32:
        accumulate[int32_t](arrays, ints, <int32_t*> out, <int32_t*> x, product)
    else:
        accumulate[uint8_t](arrays, ints, <uint8_t*> out, <uint8_t*> x, product)
    return -1


cdef Py_ssize_t running_sum(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return by_dtype(arrays, ints, False)


cdef Py_ssize_t running_product(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return by_dtype(arrays, ints, True)


# ---- extremes and their places: ints are axis, smallest. Of equals the latest; NaN stays, the latest NaN.

ctypedef fused integer_t:
    int64_t
    int32_t
    uint8_t


cdef void extreme_integers(const integer_t* x, Py_ssize_t sx, integer_t* out, Py_ssize_t so, int64_t* places, Py_ssize_t sp, Py_ssize_t n,
                           int flip) noexcept nogil:
    """Without a branch, as new extremes are common among integers. The smallest are the largest of the complements (flip -1)."""
    cdef Py_ssize_t i
    cdef int64_t place = 0
    cdef integer_t v, best = x[0] ^ flip
    for i in range(n):
        v = x[i * sx] ^ flip
        place = i if v >= best else place
        best = v if v > best else best
        out[i * so] = best ^ flip
        places[i * sp] = place


cdef void extreme_line(const real* x, Py_ssize_t sx, real* out, Py_ssize_t so, int64_t* places, Py_ssize_t sp, Py_ssize_t n,
                       bint smallest) noexcept nogil:
    cdef Py_ssize_t place, i = 0
    cdef real best
    while True:
        best, place = x[i * sx], i
        while True:                                # until there is a new one
            out[i * so] = best
            places[i * sp] = place
            i += 1
            if i == n or not (x[i * sx] > best if smallest else x[i * sx] < best):
                break
        if i == n or best != best:
            break
    while i < n:                                   # after a NaN
        if x[i * sx] != x[i * sx]:
            place = i
        out[i * so] = best
        places[i * sp] = place
        i += 1


cdef void extreme_columns(const element* x, Py_ssize_t sx, element* out, Py_ssize_t so, int64_t* places, Py_ssize_t sp, Py_ssize_t n,
                          bint smallest, Py_ssize_t width) noexcept nogil:
    """`width` neighbouring lines at once."""
    cdef element best[COLUMNS]
    cdef int64_t place[COLUMNS]
    cdef Py_ssize_t i, j
    cdef element v
    cdef bint new
    for j in range(width):
        best[j] = x[j]
    for i in range(n):
        for j in range(width):
            v = x[j]
            new = (v != v) | (v <= best[j] if smallest else v >= best[j])
            out[j] = best[j] = v if new else best[j]
            places[j] = place[j] = i if new else place[j]
        x += sx
        out += so
        places += sp


cdef void extremes(const Array* arrays, const Py_ssize_t* ints, element* out, int64_t* places, const element* x) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t width, i = 0
    start_lines(&lines, arrays, 3, 2, <int> ints[0])
    if lines.n == 0:
        return
    while i < lines.count:
        width = together(&lines, True) if sizeof(element) >= 4 else 1
        if width > 1:
            extreme_columns(x + lines.at[2], lines.step[2], out + lines.at[0], lines.step[0], places + lines.at[1], lines.step[1], lines.n,
                            ints[1], width)
        elif element is float or element is double:
            extreme_line(x + lines.at[2], lines.step[2], out + lines.at[0], lines.step[0], places + lines.at[1], lines.step[1], lines.n,
                         ints[1])
        else:
            extreme_integers(x + lines.at[2], lines.step[2], out + lines.at[0], lines.step[0], places + lines.at[1], lines.step[1], lines.n,
                             -1 if ints[1] else 0)
        i += width
        skip_lines(&lines, width)


cdef Py_ssize_t running_extreme(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef char* out = arrays[0].data
    cdef int64_t* places = <int64_t*> arrays[1].data
    cdef char* x = arrays[2].data
    if arrays[2].dtype == FLOAT32:
        extremes[float](arrays, ints, <float*> out, places, <float*> x)
    elif arrays[2].dtype == FLOAT64:
        extremes[double](arrays, ints, <double*> out, places, <double*> x)
    elif arrays[2].dtype == INT64:
        extremes[int64_t](arrays, ints, <int64_t*> out, places, <int64_t*> x)
    elif arrays[2].dtype == INT32:
        extremes[int32_t](arrays, ints, <int32_t*> out, places, <int32_t*> x)
    else:
        extremes[uint8_t](arrays, ints, <uint8_t*> out, places, <uint8_t*> x)
    return -1


# ---- log-sum-exp: ints are axis

cdef void logsumexps(const Array* arrays, const Py_ssize_t* ints, real* out, const real* x) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t i, _
    cdef double carry, v, low, high
    start_lines(&lines, arrays, 2, 1, <int> ints[0])
    for _ in range(lines.count):
        for i in range(lines.n):
            v = x[lines.at[1] + i * lines.step[1]]
            if i == 0 or v != v:
                carry = v
            elif carry == carry:
                low, high = (v, carry) if v < carry else (carry, v)
                carry = high + log1p(exp(low - high)) if low != high or isfinite(low) else v
            out[lines.at[0] + i * lines.step[0]] = <real> carry
        next_line(&lines)


cdef Py_ssize_t running_logsumexp(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    if arrays[1].dtype == FLOAT32:
        logsumexps[float](arrays, ints, <float*> arrays[0].data, <float*> arrays[1].data)
    else:
        logsumexps[double](arrays, ints, <double*> arrays[0].data, <double*> arrays[1].data)
    return -1


# ---- h[k] = v[k] + x[k] h[k - 1]; in reverse h[k] = v[k] + x[k + 1] h[k + 1]: ints are axis, reverse

cdef void recurrences(const Array* arrays, const Py_ssize_t* ints, real* out, const real* v, const real* x) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t i, j, k, width, done = 0
    cdef double h, factor
    cdef double carry[COLUMNS]
    start_lines(&lines, arrays, 3, 1, <int> ints[0])
    while done < lines.count:
        width = together(&lines, True)
        done += width
        if width > 1:                              # x of this row, or, in reverse, of the one before: the next one in memory
            for i in range(lines.n):
                k = lines.n - 1 - i if ints[1] else i
                for j in range(width):
                    h = v[lines.at[1] + k * lines.step[1] + j]
                    if i:
                        h += x[lines.at[2] + (k + ints[1]) * lines.step[2] + j] * carry[j]
                    carry[j] = h
                    out[lines.at[0] + k * lines.step[0] + j] = <real> h
            skip_lines(&lines, width)
            continue
        h, factor = 0, 0
        for i in range(lines.n):
            k = lines.n - 1 - i if ints[1] else i
            if i and not ints[1]:
                factor = x[lines.at[2] + k * lines.step[2]]
            h = v[lines.at[1] + k * lines.step[1]] + factor * h if i else v[lines.at[1] + k * lines.step[1]]
            out[lines.at[0] + k * lines.step[0]] = <real> h
            if ints[1]:
                factor = x[lines.at[2] + k * lines.step[2]]
        next_line(&lines)


cdef Py_ssize_t recurrence(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    if arrays[1].dtype == FLOAT32:
        recurrences[float](arrays, ints, <float*> arrays[0].data, <float*> arrays[1].data, <float*> arrays[2].data)
    else:
        recurrences[double](arrays, ints, <double*> arrays[0].data, <double*> arrays[1].data, <double*> arrays[2].data)
    return -1


# ---- the sum of what is not NaN: ints are the strides of the result in the dims of x, 0 where it is summed

cdef ReduceFunction plain_reduce = K.reduce            # the kernels themselves, past any recorder
cdef CopyFunction plain_copy = K.copy


cdef int NAN_TO_NUM = loop_id("nan_to_num")


cdef bint any_nan(const real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, nans = 0
    for i in range(n):
        nans += x[i] != x[i]
    return nans > 0


cdef void nansum_rows(const real* x, Py_ssize_t rows, Py_ssize_t cols, real* out, int dtype) noexcept nogil:
    """The sums of contiguous rows, in pieces that stay in the cache."""
    cdef real piece[PIECE]
    cdef real part
    cdef double total
    cdef Py_ssize_t i, start, size, none = 0
    cdef double attrs[3]
    cdef char* p[2]
    attrs[0], attrs[1], attrs[2] = 0, INFINITY, -INFINITY
    p[0] = <char*> piece
    for i in range(rows):
        total, start = 0, 0
        while start < cols:
            size = min(cols - start, <Py_ssize_t> PIECE)
            p[1] = <char*> (x + start)
            K.loops[NAN_TO_NUM][dtype][<int> ALL_VECTORS](size, p, attrs)
            plain_reduce(REDUCE_SUM, dtype, 1, &size, <char*> piece, &ONE, <char*> &part, &none, 0)
            total += part
            start += size
        out[i] = <real> total
        x += cols


cdef void count_numbers(const real* x, const Array* of, const Py_ssize_t* steps, int64_t* counts) noexcept nogil:
    """Adds 1 to a count for each element that is not NaN."""
    cdef Py_ssize_t position[MAX_NDIM]
    cdef int d, last = of.ndim - 1
    cdef Py_ssize_t n = of.shape[last] if of.ndim else 1, s = of.strides[last] if of.ndim else 0, c = steps[last] if of.ndim else 0, i
    cdef int64_t some
    for d in range(of.ndim):
        position[d] = 0
        if of.shape[d] == 0:
            return
    while True:
        if c == 0:
            some = 0
            for i in range(n):
                some += x[i * s] == x[i * s]
            counts[0] += some
        else:
            for i in range(n):
                counts[i * c] += x[i * s] == x[i * s]
        d = last - 1
        while d >= 0:
            position[d] += 1
            x += of.strides[d]
            counts += steps[d]
            if position[d] < of.shape[d]:
                break
            x -= of.strides[d] * position[d]
            counts -= steps[d] * position[d]
            position[d] = 0
            d -= 1
        if d < 0:
            return


cdef void divide(real* out, const int64_t* counts, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] /= <real> counts[i]


cdef Py_ssize_t nanmean(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """nansum divided by how many elements are not NaN, which the third array keeps."""
    cdef int64_t* counts = <int64_t*> arrays[2].data
    cdef Py_ssize_t status = nansum(arrays, ints, numbers), size = 1, i
    cdef int d
    for d in range(arrays[0].ndim):
        size *= arrays[0].shape[d]
    for i in range(size):
        counts[i] = 0
    if arrays[1].dtype == FLOAT32:
        count_numbers(<float*> arrays[1].data, &arrays[1], ints, counts)
        divide(<float*> arrays[0].data, counts, size)
    else:
        count_numbers(<double*> arrays[1].data, &arrays[1], ints, counts)
        divide(<double*> arrays[0].data, counts, size)
    return status


cdef Py_ssize_t nansum(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """The plain sum, or, if there is a NaN in that, the sum of what the row nan_to_num makes of x."""
    cdef const Array* x = &arrays[1]
    cdef char* out = arrays[0].data
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t n = 1, size = 1
    cdef double attrs[3]
    cdef char* p[2]
    cdef bint rows = True                          # of contiguous elements
    cdef int d
    plain_reduce(REDUCE_SUM, x.dtype, x.ndim, x.shape, x.data, x.strides, out, ints, 0)
    for d in range(arrays[0].ndim):
        size *= arrays[0].shape[d]
    if not (any_nan(<float*> out, size) if x.dtype == FLOAT32 else any_nan(<double*> out, size)):
        return -1
    for d in range(x.ndim - 1, -1, -1):
        strides[d] = n
        n *= x.shape[d]
        rows = rows and (x.strides[d] == strides[d] or x.shape[d] == 1)
        if d < x.ndim - 1 and ints[d] == 0 and ints[d + 1] != 0:
            rows = False
    if rows and x.dtype == FLOAT32:
        nansum_rows(<float*> x.data, size, n // size, <float*> out, FLOAT32)
        return -1
    if rows:
        nansum_rows(<double*> x.data, size, n // size, <double*> out, FLOAT64)
        return -1
    p[0] = p[1] = <char*> malloc(n * itemsize_of(x.dtype))
    if p[0] == NULL:
        return OUT_OF_MEMORY
    plain_copy(x.ndim, x.shape, x.dtype, p[0], strides, x.dtype, x.data, x.strides)
    attrs[0], attrs[1], attrs[2] = 0, INFINITY, -INFINITY
    K.loops[NAN_TO_NUM][x.dtype][<int> ALL_VECTORS](n, p, attrs)
    plain_reduce(REDUCE_SUM, x.dtype, x.ndim, x.shape, p[0], strides, out, ints, 0)
    free(p[0])
    return -1


# ---- the gradients of reductions over neighbouring dims of contiguous elements, in the arithmetic of the rules

cdef enum Reduced:            # as in engine/scans
    VAR
    STD
    LOGSUMEXP
    NORM
    EXTREME
    NANSUM
    PRODUCT


cdef inline bint counts(real x, real extreme) noexcept nogil:
    return x == extreme or x != x


cdef void spread_over(int kind, const real* x, const real* a, const real* b, real* out, Py_ssize_t n) noexcept nogil:
    """The gradients of elements x, where a and b are numbers of the output that each went into."""
    cdef Py_ssize_t j
    cdef char* p[2]
    if kind == VAR or kind == STD:
        for j in range(n):
            out[j] = a[j] * (x[j] - b[j])
    elif kind == LOGSUMEXP:
        for j in range(n):
            out[j] = x[j] - b[j]
        p[0] = p[1] = <char*> out
        K.exp[0 if real is float else 1](n, p, NULL)
        for j in range(n):
            out[j] *= a[j]
    elif kind == NORM:
        for j in range(n):
            out[j] = a[j] * (x[j] / b[j])
    elif kind == EXTREME:
        for j in range(n):
            out[j] = a[j] if counts(x[j], b[j]) else 0
    else:
        for j in range(n):
            out[j] = a[j] if x[j] == x[j] else 0


cdef void back_of_product(const real* x, const real* g, real* out, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t w) noexcept nogil:
    """The product of all elements before, times that of all behind."""
    cdef double carry[COLUMNS]
    cdef double single
    cdef Py_ssize_t i, j, k, pass_
    for pass_ in range(2):
        single = 1
        for j in range(w):
            carry[j] = 1
        for k in range(n):
            i = (n - 1 - k if pass_ else k) * inner
            if inner == 1:
                out[i] = g[0] * (out[i] * <real> single) if pass_ else <real> single
                single *= x[i]
                continue
            for j in range(w):
                out[i + j] = g[j] * (out[i + j] * <real> carry[j]) if pass_ else <real> carry[j]
                carry[j] *= x[i + j]


cdef void count_extremes(const real* x, const real* b, int64_t* times, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t w) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef int64_t count = 0
    for j in range(w):
        times[j] = 0
    if inner > 1:
        for i in range(n):
            for j in range(w):
                times[j] += counts(x[i * inner + j], b[j])
        return
    for i in range(n):
        count += counts(x[i], b[0])
    times[0] = count


cdef void back_of(const Py_ssize_t* ints, const double* numbers, const real* x, const real* g, const real* y, const real* sums,
                  real* out) noexcept nogil:
    cdef Py_ssize_t kind = ints[0], n = ints[2], inner = ints[3], first = 0, w = 0, i, j
    cdef int64_t times[COLUMNS]
    cdef real a[COLUMNS]
    cdef real b[COLUMNS]
    while first < inner:
        w = min(inner - first, <Py_ssize_t> COLUMNS)
        if kind == PRODUCT:
            back_of_product(x + first, g + first, out + first, n, inner, w)
            first += w
            continue
        for j in range(w):
            a[j] = g[first + j]
            if y != NULL:
                b[j] = y[first + j]
            if kind == STD:
                a[j] = a[j] / b[j] if b[j] != 0 else 0
            elif kind == NORM and b[j] == 0:
                a[j], b[j] = 0, 1
            elif kind == LOGSUMEXP and b[j] == -INFINITY:
                b[j] = 0
            if sums != NULL:
                a[j] *= <real> numbers[0]
                b[j] = sums[first + j] / <real> numbers[1]
        if kind == EXTREME:                        # shared by all that attain it
            count_extremes(x + first, b, times, n, inner, w)
            for j in range(w):
                a[j] /= <real> times[j]
        if inner > 1:
            for i in range(n):
                spread_over(<int> kind, x + i * inner + first, a, b, out + i * inner + first, w)
            first += w
            continue
        for j in range(1, min(n, <Py_ssize_t> COLUMNS)):
            a[j], b[j] = a[0], b[0]
        i = 0
        while i < n:
            w = min(n - i, <Py_ssize_t> COLUMNS)
            spread_over(<int> kind, x + i, a, b, out + i, w)
            i += w
        return


cdef Py_ssize_t reduced_back(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """The gradient of x by that of a reduction; also the reduction itself and the sums, where the rule needs them. ints: which reduction,
    the sizes before, along and behind the reduced dims; numbers: of var and std, a factor of the gradient and the number of elements."""
    cdef Py_ssize_t i, size = ints[2] * ints[3] * itemsize_of(arrays[0].dtype), small = ints[3] * itemsize_of(arrays[0].dtype)
    cdef char* p[5]
    cdef int k
    for i in range(ints[1]):
        for k in range(5):
            p[k] = arrays[k].data + i * (size if k < 2 else small) if arrays[k].data != NULL else NULL
        if arrays[0].dtype == FLOAT32:
            back_of(ints, numbers, <float*> p[1], <float*> p[2], <float*> p[3], <float*> p[4], <float*> p[0])
        else:
            back_of(ints, numbers, <double*> p[1], <double*> p[2], <double*> p[3], <double*> p[4], <double*> p[0])
    return -1


add_routine("scans.reduced_back", "wrrrr", reduced_back)
add_routine("scans.running_sum", "wr", running_sum)
add_routine("scans.running_product", "wr", running_product)
add_routine("scans.running_extreme", "wwr", running_extreme)
add_routine("scans.running_logsumexp", "wr", running_logsumexp)
add_routine("scans.recurrence", "wrr", recurrence)
add_routine("scans.nansum", "wr", nansum)
add_routine("scans.nanmean", "wrw", nanmean)
