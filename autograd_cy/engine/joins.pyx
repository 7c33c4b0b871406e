# Joining and cutting: cat, stack, split, chunk, unbind; padding and triangles.
#
# Relies on array, dispatch, shape, record, kernels/moving. methods.py puts the functions into Tensor; rules call cat, pieces, triangle.
# arrange.py has what is made of these.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_strided, layout_view, strides_of,
)
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, node_set_outputs, remember_line
from autograd_cy.engine.operands cimport contiguous_of, copy_into, promote
from autograd_cy.engine.record cimport any_wants_grad, record, set_base, set_edge, set_history, wants_grad
from autograd_cy.engine.routines cimport run_routine
from autograd_cy.engine.shape cimport axis_of, fill_one, need_tensor, own
from autograd_cy.engine.tensor cimport Tensor, tensor_alias, tensor_new

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import ShapeError
from autograd_cy.engine.creation import full
from autograd_cy.engine.shape import slice_axes, unsqueeze
from autograd_cy.engine.tensor import OPCODES
from autograd_cy.kernels.table import routine_number

cdef int CONCATENATE = OPCODES["concatenate"], PIECES = OPCODES["pieces"], UNBIND = OPCODES["unbind"]
cdef int TRIANGLE = OPCODES["triangle"], PAD = OPCODES["pad"]
cdef int TRIANGLE_ROUTINE = routine_number("moving.triangle")


def cat(tensors, dim=0):
    """Tensors joined along `dim`; all other sizes must agree. dtypes are promoted."""
    cdef list parts = list(tensors)
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t step
    cdef Tensor part
    cdef Tensor first
    cdef Tensor out
    cdef Layout* layout
    cdef PyObject* node
    cdef int dtype = -1
    cdef int axis, i
    cdef Py_ssize_t start = 0
    cdef bint recorded = False
    if not parts:
        raise ShapeError("cat: expected at least one tensor")
    for item in parts:
        part = need_tensor(item, "cat")
        dtype = promote(dtype, part.dtype_)
        recorded = recorded or wants_grad(part)
    # PyTorch joins empty 1-d tensors with anything; they add nothing.
    first = next((p for p in parts if (<Tensor> p).layout.ndim != 1 or (<Tensor> p).layout.numel), parts[0])
    if first.layout.ndim == 0:
        raise ShapeError("cat: 0-d tensors can't be joined; use stack()")
    axis = axis_of(dim, first.layout.ndim, "cat")
    for i in range(first.layout.ndim):
        shape[i] = first.layout.dims[i]
    shape[axis] = 0
    sizes = []
    for item in parts:
        part = item
        if part.layout.ndim == 1 and part.layout.numel == 0 and first.layout.ndim != 1:
            sizes.append(0)
            continue
        if part.layout.ndim != first.layout.ndim or any([part.layout.dims[i] != shape[i] for i in range(part.layout.ndim) if i != axis]):
            raise ShapeError(f"cat: shapes {first.shape} and {part.shape} differ in more than dim {axis}")
        shape[axis] += part.layout.dims[axis]
        sizes.append(part.layout.dims[axis])
    layout = layout_contiguous(first.layout.ndim, shape)
    out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    step = strides_of(out.layout)[axis] * itemsize_of(dtype)
    for item, size in zip(parts, sizes):
        part = item
        if size and part.layout.numel:
            shape[axis] = size
            layout = layout_strided(out.layout.ndim, shape, strides_of(out.layout))
            copy_into(own(tensor_alias(out, layout, out.data + start * step)), part)
        start += size
    if recorded and grad_enabled() and dtype <= 1:
        node = node_new(CONCATENATE, <int> len(parts), 0)
        for i in range(<int> len(parts)):
            set_edge(&(<Node> node).edges[i], <Tensor> parts[i])
        attrs = (tuple(sizes), axis)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        set_history(<PyObject*> out, node, 0)
    return out


def stack(tensors, dim=0):
    """Tensors of one shape joined along a new dimension."""
    cdef list parts = list(tensors)
    if not parts:
        raise ShapeError("stack: expected at least one tensor")
    for item in parts:
        if need_tensor(item, "stack").shape != parts[0].shape:
            raise ShapeError(f"stack: shapes {parts[0].shape} and {item.shape} differ")
    return cat([unsqueeze(p, dim) for p in parts], axis_of(dim, parts[0].ndim + 1, "stack"))


def pieces(Tensor x, sizes, int dim):
    """Consecutive views along dim: outputs of one node."""
    return cut(x, PIECES, tuple(sizes), dim)


cdef tuple cut(Tensor x, int opcode, tuple sizes, int dim):
    """Consecutive views along dim, of one node; those of unbind are without dim."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t step = strides_of(x.layout)[dim] * itemsize_of(x.dtype_)
    cdef PyObject* node = NULL
    cdef PyObject* out
    cdef bint drops = opcode == UNBIND
    cdef int i, k = 0, ndim = x.layout.ndim - drops
    cdef list parts = []
    if wants_grad(x) and grad_enabled() and len(sizes):
        node = node_new(opcode, 1, 0)
        node_set_outputs(<Node> node, <int> len(sizes))
        set_edge(&(<Node> node).edges[0], x)
        attrs = (len(sizes) if drops else sizes, dim)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
    for i in range(ndim):
        shape[i], strides[i] = x.layout.dims[i + (drops and i >= dim)], strides_of(x.layout)[i + (drops and i >= dim)]
    for size in sizes:
        if not drops:
            shape[dim] = size
        out = tensor_alias(x, layout_strided(ndim, shape, strides), x.data + start * step)
        parts.append(own(out))
        set_base(out, x)
        start += <Py_ssize_t> size
        if node != NULL:
            Py_INCREF(<object> node)
            set_history(out, node, k)
        k += 1
    if node != NULL:
        Py_DECREF(<object> node)
    return tuple(parts)


def output_shapes(attrs, shape):
    """The shapes of the outputs of a node that has several: of `pieces` (sizes, dim), `unbind` (count, dim), or as it says itself."""
    if len(attrs) == 1:
        return attrs[0]
    sizes, dim = attrs
    if isinstance(sizes, int):
        return [(*shape[:dim], *shape[dim + 1:])] * sizes
    return [(*shape[:dim], size, *shape[dim + 1:]) for size in sizes]


def split(x, split_size_or_sections, dim=0):
    """Consecutive views along dim: of one size (the last may be smaller), or of the given sizes."""
    cdef Tensor a = need_tensor(x, "split")
    cdef int axis = axis_of(dim, a.layout.ndim, "split")
    if a.layout.ndim == 0:
        raise ShapeError("split: a 0-d tensor can't be split")
    cdef Py_ssize_t n = a.layout.dims[axis]
    cdef Py_ssize_t size
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and n):
            raise ShapeError(f"split: the size must be positive, got {size}")
        sizes = [min(size, n - start) for start in range(0, n, size)] if n else [0]
    else:
        sizes = [int(s) for s in split_size_or_sections]
        if sum(sizes) != n or min(sizes, default=0) < 0:
            raise ShapeError(f"split: sizes {sizes} do not add up to {n}, the size of dim {axis} of shape {a.shape}")
    return pieces(a, sizes, axis)


def chunk(x, chunks, dim=0):
    """At most `chunks` views of equal size along dim (the last may be smaller)."""
    cdef Tensor a = need_tensor(x, "chunk")
    cdef int axis = axis_of(dim, a.layout.ndim, "chunk")
    if a.layout.ndim == 0:
        raise ShapeError("chunk: a 0-d tensor can't be split")
    if chunks < 1:
        raise ShapeError(f"chunk: expected at least 1 chunk, got {chunks}")
    size = -(-a.layout.dims[axis] // chunks)
    return split(a, [0] * chunks if size == 0 else size, axis)


def unbind(x, dim=0):
    """The slices along dim, without it: a tuple of views."""
    cdef Tensor a = need_tensor(x, "unbind")
    cdef int axis = axis_of(dim, a.layout.ndim, "unbind")
    if a.layout.ndim == 0:
        raise ShapeError("unbind: a 0-d tensor has no dimension to unbind")
    return cut(a, UNBIND, (1,) * a.layout.dims[axis], axis)


# ---- beside and around

def padded(Tensor x, tuple index, tuple shape, value):
    """A tensor of `value` with x at the slices `index` (as in slice_axes)."""
    cdef Tensor out = full(shape, value, dtype=DTYPES[x.dtype_])
    cdef PyObject* inputs[1]
    copy_into(slice_axes(out.detach(), index), x)
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (index, shape, value)
        record(PAD, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def triangle(Tensor x, diagonal, bint lower):
    """x with zeros above (lower) or below a diagonal of its last two dimensions."""
    cdef PyObject* arrays[2]
    cdef PyObject* inputs[1]
    cdef Py_ssize_t ints[2]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[3]
    cdef int ndim = x.layout.ndim
    cdef Layout* layout
    cdef Tensor out, matrices, flat
    cdef Tensor a = x
    if ndim < 2:
        raise ShapeError(f"{'tril' if lower else 'triu'}: expected at least 2 dimensions, got shape {x.shape}")
    layout = layout_contiguous_like(x.layout)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    if x.layout.numel:
        shape[1], shape[2] = x.layout.dims[ndim - 2], x.layout.dims[ndim - 1]
        shape[0] = x.layout.numel // (shape[1] * shape[2])
        layout = layout_view(x.layout, 3, shape) if ndim != 2 else NULL
        if ndim == 2:
            strides[0], strides[1], strides[2] = 0, strides_of(x.layout)[0], strides_of(x.layout)[1]
            layout = layout_strided(3, shape, strides)
        elif layout == NULL:
            a = own(contiguous_of(x))
            layout = layout_contiguous(3, shape)
        matrices = own(tensor_alias(a, layout, a.data))
        flat = own(tensor_alias(out, layout_contiguous(3, shape), out.data))
        arrays[0], arrays[1] = <PyObject*> flat, <PyObject*> matrices
        ints[0], ints[1] = max(-shape[1], min(diagonal, shape[2])), lower
        run_routine(TRIANGLE_ROUTINE, arrays, 2, ints)
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (diagonal, lower)
        record(TRIANGLE, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out
