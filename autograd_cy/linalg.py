"""PyTorch's public path torch.linalg, a thin list of names.

Relies on the engine.
"""

from .engine.linear_algebra import inv

__all__ = ["inv"]
