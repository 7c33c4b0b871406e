"""gradcheck and gradgradcheck: what they accept, find and refuse.

Relies on tools.gradcheck.
"""

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.tools import GradcheckError, gradcheck, gradgradcheck


def leaf(values):
    return ag.tensor(values, dtype=ag.float64).requires_grad_()


X = [[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]]


def test_right_gradients_pass_and_inputs_keep_their_values():
    x, w = leaf(X), leaf([1.0, 2.0, -1.0])
    before = [np.array(v.detach().numpy()) for v in (x, w)]
    assert gradcheck(lambda a, b: (a * b).exp().sum(0), (x, w))
    assert gradcheck(lambda a: (a.tanh(), a.sum(), (a > 0)), x)
    assert gradgradcheck(lambda a, b: (a * b).exp().sum(0), (x, w))
    assert gradgradcheck(lambda a: (a.tanh(), a.sum()), x, gen_non_contig_grad_outputs=True)
    for v, old in zip((x, w), before, strict=True):
        np.testing.assert_array_equal(np.array(v.detach().numpy()), old)
        assert v.grad is None


def test_layouts():
    base = leaf(X)
    for x in (base.t(), base[:, ::2], base[0, 0], base.reshape(3, 1, 2)):
        assert gradcheck(lambda a: (a * a * a).sum(), x.detach().requires_grad_())
        assert gradgradcheck(lambda a: a * a * a, x.detach().requires_grad_())
    assert gradcheck(lambda a: a * 2, leaf(np.zeros((0, 3))))
    assert gradcheck(lambda a: a.sum(), leaf(np.zeros((0, 3))))
    assert gradcheck(lambda a: a.exp(), leaf(0.5))


def test_other_arguments_pass_through():
    x = leaf([1.0, 2.0])
    assert gradcheck(lambda a, k, c, s: (a ** k * c).sum() if s == "yes" else None,
                     (x, 3, ag.tensor([1.0, 2.0], dtype=ag.float64), "yes"))


def test_parameters_reached_through_a_closure():
    layer = nn.Linear(3, 2, dtype=ag.float64)
    x = ag.tensor(X, dtype=ag.float64)
    assert gradcheck(lambda *_: layer(x).sigmoid(), tuple(layer.parameters()))
    assert gradgradcheck(lambda *_: layer(x).sigmoid(), tuple(layer.parameters()))


def test_a_wrong_gradient_is_found_at_its_worst_entry():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])

    def wrong(a):
        factor = ag.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=ag.float64)
        return a * a + factor * (a - a.detach())             # adds 1 to the gradient at [1, 0] only

    with pytest.raises(GradcheckError) as error:
        gradcheck(wrong, x)
    message = str(error.value)
    assert "output 0 with respect to input 0" in message
    assert "d output[1, 0] / d input[1, 0]" in message
    assert "numerical 6.0" in message or "numerical 5.99" in message
    assert "analytical 7.0" in message
    assert gradcheck(wrong, x, raise_exception=False) is False


def test_a_wrong_second_derivative_is_found():
    x = leaf([0.5, 1.5])

    def wrong(a):
        return a * a * a.detach()                            # the value of a^3, and a wrong gradient

    with pytest.raises(GradcheckError):
        gradcheck(wrong, x)

    def wrong_twice(a):
        # value a^3 and gradient 3 a^2, but the gradient's own gradient lacks terms
        return a.detach() ** 3 + 3 * a.detach() ** 2 * (a - a.detach())

    assert gradcheck(wrong_twice, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong_twice, x)


def test_a_cut_graph_is_found():
    with pytest.raises(GradcheckError, match="cut"):
        gradcheck(lambda a: a.detach() * 2, leaf([1.0]))
    with pytest.raises(ValueError, match="no output"):
        gradgradcheck(lambda a: a.detach() * 2, leaf([1.0]))


def test_values_are_restored_when_the_function_raises():
    x = leaf([1.0, 2.0])

    def breaks(a):
        if float(a[1].detach()) != 2.0:
            raise KeyError("broken")
        return a * 2

    with pytest.raises(KeyError):
        gradcheck(breaks, x)
    assert x.tolist() == [1.0, 2.0]


def test_refusals():
    with pytest.raises(ValueError, match="float64"):
        gradcheck(lambda a: a, ag.ones(2).requires_grad_())
    with pytest.raises(ValueError, match="float64"):
        gradgradcheck(lambda a: a, ag.ones(2).requires_grad_())
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(lambda a: a, ag.ones(2, dtype=ag.float64))
    with pytest.raises(ValueError, match="stride 0"):
        gradcheck(lambda a: a * 2, ag.ones(1, dtype=ag.float64).expand(3).requires_grad_())
    with pytest.raises(ValueError, match="must return a tensor"):
        gradcheck(lambda a: 3.0, leaf([1.0]))


def test_given_grad_outputs():
    x = leaf([1.0, 2.0])
    assert gradgradcheck(lambda a: a ** 3, x, leaf([0.5, -1.0]))
    with pytest.raises(ValueError, match="grad_outputs"):
        gradgradcheck(lambda a: a ** 3, x, (leaf([0.5, -1.0]), leaf([1.0])))
