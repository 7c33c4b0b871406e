"""The shortcuts of eager code keep its meaning: reused gradients, remembered options and states, calls of modules, lazy imports.

Relies on the whole package. Nothing relies on it.
"""

import abc
import copy
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn


def leaf(*values, dtype=ag.float64):
    return ag.tensor(list(values), dtype=dtype, requires_grad=True)


# ---- gradients that give their memory to results

def test_difference_uses_gradient_twice():
    a, b = leaf(1.0, 2.0), leaf(3.0, 5.0)
    g = ag.tensor([2.0, 3.0], dtype=ag.float64)
    ((a - b) * 1.0).backward(g)
    assert a.grad.tolist() == [2.0, 3.0] and b.grad.tolist() == [-2.0, -3.0] and g.tolist() == [2.0, 3.0]


REDUCTIONS = {
    "var": lambda x, dim, keep: x.var(dim, keepdim=keep), "std": lambda x, dim, keep: x.std(dim, keepdim=keep, correction=0),
    "norm": lambda x, dim, keep: x.norm(2, dim, keep), "logsumexp": lambda x, dim, keep: x.logsumexp(dim, keep),
    "amax": lambda x, dim, keep: x.amax(dim, keep), "amin": lambda x, dim, keep: x.amin(dim, keep),
    "nansum": lambda x, dim, keep: x.nansum(dim, keep), "prod": lambda x, dim, keep: x.prod(dim, keep),
}


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_gradients_of_reductions_equal_their_rules(name, dtype):
    """Of any dims, sizes and layouts, also where an element is NaN or infinite, and all are equal."""
    random = np.random.default_rng(3)
    for shape, dims in (((7,), (0,)), ((1,), (0,)), ((3, 5), (0,)), ((3, 5), (1,)), ((3, 5), (0, 1)), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)),
                        ((2, 300), (0,)), ((3, 70), (1,)), ((2, 1, 3), (1, 2)), ((65, 65), (1,)), ((4, 0), (1,)), ((0, 3), (1,))):
        for special in (None, np.nan, np.inf, -np.inf, 0.0):
            values = np.round(random.standard_normal(shape), 1)
            if special is not None and values.size:
                values.flat[values.size // 2] = special
            for keep in (False, True):
                for x in (ag.tensor(values, dtype=dtype), ag.tensor(values.T.copy(), dtype=dtype).permute(*range(len(shape))[::-1])):
                    if name in ("amax", "amin") and any(shape[d] == 0 for d in dims):
                        continue
                    x.requires_grad_()
                    y = REDUCTIONS[name](x, dims, keep)
                    g = ag.tensor(random.standard_normal(y.shape), dtype=dtype)
                    (fast,), (rule,) = ag.autograd.grad(y, x, g), ag.autograd.grad(REDUCTIONS[name](x, dims, keep), x, g, create_graph=True)
                    np.testing.assert_array_equal(fast.numpy(), rule.detach().numpy(), err_msg=f"{shape} {dims} {special}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_few_strided_or_broadcast_elements(dtype):
    random = np.random.default_rng(4)
    base = random.integers(0, 2 if dtype == "bool" else 9, (4, 4, 5)).astype(dtype)
    views = [lambda t: t, lambda t: t[:, ::2], lambda t: t[..., 1:], lambda t: t[:2, :1, :4], lambda t: t[:1, :, :1], lambda t: t[0],
             lambda t: t[0, 0, :1], lambda t: t[1, 2, 3], lambda t: t[:0], lambda t: t[:, :0], lambda t: t[0].T, lambda t: t[:3, :, 2]]
    for left in views:
        for right in views:
            a, b = left(base), right(base)
            try:
                expected = a == b, a + b, np.where(a > b, a, b), a | b if dtype not in ("float32", "float64") else a * b
            except ValueError:
                with pytest.raises(ValueError, match="broadcast"):
                    left(ag.tensor(base)) + right(ag.tensor(base))
                continue
            x, y = left(ag.tensor(base)), right(ag.tensor(base))
            got = x == y, x + y, ag.where(x > y, x, y), x | y if dtype not in ("float32", "float64") else x * y
            for p, q in zip(got, expected, strict=True):
                np.testing.assert_array_equal(p.numpy(), q, strict=True)


@pytest.mark.parametrize("engine", ["iterative", "recursive"])
def test_given_gradient_is_not_written(engine):
    x = leaf(1.0, 2.0)
    g = ag.ones(2, dtype=ag.float64)
    x.exp().sigmoid().relu().backward(g, engine=engine)
    assert g.tolist() == [1.0, 1.0]


def test_retained_gradients_stay():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    z = y.exp()
    w = z.sigmoid()
    for t in (y, z, w):
        t.retain_grad()
    (w * 3.0).sum().backward()
    dw = np.array([3.0, 3.0])
    dz = dw * w.detach().numpy() * (1 - w.detach().numpy())
    np.testing.assert_array_equal(w.grad.numpy(), dw)
    np.testing.assert_allclose(z.grad.numpy(), dz, rtol=1e-14)
    np.testing.assert_allclose(y.grad.numpy(), dz * z.detach().numpy(), rtol=1e-14)


def test_shared_gradient_of_a_sum():
    x, y = leaf(1.0, 2.0), leaf(0.5, 4.0)
    total = x + y                                 # both inputs get the same gradient
    (total * 2.0).exp().sum().backward()
    expected = 2 * np.exp(2 * (x.detach().numpy() + y.detach().numpy()))
    np.testing.assert_allclose(x.grad.numpy(), expected)
    np.testing.assert_allclose(y.grad.numpy(), expected)
    assert x.grad.data_ptr() != y.grad.data_ptr()


def test_unit_gradient_is_not_handed_out():
    x = ag.tensor(3.0, requires_grad=True)
    x.backward()
    x.grad.add_(1.0)
    y = ag.tensor(3.0, requires_grad=True)
    y.backward()
    z = y * 1.0
    (g,) = ag.autograd.grad(z, z)
    g.mul_(5.0)
    w = ag.tensor(3.0, requires_grad=True)
    w.backward()
    assert (x.grad.item(), y.grad.item(), w.grad.item()) == (2.0, 1.0, 1.0)


# ---- optimisers

def steps(optimizer, p, n=3):
    for _ in range(n):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    return p.tolist()


def test_options_changed_between_steps():
    p, q = leaf(1.0, 2.0), leaf(1.0, 2.0)
    a, b = ag.optim.Adam([p], lr=0.1, betas=[0.9, 0.99]), ag.optim.Adam([q], lr=0.1, betas=(0.9, 0.99))
    assert steps(a, p) == steps(b, q)
    a.param_groups[0]["betas"][0] = 0.5           # a list, changed in place
    b.param_groups[0]["betas"] = (0.5, 0.99)
    a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = 0.3
    assert steps(a, p) == steps(b, q)
    rate = ag.tensor(0.3)
    a.param_groups[0]["lr"] = rate
    first = steps(a, p)
    rate.fill_(0.01)
    b.param_groups[0]["lr"] = float(ag.tensor(0.3).item())
    assert steps(b, q) == first
    b.param_groups[0]["lr"] = float(rate.item())
    assert steps(a, p) == steps(b, q)


def test_parameters_changed_between_steps():
    p, q = leaf(1.0), leaf(1.0)
    optimizer = ag.optim.Adam([p], lr=0.1)
    steps(optimizer, p)
    optimizer.param_groups[0]["params"].append(q)
    before = q.item()
    steps(optimizer, q)
    assert q.item() != before and optimizer.state[q]["step"] == 3
    optimizer.param_groups[0]["params"] = [q]
    before = p.item()
    steps(optimizer, q)
    assert p.item() == before
    del optimizer.state[q]
    steps(optimizer, q, 1)
    assert optimizer.state[q]["step"] == 1


def test_state_of_another_kind():
    p = leaf(1.0, 2.0)
    other = ag.optim.RMSprop([p], lr=0.1)
    steps(other, p)
    optimizer = ag.optim.Adam([p], lr=0.1)
    optimizer.state = other.state                 # the same dict, unchanged
    with pytest.raises(KeyError, match="AdamState"):
        steps(optimizer, p)


# ---- calls of modules

class Doubles(nn.Module):
    def forward(self, x, *, times=2):
        return x * times


def test_calls_find_what_is_assigned_last():
    m, x = Doubles(), ag.tensor(3.0)
    assert m(x).item() == 6 and m(x, times=5).item() == 15 and m(*[x], **{"times": 4}).item() == 12
    Doubles.__call__ = lambda self, x: "class"
    try:
        assert m(x) == "class"
    finally:
        del Doubles.__call__
    Doubles.forward = lambda self, x, times=2: "forward"
    assert m(x) == "forward" == m(x, times=3)
    m.forward = lambda x: "instance"
    assert m(x) == "instance" and Doubles()(x) == "forward"


def test_calls_through_other_ways():
    m, x = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), ag.ones(1, 2)
    assert [t.tolist() for t in map(m, [x])] == [m(x).tolist()] == [type(m).__call__(m, x).tolist()]
    with pytest.raises(TypeError):
        m()
    with pytest.raises(TypeError):
        m(x, nonsense=1)


def test_tracebacks_show_forward():
    class Fails(nn.Module):
        def forward(self, x):
            return x + nonsense  # noqa: F821

    try:
        nn.Sequential(Fails())(ag.ones(1))
    except NameError as error:
        assert [f.name for f in traceback.extract_tb(error.__traceback__)][-1] == "forward"


def test_endless_call_is_an_error():
    m = nn.Sequential(nn.Identity())
    m.append(m)
    with pytest.raises(RecursionError):
        m(ag.ones(1))


def test_abstract_modules_and_copies():
    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...

    with pytest.raises(TypeError, match="abstract"):
        Base()
    net, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), ag.ones(1, 2)
    for made in (copy.copy(net), copy.deepcopy(net), *(pickle.loads(pickle.dumps(net, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1))):
        assert made(x).tolist() == net(x).tolist()


def test_layer_attributes_are_read_anew():
    layer, x = nn.Linear(2, 2), ag.ones(1, 2)
    layer(x)
    layer.weight = nn.Parameter(ag.zeros(2, 2))
    layer.bias = nn.Parameter(ag.ones(2))
    assert layer(x).tolist() == [[1.0, 1.0]]
    layer.bias = None
    assert layer(x).tolist() == [[0.0, 0.0]]
    layer.__dict__["weight"] = nn.Parameter(ag.ones(2, 2))
    assert layer(x).tolist() == [[2.0, 2.0]]

    class Normed(nn.Linear):
        pass

    other = Normed(2, 2, bias=False)
    other(x)
    Normed.weight = property(lambda self: ag.ones(2, 2) * 3.0)
    assert other(x).tolist() == [[6.0, 6.0]]
    del Normed.weight
    del layer.weight
    with pytest.raises(AttributeError):
        layer(x)


# ---- imports

def test_seldom_used_modules_are_imported_late():
    code = ("import sys, autograd_cy as ag; assert 'autograd_cy.graph.compile' not in sys.modules; "
            "assert '__getattr__' not in vars(ag); ag.data.xor; ag.graph.compile; "
            "import autograd_cy.tools as tools; assert ag.tools is tools and tools.gradcheck; "
            "from autograd_cy import linalg, utils; assert ag.compile(lambda x: x * 2.0)(ag.ones(2)).tolist() == [2.0, 2.0]")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_held_from_before_its_import():
    code = """
import autograd_cy as ag
linalg = ag.linalg
assert type(linalg) is not type(ag)
assert linalg.norm(ag.tensor([3.0, 4.0])).item() == 5
assert type(linalg) is type(ag) and linalg.norm is ag.linalg.norm
try:
    linalg.nothing
except AttributeError as e:
    assert "nothing" in str(e)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("module", "names"), [
    ("optim", ["SGD", "NAdam", "LBFGS", "swa_utils"]), ("nn", ["Linear", "functional"]), ("linalg", ["norm"]), ("data", ["xor"]),
    ("autograd", ["grad", "gradcheck", "functional"]), ("utils", ["checkpoint"]), ("nn.utils", ["clip_grad_norm_", "weight_norm"]),
])
def test_dir_lists_what_is_not_imported_yet(module, names):
    """Completion in a shell asks dir() before anything else was asked for."""
    code = f"import autograd_cy as ag; missing = {set(names)} - set(dir(ag.{module})); assert not missing, missing"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
