# Joining and cutting: cat, stack and what is made of them; split, chunk, unbind; tensors brought to more dimensions, or to one shape.
#
# Relies on array, shape, record. methods.py puts some functions into Tensor; rules call cat, stack, pieces, unbind.
# A little more than 500 lines, as joining and cutting are each other's gradients.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, Layout, layout_broadcast, layout_contiguous, layout_decref, layout_incref, layout_strided, layout_view, same_shape,
    shape_tuple, strides_of,
)
from autograd_cy.engine.arguments cimport axis_of, integer, make_quick, need_tensor, plain_ints, unmoved
from autograd_cy.engine.gradients cimport backwards, fit, sum_to_layout
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_set_outputs, node_with_ints, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport copy_elements, promote
from autograd_cy.engine.record cimport record_ints, set_base, set_edge, set_history, view_of, wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport expanded, made, narrowed, reshape_to, zeros_of
from autograd_cy.engine.tensor cimport CYCLIC, Tensor, is_tensor, operators, tensor_alias
from autograd_cy.kernels.table cimport recording

from autograd_cy.array.errors import ShapeError, worded

cdef int BLOCK_DIAG = row_number("block_diag"), GRID = row_number("grid")
cdef Py_ssize_t NOTHING = 0
cdef int CONCATENATE = row_number("concatenate"), STACK = row_number("stack"), PIECES = row_number("pieces"), UNBIND = row_number("unbind")

cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char* data, Py_ssize_t n)
    char* PyBytes_AS_STRING(object o) noexcept
    bint PyIndex_Check(object o) noexcept
    PyObject** PySequence_Fast_ITEMS(PyObject* o) noexcept
    Py_ssize_t PySequence_Fast_GET_SIZE(PyObject* o) noexcept
    bint PyTuple_CheckExact(PyObject* o) noexcept
    bint PyList_CheckExact(PyObject* o) noexcept
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject* error) except? -1         # NULL: what is too large is cut to what there is


cdef enum:
    MOST_PARTS = 1 << 30      # of one tensor, or to join


cdef struct Sizes:            # of parts, and room for two more numbers behind
    Py_ssize_t few[34]
    Py_ssize_t* at


cdef object room_for(Py_ssize_t n, Sizes* sizes):
    """Sizes of n parts; what holds them, if they are many."""
    sizes.at = sizes.few
    if n <= 32:
        return None
    if n > MOST_PARTS:
        raise worded(MemoryError, "out of memory: {} tensors", n)
    memory = PyBytes_FromStringAndSize(NULL, (n + 2) * sizeof(Py_ssize_t))
    sizes.at = <Py_ssize_t*> PyBytes_AS_STRING(memory)
    return memory


# ---- joined

cpdef tuple sequence_of(object tensors, str name):
    """The items of what may hold Tensors."""
    if not isinstance(tensors, (tuple, list)) and not hasattr(tensors, "__iter__"):
        raise worded(TypeError, "{}: expected a sequence of Tensors, got {}", name, type(tensors).__name__)
    return tuple(tensors)


cdef tuple tensors_of(object tensors, str name):
    cdef tuple parts = sequence_of(tensors, name)
    cdef PyObject** items = PySequence_Fast_ITEMS(<PyObject*> parts)
    cdef Py_ssize_t i, n = len(parts)
    for i in range(n):
        if not is_tensor(items[i]):
            need_tensor(<object> items[i], name)
    if not n:
        raise worded(ShapeError, "{}: expected at least one tensor", name)
    return parts


cdef object recorded_join(int n, PyObject** parts, Tensor out, int row, int n_ints, const Py_ssize_t* ints):
    if out.dtype_ <= FLOAT64:
        record_ints(<PyObject*> out, row, n, parts, n_ints, ints)
    return out


cdef inline void copy_part(Tensor out, Py_ssize_t to, Tensor part, const Py_ssize_t* strides) noexcept:
    """All of a tensor to a place of another."""
    copy_elements(part.layout.numel, part.layout.ndim, part.layout.dims, out.dtype_, out.data + to * itemsize_of(out.dtype_), strides,
                  part.dtype_, part.data, strides_of(part.layout))


cdef bint is_nothing(Tensor x) noexcept:
    """PyTorch joins empty tensors of one dimension with anything; they add nothing."""
    return x.layout.ndim == 1 and x.layout.numel == 0


cdef extern from *:
    """
    /* m pieces of so many bytes, which lie one after the other, and then are `step` apart */
    static void ag_pieces(Py_ssize_t m, Py_ssize_t bytes, char* to, Py_ssize_t step, const char* from) {
        if (bytes == 4) for (; m > 0; m--, to += step, from += 4) memcpy(to, from, 4);
        else if (bytes == 16) for (; m > 0; m--, to += step, from += 16) memcpy(to, from, 16);
        else for (; m > 0; m--, to += step, from += bytes) ag_move(to, from, bytes);
    }
    """
    void ag_pieces(Py_ssize_t m, Py_ssize_t size, char* to, Py_ssize_t step, const char* source) noexcept

cdef enum:
    PLAIN_PARTS = 32
    PLAIN_ELEMENTS = 1024


cdef object joined_plainly(PyObject* given, object dim, bint stacks, int least):
    """cat or stack of a few small tensors that lie alike, in a tuple or list; None of others. For cat as hstack and its like do it, `least`
    is how many dimensions they ask for: tensors of one less are stacked."""
    cdef PyObject* parts[PLAIN_PARTS]
    cdef PyObject** items
    cdef Py_ssize_t k, axis, n
    cdef Layout* layout
    if not PyTuple_CheckExact(given) and not PyList_CheckExact(given) or type(dim) is not int or recording():
        return None
    items, n, axis = PySequence_Fast_ITEMS(given), PySequence_Fast_GET_SIZE(given), dim
    if not 0 < n <= PLAIN_PARTS or not is_tensor(items[0]):
        return None
    layout = (<Tensor> items[0]).layout
    if least:
        stacks = layout.ndim == least - 1
        axis = min(axis, layout.ndim + stacks - 1)
    if not 0 < layout.numel * n <= PLAIN_ELEMENTS or not layout.flags & CONTIGUOUS or layout.ndim + stacks > MAX_NDIM \
            or layout.ndim < least - 1 or not -layout.ndim - stacks <= axis < layout.ndim + stacks:
        return None
    for k in range(n):
        parts[k] = items[k]
        if not is_tensor(parts[k]) or (<Tensor> parts[k]).layout != layout or (<Tensor> parts[k]).dtype_ != (<Tensor> parts[0]).dtype_:
            return None
    for k in range(n):                        # what runs from here on, the collector, say, may change a list
        Py_INCREF(<object> parts[k])
    try:
        return joined_held(parts, <int> n, <int> (axis + layout.ndim + stacks if axis < 0 else axis), stacks)
    finally:
        for k in range(n):
            Py_DECREF(<object> parts[k])


cdef object joined_held(PyObject** parts, int n, int axis, bint stacks):
    cdef Layout* layout = (<Tensor> parts[0]).layout
    cdef int ndim = layout.ndim + stacks, i, k
    cdef Py_ssize_t outer = 1, size = 1 if stacks else layout.dims[axis], block
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t ints[PLAIN_PARTS + 1]
    for i in range(axis):
        shape[i] = layout.dims[i]
        outer *= shape[i]
    shape[axis] = n * size
    block = size
    for i in range(axis + 1, ndim):
        shape[i] = layout.dims[i - stacks]
        block *= shape[i]
    cdef Tensor out = made(ndim, shape, (<Tensor> parts[0]).dtype_)
    block *= itemsize_of(out.dtype_)
    for k in range(n):
        ag_pieces(outer, block, out.data + k * block, n * block, (<Tensor> parts[k]).data)
        ints[k] = size
    ints[0 if stacks else n] = axis
    return recorded_join(n, parts, out, STACK if stacks else CONCATENATE, 1 if stacks else n + 1, ints)


cdef object joined(object given, object dim, str name, int least=0):
    plainly = joined_plainly(<PyObject*> given, dim, False, least)
    if plainly is not None:
        return plainly
    cdef tuple parts = with_dims(given, least, name)
    return joined_any(parts, min(<int> dim, (<Tensor> parts[0]).layout.ndim - 1) if least else dim, name)


cdef object joined_any(tuple given, object dim, str name):
    cdef PyObject** parts = PySequence_Fast_ITEMS(<PyObject*> given)
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int n = <int> len(given)
    cdef Sizes room
    _memory = room_for(n, &room)
    cdef Py_ssize_t* sizes = room.at
    cdef Py_ssize_t start = 0
    cdef Tensor part, out
    cdef Layout* first = NULL
    cdef int dtype = -1, nothing = 0, axis, i, k
    for k in range(n):
        if (<Tensor> parts[k]).dtype_ != dtype:
            dtype = promote(dtype, (<Tensor> parts[k]).dtype_)
        if is_nothing(<Tensor> parts[k]):
            nothing += 1
        elif first == NULL:
            first = (<Tensor> parts[k]).layout
    if first == NULL:
        first = (<Tensor> parts[0]).layout
    if first.ndim == 0:
        raise worded(ShapeError, "{}: 0-d tensors can't be joined; use stack()", name)
    axis = axis_of(dim, first.ndim, name)
    for i in range(first.ndim):
        shape[i] = first.dims[i]
    if nothing and first.ndim != 1:                            # joined in a shape that fits, whose gradient comes back as it is
        shape[axis] = 0
        given = tuple([reshape_to(<Tensor> p, first.ndim, shape) if is_nothing(<Tensor> p) else p for p in given])
        parts = PySequence_Fast_ITEMS(<PyObject*> given)
    for k in range(n):
        part = <Tensor> parts[k]
        shape[axis] = sizes[k] = part.layout.dims[axis] if axis < part.layout.ndim else 0
        for i in range(max(part.layout.ndim, first.ndim) if part.layout != first else 0):
            if part.layout.ndim != first.ndim or part.layout.dims[i] != shape[i]:
                raise worded(ShapeError, "{}: shapes {} and {.shape} differ in more than dim {}", name, shape_tuple(first), part, axis)
        if start > (<Py_ssize_t> 1 << 58) - sizes[k]:
            raise worded(ShapeError, "{}: more than a tensor can hold along dim {}", name, axis)
        start += sizes[k]
    shape[axis] = start
    out = made(first.ndim, shape, dtype)
    start = 0
    for k in range(n):
        copy_part(out, start * strides_of(out.layout)[axis], <Tensor> parts[k], strides_of(out.layout))
        start += sizes[k]
    sizes[n] = axis
    return recorded_join(n, parts, out, CONCATENATE, n + 1, sizes)


def cat(tensors, dim=0):
    """Tensors joined along `dim`; all other sizes must agree. dtypes are promoted."""
    return joined(tensors, dim, "cat")


def stack(tensors, dim=0):
    """Tensors of one shape joined along a new dimension."""
    plainly = joined_plainly(<PyObject*> tensors, dim, True, 0)
    return stacked_any(tensors_of(tensors, "stack"), dim) if plainly is None else plainly


cdef object stacked_any(tuple given, object dim):
    cdef PyObject** parts = PySequence_Fast_ITEMS(<PyObject*> given)
    cdef Layout* first = (<Tensor> parts[0]).layout
    cdef Tensor part, out
    cdef Py_ssize_t axis
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = first.ndim, n = <int> len(given), dtype = -1, i, k
    for k in range(n):
        part = <Tensor> parts[k]
        dtype = promote(dtype, part.dtype_)
        if not same_shape(part.layout, first):
            raise worded(ShapeError, "stack: shapes {} and {.shape} differ", shape_tuple(first), part)
    if ndim == MAX_NDIM:
        raise worded(ShapeError, "stack: a tensor has at most {} dimensions", MAX_NDIM)
    axis = axis_of(dim, ndim + 1, "stack")
    for i in range(ndim):
        shape[i + (i >= axis)] = first.dims[i]
    shape[axis] = n
    out = made(ndim + 1, shape, dtype)
    for i in range(ndim):
        strides[i] = strides_of(out.layout)[i + (i >= axis)]
    for k in range(n):
        copy_part(out, k * strides_of(out.layout)[axis], <Tensor> parts[k], strides)
    return recorded_join(n, parts, out, STACK, 1, &axis)


cdef Tensor at_least(Tensor x, int ndim):
    """x with dimensions of size 1: in front, but the third behind, as atleast_1d to atleast_3d add them."""
    cdef Py_ssize_t shape[3]
    if x.layout.ndim >= ndim:
        return x
    shape[0] = shape[1] = shape[2] = 1
    if x.layout.ndim == 2:
        shape[0], shape[1] = x.layout.dims[0], x.layout.dims[1]
    elif x.layout.ndim == 1:
        shape[1] = x.layout.dims[0]
    return reshape_to(x, ndim, shape)


cdef tuple with_dims(object tensors, int ndim, str name):
    cdef tuple parts = tensors_of(tensors, name)
    for p in parts:
        if (<Tensor> p).layout.ndim < ndim:
            return tuple([at_least(<Tensor> p, ndim) for p in parts])
    return parts


def block_diag(*tensors):
    """A matrix with the given matrices (vectors are rows) along its diagonal, zeros elsewhere."""
    cdef tuple given = tensors_of(tensors if len(tensors) else (made(1, &NOTHING, FLOAT32),), "block_diag")
    return blocks_of(PySequence_Fast_ITEMS(<PyObject*> given), len(given))


cdef object quick_blocks(PyObject** parts, Py_ssize_t n, PyObject* names):
    cdef Py_ssize_t k
    for k in range(n):
        if not is_tensor(parts[k]):
            return None
    return blocks_of(parts, n) if n and names == NULL else None


cdef object blocks_of(PyObject** parts, Py_ssize_t n):
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t rows, cols, size
    cdef int dtype = -1, k
    cdef bint plain = not recording()
    cdef Layout* part
    cdef Sizes room
    _memory = room_for(2 * n, &room)
    shape[0] = shape[1] = 0
    for k in range(n):
        part = (<Tensor> parts[k]).layout
        if part.ndim > 2:
            raise worded(RuntimeError, "block_diag: expected tensors of at most 2 dimensions, got shape {.shape}", <object> parts[k])
        plain = plain and part.flags & CONTIGUOUS and (k == 0 or (<Tensor> parts[k]).dtype_ == dtype)
        dtype = promote(dtype, (<Tensor> parts[k]).dtype_)
        room.at[2 * k] = part.dims[0] if part.ndim == 2 else 1
        room.at[2 * k + 1] = part.dims[part.ndim - 1] if part.ndim else 1
        shape[0] += room.at[2 * k]
        shape[1] += room.at[2 * k + 1]
        if max(shape[0], shape[1]) > <Py_ssize_t> 1 << 58:
            raise ShapeError("block_diag: more rows or columns than a tensor can hold")
    cdef Tensor out = zeros_of(2, shape, dtype)
    size = itemsize_of(dtype)
    shape[0] = 0
    for k in range(<int> n):
        rows, cols = room.at[2 * k], room.at[2 * k + 1]
        if plain and out.layout.numel <= PLAIN_ELEMENTS:
            ag_pieces(rows, cols * size, out.data + shape[0] * size, shape[1] * size, (<Tensor> parts[k]).data)
        else:
            copy_part(out, shape[0], <Tensor> parts[k], strides_of(out.layout) + 2 - (<Tensor> parts[k]).layout.ndim)
        shape[0] += rows * shape[1] + cols
    return recorded_join(<int> n, parts, out, BLOCK_DIAG, <int> (2 * n), room.at)


make_quick(block_diag, NULL, quick_blocks)


cdef int blocks_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """block_diag: every block of the gradient, as it lies."""
    cdef Tensor g = <Tensor> grads[0]
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef const Py_ssize_t* steps = strides_of(g.layout)
    cdef Py_ssize_t start = 0
    cdef int i
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            result[i] = fit(tensor_alias(g, layout_strided(2, ints + 2 * i, steps), g.data + start * itemsize_of(g.dtype_)), node, i)
        start += ints[2 * i] * steps[0] + ints[2 * i + 1] * steps[1]
    return 0


backwards[BLOCK_DIAG] = blocks_backward


def hstack(tensors):
    """Tensors joined along dimension 1 (of one dimension: 0)."""
    return joined(tensors, 1, "hstack", 1)


def vstack(tensors):
    """Tensors joined along dimension 0, those of one dimension as rows."""
    return joined(tensors, 0, "vstack", 2)


def dstack(tensors):
    """Tensors joined along dimension 2, after atleast_3d."""
    return joined(tensors, 2, "dstack", 3)


def column_stack(tensors):
    """Tensors joined along dimension 1, those of one dimension as columns."""
    plainly = joined_plainly(<PyObject*> tensors, 1, False, 2)
    if plainly is not None:
        return plainly
    return joined_any(tuple([as_column(<Tensor> p) for p in tensors_of(tensors, "column_stack")]), 1, "column_stack")


cdef Tensor as_column(Tensor x):
    cdef Py_ssize_t shape[2]
    shape[0], shape[1] = x.layout.numel, 1
    return x if x.layout.ndim > 1 else reshape_to(x, 2, shape)


cdef object each_at_least(tuple tensors, int ndim, str name):
    if len(tensors) == 1 and is_tensor(<PyObject*> tensors[0]):
        return at_least(<Tensor> tensors[0], ndim)
    given = sequence_of(tensors[0], name) if len(tensors) == 1 else tensors
    return tuple([at_least(need_tensor(t, name), ndim) for t in given])


def atleast_1d(*tensors):
    """A tensor of 0 dimensions as one of one; of several tensors: a tuple."""
    return each_at_least(tensors, 1, "atleast_1d")


def atleast_2d(*tensors):
    """With dimensions of size 1 in front, up to two; of several tensors: a tuple."""
    return each_at_least(tensors, 2, "atleast_2d")


def atleast_3d(*tensors):
    """With dimensions of size 1 around, up to three: (n,) becomes (1, n, 1), (n, m) becomes (n, m, 1); of several tensors: a tuple."""
    return each_at_least(tensors, 3, "atleast_3d")


# ---- of one shape

def broadcast_tensors(*tensors):
    """The tensors expanded to the shape that they broadcast to. Raises RuntimeError where they don't."""
    cdef Layout* layout = layout_contiguous(0, NULL)
    cdef Layout* wider
    cdef list parts = list(sequence_of(tensors[0], "broadcast_tensors") if len(tensors) == 1 and not is_tensor(<PyObject*> tensors[0])
                           else tensors)
    cdef int i
    for i in range(<int> len(parts)):
        wider = layout_broadcast(layout, need_tensor(parts[i], "broadcast_tensors").layout)
        layout_decref(layout)
        layout = wider
        if layout == NULL:
            raise worded(ShapeError, "broadcast_tensors: shapes {} do not broadcast against each other",
                                     ' and '.join([str(t.shape) for t in parts]))
    for i in range(<int> len(parts)):
        parts[i] = expanded(<Tensor> parts[i], layout.ndim, layout.dims)
    layout_decref(layout)
    return tuple(parts)


def meshgrid(*tensors, str indexing="ij"):
    """Grids: tensor i repeated along all dimensions but i. indexing "xy" exchanges the first two dimensions."""
    cdef list parts = list(tensors_of(tensors[0] if len(tensors) == 1 and not is_tensor(<PyObject*> tensors[0]) else tensors, "meshgrid"))
    cdef Py_ssize_t sizes[MAX_NDIM + 1]
    cdef int n = <int> len(parts)
    cdef bint xy = indexing == "xy", swaps = xy and n > 1
    cdef Tensor t
    cdef int i
    if not xy and indexing != "ij":
        raise worded(RuntimeError, "meshgrid: indexing must be \"ij\" or \"xy\", got {!r}", indexing)
    if n > MAX_NDIM:
        raise worded(ShapeError, "meshgrid: a tensor has at most {} dimensions, got {} tensors", MAX_NDIM, n)
    for i in range(n):
        t = <Tensor> parts[i]
        if t.layout.ndim > 1:
            raise worded(RuntimeError, "meshgrid: expected tensors of at most 1 dimension, got shapes {}",
                                       ', '.join([str(p.shape) for p in parts]))
        if t.dtype_ != (<Tensor> parts[0]).dtype_:
            raise RuntimeError("meshgrid: expected tensors of one dtype")
        sizes[1 - i if swaps and i < 2 else i] = t.layout.numel
    for i in range(n):
        parts[i] = grid_of(<Tensor> parts[i], 1 - i if swaps and i < 2 else i, n, sizes)
    return tuple(parts)


cdef object quick_grids(PyObject** given, Py_ssize_t n, PyObject* names):
    """meshgrid of vectors, "ij"."""
    cdef Py_ssize_t sizes[MAX_NDIM + 1]
    cdef Py_ssize_t i
    if names != NULL and (len(<tuple> names) != 1 or (<tuple> names)[0] != "indexing" or <object> given[n] != "ij"):
        return None
    if not 0 < n <= MAX_NDIM:
        return None
    for i in range(n):
        if not is_tensor(given[i]) or (<Tensor> given[i]).layout.ndim != 1 or (<Tensor> given[i]).dtype_ != (<Tensor> given[0]).dtype_:
            return None
        sizes[i] = (<Tensor> given[i]).layout.numel
    cdef tuple parts = PyTuple_New(n)
    for i in range(n):
        part = grid_of(<Tensor> given[i], <int> i, <int> n, sizes)
        Py_INCREF(part)
        PyTuple_SET_ITEM(parts, i, part)
    return parts


cdef object grid_of(Tensor t, int at, int n, Py_ssize_t* sizes):
    """t, of at most one dimension, repeated along all dimensions but `at`. There is room for another number behind the sizes."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i
    for i in range(n):
        strides[i] = 0
    if t.layout.ndim:
        strides[at] = strides_of(t.layout)[0]
    sizes[n] = at
    return view_of(t, layout_strided(n, sizes, strides), t.data, GRID, n + 1, sizes)


make_quick(meshgrid, NULL, quick_grids)


cdef int grid_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The sum over all dimensions but one."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Layout* layout
    cdef Layout* full = node.edges[0].layout
    cdef int i, at = <int> (<const Py_ssize_t*> node.saved)[g.layout.ndim]
    for i in range(g.layout.ndim):
        shape[i] = g.layout.dims[i] if i == at else 1
    layout = layout_contiguous(g.layout.ndim, shape)
    g = own(sum_to_layout(g, layout))
    layout_decref(layout)
    result[0] = tensor_alias(g, layout_view(g.layout, full.ndim, full.dims), g.data)
    return 0


backwards[GRID] = grid_backward


def cartesian_prod(*tensors):
    """All choices of one element of each tensor (of one dimension), as rows."""
    cdef tuple given = tensors_of(tensors, "cartesian_prod")
    for t in given:
        if (<Tensor> t).layout.ndim != 1:
            raise RuntimeError("cartesian_prod: expected tensors of one dimension")
    return given[0] if len(given) == 1 else all_choices(meshgrid(*given))


cdef object quick_product(PyObject** given, Py_ssize_t n, PyObject* names):
    grids = quick_grids(given, n, names) if n > 1 and names == NULL else None
    return None if grids is None else all_choices(grids)


cdef object all_choices(tuple grids):
    cdef Tensor joined = stacked_any(grids, len(grids))
    cdef Py_ssize_t shape[2]
    shape[1] = len(grids)
    shape[0] = joined.layout.numel // shape[1]
    return reshape_to(joined, 2, shape)


make_quick(cartesian_prod, NULL, quick_product)


# ---- cut

cdef tuple cut(Tensor x, int row, Py_ssize_t n, Py_ssize_t* sizes, int dim):
    """n consecutive views along dim, of one node; those of unbind are without dim. There is room for another number behind the sizes."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t count[2]
    cdef Py_ssize_t k, size, last = -1
    cdef Py_ssize_t step = strides_of(x.layout)[dim] * itemsize_of(x.dtype_)
    cdef char* data = x.data
    cdef PyObject* node = NULL
    cdef PyObject* before = NULL
    cdef PyObject* out
    cdef Layout* layout = NULL
    cdef bint drops = row == UNBIND
    cdef int i, ndim = x.layout.ndim - drops
    if n > MOST_PARTS:
        raise worded(MemoryError, "out of memory: {} tensors", n)
    cdef tuple parts = PyTuple_New(n)
    if n and wants_grad(x) and grad_enabled():
        if drops:
            count[0], count[1] = n, dim
            node = node_with_ints(row, 1, 2, count)
        else:
            sizes[n] = dim
            node = node_with_ints(row, 1, <int> n + 1, sizes)
        set_edge(&(<Node> node).edges[0], x)
        node_set_outputs(<Node> node, <int> n)
        remember_line(<Node> node)
    for i in range(ndim):
        shape[i], strides[i] = x.layout.dims[i + (drops and i >= dim)], strides_of(x.layout)[i + (drops and i >= dim)]
    for k in range(n):
        size = 1 if drops else sizes[k]
        if size == last:
            layout_incref(layout)
        else:
            if not drops:
                shape[dim] = size
            layout = layout_strided(ndim, shape, strides)
            last = size
        out = tensor_alias(x, layout, data)
        PyTuple_SET_ITEM(parts, k, <object> out)          # the tuple's is the new reference
        set_base(out, x)
        data += size * step
        if node != NULL:
            Py_INCREF(<object> node)
            if k == 0 or (<Tensor> before).flags & CYCLIC:
                set_history(out, node, <int> k)
            else:
                (<Tensor> out).node, (<Tensor> out).output_nr, (<Tensor> out).needs_grad = node, <int> k, 1
            before = out
    if node != NULL:
        Py_DECREF(<object> node)
    return parts


cdef int cut_axis(Tensor x, object dim, str name) except -1:
    if x.layout.ndim == 0:
        raise worded(ShapeError, "{}: a tensor of 0 dimensions can't be cut", name)
    return axis_of(dim, x.layout.ndim, name)


def unbind(input, dim=0):
    """The slices along dim, without it: a tuple of views."""
    cdef Tensor a = need_tensor(input, "unbind")
    cdef int axis = cut_axis(a, dim, "unbind")
    return cut(a, UNBIND, a.layout.dims[axis], NULL, axis)


cdef tuple by_sizes(Tensor x, object given, int axis, str name):
    """Views of the given sizes, which must add up."""
    cdef unsigned long long before = operators.exchanges
    cdef Py_ssize_t size = x.layout.dims[axis], left = size, k = 0
    cdef Sizes room
    cdef PyObject* plain = <PyObject*> given
    cdef Py_ssize_t n = plain_ints(&plain, 1, room.few)
    _memory = None
    room.at = room.few
    if n < 0:
        n = len(given)                                                  # it may change x
        _memory = room_for(n, &room)
        for wanted in given:
            if k == n:
                break
            room.at[k] = wanted if type(wanted) is int else integer(wanted, "a size", name)
            k += 1
        unmoved(before, name)
        left = left if k == n else -1
    for k in range(n):
        if not 0 <= room.at[k] <= left:
            left = -1
            break
        left -= room.at[k]
    if left:
        raise worded(ShapeError, "{}: sizes {} do not add up to {}, the size of dim {} of shape {.shape}", name, list(given), size, axis, x)
    return cut(x, PIECES, n, room.at, axis)


cdef tuple by_number(Tensor x, Py_ssize_t n, Py_ssize_t size, Py_ssize_t larger, int axis):
    """n views of a size, the first `larger` of them by one larger, the last one of what is left."""
    cdef Py_ssize_t k, left = x.layout.dims[axis]
    cdef Sizes room
    _memory = room_for(n, &room)
    for k in range(n):
        room.at[k] = min(size + (k < larger), left)
        left -= room.at[k]
    return cut(x, PIECES, n, room.at, axis)


def pieces(Tensor x, sizes, int dim):
    """Consecutive views along dim: outputs of one node."""
    return by_sizes(x, sizes, dim, "split")


def split(tensor, split_size_or_sections, dim=0):
    """Consecutive views along dim: of one size (the last may be smaller), or of the given sizes."""
    cdef Tensor a = need_tensor(tensor, "split")
    cdef int axis = cut_axis(a, dim, "split")
    cdef Py_ssize_t n = a.layout.dims[axis], size
    if not isinstance(split_size_or_sections, int):
        return by_sizes(a, split_size_or_sections, axis, "split")
    size = split_size_or_sections
    if size < 0 or (size == 0 and n):
        raise worded(ShapeError, "split: the size must be positive, got {}", size)
    return by_number(a, (n - 1) // size + 1 if n else 1, size, 0, axis)


def chunk(input, Py_ssize_t chunks, dim=0):
    """At most `chunks` views of equal size along dim (the last may be smaller)."""
    cdef Tensor a = need_tensor(input, "chunk")
    cdef int axis = cut_axis(a, dim, "chunk")
    cdef Py_ssize_t n = a.layout.dims[axis], size = (n - 1) // max(chunks, 1) + 1 if n else 0
    if chunks < 1:
        raise worded(ShapeError, "chunk: expected at least 1 chunk, got {}", chunks)
    return by_number(a, (n - 1) // size + 1 if n else chunks, size, 0, axis)


def tensor_split(input, indices_or_sections, dim=0):
    """Views along dim: so many of (nearly) equal size, or cut before the given places."""
    cdef Tensor x = need_tensor(input, "tensor_split")
    cdef unsigned long long before = operators.exchanges
    cdef int axis = cut_axis(x, dim, "tensor_split")
    cdef Py_ssize_t size = x.layout.dims[axis], sections, start = 0, place, n, k = 0
    cdef object given = indices_or_sections
    cdef PyObject* plain = <PyObject*> given
    cdef Sizes room
    cdef bint falls = False
    if is_tensor(<PyObject*> given):
        if given.ndim > 1 or given.dtype.name != "int64":
            raise worded(RuntimeError, "tensor_split: expected int64 in at most 1 dimension, got {0.dtype} of shape {0.shape}", given)
        given = given.tolist()
    if PyIndex_Check(given):
        sections = integer(given, "the number of sections", "tensor_split")
        if sections < 1:
            raise worded(RuntimeError, "tensor_split: expected at least 1 section, got {}", sections)
        return by_number(x, sections, size // sections, size % sections, axis)
    n = plain_ints(&plain, 1, room.few)
    room.at = room.few
    _memory = None
    if n < 0:
        given = tuple(given)
        n = len(given)
        _memory = room_for(n, &room)
        for at in given:
            room.at[k] = PyNumber_AsSsize_t(at, NULL)
            k += 1
        unmoved(before, "tensor_split")
    room.at[n] = size
    for k in range(n + 1):                                              # places become sizes
        place = max(min(room.at[k], size), -size)
        place += size if place < 0 else 0
        room.at[k] = place - start
        falls |= place < start
        start = place
    if not falls:
        return cut(x, PIECES, n + 1, room.at, axis)
    parts, start = [], 0
    for k in range(n + 1):
        parts.append(narrowed(x, axis, start, max(room.at[k], 0)))
        start += room.at[k]
    return tuple(parts)


# ---- first derivatives, as the rules give them

cdef int joined_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """cat and stack: every part of the gradient, as it lies."""
    cdef Tensor g = <Tensor> grads[0]
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef bint drops = node.opcode == STACK
    cdef int axis = <int> ints[0 if drops else node.n_edges]
    cdef Py_ssize_t start = 0, size
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t step = strides_of(g.layout)[axis] * itemsize_of(g.dtype_)
    cdef int i, ndim = g.layout.ndim - drops
    for i in range(ndim):
        shape[i], strides[i] = g.layout.dims[i + (drops and i >= axis)], strides_of(g.layout)[i + (drops and i >= axis)]
    for i in range(node.n_edges):
        size = 1 if drops else ints[i]
        if node.edges[i].target != NULL:
            if not drops:
                shape[axis] = size
            result[i] = fit(tensor_alias(g, layout_strided(ndim, shape, strides), g.data + start * step), node, i)
        start += size
    return 0


cdef int cut_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """split and unbind: the gradients of all parts, joined; zeros for parts that were not used."""
    cdef Layout* full = node.edges[0].layout
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef bint drops = node.opcode == UNBIND
    cdef int axis = <int> ints[1 if drops else node.n_outputs]
    cdef Tensor out = zeros_of(full.ndim, full.dims, node.edges[0].dtype)
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t start = 0
    cdef int i, k
    for i in range(full.ndim - drops):
        strides[i] = strides_of(out.layout)[i + (drops and i >= axis)]
    for k in range(node.n_outputs):
        if grads[k] != NULL:
            copy_part(out, start * strides_of(out.layout)[axis], <Tensor> grads[k], strides)
        start += 1 if drops else ints[k]
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[CONCATENATE] = backwards[STACK] = joined_backward
backwards[PIECES] = backwards[UNBIND] = cut_backward
