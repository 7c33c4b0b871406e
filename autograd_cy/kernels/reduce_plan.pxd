# The plan of a reduction: which dims are kept and which reduced, in which order, and the way that suits them.
#
# Relies on array/dtype and on the kinds of table.pxd.  reduce_fold.pxd, reduce_arg.pxd and reduce.pyx rely on it.
#
# Dims of size 1 are dropped, the others sorted by stride (the smallest innermost) and coalesced; negative strides are turned
# round.  The reduced dims of argmax keep their order and direction: positions count in row-major order.

from autograd_cy.array.dtype cimport INT64, MAX_NDIM, itemsize_of
from autograd_cy.kernels.fold cimport FOLD_BLOCK
from autograd_cy.kernels.table cimport (REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_MIN, REDUCE_PROD,
                                        REDUCE_SUM)

cdef enum:
    MOST_ROWS = 1024
    FEW = 32                  # folds of at most so many elements go across rows, even when rows are contiguous

cdef struct Plan:
    int kind
    int dtype
    int nk                    # kept dims, outermost first
    int nr                    # reduced dims
    bint direct               # the elements are stored in the accumulator's own type
    bint rows                 # the innermost dim is reduced
    Py_ssize_t itemsize
    Py_ssize_t count          # reduced elements per output
    double param
    Py_ssize_t kshape[MAX_NDIM]
    Py_ssize_t kx[MAX_NDIM]
    Py_ssize_t kout[MAX_NDIM]
    Py_ssize_t rshape[MAX_NDIM]
    Py_ssize_t rx[MAX_NDIM]


cdef inline int out_itemsize(int kind, int dtype) noexcept nogil:
    if kind == REDUCE_ANY or kind == REDUCE_ALL:
        return 1
    if kind == REDUCE_ARGMAX or kind == REDUCE_ARGMIN:
        return 8
    if (kind == REDUCE_SUM or kind == REDUCE_PROD) and dtype >= INT64:
        return 8
    return <int> itemsize_of(dtype)


cdef inline bint each_row(const Plan* p) noexcept nogil:
    """Is every output the plain fold of one contiguous row?"""
    return (p.kind <= REDUCE_MIN and p.direct and p.nr == 1 and p.rx[0] == 1 and 0 < p.count <= FOLD_BLOCK)


cdef inline bint two_folds(const Plan* p) noexcept nogil:
    """Is every output the plain fold of the folds of not too many contiguous rows (the gradient of a convolution's bias)?"""
    return (p.kind <= REDUCE_MIN and p.direct and p.rows and p.nr == 2 and p.rx[1] == 1 and p.count > 0 and p.rshape[0] <= MOST_ROWS
            and p.rshape[1] <= FOLD_BLOCK)


cdef inline void advance(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t* index,
                         Py_ssize_t* offset) noexcept nogil:
    """The next index of an odometer over ndim dims, and its offset in elements."""
    cdef int d = ndim - 1
    while d >= 0:
        index[d] += 1
        offset[0] += strides[d]
        if index[d] < shape[d]:
            return
        offset[0] -= shape[d] * strides[d]
        index[d] = 0
        d -= 1


cdef inline void advance_pair(int ndim, const Plan* p, Py_ssize_t* index, Py_ssize_t* offset,
                              Py_ssize_t* out_offset) noexcept nogil:
    cdef int d = ndim - 1
    while d >= 0:
        index[d] += 1
        offset[0] += p.kx[d]
        out_offset[0] += p.kout[d]
        if index[d] < p.kshape[d]:
            return
        offset[0] -= p.kshape[d] * p.kx[d]
        out_offset[0] -= p.kshape[d] * p.kout[d]
        index[d] = 0
        d -= 1


cdef inline Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    """The sort key of a stride: repeated elements (stride 0) belong in the outermost loop."""
    if stride == 0:
        return (<Py_ssize_t> 1) << 62
    return stride if stride > 0 else -stride


cdef inline void coalesce(Plan* p) noexcept nogil:
    """Merge neighbours that step as one dim."""
    cdef int d, top = 0
    for d in range(1, p.nk):
        if p.kx[top] == p.kx[d] * p.kshape[d] and p.kout[top] == p.kout[d] * p.kshape[d]:
            p.kshape[top] *= p.kshape[d]
        else:
            top += 1
            p.kshape[top] = p.kshape[d]
        p.kx[top] = p.kx[d]
        p.kout[top] = p.kout[d]
    if p.nk:
        p.nk = top + 1
    top = 0
    for d in range(1, p.nr):
        if p.rx[top] == p.rx[d] * p.rshape[d]:
            p.rshape[top] *= p.rshape[d]
        else:
            top += 1
            p.rshape[top] = p.rshape[d]
        p.rx[top] = p.rx[d]
    if p.nr:
        p.nr = top + 1


cdef inline bint make_plan(Plan* p, int ndim, const Py_ssize_t* shape, const char** x, const Py_ssize_t* x_strides, char** out,
                           const Py_ssize_t* out_strides) noexcept nogil:
    """False when there is no output at all."""
    cdef int d, at
    cdef Py_ssize_t n, sx, so
    cdef bint arg = p.kind == REDUCE_ARGMAX or p.kind == REDUCE_ARGMIN
    p.nk = p.nr = 0
    p.count = 1
    for d in range(ndim):
        n = shape[d]
        if n == 1:
            continue
        sx = x_strides[d]
        so = out_strides[d]
        if so == 0:
            p.count *= n
            if sx < 0 and not arg and n > 0:
                x[0] += (n - 1) * sx * p.itemsize
                sx = -sx
            at = p.nr
            if not arg:
                while at > 0 and magnitude(p.rx[at - 1]) < magnitude(sx):
                    p.rshape[at] = p.rshape[at - 1]
                    p.rx[at] = p.rx[at - 1]
                    at -= 1
            p.rshape[at] = n
            p.rx[at] = sx
            p.nr += 1
        else:
            if n == 0:
                return False
            if sx < 0:
                x[0] += (n - 1) * sx * p.itemsize
                out[0] += (n - 1) * so * out_itemsize(p.kind, p.dtype)
                sx = -sx
                so = -so
            at = p.nk
            while at > 0 and magnitude(p.kx[at - 1]) < magnitude(sx):
                p.kshape[at] = p.kshape[at - 1]
                p.kx[at] = p.kx[at - 1]
                p.kout[at] = p.kout[at - 1]
                at -= 1
            p.kshape[at] = n
            p.kx[at] = sx
            p.kout[at] = so
            p.nk += 1
    coalesce(p)
    p.rows = p.nk == 0 or (p.nr > 0 and magnitude(p.rx[p.nr - 1]) < magnitude(p.kx[p.nk - 1]))
    if p.rows and p.count <= FEW and p.nk and p.kshape[p.nk - 1] >= 8 and not each_row(p):
        p.rows = False        # many folds of a few elements
    return True
