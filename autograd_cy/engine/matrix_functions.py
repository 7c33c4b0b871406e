"""Functions of torch.linalg that are expressions of others: norms, pinv, lstsq, lu, matrix_power, cond, tensorsolve and so on.

Relies on linear_algebra, matrix_products, reduce. autograd_cy.linalg is their public path; they are imported when first asked for.
"""

from collections import namedtuple

from ..array.errors import ArgumentError, DTypeError, ShapeError
from . import elementwise, reduce
from .arguments import need_tensor
from .creation import eye, full, zeros, zeros_code
from .gradients import FUNCTIONS
from .linear_algebra import (
    band, cholesky_solve, eigh, eigvalsh, informed, inv, inverse_or_inf, least_squares, lstsq_plainly, lu_factor, matrix_input,
    permutation_matrix, pseudoinverse, solve, svd, svdvals,
)
from .modes import no_grad
from .products import matmul
from .rows import record_row
from .choose import where
from .shape import expand, movedim, permute, reshape, squeeze, swap_axes, unsqueeze
from .tensor import Tensor

INF = float("inf")
lu_result = namedtuple("lu", "P L U")
inv_ex_result = namedtuple("inv_ex", "inverse info")
solve_ex_result = namedtuple("solve_ex", "result info")
cholesky_ex_result = namedtuple("cholesky_ex", "L info")
lu_factor_ex_result = namedtuple("lu_factor_ex", "LU pivots info")
lstsq_result = namedtuple("lstsq", "solution residuals rank singular_values")
_made = tuple.__new__         # past the check of a named tuple's arguments
_DRIVERS = {"gels": 0, None: 1, "gelsy": 1, "gelsd": 2, "gelss": 2}


# ---- norms

def _floats(x, name, dtype):
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    if dtype is not None:
        x = x.to(dtype)
    if not x.is_floating_point():
        raise DTypeError(f"{name}: expected a floating-point tensor, got {x.dtype.name}; convert it first")
    return x


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """(sum |x| ** ord) ** (1 / ord) over `dim`, or over all elements; ord inf: the largest, -inf: the smallest |x|, 0: the number of
    non-zeros. The gradient of a norm of 0 is 0.
    """
    if dtype is None and isinstance(x, Tensor) and x.is_floating_point() and (
            type(ord) is int and ord >= 0 or type(ord) is float and x.numel()):
        return reduce.norm(x, ord, dim, keepdim)
    x = _floats(x, "linalg.vector_norm", dtype)
    if type(ord) is not int and not isinstance(ord, float):
        raise TypeError(f"linalg.vector_norm: expected ord to be a number, got {ord!r}")
    if (ord < 0 or ord == INF) and not x.numel():
        for d in range(x.ndim) if dim is None or dim in ((), []) else (dim,) if isinstance(dim, int) else dim:
            if not x.shape[d]:
                raise ShapeError(f"linalg.vector_norm: the norm of order {ord} of nothing is not defined, and dimension {d} of shape "
                                 f"{x.shape} is empty")
    return reduce.norm(x, ord, dim, keepdim)


def _two_dims(x, dim, name):
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ShapeError(f"{name}: dim must be a tuple of two dimensions, got {dim!r}")
    if x.ndim < 2:
        raise ShapeError(f"{name}: the input tensor A must have at least 2 dimensions, got shape {x.shape}")
    for d in dim:
        if not -x.ndim <= d < x.ndim:
            raise IndexError(f"{name}: dim {d} is out of range for a tensor of shape {x.shape}")
    a, b = dim[0] % x.ndim, dim[1] % x.ndim
    if a == b:
        raise ShapeError(f"{name}: dims must be different, got {dim}")
    return a, b


def _largest(x, dim, keepdim):
    """The largest of non-negative numbers; 0 of none."""
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """A norm of matrices: "fro" (root of the sum of squares), "nuc" (sum of singular values), 2, -2 (largest, smallest singular value),
    1, -1 (largest, smallest sum of a column of |A|), inf, -inf (of a row)."""
    if dtype is None and dim == (-2, -1) and isinstance(A, Tensor) and A.ndim == 2 and A.is_floating_point():
        if ord == "fro":
            return reduce.norm(A, 2, None, keepdim)
        if (ord == 1 or ord == INF) and not keepdim and A.numel():
            return reduce.amax(reduce.norm(A, 1, 0 if ord == 1 else 1), 0)
    name = "linalg.matrix_norm"
    if (ord == "nuc" or ord == 2) and dtype is None and dim == (-2, -1) and not keepdim:
        s = svdvals(A)
        return s.sum(-1) if ord == "nuc" else _largest(s, -1, False)
    A = _floats(A, name, dtype)
    rows, cols = _two_dims(A, dim, name)
    if ord == "fro":
        return reduce.norm(A, 2, (rows, cols), keepdim)
    if ord in (1, -1, INF, -INF) and not isinstance(ord, str):
        summed, kept = (rows, cols) if ord in (1, -1) else (cols, rows)
        sums = elementwise.abs(A).sum(summed, keepdim)
        if kept > summed and not keepdim:
            kept -= 1
        return _largest(sums, kept, keepdim) if ord > 0 else sums.amin(kept, keepdim)
    if ord in ("nuc", 2, -2):
        s = svdvals(movedim(A, (rows, cols), (-2, -1)))
        values = s.sum(-1) if ord == "nuc" else _largest(s, -1, False) if ord == 2 else s.amin(-1)
        if not keepdim:
            return values
        return reshape(values, [1 if i in (rows, cols) else n for i, n in enumerate(A.shape)])
    raise ArgumentError(f"{name}: order {ord!r} is not supported: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """matrix_norm where ord is a string or dim names two dimensions (or A has two and ord is given), else vector_norm; without ord the
    2-norm of all elements."""
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.norm: expected a Tensor, got {type(A).__name__}")
    if ord is None and dtype is None and A.is_floating_point():
        return reduce.norm(A, 2, dim, keepdim)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        raise ShapeError(f"linalg.norm: if dim is not specified but ord is, the input must be 1D or 2D, got shape {A.shape}")
    pair = (isinstance(dim, (tuple, list)) and len(dim) == 2) or dim is None and A.ndim == 2
    if isinstance(ord, str) or pair:
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A, p=None):
    """The condition number: norm(A, p) * norm(inv(A), p); of singular values where p is None, 2 or -2. A singular matrix: inf."""
    A = matrix_input(A, "linalg.cond", p not in (None, 2, -2))
    if not A.numel():
        return zeros(A.shape[:-2], dtype=A.dtype)
    if p in (None, 2, -2):
        s = svdvals(A)
        first, last = s[..., 0], s[..., -1]
        return last / first if p == -2 else first / last
    return matrix_norm(A, p) * matrix_norm(inverse_or_inf(A), p)


# ---- by singular values

def broadcast_sizes(x, y):
    """The common shape of two; None where there is none."""
    n = max(len(x), len(y))
    out = []
    for p, q in zip((1,) * (n - len(x)) + tuple(x), (1,) * (n - len(y)) + tuple(y), strict=True):
        if p != q and p != 1 and q != 1:
            return None
        out.append(q if p == 1 else p)
    return tuple(out)


def _cutoff(s, shape, atol, rtol):
    """The value up to which singular values count as 0."""
    if rtol is None:
        unset = _precision(s, shape)
        rtol = unset if atol is None else where(atol > 0, 0.0, unset) if isinstance(atol, Tensor) else 0.0 if atol > 0 else unset
    largest = s.amax(-1, keepdim=True)
    cut = largest * (unsqueeze(rtol, -1) if isinstance(rtol, Tensor) else rtol)
    if atol is None:
        return cut
    return elementwise.maximum(cut, unsqueeze(atol, -1).to(s.dtype) if isinstance(atol, Tensor) else full((), float(atol), dtype=s.dtype))


def _precision(a, shape):
    """The larger of the last two sizes times the relative precision of the dtype."""
    return max(shape[-2:]) * (1.1920929e-07 if a.dtype.name == "float32" else 2.220446049250313e-16)


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The pseudoinverse (..., n, m) of A (..., m, n): singular values up to max(atol, rtol * the largest) count as 0; rtol is max(m, n)
    times the precision unless given. hermitian: A is symmetric, and eigenvalues serve. Differentiable where the rank is constant.
    """
    A = matrix_input(A, "linalg.pinv", hermitian)
    rtol = rcond if rtol is None else rtol
    if not hermitian and not isinstance(atol, Tensor) and not isinstance(rtol, Tensor):
        return pseudoinverse(A, atol, rtol, False)
    with no_grad():
        a = A.detach()
        if not A.numel():
            out = zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype)
        else:
            if hermitian:
                s, u = eigh(a)
                vh = swap_axes(u)
            else:
                u, s, vh = svd(a, False)
            size = elementwise.abs(s) if hermitian else s
            usable = size > _cutoff(size, A.shape, atol, rtol)
            inverse = where(usable, 1 / where(usable, s, 1), 0)
            out = matmul(swap_axes(vh) * unsqueeze(inverse, -2), swap_axes(u))
    return record_row("pinv", out, (A,), (atol, rtol, hermitian))


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """The number (int64) of singular values of A (..., m, n) above max(atol, rtol * the largest); rtol as in pinv. hermitian: of
    eigenvalues by their absolute value."""
    A = matrix_input(A, "linalg.matrix_rank", hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0 if rtol is None else rtol
    if not hermitian and not isinstance(atol, Tensor) and not isinstance(rtol, Tensor):
        return pseudoinverse(A, atol, rtol, True)
    if not A.numel():
        return zeros(A.shape[:-2], dtype=zeros_code((), 2).dtype)
    A = A.detach()
    s = elementwise.abs(eigvalsh(A)) if hermitian else svdvals(A)
    return (s > _cutoff(s, A.shape, atol, rtol)).sum(-1)


def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular_values) of the least squares problem A X = B, for A (..., m, n) and B (..., m, k), or a vector
    for each matrix. driver: "gelsy" (default; by QR with pivoting), "gels" (A has full rank), "gelsd", "gelss" (by singular values).

    residuals: the squared ones, where m > n and A is known to have full rank; singular_values: of gelsd and gelss. The solution is
    differentiable where the rank is constant.
    """
    name = "linalg.lstsq"
    if driver is None and rcond is None:
        made = lstsq_plainly(A, B)
        if made is not None:
            none = zeros_code((0,), A.dtype.code)
            return _made(lstsq_result, (made[0], none, made[1], none))
    A = matrix_input(A, name)
    if not isinstance(B, Tensor):
        raise TypeError(f"{name}: expected B to be a Tensor, got {type(B).__name__}")
    if A.dtype != B.dtype:
        raise RuntimeError(f"{name}: expected A and B to have the same dtype, but found {A.dtype.name} and {B.dtype.name}")
    if driver not in _DRIVERS:
        raise ArgumentError(f"{name}: driver must be one of 'gels', 'gelsy', 'gelsd', 'gelss', got {driver!r}")
    ours, theirs = A.shape, B.shape
    vector = theirs == ours[:-1]
    b = unsqueeze(B, -1) if vector else B
    m, n = ours[-2:]
    if not vector and theirs[:-1] != ours[:-1]:
        batch = broadcast_sizes(ours[:-2], theirs[:-2])
        if len(theirs) < 2 or theirs[-2] != m or batch is None:
            raise ShapeError(f"{name}: A of shape {A.shape} and B of shape {B.shape} do not fit")
        A, b = expand(A, (*batch, m, n)), expand(b, (*batch, *theirs[-2:]))
    x, rank, s = least_squares(A, b, rcond, _DRIVERS[driver])
    residuals = none = zeros_code((0,), A.dtype.code)
    if m > n and driver in ("gels", "gelsd", "gelss") and (driver == "gels" or not rank.numel() or rank.amin().item() == n):
        residuals = elementwise.square(matmul(A, x) - b).sum(-2)
    return _made(lstsq_result, (squeeze(x, -1) if vector else x, residuals, zeros_code((0,), 2) if driver == "gels" else rank,
                                none if s is None else s))


# ---- what went wrong as a result

def _info(batch):
    return zeros_code(batch, 3)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> inv_ex_result:
    """(inverse, info) of square matrices A; info (int32) is 0, or k where the k-th diagonal element of U in A = P L U is 0. A singular
    matrix has an inverse of infinities here, or with check_errors raises as `inv` does."""
    info = _info(matrix_input(A, "linalg.inv_ex", True).shape[:-2])
    return inv_ex_result(informed("linalg.inv_ex", A, False, None if check_errors else info), info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> solve_ex_result:
    """(result, info): as `solve`, with info (int32) 0, or k where the k-th diagonal element of U in A = P L U is 0."""
    batch = matrix_input(A, "linalg.solve_ex", True).shape[:-2]
    if isinstance(B, Tensor) and not (B.ndim == 1 or B.shape == A.shape[:-1]):
        batch = broadcast_sizes(batch, B.shape[:-2]) or batch
    info = _info(batch)
    return solve_ex_result(informed("linalg.solve_ex", A, left, None if check_errors else info, B), info)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> cholesky_ex_result:
    """(L, info): as `cholesky`, with info (int32) 0, or the order of the first leading minor that is not positive-definite."""
    info = _info(matrix_input(A, "linalg.cholesky_ex", True).shape[:-2])
    return cholesky_ex_result(informed("linalg.cholesky_ex", A, upper, None if check_errors else info), info)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> lu_factor_ex_result:
    """(LU, pivots, info): as `lu_factor`, with info (int32) 0, or k where the k-th diagonal element of U is 0."""
    info = _info(matrix_input(A, "linalg.lu_factor_ex").shape[:-2])
    return lu_factor_ex_result(*informed("linalg.lu_factor_ex", A, pivot, info), info)


# ---- factors and systems

def lu(A, *, pivot=True):
    """(P, L, U) with A = P L U, for A (..., m, n): a permutation, a lower triangle with ones on its diagonal, an upper triangle."""
    factors, pivots = lu_factor(A, pivot=pivot)
    m, n = factors.shape[-2:]
    return _made(lu_result, (permutation_matrix(pivots, factors), *_triangles(factors, m, n)))


def _triangles(factors, m, n):
    lower, upper = band(factors.narrow(-1, 0, m) if m < n else factors, -INF, -1), factors.narrow(-2, 0, n) if n < m else factors
    return lower + eye(m, m if m < n else n, dtype=factors.dtype), band(upper, 0, INF)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(P, L, U) from the factors in one matrix (..., m, n) and the pivots of lu_factor; empty what is not to be unpacked."""
    LU_data = matrix_input(LU_data, "lu_unpack")
    nothing = zeros_code((0,), LU_data.dtype.code)
    p = permutation_matrix(LU_pivots, LU_data) if unpack_pivots else nothing
    return (p, *_triangles(LU_data, *LU_data.shape[-2:])) if unpack_data else (p, nothing, nothing)


def cholesky_inverse(L, upper=False):
    """The inverse of A, where L (..., n, n) is its Cholesky factor."""
    L = matrix_input(L, "cholesky_inverse", True)
    return cholesky_solve(eye(L.shape[-1], dtype=L.dtype), L, upper)


def matrix_power(A, n):
    """A to the power of an integer n, by squaring; of the inverse where n is negative."""
    if type(n) is not int and (not isinstance(n, int) or isinstance(n, bool)):
        raise TypeError(f"linalg.matrix_power: expected an integer n, got {type(n).__name__}")
    A = matrix_input(A, "linalg.matrix_power", True)
    if n == 0:
        return expand(eye(A.shape[-1], dtype=A.dtype), A.shape).clone()
    if n < 0:
        A, n = inv(A), -n
    elif n == 1:
        return A.clone()
    while not n & 1:
        A, n = matmul(A, A), n >> 1
    out = A
    while n > 1:
        A, n = matmul(A, A), n >> 1
        if n & 1:
            out = matmul(out, A)
    return out


def tensorinv(A, ind=2):
    """The inverse with respect to tensordot(A, B, ind): A's first `ind` dimensions and the rest have the same number of elements."""
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.tensorinv: expected a Tensor, got {type(A).__name__}")
    if not isinstance(ind, int) or ind <= 0:
        raise ShapeError(f"linalg.tensorinv: expected a strictly positive integer for ind, got {ind}")
    rows, cols = A.shape[:ind], A.shape[ind:]
    m, n = _product(rows), _product(cols)
    if m != n:
        raise ShapeError(f"linalg.tensorinv: expected shape {A.shape} to have as many elements in its first {ind} dimensions as in "
                         f"the others, got {m} and {n}")
    return reshape(inv(reshape(A, (m, n))), (*cols, *rows))


def tensorsolve(A, B, dims=None):
    """X with tensordot(A, X, X.ndim) = B; dims of A are first moved to its end."""
    for x in (A, B):
        if not isinstance(x, Tensor):
            raise TypeError(f"linalg.tensorsolve: expected a Tensor, got {type(x).__name__}")
    if dims is not None:
        dims = [d % A.ndim for d in dims]
        A = permute(A, (*(d for d in range(A.ndim) if d not in dims), *dims))
    shape = A.shape[B.ndim:]
    n = _product(shape)
    if n != B.numel() or A.numel() != n * n:
        raise ShapeError(f"linalg.tensorsolve: A of shape {A.shape} and B of shape {B.shape} do not make a square system")
    return reshape(solve(reshape(A, (n, n)), reshape(B, (n,))), shape)


def _product(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def eig(A):
    """Not available: the eigenvalues of a general matrix are complex numbers, for which there is no dtype. See eigh."""
    raise NotImplementedError("linalg.eig: the eigenvalues of a general matrix are complex numbers, and there are no complex dtypes here; "
                              "for symmetric matrices use linalg.eigh, for singular values linalg.svd")


def eigvals(A):
    """Not available: the eigenvalues of a general matrix are complex numbers, for which there is no dtype. See eigvalsh."""
    raise NotImplementedError("linalg.eigvals: the eigenvalues of a general matrix are complex numbers, and there are no complex dtypes "
                              "here; for symmetric matrices use linalg.eigvalsh, for singular values linalg.svdvals")


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, in the last dimension."""
    return need_tensor(A, "linalg.diagonal").diagonal(offset, dim1, dim2)


FUNCTIONS["pinv"] = pinv
