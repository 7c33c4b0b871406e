# Running routines (kernels/table) on tensors. The C interface.

from cpython.object cimport PyObject

# Run a routine on tensors (NULL: an option not in use), one for each of its roles; raises what its error function says.
cdef int run_routine(int number, PyObject** tensors, int n_ints=*, const Py_ssize_t* ints=*, int n_numbers=*,
                     const double* numbers=*) except -1

# The number of a row of the table; of a routine. For the constants at a module's head: a fifth of the code of a look-up there.
cdef int row_number(str name) except -1
cdef int routine_of(str name) except -1
