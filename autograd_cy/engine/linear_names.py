"""PyTorch's names for linear algebra outside torch.linalg: torch.det, torch.cholesky, Tensor.qr and so on.

Relies on linear_algebra and matrix_functions, which it imports at the first call, so that the package's import need
not. methods.py makes methods of them, the package's front functions.
"""

from collections import namedtuple
from importlib import import_module

from .arguments import need_tensor
from .choose import where
from .tensor import Tensor


class _Later:
    """The functions of a module that is imported when first asked for one."""

    def __init__(self, *modules):
        self.__dict__["modules"] = modules

    def __getattr__(self, name):
        for module in self.modules:
            found = getattr(import_module(module), name, None)
            if found is not None:
                self.__dict__[name] = found
                return found
        raise AttributeError(name)


_l = _Later("autograd_cy.engine.linear_algebra", "autograd_cy.engine.matrix_functions")
_qr, _svd, _triangular = namedtuple("qr", "Q R"), namedtuple("svd", "U S V"), namedtuple("triangular_solve", "solution cloned_coefficient")


def det(input: Tensor) -> Tensor:
    """The determinants of square matrices; see linalg.det."""
    return _l.det(input)


def slogdet(input: Tensor):
    """(sign, logabsdet) of the determinants; see linalg.slogdet."""
    return _l.slogdet(input)


def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants: -inf for 0, NaN for negative ones."""
    sign, logarithm = _l.slogdet(input)
    return where(sign < 0, float("nan"), logarithm)


def inverse(input: Tensor) -> Tensor:
    """The inverses of square matrices; see linalg.inv."""
    return _l.inv(input)


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive-definite matrices; see linalg.cholesky."""
    return _l.cholesky(input, upper=upper)


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, where input2 is the Cholesky factor of A: A = L L^T (upper: U^T U)."""
    return _l.cholesky_solve(input, input2, upper)


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, where input is its Cholesky factor."""
    return _l.cholesky_inverse(input, upper)


def qr(input: Tensor, some: bool = True):
    """(Q, R); see linalg.qr, mode "reduced" if `some`, else "complete"."""
    return _qr(*_l.qr(input, "reduced" if some else "complete"))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True):
    """(U, S, V) with input = U diag(S) V^T; see linalg.svd. compute_uv=False: zeros for U and V."""
    if not compute_uv:
        s = _l.svdvals(input)
        m, n = input.shape[-2:]
        return _svd(input.new_zeros((*input.shape[:-2], m, m)) if hasattr(input, "new_zeros") else None, s,
                    input.new_zeros((*input.shape[:-2], n, n)) if hasattr(input, "new_zeros") else None)
    u, s, vh = _l.svd(input, not some)
    return _svd(u, s, vh.mT)


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None):
    """(U, S, V) of the q largest singular values of A (less M), with A about U diag(S) V^T; exact: niter is accepted and ignored."""
    need_tensor(A, "svd_lowrank")
    a = A if M is None else A - M
    if not 0 <= q <= min(a.shape[-2:]):
        raise ValueError(f"svd_lowrank: q = {q} must be non-negative and not greater than the smaller of {a.shape[-2:]}")
    u, s, vh = _l.svd(a, False)
    return _svd(u[..., :q], s[..., :q], vh.mT[..., :q])


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2):
    """svd_lowrank of A, whose columns are first centred: V has the principal directions. q: 6 by default, or what A has."""
    need_tensor(A, "pca_lowrank")
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse, singular values up to rcond times the largest counting as 0; see linalg.pinv."""
    return _l.pinv(input, rcond)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Matrices to the power of an integer; see linalg.matrix_power."""
    return _l.matrix_power(input, n)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponentials of square matrices; see linalg.matrix_exp."""
    return _l.matrix_exp(input)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False):
    """(solution, A): X with A X = b (A^T X = b if transpose), for a triangle of A; see linalg.solve_triangular."""
    a = A.mT if transpose else A
    return _triangular(_l.solve_triangular(a, b, upper=upper != transpose, unitriangular=unitriangular), A.clone())


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, from the LU and pivots that linalg.lu_factor(A) gave."""
    return _l.lu_solve(LU_data, LU_pivots, b)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True):
    """(P, L, U) from what linalg.lu_factor gave."""
    return _l.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "lu_solve", "lu_unpack", "matrix_exp",
    "matrix_power", "pca_lowrank", "pinverse", "qr", "slogdet", "svd", "svd_lowrank", "triangular_solve",
]
