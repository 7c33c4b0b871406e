"""Losses and distances as functions, under the names of torch.nn.functional, beside those that the engine has as single nodes.

Relies on the engine.  functional.py re-exports them; the layers of loss.py rely on it.
"""

import math
import warnings

from ..array.dtypes import int64
from ..array.errors import ShapeError
from ..engine import creation
from ..engine.arguments import need_tensor
from ..engine.elementwise import exp, log, logsigmoid, minimum, softplus, sqrt, xlogy
from ..engine.composed import margins
from ..engine.modes import no_grad
from ..engine.choose import where
from ..engine.distances import cosine_rows
from ..engine.shape import expand
from ..engine.tensor import Tensor


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Their mean or sum, or they themselves."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"{reduction!r} is not a valid value for reduction: 'none', 'mean' or 'sum'")


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log target - input) for log-probabilities input; log_target: the target is one, too. "batchmean": the sum / N.

    A target of 0 counts for nothing, also where the input is -inf.
    """
    need_tensor(input, "kl_div")
    need_tensor(target, "kl_div")
    if log_target:
        losses = exp(target) * (target - input)
    else:
        product = target * input
        losses = xlogy(target, target) - where((target == 0) & input.isinf(), 0, product)
    if reduction == "batchmean":
        return losses.sum() / input.shape[0] if input.ndim else losses.sum()
    if reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by "
                      "the batch size, and aligns with the KL div math definition.", stacklevel=2)
    return reduced(losses, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """e ** input - target input; without log_input: input - target log(input + eps). full: with Stirling's term for targets above 1."""
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        many = target > 1
        safe = where(many, target, 1)
        losses = losses + where(many, safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe), 0)
    return reduced(losses, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """(log var + (input - target) ** 2 / var) / 2, var at least eps; full: with the constant log(2 pi) / 2.

    ValueError for a negative variance, or one of a shape that does not fit.
    """
    need_tensor(input, "gaussian_nll_loss")
    need_tensor(target, "gaussian_nll_loss")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("gaussian_nll_loss: var has negative entry/entries")
        var = creation.full_like(input, float(var))
    elif not creation.capturing() and bool((var.detach() < 0).any()):
        raise ValueError("gaussian_nll_loss: var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(v for n, v in zip(input.shape, var.shape, strict=True) if n != v) != 1:
            raise ValueError(f"gaussian_nll_loss: var is of incorrect size: {list(var.shape)} for an input of {list(input.shape)}")
    var = var.clone()
    with no_grad():                        # the gradient passes as if there were no limit
        var.clamp_(min=eps)
    losses = 0.5 * (log(var) + (input - target) ** 2 / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    need_tensor(input, "hinge_embedding_loss")
    need_tensor(target, "hinge_embedding_loss")
    return reduced(where(target != 1, (margin - input).clamp(min=0), 0) + where(target != -1, input, 0), reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean") -> Tensor:
    """max(0, margin - target (input1 - input2)), target 1 or -1."""
    need_tensor(input1, "margin_ranking_loss")
    need_tensor(input2, "margin_ranking_loss")
    need_tensor(target, "margin_ranking_loss")
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.shape}, "
                         f"input2: {input2.shape}, target: {target.shape}")
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + e ** (-target input)), target 1 or -1; without overflow."""
    need_tensor(input, "soft_margin_loss")
    need_tensor(target, "soft_margin_loss")
    return reduced(softplus(-target * input), reduction)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The mean over classes of -(t log sigmoid(x) + (1 - t) log sigmoid(-x))."""
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / input.shape[-1], reduction)


def _rows(input, target, name, shape):
    """(N, C) inputs, and targets of the same N."""
    if input.ndim not in (1, 2) or input.shape[-1] == 0:
        raise ShapeError(f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    if target.dtype != int64:
        raise RuntimeError(f"{name}: expected int64 targets, got {target.dtype.name}")
    if target.shape != shape and not (input.ndim == 1 and target.numel() == math.prod(shape) and target.ndim < 2):
        raise ShapeError(f"{name}: inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    return x, target.reshape((x.shape[0], *shape[input.ndim - 1:]))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      reduction: str = "mean") -> Tensor:
    """The mean over classes c other than t of weight[t] max(0, margin - x[t] + x[c]) ** p, input (N, C) or (C,)."""
    need_tensor(input, "multi_margin_loss")
    need_tensor(target, "multi_margin_loss")
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    x, t = _rows(input, target, "multi_margin_loss", input.shape[:-1])
    classes = x.shape[1]
    if weight is not None and weight.shape != (classes,):
        raise (ValueError if weight.ndim != 1 else ShapeError)(f"multi_margin_loss: weight must be one-dimensional, of {classes} elements, "
                                                               f"got {list(weight.shape)}")
    losses = (margin - x.gather(1, t.unsqueeze(1)) + x).clamp(min=0)
    if p == 2:
        losses = losses * losses
    if weight is not None:
        losses = losses * weight[t].unsqueeze(1)
    losses = where(t.unsqueeze(1) == creation.arange(classes), 0, losses).sum(1) / classes
    return reduced(losses if input.ndim == 2 else losses.squeeze(0), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - x[t] + x[c]) / C over target classes t and others c; targets (N, C) end at the first -1."""
    need_tensor(input, "multilabel_margin_loss")
    need_tensor(target, "multilabel_margin_loss")
    x, t = _rows(input, target, "multilabel_margin_loss", input.shape)
    if not x.is_floating_point():
        raise RuntimeError(f"multilabel_margin_loss: expected a floating-point tensor, got {x.dtype.name}")
    losses = margins(x, t)
    return reduced(losses if input.ndim == 2 else losses.squeeze(0), reduction)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    need_tensor(x1, "pairwise_distance")
    need_tensor(x2, "pairwise_distance")
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim; x1 and x2 broadcast. Each is divided by its norm first."""
    made = cosine_rows(x1, x2, dim, eps)
    if made is not None:
        return made
    need_tensor(x1, "cosine_similarity")
    need_tensor(x2, "cosine_similarity")
    if not (x1.is_floating_point() or x2.is_floating_point()):
        raise RuntimeError(f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {x1.dtype.name}")
    if x1.shape != x2.shape:
        like = (x1.detach() + x2.detach()).shape
        x1, x2 = expand(x1, like), expand(x2, like)
    if not x1.is_floating_point():
        x1 = x1.to(x2.dtype)
    elif not x2.is_floating_point():
        x2 = x2.to(x1.dtype)
    return cosine_rows(x1, x2, dim, eps)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean") -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; cos of rows (N, D), or of two vectors for a 0-d target."""
    need_tensor(input1, "cosine_embedding_loss")
    need_tensor(input2, "cosine_embedding_loss")
    need_tensor(target, "cosine_embedding_loss")
    if target.ndim not in (0, 1) or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise ShapeError(f"cosine_embedding_loss: {target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs "
                         f"with sizes {list(input1.shape)} and {list(input2.shape)}.")
    eps = 1e-12
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cos = (input1 * input2).sum(-1) / sqrt(squares)
    return reduced(where(target == 1, 1 - cos, 0) + where(target == -1, (cos - margin).clamp(min=0), 0), reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the pairwise distance; swap: or d(positive, negative), if less."""
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
                                             margin=margin, swap=swap, reduction=reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function=None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """triplet_margin_loss with another distance: a function of two tensors."""
    need_tensor(anchor, "triplet_margin_with_distance_loss")
    need_tensor(positive, "triplet_margin_with_distance_loss")
    need_tensor(negative, "triplet_margin_with_distance_loss")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                         f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


__all__ = ["cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss", "kl_div",
           "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "pairwise_distance",
           "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"]
