# Running sums, products, extremes and log-sum-exp along a dimension, and the recurrence of their gradients; reductions made of two.
#
# Relies on array, kernels/scans, reduce, routines, record. methods.py puts the functions into Tensor; the rules of the table call
# `cumulate` and `recurrence`.

from collections import namedtuple

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM
from autograd_cy.array.layout cimport CONTIGUOUS, Layout, layout_contiguous, layout_decref
from autograd_cy.engine.arguments cimport axis_of
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, converted, default_dtype
from autograd_cy.engine.record cimport any_wants_grad, record, unpack
from autograd_cy.engine.reduce cimport dims_of, either, input_of, keep_of, pair, reduced, result_for
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.tensor cimport DIV, Tensor, operators, tensor_new
from autograd_cy.kernels.table cimport REDUCE_SUM

from autograd_cy.array.errors import DTypeError, worded
from autograd_cy.engine.copies import copy_
from autograd_cy.engine.gradients import rule_gradient
from autograd_cy.engine.reduce import ValuesIndices, amax, amin, mean, std, var
from autograd_cy.engine.shape import convert

CUMMAX, CUMMIN = row_number("cummax"), row_number("cummin")
cdef int CUMSUM = row_number("cumsum"), CUMPROD = row_number("cumprod")
cdef int LOGCUMSUMEXP = row_number("logcumsumexp"), RECURRENCE = row_number("recurrence")
cdef int NANMEAN = row_number("nanmean"), MEAN_WITHOUT_NAN = routine_of("scans.nanmean")
cdef int RUN_SUM = routine_of("scans.running_sum"), RUN_PRODUCT = routine_of("scans.running_product")
cdef int RUN_EXTREME = routine_of("scans.running_extreme"), RUN_LOGSUMEXP = routine_of("scans.running_logsumexp")
cdef int RUN_RECURRENCE = routine_of("scans.recurrence"), REDUCED_BACK = routine_of("scans.reduced_back")

MinMax = namedtuple("MinMax", ["min", "max"])


cdef Tensor new_like(Tensor x, int dtype):
    """A new contiguous tensor of the shape of x."""
    cdef Layout* layout
    cdef object out
    if x.layout.flags & CONTIGUOUS:
        return own(tensor_new(x.layout, dtype))
    layout = layout_contiguous(x.layout.ndim, x.layout.dims)
    out = own(tensor_new(layout, dtype))
    layout_decref(layout)
    return out


cdef int axis_for(object dim, object axis, Tensor x, str name) except -1:
    dim = either(dim, axis)
    if dim is None:
        raise worded(TypeError, "{}: dim is required", name)
    return axis_of(dim, x.layout.ndim, name)


cdef object running(int opcode, int routine, Tensor x, int axis, bint reverse):
    """One output of the shape of x."""
    cdef Tensor out = new_like(x, x.dtype_)
    cdef PyObject* tensors[2]
    cdef Py_ssize_t ints[2]
    tensors[0], tensors[1] = <PyObject*> out, <PyObject*> x
    ints[0], ints[1] = axis, reverse
    run_routine(routine, tensors, 2, ints)
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, tensors + 1):
        attrs = (axis, bool(reverse)) if opcode == CUMSUM else (axis,)
        record(opcode, <PyObject*> out, 1, tensors + 1, <PyObject*> attrs, NULL)
    return out


cdef Tensor summand(object input, object dtype, str name):
    cdef Tensor x = input_of(input, name)
    if dtype is not None:
        x = convert(x, dtype)
        if x.dtype_ == BOOL:
            raise worded(DTypeError, "{}: not defined for bool tensors", name)
        return x
    return x if x.dtype_ <= INT64 else own(converted(x, INT64))


def cumsum(input, dim=None, *, dtype=None, axis=None):
    """Running sums along `dim`: y_i = x_0 + ... + x_i, in the shape of the input. Integers and bools sum to int64."""
    cdef Tensor x = summand(input, dtype, "cumsum")
    return running(CUMSUM, RUN_SUM, x, axis_for(dim, axis, x, "cumsum"), False)


def cumprod(input, dim=None, *, dtype=None, axis=None):
    """Running products along `dim`: y_i = x_0 * ... * x_i. Integers and bools multiply to int64. Gradients are exact at zeros, too."""
    cdef Tensor x = summand(input, dtype, "cumprod")
    return running(CUMPROD, RUN_PRODUCT, x, axis_for(dim, axis, x, "cumprod"), False)


def cumsum_(input, dim=None, *, dtype=None, axis=None):
    """In place: running sums along `dim`."""
    return copy_(input, cumsum(input, dim, dtype=input_of(input, "cumsum_").dtype if dtype is None else dtype, axis=axis))


def cumprod_(input, dim=None, *, dtype=None, axis=None):
    """In place: running products along `dim`."""
    return copy_(input, cumprod(input, dim, dtype=input_of(input, "cumprod_").dtype if dtype is None else dtype, axis=axis))


def logcumsumexp(input, dim=None, *, axis=None):
    """log(e^x_0 + ... + e^x_i) along `dim`, without overflow; the gradient where that is -inf is 0."""
    cdef Tensor x = input_of(input, "logcumsumexp")
    if x.dtype_ > FLOAT64:
        x = own(converted(x, default_dtype()))
    return running(LOGCUMSUMEXP, RUN_LOGSUMEXP, x, axis_for(dim, axis, x, "logcumsumexp"), False)


cdef object extreme(int opcode, Tensor x, int axis):
    cdef Tensor values = new_like(x, x.dtype_)
    cdef Tensor indices = new_like(x, INT64)
    cdef PyObject* tensors[3]
    cdef PyObject* inputs[2]
    cdef Py_ssize_t ints[2]
    tensors[0], tensors[1], tensors[2] = <PyObject*> values, <PyObject*> indices, <PyObject*> x
    ints[0], ints[1] = axis, opcode == CUMMIN
    run_routine(RUN_EXTREME, tensors, 2, ints)
    inputs[0], inputs[1] = <PyObject*> x, <PyObject*> indices
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        attrs = (axis,)
        record(opcode, <PyObject*> values, 2, inputs, <PyObject*> attrs, NULL)
    return pair(ValuesIndices, values, indices)


def cummax(input, dim=None, *, axis=None):
    """(values, indices): the largest element so far along `dim`, and where it is; of equals the latest. NaN wins.

    The gradient goes to the index returned.
    """
    cdef Tensor x = input_of(input, "cummax")
    return extreme(CUMMAX, x, axis_for(dim, axis, x, "cummax"))


def cummin(input, dim=None, *, axis=None):
    """(values, indices): the smallest element so far along `dim`, and where it is; of equals the latest. NaN wins.

    The gradient goes to the index returned.
    """
    cdef Tensor x = input_of(input, "cummin")
    return extreme(CUMMIN, x, axis_for(dim, axis, x, "cummin"))


# ---- two reductions

def aminmax(input, *, dim=None, bint keepdim=False):
    """(min, max) along `dim` or of all elements; NaN wins. Ties share the gradients evenly. ValueError over nothing."""
    return pair(MinMax, amin(input, dim, keepdim), amax(input, dim, keepdim))


cdef tuple beside_mean(object spread, object x, object dim, object unbiased, object keepdim, object correction):
    return spread(x, dim, unbiased, keepdim, correction=correction), mean(x, None if isinstance(dim, bool) else dim, keepdim)


def var_mean(input, dim=None, unbiased=True, bint keepdim=False, *, correction=None):
    """(variance, mean) over `dim`: as `var` and `mean`."""
    return beside_mean(var, input, dim, unbiased, keepdim, correction)


def std_mean(input, dim=None, unbiased=True, bint keepdim=False, *, correction=None):
    """(standard deviation, mean) over `dim`: as `std` and `mean`."""
    return beside_mean(std, input, dim, unbiased, keepdim, correction)


def nanmean(input, dim=None, bint keepdim=False, *, dtype=None, axis=None, keepdims=None):
    """The mean over `dim` (all dimensions by default) of what is not NaN; NaN of nothing. TypeError unless floating point."""
    cdef Tensor x = input_of(input if dtype is None else convert(input, dtype), "nanmean")
    cdef tuple dims = dims_of(either(dim, axis), x.layout.ndim, "nanmean")
    cdef bint keep = keep_of(keepdim, keepdims)
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef PyObject* tensors[3]
    cdef Tensor out, counts
    if x.dtype_ > FLOAT64:
        raise worded(DTypeError, "nanmean: expected a floating-point tensor, got {.dtype.name}", x)
    out = own(result_for(x, dims, keep, x.dtype_, strides))
    counts = own(tensor_new(out.layout, INT64))
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> x, <PyObject*> counts
    run_routine(MEAN_WITHOUT_NAN, tensors, x.layout.ndim, strides)
    if any_wants_grad(1, tensors + 1):
        attrs, aux = (dims, keep), (counts,)
        record(NANMEAN, <PyObject*> out, 1, tensors + 1, <PyObject*> attrs, <PyObject*> aux)
    return out


# ---- what rules call

def cumulate(Tensor x, int dim, bint reverse):
    """Running sums along dim, or, reverse, x_i + ... + x_n-1."""
    return running(CUMSUM, RUN_SUM, x, dim, reverse)


def recurrence(Tensor v, Tensor x, int dim, bint reverse):
    """h_i = v_i + x_i h_i-1 along dim, or, reverse, h_i = v_i + x_i+1 h_i+1; v and x of one shape and dtype."""
    cdef Tensor out = new_like(v, v.dtype_)
    cdef PyObject* tensors[3]
    cdef Py_ssize_t ints[2]
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> v, <PyObject*> x
    ints[0], ints[1] = dim, reverse
    run_routine(RUN_RECURRENCE, tensors, 2, ints)
    if any_wants_grad(2, tensors + 1):
        attrs = (dim, bool(reverse))
        record(RECURRENCE, <PyObject*> out, 2, tensors + 1, <PyObject*> attrs, NULL)
    return out


# ---- the first derivatives of reductions of few elements (of products, of any number) over all dims, or neighbouring ones; of others, by
# their rules, whose loops are made for the processor

cdef enum:
    SOME = 4096
    A_PRODUCT = 6

cdef dict REDUCTIONS = {}     # opcode -> kind, as in kernels/scans; the last are another extreme and the nansum of quotients


cdef int reduction_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Tensor x = own(unpack(node, 0, False)), g = <Tensor> grads[0], y = None, out, sums
    cdef int kind = REDUCTIONS[node.opcode]
    cdef tuple attrs = <tuple> node.attrs, dims = attrs[1 if kind == 3 else 0]
    cdef int i, n = <int> len(dims), first = dims[0] if n else 0
    cdef PyObject* tensors[5]
    cdef Py_ssize_t ints[4]
    cdef double* numbers = [0., 0.]                # a captured call is known by all of its numbers, used or not
    if node.mask & 2:
        y = own(unpack(node, 1, False))
    if kind == A_PRODUCT:                          # whose rule is made of scans
        x = own(contiguous_of(x))
    if not x.layout.flags & CONTIGUOUS or not x.layout.numel or x.layout.numel > SOME and kind != A_PRODUCT or g.dtype_ != x.dtype_ \
            or n and dims[n - 1] != first + n - 1 or kind == 3 and attrs[0] != 2 or y is not None and not y.layout.flags & CONTIGUOUS:
        value = rule_gradient(node, g)
        Py_INCREF(value)
        result[0] = <PyObject*> value
        return 0
    ints[0], ints[1], ints[2], ints[3] = kind if kind < 7 else 4 if kind == 7 else 5, 1, 1, 1
    if kind == 8:
        g = own(operators.binary(DIV, grads[0], <PyObject*> (<Tensor> (<tuple> <object> node.extra)[0])))
    for i in range(x.layout.ndim):
        ints[1 if i < first else 2 if i < first + n else 3] *= x.layout.dims[i]
    g = own(contiguous_of(g))
    out = own(tensor_new(x.layout, x.dtype_))
    tensors[0], tensors[1], tensors[2], tensors[4] = <PyObject*> out, <PyObject*> x, <PyObject*> g, NULL
    tensors[3] = NULL if y is None else <PyObject*> y
    if kind < 2:
        sums = own(reduced(REDUCE_SUM, x, dims, True, 0))
        tensors[4] = <PyObject*> sums
        numbers[1] = <double> ints[2]
        numbers[0] = numbers[1] - <double> attrs[2]
        numbers[0] = (2. - kind) / (numbers[0] if numbers[0] > 0 else 0.)
    run_routine(REDUCED_BACK, tensors, 4, ints, 2, numbers)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


for name in ("var", "std", "logsumexp", "norm", "amax", "nansum", "prod", "amin", "nanmean"):
    REDUCTIONS[row_number(name)] = len(REDUCTIONS)
    backwards[row_number(name)] = reduction_backward
del name
