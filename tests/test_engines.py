"""The engines: one answer from all of them, any depth, and PyTorch's rules for backward and grad.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import gc
import random
import threading
import time

import numpy as np
import pytest
from numeric import array, close, leaf, same_bytes

import autograd_cy as ag

ENGINES = ["iterative", "recursive"]


# ---------------------------------------------------------------------------------------------------------------------
# One answer

UNARY = [
    lambda x: x.tanh(),
    lambda x: x.sigmoid() * 1.5,
    lambda x: -x,
    lambda x: x * x,
    lambda x: ag.relu(x) + 0.1,
    lambda x: x.t(),
    lambda x: x[::-1],
    lambda x: x.abs().sqrt(),
    lambda x: x - x.mean(),
    lambda x: x.softmax(-1),
    lambda x: x.clone(),
    lambda x: x.flip(0) if hasattr(x, "flip") else x,
    lambda x: x[[2, 0, 2]],
    lambda x: x.detach() * x,
    lambda x: ag.where(x > 0, x, x * 0.1),
]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 0.5 * b,
    lambda a, b: (a @ b) * 0.2,
    lambda a, b: ag.maximum(a, b),
    lambda a, b: a / (b * b + 1),
    lambda a, b: a + b[0],
    lambda a, b: a * b.sum(0, keepdim=True) * 0.1,
    lambda a, b: ag.cat([a, b])[1:4],
    lambda a, b: ag.stack([a, b]).mean(0),
]


def random_graph(seed, leaves, rng=None):
    """A graph with shared nodes, fan-out, nodes of several outputs and unused branches."""
    rng = rng or random.Random(seed)
    pool = list(leaves)
    for _ in range(rng.randint(5, 60)):
        kind = rng.random()
        pick = pool if rng.random() < 0.5 else pool[-6:]
        if kind < 0.45:
            pool.append(rng.choice(UNARY)(rng.choice(pick)))
        elif kind < 0.9:
            pool.append(rng.choice(BINARY)(rng.choice(pick), rng.choice(pool)))
        else:
            parts = rng.choice(pick).unbind(rng.randint(0, 1)) if rng.random() < 0.5 else rng.choice(pick).chunk(3, 1)
            a, b = rng.choice(parts).reshape(-1)[:3], rng.choice(parts).reshape(-1)[:3]
            pool.append(a.reshape(3, 1) * b.reshape(1, 3))
    roots = [pool[-1], *rng.sample(pool, 3)]
    total = (pool[-1] * 1.0).sum()
    for r in roots:
        if r.requires_grad:
            total = total + (r * r).mean()
    return total


def new_leaves(seed, dtype="float32"):
    rng = np.random.default_rng(seed)
    return [ag.tensor(rng.uniform(-1, 1, (3, 3)).astype(dtype)).requires_grad_(True) for _ in range(4)]


@pytest.mark.parametrize("seed", range(150))
def test_engines_agree_byte_for_byte(seed):
    results = {}
    for engine in ENGINES:
        leaves = new_leaves(seed)
        random_graph(seed, leaves).backward(engine=engine)
        results[engine] = [t.grad for t in leaves]
        leaves = new_leaves(seed)
        random_graph(seed, leaves).backward(engine=engine, create_graph=True)
        results[engine, "recorded"] = [t.grad for t in leaves]
        for t in leaves:
            t.grad = None
        for k in range(4):  # restricted to one input
            leaves = new_leaves(seed)
            loss = random_graph(seed, leaves)
            loss.backward(inputs=[leaves[k]], engine=engine)
            assert all(t.grad is None for j, t in enumerate(leaves) if j != k)
            assert same_bytes(leaves[k].grad, results[engine][k])
        leaves = new_leaves(seed)
        got = ag.autograd.grad(random_graph(seed, leaves), leaves, allow_unused=True)
        for a, b in zip(got, results[engine], strict=True):
            assert same_bytes(a, b)
    first = results["iterative"]
    for key, other in results.items():
        for a, b in zip(first, other, strict=True):
            assert same_bytes(a, b), key


@pytest.mark.parametrize("seed", range(20))
def test_set_engine_and_repeated_runs(seed):
    """The order of additions depends on the graph alone, not on the run, memory or the engine's own state."""
    assert ag.get_engine() == "iterative"
    runs = []
    for engine in ("iterative", "recursive", "iterative"):
        ag.set_engine(engine)
        try:
            assert ag.get_engine() == engine
            junk = [ag.ones(k + 1) for k in range(seed)]
            leaves = new_leaves(seed, "float64")
            random_graph(seed, leaves).backward()
            runs.append([t.grad for t in leaves])
            del junk
        finally:
            ag.set_engine("iterative")
    for other in runs[1:]:
        assert all(same_bytes(a, b) for a, b in zip(runs[0], other, strict=True))


def test_unknown_engine():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="iterative"):
        (x * 2).backward(engine="magic")
    with pytest.raises(ValueError, match="iterative"):
        ag.set_engine("magic")
    assert ag.get_engine() == "iterative"
    assert x.grad is None


def test_second_order_agrees():
    grads = []
    for engine in ENGINES:
        ag.set_engine(engine)
        try:
            leaves = new_leaves(7, "float64")
            gs = ag.autograd.grad(random_graph(3, leaves), leaves, create_graph=True, allow_unused=True)
            total = sum((g * g).sum() for g in gs if g is not None)
            grads.append(ag.autograd.grad(total, leaves, allow_unused=True))
        finally:
            ag.set_engine("iterative")
    assert all(same_bytes(a, b) for a, b in zip(*grads, strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# Any depth


def chain(n, x):
    y = x
    for _ in range(n // 2):
        y = -(y * 1.0)
    return y


def test_million_deep_chain():
    """Built, differentiated and freed with the collector disabled, in the time that is linear in the length."""
    gc.collect()
    gc.disable()
    try:
        x = leaf(2.0)
        y = chain(1_000_000, x)
        y.backward()
        assert x.grad.item() == 1.0
        del y
        z = chain(1_000_000, x)  # freed without a backward
        del z
        w = chain(100_000, x)
        (g,) = ag.autograd.grad(w, x, create_graph=True)
        assert g.item() == 1.0
        del w, g
    finally:
        gc.enable()


def test_million_deep_chain_in_a_small_thread():
    results = []

    def work():
        try:
            x = leaf(2.0)
            y = chain(1_000_000, x)
            y.backward()
            del y
            results.append(x.grad.item())
        except BaseException as error:
            results.append(error)

    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert results == [1.0]


def test_deep_chain_freed_by_another_thread():
    x = leaf(2.0)
    held = [chain(300_000, x)]
    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert not held


def test_deep_ladder_of_tuples_is_freed():
    """A chain through nodes of several outputs and several inputs frees without recursion, too."""
    x = leaf([1.0, 2.0])
    y = x
    for _ in range(100_000):
        a, b = y.unbind()
        y = ag.stack([b, a])
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y, a, b


@pytest.mark.parametrize("engine", ENGINES)
def test_moderate_depth_on_both(engine):
    x = leaf(3.0)
    y = x
    for _ in range(400):
        y = -y
    y.backward(engine=engine)
    assert x.grad.item() == 1.0


def test_recursive_engine_stops_with_advice():
    x = leaf(2.0)
    y = chain(1_000_000, x)
    with pytest.raises(RecursionError, match="iterative"):
        y.backward(engine="recursive")
    assert x.grad is None
    y.backward()  # the same graph still works
    assert x.grad.item() == 1.0
    z = leaf(1.5)
    (z * z).backward(engine="recursive")  # and so does the engine
    assert z.grad.item() == 3.0


def test_recursive_engine_in_a_small_thread():
    """The depth guard knows the thread's stack, not only the main thread's."""
    results = []

    def work():
        x = leaf(2.0)
        y = chain(200_000, x)
        try:
            y.backward(engine="recursive")
            results.append(x.grad.item())
        except RecursionError:
            y.backward()
            results.append(x.grad.item())

    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert results == [1.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_ladder_of_60(engine):
    """t = t + t 60 times: 2**60 paths, 60 nodes."""
    x = leaf(1.0)
    t = x
    for _ in range(60):
        t = t + t
    start = time.perf_counter()
    t.backward(engine=engine)
    assert time.perf_counter() - start < 0.5
    assert x.grad.item() == 2.0**60


@pytest.mark.parametrize("engine", ENGINES)
def test_wide_fan_out(engine):
    x = leaf(1.0)
    total = sum(x * float(k) for k in range(300))
    total.backward(engine=engine)
    assert x.grad.item() == 299 * 150


def test_time_per_node_is_flat():
    """The cost is linear in the nodes. Generous bound: the machine may be busy."""

    def per_node(n):
        best = np.inf
        for _ in range(3):
            x = leaf(1.0)
            y = chain(n, x)
            start = time.perf_counter()
            y.backward()
            best = min(best, (time.perf_counter() - start) / n)
            del y
        return best

    assert per_node(300_000) < 8 * per_node(3_000) + 1e-6


# ---------------------------------------------------------------------------------------------------------------------
# The rules of backward


@pytest.mark.parametrize("engine", ENGINES)
def test_shared_node_is_added_once_per_path(engine):
    x, y = leaf(2.0), leaf(3.0)
    b = x * y
    (b * b + b + x).backward(engine=engine)
    assert x.grad.item() == 2 * 6 * 3 + 3 + 1
    assert y.grad.item() == 2 * 6 * 2 + 2


def test_accumulates_over_backwards():
    x = leaf([1.0, 2.0])
    (x * 3).sum().backward()
    first = x.grad
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert x.grad is first or first.tolist() in ([3.0, 3.0], [7.0, 7.0])
    x.grad = None
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    x.grad.zero_()
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_second_backward_needs_retain_graph(engine):
    x = leaf([1.0, 2.0])
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True, engine=engine)
    once = array(x.grad)
    y.backward(engine=engine)
    close(x.grad, 2 * once)
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward(engine=engine)
    close(x.grad, 2 * once)
    with pytest.raises(RuntimeError, match="retain_graph"):
        ag.autograd.grad(y, x)


def test_second_backward_through_a_shared_part():
    x = leaf(2.0)
    shared = x.exp()
    a, b = shared * 2, shared * 3
    a.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        b.backward()


def test_create_graph_implies_retain_graph():
    x = leaf(2.0)
    y = x**3
    y.backward(create_graph=True)
    assert x.grad.requires_grad
    y.backward()
    close(x.grad, 24.0)
    x.grad = None


def test_create_graph_gradient_of_gradient():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.backward()
    assert x.grad.item() == 12.0


def test_gradient_argument():
    x = leaf(np.ones((2, 3)))
    y = x * 2
    y.backward(gradient=ag.tensor(np.arange(6.0).reshape(2, 3)), retain_graph=True)
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    x.grad = None
    y.backward(ag.ones(2, 3, dtype=ag.float64), retain_graph=True)
    assert x.grad.tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match=r"\(3,\).*\(2, 3\)"):
        y.backward(ag.ones(3, dtype=ag.float64), retain_graph=True)
    with pytest.raises(RuntimeError, match="scalar|one element"):
        y.backward()


def test_one_element_needs_no_gradient_argument():
    for shape in ((), (1,), (1, 1)):
        x = leaf(np.ones(shape))
        (x * 3).backward()
        assert x.grad.item() == 3.0
        assert tuple(x.grad.shape) == shape


def test_root_without_requires_grad():
    """An error, as in PyTorch."""
    for t in (ag.tensor(1.0), ag.tensor(1.0) * 2, leaf(1.0).detach()):
        with pytest.raises(RuntimeError, match="(?i)require.*grad"):
            t.backward()
    with ag.no_grad():
        y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="(?i)require.*grad"):
        y.backward()


def test_backward_of_a_leaf():
    x = leaf(4.0)
    x.backward()
    assert x.grad.item() == 1.0
    x.backward(ag.tensor(2.0, dtype=ag.float64))
    assert x.grad.item() == 3.0


def test_backward_inputs():
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    middle = a * b
    loss = middle * c
    loss.backward(inputs=[a, middle], retain_graph=True)
    assert a.grad.item() == 12.0
    assert b.grad is None
    assert c.grad is None
    assert middle.grad.item() == 4.0
    loss.backward(inputs=c)
    assert c.grad.item() == 6.0
    assert a.grad.item() == 12.0
    with pytest.raises(ValueError, match="empty"):
        (a * b).backward(inputs=[])


@pytest.mark.parametrize("engine", ENGINES)
def test_backward_goes_only_where_inputs_are(engine):
    """Nodes off the path to the chosen leaves do no work; here they would raise, being spent."""
    a, b = leaf(2.0), leaf(3.0)
    side = b.exp()
    loss = a * 5 + side
    side.backward()  # spends the graph behind side
    b.grad = None
    loss.backward(inputs=[a], engine=engine)
    assert a.grad.item() == 5.0
    assert b.grad is None


def test_grad():
    a, b, c = leaf(2.0), leaf(3.0), leaf(1.0)
    y = a * a * b
    ga, gb = ag.autograd.grad(y, [a, b], retain_graph=True)
    assert (ga.item(), gb.item()) == (12.0, 4.0)
    assert a.grad is None
    assert b.grad is None
    with pytest.raises(RuntimeError, match="allow_unused"):
        ag.autograd.grad(y, [a, c], retain_graph=True)
    ga, gc_ = ag.autograd.grad(y, [a, c], allow_unused=True, retain_graph=True)
    assert ga.item() == 12.0
    assert gc_ is None
    single = ag.autograd.grad(y, a, retain_graph=True)
    assert isinstance(single, tuple)
    assert len(single) == 1
    with pytest.raises(RuntimeError):
        ag.autograd.grad(y, ag.tensor(1.0))
    middle = a * b
    (g,) = ag.autograd.grad(middle * middle, middle)
    assert g.item() == 12.0


def test_grad_of_several_outputs():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y, z = a * b, a + b
    seeds = [ag.tensor([1.0, 10.0], dtype=ag.float64), ag.tensor([100.0, 1000.0], dtype=ag.float64)]
    ga, gb = ag.autograd.grad([y, z], [a, b], grad_outputs=seeds, retain_graph=True)
    assert ga.tolist() == [103.0, 1040.0]
    assert gb.tolist() == [101.0, 1020.0]
    (ga,) = ag.autograd.grad([y.sum(), z.sum()], [a], retain_graph=True)
    assert ga.tolist() == [4.0, 5.0]
    (ga,) = ag.autograd.grad([y, z.sum()], [a], grad_outputs=[seeds[0], None])
    assert ga.tolist() == [4.0, 41.0]


def test_grad_of_an_output_that_is_an_input():
    a = leaf([1.0, 2.0])
    y = a * 2
    gy, ga = ag.autograd.grad(y, [y, a], grad_outputs=ag.tensor([1.0, 3.0], dtype=ag.float64))
    assert gy.tolist() == [1.0, 3.0]
    assert ga.tolist() == [2.0, 6.0]


def test_output_number_of_several_outputs():
    """Only one of several outputs used: the others count as zero."""
    x = leaf(np.arange(6.0).reshape(2, 3))
    parts = x.unbind(1)
    (parts[1] * ag.tensor([10.0, 20.0], dtype=ag.float64)).sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0, 0.0], [0.0, 20.0, 0.0]]
    y = leaf([3.0, 1.0, 2.0])
    values, index = y.max(dim=0)
    assert not index.requires_grad
    values.backward()
    assert y.grad.tolist() == [1.0, 0.0, 0.0]


def test_retain_grad():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    y.retain_grad()
    assert y.retains_grad
    z.backward()
    assert y.grad.item() == 12.0
    assert x.grad.item() == 36.0
    x.retain_grad()  # no effect on a leaf
    assert not x.retains_grad
    w = x * 2  # an inner node keeps none unless asked
    (w * 1.0).backward(inputs=[x])
    assert not w.retains_grad


def test_detach():
    x = leaf([1.0, 2.0])
    y = x * 2
    d = y.detach()
    assert not d.requires_grad
    assert d.grad_fn is None
    assert d.is_leaf
    assert d.data_ptr() == y.data_ptr()
    (y * d).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_constants_get_no_gradient():
    """No gradient, and no gradient work, for inputs that do not require one."""
    x, c = leaf(2.0), ag.tensor(3.0, dtype=ag.float64)
    y = x * c
    y.backward()
    assert c.grad is None
    assert x.grad.item() == 3.0
    assert not (c * c).requires_grad
    assert (c * c).grad_fn is None


def test_leaf_flags():
    x = ag.tensor([1.0, 2.0], requires_grad=True)
    c = ag.tensor([1.0])
    y = x * 2
    assert x.is_leaf
    assert c.is_leaf
    assert not y.is_leaf
    assert x.requires_grad
    assert y.requires_grad
    assert not c.requires_grad
    assert x.grad_fn is None
    assert y.grad_fn is not None
    with pytest.raises(RuntimeError):
        y.requires_grad_(False)


def test_grad_can_be_assigned():
    x = ag.tensor([1.0, 2.0], requires_grad=True)
    x.grad = ag.tensor([5.0, 6.0])
    (x * 1).sum().backward()
    assert x.grad.tolist() == [6.0, 7.0]
    for bad in (ag.tensor([1.0]), ag.tensor([1.0, 2.0], dtype=ag.float64)):
        with pytest.raises(RuntimeError):
            x.grad = bad
    with pytest.raises(TypeError):
        x.grad = 3.0
    assert x.grad.tolist() == [6.0, 7.0]


def test_failed_backward_leaves_gradients():
    """An exception half-way: no leaf has been written to."""
    x, w, b = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([1.0, 1.0])
    (x * w).sum().backward()
    before = array(x.grad), array(w.grad)
    saved = x.exp()
    out = (saved * saved).sum() + (w * b * x).sum()
    saved.mul_(2)  # spoils what the square saved
    for engine in ENGINES:
        with pytest.raises(RuntimeError):
            out.backward(engine=engine, retain_graph=True)
    assert np.array_equal(array(x.grad), before[0])
    assert np.array_equal(array(w.grad), before[1])
    assert b.grad is None
    (b * 3).sum().backward()
    assert b.grad.tolist() == [3.0, 3.0]


def test_intermediates_start_clean():
    x = leaf(2.0)
    y = x * x
    z = y * y
    for _ in range(3):
        x.grad = None
        z.backward(retain_graph=True)
        assert x.grad.item() == 32.0


def test_threads_with_shared_leaves():
    """Backward on different graphs with shared leaves: no crash, every graph right, shared sums complete."""
    shared = leaf(np.ones(50))
    errors = []

    def work(k):
        try:
            for _ in range(60):
                mine = leaf(np.full(50, float(k)))
                y = (shared * mine).tanh()
                for _ in range(20):
                    y = y * 1.0 + shared * 0.0
                (g,) = ag.autograd.grad(y.sum(), mine)
                close(g, 1 - np.tanh(np.full(50, float(k))) ** 2, 1e-12)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_threads_accumulate_into_one_leaf():
    shared = leaf(np.zeros(1000))

    def work():
        for _ in range(50):
            (shared * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert array(shared.grad).tolist() == [200.0] * 1000


def test_branches_and_loops_rebuild_the_graph():
    """The graph is what was run."""
    x = leaf(3.0)
    for n in range(4):
        y = x
        for _ in range(n):
            y = y * x if n % 2 else y + x
        x.grad = None
        y.backward()
        assert x.grad.item() == ((n + 1) * 3.0**n if n % 2 else n + 1)


def test_children_outlive_the_users_names():
    """What a graph needs, it holds."""

    def build():
        a, b, c, d = (leaf(v) for v in (1.0, 2.0, 3.0, 4.0))
        return (a, d), (a * b) + (c * d)

    (a, d), y = build()
    gc.collect()
    y.backward()
    assert a.grad.item() == 2.0
    assert d.grad.item() == 3.0


def test_identity_of_handles():
    """Another name is the same tensor."""
    a = leaf(2.0)
    b = a
    (b * b).backward()
    assert a.grad is b.grad
    assert a.grad.item() == 4.0
    assert {a: 1}[b] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_pass_within_a_rule_of_its_own_node(engine):
    """The inner pass does not take away what the outer one's rule is still to read."""
    seen = []

    class Twice(ag.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            if not seen:
                seen.append(True)
                out.backward(ag.ones(2, dtype=ag.float64), engine=engine)
            x, = ctx.saved_tensors
            return g * 2 * x

    x = leaf([1.0, 2.0])
    out = Twice.apply(x)
    out.backward(ag.ones(2, dtype=ag.float64), engine=engine)
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward(ag.ones(2, dtype=ag.float64), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_threads_over_one_graph(engine):
    """Kernels of large tensors run without the interpreter's lock. Each pass succeeds or finds the graph used up; nothing else."""
    values = np.linspace(-1, 1, 300_000)
    g = ag.ones(len(values), dtype=ag.float64)
    for _ in range(8):
        x = leaf(values)
        end = (x * 1.5).exp().sin().tanh()
        errors = []
        together = threading.Barrier(2)

        def work(end=end, together=together, errors=errors):
            together.wait()
            try:
                end.backward(g, engine=engine)
            except RuntimeError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(errors) < 2
        assert all("a second time" in error for error in errors)
        e = np.exp(1.5 * values)
        close(x.grad / (2 - len(errors)), 1.5 * e * np.cos(e) * (1 - np.tanh(np.sin(e)) ** 2))
