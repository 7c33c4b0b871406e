"""Finite differences and comparisons for the tests, written independently of the library's own gradcheck.

Relies on autograd_cy's public names and NumPy.  The gradient tests rely on it.
"""

import numpy as np

import autograd_cy as ag

EPS = 1e-6


def array(t):
    """A tensor's numbers, as an array of its own."""
    return np.array(t.detach().numpy())


def close(actual, expected, rtol=1e-9, atol=1e-12, what=""):
    """Same shape and two-sided closeness; NaN equals NaN; infinities equal with their sign."""
    actual = array(actual) if hasattr(actual, "detach") else np.asarray(actual)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    np.testing.assert_allclose(actual.astype("f8"), expected.astype("f8"), rtol=rtol, atol=atol, equal_nan=True, err_msg=what)


def same_bytes(a, b):
    """Equal to the last bit, the sign of zero and NaN included."""
    if a is None or b is None:
        return a is b
    a, b = array(a), array(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def leaf(a, dtype=None, grad=True):
    """A leaf tensor of these numbers (float64 unless an array or dtype says otherwise)."""
    a = np.asarray(a, dtype=dtype or (None if isinstance(a, np.ndarray) else "f8"))
    return ag.tensor(a).requires_grad_(grad)


def numbers_of(f, weights, *arrays):
    """weight * output for every element of every output, computed without gradients."""
    with ag.no_grad():
        outs = f(*[ag.tensor(a) for a in arrays])
        return np.concatenate([np.ravel(array(o) * w) for o, w in zip(outs, weights, strict=True)])


def differences(values, arrays, k, eps=EPS):
    """Central differences of sum(values(*arrays)) in every element of arrays[k]; subtracted before they are summed."""
    base = [np.array(a) for a in arrays]
    out = np.zeros(base[k].shape)
    for i in np.ndindex(*base[k].shape):
        old = base[k][i]
        base[k][i] = old + eps
        up = values(*base)
        base[k][i] = old - eps
        down = values(*base)
        base[k][i] = old
        out[i] = np.sum(up - down) / (2 * eps)
    return out
