"""What a captured computation may do with values: random numbers, constants, checks and writes replay to the bit; values that go to
Python are refused.

Relies on graph's recorder and machine, through `replayed` alone. Nothing relies on it.
"""

import copy
import math
import pickle

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy.array.errors import CaptureError
from autograd_cy.graph.machine import Machine
from autograd_cy.graph.recording import Recording
from autograd_cy.nn import functional as F


class Plan:
    """Each local buffer in a place of its own."""

    def __init__(self, program):
        self.offsets, self.nbytes = {}, 0
        for b in program.buffers:
            if b.kind == "local":
                self.offsets[b.id] = self.nbytes
                self.nbytes += (b.nbytes + 127) // 64 * 64


def tuple_of(result):
    return result if isinstance(result, tuple) else (result,)


def replayed(function, inputs):
    """What the capture itself computes, and a function from other inputs to what the replay computes."""
    with Recording(inputs) as recording:
        results = tuple_of(function(*inputs))
        views = [recording.view_of(r) for r in results]
    program = recording.program(outputs=views)
    instance = Machine(program, Plan(program)).instance()

    def run(*others):
        instance.bind_inputs(others)
        instance.run()
        return tuple(instance.tensor(v) for v in views)

    return results, run


def outcome(function, seed, inputs):
    """The bytes of the results, or the type of the error."""
    ag.manual_seed(seed)
    try:
        return [r.detach().numpy().tobytes() for r in tuple_of(function(*inputs))]
    except (IndexError, RuntimeError) as error:
        return type(error)


def gradients(function):
    """A function that returns the value of `function` and its gradients."""
    def with_gradients(*inputs):
        leaves = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        out = function(*leaves)
        loss = (out * out).sum() if out.ndim else out
        return loss.detach(), *ag.autograd.grad(loss, [x for x in leaves if x.requires_grad], materialize_grads=True)
    return with_gradients


rng = np.random.default_rng(0)


def real(*shape, dtype="f4"):
    return ag.tensor(rng.normal(size=shape).astype(dtype))


def whole(n, *shape):
    return ag.tensor(rng.integers(0, n, shape))


def changed(x, place, value):
    x = x.clone()
    x[place] = value
    return x


X, Y = real(6, 4), real(6, 4)
P, Q = X.sigmoid(), Y.sigmoid()
T, U = whole(4, 6), whole(4, 6)
WEIGHT = ag.tensor([1.0, 2.0, 0.5, 3.0])
FEW = whole(4, 6, 2)


def index_put(x, i):
    z = x.clone()
    z[i] = 1.5
    return z


def mask_put(x, y):
    z = x.clone()
    z[y > 0] = 0.0
    z[y[:, 0] > 0] = ag.tensor([1.0, 2.0, 3.0, 4.0])
    return z


def second_order(x):
    x = x.detach().clone().requires_grad_()
    loss = ag.where(x > 0, x.sqrt(), 0.0).sum() + (x ** 3).sum()
    first, = ag.autograd.grad(loss, x, create_graph=True)
    return first.detach(), ag.autograd.grad((first * first).sum(), x)[0]


def through_views(x, y):
    z = x * 1
    z[1:3] = y[1:3] * 2
    z[:, 0].mul_(3)
    return z


def fills(x):
    a = x.clone().uniform_(-2, 3)
    b = a.clone()
    b[:, 1].normal_(1, 2)
    c = b.clone().zero_()
    c[0] += 1
    return a, b, c, c.clone().fill_(2)


def initialised(x):
    z = x.clone()
    return tuple(f(z).clone() for f in (ag.nn.init.trunc_normal_, ag.nn.init.orthogonal_, ag.nn.init.kaiming_uniform_))


def reseeded(x):
    made = ag.rand(3, generator=ag.Generator(7))
    ag.manual_seed(3)
    return made, x + ag.rand(6, 4)


def clipped(x, y, max_norm=1.0, norm_type=2.0):
    a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
    a.grad, b.grad = x * 1, (y.t() * 1).t()
    return ag.nn.utils.clip_grad_norm_([a, b], max_norm, norm_type), a.grad, b.grad


def zeroed(x):
    a = x.clone().requires_grad_()
    (a * a).sum().backward()
    ag.optim.SGD([a], lr=0.1).zero_grad(set_to_none=False)
    kept = a.grad.clone()
    (a * 3).sum().backward()
    return kept, a.grad


def data_exchanged(x, y):
    a = x.clone().requires_grad_()
    (a * y).sum().backward()
    a.data = a.data - 0.1 * a.grad
    return a.detach() * 1


def created(x):
    return (x * ag.arange(4) + ag.ones(4) + ag.full((4,), 2.5) + ag.eye(6, 4) + ag.linspace(0, 1, 4) + ag.tensor([1.0, 2, 3, 4])
            + ag.zeros(4) + ag.ones_like(x), x + np.float32(2))


REPLAYED = {
    "mse_loss": (gradients(F.mse_loss), (X, Y), (Y, X)),
    "huber_loss": (gradients(lambda x, y: F.huber_loss(x, y, delta=0.5)), (X, Y), (Y, X)),
    "binary_cross_entropy": (gradients(F.binary_cross_entropy), (P, Q), (Q, P), (X, Q)),
    "cross_entropy": (gradients(F.cross_entropy), (X, T), (Y, U), (X, changed(T, 1, -100)), (X, changed(T, slice(None), -100)),
                      (X, changed(T, 3, 9))),
    "cross_entropy[weight]": (gradients(lambda x, t: F.cross_entropy(x, t, WEIGHT, label_smoothing=0.1)), (X, T),
                              (Y, changed(T, 1, -100))),
    "nll_loss": (gradients(lambda x, t: F.nll_loss(F.log_softmax(x, 1), t, WEIGHT)), (X, T), (Y, changed(T, 1, -100)),
                 (X, changed(T, 3, 9)), (X, changed(T, 3, -3))),
    "one_hot": (lambda t: F.one_hot(t, 4), (T,), (U,)),
    "gather": (gradients(lambda x, i: x.gather(1, i)), (X, FEW), (Y, whole(4, 6, 2)), (X, changed(FEW, (0, 0), -1))),
    "gather[0]": (gradients(lambda x, i: x.gather(0, i)), (X, whole(6, 3, 4)), (Y, whole(6, 3, 4))),
    "index": (gradients(lambda x, i: x[i]), (X, T), (Y, U), (X, changed(T, 2, -3)), (X, changed(T, 2, 9))),
    "index[list]": (gradients(lambda x: x[[0, 2]] * x[1:3]), (X,), (Y,)),
    "index put": (gradients(index_put), (X, whole(6, 3)), (Y, whole(6, 3))),
    "mask put": (gradients(mask_put), (X, Y), (Y, X)),
    "masked rule": (gradients(lambda x: ag.where(x > 0, x.sqrt(), 0.0)), (X,), (Y,)),
    "second order": (second_order, (X,), (Y,)),
    "cat": (gradients(lambda x, y: ag.cat([x, y], 1)), (X, Y), (Y, X)),
    "views": (gradients(through_views), (X, Y), (Y, X)),
    "rand": (lambda x: x + ag.rand(6, 4) * ag.randn(6, 4) + ag.rand_like(x), (X,), (Y,)),
    "randint": (lambda x: (x[ag.randint(0, 6, (5,))], ag.randperm(6), ag.randint(0, 3, (2, 2), dtype=ag.float32)), (X,), (Y,)),
    "fills": (fills, (X,), (Y,)),
    "seeds": (reseeded, (X,), (Y,)),
    "bernoulli": (lambda p: p.bernoulli() + ag.bernoulli(p), (P,), (Q,), (X,)),
    "dropout": (gradients(lambda x: F.dropout(x, 0.3)), (X,), (Y,)),
    "dropout[float64]": (gradients(lambda x: F.dropout(x, 0.3)), (X.double(),), (Y.double(),)),
    "dropout[1]": (gradients(lambda x: F.dropout(x, 1.0)), (X,), (Y,)),
    "initialisers": (initialised, (X,), (Y,)),
    "inv": (gradients(ag.linalg.inv), (real(3, 3),), (real(3, 3),), (ag.zeros(3, 3),)),
    "clip_grad_norm_": (clipped, (X, Y), (X * 0.01, Y * 0.01)),
    "clip_grad_norm_[inf]": (lambda x, y: clipped(x, y, 0.5, math.inf), (X, Y), (X * 0.01, Y * 0.01)),
    "clip_grad_norm_[mixed]": (clipped, (X, Y.double()), (Y, X.double())),
    "zero_grad": (zeroed, (X,), (Y,)),
    "x.data =": (data_exchanged, (X, Y), (Y, X)),
    "created": (created, (X,), (Y,)),
    "tensor(tensor)": (lambda x: ag.tensor(x) * ag.as_tensor(x, dtype=ag.float64) + ag.asarray(x, copy=True), (X,), (Y,)),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_replays_equal_eager_code_to_the_bit(name):
    function, first, *others = REPLAYED[name]
    ag.manual_seed(1)
    results, run = replayed(function, first)
    assert [r.detach().numpy().tobytes() for r in results] == outcome(function, 1, first)
    for seed, inputs in enumerate((first, *others)):
        assert outcome(run, seed, inputs) == outcome(function, seed, inputs)


def non_finite(x):
    x = x.clone().requires_grad_()
    x.grad = x.detach() * 1
    return ag.nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)


def set_data(x):
    ag.ones(6, 4).data = x


REFUSED = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: 1 if x.sum() > 0 else 0,
    "float": lambda x: math.sqrt(x.abs().sum()),
    "int": lambda x: int(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "index()": lambda x: "abc"[(x > 9).sum()],
    "0-d index": lambda x: x[(x > 9).sum()],
    "in": lambda x: 3.0 in x,
    "max": lambda x: max(x[0]),
    "numpy": lambda x: x.numpy(),
    "np.asarray": np.asarray,
    "memoryview": memoryview,
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "str": str,
    "f-string": lambda x: f"{x}",
    "format": lambda x: f"{x.sum():.3f}",
    "deepcopy": copy.deepcopy,
    "deepcopy parameter": lambda x: copy.deepcopy(ag.nn.Parameter(x)),
    "pickle": pickle.dumps,
    "pickle parameter": lambda x: pickle.dumps(ag.nn.Parameter(x)),
    "dlpack": np.from_dlpack,
    "storage": lambda x: x.untyped_storage(),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: ag.where(x > 0),
    "mask": lambda x: x[x > 0],
    "tensor(array)": lambda x: x + ag.tensor(np.ones(4)),
    "tensor([array])": lambda x: x + ag.tensor([np.ones(4)]),
    "tensor([tensor])": lambda x: ag.tensor([x.sum(), 2.0]),
    "as_tensor(array)": lambda x: x + ag.as_tensor(np.ones(4, "f4")),
    "from_numpy": lambda x: x + ag.from_numpy(np.ones(4, "f4")),
    "x + array": lambda x: x + np.ones(4, "f4"),
    "x[array]": lambda x: x[np.array([0, 1])],
    "arange": lambda x: ag.arange(x.abs().sum()),
    "one_hot": lambda x: F.one_hot(x.long().abs()),
    "attribute": lambda x: F.leaky_relu(x, x.sum()),
    "non-finite norm": non_finite,
    "x.data =": set_data,
    "get_state": lambda x: ag.Generator(3).get_state(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_go_to_python_are_refused(name):
    with pytest.raises(CaptureError, match=r"test_values_in_captures|copy\.py|pickle"), Recording((X,)):
        REFUSED[name](X)
    REFUSED[name](X)                # outside of a capture nothing is


def test_an_exchange_of_memory_that_nobody_sees_is_a_copy():
    p = X.clone().requires_grad_()
    place = p.data_ptr()
    with Recording((X,)):
        (p * p).sum().backward()
        p.data = p.data - 0.1 * p.grad
    assert p.data_ptr() == place
    assert p.tolist() == (X - 0.1 * (X + X)).tolist()


def test_an_exchange_of_memory_that_somebody_sees_is_refused():
    p = X.clone().requires_grad_()
    old = p.detach()
    with pytest.raises(CaptureError, match="exchange of memory"), Recording((X,)):
        p.data = X * 2
    with pytest.raises(CaptureError, match="exchange of memory"), Recording((X,)):
        (p * p).sum().backward()
        p.data = p.data - p.grad
    del old
    doubled = X * 2
    with pytest.raises(CaptureError, match="exchange of memory"), Recording((X,)):
        p.data = doubled


@pytest.mark.parametrize("divide", [lambda a, b: a // b, lambda a, b: a % b, ag.fmod], ids=["//", "%", "fmod"])
def test_integers_are_divided_in_replays(divide):
    """The check for zeros is part of the program: it raises in a replay as it does outside, at the user's line."""
    a, b = ag.tensor([7, -7, 9]), ag.tensor([2, 3, -4])
    _, run = replayed(divide, (a, b))
    assert run(a + 1, b)[0].tolist() == divide(a + 1, b).tolist()
    with pytest.raises(ZeroDivisionError, match=r"integer division by zero, at .*test_values_in_captures"):
        run(a, ag.tensor([2, 0, 1]))
    assert run(a, b)[0].tolist() == divide(a, b).tolist()
