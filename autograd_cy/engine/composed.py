"""Functions that are short expressions of rows: isclose, allclose, ldexp, positive, prelu.

Relies on elementwise functions, choose.pyx and selection.py. methods.py makes methods of them, the package's front functions.
"""

from . import elementwise
from .choose import prelu_row
from .elementwise import eq
from .tensor import Tensor

INF = float("inf")


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|, or both are equal; NaNs count as equal if `equal_nan`.

    Raises RuntimeError where the dtypes differ or a tolerance is negative.
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError(f"isclose: expected two tensors, got {type(input).__name__} and {type(other).__name__}")
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose: rtol and atol must be greater than or equal to zero, got {rtol} and {atol}")
    a, b = input.detach(), other.detach()
    close = eq(a, b)
    if equal_nan and a.is_floating_point():
        close = close | (a.isnan() & b.isnan())
    if not rtol and not atol:
        return close
    if not a.is_floating_point():
        a, b = a.double(), b.double()
    off = (a - b).abs()
    return close | ((off < INF) & (off <= atol + (rtol * b).abs()))


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
    return input.mul_(_power_of_two(input, other))


def positive(input: Tensor) -> Tensor:
    """The input itself. Raises RuntimeError for bools."""
    if input.dtype.name == "bool":
        raise RuntimeError("positive: the `+` operator is not defined for bool tensors")
    return input


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x if x > 0, else weight * x; weight has one element, or one for each channel (dimension 1)."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: expected weight to have 0 or 1 dimensions, but got shape {tuple(weight.shape)}")
    count = weight.numel()
    if count == 1:
        return prelu_row(input, weight.reshape(()) if weight.ndim else weight)
    channels = input.shape[1] if input.ndim > 1 else 1
    if count != channels:
        raise RuntimeError("prelu: Mismatch of parameter numbers and input channel size. "
                           f"Found parameter numbers = {count} and channel size = {channels}")
    return prelu_row(input, weight.reshape((1, count) + (1,) * (input.ndim - 2)))


__all__ = ["allclose", "isclose", "ldexp", "ldexp_", "positive", "prelu"]
