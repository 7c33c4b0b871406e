"""vmap: a function of one sample, called for every sample of a batch.

Relies on the engine only: slices are views (unbind), results are stacked, so that whatever differentiates the parts - or a part
inside, a gradient or another vmap - differentiates the whole. Users of ag.func rely on it.
"""

from collections.abc import Callable
from typing import Any

from autograd_cy.engine import creation, generators
from autograd_cy.engine.joins import stack
from autograd_cy.engine.tensor import Tensor
from autograd_cy.graph.trees import flatten, other_values, unflatten

RANDOMNESS = ("error", "different", "same")


class _Mismatch(Exception):
    """Dims do not have the structure of what they belong to."""


def _leaves(tree, dims):
    """(leaf, dim) in the order of flatten; one dim may stand for a whole nested structure."""
    if isinstance(tree, (tuple, list, dict)):
        if dims is None or isinstance(dims, int):
            keys = tree if isinstance(tree, dict) else range(len(tree))
            dims = dict.fromkeys(keys, dims)
        elif type(dims) is not type(tree) or len(dims) != len(tree) or isinstance(tree, dict) and dims.keys() != tree.keys():
            raise _Mismatch
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from _leaves(tree[key], dims[key])
    elif isinstance(dims, (tuple, list, dict)):
        raise _Mismatch
    else:
        yield tree, dims


def _structure(tree):
    """A structure in words, each leaf as *."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_structure(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (tuple, list)):
        inner = ", ".join(map(_structure, tree))
        return f"[{inner}]" if isinstance(tree, list) else f"({inner},)" if len(tree) == 1 else f"({inner})"
    return "*"


def _sliced(args, in_dims, name):
    """(size of the batch, (tensor, dim or None) of every tensor in args)."""
    who = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(f"{who}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
                         f"{type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")
    try:
        found = list(_leaves(args, in_dims))
    except _Mismatch:
        raise ValueError(f"{who}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {_structure(in_dims)} "
                         f"but inputs has structure {_structure(args)}.") from None
    for leaf, dim in found:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise ValueError(f"{who}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        if dim is not None and not isinstance(leaf, Tensor):
            raise ValueError(f"{who}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                             "arguments, please use None as the respective in_dim")
        if dim is not None and not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(f"{who}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so "
                             f"expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}.")
    sizes = [leaf.shape[dim] for leaf, dim in found if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
                         "dimension")
    return sizes[0], [(leaf, dim) for leaf, dim in found if isinstance(leaf, Tensor)]


def _check_out_dims(out_dims, name):
    def right(dims):
        if isinstance(dims, (tuple, list)):
            return all(map(right, dims))
        if isinstance(dims, dict):
            return all(map(right, dims.values()))
        return dims is None or isinstance(dims, int) and not isinstance(dims, bool)

    if not right(out_dims):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                         "representing where in the outputs the vmapped dimension should appear.")


def _places(output, out_dims, name):
    """The dim that each leaf of an output gets."""
    if isinstance(output, Tensor) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        out_dims = out_dims[0]
    try:
        found = list(_leaves(output, out_dims))
    except _Mismatch:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
                         f"out_dims has structure {_structure(out_dims)} but outputs has structure {_structure(output)}.") from None
    for leaf, dim in found:
        if dim is not None and not isinstance(leaf, Tensor):
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set "
                             "out_dims= to None for output?")
    return [dim for leaf, dim in found if isinstance(leaf, Tensor)]


def _shared(values, name):
    """The one value of an output that has no batch."""
    first = values[0]
    for value in values:
        if value is not first and not (value.shape == first.shape and bool(((value == first) | (value != value) & (first != first)).all())):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    return first


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments: out[i] = func(args[i]).

    in_dims: the dimension that is mapped, for all arguments an int, or a tuple with an int or None (not mapped: every call gets all of
    it) for each argument, nested as the arguments are. Keyword arguments are not mapped. out_dims: where the mapped dimension goes,
    an int, or nested as the outputs are; None for what is equal in all calls. randomness: random numbers inside are an error,
    "different" in every call or the "same" in all.

    The samples are computed one after the other, in a Python loop: the meaning of torch.func.vmap, not its speed, at the price of
    calling func once per sample. A batched formula is faster where there is one; `ag.compile` around a whole step takes the loop
    away. In return, what torch.func.vmap refuses works here: item(), branches that depend on values, writing in place to what has no
    batch (each call sees what the calls before it wrote). An empty batch calls func once, on zeros, for the shapes of its outputs.
    chunk_size has no effect.

    Raises ValueError for dims that do not fit and for outputs that are no tensors, RuntimeError for random numbers where
    randomness="error".

        vmap(ag.dot)(x, y)                                             # row by row
        vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)           # a gradient for each sample
    """
    name = getattr(func, "__name__", repr(func))
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    _check_out_dims(out_dims, name)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, found = _sliced(args, in_dims, name)
        _, shape = flatten(args)
        # each tensor, cut once: the gradient of unbind is one stack
        cuts = [None if dim is None else t.unbind(dim) if size else
                (creation.zeros(t.shape[:dim % t.ndim] + t.shape[dim % t.ndim + 1:], dtype=t.dtype),) for t, dim in found]
        state = generators.default_generator.get_state() if randomness == "same" else None
        before = generators.refuse_draws(randomness == "error")
        results = []
        try:
            for i in range(size or 1):
                if i and state is not None:
                    generators.default_generator.set_state(state)
                sample = [t if cut is None else cut[i] for (t, _), cut in zip(found, cuts, strict=True)]
                results.append(func(*unflatten(shape, sample), **kwargs))
        finally:
            generators.refuse_draws(before, False)
        return _joined(results, size, out_dims, name)

    if hasattr(func, "__name__"):
        wrapper.__name__ = wrapper.__qualname__ = name
    return wrapper


def _joined(results, size, out_dims, name):
    places = _places(results[0], out_dims, name)
    parts, shape = flatten(results[0])
    columns = [parts]
    for result in results[1:]:
        tensors, other = flatten(result)
        if other != shape:
            _places(result, out_dims, name)
            raise ValueError(f"vmap({name}, ...): `{name}` returned {_structure(result)} in one call and {_structure(results[0])} in "
                             f"another, or different values beside its tensors: {list(other_values(other))} "
                             f"and {list(other_values(shape))}")
        columns.append(tensors)
    joined = []
    for k, dim in enumerate(places):
        values = [column[k] for column in columns]
        if dim is None:
            joined.append(_shared(values, name))
        elif size:
            joined.append(stack(values, dim))
        else:
            joined.append(_empty(values[0], dim))
    return unflatten(shape, joined)


def _empty(t, dim):
    if not -t.ndim - 1 <= dim <= t.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-t.ndim - 1}, {t.ndim}], but got {dim})")
    place = dim % (t.ndim + 1)
    return creation.zeros((*t.shape[:place], 0, *t.shape[place:]), dtype=t.dtype)
