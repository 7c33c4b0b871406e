# The elementwise rows whose arguments need more than the generated functions do: add and sub with alpha, where, clamp, logit,
# nan_to_num, polygamma, celu, hardtanh, prelu, isclose.
#
# Relies on dispatch. methods.py makes methods of them, functional.py has the activations.

from cpython.object cimport PyObject
from libc.math cimport INFINITY, NAN, isnan

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT8
from autograd_cy.array.layout cimport DENSE, same_shape
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.dispatch cimport binary, combined, elementwise, unary, unary_with
from autograd_cy.engine.inplace cimport inplace as binary_
from autograd_cy.engine.inplace cimport inplace_with
from autograd_cy.engine.node cimport NO_REDUCTION
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport Operand_, common_dtype, read_operand
from autograd_cy.engine.record cimport any_wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.tensor cimport Tensor, is_tensor

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import ArgumentError, worded
from autograd_cy.engine import elementwise as rows
from autograd_cy.engine.copies import store_
from autograd_cy.engine.index import nonzero
from autograd_cy.engine.shape import convert

cdef int ADD = row_number("add"), SUB = row_number("sub"), WHERE = row_number("where"), CLAMP = row_number("clamp"), POW = row_number("pow")
cdef int LOGIT = row_number("logit"), NAN_TO_NUM = row_number("nan_to_num"), PRELU = row_number("prelu"), ISCLOSE = row_number("isclose")
cdef int POLYGAMMA = row_number("polygamma"), TRIGAMMA = row_number("trigamma"), CELU = row_number("celu")
cdef int CLAMP_TENSOR = row_number("clamp_tensor")
cdef int ADDCMUL = row_number("addcmul")
cdef object LOWEST = -INFINITY, HIGHEST = INFINITY, ONE = 1.0, UNIT = 1
cdef Py_ssize_t ONE_PASS = 4096         # elements from which one loop with a block of ones is faster than two loops
cdef int HARDTANH = row_number("hardtanh"), GELU = row_number("gelu"), GELU_TANH = row_number("gelu_tanh")
cdef int NORMAL_CDF = row_number("normal_cdf"), ROUND = row_number("round")
cdef extern from "float.h":
    double FLT_MAX, DBL_MAX


cdef object times(object input, object other, object alpha):
    """alpha * other, of a tensor or a number; in the dtype of the sum, which does not wrap where that of small integers does."""
    cdef Operand_ given[2]
    cdef int dtype
    if alpha == 1:
        return other
    if is_tensor(<PyObject*> other) and read_operand(<PyObject*> input, &given[0]) == 0 and read_operand(<PyObject*> other, &given[1]) == 0:
        dtype = common_dtype(2, given, 0)
        if dtype != (<Tensor> other).dtype_:
            other = convert(other, DTYPES[dtype])
    return other * alpha


cdef object summed(int opcode, object input, object other, object alpha, bint in_place, str name):
    """a + alpha * b or a - alpha * b. Many elements without history go through one loop, addcmul by 1, which gives the same bits as two;
    for few it takes longer."""
    cdef PyObject* args[3]
    cdef double factor
    cdef Tensor x
    cdef Tensor y
    args[0], args[1], args[2] = <PyObject*> input, <PyObject*> other, <PyObject*> ONE
    if alpha is not UNIT:
        if (type(alpha) is float or type(alpha) is int) and is_tensor(args[0]) and is_tensor(args[1]):
            x, y = <Tensor> input, <Tensor> other
            if (x.layout.numel >= ONE_PASS and y.dtype_ == x.dtype_ and x.layout.flags & DENSE and same_shape(x.layout, y.layout)
                    and (x.dtype_ <= FLOAT64 or x.dtype_ < BOOL and type(alpha) is int and -2**31 <= alpha < 2**31)
                    and not any_wants_grad(2, args)):
                factor = alpha if opcode == ADD else -alpha
                if x.dtype_ > FLOAT64:
                    args[2] = <PyObject*> UNIT
                    if x.dtype_ == UINT8:
                        factor = (alpha if opcode == ADD else -alpha) & 255
                return own(inplace_with(ADDCMUL, 3, args, &factor) if in_place else elementwise(ADDCMUL, 3, args, &factor, NO_REDUCTION))
        other = times(input, other, alpha)
        args[1] = <PyObject*> other
    return combined(name, binary_(opcode, args[0], args[1]) if in_place else binary(opcode, args[0], args[1]))


def add(input, other, *, alpha=1):
    """a + alpha * b."""
    return summed(ADD, input, other, alpha, False, "add")


def sub(input, other, *, alpha=1):
    """a - alpha * b."""
    return summed(SUB, input, other, alpha, False, "sub")


def add_(input, other, *, alpha=1):
    """In place: a + alpha * b."""
    need_tensor(input, "add_")
    return summed(ADD, input, other, alpha, True, "add_")


def sub_(input, other, *, alpha=1):
    """In place: a - alpha * b."""
    need_tensor(input, "sub_")
    return summed(SUB, input, other, alpha, True, "sub_")


def pow(input, exponent):
    """input ** exponent, of which either may be a number. Integers to negative integer powers are a RuntimeError."""
    return combined("pow", binary(POW, <PyObject*> input, <PyObject*> exponent))


def pow_(input, exponent):
    """In place: input ** exponent."""
    need_tensor(input, "pow_")
    return combined("pow_", binary_(POW, <PyObject*> input, <PyObject*> exponent))


def pow_row(a, b):
    """The row `pow`, without the shortcuts of the operator: rules get the bits that the generated loops give."""
    cdef PyObject* args[2]
    args[0], args[1] = <PyObject*> a, <PyObject*> b
    return own(elementwise(POW, 2, args, NULL, NO_REDUCTION))


# ---- choices

cdef object chosen(object condition, object a, object b):
    """The row `where`."""
    cdef PyObject* args[3]
    if not is_tensor(<PyObject*> condition):
        raise worded(TypeError, "where: the condition must be a bool tensor, got {}", type(condition).__name__)
    args[0], args[1], args[2] = <PyObject*> condition, <PyObject*> a, <PyObject*> b
    result = own(elementwise(WHERE, 3, args, NULL, NO_REDUCTION))
    if result is NotImplemented:
        raise worded(TypeError, "where: expected tensors or numbers, got {} and {}", type(a).__name__, type(b).__name__)
    return result


def where(condition, input=None, other=None):
    """input where condition is true, else other; where(condition): the positions of true elements.

    Raises TypeError unless condition is a bool tensor.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return chosen(condition, input, other)


def masked_fill(input, mask, value):
    """input with `value` where mask is true, in input's dtype."""
    cdef Tensor x = need_tensor(input, "masked_fill")
    cdef Tensor out = chosen(mask, value, x)
    return out if out.dtype_ == x.dtype_ else convert(out, DTYPES[x.dtype_])


def masked_fill_(input, mask, value):
    """In place: `value` where mask is true."""
    return input.copy_(chosen(mask, value, input))


cdef int read_bounds(object low, object high, double* bounds) except -1:
    bounds[0] = -INFINITY if low is None else low
    bounds[1] = INFINITY if high is None else high
    return 0


cdef bint whole_bounds(Tensor t, object low, object high, double* bounds) except -1:
    """Whether both bounds are integers of t's dtype that a double holds exactly: then the row `clamp` does for integers, too."""
    cdef double most = 2**53 if t.dtype_ == INT64 else 2**31 - 1 if t.dtype_ == INT32 else 255
    if t.dtype_ == BOOL or type(low) is not int or type(high) is not int:
        return False
    if not (0 if t.dtype_ == UINT8 else -most) <= low <= most or not (0 if t.dtype_ == UINT8 else -most) <= high <= most:
        return False
    bounds[0], bounds[1] = low, high
    return True


cdef int check_bounds(object low, object high, str name) except -1:
    if low is None and high is None:
        raise worded(ArgumentError, "{}: at least one of min and max must be given", name)
    return 0


cdef inline bint is_float(PyObject* o) noexcept:
    return is_tensor(o) and (<Tensor> o).dtype_ <= FLOAT64


cdef void clamp_operands(object input, object min, object max, PyObject** args) noexcept:
    """The inputs of the row clamp_tensor."""
    args[0] = <PyObject*> input
    args[1] = <PyObject*> (LOWEST if min is None else min)
    args[2] = <PyObject*> (HIGHEST if max is None else max)


cdef object limited(object input, object min, object max):
    cdef double bounds[2]
    cdef PyObject* args[3]
    clamp_operands(input, min, max, args)
    if is_tensor(args[1]) or is_tensor(args[2]):
        if not (is_float(args[0]) or is_float(args[1]) or is_float(args[2])):        # by rows that take integer numbers exactly
            out = input if min is None else chosen(input < min, min, input)
            return out if max is None else chosen(out > max, max, out)
        return combined("clamp", elementwise(CLAMP_TENSOR, 3, args, NULL, NO_REDUCTION))
    if need_tensor(input, "clamp").dtype_ > FLOAT64:        # by rows that take integer numbers exactly
        if whole_bounds(input, min, max, bounds):
            return own(unary_with(CLAMP, <PyObject*> input, bounds))
        out = input if min is None else rows.maximum(input, min)
        return out if max is None else rows.minimum(out, max)
    read_bounds(min, max, bounds)
    if isnan(bounds[0]) or isnan(bounds[1]):
        return chosen(rows.eq(input, input) | rows.ne(input, input), NAN, input)
    return own(unary_with(CLAMP, <PyObject*> input, bounds))


def clamp(input, min=None, max=None):
    """input limited to [min, max]; a bound may be a number, a tensor or None. At a bound the gradient is 1; a NaN bound gives NaN."""
    check_bounds(min, max, "clamp")
    return limited(input, min, max)


def clamp_min(input, min):
    """input, at least min."""
    return limited(input, min, None)


def clamp_max(input, max):
    """input, at most max."""
    return limited(input, None, max)


def clamp_(input, min=None, max=None):
    """In place: input limited to [min, max]."""
    cdef double bounds[2]
    cdef PyObject* args[3]
    check_bounds(min, max, "clamp_")
    if need_tensor(input, "clamp_").dtype_ > FLOAT64 and whole_bounds(input, min, max, bounds):
        return with_attrs(CLAMP, input, bounds, True)
    if is_float(<PyObject*> input) and (is_tensor(<PyObject*> min) or is_tensor(<PyObject*> max)) \
            or is_float(<PyObject*> min) or is_float(<PyObject*> max):
        clamp_operands(input, min, max, args)
        return combined("clamp_", inplace_with(CLAMP_TENSOR, 3, args, NULL))
    if (<Tensor> input).dtype_ > FLOAT64:
        return store_(input, limited(input, min, max), "clamp_")
    read_bounds(min, max, bounds)
    if isnan(bounds[0]) or isnan(bounds[1]):
        return store_(input, limited(input, min, max), "clamp_")
    return with_attrs(CLAMP, input, bounds, True)


cdef object with_attrs(int opcode, object x, const double* attrs, bint in_place):
    """A row of one input, out of place or in place."""
    cdef PyObject* args[1]
    args[0] = <PyObject*> x
    if not in_place:
        return own(unary_with(opcode, args[0], attrs))
    need_tensor(x, "an operation in place")
    return own(inplace_with(opcode, 1, args, attrs))


def round(input, *, decimals=0):
    """The nearest integer, halves to even; or the nearest multiple of 10 ** -decimals. The gradient is 0 everywhere."""
    if decimals:
        from autograd_cy.engine.manners import rounded
        return rounded(need_tensor(input, "round"), decimals)
    return own(unary(ROUND, <PyObject*> input))


def round_(input, *, decimals=0):
    """In place: round."""
    if decimals:
        return need_tensor(input, "round_").copy_(round(input, decimals=decimals))
    return with_attrs(ROUND, input, NULL, True)


# ---- activations

def celu(input, alpha=1.0, inplace=False):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere. Raises RuntimeError for alpha = 0."""
    cdef double factor = alpha
    if factor == 0:
        raise RuntimeError("celu: alpha cannot be 0")
    return with_attrs(CELU, input, &factor, inplace)


def gelu(input, approximate="none"):
    """x times the standard normal distribution function of x; approximate="tanh": by its tanh approximation."""
    if approximate == "none":
        return own(unary(GELU, <PyObject*> input))
    if approximate == "tanh":
        return own(unary(GELU_TANH, <PyObject*> input))
    raise worded(RuntimeError, "approximate argument must be either none or tanh, got {!r}.", approximate)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x limited to [min_val, max_val]; the gradient at the bounds is 0. Raises ValueError for crossed bounds."""
    cdef double bounds[2]
    bounds[0], bounds[1] = min_val, max_val
    if bounds[0] > bounds[1]:
        raise worded(ValueError, "hardtanh: min_val cannot be greater than max_val, got {} and {}", min_val, max_val)
    if need_tensor(input, "hardtanh").dtype_ <= FLOAT64:
        return with_attrs(HARDTANH, input, bounds, inplace)
    if input.dtype.name == "bool" or input.dtype.name == "uint8" and bounds[0] < 0:
        raise worded(RuntimeError, "hardtanh: not defined for {.dtype} with these limits", input)
    return (clamp_ if inplace else clamp)(input, int(min_val), int(max_val))


def prelu_row(x, w):
    """The row `prelu`; the weight has been brought to a shape that broadcasts."""
    cdef PyObject* args[2]
    args[0], args[1] = <PyObject*> x, <PyObject*> w
    return own(elementwise(PRELU, 2, args, NULL, NO_REDUCTION))


def prelu(input, weight):
    """x if x > 0, else weight * x; weight has one element, or one for each channel (dimension 1)."""
    cdef Tensor x = need_tensor(input, "prelu"), w = need_tensor(weight, "prelu")
    cdef Py_ssize_t count = w.layout.numel, channels = x.layout.dims[1] if x.layout.ndim > 1 else 1
    if w.layout.ndim > 1:
        raise worded(RuntimeError, "prelu: expected weight to have 0 or 1 dimensions, but got shape {.shape}", weight)
    if count == 1:
        return prelu_row(input, weight if w.layout.ndim <= x.layout.ndim else weight.reshape(()))
    if count != channels:
        raise worded(RuntimeError, "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and "
                                   "channel size = {}", count, channels)
    return prelu_row(input, weight.reshape((1, count) + (1,) * (input.ndim - 2)))


# ---- nearness

def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol * |other|, or both are equal; NaNs count as equal if `equal_nan`.

    Raises RuntimeError where the dtypes differ or a tolerance is negative.
    """
    cdef PyObject* args[2]
    cdef double attrs[3]
    if not is_tensor(<PyObject*> input) or not is_tensor(<PyObject*> other):
        raise worded(TypeError, "isclose: expected two tensors, got {} and {}", type(input).__name__, type(other).__name__)
    if (<Tensor> input).dtype_ != (<Tensor> other).dtype_:
        raise worded(RuntimeError, "isclose: {.dtype} did not match {.dtype}", input, other)
    if rtol < 0 or atol < 0:
        raise worded(RuntimeError, "isclose: rtol and atol must be greater than or equal to zero, got {} and {}", rtol, atol)
    if (<Tensor> input).dtype_ > FLOAT64:
        equal = rows.eq(input, other)
        return equal | isclose(input.double(), other.double(), rtol, atol) if rtol or atol else equal
    attrs[0], attrs[1], attrs[2] = rtol, atol, <bint> equal_nan
    args[0], args[1] = <PyObject*> input, <PyObject*> other
    return own(elementwise(ISCLOSE, 2, args, attrs, NO_REDUCTION))


# ---- values replaced

cdef int read_limits(object eps, double* limits) except -1:
    limits[0], limits[1] = -INFINITY, INFINITY
    if eps is not None:
        limits[0], limits[1] = eps, 1.0 - <double> eps
    return 0


def logit(input, eps=None):
    """log(x / (1 - x)) of x limited to [eps, 1 - eps]; without eps NaN outside of [0, 1]. Outside of the limits the gradient is 0."""
    cdef double limits[2]
    read_limits(eps, limits)
    return with_attrs(LOGIT, input, limits, False)


def logit_(input, eps=None):
    """In place: log(x / (1 - x)) of x limited to [eps, 1 - eps]."""
    cdef double limits[2]
    read_limits(eps, limits)
    return with_attrs(LOGIT, input, limits, True)


cdef object replaced(Tensor x, object nan, object posinf, object neginf, bint in_place):
    cdef double values[3]
    cdef double largest = FLT_MAX if x.dtype_ == FLOAT32 else DBL_MAX
    values[0] = 0.0 if nan is None else nan
    values[1] = largest if posinf is None else posinf
    values[2] = -largest if neginf is None else neginf
    return with_attrs(NAN_TO_NUM, x, values, in_place)


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers, by default 0 and the largest of the dtype; there the gradient is 0."""
    if need_tensor(input, "nan_to_num").dtype_ > FLOAT64:
        return input.clone()
    return replaced(input, nan, posinf, neginf, False)


def nan_to_num_(input, nan=0.0, posinf=None, neginf=None):
    """In place: NaN and infinities replaced by numbers."""
    if need_tensor(input, "nan_to_num_").dtype_ > FLOAT64:
        return input
    return replaced(input, nan, posinf, neginf, True)


cdef double order(object n) except? -1:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return int(n)


cdef object derivative_of_digamma(object x, double n, bint in_place):
    return with_attrs(POLYGAMMA, x, &n, in_place)


def polygamma(n, input):
    """The n-th derivative of digamma: (-1) ** (n + 1) n! sum over k >= 0 of 1 / (x + k) ** (n + 1)."""
    need_tensor(input, "polygamma")
    if n is UNIT:
        return own(unary(TRIGAMMA, <PyObject*> input))
    if n == 1:
        return trigamma(input)
    return derivative_of_digamma(input, order(n), False) if n else input.digamma()


def trigamma(x):
    """The row `trigamma`: polygamma of order 1."""
    return own(unary(TRIGAMMA, <PyObject*> x))


def normal_cdf(x):
    """The row `normal_cdf`, as rules call it."""
    return own(unary(NORMAL_CDF, <PyObject*> x))


def polygamma_method(input, n):
    """The n-th derivative of digamma."""
    return polygamma(n, input)


def polygamma_(input, n):
    """In place: the n-th derivative of digamma."""
    if n == 1:
        need_tensor(input, "polygamma_")
        return with_attrs(TRIGAMMA, input, NULL, True)
    return derivative_of_digamma(input, order(n), True) if n else input.digamma_()


def polygamma_row(x, n):
    """The row `polygamma`, as rules call it."""
    return derivative_of_digamma(x, n, False)
