"""ag.func, autograd.functional and checkpoint: against closed forms, against each other, against torch.func (oracle).

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import collections
import gc
import threading
import weakref

import numpy as np
import pytest
from numeric import array

import autograd_cy as ag
from autograd_cy import func as F
from autograd_cy.array.errors import CaptureError
from autograd_cy.autograd import functional as A
from autograd_cy.utils.checkpoint import checkpoint, checkpoint_sequential


def t64(values, requires_grad=False):
    return ag.tensor(np.array(values, dtype=np.float64), requires_grad=requires_grad)


def same(ours, values, requires_grad=None):
    np.testing.assert_allclose(array(ours), np.asarray(values), rtol=1e-10, atol=1e-12)
    assert tuple(ours.shape) == np.shape(values)
    if requires_grad is not None:
        assert ours.requires_grad is requires_grad


@pytest.fixture(params=["iterative", "recursive"])
def engine(request):
    before = ag.get_engine()
    ag.set_engine(request.param)
    yield request.param
    ag.set_engine(before)


# ---------------------------------------------------------------------------------------------------------------------
# Closed forms

X = np.array([0.7, -1.3, 2.1])
M = np.array([[0.3, -0.8, 1.1], [1.7, 0.2, -0.4]])
CUBE = lambda L, x: (x ** 3).sum()


def test_derivatives_of_a_cube(engine):
    x, v = t64(X), t64([1.0, 0.5, -2.0])
    f = lambda x: CUBE(ag, x)
    same(F.grad(f)(x), 3 * X ** 2, requires_grad=False)
    same(F.grad_and_value(f)(x)[1], (X ** 3).sum(), requires_grad=False)
    same(F.hessian(f)(x), np.diag(6 * X), requires_grad=False)
    same(F.hvp(f, x, v), 6 * X * array(v), requires_grad=False)
    same(F.hvp(f, (x,), (v,))[0], 6 * X * array(v))
    same(F.jacrev(F.grad(f))(x), np.diag(6 * X), requires_grad=False)
    same(F.jacfwd(F.jacfwd(F.jacfwd(f)))(x), np.einsum("i,ij,jk->ijk", np.full(3, 6.0), np.eye(3), np.eye(3)), requires_grad=False)
    same(F.jvp(f, (x,), (v,))[1], (3 * X ** 2 * array(v)).sum(), requires_grad=False)
    same(F.vmap(F.grad(lambda s: s ** 3))(x), 3 * X ** 2, requires_grad=False)
    same(F.vmap(F.grad(F.grad(lambda s: s ** 3)))(x), 6 * X, requires_grad=False)


def test_jacobians_of_a_map():
    m, x = t64(M), t64(X)
    f = lambda m, x: (m @ x.sin()).tanh()
    slope = 1 - np.tanh(M @ np.sin(X)) ** 2
    by_x = slope[:, None] * M * np.cos(X)
    by_m = np.einsum("i,ij,k->ijk", slope, np.eye(2), np.sin(X))
    for jacobian in (F.jacrev, F.jacfwd):
        same(jacobian(f, 1)(m, x), by_x)
        found = jacobian(f, (0, 1))(m, x)
        same(found[0], by_m)
        same(found[1], by_x)
    output, back = F.vjp(f, m, x)
    u = t64([0.4, -1.0])
    same(back(u)[1], array(u) @ by_x)
    same(back(u)[0], np.einsum("i,ijk->jk", array(u), by_m))
    same(F.jvp(f, (m, x), (t64(np.zeros((2, 3))), t64(X)))[1], by_x @ X)
    value, forward = F.linearize(f, m, x)
    same(value, array(output))
    for k in range(3):
        same(forward(ag.zeros_like(m), t64(np.eye(3)[k])), by_x[:, k])


# ---------------------------------------------------------------------------------------------------------------------
# Levels

def test_perturbations_stay_apart(engine):
    x = t64(2.0)
    same(F.grad(lambda a: a * F.grad(lambda b: a + b)(a))(x), 1.0)
    same(F.grad(lambda a: a * F.grad(lambda b: a * b)(a))(x), 4.0)
    same(F.grad(lambda a: a * F.jvp(lambda b: a + b, (t64(1.0),), (t64(1.0),))[1])(x), 1.0)
    same(F.jvp(lambda a: a * F.jvp(lambda b: a * b * b, (a,), (t64(1.0),))[1], (x,), (t64(1.0),))[1], 6 * 2.0 ** 2)
    same(F.grad(lambda a: F.grad(lambda b: F.grad(lambda c: a * b * c)(b) * b)(a) * a)(x), 6 * 2.0 ** 2)
    same(F.vmap(lambda a: F.grad(lambda b: a * b * b)(a))(t64(X)), 2 * X ** 2)


def test_what_results_depend_on(engine):
    x, w = t64(X), t64([1.0, 2.0, 3.0], requires_grad=True)
    same(F.grad(lambda a: (a * a).sum())(t64(X, requires_grad=True)), 2 * X, requires_grad=True)
    same(F.grad(lambda a: (a * a * w).sum())(x), 2 * X * array(w), requires_grad=True)
    gradient, value = F.grad_and_value(lambda a: (a * a + w).sum())(x)
    same(gradient, 2 * X, requires_grad=False)
    assert value.requires_grad
    older = w * 2
    found = F.grad(lambda a: (a * a * older).sum())(x)
    found.sum().backward()
    same(w.grad, 4 * X)
    for transform in (F.jacrev, F.jacfwd):
        assert transform(lambda a: a * w)(x).requires_grad
        assert not transform(lambda a: a * a + w)(x).requires_grad
    output, back = F.vjp(lambda a: a * a + w, x)
    assert output.requires_grad
    assert not back(x)[0].requires_grad
    assert back(w)[0].requires_grad
    assert F.jvp(lambda a: a * a, (x,), (w,))[1].requires_grad
    with ag.no_grad():
        same(F.grad(lambda a: (a * a * w).sum())(x), 2 * X * array(w), requires_grad=False)
        same(F.grad(lambda b: F.grad(lambda a: (a ** 3).sum())(b).sum())(x), 6 * X, requires_grad=False)
        assert not F.vjp(lambda a: a * w, x)[0].requires_grad
        same(F.jacfwd(lambda a: a * w)(w), np.diag(array(w)), requires_grad=False)
        same(F.hessian(lambda a: CUBE(ag, a))(w), np.diag(6 * array(w)), requires_grad=False)

    def constant_inside(b):
        with ag.no_grad():
            return (F.grad(lambda a: CUBE(ag, a))(b) * b).sum()

    same(F.grad(constant_inside)(x), np.zeros(3))


def test_leaves_of_the_user_get_gradients_through_transforms():
    w = t64(X, requires_grad=True)
    x = t64([1.0, -1.0, 0.5])
    F.grad(lambda a: ((a * w) ** 2).sum())(x).sum().backward()
    same(w.grad, 4 * X * array(x))
    w.grad = None
    F.jvp(lambda a: (a * w) ** 2, (x,), (x,))[1].sum().backward()
    same(w.grad, 4 * X * array(x) ** 2)
    w.grad = None
    F.jacfwd(lambda a: (a * w) ** 2)(x).sum().backward()
    same(w.grad, 4 * X * array(x))
    assert x.grad is None


def test_forward_mode_at_special_points():
    zero, one = t64([0.0, 1.0]), t64([1.0, 1.0])
    same(F.jvp(lambda x: ag.where(x > 0, x.sqrt(), 0 * x), (zero,), (one,))[1], [0.0, 0.5])
    assert array(F.jvp(ag.sqrt, (zero,), (one,))[1])[0] == np.inf
    same(F.jvp(ag.relu, (t64([-1.0, 0.0, 2.0]),), (t64([1.0, 1.0, 1.0]),))[1], [0.0, 0.0, 1.0])
    same(F.jvp(lambda x: x * 0, (one,), (one,))[1], [0.0, 0.0])
    output, tangent = F.jvp(lambda x: (x > 0, x * 2), (zero,), (one,))
    assert tangent[0].dtype == ag.bool
    assert not array(tangent[0]).any()
    same(tangent[1], [2.0, 2.0])


# ---------------------------------------------------------------------------------------------------------------------
# Structures, aux, independence

def test_nested_arguments_and_outputs():
    Pair = collections.namedtuple("Pair", "a b")
    x, y = t64(X), t64(2.0)
    gradient = F.grad(lambda p: (p["w"].a * p["w"].b * p["v"][0]).sum())({"w": Pair(x, y), "v": [x]})
    assert isinstance(gradient["w"], Pair)
    same(gradient["w"].a, 2 * X)
    same(gradient["v"][0], 2 * X)
    same(gradient["w"].b, (X * X).sum())
    found = F.jacrev(lambda a, b: {"p": a * b, "q": (a.sum(),)}, argnums=(0, 1))(x, y)
    same(found["p"][0], 2 * np.eye(3))
    same(found["p"][1], X)
    same(found["q"][0][1], 0.0)
    output, back = F.vjp(lambda d: {"k": d["z"] * 2, "l": [d["z"]]}, {"z": x})
    same(back({"k": x, "l": [x]})[0]["z"], 3 * X)
    output, tangent = F.jvp(lambda d: Pair(d["z"] * 2, (d["z"],)), ({"z": x},), ({"z": y * x},))
    same(tangent.a, 4 * X)
    same(tangent.b[0], 2 * X)


def test_aux():
    x = t64(X)
    both = lambda a: ((a * a).sum(), {"twice": a * 2, "word": "w"})
    gradient, aux = F.grad(both, has_aux=True)(x)
    same(gradient, 2 * X)
    same(aux["twice"], 2 * X, requires_grad=False)
    assert aux["word"] == "w"
    gradient, (value, aux) = F.value_and_grad(both, has_aux=True)(x)
    same(value, (X * X).sum(), requires_grad=False)
    assert len(F.vjp(both, x, has_aux=True)) == len(F.jvp(both, (x,), (x,), has_aux=True)) == 3
    same(F.jacrev(lambda a: (a * a, a), has_aux=True)(x)[1], X, requires_grad=False)
    same(F.jacfwd(lambda a: (a * a, a), has_aux=True)(x)[1], X, requires_grad=False)
    assert F.grad(lambda a: (a.sum(), a), has_aux=True)(t64(X, requires_grad=True))[1].requires_grad


def test_independent_outputs_give_zeros():
    x, w = t64(X), t64(X, requires_grad=True)
    for constant in (lambda a: ag.tensor(1.0), lambda a: w.sum(), lambda a: ag.tensor(3)):
        same(F.grad(constant)(x), np.zeros(3), requires_grad=False)
    for transform in (F.jacrev, F.jacfwd):
        same(transform(lambda a: ag.ones(2))(x), np.zeros((2, 3)))
        same(transform(lambda a: a[:0])(x), np.zeros((0, 3)))
        same(transform(lambda a: a.sum().reshape(1))(x[:0]), np.zeros((1, 0)))
    same(F.vjp(lambda a: w * 1, x)[1](x)[0], np.zeros(3))
    same(F.hessian(lambda a: a.sum())(x), np.zeros((3, 3)))
    same(F.jacrev(lambda a, b: (a * 2, b * 3), argnums=(0, 1))(x, x)[0][1], np.zeros((3, 3)))


def test_in_place_inside():
    x = t64(X)

    def f(a):
        b = a.clone()
        b[0] *= 3
        b.mul_(b)
        return b.sum()

    same(F.grad(f)(x), 2 * X * [9, 1, 1])
    same(F.hessian(f)(x), np.diag([18.0, 2, 2]))
    same(F.vmap(F.grad(f))(ag.stack([x, x])), np.stack([2 * X * [9, 1, 1]] * 2))
    for argument in (x.clone(), t64(X, requires_grad=True) * 1):
        with pytest.raises(RuntimeError, match="in place|in-place"):
            F.grad(lambda a: a.mul_(2).sum())(argument)
    y = x.clone()
    same(F.vmap(lambda a: a.mul_(2))(y), 2 * X)
    same(y, 2 * X)


ERRORS = [
    (lambda x: F.grad(lambda a: a)(x), RuntimeError, "scalar Tensor, got tensor with 1 dims"),
    (lambda x: F.grad(lambda a: 3.0)(x), RuntimeError, "return a Tensor, got <class 'float'>"),
    (lambda x: F.grad(lambda a: (a.sum(), a))(x), RuntimeError, "return a Tensor, got <class 'tuple'>"),
    (lambda x: F.grad(lambda a: a.sum(), has_aux=True)(x), RuntimeError, "should be a tuple: .output, aux."),
    (lambda x: F.grad(lambda a: a.sum())(x.long()), RuntimeError, "floating point dtype can require gradients"),
    (lambda x: F.grad(lambda a: a)(2.0), ValueError, "must be Tensor, got <class 'float'>"),
    (lambda x: F.grad(lambda a: a, argnums=1)(x), RuntimeError, "Got argnum=1, but only 1 positional inputs"),
    (lambda x: F.grad(lambda a, b: a, argnums=(0, -2))(x, x), RuntimeError, "must be unique"),
    (lambda x: F.grad(lambda a: a, argnums=())(x), RuntimeError, "must be non-empty"),
    (lambda x: F.grad(lambda a: a, argnums=[0])(x), RuntimeError, "must be int or Tuple"),
    (lambda x: F.vjp(lambda a: a, x)[1](x[:2]), RuntimeError, "Mismatch in shape"),
    (lambda x: F.vjp(lambda a: (a, a), x)[1](x), RuntimeError, r"cotangents: \*, primal output: \(\*, \*\)"),
    (lambda x: F.vjp(lambda a: 3, x), RuntimeError, "return only tensors"),
    (lambda x: F.jacrev(lambda a: a > 0)(x), RuntimeError, "must be floating-point"),
    (lambda x: F.jvp(lambda a: a, x, x), RuntimeError, "primals to be a tuple"),
    (lambda x: F.jvp(lambda a: a, (x,), (x, x)), RuntimeError, "same python structure"),
    (lambda x: F.jvp(lambda a: a, (x,), (x[:2],)), RuntimeError, "different size"),
    (lambda x: F.jvp(lambda a: a, (), ()), RuntimeError, "at least one Tensor"),
    (lambda x: F.jvp(lambda a: x * 2, (x,), (x,), strict=True), RuntimeError, "independent of the inputs"),
    (lambda x: F.jvp(lambda a: a, (x.long(),), (x.long(),)), ValueError, "floating point"),
    (lambda x: F.hvp(lambda a: a.sum(), x, x[:2]), RuntimeError, "same structure and shapes"),
    (lambda x: F.jacrev(lambda a: a, chunk_size=0), ValueError, "greater than 0"),
    (lambda x: F.vmap(lambda: x)(), ValueError, "got no inputs"),
    (lambda x: F.vmap(lambda a: a, in_dims="a")(x), ValueError, "expected `in_dims` to be int"),
    (lambda x: F.vmap(lambda a, b: a, in_dims=(0,))(x, x), ValueError, "not compatible with the structure of `inputs`"),
    (lambda x: F.vmap(lambda a: a, in_dims=(None,))(x), ValueError, "at least one Tensor to vmap over"),
    (lambda x: F.vmap(lambda a: a, in_dims=1)(x), ValueError, "satisfy -1 <= in_dim < 1"),
    (lambda x: F.vmap(lambda a, b: a)(x, 2.0), ValueError, "use None as the respective in_dim"),
    (lambda x: F.vmap(lambda a, b: a)(x, x[:2]), ValueError, r"got sizes \[3, 2\]"),
    (lambda x: F.vmap(lambda a: a, out_dims=1)(x), IndexError, "out of range"),
    (lambda x: F.vmap(lambda a: (a, a), out_dims=(1,))(x), ValueError, "not compatible with the structure of `outputs`"),
    (lambda x: F.vmap(lambda a: a, out_dims="s"), ValueError, "must be an int, None"),
    (lambda x: F.vmap(lambda a: a, out_dims=None)(x), ValueError, "BatchedTensor when out_dim is None"),
    (lambda x: F.vmap(lambda a: 3)(x), ValueError, "must only return Tensors"),
    (lambda x: F.vmap(lambda a: a + ag.rand(1))(x), RuntimeError, "randomness error mode"),
    (lambda x: F.vmap(F.vmap(lambda a: ag.rand(1), randomness="same"))(ag.stack([x])), RuntimeError, "randomness error mode"),
    (lambda x: F.vmap(lambda a: a, randomness="x"), RuntimeError, "Only allowed values"),
    (lambda x: F.vmap(lambda a: a, chunk_size=0), ValueError, "chunk_size"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[e[2] for e in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(t64(X))
    assert ag.rand(1).shape == (1,)               # and random numbers can be drawn again


# ---------------------------------------------------------------------------------------------------------------------
# vmap

def test_vmap_dims():
    m, x = t64(M), t64(X)
    same(F.vmap(lambda a: a.sum())(m), M.sum(1))
    same(F.vmap(lambda a: a * 2, in_dims=1)(m), 2 * M.T)
    same(F.vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(m), 2 * M)
    same(F.vmap(lambda a, b: a * b, in_dims=(0, None))(m, x), M * X)
    same(F.vmap(lambda a, b: a["p"] * a["q"] + b, in_dims=({"p": 0, "q": None}, None))({"p": m, "q": x}, 1.0), M * X + 1)
    first, second = F.vmap(lambda a: (a, [a.sum()]), out_dims=(1, [0]))(m)
    same(first, M.T)
    same(second[0], M.sum(1))
    same(F.vmap(lambda a, k: a + k.sum())(m, k=x), M + X.sum())
    same(F.vmap(lambda a: (a, x, 3), out_dims=(0, None, None))(m)[1], X)
    same(F.vmap(lambda a: x)(m), np.stack([X, X]))
    same(F.vmap(lambda a: a.sum())(ag.zeros(0, 3)), np.zeros(0))
    assert F.vmap(lambda a: (a, a), out_dims=(1, -2))(ag.zeros(0, 3, 2))[0].shape == (3, 0, 2)
    same(F.vmap(F.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x, x), np.outer(X, X))
    same(F.vmap(lambda a: a if a > 0 else -a)(x), abs(X))                       # a branch that depends on values


def test_vmap_under_gradients(engine):
    m = t64(M, requires_grad=True)
    out = F.vmap(lambda a: (a * a).sum(), in_dims=1)(m)
    out.sum().backward()
    same(m.grad, 2 * M)
    same(F.grad(lambda a: F.vmap(lambda r: (r ** 3).sum())(a).sum())(t64(M)), 3 * M ** 2, requires_grad=False)
    same(F.vmap(F.jacrev(lambda r: r * r))(t64(M)), np.stack([np.diag(2 * r) for r in M]))
    same(F.jacfwd(F.vmap(lambda s: s ** 2))(t64(X)), np.diag(2 * X))
    same(F.grad(lambda x: F.jvp(F.vmap(lambda s: s ** 3), (x,), (t64(X),))[1].sum())(t64(X)), 6 * X * X)
    same(F.vmap(lambda s: F.jvp(F.grad(lambda u: u ** 4), (s,), (t64(1.0),))[1])(t64(X)), 12 * X ** 2)
    same(F.hessian(lambda x: F.vmap(F.grad(lambda s: s ** 4))(x).sum())(t64(X)), np.diag(24 * X))


def test_vmap_randomness():
    x = ag.zeros(3)
    draw = lambda a: a + ag.rand(())
    assert len(set(F.vmap(draw, randomness="different")(x).tolist())) == 3
    state = ag.manual_seed(3).get_state()
    values = F.vmap(draw, randomness="same")(x).tolist()
    following = ag.rand(()).item()
    assert len(set(values)) == 1
    ag.engine.generators.default_generator.set_state(state)
    assert [ag.rand(()).item(), ag.rand(()).item()] == [values[0], following]     # it continues after one call's numbers
    nested = F.vmap(F.vmap(draw, randomness="same"), randomness="different")(ag.zeros(2, 3)).tolist()
    assert [len(set(row)) for row in nested] == [1, 1]
    assert nested[0] != nested[1]
    with pytest.raises(RuntimeError, match="randomness error mode"):
        F.vmap(ag.nn.Dropout())(ag.ones(2, 3))
    other = []

    def in_a_thread(a):
        thread = threading.Thread(target=lambda: other.append(ag.rand(1)))
        thread.start()
        thread.join()
        return a

    F.vmap(in_a_thread)(x)
    assert len(other) == 3                                                          # the refusal is this thread's


# ---------------------------------------------------------------------------------------------------------------------
# Modules

def test_functional_call():
    net = ag.nn.Sequential(ag.nn.Linear(3, 4), ag.nn.Tanh(), ag.nn.Linear(4, 2)).double()
    x = t64(M)
    params = {name: p.detach() * 2 for name, p in net.named_parameters()}
    expected = np.tanh(M @ array(params["0.weight"]).T + array(params["0.bias"])) @ array(params["2.weight"]).T + array(params["2.bias"])
    before = [id(p) for p in net.parameters()]
    same(F.functional_call(net, params, (x,)), expected, requires_grad=False)
    same(F.functional_call(net, params, x), expected)
    same(F.functional_call(net, [{k: v} for k, v in params.items()], x), expected)
    assert [id(p) for p in net.parameters()] == before
    gradients = F.grad(lambda p: F.functional_call(net, p, x).sum())(params)
    same(gradients["2.bias"], [2.0, 2.0])
    with pytest.raises(ZeroDivisionError):
        F.functional_call(_Raises(net), {"net.0.weight": x}, ())
    assert [id(p) for p in net.parameters()] == before
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'q'.\n\tMissing key\(s\): '0.bias', '2.weight'"):
        F.functional_call(net, {"q": x, "0.weight": x}, x, strict=True)
    with pytest.raises(TypeError, match="not an instance of Tensor"):
        F.functional_call(net, {"0.weight": 3}, x)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        F.functional_call(net, [params, params], x)
    with pytest.raises(ValueError, match="to be a dict"):
        F.functional_call(net, 3, x)


class _Raises(ag.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self):
        return 1 / 0


class _Held(ag.nn.Module):
    """Parameters in lists, dicts and tuples, shared ones, and a buffer."""

    def __init__(self):
        super().__init__()
        self.parts = [ag.nn.Parameter(t64(1.0)), {"k": (ag.nn.Parameter(t64(2.0)),)}]
        self.listed = ag.nn.ParameterList([ag.nn.Parameter(t64(3.0))])
        self.first = ag.nn.Parameter(t64(4.0))
        self.again = self.first
        self.register_buffer("scale", t64(10.0))

    def forward(self):
        return self.scale * (self.parts[0] + self.parts[1]["k"][0] + self.listed[0]) + self.first + 100 * self.again


def test_functional_call_finds_every_place():
    net = _Held()
    same(net(), 60 + 404)
    new = {"parts.0": t64(0.0), "parts.1.k.0": t64(0.5), "listed.0": t64(0.25), "scale": t64(4.0), "first": t64(1.0)}
    same(F.functional_call(net, new), 3 + 101)
    same(F.functional_call(net, new, strict=True), 3 + 101)
    same(F.functional_call(net, new, tie_weights=False), 3 + 401)
    same(net(), 60 + 404)


def test_ensembles():
    nets = [ag.nn.Linear(3, 2).double() for _ in range(4)]
    params, buffers = F.stack_module_state(nets)
    assert params["weight"].shape == (4, 2, 3)
    assert params["weight"].is_leaf
    assert params["weight"].requires_grad
    assert buffers == {}
    x = t64(X)
    out = F.vmap(lambda p, x: F.functional_call(nets[0], p, x), in_dims=(0, None))(params, x)
    same(out, np.stack([array(net(x)) for net in nets]))
    out.sum().backward()
    same(params["weight"].grad, np.broadcast_to(X, (4, 2, 3)))
    for models, message in (([], "at least one"), ([nets[0], ag.nn.ReLU()], "same class"),
                            ([nets[0], ag.nn.Linear(3, 2).eval()], "training/eval")):
        with pytest.raises(RuntimeError, match=message):
            F.stack_module_state(models)


def test_per_sample_gradients():
    net = ag.nn.Linear(3, 1).double()
    params = dict(net.named_parameters())
    xs, ys = t64(np.random.randn(5, 3)), t64(np.random.randn(5))

    def loss(p, x, y):
        return ((F.functional_call(net, p, x) - y) ** 2).sum()

    found = F.vmap(F.grad(loss), in_dims=(None, 0, 0))(params, xs, ys)
    for k in range(5):
        expected = ag.autograd.grad(((net(xs[k]) - ys[k]) ** 2).sum(), list(net.parameters()))
        same(found["weight"][k], array(expected[0]))
        same(found["bias"][k], array(expected[1]))


# ---------------------------------------------------------------------------------------------------------------------
# autograd.functional

def test_functional_values():
    x, v = t64(X), t64([1.0, 0.5, -2.0])
    f = lambda a: CUBE(ag, a)
    for name in ("vhp", "hvp"):
        value, product = getattr(A, name)(f, x, v)
        same(value, (X ** 3).sum(), requires_grad=False)
        same(product, 6 * X * array(v), requires_grad=False)
        assert getattr(A, name)(f, t64(X, requires_grad=True), v, create_graph=True)[1].requires_grad
    same(A.hessian(f, x), np.diag(6 * X), requires_grad=False)
    same(A.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"), np.diag(6 * X))
    mixed = A.hessian(lambda a, b: (a * a * b).sum(), (x, v))
    same(mixed[0][1], np.diag(2 * X))
    same(mixed[1][1], np.zeros((3, 3)))
    for strategy in ("reverse-mode", "forward-mode"):
        found = A.jacobian(lambda a, b: (a * b, a.sum()), (x, v), strategy=strategy)
        same(found[0][1], np.diag(X), requires_grad=False)
        same(found[1][1], np.zeros(3))
    same(A.jvp(lambda a: a * a, x, v)[1], 2 * X * array(v), requires_grad=False)
    same(A.vjp(lambda a: (a * a, a), x, (v, v))[1], (2 * X + 1) * array(v), requires_grad=False)
    same(A.vjp(f, x)[1], 3 * X ** 2)
    w = t64(X, requires_grad=True)
    A.jacobian(lambda a: a ** 3, w, create_graph=True).sum().backward()
    same(w.grad, 6 * X)
    with ag.no_grad():
        same(A.hvp(f, w, v, create_graph=True)[1], 6 * X * array(v), requires_grad=True)


LINEAR = lambda a: a.sum()
CONSTANT = lambda a: ag.tensor(1.0)
STRICT = [
    (lambda x: A.vjp(CONSTANT, x, strict=True), "Output 0 of the user-provided function does not require gradients"),
    (lambda x: A.vjp(lambda a, b: a * 2, (x, x), x, strict=True), "independent of input 1"),
    (lambda x: A.jvp(lambda a, b: a * 2, (x, x), (x, x), strict=True), "independent of input 1"),
    (lambda x: A.jvp(lambda a: a * 2, t64(X, True), x, create_graph=True, strict=True), "jacobian .* independent of input 0"),
    (lambda x: A.jacobian(lambda a, b: a * 2, (x, x), strict=True), "Output 0 .* independent of input 1"),
    (lambda x: A.jacobian(lambda a: a * 2, t64(X, True), create_graph=True, strict=True), "jacobian .* independent of input 0"),
    (lambda x: A.jacobian(LINEAR, x, strict=True, vectorize=True), "not supported together"),
    (lambda x: A.jacobian(LINEAR, x, strict=True, vectorize=False, strategy="forward-mode"), "not supported together"),
    (lambda x: A.hessian(LINEAR, x, strict=True), "While computing the hessian"),
    (lambda x: A.vhp(LINEAR, x, x, strict=True), "While computing the hessian"),
    (lambda x: A.hvp(LINEAR, x, x, strict=True), "While computing the hessian"),
    (lambda x: A.hvp(lambda a, b: CUBE(ag, a), (x, x), (x, x), strict=True), "independent of input 1"),
    (lambda x: A.hessian(lambda a: a * 1, x), "should contain a single element"),
    (lambda x: A.hvp(lambda a: (a, a), x, x), "should return a single Tensor"),
    (lambda x: A.vjp(lambda a: a * 1, x), "v can only be None"),
    (lambda x: A.hvp(LINEAR, x), "v can only be None"),
    (lambda x: A.vjp(lambda a: a * 1, x, x[:2]), "v has invalid size"),
    (lambda x: A.vjp(lambda a: (a, a), x, (x,)), "v is a tuple of invalid length"),
]


@pytest.mark.parametrize(("call", "message"), STRICT, ids=[str(k) for k in range(len(STRICT))])
def test_functional_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(t64(X))


def test_functional_types():
    for call in (lambda: A.vjp(LINEAR, 3.0), lambda: A.jacobian(lambda a: 3.0, t64(X)), lambda: A.vjp(LINEAR, [t64(X)]),
                 lambda: A.hessian(LINEAR, (t64(X), 2))):
        with pytest.raises(TypeError, match="either a Tensor or a tuple of Tensors"):
            call()
    with pytest.raises(AssertionError, match="Expected strategy"):
        A.jacobian(LINEAR, t64(X), strategy="q")
    same(A.vjp(LINEAR, t64(X))[1], np.ones(3))


# ---------------------------------------------------------------------------------------------------------------------
# checkpoint

def test_checkpoint_gradients(engine):
    x, w = t64(X, requires_grad=True), t64([0.5, 1.5, -1.0], requires_grad=True)
    older = w * 3                                     # what the function takes from outside, with a history of its own

    def f(d, scale):
        return [(d["x"] * w).sin() * older * scale, d["x"].detach() > 0, "word"]

    plain = f({"x": x}, 2.0)[0]
    expected = ag.autograd.grad(plain.sum(), (x, w), retain_graph=True)
    (first,) = ag.autograd.grad(plain.sum(), x, create_graph=True)
    second = ag.autograd.grad(first.sum(), (x, w), retain_graph=True)
    found = checkpoint(f, {"x": x}, scale=2.0, use_reentrant=False)
    same(found[0], array(plain), requires_grad=True)
    assert found[2] == "word"
    for ours, right in zip(ag.autograd.grad(found[0].sum(), (x, w), retain_graph=True), expected, strict=True):
        same(ours, array(right), requires_grad=False)
    (first,) = ag.autograd.grad(checkpoint(f, {"x": x}, 2.0)[0].sum(), x, create_graph=True)
    for ours, right in zip(ag.autograd.grad(first.sum(), (x, w), retain_graph=True), second, strict=True):
        same(ours, array(right))
    checkpoint(f, {"x": x}, 2.0)[0].sum().backward()
    same(x.grad, array(expected[0]))
    same(w.grad, array(expected[1]))
    same(F.hessian(lambda a: checkpoint(lambda b: CUBE(ag, b), a))(t64(X)), np.diag(6 * X))
    same(checkpoint(lambda a: checkpoint(lambda b: b * b, a) * a, t64(X)), X ** 3, requires_grad=False)
    y = t64(X, requires_grad=True)
    checkpoint(lambda a: checkpoint(lambda b: b * b, a) * a, y).sum().backward()
    same(y.grad, 3 * X ** 2)
    with ag.no_grad():
        assert not checkpoint(lambda a: a * a, y).requires_grad
    same(ag.autograd.grad(checkpoint(lambda a: a, y).sum(), y)[0], np.ones(3))


def test_checkpoint_memory():
    kept = []

    def f(a):
        hidden = a * 2
        kept.append(weakref.ref(hidden))
        return (hidden * hidden).exp().sum()

    n = 1 << 20
    x = ag.zeros(n, requires_grad=True)
    gc.collect()
    before = ag.memory_stats()
    out = checkpoint(f, x)
    assert kept[0]() is None
    after = ag.memory_stats()
    assert after["allocated_bytes"] - before["allocated_bytes"] < n * 4
    out.backward()
    assert len(kept) == 2
    assert not array(x.grad).any()


def test_checkpoint_randomness():
    x = ag.ones(50, requires_grad=True)
    drop = ag.nn.Dropout(0.5)
    state = ag.manual_seed(1).get_state()
    checkpoint(drop, x).sum().backward()
    following = ag.rand(3).tolist()
    gradient = array(x.grad)
    ag.engine.generators.default_generator.set_state(state)
    x.grad = None
    drop(x).sum().backward()
    np.testing.assert_array_equal(gradient, array(x.grad))
    assert ag.rand(3).tolist() == following
    x.grad = None
    calls = []

    def noisy(a):
        calls.append(ag.rand(1).item())
        return a * 1

    checkpoint(noisy, x, preserve_rng_state=False).sum().backward()
    assert calls[0] != calls[1]


def test_checkpoint_refusals():
    x = t64(X, requires_grad=True)
    sizes = iter((3, 1))
    with pytest.raises(F.CheckpointError, match="different metadata"):
        checkpoint(lambda a: a[:next(sizes)] * 2, x).sum().backward()
    out = checkpoint(lambda a: a * a, x).sum()
    out.backward(retain_graph=True)
    out.backward()
    same(x.grad, 4 * X)
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()
    y = x * 1
    out = checkpoint(lambda a: a * a, y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        out.sum().backward()
    with pytest.raises(RuntimeError, match="in place"):
        checkpoint(lambda a: a.mul_(2), y)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda a: a, x, determinism_check="q")


def test_checkpoint_sequential():
    net = ag.nn.Sequential(*[layer for _ in range(4) for layer in (ag.nn.Linear(3, 3), ag.nn.Tanh())]).double()
    x = t64(M, requires_grad=True)
    expected = ag.autograd.grad(net(x).sum(), [x, *net.parameters()])
    for segments in (1, 2, 3, 8, 20):
        found = ag.autograd.grad(checkpoint_sequential(net, segments, x, use_reentrant=False).sum(), [x, *net.parameters()])
        for ours, right in zip(found, expected, strict=True):
            same(ours, array(right))
    with pytest.raises(TypeError, match="Unexpected keyword"):
        checkpoint_sequential(net, 2, x, other=1)


# ---------------------------------------------------------------------------------------------------------------------
# Captures

def test_captured_transforms():
    def step(x, v):
        return F.grad(lambda a: CUBE(ag, a))(x) + F.jvp(lambda a: a * a, (x,), (v,))[1] + F.vmap(F.grad(lambda s: s ** 3))(x) \
            + F.hessian(lambda a: CUBE(ag, a))(x).sum(0)

    captured = ag.compile(step)
    for k in range(5):
        x, v = t64(X + k), t64(X - 2 * k)
        np.testing.assert_array_equal(array(captured(x, v)), array(step(x, v)))


def test_captured_randomness_is_refused():
    step = ag.compile(lambda x: F.vmap(lambda a: a + ag.rand(()), randomness="same")(x))
    with pytest.raises(CaptureError, match="get_state"):
        step(ag.zeros(3))


def test_threads():
    results = {}

    def work(k):
        for _ in range(50):
            results[k] = array(F.hessian(lambda a: CUBE(ag, a))(t64(X + k)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_allclose(results[k], np.diag(6 * (X + k)))


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch as the oracle: every transform of every function, and compositions of them to depth three

SCALARS = {
    "cube": lambda L, x: (x ** 3).sum(),
    "mixed": lambda L, x: (x.sin() * L.exp(-x)).sum() * x[0],
    "prod": lambda L, x: x.prod(),
    "norm": lambda L, x: (x * x).sum().sqrt(),
    "logsumexp": lambda L, x: L.logsumexp(x, 0),
    "softmax": lambda L, x: (L.softmax(x, 0) * x).sum(),
    "outer": lambda L, x: (x[:, None] @ x[None, :]).tanh().sum(),
    "where": lambda L, x: L.where(x > 0, x * x, x.exp()).sum(),
    "var": lambda L, x: x.var() + (x.var(0, keepdim=True) + 0.1).sqrt().sum(),      # torch fails at third derivatives of std
    "written": lambda L, x: _written(L, x),
    "linear": lambda L, x: 2 * x.sum(),
}


def _written(L, x):
    y = x.clone()
    y[1:] *= x[:-1]
    y.sin_()
    return (y * x).sum()


COMPOSITIONS = {
    "grad": lambda F, L, f: lambda x, v: F.grad(f)(x),
    "grad_and_value": lambda F, L, f: lambda x, v: F.grad_and_value(f)(x),
    "jvp": lambda F, L, f: lambda x, v: F.jvp(f, (x,), (v,)),
    "vjp": lambda F, L, f: lambda x, v: F.vjp(F.grad(f), x)[1](v),
    "jacrev of grad": lambda F, L, f: lambda x, v: F.jacrev(F.grad(f))(x),
    "hessian": lambda F, L, f: lambda x, v: F.hessian(f)(x),
    "jacfwd of jacfwd": lambda F, L, f: lambda x, v: F.jacfwd(F.jacfwd(f))(x),
    "jvp of grad": lambda F, L, f: lambda x, v: F.jvp(F.grad(f), (x,), (v,)),
    "grad of jvp": lambda F, L, f: lambda x, v: F.grad(lambda a: F.jvp(f, (a,), (v,))[1])(x),
    "grad of jvp of grad": lambda F, L, f: lambda x, v: F.grad(lambda a: F.jvp(F.grad(f), (a,), (v,))[1].sum())(x),
    "jacrev of hessian": lambda F, L, f: lambda x, v: F.jacrev(F.hessian(f))(x),
    "vmap of grad": lambda F, L, f: lambda x, v: F.vmap(F.grad(f))(L.stack([x, v, x * v])),
    "vmap of hessian": lambda F, L, f: lambda x, v: F.vmap(F.hessian(f))(L.stack([x, v])),
    "grad of vmap of grad": lambda F, L, f: lambda x, v: F.grad(
        lambda a: (F.vmap(F.grad(f))(L.stack([a, a * v])) ** 2).sum())(x),
    "jvp of vmap": lambda F, L, f: lambda x, v: F.jvp(lambda a: F.vmap(lambda s: f(a * s))(x), (x,), (v,)),
    "vmap of jvp of grad": lambda F, L, f: lambda x, v: F.vmap(
        lambda t: F.jvp(F.grad(f), (x,), (t,))[1], out_dims=1)(L.stack([v, x])),
    "jacfwd of vmap of vmap": lambda F, L, f: lambda x, v: F.jacfwd(
        lambda a: F.vmap(F.vmap(lambda s, t: s * t.sin(), (None, 0)), (0, None))(a, v))(x),
    "perturbations": lambda F, L, f: lambda x, v: F.grad(lambda a: f(a * F.grad(lambda b: f(a * b))(a)))(x),
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("function", SCALARS)
def test_against_torch(function, composition):
    torch = pytest.importorskip("torch")
    found = []
    for L, transforms in ((ag, F), (torch, torch.func)):
        def f(x, L=L):
            return SCALARS[function](L, x)

        call = COMPOSITIONS[composition](transforms, L, f)
        x, v = (L.tensor(a, dtype=L.float64) for a in ([0.7, -1.3, 2.1], [1.0, 0.4, -0.6]))
        if function == "linear" and composition == "vmap of jvp of grad":
            pytest.skip("torch.func.vmap takes the zeros for a batch")
        result = call(x, v)
        flat = []
        _flat(result, flat)
        found.append(flat)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(array(ours), theirs.detach().numpy(force=True), rtol=1e-8, atol=1e-10)
        assert ours.requires_grad == theirs.requires_grad


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_functional_against_torch(name, create_graph, requires_grad):
    torch = pytest.importorskip("torch")
    for function in SCALARS.values():
        found = []
        for L, functional in ((ag, A), (torch, torch.autograd.functional)):
            x, y = (L.tensor(a, dtype=L.float64).requires_grad_(requires_grad) for a in ([0.7, -1.3, 2.1], [1.0, 0.4, -0.6]))
            v = () if name in ("jacobian", "hessian") else ((x * 0 + 2, y * 0 - 1),) if name != "vjp" else ()
            results = getattr(functional, name)(lambda a, b, L=L: function(L, a * b) + function(L, a), (x, y), *v,
                                                create_graph=create_graph)
            flat = []
            _flat(results, flat)
            found.append(flat)
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(array(ours), theirs.detach().numpy(), rtol=1e-8, atol=1e-10)
            if create_graph == requires_grad or not create_graph:
                assert ours.requires_grad == theirs.requires_grad


def _flat(tree, found):
    if isinstance(tree, tuple):
        for part in tree:
            _flat(part, found)
    else:
        found.append(tree)
