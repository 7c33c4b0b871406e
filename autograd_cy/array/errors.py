"""Errors that are of two kinds, because NumPy's users expect the one and PyTorch's the other.

Relies on nothing. Every layer raises them.
"""


class ShapeError(ValueError, RuntimeError):
    """Shapes, sizes or layouts that do not fit."""


class DTypeError(TypeError, RuntimeError):
    """An operation that is not defined for a dtype, or dtypes that do not fit."""


class CaptureError(RuntimeError):
    """A captured step does something that its replay could not repeat faithfully; the message names the line."""


class LinAlgError(RuntimeError):
    """A matrix without what was asked for: an inverse, a Cholesky factor; or a decomposition that did not converge."""
