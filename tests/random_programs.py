"""Random Programs for the tests of the passes: maps, copies, sums, conversions, views, writes in place and effects.

Relies on graph/program.py and NumPy; tests/test_passes.py relies on it.
"""

import random

import numpy as np

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.graph.program import CONSTANT, EXTERNAL, INPUT, LOCAL, Buffer, Instruction, Program, View

F32, F64, I32, BOOL = 0, 1, 3, 5
SHAPES = ((), (5,), (4, 6), (6, 4), (24,), (2, 3, 4), (24,), (4, 6))
UNARY = ("neg", "neg", "neg.dx", "abs", "exp", "square", "relu", "floor", "log")
BINARY = ("add", "add", "mul", "mul", "sub", "div", "maximum", "minimum", "mul.da", "mul.db", "div.da")
NUMBERS = (0.0, -0.0, 1.0, 1.0, 2.0, 0.5, -1.0, 3.0, float("inf"), float("nan"))


def contiguous(buffer, dtype, shape, offset=0):
    """A row-major view."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return View(buffer, offset, dtype, tuple(shape), tuple(reversed(strides)))


def transposed(view):
    """The view with its dimensions in reverse."""
    return view._replace(shape=view.shape[::-1], strides=view.strides[::-1])


class Maker:
    """Builds one Program; `values` are views that hold something."""

    def __init__(self, seed, shapes=SHAPES):
        self.r = random.Random(seed)
        self.shapes = shapes
        self.buffers, self.instructions, self.values, self.contents = [], [], [], {}
        self.numpy = np.random.default_rng(seed)
        for kind in (INPUT, INPUT, EXTERNAL, EXTERNAL, EXTERNAL, CONSTANT):
            self.source(kind, self.r.choice((F32, F32, F32, F64, I32)), self.r.choice(shapes))
        for _ in range(3):
            self.scalar(self.r.choice((F32, F32, F64, I32)))

    def buffer(self, kind, nbytes, content=None):
        self.buffers.append(Buffer(3 * len(self.buffers), kind, nbytes, "", content))
        return self.buffers[-1].id

    def source(self, kind, dtype, shape):
        n = int(np.prod(shape))
        data = self.numpy.choice([0.0, -0.0, 1.0, 1.5, -2.0, 0.25, 3.0, np.nan if dtype != I32 else 7, -np.inf if dtype != I32 else 9], n)
        if kind == CONSTANT and self.r.random() < 0.5:
            data[:] = 1
        content = data.astype(DTYPES[dtype].name).tobytes()
        buffer = self.buffer(kind, len(content), content if kind == CONSTANT else None)
        self.contents[buffer] = content
        self.values.append(contiguous(buffer, dtype, shape))

    def scalar(self, dtype):
        value = self.r.choice(NUMBERS) if dtype != I32 else self.r.choice((0, 1, 2, -1))
        content = np.array(value, DTYPES[dtype].name).tobytes()
        self.values.append(View(self.buffer(CONSTANT, len(content), content), 0, dtype, (), ()))
        return self.values[-1]

    def out(self, dtype, shape, dense=True):
        """A view to write: of a new buffer, or of one in use (then it is overwritten)."""
        view = contiguous(self.buffer(LOCAL, DTYPES[dtype].itemsize * int(np.prod(shape))), dtype, shape)
        return transposed(contiguous(view.buffer, dtype, shape[::-1])) if dense and self.r.random() < 0.15 else view

    def writable(self):
        kinds = {b.id: b.kind for b in self.buffers}
        return [v for v in self.values if kinds[v.buffer] in (EXTERNAL, LOCAL) and (0 not in v.strides)]

    def reading(self, dtype, shape):
        """A view to read, of this dtype and shape or a scalar; None where there is none."""
        kind = self.r.random()
        n = int(np.prod(shape))
        if kind < 0.25:
            scalars = [v for v in self.values if v.dtype == dtype and v.shape == ()]
            if kind < 0.1 or not scalars:
                return self.scalar(dtype) if dtype != BOOL else None
            return self.r.choice(scalars)
        found = [v for v in self.values[-12:] + self.values[:6] if v.dtype == dtype and v.shape == shape]
        if kind < 0.5 or not found:
            found += [transposed(v) for v in self.values if v.dtype == dtype and v.shape[::-1] == shape]
            found += [contiguous(v.buffer, dtype, shape, v.offset) for v in self.values
                      if v.dtype == dtype and v.is_contiguous and v.numel == n]
        if kind > 0.95 and shape:
            found += [View(v.buffer, v.offset, dtype, shape, (0,) * (len(shape) - 1) + (1,)) for v in self.values
                      if v.dtype == dtype and v.shape == shape[-1:]]
        return self.r.choice(found) if found else None

    def add(self, kernel, name, operands, roles, **more):
        self.instructions.append(Instruction(kernel, name, tuple(operands), roles, line=("test.py", len(self.instructions), "f"), **more))
        if operands[0] not in self.values and roles[0] != "r" and 0 not in operands[0].strides:
            self.values.append(operands[0])

    @staticmethod
    def clash(out, inputs):
        """Whether an input lies in the output's buffer otherwise than as the same view."""
        return any(v.buffer == out.buffer and v != out for v in inputs)

    def step(self):
        """One more instruction, perhaps none."""
        kind = self.r.random()
        if kind < 0.62:
            self.map()
        elif kind < 0.8:
            self.copy()
        elif kind < 0.9:
            self.reduce()
        elif kind < 0.93:
            self.partial()
        elif self.values:
            view = self.r.choice(self.values)
            self.add("outside_unit", "outside_unit", (view,), "r")

    def map(self):
        dtype = self.r.choice((F32,) * 8 + (F64, F64, I32))
        shape = self.r.choice(self.shapes)
        name = self.r.choice(UNARY + BINARY * 2 + ("lt", "where", "clamp"))
        if dtype == I32 and name not in ("add", "mul", "sub", "neg", "abs", "maximum", "lt", "where", "relu"):
            return
        dtypes = (BOOL, dtype, dtype) if name == "where" else (dtype,) * (1 if name in UNARY or name == "clamp" else 2)
        inputs = [self.reading(d, shape) for d in dtypes]
        if None in inputs:
            return
        if len(inputs) == 2 and self.r.random() < 0.2:
            inputs[1] = inputs[0]
        targets = [v for v in self.writable() if v.dtype == (BOOL if name == "lt" else dtype) and v.shape == shape]
        target = self.r.choice(targets) if targets and self.r.random() < 0.3 else None
        role = "w"
        if target is not None and not self.clash(target, inputs):
            role = "u" if target in inputs and self.r.random() < 0.5 else "w"
        else:
            target = self.out(BOOL if name == "lt" else dtype, shape)
        self.add("map", name, (target, *inputs), role + "r" * len(inputs), attrs=(dtype,), numbers=(self.r.choice((0.0, -0.0)), 2.0) if name == "clamp" else ())

    def copy(self):
        shape = self.r.choice(self.shapes)
        dtype = self.r.choice((F32, F32, F64))
        source = self.reading(dtype, shape)
        if source is None:
            return
        if source.shape != shape:
            source = View(*source[:3], shape, (0,) * len(shape))
        target_dtype = dtype if self.r.random() < 0.6 else self.r.choice((F32, F64))
        targets = [v for v in self.writable() if v.dtype == target_dtype and v.shape == shape and v.buffer != source.buffer]
        target = self.r.choice(targets) if targets and self.r.random() < 0.15 else self.out(target_dtype, shape)
        self.add("copy", "copy", (target, source), "wr")

    def reduce(self):
        shape = self.r.choice(self.shapes)
        x = self.reading(self.r.choice((F32, F32, F64)), shape)
        if x is None or x.shape != shape:
            return
        reduced = [self.r.random() < 0.6 for _ in shape]
        small = tuple(1 if r else n for r, n in zip(reduced, shape))
        out = self.out(x.dtype, small, dense=False)
        self.add("reduce", "sum", (View(*out[:3], shape, tuple(0 if r else s for r, s in zip(reduced, out.strides))), x), "wr", attrs=(0,), numbers=(0.0,))
        self.values.append(out)

    def partial(self):
        """Write a part of a buffer that is in use."""
        found = [v for v in self.writable() if v.dtype == F32 and v.shape == (4, 6) and v.strides == (6, 1)]
        x = self.reading(F32, (2, 6))
        if found and x is not None:
            target = self.r.choice(found)
            target = target._replace(offset=target.offset + 24 * self.r.randrange(3), shape=(2, 6))
            if x.shape == () and x.buffer != target.buffer:
                self.add("copy", "copy", (target, View(*x[:3], (2, 6), (0, 0))), "wr")

    def program(self, n):
        """n more steps, and results."""
        for _ in range(n):
            self.step()
        made = [v for v in self.writable() if v.buffer in {b.id for b in self.buffers if b.kind == LOCAL}]
        picked = self.r.sample(made, min(len(made), self.r.randrange(4)))
        pinned = frozenset(v.buffer for v in picked[2:])
        return Program(tuple(self.buffers), tuple(self.instructions), tuple(v for v in self.values[:2]), tuple(picked[:1]),
                       (("w", picked[1] if len(picked) > 1 else None),), pinned)
