# The C interface of the machine: an instance and the memory of its buffers.
#
# Relies on array. calls relies on it.

from autograd_cy.array.storage cimport Storage
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.kernels.table cimport Loop, Operand

cdef struct Step:
    int kind
    int n_operands
    Py_ssize_t n              # elements of a loop
    char** p                  # addresses of the operands (NULL: an option not in use)
    Py_ssize_t* ints
    double* numbers
    Operand* operands         # of a strided loop
    Loop loop
    const Loop* variants
    long long* counter        # of an update: the steps so far
    int dtype                 # of a map in a group, and what it is in a chain: see lowering.Step
    int chained, action, other
    bint stored
    Py_ssize_t place          # index of the first address, integer, number, operand (-1: none)
    Py_ssize_t int_place, number_place, operand_place

cdef struct Use:              # where the address of a buffer stands
    int step
    int operand
    Py_ssize_t offset

cdef struct Failure:
    Py_ssize_t step           # -1: none
    Py_ssize_t which          # the element that the check found

cdef class Machine:
    cdef readonly object program, plan
    cdef readonly list buffers            # Buffer of each index
    cdef readonly dict index              # buffer id -> index
    cdef readonly list sources            # the instruction of each step
    cdef readonly list updates            # (step, (group, states, state, parameter))
    cdef readonly list written            # indices of EXTERNAL buffers that a run changes
    cdef readonly Py_ssize_t arena_bytes, scratch_bytes, work
    cdef Step* steps
    cdef Py_ssize_t n_steps, n_all        # steps of the program; with those inside of groups
    cdef Use* all_uses
    cdef Py_ssize_t* first_use            # of each buffer, and of the scratch memory at last
    cdef Py_ssize_t* int_pool
    cdef double* number_pool
    cdef Py_ssize_t n_numbers, n_addresses, n_operands
    cdef dict constant_places
    cdef Storage* constants
    cdef readonly bint needs_interpreter  # Python is called inside
    cdef place_constants(self)
    cdef load(self, list steps)

cdef class Instance:
    cdef readonly Machine machine
    cdef Step* steps
    cdef char** addresses
    cdef double* numbers
    cdef Operand* operands
    cdef Storage** storages               # of each buffer
    cdef char** bases                     # and the address that offsets count from
    cdef Storage* arena
    cdef Storage* scratch
    cdef Failure failure
    cdef object error
    cdef public bint busy
    cdef Py_ssize_t known(self, Py_ssize_t index) except -1
    cdef void set_base(self, Py_ssize_t index, char* base) noexcept
    cdef void take(self, Py_ssize_t index, Storage* storage, char* base) noexcept
    cdef void bind_input(self, Py_ssize_t index, Tensor tensor, Py_ssize_t offset) noexcept
    cdef Py_ssize_t run_times(self, Py_ssize_t times, Py_ssize_t* moved, Py_ssize_t n_moved) noexcept nogil
    cdef void advance(self, Py_ssize_t index, Py_ssize_t nbytes) noexcept nogil
    cdef fail(self)
    cdef Py_ssize_t call(self, Step* step) noexcept
