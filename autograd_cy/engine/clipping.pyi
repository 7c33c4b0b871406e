# Types of the clipping of gradients.
#
# Relies on tensor.pyi. nn.utils relies on it.

from typing import Any

from .tensor import Tensor

def clip_norm(gradients: list[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: Any) -> Tensor: ...
