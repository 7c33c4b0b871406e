"""RMSprop.

Relies on Optimizer and on engine/updates.  Training loops rely on it.
"""

from typing import Any

from autograd_cy.engine import updates

from .optimizer import Optimizer, check_execution, check_range


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012), equal to torch.optim.RMSprop step by step.

        v = alpha * v + (1 - alpha) * g^2;  p -= lr * g / (sqrt(v) + eps)

    `centered` subtracts the square of the mean gradient from v; with momentum, b = momentum * b + g / (sqrt(v) + eps) and
    p -= lr * b.  ValueError for a negative option.
    """

    def __init__(self, params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum: float = 0.0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_execution(differentiable)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                                  "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable})

    def _check(self, group: dict[str, Any]) -> None:
        check_range(group, lr="learning rate", eps="epsilon value", momentum="momentum value",
                    weight_decay="weight_decay value", alpha="alpha value")

    step = updates.rmsprop_step
