# A tensor's memory overwritten, exchanged or copied: copy_, fill_, x.data = ..., deep copies, detach_, to another dtype.
#
# Relies on array, dispatch, shape, record. methods.py puts the functions into Tensor; [] = calls copy_.

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport FLOAT64, MAX_NDIM
from autograd_cy.array.layout cimport (
    OVERLAPPING, Layout, layout_decref, layout_expand, layout_incref, same_layout, strides_of,
)
from autograd_cy.array.storage cimport (
    CAPTURED, Storage, UntypedStorage, storage_decref, storage_incref, storage_new, wrap_storage,
)
from autograd_cy.engine.arguments cimport need_tensor, on_cpu
from autograd_cy.engine.modes cimport grad_enabled, modes, notice
from autograd_cy.engine.node cimport SAVED_FLOAT, Node, node_new, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport (
    Operand_, as_operand_tensor, category, copy_into, default_dtype, read_operand, write_number,
)
from autograd_cy.engine.record cimport refuse_inplace, rewrite_history, set_edge, set_history, wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.tensor cimport RETAINS_GRAD, Tensor, is_tensor, operators, tensor_wrap, watch
from autograd_cy.kernels.table cimport K, escape, recording

from autograd_cy.array.dtypes import DType, as_dtype
from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.shape import clone, convert, slice_axes

cdef int COPY = row_number("copy")


cdef object without_repeats(Tensor a):
    """A view of `a` in which axes of stride 0 have size 1: each place in memory once."""
    cdef list index = []
    cdef int i
    for i in range(a.layout.ndim):
        index.append((0, 1, 1) if strides_of(a.layout)[i] == 0 and a.layout.dims[i] > 1 else (None, None, None))
    return slice_axes(a, tuple(index))


cdef bint fits_once(Tensor v, Tensor places) noexcept:
    """Whether v gives one value to each element of `places`, a tensor without_repeats."""
    cdef int lead = places.layout.ndim - v.layout.ndim
    cdef int i
    for i in range(v.layout.ndim):
        if v.layout.dims[i] != 1 and (i + lead < 0 or v.layout.dims[i] != places.layout.dims[i + lead]):
            return False
    return True


cdef bint fill_plainly(Tensor a, PyObject* source, str name) except -1:
    """Overwrite with a number, where nothing is recorded and each element has a place of its own: whether that was done."""
    cdef Operand_ x
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef char number[8]
    cdef int i, dtype = a.dtype_
    if is_tensor(source) or recording() or a.layout.flags & OVERLAPPING or wants_grad(a) and grad_enabled() \
            or read_operand(source, &x) != 0:
        return False
    refuse_inplace(a, name)
    if dtype > FLOAT64 and x.kind == SAVED_FLOAT:
        dtype = default_dtype()
    write_number(&x, dtype, number)
    for i in range(a.layout.ndim):
        strides[i] = 0
    K.copy(a.layout.ndim, a.layout.dims, a.dtype_, a.data, strides_of(a.layout), dtype, number, strides)
    a.storage.version += 1
    return True


def fill_(self, value):
    """Every element set to `value`."""
    return copy_(self, value)


def zero_(self):
    """Every element set to 0."""
    return copy_(self, 0)


def copy_(x, source, non_blocking=False):
    """Overwrite x with `source` (broadcast to its shape, converted to its dtype)."""
    cdef Tensor a = need_tensor(x, "copy_")
    cdef Tensor v
    cdef Tensor src
    cdef PyObject* node
    cdef Layout* layout
    cdef bint recorded
    if fill_plainly(a, <PyObject*> source, "copy_"):
        return x
    src = v = own(as_operand_tensor(<PyObject*> source, a.dtype_))
    if a.layout.flags & OVERLAPPING and a.layout.numel:
        # One value for each place in memory, as in zero_ and fill_, may be written to an expanded tensor.
        places = without_repeats(a)
        if not (<Tensor> places).layout.flags & OVERLAPPING and fits_once(v, places):
            copy_(places, v)
            return x
        raise RuntimeError("copy_: several elements of the tensor share one memory location (it was expanded); clone() it first")
    if v.layout != a.layout:
        layout = layout_expand(v.layout, a.layout.ndim, a.layout.dims)
        if layout == NULL:
            raise worded(ShapeError, "copy_: a source of shape {.shape} does not broadcast to the tensor's shape {.shape}", v, a)
        layout_decref(layout)
    refuse_inplace(a, "copy_")
    recorded = (wants_grad(v) or wants_grad(a)) and a.dtype_ <= 1 and grad_enabled()
    if v is a:
        return x
    if v.storage == a.storage:
        src = copied_as_clone(v)
    copy_into(a, src)
    a.storage.version += 1
    if recorded:
        node = node_new(COPY, 2, 0)
        set_edge(&(<Node> node).edges[1], v)
        remember_line(<Node> node)
        rewrite_history(a, node)
    return x


def store_(Tensor self, Tensor result, str name):
    """Overwrite self with what the form out of place of the function gave; its kind of dtype must fit."""
    if category(result.dtype_) > category(self.dtype_):
        raise worded(RuntimeError, "{}: the result has dtype {.dtype.name}, which can't be stored in a tensor of {.dtype.name}",
                                   name, result, self)
    return copy_(self, result)


cdef bint may_copy_instead(Tensor self, Tensor value):
    """Whether nobody else sees either memory, so that a captured p.data = p.data - lr * p.grad may copy values."""
    cdef Py_ssize_t nothing = 0, step = 1
    # The capture holds memory from outside that it has met: let it meet this, to know how many holders are expected.
    K.copy(1, &nothing, self.dtype_, self.data, &step, self.dtype_, self.data, &step)
    return self.storage.refs == (1 if self.storage.size_class == CAPTURED else 2) and value.storage.refs == 1 and value.base == NULL \
        and value.storage.size_class == CAPTURED and value.dtype_ == self.dtype_ and same_layout(value.layout, self.layout)


def set_data(Tensor self, Tensor value):
    """Let the tensor show the memory of `value`: `x.data = value`. Shape and dtype may change only without a history."""
    cdef PyObject* base
    if value.dtype_ != self.dtype_ and (self.grad_ != NULL or (self.needs_grad and value.dtype_ > FLOAT64)):
        raise worded(RuntimeError, "data: expected dtype {.dtype.name}, got {.dtype.name}", self, value)
    if self.node != NULL:
        raise RuntimeError("data: only the memory of leaf tensors can be exchanged")
    if recording():
        if not may_copy_instead(self, value):
            escape("an exchange of memory (x.data = ...)")
        copy_into(self, value)
        return
    operators.exchanges += 1
    storage_incref(value.storage)
    layout_incref(value.layout)
    storage_decref(self.storage)
    layout_decref(self.layout)
    self.storage, self.layout, self.data = value.storage, value.layout, value.data
    self.dtype_ = value.dtype_
    base = self.base
    self.base = NULL                            # it shows other memory now
    Py_XDECREF(base)


def copied_with_storage(Tensor x, dict memo):
    """x on a copy of its storage; tensors that share a storage share the copy too (memo is that of deepcopy)."""
    cdef UntypedStorage whole = wrap_storage(x.storage)
    cdef UntypedStorage copied = memo.get(whole)
    cdef Storage* storage
    escape("deepcopy()")
    if copied is None:
        storage = storage_new(x.storage.nbytes)
        memcpy(storage.data, x.storage.data, x.storage.nbytes)
        copied = memo[whole] = wrap_storage(storage)
        storage_decref(storage)
    storage_incref(copied.storage)
    layout_incref(x.layout)
    return own(tensor_wrap(copied.storage, x.layout, copied.storage.data + (x.data - x.storage.data), x.dtype_))


def show_as(Tensor x, Tensor view, str name):
    """Let x show its memory, and have the history, as the view of it does: t_, squeeze_ ... RuntimeError for leaves with gradients."""
    cdef PyObject* node
    cdef int k
    escape(name + "()")
    refuse_inplace(x, name)
    if view.node == NULL and x.node != NULL:
        raise worded(RuntimeError, "{}: a tensor with a history needs recording switched on", name)
    operators.exchanges += 1
    layout_incref(view.layout)
    layout_decref(x.layout)
    x.layout, x.data = view.layout, view.data
    if view.node != NULL:
        node, k = view.node, view.output_nr
        view.node = NULL
        Py_XDECREF(x.node)
        x.node = NULL
        set_history(<PyObject*> x, node, k)
        if x.flags & RETAINS_GRAD:
            watch(x)
    return x


def drop_history(Tensor x):
    """Make x a leaf that requires no gradient."""
    cdef PyObject* node = x.node
    if x.base != NULL:
        raise RuntimeError("detach_: a view can't be detached in place; use detach()")
    if modes.observer != NULL:
        notice("detach", x)
    x.node = NULL
    x.needs_grad = 0
    Py_XDECREF(node)
    return x


# ---- conversions

def to(self, *args, dtype=None, copy=False, device=None, **ignored):
    """In another dtype: to(ag.float64), to(other_tensor), to(dtype=...). Devices ("cpu") are accepted and ignored."""
    on_cpu(device)
    for arg in args:
        if isinstance(arg, DType):
            dtype = arg
        elif is_tensor(<PyObject*> arg):
            dtype = arg.dtype
        elif arg is None or isinstance(arg, bool) or isinstance(arg, str) and arg.partition(":")[0] == "cpu":    # a bool: non_blocking
            continue
        elif isinstance(arg, str) and arg.partition(":")[0] in ("cuda", "mps", "xpu", "meta"):
            raise worded(RuntimeError, "to: autograd_cy computes on the CPU only, got {!r}", arg)
        else:
            dtype = as_dtype(arg)
    out = self if dtype is None else convert(self, dtype)
    return clone(out) if copy and out is self else out
