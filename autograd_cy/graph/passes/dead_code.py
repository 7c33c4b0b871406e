"""Dead code: what nobody looks at is not computed.

Relies on program.py only.
"""

from autograd_cy.graph.program import LOCAL

from .facts import covers


def dead_code(program):
    """Drop instructions that write nothing but LOCAL memory that is neither read afterwards nor a result."""
    by_id = program.by_id()
    local = {b.id for b in program.buffers if b.kind == LOCAL}
    live = program.results()
    kept = []
    for instruction in reversed(program.instructions):
        operands = [(view, role) for view, role in zip(instruction.operands, instruction.roles, strict=True) if view is not None]
        if not instruction.has_effects and not any(
                role != "r" and (view.buffer in live or view.buffer not in local) for view, role in operands):
            continue
        kept.append(instruction)
        for view, role in operands:
            if role == "w" and view.buffer in live and covers(view, by_id[view.buffer]):
                live.discard(view.buffer)         # what it held before is of no use
        for view, role in operands:
            if role != "w":
                live.add(view.buffer)
    if len(kept) == len(program.instructions):
        return program
    return program.with_(instructions=tuple(reversed(kept)))
