"""Stochastic gradient descent.

Relies on Optimizer and on engine/updates.  Training loops rely on it.
"""

from typing import Any

from autograd_cy.engine import updates

from .optimizer import Optimizer, check_execution, check_range


class SGD(Optimizer):
    """p -= lr * g, with momentum, dampening, Nesterov's form and weight decay; equal to torch.optim.SGD step by step.

        g += weight_decay * p;  v = momentum * v + (1 - dampening) * g  (v = g at first);  p -= lr * v  (or g + momentum * v)

    ValueError for a negative option, or for `nesterov` without momentum or with dampening.
    """

    def __init__(self, params, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        check_execution(differentiable)
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
                                  "differentiable": differentiable, "fused": fused})

    def _check(self, group: dict[str, Any]) -> None:
        check_range(group, lr="learning rate", momentum="momentum value", weight_decay="weight_decay value")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    step = updates.sgd_step
