"""Bundled data, one-hot, standardise, and the loader.

Relies on data and utils.data.
"""

import collections

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import data
from autograd_cy.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    random_split,
)


def array(t):
    return np.array(t.numpy())


def test_s2_46_xor():
    x, y = data.xor()
    assert x.dtype == y.dtype == ag.float32
    np.testing.assert_array_equal(array(x), [[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(array(y), [[0], [1], [1], [0]])
    assert data.xor(ag.float64)[0].dtype == ag.float64


def test_iris_is_fishers():
    features, labels, names = data.iris()
    assert tuple(features.shape) == (150, 4)
    assert features.dtype == ag.float32
    assert labels.dtype == ag.int64
    assert names == ("setosa", "versicolor", "virginica")
    np.testing.assert_array_equal(array(labels), np.repeat([0, 1, 2], 50))
    x = array(data.iris(ag.float64).features)
    np.testing.assert_allclose(x.sum(0), [876.5, 458.6, 563.7, 179.9], rtol=1e-12)
    # the two rows in which UCI's copy is wrong
    np.testing.assert_array_equal(x[34], [4.9, 3.1, 1.5, 0.2])
    np.testing.assert_array_equal(x[37], [4.9, 3.6, 1.4, 0.1])
    np.testing.assert_array_equal(x[[0, 149]], [[5.1, 3.5, 1.4, 0.2], [5.9, 3.0, 5.1, 1.8]])


@pytest.mark.oracle
def test_iris_equals_scikit_learn():
    theirs = pytest.importorskip("sklearn.datasets").load_iris()
    ours = data.iris(ag.float64)
    np.testing.assert_array_equal(array(ours.features), theirs.data)
    np.testing.assert_array_equal(array(ours.labels), theirs.target)


def test_one_hot():
    y = data.one_hot(ag.tensor([0, 2, 1]))
    assert y.dtype == ag.float32
    np.testing.assert_array_equal(array(y), np.eye(3)[[0, 2, 1]])
    assert tuple(data.one_hot([[0], [1]], 4, ag.float64).shape) == (2, 1, 4)
    assert tuple(data.one_hot(np.zeros(0, int), 3).shape) == (0, 3)
    with pytest.raises(ValueError, match=r"0\.\.1"):
        data.one_hot([0, 2], 2)
    with pytest.raises(ValueError):
        data.one_hot([-1])
    with pytest.raises(TypeError, match="integer"):
        data.one_hot([0.5])


def test_standardise():
    x = ag.tensor([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]], dtype=ag.float64)
    z = array(data.standardise(x))
    np.testing.assert_allclose(z.mean(0), [0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(z[:, 0].std(), 1.0)
    np.testing.assert_array_equal(z[:, 1], 0.0)
    same = data.standardise(x, mean=ag.zeros(2, dtype=ag.float64), std=ag.ones(2, dtype=ag.float64))
    np.testing.assert_array_equal(array(same), array(x))


def ten():
    return TensorDataset(ag.arange(20, dtype=ag.float32).reshape(10, 2), ag.arange(10))


def test_loader_in_order():
    loader = DataLoader(ten(), batch_size=4)
    assert len(loader) == 3
    batches = list(loader)
    assert [tuple(x.shape) for x, _ in batches] == [(4, 2), (4, 2), (2, 2)]
    assert [int(i) for _, y in batches for i in y] == list(range(10))
    np.testing.assert_array_equal(array(batches[1][0]), [[8, 9], [10, 11], [12, 13], [14, 15]])
    assert [len(y) for _, y in DataLoader(ten(), batch_size=4, drop_last=True)] == [4, 4]
    assert len(DataLoader(ten(), batch_size=4, drop_last=True)) == 2
    assert [int(y) for _, y in DataLoader(ten(), batch_size=None)] == list(range(10))


def test_loader_shuffles_anew_each_epoch():
    ag.manual_seed(0)
    loader = DataLoader(ten(), batch_size=3, shuffle=True)
    first, second = ([int(i) for _, y in loader for i in y] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    ag.manual_seed(0)
    assert [int(i) for _, y in loader for i in y] == first
    for x, y in loader:
        np.testing.assert_array_equal(array(x)[:, 0], 2 * array(y))


def test_loader_with_samplers_and_collate():
    assert [y.tolist() for _, y in DataLoader(ten(), batch_size=2, sampler=[5, 1, 2])] == [[5, 1], [2]]
    batches = DataLoader(ten(), batch_sampler=[[0, 9], [3]])
    assert [y.tolist() for _, y in batches] == [[0, 9], [3]]
    assert len(batches) == 2
    assert list(DataLoader([1, 2, 3], batch_size=2, collate_fn=sum)) == [3, 3]
    assert len(list(RandomSampler(range(5), replacement=True, num_samples=8))) == 8
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]


def test_default_collate():
    Pair = collections.namedtuple("Pair", "a b")
    samples = [{"x": ag.ones(2), "n": i, "f": 0.5, "s": "text", "p": Pair(np.ones(3), True)} for i in range(3)]
    batch, = DataLoader(samples, batch_size=3)
    assert tuple(batch["x"].shape) == (3, 2)
    assert batch["n"].tolist() == [0, 1, 2]
    assert batch["n"].dtype == ag.int64
    assert batch["f"].dtype == ag.float64
    assert batch["s"] == ["text"] * 3
    assert tuple(batch["p"].a.shape) == (3, 3)
    assert batch["p"].b.dtype == ag.bool
    with pytest.raises(TypeError, match="found"):
        list(DataLoader([object()]))


def test_data_sets_of_ones_own():
    class Squares(Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return i, float(i * i)

    x, y = next(iter(DataLoader(Squares(), batch_size=5)))
    assert y.tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]
    both = Squares() + Squares()
    assert len(both) == 10
    assert both[-1] == both[4] == (4, 16.0)
    assert isinstance(both, ConcatDataset)

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError):
        DataLoader(Stream(), shuffle=True)


def test_random_split_and_subset():
    ag.manual_seed(0)
    a, b = random_split(ten(), [7, 3])
    assert (len(a), len(b)) == (7, 3)
    seen = sorted(int(y) for part in (a, b) for _, y in (part[i] for i in range(len(part))))
    assert seen == list(range(10))
    assert [len(s) for s in random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    assert Subset("abcdef", [4, 0])[0] == "e"
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(ten(), [7, 7])


@pytest.mark.parametrize("arguments", [
    {"batch_size": 0}, {"batch_size": True}, {"sampler": [1], "shuffle": True}, {"batch_size": None, "drop_last": True},
    {"batch_sampler": [[0]], "batch_size": 2},
])
def test_loader_refusals(arguments):
    with pytest.raises(ValueError):
        DataLoader(ten(), **arguments)


def test_tensor_dataset_refuses_different_lengths():
    with pytest.raises(ValueError, match="Size mismatch"):
        TensorDataset(ag.ones(3), ag.ones(4))
