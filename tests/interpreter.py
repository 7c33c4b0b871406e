"""An interpreter of Programs in NumPy, as slow and plain as possible: what the passes and the machine are held against.

Relies on graph/program.py and NumPy only; tests/test_passes.py relies on it.
"""

import numpy as np

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.graph.program import CONSTANT, EXTERNAL, INPUT, LOCAL, View


def _first_nan(f):
    """Where both operands are NaN the first is the result: hardware does so, but compilers swap operands."""
    def function(a, b):
        r = f(a, b)
        return np.where((a != a) & (b != b), a, r) if r.dtype.kind == "f" else r
    return function


def _masked(f):
    def function(g, x):
        r = f(g, x)
        return np.where((r != r) & (g == 0), np.zeros((), r.dtype), r)
    return function


add, sub, mul, div = map(_first_nan, (np.add, np.subtract, np.multiply, np.divide))
MAPS = {
    "add": lambda a, b: a | b if a.dtype == bool else add(a, b), "sub": sub, "mul": lambda a, b: a & b if a.dtype == bool else mul(a, b),
    "div": div, "neg": np.negative, "neg.dx": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "square": lambda x: x * x,
    "sqrt": np.sqrt, "relu": lambda x: np.where(x < 0, np.zeros((), x.dtype), x), "floor": np.floor, "tanh": np.tanh,
    "maximum": lambda a, b: np.where((a > b) | (a != a), a, b), "minimum": lambda a, b: np.where((a < b) | (a != a), a, b),
    "mul.da": _masked(mul), "mul.db": _masked(mul), "div.da": _masked(div), "where": np.where, "lt": np.less, "ge": np.greater_equal,
    "logical_not": lambda x: x == 0, "reciprocal": lambda x: np.ones((), x.dtype) / x, "pow": np.power,
    "square.dx": _masked(lambda g, x: g * (x + x)), "clamp": None, "bitwise_not": np.invert, "bitwise_or": np.bitwise_or, "bitwise_and": np.bitwise_and, "bitwise_xor": np.bitwise_xor,
    "floor_divide": np.floor_divide, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "rsqrt": lambda x: 1 / np.sqrt(x),
    "pow.da": lambda g, a, b: g * b * a ** (b - 1),
}


class Interpreter:
    """Memory of one program: places for its buffers, and what happened."""

    def __init__(self, program, contents, plan=None, block=8):
        """contents: {buffer id: bytes} for INPUT and EXTERNAL; plan: offsets of LOCAL buffers in one arena, else each has its own."""
        self.program, self.contents, self.block, self.log = program, contents, block, []
        self.memory, self.base = {}, {}
        arena = np.full(plan.nbytes, 0xCB, np.uint8) if plan else None
        for b in program.buffers:
            self.base[b.id] = 0
            if b.kind == CONSTANT:
                self.memory[b.id] = np.frombuffer(b.content, np.uint8)
            elif b.kind == LOCAL and plan is not None and b.id in plan.offsets:
                assert plan.offsets[b.id] % 64 == 0 and plan.offsets[b.id] + b.nbytes <= plan.nbytes
                self.memory[b.id], self.base[b.id] = arena, plan.offsets[b.id]
            elif b.kind == LOCAL:
                self.memory[b.id] = np.full(b.nbytes, 0xCB, np.uint8)
            else:
                self.memory[b.id] = np.frombuffer(contents[b.id], np.uint8).copy()

    def array(self, view):
        """The view as an array that shares the memory."""
        dtype = np.dtype(DTYPES[view.dtype].name)
        strides = tuple(s * dtype.itemsize for s in view.strides)
        return np.ndarray(view.shape, dtype, self.memory[view.buffer], self.base[view.buffer] + view.offset, strides)

    def run(self):
        """Run it all; the bytes of results and of what changed outside, and the log of effects."""
        with np.errstate(all="ignore"):
            for instruction in self.program.instructions:
                self.step(instruction)
        outputs = [self.array(v).tobytes() for v in self.program.outputs]
        gradients = [(name, v and self.array(v).tobytes()) for name, v in self.program.gradients]
        pinned = {}
        for b in sorted(self.program.pinned):
            start = self.base[b]
            pinned[b] = self.memory[b][start:start + self.program.by_id()[b].nbytes].tobytes()
        return outputs, gradients, pinned, self.outside(), self.log

    def outside(self):
        """Memory outside that has changed so far."""
        found = {b.id: self.memory[b.id].tobytes() for b in self.program.buffers if b.kind in (INPUT, EXTERNAL)}
        return {b: content for b, content in found.items() if content != self.contents[b]}

    def step(self, instruction):
        """Run one instruction."""
        if instruction.kernel == "group":
            self.group(instruction)
            return
        arrays = [self.array(v) for v in instruction.operands]
        if instruction.kernel in ("map", "copy", "reduce"):
            self.check_overlap(instruction)
        if instruction.kernel == "map":
            out, *inputs = arrays
            # contiguous: NumPy's loops for strided memory may round differently
            inputs = [np.ascontiguousarray(np.broadcast_to(a, out.shape)) for a in inputs]
            if instruction.name == "clamp":
                x, (low, high) = inputs[0], (np.asarray(n, inputs[0].dtype) for n in instruction.numbers)
                y = np.where(x < low, low, x)
                out[...] = np.where(y > high, high, y)
            else:
                out[...] = MAPS[instruction.name](*inputs)
        elif instruction.kernel == "copy":
            out, x = arrays
            out[...] = x.astype(out.dtype)
        elif instruction.kernel == "reduce":
            out, x = arrays
            reduced = tuple(d for d, s in enumerate(instruction.operands[0].strides) if s == 0)
            window = out[(*(slice(0, 1) if d in reduced else slice(None) for d in range(out.ndim)), ...)]
            window[...] = np.array(x, order="C").sum(reduced, out.dtype, keepdims=True)
        else:
            self.log.append((instruction.name, [a.tobytes() for a in arrays], self.outside()))

    def check_overlap(self, instruction):
        """An output is exactly the memory of an input of a map, or apart from it (kernels/table.pxd)."""
        def place(view):
            low, high = view.extent
            return id(self.memory[view.buffer]), self.base[view.buffer] + low, self.base[view.buffer] + high
        out, *inputs = instruction.operands
        memory, low, high = place(out)
        for view in inputs:
            other, start, end = place(view)
            if memory == other and low < end and start < high:
                same = (low, out.shape, out.itemsize) == (start, view.shape, view.itemsize)
                same = same and all(n == 1 or s == t for n, s, t in zip(out.shape, out.strides, view.strides))
                assert instruction.kernel == "map" and same, f"{instruction.name}: {out} overlaps {view}"

    def group(self, group):
        """Block by block, as the machine does it."""
        numel = group.attrs[0]
        for view, role in zip(group.operands, group.roles):
            assert view.shape == () and role == "r" or view.shape == (numel,) and view.strides == (1,)
        rows = {v.buffer for part in group.extra for v in part.operands if v.buffer < 0}
        for row in rows:
            self.memory[row], self.base[row] = np.full(8 * self.block, 0xCB, np.uint8), 0
        for start in range(0, numel, self.block):
            n = min(self.block, numel - start)
            for part in group.extra:
                self.step(part._replace(operands=tuple(self.window(v, group, start, n) for v in part.operands)))
        for row in rows:
            del self.memory[row], self.base[row]

    def window(self, view, group, start, n):
        if view.buffer < 0:
            assert view == View(view.buffer, 0, view.dtype, (self.block,), (1,))
            return view._replace(shape=(n,))
        assert view in group.operands
        return view if view.shape == () else view._replace(offset=view.offset + start * view.itemsize, shape=(n,))


def evaluate(instruction, contents):
    """What `fold` asks for: run one instruction on constants."""
    from autograd_cy.graph.program import Buffer, Program
    ends = {v.buffer: v.extent[1] for v in instruction.operands}
    buffers = tuple(Buffer(b, CONSTANT, len(contents[b]), "", contents[b]) if b in contents else Buffer(b, LOCAL, ends[b]) for b in ends)
    machine = Interpreter(Program(buffers, (instruction,)), {})
    with np.errstate(all="ignore"):
        machine.step(instruction)
    return {v.buffer: machine.memory[v.buffer].tobytes() for v in instruction.writes}
