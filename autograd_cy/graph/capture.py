"""Running a function once while every kernel is noted: the first half of `compile`, and `graph.capture` for whoever wants the Program.

Relies on recorder, guards, trees and links. compile relies on it.
"""

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from autograd_cy.array.dtypes import DType
from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.backward import grad, inner_grad
from autograd_cy.engine.hooks import hooks_of
from autograd_cy.engine.modes import enable_grad
from autograd_cy.engine.tensor import Tensor

from .calls import watch_calls
from .guards import snapshot
from .links import attach, dependencies, has_graph, has_graph_since, last_node, saved_addresses, strided
from .program import EXTERNAL, INPUT, Program
from .recorder import place, user_line
from .recording import Recording
from .trees import flatten, other_values, unflatten

# What a replay can return besides tensors: values that can't change.
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, DType, Enum)

_NEW_HISTORY = ": a replay would not change the argument's graph. Write to a clone() and return it"

_one_at_a_time = threading.RLock()       # the kernels' table leads through one recorder: another thread's capture waits


class Trace(NamedTuple):
    """One captured call: its result, the program, and what must hold for a replay to be right.

    aliases: for each flat result, what else it is: None, the number of an argument, an outside tensor, ("same", number of an earlier
    result), or ("grad", leaf). leaves: (leaf, view or None) pairs for gradients that the call set; a leaf among the arguments is its
    number. expected: what leaves' gradients had to be (links.moved). kept: (leaf, buffer id) for gradients that were there and are
    added to or read. graph: of a function whose result needs gradients. program: None where the call made states of optimisers, which
    a replay would not do.
    """

    result: object
    tree: object
    program: Program | None
    aliases: tuple
    leaves: tuple
    expected: tuple
    kept: tuple
    snapshot: object
    graph: object = None


def trace(fn, args=(), kwargs=None, watched=True, guards=None, lasting=False):
    """Call `fn` under capture. CaptureError, naming the line, where a replay could not be faithful.

    watched: look for what the function itself changes, prints, draws. guards: the snapshot of an earlier capture of the same
    function, which still holds. lasting: the program will stand for later calls, so memory that can't be watched is an error, too.
    """
    kwargs = kwargs or {}
    given, description = flatten((args, kwargs))
    arguments = [_leaf_of(t) for t in given]
    substituted = any(a is not b for a, b in zip(arguments, given, strict=True))
    if substituted:
        args, kwargs = unflatten(description, arguments)
    known = guards is not None
    guards = guards if known else snapshot(fn, args, kwargs)
    since = last_node()
    recording = Recording(arguments, since if lasting else -1)
    calls, graph = watch_calls(states=not known), None
    with _one_at_a_time, recording, calls:
        try:
            result = fn(*args, **kwargs)
        except RuntimeError as error:
            if substituted and "leaf tensor that requires gradients can't be changed in place" in str(error):
                raise CaptureError(f"the captured call writes to an argument in place, at {place(user_line())}{_NEW_HISTORY}") from error
            raise
        for t in arguments:                       # they were leaves
            if has_graph_since(t, since):
                raise CaptureError(f"the captured call writes what requires gradients to an argument in place, at {t.grad_fn.line}"
                                   f"{_NEW_HISTORY}")
        tensors, tree = flatten(result)
        numbers = [k for k, t in enumerate(tensors) if t.requires_grad and has_graph(t)]
        if numbers and not recording.went_back:
            graph = Graph(recording, [tensors[k] for k in numbers], numbers, arguments, given, since)
    if lasting and graph is None and not calls.impure and guards.changes() and guards.began():
        done = [t.detach() if has_graph(t) else t for t in tensors]
        return Trace(unflatten(tree, done), tree, None, (), (), (), (), guards)
    if watched:
        _refuse_what_changes(guards, calls)
    for value in other_values(tree) if lasting else ():
        if not isinstance(value, PLAIN):
            raise CaptureError(f"the captured step returns {type(value).__name__} objects; a replay can return tensors and plain values "
                               f"only, alone or in tuples, lists and dicts")
    names = guards.tensors()
    for name, t in names:
        if has_graph_since(t, since):
            raise CaptureError(f"the captured call writes what requires gradients to {name} in place, at {t.grad_fn.line}: a replay would "
                               f"not change its graph. Return the new value, or write that of detach()")
    recording.give_names(names)
    number = {id(t): k for k, t in enumerate(arguments)}
    leaves = tuple((number.get(id(leaf), leaf), None if leaf.grad is None else recording.view_of(leaf.grad))
                   for leaf, _, _ in recording.leaves.values())
    named = {id(t): name for name, t in names}
    gradients = [(f"input{leaf}" if type(leaf) is int else named.get(id(leaf), f"leaf{k}"), view) for k, (leaf, view) in enumerate(leaves)]
    expected, kept = _gradients_before(recording, number)
    if lasting:
        _refuse_hooks_of_arguments(recording, number)
        _refuse_hidden_memory(recording, [before for _, before, _ in recording.leaves.values()] + (graph.inner if graph else []))
    aliases = _aliases(tensors, {id(t): t for _, t in names} | number, leaves)
    views = [recording.view_of(t) for t in tensors]
    title = getattr(fn, "__qualname__", type(fn).__name__)
    if graph is None:
        program = recording.program(views, gradients, title)
        if recording.went_back:                   # the graph is used up; a replay gives results without one, too
            tensors = [t.detach() if alias is None and t.requires_grad else t for t, alias in zip(tensors, aliases, strict=True)]
    else:
        program = graph.finish(views, aliases, title)
        tensors = graph.wrapped(tensors)
    tensors = [given[alias] if type(alias) is int else t for t, alias in zip(tensors, aliases, strict=True)]
    return Trace(unflatten(tree, tensors), tree, program, aliases, leaves, expected, kept, guards, graph)


def _leaf_of(t):
    """What the captured function sees of an argument: itself, or, where a graph lies behind it, a leaf on the same memory."""
    return t if t.grad_fn is None else t.detach().requires_grad_()


def _gradients_before(recording, number):
    """(what the leaves' gradients must be, (leaf, buffer id) of those whose memory the program uses)."""
    expected, kept = [], []
    for leaf, before, mattered in recording.leaves.values():
        if not mattered:
            continue
        place = number.get(id(leaf), leaf)
        if before is None:
            expected.append((place, None))
        elif not recording.touches(before):
            expected.append((place, 0))
        elif before.shape == leaf.shape and before.stride() == leaf.stride() and before.storage_offset() == 0:
            expected.append((place, 1))
            kept.append((place, recording.view_of(before).buffer))
        else:
            expected.append((place, before.data_ptr()))
    return tuple(expected), tuple(kept)


def _aliases(tensors, outside, leaves):
    """What results are, besides themselves."""
    found, first = [], {}
    gradients = {id(leaf.grad): leaf for leaf, view in leaves if type(leaf) is not int and view is not None}
    for k, t in enumerate(tensors):
        alias = outside.get(id(t))
        if alias is None and id(t) in first:
            alias = "same", first[id(t)]
        elif alias is None and id(t) in gradients:
            alias = "grad", gradients[id(t)]
        first.setdefault(id(t), k)
        found.append(alias)
    return tuple(found)


class Graph:
    """The graph of a captured function's results: kept, so that its gradients can be captured when and as they are asked for.

    numbers: which of the flat results have one. sources: what they are differentiated by (arguments that need gradients, then
    leaves outside); inner: the same as the captured function saw them.
    """

    def __init__(self, recording, outputs, numbers, arguments, given, since):
        self.recording, self.outputs, self.numbers = recording, outputs, tuple(numbers)
        self.inner = [t for t in arguments if t.requires_grad]
        self.sources = [g for t, g in zip(arguments, given, strict=True) if t.requires_grad]
        leaves, older = dependencies(outputs, since)
        if older is not None:
            raise CaptureError(f"the result depends on a graph that was made before the captured call ({older.name()}): make the graph "
                               f"inside the function, or detach() what comes from outside")
        known = {id(t) for t in self.inner}
        rest = [leaf for leaf in leaves if id(leaf) not in known]
        self.inner += rest
        self.sources += rest
        self.addresses = saved_addresses(outputs, since)

    def finish(self, views, aliases, title):
        """The forward program."""
        for view, alias, k in zip(views, aliases, range(len(views)), strict=True):
            buffer = self.recording.kind_of(view)
            if k in self.numbers and alias is None and buffer in (INPUT, EXTERNAL):
                raise CaptureError("a result is a view of an argument or of a tensor outside: what is written into it later would have to "
                                   "change their graphs; return a clone()")
        self.program, self.read = self.recording.forward(views, self.addresses, title)
        return self.program

    def wrapped(self, tensors):
        """The results with one node as their history, which leads to the sources."""
        made = [t.detach() if k in self.numbers else t for k, t in enumerate(tensors)]
        attach([made[k] for k in self.numbers], self.sources, Inner(self.outputs, self.inner, self.sources))
        return made

    def gradient(self, pattern):
        """(the Program from gradients of the results to gradients of the sources, a view or None per source).

        pattern: the strides of the gradient of each result, or None where there is none.
        """
        used = [k for k, strides in enumerate(pattern) if strides is not None]
        with _one_at_a_time, self.recording:
            seeds = [strided(self.outputs[k].shape, pattern[k], self.outputs[k].dtype.code) for k in used]
            self.recording.divide(seeds, [f"gradient{self.numbers[k]}" for k in used])
            found = inner_grad([self.outputs[k] for k in used], self.inner, seeds) if self.inner else ()
            views = [None if g is None else self.recording.view_of(g) for g in found]
            inputs = [self.recording.view_of(s) for s in seeds]
        return self.recording.second(inputs, views, self.program, f"gradient of {self.program.title}"), views


class Inner:
    """The node of results whose graph was made by a capture, or for second derivatives: goes back through that graph."""

    def __init__(self, outputs, inner, sources):
        self.outputs, self.inner, self.sources = outputs, inner, sources

    def backward(self, gradients, needed):
        """Gradients of the sources."""
        used = [k for k, g in enumerate(gradients) if g is not None]
        wanted = [k for k, need in enumerate(needed) if need]
        if not used or not wanted:
            return [None] * len(needed)
        found = inner_grad([self.outputs[k] for k in used], [self.inner[k] for k in wanted], [gradients[k] for k in used])
        made = [None] * len(needed)
        for k, value in zip(wanted, found, strict=True):
            made[k] = value
        return made

    def differentiate(self, gradients):
        """Gradients of the sources that can be differentiated again."""
        seeds = [g.detach().requires_grad_() for g in gradients]
        with enable_grad():
            found = inner_grad(self.outputs, self.inner, seeds, create_graph=True, materialize_grads=True)
        made = [g.detach() for g in found]
        numbers = [k for k, g in enumerate(found) if g.requires_grad]
        if numbers:
            attach([made[k] for k in numbers], [*gradients, *self.sources],
                   Inner([found[k] for k in numbers], [*seeds, *self.inner], [*gradients, *self.sources]))
        return made


def _refuse_what_changes(guards, calls):
    """What a replay would not repeat is an error."""
    if calls.impure:
        name, filename, line = calls.impure[0]
        raise CaptureError(f"{name}() is called inside a captured step, at {filename}:{line}; a replay would not call it. Call it outside "
                           f"of the step, or through ag.graph.wall()")
    changed = guards.changes()
    if changed:
        raise CaptureError(f"the captured step itself changes what it reads: {'; '.join(changed[:3])}. A replay would not repeat that: "
                           f"pass such values as arguments, return them, or keep them in tensors")
    refused = guards.refusals()
    if refused:
        raise CaptureError(f"the captured step can't be watched: {refused[0]}")
    calls.extend(guards)


def _refuse_hooks_of_arguments(recording, number):
    """The next call's arguments are other tensors, with hooks of their own or none."""
    for leaf, _, _ in recording.leaves.values():
        if id(leaf) in number and any(hooks_of(leaf)):
            raise CaptureError("a captured step goes back to an argument that has hooks: a replay could not call those of the tensors that "
                               "it gets. Register the hook on a tensor inside of the step (x * 1), or on a parameter")


def _refuse_hidden_memory(recording, known):
    """Memory from outside that is reached in no way that can be watched is an error: another tensor might take its place unseen."""
    addresses = {t.untyped_storage().data_ptr() for t in known if t is not None}
    for instruction in recording.instructions:
        if instruction.extra is not None and instruction.kernel in ("sgd", "adam", "rmsprop") and instruction.extra[2] is not None:
            addresses |= {t.untyped_storage().data_ptr() for t in instruction.extra[2].values() if isinstance(t, Tensor)}
    for instruction, view in recording.hidden(addresses):
        line = f", at {instruction.line[0]}:{instruction.line[1]}" if instruction.line else ""
        raise CaptureError(f"{instruction.name} uses a tensor ({view}) that the captured step reaches in a way that can't be "
                           f"watched{line}: hold it in a variable, an attribute or a container that the step names, or pass it as an "
                           f"argument")


def capture(fn: Callable[..., Any], *examples: Any, gradients: Sequence[Tensor] | str | None = None) -> Program:
    """The Program of fn(*examples): a flat list of kernel calls that can be printed, drawn, changed by passes and run again.

    The tensors among the examples become its inputs, in order; what else the function reads (parameters, constants) is part of it.
    gradients: tensors (examples or others that the result depends on), or "all" leaves, in an order
    that means nothing (name them to have one); then `fn` must return one number, and the Program's outputs are (result, [gradients]).

    >>> program = ag.graph.capture(lambda a, b: (a * b).sum(), a, b)
    >>> print(program)
    >>> program.run(c, d)
    """
    if gradients is None:
        return _finished(trace(fn, examples))

    def with_gradients(*arguments):
        value = fn(*arguments)
        if not isinstance(value, Tensor):
            raise TypeError(f"capture: with gradients the function must return one tensor, got {type(value).__name__}")
        wanted = gradients
        if isinstance(gradients, str):
            wanted = dependencies([value], since)[0]
        return value, list(grad(value, wanted, allow_unused=True, materialize_grads=True))

    since = last_node()
    return _finished(trace(with_gradients, examples, watched=False))._replace(title=getattr(fn, "__name__", "program"))


def _finished(found):
    return found.program._replace(tree=found.tree)
