"""Steps that a replay could not repeat: each is refused with the line it stands on, and all is well once the fault is gone.

Relies on the package; nothing relies on it.
"""

import gc
import random
import time
from pathlib import Path

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.array.errors import CaptureError

counter = 0
faulty = True
kept = []


class Faults:
    """One method for each fault; the line of the fault ends in a comment."""

    def item(loss, x):
        loss.item()  # fault

    def number(loss, x):
        float(loss)  # fault

    def integer(loss, x):
        int(loss * 10)  # fault

    def truth(loss, x):
        if loss > 0:  # fault
            pass

    def index(loss, x):
        [1, 2, 3][(loss * 0).long()]  # fault

    def listed(loss, x):
        x.tolist()  # fault

    def printed(loss, x):
        print(loss)  # fault

    def printed_text(loss, x):
        print("hello")  # fault

    def text(loss, x):
        str(loss)  # fault

    def formatted(loss, x):
        return f"{loss:.3f}"  # fault

    def array(loss, x):
        x.numpy()  # fault

    def array_of(loss, x):
        np.asarray(x)  # fault

    def pickled(loss, x):
        import pickle
        pickle.dumps(x)  # fault

    def contained(loss, x):
        return 0.5 in x  # fault

    def repeated(loss, x):
        list(range((loss * 0).long()))  # fault

    def nonzero(loss, x):
        (x > 0).nonzero()  # fault

    def masked(loss, x):
        x[x > 0]  # fault

    def clock(loss, x):
        time.time()  # fault

    def fine_clock(loss, x):
        time.perf_counter()  # fault

    def random_number(loss, x):
        random.random()  # fault

    def numpy_random(loss, x):
        np.random.rand()  # fault

    def numpy_generator(loss, x):
        np.random.default_rng().normal()  # fault

    def from_array(loss, x):
        x * ag.tensor(np.ones(4))  # fault

    def from_list(loss, x):
        ag.tensor([loss, loss])  # fault

    def opened(loss, x):
        open("/dev/null").close()  # fault

    def appended(loss, x):
        kept.append(loss)  # fault

    def counted(loss, x):
        global counter  # fault
        counter += 1

    def exported(loss, x):
        np.from_dlpack(x.detach())  # fault


NAMES = [n for n in vars(Faults) if not n.startswith("_")]


def line_of(name):
    code = vars(Faults)[name].__code__
    for k, line in enumerate(Path(__file__).read_text().splitlines()[code.co_firstlineno:], code.co_firstlineno + 1):
        if line.endswith("# fault"):
            return k
    raise AssertionError


def make():
    ag.manual_seed(3)
    model = nn.Linear(4, 2)
    optimizer = ag.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer


def batch(k):
    return ag.tensor(np.random.default_rng(k).normal(size=(5, 4)).astype("f4"))


@pytest.mark.parametrize("name", NAMES)
def test_refused(name, capsys):
    """CaptureError with file and line, then the eager step works, then, without the fault, the compiled one."""
    global faulty, counter
    faulty, counter = True, 0
    kept.clear()
    fault = vars(Faults)[name]

    def stepper(model, optimizer):
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            if faulty:
                fault(loss, x)
            loss.backward()
            optimizer.step()
            return loss
        return step
    model, optimizer = make()
    step = stepper(model, optimizer)
    compiled = ag.compile(step)
    with pytest.raises(CaptureError) as error:
        for k in range(3):
            compiled(batch(k))
    message = str(error.value)
    if name not in ("appended", "counted"):             # those name what changed instead
        assert f"{__file__}:{line_of(name)}" in message, message
    else:
        assert "kept" in message or "counter" in message
    x = batch(9)
    step(x)
    faulty = False
    other, its = make()
    expected = stepper(other, its)
    other.load_state_dict(model.state_dict())
    its.load_state_dict(optimizer.state_dict())
    for k in range(6):
        assert compiled(batch(k)).detach().numpy().tobytes() == expected(batch(k)).detach().numpy().tobytes(), k
    for p, q in zip(model.parameters(), other.parameters()):
        assert p.detach().numpy().tobytes() == q.detach().numpy().tobytes()


@pytest.mark.parametrize("write", [lambda x, w: x.mul_(w), lambda x, w: x.copysign_(w), lambda x, w: x[1:].copy_(w)], ids=["mul", "copysign", "part"])
def test_an_argument_with_a_new_history(write):
    """Its gradients would go nowhere, or round in circles."""
    w = ag.ones(()).requires_grad_()

    def step(x):
        write(x, w)
        return x * 2
    with pytest.raises(CaptureError, match=f"argument in place.*{__file__}"):
        ag.compile(step)(ag.ones(3))
    total = ag.zeros(())

    def accumulate(x):
        total.add_((x * w).sum())
        return x + 1
    compiled = ag.compile(accumulate)
    for _ in range(2):
        with pytest.raises(CaptureError, match="total"):
            compiled(ag.ones(3))


def test_what_a_collection_calls_is_no_part_of_the_step():
    """Hypothesis, for one, reads the clock in gc.callbacks."""
    def callback(phase, info):
        time.perf_counter()
    model, optimizer = make()

    def step(x):
        kept = [[] for _ in range(5000)]           # a collection is due
        return model(x).sum() + len(kept)
    gc.callbacks.append(callback)
    try:
        compiled = ag.compile(step)
        for k in range(4):
            compiled(batch(k))
    finally:
        gc.callbacks.remove(callback)
    assert gc.isenabled()
