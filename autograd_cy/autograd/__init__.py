"""PyTorch's public path torch.autograd, a thin list of names.

Relies on the engine; and on tools for the gradient checks and on func for functional, which are imported when first used.
"""

from .._later import later
from ..engine.backward import backward, grad
from ..engine.function import Function
from ..engine.hooks import detect_anomaly, set_detect_anomaly
from ..engine.modes import enable_grad, no_grad, set_grad_enabled
from . import function, graph


def Variable(data, requires_grad=False):
    """The tensor itself, of older scripts; with requires_grad, a leaf of its own that shares the memory of `data`."""
    return data.detach().requires_grad_() if requires_grad else data


# Four of them come from __getattr__.
__all__ = ["Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad",
           "gradcheck", "gradgradcheck", "graph", "no_grad", "set_detect_anomaly", "set_grad_enabled"]
__getattr__, __dir__ = later(__name__, {
    **dict.fromkeys(("gradcheck", "gradgradcheck", "GradcheckError"), "..tools"), "functional": "functional"})
