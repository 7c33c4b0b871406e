"""What every test shares: warnings are errors, and marks are declared.

Relies on pytest only; every file of tests/ relies on it.
"""

import numpy as np
import pytest

import autograd_cy as ag


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line("markers", "oracle: compares with PyTorch, and is skipped where PyTorch is not installed")
    config.addinivalue_line("markers", "slow: takes more than about five seconds")


@pytest.fixture(autouse=True)
def same_start():
    """Each test starts from the same random state and leaves the modes as it found them."""
    ag.manual_seed(0)
    np.random.seed(0)
    yield
    assert ag.is_grad_enabled(), "the test left gradients switched off"
