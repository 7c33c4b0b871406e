"""Accuracy that the elementwise functions promise: one row per function, dtype and domain, with the largest error in ULP.

It relies on nothing; the figures are the header's (autograd_cy/kernels/vecmath*.h), measured against 113-bit arithmetic over
random bit patterns (every exponent), random values in the domains where a function bends, and special values.
test_vecmath.py reads it, through the library's public operations.

A row is (function, dtype, low, high, max_ulp). Inputs are to be spread over [low, high] by value and by exponent, both signs where the
domain has both. One ULP is the spacing of floats at the exact result (2^-149 or 2^-1074 for subnormal results); a result that
rounds to infinity counts from the largest float. Binary functions take both inputs from the domain.

Beyond the rows, at every function: NaN gives NaN (except pow(1, NaN) = pow(NaN, 0) = 1), infinities give the limit or NaN, odd functions
keep -0, and every instruction-set level gives the same bits.
"""

INF, NAN = float("inf"), float("nan")
BIG32, BIG64 = 3.4028234663852886e38, 1.7976931348623157e308
TRIG = 2.0 ** 20      # beyond it sin, cos and tan are the C library's

ULP = [
    ("exp", "float32", -110.0, 90.0, 1.0), ("exp", "float64", -760.0, 712.0, 1.0),
    ("expm1", "float32", -110.0, 90.0, 1.7), ("expm1", "float64", -760.0, 712.0, 1.7),
    ("exp2", "float32", -155.0, 130.0, 1.0), ("exp2", "float64", -1080.0, 1030.0, 1.1),
    ("log", "float32", 0.0, BIG32, 1.0), ("log", "float64", 0.0, BIG64, 1.0),
    ("log2", "float32", 0.0, BIG32, 1.5), ("log2", "float64", 0.0, BIG64, 1.5),
    ("log10", "float32", 0.0, BIG32, 1.7), ("log10", "float64", 0.0, BIG64, 1.7),
    ("log1p", "float32", -1.0, BIG32, 1.6), ("log1p", "float64", -1.0, BIG64, 1.6),
    ("sin", "float32", -TRIG, TRIG, 1.6), ("sin", "float64", -TRIG, TRIG, 1.0),
    ("cos", "float32", -TRIG, TRIG, 1.6), ("cos", "float64", -TRIG, TRIG, 1.0),
    ("tan", "float32", -TRIG, TRIG, 1.7), ("tan", "float64", -TRIG, TRIG, 1.8),
    ("tanh", "float32", -BIG32, BIG32, 1.6), ("tanh", "float64", -BIG64, BIG64, 1.6),
    ("sinh", "float32", -90.0, 90.0, 1.8), ("sinh", "float64", -712.0, 712.0, 1.8),
    ("cosh", "float32", -90.0, 90.0, 1.5), ("cosh", "float64", -712.0, 712.0, 1.5),
    ("asin", "float32", -1.0, 1.0, 2.5), ("asin", "float64", -1.0, 1.0, 2.5),
    ("acos", "float32", -1.0, 1.0, 1.5), ("acos", "float64", -1.0, 1.0, 1.5),
    ("atan", "float32", -BIG32, BIG32, 2.0), ("atan", "float64", -BIG64, BIG64, 2.0),
    ("sigmoid", "float32", -110.0, 110.0, 2.5), ("sigmoid", "float64", -760.0, 760.0, 2.5),
    ("softplus", "float32", -110.0, 110.0, 1.9), ("softplus", "float64", -760.0, 760.0, 1.9),
    ("logsigmoid", "float32", -110.0, 110.0, 1.9), ("logsigmoid", "float64", -760.0, 760.0, 1.9),
    ("erf", "float32", -BIG32, BIG32, 1.6), ("erf", "float64", -BIG64, BIG64, 1.6),
    ("erfc", "float32", -20.0, 11.0, 4.0), ("erfc", "float64", -20.0, 28.0, 4.0),
    ("erfinv", "float32", -1.0, 1.0, 3.5), ("erfinv", "float64", -1.0, 1.0, 2.5),
    ("asinh", "float32", -BIG32, BIG32, 2.5), ("asinh", "float64", -BIG64, BIG64, 2.5),
    ("acosh", "float32", 1.0, BIG32, 2.5), ("acosh", "float64", 1.0, BIG64, 2.5),
    ("atanh", "float32", -1.0, 1.0, 2.5), ("atanh", "float64", -1.0, 1.0, 2.5),
    ("lgamma", "float32", -BIG32, BIG32, 0.6), ("lgamma", "float64", 0.0, BIG64, 3.0),       # left of 0 absolute: 2e-15 below 10
    ("hypot", "float32", -BIG32, BIG32, 0.6), ("hypot", "float64", -BIG64, BIG64, 1.0),
    ("fmod", "float32", -BIG32, BIG32, 0.0), ("fmod", "float64", -BIG64, BIG64, 0.0),
    ("sqrt", "float32", 0.0, BIG32, 0.5), ("sqrt", "float64", 0.0, BIG64, 0.5),
    ("rsqrt", "float32", 0.0, BIG32, 1.5), ("rsqrt", "float64", 0.0, BIG64, 1.5),
    ("cbrt", "float32", -BIG32, BIG32, 1.5), ("cbrt", "float64", -BIG64, BIG64, 1.5),
    ("atan2", "float32", -BIG32, BIG32, 0.6), ("atan2", "float64", -BIG64, BIG64, 2.0),
    ("pow", "float32", 0.0, BIG32, 0.6), ("pow", "float64", 0.0, BIG64, 1.2),
    ("remainder", "float32", -BIG32, BIG32, 0.5), ("remainder", "float64", -BIG64, BIG64, 0.5),
]

# Exact, whatever the input.
EXACT = ["abs", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum", "copysign", "fmax", "fmin", "nextafter", "frac"]

# (function, inputs, result) for both dtypes.
SPECIAL = [
    ("exp", (-INF,), 0.0), ("exp", (INF,), INF), ("exp", (0.0,), 1.0), ("expm1", (-INF,), -1.0), ("expm1", (-0.0,), -0.0),
    ("exp2", (10.0,), 1024.0), ("exp2", (-INF,), 0.0), ("log", (0.0,), -INF), ("log", (-0.0,), -INF), ("log", (-1.0,), NAN),
    ("log", (INF,), INF), ("log", (1.0,), 0.0), ("log2", (8.0,), 3.0), ("log10", (1000.0,), 3.0), ("log1p", (-1.0,), -INF),
    ("log1p", (-0.0,), -0.0), ("log1p", (-2.0,), NAN), ("log1p", (INF,), INF), ("tanh", (INF,), 1.0), ("tanh", (-0.0,), -0.0),
    ("sigmoid", (0.0,), 0.5), ("sigmoid", (INF,), 1.0), ("sigmoid", (-INF,), 0.0), ("softplus", (-INF,), 0.0),
    ("softplus", (INF,), INF), ("logsigmoid", (-INF,), -INF), ("sin", (-0.0,), -0.0), ("sin", (INF,), NAN), ("cos", (0.0,), 1.0),
    ("cos", (-INF,), NAN), ("tan", (-0.0,), -0.0), ("sinh", (-INF,), -INF), ("cosh", (-INF,), INF), ("asin", (-0.0,), -0.0),
    ("asin", (1.5,), NAN), ("acos", (1.0,), 0.0), ("acos", (-1.5,), NAN), ("atan", (-0.0,), -0.0), ("erf", (-INF,), -1.0),
    ("erf", (-0.0,), -0.0), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1.0,), NAN), ("rsqrt", (0.0,), INF), ("cbrt", (-0.0,), -0.0),
    ("cbrt", (-INF,), -INF), ("cbrt", (NAN,), NAN), ("cbrt", (-27.0,), -3.0), ("round", (2.5,), 2.0),
    ("round", (-0.5,), -0.0), ("sign", (-0.0,), 0.0), ("atan2", (-0.0, 1.0), -0.0), ("atan2", (0.0, 0.0), 0.0),
    ("pow", (1.0, NAN), 1.0), ("pow", (NAN, 0.0), 1.0), ("pow", (-1.0, INF), 1.0), ("pow", (0.0, -1.0), INF),
    ("pow", (-0.0, -1.0), -INF), ("pow", (-2.0, 3.0), -8.0), ("pow", (-2.0, 0.5), NAN), ("pow", (0.5, -INF), INF),
    ("maximum", (1.0, NAN), NAN), ("minimum", (NAN, 1.0), NAN), ("remainder", (-7.0, 3.0), 2.0), ("remainder", (7.0, -3.0), -2.0),
    ("remainder", (-1.0, INF), INF), ("remainder", (1.0, 0.0), NAN), ("floor_divide", (-7.0, 2.0), -4.0),
    ("floor_divide", (1.0, 0.0), INF), ("floor_divide", (-1.0, INF), -1.0),
]
