"""What passes ask about a program and about its views: who writes a buffer and when, which views show the same elements.

Relies on program.py only; every pass relies on it.
"""

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.graph.program import LOCAL, View

ITEMSIZE = tuple(d.itemsize for d in DTYPES)

# Loops of the same formula under another name.
SAME_LOOP = {"mul.db": "mul.da", "neg.dx": "neg", "sub.db": "neg"}


class Facts:
    """One walk over a program.

    results: ids of buffers that are looked at after a run; writes: for each written buffer the numbers of the instructions that
    write it; last: for each buffer in use the number of the last instruction that touches it.
    """

    def __init__(self, program):
        self.by_id = {b.id: b for b in program.buffers}
        self.results = program.results()
        self.writes = writes = {}
        self.last = last = {}
        self.alone = alone = {}         # written buffer -> the only view that writes it, if there is one and it reads nothing
        self.known_single = {}
        for i, instruction in enumerate(program.instructions):
            for view, role in zip(instruction.operands, instruction.roles, strict=True):
                if view is None:
                    continue
                buffer = view.buffer
                last[buffer] = i
                if role != "r":
                    if buffer in writes:
                        writes[buffer].append(i)
                        alone[buffer] = None
                    else:
                        writes[buffer] = [i]
                        alone[buffer] = view if role == "w" else None

    def is_single(self, id):
        """Whether the buffer is LOCAL and one instruction writes it, all of it at once: a value in the sense of SSA."""
        known = self.known_single.get(id)
        if known is None:
            buffer, view = self.by_id[id], self.alone.get(id)
            known = self.known_single[id] = view is not None and buffer.kind == LOCAL and covers(view, buffer)
        return known

    def passing(self, buffer):
        """Whether the buffer is a value that nobody sees after a run: a pass may do without it."""
        return buffer not in self.results and self.is_single(buffer)

    def kept(self, buffer, start, end):
        """Whether no instruction after `start`, up to and with `end`, writes the buffer."""
        written = self.writes.get(buffer)
        if written is None or written[-1] <= start:
            return True
        return not any(start < i <= end for i in written)


def covers(view, buffer):
    """Whether the view touches every byte of the buffer, once: View.covers, with the common case first."""
    if view.offset == 0 and view.numel * ITEMSIZE[view.dtype] == buffer.nbytes and is_dense(view):
        return True
    return view.covers(buffer) and is_dense(view)


def is_dense(view):
    """Whether its elements fill a stretch of memory, each once, in whatever order of dimensions."""
    step = 1
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size != 1:
            if stride != step:
                break
            step *= size
    else:
        return True
    return 0 in view.shape or view.is_dense


def same_layout(a, b):
    """Whether two views of one shape have their elements in the same places, counted from the first."""
    if a.shape != b.shape:
        return False
    return a.strides == b.strides or all(s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True) if n != 1)


def one_value(view):
    """The view of shape () of the single value that this view shows throughout, or None."""
    if view.shape == ():
        return view
    for size, stride in zip(view.shape, view.strides, strict=True):
        if size == 0 or (stride and size != 1):
            return None
    return View(view.buffer, view.offset, view.dtype, (), ())


def through(view, outer, source):
    """The view of `source` that shows what `view` shows of `outer`, where outer[i] is source[i]; None if strides can't say it.

    `outer` is dense and holds `view`; `source` has its shape, and may have another dtype (which the result then has).
    """
    if view == outer:
        return source
    if view.dtype != outer.dtype:
        return None
    distance, rest = divmod(view.offset - outer.offset, ITEMSIZE[outer.dtype])
    if rest or distance < 0:
        return None
    itemsize = ITEMSIZE[source.dtype]
    if same_layout(outer, source):
        return View(source.buffer, source.offset + distance * itemsize, source.dtype, view.shape, view.strides)
    dims = sorted((d for d, size in enumerate(outer.shape) if size != 1), key=lambda d: -outer.strides[d])
    low = {}
    for d in dims:
        low[d], distance = divmod(distance, outer.strides[d])
    start = sum(low[d] * source.strides[d] for d in dims)
    high = dict(low)
    strides = []
    for size, stride in zip(view.shape, view.strides, strict=True):
        if size == 1 or stride == 0:
            strides.append(0)
            continue
        d = next((d for d in dims if abs(stride) >= outer.strides[d] and stride % outer.strides[d] == 0), None)
        if d is None:
            return None
        step = stride // outer.strides[d]
        (high if step > 0 else low)[d] += step * (size - 1)
        strides.append(step * source.strides[d])
    if distance or any(low[d] < 0 or high[d] >= outer.shape[d] for d in dims):
        return None
    return View(source.buffer, source.offset + start * itemsize, source.dtype, view.shape, tuple(strides))


def with_reads(instruction, replace):
    """The instruction with `replace(view)` for every view that it only reads, those of a group's parts included."""
    operands = list(instruction.operands)
    changed = False
    for k, role in enumerate(instruction.roles):
        view = operands[k]
        if role == "r" and view is not None:
            operands[k] = replace(view)
            changed = changed or operands[k] is not view
    if not changed:
        return instruction
    operands = tuple(operands)
    extra = instruction.extra
    if instruction.kernel == "group":
        changed = dict(zip(instruction.operands, operands, strict=True))
        extra = tuple([part._replace(operands=tuple([changed.get(v, v) for v in part.operands])) for part in extra])
    return instruction._replace(operands=operands, extra=extra)
