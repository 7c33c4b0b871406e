# Linear algebra through NumPy's LAPACK: the inverse.
#
# Relies on creation (memory shared with NumPy) and record. autograd_cy.linalg is its public path.

import numpy as np

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.tensor cimport Tensor

from autograd_cy.array.errors import DTypeError, ShapeError
from autograd_cy.engine.creation import array_of, empty, outside
from autograd_cy.engine.tensor import OPCODES

cdef int INV = OPCODES["inv"]


def write_inverse(inputs, outputs):
    """outputs[0] = the inverse of inputs[0]."""
    try:
        array_of(outputs[0])[...] = np.linalg.inv(array_of(inputs[0]))
    except np.linalg.LinAlgError:
        raise RuntimeError(f"inv: a matrix of the input of shape {inputs[0].shape} is singular") from None


def inv(input):
    """The inverse Y of square matrices X in the last two axes; the gradient is -Y^T G Y^T.

    Raises RuntimeError where a matrix is singular, ValueError where it is not square, TypeError unless it is floating point.
    """
    cdef PyObject* inputs[1]
    cdef Tensor x
    if not isinstance(input, Tensor):
        raise TypeError(f"inv: expected a Tensor, got {type(input).__name__}")
    x = input
    if x.dtype_ > FLOAT64:
        raise DTypeError(f"inv: expected a floating-point tensor, got {x.dtype.name}; convert it first")
    if x.layout.ndim < 2 or x.layout.dims[x.layout.ndim - 1] != x.layout.dims[x.layout.ndim - 2]:
        raise ShapeError(f"inv: expected square matrices in the last two axes, got shape {x.shape}")
    out = empty(x.shape, dtype=x.dtype)
    outside(write_inverse, [x.detach()], [out])
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        record(INV, <PyObject*> out, 1, inputs, NULL, NULL)
    return out
