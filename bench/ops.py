"""Nanoseconds per operation: not recorded, recorded and freed, and backward per node, on small shapes.

Relies on the package, timing and report; the command line relies on it. A statement such as `x * a` runs in a compiled loop
whose own cost is measured and subtracted; its result is dropped at once, so that the time includes freeing it.
"""

import gc
from time import perf_counter

import numpy as np

import autograd_cy as ag

from . import peers, report, timing

SHAPES = ((), (8,), (4, 4), (32, 32))
CHAIN = 400      # nodes of the chain that backward is measured on

# Statements over x (positive values; records when it requires grad), a (the same shape, no grad) and lib.
# {x} stands for what is differentiated, so that the same text makes a chain: y = {y} * a, y = {y} * a ...
OPERATIONS = {
    "add": "{x} + a",
    "sub": "{x} - a",
    "mul": "{x} * a",
    "mul by a number": "{x} * 1.001",
    "div": "{x} / a",
    "pow 2": "{x} ** 2",
    "exp": "lib.exp({x})",
    "log": "lib.log({x})",
    "sqrt": "lib.sqrt({x})",
    "tanh": "lib.tanh({x})",
    "sigmoid": "lib.sigmoid({x})",
    "relu": "lib.relu({x})",
    "maximum": "lib.maximum({x}, a)",
    "where": "lib.where(mask, {x}, a)",
    "sum": "{x}.sum()",
    "mean": "{x}.mean()",
    "matmul": "{x} @ a",
    "transpose": "{x}.transpose(0, -1)",
    "reshape": "{x}.reshape(-1)",
    "getitem [0]": "{x}[0]",
    "softmax": "lib.softmax({x}, -1)",
    "cat": "lib.cat(({x}, a))",
}
# Those whose result feeds the next without leaving the numbers' range.
CHAINED = ("add", "sub", "mul", "mul by a number", "div", "sqrt", "tanh", "sigmoid", "relu", "maximum", "where", "matmul",
           "transpose", "softmax")


def operands(lib, shape, dtype, requires_grad):
    """The names that the statements use: values near 1, so that long chains stay finite."""
    random = np.random.default_rng(0)
    x = lib.tensor(np.asarray(random.uniform(0.9, 1.1, shape), dtype))
    if requires_grad:
        x.requires_grad_(True)
    a = np.asarray(random.uniform(0.99, 1.01, shape), dtype)
    if len(shape) == 2:
        a = a / shape[0]      # the product of two such matrices keeps its size
    return {"lib": lib, "x": x, "a": lib.tensor(a), "mask": lib.tensor(np.asarray(random.uniform(0, 1, shape) > 0.5))}


def result(text, names):
    """What the statement gives; None where it does not run on this shape at all (a matmul of two numbers)."""
    try:
        return eval(text.format(x="x"), dict(names))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return None


def chain(text, names):
    """A function that builds a chain of CHAIN nodes of one operation and returns its end."""
    code = f"def build(y, a, mask, lib):\n    for _ in range({CHAIN}):\n        y = {text.format(x='y')}\n    return y\n"
    space = {}
    exec(code, space)
    return lambda: space["build"](names["x"], names["a"], names["mask"], names["lib"])


def backward_ns(lib, text, names, options, times=5):
    """Nanoseconds of backward per node of a chain; freeing the graph is not part of it."""
    build, best = chain(text, names), float("inf")
    for _ in range(times):
        end = build()
        seed = lib.ones_like(end)
        start = perf_counter()
        end.backward(seed, retain_graph=True, **options)
        best = min(best, (perf_counter() - start) / CHAIN * 1e9)
        names["x"].grad = None
    return best


def measure(lib, name, text, shape, dtype, engines, rounds):
    """{measurement: ns} of one operation on one shape, minima over the rounds; {} where it does not apply."""
    plain, recorded = (operands(lib, shape, dtype, grad) for grad in (False, True))
    once = result(text, plain)
    if once is None:
        return {}
    chained = name in CHAINED and tuple(once.shape) == shape
    statements = {"not recorded": timing.Statement(text.format(x="x"), plain),
                  "recorded and freed": timing.Statement(text.format(x="x"), recorded)}
    overhead = timing.loop_overhead()
    found = {}
    for _ in range(rounds):
        for kind, statement in statements.items():
            found[kind] = min(found.get(kind, float("inf")), statement.sample() - overhead)
        if chained:
            for engine, options in engines.items():
                kind = f"backward, {engine}" if engine else "backward"
                found[kind] = min(found.get(kind, float("inf")), backward_ns(lib, text, recorded, options))
    return found


def libraries(args):
    """{label: (library, {engine: options of backward})}."""
    engines = {name: {"engine": name} for name in args.engines if name in ("recursive", "iterative")} or {"iterative": {}}
    return {label: (lib, engines if lib is ag else {"": {}}) for label, lib in peers.libraries(ag, args.peers).items()}


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    if args.all_ops:
        from . import ops_all
        return ops_all.run(args)
    results = []
    dtype = args.dtypes[0]
    todo = [(shape, name) for shape in SHAPES for name in OPERATIONS]
    figures = {}
    chosen = libraries(args)
    gc.collect()
    gc.disable()      # as timeit does: whose turn a collection falls into is chance
    for shape, name in timing.bar(todo, f"ops {dtype}"):
        for label, (lib, engines) in chosen.items():
            found = measure(lib, name, OPERATIONS[name], shape, dtype, engines, args.rounds)
            figures[shape, name, label] = found
            results += [{"benchmark": "ops", "library": label, "dtype": dtype, "operation": name, "shape": list(shape),
                         "measurement": kind, "ns": value} for kind, value in found.items()]
    gc.enable()
    report.heading(f"ns per operation, {dtype}, minimum of {args.rounds} rounds; the loop's "
                   f"{timing.loop_overhead():.1f} ns per iteration are subtracted")
    labels = list(chosen)
    kinds = list(dict.fromkeys((label, kind) for (_, _, label), found in figures.items() for kind in found))
    kinds.sort(key=lambda pair: labels.index(pair[0]))
    rows = []
    for shape, name in todo:
        values = [figures[shape, name, label].get(kind) for label, kind in kinds]
        if any(value is not None for value in values):
            rows.append([f"{name}  {shape}", *(report.number(value) for value in values)])
    report.table(["", *(kind if label == "autograd_cy" else f"{label}: {kind}" for label, kind in kinds)], rows)
    return results, [], []
