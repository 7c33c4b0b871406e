"""Hooks: on tensors, leaves and nodes; in both engines; what they see, what they change, what they leave behind when they fail.

Relies on autograd_cy's public names, and on PyTorch where it is installed; nothing relies on it.
"""

import gc
import threading
import weakref

import numpy as np
import pytest
from numeric import leaf

import autograd_cy as ag

ENGINES = ("iterative", "recursive")


@pytest.fixture(params=ENGINES)
def engine(request):
    before = ag.get_engine()
    ag.set_engine(request.param)
    yield request.param
    ag.set_engine(before)


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ---- tensors

def test_a_hook_sees_the_whole_gradient_and_may_replace_it(engine):
    x = leaf([1.0, 2.0])
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3 + y).sum().backward()
    assert seen == [[4.0, 4.0], [40.0, 40.0]]
    assert x.grad.tolist() == [80.0, 80.0]


def test_leaf_hooks_come_before_accumulation(engine):
    x = leaf([1.0])
    x.grad = ag.tensor([100.0], dtype=ag.float64)
    seen = []
    x.register_hook(lambda g: (seen.append((g.item(), x.grad.item())), g + 1)[1])
    (x * x * 3 + x).sum().backward()
    assert seen == [(7.0, 100.0)]
    assert x.grad.item() == 108.0


def test_retained_gradients_are_the_hooked_ones(engine):
    x = leaf([1.0])
    for first in (True, False):
        y = x * 2
        if first:
            y.retain_grad()
        y.register_hook(lambda g: g * 5)
        if not first:
            y.retain_grad()
        (y * 3).sum().backward()
        assert y.grad.item() == 15.0


def test_hooks_reach_autograd_grad(engine):
    x = leaf([1.0, 2.0])
    y = x * x
    x.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: g * 3)
    gx, gy = ag.autograd.grad((y * 5).sum(), [x, y], retain_graph=True)
    assert gy.tolist() == [15.0, 15.0]
    assert gx.tolist() == [60.0, 120.0]
    only, = ag.autograd.grad((y * 5).sum(), y)
    assert only.tolist() == [15.0, 15.0]
    assert x.grad is None


def test_a_gradient_asked_for_leaves_the_graph_below_usable(engine):
    """As in PyTorch, grad(loss, y) does not differentiate what made y."""
    x = leaf([1.0, 2.0])
    y = x.exp()
    ran = []
    y.grad_fn.register_hook(lambda inputs, outputs: ran.append(1))
    g, = ag.autograd.grad(y.sum(), y)
    assert not ran
    y.backward(g)
    assert ran
    assert x.grad.tolist() == y.tolist()


def test_hooks_of_a_recorded_pass(engine):
    x = leaf([1.0, 2.0])
    y = x * x
    y.register_hook(lambda g: g * x)
    g, = ag.autograd.grad(y.sum(), x, create_graph=True)             # 2 x^2
    assert g.tolist() == [2.0, 8.0]
    second, = ag.autograd.grad(g.sum(), x)
    assert second.tolist() == [4.0, 8.0]


def test_a_hook_of_an_unused_output_is_not_called(engine):
    """pytorch/pytorch#11751"""
    x = leaf([1.0, 2.0])
    first, second = x.unbind()
    first.register_hook(lambda g: pytest.fail("called"))
    second.backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_hooks_of_several_outputs(engine):
    x = leaf([1.0, 2.0])
    parts = x.unbind()
    seen = []
    for k, part in enumerate(parts):
        part.register_hook(lambda g, k=k: (seen.append(k), g * (k + 2))[1])
    (parts[0] + parts[1]).backward()
    assert sorted(seen) == [0, 1]
    assert x.grad.tolist() == [2.0, 3.0]


def test_hooks_stay_with_the_value_before_an_inplace_change(engine):
    x = leaf([3.0])
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.item())))
    y.mul_(10)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    y.sum().backward()
    assert sorted(seen) == [("new", 1.0), ("old", 10.0)]


def test_hooks_of_views(engine):
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1
    view = base[1:]
    seen = []
    view.register_hook(lambda g: seen.append(g.tolist()))
    (view * 2).sum().backward()
    assert seen == [[2.0, 2.0]]
    base = x * 1
    view = base[1:]
    base.mul_(4)                                  # the view's history is rewritten when it is next used
    view.register_hook(lambda g: g * 10)
    x.grad = None
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 40.0, 40.0]


def test_handles(engine):
    x = leaf([1.0])
    with x.register_hook(lambda g: g * 2) as handle:
        (x * 1).sum().backward()
    assert x.grad.item() == 2.0
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.item() == 3.0
    y = x * 1
    handle = y.register_hook(lambda g: g * 100)
    handle.remove()
    y.sum().backward()
    assert x.grad.item() == 4.0
    handle = (x * 1).register_hook(lambda g: g)
    handle.remove()                               # the tensor is gone


def test_hooks_that_register_and_remove_hooks(engine):
    x = leaf([1.0])
    y = x * 2
    calls, handles = [], []

    def once(g):
        calls.append("once")
        handles[0].remove()
        y.register_hook(lambda g: calls.append("late"))

    handles.append(y.register_hook(once))
    y.register_hook(lambda g: calls.append("second"))
    y.sum().backward(retain_graph=True)
    assert calls == ["once", "second"]
    y.sum().backward()
    assert calls == ["once", "second", "second", "late"]


@pytest.mark.parametrize("where", ["inner", "leaf", "node"])
def test_what_a_hook_returns_is_checked(where, engine):
    x = leaf([1.0, 2.0])
    for value, error, words in (
        (1.0, TypeError, "must return"),
        (ag.ones(3, dtype=ag.float64), RuntimeError, "changed the shape"),
        (ag.ones(2, dtype=ag.float32), RuntimeError, "changed the dtype"),
    ):
        y = x * 2
        if where == "node":
            if not isinstance(value, ag.Tensor):
                continue
            handle = y.grad_fn.register_hook(lambda inputs, outputs, value=value: (value, None))
        else:
            handle = (y if where == "inner" else x).register_hook(lambda g, value=value: value)
        with pytest.raises(error, match=words) as info:
            y.sum().backward()
        assert "test_hooks.py" in str(info.value)                # the hook is named
        handle.remove()
    assert x.grad is None


def test_refusals():
    x = leaf([1.0])
    with pytest.raises(TypeError, match="callable"):
        x.register_hook(3)
    with pytest.raises(RuntimeError, match="does not require"):
        ag.ones(2).register_hook(print)
    with pytest.raises(RuntimeError, match="only leaves"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError):
        ag.Tensor.register_hook(3, print)
    with pytest.raises(TypeError):
        type((x * 2).grad_fn).register_hook(x, print)


@pytest.mark.parametrize("engine", ["iterative", "recursive"])
def test_prehook_that_leaves_no_gradient(engine):
    """No rule is called without one: nothing goes on from there."""
    x, seen = ag.ones(3, requires_grad=True), []
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    parts = (x * 7).split([1, 2])
    parts[0].grad_fn.register_prehook(lambda grads: (None, None))
    (y.sum() + (x * 5).sum() + parts[1].sum()).backward(engine=engine)
    assert x.grad.tolist() == [5.0, 5.0, 5.0]
    assert seen == [((None, None), (None,))]


@pytest.mark.parametrize("retain", [False, True])
def test_unpack_that_goes_back_itself(engine, retain):
    """The inner pass gives nothing away while the outer one is at the same node."""
    a, b = ag.ones(3, 3, requires_grad=True), ag.full((3, 3), 2.0, requires_grad=True)
    inner = [True]

    def unpack(value):
        if inner and value is b_packed[0]:
            inner.clear()
            ag.autograd.grad(second, [a, b], retain_graph=retain)
        return value.clone()

    b_packed = []
    with ag.autograd.graph.saved_tensors_hooks(lambda t: b_packed.insert(0, t.clone()) or b_packed[0], unpack):
        y = a @ b
    first, second = y.sum(), y.sum()
    first.backward(engine=engine)
    assert a.grad.tolist() == [[6.0] * 3] * 3 and b.grad.tolist() == [[3.0] * 3] * 3


@pytest.mark.parametrize("where", ["inner", "leaf", "prehook", "node"])
def test_a_hook_that_fails_changes_no_gradient(where, engine):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 2
    z = y * w
    z.retain_grad()

    def fail(*gradients):
        raise KeyError("mine")

    handle = {"inner": lambda: y.register_hook(fail), "leaf": lambda: x.register_hook(fail),
              "prehook": lambda: y.grad_fn.register_prehook(fail), "node": lambda: y.grad_fn.register_hook(fail)}[where]()
    with pytest.raises(KeyError, match="mine"):
        z.sum().backward(retain_graph=True)
    assert x.grad is None and w.grad is None and z.grad is None
    handle.remove()
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0] and w.grad.tolist() == [2.0, 4.0] and z.grad.tolist() == [1.0, 1.0]


# ---- after accumulation

def test_post_accumulate(engine):
    x, w = leaf([1.0]), leaf([2.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item(), w.grad.item())))
    (x * w).sum().backward()
    (x * w).sum().backward()
    assert seen == [(True, 2.0, 1.0), (True, 4.0, 2.0)]
    ag.autograd.grad((x * w).sum(), x)
    assert len(seen) == 2
    h = x * w
    (h * h).sum().backward(inputs=[x, h])
    assert len(seen) == 3


def test_an_optimizer_in_backward():
    p = leaf([1.0, 2.0])
    optimizer = ag.optim.SGD([p], lr=0.5)

    def step(t):
        optimizer.step()
        optimizer.zero_grad()

    p.register_post_accumulate_grad_hook(step)
    (p * 2).sum().backward()
    assert p.tolist() == [0.0, 1.0] and p.grad is None


# ---- nodes

def test_nodes(engine):
    x = leaf([1.0, 2.0])
    y = x * 3
    node = y.grad_fn
    assert node.name() == "MulBackward" and node.next_functions[0] == (x, 0) and node.next_functions[1][0] is None
    node.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    seen = []
    node.register_prehook(lambda outputs: (outputs[0] * 2,))
    node.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), inputs[1], outputs[0].tolist())))
    node.register_hook(lambda inputs, outputs: (inputs[0] + 1, None))
    y.sum().backward()
    assert seen == [([6.0, 6.0], None, [2.0, 2.0])]
    assert x.grad.tolist() == [7.0, 7.0]


def test_node_hooks_that_drop_gradients(engine):
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (None, inputs[1]))
    y.sum().backward()
    assert x.grad is None and w.grad.item() == 1.0
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0],))
    with pytest.raises(RuntimeError, match="tuple of 2 gradients"):
        y.sum().backward()


# ---- both engines, against PyTorch

def program(lib, events):
    """One computation with hooks of every kind, in either library; the events in order."""
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([3.0, 4.0], dtype=lib.float64, requires_grad=True)

    def note(name, factor=None):
        def hook(g):
            events.append((name, g.tolist()))
            return None if factor is None else g * factor
        return hook

    a = x * w
    a.register_hook(note("a0"))
    a.retain_grad()
    a.register_hook(note("a1", 2))
    a.grad_fn.register_prehook(lambda g: events.append(("a pre", g[0].tolist())))
    a.grad_fn.register_hook(lambda i, o: events.append(("a post", [t.tolist() for t in i], o[0].tolist())))
    b = a.exp() * 0.01
    b.register_hook(note("b", 3))
    x.register_hook(note("x", 5))
    x.register_post_accumulate_grad_hook(lambda t: events.append(("x accumulated", t.grad.tolist())))
    b.mul_(a)
    b.register_hook(note("b new", 0.5))
    b.retain_grad()
    (b + a).sum().backward()
    return [t.grad.tolist() for t in (x, w, a, b)]


@pytest.mark.oracle
def test_against_pytorch(engine):
    torch = pytest.importorskip("torch")
    ours, theirs = [], []
    grads, expected = program(ag, ours), program(torch, theirs)
    np.testing.assert_allclose(np.array(grads), np.array(expected), rtol=1e-12)
    if engine == "recursive":
        ours.sort(key=str), theirs.sort(key=str)
    assert [e[0] for e in ours] == [e[0] for e in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine[1:], other[1:], strict=True):
            np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-12)


def test_engines_give_the_same_bytes():
    found = []
    for engine in ENGINES:
        ag.set_engine(engine)
        found.append(program(ag, []))
    ag.set_engine("iterative")
    assert found[0] == found[1]


# ---- memory

def hook_with_itself(x):
    y = x * 2
    y.register_hook(lambda g: g * y.detach())
    return y.sum()


def hook_with_later(x):
    y = x * 2
    held = []
    y.register_hook(lambda g: g * held[0].item())
    loss = y.sum()
    held.append(loss)
    return loss


def hook_of_leaf(x):
    w = x * 1
    z = leaf([1.0, 2.0])
    z.register_hook(lambda g: g * z.detach())
    return (w * z).sum()


def hook_of_leaf_with_loss(x):
    z = leaf([1.0, 2.0])
    loss = None
    z.register_post_accumulate_grad_hook(lambda t: (loss.sum(), None)[1])
    loss = (x * z).sum()
    return loss


@pytest.mark.parametrize("make", [hook_with_itself, hook_with_later, hook_of_leaf, hook_of_leaf_with_loss])
def test_cycles_through_hooks_are_collected(make):
    x = leaf([1.0, 2.0])
    gone = weakref.ref(make(x))
    gc.collect()
    assert gone() is None
    before = ag.memory_stats()["allocated_bytes"]
    for _ in range(20):
        make(x).backward()
    x.grad = None
    gc.collect()
    assert ag.memory_stats()["allocated_bytes"] <= before


def test_plain_hooks_make_no_cycles(no_collector):
    x = leaf([1.0])
    factor = 3.0
    x.register_hook(lambda g: g * factor)
    y = x * 2
    y.register_hook(lambda g: None)
    y.grad_fn.register_hook(lambda i, o: None)
    z = y.exp()
    gone = weakref.ref(z)
    z.sum().backward()
    del y, z
    assert gone() is None
    assert not any(gc.is_tracked(n) for n in [(x * 2).grad_fn])          # graphs on a leaf with a plain hook stay untracked


def test_a_hook_may_delete_what_it_likes(engine):
    x = leaf([1.0, 2.0])
    kept = {"y": x * 2}
    kept["z"] = kept["y"].exp().sum()
    kept["y"].register_hook(lambda g: (kept.clear(), gc.collect(), None)[-1])
    kept["z"].backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([2.0, 4.0]))


def test_a_hook_may_keep_its_gradient(engine):
    """What a hook holds on to is not written into afterwards."""
    x = leaf([1.0, 2.0])
    kept = []
    y = x * 2
    y.register_hook(kept.append)
    x.register_hook(kept.append)
    (y * y).sum().backward()
    (x * 1000).sum().backward()
    assert kept[0].tolist() == [4.0, 8.0] and kept[1].tolist() == [8.0, 16.0]
    assert x.grad.tolist() == [1008.0, 1016.0]


# ---- passes within passes, threads

def test_hooks_that_call_backward(engine):
    x, w = leaf([2.0]), leaf([5.0])
    y = x * x
    z = (w * w).sum()
    y.register_hook(lambda g: z.backward(retain_graph=True))
    x.register_hook(lambda g: z.backward(retain_graph=True))
    x.register_post_accumulate_grad_hook(lambda t: z.backward(retain_graph=True))
    (y * 3).sum().backward()
    assert x.grad.item() == 12.0 and w.grad.item() == 30.0


def test_a_hook_that_goes_back_through_its_own_graph(engine):
    x = leaf([2.0])
    y = x * x
    depth = []

    def again(g):
        if len(depth) < 3:
            depth.append(1)
            loss.backward(retain_graph=True)

    y.register_hook(again)
    loss = (y * 3).sum()
    loss.backward(retain_graph=True)
    assert x.grad.item() == 4 * 12.0


def test_hooks_in_threads(engine):
    x = leaf(np.linspace(-1, 1, 8))
    errors = []

    def work(k):
        try:
            for _ in range(60):
                y = x * (k + 1)
                calls = []
                y.register_hook(lambda g, calls=calls: (calls.append(1), g * 2)[1])
                with y.register_hook(lambda g: None):
                    g, = ag.autograd.grad((y * y).sum(), x)
                np.testing.assert_allclose(g.numpy(), 4 * (k + 1) ** 2 * x.detach().numpy())
                assert calls == [1]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_a_deep_chain_with_hooks():
    x = leaf([1.0])
    y = x
    count = [0]

    def hook(g):
        count[0] += 1

    for _ in range(100_000):
        y = y * 1.0
        y.register_hook(hook)
    y.sum().backward()
    assert count[0] == 100_000 and x.grad.item() == 1.0
    del y
    gc.collect()


# ---- saved values put elsewhere

@pytest.mark.parametrize(("pack", "unpack"), [(lambda t: t.numpy().copy(), lambda a: ag.tensor(a)), (lambda t: t, lambda t: t),
                                          (lambda t: t.t().contiguous(), lambda t: t.t())], ids=["arrays", "itself", "transposed"])
def test_saved_tensors_hooks(pack, unpack, engine):
    def run(x, w):
        y = (x @ w).softmax(-1) * x.exp() + x.sigmoid().prod() + x[0].logsumexp(0)
        y.mul_(x)
        return (y * w).sum() + ag.nn.functional.cross_entropy(x, ag.tensor([0, 2, 1]))

    plain, packed = [], []
    for found in (plain, packed):
        x, w = leaf(np.linspace(-1, 1, 9).reshape(3, 3)), leaf(np.linspace(0, 2, 9).reshape(3, 3))
        if found is packed:
            count = [0, 0]

            def counted(t):
                count[0] += 1
                return pack(t)

            def uncounted(p):
                count[1] += 1
                return unpack(p)

            with ag.autograd.graph.saved_tensors_hooks(counted, uncounted):
                loss = run(x, w)
            assert count[0] > 8 and count[1] == 0
        else:
            loss = run(x, w)
        loss.backward(retain_graph=True)
        g = ag.autograd.grad(loss, [x, w], create_graph=True)
        second = ag.autograd.grad((g[0] * g[1]).sum(), [x, w])
        found += [t.tolist() for t in (x.grad, w.grad, *g, *second)]
        if found is packed:
            assert count[1] >= 2 * (count[0] - 2)
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    assert plain == packed


def test_saved_tensors_hooks_refuse():
    x = leaf([1.0, 2.0])
    hooks = ag.autograd.graph.saved_tensors_hooks
    for unpack, error in ((lambda p: 3, TypeError), (lambda p: p[:1], RuntimeError), (lambda p: p.float(), RuntimeError)):
        with hooks(lambda t: t, unpack):
            y = x.exp()
        with pytest.raises(error, match="saved_tensors_hooks"):
            y.sum().backward()
    with pytest.raises(ZeroDivisionError), hooks(lambda t: 1 / 0, lambda p: p):
        x.exp()
    assert (x * 2).grad_fn is not None                # the block is over
    with hooks(lambda t: t, lambda p: p):
        y = x * 1
        z = y.exp()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()


def test_saved_tensors_hooks_nest_and_belong_to_their_thread():
    x = leaf([1.0])
    hooks = ag.autograd.graph.saved_tensors_hooks
    calls = []
    with hooks(lambda t: calls.append("outer") or t, lambda p: p):
        with hooks(lambda t: calls.append("inner") or t, lambda p: p):
            x.exp()
        x.exp()
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    x.exp()
    assert calls == ["inner", "outer"]


def test_packed_graphs_are_freed(no_collector):
    x = leaf([1.0, 2.0])
    before = ag.memory_stats()["allocated_bytes"]
    for way in range(3):
        with ag.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda p: p):
            y = (x.exp() * x).sum()
        if way:
            y.backward(retain_graph=way == 2)
        del y
    x.grad = None
    assert ag.memory_stats()["allocated_bytes"] == before


# ---- anomalies

def test_detect_anomaly(engine):
    x = leaf([0.0, 1.0])
    with ag.autograd.detect_anomaly():
        y = (x.sqrt() * float("nan")).sum()
        with pytest.raises(RuntimeError, match="'MulBackward' returned nan values in its 0th output") as info:
            y.backward()
    assert "test_hooks.py" in "".join(info.value.__notes__)
    assert x.grad is None
    with ag.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * float("nan")).sum().backward()
    ag.autograd.set_detect_anomaly(True)
    with pytest.raises(RuntimeError, match="nan"):
        (x * float("nan")).sum().backward()
    ag.autograd.set_detect_anomaly(False)
    (x * float("nan")).sum().backward()
    with ag.autograd.set_detect_anomaly(True):
        pass
    (x * float("nan")).sum().backward()


# ---- in captures

def trained(compiled, with_hooks):
    """Losses of a step with hooks of all kinds, which come and go."""
    ag.manual_seed(0)
    model = ag.nn.Sequential(ag.nn.Linear(2, 4), ag.nn.Tanh(), ag.nn.Linear(4, 1))
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)
    x, y = ag.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), ag.tensor([[0.0], [1.0], [1.0], [0.0]])
    handles, factor = [], 0.5
    for p in model.parameters() if with_hooks else ():
        handles.append(p.register_hook(lambda g: g * factor))
        handles.append(p.register_post_accumulate_grad_hook(lambda t: (t.grad.mul_(3.0), None)[1]))

    def step(x, y):
        optimizer.zero_grad()
        h = model[0](x)
        h.register_hook(lambda g: g.clamp(-0.1, 0.1))
        h.grad_fn.register_prehook(lambda g: (g[0] * 1.5,))
        loss = (model[2](model[1](h)) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = ag.compile(step) if compiled else step
    losses = [run(x, y).item() for _ in range(4)]
    for handle in handles:
        handle.remove()
    losses += [run(x, y).item() for _ in range(4)]
    with model[0].weight.register_hook(lambda g: g * 0):
        losses += [run(x, y).item() for _ in range(4)]
    losses += [run(x, y).item() for _ in range(4)]
    factor = 0.25
    return losses, model[0].weight.tolist()


@pytest.mark.parametrize("with_hooks", [False, True])
def test_captured_steps_have_their_hooks(with_hooks):
    assert trained(True, with_hooks) == trained(False, with_hooks)


def test_captured_functions_leave_the_hooks_of_leaves_to_the_pass_around_them():
    found = []
    for compiled in (False, True):
        w = leaf([1.0, 2.0])
        w.register_hook(lambda g: g * 10)
        f = ag.compile(lambda x, w=w: (x * w).sum()) if compiled else lambda x, w=w: (x * w).sum()
        for _ in range(4):
            (f(ag.tensor([3.0, 4.0], dtype=ag.float64)) + w.sum()).backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1] == [160.0, 200.0]


def test_captures_refuse_what_a_replay_would_not_do():
    log = []
    w = leaf([1.0])

    def logs(x):
        h = w * x
        h.register_hook(lambda g: log.append(1))
        h.sum().backward()
        return h.detach()

    def registers(x):
        with w.register_hook(lambda g: g * 2):
            (w * x).sum().backward()
        return x * 1

    def goes_back(x):
        (x * x).sum().backward()
        return x.detach() * 1

    x = ag.ones(1, dtype=ag.float64)
    for step in (logs, registers):
        with pytest.raises(RuntimeError, match="itself changes what it reads"):
            ag.compile(step)(x)
    argument = leaf([1.0])
    argument.register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="argument that has hooks"):
        ag.compile(goes_back)(argument)
    captured = ag.compile(goes_back)
    for _ in range(4):
        captured(leaf([1.0]))
    with pytest.raises(RuntimeError, match="argument that has hooks"):
        captured(argument)
