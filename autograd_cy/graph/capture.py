"""Running a function once while every kernel is noted: the first half of `compile`, and `graph.capture` for whoever wants the Program.

Relies on recorder, guards, trees and links. compile relies on it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.backward import grad
from autograd_cy.engine.creation import empty_like
from autograd_cy.engine.tensor import Tensor

from .calls import watch_calls
from .guards import snapshot
from .links import Cut, dependencies, has_graph, history_of, last_node
from .program import Program
from .recorder import Recording
from .trees import flatten


_one_at_a_time = threading.RLock()       # the kernels' table leads through one recorder: another thread's capture waits


class Trace(NamedTuple):
    """One captured call: its result, the programs, and what must hold for a replay to be right.

    program: what the call does; backward: for a result with a graph, the program from gradients of `differentiable` outputs
    (numbers among the flat results) to gradients of `sources` (tensors; `gradient_views`: a view or None each).
    aliases: for each flat result, the number of the argument or the outside tensor that it is, or None. leaves: (leaf, view or None)
    pairs for gradients that the call set; a leaf among the arguments is its number. expected: what leaves' gradients had to be
    (links.moved).
    """

    result: object
    tree: object
    program: Program
    aliases: tuple
    leaves: tuple
    expected: tuple
    snapshot: object
    backward: Program | None = None
    differentiable: tuple = ()
    sources: tuple = ()
    gradient_views: tuple = ()


def trace(fn, args=(), kwargs=None, watched=True, wanted=None, guards=None, lasting=False):
    """Call `fn` under capture. CaptureError, naming the line, where a replay could not be faithful.

    watched: look for what the function itself changes, prints, draws. wanted: tensors to differentiate by; by default everything
    that the result's graph leads to. guards: the snapshot of an earlier capture of the same function, which still
    holds. lasting: the program will stand for later calls, so memory that can't be watched is an error, too.
    """
    kwargs = kwargs or {}
    arguments = flatten((args, kwargs))[0]
    known = guards is not None
    guards = guards if known else snapshot(fn, args, kwargs)
    since, histories = last_node(), [history_of(t) for t in arguments]
    recording = Recording(arguments)
    backward = {}
    calls = watch_calls(states=not known)
    with _one_at_a_time, recording, calls:
        result = fn(*args, **kwargs)
        tensors, tree = flatten(result)
        for t, history in zip(arguments, histories, strict=True):
            if history_of(t) != history:
                raise CaptureError(f"the captured call writes to an argument of shape {t.shape} in place, by an operation that gradients "
                                   f"pass through: a replay would not change the argument's graph. Write to a clone() and return it")
        numbers = [k for k, t in enumerate(tensors) if t.requires_grad and has_graph(t)]
        if numbers and not recording.went_back:
            backward = _capture_backward(recording, tensors, numbers, arguments, since, wanted)
    if watched:
        _refuse_what_changes(guards, calls)
    names = guards.tensors()
    recording.give_names(names)
    views = [recording.view_of(t) for t in tensors]
    number = {id(t): k for k, t in enumerate(arguments)}
    leaves = tuple((number.get(id(leaf), leaf), None if leaf.grad is None else recording.view_of(leaf.grad))
                   for leaf, _, _ in recording.leaves.values())
    named = {id(t): name for name, t in names}
    gradients = [(f"input{leaf}" if type(leaf) is int else named.get(id(leaf), f"leaf{k}"), view) for k, (leaf, view) in enumerate(leaves)]
    expected = tuple((number.get(id(leaf), leaf), None if before is None else before.data_ptr() if recording.touches(before) else 0)
                     for leaf, before, mattered in recording.leaves.values() if mattered)
    outside = {id(t): t for _, t in names} | number
    aliases = tuple(outside.get(id(t)) for t in tensors)
    title = getattr(fn, "__qualname__", type(fn).__name__)
    if lasting:
        _refuse_hidden_memory(recording, [before for _, before, _ in recording.leaves.values()] + backward.get("sources", []))
    if not backward:
        return Trace(result, tree, recording.program(views, gradients, title), aliases, leaves, expected, guards)
    found = [None if g is None else recording.view_of(g) for g in backward["gradients"]]
    program, second = recording.halves(views, [recording.view_of(g) for g in backward["seeds"]], found)
    return Trace(result, tree, program._replace(title=title), aliases, leaves, expected, guards,
                 second._replace(title=f"backward of {title}"), tuple(numbers), tuple(backward["sources"]), tuple(found))


def _capture_backward(recording, tensors, numbers, arguments, since, wanted):
    """Go back from the results once, with gradients that a run will bind anew."""
    outputs = [tensors[k] for k in numbers]
    sources = [t for t in arguments if t.requires_grad]
    leaves, older = dependencies(outputs, since, sources)
    if older is not None:
        raise CaptureError(f"the result depends on a graph that was made before the captured call ({older.name()}): make the graph "
                           f"inside the function, or detach() what comes from outside")
    known = {id(t) for t in sources}
    sources += [leaf for leaf in leaves if id(leaf) not in known]
    if wanted is not None:
        sources = list(wanted)
    seeds = [empty_like(t) for t in outputs]
    recording.divide(seeds, [f"gradient{k}" for k in numbers])
    with Cut(arguments):
        gradients = grad(outputs, sources, seeds, retain_graph=True, allow_unused=True) if sources else []
    return {"seeds": seeds, "sources": sources, "gradients": gradients}


def _refuse_what_changes(guards, calls):
    """What a replay would not repeat is an error."""
    if calls.impure:
        name, filename, line = calls.impure[0]
        raise CaptureError(f"{name}() is called inside a captured step, at {filename}:{line}; a replay would not call it. Call it outside "
                           f"of the step, or through graph.wall()")
    changed = guards.changes()
    if changed:
        raise CaptureError(f"the captured step itself changes what it reads: {'; '.join(changed[:3])}. A replay would not repeat that: "
                           f"pass such values as arguments, return them, or keep them in tensors")
    refused = guards.refusals()
    if refused:
        raise CaptureError(f"the captured step can't be watched: {refused[0]}")
    calls.extend(guards)


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
    gradients: tensors (examples or others that the result depends on), or "all"; then `fn` must return one number, and the Program's
    outputs are (result, [gradients]).

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
