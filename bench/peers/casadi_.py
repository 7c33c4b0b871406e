"""CasADi: a step as a symbolic function, with its gradient, called from Python. It computes in float64 only.

Relies on casadi and on bench.training, xor and synthetic; the peers' list relies on it. Building the function is not timed.
"""

import casadi
import numpy as np

from .. import synthetic
from ..training import Column
from ..xor import BETA1, BETA2, EPS


def stepwise(objective_of, adam):
    """start() of a Python loop over the step; objective_of(training, weights) gives the loss."""
    def start(training, dtype):
        weights = [w if w.ndim > 1 else w.reshape(1, -1) for w in training.arrays("float64")[2]]
        symbolic = [casadi.MX.sym(f"w{k}", *w.shape) for k, w in enumerate(weights)]
        loss = objective_of(training, symbolic)
        gradients = [casadi.gradient(loss, w) for w in symbolic]
        if adam:
            first, second = ([casadi.MX.sym(f"{name}{k}", *w.shape) for k, w in enumerate(weights)] for name in "mv")
            count = casadi.MX.sym("count")
            m = [BETA1 * old + (1 - BETA1) * g for old, g in zip(first, gradients, strict=True)]
            v = [BETA2 * old + (1 - BETA2) * g * g for old, g in zip(second, gradients, strict=True)]
            scale1, scale2 = 1 - BETA1 ** (count + 1), 1 - BETA2 ** (count + 1)
            updated = [w - training.lr / scale1 * a / (casadi.sqrt(b / scale2) + EPS) for w, a, b in zip(symbolic, m, v, strict=True)]
            step = casadi.Function("step", [*symbolic, *first, *second, count], [*updated, *m, *v, count + 1, loss])
            zeros = [np.zeros_like(w) for w in weights]
            state = [*weights, *zeros, *zeros, 0.0]
        else:
            updated = [w - training.lr * g for w, g in zip(symbolic, gradients, strict=True)]
            step = casadi.Function("step", symbolic, [*updated, loss])
            state = list(weights)
        state = [casadi.DM(s) for s in state]

        def run(epochs):
            nonlocal state
            for _ in range(epochs):
                *state, _ = step(*state)
            return [np.array(s).reshape(shape) for s, shape in zip(state, [np.shape(w) for w in training.weights], strict=False)]
        return run
    return start


def iris_objective(training, weights):
    x, y, _ = training.arrays("float64")
    z = casadi.mtimes(1 / (1 + casadi.exp(-casadi.mtimes(x, weights[0]))), weights[1])
    return casadi.sum1(casadi.sum2(casadi.fmax(z, 0) - z * y + casadi.log1p(casadi.exp(-casadi.fabs(z)))))


def layer(x, w, b):
    """x w' + b for rows of x."""
    return casadi.mtimes(x, w.T) + casadi.repmat(b, x.shape[0], 1)


def xor_objective(training, weights):
    w1, b1, w2, b2 = weights
    x, y, _ = training.arrays("float64")
    out = 1 / (1 + casadi.exp(-layer(casadi.fmax(layer(casadi.MX(x), w1, b1), 0), w2, b2)))
    return casadi.sumsqr(out - y) / len(x)


def chain_objective(training, weights):
    end = synthetic.graph.build_chain(weights[0], training.arrays("float64")[0], synthetic.LENGTH)
    return casadi.sum1(casadi.sum2(end))


def fan_out_objective(training, weights):
    return synthetic.objective_of("fan-out", training.arrays("float64")[0])(weights[0])


NAME = "CasADi, float64"
# Not the MLP: matrix products are plain loops there, and a step took 56 ms.
COLUMNS = {
    "iris": [Column(NAME, stepwise(iris_objective, adam=False))],
    "xor": [Column(NAME, stepwise(xor_objective, adam=True))],
    "chain": [Column(NAME, stepwise(chain_objective, adam=False))],
    "fan-out": [Column(NAME, stepwise(fan_out_objective, adam=False))],
}
