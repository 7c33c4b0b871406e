"""Random programs of views and writes in place, and dual numbers as their reference.

`program` runs on tensors of autograd_cy or of PyTorch, or on `Duals`: pairs of values and their derivatives along one direction, in
plain memory without any history, where a write changes both. They say what a derivative is in a program of writes, detached aliases
included, without saying how it is found.

Relies on autograd_cy's public names. tests/test_inplace.py and tests/test_oracle.py rely on it.
"""

import random

import numpy as np

import autograd_cy as ag

VIEWS = [
    lambda t: t.t(),
    lambda t: t[1:],
    lambda t: t[:, ::2],
    lambda t: t[0],
    lambda t: t.unsqueeze(0),
    lambda t: t.reshape(-1),
    lambda t: t.permute(tuple(reversed(range(t.ndim)))),
    lambda t: t.squeeze(0),
    lambda t: t[..., -1:],
    lambda t: t.expand(2, *t.shape),
    lambda t: t.detach(),
]   # not unbind: PyTorch refuses to write to its outputs
WRITES = [
    lambda L, t, o: t.mul_(1.5),
    lambda L, t, o: t.add_(0.25),
    lambda L, t, o: t.mul_(o),
    lambda L, t, o: t.add_(o),
    lambda L, t, o: t.sub_(o * 0.5),
    lambda L, t, o: t.tanh_(),
    lambda L, t, o: t.zero_(),
    lambda L, t, o: t.fill_(0.5),
    lambda L, t, o: t.copy_(o),
    lambda L, t, o: t.__setitem__(0, o),
    lambda L, t, o: t.__setitem__(Ellipsis, o),
    lambda L, t, o: t.__setitem__((Ellipsis, 0), 0.3),
    lambda L, t, o: t.div_(2),
    lambda L, t, o: t.exp_(),
    lambda L, t, o: t.__setitem__(t > 0.5, 0.1),
    lambda L, t, o: t.__setitem__([0], 0.2),
]
FRESH = [
    lambda L, t, o: t * o,
    lambda L, t, o: t + 1,
    lambda L, t, o: L.sin(t),
    lambda L, t, o: t * t,
    lambda L, t, o: t.exp(),
    lambda L, t, o: t.clone(),
]


DIFFERS = [  # refusals that are not shared
    "a leaf Variable",                              # PyTorch does not see that a view's base has a history by now
    "some elements of the input tensor and the",    # PyTorch refuses overlapping operands, we copy the input first
    "more than one element of the written-to",      # PyTorch refuses a copy of one value to an expanded tensor, not a fill
    "several elements of the tensor share",         # we refuse to write to expanded tensors by arrays and masks
]


def program(L, seed, leaves, log):
    """Runs a random program; what happens at each step goes into `log`."""
    rng = random.Random(seed)
    pool = [leaves[0] * 1.0, leaves[1] * 1.0, L.tensor(np.full((2, 3), 0.7))]
    scalars = [leaves[2], 0.9, L.tensor(np.float64(1.1))]
    for _ in range(rng.randint(4, 16)):
        kind, t, choice = rng.random(), rng.choice(pool), rng.random()
        o = rng.choice(scalars) if choice < 0.6 else rng.choice(pool)
        view, write, fresh = rng.choice(VIEWS), rng.choice(WRITES), rng.choice(FRESH)
        try:
            if kind < 0.35:
                pool.append(view(t))
            elif kind < 0.75:
                write(L, t, o)
            else:
                pool.append(fresh(L, t, o))
            log.append("done")
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            log.append("differs" if any(words in str(error) for words in DIFFERS) else "refused")
    return sum((t * t).sum() * (k + 1) for k, t in enumerate(pool)), pool


def leaves_of(seed):
    """Numbers for the three leaves."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (2, 3)), rng.uniform(0.5, 1.5, ())]


def parts(o):
    """Value and derivative of an operand; numbers and constants have the derivative 0."""
    return (o.value, o.slope) if isinstance(o, Dual) else (o, 0.0)


class Dual:
    """A value and its derivative: two tensors without history, with the same strides."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    ndim, shape = property(lambda self: self.value.ndim), property(lambda self: self.value.shape)

    def __getitem__(self, key):
        return Dual(self.value[key], self.slope[key])

    def __setitem__(self, key, o):
        self.value[key], self.slope[key] = parts(o)

    def __gt__(self, number):
        return self.value > number

    def __mul__(self, o):
        v, d = parts(o)
        return Dual(self.value * v, self.slope * v + self.value * d)

    def __add__(self, o):
        v, d = parts(o)
        return Dual(self.value + v, self.slope + d)

    __radd__ = __add__

    def sin(self):
        return Dual(self.value.sin(), self.slope * self.value.cos())

    def exp(self):
        return Dual(self.value.exp(), self.slope * self.value.exp())

    def sum(self):
        return Dual(self.value.sum(), self.slope.sum())

    def clone(self):
        return Dual(self.value.clone(), self.slope.clone())

    def detach(self):
        """The same memory for the value, and another one for the derivative, which is 0."""
        v = self.value
        size = 1 + sum(max(n - 1, 0) * step for n, step in zip(v.shape, v.stride(), strict=True))
        return Dual(v.detach(), ag.zeros(size, dtype=v.dtype).as_strided(v.shape, v.stride()))


def _view(name):
    return lambda self, *args: Dual(getattr(self.value, name)(*args), getattr(self.slope, name)(*args))


def _write(name, rule):
    def write(self, *args):
        v, d = parts(args[0]) if args else (None, None)
        slope = rule(self.value, self.slope, v, d)
        getattr(self.value, name)(*([v] if args else []))
        (self.slope.fill_ if name in ("zero_", "fill_") else self.slope.copy_)(slope)
        return self

    return write


for _name in ("t", "unsqueeze", "reshape", "permute", "squeeze", "expand"):
    setattr(Dual, _name, _view(_name))
for _name, _rule in {
    "mul_": lambda x, dx, o, do: dx * o + x * do, "add_": lambda x, dx, o, do: dx + do, "sub_": lambda x, dx, o, do: dx - do,
    "div_": lambda x, dx, o, do: dx / o, "tanh_": lambda x, dx, o, do: dx * (1 - x.tanh() ** 2), "exp_": lambda x, dx, o, do: dx * x.exp(),
    "zero_": lambda x, dx, o, do: 0.0, "fill_": lambda x, dx, o, do: do, "copy_": lambda x, dx, o, do: do,
}.items():   # fmt: skip
    setattr(Dual, _name, _write(_name, _rule))


class Duals:
    """What a program calls of a library."""

    tensor = staticmethod(lambda a: Dual(ag.tensor(a), ag.zeros(np.shape(a), dtype=ag.float64)))
    sin = staticmethod(Dual.sin)
