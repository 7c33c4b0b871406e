# Random numbers: generators, tensors filled from them, in place and new.
#
# Relies on creation, and on NumPy's bit generators. nn (initialisers, dropout), data and users rely on it.

import os

import numpy as np

from autograd_cy.array.dtype cimport FLOAT64, INT64
from autograd_cy.engine.creation cimport allocate, code_of, finish, memory_of, sizes_of, tell
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, default_dtype
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.kernels.table cimport K, escape, recording

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import ArgumentError
from autograd_cy.engine.creation import array_of, outside, write
from autograd_cy.engine.shape import convert, detach


class Generator:
    """A source of random numbers over NumPy's bit generator; `manual_seed` makes its numbers repeatable."""

    def __init__(self, seed=None, device="cpu"):
        self.manual_seed(None if isinstance(seed, str) else seed)       # torch.Generator("cpu"): the device comes first there

    def manual_seed(self, seed):
        """Start the sequence that belongs to `seed` (an integer; None: an unpredictable one)."""
        if seed is not None:
            seed = int(seed) & 0xFFFFFFFFFFFFFFFF

        def start(_inputs, _outputs):
            self._seed, self._numpy = seed, None

        outside(start, [], [])
        return self

    def seed(self):
        """Start a sequence that belongs to an unpredictable seed, which is returned."""
        escape("seed()")
        chosen = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self):
        """The seed that the sequence belongs to."""
        escape("initial_seed()")
        if self._seed is None:
            if self._numpy is not None:
                return int(self._numpy.bit_generator.seed_seq.entropy)
            self._seed = int.from_bytes(os.urandom(8), "little")
        return self._seed

    @property
    def numpy(self):
        """NumPy's generator, made when first used: importing numpy.random takes as long as importing this library."""
        if self._numpy is None:
            made = np.random.Generator(np.random.PCG64(self._seed))
            if self._numpy is None:      # another thread may have made one during the import
                self._numpy = made
        return self._numpy

    def get_state(self):
        """What set_state takes to continue from here."""
        escape("get_state()")
        return self.numpy.bit_generator.state

    def set_state(self, state):
        """Continue from a state of get_state."""
        def place(_inputs, _outputs):
            self.numpy.bit_generator.state = state

        outside(place, [], [])


default_generator = Generator()


def manual_seed(seed):
    """Make the random numbers that follow repeatable; the default generator is returned."""
    return default_generator.manual_seed(seed)


cdef extern from *:
    """
    static __thread int ag_draws_refused = 0;
    """
    int ag_draws_refused


def refuse_draws(refuse, nested=True):
    """Whether random numbers are an error in this thread, as in vmap with randomness="error"; returns what was before. nested: a
    refusal from outside holds on."""
    global ag_draws_refused
    before = ag_draws_refused
    ag_draws_refused = refuse or (nested and before)
    return bool(before)


cdef object source(object generator):
    if ag_draws_refused:
        raise RuntimeError("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                           "randomness flags on vmap or perform the randomness operation out of vmap")
    return (default_generator if generator is None else generator).numpy


cdef int float_code(object dtype, str name) except -1:
    cdef int code = code_of(dtype, default_dtype())
    if code > FLOAT64:
        raise RuntimeError(f"{name}: expected a floating-point dtype, got {DTYPES[code].name}")
    return code


cdef int draw_floats(str name, object generator, Tensor t) except -1:
    """Fill t by a method of NumPy's generator. (No call through `outside`, which would cost a third of a small rand.)"""
    if recording():
        tell(replay_of(name, generator), [], [t])
    getattr(source(generator), name)(dtype=DTYPES[t.dtype_].name, out=memory_of(t))
    return 0


cdef object replay_of(str name, object generator):
    return lambda _inputs, outputs: getattr(source(generator), name)(dtype=outputs[0].dtype.name, out=array_of(outputs[0]))


def rand(*size, generator=None, dtype=None, requires_grad=False, device=None):
    """Uniform random numbers from [0, 1)."""
    cdef int code = float_code(dtype, "rand")
    cdef Tensor t = allocate(sizes_of(size), code, "rand")
    draw_floats("random", generator, t)
    return finish(t, requires_grad)


def randn(*size, generator=None, dtype=None, requires_grad=False, device=None):
    """Normal random numbers of mean 0 and variance 1."""
    cdef int code = float_code(dtype, "randn")
    cdef Tensor t = allocate(sizes_of(size), code, "randn")
    draw_floats("standard_normal", generator, t)
    return finish(t, requires_grad)


def rand_like(input, *, dtype=None, requires_grad=False):
    """As rand, with the shape and dtype of `input`."""
    return rand(input.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randn_like(input, *, dtype=None, requires_grad=False):
    """As randn, with the shape and dtype of `input`."""
    return randn(input.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randint(low, high=None, size=None, *, generator=None, dtype=None, requires_grad=False):
    """Random integers from [low, high) (or [0, low)), int64 by default."""
    if size is None and high is not None and not isinstance(high, int):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: size is required")
    if low >= high:
        raise ArgumentError(f"randint: low {low} must be below high {high}")
    return finish(drawn(tuple(size), code_of(dtype, INT64), generator, "integers", (low, high)), requires_grad)


def randperm(n, *, generator=None, dtype=None):
    """A random permutation of 0 ... n - 1 (int64)."""
    if n < 0:
        raise ArgumentError(f"randperm: n must be at least 0, got {n}")
    cdef Tensor t = allocate((n,), code_of(dtype, INT64), "randperm")
    outside(lambda _inputs, outputs: write(outputs[0], source(generator).permutation(outputs[0].shape[0])), [], [t])
    return t


cdef Tensor drawn(object shape, int dtype, object generator, str draw, tuple args):
    """A new tensor filled by a method of NumPy's generator."""
    cdef Tensor t
    if any([size < 0 for size in shape]):
        raise ArgumentError(f"negative sizes are not allowed, got {shape}")
    t = allocate(shape, dtype, draw)
    outside(lambda _inputs, outputs: write(outputs[0], getattr(source(generator), draw)(*args, size=outputs[0].shape)), [], [t])
    return t


def random_fill(Tensor t, generator, draw, *args):
    """Overwrite t in place by a method of NumPy's generator: for uniform_, normal_ and initialisers."""
    return t.copy_(drawn(t.shape, t.dtype_, generator, draw, args))


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
