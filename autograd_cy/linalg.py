"""PyTorch's public path torch.linalg, a thin list of names.

Relies on the engine.
"""

from .engine.linear_algebra import *  # noqa: F403

__all__ = ["inv"]
