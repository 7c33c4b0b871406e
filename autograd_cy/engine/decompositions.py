"""LU factors and least squares through LAPACK, and cofactors.

Relies on linear_algebra and on the routines of kernels/lapack and kernels/spectral. matrix_functions.py builds on it; autograd_cy.linalg is
its public path.
"""

from collections import namedtuple

from .gradients import FUNCTIONS
from .linear_algebra import matrix_input, record_row, room
from .routines import call_routine
from .tensor import Tensor

INT64, INT32 = 2, 3
lu_factor_result = namedtuple("lu_factor", "LU pivots")
lu_factor_ex_result = namedtuple("lu_factor_ex", "LU pivots info")
_made = tuple.__new__         # past the check of a named tuple's arguments


def broadcast_sizes(x, y):
    """The common shape of two; None where there is none."""
    n = max(len(x), len(y))
    out = []
    for p, q in zip((1,) * (n - len(x)) + tuple(x), (1,) * (n - len(y)) + tuple(y), strict=True):
        if p != q and p != 1 and q != 1:
            return None
        out.append(q if p == 1 else p)
    return tuple(out)


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


def least_squares(a, b, rcond, driver):
    """(solution, rank, singular values or None) of tensors of one batch; driver: 0 gels, 1 gelsy, 2 gelsd."""
    m, n = a.shape[-2:]
    x, rank, s = room(a, n, b.shape[-1]), room(a, dtype=INT64), room(a, min(m, n)) if driver == 2 else None
    call_routine("spectral.lstsq", (a, b, x, rank, s), (driver,), (rcond,))
    return record_row("lstsq", (a, b), x, (rcond, driver)), rank, s


def cofactor(a):
    """For rules: det(A) inv(A).T, by singular values where A is (nearly) singular."""
    out = room(a, *a.shape[-2:])
    call_routine("spectral.cofactors", (a, out))
    return record_row("cofactor", (a,), out)


FUNCTIONS.update({"cofactor": cofactor, "permutation_matrix": permutation_matrix})
