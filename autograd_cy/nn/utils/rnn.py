"""Sequences of different lengths as one tensor (torch.nn.utils.rnn).

Relies on the engine. Training scripts rely on it, and the recurrent layers, which take packed sequences.
"""

from collections.abc import Sequence
from typing import NamedTuple

from autograd_cy.engine.arrange import need_tensor
from autograd_cy.engine.creation import full, tensor
from autograd_cy.engine.joins import cat, stack
from autograd_cy.engine.tensor import Tensor


class PackedSequence(NamedTuple):
    """Sequences without their padding: all first elements of the sequences, longest first, then all second ones ... (`data`), how many
    there are of each (`batch_sizes`), and the orders by length and back (None where they came in this order)."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args, **kwargs) -> "PackedSequence":
        """With data.to(...)."""
        return self._replace(data=self.data.to(*args, **kwargs))


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """The first lengths[i] elements of every sequence of (longest, n, *), or (n, longest, *) with batch_first, packed.

    Raises RuntimeError where lengths are no lengths of these, or with enforce_sorted are not in descending order.
    """
    counts = [int(n) for n in lengths]
    x = need_tensor(input, "pack_padded_sequence").transpose(0, 1) if batch_first else need_tensor(input, "pack_padded_sequence")
    if len(counts) != x.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={x.shape[1]})")
    if not counts or min(counts) <= 0 or max(counts) > x.shape[0]:
        raise RuntimeError(f"Length of all samples has to be greater than 0 and at most {x.shape[0]}, but got lengths {counts}")
    order = None
    if not enforce_sorted:
        order = tensor(sorted(range(len(counts)), key=lambda k: -counts[k]))
        counts = [counts[k] for k in order.tolist()]
        x = x.index_select(1, order)
    elif counts != sorted(counts, reverse=True):
        raise RuntimeError(f"`lengths` array must be sorted in decreasing order when `enforce_sorted` is True, got {counts}. You can pass "
                           f"`enforce_sorted=False` to pack_padded_sequence")
    sizes = [sum(n > t for n in counts) for t in range(counts[0])]
    return PackedSequence(cat([x[t, :n] for t, n in enumerate(sizes)]), tensor(sizes), order, None if order is None else order.argsort())


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors of shapes (length, *), packed."""
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], enforce_sorted=enforce_sorted)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """(padded tensor, lengths) of what was packed, in the order it had; total_length: at least the longest."""
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length="
                         f"{total_length} and max sequence length being {len(sizes)}")
    steps = [*sequence.data.split(sizes), *[sequence.data[:0]] * ((total_length or len(sizes)) - len(sizes))]
    rest = sequence.data.shape[1:]
    padded = stack([s if len(s) == sizes[0] else cat([s, full((sizes[0] - len(s), *rest), padding_value, dtype=s.dtype)]) for s in steps])
    lengths = tensor([sum(n > k for n in sizes) for k in range(sizes[0])])
    if sequence.unsorted_indices is not None:
        padded, lengths = padded.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """What pack_sequence was given."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


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
