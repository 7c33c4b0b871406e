# Hooks of tensors and nodes, saved_tensors_hooks and detect_anomaly. The C interface.
#
# Relies on node and tensor. passes and recursion call these where a node or leaf has any.

from cpython.object cimport PyObject

from autograd_cy.engine.node cimport Node
from autograd_cy.engine.tensor cimport Tensor

cdef struct Switches:
    bint anomaly              # every gradient is looked at
    Py_ssize_t leaf_hooks     # how many hooks leaves ever got

cdef Switches switches

# Hooks of the tensor that is output k of the node, which may replace the gradient at g.
cdef int run_output_hooks(Node node, int k, PyObject** g) except -1
# Before the rule of a node: saved values come back, its prehooks run. Whether they have left a gradient: without one no rule is called.
cdef bint before_rule(Node node, PyObject** grads) except -1
# After it: its hooks run; the gradients of its inputs are looked at; saved values go again.
cdef int after_rule(Node node, PyObject** grads, PyObject** result, bint retain_graph) except -1
cdef int let_collector_see(object held, int depth) except -1
cdef int run_leaf_hooks(Tensor leaf, PyObject** g) except -1
cdef int run_accumulated_hooks(Tensor leaf) except -1
# A gradient that Python code gave: a tensor without history unless the pass is recorded; a new reference.
cdef PyObject* given_gradient(Tensor g) except NULL
