"""Padding layers against numpy.pad.

Relies on NumPy and the package; nothing relies on it.
"""

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn

MODES = {"Reflection": "reflect", "Replication": "edge", "Circular": "wrap", "Zero": "constant"}


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_layers(kind, n):
    layer = getattr(nn, f"{kind}Pad{n}d")(tuple(range(1, 2 * n + 1)) if n == 1 else 1)
    values = np.arange(float(2 * 3**n)).reshape((1, 2, *(3,) * n))
    sides = [(0, 0), (0, 0), *([(1, 2)] if n == 1 else [(1, 1)] * n)]
    x = ag.tensor(values, requires_grad=True)
    out = layer(x)
    np.testing.assert_array_equal(out.detach().numpy(), np.pad(values, sides, mode=MODES[kind]))
    out.sum().backward()
    assert x.grad.sum().item() == (out.numel() if kind != "Zero" else x.numel())


def test_a_number_and_bad_input():
    assert nn.ConstantPad2d(1, 2.5)(ag.zeros(1, 1, 2, 2)).sum().item() == 2.5 * 12
    assert str(nn.ConstantPad1d((1, 2), 3.5)) == "ConstantPad1d(padding=(1, 2), value=3.5)"
    assert str(nn.ReflectionPad2d(1)) == "ReflectionPad2d((1, 1, 1, 1))"
    with pytest.raises(ValueError, match="expected a number or 4 of them"):
        nn.ZeroPad2d((1, 2))
    with pytest.raises(RuntimeError, match="expected 3 or 4 dimensions"):
        nn.ReplicationPad2d(1)(ag.zeros(3, 3))
