"""PyTorch's public path torch.utils.checkpoint, a thin list of names.

Relies on func.  Training scripts written for PyTorch rely on it.
"""

from ..func.recompute import CheckpointError, checkpoint, checkpoint_sequential

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]
