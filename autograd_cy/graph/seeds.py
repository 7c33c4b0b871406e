"""Many models at once: one captured program, run for models that differ in seed or hyperparameters.

Relies on compile and guards (which finds the corresponding parameters of another model by the same path). `ag.graph.over_seeds`.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.joins import stack
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.generators import default_generator

from .compile import Compiled
from .program import EXTERNAL
from .replay import StateWatch, moved
from .results import bar_of, copies, joined, run_many, stacked
from .trees import flatten, unflatten


def over_seeds(make: Callable[[Any], Any], seeds: int | Sequence[Any], *, threads: int | None = None, **options: Any) -> "Models":
    """Train several models that differ in what `make(seed)` makes of a seed: initial weights, learning rates, data.

    make: returns a step function of its own (a closure over a model and an optimizer), or a tuple whose first entry is that; all
    steps must have the same code and shapes. seeds: a number (0, 1, ...) or a sequence of what `make` takes. threads: how many
    models run at once (all processors by default); no thread holds the interpreter. options: as of `compile`.

    Each model ends with the same bytes as if it alone had been made and trained; the default generator's state is that of the caller
    again after every `repeat`. Steps that draw random numbers or call Python (walls) run one model after another, not side by side.

    >>> models = ag.graph.over_seeds(make, 1000)
    >>> losses = models.repeat(2000)            # (1000, 2000)
    >>> models.made[17]                         # what make(17) returned
    """
    return Models(make, range(seeds) if isinstance(seeds, int) else seeds, threads, options)


class Models:
    """Steps that share a captured program; made by `over_seeds`."""

    def __init__(self, make: Callable[[Any], Any], seeds: Sequence[Any], threads: int | None, options: dict[str, Any]) -> None:
        self.seeds = list(seeds)
        if not self.seeds:
            raise ValueError("over_seeds: no seeds")
        self.made, self._states = [], []              # states: of the default generator, where each model's training goes on
        for seed in self.seeds:
            self.made.append(make(seed))
            self._states.append(default_generator.get_state())
        self.steps = [m[0] if isinstance(m, tuple) else m for m in self.made]
        if not all(map(callable, self.steps)):
            raise TypeError("over_seeds: make(seed) must return a step function, or a tuple that begins with one")
        self.threads = threads or os.cpu_count() or 1
        self._first = Compiled(self.steps[0], **options)
        self._alone = {0: self._first}   # number of the model -> its own Compiled, where models can't run side by side
        self._options = options
        self._twins = {}                 # number of the model -> _Twin of the program last used

    def __len__(self) -> int:
        return len(self.steps)

    def repeat(self, times: int, *args: Any, progress: bool = False) -> Any:
        """Run every step `times` times; returns results stacked as (models, times, ...).

        The first calls of each model run as eager code: they make gradients and the optimiser's state.
        """
        show = bar_of(len(self.steps), progress)
        outside = default_generator.get_state()
        try:
            results = [self._by_itself(0, times, args, True)] + [None] * (len(self.steps) - 1)
            show(1)
            entry = self._first._entry_for(args)
            if entry is not None and entry.is_step and _runs_side_by_side(entry):
                self._train(entry, times, args, results, show)
            else:
                for k in range(1, len(self.steps)):
                    results[k] = self._by_itself(k, times, args, entry is not None)
                    show(k + 1)
        finally:
            default_generator.set_state(outside)
        return _together(results)

    def _by_itself(self, k, times, args, compiled):
        """One model's results, by a program of its own or by eager code, with the random numbers that it alone would draw."""
        default_generator.set_state(self._states[k])
        try:
            if not compiled:
                return stacked([copies(self.steps[k](*args)) for _ in range(times)], times)
            if k not in self._alone:
                self._alone[k] = Compiled(self.steps[k], **self._options)
            return self._alone[k].repeat(times, *args)
        finally:
            self._states[k] = default_generator.get_state()

    def _train(self, entry, times, args, results, show):
        tensors = flatten((args, {}))[0]
        jobs = []
        for k in range(1, len(self.steps)):
            twin, before = self._twins.get(k), []
            if twin is None or twin.entry is not entry or twin.stale():
                while len(before) < min(times, 2):      # gradients and state come to be; then everything is as it will stay
                    before.append(copies(self.steps[k](*args)))
                twin = self._twins[k] = _Twin(entry, self.steps[k], args) if len(before) < times or not before else None
                if twin is None:
                    del self._twins[k]
            jobs.append((k, twin, before))

        def work(job):
            k, twin, before = job
            return k, (twin.repeat(times - len(before), tensors, before) if len(before) < times else stacked(before, times))

        if self.threads == 1:
            for done, job in enumerate(jobs):
                k, results[k] = work(job)
                show(done + 2)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for done, (k, result) in enumerate(pool.map(work, jobs)):
                results[k] = result
                show(done + 2)


class _Twin:
    """The program of an entry, bound to the memory of another model."""

    def __init__(self, entry, step, args):
        self.entry, self.step, self.args = entry, step, args
        found = self._corresponding()
        self.places = _places(found)
        mine, other = [t for _, t in entry.snapshot.tensors()], found.tensors()
        pairs = {id(a): b for a, b in zip(mine, other, strict=True)}
        machine = entry.machine
        self.updates = [(i, self._update(extra, pairs, entry, found)) for i, extra in machine.updates]
        self.states = StateWatch([extra[1:] for _, extra in self.updates])
        self.instance = machine.instance()
        storages = {}
        for (name, a), b in zip(entry.snapshot.tensors(), other, strict=True):
            there = storages.setdefault(a.untyped_storage().data_ptr(), b.untyped_storage())
            same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
            if (there.data_ptr() != b.untyped_storage().data_ptr() or a.storage_offset() != b.storage_offset()
                    or a.untyped_storage().nbytes() != b.untyped_storage().nbytes() or same and a is not b):
                raise CaptureError(f"over_seeds: {name} lies in memory that it shares with others, in another way than in the first model; "
                                   f"clone() it")
        for (_, (_, _, a, _)), (i, (_, _, b, _)) in zip(machine.updates, self.updates, strict=True):
            if b is not None:
                self.instance.bind_update(i, b)
                storages |= {v.untyped_storage().data_ptr(): b[name].untyped_storage() for name, v in a.items() if hasattr(v, "data_ptr")}
        if entry.takes_leaves:
            raise CaptureError("over_seeds: a step must not differentiate by its arguments, which all models share")
        if entry.kept:
            raise CaptureError("over_seeds: a step must not add to gradients of the step before: call zero_grad() in it")
        for i, buffer in enumerate(machine.buffers):
            if buffer.kind == EXTERNAL:
                there = storages.get(buffer.owner.data_ptr())
                if there is None and i in machine.written:
                    raise CaptureError("over_seeds: the step changes memory that is not reached through its model: "
                                       f"{buffer.name or 'a tensor without a name'}")
                if there is not None:
                    self.instance.bind_external(i, there)
        self.leaves = tuple((pairs.get(id(leaf), leaf), view, i) for leaf, view, i in entry.leaves)
        self.expected = tuple((pairs.get(id(leaf), leaf), state) for leaf, state in entry.expected if state in (None, 0, 1))

    def _corresponding(self):
        """The objects of this model that correspond to those of the first."""
        found = self.entry.snapshot.rebind(self.step, self.args)
        if isinstance(found, str):
            raise CaptureError(f"over_seeds: the models can't share a program: {found}")
        return found

    @staticmethod
    def _update(extra, pairs, entry, found):
        """The other model's (options, states, state, parameter) for one update."""
        group, states, state, parameter = extra
        other = pairs.get(id(parameter), parameter)
        for (_, mine), theirs in zip(entry.snapshot.optimizers(), found.optimizers(), strict=True):
            if mine.state is states:
                number = next(n for n, g in enumerate(mine.param_groups) if g is group)
                return theirs.param_groups[number], theirs.state, None if state is None else theirs.state[other], other
        raise CaptureError("over_seeds: a parameter is updated by an optimizer that the step does not reach by itself")

    def stale(self):
        """Whether memory of the model or of its optimizer was replaced, or gradients are there that were not."""
        return self.states.changed() is not None or _places(self._corresponding()) != self.places or moved(self.expected) is not None

    def repeat(self, times, tensors, before):
        """`times` runs; the results of `before` come first."""
        parts = run_many(self.entry, self.instance, self.updates, self.leaves, (), times, tensors)
        return unflatten(self.entry.tree, parts) if not before else joined(self.entry.tree, before, parts)


def _places(found):
    """Where the tensors and options of a model are."""
    options = tuple((id(o.state), *map(id, o.param_groups)) for o in found.optimizers())
    return tuple((t.untyped_storage().data_ptr(), t.storage_offset()) for t in found.tensors()), options


def _runs_side_by_side(entry):
    """Whether nothing of the program is Python's, and every result is memory of its own."""
    own = all(entry.machine.index[view.buffer] in entry.own_results for view in entry.outputs)
    return own and all(alias is None for alias in entry.aliases) and not any(i.kernel == "call" for i in entry.program.instructions)


def _together(results):
    """Results of all models, stacked."""
    flat = [flatten(result) for result in results]
    with no_grad():
        return unflatten(flat[0][1], [stack([tensors[k] for tensors, _ in flat]) for k in range(len(flat[0][0]))])


