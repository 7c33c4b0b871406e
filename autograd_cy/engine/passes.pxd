# The state of a backward pass, and the iterative engine. The C interface.
#
# Relies on node, tensor, pointer_map. backward starts passes; the recursive engine uses their state too.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from autograd_cy.engine.node cimport Node
from autograd_cy.engine.pointer_map cimport PointerMap
from autograd_cy.engine.tensor cimport Tensor

cdef enum:
    MANY_USERS = 255

cdef struct Slot:             # of a node or leaf, where the fast fields of the object itself are taken by another pass
    PyObject** grads
    int n
    bint queued

cdef class Pass:
    cdef bint fast            # the state is kept in the nodes themselves
    cdef bint create_graph
    cdef bint retain_graph
    cdef bint quiet           # hooks of leaves are not called
    cdef bint restricted      # only nodes on a path to the chosen inputs are visited
    cdef PyObject** heap
    cdef Py_ssize_t n_heap, heap_room
    cdef PyObject** leaves
    cdef Py_ssize_t n_leaves, leaf_room
    cdef PointerMap slots     # address -> Slot*, unless fast
    cdef PointerMap needed    # address -> 2: on a path to a chosen input, 3: chosen, but on no path to another, 1: neither
    cdef dict captures        # (address of node or leaf, output number) -> gradient
    cdef object observer      # called with every node, the gradients it got and gave; looked at where captures is a dict only
    cdef list retained        # (tensor, gradient) of inner tensors that keep theirs: put into grad when the pass has succeeded
    cdef PyObject* running    # the node at work, for error messages
    cdef PyObject** result    # the gradients that its rule gave
    cdef int n_result, result_room
    cdef bint at_rule         # the rule of `running` is at work

cdef Pass take_pass(bint retain_graph, bint create_graph)
cdef void give_back(Pass run) noexcept
cdef int contribute(Pass run, PyObject* target, int output_nr, PyObject* g) except -1
cdef int run_iterative(Pass run) except -1
cdef int find_needed(Pass run, list roots, list inputs) except -1
cdef bint is_needed(Pass run, PyObject* target) noexcept
cdef int arrived(Pass run, Node node, int k, PyObject** g) except -1
cdef bint is_passed(Pass run, PyObject* node) noexcept
cdef int add_to(PyObject** place, PyObject* contribution, bint create_graph) except -1
cdef int give_grad(Tensor leaf, PyObject* total) except -1
cdef int accumulate(Tensor leaf, PyObject* total, bint create_graph) except -1
cdef PyObject* private_copy(PyObject* g, Tensor leaf, bint create_graph, bint as_leaf) except NULL
cdef PyObject** pending_of(Pass run, PyObject* leaf) except NULL


cdef inline void enter_rule(Pass run, Node node) noexcept:
    """What the node saved stays until the last of all passes that read it has left: kernels do not hold the interpreter's lock."""
    run.at_rule = True
    if node.users < MANY_USERS:
        node.users += 1


cdef inline void leave_rule(Pass run, Node node) noexcept:
    run.at_rule = False
    if node.users < MANY_USERS:                  # of a node that had so many, nobody knows
        node.users -= 1


cdef inline void drop(PyObject** place) noexcept:
    """Clear a place and release what it held."""
    cdef PyObject* o = place[0]
    place[0] = NULL
    if o != NULL:
        Py_DECREF(<object> o)
