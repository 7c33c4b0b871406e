"""Compiled functions and modules as one node of the graph, the row `captured`: the bytes of eager code.

Relies on the package; nothing relies on it.
"""

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn

FUNCTIONS = {
    "elementwise": lambda x, w: ag.tanh(x * w) + x,
    "product": lambda x, w: (x @ w.T).softmax(dim=-1),
    "loss": lambda x, w: nn.functional.mse_loss(x * w, x),
    "two results": lambda x, w: ((x * w).exp(), x + w),
}


def derivatives(f, x, w):
    """Results, gradients, and gradients of those."""
    results = f(x, w)
    results = results if isinstance(results, tuple) else (results,)
    first = ag.autograd.grad(sum((r * r).sum() for r in results), [x, w], create_graph=True)
    second = ag.autograd.grad(sum((g * g).sum() for g in first), [x, w])
    return [[t.detach().numpy() for t in tensors] for tensors in (results, first, second)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bytes_of_eager_code(name):
    f = FUNCTIONS[name]
    compiled = ag.compile(f)
    for _ in range(4):
        x, w = ag.randn(3, 4, requires_grad=True), ag.randn(3, 4, requires_grad=True)
        *found, found_second = derivatives(compiled, x, w)
        *expected, second = derivatives(f, x, w)
        assert [[a.tobytes() for a in arrays] for arrays in found] == [[a.tobytes() for a in arrays] for arrays in expected]
        # The same terms, but those from inside the function are added up before they meet those from outside.
        for a, b in zip(found_second, second, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    node = ag.compile(f)
    for _ in range(3):
        result = node(x, w)
    assert (result[0] if isinstance(result, tuple) else result).grad_fn.operation == "captured"


def test_module():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    compiled = ag.compile(model)
    for _ in range(4):
        x = ag.randn(5, 4)
        found = []
        for forward in (model, compiled):
            model.zero_grad()
            forward(x).square().sum().backward()
            found.append([p.grad.numpy().tobytes() for p in model.parameters()])
        assert found[0] == found[1]
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in model.parameters()]


def test_a_value_changed_in_between():
    x = ag.randn(3, requires_grad=True)
    f = ag.compile(lambda x: (x * x).sum())
    for _ in range(3):
        loss = f(x)
    with ag.no_grad():
        x.mul_(2.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
