# The rows `where` and `clamp`, whose arguments need more than the generated functions do.
#
# Relies on dispatch. selection.py wraps the functions.

from cpython.object cimport PyObject

from autograd_cy.engine.dispatch cimport elementwise, inplace_with, unary_with
from autograd_cy.engine.node cimport NO_REDUCTION
from autograd_cy.engine.shape cimport own
from autograd_cy.engine.tensor cimport is_tensor

from autograd_cy.engine.index import nonzero
from autograd_cy.engine.tensor import OPCODES

cdef int WHERE = OPCODES["where"], CLAMP = OPCODES["clamp"], POW = OPCODES["pow"]
INF = float("inf")


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
