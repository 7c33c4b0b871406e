"""Common subexpressions: what is computed twice from the same values is computed once.

Relies on facts.py. Two readings of one buffer are the same value while nobody has written it in between: each read is
known by (buffer, number of writes so far, window). The order of operands counts: a + b and b + a may differ in the NaN they give.
"""

from math import copysign

from autograd_cy.graph.program import CONSTANT, View

from .facts import SAME_LOOP, Facts, with_reads


def common_subexpressions(program):
    """Let later instructions read the first copy of each value, and of each constant."""
    facts = Facts(program)
    first = {}                      # key of a computation -> the buffers that hold its results
    same = _equal_constants(program, facts)
    version = dict.fromkeys(facts.writes, 0)
    kept = []

    def renamed(view):
        buffer = same.get(view.buffer)
        return view if buffer is None else View(buffer, *view[1:])

    for instruction in program.instructions:
        if same:
            instruction = with_reads(instruction, renamed)
        key, written = _key(instruction, version, facts)
        if key is not None:
            held = first.setdefault(key, written)
            if held is not written and all(facts.passing(b) for b in written):
                same.update(zip(written, held, strict=True))
                continue
        for buffer in written:
            version[buffer] += 1
        kept.append(instruction)
    if not same:
        return program
    return program.with_(instructions=tuple(kept))


def _equal_constants(program, facts):
    """Constants of equal bytes: each later one -> the first."""
    found, same = {}, {}
    for buffer in program.buffers:
        if buffer.kind == CONSTANT and buffer.id not in facts.writes:
            held = found.setdefault(buffer.content, buffer.id)
            if held != buffer.id and buffer.id not in facts.results:
                same[buffer.id] = held
    return same


def _key(instruction, version, facts):
    """(what the instruction computes, the buffers that it writes); None for what must run where it stands."""
    parts, written = [], []
    mergeable = instruction.extra is None and not instruction.has_effects
    for view, role in zip(instruction.operands, instruction.roles, strict=True):
        if view is None:
            parts.append(None)
        elif role == "r":
            parts.append((version.get(view.buffer, 0), *view))
        else:
            written.append(view.buffer)
            parts.append((*view[1:], facts.by_id[view.buffer].nbytes))
            mergeable = mergeable and view.buffer in facts.single
    if not mergeable or not written:
        return None, written
    # 0.0 == -0.0, but they are not the same attribute
    numbers = instruction.numbers and tuple([(n, copysign(1, n)) for n in instruction.numbers])
    name = SAME_LOOP.get(instruction.name, instruction.name)
    return (instruction.kernel, name, instruction.roles, instruction.attrs, numbers, *parts), written
