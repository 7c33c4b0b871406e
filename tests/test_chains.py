"""Chains of cheap maps that keep their values in registers: the bits must be those of eager code, map by map.

Relies on autograd_cy's public names, NumPy and the list of actions in ops/chains.py.
"""

import itertools
import operator
import os
import subprocess
import sys

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import kernels
from autograd_cy.graph import lowering
from autograd_cy.graph.machine import has_loop, tile
from autograd_cy.ops import chains

LEVELS = kernels.LEVELS[:kernels.LEVELS.index(kernels.level) + 1]
SIZES = (2048, 2049, 3 * 1024 + 511, 10_007)
BINARY = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
UNARY = {"neg": operator.neg, "relu": ag.relu, "square": ag.square}


def data(n, dtype, seed=0):
    """Values of all magnitudes, with zeros of both signs and infinities."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)
    x[rng.integers(0, n, n // 20)] = 0.0
    x[rng.integers(0, n, n // 20)] = -0.0
    x[rng.integers(0, n, n // 50)] = np.inf
    return ag.tensor(x.astype(dtype))


def actions():
    """{name: function of (value, vector)} for every way in which a binary map can take the value, and the unary ones."""
    found = {name: lambda t, v, f=f: f(t) for name, f in UNARY.items()}
    for name, f in BINARY.items():
        found[name] = lambda t, v, f=f: f(t, v)
        found[name + " reversed"] = lambda t, v, f=f: f(v, t)
        found[name + " number"] = lambda t, v, f=f: f(t, 1.7)
        found[name + " number reversed"] = lambda t, v, f=f: f(0.3, t)
        found[name + " itself"] = lambda t, v, f=f: f(t, t)
    return found


def same(a, b):
    """Equal bytes; any NaN equals any other: which of two NaNs a sum shows depends on the compiler's choice of operands."""
    a, b = a.detach().numpy(), b.detach().numpy()
    hollow = np.isnan(a) & np.isnan(b)
    return np.where(hollow, 0, a).tobytes() == np.where(hollow, 0, b).tobytes()


def groups_of(compiled):
    return [i for i in compiled.program.instructions if i.kernel == "group"]


def chained(compiled):
    """Lengths of the chains of a compiled function's groups."""
    _, inner = lowering.lower(compiled.program, has_loop, tile)
    return [step.chained for step in inner if step.chained]


needs_chains = pytest.mark.skipif(not tile(0), reason="this compiler makes no chains")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", actions())
def test_pairs_of_actions(first, dtype):
    one, n = actions()[first], SIZES[len(first) % 2]
    x, y, z = (data(n, dtype, k) for k in range(3))
    for second, two in actions().items():
        def pair(x, y, z, two=two):
            return two(one(x, y), z)
        compiled = ag.compile(pair)
        for _ in range(3):
            result = compiled(x, y, z)
        assert same(result, pair(x, y, z)), (first, second)


@needs_chains
def test_pairs_are_chains():
    x, y, z = (data(4096, "float32", k) for k in range(3))
    for first, second in itertools.product(("add", "sub number reversed", "div", "relu"), ("mul", "add number", "neg")):
        one, two = actions()[first], actions()[second]
        compiled = ag.compile(lambda x, y, z, one=one, two=two: two(one(x, y), z))
        for _ in range(3):
            compiled(x, y, z)
        assert chained(compiled) == [2], (first, second)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_long_chains_with_results_in_between(n, dtype):
    def long(x, y):
        t = (x * y + x) * 0.5
        u = t - y                    # a result, and read by the next
        v = (u * u).relu() / (t + 2)
        return u, v * x - t

    x, y = data(n, dtype), data(n, dtype, 1)
    compiled = ag.compile(long)
    for _ in range(3):
        results = compiled(x, y)
    assert all(map(same, results, long(x, y)))
    assert len(groups_of(compiled)) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_backward_passes(n, dtype):
    def step(x, y):
        loss = ((((x * y + x).relu() * 2 - y) / (x * x + 1)).tanh() * y).square().mean()
        loss.backward()
        return loss

    pairs = []
    for run in (step, ag.compile(step)):
        x = ag.tensor(np.random.default_rng(3).standard_normal(n).astype(dtype), requires_grad=True)
        y = ag.tensor(np.random.default_rng(4).standard_normal(n).astype(dtype), requires_grad=True)
        seen = []
        for _ in range(5):
            x.grad = y.grad = None
            seen += [run(x, y), x.grad.clone(), y.grad.clone()]
        pairs.append(seen)
    for eager, compiled in zip(*pairs, strict=True):
        assert eager.detach().numpy().tobytes() == compiled.detach().numpy().tobytes()


@pytest.mark.parametrize("n", SIZES)
def test_in_place(n):
    """The result is written where an input lies."""
    def step(x, y):
        x.mul_(0.9).add_(y)
        x.sub_(1.0).mul_(x)
        return x + y

    y = data(n, "float32", 1)
    one, two = data(n, "float32"), data(n, "float32")
    compiled = ag.compile(step)
    for _ in range(4):
        assert same(step(one, y), compiled(two, y))
        assert same(one, two)
        one.mul_(0.0).add_(1.5)
        two.mul_(0.0).add_(1.5)


@pytest.mark.parametrize("n", SIZES)
def test_single_values_in_any_place(n):
    """A loop of three inputs has no variant for a single value in the second or third: it gets a row of its own."""
    def step(x, m, s):
        return ag.where(m, x * 2, 0.0) + ag.where(m, s, x) * ag.where(m, x, s)

    x, s = data(n, "float32"), ag.tensor(0.25)
    m = ag.tensor(np.random.default_rng(1).random(n) < 0.5)
    compiled = ag.compile(step)
    for _ in range(4):
        assert same(compiled(x, m, s), step(x, m, s))
        s = s + 1
    assert len(groups_of(compiled)) == 1


@needs_chains
def test_every_action_has_a_loop_of_its_own():
    """What is left of a block behind its tiles runs through the loops."""
    for (name, places, single), action in chains._actions()[0].items():
        assert action >= chains.FIRST
        assert name.partition(".")[0] in chains.TABLE
        variant = 0 if not single else lowering.LAST_SCALAR if places == (1,) else lowering.FIRST_SCALAR
        loop = lowering.loop_id(name)
        assert has_loop(loop, 0, variant) and has_loop(loop, 1, variant)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_other_levels(level):
    """The same tests with the loops for older processors."""
    if os.environ.get("AUTOGRAD_CY_LEVEL"):
        pytest.skip("a level is asked for already")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__], capture_output=True, text=True,
                          env=os.environ | {"AUTOGRAD_CY_LEVEL": level}, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
