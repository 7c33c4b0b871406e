"""PyTorch's public path torch.utils, a thin list of names.

Relies on data.  Training scripts written for PyTorch rely on it.
"""

from . import data

__all__ = ["data"]
