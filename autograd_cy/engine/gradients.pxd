# The gradient of one node: its row's rules, as loops or as tensor code. The C interface.
#
# Relies on dispatch, record, kernels and the table. backward calls node_backward for every node.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.tensor cimport Tensor

# Fills result[i] with the gradient (a new reference) for every input i that needs one.
ctypedef int (*Backward)(Node node, PyObject** grads, PyObject** result) except -1

# Faster C forms of the rules of some kernel rows, for first derivatives; filled in by the modules of those operations.
cdef Backward backwards[512]

# spare: nobody wants to see the incoming gradients afterwards, so one without other owners may give its memory to a result.
cdef int node_backward(Node node, PyObject** grads, bint create_graph, PyObject** result, bint spare) except -1
# Whether the shape of a broadcasts to that of wide.
cdef bint broadcasts(Layout* a, Layout* wide) noexcept
# g summed to a shape that broadcasts to its own; g itself (a new reference) where the shapes agree.
cdef PyObject* sum_to_layout(Tensor g, Layout* target) except NULL
# Fits a gradient to an input: summed to its shape, converted to its dtype. Takes over the reference to g.
cdef PyObject* fit(PyObject* g, Node node, int i) except NULL
