"""Functions that torch itself has with other arguments than torch.nn.functional, or alone.

Relies on functional. The package's front imports it when the first of them is called.
"""

from autograd_cy.engine.tensor import Tensor

from . import functional as F
from .noise import feature_dropout as _feature_dropout


def constant_pad_nd(input: Tensor, pad, value: float = 0) -> Tensor:
    """nn.functional.pad with a constant."""
    return F.pad(input, pad, "constant", value)


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """nn.functional.embedding with weight first; a negative padding_idx stands for none."""
    return F.embedding(indices, weight, None if padding_idx < 0 else padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def _dropout(function, inplace=False):
    def drop(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, inplace)
    drop.__name__ = drop.__qualname__ = function.__name__ + "_" * inplace
    drop.__doc__ = f"nn.functional.{function.__name__}{' in place' * inplace}; {function.__doc__}"
    return drop


dropout, dropout_ = _dropout(F.dropout), _dropout(F.dropout, True)
alpha_dropout, alpha_dropout_ = _dropout(F.alpha_dropout), _dropout(F.alpha_dropout, True)
feature_dropout, feature_dropout_ = _dropout(_feature_dropout), _dropout(_feature_dropout, True)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout(F.feature_alpha_dropout), _dropout(F.feature_alpha_dropout, True)
