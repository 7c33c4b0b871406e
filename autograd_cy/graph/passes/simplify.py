"""Algebraic simplification: the rules of rules.py, and copies that are not needed.

Relies on facts.py and rules.py.  One walk forward: an instruction's operands are already simplified when it is looked at, so that
a chain of rules collapses in one go.  What nobody reads any more is left for dead_code.

A value may be used again only while the memory that it came from still holds it: every step back to a definition asks whether
what that read has been written since, every step forward whether it will be written while a reader is left.
"""

import struct
from math import copysign

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.graph.program import CONSTANT, Buffer, View

from .facts import ITEMSIZE, SAME_LOOP, Facts, one_value, same_layout, through, with_reads
from .rules import FOR_FLOATS, FOR_FLOATS_FAST, FOR_INTEGERS, Call, Computed, Constant, Number, Operand

F32, F64, I64, I32, U8, BOOL = range(6)
# Conversions that lose nothing: there and back is where one was.
WIDENS = {(F32, F64), (I32, I64), (I32, F64), (U8, F32), (U8, F64), (U8, I32), (U8, I64)} | {(BOOL, d) for d in (F32, F64, I64, I32, U8)}
UNIFORM_LIMIT = 1 << 16     # bytes of a constant that are looked at to see whether it is one value repeated


def simplify(program, fast=False):
    """Apply every rule that keeps all bits; with `fast` also those that hold in real arithmetic only."""
    walk = _Walk(program, fast)
    for i, instruction in enumerate(program.instructions):
        walk.visit(i, instruction)
    if not walk.changed:
        return program
    return program._replace(instructions=tuple(walk.kept), buffers=(*program.buffers, *walk.new_buffers))


class _Walk:
    """What is known at one point of the walk."""

    def __init__(self, program, fast):
        self.facts = Facts(program)
        self.float_rules = FOR_FLOATS_FAST if fast else FOR_FLOATS
        self.kept = []
        self.changed = False
        self.alias = {}           # buffer that is not written any more -> (its view, the view that shows the same)
        self.filled = {}          # buffer that holds one value throughout -> (view of that value, when it was copied)
        self.made = {}            # buffer -> (number, instruction) of the map or copy that wrote it last
        self.written = {}         # buffer -> number of the last instruction that wrote it
        self.numbers = {}         # constant -> its number, None where its elements differ
        self.contents = {}        # content of a new constant -> its view
        self.new_buffers = []
        self.next_id = max(self.facts.by_id, default=0) + 1

    def visit(self, i, instruction):
        """Simplify one instruction and note what it makes."""
        before = instruction
        if self.alias:
            instruction = with_reads(instruction, self.current)
        if instruction.kernel == "map":
            if self.filled:
                instruction = self.with_single_values(instruction)
            instruction = self.by_rules(instruction)
        if instruction is not None and instruction.kernel == "copy":
            instruction = self.copy(i, instruction)
        if instruction is not before:
            self.changed = True
        if instruction is None:
            return
        self.kept.append(instruction)
        for view, role in zip(instruction.operands, instruction.roles, strict=True):
            if role != "r" and view is not None:
                self.written[view.buffer] = i
        if instruction.kernel in ("map", "copy"):
            self.made[instruction.operands[0].buffer] = (i, instruction)

    def current(self, view):
        """The view to read instead."""
        found = self.alias.get(view.buffer)
        if found is None:
            return view
        target, source = found                # the same bytes, elsewhere
        return View(source.buffer, view.offset - target.offset + source.offset, *view[2:])

    def maker(self, buffer):
        """(number, instruction) of the map or copy that made a value; (0, None) for others."""
        found = self.made.get(buffer)
        return found if found is not None and self.facts.is_single(buffer) else (0, None)

    def unchanged(self, view, since):
        """Whether the view shows what instruction number `since` read."""
        return self.written.get(view.buffer, -1) < since

    # ---- rules

    def by_rules(self, instruction):
        """The instruction that remains of a map; None for none."""
        for _ in range(8):      # a result may start another rule: enough for any chain in the table
            out = instruction.operands[0]
            dtype = instruction.attrs[0]
            rules = (self.float_rules if dtype <= F64 else FOR_INTEGERS).get(SAME_LOOP.get(instruction.name, instruction.name))
            if not rules or instruction.numbers:
                return instruction
            for rule in rules:
                found = self.apply(rule, instruction, out)
                if found is not None:
                    break
            else:
                return instruction
            instruction = found
            if instruction.kernel == "copy":
                return instruction
        return instruction

    def apply(self, rule, instruction, out):
        """What the rule makes of the instruction; None where it doesn't hold."""
        bound = {}
        inputs = instruction.operands[1:]
        if len(inputs) != len(rule.left.args) or not all(map(self.matches, rule.left.args, inputs, [bound] * len(inputs))):
            return None
        numbers = {p.name: self.number(v) for p, v in bound.items() if isinstance(p, Constant)}
        if rule.condition is not None and not all(map(rule.condition, numbers.values())):
            return None
        source = bound.get(rule.right)
        if source is not None:
            if source.dtype != out.dtype or (source.buffer == out.buffer and source != out):
                return None
            if source.shape != out.shape:
                source = View(*source[:3], out.shape, (0,) * len(out.shape))
            return instruction._replace(kernel="copy", name="copy", operands=(out, source), roles="wr", attrs=())
        if not isinstance(rule.right, Call):
            return None
        operands = [out]
        for arg in rule.right.args:
            if isinstance(arg, Computed):
                view = self.constant(arg.code, numbers, out.dtype)
            else:
                view = bound.get(arg)
            if view is None or (view.buffer == out.buffer and view != out):
                return None
            operands.append(view)
        return instruction._replace(name=rule.right.name, operands=tuple(operands), roles="w" + "r" * (len(operands) - 1))

    def matches(self, pattern, view, bound):
        """Whether the view is what the pattern says; notes what its names stand for."""
        kind = type(pattern)
        if kind is Operand:
            return bound.setdefault(pattern, view) == view
        if kind is Constant:
            return self.number(view) is not None and bound.setdefault(pattern, view) == view
        if kind is Number:
            number = self.number(view)
            return number == pattern.value and (number or type(pattern.value) is int or copysign(1, number) == copysign(1, pattern.value))
        number, made = self.maker(view.buffer)
        if (made is None or made.kernel != "map" or SAME_LOOP.get(made.name, made.name) != pattern.name or made.numbers
                or len(pattern.args) != len(made.operands) - 1):
            return False
        bound[pattern] = view
        for arg, source in zip(pattern.args, made.operands[1:], strict=True):
            if not self.unchanged(source, number):
                return False
            if made.operands[0] != view and source.shape == made.operands[0].shape:      # read in another shape than it was made in
                source = through(view, made.operands[0], source)
            if source is None or not self.matches(arg, source, bound):
                return False
        return True

    def number(self, view):
        """The number that a constant view shows throughout, or None."""
        buffer = view.buffer
        if buffer in self.numbers:
            number, dtype = self.numbers[buffer]
            if dtype == view.dtype:
                return number
        constant = self.facts.by_id.get(buffer)
        if constant is None or constant.kind != CONSTANT:
            return None
        size = ITEMSIZE[view.dtype]
        first = constant.content[:size]
        uniform = first and len(constant.content) <= UNIFORM_LIMIT and first * (len(constant.content) // size) == constant.content
        number = struct.unpack(DTYPES[view.dtype].format, first)[0] if uniform else None
        self.numbers[buffer] = number, view.dtype
        return number

    def constant(self, code, numbers, dtype):
        """A view of a new constant, or None where the dtype can't hold it."""
        try:
            content = struct.pack(DTYPES[dtype].format, eval(code, {"__builtins__": {}}, numbers))
        except (ArithmeticError, struct.error):
            return None
        view = self.contents.get(content)
        if view is None:
            buffer = Buffer(self.next_id, CONSTANT, len(content), "", content)
            self.next_id += 1
            self.new_buffers.append(buffer)
            self.facts.by_id[buffer.id] = buffer
            view = self.contents[content] = View(buffer.id, 0, dtype, (), ())
        return view

    # ---- copies

    def copy(self, i, instruction):
        """A copy straight from where its source came from; None where readers can look there themselves."""
        target, source = instruction.operands
        while True:
            earlier = self.source_of_copy(target, source)
            if earlier is None:
                break
            source = earlier
        if target == source:
            return None                                  # of itself
        facts = self.facts
        if target.dtype == source.dtype and facts.passing(target.buffer):
            if same_layout(target, source) and facts.kept(source.buffer, i, facts.last[target.buffer]):
                self.alias[target.buffer] = target, source
                return None
            value = one_value(source)
            if value is not None:
                self.filled[target.buffer] = value, i
        return instruction if source == instruction.operands[1] else instruction._replace(operands=(target, source))

    def source_of_copy(self, target, source):
        """What a copied source was copied from, where copying that gives the same."""
        number, made = self.maker(source.buffer)
        if made is None or made.kernel != "copy":
            return None
        middle, first = made.operands
        same = first.dtype == middle.dtype or middle.dtype == target.dtype
        if not same and not (first.dtype == target.dtype and (first.dtype, middle.dtype) in WIDENS):
            return None
        if not self.unchanged(first, number):
            return None
        found = through(source, middle, first)
        if found is not None and found.buffer == target.buffer and found != target:
            return None                                  # it would be moved within itself
        return found

    def with_single_values(self, instruction):
        """A map that reads the value itself instead of what was filled with it."""
        operands = list(instruction.operands)
        for k in range(1, len(operands)):
            found = self.filled.get(operands[k].buffer)
            if found is not None:
                value, since = found
                if operands[k].dtype == value.dtype and self.unchanged(value, since) and value.buffer != operands[0].buffer:
                    operands[k] = value
        return instruction if operands == list(instruction.operands) else instruction._replace(operands=tuple(operands))
