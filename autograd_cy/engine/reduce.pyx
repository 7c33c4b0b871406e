# Reductions, softmax and the sums inside rules.
#
# Relies on array, kernels/reduce, kernels/rows, shape, record. methods.py puts the functions into Tensor.

from collections import namedtuple

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, UINT8
from autograd_cy.array.layout cimport (
    CONTIGUOUS, Layout, layout_contiguous, layout_decref, layout_scalar, layout_strided, strides_of,
)
from autograd_cy.engine.arguments cimport axis_of, truth, unmoved
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node, Saved
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport GRAIN, contiguous_of, converted, default_dtype
from autograd_cy.engine.record cimport any_wants_grad, record, saved_or_raise
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport (
    ALL_VECTORS, K, REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_LOGSUMEXP, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN,
    REDUCE_NORM, REDUCE_PROD, REDUCE_SUM, REDUCE_VAR, run_loop,
)

from autograd_cy import ops
from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.elementwise import maximum, minimum
from autograd_cy.engine.gradients import rule_gradient
from autograd_cy.engine.shape import convert, expand, unsqueeze

cdef extern from *:
    """
    static PyObject* ag_pair(PyObject* type, PyObject* first, PyObject* second) {     /* a third of the time that type(...) takes */
        PyObject* o = ((PyTypeObject*) type)->tp_alloc((PyTypeObject*) type, 2);
        if (o == NULL) return NULL;
        Py_INCREF(first);
        Py_INCREF(second);
        PyTuple_SET_ITEM(o, 0, first);
        PyTuple_SET_ITEM(o, 1, second);
        return o;
    }
    """
    object ag_pair(object type, object first, object second)

cdef int SUM = row_number("sum"), MEAN = row_number("mean"), PROD = row_number("prod"), AMAX = row_number("amax"), AMIN = row_number("amin")
cdef int MAX = row_number("max"), MIN = row_number("min"), VAR = row_number("var"), STD = row_number("std")
cdef int LOGSUMEXP = row_number("logsumexp"), NORM = row_number("norm"), SOFTMAX = row_number("softmax")
cdef int NANSUM = row_number("nansum"), SUM_WITHOUT_NAN = routine_of("scans.nansum"), SOFTMAX_ALONG = routine_of("rows.softmax")
cdef int LOG_SOFTMAX = row_number("log_softmax"), SQRT_LOOP = ops.loop_id("sqrt")

ValuesIndices = namedtuple("ValuesIndices", ["values", "indices"])
cdef object pair(object kind, object first, object second):
    """kind(first, second), of a namedtuple."""
    return ag_pair(kind, first, second)


cdef list ALL_DIMS = [tuple(range(n)) for n in range(MAX_NDIM + 1)]
cdef object UNSET = object()


cdef tuple dims_of(object dim, int ndim, str name):
    """The dimensions to reduce: all for None or (), else one or several, without repetition, ascending."""
    cdef unsigned long long mask = 0
    cdef int axis
    if dim is None:
        return ALL_DIMS[ndim]
    if type(dim) is int:
        axis = axis_of(dim, ndim, name)
        return (axis,) if ndim else ()
    if isinstance(dim, (tuple, list)):
        if not dim:
            return ALL_DIMS[ndim]
        for d in dim:
            axis = axis_of(d, ndim, name)
            if mask >> axis & 1:
                raise worded(ShapeError, "{}: a dim occurs twice in {}", name, tuple(dim))
            mask |= <unsigned long long> 1 << axis
        return ALL_DIMS[ndim] if len(dim) >= ndim else tuple([axis for axis in range(ndim) if mask >> axis & 1])
    axis = axis_of(dim, ndim, name)
    return (axis,) if ndim else ()


cdef PyObject* result_for(Tensor x, tuple dims, bint keepdim, int dtype, Py_ssize_t* strides) except NULL:
    """A new tensor for a reduction over dims, and its strides in the dims of x (0 on those reduced)."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t step = 1
    cdef unsigned long long mask = 0
    cdef Layout* layout
    cdef PyObject* out
    cdef int i, n = 0
    if len(dims) == x.layout.ndim and not keepdim:
        layout = layout_scalar()
        for i in range(x.layout.ndim):
            strides[i] = 0
    else:
        for axis in dims:
            mask |= <unsigned long long> 1 << <int> axis
        for i in range(x.layout.ndim):
            if not mask >> i & 1:
                shape[n] = x.layout.dims[i]
                n += 1
            elif keepdim:
                shape[n] = 1
                n += 1
        layout = layout_contiguous(n, shape)
        for i in range(x.layout.ndim - 1, -1, -1):
            if mask >> i & 1:
                strides[i] = 0
            else:
                strides[i] = step
                step *= x.layout.dims[i]
    out = tensor_new(layout, dtype)
    layout_decref(layout)
    return out


cdef PyObject* reduced(int kind, Tensor x, tuple dims, bint keepdim, double param) except NULL:
    """The reduction as a new tensor; no history."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef PyObject* out
    cdef int dtype = x.dtype_
    if kind == REDUCE_ARGMAX or kind == REDUCE_ARGMIN or ((kind == REDUCE_SUM or kind == REDUCE_PROD) and dtype > FLOAT64):
        dtype = INT64
    elif kind == REDUCE_ANY or kind == REDUCE_ALL:
        dtype = BOOL
    out = result_for(x, dims, keepdim, dtype, strides)
    if x.layout.numel >= GRAIN:
        with nogil:
            K.reduce(kind, x.dtype_, x.layout.ndim, x.layout.dims, x.data, strides_of(x.layout), (<Tensor> out).data, strides, param)
    else:
        K.reduce(kind, x.dtype_, x.layout.ndim, x.layout.dims, x.data, strides_of(x.layout), (<Tensor> out).data, strides, param)
    return out


cdef object reduction(int opcode, int kind, Tensor x, tuple dims, bint keepdim, double param, tuple attrs):
    """Run and record one reduction; attrs (None: dims and keepdim) go to the rule."""
    cdef PyObject* inputs[1]
    cdef object out = own(reduced(kind, x, dims, keepdim, param))
    inputs[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        if attrs is None:
            attrs = (dims, keepdim)
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


cdef Tensor input_of(object x, str name):
    if not isinstance(x, Tensor):
        raise worded(TypeError, "{}: expected a Tensor, got {}", name, type(x).__name__)
    return x


cdef Tensor float_input(object x, str name):
    cdef Tensor t = input_of(x, name)
    if t.dtype_ > FLOAT64:
        raise worded(RuntimeError, "{}: expected a floating-point tensor, got {.dtype.name}; convert it first", name, t)
    return t


cdef int refuse_empty(Tensor x, tuple dims, str name) except -1:
    for axis in dims:
        if x.layout.dims[<int> axis] == 0:
            raise worded(ShapeError, "{0}: the reduced dimension {1} of shape {2.shape} is empty, and {0} of nothing is not defined",
                                     name, axis, x)
    return 0


cdef object either(object dim, object axis):
    """The argument under PyTorch's name or under NumPy's."""
    if dim is None:
        return axis
    if axis is not None:
        raise worded(TypeError, "dim={} and axis={} are two names of one argument: give one of them", dim, axis)
    return dim


cdef bint keep_of(bint keepdim, object keepdims) except -1:
    return keepdim if keepdims is None else truth(keepdims, "keepdims")


def sum(input, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """The sum over `dim` (all dimensions by default). Integers and bools sum to int64."""
    cdef Tensor t = input_of(input, "sum")
    if dtype is not None:
        t = convert(t, dtype)
    return reduction(SUM, REDUCE_SUM, t, dims_of(either(dim, axis), t.layout.ndim, "sum"), keep_of(keepdim, keepdims), 0, None)


def mean(input, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """The mean over `dim` (all dimensions by default); NaN over nothing. RuntimeError for integer tensors."""
    cdef Tensor t = float_input(input if dtype is None else convert(input, dtype), "mean")
    return reduction(MEAN, REDUCE_MEAN, t, dims_of(either(dim, axis), t.layout.ndim, "mean"), keep_of(keepdim, keepdims), 0, None)


def prod(input, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """The product over `dim` (all dimensions by default). Integers and bools multiply to int64."""
    cdef Tensor t = input_of(input, "prod")
    if dtype is not None:
        t = convert(t, dtype)
    return reduction(PROD, REDUCE_PROD, t, dims_of(either(dim, axis), t.layout.ndim, "prod"), keep_of(keepdim, keepdims), 0, None)


def nansum(input, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """The sum over `dim` (all dimensions by default) of what is not NaN. Integers and bools sum to int64."""
    cdef Tensor t = input_of(input, "nansum")
    cdef bint keep = keep_of(keepdim, keepdims)
    cdef tuple dims = dims_of(either(dim, axis), t.layout.ndim, "nansum")
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef PyObject* tensors[2]
    if dtype is not None:
        t = convert(t, dtype)
    if t.dtype_ > FLOAT64:
        return reduction(SUM, REDUCE_SUM, t, dims, keep, 0, None)
    out = own(result_for(t, dims, keep, t.dtype_, strides))
    tensors[0], tensors[1] = <PyObject*> out, <PyObject*> t
    run_routine(SUM_WITHOUT_NAN, tensors, t.layout.ndim, strides)
    if any_wants_grad(1, tensors + 1):
        attrs = (dims, keep)
        record(NANSUM, <PyObject*> out, 1, tensors + 1, <PyObject*> attrs, NULL)
    return out


def amax(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """The largest element over `dim`; NaN wins. Ties share the gradient evenly. ValueError over nothing."""
    cdef Tensor t = input_of(input, "amax")
    cdef tuple dims = dims_of(either(dim, axis), t.layout.ndim, "amax")
    refuse_empty(t, dims, "amax")
    return reduction(AMAX, REDUCE_MAX, t, dims, keep_of(keepdim, keepdims), 0, None)


def amin(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """The smallest element over `dim`; NaN wins. Ties share the gradient evenly. ValueError over nothing."""
    cdef Tensor t = input_of(input, "amin")
    cdef tuple dims = dims_of(either(dim, axis), t.layout.ndim, "amin")
    refuse_empty(t, dims, "amin")
    return reduction(AMIN, REDUCE_MIN, t, dims, keep_of(keepdim, keepdims), 0, None)


cdef object extreme(int opcode, int kind, int index_kind, Tensor x, object dim, bint keepdim, str name):
    """(values, indices) along one dimension."""
    cdef tuple dims = (axis_of(dim, x.layout.ndim, name),) if x.layout.ndim else ()
    cdef PyObject* inputs[2]
    if x.layout.ndim == 0:
        axis_of(dim, 0, name)
    refuse_empty(x, dims, name)
    values = own(reduced(kind, x, dims, keepdim, 0))
    indices = own(reduced(index_kind, x, dims, keepdim, 0))
    inputs[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (dims, bool(keepdim))
        inputs[1] = <PyObject*> indices
        record(opcode, <PyObject*> values, 2, inputs, <PyObject*> attrs, NULL)
    return pair(ValuesIndices, values, indices)


def max(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """max(input): the largest element. max(input, dim): (values, indices) along dim. max(input, other): the elementwise maximum."""
    cdef Tensor t = input_of(input, "max")
    dim = either(dim, axis)
    if isinstance(dim, Tensor):
        return maximum(t, dim)
    if dim is None:
        return amax(t) if t.layout.numel else refuse_empty(t, ALL_DIMS[t.layout.ndim], "max")
    return extreme(MAX, REDUCE_MAX, REDUCE_ARGMAX, t, dim, keep_of(keepdim, keepdims), "max")


def min(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """min(input): the smallest element. min(input, dim): (values, indices) along dim. min(input, other): the elementwise minimum."""
    cdef Tensor t = input_of(input, "min")
    dim = either(dim, axis)
    if isinstance(dim, Tensor):
        return minimum(t, dim)
    if dim is None:
        return amin(t) if t.layout.numel else refuse_empty(t, ALL_DIMS[t.layout.ndim], "min")
    return extreme(MIN, REDUCE_MIN, REDUCE_ARGMIN, t, dim, keep_of(keepdim, keepdims), "min")


cdef object index_of(int kind, Tensor x, object dim, bint keepdim, str name):
    cdef tuple dims
    if isinstance(dim, (tuple, list)):
        raise worded(TypeError, "{}: expected one dim or None, got {}", name, dim)
    dims = dims_of(dim, x.layout.ndim, name)
    refuse_empty(x, dims, name)
    return own(reduced(kind, x, dims, keepdim, 0))


def argmax(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """The index (int64) of the first largest element along `dim`, or in the flattened tensor. NaN counts as largest."""
    return index_of(REDUCE_ARGMAX, input_of(input, "argmax"), either(dim, axis), keep_of(keepdim, keepdims), "argmax")


def argmin(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """The index (int64) of the first smallest element along `dim`, or in the flattened tensor. NaN counts as smallest."""
    return index_of(REDUCE_ARGMIN, input_of(input, "argmin"), either(dim, axis), keep_of(keepdim, keepdims), "argmin")


def any(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """Whether any element along `dim` is true (not zero); False over nothing. bool, but uint8 of uint8."""
    cdef Tensor t = input_of(input, "any")
    out = own(reduced(REDUCE_ANY, t, dims_of(either(dim, axis), t.layout.ndim, "any"), keep_of(keepdim, keepdims), 0))
    return out if t.dtype_ != UINT8 else own(converted(out, UINT8))


def all(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """Whether all elements along `dim` are true (not zero); True over nothing. bool, but uint8 of uint8."""
    cdef Tensor t = input_of(input, "all")
    out = own(reduced(REDUCE_ALL, t, dims_of(either(dim, axis), t.layout.ndim, "all"), keep_of(keepdim, keepdims), 0))
    return out if t.dtype_ != UINT8 else own(converted(out, UINT8))


def var(input, dim=None, unbiased=True, bint keepdim=False, *, correction=None, axis=None, keepdims=None):
    """The variance over `dim`: sum((input - mean)**2) / (n - correction); correction 1 by default. NaN where n <= correction."""
    cdef Tensor t = float_input(input, "var")
    cdef tuple dims = spread_dims(dim, axis, t, "var")
    cdef double c = correction_of(dim, unbiased, correction)
    cdef bint keep = keep_of(keepdim, keepdims)
    return reduction(VAR, REDUCE_VAR, t, dims, keep, c, (dims, keep, c))


def std(input, dim=None, unbiased=True, bint keepdim=False, *, correction=None, axis=None, keepdims=None):
    """The standard deviation over `dim`: the square root of `var`. Its gradient at equal values is 0."""
    cdef Tensor t = float_input(input, "std")
    cdef tuple dims = spread_dims(dim, axis, t, "std")
    cdef double c = correction_of(dim, unbiased, correction)
    cdef bint keep = keep_of(keepdim, keepdims)
    cdef PyObject* inputs[1]
    cdef Tensor out = own(reduced(REDUCE_VAR, t, dims, keep, c))
    cdef char* p[2]
    p[0] = p[1] = out.data
    run_loop(SQRT_LOOP, t.dtype_, ALL_VECTORS, out.layout.numel, p, NULL)
    inputs[0] = <PyObject*> t
    if any_wants_grad(1, inputs):
        attrs = (dims, keep, c)
        record(STD, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


cdef tuple spread_dims(object dim, object axis, Tensor t, str name):
    dim = either(dim, axis)
    return dims_of(None if isinstance(dim, bool) else dim, t.layout.ndim, name)


cdef double correction_of(object dim, object unbiased, object correction) except? -1:
    cdef unsigned long long before = operators.exchanges
    cdef double number
    if correction is not None:
        number = correction
    else:
        number = <bint> dim if isinstance(dim, bool) else <bint> unbiased
    unmoved(before, "var")
    return number


def logsumexp(input, dim=None, bint keepdim=False, *, axis=None, keepdims=None):
    """log(sum(exp(input))) over `dim`, without overflow; -inf where every input is -inf (gradient 0)."""
    cdef Tensor t = input_of(input, "logsumexp")
    if t.dtype_ > FLOAT64:
        t = own(converted(t, default_dtype()))
    return reduction(LOGSUMEXP, REDUCE_LOGSUMEXP, t, dims_of(either(dim, axis), t.layout.ndim, "logsumexp"),
                     keep_of(keepdim, keepdims), 0, None)


def norm(input, p=2, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """(sum |input|**p)**(1/p) over `dim`; p may be "fro" (2), inf, -inf, 0 or any number. The gradient at norm 0 is 0."""
    cdef Tensor t = float_input(input if dtype is None else convert(input, dtype), "norm")
    if p is None or p == "fro":
        p = 2
    if not isinstance(p, (int, float)):
        raise worded(ShapeError, "norm: p must be a number or \"fro\", got {!r}", p)
    if type(p) is not int and type(p) is not float:
        p = float(p)
    cdef tuple dims = dims_of(either(dim, axis), t.layout.ndim, "norm")
    cdef bint keep = keep_of(keepdim, keepdims)
    if p < 0:
        refuse_empty(t, dims, "norm")
    return reduction(NORM, REDUCE_NORM, t, dims, keep, p, (p, dims, keep))


# ---- softmax

cdef object softmax_of(int opcode, object x, object dim, object dtype, str name):
    cdef Tensor t = input_of(x if dtype is None else convert(x, dtype), name)
    cdef int axis, i
    cdef PyObject* tensors[2]
    cdef Tensor rows
    cdef Tensor out
    cdef Py_ssize_t sizes[4]                # before the axis, along it, behind it; whether the logarithm
    if t.dtype_ > FLOAT64:
        t = own(converted(t, default_dtype()))
    if dim is None:
        raise worded(TypeError, "{}: dim is required", name)
    axis = axis_of(dim, t.layout.ndim, name)
    rows = own(contiguous_of(t))
    out = own(tensor_new(rows.layout, t.dtype_))
    sizes[0] = sizes[1] = sizes[2] = 1
    sizes[3] = opcode == LOG_SOFTMAX
    for i in range(rows.layout.ndim):
        sizes[(i > axis) + (i >= axis)] *= rows.layout.dims[i]
    if rows.layout.numel == 0:
        pass
    elif sizes[2] > 1:
        tensors[0], tensors[1] = <PyObject*> out, <PyObject*> rows
        run_routine(SOFTMAX_ALONG, tensors, 4, sizes)
    elif rows.layout.numel >= GRAIN:
        with nogil:
            K.softmax(t.dtype_, sizes[0], sizes[1], rows.data, out.data, <int> sizes[3])
    else:
        K.softmax(t.dtype_, sizes[0], sizes[1], rows.data, out.data, <int> sizes[3])
    tensors[0] = <PyObject*> t
    if any_wants_grad(1, tensors):
        attrs = (axis,)
        record(opcode, <PyObject*> out, 1, tensors, <PyObject*> attrs, NULL)
    return out


def softmax(input, dim=None, dtype=None, *, axis=None):
    """exp(input) / sum(exp(input)) along `dim`, without overflow."""
    return softmax_of(SOFTMAX, input, either(dim, axis), dtype, "softmax")


def log_softmax(input, dim=None, dtype=None, *, axis=None):
    """log(softmax(input)) along `dim`, without overflow."""
    return softmax_of(LOG_SOFTMAX, input, either(dim, axis), dtype, "log_softmax")


cdef int softmax_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Tensor g = <Tensor> grads[0]
    cdef Saved* y = saved_or_raise(node, 1)
    cdef int axis = (<object> node.attrs)[0]
    cdef Py_ssize_t cols
    cdef PyObject* out
    if axis != y.layout.ndim - 1 or not y.layout.flags & CONTIGUOUS or y.layout.numel == 0:
        value = rule_gradient(node, g)
        Py_INCREF(value)
        result[0] = <PyObject*> value
        return 0
    g = own(contiguous_of(g))
    out = tensor_new(y.layout, y.dtype)
    cols = y.layout.dims[axis]
    if y.layout.numel >= GRAIN:
        with nogil:
            K.softmax_backward(y.dtype, y.layout.numel // cols, cols, g.data, y.at.data, (<Tensor> out).data, node.opcode == LOG_SOFTMAX)
    else:
        K.softmax_backward(y.dtype, y.layout.numel // cols, cols, g.data, y.at.data, (<Tensor> out).data, node.opcode == LOG_SOFTMAX)
    result[0] = out
    return 0


backwards[SOFTMAX] = softmax_backward
backwards[LOG_SOFTMAX] = softmax_backward


# ---- sums in rules

def spread(g, shape, dims, keepdim):
    """What a reduction over `dims` removed is put back: each element repeated over `shape` (None: over sizes of 1)."""
    if not keepdim:
        for axis in dims:
            g = unsqueeze(g, axis)
    return g if shape is None else expand(g, shape)


def total(x, dims, keepdim):
    """The sum over a tuple of dimensions, in the input's dtype."""
    if not dims:
        return x
    return sum(x, dims, keepdim)


cdef int spread_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """sum and mean: the gradient repeated, without copying."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* full = node.edges[0].layout
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef unsigned long long mask = 0
    cdef Py_ssize_t n = 1
    cdef tuple attrs = <tuple> node.attrs
    cdef bint keepdim = attrs[1]
    cdef int i, k = 0
    for axis in <tuple> attrs[0]:
        mask |= <unsigned long long> 1 << <int> axis
        n *= full.dims[<int> axis]
    if node.opcode == MEAN:
        g = g / n
    for i in range(full.ndim):
        if mask >> i & 1:
            strides[i] = 0
            k += keepdim
        else:
            strides[i] = strides_of(g.layout)[k]
            k += 1
    result[0] = tensor_alias(g, layout_strided(full.ndim, full.dims, strides), g.data)
    return 0


backwards[SUM] = spread_backward
backwards[MEAN] = spread_backward
