# Views and copies: reshape, permute, expand, slices, contiguous, clone, conversions. The C interface.

from cpython.object cimport PyObject

from autograd_cy.engine.tensor cimport Tensor

cdef int RESHAPE, SELECT, NARROW       # numbers of rows
cdef object reshape_to(Tensor x, int ndim, const Py_ssize_t* shape)
cdef object transposed(Tensor x, int a, int b)
# Tensors without gaps, whose elements are not set, or 0.
cdef Tensor made(int ndim, const Py_ssize_t* shape, int dtype)
cdef Tensor zeros_of(int ndim, const Py_ssize_t* shape, int dtype)
# A block of x (sizes, steps, where it begins in elements) into a block of out; a size of 0: nothing.
cdef int copy_block(Tensor out, Py_ssize_t to, Tensor x, Py_ssize_t start, int ndim, const Py_ssize_t* dims, const Py_ssize_t* out_strides,
                    const Py_ssize_t* strides) except -1
cdef object expanded(Tensor x, int ndim, Py_ssize_t* sizes)

cdef object contiguous(Tensor x)
cdef Tensor copied_as_clone(Tensor x)
cdef object selected(Tensor x, int axis, Py_ssize_t index, str name)
cdef object narrowed(Tensor x, int axis, Py_ssize_t start, Py_ssize_t length)
cdef PyObject** fill_one(PyObject** inputs, Tensor a) noexcept
