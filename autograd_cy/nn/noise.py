"""Random functions: the dropouts, and samples of categories.

Relies on the engine.  functional.py re-exports them; layers rely on it.
"""

import math
import warnings

from ..array.dtypes import bool as bool_dtype
from ..array.errors import ShapeError
from ..engine import creation, generators
from ..engine.arguments import need_tensor
from ..engine.elementwise import leaky_relu, leaky_relu_, log
from ..engine.reduce import softmax
from ..engine.choose import where
from ..engine.random import draw
from ..engine.rows import empty_as
from ..engine.tensor import Tensor


def _check(input, p, name):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(input).__name__}")


def _float(input, name):
    if not input.is_floating_point():
        raise RuntimeError(f"{name}: expected a floating-point tensor, got {input.dtype}")


def _nothing(input, inplace):
    dropped = where(creation.zeros(input.shape, dtype=bool_dtype), input, 0.0)           # zero times infinity would be NaN
    return input.copy_(dropped) if inplace else dropped


def _kept(input, shape, p, scale=1.0):
    """`scale` with probability 1 - p, else 0."""
    numbers = empty_as(input, shape)
    draw(numbers, "random", None, p, scale)
    return numbers


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p), when training; else the input itself."""
    if not training or not 0.0 < p < 1.0 or not isinstance(input, Tensor):
        _check(input, p, "dropout")
        if not training or p == 0.0:
            return input
    if not input.is_floating_point():
        _float(input, "dropout")
    if p == 1.0:
        return _nothing(input, inplace)
    mask = empty_as(input, input.shape)
    draw(mask, "random", None, p, 1.0 / (1.0 - p))
    return input.mul_(mask) if inplace else input * mask


def _channels(input, name):
    """The shape of one number per channel of (N, C, ...)."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: Feature dropout requires at least 2 dimensions in the input, got {input.ndim}")
    return (*input.shape[:2], *(1,) * (input.ndim - 2))


def feature_dropout(input, p, training=True, inplace=False, name="feature_dropout", single=False):
    """Zero whole channels of (N, C, ...) with probability p and scale the rest by 1 / (1 - p); single: of (C, ...)."""
    _check(input, p, name)
    if not training or p == 0.0:
        return input
    _float(input, name)
    shape = _channels(input.unsqueeze(0) if single else input, name)
    if p == 1.0:
        return _nothing(input, inplace)
    mask = _kept(input, shape[1:] if single else shape, p, 1.0 / (1.0 - p))
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L) with probability p and scale the rest by 1 / (1 - p)."""
    need_tensor(input, "dropout1d")
    if input.ndim not in (2, 3):
        raise ShapeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to provide "
                         f"channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension")
    return feature_dropout(input, p, training, inplace, "dropout1d", input.ndim == 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, H, W) with probability p and scale the rest by 1 / (1 - p)."""
    need_tensor(input, "dropout2d")
    if input.ndim not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated; use dropout instead.", stacklevel=2)
    if input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
                      "is interpreted as shape (N, C, L), where C is the channel dim.", stacklevel=2)
    return feature_dropout(input, p, training, inplace, "dropout2d")


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p and scale the rest by 1 / (1 - p)."""
    need_tensor(input, "dropout3d")
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated; use dropout instead.", stacklevel=2)
    return feature_dropout(input, p, training, inplace, "dropout3d", input.ndim != 5)


_ALPHA = 1.7580993408473766          # where SELU saturates


def _alpha(input, p, training, inplace, shape, name):
    if not training or p == 0.0:
        return input
    _float(input, name)
    if p == 1.0:
        return _nothing(input, inplace)
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    kept = _kept(input, shape, p)
    shift = (kept - 1) * (_ALPHA * a) + _ALPHA * a * p
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Elements set to the value where SELU saturates with probability p, scaled and shifted so that mean 0 and variance 1 remain."""
    _check(input, p, "alpha_dropout")
    return _alpha(input, p, training, inplace, input.shape, "alpha_dropout")


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...)."""
    _check(input, p, "feature_alpha_dropout")
    return _alpha(input, p, training, inplace, _channels(input, "feature_alpha_dropout") if training and p else None,
                  "feature_alpha_dropout")


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x where x >= 0, a * x elsewhere: a drawn from [lower, upper) for each element when training, else their mean (Xu et al., 2015)."""
    _float(need_tensor(input, "rrelu"), "rrelu")
    if not training or lower == upper:
        return (leaky_relu_ if inplace else leaky_relu)(input, (lower + upper) / 2)
    slopes = where(input.detach() >= 0, 1, generators.rand(input.shape, dtype=input.dtype) * (upper - lower) + lower)
    return input.mul_(slopes) if inplace else input * slopes


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + Gumbel noise) / tau): a sample of the categories, made differentiable.

    hard: the result is 1 at the largest element, and the gradient that of the softmax.
    """
    need_tensor(logits, "gumbel_softmax")
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    _float(logits, "gumbel_softmax")
    uniform = generators.rand(logits.shape, dtype=logits.dtype).clamp(min=2.0 ** -25)
    soft = softmax((logits - log(-log(uniform))) / tau, dim)
    if not hard:
        return soft
    axis = dim % logits.ndim
    places = creation.arange(logits.shape[axis]).reshape((-1,) + (1,) * (logits.ndim - 1 - axis))
    picked = (places == soft.detach().argmax(axis, keepdim=True)).to(logits.dtype)
    return picked - soft.detach() + soft


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax", "rrelu", "rrelu_"]
