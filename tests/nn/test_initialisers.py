"""Initialisers: bounds and moments, gains, refusals.

Relies on nn.init.
"""

import math

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import init


def array(x):
    return np.array(x.detach().numpy())


def drawn(function, *args, shape=(200, 300), **kwargs):
    ag.manual_seed(0)
    w = ag.empty(shape).requires_grad_()
    assert function(w, *args, **kwargs) is w
    assert w.requires_grad
    assert w.is_leaf
    return array(w).astype(np.float64)


@pytest.mark.parametrize(("function", "args", "std", "bound"), [
    (init.uniform_, (-2.0, 3.0), 5 / math.sqrt(12), 3.0),
    (init.normal_, (0.0, 0.5), 0.5, None),
    (init.xavier_uniform_, (), math.sqrt(2 / 500), math.sqrt(6 / 500)),
    (init.xavier_normal_, (2.0,), 2 * math.sqrt(2 / 500), None),
    (init.kaiming_uniform_, (), math.sqrt(2 / 300), math.sqrt(6 / 300)),
    (init.kaiming_uniform_, (math.sqrt(5),), math.sqrt(1 / 900), math.sqrt(1 / 300)),
    (init.kaiming_normal_, (0, "fan_out", "relu"), math.sqrt(2 / 200), None),
    (init.trunc_normal_, (0.0, 1.0, -2.0, 2.0), 0.8796256610342398, 2.0),
    (init.trunc_normal_, (0.0, 0.02), 0.02, 2.0),
])
def test_moments(function, args, std, bound):
    w = drawn(function, *args)
    mean = 0.5 if function is init.uniform_ else 0.0
    assert w.std() == pytest.approx(std, rel=0.02)
    assert w.mean() == pytest.approx(mean, abs=0.02 * std + 0.01 * mean)
    if bound is not None:
        assert np.abs(w).max() <= bound * (1 + 1e-6)


def test_s2_30_kaiming_normal_std():
    """S2: W ~ N(0, sqrt(2 / fan_in)), b = 0, through init."""
    layer = nn.Linear(256, 200)
    ag.manual_seed(1)
    init.kaiming_normal_(layer.weight, nonlinearity="relu")
    init.zeros_(layer.bias)
    assert array(layer.weight).std() == pytest.approx(math.sqrt(2 / 256), rel=0.02)
    assert not array(layer.bias).any()


def test_constants():
    assert (drawn(init.constant_, 0.3, shape=(2, 3)) == np.float32(0.3)).all()
    assert (drawn(init.ones_, shape=(3,)) == 1).all()
    assert (drawn(init.zeros_, shape=(3,)) == 0).all()
    np.testing.assert_array_equal(drawn(init.eye_, shape=(2, 3)), np.eye(2, 3))
    with pytest.raises(ValueError, match="2 dimensions"):
        init.eye_(ag.empty(3))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 4)])
def test_orthogonal(shape):
    w = drawn(init.orthogonal_, gain=2.0, shape=shape).reshape(shape[0], -1)
    product = w.T @ w if w.shape[0] > w.shape[1] else w @ w.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_gains():
    assert init.calculate_gain("linear") == 1.0
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("cosine")


def test_refusals_and_empty():
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(ag.empty(3))
    with pytest.raises(ValueError, match="not supported"):
        init.kaiming_uniform_(ag.empty(3, 3), mode="fan_mid")
    with pytest.raises(ValueError, match="2 or more"):
        init.orthogonal_(ag.empty(3))
    for function in (init.xavier_uniform_, init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_, init.trunc_normal_):
        assert function(ag.empty(0, 3)).numel() == 0


def test_convolution_fans():
    w = drawn(init.kaiming_uniform_, shape=(100, 20, 3, 5))
    assert np.abs(w).max() == pytest.approx(math.sqrt(6 / 300), rel=0.01)
