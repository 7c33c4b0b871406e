"""What the training benchmarks share: the description of a training, its columns, the rounds and the check that all agree.

Relies on timing, report and NumPy. iris, xor, mlp, synthetic and the peers describe themselves in its terms.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import report, timing

EAGER = ("recursive", "iterative", "restricted")      # engines that go back from each loss
COMPILED = ("optimised", "replay")                    # the captured step: called from Python at every epoch, or repeated at once
ENGINES = (*EAGER, *COMPILED)


@dataclass(frozen=True)
class Training:
    """One network, its data and its start, in plain NumPy: every column trains exactly this."""

    name: str
    title: str
    epochs: int
    lr: float
    x: np.ndarray
    y: np.ndarray
    weights: tuple                                # the common start, float64
    evaluate: Callable                            # weights -> (loss, accuracy), in float64
    verdict: Callable                             # (loss, accuracy) of a whole training -> complaint or None
    tolerance: float = 1e-3                       # how far two columns' final losses may lie apart
    notes: tuple = ()

    def arrays(self, dtype):
        """Fresh copies of x, y and the weights in one dtype; labels stay integers."""
        y = np.array(self.y) if self.y.dtype.kind == "i" else np.array(self.y, dtype)
        return np.array(self.x, dtype), y, [np.array(w, dtype) for w in self.weights]


@dataclass(frozen=True)
class Column:
    """One way to run a training. `start(training, dtype)` returns `run(epochs)`, which trains on from where it stands
    and returns the weights as NumPy arrays; everything before the first `run` (building, compiling) is not timed."""

    name: str
    start: Callable
    writing: str = "fused"                        # the peer's row that is the same program: "fused" or "op by op"
    engine: str = ""
    cold: bool = False                            # the capture is part of what is timed
    published: float = 0.0                        # us per epoch in the article (iris.py), shown beside
    baseline: str = ""                            # "limit" or "pytorch": what ratios are taken to
    available: Callable | None = None             # asked once whether it works here
    evaluate: Callable | None = None              # (training, result of run) -> (loss, accuracy), for another network;
                                                  # such a column starts elsewhere, too, so its loss is not compared

    def result(self, training, trained):
        if self.evaluate:
            return self.evaluate(training, trained)
        return training.evaluate([np.asarray(w, np.float64) for w in trained])


@dataclass
class Outcome:
    """One column's timings (us per epoch, one per round) and where its training ended."""

    column: Column
    times: list = field(default_factory=list)
    bits: bytes = b""                             # the trained weights
    loss: float = float("nan")
    accuracy: float = float("nan")


def options(engine, weights):
    """What backward() is called with for an engine; the iterative one is the default."""
    if engine in ("", "iterative", *COMPILED):
        return {}
    return {"engine": "iterative", "inputs": weights} if engine == "restricted" else {"engine": engine}


def supervised(optimizer, criterion, forward, going_back):
    """train(steps, x, y) of `driven`: the loop of an ordinary training."""
    def train(steps, x, y):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = criterion(forward(x), y)
            loss.backward(**going_back) if going_back else loss.backward()        # ** costs 0.2 us
            optimizer.step()
        return loss
    return train


def driven(lib, train, batch, weights, optimizer=None, engine="", cold=False, warm=False):
    """run(epochs) of a training by train(epochs, *batch), a loop as a script has it, in a library with PyTorch's names.

    Engines for compiled steps get a function of one step. Unless `cold`, a step is captured here; a library that compiles functions
    inside of the step does that here, too (`warm`). Both train a little: then everything goes back to where it was.
    """
    def step(*batch):
        return train(1, *batch)

    compiled = lib.compile(step) if engine in COMPILED else step
    if warm or engine in COMPILED and not cold:
        start = [w.detach().clone() for w in weights]
        for _ in range(3):
            compiled(*batch)
        with lib.no_grad():
            for weight, value in zip(weights, start, strict=True):
                weight.copy_(value)
            for state in optimizer.state.values() if optimizer else ():
                for name in state:
                    state[name] = state[name].zero_() if hasattr(state[name], "zero_") else 0

    def run(epochs):
        if engine == "replay":
            compiled.repeat(epochs, *batch)
        elif engine in COMPILED:
            for _ in range(epochs):
                compiled(*batch)
        else:
            train(epochs, *batch)
        return [w.detach().numpy() for w in weights]
    return run


def ways(start, engines, name="autograd_cy", **more):
    """The columns of autograd_cy: start(engine, cold) gives one's `start`."""
    made = [Column(f"{name}, {engine}", start(engine, False), engine=engine, **more) for engine in engines]
    if "replay" in engines:
        made.append(Column(f"{name}, replay and its capture", start("replay", True), engine="replay", cold=True, **more))
    return made


def measure(training, columns, dtype, epochs, rounds):
    """Train every column from the same start in interleaved rounds; returns {name: Outcome}."""
    outcomes = {column.name: Outcome(column) for column in columns}
    schedule = list(timing.interleaved(outcomes, rounds))
    for _, name in timing.bar(schedule, f"{training.name} {dtype}"):
        column = outcomes[name].column
        gc.collect(1)                             # a full one would also empty Python's own free lists
        column.start(training, dtype)(min(20, epochs))          # caches, free lists and lazily bound BLAS are warm for everyone
        took, trained = timing.clocked(column.start(training, dtype), epochs)
        outcomes[name].times.append(took / epochs * 1e6)
        outcomes[name].loss, outcomes[name].accuracy = column.result(training, trained)
        outcomes[name].bits = b"".join(np.asarray(w).tobytes() for w in trained) if column.engine else b""
    return outcomes


def complaints(training, outcomes, epochs):
    """What is wrong with the results: columns that disagree, or a whole training that ended where it should not."""
    checked = [o for o in outcomes.values() if o.column.evaluate is None]
    found = []
    if checked:
        low, high = min(checked, key=lambda o: o.loss), max(checked, key=lambda o: o.loss)
        if not high.loss - low.loss <= training.tolerance:          # NaN must fail, too
            found.append(f"{training.name}: the columns disagree: {low.column.name} ends at loss {low.loss:.6g}, "
                         f"{high.column.name} at {high.loss:.6g} (tolerance {training.tolerance:g})")
    first = {}
    for outcome in outcomes.values():
        same = first.setdefault(outcome.column.writing, outcome) if outcome.column.engine else outcome
        if outcome.bits != same.bits:
            found.append(f"{training.name}: {outcome.column.name} and {same.column.name} end at other bits")
    if epochs == training.epochs:
        for outcome in checked:
            complaint = training.verdict(outcome.loss, outcome.accuracy)
            if complaint:
                found.append(f"{training.name}: {outcome.column.name}: {complaint}")
    return found


def curve(training, column, dtype, epochs, points=200):
    """(epochs, losses) of one column: an untimed training, evaluated between pieces."""
    run = column.start(training, dtype)
    done, at, losses = 0, [0], [training.evaluate(training.weights)[0]]
    for stop in np.unique(np.geomspace(1, epochs, points).astype(int)):
        trained = run(int(stop) - done)
        done = int(stop)
        at.append(done)
        losses.append(column.result(training, trained)[0])
    return at, losses


def table(training, outcomes):
    """The rows of the table, and its notes."""
    best = {name: min(o.times) for name, o in outcomes.items()}
    limit = next((best[n] for n, o in outcomes.items() if o.column.baseline == "limit"), None)
    torch = {o.column.writing: best[n] for n, o in outcomes.items() if o.column.baseline == "pytorch"}
    published = any(o.column.published for o in outcomes.values())
    header = ["", "us/epoch min", "median", "x limit"] + ["x faster than PyTorch"] * bool(torch)
    header += ["article, us"] * published + ["final loss", "accuracy"]
    rows = []
    for name, outcome in outcomes.items():
        times = timing.spread(outcome.times)
        row = [name, report.number(times["min"]), report.number(times["median"])]
        row.append(f"{times['min'] / limit:.2f}" if limit else "-")
        if torch:
            reference = torch.get(outcome.column.writing, torch.get("fused"))
            row.append(report.number(reference / times["min"]))
        if published:
            row.append(report.number(outcome.column.published) if outcome.column.published else "")
        loss = f"{outcome.loss:.4f}" if outcome.loss >= 0.01 else f"{outcome.loss:.2e}"
        rows.append([*row, loss + (" *" if outcome.column.evaluate else ""), f"{outcome.accuracy:.3f}"])
    return header, rows


def records(training, outcomes, dtype, epochs):
    """The results for --json."""
    return [{"benchmark": training.name, "dtype": dtype, "epochs": epochs, "column": outcome.column.name,
             "us_per_epoch": outcome.times, **timing.spread(outcome.times), "loss": outcome.loss, "accuracy": outcome.accuracy}
            for outcome in outcomes.values()]


def run(training, columns, args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    epochs = args.epochs or training.epochs
    results, found, drawings = [], [], []
    for dtype in args.dtypes:
        outcomes = measure(training, columns, dtype, epochs, args.rounds)
        report.heading(f"{training.title}, {epochs} epochs, {dtype}, {args.rounds} rounds")
        report.table(*table(training, outcomes))
        found += complaints(training, outcomes, epochs)
        results += records(training, outcomes, dtype, epochs)
        if args.plot:
            curves = {o.column.name: curve(training, o.column, dtype, epochs) for o in outcomes.values()
                      if o.column.engine and not o.column.cold or o.column.baseline == "limit"}
            drawings.append({"title": f"{training.title}, {dtype}", "curves": curves,
                             "times": {name: o.times for name, o in outcomes.items()}})
        for outcome in outcomes.values():
            if outcome.column.cold:
                print(f"{outcome.column.name}: {min(outcome.times) * epochs / 1e3:.2f} ms for all {epochs} epochs")
    for note in training.notes:
        print(note)
    if any(column.evaluate for column in columns):
        print("* another network (it always has biases) from another start: its loss is not compared")
    return results, found, drawings
