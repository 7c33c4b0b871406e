"""Every row of the table: nanoseconds of a small call that is recorded, milliseconds at 10^6 elements, forward and backward; with
--peers PyTorch's beside them (one thread, rounds interleaved, minima), and a reason wherever we are slower.

Relies on tests/samples.py (the first sample of a row stands for it, so a new row is here without a line) and tests/programs.py,
bench/timing.py and bench/report.py. ops.py calls it.
"""

import gc
import inspect
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import autograd_cy as ag
from autograd_cy.ops import TABLE

from . import peers, report, timing

ELEMENTS = 1_000_000
SLOWER = 1.1             # below this ratio it is the noise of two minima

# Why a row may be slower than PyTorch: (row, measurement) or row -> the reason. tests/test_bench.py: no reason without its row.
OWN_MEMORY = "every gradient has memory of its own; PyTorch hands out the incoming one (by backward() it copies, too: half its time)"
SAME_BITS = "no fused multiply-adds, so that every instruction-set level gives the same bits"
TAILS = "a few instructions more: results down to subnormal numbers, limits at infinity, gradients of 0 stay 0"
IN_DOUBLE = "series and exponential in double whatever the dtype, so that the result is rounded once"
ZERO_TIMES = "the incoming gradient is read, to be multiplied by 0"
MEMORY = "memory sets it, and the minima of two allocators: within the cache the loop is level"
REASONS = {
    **dict.fromkeys([(name, "backward") for name in ("ceil", "floor", "round", "trunc")], ZERO_TIMES),
    **dict.fromkeys([(name, "forward") for name in ("maximum", "minimum", "amin")], MEMORY),
    ("add", "backward"): OWN_MEMORY, ("clone", "backward"): OWN_MEMORY, ("frac", "backward"): OWN_MEMORY, ("stack", "backward"): OWN_MEMORY,
    "matrix_exp": "products by SciPy's OpenBLAS, where PyTorch has Intel's",
    ("sum", "backward"): "the gradient is written out; PyTorch's is a view that repeats one element, until backward() copies it",
    ("prod", "backward"): "without a division, so that it is exact where elements are 0, and where the product overflows: two passes",
    ("exp2", "forward"): SAME_BITS, ("logsigmoid", "backward"): TAILS, ("gelu", "backward"): TAILS, ("silu", "forward"): TAILS,
    ("silu", "backward"): TAILS,
    ("nan_to_num", "forward"): "three choices, where PyTorch has one for all numbers that stay",
    ("erfinv", "forward"): "in float64 PyTorch calls Intel's library; here erf, exp and a step of Halley's method",
    ("i1e", "forward"): IN_DOUBLE, ("log_ndtr", "backward"): IN_DOUBLE,
    ("logit", "backward"): "the limits are compared with every element once more, so that the gradient beyond them is 0",
    ("polygamma", "forward"): "any order, by Hurwitz's zeta function; orders 0 and 1 have their own loops",
    ("convolution_input", "forward"): "own products of tiles, 70 to 80 of 105 GFlops",
    ("mode", "forward"): "sorting sets it",
    ("pdist", "forward"): "compiled for every processor: half a vector",
    ("sampled", "small"): "the weights of grid_sample's pixels are a dozen operations, of which each may be differentiated",
}


def direct(call, lib):
    """(expression over `f` and `tensors`, f): a sample's call without the lookups that the table of samples makes."""
    known = inspect.getclosurevars(call).nonlocals if hasattr(call, "__code__") else {}
    if "path" in known:
        f = lib
        for part in known["path"].split("."):
            f = getattr(f, part)
        keywords = "".join(f", {k}={v!r}" for k, v in known["attributes"].items())
        return "f({tensors}" + keywords + ")", f
    if set(known) >= {"name", "args", "attributes"} and all(isinstance(v, (int, float, tuple, type(None))) for v in known["args"]):
        more = [*(repr(v).replace("inf", "1e999") for v in known["args"]), *(f"{k}={v!r}" for k, v in known["attributes"].items())]
        return f"{{first}}.{known['name']}({', '.join(more)})", None
    return "f({tensors})", call


def statement(sample, lib, tensors):
    """The sample's call in a measuring loop."""
    text, f = direct(sample.call, lib)
    names = {f"t{k}": t for k, t in enumerate(tensors)}
    if "{first}" in text and len(tensors) > 1:
        text, f = "f({tensors})", sample.call
    text = text.format(tensors=", ".join(names), first="t0")
    return timing.Statement(text, {"f": f, **names})


def enlarged(sample):
    """Shapes of which the largest has 10^6 elements: every size above 1 becomes the same. None where there is no such shape."""
    dims = max((sum(n > 1 for n in shape) for shape, _ in sample.inputs), default=0)
    if dims == 0:
        return None
    size = round(ELEMENTS ** (1 / dims))
    if sample.elementwise:
        return [(ELEMENTS // 1000, 1000)] * len(sample.inputs)
    return [tuple(size if n > 1 else n for n in shape) for shape, _ in sample.inputs]


def inputs(lib, sample, dtype, shapes, record):
    tensors = [lib.tensor(a) for a in sample.arrays(dtype, shapes)]
    if record:
        for tensor, flag in zip(tensors, sample.differentiable(), strict=True):
            tensor.requires_grad_(bool(flag))
    return tensors


class Large:
    """Forward and backward of a sample at 10^6 elements."""

    def __init__(self, lib, sample, dtype, shapes):
        self.lib, self.sample = lib, sample
        self.plain = inputs(lib, sample, dtype, shapes, False)
        self.run()
        leaves = inputs(lib, sample, dtype, shapes, True)
        self.leaves = [t for t in leaves if t.requires_grad]
        self.outs = [o for o in outputs(sample.call(*leaves)) if o.requires_grad] if self.leaves else []
        self.seeds = [lib.ones_like(o) for o in self.outs]
        try:
            self.measured = {"forward": self.run, **({"backward": self.backward} if self.outs and self.backward() else {})}
        except RuntimeError:
            self.measured = {"forward": self.run}           # PyTorch has no derivative of it

    def run(self):
        return self.sample.call(*self.plain)

    def backward(self):
        return self.lib.autograd.grad(self.outs, self.leaves, self.seeds, retain_graph=True)


def outputs(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def measure(sample, libraries, dtype, rounds):
    """{(library, measurement): ns}."""
    from programs import speaking
    small, large, best = {}, {}, {}
    for label, lib in libraries.items():
        with speaking(lib):
            try:
                small[label] = statement(sample, lib, inputs(lib, sample, dtype, None, True))
            except Exception:
                continue                   # PyTorch has no such function, or refuses the dtype
            shapes = enlarged(sample)
            if shapes is not None and TABLE[sample.op].kind != "view":
                try:
                    large[label] = Large(lib, sample, dtype, shapes)
                except Exception:
                    continue               # the sample's own numbers fit its small shape only
    overhead = timing.loop_overhead(3)
    for _ in range(rounds):
        for label, lib in libraries.items():
            with speaking(lib):
                if label in small:
                    best[label, "small"] = min(best.get((label, "small"), 1e99), small[label].sample() - overhead)
                if label in large:
                    for kind, f in large[label].measured.items():
                        f()
                        took = min(_once(f), _once(f))
                        best[label, kind] = min(best.get((label, kind), 1e99), took * 1e9)
    return best


def _once(f):
    start = perf_counter()
    result = f()
    took = perf_counter() - start
    del result
    return took


# Where another sample than the first stands for the row.
SAMPLE = {"matmul": "matmul[(2,3)(3,4)]", "norm": "norm[default]", "pow": "pow[number13]"}


def rows():
    """(row, the sample that stands for it), in the order of the table."""
    from samples import SAMPLES
    for name in TABLE:
        found = [s for s in SAMPLES if s.op == name]
        whole = [s for s in found if any(domain != "mask" for _, domain in s.inputs)] or found
        if whole:
            yield name, next((s for s in whole if s.name == SAMPLE.get(name)), whole[0])


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    libraries = peers.libraries(ag, args.peers)
    results, lines, complaints = [], [], []
    chosen = [(name, sample) for name, sample in rows() if not args.only or name in args.only.split(",")]
    gc.collect()
    gc.disable()
    with np.errstate(all="ignore"):
        for name, sample in timing.bar(chosen, "all rows"):
            dtype = args.dtypes[0] if args.dtypes[0] in sample.dtypes else sample.dtypes[0]
            found = measure(sample, libraries, dtype, args.rounds)
            gc.collect()
            results += [{"benchmark": "all ops", "row": name, "dtype": dtype, "library": label, "measurement": kind, "ns": ns}
                        for (label, kind), ns in found.items()]
            line, reasons = [name if dtype == args.dtypes[0] else f"{name} ({dtype})"], []
            for kind, unit in (("small", 1), ("forward", 1e6), ("backward", 1e6)):
                own, peer = found.get(("autograd_cy", kind)), found.get(("PyTorch", kind))
                ratio = own / peer if own and peer else None
                shown = [own and own / unit, *([peer and peer / unit, ratio] if args.peers else [])]
                line += [report.number(value) for value in shown]
                if ratio and ratio > SLOWER:
                    reason = REASONS.get((name, kind), REASONS.get(name))
                    reasons.append(f"{kind}: {reason or 'NO REASON'}")
                    if not reason:
                        complaints.append(f"{name}, {kind}: {ratio:.2f} times PyTorch's time, and no reason in bench/ops_all.py")
            lines.append([*line, "; ".join(reasons)])
    gc.enable()
    report.heading(f"Every row of the table: ns of a small recorded call; ms at 10^6 elements; minima of {args.rounds} rounds"
                   + ("; ratios to PyTorch on one thread" if args.peers else ""))
    beside = ["PyTorch", "ratio"] if args.peers else []
    report.table(["", "small ns", *beside, "forward ms", *beside, "backward ms", *beside, "slower, because"], lines)
    return results, complaints, []
