"""The Iris training of the article on autodiff, a C++ library: 150x4, layers 4-10-3 without biases, sigmoids, summed binary cross
entropy, full batch, gradient descent with lr 0.001, 10,000 epochs.

Relies on the package, training and compiled; the command line and the peers rely on it.
"""

import dataclasses

import numpy as np

import autograd_cy as ag

from . import compiled
from .training import Column, Training, driven, options, ways

EPOCHS = 10_000
LR = 0.001
# Milliseconds for 10,000 epochs as the article prints them; its code was built without optimisation.
PUBLISHED = {"recursive": 28121.5, "iterative": 29052.4, "restricted": 25397.2,
             "TensorFlow": 23812.5, "scikit-learn": 22412.2}


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def training(seed=0):
    """The network, its data and its start."""
    features, labels, *_ = ag.data.iris(dtype=ag.float64)
    x, labels = features.numpy(), labels.numpy()
    y = np.eye(3)[labels]
    random = np.random.default_rng(seed)
    weights = tuple(random.uniform(-1, 1, shape) * 0.01 for shape in ((4, 10), (10, 3)))

    def evaluate(weights):
        w1, w2 = weights
        z = sigmoid(x @ w1) @ w2
        loss = np.sum(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
        return float(loss), float(np.mean(z.argmax(1) == labels))

    def verdict(loss, accuracy):
        if not (19.0 <= loss <= 19.2 and abs(accuracy - 0.98) < 1e-6):
            return f"loss {loss:.4f}, accuracy {accuracy:.4f}; expected 19.0 to 19.2 and 0.98"

    article = ", ".join(f"{name} {PUBLISHED[name] / EPOCHS * 1e3:,.0f}" for name in ("TensorFlow", "scikit-learn"))
    return Training("iris", "Iris 150x4, 4-10-3, binary cross entropy, gradient descent", EPOCHS, LR, x, y, weights,
                    evaluate, verdict, notes=(f"The article also gives, in us per epoch: {article}.",))


def descend(lib, weights, lr):
    """Gradient descent through the library's own optimiser."""
    optimizer = lib.optim.SGD(weights, lr=lr)

    def update():
        optimizer.step()
        optimizer.zero_grad()
    return update


def eager(lib, objective, update=descend, engine="", cold=False, wrap=None):
    """start() of the training in a library with PyTorch's names; `objective(lib, x, y, w1, w2)` gives the loss, `wrap` is put around it."""
    forward = wrap(objective) if wrap else objective

    def start(training, dtype):
        x, y, weights = training.arrays(dtype)
        x, y = lib.tensor(x), lib.tensor(y)
        w1, w2 = weights = [lib.tensor(w, requires_grad=True) for w in weights]
        going_back = options(engine, weights)
        finish = update(lib, weights, training.lr)

        def train(steps, x, y):
            for _ in range(steps):
                loss = forward(lib, x, y, w1, w2)
                loss.backward(**going_back) if going_back else loss.backward()        # ** costs 0.2 us
                finish()
            return loss
        return driven(lib, train, (x, y), weights, None, engine, cold, warm=wrap is not None)
    return start


def fused(lib, x, y, w1, w2):
    """The network as one writes it today."""
    return lib.nn.functional.binary_cross_entropy_with_logits(lib.sigmoid(x @ w1) @ w2, y, reduction="sum")


def op_by_op(lib, x, y, w1, w2):
    """The article's network in three lines."""
    sigm1 = 1 / (1 + lib.exp(-1 * (x @ w1)))
    sigm2 = 1 / (1 + lib.exp(-1 * (sigm1 @ w2)))
    return lib.sum(-1 * (y * lib.log(sigm2) + (1 - y) * lib.log(1 - sigm2)))


def by_hand(training, dtype):
    """NumPy without temporaries."""
    x, y, (w1, w2) = training.arrays(dtype)
    lr = x.dtype.type(training.lr)
    rest = 1 - y
    hidden, dhidden = np.empty((len(x), w1.shape[1]), dtype), np.empty((len(x), w1.shape[1]), dtype)
    out, chosen = np.empty_like(y), np.empty_like(y)

    def activate(z):
        np.negative(z, out=z)
        np.exp(z, out=z)
        np.add(z, 1, out=z)
        np.reciprocal(z, out=z)

    def run(epochs):
        nonlocal w1, w2
        for _ in range(epochs):
            np.matmul(x, w1, out=hidden)
            activate(hidden)
            np.matmul(hidden, w2, out=out)
            activate(out)
            np.subtract(out, rest, out=chosen)      # |out - (1 - y)| is the probability of the right answer
            np.abs(chosen, out=chosen)
            np.log(chosen, out=chosen)
            loss = -chosen.sum()                    # noqa: F841  every column computes the loss at every epoch
            np.subtract(out, y, out=out)
            np.matmul(out, w2.T, out=dhidden)
            np.multiply(dhidden, hidden, out=dhidden)
            np.subtract(1, hidden, out=chosen_hidden)
            np.multiply(dhidden, chosen_hidden, out=dhidden)
            w2 -= lr * (hidden.T @ out)
            w1 -= lr * (x.T @ dhidden)
        return [w1, w2]

    chosen_hidden = np.empty_like(hidden)
    return run


def limit(training, dtype):
    """The same kernels called from one Cython loop (limit.pyx)."""
    x, y, (w1, w2) = training.arrays(dtype)
    train = compiled.limit().iris

    def run(epochs):
        train(x, y, w1, w2, training.lr, epochs)
        return [w1, w2]
    return run


def columns(engines):
    """The columns of the table, without peers."""
    made = []
    for writing, objective in (("fused", fused), ("op by op", op_by_op)):
        def start(engine, cold, objective=objective):
            return eager(ag, objective, engine=engine, cold=cold)
        for column in ways(start, engines, f"autograd_cy, {writing}", writing=writing):
            published = PUBLISHED.get(column.engine, 0.0) / EPOCHS * 1e3 if writing == "op by op" else 0.0
            made.append(dataclasses.replace(column, published=published))
    made.append(Column("limit: by hand in Cython", limit, baseline="limit"))
    made.append(Column("NumPy by hand", by_hand))
    return made
