"""Averages of a model over the course of training: torch.optim.swa_utils.

Relies on Module, and on tensors' operations in place. Training scripts rely on it.
"""

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from autograd_cy.engine import creation
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.tensor import Tensor
from autograd_cy.nn.module import Module
from autograd_cy.nn.normalization import _BatchNorm

from .lr_scheduler import LRScheduler, _per_group


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """avg_fn of an exponential average: decay * average + (1 - decay) * value."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda average, value, _count: average * decay + value * (1 - decay)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Iterable[Tensor], Iterable[Tensor], Any], None]:
    """multi_avg_fn of an exponential average, in place on lists of tensors."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @no_grad()
    def update(averages, values, _count):
        for average, value in zip(averages, values, strict=True):
            average.lerp_(value, 1 - decay) if average.is_floating_point() else average.copy_(value)

    return update


class AveragedModel(Module):
    """A copy of a model, `module`, whose parameters are averages of those that `update_parameters` is given: equal weights, or what
    avg_fn(average, value, how many) or multi_avg_fn (of lists, in place) makes of them. use_buffers: of buffers, too."""

    def __init__(self, model: Module, device=None, avg_fn: Callable[..., Tensor] | None = None,
                 multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", creation.tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the average; the first ones are copied."""
        def values(module):
            return [*module.parameters(), *(module.buffers() if self.use_buffers else ())]

        pairs = [(a, v.detach()) for a, v in zip(values(self.module), values(model), strict=True)]
        if not int(self.n_averaged):
            for average, value in pairs:
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn([a for a, _ in pairs], [v for _, v in pairs], self.n_averaged)
        else:
            for average, value in pairs:
                average.copy_(average + (value - average) / (self.n_averaged + 1) if self.avg_fn is None else
                              self.avg_fn(average, value, self.n_averaged))
        if not self.use_buffers:
            for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                average.copy_(value)
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device=None) -> None:
    """Compute the running statistics of all batch norms anew, from one pass over the data (of a tuple, the first is the input)."""
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm) and getattr(m, "running_mean", None) is not None}
    if not norms:
        return
    training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for m, momentum in norms.items():
        m.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Within anneal_epochs, from the rate there was to swa_lr ("cos" or "linear"); then it stays."""

    def __init__(self, optimizer, swa_lr, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, _per_group(swa_lr, optimizer, "values for swa_lr"), strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        t = max(0, min(1, epoch / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        epoch = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch + 1)
        before, now = self._share(epoch - 1), self._share(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
