# Recording: how an operation's inputs, saved values and outputs become a node; views and in-place changes among them.
#
# Relies on array, node, tensor, modes and the table (which says what each rule needs). Every operation records through this.
#
# In place on a view: the base's history becomes "the old base with this window replaced", and views made before learn of it when
# they are next used, because their version is older than the base's.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport Layout, layout_incref, strides_of
from autograd_cy.array.storage cimport storage_incref
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport (
    AS_STRIDED, REPLACE_STRIDED, SAVED_BOOL, SAVED_INT, Edge, Node, Saved, is_node, node_description, node_new,
    node_with_ints, remember_line, saved_at,
)
from autograd_cy.kernels.table cimport recorder
from autograd_cy.engine.object cimport own
from autograd_cy.engine.tensor cimport CUSTOM_VIEW, RETAINS_GRAD, Tensor, operators, tensor_alias, tensor_wrap, watch

from autograd_cy.array.errors import worded

from autograd_cy.engine.tensor import OPCODES

cdef int CONVERT = OPCODES["convert"]


cdef bint any_wants_grad(int n, PyObject** inputs) except -1:
    cdef int i
    for i in range(n):
        if inputs[i] != NULL and wants_grad(<Tensor> inputs[i]):
            return grad_enabled()
    return False


cdef unsigned int needed_bits(int opcode, int n, PyObject** inputs) noexcept:
    cdef unsigned int mask = 0
    cdef int i
    for i in range(min(n, named_inputs[opcode])):
        if inputs[i] != NULL and (<Tensor> inputs[i]).needs_grad:
            mask |= needs[opcode][i]
    return mask


cdef int record(int opcode, PyObject* out, int n, PyObject** inputs, PyObject* attrs, PyObject* aux) except -1:
    cdef unsigned int mask = needed_bits(opcode, n, inputs)
    cdef int named = named_inputs[opcode]
    cdef PyObject* o = node_new(opcode, n, mask)
    cdef Node node = <Node> o
    cdef int i
    for i in range(n):
        if inputs[i] != NULL:
            set_edge(&node.edges[i], <Tensor> inputs[i])
    for i in range(min(n, named)):
        if mask >> i & 1 and inputs[i] != NULL:
            save_tensor(node, i, <Tensor> inputs[i])
    if mask >> named & 1:
        save_tensor(node, named, <Tensor> out)
    if attrs != NULL:
        Py_INCREF(<object> attrs)
        node.attrs = attrs
    if aux != NULL:
        Py_INCREF(<object> aux)
        node.extra = aux
    remember_line(node)
    set_history(out, o, 0)
    return 0


cdef int record_ints(PyObject* out, int row, int n, PyObject** inputs, int n_ints, const Py_ssize_t* ints) except -1:
    cdef PyObject* o
    cdef int i = 0
    while not wants_grad(<Tensor> inputs[i]):
        i += 1
        if i == n:
            return 0
    if grad_enabled():
        o = node_with_ints(row, n, n_ints, ints)
        for i in range(n):
            set_edge(&(<Node> o).edges[i], <Tensor> inputs[i])
        remember_line(<Node> o)
        set_history(out, o, 0)
    return 0


cdef object made_of(Tensor x, object out, int row, int n, const Py_ssize_t* ints):
    cdef PyObject* given = <PyObject*> x
    record_ints(<PyObject*> out, row, 1, &given, n, ints)
    return out


cdef object view_of(Tensor x, Layout* layout, char* data, int row, int n, const Py_ssize_t* ints):
    out = own(tensor_alias(x, layout, data))
    set_base(<PyObject*> out, x)
    return made_of(x, out, row, n, ints)


# ---- saved values

cdef int check_version(Node node, Saved* saved) except -1:
    if saved.storage != NULL and saved.storage.version != saved.version and not recorder.ignores_versions:
        raise worded(RuntimeError, "a value that {} needs for its gradient was changed in place afterwards (version {}, saved at version "
                                   "{}); use an out-of-place operation, or clone() the value before changing it",
                                   node_description(node), saved.storage.version, saved.version)
    return 0


cdef Saved* raise_unsaved(Node node, int bit) except NULL:
    cdef Saved* saved = saved_at(node, bit)
    if node.released or saved == NULL:
        raise_released(node)
    if saved.storage == NULL:
        raise worded(RuntimeError, "the value was put elsewhere by saved_tensors_hooks; it comes back while backward is at {}",
                                   node_description(node))
    check_version(node, saved)
    return saved


cdef int raise_released(Node node) except -1:
    raise worded(RuntimeError, "backward through {} a second time: its saved values were freed by the first backward; call that one with "
                               "retain_graph=True to keep them", node_description(node))


cdef PyObject* unpack(Node node, int bit, bint with_history) except NULL:
    cdef Saved* saved = saved_or_raise(node, bit)
    cdef PyObject* result
    cdef PyObject* target
    cdef Edge* edge
    if saved.storage == NULL:
        return new_number(saved.at.number, saved.kind)
    if with_history and bit < node.n_edges:
        edge = &node.edges[bit]
        target = edge.target
        if target != NULL and not is_node(target) and (<Tensor> target).storage == saved.storage \
                and (<Tensor> target).data == saved.at.data and (<Tensor> target).layout == saved.layout:
            Py_INCREF(<object> target)          # the leaf itself
            return target
    storage_incref(saved.storage)
    layout_incref(saved.layout)
    result = tensor_wrap(saved.storage, saved.layout, saved.at.data, saved.dtype)
    if not with_history:
        return result
    if bit >= node.n_edges:                     # the node's own output
        Py_INCREF(node)
        set_history(result, <PyObject*> node, 0)
    elif edge.target != NULL:
        if is_node(target) and edge.dtype == saved.dtype:
            Py_INCREF(<object> target)
            set_history(result, target, edge.output_nr)
        else:
            link_through_conversion(result, edge)
    return result


cdef int link_through_conversion(PyObject* result, Edge* edge) except -1:
    """The saved value is a converted copy of the input: its history is the input's, by way of a conversion."""
    cdef PyObject* o = node_new(CONVERT, 1, 0)
    cdef Edge* link = &(<Node> o).edges[0]
    link.target = edge.target
    link.layout = edge.layout
    link.output_nr = edge.output_nr
    link.dtype = edge.dtype
    Py_INCREF(<object> edge.target)
    layout_incref(edge.layout)
    set_history(result, o, 0)
    return 0


cdef PyObject* new_number(double value, int kind) except NULL:
    cdef object number = value
    if kind == SAVED_INT:
        number = int(value)
    elif kind == SAVED_BOOL:
        number = bool(value)
    Py_INCREF(number)
    return <PyObject*> number


# ---- views

cdef void set_base(PyObject* out, Tensor x) noexcept:
    cdef PyObject* base = x.base if x.base != NULL else <PyObject*> x
    Py_INCREF(<object> base)
    (<Tensor> out).base = base
    (<Tensor> out).view_version = x.storage.version


cdef void memory_range(Tensor t, char** first, char** last) noexcept:
    """The addresses of the lowest and the highest element."""
    cdef Py_ssize_t reach
    cdef int i
    first[0] = last[0] = t.data
    for i in range(t.layout.ndim):
        reach = (t.layout.dims[i] - 1) * strides_of(t.layout)[i] * itemsize_of(t.dtype_)
        if reach < 0:
            first[0] += reach
        else:
            last[0] += reach


cdef bint shows_base(Tensor t) noexcept:
    """Whether a view still lies in the memory of its base: the base's memory may have been exchanged (x.data = ...)."""
    cdef Tensor base = <Tensor> t.base
    cdef char* first
    cdef char* last
    cdef char* base_first
    cdef char* base_last
    if t.storage != base.storage or t.dtype_ != base.dtype_:
        return False
    if t.layout.numel == 0 or base.layout.numel == 0:
        return t.layout.numel == 0
    memory_range(t, &first, &last)
    memory_range(base, &base_first, &base_last)
    return base_first <= first and last <= base_last


cdef void forget_base(Tensor t) noexcept:
    cdef PyObject* base = t.base
    t.base = NULL
    Py_XDECREF(base)


cdef PyObject* window_node(Tensor t, Tensor base) except NULL:
    """A node for t as a window on its base."""
    cdef Py_ssize_t ints[2 * MAX_NDIM + 1]                # where t lies in the memory of its base: sizes, strides, offset
    cdef int i, n = t.layout.ndim
    for i in range(2 * n):
        ints[i] = t.layout.dims[i]
    ints[2 * n] = (t.data - base.data) // itemsize_of(t.dtype_)
    return node_with_ints(AS_STRIDED, 1, 2 * n + 1, ints)


cdef int refresh_view(Tensor t) except -1:
    """The base's history was rewritten since: the view's history is now a window on the new base."""
    cdef Tensor base = <Tensor> t.base
    cdef PyObject* o
    cdef PyObject* old
    if not shows_base(t):
        forget_base(t)
        return 0
    if t.flags & CUSTOM_VIEW and base.needs_grad:
        raise RuntimeError(f"{(<Node> t.node).name() if t.node != NULL else 'a custom function'}: the function returned a view of a tensor "
                           f"that was changed in place afterwards, so that its backward no longer describes the view; return a clone() "
                           f"from forward, or change nothing in place")
    if base.needs_grad:
        o = window_node(t, base)
        set_edge(&(<Node> o).edges[0], base)
        remember_line(<Node> o)
        old = t.node
        t.node = NULL
        Py_XDECREF(old)
        set_history(<PyObject*> t, o, 0)
        if t.flags & RETAINS_GRAD:
            watch(t)
    t.view_version = t.storage.version
    return 0


cdef int refresh(PyObject* view) except -1:
    wants_grad(<Tensor> view)
    return 0


operators.refresh = refresh


# ---- in place

cdef int refuse_inplace(Tensor t, str name) except -1:
    """Recorded in-place operations are refused on leaves that require gradients, on views of such, and on views without a history
    of their own (made under no_grad) of tensors that have one: their gradient would be lost."""
    cdef Tensor base
    if not grad_enabled():
        return 0
    if t.flags & CUSTOM_VIEW and t.base != NULL:
        raise worded(RuntimeError, "{}: a view that an autograd.Function returned can't be changed in place: the gradient would pass its "
                                   "backward by; return a clone() from forward, or change a clone()", name)
    if wants_grad(t) and t.node == NULL:
        raise worded(RuntimeError, "{}: a leaf tensor that requires gradients can't be changed in place; do it under no_grad(), or on a "
                                   "copy", name)
    if t.base != NULL:
        base = <Tensor> t.base
        if base.needs_grad and base.node == NULL:
            raise worded(RuntimeError, "{}: a view of a leaf tensor that requires gradients can't be changed in place; do it under "
                                       "no_grad(), or on a copy", name)
        if base.needs_grad and t.node == NULL:
            raise worded(RuntimeError, "{}: a view that was made under no_grad() can't be changed in place with recording on: its base "
                                       "has a history; make the view anew, or change it under no_grad()", name)
    return 0


cdef int rewrite_history(Tensor t, PyObject* node) except -1:
    """t was changed in place by `node` (whose reference is taken over): rewrite its history, and its base's."""
    return rewrite_history_as(t, node, 0)


cdef int rewrite_history_as(Tensor t, PyObject* node, int output_nr) except -1:
    """The same where t is this output of the node."""
    cdef PyObject* old = t.node
    cdef PyObject* o
    cdef Tensor base
    cdef Py_ssize_t offset
    t.node = NULL
    Py_XDECREF(old)
    set_history(<PyObject*> t, node, output_nr)
    t.view_version = t.storage.version
    if t.flags & RETAINS_GRAD:
        watch(t)
    if t.base != NULL and not shows_base(t):
        forget_base(t)
    if t.base == NULL:
        return 0
    base = <Tensor> t.base
    offset = (t.data - base.data) // itemsize_of(t.dtype_)
    o = node_with_ints(REPLACE_STRIDED, 2, 1, &offset)
    set_edge(&(<Node> o).edges[0], base)
    set_edge(&(<Node> o).edges[1], t)
    remember_line(<Node> o)
    old = base.node
    base.node = NULL
    Py_XDECREF(old)
    set_history(<PyObject*> base, o, 0)
    base.view_version = base.storage.version
    t.view_version = base.storage.version - 1   # the view itself is now a window on the new base
    return refresh_view(t)
