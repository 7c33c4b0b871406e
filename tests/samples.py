"""The table of samples: one row per use of an operation, with its NumPy reference and the inputs to try it on.

Relies on autograd_cy's public names (looked up when a row runs, so that a missing operation fails only its row), NumPy and SciPy.
The forward, gradient, layout, table and documentation tests rely on it.
"""

import functools
import itertools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import integrate, special, stats
from scipy.linalg import expm as scipy_expm
from scipy.linalg import lu as scipy_lu

import autograd_cy as ag

FLOATS = ("float32", "float64")
INTS = ("int64", "int32", "uint8")


# ---------------------------------------------------------------------------------------------------------------------
# Inputs: a domain gives the numbers, away from kinks and poles so that finite differences are smooth.


def _away(rng, shape):
    return rng.uniform(0.2, 2.0, shape) * rng.choice([-1.0, 1.0], shape)


def _distinct(rng, shape):
    n = int(np.prod(shape, dtype=int))
    return (rng.permutation(n).reshape(shape) - n / 2) * 0.37 + 0.1


def _between_integers(rng, shape):
    return rng.integers(-3, 4, shape) + rng.uniform(0.15, 0.4, shape)


def _probabilities(rng, shape):
    p = rng.uniform(0.1, 1.0, shape)
    return p / p.sum(axis=-1 if len(shape) == 1 else 1, keepdims=True)


DOMAINS: dict[str, Callable] = {
    "real": lambda rng, shape: rng.uniform(-2.0, 2.0, shape),
    "away": _away,
    "positive": lambda rng, shape: rng.uniform(0.3, 3.0, shape),
    "unit": lambda rng, shape: rng.uniform(-0.9, 0.9, shape),
    "inside": lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    "wide": lambda rng, shape: rng.uniform(-30.0, 30.0, shape),
    "distinct": _distinct,
    "between": _between_integers,
    "probabilities": _probabilities,
    "above": lambda rng, shape: rng.uniform(1.1, 4.0, shape),
    "gamma": lambda rng, shape: rng.uniform(0.3, 0.9, shape) + rng.integers(-3, 4, shape),
    "steps": lambda rng, shape: rng.integers(-15, 16, shape) * 0.5 + rng.uniform(0.1, 0.4, shape),
    "mask": lambda rng, shape: rng.random(shape) < 0.5,
    "whole": lambda rng, shape: rng.integers(-4, 5, shape).astype("f8"),  # exact in every dtype; makes ties
    "bits": lambda rng, shape: rng.integers(0, 7, shape).astype("f8"),
    "class3": lambda rng, shape: rng.integers(0, 3, shape),
}


@dataclass
class Sample:
    """One use of one operation."""

    name: str  # unique
    op: str  # the operation it stands for: a row of the table, or the public name
    call: Callable  # on tensors
    ref: Callable  # on float64 arrays
    inputs: tuple  # (shape, domain) each
    grad: Any = True  # True, False, or one flag per input
    elementwise: bool = False  # may also be run on 0-d and zero-size inputs
    second: bool = True  # has a second derivative worth checking
    dtypes: tuple = FLOATS
    tol: dict = field(default_factory=dict)  # dtype -> (rtol, atol)
    exact_ties: bool = True  # repeated values do not make it non-differentiable

    def arrays(self, dtype="float64", shapes=None):
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made = []
        for k, (shape, domain) in enumerate(self.inputs):
            a = np.asarray(DOMAINS[domain](rng, shape if shapes is None else shapes[k]))
            made.append(a.astype(dtype) if a.dtype.kind == "f" else a)
        return made

    def differentiable(self):
        """One flag per input."""
        if isinstance(self.grad, tuple):
            return self.grad
        return tuple(self.grad and domain not in ("mask", "class3") for _, domain in self.inputs)

    def tolerance(self, dtype):
        return self.tol.get(dtype, {"float32": (1e-5, 2e-6), "float64": (1e-11, 1e-12)}.get(str(dtype), (0, 0)))


SAMPLES: list[Sample] = []


def add(name, call, ref, *inputs, op=None, **more):
    assert all(s.name != name for s in SAMPLES), name
    SAMPLES.append(Sample(name, op or name.split("[")[0], call, ref, inputs, **more))


def public(path, **attributes):
    """The public function of that dotted path, looked up when it is called."""

    def call(*tensors):
        return functools.reduce(getattr, path.split("."), ag)(*tensors, **attributes)

    return call


def method(name, *args, **attributes):
    def call(x, *tensors):
        return getattr(x, name)(*tensors, *args, **attributes)

    return call


# ---------------------------------------------------------------------------------------------------------------------
# Elementwise, one input


def sigmoid(x):
    return special.expit(x)


def softplus(x):
    return np.logaddexp(0.0, x)


def gelu(x):
    return 0.5 * x * (1 + special.erf(x / np.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def mish(x):
    return x * np.tanh(softplus(x))


SELU = 1.0507009873554805

UNARY = [  # public path, reference, domain, what differs
    ("neg", np.negative, "real", {}),
    ("abs", np.abs, "away", {}),
    ("sign", np.sign, "away", {}),
    ("square", np.square, "real", {}),
    ("sqrt", np.sqrt, "positive", {}),
    ("rsqrt", lambda x: 1 / np.sqrt(x), "positive", {}),
    ("cbrt", np.cbrt, "away", {}),
    ("reciprocal", lambda x: 1 / x, "away", {}),
    ("exp", np.exp, "real", {}),
    ("expm1", np.expm1, "real", {}),
    ("exp2", np.exp2, "real", {}),
    ("log", np.log, "positive", {}),
    ("log2", np.log2, "positive", {}),
    ("log10", np.log10, "positive", {}),
    ("log1p", np.log1p, "unit", {}),
    ("sin", np.sin, "real", {}),
    ("cos", np.cos, "real", {}),
    ("tan", np.tan, "unit", {}),
    ("tanh", np.tanh, "real", {}),
    ("sinh", np.sinh, "real", {}),
    ("cosh", np.cosh, "real", {}),
    ("asin", np.arcsin, "unit", {}),
    ("acos", np.arccos, "unit", {}),
    ("atan", np.arctan, "real", {}),
    ("sigmoid", sigmoid, "real", {}),
    ("relu", lambda x: np.maximum(x, 0), "away", {}),
    ("erf", special.erf, "real", {}),
    ("floor", np.floor, "between", {}),
    ("ceil", np.ceil, "between", {}),
    ("round", np.round, "between", {}),
    ("trunc", np.trunc, "between", {}),
    ("nn.functional.leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), "away", {}),
    ("nn.functional.elu", lambda x: np.where(x > 0, x, np.expm1(x)), "away", {}),
    ("nn.functional.gelu", gelu, "real", {}),
    ("nn.functional.silu", lambda x: x * sigmoid(x), "real", {}),
    ("nn.functional.softplus", softplus, "real", {}),
    ("nn.functional.logsigmoid", lambda x: -softplus(-x), "real", {}),
    ("asinh", np.arcsinh, "real", {}),
    ("acosh", np.arccosh, "above", {}),
    ("atanh", np.arctanh, "unit", {}),
    ("erfc", special.erfc, "real", {}),
    ("erfinv", special.erfinv, "unit", {}),
    ("lgamma", special.gammaln, "gamma", {"tol": {"float32": (1e-5, 2e-5)}}),
    ("digamma", special.digamma, "gamma", {"tol": {"float32": (1e-5, 2e-5)}}),
    ("sinc", np.sinc, "real", {}),
    ("logit", special.logit, "inside", {}),
    ("deg2rad", np.deg2rad, "wide", {}),
    ("rad2deg", np.rad2deg, "real", {}),
    ("frac", lambda x: x - np.trunc(x), "between", {}),
    ("nan_to_num", np.nan_to_num, "real", {}),
    ("nn.functional.softsign", lambda x: x / (1 + np.abs(x)), "away", {}),
    ("nn.functional.tanhshrink", lambda x: x - np.tanh(x), "real", {}),
    ("nn.functional.relu6", lambda x: np.clip(x, 0, 6), "steps", {}),
    ("nn.functional.hardtanh", lambda x: np.clip(x, -1, 1), "steps", {}),
    ("nn.functional.hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), "steps", {}),
    ("nn.functional.hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "steps", {}),
    ("nn.functional.hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0), "steps", {}),
    ("nn.functional.softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), "steps", {}),
    ("nn.functional.selu", lambda x: SELU * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), "away", {}),
    ("nn.functional.celu", lambda x: np.where(x > 0, x, np.expm1(x)), "away", {}),
    ("nn.functional.mish", mish, "real", {}),
]
for _path, _ref, _domain, _more in UNARY:
    add(_path.split(".")[-1], public(_path), _ref, ((2, 3), _domain), elementwise=True, **_more)

for _name in ("exp", "log", "tanh", "sigmoid", "abs", "neg", "sqrt", "relu", "square", "reciprocal", "sin", "floor", "erf"):
    _row = next(s for s in SAMPLES if s.name == _name)
    add(f"{_name}[method]", method(_name), _row.ref, *_row.inputs, elementwise=True)

add("neg[operator]", lambda x: -x, np.negative, ((2, 3), "real"), elementwise=True)
add("abs[operator]", lambda x: abs(x), np.abs, ((2, 3), "away"), elementwise=True)
add(
    "leaky_relu[slope]",
    public("nn.functional.leaky_relu", negative_slope=0.3),
    lambda x: np.where(x > 0, x, 0.3 * x),
    ((2, 3), "away"),
    elementwise=True,
)
add(
    "elu[alpha]",
    public("nn.functional.elu", alpha=0.7),
    lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)),
    ((2, 3), "away"),
    elementwise=True,
)
add("gelu_tanh", public("nn.functional.gelu", approximate="tanh"), gelu_tanh, ((2, 3), "real"), elementwise=True)
add(
    "softplus[beta]",
    public("nn.functional.softplus", beta=2.0),
    lambda x: softplus(2 * x) / 2,
    ((2, 3), "real"),
    elementwise=True,
)
add(
    "silu[wide]",
    public("nn.functional.silu"),
    lambda x: x * sigmoid(x),
    ((2, 3), "wide"),
    elementwise=True,
    tol={"float32": (1e-5, 1e-6)},
)
add("sigmoid[wide]", public("sigmoid"), sigmoid, ((4, 5), "wide"), elementwise=True, tol={"float64": (1e-11, 1e-15)})
add("tanh[wide]", public("tanh"), np.tanh, ((4, 5), "wide"), elementwise=True)
add(
    "softplus[wide]",
    public("nn.functional.softplus"),
    softplus,
    ((4, 5), "wide"),
    elementwise=True,
    tol={"float64": (1e-8, 1e-8)},
)  # PyTorch's threshold: x itself above 20, 2e-9 away from the exact value
add(
    "celu[alpha]",
    public("nn.functional.celu", alpha=0.7),
    lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)),
    ((2, 3), "away"),
    elementwise=True,
)
add(
    "hardtanh[bounds]",
    public("nn.functional.hardtanh", min_val=-2.5, max_val=0.5),
    lambda x: np.clip(x, -2.5, 0.5),
    ((3, 4), "steps"),
    elementwise=True,
)
add(
    "threshold",
    public("nn.functional.threshold", threshold=0.5, value=20.0),
    lambda x: np.where(x > 0.5, x, 20.0),
    ((3, 4), "steps"),
    elementwise=True,
)
add(
    "hardshrink[lambd]",
    public("nn.functional.hardshrink", lambd=2.0),
    lambda x: np.where(np.abs(x) > 2, x, 0),
    ((3, 4), "steps"),
    elementwise=True,
)
add(
    "softshrink[lambd]",
    public("nn.functional.softshrink", lambd=2.0),
    lambda x: np.sign(x) * np.maximum(np.abs(x) - 2, 0),
    ((3, 4), "steps"),
    elementwise=True,
)
add("mish[wide]", public("nn.functional.mish"), mish, ((4, 5), "wide"), elementwise=True)
add(
    "logit[eps]",
    public("logit", eps=0.25),
    lambda x: special.logit(np.clip(x, 0.25, 0.75)),
    ((3, 4), "inside"),
    elementwise=True,
)
for _n in (1, 2, 3, 4):
    add(
        "polygamma" if _n == 1 else f"polygamma[{_n}]",
        lambda x, n=_n: ag.polygamma(n, x),
        lambda x, n=_n: special.polygamma(n, x),
        ((2, 3), "positive"),
        elementwise=True,
    )
add("clamp", method("clamp", -0.5, 1.0), lambda x: np.clip(x, -0.5, 1.0), ((3, 4), "distinct"), elementwise=True)
add("clamp[min]", method("clamp", min=0.25), lambda x: np.maximum(x, 0.25), ((3, 4), "distinct"), elementwise=True)
add("clamp[max]", method("clamp", max=0.25), lambda x: np.minimum(x, 0.25), ((3, 4), "distinct"), elementwise=True)
add("clamp_tensor", public("clamp"), np.clip, ((3, 4), "real"), ((3, 4), "unit"), ((3, 4), "above"), elementwise=True)
add("clamp_tensor[broadcast]", public("clamp"), np.clip, ((3, 4), "real"), ((4,), "unit"), ((3, 1), "above"))
add("clamp_tensor[min]", lambda x, low: x.clamp(min=low), np.maximum, ((3, 4), "real"), ((3, 4), "real"), elementwise=True)
add("clamp_tensor[max]", lambda x, high: x.clamp(max=high), np.minimum, ((3, 4), "real"), ((3, 4), "real"), elementwise=True)
add("clamp[public]", public("clamp", min=-1.0, max=0.3), lambda x: np.clip(x, -1.0, 0.3), ((3, 4), "distinct"), elementwise=True)


# ---------------------------------------------------------------------------------------------------------------------
# Elementwise, two inputs and more: equal shapes, broadcast shapes, numbers on either side

BINARY = [  # name, on tensors, reference, domains, what differs
    ("add", lambda a, b: a + b, np.add, ("real", "real"), {}),
    ("sub", lambda a, b: a - b, np.subtract, ("real", "real"), {}),
    ("mul", lambda a, b: a * b, np.multiply, ("real", "real"), {}),
    ("div", lambda a, b: a / b, np.divide, ("real", "away"), {}),
    ("pow", lambda a, b: a**b, np.power, ("positive", "real"), {}),
    ("floor_divide", lambda a, b: a // b, np.floor_divide, ("real", "away"), {"grad": False}),
    ("remainder", lambda a, b: a % b, np.remainder, ("real", "away"), {}),
    ("atan2", public("atan2"), np.arctan2, ("away", "away"), {}),
    ("maximum", public("maximum"), np.maximum, ("real", "real"), {}),
    ("minimum", public("minimum"), np.minimum, ("real", "real"), {}),
    ("fmax", public("fmax"), np.fmax, ("real", "real"), {"exact_ties": False}),
    ("fmin", public("fmin"), np.fmin, ("real", "real"), {"exact_ties": False}),
    ("fmod", public("fmod"), np.fmod, ("real", "away"), {}),
    ("hypot", public("hypot"), np.hypot, ("away", "away"), {}),
    ("logaddexp", public("logaddexp"), np.logaddexp, ("real", "real"), {}),
    ("logaddexp2", public("logaddexp2"), np.logaddexp2, ("real", "real"), {}),
    ("xlogy", public("xlogy"), special.xlogy, ("real", "positive"), {}),
    ("xlog1py", public("xlog1py"), special.xlog1py, ("real", "unit"), {}),
    ("copysign", public("copysign"), np.copysign, ("away", "away"), {}),
    ("heaviside", public("heaviside"), np.heaviside, ("away", "real"), {}),
    ("nextafter", public("nextafter"), lambda a, b: np.broadcast_arrays(a, b)[0], ("away", "away"), {"grad": False}),
]
SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((3, 1, 4), (2, 4)),
    ((1,), (2, 3)),
    ((2, 2, 1, 2), (2, 1, 3, 1)),
]
for _name, _call, _ref, _domains, _more in BINARY:
    for _shapes in SHAPES:
        _label = _name if _shapes == SHAPES[0] else f"{_name}[{_shapes[0]}{_shapes[1]}]".replace(" ", "")
        add(_label, _call, _ref, *zip(_shapes, _domains, strict=True), elementwise=_shapes == SHAPES[0], **_more)
for _name in ("add", "sub", "mul", "div", "pow", "remainder", "floor_divide"):
    _row = next(s for s in SAMPLES if s.name == _name)
    add(f"{_name}[public]", public(_name), _row.ref, *_row.inputs, elementwise=True, grad=_row.grad)

NUMBERS = [
    ("add", lambda x: x + 1.5, lambda x: x + 1.5, "real", {}),
    ("add", lambda x: 2 + x, lambda x: 2 + x, "real", {}),
    ("sub", lambda x: x - 0.5, lambda x: x - 0.5, "real", {}),
    ("sub", lambda x: 3 - x, lambda x: 3 - x, "real", {}),
    ("mul", lambda x: x * -2.5, lambda x: x * -2.5, "real", {}),
    ("mul", lambda x: 4 * x, lambda x: 4 * x, "real", {}),
    ("div", lambda x: x / 4, lambda x: x / 4, "real", {}),
    ("div", lambda x: 1.0 / x, lambda x: 1.0 / x, "away", {}),
    ("pow", lambda x: x**2, lambda x: x**2, "real", {}),
    ("pow", lambda x: x**3, lambda x: x**3, "real", {}),
    ("pow", lambda x: x**-1, lambda x: x**-1.0, "away", {}),
    ("pow", lambda x: x**-2, lambda x: x**-2.0, "away", {}),
    ("pow", lambda x: x**0.5, lambda x: x**0.5, "positive", {}),
    ("pow", lambda x: x**2.5, lambda x: x**2.5, "positive", {}),
    ("pow", lambda x: x**1, lambda x: x, "real", {}),
    ("pow", lambda x: x**0, lambda x: np.ones_like(x), "real", {}),
    ("pow", lambda x: 2**x, lambda x: 2**x, "real", {}),
    ("pow", lambda x: 0.5**x, lambda x: 0.5**x, "real", {}),
    ("floor_divide", lambda x: x // 0.75, lambda x: x // 0.75, "real", {"grad": False}),
    ("floor_divide", lambda x: 7 // x, lambda x: 7 // x, "away", {"grad": False}),
    ("remainder", lambda x: x % 0.75, lambda x: x % 0.75, "real", {}),
    ("remainder", lambda x: 7.0 % x, lambda x: 7.0 % x, "away", {}),
]
for _k, (_name, _call, _ref, _domain, _more) in enumerate(NUMBERS):
    add(f"{_name}[number{_k}]", _call, _ref, ((2, 3), _domain), elementwise=True, **_more)

add("where", public("where"), np.where, ((2, 3), "mask"), ((2, 3), "real"), ((2, 3), "real"), elementwise=True)
add("where[broadcast]", public("where"), np.where, ((3, 1), "mask"), ((2, 1, 4), "real"), ((4,), "real"))
add("where[numbers]", lambda m, x: ag.where(m, x, 0.5), lambda m, x: np.where(m, x, 0.5), ((2, 3), "mask"), ((2, 3), "real"))
add(
    "where[condition]",
    lambda x: ag.where(x > 0, x, x * 3),
    lambda x: np.where(x > 0, x, x * 3),
    ((2, 3), "away"),
    elementwise=True,
)

for _shapes in [((2, 3), ()), ((2, 3), (3,)), ((2, 3, 4), (3,)), ((2, 3), (1,)), ((3,), (1,))]:
    add(
        "prelu" if _shapes == ((2, 3), ()) else f"prelu[{_shapes[0]}{_shapes[1]}]".replace(" ", ""),
        public("nn.functional.prelu"),
        lambda x, w: np.where(x > 0, x, x * w.reshape(w.shape + (1,) * (x.ndim - 2) if x.ndim > 1 else w.shape)),
        (_shapes[0], "away"),
        (_shapes[1], "real"),
    )

TERNARY = [
    ("lerp", public("lerp"), lambda a, b, w: a + w * (b - a)),
    ("addcmul", public("addcmul"), lambda x, a, b: x + a * b),
    ("addcdiv", public("addcdiv"), lambda x, a, b: x + a / b),
    ("addcmul[value]", public("addcmul", value=-0.5), lambda x, a, b: x - 0.5 * a * b),
    ("addcdiv[value]", public("addcdiv", value=-0.5), lambda x, a, b: x - 0.5 * a / b),
]
for _name, _call, _ref in TERNARY:
    _last = "away" if _name.startswith("addcdiv") else "real"
    add(_name, _call, _ref, ((2, 3), "real"), ((2, 3), "real"), ((2, 3), _last), elementwise=True)
    add(f"{_name}[broadcast]", _call, _ref, ((3, 1), "real"), ((2, 1, 4), "real"), ((4,), _last))
add("lerp[number]", lambda a, b: ag.lerp(a, b, 0.7), lambda a, b: a + 0.7 * (b - a), ((2, 3), "real"), ((2, 3), "real"), elementwise=True)

ALL = FLOATS + INTS
for _name, _call, _ref in [
    ("eq", lambda a, b: a == b, np.equal),
    ("ne", lambda a, b: a != b, np.not_equal),
    ("lt", lambda a, b: a < b, np.less),
    ("le", lambda a, b: a <= b, np.less_equal),
    ("gt", lambda a, b: a > b, np.greater),
    ("ge", lambda a, b: a >= b, np.greater_equal),
]:
    add(_name, _call, _ref, ((2, 3), "whole"), ((2, 3), "whole"), grad=False, elementwise=True, dtypes=ALL)
    add(f"{_name}[public]", public(_name), _ref, ((3, 4), "whole"), ((4,), "whole"), grad=False, dtypes=ALL)
    add(
        f"{_name}[number]",
        functools.partial(lambda f, a: f(a, 1), _call),
        functools.partial(lambda f, a: f(a, 1), _ref),
        ((3, 4), "whole"),
        grad=False,
        elementwise=True,
        dtypes=ALL,
    )
    add(
        f"{_name}[reflected]",
        functools.partial(lambda f, a: f(1, a), _call),
        functools.partial(lambda f, a: f(1, a), _ref),
        ((3, 4), "whole"),
        grad=False,
        elementwise=True,
        dtypes=ALL,
    )
for _name, _ref in [("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)]:
    add(_name, public(_name), _ref, ((2, 3), "mask"), ((2, 3), "mask"), grad=False, elementwise=True, dtypes=("bool",))
    add(f"{_name}[numbers]", public(_name), _ref, ((3, 4), "whole"), ((4,), "whole"), grad=False, dtypes=ALL)
add("logical_not", public("logical_not"), np.logical_not, ((2, 3), "mask"), grad=False, elementwise=True, dtypes=("bool",))
INTEGERS = ("int64", "int32", "uint8")
for _name, _call, _ref in [
    ("bitwise_and", lambda a, b: a & b, np.bitwise_and),
    ("bitwise_or", lambda a, b: a | b, np.bitwise_or),
    ("bitwise_xor", lambda a, b: a ^ b, np.bitwise_xor),
]:
    add(_name, public(_name), _ref, ((3, 4), "whole"), ((4,), "whole"), grad=False, dtypes=INTEGERS)
    add(f"{_name}[operator]", _call, _ref, ((2, 3), "mask"), ((2, 3), "mask"), grad=False, elementwise=True, dtypes=("bool",))
add("bitwise_not", public("bitwise_not"), np.invert, ((3, 4), "whole"), grad=False, dtypes=INTEGERS)
add("bitwise_not[operator]", lambda a: ~a, np.invert, ((2, 3), "mask"), grad=False, elementwise=True, dtypes=("bool",))
for _name, _call, _ref in [
    ("bitwise_left_shift", lambda a, b: a << b, np.left_shift),
    ("bitwise_right_shift", lambda a, b: a >> b, np.right_shift),
]:
    add(_name, public(_name), _ref, ((3, 4), "whole"), ((4,), "bits"), grad=False, dtypes=INTEGERS)
    add(f"{_name}[operator]", _call, _ref, ((3, 4), "whole"), ((3, 4), "bits"), grad=False, dtypes=INTEGERS)
for _name, _ref in [("isposinf", np.isposinf), ("isneginf", np.isneginf), ("signbit", np.signbit)]:
    add(_name, public(_name), _ref, ((2, 3), "real"), grad=False, elementwise=True)
add("isclose", public("isclose", rtol=0.3), functools.partial(np.isclose, rtol=0.3), ((3, 4), "whole"), ((3, 4), "whole"), grad=False, dtypes=ALL)
add("ldexp", public("ldexp"), lambda x, n: x * 2.0**n, ((2, 3), "real"), ((2, 3), "real"), elementwise=True)
for _name, _ref in [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)]:
    add(_name, public(_name), _ref, ((2, 3), "real"), grad=False, elementwise=True)


# ---------------------------------------------------------------------------------------------------------------------
# Special functions

for _name, _ref, _domain in [
    ("i0", special.i0, "real"),
    ("i0e", special.i0e, "away"),
    ("i1", special.i1, "away"),
    ("i1e", special.i1e, "away"),
    ("bessel_j0", special.j0, "real"),
    ("bessel_j1", special.j1, "away"),
    ("bessel_y0", special.y0, "positive"),
    ("bessel_y1", special.y1, "positive"),
    ("modified_bessel_k0", special.k0, "positive"),
    ("modified_bessel_k1", special.k1, "positive"),
    ("scaled_modified_bessel_k0", special.k0e, "positive"),
    ("scaled_modified_bessel_k1", special.k1e, "positive"),
    ("airy_ai", lambda x: special.airy(x)[0], "real"),
    ("erfcx", special.erfcx, "real"),
    ("ndtri", special.ndtri, "inside"),
    ("log_ndtr", special.log_ndtr, "real"),
    ("entr", special.entr, "positive"),
    ("ndtr", special.ndtr, "real"),
    ("spherical_bessel_j0", lambda x: np.sinc(x / np.pi), "away"),
]:
    add(_name, public(f"special.{_name}"), _ref, ((3, 4), _domain), elementwise=True, tol={"float32": (2e-5, 5e-6)})
for _name, _ref, _first in [
    ("zeta", special.zeta, "above"),
    ("gammainc", special.gammainc, "positive"),
    ("gammaincc", special.gammaincc, "positive"),
]:
    add(_name, public(f"special.{_name}"), _ref, ((3, 4), _first), ((4,), "positive"), grad=(False, True), tol={"float32": (5e-5, 5e-6)})
add("airy_derivative", lambda x: ag.engine.elementwise.airy_derivative(x), lambda x: special.airy(x)[1], ((3, 4), "real"), elementwise=True)
add("multigammaln", lambda x: ag.special.multigammaln(x + 2, 3), lambda x: special.multigammaln(x + 2, 3), ((3,), "above"), tol={"float32": (1e-5, 1e-5)})
add("float_power", public("float_power"), lambda a, b: a**b, ((3, 4), "positive"), ((4,), "real"), dtypes=("float64",))
add("rsub", public("rsub", alpha=0.5), lambda a, b: b - 0.5 * a, ((3, 4), "real"), ((4,), "real"))
add("angle", public("angle"), np.angle, ((3, 4), "away"), elementwise=True)
add("frexp", lambda x: ag.frexp(x)[0], lambda x: np.frexp(x)[0], ((3, 4), "away"))
for _p in (1, 2, 3.5):
    add(f"renorm[{_p}]", public("renorm", p=_p, dim=1, maxnorm=1.0),
        lambda x, p=_p: x * np.minimum(1, 1 / (np.linalg.norm(np.moveaxis(x, 1, 0).reshape(x.shape[1], -1), p, axis=1) + 1e-7))[:, None],
        ((2, 3, 4), "away"))
add("gradient[second]", lambda x: ag.gradient(x, dim=1, edge_order=2, spacing=0.5)[0], lambda x: np.gradient(x, 0.5, axis=1, edge_order=2), ((3, 4), "real"))
add("gradient[coordinates]", lambda x: ag.gradient(x, dim=0, spacing=[x.new_tensor([0.0, 1.0, 3.0, 3.5])])[0],
    lambda x: np.gradient(x, [0.0, 1.0, 3.0, 3.5], axis=0), ((4, 2), "real"))
for _name, _ref in [("gcd", np.gcd), ("lcm", np.lcm)]:
    add(_name, public(_name), _ref, ((3, 4), "bits"), ((4,), "bits"), grad=False, dtypes=("int64", "int32"))


# ---------------------------------------------------------------------------------------------------------------------
# Reductions


def _lse(x, axis=None, keepdims=False):
    return special.logsumexp(x, axis=axis, keepdims=keepdims)


def _norm(p):
    def ref(x, axis=None, keepdims=False):
        a = np.abs(x)
        if p == np.inf:
            return a.max(axis=axis, keepdims=keepdims)
        if p == -np.inf:
            return a.min(axis=axis, keepdims=keepdims)
        if p == 0:
            return (a != 0).sum(axis=axis, keepdims=keepdims).astype(x.dtype)
        return (a**p).sum(axis=axis, keepdims=keepdims) ** (1 / p)

    return ref


ONE = [(0, False), (1, True), (-1, False), (-2, True), (2, False)]
SEVERAL = [((0, 2), False), ((-1, 0), True), ((0, 1, 2), False), ((1,), True)]
WHOLE = [(None, False)]
REDUCTIONS = [  # name, domain, reference with axis and keepdims, dims, what differs
    ("sum", "real", np.sum, WHOLE + ONE + SEVERAL, {}),
    ("mean", "real", np.mean, WHOLE + ONE + SEVERAL, {}),
    ("prod", "away", np.prod, WHOLE + ONE, {}),
    ("amax", "distinct", np.max, WHOLE + ONE + SEVERAL, {"exact_ties": False}),
    ("amin", "distinct", np.min, WHOLE + ONE + SEVERAL, {"exact_ties": False}),
    ("var", "real", functools.partial(np.var, ddof=1), WHOLE + ONE + SEVERAL, {}),
    ("std", "distinct", functools.partial(np.std, ddof=1), WHOLE + ONE + SEVERAL, {"exact_ties": False}),
    ("logsumexp", "real", _lse, ONE + SEVERAL, {}),
    ("argmax", "distinct", np.argmax, WHOLE + ONE, {"grad": False}),
    ("argmin", "distinct", np.argmin, WHOLE + ONE, {"grad": False}),
    ("all", "mask", np.all, WHOLE + ONE, {"grad": False, "dtypes": ("bool",)}),
    ("any", "mask", np.any, WHOLE + ONE, {"grad": False, "dtypes": ("bool",)}),
]
for _name, _domain, _ref, _dims, _more in REDUCTIONS:
    for _dim, _keep in _dims:
        _label = f"{_name}[dim={_dim},keepdim={_keep}]".replace(" ", "")
        _call = method(_name) if _dim is None else method(_name, dim=_dim, keepdim=_keep)
        add(_label, _call, functools.partial(_ref, axis=_dim, keepdims=_keep), ((2, 3, 4), _domain), **_more)
    _dim = _dims[-1][0]
    add(f"{_name}[public]", public(_name, axis=_dim), functools.partial(_ref, axis=_dim), ((2, 3, 4), _domain), **_more)
    if _name not in ("argmax", "argmin"):
        add(
            f"{_name}[axis]",
            method(_name, axis=1, keepdims=True),
            functools.partial(_ref, axis=1, keepdims=True),
            ((2, 3, 4), _domain),
            **_more,
        )
for _dim, _keep in WHOLE + ONE[:3] + SEVERAL[:2]:
    for _p in (2, 1, 3, np.inf, -np.inf, 0.5, 0):
        _label = f"norm[p={_p},dim={_dim},keepdim={_keep}]".replace(" ", "")
        _call = method("norm", _p) if _dim is None else method("norm", p=_p, dim=_dim, keepdim=_keep)
        add(
            _label,
            _call,
            functools.partial(_norm(_p), axis=_dim, keepdims=_keep),
            ((2, 3, 4), "distinct"),
            op="norm",
            exact_ties=False,
            grad=_p != 0,
        )
add("norm[default]", method("norm"), _norm(2), ((2, 3), "away"), op="norm")
for _d in (0, 1):
    add(
        f"var[correction={_d}]", method("var", dim=1, correction=_d), functools.partial(np.var, axis=1, ddof=_d), ((2, 4), "real")
    )
    add(
        f"std[correction={_d}]",
        method("std", dim=1, correction=_d),
        functools.partial(np.std, axis=1, ddof=_d),
        ((2, 4), "distinct"),
        exact_ties=False,
    )
for _name, _ref in [("max", np.max), ("min", np.min)]:
    _arg = np.argmax if _name == "max" else np.argmin
    add(f"{_name}[whole]", method(_name), _ref, ((2, 3, 4), "distinct"), exact_ties=False)
    for _dim, _keep in ONE:
        add(
            f"{_name}[dim={_dim},keepdim={_keep}]",
            method(_name, dim=_dim, keepdim=_keep),
            functools.partial(
                lambda r, i, d, k, x: (r(x, axis=d, keepdims=k), i(x, axis=d, keepdims=k)), _ref, _arg, _dim, _keep
            ),
            ((2, 3, 4), "distinct"),
            exact_ties=False,
        )
for _dim in (0, 1, -1):
    add(f"softmax[dim={_dim}]", method("softmax", _dim), functools.partial(special.softmax, axis=_dim), ((2, 3, 4), "real"))
    add(
        f"log_softmax[dim={_dim}]",
        method("log_softmax", _dim),
        functools.partial(special.log_softmax, axis=_dim),
        ((2, 3, 4), "real"),
    )
add("softmax[public]", public("softmax", dim=0), functools.partial(special.softmax, axis=0), ((5,), "wide"))
add("log_softmax[public]", public("log_softmax", dim=0), functools.partial(special.log_softmax, axis=0), ((5,), "wide"))


# ---------------------------------------------------------------------------------------------------------------------
# Products

for _a, _b in [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((2, 3), (3, 0)),
    ((5, 0, 3), (3, 2)),
    ((0, 2, 3), (3, 2)),
    ((1, 1), (1, 1)),
    ((17, 9), (9, 21)),
    ((3, 1), (1, 4)),
]:
    add(f"matmul[{_a}{_b}]".replace(" ", ""), lambda a, b: a @ b, np.matmul, (_a, "real"), (_b, "real"))
add("matmul[public]", public("matmul"), np.matmul, ((2, 3), "real"), ((3, 4), "real"))
add("matmul[a.T@b]", lambda a, b: a.t() @ b, lambda a, b: a.T @ b, ((3, 2), "real"), ((3, 4), "real"))
add("matmul[a@b.T]", lambda a, b: a @ b.T, lambda a, b: a @ b.T, ((2, 3), "real"), ((4, 3), "real"))
FIRST_PRODUCT = len(SAMPLES)
# 8 on the diagonal keeps the matrices regular.
for _shape in ((3, 3), (2, 3, 3)):
    add(
        f"inv[{len(_shape)}d]",
        lambda a: ag.linalg.inv(a + ag.eye(3, dtype=a.dtype) * 8),
        lambda a: np.linalg.inv(a + np.eye(3, dtype=a.dtype) * 8),
        (_shape, "real"),
    )


def regular(f, module):
    """f of matrices made regular: 8 on the diagonal."""
    return lambda a, *more: f(a + module.eye(a.shape[-1], dtype=a.dtype) * 8, *more)


def definite(f, module):
    """f of positive-definite matrices."""
    return lambda a, *more: f(
        (a @ a.swapaxes(-1, -2) + module.eye(a.shape[-1], dtype=a.dtype) * 4) / 4,
        *more,
    )


def symmetric(f):
    return lambda a: f(a + a.swapaxes(-1, -2))


def on_matrices(name, f, reference, *inputs, made=regular, op=None, **more):
    """Samples of linear algebra: 1 and 2 matrices at a time."""
    for batch in ((), (2,)):
        add(
            f"{name}[{len(batch)}]",
            made(f, ag),
            made(reference, np),
            *((batch + shape, "real") for shape in inputs),
            op=op or name.split("[")[0],
            tol={"float32": (2e-4, 1e-4)},
            **more,
        )


def as_is(f, module):
    return f


def separate(f, module):
    """f of matrices of full rank whose singular values, rows and columns differ."""
    return lambda a, *more: f(a + module.eye(*a.shape[-2:], dtype=a.dtype) * (4 * module.arange(1, a.shape[-1] + 1)), *more)


def triangle(a, b, upper):
    return np.linalg.solve(np.triu(a) if upper else np.tril(a), b)


def lowest_form(u, s, vh):
    """What does not depend on the signs of singular vectors."""
    return (u * np.exp(s / 4)[..., None, :]) @ vh


on_matrices("solve", lambda a, b: ag.linalg.solve(a, b), np.linalg.solve, (3, 3), (3, 2))
on_matrices(
    "solve[right]",
    lambda a, b: ag.linalg.solve(a, b, left=False),
    lambda a, b: b @ np.linalg.inv(a),
    (3, 3),
    (2, 3),
)
on_matrices("solve[vector]", lambda a, b: ag.linalg.solve(a, b), lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], (3, 3), (3,))
for _upper in (False, True):
    on_matrices(
        f"solve_triangular[{'upper' if _upper else 'lower'}]",
        functools.partial(lambda a, b, upper: ag.linalg.solve_triangular(a, b, upper=upper), upper=_upper),
        functools.partial(triangle, upper=_upper),
        (3, 3),
        (3, 2),
    )
on_matrices("det", lambda a: ag.linalg.det(a / 8), lambda a: np.linalg.det(a / 8), (3, 3))
on_matrices("det[any]", lambda a: ag.linalg.det(a), np.linalg.det, (4, 4), made=as_is)
on_matrices("slogdet", lambda a: ag.linalg.slogdet(a).logabsdet, lambda a: np.linalg.slogdet(a)[1], (3, 3))
on_matrices("cholesky", lambda a: ag.linalg.cholesky(a), np.linalg.cholesky, (3, 3), made=definite)
on_matrices(
    "cholesky[upper]", lambda a: ag.linalg.cholesky(a, upper=True), lambda a: np.linalg.cholesky(a).swapaxes(-1, -2), (3, 3), made=definite
)
on_matrices("lu_factor", lambda a: ag.linalg.lu_factor(a).LU, np.vectorize(
    lambda a: np.tril(scipy_lu(a)[1], -1) + scipy_lu(a)[2], signature="(n,n)->(n,n)"), (3, 3))
on_matrices("qr", lambda a: ag.linalg.qr(a).R.abs(), lambda a: np.abs(np.linalg.qr(a)[1]), (4, 3), made=separate)
on_matrices("qr[wide]", lambda a: ag.linalg.qr(a).R.abs(), lambda a: np.abs(np.linalg.qr(a)[1]), (2, 4), made=separate)
on_matrices("svd", lambda a: ag.linalg.svdvals(a), lambda a: np.linalg.svd(a, compute_uv=False), (4, 3), made=separate)
on_matrices(
    "svd[vectors]",
    lambda a: (lambda u, s, vh: (u * (s / 4).exp().unsqueeze(-2)) @ vh)(*ag.linalg.svd(a, full_matrices=False)),
    lambda a: lowest_form(*np.linalg.svd(a, full_matrices=False)),
    (3, 4),
    made=separate,
)
on_matrices("eigh", lambda a: ag.linalg.eigvalsh(a), np.linalg.eigvalsh, (3, 3), made=lambda f, module: separate(symmetric(f), module))
on_matrices(
    "eigh[vectors]",
    lambda a: (lambda s, u: (u * (s / 4).exp().unsqueeze(-2)) @ u.mT)(*ag.linalg.eigh(a)),
    lambda a: (lambda s, u: lowest_form(u, s, u.swapaxes(-1, -2)))(*np.linalg.eigh(a)),
    (3, 3),
    made=lambda f, module: separate(symmetric(f), module),
)
on_matrices("pinv", lambda a: ag.linalg.pinv(a), np.linalg.pinv, (4, 3), made=separate)
on_matrices("lstsq", lambda a, b: ag.linalg.lstsq(a, b).solution, lambda a, b: np.linalg.pinv(a) @ b, (4, 3), (4, 2), made=separate)
on_matrices("matrix_exp", lambda a: ag.linalg.matrix_exp(a), np.vectorize(scipy_expm, signature="(n,n)->(n,n)"), (3, 3), made=as_is)
on_matrices("matrix_power", lambda a: ag.linalg.matrix_power(a / 8, -3), lambda a: np.linalg.matrix_power(a / 8, -3), (3, 3))
for _ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
    on_matrices(
        f"matrix_norm[{_ord}]",
        functools.partial(lambda a, ord: ag.linalg.matrix_norm(a, ord), ord=_ord),
        functools.partial(lambda a, ord: np.linalg.matrix_norm(a, ord=ord), ord=_ord),
        (3, 4),
        made=separate,
    )
add("bmm", public("bmm"), np.matmul, ((2, 2, 3), "real"), ((2, 3, 2), "real"))
add("mv", public("mv"), np.matmul, ((2, 3), "real"), ((3,), "real"))
add("dot", public("dot"), np.dot, ((3,), "real"), ((3,), "real"))
add("outer", public("outer"), np.outer, ((2,), "real"), ((3,), "real"))
add("addmm", public("addmm", beta=0.5, alpha=2), lambda c, a, b: 0.5 * c + 2 * a @ b, ((2,), "real"), ((3, 2), "real"), ((2, 2), "real"))
add("kron", public("kron"), np.kron, ((2, 3), "real"), ((3, 2), "real"))
add("cross", public("linalg.cross"), np.cross, ((2, 3), "real"), ((2, 3), "real"))
add("tensordot", public("tensordot"), np.tensordot, ((2, 3, 2), "real"), ((3, 2, 2), "real"))
add("trace", public("trace"), np.trace, ((3, 2), "real"))
add("cdist", public("cdist"), lambda a, b: np.sqrt(((a[:, None] - b) ** 2).sum(-1)), ((3, 2), "real"), ((2, 2), "real"))
add("cdist[p=1.5]", lambda a, b: ag.cdist(a, b, 1.5), lambda a, b: (np.abs(a[..., None, :] - b[..., None, :, :]) ** 1.5).sum(-1) ** (1 / 1.5),
    ((2, 2, 3), "real"), ((2, 1, 3), "real"))
add("cdist[p=inf]", lambda a, b: ag.cdist(a, b, float("inf")), lambda a, b: np.abs(a[:, None] - b).max(-1), ((3, 3), "distinct"), ((2, 3), "distinct"),
    second=False)
add("pdist", public("pdist"), lambda a: np.sqrt(((a[:, None] - a) ** 2).sum(-1))[np.triu_indices(len(a), 1)], ((4, 3), "real"))
add("normalize", public("nn.functional.normalize"), lambda a: a / np.maximum(np.sqrt((a * a).sum(1, keepdims=True)), 1e-12), ((3, 4), "real"))
add("neighbours", lambda x: x.diff(), np.diff, ((3, 4), "real"))
add("vander", public("vander"), np.vander, ((4,), "real"))
add("vander[increasing]", lambda x: ag.linalg.vander(x, N=5), lambda x: x[..., None] ** np.arange(5), ((2, 3), "real"))
add("cov[correlations]", public("corrcoef"), np.corrcoef, ((3, 4), "real"), tol={"float32": (1e-4, 1e-5)})
add("cov", public("cov"), np.cov, ((2, 4), "real"), tol={"float32": (1e-4, 1e-5)})
for _equation, *_shapes in (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("ii->i", (3, 3)),
    ("bij,bkj,k->bi", (2, 2, 3), (2, 3, 3), (3,)),
    ("...i,ij->...j", (2, 2, 3), (3, 2)),
    ("iji->j", (2, 3, 2)),
):
    add(
        f"einsum[{_equation}]",
        functools.partial(lambda *a, equation: ag.einsum(equation, *a), equation=_equation),
        functools.partial(lambda *a, equation: np.einsum(equation, *a), equation=_equation),
        *((s, "real") for s in _shapes),
    )
# Their results differ in the last bits between levels of the instruction set, since small products may fuse.
PRODUCTS = {s.op for s in SAMPLES[FIRST_PRODUCT:]} | {"linear", "matmul"}
add("linear", public("nn.functional.linear"), lambda x, w, b: x @ w.T + b, ((4, 3), "real"), ((2, 3), "real"), ((2,), "real"))
add("linear[no_bias]", public("nn.functional.linear"), lambda x, w: x @ w.T, ((4, 3), "real"), ((2, 3), "real"))
add(
    "linear[3d]",
    public("nn.functional.linear"),
    lambda x, w, b: x @ w.T + b,
    ((2, 4, 3), "real"),
    ((2, 3), "real"),
    ((2,), "real"),
)
add("linear[1d]", public("nn.functional.linear"), lambda x, w, b: x @ w.T + b, ((3,), "real"), ((2, 3), "real"), ((2,), "real"))
add(
    "linear[empty]",
    public("nn.functional.linear"),
    lambda x, w, b: x @ w.T + b,
    ((0, 3), "real"),
    ((2, 3), "real"),
    ((2,), "real"),
)


# ---------------------------------------------------------------------------------------------------------------------
# Layout: the same numbers in another shape

LAYOUT = [  # op, on tensors, reference, shape
    ("t", lambda x: x.t(), lambda x: x.T, (2, 3)),
    ("t", lambda x: x.T, lambda x: x.T, (2, 3)),
    ("t", lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), (2, 3, 4)),
    ("t", lambda x: x.t(), lambda x: x, (3,)),
    ("transpose", lambda x: x.transpose(0, 2), lambda x: np.swapaxes(x, 0, 2), (2, 3, 4)),
    ("transpose", lambda x: ag.transpose(x, -1, 1), lambda x: np.swapaxes(x, -1, 1), (2, 3, 4)),
    ("swapaxes", lambda x: x.swapaxes(0, -1), lambda x: np.swapaxes(x, 0, -1), (2, 3, 4)),
    ("permute", lambda x: x.permute(2, 0, 1), lambda x: np.transpose(x, (2, 0, 1)), (2, 3, 4)),
    ("permute", lambda x: ag.permute(x, (-1, 0, 1)), lambda x: np.transpose(x, (2, 0, 1)), (2, 3, 4)),
    ("movedim", lambda x: ag.movedim(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (2, 3, 4)),
    ("movedim", lambda x: x.movedim((0, 1), (2, 0)), lambda x: np.moveaxis(x, (0, 1), (2, 0)), (2, 3, 4)),
    ("reshape", lambda x: x.reshape(4, 6), lambda x: x.reshape(4, 6), (2, 3, 4)),
    ("reshape", lambda x: x.reshape((-1, 2)), lambda x: x.reshape(-1, 2), (2, 3, 4)),
    ("reshape", lambda x: ag.reshape(x, (24,)), lambda x: x.reshape(24), (2, 3, 4)),
    ("reshape", lambda x: x.t().reshape(6), lambda x: x.T.reshape(6), (2, 3)),
    ("reshape", lambda x: x.reshape(()), lambda x: x.reshape(()), (1, 1)),
    ("view", lambda x: x.contiguous().view(3, -1), lambda x: x.reshape(3, -1), (2, 3, 4)),
    ("squeeze", lambda x: x.squeeze(), lambda x: x.squeeze(), (2, 1, 3, 1)),
    ("squeeze", lambda x: x.squeeze(1), lambda x: x.squeeze(1), (2, 1, 3, 1)),
    ("squeeze", lambda x: x.squeeze(0), lambda x: x, (2, 1, 3, 1)),
    ("squeeze", lambda x: ag.squeeze(x, -1), lambda x: x.squeeze(-1), (2, 1, 3, 1)),
    ("unsqueeze", lambda x: x.unsqueeze(0), lambda x: x[None], (2, 3)),
    ("unsqueeze", lambda x: ag.unsqueeze(x, -1), lambda x: x[..., None], (2, 3)),
    ("expand", lambda x: x.expand(4, 2, 3), lambda x: np.broadcast_to(x, (4, 2, 3)), (2, 1)),
    ("expand", lambda x: x.expand(-1, 3), lambda x: np.broadcast_to(x, (2, 3)), (2, 1)),
    ("broadcast_to", lambda x: ag.broadcast_to(x, (4, 3)), lambda x: np.broadcast_to(x, (4, 3)), (3,)),
    ("flatten", lambda x: x.flatten(), lambda x: x.reshape(-1), (2, 3, 4)),
    ("flatten", lambda x: ag.flatten(x, 1), lambda x: x.reshape(2, 12), (2, 3, 4)),
    ("flatten", lambda x: x.flatten(0, 1), lambda x: x.reshape(6, 4), (2, 3, 4)),
    ("flatten", lambda x: x.flatten(), lambda x: x.reshape(1), ()),
    ("contiguous", lambda x: x.t().contiguous(), lambda x: x.T, (2, 3)),
    ("clone", lambda x: x.clone(), lambda x: x, (2, 3)),
    ("to", lambda x: x.to(ag.float64), lambda x: x, (2, 3)),
    ("split", lambda x: x.split(2), lambda x: (x[:2], x[2:4], x[4:]), (5, 2)),
    ("split", lambda x: ag.split(x, [1, 3], dim=1), lambda x: (x[:, :1], x[:, 1:]), (2, 4)),
    ("chunk", lambda x: x.chunk(3, dim=-1), lambda x: (x[:, :3], x[:, 3:6], x[:, 6:]), (2, 7)),
    ("chunk", lambda x: ag.chunk(x, 2), lambda x: (x[:2], x[2:]), (3, 2)),
    ("unbind", lambda x: x.unbind(1), lambda x: (x[:, 0], x[:, 1], x[:, 2]), (2, 3)),
    ("unbind", lambda x: ag.unbind(x), lambda x: (x[0], x[1]), (2, 3)),
]
for _k, (_name, _call, _ref, _shape) in enumerate(LAYOUT):
    add(f"{_name}[{_k}]", _call, _ref, (_shape, "real"), second=False, **({"dtypes": ("float64",)} if _name == "to" else {}))
for _dim in (0, 1, -1):
    add(
        f"cat[dim={_dim}]",
        lambda a, b, c, d=_dim: ag.cat([a, b, c], dim=d),
        lambda a, b, c, d=_dim: np.concatenate([a, b, c], axis=d),
        *[(s, "real") for s in {0: [(2, 3), (1, 3), (0, 3)], 1: [(2, 3), (2, 1), (2, 2)], -1: [(2, 3), (2, 1), (2, 0)]}[_dim]],
        second=False,
    )
    add(
        f"stack[dim={_dim}]",
        lambda a, b, d=_dim: ag.stack([a, b], dim=d),
        lambda a, b, d=_dim: np.stack([a, b], axis=d),
        ((2, 3), "real"),
        ((2, 3), "real"),
        second=False,
    )
add("cat[same]", lambda a: ag.cat((a, a * a, a)), lambda a: np.concatenate((a, a * a, a)), ((2, 3), "real"))
add("stack[0d]", lambda a, b: ag.stack((a, b)), lambda a, b: np.stack((a, b)), ((), "real"), ((), "real"), second=False)


# ---------------------------------------------------------------------------------------------------------------------
# Along rows: running sums, sorting, selecting, counting


def _running(ufunc, axis, x):
    """Running extremes and where they are, of equals the latest."""
    best = ufunc.accumulate(x, axis=axis)
    places = np.where(x == best, np.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]), 0)
    return best, np.maximum.accumulate(places, axis=axis)


def _order(axis, descending, x):
    order = np.argsort(-x if descending else x, axis=axis, kind="stable")
    return np.take_along_axis(x, order, axis), order


def _selected(choose, axis, keep, x):
    """The element that `choose` picks from each line's stable order, and its place."""
    order = np.argsort(x, axis=axis, kind="stable")
    place = np.take(order, [choose(x.shape[axis])], axis=axis)
    both = np.take_along_axis(x, place, axis), place
    return both if keep else tuple(np.squeeze(a, axis) for a in both)


def _first(k, axis, largest, x):
    return tuple(np.take(a, range(k), axis=axis) for a in _order(axis, largest, x))


def _middle(n):
    return (n - 1) // 2


def _with_nan(f):
    """f of x with NaN where a mask says so."""
    return lambda x, mask: f((ag.where if isinstance(x, ag.Tensor) else np.where)(mask, math.nan, x))


for _dim in (0, 1, -1):
    for _name, _domain, _ref in [
        ("cumsum", "real", np.cumsum),
        ("cumprod", "away", np.cumprod),
        ("logcumsumexp", "real", lambda x, axis: np.logaddexp.accumulate(x, axis=axis)),
    ]:
        add(f"{_name}[dim={_dim}]", method(_name, _dim), functools.partial(_ref, axis=_dim), ((2, 3, 4), _domain))
    for _name, _ufunc in [("cummax", np.maximum), ("cummin", np.minimum)]:
        add(
            f"{_name}[dim={_dim}]",
            method(_name, _dim),
            functools.partial(_running, _ufunc, _dim),
            ((2, 3, 4), "distinct"),
            exact_ties=False,
        )
    for _flag in (False, True):
        _tail = f"[dim={_dim},{_flag}]"
        for _name, _call, _ref in [
            ("sort", method("sort", _dim, _flag), functools.partial(_order, _dim, _flag)),
            ("topk", method("topk", 2, _dim, _flag), functools.partial(_first, 2, _dim, _flag)),
            ("kthvalue", method("kthvalue", 2, _dim, _flag), functools.partial(_selected, lambda n: 1, _dim, _flag)),
            ("median", method("median", _dim, _flag), functools.partial(_selected, _middle, _dim, _flag)),
            ("nanmedian", method("nanmedian", _dim, _flag), functools.partial(_selected, _middle, _dim, _flag)),
        ]:
            add(_name + _tail, _call, _ref, ((2, 3, 4), "distinct"), exact_ties=False)
    for _q, _how in itertools.product((0.3, 0.5), ("linear", "lower", "higher", "midpoint", "nearest")):
        add(
            f"quantile[dim={_dim},q={_q},{_how}]",
            method("quantile", _q, _dim, interpolation=_how),
            functools.partial(np.quantile, q=_q, axis=_dim, method=_how),
            ((2, 3, 4), "distinct"),
            exact_ties=False,
            second=False,
            tol={"float32": (1e-5, 1e-5)},
        )
    add(
        f"nansum[dim={_dim}]",
        _with_nan(method("nansum", _dim)),
        _with_nan(lambda x, d=_dim: np.nansum(x, d)),
        ((2, 3, 4), "real"),
        ((2, 3, 4), "mask"),
    )
    add(f"diff[dim={_dim}]", method("diff", dim=_dim), functools.partial(np.diff, axis=_dim), ((2, 3, 4), "real"), second=False)
    add(f"area[dim={_dim}]", public("trapezoid", dim=_dim), functools.partial(np.trapezoid, axis=_dim), ((2, 3, 4), "real"), second=False)
    add(
        f"area[cumulative, dim={_dim}]",
        public("cumulative_trapezoid", dim=_dim, dx=0.5),
        functools.partial(lambda axis, y: integrate.cumulative_trapezoid(y, dx=0.5, axis=axis), _dim),
        ((2, 3, 4), "real"),
        second=False,
    )
    add(
        f"mode[dim={_dim}]",
        lambda x, d=_dim: x.mode(d)[0],
        lambda x, d=_dim: stats.mode(x, axis=d).mode,
        ((2, 3, 4), "whole"),
        grad=False,
    )
add("area_at", public("trapezoid"), np.trapezoid, ((2, 3, 4), "real"), ((4,), "distinct"))
add("area_at[cumulative]", lambda y, x: ag.cumulative_trapezoid(y, x, dim=1), lambda y, x: integrate.cumulative_trapezoid(y, x, axis=1),
    ((2, 3, 4), "real"), ((2, 3, 4), "distinct"))
add("nansum[whole]", method("nansum"), np.nansum, ((2, 3, 4), "real"))
add("nanmean[whole]", _with_nan(lambda x: x.nanmean()), _with_nan(np.nanmean), ((2, 3, 4), "real"), ((2, 3, 4), "mask"))
add("median[whole]", method("median"), lambda x: np.sort(x.ravel())[11], ((2, 3, 4), "distinct"), exact_ties=False)
add("nanmedian[whole]", method("nanmedian"), lambda x: np.sort(x.ravel())[11], ((2, 3, 4), "distinct"), exact_ties=False)
add("quantile[several]", lambda x: x.quantile(ag.tensor([0.2, 0.9], dtype=x.dtype), 1, True),
    lambda x: np.quantile(x, [0.2, 0.9], axis=1, keepdims=True), ((2, 5), "distinct"), exact_ties=False, second=False,
    tol={"float32": (1e-5, 1e-5)})
add("msort", method("msort"), functools.partial(np.sort, axis=0), ((4, 3), "distinct"), exact_ties=False)
add("mode[distinct]", lambda x: x.mode(1)[0], lambda x: x.min(1), ((3, 4), "distinct"), exact_ties=False)
add("argsort", method("argsort", 0), lambda x: np.argsort(x, 0, kind="stable"), ((4, 3), "whole"), grad=False, dtypes=ALL)
add("count_nonzero", method("count_nonzero", 1), functools.partial(np.count_nonzero, axis=1), ((4, 3), "whole"), grad=False, dtypes=ALL)
add("aminmax", method("aminmax", dim=1), lambda x: (x.min(1), x.max(1)), ((4, 3), "distinct"), exact_ties=False)
add("var_mean", public("var_mean", dim=1), lambda x: (x.var(1, ddof=1), x.mean(1)), ((4, 3), "real"))
add("std_mean", public("std_mean", dim=1), lambda x: (x.std(1, ddof=1), x.mean(1)), ((4, 3), "distinct"), exact_ties=False)
add("unique", method("unique"), np.unique, ((4, 3), "whole"), grad=False)
add("unique_consecutive", method("unique_consecutive"), lambda x: x.ravel()[np.diff(x.ravel(), prepend=np.nan) != 0], ((4, 3), "whole"),
    grad=False)
add("histc", method("histc", 5, -2, 3), lambda x: np.histogram(x, 5, (-2, 3))[0].astype(x.dtype), ((4, 3), "real"), grad=False)
add("histogram", lambda x: x.histogram(5, range=(-2.0, 3.0)), lambda x: [a.astype(x.dtype) for a in np.histogram(x, 5, (-2, 3))],
    ((4, 3), "real"), grad=False)
add("searchsorted", lambda s, v: ag.searchsorted(s.sort()[0], v, right=True), lambda s, v: np.searchsorted(np.sort(s), v, "right"),
    ((6,), "whole"), ((2, 3), "whole"), grad=False, dtypes=ALL)
add("bucketize", lambda v, s: ag.bucketize(v, s.sort()[0]), lambda v, s: np.searchsorted(np.sort(s), v), ((2, 3), "whole"), ((6,), "whole"),
    grad=False, dtypes=ALL)
add("isin", public("isin"), np.isin, ((4, 3), "whole"), ((3,), "whole"), grad=False, dtypes=ALL)
add("argwhere", public("argwhere"), np.argwhere, ((4, 3), "whole"), grad=False, dtypes=ALL)


# ---------------------------------------------------------------------------------------------------------------------
# Indexing: NumPy's rules. Keys are NumPy's; `tensor_key` turns their arrays into tensors.

I1 = np.array([2, 0, -1, 2])
I2 = np.array([[0, 1], [-1, 0]])
MASK1 = np.array([True, False, True])
MASK2 = np.array([[True, False, True, False], [False, False, True, True], [True, True, True, False]])
KEYS = {  # for an input of shape (3, 4, 2)
    "int": 1,
    "negative int": -1,
    "ints": (2, -1, 0),
    "slice": slice(1, 3),
    "slice step": (slice(None), slice(None, None, 2)),
    "slice negative step": (slice(None, None, -1), slice(None), slice(None, None, -1)),
    "slice negative step bounds": (slice(None), slice(3, 0, -2)),
    "slice out of range": slice(-10, 10),
    "empty slice": slice(2, 1),
    "ellipsis": (Ellipsis, 1),
    "ellipsis middle": (0, Ellipsis, 1),
    "none": (None, slice(None), None),
    "none ellipsis": (Ellipsis, None),
    "only ellipsis": Ellipsis,
    "empty tuple": (),
    "int array": I1,
    "int array 2-D": I2,
    "int array second": (slice(None), I1),
    "int arrays": (I1, I1),
    "int arrays broadcast": (np.array([[0], [2]]), np.array([1, -1, 3])),
    "int arrays apart": (I1[:2], slice(None), np.array([1, 0])),
    "int array and int": (I1, 1),
    "int array, slice": (slice(1, None), I1, slice(None, None, -1)),
    "int array, none": (None, I1),
    "int array, ellipsis": (Ellipsis, np.array([1, 1, 0])),
    "empty int array": np.array([], dtype=np.int64),
    "list": [0, 2],
    "list in tuple": (slice(None), [3, 0, 0]),
    "mask": MASK1,
    "mask 2-D": MASK2,
    "mask full": np.arange(24).reshape(3, 4, 2) % 3 == 0,
    "mask none true": np.zeros(3, dtype=bool),
    "mask then slice": (MASK1, slice(1, 3)),
    "mask then int": (MASK1, 1),
    "mask and int array": (MASK1, np.array([3, 0])),
    "slice then mask": (slice(None), np.array([True, False, False, True])),
}


def tensor_key(key):
    """The same key with tensors for its arrays."""
    if isinstance(key, tuple):
        return tuple(tensor_key(k) for k in key)
    return ag.tensor(key) if isinstance(key, np.ndarray) else key


for _label, _key in KEYS.items():
    add(f"index[{_label}]", lambda x, k=_key: x[tensor_key(k)], lambda x, k=_key: x[k], ((3, 4, 2), "real"), second=False)
    if any(isinstance(k, np.ndarray) for k in (_key if isinstance(_key, tuple) else (_key,))):
        add(f"index[numpy {_label}]", lambda x, k=_key: x[k], lambda x, k=_key: x[k], ((3, 4, 2), "real"), second=False)


def _cut(x, dim, index):
    """x cut to the index's size along the other axes, as gather reads it."""
    return x[tuple(slice(None) if k == dim % x.ndim else slice(n) for k, n in enumerate(index.shape))]


for _dim, _index in [(0, np.array([[0, 2, 1], [1, 1, 0]])), (1, np.array([[0, 0], [3, 1], [2, 2]])), (-1, np.array([[1]]))]:
    add(
        f"gather[dim={_dim}]",
        lambda x, d=_dim, i=_index: x.gather(d, ag.tensor(i)),
        lambda x, d=_dim, i=_index: np.take_along_axis(_cut(x, d, i), i, d),
        ((3, 4), "real"),
        second=False,
    )

# ---------------------------------------------------------------------------------------------------------------------
# Shapes made of others, and indices along one dimension


def _tril_like(x):
    return np.tril(x, -1)


def _sliding(x, axis, size, step):
    moved = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return moved[(slice(None),) * axis + (slice(None, None, step),)]


ARRANGED = [  # op, on tensors, reference, shape
    ("select", lambda x: x.select(1, -1), lambda x: x[:, -1], (2, 3, 2)),
    ("narrow", lambda x: ag.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], (2, 4)),
    ("diagonal", lambda x: x.diagonal(), lambda x: np.diagonal(x), (3, 4)),
    ("diagonal", lambda x: ag.diagonal(x, -1, 2, 0), lambda x: np.diagonal(x, -1, 2, 0), (3, 2, 4)),
    ("unfold", lambda x: x.unfold(0, 3, 1), lambda x: _sliding(x, 0, 3, 1), (6,)),
    ("unfold", lambda x: x.unfold(-2, 2, 2), lambda x: _sliding(x, 1, 2, 2), (2, 5, 2)),
    ("triangle", lambda x: ag.tril(x, -1), _tril_like, (3, 4)),
    ("triangle", lambda x: x.triu(1), lambda x: np.triu(x, 1), (2, 3, 3)),
    ("pad", lambda x: ag.nn.functional.pad(x, (1, 2, 0, 1), value=1.5), lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=1.5), (2, 3)),
    ("pad", lambda x: ag.nn.functional.pad(x, (-1, 1)), lambda x: np.pad(x[:, 1:], ((0, 0), (0, 1))), (2, 3)),
    ("border", lambda x: ag.nn.functional.pad(x, (2, 1), mode="reflect"), lambda x: np.pad(x, ((0, 0), (2, 1)), mode="reflect"), (2, 3)),
    ("border", lambda x: ag.nn.functional.pad(x, (2, 4), mode="replicate"), lambda x: np.pad(x, ((0, 0), (2, 4)), mode="edge"), (2, 3)),
    ("border", lambda x: ag.nn.functional.pad(x, (3, 1), mode="circular"), lambda x: np.pad(x, ((0, 0), (3, 1)), mode="wrap"), (2, 3)),
    ("repeat", lambda x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3)), (2, 3)),
    ("tile", lambda x: ag.tile(x, (2,)), lambda x: np.tile(x, 2), (2, 3)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2, 1), lambda x: np.repeat(x, 2, 1), (2, 3)),
    ("repeat_interleave", lambda x: ag.repeat_interleave(x, ag.tensor([2, 0, 1]), 1), lambda x: np.repeat(x, [2, 0, 1], 1), (2, 3)),
    ("repeat", lambda x: x.repeat(2, 0), lambda x: np.tile(x, (2, 0)), (2, 3)),
    ("flip", lambda x: x.flip(0, -1), lambda x: np.flip(x, (0, -1)), (2, 3)),
    ("roll", lambda x: x.roll((1, -2), (0, 1)), lambda x: np.roll(x, (1, -2), (0, 1)), (2, 3)),
    ("roll", lambda x: ag.roll(x, 4), lambda x: np.roll(x, 4), (2, 3)),
    ("roll", lambda x: ag.roll(x, 3, 0), lambda x: x, ()),
    ("rot90", lambda x: ag.rot90(x), np.rot90, (2, 3)),
    ("diagonal_back", lambda x: ag.diag(x, 1), lambda x: np.diag(x, 1), (3,)),
    ("diagonal_back", lambda x: ag.diag_embed(x), lambda x: np.stack([np.diag(r) for r in x]), (2, 3)),
    ("as_strided", lambda x: x.contiguous().as_strided((3, 2), (1, 2), 1), lambda x: x.reshape(-1)[[[1, 3], [2, 4], [3, 5]]], (2, 3)),
    ("unflatten", lambda x: x.unflatten(1, (2, -1)), lambda x: x.reshape(2, 2, 3), (2, 6)),
    ("tensor_split", lambda x: ag.tensor_split(x, 3), lambda x: tuple(np.array_split(x, 3)), (5, 2)),
    ("block_diag", lambda x: ag.block_diag(x, x), lambda x: np.block([[x, np.zeros_like(x)], [np.zeros_like(x), x]]), (2, 3)),
    ("grid", lambda x: ag.meshgrid(x, x, indexing="xy"), lambda x: tuple(np.meshgrid(x, x)), (3,)),
    ("hstack", lambda x: ag.hstack((x, x)), lambda x: np.hstack((x, x)), (2, 3)),
    ("column_stack", lambda x: ag.column_stack((x, x)), lambda x: np.column_stack((x, x)), (3,)),
    ("stack", lambda x: ag.dstack([x, x]), lambda x: np.dstack((x, x)), (2, 3)),
    ("grid", lambda x: ag.meshgrid(x, x[:2], x, indexing="ij"), lambda x: tuple(np.meshgrid(x, x[:2], x, indexing="ij")), (3,)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2), lambda x: np.repeat(x, 2), (2, 3)),
    ("diagonal", lambda x: x.diag(-1), lambda x: np.diag(x, -1), (3, 4)),
]
for _k, (_name, _call, _ref, _shape) in enumerate(ARRANGED):
    add(f"{_name}[arranged {_k}]", _call, _ref, (_shape, "real"), second=False)

_ROWS, _PLACES = np.array([2, 0, 2, 1]), np.array([[2, 0, 1], [2, 2, 1]])
# Tensors made here, outside of what a capture sees.
_ROWS_T, _PLACES_T, _MASK_T = ag.tensor(_ROWS), ag.tensor(_PLACES), ag.tensor(_PLACES[:1] > 0)


def _put_along(x, v, combine):
    """The elements of v combined with those of x at _PLACES along axis 0, one after the other."""
    x = x.copy()
    for (i, j), value in np.ndenumerate(v):
        x[_PLACES[i, j], j] = combine(x[_PLACES[i, j], j], value)
    return x


def _added(x, v, index):
    x = x.copy()
    np.add.at(x, index, v)
    return x


def _set(x, v, index):
    x = x.copy()
    x[index] = v
    return x


INDEXED = [  # op, on tensors x (3, 3) and v, reference, shape of v, more
    ("scatter", lambda x, v: ag.scatter(x, 0, _PLACES_T, v), lambda x, v: _put_along(x, v, lambda a, b: b), (2, 3), {}),
    ("scatter_add", lambda x, v: ag.scatter_add(x, 0, _PLACES_T, v), lambda x, v: _put_along(x, v, np.add), (2, 3), {}),
    ("scatter_add", lambda x, v: ag.index_add(x, 0, _ROWS_T, v), lambda x, v: _added(x, v, _ROWS), (4, 3), {}),
    ("scatter", lambda x, v: ag.index_copy(x, 1, _ROWS_T, v), lambda x, v: _set(x, v, (slice(None), _ROWS)), (3, 4), {}),
    ("scatter", lambda x, v: x.index_fill(0, _ROWS_T[:2], v), lambda x, v: _set(x, v, _ROWS[:2]), (), {}),
    ("index_accumulate", lambda x, v: x.index_put((_ROWS_T,), v, True), lambda x, v: _added(x, v, _ROWS), (4, 3), {}),
    ("index_accumulate", lambda x, v: x.index_put((_ROWS_T,), v, accumulate=True), lambda x, v: _added(x, v, _ROWS), (3,), {}),
]
for _reduce, _combine in [("prod", np.multiply), ("amax", np.maximum), ("amin", np.minimum)]:
    INDEXED.append(("scatter_reduce", lambda x, v, r=_reduce: x.scatter_reduce(0, _PLACES_T, v, r),
                    lambda x, v, c=_combine: _put_along(x, v, c), (2, 3), {"exact_ties": False}))
for _k, (_name, _call, _ref, _shape, _more) in enumerate(INDEXED):
    add(f"{_name}[indexed {_k}]", _call, _ref, ((3, 3), "away"), (_shape, "away"), **_more)
for _name, _call, _ref in [
    ("gather[index_select]", lambda x: x.index_select(1, _ROWS_T), lambda x: x[:, _ROWS]),
    ("gather[take_along_dim]", lambda x: ag.take_along_dim(x, _PLACES_T, 0), lambda x: np.take_along_axis(x, _PLACES, 0)),
    ("index[take]", lambda x: ag.take(x, ag.tensor([[0, -1], [4, 4]])), lambda x: np.take(x, [[0, -1], [4, 4]])),
    ("index[masked_select]", lambda x: ag.masked_select(x, _MASK_T), lambda x: x[np.broadcast_to(_PLACES[:1] > 0, x.shape)]),
    ("embedding", lambda w: ag.nn.functional.embedding(_PLACES_T, w), lambda w: w[_PLACES]),
]:
    add(_name, _call, _ref, ((3, 3), "real"))


# ---------------------------------------------------------------------------------------------------------------------
# Losses


def _reduced(values, reduction):
    return values if reduction == "none" else getattr(np, reduction)(values)


def _bce(x, t, reduction="mean", weight=None):
    loss = -(t * np.log(x) + (1 - t) * np.log1p(-x))
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits(x, t, reduction="mean", pos_weight=1.0):
    return _reduced(pos_weight * t * softplus(-x) + (1 - t) * softplus(x), reduction)


def cross_entropy(x, t, reduction="mean", weight=None, ignore_index=-100, label_smoothing=0.0):
    """Classes on axis 1 (axis 0 of a single row), as PyTorch's."""
    logp = special.log_softmax(x, axis=min(x.ndim - 1, 1))
    logp = np.moveaxis(logp, 1, -1) if x.ndim > 2 else logp
    n = logp.shape[-1]
    w = np.ones(n) if weight is None else np.asarray(weight, dtype="f8")
    if t.dtype.kind == "f":
        t = np.moveaxis(t, 1, -1) if x.ndim > 2 else t
        t = t * (1 - label_smoothing) + label_smoothing / n
        losses = -(t * w * logp).sum(-1)
        return losses.sum() / max(losses.size, 1) if reduction == "mean" else _reduced(losses, reduction)
    used = t != ignore_index
    safe = np.where(used, t, 0)
    picked = np.take_along_axis(logp, safe[..., None], -1)[..., 0]
    losses = -(1 - label_smoothing) * w[safe] * picked - label_smoothing / n * (w * logp).sum(-1)
    losses = np.where(used, losses, 0.0)
    return losses.sum() / (w[safe] * used).sum() if reduction == "mean" else _reduced(losses, reduction)


def _nll(x, t, weight, ignore_index, reduction):
    scale = weight[t] * (t != ignore_index)
    losses = -scale * np.take_along_axis(x, t[:, None], 1)[:, 0]
    return losses.sum() / scale.sum() if reduction == "mean" else _reduced(losses, reduction)


F = "nn.functional."
for _r in ("mean", "sum", "none"):
    add(
        f"mse_loss[{_r}]",
        public(F + "mse_loss", reduction=_r),
        lambda a, b, r=_r: _reduced((a - b) ** 2, r),
        ((2, 3), "real"),
        ((2, 3), "real"),
    )
    add(
        f"l1_loss[{_r}]",
        public(F + "l1_loss", reduction=_r),
        lambda a, b, r=_r: _reduced(np.abs(a - b), r),
        ((2, 3), "real"),
        ((2, 3), "real"),
    )
    add(
        f"huber_loss[{_r}]",
        public(F + "huber_loss", reduction=_r, delta=0.75),
        lambda a, b, r=_r: _reduced(special.huber(0.75, a - b), r),
        ((2, 3), "real"),
        ((2, 3), "real"),
    )
    add(
        f"smooth_l1_loss[{_r}]",
        public(F + "smooth_l1_loss", reduction=_r, beta=0.25),
        lambda a, b, r=_r: _reduced(special.huber(0.25, a - b) / 0.25, r),
        ((2, 3), "real"),
        ((2, 3), "real"),
        op="huber_loss",
    )
    add(
        f"binary_cross_entropy[{_r}]",
        public(F + "binary_cross_entropy", reduction=_r),
        functools.partial(_bce, reduction=_r),
        ((2, 3), "inside"),
        ((2, 3), "inside"),
    )
    add(
        f"binary_cross_entropy_with_logits[{_r}]",
        public(F + "binary_cross_entropy_with_logits", reduction=_r),
        functools.partial(_bce_logits, reduction=_r),
        ((2, 3), "real"),
        ((2, 3), "inside"),
    )
    add(
        f"cross_entropy[index,{_r}]",
        public(F + "cross_entropy", reduction=_r),
        functools.partial(cross_entropy, reduction=_r),
        ((5, 3), "real"),
        ((5,), "class3"),
    )
    add(
        f"cross_entropy[smoothing,{_r}]",
        public(F + "cross_entropy", reduction=_r, label_smoothing=0.2),
        functools.partial(cross_entropy, reduction=_r, label_smoothing=0.2),
        ((5, 3), "real"),
        ((5,), "class3"),
    )
    add(
        f"cross_entropy[ignore_index,{_r}]",
        public(F + "cross_entropy", reduction=_r, ignore_index=1),
        functools.partial(cross_entropy, reduction=_r, ignore_index=1),
        ((7, 3), "real"),
        ((7,), "class3"),
    )
    add(
        f"cross_entropy[probabilities,{_r}]",
        public(F + "cross_entropy", reduction=_r),
        functools.partial(cross_entropy, reduction=_r),
        ((5, 3), "real"),
        ((5, 3), "probabilities"),
        grad=(True, False),
    )
    add(
        f"cross_entropy[weight,{_r}]",
        lambda x, t, r=_r: ag.nn.functional.cross_entropy(x, t, weight=ag.tensor([0.5, 1.0, 2.0], dtype=x.dtype), reduction=r),
        functools.partial(cross_entropy, reduction=_r, weight=[0.5, 1.0, 2.0]),
        ((5, 3), "real"),
        ((5,), "class3"),
    )
add(
    "binary_cross_entropy[weight]",
    lambda x, t: ag.nn.functional.binary_cross_entropy(x, t, weight=ag.tensor([0.5, 1.0, 2.0], dtype=x.dtype)),
    functools.partial(_bce, weight=np.array([0.5, 1.0, 2.0])),
    ((2, 3), "inside"),
    ((2, 3), "inside"),
    grad=(True, False),
)
add(
    "binary_cross_entropy_with_logits[pos_weight]",
    lambda x, t: ag.nn.functional.binary_cross_entropy_with_logits(x, t, pos_weight=ag.tensor([0.5, 1.0, 2.0], dtype=x.dtype)),
    functools.partial(_bce_logits, pos_weight=np.array([0.5, 1.0, 2.0])),
    ((2, 3), "real"),
    ((2, 3), "inside"),
    grad=(True, False),
)
add("cross_entropy[one_row]", public(F + "cross_entropy"), cross_entropy, ((3,), "real"), ((), "class3"))
add("nll_loss[images]", public(F + "nll_loss"), lambda x, t: -np.take_along_axis(x, t[:, None], 1).mean(), ((2, 3, 4), "real"), ((2, 4), "class3"))


def _margins(x, targets=((2, 0, -1), (1, -1, 0))):
    return np.array([sum(max(0, 1 - row[t] + row[c]) for t in listed for c in range(3) if c not in listed) / 3
                     for row, listed in zip(x, [t[:t.index(-1)] for t in targets], strict=True)])


add("multilabel_margin", lambda x: ag.nn.functional.multilabel_margin_loss(x, ag.tensor([[2, 0, -1], [1, -1, 0]]), reduction="none"), _margins,
    ((2, 3), "distinct"))
for _r in ("mean", "sum", "none"):
    add(
        f"nll_loss[{_r}]",
        lambda x, t, r=_r: ag.nn.functional.nll_loss(x, t, ag.tensor([0.5, 1.0, 2.0], dtype=x.dtype), ignore_index=1, reduction=r),
        functools.partial(_nll, weight=np.array([0.5, 1.0, 2.0]), ignore_index=1, reduction=_r),
        ((5, 3), "real"),
        ((5,), "class3"),
    )
add("cross_entropy[smoothed images]", public(F + "cross_entropy", label_smoothing=0.2), functools.partial(cross_entropy, label_smoothing=0.2), ((2, 3, 4), "real"), ((2, 4), "class3"))
add("cross_entropy[images]", public(F + "cross_entropy"), cross_entropy, ((2, 3, 4), "real"), ((2, 4), "class3"))
add(
    "cross_entropy[all]",
    lambda x, t: ag.nn.functional.cross_entropy(
        x, t, weight=ag.tensor([0.5, 1.0, 2.0], dtype=x.dtype), ignore_index=2, label_smoothing=0.1
    ),
    functools.partial(cross_entropy, weight=[0.5, 1.0, 2.0], ignore_index=2, label_smoothing=0.1),
    ((9, 3), "real"),
    ((9,), "class3"),
)
add(
    "cross_entropy[probabilities,smoothing]",
    public(F + "cross_entropy", label_smoothing=0.3),
    functools.partial(cross_entropy, label_smoothing=0.3),
    ((5, 3), "real"),
    ((5, 3), "probabilities"),
    grad=(True, False),
)


# ---------------------------------------------------------------------------------------------------------------------
# Networks: windows over images, pooling, resampling, normalisation


def _windows(x, kernel, stride=1, padding=0, dilation=1, fill=0.0):
    """(N, C, *places, *kernel) of x (N, C, ...)."""
    d = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * d, constant_values=fill)
    reach = [dilation * (k - 1) + 1 for k in kernel]
    v = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + d)))
    return v[(slice(None), slice(None), *[slice(None, None, stride)] * d, *[slice(None, None, dilation)] * d)]


def _conv(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    d, m = w.ndim - 2, w.shape[0] // groups
    parts = []
    for g, xs in enumerate(np.split(x, groups, 1)):
        v = _windows(xs, w.shape[2:], stride, padding, dilation)
        axes = [1, *range(2 + d, 2 + 2 * d)]
        out = np.tensordot(v, w[g * m : (g + 1) * m], (axes, [1, *range(2, 2 + d)]))
        parts.append(np.moveaxis(out, -1, 1))
    out = np.concatenate(parts, 1)
    return out if b is None else out + b.reshape(-1, *[1] * d)


def _conv_transpose(x, w, b=None, stride=1, padding=0, extra=0):
    d = w.ndim - 2
    size = [(n - 1) * stride + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    out = np.zeros((x.shape[0], w.shape[1], *[n + extra for n in size]))
    for at in np.ndindex(*x.shape[2:]):
        part = np.tensordot(x[(slice(None), slice(None), *at)], w, (1, 0))
        out[(slice(None), slice(None), *[slice(i * stride, i * stride + k) for i, k in zip(at, w.shape[2:], strict=True)])] += part
    cut = (slice(None), slice(None), *[slice(padding, n + extra - padding) for n in size])
    return out[cut] + b.reshape(-1, *[1] * d)


def _fold(x):
    """fold to (4, 5) by windows of (2, 3)."""
    out = np.zeros((x.shape[0], x.shape[1] // 6, 4, 5))
    x = x.reshape(x.shape[0], -1, 2, 3, 3, 3)
    for i in range(3):
        for j in range(3):
            out[:, :, i : i + 2, j : j + 3] += x[..., i, j]
    return out


def _unfold(x):
    v = np.moveaxis(_windows(x, (2, 3), 1, 1), (4, 5), (2, 3))
    return v.reshape(x.shape[0], x.shape[1] * 6, -1)


def _linear_points(x):
    """(1, 2, 4) to 7 points, corners aligned."""
    at = np.linspace(0, 3, 7)
    return np.stack([np.stack([np.interp(at, np.arange(4), row) for row in rows]) for rows in x])


def _bilinear(x, grid):
    """x (N, C, H, W) at the places (x, y) of a grid; zeros around it."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype)
    for n, i, j in np.ndindex(grid.shape[:3]):
        at, up = [((g + 1) * (size - 2) + 1) / 2 for g, size in zip(grid[n, i, j], x.shape[:1:-1], strict=True)]
        column, row = int(at), int(up)
        for dy, dx in np.ndindex(2, 2):
            out[n, :, i, j] += x[n, :, row + dy, column + dx] * abs(1 - dy - up + row) * abs(1 - dx - at + column)
    return out


def _normal(x, axes, w, b, eps=1e-5, centred=True):
    if centred:
        x = x - x.mean(axes, keepdims=True)
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps) * w + b


_NORMS = {"float32": (3e-5, 1e-5), "float64": (1e-10, 1e-11)}
add("conv1d", public(F + "conv1d", stride=2, padding=1), functools.partial(_conv, stride=2, padding=1), ((2, 3, 7), "real"), ((4, 3, 3), "real"), ((4,), "real"), op="convolution")
add("conv2d", public(F + "conv2d", dilation=2, padding=1, groups=2), functools.partial(_conv, dilation=2, padding=1, groups=2), ((2, 4, 5, 6), "real"), ((6, 2, 2, 3), "real"), ((6,), "real"), op="convolution")
add("conv2d[1x1]", public(F + "conv2d"), _conv, ((2, 4, 3, 5), "real"), ((3, 4, 1, 1), "real"), ((3,), "real"), op="convolution")
add("conv2d[depthwise]", public(F + "conv2d", groups=3, padding=1), functools.partial(_conv, groups=3, padding=1), ((2, 3, 4, 5), "real"), ((3, 1, 3, 3), "real"), ((3,), "real"), op="convolution")
add("conv3d", public(F + "conv3d"), _conv, ((1, 2, 3, 4, 3), "real"), ((3, 2, 2, 2, 1), "real"), ((3,), "real"), op="convolution")
add("conv_transpose2d", public(F + "conv_transpose2d", stride=2, padding=1, output_padding=1), functools.partial(_conv_transpose, stride=2, padding=1, extra=1), ((2, 3, 3, 2), "real"), ((3, 2, 3, 3), "real"), ((2,), "real"), op="convolution_input")
add("unfold", public(F + "unfold", kernel_size=(2, 3), padding=1), _unfold, ((2, 2, 4, 3), "real"), op="unfold_windows")
add("fold", public(F + "fold", output_size=(4, 5), kernel_size=(2, 3)), _fold, ((2, 12, 9), "real"), op="fold_windows")
add("max_pool2d", public(F + "max_pool2d", kernel_size=2, stride=1, padding=1), lambda x: _windows(x, (2, 2), 1, 1, fill=-np.inf).max((-2, -1)), ((2, 2, 3, 4), "distinct"), op="max_pool", exact_ties=False)
add("avg_pool2d", public(F + "avg_pool2d", kernel_size=3, stride=2, padding=1), lambda x: _windows(x, (3, 3), 2, 1).mean((-2, -1)), ((2, 2, 5, 4), "real"), op="average_windows")
add("interpolate[linear]", public(F + "interpolate", size=7, mode="linear", align_corners=True), _linear_points, ((1, 2, 4), "real"), op="resample")
add("interpolate[nearest]", public(F + "interpolate", scale_factor=2), lambda x: x.repeat(2, 2).repeat(2, 3), ((1, 2, 3, 2), "real"), op="resample")
add("grid_sample", public(F + "grid_sample", align_corners=False), _bilinear, ((2, 3, 4, 3), "real"), ((2, 2, 3, 2), "unit"), op="sampled")
add("grid_sample[volume]", lambda x, grid: ag.nn.functional.grid_sample(x.unsqueeze(2), ag.nn.functional.pad(grid.unsqueeze(1), (0, 1)), align_corners=False).squeeze(2), _bilinear, ((1, 3, 4, 3), "real"), ((1, 3, 3, 2), "unit"), op="sampled")
add("layer_norm", lambda x, w, b: ag.nn.functional.layer_norm(x, (3, 4), w, b), lambda x, w, b: _normal(x, (1, 2), w, b), ((5, 3, 4), "real"), ((3, 4), "real"), ((3, 4), "real"), op="normalize_rows", tol=_NORMS)
add("group_norm", lambda x, w, b: ag.nn.functional.group_norm(x, 2, w, b), lambda x, w, b: _normal(x.reshape(3, 2, 2, 3), (2, 3), w.reshape(2, 2, 1), b.reshape(2, 2, 1)).reshape(x.shape), ((3, 4, 3), "real"), ((4,), "real"), ((4,), "real"), op="normalize_rows", tol=_NORMS)
add("rms_norm", lambda x, w: ag.nn.functional.rms_norm(x, (4,), w, 1e-3), lambda x, w: _normal(x, (1,), w, 0, 1e-3, False), ((5, 4), "real"), ((4,), "real"), op="normalize_rows", tol=_NORMS)
add("batch_norm", lambda x, w, b: ag.nn.functional.batch_norm(x, None, None, w, b, True), lambda x, w, b: _normal(x, (0, 2), w.reshape(-1, 1), b.reshape(-1, 1)), ((4, 3, 2), "real"), ((3,), "real"), ((3,), "real"), op="normalize_channels", tol=_NORMS)
add("batch_norm[evaluation]", lambda x, w, b: ag.nn.functional.batch_norm(x, ag.tensor([0.5, 0.0, -1.0], dtype=x.dtype), ag.tensor([1.0, 2.0, 0.5], dtype=x.dtype), w, b), lambda x, w, b: (x - np.array([[0.5], [0.0], [-1.0]])) / np.sqrt(np.array([[1.0], [2.0], [0.5]]) + 1e-5) * w.reshape(-1, 1) + b.reshape(-1, 1), ((4, 3, 2), "real"), ((3,), "real"), ((3,), "real"), op="scale_channels", tol=_NORMS)
add("batch_norm[evaluation, rows]", lambda x, w, b: ag.nn.functional.batch_norm(x, ag.tensor([0.5, 0.0, -1.0], dtype=x.dtype), ag.tensor([1.0, 2.0, 0.5], dtype=x.dtype), w, b), lambda x, w, b: (x - np.array([0.5, 0.0, -1.0])) / np.sqrt(np.array([1.0, 2.0, 0.5]) + 1e-5) * w + b, ((6, 3), "real"), ((3,), "real"), ((3,), "real"), op="scale_channels", tol=_NORMS)
add("batch_norm[rows]", lambda x, w, b: ag.nn.functional.batch_norm(x, None, None, w, b, True), lambda x, w, b: _normal(x, (0,), w, b), ((6, 3), "real"), ((3,), "real"), ((3,), "real"), op="normalize_channels", tol=_NORMS)


# ---------------------------------------------------------------------------------------------------------------------
# Variants: the same numbers in other layouts


def as_contiguous(a):
    return ag.tensor(a)


def as_transposed(a):
    return ag.tensor(np.ascontiguousarray(a.T)).permute(*reversed(range(a.ndim))) if a.ndim > 1 else ag.tensor(a)


def as_sliced(a):
    """Every second element of a wider buffer, filled with other numbers between."""
    if a.ndim == 0:
        return ag.tensor(np.stack([a + 1 if a.dtype != bool else a, a]))[1]
    wide = np.repeat(a, 2, axis=-1)
    wide[..., 1::2] = True if a.dtype == bool else 77
    wide = np.concatenate([wide[:1], wide], axis=0)
    return ag.tensor(wide)[1:, ..., ::2] if a.ndim > 1 else ag.tensor(np.repeat(a, 2))[::2]


def as_reversed(a):
    if a.ndim == 0:
        return ag.tensor(a)
    flip = (slice(None, None, -1),) * a.ndim
    return ag.tensor(np.ascontiguousarray(a[flip]))[flip]


def as_broadcast(a):
    """One row, repeated by a stride of 0 (the numbers of the other rows are lost)."""
    return ag.tensor(np.ascontiguousarray(a[:1])).expand(*a.shape)


LAYOUTS = {"contiguous": as_contiguous, "transposed": as_transposed, "sliced": as_sliced, "reversed": as_reversed}


def variants(sample, dtype="float64"):
    """Pairs (label, arrays, tensors): the sample's inputs in every layout, and in the sizes that its kind allows."""
    arrays = sample.arrays(dtype)
    for label, make in LAYOUTS.items():
        yield label, arrays, [make(a) for a in arrays]
    if all(a.ndim > 0 and a.shape[0] > 1 for a in arrays) and sample.op not in ("cross_entropy",):
        same = [np.broadcast_to(a[:1], a.shape) for a in arrays]
        yield "broadcast", same, [as_broadcast(a) for a in arrays]
    if sample.elementwise:
        for shape in ((), (0,), (2, 0, 3), (1,), (1, 1, 7), (3, 1, 2, 5)):
            arrays = sample.arrays(dtype, [shape] * len(sample.inputs))
            yield f"shape {shape}", arrays, [as_contiguous(a) for a in arrays]


def outputs(value):
    """The tensors of a result, as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]
