"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, the rare ones in clusters of smaller layers.

Relies on Linear, containers and functional. Models of language rely on it.
"""

from collections import namedtuple
from collections.abc import Sequence

from autograd_cy.engine.choose import where
from autograd_cy.engine.joins import cat
from autograd_cy.engine.tensor import Tensor

from .containers import ModuleList, Sequential
from .functional import log_softmax
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """forward(input (N, in_features), target (N,)) gives (output, loss): the logarithm of each target's probability, and minus their mean
    (Grave et al., 2017); or of a single input and target.

    Classes come in the order of their frequency: those below cutoffs[0] are the head's own, those from cutoffs[i] on share an output of the
    head, and a cluster of in_features / div_value ** (i + 1) features tells them apart. RuntimeError for targets out of range.
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
                 device=None, dtype=None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or cutoffs != sorted({int(c) for c in cutoffs}) or not 1 <= cutoffs[0] <= cutoffs[-1] < n_classes:
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                             f"between 1 and n_classes-1, got {cutoffs}")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs, self.shortlist_size, self.n_clusters = [*cutoffs, n_classes], cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype=dtype, device=device)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, features, False, dtype=dtype, device=device),
                                        Linear(features, self.cutoffs[i + 1] - self.cutoffs[i], False, dtype=dtype, device=device)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise RuntimeError(f"AdaptiveLogSoftmaxWithLoss: expected shapes (N, in_features) and (N,), or one of each without N, got "
                               f"{input.shape} and {target.shape}")
        x, t = input.reshape(-1, input.shape[-1]), target.reshape(-1)
        if t.numel() and not 0 <= int(t.min()) <= int(t.max()) < self.n_classes:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{t.min().item()}, "
                               f"{t.max().item()}] were found.")
        first, tails = t, []
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            inside = (t >= low) & (t < high)
            first = where(inside, self.shortlist_size + i, first)
            rows = inside.nonzero().squeeze(1)
            if len(rows):
                tails.append((rows, log_softmax(self.tail[i](x[rows]), 1).gather(1, (t[rows] - low).unsqueeze(1)).squeeze(1)))
        output = log_softmax(self.head(x), 1).gather(1, first.unsqueeze(1)).squeeze(1)
        for rows, chosen in tails:
            output = output.index_add(0, rows, chosen)
        return _ASMoutput(output.reshape(target.shape), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of all probabilities, (N, n_classes)."""
        head = log_softmax(self.head(input), 1)
        return cat([head[:, :self.shortlist_size], *(log_softmax(tail(input), 1) + head[:, self.shortlist_size + i, None]
                                                     for i, tail in enumerate(self.tail))], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input, (N,)."""
        return self.log_prob(input).argmax(1)
