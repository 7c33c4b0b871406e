"""Look-up tables: Embedding, EmbeddingBag.

Relies on functional. nn's front relies on it.
"""

from typing import Any

from autograd_cy.engine import creation
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.tensor import Tensor

from . import functional, init
from .module import Module
from .parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table of vectors, one for each of num_embeddings indices: input of any shape (int64) to (*shape, embedding_dim).

    padding_idx: a row of zeros that gets no gradient. max_norm: rows that are used are first scaled down to that p-norm (norm_type).
    scale_grad_by_freq: gradients are divided by how often a row is used. The weight is drawn from the normal distribution.

    >>> nn.Embedding(1000, 16)(ag.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 16)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
                 _freeze: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if sparse:
            raise RuntimeError("Embedding: sparse gradients are not supported; leave sparse=False")
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"Embedding: padding_idx {padding_idx} is out of range for {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, False
        if _weight is None:
            self.weight = Parameter(creation.empty(num_embeddings, embedding_dim, dtype=dtype, device=device), not _freeze)
            self.reset_parameters()
        elif _weight.shape != (num_embeddings, embedding_dim):
            raise ValueError(f"Embedding: expected a weight of shape {(num_embeddings, embedding_dim)}, got {_weight.shape}")
        else:
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Draw the weight anew; the row of padding_idx is zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        """The rows that input names."""
        return functional.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> "Embedding":
        """A table with the given vectors; freeze: they are not trained."""
        if embeddings.ndim != 2:
            raise ValueError(f"from_pretrained: expected a matrix, got shape {embeddings.shape}")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)

    def extra_repr(self) -> str:
        """Sizes and what differs from the defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class EmbeddingBag(Embedding):
    """Sums, means or maxima (mode) of rows of a table: see functional.embedding_bag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype=dtype,
                         device=device)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """The bags: one of each row of input, or those that begin at offsets."""
        return functional.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
                                        self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> "EmbeddingBag":
        """A table with the given vectors; freeze: they are not trained."""
        made = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made

    def extra_repr(self) -> str:
        """Sizes and what differs from the defaults."""
        return super().extra_repr() + f", mode={self.mode!r}"
