"""Running a Program by itself, by each of three engines that give the same bytes, or one instruction on constants.

Relies on machine, plan and program. `Program.run` and compile (for constant folding) rely on it.

`replay` runs the instructions in their order, in an arena where buffers share places. `recursive` is the textbook definition:
what a result needs is computed first, each instruction once. `iterative` starts from the leaves and runs an instruction when all
that it waits for is there. The last two run a Program as one thinks about it, and show that the order does not matter.
"""

from collections import OrderedDict, deque

from .machine import Machine
from .plan import plan
from .program import CONSTANT, LOCAL, Buffer, Program
from .trees import unflatten

ENGINES = ("replay", "iterative", "recursive")
KEPT = 32                     # machines of programs that were run last

_ready = OrderedDict()        # (id of the program, whether it is planned) -> (program, machine, instance)


def run(program, inputs, engine="replay"):
    """The result of a Program for these inputs (tensors; shapes, dtypes and strides as captured)."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    check_inputs(program, inputs)
    machine, instance = _prepared(program, engine == "replay")
    instance.bind_inputs(inputs)
    instance.refresh(machine.updates)
    for buffer in program.results():
        if machine.buffers[machine.index[buffer]].kind == LOCAL and buffer not in machine.plan.offsets:
            instance.fresh(machine.index[buffer])
    if engine == "replay":
        instance.run()
    else:
        for i in (_iterative if engine == "iterative" else _recursive)(program):
            instance.run_step(i)
    outputs = [instance.tensor(view) for view in program.outputs]
    return outputs if program.tree is None else unflatten(program.tree, outputs)


def _prepared(program, planned):
    key = id(program), planned
    found = _ready.get(key)
    if found is None or found[0] is not program:
        machine = Machine(program, plan(program) if planned else OwnPlaces(program))
        found = _ready[key] = program, machine, machine.instance()
        while len(_ready) > KEPT:
            _ready.popitem(last=False)
    _ready.move_to_end(key)
    return found[1:]


def check_inputs(program, inputs):
    """Raise where arguments are not what the program was captured for."""
    if len(inputs) != len(program.inputs):
        raise TypeError(f"{program.title}: expected {len(program.inputs)} inputs, got {len(inputs)}")
    for k, (view, tensor) in enumerate(zip(program.inputs, inputs, strict=True)):
        if tensor.dtype.code != view.dtype or tensor.shape != view.shape or (view.numel and tensor.stride() != view.strides):
            raise ValueError(f"{program.title}: input {k} was captured as {view} with strides {view.strides}, got "
                             f"{tensor.dtype.name}{list(tensor.shape)} with strides {tensor.stride()}; capture again for other shapes")


def waits_for(program):
    """For each instruction the earlier ones that must have run: those that write what it reads, or use what it overwrites."""
    writer, readers, found = {}, {}, []
    for i, instruction in enumerate(program.instructions):
        needed = set()
        for view, role in zip(instruction.operands, instruction.roles, strict=True):
            if view is None:
                continue
            if view.buffer in writer:
                needed.add(writer[view.buffer])
            if role != "r":
                needed.update(readers.get(view.buffer, ()))
        for view, role in zip(instruction.operands, instruction.roles, strict=True):
            if view is None:
                continue
            if role == "r":
                readers.setdefault(view.buffer, []).append(i)
            else:
                writer[view.buffer], readers[view.buffer] = i, []
        needed.discard(i)
        found.append(needed)
    effects = [i for i, instruction in enumerate(program.instructions) if instruction.has_effects]
    for before, after in zip(effects, effects[1:], strict=False):
        found[after].add(before)
    return found


def _iterative(program):
    """From the leaves: an instruction runs when nothing that it waits for is left."""
    waiting = waits_for(program)
    followers = [[] for _ in waiting]
    for i, needed in enumerate(waiting):
        for j in needed:
            followers[j].append(i)
    counts = [len(needed) for needed in waiting]
    queue = deque(i for i, count in enumerate(counts) if not count)
    while queue:
        i = queue.popleft()
        yield i
        for j in followers[i]:
            counts[j] -= 1
            if not counts[j]:
                queue.append(j)


def _recursive(program):
    """From the results: what one needs is computed first, each instruction once."""
    waiting, done, order = waits_for(program), set(), []

    def visit(i):
        if i not in done:
            done.add(i)
            for j in sorted(waiting[i]):
                visit(j)
            order.append(i)

    try:
        for i in range(len(waiting)):
            visit(len(waiting) - 1 - i)
    except RecursionError:
        raise RecursionError(f"the program of {len(waiting)} instructions is too deep for the recursive engine; use "
                             f'engine="iterative" or engine="replay"') from None
    return order


class OwnPlaces:
    """A plan in which every local buffer keeps a place of its own, for engines that run instructions in an order of theirs."""

    def __init__(self, program):
        self.offsets, self.nbytes = {}, 0
        results = {view.buffer for view in program.outputs} | {view.buffer for _, view in program.gradients if view is not None}
        for buffer in program.buffers:
            if buffer.kind == LOCAL and buffer.id not in results:
                self.offsets[buffer.id] = self.nbytes
                self.nbytes += (buffer.nbytes + 63) // 64 * 64


def evaluate(instruction, contents):
    """Run one instruction on constants: contents {buffer id: bytes} of what it reads -> {buffer id: bytes} of what it writes."""
    sizes = {}
    for view in instruction.writes:
        sizes[view.buffer] = max(sizes.get(view.buffer, 0), view.extent[1])
    buffers = [Buffer(id, CONSTANT, len(content), "", content) for id, content in contents.items() if id not in sizes]
    buffers += [Buffer(id, LOCAL, size) for id, size in sizes.items()]
    program = Program(tuple(buffers), (instruction,))
    instance = Machine(program, OwnPlaces(program)).instance()
    instance.run()
    return {view.buffer: instance.content(view) for view in instruction.writes}
