"""The memory plan: every buffer that a program makes for itself gets a place in one arena, before anything runs.

Relies on program.py and on what passes ask about programs; the machine allocates the arena, `step.memory()` prints the report.

Two buffers may share a place if no instruction has both alive.  A map may also write over an input that dies there: element for
element, so the layouts have to be the same.
"""

from bisect import insort
from heapq import heappop, heappush
from typing import NamedTuple

from .passes.facts import ITEMSIZE, same_layout
from .program import CONSTANT, EXTERNAL, INPUT, LOCAL, operand_text

ALIGNMENT = 64          # bytes: a line of the cache, and a vector of AVX-512
SMALL = 200             # places up to which the quadratic search is tried, too: 200 take 3 ms


class Plan(NamedTuple):
    """Where buffers lie: {buffer: byte offset} in an arena of `nbytes`.

    Outputs and gradients are not in it: they need memory that the caller may keep.  lifetimes: {buffer: (first, last instruction)};
    peak_at: the instruction at which most bytes are alive; alive: how many, which no arrangement can go below; total: what the
    buffers need one beside the other; shared: {buffer: the input whose place it takes over}.
    """

    offsets: dict
    nbytes: int
    peak_at: int
    lifetimes: dict
    alive: int
    total: int
    shared: dict


def plan(program, reuse=True):
    """Find the places; without `reuse` no map writes over its input."""
    end = len(program.instructions)
    sizes, lifetimes = _lifetimes(program, end)
    shared = _takeovers(program, lifetimes, sizes) if reuse else {}
    owner = {}              # buffer -> the buffer that opens the place that it is in
    blocks = {}             # that buffer -> [first, last, bytes]
    for buffer in sorted(sizes, key=lambda b: lifetimes[b][0]):
        first, last = lifetimes[buffer] if buffer not in program.pinned else (0, end)
        root = owner[buffer] = owner[shared[buffer]] if buffer in shared else buffer
        block = blocks.setdefault(root, [first, last, 0])
        block[1], block[2] = max(block[1], last), max(block[2], sizes[buffer])
    alive, peak_at = _most_alive(blocks.values(), end)
    places, nbytes = _by_start(blocks)
    if nbytes > alive and len(blocks) <= SMALL:
        other = _by_size(blocks)
        if other[1] < nbytes:
            places, nbytes = other
    offsets = {buffer: places[owner[buffer]] for buffer in sizes}
    return Plan(offsets, nbytes, peak_at, lifetimes, alive, sum(sizes.values()), shared)


def _lifetimes(program, end):
    """Bytes and (first, last) instruction of every buffer that needs a place."""
    handed_out = {view.buffer for view in program.outputs} | {view.buffer for _, view in program.gradients if view is not None}
    sizes = {b.id: (b.nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
             for b in program.buffers if b.kind == LOCAL and b.id not in handed_out}
    lifetimes = {}
    for i, instruction in enumerate(program.instructions):
        for view in instruction.operands:
            if view is not None and view.buffer in sizes:
                found = lifetimes.get(view.buffer)
                lifetimes[view.buffer] = (found[0] if found else i, i)
    for buffer in program.pinned & sizes.keys() - lifetimes.keys():
        lifetimes[buffer] = (0, end)
    return {b: sizes[b] for b in lifetimes}, lifetimes


# ---- taking over the place of an input

def _takeovers(program, lifetimes, sizes):
    """{output of a map: an input that dies there and lies like it}."""
    by_id = program.by_id()
    shared = {}

    def may(buffer):
        return buffer in sizes and buffer not in program.pinned

    for i, instruction in enumerate(program.instructions):
        if instruction.kernel not in ("map", "group"):
            continue
        dying = {}          # input that dies here -> its only view, None if there are several
        for view, role in zip(instruction.operands, instruction.roles, strict=True):
            if may(view.buffer) and lifetimes[view.buffer][1] == i and lifetimes[view.buffer][0] < i:
                dying[view.buffer] = view if role == "r" and dying.get(view.buffer, view) == view else None
        if not dying:
            continue
        for out, role in zip(instruction.operands, instruction.roles, strict=True):
            if role != "w" or not may(out.buffer) or lifetimes[out.buffer][0] != i or not _is_whole(out, by_id[out.buffer]):
                continue
            for buffer, view in dying.items():
                if (view is not None and ITEMSIZE[view.dtype] == ITEMSIZE[out.dtype] and same_layout(view, out)
                        and _is_whole(view, by_id[buffer]) and (instruction.kernel == "map" or _is_read_first(instruction, view, out))):
                    shared[out.buffer] = buffer
                    del dying[buffer]
                    break
    return shared


def _is_whole(view, buffer):
    """Whether the view is the buffer from its first byte to its last."""
    return view.offset == 0 and view.numel * ITEMSIZE[view.dtype] == buffer.nbytes


def _is_read_first(group, view, out):
    """Whether a group has read its input before it writes the output, in every block."""
    last_read = max(k for k, part in enumerate(group.extra) if view in part.operands)
    first_write = min(k for k, part in enumerate(group.extra) if part.operands[0] == out)
    return last_read <= first_write


# ---- arranging blocks: {key: (first, last, bytes)} -> ({key: offset}, bytes in all)

def _most_alive(blocks, end):
    """(most bytes alive at once, the instruction where that is first so)."""
    change = [0] * (end + 2)
    for first, last, nbytes in blocks:
        change[first] += nbytes
        change[last + 1] -= nbytes
    most = now = where = 0
    for i, difference in enumerate(change):
        now += difference
        if now > most:
            most, where = now, i
    return most, where


def _by_start(blocks):
    """As an allocator would that is asked in the order of the program: the smallest gap that is large enough."""
    places, top = {}, 0
    gaps = []               # (offset, bytes), in order, none beside another
    ends = []               # heap of (last instruction, offset, bytes)
    for key, (first, last, nbytes) in sorted(blocks.items(), key=lambda item: item[1][0]):
        while ends and ends[0][0] < first:
            _, offset, size = heappop(ends)
            top = _release(gaps, offset, size, top)
        gap = min((g for g in gaps if g[1] >= nbytes), key=lambda g: g[1], default=None)
        if gap is None:
            offset, top = top, top + nbytes
        else:
            offset = gap[0]
            gaps.remove(gap)
            if gap[1] > nbytes:
                insort(gaps, (offset + nbytes, gap[1] - nbytes))
        places[key] = offset
        heappush(ends, (last, offset, nbytes))
    return places, max((places[key] + block[2] for key, block in blocks.items()), default=0)


def _release(gaps, offset, size, top):
    """Give bytes back; the new top: what lies free below it is no gap but room to grow."""
    if size:
        insort(gaps, (offset, size))
        k = gaps.index((offset, size))
        if k + 1 < len(gaps) and offset + size == gaps[k + 1][0]:
            gaps[k:k + 2] = [(offset, size + gaps[k + 1][1])]
        if k and sum(gaps[k - 1]) == offset:
            gaps[k - 1:k + 1] = [(gaps[k - 1][0], gaps[k - 1][1] + gaps[k][1])]
        if sum(gaps[-1]) == top:
            top = gaps.pop()[0]
    return top


def _by_size(blocks):
    """The largest first, each in the smallest gap among those that are alive with it."""
    places, done = {}, []
    for key, (first, last, nbytes) in sorted(blocks.items(), key=lambda item: -item[1][2]):
        best, best_size, free = None, None, 0
        for offset, end, start, stop in done:        # in the order of offsets
            if start > last or stop < first:
                continue
            if nbytes <= offset - free and (best is None or offset - free < best_size):
                best, best_size = free, offset - free
            free = max(free, end)
        places[key] = offset = free if best is None else best
        insort(done, (offset, offset + nbytes, first, last))
    return places, max((end for _, end, _, _ in done), default=0)


# ---- in words

def memory_report(program, plan, largest=8):
    """What a run will need, before it runs, and the lines of the user's code that need most of it."""
    kinds = dict.fromkeys((LOCAL, CONSTANT, EXTERNAL, INPUT), 0)
    for buffer in program.buffers:
        kinds[buffer.kind] += buffer.nbytes if buffer.id not in plan.offsets else 0
    scratch = max((-view.buffer * view.shape[0] * 8 for group in program.instructions if group.kernel == "group"
                   for part in group.extra for view in part.operands if view.buffer < 0), default=0)
    rows = [
        ("peak", plan.nbytes + kinds[LOCAL] + scratch, "needed while it runs, beside what is there before"),
        ("temporaries", plan.nbytes, f"{len(plan.offsets)} buffers of {size_text(plan.total)} in all, sharing places"
                                     f"{f'; {len(plan.shared)} written over an input' if plan.shared else ''}"),
        ("results", kinds[LOCAL], ""),
        ("blocks", scratch, "scratch rows of fused groups"),
        ("constants", kinds[CONSTANT], ""),
        ("parameters", kinds[EXTERNAL], "with gradients and the optimiser's state"),
        ("inputs", kinds[INPUT], ""),
    ]
    lines = [f"memory of {program.title}"]
    lines += [f"  {name:<12}{size_text(size):>10}{'   ' + note if note else ''}" for name, size, note in rows if size or name == "peak"]
    if plan.offsets and program.instructions:
        lines.append(f"  most is alive at instruction {plan.peak_at}, {size_text(plan.alive)} of temporaries:")
        by_id, made = program.by_id(), {}
        for i, instruction in enumerate(program.instructions):
            for view in instruction.writes:
                made.setdefault(view.buffer, (i, instruction, view))
        alive = [b for b in plan.offsets if plan.lifetimes[b][0] <= plan.peak_at <= plan.lifetimes[b][1] and b in made]
        for buffer in sorted(alive, key=lambda b: -by_id[b].nbytes)[:largest]:
            i, instruction, view = made[buffer]
            line = f", {instruction.line[0].rpartition('/')[2]}:{instruction.line[1]}" if instruction.line else ""
            lines.append(f"  {size_text(by_id[buffer].nbytes):>22}   {operand_text(view, by_id)} of {i} ({instruction.name}{line}), "
                         f"until {plan.lifetimes[buffer][1]}")
    return "\n".join(lines)


def size_text(n):
    """Bytes in print."""
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}" if unit != "B" else f"{n} B"
        n /= 1000
    return f"{n:.3g} GB"
