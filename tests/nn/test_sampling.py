"""affine_grid, grid_sample and embedding_bag against NumPy, gradcheck, and PyTorch where it is installed.

Relies on nn and tests/numeric.py; nothing relies on it.
"""

import itertools

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F

OPTIONS = list(itertools.product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True)))


def test_identity_and_shift():
    x = ag.arange(24.0).reshape(1, 2, 3, 4)
    for align in (False, True):
        grid = F.affine_grid(ag.tensor([[[1.0, 0, 0], [0, 1, 0]]]), x.shape, align_corners=align)
        assert grid.shape == (1, 3, 4, 2)
        close(F.grid_sample(x, grid, align_corners=align), array(x), 1e-5, 1e-5)
    grid = F.affine_grid(ag.tensor([[[1.0, 0, 1.0], [0, 1, 0]]]), x.shape)                # half of the width is two pixels
    close(F.grid_sample(x, grid), np.concatenate([array(x)[..., 2:], np.zeros((1, 2, 3, 2))], -1), 1e-5, 1e-5)
    close(F.grid_sample(x, grid, padding_mode="border"), array(x)[..., [2, 3, 3, 3]], 1e-5, 1e-5)
    close(F.grid_sample(x, grid, padding_mode="reflection"), array(x)[..., [2, 3, 3, 2]], 1e-5, 1e-5)
    volume = ag.arange(24.0).reshape(1, 1, 2, 3, 4)
    theta = ag.eye(3, 4).unsqueeze(0)
    close(F.grid_sample(volume, F.affine_grid(theta, volume.shape)), array(volume), 1e-5, 1e-5)


@pytest.mark.parametrize(("mode", "padding", "align"), OPTIONS)
def test_derivatives(mode, padding, align):
    rng = np.random.default_rng(0)
    x, grid = leaf(rng.normal(size=(1, 2, 3, 4))), leaf(rng.uniform(-1.4, 1.4, (1, 2, 3, 2)))
    assert ag.autograd.gradcheck(lambda x, g: F.grid_sample(x, g, mode, padding, align), (x, grid))
    assert ag.autograd.gradgradcheck(lambda x, g: F.grid_sample(x, g, mode, padding, align), (x, grid))


@pytest.mark.oracle
@pytest.mark.parametrize(("mode", "padding", "align"), OPTIONS)
def test_grids_in_pytorch(mode, padding, align):
    torch = pytest.importorskip("torch")
    for seed in range(8):
        rng = np.random.default_rng(seed)
        d = 2 + seed % 2
        x, grid = rng.normal(size=(2, 3, *rng.integers(1, 6, d))), rng.uniform(-2.5, 2.5, (2, *rng.integers(1, 5, d), d))
        theta, found = rng.normal(size=(2, d, d + 1)), []
        for L in (ag, torch):
            a, b = L.tensor(x, requires_grad=True), L.tensor(grid, requires_grad=True)
            y = L.nn.functional.grid_sample(a, b, mode, padding, align)
            grads = L.autograd.grad((y ** 3).sum(), (a, b), allow_unused=True)
            places = L.nn.functional.affine_grid(L.tensor(theta), (2, 3, *[n + 1 for n in grid.shape[1:-1]]), align)
            found.append([array(v) if v is not None else np.zeros(grid.shape) for v in (y.detach(), *grads, places)])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-6, 1e-9)


def test_grids_that_are_refused():
    x = ag.ones(1, 1, 2, 2)
    for call in (lambda: F.affine_grid(ag.ones(1, 2, 2), (1, 1, 2, 2)), lambda: F.affine_grid(ag.ones(2, 2, 3), (1, 1, 2, 2)),
                 lambda: F.grid_sample(x, ag.ones(2, 2, 2, 2)), lambda: F.grid_sample(x, ag.ones(1, 2, 2, 3)), lambda: F.grid_sample(x[0], ag.ones(1, 2, 2)),
                 lambda: F.grid_sample(x, ag.ones(1, 2, 2, 2), "bicubic"), lambda: F.grid_sample(x, ag.ones(1, 2, 2, 2), padding_mode="wrap"),
                 lambda: F.grid_sample(x.long(), ag.ones(1, 2, 2, 2))):   # fmt: skip
        with pytest.raises((ValueError, RuntimeError)):
            call()


def bags(index, weight, offsets, mode, factors, padding):
    """embedding_bag in NumPy, of a vector of indices."""
    out = []
    for start, end in zip(offsets, [*offsets[1:], len(index)], strict=True):
        chosen = [k for k in range(start, end) if padding is None or index[k] != padding]
        rows = [weight[index[k]] * (1 if factors is None else factors[k]) for k in chosen]
        out.append(np.zeros(weight.shape[1]) if not rows else getattr(np, mode)(rows, 0))
    return np.array(out)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2, -1])
def test_embedding_bag(mode, padding):
    rng = np.random.default_rng(1)
    weight, index, offsets = rng.normal(size=(5, 3)), np.array([1, 2, 2, 4, 0, 2, 4]), [0, 3, 3, 6]
    factors = rng.normal(size=7) if mode == "sum" else None
    want = bags(index, weight, offsets, mode, factors, None if padding is None else padding % 5)
    given = None if factors is None else leaf(factors)

    def bag(weight, factors=None):
        return F.embedding_bag(ag.tensor(index), weight, ag.tensor(offsets), mode=mode, per_sample_weights=factors, padding_idx=padding)

    close(bag(leaf(weight), given), want, 1e-12)
    if padding is None:
        assert ag.autograd.gradcheck(bag, (leaf(weight),) if given is None else (leaf(weight), given))
    else:
        (g,) = ag.autograd.grad(bag(w := leaf(weight)).sum(), w)
        assert not g[padding].any()
    layer = nn.EmbeddingBag(5, 3, mode=mode, padding_idx=padding, include_last_offset=True, _weight=ag.tensor(weight))
    close(layer(ag.tensor(index), ag.tensor([*offsets, 7]), given), want, 1e-12)
    rows = index[:6].reshape(2, 3)
    close(F.embedding_bag(ag.tensor(rows), ag.tensor(weight), mode=mode, padding_idx=padding),
          bags(index[:6], weight, [0, 3], mode, None, None if padding is None else padding % 5), 1e-12)


def test_layer_of_bags():
    assert repr(nn.EmbeddingBag(5, 3)) == "EmbeddingBag(5, 3, mode='mean')"
    table = ag.ones(4, 2)
    layer = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not layer.weight.requires_grad and layer(ag.tensor([[1, 2, 3]])).tolist() == [[3.0, 3.0]]
    index = ag.tensor([1, 2])
    for call in (lambda: F.embedding_bag(index, table), lambda: F.embedding_bag(index, table, ag.tensor([1])), lambda: F.embedding_bag(index, table, ag.tensor([0, 5])),
                 lambda: F.embedding_bag(index, table, ag.tensor([0]), mode="median"), lambda: F.embedding_bag(index.view(1, 2), table, ag.tensor([0])),
                 lambda: F.embedding_bag(index, table, ag.tensor([0]), per_sample_weights=ag.ones(2))):   # fmt: skip
        with pytest.raises(ValueError):
            call()
