# Indexing, read and written: numbers, slices, None, Ellipsis, arrays of integers and masks.
#
# Above 500 lines because a Plan, which no other module may see into, cannot be divided from what reads and writes by it.
#
# Relies on array, kernels/index, shape, record. Tensor's [] and the rules of the table call it.
#
# An index is first split into numbers and slices, which make a view, and arrays, which a Plan holds. As in PyTorch the axes of
# the arrays stand where the arrays do if these are neighbours in that view, else first (in NumPy a number counts as an array here).

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, UINT8, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, OVERLAPPING, Layout, layout_broadcast, layout_contiguous, layout_decref, layout_expand, layout_incref, layout_strided,
    same_shape, shape_tuple, strides_of,
)
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, remember_line
from autograd_cy.engine.operands cimport as_operand_tensor, contiguous_of, converted
from autograd_cy.engine.record cimport any_wants_grad, record, refuse_inplace, rewrite_history, set_edge, wants_grad
from autograd_cy.engine.shape cimport narrowed, need_tensor, own, selected, sliced
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, escape, recording

from autograd_cy.array.errors import ShapeError
from autograd_cy.engine.creation import tensor, zeros_code
from autograd_cy.engine.gather import scatter_winners
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.shape import clone, expand, permute, reshape, slice_axes
from autograd_cy.engine.tensor import OPCODES

cdef int INDEX = OPCODES["index"], INDEX_BACK = OPCODES["index_back"], INDEX_FILL = OPCODES["index_fill"]
cdef int INDEX_PUT = OPCODES["index_put"], INDEX_ACCUMULATE = OPCODES["index_accumulate"]


cdef extern from "Python.h":
    int PySlice_Unpack(object s, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step) noexcept
    Py_ssize_t PY_SSIZE_T_MAX

cdef tuple WHOLE = (None, None, None)     # an axis that is not cut


# ---- numbers and slices

cdef object basic(Tensor x, tuple items, str name, bint records=True):
    """A view by numbers, slices, None and Ellipsis."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t offset = 0
    cdef Py_ssize_t start, stop, step, size, length
    cdef int axis = 0, n = 0, _skipped
    cdef bint whole
    cdef list index = [] if records and wants_grad(x) else None
    cdef int named = 0
    for item in items:
        named += item is not None and item is not Ellipsis
    if named > x.layout.ndim:
        raise IndexError(f"{name}: {named} indices for a tensor of {x.layout.ndim} dimensions (shape {x.shape})")
    for item in items:
        if n >= MAX_NDIM:
            raise IndexError(f"{name}: a tensor has at most {MAX_NDIM} dimensions")
        if item is None:
            shape[n], strides[n] = 1, 0
            n += 1
            continue
        if item is Ellipsis:
            for _skipped in range(x.layout.ndim - named):
                shape[n], strides[n] = x.layout.dims[axis], strides_of(x.layout)[axis]
                if index is not None:
                    index.append(WHOLE)
                n += 1
                axis += 1
            named = x.layout.ndim
            continue
        size = x.layout.dims[axis]
        if type(item) is slice:
            PySlice_Unpack(item, &start, &stop, &step)
            whole = start == 0 and stop == PY_SSIZE_T_MAX and step == 1
            length = PySlice_AdjustIndices(size, &start, &stop, step)
            shape[n], strides[n] = length, strides_of(x.layout)[axis] * step
            n += 1
            if whole:
                if index is not None:
                    index.append(WHOLE)
                axis += 1
                continue
        else:
            start, length, step = item, 1, 1
            if not -size <= start < size:
                raise IndexError(f"{name}: index {start} is out of range for dim {axis} of size {size}")
            if start < 0:
                start += size
        if length:
            offset += start * strides_of(x.layout)[axis]
        if index is not None:
            index.append((start, length, step))
        axis += 1
    while axis < x.layout.ndim:
        shape[n], strides[n] = x.layout.dims[axis], strides_of(x.layout)[axis]
        n += 1
        axis += 1
    if not records:
        return own(tensor_alias(x, layout_strided(n, shape, strides), x.data + offset * itemsize_of(x.dtype_)))
    return sliced(x, tuple(index) if index is not None else None, n, shape, strides, offset)


# ---- arrays

cdef class Plan:
    """Arrays of indices, checked and broadcast, and the slices beside them; private to the operation, so never changed."""

    cdef tuple slices         # None: all full; or for every axis of x: a number or slice (full: an array), or None to insert an axis
    cdef list axes            # axes of the sliced view that have an array
    cdef list arrays          # int64 tensors, contiguous, all of one shape
    cdef tuple shape          # of the arrays, broadcast
    cdef int position         # where the arrays' axes stand in the result

    cdef Tensor view(self, Tensor x):
        """x by the slices only; no history is asked of it."""
        return x if self.slices is None else basic(x, self.slices, "index", False)


cdef bint is_basic(object item) except -1:
    return item is None or item is Ellipsis or type(item) is slice or type(item) is int


cdef object normalised(object item, str name):
    """A number, slice, None or Ellipsis as it is; anything else as an int64 or bool tensor."""
    cdef Tensor t
    if is_basic(item):
        return item
    if isinstance(item, Tensor):
        return checked_array(item, True, name)
    if isinstance(item, slice):
        return slice(*[None if v is None else v.__index__() for v in (item.start, item.stop, item.step)])
    if isinstance(item, (bool, np.bool_)):
        return tensor(bool(item))
    if isinstance(item, np.integer):
        return int(item)
    if type(item) is list and (made := integers(item)) is not None:
        return made
    if isinstance(item, (list, tuple, np.ndarray, range)):
        t = tensor(item, dtype=None)
        if t.layout.numel == 0 and not isinstance(item, np.ndarray):
            t = own(converted(t, INT64))
    elif hasattr(item, "__index__"):
        return item.__index__()
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
    cdef Py_ssize_t i
    for item in numbers:
        if type(item) is not int:
            return None
    t = zeros_code((len(numbers),), INT64)
    for i in range(t.layout.numel):
        (<long long*> t.data)[i] = numbers[i]
    return t


cdef Tensor true_places(Tensor mask, str what):
    """The positions of the true elements: int64 (count, ndim)."""
    cdef Py_ssize_t n
    cdef Tensor rows
    escape(what)
    n = K.count_nonzero(BOOL, mask.layout.ndim, mask.layout.dims, mask.data, strides_of(mask.layout))
    rows = zeros_code((n, mask.layout.ndim), INT64)
    K.nonzero(BOOL, mask.layout.ndim, mask.layout.dims, mask.data, strides_of(mask.layout), <long long*> rows.data)
    return rows


cdef list mask_arrays(Tensor mask):
    """The positions of the true elements: an int64 tensor for every axis of the mask."""
    cdef Tensor rows = true_places(mask, "an index by a mask, whose result has as many elements as the mask is true")
    if mask.layout.ndim == 1:
        return [reshape(rows, rows.layout.dims[0])]
    return [own(contiguous_of(slice_axes(rows, ((None, None, None), (i, 1, 1)), (rows.layout.dims[0],)))) for i in range(mask.layout.ndim)]


cdef bint shares_memory(Tensor a, Tensor b) noexcept:
    return a.storage == b.storage


cdef Plan make_plan(Tensor x, list items, bint keeps, str name):
    """keeps: the plan will be part of a node, so that the arrays must not change with the user's."""
    cdef Plan plan = Plan()
    cdef list slices = []
    cdef list where = []      # for every array: the axis of the sliced view
    cdef int used = 0, axis = 0, out = 0
    cdef bint cuts = False    # whether any axis is cut, dropped or inserted
    cdef Tensor item
    for i in items:
        if i is not None and i is not Ellipsis:
            used += (<Tensor> i).layout.ndim if isinstance(i, Tensor) and (<Tensor> i).dtype_ == BOOL else 1
    if used > x.layout.ndim:
        raise IndexError(f"{name}: {used} indices for a tensor of {x.layout.ndim} dimensions (shape {x.shape})")
    plan.arrays = []
    for i in items:
        if i is None:
            cuts = True
            slices.append(None)
            out += 1
        elif i is Ellipsis:
            for _ in range(x.layout.ndim - used):
                slices.append(slice(None))
                out += 1
                axis += 1
        elif type(i) is slice:
            cuts = cuts or i.start is not None or i.stop is not None or i.step is not None
            slices.append(i)
            out += 1
            axis += 1
        elif type(i) is int:
            cuts = True
            slices.append(i)
            axis += 1
        else:
            item = i
            if item.dtype_ == BOOL:
                if shape_tuple(item.layout) != x.shape[axis:axis + item.layout.ndim]:
                    raise IndexError(f"{name}: a mask of shape {item.shape} does not fit the dims {x.shape[axis:axis + item.layout.ndim]} "
                                     f"of a tensor of shape {x.shape}")
                if item.layout.ndim == 0:       # x[True], x[False]: a new axis of size 1 or 0
                    plan.arrays.append(tensor([0] if item.data[0] else [], dtype="int64"))
                    where.append(out)
                    slices.append(None)
                    cuts = True
                    out += 1
                    continue
                parts = mask_arrays(item)
            else:
                parts = [own(converted(item, INT64))]
            for part in parts:
                plan.arrays.append(part)
                where.append(out)
                slices.append(slice(None))
                out += 1
                axis += 1
    plan.slices = tuple(slices) if cuts else None
    plan.axes = where
    plan.position = where[0] if where[len(where) - 1] - where[0] == len(where) - 1 else 0
    broadcast_arrays(plan, name)
    if keeps and any([shares_memory(<Tensor> a, <Tensor> i) for a in plan.arrays for i in items if isinstance(i, Tensor)]):
        plan.arrays = [clone(a) for a in plan.arrays]
    return plan


cdef Plan plan_of_one(Tensor index, bint keeps):
    """The plan for one array of integers at the first axis."""
    cdef Plan plan = Plan()
    cdef Tensor array = own(contiguous_of(own(converted(index, INT64))))
    plan.slices, plan.axes, plan.position, plan.shape = None, [0], 0, shape_tuple(index.layout)
    plan.arrays = [clone(array) if keeps and array.storage == index.storage else array]
    return plan


cdef int broadcast_arrays(Plan plan, str name) except -1:
    """All arrays of one shape, contiguous."""
    cdef Layout* layout = (<Tensor> plan.arrays[0]).layout
    cdef Layout* wider
    cdef Tensor a
    layout_incref(layout)
    for a in plan.arrays:
        if same_shape(layout, a.layout):
            continue
        wider = layout_broadcast(layout, a.layout)
        layout_decref(layout)
        layout = wider
        if layout == NULL:
            raise IndexError(f"{name}: index arrays of shapes {' and '.join([str(i.shape) for i in plan.arrays])} do not broadcast "
                             f"against each other")
    plan.shape = shape_tuple(layout)
    plan.arrays = [own(contiguous_of(a if same_shape(layout, (<Tensor> a).layout) else expand(a, plan.shape))) for a in plan.arrays]
    layout_decref(layout)
    return 0


cdef struct Inner:            # the axes without an array
    int ndim
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t strides[MAX_NDIM]


cdef Tensor offsets_of(Plan plan, Tensor view, Inner* inner, str name):
    """Offsets into the view's memory for every element of the arrays; IndexError where one is out of range."""
    cdef const long long* arrays[MAX_NDIM]
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Tensor offsets = own(tensor_new((<Tensor> plan.arrays[0]).layout, INT64))
    cdef Py_ssize_t bad
    cdef int i, k = 0
    inner.ndim = 0
    for i in range(view.layout.ndim):
        if i in plan.axes:
            arrays[k] = <const long long*> (<Tensor> plan.arrays[k]).data
            sizes[k], strides[k] = view.layout.dims[i], strides_of(view.layout)[i]
            k += 1
        else:
            inner.shape[inner.ndim], inner.strides[inner.ndim] = view.layout.dims[i], strides_of(view.layout)[i]
            inner.ndim += 1
    bad = K.index_offsets(offsets.layout.numel, k, arrays, sizes, strides, <Py_ssize_t*> offsets.data)
    if bad >= 0:
        for i in range(k):
            if not -sizes[i] <= arrays[i][bad] < sizes[i]:
                raise IndexError(f"{name}: index {arrays[i][bad]} is out of range for dim {plan.axes[i]} of size {sizes[i]}")
    return offsets


cdef tuple result_shape(Plan plan, Inner* inner):
    """Shape with the arrays' axes first."""
    return (*plan.shape, *[inner.shape[i] for i in range(inner.ndim)])


cdef object arrays_in_place(Plan plan, object out):
    """From arrays' axes first to where they stand."""
    cdef int n = len(plan.shape)
    if plan.position == 0 or n == 0:
        return out
    order = list(range(n, n + plan.position)) + list(range(n)) + list(range(n + plan.position, out.ndim))
    return permute(out, tuple(order))


cdef object arrays_first(Plan plan, object g):
    cdef int n = len(plan.shape)
    if plan.position == 0 or n == 0:
        return g
    order = list(range(plan.position, plan.position + n)) + list(range(plan.position)) + list(range(plan.position + n, g.ndim))
    return permute(g, tuple(order))


def index(Tensor x, Plan plan):
    """The elements that the plan chooses."""
    cdef Inner inner
    cdef Tensor view = plan.view(x)
    cdef Tensor offsets = offsets_of(plan, view, &inner, "index")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Layout* layout
    cdef Tensor out
    cdef Tensor placed
    cdef PyObject* inputs[1]
    cdef int i, n = offsets.layout.ndim
    if n + inner.ndim > MAX_NDIM:
        raise IndexError(f"index: the result has more than {MAX_NDIM} dimensions")
    for i in range(n + inner.ndim):
        shape[i] = offsets.layout.dims[i] if i < n else inner.shape[i - n]
    n += inner.ndim
    layout = layout_contiguous(n, shape)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    K.gather(itemsize_of(x.dtype_), offsets.layout.numel, <const Py_ssize_t*> offsets.data, inner.ndim, inner.shape, inner.strides,
             view.data, out.data)
    placed = arrays_in_place(plan, out)
    if placed is not out:
        placed = placed.detach()                # its memory is its own: no view of anything
    inputs[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (plan,)
        record(INDEX, <PyObject*> placed, 1, inputs, <PyObject*> attrs, NULL)
    return placed


def index_back(Tensor g, shape, Plan plan):
    """g added into zeros at the chosen elements: the gradient of index."""
    cdef Inner inner
    cdef Tensor out = zeros_code(shape, g.dtype_)
    cdef Tensor view = plan.view(out)
    cdef Tensor offsets = offsets_of(plan, view, &inner, "index")
    cdef Tensor values = own(contiguous_of(arrays_first(plan, g.detach())))
    cdef PyObject* inputs[1]
    K.scatter_add(g.dtype_, offsets.layout.numel, <const Py_ssize_t*> offsets.data, inner.ndim, inner.shape, inner.strides,
                  values.data, view.data)
    inputs[0] = <PyObject*> g
    if any_wants_grad(1, inputs):
        attrs = (shape, plan)
        record(INDEX_BACK, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


cdef int overwrite(Tensor x, Plan plan, Tensor value, str name, bint adds=False) except -1:
    """x at the chosen elements = value (of their shape or broadcast to it), or += value; no history."""
    cdef Inner inner
    cdef Tensor view = plan.view(x)
    cdef Tensor offsets = offsets_of(plan, view, &inner, name)
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* layout
    cdef Tensor source
    cdef int n = 0
    full = list(result_shape(plan, &inner))
    k = len(plan.shape)
    if plan.position:
        full = full[k:k + plan.position] + full[:k] + full[k + plan.position:]
    for size in full:
        sizes[n] = size
        n += 1
    layout = layout_expand(value.layout, n, sizes)
    if layout == NULL:
        raise ShapeError(f"{name}: a value of shape {value.shape} does not broadcast to the chosen elements' shape {tuple(full)}")
    source = own(tensor_alias(value, layout, value.data))
    source = own(contiguous_of(arrays_first(plan, own(converted(source, x.dtype_)))))
    if source.storage == x.storage:
        source = clone(source)
    if adds:
        K.scatter_add(x.dtype_, offsets.layout.numel, <const Py_ssize_t*> offsets.data, inner.ndim, inner.shape, inner.strides,
                      source.data, view.data)
    else:
        K.scatter(itemsize_of(x.dtype_), offsets.layout.numel, <const Py_ssize_t*> offsets.data, inner.ndim, inner.shape, inner.strides,
                  source.data, view.data)
    return 0


def index_fill(Tensor x, Plan plan):
    """x with zeros at the chosen elements."""
    cdef Tensor out = clone(x.detach())
    cdef PyObject* inputs[1]
    overwrite(out, plan, zeros_code((), x.dtype_), "index")
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (plan,)
        record(INDEX_FILL, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def index_winners(Tensor x, Plan plan):
    """Which elements of v x[index] = v leaves in x: the last one of each place. A bool tensor that broadcasts to v."""
    cdef Tensor view = plan.view(x)
    cdef Tensor offsets = own(tensor_new((<Tensor> plan.arrays[0]).layout, INT64))
    cdef const long long* arrays[MAX_NDIM]
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t step = 1
    cdef int k, n = <int> len(plan.axes)
    for k in range(n - 1, -1, -1):                # places as if the axes of the arrays were all there is
        arrays[k] = <const long long*> (<Tensor> plan.arrays[k]).data
        sizes[k], strides[k] = view.layout.dims[<int> plan.axes[k]], step
        step *= sizes[k]
    K.index_offsets(offsets.layout.numel, n, arrays, sizes, strides, <Py_ssize_t*> offsets.data)
    winners = reshape(scatter_winners(reshape(offsets, -1), (step,), 0), plan.shape)
    return reshape(winners, (*plan.shape, *[1] * (view.layout.ndim - n - plan.position)))


# ---- []

cdef list items_of(object index, str name):
    if isinstance(index, tuple):
        items = [normalised(i, name) for i in <tuple> index]
        if sum([i is Ellipsis for i in items]) > 1:
            raise IndexError(f"{name}: an index has at most one Ellipsis")
        return items
    return [normalised(index, name)]


cdef bint all_basic(list items) except -1:
    for i in items:
        if isinstance(i, Tensor):
            return False
    return True


cdef bint masks_whole(Tensor t, Tensor mask) noexcept:
    """Whether a mask for every element may be read in one dimension."""
    return mask.dtype_ == BOOL and t.layout.ndim > 1 and same_shape(t.layout, mask.layout) and t.layout.flags & CONTIGUOUS \
        and mask.layout.flags & CONTIGUOUS


cdef object first_slices(Tensor t, object given):
    """t[start:stop]."""
    cdef Py_ssize_t start, stop, step, length
    PySlice_Unpack(given, &start, &stop, &step)
    length = PySlice_AdjustIndices(t.layout.dims[0], &start, &stop, step)
    return narrowed(t, 0, start, length)


cdef bint plain_tuple(tuple items) noexcept:
    """Whether there are only numbers, slices, None and at most one Ellipsis."""
    cdef int dots = 0
    for i in items:
        if type(i) is not int and type(i) is not slice and i is not None:
            if i is not Ellipsis:
                return False
            dots += 1
    return dots < 2


cdef PyObject* getitem(PyObject* x, PyObject* index_) except NULL:
    cdef object result
    cdef object given = <object> index_
    cdef Tensor t = <Tensor> x
    if type(given) is int and (<Tensor> x).layout.ndim:
        result = selected(<Tensor> x, 0, given, "index")
    elif type(given) is slice and given.step is None and t.layout.ndim:
        result = first_slices(t, given)
    elif type(given) is int or type(given) is slice:
        result = basic(t, (given,), "index")
    elif type(given) is tuple and plain_tuple(<tuple> given):
        result = basic(t, <tuple> given, "index")
    elif isinstance(given, Tensor) and t.layout.ndim and (<Tensor> given).layout.ndim and FLOAT64 < (<Tensor> given).dtype_ < UINT8:
        result = index(t, plan_of_one(<Tensor> given, wants_grad(t)))
    elif isinstance(given, Tensor) and masks_whole(t, <Tensor> given):
        result = index(reshape(t, -1), plan_of_one(mask_arrays(reshape(given, -1))[0], False))
    else:
        items = items_of(given, "index")
        if all_basic(items):
            result = basic(t, tuple(items), "index")
        else:
            result = index(t, make_plan(t, items, wants_grad(t), "index"))
    Py_INCREF(result)
    return <PyObject*> result


cdef Tensor without_leading_ones(Tensor v, int ndim):
    """As in NumPy, leading axes of size 1 that the destination lacks are dropped."""
    while v.layout.ndim > ndim and v.layout.dims[0] == 1:
        v = v.reshape(v.shape[1:])
    return v


cdef bint fits_mask(Tensor t, list items, Tensor v) except -1:
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
    return assign(<Tensor> x, items_of(<object> index_, "setitem"), <object> value, False, "setitem")


cdef int assign(Tensor t, list items, object value, bint adds, str name) except -1:
    """In place: the chosen elements = value, or += value, duplicates added."""
    cdef Tensor v = own(as_operand_tensor(<PyObject*> value, t.dtype_))
    cdef Plan plan
    cdef PyObject* node
    cdef bint recorded
    refuse_inplace(t, name)
    if all_basic(items):
        view = basic(t, tuple(items), name)
        v = without_leading_ones(v, (<Tensor> view).layout.ndim)
        if adds:
            view.add_(v)
        else:
            view.copy_(v)
        return 0
    if t.layout.flags & OVERLAPPING:
        raise RuntimeError(f"{name}: several elements of the tensor share one memory location (it was expanded); clone() it first")
    if recording() and not adds and fits_mask(t, items, v):
        t.copy_(FUNCTIONS["where"](reshape(items[0], (*items[0].shape, *[1] * (t.layout.ndim - items[0].ndim))), v, t))
        return 0
    recorded = (wants_grad(v) or wants_grad(t)) and t.dtype_ <= FLOAT64 and grad_enabled()
    if not recorded and len(items) == 1 and isinstance(items[0], Tensor) and masks_whole(t, <Tensor> items[0]):
        plan = plan_of_one(mask_arrays(reshape(items[0], -1))[0], False)
        overwrite(reshape(t, -1), plan, without_leading_ones(v, 1), name, adds)
        t.storage.version += 1
        return 0
    plan = make_plan(t, items, recorded, name)
    v = without_leading_ones(v, plan.view(t).layout.ndim - <int> len(plan.axes) + <int> len(plan.shape))
    overwrite(t, plan, v, name, adds)
    t.storage.version += 1
    if recorded:
        node = node_new(INDEX_ACCUMULATE if adds else INDEX_PUT, 2, 0)
        set_edge(&(<Node> node).edges[0], t)
        set_edge(&(<Node> node).edges[1], v)
        attrs = (plan,)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        rewrite_history(t, node)
    return 0


def index_put_(input, indices, values, accumulate=False):
    """In place: input[indices] = values, or with accumulate += values, to which duplicates add up. indices: a tuple of tensors.

    Raises IndexError for indices out of range, ValueError where the values do not broadcast to the chosen elements.
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_: indices must be a tuple of tensors, got {type(indices).__name__}")
    items = items_of(tuple([slice(None) if i is None else i for i in indices]), "index_put_")
    assign(need_tensor(input, "index_put_"), items, values, bool(accumulate), "index_put_")
    return input


operators.getitem = getitem
operators.setitem = setitem


def nonzero(x, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 of shape (count, ndim), or a tensor for each dimension."""
    cdef Tensor t = <Tensor?> x
    cdef Tensor mask = t.detach() != 0
    escape("nonzero()")
    return tuple(mask_arrays(mask)) if as_tuple else true_places(mask, "nonzero()")
