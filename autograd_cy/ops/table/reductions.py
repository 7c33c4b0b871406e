"""Reductions and what is computed along rows. dim is a tuple of axes, keepdim whether they stay with size 1.

Relies on rows.py and functions.py only.
"""

from ..functions import (
    abs, concatenate, cumprod, eq, exp, expand, full_like, isnan, logical_or, permute, pow, put, reshape, sign, slice, spread, total, where,
)
from ..rows import op

INF = float("inf")


def _count(shape, dim):
    """Number of elements that a reduction over `dim` combines."""
    n = 1
    for axis in dim:
        n *= shape[axis]
    return n


def _ratio(a, b):
    """a / b as IEEE arithmetic has it."""
    return a / b if b else (a * INF if a else float("nan"))


def _share(g, x, y, x_shape, dim, keepdim):
    """The gradient spread evenly over the elements that equal the extreme; over the NaNs where that is NaN."""
    hit = logical_or(eq(x, spread(y, x_shape, dim, keepdim)), isnan(x))
    return where(hit, spread(g, x_shape, dim, keepdim) / spread(total(hit, dim, keepdim), x_shape, dim, keepdim), 0)


def _placed(g, indices, x_shape, dim, keepdim):
    """g at the index along dim (a tuple of one, or of none for a single number), zero elsewhere."""
    if not keepdim:
        g, indices = spread(g, None, dim, False), spread(indices, None, dim, False)
    return put(g, indices, x_shape, dim[0] if dim else 0)


def _product_of_others(x, dim):
    """For every element the product of all the others, without dividing (an element may be 0)."""
    n = 1
    shape = x.shape
    rest = [i for i in range(len(shape)) if i not in dim]
    order = (*rest, *dim)
    n = _count(shape, dim)
    flat = reshape(permute(x, order), (*(shape[i] for i in rest), n))
    others = _exclusive(flat, len(rest), n)
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return permute(reshape(others, tuple(shape[i] for i in order)), tuple(inverse))


def _exclusive(x, axis, n):
    """Products of all other elements along the last axis: of those before times those after. O(n), differentiable to any order."""
    if n <= 1:
        return full_like(x, 1)
    everything = ((None, None, None),) * axis
    head, tail = (*everything, (0, n - 1, 1)), (*everything, (n - 1, n - 1, -1))
    one = full_like(slice(x, (*everything, (0, 1, 1)), None), 1)
    before = concatenate((one, cumprod(slice(x, head, None), axis)), axis)
    after = concatenate((one, cumprod(slice(x, tail, None), axis)), axis)
    return before * slice(after, (*everything, (n - 1, n, -1)), None)


def norm_gradient(g, x, y, p, x_shape, dim, keepdim):
    """d/dx of (sum |x| ** p) ** (1 / p); 0 where the norm is 0."""
    if p == 0:
        return x * 0
    if p == 1:
        return spread(g, x_shape, dim, keepdim) * sign(x)
    if p in (INF, -INF):
        return _share(g, abs(x), y, x_shape, dim, keepdim) * sign(x)
    scaled = x / spread(where(y == 0, 1, y), x_shape, dim, keepdim)
    slope = spread(where(y == 0, 0, g), x_shape, dim, keepdim)
    if p == 2:
        return slope * scaled
    return slope * sign(x) * where(x == 0, 0, pow(abs(scaled), p - 1))


op("sum", "x", attrs="dim keepdim", dx=lambda g, x_shape, dim, keepdim: spread(g, x_shape, dim, keepdim), doc="sum over dim")
op("nansum", "x", attrs="dim keepdim", doc="sum over dim of what is not NaN", special="NaN: 0",
   dx=lambda g, x, x_shape, dim, keepdim: where(isnan(x), 0, spread(g, x_shape, dim, keepdim)))
op("nanmean", "x", attrs="dim keepdim", aux="counts", doc="mean over dim of what is not NaN", special="NaN: 0",
   dx=lambda g, x, x_shape, dim, keepdim, counts: where(isnan(x), 0, spread(g / counts, x_shape, dim, keepdim)))
op("mean", "x", attrs="dim keepdim", doc="sum over dim / number of elements",
   dx=lambda g, x_shape, dim, keepdim: spread(g / _count(x_shape, dim), x_shape, dim, keepdim))
op("prod", "x", attrs="dim keepdim", doc="product over dim", special="zeros: exact, also in second order",
   dx=lambda g, x, x_shape, dim, keepdim: spread(g, x_shape, dim, keepdim) * _product_of_others(x, dim))
op("amax", "x", attrs="dim keepdim", dx=_share, doc="largest element over dim; NaN wins", special="ties share the gradient evenly")
op("amin", "x", attrs="dim keepdim", dx=_share, doc="smallest element over dim; NaN wins", special="ties share the gradient evenly")
op("max", "x indices", attrs="dim keepdim", doc="largest element along dim and its index; NaN wins",
   special="the gradient goes to the index returned",
   dx=lambda g, indices, x_shape, dim, keepdim: _placed(g, indices, x_shape, dim, keepdim))
op("min", "x indices", attrs="dim keepdim", doc="smallest element along dim and its index; NaN wins",
   special="the gradient goes to the index returned",
   dx=lambda g, indices, x_shape, dim, keepdim: _placed(g, indices, x_shape, dim, keepdim))
op("argmax", "x", attrs="dim keepdim", doc="index of the first largest element along dim")
op("argmin", "x", attrs="dim keepdim", doc="index of the first smallest element along dim")
op("any", "x", attrs="dim keepdim", doc="whether any element along dim is true")
op("all", "x", attrs="dim keepdim", doc="whether all elements along dim are true")
op("var", "x", attrs="dim keepdim correction", doc="sum((x - mean) ** 2) / (n - correction)", special="n = correction: NaN",
   dx=lambda g, x, x_shape, dim, keepdim, correction:
   spread(g * _ratio(2, max(_count(x_shape, dim) - correction, 0)), x_shape, dim, keepdim) * _centred(x, x_shape, dim))
op("std", "x", attrs="dim keepdim correction", doc="square root of var", special="equal values: 0; one value: NaN",
   dx=lambda g, x, y, x_shape, dim, keepdim, correction:
   spread(where(y == 0, 0, g / y) * _ratio(1, max(_count(x_shape, dim) - correction, 0)), x_shape, dim, keepdim) * _centred(x, x_shape, dim))
op("logsumexp", "x", attrs="dim keepdim", doc="log(sum(e ** x)), without overflow", special="every input -inf: 0",
   dx=lambda g, x, y, x_shape, dim, keepdim:
   spread(g, x_shape, dim, keepdim) * exp(x - spread(where(y == -INF, 0, y), x_shape, dim, keepdim)))
op("norm", "x", attrs="p dim keepdim", dx=norm_gradient, doc="(sum |x| ** p) ** (1 / p)", special="norm 0: 0")
op("softmax", "x", attrs="dim", doc="e ** x / sum(e ** x) along dim", dx=lambda g, y, dim: y * (g - total(g * y, (dim,), True)))
op("log_softmax", "x", attrs="dim", doc="log(softmax(x)), without overflow",
   dx=lambda g, y, dim: g - exp(y) * total(g, (dim,), True))
op("sum_to", "x", attrs="shape", doc="x summed to a shape that broadcasts to its own (unbroadcast)",
   dx=lambda g, x_shape: expand(g, x_shape))


def _centred(x, x_shape, dim):
    """x minus its mean over dim."""
    return x - spread(total(x, dim, True) / _count(x_shape, dim), x_shape, dim, True)
