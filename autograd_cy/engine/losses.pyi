# Types of the fused losses.
#
# Relies on tensor.pyi. nn and users' type checkers rely on it.

from typing import Any

from .tensor import Tensor

def mse_loss(input: Tensor, target: Any, reduction: str = "mean") -> Tensor: ...
def l1_loss(input: Tensor, target: Any, reduction: str = "mean") -> Tensor: ...
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor: ...
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0
) -> Tensor: ...
def cross_entropy_back(
    g: Tensor, x: Tensor, prob: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, smoothing: float
) -> Tensor: ...
