# Indices understood for the axes of a tensor (Choice): what numbers and slices leave of each axis, and which have an array; and reading and
# writing what a Plan chooses.
#
# Relies on array, kernels/index, slices. index.pyx reads and writes by it.
#
# As in PyTorch the axes of the arrays stand where the arrays do if these are neighbours in what numbers leave, else first (in NumPy a
# number counts as an array here).

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, Layout, layout_broadcast, layout_contiguous, layout_contiguous_like, layout_decref, layout_expand, layout_incref,
    layout_matrix, layout_permute, layout_scalar, layout_strided, same_shape, strides_of,
)
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, converted, copy_of
from autograd_cy.engine.shape cimport made
from autograd_cy.engine.slices cimport unpack_slice
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, escape

from autograd_cy.array.errors import ShapeError, worded

from autograd_cy.engine.creation import tensor


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step) noexcept
    bint PyIndex_Check(object o) noexcept
    object PyNumber_Index(object o)
    bint PySlice_Check(PyObject* o) noexcept
    PyObject** PySequence_Fast_ITEMS(PyObject* o) noexcept


# ---- numbers and slices

cdef int keep_axis(Choice* c, int axis, Py_ssize_t size, Py_ssize_t step, str name) except -1:
    if c.ndim == MAX_NDIM:
        raise worded(IndexError, "{}: a tensor has at most {} dimensions", name, MAX_NDIM)
    c.axis[c.ndim], c.shape[c.ndim], c.step[c.ndim] = axis, size, step
    c.ndim += 1
    return 0


cdef int understand(Choice* c, Tensor x, object items, str name) except -1:
    """Fills c, whose arrays the caller lets go of. items: a tuple or list that items_of made."""
    cdef PyObject** given = PySequence_Fast_ITEMS(<PyObject*> items)
    cdef PyObject* item
    cdef Py_ssize_t start, stop, step, size, length, k, n = len(items)
    cdef int axis = 0, named = 0, ndim = x.layout.ndim, i, _skipped
    c.ndim = c.arrays = c.position = 0
    c.places = False
    for k in range(n):
        item = given[k]
        if is_tensor(item) and (<Tensor> item).dtype_ == BOOL:
            named += (<Tensor> item).layout.ndim
        else:
            named += item != <PyObject*> None and item != <PyObject*> Ellipsis
    if named > ndim:
        raise worded(IndexError, "{}: {} indices for a tensor of {} dimensions (shape {.shape})", name, named, ndim, x)
    for k in range(n):
        item = given[k]
        if item == <PyObject*> None:
            keep_axis(c, -1, 1, 0, name)
        elif item == <PyObject*> Ellipsis:
            for _skipped in range(ndim - named):
                c.first[axis] = 0
                keep_axis(c, axis, x.layout.dims[axis], 1, name)
                axis += 1
            named = ndim
        elif is_tensor(item):
            axis += add_arrays(c, x, <Tensor> item, axis, name)
        else:
            size = x.layout.dims[axis]
            if PySlice_Check(item):
                unpack_slice(<object> item, &start, &stop, &step)
                length = PySlice_AdjustIndices(size, &start, &stop, step)
                keep_axis(c, axis, length, step, name)
            else:
                start, length, step = <object> item, 1, 1
                if not -size <= start < size:
                    raise worded(IndexError, "{}: index {} is out of range for dim {} of size {}", name, start, axis, size)
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
            raise worded(IndexError, "{}: the result has more than {} dimensions", name, MAX_NDIM)
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
    if type(item) is list and (found := integers(item)) is not None:
        return found
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
        raise worded(IndexError, "{}: an index must be an integer, slice, None, Ellipsis or an array of integers or bools, got {}",
                                 name, type(item).__name__)
    return checked_array(t, False, name)


cdef object checked_array(Tensor t, bint given, str name):
    """A tensor as part of an index; of 0 dimensions: the number in it."""
    if t.dtype_ <= FLOAT64:
        raise worded(IndexError, "{}: an index must hold integers or bools, got dtype {.dtype.name}", name, t)
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


cdef Tensor choice_places(Py_ssize_t n, Py_ssize_t r, bint again):
    """Of all choices of r from n, or, again, with repetition, in order, as rows."""
    cdef Py_ssize_t others = n - 1 if again else n - r, count = others >= 0, j, k, _
    cdef double size = r
    cdef Py_ssize_t shape[2]
    cdef Tensor places
    cdef Py_ssize_t* row
    for k in range(1, min(r, others) + 1):        # (others + r) over r, or over others
        size = size * (max(r, others) + k) / k
        if size > 1e12:
            break
        count = count * (max(r, others) + k) // k
    if size > 1e12:
        raise worded(MemoryError, "combinations: too many choices of {} of {} elements", r, n)
    shape[0], shape[1] = count, r
    places = made(2, shape, INT64)
    row = <Py_ssize_t*> places.data
    for j in range(r if count else 0):
        row[j] = 0 if again else j
    for _ in range(1, count):
        memcpy(row + r, row, r * sizeof(Py_ssize_t))
        row += r
        j = r - 1
        while row[j] == (n - 1 if again else n - r + j):
            j -= 1
        row[j] += 1
        for k in range(j + 1, r):
            row[k] = row[k - 1] + (not again)
    return places


cdef str A_MASK = "an index by a mask, whose result has as many elements as the mask is true"


cdef int add_array(Choice* c, Tensor array, int axis, Py_ssize_t size, str name) except -1:
    if c.arrays == MAX_NDIM:                      # of True and False, which stand for no axis, there may be any number
        raise worded(IndexError, "{}: an index has at most {} arrays", name, MAX_NDIM)
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
            raise worded(IndexError, "{}: a mask of shape {.shape} does not fit the dims {} of a tensor of shape {.shape}",
                                     name, item, x.shape[axis:axis + n], x)
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
            raise worded(IndexError, "{}: index arrays of shapes {} do not broadcast against each other", name, ' and '.join(shapes))
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
                raise worded(IndexError, "{}: index {} is out of range for dim {} of size {}", name, numbers[k][bad], c.at[k], c.size[k])
    return offsets


cdef object items_of(object index, str name, bint* arrays):
    """The parts of an index, normalised; whether there are arrays among them."""
    cdef tuple items = index if isinstance(index, tuple) else (index,)
    cdef list changed = None
    cdef PyObject* item
    cdef Py_ssize_t i
    cdef int dots = 0
    arrays[0] = False
    for i in range(len(items)):
        item = PySequence_Fast_ITEMS(<PyObject*> items)[i]
        if is_tensor(item) and (<Tensor> item).dtype_ == INT64 and (<Tensor> item).layout.ndim:
            arrays[0] = True
        elif not is_basic(<object> item):
            part = normalised(<object> item, name)
            if <PyObject*> part != item:
                changed = list(items) if changed is None else changed
                changed[i] = part
            arrays[0] |= isinstance(part, Tensor)
        dots += item == <PyObject*> Ellipsis
    if dots > 1:
        raise worded(IndexError, "{}: an index has at most one Ellipsis", name)
    return items if changed is None else changed


# ---- what is chosen, read and written

cdef class Plan:
    """What an index chooses of a contiguous tensor; private to the operation, so never changed."""

    def __dealloc__(self):
        if self.block != NULL:
            layout_decref(self.block)


cdef Plan plan_for(Choice* c, const Py_ssize_t* strides, Tensor offsets, Py_ssize_t start, const Py_ssize_t* block):
    """The plan for a contiguous tensor, whose strides these are, from its parts."""
    cdef Plan plan = Plan.__new__(Plan)
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


cdef Plan plan_of_places(Tensor places, Py_ssize_t count):
    """The plan for single elements of a contiguous tensor of `count`."""
    cdef Plan plan = Plan.__new__(Plan)
    plan.offsets, plan.unit, plan.count, plan.block = places, 1, count, layout_scalar()
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
    cdef Tensor source = value
    cdef bint as_it_is = value.dtype_ == x.dtype_ and position == 0 and value.storage != x.storage \
        and value.layout.flags & CONTIGUOUS and value.layout.ndim == n + ndim
    for i in range(n + ndim):
        sizes[i] = shape[i] if i < position else offsets.layout.dims[i - position] if i < position + n else shape[i - n]
        order[i] = position + i if i < n else i - n if i < n + position else i
        as_it_is = as_it_is and value.layout.dims[i] == sizes[i]
    if not as_it_is:
        source = own(converted(value, x.dtype_))
        layout = layout_expand(source.layout, n + ndim, sizes)
        if layout == NULL:
            raise worded(ShapeError, "{}: a value of shape {.shape} does not broadcast to the chosen elements' shape {}",
                                     name, value, tuple([sizes[i] for i in range(n + ndim)]))
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
