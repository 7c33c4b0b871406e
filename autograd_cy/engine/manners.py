"""NumPy's functions on tensors: np.exp(x), np.sum(x, axis=0), np.concatenate([x, y]) run the library's own and stay differentiable.

Relies on Tensor's methods and, by name, on the package's functions. methods.py puts `__array_ufunc__` and `__array_function__` into Tensor,
and what Python's own functions ask for (round, math.floor, reversed). A function without a counterpart runs on NumPy arrays of tensors
that require no gradient; one that does makes it a TypeError, because NumPy would lose the gradient without a word.
"""

import math
import sys

import numpy as np

from .creation import tensor
from .tensor import Tensor

PACKAGE = __name__.partition(".")[0]

# NumPy's ufuncs whose counterpart has another name.
UFUNCS = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "negative": "neg", "absolute": "abs", "fabs": "abs",
    "rint": "round", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh",
    "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "greater": "gt", "less": "lt",
    "greater_equal": "ge", "less_equal": "le", "equal": "eq", "not_equal": "ne", "degrees": "rad2deg", "radians": "deg2rad",
    "conjugate": "positive", "vecdot": None, "modf": None, "frexp": None,
}
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin", "logical_and": "all", "logical_or": "any"}
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}


def _counterpart(name):
    """The package's function of that name, or None."""
    return None if name is None or name.startswith("_") else getattr(sys.modules[PACKAGE], name, None)


def _tensors(value):
    """The tensors in arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _arrays(value):
    """The arguments with arrays for tensors."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)) and any(True for _ in _tensors(value)):
        return type(value)(map(_arrays, value)) if type(value) in (list, tuple) else type(value)(*map(_arrays, value))
    if isinstance(value, dict):
        return {k: _arrays(v) for k, v in value.items()}
    return value


def _in_numpy(function, name, args, kwargs):
    """NumPy's own function on arrays, unless a gradient would be lost."""
    if any(t.requires_grad for t in _tensors((args, kwargs))):
        raise TypeError(f"{name} has no differentiable counterpart for these arguments; write it with the functions of {PACKAGE}, or take "
                        f"detach().numpy() of tensors that require gradients")
    return function(*_arrays(args), **_arrays(kwargs))


# ---- ufuncs

def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
    name = ufunc.__name__
    label = f"numpy.{name}" if method == "__call__" else f"numpy.{name}.{method}"
    if method == "at" or out is not None and not all(isinstance(o, Tensor) for o in out):
        return _in_numpy(ufunc if method == "__call__" else getattr(ufunc, method), f"{label} into an array", inputs,
                         options if out is None else options | {"out": out})
    result = _ufunc(ufunc, name, method, inputs, options)
    if result is NotImplemented:
        if out is not None:
            raise TypeError(f"{label} into a tensor has no counterpart in {PACKAGE}")
        return _in_numpy(ufunc if method == "__call__" else getattr(ufunc, method), label, inputs, options)
    if out is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    written = tuple(o.copy_(r) for o, r in zip(out, results, strict=True))
    return written if isinstance(result, tuple) else written[0]


def _ufunc(ufunc, name, method, inputs, options):
    dtype = options.pop("dtype", None)
    if options.get("where", True) is True:
        options.pop("where", None)
    if method == "__call__" and not options:
        if name == "divmod":
            return np.floor_divide(*inputs), np.remainder(*inputs)
        function = _counterpart(UFUNCS.get(name, name))
        if function is None:
            return NotImplemented
        if name == "matmul":
            inputs = _listed(inputs)
        result = function(*inputs)
    elif method == "reduce" and name in REDUCTIONS and set(options) <= {"axis", "keepdims"}:
        axis = options.get("axis", 0)
        axis = tuple(range(inputs[0].ndim)) if axis is None else axis
        result = getattr(inputs[0], REDUCTIONS[name])(axis, options.get("keepdims", False))
    elif method == "accumulate" and name in ACCUMULATIONS and set(options) <= {"axis"} and hasattr(inputs[0], ACCUMULATIONS[name]):
        result = getattr(inputs[0], ACCUMULATIONS[name])(options.get("axis", 0))
    elif method == "outer" and not options:
        a, b = (x if isinstance(x, Tensor) else tensor(x) for x in inputs)
        result = ufunc(a.reshape(a.shape + (1,) * b.ndim), b)
    else:
        if dtype is not None:
            options["dtype"] = dtype
        return NotImplemented
    return result if dtype is None else result.to(dtype)


# ---- functions

def _as_tensor(x):
    return x if isinstance(x, Tensor) else tensor(x)


def _listed(tensors):
    return [_as_tensor(t) for t in tensors]


def _reduction(name, *more):
    """A reduction with NumPy's parameters; `more` names those that it takes beside axis and keepdims."""
    def reduce(a, axis=None, dtype=None, out=None, keepdims=False, **options):
        if out is not None or not set(options) <= set(more):
            return NotImplemented
        function = _counterpart(name)
        if function is None:
            return NotImplemented
        if name in ("var", "std"):
            options["correction"] = options.pop("ddof", 0)
        a = a if dtype is None else a.to(dtype)
        if name in ("argmax", "argmin"):
            return function(a, axis, keepdims)
        if axis is None and name not in ("sum", "mean", "prod"):
            axis = tuple(range(a.ndim))
        return function(a, axis, keepdim=keepdims, **options)
    return reduce


def _scan(name):
    def scan(a, axis=None, dtype=None, out=None):
        function = _counterpart(name)
        if out is not None or function is None:
            return NotImplemented
        a = a if dtype is None else a.to(dtype)
        return function(a.reshape(-1) if axis is None else a, 0 if axis is None else axis)
    return scan


def _ag(name, *parameters):
    """The package's function, called with NumPy's parameters in that order."""
    def call(*args, **kwargs):
        function = _counterpart(name)
        if function is None:
            return NotImplemented
        given = dict(zip(parameters, args, strict=False)) | kwargs
        if len(args) > len(parameters) or not set(given) <= set(parameters):
            return NotImplemented
        return function(*[given[p] for p in parameters if p in given])
    return call


def _linalg(name):
    def call(*args, **kwargs):
        function = getattr(getattr(sys.modules[PACKAGE], "linalg", None), name, None)
        return NotImplemented if function is None else function(*map(_as_tensor, args), **kwargs)
    return call


def _clip(a, a_min=None, a_max=None, *, min=None, max=None):
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return _as_tensor(a).clamp(*[tensor(v) if isinstance(v, np.ndarray) else v for v in (low, high)])


def _take(a, indices, axis=None):
    indices = _as_tensor(indices)
    return a.reshape(-1)[indices] if axis is None else a[(slice(None),) * (axis % a.ndim) + (indices,)]


def _pad(array, pad_width, mode="constant", **options):
    value = options.pop("constant_values", 0)
    names = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    if options or mode not in names or np.ndim(value):
        return NotImplemented
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    pad = sys.modules[PACKAGE].nn.functional.pad
    return pad(array, [p for pair in reversed(widths) for p in pair], names[mode], value if mode == "constant" else None)


def _cut(name, equal):
    def split(ary, indices_or_sections, axis=0):
        sections = indices_or_sections
        if equal and not np.ndim(sections) and ary.shape[axis] % sections:
            raise ValueError(f"numpy.{name}: dim {axis} of shape {ary.shape} does not divide into {sections} equal parts")
        return list(_counterpart("tensor_split")(ary, sections if not np.ndim(sections) else [int(s) for s in sections], axis))
    return split


def _shape_of(a):
    return a.shape


def _repeat(a, repeats, axis=None):
    repeats = tensor(repeats) if np.ndim(repeats) and not isinstance(repeats, Tensor) else repeats
    return _counterpart("repeat_interleave")(a, repeats, axis)


def _where(condition, *choices):
    condition = _as_tensor(condition)
    condition = condition if condition.dtype.name == "bool" else condition != 0
    return _counterpart("where")(condition, *choices)


FUNCTIONS = {
    **{name: _reduction(other) for name, other in {
        "sum": "sum", "mean": "mean", "prod": "prod", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin", "any": "any",
        "all": "all", "nansum": "nansum", "nanmean": "nanmean", "argmax": "argmax", "argmin": "argmin"}.items()},
    "var": _reduction("var", "ddof"), "std": _reduction("std", "ddof"), "cumsum": _scan("cumsum"), "cumprod": _scan("cumprod"),
    "shape": _shape_of, "ndim": lambda a: a.ndim, "size": lambda a, axis=None: a.numel() if axis is None else a.shape[axis],
    "reshape": lambda a, shape=None, order="C", *, newshape=None: a.reshape(shape if newshape is None else newshape) if order == "C"
    else NotImplemented,
    "ravel": lambda a, order="C": a.reshape(-1) if order == "C" else NotImplemented,
    "transpose": lambda a, axes=None: a.permute(tuple(reversed(range(a.ndim))) if axes is None else tuple(axes)),
    "swapaxes": _ag("swapaxes", "a", "axis1", "axis2"), "moveaxis": _ag("movedim", "a", "source", "destination"),
    "squeeze": lambda a, axis=None: a.squeeze() if axis is None else a.squeeze(axis),
    "expand_dims": lambda a, axis: a.unsqueeze(axis), "broadcast_to": lambda array, shape: array.broadcast_to(
        (shape,) if np.ndim(shape) == 0 else shape), "broadcast_arrays": lambda *args: _counterpart("broadcast_tensors")(*_listed(args)),
    "concatenate": lambda arrays, axis=0: _counterpart("cat")(
        [t.reshape(-1) for t in _listed(arrays)] if axis is None else _listed(arrays), axis or 0),
    "stack": lambda arrays, axis=0: _counterpart("stack")(_listed(arrays), axis),
    **{name: (lambda tup, name=name: _counterpart(name)(_listed(tup))) for name in ("hstack", "vstack", "dstack", "column_stack")},
    "split": _cut("split", True), "array_split": _cut("array_split", False),
    "tile": lambda A, reps: A.tile(reps) if np.ndim(reps) else A.tile((reps,)), "repeat": _repeat,
    "flip": lambda m, axis=None: m.flip(tuple(range(m.ndim)) if axis is None else axis), "fliplr": _ag("fliplr", "m"),
    "flipud": _ag("flipud", "m"),
    "roll": _ag("roll", "a", "shift", "axis"), "rot90": _ag("rot90", "m", "k", "axes"),
    "diag": _ag("diag", "v", "k"), "diagflat": _ag("diagflat", "v", "k"), "diagonal": _ag("diagonal", "a", "offset", "axis1", "axis2"),
    "tril": _ag("tril", "m", "k"), "triu": _ag("triu", "m", "k"), "trace": lambda a, offset=0: a.diagonal(offset).sum(-1), "pad": _pad,
    "meshgrid": lambda *xi, indexing="xy": list(_counterpart("meshgrid")(*_listed(xi), indexing=indexing)),
    **{name: (lambda *arys, name=name: _counterpart(name)(*_listed(arys))) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    "take": _take, "take_along_axis": _ag("take_along_dim", "arr", "indices", "axis"), "where": _where, "clip": _clip,
    **{name: (lambda a, b, name=name: _counterpart(name)(_as_tensor(a), _as_tensor(b))) for name in ("outer", "inner", "vdot", "kron")},
    "dot": lambda a, b: _as_tensor(a) * _as_tensor(b) if not (np.ndim(a) and np.ndim(b)) else _as_tensor(a) @ _as_tensor(b)
    if np.ndim(b) < 3 else NotImplemented,
    "einsum": lambda *args: _counterpart("einsum")(*args),
    "tensordot": lambda a, b, axes=2: _counterpart("tensordot")(_as_tensor(a), _as_tensor(b), axes),
    **{name: (lambda a, dtype=None, name=name: _counterpart(name)(a, dtype=dtype)) for name in ("zeros_like", "ones_like", "empty_like")},
    "full_like": lambda a, fill_value, dtype=None: _counterpart("full_like")(a, fill_value, dtype=dtype),
    "copy": lambda a: a.clone(),
    "round": lambda a, decimals=0: rounded(a, decimals), "around": lambda a, decimals=0: rounded(a, decimals),
    "real": lambda val: val,
    "nan_to_num": lambda x, copy=True, nan=0.0, posinf=None, neginf=None: x.nan_to_num(nan, posinf, neginf),
    "sinc": _ag("sinc", "x"), "isclose": lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: _counterpart("isclose")(
        _as_tensor(a), _as_tensor(b), rtol, atol, equal_nan),
}
LINALG = {name: _linalg(name) for name in (
    "norm", "inv", "solve", "det", "slogdet", "cholesky", "qr", "svd", "eigh", "pinv", "matrix_power")}


def __array_function__(self, func, types, args, kwargs):
    name, module = func.__name__, func.__module__ or ""
    counterpart = LINALG.get(name) if module.startswith("numpy.linalg") else FUNCTIONS.get(name) if module.startswith("numpy") else None
    kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
    if counterpart is not None and _binds(counterpart, args, kwargs):
        result = counterpart(*args, **kwargs)
        if result is not NotImplemented:
            return result
    return _in_numpy(func, f"{module}.{name}", args, kwargs)


def _binds(function, args, kwargs):
    """Whether a counterpart takes these arguments."""
    import inspect

    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


# ---- Python's functions

def rounded(x, decimals=0):
    """x rounded to so many decimals."""
    if not decimals or not x.is_floating_point():
        return x.round() if x.is_floating_point() else x
    unit = 10.0**abs(decimals)
    return (x * unit).round() / unit if decimals > 0 else (x / unit).round() * unit


def __round__(self, ndigits=None):
    return rounded(self, ndigits or 0)


def __trunc__(self):
    return math.trunc(self.item())


def __floor__(self):
    return math.floor(self.item())


def __ceil__(self):
    return math.ceil(self.item())


def __complex__(self):
    return complex(self.item())


def __reversed__(self):
    return self.flip(0) if self.ndim else self


METHODS = (__array_ufunc__, __array_function__, __round__, __trunc__, __floor__, __ceil__, __complex__, __reversed__)
