"""PyTorch's public path torch.autograd, a thin list of names.

Relies on the engine; and on tools for the gradient checks and on func for functional, which are imported when first used.
"""

from ..engine.backward import backward, grad
from ..engine.function import Function
from ..engine.hooks import detect_anomaly, set_detect_anomaly
from ..engine.modes import enable_grad, no_grad, set_grad_enabled
from . import function, graph


def Variable(data, requires_grad=False):
    """The tensor itself, of older scripts; with requires_grad, a leaf of its own that shares the memory of `data`."""
    return data.detach().requires_grad_() if requires_grad else data


# Four of them come from __getattr__, which ruff does not follow.
__all__ = ["Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad",
           "gradcheck", "gradgradcheck", "graph", "no_grad", "set_detect_anomaly", "set_grad_enabled"]


def __getattr__(name):
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        from .. import tools
        return getattr(tools, name)
    if name == "functional":
        from importlib import import_module
        return import_module(f"{__name__}.functional")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
