# Binary search, runs of equal elements, counts of numbers and of what lies in bins, and areas under points.
#
# Relies on table. engine/sorting and engine/statistics run them, as routines.

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, element, itemsize_of, real
from autograd_cy.kernels.lines cimport Lines, next_line, number_at, put_number_at, start_lines
from autograd_cy.kernels.table cimport Array, add_routine


# ---- binary search

cdef inline Py_ssize_t found_at(const element* row, const int64_t* order, Py_ssize_t n, element v, bint right) noexcept nogil:
    """How many elements of the sorted row come before v: those below it, or, right, those up to it; all of them before NaN."""
    cdef Py_ssize_t start = 0, half
    cdef element x
    if n == 0 or v != v:
        return n
    while n > 1:                                   # always the same number of rounds: nothing to foresee
        half = n >> 1
        x = row[start + half - 1] if order == NULL else row[order[start + half - 1]]
        start += half if (x <= v if right else x < v) else 0
        n -= half
    x = row[start] if order == NULL else row[order[start]]
    return start + (x <= v if right else x < v)


cdef void search_rows(const Array* arrays, const Py_ssize_t* ints, const element* v, const element* x) noexcept nogil:
    cdef Py_ssize_t i, place, n = arrays[2].shape[arrays[2].ndim - 1], count = 1, each
    cdef const int64_t* order = <const int64_t*> arrays[3].data
    cdef int d
    for d in range(arrays[1].ndim):
        count *= arrays[1].shape[d]
    each = arrays[1].shape[arrays[1].ndim - 1] if arrays[2].ndim > 1 else count
    for i in range(count):
        if i and i % each == 0:
            x += n
            if order != NULL:
                order += n
        place = found_at(x, order, n, v[i], ints[0])
        if arrays[0].dtype == INT32:
            (<int32_t*> arrays[0].data)[i] = <int32_t> place
        else:
            (<int64_t*> arrays[0].data)[i] = place


cdef Py_ssize_t search(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out (int64 or int32), values, sorted rows (one, or as many as values has), order of the rows or nothing; contiguous. ints: right.
    A place that `order` names outside its row is the status."""
    cdef char* v = arrays[1].data
    cdef char* x = arrays[2].data
    cdef Py_ssize_t i, n = arrays[2].shape[arrays[2].ndim - 1], count = 1
    if arrays[3].data != NULL:
        for i in range(arrays[3].ndim):
            count *= arrays[3].shape[i]
        for i in range(count):
            if not 0 <= (<int64_t*> arrays[3].data)[i] < n:
                return i
    if arrays[2].dtype == FLOAT32:
        search_rows(arrays, ints, <float*> v, <float*> x)
    elif arrays[2].dtype == FLOAT64:
        search_rows(arrays, ints, <double*> v, <double*> x)
    elif arrays[2].dtype == INT64:
        search_rows(arrays, ints, <int64_t*> v, <int64_t*> x)
    elif arrays[2].dtype == INT32:
        search_rows(arrays, ints, <int32_t*> v, <int32_t*> x)
    else:
        search_rows(arrays, ints, <uint8_t*> v, <uint8_t*> x)
    return -1


cdef void among_row(uint8_t* out, const element* v, Py_ssize_t count, const element* row, Py_ssize_t n, bint inverted) noexcept nogil:
    cdef Py_ssize_t i, place
    for i in range(count):
        place = found_at(row, NULL, n, v[i], False)
        out[i] = (place < n and row[place] == v[i]) ^ inverted


cdef Py_ssize_t among(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out (bool), values, a sorted row: whether each value is in the row; ints: or not. Contiguous."""
    cdef uint8_t* out = <uint8_t*> arrays[0].data
    cdef char* v = arrays[1].data
    cdef char* x = arrays[2].data
    cdef Py_ssize_t n = arrays[2].shape[0], count = 1
    cdef int d
    for d in range(arrays[1].ndim):
        count *= arrays[1].shape[d]
    if arrays[1].dtype == FLOAT32:
        among_row(out, <float*> v, count, <float*> x, n, ints[0])
    elif arrays[1].dtype == FLOAT64:
        among_row(out, <double*> v, count, <double*> x, n, ints[0])
    elif arrays[1].dtype == INT64:
        among_row(out, <int64_t*> v, count, <int64_t*> x, n, ints[0])
    elif arrays[1].dtype == INT32:
        among_row(out, <int32_t*> v, count, <int32_t*> x, n, ints[0])
    else:
        among_row(out, <uint8_t*> v, count, <uint8_t*> x, n, ints[0])
    return -1


# ---- runs of equal elements, for unique

cdef Py_ssize_t find_runs(const element* x, Py_ssize_t n, element* values, int64_t* starts, int64_t* runs,
                          const int64_t* order) noexcept nogil:
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        if i == 0 or x[i] != x[i - 1]:
            values[found] = x[i]
            if starts != NULL:
                starts[found] = i
            found += 1
        if runs != NULL:
            runs[i if order == NULL else order[i]] = found - 1
    if starts != NULL:
        starts[found] = n
    return found


cdef Py_ssize_t runs_of(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """Of n contiguous elements x: the first of each run, where it starts, and last n (or NULL), the number of the run of each element (or
    NULL), and how many runs there are; an order (or NULL) says where each element of x came from, and the numbers go there."""
    cdef int64_t* starts = <int64_t*> arrays[1].data
    cdef int64_t* runs = <int64_t*> arrays[2].data
    cdef int64_t* order = <int64_t*> arrays[5].data
    cdef char* x = arrays[4].data
    cdef char* values = arrays[0].data
    cdef Py_ssize_t found, n = arrays[4].shape[0]
    if arrays[4].dtype == FLOAT32:
        found = find_runs(<float*> x, n, <float*> values, starts, runs, order)
    elif arrays[4].dtype == FLOAT64:
        found = find_runs(<double*> x, n, <double*> values, starts, runs, order)
    elif arrays[4].dtype == INT64:
        found = find_runs(<int64_t*> x, n, <int64_t*> values, starts, runs, order)
    elif arrays[4].dtype == INT32:
        found = find_runs(<int32_t*> x, n, <int32_t*> values, starts, runs, order)
    else:
        found = find_runs(<uint8_t*> x, n, <uint8_t*> values, starts, runs, order)
    (<int64_t*> arrays[3].data)[0] = found
    return -1


# ---- counting

cdef void count_into(real* out, const int64_t* x, const real* weights, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[x[i]] += weights[i]


cdef Py_ssize_t bincount(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out: how often each number from 0 on is in x (int64, contiguous, none too large), or the sum of its weights. The place of a
    negative number is the status."""
    cdef const int64_t* x = <const int64_t*> arrays[1].data
    cdef int64_t* counts = <int64_t*> arrays[0].data
    cdef Py_ssize_t i, n = arrays[1].shape[0]
    for i in range(n):
        if x[i] < 0:
            return i
    memset(arrays[0].data, 0, arrays[0].shape[0] * itemsize_of(arrays[0].dtype))
    if arrays[2].data == NULL:
        for i in range(n):
            counts[x[i]] += 1
    elif arrays[2].dtype == FLOAT32:
        count_into(<float*> arrays[0].data, x, <float*> arrays[2].data, n)
    else:
        count_into(<double*> arrays[0].data, x, <double*> arrays[2].data, n)
    return -1


cdef void bins_of(real* out, const real* x, const real* edges, const real* weights, Py_ssize_t n, Py_ssize_t bins, int mode,
                  const double* ends) noexcept nogil:
    cdef Py_ssize_t i, place
    cdef real low = edges[0] if mode else <real> ends[0], high = edges[bins] if mode else <real> ends[1]
    for i in range(n):
        if not (x[i] >= low and x[i] <= high):
            continue
        if mode == 2:                              # edges of any widths
            place = found_at(edges, NULL, bins + 1, x[i], True) - 1
        else:
            place = <Py_ssize_t> ((x[i] - low) * bins / (high - low))
            if mode == 1:                          # equal widths, but the edges decide
                place = max(min(place, bins - 1), 0)
                while place > 0 and x[i] < edges[place]:
                    place -= 1
                while place + 1 < bins and x[i] >= edges[place + 1]:
                    place += 1
        out[max(min(place, bins - 1), 0)] += 1 if weights == NULL else weights[i]


cdef Py_ssize_t histogram(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out: how many elements of x, or the sum of their weights (or NULL), lie in each bin; ints: 0: of equal width, numbers has the
    two ends of the range, edges is NULL; 1: of equal width, but edges decides; 2: of any width. The last bin has its
    right edge, too. Contiguous, one dtype."""
    memset(arrays[0].data, 0, arrays[0].shape[0] * itemsize_of(arrays[0].dtype))
    if arrays[0].dtype == FLOAT32:
        bins_of(<float*> arrays[0].data, <float*> arrays[1].data, <float*> arrays[2].data, <float*> arrays[3].data,
                arrays[1].shape[0], arrays[0].shape[0], <int> ints[0], numbers)
    else:
        bins_of(<double*> arrays[0].data, <double*> arrays[1].data, <double*> arrays[2].data, <double*> arrays[3].data,
                arrays[1].shape[0], arrays[0].shape[0], <int> ints[0], numbers)
    return -1


cdef void write_edges(real* out, Py_ssize_t n, real low, real high) noexcept nogil:
    """As linspace: each half is counted from its own end."""
    cdef real step = (high - low) / (n - 1)
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = low + step * i if i < n // 2 else high - step * (n - 1 - i)


cdef Py_ssize_t edges(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out: at least two edges at equal distances from numbers[0] to numbers[1]."""
    if arrays[0].dtype == FLOAT32:
        write_edges[float](<float*> arrays[0].data, arrays[0].shape[0], <float> numbers[0], <float> numbers[1])
    else:
        write_edges[double](<double*> arrays[0].data, arrays[0].shape[0], numbers[0], numbers[1])
    return -1


# ---- areas by the trapezoidal rule

cdef Py_ssize_t area(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out, y and points in the shape of y or NULL: the area under each line of y along an axis; or, ints, under all its beginnings, one
    less than there are elements. numbers: the distance of neighbours, without points."""
    cdef Lines lines
    cdef double sum, step = numbers[0]
    cdef Py_ssize_t i, j, k
    start_lines(&lines, arrays, 3, 1, <int> ints[0])
    while lines.count > 0:
        sum = 0
        for j in range(lines.n - 1):
            i, k = lines.at[1] + j * lines.step[1], lines.at[2] + j * lines.step[2]
            if arrays[2].data != NULL:
                step = number_at(&arrays[2], k + lines.step[2]) - number_at(&arrays[2], k)
            sum += (number_at(&arrays[1], i) + number_at(&arrays[1], i + lines.step[1])) * step / 2
            if ints[1]:
                put_number_at(&arrays[0], lines.at[0] + j * lines.step[0], sum)
        if not ints[1]:
            put_number_at(&arrays[0], lines.at[0], sum)
        lines.count -= 1
        next_line(&lines)
    return -1


add_routine("counting.area", "wrr", area)
add_routine("counting.among", "wrr", among)
add_routine("counting.runs", "wwwwrr", runs_of)
add_routine("counting.bincount", "wrr", bincount, (None, "bincount: expected non-negative integers"))
add_routine("counting.histogram", "wrrr", histogram)
add_routine("counting.edges", "w", edges)
add_routine("counting.search", "wrrr", search, (
    IndexError, "searchsorted: element {status} of the sorter is out of range for rows of shape {arrays[2][2]}"))
