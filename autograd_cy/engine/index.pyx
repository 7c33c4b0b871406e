# Indexing, read and written, by more than numbers and slices: arrays of integers, lists, masks; and take, put, nonzero.
#
# Relies on array, kernels/index, index_parts, slices, copies, record. Tensor's [] and the rules of the table call it.
#
# An index is first understood for the axes of a tensor (Choice, index_parts.pxd). With strides that makes offsets, one for every element of
# the arrays, and a block of the other axes that stands at each. A node keeps a Plan: offsets and block for a contiguous tensor of the
# shape, so that it needs no array of the user's.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM
from autograd_cy.array.layout cimport (
    CONTIGUOUS, OVERLAPPING, Layout, layout_contiguous, layout_contiguous_like, layout_decref, same_shape, shape_tuple, strides_of,
)
from autograd_cy.engine.arguments cimport need_tensor, read_shape
from autograd_cy.engine.dispatch cimport elementwise
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.index_parts cimport (
    A_MASK, Choice, Plan, block_of, choice_places, chosen, column, copy_like, items_of, offsets_of, overwrite, plan_for, plan_of_places,
    true_places, understand,
)
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport NO_REDUCTION, Node, node_new, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport as_operand_tensor, contiguous_of, converted, number_tensor, set_to_zero
from autograd_cy.engine.record cimport any_wants_grad, record, refuse_inplace, rewrite_history, set_edge, set_history, wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport contiguous, copied_as_clone, fill_one, narrowed, reshape_to
from autograd_cy.engine.slices cimport viewed_by
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, escape, recording

from autograd_cy.array.errors import worded
from autograd_cy.engine.copies import copy_
from autograd_cy.engine.gather import scatter_winners
from autograd_cy.engine.shape import clone, expand, reshape

cdef int INDEX = row_number("index"), INDEX_BACK = row_number("index_back"), INDEX_FILL = row_number("index_fill")
cdef int WHERE = row_number("where"), INDEX_PUT = row_number("index_put"), INDEX_ACCUMULATE = row_number("index_accumulate")


# ---- at an index

cdef Plan choose(Tensor x, object items, Tensor value, bint adds, bint keeps, PyObject** taken, str name):
    """Read x at an index with arrays (value is None: into `taken`) or write to it; the plan, if it is to be kept."""
    cdef Choice c
    cdef Py_ssize_t strides[MAX_NDIM]                # of a contiguous tensor, also where axes of size 1 have others in x
    cdef Py_ssize_t block[MAX_NDIM]
    cdef Py_ssize_t start, step = 1
    cdef Tensor offsets
    cdef Plan plan = None
    cdef int i
    for i in range(x.layout.ndim - 1, -1, -1):
        strides[i] = step
        step *= max(x.layout.dims[i], 1)
    c.arrays = 0
    try:
        understand(&c, x, items, name)
        if keeps or x.layout.flags & CONTIGUOUS:
            offsets = offsets_of(&c, strides, name)
            start = block_of(&c, x.layout.ndim, strides, block)
            if keeps:
                plan = plan_for(&c, strides, offsets, start, block)
        if not x.layout.flags & CONTIGUOUS:
            offsets = offsets_of(&c, strides_of(x.layout), name)
            start = block_of(&c, x.layout.ndim, strides_of(x.layout), block)
        if taken != NULL:
            out = chosen(x, start, offsets, c.ndim, c.shape, block, c.position)
            Py_INCREF(out)
            taken[0] = <PyObject*> out
        else:
            value = without_leading_ones(value, c.ndim + offsets.layout.ndim)
            overwrite(x, start, offsets, c.ndim, c.shape, block, c.position, value, adds, name)
        return plan
    finally:
        for i in range(c.arrays):
            Py_DECREF(<object> c.array[i])


# ---- what rules call

cdef Tensor by_plan(Tensor x, Plan plan):
    x = own(contiguous_of(x))
    return chosen(x, plan.start, plan.offsets, plan.block.ndim, plan.block.dims, strides_of(plan.block), plan.position)


cdef int write_by_plan(Tensor x, Plan plan, Tensor value, bint adds) except -1:
    return overwrite(x, plan.start, plan.offsets, plan.block.ndim, plan.block.dims, strides_of(plan.block), plan.position, value, adds,
                     "index")


cdef object recorded(int opcode, Tensor x, object out, tuple attrs):
    cdef PyObject* inputs[1]
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, fill_one(inputs, x)):
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def index(Tensor x, Plan plan):
    """The elements that the plan chooses."""
    return recorded(INDEX, x, by_plan(x, plan), (plan,))


cdef Tensor spread_out(Tensor g, Layout* layout, Plan plan):
    cdef Tensor out = own(tensor_new(layout, g.dtype_))
    set_to_zero(out)
    write_by_plan(out, plan, g, True)
    return out


def index_back(Tensor g, shape, Plan plan):
    """g added into zeros at the chosen elements: the gradient of index."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* layout = layout_contiguous(read_shape(shape, sizes, "index"), sizes)
    cdef Tensor out = spread_out(g, layout, plan)
    layout_decref(layout)
    return recorded(INDEX_BACK, g, out, (shape, plan))


cdef int index_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Layout* layout = layout_contiguous_like(node.edges[0].layout)
    cdef Tensor out = spread_out(<Tensor> grads[0], layout, <Plan> (<tuple> node.attrs)[0])
    layout_decref(layout)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[INDEX] = index_backward


def choices(Tensor x, Py_ssize_t r, bint again):
    """All choices of r elements of a vector, or, again, with repetition, in order, as rows."""
    plan = plan_of_places(choice_places(x.layout.dims[0], r, again), x.layout.dims[0])
    return recorded(INDEX, x, by_plan(x, plan), (plan,))


def put_number(Tensor x, Plan plan):
    """x with zeros at the chosen elements."""
    cdef Tensor out = own(copy_like(x))
    write_by_plan(out, plan, own(number_tensor(0, x.dtype_)), False)
    return recorded(INDEX_FILL, x, out, (plan,))


def index_winners(Tensor x, Plan plan):
    """Which elements of v x[index] = v leaves in x: the last one of each place. A bool tensor that broadcasts to v."""
    places = reshape(plan.offsets, -1)
    if plan.unit > 1:
        places = places // plan.unit
    return reshape(scatter_winners(places, (plan.count,), 0),
                   (*shape_tuple(plan.offsets.layout), *[1] * (plan.block.ndim - plan.position)))


# ---- []

cdef PyObject* getitem_any(PyObject* x, PyObject* index_) except NULL:
    cdef Tensor t = <Tensor> x
    cdef bint arrays
    cdef object items = items_of(<object> index_, "index", &arrays)
    cdef object result = read_at(t, items, "index") if arrays else viewed_by(t, items, "index")
    Py_INCREF(result)
    return <PyObject*> result


cdef object read_at(Tensor t, object items, str name):
    """t[items]"""
    cdef bint keeps = t.dtype_ <= FLOAT64 and wants_grad(t) and grad_enabled()
    cdef PyObject* taken
    plan = choose(t, items, None, False, keeps, &taken, name)
    out = own(taken)
    return recorded(INDEX, t, out, (plan,)) if keeps else out


cdef Tensor without_leading_ones(Tensor v, int ndim):
    """As in NumPy, leading axes of size 1 that the destination lacks are dropped."""
    while v.layout.ndim > ndim and v.layout.dims[0] == 1:
        v = v.reshape(v.shape[1:])
    return v


cdef object put_where(Tensor t, Tensor mask, Tensor v):
    cdef PyObject* args[3]
    if mask.layout.ndim < t.layout.ndim:
        mask = reshape(mask, (*mask.shape, *[1] * (t.layout.ndim - mask.layout.ndim)))
    args[0], args[1], args[2] = <PyObject*> mask, <PyObject*> v, <PyObject*> t
    return own(elementwise(WHERE, 3, args, NULL, NO_REDUCTION))


cdef bint fits_mask(Tensor t, object items, Tensor v) except -1:
    """Whether x[mask] = v is also where(mask, v, x), for which nobody needs to count, with the same gradients to the bit."""
    cdef Layout* mask
    cdef int i
    if len(items) != 1 or not isinstance(items[0], Tensor) or (<Tensor> items[0]).dtype_ != BOOL or v.dtype_ != t.dtype_:
        return False
    mask = (<Tensor> items[0]).layout
    for i in range(mask.ndim):
        if i >= t.layout.ndim or mask.dims[i] != t.layout.dims[i]:
            return False
    return mask.ndim and v.layout.ndim + (0 if v.layout.numel == 1 else mask.ndim) <= t.layout.ndim \
        and not (wants_grad(v) and grad_enabled())


cdef int setitem(PyObject* x, PyObject* index_, PyObject* value) except -1:
    if value == NULL:
        raise TypeError("elements of a tensor can't be deleted")
    return assign(<Tensor> x, <object> index_, <object> value, False, "setitem")


cdef int assign(Tensor t, object index, object value, bint adds, str name) except -1:
    """In place: the chosen elements = value, or += value, duplicates added."""
    cdef Tensor v = own(as_operand_tensor(<PyObject*> value, t.dtype_))
    cdef bint arrays
    cdef object items
    refuse_inplace(t, name)
    view = viewed_by(t, index, name) if type(index) is not list else None
    if view is None:
        items = items_of(index, name, &arrays)
        if not arrays:
            view = viewed_by(t, items, name)
    if view is not None:
        v = without_leading_ones(v, (<Tensor> view).layout.ndim)
        if adds:
            view.add_(v)
        else:
            copy_(view, v)
        return 0
    refuse_overlap(t, name)
    if not adds and (recording() or v.layout.numel == 1) and fits_mask(t, items, v):
        copy_(t, put_where(t, items[0], v))
        return 0
    return write_at(t, items, v, adds, name)


cdef int refuse_overlap(Tensor t, str name) except -1:
    if t.layout.flags & OVERLAPPING:
        raise worded(RuntimeError, "{}: several elements of the tensor share one memory location (it was expanded); clone() it first", name)
    return 0


cdef int write_at(Tensor t, object items, Tensor v, bint adds, str name, Tensor of=None) except -1:
    """t[items] = v, or += v; `of`: what t is a new copy of, without its history."""
    cdef Tensor before = t if of is None else of
    cdef bint keeps = (wants_grad(v) or wants_grad(before)) and t.dtype_ <= FLOAT64 and grad_enabled()
    cdef Plan plan = choose(t, items, v, adds, keeps, NULL, name)
    if keeps:
        v = without_leading_ones(v, plan.block.ndim + plan.offsets.layout.ndim)      # its gradient has no place for them
    return written(t, v, adds, plan, before)


cdef int written(Tensor t, Tensor v, bint adds, Plan plan, Tensor before) except -1:
    """The history of t after it was written to; `before`: t itself, or what it is a new copy of."""
    cdef PyObject* node
    t.storage.version += 1
    if (wants_grad(v) or wants_grad(before)) and t.dtype_ <= FLOAT64 and grad_enabled():
        node = node_new(INDEX_ACCUMULATE if adds else INDEX_PUT, 2, 0)
        set_edge(&(<Node> node).edges[0], before)
        set_edge(&(<Node> node).edges[1], v)
        attrs = (plan,)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        if before is t:
            rewrite_history(t, node)
        else:
            set_history(<PyObject*> t, node, 0)
    return 0


cdef tuple whole_for_none(tuple indices):
    """None among the indices stands for all of an axis."""
    cdef Py_ssize_t k
    for k in range(len(indices)):
        if indices[k] is None:
            return tuple([slice(None) if i is None else i for i in indices])
    return indices


def index_put_(input, indices, values, accumulate=False):
    """In place: input[indices] = values, or with accumulate += values, to which duplicates add up. indices: a tuple of tensors.

    Raises IndexError for indices out of range, ValueError where the values do not broadcast to the chosen elements.
    """
    if not isinstance(indices, (tuple, list)):
        raise worded(TypeError, "index_put_: indices must be a tuple of tensors, got {}", type(indices).__name__)
    assign(need_tensor(input, "index_put_"), whole_for_none(tuple(indices)), values, bool(accumulate), "index_put_")
    return input


def index_put(input, indices, values, accumulate=False):
    """A copy of input with input[indices] = values, or with accumulate += values, to which duplicates add up."""
    cdef Tensor x = need_tensor(input, "index_put"), out
    cdef bint adds = accumulate, arrays
    if recording() or type(indices) is not tuple:
        return index_put_(clone(x), indices, values, adds)
    value = own(as_operand_tensor(<PyObject*> values, x.dtype_))
    items = items_of(whole_for_none(indices), "index_put", &arrays)
    if not arrays:
        return index_put_(clone(x), indices, value, adds)
    if not adds and (<Tensor> value).layout.numel == 1 and fits_mask(x, items, <Tensor> value):
        return put_where(x, items[0], <Tensor> value)
    out = copied_as_clone(x)
    write_at(out, items, <Tensor> value, adds, "index_put", x)
    return out


operators.getitem_any = getitem_any
operators.setitem = setitem


# ---- by places in row-major order, by masks

cdef Plan plan_of_index(Tensor t, object index, str name):
    """Places in row-major order, which may count from the end."""
    cdef Tensor places = need_tensor(index, name)
    cdef Choice c
    cdef Py_ssize_t step = 1
    if places.dtype_ <= FLOAT64 or places.dtype_ == BOOL:
        raise worded(RuntimeError, "{}: expected int64 places, got {.dtype}", name, places)
    places = own(contiguous_of(own(converted(places, INT64))))
    c.arrays, c.array[0], c.at[0], c.size[0], c.places = 1, <PyObject*> places, 0, t.layout.numel, False
    return plan_of_places(offsets_of(&c, &step, name), t.layout.numel)


def take(input, index):
    """The elements at places counted in row-major order: the shape of index. Negative places count from the end."""
    cdef Tensor t = contiguous(need_tensor(input, "take"))
    plan = plan_of_index(t, index, "take")
    return recorded(INDEX, t, by_plan(t, plan), (plan,))


cdef object put_into(Tensor t, object index, object source, bint adds, str name, Tensor of=None):
    """t, contiguous, with the elements of source; `of`: what t is a new copy of."""
    cdef Plan plan = plan_of_index(t, index, name)
    cdef Tensor v = need_tensor(source, name), places = plan.offsets
    if places.layout.numel != v.layout.numel:
        raise worded(RuntimeError, "{}: expected as many places as elements, got shapes {.shape} and {.shape}", name, index, v)
    if v.dtype_ != t.dtype_:
        raise worded(RuntimeError, "{}: expected a source of the input's dtype {.dtype}, got {.dtype}", name, t, v)
    if not same_shape(v.layout, places.layout):
        v = reshape(v, index.shape)
    write_by_plan(t, plan, v, adds)
    written(t, v, adds, plan, t if of is None else of)
    return t


def put_(self, index, source, accumulate=False):
    """In place: the elements of source at places counted in row-major order, or with accumulate added to what is there."""
    cdef Tensor t = need_tensor(self, "put_")
    cdef bint adds = accumulate
    refuse_inplace(t, "put_")
    if not t.layout.flags & CONTIGUOUS:
        return t.copy_(put(t, index, source, adds))
    return put_into(t, index, source, adds, "put_")


def put(input, index, source, accumulate=False):
    """input with the elements of source at places counted in row-major order."""
    cdef Tensor t = need_tensor(input, "put")
    return put_into(own(copy_like(t)), index, source, accumulate, "put", t)


cdef Tensor mask_of(object given, str name):
    cdef Tensor mask = need_tensor(given, name)
    if mask.dtype_ != BOOL:
        raise worded(RuntimeError, "{}: expected a bool mask, got {.dtype}", name, mask)
    return mask


def masked_select(input, mask):
    """The elements where mask is true, in one dimension; both broadcast against each other."""
    cdef Tensor m = mask_of(mask, "masked_select"), t = need_tensor(input, "masked_select")
    if not same_shape(t.layout, m.layout) or t.layout.ndim == 0:
        from autograd_cy.engine.joins import broadcast_tensors
        t, m = broadcast_tensors(*((t, m) if t.layout.ndim or m.layout.ndim else (reshape(t, 1), m)))
    return read_at(t, (m,), "masked_select")


cdef object masked_into(Tensor t, object mask, object source, str name, Tensor of=None):
    cdef Tensor m = mask_of(mask, name), v = need_tensor(source, name)
    cdef Plan plan = None
    cdef Py_ssize_t count
    if v.dtype_ != t.dtype_:
        raise worded(RuntimeError, "{}: expected a source of the input's dtype {.dtype}, got {.dtype}", name, t, v)
    if not same_shape(m.layout, t.layout):
        m = expand(m, t.shape)
    if t.layout.flags & m.layout.flags & CONTIGUOUS:
        plan = plan_of_places(true_places(m, True, A_MASK), t.layout.numel)
        count = plan.offsets.layout.numel
    else:
        escape(A_MASK)
        count = K.count_nonzero(BOOL, m.layout.ndim, m.layout.dims, m.data, strides_of(m.layout))
    if count > v.layout.numel:
        raise worded(RuntimeError, "{}: the mask is true at {} elements, but source has shape {.shape}", name, count, v)
    if v.layout.flags & CONTIGUOUS and not wants_grad(v):
        v = own(tensor_alias(v, layout_contiguous(1, &count), v.data))
    else:
        v = reshape_to(v, 1, &v.layout.numel)
        v = narrowed(v, 0, 0, count)
    if plan is None:
        write_at(t, (m,), v, False, name, of)
    else:
        write_by_plan(t, plan, v, False)
        written(t, v, False, plan, t if of is None else of)
    return t


def masked_scatter_(self, mask, source):
    """In place: the elements where mask is true become the first elements of source, one after the other.

    Raises RuntimeError where source has fewer elements than mask is true.
    """
    cdef Tensor t = need_tensor(self, "masked_scatter_")
    refuse_inplace(t, "masked_scatter_")
    refuse_overlap(t, "masked_scatter_")
    return masked_into(t, mask, source, "masked_scatter_")


def masked_scatter(input, mask, source):
    """input in which the elements where mask is true are the first elements of source, one after the other."""
    cdef Tensor t = need_tensor(input, "masked_scatter"), m = mask_of(mask, "masked_scatter")
    if not same_shape(t.layout, m.layout):
        from autograd_cy.engine.joins import broadcast_tensors
        t = broadcast_tensors(t, m)[0]
    return masked_into(own(copy_like(t)) if t.layout.flags & OVERLAPPING else copied_as_clone(t), m, source, "masked_scatter", t)


def nonzero(input, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 of shape (count, ndim), or a tensor for each dimension, of which a tensor
    without dimensions then counts as having one."""
    cdef bint flat = as_tuple and need_tensor(input, "nonzero").layout.ndim == 0
    cdef Tensor rows = true_places(need_tensor(input, "nonzero"), flat, "nonzero()")
    cdef int i
    if flat:
        return (rows,)
    return tuple([column(rows, i) for i in range(rows.layout.dims[1])]) if as_tuple else rows
