# Pooling over windows, elements chosen from planes by index, resampling along one dim, and sums of weighted corners.
#
# Relies on table (routines). engine/pooling.py relies on it.
#
# Above 500 lines: windows and resampling are one part of a module, as each is too short for one of its own.
#
# Arrays are contiguous; (N, C, ...) has N * C planes. ints of the windows: the number of spatial dims d, then d each of kernel,
# stride, padding, dilation; adaptive windows (a flag after these) split each dim evenly, whatever the other numbers say.

from libc.limits cimport LLONG_MIN
from libc.math cimport INFINITY, floor
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, real
from autograd_cy.kernels.fold cimport ag_sum_f32, ag_sum_f64
from autograd_cy.kernels.table cimport ALL_VECTORS, OUT_OF_MEMORY, Array, K, add_routine

from autograd_cy.ops import loop_id

cdef int LARGER = loop_id("maximum")

cdef enum:
    MAX_TAPS = 4
    LONG_RUN = 16                 # elements from which a run is summed in several sums

ctypedef fused pooled:        # of maxima; integers of 32 and 8 bits are float64 meanwhile
    float
    double
    int64_t

ctypedef fused bits:
    uint32_t
    uint64_t

cdef struct Pool:             # as three dims; missing ones come first, with sizes of 1
    Py_ssize_t size[3]
    Py_ssize_t out[3]
    Py_ssize_t kernel[3]
    Py_ssize_t stride[3]
    Py_ssize_t padding[3]
    Py_ssize_t dilation[3]
    Py_ssize_t planes, plane, places
    bint adaptive
    bint counts_padding
    Py_ssize_t divisor        # 0: the number of elements

cdef struct Span:             # of a window along one dim: from first to last (excluded), of which the first `low` .. `high` count
    Py_ssize_t first
    Py_ssize_t last
    Py_ssize_t size           # with padding, as far as that counts


cdef void read_pool(Pool* w, const Array* image, const Array* out, const Py_ssize_t* ints) noexcept nogil:
    cdef Py_ssize_t d = ints[0]
    cdef int i, k
    w.plane = w.places = 1
    for i in range(3):
        k = i - 3 + <int> d
        w.size[i] = image.shape[image.ndim - d + k] if k >= 0 else 1
        w.out[i] = out.shape[out.ndim - d + k] if k >= 0 else 1
        w.kernel[i] = ints[1 + k] if k >= 0 else 1
        w.stride[i] = ints[1 + d + k] if k >= 0 else 1
        w.padding[i] = ints[1 + 2 * d + k] if k >= 0 else 0
        w.dilation[i] = ints[1 + 3 * d + k] if k >= 0 else 1
        w.plane *= w.size[i]
        w.places *= w.out[i]
    w.planes = 1
    for i in range(<int> (image.ndim - d)):
        w.planes *= image.shape[i]
    w.adaptive = ints[1 + 4 * d] != 0
    w.counts_padding = ints[2 + 4 * d] != 0
    w.divisor = ints[3 + 4 * d]


cdef inline Span span_of(const Pool* w, int i, Py_ssize_t place) noexcept nogil:
    """The elements along dim i of the window at `place`; the first is a multiple of dilation away from the window's start."""
    cdef Span s
    cdef Py_ssize_t end
    if w.adaptive:
        s.first = place * w.size[i] // w.out[i]
        s.last = ((place + 1) * w.size[i] + w.out[i] - 1) // w.out[i]
        s.size = s.last - s.first
        return s
    s.first = place * w.stride[i] - w.padding[i]
    end = s.first + (w.kernel[i] - 1) * w.dilation[i] + 1
    s.size = min(end, w.size[i] + w.padding[i]) - s.first
    s.last = min(end, w.size[i])
    if s.first < 0:
        s.first += (-s.first + w.dilation[i] - 1) // w.dilation[i] * w.dilation[i]
    return s


cdef inline pooled lowest(pooled tag) noexcept nogil:
    if pooled is int64_t:
        return LLONG_MIN
    else:
        return -INFINITY


cdef inline void step_through(bits* out, const bits* x, Py_ssize_t s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    if s == 2:                    # vectorised
        for k in range(n):
            out[k] = x[k * 2]
    else:
        for k in range(n):
            out[k] = x[k * s]


cdef void every_element(Py_ssize_t n, Py_ssize_t s, Py_ssize_t itemsize, const void* x, void* out) noexcept nogil:
    """Every s-th element of x. Lines are short: K.copy is good for long ones only."""
    if s == 1:
        memcpy(out, x, n * itemsize)
    elif itemsize == 8:
        step_through(<uint64_t*> out, <const uint64_t*> x, s, n)
    else:
        step_through(<uint32_t*> out, <const uint32_t*> x, s, n)


cdef void largest_of_lines(const pooled* x, pooled* out, int64_t* index, pooled* spare, int dtype, const Pool* w, Py_ssize_t i,
                           Py_ssize_t j) noexcept nogil:
    """A line of windows, tap by tap: each may replace what the taps before have found, by arithmetic: a branch would be guessed.
    Without an index by the loop of `maximum`, in which NaN wins, too."""
    cdef Py_ssize_t a, b, c, k, at, low, high, line, place, best, n, s = w.stride[2]
    cdef const pooled* tap
    cdef pooled value
    cdef char* p[3]
    cdef bint fresh = index == NULL          # nothing was found yet
    for k in range(0 if fresh else w.out[2]):
        out[k], index[k] = lowest(out[0]), -1
    for a in range(w.kernel[0]):
        line = i * w.stride[0] - w.padding[0] + a * w.dilation[0]
        if not 0 <= line < w.size[0]:
            continue
        for b in range(w.kernel[1]):
            at = j * w.stride[1] - w.padding[1] + b * w.dilation[1]
            if not 0 <= at < w.size[1]:
                continue
            at = (line * w.size[1] + at) * w.size[2] - w.padding[2]
            for c in range(w.kernel[2]):
                low = max((w.padding[2] - c * w.dilation[2] + s - 1) // s, <Py_ssize_t> 0) if w.padding[2] > c * w.dilation[2] else 0
                high = w.size[2] + w.padding[2] - c * w.dilation[2]
                high = min((high + s - 1) // s, w.out[2]) if high > 0 else 0
                if index == NULL:
                    if high <= low:
                        continue
                    tap, n = x + at + c * w.dilation[2] + low * s, high - low
                    if fresh:
                        for k in range(low):
                            out[k] = lowest(out[0])
                        every_element(n, s, sizeof(pooled), tap, out + low)
                        for k in range(high, w.out[2]):
                            out[k] = lowest(out[0])
                        fresh = False
                        continue
                    if s != 1:
                        every_element(n, s, sizeof(pooled), tap, spare)
                        tap = spare
                    p[0], p[1], p[2] = <char*> (out + low), <char*> (out + low), <char*> tap
                    K.loops[LARGER][dtype][<int> ALL_VECTORS](n, p, NULL)
                    continue
                for k in range(low, high):
                    place = at + c * w.dilation[2] + k * s
                    value, best = x[place], index[k]
                    best ^= (best ^ place) & -<Py_ssize_t> ((value > out[k]) | (value != value) | (best < 0))
                    out[k], index[k] = x[best], best
    for k in range(w.out[2] if fresh else 0):
        out[k] = lowest(out[0])


cdef Py_ssize_t largest(const pooled* x, pooled* out, int64_t* index, int dtype, const Pool* w) noexcept nogil:
    """The largest element of every window and its place in the plane (index NULL: not wanted); the first of equals, a NaN before all.
    Nothing: -inf, -1."""
    cdef Py_ssize_t _, i, j, k, a, b, c, at, best
    cdef Span s0, s1, s2
    cdef pooled value, most
    cdef pooled* spare = <pooled*> malloc(w.out[2] * sizeof(pooled)) if index == NULL else NULL
    if index == NULL and spare == NULL:
        return OUT_OF_MEMORY
    for _ in range(w.planes):
        for i in range(w.out[0]):
            for j in range(w.out[1]):
                if not w.adaptive:
                    largest_of_lines(x, out, index, spare, dtype, w, i, j)
                    out += w.out[2]
                    if index != NULL:
                        index += w.out[2]
                    continue
                s0, s1 = span_of(w, 0, i), span_of(w, 1, j)
                for k in range(w.out[2]):
                    s2 = span_of(w, 2, k)
                    best = (s0.first * w.size[1] + s1.first) * w.size[2] + s2.first
                    most = x[best]
                    for a in range(s0.first, s0.last):
                        for b in range(s1.first, s1.last):
                            at = (a * w.size[1] + b) * w.size[2]
                            for c in range(s2.first, s2.last):
                                value = x[at + c]
                                if value > most or value != value:
                                    most, best = value, at + c
                    out[0] = most
                    out += 1
                    if index != NULL:
                        index[0] = best
                        index += 1
        x += w.plane
    free(spare)
    return -1


cdef Py_ssize_t pool_largest(const Array* x, const Array* out, int64_t* index, const Py_ssize_t* ints) noexcept nogil:
    cdef Pool w
    read_pool(&w, x, out, ints)
    if w.planes * w.places == 0:
        return -1
    if x.dtype == FLOAT32:
        return largest(<const float*> x.data, <float*> out.data, index, x.dtype, &w)
    if x.dtype == FLOAT64:
        return largest(<const double*> x.data, <double*> out.data, index, x.dtype, &w)
    return largest(<const int64_t*> x.data, <int64_t*> out.data, index, x.dtype, &w)


cdef Py_ssize_t max_pool(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return pool_largest(&arrays[2], &arrays[0], <int64_t*> arrays[1].data, ints)


cdef Py_ssize_t max_values(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return pool_largest(&arrays[1], &arrays[0], NULL, ints)


cdef inline real share(const Pool* w, Span* s0, Span* s1, Span* s2, real tag) noexcept nogil:
    """What the sum of a window is divided by."""
    if w.divisor:
        return <real> w.divisor
    if w.counts_padding:
        return <real> (s0.size * s1.size * s2.size)
    return <real> ((s0.last - s0.first) * (s1.last - s1.first) * (s2.last - s2.first))


cdef inline real sum_of(const real* x, Py_ssize_t n) noexcept nogil:
    if real is float:
        return ag_sum_f32(x, n)
    else:
        return ag_sum_f64(x, n)


cdef Py_ssize_t averages(real* x, real* out, const Pool* w, bint back) noexcept nogil:
    """The mean of every window; back: out spread over x, which holds zeros."""
    cdef Py_ssize_t _, _p, i, j, k, a, c, run, lines
    cdef Span s0, s1, s2
    cdef real total
    cdef real* line
    if not w.adaptive and w.kernel[2] < LONG_RUN:
        return averages_of_lines(x, out, w, back)
    for _p in range(w.planes):
        for i in range(w.out[0]):
            s0 = span_of(w, 0, i)
            for j in range(w.out[1]):
                s1 = span_of(w, 1, j)
                for k in range(w.out[2]):
                    s2 = span_of(w, 2, k)
                    total = 0
                    if back:
                        total = out[0] / share(w, &s0, &s1, &s2, total)
                    for a in range(s0.first, s0.last):
                        # whole lines are one run
                        run = s2.last - s2.first
                        lines = s1.last - s1.first
                        if run == w.size[2]:
                            run, lines = run * lines, 1
                        line = x + (a * w.size[1] + s1.first) * w.size[2] + s2.first
                        for _ in range(lines):
                            if back:
                                for c in range(run):
                                    line[c] += total
                            elif run >= LONG_RUN:
                                total += sum_of(line, run)
                            else:
                                for c in range(run):
                                    total += line[c]
                            line += w.size[2]
                    if not back:
                        out[0] = total / share(w, &s0, &s1, &s2, total)
                    out += 1
        x += w.plane
    return -1


cdef inline void add_line(Py_ssize_t n, Py_ssize_t s, real* x, real* out, bint back) noexcept nogil:
    """out += every s-th element of x; back: the reverse."""
    cdef Py_ssize_t k
    if back:
        if s == 1:
            for k in range(n):
                x[k] += out[k]
        else:
            for k in range(n):
                x[k * s] += out[k]
    elif s == 1:
        for k in range(n):
            out[k] += x[k]
    elif s == 2:
        for k in range(n):
            out[k] += x[k * 2]
    else:
        for k in range(n):
            out[k] += x[k * s]


cdef Py_ssize_t averages_of_lines(real* x, real* out, const Pool* w, bint back) noexcept nogil:
    """averages for windows of short lines: a line of windows at once, tap by tap."""
    cdef Py_ssize_t _, i, j, k, a, b, c, low, high, s = w.stride[2], n = w.out[2]
    cdef Span s0, s1, s2
    cdef real* sizes = <real*> malloc(2 * n * sizeof(real))
    cdef real* shares = sizes + n if back else out
    cdef real* line
    cdef real area
    if sizes == NULL:
        return OUT_OF_MEMORY
    for k in range(n):
        s2 = span_of(w, 2, k)
        sizes[k] = <real> (1 if w.divisor else s2.size if w.counts_padding else s2.last - s2.first)
    for _ in range(w.planes):
        for i in range(w.out[0]):
            s0 = span_of(w, 0, i)
            for j in range(w.out[1]):
                s1 = span_of(w, 1, j)
                area = <real> (w.divisor if w.divisor else s0.size * s1.size if w.counts_padding
                               else (s0.last - s0.first) * (s1.last - s1.first))
                if not back:
                    shares = out
                for k in range(n):
                    shares[k] = out[k] / (area * sizes[k]) if back else 0
                for a in range(s0.first, s0.last):
                    for b in range(s1.first, s1.last):
                        line = x + (a * w.size[1] + b) * w.size[2] - w.padding[2]
                        for c in range(w.kernel[2]):
                            low = (w.padding[2] - c + s - 1) // s if w.padding[2] > c else 0
                            high = w.size[2] + w.padding[2] - c
                            high = min((high + s - 1) // s, n) if high > 0 else 0
                            add_line(high - low, s, line + c + low * s, shares + low, back)
                for k in range(0 if back else n):
                    out[k] = out[k] / (area * sizes[k])
                out += n
        x += w.plane
    free(sizes)
    return -1


cdef void zeros(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = 0


cdef Py_ssize_t average(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Pool w
    read_pool(&w, &arrays[1], &arrays[0], ints)
    if w.planes * w.places == 0:
        return -1
    if arrays[0].dtype == FLOAT32:
        return averages(<float*> arrays[1].data, <float*> arrays[0].data, &w, False)
    return averages(<double*> arrays[1].data, <double*> arrays[0].data, &w, False)


cdef Py_ssize_t average_back(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Pool w
    read_pool(&w, &arrays[0], &arrays[1], ints)
    if arrays[0].dtype == FLOAT32:
        zeros(<float*> arrays[0].data, w.planes * w.plane)
        if w.planes * w.places == 0:
            return -1
        return averages(<float*> arrays[0].data, <float*> arrays[1].data, &w, True)
    zeros(<double*> arrays[0].data, w.planes * w.plane)
    if w.planes * w.places == 0:
        return -1
    return averages(<double*> arrays[0].data, <double*> arrays[1].data, &w, True)


# ---- elements of planes, of which index -1 is none; ints: planes, elements of a plane of the larger array, elements of a plane of
# indices, whether to add

cdef Py_ssize_t taken(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    cdef real* out = <real*> arrays[0].data
    cdef const real* x = <const real*> arrays[1].data
    cdef const int64_t* index = <const int64_t*> arrays[2].data
    cdef Py_ssize_t n, i
    for n in range(ints[0]):
        for i in range(ints[2]):
            if not -1 <= index[i] < ints[1]:
                return n * ints[2] + i
            out[i] = x[index[i]] if index[i] >= 0 else 0
        x += ints[1]
        out += ints[2]
        index += ints[2]
    return -1


cdef Py_ssize_t put(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    cdef real* out = <real*> arrays[0].data
    cdef const real* x = <const real*> arrays[1].data
    cdef const int64_t* index = <const int64_t*> arrays[2].data
    cdef Py_ssize_t n, i
    for n in range(ints[0]):
        zeros(out, ints[1])           # a plane at a time stays in the cache
        for i in range(ints[2]):
            if not -1 <= index[i] < ints[1]:
                return n * ints[2] + i
            if index[i] >= 0:
                out[index[i]] = x[i] + (out[index[i]] if ints[3] else 0)
        out += ints[1]
        x += ints[2]
        index += ints[2]
    return -1


cdef Py_ssize_t take_planes(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return taken[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else taken[double](0, arrays, ints)


cdef Py_ssize_t put_planes(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return put[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else put[double](0, arrays, ints)


cdef tuple OUTSIDE = (RuntimeError, "max_unpool: the index of element {status} lies outside of its plane of {ints[1]} elements")


# ---- resampling along one dim: (before, n, after) and (before, m, after)
# ints: before, n, m, after, how; numbers: elements of the input per element of the output, and the offset of centres

cdef enum How:
    NEAREST = 0               # floor(i * scale)
    NEAREST_EXACT = 1         # floor((i + 0.5) * scale)
    LINEAR = 2                # centres half a step inside
    LINEAR_CORNERS = 3        # first and last elements on each other
    CUBIC = 4
    CUBIC_CORNERS = 5


cdef inline double outer(double t) noexcept nogil:
    """The cubic convolution kernel (a = -0.75) between 1 and 2."""
    return ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0


cdef inline double inner(double t) noexcept nogil:
    """The same, between 0 and 1."""
    return (1.25 * t - 2.25) * t * t + 1.0


cdef int taps_of(Py_ssize_t how, Py_ssize_t i, Py_ssize_t n, double scale, Py_ssize_t* at, double* weight) noexcept nogil:
    """The elements of n, with weights, that element i of the output is made of."""
    cdef double x, t
    cdef Py_ssize_t low
    cdef int k
    if how == NEAREST or how == NEAREST_EXACT:
        # in float, as PyTorch has it: which neighbour a tie takes depends on it
        low = <Py_ssize_t> floor(<float> (i if how == NEAREST else i + 0.5) * <float> scale)
        at[0] = min(low, n - 1)
        weight[0] = 1
        return 1
    x = i * scale if how == LINEAR_CORNERS or how == CUBIC_CORNERS else (i + 0.5) * scale - 0.5
    if how == LINEAR or how == LINEAR_CORNERS:
        if x < 0:
            x = 0
        low = min(<Py_ssize_t> x, n - 1)
        t = min(max(x - low, 0.0), 1.0)
        at[0], at[1] = low, min(low + 1, n - 1)
        weight[0], weight[1] = 1 - t, t
        return 2
    low = <Py_ssize_t> floor(x)
    t = x - low
    for k in range(4):
        at[k] = min(max(low - 1 + k, <Py_ssize_t> 0), n - 1)
    weight[0], weight[1], weight[2], weight[3] = outer(t + 1), inner(t), inner(1 - t), outer(2 - t)
    return 4


cdef Py_ssize_t resampled(real* x, real* out, const Py_ssize_t* ints, const double* numbers, bint back) noexcept nogil:
    """out from x; back: out added to x, which holds zeros."""
    cdef Py_ssize_t _, i, n = ints[1], m = ints[2], after = ints[3]
    cdef Py_ssize_t* at = <Py_ssize_t*> malloc(m * MAX_TAPS * (sizeof(Py_ssize_t) + sizeof(double)))
    cdef double* weight = <double*> (at + m * MAX_TAPS)
    cdef int taps = 0
    if at == NULL:
        return OUT_OF_MEMORY if m else -1
    for i in range(m):
        taps = taps_of(ints[4], i, n, numbers[0], at + i * MAX_TAPS, weight + i * MAX_TAPS)
    for _ in range(ints[0]):
        if after == 1:
            single_line(taps, m, at, weight, x, out, back)
        else:
            for i in range(m):
                whole_lines(taps, after, at + i * MAX_TAPS, weight + i * MAX_TAPS, x, out + i * after, back)
        x += n * after
        out += m * after
    free(at)
    return -1


cdef void single_line(int taps, Py_ssize_t m, const Py_ssize_t* at, const double* weight, real* x, real* out, bint back) noexcept nogil:
    cdef Py_ssize_t i
    cdef int k
    if taps == 1:
        for i in range(m):
            if back:
                x[at[i * MAX_TAPS]] += out[i]
            else:
                out[i] = x[at[i * MAX_TAPS]]
        return
    for i in range(m):
        if back:
            for k in range(taps):
                x[at[k]] += out[i] * <real> weight[k]
        elif taps == 2 and weight[1] == 0:           # an infinity times 0 would be NaN
            out[i] = x[at[0]]
        elif taps == 2:
            out[i] = x[at[0]] * <real> weight[0] + x[at[1]] * <real> weight[1]
        else:
            out[i] = (x[at[0]] * <real> weight[0] + x[at[1]] * <real> weight[1] + x[at[2]] * <real> weight[2]
                      + x[at[3]] * <real> weight[3])
        at += MAX_TAPS
        weight += MAX_TAPS


cdef void whole_lines(int taps, Py_ssize_t after, const Py_ssize_t* at, const double* weight, real* x, real* line,
                      bint back) noexcept nogil:
    """One element of the resampled dim, which stands for `after` of them."""
    cdef Py_ssize_t j
    cdef int k
    cdef real w0 = <real> weight[0], w1 = <real> weight[1], w2, w3
    cdef real* a0 = x + at[0] * after
    cdef real* a1
    cdef real* a2
    cdef real* a3
    if back:
        for k in range(taps):
            a0, w0 = x + at[k] * after, <real> weight[k]
            for j in range(after):
                a0[j] += line[j] * w0
    elif taps == 1 or taps == 2 and w1 == 0:
        for j in range(after):
            line[j] = a0[j]
    elif taps == 2:
        a1 = x + at[1] * after
        for j in range(after):
            line[j] = a0[j] * w0 + a1[j] * w1
    else:
        a1, a2, a3 = x + at[1] * after, x + at[2] * after, x + at[3] * after
        w2, w3 = <real> weight[2], <real> weight[3]
        for j in range(after):
            line[j] = a0[j] * w0 + a1[j] * w1 + a2[j] * w2 + a3[j] * w3


cdef Py_ssize_t resample(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    if arrays[0].dtype == FLOAT32:
        return resampled(<float*> arrays[1].data, <float*> arrays[0].data, ints, numbers, False)
    return resampled(<double*> arrays[1].data, <double*> arrays[0].data, ints, numbers, False)


cdef Py_ssize_t resample_back(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Py_ssize_t n = ints[0] * ints[1] * ints[3]
    if arrays[0].dtype == FLOAT32:
        zeros(<float*> arrays[0].data, n)
        return resampled(<float*> arrays[0].data, <float*> arrays[1].data, ints, numbers, True)
    zeros(<double*> arrays[0].data, n)
    return resampled(<double*> arrays[0].data, <double*> arrays[1].data, ints, numbers, True)


# ---- sums of weighted neighbours: of image n, place p reaches `taps` elements along each of d dims, from low[n, e, p] on (e counts the
# dims from the last one), and weight[n, k, p] belongs to the k-th of them in row-major order. What is outside of the image is not there.
# ints: images, channels, places, d, taps, then the sizes of d dims. The arrays are out, x, weight; low is the last one.

cdef enum:
    MAX_NEAR = 8
    SOME = 2048                    # places at once

cdef enum Near:
    SUMS = 0                      # out from x and weight
    SPREAD = 1                    # x, which holds zeros, += by out and weight
    SHARES = 2                    # weight, which holds zeros, += by out and x


cdef extern from *:
    """
    /* out[place] of n places = (adds: +=) the dot product of w (four each) and x[first], x[first + 1] and the same `row` further on. */
    #define AG_FOUR(T, S)                                                                                                         \
        typedef T ag_two_##S __attribute__((vector_size(2 * sizeof(T))));                                                         \
        static void ag_sum_four_##S(Py_ssize_t n, const T *x, Py_ssize_t row, const Py_ssize_t *first, const int32_t *places,     \
                                    const T *w, T *out, int adds) {                                                               \
            for (Py_ssize_t i = 0; i < n; ++i) {                                                                                  \
                ag_two_##S a, b, f, h;                                                                                            \
                memcpy(&a, x + first[i], sizeof(a));                                                                              \
                memcpy(&b, x + first[i] + row, sizeof(b));                                                                        \
                memcpy(&f, w + 4 * i, sizeof(f));                                                                                 \
                memcpy(&h, w + 4 * i + 2, sizeof(h));                                                                             \
                a = a * f + b * h;                                                                                                \
                out[places[i]] = adds ? out[places[i]] + (a[0] + a[1]) : a[0] + a[1];                                             \
            }                                                                                                                     \
        }
    AG_FOUR(float, f32)
    AG_FOUR(double, f64)
    """
    void ag_sum_four_f32(Py_ssize_t n, const float* x, Py_ssize_t row, const Py_ssize_t* first, const int32_t* places, const float* w,
                         float* out, bint adds) nogil
    void ag_sum_four_f64(Py_ssize_t n, const double* x, Py_ssize_t row, const Py_ssize_t* first, const int32_t* places, const double* w,
                         double* out, bint adds) nogil


cdef void add_near(real* x, real* out, real* w, Py_ssize_t step, const int32_t* places, const Py_ssize_t* first, Py_ssize_t n,
                   const Py_ssize_t* near, Py_ssize_t count, Near way, bint adds) noexcept nogil:
    """n places all of whose neighbours are there, at first[i] + near[k] of x; four of them at a time, or the only one (as
    SUMS always are)."""
    cdef Py_ssize_t i, p, k = 0, n1 = 0, n2 = 0, n3 = 0
    cdef real* w1 = w
    cdef real* w2 = w
    cdef real* w3 = w
    cdef real* a
    cdef real sum
    while k < count:
        if count > 1:
            n1, n2, n3 = near[k + 1] - near[k], near[k + 2] - near[k], near[k + 3] - near[k]
            w1, w2, w3 = w + step, w + 2 * step, w + 3 * step
        for i in range(n if way == SUMS else 0):
            p = places[i]
            sum = x[first[i]] * w[p]
            out[p] = sum + out[p] if adds else sum
        for i in range(n if way == SPREAD else 0):
            a, p = x + near[k] + first[i], places[i]
            sum = out[p]
            a[0] += sum * w[p]
            if count > 1:
                a[n1] += sum * w1[p]
                a[n2] += sum * w2[p]
                a[n3] += sum * w3[p]
        for i in range(n if way == SHARES else 0):
            a, p = x + near[k] + first[i], places[i]
            sum = out[p]
            w[p] += sum * a[0]
            if count > 1:
                w1[p] += sum * a[n1]
                w2[p] += sum * a[n2]
                w3[p] += sum * a[n3]
        w += 4 * step
        k += 4


cdef void sample_block(real* x, real* out, real* weight, const real* low, Py_ssize_t start, Py_ssize_t end, const Py_ssize_t* ints,
                       const Py_ssize_t* near, Py_ssize_t count, Near way) noexcept nogil:
    """Places start to end of an image: those that have all of their neighbours, then each neighbour that others have."""
    cdef Py_ssize_t channels = ints[1], step = ints[2], d = ints[3], plane = 1, n, n_edges = 0, k = -1, i, e, c, m, at, here, taps, place
    cdef Py_ssize_t first[SOME]
    cdef int32_t places[SOME]                 # from start on
    cdef int32_t edges[SOME]
    cdef real shares[4 * SOME]
    cdef real f
    cdef bint there
    while k < (count if n_edges else 0):      # -1: all neighbours
        n, taps = 0, ints[4] if k < 0 else 1
        for i in range(end - start if k < 0 else n_edges):
            place = i if k < 0 else edges[i]
            at, m, here, there = 0, 1, k, True
            for e in range(d):
                f = low[e * step + start + place]
                if k >= 0:
                    f += here % ints[4]
                    here //= ints[4]
                if not (f >= 0 and f <= ints[4 + d - e] - taps):          # a NaN is nowhere
                    there = False
                    break
                at += <Py_ssize_t> f * m
                m *= ints[4 + d - e]
            if there:
                first[n], places[n] = at, <int32_t> place
                n += 1
            elif k < 0:
                edges[n_edges] = <int32_t> place
                n_edges += 1
                for c in range(channels if way == SUMS else 0):
                    out[c * step + start + place] = 0
        plane = 1
        for e in range(d):
            plane *= ints[5 + e]
        e = 0
        while way == SUMS and k < 0 and e < count and count > 1:
            for i in range(n):
                place = e * step + start + places[i]
                for c in range(4):
                    shares[4 * i + c] = weight[place + c * step]
            for c in range(channels):
                if real is float:
                    ag_sum_four_f32(n, x + c * plane + near[e], near[2], first, places, shares, out + c * step + start, e)
                else:
                    ag_sum_four_f64(n, x + c * plane + near[e], near[2], first, places, shares, out + c * step + start, e)
            e += 4
        for c in range(0 if e else channels):
            add_near(x + c * plane, out + c * step + start, weight + max(k, <Py_ssize_t> 0) * step + start, step, places, first, n, near,
                     count if k < 0 else <Py_ssize_t> 1, way, k >= 0)
        k += 1


cdef Py_ssize_t sample_images(real* x, real* out, real* weight, const real* low, const Py_ssize_t* ints, Near way) noexcept nogil:
    cdef Py_ssize_t channels = ints[1], places = ints[2], d = ints[3], taps = ints[4], plane = 1, count = 1, _, k, e, here, start
    cdef Py_ssize_t near[MAX_NEAR]
    for _ in range(d):
        count *= taps
    for k in range(count):
        near[k], here, plane = 0, k, 1
        for e in range(d):
            near[k] += here % taps * plane
            here //= taps
            plane *= ints[4 + d - e]
    if way == SPREAD:
        zeros(x, ints[0] * channels * plane)
    elif way == SHARES:
        zeros(weight, ints[0] * count * places)
    for _ in range(ints[0]):
        start = 0
        while start < places:
            sample_block(x, out, weight, low, start, min(start + SOME, places), ints, near, count, way)
            start += SOME
        x += channels * plane
        out += channels * places
        weight += count * places
        low += d * places
    return -1


cdef Py_ssize_t sampling(const Array* arrays, const Py_ssize_t* ints, int x, int out, int weight, Near way) noexcept nogil:
    if arrays[0].dtype == FLOAT32:
        return sample_images(<float*> arrays[x].data, <float*> arrays[out].data, <float*> arrays[weight].data,
                             <const float*> arrays[3].data, ints, way)
    return sample_images(<double*> arrays[x].data, <double*> arrays[out].data, <double*> arrays[weight].data,
                         <const double*> arrays[3].data, ints, way)


cdef Py_ssize_t sample(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return sampling(arrays, ints, 1, 0, 2, SUMS)


cdef Py_ssize_t sample_input(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return sampling(arrays, ints, 0, 1, 2, SPREAD)


cdef Py_ssize_t sample_weight(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return sampling(arrays, ints, 2, 1, 0, SHARES)


add_routine("pooling.max_values", "wr", max_values)
add_routine("pooling.max", "wwr", max_pool)
add_routine("pooling.average", "wr", average)
add_routine("pooling.average_back", "wr", average_back)
add_routine("pooling.take", "wrr", take_planes, OUTSIDE)
add_routine("pooling.put", "wrr", put_planes, OUTSIDE)
add_routine("pooling.resample", "wr", resample)
add_routine("pooling.resample_back", "wr", resample_back)
add_routine("pooling.sampled", "wrrr", sample)
add_routine("pooling.sampled_input", "wrrr", sample_input)
add_routine("pooling.sampled_weight", "wrrr", sample_weight)
