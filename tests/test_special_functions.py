"""Special functions against numbers of 40 digits and SciPy, over the ways that their kernels take; no result depends on its neighbours.

Relies on autograd_cy's public names and SciPy; nothing relies on it.
"""

import math

import numpy as np
import pytest
from scipy import special

import autograd_cy as ag

INF, NAN = math.inf, math.nan

# a, x, P(a, x), Q(a, x), by mpmath: at small a, in the series, the continued fraction, the uniform expansion, and beside it
INCOMPLETE_GAMMA = [
    (1e-10, 0.5, 0.9999999999440227, 5.597735948054988e-11),
    (1e-05, 3.0, 0.9999998695137144, 1.304862855285946e-07),
    (0.3, 1e-20, 1.1142425085473024e-06, 0.9999988857574914),
    (0.5, 0.01, 0.1124629160182849, 0.8875370839817152),
    (0.5, 1.0, 0.8427007929497149, 0.15729920705028513),
    (0.9, 1.2, 0.7372312820746619, 0.262768717925338),
    (1.0, 4.5, 0.9888910034617577, 0.011108996538242306),
    (1.5, 0.25, 0.08110858834532414, 0.9188914116546758),
    (2.5, 2.5, 0.5841198130044921, 0.41588018699550794),
    (3.0, 9.0, 0.9937678048936227, 0.006232195106377317),
    (7.5, 1.0, 2.9654977282546156e-05, 0.9999703450227174),
    (10.0, 30.0, 0.9999928782491372, 7.121750862815577e-06),
    (12.5, 11.0, 0.364255972361377, 0.635744027638623),
    (30.0, 5.0, 2.8175176155779225e-14, 0.9999999999999718),
    (30.0, 31.0, 0.5953478209656109, 0.4046521790343891),
    (60.0, 120.0, 0.9999999994967994, 5.032006312041375e-10),
    (99.5, 100.0, 0.5332542564986218, 0.4667457435013782),
    (100.0, 100.0, 0.5132987982791487, 0.48670120172085135),
    (150.0, 120.0, 0.004563441304151243, 0.9954365586958488),
    (150.0, 190.0, 0.9988191646112505, 0.0011808353887494205),
    (400.0, 250.0, 1.649181254456405e-18, 1.0),
    (400.0, 620.0, 1.0, 1.3864426490574831e-21),
    (10000.0, 9700.0, 0.001234175584468492, 0.9987658244155315),
    (10000.0, 10400.0, 0.999961119829426, 3.88801705739882e-05),
]
CORNERS = [0.0, 1e-300, 0.5, 1.0, 3.0, 99.0, 101.0, 1e10, 1e200, INF, -0.0, -1.0, -INF, NAN]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def of_two(f, a, b, dtype="f8"):
    a, b = np.broadcast_arrays(np.asarray(a, dtype), np.asarray(b, dtype))
    return f(ag.tensor(a), ag.tensor(b)).numpy()


@pytest.mark.parametrize(("a", "x", "lower", "upper"), INCOMPLETE_GAMMA)
def test_incomplete_gamma(a, x, lower, upper):
    assert abs(of_two(ag.special.gammainc, a, x) - lower) <= 1e-14 * lower
    assert abs(of_two(ag.special.gammaincc, a, x) - upper) <= 1e-14 * upper


def test_incomplete_gamma_over_the_plane(rng):
    a = 10.0 ** rng.uniform(-6, 4, 20000)
    x = np.where(rng.random(a.size) < 0.5, a * rng.uniform(0.2, 3, a.size), 10.0 ** rng.uniform(-6, 4, a.size))
    for ours, theirs in ((ag.special.gammainc, special.gammainc), (ag.special.gammaincc, special.gammaincc)):
        right = theirs(a, x)
        usual = right > 1e-290
        assert np.abs(of_two(ours, a, x)[usual] / right[usual] - 1).max() < 1e-10             # SciPy loses digits far out
        central = right > 1e-5
        assert np.abs(of_two(ours, a, x)[central] / right[central] - 1).max() < 2e-13
        single = of_two(ours, a, x, "f4")
        assert np.abs(single - theirs(a.astype("f4").astype("f8"), x.astype("f4").astype("f8"))).max() < 1e-7


@pytest.mark.parametrize(("a", "x"), [(1e30, 1e31), (1e31, 1e100), (1e300, 1e299), (1.7e308, 1e-320), (1e20, 1.4e20), (1e21, 1e20)])
def test_incomplete_gamma_functions_of_huge_arguments(a, x):
    """Where they are 0 or 1 to all digits, nothing on the way there may overflow."""
    lower, upper = (0, 1) if x < a else (1, 0)
    assert of_two(ag.special.gammainc, a, x) == lower
    assert of_two(ag.special.gammaincc, a, x) == upper


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_at_corners(name):
    a, x = (v.ravel() for v in np.meshgrid(CORNERS, CORNERS))
    right = getattr(special, name)(a, x)
    np.testing.assert_allclose(of_two(getattr(ag.special, name), a, x), right, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_neighbours_change_nothing(name, dtype, rng):
    a, x = rng.uniform(0.1, 3, 200).astype(dtype), rng.uniform(0.1, 6, 200).astype(dtype)
    a[::3] = rng.uniform(90, 300, a[::3].size)
    x[::3] = a[::3] * rng.uniform(0.6, 1.5, a[::3].size)
    a, x = (a + 1, x) if name == "zeta" else (a, x)
    whole = of_two(getattr(ag.special, name), a, x, dtype)
    for k in range(200):
        assert of_two(getattr(ag.special, name), a[k:k + 1], x[k:k + 1], dtype).tobytes() == whole[k:k + 1].tobytes()
    assert of_two(getattr(ag.special, name), a[::-1], x[::-1], dtype)[::-1].tobytes() == whole.tobytes()


def test_zeta(rng):
    s, q = rng.uniform(1.001, 12, 5000), 10.0 ** rng.uniform(-3, 3, 5000)
    assert np.abs(of_two(ag.special.zeta, s, q) / special.zeta(s, q) - 1).max() < 5e-14
    s, q = np.float32(rng.uniform(1.01, 12, 5000)), np.float32(10.0 ** rng.uniform(-2, 2, 5000))
    right = special.zeta(s.astype("f8"), q.astype("f8"))
    assert np.abs(of_two(ag.special.zeta, s, q, "f4") - right)[right < 3e38].max() <= 6.1e-8 * right[right < 3e38].max()


@pytest.mark.parametrize("n", [1, 4, 100])
def test_gradient_by_the_second_input_only(n):
    """Of rows that have no derivative by their first; in the shortest way of a call, too."""
    a, x = ag.full((n,), 1.5, dtype=ag.float64), ag.full((n,), 2.0, dtype=ag.float64, requires_grad=True)
    for f, right in ((ag.special.gammainc, math.sqrt(2) * math.exp(-2) / math.gamma(1.5)), (ag.special.zeta, -1.5 * special.zeta(2.5, 2))):
        g, = ag.autograd.grad(f(a, x).sum(), x)
        assert np.abs(g.numpy() - right).max() < 1e-14
        assert not f(ag.full((n,), 1.5, dtype=ag.float64, requires_grad=True), x.detach()).requires_grad


@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 2e-15), ("f4", 1.3e-7)])
def test_lgamma(dtype, tolerance, rng):
    x = np.concatenate([rng.uniform(-12, 12, 5000), rng.uniform(-200, 0, 1000), 10.0 ** rng.uniform(-30, 30, 1000), [-3.0, 0.0]])
    x = x.astype(dtype)
    y, exact = ag.tensor(x).lgamma().numpy().astype("f8"), special.gammaln(x.astype("f8"))
    finite = exact < INF
    assert (y[~finite] == INF).all()
    y, exact = y[finite], exact[finite]
    assert (np.abs(y - exact) <= tolerance * np.maximum(np.abs(exact), 1)).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 7e-16), ("f4", 1e-7)])
def test_lgamma_next_to_its_zeros(dtype, tolerance, rng):
    """Relative to its series (DLMF 5.7.3)."""
    x = 1 + np.concatenate([s * 10.0 ** rng.uniform(-12, -1, 500) for s in (-1, 1)]).astype(dtype)
    for start in (1, 2):
        near = x + (start - 1)
        d = near.astype("f8") - start
        exact = sum((special.zetac(k) + (start == 1)) * (-d) ** k / k for k in range(40, 1, -1)) + (start - 1 - np.euler_gamma) * d
        assert (np.abs(ag.tensor(near).lgamma().numpy() - exact) <= tolerance * np.abs(exact)).all()


@pytest.mark.parametrize("n", [1, 7, 16, 17, 511, 512, 513, 1030])
def test_lgamma_of_both_signs(n, rng):
    """What is negative is set aside in float32: in any place, and in place."""
    x = rng.uniform(-6, 6, n).astype("f4")
    x[n // 2] = NAN
    whole = ag.tensor(x).lgamma().numpy()
    assert whole.tobytes() == np.concatenate([ag.tensor(x[k:k + 1]).lgamma().numpy() for k in range(n)]).tobytes()
    t = ag.tensor(x)
    t.lgamma_()
    assert t.numpy().tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8"])
def test_shifts_by_every_number(dtype):
    bits = np.dtype(dtype).itemsize * 8
    a = np.arange(256).astype(dtype).repeat(bits + 3)
    n = np.tile(np.arange(bits + 3), 256).astype(dtype)
    left = np.where(n < bits, a << np.minimum(n, bits - 1), 0).astype(dtype)
    assert (ag.bitwise_left_shift(ag.tensor(a), ag.tensor(n)).numpy() == left).all()
    assert (ag.bitwise_right_shift(ag.tensor(a), ag.tensor(n)).numpy() == np.where(n < bits, a >> np.minimum(n, bits - 1), 0)).all()
