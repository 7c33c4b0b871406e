"""What the statuses of factorisations mean, and where SciPy's LAPACK is. The routines of lapack and spectral rely on it."""

from ..array.errors import LinAlgError

NAMES = ("getrf", "getrs", "potrf", "geqrf", "orgqr", "gesdd", "syevd", "gelsd", "gelsy", "gels", "getri", "trsm")


def capsules():
    """SciPy's functions of these names, of both dtypes each. ImportError where their integers are not of 32 bits."""
    from scipy.linalg import cython_blas, cython_lapack
    found = [(cython_blas if name == "trsm" else cython_lapack).__pyx_capi__[letter + name] for name in NAMES for letter in "sd"]
    if not all('"void (' in repr(capsule) and "int *" in repr(capsule) for capsule in found):
        raise ImportError(f"scipy.linalg.cython_lapack: unknown signatures: {found}")
    return found

def failure(name, text):
    """The error function of a routine that fails with a number for one matrix of a batch, {} in the text."""
    def error(status, arrays, ints):
        shape = arrays[0][2]
        batch, code = divmod(status, shape[-1] + 2)
        element = f"(Batch element {batch}): " if len(shape) > 2 else ""
        return LinAlgError(f"{name}: {element}{text.format(code)}; the input has shape {shape}")
    return error
