"""Questions about tensors and dtypes: is_tensor, result_type, finfo and their like.

Relies on array/dtypes and elementwise functions. The package's front relies on it.
"""

from typing import Any

import numpy as np

from ..array.dtypes import DType, as_dtype
from ..array.dtypes import bool as bool_dtype
from . import elementwise
from .arguments import need_tensor
from .creation import empty
from .operands import get_default_dtype, set_default_dtype
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
    need_tensor(input, "is_complex")
    return False


is_conj = is_neg = is_complex


def is_inference(input: Tensor) -> bool:
    """False: inference_mode is no_grad here, and what it makes are ordinary tensors."""
    need_tensor(input, "is_inference")
    return False


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return need_tensor(input, "is_signed").dtype.name not in ("uint8", "bool")


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return need_tensor(input, "is_same_size").shape == need_tensor(other, "is_same_size").shape


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


# ---- PyTorch's types of tensors by dtype

_TYPES = {"float32": "FloatTensor", "float64": "DoubleTensor", "int32": "IntTensor", "int64": "LongTensor", "uint8": "ByteTensor",
          "bool": "BoolTensor"}


def of_type(value: Any) -> DType:
    """The dtype for a dtype, or for an older script's type of tensors: "torch.FloatTensor", FloatTensor."""
    name = value if isinstance(value, str) else getattr(value, "__name__", None)
    return as_dtype(next((dtype for dtype, t in _TYPES.items() if name in (t, "torch." + t)), value))


def typename(obj: object) -> str:
    """The name of an object's type or of a function with its module; of a tensor by its dtype: "torch.FloatTensor"."""
    if isinstance(obj, Tensor):
        return "torch." + _TYPES[obj.dtype.name]
    module, thing = getattr(obj, "__module__", None), obj if hasattr(obj, "__qualname__") else type(obj)
    return thing.__qualname__ if module in (None, "builtins") else f"{module}.{thing.__qualname__}"


def set_default_tensor_type(t: Any) -> None:
    """set_default_dtype of the dtype of a type of tensors: "torch.DoubleTensor", DoubleTensor."""
    set_default_dtype(of_type(t))


__all__ = [
    "can_cast", "equal", "finfo", "iinfo", "is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "is_tensor", "numel", "promote_types", "result_type", "set_default_tensor_type", "typename",
]
