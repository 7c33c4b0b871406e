# Random numbers of the two ways that are drawn most.
#
# Relies on creation, and on NumPy's bit generators, through generators.py, which has all other ways and relies on this.

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uint64_t

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64
from autograd_cy.array.layout cimport CONTIGUOUS
from autograd_cy.engine.creation cimport allocate, code_of, finish, memory_of, sizes_of, tell
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, default_dtype
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.kernels.table cimport K, recording

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import DTypeError
from autograd_cy.engine.shape import convert, detach

cdef struct Bits:                             # bitgen_t of numpy/random/bitgen.h
    void* state
    uint64_t (*next_uint64)(void* state) noexcept nogil
    uint32_t (*next_uint32)(void* state) noexcept nogil
    double (*next_double)(void* state) noexcept nogil

cdef object generators = None                 # generators.py, from the first use on


def draw(Tensor t not None, str name, generator, bint tells=True):
    """Fill t by a method of NumPy's generator, "random" without it, in a seventh of the time of a small one; tells: a capture of it."""
    global generators
    cdef Bits* bits
    cdef Py_ssize_t i
    if t.dtype_ > FLOAT64 or not t.layout.flags & CONTIGUOUS:
        raise DTypeError(f"{name}: numbers are drawn into contiguous tensors of floats, not into {t.dtype.name} with strides {t.stride()}")
    if generators is None:
        from autograd_cy.engine import generators
    if tells and recording():
        tell(generators.again(name, generator), [], [t])
    numbers = generators.source(generator)
    if name != "random":
        getattr(numbers, name)(dtype=DTYPES[t.dtype_].name, out=memory_of(t))
        return
    numbers = numbers.bit_generator
    bits = <Bits*> PyCapsule_GetPointer(numbers.capsule, "BitGenerator")
    lock = numbers.lock
    lock.acquire()
    with nogil:                               # NumPy's numbers, to the bit
        for i in range(t.layout.numel):
            if t.dtype_ == FLOAT32:
                (<float*> t.data)[i] = (bits.next_uint32(bits.state) >> 8) * <float> (1.0 / 16777216.0)
            else:
                (<double*> t.data)[i] = bits.next_double(bits.state)
    lock.release()


cdef object drawn_floats(tuple size, str name, object generator, object dtype, object requires_grad):
    cdef int code = code_of(dtype, default_dtype())
    cdef Tensor t
    if code > FLOAT64:
        raise RuntimeError(f"{'rand' if name == 'random' else 'randn'}: expected a floating-point dtype, got {DTYPES[code].name}")
    t = allocate(sizes_of(size), code, "rand")
    draw(t, name, generator)
    return finish(t, requires_grad)


def rand(*size, generator=None, dtype=None, requires_grad=False, device=None):
    """Uniform random numbers from [0, 1)."""
    return drawn_floats(size, "random", generator, dtype, requires_grad)


def randn(*size, generator=None, dtype=None, requires_grad=False, device=None):
    """Normal random numbers of mean 0 and variance 1."""
    return drawn_floats(size, "standard_normal", generator, dtype, requires_grad)


def bernoulli(input, *, generator=None):
    """1 with the probability that the element of `input` gives, else 0; shape and dtype as of `input`, no gradient.

    Raises RuntimeError where a probability lies outside [0, 1], or for dtypes that are not floating point.
    """
    cdef Tensor p = detach(input)
    if p.dtype_ > FLOAT64:
        raise RuntimeError(f"bernoulli: expected floating-point probabilities, got {p.dtype.name}")
    p = own(contiguous_of(p))
    if K.outside_unit(p.dtype_, p.layout.numel, p.data) >= 0:
        raise RuntimeError("bernoulli: all probabilities must lie between 0 and 1")
    return convert(rand(p.shape, generator=generator, dtype=p.dtype) < p, p.dtype)
