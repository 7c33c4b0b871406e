"""Questions about tensors and dtypes: is_tensor, result_type, finfo and their like.

Relies on array/dtypes and elementwise functions. The package's front relies on it.
"""

import numpy as np

from ..array.dtypes import DType, as_dtype
from ..array.dtypes import bool as bool_dtype
from . import elementwise
from .arguments import need_tensor
from .creation import empty
from .operands import get_default_dtype
from .tensor import Tensor


def is_tensor(obj: object) -> bool:
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    need_tensor(input, "is_floating_point")
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """False: there are no complex tensors."""
    return False


def numel(input: Tensor) -> int:
    """The number of elements."""
    need_tensor(input, "numel")
    return input.numel()


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not zero. Raises RuntimeError for any other number of elements."""
    need_tensor(input, "is_nonzero")
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: the truth value of a tensor of shape {input.shape} is ambiguous; expected one element")
    return bool(input)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and equal elements; a NaN equals nothing."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError(f"equal: expected two tensors, got {type(input).__name__} and {type(other).__name__}")
    return input.shape == other.shape and bool(elementwise.eq(input.detach(), other.detach()).all())


def _alike(x):
    """Something small that promotes as x does: numbers weaker than 0-d tensors, those weaker than others."""
    return empty((0,) if x.ndim else (), dtype=x.dtype) if isinstance(x, Tensor) else x


def result_type(tensor1: Tensor | float, tensor2: Tensor | float) -> DType:
    """The dtype of tensor1 + tensor2."""
    if not isinstance(tensor1, Tensor) and not isinstance(tensor2, Tensor):
        tensor1 = empty((), dtype={bool: bool_dtype, int: as_dtype("int64")}.get(type(tensor1), get_default_dtype()))
    return elementwise.add(_alike(tensor1), _alike(tensor2)).dtype


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both kinds, as arithmetic promotes."""
    return elementwise.add(empty((0,), dtype=as_dtype(type1)), empty((0,), dtype=as_dtype(type2))).dtype


def can_cast(from_: DType, to: DType) -> bool:
    """Whether the promotion rules allow a conversion in place: not from floating point to integers, and to bool from bool only."""
    source, target = as_dtype(from_), as_dtype(to)
    if target == bool_dtype:
        return source == bool_dtype
    return target.is_floating_point or not source.is_floating_point


def finfo(dtype: DType | None = None) -> np.finfo:
    """The limits of a floating-point dtype (default: the default dtype): eps, max, min, tiny, resolution, bits."""
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"finfo: {dtype} is no floating-point dtype; use iinfo")
    return np.finfo(dtype.name)


def iinfo(dtype: DType) -> np.iinfo:
    """The limits of an integer dtype: max, min, bits."""
    dtype = as_dtype(dtype)
    if dtype.is_floating_point or dtype == bool_dtype:
        raise TypeError(f"iinfo: {dtype} is no integer dtype")
    return np.iinfo(dtype.name)


__all__ = ["can_cast", "equal", "finfo", "iinfo", "is_floating_point", "is_nonzero", "is_tensor", "numel", "promote_types", "result_type"]
