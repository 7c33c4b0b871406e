# Distances between rows: the p-norms of all differences between two lots of rows, or between the pairs of one, and their gradients;
# covariances of a few rows; margins between the elements of rows.
#
# Relies on table. engine/named_products runs them, as routines: no array of all differences is made.

from libc.math cimport INFINITY, NAN, fabs, pow, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from autograd_cy.array.dtype cimport FLOAT32, itemsize_of, real
from autograd_cy.kernels.lines cimport number_at, put_number_at
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine


cdef double farthest(const real* a, const real* b, Py_ssize_t n) noexcept nogil:
    """The largest |a - b|; NaN wins."""
    cdef double d, most = 0
    cdef Py_ssize_t k
    for k in range(n):
        d = fabs(<double> a[k] - b[k])
        if d > most or d != d:
            most = d
            if d != d:
                break
    return most


cdef enum:
    FEW_NUMBERS = 512         # as in engine/distances


cdef extern from *:
    """
    /* The sum of |a - b|, or of squares: in vectors that every processor has, with two accumulators. */
    #define AG_ROW_SUM(T, I, S)                                                                                                   \
        typedef T ag_wide_##S __attribute__((vector_size(16)));                                                                   \
        typedef I ag_bits_##S __attribute__((vector_size(16)));                                                                   \
        static inline ag_wide_##S ag_term_##S(const T *a, const T *b, ag_bits_##S sign, int squares) {                            \
            ag_wide_##S x, y;                                                                                                     \
            memcpy(&x, a, sizeof(x));                                                                                             \
            memcpy(&y, b, sizeof(y));                                                                                             \
            x -= y;                                                                                                               \
            return squares ? x * x : (ag_wide_##S) ((ag_bits_##S) x & ~sign);                                                     \
        }                                                                                                                         \
        static double ag_row_sum_##S(const T *a, const T *b, Py_ssize_t n, int squares) {                                         \
            enum { WIDE = 16 / sizeof(T) };                                                                                       \
            ag_wide_##S first = {0}, second = {0};                                                                                \
            ag_bits_##S sign = (ag_bits_##S) -first;                                                                              \
            double sum = 0;                                                                                                       \
            Py_ssize_t k = 0;                                                                                                     \
            for (; k + 2 * WIDE <= n; k += 2 * WIDE) {                                                                            \
                first += ag_term_##S(a + k, b + k, sign, squares);                                                                \
                second += ag_term_##S(a + k + WIDE, b + k + WIDE, sign, squares);                                                 \
            }                                                                                                                     \
            if (k + WIDE <= n) {                                                                                                  \
                first += ag_term_##S(a + k, b + k, sign, squares);                                                                \
                k += WIDE;                                                                                                        \
            }                                                                                                                     \
            first += second;                                                                                                      \
            for (int j = 0; j < WIDE; ++j) sum += first[j];                                                                       \
            for (; k < n; ++k) {                                                                                                  \
                T d = a[k] - b[k];                                                                                                \
                sum += squares ? (double) d * d : d < 0 ? -d : d;                                                                 \
            }                                                                                                                     \
            return sum;                                                                                                           \
        }
    AG_ROW_SUM(float, int32_t, f32)
    AG_ROW_SUM(double, int64_t, f64)
    """
    double ag_row_sum_f32(const float* a, const float* b, Py_ssize_t n, bint squares) nogil
    double ag_row_sum_f64(const double* a, const double* b, Py_ssize_t n, bint squares) nogil


cdef inline double row_sum(const real* a, const real* b, Py_ssize_t n, bint squares) noexcept nogil:
    if real is float:
        return ag_row_sum_f32(a, b, n, squares)
    else:
        return ag_row_sum_f64(a, b, n, squares)


cdef double distance(const real* a, const real* b, Py_ssize_t n, double p) noexcept nogil:
    cdef double s = 0, t, most
    cdef Py_ssize_t k
    if p == 1:
        return row_sum(a, b, n, False)
    if p == 2:
        s = row_sum(a, b, n, True)
        if s > 1e-30 and s < 1e37:                # else in a way without overflow
            return sqrt(s)
        s = 0
    if p == 0:
        for k in range(n):
            t = <double> a[k] - b[k]
            s += t if t != t else <double> (t != 0)
        return s
    most = farthest(a, b, n)
    if most == 0 or most != most or most == INFINITY or p == INFINITY:
        return most
    for k in range(n):                            # without overflow
        s += pow(fabs(<double> a[k] - b[k]) / most, p)
    return most * pow(s, 1 / p)


cdef void add_slopes(const real* a, const real* b, Py_ssize_t n, double p, double g, double y, real* da, real* db) noexcept nogil:
    """g times the derivative of a distance y, added to da, and less so to db; ties of p = inf share it, a distance of 0 has none."""
    cdef double d, t, slope = g if p == 1 or p == INFINITY else g / y
    cdef Py_ssize_t k, ties = 0
    cdef real part, each
    if p == 2:
        each = <real> slope
        for k in range(n):
            part = each * (a[k] - b[k])
            da[k] += part
            db[k] -= part
        return
    if p == INFINITY:
        for k in range(n):
            d = <real> (<double> a[k] - b[k])
            ties += fabs(d) == y or d != d
        slope = g / <double> ties
    for k in range(n):
        d = <double> a[k] - b[k]
        t = slope * ((d > 0) - (d < 0))
        if p == INFINITY and fabs(<double> <real> d) != y or d == 0:
            continue
        if p != 1 and p != INFINITY:
            t = t * y * pow(fabs(d) / y, p - 1)
        da[k] += <real> t
        db[k] -= <real> t


cdef void walk(const Array* arrays, bint pairs, double p, real* y, const real* x1, const real* x2, const real* g, real* d1,
               real* d2) noexcept nogil:
    """Distances to y; or with g their gradient to d1 and d2."""
    cdef int last = arrays[1].ndim - 1
    cdef Py_ssize_t m = arrays[1].shape[last], rows = arrays[1].shape[last - 1], others = arrays[2].shape[last - 1], batch = 1, i, j
    cdef int k
    for k in range(last - 1):
        batch *= arrays[1].shape[k]
    while batch > 0:
        for i in range(rows):
            for j in range(i + 1 if pairs else 0, others):
                if g == NULL:
                    y[0] = <real> distance(x1 + i * m, x2 + j * m, m, p)
                else:
                    if g[0] != 0 and y[0] != 0 and p != 0:
                        add_slopes(x1 + i * m, x2 + j * m, m, p, g[0], y[0], d1 + i * m, d2 + j * m)
                    g += 1
                y += 1
        x1 += rows * m
        x2 += others * m
        d1 += rows * m
        d2 += others * m
        batch -= 1


cdef Py_ssize_t distances(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """y, x1 (..., p, m), x2 (..., r, m): all distances (..., p, r); ints: or (1) those of the pairs of rows of x1, which x2 is, too.
    Contiguous, one dtype; numbers: p."""
    if arrays[0].dtype == FLOAT32:
        walk[float](arrays, ints[0], numbers[0], <float*> arrays[0].data, <float*> arrays[1].data, <float*> arrays[2].data,
                    NULL, NULL, NULL)
    else:
        walk[double](arrays, ints[0], numbers[0], <double*> arrays[0].data, <double*> arrays[1].data, <double*> arrays[2].data,
                     NULL, NULL, NULL)
    return -1


cdef Py_ssize_t distances_back(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """The gradients of x1 and x2 (not of pairs), x1, x2, y, g, as above."""
    cdef Py_ssize_t size
    cdef int a, d
    cdef char* second = arrays[0 if ints[0] else 1].data
    for a in range(1 if ints[0] else 2):
        size = itemsize_of(arrays[a].dtype)
        for d in range(arrays[a].ndim):
            size *= arrays[a].shape[d]
        memset(arrays[a].data, 0, size)
    if arrays[0].dtype == FLOAT32:
        walk[float](arrays + 1, ints[0], numbers[0], <float*> arrays[4].data, <float*> arrays[2].data, <float*> arrays[3].data,
                    <float*> arrays[5].data, <float*> arrays[0].data, <float*> second)
    else:
        walk[double](arrays + 1, ints[0], numbers[0], <double*> arrays[4].data, <double*> arrays[2].data, <double*> arrays[3].data,
                     <double*> arrays[5].data, <double*> arrays[0].data, <double*> second)
    return -1


cdef Py_ssize_t covariance(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """Of the rows of x, of at most FEW_NUMBERS elements: divided by a number, or, ints, of rows of length 1. Contiguous."""
    cdef double z[FEW_NUMBERS]
    cdef double* row = z
    cdef double s, most
    cdef Py_ssize_t m = arrays[1].shape[0], n = arrays[1].shape[1], i, j, k
    for i in range(m):
        s = most = 0
        for k in range(n):
            row[k] = number_at(&arrays[1], i * n + k)
            s += row[k]
        s /= n
        for k in range(n):
            row[k] -= s
            most = max(most, fabs(row[k]))
        if ints[0]:
            s = 0
            for k in range(n):                    # first by the largest: no overflow
                row[k] /= most
                s += row[k] * row[k]
            s = sqrt(s)
            for k in range(n):
                row[k] /= s
        for j in range(i + 1):
            s = 0 if n else NAN
            for k in range(n):
                s += row[k] * z[j * n + k]
            s = max(min(s, 1.), -1.) if ints[0] else s / numbers[0]
            put_number_at(&arrays[0], i * m + j, s)
            put_number_at(&arrays[0], j * m + i, s)
        row += n
    return -1


cdef Py_ssize_t margins(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """arrays: the losses, their gradients or NULL, x (rows, n), targets of its shape (int64), a list in each row that ends at the first
    negative number. Contiguous. The loss: the sum of max(0, 1 - x[t] + x[c]) / n over targets t and others c. A target that is no class
    is the status."""
    cdef Py_ssize_t n = arrays[2].shape[1], row, count, c, i, bad = -1
    cdef const int64_t* targets = <const int64_t*> arrays[3].data
    cdef double* others = <double*> malloc(2 * n * sizeof(double))
    cdef double* slopes = others + n
    cdef double level, z, total
    cdef int64_t hits
    if others == NULL:
        return OUT_OF_MEMORY
    for row in range(arrays[2].shape[0]):
        for c in range(n):
            others[c], slopes[c] = number_at(&arrays[2], row * n + c), 0
        count = 0
        while count < n and targets[count] >= 0:
            if targets[count] >= n:
                bad = targets[count]
                break
            others[targets[count]] = -INFINITY
            count += 1
        if bad >= 0:
            break
        total = 0
        for i in range(count):
            level, hits = 1 - number_at(&arrays[2], row * n + targets[i]), 0
            for c in range(n):
                z = level + others[c]
                total += z if z > 0 else 0
                hits += z > 0
            if arrays[1].data != NULL:
                for c in range(n):
                    slopes[c] += level + others[c] > 0
                slopes[targets[i]] -= <double> hits
        put_number_at(&arrays[0], row, total / n)
        for c in range(n if arrays[1].data != NULL else 0):
            put_number_at(&arrays[1], row * n + c, slopes[c] / n)
        targets += n
    free(others)
    return bad


add_routine("distances.margins", "wwrr", margins, (IndexError, "multilabel_margin_loss: target {status} is out of range for input of shape "
                                                   "{arrays[2][2]}"))
add_routine("distances.covariance", "wr", covariance)
add_routine("distances.distances", "wrr", distances)
add_routine("distances.back", "wwrrrr", distances_back)
