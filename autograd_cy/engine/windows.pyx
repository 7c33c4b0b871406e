# Windows on memory: diagonals, triangles, sliding windows, as_strided; how a view of a base that was changed in place is differentiated.
#
# A few lines above 500 lines, as what writes to a window shares how windows are found.
#
# Relies on array, shape, record. record.pyx makes nodes for views of changed bases; the rules of the table call the functions here;
# methods.py makes diagonal and unfold methods.
#
# `base` is (shape, strides) of the base, `view` is (shape, strides, offset) of the window, in elements. Where a row describes a window
# itself (diagonal, unfold), its gradient is that of a window on a base without gaps, however the input lay in memory.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    OVERLAPPING, Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_dense_like, layout_incref, layout_strided,
    layout_view, same_layout, same_shape, strides_of,
)
from autograd_cy.array.storage cimport FOREIGN
from autograd_cy.engine.arguments cimport axis_of, integer, need_tensor, read_shape
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport AS_STRIDED, REPLACE_STRIDED, Edge, Node, node_with_ints, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport GRAIN, contiguous_of, copy_into, copy_of
from autograd_cy.engine.record cimport any_wants_grad, made_of, record, set_edge, set_history, view_of, wants_grad
from autograd_cy.engine.routines cimport routine_of, row_number
from autograd_cy.engine.shape cimport copied_as_clone, copy_block, fill_one, made, zeros_of
from autograd_cy.engine.slices cimport viewed_by
from autograd_cy.engine.tensor cimport Tensor, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport Array, K

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.shape import select, sum_to

cdef int AS_STRIDED_BACK = row_number("as_strided_back"), FILL_STRIDED = row_number("fill_strided")
cdef int DIAGONAL = row_number("diagonal"), DIAGONAL_BACK = row_number("diagonal_back"), UNFOLD = row_number("unfold")
cdef int TRIANGLE = row_number("triangle"), TRIANGLE_ROUTINE = routine_of("moving.triangle")

cdef extern from "Python.h":
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject* error) except? -1         # NULL: what is too large is cut to what there is


cdef Layout* base_layout(tuple base) except NULL:
    """The base's layout; RuntimeError where one place in memory stands for several elements, as their gradients differ."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(base[0], shape, "as_strided")
    cdef Layout* layout
    read_shape(base[1], strides, "as_strided")
    layout = layout_strided(ndim, shape, strides)
    check_base(layout)
    return layout


cdef int check_base(Layout* layout) except -1:
    if layout.flags & OVERLAPPING:
        raise RuntimeError("a window on memory (as_strided, or a view that was changed in place) whose base has several elements in one "
                           "memory location (it was expanded) has no gradient; clone() the base first")
    return 0


cdef struct Reach:            # of a window: offsets of its lowest and its highest element; none: 0, -1
    Py_ssize_t lowest
    Py_ssize_t highest


cdef Reach reach_of(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset) noexcept:
    cdef Reach reach
    cdef int i
    reach.lowest = reach.highest = offset
    for i in range(ndim):
        if shape[i] == 0:
            reach.lowest, reach.highest = 0, -1
            return reach
        if strides[i] < 0:
            reach.lowest += (shape[i] - 1) * strides[i]
        else:
            reach.highest += (shape[i] - 1) * strides[i]
    return reach


cdef Reach window_reach(tuple view):
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(view[0], shape, "as_strided")
    read_shape(view[1], strides, "as_strided")
    return reach_of(ndim, shape, strides, view[2])


cdef Tensor zeros_around(Layout* layout, int dtype, tuple view):
    """Zeros of any layout, one that has gaps or negative strides too, on memory that reaches as far as the window."""
    cdef Reach base = reach_of(layout.ndim, layout.dims, strides_of(layout), 0)
    cdef Reach window = window_reach(view)
    cdef Py_ssize_t lowest = min(base.lowest, window.lowest, 0)
    cdef Py_ssize_t highest = max(base.highest, window.highest, -1)
    cdef Tensor memory = FUNCTIONS["zeros"]((highest - lowest + 1,), dtype)
    layout_incref(layout)
    return own(tensor_alias(memory, layout, memory.data - lowest * itemsize_of(dtype)))


cdef Tensor laid_out(Tensor x, tuple base, tuple view):
    """x in memory laid out as the base, and as far as the window reaches; x itself where it lies so."""
    cdef Layout* layout = base_layout(base)
    cdef Reach own_reach = reach_of(layout.ndim, layout.dims, strides_of(layout), 0)
    cdef Reach window = window_reach(view)
    cdef bint inside = window.highest < window.lowest or own_reach.lowest <= window.lowest and window.highest <= own_reach.highest
    cdef Tensor out = x
    if not inside or not same_layout(layout, x.layout):
        out = zeros_around(layout, x.dtype_, view)
        copy_into(out, x)
    layout_decref(layout)
    return out


cdef object window(Tensor x, tuple view):
    """The tensor on x's memory with the view's shape, strides and offset; no history."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(view[0], shape, "as_strided")
    cdef Py_ssize_t offset = view[2]
    read_shape(view[1], strides, "as_strided")
    return own(tensor_alias(x, layout_strided(ndim, shape, strides), x.data + offset * itemsize_of(x.dtype_)))


cdef object recorded_window(int row, object out, Tensor x, tuple base, tuple view):
    cdef PyObject* inputs[1]
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (base, view)
        record(row, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def strided_copy(Tensor x, tuple base, tuple view):
    """A copy of the window `view` on x laid out as `base`."""
    cdef Tensor seen = window(laid_out(x, base, view), view)
    cdef Layout* layout = layout_dense_like(seen.layout)
    out = own(copy_of(seen, layout))
    layout_decref(layout)
    return recorded_window(AS_STRIDED, out, x, base, view)


cdef int add_overlapping(Tensor seen, Tensor g) except -1:
    """seen += g, where elements of `seen` share places: one row of places after the other, as many axes in a row as keep apart."""
    cdef Py_ssize_t* dims = seen.layout.dims
    cdef Py_ssize_t* strides = strides_of(seen.layout)
    cdef int first = seen.layout.ndim
    cdef Layout* layout
    cdef bint apart = True
    cdef Tensor offsets
    cdef Tensor values
    cdef int i
    while apart and first > 0:
        layout = layout_strided(seen.layout.ndim - first + 1, dims + first - 1, strides + first - 1)
        apart = not layout.flags & OVERLAPPING
        layout_decref(layout)
        first -= apart
    offsets = FUNCTIONS["zeros"]((), INT64)
    for i in range(first):
        offsets = (<object> offsets).unsqueeze(-1) + FUNCTIONS["arange"](dims[i]) * strides[i]
    values = own(contiguous_of(g))
    K.scatter_add(g.dtype_, offsets.layout.numel, <const Py_ssize_t*> offsets.data, seen.layout.ndim - first, dims + first,
                  strides + first, values.data, seen.data)
    return 0


def as_strided_back(Tensor x, tuple base, tuple view):
    """x summed into zeros at the window: the gradient of as_strided."""
    cdef Layout* layout = base_layout(base)
    cdef Tensor out
    cdef Tensor seen
    cdef Tensor g = x
    out = zeros_around(layout, x.dtype_, view)
    layout_decref(layout)
    squashed = tuple([1 if stride == 0 and size else size for size, stride in zip(view[0], view[1])])
    seen = window(out, (squashed, view[1], view[2]))
    if squashed != tuple(view[0]):
        g = sum_to(x.detach(), squashed)
    if seen.layout.flags & OVERLAPPING:
        add_overlapping(seen, g)
    else:
        copy_into(seen, g)
    return recorded_window(AS_STRIDED_BACK, out, x, base, view)


def fill_strided(Tensor x, tuple base, tuple view):
    """x with zeros at the window."""
    cdef Tensor out = laid_out(x, base, view)
    if out is x:
        out = zeros_around(x.layout, x.dtype_, view)
        copy_into(out, x)
    copy_into(window(out, view), FUNCTIONS["zeros"]((), x.dtype_))
    return recorded_window(FILL_STRIDED, out, x, base, view)


cdef object replaced(Tensor x, object src, Tensor out, object part, str name):
    """out, a copy of x, after `part`, a view of it, was overwritten: the row replace_strided."""
    cdef Tensor v = need_tensor(src, name), seen = part
    cdef PyObject* node
    cdef Py_ssize_t offset
    if not same_shape(seen.layout, v.layout):
        raise worded(RuntimeError, "{}: expected src of shape {.shape}, got {.shape}", name, seen, v)
    copy_into(seen, v)
    if out.dtype_ < INT64 and (wants_grad(x) or wants_grad(v)) and grad_enabled():
        offset = (seen.data - out.data) // itemsize_of(out.dtype_)
        node = node_with_ints(REPLACE_STRIDED, 2, 1, &offset)
        edge_laid_out(&(<Node> node).edges[0], x, out.layout)
        edge_laid_out(&(<Node> node).edges[1], v, seen.layout)
        remember_line(<Node> node)
        set_history(<PyObject*> out, node, 0)
    return out


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with src on its diagonal."""
    cdef Tensor x = need_tensor(input, "diagonal_scatter"), out = copied_as_clone(x)
    return replaced(x, src, out, diagonal_of(out, offset, dim1, dim2), "diagonal_scatter")


def select_scatter(input, src, dim, index):
    """input with src as its slice at index of dim."""
    cdef Tensor x = need_tensor(input, "select_scatter"), out = copied_as_clone(x)
    return replaced(x, src, out, select(out, dim, index), "select_scatter")


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with src as its slices start:end:step of dim."""
    cdef Tensor x = need_tensor(input, "slice_scatter"), out = copied_as_clone(x)
    cdef int axis = axis_of(dim, x.layout.ndim, "slice_scatter")
    if step < 1:
        raise worded(RuntimeError, "slice_scatter: step must be at least 1, got {}", step)
    one = slice(start, end, step)
    return replaced(x, src, out, viewed_by(out, (*[slice(None)] * axis, one) if axis else one, "slice_scatter"), "slice_scatter")


cdef int edge_laid_out(Edge* edge, Tensor x, Layout* layout) except -1:
    """The edge for x, seen in another layout of its shape."""
    set_edge(edge, x)
    layout_incref(layout)
    layout_decref(edge.layout)
    edge.layout = layout
    return 0


# ---- triangles

def triangle(Tensor x, diagonal, bint lower):
    """x with zeros above (lower) or below a diagonal of its last two dimensions."""
    cdef Array arrays[2]
    cdef Py_ssize_t shape[3]
    cdef Py_ssize_t strides[3]
    cdef Py_ssize_t out_strides[3]
    cdef Py_ssize_t ints[2]
    cdef Py_ssize_t place = PyNumber_AsSsize_t(diagonal, NULL), ndim = x.layout.ndim
    cdef Layout* layout
    cdef Layout* seen
    cdef Tensor out, a = x
    if ndim < 2:
        raise worded(ShapeError, "{}: expected at least 2 dimensions, got shape {.shape}", 'tril' if lower else 'triu', x)
    layout = layout_contiguous_like(x.layout)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    shape[1], shape[2] = x.layout.dims[ndim - 2], x.layout.dims[ndim - 1]
    ints[0], ints[1] = max(-shape[1], min(place, shape[2])), lower
    if x.layout.numel:
        shape[0] = x.layout.numel // (shape[1] * shape[2])
        strides[0], strides[1], strides[2] = 0, strides_of(x.layout)[ndim - 2], strides_of(x.layout)[ndim - 1]
        if ndim > 2:
            seen = layout_view(x.layout, 3, shape)
            if seen == NULL:
                a = own(contiguous_of(x))
                seen = layout_contiguous(3, shape)
            strides[0], strides[1], strides[2] = strides_of(seen)[0], strides_of(seen)[1], strides_of(seen)[2]
            layout_decref(seen)
        out_strides[0], out_strides[1], out_strides[2] = shape[1] * shape[2], shape[2], 1
        arrays[0].data, arrays[0].dtype, arrays[0].ndim, arrays[0].shape, arrays[0].strides = out.data, x.dtype_, 3, shape, out_strides
        arrays[1].data, arrays[1].dtype, arrays[1].ndim, arrays[1].shape, arrays[1].strides = a.data, x.dtype_, 3, shape, strides
        if x.layout.numel < GRAIN:
            K.routine(TRIANGLE_ROUTINE, arrays, 2, ints, 0, NULL)
        else:
            with nogil:
                K.routine(TRIANGLE_ROUTINE, arrays, 2, ints, 0, NULL)
    return made_of(x, out, TRIANGLE, 2, ints)


def tril(input, diagonal=0):
    """The matrices of the last two dimensions with zeros above a diagonal."""
    return triangle(need_tensor(input, "tril"), diagonal, True)


def triu(input, diagonal=0):
    """The matrices of the last two dimensions with zeros below a diagonal."""
    return triangle(need_tensor(input, "triu"), diagonal, False)


cdef int triangle_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The first derivative of triangle, as the rule gives it."""
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    out = triangle(<Tensor> grads[0], ints[0], ints[1])
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[TRIANGLE] = triangle_backward


# ---- views for users

cdef tuple plain_strides(shape):
    """Row-major strides without gaps."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The elements x[..., i, ..., i + offset, ...] of dims dim1 and dim2, whose place is the last dimension. A view.

    Raises IndexError for dims out of range, RuntimeError where both are the same.
    """
    return diagonal_of(need_tensor(input, "diagonal"), offset, dim1, dim2)


cdef object diagonal_of(Tensor a, object offset, object dim1, object dim2):
    cdef int ndim = a.layout.ndim, first, second
    cdef Py_ssize_t shift = integer(offset, "the offset", "diagonal")
    if ndim < 2:
        raise worded(IndexError, "diagonal: expected at least 2 dimensions, got shape {.shape}", a)
    first, second = axis_of(dim1, ndim, "diagonal"), axis_of(dim2, ndim, "diagonal")
    if first == second:
        raise worded(RuntimeError, "diagonal: dim1 and dim2 must differ, got {} and {}", dim1, dim2)
    return diagonal_at(a, shift, first, second, False)


cdef object diagonal_at(Tensor a, Py_ssize_t shift, int first, int second, bint copies):
    """A view, or a copy that is recorded likewise."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t attrs[3]
    cdef Py_ssize_t length, start = 0
    cdef Tensor out
    cdef int i, n = 0
    for i in range(a.layout.ndim):
        if i != first and i != second:
            shape[n], strides[n] = a.layout.dims[i], strides_of(a.layout)[i]
            n += 1
    if shift >= 0:
        length = min(a.layout.dims[first], a.layout.dims[second] - min(shift, a.layout.dims[second]))
        start = shift * strides_of(a.layout)[second] if length > 0 else 0
    else:
        length = min(a.layout.dims[first] + max(shift, -a.layout.dims[first]), a.layout.dims[second])
        start = -shift * strides_of(a.layout)[first] if length > 0 else 0
    shape[n], strides[n] = max(length, 0), strides_of(a.layout)[first] + strides_of(a.layout)[second]
    attrs[0], attrs[1], attrs[2] = shift, first, second
    if copies:
        out = made(n + 1, shape, a.dtype_)
        copy_block(out, 0, a, start, n + 1, shape, strides_of(out.layout), strides)
        return made_of(a, out, DIAGONAL, 3, attrs)
    return view_of(a, layout_strided(n + 1, shape, strides), a.data + start * itemsize_of(a.dtype_), DIAGONAL, 3, attrs)


cdef object on_diagonal(Tensor x, int ndim, Py_ssize_t* attrs):
    """x on a diagonal of zeros; attrs: their shape, offset, dim1, dim2."""
    cdef Tensor out = zeros_of(ndim, attrs, x.dtype_)
    cdef Py_ssize_t offset = attrs[ndim], first = attrs[ndim + 1], second = attrs[ndim + 2]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t* steps = strides_of(out.layout)
    cdef int i, n = 0
    for i in range(ndim):
        if i != first and i != second:
            strides[n] = steps[i]
            n += 1
    strides[n] = steps[first] + steps[second]
    copy_block(out, offset * steps[second] if offset >= 0 else -offset * steps[first], x, 0, n + 1, x.layout.dims, strides,
               strides_of(x.layout))
    return made_of(x, out, DIAGONAL_BACK, ndim + 3, attrs)


cdef int diagonal_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The first derivatives of diagonal and of its gradient, as the rules give them."""
    cdef Tensor g = <Tensor> grads[0]
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef Py_ssize_t attrs[MAX_NDIM + 3]
    cdef int i, ndim = node.edges[0].layout.ndim
    if node.opcode == DIAGONAL:
        for i in range(ndim + 3):
            attrs[i] = node.edges[0].layout.dims[i] if i < ndim else ints[i - ndim]
        out = on_diagonal(g, ndim, attrs)
    else:
        out = diagonal_at(g, ints[ndim + 1], <int> ints[ndim + 2], <int> ints[ndim + 3], False)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[DIAGONAL] = backwards[DIAGONAL_BACK] = diagonal_backward


def diagonal_back(Tensor x, shape, Py_ssize_t offset, int dim1, int dim2):
    """x placed on the diagonal of zeros: the gradient of diagonal."""
    cdef Py_ssize_t attrs[MAX_NDIM + 3]
    cdef int ndim = read_shape(shape, attrs, "diagonal_back")
    attrs[ndim], attrs[ndim + 1], attrs[ndim + 2] = offset, dim1, dim2
    return on_diagonal(x, ndim, attrs)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Zeros with the last dimension of input on the diagonal (i, i + offset) of dims dim1 and dim2 of the result.

    Raises IndexError for dims out of range, RuntimeError where both are the same.
    """
    cdef Tensor x = need_tensor(input, "diag_embed")
    cdef int ndim = x.layout.ndim + 1, first, second
    cdef Py_ssize_t shift = integer(offset, "the offset", "diag_embed")
    if not 0 < x.layout.ndim < MAX_NDIM:
        raise worded(RuntimeError, "diag_embed: expected 1 to {} dimensions, got {}", MAX_NDIM - 1, x.layout.ndim)
    first, second = axis_of(dim1, ndim, "diag_embed"), axis_of(dim2, ndim, "diag_embed")
    if first == second:
        raise worded(RuntimeError, "diag_embed: dim1 and dim2 must differ, got {} and {}", dim1, dim2)
    return embedded(x, shift, first, second)


cdef object embedded(Tensor x, Py_ssize_t shift, int first, int second):
    cdef Py_ssize_t attrs[MAX_NDIM + 3]
    cdef int ndim = x.layout.ndim + 1, i, n = 0
    cdef Py_ssize_t size = x.layout.dims[ndim - 2]
    if not -LARGEST < shift < LARGEST:
        raise worded(ShapeError, "diag_embed: diagonal {} is out of reach", shift)
    size += shift if shift >= 0 else -shift
    for i in range(ndim):
        if i == first or i == second:
            attrs[i] = size
        else:
            attrs[i] = x.layout.dims[n]
            n += 1
    attrs[ndim], attrs[ndim + 1], attrs[ndim + 2] = shift, first, second
    return on_diagonal(x, ndim, attrs)


def diag(input, diagonal=0):
    """Of a vector: the matrix with it on a diagonal; of a matrix: a copy of its diagonal."""
    cdef Tensor x = need_tensor(input, "diag")
    cdef Py_ssize_t shift = integer(diagonal, "the diagonal", "diag")
    if x.layout.ndim == 1:
        return embedded(x, shift, 0, 1)
    if x.layout.ndim != 2:
        raise worded(RuntimeError, "diag: expected a vector or a matrix, got shape {.shape}", x)
    return diagonal_at(x, shift, 0, 1, True)


def unfold(input, dimension, size, step):
    """All slices of `size` elements along a dimension, `step` apart; what is in a slice becomes the last dimension. A view.

    The result has (n - size) // step + 1 slices. Raises RuntimeError where the size is negative or larger than n, or step < 1.
    """
    cdef Tensor a = need_tensor(input, "unfold")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = a.layout.ndim
    cdef int axis = axis_of(dimension, ndim, "unfold")
    cdef Py_ssize_t length = integer(size, "the size", "unfold"), by = integer(step, "the step", "unfold")
    cdef Py_ssize_t n = a.layout.dims[axis] if ndim else 1
    cdef Py_ssize_t attrs[3]
    cdef int i
    if not 0 <= length <= n:
        raise worded(RuntimeError, "unfold: size must lie between 0 and the size {} of dim {} of shape {.shape}, got {}",
                                   n, axis, a, length)
    if by < 1:
        raise worded(RuntimeError, "unfold: step must be at least 1, got {}", by)
    if ndim == MAX_NDIM:
        raise worded(ShapeError, "unfold: a tensor has at most {} dimensions", MAX_NDIM)
    for i in range(ndim):
        shape[i], strides[i] = a.layout.dims[i], strides_of(a.layout)[i]
    shape[ndim], strides[ndim] = length, strides[axis] if ndim else 1
    if ndim:
        shape[axis] = (n - length) // by + 1
        strides[axis] = strides[axis] * by if shape[axis] > 1 else strides[axis]
    attrs[0], attrs[1], attrs[2] = axis, length, by
    return view_of(a, layout_strided(ndim + 1, shape, strides), a.data, UNFOLD, 3, attrs)


def unfold_back(g, shape, dimension, size, step):
    """g added into zeros, each slice where it was: the gradient of unfold."""
    if not len(shape):
        return FUNCTIONS["reshape"](g, ()) if size else FUNCTIONS["zeros"]((), g.dtype.code)
    strides = plain_strides(shape)
    moved = tuple([s * step if i == dimension else s for i, s in enumerate(strides)])
    return as_strided_back(g, (tuple(shape), strides), (g.shape, (*moved, strides[dimension]), 0))


def as_strided(input, size, stride, storage_offset=None):
    """A view of the storage of input by shape, strides and offset in elements (None: where input begins).

    Its gradient goes to the elements of input; what else of the storage the window shows counts as constant.
    Raises RuntimeError where the window leaves the storage, or for an input that needs a gradient and has several elements in one place.
    """
    cdef Tensor a = need_tensor(input, "as_strided")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t ints[2 * MAX_NDIM + 1]
    cdef Py_ssize_t here = (a.data - a.storage.data) // itemsize_of(a.dtype_)
    cdef Py_ssize_t offset = here if storage_offset is None else integer(storage_offset, "storage_offset", "as_strided")
    cdef int ndim = read_shape(size, shape, "as_strided")
    cdef Layout* layout
    cdef Reach reach, own_reach
    cdef int i
    if read_shape(stride, strides, "as_strided") != ndim:
        raise worded(ShapeError, "as_strided: size {} and stride {} differ in length", tuple(size), tuple(stride))
    for i in range(ndim):
        if shape[i] < 0:
            raise worded(ShapeError, "as_strided: invalid size {} in {}", shape[i], tuple(size))
        if not -LARGEST < strides[i] < LARGEST or shape[i] > LARGEST:
            raise worded(RuntimeError, "as_strided: size {} and stride {} leave the storage", tuple(size), tuple(stride))
    if not 0 <= offset < LARGEST:
        raise worded(RuntimeError, "as_strided: storage_offset {} leaves the storage", offset)
    layout = layout_strided(ndim, shape, strides)
    reach = checked_reach(ndim, shape, strides, offset)
    own_reach = reach_of(a.layout.ndim, a.layout.dims, strides_of(a.layout), here)
    if not (own_reach.lowest <= reach.lowest and reach.highest <= own_reach.highest) and (
            a.storage.size_class == FOREIGN or reach.lowest < 0
            or (reach.highest + 1) * itemsize_of(a.dtype_) > <Py_ssize_t> a.storage.nbytes):
        layout_decref(layout)
        raise worded(RuntimeError, "as_strided: size {}, stride {} and offset {} leave the storage of {} elements",
                                   tuple(size), tuple(stride), offset, a.storage.nbytes // itemsize_of(a.dtype_))
    if wants_grad(a):
        check_base(a.layout)                          # refuses now what has no gradient
    for i in range(ndim):
        ints[i], ints[ndim + i] = shape[i], strides[i]
    ints[2 * ndim] = offset - here
    return view_of(a, layout, a.storage.data + offset * itemsize_of(a.dtype_), AS_STRIDED, 2 * ndim + 1, ints)


cdef Py_ssize_t LARGEST = <Py_ssize_t> 1 << 40        # elements that a window may be away


cdef Reach checked_reach(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset) noexcept:
    """As reach_of, but what is too far away is told as such, without an overflow."""
    cdef double low = offset
    cdef double high = offset
    cdef Reach reach
    cdef int i
    for i in range(ndim):
        low += (<double> shape[i] - 1) * strides[i] if strides[i] < 0 else 0
        high += (<double> shape[i] - 1) * strides[i] if strides[i] > 0 else 0
    if low < -1e15 or high > 1e15:
        reach.lowest, reach.highest = -1, 0
        return reach
    return reach_of(ndim, shape, strides, offset)
