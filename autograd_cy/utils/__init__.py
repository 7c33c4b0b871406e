"""PyTorch's public path torch.utils, a thin list of names.

Relies on data, and on func for checkpoint, which is imported when first used.  Training scripts written for PyTorch rely on it.
"""

from .._later import later
from . import data

__all__ = ["checkpoint", "data"]
__getattr__, __dir__ = later(__name__, {"checkpoint": "checkpoint"})
