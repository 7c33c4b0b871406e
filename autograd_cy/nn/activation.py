"""Activation layers, each the module of the function of the same name.

Relies on Module and functional.  Models rely on it.
A layer without options is the function itself (`forward = staticmethod(relu)`), which saves a Python frame per call.
"""

import warnings

from ..engine import creation
from . import functional as F
from .module import Module
from .parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax",
    "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "Sigmoid", "SiLU", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "Tanh", "Tanhshrink", "Threshold",
]


class _Inplace(Module):
    """`inplace` is accepted for PyTorch's sake and has no effect: the result is a new tensor from the pool."""

    inplace: bool = False

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        if inplace:
            self.inplace = True

    def extra_repr(self) -> str:
        return ", ".join(filter(None, (super().extra_repr(), "inplace=True" if self.inplace else "")))


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

    _repr_names = "negative_slope"


class ELU(_Inplace):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha)

    _repr_names = "alpha"


class RReLU(_Inplace):
    """x where x >= 0, a * x elsewhere: a drawn from [lower, upper) for each element in training, their mean in evaluation."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training)

    _repr_names = "lower upper"


class ReLU6(_Inplace):
    """x limited to [0, 6]; the gradient at the bounds is 0."""

    forward = staticmethod(F.relu6)


class SELU(_Inplace):
    """1.0507 * x where x > 0, 1.7581 * (exp(x) - 1) elsewhere (Klambauer et al., 2017)."""

    forward = staticmethod(F.selu)


class Hardsigmoid(_Inplace):
    """(x + 3) / 6 limited to [0, 1]."""

    forward = staticmethod(F.hardsigmoid)


class Hardswish(_Inplace):
    """x * hardsigmoid(x)."""

    forward = staticmethod(F.hardswish)


class Mish(_Inplace):
    """x * tanh(softplus(x))."""

    forward = staticmethod(F.mish)


class Softsign(Module):
    """x / (1 + |x|)."""

    forward = staticmethod(F.softsign)


class Tanhshrink(Module):
    """x - tanh(x)."""

    forward = staticmethod(F.tanhshrink)


class CELU(_Inplace):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.celu(input, self.alpha)

    _repr_names = "alpha"


class Hardtanh(_Inplace):
    """x limited to [min_val, max_val]; the gradient at the bounds is 0."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if max_val <= min_val:
            raise ValueError(f"Hardtanh: max_val must be greater than min_val, got {max_val} and {min_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val)

    _repr_names = "min_val max_val"


class Threshold(_Inplace):
    """x where x > threshold, value elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value)

    _repr_names = "threshold value"


class Hardshrink(Module):
    """x where |x| > lambd, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd, but not beyond."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class PReLU(Module):
    """x where x > 0, weight * x elsewhere; one weight is learnt, or one for each channel (dimension 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(creation.empty((num_parameters,), dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    _repr_names = "num_parameters"


class GLU(Module):
    """a * sigmoid(b) for the halves a and b of the input along dim."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    _repr_names = "dim"


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; `approximate="tanh"` is the usual approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"approximate argument must be either none or tanh, got {approximate!r}.")
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, self.approximate)

    _repr_names = "approximate"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    _repr_names = "beta threshold"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def _implicit(self, input):
        warnings.warn(f"{type(self).__name__} without dim chooses one by the number of dimensions; "
                      "give dim=, nearly always dim=-1", stacklevel=3)
        return 0 if input.ndim in (0, 1, 3) else 1

    _repr_names = "dim"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along dim."""

    def forward(self, input):
        return F.softmax(input, self._implicit(input) if self.dim is None else self.dim)


class Softmin(_AlongDim):
    """exp(-x) / sum(exp(-x)) along dim."""

    def forward(self, input):
        return F.softmin(input, self._implicit(input) if self.dim is None else self.dim)


class LogSoftmax(_AlongDim):
    """x - logsumexp(x) along dim."""

    def forward(self, input):
        return F.log_softmax(input, self._implicit(input) if self.dim is None else self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
