"""Elementwise rows: arithmetic, functions, activations, comparisons, losses before they are reduced.

Relies on rows.py and functions.py only. codegen.py makes loops of them.
"""

from ..functions import (
    abs, acos, asin, atan, atan2, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, ceil,
    copysign, cos, cosh, digamma, erf, erfc, erfinv, exp, exp2, expm1, floor, floor_divide, fmod, hypot, isfinite, isinf, isnan,
    lgamma, log, log1p, log2, log10, logical_and, logical_not, logical_or, logical_xor, logsigmoid, maximum, minimum, nextafter,
    normal_cdf, polygamma, pow, remainder, round, rsqrt, sigmoid, sign, signbit, sin, sinh, softplus, sqrt, tan, tanh, trigamma,
    trunc, where,
)
from ..rows import binary, ternary, unary

INF = float("inf")
PI, LN2, LN10 = 3.141592653589793, 0.6931471805599453, 2.302585092994046
SQRT_2_OVER_PI, TWO_OVER_SQRT_PI, HALF_SQRT_PI, INV_SQRT_2PI = 0.7978845608028654, 1.1283791670955126, 0.886226925452758, 0.3989422804014327
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805        # Klambauer et al., 2017

# ---- arithmetic

binary("add", lambda a, b: a + b, da=lambda g: g, db=lambda g: g, dtypes="all", doc="a + b")
binary("sub", lambda a, b: a - b, da=lambda g: g, db=lambda g: -g, dtypes="number", doc="a - b")
binary("mul", lambda a, b: a * b, da=lambda g, b: g * b, db=lambda g, a: g * a, dtypes="all", doc="a * b")
binary("div", lambda a, b: a / b, da=lambda g, b: g / b, db=lambda g, b, y: -g * y / b, doc="a / b")
binary("floor_divide", lambda a, b: floor_divide(a, b), dtypes="number", doc="floor(a / b)",
       special="not differentiable: the result does not require a gradient")
binary("remainder", lambda a, b: remainder(a, b), da=lambda g: g, db=lambda g, a, b: -g * floor_divide(a, b), dtypes="number",
       doc="a - b * floor(a / b), with the sign of b", special="where a is a multiple of b: the derivative from inside the step")
binary("fmod", lambda a, b: fmod(a, b), da=lambda g: g, db=lambda g, a, b: -g * trunc(a / b), dtypes="number",
       doc="a - b * trunc(a / b), with the sign of a", special="where a is a multiple of b: the derivative from inside the step")
binary("pow", lambda a, b: pow(a, b), da=lambda g, a, b: g * b * pow(a, b - 1 + where(b == 0, 1, 0)),       # a choice of exponents would be a branch
       db=lambda g, a, b, y: g * y * log(where(logical_and(a == 0, b >= 0), y * 0 + 1, a)), dtypes="number", doc="a ** b",
       special="exponent 0: da = 0, also at a = 0; a = 0 with b >= 0: db = 0")
unary("neg", lambda x: -x, dx=lambda g: -g, dtypes="number", doc="-x")
unary("abs", lambda x: abs(x), dx=lambda g, x: g * sign(x), dtypes="number", doc="|x|", special="x = 0: 0")
unary("sign", lambda x: sign(x), dx=lambda g: g * 0, dtypes="all", doc="-1, 0 or 1 by the sign of x", special="0 everywhere")
unary("square", lambda x: x * x, dx=lambda g, x: g * (x + x), dtypes="number", doc="x * x")
unary("sqrt", lambda x: sqrt(x), dx=lambda g, y: g / (y + y), doc="square root of x", special="x = 0: infinite, but 0 for g = 0")
unary("rsqrt", lambda x: rsqrt(x), dx=lambda g, y: g * -0.5 * (y * y * y), doc="1 / sqrt(x)")
unary("reciprocal", lambda x: 1 / x, dx=lambda g, y: -g * (y * y), doc="1 / x")

# ---- exponentials, logarithms, circular and hyperbolic functions

unary("deg2rad", lambda x: x * (PI / 180), dx=lambda g: g * (PI / 180), doc="an angle in degrees, in radians")
unary("rad2deg", lambda x: x * (180 / PI), dx=lambda g: g * (180 / PI), doc="an angle in radians, in degrees")
binary("hypot", lambda a, b: hypot(a, b), da=lambda g, a, y: g * _part(a, y), db=lambda g, b, y: g * _part(b, y),
       doc="sqrt(a ** 2 + b ** 2), without overflow", special="a = b = 0: 0; at an infinity: its sign")
ternary("lerp", "input end weight", lambda input, end, weight:
        where(abs(weight) < 0.5, input + weight * (end - input), end - (end - input) * (1 - weight)),
        dinput=lambda g, weight: g * (1 - weight), dend=lambda g, weight: g * weight, dweight=lambda g, input, end: g * (end - input),
        doc="input + weight * (end - input), exact for weight 0 and 1")
ternary("addcmul", "input tensor1 tensor2", lambda input, tensor1, tensor2, value: input + value * tensor1 * tensor2, attrs="value=1",
        dinput=lambda g: g, dtensor1=lambda g, tensor2, value: g * (tensor2 * value),
        dtensor2=lambda g, tensor1, value: g * (tensor1 * value), dtypes="number", doc="input + value * tensor1 * tensor2")
ternary("addcdiv", "input tensor1 tensor2", lambda input, tensor1, tensor2, value: input + value * (tensor1 / tensor2), attrs="value=1",
        dinput=lambda g: g, dtensor1=lambda g, tensor2, value: g * (value / tensor2),
        dtensor2=lambda g, tensor1, tensor2, value: -g * (value * (tensor1 / tensor2) / tensor2), doc="input + value * tensor1 / tensor2")


def _part(a, y):
    """a / y, y = sqrt(a ** 2 + ...); 0 where that is 0, the sign of an infinite a."""
    return where(abs(a) == INF, sign(a), a / where(y == 0, 1, y))


unary("exp", lambda x: exp(x), dx=lambda g, y: g * y, doc="e ** x")
unary("expm1", lambda x: expm1(x), dx=lambda g, y: g * (y + 1), doc="e ** x - 1, exact near 0")
unary("exp2", lambda x: exp2(x), dx=lambda g, y: g * (y * LN2), doc="2 ** x")
unary("log", lambda x: log(x), dx=lambda g, x: g / x, doc="natural logarithm")
unary("log2", lambda x: log2(x), dx=lambda g, x: g / (x * LN2), doc="logarithm to base 2")
unary("log10", lambda x: log10(x), dx=lambda g, x: g / (x * LN10), doc="logarithm to base 10")
unary("log1p", lambda x: log1p(x), dx=lambda g, x: g / (x + 1), doc="log(1 + x), exact near 0")
unary("sin", lambda x: sin(x), dx=lambda g, x: g * cos(x), doc="sine")
unary("cos", lambda x: cos(x), dx=lambda g, x: -g * sin(x), doc="cosine")
unary("tan", lambda x: tan(x), dx=lambda g, y: g * (1 + y * y), doc="tangent")
unary("sinh", lambda x: sinh(x), dx=lambda g, x: g * cosh(x), doc="hyperbolic sine")
unary("cosh", lambda x: cosh(x), dx=lambda g, x: g * sinh(x), doc="hyperbolic cosine")
unary("tanh", lambda x: tanh(x), dx=lambda g, y: g * (1 - y * y), doc="hyperbolic tangent")
unary("asin", lambda x: asin(x), dx=lambda g, x: g * rsqrt(1 - x * x), doc="inverse sine")
unary("acos", lambda x: acos(x), dx=lambda g, x: -g * rsqrt(1 - x * x), doc="inverse cosine")
unary("atan", lambda x: atan(x), dx=lambda g, x: g / (1 + x * x), doc="inverse tangent")
unary("asinh", lambda x: copysign(_log_twice(abs(x), abs(x) + x * x / (1 + sqrt(x * x + 1))), x), dx=lambda g, x: g * rsqrt(x * x + 1), doc="inverse hyperbolic sine")
unary("acosh", lambda x: _log_twice(x, x - 1 + sqrt(x - 1) * sqrt(x + 1)),
      dx=lambda g, x: g / (sqrt(x - 1) * sqrt(x + 1)), doc="inverse hyperbolic cosine")
unary("atanh", lambda x: copysign(0.5 * log1p(2 * abs(x) / (1 - abs(x))), x), dx=lambda g, x: g / ((1 - x) * (1 + x)),
      doc="inverse hyperbolic tangent")
unary("sinc", lambda x: where(x == 0, 1, where(abs(x) == INF, 0, sin(x * PI) / (x * PI))), dx=lambda g, x: g * sinc_slope(x, x * PI),
      doc="sin(pi x) / (pi x)", special="x = 0: 1, derivative 0; infinite x: 0")
unary("logit", lambda x, low, high: _log_odds(where(x < low, low, where(x > high, high, x))), attrs="low high", public=False,
      dx=lambda g, x, low, high: g * where(logical_or(x < low, x > high), 0, 1 / _nan_below(x * (1 - x))),
      doc="log(x / (1 - x)) of x limited to [low, high] = [eps, 1 - eps]", special="outside of the limits: 0; without eps: NaN outside of [0, 1]")
binary("logaddexp", lambda a, b: maximum(a, b) + where(a == b, LN2, softplus(-abs(a - b))),
       da=lambda g, a, b: g * where(a == b, where(a == -INF, 0, 0.5), sigmoid(a - b)),
       db=lambda g, a, b: g * where(a == b, where(a == -INF, 0, 0.5), sigmoid(b - a)),
       doc="log(e ** a + e ** b), without overflow", special="both -inf: 0; both inf: half each")
binary("logaddexp2", lambda a, b: maximum(a, b) + where(a == b, 1, softplus(-abs(a - b) * LN2) / LN2),
       da=lambda g, a, b: g * where(a == b, where(a == -INF, 0, 0.5), sigmoid((a - b) * LN2)),
       db=lambda g, a, b: g * where(a == b, where(a == -INF, 0, 0.5), sigmoid((b - a) * LN2)),
       doc="log2(2 ** a + 2 ** b), without overflow", special="both -inf: 0; both inf: half each")
binary("xlogy", lambda a, b: where(isnan(b), b, where(a == 0, 0, a * log(b))),
       da=lambda g, a, b: g * where(logical_and(a == 0, b <= 0), 0, log(b)), db=lambda g, a, b: where(a == 0, 0, g * a / b),
       doc="a * log(b), and 0 for a = 0 unless b is NaN", special="a = 0: db = 0; a = 0 and b <= 0: da = 0")
binary("xlog1py", lambda a, b: where(isnan(b), b, where(a == 0, 0, a * log1p(b))),
       da=lambda g, a, b: g * where(logical_and(a == 0, b <= -1), 0, log1p(b)), db=lambda g, a, b: where(a == 0, 0, g * a / (b + 1)),
       doc="a * log(1 + b), and 0 for a = 0 unless b is NaN", special="a = 0: db = 0; a = 0 and b <= -1: da = 0")
binary("atan2", lambda a, b: atan2(a, b), da=lambda g, a, b: g * _over_square(b, a, b), db=lambda g, a, b: g * -_over_square(a, a, b),
       doc="angle of the point (b, a)", special="a = b = 0: 0")
unary("erf", lambda x: erf(x), dx=lambda g, x: g * (TWO_OVER_SQRT_PI * exp(-x * x)), doc="error function")
unary("erfc", lambda x: erfc(x), dx=lambda g, x: -g * (TWO_OVER_SQRT_PI * exp(-x * x)), doc="1 - erf(x), exact in the tail")
unary("erfinv", lambda x: erfinv(x), dx=lambda g, y: g * (HALF_SQRT_PI * exp(y * y)), doc="inverse of erf")
unary("lgamma", lambda x: lgamma(x), dx=lambda g, x: g * digamma(x), doc="log |gamma(x)|")
unary("digamma", lambda x: digamma(x), dx=lambda g, x: g * trigamma(x), doc="derivative of log gamma(x)")
unary("trigamma", lambda x: trigamma(x), public=False, dx=lambda g, x: g * polygamma(x, 2), doc="derivative of digamma(x): polygamma of order 1")
unary("polygamma", lambda x, order: polygamma(x, order), attrs="order", public=False,
      dx=lambda g, x, order: g * polygamma(x, order + 1), doc="derivative of digamma(x) of this order, at least 2")

FAR = 1e18                    # its square is finite in float32, and adding 1 to it changes nothing in float64


def _log_twice(a, b):
    """log(2 a) where a is large, else log(1 + b), with one logarithm."""
    y = log1p(where(a > FAR, a, b))
    return where(a > FAR, y + LN2, y)


def _log_odds(x):
    return log(x / (1 - x))


def _nan_below(v):
    """v, but NaN below 0."""
    return where(v < 0, sqrt(v), v)


def sinc_slope(x, t):
    """d/dx of sin(t) / t, t = pi x; near 0 by its series, where the formula would lose all digits."""
    z = t * t
    series = t * PI * (-1 / 3 + z * (1 / 30 - z * (1 / 840 - z * (1 / 45360 - z * (1 / 3991680 - z / 518918400)))))
    return where(abs(t) < 0.5, series, where(abs(x) == INF, 0, (t * cos(t) - sin(t)) / (t * x)))


def _over_square(x, a, b):
    """x / (a ** 2 + b ** 2) without overflow or underflow on the way, for x = a or b; 0 where both are 0."""
    size = maximum(abs(a), abs(b))
    scale = where(logical_or(size == 0, size == INF), 1, size)
    p, q = a / scale, b / scale
    return x / scale / where(size == 0, 1, p * p + q * q) / scale


# ---- activations

unary("sigmoid", lambda x: sigmoid(x), dx=lambda g, y: g * ((1 - y) * y), doc="1 / (1 + e ** -x)")
unary("logsigmoid", lambda x: logsigmoid(x), dx=lambda g, x: g * sigmoid(-x), doc="log(sigmoid(x)), exact in the tails")
unary("relu", lambda x: where(x < 0, 0, x), dx=lambda g, y: where(y <= 0, 0, g), dtypes="number", doc="max(x, 0)", special="x = 0: 0",
      inplace=True)
unary("leaky_relu", lambda x, negative_slope: where(x > 0, x, x * negative_slope), attrs="negative_slope=0.01",
      dx=lambda g, x, negative_slope: where(x > 0, g, g * negative_slope), doc="x if x > 0, else negative_slope * x",
      special="x = 0: negative_slope", inplace=True)
unary("elu", lambda x, alpha: where(x > 0, x, alpha * expm1(x)), attrs="alpha=1",
      dx=lambda g, x, alpha: where(x > 0, g, g * (alpha * exp(x))), doc="x if x > 0, else alpha * (e ** x - 1)", special="x = 0: alpha",
      inplace=True)
unary("selu", lambda x: where(x > 0, SELU_SCALE * x, (SELU_SCALE * SELU_ALPHA) * expm1(x)),
      dx=lambda g, x: where(x > 0, g * SELU_SCALE, g * ((SELU_SCALE * SELU_ALPHA) * exp(x))),
      doc="1.0507 x if x > 0, else 1.7581 (e ** x - 1)", special="x = 0: 1.7581", inplace=True)
unary("celu", lambda x, alpha: where(x > 0, x, alpha * expm1(x / alpha)), attrs="alpha=1",
      dx=lambda g, x, alpha: where(x > 0, g, g * exp(x / alpha)), doc="x if x > 0, else alpha * (e ** (x / alpha) - 1)", inplace=True)
unary("relu6", lambda x: where(x < 0, 0, where(x > 6, 6, x)), dx=lambda g, y: where(logical_or(y <= 0, y >= 6), 0, g), dtypes="number",
      doc="x limited to [0, 6]", special="x = 0 and x = 6: 0", inplace=True)
unary("hardtanh", lambda x, min_val, max_val: where(x < min_val, min_val, where(x > max_val, max_val, x)), attrs="min_val=-1 max_val=1",
      dx=lambda g, x, min_val, max_val: where(logical_or(x <= min_val, x >= max_val), 0, g), doc="x limited to [min_val, max_val]",
      special="at the bounds: 0", inplace=True)
unary("hardsigmoid", lambda x: where(x <= -3, 0, where(x >= 3, 1, (x + 3) / 6)), dx=lambda g, x: where(logical_and(x > -3, x < 3), g / 6, 0),
      doc="(x + 3) / 6 limited to [0, 1]", special="x = -3 and x = 3: 0", inplace=True)
unary("hardswish", lambda x: where(x <= -3, -0.0, where(x >= 3, x, x * (x + 3) / 6)),
      dx=lambda g, x: g * where(x <= -3, 0, where(x < 3, x / 3 + 0.5, 1)), doc="x * hardsigmoid(x)",
      special="x = -3: 0; x = 3: 1", inplace=True)
unary("threshold", lambda x, threshold, value: where(x <= threshold, value, x), attrs="threshold value",
      dx=lambda g, x, threshold, value: where(x <= threshold, 0, g), doc="x if x > threshold, else value", special="x = threshold: 0",
      inplace=True)
unary("hardshrink", lambda x, lambd: where(logical_and(x >= -lambd, x <= lambd), 0, x), attrs="lambd=0.5",
      dx=lambda g, x, lambd: where(logical_and(x >= -lambd, x <= lambd), 0, g), doc="x if |x| > lambd, else 0", special="|x| = lambd: 0")
unary("softshrink", lambda x, lambd: where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0)), attrs="lambd=0.5",
      dx=lambda g, x, lambd: where(logical_and(x >= -lambd, x <= lambd), 0, g), doc="x moved towards 0 by lambd, not beyond",
      special="|x| = lambd: 0")
unary("tanhshrink", lambda x: x - tanh(x), dx=lambda g, x: g * (tanh(x) * tanh(x)), doc="x - tanh(x)")
unary("softsign", lambda x: where(abs(x) == INF, sign(x), x / (1 + abs(x))), dx=lambda g, x: g / ((1 + abs(x)) * (1 + abs(x))),
      doc="x / (1 + |x|)")
unary("mish", lambda x: _mish(where(x < -1000, -1000, x), exp(where(x > 40, 40, x))),
      dx=lambda g, x: g * _mish_slope(where(x > 40, 40, where(x < -1000, -1000, x)), exp(where(x > 40, 40, x))), doc="x * tanh(softplus(x))", inplace=True)
binary("prelu", lambda x, w: where(x > 0, x, x * w), inputs="x w", public=False, dx=lambda g, x, w: where(x > 0, g, g * w),
       dw=lambda g, x: where(x > 0, 0, g * x), doc="x if x > 0, else w * x", special="x = 0: w")
unary("normal_cdf", lambda x: normal_cdf(x), public=False, dx=lambda g, x: g * (INV_SQRT_2PI * exp(-0.5 * x * x)),
      doc="standard normal distribution function, its absolute error a rounding error of 1")
unary("gelu", lambda x: _above(x) * normal_cdf(x), dx=lambda g, x: g * (normal_cdf(x) + _limited(x) * (INV_SQRT_2PI * exp(-0.5 * x * x))),
      doc="x times the standard normal distribution function of x")
unary("gelu_tanh", lambda x: 0.5 * _above(x) * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x)))),
      dx=lambda g, x: g * _gelu_tanh_slope(_limited(x), tanh(SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x)))),
      doc="gelu by its tanh approximation (Hendrycks and Gimpel, 2016)")
unary("silu", lambda x: _above(x) * sigmoid(x), dx=lambda g, x: g * (sigmoid(x) * (1 + _limited(x) * (1 - sigmoid(x)))),
      doc="x * sigmoid(x)", inplace=True)
unary("softplus", lambda x, beta, threshold: where(x * beta > threshold, x, softplus(x * beta) / beta), attrs="beta=1 threshold=20",
      dx=lambda g, x, beta, threshold: where(x * beta > threshold, g, g * sigmoid(x * beta)),
      doc="log(1 + e ** (beta * x)) / beta, and x itself where beta * x > threshold")


def _above(x):
    """x, but a number for -inf, of which a product with 0 is 0."""
    return where(x < -1000, -1000, x)


def _limited(x):
    return where(x > 1000, 1000, _above(x))


def _mish(x, e):
    """x tanh(log(1 + e)), e = e ** x: no logarithm is needed."""
    return x * (e * (e + 2) / (e * (e + 2) + 2))


def _mish_slope(x, e):
    n = e * (e + 2)
    return n / (n + 2) + 4 * x * (e / (n + 2)) * ((e + 1) / (n + 2))


def _gelu_tanh_slope(x, t):
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (SQRT_2_OVER_PI * (1 + 0.134145 * (x * x)))


# ---- choosing

def _above_bound(x, min):
    return where(logical_or(x < min, isnan(min)), min, x)


def _below_bound(x, max):
    return where(logical_or(x > max, isnan(max)), max, x)


binary("maximum", lambda a, b: maximum(a, b), da=lambda g, a, b: where(a < b, 0, where(a == b, g * 0.5, g)),
       db=lambda g, a, b: where(b < a, 0, where(a == b, g * 0.5, g)), dtypes="all", doc="the larger of a and b; NaN wins", special="a = b: half each; NaN: to both")
binary("minimum", lambda a, b: minimum(a, b), da=lambda g, a, b: where(a > b, 0, where(a == b, g * 0.5, g)),
       db=lambda g, a, b: where(b > a, 0, where(a == b, g * 0.5, g)), dtypes="all", doc="the smaller of a and b; NaN wins", special="a = b: half each; NaN: to both")
unary("clamp", lambda x, min, max: where(where(x < min, min, x) > max, max, where(x < min, min, x)), attrs="min max", public=False,
      dx=lambda g, x, min, max: where(logical_and(x >= min, x <= max), g, 0), dtypes="number", doc="x limited to [min, max]",
      special="at the bounds: 1")
ternary("clamp_tensor", "x min max", lambda x, min, max: _below_bound(_above_bound(x, min), max), public=False,
        dx=lambda g, x, min, max: where(logical_or(logical_or(x < min, isnan(min)), logical_or(x > max, isnan(max))), 0, g),
        dmin=lambda g, x, min, max: where(logical_or(min > max, isnan(max)), 0, where(logical_or(x < min, isnan(min)), g, 0)),
        dmax=lambda g, x, min, max: where(logical_or(_above_bound(x, min) > max, isnan(max)), g, 0),
        doc="x limited to [min, max], which may be tensors; a bound that is NaN gives NaN", special="at the bounds: 1, to x")
binary("fmax", lambda a, b: where(logical_or(a >= b, isnan(b)), a, b), da=lambda g, a, b: where(logical_or(a >= b, isnan(b)), g, 0),
       db=lambda g, a, b: where(logical_or(a >= b, isnan(b)), 0, g), dtypes="all", doc="the larger of a and b; NaN loses", special="a = b: to a")
binary("fmin", lambda a, b: where(logical_or(a <= b, isnan(b)), a, b), da=lambda g, a, b: where(logical_or(a <= b, isnan(b)), g, 0),
       db=lambda g, a, b: where(logical_or(a <= b, isnan(b)), 0, g), dtypes="all", doc="the smaller of a and b; NaN loses", special="a = b: to a")
ternary("where", "c a b", lambda c, a, b: where(c, a, b), da=lambda g, c: where(c, g, 0), db=lambda g, c: where(c, 0, g),
        public=False, dtypes="all", types={"c": "bool"}, doc="a where c is true, else b")
unary("floor", lambda x: floor(x), dx=lambda g: g * 0, dtypes="number", doc="largest integer <= x", special="0 everywhere")
unary("ceil", lambda x: ceil(x), dx=lambda g: g * 0, dtypes="number", doc="smallest integer >= x", special="0 everywhere")
unary("round", lambda x: round(x), dx=lambda g: g * 0, dtypes="number", doc="nearest integer, halves to even", special="0 everywhere")
unary("trunc", lambda x: trunc(x), dx=lambda g: g * 0, dtypes="number", doc="integer part of x", special="0 everywhere")
unary("frac", lambda x: x - trunc(x), dx=lambda g: g, doc="x - trunc(x)", special="at integers: 1")
binary("copysign", lambda a, b: copysign(a, b), da=lambda g, a, b: g * (sign(a) * copysign(1, b)), db=lambda g: g * 0,
       doc="|a| with the sign of b", special="a = 0: 0")
binary("heaviside", lambda input, values: where(input == 0, values, where(input > 0, 1, 0)), inputs="input values",
       dinput=lambda g: g * 0, dvalues=lambda g, input: where(input == 0, g, 0), dtypes="all",
       doc="0 where input < 0, values where it is 0, 1 where it is larger", special="0 everywhere for input")
binary("nextafter", lambda a, b: nextafter(a, b), doc="the next number after a towards b",
       special="not differentiable: the result does not require a gradient")
unary("nan_to_num", lambda x, nan, posinf, neginf: where(isnan(x), nan, where(x == INF, posinf, where(x == -INF, neginf, x))),
      attrs="nan posinf neginf", public=False, dx=lambda g, x: where(isfinite(x), g, 0), doc="NaN and infinities replaced by numbers",
      special="at what is replaced: 0")

# ---- comparisons and logic (bool results)

binary("eq", lambda a, b: a == b, dtypes="all", result="bool", doc="a == b")
binary("ne", lambda a, b: a != b, dtypes="all", result="bool", doc="a != b")
binary("lt", lambda a, b: a < b, dtypes="all", result="bool", doc="a < b")
binary("le", lambda a, b: a <= b, dtypes="all", result="bool", doc="a <= b")
binary("gt", lambda a, b: a > b, dtypes="all", result="bool", doc="a > b")
binary("ge", lambda a, b: a >= b, dtypes="all", result="bool", doc="a >= b")
binary("logical_and", lambda a, b: logical_and(a, b), dtypes="all", result="bool", doc="a and b, as truth values")
binary("logical_or", lambda a, b: logical_or(a, b), dtypes="all", result="bool", doc="a or b, as truth values")
binary("logical_xor", lambda a, b: logical_xor(a, b), dtypes="all", result="bool", doc="exactly one of a and b, as truth values")
unary("logical_not", lambda x: logical_not(x), dtypes="all", result="bool", doc="not x, as a truth value")
binary("bitwise_and", lambda a, b: bitwise_and(a, b), dtypes="integral", doc="a & b, bit by bit")
binary("bitwise_or", lambda a, b: bitwise_or(a, b), dtypes="integral", doc="a | b, bit by bit")
binary("bitwise_xor", lambda a, b: bitwise_xor(a, b), dtypes="integral", doc="a ^ b, bit by bit")
unary("bitwise_not", lambda x: bitwise_not(x), dtypes="integral", doc="~x, bit by bit; of a bool: not x")
binary("isclose", lambda input, other, rtol, atol, equal_nan: logical_or(logical_or(input == other, logical_and(
    abs(input - other) < INF, abs(input - other) <= atol + abs(rtol * other))), logical_and(equal_nan > 0, logical_and(isnan(input), isnan(other)))),
    inputs="input other", attrs="rtol atol equal_nan", public=False, result="bool",
    doc="|input - other| <= atol + rtol * |other|, or both equal; equal_nan: or both NaN")
unary("isnan", lambda x: isnan(x), dtypes="all", result="bool", doc="whether x is NaN")
unary("isinf", lambda x: isinf(x), dtypes="all", result="bool", doc="whether x is infinite")
unary("isfinite", lambda x: isfinite(x), dtypes="all", result="bool", doc="whether x is neither infinite nor NaN")

unary("isposinf", lambda x: logical_and(isinf(x), x > 0), dtypes="all", result="bool", doc="whether x is inf")
unary("isneginf", lambda x: logical_and(isinf(x), x < 0), dtypes="all", result="bool", doc="whether x is -inf")
unary("signbit", lambda x: signbit(x), dtypes="all", result="bool", doc="whether x is negative or -0")
binary("bitwise_left_shift", lambda a, b: bitwise_left_shift(a, b), dtypes="integer", doc="a << b: 0 where b is negative or beyond a's bits")
binary("bitwise_right_shift", lambda a, b: bitwise_right_shift(a, b), dtypes="integer",
       doc="a >> b: 0 or -1 where b is negative or beyond a's bits")

# ---- losses, elementwise: `reduced` ops in the engine follow them by a sum or a mean in the same node


def _at_least(bound, x):
    """max(x, bound); NaN stays. Unlike maximum it does not keep a loop from being vectorised."""
    return where(x < bound, bound, x)


def _within(d, limit):
    """d limited to [-limit, limit]; NaN stays."""
    return where(d < -limit, -limit, where(d > limit, limit, d))


binary("mse_loss", lambda x, t: (x - t) * (x - t), inputs="x t", public=False, dx=lambda g, x, t: g * ((x - t) + (x - t)),
       dt=lambda g, x, t: -g * ((x - t) + (x - t)), doc="(x - t) ** 2")
binary("l1_loss", lambda x, t: abs(x - t), inputs="x t", public=False, dx=lambda g, x, t: g * sign(x - t), dt=lambda g, x, t: -g * sign(x - t),
       doc="|x - t|", special="x = t: 0")
binary("huber_loss", lambda x, t, delta, scale: _within(x - t, delta) * scale * ((x - t) - _within(x - t, delta) * 0.5), inputs="x t",
       attrs="delta scale", public=False, dx=lambda g, x, t, delta, scale: g * (_within(x - t, delta) * scale),
       dt=lambda g, x, t, delta, scale: -g * (_within(x - t, delta) * scale),
       doc="scale * d ** 2 / 2 where d = |x - t| <= delta, scale * delta * (d - delta / 2) elsewhere")
binary("binary_cross_entropy", lambda x, t: -(t * _at_least(-100, log(x)) + (1 - t) * _at_least(-100, log1p(-x))), inputs="x t", public=False,
       dx=lambda g, x, t: g * ((x - t) / _at_least(1e-12, (1 - x) * x)),
       dt=lambda g, x: g * (_at_least(-100, log1p(-x)) - _at_least(-100, log(x))),
       doc="-(t log x + (1 - t) log(1 - x)), each logarithm at least -100", special="x = 0 or 1: finite, as the logarithms are bounded")
binary("binary_cross_entropy_with_logits", lambda x, t: (1 - t) * x + softplus(-x), inputs="x t", public=False,
       dx=lambda g, x, t: g * (sigmoid(x) - t), dt=lambda g, x: -g * x,
       doc="binary cross entropy of sigmoid(x), without overflow")
