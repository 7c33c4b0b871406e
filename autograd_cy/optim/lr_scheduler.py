"""Schedules of the learning rate: the names and recurrences of torch.optim.lr_scheduler.

Above 500 lines because each schedule is a few lines of its own, and scripts look for all of them here.

Relies on Optimizer (it writes "lr" into the parameter groups, which every step reads anew).  Training loops rely on it.
Each schedule multiplies the present rate, as PyTorch's do, so that schedules can be chained and rates edited in between.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """Base class: `step()` once per epoch (or batch), after the optimizer's; subclasses define `get_lr`.

    `last_epoch` counts the steps; pass the number of the last finished one to resume, with "initial_lr" in the groups.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`, one per group, from the present ones."""
        raise NotImplementedError

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _set(self, rates: Iterable[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = self._rates()

    def _scaled(self, factor: float) -> list[float]:
        return [lr * factor for lr in self._rates()]

    def _restart(self) -> None:
        """Begin at epoch 0 from the base rates (for SequentialLR)."""
        self.last_epoch = 0
        self._set(self.base_lrs)
        self._set(self.get_lr())

    def step(self) -> None:
        """Count one epoch and set the rates."""
        self.last_epoch += 1
        self._set(self.get_lr())

    def get_last_lr(self) -> list[float]:
        """The rates set by the last step."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; the optimizer's rates are saved with the optimizer."""
        self.__dict__.update(state_dict)


def _per_group(values, optimizer, what):
    values = list(values) if isinstance(values, (list, tuple)) else [values] * len(optimizer.param_groups)
    if len(values) != len(optimizer.param_groups):
        raise ValueError(f"Expected {len(optimizer.param_groups)} {what}, but got {len(values)}")
    return values


class LambdaLR(LRScheduler):
    """lr = initial lr * lr_lambda(epoch); one function, or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
                 last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(lr_lambda, optimizer, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Functions are not saved, attributes of callable objects are."""
        state = super().state_dict()
        state["lr_lambdas"] = [dict(f.__dict__) if not hasattr(f, "__code__") and hasattr(f, "__dict__") else None
                               for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, saved.pop("lr_lambdas"), strict=True):
            if attributes is not None:
                f.__dict__.update(attributes)
        self.__dict__.update(saved)


class MultiplicativeLR(LambdaLR):
    """lr *= lr_lambda(epoch) at every epoch after the first."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._rates(), strict=True)]


class StepLR(LRScheduler):
    """lr *= gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma if self.last_epoch > 0 and self.last_epoch % self.step_size == 0 else 1.0)


class MultiStepLR(LRScheduler):
    """lr *= gamma at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])


class ConstantLR(LRScheduler):
    """initial lr * factor for total_iters epochs, then the initial lr."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else self._rates()


class LinearLR(LRScheduler):
    """A factor that goes from start_factor to end_factor in total_iters equal steps."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, start, rise = self.last_epoch, self.start_factor, self.end_factor - self.start_factor
        if t == 0:
            return self._scaled(start)
        if t > self.total_iters:
            return self._rates()
        return self._scaled(1.0 + rise / (self.total_iters * start + (t - 1) * rise))


class ExponentialLR(LRScheduler):
    """lr *= gamma at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(1.0 if self.last_epoch == 0 else self.gamma)


class PolynomialLR(LRScheduler):
    """initial lr * (1 - epoch / total_iters) ** power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, total = self.last_epoch, self.total_iters
        if t == 0 or t > total:
            return self._rates()
        return self._scaled(((1.0 - t / total) / (1.0 - (t - 1) / total)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """eta_min + (initial lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2, by its recurrence."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, period, low = self.last_epoch, self.T_max, self.eta_min
        if t == 0:
            return self._rates()
        if (t - 1 - period) % (2 * period) == 0:               # the recurrence would divide by zero
            return [lr + (base - low) * (1 - math.cos(math.pi / period)) / 2
                    for base, lr in zip(self.base_lrs, self._rates(), strict=True)]
        factor = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [factor * (lr - low) + low for lr in self._rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0 epochs, each period T_mult times as long as the last.

    `step(epoch)` takes fractions of epochs, too.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def _restart(self) -> None:
        self.step(0)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one."""
        if epoch is None:
            epoch = self.last_epoch + 1
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """One rise from max_lr / div_factor to max_lr, then a fall to that / final_div_factor (Smith and Topin, 2017).

    One step per batch, total_steps (or epochs * steps_per_epoch) in all; momentum, or Adam's first beta, goes the other way.
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
                 max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        rise = float(pct_start * total_steps) - 1
        # (last step of the phase, rates from and to, momenta from and to)
        self.phases = ([(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                        (2 * rise, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                        (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")] if three_phase else
                       [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                        (total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")])
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, top in zip(groups, _per_group(max_lr, optimizer, "values for max_lr"), strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            if last_epoch == -1:
                for group, low, high in zip(groups, _per_group(base_momentum, optimizer, "values for base_momentum"),
                                            _per_group(max_momentum, optimizer, "values for max_momentum"), strict=True):
                    self._set_momentum(group, high)
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _set_momentum(group, value):
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _anneal(self, start, end, share):
        if self.anneal_strategy == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        rates, begin = [], 0.0
        for phase in self.phases:
            end = phase[0]
            if step <= end or phase is self.phases[-1]:
                break
            begin = end
        share = (step - begin) / (end - begin)
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase[1]], group[phase[2]], share))
            if self.cycle_momentum:
                self._set_momentum(group, self._anneal(group[phase[3]], group[phase[4]], share))
        return rates


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr in step_size_up steps, down in step_size_down, and again (Smith, 2017); momentum goes the other way.

    mode: how the height of a cycle changes: "triangular" not at all, "triangular2" halved each time, "exp_range" by gamma ** steps; or
    scale_fn of the cycle's number, or of the steps (scale_mode).
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1) -> None:
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("mode is invalid and scale_fn is None")
        if cycle_momentum and "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.up, self.length = float(step_size_up), float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.mode, self.gamma, self.scale_fn, self.cycle_momentum = mode, gamma, scale_fn, cycle_momentum
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.max_lrs = _per_group(max_lr, optimizer, "values for max_lr")
        self.momenta = list(zip(_per_group(base_momentum, optimizer, "values for base_momentum"),
                                _per_group(max_momentum, optimizer, "values for max_momentum"), strict=True))
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, _per_group(base_lr, optimizer, "values for base_lr"), strict=True):
                group["initial_lr"] = group["lr"] = lr
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the function scale_fn."""
        return {key: value for key, value in super().state_dict().items() if key != "scale_fn"}

    def _scale(self, x):
        if self.scale_fn is not None:
            return self.scale_fn(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma ** x}[self.mode]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.length)
        x = 1 + self.last_epoch / self.length - cycle
        height = x * self.length / self.up if x <= self.up / self.length else (x - 1) / (self.up / self.length - 1)
        height = max(0, height) * self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, (low, high) in zip(self.optimizer.param_groups, self.momenta, strict=True):
                OneCycleLR._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class SequentialLR(LRScheduler):
    """Schedules one after another: the next one begins at each milestone."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler to be chained")
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("SequentialLR expects all schedulers to belong to the same optimizer")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("SequentialLR expects number of schedulers provided to be one more than the number of milestone "
                             f"points, but got {len(schedulers)} schedulers and {len(milestones)} milestones")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:                   # undo the first step of each schedule
            group["lr"] = group["initial_lr"]
        for s in self._schedulers:
            s.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:
        """Count one epoch and let the schedule in force set the rates."""
        self.last_epoch += 1
        i = sum(milestone <= self.last_epoch for milestone in self._milestones)
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i]._restart()
        else:
            self._schedulers[i].step()
        self._last_lr = self._schedulers[i].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for s, saved in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            s.load_state_dict(saved)
        self.__dict__.update(state)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: their factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained")
        self.optimizer = optimizer or schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer for s in schedulers):
            raise ValueError("ChainedScheduler expects all schedulers to belong to the same optimizer")
        self._schedulers = list(schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:
        """Step every schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """lr *= factor when the metric given to `step(metric)` has not improved for more than `patience` epochs."""

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.min_lrs = _per_group(min_lr, optimizer, "min_lrs")
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` improves on `best` by more than the threshold."""
        margin = self.threshold * best if self.threshold_mode == "rel" else self.threshold
        return a < best - margin if self.mode == "min" else a > best + margin

    def step(self, metrics: Any) -> None:
        """Count one epoch with its metric (a number or a tensor of one element)."""
        current = float(metrics)
        self.last_epoch += 1
        if math.isinf(self.best) and current != self.best:
            better = not math.isnan(current)                   # inf - threshold * inf is NaN
        else:
            better = self.is_better(current, self.best)
        if better:
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()
