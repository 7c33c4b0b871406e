# Whether operations are recorded, per thread. The C interface.

#
# Relies on nothing. Every operation asks grad_enabled().

from cpython.object cimport PyObject

cdef struct Modes:
    Py_ssize_t off            # how many threads have it off (one that ended so still counts)
    PyObject* observer        # called with (what, object) where a history may end: explain_grad looks on; else NULL

cdef Modes modes

cdef void notice(str what, object o) noexcept      # tell the observer
cdef bint own_mode() noexcept                     # of this thread
cdef bint swap_grad_mode(bint mode) noexcept      # sets the mode and returns the one before


cdef inline bint grad_enabled() noexcept:
    return modes.off == 0 or own_mode()           # a look at thread-local memory is a call, 4 ns
