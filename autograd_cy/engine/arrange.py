"""Shapes made of other shapes, where a few rows in Python will do: products, combinations, triangles' places.

Relies on shape, blocks, windows, joins and creation; every function is a few of their rows, so that gradients follow. methods.py makes
methods of most, the package's front functions.
"""

from operator import index as as_int

import numpy as np

from ..array.dtypes import bool as boolean
from ..array.dtypes import int64
from ..array.errors import ShapeError
from . import blocks, creation, joins, shape, windows
from .arguments import need_tensor
from .copies import show_as
from .gather import index_select
from .index import choices, nonzero
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

def repeat_interleave_by(input, repeats, dim, output_size):
    """repeat_interleave by what is no plain integer."""
    if repeats is None:
        places = creation.arange(need_tensor(input, "repeat_interleave").shape[0], dtype=input.dtype)
        return repeat_interleave_by(places, input, 0, output_size)
    if dim is None:
        input, dim = shape.reshape(input, -1), 0
    axis = _axis(dim, input.ndim, "repeat_interleave")
    if not input.ndim:
        input = shape.reshape(input, 1)
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and repeats.ndim < 2:
        repeats = repeats.item()
    if not isinstance(repeats, (Tensor, list, tuple)):
        return blocks.repeat_interleave(input, int(as_int(repeats)), axis)
    if isinstance(repeats, Tensor) and (repeats.is_floating_point() or repeats.ndim != 1):
        raise RuntimeError(f"repeat_interleave: repeats must be integers in one dimension, got {repeats.dtype} of shape {repeats.shape}")
    counts = _escaping(repeats, "repeat_interleave() by a tensor")
    if len(counts) != input.shape[axis]:
        raise RuntimeError(f"repeat_interleave: {len(counts)} repeats for dim {axis} of shape {input.shape}")
    if min(counts, default=0) < 0:
        raise RuntimeError("repeat_interleave: repeats must not be negative")
    if sum(counts) >= 2 ** 58:                         # NumPy's own sum of them may be too large for its type
        raise ShapeError(f"repeat_interleave: {sum(counts)} elements along dim {axis} are more than a tensor can hold")
    places = np.repeat(np.arange(len(counts)), counts)
    if output_size is not None and output_size != len(places):
        raise RuntimeError(f"repeat_interleave: the repeats add up to {len(places)}, not to output_size {output_size}")
    return index_select(input, axis, creation.tensor(places))


def fliplr(input):
    """input with the order along dimension 1 reversed."""
    if need_tensor(input, "fliplr").ndim < 2:
        raise RuntimeError(f"fliplr: expected at least 2 dimensions, got shape {input.shape}")
    return blocks.flip(input, 1)


def flipud(input):
    """input with the order along dimension 0 reversed."""
    if need_tensor(input, "flipud").ndim < 1:
        raise RuntimeError("flipud: expected at least 1 dimension, got a tensor of 0")
    return blocks.flip(input, 0)


# ---- several

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


def combinations(input, r=2, with_replacement=False):
    """All choices of r elements of a vector, in its order, as rows."""
    if need_tensor(input, "combinations").ndim != 1:
        raise RuntimeError(f"combinations: expected a vector, got shape {input.shape}")
    if r < 0:
        raise RuntimeError(f"combinations: expected a number that is not negative, got {r}")
    if r == 0:
        return creation.empty(0, dtype=input.dtype)
    return choices(input, r, with_replacement)


# ---- cut

def _split(name, least, axis):
    def split(input, indices_or_sections):
        if need_tensor(input, name).ndim < least:
            raise RuntimeError(f"{name}: expected at least {least} dimensions, got shape {input.shape}")
        along, parts = axis if input.ndim > axis else 0, indices_or_sections
        if hasattr(parts, "__index__") and not isinstance(parts, Tensor) and (parts < 1 or input.shape[along] % parts):
            raise RuntimeError(f"{name}: dim {along} of shape {input.shape} does not divide into {parts} equal parts")
        return joins.tensor_split(input, parts, along)
    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"Views along dimension {axis}: so many of equal size, or cut before the given places."
    return split


hsplit, vsplit, dsplit = _split("hsplit", 1, 1), _split("vsplit", 2, 0), _split("dsplit", 3, 2)


def output_shapes(attrs, shape):
    """The shapes of the outputs of a node that has several: of `pieces` (sizes, dim), `unbind` (count, dim), or as it says itself."""
    if len(attrs) == 1:
        return attrs[0]
    sizes, dim = attrs
    if isinstance(sizes, int):
        return [(*shape[:dim], *shape[dim + 1:])] * sizes
    return [(*shape[:dim], size, *shape[dim + 1:]) for size in sizes]


# ---- diagonals and triangles

def diagflat(input, offset=0):
    """The matrix with all elements of input on a diagonal."""
    return windows.diag_embed(shape.reshape(input, -1), offset)


def tril_(self, diagonal=0):
    """In place: zeros above a diagonal."""
    return self.copy_(windows.tril(self, diagonal))


def triu_(self, diagonal=0):
    """In place: zeros below a diagonal."""
    return self.copy_(windows.triu(self, diagonal))


def _triangle_indices(name, triangle):
    def function(row, col, offset=0, *, dtype=int64, device=None):
        if row < 0 or col < 0:
            raise RuntimeError(f"{name}: row and col must not be negative, got {row} and {col}")
        return nonzero(triangle(creation.ones(row, col, dtype=boolean, device=device), offset)).t().contiguous().to(dtype)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Rows and columns of what {name[:4]} keeps of a (row, col) matrix, as a (2, n) tensor."
    return function


tril_indices, triu_indices = _triangle_indices("tril_indices", windows.tril), _triangle_indices("triu_indices", windows.triu)


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

