"""Shapes made of others: random calls agree with PyTorch in values, gradients and refusals; views, windows and what is in place.

Relies on autograd_cy's public names, tests/numeric.py, and PyTorch where it is installed; tests/test_indexing.py relies on `compare`.
"""

import numpy as np
import pytest
from numeric import array, close, leaf
from test_values_in_captures import replayed

import autograd_cy as ag
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.nn import functional as F

TRIALS = 60


def layouts(rng, a):
    """The same numbers in memory laid out at random: a base and how to see it."""
    kind = rng.integers(5)
    if not a.ndim or kind == 0 or kind == 4:
        return a, lambda x: x
    if kind == 1:
        order = [int(i) for i in rng.permutation(a.ndim)]
        return np.ascontiguousarray(a.transpose(order)), lambda x: x.permute(*[order.index(i) for i in range(a.ndim)])
    if kind == 2:
        base = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        base[..., ::2] = a
        return base, lambda x: x[..., ::2]
    return np.concatenate([a[:1], a]) if a.shape[0] else a, (lambda x: x[1:]) if a.shape[0] else (lambda x: x)


def outcome(library, call, bases, seed):
    """Values, first and second derivatives of one call."""
    leaves = [library.tensor(base) for base, _ in bases]
    leaves = [x.requires_grad_(True) if x.is_floating_point() else x for x in leaves]
    result = call(library, *[see(x) for x, (_, see) in zip(leaves, bases)])
    outs = list(result) if isinstance(result, (tuple, list)) else [result]
    values, grads, seconds, rng = [o.detach().numpy().copy() for o in outs], [], [], np.random.default_rng(seed)
    wanted = [x for x in leaves if x.requires_grad]
    loss = 0
    for o in outs:
        if o.requires_grad:
            w = library.tensor(rng.normal(size=tuple(o.shape)))
            loss = loss + (o * o * o * w + o * w).sum()
    if wanted and hasattr(loss, "backward"):
        first = library.autograd.grad(loss, wanted, create_graph=True, allow_unused=True)
        grads = [np.zeros(x.shape) if g is None else g.detach().numpy() for x, g in zip(wanted, first)]
        total = sum((g * g).sum() for g in first if g is not None)
        if getattr(total, "requires_grad", False):
            second = library.autograd.grad(total, wanted, allow_unused=True)
            seconds = [np.zeros(x.shape) if g is None else g.detach().numpy() for x, g in zip(wanted, second)]
    return values, grads, seconds


def compare(make, seed, trials=TRIALS, second=True):
    """make(rng) gives (arrays, call(library, *tensors)); both libraries must agree, in refusals, too."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        arrays, call = make(rng)
        bases = [layouts(rng, a) if a.dtype.kind == "f" else (a, lambda x: x) for a in arrays]
        both = []
        for library in (ag, torch):
            try:
                both.append(outcome(library, call, bases, trial))
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                both.append(error)
        ours, theirs = both
        about = f"trial {trial}: shapes {[a.shape for a in arrays]}: {ours if isinstance(ours, Exception) else theirs}"
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), about
        if not isinstance(ours, Exception):
            for a, b in zip(ours if second else ours[:2], theirs):
                assert len(a) == len(b) or not b
                for x, y in zip(a, b):
                    close(x, y, 1e-9, 1e-9, about)


def sizes(rng, low=0, high=4, empty=0.1):
    return tuple(0 if rng.random() < empty else int(rng.integers(1, 5)) for _ in range(rng.integers(low, high + 1)))


def a_dim(rng, n):
    """A dimension number, now and then out of range."""
    n = max(n, 1)
    return int(rng.integers(-n - 1, n + 1)) if rng.random() < 0.05 else int(rng.integers(-n, n))


def dims(low, high, count, call):
    """Cases of one tensor whose call takes dimension numbers and small numbers."""
    def make(rng):
        shape = sizes(rng, low, high)
        numbers = [a_dim(rng, len(shape)) for _ in range(count)]
        small = [int(n) for n in rng.integers(-3, 4, 4)]
        return [rng.normal(size=shape)], lambda library, x: call(library, x, numbers, small)
    return make


def joined(name):
    def make(rng):
        shape = sizes(rng)
        return [rng.normal(size=shape) for _ in range(rng.integers(1, 4))], lambda library, *xs: getattr(library, name)(xs)
    return make


def cut(name):
    def make(rng):
        where = [1, 2, 3, (1,), (1, 2), (-1,), (2, 1), ()][rng.integers(8)]
        return [rng.normal(size=sizes(rng))], lambda library, x: getattr(library, name)(x, where)
    return make


def repeats(rng):
    shape = sizes(rng, 0, 3)
    counts = [int(n) for n in rng.integers(0, 4, max(0, len(shape) + rng.integers(-1, 3)))]
    return [rng.normal(size=shape)], lambda library, x: x.repeat(counts)


def pads(mode):
    def make(rng):
        k = rng.integers(1, 3)
        shape = sizes(rng, k + 1, k + 2, 0)
        pad = [int(n) for n in rng.integers(-1 if mode == "constant" else 0, 4, 2 * k)]
        return [rng.normal(size=shape)], lambda library, x: library.nn.functional.pad(x, pad, mode=mode)
    return make


def grids(rng):
    xs = [rng.normal(size=sizes(rng, 0, 1)) for _ in range(rng.integers(1, 4))]
    indexing = ["ij", "xy"][rng.integers(2)]
    return xs, lambda library, *xs: library.meshgrid(*xs, indexing=indexing)


def windows(rng):
    shape, d, size, step = sizes(rng, 1, 4), 0, int(rng.integers(0, 4)), int(rng.integers(1, 4))
    d = a_dim(rng, len(shape))
    return [rng.normal(size=shape)], lambda library, x: x.unfold(d, size, step)


def strided(rng):
    size = tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))
    stride, offset = tuple(int(n) for n in rng.integers(0, 4, len(size))), int(rng.integers(0, 3))
    return [rng.normal(size=sizes(rng, 1, 3, 0))], lambda library, x: (x.contiguous() * 1).as_strided(size, stride, offset)


CASES = {
    "flip": dims(1, 4, 2, lambda L, x, d, n: L.flip(x, d)),
    "roll": dims(1, 4, 2, lambda L, x, d, n: L.roll(x, n[:2], d)),
    "rot90": dims(2, 4, 2, lambda L, x, d, n: L.rot90(x, n[0], d)),
    "diagonal": dims(2, 4, 2, lambda L, x, d, n: L.diagonal(x, n[0], *d)),
    "diag": dims(0, 3, 0, lambda L, x, d, n: L.diag(x, n[0])),
    "diag_embed": dims(1, 3, 2, lambda L, x, d, n: L.diag_embed(x, n[0], *d)),
    "diagflat": dims(0, 2, 0, lambda L, x, d, n: L.diagflat(x, n[0])),
    "tril": dims(1, 4, 0, lambda L, x, d, n: L.tril(x, n[0])),
    "triu": dims(1, 4, 0, lambda L, x, d, n: L.triu(x, n[0])),
    "select": dims(0, 4, 1, lambda L, x, d, n: L.select(x, d[0], n[0])),
    "narrow": dims(0, 4, 1, lambda L, x, d, n: L.narrow(x, d[0], n[0], n[1])),
    "unbind": dims(0, 4, 1, lambda L, x, d, n: L.unbind(x, d[0])),
    "movedim": dims(0, 4, 2, lambda L, x, d, n: L.movedim(x, *d)),
    "movedim of several": dims(2, 4, 4, lambda L, x, d, n: L.movedim(x, d[:2], d[2:])),
    "swapdims": dims(0, 4, 2, lambda L, x, d, n: L.swapdims(x, *d)),
    "squeeze": dims(0, 4, 2, lambda L, x, d, n: L.squeeze(x, d)),
    "ravel": dims(0, 4, 0, lambda L, x, d, n: L.ravel(x)),
    "repeat_interleave": dims(1, 3, 1, lambda L, x, d, n: L.repeat_interleave(x, n[0] + 2, d[0])),
    "unflatten": dims(1, 3, 1, lambda L, x, d, n: x.unflatten(d[0], (-1, abs(n[0]) + 1))),
    "atleast_2d": dims(0, 3, 0, lambda L, x, d, n: L.atleast_2d(x)),
    "atleast_3d": dims(0, 3, 0, lambda L, x, d, n: L.atleast_3d(x, x)),
    "combinations": dims(1, 1, 0, lambda L, x, d, n: L.combinations(x, abs(n[0]), n[1] > 0)),
    "block_diag": dims(0, 2, 0, lambda L, x, d, n: L.block_diag(x, x)),
    "tile": dims(0, 3, 0, lambda L, x, d, n: L.tile(x, [abs(v) for v in n[:2]])),
    "repeat": repeats, "meshgrid": grids, "unfold": windows, "as_strided": strided,
    **{name: joined(name) for name in ("hstack", "vstack", "dstack", "column_stack")},
    "broadcast_tensors": lambda rng: ([rng.normal(size=s) for s in [(2, 1), (3,), ()][rng.integers(2):]], lambda L, *xs: L.broadcast_tensors(*xs)),
    **{name: cut(name) for name in ("tensor_split", "hsplit", "vsplit", "dsplit")},
    **{f"pad {mode}": pads(mode) for mode in ("constant", "reflect", "replicate", "circular")},
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_random_calls(name):
    compare(CASES[name], sum(map(ord, name)))


# ---- views

VIEWS = [
    lambda x: x.diagonal(), lambda x: x.unfold(0, 2, 1), lambda x: x.select(0, 1), lambda x: x.narrow(1, 0, 2), lambda x: x.unflatten(1, (2, 2)),
    lambda x: x.as_strided((2, 2), (1, 3)), lambda x: x.unbind(1)[0], lambda x: x.tensor_split(2)[1], lambda x: x.H, lambda x: x.ravel(),
    lambda x: x.moveaxis(0, 1), lambda x: ag.broadcast_tensors(x, x)[0], lambda x: ag.atleast_3d(x), lambda x: x[1], lambda x: x[1:3],
]


@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_views_share_memory(k):
    x = ag.zeros(4, 4)
    view = VIEWS[k](x)
    assert view._base is x
    version = x._version
    if k == 1:                                    # it overlaps itself
        x[...] = 1
        assert view.sum().item() == view.numel()
        return
    view[...] = 1
    assert x.sum().item() > 0
    assert x._version == view._version > version


@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_writing_to_a_view_rewrites_the_history_of_its_base(k):
    """The same numbers as when the base is put together anew; windows that overlap can be read after the base was changed."""
    x = leaf(np.linspace(-1.0, 1.0, 16).reshape(4, 4))
    base = x * 1
    view = VIEWS[k](base)
    if k == 1:                                    # an overlapping window can't be written, but sees what is written below it
        base.mul_(2)
        (view * view).sum().backward()
        counts = np.array([1.0, 2.0, 2.0, 1.0])[:, None]
        close(x.grad, 8 * array(x) * counts)
        return
    view.mul_(3)
    (base * base).sum().backward()
    inside = ag.zeros(4, 4, dtype=ag.float64)
    VIEWS[k](inside).fill_(1)
    close(x.grad, 2 * array(x) * np.where(array(inside) > 0, 9.0, 1.0))


def test_unfold_of_an_expanded_tensor():
    x = leaf([1.0, 2.0, 3.0])
    (x.expand(2, 3).unfold(1, 2, 1) * leaf([1.0, 10.0], grad=False)).sum().backward()
    close(x.grad, [2.0, 22.0, 20.0])


def test_as_strided_stays_in_its_storage():
    x = ag.arange(6.0)
    for size, stride, offset in [((7,), (1,), 0), ((2,), (6,), 0), ((2, 2), (5, 1), 0), ((2,), (-1,), 0), ((1,), (1,), 6), ((2,), (1 << 62,), 0),
                                 ((1 << 40,), (1,), 0), ((1,), (1,), -1)]:
        with pytest.raises((RuntimeError, ValueError, MemoryError)):
            x.as_strided(size, stride, offset)
    assert x[2:4].as_strided((2,), (1,)).tolist() == [2.0, 3.0]
    assert x[2:4].as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
    assert x.as_strided((3,), (-2,), 5).tolist() == [5.0, 3.0, 1.0]
    with pytest.raises(RuntimeError):
        ag.from_numpy(np.arange(6.0)[::-1][:3]).as_strided((6,), (1,), 0)
    y = leaf([1.0, 2.0, 3.0, 4.0])
    (y * 1)[1:3].as_strided((4,), (1,), 0).sum().backward()     # what lies outside of the input is constant for it
    close(y.grad, [0.0, 1.0, 1.0, 0.0])


def test_empty_windows_have_a_gradient_of_zeros():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    (x * 1).as_strided((3, 0, 1), (2, 0, 1), 1).sum().backward()
    close(x.grad, [0.0] * 4)


def test_in_place_views():
    x = leaf(np.arange(6.0).reshape(2, 3))
    y = x * 2
    assert y.t_() is y and y.shape == (3, 2)
    assert y.unsqueeze_(0).shape == (1, 3, 2)
    assert y.squeeze_().transpose_(0, 1).shape == (2, 3)
    y.t_()
    (y * ag.tensor(np.arange(6.0).reshape(3, 2))).sum().backward()
    close(x.grad, 2 * np.arange(6.0).reshape(3, 2).T)
    for refused in (x.t_, lambda: x.unsqueeze_(0), lambda: x.resize_(3, 2)):
        with pytest.raises(RuntimeError):
            refused()
    z = ag.arange(6)
    assert z.resize_(2, 3).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"resize_.*\(2, 3\).*\(7,\)"):
        z.resize_(7)


def test_errors_name_operation_and_shapes():
    x = ag.zeros(2, 3)
    for attempt, text in [
        (lambda: x.repeat(2), r"repeat.*\(2, 3\)"), (lambda: x.unflatten(1, (2, 2)), r"unflatten.*\(2, 3\)"),
        (lambda: x.unfold(0, 3, 1), r"unfold.*\(2, 3\)"), (lambda: F.pad(x, (1,)), r"pad.*\(2, 3\)"),
        (lambda: F.pad(x, (3, 0), mode="reflect"), r"pad.*reflect.*\(2, 3\)"), (lambda: ag.hsplit(x, 2), r"hsplit.*\(2, 3\)"),
        (lambda: ag.diagonal_scatter(x, ag.zeros(3)), r"diagonal_scatter.*\(2,\).*\(3,\)"), (lambda: ag.tril(ag.zeros(2)), r"tril.*\(2,\)"),
        (lambda: ag.broadcast_shapes((2,), (3,)), r"broadcast_shapes.*\(2,\) and \(3,\)"), (lambda: ag.flip(3, 0), "flip.*Tensor"),
    ]:
        with pytest.raises((RuntimeError, ValueError, TypeError), match=text):
            attempt()


def test_in_captures():
    x = leaf(np.arange(12.0).reshape(3, 4), grad=False)
    for function in (lambda x: x.roll(1, 1) + x.flip(0), lambda x: ag.tril(x, -1), lambda x: F.pad(x, (1, 2), value=3.0), lambda x: x.repeat(2, 1),
                     lambda x: x.unfold(1, 2, 1).sum(-1), lambda x: ag.rot90(x), lambda x: ag.diag_embed(x), lambda x: x.repeat_interleave(2, 0)):
        _, run = replayed(function, [x])
        other = x * 2 + 1
        close(run(other)[0], array(function(other)))


ATTRIBUTES = [      # a call, and what its node says of it
    (lambda x: x.view(3, -1, 2), {"shape": (3, 2, 2)}), (lambda x: x[0, 0].reshape(()), {"shape": ()}),
    (lambda x: x.permute(-1, 0), {"order": (1, 0)}), (lambda x: x.expand(2, -1, -1), {"shape": (2, 3, 4)}),
    (lambda x: x.select(-1, -2), {"dim": 1, "index": 2}), (lambda x: x.narrow(1, -3, 2), {"dim": 1, "start": 1, "length": 2}),
    (lambda x: x.diagonal(-1), {"offset": -1, "dim1": 0, "dim2": 1}), (lambda x: x.unfold(1, 3, 1), {"dimension": 1, "size": 3, "step": 1}),
    (lambda x: x.unbind(1)[2], {"count": 4, "dim": 1}), (lambda x: x.split((1, 3), 1)[1], {"sizes": (1, 3), "dim": 1}),
    (lambda x: ag.cat((x, x[:1])), {"sizes": (3, 1), "dim": 0}), (lambda x: ag.stack((x, x), -1), {"dim": 2}),
    (lambda x: x.flip(-1), {"dims": (1,)}), (lambda x: x.roll(-1, 1), {"shifts": (0, 3)}), (lambda x: x.repeat(2, 1, 1), {"counts": (2, 1, 1)}),
    (lambda x: x.repeat_interleave(2, -1), {"repeats": 2, "dim": 1}), (lambda x: x.tril(1), {"diagonal": 1, "lower": 1}),
    (lambda x: F.pad(x, (1, -2)), {"pads": (0, 0, 1, -2)}), (lambda x: F.pad(x, (1, 0), value=2.5), {"pads": (0, 0, 1, 0), "value": 2.5}),
    (lambda x: F.pad(x, (2, 1), mode="replicate"), {"dim": 1, "before": 2, "after": 1, "mode": 1}),
    (lambda x: ag.diag_embed(x, 1), {"shape": (3, 5, 5), "offset": 1, "dim1": 1, "dim2": 2}),
]


@pytest.mark.parametrize("k", range(len(ATTRIBUTES)))
def test_attributes_of_nodes(k):
    """They are kept as integers; the operation runs again from them, in a live graph and in a capture."""
    call, attributes = ATTRIBUTES[k]
    x = leaf(np.arange(1.0, 13.0).reshape(3, 4))
    y = call(x)
    assert y.grad_fn.attributes == y.grad_fn.attributes == attributes
    close(ag.graph.of(y * 2).run(x * 3), array(call(x * 3)) * 2)
    _, run = replayed(call, [x.detach()])
    close(run(x.detach() * 3)[0], array(call(x * 3)))


def test_sizes_in_other_forms():
    """What is no plain integer goes another way, to the same result."""
    x, two = leaf(np.arange(12.0).reshape(3, 4)), np.int64(2)
    for forms in ([lambda f: f(2, 6), lambda f: f((2, 6)), lambda f: f([2, 6]), lambda f: f(two, -1), lambda f: f((two, 6)), lambda f: f(*[2, 6]),
                   lambda f: f(ag.tensor(2), 6), lambda f: f(range(2, 7, 4)), lambda f: f(ag.zeros(2, 6).shape)],):
        for f in (x.reshape, x.view, lambda *sizes: ag.reshape(x, *sizes)):
            for form in forms:
                close(form(f), array(x).reshape(2, 6))
    for call in (lambda: x.permute((np.int64(1), 0)), lambda: x.permute([-1, -2]), lambda: ag.permute(x, (1, 0))):
        close(call(), array(x).T)
    for call in (lambda: x.expand(two, 3, 4), lambda: x.expand((2, -1, -1)), lambda: x.repeat(two, 1, 1), lambda: ag.tile(x, (2, 1, 1))):
        close(call(), np.stack((array(x), array(x))))
    close(x.flip(np.int64(1)), array(x)[:, ::-1])


def test_what_is_no_size():
    x = ag.zeros(3, 4)
    for f in (x.reshape, x.view, x.permute, x.expand, x.flip, x.repeat, x.tile, x.unsqueeze, x.roll, x.split, x.chunk, x.unbind):
        for args in ((2.5,), ("a",), (object(),), ((1, None),), (1 << 70,), (-(1 << 70),), (1 << 62, 1 << 62), ([[1]],)):
            if f == x.split and args == (1 << 62, 1 << 62):
                continue
            with pytest.raises((TypeError, RuntimeError, ValueError, IndexError, OverflowError, MemoryError)):
                f(*args)
    for f in (ag.reshape, ag.permute, ag.flip, ag.tile):
        for args in ((), (3, 4), (None, 4), ([1.0], 1)):
            with pytest.raises(TypeError):
                f(*args)
    with pytest.raises(MemoryError, match="out of memory"):
        ag.tensor_split(x, 1 << 62)
    wide = ag.zeros(1).expand(1 << 57)
    with pytest.raises(ValueError, match="cat"):
        ag.cat([wide] * 128)
    with pytest.raises((ValueError, MemoryError)):
        ag.stack([wide] * 128)


def test_as_many_dimensions_as_there_may_be():
    x = leaf(np.arange(4.0)).reshape([2] + [1] * 30 + [2])
    assert x.flip(0, -1).ndim == x.permute(list(range(31, -1, -1))).ndim == x.roll(1, 31).ndim == x.movedim(0, 31).ndim == 32
    for call in (lambda: x.unsqueeze(0), lambda: ag.stack((x, x)), lambda: x.expand([1, *x.shape]), lambda: x.repeat([2] * 33), lambda: ag.diag_embed(x),
                 lambda: x.unfold(0, 1, 1), lambda: x.reshape([1] * 33), lambda: ag.meshgrid(*[ag.zeros(1)] * 33)):
        with pytest.raises((RuntimeError, ValueError)):
            call()
    y = x.permute(list(range(31, -1, -1))).repeat([2] + [1] * 31)
    (y * y).sum().backward()
    assert ag.cat((x, x), 31).squeeze().shape == (2, 4)
    parts = leaf(np.arange(100.0)).split(1)           # more than have room on the stack
    ag.cat(parts[::-1]).sum().backward()
    assert len(ag.tensor_split(ag.zeros(5), 40)) == 40


def test_as_many_dimensions_in_a_replay():
    x = leaf(np.arange(4.0), grad=False).reshape([2] + [1] * 30 + [2])
    i = ag.tensor([0, 0])
    for f in (lambda x: x * 2, lambda x: x.reshape(4)[:1].reshape([1] * 32) * 3, lambda x: x[(i,) * 31]):
        compiled = ag.compile(f)
        for k in range(4):
            y = (x * k).requires_grad_()
            close(compiled(y), array(f(y)))


# ---- made anew

def test_creation_and_random_numbers():
    x = ag.zeros(2, 3, dtype=ag.float64)
    assert x.new_tensor([1, 2]).dtype == x.new_zeros(2, 2).dtype == x.new_full((2,), 3).dtype == ag.float64
    assert x.new_ones((2, 2)).tolist() == [[1.0, 1.0]] * 2
    assert x.new_empty(3, dtype=ag.int64).dtype == ag.int64
    close(ag.logspace(0, 2, 3, dtype=ag.float64), [1.0, 10.0, 100.0])
    assert ag.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert ag.tril_indices(3, 3).tolist() == [[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
    ag.manual_seed(3)
    draws = ag.multinomial(ag.tensor([[0.0, 3.0, 1.0], [1.0, 0.0, 0.0]]), 4000, replacement=True)
    assert draws.shape == (2, 4000) and draws[1].tolist() == [0] * 4000
    assert abs((draws[0] == 1).float().mean().item() - 0.75) < 0.03
    assert sorted(ag.multinomial(ag.tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]
    for attempt in (lambda: ag.multinomial(ag.tensor([1.0, 0.0]), 2), lambda: ag.multinomial(ag.tensor([-1.0, 2.0]), 1),
                    lambda: ag.multinomial(ag.zeros(2), 1), lambda: ag.normal(0.0, -1.0, (2,)), lambda: ag.poisson(ag.tensor([-1.0])),
                    lambda: x.exponential_(0), lambda: x.geometric_(1.5), lambda: x.random_(3, 3)):
        with pytest.raises(RuntimeError):
            attempt()
    many = ag.empty(20000, dtype=ag.float64)
    for fill, mean in [(lambda: many.exponential_(2), 0.5), (lambda: many.geometric_(0.25), 4.0), (lambda: many.bernoulli_(0.3), 0.3),
                       (lambda: many.random_(11), 5.0), (lambda: many.log_normal_(0.0, 0.5), np.exp(0.125)),
                       (lambda: many.cauchy_(2.0, 0.1).clamp_(0, 4), 2.0)]:
        fill()
        assert abs(many.mean().item() / mean - 1) < 0.05
    assert abs(ag.normal(ag.full((9000,), 3.0), 0.1).mean().item() - 3) < 0.01
    assert abs(ag.poisson(ag.full((9000,), 3.0)).mean().item() - 3) < 0.1
    assert set(ag.randint_like(many, 2).tolist()) == {0.0, 1.0}


def test_the_state_of_random_numbers():
    ag.manual_seed(5)
    assert ag.initial_seed() == 5
    state = ag.get_rng_state()
    first = ag.rand(3).tolist()
    with ag.random.fork_rng():
        ag.rand(7)
    second = ag.rand(3).tolist()
    ag.set_rng_state(state)
    assert [ag.rand(3).tolist(), ag.rand(3).tolist()] == [first, second]
    g = ag.Generator()
    assert g.initial_seed() == g.initial_seed()
    assert g.seed() == g.initial_seed() and ag.seed() == ag.initial_seed()


def test_draws_in_captures_are_drawn_anew():
    _, run = replayed(lambda w: ag.multinomial(w, 2) + ag.poisson(w[:2] * 0).long(), [ag.tensor([0.0, 1.0, 1.0])])
    assert sorted(run(ag.tensor([1.0, 1.0, 0.0]))[0].tolist()) == [0, 1]
    with pytest.raises(RuntimeError):
        run(ag.tensor([1.0, 0.0, 0.0]))


@pytest.mark.parametrize("shape", [(2,), (1, 2, 3), (2, 4)])
def test_a_sum_to_what_does_not_broadcast_is_refused(shape):
    """Rules may ask for it by mistake; it used to write beside the result."""
    with pytest.raises(ValueError, match="can't be summed to shape"):
        FUNCTIONS["sum_to"](ag.ones(2, 3), shape)


@pytest.mark.parametrize("make", [
    lambda: ag.block_diag(*[ag.ones(1).expand(2 ** 58)] * 64),
    lambda: ag.block_diag(*[ag.ones(0, 2 ** 57)] * 128, ag.ones(2, 2)),
    lambda: ag.ones(4).repeat_interleave(ag.tensor([2 ** 62] * 4)),
])
def test_sums_of_sizes_beyond_what_a_number_holds(make):
    with pytest.raises(ValueError, match="than a tensor can hold"):
        make()
