"""Small data sets that come with the library, and the two preparations that nearly every table needs.

Relies on the engine (tensor creation).  Benchmarks, examples and tests rely on it.
"""

import csv
from importlib import resources
from typing import NamedTuple

import numpy as np

from autograd_cy.array.dtypes import float32
from autograd_cy.engine import creation
from autograd_cy.engine.choose import where
from autograd_cy.engine.tensor import Tensor

_SPECIES = ("setosa", "versicolor", "virginica")


class Iris(NamedTuple):
    """features (150, 4), labels int64 (150,) in 0..2, names of the three species."""

    features: Tensor
    labels: Tensor
    names: tuple[str, ...]


def xor(dtype=None) -> tuple[Tensor, Tensor]:
    """X (4, 2) and Y (4, 1), float32 by default: the four rows of the exclusive or."""
    dtype = float32 if dtype is None else dtype
    return (creation.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=dtype),
            creation.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=dtype))


def iris(dtype=None) -> Iris:
    """Fisher's iris data (Annals of Eugenics, 1936), float32 by default.

    The values follow Fisher's paper; the copy at UCI differs from it in rows 35 and 38.
    """
    text = resources.files(__package__).joinpath("iris.csv").read_text(encoding="ascii")
    rows = list(csv.reader(text.splitlines()))[1:]
    features = np.array([row[:4] for row in rows], dtype=np.float64)
    labels = np.array([_SPECIES.index(row[4]) for row in rows], dtype=np.int64)
    return Iris(creation.tensor(features, dtype=float32 if dtype is None else dtype), creation.tensor(labels), _SPECIES)


def one_hot(labels: Tensor, num_classes: int | None = None, dtype=None) -> Tensor:
    """Integer labels (...) -> (..., num_classes) of 0.0 and 1.0, float32 by default; num_classes: the largest label + 1."""
    labels = np.asarray(labels.numpy() if isinstance(labels, Tensor) else labels)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"one_hot expects integer labels, got {labels.dtype}")
    largest = int(labels.max()) if labels.size else -1
    num_classes = largest + 1 if num_classes is None else num_classes
    if labels.size and (labels.min() < 0 or largest >= num_classes):
        raise ValueError(f"one_hot: labels must be in 0..{num_classes - 1}, got {int(labels.min())}..{largest}")
    table = (labels[..., None] == np.arange(num_classes)).astype(np.float64)
    return creation.tensor(table, dtype=float32 if dtype is None else dtype)


def standardise(x: Tensor, mean: Tensor | None = None, std: Tensor | None = None, dim: int = 0) -> Tensor:
    """(x - mean) / std along dim, by default of x itself (std of the population); constant columns become 0.

    To prepare a test set as the training set, give the training set's mean and std.
    """
    if mean is None:
        mean = x.mean(dim, keepdim=True)
    if std is None:
        std = ((x - x.mean(dim, keepdim=True)) ** 2).mean(dim, keepdim=True).sqrt()
    return (x - mean) / where(std > 0, std, creation.ones_like(std))
