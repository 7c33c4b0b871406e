# Factorisations and systems of equations as routines: LU, inverse, determinant, Cholesky, triangular systems; bands of a matrix.
#
# Relies on kernels/table and on SciPy's LAPACK, bound when first needed, because importing scipy.linalg costs 175 ms. engine's linear
# algebra runs them; spectral.pyx shares what lapack.pxd declares.
#
# Matrices of at most SMALL rows are worked on by loops of our own in the same format, since a call of LAPACK takes as long as they.
# More than 500 lines, because every module more is 20 kB more and all of them share one format of factors.

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, NAN, fabs, log, sqrt
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, itemsize_of, real
from autograd_cy.kernels.gemm cimport bind_blas
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine

from autograd_cy.kernels.failures import capsules, failure

cdef enum:
    TILE = 16                 # the step of the two outer loops of `place`

ctypedef void (*Getrf)(int* m, int* n, void* a, int* lda, int* pivots, int* info) noexcept nogil
ctypedef void (*Getrs)(char* trans, int* n, int* k, void* a, int* lda, int* pivots, void* b, int* ldb, int* info) noexcept nogil
ctypedef void (*Getri)(int* n, void* a, int* lda, int* pivots, void* work, int* lwork, int* info) noexcept nogil
ctypedef void (*Potrf)(char* uplo, int* n, void* a, int* lda, int* info) noexcept nogil
ctypedef void (*Trsm)(char* side, char* uplo, char* trans, char* diag, int* m, int* n, void* alpha, void* a, int* lda, void* b,
                      int* ldb) noexcept nogil

cdef bint is_bound = False
cdef float one_f = 1
cdef double one_d = 1


cdef bint bind() noexcept with gil:              # an exception is printed; the routines then have no room to work in
    global is_bound
    cdef int i = 0
    bind_blas()                                              # which sets the number of threads of the library that both are in
    for capsule in capsules():
        api[i % 2][i // 2] = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
        i += 1
    is_bound = True
    return True


cdef bint bound() noexcept nogil:
    return is_bound or bind()


# ---- a batch of matrices

cdef Py_ssize_t batch_of(const Array* a, int core) noexcept nogil:
    cdef Py_ssize_t n = 1
    cdef int i
    for i in range(a.ndim - core):
        n *= a.shape[i]
    return n


cdef char* item_of(const Array* a, int core, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t offset = 0
    cdef int d
    for d in range(a.ndim - core - 1, -1, -1):
        offset += i % a.shape[d] * a.strides[d]
        i //= a.shape[d]
    return a.data + offset * itemsize_of(a.dtype)


ctypedef fused word:
    uint32_t
    uint64_t


cdef void place(Py_ssize_t rows, Py_ssize_t cols, const word* src, Py_ssize_t down, Py_ssize_t right, word* dst) noexcept nogil:
    cdef Py_ssize_t i, j, i0, j0
    if right == 1 or rows <= TILE and cols <= TILE:
        for i in range(rows):
            if right == 1:
                memcpy(dst + i * cols, src + i * down, cols * sizeof(word))
            else:
                for j in range(cols):
                    dst[i * cols + j] = src[i * down + j * right]
        return
    for i0 in range(0, rows, 16):
        for j0 in range(0, cols, 16):
            for i in range(i0, min(i0 + TILE, rows)):
                for j in range(j0, min(j0 + TILE, cols)):
                    dst[i * cols + j] = src[i * down + j * right]


cdef void moved(Py_ssize_t itemsize, Py_ssize_t rows, Py_ssize_t cols, const char* src, Py_ssize_t down, Py_ssize_t right,
                char* dst) noexcept nogil:
    if itemsize == 4:
        place[uint32_t](rows, cols, <const uint32_t*> src, down, right, <uint32_t*> dst)
    else:
        place[uint64_t](rows, cols, <const uint64_t*> src, down, right, <uint64_t*> dst)


cdef void load(const Array* a, Py_ssize_t i, bint by_columns, char* dst) noexcept nogil:
    cdef int n = a.ndim
    cdef char* src = item_of(a, 2, i)
    if by_columns:
        moved(itemsize_of(a.dtype), a.shape[n - 1], a.shape[n - 2], src, a.strides[n - 1], a.strides[n - 2], dst)
    else:
        moved(itemsize_of(a.dtype), a.shape[n - 2], a.shape[n - 1], src, a.strides[n - 2], a.strides[n - 1], dst)


cdef void flip(Py_ssize_t itemsize, Py_ssize_t rows, Py_ssize_t cols, const char* src, char* dst) noexcept nogil:
    moved(itemsize, rows, cols, src, 1, rows, dst)


cdef Py_ssize_t report(const Array* info, Py_ssize_t i, Py_ssize_t n, int code) noexcept nogil:
    if info.data != NULL:
        (<int*> item_of(info, 0, i))[0] = code
        return -1
    return -1 if code == 0 else i * (n + 2) + code


# ---- LU


cdef int small_factor(int n, real* c, int* pivots) noexcept nogil:
    """As getrf: column by column, the pivot the first of the largest."""
    cdef int i, j, k, p, info = 0
    cdef real best, f
    for j in range(n):
        p, best = j, fabs(c[j * n + j])
        for i in range(j + 1, n):
            if fabs(c[j * n + i]) > best:
                p, best = i, fabs(c[j * n + i])
        pivots[j] = p + 1
        if c[j * n + p] == 0:
            if info == 0:
                info = j + 1
            continue
        if p != j:
            for k in range(n):
                c[k * n + j], c[k * n + p] = c[k * n + p], c[k * n + j]
        f = 1 / c[j * n + j]
        for i in range(j + 1, n):
            c[j * n + i] *= f
        for k in range(j + 1, n):
            f = c[k * n + j]
            for i in range(j + 1, n):
                c[k * n + i] -= f * c[j * n + i]
    return info


cdef int factor(int dtype, int n, char* c, int* pivots) noexcept nogil:
    cdef int info = 0
    if n <= SMALL:
        if dtype == FLOAT32:
            return small_factor[float](n, <float*> c, pivots)
        return small_factor[double](n, <double*> c, pivots)
    (<Getrf> api[dtype][GETRF])(&n, &n, c, &n, pivots, &info)
    return info


cdef void swap_rows(real* x, int k, int i, int j) noexcept nogil:
    cdef int t
    if i != j:
        for t in range(k):
            x[i * k + t], x[j * k + t] = x[j * k + t], x[i * k + t]


cdef void swaps(int n, int k, const int* pivots, bint forward, real* x) noexcept nogil:
    cdef int j
    if forward:
        for j in range(n):
            swap_rows(x, k, j, pivots[j] - 1)
    else:
        for j in range(n - 1, -1, -1):
            swap_rows(x, k, j, pivots[j] - 1)


cdef void triangle_solve(int n, int k, const real* c, Py_ssize_t down, Py_ssize_t right, bint lower, bint unit, real* x) noexcept nogil:
    """x (n, k) becomes the solution of T x = b, for the triangle T of c with the given strides."""
    cdef int a, i, j, t
    cdef real f
    for a in range(n):
        i = a if lower else n - 1 - a
        for j in range(0 if lower else i + 1, i if lower else n):
            f = c[i * down + j * right]
            for t in range(k):
                x[i * k + t] -= f * x[j * k + t]
        if not unit:
            f = c[i * down + i * right]
            for t in range(k):
                x[i * k + t] /= f


cdef void small_solve(int n, int k, const real* c, const int* pivots, bint adjoint, real* x) noexcept nogil:
    # c holds L (unit) and U of A.T = P L U in column-major order, so that A = U.T L.T P.T; row-major, U.T is its lower triangle.
    if adjoint:
        swaps(n, k, pivots, True, x)
        triangle_solve(n, k, c, 1, n, True, True, x)
        triangle_solve(n, k, c, 1, n, False, False, x)
    else:
        triangle_solve(n, k, c, n, 1, True, False, x)
        triangle_solve(n, k, c, n, 1, False, True, x)
        swaps(n, k, pivots, False, x)


cdef void trsm_right(int dtype, int n, int k, char* c, char uplo, char trans, char diag, char* x) noexcept nogil:
    """x.T becomes x.T times the inverse of a triangle of c (or of its transpose)."""
    cdef char side = b"R"
    (<Trsm> api[dtype][TRSM])(&side, &uplo, &trans, &diag, &k, &n, &one_f if dtype == FLOAT32 else <void*> &one_d, c, &n, x, &k)


cdef void solve_with(int dtype, int n, int k, char* c, const int* pivots, bint adjoint, char* x) noexcept nogil:
    cdef char trans
    cdef int info = 0
    if n == 0 or k == 0:
        return
    if n <= SMALL and k <= SMALL:
        if dtype == FLOAT32:
            small_solve[float](n, k, <float*> c, pivots, adjoint, <float*> x)
        else:
            small_solve[double](n, k, <double*> c, pivots, adjoint, <double*> x)
        return
    if k == 1:
        trans = b"N" if adjoint else b"T"
        (<Getrs> api[dtype][GETRS])(&trans, &n, &k, c, &n, <int*> pivots, x, &n, &info)
        return
    if adjoint:
        if dtype == FLOAT32:
            swaps[float](n, k, pivots, True, <float*> x)
        else:
            swaps[double](n, k, pivots, True, <double*> x)
        trsm_right(dtype, n, k, c, b"L", b"T", b"U", x)
        trsm_right(dtype, n, k, c, b"U", b"T", b"N", x)
        return
    trsm_right(dtype, n, k, c, b"U", b"N", b"N", x)
    trsm_right(dtype, n, k, c, b"L", b"N", b"U", x)
    if dtype == FLOAT32:
        swaps[float](n, k, pivots, False, <float*> x)
    else:
        swaps[double](n, k, pivots, False, <double*> x)


cdef bint fits(const Array* a) noexcept nogil:
    return a.ndim < 2 or a.shape[a.ndim - 1] <= 2147483647 and a.shape[a.ndim - 2] <= 2147483647


cdef Py_ssize_t solve(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """x = A^-1 b: A, b, x, then optional: factors, pivots, info. ints: whether A is transposed first."""
    cdef const Array* a = &arrays[0]
    cdef const Array* b = &arrays[1]
    cdef int n = <int> a.shape[a.ndim - 1], k = <int> b.shape[b.ndim - 1], code, dtype = a.dtype
    cdef Py_ssize_t i, size = <Py_ssize_t> n * n * itemsize_of(dtype), status
    cdef double stack[SMALL * SMALL + SMALL]
    cdef char* own = <char*> stack
    cdef char* c
    cdef char* x
    cdef int* pivots
    if not fits(a) or not fits(b):
        return OUT_OF_MEMORY
    if n > SMALL or k > SMALL:
        if not bound():
            return OUT_OF_MEMORY
    if n > SMALL:
        own = <char*> malloc(size + n * sizeof(int))
        if own == NULL:
            return OUT_OF_MEMORY
    status = -1
    for i in range(batch_of(a, 2)):
        c = own if arrays[3].data == NULL else item_of(&arrays[3], 2, i)
        pivots = <int*> (own + size) if arrays[4].data == NULL else <int*> item_of(&arrays[4], 1, i)
        x = item_of(&arrays[2], 2, i)
        load(a, i, False, c)
        load(b, i, False, x)
        code = factor(dtype, n, c, pivots)
        status = report(&arrays[5], i, n, code)
        if status != -1:
            break
        solve_with(dtype, n, k, c, pivots, ints[0], x)
    if n > SMALL:
        free(own)
    return status


cdef Py_ssize_t solve_again(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """factors, pivots, b, x: x = A^-1 b with the factors that `solve` left. ints: whether A is transposed first."""
    cdef const Array* a = &arrays[0]
    cdef const Array* b = &arrays[2]
    cdef int n = <int> a.shape[a.ndim - 1], k = <int> b.shape[b.ndim - 1]
    cdef Py_ssize_t i
    cdef char* x
    if (n > SMALL or k > SMALL) and not bound():
        return OUT_OF_MEMORY
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[3], 2, i)
        load(b, i, False, x)
        solve_with(a.dtype, n, k, item_of(a, 2, i), <const int*> item_of(&arrays[1], 1, i), ints[0], x)
    return -1


cdef void fill_eye(int dtype, int n, char* x) noexcept nogil:
    cdef Py_ssize_t i
    memset(x, 0, <Py_ssize_t> n * n * itemsize_of(dtype))
    for i in range(n):
        if dtype == FLOAT32:
            (<float*> x)[i * (n + 1)] = 1
        else:
            (<double*> x)[i * (n + 1)] = 1


cdef void fill(int dtype, Py_ssize_t n, char* x, double value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if dtype == FLOAT32:
            (<float*> x)[i] = <float> value
        else:
            (<double*> x)[i] = value


cdef Py_ssize_t inverse(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A, its inverse, optional: info; with it, a singular matrix has an inverse of infinities."""
    cdef const Array* a = &arrays[0]
    cdef int n = <int> a.shape[a.ndim - 1], code, dtype = a.dtype, room = 64 * n          # the block size of LAPACK's getri
    cdef Py_ssize_t i, size = <Py_ssize_t> n * n * itemsize_of(dtype), status = -1
    cdef double stack[SMALL * SMALL + SMALL]
    cdef char* own = <char*> stack
    cdef char* x
    if not fits(a):
        return OUT_OF_MEMORY
    if n > SMALL:
        if not bound():
            return OUT_OF_MEMORY
        size = <Py_ssize_t> room * itemsize_of(dtype)
        own = <char*> malloc(size + n * sizeof(int))
        if own == NULL:
            return OUT_OF_MEMORY
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[1], 2, i)
        load(a, i, False, own if n <= SMALL else x)
        code = factor(dtype, n, own if n <= SMALL else x, <int*> (own + size))
        status = report(&arrays[2], i, n, code)
        if status != -1:
            break
        if code:
            fill(dtype, <Py_ssize_t> n * n, x, INFINITY)
            continue
        if n <= SMALL:
            fill_eye(dtype, n, x)
            solve_with(dtype, n, n, own, <int*> (own + size), False, x)
        else:
            (<Getri> api[dtype][GETRI])(&n, x, &n, <int*> (own + size), own, &room, &code)
    if n > SMALL:
        free(own)
    return status


cdef Py_ssize_t determinant(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A, and its determinant; or, with a third array, the determinant's sign and the logarithm of its absolute value."""
    cdef const Array* a = &arrays[0]
    cdef int n = <int> a.shape[a.ndim - 1], j, dtype = a.dtype
    cdef Py_ssize_t i, size = <Py_ssize_t> n * n * itemsize_of(dtype)
    cdef double stack[SMALL * SMALL + SMALL]
    cdef char* own = <char*> stack
    cdef int* pivots
    cdef double u, sign, product, logarithm
    if not fits(a):
        return OUT_OF_MEMORY
    if n > SMALL:
        if not bound():
            return OUT_OF_MEMORY
        own = <char*> malloc(size + n * sizeof(int))
        if own == NULL:
            return OUT_OF_MEMORY
    pivots = <int*> (own + size)
    for i in range(batch_of(a, 2)):
        load(a, i, False, own)
        factor(dtype, n, own, pivots)
        sign, product, logarithm = 1, 1, 0
        for j in range(n):
            u = (<float*> own)[j * (n + 1)] if dtype == FLOAT32 else (<double*> own)[j * (n + 1)]
            if pivots[j] != j + 1:
                sign = -sign
            product *= u
            if arrays[2].data != NULL:
                sign = sign if u > 0 else -sign if u < 0 else 0 if u == 0 else NAN
                logarithm += log(fabs(u))
        if arrays[2].data == NULL:
            fill(dtype, 1, item_of(&arrays[1], 0, i), product * sign)
        else:
            fill(dtype, 1, item_of(&arrays[1], 0, i), sign)
            fill(dtype, 1, item_of(&arrays[2], 0, i), logarithm)
    if n > SMALL:
        free(own)
    return -1


cdef Py_ssize_t packed_factors(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (m, n), its packed factors (m, n), pivots; optional: info."""
    cdef const Array* a = &arrays[0]
    cdef int m = <int> a.shape[a.ndim - 2], n = <int> a.shape[a.ndim - 1], code, dtype = a.dtype
    cdef Py_ssize_t i
    cdef char* own
    if not fits(a) or (m != n or n > SMALL) and not bound():
        return OUT_OF_MEMORY
    if m == 0 or n == 0:
        for i in range(batch_of(a, 2)):
            report(&arrays[3], i, n, 0)
        return -1
    own = <char*> malloc(<Py_ssize_t> m * n * itemsize_of(dtype))
    if own == NULL:
        return OUT_OF_MEMORY
    for i in range(batch_of(a, 2)):
        load(a, i, True, own)
        if m == n:
            code = factor(dtype, n, own, <int*> item_of(&arrays[2], 1, i))
        else:
            (<Getrf> api[dtype][GETRF])(&m, &n, own, &m, <int*> item_of(&arrays[2], 1, i), &code)
        flip(itemsize_of(dtype), m, n, own, item_of(&arrays[1], 2, i))
        if arrays[3].data != NULL:
            report(&arrays[3], i, n, code)
    free(own)
    return -1


cdef Py_ssize_t permutation(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """Pivots, and the matrix P of A = P L U."""
    cdef const Array* p = &arrays[1]
    cdef int m = <int> p.shape[p.ndim - 1], j, r, n = <int> arrays[0].shape[arrays[0].ndim - 1]
    cdef int itemsize = itemsize_of(p.dtype)
    cdef Py_ssize_t i
    cdef int* pivots
    cdef char* out
    cdef int* rows = <int*> malloc(m * sizeof(int) + 1)
    if rows == NULL:
        return OUT_OF_MEMORY
    for i in range(batch_of(p, 2)):
        pivots = <int*> item_of(&arrays[0], 1, i)
        out = item_of(p, 2, i)
        for j in range(m):
            rows[j] = j
        for j in range(min(m, n)):
            r = pivots[j] - 1
            if r >= 0 and r < m:
                rows[j], rows[r] = rows[r], rows[j]
        memset(out, 0, <Py_ssize_t> m * m * itemsize)
        for j in range(m):
            fill(p.dtype, 1, out + (<Py_ssize_t> rows[j] * m + j) * itemsize, 1)
    free(rows)
    return -1


# ---- Cholesky, triangles

cdef int small_cholesky(int n, real* c) noexcept nogil:
    """Row-major, the lower triangle; returns the order of the first minor that is not positive."""
    cdef int i, j, t
    cdef real s
    for j in range(n):
        s = c[j * n + j]
        for t in range(j):
            s -= c[j * n + t] * c[j * n + t]
        if not s > 0:
            return j + 1
        s = sqrt(s)
        c[j * n + j] = s
        for i in range(j + 1, n):
            for t in range(j):
                c[i * n + j] -= c[i * n + t] * c[j * n + t]
            c[i * n + j] /= s
    return 0


cdef void keep(int dtype, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t low, Py_ssize_t high, char* x) noexcept nogil:
    """Zeros where j - i is not within [low, high]."""
    cdef Py_ssize_t i, itemsize = itemsize_of(dtype), first, last
    for i in range(rows):
        first = min(max(i + low, 0), cols)
        last = min(max(i + high + 1, first), cols)
        memset(x + i * cols * itemsize, 0, first * itemsize)
        memset(x + (i * cols + last) * itemsize, 0, (cols - last) * itemsize)


cdef Py_ssize_t cholesky(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (the lower triangle of it, or the upper), its factor, optional: info. ints: upper."""
    cdef const Array* a = &arrays[0]
    cdef int n = <int> a.shape[a.ndim - 1], code, dtype = a.dtype
    cdef char uplo = b"L" if ints[0] else b"U"            # of the transpose
    cdef Py_ssize_t i, status = -1
    cdef char* x
    if not fits(a):
        return OUT_OF_MEMORY
    if (n > SMALL or ints[0]) and not bound():
        return OUT_OF_MEMORY
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[1], 2, i)
        code = 0
        load(a, i, False, x)
        if n <= SMALL and not ints[0]:
            code = small_cholesky[float](n, <float*> x) if dtype == FLOAT32 else small_cholesky[double](n, <double*> x)
        elif n:
            (<Potrf> api[dtype][POTRF])(&uplo, &n, x, &n, &code)
        keep(dtype, n, n, 0 if ints[0] else -n, n if ints[0] else 0, x)
        status = report(&arrays[2], i, n, code)
        if status != -1:
            break
    return status


cdef Py_ssize_t solve_triangle(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A, b, x: A x = b (A.T x = b), for a triangle of A. ints: upper, transposed, unit diagonal."""
    cdef const Array* a = &arrays[0]
    cdef const Array* b = &arrays[1]
    cdef int n = <int> a.shape[a.ndim - 1], k = <int> b.shape[b.ndim - 1], dtype = a.dtype, d = a.ndim
    cdef bint dense = a.strides[d - 1] == 1 and a.strides[d - 2] == n
    cdef Py_ssize_t i, down = n, right = 1
    cdef char* own = NULL
    cdef char* c
    cdef char* x
    if not fits(a) or not fits(b):
        return OUT_OF_MEMORY
    if (n > SMALL or k > SMALL) and not bound():
        return OUT_OF_MEMORY
    if not dense:
        own = <char*> malloc(<Py_ssize_t> n * n * itemsize_of(dtype) + 1)
        if own == NULL:
            return OUT_OF_MEMORY
    if ints[1]:
        down, right = 1, n
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[2], 2, i)
        load(b, i, False, x)
        c = item_of(a, 2, i)
        if not dense:
            load(a, i, False, own)
            c = own
        if n <= SMALL and k <= SMALL:
            if dtype == FLOAT32:
                triangle_solve[float](n, k, <float*> c, down, right, ints[0] == ints[1], ints[2], <float*> x)
            else:
                triangle_solve[double](n, k, <double*> c, down, right, ints[0] == ints[1], ints[2], <double*> x)
        elif n and k:
            trsm_right(dtype, n, k, c, b"L" if ints[0] else b"U", b"T" if ints[1] else b"N", b"U" if ints[2] else b"N", x)
    free(own)
    return -1


cdef Py_ssize_t band(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """x, and what of it lies on diagonals ints[0] to ints[1]."""
    cdef const Array* a = &arrays[0]
    cdef Py_ssize_t i
    for i in range(batch_of(a, 2)):
        load(a, i, False, item_of(&arrays[1], 2, i))
        keep(a.dtype, a.shape[a.ndim - 2], a.shape[a.ndim - 1], ints[0], ints[1], item_of(&arrays[1], 2, i))
    return -1


ctypedef long long long_long
ctypedef unsigned char uchar
ctypedef fused number:
    float
    double
    long_long
    int
    uchar


cdef void cross_of(const number* a, Py_ssize_t s, const number* b, Py_ssize_t t, number* out) noexcept nogil:
    out[0] = a[s] * b[2 * t] - a[2 * s] * b[t]
    out[1] = a[2 * s] * b[0] - a[0] * b[2 * t]
    out[2] = a[0] * b[t] - a[s] * b[0]


cdef bint is_dense(const Array* a) noexcept nogil:
    cdef Py_ssize_t step = 1
    cdef int d
    for d in range(a.ndim - 1, -1, -1):
        if a.shape[d] != 1 and a.strides[d] != step:
            return False
        step *= a.shape[d]
    return True


cdef Py_ssize_t cross(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """a, b, their cross products along the last axis."""
    cdef Py_ssize_t i, s = arrays[0].strides[arrays[0].ndim - 1], t = arrays[1].strides[arrays[1].ndim - 1]
    cdef char* a
    cdef char* b
    cdef char* out
    cdef Py_ssize_t step = 3 * itemsize_of(arrays[0].dtype)
    cdef bint first = is_dense(&arrays[0]), second = is_dense(&arrays[1])
    for i in range(batch_of(arrays, 1)):
        a = arrays[0].data + i * step if first else item_of(&arrays[0], 1, i)
        b = arrays[1].data + i * step if second else item_of(&arrays[1], 1, i)
        out = arrays[2].data + i * step
        if arrays[0].dtype == FLOAT32:
            cross_of[float](<float*> a, s, <float*> b, t, <float*> out)
        elif arrays[0].dtype == FLOAT64:
            cross_of[double](<double*> a, s, <double*> b, t, <double*> out)
        elif arrays[0].dtype == INT64:
            cross_of[long_long](<long_long*> a, s, <long_long*> b, t, <long_long*> out)
        elif arrays[0].dtype == INT32:
            cross_of[int](<int*> a, s, <int*> b, t, <int*> out)
        else:
            cross_of[uchar](<uchar*> a, s, <uchar*> b, t, <uchar*> out)
    return -1


cdef Py_ssize_t kron(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """a, b, their Kronecker product: matrices."""
    if arrays[0].dtype == FLOAT32:
        return kron_of[float](arrays, <float*> arrays[0].data, <float*> arrays[1].data, <float*> arrays[2].data)
    return kron_of[double](arrays, <double*> arrays[0].data, <double*> arrays[1].data, <double*> arrays[2].data)


cdef Py_ssize_t kron_of(const Array* arrays, const real* a, const real* b, real* out) noexcept nogil:
    cdef const Py_ssize_t* s = arrays[0].strides
    cdef const Py_ssize_t* t = arrays[1].strides
    cdef Py_ssize_t i, j, k, m
    cdef real f
    for i in range(arrays[0].shape[0]):
        for j in range(arrays[1].shape[0]):
            for k in range(arrays[0].shape[1]):
                f = a[i * s[0] + k * s[1]]
                for m in range(arrays[1].shape[1]):
                    out[m] = f * b[j * t[0] + m * t[1]]
                out += arrays[1].shape[1]
    return -1


SINGULAR = "The diagonal element {{}} is zero, {} because the input matrix is singular"

add_routine("lapack.solve", "rrwwww", solve, failure("linalg.solve", SINGULAR.format("the system could not be solved")))
add_routine("lapack.solve_again", "rrrw", solve_again)
add_routine("lapack.inverse", "rww", inverse, failure("linalg.inv", SINGULAR.format("the inversion could not be completed")))
add_routine("lapack.determinant", "rww", determinant)
add_routine("lapack.packed_factors", "rwww", packed_factors)
add_routine("lapack.permutation", "rw", permutation)
add_routine("lapack.cholesky", "rww", cholesky, failure("linalg.cholesky", (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order {} is not "
    "positive-definite)")))
add_routine("lapack.solve_triangle", "rrw", solve_triangle)
add_routine("lapack.band", "rw", band)
add_routine("lapack.cross", "rrw", cross)
add_routine("lapack.kron", "rrw", kron)
