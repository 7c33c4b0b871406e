"""PyTorch's public path torch.autograd.graph: nodes, and what becomes of saved values.

Relies on the engine.
"""

from ..engine.hooks import saved_tensors_hooks
from ..engine.node import Node

__all__ = ["Node", "saved_tensors_hooks"]
