"""Program: what a captured computation does to memory, as a flat, typed, printable list of instructions.

Relies on the dtypes and the table of operations only. The recorder makes Programs, passes turn one into another, the memory
plan gives their buffers places, the machine runs them.

A *buffer* is one block of memory; a *view* is a typed, strided window on it.  An instruction is one call of a kernel: its operands
are views in the order in which the kernel takes them, each read ("r"), written ("w") or both ("u").  Views and shapes cost nothing
at run time, so a transpose or a reshape is no instruction: it shows in the strides of the views that follow.
"""

import hashlib
from typing import Any, NamedTuple

from autograd_cy.array.dtypes import DTYPES

INPUT, EXTERNAL, CONSTANT, LOCAL = "input", "external", "constant", "local"


class Buffer(NamedTuple):
    """One block of memory.

    kind: INPUT (an argument, bound at every run), EXTERNAL (memory that lives outside: parameters, optimiser state, gradients that
    are added to), CONSTANT (`content` holds its bytes) or LOCAL (made and used inside; the memory plan finds its place).
    owner: for EXTERNAL, what keeps the memory alive (an UntypedStorage).
    """

    id: int
    kind: str
    nbytes: int
    name: str = ""
    content: bytes | None = None
    owner: object = None


class View(NamedTuple):
    """A typed window on a buffer: byte offset of its first element, dtype code, shape, strides in elements."""

    buffer: int
    offset: int
    dtype: int
    shape: tuple
    strides: tuple

    @property
    def itemsize(self):
        """Bytes per element."""
        return DTYPES[self.dtype].itemsize

    @property
    def numel(self):
        """Number of elements, repeated ones (stride 0) included."""
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def is_contiguous(self):
        """Row-major without gaps."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    @property
    def is_dense(self):
        """The elements fill one piece of memory, in whatever order of the axes."""
        step = 1
        for stride, size in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n != 1):
            if stride != step:
                return False
            step *= size
        return True

    @property
    def extent(self):
        """(first byte, byte after the last) that the view touches, relative to the buffer."""
        low = high = 0
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 0:
                return self.offset, self.offset
            if stride > 0:
                high += (size - 1) * stride
            else:
                low += (size - 1) * stride
        return self.offset + low * self.itemsize, self.offset + (high + 1) * self.itemsize

    def covers(self, buffer):
        """Whether writing the view writes every byte of the buffer (which may be a little longer than its elements need)."""
        distinct = 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            distinct *= size if stride else 1
        low, high = self.extent
        return low == 0 and high == distinct * self.itemsize and high >= buffer.nbytes

    def __str__(self):
        sizes = ", ".join(str(size if stride or size == 1 else f"{size}*") for size, stride in zip(self.shape, self.strides, strict=True))
        return f"{DTYPES[self.dtype].name}[{sizes}]"


class Instruction(NamedTuple):
    """One call of a kernel.

    kernel: "map" (an elementwise loop, named by `name`: "mul", or "mul.da" for a derivative), "copy", "reduce", "gemm", "softmax",
    "adam" ... (see machine.pyx), or "group": maps over equally many contiguous elements that run block by block, in `extra` as
    instructions whose views of buffer -1 - k are scratch row k of a block; name: what it is called in print; operands: views or None (an
    option not in use), in the kernel's order; roles: one of "r", "w", "u" per operand; attrs: integers; numbers: floats; line: (file,
    line, function) of the user's code; extra: a Python object that the kernel needs (what an update reads its options from; the
    function of a call).
    """

    kernel: str
    name: str
    operands: tuple
    roles: str
    attrs: tuple = ()
    numbers: tuple = ()
    line: tuple | None = None
    extra: object = None

    @property
    def reads(self):
        """Views whose values it depends on."""
        return [v for v, role in zip(self.operands, self.roles, strict=True) if v is not None and role != "w"]

    @property
    def writes(self):
        """Views that it changes."""
        return [v for v, role in zip(self.operands, self.roles, strict=True) if v is not None and role != "r"]

    @property
    def has_effects(self):
        """Whether more than its operands changes: Python is called, an optimiser's counter goes up, an error may be raised."""
        return self.kernel in EFFECTS

    def key(self):
        """What makes two instructions the same computation."""
        return (*self[:6], self.extra if self.kernel == "group" else None)


# Kernels that must run even where nobody reads what they write: they count, draw random numbers or check.
EFFECTS = frozenset(("call", "sgd", "adam", "rmsprop", "index_offsets", "outside_unit", "checked_routine"))


class Program(NamedTuple):
    """Buffers, instructions, the views that arguments are bound to, and the views of results.

    gradients: ((name of the leaf, view or None), ...): what `.grad` of leaves is after a run; None: it is cleared.
    pinned: buffers that must keep their contents after the run (what a backward program reads). tree: how the outputs make up the
    result (trees.py).
    """

    buffers: tuple
    instructions: tuple
    inputs: tuple = ()
    outputs: tuple = ()
    gradients: tuple = ()
    pinned: frozenset = frozenset()
    title: str = "program"
    tree: object = None

    # ---- what passes ask

    def uses(self):
        """For each buffer id: the list of (instruction number, operand number), in order."""
        found = {b.id: [] for b in self.buffers}
        for i, instruction in enumerate(self.instructions):
            for k, view in enumerate(instruction.operands):
                if view is not None:
                    found[view.buffer].append((i, k))
        return found

    def results(self):
        """Ids of the buffers that are looked at after a run."""
        views = [*self.outputs, *(view for _, view in self.gradients if view is not None)]
        return {view.buffer for view in views} | set(self.pinned)

    def single(self):
        """Ids of the LOCAL buffers that exactly one instruction writes, all of it at once: values in the sense of SSA."""
        writes = {b.id: [] for b in self.buffers if b.kind == LOCAL}
        for instruction in self.instructions:
            for view, role in zip(instruction.operands, instruction.roles, strict=True):
                if view is not None and role != "r" and view.buffer in writes:
                    writes[view.buffer].append((view, role))
        by_id = self.by_id()
        return {b for b, found in writes.items() if len(found) == 1 and found[0][1] == "w" and found[0][0].covers(by_id[b])}

    def by_id(self):
        """Buffers by their ids."""
        return {b.id: b for b in self.buffers}

    def with_(self, **changes):
        """A copy with some fields replaced, without the buffers that nothing mentions any more."""
        changed = self._replace(**changes)
        used = {view.buffer for i in changed.instructions for view in i.operands if view is not None} | changed.results()
        used |= {view.buffer for view in changed.inputs}
        return changed._replace(buffers=tuple(b for b in changed.buffers if b.id in used))

    # ---- what users ask

    def run(self, *inputs: Any, engine: str = "replay") -> Any:
        """The result for these inputs; engine: "replay", "iterative" or "recursive", which give equal bytes."""
        from .evaluate import run
        return run(self, inputs, engine)

    def find_leaves(self) -> list[str]:
        """Names of what the program starts from: inputs, memory that lives outside, and numbers."""
        by_id, found = self.by_id(), {}
        for instruction in self.instructions:
            for view in instruction.reads:
                buffer = by_id[view.buffer]
                if buffer.kind != LOCAL:
                    found.setdefault(buffer.id, operand_text(view, by_id))
        return list(found.values())

    def chosen(self, *outputs: int) -> "Program":
        """The program for some of its outputs (numbers from 0), without what only the others need: made once, run often."""
        from .passes import dead_code
        return dead_code(self._replace(outputs=tuple(self.outputs[k] for k in outputs), gradients=(), tree=None))

    def picture(self) -> Any:
        """The program as boxes and arrows, for graph.draw."""
        from .pictures import picture_of
        return picture_of(self)

    def to_json(self) -> str:
        """The program as text, the contents of outside memory included. TypeError for what lives in Python: updates, calls."""
        from .files import to_json
        return to_json(self)

    # ---- identity and text

    def structure(self):
        """The program as nested tuples of plain values, with buffers numbered in the order of their first use."""
        number, by_id = {}, self.by_id()

        def view(v):
            return v and (number.setdefault(v.buffer, len(number)), *v[1:])

        inputs = tuple(map(view, self.inputs))
        body = tuple((i.kernel, i.name, tuple(map(view, i.operands)), i.roles, i.attrs, i.numbers) for i in self.instructions)
        ends = (tuple(map(view, self.outputs)), tuple((name, view(v)) for name, v in self.gradients))
        buffers = tuple((by_id[b].kind, by_id[b].nbytes, by_id[b].name, by_id[b].content) for b in number)
        return inputs, body, ends, buffers

    def __eq__(self, other):
        return isinstance(other, Program) and self.structure() == other.structure()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.structure())

    def fingerprint(self) -> str:
        """A hexadecimal digest of the structure: equal for equal programs, in any process."""
        return hashlib.sha256(repr(self.structure()).encode()).hexdigest()

    def __str__(self):
        by_id = self.by_id()
        lines = [f"{self.title}: {len(self.instructions)} instructions"]
        for k, view in enumerate(self.inputs):
            lines.append(f"  input {k}: {operand_text(view, by_id)}")
        width = len(str(max(len(self.instructions) - 1, 0)))
        for i, instruction in enumerate(self.instructions):
            lines.append(f"  {i:>{width}}  {instruction_text(instruction, by_id)}")
            lines += [f"  {'':>{width}}      {instruction_text(part, by_id)}" for part in parts_of(instruction)]
        for k, view in enumerate(self.outputs):
            lines.append(f"  output {k}: {operand_text(view, by_id)}")
        for name, view in self.gradients:
            lines.append(f"  {name}.grad: {operand_text(view, by_id) if view is not None else None}")
        return "\n".join(lines)


def parts_of(instruction):
    """The maps of a group; nothing for other instructions."""
    return instruction.extra if instruction.kernel == "group" else ()


def operand_text(view, by_id):
    """A view in print: %3:float32[4, 16], or the number that a constant holds."""
    if view.buffer < 0:
        return f"block {-1 - view.buffer}"
    buffer = by_id[view.buffer]
    if buffer.kind == CONSTANT and view.numel == 1:
        return constant_text(buffer, view)
    strides = "" if view.is_contiguous or view.numel == 0 else f" strides {list(view.strides)}"
    offset = f"+{view.offset // view.itemsize}" if view.offset else ""
    return f"{buffer.name or f'%{buffer.id}'}{offset}:{view}{strides}"


def instruction_text(instruction, by_id):
    """One instruction in print: written = name(read, ...)."""
    written = ", ".join(operand_text(v, by_id) for v in instruction.writes)
    pairs = zip(instruction.operands, instruction.roles, strict=True)
    read = [operand_text(v, by_id) for v, role in pairs if v is not None and role == "r"]
    read += [f"{number:g}" for number in instruction.numbers]
    place = f"   # {instruction.line[0].rpartition('/')[2]}:{instruction.line[1]}" if instruction.line else ""
    return f"{written or '()'} = {instruction.name}({', '.join(read)}){place}"


def coalesced(shape, strides):
    """Shape and several strides with axes of size 1 dropped and neighbours joined that all can be walked as one."""
    dims, kept = [], [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if dims and all(k[-1] == s[axis] * size for k, s in zip(kept, strides, strict=True)):
            dims[-1] *= size
            for k, s in zip(kept, strides, strict=True):
                k[-1] = s[axis]
        else:
            dims.append(size)
            for k, s in zip(kept, strides, strict=True):
                k.append(s[axis])
    return dims, kept


def constant_text(buffer, view):
    """The single number that a view of a constant buffer shows."""
    import numpy as np
    data = np.frombuffer(buffer.content, DTYPES[view.dtype].name, 1, view.offset)
    return repr(data[0].item())
