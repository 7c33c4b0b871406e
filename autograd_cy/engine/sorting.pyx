# Sorting and selecting along a dimension, and binary search.
#
# Relies on array, kernels/sorting, kernels/counting, reduce, scans (new_like), routines, record. methods.py puts the functions
# into Tensor, statistics.py builds on them.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport NAN

from autograd_cy.array.dtype cimport FLOAT64, INT32, INT64, MAX_NDIM
from autograd_cy.array.layout cimport (
    Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_scalar, same_shape,
)
from autograd_cy.engine.arguments cimport axis_of, unmoved
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of
from autograd_cy.engine.record cimport any_wants_grad, record, unpack
from autograd_cy.engine.reduce cimport either, input_of, keep_of, pair
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.scans cimport CUMMAX, CUMMIN, new_like
from autograd_cy.engine.shape cimport reshape_to, transposed
from autograd_cy.engine.tensor cimport Tensor, is_tensor, operators, tensor_alias, tensor_new

from autograd_cy.array.errors import DTypeError, ShapeError, worded
from autograd_cy.engine.creation import as_tensor, full_like
from autograd_cy.engine.reduce import ValuesIndices
from autograd_cy.engine.shape import convert, detach, movedim, reshape, unsqueeze

cdef int SORT = row_number("sort"), TOPK = row_number("topk"), KTHVALUE = row_number("kthvalue"), MEDIAN = row_number("median")
cdef int NANMEDIAN = row_number("nanmedian"), MODE = row_number("mode"), MEDIAN_OF_ALL = row_number("median_of_all")
cdef int QUANTILE = row_number("quantile"), QUANTILE_ROUTINE = routine_of("sorting.quantile")
cdef int MAX = row_number("max"), MIN = row_number("min")
cdef int PLACED = routine_of("sorting.placed"), ALONG = routine_of("sorting.along"), SEARCH = routine_of("counting.search")

cdef enum:
    SHORT = 32                # as in kernels/sorting

cdef enum Task:
    TASK_SORT
    TASK_TOP
    TASK_KTH
    TASK_MEDIAN
    TASK_NANMEDIAN
    TASK_MODE


cdef object resized(Tensor x, int axis, Py_ssize_t size, bint keepdim, int dtype):
    """A new tensor of the shape of x, with another size along axis, or without it."""
    cdef Layout* layout = layout_along(x, axis, size, keepdim)
    cdef object out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    return out


cdef Layout* layout_along(Tensor x, int axis, Py_ssize_t size, bint keepdim) except NULL:
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int d, n = 0
    for d in range(x.layout.ndim):
        if d != axis:
            shape[n] = x.layout.dims[d]
        elif keepdim:
            shape[n] = size
        else:
            continue
        n += 1
    return layout_contiguous(n, shape)


cdef object along(int opcode, Task task, Tensor x, int axis, Py_ssize_t size, bint keepdim, bint descending, Py_ssize_t k, tuple attrs,
                  bint only_indices=False):
    """(values, indices), recorded with attrs; `size` elements along axis."""
    cdef Tensor indices = resized(x, axis, size, keepdim, INT64)
    cdef PyObject* tensors[3]
    cdef PyObject* inputs[2]
    cdef Py_ssize_t ints[4]
    ints[0], ints[1], ints[2], ints[3] = axis, task, descending, k
    tensors[0], tensors[1], tensors[2] = NULL, <PyObject*> indices, <PyObject*> x
    if only_indices:
        run_routine(ALONG, tensors, 4, ints)
        return indices
    values = resized(x, axis, size, keepdim, x.dtype_)
    tensors[0] = <PyObject*> values
    run_routine(ALONG, tensors, 4, ints)
    inputs[0], inputs[1] = <PyObject*> x, <PyObject*> indices
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        record(opcode, <PyObject*> values, 2, inputs, <PyObject*> attrs, NULL)
    return pair(ValuesIndices, values, indices)


cdef Py_ssize_t size_along(Tensor x, int axis) noexcept:
    return x.layout.dims[axis] if x.layout.ndim else 1


cdef int filled_axis(Tensor x, object dim, str name) except -1:
    """The axis, which must not be empty."""
    cdef int axis = axis_of(dim, x.layout.ndim, name)
    if size_along(x, axis) == 0:
        raise worded(ShapeError, "{0}: dimension {1} of shape {2.shape} is empty, and {0} of nothing is not defined", name, axis, x)
    return axis


def sort(input, dim=-1, bint descending=False, stable=False, *, axis=None):
    """(values, indices): the elements along `dim` in order. NaN counts as largest; equal elements keep their order in any case.

    The gradient goes to the indices.
    """
    cdef Tensor x = input_of(input, "sort")
    cdef int where = axis_of(dim if axis is None else axis, x.layout.ndim, "sort")
    return along(SORT, TASK_SORT, x, where, size_along(x, where), True, bool(descending), 0, (where, bool(descending)))


def argsort(input, dim=-1, bint descending=False, stable=False, *, axis=None):
    """The indices (int64) that sort along `dim`: of NaN and equal elements as `sort` has it."""
    cdef Tensor x = input_of(input, "argsort")
    cdef int where = axis_of(dim if axis is None else axis, x.layout.ndim, "argsort")
    return along(SORT, TASK_SORT, x, where, size_along(x, where), True, bool(descending), 0, None, True)


def msort(input):
    """The elements in order along the first dimension: sort(input, 0).values."""
    cdef Tensor x = input_of(input, "msort")
    return along(SORT, TASK_SORT, x, axis_of(0, x.layout.ndim, "msort"), size_along(x, 0), True, False, 0, (0, False))[0]


def sorted_values(Tensor x, order):
    """The elements of a 1-d tensor in order; where they were, into `order`, or None. No history."""
    cdef Tensor values = new_like(x, x.dtype_)
    cdef PyObject* tensors[3]
    cdef Py_ssize_t ints[4]
    tensors[0], tensors[1], tensors[2] = <PyObject*> values, NULL if order is None else <PyObject*> order, <PyObject*> x
    ints[0], ints[1], ints[2], ints[3] = 0, TASK_SORT, 0, 0
    run_routine(ALONG, tensors, 4, ints)
    return values


def topk(input, Py_ssize_t k, dim=-1, bint largest=True, bint sorted=True, *, axis=None):
    """(values, indices): the k largest (or smallest) elements along `dim`, in order; of equals the first. NaN counts as largest.

    The gradient goes to the indices. Raises ValueError unless 0 <= k <= size.
    """
    cdef Tensor x = input_of(input, "topk")
    cdef int where = axis_of(dim if axis is None else axis, x.layout.ndim, "topk")
    cdef Py_ssize_t n = k
    if not 0 <= n <= size_along(x, where):
        raise worded(ShapeError, "topk: k = {} is out of range for dim {} of shape {.shape}", k, where, x)
    if x.layout.ndim == 0:
        n = 1                 # PyTorch's topk(0) of a single number
    return along(TOPK, TASK_TOP, x, where, n, True, bool(largest), n, (n, where, bool(largest), bool(sorted)))


def kthvalue(input, Py_ssize_t k, dim=-1, bint keepdim=False, *, axis=None, keepdims=None):
    """(values, indices): the k-th smallest element along `dim`, counted from 1. NaN counts as largest.

    The gradient goes to the index. Raises ValueError unless 1 <= k <= size.
    """
    cdef Tensor x = input_of(input, "kthvalue")
    cdef int where = axis_of(dim if axis is None else axis, x.layout.ndim, "kthvalue")
    cdef bint keep = keep_of(keepdim, keepdims)
    cdef Py_ssize_t n = k
    if not 1 <= n <= size_along(x, where):
        raise worded(ShapeError, "kthvalue: k = {} is out of range for dim {} of shape {.shape}", k, where, x)
    keep = keep or x.layout.ndim == 0
    return along(KTHVALUE, TASK_KTH, x, where, 1, keep, False, n - 1, (n, where, keep))


cdef object middle(int opcode, Task task, object input, object dim, object axis, bint keep_, str name):
    cdef Tensor x = input_of(input, name)
    cdef bint keep = keep_ or x.layout.ndim == 0
    cdef int where
    dim = either(dim, axis)
    if dim is None:
        return middle_of_all(x, task, name)
    where = filled_axis(x, dim, name)
    return along(opcode, task, x, where, 1, keep, False, 0, (where, keep))


cdef object middle_of_all(Tensor x, Task task, str name):
    """The lower median of all elements, whose gradient ties share."""
    cdef Tensor flat
    cdef Tensor out = own(tensor_new(layout_scalar(), x.dtype_))
    cdef Tensor index
    cdef PyObject* tensors[3]
    cdef PyObject* inputs[1]
    cdef Py_ssize_t ints[4]
    if x.layout.numel == 0:
        if x.dtype_ > FLOAT64:
            raise worded(ShapeError, "{0}: the input of shape {1.shape} is empty, and {0} of no integers is not defined", name, x)
        return full_like(out, NAN)
    flat = own(contiguous_of(x))
    flat = own(tensor_alias(flat, layout_contiguous(1, &flat.layout.numel), flat.data))
    index = own(tensor_new(layout_scalar(), INT64))
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> index, <PyObject*> flat
    ints[0], ints[1], ints[2], ints[3] = 0, task, 0, 0
    run_routine(ALONG, tensors, 4, ints)
    inputs[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (task == TASK_NANMEDIAN,)
        record(MEDIAN_OF_ALL, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def median(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """median(x): the lower median of all elements; ties share its gradient evenly. median(x, dim): (values, indices) along dim; the
    gradient goes to the index. NaN wins; NaN of nothing. Raises ValueError for an empty dim."""
    return middle(MEDIAN, TASK_MEDIAN, input, dim, axis, keep_of(keepdim, keepdims), "median")


def nanmedian(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """As `median`, of the elements that are not NaN; NaN where all are."""
    return middle(NANMEDIAN, TASK_NANMEDIAN, input, dim, axis, keep_of(keepdim, keepdims), "nanmedian")


def mode(input, dim=-1, bint keepdim=False, *, axis=None, keepdims=None):
    """(values, indices): the most frequent value along `dim`, of several the smallest, and its last index, where the gradient goes.

    NaNs are different from each other. Raises ValueError for an empty dim.
    """
    cdef Tensor x = input_of(input, "mode")
    cdef int where = filled_axis(x, dim if axis is None else axis, "mode")
    cdef bint keep = keep_of(keepdim, keepdims) or x.layout.ndim == 0
    return along(MODE, TASK_MODE, x, where, 1, keep, False, 0, (where, keep))


# ---- quantiles

cdef tuple BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-quantiles along `dim` (of all elements by default): for a number q without that dimension, for a 1-d tensor q along a new
    first one. NaN where an element is NaN. interpolation: "linear", "lower", "higher", "midpoint" or "nearest" between two elements.

    Raises RuntimeError unless the input is floating point and not empty, and q lies in [0, 1].
    """
    return quantiles(input, q, dim, keepdim, interpolation, False, "quantile")


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """As `quantile`, of the elements that are not NaN; NaN where all are."""
    return quantiles(input, q, dim, keepdim, interpolation, True, "nanquantile")


cdef object quantiles(object input, object q, object dim, bint keep, object interpolation, bint skip, str name):
    cdef Tensor x = input_of(input, name)
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int axis = 0 if dim is None else axis_of(dim, x.layout.ndim, name), ndim = x.layout.ndim, i
    cdef bint several = isinstance(q, Tensor) and (<Tensor> q).layout.ndim == 1
    cdef int mode = 0
    cdef unsigned long long before = operators.exchanges
    cdef double level
    if x.dtype_ > FLOAT64:
        raise worded(DTypeError, "{}: expected a floating-point tensor, got {.dtype.name}", name, x)
    while mode < 5 and interpolation != BETWEEN[mode]:
        mode += 1
    if mode == 5:
        raise worded(ShapeError, "{}: interpolation must be one of {}, got {!r}", name, BETWEEN, interpolation)
    if isinstance(q, Tensor):
        if (<Tensor> q).layout.ndim > 1 or (<Tensor> q).dtype_ != x.dtype_:
            raise worded(DTypeError, "{0}: q must be a number or a tensor of at most one dimension of dtype {1.dtype.name}, got shape "
                         "{2.shape} of {2.dtype.name}", name, x, q)
        q = own(contiguous_of(detach(q) if several else reshape(detach(q), 1)))
    else:
        level = q
        if not 0 <= level <= 1:
            raise worded(ShapeError, "{}: q must be in the range [0, 1], got {}", name, q)
        q = level
    unmoved(before, name)
    if x.layout.numel == 0:
        raise worded(ShapeError, "{}: the input of shape {.shape} is empty", name, x)
    if dim is not None and ndim:
        result = quantile_row(x, axis, q, mode, skip, keep or several)
        if several:
            result = transposed(result, 0, 1) if axis == 1 and ndim == 2 else movedim(result, axis, 0)
            return unsqueeze(result, axis + 1) if keep else result
        return result
    result = quantile_row(x if ndim == 1 else reshape_to(x, 1, &x.layout.numel), 0, q, mode, skip, several)
    if not (keep and ndim):
        return result
    shape[0] = (<Tensor> result).layout.numel
    for i in range(ndim):
        shape[i + several] = 1
    return reshape_to(result, ndim + several, shape)


cpdef object quantile_row(Tensor x, int axis, q, int mode, bint skip, bint keep):
    """The row itself: q, a number or a contiguous tensor of one dimension, becomes the dimension `axis`, which a number may be without."""
    cdef bint several = is_tensor(<PyObject*> q)
    cdef Py_ssize_t n = (<Tensor> q).layout.numel if several else 1
    cdef double level = 0 if several else q
    cdef bint few = size_along(x, axis) <= SHORT                 # which the routine puts in order itself
    cdef Tensor order = x if few else along(SORT, TASK_SORT, x, axis, size_along(x, axis), True, False, 0, None, True)
    cdef Tensor values = resized(x, axis, n, True, x.dtype_)
    cdef PyObject* tensors[6]
    cdef Py_ssize_t ints[4]
    ints[0], ints[1], ints[2], ints[3] = axis, mode, skip, few
    tensors[0], tensors[1], tensors[2], tensors[3] = <PyObject*> values, NULL, <PyObject*> order, <PyObject*> x
    tensors[4], tensors[5], aux = <PyObject*> q if several else NULL, NULL, None
    if any_wants_grad(1, tensors + 3):
        aux = (resized(x, axis, 2 * n, True, INT64), resized(x, axis, 2 * n, True, x.dtype_))
        tensors[1], tensors[5] = <PyObject*> (<tuple> aux)[0], <PyObject*> (<tuple> aux)[1]
    run_routine(QUANTILE_ROUTINE, tensors, 4, ints, 1, &level)
    if not keep:
        values = own(tensor_alias(values, layout_along(x, axis, 1, False), values.data))
    if aux is not None:
        attrs = (axis, q, mode, skip, keep)
        record(QUANTILE, <PyObject*> values, 1, tensors + 3, <PyObject*> attrs, <PyObject*> aux)
    return values


# ---- binary search

cdef object search(Tensor rows, object values, bint out_int32, bint right, Tensor order, str name):
    cdef Tensor v
    cdef Tensor out
    cdef PyObject* tensors[4]
    cdef Py_ssize_t ints[1]
    cdef int d
    if isinstance(values, Tensor):
        v = values
        if v.dtype_ != rows.dtype_:
            raise worded(DTypeError, "{}: the sorted sequence and the values must have one dtype, got {.dtype.name} and {.dtype.name}",
                                     name, rows, v)
    else:
        v = as_tensor(values)
        if not rows.is_floating_point() and v.is_floating_point():
            rows = convert(rows, v.dtype)
        v = convert(v, rows.dtype)
    if rows.layout.ndim == 0:
        raise worded(ShapeError, "{}: the sorted sequence must have at least one dimension", name)
    if rows.layout.ndim > 1:
        if rows.layout.ndim != v.layout.ndim:
            raise worded(ShapeError, "{}: sorted rows of shape {.shape} do not fit values of shape {.shape}", name, rows, v)
        for d in range(v.layout.ndim - 1):
            if rows.layout.dims[d] != v.layout.dims[d]:
                raise worded(ShapeError, "{}: sorted rows of shape {.shape} do not fit values of shape {.shape}", name, rows, v)
    v = own(contiguous_of(v))
    rows = own(contiguous_of(rows))
    out = own(tensor_new(v.layout, INT32 if out_int32 else INT64))
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> v, <PyObject*> rows
    tensors[3] = NULL if order is None else <PyObject*> order
    ints[0] = right
    run_routine(SEARCH, tensors, 1, ints)
    return out


def searchsorted(sorted_sequence, input, *, bint out_int32=False, bint right=False, side=None, sorter=None):
    """Where each value would be put into a sorted sequence, or into the rows of one: before equals, or (right, side="right") after them.

    sorter: the indices (int64) that sort the sequence. Raises ValueError where shapes, TypeError where dtypes do not fit.
    """
    cdef Tensor rows = input_of(sorted_sequence, "searchsorted")
    cdef Tensor order = None
    if side is not None:
        if side not in ("left", "right"):
            raise worded(ShapeError, "searchsorted: side must be \"left\" or \"right\", got {!r}", side)
        if right and side == "left":
            raise ShapeError("searchsorted: side and right can't be opposites, got side of left while right was True")
    if sorter is not None:
        order = input_of(sorter, "searchsorted")
        if order.dtype_ != INT64:
            raise worded(DTypeError, "searchsorted: the sorter must be int64, got {.dtype.name}", order)
        if not same_shape(order.layout, rows.layout):
            raise worded(ShapeError, "searchsorted: the sorter of shape {.shape} must have the shape of the sequence, {.shape}",
                                     order, rows)
        order = own(contiguous_of(order))
    return search(rows, input, out_int32, right or side == "right", order, "searchsorted")


def bucketize(input, boundaries, *, bint out_int32=False, bint right=False):
    """The index of the bucket of each value: boundaries[i - 1] < value <= boundaries[i], or (right) boundaries[i - 1] <= value < ..."""
    cdef Tensor rows = input_of(boundaries, "bucketize")
    if rows.layout.ndim != 1:
        raise worded(ShapeError, "bucketize: the boundaries must have one dimension, got shape {.shape}", rows)
    return search(rows, input, out_int32, right, None, "bucketize")


# ---- the first derivative of all operations that return elements and their indices

cdef int placed_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Tensor g = <Tensor> grads[0]
    cdef Tensor indices = own(unpack(node, 1, False))
    cdef Layout* layout = layout_contiguous_like(node.edges[0].layout)
    cdef Tensor out = own(tensor_new(layout, g.dtype_))
    cdef PyObject* tensors[3]
    cdef Py_ssize_t ints[2]
    layout_decref(layout)
    axis = (<tuple> node.attrs)[node.opcode == TOPK or node.opcode == KTHVALUE]
    if node.opcode == MAX or node.opcode == MIN:
        axis = (<tuple> axis)[0] if axis else 0
    ints[0], ints[1] = axis, node.opcode == CUMMAX or node.opcode == CUMMIN
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> g, <PyObject*> indices
    run_routine(PLACED, tensors, 2, ints)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[SORT] = backwards[TOPK] = backwards[KTHVALUE] = backwards[MEDIAN] = backwards[NANMEDIAN] = placed_backward
backwards[MODE] = backwards[CUMMAX] = backwards[CUMMIN] = backwards[MAX] = backwards[MIN] = placed_backward
