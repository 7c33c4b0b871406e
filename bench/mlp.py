"""A multilayer perceptron of the size that image classes are learnt with: 784-256-128-10, relu, cross entropy, Adam with lr 0.001, a batch
of 64 random rows with random labels, learnt by heart in 300 steps.

Relies on the package, training, compiled and xor (Adam in NumPy); the command line and the peers rely on it.
"""

import numpy as np

import autograd_cy as ag

from . import compiled
from .training import Column, Training, driven, options, supervised, ways
from .xor import FlatAdam

EPOCHS = 300
LR = 0.001
SIZES = (784, 256, 128, 10)
BATCH = 64


def training(seed=0):
    """The network, its data and its start (PyTorch's default initialisation of Linear)."""
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, (BATCH, SIZES[0]))
    labels = random.integers(0, SIZES[-1], BATCH)
    weights = []
    for fan_in, fan_out in zip(SIZES, SIZES[1:], strict=False):
        bound = fan_in ** -0.5
        weights += [random.uniform(-bound, bound, (fan_out, fan_in)), random.uniform(-bound, bound, fan_out)]

    def evaluate(weights):
        z = x
        for k in range(0, len(weights), 2):
            z = np.maximum(z, 0) @ weights[k].T + weights[k + 1]       # x is positive
        z = z - z.max(1, keepdims=True)
        loss = np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(BATCH), labels])
        return float(loss), float(np.mean(z.argmax(1) == labels))

    def verdict(loss, accuracy):
        if not (loss < 0.05 and accuracy == 1.0):
            return f"loss {loss:.3g}, accuracy {accuracy:.3f}; below 0.05 and 1 are required"

    title = f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, relu, cross entropy, Adam"
    return Training("mlp", title, EPOCHS, LR, x, labels, tuple(weights), evaluate, verdict)


def network(lib, dtype, weights):
    """The network in a library with PyTorch's names."""
    nn = lib.nn
    layers = [nn.Linear(*pair, dtype=dtype) for pair in zip(SIZES, SIZES[1:], strict=False)]
    net = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    with lib.no_grad():
        for parameter, value in zip(net.parameters(), weights, strict=True):
            parameter.copy_(lib.tensor(value))
    return net


def eager(lib, adam=None, engine="", cold=False, wrap=None):
    """start() of the training in a library with PyTorch's names; `wrap` is put around the network."""
    def start(training, dtype):
        x, y, weights = training.arrays(dtype)
        x, y = lib.tensor(x), lib.tensor(y)
        net = network(lib, getattr(lib, dtype), weights)
        parameters = list(net.parameters())
        criterion = lib.nn.CrossEntropyLoss()
        optimizer = lib.optim.Adam(parameters, lr=training.lr, **(adam or {}))
        going_back = options(engine, parameters)
        forward = wrap(net) if wrap else net

        train = supervised(optimizer, criterion, forward, going_back)
        return driven(lib, train, (x, y), parameters, optimizer, engine, cold, warm=wrap is not None)
    return start


def by_hand(training, dtype):
    """NumPy, with Adam over one vector of all parameters."""
    x, labels, weights = training.arrays(dtype)
    adam = FlatAdam(weights, training.lr)
    w, b, dw, db = adam.views[::2], adam.views[1::2], adam.gradients[::2], adam.gradients[1::2]
    rows = np.arange(len(x))

    def run(epochs):
        for _ in range(epochs):
            outs = [x]
            for k in range(len(w)):
                z = outs[-1] @ w[k].T
                z += b[k]
                outs.append(np.maximum(z, 0, out=z) if k < len(w) - 1 else z)
            z = outs.pop()
            z -= z.max(1, keepdims=True)
            chosen = z[rows, labels]
            np.exp(z, out=z)
            sums = z.sum(1, keepdims=True)
            loss = np.mean(np.log(sums[:, 0]) - chosen)     # noqa: F841  every column computes the loss at every epoch
            z /= sums
            z[rows, labels] -= 1
            z /= len(x)
            for k in reversed(range(len(w))):
                np.matmul(z.T, outs[k], out=dw[k])
                np.add.reduce(z, 0, out=db[k])
                if k:
                    z = z @ w[k]
                    z *= outs[k] > 0
            adam.step()
        return adam.views
    return run


def limit(training, dtype):
    """The same kernels called from one Cython loop (limit.pyx)."""
    x, labels, weights = training.arrays(dtype)
    moments = [np.zeros_like(w) for w in weights for _ in range(2)]
    train = compiled.limit().mlp
    done = 0

    def run(epochs):
        nonlocal done
        train(x, labels, weights, moments, training.lr, done, epochs)
        done += epochs
        return weights
    return run


def columns(engines):
    """The columns of the table, without peers."""
    made = ways(lambda engine, cold: eager(ag, engine=engine, cold=cold), engines)
    made.append(Column("limit: by hand in Cython", limit, baseline="limit"))
    made.append(Column("NumPy by hand", by_hand))
    return made
