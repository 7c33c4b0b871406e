# Small operands whose loop runs over the memory as it lies, and how others are laid out to be such. The C interface.
#
# Relies on read_table (OpInfo), operands, tensor. dispatch, inplace and losses rely on it.

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport BOOL, FLOAT64
from autograd_cy.array.layout cimport DENSE, Layout
from autograd_cy.engine.node cimport SAVED_FLOAT, SAVED_INT
from autograd_cy.engine.operands cimport FEW, GRAIN, Operand_
from autograd_cy.engine.read_table cimport MAX_INPUTS, OpInfo
from autograd_cy.engine.tensor cimport Tensor

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object n, int* overflow) noexcept


cdef struct Dense:            # operands whose loop runs over the memory as it lies
    Layout* full              # the layout that all have, and the result; a reference of its own
    int dtype                 # that the row computes in
    Operand_ given[MAX_INPUTS]
    char* p[MAX_INPUTS + 1]   # p[0] is for the output
    double spread[MAX_INPUTS][FEW]


cdef inline int plain_number(PyObject* o, double* value) noexcept:
    """The kind of a Python float, or of an int that a double holds; -1: something else."""
    cdef int overflow = 0
    cdef long long n
    if PyFloat_CheckExact(<object> o):
        value[0] = PyFloat_AS_DOUBLE(<object> o)
        return SAVED_FLOAT
    if PyLong_CheckExact(<object> o):
        n = PyLong_AsLongLongAndOverflow(<object> o, &overflow)
        if not overflow and -9007199254740992 <= n <= 9007199254740992:
            value[0] = <double> n
            return SAVED_INT
    return -1


cdef inline bint small_dense(OpInfo* info, Tensor x, double number) noexcept:
    """Whether the row computes in x's dtype, and its loop may run over the memory as it lies without ado; beside integers, a number
    above 0 may be a divisor or exponent."""
    return (x.dtype_ <= FLOAT64 or x.dtype_ != BOOL and (not info.careful or number > 0)) and info.direct[x.dtype_] \
        and x.layout.flags & DENSE and x.layout.numel < GRAIN


cdef void fill_place(const char* value, Py_ssize_t size, Py_ssize_t n, char* place) noexcept
cdef bint lay_out(const char* source, Layout* layout, int dtype, Layout* full, char* place) noexcept
cdef bint all_dense(OpInfo* info, int n, PyObject** args, Dense* d) except -1
cdef PyObject* dense_loss(int opcode, Tensor x, Tensor t, int reduction) except NULL
cdef PyObject* reduction_of_loss(Tensor losses, int reduction) except NULL
