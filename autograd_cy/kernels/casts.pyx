# Contiguous elements of one dtype from those of another: K.casts.
#
# Relies on table. The copies of elementwise.pyx rely on it, and so does the engine. A module of its own, as AVX-512 converts to and
# from int64 three times as fast as AVX2, and the drivers of elementwise.pyx gain nothing from it (setup.py).

from libc.stdint cimport uint8_t, int32_t, int64_t

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT64, INT32, UINT8, BOOL
from autograd_cy.kernels.table cimport K, Loop

ctypedef fused from_t:
    float
    double
    int64_t
    int32_t
    uint8_t

ctypedef fused to_t:
    float
    double
    int64_t
    int32_t
    uint8_t


# A Loop in all but its C type: the two fused types must occur among the arguments, so p and attrs carry them.
cdef void cast_loop(Py_ssize_t n, from_t** p, const to_t* attrs) noexcept nogil:
    cdef to_t* dst = <to_t*> p[0]
    cdef from_t* src = p[1]
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = <to_t> src[i]


cdef void truth_loop(Py_ssize_t n, from_t** p, const double* attrs) noexcept nogil:
    cdef uint8_t* dst = <uint8_t*> p[0]
    cdef from_t* src = p[1]
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = src[i] != 0


cdef void fill_casts(int dtype, from_t* of_this_type):
    K.casts[dtype][FLOAT32] = <Loop> cast_loop[from_t, float]
    K.casts[dtype][FLOAT64] = <Loop> cast_loop[from_t, double]
    K.casts[dtype][INT64] = <Loop> cast_loop[from_t, int64_t]
    K.casts[dtype][INT32] = <Loop> cast_loop[from_t, int32_t]
    K.casts[dtype][UINT8] = <Loop> cast_loop[from_t, uint8_t]
    K.casts[dtype][BOOL] = <Loop> truth_loop[from_t]


fill_casts[float](FLOAT32, NULL)
fill_casts[double](FLOAT64, NULL)
fill_casts[int64_t](INT64, NULL)
fill_casts[int32_t](INT32, NULL)
fill_casts[uint8_t](UINT8, NULL)
fill_casts[uint8_t](BOOL, NULL)       # 0 and 1
