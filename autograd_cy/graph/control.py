"""Control flow that depends on values - cond, while_loop, scan - and walls: Python that runs at its place in a replay.

Relies on recorder and links. Captured steps call these; in eager code they are plain Python.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.backward import inner_grad
from autograd_cy.engine.creation import empty_like
from autograd_cy.engine.joins import stack, unbind
from autograd_cy.engine.modes import enable_grad, is_grad_enabled, no_grad
from autograd_cy.engine.tensor import Tensor

from .links import attach, dependencies, last_node, shares_memory
from .recorder import is_capturing, note_call, paused
from .trees import flatten, unflatten


def wall(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that runs as Python at its place in every replay, for what can't be captured: printing, a branch on values.

    It takes tensors (as positional arguments) and returns a tensor, a tuple or dict of them, or None; shapes and dtypes of the
    results must be the same at every run. Gradients go through it, as far as the function's operations have them; which results have
    one, and which tensors from outside get one, must stay the same, too (RuntimeError). What else it reads or changes is its own matter.

    >>> show = ag.graph.wall(lambda loss: print(loss.item()))
    """
    @functools.wraps(function)
    def call(*tensors):
        if not is_capturing():
            return function(*tensors)
        return _Wall(function).capture(tensors)
    call.is_wall = True                   # what it reads and changes is its own matter: it runs at every replay
    return call


class _Wall:
    """One place in a captured program where Python runs. Several calls may be under way, each with results of its own."""

    def __init__(self, function):
        self.function, self.graphs, self.tree = function, {}, None
        self.leaves = None                  # tensors from outside that need gradients; None where gradients are switched off
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def capture(self, tensors):
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(f"a wall takes tensors, got {type(t).__name__}; put other values into the function")
        wants = [t.requires_grad and is_grad_enabled() for t in tensors]
        self.wants = wants
        with paused():
            before = [t.detach().clone() for t in tensors]
            results, self.tree = self._compute([t.detach() for t in tensors])
            self.differentiable = [k for k, r in enumerate(results) if r.requires_grad]
            if any(_bytes(a) != _bytes(b) for a, b in zip(before, tensors, strict=True)):
                raise CaptureError(f"the wall {self.__name__} changes an argument; let it change a clone() and return that")
        if any(shares_memory(r, t) for r in results for t in tensors):
            raise CaptureError(f"the wall {self.__name__} returns an argument or a view of one; return a clone()")
        outputs = [empty_like(r) for r in results]
        note_call(self.run, tensors, outputs)
        with paused():
            self._fill(outputs, results)
        if is_grad_enabled():
            self._attach(tensors, outputs, results)
        return unflatten(self.tree, outputs)

    def _compute(self, inputs):
        """(flat results with their graph, structure)."""
        self.inputs = [t.requires_grad_() if wanted else t for t, wanted in zip(inputs, self.wants, strict=True)]
        self.since = last_node()
        with enable_grad() if is_grad_enabled() or any(self.wants) else no_grad():
            return flatten(self.function(*self.inputs))

    def _fill(self, outputs, results):
        for output, result in zip(outputs, results, strict=True):
            if output.shape != result.shape or output.dtype is not result.dtype:
                raise RuntimeError(f"the wall {self.__name__} returned {result.dtype.name}{list(result.shape)}, but "
                                   f"{output.dtype.name}{list(output.shape)} when it was captured")
        with no_grad():
            for output, result in zip(outputs, results, strict=True):
                output.copy_(result)
        if self.differentiable:
            self.graphs[outputs[self.differentiable[0]].data_ptr()] = results, self.inputs
            while len(self.graphs) > 64:              # of runs whose gradient was never asked for
                del self.graphs[next(iter(self.graphs))]

    def run(self, inputs, outputs):
        """What a replay calls."""
        # Copies, because the memory serves other values soon: after the function, which may keep them, or before its gradient.
        results, _ = self._compute([t.detach().clone() for t in inputs])
        if self.leaves is not None:
            now = [k for k, r in enumerate(results) if r.requires_grad]
            if now != self.differentiable or list(map(id, self._leaves_of(results))) != list(map(id, self.leaves)):
                raise RuntimeError(f"the results of the wall {self.__name__} have gradients for other tensors than when it was captured; "
                                   f"gradients must go the same ways in every run: take such tensors as arguments, and use each")
        self._fill(outputs, results)

    def _leaves_of(self, results):
        """Tensors from outside that the results' gradients go to."""
        if not self.differentiable:
            return []
        known = {id(t) for t in self.inputs}
        found, older = dependencies([results[k] for k in self.differentiable], self.since, self.inputs)
        if older is not None:
            raise CaptureError(f"the wall {self.__name__} uses a graph that was made before it was called ({older.name()}): pass the "
                               f"tensor as an argument, or detach() it")
        return [leaf for leaf in found if id(leaf) not in known]

    def _attach(self, tensors, outputs, results):
        with paused():
            self.leaves = self._leaves_of(results)
        sources = [t for t, wanted in zip(tensors, self.wants, strict=True) if wanted] + self.leaves
        if sources and self.differentiable:
            attach([outputs[k] for k in self.differentiable], sources, _WallGradient(self, outputs, sources))


class _WallGradient:
    """The gradient of a wall, as its node asks for it."""

    def __init__(self, wall, outputs, sources):
        self.wall, self.key, self.sources = wall, outputs[wall.differentiable[0]].detach(), sources
        self.outputs = [outputs[k].detach() for k in wall.differentiable]

    def backward(self, gradients, needed):
        given = [g if g is not None else output * 0 for g, output in zip(gradients, self.outputs, strict=True)]
        made = [empty_like(s.detach()) for s in self.sources]
        inputs = [self.key, *given]
        if is_capturing():
            note_call(self.run, inputs, made)
            with paused():
                self.run(inputs, made)
        else:
            self.run(inputs, made)
        return made

    def run(self, inputs, outputs):
        """Go back through the graph that the wall's last run at this place made."""
        key, *given = inputs
        found = self.wall.graphs.get(key.data_ptr())
        if found is None:                             # a gradient captured later on: the numbers do not matter
            return
        results, arguments = found
        wanted = [t for t, w in zip(arguments, self.wall.wants, strict=True) if w] + self.wall.leaves
        found = inner_grad([results[k] for k in self.wall.differentiable], wanted, given)
        with no_grad():
            for output, value in zip(outputs, found, strict=True):
                if value is None:
                    output.zero_()
                else:
                    output.copy_(value)

    def differentiate(self, gradients):
        """Higher derivatives do not go through a wall of a captured step."""
        raise RuntimeError(f"the gradient of the wall {self.wall.__name__} can't be differentiated inside a captured step")


def _bytes(t):
    return t.detach().numpy().tobytes()


def cond(pred: Tensor | bool, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Tensor] = ()) -> Any:
    """true_fn(*operands) if pred (a bool tensor of one element, or a bool) else false_fn(*operands); gradients go through.

    In a captured step the choice is made anew at every replay; both functions must give results of the same shapes and dtypes.
    """
    if not isinstance(pred, Tensor):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not is_capturing():
        return true_fn(*operands) if bool(pred) else false_fn(*operands)

    def choose(pred, *operands):
        return _apart((true_fn if bool(pred) else false_fn)(*operands), operands)
    choose.__name__ = "cond"
    return wall(choose)(pred, *operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """carried = body_fn(*carried) while cond_fn(*carried) is true; a tuple of tensors of constant shapes. Gradients go through."""
    def loop(*values):
        start = values
        while bool(cond_fn(*values)):
            values = body_fn(*values)
            values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
            if len(values) != len(start):
                raise ValueError(f"while_loop: the body returned {len(values)} values for {len(start)}")
        return _apart(tuple(values), start) if is_wall else tuple(values)
    is_wall = is_capturing()
    loop.__name__ = "while_loop"
    return (wall(loop) if is_wall else loop)(*carried)


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Tensor | Sequence[Tensor]) -> tuple[Any, Any]:
    """carry, y = f(carry, x) for every x along the first dimension of xs (a tensor, or a tuple of them of equal length).

    Returns (the last carry, the ys stacked). The number of steps is part of the shapes, so a capture holds them all, one after another.
    """
    several = isinstance(xs, (tuple, list))
    parts = [unbind(x, 0) for x in (xs if several else (xs,))]
    if len({len(part) for part in parts}) != 1:
        raise ValueError(f"scan: the sequences have {', '.join(str(len(part)) for part in parts)} elements")
    carry, made = init, []
    for step in zip(*parts, strict=True):
        carry, y = f(carry, step if several else step[0])
        made.append(y)
    if not made:
        raise ValueError("scan: the sequence is empty, so that the shape of the results is not known")
    flat = [flatten(y) for y in made]
    return carry, unflatten(flat[0][1], [stack([tensors[k] for tensors, _ in flat]) for k in range(len(flat[0][0]))])


def _apart(result, operands):
    """The result, with what shares memory with the operands cloned."""
    tensors, tree = flatten(result)
    return unflatten(tree, [t.clone() if any(shares_memory(t, o) for o in operands) else t for t in tensors])

