"""PyTorch's public path torch.utils.data, a thin list of names.

Relies on data/loader.  Training scripts written for PyTorch rely on it.
"""

from autograd_cy.data.loader import (
                                     BatchSampler,
                                     ConcatDataset,
                                     DataLoader,
                                     Dataset,
                                     IterableDataset,
                                     RandomSampler,
                                     Sampler,
                                     SequentialSampler,
                                     Subset,
                                     SubsetRandomSampler,
                                     TensorDataset,
                                     WeightedRandomSampler,
                                     default_collate,
                                     get_worker_info,
                                     random_split,
)

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
           "default_collate", "get_worker_info", "random_split"]
