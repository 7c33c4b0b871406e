"""`compile`: an ordinary step - forward, backward, optimiser - captured once and then replayed without the interpreter.

Relies on capture (running once while noting), passes and plan (making the Program fast and small), machine (running it) and
guards (noticing that something it depends on has changed). Everything here decides *whether* a replay is right; none of it computes.
"""

import functools
import operator
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.modes import enable_grad, is_grad_enabled
from autograd_cy.engine.operands import get_default_dtype
from autograd_cy.engine.generators import default_generator
from autograd_cy.engine.tensor import Tensor

from .capture import Inner, trace
from .keys import alike, difference, key_difference, sharing, structure_of, unhashable
from .evaluate import evaluate
from .links import attach, let_go, versions
from .machine import Machine
from .passes import PASSES, optimise
from .plan import memory_report, plan
from .program import EXTERNAL, LOCAL, Program
from .recorder import is_capturing
from .replay import Caller, Replayer, Signature, StateWatch, moved
from .results import bar_of, copies, joined, run_many, stacked
from .trees import HOLE, flatten, unflatten

PATIENCE = 6              # captures of which no two in a row agree before that is an error
KEPT = 64                 # programs per compiled function; a new one drops the oldest


@overload
def compile(step: Callable[..., Any], *, fast: bool = False, without: Sequence[str] = (), show: Any = None) -> "Compiled": ...
@overload
def compile(step: None = None, *, fast: bool = False, without: Sequence[str] = (),
            show: Any = None) -> Callable[[Callable[..., Any]], "Compiled"]: ...
def compile(step: Any = None, *, fast: bool = False, without: Sequence[str] = (), show: Any = None) -> Any:
    """Make a function that replays `step` at the speed of the kernels in it.

    step: a training step (it may call backward, zero_grad, clipping and optimisers), any other function of tensors, or a Module.
    The first calls run it as it is, noting every kernel; later ones replay the kernels. The results are the same bytes, and the two
    may be mixed freely. Where the step's code, what it reads, or the shapes of its arguments change, it is captured again (`why()`
    says what for); where a replay could not be faithful, CaptureError names the line.

    fast: allow simplifications that change rounding. without: names of passes to leave out (graph.PASSES; "reuse": write over no
    input). show: True prints the program before and after every pass. Usable as a decorator, with or without arguments.

    >>> @ag.compile
    ... def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = F.mse_loss(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> losses = step.repeat(2000, x, y)
    """
    if step is None:
        return functools.partial(compile, fast=fast, without=without, show=show)
    if not callable(step):
        raise TypeError(f"compile: expected a function or a Module, got {type(step).__name__}")
    return Compiled(step, fast, without, show)


class Compiled(Caller):
    """A function that replays captured programs; made by `compile`."""

    def __init__(self, step, fast=False, without=(), show=None):
        without = (without,) if isinstance(without, str) else without
        unknown = set(without) - {*PASSES, "reuse"}
        if unknown:
            raise ValueError(f"compile: no pass is called {', '.join(sorted(unknown))}; there are {', '.join(PASSES)}, reuse")
        functools.update_wrapper(self, step, updated=())
        self.step, self._fast, self._without, self._show = step, fast, tuple(without), show
        self._entries = {}               # key -> [_Entry], the newest first
        self._candidates = {}            # key -> structures of the captures so far, before two agree
        self._verified = False           # two captures agreed: with what it reads as it is, the step is the same from call to call
        self._why = "not called yet"
        self._lock = threading.RLock()
        self._attribute = None           # of a class, where it is a method
        self._last = self.quick = None   # the entry used last; what calls it without looking further

    # ---- calling

    def _call(self, args, kwargs):
        """A call for which the program used last may not be right."""
        if is_capturing():               # part of a larger captured step
            return self.step(*args, **kwargs)
        with self._lock:
            tensors, description = flatten((args, kwargs))
            entry, key = self._find(tensors, description)
            if entry is None:
                return self._capture(key, args, kwargs)
            entry.wait()
            return entry.call(tensors, args, kwargs)

    def repeat(self, times: int, *args: Any, progress: bool = False, **kwargs: Any) -> Any:
        """Run the step `times` times on the same arguments; returns its results stacked along a new first dimension.

        progress: show a bar on the terminal (tqdm, where it is installed).
        """
        times = operator.index(times)
        if times < 0:
            raise ValueError(f"repeat: expected a number of steps of at least 0, got {times}")
        bar = bar_of(times, progress)
        results, done = [], 0
        with self._lock:
            tensors, description = flatten((args, kwargs))
            while done < times:
                entry, key = self._find(tensors, description)
                if entry is None:
                    results.append(copies(self._capture(key, args, kwargs)))       # it may be memory that the next step writes
                    done += 1
                elif entry.is_step:
                    break
                else:
                    results.append(entry.call(tensors, args, kwargs))
                    done += 1
            value = stacked(results, times) if done == times else entry.repeat(times - done, tensors, results, bar)
        bar(times)
        return value

    def over(self, loader: Iterable[Any], *, progress: bool = False) -> list[Any]:
        """Run the step on every batch of a loader (a tuple or list of tensors, or one tensor); returns the list of results."""
        bar, results = bar_of(len(loader) if hasattr(loader, "__len__") else None, progress), []
        for batch in loader:
            results.append(self(*batch) if isinstance(batch, (tuple, list)) else self(batch))
            bar(len(results))
        return results

    # ---- looking inside

    def why(self) -> str:
        """Why the last capture was made, in a sentence."""
        return self._why

    @property
    def program(self) -> Program:
        """The Program that was replayed or captured last; CaptureError before that."""
        return self._latest().program

    @property
    def gradient_program(self) -> Program | None:
        """The Program of the gradient that was asked for last, of a compiled function whose result needs one; else None."""
        return self._latest().gradient_program

    def picture(self):
        """The program as boxes and arrows, for graph.draw."""
        return self.program.picture()

    def memory(self) -> str:
        """What a run needs, known before it: the peak, the largest buffers and the lines that made them, as text."""
        return "\n\n".join(self._latest().reports())

    def _entry_for(self, args):
        """The program that would be replayed for these arguments (for over_seeds); None where it would be captured."""
        return self._find(*flatten((args, {})))[0]

    def _latest(self):
        if self._last is None:
            raise CaptureError("nothing is captured yet: call the compiled function first (twice, the first time)")
        return self._last

    def __get__(self, instance, owner=None):
        """A compiled method: each object has programs of its own."""
        if instance is None or not hasattr(self.step, "__get__"):
            return self
        bound = Compiled(self.step.__get__(instance, owner), self._fast, self._without, self._show)
        if hasattr(instance, "__dict__") and self._attribute is not None:
            instance.__dict__[self._attribute] = bound            # found before this descriptor from now on
        return bound

    def __set_name__(self, owner, name):
        self._attribute = name

    def __reduce__(self):
        return Compiled, (self.step, self._fast, self._without, self._show)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "step" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.step, name)          # parameters(), train() ... of a compiled Module

    def __repr__(self):
        name = getattr(self.step, "__qualname__", type(self.step).__name__)
        return f"<compiled {name}: {sum(map(len, self._entries.values()))} programs>"

    # ---- capturing

    def _find(self, tensors, description):
        """(the entry that may be replayed for these arguments, or None; their key)."""
        key = (description, tuple((t.shape, t.stride(), t.dtype.code, t.requires_grad) for t in tensors), is_grad_enabled(),
               get_default_dtype().code, sharing(tensors))
        try:
            entries = self._entries.get(key, ())
        except TypeError:
            raise CaptureError(f"compile: arguments other than tensors must be hashable (numbers, strings, tuples of them), to be compared "
                               f"from call to call; got {unhashable(description)}: pass a tensor (ag.as_tensor)") from None
        reason = None
        for entry in entries:
            found = entry.stale(tensors)
            if found is None:
                self._use(entry)
                return entry, key
            reason = reason or found
        self._reason = reason
        return None, key

    def _capture(self, key, args, kwargs):
        self._explain(key)
        guards = self._guards(args, kwargs)
        found = trace(self.step, args, kwargs, guards=guards, lasting=True)
        if found.program is None:
            return found.result
        structure, before = structure_of(found), self._candidates.setdefault(key, [])
        # Another shape of a step that is known: one capture is enough. Else two must agree, for this shape or for two.
        if self._verified and guards is not None or structure in before or any(
                alike(structure, other) for others in self._candidates.values() for other in others):
            self._verified = True
            del self._candidates[key]
            plain = not kwargs and all(isinstance(a, Tensor) for a in args) and key[-1] in ((), tuple(range(len(args))))
            self._keep(key, _Entry(self, found, self._options(), Signature(args) if plain else None))
        elif len(before) + 1 >= PATIENCE:
            del self._candidates[key]                # whoever calls again tries again
            raise CaptureError(f"the step did something else in each of {PATIENCE} calls, so that it can't be replayed: "
                               f"{difference(before[-1], structure)}")
        else:
            before.append(structure)
            while len(self._candidates) > KEPT:
                del self._candidates[next(iter(self._candidates))]
        return found.result

    def _guards(self, args, kwargs):
        """The snapshot of the newest program where it still holds and the arguments hold nothing that it would have to know."""
        last = self._last
        if not self._verified or last is None or kwargs or not all(isinstance(a, Tensor) for a in args) or last.signature is None:
            return None
        return last.snapshot if last.snapshot.check() is None else None

    def _options(self):
        return {"fast": self._fast, "without": [name for name in self._without if name != "reuse"], "show": self._show}

    def _keep(self, key, entry):
        entries = self._entries.setdefault(key, [])
        entries[:] = [entry, *entries][:8]
        while sum(map(len, self._entries.values())) > KEPT:
            del self._entries[next(iter(self._entries))]
        self._use(entry)

    def _use(self, entry):
        self._last, self.quick = entry, entry.quick

    def _explain(self, key):
        """Note why a capture is made."""
        if key in self._candidates:
            self._why = "captured a second time, to see that the step does the same at every call"
        elif not self._entries and not self._candidates:
            self._why = "captured because it was called for the first time"
        elif key in self._entries:
            self._why = f"captured again because {self._reason}"
        else:
            known = next(iter(self._entries or self._candidates))
            self._why = f"captured because {key_difference(known, key)}"


class _Entry:
    """A Program ready to be replayed, and what must hold for that."""

    def __init__(self, owner, found, options, signature):
        self.signature, self.step, self._options = signature, owner.step, options
        self._reuse = "reuse" not in owner._without
        self.tree, self.snapshot, self.expected, self.aliases = found.tree, found.snapshot, found.expected, found.aliases
        self.program, self.plan, self.machine = self._ready(found.program)
        self.graph, self.is_step = found.graph, found.graph is None
        index = self.machine.index
        self.kept = tuple((leaf, index[buffer]) for leaf, buffer in found.kept if buffer in index)
        leaves = tuple((leaf, view, 0 if view is None else index[view.buffer]) for leaf, view in found.leaves)
        # Gradients in memory of their own; those that are added to in place stay where they are.
        self.leaves = tuple((leaf, view, i) for leaf, view, i in leaves if view is None or self.machine.buffers[i].kind == LOCAL)
        self.takes_leaves = any(type(leaf) is int for leaf, *_ in (*leaves, *self.expected))
        gradients = {i for _, view, i in self.leaves if view is not None}
        self.outputs = self.program.outputs
        self.results = tuple(sorted({index[v.buffer] for v in self.outputs if self.machine.buffers[index[v.buffer]].kind == LOCAL}))
        self.own_results = tuple(i for i in self.results if i not in gradients)
        self.is_plain = self.tree is HOLE and self.aliases[0] is None
        self.updates = self.machine.updates
        self.states = StateWatch([extra[1:] for _, extra in self.updates])
        self.instances = [self.machine.instance()]
        self.replayer = Replayer(self.instances[0], self.own_results)
        self.quick = None
        if self.is_step and signature is not None and not self.takes_leaves:
            self.quick = self.replayer
            self.replayer.arm(signature, self.snapshot, self.expected, self.states, self.leaves, self.kept,
                              None if self.is_plain else self._finish)
        if self.graph is not None:
            self.read = tuple(sorted(index[b] for b in self.graph.read if b in index))      # what a gradient may read
            self.generators = [g for _, g in self.snapshot.generators()] + [default_generator]
            self._gradients = {}                     # pattern -> _Gradient

    def _ready(self, program):
        program = optimise(program, evaluate=evaluate, **self._options)
        made = plan(program, reuse=self._reuse)
        return program, made, Machine(program, made)

    # ---- whether it may be replayed

    def stale(self, tensors):
        """None, or why the program must be captured again."""
        reason = self.snapshot.check()
        if reason is not None:
            return reason
        expected = _resolved(self.expected, tensors) if self.takes_leaves else self.expected
        leaf = moved(expected)
        if leaf is not None:
            before = next(address for t, address in expected if t is leaf)
            state = "is gone" if leaf.grad is None else "was not there" if before is None else "is laid out in another way"
            return f"the gradient of a leaf of shape {leaf.shape} {state}"
        parameter = self.states.changed()
        return None if parameter is None else f"the optimizer's state of a parameter of shape {parameter.shape} was replaced"

    # ---- replay of a step

    def call(self, tensors, args, kwargs):
        if not self.is_step:
            return self._call_function(tensors, args, kwargs)
        leaves, kept = self.leaves, self.kept
        if self.takes_leaves:
            leaves, kept = _resolved(leaves, tensors), _resolved(kept, tensors)
        made = self.replayer.run(tensors, leaves, kept)
        return made[0] if self.is_plain else self._finish(made, tensors)

    def _finish(self, made, tensors):
        return unflatten(self.tree, self._results(made, tensors))

    def wait(self):
        """Until no other thread runs the program."""
        while self.replayer.busy:
            time.sleep(1e-5)

    def _results(self, made, tensors):
        """The flat results; those that are something else besides are that."""
        for k, alias in enumerate(self.aliases):
            if type(alias) is int:
                made[k] = tensors[alias]
            elif type(alias) is tuple:
                made[k] = made[alias[1]] if alias[0] == "same" else alias[1].grad
            elif alias is not None:
                made[k] = alias
        return made

    def repeat(self, times, tensors, before, bar):
        """`times` runs in one go, after the results `before`; all results stacked."""
        total = len(before) + times
        if any(alias is not None or self.machine.index[view.buffer] not in self.own_results
               for view, alias in zip(self.outputs, self.aliases, strict=True)):
            for _ in range(times):                    # a result is memory that the next step writes, or an argument itself
                before.append(copies(self.call(tensors, (), {})))
            return stacked(before, total)
        self.wait()
        stacks = run_many(self, self.instances[0], self.updates, _resolved(self.leaves, tensors), _resolved(self.kept, tensors), times,
                          tensors, lambda done: bar(len(before) + done))
        return joined(self.tree, before, stacks) if before else unflatten(self.tree, stacks)

    # ---- replay of a function whose result is one node of the graph

    def _call_function(self, tensors, args, kwargs):
        states = [(g, g.get_state()) for g in self.generators] if self.machine.needs_interpreter else ()
        instance = self.instances.pop() if self.instances else self.machine.instance()
        instance.bind_inputs(tensors)
        if self.updates:
            instance.refresh(self.updates)
        for i in self.results:
            if instance.is_shared(i):
                instance.fresh(i)
        instance.run()
        made = self._results([instance.tensor(view) for view in self.outputs], tensors)
        attach([made[k] for k in self.graph.numbers], self.sources_of(tensors), _Call(self, instance, tensors, args, kwargs, states))
        return unflatten(self.tree, made)

    def sources_of(self, tensors):
        """What this call's result is differentiated by: arguments that need gradients, then leaves outside."""
        arguments = [t for t in tensors if t.requires_grad]
        return arguments + self.graph.sources[len(arguments):]

    def gradient_for(self, pattern):
        """The program of the gradient for results' gradients with these strides, captured when it is first asked for."""
        found = self._gradients.get(pattern)
        if found is None:
            found = self._gradients[pattern] = _Gradient(self, *self.graph.gradient(pattern))
            while len(self._gradients) > KEPT:
                del self._gradients[next(iter(self._gradients))]
        return found

    @property
    def gradient_program(self):
        """The Program of the gradient that was asked for last; None before that."""
        return next(reversed(self._gradients.values())).program if self.graph is not None and self._gradients else None

    def reports(self):
        """What its programs need of memory."""
        found = [memory_report(self.program, self.plan)]
        if self.graph is not None:
            found += [memory_report(g.program, g.plan) for g in self._gradients.values()]
        return found


class _Gradient:
    """The program of a gradient, ready to run: reads memory of the forward run's instance."""

    def __init__(self, entry, program, views):
        self.program, self.plan, self.machine = entry._ready(program)
        outputs = iter(self.program.outputs)
        self.views = tuple(None if view is None else next(outputs) for view in views)
        buffers, mine = self.machine.buffers, entry.machine.index
        self.shared = tuple((i, mine[b.id]) for i, b in enumerate(buffers) if b.kind == EXTERNAL and b.owner is None)
        addresses = {b.owner.data_ptr() for b in buffers if b.kind == EXTERNAL and b.owner is not None}
        theirs = entry.machine.buffers
        reads = {there for _, there in self.shared}
        reads |= {i for i in entry.read if theirs[i].kind == EXTERNAL and theirs[i].owner.data_ptr() in addresses}
        self.checked = tuple(k for k, i in enumerate(entry.read) if i in reads)       # places in entry.read whose versions matter
        self.results = tuple(sorted({self.machine.index[v.buffer] for v in self.program.outputs
                                     if buffers[self.machine.index[v.buffer]].kind == LOCAL}))
        self.instances = []

    def run(self, forward, seeds):
        """Gradients of the sources (None: they do not matter)."""
        instance = self.instances.pop() if self.instances else self.machine.instance()
        try:
            instance.bind_inputs(seeds)
            for here, there in self.shared:
                instance.share(here, forward, there)
            for i in self.results:
                instance.fresh(i)
            instance.run()
            return [None if view is None else instance.tensor(view) for view in self.views]
        finally:
            let_go(instance, self.results)
            self.instances.append(instance)


class _Call:
    """One replayed call of a compiled function, for its node: holds the memory that the gradient reads."""

    def __init__(self, entry, instance, tensors, args, kwargs, states):
        self.entry, self.instance, self.tensors, self.args, self.kwargs, self.states = entry, instance, tensors, args, kwargs, states
        self.versions = versions(instance, entry.read)

    def __del__(self):
        self.entry.instances.append(self.instance)

    def backward(self, gradients, needed):
        """Gradients of the sources from gradients of the outputs (None: there is none)."""
        entry = self.entry
        seeds = [g for g in gradients if g is not None]
        found = entry.gradient_for(tuple(None if g is None else g.stride() for g in gradients))
        now = versions(self.instance, entry.read)
        for k in found.checked:
            if now[k] != self.versions[k]:
                name = entry.machine.buffers[entry.read[k]].name or "a result, or a value inside"
                raise RuntimeError(f"a value that a compiled function needs for its gradient ({name}) was changed in place afterwards; "
                                   f"use an out-of-place operation, or clone() the value before changing it")
        return found.run(self.instance, seeds)

    def differentiate(self, gradients):
        """As `backward`, as operations that can be differentiated again: the function runs once more, as it is."""
        entry = self.entry
        if entry.machine.written:
            raise RuntimeError("second derivatives of a compiled function that changes memory outside: it can't be run again to get them; "
                               "call the function without compile")
        before = [(g, g.get_state()) for g, _ in self.states]
        inner = [t if t.grad_fn is None else t.detach().requires_grad_() for t in self.tensors]
        args, kwargs = unflatten(flatten((self.args, self.kwargs))[1], inner)
        try:
            for generator, state in self.states:
                generator.set_state(state)
            with enable_grad():
                result = flatten(entry.step(*args, **kwargs))[0]
        finally:
            for generator, state in before:
                generator.set_state(state)
        sources = entry.sources_of(self.tensors)
        arguments = [t for t in inner if t.requires_grad]
        return Inner([result[k] for k in entry.graph.numbers], arguments + sources[len(arguments):], sources).differentiate(gradients)


# ---- small things

def _resolved(leaves, tensors):
    """Leaves among the arguments are this call's."""
    return tuple((tensors[leaf] if type(leaf) is int else leaf, *rest) for leaf, *rest in leaves)
