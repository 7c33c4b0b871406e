"""L-BFGS: quasi-Newton steps from the last gradients, with a line search by the strong Wolfe conditions (torch.optim.LBFGS).

Relies on Optimizer and on operations of tensors. Scripts that minimise smooth functions of all their data rely on it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from autograd_cy.engine.creation import zeros_like
from autograd_cy.engine.joins import cat
from autograd_cy.engine.modes import enable_grad, no_grad
from autograd_cy.engine.tensor import Tensor

from .optimizer import Optimizer


class _Point(NamedTuple):
    """Where a line search has been: the step, the value and gradient there, and the slope along the line."""

    t: float
    value: float
    gradient: Tensor
    slope: float


def _cubic(p, q, low, high):
    """Where the cubic through two points with their slopes is least, between low and high; the middle where it has no minimum."""
    if p.t > q.t:
        p, q = q, p
    a = p.slope + q.slope - 3 * (p.value - q.value) / (p.t - q.t)
    square = a * a - p.slope * q.slope
    if not square >= 0:
        return (low + high) / 2
    root = square ** 0.5
    return min(max(q.t - (q.t - p.t) * ((q.slope + root - a) / (q.slope - p.slope + 2 * root)), low), high)


def _wolfe(visit, start, t, width, most=25, sufficient=1e-4, flat=0.9):
    """The point of a step with value <= start + sufficient * t * slope and |slope there| <= flat * |slope|.

    The step grows until two points have such a step between them; these then close in on it, by cubics. width: below this they are one.
    """
    def too_high(p):
        return p.value > start.value + sufficient * p.t * start.slope

    def found(p):
        return abs(p.slope) <= -flat * start.slope

    last, now, tries = start, visit(t), 0
    while True:
        if too_high(now) or (tries > 1 and now.value >= last.value) or (not found(now) and now.slope >= 0):
            pair = [last, now]
            break
        if found(now):
            return now
        last, now = now, visit(_cubic(last, now, now.t + 0.01 * (now.t - last.t), now.t * 10))
        tries += 1
        if tries == most:
            pair = [start, now]
            break
    low = 0 if pair[0].value <= pair[1].value else 1
    stalled = False
    while tries < most and abs(pair[1].t - pair[0].t) >= width:
        left, right = sorted(p.t for p in pair)
        t, margin = _cubic(*pair, left, right), 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            stalled = False
        elif stalled or not left < t < right:
            t, stalled = right - margin if right - t < t - left else left + margin, False
        else:
            stalled = True
        now = visit(t)
        tries += 1
        if too_high(now) or now.value >= pair[low].value:
            pair[1 - low] = now
            low = 0 if pair[0].value <= pair[1].value else 1
            continue
        if not found(now) and now.slope * (pair[1 - low].t - pair[low].t) >= 0:
            pair[1 - low] = pair[low]
        pair[low] = now
        if found(now):
            break
    return pair[low]


class LBFGS(Optimizer):
    """Minimises what `closure` returns: `step(closure)` makes up to max_iter steps, each with one or more calls of the closure.

    The direction is that of the last history_size differences of steps and gradients (Nocedal, 1980); its length is lr, or with
    line_search_fn="strong_wolfe" searched for. It stops at gradients below tolerance_grad and changes below tolerance_change. One
    group of parameters, whose gradients the closure computes. ValueError for several groups.
    """

    def __init__(self, params, lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None) -> None:
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                                  "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _check(self, group):
        if not float(group["lr"]) >= 0.0:
            raise ValueError(f"Invalid learning rate: {group['lr']}")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

    def _gradient(self):
        return cat([(zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in self.param_groups[0]["params"]])

    def _move(self, d, t):
        start = 0
        for p in self.param_groups[0]["params"]:
            p.add_(d[start:start + p.numel()].reshape(p.shape), alpha=t)
            start += p.numel()

    @staticmethod
    def _direction(g, s, history_size):
        """The product of the approximate inverse Hessian and -g, by the two loops over the history in s."""
        y, step = g - s["prev_flat_grad"], s["d"] * s["t"]
        curved = float(y @ step)
        if curved > 1e-10:
            if len(s["old_dirs"]) == history_size:
                for each in (s["old_dirs"], s["old_stps"], s["ro"]):
                    del each[0]
            s["old_dirs"].append(y)
            s["old_stps"].append(step)
            s["ro"].append(1 / curved)
            s["H_diag"] = curved / float(y @ y)
        history = list(zip(s["old_dirs"], s["old_stps"], s["ro"], strict=True))
        d, factors = -g, []
        for y, step, rho in reversed(history):
            factors.append(float(step @ d) * rho)
            d.add_(y, alpha=-factors[-1])
        d.mul_(s["H_diag"])
        for y, step, rho in history:
            d.add_(step, alpha=factors.pop() - float(y @ d) * rho)
        return d

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to max_iter steps; the loss before the first."""
        o = self.param_groups[0]
        s = self.state[o["params"][0]]
        s.setdefault("func_evals", 0)
        s.setdefault("n_iter", 0)

        def evaluate():
            with enable_grad():
                loss = closure()
            s["func_evals"] += 1
            return loss

        before = s["func_evals"]
        first = evaluate()
        loss, g = float(first), self._gradient()
        if float(g.abs().max()) <= o["tolerance_grad"]:
            return first
        for k in range(o["max_iter"]):
            s["n_iter"] += 1
            if s["n_iter"] == 1:
                s |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1}
                d, t = -g, min(1.0, 1.0 / float(g.abs().sum())) * o["lr"]
            else:
                d, t = self._direction(g, s, o["history_size"]), o["lr"]
            s |= {"d": d, "t": t, "prev_flat_grad": g, "prev_loss": loss}
            last, slope = loss, float(g @ d)
            if slope > -o["tolerance_change"]:
                break
            if o["line_search_fn"] is None:
                self._move(d, t)
                if k + 1 == o["max_iter"]:               # nobody would look at it
                    break
                loss, g = float(evaluate()), self._gradient()
            else:
                home = [p.clone() for p in o["params"]]

                def visit(t, home=home, d=d):
                    self._move(d, t)
                    value, gradient = float(evaluate()), self._gradient()
                    for p, was in zip(o["params"], home, strict=True):
                        p.copy_(was)
                    return _Point(t, value, gradient, float(gradient @ d))

                point = _wolfe(visit, _Point(0.0, loss, g, slope), t, o["tolerance_change"] / float(d.abs().max()))
                loss, g, s["t"] = point.value, point.gradient, point.t
                self._move(d, point.t)
            if (s["func_evals"] - before >= o["max_eval"] or float(g.abs().max()) <= o["tolerance_grad"]
                    or float(d.abs().max()) * s["t"] <= o["tolerance_change"] or abs(loss - last) < o["tolerance_change"]):
                break
        return first
