# SciPy's LAPACK and BLAS as pointers, and how a routine meets a batch of matrices in any layout. The C interface.
#
# Relies on kernels/table. spectral.pyx, the other half of the routines, relies on it.
#
# All arguments of LAPACK are pointers, so that one type serves float32 and float64: the first index of `api` is the dtype.
# LAPACK is column-major: it takes a row-major matrix for its transpose.

from autograd_cy.kernels.table cimport Array

cdef enum:
    SMALL = 16                # rows and columns up to which loops of our own take the place of LAPACK

cdef enum:                    # functions, in the order of failures.NAMES
    GETRF = 0
    GETRS = 1
    POTRF = 2
    GEQRF = 3
    ORGQR = 4
    GESDD = 5
    SYEVD = 6
    GELSD = 7
    GELSY = 8
    GELS = 9
    GETRI = 10
    TRSM = 11                 # of BLAS
    N_FUNCTIONS = 12

cdef void* api[2][N_FUNCTIONS]

# Whether the pointers are there; takes them from SciPy when first asked.
cdef bint bound() noexcept nogil
# The number of matrices (or, with core 1, of vectors, with core 0, of scalars) in an array, and the address of one of them.
cdef Py_ssize_t batch_of(const Array* a, int core) noexcept nogil
cdef char* item_of(const Array* a, int core, Py_ssize_t i) noexcept nogil
# Write a matrix, row after row (or column after column), into dst without gaps.
cdef void load(const Array* a, Py_ssize_t i, bint by_columns, char* dst) noexcept nogil
# Write a dense matrix given column after column as rows.
cdef void flip(Py_ssize_t itemsize, Py_ssize_t rows, Py_ssize_t cols, const char* src, char* dst) noexcept nogil
# The factors P L U of a column-major matrix in its place; k > 0: U has a zero at diagonal k.
cdef int factor(int dtype, int n, char* c, int* pivots) noexcept nogil
# x (n, k), row-major, becomes the solution of A x = b, where the factors are those of A.T in column-major (A in row-major) order;
# of A.T x = b if adjoint.
cdef void solve_with(int dtype, int n, int k, char* c, const int* pivots, bint adjoint, char* x) noexcept nogil
# info (an array, or NULL data) takes what went wrong with matrix i; without it the status says so and is returned from 0 on.
cdef Py_ssize_t report(const Array* info, Py_ssize_t i, Py_ssize_t n, int code) noexcept nogil
cdef bint fits(const Array* a) noexcept nogil            # its sizes are 32-bit integers
cdef void fill(int dtype, Py_ssize_t n, char* x, double value) noexcept nogil
cdef void fill_eye(int dtype, int n, char* x) noexcept nogil
cdef void keep(int dtype, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t low, Py_ssize_t high, char* x) noexcept nogil
