# The element types, as the small integers that kernels and tensors carry.
#
# Relies on nothing.  Every layer relies on it.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    FLOAT32 = 0
    FLOAT64 = 1
    INT64 = 2
    INT32 = 3
    UINT8 = 4
    BOOL = 5
    N_DTYPES = 6
    MAX_NDIM = 32

# What kernels are written for: the floats, all types (a bool is a uint8), elements that are moved by size.
ctypedef fused real:
    float
    double

ctypedef fused element:
    float
    double
    int64_t
    int32_t
    uint8_t

ctypedef fused word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef inline Py_ssize_t itemsize_of(int dtype) noexcept nogil:
    if dtype == FLOAT32 or dtype == INT32:
        return 4
    if dtype == FLOAT64 or dtype == INT64:
        return 8
    return 1
