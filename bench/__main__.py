"""The command line of the benchmarks.

Relies on every benchmark module; `make bench` relies on it.
"""

import argparse
import importlib
import sys

from . import report
from .training import ENGINES

DTYPES = ("float32", "float64")
TRAININGS = ("iris", "xor", "mlp")
# What a name on the command line runs: trainings and modules.
PARTS = {"xor": ("xor", "models"), "graph": ("graph", "engines", "elementwise", "capture"), "import": ("importing",),
         "all": ("xor", "models", "iris", "mlp", "ops", "graph", "engines", "elementwise", "capture", "importing")}
NAMES = ("iris", "xor", "mlp", "models", "ops", "calls", "graph", "engines", "elementwise", "capture", "import", "all")


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of autograd_cy.")
    parser.add_argument("benchmark", choices=NAMES,
                        help="xor: with many models at once; graph: large graphs, engines, elementwise and capture")
    parser.add_argument("--engine", dest="engines", choices=(*ENGINES, "all"), default="all",
                        help="restricted: the iterative engine with backward(inputs=[the weights]); optimised, replay: the "
                             "captured step, called once per epoch or repeated in one call")
    parser.add_argument("--dtype", dest="dtypes", choices=(*DTYPES, "all"), default="all")
    parser.add_argument("--epochs", type=int, help="epochs of a training (default: each one's own)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved repetitions (default: 5)")
    parser.add_argument("--peers", action="store_true", help="add the other systems that are installed")
    parser.add_argument("--all", dest="all_ops", action="store_true", help="ops: every row of the table, small and at 10^6 elements")
    parser.add_argument("--only", default="", help="with commas between them: ops --all: these rows only; "
                        "calls: those that contain one of these texts, and whole kinds")
    parser.add_argument("--models", type=int, default=1000, help="models trained at once (default: 1000)")
    parser.add_argument("--largest", type=int, default=1_000_000, help="graph: longest chain (default: 1000000); elementwise: "
                        "up to ten times as many numbers")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--plot", metavar="FILE", help="draw loss curves and timings")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.models < 1 or (args.epochs is not None and args.epochs < 1):
        parser.error("--rounds, --models and --epochs must be at least 1")
    args.engines = ENGINES if args.engines == "all" else (args.engines,)
    args.dtypes = DTYPES if args.dtypes == "all" else (args.dtypes,)
    return args


def train(name, args):
    """Run one training benchmark; returns what a module's run() returns: (results for --json, complaints, data for --plot)."""
    from . import training

    module = importlib.import_module(f".{name}", __package__)
    described = module.training()
    columns = module.columns(args.engines)
    if args.peers:
        from . import peers
        columns += peers.columns(name)
    return training.run(described, columns, args)


def main(argv=None):
    args = parse(argv)
    results, complaints, drawings = [], [], []
    for name in PARTS.get(args.benchmark, (args.benchmark,)):
        if name in TRAININGS:
            more = train(name, args)
        else:
            more = importlib.import_module(f".{name}", __package__).run(args)
        for found, part in zip((results, complaints, drawings), more, strict=True):
            found += part
    if args.json:
        report.write_json(args.json, results)
    if args.plot and drawings:
        report.write_plot(args.plot, drawings)
    for complaint in complaints:
        print(f"ERROR: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
