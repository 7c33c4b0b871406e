# State of optimisers. The C interface: a replayed step counts in the same place as an eager one.
#
# Relies on tensor. graph/machine relies on it.

from autograd_cy.engine.tensor cimport Tensor

cdef class State:
    pass

cdef class SGDState(State):
    cdef public Tensor momentum_buffer

cdef class CountedState(State):
    cdef long long steps

cdef class AdamState(CountedState):
    cdef public Tensor exp_avg, exp_avg_sq, max_exp_avg_sq

cdef class RMSpropState(CountedState):
    cdef public Tensor square_avg, momentum_buffer, grad_avg
