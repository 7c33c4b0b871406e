"""Statistics composed of other operations: quantiles, counts, distinct values, histograms, differences and areas.

Relies on counts.pyx, sorting.pyx (and has their names), reduce, scans, shape, the routines of kernels/counting. methods.py makes methods
of them, the package's front functions.
"""

from collections import namedtuple

from ..array.dtypes import bool as bool_dtype
from ..array.dtypes import int64
from ..array.errors import DTypeError, ShapeError
from . import elementwise, joins, reduce, scans, shape, sorting
from .counts import area_row, bincount, histc, isin, neighbours, range_of, unique, unique_consecutive
from .creation import full, zeros, zeros_code
from .index import nonzero
from .routines import call_routine
from .sorting import nanquantile, quantile
from .tensor import Tensor

Histogram = namedtuple("Histogram", ["hist", "bin_edges"])


def _tensor(x, name):
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    return x


def _floats(x, name):
    if not _tensor(x, name).is_floating_point():
        raise DTypeError(f"{name}: expected a floating-point tensor, got {x.dtype.name}")
    return x


def _axis(x, dim, name):
    """A dimension number of x, which has at least one."""
    n = x.ndim
    if not n:
        raise ShapeError(f"{name}: expected a tensor of at least one dimension, got shape ()")
    if not -n <= dim < n:
        raise IndexError(f"{name}: dim {dim} is out of range for a tensor of {n} dimensions")
    return dim + n if dim < 0 else dim


def _flat(x):
    """In one dimension, contiguous; no history."""
    x = x.detach()
    if x.ndim != 1:
        x = shape.reshape(x, -1)
    return x if x.is_contiguous() else shape.contiguous_tensor(x)


# ---- reductions


def count_nonzero(input, dim=None):
    """How many elements along `dim` (an int or a tuple; all by default) are not 0: int64."""
    x = input if isinstance(input, Tensor) else _tensor(input, "count_nonzero")
    return reduce.sum(x if x.dtype is bool_dtype else elementwise.ne(x, 0.0 if x.is_floating_point() else 0), dim)


# ---- distinct values


def _chosen(values, runs, counts):
    made = (values, *(part for part in (runs, counts) if part is not None))
    return made if len(made) > 1 else values


def unique_slices(x, dim, return_inverse, return_counts, ordered, name):
    """Slices along dim as rows; in the order of their first, then second ... element where they are to be ordered."""
    axis = _axis(x, dim, name)
    n = x.shape[axis]
    if n and not x.numel():
        raise ShapeError(f"{name}: shape {x.shape} has an empty dimension beside dim {axis}, so that no slice can be told from another")
    moved = shape.movedim(x, axis, 0)
    rows = shape.contiguous_tensor(shape.reshape(moved, (n, -1))) if n else x.reshape((0, 1))
    order = None
    if ordered and n > 1:
        for column in reversed(range(rows.shape[1])):
            part = rows[:, column] if order is None else rows[order, column]
            again = sorting.argsort(part, 0)
            order = again if order is None else order[again]
        rows = rows[order]
    first = reduce.any(elementwise.ne(rows[1:], rows[:-1]), 1) if n > 1 else None
    starts = joins.cat([zeros(min(n, 1), dtype=int64), *([] if first is None else [nonzero(first)[:, 0] + 1])])
    counts = diff(joins.cat([starts, full((1,), n, dtype=int64)])) if return_counts else None
    kept = starts if order is None else order[starts]
    runs = None
    if return_inverse:
        runs = joins.cat([zeros(min(n, 1), dtype=int64), *([] if first is None else [scans.cumsum(first, 0)])])
        if order is not None:
            back = shape.clone(runs)
            back[order] = runs
            runs = back
    values = shape.contiguous_tensor(shape.movedim(moved[kept], 0, axis)) if n else shape.clone(x)
    return _chosen(values, runs, counts)


# ---- histograms


def histogram(input, bins=100, *, range=None, weight=None, density=False):
    """(hist, bin_edges): how many elements (or the sum of their weights) lie in each bin; density: divided by width and total.

    bins: the edges, ascending, or a number of bins of equal width over `range`, or over the range of the data. The last bin has its right
    edge, too. RuntimeError unless all is floating point of one dtype.
    """
    x = _flat(_floats(input, "histogram"))
    if isinstance(bins, Tensor):
        edges, count, mode = shape.contiguous_tensor(bins.detach()), bins.numel() - 1, 2
        if edges.ndim != 1 or edges.dtype != x.dtype or count < 0:
            raise DTypeError(f"histogram: bins must be a 1-d tensor of dtype {x.dtype.name}, got shape {bins.shape} of {bins.dtype.name}")
        if range is not None:
            raise TypeError("histogram: range is for a number of bins, not for edges")
    else:
        count, mode = bins, 1
        if bins <= 0:
            raise ShapeError(f"histogram: bins must be > 0, got {bins}")
        edges = zeros_code((bins + 1,), x.dtype.code)
        call_routine("counting.edges", (edges,), (), range_of(x, *((0, 0) if range is None else range)))
    if weight is not None:
        if _tensor(weight, "histogram").shape != input.shape or weight.dtype != x.dtype:
            raise ShapeError(f"histogram: the weight must have the shape and dtype of the input, {input.shape}, got {weight.shape}")
        weight = _flat(weight)
    hist = zeros_code((count,), x.dtype.code)
    if count:
        call_routine("counting.histogram", (hist, x, edges, weight), (mode,))
    if density:
        hist = hist / (reduce.sum(hist) * (edges[1:] - edges[:-1]))
    return Histogram(hist, edges)


def argwhere(input):
    """The indices of all elements that are not 0: a row of ndim numbers for each. An error in a captured step."""
    x = _tensor(input, "argwhere")
    if x.ndim:
        return nonzero(x)
    return zeros((int(nonzero(x.reshape(1)).shape[0]), 0), dtype=int64)


# ---- differences and areas


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The n-th differences along `dim`: x_i+1 - x_i, n times over; of bools, whether they differ. prepend, append: joined to x before."""
    x = input
    if prepend is None is append:
        while n > 0 and (made := neighbours(x, dim)) is not None:
            x, n = made, n - 1
        if n == 0 and x is not input:
            return x
    axis = _axis(_tensor(input, "diff"), dim, "diff")
    if n < 0:
        raise ShapeError(f"diff: n must be non-negative, got {n}")
    if n and (prepend is not None or append is not None):
        x = joins.cat([part for part in (prepend, x, append) if part is not None], axis)
    for _ in range(min(n, x.shape[axis])):
        x = neighbours(x, axis) if x.numel() else shape.narrow(x, axis, 0, max(x.shape[axis] - 1, 0))
    return x


def _steps(y, x, axis, name):
    """The distances between neighbours along axis, of points x that fit y."""
    if x.ndim == 1 and x.shape[0] != y.shape[axis]:
        raise ShapeError(f"{name}: {y.shape[axis]} values of shape {y.shape} need as many points, got shape {x.shape}")
    if x.ndim == 1:
        x = shape.reshape(x, (-1,) + (1,) * (y.ndim - 1 - axis))
        return diff(x, dim=0)
    if x.ndim < y.ndim:
        x = shape.reshape(x, (1,) * (y.ndim - x.ndim) + x.shape)
    return diff(x, dim=axis)


def _area(y, x, dx, dim, name):
    """y, its axis and its size there, checked; and the distances between neighbours: a number, or a tensor that broadcasts."""
    axis = _axis(_tensor(y, name), dim, name)
    if x is not None and dx is not None:
        raise TypeError(f"{name}: give x or dx, not both")
    if y.dtype is bool_dtype or x is not None and _tensor(x, name).dtype is bool_dtype:
        raise DTypeError(f"{name}: bool is not supported")
    return y, axis, y.shape[axis], 1 if x is None and dx is None else dx if x is None else _steps(y, x, axis, name)


def _sums(y, axis, n):
    """The sums of neighbours."""
    return shape.narrow(y, axis, 0, max(n - 1, 0)) + shape.narrow(y, axis, min(n, 1), max(n - 1, 0))


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The area under y along `dim` by the trapezoidal rule, at points x or at distances dx (1 by default)."""
    made = area_row(y, x, dim, dx, False)
    if made is not None:
        return made
    y, axis, n, step = _area(y, x, dx, dim, "trapezoid")
    if n == 0:
        return zeros((*y.shape[:axis], *y.shape[axis + 1:]), dtype=y.dtype)
    if x is None:
        ends = shape.narrow(y, axis, 0, 1) + shape.narrow(y, axis, n - 1, 1)
        return (reduce.sum(y, axis) - shape.squeeze(ends, axis) * 0.5) * step
    return reduce.sum(_sums(y, axis, n) * step, axis) / 2


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The areas under y from its first element to each of the others along `dim`: as `trapezoid`."""
    made = area_row(y, x, dim, dx, True)
    if made is not None:
        return made
    y, axis, n, step = _area(y, x, dx, dim, "cumulative_trapezoid")
    return scans.cumsum(_sums(y, axis, n) * (step / 2), axis)


trapz = trapezoid
__all__ = ["argwhere", "bincount", "count_nonzero", "cumulative_trapezoid", "diff", "histc", "histogram", "isin",
           "nanquantile", "quantile", "trapezoid", "trapz", "unique", "unique_consecutive"]
