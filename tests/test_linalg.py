"""Linear algebra: special points where mathematics has a number, errors, replays of captures, PyTorch as the oracle.

Relies on `replayed` of test_values_in_captures; forward and derivatives in every layout are in the table of samples. Nothing relies on it.
"""

import subprocess
import sys

import numpy as np
import pytest
from test_values_in_captures import gradients, replayed

import autograd_cy as ag
from autograd_cy import linalg

rng = np.random.default_rng(0)
T = ag.tensor


def random(*shape, dtype="f8"):
    return rng.normal(size=shape).astype(dtype)


def gradient(f, x):
    x = T(x, requires_grad=True)
    (g,) = ag.autograd.grad(f(x), x)
    return g.numpy()


def slopes(f, x, step=1e-6):
    """The gradient of f by differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = step
        out[i] = (f(T(x + d)).item() - f(T(x - d)).item()) / (2 * step)
    return out


# ---- where a matrix is singular or values repeat


def singular(n, rank):
    return random(n, rank) @ random(rank, n)


@pytest.mark.parametrize(("n", "rank"), [(1, 0), (2, 1), (2, 0), (3, 2), (3, 1), (5, 4), (5, 3), (20, 19), (20, 18)])
def test_determinants_of_singular_matrices(n, rank):
    """The gradient is the matrix of cofactors: of rank 1 where one rank is missing, 0 below; its derivative, too."""
    x = singular(n, rank) if rank else np.zeros((n, n))
    g = gradient(linalg.det, x)
    if n <= 5:
        minors = [[np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
        np.testing.assert_allclose(g, minors, 1e-9, 1e-11)
    if rank < n - 1:
        np.testing.assert_allclose(g, 0, atol=1e-6 * (1 + np.abs(x).max()) ** n)
    w = random(n, n)

    def slope(y):
        y = y.detach().requires_grad_()
        (g,) = ag.autograd.grad(linalg.det(y), y, create_graph=True)
        return (g * T(w)).sum()

    if n <= 5:
        y = T(x, requires_grad=True)
        (first,) = ag.autograd.grad(linalg.det(y), y, create_graph=True)
        (second,) = ag.autograd.grad((first * T(w)).sum(), y)
        np.testing.assert_allclose(second.numpy(), slopes(slope, x, 1e-4), 1e-5, 1e-6)


def test_the_polar_factor_where_singular_values_repeat():
    """U @ Vh of an orthogonal matrix, all of whose singular values are 1: PyTorch's gradient is infinite or NaN."""
    q = np.linalg.qr(random(4, 4))[0]
    w = T(random(4, 4))

    def f(x):
        u, _, vh = linalg.svd(x)
        return ((u @ vh) * w).sum()

    np.testing.assert_allclose(gradient(f, q), slopes(f, q), 1e-6, 1e-7)


def test_repeated_values_give_finite_gradients():
    x = np.diag([2.0, 2.0, 1.0, 0.0])
    for f in (
        lambda x: linalg.svd(x).U.abs().sum(),
        lambda x: linalg.eigh(x).eigenvectors.square().sum(),
        lambda x: linalg.matrix_norm(x, "nuc"),
        lambda x: (linalg.eigh(x).eigenvectors @ linalg.eigh(x).eigenvectors.mT).sum(),
    ):
        assert np.isfinite(gradient(f, x)).all()
    np.testing.assert_allclose(gradient(lambda x: linalg.eigvalsh(x).sum(), np.eye(3)), np.eye(3), 1e-12, 1e-12)


def test_pseudoinverse_of_low_rank():
    a, b = random(5, 2), random(2, 4)
    w = T(random(4, 5))

    def f(a):
        return (linalg.pinv(a @ T(b), rtol=1e-9) * w).sum()

    np.testing.assert_allclose(gradient(f, a), slopes(f, a), 1e-5, 1e-6)


def test_norms_of_zero():
    for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
        g = gradient(lambda x, ord=ord: linalg.matrix_norm(x, ord), np.zeros((3, 3)))
        assert np.isfinite(g).all(), ord
    assert (gradient(lambda x: ag.cdist(x, x).sum(), np.ones((3, 2))) == 0).all()
    assert (gradient(lambda x: ag.cdist(x, x).sum(), np.ones((40, 2))) == 0).all()
    assert (gradient(lambda x: ag.pdist(x).sum(), np.ones((3, 2))) == 0).all()


def test_a_gradient_of_zero_passes_by_what_is_infinite():
    x = T(np.stack([np.eye(2), np.zeros((2, 2))]), requires_grad=True)
    (g,) = ag.autograd.grad(linalg.slogdet(x).logabsdet[0], x)
    np.testing.assert_array_equal(g.numpy(), [np.eye(2), np.zeros((2, 2))])


def test_symmetric_gradients():
    x = random(3, 3)
    x = x @ x.T + np.eye(3)
    w = T(random(3, 3))
    for f in (lambda x: (linalg.cholesky(x) * w).sum(), lambda x: (linalg.eigh(x).eigenvectors.square() * w).sum()):
        g = gradient(f, x)
        np.testing.assert_allclose(g, g.T, 1e-10, 1e-12)


def test_only_one_triangle_is_read():
    x = random(4, 4)
    x = x @ x.T + np.eye(4)
    low, up = np.tril(x), np.triu(x)
    low[np.triu_indices(4, 1)] = up[np.tril_indices(4, -1)] = np.nan
    for n in (4, 20):
        big = np.kron(np.eye(n // 4), x)
        low, up = np.where(np.tri(n) > 0, big, np.nan), np.where(np.tri(n).T > 0, big, np.nan)
        np.testing.assert_allclose(linalg.cholesky(T(low)).numpy(), np.linalg.cholesky(big), 1e-10, 1e-10)
        np.testing.assert_allclose(linalg.cholesky(T(up), upper=True).numpy(), np.linalg.cholesky(big).T, 1e-10, 1e-10)
        for uplo, half in (("L", low), ("U", up)):
            np.testing.assert_allclose(linalg.eigvalsh(T(half), uplo).numpy(), np.linalg.eigvalsh(big), 1e-9, 1e-9)


# ---- errors

z, e = ag.zeros, ag.eye

ERRORS = [
    (lambda: linalg.inv(z(2, 2)), RuntimeError, ["linalg.inv", "singular", "diagonal element 1"]),
    (lambda: linalg.inv(ag.stack((e(3), z(3, 3)))), RuntimeError, ["Batch element 1", "singular"]),
    (lambda: linalg.solve(z(2, 2), z(2)), RuntimeError, ["linalg.solve", "singular"]),
    (lambda: linalg.cholesky(-e(3)), RuntimeError, ["linalg.cholesky", "leading minor of order 1", "positive-definite"]),
    (lambda: linalg.cholesky(ag.stack((e(20), -e(20)))), RuntimeError, ["Batch element 1", "positive-definite"]),
    (lambda: linalg.svd(ag.full((3, 3), float("nan"))), RuntimeError, ["linalg.svd", "converge"]),
    (lambda: linalg.inv(z(2, 3)), ValueError, ["linalg.inv", "square", r"\(2, 3\)"]),
    (lambda: linalg.det(z(3)), ValueError, ["linalg.det", "2 dimensions", r"\(3,\)"]),
    (lambda: linalg.det(z(3, 3, dtype=ag.int64)), TypeError, ["linalg.det", "int64"]),
    (lambda: linalg.det([[1.0]]), TypeError, ["linalg.det", "list"]),
    (lambda: linalg.solve(e(3), z(4)), ValueError, ["linalg.solve", r"\(3, 3\)", r"\(4,\)"]),
    (lambda: linalg.solve(z(2, 3, 3), z(4, 3, 1)), ValueError, ["linalg.solve", "broadcast"]),
    (lambda: linalg.solve(e(3), z(3).double()), RuntimeError, ["linalg.solve", "float32", "float64"]),
    (lambda: linalg.solve_triangular(e(3), z(3), upper=True), ValueError, ["linalg.solve_triangular", r"\(3,\)"]),
    (lambda: linalg.qr(e(3), "full"), ValueError, ["mode", "full"]),
    (lambda: linalg.eigh(e(3), "X"), ValueError, ["UPLO", "X"]),
    (lambda: linalg.eig(e(3)), NotImplementedError, ["complex", "eigh"]),
    (lambda: linalg.eigvals(e(3)), NotImplementedError, ["complex", "eigvalsh"]),
    (lambda: linalg.matrix_norm(z(3)), ValueError, ["matrix_norm", r"\(3,\)"]),
    (lambda: linalg.matrix_norm(z(3, 3), 3), ValueError, ["matrix_norm", "3"]),
    (lambda: linalg.vector_norm(z(0), float("inf")), ValueError, ["vector_norm"]),
    (lambda: linalg.lstsq(z(3, 2), z(4, 2)), ValueError, ["lstsq", r"\(3, 2\)", r"\(4, 2\)"]),
    (lambda: linalg.lstsq(z(3, 2), z(3, 2), driver="x"), ValueError, ["lstsq", "gelsd"]),
    (lambda: linalg.matrix_power(e(2), 0.5), TypeError, ["matrix_power", "integer"]),
    (lambda: linalg.multi_dot([e(2)]), ValueError, ["multi_dot", "1"]),
    (lambda: linalg.multi_dot([e(2), e(3)]), ValueError, ["multi_dot", r"\(2, 2\)", r"\(3, 3\)"]),
    (lambda: linalg.tensorinv(z(2, 3), 1), ValueError, ["tensorinv", r"\(2, 3\)"]),
    (lambda: linalg.cross(z(2), z(2)), ValueError, ["cross", "3"]),
    (lambda: ag.mm(z(2), z(2, 2)), ValueError, ["mm", "2-D", r"\(2,\)"]),
    (lambda: ag.mm(z(2, 3), z(2, 3)), ValueError, ["mm", r"\(2, 3\)"]),
    (lambda: ag.bmm(z(1, 2, 3), z(2, 3, 1)), ValueError, ["bmm", r"\(1, 2, 3\)"]),
    (lambda: ag.mv(z(2, 3), z(2)), ValueError, ["mv", r"\(2,\)"]),
    (lambda: ag.dot(z(2), z(3)), ValueError, ["dot", r"\(3,\)"]),
    (lambda: ag.dot(z(2), z(2, 1)), ValueError, ["dot", "1-D"]),
    (lambda: ag.dot(z(2), z(2).double()), RuntimeError, ["dot", "float64"]),
    (lambda: ag.addmm(z(3, 3), z(2, 3), z(3, 2)), ValueError, ["addmm", r"\(3, 3\)"]),
    (lambda: ag.outer(z(2, 2), z(2)), ValueError, ["outer", r"\(2, 2\)"]),
    (lambda: ag.trace(z(2)), ValueError, ["trace", r"\(2,\)"]),
    (lambda: ag.cdist(z(2, 3), z(2, 4)), ValueError, ["cdist", r"\(2, 4\)"]),
    (lambda: ag.tensordot(z(2, 3), z(4, 5), 1), ValueError, ["tensordot", r"\(4, 5\)"]),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=lambda v: v[0] if isinstance(v, list) else "")
def test_errors(call, kind, words):
    for word in words:
        with pytest.raises(kind, match=word):
            call()


def test_complete_qr_has_no_gradient():
    x = T(random(4, 2), requires_grad=True)
    with pytest.raises(RuntimeError, match="complete"):
        linalg.qr(x, "complete").Q.sum().backward()


def test_an_output_changed_in_place():
    x = T(random(3, 3), requires_grad=True)
    u, s, _ = linalg.svd(x)
    loss = s.sum() + u.sum()
    u.detach()[0] = 5.0
    with pytest.raises(RuntimeError, match="in place"):
        loss.backward()


def test_infos_instead_of_errors():
    x = ag.stack((e(3), z(3, 3)))
    assert linalg.inv_ex(x).info.tolist() == [0, 1]
    assert linalg.inv_ex(x).inverse[1].isinf().all()
    assert linalg.cholesky_ex(x).info.tolist() == [0, 1]
    assert linalg.solve_ex(x, z(3, 1)).info.tolist() == [0, 1]
    assert linalg.lu_factor_ex(x).info.tolist() == [0, 1]
    with pytest.raises(linalg.LinAlgError):
        linalg.inv_ex(x, check_errors=True)


@pytest.mark.parametrize("call", ["x.det()", "ag.trace(x)", "x.inverse().sum()", "ag.linalg.lstsq(x, x).solution.sum()", "x.slogdet()[1]"])
def test_a_rule_finds_its_functions_in_a_fresh_process(call):
    """Linear algebra is imported when first asked for, by a rule, too."""
    code = f"import autograd_cy as ag; x = (ag.rand(3, 3) + ag.eye(3)).requires_grad_(); {call}.backward(); assert x.grad.shape == (3, 3)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


# ---- captures


def definite(x):
    return x @ x.mT + ag.eye(x.shape[-1]) * 4


CAPTURED = {
    "inv": lambda x: linalg.inv(definite(x)),
    "solve": lambda x: linalg.solve(definite(x), x),
    "solve_triangular": lambda x: linalg.solve_triangular(definite(x), x, upper=False),
    "det": lambda x: linalg.det(x),
    "slogdet": lambda x: linalg.slogdet(definite(x)).logabsdet,
    "cholesky": lambda x: linalg.cholesky(definite(x)),
    "lu": lambda x: linalg.lu_factor(definite(x)).LU,
    "qr": lambda x: linalg.qr(x).R,
    "svd": lambda x: linalg.svd(x).S,
    "polar": lambda x: linalg.svd(x).U @ linalg.svd(x).Vh,
    "eigh": lambda x: linalg.eigh(x + x.mT).eigenvectors.square(),
    "pinv": lambda x: linalg.pinv(x),
    "lstsq": lambda x: linalg.lstsq(x, x * x).solution,
    "matrix_exp": lambda x: linalg.matrix_exp(x),
    "matrix_power": lambda x: linalg.matrix_power(x, 3),
    "nuclear": lambda x: linalg.matrix_norm(x, "nuc"),
    "cond": lambda x: linalg.cond(x),
    "einsum": lambda x: ag.einsum("...ij,...kj,...ii->...ik", x, x, x),
    "cdist": lambda x: ag.cdist(x, x * x),
    "cov": lambda x: ag.cov(x[0]),
    "trace": lambda x: ag.trace(x[0]),
    "cross": lambda x: linalg.cross(x[..., :3], x[..., -3:]),
    "kron": lambda x: ag.kron(x, x),
}


@pytest.mark.parametrize("name", CAPTURED)
@pytest.mark.parametrize("shape", [(2, 3, 3), (1, 20, 20)])
def test_replays_give_equal_bytes(name, shape):
    """A capture's replay for other inputs has the bytes of the operation itself, forward and gradient."""
    function = gradients(CAPTURED[name])
    captured, run = replayed(function, (T(random(*shape)),))
    for x in (T(random(*shape)), T(random(*shape))):
        for a, b in zip(run(x), function(x), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_checks_run_in_replays():
    _, run = replayed(lambda x: linalg.inv(x), (e(3),))
    with pytest.raises(RuntimeError, match="singular"):
        run(z(3, 3))
    _, run = replayed(lambda x: linalg.cholesky(x), (e(3),))
    with pytest.raises(RuntimeError, match="positive-definite"):
        run(-e(3))


# ---- shapes


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_nothing(shape):
    x = z(*shape, requires_grad=True)
    for f in (linalg.inv, linalg.det, linalg.cholesky, linalg.matrix_exp, linalg.svdvals, linalg.eigvalsh, linalg.pinv):
        out = f(x)
        (g,) = ag.autograd.grad(out.sum(), x, materialize_grads=True)
        assert g.shape == shape
    assert linalg.det(z(0, 0)).item() == 1
    assert linalg.solve(x, x).shape == shape
    assert linalg.qr(x).Q.shape == shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 16, 17, 40, 130])
def test_small_and_large(n, dtype):
    """Own loops up to 16 rows, LAPACK above."""
    x = random(3, n, n, dtype=dtype) + np.eye(n, dtype=dtype) * 2 * n
    b = random(3, n, 5, dtype=dtype)
    tol = 1e-10 if dtype == "float64" else 1e-3
    close = {"rtol": tol, "atol": tol}
    np.testing.assert_allclose(linalg.inv(T(x)).numpy() @ x, np.broadcast_to(np.eye(n), x.shape), **close)
    np.testing.assert_allclose(x @ linalg.solve(T(x), T(b)).numpy(), b, **close)
    np.testing.assert_allclose(linalg.slogdet(T(x)).logabsdet.numpy(), np.linalg.slogdet(x)[1], **close)
    np.testing.assert_allclose(linalg.solve(T(x), T(b[..., 0])).numpy(), np.linalg.solve(x, b[..., :1])[..., 0], **close)
    p, lower, upper = linalg.lu(T(x))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), x, **close)
    q, r = linalg.qr(T(x))
    np.testing.assert_allclose((q @ r).numpy(), x, rtol=tol, atol=n * tol)
    u, s, vh = linalg.svd(T(x))
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ vh).numpy(), x, rtol=tol, atol=n * tol)


def test_exponentials_of_all_sizes():
    from scipy.linalg import expm

    for scale in (1e-3, 0.1, 0.5, 1, 3, 30):
        x = random(4, 4)
        x *= scale / np.abs(x).sum(0).max()
        np.testing.assert_allclose(linalg.matrix_exp(T(x)).numpy(), expm(x), 1e-11, 1e-12 * np.exp(scale))
        np.testing.assert_allclose(linalg.matrix_exp(T(x.astype("f4"))).numpy(), expm(x), 1e-4, 1e-5 * np.exp(scale))


# ---- PyTorch as the oracle

ORACLE = {
    "multi_dot": (lambda L, a, b, c: L.linalg.multi_dot([a, b, c]), (2, 9), (9, 3), (3, 8)),
    "cov": (lambda L, a: L.cov(a, correction=0), (3, 5)),
    "corrcoef": (lambda L, a: L.corrcoef(a), (3, 5)),
    "cov of one": (lambda L, a: L.cov(a), (1, 5)),
    "corrcoef of one": (lambda L, a: L.corrcoef(a) * a, (1, 5)),
    "cdist": (lambda L, a, b: L.cdist(a, b, 3.0), (2, 4, 3), (5, 3)),
    "cdist large": (lambda L, a, b: L.cdist(a, b), (30, 3), (5, 3)),
    "pdist": (lambda L, a: L.pdist(a), (4, 3)),
    "baddbmm": (lambda L, a, b, c: L.baddbmm(a, b, c, beta=0.5, alpha=2), (2, 1, 2), (2, 3, 4), (2, 4, 2)),
    "addbmm": (lambda L, a, b, c: L.addbmm(a, b, c), (2,), (2, 3, 4), (2, 4, 2)),
    "addr": (lambda L, a, b, c: L.addr(a, b, c, beta=0), (3, 4), (3,), (4,)),
    "lu_solve": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b, adjoint=True), (2, 3, 3), (2, 3, 2)),
    "tensorsolve": (lambda L, a, b: L.linalg.tensorsolve(a, b), (2, 3, 6), (2, 3)),
    "lstsq": (lambda L, a, b: L.linalg.lstsq(a, b).solution, (2, 3, 5), (2, 3, 2)),
    "vander": (lambda L, a: L.linalg.vander(a, N=4), (2, 3)),
    "matrix_norm": (lambda L, a: L.linalg.matrix_norm(a, "nuc", (0, 2), True), (3, 2, 4)),
    "svd": (lambda L, a: (lambda u, s, v: (u * s.exp()) @ v.mT)(*L.svd(a)), (4, 3)),
    "inner": (lambda L, a, b: L.inner(a, b), (2, 3), (4, 5, 3)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ORACLE)
def test_pytorch_agrees(name):
    torch = pytest.importorskip("torch")
    f, *shapes = ORACLE[name]
    arrays = [random(*s) for s in shapes]
    ours, theirs = [T(x, requires_grad=True) for x in arrays], [torch.tensor(x, requires_grad=True) for x in arrays]
    a, b = f(ag, *ours), f(torch, *theirs)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-9)
    w = random(*a.shape)
    for g, h in zip(ag.autograd.grad((a * T(w)).sum(), ours), torch.autograd.grad((b * torch.tensor(w)).sum(), theirs), strict=True):
        np.testing.assert_allclose(g.numpy(), h.numpy(), 1e-8, 1e-8)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decompositions_of_what_is_not_finite_end(value, dtype):
    """LAPACK's iterations for singular values and eigenvectors run for ever on some matrices with infinities."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.choice([0, 1, -1e20, 1e30, 9e18, value], (2, 3, 3)).astype(dtype)
        a[0, 2, 1] = value
        t = ag.tensor(a)
        for call in (ag.linalg.svd, ag.linalg.svdvals, ag.linalg.eigh, ag.linalg.eigvalsh, ag.linalg.pinv, lambda t: ag.linalg.lstsq(t, t, driver="gelsd")):
            with pytest.raises(ag.linalg.LinAlgError):
                call(t)
        x = t.clone().requires_grad_()
        assert ag.autograd.grad(ag.linalg.det(x).sum(), x)[0][0].isnan().any()
    lower = ag.tensor(np.array([[2, value], [0, 1]], dtype))
    assert ag.linalg.eigvalsh(lower).tolist() == [1, 2] and ag.linalg.eigvalsh(lower.T, "U").tolist() == [1, 2]


# ---- small matrices, which are decomposed by loops of our own

KINDS = {
    "normal": lambda rng, m, n: rng.normal(size=(m, n)),
    "ones": lambda rng, m, n: np.ones((m, n)),
    "zeros": lambda rng, m, n: np.zeros((m, n)),
    "counting": lambda rng, m, n: np.arange(m * n).reshape(m, n),
    "columns of all sizes": lambda rng, m, n: rng.normal(size=(m, n)) * 10.0 ** -np.arange(n),
    "rows of all sizes": lambda rng, m, n: rng.normal(size=(m, n)) * 10.0 ** -np.arange(m)[:, None],
    "equal values": lambda rng, m, n: np.eye(m, n),
    "very large": lambda rng, m, n: rng.normal(size=(m, n)) * 1e35,
    "very small": lambda rng, m, n: rng.normal(size=(m, n)) * 1e-36,
    "few": lambda rng, m, n: rng.random((m, n)) > 0.7,
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_small_matrices(kind, dtype):
    rng = np.random.default_rng(3)
    eps = np.finfo(dtype).eps
    for m, n in ((1, 1), (2, 2), (3, 5), (4, 4), (5, 3), (8, 8), (16, 3), (3, 16), (16, 16), (9, 17), (17, 2)):
        x = np.asarray(KINDS[kind](rng, m, n), dtype)
        a, unit = x.astype("f8"), 30 * eps * max(m, n)
        size = np.abs(a).max() * max(m, n)
        for mode in ("reduced", "complete"):
            q, r = (t.numpy().astype("f8") for t in linalg.qr(T(x), mode))
            assert np.abs(q @ r - a).max() <= unit * size
            assert np.abs(q.T @ q - np.eye(q.shape[1])).max() <= unit
        for full in (False, True):
            u, s, vh = (t.numpy().astype("f8") for t in linalg.svd(T(x), full))
            k = len(s)
            assert np.abs((u[:, :k] * s) @ vh[:k] - a).max() <= unit * size
            assert np.abs(u.T @ u - np.eye(u.shape[1])).max() <= unit and np.abs(vh @ vh.T - np.eye(len(vh))).max() <= unit
            assert (np.diff(s) <= 0).all() and np.abs(s - np.linalg.svd(a, compute_uv=False)).max() <= unit * size
        if m == n:
            w, v = (t.numpy().astype("f8") for t in linalg.eigh(T(x)))
            a = np.tril(a) + np.tril(a, -1).T
            assert np.abs((v * w) @ v.T - a).max() <= unit * size and np.abs(v.T @ v - np.eye(n)).max() <= unit
            assert (np.diff(w) >= 0).all() and np.abs(w - np.linalg.eigvalsh(a)).max() <= unit * size


def test_least_squares_of_small_matrices_know_their_rank():
    rng = np.random.default_rng(5)
    for rank in (1, 2, 3):
        a, b = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 3)), rng.normal(size=(5, 2))
        x, _, found, _ = linalg.lstsq(T(a), T(b))
        assert found.item() == rank == linalg.matrix_rank(T(a)).item()
        np.testing.assert_allclose(x.numpy(), np.linalg.lstsq(a, b)[0], 1e-9, 1e-9)
        np.testing.assert_allclose(linalg.pinv(T(a)).numpy(), np.linalg.pinv(a), 1e-9, 1e-9)


def test_statistics_of_no_observations_are_not_numbers():
    assert np.isnan(ag.corrcoef(ag.ones(2, 0)).numpy()).all()
    assert np.isnan(ag.cov(ag.ones(2, 0)).numpy()).all()
