"""The functions that rules are written in: `exp(x)`, `where(c, a, b)`, ...

Relies on nothing. Rules (rows.py) call them; what they do depends on the operand: on a symbol they build an expression
(symbols.py), on a tensor they run the operation, on numbers they compute. Any operand type takes part by offering
`__apply__(name, args)`.
"""

import math


def _apply(name, args):
    for arg in args:
        if isinstance(arg, (tuple, list)) and arg:
            arg = arg[0]
        apply = getattr(type(arg), "__apply__", None)
        if apply is not None:
            return apply(name, args)
    return _on_numbers(name, args)


def _on_numbers(name, args):
    if name == "where":
        return args[1] if args[0] else args[2]
    if name == "square":
        return args[0] * args[0]
    if name == "sigmoid":
        return 1 / (1 + math.exp(-args[0]))
    if name == "logical_and":
        return bool(args[0]) and bool(args[1])
    if name == "logical_or":
        return bool(args[0]) or bool(args[1])
    return getattr(math, name)(*args)


def _function(name):
    def function(*args):
        return _apply(name, args)
    function.__name__ = function.__qualname__ = name
    return function


_NAMES = (
    "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sin", "cos",
    "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "sigmoid", "logsigmoid", "softplus", "erf", "floor", "ceil",
    "round", "trunc", "floor_divide", "remainder", "pow", "maximum", "minimum", "where", "eq", "logical_and", "logical_or",
    "logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "isnan", "isinf", "isfinite",
    "bitwise_left_shift", "bitwise_right_shift", "erfc", "erfinv", "lgamma", "digamma", "trigamma", "polygamma", "hypot", "copysign",
    "fmod", "nextafter", "signbit", "normal_cdf",
    "matmul", "swap_axes", "reshape", "expand", "permute", "sum_to", "total", "spread", "gather", "put", "slice", "unslice",
    "index", "index_back", "index_fill", "as_strided", "as_strided_back", "fill_strided", "concatenate", "pieces",
    "cross_entropy_back",
    "band", "cofactor", "cross_rows", "det", "inverse_or_inf", "matrix_exp", "pair_matrix", "permutation_matrix", "pinv", "powers",
    "solve_again", "solve_triangular", "svd",
    "xlogy", "zeta", "erfcx", "i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0",
    "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai", "airy_derivative",
    "gamma_density", "gammainc", "gammaincc", "log_ndtr", "ndtri", "sinc",
    "diagonal", "diagonal_back", "unfold_back", "triangle", "stack", "unbind", "flip", "roll", "pad", "scatter_zero", "scatter_kept",
    "index_kept", "scatter_dx", "scatter_dv", "embedding_back",
    "convolution", "convolution_input", "convolution_weight", "unfold_windows", "fold_windows", "take_planes", "put_planes", "sampled",
    "sampled_input", "sampled_weight",
    "average_windows", "average_windows_back", "resample", "resample_back", "normalize_rows_back", "normalize_channels_back",
    "cumulate", "cumprod", "recurrence", "full_like",
)
globals().update({_name: _function(_name) for _name in _NAMES})
