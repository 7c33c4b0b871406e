"""Indexing by functions: scatter_reduce, take, put_, masked_select, masked_scatter, index_put, embedding; and the rules of these.

Relies on gather.pyx, index.pyx and elementwise functions; every function is a few of their rows. methods.py puts them into Tensor.
"""

from . import creation, elementwise, gather, reduce, shape
from .arrange import need_tensor
from .choose import where
from .gradients import FUNCTIONS
from .index import index as index_rows
from .index import index_put_, index_winners, nonzero
from .joins import broadcast_tensors
from .modes import no_grad


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

def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """input combined with src[i] at index[i] along dim: reduce is "sum", "prod", "mean", "amax" or "amin".

    include_self: whether what is there takes part. Ties of amax and amin share the gradient evenly; products with zeros have exact
    gradients. Raises RuntimeError for another reduce, IndexError for indices out of range.
    """
    if reduce in ("prod", "amax", "amin"):
        return gather.reduced(input, dim, index, src, reduce, include_self)
    if reduce not in ("sum", "mean"):
        raise RuntimeError(f"scatter_reduce: reduce must be sum, prod, mean, amax or amin, got {reduce!r}")
    start = input if include_self else gather.scatter(input, dim, index, 0)
    out = gather.scatter_add(start, dim, index, src)
    if reduce == "sum":
        return out
    count = gather.scatter_add((creation.ones_like if include_self else creation.zeros_like)(input.detach()), dim, index,
                               creation.ones_like(src.detach()))
    count = count if include_self else elementwise.maximum(count, 1)
    return out / count if out.is_floating_point() else elementwise.floor_divide(out, count)


def _kept_values(x):
    """What a gradient rule may need of a tensor that is about to be overwritten: a copy."""
    return shape.clone(x) if x.requires_grad else x


def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
    """In place: scatter_reduce."""
    return self.copy_(scatter_reduce(_kept_values(self), dim, index, src, reduce, include_self=include_self))


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """scatter_reduce of whole slices: those of source into the slices of dim that index names. reduce: "prod", "mean", "amax", "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce: reduce must be prod, mean, amax or amin, got {reduce!r}")
    axis = range(max(need_tensor(input, "index_reduce").ndim, 1))[dim]
    sizes = (1,) * axis + (-1,) + (1,) * (input.ndim - axis - 1)
    return scatter_reduce(input, dim, shape.expand(shape.reshape(index, sizes), source.shape), source, reduce, include_self=include_self)


def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """In place: index_reduce."""
    return self.copy_(index_reduce(_kept_values(self), dim, index, source, reduce, include_self=include_self))


def _counted(mask, x, index, dim):
    """How many true elements of a mask of src every element of x gets."""
    return gather.scatter_add(creation.zeros_like(x.detach()), dim, index, mask.to(x.dtype))


def _shares(x, index, v, y, dim, include_self):
    """Of a maximum: which elements of x and v attain it, and how many do."""
    mine, theirs = elementwise.eq(x.detach(), y.detach()), elementwise.eq(v.detach(), gather.gather(y.detach(), dim, index))
    if not include_self:
        mine = gather.scatter(mine, dim, index, False)
    return mine, theirs, elementwise.maximum(_counted(theirs, x, index, dim) + mine.to(x.dtype), 1)


def scatter_dx(g, x, index, v, y, reduce, dim, include_self):
    """The gradient of scatter_reduce by its input."""
    if reduce == "prod":
        if not include_self:
            return gather.scatter(g, dim, index, 0)
        return g * gather.reduced(creation.ones_like(x.detach()), dim, index, v, "prod", True)
    mine, _, count = _shares(x, index, v, y, dim, include_self)
    return where(mine, g / count, 0)


def scatter_dv(g, x, index, v, y, reduce, dim, include_self):
    """The gradient of scatter_reduce by its source. Of a product: of all other factors, the zeros among them counted, not divided by."""
    if reduce != "prod":
        _, theirs, count = _shares(x, index, v, y, dim, include_self)
        return where(theirs, gather.gather(g / count, dim, index), 0)
    zero = elementwise.eq(v.detach(), 0)
    others = where(zero, 1, v)
    start = x if include_self else creation.ones_like(x.detach())
    product = gather.gather(gather.reduced(start, dim, index, others, "prod", True), dim, index)
    zeros = gather.gather(_counted(zero, x, index, dim), dim, index)
    # A factor that is zero is 0 * anything here, but its own derivative is not: `theirs` is 0 with the right derivative.
    theirs = gather.gather(gather.scatter_add(creation.zeros_like(x.detach()), dim, index, where(zero, v, 0)), dim, index)
    one, two = elementwise.eq(zeros, 1), elementwise.eq(zeros, 2)
    exclusive = where(zero, where(one, product, where(two, product * (theirs - v), 0)),
                      where(one, product / others * theirs, where(elementwise.eq(zeros, 0), product / others, 0)))
    return gather.gather(g, dim, index) * exclusive


# ---- by places in row-major order, by masks

def take(input, index):
    """The elements at places counted in row-major order: the shape of index. Negative places count from the end."""
    if need_tensor(index, "take").is_floating_point() or index.dtype.name == "bool":
        raise RuntimeError(f"take: expected int64 places, got {index.dtype}")
    flat = shape.reshape(need_tensor(input, "take"), -1)
    return shape.reshape(flat[shape.reshape(index, -1)], index.shape)


def take_along_dim(input, indices, dim=None):
    """As gather, but input and indices broadcast against each other beside dim; without dim: as take."""
    if dim is None:
        return gather.gather(shape.reshape(need_tensor(input, "take_along_dim"), -1), 0, shape.reshape(indices, -1))
    if need_tensor(input, "take_along_dim").ndim != need_tensor(indices, "take_along_dim").ndim:
        raise RuntimeError(f"take_along_dim: input and indices must have as many dimensions, got shapes {input.shape} and {indices.shape}")
    axis = range(input.ndim)[dim] if input.ndim else 0
    sizes = [max(a, b) if min(a, b) else 0 for a, b in zip(input.shape, indices.shape, strict=True)]
    of_input, of_indices = list(sizes), list(sizes)
    if sizes:
        of_input[axis], of_indices[axis] = input.shape[axis], indices.shape[axis]
    return gather.gather(shape.expand(input, of_input), dim, shape.expand(indices, of_indices))


def put_(self, index, source, accumulate=False):
    """In place: the elements of source at places counted in row-major order, or with accumulate added to what is there."""
    if need_tensor(index, "put_").numel() != need_tensor(source, "put_").numel():
        raise RuntimeError(f"put_: expected as many places as elements, got shapes {index.shape} and {source.shape}")
    if source.dtype != self.dtype:
        raise RuntimeError(f"put_: expected a source of the input's dtype {self.dtype}, got {source.dtype}")
    index, source = shape.reshape(index, -1), shape.reshape(source, -1)
    if self.is_contiguous():
        index_put_(shape.view(self, -1), (index,), source, accumulate)
        return self
    flat = shape.clone(shape.reshape(self, -1))
    return self.copy_(shape.reshape(index_put_(flat, (index,), source, accumulate), self.shape))


def put(input, index, source, accumulate=False):
    """input with the elements of source at places counted in row-major order."""
    return put_(shape.clone(input), index, source, accumulate)


def index_put(input, indices, values, accumulate=False):
    """A copy of input with input[indices] = values, or with accumulate += values, to which duplicates add up."""
    return index_put_(shape.clone(input), indices, values, accumulate)


def masked_select(input, mask):
    """The elements where mask is true, in one dimension; both broadcast against each other."""
    if need_tensor(mask, "masked_select").dtype.name != "bool":
        raise RuntimeError(f"masked_select: expected a bool mask, got {mask.dtype}")
    if need_tensor(input, "masked_select").shape != mask.shape or not input.ndim:
        input, mask = broadcast_tensors(*((input, mask) if input.ndim or mask.ndim else (shape.reshape(input, 1), mask)))
    return input[mask]


def masked_scatter_(self, mask, source):
    """In place: the elements where mask is true become the first elements of source, one after the other.

    Raises RuntimeError where source has fewer elements than mask is true.
    """
    if need_tensor(mask, "masked_scatter_").dtype.name != "bool":
        raise RuntimeError(f"masked_scatter_: expected a bool mask, got {mask.dtype}")
    if need_tensor(source, "masked_scatter_").dtype != self.dtype:
        raise RuntimeError(f"masked_scatter_: expected a source of the input's dtype {self.dtype}, got {source.dtype}")
    if self.ndim > 1 and self.is_contiguous():               # places in one dimension are found faster
        masked_scatter_(shape.view(self, -1), shape.reshape(shape.expand(mask, self.shape), -1), source)
        return self
    places = nonzero(shape.expand(mask, self.shape), as_tuple=True) if self.ndim else None
    count = len(places[0]) if self.ndim else int(bool(mask))
    if count > source.numel():
        raise RuntimeError(f"masked_scatter_: the mask is true at {count} elements, but source has {source.numel()}")
    values = shape.narrow(shape.reshape(source, -1), 0, 0, count)
    if not self.ndim:
        return self.copy_(shape.reshape(values, ())) if count else self
    return index_put_(self, places, values)


def masked_scatter(input, mask, source):
    """input in which the elements where mask is true are the first elements of source, one after the other."""
    if not input.ndim or input.shape != mask.shape:
        sizes = broadcast_tensors(input, mask)[0].shape
        input = shape.expand(input, sizes)
    return masked_scatter_(shape.contiguous_tensor(input) if input.numel() and 0 in input.stride() else shape.clone(input), mask, source)


# ---- embedding

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of weight that input (int64, of any shape) names: shape (*input.shape, columns).

    padding_idx: a row that gets no gradient. max_norm: rows whose p-norm (p = norm_type) is larger are first scaled down to it, in
    place. scale_grad_by_freq: gradients are divided by how often a row is used. Raises RuntimeError for sparse=True.
    """
    if sparse:
        raise RuntimeError("embedding: sparse gradients are not supported; leave sparse=False")
    rows = need_tensor(weight, "embedding").shape[0] if weight.ndim else 0
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
        padding_idx %= rows
    if max_norm is not None:
        with no_grad():
            used = shape.reshape(need_tensor(input, "embedding"), -1)
            chosen = gather.index_select(weight.detach(), 0, used)
            norms = reduce.norm(chosen, norm_type, 1, True)
            gather.index_copy_(weight, 0, used, where(norms > max_norm, chosen * (max_norm / (norms + 1e-7)), chosen))
    return gather.embedding_row(weight, input, padding_idx, bool(scale_grad_by_freq))


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
