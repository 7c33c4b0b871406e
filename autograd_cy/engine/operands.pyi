# Types of the default dtype.
#
# Relies on tensor.pyi. __init__.pyi and users' type checkers rely on it.

from ..array.dtypes import DType
from .tensor import _DType

def get_default_dtype() -> DType: ...
def set_default_dtype(dtype: _DType) -> None: ...
