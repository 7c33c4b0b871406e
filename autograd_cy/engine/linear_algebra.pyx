# Linear algebra through LAPACK: inverses, systems of equations, determinants, factors and decompositions, in the last two axes.
#
# Relies on the routines of kernels/lapack and kernels/spectral, record, shape. matrix_functions.py builds on it;
# autograd_cy.linalg is its public path. It is imported when first asked for. Above 500 lines because a module more is 20 kB more.

from collections import namedtuple

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New

from autograd_cy.array.dtype cimport FLOAT64, INT32, INT64, MAX_NDIM
from autograd_cy.array.layout cimport CONTIGUOUS, Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_incref
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, node_set_outputs, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.record cimport any_wants_grad, record, set_edge, set_history, wants_grad
from autograd_cy.engine.reduce cimport pair
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport reshape_to
from autograd_cy.engine.tensor cimport Tensor, tensor_alias, tensor_new

from autograd_cy.array.errors import ArgumentError, DTypeError, ShapeError, worded
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.products import matmul
from autograd_cy.engine.shape import expand, swap_axes

cdef int INV = row_number("inv"), SOLVE = row_number("solve"), TRIANGULAR = row_number("solve_triangular"), DET = row_number("det")
cdef int LOGABSDET = row_number("logabsdet"), CHOLESKY = row_number("cholesky"), BAND = row_number("band")
cdef int R_INVERSE = routine_of("lapack.inverse"), R_SOLVE = routine_of("lapack.solve")
cdef int R_SOLVE_AGAIN = routine_of("lapack.solve_again"), R_DETERMINANT = routine_of("lapack.determinant")
cdef int R_CHOLESKY = routine_of("lapack.cholesky"), R_TRIANGLE = routine_of("lapack.solve_triangle")
cdef int R_BAND = routine_of("lapack.band"), R_QR = routine_of("spectral.qr"), R_SVD = routine_of("spectral.svd")
cdef int R_EIGH = routine_of("spectral.eigh"), R_EXPONENTIAL = routine_of("spectral.exponential")
cdef int QR = row_number("qr"), SVD = row_number("svd"), EIGH = row_number("eigh"), EXPONENTIAL = row_number("matrix_exp")
cdef int R_FACTORS = routine_of("lapack.packed_factors"), R_LSTSQ = routine_of("spectral.lstsq")
cdef int R_COFACTORS = routine_of("spectral.cofactors"), R_PERMUTATION = routine_of("lapack.permutation")
cdef int COFACTOR = row_number("cofactor"), R_PSEUDOINVERSE = routine_of("spectral.pseudoinverse")
cdef int LU_FACTOR = row_number("lu_factor"), LSTSQ = row_number("lstsq"), PINV = row_number("pinv")

slogdet_result = namedtuple("slogdet", "sign logabsdet")
lu_factor_result = namedtuple("lu_factor", "LU pivots")
qr_result = namedtuple("qr", "Q R")
svd_result = namedtuple("svd", "U S Vh")
eigh_result = namedtuple("eigh", "eigenvalues eigenvectors")
cdef object QR_KIND = qr_result, SVD_KIND = svd_result, EIGH_KIND = eigh_result, SLOGDET_KIND = slogdet_result
cdef object LU_KIND = lu_factor_result        # without a look-up
cdef tuple NOT_ADJOINT = (False,)

cdef extern from *:
    """
    static PyObject* ag_three(PyObject* type, PyObject* first, PyObject* second, PyObject* third) {      /* as ag_pair in reduce.pyx */
        PyObject* o = ((PyTypeObject*) type)->tp_alloc((PyTypeObject*) type, 3);
        if (o == NULL) return NULL;
        Py_INCREF(first);
        Py_INCREF(second);
        Py_INCREF(third);
        PyTuple_SET_ITEM(o, 0, first);
        PyTuple_SET_ITEM(o, 1, second);
        PyTuple_SET_ITEM(o, 2, third);
        return o;
    }
    """
    object ag_three(object type, object first, object second, object third)

cdef extern from "Python.h":
    PyObject* PyLong_FromUnsignedLong(unsigned long n) except NULL
    void put_item "PyTuple_SET_ITEM"(object items, Py_ssize_t place, PyObject* item) noexcept


# ---- what an operation accepts, and room for results

cdef Tensor matrices(object x, str name, str what="A"):
    """x, if it is a tensor of floating-point matrices."""
    cdef Tensor t
    if not isinstance(x, Tensor):
        raise worded(TypeError, "{}: expected {} to be a Tensor, got {}", name, what, type(x).__name__)
    t = x
    if t.dtype_ > FLOAT64:
        raise worded(DTypeError, "{}: expected a floating-point tensor as {}, got {.dtype.name}; convert it first", name, what, t)
    if t.layout.ndim < 2:
        raise worded(ShapeError, "{}: the input tensor {} must have at least 2 dimensions, got shape {.shape}", name, what, t)
    return t


cdef Tensor square(object x, str name):
    cdef Tensor t = matrices(x, name)
    if t.layout.dims[t.layout.ndim - 1] != t.layout.dims[t.layout.ndim - 2]:
        raise worded(ShapeError, "{}: A must be batches of square matrices, but they are of shape {.shape}", name, t)
    return t


cdef int check_fit(Tensor a, Tensor b, int axis, str name) except -1:
    """The size of b's last axis (1) or the one before (2) is that of a's last one, and both have one dtype."""
    if a.dtype_ != b.dtype_:
        raise worded(RuntimeError, "{}: expected A and B to have the same dtype, but found {.dtype.name} and {.dtype.name}", name, a, b)
    if b.layout.ndim < axis or b.layout.dims[b.layout.ndim - axis] != a.layout.dims[a.layout.ndim - 1]:
        raise worded(ShapeError, "{}: A of shape {.shape} and B of shape {.shape} do not fit", name, a, b)
    return 0


cdef Tensor like(Tensor a):
    """A new tensor of the shape and dtype of a, row-major."""
    cdef Layout* layout
    cdef PyObject* out
    if a.layout.flags & CONTIGUOUS:
        return own(tensor_new(a.layout, a.dtype_))
    layout = layout_contiguous_like(a.layout)
    out = tensor_new(layout, a.dtype_)
    layout_decref(layout)
    return own(out)


cdef Tensor for_each(Tensor a, int dtype, Py_ssize_t rows=-1, Py_ssize_t cols=-1):
    """A new tensor with a matrix (or vector, or number) for each matrix of a."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int i, n = a.layout.ndim - 2
    cdef Layout* layout
    cdef PyObject* out
    if dtype == a.dtype_ and cols == last(a, 1) and rows == last(a, 2):
        return like(a)
    for i in range(n):
        shape[i] = a.layout.dims[i]
    if rows >= 0:
        shape[n] = rows
        n += 1
    if cols >= 0:
        shape[n] = cols
        n += 1
    layout = layout_contiguous(n, shape)
    out = tensor_new(layout, dtype)
    layout_decref(layout)
    return own(out)


cdef tuple batch_sizes(Tensor a):
    return a.shape[:max(a.layout.ndim - 2, 0)]


cdef inline Py_ssize_t last(Tensor a, int axis) noexcept:
    """The size of the last axis (1) or the one before (2)."""
    return a.layout.dims[a.layout.ndim - axis]


cdef int record_one(int opcode, Tensor x, Tensor out, object attrs=None, object aux=None) except -1:
    cdef PyObject* inputs[1]
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs if attrs is not None else NULL,
               <PyObject*> aux if aux is not None else NULL)
    return 0


# for matrix_functions

def matrix_input(x, name, need_square=False):
    """x, if it is a tensor of floating-point matrices (square ones)."""
    return square(x, name) if need_square else matrices(x, name)


cdef int record_outputs(int opcode, Tensor x, PyObject** outputs, int n, object attrs) except -1:
    """One node with several outputs, all of which its rule may name."""
    cdef PyObject* node
    cdef int k
    cdef Layout* layout
    cdef tuple extra
    if not (wants_grad(x) and grad_enabled()):
        return 0
    node = node_new(opcode, 1, 0)
    node_set_outputs(<Node> node, n)
    set_edge(&(<Node> node).edges[0], x)
    Py_INCREF(attrs)
    (<Node> node).attrs = <PyObject*> attrs
    extra = PyTuple_New(2 * n)
    for k in range(n):
        layout = (<Tensor> outputs[k]).layout
        layout_incref(layout)
        put_item(extra, k, tensor_alias(<Tensor> outputs[k], layout, (<Tensor> outputs[k]).data))
        put_item(extra, n + k, PyLong_FromUnsignedLong((<Tensor> outputs[k]).storage.version))
    Py_INCREF(extra)
    (<Node> node).extra = <PyObject*> extra
    remember_line(<Node> node)
    for k in range(n):
        Py_INCREF(<object> node)
        set_history(outputs[k], node, k)
    Py_DECREF(<object> node)
    return 0


cdef int record_two(int opcode, Tensor a, Tensor b, Tensor out, object attrs, object aux) except -1:
    cdef PyObject* inputs[2]
    inputs[0], inputs[1] = <PyObject*> a, <PyObject*> b
    if any_wants_grad(2, inputs):
        record(opcode, <PyObject*> out, 2, inputs, <PyObject*> attrs, <PyObject*> aux if aux is not None else NULL)
    return 0


# ---- inverse, systems of equations

cdef Tensor inverse(Tensor a, PyObject* info):
    cdef Tensor out = like(a)
    cdef PyObject* arrays[3]
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> out, info
    run_routine(R_INVERSE, arrays)
    record_one(INV, a, out)
    return out


def inv(A):
    """The inverse Y of square matrices A (..., n, n) in the last two axes; the gradient is -Y^T G Y^T.

    Raises RuntimeError (LinAlgError) where a matrix is singular, ValueError where it is not square, TypeError unless it is floating
    point.
    """
    return inverse(square(A, "linalg.inv"), NULL)


def inverse_or_inf(Tensor a):
    """For rules: the inverse; infinities for singular matrices."""
    cdef Tensor info = for_each(a, INT32)
    return inverse(a, <PyObject*> info)


cdef bint share_batch(Tensor a, Tensor b) noexcept:
    cdef int i
    if a.layout.ndim != b.layout.ndim:
        return False
    for i in range(a.layout.ndim - 2):
        if a.layout.dims[i] != b.layout.dims[i]:
            return False
    return True


cdef tuple with_one_batch(Tensor a, Tensor b, str name):
    """Both expanded to one batch."""
    cdef int n = a.layout.ndim - 2
    from autograd_cy.engine.matrix_functions import broadcast_sizes
    batch = broadcast_sizes(batch_sizes(a), batch_sizes(b))
    if batch is None:
        raise worded(ShapeError, "{}: the batches of A, of shape {.shape}, and B, of shape {.shape}, do not broadcast against each other",
                                 name, a, b)
    return expand(a, (*batch, *a.shape[n:])), expand(b, (*batch, *b.shape[b.layout.ndim - 2:]))


cdef Tensor solution(Tensor a, Tensor b, PyObject* info):
    """A^-1 b, of one batch."""
    cdef Tensor x = like(b)
    cdef Tensor factors, pivots
    cdef PyObject* inputs[2]
    cdef PyObject* arrays[6]
    cdef Py_ssize_t ints[1]
    inputs[0], inputs[1] = <PyObject*> a, <PyObject*> b
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> b, <PyObject*> x
    arrays[3], arrays[4], arrays[5], ints[0] = NULL, NULL, info, 0
    if not any_wants_grad(2, inputs):
        run_routine(R_SOLVE, arrays, 1, ints)
        return x
    factors, pivots = like(a), for_each(a, INT32, last(a, 1))
    arrays[3], arrays[4] = <PyObject*> factors, <PyObject*> pivots
    run_routine(R_SOLVE, arrays, 1, ints)
    aux = (factors, pivots)
    record(SOLVE, <PyObject*> x, 2, inputs, <PyObject*> NOT_ADJOINT, <PyObject*> aux)
    return x


def solve_again(Tensor a, Tensor b, Tensor factors, Tensor pivots, adjoint):
    """For rules: A^-1 b (A^-T b if adjoint) with the factors of A that a solution left."""
    cdef Tensor x = like(b)
    cdef PyObject* arrays[4]
    cdef Py_ssize_t ints[1]
    arrays[0], arrays[1], arrays[2], arrays[3] = <PyObject*> factors, <PyObject*> pivots, <PyObject*> b, <PyObject*> x
    ints[0] = 1 if adjoint else 0
    run_routine(R_SOLVE_AGAIN, arrays, 1, ints)
    record_two(SOLVE, a, b, x, (bool(adjoint),), (factors, pivots))
    return x


cdef Tensor with_column(Tensor b):
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int i
    if b.layout.ndim == MAX_NDIM:
        raise worded(ShapeError, "linalg.solve: shape {.shape} has too many dimensions", b)
    for i in range(b.layout.ndim):
        shape[i] = b.layout.dims[i]
    shape[b.layout.ndim] = 1
    return reshape_to(b, b.layout.ndim + 1, shape)


cdef object without_column(Tensor x):
    return reshape_to(x, x.layout.ndim - 1, x.layout.dims)


cdef object solve_any(object A, object B, bint left, PyObject* info, str name):
    cdef Tensor a = square(A, name)
    cdef Tensor b
    cdef bint vector
    if not isinstance(B, Tensor):
        raise worded(TypeError, "{}: expected B to be a Tensor, got {}", name, type(B).__name__)
    b = B
    vector = b.layout.ndim == 1 or b.layout.ndim == a.layout.ndim - 1 and b.shape == a.shape[:a.layout.ndim - 1]
    check_fit(a, b, 1 if vector or not left else 2, name)
    if vector and not left:
        raise worded(ShapeError, "{}: vector broadcasting of B, of shape {.shape}, is not supported for left=False", name, B)
    if vector:
        b = with_column(b)
    if not share_batch(a, b):
        a, b = with_one_batch(a, b, name)
    if vector:
        return without_column(solution(a, b, info))
    if left:
        return solution(a, b, info)
    return swap_axes(solution(swap_axes(a), swap_axes(b), info))


def solve(A, B, *, bint left=True):
    """X with A X = B (X A = B unless left), for square A (..., n, n) and B (..., n, k), or a vector B (..., n) for each matrix. Batches
    broadcast.

    Raises RuntimeError (LinAlgError) where a matrix is singular, ValueError where shapes, RuntimeError where dtypes do not fit.
    """
    return solve_any(A, B, left, NULL, "linalg.solve")


def triangular_row(Tensor a, Tensor b, bint upper, bint adjoint, bint unitriangular):
    """The row itself, for rules: tensors of one batch."""
    cdef Tensor x = like(b)
    cdef PyObject* arrays[3]
    cdef Py_ssize_t ints[3]
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> b, <PyObject*> x
    ints[0], ints[1], ints[2] = upper, adjoint, unitriangular
    run_routine(R_TRIANGLE, arrays, 3, ints)
    record_two(TRIANGULAR, a, b, x, (bool(upper), bool(adjoint), bool(unitriangular)), None)
    return x


def solve_triangular(A, B, *, bint upper, bint left=True, bint unitriangular=False):
    """X with A X = B (X A = B unless left), where only the upper or lower triangle of A (..., n, n) counts, its diagonal as ones if
    unitriangular. Batches broadcast; a zero on the diagonal gives infinities.

    Raises ValueError where shapes, RuntimeError where dtypes do not fit.
    """
    cdef Tensor a = square(A, "linalg.solve_triangular")
    cdef Tensor b = matrices(B, "linalg.solve_triangular", "B")
    check_fit(a, b, 2 if left else 1, "linalg.solve_triangular")
    if not share_batch(a, b):
        a, b = with_one_batch(a, b, "linalg.solve_triangular")
    if left:
        return triangular_row(a, b, upper, False, unitriangular)
    return swap_axes(triangular_row(a, swap_axes(b), upper, True, unitriangular))


# ---- determinants

def det(A):
    """The determinants of square matrices A (..., n, n). The gradient is the matrix of cofactors, for singular matrices, too."""
    cdef Tensor a = square(A, "linalg.det")
    cdef Tensor out = for_each(a, a.dtype_)
    cdef PyObject* arrays[3]
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> out, NULL
    run_routine(R_DETERMINANT, arrays)
    record_one(DET, a, out)
    return out


def slogdet(A):
    """(sign, logabsdet): the sign of the determinant and the logarithm of its absolute value, without overflow; (0, -inf) for singular
    matrices. The sign has no gradient."""
    cdef Tensor a = square(A, "linalg.slogdet")
    cdef Tensor sign = for_each(a, a.dtype_), out = for_each(a, a.dtype_)
    cdef PyObject* arrays[3]
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> sign, <PyObject*> out
    run_routine(R_DETERMINANT, arrays)
    record_one(LOGABSDET, a, out)
    return pair(SLOGDET_KIND, sign, out)


# ---- factorisations

cdef Tensor cholesky_any(Tensor a, bint upper, PyObject* info):
    cdef Tensor out = like(a)
    cdef PyObject* arrays[3]
    cdef Py_ssize_t ints[1]
    arrays[0], arrays[1], arrays[2], ints[0] = <PyObject*> a, <PyObject*> out, info, upper
    run_routine(R_CHOLESKY, arrays, 1, ints)
    record_one(CHOLESKY, a, out, (upper,))
    return out


def cholesky(A, *, bint upper=False):
    """The lower triangle L with A = L L^T (upper: U with A = U^T U) of positive-definite matrices A (..., n, n), of which only that
    triangle is read; the gradient is symmetric.

    Raises RuntimeError (LinAlgError) where a matrix is not positive-definite.
    """
    return cholesky_any(square(A, "linalg.cholesky"), upper, NULL)


cdef Tensor factored(object A, bint pivot, PyObject** pivots, PyObject* info, str name):
    """L and U in one matrix, recorded; the pivots."""
    cdef Tensor a = matrices(A, name)
    cdef Tensor out
    cdef Tensor rows
    cdef PyObject* arrays[4]
    if not pivot:
        raise worded(NotImplementedError, "{}: pivot=False is not possible on the CPU, as in PyTorch", name)
    out, rows = like(a), for_each(a, INT32, min(last(a, 1), last(a, 2)))
    arrays[0], arrays[1], arrays[2], arrays[3] = <PyObject*> a, <PyObject*> out, <PyObject*> rows, info
    run_routine(R_FACTORS, arrays, 0, NULL)
    record_one(LU_FACTOR, a, out, None, (rows,))
    Py_INCREF(rows)
    pivots[0] = <PyObject*> rows
    return out


def lu_factor(A, *, bint pivot=True):
    """(LU, pivots) with A = P L U, for A (..., m, n): L without its diagonal of ones and U in one matrix; row i was exchanged with row
    pivots[i] - 1 (int32)."""
    cdef PyObject* pivots
    cdef Tensor out = factored(A, pivot, &pivots, NULL, "linalg.lu_factor")
    return pair(LU_KIND, out, own(pivots))


def informed(str name, A, bint flag, Tensor info=None, B=None):
    """The results of a function of that name that writes (info given) into info (int32) what went wrong, instead of raising. flag: the
    argument left, upper or pivot."""
    cdef PyObject* numbers = NULL if info is None else <PyObject*> info
    cdef PyObject* pivots
    if name == "linalg.inv_ex":
        return inverse(square(A, name), numbers)
    if name == "linalg.solve_ex":
        return solve_any(A, B, flag, numbers, name)
    if name == "linalg.cholesky_ex":
        return cholesky_any(square(A, name), flag, numbers)
    out = factored(A, flag, &pivots, numbers, name)
    return out, own(pivots)


# ---- decompositions

def qr(A, mode="reduced"):
    """(Q, R) with A = Q R, for A (..., m, n): columns of Q orthonormal, R upper triangular. "reduced": Q (m, k) and R (k, n), where k is
    the smaller of m and n; "complete": Q (m, m) and R (m, n); "r": only R, and Q is empty.

    The gradient exists where the first k columns of A are independent, and not for "complete" with m > n.
    """
    cdef Tensor a = matrices(A, "linalg.qr")
    cdef Py_ssize_t m = last(a, 2), k
    cdef Tensor q = a
    cdef Tensor r
    cdef PyObject* arrays[3]
    if type(mode) is not str or mode != "reduced" and mode != "complete" and mode != "r":
        raise worded(ArgumentError, "linalg.qr: mode must be \"reduced\", \"complete\" or \"r\", got {!r}", mode)
    k = m if mode == "complete" else min(m, last(a, 1))
    r = for_each(a, a.dtype_, k, last(a, 1))
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, NULL, <PyObject*> r
    if mode != "r" or wants_grad(a) and grad_enabled():
        q = for_each(a, a.dtype_, m, k)
        arrays[1] = <PyObject*> q
    run_routine(R_QR, arrays)
    if arrays[1] != NULL:
        record_outputs(QR, a, &arrays[1], 2, (mode,))
    return pair(QR_KIND, q if mode != "r" else FUNCTIONS["zeros"]((0,), a.dtype_), r)


cdef object svd_of(Tensor a, bint full, bint only_values):
    cdef Py_ssize_t m = last(a, 2), n = last(a, 1), k = min(m, n)
    cdef Tensor u
    cdef Tensor s = for_each(a, a.dtype_, k)
    cdef Tensor vh
    cdef PyObject* arrays[4]
    cdef PyObject* outputs[3]
    arrays[0], arrays[1], arrays[2], arrays[3] = <PyObject*> a, <PyObject*> s, NULL, NULL
    if only_values and not (wants_grad(a) and grad_enabled()):
        run_routine(R_SVD, arrays)
        return s
    u, vh = for_each(a, a.dtype_, m, m if full else k), for_each(a, a.dtype_, n if full else k, n)
    arrays[2], arrays[3] = <PyObject*> u, <PyObject*> vh
    run_routine(R_SVD, arrays)
    outputs[0], outputs[1], outputs[2] = <PyObject*> u, <PyObject*> s, <PyObject*> vh
    record_outputs(SVD, a, outputs, 3, (full,))
    return s if only_values else ag_three(SVD_KIND, u, s, vh)


def svd(A, bint full_matrices=True, *, driver=None):
    """(U, S, Vh) with A = U diag(S) Vh, for A (..., m, n): S descending; U (m, m) and Vh (n, n), or of the smaller size on their inner
    side unless full_matrices. `driver` is accepted and ignored.

    Gradients are finite where singular values repeat, and right for functions that do not depend on the choice of vectors.
    """
    return svd_of(matrices(A, "linalg.svd"), full_matrices, False)


def svdvals(A, *, driver=None):
    """The singular values of A (..., m, n), descending. `driver` is accepted and ignored."""
    return svd_of(matrices(A, "linalg.svdvals"), False, True)


cdef object eigh_of(object A, object UPLO, bint only_values, str name):
    cdef Tensor a = square(A, name)
    cdef Tensor values = for_each(a, a.dtype_, last(a, 1))
    cdef Tensor vectors
    cdef PyObject* arrays[3]
    cdef Py_ssize_t ints[1]
    if type(UPLO) is not str or UPLO not in ("L", "U", "l", "u"):
        raise worded(ArgumentError, "{}: expected UPLO to be 'L' or 'U', got {!r}", name, UPLO)
    ints[0] = UPLO in "Uu"
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> values, NULL
    if only_values and not (wants_grad(a) and grad_enabled()):
        run_routine(R_EIGH, arrays, 1, ints)
        return values
    vectors = like(a)
    arrays[2] = <PyObject*> vectors
    run_routine(R_EIGH, arrays, 1, ints)
    record_outputs(EIGH, a, &arrays[1], 2, (ints[0] == 1,))
    return values if only_values else pair(EIGH_KIND, values, vectors)


def eigh(A, UPLO="L"):
    """(eigenvalues, eigenvectors) of symmetric matrices A (..., n, n): ascending, and in columns. Only the triangle UPLO is read; the
    gradient is symmetric."""
    return eigh_of(A, UPLO, False, "linalg.eigh")


def eigvalsh(A, UPLO="L"):
    """The eigenvalues of symmetric matrices A (..., n, n), ascending."""
    return eigh_of(A, UPLO, True, "linalg.eigvalsh")


cdef Tensor mapped(int opcode, int routine, Tensor a):
    """A row whose result is like its input."""
    cdef Tensor out = like(a)
    cdef PyObject* arrays[2]
    arrays[0], arrays[1] = <PyObject*> a, <PyObject*> out
    run_routine(routine, arrays)
    record_one(opcode, a, out)
    return out


def matrix_exp(A):
    """sum over k of A^k / k!, for square A (..., n, n): by Pade approximants, scaling and squaring."""
    return mapped(EXPONENTIAL, R_EXPONENTIAL, square(A, "linalg.matrix_exp"))


def cofactor(Tensor a):
    """For rules: det(A) inv(A).T, by singular values where A is (nearly) singular."""
    return mapped(COFACTOR, R_COFACTORS, a)


def permutation_matrix(pivots, factors, str name="lu_unpack"):
    """The matrices P of A = P L U, in the dtype of the factors (..., m, n)."""
    cdef Tensor places = need_tensor(pivots, name), matrix = matrices(factors, name)
    cdef PyObject* arrays[2]
    cdef Tensor out
    if places.dtype_ != INT32:
        raise worded(RuntimeError, "{}: expected LU_pivots of dtype int32, got {.dtype.name}", name, places)
    if places.shape != (*batch_sizes(matrix), min(last(matrix, 1), last(matrix, 2))):
        raise worded(ShapeError, "{}: LU of shape {.shape} and pivots of shape {.shape} do not fit", name, matrix, places)
    out = for_each(matrix, matrix.dtype_, last(matrix, 2), last(matrix, 2))
    arrays[0], arrays[1] = <PyObject*> places, <PyObject*> out
    run_routine(R_PERMUTATION, arrays)
    return out


cdef object two_triangles(Tensor a, Tensor b, bint upper, bint adjoint, bint unit, bint unit_then, str name):
    """b divided by a triangle of a, and then by the other triangle or by the first one transposed."""
    check_fit(a, b, 2, name)
    if not share_batch(a, b):
        a, b = with_one_batch(a, b, name)
    b = triangular_row(a, b, upper, adjoint, unit)
    return triangular_row(a, b, upper if unit == unit_then else not upper, not adjoint if unit == unit_then else adjoint, unit_then)


def cholesky_solve(B, L, bint upper=False):
    """X with A X = B, where L (..., n, n) is the Cholesky factor of A: A = L L^T (upper: L^T L)."""
    return two_triangles(square(L, "cholesky_solve"), matrices(B, "cholesky_solve", "B"), upper, upper, False, False, "cholesky_solve")


def lu_solve(LU, pivots, B, *, bint left=True, bint adjoint=False):
    """X with A X = B (X A = B unless left; A.T instead of A if adjoint), from the LU and pivots that lu_factor(A) gave."""
    cdef Tensor a = square(LU, "linalg.lu_solve"), b = matrices(B, "linalg.lu_solve", "B")
    cdef Tensor p = permutation_matrix(pivots, a, "linalg.lu_solve")
    check_fit(a, b, 2 if left else 1, "linalg.lu_solve")
    if not left:
        return swap_axes(lu_solve(a, pivots, swap_axes(b), adjoint=not adjoint))
    if adjoint:
        return matmul(p, two_triangles(a, b, True, True, False, True, "linalg.lu_solve"))
    return two_triangles(a, matmul(swap_axes(p), b), False, False, True, False, "linalg.lu_solve")


def lstsq_plainly(A, B):
    """lstsq as it is called most: of tensors that fit as they are, with the default driver. None for all else."""
    cdef Tensor a
    cdef Tensor b
    if not isinstance(A, Tensor) or not isinstance(B, Tensor):
        return None
    a, b = A, B
    if a.dtype_ > FLOAT64 or a.dtype_ != b.dtype_ or a.layout.ndim < 2 or not share_batch(a, b) or last(a, 2) != last(b, 2):
        return None
    x, rank, _ = least_squares(a, b, None, 1)
    return x, rank


cdef double precision_of(Tensor a) noexcept:
    """The larger of the last two sizes times the relative precision of the dtype."""
    return max(last(a, 1), last(a, 2)) * (2.220446049250313e-16 if a.dtype_ == FLOAT64 else 1.1920929e-07)


def least_squares(A, B, rcond, int driver):
    """(solution, rank, singular values or None) of tensors of one batch; driver: 0 gels, 1 gelsy, 2 gelsd."""
    cdef double limit = 0 if rcond is None else rcond
    cdef Tensor a = matrices(A, "linalg.lstsq"), b = matrices(B, "linalg.lstsq", "B"), x, rank
    cdef PyObject* arrays[5]
    cdef Py_ssize_t ints[1]
    if not share_batch(a, b) or last(a, 2) != last(b, 2) or a.dtype_ != b.dtype_:       # what reading rcond does may have changed them
        raise worded(ShapeError, "linalg.lstsq: A of shape {.shape} and B of shape {.shape} do not fit", a, b)
    if rcond is None:
        limit = precision_of(a)
    x, rank = for_each(b, a.dtype_, last(a, 1), last(b, 1)), for_each(a, INT64)
    ints[0] = driver
    arrays[0], arrays[1], arrays[2], arrays[3], arrays[4] = <PyObject*> a, <PyObject*> b, <PyObject*> x, <PyObject*> rank, NULL
    s = None
    if driver == 2:
        s = for_each(a, a.dtype_, min(last(a, 1), last(a, 2)))
        arrays[4] = <PyObject*> s
    run_routine(R_LSTSQ, arrays, 1, ints, 1, &limit)
    record_two(LSTSQ, a, b, x, (limit, driver), None)
    return x, rank, s


def pseudoinverse(A, atol, rtol, bint only_rank):
    """The pseudoinverse, or the rank (int64): singular values up to max(atol, rtol * the largest) count as 0."""
    cdef Tensor a, out
    cdef PyObject* arrays[3]
    cdef double numbers[2]
    numbers[0] = 0 if atol is None else atol
    numbers[1] = 0 if rtol is None else rtol
    a = matrices(A, "linalg.matrix_rank" if only_rank else "linalg.pinv")      # what reading a number does may have made it something else
    if rtol is None and not numbers[0] > 0:
        numbers[1] = precision_of(a)
    out = for_each(a, INT64) if only_rank else for_each(a, a.dtype_, last(a, 1), last(a, 2))
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, NULL, NULL
    arrays[2 if only_rank else 1] = <PyObject*> out
    run_routine(R_PSEUDOINVERSE, arrays, 0, NULL, 2, numbers)
    if not only_rank:
        record_one(PINV, a, out, (atol, rtol, False))
    return out


def band(Tensor x, low, high):
    """For rules: x (..., m, n) with zeros except on its diagonals low to high."""
    cdef Tensor out = like(x)
    cdef PyObject* arrays[2]
    cdef Py_ssize_t ints[2]
    cdef double rows = <double> last(x, 2), cols = <double> last(x, 1)
    arrays[0], arrays[1] = <PyObject*> x, <PyObject*> out
    ints[0], ints[1] = <Py_ssize_t> max(-rows, min(cols, <double> low)), <Py_ssize_t> max(-rows - 1, min(cols, <double> high))
    run_routine(R_BAND, arrays, 2, ints)
    record_one(BAND, x, out, (low, high))
    return out


FUNCTIONS.update({"band": band, "cofactor": cofactor, "det": det, "inverse_or_inf": inverse_or_inf, "matrix_exp": matrix_exp,
                  "permutation_matrix": permutation_matrix, "solve_again": solve_again, "solve_triangular": triangular_row,
                  "svd": lambda x: svd_of(x, False, False)})
