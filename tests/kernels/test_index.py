"""The indexing kernels against NumPy: offsets, gather, scatter, scatter-add, positions of non-zero elements.

Relies on the test-only probe and strided.py.  Nothing relies on it.
"""

import numpy as np
import pytest
from strided import DTYPES, KINDS, address, array, random_shape, strides_of

probe = pytest.importorskip("autograd_cy.kernels._probe_strided", reason="built in place only", exc_type=ImportError)


def offsets_of(indices, dims, strides):
    n = len(indices[0])
    out = np.empty(n, np.intp)
    bad, _ = probe.index_offsets(n, [address(i) for i in indices], list(dims), list(strides), address(out))
    return bad, out


def test_index_offsets():
    rng = np.random.default_rng(0)
    dims, strides = (7, 3, 11), (33, -11, 1)
    indices = [rng.integers(-d, d, 100).astype(np.int64) for d in dims]
    bad, out = offsets_of(indices, dims, strides)
    assert bad == -1
    np.testing.assert_array_equal(out, sum((i % d) * s for i, d, s in zip(indices, dims, strides, strict=True)))


@pytest.mark.parametrize("value", [7, -8, 2**62, -2**63, 2**63 - 1])
def test_index_out_of_range_reports_the_first(value):
    for at, also in ((0, 99), (50, 70), (99, 99)):
        indices = [np.zeros(100, np.int64) for _ in range(3)]
        indices[2][at] = value
        indices[0][also] = value
        assert offsets_of(indices, (7, 7, 7), (49, 7, 1))[0] == at


def test_index_into_an_empty_dim():
    assert offsets_of([np.zeros(1, np.int64)], (0,), (1,))[0] == 0
    assert offsets_of([np.zeros(0, np.int64)], (0,), (1,))[0] == -1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["gather", "scatter", "scatter_add"])
def test_moves(kind, dtype):
    rng = np.random.default_rng(2)
    code = DTYPES.index(dtype)
    for _ in range(60):
        inner = random_shape(rng, small=True)[:4]
        if rng.random() < 0.4:
            inner = (int(rng.integers(1, 200)),)
        lead = tuple(int(s) for s in rng.integers(1, 6, int(rng.integers(1, 3))))
        n = int(rng.integers(0, 30))
        x = array(rng, lead + inner, dtype, str(rng.choice(KINDS[:5])), writable=True)
        index = tuple(rng.integers(-s, s, n).astype(np.int64) for s in lead)
        steps = strides_of(x)
        bad, offsets = offsets_of(index, lead, steps[:len(lead)])
        assert bad == -1
        other = array(rng, (n, *inner), dtype, "plain")
        expected = x.copy()
        if kind == "gather":
            probe.move(kind, code, x.itemsize, n, address(offsets), list(inner), steps[len(lead):], address(x), address(other))
            np.testing.assert_array_equal(other, expected[index])
            continue
        probe.move(kind, code, x.itemsize, n, address(offsets), list(inner), steps[len(lead):], address(other), address(x))
        for j in range(n):                     # slices, so that uint8 wraps around in silence
            at = (*(slice(i[j] % s, i[j] % s + 1) for i, s in zip(index, lead, strict=True)), ...)
            expected[at] = other[j] if kind == "scatter" else expected[at] + other[j]
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype):
    rng = np.random.default_rng(4)
    code = DTYPES.index(dtype)
    for _ in range(40):
        shape = random_shape(rng)
        x = array(rng, shape, dtype, str(rng.choice(KINDS[:5])), writable=True)
        x[rng.random(shape) < 0.5] = 0
        count = probe.count_nonzero(code, list(shape), address(x), strides_of(x))
        assert count == np.count_nonzero(x)
        if shape:
            out = np.empty((count, len(shape)), np.int64)
            probe.nonzero(code, list(shape), address(x), strides_of(x), address(out))
            np.testing.assert_array_equal(out, np.argwhere(x))


def test_nonzero_special_values():
    x = np.array([np.nan, -0.0, 0.0, np.inf, 1e-45], np.float32)
    assert probe.count_nonzero(0, [5], address(x), [1]) == 3
    assert probe.count_nonzero(0, [3], address(x[:1]), [0]) == 3      # a repeated value
