"""Errors that are of two kinds, because NumPy's users expect the one and PyTorch's the other; and what writes their texts.

Relies on nothing. Every layer raises them.
"""


class ArgumentError(ValueError, RuntimeError):
    """A number that is out of its range, or a name that is not known."""


class BoundsError(IndexError, RuntimeError):
    """An index, in a tensor of them, or a part that is out of range."""


class ShapeError(ArgumentError):
    """Shapes, sizes or layouts that do not fit."""


class DTypeError(TypeError, RuntimeError):
    """An operation that is not defined for a dtype, or dtypes that do not fit."""


def misfit(name, given, sizes, numel):
    """The error for a shape that a tensor of these sizes can't have."""
    if given.count(-1) > 1:
        return ShapeError(f"{name}: only one size can be inferred (-1), got {given}")
    for size in given:
        if size < -1:
            return ShapeError(f"{name}: invalid size {size} in {given}")
    if -1 in given and 0 in given and not numel:
        return ShapeError(f"{name}: cannot infer -1 in {given} for a tensor of 0 elements")
    return ShapeError(f"{name}: shape {given} does not fit a tensor of shape {sizes} ({numel} elements)")


class CaptureError(RuntimeError):
    """A captured step does something that its replay could not repeat faithfully; the message names the line."""


class LinAlgError(RuntimeError):
    """A matrix without what was asked for: an inverse, a Cholesky factor; or a decomposition that did not converge."""


def worded(kind, text, *values):
    """The error whose text names values: "got {.shape}". (An f-string in Cython is four times the code.)"""
    return kind(text.format(*values))


def wrong_index(status, arrays, ints):
    """The error of gather and scatter (kernels/moving): element `status` of the index is out of range, and is looked up."""
    from ctypes import c_int64

    far = arrays[1] if len(ints) == 1 else arrays[0]
    address, _, shape, strides = arrays[2]
    offset = 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        offset += status % size * stride
        status //= size
    value = c_int64.from_address(address + 8 * offset).value
    name, axis = "gather" if len(ints) == 1 else "scatter", ints[0]
    return BoundsError(f"{name}: index {value} is out of range for dim {axis} of size {far[2][axis]}")
