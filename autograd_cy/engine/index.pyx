# Indexing, read and written: numbers, slices, None, Ellipsis, arrays of integers and masks.
#
# Above 500 lines because what reads and what writes share Choice and Plan, and another module would add 40 kB.
#
# Relies on array, kernels/index, shape, copies, record. Tensor's [] and the rules of the table call it.
#
# An index is first understood for the axes of a tensor (Choice): what numbers and slices leave of each axis, and which have an array.
# With strides that makes offsets, one for every element of the arrays, and a block of the other axes that stands at each. As in PyTorch
# the axes of the arrays stand where the arrays do if these are neighbours in what numbers leave, else first (in NumPy a number counts
# as an array here). A node keeps a Plan: offsets and block for a contiguous tensor of the shape, so that it needs no array of the user's.

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, OVERLAPPING, Layout, layout_broadcast, layout_contiguous, layout_contiguous_like, layout_decref, layout_expand,
    layout_incref, layout_matrix, layout_permute, layout_strided, same_shape, shape_tuple, strides_of,
)
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport as_operand_tensor, contiguous_of, converted, copy_of, number_tensor, set_to_zero
from autograd_cy.engine.record cimport any_wants_grad, record, refuse_inplace, rewrite_history, set_edge, wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport contiguous, fill_one, narrowed, need_tensor, read_shape, unpack_slice, viewed_at
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, escape, recording

from autograd_cy.array.errors import ShapeError
from autograd_cy.engine.copies import copy_
from autograd_cy.engine.creation import tensor
from autograd_cy.engine.gather import scatter_winners
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.shape import expand, reshape

cdef int INDEX = row_number("index"), INDEX_BACK = row_number("index_back"), INDEX_FILL = row_number("index_fill")
cdef int INDEX_PUT = row_number("index_put"), INDEX_ACCUMULATE = row_number("index_accumulate")


cdef extern from "Python.h":
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step) noexcept
    Py_ssize_t PY_SSIZE_T_MAX
    bint PyIndex_Check(object o) noexcept
    object PyNumber_Index(object o)
    PyObject** PySequence_Fast_ITEMS(PyObject* o) noexcept


# ---- numbers and slices

cdef struct Choice:
    int ndim                          # axes of the result that come from no array, and of each:
    int axis[MAX_NDIM]                # the axis of the tensor, or -1 where it is inserted
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t step[MAX_NDIM]
    Py_ssize_t first[MAX_NDIM]        # for every axis of the tensor: where it begins
    int arrays                        # how many there are, and of each:
    PyObject* array[MAX_NDIM]         # an int64 tensor, contiguous; a reference of its own
    int at[MAX_NDIM]                  # the axis of the tensor, or -1
    Py_ssize_t size[MAX_NDIM]
    int position                      # how many of the axes above stand before those of the arrays
    bint places                       # the one array is made of a mask: its numbers are in range, and nobody else has it


cdef int keep_axis(Choice* c, int axis, Py_ssize_t size, Py_ssize_t step, str name) except -1:
    if c.ndim == MAX_NDIM:
        raise IndexError(f"{name}: a tensor has at most {MAX_NDIM} dimensions")
    c.axis[c.ndim], c.shape[c.ndim], c.step[c.ndim] = axis, size, step
    c.ndim += 1
    return 0


cdef int understand(Choice* c, Tensor x, object items, str name) except -1:
    """Fills c, whose arrays the caller lets go of."""
    cdef Py_ssize_t start, stop, step, size, length
    cdef int axis = 0, named = 0, ndim = x.layout.ndim, i, _skipped
    c.ndim = c.arrays = c.position = 0
    c.places = False
    for item in items:
        if isinstance(item, Tensor) and (<Tensor> item).dtype_ == BOOL:
            named += (<Tensor> item).layout.ndim
        else:
            named += item is not None and item is not Ellipsis
    if named > ndim:
        raise IndexError(f"{name}: {named} indices for a tensor of {ndim} dimensions (shape {x.shape})")
    for item in items:
        if item is None:
            keep_axis(c, -1, 1, 0, name)
        elif item is Ellipsis:
            for _skipped in range(ndim - named):
                c.first[axis] = 0
                keep_axis(c, axis, x.layout.dims[axis], 1, name)
                axis += 1
            named = ndim
        elif isinstance(item, Tensor):
            axis += add_arrays(c, x, <Tensor> item, axis, name)
        else:
            size = x.layout.dims[axis]
            if type(item) is slice:
                unpack_slice(item, &start, &stop, &step)
                length = PySlice_AdjustIndices(size, &start, &stop, step)
                keep_axis(c, axis, length, step, name)
            else:
                start, length, step = item, 1, 1
                if not -size <= start < size:
                    raise IndexError(f"{name}: index {start} is out of range for dim {axis} of size {size}")
                if start < 0:
                    start += size
            c.first[axis] = start if length else 0
            axis += 1
    for i in range(axis, ndim):
        c.first[i] = 0
        keep_axis(c, i, x.layout.dims[i], 1, name)
    c.position = max(c.position, 0)
    if c.arrays:
        broadcast_arrays(c, name)
        if (<Tensor> c.array[0]).layout.ndim + c.ndim > MAX_NDIM:
            raise IndexError(f"{name}: the result has more than {MAX_NDIM} dimensions")
    return 0


cdef Py_ssize_t block_of(Choice* c, int ndim, const Py_ssize_t* strides, Py_ssize_t* block) noexcept:
    """The strides of the kept axes in a tensor of these strides, and the offset of the first element."""
    cdef Py_ssize_t start = 0
    cdef int i
    for i in range(c.ndim):
        block[i] = 0 if c.axis[i] < 0 else strides[c.axis[i]] * c.step[i]
    for i in range(ndim):
        start += c.first[i] * strides[i]
    return start


# ---- arrays

cdef bint is_basic(object item) except -1:
    return item is None or item is Ellipsis or type(item) is slice or type(item) is int


cdef object normalised(object item, str name):
    """A number, slice, None or Ellipsis as it is; anything else as an int64 or bool tensor."""
    cdef Tensor t
    if is_basic(item):
        return item
    if isinstance(item, Tensor):
        return checked_array(item, True, name)
    if type(item) is list and (made := integers(item)) is not None:
        return made
    if isinstance(item, (bool, np.bool_)):
        return tensor(bool(item))
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, (list, tuple, np.ndarray, range)):
        t = tensor(item, dtype=None)
        if t.layout.numel == 0 and not isinstance(item, np.ndarray):
            t = own(converted(t, INT64))
    elif PyIndex_Check(item):
        return PyNumber_Index(item)
    else:
        raise IndexError(f"{name}: an index must be an integer, slice, None, Ellipsis or an array of integers or bools, "
                         f"got {type(item).__name__}")
    return checked_array(t, False, name)


cdef object checked_array(Tensor t, bint given, str name):
    """A tensor as part of an index; of 0 dimensions: the number in it."""
    if t.dtype_ <= FLOAT64:
        raise IndexError(f"{name}: an index must hold integers or bools, got dtype {t.dtype.name}")
    if t.layout.ndim == 0 and given:
        escape("an index by a tensor of 0 dimensions")
    if t.layout.ndim == 0 and t.dtype_ != BOOL:
        return t.item()
    return t


cdef object integers(list numbers):
    """A list of nothing but integers as an int64 tensor (in a capture: a constant); else None."""
    cdef Tensor t
    cdef Py_ssize_t i, n = len(numbers)
    cdef Layout* layout
    for item in numbers:
        if type(item) is not int:
            return None
    layout = layout_contiguous(1, &n)
    t = own(tensor_new(layout, INT64))
    layout_decref(layout)
    for i in range(min(n, len(numbers))):         # making t may have run Python's collector, and that anything
        (<long long*> t.data)[i] = numbers[i]
    return t if len(numbers) == n else None


cdef Tensor true_places(Tensor x, bint flat, str what):
    """The positions of the elements that are not 0: int64 (count, ndim), or (count,) in row-major order."""
    cdef Py_ssize_t size = x.layout.numel, step = 1, n
    cdef int ndim = 1 if flat else x.layout.ndim
    cdef const Py_ssize_t* shape = &size if flat and x.layout.ndim != 1 else x.layout.dims
    cdef const Py_ssize_t* strides = &step if flat and x.layout.ndim != 1 else strides_of(x.layout)
    cdef Layout* layout
    cdef Tensor out
    escape(what)
    n = K.count_nonzero(x.dtype_, ndim, shape, x.data, strides)
    layout = layout_contiguous(1, &n) if flat else layout_matrix(n, ndim)
    out = own(tensor_new(layout, INT64))
    layout_decref(layout)
    K.nonzero(x.dtype_, ndim, shape, x.data, strides, <long long*> out.data)
    return out


cdef Tensor column(Tensor rows, int i):
    """A column of a matrix, contiguous."""
    return own(contiguous_of(own(tensor_alias(rows, layout_strided(1, rows.layout.dims, strides_of(rows.layout)),
                                              rows.data + i * itemsize_of(rows.dtype_)))))


cdef str A_MASK = "an index by a mask, whose result has as many elements as the mask is true"


cdef int add_array(Choice* c, Tensor array, int axis, Py_ssize_t size, str name) except -1:
    if c.arrays == MAX_NDIM:                      # of True and False, which stand for no axis, there may be any number
        raise IndexError(f"{name}: an index has at most {MAX_NDIM} arrays")
    if c.arrays == 0:
        c.position = c.ndim
    elif c.position != c.ndim:                    # something stands between them
        c.position = -1
    Py_INCREF(array)
    c.array[c.arrays], c.at[c.arrays], c.size[c.arrays] = <PyObject*> array, axis, size
    c.arrays += 1
    c.places = False
    return 0


cdef int add_arrays(Choice* c, Tensor x, Tensor item, int axis, str name) except -1:
    """An array of integers, or what a mask is as such; the number of axes that it stands for."""
    cdef int n = item.layout.ndim, i
    cdef bint as_one
    if item.dtype_ != BOOL:
        c.first[axis] = 0
        if item.dtype_ != INT64 or not item.layout.flags & CONTIGUOUS:
            item = own(contiguous_of(own(converted(item, INT64))))
        add_array(c, item, axis, x.layout.dims[axis], name)
        return 1
    if n == 0:                                    # x[True], x[False]: a new axis of size 1 or 0
        add_array(c, tensor([0] if item.data[0] else [], dtype="int64"), -1, 1, name)
        return 0
    for i in range(n):
        c.first[axis + i] = 0
        if item.layout.dims[i] != x.layout.dims[axis + i]:
            raise IndexError(f"{name}: a mask of shape {item.shape} does not fit the dims {x.shape[axis:axis + n]} of a tensor of shape "
                             f"{x.shape}")
    as_one = n == 1 or x.layout.flags & item.layout.flags & CONTIGUOUS
    rows = true_places(item, as_one, A_MASK)
    if as_one:
        add_array(c, rows, axis + n - 1, item.layout.numel, name)
        c.places = c.arrays == 1
    else:
        for i in range(n):
            add_array(c, column(rows, i), axis + i, item.layout.dims[i], name)
    return n


cdef int broadcast_arrays(Choice* c, str name) except -1:
    """All of one shape."""
    cdef Layout* layout = (<Tensor> c.array[0]).layout
    cdef Layout* wider
    cdef Tensor a
    cdef int i
    layout_incref(layout)
    for i in range(1, c.arrays):
        a = <Tensor> c.array[i]
        if same_shape(layout, a.layout):
            continue
        wider = layout_broadcast(layout, a.layout)
        layout_decref(layout)
        layout = wider
        if layout == NULL:
            shapes = [str((<Tensor> c.array[i]).shape) for i in range(c.arrays)]
            raise IndexError(f"{name}: index arrays of shapes {' and '.join(shapes)} do not broadcast against each other")
    for i in range(c.arrays):
        a = <Tensor> c.array[i]
        if not same_shape(layout, a.layout):
            c.array[i] = contiguous_of(own(tensor_alias(a, layout_expand(a.layout, layout.ndim, layout.dims), a.data)))
            Py_DECREF(a)
    layout_decref(layout)
    return 0


cdef Tensor offsets_of(Choice* c, const Py_ssize_t* strides, str name):
    """Offsets into memory of these strides for every element of the arrays; IndexError where one is out of range."""
    cdef const long long* numbers[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor offsets
    cdef Py_ssize_t bad
    cdef int k
    for k in range(c.arrays):
        numbers[k] = <const long long*> (<Tensor> c.array[k]).data
        steps[k] = 0 if c.at[k] < 0 else strides[c.at[k]]
    if c.places and steps[0] == 1:
        return <Tensor> c.array[0]
    offsets = own(tensor_new((<Tensor> c.array[0]).layout, INT64))
    bad = K.index_offsets(offsets.layout.numel, c.arrays, numbers, c.size, steps, <Py_ssize_t*> offsets.data)
    if bad >= 0:
        for k in range(c.arrays):
            if not -c.size[k] <= numbers[k][bad] < c.size[k]:
                raise IndexError(f"{name}: index {numbers[k][bad]} is out of range for dim {c.at[k]} of size {c.size[k]}")
    return offsets


cdef class Plan:
    """What an index chooses of a contiguous tensor; private to the operation, so never changed."""

    cdef Tensor offsets
    cdef Layout* block        # the axes without an array, as they stand at each offset
    cdef Py_ssize_t start     # of all offsets
    cdef int position         # how many axes of the block stand before those of the offsets
    cdef Py_ssize_t unit      # of which all offsets are multiples
    cdef Py_ssize_t count     # of units: as many as there may be

    def __dealloc__(self):
        if self.block != NULL:
            layout_decref(self.block)


cdef Plan plan_for(Choice* c, const Py_ssize_t* strides, Tensor offsets, Py_ssize_t start, const Py_ssize_t* block):
    """The plan for a contiguous tensor, whose strides these are, from its parts."""
    cdef Plan plan = Plan()
    cdef Py_ssize_t step
    cdef int k
    plan.offsets, plan.start, plan.position, plan.block = offsets, start, c.position, layout_strided(c.ndim, c.shape, block)
    plan.unit, plan.count = PY_SSIZE_T_MAX, 0
    for k in range(c.arrays):
        if c.at[k] >= 0:
            step = strides[c.at[k]]
            plan.unit = min(plan.unit, max(step, 1))
            plan.count += max(c.size[k] - 1, 0) * step
    plan.count = plan.count // plan.unit + 1
    return plan


cdef Tensor chosen(Tensor x, Py_ssize_t start, Tensor offsets, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, int position):
    """The blocks at the offsets, in memory of their own."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t order[MAX_NDIM]
    cdef int i, n = offsets.layout.ndim
    cdef Layout* layout
    cdef Tensor out
    for i in range(n + ndim):
        sizes[i] = offsets.layout.dims[i] if i < n else shape[i - n]
        order[i] = n + i if i < position else i - position if i < position + n else i
    layout = layout_contiguous(n + ndim, sizes)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    K.gather(itemsize_of(x.dtype_), offsets.layout.numel, <const Py_ssize_t*> offsets.data, ndim, shape, strides,
             x.data + start * itemsize_of(x.dtype_), out.data)
    if position and n:                            # from the arrays' axes first to where they stand
        out = own(tensor_alias(out, layout_permute(out.layout, order), out.data))
    return out


cdef int overwrite(Tensor x, Py_ssize_t start, Tensor offsets, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, int position,
                   Tensor value, bint adds, str name) except -1:
    """The blocks at the offsets = value (of their shape or broadcast to it), or += value; no history."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t order[MAX_NDIM]
    cdef int i, n = offsets.layout.ndim
    cdef Layout* layout
    cdef Tensor source = own(converted(value, x.dtype_))
    for i in range(n + ndim):
        sizes[i] = shape[i] if i < position else offsets.layout.dims[i - position] if i < position + n else shape[i - n]
        order[i] = position + i if i < n else i - n if i < n + position else i
    layout = layout_expand(value.layout, n + ndim, sizes)
    if layout == NULL:
        raise ShapeError(f"{name}: a value of shape {value.shape} does not broadcast to the chosen elements' shape "
                         f"{tuple([sizes[i] for i in range(n + ndim)])}")
    if source is not value:
        layout_decref(layout)
        layout = layout_expand(source.layout, n + ndim, sizes)
    source = own(tensor_alias(source, layout, source.data))
    if position and n:
        source = own(tensor_alias(source, layout_permute(layout, order), source.data))
    source = own(copy_like(source) if source.storage == x.storage else contiguous_of(source))
    if adds:
        K.scatter_add(x.dtype_, offsets.layout.numel, <const Py_ssize_t*> offsets.data, ndim, shape, strides, source.data,
                      x.data + start * itemsize_of(x.dtype_))
    else:
        K.scatter(itemsize_of(x.dtype_), offsets.layout.numel, <const Py_ssize_t*> offsets.data, ndim, shape, strides, source.data,
                  x.data + start * itemsize_of(x.dtype_))
    return 0


cdef PyObject* copy_like(Tensor x) except NULL:
    """A contiguous copy."""
    cdef Layout* layout = layout_contiguous_like(x.layout)
    cdef PyObject* out = copy_of(x, layout)
    layout_decref(layout)
    return out


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

cdef object items_of(object index, str name, bint* arrays):
    """The parts of an index, normalised; whether there are arrays among them."""
    cdef tuple items = index if isinstance(index, tuple) else (index,)
    cdef list changed = None
    cdef int dots = 0, i = 0
    arrays[0] = False
    for item in items:
        if not is_basic(item):
            made = normalised(item, name)
            if made is not item:
                changed = list(items) if changed is None else changed
                changed[i] = made
            arrays[0] |= isinstance(made, Tensor)
        dots += item is Ellipsis
        i += 1
    if dots > 1:
        raise IndexError(f"{name}: an index has at most one Ellipsis")
    return items if changed is None else changed


cdef object basic(Tensor t, object items, str name):
    """A view by numbers, slices, None and Ellipsis, a tuple or list of them, or one; Python's None where there is something else."""
    cdef PyObject* one = <PyObject*> items
    if type(items) is list:
        items = tuple(items)                      # reading a slice may run code that changes a list
    if type(items) is tuple:
        return viewed_at(t, PySequence_Fast_ITEMS(<PyObject*> items), len(items), name)
    return viewed_at(t, &one, 1, name)


cdef PyObject* getitem(PyObject* x, PyObject* index_) except NULL:
    cdef Tensor t = <Tensor> x
    cdef object given = <object> index_
    cdef object result = None
    if type(given) is not list:
        result = basic(t, given, "index")
    if result is None:
        result = getitem_any(t, given)
    Py_INCREF(result)
    return <PyObject*> result


cdef object getitem_any(Tensor t, object given):
    cdef bint arrays
    cdef object items = items_of(given, "index", &arrays)
    return read_at(t, t, items, "index") if arrays else basic(t, items, "index")


cdef object read_at(Tensor t, Tensor memory, object items, str name):
    """memory[items], where `memory` is t itself, or t in one dimension."""
    cdef bint keeps = t.dtype_ <= FLOAT64 and wants_grad(t) and grad_enabled()
    cdef PyObject* taken
    plan = choose(memory, items, None, False, keeps, &taken, name)
    out = own(taken)
    return recorded(INDEX, t, out, (plan,)) if keeps else out


cdef Tensor in_one_dimension(Tensor x):
    """A contiguous tensor without its shape and history."""
    return own(tensor_alias(x, layout_contiguous(1, &x.layout.numel), x.data))


cdef Tensor without_leading_ones(Tensor v, int ndim):
    """As in NumPy, leading axes of size 1 that the destination lacks are dropped."""
    while v.layout.ndim > ndim and v.layout.dims[0] == 1:
        v = v.reshape(v.shape[1:])
    return v


cdef bint fits_mask(Tensor t, object items, Tensor v) except -1:
    """Whether x[mask] = v is also where(mask, v, x), for which nobody needs to count, with the same gradients to the bit."""
    cdef Tensor mask
    if len(items) != 1 or not isinstance(items[0], Tensor) or (<Tensor> items[0]).dtype_ != BOOL or v.dtype_ != t.dtype_:
        return False
    mask = items[0]
    return 0 < mask.layout.ndim <= t.layout.ndim and shape_tuple(mask.layout) == t.shape[:mask.layout.ndim] \
        and v.layout.ndim <= t.layout.ndim - (0 if v.layout.numel == 1 else mask.layout.ndim) and not (wants_grad(v) and grad_enabled())


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
    view = basic(t, index, name) if type(index) is not list else None
    if view is None:
        items = items_of(index, name, &arrays)
        if not arrays:
            view = basic(t, items, name)
    if view is not None:
        v = without_leading_ones(v, (<Tensor> view).layout.ndim)
        if adds:
            view.add_(v)
        else:
            copy_(view, v)
        return 0
    if t.layout.flags & OVERLAPPING:
        raise RuntimeError(f"{name}: several elements of the tensor share one memory location (it was expanded); clone() it first")
    if recording() and not adds and fits_mask(t, items, v):
        t.copy_(FUNCTIONS["where"](reshape(items[0], (*items[0].shape, *[1] * (t.layout.ndim - items[0].ndim))), v, t))
        return 0
    return write_at(t, t, items, v, adds, name)


cdef int write_at(Tensor t, Tensor memory, object items, Tensor v, bint adds, str name) except -1:
    """memory[items] = v, or += v, where `memory` is t itself, or t in one dimension."""
    cdef bint keeps = (wants_grad(v) or wants_grad(t)) and t.dtype_ <= FLOAT64 and grad_enabled()
    cdef PyObject* node
    cdef Plan plan = choose(memory, items, v, adds, keeps, NULL, name)
    t.storage.version += 1
    if keeps:
        v = without_leading_ones(v, plan.block.ndim + plan.offsets.layout.ndim)      # its gradient has no place for them
        node = node_new(INDEX_ACCUMULATE if adds else INDEX_PUT, 2, 0)
        set_edge(&(<Node> node).edges[0], t)
        set_edge(&(<Node> node).edges[1], v)
        attrs = (plan,)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        rewrite_history(t, node)
    return 0


cdef bint has_none(object items):
    for i in items:
        if i is None:
            return True
    return False


def index_put_(input, indices, values, accumulate=False):
    """In place: input[indices] = values, or with accumulate += values, to which duplicates add up. indices: a tuple of tensors.

    Raises IndexError for indices out of range, ValueError where the values do not broadcast to the chosen elements.
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_: indices must be a tuple of tensors, got {type(indices).__name__}")
    if has_none(indices):
        indices = [slice(None) if i is None else i for i in indices]
    assign(need_tensor(input, "index_put_"), tuple(indices), values, bool(accumulate), "index_put_")
    return input


operators.getitem = getitem
operators.setitem = setitem


# ---- by places in row-major order, by masks

cdef tuple places_of(object index, str name):
    cdef Tensor places = need_tensor(index, name)
    if places.dtype_ <= FLOAT64 or places.dtype_ == BOOL:
        raise RuntimeError(f"{name}: expected int64 places, got {places.dtype}")
    return (places,)


def take(input, index):
    """The elements at places counted in row-major order: the shape of index. Negative places count from the end."""
    cdef Tensor t = contiguous(need_tensor(input, "take"))
    return read_at(t, in_one_dimension(t), places_of(index, "take"), "take")


def put_(self, index, source, accumulate=False):
    """In place: the elements of source at places counted in row-major order, or with accumulate added to what is there."""
    cdef bint adds = accumulate
    cdef Tensor t = need_tensor(self, "put_"), v = need_tensor(source, "put_"), places
    cdef tuple items = places_of(index, "put_")
    places = items[0]
    if places.layout.numel != v.layout.numel:
        raise RuntimeError(f"put_: expected as many places as elements, got shapes {index.shape} and {v.shape}")
    if v.dtype_ != t.dtype_:
        raise RuntimeError(f"put_: expected a source of the input's dtype {t.dtype}, got {v.dtype}")
    if not t.layout.flags & CONTIGUOUS:
        return t.copy_(put_(contiguous(t), index, source, accumulate))
    refuse_inplace(t, "put_")
    if not same_shape(v.layout, places.layout):
        v = reshape(v, index.shape)
    write_at(t, in_one_dimension(t), items, v, adds, "put_")
    return self


cdef Tensor mask_of(object given, str name):
    cdef Tensor mask = need_tensor(given, name)
    if mask.dtype_ != BOOL:
        raise RuntimeError(f"{name}: expected a bool mask, got {mask.dtype}")
    return mask


def masked_select(input, mask):
    """The elements where mask is true, in one dimension; both broadcast against each other."""
    cdef Tensor m = mask_of(mask, "masked_select"), t = need_tensor(input, "masked_select")
    if not same_shape(t.layout, m.layout) or t.layout.ndim == 0:
        from autograd_cy.engine.joins import broadcast_tensors
        t, m = broadcast_tensors(*((t, m) if t.layout.ndim or m.layout.ndim else (reshape(t, 1), m)))
    return read_at(t, t, (m,), "masked_select")


def masked_scatter_(self, mask, source):
    """In place: the elements where mask is true become the first elements of source, one after the other.

    Raises RuntimeError where source has fewer elements than mask is true.
    """
    cdef Tensor t = need_tensor(self, "masked_scatter_"), m = mask_of(mask, "masked_scatter_"), v = need_tensor(source, "masked_scatter_")
    cdef Py_ssize_t count
    if v.dtype_ != t.dtype_:
        raise RuntimeError(f"masked_scatter_: expected a source of the input's dtype {t.dtype}, got {v.dtype}")
    if not same_shape(m.layout, t.layout):
        m = expand(m, t.shape)
    escape(A_MASK)
    count = K.count_nonzero(BOOL, m.layout.ndim, m.layout.dims, m.data, strides_of(m.layout))
    if count > v.layout.numel:
        raise RuntimeError(f"masked_scatter_: the mask is true at {count} elements, but source has {v.layout.numel}")
    if v.layout.ndim != 1:
        v = reshape(v, -1)
    if v.layout.numel != count:
        v = narrowed(v, 0, 0, count)
    assign(t, m, v, False, "masked_scatter_")
    return self


def nonzero(x, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 of shape (count, ndim), or a tensor for each dimension, of which a tensor
    without dimensions then counts as having one."""
    cdef bint flat = as_tuple and need_tensor(x, "nonzero").layout.ndim == 0
    cdef Tensor rows = true_places(need_tensor(x, "nonzero"), flat, "nonzero()")
    cdef int i
    if flat:
        return (rows,)
    return tuple([column(rows, i) for i in range(rows.layout.dims[1])]) if as_tuple else rows
