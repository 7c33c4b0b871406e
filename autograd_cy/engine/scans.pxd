# Scans: what sorting uses of them. The C interface.

from autograd_cy.engine.tensor cimport Tensor

cdef Tensor new_like(Tensor x, int dtype)
