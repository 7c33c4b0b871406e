"""What every test shares: a fixed random state, and a check that modes are left as they were found.

Relies on pytest only; every file of tests/ relies on it. `--programs N` says how many random programs
tests/test_oracle.py runs in PyTorch, too: `make oracle` runs 20,000 of them.
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


CHUNK = 25     # programs in one test


def pytest_addoption(parser):
    parser.addoption("--programs", type=int, default=1000, help="random programs run in PyTorch, too (default: 1000); "
                     "of each of the smaller generators a quarter as many")
    parser.addoption("--share", default="1/1", help="which share of them, 2/3 say, where several processes run them")


def pytest_generate_tests(metafunc):
    if "seeds" in metafunc.fixturenames:
        count = metafunc.config.getoption("--programs") // (1 if metafunc.function.__name__ == "test_programs" else 4)
        share, of = map(int, metafunc.config.getoption("--share").split("/"))
        chunks = [range(k, min(k + CHUNK, count)) for k in range(0, count, CHUNK)][share - 1::of]
        metafunc.parametrize("seeds", chunks, ids=[f"{c.start}-{c.stop - 1}" for c in chunks])
