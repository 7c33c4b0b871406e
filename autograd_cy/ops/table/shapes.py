"""Views, copies, and elements chosen by indices. An `index` of slices has (start, length, step) per axis, or (None, None, None).

Relies on rows.py and functions.py only.
"""

from math import prod

from ..functions import (
    as_strided, as_strided_back, concatenate, cumulate, diagonal, diagonal_back, embedding_back, expand, fill_strided, flip, gather, index,
    index_back, index_fill, index_kept, pad, permute, pieces, put, reshape, roll, scatter_dv, scatter_dx, scatter_kept, scatter_zero, slice,
    spread, stack, sum_to, total, triangle, unbind, unfold_back, unslice,
)
from ..rows import op


def _one(dim, start, length):
    """The index of slices that cuts one axis only."""
    return ((None, None, None),) * dim + ((start, length, 1),)


def _negated(numbers):
    return tuple(-n for n in numbers)


def _summed(g, seen, dims, x_shape):
    """g, seen in a shape, summed over dims of it."""
    return reshape(sum_to(reshape(g, seen), tuple(1 if i in dims else n for i, n in enumerate(seen))), x_shape)


def _unrepeated(g, x_shape, counts):
    """The sum of all copies: counts and sizes are axes of their own, but for those that are 1."""
    seen, dims = [], []
    for count, size in zip(counts, (1,) * (len(counts) - len(x_shape)) + x_shape, strict=True):
        if count != 1:
            dims.append(len(seen))
            seen.append(count)
        if size != 1:
            seen.append(size)
    return _summed(g, tuple(seen), dims, x_shape)


def _uninterleaved(g, x_shape, repeats, dim):
    sizes = (prod(x_shape),) if dim < 0 else x_shape
    dim = max(dim, 0)
    return _summed(g, (*sizes[:dim + 1], repeats, *sizes[dim + 1:]), (dim + 1,), x_shape)


def _unbordered(g, n, dim, before, after, mode):
    """The middle of g, with what its borders were made from added: (start in g, length, place)."""
    def cut(x, start, length):
        return (slice(x, _one(dim, start, length)),) if length else ()

    made, = cut(g, before, n)
    places = ((1, n - 1 - after), (0, n - 1), (n - before, 0))[mode]
    for start, length, place in ((0, before, places[0]), (before + n, after, places[1])):
        if not length:
            continue
        border, = cut(g, start, length)
        if mode == 0:
            border = flip(border, (dim,))
        elif mode == 1:
            border, length = total(border, (dim,), True), 1
        made = concatenate((*cut(made, 0, place), *(piece + border for piece in cut(made, place, length)),
                            *cut(made, place + length, n - place - length)), dim)
    return made


# ---- views and copies: index is a tuple with (start, length, step) per axis, or (None, None, None) for a whole one

def _blocks(g, sizes):
    """The blocks of these sizes on the diagonal of g."""
    made, row, column = [], 0, 0
    for rows, columns in zip(sizes[::2], sizes[1::2], strict=True):
        made.append(slice(g, ((row, rows, 1), (column, columns, 1)), None))
        row, column = row + rows, column + columns
    return made


def _beside(g, dim, adds):
    """The gradient of sums or differences of neighbours."""
    before = tuple(1 if i == 2 * dim else 0 for i in range(2 * len(g.shape)))
    after = tuple(1 if i == 2 * dim + 1 else 0 for i in range(2 * len(g.shape)))
    later, earlier = pad(g, before, 0), pad(g, after, 0)
    return later + earlier if adds else later - earlier


op("reshape", "x", kind="view", ints=0, attrs="shape", dx=lambda g, x_shape: reshape(g, x_shape), doc="the same elements in another shape")
op("permute", "x", kind="view", ints=0, attrs="order", doc="axes in another order",
   dx=lambda g, order: permute(g, tuple(sorted(range(len(order)), key=order.__getitem__))))
op("expand", "x", kind="view", ints=0, attrs="shape", dx=lambda g, x_shape: sum_to(g, x_shape),
   doc="repeated along axes of size 1, without copying")
op("slice", "x", kind="view", ints=0, attrs="index shape", dx=lambda g, x_shape, index: unslice(g, x_shape, index),
   doc="start:stop:step along each axis, in the given shape (axes of size 1 dropped or added)")
op("select", "x", kind="view", ints=2, attrs="dim index", dx=lambda g, x_shape, dim, index: unslice(g, x_shape, _one(dim, index, 1)),
   doc="the slice at index of one axis, without the axis")
op("narrow", "x", kind="view", ints=3, attrs="dim start length", doc="neighbouring slices of one axis",
   dx=lambda g, x_shape, dim, start, length: unslice(g, x_shape, _one(dim, start, length)))
op("unslice", "x", attrs="shape index", dx=lambda g, x_shape, index: slice(g, index, x_shape), doc="x placed at a slice of zeros")
op("as_strided", "x", kind="view", ints=0, attrs="base view", dx=lambda g, base, view: as_strided_back(g, base, view),
   doc="a window on memory laid out as `base`, with the shape, strides and offset of `view`")
op("as_strided_back", "x", attrs="base view", dx=lambda g, base, view: as_strided(g, base, view), doc="x summed into zeros at a window")
op("fill_strided", "x", attrs="base view", dx=lambda g, base, view: fill_strided(g, base, view), doc="x with zeros at a window")
op("replace_strided", "x v", ints=0, attrs="base view", dx=lambda g, base, view: fill_strided(g, base, view),
   dv=lambda g, base, view: as_strided(g, base, view), doc="x after its window was overwritten by v")
op("grid", "x", kind="view", ints=1, attrs="sizes dim", doc="a vector repeated along all axes but one",
   dx=lambda g, x_shape, sizes, dim: _summed(g, sizes, {*range(len(sizes))} - {dim}, x_shape))
op("clone", "x", dx=lambda g: g, doc="a copy")
op("convert", "x", ints=1, attrs="dtype", dx=lambda g: g, doc="x in another dtype")
op("copy", "x v", dv=lambda g: g, doc="x overwritten by v")
op("concatenate", "*xs", ints=1, attrs="sizes dim", dxs=lambda g, sizes, dim: pieces(g, sizes, dim), doc="tensors joined along dim")
op("pieces", "x", kind="view", ints=1, attrs="sizes dim", dx=lambda gs, sizes, dim: concatenate(gs, dim), doc="consecutive parts along dim")
op("unbind", "x", kind="view", ints=2, attrs="count dim", dx=lambda gs, dim: stack(gs, dim), doc="the slices of one axis, without the axis")

op("diagonal", "x", kind="view", ints=3, attrs="offset dim1 dim2", doc="elements (i, i + offset) of two dimensions, as the last one",
   dx=lambda g, x_shape, offset, dim1, dim2: diagonal_back(g, x_shape, offset, dim1, dim2))
op("unfold", "x", kind="view", ints=3, attrs="dimension size step", doc="slices of a dimension, which may overlap, as the last one",
   dx=lambda g, x_shape, dimension, size, step: unfold_back(g, x_shape, dimension, size, step))
op("stack", "*xs", ints=1, attrs="dim", dxs=lambda g, dim: unbind(g, dim), doc="tensors joined along a new dim")
op("triangle", "x", ints=2, attrs="diagonal lower", dx=lambda g, diagonal, lower: triangle(g, diagonal, lower),
   doc="x with zeros above (lower) or below a diagonal of its last two dimensions")
op("diagonal_back", "x", ints=3, attrs="shape offset dim1 dim2", dx=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
   doc="the last dimension of x on the diagonal (i, i + offset) of zeros")


def _under(g, x_shape, dim, cumulative):
    """What each piece between neighbours contributed to."""
    if cumulative:
        return cumulate(g, dim, True)
    return expand(spread(g, None, (dim,), False), tuple(n - (i == dim) for i, n in enumerate(x_shape)))


def _differences(x, dim, sign=1):
    """Of neighbours, or their sums."""
    n = x.shape[dim] - 1
    return slice(x, _one(dim, 1, n), None) - sign * slice(x, _one(dim, 0, n), None)


op("area", "x", attrs="dim step cumulative", public=False, doc="area under points at equal distances; cumulative: also of parts",
   dx=lambda g, x_shape, dim, step, cumulative: _beside(_under(g, x_shape, dim, cumulative) * (step / 2), dim, True))
op("area_at", "x points", attrs="dim cumulative", public=False, doc="area under points; cumulative: also of parts",
   dx=lambda g, x_shape, points, dim, cumulative: _beside(_under(g, x_shape, dim, cumulative) * _differences(points, dim) * 0.5, dim, True),
   dpoints=lambda g, x, x_shape, dim, cumulative: _beside(_under(g, x_shape, dim, cumulative) * _differences(x, dim, -1) * 0.5, dim, False))
op("neighbours", "x", ints=1, attrs="dim", public=False, dx=lambda g, dim: _beside(g, dim, False), doc="x_i+1 - x_i along dim")
op("flip", "x", ints=0, attrs="dims", dx=lambda g, dims: flip(g, dims), doc="x with the order along dims reversed")
op("roll", "x", ints=0, attrs="shifts", doc="x moved by shifts along each axis, what leaves coming in at the other end; by one: flattened",
   dx=lambda g, shifts: roll(g, _negated(shifts), tuple(range(len(shifts))) if len(shifts) == len(g.shape) else None))
op("block_diag", "*xs", ints=0, attrs="sizes", dxs=lambda g, sizes: _blocks(g, sizes), doc="matrices along a diagonal of zeros")
op("repeat", "x", ints=0, attrs="counts", dx=lambda g, x_shape, counts: _unrepeated(g, x_shape, counts), doc="x repeated along each axis")
op("repeat_interleave", "x", ints=2, attrs="repeats dim", doc="every slice of dim (-1: every element) repeated",
   dx=lambda g, x_shape, repeats, dim: _uninterleaved(g, x_shape, repeats, dim))
op("pad", "x", ints=0, attrs="pads value", dx=lambda g, pads: pad(g, _negated(pads), 0),
   doc="x with pads[2 i] and pads[2 i + 1] elements of a constant around its axis i, negative numbers cutting it")
op("border", "x", ints=4, attrs="dim before after mode", doc="x with a border that is mirrored (mode 0), repeated (1) or cyclic (2)",
   dx=lambda g, x_shape, dim, before, after, mode: _unbordered(g, x_shape[dim], dim, before, after, mode))

# ---- captured functions

op("captured", "*inputs", attrs="shapes", aux="call", public=False, doc="a compiled function; its gradient is a captured program, too",
   dinputs=lambda gs, call: call.differentiate(gs))
op("custom", "*inputs", attrs="call", public=False, doc="an autograd.Function; its gradient is its backward")

# ---- indices

op("index", "x", attrs="index", dx=lambda g, x_shape, index: index_back(g, x_shape, index), doc="elements chosen by arrays of integers or bools")
op("index_back", "x", attrs="shape index", dx=lambda g, index: _index(g, index), doc="x added into zeros at the chosen elements")
op("index_fill", "x", attrs="index", dx=lambda g, index: index_fill(g, index), doc="x with zeros at the chosen elements")
op("index_put", "x v", attrs="index", dx=lambda g, index: index_fill(g, index), dv=lambda g, index: index_kept(g, index),
   special="duplicates: the last one gets the gradient", doc="x with v at the chosen elements")
op("gather", "x index", attrs="dim", dx=lambda g, index, x_shape, dim: put(g, index, x_shape, dim), doc="x[..., index, ...] along dim")
op("put", "x index", attrs="shape dim", dx=lambda g, index, dim: gather(g, index, dim), doc="x added into zeros at index along dim")
op("index_accumulate", "x v", attrs="index", dx=lambda g: g, dv=lambda g, index: _index(g, index), doc="x with v added at the chosen elements")
op("scatter", "x index v", attrs="dim", dx=lambda g, index, dim: scatter_zero(g, index, dim), dv=lambda g, index, dim: scatter_kept(g, index, dim),
   special="duplicates: the last one gets the gradient", doc="x with v at index along dim")
op("scatter_add", "x index v", attrs="dim", dx=lambda g: g, dv=lambda g, index, dim: gather(g, index, dim),
   doc="x with v added at index along dim")
op("scatter_reduce", "x index v", attrs="reduce dim include_self", special="ties of amax and amin: shared evenly; zeros in products: exact",
   dx=lambda g, x, index, v, y, reduce, dim, include_self: scatter_dx(g, x, index, v, y, reduce, dim, include_self),
   dv=lambda g, x, index, v, y, reduce, dim, include_self: scatter_dv(g, x, index, v, y, reduce, dim, include_self),
   doc="x combined with v at index along dim by a product, maximum or minimum")
op("embedding", "weight index", attrs="padding scale", doc="weight[index]; row `padding` gets no gradient; scale: divided by how often each row is used",
   dweight=lambda g, index, weight_shape, padding, scale: embedding_back(g, index, weight_shape, padding, scale))

_index = index
