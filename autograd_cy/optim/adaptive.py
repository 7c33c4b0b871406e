"""Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop, ASGD, Adafactor and Muon: equal to those of torch.optim step by step, states and defaults
included; Muon up to PyTorch's rounding to bfloat16.

Relies on Optimizer and on operations of tensors; training scripts rely on it. These are written for being there, not for speed: a few
operations on every parameter. What changes from step to step is in tensors, the count of steps too, so that a capture can repeat it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from autograd_cy.array.dtypes import float64
from autograd_cy.engine import creation
from autograd_cy.engine.choose import where
from autograd_cy.engine.elementwise import maximum
from autograd_cy.engine.modes import enable_grad, no_grad
from autograd_cy.engine.types import finfo

from .optimizer import Optimizer, check_execution, check_range

_MESSAGES = {"lr": "learning rate", "eps": "epsilon value"}


class _Stepwise(Optimizer):
    """What these share. `usual`: the options in PyTorch's order with their defaults; `_update(p, g, s, o)`: a step of one parameter from
    its gradient, state and options. s["step"] is a 0-d float64 tensor; so are lr and betas in a captured step."""

    usual: dict[str, Any] = {}

    def __init__(self, params, *options, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, **named) -> None:
        check_execution(differentiable)
        names = list(self.usual)
        if len(options) > len(names) or (set(named) - set(names[len(options):])):
            raise TypeError(f"{type(self).__name__}: expected options among {', '.join(names)}, each once; got {len(options)} without a "
                            f"name and {sorted(named)}")
        chosen = self.usual | dict(zip(names, options, strict=False)) | named
        super().__init__(params, chosen | {"foreach": foreach, "maximize": maximize, "capturable": capturable,
                                           "differentiable": differentiable})

    def _check(self, group: dict[str, Any]) -> None:
        check_range(group, **{k: _MESSAGES.get(k, k + " value") for k, v in self.usual.items() if isinstance(v, (int, float))})
        for i, beta in enumerate(group.get("betas", ())):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; `closure`, if given, is called first and its value returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            options = _scheduled(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = -p.grad if group["maximize"] else p.grad.detach()
                state = self.state[p]
                if not state:
                    if self.counts:
                        state["step"] = creation.zeros((), dtype=float64)
                    self._begin(p, state, group)
                if self.counts:
                    state["step"].add_(1)
                if self.decays and group.get("weight_decay"):
                    if group.get("decoupled_weight_decay"):
                        p.mul_(1 - options["lr"] * group["weight_decay"])
                    else:
                        g = g.add(p, alpha=group["weight_decay"])
                self._update(p, g, state, options)
        return loss

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """As Optimizer's; it reads steps as numbers."""
        super().load_state_dict(state_dict)
        for state in self.state.values() if self.counts else ():
            state["step"] = creation.tensor(float(state["step"]), dtype=float64)

    def _begin(self, p, state, group):
        for name in self.zeros:
            state[name] = creation.zeros_like(p)

    zeros: tuple[str, ...] = ()
    counts = decays = True           # whether the state has the number of steps; whether step() applies weight_decay

    def _update(self, p, g, s, o):
        raise NotImplementedError


def _scheduled(group):
    """The options of a group; in a captured step with what schedules change as tensors, which every replay fills anew."""
    if not creation.capturing():
        return group
    numbers = creation.empty((1 + len(group.get("betas", ())),), dtype=float64)
    creation.outside(partial(_read, group), [], [numbers])
    return {**group, "lr": numbers[0], "betas": numbers[1:].unbind()}


def _read(group, inputs, outputs):
    creation.write(outputs[0], (group["lr"], *group.get("betas", ())))


def _moments(s, g, betas):
    """The running means of g and its square, as Adam's; and 1 - beta ** step of both."""
    s["exp_avg"].lerp_(g, 1 - betas[0])
    s["exp_avg_sq"].mul_(betas[1]).add_(g.square().mul_(1 - betas[1]))
    return 1 - betas[0] ** s["step"], 1 - betas[1] ** s["step"]


class Adagrad(_Stepwise):
    """p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps), with the sum of all g^2 (Duchi et al., 2011)."""

    usual = {"lr": 1e-2, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10, "fused": None}

    def _begin(self, p, state, group):
        state["sum"] = creation.full_like(p, group["initial_accumulator_value"])

    def _update(self, p, g, s, o):
        s["sum"].addcmul_(g, g)
        p.sub_(g.div(s["sum"].sqrt().add_(o["eps"])).mul_(o["lr"] / (1 + (s["step"] - 1) * o["lr_decay"])))


class Adadelta(_Stepwise):
    """p -= lr * d with d = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g, both running means of squares (Zeiler, 2012)."""

    usual = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0}
    zeros = ("square_avg", "acc_delta")

    def _check(self, group):
        super()._check(group)
        if group["rho"] > 1.0:
            raise ValueError(f"Invalid rho value: {group['rho']}")

    def _update(self, p, g, s, o):
        s["square_avg"].mul_(o["rho"]).addcmul_(g, g, value=1 - o["rho"])
        d = (s["acc_delta"] + o["eps"]).sqrt_().div_((s["square_avg"] + o["eps"]).sqrt_()).mul_(g)
        s["acc_delta"].mul_(o["rho"]).addcmul_(d, d, value=1 - o["rho"])
        p.sub_(d.mul_(o["lr"]))


class Adamax(_Stepwise):
    """p -= lr / (1 - b1^t) * exp_avg / u, with u = max(b2 * u, |g| + eps) (Kingma and Ba, 2015)."""

    usual = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
    zeros = ("exp_avg", "exp_inf")

    def _update(self, p, g, s, o):
        b1, b2 = o["betas"]
        s["exp_avg"].lerp_(g, 1 - b1)
        s["exp_inf"].copy_(maximum(s["exp_inf"] * b2, g.abs().add_(o["eps"])))
        p.sub_(s["exp_avg"].div(s["exp_inf"]).mul_(o["lr"] / (1 - b1 ** s["step"])))


class NAdam(_Stepwise):
    """Adam with Nesterov's momentum, whose factors grow as b1 * (1 - 0.96^(t * momentum_decay) / 2) (Dozat, 2016)."""

    usual = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "momentum_decay": 4e-3, "decoupled_weight_decay": False}
    zeros = ("exp_avg", "exp_avg_sq")

    def _begin(self, p, state, group):
        super()._begin(p, state, group)
        state["mu_product"] = creation.ones(())

    def _update(self, p, g, s, o):
        mu, following = (o["betas"][0] * (1 - 0.5 * 0.96 ** (t * o["momentum_decay"])) for t in (s["step"], s["step"] + 1))
        product = s["mu_product"].mul_(mu).double()
        _, second = _moments(s, g, o["betas"])
        root = s["exp_avg_sq"].div(second).sqrt_().add_(o["eps"])
        p.sub_(g.div(root).mul_(o["lr"] * (1 - mu) / (1 - product)))
        p.sub_(s["exp_avg"].div(root).mul_(o["lr"] * following / (1 - product * following)))


class RAdam(_Stepwise):
    """Adam whose steps are rectified, or plain momentum while the variance of v is not yet known (Liu et al., 2020)."""

    usual = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "decoupled_weight_decay": False}
    zeros = ("exp_avg", "exp_avg_sq")

    def _update(self, p, g, s, o):
        first, second = _moments(s, g, o["betas"])
        most = 2 / (1 - o["betas"][1]) - 1
        length = most - 2 * s["step"] * (1 - second) / second
        known = length.clamp(min=5.0)
        rectified = ((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known) * second).sqrt_()
        scale = where(length > 5, rectified / s["exp_avg_sq"].sqrt().add_(o["eps"]), 1.0)
        p.sub_(scale.mul_(s["exp_avg"]).mul_(o["lr"] / first))


class Rprop(_Stepwise):
    """Steps of a size for each element, which grows while the gradient keeps its sign and shrinks when it does not; g counts by its sign
    only (Riedmiller and Braun, 1993)."""

    usual = {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}

    def _check(self, group):
        super()._check(group)
        low, high = group["etas"]
        if not 0.0 < low < 1.0 < high:
            raise ValueError(f"Invalid eta values: {low}, {high}")

    def _begin(self, p, state, group):
        state["prev"] = creation.zeros_like(p)
        state["step_size"] = creation.full_like(p, group["lr"])

    def _update(self, p, g, s, o):
        turn = g * s["prev"]
        size = s["step_size"].mul_(where(turn > 0, o["etas"][1], where(turn < 0, o["etas"][0], 1.0))).clamp_(*o["step_sizes"])
        g = where(turn < 0, 0, g)
        p.addcmul_(g.sign(), size, value=-1)
        s["prev"].copy_(g)


class ASGD(_Stepwise):
    """SGD whose parameters are averaged from step t0 on in the state "ax" (Polyak and Juditsky, 1992)."""

    usual = {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0}
    zeros = ("ax",)

    def _begin(self, p, state, group):
        state["eta"], state["mu"] = creation.tensor(float(group["lr"])), creation.ones(())
        super()._begin(p, state, group)

    def _update(self, p, g, s, o):
        eta = s["eta"].double()
        p.mul_(1 - o["lambd"] * eta).sub_(g * eta)
        s["ax"].add_((p - s["ax"]).mul_(s["mu"]))
        s["eta"].copy_(o["lr"] / (1 + o["lambd"] * o["lr"] * s["step"]) ** o["alpha"])
        s["mu"].copy_(1 / (s["step"] - o["t0"]).clamp(min=1.0))


def _root_of_mean_square(x):
    return x.norm().double() / x.numel() ** 0.5


class Adafactor(_Stepwise):
    """p -= max(eps2, RMS(p)) * min(lr, 1 / sqrt(t)) * u / max(1, RMS(u) / d), with u = g / sqrt(v) and v the running mean of g^2, of which
    matrices keep means of rows and columns only (Shazeer and Stern, 2018). eps: (eps1, eps2); eps1 None: the dtype's eps."""

    usual = {"lr": 1e-2, "beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0, "weight_decay": 0.0}
    decays = False

    def _check(self, group):
        eps1, eps2 = group["eps"]
        check_range({**group, "beta2_decay": -group["beta2_decay"], "eps1": eps1 or 0, "eps2": eps2, "d": group["d"] - 1},
                    lr="learning rate", weight_decay="weight_decay value", beta2_decay="negative of beta2_decay", eps1="epsilon1",
                    eps2="epsilon2", d="clipping threshold above 1")

    def _begin(self, p, state, group):
        if p.ndim > 1:
            state["row_var"], state["col_var"] = p.new_zeros(*p.shape[:-1], 1), p.new_zeros(*p.shape[:-2], 1, p.shape[-1])
        else:
            state["variance"] = creation.zeros_like(p)

    def _update(self, p, g, s, o):
        eps1, eps2 = o["eps"]
        eps1, share, squares = finfo(p.dtype).eps if eps1 is None else eps1, s["step"] ** o["beta2_decay"], g.square()
        size = _root_of_mean_square(p).clamp(min=eps2) * (s["step"] ** -0.5).clamp(max=o["lr"])
        if o["weight_decay"]:
            p.mul_(1 - o["lr"] * o["weight_decay"])
        if p.ndim > 1:
            rows, columns = s["row_var"].lerp_(squares.mean(-1, True), share), s["col_var"].lerp_(squares.mean(-2, True), share)
            v = (rows @ columns).div_(rows.mean(-2, True).clamp_(min=eps1))
        else:
            v = s["variance"].lerp_(squares, share).clone()
        u = v.clamp_(min=eps1 * eps1).rsqrt_().mul_(g)
        p.sub_(u.mul_(size / (_root_of_mean_square(u) / o["d"]).clamp(min=1.0)))


class Muon(_Stepwise):
    """Momentum of matrices, made orthogonal: p *= 1 - lr * weight_decay; p -= lr * r * O, where ns_steps of X = a X + (b A + c A^2) X with
    A = X X^T lead to O from the momentum divided by its norm (Jordan et al., 2024).

    adjust_lr_fn: r = sqrt(max(1, rows / columns)) ("original" or None), or 0.2 sqrt(max(rows, columns)) ("match_rms_adamw"). PyTorch
    computes O in bfloat16, here the dtype is the parameter's. ValueError for parameters that are no matrices.
    """

    usual = {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True, "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7,
             "ns_steps": 5, "adjust_lr_fn": None}
    zeros = ("momentum_buffer",)
    counts = decays = False

    def _check(self, group):
        super()._check(group)
        for p in group["params"]:
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}")
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {group['adjust_lr_fn']} is not supported")
        if len(group["ns_coefficients"]) != 3 or group["ns_steps"] >= 100:
            raise ValueError(f"Muon: expected 3 coefficients and less than 100 steps, got {group['ns_coefficients']}, {group['ns_steps']}")

    def _update(self, p, g, s, o):
        (rows, columns), (a, b, c) = p.shape, o["ns_coefficients"]
        x = s["momentum_buffer"].lerp_(g, 1 - o["momentum"])
        x = g.lerp(x, o["momentum"]) if o["nesterov"] else x
        x = x.T if rows > columns else x
        x = x / x.norm().clamp(min=o["eps"])
        for _ in range(o["ns_steps"]):
            square = x @ x.T
            x = x * a + (square * b + square @ square * c) @ x
        ratio = 0.2 * max(rows, columns) ** 0.5 if o["adjust_lr_fn"] == "match_rms_adamw" else max(1, rows / columns) ** 0.5
        p.mul_(1 - o["lr"] * o["weight_decay"]).sub_((x.T if rows > columns else x) * (o["lr"] * ratio))
