"""The type stubs: the parts that follow from the table are up to date, and users' programs pass a strict type checker.

Relies on autograd_cy.ops.stubs, and on mypy where it is installed (`make check`); nothing relies on it.
That the stubs agree with what is there at run time is stubtest's work (tests/stubtest_allowlist.txt).
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_cy as ag

stubs = pytest.importorskip("autograd_cy.ops.stubs", reason="in a source tree only", exc_type=ImportError).stubs

PACKAGE = Path(ag.__file__).parent


@pytest.mark.parametrize("path", stubs(), ids=lambda path: path.name)
def test_stub_is_up_to_date(path):
    assert path.read_text() == stubs()[path], f"{path.name} lags behind the table: run python -m autograd_cy.ops.stubs"


def test_public_names_are_in_the_stub():
    text = (PACKAGE / "__init__.pyi").read_text()
    missing = [n for n in ag.__all__ if not re.search(rf"(\bas {n}\b|^{n} ?[:=])", text, re.MULTILINE)]
    assert set(missing) <= {"array", "engine", "kernels"}, f"not in __init__.pyi: {missing}"
    assert (PACKAGE / "py.typed").exists()


USER = """
import numpy as np

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F

x = ag.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
x.sum().backward()
print(x.grad)
values, indices = x.max(dim=1)
y: ag.Tensor = ag.where(x > 0, x.sqrt(), 0.0) + 1 / x - np.float32(2) * ag.maximum(x, 0).multiply(2)
z: ag.Tensor = F.relu(x)[0, ::2].reshape(-1).float().to(ag.float64).exp_().clamp(min=0)
(g,) = ag.autograd.grad((x**3).sum(axis=0, keepdims=True).mean(), x, create_graph=True)
g.sum().backward(engine="recursive")
assert x.dtype is ag.float32 and isinstance(x.dtype, ag.dtype)
array = x.detach().numpy() + np.asarray(y.detach())
number: float = ag.pi + x.sum().item()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, input: ag.Tensor) -> ag.Tensor:
        return ag.tanh(self.linear(input)).softmax(dim=-1)


@ag.no_grad()
def f(t: ag.Tensor) -> ag.Tensor:
    return ag.cat([t, t], dim=1).std(unbiased=False)


@ag.no_grad
def h(t: ag.Tensor) -> ag.Tensor:
    return ag.concat([t, t])


model = nn.Sequential(Net(), nn.ReLU())
optimizer = ag.optim.Adam(model.parameters(), lr=0.01)
for row in x:
    optimizer.zero_grad()
    nn.MSELoss()(model(row), f(x) + h(x).sum()).backward()
    optimizer.step()


@ag.compile
def step(t: ag.Tensor) -> ag.Tensor:
    moved: ag.Tensor = ag.graph.cond(t.sum() > 0, lambda t: t + 1, lambda t: t - 1, (t,))
    return moved.sum()


losses = step.repeat(10, x, progress=True)
why: str = step.why()
fast = ag.compile(fast=True, without=["fuse"])(model)
program = ag.graph.capture(f, x)
print(program, program.run(x, engine="iterative"), fast(x), step.memory())
"""
WRONG = """
import autograd_cy as ag

ag.tensor([1.0]).backwards()
x: int = ag.tensor([1.0]).sum()
"""
CONFIG = """[mypy]
strict = true
mypy_path = {path}
[mypy-autograd_cy.*]
ignore_errors = true
"""


def test_programs_of_users(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "mypy.ini").write_text(CONFIG.format(path=PACKAGE.parent if not PACKAGE.parent.name.endswith("-packages") else ""))
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "user.py", "wrong.py"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=200)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [line for line in errors if not line.startswith("wrong.py")] == [], done.stdout + done.stderr
    assert len(errors) == 2, done.stdout + done.stderr
