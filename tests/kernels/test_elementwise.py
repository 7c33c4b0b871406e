"""The strided driver and the copy kernel against NumPy, over random shapes, strides and itemsizes.

Relies on the test-only probe and strided.py.  Nothing relies on it.
"""

import numpy as np
import pytest
from strided import DTYPES, KINDS, address, array, random_shape, strides_of

probe = pytest.importorskip("autograd_cy.kernels._probe_strided", reason="built in place only", exc_type=ImportError)

REALS = (np.float32, np.float64)


def run(name, dtype, out, *inputs, attr=0.0):
    operands = [(address(x), None if x.ndim == 0 else strides_of(x), x.itemsize) for x in (out, *inputs)]
    probe.elementwise(name, REALS.index(dtype), list(out.shape), operands, attr)


def reference(name, inputs, attr):
    if name == "add":
        return inputs[0] + inputs[1]
    if name == "sub":
        return inputs[0] - inputs[1]
    if name == "less":
        return inputs[0] < inputs[1]
    if name == "where":
        return np.where(*inputs)
    return inputs[0] * inputs[0].dtype.type(attr)


def check(rng, name, dtype, shape, out_kind, kinds):
    out = array(rng, shape, np.uint8 if name == "less" else dtype, out_kind, writable=True)
    guard = out.base.copy() if out.base is not None else None
    types = [np.uint8, dtype, dtype] if name == "where" else [dtype] * len(kinds)
    inputs = [array(rng, shape, t, k) for t, k in zip(types, kinds, strict=True)]
    if name == "where":
        inputs[0] = array(rng, shape, np.bool_, kinds[0])
    run(name, dtype, out, *inputs, attr=1.5)
    expected = reference(name, inputs, 1.5)
    np.testing.assert_array_equal(out, expected)
    if guard is not None and out.size:          # nothing was written between the elements of the output
        inside = out.copy()
        out[...] = 7
        written = out.base.copy()
        out[...] = 9
        untouched = written == out.base
        out[...] = inside
        np.testing.assert_array_equal(out.base[untouched], guard[untouched])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["add", "sub", "scale", "less", "where"])
def test_random_tables(name, seed):
    rng = np.random.default_rng(seed)
    nin = {"scale": 1, "where": 3}.get(name, 2)
    for _ in range(40):
        dtype = REALS[int(rng.integers(2))]
        kinds = [str(rng.choice(KINDS)) for _ in range(nin)]
        check(rng, name, dtype, random_shape(rng), str(rng.choice(KINDS[:5])), kinds)


@pytest.mark.parametrize("shape", [(1024, 1024), (100, 64), (67, 131), (16, 65), (5, 4, 200), (3, 257, 2, 70), (300, 7)])
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", ["add", "sub", "less", "where"])
def test_transposed_operands(name, dtype, shape):
    rng = np.random.default_rng(1)
    out = np.empty(shape, np.uint8 if name == "less" else dtype)
    inputs = [rng.integers(0, 2, shape[::-1]).astype(np.uint8).T] if name == "where" else []
    inputs += [rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[::-1]).astype(dtype).T]
    run(name, dtype, out, *inputs)
    np.testing.assert_array_equal(out, reference(name, inputs, 0))


def test_null_strides_are_single_values():
    a = np.arange(2000, dtype=np.float32).reshape(50, 40)
    b = np.array(3, np.float32)
    mask = np.array(1, np.uint8)
    for out, x in ((np.empty_like(a), a), (np.empty((40, 50), np.float32).T, a), (np.empty((50, 80), np.float32)[:, ::2], a)):
        run("sub", np.float32, out, x, b)
        np.testing.assert_array_equal(out, x - b)
        run("sub", np.float32, out, b, x)
        np.testing.assert_array_equal(out, b - x)
        run("sub", np.float32, out, b, b)
        np.testing.assert_array_equal(out, np.zeros_like(a))
        run("where", np.float32, out, mask, x, b)
        np.testing.assert_array_equal(out, x)
        run("where", np.float32, out, mask, b, b)
        np.testing.assert_array_equal(out, np.full_like(a, 3))
        run("scale", np.float32, out, b, attr=2.0)
        np.testing.assert_array_equal(out, np.full_like(a, 6))


@pytest.mark.parametrize("kind", KINDS[:5])
def test_in_place(kind):
    rng = np.random.default_rng(5)
    for shape in ((), (7,), (3000,), (150, 3), (70, 80), (2, 3, 4, 5), (40, 100)):
        x = array(rng, shape, np.float32, kind, writable=True)
        before = x.copy()
        y = array(rng, shape, np.float32, "broadcast")
        run("sub", np.float32, x, x, y)
        np.testing.assert_array_equal(x, before - y)
        before = x.copy()
        run("add", np.float32, x, x, x)
        np.testing.assert_array_equal(x, before + before)


def test_more_dims_than_numpy_is_asked_for():
    shape = (2,) * 14
    rng = np.random.default_rng(3)
    x, y = (array(rng, shape, np.float64, k) for k in ("mixed", "transposed"))
    out = np.empty(shape)
    run("sub", np.float64, out, x, y)
    np.testing.assert_array_equal(out, x - y)


def copy(out, x):
    probe.copy(list(out.shape), DTYPES.index(out.dtype), address(out), strides_of(out), DTYPES.index(x.dtype), address(x),
               strides_of(x))


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", DTYPES)
def test_copy(of, to):
    rng = np.random.default_rng(11)
    for _ in range(25):
        shape = random_shape(rng)
        x = array(rng, shape, of, str(rng.choice(KINDS)))
        if to is np.uint8 and np.dtype(of).kind in "fi":
            x = np.abs(x)
        if to is np.uint8:
            x = np.where(x < 200, x, x.dtype.type(1)) if x.dtype != np.bool_ else x
        out = array(rng, shape, to, str(rng.choice(KINDS[:5])), writable=True)
        copy(out, x)
        np.testing.assert_array_equal(out, x.astype(to))


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_transposed(dtype):
    rng = np.random.default_rng(12)
    for shape in ((100, 70), (64, 64), (17, 9), (3, 50), (2, 40, 60), (1000, 5)):
        x = array(rng, shape[::-1], dtype, "plain").T
        out = np.empty(shape, dtype)
        copy(out, x)
        np.testing.assert_array_equal(out, x)
        back = np.empty(shape[::-1], dtype).T
        copy(back, out)
        np.testing.assert_array_equal(back, x)


def test_casts_of_special_values():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, -1e30, 2.9, -2.9, 1e-45], np.float32)
    out = np.empty(10, np.bool_)
    copy(out, x)
    np.testing.assert_array_equal(out.view(np.uint8), [1, 1, 1, 0, 0, 1, 1, 1, 1, 1])
    for dtype in (np.int64, np.int32):
        whole = np.empty(10, dtype)
        copy(whole, x)
        assert list(whole[3:5]) == [0, 0]
        assert list(whole[7:]) == [2, -2, 0]
    copy(np.empty(10, np.uint8), x)
