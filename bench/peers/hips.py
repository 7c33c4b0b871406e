"""HIPS autograd: value and gradient of an ordinary NumPy function.

Relies on autograd and on bench.training and bench.xor (Adam in NumPy); the peers' list relies on it.
"""

import autograd
import autograd.numpy as anp

from ..training import Column
from ..xor import FlatAdam


def iris_start(training, dtype):
    x, y, weights = training.arrays(dtype)
    lr = x.dtype.type(training.lr)

    def objective(weights):
        w1, w2 = weights
        z = anp.dot(1 / (1 + anp.exp(-anp.dot(x, w1))), w2)
        return anp.sum(anp.logaddexp(0, z) - z * y)
    gradient = autograd.value_and_grad(objective)

    def run(epochs):
        for _ in range(epochs):
            loss, gradients = gradient(weights)
            for w, g in zip(weights, gradients, strict=True):
                w -= lr * g
        return weights
    return run


def xor_start(training, dtype):
    x, y, weights = training.arrays(dtype)
    adam = FlatAdam(weights, training.lr)

    def objective(weights):
        w1, b1, w2, b2 = weights
        hidden = anp.maximum(anp.dot(x, w1.T) + b1, 0)
        out = 1 / (1 + anp.exp(-(anp.dot(hidden, w2.T) + b2)))
        return anp.mean((out - y) ** 2)
    gradient = autograd.value_and_grad(objective)

    def run(epochs):
        for _ in range(epochs):
            loss, gradients = gradient(adam.views)
            for place, g in zip(adam.gradients, gradients, strict=True):
                place[...] = g
            adam.step()
        return adam.views
    return run


COLUMNS = {"iris": [Column("HIPS autograd", iris_start)], "xor": [Column("HIPS autograd", xor_start)]}
