# Shape and strides of a tensor, immutable and shared: the C interface.
#
# Relies on dtype.pxd.  Tensors, nodes and saved values hold layouts; operations of equal shape compare one pointer.
# Strides count elements.  All functions need the GIL.

from autograd_cy.array.dtype cimport MAX_NDIM

cdef enum:
    CONTIGUOUS = 1            # row-major without gaps
    DENSE = 2                 # some order of the axes is row-major without gaps: elements fill one block of memory
    OVERLAPPING = 4           # several indices may name one element (a stride of 0, an overlapping window)

cdef struct Layout:
    Py_ssize_t refs
    Py_ssize_t numel
    int ndim
    int flags
    Py_ssize_t dims[1]        # ndim sizes, then ndim strides

cdef extern from *:
    """
    #ifdef __SANITIZE_ADDRESS__   /* make asan: next to nothing is kept, so that a layout that is used too late is found */
    enum { CACHED_LAYOUTS = 1, FREE_NDIM = -1 };
    #else
    enum { CACHED_LAYOUTS = 256, FREE_NDIM = 8 };
    #endif
    """
    enum:
        CACHED_LAYOUTS        # direct-mapped cache of contiguous layouts, so that equal shapes share one pointer
        FREE_NDIM             # layouts of up to so many dimensions come from free lists

cdef Layout* cached_layouts[CACHED_LAYOUTS]

cdef void layout_free(Layout* a) noexcept


cdef inline Py_ssize_t* strides_of(Layout* a) noexcept nogil:
    return a.dims + a.ndim


cdef inline void layout_incref(Layout* a) noexcept:
    a.refs += 1


cdef inline void layout_decref(Layout* a) noexcept:
    a.refs -= 1
    if a.refs == 0:
        layout_free(a)


cdef inline bint same_shape(Layout* a, Layout* b) noexcept nogil:
    cdef int i
    if a == b:
        return True
    if a.ndim != b.ndim or a.numel != b.numel:
        return False
    for i in range(a.ndim):
        if a.dims[i] != b.dims[i]:
            return False
    return True


cdef inline bint same_layout(Layout* a, Layout* b) noexcept nogil:
    """Equal shapes and strides."""
    cdef int i
    if a == b:
        return True
    if not same_shape(a, b):
        return False
    if a.flags & b.flags & CONTIGUOUS:
        return True
    for i in range(a.ndim):
        if a.dims[a.ndim + i] != b.dims[b.ndim + i]:
            return False
    return True


# Each returns a new reference, or NULL with an exception.
cdef Layout* layout_contiguous(int ndim, const Py_ssize_t* shape) except NULL
cdef Layout* layout_strided(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) except NULL
cdef Layout* layout_scalar() noexcept
cdef Layout* layout_dense_like(Layout* a) except NULL
cdef Layout* layout_dense_among(Layout* a, int n, const Py_ssize_t* given) except NULL
cdef Layout* layout_broadcast(Layout* a, Layout* b) except? NULL
cdef Layout* layout_expand(Layout* a, int ndim, const Py_ssize_t* shape) except? NULL
cdef Layout* layout_view(Layout* a, int ndim, const Py_ssize_t* shape) except? NULL
cdef Layout* layout_permute(Layout* a, const Py_ssize_t* order) except NULL
cdef Layout* layout_contiguous_like(Layout* a) except NULL


cdef inline Layout* layout_matrix(Py_ssize_t rows, Py_ssize_t cols) except NULL:
    """layout_contiguous of (rows, cols)."""
    cdef Py_ssize_t shape[2]
    cdef size_t key = (<size_t> 2 * 31 + <size_t> rows) * 31 + <size_t> cols
    cdef Layout* a = cached_layouts[(key ^ (key >> 8)) & (CACHED_LAYOUTS - 1)]
    if a != NULL and a.ndim == 2 and a.dims[0] == rows and a.dims[1] == cols:
        a.refs += 1
        return a
    shape[0], shape[1] = rows, cols
    return layout_contiguous(2, shape)


# Strides of `a` as seen from the shape of `full` (0 where repeated); a must broadcast to full.
cdef void broadcast_strides(Layout* a, Layout* full, Py_ssize_t* strides) noexcept nogil

cdef tuple tuple_of(int n, const Py_ssize_t* values)
cdef tuple shape_tuple(Layout* a)
cdef tuple strides_tuple(Layout* a)
