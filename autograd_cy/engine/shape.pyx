# Views and copies: reshape, permute, expand, slices, contiguous, clone, conversions, cat and split.
#
# Relies on array, dispatch, record. Views share memory and cost one layout; methods.py puts the functions into Tensor.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport FLOAT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, OVERLAPPING, Layout, layout_contiguous, layout_decref, layout_dense_like, layout_expand, layout_incref,
    layout_permute, layout_strided, layout_view, same_layout, same_shape, shape_tuple, strides_of, strides_tuple,
)
from autograd_cy.engine.dispatch cimport (
    MAX_OPS, as_operand_tensor, contiguous_of, converted, copy_into, copy_of, default_dtype, promote,
)
from autograd_cy.array.storage cimport (
    Storage, UntypedStorage, storage_decref, storage_incref, storage_new, wrap_storage,
)
from autograd_cy.engine.gradients cimport sum_to_layout
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_new, node_set_outputs, remember_line
from autograd_cy.engine.record cimport (
    any_wants_grad, record, refuse_inplace, rewrite_history, set_base, set_edge, set_history, wants_grad,
)
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_alias, tensor_new, tensor_wrap

from autograd_cy.array.errors import ShapeError
from autograd_cy.array.dtypes import DTYPES, DType, as_dtype
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.tensor import OPCODES

cdef int RESHAPE = OPCODES["reshape"], PERMUTE = OPCODES["permute"], EXPAND = OPCODES["expand"], SLICE = OPCODES["slice"]
cdef int UNSLICE = OPCODES["unslice"], CLONE = OPCODES["clone"], CONVERT = OPCODES["convert"], SUM_TO = OPCODES["sum_to"]
cdef int AS_STRIDED = OPCODES["as_strided"], AS_STRIDED_BACK = OPCODES["as_strided_back"]
cdef int FILL_STRIDED = OPCODES["fill_strided"], COPY = OPCODES["copy"]
cdef int CONCATENATE = OPCODES["concatenate"], PIECES = OPCODES["pieces"]


cdef object own(PyObject* o):
    """The object of a new reference."""
    result = <object> o
    Py_DECREF(result)
    return result


# ---- arguments

cdef int axis_of(object dim, int ndim, str name) except -1:
    """A dimension number, negative ones counted from the end; a 0-d tensor takes 0 and -1."""
    cdef Py_ssize_t axis
    if type(dim) is not int:
        try:
            dim = dim.__index__()
        except AttributeError:
            raise TypeError(f"{name}: a dim must be an integer, got {type(dim).__name__}") from None
    axis = dim
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise IndexError(f"{name}: dim {dim} is out of range for a tensor of {ndim} dimensions")
    return <int> (axis + max(ndim, 1) if axis < 0 else axis)


cdef int read_shape(object shape, Py_ssize_t* sizes, str name) except -1:
    """Fill `sizes` from a sequence of integers; the number of dimensions is returned."""
    cdef int n = 0
    if len(shape) > MAX_NDIM:
        raise ShapeError(f"{name}: a tensor has at most {MAX_NDIM} dimensions, got {len(shape)}")
    for size in shape:
        if type(size) is not int:
            try:
                size = size.__index__()
            except (AttributeError, TypeError):
                raise TypeError(f"{name}: sizes must be integers, got {size!r}") from None
        sizes[n] = size
        n += 1
    return n


cdef object sizes_from(tuple args):
    """Sizes given as f(2, 3) or f((2, 3))."""
    if len(args) == 1 and not isinstance(args[0], int) and hasattr(args[0], "__len__") and not isinstance(args[0], Tensor):
        return args[0]
    return args


cdef Tensor need_tensor(object x, str name):
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    return x


# ---- views

cdef object view_of(Tensor x, Layout* layout, char* data, int opcode, object attrs):
    cdef PyObject* out = tensor_alias(x, layout, data)
    cdef PyObject* node
    result = own(out)
    set_base(out, x)
    if wants_grad(x) and grad_enabled():
        node = node_new(opcode, 1, 0)
        set_edge(&(<Node> node).edges[0], x)
        if attrs is not None:
            Py_INCREF(attrs)
            (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        set_history(out, node, 0)
    return result


cdef object reshape_to(Tensor x, int ndim, const Py_ssize_t* shape):
    """A view where the layout allows it, else a view of a contiguous copy. The number of elements is right."""
    cdef Layout* layout = layout_view(x.layout, ndim, shape)
    if layout == NULL:
        x = contiguous(x)
        layout = layout_view(x.layout, ndim, shape)
    return view_of(x, layout, x.data, RESHAPE, (tuple([shape[i] for i in range(ndim)]),) if wants_grad(x) else None)


cdef int infer_shape(Tensor x, object given, Py_ssize_t* shape, str name) except -1:
    """Sizes for a reshape, with one -1 filled in."""
    cdef int ndim = read_shape(given, shape, name)
    cdef int unknown = -1
    cdef Py_ssize_t known = 1
    cdef int i
    for i in range(ndim):
        if shape[i] == -1:
            if unknown >= 0:
                raise ShapeError(f"{name}: only one size can be inferred (-1), got {tuple(given)}")
            unknown = i
        elif shape[i] < 0:
            raise ShapeError(f"{name}: invalid size {shape[i]} in {tuple(given)}")
        else:
            known *= shape[i]
    if unknown >= 0 and known and x.layout.numel % known == 0:
        shape[unknown] = x.layout.numel // known
        known = x.layout.numel
    elif unknown >= 0:
        if not known and not x.layout.numel:
            raise ShapeError(f"{name}: cannot infer -1 in {tuple(given)} for a tensor of 0 elements")
        known = -1
    if known != x.layout.numel:
        raise ShapeError(f"{name}: shape {tuple(given)} does not fit a tensor of shape {x.shape} ({x.layout.numel} elements)")
    return ndim


def reshape(x, *shape):
    """The same elements in another shape: a view where possible, else a copy. One size may be -1.

    Raises ValueError where the number of elements differs.
    """
    cdef Tensor t = need_tensor(x, "reshape")
    cdef Py_ssize_t sizes[MAX_NDIM]
    return reshape_to(t, infer_shape(t, sizes_from(shape), sizes, "reshape"), sizes)


def view(x, *shape):
    """As reshape, but never a copy: ValueError where the layout does not allow a view."""
    cdef Tensor t = need_tensor(x, "view")
    cdef Py_ssize_t sizes[MAX_NDIM]
    if len(shape) == 1 and isinstance(shape[0], DType):
        raise TypeError("view: reinterpreting memory as another dtype is not supported; use to(dtype)")
    cdef int ndim = infer_shape(t, sizes_from(shape), sizes, "view")
    cdef Layout* layout = layout_view(t.layout, ndim, sizes)
    if layout == NULL:
        raise ShapeError(f"view: shape {tuple(sizes_from(shape))} needs a copy of the tensor of shape {t.shape} and strides "
                         f"{t.stride()}; use reshape()")
    return view_of(t, layout, t.data, RESHAPE, (shape_tuple(layout),))


def permute(x, *dims):
    """The axes in another order: axis i of the result is axis dims[i] of x. A view."""
    cdef Tensor t = need_tensor(x, "permute")
    cdef int order[MAX_NDIM]
    cdef object given = sizes_from(dims)
    cdef int i, j
    if len(given) != t.layout.ndim:
        raise ShapeError(f"permute: {len(given)} dims for a tensor of {t.layout.ndim} dimensions")
    for i in range(t.layout.ndim):
        order[i] = axis_of(given[i], t.layout.ndim, "permute")
        for j in range(i):
            if order[j] == order[i]:
                raise ShapeError(f"permute: dim {given[i]} occurs twice in {tuple(given)}")
    return view_of(t, layout_permute(t.layout, order), t.data, PERMUTE, (tuple([order[i] for i in range(t.layout.ndim)]),))


cdef object transposed(Tensor x, int a, int b):
    """Axes a and b exchanged."""
    cdef int order[MAX_NDIM]
    cdef int i
    if x.layout.ndim < 2:
        return view_of(x, share(x), x.data, PERMUTE, (tuple(range(x.layout.ndim)),))
    for i in range(x.layout.ndim):
        order[i] = i
    order[a], order[b] = b, a
    return view_of(x, layout_permute(x.layout, order), x.data, PERMUTE,
                   (tuple([order[i] for i in range(x.layout.ndim)]),) if x.needs_grad else None)


cdef Layout* share(Tensor x) noexcept:
    layout_incref(x.layout)
    return x.layout


def transpose(x, dim0, dim1):
    """Dimensions dim0 and dim1 exchanged. A view."""
    cdef Tensor t = need_tensor(x, "transpose")
    return transposed(t, axis_of(dim0, t.layout.ndim, "transpose"), axis_of(dim1, t.layout.ndim, "transpose"))


def t(x):
    """The transpose of a matrix (a vector or scalar is returned as it is). A view."""
    cdef Tensor a = need_tensor(x, "t")
    if a.layout.ndim > 2:
        raise ShapeError(f"t: expected at most 2 dimensions, got shape {a.shape}; use transpose() or mT")
    return transposed(a, 0, 1)


def swap_axes(x):
    """The last two dimensions exchanged (`mT`). A view."""
    cdef Tensor a = need_tensor(x, "mT")
    if a.layout.ndim < 2:
        raise ShapeError(f"mT: expected at least 2 dimensions, got shape {a.shape}")
    return transposed(a, a.layout.ndim - 2, a.layout.ndim - 1)


def movedim(x, source, destination):
    """Dimensions `source` moved to positions `destination`; the others keep their order. A view."""
    cdef Tensor a = need_tensor(x, "movedim")
    cdef int ndim = a.layout.ndim
    sources = [axis_of(d, ndim, "movedim") for d in ((source,) if isinstance(source, int) else source)]
    places = [axis_of(d, ndim, "movedim") for d in ((destination,) if isinstance(destination, int) else destination)]
    if len(sources) != len(places) or len(set(sources)) != len(sources) or len(set(places)) != len(places):
        raise ShapeError(f"movedim: source {source} and destination {destination} must name as many different dims")
    if ndim == 0:
        return permute(a, ())
    order = [None] * ndim
    for s, p in zip(sources, places):
        order[p] = s
    rest = iter([i for i in range(ndim) if i not in sources])
    return permute(a, tuple([next(rest) if i is None else i for i in order]))


def flatten(x, start_dim=0, end_dim=-1):
    """Dimensions start_dim to end_dim joined into one. A view where possible."""
    cdef Tensor a = need_tensor(x, "flatten")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int first = axis_of(start_dim, a.layout.ndim, "flatten")
    cdef int last = axis_of(end_dim, a.layout.ndim, "flatten")
    cdef int i, n = 0
    if a.layout.ndim == 0:
        shape[0] = 1
        return reshape_to(a, 1, shape)
    if first > last:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    for i in range(a.layout.ndim):
        if first < i <= last:
            shape[n - 1] *= a.layout.dims[i]
        else:
            shape[n] = a.layout.dims[i]
            n += 1
    return reshape_to(a, n, shape)


def squeeze(x, dim=None):
    """Without the dimensions of size 1 (all of them, or those of `dim` that have size 1). A view."""
    cdef Tensor a = need_tensor(x, "squeeze")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i, n = 0
    chosen = None if dim is None else {axis_of(d, a.layout.ndim, "squeeze") for d in ((dim,) if isinstance(dim, int) else dim)}
    for i in range(a.layout.ndim):
        if a.layout.dims[i] != 1 or (chosen is not None and i not in chosen):
            shape[n], strides[n] = a.layout.dims[i], strides_of(a.layout)[i]
            n += 1
    cdef Layout* layout = layout_strided(n, shape, strides)
    return view_of(a, layout, a.data, RESHAPE, (shape_tuple(layout),))


def unsqueeze(x, dim):
    """With a dimension of size 1 inserted at `dim`. A view."""
    cdef Tensor a = need_tensor(x, "unsqueeze")
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = a.layout.ndim
    cdef int at = axis_of(dim, ndim + 1, "unsqueeze")
    cdef int i
    if ndim == MAX_NDIM:
        raise ShapeError(f"unsqueeze: a tensor has at most {MAX_NDIM} dimensions")
    for i in range(ndim):
        shape[i + (i >= at)], strides[i + (i >= at)] = a.layout.dims[i], strides_of(a.layout)[i]
    shape[at] = 1
    strides[at] = shape[at + 1] * strides[at + 1] if at < ndim else 1
    cdef Layout* layout = layout_strided(ndim + 1, shape, strides)
    return view_of(a, layout, a.data, RESHAPE, (shape_tuple(layout),))


def expand(x, *shape):
    """Repeated along dimensions of size 1, without copying (stride 0); -1 keeps a size.

    Raises ValueError where a size differs and is not 1.
    """
    cdef Tensor a = need_tensor(x, "expand")
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef object given = sizes_from(shape)
    cdef int ndim = read_shape(given, sizes, "expand")
    cdef int i
    for i in range(ndim):
        if sizes[i] == -1 and i >= ndim - a.layout.ndim:
            sizes[i] = a.layout.dims[i - ndim + a.layout.ndim]
    cdef Layout* layout = layout_expand(a.layout, ndim, sizes)
    if layout == NULL:
        raise ShapeError(f"expand: a tensor of shape {a.shape} does not expand to {tuple(given)}")
    return view_of(a, layout, a.data, EXPAND, (shape_tuple(layout),))


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


# ---- slices: per axis (start, length, step), or (None, None, None) for all of it

cdef Layout* slice_layout(Tensor x, tuple index, Py_ssize_t* offset) except NULL:
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i
    offset[0] = 0
    for i in range(x.layout.ndim):
        shape[i], strides[i] = x.layout.dims[i], strides_of(x.layout)[i]
        if i < len(index) and index[i][0] is not None:
            start, length, step = index[i]
            if length:
                offset[0] += <Py_ssize_t> start * strides[i]
            shape[i] = length
            strides[i] *= <Py_ssize_t> step
    return layout_strided(x.layout.ndim, shape, strides)


cdef object sliced(Tensor x, tuple index, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset):
    """A recorded slice whose layout is known."""
    cdef Layout* layout = layout_strided(ndim, shape, strides)
    return view_of(x, layout, x.data + offset * itemsize_of(x.dtype_), SLICE, (index, shape_tuple(layout)) if wants_grad(x) else None)


def slice_axes(Tensor x, tuple index, shape=None):
    """x[start : start + length * step : step] along every axis, in `shape` (None: as it comes). A view."""
    cdef Py_ssize_t offset
    cdef Layout* layout = slice_layout(x, index, &offset)
    cdef Layout* shaped
    cdef Py_ssize_t sizes[MAX_NDIM]
    if shape is not None:
        shaped = layout_view(layout, read_shape(shape, sizes, "slice"), sizes)
        layout_decref(layout)
        layout = shaped
    return view_of(x, layout, x.data + offset * itemsize_of(x.dtype_), SLICE, (index, shape_tuple(layout)))


def unslice(Tensor x, shape, tuple index):
    """x placed at a slice of zeros: the gradient of slice_axes."""
    cdef Tensor out = FUNCTIONS["zeros"](shape, x.dtype_)
    cdef Py_ssize_t offset
    cdef PyObject* inputs[1]
    cdef Layout* layout = slice_layout(out, index, &offset)
    cdef Layout* seen = layout_view(x.layout, layout.ndim, layout.dims)
    copy_into(own(tensor_alias(out, layout, out.data + offset * itemsize_of(x.dtype_))), own(tensor_alias(x, seen, x.data)))
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (shape, index)
        record(UNSLICE, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


# ---- windows on memory: how a view of a base that was changed in place is differentiated

cdef Layout* base_layout(tuple base) except NULL:
    """The base's layout; RuntimeError where one place in memory stands for several elements, as their gradients differ."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(base[0], shape, "as_strided")
    cdef Layout* layout
    read_shape(base[1], strides, "as_strided")
    layout = layout_strided(ndim, shape, strides)
    if layout.flags & OVERLAPPING:
        layout_decref(layout)
        raise RuntimeError("a tensor was changed in place through a view although several of its elements share one memory location "
                           "(it was expanded); clone() it before changing it")
    return layout


cdef Tensor laid_out(Tensor x, tuple base):
    """x in memory laid out as the base; x itself where it lies so."""
    cdef Layout* layout = base_layout(base)
    cdef PyObject* out
    if same_layout(layout, x.layout):
        layout_decref(layout)
        return x
    out = new_with_layout(layout, x.dtype_)
    layout_decref(layout)
    copy_into(<Tensor> out, x)
    return own(out)


cdef PyObject* new_with_layout(Layout* layout, int dtype) except NULL:
    """Zeros of any layout, one that has gaps or negative strides too."""
    cdef Py_ssize_t lowest = 0
    cdef Py_ssize_t highest = 0
    cdef Py_ssize_t reach
    cdef Py_ssize_t count[1]
    cdef Layout* flat
    cdef Tensor memory
    cdef int i
    for i in range(layout.ndim):
        reach = (layout.dims[i] - 1) * strides_of(layout)[i]
        if reach < 0:
            lowest += reach
        else:
            highest += reach
    memory = FUNCTIONS["zeros"]((highest - lowest + 1 if layout.numel else 0,), dtype)
    layout_incref(layout)
    return tensor_alias(memory, layout, memory.data - lowest * itemsize_of(dtype))


cdef object window(Tensor x, tuple view):
    """The tensor on x's memory with the view's shape, strides and offset; no history."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int ndim = read_shape(view[0], shape, "as_strided")
    cdef Py_ssize_t offset = view[2]
    read_shape(view[1], strides, "as_strided")
    return own(tensor_alias(x, layout_strided(ndim, shape, strides), x.data + offset * itemsize_of(x.dtype_)))


cdef object recorded_window(int opcode, object out, Tensor x, tuple base, tuple view):
    cdef PyObject* inputs[1]
    if any_wants_grad(1, fill_one(inputs, x)):
        attrs = (base, view)
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def as_strided(Tensor x, tuple base, tuple view):
    """A copy of the window `view` on x laid out as `base`."""
    cdef Tensor seen = window(laid_out(x, base), view)
    cdef Layout* layout = layout_dense_like(seen.layout)
    out = own(copy_of(seen, layout))
    layout_decref(layout)
    return recorded_window(AS_STRIDED, out, x, base, view)


def as_strided_back(Tensor x, tuple base, tuple view):
    """x summed into zeros at the window: the gradient of as_strided."""
    cdef Layout* layout = base_layout(base)
    cdef Tensor out
    cdef Tensor seen
    cdef Tensor g = x
    out = own(new_with_layout(layout, x.dtype_))
    layout_decref(layout)
    squashed = tuple([1 if stride == 0 else size for size, stride in zip(view[0], view[1])])
    seen = window(out, (squashed, view[1], view[2]))
    if squashed != tuple(view[0]):
        g = sum_to(x.detach(), squashed)
    if seen.layout.flags & OVERLAPPING:
        raise RuntimeError("the gradient of a window whose elements overlap in memory is not supported")
    copy_into(seen, g)
    return recorded_window(AS_STRIDED_BACK, out, x, base, view)


def fill_strided(Tensor x, tuple base, tuple view):
    """x with zeros at the window."""
    cdef Tensor inside = laid_out(x, base)
    cdef Tensor out = inside
    cdef Layout* layout
    if inside is x:
        layout = x.layout
        out = own(new_with_layout(layout, x.dtype_))
        copy_into(out, x)
    copy_into(window(out, view), FUNCTIONS["zeros"]((), x.dtype_))
    return recorded_window(FILL_STRIDED, out, x, base, view)


# ---- copies and conversions

cdef object recorded_copy(int opcode, object out, Tensor x, object attrs):
    cdef PyObject* inputs[1]
    if any_wants_grad(1, fill_one(inputs, x)):
        record(opcode, <PyObject*> out, 1, inputs, NULL if attrs is None else <PyObject*> attrs, NULL)
    return out


cdef object contiguous(Tensor x):
    if x.layout.flags & CONTIGUOUS:
        return x
    return recorded_copy(CLONE, own(contiguous_of(x)), x, None)


def contiguous_tensor(Tensor x):
    """The tensor itself where it is contiguous (row-major without gaps), else a contiguous copy."""
    return contiguous(x)


def clone(x):
    """A copy in memory of its own; differentiable."""
    cdef Tensor a = need_tensor(x, "clone")
    cdef Layout* layout = layout_dense_like(a.layout)
    out = own(copy_of(a, layout))
    layout_decref(layout)
    return recorded_copy(CLONE, out, a, None)


def detach(x):
    """The same memory without history: requires no gradient. A change in place is seen by both."""
    cdef Tensor a = need_tensor(x, "detach")
    layout_incref(a.layout)
    return own(tensor_alias(a, a.layout, a.data))


def convert(Tensor x, dtype):
    """x in another dtype (itself where it has it already)."""
    cdef int code = as_dtype(dtype).code
    if code == x.dtype_:
        return x
    out = own(converted(x, code))
    if code <= 1:
        recorded_copy(CONVERT, out, x, (code,))
    return out


cdef object without_repeats(Tensor a):
    """A view of `a` in which axes of stride 0 have size 1: each place in memory once."""
    cdef list index = []
    cdef int i
    for i in range(a.layout.ndim):
        index.append((0, 1, 1) if strides_of(a.layout)[i] == 0 and a.layout.dims[i] > 1 else (None, None, None))
    return slice_axes(a, tuple(index))


cdef bint fits_once(Tensor v, Tensor places) noexcept:
    """Whether v gives one value to each element of `places`, a tensor without_repeats."""
    cdef int lead = places.layout.ndim - v.layout.ndim
    cdef int i
    for i in range(v.layout.ndim):
        if v.layout.dims[i] != 1 and (i + lead < 0 or v.layout.dims[i] != places.layout.dims[i + lead]):
            return False
    return True


def copy_(x, source, non_blocking=False):
    """Overwrite x with `source` (broadcast to its shape, converted to its dtype)."""
    cdef Tensor a = need_tensor(x, "copy_")
    cdef Tensor v = own(as_operand_tensor(<PyObject*> source, a.dtype_))
    cdef Tensor src = v
    cdef PyObject* node
    cdef Layout* layout
    cdef bint recorded
    if a.layout.flags & OVERLAPPING and a.layout.numel:
        # One value for each place in memory, as in zero_ and fill_, may be written to an expanded tensor.
        places = without_repeats(a)
        if not (<Tensor> places).layout.flags & OVERLAPPING and fits_once(v, places):
            copy_(places, v)
            return x
        raise RuntimeError("copy_: several elements of the tensor share one memory location (it was expanded); clone() it first")
    layout = layout_expand(v.layout, a.layout.ndim, a.layout.dims)
    if layout == NULL:
        raise ShapeError(f"copy_: a source of shape {v.shape} does not broadcast to the tensor's shape {a.shape}")
    layout_decref(layout)
    refuse_inplace(a, "copy_")
    recorded = (wants_grad(v) or wants_grad(a)) and a.dtype_ <= 1 and grad_enabled()
    if v is a:
        return x
    if v.storage == a.storage:
        src = own(copy_like(v))
    copy_into(a, src)
    a.storage.version += 1
    if recorded:
        node = node_new(COPY, 2, 0)
        set_edge(&(<Node> node).edges[1], v)
        remember_line(<Node> node)
        rewrite_history(a, node)
    return x


cdef PyObject* copy_like(Tensor v) except NULL:
    cdef Layout* layout = layout_dense_like(v.layout)
    cdef PyObject* o = copy_of(v, layout)
    layout_decref(layout)
    return o


# ---- joining and cutting

def cat(tensors, dim=0):
    """Tensors joined along `dim`; all other sizes must agree. dtypes are promoted."""
    cdef list parts = list(tensors)
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t step
    cdef Tensor part
    cdef Tensor first
    cdef Tensor out
    cdef Layout* layout
    cdef PyObject* node
    cdef int dtype = -1
    cdef int axis, i
    cdef Py_ssize_t start = 0
    cdef bint recorded = False
    if not parts:
        raise ShapeError("cat: expected at least one tensor")
    for item in parts:
        part = need_tensor(item, "cat")
        dtype = promote(dtype, part.dtype_)
        recorded = recorded or wants_grad(part)
    # PyTorch joins empty 1-d tensors with anything; they add nothing.
    first = next((p for p in parts if (<Tensor> p).layout.ndim != 1 or (<Tensor> p).layout.numel), parts[0])
    if first.layout.ndim == 0:
        raise ShapeError("cat: 0-d tensors can't be joined; use stack()")
    axis = axis_of(dim, first.layout.ndim, "cat")
    for i in range(first.layout.ndim):
        shape[i] = first.layout.dims[i]
    shape[axis] = 0
    sizes = []
    for item in parts:
        part = item
        if part.layout.ndim == 1 and part.layout.numel == 0 and first.layout.ndim != 1:
            sizes.append(0)
            continue
        if part.layout.ndim != first.layout.ndim or any([part.layout.dims[i] != shape[i] for i in range(part.layout.ndim) if i != axis]):
            raise ShapeError(f"cat: shapes {first.shape} and {part.shape} differ in more than dim {axis}")
        shape[axis] += part.layout.dims[axis]
        sizes.append(part.layout.dims[axis])
    layout = layout_contiguous(first.layout.ndim, shape)
    out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    step = strides_of(out.layout)[axis] * itemsize_of(dtype)
    for item, size in zip(parts, sizes):
        part = item
        if size and part.layout.numel:
            shape[axis] = size
            layout = layout_strided(out.layout.ndim, shape, strides_of(out.layout))
            copy_into(own(tensor_alias(out, layout, out.data + start * step)), part)
        start += size
    if recorded and grad_enabled() and dtype <= 1:
        node = node_new(CONCATENATE, <int> len(parts), 0)
        for i in range(<int> len(parts)):
            set_edge(&(<Node> node).edges[i], <Tensor> parts[i])
        attrs = (tuple(sizes), axis)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
        set_history(<PyObject*> out, node, 0)
    return out


def stack(tensors, dim=0):
    """Tensors of one shape joined along a new dimension."""
    cdef list parts = list(tensors)
    if not parts:
        raise ShapeError("stack: expected at least one tensor")
    for item in parts:
        if need_tensor(item, "stack").shape != parts[0].shape:
            raise ShapeError(f"stack: shapes {parts[0].shape} and {item.shape} differ")
    return cat([unsqueeze(p, dim) for p in parts], axis_of(dim, parts[0].ndim + 1, "stack"))


def pieces(Tensor x, sizes, int dim):
    """Consecutive views along dim: outputs of one node."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t step = strides_of(x.layout)[dim] * itemsize_of(x.dtype_)
    cdef PyObject* node = NULL
    cdef PyObject* out
    cdef int i, k = 0
    cdef list parts = []
    if wants_grad(x) and grad_enabled() and len(sizes):
        node = node_new(PIECES, 1, 0)
        node_set_outputs(<Node> node, <int> len(sizes))
        set_edge(&(<Node> node).edges[0], x)
        attrs = (tuple(sizes), dim)
        Py_INCREF(attrs)
        (<Node> node).attrs = <PyObject*> attrs
        remember_line(<Node> node)
    for i in range(x.layout.ndim):
        shape[i] = x.layout.dims[i]
    for size in sizes:
        shape[dim] = size
        out = tensor_alias(x, layout_strided(x.layout.ndim, shape, strides_of(x.layout)), x.data + start * step)
        parts.append(own(out))
        set_base(out, x)
        start += size
        if node != NULL:
            Py_INCREF(<object> node)
            set_history(out, node, k)
        k += 1
    if node != NULL:
        Py_DECREF(<object> node)
    return tuple(parts)


def output_shapes(attrs, shape):
    """The shapes of the outputs of `pieces`."""
    sizes, dim = attrs
    return [(*shape[:dim], size, *shape[dim + 1:]) for size in sizes]


def split(x, split_size_or_sections, dim=0):
    """Consecutive views along dim: of one size (the last may be smaller), or of the given sizes."""
    cdef Tensor a = need_tensor(x, "split")
    cdef int axis = axis_of(dim, a.layout.ndim, "split")
    if a.layout.ndim == 0:
        raise ShapeError("split: a 0-d tensor can't be split")
    cdef Py_ssize_t n = a.layout.dims[axis]
    cdef Py_ssize_t size
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and n):
            raise ShapeError(f"split: the size must be positive, got {size}")
        sizes = [min(size, n - start) for start in range(0, n, size)] if n else [0]
    else:
        sizes = [int(s) for s in split_size_or_sections]
        if sum(sizes) != n or min(sizes, default=0) < 0:
            raise ShapeError(f"split: sizes {sizes} do not add up to {n}, the size of dim {axis} of shape {a.shape}")
    return pieces(a, sizes, axis)


def chunk(x, chunks, dim=0):
    """At most `chunks` views of equal size along dim (the last may be smaller)."""
    cdef Tensor a = need_tensor(x, "chunk")
    cdef int axis = axis_of(dim, a.layout.ndim, "chunk")
    if a.layout.ndim == 0:
        raise ShapeError("chunk: a 0-d tensor can't be split")
    if chunks < 1:
        raise ShapeError(f"chunk: expected at least 1 chunk, got {chunks}")
    size = -(-a.layout.dims[axis] // chunks)
    return split(a, [0] * chunks if size == 0 else size, axis)


def unbind(x, dim=0):
    """The slices along dim, without it: a tuple of views."""
    cdef Tensor a = need_tensor(x, "unbind")
    cdef int axis = axis_of(dim, a.layout.ndim, "unbind")
    if a.layout.ndim == 0:
        raise ShapeError("unbind: a 0-d tensor has no dimension to unbind")
    return tuple([squeeze(part, axis) for part in pieces(a, [1] * a.layout.dims[axis], axis)])


def set_data(Tensor self, Tensor value):
    """Let the tensor show the memory of `value`: `x.data = value`. Shape and dtype may change only without a history."""
    cdef PyObject* base
    if value.dtype_ != self.dtype_ and (self.grad_ != NULL or (self.needs_grad and value.dtype_ > FLOAT64)):
        raise RuntimeError(f"data: expected dtype {self.dtype.name}, got {value.dtype.name}")
    if self.node != NULL:
        raise RuntimeError("data: only the memory of leaf tensors can be exchanged")
    storage_incref(value.storage)
    layout_incref(value.layout)
    storage_decref(self.storage)
    layout_decref(self.layout)
    self.storage, self.layout, self.data = value.storage, value.layout, value.data
    self.dtype_ = value.dtype_
    base = self.base
    self.base = NULL                            # it shows other memory now
    Py_XDECREF(base)


def copied_with_storage(Tensor x, dict memo):
    """x on a copy of its storage; tensors that share a storage share the copy too (memo is that of deepcopy)."""
    cdef UntypedStorage whole = wrap_storage(x.storage)
    cdef UntypedStorage copied = memo.get(whole)
    cdef Storage* storage
    if copied is None:
        storage = storage_new(x.storage.nbytes)
        memcpy(storage.data, x.storage.data, x.storage.nbytes)
        copied = memo[whole] = wrap_storage(storage)
        storage_decref(storage)
    storage_incref(copied.storage)
    layout_incref(x.layout)
    return own(tensor_wrap(copied.storage, x.layout, copied.storage.data + (x.data - x.storage.data), x.dtype_))


def drop_history(Tensor x):
    """Make x a leaf that requires no gradient."""
    cdef PyObject* node = x.node
    if x.base != NULL:
        raise RuntimeError("detach_: a view can't be detached in place; use detach()")
    x.node = NULL
    x.needs_grad = 0
    Py_XDECREF(node)
    return x
