"""Special functions of series.py and of scipy.special, with gradients by the table: one Python function for each row of
ops/table/special.py.

Relies on series, creation (memory shared with NumPy) and rows. methods.py makes methods of some, autograd_cy.special has them all.

They cost about 2 microseconds a call where a generated loop costs 0.04: seldom used, they are not worth loops of their own.
"""

from functools import cache, partial

from ..ops import TABLE
from .creation import array_of, full, outside
from .elementwise import add
from .operands import get_default_dtype
from .rows import empty_as, packed, record_row
from .series import FUNCTIONS as SERIES
from .shape import convert
from .tensor import Tensor

# Row -> name in scipy.special, which is imported at the first use: that takes 0.1 s.
SCIPY = {"bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
         "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e"} | {
             name: name for name in ("ndtri", "zeta", "gammainc", "gammaincc")}


@cache
def _special():
    from scipy import special
    return special


def _compute(name, inputs, outputs):
    """outputs[0] = the function of the inputs' values."""
    special = _special()
    values = [array_of(x) for x in inputs]
    if name in ("airy_ai", "airy_derivative"):
        array_of(outputs[0])[...] = special.airy(*values)[name == "airy_derivative"]
    else:
        getattr(special, SCIPY[name])(*values, out=array_of(outputs[0]))


COMPUTE = {name: partial(_compute, name) for name in (*SCIPY, "airy_ai", "airy_derivative")}


def apply(name, *args):
    """Run a row on tensors that are broadcast against each other; numbers become tensors, integers floating point."""
    first = args[0] if isinstance(args[0], Tensor) else args[-1]
    if not isinstance(first, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(args[0]).__name__}")
    like, row = first, TABLE[name]
    for x in args[1:]:                      # the common dtype and shape are those of a sum
        like = add(args[0].detach() if isinstance(args[0], Tensor) else args[0], x.detach() if isinstance(x, Tensor) else x)
    dtype = like.dtype if like.is_floating_point() else get_default_dtype()
    tensors = args if len(args) == 1 and first.dtype is dtype else []
    for input, x in () if tensors else zip(row.inputs, args, strict=True):
        x = convert(x, dtype) if isinstance(x, Tensor) else full((), x, dtype=dtype)
        x = x if x.shape == like.shape else x.expand(like.shape)
        tensors.append(x if input in row.rules else x.detach())
    if name in SERIES:
        out = SERIES[name](packed(tensors[0].detach()))
    else:
        out = empty_as(dtype.code, like.shape)
        outside(COMPUTE[name], [x.detach() for x in tensors], [out])
    return record_row(name, out, tuple(tensors), ())


def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, order 0."""
    return apply("i0", input)


def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) * i0(x)."""
    return apply("i0e", input)


def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, order 1."""
    return apply("i1", input)


def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) * i1(x)."""
    return apply("i1e", input)


def bessel_j0(input: Tensor) -> Tensor:
    """The Bessel function of the first kind, order 0."""
    return apply("bessel_j0", input)


def bessel_j1(input: Tensor) -> Tensor:
    """The Bessel function of the first kind, order 1."""
    return apply("bessel_j1", input)


def bessel_y0(input: Tensor) -> Tensor:
    """The Bessel function of the second kind, order 0."""
    return apply("bessel_y0", input)


def bessel_y1(input: Tensor) -> Tensor:
    """The Bessel function of the second kind, order 1."""
    return apply("bessel_y1", input)


def modified_bessel_k0(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind, order 0."""
    return apply("modified_bessel_k0", input)


def modified_bessel_k1(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind, order 1."""
    return apply("modified_bessel_k1", input)


def scaled_modified_bessel_k0(input: Tensor) -> Tensor:
    """exp(x) * modified_bessel_k0(x)."""
    return apply("scaled_modified_bessel_k0", input)


def scaled_modified_bessel_k1(input: Tensor) -> Tensor:
    """exp(x) * modified_bessel_k1(x)."""
    return apply("scaled_modified_bessel_k1", input)


def airy_ai(input: Tensor) -> Tensor:
    """The Airy function Ai."""
    return apply("airy_ai", input)


def airy_derivative(input: Tensor) -> Tensor:
    """The derivative of the Airy function Ai."""
    return apply("airy_derivative", input)


def erfcx(input: Tensor) -> Tensor:
    """exp(x ** 2) * erfc(x), the scaled complementary error function."""
    return apply("erfcx", input)


def ndtri(input: Tensor) -> Tensor:
    """The inverse of the standard normal distribution function."""
    return apply("ndtri", input)


def log_ndtr(input: Tensor) -> Tensor:
    """The logarithm of the standard normal distribution function, exact in the tail."""
    return apply("log_ndtr", input)


def zeta(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Hurwitz's zeta function: the sum of 1 / (k + other) ** input over k >= 0; no gradient by input."""
    return apply("zeta", input, other)


def gammainc(input: Tensor | float, other: Tensor | float) -> Tensor:
    """The regularised lower incomplete gamma function P(input, other); no gradient by input."""
    return apply("gammainc", input, other)


def gammaincc(input: Tensor | float, other: Tensor | float) -> Tensor:
    """The regularised upper incomplete gamma function Q(input, other); no gradient by input."""
    return apply("gammaincc", input, other)

__all__ = [
    "airy_ai", "airy_derivative", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfcx", "gammainc", "gammaincc", "i0", "i0e", "i1",
    "i1e", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtri", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "zeta",
]
