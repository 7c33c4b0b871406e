# Shape and strides of a tensor, immutable and shared: construction, broadcasting, views.
#
# Relies on dtype.pxd.  The engine makes every tensor's layout here; kernels see only the numbers.

from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport malloc, free

from autograd_cy.array.errors import ShapeError, worded

cdef Layout* free_layouts[MAX_NDIM]
cdef enum:
    LARGEST_BITS = 58         # elements; in bytes it still fits


cdef inline Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    return -stride if stride < 0 else stride            # abs() of a Py_ssize_t makes Python integers


cdef Layout* layout_alloc(int ndim) except NULL:
    cdef Layout* a
    if ndim <= FREE_NDIM and free_layouts[ndim] != NULL:
        a = free_layouts[ndim]
        free_layouts[ndim] = <Layout*> a.refs
    else:
        a = <Layout*> malloc(sizeof(Layout) + 2 * ndim * sizeof(Py_ssize_t))
        if a == NULL:
            raise MemoryError("out of memory")
    a.refs = 1
    a.ndim = ndim
    return a


cdef void layout_free(Layout* a) noexcept:
    if a.ndim <= FREE_NDIM:
        a.refs = <Py_ssize_t> free_layouts[a.ndim]
        free_layouts[a.ndim] = a
    else:
        free(a)


cdef Py_ssize_t checked_numel(int ndim, const Py_ssize_t* shape) except -1:
    """The number of elements; ValueError on a negative size or more elements than memory can address."""
    cdef Py_ssize_t numel = 1
    cdef bint empty = False
    cdef int i
    if ndim > MAX_NDIM:
        raise worded(ShapeError, "a tensor has at most {} dimensions, got {}", MAX_NDIM, ndim)
    for i in range(ndim):
        if shape[i] < 0:
            raise worded(ShapeError, "negative dimension {} in shape {}", shape[i], [shape[j] for j in range(ndim)])
        if shape[i] == 0:
            empty = True
    for i in range(ndim):
        if shape[i] > 1:
            if (numel | shape[i]) >> LARGEST_BITS // 2 and numel > (<Py_ssize_t> 1 << LARGEST_BITS) // shape[i]:
                if empty:
                    return 0
                raise worded(ShapeError, "shape {} has more elements than memory can hold", [shape[j] for j in range(ndim)])
            numel *= shape[i]
    return 0 if empty else numel


cdef int classify(Layout* a) noexcept nogil:
    """CONTIGUOUS, DENSE and OVERLAPPING from shape and strides."""
    cdef Py_ssize_t* strides = strides_of(a)
    cdef Py_ssize_t expected = 1
    cdef Py_ssize_t size, stride
    cdef int order[MAX_NDIM]
    cdef int n = 0, i, j
    cdef int flags = CONTIGUOUS | DENSE
    if a.numel == 0:
        return flags
    for i in range(a.ndim - 1, -1, -1):
        if a.dims[i] != 1:
            if strides[i] != expected:
                flags = 0
                break
            expected *= a.dims[i]
    if flags:
        return flags
    for i in range(a.ndim):                     # the axes longer than 1, by growing size of stride
        if a.dims[i] != 1:
            j = n
            while j > 0 and magnitude(strides[order[j - 1]]) > magnitude(strides[i]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
            n += 1
    flags = DENSE
    expected = 1                                # what a dense layout has here
    cdef Py_ssize_t reach = 1                   # elements that the axes so far span
    for j in range(n):
        size = a.dims[order[j]]
        stride = strides[order[j]]
        if stride != expected:
            flags &= ~DENSE
        if magnitude(stride) < reach:
            return OVERLAPPING                  # perhaps only interleaved; treated as overlapping, which is safe
        expected *= size
        reach += magnitude(stride) * (size - 1)
    return flags


cdef Layout* layout_contiguous(int ndim, const Py_ssize_t* shape) except NULL:
    cdef size_t key = <size_t> ndim
    cdef Py_ssize_t* strides
    cdef Py_ssize_t numel
    cdef Py_ssize_t step = 1
    cdef Layout* a
    cdef int i
    for i in range(ndim):
        key = key * 31 + <size_t> shape[i]
    key = (key ^ (key >> 8)) & (CACHED_LAYOUTS - 1)
    a = cached_layouts[key]
    if a != NULL and a.ndim == ndim:
        for i in range(ndim):
            if a.dims[i] != shape[i]:
                break
        else:
            a.refs += 1
            return a
    numel = checked_numel(ndim, shape)
    a = layout_alloc(ndim)
    a.numel = numel
    a.flags = CONTIGUOUS | DENSE
    strides = strides_of(a)
    for i in range(ndim - 1, -1, -1):
        a.dims[i] = shape[i]
        strides[i] = step
        if shape[i] > 1:
            step *= shape[i]
    if cached_layouts[key] != NULL:
        layout_decref(cached_layouts[key])
    cached_layouts[key] = a
    a.refs += 1
    return a


cdef Layout* layout_scalar() noexcept:
    return layout_contiguous(0, NULL)


cdef Layout* layout_strided(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) except NULL:
    cdef Py_ssize_t numel = 1, reach = 1, sizes = 0, size, stride
    cdef bint same = True, contiguous = True, apart = True, plain = True
    cdef Layout* a
    cdef int i
    for i in range(ndim - 1, -1, -1):
        size, stride = shape[i], strides[i]
        same &= stride == numel
        plain &= size >= 1
        if size > 1:
            contiguous &= stride == numel
            apart &= stride >= reach                      # as far as the axes behind it reach, or farther
            reach = stride * size
            sizes |= size | numel
            numel *= size
    if same:
        return layout_contiguous(ndim, shape)             # the one that other tensors have
    plain &= sizes >> LARGEST_BITS // 2 == 0
    if not plain:
        numel = checked_numel(ndim, shape)
    a = layout_alloc(ndim)
    a.numel = numel
    for i in range(ndim):
        a.dims[i], strides_of(a)[i] = shape[i], strides[i]
    if plain and (contiguous or apart):
        a.flags = CONTIGUOUS | DENSE if contiguous else 0
    else:
        a.flags = classify(a)
    return a


cdef Layout* layout_contiguous_like(Layout* a) except NULL:
    if a.flags & CONTIGUOUS:
        layout_incref(a)
        return a
    return layout_contiguous(a.ndim, a.dims)


cdef Layout* layout_dense_like(Layout* a) except NULL:
    """A dense layout of the same shape that keeps the order of the axes in memory, as elementwise outputs do."""
    if a.flags & DENSE:
        layout_incref(a)
        return a
    return layout_dense_among(a, 1, strides_of(a))


cdef Layout* layout_dense_among(Layout* a, int n, const Py_ssize_t* given) except NULL:
    """A dense layout of a's shape, its axes in the order of n operands' strides (MAX_NDIM apart), of which the first that says something
    counts."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t one, other
    cdef int order[MAX_NDIM]  # axes from the fastest on
    cdef int i, j, k, place
    cdef Py_ssize_t step = 1
    for i in range(a.ndim):
        order[i] = a.ndim - 1 - i
        place = i
        # As in PyTorch's TensorIterator: an axis that is repeated (stride 0) or has size 1 says nothing about the order.
        for j in range(i - 1, -1, -1):
            for k in range(n):
                one, other = magnitude(given[k * MAX_NDIM + order[j]]), magnitude(given[k * MAX_NDIM + order[place]])
                if one != other and one != 0 and other != 0 and a.dims[order[j]] != 1 and a.dims[order[place]] != 1:
                    break
            else:
                continue
            if one < other:
                break
            order[j], order[place] = order[place], order[j]
            place = j
    for j in range(a.ndim):
        i = order[j]
        strides[i] = step
        if a.dims[i] > 1:
            step *= a.dims[i]
    return layout_strided(a.ndim, a.dims, strides)


cdef Layout* layout_broadcast(Layout* a, Layout* b) except? NULL:
    """The contiguous layout of the broadcast shape; NULL without an exception where the shapes do not fit."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int ndim = max(a.ndim, b.ndim)
    cdef int i
    cdef Py_ssize_t m, n
    for i in range(ndim):
        m = a.dims[i - ndim + a.ndim] if i >= ndim - a.ndim else 1
        n = b.dims[i - ndim + b.ndim] if i >= ndim - b.ndim else 1
        if m != n and m != 1 and n != 1:
            return NULL
        shape[i] = n if m == 1 else m
    return layout_contiguous(ndim, shape)


cdef void broadcast_strides(Layout* a, Layout* full, Py_ssize_t* strides) noexcept nogil:
    cdef int lead = full.ndim - a.ndim
    cdef int i
    for i in range(lead):
        strides[i] = 0
    for i in range(a.ndim):
        strides[lead + i] = a.dims[a.ndim + i] if a.dims[i] == full.dims[lead + i] else 0


cdef Layout* layout_expand(Layout* a, int ndim, const Py_ssize_t* shape) except? NULL:
    """`a` seen at a larger shape, repeated axes with stride 0; NULL without an exception where it does not fit."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int lead = ndim - a.ndim
    cdef int i
    if lead < 0:
        return NULL
    if ndim > MAX_NDIM:
        raise worded(ShapeError, "a tensor has at most {} dimensions, got {}", MAX_NDIM, ndim)
    for i in range(ndim):
        if i < lead:
            strides[i] = 0
        elif a.dims[i - lead] == shape[i]:
            strides[i] = a.dims[a.ndim + i - lead]
        elif a.dims[i - lead] == 1:
            strides[i] = 0
        else:
            return NULL
    return layout_strided(ndim, shape, strides)


cdef Layout* layout_permute(Layout* a, const Py_ssize_t* order) except NULL:
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i
    for i in range(a.ndim):
        shape[i] = a.dims[order[i]]
        strides[i] = a.dims[a.ndim + order[i]]
    return layout_strided(a.ndim, shape, strides)


cdef Layout* layout_view(Layout* a, int ndim, const Py_ssize_t* shape) except? NULL:
    """`a` under another shape of as many elements, without copying; NULL without an exception where that needs a copy."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t* given = strides_of(a)
    cdef Py_ssize_t chunk, base, count
    cdef int i, j
    if a.flags & CONTIGUOUS:
        return layout_contiguous(ndim, shape)
    # Walk the old axes from the back, in stretches that are uniform in memory; new axes must divide each stretch.
    j = ndim - 1
    i = a.ndim - 1
    while i >= 0:
        chunk = a.dims[i]
        base = given[i]
        while i > 0 and (a.dims[i - 1] == 1 or chunk == 1 or given[i - 1] == base * chunk):
            if chunk == 1:
                base = given[i - 1]
            chunk *= a.dims[i - 1]
            i -= 1
        count = 1
        while j >= 0 and count < chunk:
            strides[j] = base * count
            count *= shape[j]
            j -= 1
        if count != chunk:
            return NULL
        while j >= 0 and shape[j] == 1:
            strides[j] = base * count
            j -= 1
        i -= 1
    if j >= 0:
        return NULL
    return layout_strided(ndim, shape, strides)


cdef tuple tuple_of(int n, const Py_ssize_t* values):
    cdef tuple result = PyTuple_New(n)
    cdef object value
    cdef int i
    for i in range(n):
        value = values[i]
        Py_INCREF(value)
        PyTuple_SET_ITEM(result, i, value)
    return result


cdef tuple shape_tuple(Layout* a):
    return tuple_of(a.ndim, a.dims)


cdef tuple strides_tuple(Layout* a):
    return tuple_of(a.ndim, strides_of(a))
