"""Views, copies, and elements chosen by indices. An `index` of slices has (start, length, step) per axis, or (None, None, None).

Relies on rows.py and functions.py only.
"""

from ..functions import (
    as_strided, as_strided_back, concatenate, diagonal_back, embedding_back, fill_strided, gather, index, index_back, index_fill, index_kept, permute,
    pieces, put, reshape, scatter_dv, scatter_dx, scatter_kept, scatter_zero, slice, stack, sum_to, triangle, unfold_back, unslice,
)
from ..rows import op


def _one(dim, start, length):
    """The index of slices that cuts one axis only."""
    return ((None, None, None),) * dim + ((start, length, 1),)


# ---- views and copies: index is a tuple with (start, length, step) per axis, or (None, None, None) for a whole one

op("reshape", "x", kind="view", ints=True, attrs="shape", dx=lambda g, x_shape: reshape(g, x_shape), doc="the same elements in another shape")
op("permute", "x", kind="view", ints=True, attrs="order", doc="axes in another order",
   dx=lambda g, order: permute(g, tuple(sorted(range(len(order)), key=order.__getitem__))))
op("expand", "x", kind="view", ints=True, attrs="shape", dx=lambda g, x_shape: sum_to(g, x_shape), doc="repeated along axes of size 1, without copying")
op("slice", "x", kind="view", attrs="index shape", dx=lambda g, x_shape, index: unslice(g, x_shape, index),
   doc="start:stop:step along each axis, in the given shape (axes of size 1 dropped or added)")
op("select", "x", kind="view", ints=True, attrs="dim index", dx=lambda g, x_shape, dim, index: unslice(g, x_shape, _one(dim, index, 1)),
   doc="the slice at index of one axis, without the axis")
op("narrow", "x", kind="view", ints=True, attrs="dim start length", dx=lambda g, x_shape, dim, start, length: unslice(g, x_shape, _one(dim, start, length)),
   doc="neighbouring slices of one axis")
op("unslice", "x", attrs="shape index", dx=lambda g, x_shape, index: slice(g, index, x_shape), doc="x placed at a slice of zeros")
op("as_strided", "x", kind="view", attrs="base view", dx=lambda g, base, view: as_strided_back(g, base, view),
   doc="a window on memory laid out as `base`, with the shape, strides and offset of `view`")
op("as_strided_back", "x", attrs="base view", dx=lambda g, base, view: as_strided(g, base, view), doc="x summed into zeros at a window")
op("fill_strided", "x", attrs="base view", dx=lambda g, base, view: fill_strided(g, base, view), doc="x with zeros at a window")
op("replace_strided", "x v", attrs="base view", dx=lambda g, base, view: fill_strided(g, base, view),
   dv=lambda g, base, view: as_strided(g, base, view), doc="x after its window was overwritten by v")
op("clone", "x", dx=lambda g: g, doc="a copy")
op("convert", "x", attrs="dtype", dx=lambda g: g, doc="x in another dtype")
op("copy", "x v", dv=lambda g: g, doc="x overwritten by v")
op("concatenate", "*xs", attrs="sizes dim", dxs=lambda g, sizes, dim: pieces(g, sizes, dim), doc="tensors joined along dim")
op("pieces", "x", kind="view", attrs="sizes dim", dx=lambda gs, sizes, dim: concatenate(gs, dim), doc="consecutive parts along dim")
op("unbind", "x", kind="view", attrs="count dim", dx=lambda gs, dim: stack(gs, dim), doc="the slices of one axis, without the axis")

op("diagonal", "x", kind="view", ints=True, attrs="offset dim1 dim2", doc="elements (i, i + offset) of two dimensions, as the last one",
   dx=lambda g, x_shape, offset, dim1, dim2: diagonal_back(g, x_shape, offset, dim1, dim2))
op("unfold", "x", kind="view", ints=True, attrs="dimension size step", doc="slices of a dimension, which may overlap, as the last one",
   dx=lambda g, x_shape, dimension, size, step: unfold_back(g, x_shape, dimension, size, step))
op("triangle", "x", attrs="diagonal lower", dx=lambda g, diagonal, lower: triangle(g, diagonal, lower),
   doc="x with zeros above (lower) or below a diagonal of its last two dimensions")
op("pad", "x", attrs="index shape value", dx=lambda g, x_shape, index: slice(g, index, x_shape), doc="x placed at a slice of a constant")

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
