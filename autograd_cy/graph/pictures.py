"""A Program as boxes and arrows.

Relies on picture.py and program.py. Program.picture relies on it.
"""

from autograd_cy.array.dtypes import DTYPES

from .picture import Arrow, Box, Picture
from .program import CONSTANT, EXTERNAL, INPUT, constant_text, parts_of

LIMIT = 1000                  # instructions shown
_KINDS = {INPUT: "input", EXTERNAL: "leaf", CONSTANT: "constant"}


def picture_of(program):
    """Instructions as boxes, what they read as arrows; in-place updates lead on from the last writer."""
    by_id, boxes, arrows, last, made = program.by_id(), [], [], {}, set()

    def source(view):
        """The box that a view's value comes from."""
        buffer = by_id[view.buffer]
        if view.buffer in last:
            return last[view.buffer]
        name = f"b{buffer.id}"
        if name not in made:
            made.add(name)
            text = constant_text(buffer, view) if buffer.kind == CONSTANT and view.numel == 1 else buffer.name or f"%{buffer.id}"
            boxes.append(Box(name, (text, _type(view)), _KINDS.get(buffer.kind, "constant"), f"{buffer.kind}, {buffer.nbytes} bytes"))
        return name

    for i, instruction in enumerate(program.instructions[:LIMIT]):
        reads = [(source(view), view) for view, role in zip(instruction.operands, instruction.roles, strict=True)
                 if view is not None and role != "w"]
        name = f"i{i}"
        kind = "update" if instruction.kernel in ("sgd", "adam", "rmsprop") else "operation"
        lines = (instruction.name, *[part.name for part in parts_of(instruction)], *[_type(view) for view in instruction.writes[:1]])
        boxes.append(Box(name, lines, kind, f"{instruction.line[0]}:{instruction.line[1]}" if instruction.line else ""))
        arrows += [Arrow(tail, name, _type(view)) for tail, view in reads]
        for view in instruction.writes:
            last[view.buffer] = name
    if len(program.instructions) > LIMIT:
        boxes.append(Box("rest", (f"{len(program.instructions) - LIMIT} more instructions",), "note"))
    for k, view in enumerate(program.outputs):
        boxes.append(Box(f"o{k}", (f"output {k}", _type(view)), "output"))
        arrows.append(Arrow(source(view), f"o{k}"))
    for k, (name, view) in enumerate(program.gradients):
        if view is not None:
            boxes.append(Box(f"g{k}", (f"{name}.grad", _type(view)), "output"))
            arrows.append(Arrow(source(view), f"g{k}"))
    return Picture(program.title, tuple(boxes), tuple(arrows))


def _type(view):
    return f"{DTYPES[view.dtype].name}{list(view.shape)}"
