"""Eight cheap elementwise operations in a row on 10,000 to 10,000,000 numbers: one after the other, and fused into blocks that stay
in the cache.

Relies on the package, timing and report; the command line relies on it.
"""

import numpy as np

import autograd_cy as ag

from . import report, timing

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
TOLERANCE = 1e-5


def eight(x, a, b):
    """The operations, for tensors of any library."""
    y = x * a
    y = y + b
    y = y * 0.5
    y = abs(y)
    y = y - x
    y = y * y
    y = y + 1.5
    return y.relu()


def columns(args):
    """{name: (library, what is called)}."""
    made = {"eager": (ag, eight), "replay": (ag, ag.compile(eight))}
    if args.peers:
        try:
            import torch
        except ImportError:
            print("peer skipped: torch is not installed")
            return made
        from .peers.pytorch import compiles
        torch.set_num_threads(1)
        made["PyTorch"] = (torch, eight)
        if compiles():
            made["torch.compile"] = (torch, torch.compile(eight))
    return made


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    rows, results, found = [], [], []
    ways, random, dtype = columns(args), np.random.default_rng(0), args.dtypes[0]
    sizes = [size for size in SIZES if size <= 10 * args.largest]
    for size in timing.bar(sizes, f"elementwise {dtype}"):
        arrays = [np.asarray(random.standard_normal(size), dtype) for _ in range(3)]
        best, values, statements = {}, {}, {}
        for name, (lib, function) in ways.items():
            x, a, b = (lib.tensor(array) for array in arrays)
            for _ in range(3):                       # captures and compilations
                values[name] = function(x, a, b).numpy()
            statements[name] = timing.Statement("f(x, a, b)", {"f": function, "x": x, "a": a, "b": b})
        for _, name in timing.interleaved(statements, args.rounds):
            best[name] = min(best.get(name, float("inf")), statements[name].sample() / 1e3)
        if values["replay"].tobytes() != values["eager"].tobytes():
            found.append(f"elementwise: replay and eager give other bits on {size:,} numbers")
        for name, value in values.items():
            if not np.allclose(value, values["eager"], rtol=TOLERANCE, atol=TOLERANCE):
                found.append(f"elementwise: {name} disagrees on {size:,} numbers")
        results += [{"benchmark": "elementwise", "dtype": dtype, "size": size, "column": name, "us": took} for name, took in best.items()]
        reference = best.get("PyTorch", best["eager"])
        rows.append([f"{size:,}", *(report.number(took) for took in best.values()), f"{reference / best['replay']:.2f}"])
    report.heading(f"Eight cheap elementwise operations, {dtype}, us, minimum of {args.rounds} rounds, not recorded")
    report.table(["numbers", *ways, f"replay x faster than {'PyTorch' if 'PyTorch' in ways else 'eager'}"], rows)
    lines = {name: [(r["size"], r["us"]) for r in results if r["column"] == name] for name in ways}
    return results, found, [{"title": f"Eight elementwise operations, {dtype}", "lines": lines}]
