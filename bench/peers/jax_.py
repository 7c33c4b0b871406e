"""JAX on one thread: a compiled step called from Python, and the whole training as one compiled loop.

Relies on jax and on bench.training; the peers' list relies on it. Compilation is not timed.
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

from .. import synthetic
from ..training import Column
from ..xor import BETA1, BETA2, EPS

jax.config.update("jax_enable_x64", True)


def descent(training, dtype, objective):
    """(state, step, weights of a state) of gradient descent; the state is the list of weights."""
    weights = [jnp.asarray(w) for w in training.arrays(dtype)[2]]

    def step(weights):
        loss, gradients = jax.value_and_grad(objective)(weights)
        return [w - training.lr * g for w, g in zip(weights, gradients, strict=True)], loss
    return weights, step, lambda state: state


def adam(training, dtype, objective):
    """The same for Adam; the state is (count, weights, moments)."""
    weights = [jnp.asarray(w) for w in training.arrays(dtype)[2]]

    def step(state):
        count, weights, first, second = state
        loss, gradients = jax.value_and_grad(objective)(weights)
        count = count + 1
        scale1, scale2 = 1 - BETA1 ** count, 1 - BETA2 ** count
        first = [BETA1 * m + (1 - BETA1) * g for m, g in zip(first, gradients, strict=True)]
        second = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(second, gradients, strict=True)]
        weights = [w - training.lr / scale1 * m / (jnp.sqrt(v / scale2) + EPS)
                   for w, m, v in zip(weights, first, second, strict=True)]
        return (count, weights, first, second), loss

    zeros = [jnp.zeros_like(w) for w in weights]
    return (jnp.zeros((), dtype), weights, zeros, zeros), step, lambda state: state[1]


def iris_start(training, dtype):
    x, y = map(jnp.asarray, training.arrays(dtype)[:2])

    def objective(weights):
        w1, w2 = weights
        z = jax.nn.sigmoid(x @ w1) @ w2
        return jnp.sum(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))
    return descent(training, dtype, objective)


def xor_start(training, dtype):
    x, y = map(jnp.asarray, training.arrays(dtype)[:2])

    def objective(weights):
        w1, b1, w2, b2 = weights
        out = jax.nn.sigmoid(jax.nn.relu(x @ w1.T + b1) @ w2.T + b2)
        return jnp.mean((out - y) ** 2)
    return adam(training, dtype, objective)


def mlp_start(training, dtype):
    x, labels = map(jnp.asarray, training.arrays(dtype)[:2])
    rows = jnp.arange(len(x))

    def objective(weights):
        w1, b1, w2, b2, w3, b3 = weights
        z = jax.nn.relu(jax.nn.relu(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3
        return -jnp.mean(jax.nn.log_softmax(z)[rows, labels])
    return adam(training, dtype, objective)


def synthetic_start(training, dtype):
    objective = synthetic.objective_of(training.name, jnp.asarray(training.arrays(dtype)[0]))
    return descent(training, dtype, lambda weights: objective(weights[0]))


def stepwise(begin):
    """start() of a Python loop over a compiled step."""
    def start(training, dtype):
        state, step, weights = begin(training, dtype)
        step = jax.jit(step)
        jax.block_until_ready(step(state))

        def run(epochs):
            nonlocal state
            for _ in range(epochs):
                state, loss = step(state)
            return jax.block_until_ready(weights(state))
        return run
    return start


def looped(begin):
    """start() of the whole training in one compiled call."""
    def start(training, dtype):
        state, step, weights = begin(training, dtype)

        @jax.jit
        def train(state, epochs):
            return jax.lax.fori_loop(0, epochs, lambda _, carry: step(carry[0]), step(state))[0]
        jax.block_until_ready(train(state, 1))

        def run(epochs):
            nonlocal state
            state = train(state, epochs - 1)          # the first step stands before the loop: it gives the carry its loss
            return jax.block_until_ready(weights(state))
        return run
    return start


COLUMNS = {
    name: [Column("JAX, jit of a step", stepwise(begin)), Column("JAX, jit of the whole loop", looped(begin))]
    for name, begin in (
        ("iris", iris_start), ("xor", xor_start), ("mlp", mlp_start), ("chain", synthetic_start), ("fan-out", synthetic_start),
    )
}
