# A probe for the tests: plain functions that call raw kernels through K on addresses (ndarray.ctypes.data) and lists.
#
# Relies on gemm and on table.K, filled by kernels/__init__.py.  Only tests/kernels relies on it; nothing checks its arguments.

import time

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.kernels.gemm cimport batched_gemm, bind_blas, blas_gemm
from autograd_cy.kernels.table cimport MAX_ARRAYS, AdamNumbers, Array, K, Moments


def reduce(int kind, int dtype, shape, size_t x, x_strides, size_t out, out_strides, double param=0, long repeat=1):
    """K.reduce; the nanoseconds of one call (the mean of `repeat`)."""
    cdef Py_ssize_t s[MAX_NDIM]
    cdef Py_ssize_t xs[MAX_NDIM]
    cdef Py_ssize_t os[MAX_NDIM]
    cdef int i, ndim = len(shape)
    cdef long _r
    for i in range(ndim):
        s[i], xs[i], os[i] = shape[i], x_strides[i], out_strides[i]
    start = time.perf_counter_ns()
    for _r in range(repeat):
        K.reduce(kind, dtype, ndim, s, <const char*> x, xs, <char*> out, os, param)
    return (time.perf_counter_ns() - start) / repeat


def softmax(int dtype, Py_ssize_t rows, Py_ssize_t cols, size_t x, size_t out, bint log, long repeat=1):
    cdef long _r
    start = time.perf_counter_ns()
    for _r in range(repeat):
        K.softmax(dtype, rows, cols, <const char*> x, <char*> out, log)
    return (time.perf_counter_ns() - start) / repeat


def softmax_backward(int dtype, Py_ssize_t rows, Py_ssize_t cols, size_t g, size_t y, size_t dx, bint log, long repeat=1):
    cdef long _r
    start = time.perf_counter_ns()
    for _r in range(repeat):
        K.softmax_backward(dtype, rows, cols, <const char*> g, <const char*> y, <char*> dx, log)
    return (time.perf_counter_ns() - start) / repeat


def routine(int number, list arrays, tuple ints, tuple numbers):
    """Run a routine on (address, dtype, shape, strides in elements) or None each."""
    cdef Array given[MAX_ARRAYS]
    cdef Py_ssize_t dims[MAX_ARRAYS][16]
    cdef Py_ssize_t integers[32]
    cdef double floats[8]
    cdef Py_ssize_t k, i
    for k, array in enumerate(arrays):
        given[k].data, given[k].ndim = NULL, 0
        if array is None:
            continue
        address, given[k].dtype, shape, strides = array
        given[k].data, given[k].ndim = <char*> <size_t> address, <int> len(shape)
        for i in range(len(shape)):
            dims[k][i], dims[k][8 + i] = shape[i], strides[i]
        given[k].shape, given[k].strides = dims[k], dims[k] + 8
    for k in range(len(ints)):
        integers[k] = ints[k]
    for k in range(len(numbers)):
        floats[k] = numbers[k]
    return K.routine(number, given, <int> len(ints), integers, <int> len(numbers), floats)


def sgd(int dtype, Py_ssize_t n, size_t p, size_t g, size_t buf, double lr, double momentum, double dampening,
        double weight_decay, bint nesterov, bint maximize, bint first):
    K.sgd(dtype, n, <char*> p, <const char*> g, <char*> buf, lr, momentum, dampening, weight_decay, nesterov, maximize, first)


def adam(int dtype, Py_ssize_t n, size_t p, size_t g, size_t m, size_t v, size_t vmax, double lr, double beta1, double beta2,
         double eps, double weight_decay, bint decoupled, bint maximize, long long step, long repeat=1):
    cdef long _r
    cdef Moments moments = Moments(n=n, p=<char*> p, g=<const char*> g, m=<char*> m, v=<char*> v, vmax=<char*> vmax)
    cdef AdamNumbers numbers = AdamNumbers(lr=lr, beta1=beta1, beta2=beta2, eps=eps, decay=weight_decay, decoupled=decoupled,
                                           maximize=maximize)
    start = time.perf_counter_ns()
    for _r in range(repeat):
        K.adam(dtype, 1, &moments, &numbers, step)
    return (time.perf_counter_ns() - start) / repeat


def rmsprop(int dtype, Py_ssize_t n, size_t p, size_t g, size_t square_avg, size_t buf, size_t grad_avg, double lr, double alpha,
            double eps, double weight_decay, double momentum, bint maximize):
    K.rmsprop(dtype, n, <char*> p, <const char*> g, <char*> square_avg, <char*> buf, <char*> grad_avg, lr, alpha, eps,
              weight_decay, momentum, maximize)


def outside_unit(int dtype, Py_ssize_t n, size_t x):
    return K.outside_unit(dtype, n, <const char*> x)


def gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, size_t a, Py_ssize_t lda, size_t b,
         Py_ssize_t ldb, size_t c, Py_ssize_t ldc, Py_ssize_t batch=1, Py_ssize_t a_batch_stride=0,
         Py_ssize_t b_batch_stride=0, Py_ssize_t c_batch_stride=0):
    """batched_gemm on memory addresses, unchecked."""
    batched_gemm(dtype, ta, tb, batch, m, n, k, <const char*>a, lda, a_batch_stride, <const char*>b, ldb, b_batch_stride,
                 <char*>c, ldc, c_batch_stride)


def small_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, size_t a, Py_ssize_t lda, size_t b,
               Py_ssize_t ldb, size_t c, Py_ssize_t ldc, Py_ssize_t repeat=1):
    """The small kernel itself, `repeat` times."""
    cdef Py_ssize_t _t
    with nogil:
        for _t in range(repeat):
            K.small_gemm(dtype, ta, tb, m, n, k, <const char*>a, lda, <const char*>b, ldb, <char*>c, ldc)


def blas(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, size_t a, Py_ssize_t lda, size_t b,
         Py_ssize_t ldb, size_t c, Py_ssize_t ldc, Py_ssize_t repeat=1):
    """SciPy's BLAS, `repeat` times."""
    cdef Py_ssize_t _t
    bind_blas()
    with nogil:
        for _t in range(repeat):
            blas_gemm(dtype, ta, tb, m, n, k, <const char*>a, lda, <const char*>b, ldb, <char*>c, ldc)
