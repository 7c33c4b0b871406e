# Recording: how an operation's inputs, saved values and outputs become a node. The C interface.
#
# Relies on array, node, tensor, modes. Every operation records through these.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.array.storage cimport Storage
from autograd_cy.engine.node cimport Edge, Node, Saved
from autograd_cy.engine.tensor cimport Tensor

cdef int refresh_view(Tensor t) except -1


cdef inline bint wants_grad(Tensor t) except -1:
    """Whether operations on t are recorded; a view first learns of in-place changes to its base's history."""
    if t.base != NULL and (<Tensor> t.base).view_version > t.view_version:
        refresh_view(t)
    return t.needs_grad

# The edge for an input; it leads to nothing unless the input requires gradients.
cdef int set_edge(Edge* edge, Tensor t) except -1
cdef void save_tensor(Node node, int bit, Tensor t) noexcept
cdef void save_number(Node node, int bit, double value, int kind) noexcept
# Makes `node` (whose reference it takes over) the history of `out`.
cdef int set_history(PyObject* out, PyObject* node, int output_nr) except -1
# A view's base and version; `out` shows memory of x.
cdef void set_base(PyObject* out, Tensor x) noexcept
# The value saved for input `bit` (a new reference); with_history: differentiable again.
cdef PyObject* unpack(Node node, int bit, bint with_history) except NULL
cdef int check_version(Node node, Saved* saved) except -1
cdef Saved* saved_or_raise(Node node, int bit) except NULL

# Record a kernel operation with tensor inputs: edges, what the row's rules need, attributes.
cdef int record(int opcode, PyObject* out, int n, PyObject** inputs, PyObject* attrs, PyObject* aux) except -1
cdef bint any_wants_grad(int n, PyObject** inputs) except -1
cdef int refuse_inplace(Tensor t, str name) except -1
cdef int rewrite_history(Tensor t, PyObject* node) except -1
