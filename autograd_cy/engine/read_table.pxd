# What the table says of each row, as C knows it. The C interface.
#
# Relies on node. Whatever runs or differentiates an elementwise row relies on it.

from autograd_cy.engine.node cimport MAX_OPS

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
