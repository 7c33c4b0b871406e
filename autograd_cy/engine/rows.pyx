# What operations written in Python need of the engine: to be made and recorded, their inputs in contiguous memory, and what follows
# from shapes remembered.
#
# Relies on record, operands, creation, routines. The operations of networks and those that SciPy computes rely on it.

from functools import partial

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.string cimport memcmp, memcpy

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.array.layout cimport CONTIGUOUS
from autograd_cy.engine.creation cimport allocate
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.tensor cimport Tensor, is_tensor

from autograd_cy.engine.tensor import OPCODES

cdef enum:
    MOST_INPUTS = 4
    MOST_INTS = 64
    KEY = 64
    SLOTS = 256
    A_NUMBER = 0              # what a word of a key announces: an integer in the next one; so many items; a tensor of so many dimensions
    SOME_ITEMS = 1
    A_TENSOR = 2

cdef list remembered = [None] * SLOTS         # (key, result, what the key names by address), at places that follow from keys


def record_row(str name, Tensor out, tuple inputs, tuple attrs, object aux=None):
    """Make the row `name` the history of `out`, where an input (None: one not given) needs a gradient; returns out."""
    cdef PyObject* given[MOST_INPUTS]
    cdef int i
    if len(inputs) > MOST_INPUTS:
        raise ValueError(f"{name}: a row of {len(inputs)} inputs can't be recorded here")
    for i, value in enumerate(inputs):
        given[i] = NULL if value is None else <PyObject*> (<Tensor?> value)
    if out.dtype_ <= FLOAT64 and any_wants_grad(<int> len(inputs), given):
        record(OPCODES[name], <PyObject*> out, <int> len(inputs), given, <PyObject*> attrs, NULL if aux is None else <PyObject*> aux)
    return out


def make_row(int opcode, int routine, *args):
    """The result of a row whose arguments are inputs (the last may be None), integers and a size: a tensor of this size, of the first
    input's dtype, that the routine fills from the inputs in contiguous memory."""
    cdef PyObject* inputs[MOST_INPUTS]
    cdef PyObject* arrays[MOST_INPUTS + 1]
    cdef Py_ssize_t ints[MOST_INTS]
    cdef int i, n = <int> len(args) - 2
    cdef Tensor out = allocate(args[n + 1], (<Tensor?> args[0]).dtype_, "empty")
    cdef tuple numbers = args[n]
    cdef list copies = []
    if n > MOST_INPUTS or len(numbers) > MOST_INTS:
        raise ValueError(f"a row of {n} inputs and {len(numbers)} integers can't be made here")
    arrays[0] = <PyObject*> out
    for i in range(n):
        x = args[i]
        inputs[i] = arrays[i + 1] = NULL if x is None else <PyObject*> (<Tensor?> x)
        if x is not None and not (<Tensor> x).layout.flags & CONTIGUOUS:
            x = own(contiguous_of(<Tensor> x))
            copies.append(x)
            arrays[i + 1] = <PyObject*> x
    for i in range(<int> len(numbers)):
        ints[i] = numbers[i]
    run_routine(routine, arrays, <int> len(numbers), ints)
    if any_wants_grad(n, inputs):
        attrs = args[n:]
        record(opcode, <PyObject*> out, n, inputs, <PyObject*> attrs, NULL)
    return out


def row_of_routine(str name, str routine):
    """The function of inputs, integers and a size that makes and records the row `name` by a routine."""
    return partial(make_row, row_number(name), routine_of(routine))


def empty_as(Tensor x, shape):
    """A tensor of the dtype of x whose values are not set."""
    return allocate(shape, x.dtype_, "empty")


cdef int write_key(Py_ssize_t* key, int n, object a, bint inside) except -2:
    """The words of an argument into a key, behind n of them: how many there are then; -1: it is nothing to be remembered."""
    cdef int overflow = 0
    cdef Tensor t
    if n + 2 > KEY:
        return -1
    if type(a) is int:
        key[n] = A_NUMBER
        key[n + 1] = PyLong_AsLongLongAndOverflow(a, &overflow)
        return -1 if overflow else n + 2
    if type(a) is tuple or type(a) is list:
        key[n] = SOME_ITEMS + 4 * len(a)
        n += 1
        for item in a:
            n = write_key(key, n, item, True)
            if n < 0:
                break
        return n
    key[n] = <Py_ssize_t> <PyObject*> a
    if a is None or a is True or a is False or type(a) is str and not inside:
        return n + 1
    if inside or not is_tensor(<PyObject*> a):
        return -1
    t = <Tensor> a
    if t.dtype_ > FLOAT64 or n + 1 + t.layout.ndim > KEY:        # an integer: its value may be what counts
        return -1
    key[n] = A_TENSOR + 4 * (2 * t.layout.ndim + t.dtype_)
    memcpy(&key[n + 1], t.layout.dims, t.layout.ndim * sizeof(Py_ssize_t))
    return n + 1 + t.layout.ndim


def planned(plan, *args):
    """plan(*args), from memory where the arguments have been seen: for what follows from the shapes and dtypes of tensors of floats and
    from integers, sequences of these, texts, None and truths alone, and is made of them. Other arguments are always computed anew."""
    cdef Py_ssize_t key[KEY]
    cdef unsigned long long mixed = 0
    cdef int i, n = 1
    key[0] = <Py_ssize_t> <PyObject*> plan
    for a in args:
        n = write_key(key, n, a, False)
        if n < 0:
            return plan(*args)
    for i in range(n):
        mixed = (mixed ^ <unsigned long long> key[i]) * 0x9E3779B97F4A7C15ULL
        mixed ^= mixed >> 32
    known = remembered[mixed % SLOTS]
    if known is None or PyBytes_GET_SIZE((<tuple> known)[0]) != n * <Py_ssize_t> sizeof(Py_ssize_t) \
            or memcmp(PyBytes_AS_STRING((<tuple> known)[0]), key, n * sizeof(Py_ssize_t)):
        known = (PyBytes_FromStringAndSize(<char*> key, n * sizeof(Py_ssize_t)), plan(*args),
                 [plan, *[a for a in args if type(a) is str]])
        remembered[mixed % SLOTS] = known
    return (<tuple> known)[1]


def packed(x):
    """x itself where it is contiguous, else a contiguous copy; without a history. None stays None."""
    if x is None or (<Tensor?> x).layout.flags & CONTIGUOUS:
        return x
    return own(contiguous_of(<Tensor> x))
