"""What a capture costs: its parts for one step of Iris, and the first calls with 50 batch sizes in a row.

Relies on the package (here also on what `compile` is made of), iris, timing and report; the command line relies on it.
"""

from time import perf_counter

import autograd_cy as ag

from . import iris, report

SIZES = range(101, 151)          # rows of a batch


def new_step(dtype):
    """(step, x, y) of the Iris training."""
    described = iris.training()
    x, y, weights = described.arrays(dtype)
    weights = [ag.tensor(w, requires_grad=True) for w in weights]
    finish = iris.descend(ag, weights, described.lr)

    def step(x, y):
        loss = iris.fused(ag, x, y, *weights)
        loss.backward()
        finish()
        return loss
    return step, ag.tensor(x), ag.tensor(y)


def parts(dtype):
    """{part: seconds} of one capture that is made ready to run."""
    from autograd_cy.graph.capture import trace
    from autograd_cy.graph.evaluate import evaluate
    from autograd_cy.graph.machine import Machine
    from autograd_cy.graph.passes import optimise
    from autograd_cy.graph.plan import plan

    step, x, y = new_step(dtype)
    step(x, y)
    marks = [perf_counter()]
    found = trace(step, (x, y))
    marks.append(perf_counter())
    program = optimise(found.program, evaluate=evaluate)
    marks.append(perf_counter())
    places = plan(program)
    marks.append(perf_counter())
    Machine(program, places).instance()
    marks.append(perf_counter())
    names = ("capture, the step itself included", "passes", "plan", "machine")
    took = {name: end - start for name, start, end in zip(names, marks, marks[1:], strict=False)}
    return took | {"all of these": marks[-1] - marks[0]}


def calls(dtype):
    """{what: seconds} of calls of a compiled step that capture."""
    step, x, y = new_step(dtype)
    compiled = ag.compile(step)
    batches = [(x[:size].clone(), y[:size].clone()) for size in SIZES]
    start = perf_counter()
    compiled(x, y)
    compiled(x, y)
    ready = perf_counter()
    for batch in batches:
        compiled(*batch)
    end = perf_counter()
    return {"the first two calls (both capture)": ready - start, f"then {len(batches)} other batch sizes in a row": end - ready}


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    best = {}
    for _ in range(max(args.rounds, 5)):
        for name, took in (parts(args.dtypes[0]) | calls(args.dtypes[0])).items():
            best[name] = min(best.get(name, float("inf")), took)
    report.heading(f"Capturing one Iris step, ms, minimum of {max(args.rounds, 5)} rounds")
    report.table(["", "ms"], [[name, report.number(took * 1e3)] for name, took in best.items()])
    return [{"benchmark": "capture", "part": name, "seconds": took} for name, took in best.items()], [], []
