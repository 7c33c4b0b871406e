"""clip_grad_norm_, clip_grad_value_, parameters as a vector.

Relies on nn.utils and engine/updates.
"""

import math

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn.utils import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters


def leaf(values, gradient=None):
    p = ag.tensor(values, dtype=ag.float64).requires_grad_()
    if gradient is not None:
        p.grad = ag.tensor(gradient, dtype=ag.float64)
    return p


def grad(p):
    return np.array(p.grad.numpy())


@pytest.mark.parametrize(("norm_type", "total"), [(2.0, 13.0), (1.0, 19.0), (math.inf, 12.0), (3.0, 1819 ** (1 / 3))])
def test_norms(norm_type, total):
    p, q, r = leaf([1.0, 1.0], [3.0, -4.0]), leaf([1.0], [12.0]), leaf([1.0])
    norm = clip_grad_norm_([p, q, r], 1.0, norm_type)
    assert float(norm) == pytest.approx(total, rel=1e-8)
    factor = 1.0 / (total + 1e-6)
    np.testing.assert_allclose(grad(p), np.array([3.0, -4.0]) * factor, rtol=1e-8)
    np.testing.assert_allclose(grad(q), [12.0 * factor], rtol=1e-8)
    assert r.grad is None


def test_s1_30_small_gradients_are_left_alone():
    p = leaf([1.0, 1.0], [0.3, 0.4])
    assert float(clip_grad_norm_(p, 10.0)) == pytest.approx(0.5)
    np.testing.assert_array_equal(grad(p), [0.3, 0.4])
    assert float(clip_grad_norm_([leaf([1.0])], 1.0)) == 0.0


def test_iterator_and_strided_gradient():
    p = leaf(np.ones((2, 3)))
    p.grad = ag.tensor(np.arange(6.0).reshape(3, 2), dtype=ag.float64).t()
    norm = float(clip_grad_norm_(iter([p]), 1.0))
    assert norm == pytest.approx(math.sqrt(55.0))
    np.testing.assert_allclose(grad(p), np.arange(6.0).reshape(3, 2).T / norm, rtol=1e-6)


def test_pytorch_46849_non_finite_norms():
    """pytorch/pytorch#46849: error_if_nonfinite raises and leaves the gradients; without it the norm returned is inf."""
    p = leaf([1.0, 1.0], [math.inf, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    np.testing.assert_array_equal(grad(p), [math.inf, 1.0])
    assert float(clip_grad_norm_([p], 1.0)) == math.inf
    q = leaf([1.0], [math.nan])
    assert math.isnan(float(clip_grad_norm_([q], 1.0, math.inf)))


def test_float32_norm_does_not_overflow():
    p = ag.ones(2).requires_grad_()
    p.grad = ag.tensor([3e30, 4e30])
    assert float(clip_grad_norm_([p], 1.0)) == pytest.approx(5e30)
    np.testing.assert_allclose(grad(p), [0.6, 0.8], rtol=1e-6)


def test_clip_value():
    p = leaf([0.0] * 3, [-5.0, 0.5, 5.0])
    clip_grad_value_([p, leaf([1.0])], 1)
    np.testing.assert_array_equal(grad(p), [-1.0, 0.5, 1.0])


def test_vector_and_back():
    layer = nn.Linear(3, 2)
    vector = parameters_to_vector(layer.parameters())
    assert tuple(vector.shape) == (8,)
    assert vector.requires_grad
    vector_to_parameters(ag.arange(8, dtype=ag.float32), layer.parameters())
    np.testing.assert_array_equal(np.array(layer.weight.detach().numpy()), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(np.array(layer.bias.detach().numpy()), [6, 7])
    assert layer.weight.requires_grad
    with pytest.raises(ValueError, match="7 elements"):
        vector_to_parameters(ag.zeros(7), layer.parameters())
    with pytest.raises(TypeError):
        vector_to_parameters([1.0], layer.parameters())
