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
    facts = None
    made = {}
    kept = []
    for instruction in program.instructions:
        values = None
        if _reads_only(instruction, known):
            if facts is None:
                facts = Facts(program)
            values = _values(instruction, known, facts, evaluate, limit)
        if values is None:
            kept.append(instruction)
        else:
            known.update(values)
            made.update(values)
    if not made:
        return program
    buffers = tuple([b._replace(kind=CONSTANT, content=made[b.id]) if b.id in made else b for b in program.buffers])
    return program._replace(instructions=tuple(kept), buffers=buffers)


def _reads_only(instruction, known):
    """Whether all that the instruction reads is known."""
    for view, role in zip(instruction.operands, instruction.roles, strict=True):
        if role != "w" and view is not None and view.buffer not in known:
            return False
    return True


def _values(instruction, known, facts, evaluate, limit):
    """What the instruction writes, if it may become a constant."""
    reads = [view.buffer for view in instruction.reads]
    if instruction.has_effects or not all(facts.passing(view.buffer) for view in instruction.writes):
        return None
    if instruction.kernel == "copy" and one_value(instruction.operands[1]):
        limit = min(limit, FILL_LIMIT)
    if any(facts.by_id[view.buffer].nbytes > limit for view in instruction.writes):
        return None
    return evaluate(instruction, {b: known[b] for b in reads})
