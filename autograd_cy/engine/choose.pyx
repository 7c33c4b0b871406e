# The rows whose arguments need more than the generated functions do: where, clamp, logit, nan_to_num, polygamma, prelu.
#
# Relies on dispatch. selection.py wraps where and clamp, methods.py makes the others methods, functional.py has prelu.

from cpython.object cimport PyObject

from autograd_cy.engine.dispatch cimport elementwise, inplace_with, unary, unary_with
from autograd_cy.engine.node cimport NO_REDUCTION
from autograd_cy.engine.shape cimport own
from autograd_cy.engine.tensor cimport is_tensor

from autograd_cy.engine.index import nonzero
from autograd_cy.engine.tensor import OPCODES

cdef int WHERE = OPCODES["where"], CLAMP = OPCODES["clamp"], POW = OPCODES["pow"]
cdef int LOGIT = OPCODES["logit"], NAN_TO_NUM = OPCODES["nan_to_num"], PRELU = OPCODES["prelu"]
cdef int POLYGAMMA = OPCODES["polygamma"], TRIGAMMA = OPCODES["trigamma"], NORMAL_CDF = OPCODES["normal_cdf"]
cdef object INF = float("inf")
cdef dict LARGEST = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}


def where_rows(condition, a, b):
    """The row `where`."""
    cdef PyObject* args[3]
    if not is_tensor(<PyObject*> condition):
        raise TypeError(f"where: the condition must be a bool tensor, got {type(condition).__name__}")
    args[0], args[1], args[2] = <PyObject*> condition, <PyObject*> a, <PyObject*> b
    result = own(elementwise(WHERE, 3, args, NULL, NO_REDUCTION))
    if result is NotImplemented:
        raise TypeError(f"where: expected tensors or numbers, got {type(a).__name__} and {type(b).__name__}")
    return result


def pow_row(a, b):
    """The row `pow`, without the shortcuts of the operator: rules get the bits that the generated loops give."""
    cdef PyObject* args[2]
    args[0], args[1] = <PyObject*> a, <PyObject*> b
    return own(elementwise(POW, 2, args, NULL, NO_REDUCTION))


def nonzero_parts(condition):
    """The positions of true elements."""
    return nonzero(condition, as_tuple=True)


cdef tuple bounds(object low, object high):
    return (-INF if low is None else float(low), INF if high is None else float(high))


def clamp_rows(x, low, high):
    """The row `clamp`."""
    attrs = bounds(low, high)
    return own(unary_with(CLAMP, <PyObject*> x, <PyObject*> attrs))


def clamp_rows_(x, low, high):
    """The row `clamp`, in place."""
    cdef PyObject* args[1]
    attrs = bounds(low, high)
    args[0] = <PyObject*> x
    return own(inplace_with(CLAMP, 1, args, <PyObject*> attrs))


cdef object with_attrs(int opcode, object x, tuple attrs, bint in_place):
    """A row of one input, out of place or in place."""
    cdef PyObject* args[1]
    args[0] = <PyObject*> x
    if not in_place:
        return own(unary_with(opcode, args[0], <PyObject*> attrs))
    need_tensor(x, "an operation in place")
    return own(inplace_with(opcode, 1, args, <PyObject*> attrs))


cdef int need_tensor(object x, str name) except -1:
    if not is_tensor(<PyObject*> x):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    return 0


cdef tuple limits(object eps):
    return (-INF, INF) if eps is None else (float(eps), 1.0 - float(eps))


def logit(input, eps=None):
    """log(x / (1 - x)) of x limited to [eps, 1 - eps]; without eps NaN outside of [0, 1]. Outside of the limits the gradient is 0."""
    need_tensor(input, "logit")
    return with_attrs(LOGIT, input, limits(eps), False)


def logit_(input, eps=None):
    """In place: log(x / (1 - x)) of x limited to [eps, 1 - eps]."""
    return with_attrs(LOGIT, input, limits(eps), True)


cdef tuple replacements(object dtype, object nan, object posinf, object neginf):
    largest = LARGEST[dtype.name]
    return (0.0 if nan is None else float(nan), largest if posinf is None else float(posinf), -largest if neginf is None else float(neginf))


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers, by default 0 and the largest of the dtype; there the gradient is 0."""
    need_tensor(input, "nan_to_num")
    if not input.is_floating_point():
        return input.clone()
    return with_attrs(NAN_TO_NUM, input, replacements(input.dtype, nan, posinf, neginf), False)


def nan_to_num_(input, nan=0.0, posinf=None, neginf=None):
    """In place: NaN and infinities replaced by numbers."""
    need_tensor(input, "nan_to_num_")
    if not input.is_floating_point():
        return input
    return with_attrs(NAN_TO_NUM, input, replacements(input.dtype, nan, posinf, neginf), True)


cdef double order(object n) except? -1:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return int(n)


def polygamma(n, input):
    """The n-th derivative of digamma: (-1) ** (n + 1) n! sum over k >= 0 of 1 / (x + k) ** (n + 1)."""
    need_tensor(input, "polygamma")
    if n == 1:
        return trigamma(input)
    return with_attrs(POLYGAMMA, input, (order(n),), False) if n else input.digamma()


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
        return with_attrs(TRIGAMMA, input, (), True)
    return with_attrs(POLYGAMMA, input, (order(n),), True) if n else input.digamma_()


def polygamma_row(x, n):
    """The row `polygamma`, as rules call it."""
    return with_attrs(POLYGAMMA, x, (float(n),), False)


def prelu_row(x, w):
    """The row `prelu`; the weight has been brought to a shape that broadcasts."""
    cdef PyObject* args[2]
    args[0], args[1] = <PyObject*> x, <PyObject*> w
    return own(elementwise(PRELU, 2, args, NULL, NO_REDUCTION))
