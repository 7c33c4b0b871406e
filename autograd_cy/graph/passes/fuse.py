"""Fusion: elementwise loops over the same elements run block by block, so that what is between them stays in the first-level cache.

Relies on facts.py; the machine runs the groups that come out.  No compiler is needed at run time: a group is a list of loops.

A group grows from one map by looking ahead.  Instructions that are in the way go before the group if they don't depend on it, or
after it with all that depends on them; a map that depends on none of the latter may join.  So does a map that went before the
group, once a member needs what it makes: trees grow, not only chains.
"""

from collections import deque
from itertools import islice
from typing import NamedTuple

from autograd_cy.graph.program import LOCAL, Instruction, View

from .facts import ITEMSIZE, Facts, is_dense, one_value, same_layout

BLOCK = 1024            # elements per block of scratch memory, as in kernels/table.pxd
MIN_BLOCKS = 2          # shorter temporaries sit in the first-level cache anyway
MAX_MAPS = 32           # forward and backward of 25 maps: 3.4 ns per element as one group of 10^6, 6.6 as groups of 16 and 9
MAX_OPERANDS = 12       # each is a stream from memory, and processors follow about so many
WINDOW = 64             # how far to look ahead, which keeps the pass linear
PATIENCE = 24           # how many instructions without a new member end a search


def fuse(program, block=BLOCK):
    """Put maps over equally many contiguous elements into groups."""
    least = MIN_BLOCKS * block
    if sum([instruction.kernel == "map" and instruction.operands[0].numel >= least for instruction in program.instructions]) < 2:
        return program
    outside = {b.id for b in program.buffers if b.kind != LOCAL}
    items = [_item(instruction, least, outside) for instruction in program.instructions]
    facts = Facts(program)
    count = {}
    for instruction in program.instructions:
        for view in instruction.operands:
            if view is not None:
                count[view.buffer] = count.get(view.buffer, 0) + 1
    inner = {b: n for b, n in count.items() if facts.passing(b)}
    rest, done = deque(items), []
    while rest:
        item = rest.popleft()
        if item.windows is None:
            done.append(item.instruction)
            continue
        search = _Search(item, inner)
        seen = search.look_at(islice(rest, WINDOW))
        if len(search.members) == 1 or not search.shows(inner):
            done.append(item.instruction)
            continue
        for _ in range(seen):
            rest.popleft()
        group = _Item(_group(search.members, inner, block), None, frozenset(search.reads), frozenset(search.writes), False, search.visible)
        rest.extendleft(reversed([*search.before, group, *search.after]))
    if len(done) == len(program.instructions):
        return program
    return program.with_(instructions=tuple(done))


class _Item(NamedTuple):
    """An instruction; its operands as flat windows if it may be in a group, else None; the buffers that it reads and writes.

    visible: it writes memory outside.  What has effects may raise an error, which must find that memory as it would have been: the
    two never change places.
    """

    instruction: Instruction
    windows: tuple | None
    reads: frozenset
    writes: frozenset
    effects: bool
    visible: bool


def _item(instruction, least, outside):
    reads, writes = [], []
    for view, role in zip(instruction.operands, instruction.roles, strict=True):
        if view is not None:
            if role != "w":
                reads.append(view.buffer)
            if role != "r":
                writes.append(view.buffer)
    windows = _windows(instruction, least) if instruction.kernel == "map" else None
    return _Item(instruction, windows, frozenset(reads), frozenset(writes), instruction.has_effects,
                 not outside.isdisjoint(writes))


def _windows(instruction, least):
    """The operands as stretches of memory in its order, or as single values; None if one is neither."""
    out = instruction.operands[0]
    n = out.numel
    if n < least or not is_dense(out):
        return None
    windows = []
    for view in instruction.operands:
        if same_layout(view, out):
            windows.append(View(view.buffer, view.offset, view.dtype, (n,), (1,)))
        else:
            value = one_value(view)
            if value is None:
                return None
            windows.append(value)
    return tuple(windows)


class _Search:
    """A group that grows, what goes before it, and what goes after it."""

    def __init__(self, first, inner):
        self.members, self.before, self.after = [first], [], []
        self.order = {id(first): 0}         # of the program: what is pulled from `before` may belong between two members
        self.inner = inner
        self.numel = first.windows[0].shape[0]
        self.reads, self.writes = set(first.reads), set(first.writes)
        self.visible = first.visible
        self.after_reads, self.after_writes, self.after_effects, self.after_visible = set(), set(), False, False
        self.shared = {w for w in first.windows if w.shape}

    def look_at(self, items):
        """Give each item its place; how many have one."""
        seen = patience = 0
        for item in items:
            if item.instruction.kernel == "call" or patience == PATIENCE:
                break                       # a function may look at any memory that is visible outside
            seen += 1
            self.order[id(item)] = seen
            if self.follows_after(item):
                self.put_after(item)
            elif item.windows is not None and self.join(item):
                patience = 0
                continue
            elif _conflict(item, self.reads, self.writes) or (item.effects and self.visible):
                self.put_after(item)
            else:
                self.before.append(item)
            patience += 1
        return seen

    def shows(self, inner):
        """Whether anything is left of it outside."""
        scratch = _scratch(self.members, inner)
        return any(member.windows[0].buffer not in scratch for member in self.members)

    def follows_after(self, item):
        """Whether it can't go before what comes after the group."""
        return bool(self.after) and (
            _conflict(item, self.after_reads, self.after_writes) or (item.visible and self.after_effects)
            or (item.effects and (self.after_effects or self.after_visible)))

    def put_after(self, item):
        self.after.append(item)
        self.after_reads |= item.reads
        self.after_writes |= item.writes
        self.after_effects = self.after_effects or item.effects
        self.after_visible = self.after_visible or item.visible

    def join(self, item):
        """Make it a member, with what it needs of what went before the group, if that is right and worth it."""
        if item.windows[0].shape[0] != self.numel or self.shared.isdisjoint(item.windows):
            return False
        needed = self.producers(item)
        for pulled in ([needed, []] if needed else [[]]):
            members = [*self.members, *(self.before[k] for k in pulled), item]
            members.sort(key=lambda member: self.order[id(member)])
            if len(members) <= MAX_MAPS and _fits(members, self.inner):
                break
        else:
            return False
        for k in reversed(pulled):
            self.add(self.before.pop(k))
        self.add(item)
        self.members = members
        return True

    def add(self, item):
        self.reads |= item.reads
        self.writes |= item.writes
        self.visible = self.visible or item.visible
        self.shared.update(w for w in item.windows if w.shape)

    def producers(self, item):
        """Places in `before` of the maps that make what the item reads and that may move down to it, in order."""
        wanted, found = {w for w in item.windows[1:] if w.shape} - self.shared, []
        for k in range(len(self.before) - 1, -1, -1):
            if not wanted:
                break
            other = self.before[k]
            if (other.windows is not None and other.windows[0] in wanted and not other.visible
                    and not any(_conflict(other, later.reads, later.writes)
                                for n, later in enumerate(self.before[k + 1:], k + 1) if n not in found)):
                found.append(k)
                wanted.update(w for w in other.windows[1:] if w.shape)
        return found[::-1]


def _conflict(item, reads, writes):
    """Whether the item may not change places with something that reads and writes these buffers."""
    return not (item.reads.isdisjoint(writes) and item.writes.isdisjoint(writes) and item.writes.isdisjoint(reads))


def _fits(members, inner):
    """Whether they may run block by block, each element after the other, and not on too many streams.

    Windows on a buffer that a member writes must be the same or apart: else a block would see other blocks.
    """
    views, written = {}, set()
    for member in members:
        for window in member.windows:
            views.setdefault(window.buffer, set()).add(window)
        written.add(member.windows[0])
    for window in written:
        if len(views[window.buffer]) == 1:
            continue
        low, high = window.extent
        for other in views[window.buffer]:
            if other != window:
                start, end = other.extent
                if low < end and start < high:
                    return False
    scratch = _scratch(members, inner)
    return sum(len(found) for buffer, found in views.items() if buffer not in scratch) <= MAX_OPERANDS


def _scratch(members, inner):
    """Buffers that only the members use: {buffer: number of the last member that does}.

    One of them writes it whole, so that all others read that same window, or they wouldn't fit.
    """
    left, last = {}, {}
    for k, member in enumerate(members):
        for window in member.windows:
            buffer = window.buffer
            if buffer in inner:
                last[buffer] = k
                left[buffer] = left.get(buffer, inner[buffer]) - 1
    return {buffer: k for buffer, k in last.items() if left[buffer] == 0}


def _group(members, inner, block):
    """The members as one instruction."""
    scratch = _scratch(members, inner)
    rows, free, height = {}, [], 0
    parts, operands = [], {}
    for k, member in enumerate(members):
        out, *inputs = member.windows
        views = [_row(rows, w, block) if w.buffer in scratch else w for w in inputs]
        for window in inputs:
            if window.buffer not in scratch:
                operands.setdefault(window, "r")
        # A row is free again with its last reader, whose result may take it if its elements have the same size.
        dying = [w for w in dict.fromkeys(inputs) if scratch.get(w.buffer) == k]
        if out.buffer in scratch:
            heir = next((w for w in dying if ITEMSIZE[w.dtype] == ITEMSIZE[out.dtype]), None)
            if heir is not None:
                rows[out.buffer] = rows[heir.buffer]
                dying.remove(heir)
            elif free:
                rows[out.buffer] = free.pop()
            else:
                rows[out.buffer] = height
                height += 1
            target = _row(rows, out, block)
        else:
            target = out
            operands[out] = "u" if operands.get(out, "w") != "w" else "w"
        free += [rows[w.buffer] for w in dying]
        instruction = member.instruction
        parts.append(instruction._replace(operands=(target, *views), roles="w" + "r" * len(views)))
    operands = dict(sorted(operands.items(), key=lambda item: item[0].shape == ()))      # single values last
    numel = members[0].windows[0].shape[0]
    return Instruction("group", f"group of {len(parts)}", tuple(operands), "".join(operands.values()), (numel, height),
                       line=members[0].instruction.line, extra=tuple(parts))


def _row(rows, window, block):
    """The view of a scratch row."""
    return View(-1 - rows[window.buffer], 0, window.dtype, (block,), (1,))
