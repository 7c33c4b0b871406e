"""PyTorch's public path torch.autograd, a thin list of names.

Relies on the engine, and on tools for the gradient checks, which are imported when first used.
"""

from .engine.backward import backward, grad
from .engine.modes import enable_grad, no_grad, set_grad_enabled

# Three of them come from __getattr__, which ruff does not follow.
__all__ = ["GradcheckError", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck",  # noqa: F822
           "no_grad", "set_grad_enabled"]


def __getattr__(name):
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        from . import tools
        return getattr(tools, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
