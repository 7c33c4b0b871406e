# Running routines (kernels/table) on tensors.
#
# Relies on array, tensor, kernels/table. The operations that are neither loops nor reductions rely on it.

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from libc.string cimport strlen

from autograd_cy.array.layout cimport shape_tuple, strides_of, strides_tuple
from autograd_cy.engine.operands cimport GRAIN
from autograd_cy.engine.tensor cimport Tensor, operators
from autograd_cy.kernels.table cimport MAX_ARRAYS, Array, K, routines

from autograd_cy.array.errors import worded

from autograd_cy.engine.tensor import OPCODES
from autograd_cy.kernels.table import routine_error, routine_number

cdef dict numbers_of_routines = {}        # of those that were called by name


cdef int row_number(str name) except -1:
    return OPCODES[name]


cdef int routine_of(str name) except -1:
    return routine_number(name)


cdef int run_routine(int number, PyObject** tensors, int n_ints=0, const Py_ssize_t* ints=NULL, int n_numbers=0,
                     const double* numbers=NULL) except -1:
    cdef Array arrays[MAX_ARRAYS]
    cdef int n = <int> strlen(routines[number].roles)
    cdef int k
    cdef Py_ssize_t work = 0, status
    cdef Tensor t
    for k in range(n):
        if tensors[k] == NULL:
            arrays[k].data, arrays[k].dtype, arrays[k].ndim = NULL, 0, 0
            continue
        t = <Tensor> tensors[k]
        arrays[k].data, arrays[k].dtype, arrays[k].ndim = t.data, t.dtype_, t.layout.ndim
        arrays[k].shape, arrays[k].strides = &t.layout.dims[0], strides_of(t.layout)
        work += t.layout.numel
    if work < GRAIN:
        status = K.routine(number, arrays, n_ints, ints, n_numbers, numbers)
    else:
        with nogil:
            status = K.routine(number, arrays, n_ints, ints, n_numbers, numbers)
    if status != -1:
        raise_error(number, status, n, tensors, n_ints, ints)
    return 0


cdef int raise_error(int number, Py_ssize_t status, int n, PyObject** tensors, int n_ints, const Py_ssize_t* ints) except -1:
    cdef list arrays = []
    cdef Tensor t
    cdef int k
    for k in range(n):
        if tensors[k] == NULL:
            arrays.append(None)
        else:
            t = <Tensor> tensors[k]
            arrays.append((<uintptr_t> t.data, t.dtype_, shape_tuple(t.layout), strides_tuple(t.layout)))
    raise routine_error(number, status, arrays, tuple([ints[k] for k in range(n_ints)]))


def exchanged():
    """How often a tensor was given other memory or another shape: what changes in between two calls, nobody may rely on."""
    return operators.exchanges


def call_routine(str name, tuple tensors, tuple ints=(), tuple numbers=()):
    """Run a routine by its name on tensors (None: an option not in use) of the dtypes and shapes that it wants; nothing is checked."""
    cdef PyObject* given[MAX_ARRAYS]
    cdef Py_ssize_t integers[64]
    cdef double floats[32]
    cdef unsigned long long before = operators.exchanges
    cdef Py_ssize_t k, n = len(tensors)
    cdef int number
    found = numbers_of_routines.get(name)
    if found is None:
        found = numbers_of_routines[name] = routine_number(name)
    number = found
    if n != <Py_ssize_t> strlen(routines[number].roles) or len(ints) > 64 or len(numbers) > 32:
        raise worded(ValueError, "{}: a routine of {} arrays was given {}", name, strlen(routines[number].roles), n)
    for k in range(n):
        given[k] = NULL if tensors[k] is None else <PyObject*> (<Tensor?> tensors[k])
    for k in range(len(ints)):
        integers[k] = ints[k]
    for k in range(len(numbers)):
        floats[k] = numbers[k]
    if operators.exchanges != before:             # by a value of the user's: what was checked is no longer so
        raise worded(RuntimeError, "{}: an argument changed the memory or the shape of a tensor while it was read", name)
    run_routine(number, given, <int> len(ints), integers, <int> len(numbers), floats)
