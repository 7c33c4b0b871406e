"""Random programs (tests/programs.py) here, in slow NumPy, and against difference quotients; hypothesis draws and shrinks them.

Relies on tests/programs.py, tests/numeric.py and hypothesis; nothing relies on it. tests/test_oracle.py runs more of them in PyTorch.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from numeric import array
from programs import Slow, Step, kind_of, leaves_of, run, text
from samples import SAMPLES

import autograd_cy as ag

USABLE = [s for s in SAMPLES if "float64" in s.dtypes]
NUMBER = st.integers(0, (1 << 16) - 1)
PROGRAMS = st.lists(st.builds(Step, st.integers(0, 9), NUMBER, NUMBER, NUMBER, NUMBER), min_size=1, max_size=10)
pytestmark = pytest.mark.filterwarnings("ignore")


def leaves(values, recorded):
    return [ag.tensor(v, dtype=ag.float64).requires_grad_(recorded) for v in values]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, st.integers(0, 1000))
def test_values_of_programs(steps, seed):
    """Values, aliases included, and refusals are those of NumPy."""
    note(text(steps, USABLE))
    values = leaves_of(seed)
    ours, slow = run(ag, steps, leaves(values, False), USABLE, True), Slow(steps, values, USABLE)
    for a, b, step in zip(ours.log, slow.log, steps, strict=True):
        assert a.split(":")[0] == b, f"{step}, {kind_of(step)}: {a}, and in NumPy {b}"
    assert len(ours.pool) == len(slow.pool)
    for k, t in enumerate(ours.pool):
        np.testing.assert_allclose(array(t), slow.value(k), 1e-7, 1e-9, err_msg=f"value {k}")
    for a, b in zip(ours.others, slow.others, strict=True):
        np.testing.assert_array_equal(array(a), b)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, st.integers(0, 1000))
def test_gradients_of_programs(steps, seed):
    """Gradients of the sum of all squares against difference quotients of the NumPy program."""
    note(text(steps, USABLE))
    values = leaves_of(seed)
    inputs = leaves(values, True)
    ours = run(ag, steps, inputs, USABLE, True)
    slow = Slow(steps, values, USABLE)
    if [entry.split(":")[0] for entry in ours.log] != slow.log or not np.isfinite(slow.loss):
        return      # a view of a leaf's base, say: refused, since there is a history to keep
    try:
        grads = ag.autograd.grad(ours.loss, inputs, allow_unused=True)
    except RuntimeError as error:
        assert "changed in place afterwards" in str(error)
        return
    for k, g in enumerate(grads):
        quotient = np.zeros_like(values[k])
        for place in np.ndindex(quotient.shape):
            ends = []
            for move in (1e-6, -1e-6):
                moved = [np.array(v) for v in values]
                moved[k][place] += move
                ends.append(Slow(steps, moved, USABLE).loss)
            quotient[place] = (ends[0] - ends[1]) / 2e-6
        got = np.zeros_like(quotient) if g is None else array(g)
        np.testing.assert_allclose(got, quotient, 1e-4, 1e-6 * (1 + abs(slow.loss)), err_msg=f"leaf {k}")
