"""Iris, XOR, the MLP, a chain and a fan-out by every engine, beside the limit and the peers: one row for each, one column per way.

Relies on the trainings, training and report; the command line relies on it.
"""

from . import iris, mlp, report, synthetic, training, xor

GRAPHS = {
    "xor": (xor.training, xor.columns), "iris": (iris.training, iris.columns), "mlp": (mlp.training, mlp.columns),
    "chain": (lambda: synthetic.training("chain"), lambda engines: synthetic.columns("chain", engines)),
    "fan-out": (lambda: synthetic.training("fan-out"), lambda engines: synthetic.columns("fan-out", engines)),
}
LIMIT, TORCH = "limit", "PyTorch"
PEERS = ("torch.compile", "JAX, jit of a step", "JAX, jit of the whole loop", "CasADi, float64")


def label(column):
    """The heading that a training's column stands under here; None: it is left out."""
    if column.cold or column.writing != "fused":
        return None
    if column.engine or column.baseline:
        return column.engine or {"limit": LIMIT, "pytorch": TORCH}[column.baseline]
    return column.name if column.name in PEERS else None


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    dtype = args.dtypes[0]
    headings = [*args.engines, LIMIT, *((TORCH, *PEERS) if args.peers else ())]
    rows, results, found, drawings = [], [], [], []
    for name, (describe, columns_of) in GRAPHS.items():
        described, columns = describe(), columns_of(args.engines)
        if args.peers:
            from . import peers
            columns += peers.columns(name)
        epochs = min(args.epochs or described.epochs, described.epochs)
        outcomes = training.measure(described, [c for c in columns if label(c)], dtype, epochs, args.rounds)
        found += training.complaints(described, outcomes, epochs)
        results += training.records(described, outcomes, dtype, epochs)
        times = {label(o.column): o.times for o in outcomes.values()}
        best = {heading: min(values) for heading, values in times.items()}
        row = [described.title.partition(",")[0]]
        row += [f"{report.number(best[h])} ({best[h] / best[LIMIT]:.2f})" if h in best else "-" for h in headings]
        rows.append([*row, f"{next(iter(outcomes.values())).loss:.5g}"])
        drawings.append({"title": f"{described.title}, {dtype}", "times": {h: times[h] for h in headings if h in times}})
    report.heading(f"us per step and (x limit), {dtype}, minimum of {args.rounds} rounds: forward, backward and update")
    shown = [k for k, _ in enumerate(("", *headings)) if k == 0 or any(row[k] != "-" for row in rows)]
    report.table(["", *(headings[k - 1] for k in shown[1:]), "loss"], [[*(row[k] for k in shown), row[-1]] for row in rows])
    print("restricted: the iterative engine on chosen leaves; optimised: the program after all passes, called once per step;\n"
          "replay: the same in one call for all steps")
    return results, found, drawings
