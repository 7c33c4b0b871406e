"""Two graphs without a network in them, as trainings: a chain of 200 products of (4, 4), and one number used by 200 products that are
summed in a balanced tree. Each epoch builds the graph, goes back, and takes a step of gradient descent.

Relies on the package, training, compiled and graph (which builds them); the comparison of the engines and the peers rely on it.
"""

import functools

import numpy as np

import autograd_cy as ag

from . import compiled, graph
from .training import Column, Training, driven, options, ways

EPOCHS = 500
LENGTH = 200


def training(name, seed=0):
    """The graph's data and start; name: "chain" or "fan-out"."""
    random = np.random.default_rng(seed)
    if name == "chain":
        title, shape, lr = f"Chain of {LENGTH} products of 4x4", (4, 4), 1e-3
        a = random.uniform(0.999, 1.001, shape)
        total = np.sum(a ** (2 * LENGTH))
        factor = a ** LENGTH
    else:
        title, shape, lr = f"Fan-out into {LENGTH} products, summed in a tree", (), 1e-6
        a = random.uniform(0.9, 1.1, LENGTH)
        factor = a.sum()
        total = factor ** 2

    def evaluate(weights):
        return float(np.sum(weights[0] * factor)), 1.0

    def verdict(loss, accuracy):
        expected = np.sum(factor) - EPOCHS * lr * total      # the loss is linear in the weights
        if not abs(loss - expected) < 1e-3:
            return f"loss {loss:.5g}, expected {expected:.5g}"

    return Training(name, title, EPOCHS, lr, a, a, (np.ones(shape),), evaluate, verdict)


def objective_of(name, a):
    """The loss as a function of the weight, for tensors of any library."""
    if name == "chain":
        return lambda w: graph.build_chain(w, a, LENGTH).sum()
    numbers = [a[k] for k in range(LENGTH)]
    return lambda w: graph.sum_in_tree([w * number for number in numbers])


def eager(lib, name, engine="", cold=False, wrap=None):
    """start() of the training in a library with PyTorch's names; `wrap` is put around the objective."""
    def start(training, dtype):
        a, _, (w,) = training.arrays(dtype)
        a, w = lib.tensor(a), lib.tensor(w, requires_grad=True)
        going_back = options(engine, [w])
        objective = objective_of(name, a)
        if wrap:
            objective = wrap(objective)

        def train(steps):
            for _ in range(steps):
                loss = objective(w)
                loss.backward(**going_back) if going_back else loss.backward()        # ** costs 0.2 us
                with lib.no_grad():
                    w.sub_(w.grad, alpha=training.lr)
                w.grad = None
            return loss
        return driven(lib, train, (), [w], None, engine, cold, warm=wrap is not None)
    return start


def limit(name, training, dtype):
    """The same kernels called from one Cython loop (limit.pyx)."""
    a, _, (w,) = training.arrays(dtype)
    module = compiled.limit()

    def run(epochs):
        if name == "chain":
            module.chain(w, a, training.lr, LENGTH, epochs)
        else:
            module.fan_out(w, a, training.lr, epochs)
        return [w]
    return run


def columns(name, engines):
    """The columns of the table, without peers."""
    made = ways(lambda engine, cold: eager(ag, name, engine, cold), engines)
    made.append(Column("limit: by hand in Cython", functools.partial(limit, name), baseline="limit"))
    return made
