"""Many XOR models at once, which differ in their seed: over_seeds on one thread and on all processors.

Relies on the package, xor, timing and report; the command line relies on it.
"""

import os

import numpy as np

import autograd_cy as ag

from . import report, timing, xor


def maker(described, dtype):
    """make(seed) for over_seeds: a step, the network, and its optimiser."""
    x, y = (ag.tensor(array) for array in described.arrays(dtype)[:2])

    def make(seed):
        net = xor.network(ag, getattr(ag, dtype), xor.training(seed).arrays(dtype)[2])
        criterion, optimizer = ag.nn.MSELoss(), ag.optim.Adam(net.parameters(), lr=described.lr)

        def step():
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            return loss
        return step, net
    return make


def run(args):
    """Measure, print, and return (results for --json, complaints, data for --plot)."""
    described, count = xor.training(), args.models
    epochs, dtype = args.epochs or described.epochs, args.dtypes[0]
    make = maker(described, dtype)
    threads = sorted({1, os.cpu_count() or 1})
    best, found, losses = {}, [], {}
    for _, number in timing.interleaved(threads, min(args.rounds, 3)):
        models = ag.graph.over_seeds(make, count, threads=number)
        took, losses[number] = timing.seconds(models.repeat, epochs)
        best[number] = min(best.get(number, float("inf")), took)
    for seed in sorted({0, count // 2, count - 1}):
        alone = ag.compile(make(seed)[0]).repeat(epochs).numpy()
        found += [f"models: {number} threads: model {seed} is not the one trained alone" for number in threads
                  if losses[number][seed].numpy().tobytes() != alone.tobytes()]
    last = losses[1].numpy()[:, -1]
    report.heading(f"{count} XOR models x {epochs} epochs, {dtype}, "
                   f"minimum of {min(args.rounds, 3)} rounds, making the models not included")
    report.table(["threads", "seconds", "us per epoch of a model"],
                 [[str(n), f"{took:.3f}", report.number(took / count / epochs * 1e6)] for n, took in best.items()])
    print(f"{np.mean(last < 0.02):.1%} of the models end below a loss of 0.02")
    return [{"benchmark": "models", "dtype": dtype, "models": count, "epochs": epochs, "threads": n, "seconds": took}
            for n, took in best.items()], found, []
