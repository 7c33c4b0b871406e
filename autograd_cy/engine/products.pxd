# Products of matrices. The C interface.
#
# Relies on tensor. named_products relies on it.

from autograd_cy.engine.tensor cimport Tensor

# The product of tensors of at least 2 dimensions whose dtypes were checked.
cdef object matmul_recorded(Tensor a, Tensor b)
cdef int check_operands(Tensor a, Tensor b, str name) except -1
