# Making tensors. The C interface.

from autograd_cy.engine.tensor cimport Tensor

cdef Tensor allocate(object shape, int dtype, str name)
cdef object sizes_of(tuple size)
cdef object finish(Tensor t, object requires_grad)
cdef int code_of(object dtype, int otherwise) except -2
