"""checkpoint: a part of a computation whose intermediate values are not kept, but computed again in the backward pass.

Relies on graph's links: one node stands for the part, as for a compiled function. utils.checkpoint leads here.

The function runs with recording on, which tells what it depends on beside its arguments (parameters, values of the enclosing
computation); then its graph is dropped, and one node is attached to its results that leads to all of these. In the backward pass
the function runs again from the same arguments and random state, and its gradients are handed on. A pass with create_graph does
so with operations that are recorded.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from autograd_cy.engine.backward import grad as pull
from autograd_cy.engine.modes import enable_grad, is_grad_enabled
from autograd_cy.engine.generators import default_generator
from autograd_cy.graph.links import attach, crossings, dependencies, last_node, redirect, shares_memory
from autograd_cy.graph.trees import flatten, unflatten


class CheckpointError(RuntimeError):
    """The function did something else when it ran again in the backward pass."""


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], tuple[Any, Any]] | None = None, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """function(*args, **kwargs), without keeping its intermediate values: they are computed again when its gradient is needed.

    Gradients reach the arguments (in nested structures, too) and everything else that the function uses, such as parameters; they
    can be differentiated again. preserve_rng_state: the second run draws the same numbers of the default generator (dropout), and
    the generator then continues as if there had been none. context_fn: returns two contexts, for the first and the second run.
    determinism_check: "default" compares shapes and dtypes of the results, "none" does not. use_reentrant, early_stop and debug are
    accepted for PyTorch's sake; there is one way, with the meaning of use_reentrant=False.

    Without recording (no_grad), it just calls the function.

    Raises CheckpointError in the backward pass where the second run gives results of other shapes or dtypes, RuntimeError where an
    argument was changed in place since, or is changed by the function.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], got {determinism_check}")
    first, second = context_fn() if context_fn is not None else (nullcontext(), nullcontext())
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    return _Part(function, args, kwargs, second, preserve_rng_state, determinism_check == "default").run(first)


class _Part:
    """One checkpoint: what it takes to run the function again. It is the `call` of its node."""

    def __init__(self, function, args, kwargs, context, preserve, strict):
        self.function, self.context, self.preserve, self.strict = function, context, preserve, strict
        self.tensors, self.shape = flatten((args, kwargs))
        self.differentiated = [k for k, t in enumerate(self.tensors) if t.requires_grad]
        self.versions = [t._version for t in self.tensors]
        self.state = default_generator.get_state() if preserve else None

    def _variables(self, recorded):
        """What stands for the arguments that are differentiated. recorded: with their history."""
        found = [self.tensors[k] for k in self.differentiated]
        return [t.view_as(t) if recorded else t.detach().requires_grad_() for t in found]

    def _call(self, context, variables):
        """(tensors among the results, their structure)"""
        tensors = list(self.tensors)
        for k, v in zip(self.differentiated, variables, strict=True):
            tensors[k] = v
        with enable_grad():
            args, kwargs = unflatten(self.shape, tensors)
            with context:
                results, shape = flatten(self.function(*args, **kwargs))
        return results, shape

    def run(self, context):
        since = last_node()
        variables = self._variables(recorded=False)
        results, shape = self._call(context, variables)
        self.which = [k for k, t in enumerate(results) if t.requires_grad]
        self.expected = [(results[k].shape, results[k].dtype) for k in self.which]
        needed = [results[k] for k in self.which]
        leaves, _ = dependencies(needed, since)
        self.others = [leaf for leaf in leaves if not any(leaf is v for v in variables)] + crossings(needed, since)
        # an output that is an input, or a view of one, gets memory of its own: its history is no view's
        made = [t if not t.requires_grad else t.detach().clone() if any(shares_memory(t, other) for other in self.tensors) else t.detach()
                for t in results]
        if self.which:
            attach([made[k] for k in self.which], [self.tensors[k] for k in self.differentiated] + self.others, self)
        return unflatten(shape, made)

    def _again(self, variables):
        """The results that need a gradient, from a second run."""
        for t, version in zip(self.tensors, self.versions, strict=True):
            if t._version != version:
                raise RuntimeError(f"checkpoint: an argument of shape {t.shape} was changed in place after the function ran, and would be "
                                   "needed again for its gradient")
        if self.preserve:
            state = default_generator.get_state()
            default_generator.set_state(self.state)
        try:
            results, _ = self._call(self.context, variables)
        finally:
            if self.preserve:
                default_generator.set_state(state)
        found = [t for t in results if t.requires_grad]
        got = [(t.shape, t.dtype) for t in found]
        if len(got) != len(self.expected) or self.strict and got != self.expected:
            raise CheckpointError("checkpoint: Recomputed values have different metadata than during the forward pass: "
                                  f"{_words(got)}, in the forward pass {_words(self.expected)}")
        return found

    def _gradients(self, gradients, create_graph):
        # The pass must end at what the function took from outside, which may depend on each other: the enclosing pass goes on from
        # there. So the graph of the second run is led to aliases of all these.
        with enable_grad():
            variables = self._variables(create_graph)
            aliases = [t.view_as(t) for t in self.others]
        since = last_node()
        results = redirect(self._again(variables), since, variables, self.others, aliases)
        if results is None:
            raise CheckpointError("checkpoint: the function depends on other tensors than during the forward pass")
        pairs = [(t, g) for t, g in zip(results, gradients, strict=True) if g is not None]
        sources = variables + aliases
        if not pairs or not sources:
            return [None] * len(sources)
        return list(pull([t for t, _ in pairs], sources, [g for _, g in pairs], create_graph=create_graph, allow_unused=True))

    def backward(self, gradients, needed):
        """Gradients of the sources, as values."""
        return self._gradients(gradients, create_graph=False)

    def differentiate(self, gradients):
        """Gradients of the sources that can be differentiated again."""
        return self._gradients(gradients, create_graph=True)


def _words(types):
    return ", ".join(f"{shape} {dtype.name}" for shape, dtype in types)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """A Sequential, or a list of functions of one argument, in `segments` parts, each but the last a checkpoint.

    preserve_rng_state: as of checkpoint. Raises TypeError for other keyword arguments.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise TypeError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    size = max(len(functions) // segments, 1)

    def part(chosen):
        def run(value):
            for function in chosen:
                value = function(value)
            return value
        return run

    start = 0
    for _ in range(segments - 1):
        if start + size >= len(functions):
            break
        input = checkpoint(part(functions[start:start + size]), input, preserve_rng_state=preserve)
        start += size
    return part(functions[start:])(input)
