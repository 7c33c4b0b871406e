"""Indexing by functions: scatter_reduce, take_along_dim; and the rules of gather.pyx and index.pyx that are a few of their rows.

Relies on gather.pyx, index.pyx and elementwise functions. methods.py puts the functions into Tensor.
"""

from . import creation, elementwise, gather, reduce, shape
from .choose import where
from .gather import scatter_reduce
from .gradients import FUNCTIONS
from .index import index as index_rows
from .index import index_winners
from .modes import no_grad
from .tensor import Tensor


# ---- what was overwritten gets no gradient

def _kept(values, winners):
    """values where winners is true; as they are, if that is everywhere (a capture does not look)."""
    return values if not creation.capturing() and winners.all() else where(winners, values, 0)


def scatter_kept(g, index, dim):
    """The gradient of scatter by its source."""
    return _kept(gather.gather(g, dim, index), gather.scatter_winners(index, g.shape, dim))


def index_kept(g, plan):
    """The gradient of x[index] = v by v."""
    return _kept(index_rows(g, plan), index_winners(g, plan))


# ---- scatter_reduce

def kept_values(x, others):
    """What gradient rules may need of a tensor that is about to be overwritten: a copy, if it or one of the others has a gradient."""
    for t in (x, *others):
        if isinstance(t, Tensor) and t.requires_grad:
            return shape.clone(x)
    return x


def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
    """In place: scatter_reduce."""
    return self.copy_(scatter_reduce(kept_values(self, (src,)), dim, index, src, reduce, include_self=include_self))


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """scatter_reduce of whole slices: those of source into the slices of dim that index names. reduce: "prod", "mean", "amax", "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce: reduce must be prod, mean, amax or amin, got {reduce!r}")
    return gather.any_index(input, dim, index, source, 0, False, "index_reduce", reduce, include_self)


def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """In place: index_reduce."""
    return self.copy_(index_reduce(kept_values(self, (source,)), dim, index, source, reduce, include_self=include_self))


def _counted(mask, x, index, dim):
    """How many true elements of a mask of src every element of x gets."""
    return gather.scatter_add(creation.zeros_like(x.detach()), dim, index, mask.to(x.dtype))


def _hits(x, index, dim, include_self):
    """How many elements are combined at each place; 1 where there are none."""
    ones = creation.ones_like(x.detach())
    start = ones if include_self else gather.scatter(ones, dim, index, 0)
    return gather.scatter(start, dim, index, 1, reduce="add")


def _shares(x, index, v, y, dim, include_self):
    """Of a maximum: which elements of x and v attain it, and how many do."""
    mine, theirs = elementwise.eq(x.detach(), y.detach()), elementwise.eq(v.detach(), gather.gather(y.detach(), dim, index))
    if not include_self:
        mine = gather.scatter(mine, dim, index, False)
    return mine, theirs, elementwise.maximum(_counted(theirs, x, index, dim) + mine.to(x.dtype), 1)


def scatter_dx(g, x, index, v, y, reduce, dim, include_self):
    """The gradient of scatter_reduce by its input."""
    if reduce in ("prod", "sum"):
        if not include_self:
            return gather.scatter(g, dim, index, 0)
        return g * scatter_reduce(creation.ones_like(x.detach()), dim, index, v, "prod")
    if reduce == "mean":
        return g / _hits(x, index, dim, True) if include_self else gather.scatter(g, dim, index, 0)
    mine, _, count = _shares(x, index, v, y, dim, include_self)
    return where(mine, g / count, 0)


def scatter_dv(g, x, index, v, y, reduce, dim, include_self):
    """The gradient of scatter_reduce by its source. Of a product: of all other factors, the zeros among them counted, not divided by."""
    if reduce == "mean":
        return gather.gather(g / _hits(x, index, dim, include_self), dim, index)
    if reduce == "sum":
        return gather.gather(g, dim, index)
    if reduce != "prod":
        _, theirs, count = _shares(x, index, v, y, dim, include_self)
        return where(theirs, gather.gather(g / count, dim, index), 0)
    zero = elementwise.eq(v.detach(), 0)
    others = where(zero, 1, v)
    start = x if include_self else creation.ones_like(x.detach())
    product = gather.gather(scatter_reduce(start, dim, index, others, "prod"), dim, index)
    zeros = gather.gather(_counted(zero, x, index, dim), dim, index)
    # A factor that is zero is 0 * anything here, but its own derivative is not: `theirs` is 0 with the right derivative.
    theirs = gather.gather(gather.scatter_add(creation.zeros_like(x.detach()), dim, index, where(zero, v, 0)), dim, index)
    one, two = elementwise.eq(zeros, 1), elementwise.eq(zeros, 2)
    exclusive = where(zero, where(one, product, where(two, product * (theirs - v), 0)),
                      where(one, product / others * theirs, where(elementwise.eq(zeros, 0), product / others, 0)))
    return gather.gather(g, dim, index) * exclusive


def wrong_class(index, classes):
    """The error of one_hot."""
    low, high = index.amin().item(), index.amax().item()
    if low < 0:
        return RuntimeError(f"Class values must be non-negative, got {low}")
    return RuntimeError(f"Class values must be smaller than num_classes ({classes}), got {high}")


# ---- embedding

def limit_norms(weight, index, max_norm, p):
    """In place, without history: the rows of weight that index names, scaled down to a p-norm of max_norm where theirs is larger."""
    with no_grad():
        used = shape.reshape(index, -1)
        chosen = gather.index_select(weight.detach(), 0, used)
        norms = reduce.norm(chosen, p, 1, True)
        gather.index_copy_(weight, 0, used, where(norms > max_norm, chosen * (max_norm / (norms + 1e-7)), chosen))


def embedding_back(g, index, sizes, padding, scale):
    """The gradient of embedding: rows of g added where they came from."""
    places = shape.reshape(index, -1)
    rows = shape.reshape(g, (places.numel(), sizes[1]))
    if padding is not None:
        rows = where(shape.unsqueeze(elementwise.eq(places, padding), 1), 0, rows)
    if scale:
        counts = FUNCTIONS["put"](creation.ones_code((places.numel(),), g.dtype.code), places, (sizes[0],), 0)
        rows = rows / shape.unsqueeze(gather.index_select(counts, 0, places), 1)
    return FUNCTIONS["put"](rows, shape.expand(shape.unsqueeze(places, 1), rows.shape), sizes, 0)
