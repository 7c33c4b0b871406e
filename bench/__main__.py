"""The command line of the benchmarks.

Relies on every benchmark module; `make bench` relies on it.
"""

import argparse
import sys

from . import report
from .training import ENGINES

DTYPES = ("float32", "float64")


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of autograd_cy.")
    parser.add_argument("benchmark", choices=("iris", "xor", "mlp", "ops", "graph", "import", "all"))
    parser.add_argument("--engine", dest="engines", choices=(*ENGINES, "all"), default="all",
                        help="restricted: the iterative engine with backward(inputs=[the weights])")
    parser.add_argument("--dtype", dest="dtypes", choices=(*DTYPES, "all"), default="all")
    parser.add_argument("--epochs", type=int, help="epochs of iris and xor (default: 10000 and 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved repetitions (default: 5)")
    parser.add_argument("--peers", action="store_true", help="add the other systems that are installed")
    parser.add_argument("--all-ops", action="store_true", help="ops: every sample of the tests")
    parser.add_argument("--largest", type=int, default=1_000_000, help="graph: longest chain (default: 1000000)")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--plot", metavar="FILE", help="draw the loss curves and timings of iris and xor")
    args = parser.parse_args(argv)
    if args.rounds < 1 or (args.epochs is not None and args.epochs < 1):
        parser.error("--rounds and --epochs must be at least 1")
    args.engines = ENGINES if args.engines == "all" else (args.engines,)
    args.dtypes = DTYPES if args.dtypes == "all" else (args.dtypes,)
    return args


def train(name, args):
    """Run one training benchmark."""
    import importlib

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
    chosen = ("xor", "iris", "ops", "graph", "import") if args.benchmark == "all" else (args.benchmark,)
    results, complaints, drawings = [], [], []
    for name in chosen:
        if name in ("iris", "xor", "mlp"):
            more, wrong, drawn = train(name, args)
            results += more
            complaints += wrong
            drawings += drawn
        elif name == "ops":
            from . import ops
            results += ops.run(args)
        elif name == "graph":
            from . import graph
            more, wrong = graph.run(args)
            results += more
            complaints += wrong
        else:
            from . import importing
            results += importing.run(args)
    if args.json:
        report.write_json(args.json, results)
    if args.plot and drawings:
        report.write_plot(args.plot, drawings)
    for complaint in complaints:
        print(f"ERROR: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
