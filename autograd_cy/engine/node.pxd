# Node: one recorded operation of the graph. The C interface.
#
# Relies on array. dispatch makes nodes, backward walks them, tensors point to them.
#
# A node never refers to its own output tensor, so that graphs have no reference cycles; an output that a rule needs is
# saved as storage and layout. Edges point to nodes or, for leaves, to the tensors that accumulate.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.array.storage cimport Storage
from autograd_cy.engine.object cimport AG_TYPE, PyTypeObject

cdef extern from *:
    int __builtin_popcount(unsigned int) noexcept nogil

cdef enum SavedKind:
    SAVED_TENSOR = 0
    SAVED_FLOAT = 1           # a Python number, in `number`
    SAVED_INT = 2
    SAVED_BOOL = 3

cdef union SavedPlace:
    char* data                # address of the first element
    double number

cdef struct Saved:
    Storage* storage          # NULL for a number
    Layout* layout
    SavedPlace at
    unsigned int version      # of the storage when it was saved
    unsigned char dtype
    unsigned char kind

cdef struct Edge:
    PyObject* target          # Node or leaf Tensor that takes the gradient; NULL: none is needed
    Layout* layout            # shape of the input; NULL for a number
    int output_nr             # which output of the target node the input was
    unsigned char dtype

cdef enum:
    INLINE_EDGES = 2
    INLINE_SAVED = 2

cdef enum ReductionOfLoss:
    NO_REDUCTION = 0
    MEAN_REDUCTION = 1
    SUM_REDUCTION = 2

cdef class Node:
    cdef unsigned short opcode
    cdef unsigned short n_saved
    cdef unsigned int mask            # bit i: input i is saved; bit n_inputs: the output is
    cdef int n_edges
    cdef int n_outputs
    cdef long long seq                # order of creation; every edge leads to a smaller one
    cdef Edge* edges
    cdef Saved* saved
    cdef PyObject* attrs              # tuple, or NULL
    cdef PyObject* extra              # tuple of aux values that the rule needs, or NULL
    cdef PyObject* watchers           # list of weak references to tensors that retain their gradient; or NULL
    cdef PyObject* code               # where the user's code made it: code object and instruction offset
    cdef int lasti
    cdef unsigned char released       # saved values were given back by a backward pass
    cdef unsigned char reduction      # of a loss: elementwise formula, then sum or mean
    cdef unsigned char cyclic         # may be part of a reference cycle: tracked by the collector
    cdef unsigned char queued         # state of the backward pass that holds the fast slots
    cdef PyObject** pending           # its gradients so far: n_outputs tensors
    cdef PyObject* pending_one
    cdef Edge edge_room[INLINE_EDGES]
    cdef Saved saved_room[INLINE_SAVED]

cdef PyObject* node_new(int opcode, int n_edges, int n_saved) except NULL
cdef bint node_set_outputs(Node node, int n) except False
cdef void node_release_saved(Node node) noexcept
cdef void node_make_cyclic(Node node) noexcept
cdef PyTypeObject* node_type

cdef inline bint is_node(PyObject* o) noexcept:
    return AG_TYPE(o) == node_type


cdef inline Saved* saved_at(Node node, int i) noexcept:
    """The saved value of input i (i = number of inputs: the output), or NULL."""
    cdef unsigned int bit = <unsigned int> 1 << i
    if not node.mask & bit:
        return NULL
    return &node.saved[__builtin_popcount(node.mask & (bit - 1))]


cdef str node_line(Node node)
cdef str node_description(Node node)
cdef void remember_line(Node node) noexcept
