"""Special functions by power series: modified Bessel functions of the first kind, erfcx, log_ndtr.

Relies on kernels/rows (the routine of polynomials) and on loops. scipy_functions.py records them: they take five to twenty
times as long by SciPy, which goes number by number.

Bessel functions have their Taylor series (NIST Digital Library of Mathematical Functions, 10.25.2), which cancels nowhere, up to
FAR. Beyond, and for erfcx, Chebyshev series of scaled functions over the intervals of Cephes (Moshier, 1989) and of Shepherd
and Laframboise (1981); coefficients were computed with 40 digits, and the terms down to 2^-28 are enough in float32.
"""

from functools import cache
from math import factorial

from numpy.polynomial.chebyshev import cheb2poly

from .elementwise import abs, erfc
from .routines import call_routine
from .rows import empty_as
from .choose import where

INF, SQRT_HALF = float("inf"), 0.7071067811865476
FAR = 8.0                     # where the Bessel functions go over to a series in 1 / x
MIDDLE = 3.75                 # erfcx is a series in (x - MIDDLE) / (x + MIDDLE)

# What is in powers of 1 / x, or erfcx -> (terms in float32, coefficients of Chebyshev polynomials)
SERIES = {
    0: (7, (
        0.402245205507054416, 0.00336911647825569409, 6.88975834691682e-5, 2.8913705208348e-6, 2.048918589469e-7, 2.2666689905e-8,
        3.3962320257e-9, 4.940602388e-10, 1.18891471e-11, -3.14991653e-11, -1.32158118e-11, -1.7941785e-12, 7.180124e-13, 3.852778e-13,
        1.54009e-14, -4.15057e-14, -9.5548e-15, 3.8117e-15, 1.7726e-15, -3.425e-16, -2.828e-16, 3.46e-17, 4.47e-17)),
    1: (7, (
        0.38928811750914006, -0.00976109749136146841, -0.0001105889387626237, -3.8825648088777e-6, -2.51223623787e-7, -2.63146884689e-8,
        -3.835380386e-9, -5.589743462e-10, -1.89749581e-11, 3.25260358e-11, 1.41258074e-11, 2.0356285e-12, -7.198552e-13, -4.083551e-13,
        -2.10154e-14, 4.27244e-14, 1.04203e-14, -3.8144e-15, -1.8804e-15, 3.308e-16, 2.963e-16, -3.21e-17, -4.65e-17)),
    "erfcx": (13, (
        1.17757893456740175, -0.00459005458064647733, -0.0842491333665179156, 0.0592099399981918905, -0.0266586684353057523,
        0.00907499767070526509, -0.00241316354041760819, 0.0004907758365258086, -6.91697330250121e-5, 4.139027986073e-6,
        7.740383066198e-7, -2.188640104923e-7, 1.07649994657e-8, 4.5219598112e-9, -7.754400209e-10, -6.31808834e-11, 2.86879501e-11,
        1.945587e-13, -9.654697e-13, 3.25255e-14, 3.34781e-14, -1.8646e-15, -1.2508e-15)),
}


@cache
def _coefficients(name, itemsize):
    """Of the powers: Taylor's where name is a tuple (order,)."""
    if isinstance(name, tuple):
        return tuple([0.5 ** name[0] / (factorial(k) * factorial(k + name[0])) for k in range(17 if itemsize == 4 else 24)])
    few, series = SERIES[name]
    return tuple(cheb2poly(series[:few] if itemsize == 4 else series))


def _series(name, x, scale, shift, square=False):
    """The series at scale * x + shift, or at its square, which are in double whatever the dtype."""
    out, terms = empty_as(x, x.shape), _coefficients(name, x.element_size())
    call_routine("rows.polynomial", (out, x), (len(terms), int(square)), (scale, shift, *terms))
    return out


# In place where it can be: at many elements, new memory takes longer than arithmetic.

def _bessel(x, order, scaled):
    a, near = abs(x), _series((order,), x, 0.5, 0.0, True)
    far = a.clamp(min=FAR, max=INF if scaled else 1e30)
    beyond = _series(order, far.reciprocal(), 2 * FAR, -1.0).div_(far.sqrt_())
    if order:
        near.mul_(a)
    if scaled:
        near.mul_((-a).exp_())
    else:
        half = (a * 0.5).exp_()                  # e ** a may overflow where the result does not
        beyond.mul_(half).mul_(half)
    y = where(a > FAR, beyond, near)
    return y.copysign_(x) if order else y


def _erfcx_right(x):
    """erfcx where x >= 0."""
    near = x.clamp(max=1e30)
    return _series("erfcx", near.div_(near + MIDDLE), 2.0, -1.0).div_((x * 2).add_(1))


def _erfcx(x):
    left = x.clamp(-30.0, 0.0)                   # e ** (x * x) with the rounding of x * x made good
    high = (left * 64).round_().mul_(1 / 64)
    square = (left - high).mul_(left.add_(high)).exp_()
    square.mul_(high.square_().exp_())
    right = _erfcx_right(abs(x))
    return where(x < 0, square.mul_(2).sub_(right), right)


def _log_ndtr(x):
    left = _erfcx_right((x * -SQRT_HALF).clamp_(min=0.0)).mul_(0.5).log_().sub_(x.square().mul_(0.5))
    return where(x < -1, left, erfc(x * SQRT_HALF).mul_(-0.5).log1p_())


FUNCTIONS = {
    "i0": lambda x: _bessel(x, 0, False), "i0e": lambda x: _bessel(x, 0, True), "i1": lambda x: _bessel(x, 1, False),
    "i1e": lambda x: _bessel(x, 1, True), "erfcx": _erfcx, "log_ndtr": _log_ndtr,
}
