"""Calls of raw kernels on NumPy arrays, through autograd_cy.kernels._probe.

Relies on NumPy and the probe. The tests of this folder rely on it.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from autograd_cy.kernels import table

_probe = pytest.importorskip("autograd_cy.kernels._probe", reason="built in place only", exc_type=ImportError)

CODES = {np.dtype(t): i for i, t in enumerate(("f4", "f8", "i8", "i4", "u1", "?"))}
KINDS = ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "var", "logsumexp", "norm")
LEVELS = ("base", "v3", "v4")[:table.cpu_level() + 1]


def address(a):
    return 0 if a is None else a.ctypes.data


def elements(a):
    return [s // a.itemsize for s in a.strides]


def out_dtype(kind, dtype):
    if kind in ("any", "all"):
        return np.dtype(bool)
    if kind in ("argmax", "argmin") or (kind in ("sum", "prod") and dtype.kind != "f"):
        return np.dtype("i8")
    return dtype


def reduce(kind, x, dims=None, param=0.0, repeat=1, timed=False, out=None):
    """x reduced over dims (all by default) by K.reduce; the nanoseconds of one call if timed."""
    dims = range(x.ndim) if dims is None else [d % x.ndim for d in dims]
    kept = [d for d in range(x.ndim) if d not in dims]
    if out is None:
        out = np.full([x.shape[d] for d in kept], 77, out_dtype(kind, x.dtype))
    strides = [0] * x.ndim
    for d, s in zip(kept, elements(out), strict=True):
        strides[d] = s
    ns = _probe.reduce(KINDS.index(kind), CODES[x.dtype], list(x.shape), address(x), elements(x), address(out), strides,
                       param, repeat)
    return ns if timed else out


def at_level(level, code):
    """What `code` prints in a process that runs the kernels of one instruction-set level."""
    env = {**os.environ, "AUTOGRAD_CY_LEVEL": level,
           "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout
