"""Generators of random numbers, and what is drawn from them beside floats (random.pyx).

Relies on creation, random.pyx, and on NumPy's bit generators. nn (initialisers, dropout), data and users rely on it.
"""

import os
from _thread import _local                      # threading.local, without the half millisecond that threading takes

import numpy as np

from ..array.dtypes import as_dtype, int64
from ..array.errors import ArgumentError
from .arguments import need_tensor, on_cpu
from .creation import escapes, outside, write
from .random import bernoulli as bernoulli
from .random import draw, rand, randn
from .rows import empty_as


class Generator:
    """A source of random numbers over NumPy's bit generator; `manual_seed` makes its numbers repeatable."""

    def __init__(self, seed=None, device="cpu"):
        on_cpu(seed if isinstance(seed, str) else device)               # torch.Generator("cpu"): the device comes first there
        self.manual_seed(None if isinstance(seed, str) else seed)

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
        escapes("seed()")
        chosen = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self):
        """The seed that the sequence belongs to."""
        escapes("initial_seed()")
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
        escapes("get_state()")
        return self.numpy.bit_generator.state

    def set_state(self, state):
        """Continue from a state of get_state."""
        def place(_inputs, _outputs):
            self.numpy.bit_generator.state = state

        outside(place, [], [])


class _Refused(_local):
    draws = False


default_generator, _refused = Generator(), _Refused()


def manual_seed(seed):
    """Make the random numbers that follow repeatable; the default generator is returned."""
    return default_generator.manual_seed(seed)


def refuse_draws(refuse, nested=True):
    """Whether random numbers are an error in this thread, as in vmap with randomness="error"; returns what was before. nested: a
    refusal from outside holds on."""
    before = _refused.draws
    _refused.draws = bool(refuse or nested and before)
    return before


def source(generator):
    """NumPy's generator of a Generator (None: the default one)."""
    if _refused.draws:
        raise RuntimeError("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                           "randomness flags on vmap or perform the randomness operation out of vmap")
    generator = default_generator if generator is None else generator
    return generator._numpy or generator.numpy


def again(name, generator, p, scale):
    """What a replay calls for a draw of floats."""
    return lambda _inputs, outputs: draw(outputs[0], name, generator, p, scale, False)


def rand_like(input, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As rand, with the shape and dtype of `input`."""
    need_tensor(input, "rand_like")
    return rand(input.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad, device=device)


def randn_like(input, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As randn, with the shape and dtype of `input`."""
    need_tensor(input, "randn_like")
    return randn(input.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad, device=device)


def randint(low=0, high=None, size=None, *, generator=None, dtype=None, requires_grad=False, device=None):
    """Random integers from [low, high) (or [0, low)), int64 by default."""
    if size is None and high is not None and not isinstance(high, int):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: size is required")
    on_cpu(device)
    if low >= high:
        raise ArgumentError(f"randint: low {low} must be below high {high}")
    out = _filled(_integers(tuple(size), dtype, "randint"), generator, "integers", low, high)
    return out.requires_grad_() if requires_grad else out


def randperm(n, *, generator=None, dtype=None, requires_grad=False, device=None):
    """A random permutation of 0 ... n - 1 (int64)."""
    if not hasattr(n, "__index__"):
        raise TypeError(f"randperm: expected an integer n, got {type(n).__name__}")
    if n < 0:
        raise ArgumentError(f"randperm: n must be at least 0, got {n}")
    on_cpu(device)
    out = _integers((n,), dtype, "randperm")
    outside(lambda _inputs, outputs: write(outputs[0], source(generator).permutation(outputs[0].shape[0])), [], [out])
    return out.requires_grad_() if requires_grad else out


def _integers(size, dtype, name):
    return empty_as(int64.code if dtype is None else as_dtype(dtype).code, size, name)


def _filled(t, generator, draw, *args):
    """t, filled by a method of NumPy's generator."""
    outside(lambda _inputs, outputs: write(outputs[0], getattr(source(generator), draw)(*args, size=outputs[0].shape)), [], [t])
    return t


def random_fill(t, generator, draw, *args):
    """Overwrite t in place by a method of NumPy's generator: for uniform_, normal_ and initialisers."""
    return t.copy_(_filled(empty_as(t, t.shape), generator, draw, *args))
