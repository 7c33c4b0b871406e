"""Snapshot: everything that a step could read, what changed since, and the same places in another step function.

Relies on walk.Walk, which finds what there is, on watch.Watch, which compares it, and on words.
`compile` relies on it: it captures again when `check` says that something changed, and refuses a step that changes such values.
"""

from autograd_cy.engine.generators import Generator
from autograd_cy.engine.tensor import Tensor

from . import words
from .walk import Walk, objects_among, state_of


def snapshot(fn, args=(), kwargs=None):
    """Watch what `fn` can read, and the objects among its arguments (whose tensors and numbers are the caller's to compare)."""
    return Snapshot(fn, args, kwargs or {})


class Snapshot(Walk):
    """What a function could read when it was captured.  `check()` is made for every call; everything else for rare ones."""

    def explain(self):
        """One clause for the first thing that changed, or None."""
        for difference in sorted(self.differences(limit=2), key=_importance)[:1]:
            return words.clause(self, *difference)
        self.deaths.any = False          # something died that nothing leads to any more
        return None

    def changes(self):
        """A clause for each thing that changed; right after the captured run, these are what the step itself changed."""
        found = sorted(self.differences(), key=_importance)
        if any(what != "gone" for _, _, what, _, _ in found):
            found = [d for d in found if d[2] != "gone"]
        clauses = [words.clause(self, *difference) for difference in found]
        for slot, state in self.states:
            source = self.object(slot)
            if source is not None and state_of(source) != state:
                clauses.append(f"random numbers were drawn from {self.name(slot)} ({words.type_name(source)})")
        return list(dict.fromkeys(clauses))

    def began(self):
        """Whether all that changed is that optimisers, in the first step of their parameters, made states for these."""
        states = {id(optimizer.state) for _, optimizer in self.optimizers()}
        found = {id(self.object(self.container(record))) if what == "size" else None for record, _, what, _, _ in self.differences()}
        return found <= states and all(state_of(self.object(slot)) == state for slot, state in self.states)

    def refusals(self):
        """A clause for each thing that the function reaches and whose change can't be watched: iterators, generators, files."""
        return [f"{words.place_of(self, slot)} is {words.article(self.object(slot))}, which a replay can't advance"
                for slot in self.iterators if self.object(slot) is not None]

    def arrays(self):
        """[(path, array)] of the NumPy arrays, data frames and the like whose contents are not watched."""
        return [(self.name(slot), self.object(slot)) for slot in self.large if self.object(slot) is not None]

    def tensors(self):
        """[(path, tensor)] of all tensors reached, in the order in which they were."""
        return self._paths(Tensor)

    def optimizers(self):
        """[(path, optimizer)]."""
        return self._paths(self.optimizer_class)

    def generators(self):
        """[(path, generator)] of this package's generators of random numbers."""
        return self._paths(Generator)

    def rebind(self, fn, args=(), kwargs=None):
        """The same places from another function: a Rebound, or a clause that says where the two differ.

        The functions must share their code: products of one factory, or methods of two objects of one class.
        """
        others = [fn, *(value for _, value in objects_among(fn, args, kwargs or {}))]
        if len(others) != len(self.roots):
            return f"the other call has {len(others) - 1} objects among its arguments instead of {len(self.roots) - 1}"
        for slot, other in zip(self.roots, others, strict=True):
            mine = self.object(slot)
            if type(other) is not type(mine):
                return f"{self.name(slot)} is {words.article(other)} instead of {words.article(mine)}"
        found = self.follow(dict(zip(self.roots, others, strict=True)), self.shared)
        if type(found) is tuple:
            return words.difference(self, *found)
        for slot in self.opaque:
            mine = self.object(slot)
            if found[slot] is not mine and found[slot] is not None and not isinstance(mine, Generator):
                return f"{self.name(slot)} is another {words.type_name(mine)}, which can't be looked into"
        return Rebound(self, found)

    def extend(self, code, module_globals, functions=()):
        """Watch what more code reads, met while the function ran: its globals, and the closures of `functions`."""
        if not self.covers(code):
            self.reach(code, module_globals, functions)

    def _paths(self, cls):
        return [(self.name(slot), o) for slot in range(len(self.objects))
                if (o := self.object(slot)) is not None and slot not in self.shared and issubclass(type(o), cls)]


class Rebound:
    """What the places of a Snapshot are in another function: tensors, optimizers and generators in the Snapshot's order."""

    def __init__(self, snapshot, objects):
        self._snapshot, self.objects = snapshot, objects

    def _corresponding(self, cls):
        return [o for slot, o in enumerate(self.objects)
                if o is not None and slot not in self._snapshot.shared and issubclass(type(o), cls)]

    def tensors(self):
        """The tensors that correspond to the Snapshot's."""
        return self._corresponding(Tensor)

    def optimizers(self):
        """The optimizers that correspond to the Snapshot's."""
        return self._corresponding(self._snapshot.optimizer_class)

    def generators(self):
        """The generators that correspond to the Snapshot's."""
        return self._corresponding(Generator)


def _importance(difference):
    """What tells most comes first."""
    what = difference[2]
    return {"value": 0, "size": 1, "name": 1, "gone": 3}.get(what, 0)
