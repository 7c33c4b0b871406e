"""Running a story twice: eager and through `ag.compile`, comparing every byte of what a user could look at afterwards.

Relies on autograd_cy's public names and NumPy.  The tests of compile rely on it.
"""

import functools

import numpy as np

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.graph.compile import Compiled


class Stories(dict):
    """The stories of one file of tests, by name: (story, what is expected). Used as a decorator, with what is expected or without."""

    def __call__(self, f=None, /, **expected):
        if f is None:
            return functools.partial(self, **expected)
        assert f.__name__ not in self
        self[f.__name__] = f, expected
        return f


class Watching(Compiled):
    """A compiled function that counts its captures."""

    captures = 0

    def _capture(self, key, args, kwargs):
        self.captures += 1
        return super()._capture(key, args, kwargs)


class Player:
    """How a story runs its steps: as they are, compiled, or now so and now so."""

    def __init__(self, mode):
        self.mode, self.compiled, self.calls = mode, [], 0

    def __call__(self, step):
        if self.mode == "eager":
            return step
        compiled = Watching(step)
        self.compiled.append(compiled)
        if self.mode == "compiled":
            return compiled

        def mixed(*args, **kwargs):
            self.calls += 1
            return (step if self.calls in (4, 5, 8) else compiled)(*args, **kwargs)
        return mixed


def seen(*things):
    """What a user could see of tensors, parameters with gradients, Modules, optimizers, containers: bytes and plain values."""
    out = []
    for thing in things:
        if isinstance(thing, ag.Tensor):
            out.append((thing.shape, str(thing.dtype), np.array(thing.detach().numpy()).tobytes(),
                        None if thing.grad is None else seen(thing.grad)))
        elif isinstance(thing, ag.nn.Module):
            out.append(seen(dict(thing.named_parameters()), dict(thing.named_buffers())))
        elif isinstance(thing, ag.optim.Optimizer):
            state = thing.state
            out.append([seen(dict(state[p].items())) if p in state else None
                        for group in thing.param_groups for p in group["params"]])
        elif isinstance(thing, dict):
            out.append([type(thing).__name__, [(k, seen(v)) for k, v in thing.items()]])
        elif isinstance(thing, (tuple, list)):
            out.append([type(thing).__name__, seen(*thing)])
        else:
            out.append(thing)
    return out


def tell(story, mode):
    """(what the story showed, its Player)."""
    player = Player(mode)
    ag.manual_seed(7)
    shown = []
    for entry in story(player):
        shown.append(seen(entry))
    shown.append(seen(ag.rand(2)))           # the random state
    return shown, player


def compare(story, modes=("compiled", "mixed"), captures=None, most=None):
    """Equal bytes in every mode; the number of captures, where it is known."""
    expected, _ = tell(story, "eager")
    for mode in modes:
        found, player = tell(story, mode)
        assert len(found) == len(expected)
        for k, (one, other) in enumerate(zip(expected, found)):
            assert one == other, f"{mode}: entry {k} of the story differs: {difference(one, other)}"
        made = sum(c.captures for c in player.compiled)
        if mode == "compiled" and captures is not None:
            assert made == captures, f"{made} captures instead of {captures}: {[c.why() for c in player.compiled]}"
        if mode == "compiled" and most is not None:
            assert made <= most, f"{made} captures, more than {most}: {[c.why() for c in player.compiled]}"
    return player


def difference(one, other, path=""):
    if type(one) is not type(other) or not isinstance(one, (list, tuple)):
        return f"{path}: {_short(one)} is {_short(other)}"
    if len(one) != len(other):
        return f"{path}: lengths {len(one)}, {len(other)}"
    for k, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return difference(a, b, f"{path}[{k}]")
    return "?"


def _short(value):
    return value if not isinstance(value, bytes) or len(value) > 64 else \
        (np.frombuffer(value, "f4").tolist() if len(value) % 4 == 0 else value)


# ---- what many stories train

def batch(k, n=6, width=4, classes=3, dtype="f4"):
    """The k-th batch: features and classes."""
    rng = np.random.default_rng(100 + k)
    return ag.tensor(rng.normal(size=(n, width)).astype(dtype)), ag.tensor(rng.integers(0, classes, n))


def network(hidden=5, width=4, classes=3, dtype=ag.float32):
    """Two layers."""
    return nn.Sequential(nn.Linear(width, hidden, dtype=dtype), nn.Tanh(), nn.Linear(hidden, classes, dtype=dtype))


def trainer(model, optimizer, criterion=None):
    """The usual step."""
    criterion = criterion or nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step
