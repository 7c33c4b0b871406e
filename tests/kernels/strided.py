"""Random arrays of every stride for the kernel tests, and how the probe wants to see them.

Relies on NumPy and the probe, without which the tests are skipped.  test_elementwise.py and test_index.py rely on it.
"""

import numpy as np
import pytest

probe = pytest.importorskip("autograd_cy.kernels._probe_strided", reason="built in place only", exc_type=ImportError)

DTYPES = [np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_]      # by dtype code
KINDS = ("plain", "transposed", "sliced", "reversed", "mixed", "scalar", "broadcast")


def strides_of(x):
    return [s // x.itemsize for s in x.strides]


def address(x):
    return x.ctypes.data


def values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array(rng.random(shape) < 0.5)
    if dtype.kind == "f":
        return np.array(rng.standard_normal(shape) * 100, dtype)
    return np.array(rng.integers(-100 if dtype.kind == "i" else 0, 100, shape)).astype(dtype)


def array(rng, shape, dtype, kind, writable=False):
    """An array of this shape whose strides are of this kind."""
    n = len(shape)
    if kind == "scalar" and not writable:
        return np.broadcast_to(values(rng, (), dtype), shape)
    if kind == "broadcast" and not writable:
        kept = tuple(1 if rng.random() < 0.5 else s for s in shape)
        return np.broadcast_to(array(rng, kept, dtype, rng.choice(KINDS[:5])), shape)
    if kind == "transposed":
        order = rng.permutation(n)
        return values(rng, tuple(shape[d] for d in order), dtype).transpose(np.argsort(order))
    if kind == "sliced":
        steps = [int(rng.integers(1, 4)) for _ in shape]
        base = values(rng, tuple(s * t for s, t in zip(shape, steps, strict=True)), dtype)
        return base[(..., *(slice(None, None, t) for t in steps))]
    if kind == "reversed":
        return values(rng, shape, dtype)[(..., *[slice(None, None, -1)] * n)]
    if kind == "mixed":
        order = rng.permutation(n)
        steps = [int(rng.choice([-3, -2, -1, 1, 2])) for _ in shape]
        base = values(rng, tuple(shape[d] * abs(steps[d]) for d in order), dtype).transpose(np.argsort(order))
        return base[(..., *(slice(None, None, t) for t in steps))]
    return values(rng, shape, dtype)


def random_shape(rng, small=False):
    n = int(rng.integers(0, 7))
    if n and not small and rng.random() < 0.3:      # long dims: several blocks, and bands
        shape = [int(rng.integers(1, 4)) for _ in range(n)]
        shape[int(rng.integers(n))] = int(rng.integers(1, 3000))
        shape[int(rng.integers(n))] = int(rng.integers(1, 150))
    else:
        shape = [int(rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 9], p=[.02, .14, .14, .15, .15, .1, .1, .1, .1]))
                 for _ in range(n)]
    while np.prod(shape, dtype=float) > 30000:
        shape[int(np.argmax(shape))] //= 3
    return tuple(shape)
