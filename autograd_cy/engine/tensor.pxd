# Tensor: storage, layout, dtype and place in the graph. The C interface.
#
# Relies on array and node. Everything above the engine's core handles Tensors through this.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport itemsize_of
from autograd_cy.array.layout cimport Layout, layout_incref
from autograd_cy.array.storage cimport Storage, storage_incref, storage_new
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport AG_TYPE, PyType_IsSubtype, PyTypeObject, ag_gc_new, ag_revive

cdef extern from *:
    """
    #define ag_base(type) (((PyTypeObject*) (type))->tp_base)
    #define ag_refcount(o) Py_REFCNT((PyObject*) (o))
    #define ag_no_weakrefs(o) (*(PyObject**) ((char*) (o) + Py_TYPE((PyObject*) (o))->tp_weaklistoffset) = NULL)
    """
    PyTypeObject* ag_base(PyTypeObject* type) noexcept
    Py_ssize_t ag_refcount(PyObject* o) noexcept
    void ag_no_weakrefs(PyObject* o) noexcept

cdef enum:
    RETAINS_GRAD = 1          # an inner tensor that keeps its gradient
    CYCLIC = 2                # may be part of a reference cycle: tracked by the collector
    HOOKED = 4                # a leaf that has, or had, hooks
    TRACKED = 8               # tracked by the collector by itself: what is computed from it is not
    CUSTOM_VIEW = 16          # a view that an autograd.Function made: no in-place change may rewrite its history

cdef class Tensor:
    cdef Storage* storage
    cdef Layout* layout
    cdef char* data                   # address of the first element
    cdef PyObject* node               # Node that made it; NULL for a leaf
    cdef PyObject* grad_              # Tensor, or NULL
    cdef PyObject* base               # for a view: the Tensor whose memory it shows; else NULL
    cdef PyObject* attributes         # __dict__, made when first needed
    cdef PyObject* pending_one        # its gradient so far, in the backward pass that holds the fast slots
    cdef unsigned int view_version    # version of the storage for which `node` is right (views only)
    cdef readonly int output_nr
    cdef unsigned char dtype_
    cdef unsigned char needs_grad
    cdef unsigned char flags
    cdef unsigned char queued
    cdef object __weakref__

# How operators reach the operations, which are built on Tensor: filled in when those modules are imported.
cdef struct Operators:
    PyObject* (*unary)(int opcode, PyObject* x) except NULL
    PyObject* (*binary)(int opcode, PyObject* a, PyObject* b) except NULL
    PyObject* (*inplace)(int opcode, PyObject* a, PyObject* b) except NULL
    PyObject* (*matmul)(PyObject* a, PyObject* b) except NULL
    PyObject* (*getitem)(PyObject* x, PyObject* index) except NULL
    PyObject* (*getitem_any)(PyObject* x, PyObject* index) except NULL      # by more than numbers and slices
    int (*setitem)(PyObject* x, PyObject* index, PyObject* value) except -1
    int (*refresh)(PyObject* view) except -1     # let a view learn of in-place changes to its base's history
    unsigned long long exchanges                 # how often a tensor was given other memory or another shape: x.data = ..., t_()

cdef Operators operators
cdef int ADD, SUB, MUL, DIV, FLOOR_DIVIDE, REMAINDER, POW, NEG       # numbers of rows
cdef PyTypeObject* tensor_type

cdef struct FreeTensors:
    PyObject* first           # linked through `storage`
    int count

cdef FreeTensors free_tensors


cdef inline bint is_tensor(PyObject* o) noexcept:
    return AG_TYPE(o) == tensor_type or ag_base(AG_TYPE(o)) == tensor_type or PyType_IsSubtype(AG_TYPE(o), tensor_type)


cdef inline PyObject* tensor_wrap(Storage* storage, Layout* layout, char* data, int dtype) except NULL:
    """A new tensor (a new reference) that takes over one reference to storage and layout."""
    cdef PyObject* o = free_tensors.first
    if o != NULL:
        free_tensors.first = <PyObject*> (<Tensor> o).storage
        free_tensors.count -= 1
        ag_revive(o, tensor_type)
    else:
        o = ag_gc_new(tensor_type)
        ag_no_weakrefs(o)
    (<Tensor> o).storage = storage
    (<Tensor> o).layout = layout
    (<Tensor> o).data = data
    (<Tensor> o).node = NULL
    (<Tensor> o).grad_ = NULL
    (<Tensor> o).base = NULL
    (<Tensor> o).attributes = NULL
    (<Tensor> o).pending_one = NULL
    (<Tensor> o).output_nr = 0
    (<Tensor> o).view_version = 0
    (<Tensor> o).dtype_ = dtype
    (<Tensor> o).needs_grad = 0
    (<Tensor> o).flags = 0
    (<Tensor> o).queued = 0
    return o


cdef inline PyObject* tensor_new(Layout* layout, int dtype) except NULL:
    """A new uninitialised tensor of a dense layout, of which it takes a reference of its own."""
    cdef Storage* storage = storage_new(<size_t> layout.numel * itemsize_of(dtype))
    layout_incref(layout)
    return tensor_wrap(storage, layout, storage.data, dtype)


cdef inline PyObject* tensor_alias(Tensor x, Layout* layout, char* data) except NULL:
    """A tensor on the memory of x that takes over one reference to `layout`; no history, no base."""
    storage_incref(x.storage)
    return tensor_wrap(x.storage, layout, data, x.dtype_)


cdef inline bint is_exclusive(PyObject* o) noexcept:
    """Whether nobody else can see the tensor's memory, so that it may be reused in place."""
    return ag_refcount(o) == 1 and (<Tensor> o).storage.refs == 1 and (<Tensor> o).base == NULL


# A memoryview for computations of the library itself, which a capture can repeat: no value goes to the user.
cdef object own_buffer(Tensor t)
cdef int set_grad(Tensor t, PyObject* value) noexcept
cdef void tensor_make_cyclic(Tensor t) noexcept
cdef void graph_make_cyclic(PyObject* root) noexcept
cdef int watch(Tensor t) except -1
