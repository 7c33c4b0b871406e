"""`ag.compile` on functions: arguments and results of all kinds, gradients that come from outside, graphs behind arguments.

Relies on tests/replaying.py and the package; nothing relies on it.
"""

import collections
import contextlib

import numpy as np
import pytest
from replaying import Stories, batch, compare, network, trainer

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.array.errors import CaptureError
from autograd_cy.nn import functional as F

story = STORIES = Stories()


# ---- arguments and results

Pair = collections.namedtuple("Pair", "low high")


@story
def structures(play):
    def f(inputs, *, scale=1.0, flip=False):
        a, b = inputs["a"], inputs["b"][0]
        if flip:
            a, b = b, a
        return {"sum": a + b * scale, "pair": Pair(ag.minimum(a, b), [ag.maximum(a, b), 3, "x", None]), "n": len(inputs)}
    f = play(f)
    for k in range(12):
        x, y = batch(k)[0], batch(k + 20)[0]
        yield f({"a": x, "b": (y,)})
        yield f({"a": x, "b": (y,)}, scale=2.0)
        yield f({"a": x, "b": (y,)}, flip=True)
        yield f({"a": x, "b": (y,)}, scale=2)


@story
def scalars(play):
    def f(x, power, add):
        return x.abs() ** power + add
    f = play(f)
    for _ in range(4):
        for power in (2, 2.0, 3, 0.5, True):
            for add in (1, 1.0, -0.0, 0.0, True):
                yield f(ag.tensor([1.0, -2.0, 0.0]), power, add), f(ag.tensor([1, 2]), power, add)


@story
def same_tensor_twice(play):
    def f(a, b):
        a.add_(1)
        return a * b, b.sum()
    f = play(f)
    for k in range(6):
        x, y = ag.full((3,), float(k)), ag.full((3,), k + 2.0)
        yield f(x, x), x
        yield f(x, y), x, y
        yield f(x[:2], x[1:]), x
        yield f(x, x.view(3)), x


@story
def results_that_are_arguments(play):
    def f(a, b):
        return a, b.detach(), a.view(-1), a + b
    f = play(f)
    for k in range(6):
        x, y = batch(k)[0], batch(k + 9)[0]
        result = f(x, y)
        yield result, result[0] is x, result[1].data_ptr() == y.data_ptr(), result[2].data_ptr() == x.data_ptr()


@story
def results_that_are_arguments_with_gradients(play):
    def f(a, b):
        return a, a * b
    f = play(f)
    for k in range(6):
        x, y = batch(k)[0].requires_grad_(), batch(k + 9)[0]
        first, second = f(x, y)
        (first.sum() + second.sum()).backward()
        yield first, second, x, first is x


@story
def results_that_are_parameters(play):
    model = network()
    f = play(lambda x: (model(x), model[0].weight, x))
    for k in range(6):
        x = batch(k)[0]
        out, weight, same = f(x)
        yield out, weight is model[0].weight, same is x


@story
def results_twice(play):
    f = play(lambda a: [(b := a * 2), b, b[0], b.T])
    for k in range(6):
        made = f(batch(k)[0])
        yield made
        made[0].add_(1)
        yield made


@story
def small_and_empty(play):
    f = play(lambda a, b: (a * b + 1, a.sum(), (a - b).exp()))
    for _ in range(4):
        for shape in ((), (0,), (1,), (2, 0, 3), (1, 1), (5,)):
            for dtype in (ag.float32, ag.float64):
                yield f(ag.rand(*shape, dtype=dtype), ag.rand(*shape, dtype=dtype))


@story
def integers(play):
    f = play(lambda a, b: (a * b + 1, a.sum(), a // 3, a > b, a & b, a.float() / 2, a.argmax(), b.to(ag.uint8)))
    for _ in range(5):
        for dtype in (ag.int64, ag.int32, ag.uint8):
            yield f(ag.randint(0, 9, (7,)).to(dtype), ag.randint(1, 9, (7,)).to(dtype))


@story
def changing_shapes(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = play(trainer(model, optimizer))
    for k in range(30):
        yield step(*batch(k, n=(4, 7, 1, 4, 12)[k % 5])), model, optimizer


@story
def changing_layouts(play):
    f = play(lambda x: (x * 2 + x.sum(0), x.softmax(1)))
    for k in range(5):
        x = ag.tensor(np.random.default_rng(k).normal(size=(4, 4)).astype("f4"))
        for form in (x, x.T, x[::2], x[:, 1:], x[1:2].expand(4, 4), x.flatten()[3:15].reshape(3, 4), x[1:][:, 1:]):
            yield f(form)


@story
def views_and_writes(play):
    def f(x, y):
        z = x.clone()
        z[1] = y[0]
        z[:, 2] += 5
        z[0].mul_(3)
        z[2:, ::2] = -1.0
        w = z.T.reshape(-1)
        w[3:7].fill_(9)
        z.masked_fill_(z > 8, 0.5)
        return z, w, z.T[1:].contiguous(), ag.cat([z, y], 1)[:, 3:6]
    f = play(f)
    for k in range(6):
        yield f(batch(k)[0], batch(k + 7)[0])


@story
def arguments_written(play):
    def f(x, y):
        x.mul_(2).add_(y)
        x[0] = 1.0
        return x.sum()
    f = play(f)
    for k in range(6):
        x, y = batch(k)[0], batch(k + 7)[0]
        yield f(x, y), x, y
        wide = ag.ones(6, 8)
        yield f(wide[:, 2:6], y), wide


@story
def embedding(play):
    table = ag.randn(10, 4, requires_grad=True)
    optimizer = ag.optim.Adam([table], lr=0.1)

    def step(indices, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(table[indices].mean(1)[:, :3], y)
        loss.backward()
        optimizer.step()
        return loss
    step = play(step)
    rng = np.random.default_rng(1)
    for k in range(12):
        indices = ag.tensor(rng.integers(-10, 10, (6, 3)))
        if k in (5, 7):
            indices[2, 1] = (10, -11)[k == 7]
            with pytest.raises(IndexError) as error:
                step(indices, batch(k)[1])
            yield f"index: index {(10, -11)[k == 7]} is out of range" in str(error.value), table, optimizer
            table.grad = None                # how far an eager step came is its own matter
        else:
            yield step(indices, batch(k)[1]), table, optimizer


@story
def bad_targets(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = play(trainer(model, optimizer))
    for k in range(12):
        x, y = batch(k)
        if k in (5, 7):
            y[3] = (3, -1)[k == 7]
            with pytest.raises(IndexError) as error:
                step(x, y)
            yield str(error.value).partition(", at ")[0], model, optimizer
        else:
            yield step(x, y), model, optimizer


@story
def index_writes(play):
    def f(x, index, values):
        z = x * 1
        z[index] = values
        z[index, 1] += 2.0
        return z, x[index], x[index, 0], x[:, index[:2]]
    f = play(f)
    for k in range(6):
        rng = np.random.default_rng(k)
        yield f(batch(k)[0], ag.tensor(rng.permutation(4)[:3]), batch(k + 8, n=3)[0])


# ---- large tensors and long chains

@story
def large_chains(play):
    def f(a, b, c):
        t = (a * b + c).tanh() * 0.5 + a.abs().sqrt() - 2
        m = (t > 0) & (b < 0.5) | (c == 0)
        u = ag.where(m, t, -b).exp().clamp(0.1, 5.0)
        v = u.log1p() / (1 + u) + ag.sigmoid(u - 1) * c.relu()
        return t, u.float(), v.sum(), m.float().mean(), (v.to(ag.float64) * 3).to(ag.float32), v.max(), (v * 2).int()
    f = play(f)
    for n in (100_001, 1 << 17, 100_001):
        for k in range(3):
            rng = np.random.default_rng(k)
            a, b, c = (ag.tensor(rng.normal(size=n).astype("f4")) for _ in range(3))
            c[::3] = 0
            yield f(a, b, c)


@story
def large_gradients(play):
    def f(a, b):
        t = (a * b + 0.3).tanh()
        u = (t * t + a.sin()).exp() * 0.1
        return (u + b.cos()).sqrt().abs().mean() + u.sum() * 1e-3
    f = play(f)
    for k in range(5):
        rng = np.random.default_rng(k)
        a, b = (ag.tensor(rng.normal(size=(400, 300)).astype("f4")).requires_grad_() for _ in range(2))
        out = f(a, b)
        out.backward()
        yield out, a, b


@story
def broadcast_chains(play):
    def f(x, row, column, number):
        return ((x + row) * column - number).relu() / (row.exp() + 1) + number * 2, (x.T + column.T).sum(1), (row > number).float() * x
    f = play(f)
    for k in range(5):
        rng = np.random.default_rng(k)
        make = lambda *shape: ag.tensor(rng.normal(size=shape).astype("f4"))
        yield f(make(300, 400), make(400), make(300, 1), make())


@story
def wide_network(play):
    """Products large enough for BLAS, 784-128-10."""
    model = network(128, 784, 10)
    optimizer = ag.optim.Adam(model.parameters(), lr=1e-3)
    step = play(trainer(model, optimizer))
    for k in range(6):
        yield step(*batch(k, 64, 784, 10)), model, optimizer


# ---- gradients that come from outside

@story
def function_with_gradients(play):
    w = ag.randn(4, 4, requires_grad=True)

    def f(x, y):
        return (x @ w).tanh() * y, x.sum(0), (y * 2).detach()
    f = play(f)
    for k in range(8):
        x, y = batch(k)[0].requires_grad_(), batch(k + 3)[0].requires_grad_(k % 2 == 0)
        a, b, c = f(x, y)
        if k == 3:
            a.sum().backward()
        elif k == 4:
            b[1].backward()
        elif k == 5:
            a.backward(ag.ones(4, 6).T)
        elif k == 6:
            (a * a).mean().backward(retain_graph=True)
            (a.sum() + b.exp().sum()).backward()
        else:
            (a.mean() + (b * b).sum()).backward()
        yield a, b, c, x, y, w
        w.grad = None


@story
def function_second_derivative(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: ((x @ w).tanh() ** 2).sum())
    for k in range(6):
        x = batch(k)[0].requires_grad_()
        g, = ag.autograd.grad(f(x), x, create_graph=True)
        (g * g).sum().backward()
        yield g, x, w
        w.grad = None


@story
def function_called_several_times_before_backward(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: (x @ w).tanh())
    for k in range(5):
        x = batch(k)[0]
        outs = []
        for _ in range(4):
            x = f(x)
            outs.append(x)
        (outs[-1].sum() + outs[1].mean()).backward()
        yield outs, w
        w.grad = None


@story
def function_changed_before_backward(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: (x @ w).tanh())
    for k in range(6):
        x = batch(k)[0].requires_grad_()
        out = f(x)
        if k in (3, 5):
            with ag.no_grad():
                (w if k == 3 else x).add_(1)
            with pytest.raises(RuntimeError):
                out.sum().backward()
        else:
            out.sum().backward()
        yield out, x if k not in (3, 5) else None
        w.grad = None


@story
def function_backward_twice(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: (x @ w).tanh())
    for k in range(6):
        out = f(batch(k)[0]).sum()
        out.backward()
        with pytest.raises(RuntimeError):
            out.backward()
        yield w


@story
def modes_around_calls(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: (x @ w).tanh())
    for k in range(5):
        x = batch(k)[0]
        yield f(x), f(x).requires_grad
        with ag.no_grad():
            yield f(x), f(x).requires_grad
        ag.set_grad_enabled(False)
        yield f(x).requires_grad
        ag.set_grad_enabled(True)


@story
def default_dtype_changes(play):
    f = play(lambda x: x * ag.ones(3) + ag.full((3,), 0.1))
    for _ in range(4):
        for dtype in (ag.float32, ag.float64):
            ag.set_default_dtype(dtype)
            try:
                yield f(ag.tensor([1, 2, 3])), f(ag.tensor([0.5, 1, 2]))
            finally:
                ag.set_default_dtype(ag.float32)


# ---- arguments, leaves and graphs

def features(k, n=6):
    return batch(k, n)[0]


@story
def leaf_arguments(play):
    """backward() inside the step gives an argument its gradient."""
    w = ag.randn(4, 3, requires_grad=True)

    def step(x):
        loss = (x @ w).tanh().sum()
        loss.backward()
        return loss
    step = play(step)
    same = features(99).requires_grad_()
    for k in range(7):
        x = features(k).requires_grad_()
        yield step(x), x, w
        w.grad = None
        yield step(same), same, w


@story
def leaves_made_inside(play):
    w = ag.randn(4, 3, requires_grad=True)

    def step(x):
        x = x.detach().requires_grad_()
        loss = (x @ w).tanh().sum()
        loss.backward()
        return x.grad, loss.detach()
    step = play(step)
    for k in range(7):
        yield step(features(k)), w
        w.grad = None


@story
def gradient_is_a_result(play):
    model = nn.Linear(4, 3)
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss, model.weight.grad, model.weight.grad.norm()
    step = play(step)
    kept = []
    for k in range(8):
        kept.append(step(features(k)))
        yield kept, model


@story
def gradient_of_the_step_before(play):
    """What the last step left in .grad is read by the next."""
    model = nn.Linear(4, 3)
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        last = None if model.weight.grad is None else model.weight.grad * 2
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss, last
    step = play(step)
    for k in range(8):
        yield step(features(k)), model


@story(captures=2)
def several_losses_and_updates(play):
    model = nn.Linear(4, 3)
    optimizer = ag.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        for n in range(3):
            optimizer.zero_grad()
            first = model(x).square().mean()
            first.backward()
            second = model(x * 2).abs().sum() * n
            second.backward()
            optimizer.step()
        return first + second
    step = play(step)
    for k in range(8):
        yield step(features(k)), model, optimizer


@story
def unused_parameters(play):
    model, unused = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = ag.optim.Adam([*model.parameters(), *unused.parameters()], lr=0.1, weight_decay=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    step = play(step)
    for k in range(9):
        yield step(features(k)), model, unused
        if k == 4:
            unused.weight.grad = ag.ones(3, 4)
        if k == 6:
            unused.weight.requires_grad_(False)


@story(captures=2)
def closure_for_the_optimizer(play):
    model = nn.Linear(4, 3)
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        return optimizer.step(closure)
    step = play(step)
    for k in range(8):
        yield step(features(k)), model, optimizer


@story
def gradients_set_to_zero_and_held(play):
    model = nn.Linear(4, 3)
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    step = play(step)
    kept = []
    for k in range(8):
        loss = step(features(k))
        kept.append(model.weight.grad)
        yield loss, kept, model


@story
def one_of_two_results_used(play):
    """No gradient is not a gradient of zero: NaN in the other branch, momentum and decay would show."""
    w, v = ag.randn(4, 3, requires_grad=True), ag.randn(4, 3, requires_grad=True)
    optimizer = ag.optim.SGD([w, v], lr=0.1, momentum=0.9, weight_decay=0.1)
    f = play(lambda x: (x @ w, (x @ v).log().sum()))
    for k in range(7):
        optimizer.zero_grad()
        a, b = f(features(k))
        (a.sum() if k % 2 else (a.sum() + b)).backward()
        optimizer.step()
        yield a, b, w, v


@story
def layouts_of_gradients(play):
    """The gradient that comes in may lie in another way than the result: sums add up in another order."""
    w = ag.randn((), requires_grad=True)
    f = play(lambda x: x.T * w)
    for k in range(7):
        y = f(features(k, 40))
        y.backward(features(k + 20, 40).T.contiguous())
        yield y, w
        w.grad = None


@story(captures=2)
def expanded_gradients(play):
    w, v = ag.randn(40, requires_grad=True), ag.randn((), requires_grad=True)
    f = play(lambda x: (x * w * v).T)
    for k in range(7):
        y = f(ag.rand(300, 40))
        (y.sum() if k % 2 else y.mean(0).sum()).backward()
        yield y, w, v
        w.grad = v.grad = None


def test_random_numbers_and_second_derivatives():
    """The second derivative uses the random numbers that the function drew. Its sums are formed in another order than eager code's."""
    def tale(play):
        ag.manual_seed(3)
        w = ag.randn(4, 4, requires_grad=True)
        f = play(lambda x: F.dropout((x @ w).tanh(), 0.5))
        for k in range(6):
            x = features(k).requires_grad_()
            g, = ag.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
            (g * g).sum().backward()
            yield from (t.detach().numpy().copy() for t in (g, x.grad, w.grad))
            w.grad = None
    for one, other in zip(list(tale(lambda f: f)), list(tale(ag.compile)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


@story(captures=2)
def graphs_behind_several_arguments(play):
    """w is behind the arguments, and in the function, too: each share counts once."""
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda a, b: (a * w[:3, :].sum(0) + b).tanh())
    for k in range(6):
        a, b = (features(k) @ w).chunk(2)
        y = f(a, b)
        (y.sum() + a.exp().sum()).backward()
        yield y, w
        w.grad = None


@story
def argument_with_a_graph_returned(play):
    w = ag.randn(4, 4, requires_grad=True)
    f = play(lambda x: (x, x * 2))
    for k in range(6):
        x = features(k) @ w
        a, b = f(x)
        (a.sum() + b.exp().sum()).backward()
        yield a, b, w, a is x
        w.grad = None


@story
def result_written_later(play):
    """Writing over a result is an error where its gradient needs it."""
    w = ag.randn(4, 4, requires_grad=True)
    f, g = play(lambda x: (x @ w).exp()), play(lambda x: x @ w + 1)
    for k in range(6):
        y = f(features(k))
        y.mul_(3)
        with pytest.raises(RuntimeError):
            y.sum().backward()
        z = g(features(k))
        z.mul_(3)
        z.sum().backward()
        yield y, z, w
        w.grad = None


@story
def saved_values_written_later(play):
    """Outside tensors that need no gradient but that a gradient needs."""
    w, scale, offset = ag.randn(4, 4, requires_grad=True), ag.ones(4), ag.ones(4)
    f = play(lambda x: (x @ w) * scale + offset)
    for k in range(8):
        x = features(k)
        y = f(x)
        if k % 2:
            offset.add_(1)
            y.sum().backward()
        else:
            (scale if k % 4 else x).mul_(2)
            with pytest.raises(RuntimeError):
                y.sum().backward()
        yield y, w
        w.grad = None


def writes_the_argument(x):
    return x.mul_(2).sum()


@pytest.mark.parametrize("f", [writes_the_argument, lambda x: (x.T, x[1:])], ids=["writes", "views"])
def test_graph_of_an_argument_changed(f):
    """A function that changes the graph behind an argument, or gives out a view through which that may happen: right, or refused."""
    def tale(play):
        w = ag.randn(4, 4, requires_grad=True)
        run = play(f)
        for k in range(6):
            x = features(k) @ w
            y = run(x)
            if isinstance(y, tuple):
                y[0].mul_(3)
                y = y[0].sum()
            (y + x.exp().sum()).backward()
            yield x, y, w
            w.grad = None
    with contextlib.suppress(CaptureError):
        compare(tale)


@pytest.mark.parametrize("name", STORIES)
def test_stories(name):
    tale, expected = STORIES[name]
    compare(tale, **expected)
