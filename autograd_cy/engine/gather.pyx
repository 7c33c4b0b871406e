# Elements chosen by an index along one dimension: gather, and put, which is its gradient.
#
# Relies on array, kernels/index, shape, record. methods.py puts gather into Tensor; the rules of the table call both.

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport FLOAT64, INT32, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport strides_of
from autograd_cy.engine.operands cimport contiguous_of, converted
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.shape cimport axis_of, own
from autograd_cy.engine.tensor cimport Tensor, tensor_new
from autograd_cy.kernels.table cimport ALL_VECTORS, K, recording, run_loop

from autograd_cy.array.errors import ShapeError
from autograd_cy.engine.choose import where_rows
from autograd_cy.engine.creation import zeros_code
from autograd_cy.engine.tensor import OPCODES
from autograd_cy.ops import loop_id

cdef int GATHER = OPCODES["gather"], PUT = OPCODES["put"]
cdef int ADD_LOOP = loop_id("add")


cdef Tensor gather_offsets(Tensor x, Tensor places, int axis, str name):
    """For every element of `places` (int64, contiguous): where x[..., place, ...] lies."""
    cdef Tensor offsets = zeros_code(places.shape, INT64)
    cdef Py_ssize_t counter[MAX_NDIM]
    cdef Py_ssize_t base = 0, j
    cdef long long place
    cdef Py_ssize_t size = x.layout.dims[axis] if x.layout.ndim else 1
    cdef Py_ssize_t stride = strides_of(x.layout)[axis] if x.layout.ndim else 0
    cdef bint captured = recording()      # then `offsets` first gets what the other axes add: a constant of the step
    cdef int i
    for i in range(places.layout.ndim):
        counter[i] = 0
    for j in range(places.layout.numel):
        place = (<long long*> places.data)[j]
        if not 0 <= place < size:
            raise IndexError(f"{name}: index {place} is out of range for dim {axis} of size {size}")
        (<Py_ssize_t*> offsets.data)[j] = base if captured else base + place * stride
        i = places.layout.ndim - 1
        while i >= 0:
            counter[i] += 1
            if i != axis:
                base += strides_of(x.layout)[i]
            if counter[i] < places.layout.dims[i]:
                break
            if i != axis:
                base -= strides_of(x.layout)[i] * counter[i]
            counter[i] = 0
            i -= 1
    return by_kernels(offsets, places, size, stride) if captured else offsets


cdef Tensor by_kernels(Tensor base, Tensor places, Py_ssize_t size, Py_ssize_t stride):
    """base + places * stride, by kernels that a replay can repeat and that refuse what is out of range there."""
    cdef Tensor positive = own(contiguous_of(where_rows(places < 0, size, places)))      # K.index_offsets would take -1 for the last
    cdef Tensor steps = own(tensor_new(base.layout, INT64))
    cdef Tensor offsets = own(tensor_new(base.layout, INT64))
    cdef const long long* arrays[1]
    cdef char* p[3]
    arrays[0] = <const long long*> positive.data
    K.index_offsets(base.layout.numel, 1, arrays, &size, &stride, <Py_ssize_t*> steps.data)
    p[0], p[1], p[2] = offsets.data, base.data, steps.data
    run_loop(ADD_LOOP, INT64, ALL_VECTORS, base.layout.numel, p, NULL)
    return offsets


cdef Tensor checked_places(Tensor x, object given, int axis, str name):
    cdef Tensor places = <Tensor?> given
    cdef int i
    if places.dtype_ != INT64 and places.dtype_ != INT32:
        raise TypeError(f"{name}: the index must be int64, got {places.dtype.name}")
    if max(places.layout.ndim, 1) != max(x.layout.ndim, 1):
        raise ShapeError(f"{name}: the index must have as many dimensions as the input, got shapes {places.shape} and {x.shape}")
    for i in range(min(places.layout.ndim, x.layout.ndim)):
        if i != axis and places.layout.dims[i] > x.layout.dims[i]:
            raise ShapeError(f"{name}: the index of shape {places.shape} is larger than the input of shape {x.shape} beside dim {axis}")
    return own(contiguous_of(own(converted(places, INT64))))


def gather(x, dim, index):
    """x[..., index[..., i, ...], ...] along dim: the shape of `index`. Duplicates add up in the gradient.

    Raises IndexError for indices out of range, ValueError where shapes, TypeError where dtypes do not fit.
    """
    cdef Tensor t = <Tensor?> x
    cdef int axis = axis_of(dim, t.layout.ndim, "gather")
    cdef Tensor places = checked_places(t, index, axis, "gather")
    cdef Tensor offsets = gather_offsets(t, places, axis, "gather")
    cdef Tensor out = own(tensor_new(places.layout, t.dtype_))
    cdef PyObject* inputs[2]
    K.gather(itemsize_of(t.dtype_), offsets.layout.numel, <const Py_ssize_t*> offsets.data, 0, NULL, NULL, t.data, out.data)
    inputs[0], inputs[1] = <PyObject*> t, <PyObject*> index
    if t.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (axis,)
        record(GATHER, <PyObject*> out, 2, inputs, <PyObject*> attrs, NULL)
    return out


def rule_gather(x, index, dim):
    """gather, in the order of the table's inputs."""
    return gather(x, dim, index)


def put(Tensor g, Tensor index, shape, dim):
    """g added into zeros at index along dim: the gradient of gather."""
    cdef Tensor out = zeros_code(shape, g.dtype_)
    cdef int axis = axis_of(dim, out.layout.ndim, "gather")
    cdef Tensor places = checked_places(out, index, axis, "gather")
    cdef Tensor offsets = gather_offsets(out, places, axis, "gather")
    cdef Tensor values = own(contiguous_of(g))
    cdef PyObject* inputs[2]
    K.scatter_add(g.dtype_, offsets.layout.numel, <const Py_ssize_t*> offsets.data, 0, NULL, NULL, values.data, out.data)
    inputs[0], inputs[1] = <PyObject*> g, <PyObject*> index
    if any_wants_grad(1, inputs):
        attrs = (shape, axis)
        record(PUT, <PyObject*> out, 2, inputs, <PyObject*> attrs, NULL)
    return out
