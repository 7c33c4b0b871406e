# Elements moved by an index along one dimension (gather, and writing, adding, multiplying and comparing in its opposite direction), and
# triangles of matrices.
#
# Relies on table and array/dtype. engine/gather.pyx relies on it, by the routines' numbers.
#
# gather:   out[i, j, k] = x[i, index[i, j, k], k]        scatter: out[i, index[i, j, k], k] = (or +=, *=, max, min) v[i, j, k]
# Both walk over the index; the tensor that it points into takes no step along the dimension of the index. Dims that all arrays step
# through alike are merged, so that whole rows with one index (index_select, where the index has stride 0) are copied at once.

from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, element, itemsize_of, word
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine

from autograd_cy.array.errors import wrong_index

cdef enum Kind:               # what happens to an element that is written to
    COPY = 0
    ADD = 1
    MULTIPLY = 2
    MAXIMUM = 3               # NaN wins
    MINIMUM = 4

cdef struct Walk:
    int ndim                  # at least 1
    Py_ssize_t n[MAX_NDIM]
    Py_ssize_t far[MAX_NDIM]          # steps of the tensor that the index points into
    Py_ssize_t near[MAX_NDIM]         # of the other one, in the index's shape
    Py_ssize_t at[MAX_NDIM]           # of the index
    Py_ssize_t size           # of the dimension of the index, and its stride
    Py_ssize_t stride

# One run of n elements: the position of an index out of range, or -1.
ctypedef Py_ssize_t (*Run)(const Walk* walk, Py_ssize_t n, char* far, char* near, const int64_t* at) noexcept nogil


cdef bint make_walk(Walk* w, const Array* far, const Array* near, const Array* at, int axis) noexcept nogil:
    """False where there is nothing to do."""
    cdef Py_ssize_t f
    cdef int d, k = 0
    w.size, w.stride = far.shape[axis], far.strides[axis]
    for d in range(at.ndim):
        if at.shape[d] == 0:
            return False
        if at.shape[d] == 1:
            continue
        f = 0 if d == axis else far.strides[d]
        if k and w.far[k - 1] == f * at.shape[d] and w.near[k - 1] == near.strides[d] * at.shape[d] \
                and w.at[k - 1] == at.strides[d] * at.shape[d]:
            k -= 1
            w.n[k] *= at.shape[d]
        else:
            w.n[k] = at.shape[d]
        w.far[k], w.near[k], w.at[k] = f, near.strides[d], at.strides[d]
        k += 1
    if k == 0:
        w.n[0], w.far[0], w.near[0], w.at[0] = 1, 0, 0, 0
        k = 1
    w.ndim = k
    return True


cdef Py_ssize_t walk_over(const Walk* w, Run run, Py_ssize_t itemsize, char* far, char* near, const int64_t* at) noexcept nogil:
    """The run along the last dim for every place of the others; the row-major number of an index out of range, or -1."""
    cdef Py_ssize_t position[MAX_NDIM]
    cdef Py_ssize_t done = 0, bad
    cdef int d, last = w.ndim - 1
    for d in range(last):
        position[d] = 0
    while True:
        bad = run(w, w.n[last], far, near, at)
        if bad >= 0:
            return done + bad
        done += w.n[last]
        d = last - 1
        while d >= 0:
            position[d] += 1
            far += w.far[d] * itemsize
            near += w.near[d] * itemsize
            at += w.at[d]
            if position[d] < w.n[d]:
                break
            far -= w.far[d] * w.n[d] * itemsize
            near -= w.near[d] * w.n[d] * itemsize
            at -= w.at[d] * w.n[d]
            position[d] = 0
            d -= 1
        if d < 0:
            return -1


cdef inline bint outside(int64_t i, Py_ssize_t size) noexcept nogil:
    return <uint64_t> i >= <uint64_t> size


# ---- runs: `words` copies in either direction, `combine` computes

cdef inline Py_ssize_t words(const Walk* w, Py_ssize_t n, word* far, word* near, const int64_t* at, bint gathers) noexcept nogil:
    cdef Py_ssize_t f = w.far[w.ndim - 1], s = w.near[w.ndim - 1], a = w.at[w.ndim - 1], size = w.size, stride = w.stride, i
    cdef int64_t k
    cdef word one
    if a == 0:
        k = at[0]
        if outside(k, size):
            return 0
        far += k * stride
        if f == 1 and s == 1:
            if gathers:
                memcpy(near, far, n * sizeof(word))
            else:
                memcpy(far, near, n * sizeof(word))
            return -1
        if f == 1 and s == 0 and not gathers:
            one = near[0]
            for i in range(n):
                far[i] = one
            return -1
        for i in range(n):
            if gathers:
                near[i * s] = far[i * f]
            else:
                far[i * f] = near[i * s]
        return -1
    if f == 0 and s == 1 and a == 1 and stride == 1:        # a row by a list of places
        for i in range(n):
            k = at[i]
            if outside(k, size):
                return i
            if gathers:
                near[i] = far[k]
            else:
                far[k] = near[i]
        return -1
    for i in range(n):
        k = at[i * a]
        if outside(k, size):
            return i
        if gathers:
            near[i * s] = far[i * f + k * stride]
        else:
            far[i * f + k * stride] = near[i * s]
    return -1


cdef inline element combined(element x, element v, Kind kind) noexcept nogil:
    if kind == ADD:
        return <element> (x + v)
    if kind == MULTIPLY:
        return <element> (x * v)
    if kind == MAXIMUM:
        return v if (v > x) | (v != v) else x
    return v if (v < x) | (v != v) else x


cdef inline Py_ssize_t combine(const Walk* w, Py_ssize_t n, element* far, const element* near, const int64_t* at, Kind kind) noexcept nogil:
    cdef Py_ssize_t f = w.far[w.ndim - 1], s = w.near[w.ndim - 1], a = w.at[w.ndim - 1], size = w.size, stride = w.stride, i
    cdef int64_t k
    cdef element x, v
    if a == 0:
        k = at[0]
        if outside(k, size):
            return 0
        far += k * stride
        if f == 1 and s == 1 and kind == ADD:                # sums, the usual ones, in loops without a choice
            for i in range(n):
                far[i] = <element> (far[i] + near[i])
        elif f == 1 and s == 1 and kind == MAXIMUM and (element is float or element is double):
            for i in range(n):                               # as `combined`
                x, v = far[i], near[i]
                x = v if v > x else x
                far[i] = v if v != v else x
        elif f == 1 and s == 1 and kind == MINIMUM and (element is float or element is double):
            for i in range(n):
                x, v = far[i], near[i]
                x = v if v < x else x
                far[i] = v if v != v else x
        else:
            for i in range(n):
                far[i * f] = combined(far[i * f], near[i * s], kind)
        return -1
    if f == 0 and s == 1 and a == 1 and stride == 1 and kind == ADD:
        for i in range(n):
            k = at[i]
            if outside(k, size):
                return i
            far[k] = <element> (far[k] + near[i])
        return -1
    for i in range(n):
        k = at[i * a]
        if outside(k, size):
            return i
        k = i * f + k * stride
        far[k] = combined(far[k], near[i * s], kind)
    return -1


cdef Py_ssize_t gather_words(const Walk* w, Py_ssize_t n, word* far, word* near, const int64_t* at) noexcept nogil:
    return words(w, n, far, near, at, True)


cdef Py_ssize_t scatter_words(const Walk* w, Py_ssize_t n, word* far, word* near, const int64_t* at) noexcept nogil:
    return words(w, n, far, near, at, False)


cdef Py_ssize_t add_numbers(const Walk* w, Py_ssize_t n, element* far, element* near, const int64_t* at) noexcept nogil:
    return combine(w, n, far, near, at, ADD)


cdef Py_ssize_t multiply_numbers(const Walk* w, Py_ssize_t n, element* far, element* near, const int64_t* at) noexcept nogil:
    return combine(w, n, far, near, at, MULTIPLY)


cdef Py_ssize_t maximum_numbers(const Walk* w, Py_ssize_t n, element* far, element* near, const int64_t* at) noexcept nogil:
    return combine(w, n, far, near, at, MAXIMUM)


cdef Py_ssize_t minimum_numbers(const Walk* w, Py_ssize_t n, element* far, element* near, const int64_t* at) noexcept nogil:
    return combine(w, n, far, near, at, MINIMUM)


cdef Run word_run(Py_ssize_t itemsize, bint gathers) noexcept nogil:
    if itemsize == 4:
        return <Run> gather_words[uint32_t] if gathers else <Run> scatter_words[uint32_t]
    if itemsize == 8:
        return <Run> gather_words[uint64_t] if gathers else <Run> scatter_words[uint64_t]
    return <Run> gather_words[uint8_t] if gathers else <Run> scatter_words[uint8_t]


cdef Run number_run(int dtype, Kind kind) noexcept nogil:
    """A sum of bools is their disjunction, a product their conjunction."""
    if dtype == BOOL and kind == ADD:
        kind = MAXIMUM
    if dtype == FLOAT32:
        return (<Run> add_numbers[float] if kind == ADD else <Run> multiply_numbers[float] if kind == MULTIPLY
                else <Run> maximum_numbers[float] if kind == MAXIMUM else <Run> minimum_numbers[float])
    if dtype == FLOAT64:
        return (<Run> add_numbers[double] if kind == ADD else <Run> multiply_numbers[double] if kind == MULTIPLY
                else <Run> maximum_numbers[double] if kind == MAXIMUM else <Run> minimum_numbers[double])
    if dtype == INT64:
        return (<Run> add_numbers[int64_t] if kind == ADD else <Run> multiply_numbers[int64_t] if kind == MULTIPLY
                else <Run> maximum_numbers[int64_t] if kind == MAXIMUM else <Run> minimum_numbers[int64_t])
    if dtype == INT32:
        return (<Run> add_numbers[int32_t] if kind == ADD else <Run> multiply_numbers[int32_t] if kind == MULTIPLY
                else <Run> maximum_numbers[int32_t] if kind == MAXIMUM else <Run> minimum_numbers[int32_t])
    return (<Run> add_numbers[uint8_t] if kind == ADD else <Run> multiply_numbers[uint8_t] if kind == MULTIPLY
            else <Run> maximum_numbers[uint8_t] if kind == MAXIMUM else <Run> minimum_numbers[uint8_t])


# ---- routines

cdef Py_ssize_t gather_along(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """arrays: out, x, index (int64, of the shape of out); ints: axis."""
    cdef Walk walk
    if not make_walk(&walk, &arrays[1], &arrays[0], &arrays[2], <int> ints[0]):
        return -1
    return walk_over(&walk, word_run(itemsize_of(arrays[0].dtype), True), itemsize_of(arrays[0].dtype), arrays[1].data, arrays[0].data,
                     <const int64_t*> arrays[2].data)


cdef Py_ssize_t scatter_along(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """arrays: out, v, index (int64, of the shape of v); ints: axis, kind."""
    cdef Walk walk
    cdef Run run
    if not make_walk(&walk, &arrays[0], &arrays[1], &arrays[2], <int> ints[0]):
        return -1
    if ints[1] == COPY:
        run = word_run(itemsize_of(arrays[0].dtype), False)
    else:
        run = number_run(arrays[0].dtype, <Kind> ints[1])
    return walk_over(&walk, run, itemsize_of(arrays[0].dtype), arrays[0].data, arrays[1].data, <const int64_t*> arrays[2].data)


cdef inline void put_start(element* to, Kind kind, element least, element most) noexcept nogil:
    to[0] = least if kind == MAXIMUM else most if kind == MINIMUM else kind == MULTIPLY


cdef void start_value(char* to, int dtype, Kind kind) noexcept nogil:
    """What combines with v to v."""
    if dtype == FLOAT32:
        put_start[float](<float*> to, kind, -INFINITY, INFINITY)
    elif dtype == FLOAT64:
        put_start[double](<double*> to, kind, -INFINITY, INFINITY)
    elif dtype == INT64:
        put_start[int64_t](<int64_t*> to, kind, INT64_MIN, INT64_MAX)
    elif dtype == INT32:
        put_start[int32_t](<int32_t*> to, kind, INT32_MIN, INT32_MAX)
    else:
        put_start[uint8_t](<uint8_t*> to, kind, 0, 1 if dtype == BOOL else 255)


cdef void divide_by(element* x, const int64_t* counts, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if element is float or element is double:
            x[i] /= <element> (counts[i] + (counts[i] == 0))
        elif counts[i] > 1:                        # rounded down
            x[i] = <element> (<int64_t> x[i] / counts[i] - (<int64_t> x[i] % counts[i] < 0))


cdef Py_ssize_t reduce_along(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """As scatter_along, into contiguous out; ints: axis, kind, whether what is there takes part, whether to divide by how many did."""
    cdef Walk walk
    cdef Array one
    cdef const Array* out = &arrays[0]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t n = 1, i, bad
    cdef int64_t number = 1
    cdef int64_t* counts
    cdef const int64_t* at = <const int64_t*> arrays[2].data
    cdef Kind kind = <Kind> ints[1]
    cdef int d
    for d in range(MAX_NDIM):
        strides[d] = 0
    for d in range(out.ndim):
        n *= out.shape[d]
    one.strides = strides
    if not make_walk(&walk, out, &one, &arrays[2], <int> ints[0]):
        return -1
    if not ints[2]:
        start_value(<char*> &number, out.dtype, kind)
        bad = walk_over(&walk, word_run(itemsize_of(out.dtype), False), itemsize_of(out.dtype), out.data, <char*> &number, at)
        if bad >= 0:
            return bad
    bad = scatter_along(arrays, ints, numbers)
    if bad >= 0 or not ints[3] or out.dtype == BOOL:
        return bad
    counts = <int64_t*> malloc(n * sizeof(int64_t))
    if counts == NULL:
        return OUT_OF_MEMORY
    for i in range(n):
        counts[i] = ints[2]
    number = 1
    walk_over(&walk, <Run> add_numbers[int64_t], sizeof(int64_t), <char*> counts, <char*> &number, at)
    if out.dtype == FLOAT32:
        divide_by(<float*> out.data, counts, n)
    elif out.dtype == FLOAT64:
        divide_by(<double*> out.data, counts, n)
    elif out.dtype == INT64:
        divide_by(<int64_t*> out.data, counts, n)
    elif out.dtype == INT32:
        divide_by(<int32_t*> out.data, counts, n)
    else:
        divide_by(<uint8_t*> out.data, counts, n)
    free(counts)
    return -1


cdef Py_ssize_t keep_first(const Walk* w, Py_ssize_t n, char* far, char* near, const int64_t* at) noexcept nogil:
    cdef Py_ssize_t f = w.far[w.ndim - 1], s = w.near[w.ndim - 1], a = w.at[w.ndim - 1], i
    cdef char* place
    for i in range(n):
        if outside(at[i * a], w.size):
            return i
        place = far + i * f + at[i * a] * w.stride
        near[i * s] = place[0] == 0
        place[0] = 1
    return -1


cdef Py_ssize_t winners(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """arrays: out (bool), index, of one shape; ints: axis, shape that the index points into. Which elements a scatter leaves there: the
    last ones of each place, so the walk goes backwards."""
    cdef Walk walk
    cdef Array far
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t numel = 1, bad
    cdef char* near = arrays[0].data
    cdef const int64_t* at = <const int64_t*> arrays[1].data
    cdef int d
    far.ndim, far.shape, far.strides = arrays[1].ndim, ints + 1, strides
    for d in range(far.ndim - 1, -1, -1):
        strides[d] = numel
        numel *= far.shape[d]
    if not make_walk(&walk, &far, &arrays[0], &arrays[1], <int> ints[0]):
        return -1
    far.data = <char*> calloc(numel if numel else 1, 1)
    if far.data == NULL:
        return OUT_OF_MEMORY
    bad = 0
    for d in range(walk.ndim):
        near += (walk.n[d] - 1) * walk.near[d]
        at += (walk.n[d] - 1) * walk.at[d]
        bad += (walk.n[d] - 1) * walk.far[d]
        walk.near[d], walk.at[d], walk.far[d] = -walk.near[d], -walk.at[d], -walk.far[d]
    walk_over(&walk, keep_first, 1, far.data + bad, near, at)
    free(far.data)
    return -1


cdef Py_ssize_t triangle(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """arrays: out, x, both (batch, rows, columns), out contiguous; ints: diagonal, and whether its lower part is kept."""
    cdef const Array* x = &arrays[1]
    cdef Py_ssize_t rows = x.shape[1], columns = x.shape[2], size = itemsize_of(x.dtype), b, i, j, first, last
    cdef const char* row
    cdef char* out = arrays[0].data
    cdef uint32_t kept
    for b in range(x.shape[0]):
        for i in range(rows):
            row = x.data + (b * x.strides[0] + i * x.strides[1]) * size
            first, last = 0, min(max(i + ints[0] + 1, 0), columns)         # what is kept: from first, up to last
            if not ints[1]:
                first, last = min(max(i + ints[0], 0), columns), columns
            if size == 4 and columns <= 32:                                # not worth three calls
                for j in range(columns):
                    kept = (<const uint32_t*> row)[j * x.strides[2]]
                    (<uint32_t*> out)[j] = kept if first <= j < last else 0
                out += columns * size
                continue
            memset(out, 0, first * size)
            if x.strides[2] == 1:
                memcpy(out + first * size, row + first * size, (last - first) * size)
            elif size == 4:
                for j in range(first, last):
                    (<uint32_t*> out)[j] = (<const uint32_t*> row)[j * x.strides[2]]
            elif size == 8:
                for j in range(first, last):
                    (<uint64_t*> out)[j] = (<const uint64_t*> row)[j * x.strides[2]]
            else:
                for j in range(first, last):
                    (<uint8_t*> out)[j] = (<const uint8_t*> row)[j * x.strides[2]]
            memset(out + last * size, 0, (columns - last) * size)
            out += columns * size
    return -1


add_routine("moving.gather", "wrr", gather_along, wrong_index)
add_routine("moving.scatter", "urr", scatter_along, wrong_index)
add_routine("moving.reduce", "urr", reduce_along, wrong_index)
add_routine("moving.winners", "wr", winners)
add_routine("moving.triangle", "wr", triangle)
