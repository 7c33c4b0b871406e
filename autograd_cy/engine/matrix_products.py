"""Products of vectors and matrices that are short expressions of matmul and rows: outer, addmm, tensordot, kron, cdist and so on.

Relies on products, shape, reduce, the operators of Tensor. methods.py makes methods of them, the package's front and autograd_cy.linalg
functions.
"""

from functools import lru_cache
from operator import index as as_int

import numpy as np

from ..array.errors import ShapeError
from .arrange import broadcast_shapes
from .arguments import need_tensor
from .choose import where
from .creation import tensor
from .distances import cdist_row, cov_row, pdist_row
from .gather import gather
from .gradients import FUNCTIONS
from .joins import broadcast_tensors, sequence_of
from .named_products import (
    addmm, bmm, cross_plainly, cross_rows, dot, einsum, kron, mm, mv, outer, powers, product_of_three, scaled_sum, trace,
)
from .products import matmul
from .shape import expand, movedim, permute, reshape, squeeze, unsqueeze
from .tensor import Tensor


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _need(name, *tensors):
    for x in tensors:
        need_tensor(x, name)


def _dims(name, *pairs):
    """Each tensor has so many dimensions."""
    _need(name, *(x for x, _ in pairs))
    for x, n in pairs:
        if x.ndim != n:
            raise ShapeError(f"{name}: expected {', '.join(f'{n}-D' for _, n in pairs)} tensors, but got shapes "
                             f"{', '.join(str(x.shape) for x, _ in pairs)}")


# ---- vectors

def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of input * other, for two vectors of one size. ValueError where they are not."""
    return dot(input, other)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dimension of both; a product with a number if either has no dimension."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        _need("inner", input, other)
    m, n = input.ndim, other.ndim
    if not m or not n:
        return input * other
    try:
        if n == 2:
            return matmul(input, other.mT)
        if n == 1:
            return dot(input, other) if m == 1 else matmul(input, other)
        if input.shape[-1] == other.shape[-1]:
            return tensordot(input, other, ((-1,), (-1,)))
    except ShapeError:
        pass
    raise ShapeError(f"inner: the last dimensions of shapes {input.shape} and {other.shape} differ")


ger = outer


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of x * y along `dim`; other dimensions broadcast."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        _need("linalg.vecdot", x, y)
    return (x * y).sum(dim)


# ---- beta * input + alpha * product

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec), for a matrix and a vector; input broadcasts."""
    return scaled_sum("addmv", input, mv(mat, vec), beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2), for vectors; input broadcasts."""
    return scaled_sum("addr", input, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2), for batches of matrices; input broadcasts."""
    return scaled_sum("baddbmm", input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * the sum over the batch of bmm(batch1, batch2); input broadcasts."""
    try:
        if batch1.numel() < 4096 and batch1.is_floating_point() and batch1.dtype is batch2.dtype:
            return scaled_sum("addbmm", input, bmm(batch1, batch2).sum(0), beta, alpha)
    except (ShapeError, AttributeError):
        pass                                         # what is wrong is said below
    _dims("addbmm", (batch1, 3), (batch2, 3))
    n, rows, inner_ = batch1.shape
    if batch2.shape[:2] != (n, inner_):
        raise ShapeError(f"addbmm: batches of shapes {tuple(batch1.shape)} and {tuple(batch2.shape)} do not fit")
    long = reshape(permute(batch1, (1, 0, 2)), (rows, n * inner_))
    return scaled_sum("addbmm", input, mm(long, reshape(batch2, (n * inner_, batch2.shape[2]))), beta, alpha)


# ---- chains, axes

@lru_cache
def _cheapest(sizes):
    """Which products to make, where the chain costs least: pairs of numbers, of the matrices given and then of the products so far. Matrix
    i has sizes[i] rows and sizes[i + 1] columns."""
    n = len(sizes) - 1
    cost, split, order = {(i, i): 0 for i in range(n)}, {}, []
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def product(i, j):
        if i == j:
            return i
        order.append((product(i, split[i, j]), product(split[i, j] + 1, j)))
        return n + len(order) - 1

    product(0, n - 1)
    return order


def multi_dot(tensors) -> Tensor:
    """The product of two or more matrices, in the order that costs least; the first and the last may be vectors.

    Raises ValueError for fewer than two, and where shapes do not fit.
    """
    given = sequence_of(tensors, "linalg.multi_dot")
    made = product_of_three(*given) if len(given) == 3 else None
    if made is not None:
        return made
    if len(given) < 2:
        raise ShapeError(f"linalg.multi_dot: expected at least 2 tensors but got {len(given)}")
    _need("linalg.multi_dot", *given)
    first, last = given[0].ndim == 1, given[-1].ndim == 1
    if not first and not last:
        return _chain(given)
    made = list(given)
    if first:
        made[0] = unsqueeze(made[0], 0)
    if last:
        made[-1] = unsqueeze(made[-1], 1)
    out = _chain(made)
    if last:
        out = squeeze(out, 1)
    return squeeze(out, 0) if first else out


def _chain(matrices):
    made, sizes = [*matrices], []
    for x in matrices:
        shape = x.shape
        if len(shape) != 2 or sizes and sizes[-1] != shape[0]:
            raise ShapeError(f"linalg.multi_dot: expected matrices (a vector at either end) that fit, got shapes "
                             f"{', '.join(str(x.shape) for x in matrices)}")
        sizes[-1:] = shape
    for i, j in _cheapest(tuple(sizes)):
        made.append(matmul(made[i], made[j]))
    return made[-1]


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, in the order that costs least."""
    made = product_of_three(*matrices) if len(matrices) == 3 else None
    if made is not None:
        return made
    if len(matrices) == 1 and not isinstance(matrices[0], Tensor):
        matrices = sequence_of(matrices[0], "chain_matmul")
    for x in matrices:
        if not isinstance(x, Tensor) or x.ndim != 2:
            _dims("chain_matmul", *[(x, 2) for x in matrices])
    return matrices[0] if len(matrices) == 1 else _chain(matrices)


def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    """The sums of products over pairs of dimensions: over the last `dims` of a and the first of b, or over dims[0] of a and dims[1] of b.

    Raises ValueError where their sizes differ (1 broadcasts).
    """
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        _need("tensordot", a, b)
    if not isinstance(dims, int):
        ours, theirs = dims
        dims = _ints(ours), _ints(theirs)
    m, n = a.ndim, b.ndim
    if a.dtype is b.dtype and a.is_floating_point():
        if n == 2 <= m and (dims == 1 or dims == ((m - 1,), (0,))) and a.shape[-1] == b.shape[0]:
            return matmul(a, b)
        if dims == m == n and a.shape == b.shape and a.numel() < 4096:
            return (a * b).sum()
    try:
        return einsum(_tensordot_equation(m, n, dims), a, b)
    except ShapeError:
        raise ShapeError(f"tensordot: shapes {a.shape} and {b.shape} do not fit for dims={dims}") from None


def _ints(dims):
    return (dims,) if isinstance(dims, int) else tuple(dims.tolist() if isinstance(dims, Tensor) else dims)


@lru_cache
def _tensordot_equation(m, n, dims):
    """The product as an equation."""
    if isinstance(dims, int):
        if dims < 0 or dims > min(m, n):
            raise ShapeError(f"tensordot: dims must be from 0 to the number of dimensions, {m} and {n}, got {dims}")
        dims = tuple(range(m - dims, m)), tuple(range(dims))
    ours, theirs = dims
    if len(ours) != len(theirs):
        raise ShapeError(f"tensordot: both dimension lists should have the same length, got {ours} and {theirs}")
    for d, k in (*((d, m) for d in ours), *((d, n) for d in theirs)):
        if not -k <= d < k:
            raise IndexError(f"tensordot: dim {d} is out of range for a tensor of {k} dimensions")
    ours, theirs = [d % m for d in ours], [d % n for d in theirs]
    if len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise ShapeError(f"tensordot: a dimension appears twice in {ours} or {theirs}")
    left, right = list(LETTERS[:m]), list(LETTERS[m:m + n])
    for i, j in zip(ours, theirs, strict=True):
        right[j] = left[i]
    free = [c for i, c in enumerate(left) if i not in ours] + [c for j, c in enumerate(right) if j not in theirs]
    return f"{''.join(left)},{''.join(right)}->{''.join(free)}"


def _axis(dim, x, name):
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"{name}: dim {dim} is out of range for a tensor of shape {x.shape}")
    return dim % x.ndim


# ---- distances, statistics

def vander(x: Tensor, N=None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements, in columns: from N - 1 to 0, or increasing. N: as many as there are elements."""
    if not isinstance(x, Tensor) or x.ndim != 1:
        _dims("vander", (x, 1))
    return powers(x, x.numel() if N is None else _not_negative(N), increasing)


def _not_negative(n):
    if as_int(n) < 0:
        raise ShapeError(f"vander: N must be non-negative, got {n}")
    return as_int(n)


def linalg_vander(x: Tensor, *, N=None) -> Tensor:
    """The powers 0 to N - 1 of the elements of x (..., n), in a new last dimension. N: n."""
    _need("linalg.vander", x)
    if not x.ndim:
        raise ShapeError("linalg.vander: expected at least 1 dimension, got shape ()")
    n = x.shape[-1] if N is None else as_int(N)
    if N is not None and n < 2:
        raise ShapeError(f"linalg.vander: N must be greater than 1, got {n}")
    return powers(x, n, True)


# ---- distances, statistics

def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode="use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norms of all differences between rows of x1 (..., P, M) and of x2 (..., R, M): (..., P, R). The gradient of a distance of 0
    is 0. Euclidean distances of more than 25 rows are made from a matrix product, unless compute_mode says "donot_use...".
    """
    made = cdist_row(x1, x2, p, False) if compute_mode == "use_mm_for_euclid_dist_if_necessary" else None
    if made is not None:
        return made
    _need("cdist", x1, x2)
    p, ours, theirs = float(p), x1.shape, x2.shape
    if len(ours) < 2 or len(theirs) < 2 or ours[-1] != theirs[-1]:
        raise ShapeError(f"cdist: expected rows of one length, got shapes {ours} and {theirs}")
    if not p >= 0:
        raise ShapeError(f"cdist: p must be non-negative, got {p}")
    if not x1.is_floating_point() or not x2.is_floating_point():
        raise TypeError(f"cdist: expected floating-point tensors, got {x1.dtype.name} and {x2.dtype.name}")
    if p == 2 and (ours[-2] > 25 or theirs[-2] > 25) and compute_mode in (None, 0, "use_mm_for_euclid_dist_if_necessary") \
            or compute_mode in (1, "use_mm_for_euclid_dist"):
        return _euclidean(x1, x2)
    if ours[:-2] != theirs[:-2]:
        batch = broadcast_shapes(ours[:-2], theirs[:-2])
        x1, x2 = expand(x1, (*batch, *ours[-2:])), expand(x2, (*batch, *theirs[-2:]))
    if x1.dtype is not x2.dtype:
        x1, x2 = x1.double(), x2.double()
    return cdist_row(x1, x2, p, True)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences between all pairs of rows of a matrix, (0, 1), (0, 2) ... The gradient of a distance of 0 is 0."""
    made = pdist_row(input, p)
    if made is not None:
        return made
    _dims("pdist", (input, 2))
    if not p >= 0:
        raise ShapeError(f"pdist: p must be non-negative, got {p}")
    raise TypeError(f"pdist: expected a floating-point tensor, got {input.dtype.name}")


def _euclidean(x1, x2):
    """cdist by a matrix product."""
    middle = x1.detach().mean(-2, True) if x1.shape[-2] else 0
    a, b = x1 - middle, x2 - middle                       # small numbers cancel less
    square = (a * a).sum(-1, True) + unsqueeze((b * b).sum(-1), -2) - 2 * matmul(a, b.mT)
    apart = square > 0
    return where(apart, where(apart, square, 1).sqrt(), 0)


def pair_matrix(v, n):
    """For rules: the symmetric matrix of a value for each of n (n - 1) / 2 pairs; 0 on its diagonal."""
    i = np.arange(n)
    first, second = np.minimum.outer(i, i), np.maximum.outer(i, i)
    places = first * (2 * n - first - 1) // 2 + second - first - 1
    np.fill_diagonal(places, 0)
    return where(tensor(first == second), 0, reshape(gather(v, 0, tensor(places.reshape(-1))), (n, n)))


def _variables(x, name):
    """Rows of floating-point observations."""
    if not isinstance(x, Tensor):
        _need(name, x)
    if x.ndim != 2:
        if x.ndim > 2:
            raise ShapeError(f"{name}: expected at most 2 dimensions, got shape {x.shape}")
        x = reshape(x, (1, x.numel()))
    return x if x.is_floating_point() else x.float()


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables (rows) over observations (columns), clipped to [-1, 1]."""
    out = cov_row(input, 0, True)
    if out is None:
        out = cov_row(_variables(input, "corrcoef"), 0, True)
    return out if out.numel() != 1 else reshape(out, ())


def cov(input: Tensor, *, correction: int = 1, fweights=None, aweights=None) -> Tensor:
    """The covariances of variables (rows) over observations (columns): divided by the (weighted) number of observations minus
    `correction`. fweights are how often each observation counts, aweights its weight. One variable gives a number.
    """
    if fweights is None and aweights is None:
        out = cov_row(input, correction, False)
        if out is None:
            out = cov_row(_variables(input, "cov"), correction, False)
        return out if out.numel() != 1 else reshape(out, ())
    x, weights = _variables(input, "cov"), None
    m, n = x.shape
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.ndim > 1 or given.numel() != n:
            raise ShapeError(f"cov: expected {name} to have a size for each of {n} observations, got shape {given.shape}")
        if name == "fweights" and given.is_floating_point():
            raise RuntimeError(f"cov: expected fweights to have an integral dtype, got {given.dtype.name}")
        weights = given.to(x.dtype) if weights is None else weights * given
    total = weights.sum()
    middle = (x * weights).sum(1, True) / total
    if aweights is None or correction == 0:
        freedom = total - correction
    else:
        freedom = total - correction * (weights * aweights).sum() / total
    centred = x - middle
    out = matmul(centred * weights, centred.mT) / freedom.clamp(min=0)
    return out if m != 1 else reshape(out, ())


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products along a dimension of size 3; other dimensions broadcast."""
    made = cross_plainly(input, other) if dim == -1 else None
    if made is not None:
        return made
    _need("linalg.cross", input, other)
    ours, theirs, ndim = input.shape, other.shape, input.ndim
    if len(theirs) != ndim:
        raise ShapeError(f"linalg.cross: inputs must have the same number of dimensions, got shapes {ours} and {theirs}")
    axis = _axis(dim, input, "linalg.cross")
    if ours[axis] != 3 or theirs[axis] != 3:
        raise ShapeError(f"linalg.cross: inputs dimension {dim} must have length 3, got shapes {ours} and {theirs}")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"linalg.cross: inputs must have one dtype, got {input.dtype.name} and {other.dtype.name}")
    input, other = broadcast_tensors(input, other)
    if axis == ndim - 1:
        return cross_rows(input, other)
    return movedim(cross_rows(movedim(input, axis, -1), movedim(other, axis, -1)), -1, axis)


def cross(input: Tensor, other: Tensor, dim=None) -> Tensor:
    """The cross products along `dim`, or the first dimension of size 3."""
    if not isinstance(input, Tensor):
        _need("cross", input)
    if dim is None:
        if 3 not in input.shape:
            raise ShapeError(f"cross: no dimension of size 3 in shape {input.shape}")
        dim = input.shape.index(3)
    return linalg_cross(input, other, dim=-1 if dim == input.ndim - 1 else dim)


FUNCTIONS["pair_matrix"] = pair_matrix

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "cdist", "chain_matmul", "corrcoef", "cov", "cross", "einsum", "ger", "inner", "kron",
    "outer", "pdist", "tensordot", "trace", "vander", "vdot",
]
