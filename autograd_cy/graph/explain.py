"""explain_grad: why a tensor has no gradient, in a sentence.

Relies on the recorder, hooks and live. The package shows `explain_grad`; nothing else relies on it.

What ends a history - detach(), no_grad, a comparison - leaves no trace in the graph, and a note for each would cost every operation.
So the computation is run again while somebody looks on: the recorder notes every kernel with the memory that it touches, which
shows how values flow whether or not they are differentiated, and the engine tells when a node is recorded, a tensor detached, the
grad mode switched (one comparison with NULL each). Where the values flow on and the graph does not is the cut.
"""

import ast
import linecache
import os
from collections.abc import Callable
from typing import Any

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.backward import grad
from autograd_cy.engine.gradients import saved_value
from autograd_cy.engine.hooks import observe
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.node import Node
from autograd_cy.engine.tensor import Tensor

from .live import nodes_of
from .recorder import is_capturing, user_line
from .recording import Recording

# What ends a history where it stands in source code.
_CALLS = {"detach", "detach_", "item", "numpy", "tolist", "long", "int", "byte", "bool", "argmax", "argmin", "round", "sign"}
_MODES = {"no_grad", "set_grad_enabled"}


def explain_grad(loss: Tensor | Callable[[], Any], param: Tensor) -> str:
    """Why `param` has no gradient, or a gradient of zeros, after loss.backward(): a sentence; that all is well, if it is.

    loss: the tensor; or, to be told the line where the gradient is cut, a function that computes it, which is called once more.
    The reasons that are told apart: the tensor is no leaf, or does not require gradients; the loss has no graph; it does not use the
    tensor; or uses it through detach() or .data, under no_grad, through a comparison or a conversion to integers, as a Python
    number, or only until it is overwritten in place; a backward function gives None; the gradient is all zero, behind a dead relu
    for example; backward() has not been called, or the gradient was taken away afterwards. No `grad` is changed.

    >>> ag.explain_grad(lambda: criterion(model(x), y), model[0].weight)
    'cut: detach() at train.py:12 ends its history, so that no gradient comes back; ...'
    """
    if not isinstance(param, Tensor):
        raise TypeError(f"explain_grad: expected a tensor, got {type(param).__name__}")
    if not isinstance(loss, Tensor) and not callable(loss):
        raise TypeError(f"explain_grad: the loss is a tensor or a function that computes it, got {type(loss).__name__}")
    if not param.is_leaf:
        kept = "retain_grad() was called, so that backward sets its grad" if param.retains_grad else "call retain_grad() on it to keep it"
        return (f"not a leaf: {param.grad_fn.operation} at {_short(param.grad_fn.line)} made it, and gradients of inner tensors are not "
                f"kept in grad; {kept}")
    if not param.is_floating_point():
        return f"its dtype is {param.dtype.name}, and only floating-point tensors have gradients"
    if not param.requires_grad:
        return "its requires_grad is False; set it to True, or call requires_grad_(), before the loss is computed"
    if isinstance(loss, Tensor):
        return _of_tensor(loss, param)
    return _Run(loss, param).sentence()


# ---- of a tensor: what its graph shows

def _of_tensor(loss, param):
    if loss is param:
        return "the tensor itself is the loss: its gradient is 1"
    if _reaches(loss.grad_fn, param, {}):
        return _gradient(loss, param)
    if loss.grad_fn is None:
        found = f"its dtype is {loss.dtype.name}" if not loss.is_floating_point() else "no recorded operation made it"
        return f"the loss has no graph ({found}): backward() on it is an error. {_ASK}"
    nodes, _ = nodes_of([loss])
    used = _used_without_history(nodes, param)
    if used is not None:
        return (f"cut: {used.operation} at {_short(used.line)} uses its values without its history, which detach(), .data or no_grad ended "
                f"before. {_suspects(nodes)}{_ASK}")
    return (f"never reached: none of the {len(nodes)} operations that made the loss leads to it - it is not used, or its history is cut "
            f"(detach(), no_grad, a comparison) or was recorded before it required gradients. {_suspects(nodes)}{_ASK}")


_ASK = "To see the line, pass the function that computes the loss: explain_grad(lambda: ..., param)"


def _used_without_history(nodes, param):
    """The first operation that saved the tensor's own memory as that of a constant."""
    for node in nodes:
        for i, (target, _) in enumerate(node.next_functions[:4]):
            if target is None:
                try:
                    value = saved_value(node, i)
                except (RuntimeError, TypeError):
                    continue
                if isinstance(value, Tensor) and _address(value) == _address(param):
                    return node
    return None


def _suspects(nodes):
    """What in the code around the operations ends histories, by its source."""
    found = {}
    for node in nodes:
        file, _, line = (node.line or "").rpartition(":")
        for at, what in _endings(file, int(line)) if file else ():
            found[f"{what} at {os.path.basename(file)}:{at}"] = None
    return f"Suspects in the code of these operations: {', '.join(list(found)[:5])}. " if found else ""


def _endings(file, line):
    """(line, what) of calls and blocks that end histories in the function around a line."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    around = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno:
            around = node                                    # walk goes outside in
    found = []
    for node in ast.walk(around):
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            found.append((node.lineno, ".data"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
            found.append((node.lineno, f"{node.func.attr}()"))
        elif (isinstance(node, ast.Attribute) and node.attr in _MODES) or (isinstance(node, ast.Name) and node.id in _MODES):
            found.append((node.lineno, node.attr if isinstance(node, ast.Attribute) else node.id))
    return sorted(set(found))


def _reaches(node, param, known):
    """Whether the graph leads from a node to a leaf; `known` remembers it by node."""
    stack = [node] if isinstance(node, Node) else []
    while stack:
        node = stack[-1]
        targets = [target for target, _ in node.next_functions if target is not None]
        unknown = [t for t in targets if isinstance(t, Node) and id(t) not in known]
        if unknown:
            stack += unknown
            continue
        stack.pop()
        known[id(node)] = any(t is param or known.get(id(t), False) for t in targets)
    return isinstance(node, Node) and known[id(node)]


# ---- a gradient that arrives

def _gradient(loss, param):
    """The loss leads to the tensor: what its gradient is, and where it becomes zero."""
    known = {}
    _reaches(loss.grad_fn, param, known)
    nodes = [node for node in nodes_of([loss])[0] if known.get(id(node))]
    seen, handles = {}, []
    for node in nodes:
        handles.append(node.register_hook(lambda inputs, outputs, node=node: _look(seen, node, inputs, outputs)))
    try:
        with no_grad():
            value, = grad(loss, param, loss.detach() * 0 + 1, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        if param.grad is not None:
            return "nothing is wrong: the loss leads to it, backward has gone through the graph, and grad is set"
        return ("the loss leads to it and backward has gone through the graph, but grad is None: it was taken away since (zero_grad(), "
                "grad = None), or backward(inputs=...) left it out")
    finally:
        for handle in handles:
            handle.remove()
    if value is not None and bool((value != 0).any()):
        bad = " (it has NaN: see autograd.detect_anomaly)" if bool(value.isnan().any()) else ""
        if param.grad is None:
            return (f"the loss leads to it and gives it a gradient{bad}, but grad is None: backward() has not been called on the loss, or "
                    f"the gradient was taken away afterwards (zero_grad(), grad = None)")
        return f"nothing is wrong: the loss gives it a gradient{bad}, and grad is set"
    for node in reversed(nodes):
        arrives, leaves, nothing = seen.get(id(node), (False, False, True))
        if arrives and not leaves:
            return _stopped(node, nothing)
    return "all zero: the loss leads to it, but its gradient is zero everywhere, along each of several ways"


def _look(seen, node, inputs, outputs):
    """Note whether anything but zeros arrives at a node, and leaves it."""
    def some(gradients):
        return any(g is not None and bool((g.detach() != 0).any()) for g in gradients)
    seen[id(node)] = some(outputs), some(inputs), all(g is None for g in inputs)


def _stopped(node, nothing):
    where = f"{node.operation} at {_short(node.line)}"
    if node.operation == "custom":
        where = f"the backward of {node.name().removesuffix('Backward')}, called at {_short(node.line)},"
    if nothing:
        return f"stopped: {where} gives None for it"
    if node.operation in ("relu", "relu6", "clamp", "hardtanh", "hardsigmoid", "hardswish", "threshold"):
        shape = node.inputs[0][0] if isinstance(node.inputs[0], tuple) else ()
        return (f"all zero: {where} lets no gradient through, as every one of its inputs of shape {shape} lies where it is constant (dead "
                f"units)")
    return f"all zero: the gradient that arrives at {where} is not zero, what it passes on is"


# ---- of a function: how values flow, and where the graph does not follow

def _address(tensor):
    """Where a tensor's storage begins."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize


def _short(line):
    """file:line without the directories."""
    if isinstance(line, tuple):
        line = f"{line[0]}:{line[1]}"
    return os.path.basename(line) if line else "an unknown line"


class _Run:
    """One run of the function under observation."""

    def __init__(self, function, param):
        self.param, self.events, self.nodes = param, [], []
        self.recording = Recording()
        observe(self._notice)
        try:
            with self.recording:
                try:
                    self.loss = function()
                    self.at_end = len(self.recording.instructions)
                finally:
                    observe(None)
        except CaptureError as error:
            raise RuntimeError(f"explain_grad: the computation can't be followed: {error}") from error

    def _notice(self, what, o):
        if not is_capturing():
            return
        position = len(self.recording.instructions)
        if what == "record":
            self.nodes.append((position, o))
        else:
            self.events.append((what, position, user_line(), _address(o) if isinstance(o, Tensor) else o))

    def sentence(self):
        """The reason."""
        loss, param = self.loss, self.param
        if isinstance(loss, (tuple, list)) and loss and isinstance(loss[0], Tensor):
            loss = loss[0]
        if isinstance(loss, Tensor) and (loss is param or _reaches(loss.grad_fn, param, {})):
            return _gradient(loss, param) if loss is not param else _of_tensor(loss, param)
        source = self._buffer(_address(param))
        if not isinstance(loss, Tensor):
            return f"{self._left() or f'the function returned {type(loss).__name__}, not a tensor'}; nothing can be differentiated"
        target = self._buffer(_address(loss))
        instructions = self.recording.instructions[:self.at_end]
        readers = [i for i in instructions if any(v.buffer == source for v in i.reads)]
        detached = [e for e in self.events if e[0] == "detach" and self._buffer(e[3]) == source]
        if source is None or not readers and not detached and source != target:
            left = self._left()
            return (f"never reached by way of tensors; if it is used at all, then here: {left}" if left else
                    "never reached: the computation does not use it; another tensor may have taken its place (a new model, a copy)")
        tainted, killed = self._flow(instructions, {source}, True)
        if target not in tainted:
            return self._overwritten(instructions, killed, target) or self._left() or (
                f"never reached: it is used ({readers[0].name} at {_short(readers[0].line)}), but nothing of that goes into the loss"
                if readers else "never reached: nothing of it goes into the loss")
        cuts = self._cuts(instructions, source, target)
        if not cuts:
            return ("never reached: its values go into the loss, but by way of another tensor on the same memory, which has a history of "
                    "its own")
        more = f"; also {', and '.join(cuts[1:3])}" if len(cuts) > 1 else ""
        return f"cut: {cuts[0]}{more}"

    def _buffer(self, address):
        block = self.recording.by_start.get(address)
        return None if block is None else block.id

    def _flow(self, instructions, buffers, kill):
        """(buffers that depend on these in the end, {buffer: the instruction that overwrote it with something else})."""
        tainted, killed = set(buffers), {}
        for instruction in instructions:
            depends = any(v.buffer in tainted for v in instruction.reads)
            for view, role in zip(instruction.operands, instruction.roles, strict=True):
                if view is None or role == "r":
                    continue
                if depends:
                    tainted.add(view.buffer)
                elif kill and role == "w" and view.buffer in tainted and view.covers(self.recording.all_blocks[view.buffer]):
                    tainted.discard(view.buffer)
                    killed[view.buffer] = instruction
        return tainted, killed

    def _overwritten(self, instructions, killed, target):
        """What overwrote a value on its way to the loss."""
        for buffer, instruction in killed.items():
            after = instructions[instructions.index(instruction) + 1:]
            if target in self._flow(after, {buffer}, False)[0]:
                return (f"overwritten: what was computed from it was replaced in place by {instruction.name} at "
                        f"{_short(instruction.line)}, before the loss used it")
        return None

    def _left(self):
        """Where values went to Python."""
        for what, _, line, name in self.events:
            if what == "escape":
                return f"cut: {name} at {_short(line)} makes a Python number or array, which has no history"
        return None

    def _cuts(self, instructions, source, target):
        """In words, where values go on and the graph does not."""
        needed, useful = {target}, set()
        for k in range(len(instructions) - 1, -1, -1):
            if any(v.buffer in needed for v in instructions[k].writes):
                useful.add(k)
                needed |= {v.buffer for v in instructions[k].reads}
        reached, known = {source}, {}
        found = {}
        for k, instruction in enumerate(instructions):
            if not any(v.buffer in reached for v in instruction.reads):
                continue
            node = self._node_of(k, instruction)
            if node is not None and _reaches(node, self.param, known):
                reached |= {v.buffer for v in instruction.writes}
            elif k in useful:
                found[self._cut(k, instruction, reached)] = None
        for what, _, line, address in self.events:
            if what == "detach" and self._buffer(address) == target and target in reached:
                found[f"detach() at {_short(line)} ends the history of the loss itself"] = None
        return sorted(found, key=lambda text: not text.startswith(("detach", "no_grad")))

    def _node_of(self, k, instruction):
        """The node that was recorded for an instruction."""
        for position, node in self.nodes:
            if position > k:
                line = f"{instruction.line[0]}:{instruction.line[1]}" if instruction.line else None
                inside = node.operation == "custom" and self._off_from(position) is not None and self._off_from(position) <= k
                return node if position == k + 1 or node.line == line or inside else None
        return None

    def _off_from(self, position):
        """Where the unrecorded part began that ended at a position: the forward of a Function."""
        began = None
        for what, at, _, mode in self.events:
            if what == "mode" and at <= position:
                began = at if not mode else began
        return began

    def _cut(self, k, instruction, reached):
        at = f"{instruction.name} at {_short(instruction.line)}"
        off = None
        for what, position, line, mode in self.events:
            if what == "mode" and position <= k:
                off = None if mode else line
        if off is not None:
            return f"no_grad, entered at {_short(off)}, was on when {at} used it"
        for what, position, line, address in reversed(self.events):
            if what == "detach" and position <= k and self._buffer(address) in {v.buffer for v in instruction.reads} & reached:
                return f"detach() at {_short(line)} ends its history, so that no gradient comes back; {at} goes on without"
        made = [v.dtype for v in instruction.writes]
        if made and all(dtype > 1 for dtype in made):
            kind = "a conversion" if instruction.kernel == "copy" else instruction.name
            return f"{kind} at {_short(instruction.line)} gives {DTYPES[made[0]].name}, which has no gradient"
        return f"{at} uses it, but was not recorded as a function of it"
