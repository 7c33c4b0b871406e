"""Choosing between values: where, clamp, masked_fill.

Relies on dispatch's rows through choose.pyx and on elementwise functions. methods.py puts the functions into Tensor.
"""

from . import elementwise
from .choose import clamp_rows, clamp_rows_, nonzero_parts, where_rows
from .tensor import Tensor


def where(condition, input=None, other=None):
    """input where condition is true, else other; where(condition): the positions of true elements.

    Raises TypeError unless condition is a bool tensor.
    """
    if input is None and other is None:
        return nonzero_parts(condition)
    return where_rows(condition, input, other)


def clamp(input, min=None, max=None):
    """input limited to [min, max]; a bound may be a number, a tensor or None. At a bound the gradient is 1."""
    if min is None and max is None:
        raise ValueError("clamp: at least one of min and max must be given")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        out = input
        if min is not None:
            out = where(out < min, min, out)
        return out if max is None else where(out > max, max, out)
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp: expected a Tensor, got {type(input).__name__}")
    if not input.is_floating_point():                # by rows that take integer numbers exactly
        out = input if min is None else elementwise.maximum(input, min)
        return out if max is None else elementwise.minimum(out, max)
    return clamp_rows(input, min, max)


def clamp_(input, min=None, max=None):
    """In place: input limited to [min, max]."""
    if min is None and max is None:
        raise ValueError("clamp_: at least one of min and max must be given")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return input.copy_(clamp(input, min, max))
    if not input.is_floating_point():
        return input.copy_(clamp(input, min, max))
    return clamp_rows_(input, min, max)


def masked_fill(input, mask, value):
    """input with `value` where mask is true."""
    return where(mask, value, input)


def masked_fill_(input, mask, value):
    """In place: `value` where mask is true."""
    return input.copy_(where(mask, value, input))


__all__ = ["clamp", "clamp_", "masked_fill", "masked_fill_", "where"]
