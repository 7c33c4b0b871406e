# Elements chosen and written by an index along one dimension: gather, index_select, embedding; scatter, scatter_add, scatter_reduce,
# index_add, index_copy, index_fill, one_hot.
#
# Above 500 lines because all of them share few checks and two routines, and another module would add 40 kB.
#
# Relies on array, kernels/moving, routines, shape, record. methods.py puts the functions into Tensor; the rules of the table call gather
# and put. An index of one dimension (index_select ...) is an index of the whole shape that repeats itself, with stride 0.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT32, INT64, MAX_NDIM
from autograd_cy.array.layout cimport (
    OVERLAPPING, Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_expand, layout_incref, layout_strided,
    same_shape, strides_of,
)
from autograd_cy.engine.arguments cimport axis_of, integer, need_tensor, read_shape
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport as_operand_tensor, contiguous_of, converted, copy_of, set_to_zero
from autograd_cy.engine.record cimport any_wants_grad, record, refuse_inplace, rewrite_history, save_tensor, set_edge, unpack, wants_grad
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport narrowed, reshape_to
from autograd_cy.engine.tensor cimport Tensor, tensor_alias, tensor_new

from autograd_cy.array.errors import DTypeError, ShapeError, worded
from autograd_cy.engine.gradients import rule_gradient
from autograd_cy.engine.shape import expand, reshape

cdef int GATHER = row_number("gather"), PUT = row_number("put"), EMBEDDING = row_number("embedding")
cdef int SCATTER = row_number("scatter"), SCATTER_ADD = row_number("scatter_add"), SCATTER_REDUCE = row_number("scatter_reduce")
cdef int GATHER_ROUTINE = routine_of("moving.gather"), SCATTER_ROUTINE = routine_of("moving.scatter")
cdef int WINNERS_ROUTINE = routine_of("moving.winners"), REDUCE_ROUTINE = routine_of("moving.reduce")

cdef enum:                    # Kind in kernels/moving
    REPLACES = 0
    ADDS = 1


# ---- arguments

cdef Tensor int64_index(object given, str name):
    cdef Tensor index = need_tensor(given, name)
    if index.dtype_ != INT64 and index.dtype_ != INT32:
        raise worded(DTypeError, "{}: the index must be int64, got {.dtype.name}", name, index)
    return index if index.dtype_ == INT64 else own(converted(index, INT64))


cdef Tensor checked_places(Tensor x, object given, int axis, str name):
    """The index of gather and scatter: as many dimensions as x, and beside dim `axis` not larger."""
    cdef Tensor places = int64_index(given, name)
    cdef int i
    if max(places.layout.ndim, 1) != max(x.layout.ndim, 1) and places.layout.numel:
        raise worded(ShapeError, "{}: the index must have as many dimensions as the input, got shapes {.shape} and {.shape}",
                                 name, places, x)
    for i in range(min(places.layout.ndim, x.layout.ndim)):
        if i != axis and places.layout.dims[i] > x.layout.dims[i]:
            raise worded(ShapeError, "{}: the index of shape {.shape} is larger than the input of shape {.shape} beside dim {}",
                                     name, places, x, axis)
    return places


cdef Tensor places_along(Tensor x, object given, int axis, str name):
    """An index of one dimension, repeated to the shape of x beside dim `axis`."""
    cdef Tensor index = int64_index(given, name)
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i
    if index.layout.ndim > 1:
        raise worded(IndexError, "{}: the index must have one dimension, got shape {.shape}", name, index)
    for i in range(x.layout.ndim):
        shape[i], strides[i] = x.layout.dims[i], 0
    if x.layout.ndim:
        shape[axis] = index.layout.numel
        strides[axis] = strides_of(index.layout)[0] if index.layout.ndim else 1
    elif index.layout.numel != 1:
        raise worded(IndexError, "{}: a tensor of 0 dimensions takes an index of one element, got shape {.shape}", name, index)
    return own(tensor_alias(index, layout_strided(x.layout.ndim, shape, strides), index.data))


cdef Tensor with_dims(Tensor t):
    """A tensor of 0 dimensions as one of one dimension, for routines."""
    cdef Py_ssize_t one = 1
    return t if t.layout.ndim else own(tensor_alias(t, layout_contiguous(1, &one), t.data))


cdef Tensor number_like(Tensor x, object value, Layout* layout, str name):
    """A number (or 0-d tensor without a gradient) in the dtype of x, seen in the shape of `layout`."""
    cdef Tensor v = own(as_operand_tensor(<PyObject*> value, x.dtype_))
    if v.layout.ndim:
        raise worded(TypeError, "{}: expected a number or a tensor, got {!r}", name, value)
    if v.dtype_ != x.dtype_:
        v = own(converted(v, x.dtype_))
    return own(tensor_alias(v, layout_expand(v.layout, layout.ndim, layout.dims), v.data))


# ---- gather

cdef object gathered(Tensor x, Tensor places, int axis, PyObject* index):
    cdef PyObject* arrays[3]
    cdef PyObject* inputs[2]
    cdef Py_ssize_t along = axis
    cdef Layout* layout = layout_contiguous_like(places.layout)
    cdef Tensor out = own(tensor_new(layout, x.dtype_))
    cdef Tensor a = with_dims(x), o = with_dims(out), p = with_dims(places)
    layout_decref(layout)
    arrays[0], arrays[1], arrays[2] = <PyObject*> o, <PyObject*> a, <PyObject*> p
    if out.layout.numel:
        run_routine(GATHER_ROUTINE, arrays, 1, &along)
    if x.dtype_ <= FLOAT64:
        inputs[0], inputs[1] = <PyObject*> x, index
        if any_wants_grad(1, inputs):
            attrs = (axis,)
            record(GATHER, <PyObject*> out, 2, inputs, <PyObject*> attrs, NULL)
    return out


def gather(input, dim, index):
    """input[..., index[..., i, ...], ...] along dim: the shape of `index`. Duplicates add up in the gradient.

    Raises IndexError for indices out of range, ValueError where shapes, TypeError where dtypes do not fit.
    """
    cdef Tensor t = need_tensor(input, "gather")
    cdef int axis = axis_of(dim, t.layout.ndim, "gather")
    cdef Tensor places = checked_places(t, index, axis, "gather")
    return gathered(t, places, axis, <PyObject*> places)


def rule_gather(x, index, dim):
    """gather, in the order of the table's inputs."""
    return gather(x, dim, index)


def index_select(input, dim, index):
    """The slices of dim that `index` (of one dimension) names. Duplicates add up in the gradient.

    Raises IndexError for indices out of range.
    """
    cdef Tensor t = need_tensor(input, "index_select")
    cdef int axis = axis_of(dim, t.layout.ndim, "index_select")
    cdef Tensor places = places_along(t, index, axis, "index_select")
    return gathered(t, places, axis, <PyObject*> places)


def take_along_dim(input, indices, dim=None):
    """As gather, but input and indices broadcast against each other beside dim; without dim: of both in one dimension."""
    cdef Tensor t = need_tensor(input, "take_along_dim"), places = int64_index(indices, "take_along_dim")
    cdef Py_ssize_t ours[MAX_NDIM]
    cdef Py_ssize_t theirs[MAX_NDIM]
    cdef int axis, i, n = t.layout.ndim
    cdef bint widens = False
    if dim is None:
        return gather(reshape(t, -1), 0, reshape(places, -1))
    axis = axis_of(dim, n, "take_along_dim")
    if places.layout.ndim != n:
        raise worded(RuntimeError, "take_along_dim: input and indices must have as many dimensions, got shapes {.shape} and {.shape}",
                                   t, places)
    for i in range(n):
        ours[i], theirs[i] = t.layout.dims[i], places.layout.dims[i]
        if i != axis and ours[i] != theirs[i]:
            widens = True
            ours[i] = theirs[i] = ours[i] if theirs[i] == 1 else theirs[i]
    if widens:
        t, places = expand(t, [ours[i] for i in range(n)]), expand(places, [theirs[i] for i in range(n)])
    return gathered(t, places, axis, <PyObject*> places)


def put_back(Tensor g, Tensor index, shape, dim):
    """g added into zeros at index along dim: the gradient of gather."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* layout = layout_contiguous(read_shape(shape, sizes, "gather"), sizes)
    cdef Tensor out = own(tensor_new(layout, g.dtype_))
    cdef int axis = axis_of(dim, layout.ndim, "gather")
    cdef Tensor places = checked_places(out, index, axis, "gather")
    cdef PyObject* inputs[2]
    layout_decref(layout)
    set_to_zero(out)
    combine(out, places, g, axis, ADDS)
    inputs[0], inputs[1] = <PyObject*> g, <PyObject*> index
    if any_wants_grad(1, inputs):
        attrs = (shape, axis)
        record(PUT, <PyObject*> out, 2, inputs, <PyObject*> attrs, NULL)
    return out


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, bint scale_grad_by_freq=False, sparse=False):
    """The rows of weight that input (int64, of any shape) names: shape (*input.shape, columns).

    padding_idx: a row that gets no gradient. max_norm: rows whose p-norm (p = norm_type) is larger are first scaled down to it, in
    place. scale_grad_by_freq: gradients are divided by how often a row is used. Raises RuntimeError for sparse=True.
    """
    cdef Tensor w = need_tensor(weight, "embedding")
    cdef Py_ssize_t rows = w.layout.dims[0] if w.layout.ndim else 0, row
    if sparse:
        raise RuntimeError("embedding: sparse gradients are not supported; leave sparse=False")
    if padding_idx is not None:
        row = integer(padding_idx, "padding_idx", "embedding")
        if not -rows <= row < rows:
            raise worded(ValueError, "embedding: padding_idx {} is out of range for {} rows", row, rows)
        padding_idx = row + rows if row < 0 else row
    if max_norm is not None:
        from autograd_cy.engine.indexing import limit_norms
        limit_norms(w, need_tensor(input, "embedding"), max_norm, norm_type)
    return embedding_row(w, input, padding_idx, bool(scale_grad_by_freq))


cdef Tensor repeated(Tensor index, Py_ssize_t cols):
    """An index of rows, once for each column."""
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t strides[2]
    shape[0], shape[1], strides[0], strides[1] = index.layout.numel, cols, 1, 0
    return own(tensor_alias(index, layout_strided(2, shape, strides), index.data))


cdef Tensor as_rows(Tensor x, Py_ssize_t cols):
    """A contiguous tensor as a matrix."""
    cdef Py_ssize_t shape[2]
    shape[0], shape[1] = x.layout.numel // max(cols, 1), cols
    return own(tensor_alias(x, layout_contiguous(2, shape), x.data))


def embedding_row(Tensor weight, object given, object padding, object scale):
    """weight[index]: rows of a matrix, for any shape of the index."""
    cdef Tensor index = own(contiguous_of(int64_index(given, "embedding")))
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef PyObject* arrays[3]
    cdef PyObject* inputs[2]
    cdef Py_ssize_t axis = 0
    cdef Layout* layout
    cdef Tensor out, rows, places
    cdef int i, ndim = index.layout.ndim
    if weight.layout.ndim != 2:
        raise worded(ShapeError, "embedding: the weight must be a matrix, got shape {.shape}", weight)
    if ndim == MAX_NDIM:
        raise worded(ShapeError, "embedding: a tensor has at most {} dimensions", MAX_NDIM)
    for i in range(ndim):
        shape[i] = index.layout.dims[i]
    shape[ndim] = weight.layout.dims[1]
    layout = layout_contiguous(ndim + 1, shape)
    out = own(tensor_new(layout, weight.dtype_))
    layout_decref(layout)
    if out.layout.numel:
        places, rows = repeated(index, shape[ndim]), as_rows(out, shape[ndim])
        arrays[0], arrays[1], arrays[2] = <PyObject*> rows, <PyObject*> weight, <PyObject*> places
        run_routine(GATHER_ROUTINE, arrays, 1, &axis)
    inputs[0], inputs[1] = <PyObject*> weight, <PyObject*> index
    if weight.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (padding, scale)
        record(EMBEDDING, <PyObject*> out, 2, inputs, <PyObject*> attrs, NULL)
    return out


# ---- scatter

cdef int combine(Tensor out, Tensor places, Tensor v, int axis, int kind) except -1:
    """The elements of `out` at the places changed by v, which has the shape of `places`."""
    cdef PyObject* arrays[3]
    cdef Py_ssize_t ints[2]
    cdef Tensor o = with_dims(out), s = with_dims(v), p = with_dims(places)
    ints[0], ints[1] = axis, kind
    arrays[0], arrays[1], arrays[2] = <PyObject*> o, <PyObject*> s, <PyObject*> p
    if p.layout.numel:
        run_routine(SCATTER_ROUTINE, arrays, 2, ints)
    return 0


cdef int added_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """gather and embedding: g added into zeros where it came from."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Tensor places = own(unpack(node, 1, False))
    cdef tuple attrs = <tuple> node.attrs
    cdef Layout* layout = layout_contiguous_like(node.edges[0].layout)
    cdef Tensor out = own(tensor_new(layout, g.dtype_))
    cdef Py_ssize_t cols
    layout_decref(layout)
    set_to_zero(out)
    if node.opcode == GATHER:
        combine(out, places, g, attrs[0], ADDS)
    elif attrs[1]:
        out = rule_gradient(node, g)
    else:
        cols = out.layout.dims[1]
        if places.layout.numel and cols:
            combine(out, repeated(places, cols), as_rows(own(contiguous_of(g)), cols), 0, ADDS)
        if attrs[0] is not None:
            set_to_zero(narrowed(out, 0, attrs[0], 1))
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[GATHER] = backwards[EMBEDDING] = added_backward


cdef Tensor copied(Tensor x):
    """A contiguous copy without history."""
    cdef Layout* layout = layout_contiguous_like(x.layout)
    cdef Tensor out = own(copy_of(x, layout))
    layout_decref(layout)
    return out


cdef object scattered(Tensor x, Tensor places, Tensor v, int axis, int kind, bint inplace, str name):
    cdef int opcode = SCATTER if kind == REPLACES else SCATTER_ADD
    cdef PyObject* inputs[3]
    cdef PyObject* o
    cdef Tensor out
    cdef bint recorded
    attrs = (axis,)
    inputs[0], inputs[1], inputs[2] = <PyObject*> x, NULL, <PyObject*> v
    recorded = x.dtype_ <= FLOAT64 and (wants_grad(x) or wants_grad(v)) and grad_enabled()
    if not inplace:
        out = copied(x)
        combine(out, places, v, axis, kind)
        if recorded:
            inputs[1] = <PyObject*> places
            record(opcode, <PyObject*> out, 3, inputs, <PyObject*> attrs, NULL)
        return out
    refuse_inplace(x, name)
    if x.layout.flags & OVERLAPPING and x.layout.numel:
        raise worded(RuntimeError, "{}: several elements of the tensor share one memory location (it was expanded); clone() it first", name)
    combine(x, copied(places) if places.storage == x.storage else places, copied(v) if v.storage == x.storage else v, axis, kind)
    x.storage.version += 1
    if recorded:
        o = node_new(opcode, 3, 2)
        set_edge(&(<Node> o).edges[0], x)
        set_edge(&(<Node> o).edges[1], places)
        set_edge(&(<Node> o).edges[2], v)
        save_tensor(<Node> o, 1, places)
        Py_INCREF(attrs)
        (<Node> o).attrs = <PyObject*> attrs
        remember_line(<Node> o)
        rewrite_history(x, o)
    return x


cdef Tensor source_for(Tensor x, object given, Tensor places, str name):
    """What scatter writes: a tensor at least as large as the index, cut to its shape; or a number."""
    cdef Tensor v
    cdef int i
    if not isinstance(given, Tensor):
        return number_like(x, given, places.layout, name)
    v = given
    if v.dtype_ != x.dtype_:
        raise worded(RuntimeError, "{}: expected src of the input's dtype {.dtype.name}, got {.dtype.name}", name, x, v)
    if same_shape(v.layout, places.layout):
        return v
    if max(v.layout.ndim, 1) != max(places.layout.ndim, 1) and places.layout.numel:
        raise worded(ShapeError, "{}: src of shape {.shape} and index of shape {.shape} must have as many dimensions", name, v, places)
    if places.layout.numel == 0:
        return own(tensor_alias(v, share(places.layout), v.data))
    for i in range(min(v.layout.ndim, places.layout.ndim)):
        if places.layout.dims[i] > v.layout.dims[i]:
            raise worded(ShapeError, "{}: the index of shape {.shape} is larger than src of shape {.shape}", name, places, v)
        if places.layout.dims[i] < v.layout.dims[i]:
            v = narrowed(v, i, 0, places.layout.dims[i])
    return v if v.layout.ndim == places.layout.ndim else reshape_to(v, places.layout.ndim, places.layout.dims)


cdef Layout* share(Layout* layout) noexcept:
    layout_incref(layout)
    return layout


cdef object any_scatter(object input, object dim, object index, object src, object value, object reduce, bint inplace, str name):
    cdef Tensor t = need_tensor(input, name)
    cdef int axis = axis_of(dim, t.layout.ndim, name)
    cdef Tensor places = checked_places(t, index, axis, name)
    cdef Tensor v
    if (src is None) == (value is None):
        raise worded(TypeError, "{}: expected either src or value", name)
    v = source_for(t, value if src is None else src, places, name)
    if reduce is None:
        return scattered(t, places, v, axis, REPLACES, inplace, name)
    if reduce == "add":
        return scattered(t, places, v, axis, ADDS, inplace, name)
    if reduce != "multiply":
        raise worded(RuntimeError, "{}: reduce must be either add or multiply, got {!r}", name, reduce)
    if inplace and not ((wants_grad(t) or wants_grad(v)) and grad_enabled()):
        return scattered(t, places, v, axis, KINDS["prod"], True, name)
    out = reduced_row(t.clone() if inplace else t, places, v, "prod", axis, True)
    return t.copy_(out) if inplace else out


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """input with src[i] (a tensor or number) at index[i] along dim. Of duplicates the last one remains and gets the gradient.

    reduce: "add" or "multiply" combine with what is there. Raises IndexError for indices out of range, ValueError where shapes do not fit.
    """
    return any_scatter(input, dim, index, src, value, reduce, False, "scatter")


def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    """In place: src[i] at index[i] along dim."""
    return any_scatter(input, dim, index, src, value, reduce, True, "scatter_")


def scatter_add(input, dim, index, src):
    """input with src[i] added at index[i] along dim; duplicates add up."""
    return any_scatter(input, dim, index, src, None, "add", False, "scatter_add")


def scatter_add_(input, dim, index, src):
    """In place: src[i] added at index[i] along dim."""
    return any_scatter(input, dim, index, src, None, "add", True, "scatter_add_")


def one_hot(tensor, Py_ssize_t num_classes=-1):
    """int64 (...) -> int64 (..., num_classes), 1 at the class; num_classes -1: the largest class plus one."""
    cdef Tensor index = need_tensor(tensor, "one_hot"), out, places
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i, n = index.layout.ndim
    cdef Layout* layout
    if index.dtype_ != INT64:
        raise worded(RuntimeError, "one_hot is only applicable to index tensors of type int64, got {.dtype}", index)
    if num_classes <= 0 and index.layout.numel == 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if n == MAX_NDIM:
        raise worded(ShapeError, "one_hot: a tensor has at most {} dimensions", MAX_NDIM)
    if num_classes == -1:
        num_classes = max(<Py_ssize_t> index.amax().item() + 1, 1)
    for i in range(n):
        shape[i], strides[i] = index.layout.dims[i], strides_of(index.layout)[i]
    shape[n], strides[n] = max(num_classes, 0), 1
    layout = layout_contiguous(n + 1, shape)
    out = own(tensor_new(layout, INT64))
    layout_decref(layout)
    set_to_zero(out)
    shape[n] = 1
    places = own(tensor_alias(index, layout_strided(n + 1, shape, strides), index.data))
    try:
        combine(out, places, number_like(out, 1, places.layout, "one_hot"), n, REPLACES)
    except IndexError:                            # what is no class; in a replay it stays this error
        from autograd_cy.engine.indexing import wrong_class
        raise wrong_class(index, num_classes) from None
    return out


def scatter_zero(g, index, dim):
    """g with zeros at index along dim, for rules."""
    return any_scatter(g, dim, index, 0, None, None, False, "scatter")


def scatter_winners(Tensor index, shape, int dim):
    """Which elements scatter leaves in a tensor of that shape: the last one of each place. A bool tensor that broadcasts to index."""
    cdef PyObject* arrays[2]
    cdef Py_ssize_t ints[MAX_NDIM + 1]
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Tensor places = index
    cdef Tensor out
    cdef Layout* layout
    cdef int i
    for i in range(index.layout.ndim):            # an index that repeats itself is looked at once
        sizes[i] = 1 if strides_of(index.layout)[i] == 0 and i != dim and index.layout.dims[i] else index.layout.dims[i]
        ints[i + 1] = 1 if sizes[i] != index.layout.dims[i] else shape[i] if len(shape) else 1
    if index.layout.ndim:
        places = own(tensor_alias(index, layout_strided(index.layout.ndim, sizes, strides_of(index.layout)), index.data))
    else:
        ints[1] = 1
    ints[0] = dim
    layout = layout_contiguous_like(places.layout)
    out = own(tensor_new(layout, BOOL))
    layout_decref(layout)
    o, p = with_dims(out), with_dims(places)
    arrays[0], arrays[1] = <PyObject*> o, <PyObject*> p
    if out.layout.numel:
        run_routine(WINNERS_ROUTINE, arrays, 1 + max(index.layout.ndim, 1), ints)
    return out


cdef dict KINDS = {"sum": ADDS, "mean": ADDS, "prod": 2, "amax": 3, "amin": 4}


cpdef object reduced_row(Tensor x, Tensor index, Tensor v, str kind, int dim, bint include_self):
    """x combined with v at index along dim by a sum, product, mean, maximum or minimum; include_self: with what is there."""
    cdef Tensor out = copied(x), o = with_dims(out), source = with_dims(v), places = with_dims(index)
    cdef PyObject* inputs[3]
    cdef Py_ssize_t ints[4]
    ints[0], ints[1], ints[2], ints[3] = dim, KINDS[kind], include_self, kind == "mean"
    inputs[0], inputs[1], inputs[2] = <PyObject*> o, <PyObject*> source, <PyObject*> places
    if places.layout.numel:
        run_routine(REDUCE_ROUTINE, inputs, 4, ints)
    inputs[0], inputs[1], inputs[2] = <PyObject*> x, <PyObject*> index, <PyObject*> v
    if x.dtype_ <= FLOAT64 and (wants_grad(x) or wants_grad(v)) and grad_enabled():
        attrs = (kind, dim, include_self)
        record(SCATTER_REDUCE, <PyObject*> out, 3, inputs, <PyObject*> attrs, NULL)
    return out


def scatter_reduce(input, dim, index, src, str reduce, *, bint include_self=True):
    """input combined with src[i] at index[i] along dim: reduce is "sum", "prod", "mean", "amax" or "amin".

    include_self: whether what is there takes part. Ties of amax and amin share the gradient evenly; products with zeros have exact
    gradients. Raises RuntimeError for another reduce, IndexError for indices out of range.
    """
    cdef Tensor t = need_tensor(input, "scatter_reduce")
    cdef int axis = axis_of(dim, t.layout.ndim, "scatter_reduce")
    cdef Tensor places = checked_places(t, index, axis, "scatter_reduce")
    cdef Tensor v = source_for(t, need_tensor(src, "scatter_reduce"), places, "scatter_reduce")
    if reduce not in KINDS:
        raise worded(RuntimeError, "scatter_reduce: reduce must be sum, prod, mean, amax or amin, got {!r}", reduce)
    if reduce == "sum" and include_self:
        return scattered(t, places, v, axis, ADDS, False, "scatter_reduce")
    return reduced_row(t, places, v, reduce, axis, include_self)


# ---- whole slices: an index of one dimension

cpdef object any_index(object input, object dim, object index, object source, int kind, bint inplace, str name, str reduce=None,
                       bint include_self=True):
    """index_add, index_copy; or, with reduce, index_reduce."""
    cdef Tensor t = need_tensor(input, name)
    cdef int axis = axis_of(dim, t.layout.ndim, name)
    cdef Tensor places = places_along(t, index, axis, name)
    cdef Tensor v = need_tensor(source, name)
    if v.dtype_ != t.dtype_:
        raise worded(RuntimeError, "{}: expected a source of the input's dtype {.dtype.name}, got {.dtype.name}", name, t, v)
    if v.layout.numel == 1 and places.layout.numel == 1 and v.layout.ndim != places.layout.ndim:
        v = v.reshape(places.shape)
    if not same_shape(v.layout, places.layout):
        raise worded(ShapeError, "{}: a source of shape {.shape} does not fit the input's shape {.shape} with {} indices for dim {}",
                                 name, v, t, places.shape[axis:axis + 1], axis)
    if reduce is not None:
        return reduced_row(t, places, v, reduce, axis, include_self)
    return scattered(t, places, v, axis, kind, inplace, name)


def index_add(input, dim, index, source, *, alpha=1):
    """input with alpha * the slices of source added to the slices of dim that index names; duplicates add up."""
    return any_index(input, dim, index, source if alpha == 1 else source * alpha, ADDS, False, "index_add")


def index_add_(input, dim, index, source, *, alpha=1):
    """In place: alpha * the slices of source added to the slices of dim that index names."""
    return any_index(input, dim, index, source if alpha == 1 else source * alpha, ADDS, True, "index_add_")


def index_copy(input, dim, index, source):
    """input with the slices of source in place of the slices of dim that index names."""
    return any_index(input, dim, index, source, REPLACES, False, "index_copy")


def index_copy_(input, dim, index, source):
    """In place: the slices of source in place of the slices of dim that index names."""
    return any_index(input, dim, index, source, REPLACES, True, "index_copy_")


cdef object filled(object input, object dim, object index, object value, bint inplace, str name):
    cdef Tensor t = need_tensor(input, name)
    cdef int axis = axis_of(dim, t.layout.ndim, name)
    cdef Tensor places = places_along(t, index, axis, name)
    cdef Tensor v
    if isinstance(value, Tensor):
        v = value
        if v.layout.ndim:
            raise worded(RuntimeError, "{}: value must have 0 dimensions, got shape {.shape}", name, v)
        v = v.to(t.dtype).expand(places.shape)
    else:
        v = number_like(t, value, places.layout, name)
    return scattered(t, places, v, axis, REPLACES, inplace, name)


def index_fill(input, dim, index, value):
    """input with value (a number or 0-d tensor) in the slices of dim that index names."""
    return filled(input, dim, index, value, False, "index_fill")


def index_fill_(input, dim, index, value):
    """In place: value in the slices of dim that index names."""
    return filled(input, dim, index, value, True, "index_fill_")
