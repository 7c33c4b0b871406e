"""Dropout: elements zeroed at random while a model is trained.

Relies on Module and functional.  Models rely on it.
"""

from . import functional as F
from .module import Module


class Dropout(Module):
    """Zeroes each element with probability p and scales the rest by 1 / (1 - p) in training; the identity in evaluation."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
