"""PyTorch's public path torch.utils, a thin list of names.

Relies on data, and on func for checkpoint, which is imported when first used.  Training scripts written for PyTorch rely on it.
"""

from . import data

__all__ = ["checkpoint", "data"]


def __getattr__(name):
    if name == "checkpoint":
        from importlib import import_module
        return import_module(f"{__name__}.checkpoint")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
