# Whether operations are recorded, per thread. The C interface.

#
# Relies on nothing. Every operation asks grad_enabled().

cdef struct Modes:
    Py_ssize_t off            # how many threads have it off (one that ended so still counts)

cdef Modes modes

cdef bint own_mode() noexcept                     # of this thread
cdef bint swap_grad_mode(bint mode) noexcept      # sets the mode and returns the one before


cdef inline bint grad_enabled() noexcept:
    return modes.off == 0 or own_mode()           # a look at thread-local memory is a call, 4 ns
