"""In-place changes: histories rewritten, saved values guarded by version counters, the forbidden ones refused.

Relies on autograd_cy's public names, tests/numeric.py and tests/inplace_programs.py; nothing relies on it.
"""

import os
import re

import numpy as np
import pytest
from inplace_programs import Dual, Duals, leaves_of, program
from numeric import array, close, leaf

import autograd_cy as ag

ENGINES = ["iterative", "recursive"]
HERE = os.path.basename(__file__)


def line_of(marker):
    """The number of this file's line that ends in `# <marker>`."""
    with open(__file__) as f:
        return next(k for k, text in enumerate(f, 1) if text.rstrip().endswith("# " + marker))


OPERATORS = [
    ("+=", lambda a, b: a.__iadd__(b), lambda a, b: a + b),
    ("-=", lambda a, b: a.__isub__(b), lambda a, b: a - b),
    ("*=", lambda a, b: a.__imul__(b), lambda a, b: a * b),
    ("/=", lambda a, b: a.__itruediv__(b), lambda a, b: a / b),
    ("**=", lambda a, b: a.__ipow__(b), lambda a, b: a**b),
    ("add_", lambda a, b: a.add_(b), lambda a, b: a + b),
    ("sub_", lambda a, b: a.sub_(b), lambda a, b: a - b),
    ("mul_", lambda a, b: a.mul_(b), lambda a, b: a * b),
    ("div_", lambda a, b: a.div_(b), lambda a, b: a / b),
    ("pow_", lambda a, b: a.pow_(b), lambda a, b: a**b),
]


@pytest.mark.parametrize(("name", "inplace", "plain"), OPERATORS, ids=[o[0] for o in OPERATORS])
@pytest.mark.parametrize("operand", ["tensor", "row", "number", "0-d"])
def test_operator(name, inplace, plain, operand):
    """The value, the identity, and the gradients of both sides are those of the plain operation."""
    rng = np.random.default_rng(3)
    a, b = (
        rng.uniform(0.5, 2, (2, 3)),
        {"tensor": rng.uniform(0.5, 2, (2, 3)), "row": rng.uniform(0.5, 2, 3), "number": 1.5, "0-d": 0.7}[operand],
    )
    grads = []
    for f in (plain, inplace):
        x, y = leaf(a), b if operand == "number" else leaf(b)
        base = x * 1.0
        where = base.data_ptr()
        result = f(base, y)
        if f is inplace:
            assert result is base
            assert result.data_ptr() == where
        (result * result).sum().backward()
        grads.append([array(result), array(x.grad), None if operand == "number" else array(y.grad)])
    for p, q in zip(*grads, strict=True):
        assert (p is None and q is None) or np.array_equal(p, q)


UNARY = [
    "exp_",
    "log_",
    "sqrt_",
    "abs_",
    "neg_",
    "sigmoid_",
    "tanh_",
    "relu_",
    "sin_",
    "cos_",
    "square_",
    "reciprocal_",
    "floor_",
]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x, y = leaf([0.5, 1.5, 0.2]), leaf([0.5, 1.5, 0.2])
    base = x * 2
    assert getattr(base, name)() is base
    plain = getattr(y * 2, name[:-1])()
    assert np.array_equal(array(base), array(plain))
    base.sum().backward()
    plain.sum().backward()
    assert np.array_equal(array(x.grad), array(y.grad))


def test_fill_zero_copy_clamp():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    y[1:].fill_(7)
    y.sum().backward()
    assert y.tolist() == [2.0, 7.0, 7.0]
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    z, w = x * 1, leaf([4.0, 5.0, 6.0])
    x.grad = None
    z.copy_(w)
    z.sum().backward()
    assert w.grad.tolist() == [1.0] * 3
    assert (x.grad is None or x.grad.tolist() == [0.0] * 3)
    a = x * 1
    a.clamp_(1.5, 2.5)
    assert a.tolist() == [1.5, 2.0, 2.5]
    a.zero_()
    assert a.tolist() == [0.0] * 3
    t = ag.zeros(2, 3)
    t.copy_(ag.tensor([1, 2, 3]))  # casts and broadcasts
    assert t.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(ValueError, match=r"\(4,\).*\(2, 3\)"):
        t.copy_(ag.zeros(4))


def test_clamp_by_tensors():
    assert ag.tensor([1, 5, 9]).clamp_(ag.tensor([2, 2, 2]), 7).tolist() == [2, 5, 7]
    assert ag.tensor([1.0, 5.0]).clamp_(min=ag.tensor([2, 9])).tolist() == [2.0, 9.0]
    x = ag.tensor([1, 2])
    with pytest.raises(RuntimeError, match="float"):
        x.clamp_(min=ag.tensor(1.5))
    with pytest.raises(ValueError, match="clamp"):
        ag.rand(3).clamp_(min=ag.rand(2, 3))
    with pytest.raises(TypeError, match="clamp_"):
        ag.rand(3).clamp_("a", ag.rand(3))
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(("name", "args"), [("clamp_", (0.5,)), ("clamp_min_", (0.5,)), ("float_power_", (2,)), ("mvlgamma_", (1,)), ("sqrt_", ()),
                                            ("cumsum_", (0,)), ("cumprod_", (0,))])
def test_results_of_another_kind_are_refused(name, args):
    x = ag.tensor([True, False]) if name.startswith("cum") else ag.tensor([1, 2])
    before = x.clone()
    with pytest.raises(RuntimeError, match=name.split("_")[0]):
        getattr(x, name)(*args)
    assert ag.equal(x, before)


def test_version_counter():
    x = ag.tensor([1.0, 2.0, 3.0])
    assert x._version == 0
    x.add_(1)
    assert x._version == 1
    v, d = x[1:], x.detach()
    v.mul_(2)
    assert x._version == v._version == d._version == 2
    d[0] = 5.0
    assert x._version == 3
    x + 1
    assert x._version == 3
    assert (x * 1)._version == 0
    assert x.clone()._version == 0


SAVED = [  # f(hidden) whose node saves `hidden` or its own result; which of them is overwritten
    ("mul", lambda h: h * h, "input"),
    ("exp", lambda h: h.exp(), "output"),
    ("log", lambda h: h.log(), "input"),
    ("tanh", lambda h: h.tanh(), "output"),
    ("sigmoid", lambda h: h.sigmoid(), "output"),
    ("sqrt", lambda h: h.sqrt(), "output"),
    ("pow", lambda h: h**5, "input"),
    ("matmul", lambda h: h @ h, "input"),
    ("div", lambda h: 1 / h, None),
    ("sin", lambda h: h.sin(), "input"),
    ("softmax", lambda h: h.softmax(-1), "output"),
    ("prod", lambda h: h.prod(), "input"),
    ("maximum", lambda h: ag.maximum(h, h.t()), "input"),
    ("norm", lambda h: h.norm(), "input"),
    ("logsumexp", lambda h: h.logsumexp(0), "input"),
    ("var", lambda h: h.var(), "input"),
    ("square", lambda h: h.square(), "input"),
    ("mul", lambda h: ag.where(h > 100, h, h * h), "input"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "f", "which"), SAVED, ids=[s[0] for s in SAVED])
def test_saved_value_overwritten(name, f, which, engine):
    """An error, or the right gradient if nothing overwritten was needed; never a silently wrong one."""
    for victim in ("input", "output"):
        x = leaf([[0.5, 1.5], [2.0, 1.0]])
        hidden = x * 1.0
        y = f(hidden)
        total = y.sum() if victim == "input" else (y * 1.0).sum()
        (right,) = ag.autograd.grad(total, x, retain_graph=True)
        (hidden if victim == "input" else y).detach().mul_(3)
        message = None
        try:
            total.backward(engine=engine)
        except RuntimeError as error:
            message = str(error)
        if message is None:
            assert which != victim, "the overwritten value was needed: the gradient cannot be right"
            close(x.grad, array(right), 1e-12)
        else:
            assert re.search("in-place|in place|inplace", message), message
            assert name in message
            assert x.grad is None


def test_error_names_operation_and_line():
    x = leaf([1.0, 2.0])
    hidden = x * 1.0
    y = hidden.sin()  # the forward of sin
    hidden.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    message = str(error.value)
    assert "sin" in message, message
    assert HERE in message, message
    assert re.search(rf"\b{line_of('the forward of sin')}\b", message), message
    assert "version" in message.lower()


def test_line_inside_a_called_function():
    """The line is that of the innermost Python frame: where the operation was written."""

    def layer(t):
        return t * t  # the square inside

    x = leaf([1.0, 2.0])
    hidden = x + 0
    out = layer(hidden).sum()
    hidden.zero_()
    with pytest.raises(RuntimeError) as error:
        out.backward()
    assert re.search(rf"{HERE}\D+{line_of('the square inside')}\b", str(error.value)), str(error.value)


def test_recording_of_lines_can_be_switched_off():
    ag.set_record_lines(False)
    try:
        hidden = leaf([1.0, 2.0]) * 1.0
        y = hidden.sin()
        hidden.add_(1)
        with pytest.raises(RuntimeError, match="sin") as error:
            y.sum().backward()
        assert HERE not in str(error.value)
    finally:
        ag.set_record_lines(True)


def test_leaf_that_requires_grad():
    x = leaf([1.0, 2.0])
    attempts = [
        lambda: x.add_(1),
        lambda: x.__setitem__(0, 5.0),
        lambda: x.zero_(),
        lambda: x.__imul__(2),
        lambda: x.exp_(),
        lambda: x.copy_(ag.zeros(2)),
    ]
    for attempt in attempts:
        with pytest.raises(RuntimeError, match="(?i)leaf"):
            attempt()
    with pytest.raises(RuntimeError, match="(?i)leaf"):
        x[0].mul_(2)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0
    with ag.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]
    assert x.is_leaf


def test_expanded_tensor():
    """pytorch/pytorch#4664: one cell would be written many times."""
    a = ag.tensor([[1.0]])
    b = a.expand(4, 5)
    for attempt in (lambda: b.add_(1), lambda: b.mul_(2), lambda: b.__iadd__(ag.ones(4, 5))):
        with pytest.raises(RuntimeError, match="(?i)expand|same memory|single memory|overlap|clone"):
            attempt()
    assert a.tolist() == [[1.0]]
    c = ag.tensor([1.0, 2.0]).expand(1, 2)
    c.add_(1)  # nothing repeated: allowed
    assert c.tolist() == [[2.0, 3.0]]


def test_overlapping_operands():
    """The right value when input and output are overlapping views: as if the input had been copied first."""
    for make in (lambda t: (t[1:], t[:-1]), lambda t: (t[:-1], t[1:]), lambda t: (t, t[::-1]), lambda t: (t[::-1], t)):
        a = np.arange(1.0, 50.0)
        t = ag.tensor(a)
        out, other = make(t)
        expected, value = make(a)
        expected += value.copy()
        out += other
        assert t.tolist() == a.tolist()
    a = np.arange(16.0).reshape(4, 4)
    t = ag.tensor(a)
    t += t.t()
    assert t.tolist() == (a + a.T).tolist()
    t = ag.tensor(a)
    t[1:] = t[:-1]
    b = a.copy()
    b[1:] = a[:-1]
    assert t.tolist() == b.tolist()
    u = ag.tensor(a)
    u.copy_(u.t())
    assert u.tolist() == a.T.tolist()


def test_view_rewrites_the_history_of_its_base():
    """pytorch/pytorch#3313."""
    a, y = leaf([1.0, 2.0, 3.0]), leaf(5.0)
    base = a * 1.0
    base[1:].mul_(y)
    base.sum().backward()
    assert base.tolist() == [1.0, 10.0, 15.0]
    assert a.grad.tolist() == [1.0, 5.0, 5.0]
    assert y.grad.item() == 5.0


VIEWS = [
    ("row", lambda b: b[1]),
    ("column", lambda b: b[:, 1]),
    ("step", lambda b: b[:, ::2]),
    ("reversed", lambda b: b[::-1]),
    ("transposed", lambda b: b.t()),
    ("flat", lambda b: b.view(-1)),
    ("view of a view", lambda b: b.t()[1:][0]),
    ("element", lambda b: b[0, 2]),
    ("unsqueezed", lambda b: b.unsqueeze(0)[:, 1]),
]


@pytest.mark.parametrize(("name", "view"), VIEWS, ids=[v[0] for v in VIEWS])
@pytest.mark.parametrize("engine", ENGINES)
def test_in_place_on_a_view(name, view, engine):
    """base changed through a view, then through another, then used: gradients as by the out-of-place program with masks."""
    rng = np.random.default_rng(5)
    values = rng.uniform(0.5, 2, (3, 4))
    mask = np.zeros((3, 4), bool)
    t = ag.tensor(mask)
    view(t).fill_(True)
    mask = array(t)
    a, y = leaf(values), leaf(1.7)
    base = a * 1.0
    v = view(base)
    v.mul_(y)
    v.add_(y)
    loss = (base * base).sum() + v.sum()
    loss.backward(engine=engine)
    b, z = leaf(values), leaf(1.7)
    m = ag.tensor(mask)
    changed = ag.where(m, b * z + z, b)
    (((changed * changed).sum()) + ag.where(m, changed, 0.0).sum()).backward()
    close(a.grad, array(b.grad), 1e-12)
    close(y.grad, array(z.grad), 1e-12)


def test_base_changed_after_the_view_was_taken():
    a = leaf([1.0, 2.0, 3.0])
    base = a * 1.0
    v = base[1:]
    base.mul_(3)
    v.sum().backward()
    assert v.tolist() == [6.0, 9.0]
    assert a.grad.tolist() == [0.0, 3.0, 3.0]


def test_setitem_gradients():
    a, v = leaf(np.ones((3, 2))), leaf([5.0, 6.0])
    base = a * 2
    base[1] = v
    base[:, 1] = 0.0
    base.sum().backward()
    assert base.tolist() == [[2.0, 0.0], [5.0, 0.0], [2.0, 0.0]]
    assert a.grad.tolist() == [[2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    assert v.grad.tolist() == [1.0, 0.0]


def test_setitem_gradients_by_index_and_mask():
    a, v = leaf(np.ones(5)), leaf([5.0, 6.0])
    base = a * 2
    base[ag.tensor([4, 0])] = v
    base[ag.tensor([False, True, False, False, False])] = 9.0
    (base * ag.tensor(np.arange(1.0, 6.0))).sum().backward()
    assert base.tolist() == [6.0, 9.0, 2.0, 2.0, 5.0]
    assert a.grad.tolist() == [0.0, 0.0, 6.0, 8.0, 0.0]
    assert v.grad.tolist() == [5.0, 1.0]


def test_setitem_makes_a_plain_tensor_part_of_the_graph():
    v = leaf([5.0, 6.0])
    out = ag.zeros(3, dtype=ag.float64)
    out[1:] = v
    assert out.requires_grad
    (out * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0]


def test_setitem_with_an_expanded_value():
    v, s = leaf([1.0]), leaf(2.0)
    out = ag.zeros(2, 3, dtype=ag.float64)
    out[0] = v
    out[1, 1:] = s
    out.sum().backward()
    assert v.grad.tolist() == [3.0]
    assert s.grad.item() == 2.0


def test_inplace_bias():
    """pytorch/pytorch#9634."""
    x, b = leaf([1.0, 2.0, 3.0]), leaf(0.5)
    h = x * 1.0
    h += b
    h.sum().backward()
    assert b.grad.item() == 3.0
    assert x.grad.tolist() == [1.0] * 3


def test_result_that_does_not_fit():
    """In place, the result must have the target's shape and a dtype that may be cast to it."""
    x = ag.ones(3)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(3,\)"):
        x.add_(ag.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"(?i)int64|long|cast"):
        ag.ones(3, dtype=ag.int64).add_(0.5)
    with pytest.raises(RuntimeError, match=r"(?i)int64|long|cast"):
        ag.ones(3, dtype=ag.int64).div_(2)
    y = ag.ones(3, dtype=ag.int32)
    y += ag.ones(3, dtype=ag.int64)
    assert y.dtype == ag.int32
    assert y.tolist() == [2, 2, 2]
    z = ag.ones(3)
    z += ag.ones(3, dtype=ag.float64)
    assert z.dtype == ag.float32
    assert x.tolist() == [1.0] * 3


def test_detached_alias_shares_the_version():
    x = leaf([1.0, 2.0])
    h = x * 1.0
    y = h * h
    h.detach().add_(1)
    with pytest.raises(RuntimeError, match="mul"):
        y.sum().backward()


def test_numpy_of_a_leaf_that_requires_grad():
    """Writes through such an array would go unseen: it has to be asked for by detach()."""
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="(?i)detach|grad"):
        x.numpy()


def test_retain_grad_after_in_place():
    """pytorch/pytorch#79996: the gradient of the present value."""
    a = leaf([1.0]).clone()
    a.retain_grad()
    a.mul_(2)
    (a.clone() + 1).sum().backward()
    assert a.grad.tolist() == [1.0]


def test_optimizer_step_between_forward_and_backward():
    """The classical mistake: weights stepped before the second backward."""
    w, x = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[1.0, 1.0]])
    loss = ((x @ w) @ w).sum()
    loss.backward(retain_graph=True)
    with ag.no_grad():
        w -= 0.1 * w.grad
    with pytest.raises(RuntimeError, match="matmul|linear|mm"):
        loss.backward()


def test_requires_grad_in_place():
    x = ag.tensor([1.0, 2.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    x.requires_grad_(True)
    y = x * 2
    x.requires_grad_(False)  # what is recorded stays recorded
    assert y.requires_grad


@pytest.mark.parametrize("start", range(0, 2000, 200))
def test_a_gradient_that_is_not_refused_is_right(start):
    """Of random programs of views and writes: backward raises, or its gradient is the derivative of the program as it ran.

    Along a random direction, by dual numbers; many are programs that PyTorch refuses, as it saves other values.
    """
    right = 0
    for seed in range(start, start + 200):
        values, rng = leaves_of(seed), np.random.default_rng(seed)
        direction = [rng.normal(size=np.shape(v)) for v in values]
        leaves, log, slow_log = [leaf(v) for v in values], [], []
        loss, _ = program(ag, seed, leaves, log)
        slow, _ = program(Duals, seed, [Dual(ag.tensor(v), ag.tensor(d)) for v, d in zip(values, direction, strict=True)], slow_log)
        assert [entry == "done" for entry in log] == [entry == "done" for entry in slow_log]
        close(loss.detach(), array(slow.value), 1e-12)
        try:
            grads = ag.autograd.grad(loss, leaves, allow_unused=True)
        except RuntimeError as error:
            assert "in place" in str(error), error
            continue
        found = [0.0 if g is None else array(g) * d for g, d in zip(grads, direction, strict=True)]
        total = sum(map(np.sum, found))
        np.testing.assert_allclose(total, slow.slope.item(), 1e-9, 1e-9 * (1 + sum(np.abs(f).sum() for f in found)), err_msg=f"seed {seed}")
        right += 1
    assert right > 100


def _arguments():
    """Arguments that some function in place takes: values from `new(*shape)`, indices and masks."""
    places, places2, mask = ag.tensor([0, 1, 1, 3]), ag.tensor([[0, 1, 1, 3]] * 4), ag.tensor([True, False, True, True])
    return [
        lambda new: (), lambda new: (2,), lambda new: (0.3,), lambda new: (new(4, 4),), lambda new: (new(4),), lambda new: (new(1),),
        lambda new: (new(4, 4), new(4, 4)), lambda new: (new(4, 4), 0.3), lambda new: (new(4), new(4)), lambda new: (new(4, 3), new(3, 4)),
        lambda new: (mask, new(4)[0]), lambda new: (mask, new(4, 4)), lambda new: (0, places, new(4, 4)), lambda new: (0, places2, new(4, 4)),
        lambda new: (0, places2, new(4, 4), "amax"), lambda new: (0, places2, new(4, 4), "prod"), lambda new: (0, places, new(4, 4), "mean"),
        lambda new: ((places, places), new(4)), lambda new: (places, new(4)), lambda new: (0, places, new(4)[0]), lambda new: (0, places, 0.5)]


RANDOM = ("bernoulli_", "dropout_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_")
IN_PLACE = [name for name in dir(ag.Tensor) if name.endswith("_") and not name.startswith("_") and not name.endswith("__")
            and hasattr(ag.Tensor, name[:-1]) and name not in (*RANDOM, "requires_grad_", "detach_", "resize_")]


def _gradients(name, arguments, x_grad, others_grad):
    """(the result, gradients) of a method of a (4, 4) tensor; None where it refuses to run on these."""
    leaves, rng = [], np.random.default_rng(0)

    def new(*shape, grad=others_grad):
        t = ag.tensor(rng.uniform(0.2, 0.8, shape)).requires_grad_(grad)
        leaves.extend([t] * grad)
        return t
    x = new(4, 4, grad=x_grad)
    try:
        out = getattr(x * 1 if x_grad else x, name)(*arguments(new))
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    if not isinstance(out, ag.Tensor) or not out.is_floating_point() or not out.requires_grad:
        return None
    return array(out), ag.autograd.grad((out * out).sum(), leaves, allow_unused=True)


@pytest.mark.parametrize("name", IN_PLACE)
def test_gradients_are_those_of_the_form_out_of_place(name):
    """Whoever of the tensors requires a gradient: what a rule needs of the values that are overwritten is kept."""
    for arguments in _arguments():
        for x_grad, others_grad in ((True, False), (False, True), (True, True)):
            inplace, plain = (_gradients(n, arguments, x_grad, others_grad) for n in (name, name[:-1]))
            if inplace is None or plain is None or plain[0].shape != inplace[0].shape:
                continue
            close(inplace[0], plain[0], 1e-12)
            for found, expected in zip(inplace[1], plain[1], strict=True):
                zero = np.zeros(1)
                close(*np.broadcast_arrays(*(zero if g is None else array(g) for g in (found, expected))), 1e-12)
