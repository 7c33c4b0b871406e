"""Passes and memory plan: whatever they do, every result keeps its bytes; and they do what they are for.

Relies on tests/interpreter.py and tests/random_programs.py; nothing relies on it.
"""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Interpreter, evaluate
from random_programs import BOOL, F32, F64, I32, Maker, contiguous, transposed

from autograd_cy.graph import passes
from autograd_cy.graph.passes import rules
from autograd_cy.graph.passes.facts import through
from autograd_cy.graph.plan import memory_report, plan
from autograd_cy.graph.program import CONSTANT, EXTERNAL, INPUT, LOCAL, Buffer, Instruction, Program, View

BLOCK = 8       # of the interpreter, so that small programs have groups

PASSES = {**passes.PASSES, "fold": lambda p: passes.fold(p, evaluate), "fuse": lambda p: passes.fuse(p, BLOCK)}
INVARIANT = settings(max_examples=150, deadline=None)


# ---- every program, whatever passes in whatever order

def outcome(program, contents, where=None):
    return Interpreter(program, contents, where, BLOCK).run()


@INVARIANT
@given(st.integers(0, 10 ** 9), st.integers(1, 60), st.lists(st.sampled_from(sorted(PASSES)), min_size=1, max_size=6))
def test_results_keep_their_bytes(seed, n, chosen):
    maker = Maker(seed)
    program = maker.program(n)
    expected = outcome(program, maker.contents)
    for name in chosen:
        after = PASSES[name](program)
        assert outcome(after, maker.contents) == expected, f"{name}\n{program}\n{after}"
        program = after


@INVARIANT
@given(st.integers(0, 10 ** 9), st.integers(1, 60), st.sets(st.sampled_from(sorted(PASSES))), st.booleans())
def test_planned_programs_keep_their_bytes(seed, n, without, reuse):
    maker = Maker(seed)
    program = maker.program(n)
    expected = outcome(program, maker.contents)
    for name in PASSES.keys() - without:
        program = PASSES[name](program)
    planned = plan(program, reuse)
    assert outcome(program, maker.contents, planned) == expected, f"{program}\n{planned}"
    assert planned.alive <= planned.nbytes <= max(planned.total, planned.alive)
    assert memory_report(program, planned)


@INVARIANT
@given(st.integers(0, 10 ** 9), st.integers(10, 120))
def test_planned_places_do_not_overlap(seed, n):
    program = PASSES["fuse"](Maker(seed).program(n))
    planned = plan(program)
    by_id = program.by_id()
    spans = sorted((planned.offsets[b], planned.offsets[b] + by_id[b].nbytes, b) for b in planned.offsets)
    for k, (_, end, b) in enumerate(spans):
        for start, _, c in spans[k + 1:]:
            if start >= end:
                break
            one, other = planned.lifetimes[b], planned.lifetimes[c]
            assert one[1] <= other[0] or other[1] <= one[0], f"{b} and {c} are alive together"
            assert not {b, c} & program.pinned
            if one[1] == other[0] or other[1] == one[0]:
                assert planned.shared.get(b) == c or planned.shared.get(c) == b or one[1] == other[0] == one[0]


# ---- small programs by hand

class Build:
    """A Program line by line: `b.map("mul", x, 2.0)` gives the view of the result."""

    def __init__(self, shape=(4,), dtype=F32):
        self.shape, self.dtype = shape, dtype
        self.buffers, self.instructions, self.contents = [], [], {}
        self.random = np.random.default_rng(0)

    def buffer(self, kind, nbytes, content=None):
        self.buffers.append(Buffer(len(self.buffers), kind, nbytes, "", content))
        return self.buffers[-1].id

    def given(self, kind=INPUT, shape=None, dtype=None):
        shape, dtype = self.shape if shape is None else shape, self.dtype if dtype is None else dtype
        view = contiguous(0, dtype, shape)
        values = self.random.normal(size=shape) * 3 if dtype in (F32, F64) else self.random.integers(0, 2 if dtype == BOOL else 9, shape)
        content = values.astype(("f4", "f8", "i8", "i4", "u1", "?")[dtype]).tobytes()
        buffer = self.buffer(kind, len(content), content if kind == CONSTANT else None)
        self.contents[buffer] = content
        return view._replace(buffer=buffer)

    def number(self, value, dtype=None):
        dtype = self.dtype if dtype is None else dtype
        content = np.array(value, ("f4", "f8", "i8", "i4", "u1", "?")[dtype]).tobytes()
        return View(self.buffer(CONSTANT, len(content), content), 0, dtype, (), ())

    def local(self, shape=None, dtype=None):
        view = contiguous(0, self.dtype if dtype is None else dtype, self.shape if shape is None else shape)
        return view._replace(buffer=self.buffer(LOCAL, view.numel * view.itemsize))

    def map(self, name, *inputs, out=None, numbers=()):
        inputs = [v if isinstance(v, View) else self.number(v, BOOL if isinstance(v, bool) else None) for v in inputs]
        dtype = inputs[-1].dtype
        out = self.local(dtype=BOOL if name in ("lt", "ge") else dtype) if out is None else out
        self.instructions.append(Instruction("map", name, (out, *inputs), "w" + "r" * len(inputs), (dtype,), numbers))
        return out

    def copy(self, source, out=None, dtype=None):
        out = self.local(source.shape, source.dtype if dtype is None else dtype) if out is None else out
        self.instructions.append(Instruction("copy", "copy", (out, source), "wr"))
        return out

    def sum(self, x):
        out = self.local(())
        wide = View(out.buffer, 0, out.dtype, x.shape, (0,) * len(x.shape))
        self.instructions.append(Instruction("reduce", "sum", (wide, x), "wr", (0,), (0.0,)))
        return out

    def effect(self, view):
        self.instructions.append(Instruction("outside_unit", "outside_unit", (view,), "r"))

    def program(self, *outputs, pinned=()):
        return Program(tuple(self.buffers), tuple(self.instructions), (), outputs, (), frozenset(pinned))

    def after(self, *outputs, fast=False, without=("fuse",), **more):
        """The program after all passes; that it still gives the same is checked."""
        before = self.program(*outputs, **more)
        after = passes.optimise(before, fast=fast, without=without, evaluate=evaluate)
        one, other = outcome(before, self.contents), outcome(after, self.contents)
        if fast:
            for a, b in zip(one[0], other[0]):
                np.testing.assert_allclose(np.frombuffer(a, "f4"), np.frombuffer(b, "f4"), rtol=1e-5, atol=1e-6)
        else:
            assert one == other
        return after


def kernels(program):
    return [i.name for i in program.instructions]


# ---- the rules, each by itself

def left_side(b, pattern, operands, dtype, constants):
    """Write the instructions of a rule's left side; the view of its result."""
    if isinstance(pattern, rules.Call):
        dtypes = [BOOL if pattern.name == "where" and k == 0 else dtype for k in range(len(pattern.args))]
        return b.map(pattern.name, *(left_side(b, arg, operands, d, constants) for arg, d in zip(pattern.args, dtypes)))
    if isinstance(pattern, rules.Number):
        return b.number(pattern.value, dtype)
    if pattern not in operands:
        constant = isinstance(pattern, rules.Constant)
        operands[pattern] = b.number(constants[pattern.name], dtype) if constant else b.given(dtype=dtype)
    return operands[pattern]


def with_rule(line, dtype, after, c=4, d=2):
    """A program that applies the loop `after` to a rule's left side."""
    b = Build((6,), dtype)
    return b, b.map(after, left_side(b, next(rules._parse(line)).left, {}, dtype, {"c": c, "d": d}))


@pytest.mark.parametrize("line", rules.EXACT, ids=lambda line: line[0])
def test_exact_rules(line):
    b, out = with_rule(line, *((I32, "neg") if "bitwise" in line[0] else (F32, "tanh")))
    assert kernels(b.after(out)) != kernels(b.program(out))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3e38, -3e38, 1e-45, -1e-40, float("inf"), -float("inf"), float("nan"), -float("nan"), 0.5, 1.5, 7.0]


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("line", [line for line in rules.EXACT if "bitwise" not in line[0]], ids=lambda line: line[0])
def test_exact_rules_on_the_real_loops(line, dtype):
    """The same bytes, NaNs and signs of zeros included, whatever meets whatever."""
    from autograd_cy.graph import evaluate as real
    first, second = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    values = {"x": first, "g": second, "y": second > 0 if line[0].startswith("where(y") else second}

    def result(program):
        held = {b.id: b.content for b in program.buffers if b.kind == CONSTANT}
        for instruction in program.instructions:
            held |= real.evaluate(instruction, {v.buffer: held[v.buffer] for v in instruction.reads})
        return held[program.outputs[0].buffer]

    for c, d in ((4, 0.5), (-2.0 ** -100, 2), (1, -1)):
        b, operands = Build(first.shape, dtype), {}
        for name, array in values.items():
            content = array.astype(array.dtype if array.dtype == bool else ("f4", "f8")[dtype]).tobytes()
            operands[rules.Operand(name)] = contiguous(b.buffer(CONSTANT, len(content), content), BOOL if array.dtype == bool else dtype, first.shape)
        program = b.program(b.copy(left_side(b, next(rules._parse(line)).left, operands, dtype, {"c": c, "d": d})))
        simple = passes.simplify(program)
        assert simple is not program
        assert result(simple) == result(program), f"{program}\n{simple}"


@pytest.mark.parametrize("line", rules.INTEGRAL, ids=lambda line: line[0])
def test_integer_rules(line):
    b, out = with_rule(line, I32, "neg")
    assert kernels(b.after(out)) == ["neg"]


@pytest.mark.parametrize("line", rules.FAST, ids=lambda line: line[0])
def test_fast_rules(line):
    b, out = with_rule(line, F32, "tanh", c=3, d=5)
    b.contents = {k: np.abs(np.frombuffer(v, "f4")).tobytes() for k, v in b.contents.items()}      # where logarithms and roots are
    exact, fast = b.after(out), b.after(out, fast=True)
    assert kernels(fast) != kernels(exact)


def test_what_is_not_exact_stays():
    for name, *operands in (("add", "x", 0.0), ("sub", "x", -0.0), ("sub", 0.0, "x"), ("mul", "x", 0.0), ("mul", "x", -1.0), ("div", "x", 3.0),
                            ("mul.da", "x", float("inf")), ("mul.da", 0.0, "x"), ("pow", "x", 2.0), ("sub", "x", "x"), ("div", "x", 0.0)):
        b = Build()
        x = b.given()
        out = b.map("exp", b.map(name, *(x if o == "x" else o for o in operands)))
        assert kernels(b.after(out)) == [name, "exp"], name


def test_four_times_x():
    b = Build()
    x = b.given()
    total = b.map("add", b.map("add", b.map("add", x, x), x), x)
    assert kernels(b.after(total)) == ["add"] * 3
    after = b.after(total, fast=True)
    assert kernels(after) == ["mul"]
    assert "4.0" in str(after)


def test_a_rule_does_not_reach_past_a_write():
    b = Build((3, 3))
    p = b.given(EXTERNAL)
    y = b.map("neg", p)
    t = b.copy(transposed(p), out=b.local())
    b.map("add", p, 1.0, out=p)
    assert kernels(b.after(b.map("exp", b.map("neg", y)), b.sum(b.copy(transposed(t))))) == ["neg", "copy", "add", "neg", "exp", "copy", "sum"]


def test_a_constant_of_many_equal_numbers_is_one():
    b = Build((3, 4))
    x = b.given()
    ones = b.given(CONSTANT)
    b.buffers[ones.buffer] = b.buffers[ones.buffer]._replace(content=np.ones(12, "f4").tobytes())
    assert kernels(b.after(b.map("exp", b.map("mul.da", x, ones)))) == ["exp"]


def test_rules_see_through_another_shape():
    b = Build((3, 4))
    x = b.given()
    flat = b.map("neg", x._replace(shape=(12,), strides=(1,)), out=b.local((12,)))
    out = b.map("exp", b.map("neg", transposed(contiguous(flat.buffer, F32, (4, 3))), out=transposed(b.local((4, 3)))))
    assert kernels(b.after(out)) == ["exp"]


# ---- copies

def test_a_copy_that_nobody_writes_is_its_source():
    b = Build((3, 4))
    x = b.given()
    copy = b.copy(x)
    assert kernels(b.after(b.sum(copy), b.map("exp", contiguous(copy.buffer, F32, (2, 6)), out=b.local((2, 6))))) == ["sum", "exp"]


@pytest.mark.parametrize("late", [False, True])
def test_a_copy_of_what_is_overwritten_stays(late):
    b = Build()
    p = b.given(EXTERNAL)
    old = b.copy(p)
    out = [] if late else [b.map("exp", old)]
    b.map("add", p, 1.0, out=p)
    out += [b.map("exp", old)] if late else []
    assert ("copy" in kernels(b.after(*out))) == late


def test_a_result_keeps_its_memory():
    b = Build()
    x = b.given()
    assert kernels(b.after(b.copy(x))) == ["copy"]
    assert kernels(b.after(b.map("mul", x, 1.0))) == ["copy"]
    y = b.map("mul", x, 1.0)
    assert kernels(b.after(pinned=[y.buffer])) == ["copy"]


def test_there_and_back():
    for first, second, rest in ((F32, F64, ["exp"]), (F64, F32, ["copy", "copy", "exp"])):
        b = Build(dtype=first)
        back = b.copy(b.copy(b.given(), dtype=second), dtype=first)
        assert kernels(b.after(b.map("exp", back))) == rest


def test_transposed_twice():
    b = Build((3, 4))
    once = b.copy(transposed(b.given()))
    assert kernels(b.after(b.sum(b.copy(transposed(once))))) == ["sum"]


def test_maps_read_what_a_buffer_was_filled_with():
    b = Build((3, 4))
    x = b.given()
    filled = b.copy(View(b.number(2.5).buffer, 0, F32, (3, 4), (0, 0)))
    program = b.after(b.map("mul", x, filled), without=("fuse", "fold"))
    assert kernels(program) == ["mul"]
    assert "2.5" in str(program)


def test_nothing_is_read_from_where_it_is_written_to():
    b = Build((3, 3))
    p, x = b.given(EXTERNAL), b.given()
    filled = b.copy(View(p.buffer, 0, F32, (3, 3), (0, 0)))
    b.map("mul", x, filled, out=p)                           # p[0, 0] is wanted whole before p changes
    assert kernels(b.after()) == ["copy", "mul"]
    b.copy(b.copy(transposed(p)), out=p)
    assert kernels(b.after()) == ["copy", "mul", "copy", "copy"]


def test_through_says_what_strides_can_say():
    outer, source = contiguous(1, F32, (4, 6)), transposed(contiguous(2, F64, (6, 4)))
    memory = np.arange(24.0).reshape(6, 4).T
    held = memory.astype("f4")
    random = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(random.integers(1, 5, random.integers(1, 3)))
        view = View(1, int(random.integers(0, 10)) * 4, F32, shape, tuple(int(s) for s in random.integers(-1, 8, len(shape))))
        if view.extent[0] < 0 or view.extent[1] > 96:
            continue
        found = through(view, outer, source)
        if found is not None:
            expected = np.lib.stride_tricks.as_strided(held.ravel()[view.offset // 4:], shape, [4 * s for s in view.strides])
            flat = memory.T.ravel()
            got = np.lib.stride_tricks.as_strided(flat[found.offset // 8:], shape, [8 * s for s in found.strides])
            assert np.array_equal(expected, got)
    assert through(transposed(outer), outer, source) == transposed(source)
    assert through(contiguous(1, F32, (24,)), outer, source) is None


# ---- the other passes

def test_folding():
    b = Build((2, 2))
    two = b.map("add", b.number(1.0), b.number(1.0), out=b.local(()))
    program = b.after(b.map("mul", b.given(), two))
    assert kernels(program) == ["mul"]
    assert "2.0" in str(program)


def test_folding_has_a_limit():
    b = Build((1000,))
    constant = b.given(CONSTANT)
    program = b.program(b.map("exp", b.map("neg", constant)))
    assert kernels(passes.fold(program, evaluate, limit=3999)) == ["neg", "exp"]
    assert kernels(passes.fold(program, evaluate, limit=4000)) == ["exp"]
    assert passes.fold(program) is program


def test_common_subexpressions():
    b = Build()
    x, p = b.given(), b.given(EXTERNAL)
    one = b.map("mul", x, p)
    b.map("add", p, 1.0, out=p)
    other, again = b.map("mul", x, p), b.map("mul", x, p)
    assert kernels(b.after(b.map("sub", one, other), b.map("sub", other, again))) == ["mul", "add", "mul", "sub", "sub"]


def test_zeros_of_either_sign_are_two_numbers():
    b = Build()
    x = b.given()
    b.contents[x.buffer] = np.array([0.0, -0.0, 1, -1], "f4").tobytes()
    for low, n in ((-0.0, 2), (0.0, 1)):
        one, other = (b.map("clamp", x, numbers=(minimum, 5.0)) for minimum in (0.0, low))
        assert kernels(b.after(b.map("exp", one), b.map("neg", other))).count("clamp") == n
    assert len({b.map("add", x, n).buffer for n in (0.0, -0.0)}) == 2
    assert kernels(b.after(b.map("abs", b.map("div", 1.0, b.map("add", x, 0.0))), b.map("div", 1.0, b.map("add", x, -0.0)))).count("div") == 2


def test_effects_stay_in_order():
    b = Build()
    x, y = b.given(), b.given()
    for view in (x, y, x):
        b.effect(view)
    assert kernels(b.after()) == ["outside_unit"] * 3


def test_dead_code():
    b = Build()
    x, p = b.given(), b.given(EXTERNAL)
    b.map("exp", b.map("mul", x, x))
    b.map("add", p, x, out=p)
    state = b.local()
    b.copy(x, out=state)
    b.map("neg", state, out=state)
    assert kernels(b.after()) == ["add"]
    b.copy(x, out=state)
    assert kernels(b.after(state)) == ["add", "copy"]


# ---- fusion

def groups(program):
    return [[part.name for part in i.extra] for i in program.instructions if i.kernel == "group"]


def fused(b, *outputs):
    program = b.program(*outputs)
    after = passes.fuse(program, BLOCK)
    assert outcome(program, b.contents) == outcome(after, b.contents)
    return after


def test_a_chain_is_one_group():
    b = Build((5, 8))
    x, y = b.given(), b.given()
    out = b.map("neg", b.map("exp", b.map("mul", b.map("add", x, 1.0), y)))
    program = fused(b, out)
    assert groups(program) == [["add", "mul", "exp", "neg"]]
    group, = program.instructions
    assert [v.buffer for v in group.operands] == [x.buffer, y.buffer, out.buffer, b.instructions[0].operands[2].buffer]
    assert group.roles == "rrwr"
    assert group.attrs == (40, 1)          # one row of scratch is enough: each result takes its input's place
    assert {v.buffer for part in group.extra for v in part.operands if v.buffer < 0} == {-1}


def test_small_maps_stay_alone():
    b = Build((15,))
    assert groups(fused(b, b.map("exp", b.map("neg", b.given())))) == []


def test_a_tree_is_one_group():
    b = Build((40,))
    x, y = b.given(), b.given()
    left = b.map("exp", x)
    b.effect(y)
    right = b.map("mul", b.map("neg", y), y)
    program = fused(b, b.map("add", left, right))
    assert groups(program) == [["exp", "neg", "mul", "add"]]
    assert kernels(program)[0] == "outside_unit"


def test_backward_joins_forward_past_the_loss():
    b = Build((40,))
    x = b.given()
    y = b.map("tanh", x)
    z = b.map("mul", y, y)
    loss = b.sum(z)
    gradient = b.map("mul.da", 1.0, y)
    program = fused(b, loss, b.map("add", gradient, b.map("mul.da", gradient, x)))
    assert groups(program) == [["tanh", "mul", "mul.da", "mul.da", "add"]]
    assert [i.kernel for i in program.instructions] == ["group", "reduce"]


def test_what_needs_a_sum_does_not_join_what_is_summed():
    b = Build((40,))
    y = b.map("exp", b.given())
    z = b.map("neg", b.map("div", y, b.sum(y)))
    assert groups(fused(b, z)) == [["div", "neg"]]


def test_a_mask_has_elements_of_another_size():
    b = Build((40,))
    x = b.given()
    mask = b.map("lt", x, 0.5)
    program = fused(b, b.map("where", mask, b.map("neg", x), x))
    assert groups(program) == [["lt", "neg", "where"]]
    assert program.instructions[0].attrs == (40, 2)


def test_broadcast_and_transposed_operands_stay_outside():
    b = Build((6, 8))
    x, row, other = b.given(), b.given(shape=(8,)), b.given(shape=(8, 6))
    y = b.map("add", x, row._replace(shape=(6, 8), strides=(0, 1)))
    z = b.map("mul", y, transposed(other))
    assert groups(fused(b, b.map("exp", z))) == []
    b = Build((6, 8))
    x = b.map("exp", transposed(contiguous(b.given().buffer, F32, (8, 6))), out=transposed(b.local((8, 6))))
    assert groups(fused(b, b.map("neg", contiguous(x.buffer, F32, (48,)), out=b.local((48,))))) == [["exp", "neg"]]


def test_single_values_in_any_place():
    b = Build((40,))
    x = b.given()
    mask = b.map("lt", x, 0.5)
    assert groups(fused(b, b.map("where", mask, b.map("neg", x), 0.0))) == [["lt", "neg", "where"]]


def test_updates_in_place_keep_their_order():
    b = Build((40,))
    p, g = b.given(EXTERNAL), b.given()
    y = b.map("mul", p, g)
    b.map("sub", p, y, out=p)
    z = b.map("mul", p, g)
    program = fused(b, z)
    assert groups(program) == [["mul", "sub", "mul"]]
    assert "u" in program.instructions[0].roles


def test_an_error_finds_memory_as_it_was():
    b = Build((40,))
    p, x = b.given(EXTERNAL), b.given()
    y = b.map("neg", x)
    b.effect(x)
    b.map("add", p, y, out=p)
    b.effect(p)
    assert [i.kernel for i in fused(b).instructions] in (["outside_unit", "group", "outside_unit"], ["map", "outside_unit", "map", "outside_unit"])


def test_what_a_member_overwrites_was_read_before():
    b = Build((40,))
    x, q = b.given(), b.given(EXTERNAL)
    y = b.map("exp", x)
    z = b.map("neg", q)                                      # drawn in by the last, and yet before the next
    b.map("mul", y, y, out=q)
    assert groups(fused(b, b.map("add", y, z))) == [["exp", "neg", "mul", "add"]]


def test_what_is_drawn_into_a_group_leaves_nobody_behind():
    b = Build((40,))
    x, y = b.given(), b.given(EXTERNAL)
    first = b.map("exp", x)
    second = b.map("neg", y)
    total = b.sum(second)                                    # needs what the last map would draw in
    b.effect(total)
    third = b.map("add", first, second)
    assert groups(fused(b, third, total)) == [["exp", "add"]]
    b = Build((40,))
    x, y = b.given(), b.given(EXTERNAL)
    first = b.map("exp", x)
    second = b.map("neg", y)
    b.copy(View(b.number(1.0).buffer, 0, F32, (40,), (0,)), out=y)
    assert groups(fused(b, b.map("add", first, second))) == [["exp", "add"]]


def test_shifted_windows_do_not_meet_in_a_group():
    b = Build((32,))
    p, x = b.given(EXTERNAL, shape=(40,)), b.given()
    first = p._replace(shape=(32,))
    shifted = first._replace(offset=32)
    y = b.map("add", first, x)
    z = b.map("neg", y, out=shifted)
    assert groups(fused(b, b.map("mul", z, y))) == [["neg", "mul"]]


def test_limits_of_a_group():
    b = Build((40,))
    x = b.given()
    y = x
    for _ in range(40):
        y = b.map("neg", y)
    assert [len(g) for g in groups(fused(b, y))] == [32, 8]
    b = Build((40,))
    total = b.given()
    for _ in range(20):
        total = b.map("add", total, b.given())
    program = fused(b, total)
    assert all(len(i.operands) <= 12 for i in program.instructions)
    assert len(program.instructions) == 2


# ---- the plan

def test_a_chain_needs_two_places_or_one():
    b = Build((100,))
    x = b.given()
    for _ in range(10):
        x = b.map("neg", x)
    program = b.program(b.map("exp", x))
    assert plan(program).nbytes == 448
    assert plan(program, reuse=False).nbytes == 2 * 448
    assert plan(program).total == 10 * 448
    assert len(plan(program).shared) == 9


def test_an_input_is_written_over_only_after_its_last_reader():
    b = Build((40,))
    y = b.copy(b.given(dtype=F64), dtype=F32)
    z = b.map("neg", y)
    w = b.map("mul", y, z)
    b.effect(z)
    b.effect(w)
    program = passes.fuse(b.program(), BLOCK)
    assert groups(program) == [["neg", "mul"]]
    assert plan(program).shared == {w.buffer: y.buffer}
    assert outcome(b.program(), b.contents) == outcome(program, b.contents, plan(program))
    b = Build((5, 5))
    y = b.map("exp", b.given())
    program = b.program(b.map("neg", b.map("add", transposed(y), y)))
    assert list(plan(program).shared.values()) == []
    assert outcome(program, b.contents) == outcome(program, b.contents, plan(program))


def test_what_is_pinned_keeps_its_place():
    b = Build((100,))
    x = b.given()
    y = b.map("exp", x)
    z = b.map("neg", y)
    w = b.map("neg", b.map("neg", z))
    program = b.program(b.map("neg", w), pinned=[y.buffer])
    planned = plan(program)
    assert planned.nbytes == 2 * 448
    assert outcome(program, b.contents) == outcome(program, b.contents, planned)


def test_outputs_are_not_in_the_arena():
    b = Build((100,))
    y = b.map("exp", b.given())
    assert plan(b.program(y)).offsets == {}


def test_report():
    b = Build((1000,))
    x = b.given()
    y = b.map("mul", b.map("exp", x), x)
    program = b.program(b.sum(y))
    program = program._replace(instructions=tuple(i._replace(line=("/home/me/train.py", 7 + k, "step"))
                                                  for k, i in enumerate(program.instructions)), title="step")
    text = memory_report(program, plan(program))
    assert text.startswith("memory of step")
    assert "train.py:7" in text and "4.03 kB" in text and "1 written over an input" in text


# ---- all of them

def test_each_pass_can_be_left_out_and_shown(capsys):
    b = Build((40,))
    x = b.given()
    y = b.map("exp", b.map("mul", b.map("add", b.map("neg", x), b.map("neg", x)), 1.0))
    program = b.program(y)
    seen = []
    passes.optimise(program, evaluate=evaluate, show=lambda *change: seen.append(change))
    assert [name for name, _, _ in seen] == ["simplify", "common_subexpressions"]
    assert all(before is not after for _, before, after in seen)
    assert passes.optimise(program, without=tuple(passes.PASSES)) is program
    assert passes.optimise(program, without=("simplify", "common_subexpressions"), evaluate=evaluate) is program
    passes.optimise(program, show=True)
    assert "before simplify" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no pass is called folding"):
        passes.optimise(program, without=("folding",))


def test_what_is_optimised_stays_so():
    for seed in range(40):
        program = passes.optimise(Maker(seed).program(40), evaluate=evaluate)
        again = passes.optimise(program, evaluate=evaluate)
        assert len(again.instructions) <= len(program.instructions)


@pytest.mark.slow
def test_the_time_grows_with_the_length_only():
    def chain(n):
        b = Build((4096,))
        x, y = b.given(), b.given()
        for k in range(n):
            x, y = b.map(("add", "mul", "sub")[k % 3], x, y), x
        return b.program(b.sum(x))

    took = []
    for n in (2000, 20000):
        program = chain(n)
        start = time.perf_counter()
        plan(passes.optimise(program, evaluate=evaluate))
        took.append(time.perf_counter() - start)
    assert took[1] < 30 * took[0]
