"""Common subexpressions: what is computed twice from the same values is computed once.

Relies on facts.py. Two readings of one buffer are the same value while nobody has written it in between: each read is
known by (buffer, number of writes so far, window). The order of operands counts: a + b and b + a may differ in the NaN they give.
"""

from bisect import bisect_left
from math import copysign

from autograd_cy.graph.program import CONSTANT, EFFECTS, View

from .facts import SAME_LOOP, Facts, with_reads


def common_subexpressions(program):
    """Let later instructions read the first copy of each value, and of each constant."""
    seen, alike = set(), set()      # most instructions have nothing like them: no need to look at their operands
    for instruction in program.instructions:
        if instruction.kernel in EFFECTS:
            continue
        kind = _kind(instruction)
        (alike if kind in seen else seen).add(kind)
    if not alike:
        return program
    facts = Facts(program)
    first = {}                      # key of a computation -> the buffers that hold its results
    same = _equal_constants(program, facts)
    kept = []

    def renamed(view):
        buffer = same.get(view.buffer)
        return view if buffer is None else View(buffer, *view[1:])

    for i, instruction in enumerate(program.instructions):
        if same:
            instruction = with_reads(instruction, renamed)
        if _kind(instruction) in alike and instruction.kernel not in EFFECTS and instruction.extra is None:
            written = [view.buffer for view in instruction.writes]
            if written and all(map(facts.is_single, written)):
                held = first.setdefault(_key(i, instruction, facts), written)
                if held is not written and facts.results.isdisjoint(written):
                    same.update(zip(written, held, strict=True))
                    continue
        kept.append(instruction)
    return program._replace(instructions=tuple(kept)) if same else program


def _kind(instruction):
    """What equal computations have in common at least."""
    return SAME_LOOP.get(instruction.name, instruction.name), instruction.attrs


def _equal_constants(program, facts):
    """Constants of equal bytes: each later one -> the first."""
    found, same = {}, {}
    for buffer in program.buffers:
        if buffer.kind == CONSTANT:
            held = found.setdefault(buffer.content, buffer.id)
            if held != buffer.id and buffer.id not in facts.results:
                same[buffer.id] = held
    return same


def _key(i, instruction, facts):
    """What instruction number i computes, but for the buffers where it leaves that."""
    parts = []
    for view, role in zip(instruction.operands, instruction.roles, strict=True):
        if view is None:
            parts.append(None)
        elif role == "r":
            parts.append((bisect_left(facts.writes.get(view.buffer, ()), i), *view))
        else:
            parts.append((*view[1:], facts.by_id[view.buffer].nbytes))
    # 0.0 == -0.0, but they are not the same attribute
    numbers = instruction.numbers and tuple([(n, copysign(1, n)) for n in instruction.numbers])
    return (instruction.kernel, *_kind(instruction), instruction.roles, numbers, *parts)
