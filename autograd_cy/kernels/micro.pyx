# Small matrix products: blocking, packing and the choice of a register tile, for float32 and float64.
#
# Relies on micro.h (the tiles, compiled for the level's vector width) and on kernels/table.
# kernels/gemm relies on it, through K.small_gemm.
#
# The tile reads A by scalars with any strides, so A and its transpose cost the same; B must have rows.
# A transposed B is packed first, a panel of columns and at most KC rows at a time.

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.table cimport K

cdef extern from "micro.h" nogil:
    const int AG_WIDEST
    const int AG_MAX_VECTORS
    const int AG_SCRATCH
    void* ag_scratch() noexcept
    void ag_panel_f32(int bytes, int nv, Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t am, Py_ssize_t ak,
                      const float* b, Py_ssize_t ldb, Py_ssize_t last, float* c, Py_ssize_t ldc, int add) noexcept
    void ag_panel_f64(int bytes, int nv, Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t am, Py_ssize_t ak,
                      const double* b, Py_ssize_t ldb, Py_ssize_t last, double* c, Py_ssize_t ldc, int add) noexcept
    void ag_narrow_f32(int bytes, Py_ssize_t cols, Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t am, Py_ssize_t ak,
                       const float* b, float* c, Py_ssize_t ldc, int add) noexcept
    void ag_narrow_f64(int bytes, Py_ssize_t cols, Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t am, Py_ssize_t ak,
                       const double* b, double* c, Py_ssize_t ldc, int add) noexcept
    void ag_dots_f32(Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t lda, const float* x, float* y, Py_ssize_t incy,
                     int add) noexcept
    void ag_dots_f64(Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t lda, const double* x, double* y, Py_ssize_t incy,
                     int add) noexcept

ctypedef fused real:
    float
    double

# Rows of a packed panel: 256 rows of three 64-byte vectors are 48 KB of the 64 KB of scratch.
cdef enum:
    KC = 256


cdef inline void panel(int nbytes, int nv, Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t am, Py_ssize_t ak,
                       const real* b, Py_ssize_t ldb, Py_ssize_t last, real* c, Py_ssize_t ldc, int add) noexcept nogil:
    if real is float:
        ag_panel_f32(nbytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add)
    else:
        ag_panel_f64(nbytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add)


cdef inline void dots(Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* x, real* y, Py_ssize_t incy,
                      int add) noexcept nogil:
    if real is float:
        ag_dots_f32(m, k, a, lda, x, y, incy, add)
    else:
        ag_dots_f64(m, k, a, lda, x, y, incy, add)


cdef inline void pack(Py_ssize_t rows, Py_ssize_t cols, const real* b, Py_ssize_t row_stride, Py_ssize_t col_stride,
                      real* out, Py_ssize_t width) noexcept nogil:
    """out[p, j] = b[p, j] for a (rows, cols) block with any strides; rows of `width` elements, the rest 0."""
    cdef Py_ssize_t p, j
    for p in range(rows):
        for j in range(cols):
            out[p * width + j] = b[p * row_stride + j * col_stride]
        for j in range(cols, width):
            out[p * width + j] = 0


cdef void narrow(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t am, Py_ssize_t ak, const real* b,
                 Py_ssize_t bk, Py_ssize_t bn, real* c, Py_ssize_t ldc) noexcept nogil:
    """Fewer columns than the narrowest vector: B is packed with padding."""
    cdef real* packed = <real*>ag_scratch()
    cdef int nbytes = 16
    cdef Py_ssize_t p = 0, kc
    if n * <Py_ssize_t>sizeof(real) > 16 and AG_WIDEST >= 32:
        nbytes = 32
    while p < k:
        kc = min(<Py_ssize_t>KC, k - p)
        pack(kc, n, b + p * bk, bk, bn, packed, nbytes // <int>sizeof(real))
        if real is float:
            ag_narrow_f32(nbytes, n, m, kc, a + p * ak, am, ak, packed, c, ldc, p > 0)
        else:
            ag_narrow_f64(nbytes, n, m, kc, a + p * ak, am, ak, packed, c, ldc, p > 0)
        p += kc


cdef void columns(int nbytes, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t am,
                  Py_ssize_t ak, const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    """At least one whole vector of columns: panels of up to AG_MAX_VECTORS vectors, of about equal width."""
    cdef Py_ssize_t lanes = nbytes // <int>sizeof(real)
    cdef Py_ssize_t vectors = (n + lanes - 1) // lanes
    cdef Py_ssize_t panels = (vectors + AG_MAX_VECTORS - 1) // AG_MAX_VECTORS
    cdef Py_ssize_t j = 0, p, kc, width
    cdef int nv
    cdef real* packed = NULL
    if tb:
        packed = <real*>ag_scratch()
    while panels > 0:
        nv = <int>((vectors + panels - 1) // panels)
        width = min(nv * lanes, n - j)
        if width < lanes:
            # some columns are computed twice (from 0 both times, so that they may)
            j -= lanes - width
            width = lanes
        if not tb:
            panel(nbytes, nv, m, k, a, am, ak, b + j, ldb, width - lanes, c + j, ldc, 0)
        else:
            p = 0
            while p < k:
                kc = min(<Py_ssize_t>KC, k - p)
                pack(kc, width, b + j * ldb + p, 1, ldb, packed, width)
                panel(nbytes, nv, m, kc, a + p * ak, am, ak, packed, width, width - lanes, c + j, ldc, p > 0)
                p += kc
        j += width
        vectors -= nv
        panels -= 1


cdef void many_dots(Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* x, Py_ssize_t incx, real* y,
                    Py_ssize_t incy) noexcept nogil:
    """y = A x for a row-major A; x is packed unless it is contiguous."""
    cdef Py_ssize_t p = 0, kc, block = AG_SCRATCH // <int>sizeof(real)
    cdef real* packed
    if incx == 1:
        dots(m, k, a, lda, x, y, incy, 0)
        return
    packed = <real*>ag_scratch()
    while p < k:
        kc = min(block, k - p)
        pack(kc, 1, x + p * incx, incx, 1, packed, 1)
        dots(m, kc, a + p, lda, packed, y, incy, p > 0)
        p += kc


cdef void product(bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* b,
                  Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    cdef Py_ssize_t am = 1 if ta else lda, ak = lda if ta else 1
    cdef Py_ssize_t bk = 1 if tb else ldb, bn = ldb if tb else 1
    cdef Py_ssize_t i, j, lanes
    cdef int nbytes = AG_WIDEST
    if m <= 0 or n <= 0:
        return
    if k <= 0:
        for i in range(m):
            for j in range(n):
                c[i * ldc + j] = 0
        return
    if n == 1:
        if not ta:
            many_dots(m, k, a, lda, b, bk, c, ldc)
            return
        if ldc == 1 and m > 1:
            # a column is the transposed row: c.T = b.T a
            product(not tb, False, 1, m, k, b, ldb, a, lda, c, m)
            return
    elif m == 1 and tb:
        many_dots(n, k, b, ldb, a, ak, c, 1)
        return
    lanes = nbytes // <int>sizeof(real)
    while n < lanes and nbytes > 16:
        nbytes >>= 1
        lanes >>= 1
    if n < lanes:
        narrow(m, n, k, a, am, ak, b, bk, bn, c, ldc)
        return
    columns(nbytes, tb, m, n, k, a, am, ak, b, ldb, c, ldc)


cdef void small_gemm(int dtype, int ta, int tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                     const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil:
    if dtype == FLOAT32:
        product(ta, tb, m, n, k, <const float*>a, lda, <const float*>b, ldb, <float*>c, ldc)
    else:
        product(ta, tb, m, n, k, <const double*>a, lda, <const double*>b, ldb, <double*>c, ldc)


K.small_gemm = small_gemm
