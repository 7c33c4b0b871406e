"""Orthogonal polynomials of ag.special against SciPy and explicit ones; derivatives against finite differences.

Relies on special and tools; nothing relies on it.
"""

import numpy as np
import pytest
from scipy import special

import autograd_cy as ag


def chebyshev_v(n, x):
    """cos((n + 1/2) t) / cos(t / 2), x = cos(t): the second kind's difference."""
    return special.eval_chebyu(n, x) - (special.eval_chebyu(n - 1, x) if n else 0)


def chebyshev_w(n, x):
    """sin((n + 1/2) t) / sin(t / 2)."""
    return special.eval_chebyu(n, x) + (special.eval_chebyu(n - 1, x) if n else 0)


KINDS = {
    "chebyshev_polynomial_t": special.eval_chebyt, "chebyshev_polynomial_u": special.eval_chebyu,
    "chebyshev_polynomial_v": chebyshev_v, "chebyshev_polynomial_w": chebyshev_w,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt, "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: chebyshev_v(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_w": lambda n, x: chebyshev_w(n, 2 * x - 1),
    "hermite_polynomial_h": special.eval_hermite, "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre, "legendre_polynomial_p": special.eval_legendre,
}
X = np.array([-1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0])
named = pytest.mark.parametrize("name", KINDS)


@named
def test_values(name):
    f = getattr(ag.special, name)
    for n in range(9):
        expected = np.array([KINDS[name](n, x) for x in X])
        np.testing.assert_allclose(f(ag.tensor(X), n).numpy(), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(f(ag.tensor(X, dtype=ag.float32), n).numpy(), expected, rtol=1e-3, atol=1e-4)
    assert not f(ag.tensor(X), -2).any()
    assert f(ag.tensor([1, 2]), 3).dtype is ag.float32
    assert f(ag.ones(0, 2), 3).shape == (0, 2)


@named
def test_degrees_in_a_tensor(name):
    """Broadcast against the points; fractions are cut off; a number may be the point."""
    f, degrees = getattr(ag.special, name), np.array([[4.0], [0.0], [-1.0], [2.9]])
    found = f(ag.tensor(X), ag.tensor(degrees)).numpy()
    for row, n in zip(found, (4, 0, None, 2), strict=True):
        np.testing.assert_allclose(row, 0 * X if n is None else [KINDS[name](n, x) for x in X], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(f(0.25, ag.tensor([0, 1, 2])).numpy(), [KINDS[name](n, 0.25) for n in range(3)], rtol=1e-6)
    assert f(ag.ones(2), ag.tensor([1.0, 2.0], dtype=ag.float64)).dtype is ag.float64
    assert f(ag.ones(2, 0), ag.ones(0)).shape == (2, 0)


@named
def test_derivatives(name):
    f, x = getattr(ag.special, name), ag.tensor(X, requires_grad=True)
    for n in (0, 1, 2, 5, ag.tensor([3.0, 0, 1, 2, 4, 5, -1])):
        assert ag.autograd.gradcheck(lambda x, n=n: f(x, n) + 0 * x, (x,))
        assert ag.autograd.gradgradcheck(lambda x, n=n: f(x, n) + x ** 3, (x,))


def test_refused():
    with pytest.raises(TypeError, match="hermite_polynomial_h: expected a Tensor, got float and int"):
        ag.special.hermite_polynomial_h(1.0, 2)
    with pytest.raises(ValueError, match="above 100000"):
        ag.special.shifted_chebyshev_polynomial_t(ag.ones(2), 10 ** 9)


def test_the_degree_takes_part_in_the_dtype():
    degree = ag.tensor(2.0, dtype=ag.float64)
    found = ag.special.legendre_polynomial_p(ag.tensor([1, 2]), degree)
    assert found.dtype is ag.float64
    assert found.tolist() == [1.0, 5.5]
    assert ag.special.legendre_polynomial_p(ag.tensor([0.5, 0.5]), ag.tensor([True, False])).tolist() == [0.5, 1.0]
