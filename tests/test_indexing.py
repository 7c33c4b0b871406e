"""Indices: random keys against NumPy and PyTorch, read, written and differentiated; scatter and its family; embedding.

Relies on autograd_cy's public names, tests/numeric.py, test_shapes.compare, and PyTorch where it is installed; nothing relies on it.
"""

import numpy as np
import pytest
from numeric import array, close, leaf
from test_shapes import compare, sizes
from test_values_in_captures import replayed

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F

# ---- keys


def an_array(rng, n):
    shape = [(1,), (2,), (3,), (2, 1), (1, 3), (0,)][rng.integers(6)]
    return rng.integers(-n, n, shape)


def a_key(rng, shape):
    """A random key without what NumPy and PyTorch see differently: a number beside arrays, an Ellipsis of nothing between them."""
    arrays = rng.random() < 0.6
    key, axis = [], 0
    while axis < len(shape):
        n, kind = shape[axis], rng.random()
        if kind < 0.1:
            key.append(None)
        elif kind < 0.2 and not arrays and Ellipsis not in key:
            key.append(Ellipsis)
            axis += int(rng.integers(0, len(shape) - axis + 1))
        elif kind < 0.3:
            break
        elif kind < 0.5 and not arrays:
            key.append(int(rng.integers(-n, n)))
            axis += 1
        elif kind < 0.7 or not arrays:
            start, stop = ([None, *range(-n - 1, n + 2)][rng.integers(2 * n + 4)] for _ in range(2))
            key.append(slice(start, stop, [None, 1, 2, -1, -2][rng.integers(5)]))
            axis += 1
        elif kind < 0.8 and axis + 1 < len(shape):
            key.append(rng.random(shape[axis:axis + 2]) < 0.5)
            axis += 2
        elif kind < 0.87:
            key.append(rng.random(n) < 0.5)
            axis += 1
        elif kind < 0.93:
            key.append(an_array(rng, n).reshape(-1).tolist() or [0])
            axis += 1
        else:
            key.append(an_array(rng, n))
            axis += 1
    return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


def ours(rng, key):
    """The same key with tensors for some of the arrays."""
    if isinstance(key, tuple):
        return tuple(ours(rng, k) for k in key)
    return ag.tensor(key) if isinstance(key, np.ndarray) and rng.random() < 0.7 else key


@pytest.mark.parametrize("seed", range(6))
def test_random_keys_against_numpy(seed):
    rng = np.random.default_rng(seed)
    for _ in range(250):
        shape = sizes(rng, 1, 4, 0)
        x, key = rng.normal(size=shape), a_key(rng, shape)
        places = np.arange(x.size).reshape(shape)
        mine = ours(rng, key)
        try:
            right = x[key]
        except IndexError:
            with pytest.raises(IndexError):
                leaf(x)[mine]
            continue
        t = leaf(x)
        result = t[mine]
        assert np.array_equal(array(result), right), (shape, key)
        weights = rng.normal(size=np.shape(right))
        (result * ag.tensor(weights)).sum().backward()
        expected = np.zeros(x.size)
        np.add.at(expected, places[key].ravel(), weights.ravel())
        close(t.grad, expected.reshape(shape), what=str((shape, key)))
        # written: the last of duplicates stays, and has the gradient of what is read there
        value, base, v = rng.normal(size=np.shape(right)), ag.tensor(x), None
        copy = x.copy()
        copy[key] = value
        v, y = leaf(value), leaf(x)
        base = y * 1
        base[mine] = v
        assert np.array_equal(array(base), copy), (shape, key)
        outer = rng.normal(size=shape)
        (base * ag.tensor(outer)).sum().backward()
        last = np.full(x.size, -1)
        last[places[key].ravel()] = np.arange(value.size)
        stays = np.isin(np.arange(value.size), last).reshape(value.shape)
        close(v.grad, np.where(stays, outer[key], 0), what=str((shape, key)))
        close(y.grad, np.where(last.reshape(shape) >= 0, 0, outer))
        # augmented assignment reads once and writes once
        a, b = x.copy(), ag.tensor(x)
        a[key] += 1.5
        b[mine] += 1.5
        assert np.array_equal(array(b), a), (shape, key)


def test_keys_that_make_no_sense():
    x = ag.zeros(3, 4)
    for key in (3, -4, (0, 4), (0, 0, 0), [3], [[0, 1], [0, -5]], np.array([7]), ag.tensor([0, 3]), (slice(None), [4]), np.zeros(4, bool),
                np.zeros((3, 3), bool), 1.0, "a", (0, "a"), ag.zeros(2), np.zeros(2), [1.5], (Ellipsis, Ellipsis), (..., 0, ...), {}, 2**70,
                [2**70], slice(0, 2, 0), ([0, 1], [0, 1, 2])):
        with pytest.raises((IndexError, TypeError, ValueError, OverflowError)):
            x[key]
        with pytest.raises((IndexError, TypeError, ValueError, OverflowError)):
            x[key] = 1.0
    assert x.sum().item() == 0
    for value in (ag.zeros(5), np.zeros((2, 2)), "a", [1.0, 2.0, 3.0]):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            x[0:2] = value


# ---- indices along one dimension, against PyTorch

def an_index(rng, shape, d):
    q = [int(rng.integers(1, max(n, 1) + 1)) if n else 0 for n in shape]
    if q:
        q[d] = int(rng.integers(1, 6)) if shape[d] else 0
    return rng.integers(0, max(shape[d] if shape else 1, 1), q)


def gather(rng):
    shape = sizes(rng, 0, 4)
    d = int(rng.integers(-max(len(shape), 1), max(len(shape), 1)))
    return [rng.normal(size=shape), an_index(rng, shape, d)], lambda L, x, i: L.gather(x, d, i)


def scattering(method, *more, ties=False):
    def make(rng):
        shape = sizes(rng, 0, 3, 0)
        d = int(rng.integers(-max(len(shape), 1), max(len(shape), 1)))
        index = an_index(rng, shape, d)
        x, v = (rng.integers(-2, 3, s).astype("f8") if ties else rng.normal(size=s) for s in (shape, index.shape))
        return [x, index, v], lambda L, x, i, v: getattr(x * 1, method)(d, i, v, *more)
    return make


def whole_slices(method, unique=False, number=None):
    def make(rng):
        shape = sizes(rng, 1, 4, 0)
        d = int(rng.integers(-len(shape), len(shape)))
        index = rng.permutation(shape[d])[:rng.integers(0, shape[d] + 1)] if unique else rng.integers(0, shape[d], rng.integers(0, 5))
        full = list(shape)
        full[d] = len(index)
        if method == "index_select":
            return [rng.normal(size=shape), index], lambda L, x, i: x.index_select(d, i)
        if number is not None:
            return [rng.normal(size=shape), index, rng.normal(size=())], lambda L, x, i, v: getattr(x * 1, method)(d, i, v)
        return [rng.normal(size=shape), index, rng.normal(size=full)], lambda L, x, i, v: getattr(x * 1, method)(d, i, v)
    return make


def flat(method):
    def make(rng):
        shape = sizes(rng, 1, 3, 0)
        n = int(np.prod(shape))
        index = rng.integers(-n, n, sizes(rng, 0, 2))
        if method == "take":
            return [rng.normal(size=shape), index], lambda L, x, i: L.take(x, i)
        return [rng.normal(size=shape), index, rng.normal(size=index.shape)], lambda L, x, i, v: (x * 1).put_(i, v, accumulate=True)
    return make


def masks(method):
    def make(rng):
        shape = sizes(rng, 0, 3)
        mask = rng.random(tuple(1 if rng.random() < 0.2 else n for n in shape)) < 0.5
        if method == "masked_select":
            return [rng.normal(size=shape), mask], lambda L, x, m: L.masked_select(x, m)
        return [rng.normal(size=shape), mask, rng.normal(size=int(np.prod(shape)) + 1)], lambda L, x, m, v: x.masked_scatter(m, v)
    return make


def accumulated(rng):
    shape = sizes(rng, 1, 3, 0)
    k, q = int(rng.integers(1, len(shape) + 1)), sizes(rng, 0, 2, 0)
    index = [rng.integers(-n, n, q) for n in shape[:k]]
    value = [(*q, *shape[k:]), (), shape[k:]][rng.integers(3)]
    return [rng.normal(size=shape), rng.normal(size=value), *index], lambda L, x, v, *i: (x * 1).index_put_(i, v, accumulate=True)


def looked_up(rng):
    rows, columns = (int(n) for n in rng.integers(1, 5, 2))
    padding = [None, int(rng.integers(-rows, rows))][rng.integers(2)]
    return [rng.normal(size=(rows, columns)), rng.integers(0, rows, sizes(rng, 0, 3, 0))], \
        lambda L, w, i: L.nn.functional.embedding(i, w, padding_idx=padding)


CASES = {
    "gather": gather, "scatter_add": scattering("scatter_add"), "scatter_add_": scattering("scatter_add_"),
    **{f"scatter_reduce {r}": scattering("scatter_reduce", r) for r in ("sum", "prod", "mean", "amax", "amin")},
    "scatter_reduce_ with ties": scattering("scatter_reduce_", "amax", ties=True), "index_select": whole_slices("index_select"),
    "index_add": whole_slices("index_add"), "index_add_": whole_slices("index_add_"), "index_copy": whole_slices("index_copy", True),
    "index_copy_": whole_slices("index_copy_", True), "index_fill": whole_slices("index_fill", True, 1), "index_fill_": whole_slices("index_fill_", True, 1),
    "take": flat("take"), "put_": flat("put_"), "masked_select": masks("masked_select"), "masked_scatter": masks("masked_scatter"),
    "index_put_": accumulated, "embedding": looked_up,
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_random_calls(name):
    compare(CASES[name], sum(map(ord, name)))


def test_of_duplicates_the_last_has_the_gradient():
    for write in (lambda x, v: ag.scatter(x, 0, ag.tensor([0, 2, 0]), v), lambda x, v: (x * 1).scatter_(0, ag.tensor([0, 2, 0]), v),
                  lambda x, v: x.index_copy(0, ag.tensor([0, 2, 0]), v), lambda x, v: x.index_put((ag.tensor([0, 2, 0]),), v)):
        x, v = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
        y = write(x, v)
        assert y.tolist() == [6.0, 2.0, 5.0]
        (y * ag.tensor([1.0, 10.0, 100.0])).sum().backward()
        assert v.grad.tolist() == [0.0, 100.0, 1.0]
        assert x.grad.tolist() == [0.0, 10.0, 0.0]
    value = leaf(2.0)
    ag.zeros(3, dtype=ag.float64).index_fill(0, ag.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 1.0


def test_products_with_zeros():
    """First and second derivatives of a product by an index are those of the plain product."""
    for zeros in ([], [0], [0, 2], [0, 1, 3]):
        numbers = np.array([2.0, 3.0, -1.5, 0.5])
        numbers[zeros] = 0
        both = []
        for product in (lambda x: ag.ones(1, dtype=ag.float64).scatter_reduce(0, ag.zeros(4, dtype=ag.int64), x, "prod").sum(),
                        lambda x: x[0] * x[1] * x[2] * x[3]):
            x = leaf(numbers)
            (g,) = ag.autograd.grad(product(x), x, create_graph=True)
            (h,) = ag.autograd.grad((g * ag.tensor([1.0, 2.0, 3.0, 4.0])).sum(), x)
            both.append((array(g), array(h)))
        close(both[0][0], both[1][0])
        close(both[0][1], both[1][1])


def test_writing_into_itself():
    x = ag.arange(6.0)
    x.scatter_(0, ag.tensor([1, 2, 3]), x[:3])
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 4.0, 5.0]
    i = ag.tensor([2, 0, 1])
    i.index_copy_(0, i, i * 10)
    assert i.tolist() == [0, 10, 20]
    with pytest.raises(RuntimeError, match="expanded"):
        ag.zeros(1).expand(3).scatter_(0, ag.tensor([0]), 1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf([1.0, 2.0]).index_add_(0, ag.tensor([0]), leaf([1.0]))
    y = leaf([1.0, 2.0]) * 1
    z = y.exp()
    y.index_fill_(0, ag.tensor([0]), 0.0)
    assert y._version == 1
    z.sum().backward()                          # exp keeps its result, not what was overwritten


def test_errors_name_operation_and_shapes():
    x, i = ag.zeros(2, 3), ag.tensor([[0, 1]])
    for attempt, kind, text in [
        (lambda: x[(True,) * 40], IndexError, "index has at most 32 arrays"),
        (lambda: x.gather(0, ag.tensor([[0, 5]])), IndexError, "gather: index 5 .* dim 0 of size 2"),
        (lambda: x.scatter(1, ag.tensor([[0, -1]]), 1.0), IndexError, "scatter: index -1 .* dim 1 of size 3"),
        (lambda: x.gather(0, ag.zeros(2, 2)), TypeError, "gather.*int64"), (lambda: x.gather(0, ag.tensor([0])), ValueError, r"gather.*\(1,\).*\(2, 3\)"),
        (lambda: x.scatter(0, i, ag.zeros(1, 1)), ValueError, r"scatter.*\(1, 2\).*\(1, 1\)"),
        (lambda: x.scatter(0, i, ag.zeros(1, 2, dtype=ag.float64)), RuntimeError, "scatter.*dtype"),
        (lambda: x.index_add(0, ag.tensor([0]), ag.zeros(2, 3)), ValueError, r"index_add.*\(2, 3\)"),
        (lambda: x.index_select(0, i), IndexError, r"index_select.*\(1, 2\)"), (lambda: x.scatter_reduce(0, i, ag.zeros(1, 2), "max"), RuntimeError, "scatter_reduce"),
        (lambda: ag.masked_select(x, i), RuntimeError, "masked_select.*bool"), (lambda: F.embedding(ag.tensor([2]), x), IndexError, "index 2"),
        (lambda: F.embedding(ag.tensor([0]), x, sparse=True), RuntimeError, "sparse"), (lambda: F.embedding(ag.tensor([0]), x, 2), ValueError, "padding_idx"),
    ]:
        with pytest.raises(kind, match=text):
            attempt()


def test_in_captures():
    x, i = leaf(np.arange(12.0).reshape(4, 3), grad=False), ag.tensor([[0, 1, 3], [3, 3, 2]])
    for function in (lambda x, i: x.gather(0, i), lambda x, i: x.scatter(0, i, x[:2]), lambda x, i: x.scatter_add(0, i, x[:2] * 2),
                     lambda x, i: x.scatter_reduce(0, i, x[:2], "amax"), lambda x, i: x.index_select(0, i[0]) + x[i[0]],
                     lambda x, i: x.index_add(0, i[0], x[:3]), lambda x, i: (x * 1).index_copy_(0, i[1], x[:3]), lambda x, i: F.embedding(i, x)):
        _, run = replayed(function, [x, i])
        others = x * 3 + 1, ag.tensor([[3, 2, 0], [1, 1, 2]])
        close(run(*others)[0], array(function(*others)))
        with pytest.raises(IndexError):
            run(x, i + 9)


def test_gradients_in_captures():
    i = ag.tensor([0, 2, 2])

    def step(x, v):
        x, v = x.detach().requires_grad_(), v.detach().requires_grad_()
        y = x * 1
        y[i] = v
        y.scatter_(0, i, v * 2)
        return ag.autograd.grad((y * y * x).sum(), (x, v))

    given = leaf([1.0, 2.0, 3.0], grad=False), leaf([4.0, 5.0, 6.0], grad=False)
    _, run = replayed(step, given)
    others = given[0] * 2, given[1] - 1
    for a, b in zip(run(*others), step(*others)):
        close(a, array(b))


def test_embedding_layer():
    ag.manual_seed(0)
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0, 0.0]
    out = layer(ag.tensor([[0, 1], [1, 4]]))
    assert out.shape == (2, 2, 3)
    out.sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [3.0, 0.0, 0.0, 0.0, 3.0]
    assert "Embedding(5, 3, padding_idx=1)" in repr(layer)
    table = nn.Embedding.from_pretrained(ag.tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    assert not table.weight.requires_grad
    close(table(ag.tensor([0, 1, 0])), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], 1e-6)
    close(table.weight, [[0.6, 0.8], [0.3, 0.4]], 1e-6)
    by_use = nn.Embedding(3, 1, scale_grad_by_freq=True)
    by_use(ag.tensor([0, 2, 2, 2])).sum().backward()
    assert by_use.weight.grad.tolist() == [[1.0], [0.0], [1.0]]
    with pytest.raises(RuntimeError, match="sparse"):
        nn.Embedding(2, 2, sparse=True)


@pytest.mark.parametrize(("value", "places"), [(True, [0]), (False, [])])
def test_positions_in_a_tensor_without_dimensions(value, places):
    found, = ag.where(ag.tensor(value))
    assert found.tolist() == places
    assert [t.tolist() for t in ag.nonzero(ag.tensor(value), as_tuple=True)] == [places]
    assert tuple(ag.nonzero(ag.tensor(value)).shape) == (len(places), 0)
