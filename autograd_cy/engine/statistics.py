"""Statistics composed of other operations: quantiles, counts, distinct values, histograms, differences and areas.

Relies on reduce, scans, sorting, shape and the routines of kernels/counting. methods.py makes methods of them, the package's front
functions.
"""

from collections import namedtuple

from ..array.dtypes import bool as bool_dtype
from ..array.dtypes import int64
from ..array.errors import DTypeError, ShapeError
from . import elementwise, joins, reduce, scans, shape, sorting
from .creation import as_tensor, escapes, full, zeros, zeros_code
from .index import nonzero
from .routines import call_routine
from .tensor import Tensor

INF = float("inf")
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
    x = _tensor(input, "count_nonzero")
    return reduce.sum(x if x.dtype is bool_dtype else elementwise.ne(x, 0.0 if x.is_floating_point() else 0), dim)


# ---- quantiles

_BETWEEN = {"linear": 0, "lower": 1, "higher": 2, "midpoint": 3, "nearest": 4}


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-quantiles along `dim` (of all elements by default): for a number q without that dimension, for a 1-d tensor q along a new
    first one. NaN where an element is NaN. interpolation: "linear", "lower", "higher", "midpoint" or "nearest" between two elements.

    Raises RuntimeError unless the input is floating point and not empty, and q lies in [0, 1].
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """As `quantile`, of the elements that are not NaN; NaN where all are."""
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


def _quantile(x, q, dim, keepdim, interpolation, skip, name):
    if not isinstance(x, Tensor) or not x.is_floating_point():
        _floats(x, name)
    mode = _BETWEEN.get(interpolation)
    if mode is None:
        raise ShapeError(f"{name}: interpolation must be one of {', '.join(_BETWEEN)}, got {interpolation!r}")
    single = True
    if isinstance(q, Tensor):
        if q.ndim > 1 or q.dtype is not x.dtype:
            raise DTypeError(f"{name}: q must be a number or a tensor of at most one dimension of dtype {x.dtype.name}, "
                             f"got shape {q.shape} of {q.dtype.name}")
        single, q = q.ndim == 0, _flat(q)
    elif not 0 <= q <= 1:
        raise ShapeError(f"{name}: q must be in the range [0, 1], got {q}")
    if not x.numel():
        raise ShapeError(f"{name}: the input of shape {x.shape} is empty")
    ndim = x.ndim
    if dim is not None and ndim:
        axis = dim if 0 <= dim < ndim else _axis(x, dim, name)
        result = sorting.quantile_row(x, axis, q, mode, skip)
        if keepdim:
            return result if single else shape.unsqueeze(shape.movedim(result, axis, 0), axis + 1)
        return shape.squeeze(result, axis) if single else shape.movedim(result, axis, 0)
    if dim is not None:
        sorting.argsort(x, dim)               # a dim out of range is an error
    result = sorting.quantile_row(x if ndim == 1 else shape.reshape(x, -1), 0, q, mode, skip)
    if keepdim and ndim:
        return shape.reshape(result, (1,) * ndim if single else (-1,) + (1,) * ndim)
    return shape.squeeze(result, 0) if single else result


# ---- distinct values


def _runs(flat, values, return_inverse, return_counts, order, x):
    """The values of the runs of equal elements of a flat tensor, where order says what x was sorted by; they go to `values`, which may
    be `flat` itself. Then, where wanted, the run of each element, and the lengths of the runs."""
    n = flat.numel()
    starts = zeros_code((n + 1,), 2) if return_counts else None
    runs = zeros_code((n,), 2) if return_inverse else None
    found = zeros_code((), 2)
    call_routine("counting.runs", (values, starts, runs, found, flat, order))
    found = found.item()
    if found < n:                             # in memory of their own where they are much fewer
        values = shape.narrow(values, 0, 0, found)
        values = shape.clone(values) if 2 * found < n else values.detach()
    if starts is runs:
        return values
    return _chosen(values, None if runs is None else shape.reshape(runs, x.shape),
                   None if starts is None else shape.narrow(starts, 0, 1, found) - shape.narrow(starts, 0, 0, found))


def _chosen(values, runs, counts):
    made = (values, *(part for part in (runs, counts) if part is not None))
    return made if len(made) > 1 else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements in order; or, along `dim`, the distinct slices. NaNs are different from each other.

    return_inverse: also, for each element (slice), which of them it is. return_counts: also how often each occurs. Its size depends on
    values: an error in a captured step.
    """
    x = input.detach() if isinstance(input, Tensor) else _tensor(input, "unique")
    escapes("unique()")
    if dim is not None:
        return _unique_slices(x, dim, return_inverse, return_counts, True, "unique")
    flat, order = x if x.ndim == 1 else shape.reshape(x, -1), None
    if return_inverse:
        flat, order = sorting.sort(flat, 0)
    else:
        flat = sorting.sorted_values(flat)
    return _runs(flat, flat, return_inverse, return_counts, order, x)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first element of every run of equal ones; or, along `dim`, of equal slices. As `unique`, without sorting."""
    x = input.detach() if isinstance(input, Tensor) else _tensor(input, "unique_consecutive")
    escapes("unique_consecutive()")
    if dim is not None:
        return _unique_slices(x, dim, return_inverse, return_counts, False, "unique_consecutive")
    flat = _flat(x)
    return _runs(flat, zeros_code((flat.numel(),), x.dtype.code), return_inverse, return_counts, None, x)


def _unique_slices(x, dim, return_inverse, return_counts, ordered, name):
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


# ---- counting


def bincount(input, weights=None, minlength=0):
    """How often each number from 0 on occurs in a 1-d tensor of integers, or the sum of its weights: max + 1 numbers, at least minlength.

    Its size depends on values: an error in a captured step. RuntimeError where a number is negative, or shapes do not fit.
    """
    x = input if isinstance(input, Tensor) else _tensor(input, "bincount")
    if x.dtype is not int64 and (x.is_floating_point() or x.dtype is bool_dtype):
        raise DTypeError(f"bincount: expected integers, got {x.dtype.name}")
    if minlength < 0:
        raise ShapeError(f"bincount: minlength should be >= 0, got {minlength}")
    if x.ndim != 1 or weights is not None and _tensor(weights, "bincount").shape != x.shape:
        raise ShapeError(f"bincount: expected a 1-d tensor and weights of its shape, got shapes {x.shape} and "
                         f"{None if weights is None else weights.shape}")
    escapes("bincount()")
    size = minlength
    x = shape.contiguous_tensor(x if x.dtype is int64 else x.long())
    if x.numel():
        largest = reduce.amax(x).item()
        if largest >= size:
            size = largest + 1
    if weights is not None:
        weights = shape.contiguous_tensor(weights.detach() if weights.is_floating_point() else weights.double())
    out = zeros_code((size,), 2 if weights is None else weights.dtype.code)
    call_routine("counting.bincount", (out, x, weights))
    return out


def _range(x, low, high, name):
    """The ends of a histogram: as given, or, if both are equal, of the data; apart in any case."""
    if not (low < high or low == high):
        raise ShapeError(f"{name}: max must be larger than min, got {low} and {high}")
    if low == high and not x.numel():
        return low, low + 1
    if low == high:
        low, high = reduce.amin(x).item(), reduce.amax(x).item()
    if not abs(low) + abs(high) < INF:
        raise ShapeError(f"{name}: range of [{low}, {high}] is not finite")
    return (low - 1, high + 1) if low == high else (low, high)


def histc(input, bins=100, min=0, max=0):
    """How many elements lie in each of `bins` bins of equal width from min to max (of the data, where both are equal); others and NaN
    do not count. In the input's dtype. RuntimeError unless it is floating point and the range finite."""
    x = _flat(input if isinstance(input, Tensor) and input.is_floating_point() else _floats(input, "histc"))
    if bins <= 0:
        raise ShapeError(f"histc: bins must be > 0, got {bins}")
    out = zeros_code((bins,), x.dtype.code)
    ends = (min, max) if min < max and max - min < INF else _range(x, min, max, "histc")
    call_routine("counting.histogram", (out, x, None, None), (0,), ends)
    return out


def histogram(input, bins, *, range=None, weight=None, density=False):
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
        call_routine("counting.edges", (edges,), (), _range(x, *((0, 0) if range is None else range), "histogram"))
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


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among the test elements (not: invert); one of both may be a number."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(f"isin: expected a Tensor, got {type(elements).__name__} and {type(test_elements).__name__}")
    a = elements if isinstance(elements, Tensor) else as_tensor(elements)
    b = test_elements if isinstance(test_elements, Tensor) else as_tensor(test_elements)
    n = b.numel()
    if not n:
        found = zeros(a.shape, dtype=bool_dtype)
    elif n == 1:
        found = elementwise.eq(a, shape.reshape(b, ()))
    elif n * a.numel() <= 256 and a.ndim < 32:
        found = reduce.any(elementwise.eq(shape.unsqueeze(a, -1), b if b.ndim == 1 else shape.reshape(b, -1)), -1)
    else:
        a, b = a.detach(), b.detach()
        if a.dtype is not b.dtype:
            dtype = (a.reshape(-1)[:0] + b.reshape(-1)[:0]).dtype
            a, b = a.to(dtype), b.to(dtype)
        b = sorting.sorted_values(_flat(b))
        found = elementwise.ne(sorting.searchsorted(b, a), sorting.searchsorted(b, a, right=True))
    return elementwise.logical_not(found) if invert else found


def argwhere(input):
    """The indices of all elements that are not 0: a row of ndim numbers for each. An error in a captured step."""
    x = _tensor(input, "argwhere")
    if x.ndim:
        return nonzero(x)
    return zeros((int(nonzero(x.reshape(1)).shape[0]), 0), dtype=int64)


# ---- differences and areas


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The n-th differences along `dim`: x_i+1 - x_i, n times over; of bools, whether they differ. prepend, append: joined to x before."""
    x = input if isinstance(input, Tensor) else _tensor(input, "diff")
    ndim = x.ndim
    axis = dim % ndim if ndim and -ndim <= dim < ndim else _axis(x, dim, "diff")
    if n < 0:
        raise ShapeError(f"diff: n must be non-negative, got {n}")
    if n and (prepend is not None or append is not None):
        x = joins.cat([part for part in (prepend, x, append) if part is not None], axis)
    size = x.shape[axis]
    n = n if n < size else size
    while n:
        n -= 1
        size -= 1
        later, earlier = shape.narrow(x, axis, 1, size), shape.narrow(x, axis, 0, size)
        x = elementwise.ne(later, earlier) if x.dtype is bool_dtype else later - earlier
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


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The area under y along `dim` by the trapezoidal rule, at points x or at distances dx (1 by default)."""
    y, axis, n, step = _area(y, x, dx, dim, "trapezoid")
    if n == 0:
        return zeros((*y.shape[:axis], *y.shape[axis + 1:]), dtype=y.dtype)
    if x is None:
        ends = shape.narrow(y, axis, 0, 1) + shape.narrow(y, axis, n - 1, 1)
        return (reduce.sum(y, axis) - shape.squeeze(ends, axis) * 0.5) * step
    return reduce.sum((shape.narrow(y, axis, 0, n - 1) + shape.narrow(y, axis, 1, n - 1)) * step, axis) / 2


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The areas under y from its first element to each of the others along `dim`: as `trapezoid`."""
    y, axis, n, step = _area(y, x, dx, dim, "cumulative_trapezoid")
    both = shape.narrow(y, axis, 0, max(n - 1, 0)) + shape.narrow(y, axis, min(n, 1), max(n - 1, 0))
    return scans.cumsum(both * (step / 2), axis)


trapz = trapezoid
__all__ = ["argwhere", "bincount", "count_nonzero", "cumulative_trapezoid", "diff", "histc", "histogram", "isin",
           "nanquantile", "quantile", "trapezoid", "trapz", "unique", "unique_consecutive"]
