# Operands and dtypes: what an operation accepts, promotion, conversion, copies. The C interface.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.tensor cimport Tensor

cdef enum:
    FEW = 64                  # elements that are copied or laid out on the spot; losses that need no tensor before they are reduced
    GRAIN = 16384             # elements from which the GIL is released: about 10 us of work

# An operand: a tensor, or a Python number (tensor is NULL).
cdef struct Operand_:
    PyObject* tensor
    double number
    long long integer
    unsigned char kind        # SAVED_FLOAT, SAVED_INT or SAVED_BOOL for a number

# 0; 1 where the object is nothing that tensors combine with; 2 for an array, of which the caller makes a tensor.
cdef int read_operand(PyObject* o, Operand_* operand) except -1
cdef int common_dtype(int n, Operand_* args, int first) except -2
cdef int category(int dtype) noexcept nogil
# A converted copy, contiguous in the order of x; no history.
cdef PyObject* converted(Tensor x, int dtype) except NULL
cdef PyObject* copy_of(Tensor x, Layout* layout) except NULL
cdef int copy_into(Tensor dst, Tensor src) except -1
# So many elements from strided memory to other, converted.
cdef void copy_elements(Py_ssize_t numel, int ndim, const Py_ssize_t* dims, int dtype, char* to, const Py_ssize_t* steps, int given,
                        const char* source, const Py_ssize_t* source_steps) noexcept
cdef void set_to_zero(Tensor t) noexcept
cdef PyObject* contiguous_of(Tensor x) except NULL
cdef int promote(int a, int b) noexcept nogil
cdef PyObject* number_tensor(double value, int dtype) except NULL
cdef int default_dtype() noexcept
# Any tensor-like: tensor, number, NumPy array or scalar, list. A new reference.
cdef PyObject* as_operand_tensor(PyObject* o, int like_dtype) except NULL
cdef void write_number(Operand_* x, int dtype, char* place) noexcept
cdef bint broadcasts_to(Layout* a, Layout* full) noexcept nogil
cdef str dtype_name(int dtype)
