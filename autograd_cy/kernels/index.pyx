# Indexing with arrays: gather, scatter, scatter-add, and the positions of non-zero elements.
#
# Relies on table, array/dtype and tiles.h (short copies).  The engine relies on it, through K.
#
# Advanced indexing is n positions (offsets, in elements) times an inner block of ndim dims. Blocks are copied
# by size: typed copies for one or a few elements, memcpy for long rows.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, int32_t, int64_t
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, UINT8, element, itemsize_of, word
from autograd_cy.kernels.table cimport Array, K, add_routine

cdef extern from "tiles.h" nogil:
    void ag_copy_short(char* dst, const char* src, Py_ssize_t size)

cdef enum:
    MEMCPY_BYTES = 128        # rows of at least so many bytes are worth a call of memcpy

# The inner part without dims of size 1 and with neighbours merged; ndim is at least 1.
cdef struct Inner:
    int ndim
    Py_ssize_t size
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t strides[MAX_NDIM]


cdef void make_inner(Inner* inner, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    cdef int d, n = 0
    inner.size = 1
    for d in range(ndim):
        inner.size *= shape[d]
        if shape[d] == 1:
            continue
        if n and inner.strides[n - 1] == strides[d] * shape[d]:
            inner.shape[n - 1] *= shape[d]
            inner.strides[n - 1] = strides[d]
        else:
            inner.shape[n] = shape[d]
            inner.strides[n] = strides[d]
            n += 1
    if n == 0:
        inner.shape[0] = 1
        inner.strides[0] = 1
        n = 1
    inner.ndim = n


cdef inline Py_ssize_t next_row(const Inner* inner, Py_ssize_t* position) noexcept nogil:
    """Step `position` over all dims but the last; the change of offset."""
    cdef int d = inner.ndim - 2
    cdef Py_ssize_t change = 0
    while d >= 0:
        position[d] += 1
        change += inner.strides[d]
        if position[d] < inner.shape[d]:
            break
        change -= inner.strides[d] * inner.shape[d]
        position[d] = 0
        d -= 1
    return change


cdef Py_ssize_t index_offsets(Py_ssize_t n, int nidx, const long long** idx, const Py_ssize_t* dims,
                              const Py_ssize_t* strides, Py_ssize_t* offsets) noexcept nogil:
    cdef Py_ssize_t j, size, stride, bad = n
    cdef long long i
    cdef const long long* index
    cdef int k, wrong
    for k in range(nidx):
        index = idx[k]
        size = dims[k]
        stride = strides[k]
        wrong = 0
        for j in range(n):                     # no exit inside the loop, so that it can be vectorised
            i = index[j]
            i += size if i < 0 else 0
            wrong |= <unsigned long long> i >= <unsigned long long> size
            # wrapping arithmetic: a wild index must not overflow a signed number
            offsets[j] = <Py_ssize_t> (<size_t> (offsets[j] if k else 0) + <size_t> i * <size_t> stride)
        if wrong:
            for j in range(bad):
                i = index[j]
                if i < -size or i >= size:
                    bad = j
                    break
    if nidx == 0:
        for j in range(n):
            offsets[j] = 0
    return bad if bad < n else -1


# ---------------------------------------------------------------------------------------- gather and scatter

cdef inline void copy_run(word* dst, const word* src, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t size = n * <Py_ssize_t> sizeof(word)
    if size == 16:                             # constant sizes become moves: 4 float32 take 1 ns instead of 2
        memcpy(dst, src, 16)
    elif size == 8:
        memcpy(dst, src, 8)
    elif size >= MEMCPY_BYTES:
        memcpy(dst, src, size)
    else:
        ag_copy_short(<char*> dst, <const char*> src, size)


cdef void gather_typed(const Inner* inner, Py_ssize_t n, const Py_ssize_t* offsets, const word* src,
                       word* out) noexcept nogil:
    cdef Py_ssize_t j, i, rows, _, length = inner.shape[inner.ndim - 1], stride = inner.strides[inner.ndim - 1]
    cdef Py_ssize_t position[MAX_NDIM]
    cdef const word* row
    cdef int d
    if inner.size == 1:
        for j in range(n):
            out[j] = src[offsets[j]]
        return
    if inner.ndim == 1 and stride == 1:
        for j in range(n):
            copy_run(out, src + offsets[j], length)
            out += length
        return
    rows = inner.size // length
    for d in range(inner.ndim):
        position[d] = 0
    for j in range(n):
        row = src + offsets[j]
        for _ in range(rows):
            if stride == 1:
                copy_run(out, row, length)
            else:
                for i in range(length):
                    out[i] = row[i * stride]
            out += length
            row += next_row(inner, position)


cdef void scatter_typed(const Inner* inner, Py_ssize_t n, const Py_ssize_t* offsets, const word* src,
                        word* dst) noexcept nogil:
    cdef Py_ssize_t j, i, rows, _, length = inner.shape[inner.ndim - 1], stride = inner.strides[inner.ndim - 1]
    cdef Py_ssize_t position[MAX_NDIM]
    cdef word* row
    cdef int d
    if inner.size == 1:
        for j in range(n):
            dst[offsets[j]] = src[j]
        return
    if inner.ndim == 1 and stride == 1:
        for j in range(n):
            copy_run(dst + offsets[j], src, length)
            src += length
        return
    rows = inner.size // length
    for d in range(inner.ndim):
        position[d] = 0
    for j in range(n):
        row = dst + offsets[j]
        for _ in range(rows):
            if stride == 1:
                copy_run(row, src, length)
            else:
                for i in range(length):
                    row[i * stride] = src[i]
            src += length
            row += next_row(inner, position)


cdef inline void add_run(element* dst, const element* src, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = <element> (dst[i] + src[i])


cdef void scatter_add_typed(const Inner* inner, Py_ssize_t n, const Py_ssize_t* offsets, const element* src,
                            element* dst) noexcept nogil:
    cdef Py_ssize_t j, i, rows, _, length = inner.shape[inner.ndim - 1], stride = inner.strides[inner.ndim - 1]
    cdef Py_ssize_t position[MAX_NDIM]
    cdef element* row
    cdef int d
    if inner.size == 1:
        for j in range(n):
            dst[offsets[j]] = <element> (dst[offsets[j]] + src[j])
        return
    rows = inner.size // length
    for d in range(inner.ndim):
        position[d] = 0
    for j in range(n):
        row = dst + offsets[j]
        for _ in range(rows):
            if stride == 1:
                add_run(row, src, length)
            else:
                for i in range(length):
                    row[i * stride] = <element> (row[i * stride] + src[i])
            src += length
            row += next_row(inner, position)


cdef void scatter_or(const Inner* inner, Py_ssize_t n, const Py_ssize_t* offsets, const uint8_t* src,
                     uint8_t* dst) noexcept nogil:
    """The sum of bools is their disjunction."""
    cdef Py_ssize_t j, i, rows, _, length = inner.shape[inner.ndim - 1], stride = inner.strides[inner.ndim - 1]
    cdef Py_ssize_t position[MAX_NDIM]
    cdef uint8_t* row
    cdef int d
    rows = inner.size // length
    for d in range(inner.ndim):
        position[d] = 0
    for j in range(n):
        row = dst + offsets[j]
        for _ in range(rows):
            for i in range(length):
                row[i * stride] |= src[i]
            src += length
            row += next_row(inner, position)


cdef void gather(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                 const Py_ssize_t* strides, const char* src, char* out) noexcept nogil:
    cdef Inner inner
    make_inner(&inner, ndim, shape, strides)
    if inner.size == 0 or n == 0:
        return
    if itemsize == 4:
        gather_typed(&inner, n, offsets, <const uint32_t*> src, <uint32_t*> out)
    elif itemsize == 8:
        gather_typed(&inner, n, offsets, <const uint64_t*> src, <uint64_t*> out)
    elif itemsize == 1:
        gather_typed(&inner, n, offsets, <const uint8_t*> src, <uint8_t*> out)
    else:
        gather_typed(&inner, n, offsets, <const uint16_t*> src, <uint16_t*> out)


cdef void scatter(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                  const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil:
    cdef Inner inner
    make_inner(&inner, ndim, shape, strides)
    if inner.size == 0 or n == 0:
        return
    if itemsize == 4:
        scatter_typed(&inner, n, offsets, <const uint32_t*> src, <uint32_t*> dst)
    elif itemsize == 8:
        scatter_typed(&inner, n, offsets, <const uint64_t*> src, <uint64_t*> dst)
    elif itemsize == 1:
        scatter_typed(&inner, n, offsets, <const uint8_t*> src, <uint8_t*> dst)
    else:
        scatter_typed(&inner, n, offsets, <const uint16_t*> src, <uint16_t*> dst)


cdef void scatter_add(int dtype, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                      const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil:
    cdef Inner inner
    make_inner(&inner, ndim, shape, strides)
    if inner.size == 0 or n == 0:
        return
    if dtype == FLOAT32:
        scatter_add_typed(&inner, n, offsets, <const float*> src, <float*> dst)
    elif dtype == FLOAT64:
        scatter_add_typed(&inner, n, offsets, <const double*> src, <double*> dst)
    elif dtype == INT64:
        scatter_add_typed(&inner, n, offsets, <const int64_t*> src, <int64_t*> dst)
    elif dtype == INT32:
        scatter_add_typed(&inner, n, offsets, <const int32_t*> src, <int32_t*> dst)
    elif dtype == UINT8:
        scatter_add_typed(&inner, n, offsets, <const uint8_t*> src, <uint8_t*> dst)
    else:
        scatter_or(&inner, n, offsets, <const uint8_t*> src, <uint8_t*> dst)


# --------------------------------------------------------------------------------------------------- non-zero

cdef Py_ssize_t count_row(int dtype, const char* x, Py_ssize_t n) noexcept nogil:
    """Contiguous elements that are not 0: as bools, by the conversion of the best instruction-set level, added eight at a time."""
    cdef uint64_t words[64]
    cdef uint64_t ones
    cdef Py_ssize_t count = 0, length, i
    cdef char* pointers[2]
    while n > 0:
        length = min(n, <Py_ssize_t> sizeof(words))
        words[(length - 1) // 8] = 0               # the rest of the last word
        pointers[0], pointers[1] = <char*> words, <char*> x
        K.casts[dtype][<int> BOOL](length, pointers, NULL)
        ones = 0
        for i in range((length + 7) // 8):
            ones += words[i]
        ones = (ones & 0x00FF00FF00FF00FFULL) + (ones >> 8 & 0x00FF00FF00FF00FFULL)
        count += ones * 0x0001000100010001ULL >> 48
        x += length * itemsize_of(dtype)
        n -= length
    return count


cdef Py_ssize_t count_typed(const Inner* inner, const element* x) noexcept nogil:
    cdef Py_ssize_t i, _, rows, count = 0, length = inner.shape[inner.ndim - 1], stride = inner.strides[inner.ndim - 1]
    cdef Py_ssize_t position[MAX_NDIM]
    cdef int d
    cdef int code = (FLOAT32 if element is float else FLOAT64 if element is double else INT64 if element is int64_t
                     else INT32 if element is int32_t else UINT8)
    rows = inner.size // length
    for d in range(inner.ndim):
        position[d] = 0
    for _ in range(rows):
        if stride == 1:
            count += count_row(code, <const char*> x, length)
        else:
            for i in range(length):
                count += x[i * stride] != 0
        x += next_row(inner, position)
    return count


cdef void nonzero_typed(int ndim, const Py_ssize_t* shape, const element* x, const Py_ssize_t* strides,
                        long long* out) noexcept nogil:
    """Positions need the dims as the caller sees them, so nothing is merged here."""
    cdef long long position[MAX_NDIM]
    cdef Py_ssize_t i, n, count, length = shape[ndim - 1], stride = strides[ndim - 1]
    cdef int d
    cdef Inner inner
    if ndim == 1:                              # without a branch that depends on the values; it never writes behind the last one
        make_inner(&inner, 1, shape, strides)
        count, n, i = count_typed(&inner, x), 0, 0
        while n < count:
            out[n] = i
            n += x[i * stride] != 0
            i += 1
        return
    for d in range(ndim):
        position[d] = 0
    while True:
        for i in range(length):
            if x[i * stride] != 0:
                for d in range(ndim - 1):
                    out[d] = position[d]
                out[ndim - 1] = i
                out += ndim
        d = ndim - 2
        while d >= 0:
            position[d] += 1
            x += strides[d]
            if position[d] < shape[d]:
                break
            x -= strides[d] * shape[d]
            position[d] = 0
            d -= 1
        if d < 0:
            return


cdef Py_ssize_t count_nonzero(int dtype, int ndim, const Py_ssize_t* shape, const char* x,
                              const Py_ssize_t* strides) noexcept nogil:
    cdef Inner inner
    make_inner(&inner, ndim, shape, strides)
    if inner.size == 0:
        return 0
    if dtype == FLOAT32:
        return count_typed(&inner, <const float*> x)
    if dtype == FLOAT64:
        return count_typed(&inner, <const double*> x)
    if dtype == INT64:
        return count_typed(&inner, <const int64_t*> x)
    if dtype == INT32:
        return count_typed(&inner, <const int32_t*> x)
    return count_typed(&inner, <const uint8_t*> x)


cdef void nonzero(int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* strides,
                  long long* out) noexcept nogil:
    cdef int d
    for d in range(ndim):
        if shape[d] == 0:
            return
    if ndim == 0:                              # at most one row, of no numbers
        return
    if dtype == FLOAT32:
        nonzero_typed(ndim, shape, <const float*> x, strides, out)
    elif dtype == FLOAT64:
        nonzero_typed(ndim, shape, <const double*> x, strides, out)
    elif dtype == INT64:
        nonzero_typed(ndim, shape, <const int64_t*> x, strides, out)
    elif dtype == INT32:
        nonzero_typed(ndim, shape, <const int32_t*> x, strides, out)
    else:
        nonzero_typed(ndim, shape, <const uint8_t*> x, strides, out)


K.index_offsets = index_offsets
K.gather = gather
K.scatter = scatter
K.scatter_add = scatter_add
K.count_nonzero = count_nonzero
K.nonzero = nonzero


# ---- a check: no divisor of integers is zero

DIVISIONS = ("floor_divide", "remainder", "fmod")


cdef Py_ssize_t divisors(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Py_ssize_t numel = 1
    cdef int d
    for d in range(arrays[0].ndim):
        numel *= arrays[0].shape[d]
    return -1 if count_nonzero(arrays[0].dtype, arrays[0].ndim, arrays[0].shape, arrays[0].data, arrays[0].strides) == numel else 0


def division_error(status, arrays, ints):
    """For the divisors of DIVISIONS[ints[0]]."""
    return ZeroDivisionError(f"{DIVISIONS[ints[0]]}: integer division by zero")


add_routine("index.divisors", "r", divisors, division_error)
