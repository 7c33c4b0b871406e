# Running one elementwise row. The C interface.
#
# Relies on array, kernels, node, tensor, record. The operators, the generated functions, the backward rules rely on it.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.node cimport MAX_OPS
from autograd_cy.engine.tensor cimport Tensor

cdef enum:
    MAX_INPUTS = 3
    MAX_RULE_INPUTS = 5

cdef struct OpInfo:
    int n_inputs
    int n_attrs
    int loop                  # id of the forward loop; -1: not elementwise
    int dloop[MAX_INPUTS]     # id of the derivative loop for each input; -1: none
    unsigned char identity[MAX_INPUTS]               # the derivative is g itself
    unsigned int need[MAX_INPUTS]                    # bits of inputs and output that the derivative needs
    int n_rule_inputs[MAX_INPUTS]
    signed char rule_inputs[MAX_INPUTS][MAX_RULE_INPUTS]   # of the derivative loop: -1 g, else an input, n_inputs: the output
    unsigned char direct[6]   # the dtype is computed in as it is
    unsigned char bool_result
    unsigned char bool_first  # input 0 is a mask
    unsigned char careful     # some integers are refused: zero divisors, negative exponents

cdef OpInfo OPS[MAX_OPS]

cdef object combined(str name, PyObject* result)
cdef PyObject* unary(int opcode, PyObject* x) except NULL
cdef PyObject* unary_with(int opcode, PyObject* x, const double* attrs) except NULL
cdef PyObject* binary(int opcode, PyObject* a, PyObject* b) except NULL
cdef PyObject* elementwise(int opcode, int n, PyObject** args, const double* attrs, int reduction) except NULL
cdef PyObject* inplace(int opcode, PyObject* a, PyObject* b) except NULL
cdef PyObject* inplace_with(int opcode, int n, PyObject** args, const double* attrs) except NULL
cdef PyObject* dense_loss(int opcode, Tensor x, Tensor t, int reduction) except NULL
cdef PyObject* reduction_of_loss(Tensor losses, int reduction) except NULL
