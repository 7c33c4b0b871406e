# A test-only door to the strided drivers and the indexing kernels: arrays come as addresses, shapes and strides as lists.
#
# Relies on table and on whatever level of the kernels is loaded.  tests/kernels and timings rely on it.

from libc.stdint cimport uint8_t

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.kernels.table cimport K, Loop, Operand, N_VARIANTS

import time

ctypedef fused real:
    float
    double


# The first argument only carries the type.
cdef void add_vv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real* a = p[1]
    cdef real* b = p[2]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] + b[i]


cdef void add_vs(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real* a = p[1]
    cdef real b = p[2][0]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] + b


cdef void sub_vv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real* a = p[1]
    cdef real* b = p[2]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] - b[i]


cdef void sub_vs(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real* a = p[1]
    cdef real b = p[2][0]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] - b


cdef void sub_sv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real a = p[1][0]
    cdef real* b = p[2]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a - b[i]


cdef void scale_vv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef real* a = p[1]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] * <real> attrs[0]


cdef void less_vv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef uint8_t* out = <uint8_t*> p[0]
    cdef real* a = p[1]
    cdef real* b = p[2]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] < b[i]


cdef void where_vv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef uint8_t* mask = <uint8_t*> p[1]
    cdef real* a = p[2]
    cdef real* b = p[3]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] if mask[i] else b[i]


cdef void where_sv(Py_ssize_t n, real** p, const double* attrs) noexcept nogil:
    cdef real* out = p[0]
    cdef uint8_t mask = (<uint8_t*> p[1])[0]
    cdef real* a = p[2]
    cdef real* b = p[3]
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] if mask else b[i]


cdef Loop LOOPS[5][2][N_VARIANTS]
NAMES = ["add", "sub", "scale", "less", "where"]


cdef void fill(int dtype, real* of_this_type):
    LOOPS[0][dtype][0] = <Loop> add_vv[real]
    LOOPS[0][dtype][1] = <Loop> add_vs[real]
    LOOPS[1][dtype][0] = <Loop> sub_vv[real]
    LOOPS[1][dtype][1] = <Loop> sub_vs[real]
    LOOPS[1][dtype][2] = <Loop> sub_sv[real]
    LOOPS[2][dtype][0] = <Loop> scale_vv[real]
    LOOPS[3][dtype][0] = <Loop> less_vv[real]
    LOOPS[4][dtype][0] = <Loop> where_vv[real]
    LOOPS[4][dtype][2] = <Loop> where_sv[real]


fill[float](0, NULL)
fill[double](1, NULL)


cdef int read(object numbers, Py_ssize_t* into) except -1:
    cdef int d
    if len(numbers) > MAX_NDIM:
        raise ValueError("too many dims")
    for d in range(len(numbers)):
        into[d] = numbers[d]
    return 0


def elementwise(str name, int dtype, list shape, list operands, double attr=0.0, Py_ssize_t repeats=1):
    """operands: (address, strides or None, itemsize), the output first. Returns seconds per call."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[8][MAX_NDIM]
    cdef Operand ops[8]
    cdef const Loop* variants = LOOPS[NAMES.index(name)][dtype]
    cdef int k, nin = len(operands) - 1, ndim = len(shape)
    cdef Py_ssize_t _
    read(shape, sizes)
    for k in range(nin + 1):
        address, own, ops[k].itemsize = operands[k]
        ops[k].data = <char*> <size_t> address
        ops[k].strides = NULL
        if own is not None:
            if k and own is operands[0][1]:    # one layout, as the engine shares them
                ops[k].strides = ops[0].strides
                continue
            read(own, strides[k])
            ops[k].strides = strides[k]
    start = time.perf_counter()
    with nogil:
        for _ in range(repeats):
            K.elementwise(variants, nin, ndim, sizes, ops, &attr)
    return (time.perf_counter() - start) / repeats


def copy(list shape, int dst_dtype, size_t dst, list dst_strides, int src_dtype, size_t src, list src_strides,
         Py_ssize_t repeats=1):
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t to[MAX_NDIM]
    cdef Py_ssize_t of[MAX_NDIM]
    cdef int ndim = len(shape)
    cdef Py_ssize_t _
    read(shape, sizes)
    read(dst_strides, to)
    if src_strides is not None:
        read(src_strides, of)
    cdef const Py_ssize_t* src_pointer = of if src_strides is not None else NULL
    start = time.perf_counter()
    with nogil:
        for _ in range(repeats):
            K.copy(ndim, sizes, dst_dtype, <char*> dst, to, src_dtype, <const char*> src, src_pointer)
    return (time.perf_counter() - start) / repeats


def index_offsets(Py_ssize_t n, list addresses, list dims, list strides, size_t offsets, Py_ssize_t repeats=1):
    """Returns (first bad position or -1, seconds per call)."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef const long long* idx[MAX_NDIM]
    cdef Py_ssize_t _, bad = -1
    cdef int k, nidx = len(addresses)
    read(dims, sizes)
    read(strides, steps)
    for k in range(nidx):
        idx[k] = <const long long*> <size_t> addresses[k]
    start = time.perf_counter()
    for _ in range(repeats):
        bad = K.index_offsets(n, nidx, idx, sizes, steps, <Py_ssize_t*> offsets)
    return bad, (time.perf_counter() - start) / repeats


def move(str kind, int dtype, Py_ssize_t itemsize, Py_ssize_t n, size_t offsets, list shape, list strides, size_t src,
         size_t dst, Py_ssize_t repeats=1):
    """kind: gather, scatter or scatter_add. Returns seconds per call."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef const Py_ssize_t* where = <const Py_ssize_t*> offsets
    cdef int ndim = len(shape)
    cdef Py_ssize_t _
    read(shape, sizes)
    read(strides, steps)
    start = time.perf_counter()
    for _ in range(repeats):
        if kind == "gather":
            K.gather(itemsize, n, where, ndim, sizes, steps, <const char*> src, <char*> dst)
        elif kind == "scatter":
            K.scatter(itemsize, n, where, ndim, sizes, steps, <const char*> src, <char*> dst)
        else:
            K.scatter_add(dtype, n, where, ndim, sizes, steps, <const char*> src, <char*> dst)
    return (time.perf_counter() - start) / repeats


def count_nonzero(int dtype, list shape, size_t x, list strides):
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    read(shape, sizes)
    read(strides, steps)
    return K.count_nonzero(dtype, len(shape), sizes, <const char*> x, steps)


def nonzero(int dtype, list shape, size_t x, list strides, size_t out):
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    read(shape, sizes)
    read(strides, steps)
    K.nonzero(dtype, len(shape), sizes, <const char*> x, steps, <long long*> out)
