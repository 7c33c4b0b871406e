"""Matrix products against NumPy, for every kind of transposition, odd shapes, long rows, and each instruction-set level.

Relies on kernels._probe (its entries that take memory addresses).  Run as a script, it checks the small products at the level
that AUTOGRAD_CY_LEVEL names, which is how the tests reach levels other than the one in use.
"""

import ctypes
import itertools
import mmap
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from autograd_cy import kernels
from autograd_cy.kernels import LEVELS, table
from autograd_cy.kernels.gemm import get_num_threads, set_num_threads

_probe = pytest.importorskip("autograd_cy.kernels._probe", reason="built in place only", exc_type=ImportError)

CODES = {"float32": 0, "float64": 1, "int64": 2, "int32": 3, "uint8": 4}
FLAGS = list(itertools.product((False, True), repeat=2))
SIZES = (1, 2, 3, 4, 5, 8, 10, 17, 50)
MORE_SHAPES = [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 0), (150, 10, 4), (150, 3, 10), (4, 10, 150), (10, 3, 150),
               (9, 70, 3), (6, 33, 7), (15, 16, 15), (7, 7, 33), (50, 3, 40), (50, 2, 35),
               (2, 129, 6), (3, 11, 300), (5, 2, 600), (2, 50, 517), (1, 7, 20001), (7, 1, 20001), (64, 128, 256)]


def stored(rng, rows, cols, dtype, extra, fill):
    """A (rows, cols) matrix whose rows are cols + extra long; the gap holds `fill`, and the last row has no gap."""
    ld = cols + extra
    memory = np.full(max(rows - 1, 0) * ld + cols if rows else 0, fill, dtype)
    view = np.lib.stride_tricks.as_strided(memory, (rows, cols), (ld * memory.itemsize, memory.itemsize))
    if np.dtype(dtype).kind == "f":
        view[...] = rng.uniform(-1, 1, (rows, cols))
    else:
        view[...] = rng.integers(0, 100, (rows, cols))
    return memory, view, ld


def check(call, dtype, ta, tb, m, n, k, extra, rng):
    floating = np.dtype(dtype).kind == "f"
    fill = np.nan if floating else 77
    a_memory, a, lda = stored(rng, *((k, m) if ta else (m, k)), dtype, extra, fill)
    b_memory, b, ldb = stored(rng, *((n, k) if tb else (k, n)), dtype, extra, fill)
    c_memory, c, ldc = stored(rng, m, n, dtype, extra, fill)
    c[...] = 55     # must not be added to
    call(CODES[dtype], ta, tb, m, n, k, a_memory.ctypes.data, lda, b_memory.ctypes.data, ldb, c_memory.ctypes.data, ldc)
    a, b = (a.T if ta else a), (b.T if tb else b)
    where = f"{dtype} ta={ta} tb={tb} m={m} n={n} k={k} extra={extra}"
    if floating:
        expected = a.astype("f8") @ b.astype("f8")
        bound = (k + 1) * np.finfo(dtype).eps * (np.abs(a).astype("f8") @ np.abs(b).astype("f8")) + 1e-300
        assert np.all(np.abs(c - expected) <= bound), where
    else:
        assert np.array_equal(c, a @ b), where
    gap = np.ones(c_memory.size, bool)
    np.lib.stride_tricks.as_strided(gap, (m, n), (ldc, 1))[...] = False
    assert np.array_equal(c_memory[gap], np.full(gap.sum(), fill, dtype), equal_nan=floating), "gap overwritten: " + where


def check_small(dtype, call=_probe.small_gemm):
    rng = np.random.default_rng(0)
    for (ta, tb), extra in itertools.product(FLAGS, (0, 3)):
        for m, n, k in [*itertools.product(SIZES, SIZES, SIZES), *MORE_SHAPES]:
            check(call, dtype, ta, tb, m, n, k, extra, rng)


def run_at_level(level, *arguments):
    paths = [str(Path(kernels.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "AUTOGRAD_CY_LEVEL": level, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, __file__, *arguments], check=False, env=environment, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("level", LEVELS[:table.cpu_level() + 1])
def test_small_products_at_every_level(level):
    run_at_level(level)


def check_at_the_edge_of_memory():
    """Operands that end where readable memory ends, and begin where it begins: a stray access is a segmentation fault."""
    libc = ctypes.CDLL(None)
    page = mmap.PAGESIZE
    maps = []
    for _ in range(3):
        area = mmap.mmap(-1, 6 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for guard in (start, start + 5 * page):
            assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
        maps.append((area, start + page, start + 5 * page))
    shapes = [*itertools.product((1, 2, 3, 5, 9), range(1, 36), (1, 2, 3, 9, 17)), (30, 10, 4), (30, 3, 10), (9, 1, 50),
              (1, 9, 50)]
    for (dtype, size), (ta, tb) in itertools.product(((0, 4), (1, 8)), FLAGS):
        for m, n, k in shapes:
            lengths = (m * k * size, k * n * size, m * n * size)
            lds = (m if ta else k, k if tb else n, n)
            for at_end in (False, True):
                places = [end - length if at_end else start for (_, start, end), length in zip(maps, lengths, strict=True)]
                _probe.small_gemm(dtype, ta, tb, m, n, k, *itertools.chain.from_iterable(zip(places, lds, strict=True)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="guards memory with mprotect")
@pytest.mark.parametrize("level", LEVELS[:table.cpu_level() + 1])
def test_nothing_outside_the_operands_is_touched(level):
    run_at_level(level, "edge")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("ta", "tb"), FLAGS)
def test_large_products(dtype, ta, tb):
    rng = np.random.default_rng(1)
    for m, n, k in [(200, 130, 170), (300, 1, 9000), (1, 300, 9000), (2000, 1100, 1), (130, 4, 6000)]:
        for extra in (0, 5):
            check(_probe.gemm, dtype, ta, tb, m, n, k, extra, rng)
            check(_probe.blas, dtype, ta, tb, m, n, k, extra, rng)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integer_products(dtype):
    rng = np.random.default_rng(2)
    for (ta, tb), extra in itertools.product(FLAGS, (0, 2)):
        for m, n, k in [*itertools.product((0, 1, 3, 10), (0, 1, 4, 17), (0, 1, 5, 16)), (9, 40, 300), (20, 3, 140), (2, 33, 129),
                        (1, 50, 260), (17, 8, 7), (300, 1, 200), (8, 16, 128)]:
            check(_probe.gemm, dtype, ta, tb, m, n, k, extra, rng)


def test_integer_products_wrap():
    a = np.array([[2**62, 2**62]], "i8")
    b = np.array([[2], [3]], "i8")
    c = np.zeros((1, 1), "i8")
    _probe.gemm(CODES["int64"], False, False, 1, 1, 2, a.ctypes.data, 2, b.ctypes.data, 1, c.ctypes.data, 1)
    assert c[0, 0] == (5 * 2**62 + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 4), (40, 30, 50), (140, 130, 150), (1, 1, 5)])
def test_batched_products(dtype, m, n, k):
    rng = np.random.default_rng(3)
    batch = 5
    a = rng.integers(-5, 5, (batch, m, k)).astype(dtype)
    b = rng.integers(-5, 5, (n, k)).astype(dtype)      # one matrix, transposed, for the whole batch
    c = np.full((batch, m, n), 9, dtype)
    _probe.gemm(CODES[dtype], False, True, m, n, k, a.ctypes.data, k, b.ctypes.data, k, c.ctypes.data, n, batch, m * k, 0, m * n)
    assert np.array_equal(c, a @ b.T)


def test_row_stride_of_a_single_row_may_be_anything():
    rng = np.random.default_rng(4)
    for n, k in [(5, 7), (2000, 1500)]:
        a, b = rng.uniform(size=k), rng.uniform(size=(k, n))
        c = np.empty(n)
        _probe.gemm(CODES["float64"], False, False, 1, n, k, a.ctypes.data, 1, b.ctypes.data, n, c.ctypes.data, 1)
        assert np.allclose(c, a @ b, rtol=1e-12)


def test_infinities_and_nans_stay_in_their_row():
    a = np.ones((20, 3), "f4")
    a[7, 1], a[9, 2] = np.inf, np.nan
    b = np.ones((3, 3), "f4")
    c = np.empty((20, 3), "f4")
    _probe.gemm(0, False, False, 20, 3, 3, a.ctypes.data, 3, b.ctypes.data, 3, c.ctypes.data, 3)
    assert np.array_equal(c, np.repeat(a.sum(1, keepdims=True), 3, 1), equal_nan=True)


def test_unknown_dtype():
    with pytest.raises(TypeError, match="matmul"):
        _probe.gemm(5, False, False, 1, 1, 1, 0, 1, 0, 1, 0, 1)


def test_threads():
    before = get_num_threads()
    assert before >= 1
    try:
        set_num_threads(1)
        assert get_num_threads() == 1
    finally:
        set_num_threads(before)
    with pytest.raises(ValueError, match="positive"):
        set_num_threads(0)


def test_products_in_threads_with_small_stacks():
    results = []
    rng = np.random.default_rng(5)
    a, b = rng.uniform(size=(60, 70)).astype("f4"), rng.uniform(size=(50, 70)).astype("f4")
    expected = a @ b.T

    def work():
        for _ in range(50):
            c = np.empty((60, 50), "f4")
            _probe.gemm(0, False, True, 60, 50, 70, a.ctypes.data, 70, b.ctypes.data, 70, c.ctypes.data, 50)
            results.append(np.allclose(c, expected, rtol=1e-5))

    size = threading.stack_size(64 * 1024)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.stack_size(size)
    assert results == [True] * 200


if __name__ == "__main__":
    if sys.argv[1:] == ["edge"]:
        check_at_the_edge_of_memory()
    else:
        check_small("float32")
        check_small("float64")
