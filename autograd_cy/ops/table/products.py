"""Linear algebra, in the last two axes: products of matrices (the engine reshapes vectors and broadcasts batches), inverses,
systems of equations, determinants and decompositions.

Relies on rows.py and functions.py only. The rules are Giles (2008), Walter and Lehmann (2010) and Golub and Pereyra (1973), written so
that they hold where a matrix is singular or its values repeat, as far as a derivative exists there.
"""

from ..functions import (
    abs, band, cofactor, concatenate, cross_rows, cumulate, det, diagonal_back, eq, expand, flip, full_like, inverse_or_inf, logical_and,
    matmul, matrix_exp, pair_matrix, permutation_matrix, pinv, powers, reshape, solve_again, solve_triangular, sqrt, svd, swap_axes, total,
    where,
)
from ..rows import op
from .reductions import norm_gradient

EVERY = float("inf")


def _column(x):
    return x.unsqueeze(-1)


def _row(x):
    return x.unsqueeze(-2)


def _matrix(g):
    """A number for each matrix, to be multiplied by matrices."""
    return g.unsqueeze(-1).unsqueeze(-1)


def _diagonal(x):
    """Diagonal matrices."""
    return band(expand(_row(x), (*x.shape, x.shape[-1])), 0, 0)


def _lower(x, diagonal=0):
    return band(x, -EVERY, diagonal)


def _upper(x, diagonal=0):
    return band(x, diagonal, EVERY)


def _epsilon(x):
    return 1.2e-7 if x.dtype.name == "float32" else 2.2e-16


def _reciprocal(x, tolerance):
    """1 / x, and 0 where x can't be told from 0."""
    usable = abs(x) > tolerance
    return where(usable, 1 / where(usable, x, 1), 0)


def _scale(values):
    """What rounding leaves of values that cancel."""
    values = values.detach()
    return total(abs(values), (len(values.shape) - 1,), True) * _epsilon(values)


def _parts(x, axis, n):
    """The first n along axis -1 or -2, and the rest."""
    return x.narrow(axis, 0, n), x.narrow(axis, n, x.shape[axis] - n)


def _joined(x, y, axis):
    return concatenate((x, y), len(x.shape) + axis)


# ---- products

def _blocks(g, a, b):
    """The gradient of a Kronecker product by the dims of both."""
    return reshape(g, (a[0], b[0], a[1], b[1]))


op("matmul", "a b", da=lambda g, b: matmul(g, swap_axes(b)), db=lambda g, a: matmul(swap_axes(a), g), doc="matrix product a @ b")
op("linear", "x w b", dx=lambda g, w: matmul(g, w), dw=lambda g, x: matmul(swap_axes(g), x), db=lambda g: total(g, (0,), False),
   doc="x @ w.T + b")
op("trace", "x", dx=lambda g, x_shape: diagonal_back(expand(reshape(g, (1,)), (min(x_shape),)), x_shape, 0, 0, 1), doc="sum of a matrix's diagonal")
op("cross", "a b", da=lambda g, b: cross_rows(b, g), db=lambda g, a: cross_rows(g, a), doc="vector product along the last axis")
op("kron", "a b", doc="Kronecker product of two matrices",
   da=lambda g, b, a_shape, b_shape: total(_blocks(g, a_shape, b_shape) * reshape(b, (1, b_shape[0], 1, b_shape[1])), (1, 3), False),
   db=lambda g, a, a_shape, b_shape: total(_blocks(g, a_shape, b_shape) * reshape(a, (a_shape[0], 1, a_shape[1], 1)), (0, 2), False))
op("band", "x", attrs="low high", dx=lambda g, low, high: band(g, low, high), doc="x on its diagonals low to high, else 0")



def _distance_slopes(g, a, b, y, p):
    """The gradients of all distances, by the differences of a's and b's rows."""
    apart = a.unsqueeze(-2) - b.unsqueeze(-3)
    return norm_gradient(g, apart, y, p, apart.shape, (len(apart.shape) - 1,), False)


def _covariance_gradient(g, x, freedom, unit):
    """Of z z.T, where the rows of z are those of x less their means, and, unit, divided by their lengths."""
    z = x - total(x, (1,), True) / x.shape[1]
    g = g + swap_axes(g)
    if not unit:
        return matmul(g, z) / freedom
    size = sqrt(total(z * z, (1,), True))
    z = z / size
    p = matmul(g, z)
    return (p - z * total(p * z, (1,), True)) / size


op("cdist", "a b", attrs="p", da=lambda g, a, b, y, p: total(_distance_slopes(g, a, b, y, p), (len(y.shape) - 1,), False),
   db=lambda g, a, b, y, p: -total(_distance_slopes(g, a, b, y, p), (len(y.shape) - 2,), False), doc="p-norms of the differences of rows",
   special="distance 0: 0")
op("pdist", "x", attrs="p", dx=lambda g, x, y, p: total(_distance_slopes(pair_matrix(g, x.shape[0]), x, x, pair_matrix(y, x.shape[0]), p), (1,), False),
   doc="p-norms of the differences of all pairs of rows", special="distance 0: 0")


def _unit_gradient(g, x, y, dim, eps):
    size = sqrt(total(x * x, dim, True))
    larger = size > eps
    return (g - where(larger, y * total(g * y, dim, True), 0)) / where(larger, size, eps)


op("normalize", "x", attrs="dim eps", public=False, dx=_unit_gradient, doc="x divided by its 2-norm along dim, or by eps where that is larger")
op("cov", "x", attrs="freedom unit", dx=_covariance_gradient, doc="covariances of rows; correlations")




def _powers_gradient(g, x, n, increasing):
    if n < 2:
        return x * 0
    last = len(x.shape)
    if not increasing:
        g = flip(g, (last,))
    lower = powers(x, n - 1, True)
    factors = cumulate(full_like(lower, 1), last, False)
    return total(g.narrow(last, 1, n - 1) * factors * lower, (last,), False)


op("vander", "x", attrs="n increasing", public=False, dx=_powers_gradient, doc="the powers 0 to n - 1 of x in a new last dimension, or n - 1 to 0")


# ---- inverses and systems of equations

def _solve_gradients(g, a, y, adjoint, factors, pivots):
    gb = solve_again(a, g, factors, pivots, not adjoint)
    return (-matmul(y, swap_axes(gb)) if adjoint else -matmul(gb, swap_axes(y))), gb


def _triangular_gradients(g, a, y, upper, adjoint, unitriangular):
    gb = solve_triangular(a, g, upper, not adjoint, unitriangular)
    ga = -matmul(y, swap_axes(gb)) if adjoint else -matmul(gb, swap_axes(y))
    return (_upper(ga, int(unitriangular)) if upper else _lower(ga, -int(unitriangular))), gb


def _pinv_gradient(g, x, y):
    yt, gt = swap_axes(y), swap_axes(g)
    across, along = matmul(gt, matmul(y, yt)), matmul(matmul(yt, y), gt)
    return across - matmul(x, matmul(y, across)) + along - matmul(matmul(along, y), x) - matmul(yt, matmul(g, yt))


def _lstsq_gradients(g, a, b, y):
    """The solution is pinv(a) b; the rank of a is taken not to change nearby."""
    p = pinv(a)
    pt, yt = swap_axes(p), swap_axes(y)
    gb = matmul(pt, g)
    rest = g - matmul(p, matmul(a, g))
    ga = -matmul(gb, yt) + matmul(b - matmul(a, y), swap_axes(matmul(p, gb))) + matmul(matmul(pt, y), swap_axes(rest))
    return ga, gb


op("inv", "x", dx=lambda g, y: -matmul(matmul(swap_axes(y), g), swap_axes(y)), doc="inverse of a square matrix")
op("solve", "a b", attrs="adjoint", aux="factors pivots", da=_solve_gradients,
   db=lambda g, a, adjoint, factors, pivots: solve_again(a, g, factors, pivots, not adjoint), doc="inv(a) @ b; inv(a.T) @ b if adjoint")
op("solve_triangular", "a b", attrs="upper adjoint unitriangular", da=_triangular_gradients,
   db=lambda g, a, upper, adjoint, unitriangular: solve_triangular(a, g, upper, not adjoint, unitriangular),
   doc="inv(t) @ b for a triangle t of a; inv(t.T) @ b if adjoint")
op("pinv", "x", attrs="atol rtol hermitian", dx=_pinv_gradient, doc="pseudoinverse",
   special="a matrix without full rank: the derivative among matrices of its rank")
op("lstsq", "a b", attrs="rcond driver", da=_lstsq_gradients, db=lambda g, a: matmul(swap_axes(pinv(a)), g), doc="pinv(a) @ b")


# ---- determinants

def _cofactor_gradient(g, x):
    """With x = U S V.T the cofactors are det(U V) U C V.T, where C is diagonal and has products of all singular values but one; their
    derivatives are products of all but two."""
    u, s, vh = svd(x)
    t = matmul(matmul(swap_axes(u), g), swap_axes(vh))
    other = _diagonal(s * 0 + 1) < 0.5
    products = where(logical_and(other.unsqueeze(-2), other.unsqueeze(-3)), _row(_row(s)), 1).prod(-1)
    products = where(other, products, 0)
    diagonal = total(band(t, 0, 0), (len(t.shape) - 1,), True)
    inner = _diagonal(matmul(products, diagonal).squeeze(-1)) - products * swap_axes(t)
    return matmul(matmul(u, inner), vh) * _matrix(det(u) * det(vh))


def _logabsdet_gradient(g, x):
    g = _matrix(g)
    return where(eq(g, 0), 0, g * swap_axes(inverse_or_inf(x)))


op("det", "x", dx=lambda g, x: _matrix(g) * cofactor(x), doc="determinant", special="a singular matrix: its cofactors, also in second order")
op("cofactor", "x", dx=_cofactor_gradient, doc="det(x) inv(x).T, for singular matrices, too")
op("logabsdet", "x", dx=_logabsdet_gradient, doc="log |det(x)|", special="a singular matrix: infinite")


# ---- decompositions

def _cholesky_gradient(g, y, upper):
    l, g = (swap_axes(y), swap_axes(g)) if upper else (y, g)
    p = matmul(swap_axes(l), g)
    p = _lower(p, -1) + band(p, 0, 0) * 0.5
    p = (p + swap_axes(p)) * 0.5
    half = swap_axes(solve_triangular(l, p, False, True, False))
    return solve_triangular(l, half, False, True, False)


def _lu_gradient(g, y, pivots, x_shape):
    m, n = x_shape[-2:]
    k = min(m, n)
    l, u = y.narrow(-1, 0, k), y.narrow(-2, 0, k)
    gl, gu = _lower(g.narrow(-1, 0, k), -1), _upper(g.narrow(-2, 0, k))
    (l1, l2), (u1, u2), (gl1, gl2), (gu1, gu2) = _parts(l, -2, k), _parts(u, -1, k), _parts(gl, -2, k), _parts(gu, -1, k)
    u1, l1 = _upper(u1), _lower(l1)

    def times_u(x):                       # x inv(u1).T
        return swap_axes(solve_triangular(u1, swap_axes(x), True, False, False))

    def l_times(x):                       # inv(l1).T x
        return solve_triangular(l1, x, False, True, True)

    if m > k:
        below = times_u(gl2)
        gu1 = gu1 - _upper(matmul(swap_axes(l2), below))
    if n > k:
        beside = l_times(gu2)
        gl1 = gl1 - _lower(matmul(beside, swap_axes(u2)), -1)
    unit = _lower(l1, -1)
    first = matmul(swap_axes(unit), gl1) + gl1
    inner = _lower(first, -1) + _upper(matmul(gu1, swap_axes(u1)))
    ga = times_u(l_times(inner))
    if n > k:
        ga = _joined(ga, beside, -1)
    if m > k:
        ga = _joined(ga, below, -2)
    return matmul(permutation_matrix(pivots, y), ga)


def _qr_gradient(gys, ys, x_shape):
    (gq, gr), (q, r) = gys, ys
    m, n = x_shape[-2:]
    if q.shape[-1] > n:
        raise RuntimeError(f"linalg.qr: the gradient for mode=\"complete\" is not defined where a matrix has more rows than columns, as in "
                           f"shape {tuple(x_shape)}: the last columns of Q may be any; use mode=\"reduced\"")
    gq = q * 0 if gq is None else gq
    gr = r * 0 if gr is None else gr
    if m < n:
        (u, v), (gu, gv) = _parts(r, -1, m), _parts(gr, -1, m)
        return _joined(_qr_square(gq + matmul(q, matmul(v, swap_axes(gv))), gu, q, u), matmul(q, gv), -1)
    return _qr_square(gq, gr, q, r)


def _qr_square(gq, gr, q, r):
    p = matmul(r, swap_axes(gr)) - matmul(swap_axes(gq), q)
    p = _lower(p) + swap_axes(_lower(p, -1))
    return swap_axes(solve_triangular(r, swap_axes(gq + matmul(q, p)), True, False, False))


def _skew(x):
    return x - swap_axes(x)


def _svd_gradient(gys, ys):
    """What U and V would give divided by differences of squares is here divided by differences and by sums, of which only the
    differences vanish where singular values repeat; and there they multiply what is 0 for a function that does not depend on the
    choice of vectors."""
    (gu, gs, gvh), (u, s, vh) = gys, ys
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
    u, vh = u.narrow(-1, 0, k), vh.narrow(-2, 0, k)
    if gu is None and gvh is None:
        return matmul(u * _row(gs), vh)
    gu = u * 0 if gu is None else gu.narrow(-1, 0, k)
    gvh = vh * 0 if gvh is None else gvh.narrow(-2, 0, k)
    tu, tv = _skew(matmul(swap_axes(u), gu)), _skew(matmul(vh, swap_axes(gvh)))
    scale = _column(_scale(s))
    inner = ((tu + tv) * _reciprocal(_row(s) - _column(s), scale) + (tu - tv) * _reciprocal(_row(s) + _column(s), scale)) * 0.5
    if gs is not None:
        inner = inner + _diagonal(gs)
    ga = matmul(matmul(u, inner), vh)
    inverse = _row(_reciprocal(s, _scale(s)))
    if m > k:
        ga = ga + matmul((gu - matmul(u, matmul(swap_axes(u), gu))) * inverse, vh)
    if n > k:
        ga = ga + matmul(u * inverse, gvh - matmul(matmul(gvh, swap_axes(vh)), vh))
    return ga


def _eigh_gradient(gys, ys):
    (gl, gv), (l, v) = gys, ys
    inner = None if gl is None else _diagonal(gl)
    if gv is not None:
        turned = _skew(matmul(swap_axes(v), gv)) * 0.5 * _reciprocal(_row(l) - _column(l), _column(_scale(l)))
        inner = turned if inner is None else inner + turned
    return matmul(matmul(v, inner), swap_axes(v))


def _exponential_gradient(g, x):
    """The upper right block of exp([[x.T, g], [0, x.T]])."""
    n, xt = x.shape[-1], swap_axes(x)
    block = _joined(_joined(xt, g, -1), _joined(g * 0, xt, -1), -2)
    return matrix_exp(block).narrow(-2, 0, n).narrow(-1, n, n)


op("cholesky", "x", attrs="upper", dx=_cholesky_gradient, doc="the triangle l with x = l @ l.T (or u with x = u.T @ u)")
op("lu_factor", "x", aux="pivots", dx=_lu_gradient, doc="l and u with x = p @ l @ u, in one matrix; rows are exchanged")
op("qr", "x", attrs="mode", dx=_qr_gradient, doc="q with orthonormal columns and an upper triangle r, x = q @ r")
op("svd", "x", attrs="full_matrices", dx=_svd_gradient, doc="u, s, vh with x = u @ diag(s) @ vh",
   special="equal singular values: finite; vectors beyond the smaller size: no gradient")
op("eigh", "x", attrs="upper", dx=_eigh_gradient, doc="eigenvalues and eigenvectors of a symmetric matrix",
   special="equal eigenvalues: finite")
op("matrix_exp", "x", dx=_exponential_gradient, doc="sum over k of x ** k / k!")
