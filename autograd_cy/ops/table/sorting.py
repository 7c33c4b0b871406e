"""Running sums and products, sorting and selecting along a dimension.

Relies on rows.py and functions.py only.

Where a row has an input `indices`, its values are the elements of x at those places, which the forward found: the gradient goes there.
"""

from ..functions import (
    concatenate, cumulate, eq, exp, full_like, isinf, isnan, logical_and, logical_or, put, recurrence, slice, spread, total, unslice, where,
)
from ..rows import op

INF = float("inf")


def _before(v, dim, first=0):
    """At every place along dim the value before it; `first` at the first."""
    shape = v.shape
    if not shape:
        return v * 0 + first
    whole = ((None, None, None),) * dim
    rest = ((None, None, None),) * (len(shape) - dim - 1)
    n = shape[dim]
    if n == 0:
        return v
    ahead = slice(v, (*whole, (0, n - 1, 1), *rest), None)
    if first == 0:
        return unslice(ahead, shape, (*whole, (1, n - 1, 1), *rest))
    return concatenate((full_like(slice(v, (*whole, (0, 1, 1), *rest), None), first), ahead), dim)


def _placed(g, indices, x_shape, dim, keepdim=True):
    """g at the indices along dim, zero elsewhere."""
    if not keepdim:
        g, indices = spread(g, None, (dim,), False), spread(indices, None, (dim,), False)
    return put(g, indices, x_shape, dim)


def _between(g, indices, weights, x_shape, dim, keep):
    """g at the two places that each value lies between."""
    g = g if keep else spread(g, None, (dim,), False)
    return put(concatenate((g, g), dim) * weights, indices, x_shape, dim)


def _shared(g, x, y):
    """g spread evenly over the elements that equal y; over the NaNs where that is NaN."""
    hit = logical_or(eq(x, y), logical_and(isnan(x), isnan(y)))
    return where(hit, g / total(hit, tuple(range(len(x.shape))), False), 0)


def _ratio_of_powers(a, b):
    """e ** (a - b) for a <= b: 0 where both are -inf, 1 where both are inf."""
    safe = where(eq(b, -INF), 0, b)
    return exp(where(logical_and(eq(a, safe), isinf(a)), 0, a - safe))


op("cumsum", "x", attrs="dim reverse", dx=lambda g, dim, reverse: cumulate(g, dim, not reverse), doc="x_0 + ... + x_i along dim")
op("cumprod", "x", attrs="dim", dx=lambda g, x, y, dim: _before(y, dim, 1) * recurrence(g, x, dim, True),
   doc="x_0 * ... * x_i along dim", special="zeros: exact, also in second order")
op("recurrence", "v x", attrs="dim reverse", public=False, doc="h_i = v_i + x_i h_i-1 along dim; reverse: h_i = v_i + x_i+1 h_i+1",
   dv=lambda g, x, dim, reverse: recurrence(g, x, dim, not reverse),
   dx=lambda g, x, y, dim, reverse: (_before(recurrence(g, x, dim, False), dim) * y if reverse
                                     else recurrence(g, x, dim, True) * _before(y, dim)))
op("logcumsumexp", "x", attrs="dim", doc="log(e ** x_0 + ... + e ** x_i) along dim, without overflow", special="every input so far -inf: 0",
   dx=lambda g, x, y, dim: _ratio_of_powers(x, y) * recurrence(g, _ratio_of_powers(_before(y, dim), y), dim, True))
op("cummax", "x indices", attrs="dim", dx=lambda g, indices, x_shape, dim: _placed(g, indices, x_shape, dim),
   doc="the largest element so far along dim and its index; NaN wins",
   special="the gradient goes to the index returned, of equals the latest")
op("cummin", "x indices", attrs="dim", dx=lambda g, indices, x_shape, dim: _placed(g, indices, x_shape, dim),
   doc="the smallest element so far along dim and its index; NaN wins",
   special="the gradient goes to the index returned, of equals the latest")

op("sort", "x indices", attrs="dim descending", doc="the elements along dim in order, and their indices; NaN counts as largest",
   dx=lambda g, indices, x_shape, dim: _placed(g, indices, x_shape, dim))
op("topk", "x indices", attrs="k dim largest sorted", doc="the k largest (smallest) elements along dim and their indices",
   dx=lambda g, indices, x_shape, dim: _placed(g, indices, x_shape, dim))
op("kthvalue", "x indices", attrs="k dim keepdim", doc="the k-th smallest element along dim and its index",
   special="the gradient goes to the index returned",
   dx=lambda g, indices, x_shape, dim, keepdim: _placed(g, indices, x_shape, dim, keepdim))
op("median", "x indices", attrs="dim keepdim", doc="the lower median along dim and its index; NaN wins",
   special="the gradient goes to the index returned; without dim, ties share it evenly", dx=_placed)
op("nanmedian", "x indices", attrs="dim keepdim", doc="the lower median along dim of what is not NaN, and its index",
   special="the gradient goes to the index returned; without dim, ties share it evenly", dx=_placed)
op("mode", "x indices", attrs="dim keepdim", doc="the most frequent value along dim (of several the smallest) and its index",
   special="the gradient goes to the index returned", dx=_placed)
op("quantile", "x", attrs="dim q mode skip keep", aux="indices weights", public=False, dx=_between,
   doc="the values at ranks q along dim, between two elements")
op("median_of_all", "x", attrs="skip", public=False, dx=_shared, doc="the lower median of all elements; skip: of what is not NaN",
   special="ties share the gradient evenly")
