# Scans: what sorting uses of them. The C interface.

from autograd_cy.engine.tensor cimport Tensor

cdef int CUMMAX, CUMMIN        # numbers of rows

cdef Tensor new_like(Tensor x, int dtype)
