# Views and copies: reshape, permute, expand, slices, contiguous, clone, conversions.
#
# Above 500 lines, as views share what records them.
#
# Relies on array, arguments, record. Views share memory and cost one layout; methods.py puts the functions into Tensor.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memset

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, Layout, layout_contiguous, layout_decref, layout_dense_like, layout_expand, layout_incref, layout_permute,
    layout_strided, layout_view, strides_of,
)
from autograd_cy.engine.arguments cimport axis_of, make_quick, need_tensor, read_dims, read_shape, sizes_from
from autograd_cy.engine.gradients cimport backwards, sum_to_layout
from autograd_cy.engine.modes cimport modes, notice
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, converted, copy_elements, copy_of
from autograd_cy.engine.record cimport any_wants_grad, made_of, record, view_of
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.tensor cimport Tensor, tensor_alias, tensor_new

from autograd_cy.array.errors import BoundsError, ShapeError, misfit, worded
from autograd_cy.array.dtypes import DType, as_dtype

cdef int RESHAPE = row_number("reshape"), PERMUTE = row_number("permute"), EXPAND = row_number("expand")
cdef int SELECT = row_number("select"), NARROW = row_number("narrow")
cdef int CLONE = row_number("clone"), CONVERT = row_number("convert"), SUM_TO = row_number("sum_to")


# ---- views

cdef object reshape_to(Tensor x, int ndim, const Py_ssize_t* shape):
    """A view where the layout allows it, else a view of a contiguous copy. The number of elements is right."""
    cdef Layout* layout = layout_view(x.layout, ndim, shape)
    if layout == NULL:
        x = contiguous(x)
        layout = layout_view(x.layout, ndim, shape)
    return view_of(x, layout, x.data, RESHAPE, ndim, shape)


cdef bint fits(Tensor x, int ndim, Py_ssize_t* shape) noexcept:
    """Whether x may have this shape, one of whose sizes may be -1, which is then filled in."""
    cdef int unknown = -1
    cdef Py_ssize_t known = 1
    cdef int i
    for i in range(ndim):
        if shape[i] >= 0:
            known *= shape[i]
        elif shape[i] == -1 and unknown < 0:
            unknown = i
        else:
            return False
    if unknown >= 0:
        if known == 0 or x.layout.numel % known:
            return False
        shape[unknown] = x.layout.numel // known
        return True
    return known == x.layout.numel


cdef int sizes_fitting(Tensor x, object given, Py_ssize_t* shape, str name) except -1:
    """The same of a sequence; the number of dimensions, or ShapeError."""
    cdef int ndim = read_shape(given, shape, name)
    if fits(x, ndim, shape):
        return ndim
    raise misfit(name, tuple(given), x.shape, x.layout.numel)


cdef object reshaped(Tensor x, int ndim, Py_ssize_t* shape):
    return reshape_to(x, ndim, shape) if fits(x, ndim, shape) else None


def reshape(input, *sizes, shape=None):
    """The same elements in another shape: a view where possible, else a copy. One size may be -1.

    Raises ValueError where the number of elements differs.
    """
    cdef Tensor t = need_tensor(input, "reshape")
    cdef Py_ssize_t wanted[MAX_NDIM]
    return reshape_to(t, sizes_fitting(t, sizes_from(sizes, shape), wanted, "reshape"), wanted)


cdef object viewed(Tensor x, int ndim, Py_ssize_t* shape):
    """None where the shape does not fit, or only a copy can have it."""
    cdef Layout* layout
    if not fits(x, ndim, shape):
        return None
    layout = layout_view(x.layout, ndim, shape)
    return view_of(x, layout, x.data, RESHAPE, ndim, shape) if layout != NULL else None


def view(input, *sizes, size=None):
    """As reshape, but never a copy: ValueError where the layout does not allow a view."""
    cdef Tensor t = need_tensor(input, "view")
    cdef Py_ssize_t wanted[MAX_NDIM]
    if len(sizes) == 1 and isinstance(sizes[0], DType):
        raise TypeError("view: reinterpreting memory as another dtype is not supported; use to(dtype)")
    made = viewed(t, sizes_fitting(t, sizes_from(sizes, size), wanted, "view"), wanted)
    if made is None:
        raise worded(ShapeError, "view: shape {} needs a copy of the tensor of shape {.shape} and strides {}; use reshape()",
                                 tuple(sizes_from(sizes, size)), t, t.stride())
    return made


def view_as(self, other):
    """A view in the shape of `other`."""
    cdef Tensor a = need_tensor(self, "view_as"), b = need_tensor(other, "view_as")
    made = viewed(a, b.layout.ndim, b.layout.dims)
    return view(a, b.shape) if made is None else made


def reshape_as(self, other):
    """In the shape of `other`."""
    cdef Tensor a = need_tensor(self, "reshape_as"), b = need_tensor(other, "reshape_as")
    made = reshaped(a, b.layout.ndim, b.layout.dims)
    return reshape(a, b.shape) if made is None else made


def ravel(input):
    """One dimension, row by row: a view where possible."""
    cdef Tensor a = need_tensor(input, "ravel")
    return reshape_to(a, 1, &a.layout.numel)


cdef object permuted(Tensor x, int n, Py_ssize_t* order):
    """None where the order names other than every dimension once."""
    cdef unsigned long long seen = 0
    cdef int i
    if n != x.layout.ndim:
        return None
    for i in range(n):
        if not -n <= order[i] < n:
            return None
        if order[i] < 0:
            order[i] += n
        seen |= <unsigned long long> 1 << order[i]
    if seen != (<unsigned long long> 1 << n) - 1:
        return None
    return view_of(x, layout_permute(x.layout, order), x.data, PERMUTE, n, order)


def permute(input, *axes, dims=None):
    """The axes in another order: axis i of the result is axis dims[i] of input. A view."""
    cdef Tensor t = need_tensor(input, "permute")
    cdef Py_ssize_t order[MAX_NDIM]
    cdef object given = sizes_from(axes, dims)
    if len(given) != t.layout.ndim:
        raise worded(ShapeError, "permute: {} dims for a tensor of {} dimensions", len(given), t.layout.ndim)
    return permuted(t, read_dims(given, t.layout.ndim, order, "permute"), order)


cdef object transposed(Tensor x, int a, int b):
    """Axes a and b exchanged."""
    cdef Py_ssize_t order[MAX_NDIM]
    cdef int i
    for i in range(x.layout.ndim):
        order[i] = i
    if x.layout.ndim > 1:
        order[a], order[b] = b, a
    return permuted(x, x.layout.ndim, order)


def transpose(input, dim0, dim1):
    """Dimensions dim0 and dim1 exchanged. A view."""
    cdef Tensor t = need_tensor(input, "transpose")
    return transposed(t, axis_of(dim0, t.layout.ndim, "transpose"), axis_of(dim1, t.layout.ndim, "transpose"))


def t(input):
    """The transpose of a matrix (a vector or scalar is returned as it is). A view."""
    cdef Tensor a = need_tensor(input, "t")
    if a.layout.ndim > 2:
        raise worded(ShapeError, "t: expected at most 2 dimensions, got shape {.shape}; use transpose() or mT", a)
    return transposed(a, 0, 1)


def swap_axes(x):
    """The last two dimensions exchanged (`mT`). A view."""
    cdef Tensor a = need_tensor(x, "mT")
    if a.layout.ndim < 2:
        raise worded(ShapeError, "mT: expected at least 2 dimensions, got shape {.shape}", a)
    return transposed(a, a.layout.ndim - 2, a.layout.ndim - 1)


def reversed_axes(Tensor x):
    """All dimensions in reverse order (`T`). A view."""
    cdef Py_ssize_t order[MAX_NDIM]
    cdef int i
    for i in range(x.layout.ndim):
        order[i] = x.layout.ndim - 1 - i
    return permuted(x, x.layout.ndim, order)


def adjoint(input):
    """The last two dimensions exchanged (of real numbers, as mT). A view."""
    cdef Tensor a = need_tensor(input, "adjoint")
    if a.layout.ndim < 2:
        raise worded(ShapeError, "adjoint: expected at least 2 dimensions, got shape {.shape}", a)
    return transposed(a, a.layout.ndim - 2, a.layout.ndim - 1)


def matrix_H(Tensor x):
    """The transpose of a matrix (`H`). A view."""
    if x.layout.ndim != 2 and x.layout.ndim != 0:
        raise worded(RuntimeError, "H: expected a matrix, got shape {.shape}; use mH for batches of matrices", x)
    return transposed(x, 0, 1)


def movedim(input, source, destination):
    """Dimensions `source` moved to positions `destination`; the others keep their order. A view."""
    cdef Tensor a = need_tensor(input, "movedim")
    cdef int ndim = a.layout.ndim
    cdef Py_ssize_t moved[MAX_NDIM]
    cdef Py_ssize_t places[MAX_NDIM]
    cdef Py_ssize_t order[MAX_NDIM]
    cdef unsigned long long rest = (<unsigned long long> 1 << ndim) - 1
    cdef int n = read_dims(source, ndim, moved, "movedim")
    cdef int i, k = 0
    if read_dims(destination, ndim, places, "movedim") != n:
        raise worded(ShapeError, "movedim: source {} and destination {} must name as many dims", source, destination)
    for i in range(ndim):
        order[i] = -1
    for i in range(n if ndim else 0):
        order[places[i]] = moved[i]
        rest &= ~(<unsigned long long> 1 << moved[i])
    for i in range(ndim):
        if order[i] < 0:
            while not rest >> k & 1:                  # the next axis that stays
                k += 1
            order[i] = k
            k += 1
    return permuted(a, ndim, order)


def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions start_dim to end_dim joined into one. A view where possible."""
    cdef Tensor a = need_tensor(input, "flatten")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int first = axis_of(start_dim, a.layout.ndim, "flatten")
    cdef int last = axis_of(end_dim, a.layout.ndim, "flatten")
    cdef int i, n = 0
    if a.layout.ndim == 0:
        shape[0] = 1
        return reshape_to(a, 1, shape)
    if first > last:
        raise worded(ShapeError, "flatten: start_dim {} comes after end_dim {}", start_dim, end_dim)
    for i in range(a.layout.ndim):
        if first < i <= last:
            shape[n - 1] *= a.layout.dims[i]
        else:
            shape[n] = a.layout.dims[i]
            n += 1
    return reshape_to(a, n, shape)


def unflatten(input, dim, sizes):
    """Dimension dim divided into several; one size may be -1. A view where possible.

    Raises RuntimeError where the sizes do not multiply to that of the dimension.
    """
    cdef Tensor a = need_tensor(input, "unflatten")
    cdef Py_ssize_t given[MAX_NDIM]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int ndim = a.layout.ndim
    cdef int axis = axis_of(dim, ndim, "unflatten")
    cdef int n = read_shape(sizes, given, "unflatten")
    cdef int i, unknown = -1
    cdef Py_ssize_t known = 1, size = a.layout.dims[axis] if ndim else 1
    if ndim == 0:
        raise IndexError("unflatten: a tensor of 0 dimensions has no dimension to divide")
    if n == 0:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if ndim - 1 + n > MAX_NDIM:
        raise worded(ShapeError, "unflatten: a tensor has at most {} dimensions", MAX_NDIM)
    for i in range(n):
        if given[i] == -1 and unknown < 0:
            unknown = i
        elif given[i] < 0:
            raise worded(RuntimeError, "unflatten: only one size may be -1, and none smaller, got {}", tuple(sizes))
        else:
            known *= given[i]
    if unknown >= 0 and known and size % known == 0:
        given[unknown] = size // known
        known = size
    elif unknown >= 0:
        known = -1
    if known != size:
        raise worded(RuntimeError, "unflatten: sizes {} do not multiply to {}, the size of dim {} of shape {.shape}",
                                   tuple(sizes), size, axis, a)
    for i in range(ndim - 1 + n):
        shape[i] = a.layout.dims[i] if i < axis else given[i - axis] if i < axis + n else a.layout.dims[i - n + 1]
    return reshape_to(a, ndim - 1 + n, shape)


def squeeze(input, dim=None):
    """Without the dimensions of size 1 (all of them, or those of `dim` that have size 1). A view."""
    cdef Tensor a = need_tensor(input, "squeeze")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef unsigned long long chosen = -1
    cdef int i, n = 0
    if dim is not None:
        chosen = 0
        for i in range(read_dims(dim, a.layout.ndim, shape, "squeeze")):
            chosen |= <unsigned long long> 1 << shape[i]
    for i in range(a.layout.ndim):
        if a.layout.dims[i] != 1 or not chosen >> i & 1:
            shape[n], strides[n] = a.layout.dims[i], strides_of(a.layout)[i]
            n += 1
    return view_of(a, layout_strided(n, shape, strides), a.data, RESHAPE, n, shape)


def unsqueeze(input, dim):
    """With a dimension of size 1 inserted at `dim`. A view."""
    cdef Tensor a = need_tensor(input, "unsqueeze")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = a.layout.ndim
    cdef int at = axis_of(dim, ndim + 1, "unsqueeze")
    cdef int i
    if ndim == MAX_NDIM:
        raise worded(ShapeError, "unsqueeze: a tensor has at most {} dimensions", MAX_NDIM)
    for i in range(ndim):
        shape[i + (i >= at)], strides[i + (i >= at)] = a.layout.dims[i], strides_of(a.layout)[i]
    shape[at] = 1
    strides[at] = shape[at + 1] * strides[at + 1] if at < ndim else 1
    return view_of(a, layout_strided(ndim + 1, shape, strides), a.data, RESHAPE, ndim + 1, shape)


cdef object expanded(Tensor x, int ndim, Py_ssize_t* sizes):
    """None where x does not expand to these sizes, of which -1 keeps what is there."""
    cdef int i, lead = ndim - x.layout.ndim
    cdef Layout* layout
    for i in range(max(lead, 0), ndim):
        if sizes[i] == -1:
            sizes[i] = x.layout.dims[i - lead]
    layout = layout_expand(x.layout, ndim, sizes)
    return view_of(x, layout, x.data, EXPAND, ndim, sizes) if layout != NULL else None


cdef object expand_to(object x, object given, str name):
    cdef Tensor a = need_tensor(x, name)
    cdef Py_ssize_t sizes[MAX_NDIM]
    made = expanded(a, read_shape(given, sizes, name), sizes)
    if made is None:
        raise worded(ShapeError, "{}: a tensor of shape {.shape} does not expand to {}", name, a, tuple(given))
    return made


def expand(input, *sizes, size=None):
    """Repeated along dimensions of size 1, without copying (stride 0); -1 keeps a size.

    Raises ValueError where a size differs and is not 1.
    """
    return expand_to(input, sizes_from(sizes, size), "expand")


def expand_as(self, other):
    """Expanded to the shape of `other`."""
    cdef Tensor a = need_tensor(self, "expand_as"), b = need_tensor(other, "expand_as")
    made = expanded(a, b.layout.ndim, b.layout.dims)
    return expand_to(a, b.shape, "expand_as") if made is None else made


def broadcast_to(input, size):
    """Expanded to a shape, without copying."""
    return expand_to(input, size, "broadcast_to")


make_quick(reshape, reshaped, NULL)
make_quick(view, viewed, NULL)
make_quick(permute, permuted, NULL)
make_quick(expand, expanded, NULL)


def sum_to(x, shape):
    """x summed to a shape that broadcasts to its own: the gradient of expand."""
    cdef Tensor a = need_tensor(x, "sum_to")
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* target = layout_contiguous(read_shape(shape, sizes, "sum_to"), sizes)
    cdef PyObject* inputs[1]
    out = own(sum_to_layout(a, target))
    layout_decref(target)
    if out is not a and any_wants_grad(1, fill_one(inputs, a)):
        attrs = (tuple(shape),)
        record(SUM_TO, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


cdef PyObject** fill_one(PyObject** inputs, Tensor a) noexcept:
    inputs[0] = <PyObject*> a
    return inputs


# ---- one slice, or several neighbours, of one dimension

def select(input, dim, Py_ssize_t index):
    """The slice at `index` of dimension `dim`, without that dimension. A view.

    Raises IndexError where dim or index is out of range.
    """
    cdef Tensor x = need_tensor(input, "select")
    if x.layout.ndim == 0:
        raise IndexError("select: a tensor of 0 dimensions has no slices")
    return selected(x, axis_of(dim, x.layout.ndim, "select"), index, "select")


cdef object selected(Tensor x, int axis, Py_ssize_t index, str name):
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t size = x.layout.dims[axis], stride = strides_of(x.layout)[axis]
    cdef Py_ssize_t attrs[2]
    cdef int i
    if not -size <= index < size:
        raise worded(IndexError, "{}: index {} is out of range for dim {} of size {}", name, index, axis, size)
    if index < 0:
        index += size
    for i in range(x.layout.ndim - 1):
        shape[i], strides[i] = x.layout.dims[i + (i >= axis)], strides_of(x.layout)[i + (i >= axis)]
    attrs[0], attrs[1] = axis, index
    return view_of(x, layout_strided(x.layout.ndim - 1, shape, strides), x.data + index * stride * itemsize_of(x.dtype_), SELECT, 2, attrs)


def narrow(input, dim, Py_ssize_t start, Py_ssize_t length):
    """`length` slices of dimension `dim` from `start` (negative: counted from the end). A view.

    Raises IndexError where they leave the dimension.
    """
    cdef Tensor x = need_tensor(input, "narrow")
    cdef int axis = axis_of(dim, x.layout.ndim, "narrow")
    cdef Py_ssize_t first = start, count = length
    if x.layout.ndim == 0:
        raise RuntimeError("narrow: a tensor of 0 dimensions can't be narrowed")
    if first < 0:
        first += x.layout.dims[axis]
    if not 0 <= first <= x.layout.dims[axis] or not 0 <= count <= x.layout.dims[axis] - first:
        raise worded(BoundsError, "narrow: {} from {} on are out of range for dim {} of shape {.shape}", count, start, axis, x)
    return narrowed(x, axis, first, count)


cdef object narrowed(Tensor x, int axis, Py_ssize_t start, Py_ssize_t length):
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t attrs[3]
    cdef int i
    for i in range(x.layout.ndim):
        shape[i] = x.layout.dims[i]
    shape[axis] = length
    start = start if length else 0
    attrs[0], attrs[1], attrs[2] = axis, start, length
    return view_of(x, layout_strided(x.layout.ndim, shape, strides_of(x.layout)),
                   x.data + start * strides_of(x.layout)[axis] * itemsize_of(x.dtype_), NARROW, 3, attrs)


# ---- copies and conversions

cdef Tensor made(int ndim, const Py_ssize_t* shape, int dtype):
    """An uninitialised tensor, contiguous."""
    cdef Layout* layout = layout_contiguous(ndim, shape)
    out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    return out


cdef Tensor zeros_of(int ndim, const Py_ssize_t* shape, int dtype):
    cdef Tensor out = made(ndim, shape, dtype)
    memset(out.data, 0, out.layout.numel * itemsize_of(dtype))
    return out


cdef int copy_block(Tensor out, Py_ssize_t to, Tensor x, Py_ssize_t start, int ndim, const Py_ssize_t* dims, const Py_ssize_t* out_strides,
                    const Py_ssize_t* strides) except -1:
    """A block of x into a block of out, of the given sizes; where they begin, in elements. The dtypes may differ."""
    cdef char* there = out.data + to * itemsize_of(out.dtype_)
    cdef char* here = x.data + start * itemsize_of(x.dtype_)
    cdef Py_ssize_t numel = 1
    cdef int i
    for i in range(ndim):
        if dims[i] <= 0:
            return 0
        numel *= dims[i]
    copy_elements(numel, ndim, dims, out.dtype_, there, out_strides, x.dtype_, here, strides)
    return 0


cdef object contiguous(Tensor x):
    if x.layout.flags & CONTIGUOUS:
        return x
    return made_of(x, own(contiguous_of(x)), CLONE, 0, NULL)


def contiguous_tensor(Tensor x, *, memory_format=None):
    """The tensor itself where it is contiguous (row-major without gaps), else a contiguous copy; a memory_format changes nothing."""
    return contiguous(x)


def clone(input, *, memory_format=None):
    """A copy in memory of its own; differentiable."""
    cdef Tensor a = need_tensor(input, "clone")
    return made_of(a, copied_as_clone(a), CLONE, 0, NULL)


cdef Tensor copied_as_clone(Tensor x):
    """A copy without history; a dense layout stays."""
    cdef Layout* layout = layout_dense_like(x.layout)
    out = own(copy_of(x, layout))
    layout_decref(layout)
    return out


def detach(input):
    """The same memory without history: requires no gradient. A change in place is seen by both."""
    cdef Tensor a = need_tensor(input, "detach")
    if modes.observer != NULL:
        notice("detach", a)
    layout_incref(a.layout)
    return own(tensor_alias(a, a.layout, a.data))


def convert(Tensor x, dtype):
    """x in another dtype (itself where it has it already)."""
    cdef int code = (dtype if type(dtype) is DType else as_dtype(dtype)).code
    cdef Py_ssize_t attr = code
    if code == x.dtype_:
        return x
    out = own(converted(x, code))
    return made_of(x, out, CONVERT, 1, &attr) if code <= 1 else out


# ---- first derivatives, as the rules give them

cdef int viewed_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """reshape and permute: the gradient seen otherwise, on its own memory where it can be."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* full = node.edges[0].layout
    cdef Layout* layout
    cdef const Py_ssize_t* order = <const Py_ssize_t*> node.saved
    cdef Py_ssize_t back[MAX_NDIM]
    cdef int i
    if node.opcode == PERMUTE:
        for i in range(full.ndim):
            back[order[i]] = i
        layout = layout_permute(g.layout, back)
    else:
        layout = layout_view(g.layout, full.ndim, full.dims)
        if layout == NULL:
            g = own(contiguous_of(g))
            layout = layout_view(g.layout, full.ndim, full.dims)
    result[0] = tensor_alias(g, layout, g.data)
    return 0


cdef int expanded_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """expand, clone: the gradient itself, or its sum."""
    result[0] = sum_to_layout(<Tensor> grads[0], node.edges[0].layout)
    return 0


cdef int part_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """select and narrow: zeros, with the gradient at its place."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* full = node.edges[0].layout
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved        # the axis, and where on it
    cdef Tensor out = zeros_of(full.ndim, full.dims, g.dtype_)
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i
    for i in range(g.layout.ndim):
        strides[i] = strides_of(out.layout)[i + (node.opcode == SELECT and i >= ints[0])]
    copy_block(out, ints[1] * strides_of(out.layout)[ints[0]], g, 0, g.layout.ndim, g.layout.dims, strides, strides_of(g.layout))
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[RESHAPE] = backwards[PERMUTE] = viewed_backward
backwards[EXPAND] = backwards[CLONE] = expanded_backward
backwards[SELECT] = backwards[NARROW] = part_backward
