"""What it costs to have the library: the time of an import in a fresh process, and the size of the installed files.

Relies on timing and report; the command line relies on it. The package is imported in processes of its own only.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from . import report, timing

SOURCES = (".c", ".cpp", ".h", ".pyx", ".pyc")      # not installed, or made by Python itself
ROUNDS = 7


def process(statement):
    """Seconds of a whole Python process that runs one statement."""
    start = perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return perf_counter() - start


def installed_size(package):
    """Bytes of a package's files."""
    root = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and path.suffix not in SOURCES)


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    peers = ("torch", "jax", "autograd", "sklearn") if args.peers else ()
    packages = ["autograd_cy", *filter(importlib.util.find_spec, peers)]
    statements = {"python": "pass", "numpy": "import numpy", **{name: f"import {name}" for name in packages}}
    rounds = max(ROUNDS, args.rounds)
    times = {name: [] for name in statements}
    for _, name in timing.bar(list(timing.interleaved(statements, rounds)), "imports"):
        times[name].append(process(statements[name]))
    report.heading(f"Import in a fresh process, ms, minimum of {rounds}; size of the package's own files, MB")
    numpy = min(times["numpy"])
    rows, results = [], []
    for name, values in times.items():
        least = min(values)
        size = installed_size(name) if name in packages else None
        results.append({"benchmark": "import", "package": name, "seconds": values, "min": least, "bytes": size})
        rows.append([name, f"{least * 1e3:.0f}", f"{(least - numpy) * 1e3:+.0f}" if name in packages else "",
                     f"{size / 1e6:.1f}" if size else ""])
    report.table(["", "whole process", "above NumPy", "size"], rows)
    return results, [], []
