# Walking over all lines of some arrays along one axis: what sorting and scans have in common; and elements read and written one by one.
#
# Relies on table. sorting.pyx, scans.pyx, counting.pyx and distances.pyx rely on it.

from autograd_cy.array.dtype cimport FLOAT32, MAX_NDIM
from autograd_cy.kernels.table cimport Array

cdef enum:
    MAX_WALKED = 4            # arrays

# Where the current line starts in each array, and the step from one of its elements to the next; all in elements.
cdef struct Lines:
    Py_ssize_t count          # lines
    Py_ssize_t n              # elements of a line of the leading array
    int n_arrays
    int ndim                  # of what is walked over
    Py_ssize_t at[MAX_WALKED]
    Py_ssize_t step[MAX_WALKED]
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t position[MAX_NDIM]
    Py_ssize_t strides[MAX_WALKED][MAX_NDIM]


cdef inline void start_lines(Lines* lines, const Array* arrays, int n_arrays, int lead, int axis) noexcept nogil:
    """Lines of arrays[lead] along axis (a 0-d array is one line of one element). The others have the same dims, in which the size along
    axis may differ; or they lack that dim; or they are not there (data NULL)."""
    cdef const Array* x = &arrays[lead]
    cdef int k, i, d
    lines.n_arrays, lines.ndim, lines.count = n_arrays, 0, 1
    lines.n = x.shape[axis] if x.ndim else 1
    for k in range(n_arrays):
        lines.at[k] = 0
        lines.step[k] = arrays[k].strides[axis] if arrays[k].data != NULL and x.ndim and arrays[k].ndim == x.ndim else 0
    for d in range(x.ndim):
        if d == axis:
            continue
        i = lines.ndim
        lines.shape[i] = x.shape[d]
        lines.position[i] = 0
        lines.count *= x.shape[d]
        for k in range(n_arrays):
            lines.strides[k][i] = 0 if arrays[k].data == NULL else arrays[k].strides[d if arrays[k].ndim == x.ndim else i]
        lines.ndim += 1


cdef inline void next_line(Lines* lines) noexcept nogil:
    cdef int k, d = lines.ndim - 1
    while d >= 0:
        lines.position[d] += 1
        if lines.position[d] < lines.shape[d]:
            for k in range(lines.n_arrays):
                lines.at[k] += lines.strides[k][d]
            return
        for k in range(lines.n_arrays):
            lines.at[k] -= lines.strides[k][d] * (lines.shape[d] - 1)
        lines.position[d] = 0
        d -= 1


# Floats of either dtype, where few elements are not worth a loop for each.
cdef inline double number_at(const Array* x, Py_ssize_t i) noexcept nogil:
    return (<float*> x.data)[i] if x.dtype == FLOAT32 else (<double*> x.data)[i]


cdef inline void put_number_at(const Array* x, Py_ssize_t i, double value) noexcept nogil:
    if x.dtype == FLOAT32:
        (<float*> x.data)[i] = <float> value
    else:
        (<double*> x.data)[i] = value
