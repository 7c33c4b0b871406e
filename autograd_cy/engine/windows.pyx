# Windows on memory: how a view of a base that was changed in place is differentiated.
#
# Relies on array, shape, record. record.pyx makes the nodes; the rules of the table call the functions here.
#
# `base` is (shape, strides) of the base, `view` is (shape, strides, offset) of the window, in elements.

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    OVERLAPPING, Layout, layout_decref, layout_dense_like, layout_incref, layout_strided, same_layout, strides_of,
)
from autograd_cy.engine.operands cimport copy_into, copy_of
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.shape cimport fill_one, own, read_shape
from autograd_cy.engine.tensor cimport Tensor, tensor_alias

from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.shape import sum_to
from autograd_cy.engine.tensor import OPCODES

cdef int AS_STRIDED = OPCODES["as_strided"], AS_STRIDED_BACK = OPCODES["as_strided_back"]
cdef int FILL_STRIDED = OPCODES["fill_strided"]


cdef Layout* base_layout(tuple base) except NULL:
    """The base's layout; RuntimeError where one place in memory stands for several elements, as their gradients differ."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(base[0], shape, "as_strided")
    cdef Layout* layout
    read_shape(base[1], strides, "as_strided")
    layout = layout_strided(ndim, shape, strides)
    if layout.flags & OVERLAPPING:
        layout_decref(layout)
        raise RuntimeError("a tensor was changed in place through a view although several of its elements share one memory location "
                           "(it was expanded); clone() it before changing it")
    return layout


cdef Tensor laid_out(Tensor x, tuple base):
    """x in memory laid out as the base; x itself where it lies so."""
    cdef Layout* layout = base_layout(base)
    cdef PyObject* out
    if same_layout(layout, x.layout):
        layout_decref(layout)
        return x
    out = new_with_layout(layout, x.dtype_)
    layout_decref(layout)
    copy_into(<Tensor> out, x)
    return own(out)


cdef PyObject* new_with_layout(Layout* layout, int dtype) except NULL:
    """Zeros of any layout, one that has gaps or negative strides too."""
    cdef Py_ssize_t lowest = 0
    cdef Py_ssize_t highest = 0
    cdef Py_ssize_t reach
    cdef Tensor memory
    cdef int i
    for i in range(layout.ndim):
        reach = (layout.dims[i] - 1) * strides_of(layout)[i]
        if reach < 0:
            lowest += reach
        else:
            highest += reach
    memory = FUNCTIONS["zeros"]((highest - lowest + 1 if layout.numel else 0,), dtype)
    layout_incref(layout)
    return tensor_alias(memory, layout, memory.data - lowest * itemsize_of(dtype))


cdef object window(Tensor x, tuple view):
    """The tensor on x's memory with the view's shape, strides and offset; no history."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(view[0], shape, "as_strided")
    cdef Py_ssize_t offset = view[2]
    read_shape(view[1], strides, "as_strided")
    return own(tensor_alias(x, layout_strided(ndim, shape, strides), x.data + offset * itemsize_of(x.dtype_)))


cdef object recorded_window(int opcode, object out, Tensor x, tuple base, tuple view):
    cdef PyObject* inputs[1]
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (base, view)
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def as_strided(Tensor x, tuple base, tuple view):
    """A copy of the window `view` on x laid out as `base`."""
    cdef Tensor seen = window(laid_out(x, base), view)
    cdef Layout* layout = layout_dense_like(seen.layout)
    out = own(copy_of(seen, layout))
    layout_decref(layout)
    return recorded_window(AS_STRIDED, out, x, base, view)


def as_strided_back(Tensor x, tuple base, tuple view):
    """x summed into zeros at the window: the gradient of as_strided."""
    cdef Layout* layout = base_layout(base)
    cdef Tensor out
    cdef Tensor seen
    cdef Tensor g = x
    out = own(new_with_layout(layout, x.dtype_))
    layout_decref(layout)
    squashed = tuple([1 if stride == 0 else size for size, stride in zip(view[0], view[1])])
    seen = window(out, (squashed, view[1], view[2]))
    if squashed != tuple(view[0]):
        g = sum_to(x.detach(), squashed)
    if seen.layout.flags & OVERLAPPING:
        raise RuntimeError("the gradient of a window whose elements overlap in memory is not supported")
    copy_into(seen, g)
    return recorded_window(AS_STRIDED_BACK, out, x, base, view)


def fill_strided(Tensor x, tuple base, tuple view):
    """x with zeros at the window."""
    cdef Tensor inside = laid_out(x, base)
    cdef Tensor out = inside
    cdef Layout* layout
    if inside is x:
        layout = x.layout
        out = own(new_with_layout(layout, x.dtype_))
        copy_into(out, x)
    copy_into(window(out, view), FUNCTIONS["zeros"]((), x.dtype_))
    return recorded_window(FILL_STRIDED, out, x, base, view)
