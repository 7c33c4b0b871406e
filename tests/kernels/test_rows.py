"""K.softmax, the routines of cross entropy and their gradients against formulas in float64, written as PyTorch documents them.

Relies on raw.py. Nothing relies on it.
"""

import hashlib

import numpy as np
import pytest
import raw
from raw import CODES, _probe, address
from scipy.special import log_softmax as scipy_log_softmax

from autograd_cy.kernels.table import routine_number

SHAPES = [(0, 3), (3, 0), (1, 1), (5, 1), (150, 3), (64, 10), (7, 31), (7, 32), (7, 33), (2, 500), (3, 2000), (2000, 2)]


def softmax(x, log=False):
    out = np.empty_like(x)
    _probe.softmax(CODES[x.dtype], *x.shape, address(x), address(out), log)
    return out


def softmax_backward(g, y, log=False):
    dx = np.empty_like(g)
    _probe.softmax_backward(CODES[g.dtype], *g.shape, address(g), address(y), address(dx), log)
    return dx


def described(array):
    """As _probe.routine takes it."""
    return None if array is None else (address(array), CODES[array.dtype], array.shape, [n // array.itemsize for n in array.strides])


def run(name, arrays, ints, smoothing):
    return _probe.routine(routine_number(name), [described(a) for a in arrays], ints, (smoothing,))


def cross_entropy(x, target, weight=None, ignore_index=-100, smoothing=0.0, step=1, reduction=0):
    """x: (outer, classes) or, with step > 1, (outer, classes, step)."""
    prob, losses, counted = np.empty_like(x), np.empty(len(target) if reduction == 0 else 1, x.dtype), np.zeros(1, x.dtype)
    bad = run("rows.cross_entropy", (losses, counted, prob, x, target, weight), (len(x), x.shape[1], step, ignore_index, reduction), smoothing)
    if bad < 0:
        used = target[target != ignore_index]
        assert counted[0] == (len(used) if weight is None else x.dtype.type(sum(weight[used].astype("f8").tolist())))
    return bad, prob, losses


def cross_entropy_backward(g, prob, target, weight=None, ignore_index=-100, smoothing=0.0, step=1):
    dx, one = np.empty_like(prob), np.ones(1, prob.dtype)
    reduction = 0 if g.size == len(target) else 2
    ints = (len(prob), prob.shape[1], step, ignore_index, reduction)
    run("rows.cross_entropy_back", (dx, g, prob, target, weight, one), ints, smoothing)
    return dx


def data(shape, dtype, seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_and_its_gradient(shape, dtype):
    x, g = data(shape, dtype), data(shape, dtype, 1)
    tol = {"rtol": 2e-6, "atol": 2e-6} if dtype == "f4" else {"rtol": 1e-13, "atol": 1e-13}
    want = scipy_log_softmax(x.astype("f8"), axis=1) if x.size else x
    np.testing.assert_allclose(softmax(x), np.exp(want), **tol)
    np.testing.assert_allclose(softmax(x, log=True), want, **tol)
    tol["atol"] *= 20
    p, h = np.exp(want), g.astype("f8")
    np.testing.assert_allclose(softmax_backward(g, p.astype(dtype)), p * (h - (h * p).sum(1, keepdims=True)), **tol)
    np.testing.assert_allclose(softmax_backward(g, want.astype(dtype), log=True), h - p * h.sum(1, keepdims=True), **tol)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("cols", [1, 3, 100])
def test_softmax_in_place_and_special_rows(dtype, cols):
    x = np.zeros((6, cols), dtype)
    x[0] = -np.inf
    x[1, 0] = np.inf
    x[2, 0] = np.nan
    x[3] = np.finfo(dtype).max
    x[4] = np.finfo(dtype).min
    x[5, 1:] = -np.inf
    y = softmax(x)
    assert np.isnan(y[0]).all()
    assert np.isnan(y[1, 0])
    assert np.isnan(y[2]).all()
    np.testing.assert_allclose(y[3:5], 1 / cols, rtol=1e-6)
    np.testing.assert_array_equal(y[5], [1] + [0] * (cols - 1))
    assert np.isnan(softmax(x, log=True)[0]).all()
    z = x.copy()
    _probe.softmax(CODES[z.dtype], *z.shape, address(z), address(z), False)
    np.testing.assert_array_equal(z, y)


def reference(x, t, weight, ignore, s):
    """Losses and the gradient of their sum, row by row, in float64."""
    logp = scipy_log_softmax(x.astype("f8"), axis=1)
    p, n = np.exp(logp), x.shape[1]
    w = np.ones(n) if weight is None else weight.astype("f8")
    losses, dx = np.zeros(len(x)), np.zeros(x.shape)
    for i, k in enumerate(t):
        if k != ignore:
            coefficients = s / n * w
            coefficients[k] += (1 - s) * w[k]
            losses[i] = -(coefficients * logp[i]).sum()
            dx[i] = coefficients.sum() * p[i] - coefficients
    return p, losses, dx


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (150, 3), (64, 10), (5, 300), (3, 2000), (1500, 2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy(shape, dtype, weighted, smoothing):
    rng = np.random.default_rng(2)
    x, t = data(shape, dtype), rng.integers(0, shape[1], shape[0])
    t[::4] = -100
    weight = rng.uniform(0.5, 2, shape[1]).astype(dtype) if weighted else None
    bad, prob, losses = cross_entropy(x, t, weight, smoothing=smoothing)
    want = reference(x, t, weight, -100, smoothing)
    tol = {"rtol": 1e-5, "atol": 5e-6} if dtype == "f4" else {"rtol": 1e-12, "atol": 1e-13}
    assert bad == -1
    np.testing.assert_allclose(prob, want[0], **tol)
    np.testing.assert_allclose(losses, want[1], **tol)
    g = rng.normal(size=shape[0]).astype(dtype)
    g[1::5] = 0
    np.testing.assert_allclose(cross_entropy_backward(g, prob, t, weight, smoothing=smoothing), want[2] * g[:, None], **tol)
    one = np.full(1, 0.5, dtype)
    np.testing.assert_allclose(cross_entropy_backward(one, prob, t, weight, smoothing=smoothing), want[2] / 2, **tol)
    if (t >= 0).any():
        weights = (np.ones(shape[1]) if weight is None else weight)[t[t >= 0]]
        for reduction, total in ((1, want[1].sum() / weights.sum()), (2, want[1].sum())):
            got = cross_entropy(x, t, weight, smoothing=smoothing, reduction=reduction)[2]
            np.testing.assert_allclose(got, total, 1e-5 if dtype == "f4" else 1e-12)
    if len(x) < 150:
        return
    images = np.ascontiguousarray(x.T.reshape(1, shape[1], -1))                   # the same with classes in the middle
    bad, p, losses = cross_entropy(images, t, weight, smoothing=smoothing, step=shape[0])
    assert bad == -1
    np.testing.assert_allclose(p[0].T, prob, **tol)
    np.testing.assert_allclose(losses, want[1], **tol)
    dx = cross_entropy_backward(g, p, t, weight, smoothing=smoothing, step=shape[0])
    np.testing.assert_allclose(dx[0].T, want[2] * g[:, None], **tol)


def test_cross_entropy_targets():
    x = data((4, 3), "f4")
    assert cross_entropy(x, np.array([0, 2, 3, -1]))[0] == 2
    assert cross_entropy(x, np.array([-1, 2, 0, 0]))[0] == 0
    bad, _, losses = cross_entropy(x, np.array([-1, 2, 0, -1]), ignore_index=-1)
    assert bad == -1
    assert losses[0] == losses[3] == 0 != losses[1]
    bad, _, losses = cross_entropy(x, np.array([1, 1, 0, 1]), ignore_index=1)
    assert bad == -1
    assert list(losses != 0) == [False, False, True, False]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_outside_unit(dtype):
    x = np.random.default_rng(3).uniform(size=5000).astype(dtype)
    x[:3] = 0, 1, np.nan
    for n in (0, 1, 1023, 1024, 1025, 5000):
        assert _probe.outside_unit(CODES[x.dtype], n, address(x)) == -1
        for place in {0, n // 2, n - 1} if n else ():
            for wrong in (-1e-30, np.nextafter(x.dtype.type(1), x.dtype.type(2)), np.inf, -np.inf):
                kept, x[place] = x[place], wrong
                assert _probe.outside_unit(CODES[x.dtype], n, address(x)) == place
                x[place] = kept


def test_confident_rows_lose_no_digits():
    x = np.array([[0, -100, -200], [1000, 0, 0]], "f4")
    np.testing.assert_array_equal(cross_entropy(x, np.array([0, 0]))[2], [0, 0])
    np.testing.assert_array_equal(cross_entropy(x, np.array([1, 2]))[2], [100, 1000])
    x = np.array([[20, 0]], "f4")
    np.testing.assert_allclose(cross_entropy(x, np.array([1]))[2], 20, rtol=1e-7)


def digest():
    h = hashlib.sha256()
    for dtype in ("f4", "f8"):
        for shape in SHAPES:
            x = data(shape, dtype)
            t = np.arange(shape[0]) % max(shape[1], 1)
            h.update(softmax(x).tobytes() + softmax(x, True).tobytes() + softmax_backward(x, x).tobytes()
                     + softmax_backward(x, x, True).tobytes())
            if x.size:
                h.update(cross_entropy(x, t, smoothing=0.1)[2].tobytes())
    return h.hexdigest()


def test_same_bits_at_every_level():
    code = "import raw, test_rows; print(test_rows.digest())"
    assert {raw.at_level(level, code).strip() for level in raw.LEVELS} == {digest()}
