# Reading arguments of operations: dimension numbers, shapes, integers, tensors; functions f(x, *ints) called without a tuple for ints.
#
# Relies on tensor. Views and most modules of operations rely on it. Whoever reads an argument here also learns whether that changed a
# tensor (`operators.exchanges`): an __index__ may run anything.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.engine.tensor cimport Tensor, is_tensor, operators

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.devices import CPU
from autograd_cy.engine.devices import device as only_cpu


cdef extern from *:
    """
    /* Where Cython's functions keep what a call enters, as CPython's own do; NULL where they don't. */
    typedef PyObject* (*ag_call)(PyObject*, PyObject**, size_t, PyObject*);
    static ag_call* ag_entry(PyObject* f) {
        int found = Py_TYPE(f)->tp_vectorcall_offset == offsetof(PyCFunctionObject, vectorcall);
        return found ? (ag_call*) &((PyCFunctionObject*) f)->vectorcall : NULL;
    }
    """
    ctypedef PyObject* (*ag_call)(PyObject*, PyObject** args, size_t n, PyObject* names) except NULL
    ag_call* ag_entry(object f) noexcept

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t n) noexcept
    PyObject* PyObject_Vectorcall(PyObject* f, PyObject** args, size_t n, PyObject* names) noexcept
    bint PyLong_CheckExact(PyObject* o) noexcept
    bint PyTuple_CheckExact(PyObject* o) noexcept
    bint PyList_CheckExact(PyObject* o) noexcept
    bint PyIndex_Check(object o) noexcept
    PyObject** PySequence_Fast_ITEMS(PyObject* o) noexcept
    Py_ssize_t PySequence_Fast_GET_SIZE(PyObject* o) noexcept
    Py_ssize_t PyLong_AsSsize_t(PyObject* o) noexcept
    PyObject* PyErr_Occurred() noexcept
    void PyErr_Clear() noexcept


cdef int unmoved(unsigned long long before, str name) except -1:
    """That no tensor has been given other memory or another shape (by __index__, say) since `operators.exchanges` was `before`."""
    if operators.exchanges != before:
        raise worded(RuntimeError, "{}: an argument changed the memory or the shape of a tensor while it was read", name)
    return 0


cdef Py_ssize_t integer(object value, str what, str name) except? -1:
    cdef unsigned long long before = operators.exchanges
    cdef Py_ssize_t made
    if not PyIndex_Check(value):
        raise worded(TypeError, "{}: {} must be an integer, got {!r}", name, what, value)
    made = value
    unmoved(before, name)
    return made


cdef bint truth(object value, str name) except -1:
    cdef unsigned long long before = operators.exchanges
    cdef bint made = value
    unmoved(before, name)
    return made


cdef int axis_of(object dim, int ndim, str name) except -1:
    """A dimension number, negative ones counted from the end; a 0-d tensor takes 0 and -1."""
    cdef Py_ssize_t axis = dim if PyLong_CheckExact(<PyObject*> dim) else integer(dim, "a dim", name)
    return <int> axis if 0 <= axis < ndim else axis_at(axis, ndim, name)


cdef int axis_at(Py_ssize_t axis, int ndim, str name) except -1:
    cdef int n = max(ndim, 1)
    if not -n <= axis < n:
        raise worded(IndexError, "{}: dim {} is out of range for a tensor of {} dimensions", name, axis, ndim)
    return <int> (axis + n if axis < 0 else axis)


cdef int read_dims(object dims, int ndim, Py_ssize_t* axes, str name) except -1:
    """Fill `axes` from a dimension number or a sequence of different ones; how many there are is returned."""
    cdef unsigned long long seen = 0
    cdef PyObject* given = <PyObject*> dims
    cdef int i, n = plain_ints(&given, 1, axes), most = max(ndim, 1)
    if n < 0 and PyIndex_Check(dims):
        axes[0], n = integer(dims, "a dim", name), 1
    elif n < 0:
        n = read_shape(dims, axes, name)
    for i in range(n):
        if not -most <= axes[i] < most:
            raise worded(IndexError, "{}: dim {} is out of range for a tensor of {} dimensions", name, axes[i], ndim)
        axes[i] += most if axes[i] < 0 else 0
        if seen >> axes[i] & 1:
            raise worded(ShapeError, "{}: dim {} occurs twice in {}", name, axes[i], dims)
        seen |= <unsigned long long> 1 << axes[i]
    return n


cdef int read_shape(object shape, Py_ssize_t* sizes, str name) except -1:
    """Fill `sizes` from a sequence of integers; the number of dimensions is returned."""
    cdef PyObject* given = <PyObject*> shape
    cdef unsigned long long before = operators.exchanges
    cdef int n = -1 if PyLong_CheckExact(given) else plain_ints(&given, 1, sizes)
    if n >= 0:
        return n
    n = 0
    if not hasattr(shape, "__len__"):
        raise worded(TypeError, "{}: expected integer sizes, got {}", name, type(shape).__name__)
    if len(shape) > MAX_NDIM:
        raise worded(ShapeError, "{}: a tensor has at most {} dimensions, got {}", name, MAX_NDIM, len(shape))
    for size in shape:
        if n == MAX_NDIM:
            break
        sizes[n] = integer(size, "a size", name)
        n += 1
    unmoved(before, name)
    return n


cdef object sizes_from(tuple args, object named=None):
    """Sizes given as f(2, 3), f((2, 3)) or f(size=(2, 3))."""
    if named is not None and not args:
        return named
    if len(args) == 1 and not isinstance(args[0], int) and hasattr(args[0], "__len__") and not isinstance(args[0], Tensor):
        return args[0]
    return args


cpdef int on_cpu(object device) except -1:
    if device is not None and device is not CPU:
        only_cpu(device)
    return 0


cpdef Tensor need_tensor(object x, str name):
    """x, if it is a tensor."""
    if not isinstance(x, Tensor):
        raise worded(TypeError, "{}: expected a Tensor, got {}", name, type(x).__name__)
    return x


cdef int plain_ints(PyObject** args, Py_ssize_t n, Py_ssize_t* ints) noexcept:
    """Fill `ints` from f(2, 3) or f((2, 3)) of nothing but Python integers; how many, or -1."""
    cdef Py_ssize_t i
    if n == 1 and (PyTuple_CheckExact(args[0]) or PyList_CheckExact(args[0])):
        n = PySequence_Fast_GET_SIZE(args[0])
        args = PySequence_Fast_ITEMS(args[0])
    if n > MAX_NDIM:
        return -1
    for i in range(n):
        if not PyLong_CheckExact(args[i]):
            return -1
        ints[i] = PyLong_AsSsize_t(args[i])
        if ints[i] == -1 and PyErr_Occurred() != NULL:
            PyErr_Clear()
            return -1
    return <int> n


# Functions f(x, *ints) and f(*tensors) enter here: Cython packs these in a tuple, 40 ns. `make` (of ints) or `join` makes the result, or
# None where something is wrong, which f itself will then say.
cdef struct Quick:
    PyObject* function
    Maker make
    Joiner join
    ag_call general

cdef Quick quick[16]


cdef PyObject* quick_call(PyObject* f, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    cdef Py_ssize_t ints[MAX_NDIM]
    cdef Py_ssize_t n_args = PyVectorcall_NARGS(nargsf)
    cdef Quick* q = &quick[0]
    cdef PyObject* result
    cdef int n = -1
    while q.function != f:
        q += 1
    made = None
    if q.join != NULL:
        made = q.join(args, n_args, names)
    else:
        if names == NULL and n_args > 0 and is_tensor(args[0]):
            n = plain_ints(args + 1, n_args - 1, ints)
        if n >= 0:
            made = q.make(<Tensor> args[0], n, ints)
    if made is not None:
        Py_INCREF(made)
        return <PyObject*> made
    if q.general != NULL:
        return q.general(f, args, nargsf, names)
    ag_entry(<object> f)[0] = NULL                    # f(*tensors) has no such entry of its own
    result = PyObject_Vectorcall(f, args, nargsf, names)
    ag_entry(<object> f)[0] = quick_call
    return result


cdef int make_quick(object f, Maker make, Joiner join) except -1:
    cdef ag_call* entry = ag_entry(f)
    cdef Quick* q = &quick[0]
    if entry != NULL:
        while q.function != NULL:
            q += 1
        q.function, q.make, q.join, q.general = <PyObject*> f, make, join, entry[0]
        entry[0] = quick_call
    return 0
