"""Shapes made of other shapes: repeat, flip, roll, stacks, splits, diagonals, triangles, grids.

Relies on shape, windows, joins and creation; every function is a few of their rows, so that gradients follow. methods.py makes methods
of most, the package's front functions.
"""

import itertools
from operator import index as as_int

import numpy as np

from ..array.errors import ShapeError
from . import creation, joins, padding, shape, windows
from .copies import show_as
from .gather import index_select
from .padding import need_tensor
from .tensor import Tensor


def _axis(dim, ndim, name):
    """A dimension number, negative ones counted from the end; a 0-d tensor takes 0 and -1."""
    dim, n = as_int(dim), max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(f"{name}: dim {dim} is out of range for a tensor of {ndim} dimensions")
    return dim % n


def _escaping(values, what):
    """Numbers in a list, those of a tensor too: they leave for Python."""
    if isinstance(values, Tensor):
        creation.escapes(what)
        return values.detach().tolist()
    return list(values)


def _sizes(args):
    return tuple(args[0]) if len(args) == 1 and not hasattr(args[0], "__index__") else args


# ---- repeated

def repeat(input, *repeats):
    """input repeated sizes[i] times along dimension i; more sizes than dimensions add dimensions in front.

    Raises RuntimeError for fewer sizes than dimensions or negative ones.
    """
    counts = tuple(map(as_int, _sizes(repeats)))
    lead = len(counts) - need_tensor(input, "repeat").ndim
    if lead < 0:
        raise RuntimeError(f"repeat: expected at least {input.ndim} sizes for a tensor of shape {input.shape}, got {counts}")
    if min(counts, default=0) < 0:
        raise RuntimeError(f"repeat: sizes must not be negative, got {counts}")
    sizes = (1,) * lead + input.shape
    seen, expanded = [], []
    for count, size in zip(counts, sizes, strict=True):
        if count != 1 and size != 1:
            seen, expanded = [*seen, 1, size], [*expanded, count, size]
        else:
            seen, expanded = [*seen, size], [*expanded, max(count, size) if count and size else 0]
    out = shape.expand(shape.reshape(input, seen), expanded)
    if len(seen) == len(counts):
        return shape.clone(out) if out.numel() == input.numel() else shape.contiguous_tensor(out)
    return shape.reshape(out, tuple(c * s for c, s in zip(counts, sizes, strict=True)))


def tile(input, *dims):
    """As repeat; fewer numbers than dimensions repeat the last dimensions."""
    counts = _sizes(dims)
    return repeat(input, (1,) * (need_tensor(input, "tile").ndim - len(counts)) + tuple(counts))


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Every slice of dim (None: every element) repeated: `repeats` times, or as often as its element of a tensor says.

    repeat_interleave(repeats): number i as often as repeats[i] says. Raises RuntimeError for negative repeats or another length.
    """
    if repeats is None:
        return repeat_interleave(creation.arange(need_tensor(input, "repeat_interleave").shape[0]), input, 0, output_size=output_size)
    if dim is None:
        input, dim = shape.reshape(input, -1), 0
    axis = _axis(dim, input.ndim, "repeat_interleave")
    if not input.ndim:
        input = shape.reshape(input, 1)
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim < 2:
        repeats = repeats.item()
    if not isinstance(repeats, (Tensor, list, tuple)):
        count = as_int(repeats)
        if count < 0:
            raise RuntimeError(f"repeat_interleave: repeats must not be negative, got {count}")
        sizes = list(input.shape)
        out = shape.expand(shape.unsqueeze(input, axis + 1), (*sizes[:axis + 1], count, *sizes[axis + 1:]))
        return shape.reshape(out, (*sizes[:axis], sizes[axis] * count, *sizes[axis + 1:]))
    if isinstance(repeats, Tensor) and (repeats.is_floating_point() or repeats.ndim != 1):
        raise RuntimeError(f"repeat_interleave: repeats must be integers in one dimension, got {repeats.dtype} of shape {repeats.shape}")
    counts = _escaping(repeats, "repeat_interleave() by a tensor")
    if len(counts) != input.shape[axis]:
        raise RuntimeError(f"repeat_interleave: {len(counts)} repeats for dim {axis} of shape {input.shape}")
    if min(counts, default=0) < 0:
        raise RuntimeError("repeat_interleave: repeats must not be negative")
    places = np.repeat(np.arange(len(counts)), counts)
    if output_size is not None and output_size != len(places):
        raise RuntimeError(f"repeat_interleave: the repeats add up to {len(places)}, not to output_size {output_size}")
    return index_select(input, axis, creation.tensor(places))


# ---- turned

def flip(input, *dims):
    """input with the order along dims reversed; a copy."""
    sizes, index = need_tensor(input, "flip").shape, [(None, None, None)] * input.ndim
    axes = [_axis(dim, len(sizes), "flip") for dim in _sizes(dims)]
    if len(set(axes)) < len(axes):
        raise RuntimeError(f"flip: a dim occurs twice in {tuple(_sizes(dims))}")
    for axis in axes if sizes else ():
        index[axis] = (max(sizes[axis] - 1, 0), sizes[axis], -1)
    return shape.clone(shape.slice_axes(input, tuple(index)))


def fliplr(input):
    """input with the order along dimension 1 reversed."""
    if need_tensor(input, "fliplr").ndim < 2:
        raise RuntimeError(f"fliplr: expected at least 2 dimensions, got shape {input.shape}")
    return flip(input, 1)


def flipud(input):
    """input with the order along dimension 0 reversed."""
    if need_tensor(input, "flipud").ndim < 1:
        raise RuntimeError("flipud: expected at least 1 dimension, got a tensor of 0")
    return flip(input, 0)


def rot90(input, k=1, dims=(0, 1)):
    """input turned by k times 90 degrees from dims[0] towards dims[1]."""
    if len(dims) != 2 or need_tensor(input, "rot90").ndim < 2:
        raise RuntimeError(f"rot90: expected 2 dims of a tensor of at least 2 dimensions, got {tuple(dims)} and shape {input.shape}")
    one, other = (_axis(dim, input.ndim, "rot90") for dim in dims)
    if one == other:
        raise RuntimeError(f"rot90: the dims must differ, got {tuple(dims)}")
    k %= 4
    if k == 0:
        return shape.clone(input)
    if k == 2:
        return flip(input, one, other)
    return shape.transpose(flip(input, other if k == 1 else one), one, other)


def roll(input, shifts, dims=None):
    """input with its elements moved by shifts along dims, those that leave coming in at the other end; without dims: flattened."""
    need_tensor(input, "roll")
    shifts = (shifts,) if hasattr(shifts, "__index__") else tuple(shifts)
    dims = () if dims is None else (dims,) if hasattr(dims, "__index__") else tuple(dims)
    if not dims and len(shifts) == 1:
        return shape.reshape(roll(shape.reshape(input, -1), shifts, 0), input.shape)
    if len(dims) != len(shifts) or not dims:
        raise RuntimeError(f"roll: shifts {shifts} and dims {dims} must be as many")
    out = input
    for shift, dim in zip(shifts, dims, strict=True):
        axis = _axis(dim, input.ndim, "roll")
        size = input.shape[axis] if input.ndim else 1
        shift = as_int(shift) % max(size, 1)
        if shift and size:
            out = joins.cat(joins.pieces(out, (size - shift, shift), axis)[::-1], axis)
    return shape.clone(out) if out is input else out


# ---- dimensions

def _each(function):
    def of_several(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        return tuple(function(need_tensor(t, function.__name__)) for t in (tensors[0] if len(tensors) == 1 else tensors))
    of_several.__name__ = of_several.__qualname__ = function.__name__
    of_several.__doc__ = function.__doc__
    return of_several


@_each
def atleast_1d(tensor):
    """A tensor of 0 dimensions as one of one; of several tensors: a tuple."""
    return tensor if tensor.ndim else shape.reshape(tensor, 1)


@_each
def atleast_2d(tensor):
    """With dimensions of size 1 in front, up to two; of several tensors: a tuple."""
    return tensor if tensor.ndim >= 2 else shape.reshape(tensor, (1, 1) if not tensor.ndim else (1, *tensor.shape))


@_each
def atleast_3d(tensor):
    """With dimensions of size 1 around, up to three: (n,) becomes (1, n, 1), (n, m) becomes (n, m, 1); of several tensors: a tuple."""
    sizes = tensor.shape
    return tensor if len(sizes) >= 3 else shape.reshape(tensor, ((1, 1, 1), (1, *sizes, 1), (*sizes, 1))[len(sizes)])


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to. Raises RuntimeError where they don't."""
    shapes = [(s,) if hasattr(s, "__index__") else tuple(s) for s in shapes]
    if any(size < 0 for s in shapes for size in s):
        raise RuntimeError(f"broadcast_shapes: sizes must not be negative, got {shapes}")
    made = [1] * max(map(len, shapes), default=0)
    for sizes in shapes:
        for i, size in enumerate(reversed(sizes), 1):
            if made[-i] == 1:
                made[-i] = size
            elif size not in (1, made[-i]):
                raise RuntimeError(f"broadcast_shapes: shapes {' and '.join(map(str, shapes))} do not broadcast against each other")
    return tuple(made)


def broadcast_tensors(*tensors):
    """The tensors expanded to the shape that they broadcast to."""
    tensors = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    shapes = [need_tensor(t, "broadcast_tensors").shape for t in tensors]
    sizes = shapes[0] if len(set(shapes)) == 1 else broadcast_shapes(*shapes)
    return tuple(shape.expand(t, sizes) for t in tensors)


# ---- joined

def hstack(tensors):
    """Tensors joined along dimension 1 (of one dimension: 0)."""
    tensors = atleast_1d(tuple(tensors))
    return joins.cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


def vstack(tensors):
    """Tensors joined along dimension 0, those of one dimension as rows."""
    return joins.cat(atleast_2d(tuple(tensors)), 0)


def dstack(tensors):
    """Tensors joined along dimension 2, after atleast_3d."""
    return joins.cat(atleast_3d(tuple(tensors)), 2)


def column_stack(tensors):
    """Tensors joined along dimension 1, those of one dimension as columns."""
    return joins.cat([t if need_tensor(t, "column_stack").ndim > 1 else shape.reshape(t, (t.numel(), 1)) for t in tensors], 1)


def block_diag(*tensors):
    """A matrix with the given matrices (vectors are rows) along its diagonal, zeros elsewhere."""
    blocks = [atleast_2d(need_tensor(t, "block_diag")) for t in tensors]
    if any(b.ndim > 2 for b in blocks):
        raise RuntimeError(f"block_diag: expected tensors of at most 2 dimensions, got shapes {', '.join(str(b.shape) for b in blocks)}")
    if not blocks:
        return creation.empty(1, 0)
    width, start, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        rows.append(padding.pad(block, (start, width - start - block.shape[1])))
        start += block.shape[1]
    return joins.cat(rows, 0)


def meshgrid(*tensors, indexing="ij"):
    """Grids: tensor i repeated along all dimensions but i. indexing "xy" exchanges the first two dimensions."""
    tensors = tuple(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    if not tensors:
        raise ShapeError("meshgrid: expected at least one tensor")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing must be \"ij\" or \"xy\", got {indexing!r}")
    if any(need_tensor(t, "meshgrid").ndim > 1 for t in tensors):
        raise RuntimeError(f"meshgrid: expected tensors of at most 1 dimension, got shapes {', '.join(str(t.shape) for t in tensors)}")
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("meshgrid: expected tensors of one dtype")
    swaps = indexing == "xy" and len(tensors) > 1
    if swaps:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    n, sizes = len(tensors), tuple(t.numel() for t in tensors)
    grids = [shape.expand(shape.reshape(t, (1,) * i + (t.numel(),) + (1,) * (n - 1 - i)), sizes) for i, t in enumerate(tensors)]
    return (grids[1], grids[0], *grids[2:]) if swaps else tuple(grids)


def cartesian_prod(*tensors):
    """All choices of one element of each tensor (of one dimension), as rows."""
    if any(need_tensor(t, "cartesian_prod").ndim != 1 for t in tensors):
        raise RuntimeError("cartesian_prod: expected tensors of one dimension")
    if len(tensors) == 1:
        return tensors[0]
    return joins.stack([shape.reshape(g, -1) for g in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """All choices of r elements of a vector, in its order, as rows."""
    if need_tensor(input, "combinations").ndim != 1:
        raise RuntimeError(f"combinations: expected a vector, got shape {input.shape}")
    if r < 0:
        raise RuntimeError(f"combinations: expected a number that is not negative, got {r}")
    if r == 0:
        return creation.empty(0, dtype=input.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1)
    return shape.reshape(index_select(input, 0, creation.tensor(places)), (len(places) // r, r))


# ---- cut

def tensor_split(input, indices_or_sections, dim=0):
    """Views along dim: so many of (nearly) equal size, or cut before the given places."""
    if not need_tensor(input, "tensor_split").ndim:
        raise RuntimeError("tensor_split: expected at least 1 dimension, got a tensor of 0")
    axis = _axis(dim, input.ndim, "tensor_split")
    size, given = input.shape[axis], indices_or_sections
    if isinstance(given, Tensor):
        if given.ndim > 1 or given.dtype.name != "int64":
            raise RuntimeError(f"tensor_split: expected int64 in at most 1 dimension, got {given.dtype} of shape {given.shape}")
        given = _escaping(given, "tensor_split() by a tensor") if given.ndim else given.item()
    if hasattr(given, "__index__"):
        sections = as_int(given)
        if sections < 1:
            raise RuntimeError(f"tensor_split: expected at least 1 section, got {sections}")
        least, more = divmod(size, sections)
        return joins.pieces(input, (least + 1,) * more + (least,) * (sections - more), axis)
    places = [min(max(p + size if p < 0 else p, 0), size) for p in map(as_int, given)]
    bounds = [0, *places, size]
    if bounds == sorted(bounds):
        return joins.pieces(input, tuple(b - a for a, b in itertools.pairwise(bounds)), axis)
    return tuple(shape.narrow(input, axis, a, max(b - a, 0)) for a, b in itertools.pairwise(bounds))


def _split(name, least, axis):
    def split(input, indices_or_sections):
        if need_tensor(input, name).ndim < least:
            raise RuntimeError(f"{name}: expected at least {least} dimensions, got shape {input.shape}")
        along = axis if input.ndim > axis else 0
        if hasattr(indices_or_sections, "__index__") and not isinstance(indices_or_sections, Tensor):
            sections = as_int(indices_or_sections)
            if sections < 1 or input.shape[along] % sections:
                raise RuntimeError(f"{name}: dim {along} of shape {input.shape} does not divide into {sections} equal parts")
        return tensor_split(input, indices_or_sections, along)
    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"Views along dimension {axis}: so many of equal size, or cut before the given places."
    return split


hsplit, vsplit, dsplit = _split("hsplit", 1, 1), _split("vsplit", 2, 0), _split("dsplit", 3, 2)


# ---- diagonals and triangles

def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Zeros with the last dimension of input on the diagonal (i, i + offset) of dims dim1 and dim2 of the result."""
    need_tensor(input, "diag_embed")
    ndim = input.ndim + 1
    one, other = _axis(dim1, ndim, "diag_embed"), _axis(dim2, ndim, "diag_embed")
    if not input.ndim:
        raise RuntimeError("diag_embed: expected at least 1 dimension, got a tensor of 0")
    if one == other:
        raise RuntimeError(f"diag_embed: dim1 and dim2 must differ, got {dim1} and {dim2}")
    size = input.shape[-1] + abs(offset)
    sizes = list(input.shape[:-1])
    for axis in sorted((one, other)):
        sizes.insert(axis, size)
    return windows.diagonal_back(input, tuple(sizes), offset, one, other)


def diag(input, diagonal=0):
    """Of a vector: the matrix with it on a diagonal; of a matrix: its diagonal."""
    ndim = need_tensor(input, "diag").ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag: expected a vector or a matrix, got shape {input.shape}")
    return diag_embed(input, diagonal) if ndim == 1 else shape.clone(windows.diagonal(input, diagonal))


def diagflat(input, offset=0):
    """The matrix with all elements of input on a diagonal."""
    return diag_embed(shape.reshape(input, -1), offset)


def _replaced(input, src, cut, name):
    """A copy of input in which the view cut(copy) shows src."""
    out = shape.clone(need_tensor(input, name))
    view = cut(out)
    if need_tensor(src, name).shape != view.shape:
        raise RuntimeError(f"{name}: expected src of shape {view.shape}, got {src.shape}")
    view.copy_(src)
    return out


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with src on its diagonal."""
    return _replaced(input, src, lambda out: windows.diagonal(out, offset, dim1, dim2), "diagonal_scatter")


def select_scatter(input, src, dim, index):
    """input with src as its slice at index of dim."""
    return _replaced(input, src, lambda out: shape.select(out, dim, index), "select_scatter")


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with src as its slices start:end:step of dim."""
    if step < 1:
        raise RuntimeError(f"slice_scatter: step must be at least 1, got {step}")
    axis = _axis(dim, need_tensor(input, "slice_scatter").ndim, "slice_scatter")
    return _replaced(input, src, lambda out: out[(slice(None),) * axis + (slice(start, end, step),)], "slice_scatter")


def tril(input, diagonal=0):
    """The matrices of the last two dimensions with zeros above a diagonal."""
    return joins.triangle(need_tensor(input, "tril"), diagonal, True)


def triu(input, diagonal=0):
    """The matrices of the last two dimensions with zeros below a diagonal."""
    return joins.triangle(need_tensor(input, "triu"), diagonal, False)


def tril_(self, diagonal=0):
    """In place: zeros above a diagonal."""
    return self.copy_(tril(self, diagonal))


def triu_(self, diagonal=0):
    """In place: zeros below a diagonal."""
    return self.copy_(triu(self, diagonal))


def _triangle_indices(name, indices):
    def function(row, col, offset=0, *, dtype="int64", device=None):
        if row < 0 or col < 0:
            raise RuntimeError(f"{name}: row and col must not be negative, got {row} and {col}")
        return creation.tensor(np.array(indices(row, offset, col)).reshape(2, -1), dtype=dtype)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Rows and columns of what {name[:4]} keeps of a (row, col) matrix, as a (2, n) tensor."
    return function


tril_indices, triu_indices = _triangle_indices("tril_indices", np.tril_indices), _triangle_indices("triu_indices", np.triu_indices)


# ---- the tensor itself seen otherwise

def t_(self):
    """In place: the transpose of a matrix."""
    return show_as(self, shape.t(self), "t_")


def transpose_(self, dim0, dim1):
    """In place: dimensions dim0 and dim1 exchanged."""
    return show_as(self, shape.transpose(self, dim0, dim1), "transpose_")


def squeeze_(self, dim=None):
    """In place: without the dimensions of size 1."""
    return show_as(self, shape.squeeze(self, dim), "squeeze_")


def unsqueeze_(self, dim):
    """In place: with a dimension of size 1 at dim."""
    return show_as(self, shape.unsqueeze(self, dim), "unsqueeze_")


def resize_(self, *sizes):
    """In place: another shape of as many elements. Raises RuntimeError for another number, which would need other memory."""
    sizes = tuple(map(as_int, _sizes(sizes)))
    if self.requires_grad:
        raise RuntimeError("resize_: a tensor that requires gradients can't be resized")
    if int(np.prod(sizes, dtype=object)) != self.numel() or not self.is_contiguous():
        raise RuntimeError(f"resize_: a tensor of shape {self.shape} can't become {sizes} in its memory; make a new one: new_empty()")
    return show_as(self, shape.view(self, sizes), "resize_")

