# Whether operations are recorded, per thread. The C interface.

cdef bint grad_enabled() noexcept
cdef bint swap_grad_mode(bint mode) noexcept      # sets the mode and returns the one before
