"""What the statuses of factorisations mean. The routines of lapack and spectral rely on it."""

from ..array.errors import LinAlgError


def failure(name, text):
    """The error function of a routine that fails with a number for one matrix of a batch, {} in the text."""
    def error(status, arrays, ints):
        shape = arrays[0][2]
        batch, code = divmod(status, shape[-1] + 2)
        element = f"(Batch element {batch}): " if len(shape) > 2 else ""
        return LinAlgError(f"{name}: {element}{text.format(code)}; the input has shape {shape}")
    return error
