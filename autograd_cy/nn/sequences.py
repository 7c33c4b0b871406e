"""Connectionist temporal classification: the loss of sequences whose alignment with their labels is not known.

Relies on the engine and losses.  functional.py re-exports it; the layer of loss.py relies on it.
"""

from ..array.dtypes import int64
from ..array.errors import ShapeError
from ..engine import creation
from ..engine.arguments import need_tensor
from ..engine.joins import cat, stack
from ..engine.reduce import logsumexp
from ..engine.choose import where
from ..engine.tensor import Tensor
from .losses import reduced

INF = float("inf")


def _lengths(lengths, n, most, name):
    values = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(values) != n:
        raise ShapeError(f"ctc_loss: {name} must be of size {n}, the batch's, got {len(values)}")
    if any(not 0 <= v <= most for v in values):
        raise RuntimeError(f"ctc_loss: Expected {name} to have values from 0 to {most}, but got {values}")
    return values


def _padded(targets, lengths, n, blank):
    """Targets (N, S) from those of a batch, or from all of them joined."""
    if targets.ndim == 2:
        if targets.shape[0] != n:
            raise ShapeError(f"ctc_loss: Expected targets of {n} sequences, but got shape {list(targets.shape)}")
        return targets
    if targets.ndim != 1 or targets.numel() != sum(lengths):
        raise ShapeError(f"ctc_loss: Expected targets of {sum(lengths)} labels, as target_lengths say, but got shape {list(targets.shape)}")
    longest, rows, at = max(lengths, default=0), [], 0
    for length in lengths:
        rows.append(cat([targets[at:at + length], creation.full((longest - length,), blank, dtype=targets.dtype)]))
        at += length
    return stack(rows)


def _shifted(a, by):
    return cat([creation.full((a.shape[0], by), -INF, dtype=a.dtype), a[:, :-by]], 1)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """-log of the sum, over all alignments of targets with the steps, of the products of their probabilities.

    log_probs (T, N, C) or (T, C), after log_softmax; targets (N, S), or all joined in one dimension; lengths of each sequence, as
    tensors or sequences of integers. "mean": each loss is divided by its target's length first. zero_infinity: impossible
    alignments count as 0. The gradient is that of this formula (PyTorch's adds what log_softmax would subtract again).
    """
    need_tensor(log_probs, "ctc_loss")
    need_tensor(targets, "ctc_loss")
    single = log_probs.ndim == 2
    if log_probs.ndim not in (2, 3) or not log_probs.is_floating_point():
        raise ShapeError(f"ctc_loss: expected floating-point log_probs of shape (T, N, C) or (T, C), got {list(log_probs.shape)}")
    if single:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0) if targets.ndim == 1 else targets
        input_lengths, target_lengths = [v.reshape(1) if isinstance(v, Tensor) else [v] if isinstance(v, int) else v
                                         for v in (input_lengths, target_lengths)]
    steps, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range, 0 to {classes - 1}, got {blank}")
    most = targets.shape[1] if targets.ndim == 2 else targets.numel()
    inputs, lengths = _lengths(input_lengths, n, steps, "input_lengths"), _lengths(target_lengths, n, most, "target_lengths")
    labels = _padded(targets, lengths, n, blank).to(int64)
    places = 2 * labels.shape[1] + 1
    blanks = creation.full((n, labels.shape[1], 1), blank, dtype=int64)
    extended = cat([cat([blanks, labels.unsqueeze(2)], 2).reshape(n, places - 1), creation.full((n, 1), blank, dtype=int64)], 1)
    # A place may be reached from two before it, unless it is a blank or repeats the label there.
    before = cat([creation.full((n, min(2, places)), blank, dtype=int64), extended[:, :-2]], 1)[:, :places]
    skips = (extended != blank) & (extended != before)
    emitted = log_probs.gather(2, extended.unsqueeze(0).expand(steps, n, places))
    alpha = where(creation.arange(places) < 2, emitted[0], -INF) if steps else creation.full((n, places), -INF, dtype=log_probs.dtype)
    for t in range(1, max(inputs, default=0)):
        ways = [alpha, _shifted(alpha, 1)] + ([where(skips, _shifted(alpha, 2), -INF)] if places > 2 else [])
        after = logsumexp(stack(ways), 0) + emitted[t]
        alpha = after if t < min(inputs) else where(creation.tensor([[t < k] for k in inputs]), after, alpha)
    ends = creation.tensor([[2 * k - (k > 0), 2 * k] for k in lengths]).reshape(n, 2)
    last = alpha.gather(1, ends)
    only = creation.tensor([[True, k > 0] for k in lengths]).reshape(n, 2)       # an empty target ends in its single blank
    losses = -logsumexp(where(only, last, -INF), 1)
    if any(k == 0 for k in inputs):
        losses = where(creation.tensor([k == 0 for k in inputs]), creation.tensor([0.0 if k == 0 else INF for k in lengths],
                                                                                    dtype=log_probs.dtype), losses)
    if zero_infinity:
        losses = where(losses == INF, 0, losses)
    if reduction == "mean":
        return (losses / creation.tensor([max(k, 1) for k in lengths], dtype=losses.dtype)).mean()
    return reduced(losses.squeeze(0) if single else losses, reduction)
