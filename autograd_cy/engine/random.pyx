# Random numbers of the two ways that are drawn most.
#
# Relies on creation, and on NumPy's bit generators, through generators.py, which has all other ways and relies on this.

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uint64_t

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64
from autograd_cy.array.layout cimport CONTIGUOUS
from autograd_cy.engine.arguments cimport sizes_from
from autograd_cy.engine.creation cimport allocate, array_of, code_of, finish, tell
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport GRAIN, contiguous_of, default_dtype
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.kernels.table cimport ALL_VECTORS, BLOCK, K, recording

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import DTypeError, worded
from autograd_cy.engine.shape import convert, detach
from autograd_cy.ops import loop_id

cdef struct Bits:                             # bitgen_t of numpy/random/bitgen.h
    void* state
    uint64_t (*next_uint64)(void* state) noexcept nogil
    uint32_t (*next_uint32)(void* state) noexcept nogil
    double (*next_double)(void* state) noexcept nogil

cdef object generators = None                 # generators.py, from the first use on


cdef int LOG_LOOP = loop_id("log"), SQRT_LOOP_ = loop_id("sqrt"), SIN_LOOP = loop_id("sin"), COS_LOOP = loop_id("cos")


cdef void map_block(int loop, Py_ssize_t n, float* out, float* x) noexcept nogil:
    cdef char* p[2]
    p[0], p[1] = <char*> out, <char*> x
    K.loops[loop][FLOAT32][ALL_VECTORS](n, p, NULL)


cdef void normal_numbers(Bits* bits, Py_ssize_t n, float* out) noexcept nogil:
    """Pairs of normal numbers from pairs of uniform ones (Box and Muller, 1958), 64 bits of the source for each pair: a fifth of the time
    of NumPy's ziggurat, as loops are vectorised. The numbers of a shorter tensor are the first of a longer one."""
    cdef float radius[BLOCK]
    cdef float angle[BLOCK]
    cdef float sine[BLOCK]
    cdef uint64_t word
    cdef Py_ssize_t i, at = 0, pairs
    while at < n:
        pairs = min((n - at + 1) // 2, <Py_ssize_t> BLOCK)
        for i in range(pairs):
            word = bits.next_uint64(bits.state)
            radius[i] = <float> (<uint32_t> word >> 1) * <float> (1.0 / 2147483648.0) + <float> (1.0 / 4294967296.0)     # from (0, 1]
            angle[i] = <float> <uint32_t> (word >> 40) * <float> (6.283185307179586 / 16777216.0)
        map_block(LOG_LOOP, pairs, radius, radius)
        for i in range(pairs):
            radius[i] *= -2
        map_block(SQRT_LOOP_, pairs, radius, radius)
        map_block(SIN_LOOP, pairs, sine, angle)
        map_block(COS_LOOP, pairs, angle, angle)
        for i in range(pairs):
            out[at] = radius[i] * angle[i]
            if at + 1 < n:
                out[at + 1] = radius[i] * sine[i]
            at += 2


cdef void fill_numbers(Bits* bits, Tensor t, bint normal, double p, double scale) noexcept nogil:
    cdef Py_ssize_t i
    cdef float* f = <float*> t.data
    cdef double* d = <double*> t.data
    if normal:
        normal_numbers(bits, t.layout.numel, f)
    elif t.dtype_ == FLOAT32:                 # NumPy's numbers, to the bit
        for i in range(t.layout.numel):
            f[i] = (bits.next_uint32(bits.state) >> 8) * <float> (1.0 / 16777216.0)
        for i in range(t.layout.numel if p > 0 else 0):
            f[i] = <float> scale if f[i] >= <float> p else 0
    else:
        for i in range(t.layout.numel):
            d[i] = bits.next_double(bits.state)
        for i in range(t.layout.numel if p > 0 else 0):
            d[i] = scale if d[i] >= p else 0


def draw(Tensor t not None, str name, generator, double p=0, double scale=1, bint tells=True):
    """Fill t by a method of NumPy's generator, "random" and single-precision "standard_normal" without it. p: then `scale` where the
    number is at least p, else 0. tells: a capture of it."""
    global generators
    cdef Bits* bits
    cdef bint normal = name != "random"
    if t.dtype_ > FLOAT64 or not t.layout.flags & CONTIGUOUS:
        raise worded(DTypeError, "{}: numbers are drawn into contiguous tensors of floats, not into {.dtype.name} with strides {}",
                                 name, t, t.stride())
    if generators is None:
        from autograd_cy.engine import generators
    if tells and recording():
        tell(generators.again(name, generator, p, scale), [], [t])
    numbers = generators.source(generator)
    if normal and t.dtype_ == FLOAT64:
        getattr(numbers, name)(dtype=DTYPES[t.dtype_].name, out=array_of(t))
        return
    numbers = numbers.bit_generator
    bits = <Bits*> PyCapsule_GetPointer(numbers.capsule, "BitGenerator")
    lock = numbers.lock
    lock.acquire()
    if t.layout.numel < GRAIN:
        fill_numbers(bits, t, normal, p, scale)
    else:
        with nogil:
            fill_numbers(bits, t, normal, p, scale)
    lock.release()


cdef object drawn_floats(tuple sizes, object size, str name, object generator, object dtype, object requires_grad, object device):
    cdef int code = code_of(dtype, default_dtype())
    cdef Tensor t
    if code > FLOAT64:
        raise worded(RuntimeError, "{}: expected a floating-point dtype, got {}",
                                   'rand' if name == 'random' else 'randn', DTYPES[code].name)
    t = allocate(sizes_from(sizes, size), code, "rand")
    draw(t, name, generator)
    return finish(t, requires_grad, device)


def rand(*sizes, size=None, generator=None, dtype=None, requires_grad=False, device=None):
    """Uniform random numbers from [0, 1)."""
    return drawn_floats(sizes, size, "random", generator, dtype, requires_grad, device)


def randn(*sizes, size=None, generator=None, dtype=None, requires_grad=False, device=None):
    """Normal random numbers of mean 0 and variance 1."""
    return drawn_floats(sizes, size, "standard_normal", generator, dtype, requires_grad, device)


def bernoulli(input, *, generator=None):
    """1 with the probability that the element of `input` gives, else 0; shape and dtype as of `input`, no gradient.

    Raises RuntimeError where a probability lies outside [0, 1], or for dtypes that are not floating point.
    """
    cdef Tensor p = detach(input)
    if p.dtype_ > FLOAT64:
        raise worded(RuntimeError, "bernoulli: expected floating-point probabilities, got {.dtype.name}", p)
    p = own(contiguous_of(p))
    if K.outside_unit(p.dtype_, p.layout.numel, p.data) >= 0:
        raise RuntimeError("bernoulli: all probabilities must lie between 0 and 1")
    return convert(rand(p.shape, generator=generator, dtype=p.dtype) < p, p.dtype)
