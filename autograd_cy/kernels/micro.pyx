# Small matrix products: blocking, packing and the choice of a register tile, for float32 and float64.
#
# Relies on micro.h (the tiles, compiled for the level's vector width) and on kernels/table.
# kernels/gemm relies on it, through K.small_gemm.
#
# The tile reads A by scalars with any strides, so A and its transpose cost the same; B must have rows.
# A transposed B is packed first, a panel of columns and at most KC rows at a time (or, for very few rows of A, the
# product is a set of dot products).  One call chain is inlined into small_gemm: passing a dozen arguments on the stack
# costs about 3 ns per level.

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.table cimport K, PANEL

cdef extern from "micro.h" nogil:
    const int AG_WIDEST             # bytes of the widest vector
    const int AG_MAX_VECTORS        # vectors of columns in a panel
    const int AG_MASKED_LOADS
    const int AG_SCRATCH            # bytes
    void* ag_scratch() noexcept
    void ag_panel_f32(int bytes, int nv, Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t am, Py_ssize_t ak,
                      const float* b, Py_ssize_t ldb, Py_ssize_t last, float* c, Py_ssize_t ldc, int add) noexcept
    void ag_panel_f64(int bytes, int nv, Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t am, Py_ssize_t ak,
                      const double* b, Py_ssize_t ldb, Py_ssize_t last, double* c, Py_ssize_t ldc, int add) noexcept
    void ag_narrow_f32(int bytes, Py_ssize_t cols, Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t am,
                       Py_ssize_t ak, const float* b, Py_ssize_t ldb, float* c, Py_ssize_t ldc, int add) noexcept
    void ag_narrow_f64(int bytes, Py_ssize_t cols, Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t am,
                       Py_ssize_t ak, const double* b, Py_ssize_t ldb, double* c, Py_ssize_t ldc, int add) noexcept
    void ag_dots_f32(int bytes, int nx, Py_ssize_t m, Py_ssize_t k, const float* a, Py_ssize_t lda, const float* x,
                     Py_ssize_t ldx, float* y, Py_ssize_t y_row, Py_ssize_t y_x, int add) noexcept
    void ag_dots_f64(int bytes, int nx, Py_ssize_t m, Py_ssize_t k, const double* a, Py_ssize_t lda, const double* x,
                     Py_ssize_t ldx, double* y, Py_ssize_t y_row, Py_ssize_t y_x, int add) noexcept
    void ag_transpose4_f32(const float* x, Py_ssize_t ldx, float* out, Py_ssize_t ldo) noexcept
    void ag_transpose4_f64(const double* x, Py_ssize_t ldx, double* out, Py_ssize_t ldo) noexcept
    void ag_transpose8_f32(const float* x, Py_ssize_t ldx, float* out, Py_ssize_t ldo) noexcept

ctypedef fused real:
    float
    double

cdef enum:
    KC = 256        # rows of a packed panel: 256 rows of three 64-byte vectors are 48 KB of the 64 KB of scratch
    DOT_ROWS = 3    # with up to so many rows of A, dot products beat packing a transposed B;
    DOT_K = 32      # with up to so few columns of B they beat half-empty vectors, from so many terms on
    PACK_M = 64     # from so many rows of A and bytes of B on, B is packed
    PACK_BYTES = 65536
    SWAP_K = 24     # from so many terms on, a narrow product is worth computing transposed


cdef inline void transpose_blocks(int size, Py_ssize_t rows, Py_ssize_t cols, const real* x, Py_ssize_t ldx, real* out,
                                  Py_ssize_t ldo) noexcept nogil:
    """out[p, j] = x[j, p] by square blocks; the last block of a row or column overlaps the one before."""
    cdef Py_ssize_t p = 0, j
    while True:
        j = 0
        while True:
            if real is double:
                ag_transpose4_f64(x + j * ldx + p, ldx, out + p * ldo + j, ldo)
            elif size == 8:
                ag_transpose8_f32(x + j * ldx + p, ldx, out + p * ldo + j, ldo)
            else:
                ag_transpose4_f32(x + j * ldx + p, ldx, out + p * ldo + j, ldo)
            if j + size >= cols:
                break
            j = min(j + size, cols - size)
        if p + size >= rows:
            break
        p = min(p + size, rows - size)


cdef void transpose(Py_ssize_t rows, Py_ssize_t cols, const real* x, Py_ssize_t ldx, real* out, Py_ssize_t ldo) noexcept nogil:
    """out[p, j] = x[j, p] for p < rows, j < cols."""
    cdef Py_ssize_t p, j
    if real is float and rows >= 8 and cols >= 8:
        transpose_blocks(8, rows, cols, x, ldx, out, ldo)
    elif rows >= 4 and cols >= 4:
        transpose_blocks(4, rows, cols, x, ldx, out, ldo)
    else:
        for p in range(rows):
            for j in range(cols):
                out[p * ldo + j] = x[j * ldx + p]


cdef inline void panel(int nbytes, int nv, Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t am, Py_ssize_t ak,
                       const real* b, Py_ssize_t ldb, Py_ssize_t last, real* c, Py_ssize_t ldc, int add) noexcept nogil:
    if real is float:
        ag_panel_f32(nbytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add)
    else:
        ag_panel_f64(nbytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add)


cdef inline void narrow_panel(int nbytes, Py_ssize_t n, Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t am,
                              Py_ssize_t ak, const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc, int add) noexcept nogil:
    if real is float:
        ag_narrow_f32(nbytes, n, m, k, a, am, ak, b, ldb, c, ldc, add)
    else:
        ag_narrow_f64(nbytes, n, m, k, a, am, ak, b, ldb, c, ldc, add)


cdef inline void dots(int nx, Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* x, Py_ssize_t ldx,
                      real* y, Py_ssize_t y_row, Py_ssize_t y_x, int add) noexcept nogil:
    cdef int nbytes = AG_WIDEST
    if nbytes == 64 and k * <Py_ssize_t>sizeof(real) < 128 and k * <Py_ssize_t>sizeof(real) != 64:
        nbytes = 32     # most of a last vector would be empty
    if real is float:
        ag_dots_f32(nbytes, nx, m, k, a, lda, x, ldx, y, y_row, y_x, add)
    else:
        ag_dots_f64(nbytes, nx, m, k, a, lda, x, ldx, y, y_row, y_x, add)


cdef void narrow_packed(int nbytes, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t am,
                        Py_ssize_t ak, const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    """Fewer columns than lanes, where B is transposed or loads can't be masked: rows of a whole vector are packed."""
    cdef Py_ssize_t lanes = nbytes // <int>sizeof(real)
    cdef Py_ssize_t p = 0, kc, i, j
    cdef real* packed = <real*>ag_scratch()
    while p < k:
        kc = min(<Py_ssize_t>KC, k - p)
        if tb:
            transpose(kc, n, b + p, ldb, packed, lanes)
        else:
            for i in range(kc):
                for j in range(n):
                    packed[i * lanes + j] = b[(p + i) * ldb + j]
        if not AG_MASKED_LOADS:
            for i in range(kc):
                for j in range(n, lanes):
                    packed[i * lanes + j] = 0
        narrow_panel(nbytes, n, m, kc, a + p * ak, am, ak, packed, lanes, c, ldc, p > 0)
        p += kc


cdef void swapped(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* b, Py_ssize_t ldb,
                  real* c, Py_ssize_t ldc) noexcept nogil:
    """C = A.T B with a narrow B, as the transpose of B.T A, whose rows are longer."""
    cdef real* result = <real*>ag_scratch()
    columns(False, n, m, k, b, 1, ldb, a, lda, result, m)
    transpose(m, n, result, m, c, ldc)


cdef inline Py_ssize_t vectors_of(Py_ssize_t n, int nbytes, const real* kind) noexcept nogil:
    """Vectors of 16, 32 or 64 bytes that hold n numbers."""
    cdef int shift = (2 if real is float else 1) + (0 if nbytes == 16 else 1 if nbytes == 32 else 2)
    return (n + (<Py_ssize_t> 1 << shift) - 1) >> shift


cdef inline int share(Py_ssize_t vectors, Py_ssize_t panels) noexcept nogil:
    """How many vectors the next of so many panels takes; mostly there is one, and a division takes 5 ns."""
    return <int> vectors if panels == 1 else <int> ((vectors + panels - 1) // panels)


cdef void columns_packed(int nbytes, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t am,
                         Py_ssize_t ak, const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    """At least one whole vector of columns, with B packed because it is transposed or large."""
    cdef Py_ssize_t lanes = nbytes // <int>sizeof(real)
    cdef Py_ssize_t vectors = vectors_of(n, nbytes, b)
    cdef Py_ssize_t panels = (vectors + AG_MAX_VECTORS - 1) // AG_MAX_VECTORS
    cdef Py_ssize_t j = 0, p, kc, width, i, q
    cdef int nv
    cdef real* packed = <real*>ag_scratch()
    while panels > 0:
        nv = share(vectors, panels)
        width = min(nv * lanes, n - j)
        if width < lanes:
            j -= lanes - width      # some columns are computed twice, from 0 both times
            width = lanes
        p = 0
        while p < k:
            kc = min(<Py_ssize_t>KC, k - p)
            if tb:
                transpose(kc, width, b + j * ldb + p, ldb, packed, width)
            else:
                for i in range(kc):
                    for q in range(width):
                        packed[i * width + q] = b[(p + i) * ldb + j + q]
            panel(nbytes, nv, m, kc, a + p * ak, am, ak, packed, width, width - lanes, c + j, ldc, p > 0)
            p += kc
        j += width
        vectors -= nv
        panels -= 1


cdef inline void columns(bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t am, Py_ssize_t ak,
                         const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    """Panels of up to AG_MAX_VECTORS vectors of columns, about equally wide; the narrowest vectors that hold n columns, or the
    widest."""
    cdef int nbytes = 16, nv
    cdef Py_ssize_t lanes = nbytes // <int>sizeof(real)
    cdef Py_ssize_t vectors, panels, width
    while lanes < n and nbytes < AG_WIDEST:
        nbytes *= 2
        lanes *= 2
    if n < lanes:
        if tb or not AG_MASKED_LOADS:
            narrow_packed(nbytes, tb, m, n, k, a, am, ak, b, ldb, c, ldc)
        else:
            narrow_panel(nbytes, n, m, k, a, am, ak, b, ldb, c, ldc, 0)
        return
    # The rows of a panel of a large B lie far apart and compete for the same cache lines: 256-cubed with AVX2 took 538 us,
    # 300 packed. Wider vectors read whole lines and gain nothing.
    if tb or AG_WIDEST < 64 and m >= PACK_M and k * ldb * <Py_ssize_t>sizeof(real) > PACK_BYTES:
        columns_packed(nbytes, tb, m, n, k, a, am, ak, b, ldb, c, ldc)
        return
    if n <= AG_MAX_VECTORS * lanes:
        panel(nbytes, <int> vectors_of(n, nbytes, b), m, k, a, am, ak, b, ldb, n - lanes, c, ldc, 0)
        return
    vectors = vectors_of(n, nbytes, b)
    panels = (vectors + AG_MAX_VECTORS - 1) // AG_MAX_VECTORS
    while panels > 0:
        nv = share(vectors, panels)
        width = min(nv * lanes, n)
        # a panel narrower than one vector starts inside the one before, and computes those columns again
        panel(nbytes, nv, m, k, a, am, ak, b, ldb, width - lanes, c, ldc, 0)
        b += width
        c += width
        n -= width
        vectors -= nv
        panels -= 1


cdef void many_dots(int nx, Py_ssize_t m, Py_ssize_t k, const real* a, Py_ssize_t lda, const real* x, Py_ssize_t ldx,
                    Py_ssize_t incx, real* y, Py_ssize_t y_row, Py_ssize_t y_x) noexcept nogil:
    """All dot products of m rows of A with nx <= DOT_ROWS rows of x, packed unless its elements are neighbours."""
    cdef Py_ssize_t p = 0, kc, i, q, block = AG_SCRATCH // (DOT_ROWS * <int>sizeof(real))
    cdef real* packed
    if incx == 1:
        dots(nx, m, k, a, lda, x, ldx, y, y_row, y_x, 0)
        return
    packed = <real*>ag_scratch()
    while p < k:
        kc = min(block, k - p)
        for q in range(nx):
            for i in range(kc):
                packed[q * kc + i] = x[q * ldx + (p + i) * incx]
        dots(nx, m, kc, a + p, lda, packed, kc, y, y_row, y_x, p > 0)
        p += kc


cdef inline void product(bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const real* a, Py_ssize_t lda,
                         const real* b, Py_ssize_t ldb, real* c, Py_ssize_t ldc) noexcept nogil:
    cdef Py_ssize_t am = 1 if ta else lda, ak = lda if ta else 1
    cdef Py_ssize_t i, j
    if k == 1 and ldb == 1:                        # a contiguous column is a row
        tb, ldb = False, n
    if n == 1:
        if not ta and k > 0:
            if tb or ldb == 1:
                dots(1, m, k, a, lda, b, 0, c, ldc, 1, 0)
            else:
                many_dots(1, m, k, a, lda, b, 0, ldb, c, ldc, 1)
            return
        if ta and ldc == 1 and k > 0:
            # a contiguous column is a row: c.T = b.T A
            columns(False, 1, m, k, b, 1, 1 if tb else ldb, a, lda, c, m)
            return
    if m <= 0 or n <= 0:
        return
    if k <= 0:
        for i in range(m):
            for j in range(n):
                c[i * ldc + j] = 0
        return
    if tb and m <= DOT_ROWS and k >= 8:
        many_dots(<int>m, n, k, b, ldb, a, am, ak, c, 1, ldc)
        return
    if not ta and n <= DOT_ROWS and k >= DOT_K:
        if tb:
            many_dots(<int>n, m, k, a, lda, b, ldb, 1, c, ldc, 1)
        else:
            many_dots(<int>n, m, k, a, lda, b, 1, ldb, c, ldc, 1)
        return
    if ta and not tb and k >= SWAP_K and m >= 4 and 2 * n <= m and n * <Py_ssize_t>sizeof(real) <= 16 and m * n <= 4096:
        swapped(m, n, k, a, lda, b, ldb, c, ldc)
        return
    columns(tb, m, n, k, a, am, ak, b, ldb, c, ldc)


cdef void small_gemm(int dtype, int ta, int tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                     const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil:
    if dtype == FLOAT32:
        product(ta, tb, m, n, k, <const float*>a, lda, <const float*>b, ldb, <float*>c, ldc)
    else:
        product(ta, tb, m, n, k, <const double*>a, lda, <const double*>b, ldb, <double*>c, ldc)


cdef void int_columns(Py_ssize_t k, const long long* a, const long long* panel, Py_ssize_t step, long long* sums) noexcept nogil:
    cdef long long total[PANEL]
    cdef Py_ssize_t p, j
    for j in range(PANEL):
        total[j] = sums[j]
    for p in range(k):
        for j in range(PANEL):
            total[j] += a[p] * panel[p * step + j]
    for j in range(PANEL):
        sums[j] = total[j]


K.small_gemm = small_gemm
K.int_columns = int_columns
