"""Functions that are short expressions of other rows: allclose, ldexp, gcd, gradient and their like.

Relies on elementwise functions, choose.pyx and Tensor's methods. methods.py makes methods of them, the package's front functions.
"""

import numpy as np

from ..array.dtypes import bool as bool_
from ..array.dtypes import int32
from . import elementwise
from .arguments import need_tensor
from .choose import clamp_, isclose, sub, where
from .creation import arange, array_of, capturing, empty, full, ones_like, outside, zeros_code
from .joins import cat
from .modes import is_grad_enabled
from .reduce import norm
from .routines import call_routine
from .rows import packed, record_row
from .shape import sum_to
from .tensor import Tensor

PI, LOG_PI = 3.141592653589793, 1.1447298858494002


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as `isclose` has it."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def _power_of_two(input, other):
    """2 ** other; of integers in the dtype of input, if that is a floating-point one."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError(f"ldexp: expected two tensors, got {type(input).__name__} and {type(other).__name__}")
    return elementwise.exp2(other.to(input.dtype) if input.is_floating_point() and not other.is_floating_point() else other)


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2 ** other."""
    return input * _power_of_two(input, other)


def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In place: input * 2 ** other."""
    power = _power_of_two(input, other)
    return input.mul_(power)


def positive(input: Tensor) -> Tensor:
    """The input itself. Raises RuntimeError for bools."""
    need_tensor(input, "positive")
    if input.dtype.name == "bool":
        raise RuntimeError("positive: the `+` operator is not defined for bool tensors")
    return input


def multigammaln(input: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function: p (p - 1) / 4 log(pi) + the sum of lgamma(x - k / 2) over k < p.

    Raises RuntimeError for p below 1, or above 65536: a sum of so many terms for each element.
    """
    if not isinstance(p, int) or not 1 <= p <= 1 << 16:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, and at most {1 << 16}, got {p}")
    constant = p * (p - 1) / 4 * LOG_PI
    if p <= 8:
        total = elementwise.lgamma(input)
        for k in range(1, p):
            total = total + elementwise.lgamma(input - k / 2)
        return total + constant
    terms = input.unsqueeze(-1) - arange(p, dtype=input.dtype if input.is_floating_point() else None) / 2
    return elementwise.lgamma(terms).sum(-1) + constant


def float_power(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """input ** exponent in float64."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("float_power: expected a Tensor, got two numbers")
    base = input.double() if isinstance(input, Tensor) else float(input)
    return base ** (exponent.double() if isinstance(exponent, Tensor) else float(exponent))


def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """other - alpha * input."""
    return sub(other, input, alpha=alpha)


def cross_entropy_back(g, x, counted, target, weight, ignore_index, smoothing, reduction):
    """The gradient of losses of classes: g (softmax(x) sum_c q_c - q), where q are the weighted, smoothed targets; without softmax where x
    is the shape of what are logarithms already."""
    logs = not isinstance(x, Tensor)
    shape = x if logs else x.shape
    c = 1 if len(shape) > 1 else 0
    classes, each = shape[c], (shape[c], *[1] * (len(shape) - c - 1))
    target = target.reshape(shape[:c] + shape[c + 1:])
    counts = target != ignore_index
    q = (where(counts, target, 0).unsqueeze(c) == arange(classes).reshape(each)).to(g.dtype)
    if weight is not None:
        weight = weight.reshape(each)
        q = q * weight * (1 - smoothing) + weight.expand(shape) * (smoothing / classes)
    elif smoothing:
        q = q * (1 - smoothing) + smoothing / classes
    q = where(counts.unsqueeze(c), q, 0)
    if reduction == "mean":
        g = g / counted
    g = where(counts, g if reduction == "none" else g.expand(target.shape), 0).unsqueeze(c)
    return -(g * q) if logs else g * (x.softmax(c) * q.sum(c, keepdim=True) - q)


def margins(x, target):
    """The row multilabel_margin: of each row of x, whose targets stand in the same row up to a negative number."""
    losses = zeros_code(x.shape[:1], x.dtype.code)
    slopes = zeros_code(x.shape, x.dtype.code) if x.requires_grad and is_grad_enabled() else None
    call_routine("distances.margins", (losses, slopes, packed(x), packed(target)))
    return losses if slopes is None else record_row("multilabel_margin", losses, (x,), (target,), (slopes,))


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers, by Euclid's algorithm; gcd(0, 0) = 0."""
    need_tensor(input, "gcd")
    need_tensor(other, "gcd")
    if input.is_floating_point() or other.is_floating_point() or "bool" in (input.dtype.name, other.dtype.name):
        raise TypeError(f"gcd: expected integers, got {input.dtype} and {other.dtype}")
    a, b = (input + other * 0).abs(), (other + input * 0).abs()
    for _ in range(92):                     # the most steps that 64-bit numbers can take (Lame, 1844)
        busy = b != 0
        if not capturing() and not bool(busy.any()):
            break
        a, b = where(busy, b, a), where(busy, a % where(busy, b, 1), b)
    return a


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers; 0 where one of them is 0."""
    divisor = gcd(input, other)
    return where(divisor == 0, 0, (input // where(divisor == 0, 1, divisor) * other).abs())


def real(input: Tensor) -> Tensor:
    """input: all tensors are real."""
    return need_tensor(input, "real")


def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """A tensor like input with value, a number or a tensor of 0 dimensions, in every element."""
    return need_tensor(input, "fill").clone().fill_(value)


def isreal(input: Tensor) -> Tensor:
    """True everywhere: all tensors are real."""
    need_tensor(input, "isreal")
    return ones_like(input, dtype=bool_)


def angle(input: Tensor) -> Tensor:
    """The argument of a real number: 0, pi where it is negative, NaN where it is that. The gradient is 0."""
    need_tensor(input, "angle")
    return where(input < 0, PI, where(elementwise.isnan(input), input, 0.0))


def _exponent(inputs, outputs):
    array_of(outputs[0])[...] = np.frexp(array_of(inputs[0]))[1]


def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """(mantissa, exponent), input = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1; 0, infinities and NaN have the exponent 0.

    The exponent is int32, and a constant to derivatives. Raises RuntimeError for integers.
    """
    need_tensor(input, "frexp")
    if not input.is_floating_point():
        raise RuntimeError(f"frexp: expected a floating-point tensor, got {input.dtype}")
    exponent = empty(input.shape, dtype=int32)
    outside(_exponent, [input.detach()], [exponent])
    half = elementwise.floor_divide(exponent, 2)          # in two steps: 2 ** -exponent of a subnormal number may overflow
    return (input * elementwise.exp2((-half).to(input.dtype))) * elementwise.exp2((half - exponent).to(input.dtype)), exponent


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Every slice along dim whose p-norm is above maxnorm, scaled down to it.

    The factor is maxnorm / (norm + 1e-7), as in PyTorch. Raises RuntimeError for fewer than two dimensions, for p not above 0 or
    maxnorm below 0.
    """
    need_tensor(input, "renorm")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if not p > 0 or not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected p above 0 and maxnorm at least 0, got {p} and {maxnorm}")
    kept = range(input.ndim)[dim]
    length = norm(input, p, tuple([d for d in range(input.ndim) if d != kept]), True)
    return input * where(length > maxnorm, maxnorm / (length + 1e-7), 1.0)


def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Derivatives of sampled values along dim (default: all), one tensor each: central differences, exact for parabolas, and one-sided
    ones of `edge_order` at the borders.

    spacing: the distance of neighbours, or for each dim a distance or a tensor of coordinates. Raises RuntimeError for other edge orders
    than 1 and 2, a dimension with fewer than edge_order + 1 elements, and spacings that do not fit.
    """
    need_tensor(input, "gradient")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: edge_order has to be 1 or 2, got {edge_order}")
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(f"gradient: expected a spacing for each of {len(dims)} dimensions, got {len(spacings)}")
    input = input if input.is_floating_point() else input * 1.0
    return tuple([_differences(input.movedim(d, -1), h, edge_order).movedim(-1, d) for d, h in zip(dims, spacings, strict=True)])


def _differences(f, spacing, edge_order):
    """`gradient` along the last dimension."""
    n = f.shape[-1]
    if n < edge_order + 1:
        raise RuntimeError(f"gradient: expected at least edge_order + 1 = {edge_order + 1} elements in each dimension, got shape {f.shape}")
    if isinstance(spacing, Tensor) and spacing.ndim:
        if spacing.shape != (n,):
            raise RuntimeError(f"gradient: expected {n} coordinates, got shape {spacing.shape}")
        h = spacing[1:] - spacing[:-1]
    else:
        h = full((n - 1,), float(spacing), dtype=f.dtype)
    slopes = (f[..., 1:] - f[..., :-1]) / h
    a, b = h[:-1], h[1:]
    parts = [slopes[..., :1], (slopes[..., :-1] * b + slopes[..., 1:] * a) / (a + b), slopes[..., -1:]]
    if edge_order == 2:                           # the slope of the parabola through the last three points
        parts[0] = parts[0] + (slopes[..., :1] - slopes[..., 1:2]) * (a / (a + b))[:1]
        parts[2] = parts[2] + (slopes[..., -1:] - slopes[..., -2:-1]) * (b / (a + b))[-1:]
    return cat(parts, -1)


def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """The index in each dimension of places counted in row-major order. Raises ValueError for places that are outside of shape."""
    if need_tensor(indices, "unravel_index").is_floating_point() or indices.dtype is bool_:
        raise TypeError(f"unravel_index: expected indices of an integer dtype, got {indices.dtype.name}")
    found = []
    for size in reversed([shape] if isinstance(shape, int) else list(shape)):
        found.append(indices % size)
        indices = elementwise.floor_divide(indices, size)
    if indices.any():
        raise ValueError(f"unravel_index: a place is out of range for the shape {shape}")
    return tuple(reversed(found))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other."""
    need_tensor(input, "dist")
    need_tensor(other, "dist")
    return norm(input - other, p)


def clamp_min_(self: Tensor, min: Tensor | float) -> Tensor:
    """In place: input, at least min."""
    return clamp_(self, min=min)


def clamp_max_(self: Tensor, max: Tensor | float) -> Tensor:
    """In place: input, at most max."""
    return clamp_(self, max=max)


def sum_to_size(self: Tensor, *size: int) -> Tensor:
    """The sum over the dimensions that broadcasting from `size` would have stretched."""
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if wanted == self.shape:
        return self
    more = self.ndim - len(wanted)
    if more < 0 or not all(n == 1 or n == m for n, m in zip(wanted, self.shape[more:], strict=True)):
        raise RuntimeError(f"sum_to_size: size {wanted} is not expandable to shape {self.shape}")
    return sum_to(self if self.is_floating_point() else self.long(), wanted)


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """In place: the main diagonal becomes fill_value; of a tall matrix, with `wrap`, again after each block of width + 1 rows."""
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: expected a matrix, or equal sizes in more dimensions, got shape {self.shape}")
    rows, columns = self.shape[0], min(self.shape)
    if self.ndim > 2:
        self.as_strided((columns,), (sum(self.stride()),), self.storage_offset()).fill_(fill_value)
        return self
    for start in range(0, rows if wrap and columns else min(rows, 1), self.shape[1] + 1):
        self[start:].diagonal().fill_(fill_value)
    return self


__all__ = [
    "allclose", "angle", "clamp_max_", "clamp_min_", "dist", "fill", "fill_diagonal_", "float_power", "frexp", "gcd", "gradient", "isreal",
    "lcm", "ldexp", "ldexp_", "multigammaln", "positive", "real", "renorm", "rsub", "sum_to_size",
    "unravel_index",
]
