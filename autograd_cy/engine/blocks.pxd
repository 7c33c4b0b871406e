# Copies made of blocks of their input. The C interface.
#
# Relies on array, tensor. joins and windows copy blocks with it.

from autograd_cy.engine.tensor cimport Tensor

# A tensor without gaps, whose elements are not set.
cdef Tensor made(int ndim, const Py_ssize_t* shape, int dtype)
# A block of x (sizes, steps, where it begins in elements) into a block of out; a size of 0: nothing.
cdef int copy_block(Tensor out, Py_ssize_t to, Tensor x, Py_ssize_t start, int ndim, const Py_ssize_t* dims, const Py_ssize_t* out_strides,
                    const Py_ssize_t* strides) except -1
