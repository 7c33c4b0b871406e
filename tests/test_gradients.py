"""First and second derivatives of every sample against finite differences in float64, in every layout.

Relies on the table of samples and tests/numeric.py; nothing relies on it.
"""

import functools

import numpy as np
import pytest
from numeric import array, close, differences, leaf, numbers_of, same_bytes
from samples import LAYOUTS, SAMPLES, outputs, variants
from test_table import REACHED_BY

import autograd_cy as ag
from autograd_cy.ops import TABLE

DIFFERENTIABLE = [s for s in SAMPLES if any(s.differentiable()) and "float64" in s.dtypes]


def weights_for(values, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, tuple(v.shape)) for v in values]


def float_outputs(sample):
    """The outputs that can have a gradient."""
    return lambda *tensors: [o for o in outputs(sample.call(*tensors)) if o.dtype in (ag.float32, ag.float64)]


def weighted(outs, weights):
    """sum of weight * output, as a graph."""
    total = None
    for o, w in zip(outs, weights, strict=True):
        term = (o * ag.tensor(w, dtype=o.dtype)).sum()
        total = term if total is None else total + term
    return total


def prepare(sample, tensors):
    """Leaves: the tensors themselves, in the layouts they have."""
    for t, flag in zip(tensors, sample.differentiable(), strict=True):
        if flag:
            t.requires_grad_(True)
    return [t for t, flag in zip(tensors, sample.differentiable(), strict=True) if flag]


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=lambda s: s.name)
def test_first_derivative(sample):
    f = float_outputs(sample)
    for label, arrays, tensors in variants(sample):
        if label == "broadcast" and not sample.exact_ties:
            continue
        leaves = prepare(sample, tensors)
        outs = f(*tensors)
        weights = weights_for(outs)
        weighted(outs, weights).backward()
        which = [k for k, flag in enumerate(sample.differentiable()) if flag]
        for k, t in zip(which, leaves, strict=True):
            expected = differences(functools.partial(numbers_of, f, weights), arrays, k)
            assert t.grad is not None, f"{sample.name}, {label}, input {k}: no gradient"
            assert t.grad.dtype == t.dtype
            assert tuple(t.grad.shape) == tuple(t.shape)
            assert not t.grad.requires_grad
            close(t.grad, expected, 2e-6, 2e-8, what=f"{sample.name}, {label}, input {k}")
        for a, t in zip(arrays, tensors, strict=True):
            assert np.array_equal(array(t), a), f"{label}: an input was changed"


def first_gradients(sample, f, weights, *values):
    """The gradients of the weighted sum of outputs, by arrays."""
    tensors = [ag.tensor(v) for v in values]
    leaves = prepare(sample, tensors)
    return ag.autograd.grad(weighted(f(*tensors), weights), leaves)


def squared(f):
    """The squares of outputs: an operation that is linear has a second derivative then."""
    return lambda *tensors: [o * o for o in f(*tensors)]


def slope(sample, f, weights, directions, *values):
    """sum(direction * gradient)."""
    return sum(float((array(g) * v).sum()) for g, v in zip(first_gradients(sample, f, weights, *values), directions, strict=True))


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=lambda s: s.name)
def test_second_derivative(sample):
    """The gradient of sum(v * gradient) against differences of the first gradient; of what is linear, squared."""
    f = float_outputs(sample) if sample.second else squared(float_outputs(sample))
    which = [k for k, flag in enumerate(sample.differentiable()) if flag]
    for label, arrays, tensors in variants(sample):
        if label not in ("contiguous", "transposed", "shape ()", "shape (2, 0, 3)"):
            continue
        with ag.no_grad():
            weights = weights_for(f(*[ag.tensor(a) for a in arrays]))
        directions = weights_for([arrays[k] for k in which], seed=2)

        leaves = prepare(sample, tensors)
        grads = ag.autograd.grad(weighted(f(*tensors), weights), leaves, create_graph=True)
        plain = first_gradients(sample, f, weights, *arrays)
        for g, p in zip(grads, plain, strict=True):
            close(g, array(p), 1e-12, 1e-13, what=f"{sample.name}, {label}: create_graph changes the gradient")
        total = weighted(grads, directions)
        if total.requires_grad:
            seconds = ag.autograd.grad(total, leaves, allow_unused=True)
        else:
            seconds = [None] * len(leaves)
        for k, s, a in zip(which, seconds, [arrays[k] for k in which], strict=True):
            expected = differences(functools.partial(slope, sample, f, weights, directions), arrays, k, 1e-5)
            close(np.zeros(a.shape) if s is None else s, expected, 2e-5, 2e-6, what=f"{sample.name}, {label}, input {k}")


def test_every_rule_is_differenced():
    """Each row with derivatives has a sample above, or is reached by one of another operation (test_table.py says by which)."""
    sampled = {s.op for s in DIFFERENTIABLE}
    reached = {name: REACHED_BY.get(name, name) for name, row in TABLE.items() if row.rules}
    assert not [name for name, by in reached.items() if by not in sampled and not by.endswith(".py")]


def test_every_input_with_a_rule_is_differenced():
    """Some sample of a row differentiates by as many inputs as the row has rules for (or as the sample has inputs)."""
    few = []
    for name, row in TABLE.items():
        flags = [s.differentiable() for s in DIFFERENTIABLE if s.op == name]
        if flags and max(map(sum, flags)) < min(len(row.rules), max(map(len, flags))):
            few.append(name)
    assert not few


ELEMENTWISE = [s for s in DIFFERENTIABLE if s.elementwise]


@pytest.mark.parametrize("sample", ELEMENTWISE, ids=lambda s: s.name)
def test_float32_gradient_equals_float64(sample):
    """The same rule in both dtypes: float32 agrees to its own precision."""
    grads = {}
    for dtype in ("float32", "float64"):
        arrays = [
            a.astype("f4").astype(dtype) if a.dtype.kind == "f" else a
            for a in sample.arrays("float64", [(3, 17)] * len(sample.inputs))
        ]
        tensors = [ag.tensor(a) for a in arrays]
        leaves = prepare(sample, tensors)
        outs = float_outputs(sample)(*tensors)
        sum((o * o).sum() if o.requires_grad else 0.0 for o in outs).backward()
        grads[dtype] = [t.grad for t in leaves]
        assert all(str(g.dtype).endswith(dtype) for g in grads[dtype])
    for a, b in zip(grads["float32"], grads["float64"], strict=True):
        close(a, array(b), 3e-5, 3e-5, what=sample.name)


@pytest.mark.parametrize("label", [n for n in LAYOUTS if n != "contiguous"])
@pytest.mark.parametrize("sample", ELEMENTWISE, ids=lambda s: s.name)
def test_layout_does_not_change_bits(sample, label):
    """Elementwise values and gradients are equal byte for byte whatever the strides, also beyond one vector's length."""
    shapes = [(5, 37)] * len(sample.inputs)
    results = []
    for make in (LAYOUTS["contiguous"], LAYOUTS[label]):
        tensors = [make(a) for a in sample.arrays("float32", shapes)]
        leaves = prepare(sample, tensors)
        out = sample.call(*tensors)
        out.backward(ag.tensor(np.linspace(0.5, 1.5, 185, dtype="f4").reshape(5, 37)))
        results.append([out, *[t.grad for t in leaves]])
    for a, b in zip(*results, strict=True):
        assert same_bytes(a, b), sample.name


def test_gradient_layout():
    """A gradient has its leaf's strides where the leaf is dense (PyTorch's rule), else it is row-major."""
    x = ag.tensor(np.arange(12.0).reshape(3, 4)).t().requires_grad_(True)
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 4)
    y = ag.tensor(np.arange(12.0).reshape(3, 4))[:, ::2].requires_grad_(True)
    (y * 2).sum().backward()
    assert y.grad.stride() == (2, 1)
    z = ag.tensor([[1.0], [2.0]]).expand(2, 3).requires_grad_(True)
    (z * 2).sum().backward()
    assert z.grad.stride() == (3, 1)
    assert z.grad.tolist() == [[2.0] * 3] * 2


def test_gradients_do_not_share_memory():
    """No two tensors share a writable gradient buffer, whatever passes gradients through unchanged."""
    a, b, c = (leaf([1.0, 2.0]) for _ in range(3))
    out = a + b - (-c)
    g = ag.tensor([1.0, 1.0], dtype=ag.float64)
    out.backward(g)
    pointers = [t.data_ptr() for t in (a.grad, b.grad, c.grad, g)]
    assert len(set(pointers)) == 4
    with ag.no_grad():
        a.grad.add_(5)
    assert b.grad.tolist() == c.grad.tolist() == g.tolist() == [1.0, 1.0]


def test_view_gradients_do_not_share_memory():
    x, y = leaf(np.ones((2, 3))), leaf(np.ones(6))
    g = ag.ones(6, dtype=ag.float64)
    (x.view(6) + y).backward(g)
    assert len({t.data_ptr() for t in (x.grad, y.grad, g)}) == 3
    with ag.no_grad():
        x.grad.zero_()
    assert y.grad.tolist() == [1.0] * 6
    assert g.tolist() == [1.0] * 6


def test_gradient_of_expanded_root_is_writable():
    """sum's gradient is a stride-0 tensor inside: what lands in .grad must be real memory."""
    x = leaf(np.ones((2, 3)))
    x.sum().backward()
    assert x.grad.is_contiguous()
    with ag.no_grad():
        x.grad[0, 0] = 5.0
    assert x.grad.tolist() == [[5.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


def test_library_gradcheck():
    """The shipped gradcheck accepts right gradients, and refuses wrong ones."""
    x, y = leaf([[0.3, -0.7], [1.1, 0.2]]), leaf([0.5, 1.5])
    assert ag.autograd.gradcheck(lambda a, b: (a * b).tanh().sum(0), (x, y))
    assert ag.autograd.gradgradcheck(lambda a, b: (a * b).tanh().sum(0), (x, y))
    with pytest.raises(RuntimeError):
        ag.autograd.gradcheck(lambda a: a.detach() * a, (x,))
    assert not ag.autograd.gradcheck(lambda a: a.detach() * a, (x,), raise_exception=False)


def test_higher_orders():
    """d^n/dx^n of sin, of x**5 and of exp(x*y) by repeated grad."""
    x = leaf(0.7)
    y = ag.sin(x)
    for k in range(1, 7):
        (y,) = ag.autograd.grad(y, x, create_graph=True)
        close(y, np.sin(0.7 + k * np.pi / 2), 1e-12, 1e-14)
    y, right = x**5, [5 * 0.7**4, 20 * 0.7**3, 60 * 0.7**2, 120 * 0.7, 120.0, 0.0]
    for r in right:
        (y,) = ag.autograd.grad(y, x, create_graph=True)
        close(y, r, 1e-12, 1e-14)
    a, b = leaf(0.5), leaf(-0.3)
    (ga,) = ag.autograd.grad(ag.exp(a * b), a, create_graph=True)
    (gab,) = ag.autograd.grad(ga, b)
    close(gab, np.exp(-0.15) * (1 - 0.15), 1e-12)


def test_hessian_of_a_network():
    """Rows of the Hessian by double backward against differences of the gradient: linear, tanh, softmax, cross entropy."""
    rng = np.random.default_rng(0)
    w0 = rng.normal(size=(3, 4))
    data, target = ag.tensor(rng.normal(size=(5, 4))), ag.tensor([0, 2, 1, 1, 0])

    def gradient(values, record=False):
        w = leaf(values)
        loss = ag.nn.functional.cross_entropy(ag.tanh(data @ w.t()) * 2, target)
        return w, ag.autograd.grad(loss, w, create_graph=record)[0]

    w, g = gradient(w0, True)
    for i in np.ndindex(3, 4):
        (row,) = ag.autograd.grad(g[i], w, retain_graph=True)
        step = np.zeros((3, 4))
        step[i] = 1e-6
        close(row, (array(gradient(w0 + step)[1]) - array(gradient(w0 - step)[1])) / 2e-6, 1e-6, 1e-8)
