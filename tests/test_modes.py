"""Gradient modes: context managers, decorators, generator functions; per thread; restored whatever happens.

Relies on autograd_cy's public names; nothing relies on it.
"""

import asyncio
import threading

import pytest
from numeric import leaf

import autograd_cy as ag


@pytest.fixture
def x():
    return leaf([1.0, 2.0])


def test_no_grad(x):
    """Nothing is recorded, and the mode comes back."""
    with ag.no_grad():
        assert not ag.is_grad_enabled()
        y = x * 2
    assert ag.is_grad_enabled()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf
    assert (x * 2).requires_grad


@pytest.mark.parametrize(
    ("make", "inside"),
    [
        (ag.no_grad, False),
        (ag.enable_grad, True),
        (lambda: ag.set_grad_enabled(False), False),
        (lambda: ag.set_grad_enabled(True), True),
    ],
)
@pytest.mark.parametrize("outside", [True, False])
def test_context(make, inside, outside):
    with ag.set_grad_enabled(outside):
        with make():
            assert ag.is_grad_enabled() is inside
            with ag.enable_grad(), ag.no_grad():
                assert not ag.is_grad_enabled()
            assert ag.is_grad_enabled() is inside
        assert ag.is_grad_enabled() is outside
        with pytest.raises(ZeroDivisionError), make():
            raise ZeroDivisionError
        assert ag.is_grad_enabled() is outside


def test_set_grad_enabled_as_a_function():
    try:
        ag.set_grad_enabled(False)
        assert not ag.is_grad_enabled()
        ag.set_grad_enabled(mode=True)
        assert ag.is_grad_enabled()
    finally:
        ag.set_grad_enabled(True)


def test_one_object_used_again_and_nested():
    mode = ag.no_grad()
    for _ in range(2):
        with mode:
            assert not ag.is_grad_enabled()
        assert ag.is_grad_enabled()


@pytest.mark.parametrize("decorator", [ag.no_grad(), ag.no_grad, ag.set_grad_enabled])
def test_decorator(decorator, x):
    """pytorch/pytorch#113298: as a decorator, set_grad_enabled(False) touches nothing outside the function."""
    if decorator is ag.set_grad_enabled:
        decorator = ag.set_grad_enabled(False)

    @decorator
    def f(t, *, factor=2):
        """What f does."""
        assert not ag.is_grad_enabled()
        return t * factor

    try:
        assert ag.is_grad_enabled()
        assert not f(x, factor=3).requires_grad
        assert f.__name__ == "f"
        assert f.__doc__ == "What f does."
        assert ag.is_grad_enabled()
        with pytest.raises(TypeError):
            f()
        assert ag.is_grad_enabled()

        class Holder:
            @decorator
            def method(self, t):
                return t * 2

        assert not Holder().method(x).requires_grad
    finally:
        ag.set_grad_enabled(True)


def test_recursive_decorated_function():
    @ag.no_grad()
    def down(n):
        assert not ag.is_grad_enabled()
        return n if n == 0 else down(n - 1)

    assert down(20) == 0
    assert ag.is_grad_enabled()


def test_generator_function(x):
    """The mode holds while the generator runs, not while its consumer does."""
    closed = []

    @ag.no_grad()
    def numbers():
        try:
            sent = yield x * 1
            assert not ag.is_grad_enabled()
            assert sent == "hello"
            try:
                yield x * 2
            except KeyError:
                assert not ag.is_grad_enabled()
            yield x * 3
        finally:
            closed.append(ag.is_grad_enabled())
        return "done"

    g = numbers()
    assert not next(g).requires_grad
    assert ag.is_grad_enabled()
    assert not g.send("hello").requires_grad
    assert ag.is_grad_enabled()
    assert not g.throw(KeyError).requires_grad
    assert ag.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "done"
    assert closed == [False]
    assert ag.is_grad_enabled()
    h = numbers()
    next(h)
    h.close()
    assert closed == [False, False]
    assert ag.is_grad_enabled()
    k = numbers()
    next(k)
    with pytest.raises(ValueError):
        k.throw(ValueError("from outside"))
    assert ag.is_grad_enabled()

    @ag.enable_grad()
    def inner():
        yield ag.is_grad_enabled()
        yield ag.is_grad_enabled()

    with ag.no_grad():
        g = inner()
        assert next(g)
        assert not ag.is_grad_enabled()
        assert next(g)
        assert not ag.is_grad_enabled()


def test_generator_resumed_under_another_mode():
    @ag.no_grad()
    def numbers():
        while True:
            yield ag.is_grad_enabled()

    g = numbers()
    assert next(g) is False
    with ag.no_grad():
        assert next(g) is False
        assert not ag.is_grad_enabled()
    assert next(g) is False
    assert ag.is_grad_enabled()


def test_mode_per_thread(x):
    """S4-B5 and pytorch/pytorch#20528: a new thread starts with gradients on, and its mode is its own."""
    seen = {}
    inside, go_on = threading.Event(), threading.Event()

    def work():
        seen["start"] = ag.is_grad_enabled()
        with ag.no_grad():
            inside.set()
            go_on.wait(10)
            seen["recorded"] = (x * 2).requires_grad
        seen["end"] = ag.is_grad_enabled()

    with ag.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        inside.wait(10)
        with ag.enable_grad():
            assert (x * 2).requires_grad
        go_on.set()
        thread.join()
        assert not ag.is_grad_enabled()
    assert ag.is_grad_enabled()
    assert seen == {"start": True, "recorded": False, "end": True}


def test_many_threads_switching():
    wrong = []

    def work(k):
        for _ in range(2000):
            with ag.set_grad_enabled(k % 2 == 0):
                if ag.is_grad_enabled() is not (k % 2 == 0):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert ag.is_grad_enabled()


def test_async_function_body(x):
    """A coroutine that does not wait inside the block behaves like any function."""

    async def f():
        with ag.no_grad():
            return x * 2

    assert not asyncio.run(f()).requires_grad
    assert ag.is_grad_enabled()


def test_under_no_grad(x):
    """Creation keeps its flag, leaves can be edited, an inner enable_grad records."""
    with ag.no_grad():
        p = ag.tensor([1.0], requires_grad=True)
        assert p.requires_grad
        before = x.data_ptr()
        x -= 0.5
        x.mul_(2)
        assert x.requires_grad
        assert x.is_leaf
        assert x.data_ptr() == before
        assert x.tolist() == [1.0, 3.0]
        with ag.enable_grad():
            y = x * x
        assert y.requires_grad
        view = x[0]
        assert not view.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0]


def test_modes_inside_backward(x):
    """Backward records only for create_graph, whatever the mode around it."""
    y = (x * x).sum()
    with ag.no_grad():
        y.backward(retain_graph=True)
        assert not x.grad.requires_grad
        (g,) = ag.autograd.grad(y, x, create_graph=True)
        assert g.requires_grad
    assert ag.is_grad_enabled()
    with pytest.raises(RuntimeError):
        y.backward(ag.ones(3))
    assert ag.is_grad_enabled()


def test_set_grad_enabled_wants_a_bool():
    for bad in ("yes", None, 1.5):
        with pytest.raises(TypeError):
            ag.set_grad_enabled(bad)
        assert ag.is_grad_enabled()
