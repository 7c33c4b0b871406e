"""autograd.Function and custom_op: operations with a gradient of the user's own, in both engines, twice, freed, refused.

Relies on autograd_cy's public names, and on PyTorch where it is installed; nothing relies on it.
"""

import gc
import threading
import weakref

import numpy as np
import pytest
from numeric import leaf

import autograd_cy as ag
from autograd_cy.autograd import Function
from autograd_cy.autograd.function import once_differentiable

ENGINES = ("iterative", "recursive")


@pytest.fixture(params=ENGINES)
def engine(request):
    before = ag.get_engine()
    ag.set_engine(request.param)
    yield request.param
    ag.set_engine(before)


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x * x


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y


class Affine(Function):
    """Several arguments, some of them no tensors."""

    @staticmethod
    def forward(ctx, x, w, scale, name="affine"):
        ctx.save_for_backward(x, w)
        ctx.scale, ctx.name_ = scale, name
        return x * w * scale

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        assert ctx.needs_input_grad[2:] == (False,) * (len(ctx.needs_input_grad) - 2)
        return (g * w * ctx.scale if ctx.needs_input_grad[0] else None, g * x * ctx.scale if ctx.needs_input_grad[1] else None, None, None)


class SinCos(Function):
    """Two results."""

    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc_):
        s, c = ctx.saved_tensors
        return gs * c - gc_ * s


CHECKED = {
    "cube": lambda x, w: Cube.apply(x),
    "exp": lambda x, w: Exp.apply(x),
    "affine": lambda x, w: Affine.apply(x, w, 2.0),
    "affine, one of them": lambda x, w: Affine.apply(ag.ones(2, 2, dtype=ag.float64), w * x, 2.0, "name"),
    "keyword": lambda x, w: Affine.apply(x, w, scale=3.0),
    "sin cos": lambda x, w: SinCos.apply(x),
    "sin": lambda x, w: SinCos.apply(x)[0] * w,
    "nested": lambda x, w: Exp.apply(Cube.apply(x * w) * 0.1) + Affine.apply(Cube.apply(w), x, 0.5),
    "twice the same": lambda x, w: Affine.apply(x, x, 1.0),
    "broadcast": lambda x, w: Affine.apply(x, w[0], 1.0),
}


@pytest.mark.parametrize("name", CHECKED)
def test_derivatives(name, engine):
    x, w = leaf([[0.3, -0.7], [0.5, 1.2]]), leaf([[0.9, 0.4], [-0.6, 0.8]])
    assert ag.autograd.gradcheck(CHECKED[name], (x, w))
    assert ag.autograd.gradgradcheck(CHECKED[name], (x, w))


def test_names():
    x = leaf([1.0])
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward" and "CubeBackward" in repr(y)
    assert y.grad_fn.next_functions == ((x, 0),)
    assert __file__ in y.grad_fn.line
    assert "Cube" in str(ag.graph.draw(y).svg() if hasattr(ag.graph.draw(y), "svg") else ag.graph.draw(y))


def test_what_is_recorded():
    x = leaf([1.0])
    assert not Cube.apply(x.detach()).requires_grad
    with ag.no_grad():
        assert not Cube.apply(x).requires_grad
    modes = []

    class Mode(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(ag.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx, g):
            modes.append(ag.is_grad_enabled())
            return g * 2

    y = Mode.apply(x)
    assert ag.is_grad_enabled()
    y.sum().backward(retain_graph=True)
    ag.autograd.grad(y.sum(), x, create_graph=True)
    assert modes == [False, False, True]


def test_unused_results_and_zeros(engine):
    seen = []

    class Pair(Function):
        materialize = True

        @classmethod
        def make(cls, value):
            cls.materialize = value
            return cls

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Pair.materialize)
            return x * 2, x * 3, "text"

        @staticmethod
        def backward(ctx, *gs):
            seen.append([None if g is None else g.tolist() for g in gs])
            return sum(g * k for g, k in zip(gs, (2, 3), strict=False) if g is not None)

    x = leaf([1.0, 2.0])
    for value in (True, False):
        a, b, text = Pair.make(value).apply(x)
        assert text == "text"
        x.grad = None
        b.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    assert seen == [[[0.0, 0.0], [1.0, 1.0], None], [None, [1.0, 1.0], None]]


def test_marks(engine):
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            order = np.argsort(x.detach().numpy())
            ctx.order = order
            index = ag.tensor(order)
            rank = x * 0
            ctx.mark_non_differentiable(index, rank)
            return x[index], index, rank

        @staticmethod
        def backward(ctx, g, g_index, g_rank):
            out = g * 0
            out[ctx.order.tolist()] = g
            return out

    x = leaf([3.0, 1.0, 2.0])
    y, index, rank = Sort.apply(x)
    assert y.requires_grad and not index.requires_grad and not rank.requires_grad and index.tolist() == [1, 2, 0]
    (y * ag.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


class Double_(Function):
    """In place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_dirty_inputs(engine):
    x = leaf([1.0, 2.0])
    y = x * 1
    version = y._version
    z = Double_.apply(y)
    assert z is y and y._version > version and y.grad_fn.name() == "Double_Backward"
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    x.grad = None
    base = x * 1
    Double_.apply(base[1:])                       # the base learns of it
    (base * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Double_.apply(leaf([1.0]))
    saved = (x * 1).exp()
    y = saved * 1
    z = y.exp()
    Double_.apply(z)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()


def test_inputs_and_views_as_results(engine):
    class Reverse(Function):
        """The identity, with the gradient's sign turned."""

        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    class Part(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x[0]

        @staticmethod
        def backward(ctx, g):
            out = ag.zeros(ctx.shape, dtype=g.dtype)
            out[0] = g * 7
            return out

    x = leaf([1.0, 2.0])
    y = Reverse.apply(x)
    assert y is not x and x.is_leaf and x.grad_fn is None and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]
    h = x * 1
    x.grad = None
    z = Reverse.apply(h)
    assert h.grad_fn.name() == "MulBackward"
    (z + h * 3).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    h = x.reshape(2, 1) * 1
    part = Part.apply(h)
    part.sum().backward()
    assert x.grad.tolist() == [7.0, 0.0]
    with pytest.raises(RuntimeError, match="view that an autograd.Function returned"):
        Part.apply(x.reshape(2, 1) * 1).mul_(2)
    h = x.reshape(2, 1) * 1
    part = Part.apply(h)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="returned a view of a tensor that was changed in place"):
        part.sum().backward()


@pytest.mark.parametrize(("answer", "error", "words"), [
    (lambda g: None, None, None),
    (lambda g: (g, None), None, None),
    (lambda g: (g, g), RuntimeError, r"incorrect number of gradients \(expected 1, .* got 2\)"),
    (lambda g: (), RuntimeError, "expected 1"),
    (lambda g: 1.0, TypeError, "must return tensors or None"),
    (lambda g: ag.ones(5, dtype=ag.float64), RuntimeError, r"gradient of shape \(5,\) for argument 0, which has shape \(2,\)"),
    (lambda g: g.float(), None, None),
    (lambda g: g.reshape(1, 2).expand(3, 2), None, None),
])
def test_what_backward_returns_is_checked(answer, error, words, engine):
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return answer(g)

    x = leaf([1.0, 2.0])
    y = Odd.apply(x)
    if error is None:
        y.sum().backward()
        assert x.grad is None or x.grad.dtype == ag.float64 and x.grad.shape == (2,)
    else:
        with pytest.raises(error, match=words) as info:
            y.sum().backward()
        assert "Odd" in str(info.value) and "test_custom_functions.py" in str(info.value)
        assert x.grad is None


def test_refusals():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="apply"):
        Cube()
    with pytest.raises(NotImplementedError):
        Function.apply(x)

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = NoBackward.apply(x)
    with pytest.raises(NotImplementedError, match="backward"):
        y.sum().backward()

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, what):
            if what == "save":
                ctx.save_for_backward(3)
            if what == "dirty":
                ctx.mark_dirty(x * 1)
            if what == "dropped":
                ctx.mark_dirty(x)
            Wrong.ctx = ctx
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    for what, error in (("save", TypeError), ("dirty", RuntimeError), ("dropped", RuntimeError)):
        with pytest.raises(error):
            Wrong.apply(x * 1, what)
    y = Wrong.apply(x, "")
    with pytest.raises(RuntimeError, match="argument 1, which is no tensor"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="in forward and setup_context only"):
        Wrong.ctx.save_for_backward(x)
    del y
    with pytest.raises(RuntimeError, match="gone"):
        Wrong.ctx.saved_tensors


def test_saved_tensors(engine):
    x = leaf([1.0, 2.0])
    h = x * 1
    y = Cube.apply(h)
    h.mul_(3)
    with pytest.raises(RuntimeError, match="the function Cube.* saved for its backward was changed in place"):
        y.sum().backward()
    y = Cube.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    found = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x, w, constant):
            y = x * w
            ctx.save_for_backward(x, None, y, w, constant)
            return y

        @staticmethod
        def backward(ctx, g):
            found.extend(ctx.saved_tensors)
            return g * ctx.saved_tensors[3], g * ctx.saved_tensors[0], None

    w = x * 2
    y = Look.apply(x, w, ag.ones(2))
    y.sum().backward()
    assert found[0] is x and found[1] is None
    assert found[2].grad_fn is y.grad_fn and found[3].grad_fn is w.grad_fn and found[4].grad_fn is None


def test_once_differentiable(engine):
    class Numpy(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ag.from_numpy(np.sin(x.detach().numpy()))

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return ag.from_numpy(g.detach().numpy() * np.cos(ctx.saved_tensors[0].detach().numpy()))

    x = leaf([0.5, 1.0])
    assert ag.autograd.gradcheck(Numpy.apply, (x,))
    g, = ag.autograd.grad(Numpy.apply(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), np.cos([0.5, 1.0]))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        ag.autograd.grad(g.sum(), x)


def test_hooks_and_saved_tensors_hooks_of_functions(engine):
    x = leaf([1.0, 2.0])
    packed = []
    with ag.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t.numpy().copy(), ag.tensor):
        y = Cube.apply(Exp.apply(x))
    assert len(packed) == 2
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_hook(lambda i, o: (i[0] * 5,))
    g, = ag.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), 30 * np.exp(3 * np.array([1.0, 2.0])))
    second, = ag.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(second.numpy(), 90 * np.exp(3 * np.array([1.0, 2.0])))


def test_engines_give_the_same_bytes():
    found = []
    for engine in ENGINES:
        ag.set_engine(engine)
        x, w = leaf(np.linspace(-1, 1, 7)), leaf(np.linspace(0.2, 2, 7))
        y = CHECKED["nested"](x, w)
        s, c = SinCos.apply(y * x)
        found.append([t.tolist() for t in ag.autograd.grad((s * c + y).sum(), [x, w])])
    ag.set_engine("iterative")
    assert found[0] == found[1]


# ---- memory

def keep_output(x):
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.exp()
            ctx.x = x
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.y

    return Keep.apply(x * 1)


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("how", ["forward", "backward", "retained", "recorded", "failed"])
def test_freed_by_reference_counting(name, how, no_collector):
    def run():
        x, w = leaf([[0.3, -0.7], [0.5, 1.2]]), leaf([[0.9, 0.4], [-0.6, 0.8]])
        y = CHECKED[name](x, w)
        y = (y[0] * y[1] if isinstance(y, tuple) else y).sum()
        if how == "backward":
            y.backward()
        elif how == "retained":
            y.backward(retain_graph=True)
        elif how == "recorded":
            ag.autograd.grad(y, w if "one" in name else x, create_graph=True)
        elif how == "failed":
            with pytest.raises(RuntimeError):
                y.backward(ag.ones(3))
        return weakref.ref(y), weakref.ref(x)

    run()
    gc.collect()
    before = ag.memory_stats()["allocated_bytes"]
    assert all(r() is None for r in run())
    assert ag.memory_stats()["allocated_bytes"] == before


def test_what_is_kept_in_the_context_is_collected():
    x = leaf([1.0])
    y = keep_output(x)
    y.sum().backward()
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_a_deep_chain_is_freed_without_recursion():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf([1.0])
    y = x
    for _ in range(200_000):
        y = Identity.apply(y)
    y.sum().backward(retain_graph=True)
    assert x.grad.item() == 1.0
    del y
    y = x
    for _ in range(100_000):
        y = scaled(y)
    y.sum().backward(retain_graph=True)
    del y


def test_functions_in_threads(engine):
    x = leaf(np.linspace(-1, 1, 8))
    errors = []

    def work(k):
        try:
            for _ in range(60):
                y = Cube.apply(Exp.apply(x * k)) + scaled(x)
                g, = ag.autograd.grad(y.sum(), x, create_graph=True)
                h, = ag.autograd.grad(g.sum(), x)
                v = x.detach().numpy()
                np.testing.assert_allclose(h.numpy(), 9 * k * k * np.exp(3 * k * v) + 12 * v)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_passes_within_backward(engine):
    """As activation checkpointing does: backward runs the function again."""
    class Checkpoint(Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with ag.enable_grad():
                y = ctx.function(x)
            y.backward(g)
            return None, x.grad

    x, w = leaf([1.0, 2.0]), leaf([0.5, -0.5])
    y = Checkpoint.apply(lambda x: (x * w).tanh() * w, x * 2)
    y.sum().backward()
    expected = ag.autograd.grad(((x * 2 * w).tanh() * w).sum(), [x, w])
    assert x.grad.tolist() == expected[0].tolist() and w.grad.tolist() == expected[1].tolist()


# ---- custom_op

@ag.custom_op
def scaled(x, scale=2.0):
    y = scale * x ** 3

    def backward(g):
        return g * 3 * scale * x ** 2

    return y, backward


@ag.custom_op
def own_exp(x):
    y = x.exp()
    return y, lambda g: g * y


@ag.custom_op
def own_product(x, w, *, power=1):
    parts = [x, {"w": w}]
    return x * w ** power, lambda g: (g * parts[1]["w"] ** power, g * power * parts[0] * w ** (power - 1))


@ag.custom_op
def own_polar(r, phi):
    s, c = phi.sin(), phi.cos()
    return (r * c, r * s), lambda gx, gy: (gx * c + gy * s, r * (gy * c - gx * s))


OPS = {
    "scaled": lambda x, w: scaled(x),
    "keyword": lambda x, w: scaled(x, scale=3.0),
    "exp": lambda x, w: own_exp(x * w) + own_exp(own_exp(x) * 0.1),
    "product": lambda x, w: own_product(x, w),
    "keyword only": lambda x, w: own_product(x.exp(), w, power=3),
    "one of two": lambda x, w: own_product(ag.ones(2, 2, dtype=ag.float64) * 3, w * x, power=2),
}


@pytest.mark.parametrize("name", OPS)
def test_custom_op_derivatives(name, engine):
    x, w = leaf([[0.3, -0.7], [0.5, 1.2]]), leaf([[0.9, 0.4], [0.6, 0.8]])
    assert ag.autograd.gradcheck(OPS[name], (x, w))
    assert ag.autograd.gradgradcheck(OPS[name], (x, w))


def test_custom_op_of_several_results(engine):
    r, phi = leaf([1.0, 2.0]), leaf([0.3, 0.9])
    assert ag.autograd.gradcheck(lambda r, phi: own_polar(r, phi), (r, phi))
    x, y = own_polar(r, phi)
    x.sum().backward()
    np.testing.assert_allclose(r.grad.numpy(), np.cos([0.3, 0.9]))
    assert x.grad_fn is y.grad_fn and x.grad_fn.name() == "OwnPolarBackward"
    g, = ag.autograd.grad(own_polar(r, phi)[0].sum(), r, create_graph=True)         # cos(phi), which was computed on the way
    with pytest.raises(RuntimeError, match="computed on the way"):
        g.sum().backward()
    outside = ag.tensor([2.0, 3.0], dtype=ag.float64)
    around = ag.custom_op(lambda x: (x * x * outside, lambda g: g * 2 * x * outside))
    assert ag.autograd.gradgradcheck(around, (r,))


def test_custom_op_refuses():
    x = leaf([1.0, 2.0])
    assert scaled.__name__ == "scaled" and not scaled(x.detach()).requires_grad
    with pytest.raises(TypeError, match="must return"):
        ag.custom_op(lambda x: x * 2)(x)
    with pytest.raises(TypeError, match="expected a function"):
        ag.custom_op(3)
    h = x * 1
    y = scaled(h)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="Scaled.*test_custom_functions.* was changed in place"):
        y.sum().backward()
    y = own_exp(x * 1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="was changed in place"):
        y.sum().backward()
    y = scaled(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    bad = ag.custom_op(lambda x: (x * 2, lambda g: (g, g)))
    with pytest.raises(RuntimeError, match="one for each tensor among its arguments, got 2"):
        bad(x).sum().backward()


@pytest.mark.parametrize("name", OPS)
def test_custom_ops_are_freed_by_reference_counting(name, no_collector):
    def run(how):
        x, w = leaf([[0.3, -0.7], [0.5, 1.2]]), leaf([[0.9, 0.4], [0.6, 0.8]])
        y = OPS[name](x, w)
        if how == 1:
            y.sum().backward()
        if how == 2:
            ag.autograd.grad(y.sum(), [w, x], create_graph=True, allow_unused=True)
        return weakref.ref(y), weakref.ref(w)

    for how in range(3):
        run(how)
        before = ag.memory_stats()["allocated_bytes"]
        assert all(r() is None for r in run(how))
        assert ag.memory_stats()["allocated_bytes"] == before


# ---- against PyTorch

def torch_program(lib, Base, once):
    """Functions with everything, in either library."""
    class Mixed(Base):
        @staticmethod
        def forward(ctx, x, k, w):
            ctx.k = k
            y = x * w * k
            z = x + w
            ctx.save_for_backward(x, w, y)
            ctx.needs = ctx.needs_input_grad
            return y, z

        @staticmethod
        def backward(ctx, gy, gz):
            x, w, y = ctx.saved_tensors
            assert ctx.needs == (True, False, True)
            return gy * w * ctx.k + gz, None, gy * y / w + gz

    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([3.0, 4.0], dtype=lib.float64, requires_grad=True)
    y, z = Mixed.apply(x, 2.0, w)
    loss = (y * y * z).sum() + y.sum()
    g = lib.autograd.grad(loss, [x, w], create_graph=True)
    second = lib.autograd.grad((g[0] * g[1]).sum(), [x, w], create_graph=True)
    third = lib.autograd.grad((second[0] * second[1]).sum(), [x, w])
    return [t.tolist() for t in (y, z, *g, *second, *third)], y.grad_fn.name(), [f[1] for f in y.grad_fn.next_functions]


@pytest.mark.oracle
def test_against_pytorch(engine):
    torch = pytest.importorskip("torch")
    ours = torch_program(ag, Function, once_differentiable)
    theirs = torch_program(torch, torch.autograd.Function, torch.autograd.function.once_differentiable)
    np.testing.assert_allclose(np.array(ours[0]), np.array(theirs[0]), rtol=1e-12)
    assert ours[1:] == theirs[1:]


# ---- in captures

def test_captured_functions_of_the_users():
    x, w = leaf([[0.3, -0.7], [0.5, 1.2]]), leaf([[0.9, 0.4], [-0.6, 0.8]])

    def function(x, w):
        s, c = SinCos.apply(own_product(x, w) * 0.5)
        return (Cube.apply(s) + own_exp(c * Affine.apply(x, w, 2.0))).sum()

    def step(x):
        w.grad = None
        loss = function(x, w)
        loss.backward()
        return loss

    expected = [t.tolist() for t in ag.autograd.grad(function(x, w), [x, w])]
    captured = ag.compile(function)
    for _ in range(4):
        assert [t.tolist() for t in ag.autograd.grad(captured(x, w), [x, w])] == expected
    assert ag.autograd.gradgradcheck(captured, (x, w))
    captured = ag.compile(step)
    for _ in range(4):
        captured(x.detach())
        assert w.grad.tolist() == expected[1]

    class Numpy(Function):
        @staticmethod
        def forward(ctx, x):
            return ag.from_numpy(x.detach().numpy() * 2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="numpy"):
        ag.compile(lambda x: Numpy.apply(x))(x)

    class Hidden(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = [[[[[[[x.exp()]]]]]]]
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.kept[0][0][0][0][0][0][0]

    captured = ag.compile(lambda x: Hidden.apply(x))
    with pytest.raises(RuntimeError, match="save_for_backward"):
        for _ in range(4):
            captured(x).sum().backward()
