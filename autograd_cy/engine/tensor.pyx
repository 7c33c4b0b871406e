# Tensor: storage, layout, dtype and place in the graph - its memory, its properties, and Python's operators.
#
# Relies on array and node. Operators reach the operations through the table `operators`; named methods are put into the type
# by methods.py. Everything else relies on Tensor.
#
# Above 500 lines because a Cython class cannot be divided: its properties, operators and buffer stand in one place.

cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES
from cpython.object cimport Py_GE, Py_GT, Py_LE, Py_LT, Py_NE, PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, UINT8, itemsize_of
from autograd_cy.array.layout cimport CONTIGUOUS, layout_decref, layout_incref, same_shape, shape_tuple, strides_of, strides_tuple
from autograd_cy.array.storage cimport storage_decref, storage_incref, wrap_storage
from autograd_cy.engine.node cimport Node, Watchers, node_make_cyclic, node_type, watchers_of
from autograd_cy.engine.object cimport (
    AG_TYPE, MAX_FREE_TENSORS, PyObject_ClearWeakRefs, PyObject_GC_Del, PyObject_GenericSetAttr, PyTypeObject, ag_alloc, ag_free,
    ag_set_in_type, ag_set_name, ag_set_slots, ag_track, ag_untrack, own, visitproc,
)
from autograd_cy.kernels.table cimport escape, recorder, recording

import weakref

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import ArgumentError, worded
from autograd_cy.ops import TABLE

cdef extern from "Python.h":
    PyObject* PyExc_TypeError
    void PyErr_SetString(PyObject* kind, const char* message) noexcept
    void PyErr_SetObject(PyObject* kind, PyObject* value) noexcept

cdef extern from *:
    """
    #define ag_weakrefs(o) (*(PyObject**) ((char*) (o) + Py_TYPE((PyObject*) (o))->tp_weaklistoffset))
    """
    PyObject* ag_weakrefs(PyObject* o) noexcept

OPCODES = {name: i for i, name in enumerate(TABLE)}
ADD, SUB, MUL, DIV, FLOOR_DIVIDE, REMAINDER, POW, NEG = map(OPCODES.get, (
    "add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "neg"))
cdef int ABS = OPCODES["abs"], NOT = OPCODES["bitwise_not"]
cdef int AND = OPCODES["bitwise_and"], OR = OPCODES["bitwise_or"], XOR = OPCODES["bitwise_xor"]
cdef int LSHIFT = OPCODES["bitwise_left_shift"], RSHIFT = OPCODES["bitwise_right_shift"]
cdef int EQ = OPCODES["eq"], NE = OPCODES["ne"], LT = OPCODES["lt"], LE = OPCODES["le"], GT = OPCODES["gt"], GE = OPCODES["ge"]
cdef tuple dtypes = DTYPES


@cython.c_api_binop_methods(True)
@cython.binding(False)                    # methods check the type of self only without it: Tensor.dim(3) must not crash
cdef class Tensor:
    """An n-dimensional array that remembers how it was computed, so that `backward` can differentiate it.

    Tensors are made by `tensor`, `zeros`, `from_numpy` ..., and by operations. Attributes: `shape`, `dtype`, `requires_grad`,
    `grad` (of leaves, after `backward`), `grad_fn` (the node that made it), `is_leaf`.
    """

    # ---- what it is

    @property
    def shape(self):
        """Sizes of the dimensions, a tuple."""
        return shape_tuple(self.layout)

    @property
    def dtype(self):
        """Element type."""
        return dtypes[self.dtype_]

    @property
    def ndim(self):
        """Number of dimensions."""
        return self.layout.ndim

    @property
    def itemsize(self):
        """Bytes of one element."""
        return itemsize_of(self.dtype_)

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.layout.numel * itemsize_of(self.dtype_)

    @property
    def requires_grad(self):
        """Whether operations on it are recorded."""
        if self.base != NULL:
            operators.refresh(<PyObject*> self)
        return bool(self.needs_grad)

    @requires_grad.setter
    def requires_grad(self, value):
        if value:
            if self.dtype_ > FLOAT64:
                raise worded(RuntimeError, "only floating-point tensors can require gradients, this one has dtype {}",
                                           dtypes[self.dtype_].name)
            self.needs_grad = 1
        elif self.node != NULL:
            raise RuntimeError("requires_grad can only be cleared on leaf tensors; use detach() for a tensor without history")
        else:
            self.needs_grad = 0

    @property
    def is_leaf(self):
        """Whether it was not made by a recorded operation."""
        if self.base != NULL:
            operators.refresh(<PyObject*> self)
        return self.node == NULL

    @property
    def grad_fn(self):
        """The node that made it; None for a leaf."""
        if self.base != NULL:
            operators.refresh(<PyObject*> self)
        return None if self.node == NULL else <object> self.node

    @property
    def grad(self):
        """The gradient that backward passes accumulated: a tensor of the same shape and dtype, or None."""
        if recording():
            recorder.leaf(self, True)
        return None if self.grad_ == NULL else <object> self.grad_

    @grad.setter
    def grad(self, value):
        if value is None:
            set_grad(self, NULL)
            return
        if not isinstance(value, Tensor):
            raise worded(TypeError, "grad must be a Tensor or None, got {}", type(value).__name__)
        if value is self:
            raise RuntimeError("a tensor can't be its own gradient")
        if not same_shape((<Tensor> value).layout, self.layout) or (<Tensor> value).dtype_ != self.dtype_:
            raise worded(RuntimeError, "grad must have the tensor's shape {0.shape} and dtype {0.dtype.name}, got {1.shape} and "
                                       "{1.dtype.name}", self, value)
        set_grad(self, <PyObject*> value)

    @grad.deleter
    def grad(self):
        set_grad(self, NULL)

    @property
    def _base(self):
        """For a view: the tensor whose memory it shows."""
        return None if self.base == NULL else <object> self.base

    @property
    def _version(self):
        """How often the memory was changed in place."""
        return self.storage.version

    @property
    def retains_grad(self):
        """Whether it is an inner tensor that keeps its gradient."""
        return bool(self.flags & RETAINS_GRAD)

    def retain_grad(self):
        """Keep this inner tensor's gradient in `grad` after backward; no effect on leaves."""
        if not self.needs_grad:
            raise RuntimeError("retain_grad: the tensor does not require gradients")
        if self.node != NULL and not self.flags & RETAINS_GRAD:
            self.flags |= RETAINS_GRAD
            watch(self)

    def numel(self):
        """Number of elements."""
        return self.layout.numel

    def dim(self):
        """Number of dimensions."""
        return self.layout.ndim

    def size(self, dim=None):
        """The shape, or the size of one dimension."""
        cdef Py_ssize_t axis
        if dim is None:
            return shape_tuple(self.layout)
        axis = dim                      # before anything is read: it may change what self is
        if not -self.layout.ndim <= axis < self.layout.ndim:
            raise worded(IndexError, "size: dim {} is out of range for a tensor of {} dimensions", dim, self.layout.ndim)
        return self.layout.dims[axis + self.layout.ndim if axis < 0 else axis]

    def stride(self, dim=None):
        """Steps in memory between neighbours along each dimension, in elements."""
        strides = strides_tuple(self.layout)
        return strides if dim is None else strides[dim]

    def storage_offset(self):
        """Index of the first element in the storage."""
        return (self.data - self.storage.data) // itemsize_of(self.dtype_)

    def data_ptr(self):
        """Address of the first element."""
        return <uintptr_t> self.data

    def element_size(self):
        """Bytes of one element."""
        return itemsize_of(self.dtype_)

    def untyped_storage(self):
        """The memory that this tensor and its views share."""
        escape("untyped_storage()")
        return wrap_storage(self.storage)

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie in row-major order without gaps."""
        return bool(self.layout.flags & CONTIGUOUS)

    def is_floating_point(self):
        """Whether the dtype is float32 or float64."""
        return self.dtype_ <= FLOAT64

    def requires_grad_(self, requires_grad=True):
        """Set `requires_grad` in place and return the tensor."""
        self.requires_grad = requires_grad
        return self

    def item(self):
        """The only element, as a Python number. RuntimeError where there is not exactly one."""
        if self.layout.numel != 1:
            raise worded(ArgumentError, "item: a tensor of shape {.shape} has {} elements, not one", self, self.layout.numel)
        escape("item()")
        if self.dtype_ == FLOAT32:
            return (<float*> self.data)[0]
        if self.dtype_ == FLOAT64:
            return (<double*> self.data)[0]
        if self.dtype_ == INT64:
            return (<long long*> self.data)[0]
        if self.dtype_ == INT32:
            return (<int*> self.data)[0]
        if self.dtype_ == UINT8:
            return (<unsigned char*> self.data)[0]
        return bool((<unsigned char*> self.data)[0])

    @staticmethod
    def _make_subclass(cls, data, requires_grad=False):
        """An instance of the subclass `cls` on the memory of `data`, a leaf."""
        cdef Tensor source = data
        cdef Tensor made
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise worded(TypeError, "_make_subclass: expected a subclass of Tensor, got {!r}", cls)
        if source.dtype_ > FLOAT64 and requires_grad:
            raise worded(RuntimeError, "only floating-point tensors can require gradients, this one has dtype {.dtype.name}", source)
        storage_incref(source.storage)
        layout_incref(source.layout)
        if cls is Tensor:                 # tp_alloc would track it, and the free list expects untracked tensors
            made = own(tensor_wrap(source.storage, source.layout, source.data, source.dtype_))
        else:
            made = own(ag_alloc(<PyTypeObject*> cls))
        made.storage, made.layout, made.data = source.storage, source.layout, source.data
        made.dtype_ = source.dtype_
        made.needs_grad = bool(requires_grad)
        return made

    # ---- operators

    def __add__(left, right):
        return own(operators.binary(ADD, <PyObject*> left, <PyObject*> right))

    def __sub__(left, right):
        return own(operators.binary(SUB, <PyObject*> left, <PyObject*> right))

    def __mul__(left, right):
        return own(operators.binary(MUL, <PyObject*> left, <PyObject*> right))

    def __truediv__(left, right):
        return own(operators.binary(DIV, <PyObject*> left, <PyObject*> right))

    def __floordiv__(left, right):
        return own(operators.binary(FLOOR_DIVIDE, <PyObject*> left, <PyObject*> right))

    def __mod__(left, right):
        return own(operators.binary(REMAINDER, <PyObject*> left, <PyObject*> right))

    def __divmod__(left, right):
        return left // right, left % right

    def __pow__(left, right, modulo):
        if modulo is not None:
            raise TypeError("pow() with three arguments is not supported by tensors")
        return own(operators.binary(POW, <PyObject*> left, <PyObject*> right))

    def __matmul__(left, right):
        return own(operators.matmul(<PyObject*> left, <PyObject*> right))

    def __and__(left, right):
        return own(operators.binary(AND, <PyObject*> left, <PyObject*> right))

    def __or__(left, right):
        return own(operators.binary(OR, <PyObject*> left, <PyObject*> right))

    def __xor__(left, right):
        return own(operators.binary(XOR, <PyObject*> left, <PyObject*> right))

    def __lshift__(left, right):
        return own(operators.binary(LSHIFT, <PyObject*> left, <PyObject*> right))

    def __rshift__(left, right):
        return own(operators.binary(RSHIFT, <PyObject*> left, <PyObject*> right))

    def __ilshift__(self, other):
        return own(operators.inplace(LSHIFT, <PyObject*> self, <PyObject*> other))

    def __irshift__(self, other):
        return own(operators.inplace(RSHIFT, <PyObject*> self, <PyObject*> other))

    def __iand__(self, other):
        return own(operators.inplace(AND, <PyObject*> self, <PyObject*> other))

    def __ior__(self, other):
        return own(operators.inplace(OR, <PyObject*> self, <PyObject*> other))

    def __ixor__(self, other):
        return own(operators.inplace(XOR, <PyObject*> self, <PyObject*> other))

    def __iadd__(self, other):
        return own(operators.inplace(ADD, <PyObject*> self, <PyObject*> other))

    def __isub__(self, other):
        return own(operators.inplace(SUB, <PyObject*> self, <PyObject*> other))

    def __imul__(self, other):
        return own(operators.inplace(MUL, <PyObject*> self, <PyObject*> other))

    def __itruediv__(self, other):
        return own(operators.inplace(DIV, <PyObject*> self, <PyObject*> other))

    def __ifloordiv__(self, other):
        return own(operators.inplace(FLOOR_DIVIDE, <PyObject*> self, <PyObject*> other))

    def __imod__(self, other):
        return own(operators.inplace(REMAINDER, <PyObject*> self, <PyObject*> other))

    def __ipow__(self, other):
        return own(operators.inplace(POW, <PyObject*> self, <PyObject*> other))

    def __neg__(self):
        return own(operators.unary(NEG, <PyObject*> self))

    def __pos__(self):
        return self

    def __abs__(self):
        return own(operators.unary(ABS, <PyObject*> self))

    def __invert__(self):
        return own(operators.unary(NOT, <PyObject*> self))

    def __richcmp__(self, other, int op):
        cdef int opcode = EQ
        if op == Py_LT:
            opcode = LT
        elif op == Py_LE:
            opcode = LE
        elif op == Py_NE:
            opcode = NE
        elif op == Py_GT:
            opcode = GT
        elif op == Py_GE:
            opcode = GE
        return own(operators.binary(opcode, <PyObject*> self, <PyObject*> other))

    def __contains__(self, value):
        escape("`in`")
        found = self == value
        if not isinstance(found, Tensor):
            raise worded(TypeError, "a tensor holds numbers, so that {} can't be in it", type(value).__name__)
        return bool(found.any())

    def __repr__(self):
        escape("repr()")
        return self._repr()

    def __hash__(self):
        return <Py_ssize_t> (<uintptr_t> <PyObject*> self >> 4)

    def __getitem__(self, index):
        return own(operators.getitem(<PyObject*> self, <PyObject*> index))

    def __setitem__(self, index, value):
        operators.setitem(<PyObject*> self, <PyObject*> index, <PyObject*> value)

    def __len__(self):
        if self.layout.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.layout.dims[0]

    def __iter__(self):
        if self.layout.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __bool__(self):
        if self.layout.numel != 1:
            raise worded(RuntimeError, "the truth value of a tensor of shape {.shape} is ambiguous; use .any() or .all()", self)
        escape("bool()")
        return bool(self.item())

    def __int__(self):
        escape("int()")
        return int(self.item())

    def __float__(self):
        escape("float()")
        return float(self.item())

    def __index__(self):
        if self.dtype_ <= FLOAT64 or self.layout.numel != 1:
            raise worded(TypeError, "only an integer tensor of one element can be an index, got {0.dtype.name} of shape {0.shape}", self)
        escape("index()")
        return int(self.item())

    # ---- memory shared with others

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        cdef Py_ssize_t size = itemsize_of(self.dtype_)
        cdef int i
        if self.needs_grad:
            raise BufferError("a tensor that requires gradients does not share its memory; use detach()")
        if not for_ourselves:
            escape("memoryview()")
        if not self.layout.flags & CONTIGUOUS and flags & PyBUF_STRIDES != PyBUF_STRIDES:
            raise BufferError("the tensor is not contiguous, and the consumer cannot take strides")
        buffer.internal = malloc((2 * self.layout.ndim + 1) * sizeof(Py_ssize_t))
        if buffer.internal == NULL:
            raise MemoryError("out of memory")
        buffer.shape = <Py_ssize_t*> buffer.internal
        buffer.strides = buffer.shape + self.layout.ndim
        for i in range(self.layout.ndim):
            buffer.shape[i] = self.layout.dims[i]
            buffer.strides[i] = strides_of(self.layout)[i] * size
        if flags & PyBUF_ND != PyBUF_ND:
            buffer.shape = NULL
        if flags & PyBUF_STRIDES != PyBUF_STRIDES:
            buffer.strides = NULL
        buffer.buf = self.data
        buffer.len = self.layout.numel * size
        buffer.itemsize = size
        buffer.ndim = self.layout.ndim
        buffer.format = FORMATS[self.dtype_] if flags & PyBUF_FORMAT else NULL
        buffer.readonly = 0
        buffer.suboffsets = NULL
        buffer.obj = self

    def __releasebuffer__(self, Py_buffer* buffer):
        free(buffer.internal)


cdef char** FORMATS = ["f", "d", "q", "i", "B", "?"]
cdef bint for_ourselves = False           # whether a buffer is taken by own_buffer


cdef object own_buffer(Tensor t):
    global for_ourselves
    for_ourselves = True
    try:
        return memoryview(t)
    finally:
        for_ourselves = False


cdef int watch(Tensor t) except -1:
    """Let the node of t know that t retains its gradient."""
    cdef Node node = <Node> t.node
    cdef Watchers watchers = watchers_of(node)
    if watchers.retained is None:
        watchers.retained = []
    watchers.retained.append(weakref.ref(t))
    return 0


# ---- memory management

tensor_type = <PyTypeObject*> Tensor


cdef void tensor_empty(Tensor t) noexcept:
    """Let go of everything the tensor refers to, but its memory."""
    cdef PyObject* o = t.node
    t.node = NULL
    Py_XDECREF(o)
    o = t.grad_
    t.grad_ = NULL
    Py_XDECREF(o)
    o = t.base
    t.base = NULL
    Py_XDECREF(o)
    o = t.attributes
    t.attributes = NULL
    Py_XDECREF(o)


cdef void tensor_release(Tensor t) noexcept:
    if t.node != NULL or t.grad_ != NULL or t.base != NULL or t.attributes != NULL:
        tensor_empty(t)
    if t.storage != NULL:
        storage_decref(t.storage)
        layout_decref(t.layout)


cdef void tensor_dealloc(PyObject* o) noexcept:
    if AG_TYPE(o) != tensor_type or (<Tensor> o).flags & (CYCLIC | TRACKED):
        ag_untrack(o)
    if ag_weakrefs(o) != NULL:
        PyObject_ClearWeakRefs(o)
    tensor_release(<Tensor> o)
    if AG_TYPE(o) == tensor_type:
        if free_tensors.count < MAX_FREE_TENSORS:
            (<Tensor> o).storage = <Storage*> free_tensors.first
            free_tensors.first = o
            free_tensors.count += 1
        else:
            PyObject_GC_Del(o)
    else:
        ag_free(o)


cdef int tensor_traverse(PyObject* o, visitproc visit, void* arg) noexcept:
    cdef PyObject* parts[4]
    cdef int i, stop
    parts[0], parts[1] = (<Tensor> o).node, (<Tensor> o).grad_
    parts[2], parts[3] = (<Tensor> o).base, (<Tensor> o).attributes
    for i in range(4):
        if parts[i] != NULL:
            stop = visit(parts[i], arg)
            if stop:
                return stop
    return 0


cdef int tensor_clear(PyObject* o) noexcept:
    tensor_empty(<Tensor> o)
    return 0


cdef int tensor_setattr(PyObject* o, PyObject* name, PyObject* value) noexcept:
    """A tensor with attributes of its own may be part of a cycle."""
    cdef int status = PyObject_GenericSetAttr(o, name, value)
    if (<Tensor> o).attributes != NULL and value != NULL and not is_atom(<object> value):
        graph_make_cyclic(o)
        value_make_cyclic(<object> value, 4)
    return status


cdef inline bint is_atom(object value) noexcept:
    return value is None or isinstance(value, (str, bytes, int, float))


cdef void value_make_cyclic(object value, int depth) noexcept:
    """Let the collector see the tensors in a value that a tensor keeps as an attribute: they may lead back to it."""
    if isinstance(value, Tensor):
        graph_make_cyclic(<PyObject*> value)
    elif depth and not is_atom(value):
        if isinstance(value, dict):
            value = list((<dict> value).values())
        elif not isinstance(value, (list, tuple, set)):
            value = list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, type) else ()
        for item in value:
            value_make_cyclic(item, depth - 1)


cdef void tensor_make_cyclic(Tensor t) noexcept:
    t.flags |= CYCLIC
    ag_track(<void*> t)


cdef PyObject* tensor_make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) noexcept:
    # torch.Tensor(2, 3) and torch.Tensor([1, 2]) of older scripts; subclasses are made by _make_subclass
    if <PyObject*> cls != <PyObject*> Tensor or (kwargs != NULL and <object> kwargs):
        PyErr_SetString(PyExc_TypeError, b"Tensor takes sizes or data, and subclasses are not called; use autograd_cy.tensor(data)")
        return NULL
    try:
        from autograd_cy.engine.making import from_call
        made = from_call(*(<object> args))
        Py_INCREF(made)
        return <PyObject*> made
    except BaseException as error:
        kind = type(error)
        PyErr_SetObject(<PyObject*> kind, <PyObject*> error)
        return NULL


cdef int set_grad(Tensor t, PyObject* value) noexcept:
    """Put a gradient in place; one that has a history closes a cycle, which the collector must see."""
    cdef PyObject* old = t.grad_
    if recording():
        recorder.leaf(t, False)
    if value != NULL:
        Py_INCREF(<object> value)
        if (<Tensor> value).node != NULL or (<Tensor> value).flags & CYCLIC:
            tensor_make_cyclic(t)
            graph_make_cyclic(value)
    t.grad_ = value
    Py_XDECREF(old)
    return 0


cdef void graph_make_cyclic(PyObject* root) noexcept:
    """Let the collector see a node or tensor and all below: a tracked node leads to tracked nodes only."""
    cdef list stack = [<object> root]
    cdef PyObject* o
    cdef bint seen
    cdef int i
    while stack:
        item = stack.pop()
        o = <PyObject*> item
        if AG_TYPE(o) == node_type:
            if not (<Node> o).cyclic:
                node_make_cyclic(<Node> o)
                for i in range((<Node> o).n_edges):
                    if (<Node> o).edges[i].target != NULL:
                        stack.append(<object> (<Node> o).edges[i].target)
            continue
        seen = (<Tensor> o).flags & CYCLIC
        tensor_make_cyclic(<Tensor> o)
        if (<Tensor> o).node != NULL:
            stack.append(<object> (<Tensor> o).node)
        if not seen:
            if (<Tensor> o).base != NULL:
                stack.append(<object> (<Tensor> o).base)
            if (<Tensor> o).grad_ != NULL:
                stack.append(<object> (<Tensor> o).grad_)


cdef Py_ssize_t attributes_offset() noexcept:
    cdef PyObject* nowhere = <PyObject*> <uintptr_t> 4096
    return <char*> &(<Tensor> nowhere).attributes - <char*> nowhere


ag_set_slots(Tensor, tensor_dealloc, tensor_traverse, tensor_clear, tensor_make, tensor_setattr, attributes_offset())
ag_set_name(Tensor, "autograd_cy.Tensor")       # what users call it, and what a pickle holds
ag_set_in_type(Tensor, "__array_priority__", 1000)


def put_into_type(str name, function):
    """Make a function a method of Tensor."""
    ag_set_in_type(Tensor, name, function)
