"""NumPy's functions on tensors, in one table: each gives what NumPy gives, and the gradient of the library's own; or it raises.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import math
import operator
import warnings

import numpy as np
import pytest
from numeric import array, leaf

import autograd_cy as ag

X, Y, W = np.array([[0.57, 1.43, -0.73], [2.04, -1.22, 0.31]]), np.array([0.43, 1.9, 1.13]), np.array([[0.3, 0.8, 0.6], [0.2, 0.9, 0.5]])

# A function of NumPy's arguments; it is run on arrays and on tensors that require gradients. The third: whether there is a gradient.
CASES = {
    "exp": (lambda x: np.exp(x), [X], True),
    "sin": (lambda x: np.sin(x), [X], True),
    "arctan": (lambda x: np.arctan(x), [X], True),
    "tanh": (lambda x: np.tanh(x), [X], True),
    "log1p": (lambda x: np.log1p(x), [W], True),
    "sqrt": (lambda x: np.sqrt(x), [W], True),
    "square": (lambda x: np.square(x), [X], True),
    "negative": (lambda x: np.negative(x), [X], True),
    "absolute": (lambda x: np.absolute(x), [X], True),
    "fabs": (lambda x: np.fabs(x), [X], True),
    "reciprocal": (lambda x: np.reciprocal(x), [X], True),
    "degrees": (lambda x: np.degrees(x), [X], True),
    "sign": (lambda x: np.sign(x), [X], True),
    "rint": (lambda x: np.rint(x), [X], True),
    "floor": (lambda x: np.floor(x), [X], True),
    "isnan": (lambda x: np.isnan(x), [X], False),
    "isfinite": (lambda x: np.isfinite(x), [X], False),
    "signbit": (lambda x: np.signbit(x), [X], False),
    "add": (lambda x, y: np.add(x, y), [X, Y], True),
    "add a number": (lambda x: np.add(2.0, x), [X], True),
    "subtract an array": (lambda x: np.subtract(Y, x), [X], True),
    "multiply": (lambda x, y: np.multiply(x, y), [X, Y], True),
    "divide": (lambda x, y: np.divide(x, y), [X, Y], True),
    "power": (lambda x: np.power(x, 3), [X], True),
    "a number to a power": (lambda x: np.power(2.0, x), [X], True),
    "maximum": (lambda x, y: np.maximum(x, y), [X, Y], True),
    "minimum of a number": (lambda x: np.minimum(x, 0.4), [X], True),
    "fmax": (lambda x, y: np.fmax(x, y), [X, Y], True),
    "hypot": (lambda x, y: np.hypot(x, y), [X, Y], True),
    "arctan2": (lambda x, y: np.arctan2(x, y), [X, Y], True),
    "logaddexp": (lambda x, y: np.logaddexp(x, y), [X, Y], True),
    "copysign": (lambda x, y: np.copysign(x, y), [X, -Y], True),
    "remainder": (lambda x, y: np.remainder(x, y), [X, Y], True),
    "divmod": (lambda x: np.divmod(x, 0.7)[1], [X], True),
    "matmul": (lambda x, y: np.matmul(x, y), [X, Y], True),
    "matmul with an array": (lambda x: np.matmul(X, x), [Y], True),
    "greater": (lambda x: np.greater(x, 0.2), [X], False),
    "equal to an array": (lambda x: np.equal(X, x), [X], False),
    "add.reduce": (lambda x: np.add.reduce(x), [X], True),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=1, keepdims=True), [X], True),
    "add.accumulate": (lambda x: np.add.accumulate(x, axis=1), [X], True),
    "multiply.outer": (lambda x, y: np.multiply.outer(x, y), [Y, X], True),
    "sum": (lambda x: np.sum(x), [X], True),
    "sum of an axis": (lambda x: np.sum(x, axis=-1, keepdims=True), [X], True),
    "mean": (lambda x: np.mean(x, axis=(0, 1)), [X], True),
    "prod": (lambda x: np.prod(x, axis=0), [X], True),
    "max": (lambda x: np.max(x), [X], True),
    "amin": (lambda x: np.amin(x, 1), [X], True),
    "var": (lambda x: np.var(x), [X], True),
    "std with ddof": (lambda x: np.std(x, axis=0, ddof=1), [X], True),
    "argmax": (lambda x: np.argmax(x, axis=1), [X], False),
    "any": (lambda x: np.any(x > 1), [X], False),
    "cumsum": (lambda x: np.cumsum(x, axis=1), [X], True),
    "cumprod of all": (lambda x: np.cumprod(x), [X], True),
    "reshape": (lambda x: np.reshape(x, (3, 2)), [X], True),
    "ravel": (lambda x: np.ravel(x), [X], True),
    "transpose": (lambda x: np.transpose(x), [X], True),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), [X], True),
    "expand_dims": (lambda x: np.expand_dims(x, 1), [X], True),
    "squeeze": (lambda x: np.squeeze(x[None]), [X], True),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3)), [Y], True),
    "concatenate": (lambda x, w: np.concatenate([x, w], axis=1), [X, W], True),
    "concatenate with an array": (lambda x: np.concatenate((X, x)), [W], True),
    "stack": (lambda x, w: np.stack([x, w], axis=1), [X, W], True),
    "vstack": (lambda x, y: np.vstack([x, y]), [X, Y], True),
    "hstack": (lambda x, w: np.hstack([x, w]), [X, W], True),
    "split": (lambda x: np.split(x, [1], axis=1)[1], [X], True),
    "array_split": (lambda x: np.array_split(x, 2, axis=1)[0], [X], True),
    "tile": (lambda x: np.tile(x, 2), [X], True),
    "repeat": (lambda x: np.repeat(x, 2, axis=0), [X], True),
    "flip": (lambda x: np.flip(x, 1), [X], True),
    "roll": (lambda x: np.roll(x, 1, axis=1), [X], True),
    "rot90": (lambda x: np.rot90(x), [X], True),
    "diag": (lambda y: np.diag(y), [Y], True),
    "diagonal": (lambda x: np.diagonal(x, 1), [X], True),
    "trace": (lambda x: np.trace(x), [X], True),
    "tril": (lambda x: np.tril(x, -1), [X], True),
    "pad": (lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=3), [X], True),
    "pad with edges": (lambda x: np.pad(x, 1, mode="edge"), [X], True),
    "meshgrid": (lambda y: np.meshgrid(y, y)[0], [Y], True),
    "take": (lambda x: np.take(x, [0, 2, 0], axis=1), [X], True),
    "take_along_axis": (lambda x: np.take_along_axis(x, x.argmax(1)[:, None], 1), [X], True),
    "where": (lambda x, w: np.where(X > 0, x, w), [X, W], True),
    "clip": (lambda x: np.clip(x, -0.5, 1.0), [X], True),
    "dot": (lambda x, y: np.dot(x, y), [X, Y], True),
    "outer": (lambda x, y: np.outer(x, y), [Y, Y], True),
    "einsum": (lambda x, y: np.einsum("ij,j->i", x, y), [X, Y], True),
    "linalg.norm": (lambda x: np.linalg.norm(x), [X], True),
    "linalg.det": (lambda x: np.linalg.det(x[:, :2]), [X], True),
    "linalg.inv": (lambda x: np.linalg.inv(x[:, :2]), [X], True),
    "round": (lambda x: np.round(x, 1), [X], True),
    "nan_to_num": (lambda x: np.nan_to_num(x), [X], True),
    "zeros_like": (lambda x: np.zeros_like(x), [X], False),
    "shape": (lambda x: np.zeros(np.shape(x)), [X], False),
    "array * tensor": (lambda y: X * y, [Y], True),
    "array @ tensor": (lambda y: X @ y, [Y], True),
    "array - tensor": (lambda y: X - y, [Y], True),
    "scalar / tensor": (lambda y: np.float64(2) / y, [Y], True),
    "tensor ** array": (lambda y: y ** np.array([1.0, 2.0, 0.5]), [Y], True),
    "array < tensor": (lambda y: y > X, [Y], False),
}
REFUSED = {  # no counterpart: an error for tensors with gradients, NumPy's result for others
    "convolve": lambda y: np.convolve(y, [1.0, 2.0]),
    "interp": lambda y: np.interp(y, [0.0, 3.0], [1.0, 2.0]),
    "sort_complex": lambda y: np.sort_complex(y),
    "linalg.eigvals": lambda y: np.linalg.eigvals(np.outer(y, y)),
    "spacing": lambda y: np.spacing(y),
    "ptp": lambda y: np.ptp(y),
    "sum into an array": lambda y: np.add(y, 1.0, out=np.zeros(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_numpy_function(name):
    function, inputs, differentiable = CASES[name]
    right = function(*inputs)
    tensors = [leaf(x) for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = function(*tensors)
    if isinstance(right, np.ndarray) and name == "shape":
        assert result.shape == right.shape
        return
    assert isinstance(result, ag.Tensor), name
    assert result.shape == np.shape(right)
    np.testing.assert_allclose(array(result), right, 1e-12, 1e-12)
    assert result.requires_grad == differentiable
    if not differentiable:
        return
    weights = np.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
    grads = ag.autograd.grad(result, tensors, ag.tensor(weights))
    for k, (x, g) in enumerate(zip(inputs, grads)):
        for at in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[at] += 1e-6
            down[at] -= 1e-6
            values = [np.sum(function(*inputs[:k], v, *inputs[k + 1:]) * weights) for v in (up, down)]
            assert abs((values[0] - values[1]) / 2e-6 - g[at].item()) < 1e-5, (name, k, at)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_counterpart_is_never_detached(name):
    function = REFUSED[name]
    with pytest.raises((TypeError, RuntimeError), match="detach"):
        function(leaf(Y))
    assert np.allclose(np.asarray(function(ag.tensor(Y))), function(Y))


def test_results_written_to_arrays_and_tensors():
    a, t = np.zeros(3), ag.zeros(3, dtype=ag.float64)
    a += ag.tensor(Y)
    assert type(a) is np.ndarray and np.array_equal(a, Y)
    with pytest.raises(TypeError, match="detach"):
        a += leaf(Y)
    np.multiply(Y, 2, out=a)
    assert np.add(ag.tensor(Y), 1, out=t) is t
    assert np.array_equal(array(t), Y + 1)


def test_numbers_keep_the_dtype_of_a_tensor():
    x = ag.ones(2)
    for result in (np.add(x, 1.0), np.multiply(2, x), np.float64(2) * x, np.maximum(np.float32(2), x)):
        assert result.dtype == ag.float32
    assert (np.int64(2) * ag.ones(2, dtype=ag.int32)).dtype == ag.int32
    assert np.sum(x, dtype=np.float64).dtype == ag.float64


def test_numbers_of_python():
    t = ag.tensor(-1.5)
    assert (math.floor(t), math.ceil(t), math.trunc(t)) == (-2, -1, -1)
    assert complex(t) == -1.5 + 0j
    assert round(ag.tensor(2.346, dtype=ag.float64), 2).item() == 2.35
    assert list(reversed(ag.tensor([1, 2, 3]))) == [3, 2, 1]
    assert [v.tolist() for v in divmod(7, ag.tensor([2.0, 3.0]))] == [[3.0, 2.0], [1.0, 1.0]]


IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow]


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [2.0, np.float64(2), np.array([2.0, 3.0, 0.5]), ag.tensor(2.0)], ids=lambda o: type(o).__name__)
def test_operators_in_place(op, other):
    a, t = Y.copy(), ag.tensor(Y)
    assert op(t, other) is t
    np.testing.assert_allclose(array(t), op(a, np.asarray(other)), 1e-12)


def test_integer_operators_in_place_and_reflected():
    for op in (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
        t, a = ag.tensor([5, 6]), np.array([5, 6])
        same = t
        t = op(t, 3)
        assert t is same and t.tolist() == op(a, 3).tolist()
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.floordiv, operator.mod, operator.pow):
        assert op(9, ag.tensor([1, 2])).tolist() == op(9, np.array([1, 2])).tolist()
    x = ag.tensor([[1.0, 2.0], [3.0, 4.0]])
    x @= ag.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert x.tolist() == [[2.0, 1.0], [4.0, 3.0]]
