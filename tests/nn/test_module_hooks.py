"""Hooks of modules: order, replacement, removal, errors, both engines, copies.

Relies on the package alone; nothing relies on it.
"""

import copy

import pytest

import autograd_cy as ag
from autograd_cy import nn


class Scale(nn.Module):
    def __init__(self, factor=2.0):
        self.weight = nn.Parameter(ag.tensor(factor))

    def forward(self, x, shift=0.0):
        return x * self.weight + shift


def leaf(value=3.0):
    return ag.tensor(value, requires_grad=True)


def test_forward_hooks_in_their_order():
    net, log = Scale(), []
    net.register_forward_pre_hook(lambda m, args: log.append("second"))
    net.register_forward_pre_hook(lambda m, args: log.append("first"), prepend=True)
    net.register_forward_hook(lambda m, args, out: log.append(("after", args, out.item())))
    assert net(leaf(3.0)).item() == 6.0
    assert log[:2] == ["first", "second"]
    assert log[2][0] == "after"
    assert log[2][2] == 6.0


def test_hooks_replace_arguments_and_results():
    net = Scale()
    net.register_forward_pre_hook(lambda m, args: args[0] + 1)
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs, "shift": 10.0}), with_kwargs=True)
    net.register_forward_hook(lambda m, args, out: out * 100)
    net.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["shift"], with_kwargs=True)
    assert net(leaf(2.0)).item() == 100 * (3 * 2 + 10) + 10


def test_removal_and_other_instances():
    net, other, calls = Scale(), Scale(3.0), []
    handle = net.register_forward_hook(lambda *_: calls.append(1))
    assert other(leaf(1.0)).item() == 3.0
    with net.register_forward_hook(lambda *_: calls.append(2)):
        net(leaf())
    net(leaf())
    handle.remove()
    handle.remove()
    net(leaf())
    assert calls == [1, 2, 1]


def test_hooks_inside_of_containers():
    class Linear(nn.Linear):          # a class of its own: with the first hook a class takes the longer way for good
        pass

    net, seen = nn.Sequential(Linear(3, 4), nn.ReLU(), Linear(4, 2)), []
    for k in (0, 2):
        net[k].register_forward_hook(lambda m, args, out, k=k: seen.append((k, tuple(out.shape))))
    net(ag.ones(5, 3))
    assert seen == [(0, (5, 4)), (2, (5, 2))]


@pytest.mark.parametrize("engine", ["iterative", "recursive"])
def test_backward_hooks(engine):
    net, log, x = Scale(2.0), [], leaf(3.0)
    net.register_full_backward_pre_hook(lambda m, grad_output: log.append(("before", grad_output[0].item())))
    net.register_full_backward_hook(lambda m, grad_input, grad_output: log.append((grad_input[0].item(), grad_output[0].item())))
    (net(x) * 5).backward(engine=engine)
    assert log == [("before", 5.0), (10.0, 5.0)]
    assert x.grad.item() == 10.0
    assert net.weight.grad.item() == 15.0


def test_backward_hooks_replace_gradients():
    net, x = Scale(2.0), leaf(3.0)
    net.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    net.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] + 1,))
    net(x).backward()
    assert x.grad.item() == 21.0
    assert net.weight.grad.item() == 30.0


def test_backward_hook_of_a_module_whose_input_needs_no_gradient():
    net, log = Scale(), []
    net.register_full_backward_hook(lambda m, grad_input, grad_output: log.append((grad_input, grad_output[0].item())))
    net(ag.tensor(3.0)).backward()
    assert log == [((None,), 1.0)]


def test_a_wrong_number_of_gradients_is_an_error():
    net, x = Scale(), leaf()
    net.register_full_backward_hook(lambda m, grad_input, grad_output: (None, None))
    with pytest.raises(RuntimeError, match="full backward hook of Scale: returned 2 gradients in place of 1"):
        net(x).backward()
    assert x.grad is None


def test_several_results():
    class Two(nn.Module):
        def forward(self, x):
            return x * 2, x * 3, "text"

    net, log, x = Two(), [], leaf(1.0)
    net.register_full_backward_hook(lambda m, grad_input, grad_output: log.append((grad_input[0].item(), [g and g.item() for g in grad_output])))
    a, b, text = net(x)
    assert text == "text"
    b.backward()
    assert log == [(3.0, [None, 1.0])]


def test_always_called():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    net, log = Broken(), []
    net.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    net.register_forward_hook(lambda m, args, out: log.append("not called"))
    with pytest.raises(ValueError, match="broken"):
        net(leaf())
    assert log == [None]
    net.register_forward_hook(lambda m, args, out: out.shape, always_call=True)
    with pytest.warns(UserWarning, match="always_call"), pytest.raises(ValueError, match="broken"):
        net(leaf())


def test_copies_keep_hooks():
    net = Scale()
    net.register_forward_hook(_doubled)
    twin = copy.deepcopy(net)
    assert twin(leaf(1.0)).item() == 4.0
    assert list(net.state_dict()) == ["weight"]


def _doubled(module, args, output):
    return output * 2
