# Elementwise rows in place. The C interface.
#
# Relies on tensor. Operators, the generated functions and choose rely on it.

from cpython.object cimport PyObject

cdef PyObject* inplace(int opcode, PyObject* a, PyObject* b) except NULL
cdef PyObject* inplace_with(int opcode, int n, PyObject** args, const double* attrs) except NULL
