"""Decompositions through LAPACK: LU, QR, singular values, symmetric eigenvalues; least squares and the exponential.

Relies on linear_algebra and on the routines of kernels/lapack and kernels/spectral. matrix_functions.py builds on it; autograd_cy.linalg is
its public path.
"""

from collections import namedtuple

from ..array.errors import ArgumentError
from .gradients import FUNCTIONS
from .linear_algebra import decompose, matrix_input, record_row, room
from .modes import is_grad_enabled
from .routines import call_routine
from .tensor import Tensor

INT64, INT32 = 2, 3
lu_factor_result = namedtuple("lu_factor", "LU pivots")
lu_factor_ex_result = namedtuple("lu_factor_ex", "LU pivots info")
qr_result = namedtuple("qr", "Q R")
svd_result = namedtuple("svd", "U S Vh")
eigh_result = namedtuple("eigh", "eigenvalues eigenvectors")
_made = tuple.__new__         # past the check of a named tuple's arguments


def _nothing(a):
    return FUNCTIONS["zeros"]((0,), a.dtype.code)


def _recorded(a):
    return a.requires_grad and is_grad_enabled()


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> lu_factor_ex_result:
    """(LU, pivots, info): as `lu_factor`, with info (int32) 0, or k where the k-th diagonal element of U is 0."""
    return _made(lu_factor_ex_result, _factored(A, pivot))


def _factored(A, pivot):
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: pivot=False is not possible on the CPU, as in PyTorch")
    a = matrix_input(A, "linalg.lu_factor")
    m, n = a.shape[-2:]
    factors, pivots, info = room(a, m, n), room(a, n if n < m else m, dtype=INT32), room(a, dtype=INT32)
    call_routine("lapack.packed_factors", (a, factors, pivots, info))
    return record_row("lu_factor", (a,), factors, None, (pivots,)), pivots, info


def lu_factor(A: Tensor, *, pivot: bool = True) -> lu_factor_result:
    """(LU, pivots) with A = P L U, for A (..., m, n): L without its diagonal of ones and U in one matrix; row i was exchanged with row
    pivots[i] - 1 (int32)."""
    return _made(lu_factor_result, _factored(A, pivot)[:2])


def permutation_matrix(pivots, rows, like):
    """The matrices P (rows, rows) of A = P L U, in the dtype of `like`."""
    out = room(pivots.unsqueeze(-1), rows, rows, dtype=like.dtype.code)
    call_routine("lapack.permutation", (pivots, out))
    return out


def qr(A: Tensor, mode: str = "reduced") -> qr_result:
    """(Q, R) with A = Q R, for A (..., m, n): columns of Q orthonormal, R upper triangular. "reduced": Q (m, k) and R (k, n), where k is
    the smaller of m and n; "complete": Q (m, m) and R (m, n); "r": only R, and Q is empty.

    The gradient exists where the first k columns of A are independent, and not for "complete" with m > n.
    """
    a = matrix_input(A, "linalg.qr")
    if type(mode) is not str or mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"linalg.qr: mode must be \"reduced\", \"complete\" or \"r\", got {mode!r}")
    m, n = a.shape[-2:]
    k = m if mode == "complete" or m < n else n
    if mode != "r":
        return decompose("qr", "spectral.qr", a, ((m, k), (k, n)), (0, 1), (), (mode,), qr_result)
    if _recorded(a):
        return _made(qr_result, (_nothing(a), decompose("qr", "spectral.qr", a, ((m, k), (k, n)), (0, 1), (), (mode,), qr_result)[1]))
    r = room(a, k, n)
    call_routine("spectral.qr", (a, None, r))
    return _made(qr_result, (_nothing(a), r))


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> svd_result:
    """(U, S, Vh) with A = U diag(S) Vh, for A (..., m, n): S descending; U (m, m) and Vh (n, n), or of the smaller size on their inner
    side unless full_matrices. `driver` is accepted and ignored.

    Gradients are finite where singular values repeat, and right for functions that do not depend on the choice of vectors.
    """
    full_matrices = bool(full_matrices)           # first: what runs in here might change A
    a = matrix_input(A, "linalg.svd")
    m, n = a.shape[-2:]
    k = m if m < n else n
    rows, columns = (m, n) if full_matrices else (k, k)
    return decompose("svd", "spectral.svd", a, ((m, rows), (k,), (columns, n)), (1, 0, 2), (), (full_matrices,), svd_result)


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of A (..., m, n), descending. `driver` is accepted and ignored."""
    a = matrix_input(A, "linalg.svdvals")
    if _recorded(a):
        return svd(a, False)[1]
    s = room(a, min(a.shape[-2:]))
    call_routine("spectral.svd", (a, s, None, None))
    return s


def _is_upper(UPLO, name):
    if type(UPLO) is not str or UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{name}: expected UPLO to be 'L' or 'U', got {UPLO!r}")
    return UPLO in "Uu"


def eigh(A: Tensor, UPLO: str = "L") -> eigh_result:
    """(eigenvalues, eigenvectors) of symmetric matrices A (..., n, n): ascending, and in columns. Only the triangle UPLO is read; the
    gradient is symmetric."""
    a, upper = matrix_input(A, "linalg.eigh", True), _is_upper(UPLO, "linalg.eigh")
    n = a.shape[-1]
    return decompose("eigh", "spectral.eigh", a, ((n,), (n, n)), (0, 1), (int(upper),), (upper,), eigh_result)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices A (..., n, n), ascending."""
    a, upper = matrix_input(A, "linalg.eigvalsh", True), _is_upper(UPLO, "linalg.eigvalsh")
    if _recorded(a):
        return eigh(a, UPLO)[0]
    values = room(a, a.shape[-1])
    call_routine("spectral.eigh", (a, values, None), (int(upper),))
    return values


def least_squares(a, b, rcond, driver):
    """(solution, rank, singular values or None) of tensors of one batch; driver: 0 gels, 1 gelsy, 2 gelsd."""
    m, n = a.shape[-2:]
    x, rank, s = room(a, n, b.shape[-1]), room(a, dtype=INT64), room(a, min(m, n)) if driver == 2 else None
    call_routine("spectral.lstsq", (a, b, x, rank, s), (driver,), (rcond,))
    return record_row("lstsq", (a, b), x, (rcond, driver)), rank, s


def matrix_exp(A: Tensor) -> Tensor:
    """sum over k of A^k / k!, for square A (..., n, n): by Pade approximants, scaling and squaring."""
    a = matrix_input(A, "linalg.matrix_exp", True)
    out = room(a, *a.shape[-2:])
    call_routine("spectral.exponential", (a, out))
    return record_row("matrix_exp", (a,), out)


def cofactor(a):
    """For rules: det(A) inv(A).T, by singular values where A is (nearly) singular."""
    out = room(a, *a.shape[-2:])
    call_routine("spectral.cofactors", (a, out))
    return record_row("cofactor", (a,), out)


FUNCTIONS.update({"cofactor": cofactor, "matrix_exp": matrix_exp, "permutation_matrix": permutation_matrix, "svd": lambda x: svd(x, False)})
