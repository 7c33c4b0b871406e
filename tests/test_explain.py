"""explain_grad: one script for each reason why a tensor has no gradient, and that the sentence names the line.

Relies on autograd_cy's public names; nothing relies on it.
"""

import inspect

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn


def leaf(values, **kw):
    return ag.tensor(values, requires_grad=True, **kw)


def line_with(text):
    """ "test_explain.py:n" of the calling test's line that contains a text."""
    frame = inspect.currentframe().f_back
    lines, first = inspect.getsourcelines(frame.f_code)
    return f"test_explain.py:{first + next(k for k, line in enumerate(lines) if text in line)}"


def explained(function, param, *words):
    """The sentence, in which all the words occur; nothing is left behind."""
    grad = None if param.grad is None else param.grad.clone()
    text = ag.explain_grad(function, param)
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    assert (param.grad is None) if grad is None else bool((param.grad == grad).all())
    assert "\n" not in text
    return text


def test_not_a_leaf():
    h = leaf([1.0]) * 2
    explained(lambda: h.sum(), h, "not a leaf", "mul at test_explain.py", "retain_grad()")
    h.retain_grad()
    explained(lambda: h.sum(), h, "backward sets its grad")


def test_requires_no_grad():
    x = ag.ones(2)
    explained(lambda: x.sum(), x, "requires_grad is False")
    explained(x.sum(), x, "requires_grad is False")
    explained(lambda: x.sum(), ag.tensor([1, 2]), "int64")


def test_never_reached():
    w, x, unused = leaf([1.0]), leaf([2.0]), leaf([3.0])
    explained(lambda: (w * x).sum(), unused, "never reached", "does not use it")
    explained((w * x).sum(), unused, "never reached", "explain_grad(lambda")
    model = nn.Linear(2, 1)
    old = model.weight
    model.weight = nn.Parameter(ag.ones(1, 2))
    explained(lambda: model(ag.ones(1, 2)).sum(), old, "another tensor may have taken its place")


def test_used_but_not_for_the_loss():
    w, x = leaf([1.0]), leaf([2.0])

    def f():
        (w * 3).exp()  # aside
        return (x * x).sum()

    explained(f, w, "nothing of that goes into the loss", line_with("# aside"))


def test_detach():
    w, x = leaf([1.0, 2.0]), leaf([2.0, 1.0])

    def f():
        h = w * 3
        h = h.detach()  # here
        return (h * x).sum()

    explained(f, w, "cut: detach() at " + line_with("# here"))
    loss = f()
    text = explained(loss, w, "never reached")
    assert "detach() at " + line_with("# here") in text                       # found in the source
    explained(lambda: (w.detach() * x).sum(), w, "cut: detach() at")
    explained((w.detach() * x).sum(), w, "cut: mul at", "without its history")
    explained(lambda: (w.data * x).sum(), w, "cut: detach() at")
    explained(lambda: (w * x).sum().detach(), w, "detach() at", "loss itself")
    other = w.detach()
    explained(lambda: (other * x).sum(), w, "cut")


def test_a_detach_that_does_no_harm_is_not_blamed():
    w, x = leaf([1.0, 2.0]), leaf([2.0, 1.0])

    def f():
        h = w * 3
        h.detach().exp()  # a look, no more
        with ag.no_grad():
            g = h * 2  # culprit
        return (g * x).sum()

    text = explained(f, w, line_with("# culprit"), "no_grad, entered at " + line_with("with ag.no_grad()"))
    assert "detach" not in text


def test_no_grad():
    w, x = leaf([1.0, 2.0]), leaf([2.0, 1.0])

    @ag.no_grad()
    def features(x):
        return (x * w).tanh()

    def f():
        return (features(x) * x).sum()

    explained(f, w, "no_grad, entered at " + line_with("return (features"), "mul at " + line_with("return (x * w)"))
    with ag.no_grad():
        loss = f()
    explained(loss, w, "no graph")


def test_comparisons_and_conversions():
    w, x = leaf([1.0, 2.0]), leaf([2.0, 1.0])
    explained(lambda: ((w > 1.5) * x).sum(), w, "cut: gt at test_explain.py", "bool")
    explained(lambda: (w.long() * x).sum(), w, "a conversion at", "int64")
    explained(lambda: (x * w.argmax()).sum(), w, "argmax at", "int64")
    explained(lambda: w.long().sum(), w, "conversion")
    explained(w.long().sum(), w, "dtype is int64")


def test_a_number():
    w, v, x = leaf(2.0), leaf([1.0, 2.0]), leaf([2.0, 1.0])

    def f():
        k = w.item()  # here
        return (x * k).sum()

    explained(f, w, "item() at " + line_with("# here"), "Python number")
    explained(lambda: float(w), w, "float() at")
    explained(lambda: (ag.from_numpy(np.exp(v.detach().numpy())) * x).sum(), v, "numpy() at")
    explained(lambda: 3.0, w, "returned float")


def test_overwritten():
    w, x = leaf([1.0, 2.0]), leaf([2.0, 1.0])

    def f():
        h = w * 3
        h.copy_(x)  # here
        return (h * x).sum()

    explained(f, w, "overwritten", line_with("# here"))

    def g():
        h = w * 3
        h.fill_(1.0)  # filled
        return (h * x).sum()

    explained(g, w, "overwritten", line_with("# filled"))


def test_dead_units():
    w = leaf([[1.0, -1.0], [0.5, 2.0]])
    x = ag.ones(1, 2)

    def f():
        h = x @ w - 10.0
        return ag.relu(h).sum()  # dead

    explained(f, w, "all zero", "relu at " + line_with("# dead"), "dead")
    explained(f(), w, "all zero", "relu")
    explained(lambda: (x @ w * 0.0).sum(), w, "all zero", "mul at")


def test_a_backward_that_gives_none():
    class Stop(ag.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    w = leaf([1.0])
    explained(lambda: (Stop.apply(w) * 2).sum(), w, "stopped", "the backward of Stop", "None")


def test_functions_are_followed():
    class Twice(ag.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.exp() * 2

        @staticmethod
        def backward(ctx, g):
            return g

    w, x = leaf([1.0]), leaf([2.0])
    explained(lambda: (Twice.apply(w).detach() * x).sum(), w, "cut: detach()")


def test_backward_was_not_called():
    w = leaf([1.0, 2.0])
    explained(lambda: (w * w).sum(), w, "backward() has not been called")
    loss = (w * w).sum()
    explained(loss, w, "backward() has not been called")
    loss.backward()
    explained(loss, w, "nothing is wrong")
    explained(lambda: (w * w).sum(), w, "nothing is wrong")
    w.grad = None
    explained(loss, w, "taken away")
    explained(lambda: (w * float("nan")).sum(), w, "NaN")


def test_a_step_that_goes_back_by_itself():
    w = leaf([1.0, 2.0])

    def step():
        loss = (w * w).sum()
        loss.backward()
        w.grad = None
        return loss

    explained(step, w, "taken away")


def test_models():
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    x, y = ag.ones(3, 2), ag.zeros(3, 1)
    criterion = nn.MSELoss()
    for p in model.parameters():
        explained(lambda: criterion(model(x), y), p, "backward() has not been called")
    first, relu, last = model

    def frozen():
        with ag.no_grad():
            h = first(x)
        return criterion(last(relu(h)), y)

    explained(frozen, first.weight, "no_grad")
    explained(frozen, last.weight, "backward() has not been called")


def test_refusals():
    w = leaf([1.0])
    with pytest.raises(TypeError, match="expected a tensor"):
        ag.explain_grad(w.sum(), 3)
    with pytest.raises(TypeError, match="the loss is a tensor or a function"):
        ag.explain_grad(3, w)
    with pytest.raises(ZeroDivisionError):
        ag.explain_grad(lambda: 1 / 0, w)
    assert (w * 2).grad_fn is not None and w.detach() is not None
