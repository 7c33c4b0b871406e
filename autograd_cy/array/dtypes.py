"""The element types as Python objects: `float32`, `float64`, `int64`, `int32`, `uint8`, `bool`.

Relies on nothing. Tensors show them as `dtype`; `as_dtype` reads whatever a user may give for one.
"""

import builtins


class DType:
    """An element type: `name`, `itemsize` in bytes, `is_floating_point`, and the buffer-protocol `format`."""

    __slots__ = ("code", "format", "is_floating_point", "itemsize", "name")

    def __init__(self, code, name, itemsize, format):
        self.code, self.name, self.itemsize, self.format = code, name, itemsize, format
        self.is_floating_point = format in "fd"

    def __repr__(self):
        return f"autograd_cy.{self.name}"

    def __reduce__(self):
        return (as_dtype, (self.name,))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


float32 = DType(0, "float32", 4, "f")
float64 = DType(1, "float64", 8, "d")
int64 = DType(2, "int64", 8, "q")
int32 = DType(3, "int32", 4, "i")
uint8 = DType(4, "uint8", 1, "B")
bool = DType(5, "bool", 1, "?")

DTYPES = (float32, float64, int64, int32, uint8, bool)
float, double, int, long = float32, float64, int32, int64

_BY_NAME = {d.name: d for d in DTYPES} | {"float": float32, "double": float64, "int": int32, "long": int64}
_BY_TYPE = {builtins.float: float64, builtins.int: int64, builtins.bool: bool}


def as_dtype(value):
    """The DType for a DType, a name, a NumPy dtype or scalar type, or Python's float (as NumPy: float64), int or bool.

    Raises TypeError for anything else, NumPy types without a counterpart among them.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _BY_TYPE:
        return _BY_TYPE[value]
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None)
    found = _BY_NAME.get(name)
    if found is None or getattr(value, "byteorder", "=") not in "=|" + ("<" if _little_endian() else ">"):
        raise TypeError(f"no dtype for {value!r}; the dtypes are {', '.join(d.name for d in DTYPES)}")
    return found


def _little_endian():
    import sys
    return sys.byteorder == "little"
