# Views by numbers and slices, as [] writes them, and zeros with something at a slice: the gradient.
#
# Relies on shape, record. index.pyx reads all other indices and relies on it.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport Layout, layout_decref, layout_strided, layout_view, strides_of
from autograd_cy.engine.arguments cimport read_shape, unmoved
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.record cimport any_wants_grad, record, view_of
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport NARROW, RESHAPE, SELECT, copy_block, fill_one, zeros_of
from autograd_cy.engine.tensor cimport Tensor, operators

from autograd_cy.array.errors import worded

cdef int SLICE = row_number("slice"), UNSLICE = row_number("unslice")


cdef extern from "Python.h":
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step
    bint PyLong_CheckExact(PyObject* o) noexcept
    bint PySlice_Check(PyObject* o) noexcept
    int PySlice_Unpack(PyObject* s, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step) noexcept
    Py_ssize_t PyLong_AsSsize_t(PyObject* o) noexcept
    PyObject** PySequence_Fast_ITEMS(PyObject* o) noexcept
    PyObject* PyErr_Occurred() noexcept
    void PyErr_Clear() noexcept


cdef int unpack_slice(object given, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1:
    """The numbers of a slice."""
    cdef unsigned long long before = operators.exchanges
    PySlice_Unpack(<PyObject*> given, start, stop, step)
    return unmoved(before, "index")


cdef bint read_slice(PyObject* given, Py_ssize_t size, Py_ssize_t* start, Py_ssize_t* length, Py_ssize_t* step) except -1:
    """What a slice takes of an axis; True where that is all of it. Bounds that are None or small are read as they lie."""
    cdef PySliceObject* s = <PySliceObject*> given
    cdef PyObject* none = <PyObject*> None
    cdef Py_ssize_t stop = size
    if s.step == none and (s.start == none or PyLong_CheckExact(s.start)) and (s.stop == none or PyLong_CheckExact(s.stop)):
        start[0], step[0] = 0, 1
        if s.start != none:
            start[0] = PyLong_AsSsize_t(s.start)
        if s.stop != none:
            stop = PyLong_AsSsize_t(s.stop)
        if (start[0] == -1 or stop == -1) and PyErr_Occurred() != NULL:
            PyErr_Clear()
            unpack_slice(<object> given, start, &stop, step)
    else:
        unpack_slice(<object> given, start, &stop, step)
    length[0] = PySlice_AdjustIndices(size, start, &stop, step[0])
    start[0] = start[0] if length[0] else 0
    return step[0] == 1 and length[0] == size


cdef object viewed_at(Tensor x, PyObject** items, Py_ssize_t n, str name):
    """x at numbers, slices, None and at most one Ellipsis: a view; Python's None where there is something else. One cut is recorded
    as select or narrow, whose records are short; none as reshape."""
    cdef Py_ssize_t ints[4 * MAX_NDIM]                  # of each axis start, length and step; the shape
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t first[3]
    cdef const Py_ssize_t* dims = x.layout.dims
    cdef const Py_ssize_t* given = strides_of(x.layout)
    cdef Py_ssize_t* cut = ints
    cdef Py_ssize_t start, length, step, offset = 0, k
    cdef PyObject* none = <PyObject*> None
    cdef PyObject* dots = <PyObject*> Ellipsis
    cdef PyObject* item
    cdef int ndim = x.layout.ndim, axis = 0, kept = 0, cuts = 0, inserted = 0, left = ndim, row = SLICE, i
    cdef bint dotted = False
    for k in range(n):
        item = items[k]
        if PyLong_CheckExact(item) or PySlice_Check(item):
            left -= 1
        elif item == none:
            inserted += 1
        elif item == dots and not dotted:
            dotted = True
        else:
            return None
    if left < 0:
        raise worded(IndexError, "{}: {} indices for a tensor of {} dimensions (shape {.shape})", name, ndim - left, ndim, x)
    if ndim + inserted > MAX_NDIM:
        raise worded(IndexError, "{}: a tensor has at most {} dimensions", name, MAX_NDIM)
    for k in range(n + 1):
        item = items[k] if k < n else dots                                # all axes that no item names
        if item == none:
            shape[kept], strides[kept] = 1, -1
            kept += 1
        elif item == dots:
            while left > 0:
                shape[kept], strides[kept] = dims[axis], given[axis]
                cut[0], cut[1], cut[2] = 0, -1, 1
                axis, kept, cut, left = axis + 1, kept + 1, cut + 3, left - 1
        else:
            cut[0], cut[1], cut[2] = 0, -1, 1
            if PySlice_Check(item):
                if not read_slice(item, dims[axis], &start, &length, &step):
                    first[0], first[1], first[2], row = axis, start, length, NARROW if step == 1 else SLICE
                    cut[0], cut[1], cut[2], cuts = start, length, step, cuts + 1
                shape[kept], strides[kept] = length, given[axis] * step
                kept += 1
            else:
                start = <object> item
                if not -dims[axis] <= start < dims[axis]:
                    raise worded(IndexError, "{}: index {} is out of range for dim {} of size {}", name, start, axis, dims[axis])
                if start < 0:
                    start += dims[axis]
                first[0], first[1], row = axis, start, SELECT
                cut[0], cut[1], cuts = start, 1, cuts + 1
            offset += start * given[axis]
            axis, cut = axis + 1, cut + 3
    if inserted:
        for i in range(kept - 1, -1, -1):                                 # as unsqueeze has them
            if strides[i] == -1 and shape[i] == 1:
                strides[i] = shape[i + 1] * strides[i + 1] if i + 1 < kept else 1
    if cuts == 0:
        return view_of(x, layout_strided(kept, shape, strides), x.data, RESHAPE, kept, shape)
    if cuts == 1 and not inserted and row != SLICE:
        return view_of(x, layout_strided(kept, shape, strides), x.data + offset * itemsize_of(x.dtype_), row, 2 if row == SELECT else 3,
                       first)
    memcpy(cut, shape, kept * sizeof(Py_ssize_t))
    return view_of(x, layout_strided(kept, shape, strides), x.data + offset * itemsize_of(x.dtype_), SLICE, 3 * ndim + kept, ints)


cdef object viewed_by(Tensor t, object items, str name):
    """A view by a tuple or list of numbers, slices, None and Ellipsis, or one; Python's None where there is something else."""
    cdef PyObject* one = <PyObject*> items
    if type(items) is list:
        items = tuple(items)                      # reading a slice may run code that changes a list
    if type(items) is tuple:
        return viewed_at(t, PySequence_Fast_ITEMS(<PyObject*> items), len(items), name)
    return viewed_at(t, &one, 1, name)


cdef PyObject* getitem(PyObject* x, PyObject* index_) except NULL:
    """x[index]; of arrays, lists and masks, index.pyx reads it."""
    if type(<object> index_) is not list:
        result = viewed_by(<Tensor> x, <object> index_, "index")
        if result is not None:
            Py_INCREF(result)
            return <PyObject*> result
    return operators.getitem_any(x, index_)


operators.getitem = getitem


cdef int read_cuts(tuple index, int ndim, Py_ssize_t* cuts) except -1:
    """From (start, length, step) for each axis, or (None, None, None) for all of it."""
    cdef int i
    for i in range(ndim):
        cuts[3 * i], cuts[3 * i + 1], cuts[3 * i + 2] = 0, -1, 1
        if i < len(index):
            start, length, step = index[i]
            if start is not None:
                cuts[3 * i], cuts[3 * i + 1], cuts[3 * i + 2] = start, length, step
    return 0


cdef Py_ssize_t cut_out(Layout* full, const Py_ssize_t* cuts, Py_ssize_t* dims, Py_ssize_t* strides) noexcept:
    """Sizes and strides of what is cut out of a layout; the place of its first element is returned."""
    cdef Py_ssize_t offset = 0
    cdef int i
    for i in range(full.ndim):
        dims[i] = full.dims[i] if cuts[3 * i + 1] < 0 else cuts[3 * i + 1]
        strides[i] = strides_of(full)[i] * cuts[3 * i + 2]
        offset += cuts[3 * i] * strides_of(full)[i] if dims[i] else 0
    return offset


def slice_axes(Tensor x, tuple index, shape=None):
    """x[start : start + length * step : step] along every axis, in `shape` (None: as it comes). A view."""
    cdef Py_ssize_t ints[4 * MAX_NDIM]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int n = 3 * x.layout.ndim, ndim = x.layout.ndim
    cdef Layout* layout
    cdef Layout* shaped
    read_cuts(index, ndim, ints)
    cdef Py_ssize_t offset = cut_out(x.layout, ints, dims, strides)
    layout = layout_strided(ndim, dims, strides)
    if shape is not None:
        ndim = read_shape(shape, dims, "slice")
        shaped = layout_view(layout, ndim, dims)
        layout_decref(layout)
        layout = shaped
    memcpy(ints + n, dims, ndim * sizeof(Py_ssize_t))
    return view_of(x, layout, x.data + offset * itemsize_of(x.dtype_), SLICE, n + ndim, ints)


cdef Tensor placed(Tensor g, int ndim, const Py_ssize_t* shape, const Py_ssize_t* cuts):
    """Zeros of a shape, with g where cuts are; in g axes of size 1 may be missing, or more of them there."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Tensor out = zeros_of(ndim, shape, g.dtype_)
    cdef Py_ssize_t offset = cut_out(out.layout, cuts, dims, strides)
    cdef Layout* seen = layout_view(g.layout, ndim, dims)
    copy_block(out, offset, g, 0, ndim, dims, strides, strides_of(seen))
    layout_decref(seen)
    return out


def unslice(Tensor x, shape, tuple index):
    """x placed at a slice of zeros: the gradient of slice_axes."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t cuts[3 * MAX_NDIM]
    cdef PyObject* inputs[1]
    cdef int ndim = read_shape(shape, sizes, "unslice")
    read_cuts(index, ndim, cuts)
    cdef Tensor out = placed(x, ndim, sizes, cuts)
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (shape, index)
        record(UNSLICE, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


cdef int sliced_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """Zeros, with the gradient at its place."""
    cdef Layout* full = node.edges[0].layout
    cdef Tensor out = placed(<Tensor> grads[0], full.ndim, full.dims, <const Py_ssize_t*> node.saved)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[SLICE] = sliced_backward
