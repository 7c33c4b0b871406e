# Matrix products of any size and dtype, row-major: C = op(A) op(B), C is (m, n), op transposes when ta or tb is set.
#
# Relies on kernels/table and, for large products, on SciPy's BLAS.  The engine and the graph machine rely on it.
#
# Leading dimensions are the row strides of the stored matrices, in elements, at least as long as a row
# (any value where there is one row).  Sizes may be 0; k = 0 gives zeros.  C overlaps neither A nor B.
# Call with the GIL held; it is released for long products.

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64
from autograd_cy.kernels.table cimport K, recording

cdef enum:
    RELEASE = 200 * 1000        # multiply-adds, about 10 us; giving up the GIL costs 40 ns

# batch products, the t-th of them at a + t * a_batch_stride (in elements, may be 0) and so on
cdef int batched_gemm(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                      const char* a, Py_ssize_t lda, Py_ssize_t a_batch_stride, const char* b, Py_ssize_t ldb,
                      Py_ssize_t b_batch_stride, char* c, Py_ssize_t ldc, Py_ssize_t c_batch_stride) except -1

# The two halves of batched_gemm, for whoever plans first and runs later without the GIL: bind where needs_blas says so, then run.
cdef int bind_blas() except -1
cdef void blas_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                    const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil
cdef bint needs_blas(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef void gemm_run(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                   const char* a, Py_ssize_t lda, Py_ssize_t a_batch_stride, const char* b, Py_ssize_t ldb,
                   Py_ssize_t b_batch_stride, char* c, Py_ssize_t ldc, Py_ssize_t c_batch_stride) noexcept nogil


cdef inline int gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                     const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) except -1:
    # in double: a product of three sizes may overflow an integer
    if (dtype == FLOAT32 or dtype == FLOAT64) and <double>m * <double>n * <double>k < RELEASE and not recording():
        K.small_gemm(dtype, ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
        return 0
    return batched_gemm(dtype, ta, tb, 1, m, n, k, a, lda, 0, b, ldb, 0, c, ldc, 0)
