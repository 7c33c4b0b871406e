# What an index names of a tensor: the C interface.

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.array.layout cimport Layout
from autograd_cy.engine.tensor cimport Tensor

cdef struct Choice:
    int ndim                          # axes of the result that come from no array, and of each:
    int axis[MAX_NDIM]                # the axis of the tensor, or -1 where it is inserted
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t step[MAX_NDIM]
    Py_ssize_t first[MAX_NDIM]        # for every axis of the tensor: where it begins
    int arrays                        # how many there are, and of each:
    PyObject* array[MAX_NDIM]         # an int64 tensor, contiguous; a reference of its own
    int at[MAX_NDIM]                  # the axis of the tensor, or -1
    Py_ssize_t size[MAX_NDIM]
    int position                      # how many of the axes above stand before those of the arrays
    bint places                       # the one array is made of a mask: its numbers are in range, and nobody else has it

# Fill a Choice (whose arrays the caller lets go of), and what it makes of strides: the offsets of its arrays' elements, the block of
# other axes.
cdef int understand(Choice* c, Tensor x, object items, str name) except -1
cdef Tensor offsets_of(Choice* c, const Py_ssize_t* strides, str name)
cdef Py_ssize_t block_of(Choice* c, int ndim, const Py_ssize_t* strides, Py_ssize_t* block) noexcept
# The parts of an index, normalised; whether there are arrays among them.
cdef object items_of(object index, str name, bint* arrays)
cdef Tensor true_places(Tensor x, bint flat, str what)
cdef Tensor column(Tensor rows, int i)
# The places of all choices of r from n, or, again, with repetition, in order, as rows.
cdef Tensor choice_places(Py_ssize_t n, Py_ssize_t r, bint again)
cdef str A_MASK


cdef class Plan:
    """What an index chooses of a contiguous tensor; private to the operation, so never changed."""

    cdef Tensor offsets
    cdef Layout* block        # the axes without an array, as they stand at each offset
    cdef Py_ssize_t start     # of all offsets
    cdef int position         # how many axes of the block stand before those of the offsets
    cdef Py_ssize_t unit      # of which all offsets are multiples
    cdef Py_ssize_t count     # of units: as many as there may be


cdef Plan plan_for(Choice* c, const Py_ssize_t* strides, Tensor offsets, Py_ssize_t start, const Py_ssize_t* block)
cdef Plan plan_of_places(Tensor places, Py_ssize_t count)
cdef Tensor chosen(Tensor x, Py_ssize_t start, Tensor offsets, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, int position)
cdef int overwrite(Tensor x, Py_ssize_t start, Tensor offsets, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, int position,
                   Tensor value, bint adds, str name) except -1
cdef PyObject* copy_like(Tensor x) except NULL
