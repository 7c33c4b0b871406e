# Reductions: what other operations along dims use of them. The C interface.

from cpython.object cimport PyObject

from autograd_cy.engine.tensor cimport Tensor

cdef tuple dims_of(object dim, int ndim, str name)
cdef PyObject* reduced(int kind, Tensor x, tuple dims, bint keepdim, double param) except NULL
# A new tensor for a reduction over dims, and its strides in the dims of x (0 on those reduced).
cdef PyObject* result_for(Tensor x, tuple dims, bint keepdim, int dtype, Py_ssize_t* strides) except NULL
cdef Tensor input_of(object x, str name)
cdef Tensor float_input(object x, str name)
cdef object either(object dim, object axis)
cdef bint keep_of(bint keepdim, object keepdims) except -1
cdef object pair(object kind, object first, object second)
