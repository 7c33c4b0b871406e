"""Special functions that are series (engine/series.py) or that SciPy computes (engine/scipy_functions.py): Bessel functions, incomplete
gamma functions, and their like.

Relies on rows.py and functions.py only. Derivatives are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov).
"""

from ..functions import (
    airy_ai, airy_derivative, bessel_j0, bessel_j1, bessel_y0, bessel_y1, erfcx, exp, i0, i0e, i1, i1e, lgamma, modified_bessel_k0,
    modified_bessel_k1, scaled_modified_bessel_k0, scaled_modified_bessel_k1, sign, where, xlogy, zeta,
)
from ..rows import op

INF = float("inf")
SQRT_2PI, TWO_OVER_SQRT_PI = 2.5066282746310002, 1.1283791670955126
HALF_LOG_2PI, SQRT_HALF, SQRT_TWO_OVER_PI = 0.9189385332046727, 0.7071067811865476, 0.7978845608028654


def _over(y, x, at_zero):
    """y / x, and its limit at 0."""
    return where(x == 0, at_zero, y / where(x == 0, 1, x))


def _density_over_distribution(x, y):
    """The normal density at x over e ** y: on the left by erfcx, where the exponent is a difference of large numbers."""
    return where(x < 0, SQRT_TWO_OVER_PI / erfcx(-SQRT_HALF * where(x < 0, x, 0)), exp(-0.5 * x * x - HALF_LOG_2PI - y))


op("i0", "x", dx=lambda g, x: g * i1(x), doc="modified Bessel function of the first kind, order 0")
op("i0e", "x", dx=lambda g, x, y: g * (i1e(x) - sign(x) * y), doc="e ** -|x| * i0(x)", special="x = 0: 0")
op("i1", "x", dx=lambda g, x, y: g * (i0(x) - _over(y, x, 0.5)), doc="modified Bessel function of the first kind, order 1")
op("i1e", "x", dx=lambda g, x, y: g * (i0e(x) - y * sign(x) - _over(y, x, 0.5)), doc="e ** -|x| * i1(x)")
op("bessel_j0", "x", dx=lambda g, x: -g * bessel_j1(x), doc="Bessel function of the first kind, order 0")
op("bessel_j1", "x", dx=lambda g, x, y: g * (bessel_j0(x) - _over(y, x, 0.5)), doc="Bessel function of the first kind, order 1")
op("bessel_y0", "x", dx=lambda g, x: -g * bessel_y1(x), doc="Bessel function of the second kind, order 0")
op("bessel_y1", "x", dx=lambda g, x, y: g * where(x == 0, INF, bessel_y0(x) - y / x),
   doc="Bessel function of the second kind, order 1")
op("modified_bessel_k0", "x", dx=lambda g, x: -g * modified_bessel_k1(x), doc="modified Bessel function of the second kind, order 0")
op("modified_bessel_k1", "x", dx=lambda g, x, y: -g * (modified_bessel_k0(x) + y / x),
   doc="modified Bessel function of the second kind, order 1")
op("scaled_modified_bessel_k0", "x", dx=lambda g, x, y: g * where(x == 0, -INF, y - scaled_modified_bessel_k1(x)), doc="e ** x * modified_bessel_k0(x)")
op("scaled_modified_bessel_k1", "x", dx=lambda g, x, y: g * where(x == 0, -INF, y - scaled_modified_bessel_k0(x) - y / x),
   doc="e ** x * modified_bessel_k1(x)")
op("airy_ai", "x", dx=lambda g, x: g * airy_derivative(x), doc="Airy function Ai")
op("airy_derivative", "x", dx=lambda g, x: g * (x * airy_ai(x)), doc="derivative of the Airy function Ai")
op("erfcx", "x", dx=lambda g, x, y: g * (2 * x * y - TWO_OVER_SQRT_PI), doc="e ** (x * x) * erfc(x)")
op("ndtri", "x", dx=lambda g, y: g * (SQRT_2PI * exp(0.5 * y * y)), doc="inverse of the standard normal distribution function",
   special="x = 0 and x = 1: infinite")
op("log_ndtr", "x", dx=lambda g, x, y: g * _density_over_distribution(x, y),
   doc="log of the standard normal distribution function, exact in the tail")
op("zeta", "s q", dq=lambda g, s, q: -g * s * zeta(s + 1, q), doc="sum over k >= 0 of 1 / (k + q) ** s",
   special="not differentiable by s: the result does not require its gradient")
op("gammainc", "a x", dx=lambda g, a, x: g * _gamma_density(a, x), doc="regularised lower incomplete gamma function P(a, x)",
   special="not differentiable by a: the result does not require its gradient")
op("gammaincc", "a x", dx=lambda g, a, x: -g * _gamma_density(a, x), doc="regularised upper incomplete gamma function Q(a, x)",
   special="not differentiable by a: the result does not require its gradient")


def _gamma_density(a, x):
    """d/dx of P(a, x): x ** (a - 1) e ** -x / gamma(a)."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))

