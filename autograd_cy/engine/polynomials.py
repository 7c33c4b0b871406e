"""Orthogonal polynomials of a degree n, as functions of torch.special: by their recurrences, so with derivatives of any order.

Relies on operations of tensors. special.py has the names. The recurrences: NIST Digital Library of Mathematical Functions, 18.9.
"""

from .choose import where
from .creation import full_like, ones_like, zeros_like
from .joins import broadcast_tensors
from .operands import get_default_dtype
from .tensor import Tensor
from .types import result_type

MOST = 100_000                # degrees: a recurrence goes through all below


def _chebyshev(x, k, p, q):
    return 2 * x * p - q


# Name -> (what it is, the polynomial of degree 1, that of degree k + 1 from those of k and k - 1)
RECURRENCES = {
    "chebyshev_polynomial_t": ("Chebyshev's polynomials of the first kind, cos(n arccos(x))", lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": ("Chebyshev's polynomials of the second kind", lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": ("Chebyshev's polynomials of the third kind", lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": ("Chebyshev's polynomials of the fourth kind", lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": ("Hermite's polynomials, the physicists' (weight exp(-x^2))", lambda x: 2 * x,
                             lambda x, k, p, q: 2 * (x * p - k * q)),
    "hermite_polynomial_he": ("Hermite's polynomials, the probabilists' (weight exp(-x^2 / 2))", lambda x: x,
                              lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": ("Laguerre's polynomials", lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": ("Legendre's polynomials", lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def _evaluate(name, input, n, shifted):
    if not isinstance(input, Tensor) and not isinstance(n, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(input).__name__} and {type(n).__name__}")
    _, first, following = RECURRENCES[name]
    several = isinstance(n, Tensor)
    dtype = result_type(input, n) if several else input.dtype
    dtype = dtype if dtype.is_floating_point else get_default_dtype()
    x = input.to(dtype) if isinstance(input, Tensor) else full_like(n, input, dtype=dtype)
    if several:
        x, n = broadcast_tensors(x, n.to(dtype).trunc())
        most = int(n.max()) if n.numel() else 0
    else:
        most = int(n)
    if most > MOST:
        raise ValueError(f"{name}: the degree {most} is above {MOST}")
    if most < 0:
        return zeros_like(x)
    x = 2 * x - 1 if shifted else x
    now = before = ones_like(x)
    result = where(n < 0, 0.0, now) if several else now
    for k in range(most):
        before, now = now, following(x, k, now, before) if k else first(x)
        result = where(n == k + 1, now, result) if several else now
    return result


def _function(name, shifted=False):
    def polynomial(input, n):
        return _evaluate(name, input, n, shifted)
    polynomial.__name__ = polynomial.__qualname__ = "shifted_" * shifted + name
    text = RECURRENCES[name][0] + ", at 2 x - 1" * shifted
    polynomial.__doc__ = (f"{text}. The degree n, a number or a tensor, is cut off to an integer; 0 where it is negative.\n\n"
                          f"    Raises TypeError without a tensor, ValueError for a degree above {MOST}.")
    return polynomial


chebyshev_polynomial_t, shifted_chebyshev_polynomial_t = _function("chebyshev_polynomial_t"), _function("chebyshev_polynomial_t", True)
chebyshev_polynomial_u, shifted_chebyshev_polynomial_u = _function("chebyshev_polynomial_u"), _function("chebyshev_polynomial_u", True)
chebyshev_polynomial_v, shifted_chebyshev_polynomial_v = _function("chebyshev_polynomial_v"), _function("chebyshev_polynomial_v", True)
chebyshev_polynomial_w, shifted_chebyshev_polynomial_w = _function("chebyshev_polynomial_w"), _function("chebyshev_polynomial_w", True)
hermite_polynomial_h, hermite_polynomial_he = _function("hermite_polynomial_h"), _function("hermite_polynomial_he")
laguerre_polynomial_l, legendre_polynomial_p = _function("laguerre_polynomial_l"), _function("legendre_polynomial_p")
