"""Adam and AdamW.

Relies on Optimizer and on engine/updates.  Training loops rely on it.
"""

from typing import Any

from autograd_cy.engine import updates

from .optimizer import Optimizer, check_execution, check_range


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), equal to torch.optim.Adam step by step.

        m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g^2
        p -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    weight_decay is added to the gradient (with `decoupled_weight_decay`, p shrinks instead: AdamW).  `amsgrad` divides by
    the largest v so far.  ValueError for a negative option or a beta outside [0, 1).
    """

    def __init__(self, params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False) -> None:
        check_execution(differentiable)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize, "foreach": foreach, "capturable": capturable,
                                  "differentiable": differentiable, "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay})

    def _check(self, group: dict[str, Any]) -> None:
        check_range(group, lr="learning rate", eps="epsilon value")
        for i, beta in enumerate(group["betas"]):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        check_range(group, weight_decay="weight_decay value")

    step = updates.adam_step


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): p *= 1 - lr * weight_decay before each step."""

    def __init__(self, params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=True)
