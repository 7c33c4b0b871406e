"""Constant folding: what reads constants only is computed now.

Relies on facts.py and on an `evaluate` that runs one instruction; simplify profits from the constants it makes.
"""

from autograd_cy.graph.program import CONSTANT

from .facts import Facts, one_value

LIMIT = 1 << 20     # bytes: a larger constant costs more to keep than to compute again
FILL_LIMIT = 1 << 12     # bytes of one value repeated: writing it is cheaper than reading it from a constant


def fold(program, evaluate=None, limit=LIMIT):
    """Make constants of what depends on nothing else.

    `evaluate(instruction, {buffer id: bytes})` gives {buffer id: bytes} for what the instruction writes, or None where it can't.
    """
    known = {b.id: b.content for b in program.buffers if b.kind == CONSTANT}
    if evaluate is None or not known:
        return program
    facts = Facts(program)
    for buffer in facts.writes:
        known.pop(buffer, None)
    made = {}
    kept = []
    for instruction in program.instructions:
        values = _values(instruction, known, facts, evaluate, limit)
        if values is None:
            kept.append(instruction)
        else:
            known.update(values)
            made.update(values)
    if not made:
        return program
    buffers = tuple([b._replace(kind=CONSTANT, content=made[b.id]) if b.id in made else b for b in program.buffers])
    return program.with_(instructions=tuple(kept), buffers=buffers)


def _values(instruction, known, facts, evaluate, limit):
    """What the instruction writes, if it is known now and may become a constant."""
    reads = []
    for view, role in zip(instruction.operands, instruction.roles, strict=True):
        if view is None:
            continue
        if role == "r":
            if view.buffer not in known:
                return None
            reads.append(view.buffer)
        elif not facts.passing(view.buffer):
            return None
    if instruction.has_effects:
        return None
    if instruction.kernel == "copy" and one_value(instruction.operands[1]):
        limit = min(limit, FILL_LIMIT)
    if any(facts.by_id[view.buffer].nbytes > limit for view in instruction.writes):
        return None
    return evaluate(instruction, {b: known[b] for b in reads})
