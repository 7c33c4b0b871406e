# Running one elementwise row. The C interface.
#
# Relies on array, kernels, node, tensor, record. The operators, the generated functions, the backward rules rely on it.

from cpython.object cimport PyObject

from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.operands cimport Operand_

cdef object combined(str name, PyObject* result)
cdef PyObject* unary(int opcode, PyObject* x) except NULL
cdef PyObject* unary_with(int opcode, PyObject* x, const double* attrs) except NULL
cdef PyObject* binary(int opcode, PyObject* a, PyObject* b) except NULL
cdef PyObject* elementwise(int opcode, int n, PyObject** args, const double* attrs, int reduction) except NULL
# What the forms in place share.
cdef Layout* output_layout(int opcode, int n, Operand_* args) except NULL
cdef int convert_operands(int opcode, int n, Operand_* args, PyObject** kept) except -1
cdef void run(int loop, int dtype, int n, Layout* out_layout, char* out, Py_ssize_t out_itemsize, Operand_* args, char* numbers,
              const double* attrs) noexcept
cdef tuple read_operands(int n, PyObject** args, Operand_* given)
