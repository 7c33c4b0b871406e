"""Sorting, selecting, scans and what is composed of them: special values, ties, promotion, errors, gradients, replays.

Relies on autograd_cy's public names and on test_values_in_captures (`replayed`). tests/samples.py has the plain values and derivatives.
"""

import math

import numpy as np
import pytest
from test_values_in_captures import gradients, outcome, replayed, tuple_of

import autograd_cy as ag
from autograd_cy.array.errors import CaptureError

NAN, INF = math.nan, math.inf
ODD = [1.0, NAN, -0.0, INF, 0.0, 1.0, -INF, NAN, 0.0]
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")


def values(t):
    return t.tolist()


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# ---- order


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 64, 65, 300, 4095, 5000])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_at_every_length(dtype, n, descending):
    rng = np.random.default_rng(n)
    x = rng.integers(0, max(2, n // 3), n) - (n // 6 if dtype not in ("uint8", "bool") else 0)
    x = x.astype(dtype)
    order = np.argsort(-x.astype("f8") if descending else x, kind="stable")
    result = ag.tensor(x).sort(descending=descending)
    same(result.indices, order)
    same(result.values, x[order])
    same(ag.argsort(ag.tensor(x), 0, descending), order)
    half = n // 2
    same(ag.topk(ag.tensor(x), half, largest=descending).indices, order[:half])
    same(ag.topk(ag.tensor(x), n // 20, largest=descending).indices, order[: n // 20])
    if n and not descending:
        for k in {1, (n + 1) // 2, n}:
            assert ag.tensor(x).kthvalue(k).indices.item() == order[k - 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("times", [1, 40, 600])
def test_nan_is_largest_and_zeros_are_equal(dtype, times):
    x = ag.tensor(ODD * times, dtype=getattr(ag, dtype))
    n = len(ODD)
    nans, zeros = [i for i in range(n * times) if i % n in (1, 7)], [i for i in range(n * times) if i % n in (2, 4, 8)]
    up, down = x.sort(), x.sort(descending=True)
    assert values(up.indices)[-2 * times:] == nans
    assert values(down.indices)[: 2 * times] == nans
    assert values(up.indices)[times: 4 * times] == zeros
    assert math.copysign(1, up.values[times].item()) == -1                # the zeros keep their signs
    assert [math.copysign(1, v) for v in values(up.values[times: 4 * times])] == [-1.0, 1.0, 1.0] * times
    assert x.topk(1).indices.item() == 1
    assert x.topk(1, largest=False).values.item() == -INF
    assert math.isnan(x.kthvalue(n * times).values.item())
    assert x.median(0).indices.item() == 1
    assert x.nanmedian(0).values.item() == 0.0


def test_median_and_mode():
    assert ag.tensor([4.0, 1.0, 3.0, 2.0]).median().item() == 2.0
    assert math.isnan(ag.tensor([1.0, NAN]).median().item())
    assert ag.tensor([1.0, NAN, 3.0]).nanmedian().item() == 1.0
    assert math.isnan(ag.tensor([NAN, NAN]).nanmedian().item())
    assert math.isnan(ag.tensor([]).median().item())
    found = ag.tensor([3, 1, 2, 1, 3]).mode()
    assert (found.values.item(), found.indices.item()) == (1, 3)
    assert ag.tensor(5.0).mode().values.item() == 5.0
    assert ag.zeros(0, 3).median(1).values.shape == (0,)
    same(ag.tensor([[1, 2, 2], [3, 3, 1]]).mode(1, True).values, [[2], [3]])


def test_numbers_without_dims():
    x = ag.tensor(2.5, requires_grad=True)
    for f in (lambda x: x.cumsum(0), lambda x: x.cumprod(-1), lambda x: x.cummax(0).values, lambda x: x.sort().values,
              lambda x: x.topk(1).values, lambda x: x.kthvalue(1).values, lambda x: x.median(0).values, lambda x: x.mode().values,
              lambda x: x.logcumsumexp(0), lambda x: x.quantile(0.5), lambda x: x.nansum(), lambda x: x.median()):
        y = f(x)
        assert y.shape == ()
        assert y.item() == 2.5
        assert ag.autograd.grad(y, x)[0].item() == 1.0


# ---- scans


@pytest.mark.parametrize(("dtype", "expected"), [("bool", "int64"), ("uint8", "int64"), ("int32", "int64"), ("int64", "int64"),
                                                 ("float32", "float32")])
def test_promotion(dtype, expected):
    x = ag.ones(3, 2).to(getattr(ag, dtype))
    assert x.cumsum(0).dtype.name == x.cumprod(0).dtype.name == expected
    assert values(x.cumsum(0)) == [[1, 1], [2, 2], [3, 3]]
    assert x.cumsum(0, dtype=ag.float64).dtype is ag.float64
    assert x.cummax(0).values.dtype.name == dtype
    if dtype != "bool":
        x.cumsum_(0)
        assert x.dtype.name == dtype
        assert values(x[:, 0]) == [1, 2, 3]
    assert ag.ones(3, dtype=ag.int64).logcumsumexp(0).dtype is ag.float32


def test_running_extremes_return_the_latest_of_equals():
    x = ag.tensor([1.0, 3.0, 3.0, 2.0, NAN, 5.0, NAN, 1.0])
    assert values(x.cummax(0).indices) == [0, 1, 2, 2, 4, 4, 6, 6]
    assert values(x.cummin(0).indices) == [0, 0, 0, 0, 4, 4, 6, 6]
    leaf = ag.tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
    leaf.cummax(0).values.sum().backward()
    assert values(leaf.grad) == [1.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_scans_of_columns_are_those_of_rows(name, dtype):
    rng = np.random.default_rng(0)
    a = rng.integers(-3 if dtype != "uint8" else 0, 4, (7, 5, 300)).astype(dtype)
    if dtype.startswith("float"):
        a[rng.uniform(size=a.shape) < 0.05] = NAN
    x = ag.tensor(a)
    for axis, view in [(0, x), (1, x), (1, x[:, :, 3:290]), (0, x.transpose(1, 2)), (2, x.transpose(0, 2))]:
        rows = getattr(ag, name)(view.movedim(axis, -1).contiguous(), -1)
        columns = getattr(ag, name)(view, axis)
        for r, c in zip(*((v if isinstance(v, tuple) else (v,)) for v in (rows, columns)), strict=True):
            assert c.movedim(axis, -1).contiguous().numpy().tobytes() == r.numpy().tobytes()
    if name == "cumprod" and dtype.startswith("float"):           # the recurrence of its gradient
        grads = []
        for axis in (0, -1):
            leaf = ag.tensor(a if axis == 0 else np.ascontiguousarray(np.moveaxis(a, 0, -1)), requires_grad=True)
            leaf.cumprod(axis).sum().backward()
            grads.append(leaf.grad.numpy() if axis == 0 else np.moveaxis(leaf.grad.numpy(), -1, 0))
        assert np.array_equal(*grads, equal_nan=True)


def test_logcumsumexp_with_infinities():
    x = ag.tensor([-INF, -INF, 1.0, INF, 2.0], requires_grad=True, dtype=ag.float64)
    y = x.logcumsumexp(0)
    assert values(y) == [-INF, -INF, 1.0, INF, INF]
    for i, expected in enumerate([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]]):
        assert values(ag.autograd.grad(y[i], x, retain_graph=True)[0]) == expected
    assert ag.tensor([1000.0, 1000.0]).logcumsumexp(0)[1].item() == pytest.approx(1000 + math.log(2))


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_gradients_of_products_with_zeros_are_exact(zeros):
    numbers = [2.0, -3.0, 0.5, 4.0, -1.5]
    x = ag.tensor([0.0 if i in zeros else v for i, v in enumerate(numbers)], requires_grad=True, dtype=ag.float64)
    weights = ag.tensor([1.0, 2.0, -1.0, 0.5, 3.0], dtype=ag.float64)
    first, = ag.autograd.grad((x.cumprod(0) * weights).sum(), x, create_graph=True)
    second = [ag.autograd.grad(first[i], x, retain_graph=True)[0] for i in range(5)]
    v = values(x)
    for i in range(5):
        for j in range(5):
            both = [w * math.prod(v[k] for k in range(n + 1) if k not in (i, j))
                    for n, w in enumerate(values(weights)) if n >= max(i, j)] if i != j else []
            assert second[i][j].item() == pytest.approx(sum(both), abs=1e-12)
        assert first[i].item() == pytest.approx(sum(
            w * math.prod(v[k] for k in range(n + 1) if k != i) for n, w in enumerate(values(weights)) if n >= i), abs=1e-12)


def test_a_wide_scan_over_the_first_dim():
    """Columns are carried side by side, in blocks."""
    x = np.random.default_rng(0).normal(size=(3, 5, 700)).astype("f4")
    for t, a in ((ag.tensor(x), x), (ag.tensor(x)[:, :, ::2], x[:, :, ::2]), (ag.tensor(x).transpose(0, 1), x.swapaxes(0, 1))):
        for dim in (0, 1, 2):
            np.testing.assert_allclose(t.cumsum(dim), np.cumsum(a.astype("f8"), dim), rtol=1e-5, atol=1e-5)
            same((t > 0).cumsum(dim), np.cumsum(a > 0, dim))


# ---- gradients of what selects


def test_selected_gradients_go_to_the_index_and_are_shared_by_the_median_of_all():
    numbers = [[2.0, 1.0, 2.0], [5.0, 5.0, 5.0]]
    for f, expected in [
        (lambda x: x.median(1).values, [[1, 0, 0], [0, 1, 0]]),
        (lambda x: x.kthvalue(3, 1).values, [[0, 0, 1], [0, 0, 1]]),
        (lambda x: x.topk(2, 1).values, [[1, 0, 1], [1, 1, 0]]),
        (lambda x: x.mode(1).values, [[0, 0, 1], [0, 0, 1]]),
        (lambda x: x.sort(0).values[:1], [[1, 1, 1], [0, 0, 0]]),
        (lambda x: x.median(), [[0.5, 0, 0.5], [0, 0, 0]]),
    ]:
        x = ag.tensor(numbers, requires_grad=True)
        f(x).sum().backward()
        assert values(x.grad) == expected
    x = ag.tensor([NAN, 1.0, 2.0, 2.0], requires_grad=True)
    x.nanmedian().backward()
    assert values(x.grad) == [0.0, 0.0, 0.5, 0.5]
    x = ag.tensor([NAN, 1.0, INF], requires_grad=True)
    x.nansum().backward()
    assert values(x.grad) == [0.0, 1.0, 1.0]


def test_indices_changed_afterwards_are_found_out():
    x = ag.rand(5).requires_grad_()
    y, i = x.sort()
    i[0] = 3
    with pytest.raises(RuntimeError, match="in place|changed|modified"):
        y.sum().backward()
    y, i = x.max(0)
    i.numpy()[...] = 10**12                       # behind our back
    with pytest.raises(IndexError, match="overwritten"):
        y.backward()


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_shapes_of_quantiles(dim, keepdim):
    x, several = ag.rand(2, 3, 4), ag.tensor([0.0, 0.5])
    assert x.quantile(several, dim, keepdim).shape == np.quantile(x.numpy(), [0.0, 0.5], axis=dim, keepdims=keepdim).shape
    assert x.quantile(several[1], dim, keepdim).shape == np.quantile(x.numpy(), 0.5, axis=dim, keepdims=keepdim).shape
    assert x.quantile(several[:0], dim, keepdim).shape == (0, *x.quantile(0.5, dim, keepdim).shape)
    assert ag.tensor(2.0).quantile(0.3, 0, True).item() == 2.0
    np.testing.assert_array_equal(x.transpose(0, 2).quantile(0.3, 0).numpy(), x.quantile(0.3, 2).numpy().T)


def test_equal_neighbours_share_the_gradient_of_a_quantile():
    x = ag.tensor([1.0, 2.0, 2.0, 3.0], requires_grad=True)
    y = x.quantile(0.5)
    y.backward()
    assert y.item() == 2.0
    assert values(x.grad) == [0.0, 0.5, 0.5, 0.0]
    assert ag.tensor([-INF, INF, INF]).quantile(0.75).item() == INF
    assert math.isnan(ag.tensor([1.0, NAN]).quantile(0.0).item())
    assert ag.tensor([1.0, NAN]).nanquantile(1.0).item() == 1.0
    assert math.isnan(ag.tensor([NAN]).nanquantile(0.5).item())


# ---- distinct values and counts


def test_unique():
    x = ag.tensor([[3, 1], [2, 3]])
    found, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values(found), values(inverse), values(counts)) == ([1, 2, 3], [[2, 0], [1, 2]], [1, 1, 2])
    assert len(ag.tensor([NAN, 1.0, NAN, 0.0, -0.0]).unique()) == 4
    rows = ag.tensor([[2, 1], [1, 2], [2, 1]])
    found, inverse, counts = rows.unique(dim=0, return_inverse=True, return_counts=True)
    assert (values(found), values(inverse), values(counts)) == ([[1, 2], [2, 1]], [1, 0, 1], [1, 2])
    found, inverse, counts = ag.unique_consecutive(ag.tensor([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True)
    assert (values(found), values(inverse), values(counts)) == ([1, 2, 1], [0, 0, 1, 1, 2], [2, 2, 1])
    found, counts = ag.unique_consecutive(rows, dim=1, return_counts=True)
    assert (values(found), values(counts)) == ([[2, 1], [1, 2], [2, 1]], [1, 1])
    for name in ("unique", "unique_consecutive"):
        empty = getattr(ag, name)(ag.zeros(0), return_inverse=True, return_counts=True)
        assert [t.shape for t in empty] == [(0,)] * 3
        assert getattr(ag, name)(ag.zeros(0, 3), dim=0).shape == (0, 3)


def test_counting():
    x = ag.tensor([1, 3, 1])
    assert values(x.bincount()) == [0, 2, 0, 1]
    assert values(x.bincount(minlength=6)) == [0, 2, 0, 1, 0, 0]
    weighted = x.bincount(ag.tensor([0.5, 1.0, 2.0]))
    assert (values(weighted), weighted.dtype) == ([0.0, 2.5, 0.0, 1.0], ag.float32)
    assert x.bincount(x).dtype is ag.float64
    assert values(ag.tensor([], dtype=ag.int64).bincount(minlength=2)) == [0, 0]
    assert values(ag.tensor([1.0, NAN, 2.5, 9.0, 4.0]).histc(4, 0, 4)) == [0.0, 1.0, 1.0, 1.0]
    assert values(ag.tensor([1.0, 2.0, 3.0]).histc(4, 2, 2)) == [1.0, 0.0, 1.0, 1.0]
    hist, edges = ag.tensor([1.0, 2.0, 3.0]).histogram(3, range=(0.0, 3.0), weight=ag.tensor([1.0, 2.0, 0.5]), density=True)
    np.testing.assert_allclose(hist, np.array([0, 1, 2.5]) / 3.5, rtol=1e-6)
    assert values(edges) == [0.0, 1.0, 2.0, 3.0]
    assert values(ag.tensor([1.0, 2.0, 3.0]).histogram(ag.tensor([3.0, 1.0, 2.0])).hist)[0] >= 0     # edges in any order: no crash
    assert values(ag.tensor([3e38, -3e38]).histogram(2).hist) is not None                            # the width overflows: no crash


def test_searching():
    row = ag.tensor([1, 3, 3, 5])
    assert values(ag.searchsorted(row, ag.tensor([0, 3, 6]))) == [0, 1, 4]
    assert values(ag.searchsorted(row, ag.tensor([0, 3, 6]), right=True)) == [0, 3, 4]
    assert ag.searchsorted(row, 3.5).item() == 3
    assert ag.bucketize(3, row, right=True, out_int32=True).dtype is ag.int32
    order = ag.tensor([1, 2, 0, 3])
    assert values(ag.searchsorted(ag.tensor([3, 1, 3, 5]), ag.tensor([2, 4]), sorter=order)) == [1, 3]
    with pytest.raises(IndexError, match="sorter"):
        ag.searchsorted(row, ag.tensor([2]), sorter=ag.tensor([0, 1, 2, 7]))
    rows = ag.tensor([[1.0, 2.0], [5.0, 6.0]])
    assert values(ag.searchsorted(rows, ag.tensor([[1.5], [1.5]]))) == [[1], [0]]
    assert values(ag.searchsorted(ag.tensor([1.0, 2.0]), ag.tensor([NAN]))) == [2]
    assert values(ag.isin(ag.tensor([1, 2, 3]), ag.tensor([3, 1, 1]))) == [True, False, True]
    assert values(ag.isin(ag.tensor([1.0, NAN]), ag.tensor([NAN, 2.0]))) == [False, False]
    assert ag.isin(2, ag.tensor([1, 2])).item() is True
    assert ag.argwhere(ag.tensor(3.0)).shape == (1, 0)


# ---- errors


X = ag.rand(3, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.cumsum(), TypeError, "dim is required"),
        (lambda: X.cumsum(2), IndexError, "cumsum: dim 2"),
        (lambda: X.sort(5), IndexError, "sort: dim 5"),
        (lambda: X.topk(5), RuntimeError, "topk: k = 5 .* shape"),
        (lambda: X.topk(-1), RuntimeError, "topk: k = -1"),
        (lambda: X.topk(2**70), OverflowError, None),
        (lambda: X.kthvalue(0), RuntimeError, "kthvalue: k = 0"),
        (lambda: X.kthvalue("a"), TypeError, None),
        (lambda: ag.zeros(0, 3).median(0), RuntimeError, "median: dimension 0 of shape"),
        (lambda: ag.zeros(3, 0).mode(1), RuntimeError, "mode: dimension 1"),
        (lambda: ag.zeros(0, dtype=ag.int64).median(), RuntimeError, "empty"),
        (lambda: X.quantile(1.5), RuntimeError, r"range \[0, 1\]"),
        (lambda: X.quantile(ag.tensor([0.5, 1.5])), RuntimeError, r"range \[0, 1\]"),
        (lambda: X.quantile(ag.tensor([NAN])), RuntimeError, r"range \[0, 1\]"),
        (lambda: X.quantile(0.5, interpolation="up"), RuntimeError, "interpolation"),
        (lambda: X.quantile(ag.tensor([0.5], dtype=ag.float64)), RuntimeError, "dtype"),
        (lambda: X.long().quantile(0.5), RuntimeError, "floating-point"),
        (lambda: ag.zeros(0).quantile(0.5), RuntimeError, "empty"),
        (lambda: X.long().nanmean(), RuntimeError, "floating-point"),
        (lambda: ag.bincount(ag.tensor([-1])), RuntimeError, "non-negative"),
        (lambda: ag.bincount(ag.tensor([[1]])), RuntimeError, "1-d"),
        (lambda: ag.bincount(ag.tensor([1]), minlength=-1), RuntimeError, "minlength"),
        (lambda: ag.bincount(ag.tensor([1]), ag.rand(2)), RuntimeError, "shape"),
        (lambda: ag.bincount(X[0]), RuntimeError, "integers"),
        (lambda: X.histc(0), RuntimeError, "bins"),
        (lambda: X.histc(3, 2, 1), RuntimeError, "larger"),
        (lambda: ag.tensor([1.0, INF]).histc(), RuntimeError, "finite"),
        (lambda: ag.searchsorted(X, ag.rand(2, 4)), RuntimeError, "do not fit"),
        (lambda: ag.searchsorted(X[0], ag.tensor([1])), RuntimeError, "dtype"),
        (lambda: ag.searchsorted(X[0], 1.0, right=True, side="left"), RuntimeError, "side"),
        (lambda: ag.bucketize(X, X), RuntimeError, "one dimension"),
        (lambda: ag.tensor(1.0).diff(), RuntimeError, "at least one dimension"),
        (lambda: X.diff(-1), RuntimeError, "non-negative"),
        (lambda: ag.trapezoid(X, ag.rand(3)), RuntimeError, "points"),
        (lambda: ag.zeros(0, 3).unique(dim=1), RuntimeError, "empty dimension"),
        (lambda: ag.sort([1, 2]), TypeError, "Tensor"),
        (lambda: ag.isin(1, 2), TypeError, "Tensor"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("dim", [0, 1])
def test_areas_of_many_elements(dim):
    """More than one routine takes: by sums."""
    y, x = (np.random.default_rng(seed).normal(size=(70, 80)) for seed in (1, 2))
    a, b = ag.tensor(y, requires_grad=True), ag.tensor(x, requires_grad=True)
    few = ag.trapezoid(a[:30, :30], b[:30, :30], dim=dim)
    many = ag.trapezoid(a, b, dim=dim)
    assert few.grad_fn.operation == "area_at" != many.grad_fn.operation
    np.testing.assert_allclose(few.detach().numpy(), np.trapezoid(y[:30, :30], x[:30, :30], axis=dim), rtol=1e-12)
    np.testing.assert_allclose(many.detach().numpy(), np.trapezoid(y, x, axis=dim), rtol=1e-12)
    np.testing.assert_allclose(ag.trapezoid(a, dx=2, dim=dim).detach().numpy(), np.trapezoid(y, dx=2, axis=dim), rtol=1e-12)
    np.testing.assert_allclose(ag.cumulative_trapezoid(a, b, dim=dim).select(dim, -1).detach().numpy(), many.detach().numpy(), rtol=1e-11)
    slopes = ag.autograd.grad(many.sum(), (a, b))
    later = ag.autograd.grad(ag.cumulative_trapezoid(a, b, dim=dim).select(dim, -1).sum(), (a, b))
    for one, other in zip(slopes, later, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)


# ---- captures

ROW, OTHER = (ag.tensor(np.random.default_rng(seed).normal(size=(6, 7)).astype("f4")) for seed in (1, 2))
HOLES = ag.where(OTHER > 0.7, NAN, OTHER)
STEPS = {
    "sort": lambda x: x.sort(0, True).values * 2,
    "argsort": lambda x: x.argsort(1),
    "topk": lambda x: x.topk(3)[0],
    "kthvalue": lambda x: x.kthvalue(2, 0)[0],
    "median": lambda x: x.median() + x.median(1)[0].sum(),
    "nanmedian": lambda x: x.nanmedian(1)[0],
    "mode": lambda x: x.mode(1).values,
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "cummax": lambda x: x.cummax(1).values + x.cummin(0).values,
    "quantile": lambda x: x.quantile(0.3, 1),
    "nanquantile": lambda x: x.nanquantile(0.3, 0),
    "nansum": lambda x: x.nansum(1),
    "nanmean": lambda x: x.nanmean(),
    "count_nonzero": lambda x: x.count_nonzero(1),
    "searchsorted": lambda x: ag.searchsorted(x.detach().sort(1)[0], x.detach()),
    "histc": lambda x: x.histc(5, -2, 2),
    "histogram": lambda x: x.histogram(4, range=(-1.0, 1.0)).hist,
    "isin": lambda x: ag.isin(x.detach().round(), ag.tensor([0.0, 1.0])),
    "diff": lambda x: x.diff(2, 1),
    "trapezoid": lambda x: ag.trapezoid(x, dim=0),
    "cumulative_trapezoid": lambda x: ag.cumulative_trapezoid(x, dx=0.1),
    "max": lambda x: x.max(1)[0],
    "in place": lambda x: (x * 1).cumsum_(1),
}


@pytest.mark.parametrize("name", STEPS)
def test_replays_follow_the_values(name):
    step = STEPS[name]
    differentiable = step(ROW.clone().requires_grad_()).requires_grad
    for function in (step, gradients(step)) if differentiable else (step,):
        captured, run = replayed(function, [ROW])
        for x in (ROW, OTHER, HOLES):
            expected = outcome(function, 0, [x])
            assert [r.numpy().tobytes() for r in run(x)] == expected
        assert [r.detach().numpy().tobytes() for r in captured] == outcome(function, 0, [ROW])
        assert tuple_of(captured)


@pytest.mark.parametrize("name", ["unique", "unique_consecutive", "argwhere"])
def test_sizes_that_depend_on_values_are_refused(name):
    with pytest.raises(CaptureError):
        replayed(lambda x: getattr(ag, name)(x), [ROW])
    with pytest.raises(CaptureError):
        replayed(lambda x: ag.bincount(x), [ag.tensor([1, 2])])
    with pytest.raises(CaptureError):
        replayed(lambda x: x.histc(3), [ROW])
