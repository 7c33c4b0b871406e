# Views and copies: reshape, permute, expand, slices, contiguous, clone, conversions. The C interface.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.tensor cimport Tensor

# A recorded view of x with the given layout (one reference is taken over) and address; its attributes are integers or a tuple.
cdef object view_of(Tensor x, Layout* layout, char* data, int row, int n, const Py_ssize_t* ints)
# A result computed from x, recorded likewise.
cdef object made_of(Tensor x, object out, int row, int n, const Py_ssize_t* ints)
cdef object view_with(Tensor x, Layout* layout, char* data, int row, tuple attrs)
cdef object reshape_to(Tensor x, int ndim, const Py_ssize_t* shape)
cdef object transposed(Tensor x, int a, int b)
# Python's numbers as C's; RuntimeError where one changes what it is about while it is read (`operators.exchanges` tells).
cdef int unmoved(unsigned long long before, str name) except -1
cdef Py_ssize_t integer(object value, str what, str name) except? -1
cdef bint truth(object value, str name) except -1
cdef int axis_of(object dim, int ndim, str name) except -1
cdef int read_dims(object dims, int ndim, Py_ssize_t* axes, str name) except -1
cdef int read_shape(object shape, Py_ssize_t* sizes, str name) except -1
cdef object sizes_from(tuple args)
# Tensors without gaps, whose elements are not set, or 0.
cdef Tensor made(int ndim, const Py_ssize_t* shape, int dtype)
cdef Tensor zeros_of(int ndim, const Py_ssize_t* shape, int dtype)
# A block of x (sizes, steps, where it begins in elements) into a block of out; a size of 0: nothing.
cdef int copy_block(Tensor out, Py_ssize_t to, Tensor x, Py_ssize_t start, int ndim, const Py_ssize_t* dims, const Py_ssize_t* out_strides,
                    const Py_ssize_t* strides) except -1
cdef object expanded(Tensor x, int ndim, Py_ssize_t* sizes)

# Let f(x, *ints) be called without packing a tuple: `make` gives the result, or None where f is to say what is wrong.
ctypedef object (*Maker)(Tensor x, int n, Py_ssize_t* ints)
cdef int make_quick(object f, Maker make) except -1

cdef object contiguous(Tensor x)
cdef object selected(Tensor x, int axis, Py_ssize_t index, str name)
cdef object narrowed(Tensor x, int axis, Py_ssize_t start, Py_ssize_t length)
cdef int unpack_slice(object given, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1
cdef object viewed_at(Tensor x, PyObject** items, Py_ssize_t n, str name)
cdef Tensor need_tensor(object x, str name)
cdef PyObject** fill_one(PyObject** inputs, Tensor a) noexcept
