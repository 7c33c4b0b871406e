# Making tensors. The C interface.

from autograd_cy.engine.tensor cimport Tensor

# What `outside` tells a capture before it calls the function; a NumPy array for such functions.
cdef int tell(object function, list inputs, list outputs) except -1
cpdef object array_of(Tensor t)
cdef Tensor allocate(object shape, int dtype, str name)
cdef object finish(Tensor t, object requires_grad, object device=*)
cdef int code_of(object dtype, int otherwise) except -2
