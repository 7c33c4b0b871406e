"""Sequences of different lengths as one tensor (torch.nn.utils.rnn).

Relies on the engine. Training scripts rely on it; packed sequences are not supported: mask the losses of what is padded.
"""

from collections.abc import Sequence

from autograd_cy.engine.creation import full
from autograd_cy.engine.joins import cat, stack
from autograd_cy.engine.tensor import Tensor


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Tensors of shapes (length, *), padded to the longest: (longest, n, *), or (n, longest, *) with batch_first."""
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: expected padding_side 'left' or 'right', got {padding_side!r}")
    if any(s.dim() == 0 or s.shape[1:] != sequences[0].shape[1:] for s in sequences):
        raise RuntimeError(f"pad_sequence: shapes may differ in the first dimension only, got {[s.shape for s in sequences]}")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        more = longest - s.shape[0]
        if more:
            rest = full((more, *s.shape[1:]), padding_value, dtype=s.dtype)
            s = cat([s, rest] if padding_side == "right" else [rest, s])
        padded.append(s)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False) -> list[Tensor]:
    """The first lengths[i] elements of each sequence: what pad_sequence was given."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:int(n)] for row, n in zip(rows, lengths, strict=True)]
