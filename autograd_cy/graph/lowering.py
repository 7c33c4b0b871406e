"""Lowering: from the instructions of a Program to steps, plain numbers that the machine loads into C arrays.

Relies on program.py and ops (numbers of loops and of chain actions). The machine relies on it.

What an instruction leaves open is decided here, once: whether a map is one loop, a loop per row or strided; which maps of a group
form chains, which keep their values in registers (ops/chains.py); which single values need a row of their own.
"""

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.kernels.table import routine_number
from autograd_cy.ops import loop_id
from autograd_cy.ops.chains import action_of

from .program import coalesced

ALL_VECTORS, LAST_SCALAR, FIRST_SCALAR = 0, 1, 2      # variants of loops, as in kernels/table.pxd
BLOCK = 1024                  # elements of a scratch row, as there
ROW_BYTES = BLOCK * 8
MAX_CHAIN = 32                # maps: the links stand on the stack
FEW_ROWS, LONG_ROW = 8, 256   # a call of a loop per row takes 4 ns, planning a strided loop 40
SMALL_PRODUCT = 200_000       # below, gemm() calls the small kernel without looking further
ITEMSIZE = tuple(d.itemsize for d in DTYPES)


class Step:
    """One call of a kernel.

    kind: name of a case of the machine; n: elements of a loop; ints, numbers: the kernel's arguments; loop: (loop, dtype, variant);
    addresses: [(operand, buffer or "scratch", offset)]; strided: whether `ints` describe operands with strides.
    Of a map in a group: chained (how many maps from this one on run as a chain), action, other (the operand that is not the chain's
    value; 0: none), stored (whether its result goes to memory).
    """

    __slots__ = ("action", "addresses", "chained", "ints", "kind", "loop", "n", "n_operands", "numbers", "other", "source", "stored",
                 "strided", "work")

    def __init__(self, kind, source, n_operands=0):
        self.kind, self.source, self.n_operands = kind, source, n_operands
        self.n = self.work = self.chained = self.action = self.other = 0
        self.ints, self.numbers, self.addresses = [], [], []
        self.loop, self.strided, self.stored = None, False, True


def lower(program, has_loop, tile):
    """The steps of a program, and after them those inside of its groups.

    has_loop(loop, dtype, variant): whether there is such a loop; tile(dtype): elements of a chain's tile, 0 if there are no chains.
    """
    steps, inner = [], []
    total = len(program.instructions)
    for instruction in program.instructions:
        if instruction.kernel == "group":
            parts, fills, step = _group(instruction, has_loop, tile)
            step.ints += [total + len(inner), len(parts), len(fills)]
            inner += [*parts, *fills]
        else:
            step = _single(instruction, has_loop)
        steps.append(step)
    return steps, inner


def _single(instruction, has_loop):
    """The step of an instruction that is no group."""
    operands = instruction.operands
    step = Step(instruction.kernel, instruction, len(operands))
    step.addresses = [(k, view.buffer, view.offset) for k, view in enumerate(operands) if view is not None]
    step.numbers = list(instruction.numbers)
    kernel = step.kind
    if kernel == "map":
        _map(step, instruction, has_loop)
    elif kernel == "copy":
        first, second = operands
        dims, (one, two) = coalesced(first.shape, (first.strides, second.strides))
        step.ints = [len(dims), first.dtype, second.dtype, *dims, *one, *two]
        step.work = first.numel
    elif kernel == "reduce":                 # the kernels choose by shape: as the engine calls them
        first, second = operands
        step.ints = [instruction.attrs[0], second.dtype, len(first.shape), *first.shape, *second.strides, *first.strides]
        step.work = first.numel
    elif kernel == "gemm":
        dtype, _, _, batch, m, n, k = instruction.attrs[:7]
        if batch == 1 and dtype <= 1 and m * n * k < SMALL_PRODUCT:
            step.kind = "small_gemm"
        step.ints = list(instruction.attrs)
        step.work = batch * m * n * k
    elif kernel in ("routine", "checked_routine"):
        step.ints = [routine_number(instruction.name), len(instruction.attrs), len(instruction.numbers), len(operands)]
        for view in operands:
            step.ints += [0, 0] if view is None else [view.dtype, len(view.shape), *view.shape, *view.strides]
        step.ints += instruction.attrs
        step.work = sum([v.numel for v in operands if v is not None])
    else:
        step.ints = [int(a) for a in instruction.attrs]
        step.work = max([v.numel for v in operands if v is not None], default=0)
        if kernel in ("sgd", "adam", "rmsprop"):
            step.numbers += [0.0] * 6        # read from the optimiser's options before each run
    return step


def _is_alone(view):
    """Whether it shows one value only."""
    return not any(stride for size, stride in zip(view.shape, view.strides, strict=True) if size != 1)


def _variant(alone, n):
    """The variant of a loop of n inputs whose inputs in these places (from 1) are single values; None: there may be none."""
    if not alone:
        return ALL_VECTORS
    if alone == [2] and n == 2:
        return LAST_SCALAR
    return FIRST_SCALAR if alone == [1] and n > 1 else None


def _map(step, instruction, has_loop):
    """A plain loop where operands lie alike in one piece; else one per row, or a strided one. Of no elements: what reads nothing."""
    operands = instruction.operands
    out = operands[0]
    loop, dtype, n = loop_id(instruction.name), instruction.attrs[0], len(operands) - 1
    step.n = step.work = out.numel
    alone = [k for k, view in enumerate(operands[1:], 1) if _is_alone(view)] if step.n > 1 else []
    variant = _variant(alone, n)
    usable = variant is not None and has_loop(loop, dtype, variant)
    step.loop = loop, dtype, variant if usable else ALL_VECTORS
    if usable and (step.n <= 1 or out.is_dense and all(_lies_as(view, out) for k, view in enumerate(operands) if k not in alone)):
        return
    views = [view for view in operands if view.shape == out.shape]
    dims, strides = coalesced(out.shape, tuple([view.strides for view in views]))
    strides = iter(strides)
    by_operand = [next(strides) if view.shape == out.shape else [0] * len(dims) for view in operands]
    if len(dims) == 2 and (dims[0] <= FEW_ROWS or dims[1] >= LONG_ROW):
        single = [k for k, (_, inner) in enumerate(by_operand) if not inner]
        variant = _variant(single, n)
        if variant is not None and has_loop(loop, dtype, variant) and all(inner in (0, 1) for _, inner in by_operand):
            step.kind, step.n, step.loop = "rows", dims[1], (loop, dtype, variant)
            step.ints = [dims[0], *[row * ITEMSIZE[view.dtype] for view, (row, _) in zip(operands, by_operand, strict=True)]]
            return
    step.kind, step.strided = "strided", True
    step.ints = [len(dims), *dims]
    for view, steps in zip(operands, by_operand, strict=True):
        step.ints += [ITEMSIZE[view.dtype] if view.shape == out.shape else -ITEMSIZE[view.dtype], *steps]      # -: a single value


def _lies_as(view, out):
    """Whether the elements lie in the same places, axes of size 1 aside."""
    return view.shape == out.shape and all(
        a == b for a, b, size in zip(view.strides, out.strides, out.shape, strict=True) if size != 1)


# ---- groups

def _group(instruction, has_loop, tile):
    """(steps of the maps, steps that fill rows with single values, the step of the group)."""
    maps, (n, height) = instruction.extra, instruction.attrs[:2]
    step = Step("group", instruction)
    step.work = n * len(maps)
    parts, fills = [], []
    for part in maps:
        parts.append(_part(part, has_loop, height, fills))
    _chain(maps, parts, tile)
    step.ints = [n, _block(maps, parts, n, tile)]
    return parts, fills, step


def _block(maps, parts, n, tile):
    """Elements per block: a multiple of the tiles; all elements where a group is nothing but a chain that needs no rows."""
    least = max([tile(part.loop[1]) for part in parts if part.chained], default=1)
    if parts[0].chained == len(parts) and n > least and not any(
            part.stored and instruction.operands[0].buffer < 0 for part, instruction in zip(parts, maps, strict=True)):
        return n // least * least
    return BLOCK // least * least


def _part(part, has_loop, height, fills):
    """One map of a group. ints: bytes per element of the group, then per element of the block, for each operand."""
    operands = part.operands
    n = len(operands) - 1
    step = Step("part", part, n + 1)
    step.numbers = list(part.numbers)
    loop, dtype = loop_id(part.name), part.attrs[0]
    alone = [k for k, view in enumerate(operands) if k and view.buffer >= 0 and _is_alone(view)]
    variant = _variant(alone, n)
    filled = []
    if variant is None or not has_loop(loop, dtype, variant):
        variant, filled = ALL_VECTORS, alone
    step.loop = loop, dtype, variant
    moves, sizes = [], []
    for k, view in enumerate(operands):
        size = ITEMSIZE[view.dtype]
        if view.buffer < 0:
            step.addresses.append((k, "scratch", (-1 - view.buffer) * ROW_BYTES))
            moves.append(0)
            sizes.append(size)
        elif k in filled:
            row = height + len(fills)
            fill = Step("fill", part, 2)
            fill.addresses = [(0, "scratch", row * ROW_BYTES), (1, view.buffer, view.offset)]
            fill.ints = [size]
            fills.append(fill)
            step.addresses.append((k, "scratch", row * ROW_BYTES))
            moves.append(0)
            sizes.append(size)
        else:
            step.addresses.append((k, view.buffer, view.offset))
            moves.append(0 if k in alone else size)
            sizes.append(moves[-1])
    step.ints = moves + sizes
    return step


def _chain(maps, parts, tile):
    """Find the chains: neighbours of which each works on the result of the one before."""
    start = 0
    while start < len(maps):
        length = 0
        if maps[start].attrs[0] <= 1 and tile(maps[start].attrs[0]):
            length = _chain_from(maps, parts, start)
        if length > 1:
            parts[start].chained = length
            for k in range(start, start + length - 1):
                parts[k].stored = _is_read_later(maps, k)
        start += max(length, 1)


def _chain_from(maps, parts, start):
    """How many maps from `start` on can run as one chain; their parts learn their actions."""
    value, dtype, length = None, maps[start].attrs[0], 0
    for part, step in zip(maps[start:start + MAX_CHAIN], parts[start:], strict=False):
        inputs = part.operands[1:]
        if part.attrs[0] != dtype or part.numbers:
            break
        if value is None:
            value = next((view for view in inputs if view.buffer < 0 or not _is_alone(view)), None)
        places = tuple([k for k, view in enumerate(inputs, 1) if view == value])
        others = [k for k in range(1, len(inputs) + 1) if k not in places]
        if not places or len(others) > 1:
            break
        single = bool(others) and part.operands[others[0]].buffer >= 0 and _is_alone(part.operands[others[0]])
        action = action_of(part.name, places, single)
        if action is None:
            break
        step.action, step.other = action, others[0] if others else 0
        value, length = part.operands[0], length + 1
    return length


def _is_read_later(maps, k):
    """Whether somebody else than the next map needs the result of map k."""
    out = maps[k].operands[0]
    if out.buffer >= 0 or maps[k + 1].operands[0].buffer == out.buffer:
        return out.buffer >= 0
    for part in maps[k + 2:]:
        if any(view.buffer == out.buffer for view in part.operands[1:]):
            return True
        if part.operands[0].buffer == out.buffer:
            return False
    return False
