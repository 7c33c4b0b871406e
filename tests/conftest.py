"""What every test shares: a fixed random state, and a check that modes are left as they were found.

Relies on pytest only; every file of tests/ relies on it.
"""

import numpy as np
import pytest

import autograd_cy as ag


@pytest.fixture(autouse=True)
def same_start():
    """Each test starts from the same random state and leaves the modes as it found them."""
    ag.manual_seed(0)
    np.random.seed(0)
    yield
    assert ag.is_grad_enabled(), "the test left gradients switched off"
