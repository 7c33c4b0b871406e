"""Tensors and random numbers made of other functions: new_zeros, logspace, normal, multinomial, exponential_; the state of the generator.

Relies on creation and random. Numbers are drawn through `outside`, so that replays of a captured step draw anew. methods.py makes
methods of some, the package's front and autograd_cy.random functions.
"""

import contextlib

import numpy as np

from ..array.errors import ArgumentError
from . import creation, generators, shape
from .arguments import need_tensor, on_cpu
from .operands import get_default_dtype
from .tensor import Tensor

_DEFAULT = generators.default_generator


# ---- like another tensor

def new_tensor(self, data, *, dtype=None, requires_grad=False, device=None):
    """A copy of data in the dtype of this tensor."""
    return creation.tensor(data, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, device=device)


def new(self, *args):
    """Of sizes a tensor whose values are not set, or one of data, in the dtype of this tensor."""
    return from_call(*args, dtype=self.dtype)


def from_call(*args, dtype=None):
    """What Tensor(2, 3), Tensor([1, 2]) and FloatTensor(...) of older scripts mean: sizes, or data, in the default dtype or `dtype`."""
    dtype = get_default_dtype() if dtype is None else dtype
    if all(isinstance(size, (int, np.integer)) for size in args):
        return creation.empty(args or (0,), dtype=dtype)
    if len(args) != 1:
        raise TypeError(f"Tensor: expected integer sizes or one sequence of data, got {', '.join(type(a).__name__ for a in args)}")
    if isinstance(args[0], Tensor):
        return args[0].to(dtype=dtype)
    if not np.iterable(args[0]):
        raise TypeError(f"Tensor: expected integer sizes or a sequence of data, got {type(args[0]).__name__}; use tensor({args[0]!r})")
    return creation.tensor(args[0], dtype=dtype)


def _typed(name, dtype):
    def make(*args):
        return from_call(*args, dtype=dtype)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Tensor(*args) in {dtype}: sizes, or data."
    return make


FloatTensor, DoubleTensor, LongTensor = _typed("FloatTensor", "float32"), _typed("DoubleTensor", "float64"), _typed("LongTensor", "int64")
IntTensor, ByteTensor, BoolTensor = _typed("IntTensor", "int32"), _typed("ByteTensor", "uint8"), _typed("BoolTensor", "bool")


def _new(name):
    make = getattr(creation, name)

    def new(self, *size, dtype=None, requires_grad=False, device=None):
        return make(*size, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, device=device)
    new.__name__ = new.__qualname__ = f"new_{name}"
    new.__doc__ = f"As {name}(*size), in the dtype of this tensor."
    return new


new_empty, new_zeros, new_ones = _new("empty"), _new("zeros"), _new("ones")


def new_full(self, size, fill_value, *, dtype=None, requires_grad=False, device=None):
    """As full(size, fill_value), in the dtype of this tensor."""
    return creation.full(size, fill_value, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, device=device)


def randint_like(input, low, high=None, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As randint, with the shape and dtype of input."""
    need_tensor(input, "randint_like")
    low, high = (0, low) if high is None else (low, high)
    return generators.randint(low, high, input.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad,
                              device=device)


# ---- filled

def logspace(start, end, steps, base=10.0, *, dtype=None, requires_grad=False, device=None):
    """base ** x for `steps` equally spaced x from start to end, both included."""
    if steps < 0:
        raise ArgumentError(f"logspace: steps must be at least 0, got {steps}")
    values = creation.tensor(np.power(float(base), np.linspace(float(start), float(end), int(steps))))
    out = shape.convert(values, creation.empty(0, dtype=dtype, device=device).dtype)
    return out.requires_grad_() if requires_grad else out


def empty_strided(size, stride, *, dtype=None, requires_grad=False, device=None):
    """A tensor with the given strides (in elements), whose values are not set. Raises RuntimeError for negative strides."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise RuntimeError(f"empty_strided: sizes {size} and strides {stride} must be as many, and not negative")
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    out = creation.empty(count, dtype=dtype, device=device).as_strided(size, stride).detach()
    return out.requires_grad_() if requires_grad else out


def scalar_tensor(s, *, dtype=None, requires_grad=False, device=None):
    """A tensor of 0 dimensions, of the default dtype."""
    return creation.full((), s, dtype=creation.empty(0, dtype=dtype).dtype, requires_grad=requires_grad, device=device)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A tensor of one dimension on the memory of a writable buffer. Raises ValueError for read-only ones."""
    out = creation.from_numpy(np.frombuffer(buffer, dtype=creation.empty(0, dtype=dtype).dtype.name, count=count, offset=offset))
    return out.requires_grad_() if requires_grad else out


# ---- drawn

def _drawn(sizes, dtype, draw, inputs=()):
    """A new tensor of values that draw(arrays of inputs) gives, at every replay too."""
    out = creation.empty(sizes, dtype=dtype)
    creation.outside(lambda given, made: creation.write(made[0], draw(*map(creation.array_of, given))), list(inputs), [out])
    return out


def _numpy(generator):
    return (_DEFAULT if generator is None else generator).numpy


def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, requires_grad=False, device=None):
    """Normal random numbers: of tensors mean and std (either may be a number), or normal(mean, std, size). No gradient.

    Raises RuntimeError for negative std.
    """
    on_cpu(device)
    tensors = [v.detach() for v in (mean, std) if isinstance(v, Tensor)]
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal: std must not be negative, got {std}")
    if isinstance(std, Tensor) and std.numel() and not creation.capturing() and std.detach().amin().item() < 0:
        raise RuntimeError("normal: std must not be negative")
    if not tensors:
        if size is None:
            raise TypeError("normal: size is required where mean and std are numbers")
        sizes = (size,) if hasattr(size, "__index__") else tuple(size)
    elif size is not None:
        raise TypeError("normal: size is for numbers, not for tensors mean and std")
    else:
        sizes = np.broadcast_shapes(*[t.shape for t in tensors])
    dtype = dtype if not tensors else next((t.dtype for t in tensors if t.is_floating_point()), None)
    out = generators.randn(sizes, generator=generator, dtype=dtype)
    mean, std = (v.detach() if isinstance(v, Tensor) else v for v in (mean, std))
    out = (out * std + mean).to(out.dtype)
    return out.requires_grad_() if requires_grad else out


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """num_samples indices drawn by the weights in each row of input: int64, of shape (num_samples,) or (rows, num_samples).

    Raises RuntimeError for negative or infinite weights, for rows of zeros, and without replacement for more draws than weights above 0.
    """
    if not isinstance(input, Tensor) or not input.is_floating_point():
        raise RuntimeError(f"multinomial: expected floating-point weights, got {getattr(input, 'dtype', type(input).__name__)}")
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise RuntimeError(f"multinomial: expected weights in 1 or 2 dimensions, got shape {input.shape}")
    if num_samples < 1 or not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(f"multinomial: can't draw {num_samples} of {input.shape[-1]}" + ("" if replacement else " without replacement"))

    def draw(weights):
        rows = np.atleast_2d(weights).astype(np.float64)
        if not (rows >= 0).all() or not np.isfinite(rows).all():
            raise RuntimeError("multinomial: the weights must be finite and not negative")
        if not (rows.sum(1) > 0).all():
            raise RuntimeError("multinomial: the weights of a row add up to 0")
        numbers = _numpy(generator)
        if replacement:
            bounds = np.cumsum(rows, 1)
            drawn = numbers.random((len(rows), num_samples)) * bounds[:, -1:]
            places = np.stack([np.searchsorted(b, d, side="right") for b, d in zip(bounds, drawn, strict=True)]) if len(rows) else drawn
            last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)      # rounding must not lead beyond it
            return np.minimum(places, last[:, None]).reshape(*weights.shape[:-1], num_samples)
        if ((rows > 0).sum(1) < num_samples).any():
            raise RuntimeError(f"multinomial: a row has fewer than {num_samples} weights above 0")
        with np.errstate(divide="ignore"):
            times = numbers.exponential(size=rows.shape) / rows                  # the first arrivals of independent clocks
        first = np.argsort(times, axis=1, kind="stable")[:, :num_samples]
        return first.reshape(*weights.shape[:-1], num_samples)

    return _drawn((*input.shape[:-1], num_samples), "int64", draw, [input.detach()])


def poisson(input, generator=None):
    """Random numbers of Poisson distributions with the rates in input: its shape and dtype. Raises RuntimeError for negative rates."""
    if not isinstance(input, Tensor) or not input.is_floating_point():
        raise RuntimeError(f"poisson: expected floating-point rates, got {getattr(input, 'dtype', type(input).__name__)}")

    def draw(rates):
        if not (rates >= 0).all():
            raise RuntimeError("poisson: the rates must not be negative")
        return _numpy(generator).poisson(rates)

    return _drawn(input.shape, input.dtype, draw, [input.detach()])


def binomial(count, prob, generator=None):
    """Random numbers of successes in `count` trials of probability `prob`, which broadcast: in count's dtype. Raises RuntimeError for
    tensors that are no floating-point ones; ValueError where no such distribution exists."""
    for given in (count, prob):
        if not isinstance(given, Tensor) or not given.is_floating_point():
            raise RuntimeError(f"binomial: expected floating-point tensors, got {getattr(given, 'dtype', type(given).__name__)}")
    return _drawn(np.broadcast_shapes(count.shape, prob.shape), count.dtype,
                  lambda n, p: _numpy(generator).binomial(n.astype(np.int64), p), [count.detach(), prob.detach()])


def exponential_(self, lambd=1.0, *, generator=None):
    """Every element drawn from the exponential distribution of rate lambd."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_: lambd must be above 0, got {lambd}")
    return generators.random_fill(self, generator, "exponential", 1 / lambd)


def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Every element drawn from the Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_: sigma must be above 0, got {sigma}")
    return self.copy_(_drawn(self.shape, self.dtype, lambda: _numpy(generator).standard_cauchy(self.shape) * sigma + median))


def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Every element exp of a number drawn from the normal distribution."""
    if std <= 0:
        raise RuntimeError(f"log_normal_: std must be above 0, got {std}")
    return generators.random_fill(self, generator, "lognormal", mean, std)


def geometric_(self, p, *, generator=None):
    """Every element drawn from the geometric distribution: the number of trials up to the first success, of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_: p must lie between 0 and 1, got {p}")
    return generators.random_fill(self, generator, "geometric", p)


def bernoulli_(self, p=0.5, *, generator=None):
    """Every element 1 with probability p (a number or a tensor), else 0."""
    if not isinstance(p, Tensor):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_: p must lie between 0 and 1, got {p}")
        return generators.random_fill(self, generator, "binomial", 1, p)
    return self.copy_(generators.bernoulli(p.detach().expand(self.shape), generator=generator))


_LARGEST = {"float32": 1 << 24, "float64": 1 << 53, "int64": (1 << 63) - 1, "int32": (1 << 31) - 1, "uint8": 255, "bool": 1}


def random_(self, from_=0, to=None, *, generator=None):
    """Every element a whole number from [from_, to); random_(to) counts from 0; without bounds: up to what the dtype holds exactly."""
    if to is None and from_:
        from_, to = 0, from_
    if to is None:
        to = _LARGEST[self.dtype.name] + (not self.is_floating_point())
    if from_ >= to:
        raise RuntimeError(f"random_: from {from_} must be below to {to}")
    return self.copy_(_drawn(self.shape, self.dtype, lambda: _numpy(generator).integers(from_, to - 1, self.shape, endpoint=True)))


# ---- the generator that all draw from unless told otherwise

def seed():
    """Start the random numbers anew from an unpredictable seed, which is returned."""
    return _DEFAULT.seed()


def initial_seed():
    """The seed of the random numbers."""
    return _DEFAULT.initial_seed()


def get_rng_state():
    """What set_rng_state takes to continue from here."""
    return _DEFAULT.get_state()


def set_rng_state(new_state):
    """Continue from a state of get_rng_state."""
    _DEFAULT.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Random numbers drawn within the block leave the state outside it as it was."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


METHODS = (new, new_tensor, new_empty, new_zeros, new_ones, new_full, exponential_, cauchy_, log_normal_, geometric_, bernoulli_, random_,
           multinomial)
