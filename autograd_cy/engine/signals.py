"""Windows for signals: hann_window, kaiser_window and their kin.

Relies on creation. The package's front imports it when the first of them is called.
"""

import numpy as np

from ..array.dtypes import as_dtype
from .creation import tensor
from .operands import get_default_dtype
from .tensor import Tensor


def _window(name, n, periodic, curve, *, dtype=None, requires_grad=False, device=None):
    """n values of a curve over [0, 1]; periodic: the next one, which is left out, would lie at 1."""
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name}: expected a floating-point dtype, got {dtype}")
    if n < 0:
        raise RuntimeError(f"{name}: requires non-negative window_length, got window_length={n}")
    values = curve(np.linspace(0, 1, n + bool(periodic)))[:n] if n != 1 else [1.0]
    return tensor(values, dtype=dtype, requires_grad=requires_grad, device=device)


def _turns(x):
    return np.cos(2 * np.pi * x)


def hann_window(window_length: int, periodic: bool = True, **options) -> Tensor:
    """(1 - cos(2 pi x)) / 2 for x = k / window_length, or where not periodic k / (window_length - 1). Options: dtype, requires_grad.

    Raises RuntimeError for a negative length and for dtypes that are no floating-point ones.
    """
    return _window("hann_window", window_length, periodic, lambda x: 0.5 - 0.5 * _turns(x), **options)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options) -> Tensor:
    """alpha - beta cos(2 pi x), x as of hann_window."""
    return _window("hamming_window", window_length, periodic, lambda x: alpha - beta * _turns(x), **options)


def blackman_window(window_length: int, periodic: bool = True, **options) -> Tensor:
    """0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x), x as of hann_window."""
    return _window("blackman_window", window_length, periodic, lambda x: 0.42 - 0.5 * _turns(x) + 0.08 * _turns(2 * x), **options)


def bartlett_window(window_length: int, periodic: bool = True, **options) -> Tensor:
    """1 - |2 x - 1|, x as of hann_window."""
    return _window("bartlett_window", window_length, periodic, lambda x: 1 - np.abs(2 * x - 1), **options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options) -> Tensor:
    """i0(beta sqrt(1 - (2 x - 1)^2)) / i0(beta), x as of hann_window."""
    return _window("kaiser_window", window_length, periodic, lambda x: np.i0(beta * np.sqrt(1 - (2 * x - 1) ** 2)) / np.i0(beta), **options)
