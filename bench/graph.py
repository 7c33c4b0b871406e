"""Large graphs, per engine: building, differentiating and freeing them, and the memory they take.

Relies on the package, timing and report; the command line relies on it. Every figure comes from a process of its own, so that
one graph's memory is not another's. `python -m bench.graph LIBRARY GRAPH SIZE ENGINE` is that process.
"""

import gc
import json
import subprocess
import sys

from . import report, timing
from .training import EAGER

LADDER = 60
FAN_OUT = 100_000
FASTEST = 20      # a small graph is measured this often in its process, a large one once


def peak_memory():
    """Peak resident bytes of this process. VmHWM starts anew with the program; ru_maxrss keeps the parent's."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def build_chain(x, a, size):
    """size products, one after the other."""
    y = x
    for _ in range(size):
        y = y * a
    return y


def build_ladder(x, a, size):
    """t = t + t: 2 ** size paths through `size` nodes."""
    for _ in range(size):
        x = x + x
    return x


def build_fan_out(x, a, size):
    """One leaf used by `size` products, summed in a balanced tree."""
    return sum_in_tree([x * a for _ in range(size)])


def sum_in_tree(level):
    """Sums of pairs, sums of these, and so on."""
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [left + right for left, right in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


GRAPHS = {"chain": build_chain, "ladder": build_ladder, "fan-out": build_fan_out}


def expected(graph, size):
    """The gradient of the end with respect to x = 1, where a = 1."""
    if graph == "ladder":
        return 2.0 ** size
    return float(size) if graph == "fan-out" else 1.0


def nodes(graph, size):
    return 2 * size - 1 if graph == "fan-out" else size


def worker(library, graph, size, engine):
    """Measure one graph in this process; returns the figures."""
    lib = __import__(library)
    if library == "torch":
        lib.set_num_threads(1)
    bare = peak_memory()
    a = lib.ones(4, 4) if graph == "chain" else lib.tensor(1.0, dtype=lib.float64)
    x = lib.ones_like(a).requires_grad_(True)
    options = {} if engine == "default" else {"engine": "iterative" if engine == "restricted" else engine}
    if engine == "restricted":
        options["inputs"] = [x]
    seed = lib.ones_like(a)
    build, count = GRAPHS[graph], max(1, min(FASTEST, 200_000 // size))
    best = {"build": float("inf"), "backward": float("inf"), "free": float("inf")}
    for _ in range(count):
        x.grad = None
        took, end = timing.seconds(build, x, a, size)
        best["build"] = min(best["build"], took)
        try:
            took, _ = timing.seconds(end.backward, seed.clone(), True, **options)
        except RecursionError:
            return {"error": "RecursionError"}
        best["backward"] = min(best["backward"], took)
        if float(x.grad.reshape(-1)[0]) != expected(graph, size):
            return {"error": f"wrong gradient: {float(x.grad.reshape(-1)[0])}"}
        holder = [end]
        del end
        took, _ = timing.seconds(holder.clear)
        best["free"] = min(best["free"], took)
    return {**best, "peak": peak_memory(), "bare": bare}


def in_process(library, graph, size, engine):
    """worker() in a fresh process; a crash becomes an error in the table."""
    command = [sys.executable, "-m", "bench.graph", library, graph, str(size), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return {"error": f"killed by signal {-done.returncode}"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:60]}
    return json.loads(done.stdout.splitlines()[-1])


def milliseconds(value):
    return "-" if value is None else f"{value * 1e3:,.3f}" if value < 0.01 else f"{value * 1e3:,.1f}"


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    sizes = [size for size in (500, 1_000, 10_000, 100_000, 1_000_000) if size <= args.largest]
    graphs = [("chain", size) for size in sizes] + [("ladder", LADDER), ("fan-out", min(FAN_OUT, args.largest))]
    who = [("autograd_cy", engine) for engine in args.engines if engine in EAGER]
    if args.peers:
        import importlib.util
        if importlib.util.find_spec("torch"):
            who.append(("torch", "default"))
        else:
            print("peer skipped: torch is not installed")
    todo = [(graph, size, library, engine) for graph, size in graphs for library, engine in who]
    rounds = min(args.rounds, 3)
    best = {}
    for _, (graph, size, library, engine) in timing.bar(list(timing.interleaved(todo, rounds)), "graphs"):
        found = in_process(library, graph, size, engine)
        before = best.get((graph, size, library, engine), found)
        best[graph, size, library, engine] = found if "error" in found else {
            key: min(value, before.get(key, value)) for key, value in found.items()}
    report.heading(f"Large graphs, ms and MB, minimum of {rounds} processes; memory above the bare import")
    rows, results, complaints = [], [], []
    for graph, size, library, engine in todo:
        found = best[graph, size, library, engine]
        label = f"{graph} {size:,}  {'PyTorch' if library == 'torch' else engine}"
        results.append({"benchmark": "graph", "graph": graph, "size": size, "library": library, "engine": engine, **found})
        if "error" in found:
            rows.append([label, found["error"], *[""] * 5])
            if (engine, found["error"]) != ("recursive", "RecursionError"):
                complaints.append(f"graph: {label}: {found['error']}")
            continue
        total = sum(found[key] for key in ("build", "backward", "free"))
        rows.append([label, *(milliseconds(found[key]) for key in ("build", "backward", "free")),
                     report.number(total / nodes(graph, size) * 1e9),
                     f"{(found['peak'] - found['bare']) / 1e6:,.1f}", f"{found['peak'] / 1e6:,.0f}"])
    report.table(["", "build", "backward", "free", "ns per node", "memory", "whole process"], rows)
    return results, complaints, []


if __name__ == "__main__":
    gc.collect()
    print(json.dumps(worker(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])))
