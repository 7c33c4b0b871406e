# Reading arguments of operations: the C interface.

from cpython.object cimport PyObject

from autograd_cy.engine.tensor cimport Tensor

# Python's numbers as C's; RuntimeError where one changes what it is about while it is read (`operators.exchanges` tells).
cdef int unmoved(unsigned long long before, str name) except -1
cdef Py_ssize_t integer(object value, str what, str name) except? -1
cdef bint truth(object value, str name) except -1
cdef int axis_of(object dim, int ndim, str name) except -1
cdef int axis_at(Py_ssize_t axis, int ndim, str name) except -1
cdef int read_dims(object dims, int ndim, Py_ssize_t* axes, str name) except -1
cdef int read_shape(object shape, Py_ssize_t* sizes, str name) except -1
# The same of f(2, 3) or f((2, 3)) of nothing but Python integers, else -1.
cdef int plain_ints(PyObject** args, Py_ssize_t n, Py_ssize_t* ints) noexcept
cdef object sizes_from(tuple args, object named=*)
cpdef Tensor need_tensor(object x, str name)
# `device=` where tensors are made: RuntimeError for any but the CPU.
cpdef int on_cpu(object device) except -1

# Let f(x, *ints) or f(*tensors) be called without packing a tuple: `make` or `join` (one of them is NULL) gives the result, or None where
# f is to say what is wrong. Behind the n arguments of `join` are those of which `names`, a tuple or NULL, has the names.
ctypedef object (*Maker)(Tensor x, int n, Py_ssize_t* ints)
ctypedef object (*Joiner)(PyObject** given, Py_ssize_t n, PyObject* names)
cdef int make_quick(object f, Maker make, Joiner join) except -1
