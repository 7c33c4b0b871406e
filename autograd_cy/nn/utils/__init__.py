"""Gradient clipping, parameters as one vector, and weights that are computed (torch.nn.utils).

Relies on the engine and on engine/clipping (which clips all gradients in one call).
Training loops and the SciPy bridge rely on it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from autograd_cy.engine import clipping, creation
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.joins import cat
from autograd_cy.engine.tensor import Tensor

from ..._later import later
from . import rnn as rnn

if TYPE_CHECKING:
    from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm  # noqa: F401

_NORMS = ("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm")
__getattr__, __dir__ = later(__name__, dict.fromkeys(_NORMS, "norms"))


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in parameters if p.grad is not None]


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> Tensor:
    """Scale all gradients in place so that their joint norm is at most max_norm; returns the norm before that.

    The factor is max_norm / (norm + 1e-6), at most 1, as in PyTorch.  RuntimeError, with the gradients untouched, when
    the norm is infinite or NaN and `error_if_nonfinite` is set.
    """
    gradients = _gradients(parameters)
    max_norm, norm_type = float(max_norm), float(norm_type)
    if not gradients:
        return creation.tensor(0.0)
    with no_grad():
        return clipping.clip_norm(gradients, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp every gradient in place to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters as one vector (differentiable)."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy consecutive pieces of a vector into the parameters; the inverse of parameters_to_vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    needed = sum(p.numel() for p in parameters)
    if vec.numel() != needed:
        raise ValueError(f"the vector has {vec.numel()} elements, but the parameters have {needed}")
    start = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[start:start + p.numel()].reshape(p.shape))
            start += p.numel()
