# Reductions: what other operations along dims use of them. The C interface.

from cpython.object cimport PyObject

from autograd_cy.engine.tensor cimport Tensor

cdef tuple dims_of(object dim, int ndim, str name)
cdef PyObject* reduced(int kind, Tensor x, tuple dims, bint keepdim, double param) except NULL
cdef Tensor input_of(object x, str name)
cdef Tensor float_input(object x, str name)
cdef object either(object dim, object axis)
cdef bint keep_of(bint keepdim, object keepdims) except -1
cdef object pair(object kind, object first, object second)
