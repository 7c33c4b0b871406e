"""Replays over time: memory, repeat, interrupts, threads, walls and control flow; Programs by three engines, in files, of live graphs.

Relies on tests/replaying.py, tests/samples.py and tests/test_engines.py (random graphs); nothing relies on it.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given as given_these
from hypothesis import settings
from hypothesis import strategies as st
from numeric import same_bytes
from replaying import Stories, batch, compare, network, seen, trainer
from samples import SAMPLES, outputs
from test_engines import new_leaves, random_graph

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.array.errors import CaptureError
from autograd_cy.graph import ENGINES, PASSES
from autograd_cy.graph.live import nodes_of
from autograd_cy.graph.program import EXTERNAL
from autograd_cy.nn import functional as F

STORIES = Stories()


def made(optimizer="adam", dropout=0.0):
    """(step, model, optimizer) from one seed."""
    ag.manual_seed(4)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(dropout), nn.Linear(5, 3))
    kinds = {"adam": lambda p: ag.optim.Adam(p, lr=0.01), "sgd": lambda p: ag.optim.SGD(p, lr=0.05, momentum=0.9),
             "rmsprop": lambda p: ag.optim.RMSprop(p, lr=0.01, centered=True)}
    optimizer = kinds[optimizer](model.parameters())
    return trainer(model, optimizer), model, optimizer


# ---- memory

@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_steps_ask_for_no_memory(name, dropout):
    step, _, _ = made(name, dropout)
    step, (x, y) = ag.compile(step), batch(0)
    for _ in range(10):
        step(x, y)
    before = ag.memory_stats()
    for _ in range(1000):
        step(x, y)
    after = ag.memory_stats()
    assert after["heap_calls"] == before["heap_calls"]
    assert after["allocated_bytes"] == before["allocated_bytes"]
    step.repeat(100, x, y)
    before = ag.memory_stats()["heap_calls"]
    for _ in range(20):
        step.repeat(100, x, y)
    assert ag.memory_stats()["heap_calls"] == before


def test_functions_ask_for_no_memory():
    model = network()
    f = ag.compile(lambda x: model(x).tanh())

    def run(n):
        for _ in range(n):
            f(x).sum().backward()
            model.zero_grad()
    x = batch(0)[0]
    run(20)
    before = ag.memory_stats()
    run(500)
    after = ag.memory_stats()
    assert after["heap_calls"] == before["heap_calls"]
    assert after["allocated_bytes"] == before["allocated_bytes"]


def test_python_memory_does_not_grow():
    step, _, _ = made()
    step, (x, y) = ag.compile(step), batch(0)
    f = ag.compile(lambda x: (x * 2).exp())
    g = ag.compile(ag.graph.wall(lambda x: x * 2))

    def run(n):
        for _ in range(n):
            step(x, y)
            z = x.detach().requires_grad_()
            f(z).sum().backward()
            g(x)
        step.repeat(50, x, y)
    run(60)
    gc.collect()
    tracemalloc.start()
    try:
        run(60)
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        run(600)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - first < 4000
    finally:
        tracemalloc.stop()


def test_everything_is_freed():
    """A compiled step holds nothing once it is gone, and a result holds no program."""
    step, model, optimizer = made()
    step, (x, y) = ag.compile(step), batch(0)
    for _ in range(5):
        loss = step(x, y)
    step.repeat(5, x, y)
    f = ag.compile(model)
    for _ in range(4):
        out = f(x)
    out.sum().backward()
    held = [weakref.ref(o) for o in (step, step._last, model, optimizer, f, f._last)]
    twice = [weakref.ref(model[0].weight), weakref.ref(out)]
    value = loss.item()
    del step, model, optimizer, f, out
    gc.collect()
    assert not [r for r in held + twice if r() is not None]
    assert loss.item() == value


def test_arguments_are_not_held():
    f = ag.compile(lambda x, y: (x * y).sum())
    for _ in range(5):
        x, y = ag.rand(3), ag.rand(3)
        f(x, y)
    refs = [weakref.ref(x), weakref.ref(y)]
    before = ag.memory_stats()["allocated_bytes"]
    del x, y
    gc.collect()
    assert not [r for r in refs if r() is not None]
    assert ag.memory_stats()["allocated_bytes"] <= before


def test_many_shapes_are_bounded():
    f = ag.compile(lambda x: x.exp().sum())
    for n in range(1, 300):
        assert same_bytes(f(ag.ones(n)), ag.ones(n).exp().sum())
    assert sum(map(len, f._entries.values())) <= 64


# ---- repeat

@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_repeat_is_the_loop(name, dropout):
    x, y = batch(0)
    times = (0, 1, 2, 3, 5, 1000, 1, 0, 17)
    step, model, optimizer = made(name, dropout)
    compiled = ag.compile(step)
    found = [compiled.repeat(n, x, y) for n in times]
    after = seen(model, optimizer, ag.rand(2))
    step, model, optimizer = made(name, dropout)
    for n, losses in zip(times, found):
        if n:
            assert losses.shape == (n,)
            assert same_bytes(losses, ag.stack([step(x, y).detach() for _ in range(n)]))
        else:
            assert losses.numel() == 0
    assert after == seen(model, optimizer, ag.rand(2))


RESULTS = {
    "none": lambda loss, model: None, "tuple": lambda loss, model: (loss, model[0].weight.sum()),
    "dict": lambda loss, model: {"loss": loss, "parts": [loss * 2, model[3].bias.detach().clone()]},
    "gradient": lambda loss, model: (loss, model[0].bias.grad), "parameter": lambda loss, model: model[0].weight,
    "views": lambda loss, model: ((w := model[0].weight.detach() * 1), w.T, w[1:]), "twice": lambda loss, model: (loss, loss),
}


@pytest.mark.parametrize("name", RESULTS)
def test_repeat_with_other_results(name):
    x, y = batch(0)

    def run(way, n):
        plain, model, _ = made("sgd")

        def step(x, y):
            return RESULTS[name](plain(x, y), model)
        if way == "eager":
            parts = [seen(step(x, y)) for _ in range(n)]
            return parts, seen(model)
        stacked = ag.compile(step).repeat(n, x, y)
        if stacked is None:
            return [seen(None)] * n, seen(model)
        pick = lambda tree, k: (tuple if isinstance(tree, tuple) else list)(pick(t, k) for t in tree) if isinstance(tree, (tuple, list)) else \
            {key: pick(t, k) for key, t in tree.items()} if isinstance(tree, dict) else tree[k]
        return [seen(pick(stacked, k)) for k in range(n)], seen(model)

    def values(entry):
        """Without the gradients of results: what is stacked has none."""
        return [values(e) for e in entry] if isinstance(entry, list) else entry[:3] if isinstance(entry, tuple) else entry
    for n in (1, 2, 3, 7):
        (found, after), (expected, its) = run("repeat", n), run("eager", n)
        assert after == its
        assert list(map(values, found)) == list(map(values, expected)), n


def test_repeat_of_a_function():
    """What is no step is called again and again."""
    w = ag.randn(4, requires_grad=True)
    f = lambda x: (x * w).tanh()
    x = batch(0)[0]
    assert same_bytes(ag.compile(f).repeat(6, x), ag.stack([f(x)] * 6))
    for wrong in (-1, -5):
        with pytest.raises(ValueError, match="at least 0"):
            ag.compile(f).repeat(wrong, x)


def test_repeat_changes_its_argument():
    def f(x):
        x.mul_(1.5)
        return x.sum()
    x, z = ag.ones(3), ag.ones(3)
    assert same_bytes(ag.compile(f).repeat(20, x), ag.stack([f(z) for _ in range(20)]))
    assert same_bytes(x, z)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_interrupted_repeat():
    """Ctrl-C ends a repeat after a whole number of steps, soon; training goes on from there."""
    x, y = batch(0)
    step, model, optimizer = made()
    compiled = ag.compile(step)
    compiled.repeat(5, x, y)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled.repeat(10 ** 8, x, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < 5
    done = int(optimizer.state[model[0].weight]["step"])
    assert done > 5
    after = seen(model, optimizer), seen(compiled(x, y), model, optimizer)
    step, model, optimizer = made()
    again = ag.compile(step)
    again.repeat(done, x, y)
    assert after == (seen(model, optimizer), seen(again(x, y), model, optimizer))


# ---- threads

def test_threads_with_steps_of_their_own():
    """Captures wait for each other, replays do not."""
    results = {}

    def work(k):
        ag.manual_seed(k)
        model = network()
        step = ag.compile(trainer(model, ag.optim.Adam(model.parameters(), lr=0.01)))
        models[k] = model
        results[k] = [seen(step(*batch(j % 3, n=3 + j % 2))) for j in range(40)], seen(step.repeat(50, *batch(0)), model)

    models, found = {}, []
    for threads in (False, True):
        results = {}
        if threads:
            pool = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for t in pool:
                t.start()
            for t in pool:
                t.join()
        else:
            for k in range(4):
                work(k)
        found.append(results)
    assert len(found[1]) == 4
    if found[0] != found[1]:                    # initial weights come from a random state that threads may share
        pytest.skip("models of threads draw from one random state")


@pytest.mark.parametrize("gradients", [False, True])
def test_threads_call_one_function(gradients):
    w = ag.rand(4, 4)
    function = lambda x: (x @ w).tanh() * 2
    f, errors = ag.compile(function), []

    def work(k):
        try:
            for j in range(60):
                x, z = (batch(k * 100 + j, n=5 + j % 2)[0].requires_grad_(gradients) for _ in range(2))
                one, other = f(x), function(z)
                assert same_bytes(one, other)
                if gradients:
                    (one * one).sum().backward()
                    (other * other).sum().backward()
                    assert same_bytes(x.grad, z.grad)
        except BaseException as error:
            errors.append(error)
    pool = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    if errors:
        raise errors[0]


def test_eager_code_beside_a_capture():
    """What another thread computes meanwhile is not recorded."""
    stop, errors = threading.Event(), []

    def beside():
        x = ag.rand(8)
        expected = x.exp()
        while not stop.is_set():
            if not same_bytes(x.exp(), expected):
                errors.append("changed")
    thread = threading.Thread(target=beside)
    thread.start()
    try:
        for k in range(30):
            f = ag.compile(lambda x, k=k: (x * k).tanh().sum(0))
            for j in range(4):
                x = batch(j)[0]
                assert same_bytes(f(x), (x * k).tanh().sum(0))
            assert len(f.program.instructions) <= 4
    finally:
        stop.set()
        thread.join()
    assert not errors


# ---- walls and control flow

@STORIES
def wall_with_gradients(play):
    w = ag.randn(4, 4, requires_grad=True)
    seen_values = []

    def inside(x):
        seen_values.append(x.sum().item())
        return (x if x.sum() > 0 else x * 2).tanh(), x.detach().clone()
    inside = ag.graph.wall(inside)

    def step(x):
        a, b = inside(x @ w)
        loss = (a * b).sum()
        loss.backward()
        with ag.no_grad():
            w.sub_(w.grad, alpha=0.01)
        w.grad = None
        return loss
    step = play(step)
    for k in range(9):
        yield step(batch(k)[0]), w, list(seen_values)


@STORIES
def wall_in_a_function(play):
    w = ag.randn(4, 4, requires_grad=True)
    inside = ag.graph.wall(lambda x, y: {"low": ag.minimum(x, y) * float(x.max()), "high": [ag.maximum(x, y)]})
    f = play(lambda x: (r := inside(x @ w, x * 2), r["low"].exp().sum() + r["high"][0].mean())[1])
    for k in range(8):
        x = batch(k)[0].requires_grad_()
        y = f(x)
        y.backward()
        yield y, x, w
        w.grad = None


@STORIES
def wall_without_results(play):
    log = []
    show = ag.graph.wall(lambda x: log.append(x.mean().item()))
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        show(loss)
        loss.backward()
        show(model[0].weight.grad)
        optimizer.step()
        return loss
    step = play(step)
    for k in range(8):
        yield step(*batch(k)), model, list(log)


@STORIES
def choices(play):
    w = ag.randn(4, requires_grad=True)

    def f(x):
        y = x * w
        a = ag.graph.cond(y.sum() > 0, lambda y: y * 2, lambda y: y.exp(), (y,))
        return ag.graph.cond((a.sum() > 3).logical_not(), lambda a, y: a - y, lambda a, y: y, (a, y)).sum(1)
    f = play(f)
    for k in range(12):
        x = batch(k)[0].requires_grad_(k % 2 == 0)
        y = f(x)
        (y * y).sum().backward()
        yield y, x, w
        w.grad = None


@STORIES
def loops(play):
    w = ag.rand(4, requires_grad=True)

    def f(x):
        n, y = ag.graph.while_loop(lambda n, y: (y.abs().max() > 0.2) & (n < 30), lambda n, y: (n + 1, y * w.sigmoid()), (ag.zeros(()), x))
        return y.sum(0), n
    f = play(f)
    for k in range(10):
        x = (batch(k)[0] * (k + 0.1)).requires_grad_()
        y, n = f(x)
        if y.requires_grad:
            y.sum().backward()
        yield y, n, x, w
        w.grad = None


@STORIES
def scans(play):
    cell = nn.Linear(7, 3)
    optimizer = ag.optim.Adam(cell.parameters(), lr=0.01)

    def step(xs):
        optimizer.zero_grad()

        def one(h, x):
            h = cell(ag.cat([x, h], 1)).tanh()
            return h, {"h": h, "norm": h.norm()}
        last, every = ag.graph.scan(one, ag.zeros(6, 3), xs)
        loss = (last * every["h"].sum(0)).mean() + every["norm"].sum() * 0.1
        loss.backward()
        optimizer.step()
        return loss, every["norm"]
    step = play(step)
    for k in range(9):
        yield step(ag.stack([batch(k + j)[0] for j in range(5 if k != 6 else 2)])), cell, optimizer


@pytest.mark.parametrize("name", STORIES)
def test_stories(name):
    tale, expected = STORIES[name]
    compare(tale, **expected)


FLOW = {
    "cond": lambda y: ag.graph.cond(y.sum() > 0, lambda y: y * 2, lambda y: y.exp(), (y,)),
    "while": lambda y: ag.graph.while_loop(lambda y: y.abs().max() > 0.5, lambda y: y * 0.7, (y,))[0],
    "scan": lambda y: ag.graph.scan(lambda c, r: ((c + r).tanh(), c * r), ag.zeros(4), y)[1], "wall": ag.graph.wall(lambda y: y * float(y.max())),
}


@pytest.mark.parametrize("name", FLOW)
def test_flow_in_repeat(name):
    x = batch(0)[0]

    def run(way):
        ag.manual_seed(8)
        w = ag.randn(4, requires_grad=True)
        optimizer = ag.optim.Adam([w], lr=0.05)

        def step(x):
            optimizer.zero_grad()
            loss = (FLOW[name](x * w) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss
        losses = ag.compile(step).repeat(60, x) if way == "repeat" else ag.stack([step(x).detach() for _ in range(60)])
        return seen(losses, w, optimizer)
    assert run("repeat") == run("eager")


def test_error_in_a_wall():
    """It reaches the caller, also from repeat; afterwards all goes on as in eager code."""
    fail = [False]

    def inside(x):
        if fail[0]:
            raise KeyError("in the wall")
        return x * 2

    def run(compiled):
        ag.manual_seed(1)
        w, shown = ag.randn(4, 4, requires_grad=True), []
        optimizer, wall = ag.optim.SGD([w], lr=0.1, momentum=0.9), ag.graph.wall(inside)

        def step(x):
            optimizer.zero_grad()
            loss = wall(x @ w).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        step = ag.compile(step) if compiled else step
        for k in range(14):
            fail[0] = k in (5, 9)
            if fail[0]:
                with pytest.raises(KeyError, match="in the wall"):
                    step.repeat(3, batch(k)[0]) if compiled and k == 9 else step(batch(k)[0])
                fail[0] = False
            else:
                shown.append(seen(step(batch(k)[0]), w, optimizer))
        return shown
    assert run(True) == run(False)


def test_wall_that_changes_its_shapes():
    size = [3]
    wall = ag.graph.wall(lambda x: ag.ones(size[0]) * x.sum())
    f = ag.compile(lambda x: wall(x) + 1)
    for _ in range(4):
        assert same_bytes(f(ag.ones(2)), ag.full((3,), 3.0))
    size[0] = 4
    with pytest.raises((RuntimeError, CaptureError), match="3|captured"):
        for _ in range(3):
            assert same_bytes(f(ag.ones(2)), ag.full((4,), 3.0))
            raise RuntimeError("captured anew")


# ---- Programs by themselves

def test_programs_of_samples_by_all_engines():
    """One form of every sample that can be captured."""
    used, refused = 0, 0
    for sample in SAMPLES[::3]:
        dtype = sample.dtypes[0]
        inputs = [ag.tensor(a) for a in sample.arrays(dtype)]
        try:
            program = ag.graph.capture(lambda *xs: sample.call(*xs), *inputs)
        except CaptureError:
            refused += 1
            continue
        expected = outputs(sample.call(*inputs))
        for engine in ENGINES:
            found = outputs(program.run(*inputs, engine=engine))
            assert all(same_bytes(a, b) for a, b in zip(found, expected, strict=True)), f"{sample.name}, {engine}\n{program}"
        used += 1
    assert used > 10 * refused


@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_programs_with_updates_by_all_engines(name):
    """Whole training steps as Programs: parameters, the optimizer's state and counters, dropout's random numbers."""
    found = {}
    for engine in ("eager", *ENGINES):
        step, model, optimizer = made(name, dropout=0.4)
        x, y = batch(0)
        shown = [seen(step(x, y)) for _ in range(2)]
        program = step if engine == "eager" else ag.compile(step)
        if engine != "eager":
            shown += [seen(program(x, y)) for _ in range(2)]
            program = program.program
        else:
            shown += [seen(step(x, y)) for _ in range(2)]
        for k in range(5):
            optimizer.param_groups[0]["lr"] *= 0.9
            x, y = batch(k)
            value = step(x, y) if engine == "eager" else program.run(x, y, engine=engine)
            shown.append(seen(*outputs(value)))
            if engine != "eager":
                continue
        found[engine] = shown, [p.detach().numpy().tobytes() for p in model.parameters()], seen(optimizer), seen(ag.rand(2))
    for engine in ENGINES:
        assert found[engine] == found["eager"], engine


def test_programs_with_random_numbers_by_all_engines():
    def f(x):
        return F.dropout(x, 0.5) + ag.randn(4), ag.randperm(6), ag.rand_like(x) * ag.bernoulli(ag.full((4,), 0.5)), ag.randint(0, 9, (3,))
    x = batch(0)[0]
    program = ag.graph.capture(f, x)
    found = []
    for run in (f, *[lambda x, e=e: program.run(x, engine=e) for e in ENGINES]):
        ag.manual_seed(6)
        found.append([seen(run(x)) for _ in range(3)] + seen(ag.rand(1)))
    assert all(f == found[0] for f in found[1:])


def test_a_program_too_deep_for_recursion():
    def chain(x):
        for _ in range(3000):
            x = -(x * 1.5)
        return x
    program = ag.graph.capture(chain, ag.ones(2))
    with pytest.raises(RecursionError, match="iterative"):
        program.run(ag.ones(2), engine="recursive")
    assert same_bytes(program.run(ag.ones(2), engine="iterative"), program.run(ag.ones(2)))
    with pytest.raises(ValueError, match="engine"):
        program.run(ag.ones(2), engine="magic")
    with pytest.raises(ValueError, match="input 0"):
        program.run(ag.ones(3))
    with pytest.raises(TypeError, match="inputs"):
        program.run()


def exported():
    """Programs and their inputs, from fixed seeds."""
    rng = np.random.default_rng(1)
    x, w, b = (ag.tensor(rng.normal(size=s).astype("f4")) for s in ((6, 4), (4, 3), (3,)))
    labels = ag.tensor(rng.integers(0, 3, 6))
    w.requires_grad_()
    functions = {
        "gradient": (lambda x, w: F.cross_entropy(x @ w + b, labels), (x, w), [w]),
        "chain": (lambda x: (x * 2 + b[0]).tanh().exp() / 3 - x.sigmoid(), (x,), None),
        "large": (lambda x: x.expand(400, 6, 4).reshape(-1).tanh() * 2 + 1, (x,), None),
        "reductions": (lambda x: [x.sum(0), x.max(1), {"std": x.std(), "arg": x.argmax(1)}], (x,), None),
        "numbers": (lambda x: (x * float("inf"), x + float("nan"), x * 1e-40 + 0.1), (x,), None),
        "integers": (lambda i: (i * 3 + 1, i.float(), x[i % 4]), (labels,), None),
    }
    return {name: (ag.graph.capture(f, *given, gradients=gradients), given) for name, (f, given, gradients) in functions.items()}


def flat_bytes(tree):
    found = []
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else [tree]:
        found += flat_bytes(part) if not isinstance(part, ag.Tensor) else [part.detach().numpy().tobytes().hex()]
    return found


CHILD = """
import sys, json
sys.path.insert(0, sys.argv[1])
import autograd_cy as ag
import test_replay_life as life
texts = json.load(sys.stdin)
found = {}
for name, (program, given) in life.exported().items():
    loaded = ag.graph.from_json(texts[name])
    assert loaded.fingerprint() == program.fingerprint(), name
    found[name] = [life.flat_bytes(loaded.run(*given, engine=e)) for e in ag.graph.ENGINES]
json.dump(found, sys.stdout)
"""


def test_files_in_another_process(tmp_path):
    import json
    programs = exported()
    texts = {name: program.to_json() for name, (program, _) in programs.items()}
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.dirname(ag.__file__)), *sys.path])}
    child = subprocess.run([sys.executable, str(script), os.path.dirname(__file__)], input=json.dumps(texts), capture_output=True, text=True,
                           env=environment, check=False)
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    for name, (program, given) in programs.items():
        expected = flat_bytes(program.run(*given))
        assert found[name] == [expected] * 3, name
        loaded = ag.graph.from_json(texts[name])
        assert loaded == program and hash(loaded) == hash(program)
        assert loaded.to_json() == texts[name]


def test_files_refuse_what_lives_in_python():
    step, _, _ = made()
    compiled = ag.compile(step)
    for _ in range(3):
        compiled(*batch(0))
    with pytest.raises(TypeError, match="saved"):
        compiled.program.to_json()
    with pytest.raises(ValueError, match="version"):
        ag.graph.from_json('{"version": 99}')


# ---- live graphs as Programs

RANDOM = settings(max_examples=60, deadline=None)


class Dice:
    """Random choices by arithmetic: those of the module random are refused inside a captured function."""

    def __init__(self, seed):
        self.state = seed

    def random(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 33) / 2 ** 31

    def randint(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def choice(self, options):
        return options[int(self.random() * len(options))]

    def sample(self, options, n):
        options = list(options)
        return [options.pop(int(self.random() * len(options))) for _ in range(n)]


@RANDOM
@given_these(st.integers(0, 10 ** 9), st.sampled_from(["float32", "float64"]))
def test_live_random_graphs(seed, dtype):
    """The Program of a live graph gives the values and gradients of that graph, by all engines."""
    leaves = new_leaves(seed % 1000, dtype)
    loss = random_graph(seed, leaves)
    value = ag.graph.of(loss)
    program = ag.graph.of(loss, gradients=True)
    loss.backward(retain_graph=True)
    by_first_use = nodes_of([loss])[1]
    assert {id(t) for t in by_first_use} == {id(t) for t in leaves if t.grad is not None}
    for engine in ENGINES:
        assert same_bytes(value.run(*by_first_use, engine=engine), loss)
        found, gradients = program.run(*by_first_use, engine=engine)
        assert same_bytes(found, loss)
        for leaf, g in zip(by_first_use, gradients, strict=True):
            assert same_bytes(g, leaf.grad), f"{engine}\n{program}"
    if any(b.kind == EXTERNAL for b in value.buffers):            # detach() left numbers of these leaves in the graph
        return
    fresh = new_leaves(seed % 1000 + 1, dtype)
    others = [fresh[next(k for k, t in enumerate(leaves) if t is leaf)] for leaf in by_first_use]
    again = random_graph(seed, fresh)
    assert same_bytes(value.run(*others), again)
    assert same_bytes(program.run(*others, engine="recursive")[0], again)


@RANDOM
@given_these(st.integers(0, 10 ** 9))
def test_compiled_random_graphs(seed):
    """The same graphs through compile, with gradients from inside and from outside."""
    plain = lambda *leaves: random_graph(0, leaves, Dice(seed))
    f = ag.compile(plain)
    inside = ag.compile(lambda *leaves: ag.autograd.grad(plain(*leaves), leaves, allow_unused=True, materialize_grads=True))
    for k in range(4):
        one, other = new_leaves(k), new_leaves(k)
        a, b = f(*one), plain(*other)
        a.backward()
        b.backward()
        assert same_bytes(a, b)
        assert all(same_bytes(x.grad, y.grad) for x, y in zip(one, other))
        assert all(same_bytes(g, ag.zeros_like(y) if y.grad is None else y.grad) for g, y in zip(inside(*new_leaves(k)), other))


# ---- passes left out

def wide(x, w, v):
    """Something for every pass."""
    t = (x * w + 1 * x - 0).tanh()
    u = (x * w + x).tanh() * ag.full((4,), 2.0).exp()
    return (t + u + t + u).T.T.sum(0) * (ag.ones(4) * 3), (v.exp() * v + v.sin()).sqrt().abs() * 0.5 + v


def run_with(**options):
    step, model, optimizer = made("sgd", dropout=0.3)
    step, f = ag.compile(step, **options), ag.compile(wide, **options)
    shown = []
    for k in range(6):
        shown.append(seen(step(*batch(k)), model, optimizer))
        x, w, v = batch(k)[0].requires_grad_(), batch(k + 50)[0], ag.tensor(np.random.default_rng(k).random(5000).astype("f4")).requires_grad_()
        a, b = f(x, w, v)
        (a.exp().sum() * 1e-3 + b.sum()).backward()
        shown.append(seen(a, b, x, v))
    shown.append(seen(step.repeat(20, *batch(0)), model, optimizer))
    return shown, len(f.program.instructions)


def eager_run():
    step, model, optimizer = made("sgd", dropout=0.3)
    shown = []
    for k in range(6):
        shown.append(seen(step(*batch(k)), model, optimizer))
        x, w, v = batch(k)[0].requires_grad_(), batch(k + 50)[0], ag.tensor(np.random.default_rng(k).random(5000).astype("f4")).requires_grad_()
        a, b = wide(x, w, v)
        (a.exp().sum() * 1e-3 + b.sum()).backward()
        shown.append(seen(a, b, x, v))
    shown.append(seen(ag.stack([step(*batch(0)).detach() for _ in range(20)]), model, optimizer))
    return shown


@pytest.mark.parametrize("without", [(), *[(name,) for name in PASSES], ("reuse",), (*PASSES, "reuse")], ids=str)
def test_without_passes(without):
    shown, instructions = run_with(without=without)
    assert shown == eager_run()
    if len(without) > 1:
        assert instructions > run_with()[1]


def test_fast_is_close():
    """Other rounding, the same numbers."""
    def numbers(entry):
        if isinstance(entry, bytes):
            return [np.frombuffer(entry, "f4").astype("f8")] if len(entry) % 4 == 0 else []
        return [n for e in entry for n in numbers(e)] if isinstance(entry, (list, tuple)) else []
    for a, b in zip(numbers(run_with(fast=True)[0]), numbers(eager_run()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_unknown_passes():
    with pytest.raises(ValueError, match="fuse"):
        ag.compile(wide, without=["magic"])


def test_show(capsys):
    f = ag.compile(wide, show=True)
    for k in range(3):
        f(batch(k)[0], batch(k)[0], ag.rand(5))
    text = capsys.readouterr().out
    assert "before simplify" in text and "after simplify" in text


# ---- what a wall may do

def test_a_wall_keeps_what_it_is_given():
    """Its arguments are its own: the memory of a replay is used again soon."""
    kept = []
    keep = ag.graph.wall(lambda x: kept.append(x))
    f = ag.compile(lambda x: (keep(x * 2), x.exp().sum())[1])
    for k in range(6):
        f(batch(k)[0])
    assert seen(*kept) == seen(*[batch(k)[0] * 2 for k in range(6)])


def test_a_wall_must_not_change_its_arguments():
    change = ag.graph.wall(lambda x: x.add_(1).sum())
    f = ag.compile(lambda x: change(x * 2))
    with pytest.raises(CaptureError, match="changes an argument"):
        f(ag.ones(2))


def test_a_wall_whose_gradients_go_elsewhere():
    """Captured with one parameter and run with another: an error instead of a missing gradient."""
    w, v, use = ag.ones(2, requires_grad=True), ag.ones(2, requires_grad=True), ["w"]
    wall = ag.graph.wall(lambda x: x * {"w": w, "v": v}[use[0]])
    f = ag.compile(lambda x: wall(x).sum())
    for _ in range(4):
        f(ag.ones(2)).backward()
    assert w.grad.tolist() == [4, 4]
    use[0] = "v"
    with pytest.raises(RuntimeError, match="other tensors"):
        f(ag.ones(2))
    use[0] = "w"
    f(ag.ones(2)).backward()
    assert w.grad.tolist() == [5, 5]


def test_a_branch_without_a_gradient():
    """No gradient is not a gradient of zero."""
    w = ag.ones(2, requires_grad=True)
    f = ag.compile(lambda x: ag.graph.cond(x.sum() > 0, lambda y: y * 2, lambda y: y.detach() * 3, (x * w,)).sum())
    for _ in range(3):
        f(ag.ones(2)).backward()
    with pytest.raises(RuntimeError, match="gradients"):
        f(-ag.ones(2))


def test_a_graph_from_before_a_wall():
    w = ag.ones(2, requires_grad=True)
    y = w * 3
    wall = ag.graph.wall(lambda x: x * y)
    with pytest.raises(CaptureError, match="before"):
        ag.compile(lambda x: wall(x))(ag.ones(2))


def test_calls_on_results_in_repeat():
    """Results of many runs lie one after another: calls read and write the one of their run."""
    x = batch(0)[0]

    def run(way):
        ag.manual_seed(8)
        w, log = ag.randn(4, requires_grad=True), []
        show, twice = ag.graph.wall(lambda v: log.append(v.item())), ag.graph.wall(lambda v: v * 2)

        def step(x):
            w.grad = None
            loss = (x * w).square().mean()
            show(loss)
            loss.backward()
            with ag.no_grad():
                w.sub_(w.grad, alpha=0.1)
            return loss, ag.rand(3), twice(w.detach()), ag.randperm(5)
        if way == "repeat":
            return seen(ag.compile(step).repeat(30, x)), seen(w), log
        results = [step(x) for _ in range(30)]
        return seen(tuple(ag.stack([r[k].detach() for r in results]) for k in range(4))), seen(w), log
    assert run("repeat") == run("eager")
