"""A live graph as a Program: the operations that led to a tensor, run again from their leaves.

Relies on the engine's nodes (live.nodes_of) and on capture. `graph.of` is this.
"""

from typing import Any

from autograd_cy.engine import (
    blocks, composed, counts, dispatch, distances, gather, joins, linear_algebra, named_products, products, reduce, scans, shape,
    sorting, windows,
)
from autograd_cy.engine.gradients import FUNCTIONS, saved_value
from autograd_cy.engine.losses import cross_entropy, nll_loss
from autograd_cy.engine.node import Node
from autograd_cy.engine.tensor import Tensor
from autograd_cy.ops import TABLE

from .capture import capture
from .live import nodes_of
from .program import Program

_REDUCTIONS = {None: 0, "mean": 1, "sum": 2}


def _reduced(name):
    return lambda x, dim, keepdim: getattr(scans if name == "nanmean" else reduce, name)(x, dim, keepdim)


def _along(name):
    """Of (x, indices) and the attributes that the function takes itself: the values."""
    return lambda x, indices, *attributes: getattr(sorting, name)(x, *attributes).values


# How the rows that are not elementwise are run again: their inputs, then their attributes.
FORWARD = {name: _reduced(name) for name in ("sum", "nansum", "mean", "nanmean", "prod", "amax", "amin", "logsumexp")} | {
    "max": lambda x, indices, dim, keepdim: reduce.max(x, dim[0] if dim else -1, keepdim).values,
    "min": lambda x, indices, dim, keepdim: reduce.min(x, dim[0] if dim else -1, keepdim).values,
    "var": lambda x, dim, keepdim, correction: reduce.var(x, dim, keepdim=keepdim, correction=correction),
    "std": lambda x, dim, keepdim, correction: reduce.std(x, dim, keepdim=keepdim, correction=correction),
    "norm": lambda x, p, dim, keepdim: reduce.norm(x, p, dim, keepdim),
    "softmax": reduce.softmax, "log_softmax": reduce.log_softmax, "linear": products.linear,
    "cross_entropy": lambda x, target, weight, ignore, smoothing, reduce: cross_entropy(x, target, weight, ignore, reduce, smoothing),
    "nll_loss": lambda x, target, weight, ignore, smoothing, reduce: nll_loss(x, target, weight, ignore, reduce),
    "clone": shape.clone, "copy": lambda x, v: shape.clone(FUNCTIONS["expand"](v, x.shape)),
    "concatenate": lambda *xs: joins.cat(xs[:-2], xs[-1]), "stack": lambda *xs: joins.stack(xs[:-1], xs[-1]),
}
FORWARD |= {name: getattr(linear_algebra, name) for name in ("band", "cofactor", "det", "inv", "matrix_exp", "qr", "svd")} | {
    "trace": named_products.trace, "kron": named_products.kron,
    "cross": named_products.cross_rows, "cdist": lambda a, b, p: distances.cdist_row(a, b, p, True),
    "pdist": distances.pdist_row, "cov": lambda x, freedom, unit: distances.cov_row(x, x.shape[1] - freedom, unit),
    "neighbours": counts.neighbours, "vander": named_products.powers,
    "area": lambda x, *attributes: counts.area_row(x, None, *attributes),
    "area_at": lambda x, points, dim, cumulative: counts.area_row(x, points, dim, None, cumulative),
    "normalize": distances.unit_row, "multilabel_margin": composed.margins,
    "solve": lambda a, b, adjoint: linear_algebra.solve(shape.swap_axes(a) if adjoint else a, b),
    "solve_triangular": linear_algebra.triangular_row, "logabsdet": lambda x: linear_algebra.slogdet(x).logabsdet,
    "cholesky": lambda x, upper: linear_algebra.cholesky(x, upper=upper), "lu_factor": lambda x: linear_algebra.lu_factor(x).LU,
    "eigh": lambda x, upper: linear_algebra.eigh(x, "U" if upper else "L"),
    "pinv": lambda x, atol, rtol, hermitian: FUNCTIONS["pinv"](x, None, hermitian, atol=atol, rtol=rtol),
    "lstsq": lambda a, b, rcond, driver: linear_algebra.least_squares(a, b, rcond, driver)[0],
}
FORWARD |= {name: FUNCTIONS[name] for name in ("matmul", "sum_to", "reshape", "permute", "expand", "slice", "unslice", "as_strided",
                                               "pieces", "convert", "index", "index_back", "gather", "put", "triangle", "flip", "pad",
                                               "diagonal_back")}
FORWARD |= {
    "select": shape.select, "narrow": shape.narrow, "unbind": lambda x, count, dim: joins.unbind(x, dim), "diagonal": windows.diagonal,
    "unfold": windows.unfold, "as_strided_back": windows.as_strided_back, "repeat": blocks.repeat, "border": blocks.bordered,
    "grid": lambda x, sizes, dim: FUNCTIONS["expand"](x.reshape([n if i == dim else 1 for i, n in enumerate(sizes)]), sizes),
    "roll": lambda x, shifts: blocks.roll(x, shifts, range(len(shifts)) if len(shifts) == x.ndim else None),
    "block_diag": lambda *xs: joins.block_diag(*xs[:-1]),
    "repeat_interleave": lambda x, repeats, dim: blocks.repeat_interleave(x, repeats, None if dim < 0 else dim),
    "scatter": lambda x, index, v, dim: gather.scatter(x, dim, index, v), "embedding": gather.embedding_row,
    "scatter_add": lambda x, index, v, dim: gather.scatter_add(x, dim, index, v),
    "scatter_reduce": lambda x, index, v, reduce, dim, include_self: gather.reduced_row(x, index, v, reduce, dim, include_self),
}
FORWARD |= {name: FUNCTIONS[name] for name in (
    "convolution", "convolution_input", "convolution_weight", "unfold_windows", "fold_windows", "average_windows", "average_windows_back",
    "resample", "resample_back", "normalize_rows", "normalize_channels", "scale_channels", "max_pool", "sampled", "sampled_input",
    "sampled_weight")}
# The operations whose last input may be None.
MAY_LACK_BIAS = ("linear", "convolution", "convolution_input", "normalize_rows", "normalize_channels", "scale_channels")


FORWARD |= {name: _along(name) for name in ("sort", "topk", "kthvalue", "median", "nanmedian", "mode")} | {
    "cumsum": scans.cumulate, "cumprod": scans.cumprod, "logcumsumexp": scans.logcumsumexp, "recurrence": scans.recurrence,
    "cummax": lambda x, indices, dim: scans.cummax(x, dim).values, "cummin": lambda x, indices, dim: scans.cummin(x, dim).values,
    "quantile": sorting.quantile_row, "median_of_all": lambda x, skip: sorting.nanmedian(x) if skip else sorting.median(x),
}


def of(tensor: Tensor, *, gradients: bool = False, names: Any = None) -> Program:
    """The Program that computes `tensor` from the leaves of its graph, which become its inputs, in the order of their first use.

    gradients: outputs are (the value, [gradients of all leaves, in the same order]) instead of the value alone. names: a dict from
    names to leaves (or a Module, for its parameters) that print shows.

    Raises ValueError where a value that the forward needs was not kept (an input that no gradient rule needs: let it require
    gradients, or use `capture`), and for graphs whose backward pass has given its values back.

    >>> program = ag.graph.of(loss)
    >>> program.run(w1, w2, engine="recursive")
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"of: expected a Tensor, got {type(tensor).__name__}")
    if tensor.grad_fn is None:
        raise ValueError("of: the tensor has no graph: no operation on tensors that require gradients made it")
    nodes, leaves = nodes_of([tensor])
    leaves = list(leaves.values()) if isinstance(leaves, dict) else list(leaves)
    last, output = tensor.grad_fn, tensor.output_nr

    def again(*values):
        given, made = {id(leaf): value for leaf, value in zip(leaves, values, strict=True)}, {}
        for node in nodes:
            result = _run(node, given, made)
            made[id(node)] = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        return made[id(last)][output]

    again.__qualname__ = "graph"
    program = capture(again, *leaves, gradients=leaves if gradients else None)
    if names is None:
        return program
    named = dict(names.named_parameters()) if hasattr(names, "named_parameters") else dict(names)
    called = {id(t): name for name, t in named.items()}
    labels = {view.buffer: called.get(id(leaf), "") for view, leaf in zip(program.inputs, leaves, strict=True)}
    return program._replace(buffers=tuple(b._replace(name=labels.get(b.id) or b.name) for b in program.buffers))


def _run(node, given, made):
    """One operation again."""
    inputs = []
    for i, ((target, number), known) in enumerate(zip(node.next_functions, node.inputs, strict=True)):
        if type(target) is Node:
            inputs.append(made[id(target)][number])
        elif target is not None:
            inputs.append(given[id(target)])
        elif isinstance(known, (int, float)):
            inputs.append(known)
        elif known is None and node.operation in MAY_LACK_BIAS:
            inputs.append(None)                       # no bias
        else:
            inputs.append(_kept(node, i))
    attributes = node.attributes
    reduction = attributes.pop("reduction", None)
    row = TABLE[node.operation]
    if row.kind == "elementwise":
        return dispatch.run_row(node.operation, inputs, tuple(attributes.values()), _REDUCTIONS[reduction])
    if node.operation not in FORWARD:
        raise ValueError(f"of: {node.operation} at {node.line} can't be run again from a live graph; use capture")
    return FORWARD[node.operation](*inputs, *attributes.values())


def _kept(node, i):
    """The value of an input that needs no gradient, if the node saved it."""
    try:
        return saved_value(node, i)
    except RuntimeError:
        raise ValueError(f"of: input {i} of {node.operation}, at {node.line}, was not kept, because no gradient needs it, or a backward "
                         f"pass gave it back; let it require gradients, use retain_graph=True, or use capture") from None
