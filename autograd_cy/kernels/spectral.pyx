# Decompositions as routines: QR, singular values, symmetric eigenvalues, least squares; the exponential of a matrix.
#
# Relies on lapack (SciPy's LAPACK, and how a routine meets a batch of matrices) and gemm. engine's linear algebra runs them.
#
# Matrices of at most SMALL rows and columns are worked on by loops of our own, in double precision, where LAPACK's drivers take several
# times as long to find out what to do. Above 500 lines because both ways of each decomposition belong together, as in lapack.

from libc.math cimport INFINITY, NAN, ceil, copysign, fabs, log2, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from autograd_cy.array.dtype cimport FLOAT32, itemsize_of
from autograd_cy.kernels.gemm cimport bind_blas, gemm_run, needs_blas
from autograd_cy.kernels.lapack cimport (
    GELS, GELSD, GELSY, GEQRF, GESDD, ORGQR, SMALL, SYEVD, api, batch_of, bound, factor, fill, fits, flip, item_of, load, solve_with,
)
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine

from autograd_cy.kernels.failures import failure

ctypedef void (*Geqrf)(int* m, int* n, void* a, int* lda, void* tau, void* work, int* lwork, int* info) noexcept nogil
ctypedef void (*Orgqr)(int* m, int* n, int* k, void* a, int* lda, void* tau, void* work, int* lwork, int* info) noexcept nogil
ctypedef void (*Gesdd)(char* job, int* m, int* n, void* a, int* lda, void* s, void* u, int* ldu, void* vt, int* ldvt, void* work,
                       int* lwork, int* iwork, int* info) noexcept nogil
ctypedef void (*Syevd)(char* job, char* uplo, int* n, void* a, int* lda, void* w, void* work, int* lwork, int* iwork, int* liwork,
                       int* info) noexcept nogil
ctypedef void (*Gelsd)(int* m, int* n, int* k, void* a, int* lda, void* b, int* ldb, void* s, void* rcond, int* rank, void* work,
                       int* lwork, int* iwork, int* info) noexcept nogil
ctypedef void (*Gelsy)(int* m, int* n, int* k, void* a, int* lda, void* b, int* ldb, int* jpvt, void* rcond, int* rank, void* work,
                       int* lwork, int* info) noexcept nogil
ctypedef void (*Gels)(char* trans, int* m, int* n, int* k, void* a, int* lda, void* b, int* ldb, void* work, int* lwork,
                      int* info) noexcept nogil


cdef int wanted(int dtype, const void* work) noexcept nogil:
    """The size of the workspace that a query found."""
    return <int> ((<float*> work)[0] if dtype == FLOAT32 else (<double*> work)[0]) + 1


# ---- small matrices, column after column

cdef bint load_small(const Array* a, Py_ssize_t i, bint transposed, double* c) noexcept nogil:
    """Matrix i of a (or its transpose); False where LAPACK should have it, which scales what is extreme and says what is not finite."""
    cdef int n = a.ndim
    cdef Py_ssize_t rows = a.shape[n - 2], cols = a.shape[n - 1], down = a.strides[n - 2], right = a.strides[n - 1], j, k
    cdef const char* src = item_of(a, 2, i)
    cdef double v
    if rows > SMALL or cols > SMALL:
        return False
    if transposed:
        rows, cols, down, right = cols, rows, right, down
    for j in range(cols):
        for k in range(rows):
            v = (<const float*> src)[k * down + j * right] if a.dtype == FLOAT32 else (<const double*> src)[k * down + j * right]
            c[j * rows + k] = v
            if not fabs(v) < 1e30 or fabs(v) < 1e-30 and v != 0:
                return False
    return True


cdef void store(const Array* a, Py_ssize_t i, int core, bint transposed, const double* src) noexcept nogil:
    """Write matrix (core 2) or vector (1) i of a, whose rows lie without gaps, from one given by columns (transposed: by rows)."""
    cdef Py_ssize_t cols = a.shape[a.ndim - 1], rows = a.shape[a.ndim - 2] if core == 2 else 1, j, k
    cdef char* dst = item_of(a, core, i)
    for j in range(rows):
        for k in range(cols):
            if a.dtype == FLOAT32:
                (<float*> dst)[j * cols + k] = <float> (src[j * cols + k] if transposed else src[k * rows + j])
            else:
                (<double*> dst)[j * cols + k] = src[j * cols + k] if transposed else src[k * rows + j]


cdef double reflector(int n, double* x) noexcept nogil:
    """x becomes (b, v), where I - tau (1, v) (1, v).T takes what it was to (b, 0); returns tau. As larfg: b is of the other sign."""
    cdef double s = 0, b
    cdef int i
    for i in range(1, n):
        s += x[i] * x[i]
    if s == 0:
        return 0
    b = -copysign(sqrt(x[0] * x[0] + s), x[0])
    s = 1 / (x[0] - b)
    for i in range(1, n):
        x[i] *= s
    s = (b - x[0]) / b
    x[0] = b
    return s


cdef void reflect(int n, int k, const double* v, double tau, double* c, int ld) noexcept nogil:
    """k columns of c, of n elements, times I - tau (1, v) (1, v).T, where v[0] is something else."""
    cdef double w
    cdef int i, _
    for _ in range(k):
        w = c[0]
        for i in range(1, n):
            w += v[i] * c[i]
        w *= tau
        c[0] -= w
        for i in range(1, n):
            c[i] -= w * v[i]
        c += ld


cdef void small_qr(int m, int n, double* c, double* tau, int* places) noexcept nogil:
    """As geqrf: R and the reflectors in c's place. With places: the longest of the columns left is the next; which one it was."""
    cdef int j, k, best
    cdef double most, s
    for k in range(n if places != NULL else 0):
        places[k] = k
    for k in range(min(m, n)):
        if places != NULL:
            best, most = k, -1
            for j in range(k, n):
                s = length2(m - k, c + j * m + k)
                if s > most:
                    best, most = j, s
            if best != k:
                exchange(m, c + k * m, c + best * m)
                places[k], places[best] = places[best], places[k]
        tau[k] = reflector(m - k, c + k * m + k)
        reflect(m - k, n - k - 1, c + k * m + k, tau[k], c + (k + 1) * m + k, m)


cdef double length2(int n, const double* x) noexcept nogil:
    cdef double s = 0
    cdef int i
    for i in range(n):
        s += x[i] * x[i]
    return s


cdef void exchange(int n, double* x, double* y) noexcept nogil:
    cdef int i
    for i in range(n):
        x[i], y[i] = y[i], x[i]


cdef void turn(int n, double* x, double* y, double c, double s) noexcept nogil:
    """(x, y) times a rotation."""
    cdef int i
    cdef double v
    for i in range(n):
        v = x[i]
        x[i] = c * v - s * y[i]
        y[i] = s * v + c * y[i]


cdef void reflected(int m, int k, int count, const double* c, int ld, const double* tau, double* q) noexcept nogil:
    """q (m, k) times the reflectors below the diagonal of c."""
    cdef int j
    for j in range(count - 1, -1, -1):
        reflect(m - j, k, c + j * ld + j, tau[j], q + j, m)


cdef void small_eye(int m, int k, double* q) noexcept nogil:
    cdef int j
    memset(q, 0, m * k * sizeof(double))
    for j in range(min(m, k)):
        q[j * (m + 1)] = 1


cdef bint small_eigh(int n, double* a, double accuracy, double* d, double* z) noexcept nogil:
    """The eigenvalues d of a symmetric matrix, and its eigenvectors (unless NULL) as columns of z, in no order: by a tridiagonal matrix
    and implicit QL steps. False where these do not converge."""
    cdef double e[SMALL]
    cdef double tau[SMALL]
    cdef double w[SMALL]
    cdef double* v
    cdef double s, c, p, g, r, f, b
    cdef int i, j, k, m, steps
    for k in range(n - 1):
        v = a + k * n + k + 1
        m = n - k - 1
        d[k] = a[k * (n + 1)]
        tau[k] = reflector(m, v)
        e[k] = v[0]
        if tau[k] == 0:
            continue
        # B - v w.T - w v.T, where w = tau B v - tau^2 / 2 (v.T B v) v
        v[0] = 1
        p = 0
        for i in range(m):
            s = 0
            for j in range(m):
                s += a[(k + 1 + i) * n + k + 1 + j] * v[j]
            w[i] = tau[k] * s
            p += w[i] * v[i]
        p *= -0.5 * tau[k]
        for i in range(m):
            w[i] += p * v[i]
        for i in range(m):
            for j in range(m):
                a[(k + 1 + i) * n + k + 1 + j] -= v[i] * w[j] + w[i] * v[j]
    d[n - 1], e[n - 1] = a[n * n - 1], 0
    if z != NULL:
        small_eye(n, n, z)
        for j in range(n - 2, -1, -1):
            reflect(n - 1 - j, n - 1 - j, a + j * n + j + 1, tau[j], z + (j + 1) * n + j + 1, n)
    for k in range(n):
        steps = 0
        while True:
            m = k
            while m < n - 1 and fabs(e[m]) > accuracy * (fabs(d[m]) + fabs(d[m + 1])):
                m += 1
            if m == k:
                break
            steps += 1
            if steps > 60:
                return False
            g = (d[k + 1] - d[k]) / (2 * e[k])
            g = d[m] - d[k] + e[k] / (g + copysign(sqrt(g * g + 1), g))
            s, c, p = 1, 1, 0
            for i in range(m - 1, k - 1, -1):
                f, b = s * e[i], c * e[i]
                r = sqrt(f * f + g * g)
                e[i + 1] = r
                if r == 0:
                    d[i + 1] -= p
                    e[m] = 0
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                if z != NULL:
                    turn(n, z + i * n, z + (i + 1) * n, c, s)
            else:
                d[k] -= p
                e[k], e[m] = g, 0
    return True


cdef bint small_svd(int m, int n, double* c, double accuracy, double* s, double* left, int k, double* right) noexcept nogil:
    """Of c (m, n), m >= n, which is lost: singular values, descending; unless NULL, left vectors (m, k) and right ones (n, n), by columns.

    The triangle of a QR decomposition with pivoting, made orthogonal by rotations from one side (Jacobi): the most accurate way. False
    where it does not converge, or a singular value is 0, whose vectors are not found so.
    """
    cdef double tau[SMALL]
    cdef double x[SMALL * SMALL]
    cdef double v[SMALL * SMALL]
    cdef int places[SMALL]
    cdef int order[SMALL]
    cdef int i, j, p, q, sweeps
    cdef double a, b, g, t, f, worst = 1, tolerance = accuracy * accuracy * n
    small_qr(m, n, c, tau, places)
    for j in range(n):
        order[j] = j
        for i in range(n):
            x[j * n + i] = c[i * m + j] if i >= j else 0
    if left != NULL:
        small_eye(n, n, v)
    sweeps = 0
    while worst > 1e-17:                    # smaller: quadratic convergence has come to an end
        sweeps += 1
        if sweeps > 40:
            return False
        worst = 0
        for p in range(n - 1):
            for q in range(p + 1, n):
                a, b, g = 0, 0, 0
                for i in range(n):
                    a += x[p * n + i] * x[p * n + i]
                    b += x[q * n + i] * x[q * n + i]
                    g += x[p * n + i] * x[q * n + i]
                if g * g <= tolerance * a * b:
                    continue
                f = (b - a) / (2 * g)
                t = copysign(1 / (fabs(f) + sqrt(1 + f * f)), f)
                worst = max(worst, max(t * t, g * g / (a * b)))
                a = 1 / sqrt(1 + t * t)
                turn(n, x + p * n, x + q * n, a, a * t)
                if left != NULL:
                    turn(n, v + p * n, v + q * n, a, a * t)
    for j in range(n):
        s[j] = sqrt(length2(n, x + j * n))
    for j in range(n):
        p = j
        for q in range(j + 1, n):
            if s[q] > s[p]:
                p = q
        s[j], s[p] = s[p], s[j]
        order[j], order[p] = order[p], order[j]
    if s[n - 1] <= 1e-30 * s[0]:
        return False
    if left != NULL:
        small_eye(m, k, left)
        for j in range(n):
            p = order[j]
            memcpy(left + j * m, v + p * n, n * sizeof(double))
            for i in range(n):
                right[j * n + places[i]] = x[p * n + i] / s[j]
        reflected(m, k, n, c, m, tau, left)
    return True


# ---- decompositions

cdef bint qr_of_small(const Array* arrays, Py_ssize_t i, int m, int n, int k) noexcept nogil:
    cdef double c[SMALL * SMALL]
    cdef double q[SMALL * SMALL]
    cdef double tau[SMALL]
    cdef int j
    if not load_small(arrays, i, False, c):
        return False
    small_qr(m, n, c, tau, NULL)
    if arrays[1].data != NULL:
        small_eye(m, k, q)
        reflected(m, k, min(m, n), c, m, tau, q)
        store(&arrays[1], i, 2, False, q)
    for j in range(n):
        memcpy(q + j * k, c + j * m, min(j + 1, k) * sizeof(double))
        memset(q + j * k + min(j + 1, k), 0, (k - min(j + 1, k)) * sizeof(double))
    store(&arrays[2], i, 2, False, q)
    return True


cdef Py_ssize_t qr(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (m, n), optional: Q (m, k), then R (k, n), where k is m or the smaller of m and n."""
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, m = <int> a.shape[a.ndim - 2], n = <int> a.shape[a.ndim - 1], least = min(m, n)
    cdef int k = <int> arrays[2].shape[arrays[2].ndim - 2], wide = max(n, k), info = 0, size = -1, other
    cdef Py_ssize_t i, item = itemsize_of(dtype), matrix = <Py_ssize_t> m * wide * item
    cdef double query[1]
    cdef char* own
    cdef char* tau
    cdef char* work
    if not fits(a):
        return OUT_OF_MEMORY
    if m == 0 or n == 0:
        for i in range(batch_of(a, 2)):
            if arrays[1].data != NULL:
                fill_rectangle(dtype, m, k, item_of(&arrays[1], 2, i))
        return -1
    for i in range(batch_of(a, 2)):
        if not qr_of_small(arrays, i, m, n, k):
            break
    else:
        return -1
    if not bound():
        return OUT_OF_MEMORY
    (<Geqrf> api[dtype][GEQRF])(&m, &n, NULL, &m, NULL, query, &size, &info)
    size = wanted(dtype, query)
    other = -1
    (<Orgqr> api[dtype][ORGQR])(&m, &k, &least, NULL, &m, NULL, query, &other, &info)
    size = max(size, wanted(dtype, query))
    own = <char*> malloc(matrix + <Py_ssize_t> least * item + <Py_ssize_t> size * item)
    if own == NULL:
        return OUT_OF_MEMORY
    tau = own + matrix
    work = tau + <Py_ssize_t> least * item
    for i in range(batch_of(a, 2)):
        load(a, i, True, own)
        (<Geqrf> api[dtype][GEQRF])(&m, &n, own, &m, tau, work, &size, &info)
        upper(dtype, k, n, m, own, item_of(&arrays[2], 2, i))
        if arrays[1].data == NULL:
            continue
        if k > n:
            memset(own + <Py_ssize_t> m * n * item, 0, <Py_ssize_t> m * (k - n) * item)
        (<Orgqr> api[dtype][ORGQR])(&m, &k, &least, own, &m, tau, work, &size, &info)
        flip(item, m, k, own, item_of(&arrays[1], 2, i))
    free(own)
    return -1


cdef void fill_rectangle(int dtype, int m, int k, char* x) noexcept nogil:
    cdef Py_ssize_t i, item = itemsize_of(dtype)
    memset(x, 0, <Py_ssize_t> m * k * item)
    for i in range(min(m, k)):
        fill(dtype, 1, x + i * (k + 1) * item, 1)


cdef void upper(int dtype, int rows, int cols, int ld, const char* src, char* dst) noexcept nogil:
    """The upper triangle of the first rows of a column-major matrix, row-major with zeros below."""
    cdef Py_ssize_t i, j
    for i in range(rows):
        for j in range(cols):
            if dtype == FLOAT32:
                (<float*> dst)[i * cols + j] = (<const float*> src)[j * ld + i] if i <= j else 0
            else:
                (<double*> dst)[i * cols + j] = (<const double*> src)[j * ld + i] if i <= j else 0


cdef bint all_finite(int dtype, Py_ssize_t n, const char* x) noexcept nogil:
    """LAPACK's iterations may never end where an element is infinite."""
    cdef Py_ssize_t i
    cdef double v
    for i in range(n):
        v = (<const float*> x)[i] if dtype == FLOAT32 else (<const double*> x)[i]
        if v - v != 0:
            return False
    return True


cdef bint svd_of_small(const Array* arrays, Py_ssize_t i, int m, int n) noexcept nogil:
    cdef double c[SMALL * SMALL]
    cdef double left[SMALL * SMALL]
    cdef double right[SMALL * SMALL]
    cdef double s[SMALL]
    cdef double* u = right
    cdef double* v = left
    cdef bint wide = m < n, vectors = arrays[2].data != NULL
    cdef int k = 0
    if min(m, n) > SMALL // 2 or not load_small(arrays, i, wide, c):
        return False
    if vectors:
        k = <int> (arrays[3].shape[arrays[3].ndim - 2] if wide else arrays[2].shape[arrays[2].ndim - 1])
    if not wide:
        u, v = left, right
    if not small_svd(max(m, n), min(m, n), c, precision(arrays), s, left if vectors else NULL, k, right):
        return False
    store(&arrays[1], i, 1, False, s)
    if vectors:
        store(&arrays[2], i, 2, False, u)
        store(&arrays[3], i, 2, True, v)
    return True


cdef Py_ssize_t pseudoinverse(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (m, n), optional: its pseudoinverse (n, m), its rank (int64). numbers: atol, rtol."""
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, m = <int> a.shape[a.ndim - 2], n = <int> a.shape[a.ndim - 1], k = min(m, n), j, rank
    cdef Py_ssize_t i, t, item = itemsize_of(dtype), count = batch_of(a, 2), status
    cdef Py_ssize_t shapes[9]
    cdef Py_ssize_t strides[9]
    cdef Array parts[4]                                     # A, and S, U, Vh, of which this routine has the memory
    cdef char* vh
    cdef double s, most
    if not fits(a) or needs_blas(dtype, n, m, k) and not with_blas():
        return OUT_OF_MEMORY
    shapes[:] = [count, k, 0, count, m, k, count, k, n]
    strides[:] = [k, 1, 0, <Py_ssize_t> m * k, k, 1, <Py_ssize_t> k * n, n, 1]
    parts[0] = a[0]
    parts[1].data = <char*> malloc(count * k * (1 + <Py_ssize_t> m + n) * item + 1)
    if parts[1].data == NULL:
        return OUT_OF_MEMORY
    parts[2].data = parts[1].data + count * k * item
    parts[3].data = parts[2].data + count * m * k * item
    for j in range(1, 4):
        parts[j].dtype, parts[j].ndim, parts[j].shape, parts[j].strides = dtype, 2 if j == 1 else 3, &shapes[3 * j - 3], &strides[3 * j - 3]
    vh = parts[3].data
    if arrays[1].data == NULL:
        parts[2].data = parts[3].data = NULL
    status = svd(parts, NULL, NULL)
    for i in range(count if status == -1 else 0):
        rank, most = 0, 0
        for j in range(k):
            t = i * k + j
            s = (<float*> parts[1].data)[t] if dtype == FLOAT32 else (<double*> parts[1].data)[t]
            if j == 0:
                most = max(numbers[0], numbers[1] * s)
            if s > most:
                rank += 1
            if arrays[1].data != NULL:
                scale(dtype, n, 1 / s if s > most else 0, vh + (i * k + j) * n * item)
        if arrays[2].data != NULL:
            (<long long*> arrays[2].data)[i] = rank
        if arrays[1].data != NULL and k:
            gemm_run(dtype, True, True, 1, n, m, k, vh + i * k * n * item, n, 0, parts[2].data + i * m * k * item, k, 0,
                     item_of(&arrays[1], 2, i), m, 0)
    free(parts[1].data)
    return status


cdef void scale(int dtype, Py_ssize_t n, double f, char* x) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if dtype == FLOAT32:
            (<float*> x)[i] *= <float> f
        else:
            (<double*> x)[i] *= f


cdef double precision(const Array* a) noexcept nogil:
    """Up to which parts of a whole count as 0: well below the rounding of results."""
    return 1e-9 if a.dtype == FLOAT32 else 1.1e-16


cdef Py_ssize_t svd(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (m, n), singular values, optional: U and Vh, both; of full size or reduced, as their shapes say."""
    # A row-major is A.T = V S U.T: what LAPACK calls U is Vh row-major, and its V.T is our U.
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, m = <int> a.shape[a.ndim - 2], n = <int> a.shape[a.ndim - 1], least = min(m, n), info = 0, size = -1
    cdef int ldu = max(n, 1), ldvt = 1
    cdef Py_ssize_t i, item = itemsize_of(dtype), matrix = <Py_ssize_t> m * n * item, status = -1
    cdef char job = b"N"
    cdef double query[1]
    cdef int* iwork
    cdef char* own
    cdef char* u = NULL
    cdef char* vt = NULL
    if not fits(a):
        return OUT_OF_MEMORY
    if arrays[2].data != NULL:
        ldvt = <int> arrays[2].shape[arrays[2].ndim - 1]
        job = b"A" if ldvt > least or arrays[3].shape[arrays[3].ndim - 2] > least else b"S"
    if least == 0:
        if arrays[2].data != NULL:
            for i in range(batch_of(a, 2)):
                fill_rectangle(dtype, m, ldvt, item_of(&arrays[2], 2, i))
                fill_rectangle(dtype, <int> arrays[3].shape[arrays[3].ndim - 2], n, item_of(&arrays[3], 2, i))
        return -1
    for i in range(batch_of(a, 2)):
        if not svd_of_small(arrays, i, m, n):
            break
    else:
        return -1
    if not bound():
        return OUT_OF_MEMORY
    (<Gesdd> api[dtype][GESDD])(&job, &n, &m, NULL, &n, NULL, NULL, &ldu, NULL, &ldvt, query, &size, NULL, &info)
    size = wanted(dtype, query)
    own = <char*> malloc(matrix + <Py_ssize_t> size * item + 8 * <Py_ssize_t> least * sizeof(int))
    if own == NULL:
        return OUT_OF_MEMORY
    iwork = <int*> (own + matrix + <Py_ssize_t> size * item)
    for i in range(batch_of(a, 2)):
        load(a, i, False, own)
        if job != b"N":
            u, vt = item_of(&arrays[3], 2, i), item_of(&arrays[2], 2, i)
        info = -4
        if all_finite(dtype, <Py_ssize_t> m * n, own):
            (<Gesdd> api[dtype][GESDD])(&job, &n, &m, own, &n, item_of(&arrays[1], 1, i), u, &ldu, vt, &ldvt, own + matrix, &size, iwork,
                                        &info)
        if info:
            status = i * (n + 2) + (n + 1 if info < 0 else min(info, n))
            break
    free(own)
    return status


cdef bint eigh_of_small(const Array* arrays, Py_ssize_t i, int n, bint upper) noexcept nogil:
    cdef double a[SMALL * SMALL]
    cdef double z[SMALL * SMALL]
    cdef double d[SMALL]
    cdef bint vectors = arrays[2].data != NULL
    cdef int j, k, least
    if not load_small(arrays, i, upper, a):                # by columns: the triangle below the diagonal counts
        return False
    for j in range(n):
        for k in range(j):
            a[j * n + k] = a[k * n + j]
    if not small_eigh(n, a, precision(arrays), d, z if vectors else NULL):
        return False
    for j in range(n):
        least = j
        for k in range(j + 1, n):
            if d[k] < d[least]:
                least = k
        d[j], d[least] = d[least], d[j]
        if vectors and least != j:
            exchange(n, z + j * n, z + least * n)
    store(&arrays[1], i, 1, False, d)
    if vectors:
        store(&arrays[2], i, 2, False, z)
    return True


cdef Py_ssize_t eigh(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (its lower triangle, or the upper), eigenvalues, optional: eigenvectors in columns. ints: upper."""
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, n = <int> a.shape[a.ndim - 1], info = 0, size = -1, ints_size = -1
    cdef Py_ssize_t i, row, item = itemsize_of(dtype), matrix = <Py_ssize_t> n * n * item, status = -1
    cdef char job = b"V" if arrays[2].data != NULL else b"N"
    cdef char uplo = b"L" if ints[0] else b"U"            # of the transpose
    cdef double query[1]
    cdef int first
    cdef char* own
    cdef int* iwork
    if not fits(a):
        return OUT_OF_MEMORY
    if n == 0:
        return -1
    for i in range(batch_of(a, 2)):
        if not eigh_of_small(arrays, i, n, ints[0]):
            break
    else:
        return -1
    if not bound():
        return OUT_OF_MEMORY
    (<Syevd> api[dtype][SYEVD])(&job, &uplo, &n, NULL, &n, NULL, query, &size, &first, &ints_size, &info)
    size, ints_size = wanted(dtype, query), first
    own = <char*> malloc(matrix + <Py_ssize_t> size * item + <Py_ssize_t> ints_size * sizeof(int))
    if own == NULL:
        return OUT_OF_MEMORY
    iwork = <int*> (own + matrix + <Py_ssize_t> size * item)
    for i in range(batch_of(a, 2)):
        load(a, i, False, own)
        info = 0
        for row in range(n):                                   # of the triangle that is read
            if not all_finite(dtype, n - row if ints[0] else row + 1, own + (row * n + (row if ints[0] else 0)) * item):
                info = -4
        if info == 0:
            (<Syevd> api[dtype][SYEVD])(&job, &uplo, &n, own, &n, item_of(&arrays[1], 1, i), own + matrix, &size, iwork, &ints_size, &info)
        if info:
            status = i * (n + 2) + (n + 1 if info < 0 else min(info, n))
            break
        if job == b"V":
            flip(item, n, n, own, item_of(&arrays[2], 2, i))
    free(own)
    return status


cdef bint lstsq_of_small(const Array* arrays, Py_ssize_t i, int m, int n, int k, bint pivoting, double rcond) noexcept nogil:
    """Where A has full rank beyond doubt."""
    cdef double c[SMALL * SMALL]
    cdef double x[SMALL * SMALL]
    cdef double y[SMALL * SMALL]
    cdef double tau[SMALL]
    cdef double least
    cdef int places[SMALL]
    cdef int j, p, t
    if m < n or not load_small(&arrays[1], i, False, x) or not load_small(arrays, i, False, c):
        return False
    small_qr(m, n, c, tau, places)
    least = fabs(c[n * m - m + n - 1])
    if least <= rcond * n * fabs(c[0]) * (1 << n) if pivoting else least == 0:      # bounds of singular values by the diagonal of R
        return False
    for j in range(n):
        reflect(m - j, k, c + j * m + j, tau[j], x + j, m)
    for t in range(k):
        for j in range(n - 1, -1, -1):
            x[t * m + j] /= c[j * m + j]
            for p in range(j):
                x[t * m + p] -= c[j * m + p] * x[t * m + j]
            y[t * n + places[j]] = x[t * m + j]
    store(&arrays[2], i, 2, False, y)
    (<long long*> arrays[3].data)[i] = n
    return True


cdef Py_ssize_t lstsq(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A (m, n), b (m, k), x (n, k), rank (int64); singular values (for gelsd). ints: driver: 0 gels, 1 gelsy, 2 gelsd. numbers: rcond."""
    cdef const Array* a = &arrays[0]
    cdef const Array* b = &arrays[1]
    cdef int dtype = a.dtype, m = <int> a.shape[a.ndim - 2], n = <int> a.shape[a.ndim - 1], k = <int> b.shape[b.ndim - 1]
    cdef int ldb = max(max(m, n), 1), info = 0, size = -1, rank = min(m, n), least = min(m, n), first = 0, _
    cdef Py_ssize_t i, j, item = itemsize_of(dtype), matrix = <Py_ssize_t> m * n * item, right = <Py_ssize_t> ldb * k * item, status = -1
    cdef double query[1]
    cdef char* own
    cdef char* x
    cdef char* s
    cdef char* work
    cdef int* iwork
    cdef float rcond_f = <float> numbers[0]
    cdef double rcond_d = numbers[0]
    cdef void* rcond = &rcond_f if dtype == FLOAT32 else <void*> &rcond_d
    cdef char trans = b"N"
    if not fits(a) or not fits(b):
        return OUT_OF_MEMORY
    if m == 0 or n == 0 or k == 0:
        for i in range(batch_of(a, 2)):
            fill(dtype, <Py_ssize_t> n * k, item_of(&arrays[2], 2, i), 0)
            (<long long*> arrays[3].data)[i] = 0
        return -1
    for i in range(batch_of(a, 2)):
        if ints[0] == 2 or not lstsq_of_small(arrays, i, m, n, k, ints[0] == 1, numbers[0]):
            break
    else:
        return -1
    if not bound():
        return OUT_OF_MEMORY
    if ints[0] == 0:
        (<Gels> api[dtype][GELS])(&trans, &m, &n, &k, NULL, &m, NULL, &ldb, query, &size, &info)
    elif ints[0] == 1:
        (<Gelsy> api[dtype][GELSY])(&m, &n, &k, NULL, &m, NULL, &ldb, NULL, rcond, &rank, query, &size, &info)
    else:
        (<Gelsd> api[dtype][GELSD])(&m, &n, &k, NULL, &m, NULL, &ldb, NULL, rcond, &rank, query, &size, &first, &info)
    size = wanted(dtype, query)
    first = max(first, n) + 1
    own = <char*> malloc(matrix + right + <Py_ssize_t> (size + least) * item + <Py_ssize_t> first * sizeof(int))
    if own == NULL:
        return OUT_OF_MEMORY
    x = own + matrix
    s = x + right
    work = s + least * item
    iwork = <int*> (work + <Py_ssize_t> size * item)
    for i in range(batch_of(a, 2)):
        load(a, i, True, own)
        load(b, i, True, x)
        for j in range(k - 1, -1, -1):                     # the columns have room for the longer of b and x
            if ldb > m:
                memmove(x + j * ldb * item, x + j * m * item, m * item)
                memset(x + (j * ldb + m) * item, 0, (ldb - m) * item)
        if ints[0] == 0:
            (<Gels> api[dtype][GELS])(&trans, &m, &n, &k, own, &m, x, &ldb, work, &size, &info)
        elif ints[0] == 1:
            memset(iwork, 0, n * sizeof(int))
            (<Gelsy> api[dtype][GELSY])(&m, &n, &k, own, &m, x, &ldb, iwork, rcond, &rank, work, &size, &info)
        else:
            info = -4
            if all_finite(dtype, <Py_ssize_t> m * n, own) and all_finite(dtype, <Py_ssize_t> ldb * k, x):
                (<Gelsd> api[dtype][GELSD])(&m, &n, &k, own, &m, x, &ldb, s, rcond, &rank, work, &size, iwork, &info)
            if arrays[4].data != NULL:
                memcpy(item_of(&arrays[4], 1, i), s, least * item)
        if info:
            status = i * (n + 2) + (n + 1 if info < 0 else min(info, n))
            break
        (<long long*> arrays[3].data)[i] = rank
        for j in range(k):                                 # x as its transpose, then row-major
            if ldb > n:
                memmove(x + j * n * item, x + j * ldb * item, n * item)
        flip(item, n, k, x, item_of(&arrays[2], 2, i))
    free(own)
    return status


# ---- the exponential: scaling and squaring with diagonal Pade approximants (Higham 2005)

cdef double* BOUNDS = [1.495585217958292e-2, 2.53939833006323e-1, 9.504178996162932e-1, 2.097847961257068, 5.371920351148152]
cdef int* DEGREES = [3, 5, 7, 9, 13]
cdef double* FLOAT_BOUNDS = [4.258730016922831e-1, 1.880152677804762, 3.925724783138660]      # degrees 3, 5, 7


cdef void add_scaled(int dtype, Py_ssize_t n, char* y, double f, const char* x) noexcept nogil:
    cdef Py_ssize_t i
    if dtype == FLOAT32:
        for i in range(n):
            (<float*> y)[i] += <float> f * (<const float*> x)[i]
    else:
        for i in range(n):
            (<double*> y)[i] += f * (<const double*> x)[i]


cdef void add_diagonal(int dtype, int n, char* y, double f) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if dtype == FLOAT32:
            (<float*> y)[i * (n + 1)] += <float> f
        else:
            (<double*> y)[i * (n + 1)] += f


cdef inline void times(int dtype, int n, const char* a, const char* b, char* c) noexcept nogil:
    gemm_run(dtype, False, False, 1, n, n, n, a, n, 0, b, n, 0, c, n, 0)


cdef double norm_1(int dtype, int n, const char* x) noexcept nogil:
    """The largest sum of absolute values in a row: the 1-norm of the transpose."""
    cdef Py_ssize_t i, j
    cdef double best = 0, s
    for i in range(n):
        s = 0
        for j in range(n):
            s += fabs((<const float*> x)[i * n + j] if dtype == FLOAT32 else (<const double*> x)[i * n + j])
        if not s <= best:
            best = s
    return best


cdef void pade(int dtype, int n, int degree, char* a, char* powers, char* u, char* v, char* t, int* pivots) noexcept nogil:
    """a becomes its exponential: (v - u)^-1 (v + u), where u has the odd powers, v the even ones."""
    cdef double c[14]
    cdef Py_ssize_t size = <Py_ssize_t> n * n, bytes_ = size * itemsize_of(dtype)
    cdef int j, evens = degree // 2 if degree < 13 else 3
    c[degree] = 1
    for j in range(degree, 0, -1):                           # c[j] = (2 degree - j)! / (j! (degree - j)!), from the last
        c[j - 1] = c[j] * j * (2 * degree - j + 1) / (degree - j + 1)
    for j in range(evens):                                   # A^2, A^4, A^6 ...
        if j == 0:
            times(dtype, n, a, a, powers)
        else:
            times(dtype, n, powers + (j - 1) * bytes_, powers, powers + j * bytes_)
    memset(t, 0, bytes_)
    memset(v, 0, bytes_)
    if degree == 13:
        for j in range(3):
            add_scaled(dtype, size, t, c[9 + 2 * j], powers + j * bytes_)
            add_scaled(dtype, size, v, c[8 + 2 * j], powers + j * bytes_)
        times(dtype, n, powers + 2 * bytes_, t, u)
        memcpy(t, u, bytes_)
        times(dtype, n, powers + 2 * bytes_, v, u)
        memcpy(v, u, bytes_)
    for j in range(evens):
        add_scaled(dtype, size, t, c[2 * j + 3], powers + j * bytes_)
        add_scaled(dtype, size, v, c[2 * j + 2], powers + j * bytes_)
    add_diagonal(dtype, n, t, c[1])
    add_diagonal(dtype, n, v, c[0])
    times(dtype, n, a, t, u)
    memcpy(a, v, bytes_)                                     # the right side
    add_scaled(dtype, size, a, 1, u)
    add_scaled(dtype, size, v, -1, u)
    factor(dtype, n, v, pivots)
    solve_with(dtype, n, n, v, pivots, False, a)


cdef Py_ssize_t exponential(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A and its exponential."""
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, n = <int> a.shape[a.ndim - 1], k, degree, squarings, last = 2 if dtype == FLOAT32 else 4
    cdef const double* bounds = FLOAT_BOUNDS if dtype == FLOAT32 else BOUNDS
    cdef Py_ssize_t i, bytes_ = <Py_ssize_t> n * n * itemsize_of(dtype)
    cdef double size
    cdef char* own
    cdef char* x
    if not fits(a) or n > 16 and not bound():
        return OUT_OF_MEMORY
    if needs_blas(dtype, n, n, n) and not with_blas():
        return OUT_OF_MEMORY
    own = <char*> malloc(7 * bytes_ + n * sizeof(int) + 1)
    if own == NULL:
        return OUT_OF_MEMORY
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[1], 2, i)
        load(a, i, False, x)
        size = norm_1(dtype, n, x)
        if not size < 1e300:                                 # infinite or NaN: so is everything
            fill(dtype, <Py_ssize_t> n * n, x, size * 0 / 0 if n else 0)
            continue
        k, squarings = 0, 0
        while k < last and size > bounds[k]:
            k += 1
        if size > bounds[last]:
            squarings = <int> ceil(log2(size / bounds[last]))
        degree = DEGREES[k]
        if squarings:
            memset(own, 0, bytes_)
            add_scaled(dtype, <Py_ssize_t> n * n, own, 0.5 ** squarings, x)
            memcpy(x, own, bytes_)
        pade(dtype, n, degree, x, own, own + 4 * bytes_, own + 5 * bytes_, own + 6 * bytes_, <int*> (own + 7 * bytes_))
        for _ in range(squarings):
            times(dtype, n, x, x, own)
            memcpy(x, own, bytes_)
    free(own)
    return -1


# ---- cofactors

cdef Py_ssize_t cofactors(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """A and det(A) inv(A).T: by LU, or where that has a pivot near 0 by singular values, as products of all but one of them."""
    cdef const Array* a = &arrays[0]
    cdef int dtype = a.dtype, n = <int> a.shape[a.ndim - 1], k, info, size = -1
    cdef Py_ssize_t i, j, item = itemsize_of(dtype), count = <Py_ssize_t> n * n, bytes_ = count * item
    cdef double det, least, most, sign
    cdef double query[1]
    cdef char* own
    cdef char* x
    cdef char* s
    cdef char* work
    cdef int* pivots
    cdef int* iwork
    cdef char job = b"S"
    if n == 0:
        return -1
    if not fits(a) or not bound() or needs_blas(dtype, n, n, n) and not with_blas():
        return OUT_OF_MEMORY
    (<Gesdd> api[dtype][GESDD])(&job, &n, &n, NULL, &n, NULL, NULL, &n, NULL, &n, query, &size, NULL, &info)
    size = wanted(dtype, query)
    own = <char*> malloc(4 * bytes_ + (n + <Py_ssize_t> size) * item + 9 * <Py_ssize_t> n * sizeof(int))
    if own == NULL:
        return OUT_OF_MEMORY
    s = own + 4 * bytes_
    work = s + n * item
    pivots = <int*> (work + <Py_ssize_t> size * item)
    iwork = pivots + n
    for i in range(batch_of(a, 2)):
        x = item_of(&arrays[1], 2, i)
        load(a, i, True, own)
        factor(dtype, n, own, pivots)
        det = diagonal_product(dtype, n, own, pivots, &least, &most)
        if least > n * (1e-4 if dtype == FLOAT32 else 1e-11) * most:
            fill_rectangle(dtype, n, n, x)                          # by columns, the factors are those of A: x = inv(A.T)
            solve_with(dtype, n, n, own, pivots, False, x)
            scale_rows(dtype, n, NULL, det, x)
            continue
        load(a, i, False, own)                                      # A.T = V S U.T by columns
        if not all_finite(dtype, <Py_ssize_t> n * n, own):
            fill(dtype, <Py_ssize_t> n * n, x, NAN)
            continue
        (<Gesdd> api[dtype][GESDD])(&job, &n, &n, own, &n, s, own + bytes_, &n, own + 2 * bytes_, &n, work, &size, iwork, &info)
        # row-major: own + bytes_ is Vh, own + 2 bytes_ is U
        sign = 1
        for k in range(1, 3):
            memcpy(own, own + k * bytes_, bytes_)
            factor(dtype, n, own, pivots)
            sign *= diagonal_product(dtype, n, own, pivots, &least, &most)
        for k in range(n):
            det = 1 if sign > 0 else -1
            for j in range(n):
                if j != k:
                    det *= (<float*> s)[j] if dtype == FLOAT32 else (<double*> s)[j]
            fill(dtype, 1, own + k * item, det)
        memcpy(s, own, n * item)
        scale_rows(dtype, n, s, 1, own + bytes_)
        gemm_run(dtype, False, False, 1, n, n, n, own + 2 * bytes_, n, 0, own + bytes_, n, 0, x, n, 0)
    free(own)
    return -1


cdef double diagonal_product(int dtype, int n, const char* c, const int* pivots, double* least, double* most) noexcept nogil:
    """The determinant of P L U, and the least and the largest of the absolute diagonal of U."""
    cdef int j
    cdef double u, product = 1
    least[0], most[0] = INFINITY, 0
    for j in range(n):
        u = (<const float*> c)[<Py_ssize_t> j * (n + 1)] if dtype == FLOAT32 else (<const double*> c)[<Py_ssize_t> j * (n + 1)]
        product *= u if pivots[j] == j + 1 else -u
        least[0], most[0] = min(least[0], fabs(u)), max(most[0], fabs(u))
    return product


cdef void scale_rows(int dtype, int n, const char* factors, double f, char* x) noexcept nogil:
    """Row i times f and, unless that is NULL, factors[i]."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(n):
            if dtype == FLOAT32:
                (<float*> x)[i * n + j] *= <float> f * ((<const float*> factors)[i] if factors != NULL else 1)
            else:
                (<double*> x)[i * n + j] *= f * ((<const double*> factors)[i] if factors != NULL else 1)


cdef bint with_blas() noexcept with gil:
    bind_blas()
    return True


NO_CONVERGENCE = ("The algorithm failed to converge because the input matrix is ill-conditioned, has too many repeated singular values or "
                  "eigenvalues, or contains non-finite values")

add_routine("spectral.qr", "rww", qr)
add_routine("spectral.svd", "rwww", svd, failure("linalg.svd", NO_CONVERGENCE))
add_routine("spectral.pseudoinverse", "rww", pseudoinverse, failure("linalg.svd", NO_CONVERGENCE))
add_routine("spectral.eigh", "rww", eigh, failure("linalg.eigh", NO_CONVERGENCE))
add_routine("spectral.lstsq", "rrwww", lstsq, failure("linalg.lstsq", (
    "The least squares solution could not be computed because the input matrix does not have full rank")))
add_routine("spectral.cofactors", "rw", cofactors)
add_routine("spectral.exponential", "rw", exponential)
