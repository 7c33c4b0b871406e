# Recording: how an operation's inputs, saved values and outputs become a node. The C interface.
#
# Relies on array, node, tensor, modes. Every operation records through these.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.layout cimport Layout, layout_incref
from autograd_cy.array.storage cimport Storage, storage_incref
from autograd_cy.engine.node cimport MAX_NAMED, MAX_OPS, SAVED_PACKED, SAVED_TENSOR, Edge, Node, Saved, is_node, saved_at
from autograd_cy.engine.tensor cimport CYCLIC, Tensor, graph_make_cyclic

# Of every row (read_table.pyx): the bits that the rule for an input needs, of the inputs and, after them, the output.
cdef unsigned int needs[MAX_OPS][MAX_NAMED]
cdef int named_inputs[MAX_OPS]

cdef int refresh_view(Tensor t) except -1


cdef inline bint wants_grad(Tensor t) except -1:
    """Whether operations on t are recorded; a view first learns of in-place changes to its base's history."""
    if t.base != NULL and (<Tensor> t.base).view_version > t.view_version:
        refresh_view(t)
    return t.needs_grad


cdef inline int set_edge(Edge* edge, Tensor t) except -1:
    """The edge for an input; it leads to nothing unless the input requires gradients."""
    edge.dtype = t.dtype_
    edge.layout = t.layout
    edge.target = NULL
    edge.output_nr = 0
    layout_incref(t.layout)
    if wants_grad(t):
        edge.target = t.node if t.node != NULL else <PyObject*> t
        edge.output_nr = t.output_nr
        Py_INCREF(<object> edge.target)
    return 0


cdef inline void no_edge(Edge* edge) noexcept:
    edge.target = NULL
    edge.layout = NULL
    edge.output_nr = 0
    edge.dtype = 0


cdef inline void save_tensor(Node node, int bit, Tensor t) noexcept:
    """Save a value; call in the order of the bits."""
    cdef Saved* saved = &node.saved[node.n_saved]
    saved.storage = t.storage
    saved.layout = t.layout
    storage_incref(t.storage)
    layout_incref(t.layout)
    saved.at.data = t.data
    saved.version = t.storage.version
    saved.dtype = t.dtype_
    saved.kind = SAVED_TENSOR
    node.n_saved += 1
    node.mask |= <unsigned int> 1 << bit


cdef inline void save_number(Node node, int bit, double value, int kind) noexcept:
    """Save a Python number; call in the order of the bits."""
    cdef Saved* saved = &node.saved[node.n_saved]
    saved.storage = NULL
    saved.layout = NULL
    saved.at.number = value
    saved.kind = kind
    node.n_saved += 1
    node.mask |= <unsigned int> 1 << bit


cdef inline void set_history(PyObject* out, PyObject* node, int output_nr) noexcept:
    """Make `node` (whose reference it takes over) the history of `out`; what leads to a tracked object is tracked too."""
    cdef int i
    cdef PyObject* target
    (<Tensor> out).node = node
    (<Tensor> out).output_nr = output_nr
    (<Tensor> out).needs_grad = 1
    for i in range((<Node> node).n_edges):
        target = (<Node> node).edges[i].target
        if target != NULL and ((<Node> target).cyclic if is_node(target) else (<Tensor> target).flags & CYCLIC):
            graph_make_cyclic(out)
            return

# A view's base and version; `out` shows memory of x.
cdef void set_base(PyObject* out, Tensor x) noexcept
# The value saved for input `bit` (a new reference); with_history: differentiable again.
cdef PyObject* unpack(Node node, int bit, bint with_history) except NULL
cdef int check_version(Node node, Saved* saved) except -1
cdef Saved* raise_unsaved(Node node, int bit) except NULL


cdef inline Saved* saved_or_raise(Node node, int bit) except NULL:
    cdef Saved* saved = saved_at(node, bit)
    if node.released or saved == NULL or (saved.storage.version != saved.version if saved.storage != NULL else saved.kind == SAVED_PACKED):
        return raise_unsaved(node, bit)
    return saved


# Record a kernel operation with tensor inputs: edges, what the row's rules need, attributes.
cdef int record(int opcode, PyObject* out, int n, PyObject** inputs, PyObject* attrs, PyObject* aux) except -1
# Where one of the inputs wants it, record out as computed from them, by a row whose attributes are integers.
cdef int record_ints(PyObject* out, int row, int n, PyObject** inputs, int n_ints, const Py_ssize_t* ints) except -1
# out, computed from x; a view of x with the given layout (one reference is taken over) and address: recorded likewise.
cdef object made_of(Tensor x, object out, int row, int n, const Py_ssize_t* ints)
cdef object view_of(Tensor x, Layout* layout, char* data, int row, int n, const Py_ssize_t* ints)
# The history of a tensor that is a converted or other copy of what the edge leads to.
cdef int link_through_conversion(PyObject* result, Edge* edge) except -1
cdef bint any_wants_grad(int n, PyObject** inputs) except -1
cdef int refuse_inplace(Tensor t, str name) except -1
cdef int rewrite_history(Tensor t, PyObject* node) except -1
cdef int rewrite_history_as(Tensor t, PyObject* node, int output_nr) except -1
