"""Modules as functions of their parameters: functional_call and stack_module_state.

Relies on what a Module offers (named_modules, its members), not on nn itself. With grad and vmap it serves gradients by parameters
held outside the module, ensembles, and per-sample gradients.
"""

from collections.abc import Sequence
from typing import Any

from autograd_cy.engine.joins import stack
from autograd_cy.engine.tensor import Tensor


def _places(module):
    """name -> (holder, local name, tensor) of all parameters and buffers, shared ones under each of their names."""
    found = {}
    for prefix, holder in module.named_modules(remove_duplicate=False):
        for local, value in holder._members():
            if isinstance(value, Tensor):
                found[f"{prefix}.{local}" if prefix else local] = (holder, local, value)
    return found


def _with(container, path, value):
    """A copy of a list, tuple or dict with the element at a path of keys replaced."""
    if not path:
        return value
    if isinstance(container, dict):
        return {k: _with(v, path[1:], value) if str(k) == path[0] else v for k, v in container.items()}
    values = [_with(v, path[1:], value) if str(i) == path[0] else v for i, v in enumerate(container)]
    return values if isinstance(container, list) else tuple(values)


def _put(holder, local, value):
    """Put a tensor into its place in a module; returns what takes it out again."""
    # past Module.__setattr__, which would insist on a Parameter
    items = getattr(holder, "_items", {})
    if local in items:
        old = items[local]
        items[local] = value
        return lambda: items.__setitem__(local, old)
    name, *path = local.split(".")
    old = getattr(holder, name)
    object.__setattr__(holder, name, _with(old, path, value))
    return lambda: object.__setattr__(holder, name, old)


def _merged(dicts):
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError(f"Expected all elements of parameter_and_buffer_dicts to be dictionaries, got {[type(d) for d in dicts]}")
    names = [name for d in dicts for name in d]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def functional_call(module: Any, parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """module(*args, **kwargs), with the named parameters and buffers in place of the module's own for this call.

    parameter_and_buffer_dicts: name -> tensor, as of named_parameters(); a dict, or several without a common name. args: the
    arguments; a tuple, else it is the only one. tie_weights: a tensor that the module holds under several names is replaced under all
    of them. strict: the names must be exactly the module's. The module is as before afterwards, also after an error; while the call
    runs, other threads see the replacements.

    Raises TypeError for values that are no tensors, RuntimeError (strict) for missing and unexpected names, ValueError for a name in
    two dicts.

        params = dict(model.named_parameters())
        grad(lambda p: loss(functional_call(model, p, (x,)), y))(params)
    """
    given = _merged(parameter_and_buffer_dicts)
    places = _places(module)
    for value in given.values():
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of Tensor")
    if strict:
        _check_names(module, given, places, tie_weights)
    chosen = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        tied = {id(places[name][2]): value for name, value in chosen.items()}
        chosen = {name: tied[id(own)] for name, (_, _, own) in places.items() if id(own) in tied} | chosen
    undo = []
    try:
        for name, value in chosen.items():
            holder, local, _ = places[name]
            undo.append(_put(holder, local, value))
        return module(*(() if args is None else args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for put_back in reversed(undo):
            put_back()


def _check_names(module, given, places, tie_weights):
    covered = {id(places[name][2]) for name in given if name in places} if tie_weights else ()
    missing = [name for name, (_, _, own) in places.items() if name not in given and id(own) not in covered]
    unexpected = [name for name in given if name not in places]
    if missing or unexpected:
        lines = [f"Error(s) in reparametrizing for {type(module).__name__}:"]
        for what, names in (("Unexpected", unexpected), ("Missing", missing)):
            if names:
                lines.append(f"{what} key(s): " + ", ".join(map(repr, names)) + ".")
        raise RuntimeError("\n\t".join(lines))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of models of one class, each stacked along a new dimension 0, for vmap over functional_call.

    Stacked parameters are leaves that require gradients where the models' do, copies of their values.

    Raises RuntimeError where there is no model, where classes, training modes, or (in stack) shapes differ.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(dicts):
        result = {}
        for name in dicts[0]:
            own = [d[name] for d in dicts]
            together = stack([t.detach() for t in own], 0)
            result[name] = together.requires_grad_() if all(t.requires_grad for t in own) else together
        return result

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])
