# The choice of a matrix product: own kernel when small, SciPy's BLAS when large, panels for integers.
#
# Relies on kernels/table (K.small_gemm) and on scipy.linalg.cython_blas, bound at the first large product because
# importing scipy.linalg costs 175 ms.  The engine and the graph machine rely on it.

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.string cimport memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, UINT8, itemsize_of
from autograd_cy.kernels.table cimport K, PANEL, recorder, recording

from autograd_cy.array.errors import worded

cdef enum:
    INT_LIMIT = 2147483647      # BLAS takes 32-bit sizes
    # Multiply-adds. Below SMALL the own kernel needs no more time than one thread of OpenBLAS (128-cubed, float32: 38 us
    # and 45; with AVX2 39 and 47), and two threads of it sharing a core with another process have taken 20 ms.
    SMALL = 2 * 1024 * 1024 + 1
    PANEL_ROWS = 128            # 16 KB of integers
    GROUP = 8                   # rows that are read together, where a column is what lies together

ctypedef void (*SGemm)(char* ta, char* tb, int* m, int* n, int* k, float* alpha, float* a, int* lda, float* b, int* ldb,
                       float* beta, float* c, int* ldc) noexcept nogil
ctypedef void (*DGemm)(char* ta, char* tb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b, int* ldb,
                       double* beta, double* c, int* ldc) noexcept nogil
ctypedef int (*GetThreads)() noexcept nogil
ctypedef void (*SetThreads)(int n) noexcept nogil

cdef SGemm sgemm = NULL
cdef DGemm dgemm = NULL
cdef GetThreads blas_get_threads = NULL
cdef SetThreads blas_set_threads = NULL
cdef int wanted_threads = 0     # 0: as many as the BLAS chooses


cdef void* capsule_pointer(object api, str name) except NULL:
    capsule = api[name]
    cdef const char* signature = PyCapsule_GetName(capsule)
    if b"int *" not in <bytes>signature:
        raise ImportError(f"scipy.linalg.cython_blas.{name} has an unknown signature: {(<bytes>signature).decode()}")
    return PyCapsule_GetPointer(capsule, signature)


cdef int bind_blas() except -1:
    """Take the BLAS functions from SciPy, and the thread functions of its OpenBLAS where it exports them."""
    global sgemm, dgemm, blas_get_threads, blas_set_threads
    import ctypes

    from scipy.linalg import cython_blas

    api = cython_blas.__pyx_capi__
    dgemm = <DGemm>capsule_pointer(api, "dgemm")
    library = ctypes.CDLL(cython_blas.__file__)    # already loaded; a symbol is looked up in what it links to as well
    for prefix in ("scipy_openblas", "openblas"):
        getter = getattr(library, f"{prefix}_get_num_threads", None)
        setter = getattr(library, f"{prefix}_set_num_threads", None)
        if getter is not None and setter is not None:
            blas_get_threads = <GetThreads><size_t>ctypes.cast(getter, ctypes.c_void_p).value
            blas_set_threads = <SetThreads><size_t>ctypes.cast(setter, ctypes.c_void_p).value
            if wanted_threads > 0:
                blas_set_threads(wanted_threads)
            break
    sgemm = <SGemm>capsule_pointer(api, "sgemm")   # last: it says that everything is bound
    return 0


def set_num_threads(int n):
    """Let large matrix products use n threads (n >= 1).

    Takes effect where SciPy's BLAS is OpenBLAS (its wheels); another BLAS keeps its own setting.
    Raises ValueError when n < 1.
    """
    global wanted_threads
    if n < 1:
        raise worded(ValueError, "set_num_threads: expected a positive number of threads, got {}", n)
    wanted_threads = n
    if blas_set_threads != NULL:
        blas_set_threads(n)


def get_num_threads():
    """The number of threads that a large matrix product may use."""
    if wanted_threads > 0:
        return wanted_threads
    if sgemm == NULL:
        bind_blas()
    return blas_get_threads() if blas_get_threads != NULL else 1


cdef void blas_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                    const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil:
    """Row-major through the column-major BLAS: C.T = op(B).T op(A).T, with the operands swapped."""
    cdef char first = b"T" if tb else b"N"
    cdef char second = b"T" if ta else b"N"
    cdef int rows = <int>n, cols = <int>m, inner = <int>k, ld1 = <int>ldb, ld2 = <int>lda, ld3 = <int>ldc
    cdef float one_f = 1, zero_f = 0
    cdef double one_d = 1, zero_d = 0
    if dtype == FLOAT32:
        sgemm(&first, &second, &rows, &cols, &inner, &one_f, <float*>b, &ld1, <float*>a, &ld2, &zero_f, <float*>c, &ld3)
    else:
        dgemm(&first, &second, &rows, &cols, &inner, &one_d, <double*>b, &ld1, <double*>a, &ld2, &zero_d, <double*>c, &ld3)


cdef inline bint fits_blas(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, Py_ssize_t lda, Py_ssize_t ldb,
                           Py_ssize_t ldc) noexcept nogil:
    return max(max(max(m, n), k), max(max(lda, ldb), ldc)) <= INT_LIMIT


cdef bint needs_blas(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Whether the product goes to a BLAS that is still to be bound."""
    return dtype <= FLOAT64 and sgemm == NULL and <double>m * <double>n * <double>k >= SMALL


cdef inline int known_dtype(int dtype) except -1:
    if dtype != FLOAT32 and dtype != FLOAT64 and dtype != INT64 and dtype != INT32 and dtype != UINT8:
        raise worded(TypeError, "matmul: expected float32, float64, int64, int32 or uint8, got dtype code {}", dtype)
    return 0


cdef int batched_gemm(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                      const char* a, Py_ssize_t lda, Py_ssize_t a_batch_stride, const char* b, Py_ssize_t ldb,
                      Py_ssize_t b_batch_stride, char* c, Py_ssize_t ldc, Py_ssize_t c_batch_stride) except -1:
    cdef double work = <double>m * <double>n * <double>k
    known_dtype(dtype)
    if recording():
        recorder.gemm(dtype, ta, tb, batch, m, n, k, a, lda, a_batch_stride, b, ldb, b_batch_stride, c, ldc, c_batch_stride)
    if needs_blas(dtype, m, n, k):
        bind_blas()
    if work * batch < RELEASE:
        gemm_run(dtype, ta, tb, batch, m, n, k, a, lda, a_batch_stride, b, ldb, b_batch_stride, c, ldc, c_batch_stride)
    else:
        with nogil:
            gemm_run(dtype, ta, tb, batch, m, n, k, a, lda, a_batch_stride, b, ldb, b_batch_stride, c, ldc, c_batch_stride)
    return 0


cdef void gemm_run(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                   const char* a, Py_ssize_t lda, Py_ssize_t a_batch_stride, const char* b, Py_ssize_t ldb,
                   Py_ssize_t b_batch_stride, char* c, Py_ssize_t ldc, Py_ssize_t c_batch_stride) noexcept nogil:
    """batched_gemm once the dtype is known to be right and, for large products, the BLAS is bound."""
    cdef double work = <double>m * <double>n * <double>k
    cdef Py_ssize_t itemsize = itemsize_of(dtype)
    cdef Py_ssize_t _
    # The row stride of a matrix with one row may be anything; BLAS wants at least the length of a row.
    if (k if ta else m) <= 1:
        lda = m if ta else k
    if (n if tb else k) <= 1:
        ldb = k if tb else n
    if m <= 1:
        ldc = n
    for _ in range(batch):
        if dtype != FLOAT32 and dtype != FLOAT64:
            int_gemm(dtype, ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
        elif work < SMALL or not fits_blas(m, n, k, lda, ldb, ldc):       # the own kernel takes any size, so that none is refused
            K.small_gemm(dtype, ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
        else:
            blas_gemm(dtype, ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
        a += a_batch_stride * itemsize
        b += b_batch_stride * itemsize
        c += c_batch_stride * itemsize


# Unsigned, so that an overflow wraps instead of being undefined.
ctypedef fused integer:
    unsigned long long
    unsigned int
    unsigned char


cdef void int_product(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const integer* a, Py_ssize_t am, Py_ssize_t ak, const integer* b,
                      Py_ssize_t bk, Py_ssize_t bn, integer* c, Py_ssize_t cm, Py_ssize_t cn) noexcept nogil:
    """Panels of b as int64, whose sums the loop of the level forms in registers; few columns one element at a time."""
    cdef long long panel[PANEL_ROWS * PANEL]
    cdef long long packed[GROUP * PANEL_ROWS]
    cdef long long sums[PANEL]
    cdef const long long* used
    cdef Py_ssize_t i, p, j, r, left = 0, top = 0, rows, width, group, step
    cdef bint direct = ak == 1 and sizeof(integer) == 8
    cdef integer x
    if n < PANEL // 2 or k == 0:
        for i in range(m):
            for j in range(n):
                x = 0
                for p in range(k):
                    x += a[i * am + p * ak] * b[p * bk + j * bn]
                c[i * cm + j * cn] = x
        return
    while left < n:
        width, top = min(n - left, <Py_ssize_t> PANEL), 0
        if width < PANEL:
            memset(panel, 0, sizeof(panel))
        while top < k:
            rows = min(k - top, <Py_ssize_t> PANEL_ROWS)
            used, step = <const long long*> (b + top * bk + left), bk
            if sizeof(integer) < 8 or bn != 1 or width < PANEL or m > 2:
                used, step = panel, PANEL
                for p in range(rows):
                    for j in range(width):
                        panel[p * PANEL + j] = <long long> b[(top + p) * bk + (left + j) * bn]
            i = 0
            while i < m:
                group = min(m - i, <Py_ssize_t> GROUP)
                if not direct:
                    for p in range(rows):
                        for r in range(group):
                            packed[r * PANEL_ROWS + p] = <long long> a[(i + r) * am + (top + p) * ak]
                for r in range(group):
                    for j in range(width):
                        sums[j] = <long long> c[i * cm + (left + j) * cn] if top else 0
                    K.int_columns(rows, <const long long*> (a + i * am + top) if direct else packed + r * PANEL_ROWS, used, step,
                                  sums)
                    for j in range(width):
                        c[i * cm + (left + j) * cn] = <integer> sums[j]
                    i += 1
            top += rows
        left += width


cdef void int_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                   const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil:
    cdef Py_ssize_t am = 1 if ta else lda, ak = lda if ta else 1
    cdef Py_ssize_t bk = 1 if tb else ldb, bn = ldb if tb else 1, cm = ldc, cn = 1
    if n < PANEL // 2 <= m and ta:                 # the transposed product, whose panels are rows of a
        a, b, m, n, am, ak, bk, bn, cm, cn = b, a, n, m, bn, bk, ak, am, 1, ldc
    if dtype == INT64:
        int_product(m, n, k, <const unsigned long long*>a, am, ak, <const unsigned long long*>b, bk, bn, <unsigned long long*>c, cm, cn)
    elif dtype == INT32:
        int_product(m, n, k, <const unsigned int*>a, am, ak, <const unsigned int*>b, bk, bn, <unsigned int*>c, cm, cn)
    else:
        int_product(m, n, k, <const unsigned char*>a, am, ak, <const unsigned char*>b, bk, bn, <unsigned char*>c, cm, cn)
