"""PyTorch's public path torch.autograd.function: operations with a gradient of the user's own.

Relies on the engine.
"""

from ..engine.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
