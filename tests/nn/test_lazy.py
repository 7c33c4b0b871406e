"""Layers that learn their number of features from the first input.

Relies on nn; nothing relies on it.
"""

import copy
import pickle

import pytest

import autograd_cy as ag
from autograd_cy import nn

# the lazy layer, the layer that it becomes, a first input
ROWS = [
    (lambda: nn.LazyLinear(3), lambda: nn.Linear(5, 3), (4, 5)),
    (lambda: nn.LazyLinear(3, bias=False), lambda: nn.Linear(5, 3, bias=False), (2, 4, 5)),
    (lambda: nn.LazyConv1d(4, 3, padding=1), lambda: nn.Conv1d(2, 4, 3, padding=1), (2, 2, 7)),
    (lambda: nn.LazyConv2d(4, (3, 2), stride=2, groups=2), lambda: nn.Conv2d(6, 4, (3, 2), stride=2, groups=2), (2, 6, 7, 5)),
    (lambda: nn.LazyConv2d(4, 3), lambda: nn.Conv2d(6, 4, 3), (6, 7, 5)),
    (lambda: nn.LazyConv3d(2, 2, bias=False), lambda: nn.Conv3d(3, 2, 2, bias=False), (1, 3, 3, 3, 3)),
    (lambda: nn.LazyConvTranspose1d(4, 3), lambda: nn.ConvTranspose1d(2, 4, 3), (2, 2, 7)),
    (lambda: nn.LazyConvTranspose2d(4, 3, stride=2), lambda: nn.ConvTranspose2d(2, 4, 3, stride=2), (1, 2, 3, 3)),
    (lambda: nn.LazyConvTranspose3d(1, 2), lambda: nn.ConvTranspose3d(2, 1, 2), (1, 2, 2, 2, 2)),
    (lambda: nn.LazyBatchNorm1d(), lambda: nn.BatchNorm1d(5), (4, 5)),
    (lambda: nn.LazyBatchNorm2d(momentum=0.3), lambda: nn.BatchNorm2d(3, momentum=0.3), (2, 3, 2, 2)),
    (lambda: nn.LazyBatchNorm3d(affine=False), lambda: nn.BatchNorm3d(3, affine=False), (2, 3, 2, 2, 2)),
    (lambda: nn.LazyInstanceNorm1d(), lambda: nn.InstanceNorm1d(3), (2, 3, 4)),
    (lambda: nn.LazyInstanceNorm2d(affine=True), lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 2, 2)),
    (lambda: nn.LazyInstanceNorm3d(track_running_stats=True), lambda: nn.InstanceNorm3d(3, track_running_stats=True), (2, 3, 2, 2, 2)),
]
LAYERS = pytest.mark.parametrize(("lazy", "usual", "shape"), ROWS, ids=[type(usual()).__name__ for _, usual, _ in ROWS])


@LAYERS
def test_becomes_the_usual_layer(lazy, usual, shape):
    x = ag.randn(*shape)
    ag.manual_seed(3)
    expected = usual()
    layer = pickle.loads(pickle.dumps(copy.deepcopy(lazy())))
    assert type(layer).__name__ == "Lazy" + type(expected).__name__
    ag.manual_seed(3)
    out = layer(x)
    assert type(layer) is type(expected)
    assert repr(layer) == repr(expected)
    assert ag.equal(out, expected(x))
    assert ag.equal(layer(x), expected(x))
    mine, theirs = layer.state_dict(), expected.state_dict()
    assert list(mine) == list(theirs)
    assert all(ag.equal(mine[k], theirs[k]) for k in mine)


@LAYERS
def test_what_was_said_before_the_first_input_holds(lazy, usual, shape):
    """dtype, evaluation, frozen parameters; an optimiser that was made before."""
    layer = lazy().double().eval()
    parameters = list(layer.parameters())
    for p in parameters[1:]:
        p.requires_grad_(False)
    optimizer = ag.optim.SGD(parameters, lr=0.1) if parameters else None
    out = layer(ag.randn(*shape, dtype=ag.float64))
    assert out.dtype is ag.float64
    assert not layer.training
    assert [id(p) for p in parameters] == [id(p) for p in layer.parameters()]
    assert [p.requires_grad for p in parameters] == [True, False][:len(parameters)]
    if optimizer is not None:
        before = parameters[0].detach().clone()
        (out ** 2).sum().backward()
        optimizer.step()
        assert parameters[0].shape == before.shape
        assert not ag.equal(parameters[0], before)


def test_a_capture_comes_after_the_first_input():
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    run = ag.compile(model)
    x = ag.rand(4, 5)
    with pytest.raises(RuntimeError, match="LazyLinear: the first input decides .* call the model once before it is compiled"):
        run(x)
    model(x)
    for _ in range(4):
        found = run(x)
    assert found.shape == (4, 3)


def test_an_input_that_does_not_fit():
    with pytest.raises(ValueError, match=r"LazyConv2d: expected an input with in_channels in dimension -3, got shape \(3,\)"):
        nn.LazyConv2d(2, 3)(ag.ones(3))
    layer = nn.LazyConv2d(3, 3, groups=3)
    with pytest.raises(ValueError, match="divisible by groups"):
        layer(ag.ones(1, 4, 5, 5))
    assert layer(ag.ones(1, 3, 5, 5)).shape == (1, 3, 3, 3)       # the next one may fit
