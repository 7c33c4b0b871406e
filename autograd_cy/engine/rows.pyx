# What operations written in Python need of the engine: to be made and recorded, their inputs in contiguous memory, and what follows
# from shapes remembered.
#
# Relies on record, operands, creation, routines. The operations of networks and those that SciPy computes rely on it.

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Size
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.array.layout cimport CONTIGUOUS
from autograd_cy.engine.creation cimport allocate
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.routines cimport run_routine
from autograd_cy.engine.tensor cimport Tensor, is_tensor

from autograd_cy.engine.tensor import OPCODES

cdef enum:
    KEY = 64
    SLOTS = 256
    A_NUMBER = 0              # what a word of a key announces; the others are addresses of None, True and False
    SOME_ITEMS = 1
    A_TENSOR = 2
    A_TEXT = 3
    A_FLOAT = 7

cdef list remembered = [None] * SLOTS         # (key, result), at places that follow from keys


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


def make_row(int opcode, int routine, *args):
    """A new tensor for a row of at most 4 inputs (the last may be None), integers and a size: a routine fills it from all of them."""
    cdef PyObject* inputs[4]
    cdef PyObject* arrays[5]
    cdef Py_ssize_t ints[64]
    cdef Py_ssize_t i, n = len(args) - 2
    cdef tuple attrs = args[n:], numbers = attrs[0]
    cdef Tensor out = allocate(attrs[1], (<Tensor?> args[0]).dtype_, "empty")
    cdef Tensor x
    cdef object kept = None                   # contiguous copies, for as long as the routine runs
    arrays[0] = <PyObject*> out
    for i in range(n):
        inputs[i] = arrays[i + 1] = NULL
        if args[i] is None:
            continue
        x = <Tensor?> args[i]
        inputs[i] = <PyObject*> x
        if not x.layout.flags & CONTIGUOUS:
            x = own(contiguous_of(x))
            kept = (kept, x)
        arrays[i + 1] = <PyObject*> x
    for i in range(len(numbers)):
        ints[i] = numbers[i]
    run_routine(routine, arrays, <int> len(numbers), ints)
    if any_wants_grad(<int> n, inputs):
        record(opcode, <PyObject*> out, <int> n, inputs, <PyObject*> attrs, NULL)
    return out


def empty_as(x, shape, str name="empty"):
    """A tensor of the dtype of x (or of this code) whose values are not set; name: for errors."""
    return allocate(shape, (<Tensor> x).dtype_ if is_tensor(<PyObject*> x) else <int> x, name)


cdef int write_key(Py_ssize_t* key, int n, object items, bint inside) except -2:
    """What is to be remembered by, behind n words: how many there are then; -1: it can't be."""
    cdef int overflow = 0
    cdef double number
    cdef Tensor t
    for a in items:
        if n + 2 > KEY:
            return -1
        n += 1
        if type(a) is int:
            key[n - 1], key[n] = A_NUMBER, PyLong_AsLongLongAndOverflow(a, &overflow)
            n = -1 if overflow else n + 1
        elif a is None or a is True or a is False:
            key[n - 1] = <Py_ssize_t> <PyObject*> a
        elif type(a) is tuple or type(a) is list:
            key[n - 1] = SOME_ITEMS + 4 * PySequence_Size(a)
            n = write_key(key, n, a, True)
        elif type(a) is str:
            key[n - 1], key[n] = A_TEXT, hash(a)
            n += 1
        elif type(a) is float:
            number = a
            key[n - 1] = A_FLOAT
            memcpy(&key[n], &number, sizeof(number))
            n += 1
        elif not inside and is_tensor(<PyObject*> a) and (<Tensor> a).dtype_ <= FLOAT64 and n + (<Tensor> a).layout.ndim <= KEY:
            t = <Tensor> a
            key[n - 1] = A_TENSOR + 4 * (2 * t.layout.ndim + t.dtype_)
            memcpy(&key[n], t.layout.dims, t.layout.ndim * sizeof(Py_ssize_t))
            n += t.layout.ndim
        else:                                 # what a tensor of integers, or one among numbers, means may be its value
            return -1
        if n < 0:
            break
    return n


def planned(plan, *args):
    """plan(*args), remembered: for what follows from shapes and dtypes of tensors of floats, numbers, sequences of these, and texts."""
    cdef Py_ssize_t key[KEY]
    cdef unsigned long long mixed = 0
    cdef int i, n = write_key(key, 1, args, False)
    if n < 0:
        return plan(*args)
    key[0] = <Py_ssize_t> <PyObject*> plan
    for i in range(n):
        mixed = (mixed ^ <unsigned long long> key[i]) * 0x9E3779B97F4A7C15ULL
        mixed ^= mixed >> 32
    cdef bytes name = (<char*> key)[:n * sizeof(Py_ssize_t)]
    known = <tuple> remembered[mixed % SLOTS]
    if known is None or <bytes> known[0] != name:
        known = remembered[mixed % SLOTS] = (name, plan(*args))
    return known[1]


def packed(x):
    """x itself where it is contiguous, else a contiguous copy; without a history. None stays None."""
    if x is None or (<Tensor?> x).layout.flags & CONTIGUOUS:
        return x
    return own(contiguous_of(<Tensor> x))
