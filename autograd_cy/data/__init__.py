"""Bundled data sets, their preparation, and batches.

Relies on the engine.  Benchmarks, examples and training loops rely on it.
"""

from .datasets import Iris, iris, one_hot, standardise, xor
from .loader import (
                     BatchSampler,
                     ConcatDataset,
                     DataLoader,
                     Dataset,
                     IterableDataset,
                     RandomSampler,
                     Sampler,
                     SequentialSampler,
                     Subset,
                     TensorDataset,
                     default_collate,
                     random_split,
)

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "Iris", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "Subset", "TensorDataset", "default_collate", "iris", "one_hot", "random_split",
           "standardise", "xor"]
