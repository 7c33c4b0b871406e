"""Views, copies, and elements chosen by indices. An `index` of slices has (start, length, step) per axis, or (None, None, None).

Relies on rows.py and functions.py only.
"""

from ..functions import (
    as_strided, as_strided_back, concatenate, fill_strided, gather, index, index_back, index_fill, permute, pieces, put, reshape,
    slice, sum_to, unslice,
)
from ..rows import op

# ---- views and copies: index is a tuple with (start, length, step) per axis, or (None, None, None) for a whole one

op("reshape", "x", kind="view", attrs="shape", dx=lambda g, x_shape: reshape(g, x_shape), doc="the same elements in another shape")
op("permute", "x", kind="view", attrs="order", doc="axes in another order",
   dx=lambda g, order: permute(g, tuple(sorted(range(len(order)), key=order.__getitem__))))
op("expand", "x", kind="view", attrs="shape", dx=lambda g, x_shape: sum_to(g, x_shape), doc="repeated along axes of size 1, without copying")
op("slice", "x", kind="view", attrs="index shape", dx=lambda g, x_shape, index: unslice(g, x_shape, index),
   doc="start:stop:step along each axis, in the given shape (axes of size 1 dropped or added)")
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

# ---- captured functions

op("captured", "*inputs", attrs="shapes", aux="call", public=False, doc="a compiled function; its gradient is a captured program, too",
   dinputs=lambda gs, call: call.differentiate(gs))
op("custom", "*inputs", attrs="call", public=False, doc="an autograd.Function; its gradient is its backward")

# ---- indices

op("index", "x", attrs="index", dx=lambda g, x_shape, index: index_back(g, x_shape, index), doc="elements chosen by arrays of integers or bools")
op("index_back", "x", attrs="shape index", dx=lambda g, index: _index(g, index), doc="x added into zeros at the chosen elements")
op("index_fill", "x", attrs="index", dx=lambda g, index: index_fill(g, index), doc="x with zeros at the chosen elements")
op("index_put", "x v", attrs="index", dx=lambda g, index: index_fill(g, index), dv=lambda g, index: _index(g, index),
   doc="x with v at the chosen elements")
op("gather", "x index", attrs="dim", dx=lambda g, index, x_shape, dim: put(g, index, x_shape, dim), doc="x[..., index, ...] along dim")
op("put", "x index", attrs="shape dim", dx=lambda g, index, dim: gather(g, index, dim), doc="x added into zeros at index along dim")

_index = index
