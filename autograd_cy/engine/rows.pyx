# What operations written in Python need of the engine: to be recorded, and their inputs in contiguous memory.
#
# Relies on record, operands. The operations of networks and those that SciPy computes rely on it.

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.array.layout cimport CONTIGUOUS
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.tensor cimport Tensor

from autograd_cy.engine.tensor import OPCODES


def record_row(str name, Tensor out, tuple inputs, tuple attrs, object aux=None):
    """Make the row `name` the history of `out`, where an input (None: one not given) needs a gradient; returns out."""
    cdef PyObject* given[4]
    cdef int i
    if len(inputs) > 4:
        raise ValueError(f"{name}: a row of {len(inputs)} inputs can't be recorded here")
    for i, value in enumerate(inputs):
        given[i] = NULL if value is None else <PyObject*> (<Tensor?> value)
    if out.dtype_ <= FLOAT64 and any_wants_grad(<int> len(inputs), given):
        record(OPCODES[name], <PyObject*> out, <int> len(inputs), given, <PyObject*> attrs, NULL if aux is None else <PyObject*> aux)
    return out


def packed(x):
    """x itself where it is contiguous, else a contiguous copy; without a history. None stays None."""
    if x is None or (<Tensor?> x).layout.flags & CONTIGUOUS:
        return x
    return own(contiguous_of(<Tensor> x))
