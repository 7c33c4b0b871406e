"""Special functions: Bessel functions, incomplete gamma functions, and their like. Their loops call series (kernels/special.h, special_gamma.h)
and other rows' loops, block by block.

Relies on rows.py and functions.py only. Derivatives are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov).
"""

from functools import partial

from ..functions import (
    abs, airy_ai, airy_derivative, bessel_j0, bessel_j1, bessel_y0, bessel_y1, copysign, erfc, erfcx, exp, exp2, gamma_density,
    gammainc, gammaincc, i0, i0e, i1, i1e, lgamma, log, log2, log_ndtr, modified_bessel_k0, modified_bessel_k1, ndtri,
    scaled_modified_bessel_k0, scaled_modified_bessel_k1, sign, sinc, where, xlogy, zeta,
)
from .. import rows
from .elementwise import sinc_slope

INF, PI = float("inf"), 3.141592653589793
SQRT_2PI, TWO_OVER_SQRT_PI, INV_SQRT_2PI = 2.5066282746310002, 1.1283791670955126, 0.3989422804014327
HALF_LOG_2PI, SQRT_HALF, SQRT_TWO_OVER_PI = 0.9189385332046727, 0.7071067811865476, 0.7978845608028654
unary, binary = partial(rows.unary, rare=True, public=False), partial(rows.binary, rare=True, public=False)


def _over(y, x, at_zero):
    """y / x, and its limit at 0."""
    return where(x == 0, at_zero, y / where(x == 0, 1, x))


def _density_over_distribution(x, y):
    """The normal density at x over e ** y: on the left by erfcx, where the exponent is a difference of large numbers."""
    return where(x < 0, SQRT_TWO_OVER_PI / erfcx(-SQRT_HALF * where(x < 0, x, 0)), exp(-0.5 * x * x - HALF_LOG_2PI - y))


def _cube_root(x):
    """By the logarithm, and a step of Newton's method for its digits."""
    y = exp2(log2(abs(x)) * (1 / 3))
    y = copysign(y - (y - abs(x) / (y * y)) * (1 / 3), x)
    return where(x == 0, x, where(abs(x) == INF, x, y))


unary("cbrt", _cube_root, dx=lambda g, y: g / (3 * y * y), public=True, doc="cube root of x", special="x = 0: infinite, but 0 for g = 0")
unary("i0", lambda x: i0(x), dx=lambda g, x: g * i1(x), doc="modified Bessel function of the first kind, order 0")
unary("i0e", lambda x: i0e(x), dx=lambda g, x, y: g * (i1e(x) - sign(x) * y), doc="e ** -|x| * i0(x)", special="x = 0: 0")
unary("i1", lambda x: i1(x), dx=lambda g, x, y: g * (i0(x) - _over(y, x, 0.5)), doc="modified Bessel function of the first kind, order 1")
unary("i1e", lambda x: i1e(x), dx=lambda g, x, y: g * (i0e(x) - y * sign(x) - _over(y, x, 0.5)), doc="e ** -|x| * i1(x)")
unary("bessel_j0", lambda x: bessel_j0(x), dx=lambda g, x: -g * bessel_j1(x), doc="Bessel function of the first kind, order 0")
unary("bessel_j1", lambda x: bessel_j1(x), dx=lambda g, x, y: g * (bessel_j0(x) - _over(y, x, 0.5)),
      doc="Bessel function of the first kind, order 1")
unary("bessel_y0", lambda x: bessel_y0(x), dx=lambda g, x: -g * bessel_y1(x), doc="Bessel function of the second kind, order 0")
unary("bessel_y1", lambda x: bessel_y1(x), dx=lambda g, x, y: g * where(x == 0, INF, bessel_y0(x) - y / x),
      doc="Bessel function of the second kind, order 1")
unary("modified_bessel_k0", lambda x: modified_bessel_k0(x), dx=lambda g, x: -g * modified_bessel_k1(x),
      doc="modified Bessel function of the second kind, order 0")
unary("modified_bessel_k1", lambda x: modified_bessel_k1(x), dx=lambda g, x, y: -g * (modified_bessel_k0(x) + y / x),
      doc="modified Bessel function of the second kind, order 1")
unary("scaled_modified_bessel_k0", lambda x: scaled_modified_bessel_k0(x), dx=lambda g, x, y: g * where(x == 0, -INF, y - scaled_modified_bessel_k1(x)),
      doc="e ** x * modified_bessel_k0(x)")
unary("scaled_modified_bessel_k1", lambda x: scaled_modified_bessel_k1(x), dx=lambda g, x, y: g * where(x == 0, -INF, y - scaled_modified_bessel_k0(x) - y / x),
      doc="e ** x * modified_bessel_k1(x)")
unary("airy_ai", lambda x: airy_ai(x), dx=lambda g, x: g * airy_derivative(x), doc="Airy function Ai")
unary("airy_derivative", lambda x: airy_derivative(x), dx=lambda g, x: g * (x * airy_ai(x)), doc="derivative of the Airy function Ai")
unary("erfcx", lambda x: erfcx(x), dx=lambda g, x, y: g * (2 * x * y - TWO_OVER_SQRT_PI), doc="e ** (x * x) * erfc(x)")
unary("ndtr", lambda x: 0.5 * erfc(x * -SQRT_HALF), dx=lambda g, x: g * (INV_SQRT_2PI * exp(-0.5 * x * x)),
      doc="standard normal distribution function: erfc(-x / sqrt(2)) / 2")
unary("ndtri", lambda x: ndtri(x), dx=lambda g, y: g * (SQRT_2PI * exp(0.5 * y * y)),
      doc="inverse of the standard normal distribution function", special="x = 0 and x = 1: infinite")
unary("log_ndtr", lambda x: log_ndtr(x), dx=lambda g, x, y: g * _density_over_distribution(x, y),
      doc="log of the standard normal distribution function, exact in the tail")
unary("entr", lambda x: where(x < 0, -INF, 0 - xlogy(x, x)), dx=lambda g, x: where(x <= 0, 0, g * (-1 - log(x))),
      doc="-x * log(x), and -inf below 0", special="x = 0: 0, derivative 0; below 0: derivative 0")
unary("spherical_bessel_j0", lambda x: sinc(x * (1 / PI)), dx=lambda g, x: g * ((1 / PI) * sinc_slope(x * (1 / PI), x)),
      doc="sin(x) / x", special="x = 0: 1, derivative 0; infinite x: 0")
binary("zeta", lambda a, b: zeta(a, b), db=lambda g, a, b: -g * a * zeta(a + 1, b), doc="sum over k >= 0 of 1 / (k + b) ** a",
       special="not differentiable by a: the result does not require its gradient")
binary("gammainc", lambda a, b: gammainc(a, b), db=lambda g, a, b: g * gamma_density(a, b),
       doc="regularised lower incomplete gamma function P(a, b)",
       special="not differentiable by a: the result does not require its gradient")
binary("gammaincc", lambda a, b: gammaincc(a, b), db=lambda g, a, b: -g * gamma_density(a, b),
       doc="regularised upper incomplete gamma function Q(a, b)",
       special="not differentiable by a: the result does not require its gradient")
binary("gamma_density", lambda a, b: exp(where(a == 1, 0, (a - 1) * log(b)) - b - lgamma(a)), db=lambda g, a, b, y: g * (y * ((a - 1) / b - 1)),
       doc="b ** (a - 1) e ** -b / gamma(a)", special="not differentiable by a: the result does not require its gradient")
