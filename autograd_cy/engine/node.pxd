# Node: one recorded operation of the graph. The C interface.
#
# Relies on array. dispatch makes nodes, backward walks them, tensors point to them.
#
# A node never refers to its own output tensor, so that graphs have no reference cycles; an output that a rule needs is
# saved as storage and layout. Edges point to nodes or, for leaves, to the tensors that accumulate.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from autograd_cy.array.layout cimport Layout, layout_decref
from autograd_cy.array.storage cimport Storage, storage_decref
from autograd_cy.engine.object cimport AG_TYPE, PyTypeObject, ag_revive

cdef extern from *:
    """
    /* Set bits of the masks that say which values a node saves: at most 5 bits matter (4 inputs and the output). */
    static const unsigned char ag_bits[32] = {0,1,1,2,1,2,2,3,1,2,2,3,2,3,3,4,1,2,2,3,2,3,3,4,2,3,3,4,3,4,4,5};
    #define AG_BASICSIZE(type) (((PyTypeObject*) (type))->tp_basicsize)
    """
    const unsigned char* ag_bits
    Py_ssize_t AG_BASICSIZE(PyTypeObject* type) noexcept

cdef enum:
    MAX_OPS = 512             # rows of the table, at most
    MAX_NAMED = 4             # inputs that a row names, hence bits of a node's mask

cdef tuple NAMES              # of the rows; a row's number is its place here
cdef int CUSTOM, AS_STRIDED, REPLACE_STRIDED

cdef enum SavedKind:
    SAVED_TENSOR = 0
    SAVED_FLOAT = 1           # a Python number, in `number`
    SAVED_INT = 2
    SAVED_BOOL = 3
    SAVED_PACKED = 4          # a tensor that saved_tensors_hooks put elsewhere (Watchers.packed)

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

cdef enum ReductionOfLoss:
    NO_REDUCTION = 0
    MEAN_REDUCTION = 1
    SUM_REDUCTION = 2

cdef class Node:
    cdef Py_ssize_t room              # words of 8 bytes for edges and saved values behind the fields (CPython's ob_size)
    cdef unsigned short opcode
    cdef unsigned char n_saved
    cdef unsigned char users          # passes whose rule is at work here: in several threads, or one within another's
    cdef unsigned int mask            # bit i: input i is saved; bit n_inputs: the output is
    cdef int n_edges
    cdef int n_outputs
    cdef long long seq                # order of creation; every edge leads to a smaller one
    cdef Edge* edges
    cdef Saved* saved
    cdef PyObject* attrs              # tuple, or NULL: none, or numbers in the node (attributes_of)
    cdef PyObject* extra              # tuple of aux values that the rule needs, or NULL
    cdef PyObject* watchers           # Watchers: whatever few nodes have; or NULL
    cdef PyObject* code               # where the user's code made it: code object and instruction offset
    cdef int lasti
    cdef unsigned char released       # saved values were given back by a backward pass
    cdef unsigned char reduction      # of a loss: elementwise formula, then sum or mean
    cdef unsigned char cyclic         # may be part of a reference cycle: tracked by the collector
    cdef unsigned char queued         # state of the backward pass that holds the fast slots
    cdef PyObject** pending           # its gradients so far: n_outputs tensors
    cdef PyObject* pending_one        # room for one; in a free list: the next node

cdef class Watchers:
    cdef list retained                # weak references to tensors that retain their gradient
    cdef dict hooks                   # of its outputs: number -> Hooks
    cdef object before                # Hooks of the node itself, which see the gradients of its outputs; or None
    cdef object after                 # ... and those that see the gradients of its inputs, too
    cdef dict notes                   # Node.metadata
    cdef list packed                  # saved values that saved_tensors_hooks put elsewhere

cdef Watchers watchers_of(Node node)

cdef class Owned:             # of an autograd.Function: the first of its node's attributes
    cdef PyObject* node       # not counted; NULL when it is gone

cdef enum:
    EDGE_WORDS = 3
    SAVED_WORDS = 4
    FREE_ROOMS = 32           # nodes of so many words come from free lists

cdef struct FreeNodes:
    PyObject* first[FREE_ROOMS]
    int count
    long long last_seq

cdef FreeNodes free_nodes

cdef PyObject* node_grow(Py_ssize_t room) except NULL
cdef bint node_set_outputs(Node node, int n) except False
cdef void node_make_cyclic(Node node) noexcept
cdef PyTypeObject* node_type

cdef inline bint is_node(PyObject* o) noexcept:
    return AG_TYPE(o) == node_type


cdef inline PyObject* node_new(int opcode, int n_edges, unsigned int mask) except NULL:
    """A node (a new reference) with room for its edges and for the values that `mask` names, which the caller fills."""
    cdef PyObject* o = node_bare(opcode, n_edges, mask)
    cdef int i
    for i in range(n_edges):
        (<Node> o).edges[i].target = NULL
        (<Node> o).edges[i].layout = NULL
        (<Node> o).edges[i].output_nr = 0
        (<Node> o).edges[i].dtype = 0
    return o


cdef inline PyObject* node_bare(int opcode, int n_edges, unsigned int mask) except NULL:
    """As node_new, but the caller sets every edge at once."""
    return node_of_size(opcode, n_edges, EDGE_WORDS * n_edges + SAVED_WORDS * ag_bits[mask & 31])


cdef inline PyObject* node_with_ints(int opcode, int n_edges, int n, const Py_ssize_t* ints) except NULL:
    """As node_bare, with attributes that are integers (Row.ints): a tuple of them is made when somebody asks."""
    cdef PyObject* o = node_of_size(opcode, n_edges, EDGE_WORDS * n_edges + n)
    cdef int i
    for i in range(n):
        (<Py_ssize_t*> (<Node> o).saved)[i] = ints[i]
    return o


cdef inline PyObject* node_with_numbers(int opcode, int n_edges, unsigned int mask, int n, const double* numbers) except NULL:
    """As node_bare, with the attributes of an elementwise row: a tuple of them is made when somebody asks."""
    cdef PyObject* o = node_of_size(opcode, n_edges, EDGE_WORDS * n_edges + SAVED_WORDS * ag_bits[mask & 31] + n)
    cdef int i
    for i in range(n):
        numbers_of(<Node> o, n)[i] = numbers[i]
    return o


cdef inline double* numbers_of(Node node, int n) noexcept:
    """The attributes of an elementwise row that has n."""
    return <double*> node.edges + node.room - n


cdef inline PyObject* node_of_size(int opcode, int n_edges, Py_ssize_t room) except NULL:
    cdef PyObject* o
    if room < FREE_ROOMS and free_nodes.first[room] != NULL:
        o = free_nodes.first[room]
        free_nodes.first[room] = (<Node> o).pending_one
        free_nodes.count -= 1
        ag_revive(o, node_type)
    else:
        o = node_grow(room)
    free_nodes.last_seq += 1
    (<Node> o).seq = free_nodes.last_seq
    (<Node> o).opcode = opcode
    (<Node> o).n_edges = n_edges
    (<Node> o).n_saved = (<Node> o).users = 0
    (<Node> o).n_outputs = 1
    (<Node> o).mask = 0
    (<Node> o).attrs = NULL
    (<Node> o).extra = NULL
    (<Node> o).watchers = NULL
    (<Node> o).code = NULL
    (<Node> o).released = (<Node> o).reduction = (<Node> o).cyclic = (<Node> o).queued = 0
    (<Node> o).pending_one = NULL
    (<Node> o).pending = &(<Node> o).pending_one
    (<Node> o).edges = <Edge*> (<char*> o + AG_BASICSIZE(node_type))
    (<Node> o).saved = <Saved*> ((<Node> o).edges + n_edges)
    return o


cdef inline Saved* saved_at(Node node, int i) noexcept:
    """The saved value of input i (i = number of inputs: the output), or NULL."""
    cdef unsigned int bit = <unsigned int> 1 << i
    if not node.mask & bit:
        return NULL
    return &node.saved[ag_bits[node.mask & (bit - 1) & 31]]


cdef inline void node_release_saved(Node node) noexcept:
    """Give the saved values back; the node can't be differentiated again."""
    cdef int i
    cdef int n = node.n_saved
    cdef PyObject* extra = node.extra
    node.n_saved = 0
    node.released = 1
    for i in range(n):
        if node.saved[i].storage != NULL:
            storage_decref(node.saved[i].storage)
            layout_decref(node.saved[i].layout)
    if extra != NULL:
        node.extra = NULL
        Py_DECREF(<object> extra)


# The attributes, a tuple that the node keeps.
cdef tuple attributes_of(Node node)

cdef str node_line(Node node)
cdef str node_description(Node node)
# Called for every node when its edges and saved values are there. On an error the node is given up.
cdef int remember_line(Node node) except -1

cdef enum:
    RECORD_LINES = 1          # what happens then: the line is noted,
    RECORD_SAVED = 2          # saved values are put elsewhere (hooks),
    RECORD_TRACES = 4         # the whole stack is noted (hooks)
    RECORD_NOTICE = 8         # the observer of modes is told (hooks)

cdef struct Recording:
    int mode
    int (*look)(Node node) except -1  # for all but the line

cdef Recording at_record
