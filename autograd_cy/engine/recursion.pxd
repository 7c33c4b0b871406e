# The recursive engine. The C interface.

from autograd_cy.engine.passes cimport Pass

cdef int run_recursive(Pass run, list roots, list seeds) except -1
