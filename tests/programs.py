"""Random programs over the whole table of samples: operations, views, writes through them, broadcasting and reuse.

A program is a list of Steps, which are plain numbers, so that any part of it is a program, too: that is how a failing one is made
small (`shrunk`) and printed as code (`text`). Three interpreters run it: `run` on tensors, of autograd_cy or of PyTorch, and `Slow`
in NumPy, where a tensor is a flat array and the positions of its elements in it, without strides.

Relies on tests/samples.py (an operation with samples is drawn without a line here), NumPy, and PyTorch where that is the library.
tests/test_programs.py and tests/test_oracle.py rely on it.
"""

import contextlib
import random
import sys
from typing import NamedTuple

import numpy as np
import samples as table
from samples import DOMAINS, SAMPLES

import autograd_cy as ag

# Domains whose numbers are exact or no floats: constants. All others may move by a little.
EXACT = {"mask", "class3", "whole", "bits"}
SHAPES = [(2, 3), (2, 3), (3,), (1, 3), (2, 1), (3, 3), (2, 3, 4), ()]
BROADCAST = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((2, 1, 3), (2, 3)),
             ((0, 3), (1, 3)), ((4, 1, 5), (5,))]   # fmt: skip


class Step(NamedTuple):
    """One line of a program: kind 0 to 9, and numbers that are taken modulo what there is."""

    kind: int
    which: int
    first: int
    second: int
    seed: int


def drawn(seed, longest=14):
    """The program of this seed, as a list of steps."""
    rng = random.Random(seed)
    return [Step(rng.randrange(10), *(rng.randrange(1 << 16) for _ in range(4))) for _ in range(rng.randint(3, longest))]


# ---------------------------------------------------------------------------------------------------------------------
# What a step may do. Each: as code, on tensors, and in NumPy (views on an array of positions, writes on arrays of numbers)


def _dims(positions):
    """Positions that have a last dimension."""
    if not positions.ndim:
        raise IndexError
    return positions


def _flat_view(positions):
    """Positions of a view of one dimension; where there is none (their distances differ), a copy has to do: None."""
    flat = positions.reshape(-1)
    return flat if flat.size < 3 or (np.diff(flat) == flat[1] - flat[0]).all() else None


VIEWS = [
    ("{t}.permute(*reversed(range({t}.ndim)))", lambda t: t.permute(*reversed(range(t.ndim))), lambda p: p.T),
    ("{t}[1:]", lambda t: t[1:], lambda p: p[1:]),
    ("{t}[..., ::2]", lambda t: t[..., ::2], lambda p: _dims(p)[..., ::2]),
    ("{t}[0]", lambda t: t[0], lambda p: p[0]),
    ("{t}.unsqueeze(0)", lambda t: t.unsqueeze(0), lambda p: p[None]),
    ("{t}.unsqueeze(-1)", lambda t: t.unsqueeze(-1), lambda p: p[..., None]),
    ("{t}.reshape(-1)", lambda t: t.reshape(-1), _flat_view),
    ("{t}.squeeze(0)", lambda t: t.squeeze(0), lambda p: p[0] if p.ndim and p.shape[0] == 1 else p),
    ("{t}[..., -1:]", lambda t: t[..., -1:], lambda p: _dims(p)[..., -1:]),
    ("{t}.expand(2, *{t}.shape)", lambda t: t.expand(2, *t.shape), lambda p: np.broadcast_to(p, (2, *p.shape))),
    ("{t}.transpose(0, -1)", lambda t: t.transpose(0, -1), lambda p: p.swapaxes(0, -1) if p.ndim else p),
    ("{t}[:, None]", lambda t: t[:, None], lambda p: p[:, None]),
    ("{t}[..., 0]", lambda t: t[..., 0], lambda p: p[..., 0]),
    ("{t}.view({t}.shape)", lambda t: t.view(t.shape), lambda p: p),
    ("{t}.diagonal()", lambda t: t.diagonal(), lambda p: p.diagonal()),
    ("{t}.narrow(-1, 1, 1)", lambda t: t.narrow(-1, 1, 1), lambda p: p[..., [1]] if p.shape[-1] < 2 else p[..., 1:2]),
    ("{t}.unfold(-1, 2, 1)", lambda t: t.unfold(-1, 2, 1), lambda p: np.lib.stride_tricks.sliding_window_view(p, 2, -1)),
    ("{t}.select(0, -1)", lambda t: t.select(0, -1), lambda p: p[-1]),
    ("{t}.movedim(0, -1)", lambda t: t.movedim(0, -1), lambda p: np.moveaxis(p, 0, -1) if p.ndim else p),
    ("{t}.unflatten(-1, (1, -1))", lambda t: t.unflatten(-1, (1, -1)), lambda p: _dims(p)[..., None, :]),
]   # fmt: skip
VIEWS = [v for v in VIEWS if (name := v[0].split(".")[-1].split("(")[0]).startswith("{") or "[" in name or hasattr(ag.Tensor, name)]


def _assigned(key):
    def write(t, o):
        t = t.copy()
        if isinstance(key, (int, list)) and t.ndim == 0:
            raise IndexError
        part = t[key]
        t[key] = np.broadcast_to(_fitting(part.shape, o), part.shape)
        return t

    return write


def _fitting(shape, o):
    """o without leading dims of size 1 that are too many."""
    while o.ndim > len(shape) and o.shape[0] == 1:
        o = o[0]
    return o


def _selected(t, o):
    return np.where(t > 0.5, 0.1, t)


WRITES = [
    ("{t}.mul_(1.25)", lambda L, t, o: t.mul_(1.25), lambda t, o: t * 1.25),
    ("{t}.add_(0.25)", lambda L, t, o: t.add_(0.25), lambda t, o: t + 0.25),
    ("{t}.mul_({o})", lambda L, t, o: t.mul_(o), lambda t, o: t * o),
    ("{t}.add_({o}, alpha=0.5)", lambda L, t, o: t.add_(o, alpha=0.5), lambda t, o: t + 0.5 * o),
    ("{t}.sub_({o} * 0.5)", lambda L, t, o: t.sub_(o * 0.5), lambda t, o: t - o * 0.5),
    ("{t}.tanh_()", lambda L, t, o: t.tanh_(), lambda t, o: np.tanh(t)),
    ("{t}.sigmoid_()", lambda L, t, o: t.sigmoid_(), lambda t, o: table.sigmoid(t)),
    ("{t}.zero_()", lambda L, t, o: t.zero_(), lambda t, o: t * 0),
    ("{t}.fill_(0.5)", lambda L, t, o: t.fill_(0.5), lambda t, o: t * 0 + 0.5),
    ("{t}.copy_({o})", lambda L, t, o: t.copy_(o), lambda t, o: t * 0 + o),
    ("{t}[0] = {o}", lambda L, t, o: t.__setitem__(0, o), _assigned(0)),
    ("{t}[...] = {o}", lambda L, t, o: t.__setitem__(Ellipsis, o), _assigned(Ellipsis)),
    ("{t}[..., 0] = 0.3", lambda L, t, o: t.__setitem__((Ellipsis, 0), 0.3), lambda t, o: _assigned((Ellipsis, 0))(t, np.array(0.3))),
    ("{t}.div_(2)", lambda L, t, o: t.div_(2), lambda t, o: t / 2),
    ("{t}[{t} > 0.5] = 0.1", lambda L, t, o: t.__setitem__(t > 0.5, 0.1), _selected),
    ("{t}[[0]] = 0.2", lambda L, t, o: t.__setitem__([0], 0.2), lambda t, o: _assigned([0])(t, np.array(0.2))),
    ("{t}.clamp_(-0.6, 0.7)", lambda L, t, o: t.clamp_(-0.6, 0.7), lambda t, o: np.clip(t, -0.6, 0.7)),
    ("{t}.neg_()", lambda L, t, o: t.neg_(), lambda t, o: -t),
    ("{t} *= {t}", lambda L, t, o: t.__imul__(t), lambda t, o: t * t),
]   # fmt: skip
FRESH = [
    ("{t} * {o}", lambda L, t, o: t * o, lambda t, o: t * o),
    ("{t} + 1", lambda L, t, o: t + 1, lambda t, o: t + 1),
    ("L.sin({t})", lambda L, t, o: L.sin(t), lambda t, o: np.sin(t)),
    ("{t} * {t}", lambda L, t, o: t * t, lambda t, o: t * t),
    ("{t}.clone()", lambda L, t, o: t.clone(), lambda t, o: t),
    ("{t} - {o}", lambda L, t, o: t - o, lambda t, o: t - o),
    ("L.where({t} > {o}, {t}, {o} * 0.5)", lambda L, t, o: L.where(t > o, t, o * 0.5), lambda t, o: np.where(t > o, t, o * 0.5)),
    ("{t}.sum(-1)", lambda L, t, o: t.sum(-1), lambda t, o: t.sum(-1) if t.ndim else t),
]   # fmt: skip


def _in_place(sample):
    """`name_` of an elementwise operation of one or two real inputs; a copy of its result where a library has no such method."""
    name = sample.op + "_"

    def write(L, t, o):
        inputs = [t, o if hasattr(o, "shape") else L.tensor(o, dtype=t.dtype)][:len(sample.inputs)]
        return getattr(t, name)(*inputs[1:]) if hasattr(t, name) else t.copy_(sample.call(*inputs))

    return f"{{t}}.{name}({'{o}' * (len(sample.inputs) - 1)})", write, lambda t, o: sample.ref(*(t, o)[:len(sample.inputs)])


WRITES += [
    _in_place(s) for s in SAMPLES
    if s.elementwise and s.name == s.op and hasattr(ag.Tensor, s.op + "_") and len(s.inputs) < 3 and s.exact_ties and s.grad is True
    and all(domain == "real" for _, domain in s.inputs)
]   # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Inputs of samples, made of what the program has


def constants(shape, domain, seed):
    return np.asarray(DOMAINS[domain](np.random.default_rng(seed), shape))


def picks(shape, n, seed):
    """Where each element of an input comes from."""
    return (np.arange(int(np.prod(shape, dtype=int))) * 7 + seed) % n


def fitted(L, t, shape, domain, seed, layout=0):
    """An input of this shape and domain: constants of the domain, moved a little by t."""
    values = constants(shape, domain, seed)
    if values.dtype.kind != "f":
        return L.tensor(values)
    made = L.tensor(values, dtype=t.dtype)
    if domain not in EXACT and t.numel():
        near = t if tuple(t.shape) == shape else t.reshape(-1)[L.tensor(picks(shape, t.numel(), seed))].reshape(shape)
        made = made + near.tanh() * 0.05
    return laid_out(L, made, layout)


def laid_out(L, t, layout):
    """The same numbers in other memory (4: repeats of the first row instead)."""
    if layout == 1:
        back = tuple(reversed(range(t.ndim)))
        return t.permute(back).contiguous().permute(back)
    if layout == 2:
        return L.stack([t, t + 1], -1)[..., 0]
    if layout == 3 and L is ag and t.ndim:      # PyTorch has no negative strides
        flip = (slice(None, None, -1),) * t.ndim
        return t[flip].clone()[flip]
    if layout == 4 and t.ndim and t.shape[0] > 0:
        return t[:1].expand(t.shape)
    return t


def fitted_slowly(t, shape, domain, seed, layout=0):
    values = constants(shape, domain, seed)
    if values.dtype.kind != "f":
        return values
    if domain not in EXACT and t.size:
        values = values + np.tanh(t if t.shape == shape else t.reshape(-1)[picks(shape, t.size, seed)].reshape(shape)) * 0.05
    if layout == 4 and values.ndim and values.shape[0] > 0:
        values = np.broadcast_to(values[:1], values.shape)
    return values


# PyTorch's batch_norm reads an expanded weight as if it were contiguous, in its backward.
NOT_EXPANDED = {"cross_entropy", "normalize_channels", "scale_channels"}
# Results whose order of memory differs from PyTorch's: of functions with no method there.
ORDERED_DIFFERENTLY = {"logsigmoid"}


def inputs_of(step, sample):
    """[(shape, domain, seed, layout)] for the sample's inputs; the k-th comes from the value `first` + k * `second`."""
    shapes = [shape for shape, _ in sample.inputs]
    if sample.elementwise and len(shapes) > 1:
        pair = BROADCAST[step.seed % len(BROADCAST)]
        shapes = [pair[k % 2] for k in range(len(shapes))]
    layouts = 5 if sample.exact_ties and sample.op not in NOT_EXPANDED else 4
    return [(shape, domain, step.seed + k, (step.seed // 16 + k * step.second) % layouts)
            for k, (shape, (_, domain)) in enumerate(zip(shapes, sample.inputs, strict=True))]


@contextlib.contextmanager
def speaking(L):
    """Samples call the functions of this library: what they know as `ag` is L for the time being."""
    modules = {sys.modules[s.call.__module__] for s in SAMPLES if hasattr(s.call, "__module__")} | {table}
    modules = {m for m in modules if getattr(m, "ag", None) is ag}
    try:
        for module in modules:
            module.ag = L
        yield
    finally:
        for module in modules:
            module.ag = ag


def shared(L):
    """The samples that this library can run and differentiate as well."""
    found = []
    with speaking(L):
        for sample in SAMPLES:
            if "float64" not in sample.dtypes:
                continue
            try:
                tensors = [L.tensor(a) for a in sample.arrays()]
                for tensor, flag in zip(tensors, sample.differentiable(), strict=True):
                    tensor.requires_grad_(flag)
                got = table.outputs(sample.call(*tensors))
                if any(sample.differentiable()):
                    sum(t.sum() for t in got if t.requires_grad).backward()
            except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError, IndexError):
                continue
            if all(hasattr(t, "numel") for t in got):
                found.append(sample)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Running


REFUSALS = (RuntimeError, IndexError, TypeError, ValueError)
SCALARS = (0.9, 1.1)


def kind_of(step):
    return ("op", "op", "op", "op", "view", "view", "view", "write", "write", "fresh")[step.kind % 10]


def leaves_of(seed):
    """Numbers for the leaves."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, SHAPES[rng.integers(len(SHAPES))]), rng.uniform(-1, 1, (2, 3)), rng.uniform(0.5, 1.5, ())]


def operand(pool, step):
    """What else a step reads: a value or a number."""
    return SCALARS[step.second % 2] if step.second % 5 == 0 else pool[step.second // 5 % len(pool)]


class Overlap(Exception):
    """A write from memory that may partly overlap, or to windows that do (unfold), which we refuse."""


def repeats(t):
    """Whether several elements share one place in memory."""
    positions = np.zeros((), int)
    for size, stride in zip(t.shape, t.stride(), strict=True):
        positions = positions[..., None] + np.arange(size) * stride
    return len(np.unique(positions)) < positions.size


class Ran(NamedTuple):
    """What a program did: each step's outcome, the values, those that are no floats, and what is to be differentiated."""

    log: list
    pool: list
    others: list
    loss: object


def run(L, steps, leaves, samples, row_major=False):
    """Run a program on tensors; values that got large are squashed, by their numbers and so alike everywhere.

    row_major: results are brought to that order, as NumPy's here are (which reshape returns a view depends on it). In PyTorch, a
    program ends before a write from memory that partly overlaps, where PyTorch's result would depend on the order of its loop.
    """
    pool = [leaf * 1.0 for leaf in leaves] + [L.tensor(np.full((2, 3), 0.7), dtype=leaves[0].dtype)]
    log, others = [], []
    with speaking(L):
        for step in steps:
            try:
                n = len(pool)
                _step(L, step, pool, others, samples)
                if row_major and kind_of(step) in ("op", "fresh"):
                    pool[n:] = [t.contiguous() for t in pool[n:]]
                log.append("done")
            except REFUSALS as error:
                log.append(f"refused: {error}")
            except Overlap:
                break
            for k in range(max(len(pool) - 2, 0), len(pool)):
                t = pool[k]
                if t.numel() and not float(t.detach().abs().max()) < 30:
                    pool[k] = t.tanh().contiguous()
    loss = 0
    for k, t in enumerate(pool):
        loss = loss + (t * t).sum() * (1 + 0.1 * k)
    return Ran(log, pool, others, loss)


def _step(L, step, pool, others, samples):
    t, kind = pool[step.first % len(pool)], kind_of(step)
    if kind == "op":
        sample = samples[step.which % len(samples)]
        inputs = [fitted(L, pool[(step.first + k * step.second) % len(pool)], *how) for k, how in enumerate(inputs_of(step, sample))]
        for out in table.outputs(sample.call(*inputs)):
            if out.dtype == t.dtype:
                # Not a view of what nobody else has; of reductions and indexing, whose result has its own order of memory in PyTorch.
                pool.append(out if sample.elementwise and sample.op not in ORDERED_DIFFERENTLY else (out * 1.0).contiguous())
            else:
                others.append(out)
        return
    if kind == "view":
        pool.append(VIEWS[step.which % len(VIEWS)][1](t))
    elif kind == "write":
        o = operand(pool, step)
        if L is not ag and 0 not in t.stride() and repeats(t):
            raise Overlap
        if L is not ag and hasattr(o, "shape") and o is not t and o.untyped_storage().data_ptr() == t.untyped_storage().data_ptr():
            raise Overlap
        WRITES[step.which % len(WRITES)][1](L, t, o)
    else:
        pool.append(FRESH[step.which % len(FRESH)][1](L, t, operand(pool, step)))


class Slow:
    """A program in NumPy. Values are pairs: a flat array that aliases share, and where in it each element lies."""

    def __init__(self, steps, leaves, samples):
        self.pool, self.others, self.log = [], [], []
        for value in (*leaves, np.full((2, 3), 0.7)):
            self.new(value * 1.0)
        for step in steps:
            try:
                with np.errstate(all="ignore"):
                    self.step(step, samples)
                self.log.append("done")
            except (*REFUSALS, AttributeError):
                self.log.append("refused")
            for k in range(max(len(self.pool) - 2, 0), len(self.pool)):
                x = self.value(k)
                if x.size and not np.abs(x).max() < 30:
                    self.pool[k] = self.pair(np.tanh(x))
        self.loss = sum((self.value(k) ** 2).sum() * (1 + 0.1 * k) for k in range(len(self.pool)))

    @staticmethod
    def pair(value):
        value = np.array(value, dtype="f8")
        return value.reshape(-1), np.arange(value.size).reshape(value.shape)

    def new(self, value):
        self.pool.append(self.pair(value))

    def value(self, k):
        memory, positions = self.pool[k % len(self.pool)]
        return memory[positions]

    def operand(self, step):
        return np.asarray(operand(self.pool, step)) if step.second % 5 == 0 else self.value(step.second // 5)

    def step(self, step, samples):
        kind = kind_of(step)
        if kind == "op":
            sample = samples[step.which % len(samples)]
            inputs = [fitted_slowly(self.value(step.first + k * step.second), *how) for k, how in enumerate(inputs_of(step, sample))]
            for out in table.outputs(sample.ref(*inputs)):
                out = np.asarray(out)
                if out.dtype.kind == "f":
                    self.new(out)
                else:
                    self.others.append(out)
            return
        memory, positions = self.pool[step.first % len(self.pool)]
        if kind == "view":
            seen = VIEWS[step.which % len(VIEWS)][2](positions)
            if seen is None:
                self.new(memory[positions].reshape(-1))
            else:
                self.pool.append((memory, np.asarray(seen)))
        elif kind == "write":
            if len(np.unique(positions)) < positions.size:
                raise RuntimeError("writes to repeated elements")
            t = np.asarray(memory[positions])
            made = WRITES[step.which % len(WRITES)][2](t, self.operand(step))
            if np.shape(made) != t.shape:
                raise ValueError("the result is larger than what it is written to")
            memory[positions] = made
        else:
            self.new(FRESH[step.which % len(FRESH)][2](memory[positions], self.operand(step)))


# ---------------------------------------------------------------------------------------------------------------------
# A program that fails: smaller, and as code


def shrunk(steps, fails):
    """The program without the steps that its failure does not need."""
    size = max(1, len(steps) // 2)
    while size:
        k = 0
        while k < len(steps):
            shorter = steps[:k] + steps[k + size:]
            if fails(shorter):
                steps = shorter
            else:
                k += size
        size //= 2
    return steps


def text(steps, samples):
    """The program as code, where the values so far are called v[0], v[1] ..."""
    lines = ["v = [leaf * 1.0 for leaf in leaves] + [L.tensor(np.full((2, 3), 0.7))]", f"# {len(steps)} steps: {steps!r}"]
    for step in steps:
        kind, t = kind_of(step), f"v[{step.first} % len(v)]"
        o = SCALARS[step.second % 2] if step.second % 5 == 0 else f"v[{step.second // 5} % len(v)]"
        if kind == "op":
            sample = samples[step.which % len(samples)]
            made = ", ".join(f"fitted(L, v[{step.first + k * step.second} % len(v)], {', '.join(map(repr, how))})"
                             for k, how in enumerate(inputs_of(step, sample)))
            lines.append(f"v += outputs(sample({sample.name!r}).call({made}))")
        else:
            code = {"view": VIEWS, "write": WRITES, "fresh": FRESH}[kind]
            line = code[step.which % len(code)][0].format(t=t, o=o)
            lines.append(line if kind == "write" else f"v.append({line})")
    return "\n    ".join(lines)
