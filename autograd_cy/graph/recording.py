"""A capture: what the recorder noted, put in order and made into Programs.

Relies on recorder (which notes every kernel while the capture is on) and program.py. capture.py drives it.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from autograd_cy.array.errors import CaptureError

from .program import CONSTANT, EXTERNAL, INPUT, LOCAL, Buffer, Instruction, Program, View
from .recorder import Notes, place

MOVED = {8: 2, 4: 3, 1: 4, 0: 4}      # a dtype for elements of so many bytes that are only moved: int64, int32, uint8


class Recording(Notes):
    """One capture: `with Recording(inputs) as recording:` around the computation, then `program(...)`."""

    def settle(self):
        """Contents that no kernel wrote become constants, or a copy of a constant where the block is written later."""
        written = set()
        for instruction in self.instructions:
            for view in instruction.writes:
                written.add(view.buffer)
        inserted = []
        for block in self.all_blocks:
            if block.kind != LOCAL or block.content is None:
                continue
            if block.id not in written:
                block.kind = CONSTANT
                continue
            if self.is_filled_first(block):
                block.content = None
                continue
            content, block.content = block.content, None
            size = next((n for n in (8, 4, 1) if block.nbytes % n == 0 and content == content[:n] * (block.nbytes // n)), 0)
            dtype = MOVED[size]
            if size:
                source, strides = self.constant(content[:size], dtype), (0,)
            else:
                source, strides, size = self.constant(content, dtype), (1,), 1
            shape = (block.nbytes // size,)
            inserted.append((block.position, Instruction("copy", "copy", (View(block.id, 0, dtype, shape, (1,)),
                                                                          View(source.id, 0, dtype, shape, strides)), "wr")))
        for position, instruction in sorted(inserted, key=lambda pair: pair[0])[::-1]:
            self.instructions.insert(position, instruction)

    def is_filled_first(self, block):
        """Whether instructions write every byte of a block, in parts, before one reads it (a concatenation)."""
        mask = np.zeros(block.nbytes, np.bool_)
        for instruction in self.instructions[block.position:]:
            for view, role in zip(instruction.operands, instruction.roles, strict=True):
                if view is None or view.buffer != block.id:
                    continue
                if role != "w":
                    return False
                size = view.itemsize
                as_strided(mask[view.offset:], (*view.shape, size), (*[s * size for s in view.strides], 1))[...] = True
            if mask.all():
                return True
        return False

    def kind_of(self, view):
        """Which kind of buffer a view is of."""
        return self.all_blocks[view.buffer].kind

    def hidden(self, addresses):
        """(instruction, view) pairs of outside memory that has no name and whose address is not among these."""
        unknown = {b.id for b in self.all_blocks if b.kind == EXTERNAL and not b.name and b.start not in addresses}
        if not unknown:
            return []
        return [(i, v) for i in self.instructions for v in i.operands if v is not None and v.buffer in unknown]

    def program(self, outputs=(), gradients=(), title="program"):
        """The Program. outputs: views; gradients: (name, view or None) pairs."""
        buffers = [Buffer(b.id, b.kind, b.nbytes, b.name, b.content, b.owner) for b in self.all_blocks]
        inputs = tuple([self.view_of(tensor) for tensor in self.inputs])
        return Program(tuple(buffers), tuple(self.instructions), inputs, tuple(outputs), tuple(gradients), frozenset(), title).with_()

    def forward(self, outputs, addresses, title):
        """(the Program of a function, ids of the buffers that its gradient could read): those it makes itself are pinned."""
        read = {self.by_start[a].id for a in addresses if a in self.by_start}
        made = {v.buffer for i in self.instructions for v in i.writes}
        pinned = frozenset([b.id for b in self.all_blocks if b.id in read and b.kind == LOCAL and b.id in made])
        program = self.program(outputs, (), title)._replace(pinned=pinned)
        # a second look: with_() dropped what was not pinned yet
        program = program._replace(buffers=tuple([Buffer(b.id, b.kind, b.nbytes, b.name, b.content, b.owner) for b in self.all_blocks]))
        return program.with_(), read

    def second(self, inputs, outputs, program, title):
        """The Program of what was captured since `divide`. Buffers of `program`, the first part, are EXTERNAL without an owner."""
        instructions = self.instructions[self.mark:]
        made = {v.buffer for i in self.instructions[:self.mark] for v in i.writes if self.all_blocks[v.buffer].kind == LOCAL}
        for instruction in instructions:
            for view in instruction.reads:
                if view.buffer in made and view.buffer not in program.pinned:
                    raise CaptureError(f"the gradient of a compiled function reads a tensor that is kept where it can't be seen, at "
                                       f"{place(instruction.line)}: keep it by ctx.save_for_backward, or as an attribute of ctx")
        theirs = {b.id: b for b in program.buffers}
        given = {view.buffer for view in inputs}
        buffers = []
        for b in self.all_blocks:
            buffer = Buffer(b.id, b.kind, b.nbytes, b.name, b.content, b.owner)
            if b.id in theirs and b.id not in given and b.kind in (INPUT, LOCAL):
                buffer = buffer._replace(kind=EXTERNAL, owner=None)
            buffers.append(buffer)
        made = Program(tuple(buffers), tuple(instructions), tuple(inputs), tuple([v for v in outputs if v is not None]), (), frozenset(),
                       title)
        return made.with_()
