"""The XOR training of tensort, a C++ library: 2-16-1, relu, sigmoid, mean squared error, Adam with lr 0.01, 2000 epochs,
written as an ordinary Module and an ordinary optimiser.

Relies on the package, training and compiled; the command line and the peers rely on it.
"""

import functools

import numpy as np

import autograd_cy as ag

from . import compiled
from .training import Column, Training, driven, options, supervised, ways

EPOCHS = 2000
LR = 0.01
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def training(seed=0):
    """The network, its data and its start (PyTorch's default initialisation of Linear)."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float64)
    y = np.array([[0], [1], [1], [0]], np.float64)
    random = np.random.default_rng(seed)
    weights = []
    for fan_out, fan_in in ((16, 2), (1, 16)):
        bound = fan_in ** -0.5
        weights += [random.uniform(-bound, bound, (fan_out, fan_in)), random.uniform(-bound, bound, fan_out)]

    def evaluate(weights):
        w1, b1, w2, b2 = weights
        out = 1 / (1 + np.exp(-(np.maximum(x @ w1.T + b1, 0) @ w2.T + b2)))
        return float(np.mean((out - y) ** 2)), float(np.mean((out > 0.5) == (y > 0.5)))

    def verdict(loss, accuracy):
        if not loss < 0.02:
            return f"loss {loss:.3g}; below 0.02 is required"

    return Training("xor", "XOR 2-16-1, relu, sigmoid, MSE, Adam", EPOCHS, LR, x, y, tuple(weights), evaluate, verdict)


@functools.cache
def module(lib):
    """The network as a class of Modules of a library with PyTorch's names."""
    class XOR(lib.nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.fc1 = lib.nn.Linear(2, 16, dtype=dtype)
            self.fc2 = lib.nn.Linear(16, 1, dtype=dtype)

        def forward(self, x):
            return lib.sigmoid(self.fc2(lib.relu(self.fc1(x))))

    return XOR


def network(lib, dtype, weights):
    """The network with these weights."""
    net = module(lib)(dtype)
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
        forward = wrap(net) if wrap else net
        criterion = lib.nn.MSELoss()
        optimizer = lib.optim.Adam(net.parameters(), lr=training.lr, **(adam or {}))
        going_back = options(engine, list(net.parameters()))

        train = supervised(optimizer, criterion, forward, going_back)
        return driven(lib, train, (x, y), list(net.parameters()), optimizer, engine, cold, warm=wrap is not None)
    return start


class FlatAdam:
    """Parameters laid end to end in one vector, so that NumPy updates all of them in a few calls."""

    def __init__(self, weights, lr):
        self.lr, self.count = lr, 0
        self.flat, self.views = self.lay(weights)
        self.gradient, self.gradients = self.lay(weights)
        self.m, self.v, self.work, self.more = (np.zeros_like(self.flat) for _ in range(4))

    @staticmethod
    def lay(weights):
        flat = np.concatenate([w.ravel() for w in weights])
        ends = np.cumsum([w.size for w in weights])
        return flat, [flat[end - w.size:end].reshape(w.shape) for end, w in zip(ends, weights, strict=True)]

    def step(self):
        self.count += 1
        g, m, v, work, more = self.gradient, self.m, self.v, self.work, self.more
        np.multiply(m, BETA1, out=m)
        np.multiply(g, 1 - BETA1, out=work)
        np.add(m, work, out=m)
        np.multiply(v, BETA2, out=v)
        np.multiply(g, g, out=work)
        np.multiply(work, 1 - BETA2, out=work)
        np.add(v, work, out=v)
        np.sqrt(v, out=work)
        np.multiply(work, (1 - BETA2 ** self.count) ** -0.5, out=work)
        np.add(work, EPS, out=work)
        np.divide(m, work, out=more)
        np.multiply(more, self.lr / (1 - BETA1 ** self.count), out=more)
        np.subtract(self.flat, more, out=self.flat)


def by_hand(training, dtype):
    """NumPy, with Adam over one vector of all parameters."""
    x, y, weights = training.arrays(dtype)
    adam = FlatAdam(weights, training.lr)
    w1, b1, w2, b2 = adam.views
    dw1, db1, dw2, db2 = adam.gradients
    scale = 2 / len(x)

    def run(epochs):
        for _ in range(epochs):
            z = x @ w1.T
            z += b1
            hidden = np.maximum(z, 0)
            out = hidden @ w2.T
            out += b2
            out = 1 / (1 + np.exp(-out))
            error = out - y
            loss = np.vdot(error, error) / len(x)           # noqa: F841  every column computes the loss at every epoch
            dout = scale * error * out * (1 - out)
            np.matmul(dout.T, hidden, out=dw2)
            np.add.reduce(dout, 0, out=db2)
            dhidden = dout * w2
            dhidden *= z > 0
            np.matmul(dhidden.T, x, out=dw1)
            np.add.reduce(dhidden, 0, out=db1)
            adam.step()
        return adam.views
    return run


def limit(training, dtype):
    """The same kernels called from one Cython loop (limit.pyx)."""
    x, y, weights = training.arrays(dtype)
    moments = [np.zeros_like(w) for w in weights for _ in range(2)]
    train = compiled.limit().xor
    done = 0

    def run(epochs):
        nonlocal done
        train(x, y, *weights, *moments, training.lr, done, epochs)
        done += epochs
        return weights
    return run


def columns(engines):
    """The columns of the table, without peers."""
    made = ways(lambda engine, cold: eager(ag, engine=engine, cold=cold), engines)
    made.append(Column("limit: by hand in Cython", limit, baseline="limit"))
    made.append(Column("NumPy by hand", by_hand))
    return made
