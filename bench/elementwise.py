"""Eight cheap elementwise operations in a row on 10,000 to 10,000,000 numbers: one after the other, and fused into blocks that stay
in the cache. Once on one tensor, and once on three, where less is saved: each has to come from memory.

Relies on the package, timing and report; the command line relies on it.
"""

import numpy as np

import autograd_cy as ag

from . import peers, report, timing

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
TOLERANCE = 1e-5


def of_one(x):
    """The operations on one tensor of any library and numbers."""
    y = x * 0.7
    y = y + 0.1
    y = abs(y)
    y = y - x
    y = y * y
    y = y * 0.5
    y = y + 1.5
    return y.relu()


def of_three(x, a, b):
    """The operations on three tensors."""
    y = x * a
    y = y + b
    y = y * 0.5
    y = abs(y)
    y = y - x
    y = y * y
    y = y + 1.5
    return y.relu()


CHAINS = {"one tensor": of_one, "three tensors": of_three}


def ways(args):
    """{name: (library, what becomes of a function)}."""
    made = {"eager": (ag, lambda f: f), "replay": (ag, ag.compile)}
    torch = peers.libraries(ag, args.peers).get("PyTorch")
    if torch is not None:
        from .peers.pytorch import compiles
        made["PyTorch"] = (torch, lambda f: f)
        if compiles():
            made["torch.compile"] = (torch, torch.compile)
    return made


def measure(chain, functions, arrays, rounds):
    """({way: microseconds}, complaints) of one chain on these arrays."""
    best, values, statements, found = {}, {}, {}, []
    for name, (lib, function) in functions.items():
        tensors = [lib.tensor(array) for array in arrays[:CHAINS[chain].__code__.co_argcount]]
        names = {f"t{k}": tensor for k, tensor in enumerate(tensors)}
        for _ in range(3):                       # captures and compilations
            values[name] = function(*tensors).numpy()
        statements[name] = timing.Statement(f"f({', '.join(names)})", {"f": function, **names})
    for _, name in timing.interleaved(statements, rounds):
        best[name] = min(best.get(name, float("inf")), statements[name].sample() / 1e3)
    if values["replay"].tobytes() != values["eager"].tobytes():
        found.append(f"elementwise: {chain}: replay and eager give other bits on {arrays[0].size:,} numbers")
    for name, value in values.items():
        if not np.allclose(value, values["eager"], rtol=TOLERANCE, atol=TOLERANCE):
            found.append(f"elementwise: {chain}: {name} disagrees on {arrays[0].size:,} numbers")
    return best, found


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    rows, results, found, drawings = [], [], [], []
    made, random, dtype = ways(args), np.random.default_rng(0), args.dtypes[0]
    sizes = [size for size in SIZES if size <= 10 * args.largest]
    for chain, function in CHAINS.items():
        functions = {name: (lib, wrap(function)) for name, (lib, wrap) in made.items()}
        lines = {name: [] for name in made}
        for size in timing.bar(sizes, f"elementwise {dtype}"):
            arrays = [np.asarray(random.standard_normal(size), dtype) for _ in range(3)]
            best, wrong = measure(chain, functions, arrays, args.rounds)
            found += wrong
            for name, took in best.items():
                lines[name].append((size, took))
                results.append({"benchmark": "elementwise", "dtype": dtype, "chain": chain, "size": size, "column": name, "us": took})
            ratio = best.get("PyTorch", best["eager"]) / best["replay"]
            rows.append([f"{chain}, {size:,}", *(report.number(took) for took in best.values()), f"{ratio:.2f}"])
        drawings.append({"title": f"Eight elementwise operations on {chain}, {dtype}", "lines": lines})
    report.heading(f"Eight cheap elementwise operations, {dtype}, us, minimum of {args.rounds} rounds, not recorded")
    report.table(["", *made, f"replay x faster than {'PyTorch' if 'PyTorch' in made else 'eager'}"], rows)
    return results, found, drawings
