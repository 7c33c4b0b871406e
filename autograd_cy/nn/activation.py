"""Activation layers, each the module of the function of the same name.

Relies on Module and functional.  Models rely on it.
A layer without options is the function itself (`forward = staticmethod(relu)`), which saves a Python frame per call.
"""

import warnings

from . import functional as F
from .module import Module


class _Inplace(Module):
    """`inplace` is accepted for PyTorch's sake and has no effect: the result is a new tensor from the pool."""

    inplace: bool = False

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        if inplace:
            self.inplace = True

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(x, 0); the gradient at 0 is 0."""

    forward = staticmethod(F.relu)


class SiLU(_Inplace):
    """x * sigmoid(x)."""

    forward = staticmethod(F.silu)


class Tanh(Module):
    """tanh(x)."""

    forward = staticmethod(F.tanh)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    forward = staticmethod(F.sigmoid)


class LogSigmoid(Module):
    """log(sigmoid(x)), stable for large negative x."""

    forward = staticmethod(F.logsigmoid)


class LeakyReLU(_Inplace):
    """x where x > 0, negative_slope * x elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(_Inplace):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; `approximate="tanh"` is the usual approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"approximate argument must be either none or tanh, got {approximate!r}.")
        self.approximate = approximate

    def forward(self, input):
        return F.gelu_exact(input) if self.approximate == "none" else F.gelu_tanh(input)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def _implicit(self, input):
        warnings.warn(f"{type(self).__name__} without dim chooses one by the number of dimensions; "
                      "give dim=, nearly always dim=-1", stacklevel=3)
        return 0 if input.ndim in (0, 1, 3) else 1

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along dim."""

    def forward(self, input):
        return F.softmax(input, self._implicit(input) if self.dim is None else self.dim)


class LogSoftmax(_AlongDim):
    """x - logsumexp(x) along dim."""

    def forward(self, input):
        return F.log_softmax(input, self._implicit(input) if self.dim is None else self.dim)
