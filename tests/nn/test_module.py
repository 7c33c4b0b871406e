"""Module: enumeration, attributes, state, calls, printing; the containers.

Relies on nn (Module, Parameter, containers, Linear).
"""

import abc
import copy
import pickle

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn


def array(t):
    return np.array(t.detach().numpy())


def names(found):
    return [name for name, _ in found]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 3)
        self.act = nn.Tanh()
        self.fc2 = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Scaled(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)
        self.scale = nn.Parameter(ag.ones(1))

    def forward(self, x):
        return self.layer(x) * self.scale


class Many(nn.Module):
    def __init__(self):
        self.layers = [nn.Linear(2, 2), (nn.Linear(2, 2, bias=False), {"deep": nn.Linear(2, 1)})]
        self.table = {"a": nn.Parameter(ag.zeros(1)), 3: nn.Identity()}
        self.numbers = [1, 2, 3]


# ---- enumeration

def test_s4_18_parameters_in_definition_order_depth_first():
    net = Scaled()
    assert [id(p) for p in net.parameters()] == [id(net.layer.weight), id(net.layer.bias), id(net.scale)]
    assert names(net.named_parameters()) == ["layer.weight", "layer.bias", "scale"]
    assert names(net.named_parameters(prefix="net")) == ["net.layer.weight", "net.layer.bias", "net.scale"]
    assert names(net.named_parameters(recurse=False)) == ["scale"]


def test_s1_24_s2_31_parameters_are_references():
    layer = nn.Linear(2, 1)
    weight, bias = layer.parameters()
    with ag.no_grad():
        weight.fill_(2.0)
        bias.fill_(1.0)
    assert float(layer(ag.tensor([[1.0, 10.0]]))[0, 0]) == 23.0


def test_s4_b6_lists_tuples_and_dicts_are_searched():
    net = Many()
    assert names(net.named_parameters()) == ["layers.0.weight", "layers.0.bias", "layers.1.0.weight",
                                             "layers.1.1.deep.weight", "layers.1.1.deep.bias", "table.a"]
    assert names(net.named_modules()) == ["", "layers.0", "layers.1.0", "layers.1.1.deep", "table.3"]
    assert names(net.named_children()) == ["layers.0", "layers.1.0", "layers.1.1.deep", "table.3"]


def test_s4_b6_shared_parameters_once():
    net = nn.Module()
    net.a = nn.Linear(2, 2)
    net.b = nn.Linear(2, 2)
    net.b.weight = net.a.weight
    net.c = net.a
    net.cache = [net.a, net.b.bias]
    assert names(net.named_parameters()) == ["a.weight", "a.bias", "b.bias"]
    assert names(net.named_modules()) == ["", "a", "b"]
    assert "b.weight" in names(net.named_parameters(remove_duplicate=False))
    assert {"a.weight", "b.weight", "c.weight"} <= set(net.state_dict())
    assert net.load_state_dict(net.state_dict()) == ([], [])


def test_cycles_are_cut():
    net = Net()
    net.act.parent = net
    net.loop = [1]
    net.loop.append(net.loop)
    assert len(list(net.parameters())) == 3
    assert len(list(net.modules())) == 4
    assert len(net.state_dict()) == 3


def test_without_super_init():
    class Bare(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

        def forward(self, x):
            return self.fc(x)

    net = Bare()
    assert net.training
    assert len(list(net.parameters())) == 2
    assert tuple(net(ag.ones(2, 1)).shape) == (2, 1)


def test_get_by_name():
    net = Many()
    assert net.get_submodule("layers.1.1.deep") is net.layers[1][1]["deep"]
    assert net.get_submodule("") is net
    assert net.get_parameter("layers.0.bias") is net.layers[0].bias
    with pytest.raises(AttributeError, match="nothing"):
        net.get_parameter("nothing")


# ---- attributes

def test_assigning_over_a_parameter():
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"as parameter 'weight' \(nn.Parameter or None expected\)"):
        layer.weight = ag.zeros(2, 2)
    layer.weight = nn.Parameter(ag.zeros(2, 2))
    layer.bias = None
    assert names(layer.named_parameters()) == ["weight"]
    with pytest.raises(TypeError, match="bias"):
        layer.bias = ag.zeros(2)
    layer.bias = nn.Parameter(ag.zeros(2))
    del layer.weight
    assert names(layer.named_parameters()) == ["bias"]
    layer.weight = 3
    net = Net()
    with pytest.raises(TypeError, match="as child module 'fc1'"):
        net.fc1 = 3
    with pytest.raises(AttributeError, match="nothing"):
        _ = net.nothing


def test_register_parameter_and_add_module():
    net = nn.Module()
    net.register_parameter("w", nn.Parameter(ag.ones(1)))
    net.register_parameter("none", None)
    net.add_module("inner", nn.Linear(1, 1))
    assert names(net.named_parameters()) == ["w", "inner.weight", "inner.bias"]
    assert net.none is None
    for name, error in (("a.b", KeyError), ("", KeyError), ("forward", KeyError), (3, TypeError)):
        with pytest.raises(error):
            net.register_parameter(name, nn.Parameter(ag.ones(1)))
    with pytest.raises(TypeError):
        net.register_parameter("p", ag.ones(1))
    with pytest.raises(TypeError):
        net.add_module("p", ag.ones(1))


def test_buffers():
    net = Net()
    net.register_buffer("mean", ag.zeros(2))
    net.register_buffer("scratch", ag.zeros(1), persistent=False)
    net.register_buffer("later", None)
    assert names(net.named_buffers()) == ["mean", "scratch"]
    assert "mean" in net.state_dict()
    assert "scratch" not in net.state_dict()
    assert "mean" not in names(net.named_parameters())
    net.mean = ag.ones(2)
    assert float(net.state_dict()["mean"].sum()) == 2.0
    with pytest.raises(TypeError, match="as buffer 'mean'"):
        net.mean = 3.0
    with pytest.raises(TypeError, match="as buffer 'later'"):
        net.later = 3.0
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("fc1", ag.zeros(1))
    del net.mean
    assert names(net.named_buffers()) == ["scratch"]
    other = Net()
    assert names(other.named_buffers()) == []            # the names belong to the instance


def test_parameter():
    p = nn.Parameter(ag.tensor([1.0, 2.0]))
    assert isinstance(p, ag.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    assert not nn.Parameter(ag.ones(1), requires_grad=False).requires_grad
    assert repr(p).startswith("Parameter containing:\ntensor([1., 2.]")
    assert nn.Parameter([1.0, 2.0]).dtype == ag.float32
    data = ag.ones(2)
    shared = nn.Parameter(data)
    data[0] = 5.0
    assert float(shared[0]) == 5.0
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(q) is nn.Parameter
        assert q.requires_grad
        np.testing.assert_array_equal(array(q), [1.0, 2.0])
    assert type(p * 2) is ag.Tensor
    q = copy.deepcopy([p, p])
    assert q[0] is q[1]


# ---- calls

def test_call_is_forward_itself():
    """No frame between net(x) and forward: the class attribute is the same function."""
    assert nn.Linear.__call__ is nn.Linear.forward
    assert Net.__call__ is Net.forward


def test_call_follows_assignments_of_forward():
    class A(nn.Module):
        def forward(self, x):
            return ("A", x)

    class B(A):
        pass

    class C(B):
        def forward(self, x):
            return ("C", *super().forward(x))

    b, c = B(), C()
    assert b(1) == ("A", 1)
    assert c(1) == ("C", "A", 1)
    assert b(x=2) == ("A", 2)
    b.forward = lambda x: ("instance", x)
    assert b(1) == ("instance", 1)
    assert B()(1) == ("A", 1)
    assert c(1) == ("C", "A", 1)
    del b.forward
    assert b(1) == ("A", 1)
    A.forward = lambda self, x: ("patched", x)
    assert A()(1) == ("patched", 1)
    assert B()(1) == ("patched", 1)
    assert c(1) == ("C", "patched", 1)


def test_call_of_ones_own_and_super_call():
    class A(nn.Module):
        def forward(self, x):
            return x + 1

    class Twice(A):
        def __call__(self, x):
            return 2 * super().__call__(x)

        def forward(self, x):
            return x + 10

    class Below(Twice):
        def forward(self, x):
            return x + 100

    assert Twice()(1) == 22
    assert Below()(1) == 202
    assert A()(1) == 2


def test_call_with_several_bases():
    class Mixin:
        def forward(self, x):
            return "mixin"

    class A(nn.Module):
        def forward(self, x):
            return "A"

    class B(Mixin, A):
        pass

    class Left(A):
        pass

    class Right(A):
        def forward(self, x):
            return "right"

    class Bottom(Left, Right):
        pass

    assert B()(0) == "mixin"
    assert Bottom()(0) == "right"


def test_call_without_forward_and_abstract_modules():
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)

    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x):
            ...

    with pytest.raises(TypeError, match="abstract"):
        Base()

    class Whole(Base):
        def forward(self, x):
            return x

    assert Whole()(3) == 3


def test_pickled_instance_with_its_own_forward():
    layer = nn.Identity()
    layer.forward = abs
    again = pickle.loads(pickle.dumps(layer))
    assert again(-3) == 3
    assert copy.deepcopy(layer)(-3) == 3


def test_unexpected_constructor_arguments():
    with pytest.raises(TypeError, match="unexpected"):
        nn.Tanh(3)


# ---- whole-model operations

def test_train_eval_apply_requires_grad_zero_grad():
    net = Net()
    assert net.eval() is net
    assert [m.training for m in net.modules()] == [False] * 4
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    seen = []
    net.apply(seen.append)
    assert seen == [net.fc1, net.act, net.fc2, net]
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(ag.ones(1, 2)).sum().backward()
    kept = net.fc1.bias.grad
    net.zero_grad(set_to_none=False)
    assert float(kept.abs().sum()) == 0.0
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_to_dtype():
    net = Net()
    net.register_buffer("count", ag.tensor([1, 2]))
    parameters = list(net.parameters())
    assert net.double() is net
    assert all(p.dtype == ag.float64 and p.requires_grad and p.is_leaf for p in net.parameters())
    assert all(p is q for p, q in zip(parameters, net.parameters(), strict=True))
    assert net.count.dtype == ag.int64
    net(ag.ones(1, 2, dtype=ag.float64)).sum().backward()
    assert net.fc1.weight.grad.dtype == ag.float64
    net.to(ag.float32).to("cpu").to(ag.ones(1)).cpu().float()
    assert net.fc1.weight.dtype == ag.float32
    assert net.fc1.weight.grad.dtype == ag.float32
    with pytest.raises(TypeError, match="floating point"):
        net.to(ag.int64)
    with pytest.raises(RuntimeError, match="cuda"):
        net.to("cuda:0")


# ---- state

def test_state_dict_shares_memory_and_loads():
    a, b = Net(), Net()
    state = a.state_dict()
    assert list(state) == ["fc1.weight", "fc1.bias", "fc2.weight"]
    assert not any(t.requires_grad for t in state.values())
    assert repr(b.load_state_dict(state)) == "<All keys matched successfully>"
    x = ag.ones(1, 2)
    np.testing.assert_array_equal(array(a(x)), array(b(x)))
    with ag.no_grad():
        a.fc1.bias.fill_(7.0)
    assert float(state["fc1.bias"][0]) == 7.0
    assert float(b.fc1.bias[0]) != 7.0


def test_load_state_dict_is_strict_and_atomic():
    net = Net()
    before = {k: array(v) for k, v in net.state_dict().items()}
    state = {"fc1.weight": ag.zeros(3, 2), "fc1.bias": ag.zeros(4), "extra": ag.zeros(1)}
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "fc2.weight". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for fc1.bias: copying a param with shape (4,) from checkpoint, "
        "the shape in current model is (3,).")
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict(state, strict=False)
    with pytest.raises(RuntimeError, match="fc1.bias"):
        net.load_state_dict({**state, "fc1.bias": "text"}, strict=False)
    for key, value in before.items():
        np.testing.assert_array_equal(array(net.state_dict()[key]), value)
    state["fc1.bias"] = np.arange(3.0)                       # an array of another dtype
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["fc2.weight"]
    assert result.unexpected_keys == ["extra"]
    np.testing.assert_array_equal(array(net.fc1.bias), [0.0, 1.0, 2.0])
    assert net.fc1.bias.dtype == ag.float32
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_deepcopy_and_pickle():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        x = ag.ones(2, 2)
        np.testing.assert_array_equal(array(net(x)), array(other(x)))
        with ag.no_grad():
            other.fc1.weight.zero_()
        assert float(net.fc1.weight.abs().sum()) > 0
        assert type(other.fc1.weight) is nn.Parameter


# ---- printing

def test_repr():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1, bias=False)))
    assert repr(net) == """Sequential(
  (0): Linear(in_features=2, out_features=3, bias=True)
  (1): ReLU()
  (2): Sequential(
    (0): Linear(in_features=3, out_features=1, bias=False)
  )
)"""
    assert repr(nn.Module()) == "Module()"
    assert repr(nn.Softplus()) == "Softplus(beta=1.0, threshold=20.0)"


# ---- containers

def test_sequential():
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    net = nn.Sequential(a, b).append(c)
    x = ag.ones(4, 2)
    np.testing.assert_array_equal(array(net(x)), array(c(b(a(x)))))
    assert len(net) == 3
    assert net[0] is a
    assert net[-1] is c
    assert list(net) == [a, b, c]
    assert [type(m) for m in net[1:]] == [nn.ReLU, nn.Linear]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    net[1] = nn.Tanh()
    assert isinstance(net[1], nn.Tanh)
    with pytest.raises(IndexError):
        net[3]
    with pytest.raises(TypeError, match="not a Module subclass"):
        nn.Sequential(a, ag.relu)
    del net[1]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    named = nn.Sequential({"fc": nn.Linear(1, 1), "act": nn.Tanh()})
    assert named.fc is named[0]
    assert list(named.state_dict()) == ["fc.weight", "fc.bias"]
    named.act = nn.Sigmoid()
    assert isinstance(named[1], nn.Sigmoid)
    assert nn.Sequential()(5) == 5
    copied = copy.deepcopy(net)
    np.testing.assert_array_equal(array(copied(x)), array(net(x)))


def test_module_list():
    items = nn.ModuleList([nn.Linear(1, 1) for _ in range(2)])
    items.append(nn.Tanh())
    items.extend([nn.ReLU()])
    items += [nn.Sigmoid()]
    items.insert(0, nn.Identity())
    assert [type(m).__name__ for m in items] == ["Identity", "Linear", "Linear", "Tanh", "ReLU", "Sigmoid"]
    assert isinstance(items.pop(0), nn.Identity)
    assert isinstance(items[:2], nn.ModuleList)
    assert len(items[:2]) == 2
    assert items[0] in items
    net = nn.Module()
    net.items = items
    assert names(net.named_parameters())[:2] == ["items.0.weight", "items.0.bias"]
    with pytest.raises(NotImplementedError):
        items(1)
    with pytest.raises(TypeError):
        items.append(3)


def test_module_dict():
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.Tanh()
    assert list(table) == list(table.keys()) == ["a", "b"]
    assert "a" in table
    assert table.a is table["a"]
    assert len(table) == 2
    assert list(table.state_dict()) == ["a.weight", "a.bias"]
    assert isinstance(table.pop("b"), nn.Tanh)
    with pytest.raises(KeyError):
        table["forward"] = nn.Tanh()
    table.clear()
    assert len(table) == 0


def test_parameter_list():
    ps = nn.ParameterList([nn.Parameter(ag.ones(2)), ag.zeros(1)])
    assert isinstance(ps[1], nn.Parameter)
    ps.append(ag.ones(3))
    assert names(ps.named_parameters()) == ["0", "1", "2"]
    assert len(ps) == 3
    assert "Parameter containing" in repr(ps)
