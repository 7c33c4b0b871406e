# The order in which an elementwise kernel walks its operands: which dims remain, outermost first, and their strides.
#
# Relies on table (Operand) and moves.  elementwise.pyx relies on it; a .pxd of inline functions, so that every
# instruction-set level compiles its own.

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.kernels.moves cimport MAX_OPERANDS, magnitude
from autograd_cy.kernels.table cimport Operand

# The dims that remain, outermost first: no size 1, ordered by the output's strides (made positive), merged. Strides are
# in bytes. All operands of a dim lie side by side, and lanes without an operand are 0, so that the eight of them are
# handled as one or two vectors.
cdef struct Plan:
    int ndim
    int nops
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t strides[MAX_NDIM][MAX_OPERANDS]
    Py_ssize_t itemsize[MAX_OPERANDS]
    char* data[MAX_OPERANDS]


cdef inline bint make_plan(Plan* plan, int nops, int ndim, const Py_ssize_t* shape,
                           const Operand* operands) noexcept nogil:
    """Fill the plan; False when there is nothing to do."""
    cdef int d, e, k, n = 0
    cdef Py_ssize_t size, stride
    cdef bint merge
    if nops > MAX_OPERANDS:                    # never; but the compiler wants to know
        return False
    plan.nops = nops
    for k in range(MAX_OPERANDS):
        plan.data[k] = NULL
        plan.itemsize[k] = 0
    for k in range(nops):
        plan.data[k] = operands[k].data
        plan.itemsize[k] = operands[k].itemsize
    for d in range(ndim):
        size = shape[d]
        if size == 0:
            return False
        if size == 1:
            continue
        # insertion into the dims so far; equal strides keep their order
        stride = operands[0].strides[d] * operands[0].itemsize if operands[0].strides != NULL else 0
        e = n
        while e > 0 and plan.strides[e - 1][0] < magnitude(stride):
            plan.shape[e] = plan.shape[e - 1]
            for k in range(MAX_OPERANDS):
                plan.strides[e][k] = plan.strides[e - 1][k]
            e -= 1
        plan.shape[e] = size
        for k in range(MAX_OPERANDS):
            plan.strides[e][k] = 0
        for k in range(nops):
            if operands[k].strides != NULL:
                plan.strides[e][k] = operands[k].strides[d] * operands[k].itemsize
        if stride < 0:                         # walk the output forwards
            for k in range(nops):
                plan.data[k] += plan.strides[e][k] * (size - 1)
                plan.strides[e][k] = -plan.strides[e][k]
        n += 1
    e = 0                                      # dims 0..e are merged; d is the next
    for d in range(1, n):
        merge = True
        for k in range(nops):                  # one by one: a vector would wait for the single stores above
            if plan.strides[e][k] != plan.strides[d][k] * plan.shape[d]:
                merge = False
                break
        if merge:
            plan.shape[e] *= plan.shape[d]
        else:
            e += 1
            plan.shape[e] = plan.shape[d]
        if e < d:
            for k in range(MAX_OPERANDS):
                plan.strides[e][k] = plan.strides[d][k]
    plan.ndim = e + 1 if n else 0
    return True


cdef inline bint advance(Plan* plan, int ndim, Py_ssize_t* index, char** data) noexcept nogil:
    """Next position over the first ndim dims; False after the last."""
    cdef int d = ndim - 1, k
    while d >= 0:
        index[d] += 1
        if index[d] < plan.shape[d]:
            for k in range(MAX_OPERANDS):
                data[k] += plan.strides[d][k]
            return True
        for k in range(MAX_OPERANDS):
            data[k] -= plan.strides[d][k] * (plan.shape[d] - 1)
        index[d] = 0
        d -= 1
    return False


cdef inline int band_dim(Plan* plan) noexcept nogil:
    """The dim along which an input that does not run along the rows has its smallest stride; -1 if there is none."""
    cdef int k, d, best
    cdef Py_ssize_t least
    for k in range(1, plan.nops):
        least = magnitude(plan.strides[plan.ndim - 1][k])
        if least <= plan.itemsize[k]:
            continue
        best = -1
        for d in range(plan.ndim - 1):
            if plan.strides[d][k] != 0 and magnitude(plan.strides[d][k]) < least and plan.shape[d] >= 4:
                least = magnitude(plan.strides[d][k])
                best = d
        if best >= 0:
            return best
    return -1


cdef inline void move_dim_inward(Plan* plan, int dim) noexcept nogil:
    """Make `dim` the last but one."""
    cdef int d, k
    cdef Py_ssize_t size = plan.shape[dim]
    cdef Py_ssize_t saved[MAX_OPERANDS]
    for k in range(MAX_OPERANDS):
        saved[k] = plan.strides[dim][k]
    for d in range(dim, plan.ndim - 2):
        plan.shape[d] = plan.shape[d + 1]
        for k in range(MAX_OPERANDS):
            plan.strides[d][k] = plan.strides[d + 1][k]
    plan.shape[plan.ndim - 2] = size
    for k in range(MAX_OPERANDS):
        plan.strides[plan.ndim - 2][k] = saved[k]
