# Counts and distinct values: bincount, histc, isin, unique; and differences of neighbours.
#
# Relies on array, sorting, shape, the routines of kernels/counting. statistics.py has the rest of them, and the names.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport INFINITY

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    Layout, layout_contiguous, layout_decref, layout_scalar, layout_strided, same_shape, strides_of,
)
from autograd_cy.engine.arguments cimport axis_of, integer
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport as_operand_tensor, contiguous_of, converted, copy_into, copy_of, promote
from autograd_cy.engine.reduce cimport input_of
from autograd_cy.engine.record cimport any_wants_grad, made_of, record
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport expanded, made, reshape_to, zeros_of
from autograd_cy.engine.tensor cimport SUB, Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, REDUCE_MAX, REDUCE_MIN, escape

from autograd_cy.array.errors import DTypeError, ShapeError, worded
from autograd_cy.engine.sorting import sorted_values

cdef int NE = row_number("ne"), NEIGHBOURS = row_number("neighbours")
cdef int BINCOUNT = routine_of("counting.bincount"), HISTOGRAM = routine_of("counting.histogram")
cdef int AMONG = routine_of("counting.among"), RUNS = routine_of("counting.runs")
cdef int AREA_ROW = row_number("area"), AREA_AT = row_number("area_at"), AREA = routine_of("counting.area")

cdef enum:
    MANY = 4096               # elements whose area is not computed by the loops made for the processor


cdef Tensor flat(Tensor x):
    """In one dimension, contiguous; no history."""
    x = own(contiguous_of(x))
    return own(tensor_alias(x, layout_contiguous(1, &x.layout.numel), x.data))


cdef Tensor vector(Py_ssize_t n, int dtype):
    """A new tensor of one dimension."""
    cdef Layout* layout = layout_contiguous(1, &n)
    out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    return out


def bincount(input, weights=None, minlength=0):
    """How often each number from 0 on occurs in a 1-d tensor of integers, or the sum of its weights: max + 1 numbers, at least minlength.

    Its size depends on values: an error in a captured step. RuntimeError where a number is negative, or shapes do not fit.
    """
    cdef Tensor x = input_of(input, "bincount"), w = None if weights is None else input_of(weights, "bincount")
    cdef Py_ssize_t size = integer(minlength, "minlength", "bincount"), step = 1, zero = 0
    cdef long long largest
    cdef PyObject* tensors[3]
    if x.dtype_ <= FLOAT64 or x.dtype_ == BOOL:
        raise worded(DTypeError, "bincount: expected integers, got {.dtype.name}", x)
    if size < 0:
        raise worded(ShapeError, "bincount: minlength should be >= 0, got {}", minlength)
    if x.layout.ndim != 1 or w is not None and not same_shape(w.layout, x.layout):
        raise worded(ShapeError, "bincount: expected a 1-d tensor and weights of its shape, got shapes {.shape} and {.shape}", x,
                     x if w is None else w)
    escape("bincount()")
    x = own(contiguous_of(own(converted(x, INT64))))
    if x.layout.numel:
        K.reduce(REDUCE_MAX, INT64, 1, x.layout.dims, x.data, &step, <char*> &largest, &zero, 0)
        size = max(size, <Py_ssize_t> largest + 1)
    if w is not None:
        w = own(contiguous_of(w if w.dtype_ <= FLOAT64 else own(converted(w, FLOAT64))))
    out = vector(size, INT64 if w is None else w.dtype_)
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> x, NULL if w is None else <PyObject*> w
    run_routine(BINCOUNT, tensors)
    return out


cdef double extreme_of(Tensor x, int kind) except? -1:
    """Of contiguous elements, which may be NaN."""
    cdef Py_ssize_t step = 1, zero = 0
    cdef double wide = 0
    escape("a range of the data")
    K.reduce(kind, x.dtype_, 1, &x.layout.numel, x.data, &step, <char*> &wide, &zero, 0)
    return wide if x.dtype_ == FLOAT64 else (<float*> &wide)[0]


cdef int find_range(Tensor x, double* ends) except -1:
    """The ends of a histogram: as given, or, if both are equal, of the data; apart in any case."""
    cdef int k
    if ends[0] == ends[1] and x.layout.numel:
        for k in range(2):
            ends[k] = extreme_of(x, REDUCE_MAX if k else REDUCE_MIN)
        if ends[0] == ends[1]:
            ends[0] -= 1
            ends[1] += 1
    elif ends[0] == ends[1]:
        ends[1] += 1
    if not 0 < ends[1] - ends[0] < INFINITY:
        raise ShapeError("histc: the range is not finite, or max is not larger than min")
    return 0


def range_of(Tensor x, double low, double high):
    """The same for histogram."""
    cdef double[2] ends = [low, high]
    find_range(x, ends)
    return ends[0], ends[1]


def histc(input, bins=100, double min=0, double max=0):
    """How many elements lie in each of `bins` bins of equal width from min to max (of the data, where both are equal); others and NaN
    do not count. In the input's dtype. RuntimeError unless it is floating point and the range finite."""
    cdef Py_ssize_t count = integer(bins, "bins", "histc"), kind = 0
    cdef Tensor x = input_of(input, "histc")
    cdef PyObject* tensors[4]
    cdef double ends[2]
    if x.dtype_ > FLOAT64:
        raise worded(DTypeError, "histc: expected a floating-point tensor, got {.dtype.name}", x)
    if count <= 0:
        raise worded(ShapeError, "histc: bins must be > 0, got {}", bins)
    x = flat(x)
    ends[0], ends[1] = min, max
    find_range(x, ends)
    out = vector(count, x.dtype_)
    tensors[0], tensors[1], tensors[2], tensors[3] = <PyObject*> out, <PyObject*> x, NULL, NULL
    run_routine(HISTOGRAM, tensors, 1, &kind, 2, ends)
    return out


def isin(elements, test_elements, *, bint assume_unique=False, bint invert=False):
    """Whether each element is among the test elements (not: invert); one of both may be a number."""
    cdef Tensor a, b, out
    cdef PyObject* tensors[3]
    cdef Py_ssize_t inverted = invert
    cdef int dtype
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise worded(TypeError, "isin: expected a Tensor, got {.__class__.__name__} and {.__class__.__name__}", elements, test_elements)
    a = own(as_operand_tensor(<PyObject*> elements, (<Tensor> test_elements).dtype_ if isinstance(test_elements, Tensor) else INT64))
    b = own(as_operand_tensor(<PyObject*> test_elements, a.dtype_))
    dtype = promote(a.dtype_, b.dtype_)
    a = own(contiguous_of(own(converted(a, dtype))))
    b = flat(own(converted(b, dtype)))
    if b.layout.numel > 1:
        b = sorted_values(b, None)
    out = own(tensor_new(a.layout, BOOL))
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> a, <PyObject*> b
    run_routine(AMONG, tensors, 1, &inverted)
    return out


# ---- distinct values

def unique(input, bint sorted=True, bint return_inverse=False, bint return_counts=False, dim=None):
    """The distinct elements in order; or, along `dim`, the distinct slices. NaNs are different from each other.

    return_inverse: also, for each element (slice), which of them it is. return_counts: also how often each occurs. Its size depends on
    values: an error in a captured step.
    """
    return distinct(input, return_inverse, return_counts, dim, True, "unique")


def unique_consecutive(input, bint return_inverse=False, bint return_counts=False, dim=None):
    """The first element of every run of equal ones; or, along `dim`, of equal slices. As `unique`, without sorting."""
    return distinct(input, return_inverse, return_counts, dim, False, "unique_consecutive")


cdef object distinct(object input, bint inverse, bint counts, object dim, bint ordered, str name):
    cdef Tensor x = input_of(input, name), a, values, starts = None, runs = None, order = None
    cdef Tensor found = own(tensor_new(layout_scalar(), INT64))
    cdef PyObject* tensors[6]
    cdef Py_ssize_t n, count, i
    escape(name + "()")
    if dim is not None:
        from autograd_cy.engine.statistics import unique_slices
        return unique_slices(x.detach(), dim, inverse, counts, ordered, name)
    a, n = flat(x), x.layout.numel
    if ordered and inverse:
        order = vector(n, INT64)
    if ordered:
        a = sorted_values(a, order)
    values = a if ordered else vector(n, x.dtype_)
    if counts:
        starts = vector(n + 1, INT64)
    if inverse:
        runs = vector(n, INT64)
    tensors[0], tensors[1], tensors[2] = <PyObject*> values, NULL if starts is None else <PyObject*> starts, NULL
    if runs is not None:
        tensors[2] = <PyObject*> runs
    tensors[3], tensors[4], tensors[5] = <PyObject*> found, <PyObject*> a, NULL if order is None else <PyObject*> order
    run_routine(RUNS, tensors)
    count = (<long long*> found.data)[0]
    if count < n:                                 # in memory of their own where they are much fewer
        values = own(tensor_alias(values, layout_contiguous(1, &count), values.data))
        if 2 * count < n:
            values = own(copy_of(values, values.layout))
    if not (inverse or counts):
        return values
    result = [values]
    if inverse:
        result.append(reshape_to(runs, x.layout.ndim, x.layout.dims))
    if counts:
        for i in range(count):
            (<long long*> starts.data)[i] = (<long long*> starts.data)[i + 1] - (<long long*> starts.data)[i]
        result.append(own(tensor_alias(starts, layout_contiguous(1, &count), starts.data)))
    return tuple(result)


# ---- neighbours

def area_row(given, points, dim, step, bint cumulative):
    """The row itself: the areas under a few floats along an axis, at points or at distances of a number; None of anything else."""
    cdef Tensor y, x, out
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t ints[2]
    cdef PyObject* tensors[3]
    cdef double distance = 0
    cdef int axis, i, n
    if not isinstance(given, Tensor) or (points is None) == (step is None) and points is not None:
        return None
    y = given
    n, axis = y.layout.ndim, axis_of(dim, y.layout.ndim, "trapezoid")
    if n == 0 or not 0 < y.layout.numel <= MANY or y.dtype_ > FLOAT64:
        return None
    tensors[1], tensors[2] = <PyObject*> y, NULL
    if isinstance(points, Tensor):
        x = points
        if x.dtype_ != y.dtype_:
            return None
        if x.layout.ndim == 1 and n > 1 and x.layout.dims[0] == y.layout.dims[axis]:
            for i in range(n):
                shape[i] = 1
            shape[axis] = x.layout.dims[0]
            x = expanded(reshape_to(x, n, shape), n, y.layout.dims)
        if not same_shape(x.layout, y.layout):
            return None
        tensors[2] = <PyObject*> x
    elif points is None and (step is None or type(step) is float or type(step) is int):
        distance = 1 if step is None else step
    else:
        return None
    ints[0], ints[1] = axis, cumulative
    for i in range(n):
        if i != axis or cumulative:
            shape[i - (i > axis and not cumulative)] = y.layout.dims[i] - (i == axis)
    out = made(n - (not cumulative), shape, y.dtype_)
    tensors[0] = <PyObject*> out
    run_routine(AREA, tensors, 2, ints, 1, &distance)
    if any_wants_grad(2, tensors + 1):
        attrs = (axis, bool(cumulative)) if tensors[2] != NULL else (axis, distance, bool(cumulative))
        record(AREA_ROW if tensors[2] == NULL else AREA_AT, <PyObject*> out, 1 + (tensors[2] != NULL), tensors + 1, <PyObject*> attrs, NULL)
    return out


def neighbours(given, dim):
    """The row itself: each element but the first along an axis minus the one before it; of bools: whether they differ. None of what is no
    tensor or has no elements."""
    cdef Py_ssize_t along
    cdef Tensor x
    if not isinstance(given, Tensor):
        return None
    x, along = given, axis_of(dim, given.ndim, "diff")
    if x.layout.ndim == 0 or x.layout.numel == 0:
        return None
    later, earlier = all_but_one(x, along, True), all_but_one(x, along, False)
    return made_of(x, own(operators.binary(NE if x.dtype_ == BOOL else SUB, <PyObject*> later, <PyObject*> earlier)), NEIGHBOURS, 1, &along)


cdef Tensor all_but_one(Tensor x, Py_ssize_t axis, bint later):
    """Without the last element along axis, or without the first; no history."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int i
    for i in range(x.layout.ndim):
        shape[i] = x.layout.dims[i] - (i == axis)
    return own(tensor_alias(x, layout_strided(x.layout.ndim, shape, strides_of(x.layout)),
                            x.data + (strides_of(x.layout)[axis] * itemsize_of(x.dtype_) if later else 0)))


cdef int neighbours_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The first derivative, as the rule gives it."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* full = node.edges[0].layout
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef Tensor out = zeros_of(full.ndim, full.dims, g.dtype_), part
    copy_into(all_but_one(out, ints[0], True), g)
    part = all_but_one(out, ints[0], False)
    own(operators.inplace(SUB, <PyObject*> part, <PyObject*> g))
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[NEIGHBOURS] = neighbours_backward
