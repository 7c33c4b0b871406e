"""K.reduce against NumPy: kinds, dtypes, layouts and sets of dims; accuracy; special values; the same bits at every level.

Relies on raw.py. Nothing relies on it.
"""

import hashlib
import itertools
import math
import warnings

import numpy as np
import pytest
import raw
from scipy.special import logsumexp

FLOATS = ("f4", "f8")
ALL = ("f4", "f8", "i8", "i4", "u1", "?")
SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 0, 3), (150, 10), (10, 150), (7, 1, 9), (3, 5, 7), (2, 3, 4, 5), (300, 3), (3, 300),
          (2, 1100), (1100, 2), (40, 3, 40), (2, 2, 2, 2, 2, 2, 2)]


def layouts(rng, shape, dtype, near_one=False):
    """Arrays of this shape: contiguous, transposed, sliced, reversed, broadcast; near_one: products stay finite."""
    def data(s):
        if np.dtype(dtype).kind == "f":
            x = rng.normal(size=s)
            return np.array(np.copysign(np.exp(x / 50), x) if near_one else x).astype(dtype)
        return rng.integers(0, 2 if dtype == "?" else 5, s).astype(dtype)
    yield data(shape)
    yield data(shape[::-1]).T
    yield data(tuple(2 * n + 1 for n in shape))[(..., *(slice(1, 2 * n + 1, 2) for n in shape))]
    yield data(shape)[(..., *(slice(None, None, -1) for _ in shape))]
    if len(shape) >= 2:
        yield np.swapaxes(data((*shape[:-2], shape[-1], shape[-2])), -1, -2)
        yield np.broadcast_to(data((1, *shape[1:])), shape)
        yield np.broadcast_to(data((*shape[:-1], 1)), shape)


def dim_sets(ndim):
    sets = [s for k in range(ndim + 1) for s in itertools.combinations(range(ndim), k)]
    return sets if len(sets) <= 16 else sets[::7] + [sets[-1]]


def expected(kind, x, dims, param=0.0):
    w = x.astype("f8") if x.dtype.kind == "f" else x
    if kind in ("sum", "prod"):
        return getattr(np, kind)(w, axis=dims, dtype="f8" if x.dtype.kind == "f" else "i8")
    if kind in ("mean", "max", "min", "any", "all"):
        return getattr(np, kind)(w, axis=dims)
    if kind in ("argmax", "argmin"):
        kept = [d for d in range(x.ndim) if d not in dims]
        moved = np.transpose(x, kept + list(dims)).reshape([x.shape[d] for d in kept] + [math.prod(x.shape[d] for d in dims)])
        return getattr(np, kind)(moved, axis=-1)
    if kind == "var":
        n = np.prod([x.shape[d] for d in dims])
        m = w.mean(axis=dims, keepdims=True)
        return ((w - m) ** 2).sum(axis=dims) / np.float64(max(n - param, 0))
    if kind == "logsumexp":
        if any(x.shape[d] == 0 for d in dims):
            return w.sum(axis=dims) - np.inf
        return logsumexp(w, axis=dims) if dims and w.size else w.sum(axis=dims)
    a = np.abs(w)
    if a.size == 0:
        return a.sum(axis=dims)
    if param == 0:
        return (a != 0).sum(axis=dims).astype("f8")
    if np.isinf(param):
        return a.max(axis=dims) if param > 0 else a.min(axis=dims)
    return (a ** param).sum(axis=dims) ** (1 / param)


CASES = ([(k, d, 0.0) for k in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all") for d in ALL]
         + [(k, d, 0.0) for k in ("mean", "logsumexp") for d in FLOATS]
         + [("var", d, p) for d in FLOATS for p in (0.0, 1.0)]
         + [("norm", d, p) for d in FLOATS for p in (0.0, 1.0, 2.0, 3.0, 2.5, -1.0, np.inf, -np.inf)])


@pytest.mark.parametrize(("kind", "dtype", "param"), CASES)
def test_against_numpy(kind, dtype, param):
    rng = np.random.default_rng(1)
    rtol = (3e-5 if kind == "prod" else 2e-6) if dtype == "f4" else 1e-13 if dtype == "f8" else 0
    for shape in SHAPES:
        for x in layouts(rng, shape, dtype, kind == "prod"):
            for dims in dim_sets(len(shape)):
                if kind in ("max", "min", "argmax", "argmin") and any(x.shape[d] == 0 for d in dims):
                    continue
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = np.asarray(expected(kind, x, dims, param))
                got = raw.reduce(kind, x, dims, param)
                assert got.shape == want.shape
                scale = np.abs(x.astype("f8")).sum(axis=dims) if kind == "sum" else 1
                if got.dtype.kind == "f":
                    atol = rtol * (scale if kind == "sum" else np.sqrt(x.size))
                    close = (got == want) | (np.isnan(got) & np.isnan(want))
                    with np.errstate(invalid="ignore"):
                        close |= np.abs(got - want) <= np.maximum(atol, rtol * np.abs(want))
                    assert np.all(close), (shape, x.strides, dims, got, want)
                else:
                    np.testing.assert_array_equal(got, want, err_msg=f"{shape} {x.strides} {dims}")


def test_strided_output_is_written_once_per_kept_index():
    x = np.random.default_rng(2).normal(size=(6, 5, 4))
    for dims in ((0,), (1,), (2,), (0, 2)):
        shape = [n for d, n in enumerate(x.shape) if d not in dims]
        base = np.full([2 * n for n in shape], 7.0)
        out = base[tuple(slice(None, None, -2) for _ in shape)]
        raw.reduce("sum", x, dims, out=out)
        np.testing.assert_allclose(out, x.sum(axis=dims), rtol=1e-13)
        assert (base == 7.0).sum() == base.size - out.size


def test_thirty_two_dims():
    x = np.arange(2.0 ** 12).reshape((1, 2, 1) * 4 + (2,) * 8 + (1,) * 12)
    dims = tuple(range(0, 32, 3))
    np.testing.assert_array_equal(raw.reduce("sum", x, dims), x.sum(axis=dims))
    np.testing.assert_array_equal(raw.reduce("argmax", x, dims), expected("argmax", x, dims))


def test_seventeen_million_ones_are_exact_along_any_axis():
    n = 17_000_000
    ones = np.ones(n, "f4")
    assert raw.reduce("sum", ones) == n
    assert raw.reduce("mean", ones) == 1
    for shape, axis in (((n, 1), 0), ((n // 4, 4), 0), ((4, n // 4), 1), ((n // 100, 100), 0)):
        np.testing.assert_array_equal(raw.reduce("sum", ones.reshape(shape), (axis,)), np.float32(shape[axis]))
    one = np.ones((), "f4")
    assert raw.reduce("sum", np.broadcast_to(one, (n,))) == n
    np.testing.assert_array_equal(raw.reduce("sum", np.broadcast_to(one, (n, 3)), (0,)), n)
    np.testing.assert_array_equal(raw.reduce("sum", np.broadcast_to(one, (2, 3, n)).transpose(1, 2, 0), (1, 2)), 2 * n)
    assert raw.reduce("sum", np.ones(2 * n, "f4")[::2]) == n


def test_float32_sums_err_by_a_few_roundings():
    x = np.random.default_rng(3).random((1 << 20, 4), dtype="f4")
    for a in (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, axis=1)[:, ::2]):
        for d, b in ((0, a), (1, a.T)):
            got = raw.reduce("sum", b, (d,))
            want = b.sum(axis=d, dtype="f8")
            assert np.max(np.abs(got / want - 1)) < 2e-7


def test_sums_do_not_depend_on_alignment():
    x = np.random.default_rng(4).normal(size=5000).astype("f4")
    room = np.zeros(5100, "f4")
    for n in (3, 16, 100, 1000, 5000):
        results = set()
        for shift in range(17):
            room[shift:shift + n] = x[:n]
            results.add(raw.reduce("sum", room[shift:shift + n]).tobytes())
        assert len(results) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype):
    nan, inf = np.nan, np.inf

    def one(kind, values, param=0.0):
        results = []
        for n in (len(values), 40, 400):          # short, and long enough for each way of folding
            x = np.array(values * (n // len(values) if n > len(values) else 1), dtype)
            results.append(raw.reduce(kind, x, param=param))
            columns = np.repeat(x[:, None], 5, axis=1)
            results.extend(raw.reduce(kind, columns, (0,), param))
            results.extend(raw.reduce(kind, np.asfortranarray(columns), (0,), param))
        return results

    assert np.isnan(one("max", [1, nan, 2])).all()
    assert np.isnan(one("min", [nan, 1])).all()
    assert set(map(int, one("argmax", [1, nan, 3, nan]))) == {1}
    assert set(map(int, one("argmin", [3, 1, 1, 2]))) == {1}
    assert set(map(int, one("argmax", [-inf, -inf]))) == {0}
    assert (np.array(one("logsumexp", [-inf, -inf])) == -inf).all()
    assert (np.array(one("logsumexp", [1, inf, 2])) == inf).all()
    assert np.isnan(one("logsumexp", [1, nan, inf])).all()
    big = np.finfo(dtype).max / 2
    tiny = np.finfo(dtype).tiny
    for scale in (big, tiny, 1.0):
        x = np.full((3, 4), scale / 8, dtype)
        np.testing.assert_allclose(raw.reduce("norm", x, (1,), 2.0), scale / 4, rtol=1e-6)
        np.testing.assert_allclose(raw.reduce("norm", x.T, (0,), 2.0), scale / 4, rtol=1e-6)
        np.testing.assert_allclose(raw.reduce("norm", np.ascontiguousarray(x.T), (0,), 2.0), scale / 4, rtol=1e-6)
    mixed = np.array([[0, 0], [big, big], [1, 2], [inf, 1], [nan, 1]], dtype)
    want = [0, big * 2 ** 0.5, 5 ** 0.5, inf, nan]
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(raw.reduce("norm", mixed, (1,), 2.0), np.array(want, dtype), rtol=1e-6)
        np.testing.assert_allclose(raw.reduce("norm", np.ascontiguousarray(mixed.T), (0,), 2.0), np.array(want, dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nothing_to_reduce(dtype):
    for x, dims in ((np.zeros((0,), dtype), (0,)), (np.zeros((3, 0), dtype), (1,)), (np.zeros((0, 3), dtype), (0,))):
        for kind, want in (("sum", 0), ("prod", 1), ("mean", np.nan), ("var", np.nan), ("any", False), ("all", True),
                           ("logsumexp", -np.inf), ("norm", 0)):
            for param in (0.0, 1.0, 2.0, np.inf) if kind == "norm" else (0.0,):
                np.testing.assert_array_equal(raw.reduce(kind, x, dims, param), want)


def test_integers_are_exact_and_wrap():
    x = np.array([2 ** 62, 2 ** 62, 2 ** 62, 5])
    with np.errstate(over="ignore"):
        assert raw.reduce("sum", x) == x.sum()
        assert raw.reduce("prod", x) == x.prod()
    x = np.full(100_000, 2 ** 31 - 1, "i4")
    assert raw.reduce("sum", x) == x.sum(dtype="i8")
    assert raw.reduce("max", np.array([-5, -3], "i4")) == -3
    assert raw.reduce("min", np.array([200, 250], "u1")) == 200


DIGEST = """
import raw, test_reduce
print(test_reduce.digest())
"""


def digest():
    """Of many results, float and double; the same at every level."""
    h = hashlib.sha256()
    rng = np.random.default_rng(5)
    for dtype in FLOATS:
        for shape in ((5,), (60,), (1000,), (10_000,), (150, 10), (70, 300), (9, 8, 7)):
            for x in layouts(rng, shape, dtype):
                for kind in ("sum", "mean", "prod", "max", "min", "var", "logsumexp", "norm"):
                    for dims in dim_sets(len(shape)):
                        h.update(raw.reduce(kind, x, dims, 2.0).tobytes())
    return h.hexdigest()


def test_same_bits_at_every_level():
    assert {raw.at_level(level, DIGEST).strip() for level in raw.LEVELS} == {digest()}
