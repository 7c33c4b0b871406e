"""Dead code: what nobody looks at is not computed.

Relies on facts.py.
"""

from autograd_cy.graph.program import EFFECTS, LOCAL

from .facts import covers


def dead_code(program):
    """Drop instructions that write nothing but LOCAL memory that is neither read afterwards nor a result."""
    by_id = {b.id: b for b in program.buffers}
    live = program.results()                # what must be right at this point of the walk from the end
    kept = []
    for instruction in reversed(program.instructions):
        pairs = list(zip(instruction.operands, instruction.roles, strict=True))
        if instruction.kernel not in EFFECTS:
            for view, role in pairs:
                if role != "r" and view is not None and (view.buffer in live or by_id[view.buffer].kind != LOCAL):
                    break
            else:
                continue
        kept.append(instruction)
        for view, role in pairs:
            if role == "w" and view is not None and view.buffer in live and covers(view, by_id[view.buffer]):
                live.discard(view.buffer)   # what it held before is of no use
        for view, role in pairs:
            if role != "w" and view is not None:
                live.add(view.buffer)
    if len(kept) == len(program.instructions):
        return program
    return program.with_(instructions=tuple(reversed(kept)))
