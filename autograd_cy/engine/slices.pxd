# Views by numbers and slices: the C interface.

from autograd_cy.engine.tensor cimport Tensor

# The numbers of a slice.
cdef int unpack_slice(object given, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1
# A view by numbers, slices, None and at most one Ellipsis (a tuple or list of them, or one); None where there is something else.
cdef object viewed_by(Tensor t, object items, str name)
