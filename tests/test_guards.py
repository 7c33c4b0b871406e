"""Guards of compiled steps: what a step could read is watched, changes are said in words, places are found in other steps.

Relies on the package only.
"""

import collections
import datetime
import enum
import functools
import gc
import os
import random
import subprocess
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.array.errors import CaptureError
from autograd_cy.graph import guards, watch
from autograd_cy.graph.calls import user_line, watch_calls

STEPS = 3
SCALES = [1.0, 2.0]
HELPER_SCALE = 2.0
COUNTER = 0
config = types.ModuleType("config")
config.lr, config.unused = 0.1, 1


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


class Options:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("size", "unset")

    def __init__(self):
        self.size = 3


class Hostile:
    """Anything that runs its code fails the test."""

    def __init__(self):
        self.size = 3

    def _fail(self, *args):
        raise AssertionError("code of the user's was run")

    __eq__ = __ne__ = __bool__ = __len__ = __iter__ = __getattr__ = __repr__ = _fail
    __hash__ = object.__hash__

    @property
    def trap(self):
        raise AssertionError("a property was run")


class Net(nn.Module):
    factor = 2

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.5)
        self.layers = [nn.Linear(2, 2), nn.Tanh()]
        self.width = 4
        self.history = []

    def forward(self, x):
        x = self.fc(x) * self.factor
        for layer in self.layers:
            x = layer(x)
        return x + self.width + self.helper()

    def helper(self):
        return HELPER_SCALE

    def never_called(self):
        return self.history


def helper(x):
    return x * HELPER_SCALE


def set_global(name, value):
    globals()[name] = value


def set_cell(step, name, value):
    step.__closure__[step.__code__.co_freevars.index(name)].cell_contents = value


# ---- rows: (name, make: () -> (step, mutate), expected clause or None)

ROWS = []


def row(expected):
    def add(make):
        ROWS.append(pytest.param(make, expected, id=make.__name__))
        return make
    return add


def closure_over(value, mutate, other=None):
    """A step that reads `value`, and what is done to it."""
    def train():
        held = value

        def step():
            return held, held.size
        return step
    step = train()
    return step, lambda: mutate(step, value)


def replaced_by(value):
    return lambda step, _: set_cell(step, "held", value)


HELD = "the variable 'held' of the enclosing function train"


@row(None)
def nothing():
    return closure_over(3, lambda step, value: None)


@row(f"{HELD} changed from 3 to 4")
def number():
    return closure_over(3, replaced_by(4))


@row(None)
def equal_number():
    return closure_over(1234.5, replaced_by(float("1234.5")))


@row(f"{HELD} changed from True to 1")
def true_is_not_one():
    return closure_over(True, replaced_by(1))


@row(f"{HELD} changed from 0.0 to -0.0")
def signed_zero():
    return closure_over(0.0, replaced_by(-0.0))


@row(None)
def nan_equals_nan():
    return closure_over(float("nan"), replaced_by(float("nan")))


@row(f"{HELD} changed from None to 1")
def none():
    return closure_over(None, replaced_by(1))


@row(f"{HELD} changed from 'ab' to 'abc'")
def string():
    return closure_over("ab", replaced_by("abc"))


@row(None)
def equal_string():
    return closure_over("ab", replaced_by("".join(["a", "b"])))


@row(f"{HELD} changed from b'a' to b'b'")
def byte_string():
    return closure_over(b"a", replaced_by(b"b"))


@row(None)
def equal_tuple():
    return closure_over((1, (2.0, "x")), replaced_by((1, (float("2"), "x"))))


@row(f"{HELD} changed from (1, 2) to (1, True)")
def tuple_of_other_types():
    return closure_over((1, 2), replaced_by((1, True)))


@row(f"{HELD} changed from slice(0, 2, None) to slice(0, 3, None)")
def slices():
    return closure_over(slice(0, 2), replaced_by(slice(0, 3)))


@row(None)
def equal_slice():
    return closure_over(slice(0, 2), replaced_by(slice(0, 2)))


@row(None)
def equal_range():
    return closure_over(range(3), replaced_by(range(3)))


@row(f"{HELD} changed from Mode.FAST to Mode.EXACT")
def enumeration():
    return closure_over(Mode.FAST, replaced_by(Mode.EXACT))


@row(f"{HELD} changed from float32 to float64")
def dtype():
    return closure_over(ag.float32, replaced_by(ag.float64))


@row(f"{HELD} changed from np.float32(1.0) to np.float32(2.0)")
def numpy_scalar():
    return closure_over(np.float32(1), replaced_by(np.float32(2)))


@row(None)
def equal_numpy_scalar():
    return closure_over(np.float32(1), replaced_by(np.float32(1)))


@row("item 1 of held changed from 2 to 5")
def item_of_list():
    return closure_over([1, 2], lambda step, value: value.__setitem__(1, 5))


@row(None)
def equal_item_of_list():
    return closure_over([1.5, 2], lambda step, value: value.__setitem__(0, float("1.5")))


@row("the list held has 3 items instead of 2")
def appended():
    return closure_over([1, 2], lambda step, value: value.append(3))


@row("item 0 of held[1] changed from 2 to 7")
def nested_item():
    return closure_over([1, [2]], lambda step, value: value[1].__setitem__(0, 7))


@row(f"{HELD} was replaced by another list")
def other_list():
    return closure_over([1, 2], replaced_by([1, 2]))


@row("key 'lr' of held changed from 0.1 to 0.2")
def key_of_dict():
    return closure_over({"lr": 0.1}, lambda step, value: value.update(lr=0.2))


@row("the dict held has 2 items instead of 1")
def new_key():
    return closure_over({"lr": 0.1}, lambda step, value: value.update(b=0.2))


@row("the contents of the dict held changed")
def other_key():
    return closure_over({"a": 1}, lambda step, value: (value.pop("a"), value.update(b=1)))


@row("key 'sizes' of held was replaced by another list")
def list_in_dict():
    return closure_over({"sizes": [1]}, lambda step, value: value.update(sizes=[1]))


@row("the contents of the set held changed")
def set_item():
    return closure_over({1, 2}, lambda step, value: (value.discard(1), value.add(5)))


@row("the set held has 3 items instead of 2")
def set_size():
    return closure_over({1, 2}, lambda step, value: value.add(5))


@row(None)
def set_rebuilt():
    return closure_over({"a", "b", 7}, lambda step, value: (value.clear(), value.update([7, "b", "a"])))


@row("the deque held has 1 item instead of 0")
def double_ended_queue():
    return closure_over(collections.deque(), lambda step, value: value.append(5))


@row("key 'a' of held changed from 0 to 1")
def counter():
    return closure_over(collections.Counter({"a": 0}), lambda step, value: value.update("a"))


@row("the contents of the ndarray held changed")
def array_edited():
    return closure_over(np.arange(6.0).reshape(2, 3), lambda step, value: value.__setitem__((1, 1), 9))


@row("the contents of the ndarray held changed")
def strided_array_edited():
    return closure_over(np.arange(6.0).reshape(2, 3).T, lambda step, value: value.__setitem__((1, 1), 9))


@row("the contents of the ndarray held changed")
def array_reshaped():
    return closure_over(np.arange(6.0), lambda step, value: setattr(value, "shape", (3, 2)))


@row(f"{HELD} was replaced by another ndarray")
def large_array():
    return closure_over(np.arange(1000.0), replaced_by(np.arange(1000.0)))


@row("the contents of the bytearray held changed")
def byte_array():
    return closure_over(bytearray(b"abc"), lambda step, value: value.__setitem__(1, 9))


@row(f"{HELD} was removed")
def deleted():
    def delete(step, value):
        del step.__closure__[0].cell_contents
    return closure_over(3, delete)


@row("attribute 'size' of held changed from 3 to 4")
def attribute_of_object():
    return closure_over(Options(size=3), lambda step, value: setattr(value, "size", 4))


@row("attribute 'size' of held was removed")
def attribute_deleted():
    return closure_over(Options(size=3), lambda step, value: delattr(value, "size"))


@row("attribute 'size' of held was set to 4")
def attribute_added():
    return closure_over(Options(), lambda step, value: setattr(value, "size", 4))


@row("attribute 'size' of held changed from 3 to 4")
def attribute_of_hostile_object():
    return closure_over(Hostile(), lambda step, value: setattr(value, "size", 4))


@row("attribute 'size' of held changed from 3 to 4")
def slot_of_object():
    return closure_over(Slotted(), lambda step, value: setattr(value, "size", 4))


@row("attribute 'size' of held changed from 3 to 4")
def namespace():
    return closure_over(types.SimpleNamespace(size=3), lambda step, value: setattr(value, "size", 4))


@row("the attributes of held were replaced")
def attributes_replaced():
    return closure_over(Options(size=3), lambda step, value: setattr(value, "__dict__", {"size": 3}))


@row("held changed its class from Options to Mirror")
def class_assigned():
    class Mirror(Options):
        pass
    return closure_over(Options(size=3), lambda step, value: setattr(value, "__class__", Mirror))


@row(None)
def attribute_that_no_code_reads():
    options = Options(size=3, losses=[])

    def step():
        return options.size
    return step, lambda: (setattr(options, "epoch", 4), options.losses.append(1))


@row("attribute 'loss_scale' of options changed from 1 to 2")
def attribute_read_by_name():
    options = Options(loss_scale=1)

    def step():
        return getattr(options, "loss" + "_scale")
    return step, lambda: setattr(options, "loss_scale", 2)


@row("the global 'STEPS' changed from 3 to 4")
def global_number():
    def step():
        return STEPS
    return step, lambda: set_global("STEPS", 4)


@row(None)
def global_that_no_code_reads():
    def step(x):
        return x.STEPS
    return step, lambda: set_global("STEPS", 4)


@row("item 0 of SCALES changed from 1.0 to 5.0")
def item_of_global():
    def step():
        return SCALES[0]
    return step, lambda: SCALES.__setitem__(0, 5.0)


@row("the global 'HELPER_SCALE' changed from 2.0 to 3.0")
def global_of_a_called_function():
    def step(x):
        return helper(x)
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row("the global 'HELPER_SCALE' changed from 2.0 to 3.0")
def global_in_a_nested_function():
    def step(x):
        return [(lambda y: y * HELPER_SCALE)(x) for _ in range(2)]
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row("the global 'abs' was set to a function")
def builtin_shadowed():
    def step(x):
        return abs(x)
    return step, lambda: set_global("abs", lambda x: x)


@row("config.lr changed from 0.1 to 0.2")
def module_attribute():
    def step():
        return config.lr
    return step, lambda: setattr(config, "lr", 0.2)


@row(None)
def module_attribute_that_no_code_reads():
    def step():
        return config.lr
    return step, lambda: setattr(config, "unused", 0.2)


@row("the default of 'scale' in step changed from 2 to 3")
def default():
    def step(x, scale=2):
        return x * scale
    return step, lambda: setattr(step, "__defaults__", (3,))


@row("key 'scale' of step.__kwdefaults__ changed from 2 to 3")
def keyword_default():
    def step(x, *, scale=2):
        return x * scale
    return step, lambda: step.__kwdefaults__.update(scale=3)


@row("item 0 of step.__defaults__[0] changed from 1 to 2")
def mutable_default():
    def step(x, sizes=[1]):  # noqa: B006
        return sizes
    return step, lambda: step.__defaults__[0].__setitem__(0, 2)


@row("the code of step changed")
def code():
    def step():
        return 1
    return step, lambda: setattr(step, "__code__", (lambda: 2).__code__)


@row("attribute 'calls' of step changed from 0 to 1")
def function_attribute():
    def step():
        return step.calls
    step.calls = 0
    return step, lambda: setattr(step, "calls", 1)


@row("key 'scale' of partial.keywords changed from 2 to 3")
def partial_function():
    step = functools.partial(helper, scale=2)
    return step, lambda: step.keywords.update(scale=3)


@row("attribute 'size' of options changed from 3 to 4")
def decorated():
    options = Options(size=3)

    @ag.no_grad()
    def step():
        return options.size
    return step, lambda: setattr(options, "size", 4)


@row("attribute 'training' of model changed from True to False")
def evaluation():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, model.eval


@row("attribute 'training' of model.1 (ReLU) changed from True to False")
def evaluation_of_a_layer():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, model[1].eval


@row(None)
def evaluation_and_back():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: (model.eval(), model.train())


@row("attribute 'negative_slope' of model.1 (LeakyReLU) changed from 0.01 to 0.2")
def option_of_a_layer():
    model = nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU())

    def step(x):
        return model(x)
    return step, lambda: setattr(model[1], "negative_slope", 0.2)


@row("attribute 'training' of model.1 (Dropout) changed from True to False")
def dropout_off():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def step(x):
        return model(x)
    return step, model[1].eval


@row("attribute 'p' of model.1 (Dropout) changed from 0.5 to 0.1")
def dropout_rate():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def step(x):
        return model(x)
    return step, lambda: setattr(model[1], "p", 0.1)


@row("model.0.weight was replaced by another Parameter")
def parameter_replaced():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: setattr(model[0], "weight", nn.Parameter(ag.zeros(2, 2)))


@row("model.0.bias changed from a Parameter to None")
def parameter_removed():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: setattr(model[0], "bias", None)


@row("requires_grad of model.0.weight changed from True to False")
def parameter_frozen():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: model[0].weight.requires_grad_(False)


@row("the dtype of model.0.weight changed")
def parameter_converted():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, model.double


@row("the memory of model.0.weight was replaced")
def parameter_data_replaced():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: setattr(model[0].weight, "data", ag.zeros(2, 2))


@row(None)
def parameter_values():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)

    def mutate():
        with ag.no_grad():
            model[0].weight.copy_(ag.ones(2, 2))
        model(ag.ones(1, 2)).sum().backward()
        model.zero_grad()
        model.load_state_dict(model.state_dict())
    return step, mutate


@row("the dict model has 3 items instead of 2")
def layer_added():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: model.append(nn.Tanh())


@row("model.1 changed from a ReLU to a Tanh")
def layer_replaced():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step(x):
        return model(x)
    return step, lambda: model.__setitem__(1, nn.Tanh())


@row("attribute 'width' of net changed from 4 to 5")
def attribute_of_a_module():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: setattr(net, "width", 5)


@row(None)
def attribute_of_a_module_that_no_code_reads():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: (net.__setattr__("epoch", 5), net.__setattr__("note", "x"))


@row(None)
def names_written_as_strings():
    options = Options(size=3)

    def step(x):
        x.a = getattr(options, "size", None)
        x.eval()
        return hasattr(options, "width")
    return step, lambda: setattr(options, "losses", 1)


@row("attribute 'width' of options was set to 1")
def name_written_as_a_string_appears():
    options = Options(size=3)

    def step(x):
        return hasattr(options, "width")
    return step, lambda: setattr(options, "width", 1)


@row("attribute 'losses' of options was set to 1")
def names_computed():
    options = Options(size=3)

    def step(x, name):
        return getattr(options, name, "size")
    return step, lambda: setattr(options, "losses", 1)


@row("attribute 'negative_slope' of layer changed from 0.01 to 0.2")
def subclass_of_a_layer():
    class Leaky(nn.LeakyReLU):
        pass
    layer = Leaky()

    def step(x):
        return layer(x)
    return step, lambda: setattr(layer, "negative_slope", 0.2)


@row("the global 'HELPER_SCALE' changed from 2.0 to 3.0")
def constructor():
    class Made:
        def __init__(self):
            self.x = HELPER_SCALE
    known = Made()

    def step():
        return known, Made()
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row(None)
def constructor_that_is_not_called():
    class Made:
        def __init__(self):
            self.x = HELPER_SCALE
    known = Made()

    def step():
        return known
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row("the global 'HELPER_SCALE' changed from 2.0 to 3.0")
def cached_property_of_a_class():
    class Made:
        @functools.cached_property
        def scale(self):
            return HELPER_SCALE
    made = Made()

    def step():
        return made.scale
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row("attribute 'factor' of net was set to 7")
def class_attribute_hidden():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: setattr(net, "factor", 7)


@row("attribute 'factor' of class Net changed from 2 to 7")
def class_attribute():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: setattr(Net, "factor", 7)


@row("method 'helper' of class Net changed from function helper to a function")
def method():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: setattr(Net, "helper", lambda self: 1)


@row("the global 'HELPER_SCALE' changed from 2.0 to 3.0")
def global_of_a_method():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: set_global("HELPER_SCALE", 3.0)


@row("net.layers.0.weight was replaced by another Parameter")
def parameter_in_a_list():
    net = Net()

    def step(x):
        return net(x)
    return step, lambda: setattr(net.layers[0], "weight", nn.Parameter(ag.zeros(2, 2)))


@row("attribute 'width' of net changed from 4 to 5")
def module_itself():
    net = Net()
    return net, lambda: setattr(net, "width", 5)


@row("attribute 'size' of self changed from 3 to 4")
def bound_method():
    class Trainer:
        def __init__(self):
            self.size = 3

        def step(self):
            return self.size
    trainer = Trainer()
    return trainer.step, lambda: setattr(trainer, "size", 4)


@row("attribute 'size' of self changed from 3 to 4")
def attribute_of_a_property():
    class Trainer:
        def __init__(self):
            self.size = 3

        @property
        def twice(self):
            return 2 * self.size

        def step(self):
            return self.twice
    trainer = Trainer()
    return trainer.step, lambda: setattr(trainer, "size", 4)


@row(f"{HELD} was replaced by another Tensor")
def tensor_replaced():
    return closure_over(ag.zeros(2), replaced_by(ag.zeros(2)))


@row("the shape of held changed")
def tensor_reshaped():
    return closure_over(ag.zeros(2), lambda step, value: setattr(value, "data", ag.zeros(3)))


@row(f"{HELD} changed from a Tensor to 1")
def tensor_to_number():
    return closure_over(ag.zeros(2), replaced_by(1))


def with_optimizer(cls, mutate, **options):
    model = nn.Linear(2, 2)
    opt = cls(model.parameters(), lr=0.1, **options)

    def step(x):
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
    return step, lambda: mutate(opt)


@row(None)
def learning_rate():
    return with_optimizer(ag.optim.Adam, lambda opt: opt.param_groups[0].update(lr=0.5, betas=(0.5, 0.5), weight_decay=1.0, eps=1.0))


@row(None)
def scheduler_outside():
    return with_optimizer(ag.optim.SGD, lambda opt: ag.optim.lr_scheduler.StepLR(opt, 1).step())


@row(None)
def momentum():
    return with_optimizer(ag.optim.SGD, lambda opt: opt.param_groups[0].update(momentum=0.5), momentum=0.9)


@row("option 'momentum' of opt.param_groups[0] changed from 0.0 to 0.9")
def momentum_on():
    return with_optimizer(ag.optim.SGD, lambda opt: opt.param_groups[0].update(momentum=0.9))


@row("option 'amsgrad' of opt.param_groups[0] changed from False to True")
def amsgrad():
    return with_optimizer(ag.optim.Adam, lambda opt: opt.param_groups[0].update(amsgrad=True))


@row("option 'centered' of opt.param_groups[0] changed from False to True")
def centered():
    return with_optimizer(ag.optim.RMSprop, lambda opt: opt.param_groups[0].update(centered=True))


@row("the list opt.param_groups has 2 items instead of 1")
def group_added():
    return with_optimizer(ag.optim.SGD, lambda opt: opt.add_param_group({"params": [ag.zeros(2, requires_grad=True)]}))


@row("the list opt.param_groups[0]['params'] has 1 item instead of 2")
def parameter_taken_out():
    return with_optimizer(ag.optim.SGD, lambda opt: opt.param_groups[0]["params"].pop())


@row("attribute 'param_groups' of opt was replaced by another list")
def state_of_an_optimizer_loaded():
    return with_optimizer(ag.optim.SGD, lambda opt: opt.load_state_dict(opt.state_dict()))


@row("option 'lr' of opt.param_groups[0] changed from 0.1 to 0.5")
def learning_rate_that_the_step_reads():
    model = nn.Linear(2, 2)
    opt = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        return x * opt.param_groups[0]["lr"]
    return step, lambda: opt.param_groups[0].update(lr=0.5)


@row("key 'lr' of opt.param_groups[0] changed from 0.1 to 0.5")
def learning_rate_of_an_own_optimizer():
    class Plain(ag.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data -= group["lr"] * p.grad
    return with_optimizer(Plain, lambda opt: opt.param_groups[0].update(lr=0.5))


@row("item 0 of ring changed from 1 to 2")
def cycle():
    ring = [1]
    ring.append(ring)
    ring.append({"back": ring})

    def step():
        return ring
    return step, lambda: ring.__setitem__(0, 2)


@row("attribute 'size' of a changed from 1 to 2")
def shared_object():
    a = Options(size=1)
    b, c = [a, a], {"a": a}

    def step():
        return a.size, b, c
    return step, lambda: setattr(a, "size", 2)


@pytest.fixture(autouse=True)
def _restore():
    before = dict(globals())
    scales, lr, factor, old_helper = list(SCALES), config.lr, Net.factor, Net.helper
    yield
    for name in [n for n in globals() if n not in before]:
        del globals()[name]
    globals().update(before)
    SCALES[:] = scales
    config.lr = lr
    if Net.factor != factor:
        Net.factor = factor
    if Net.helper is not old_helper:
        Net.helper = old_helper


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize(("make", "expected"), ROWS)
def test_rows(make, expected, shortcuts):
    step, mutate = make()
    watch.set_shortcuts(shortcuts)
    try:
        snapshot = guards.snapshot(step)
        for _ in range(3):
            assert snapshot.check() is None
        assert snapshot.changes() == []
        kept = mutate()
        assert snapshot.check() == expected
        assert snapshot.check() == expected
        if expected is None:
            assert snapshot.changes() == []
        else:
            assert expected in snapshot.changes()
        del kept
    finally:
        watch.set_shortcuts(True)


# ---- what the step itself changes

def test_a_step_that_changes_what_it_reads():
    losses, seen, counter = [], {"n": 0}, 0
    options = Options(count=0)
    model = nn.Linear(2, 1)
    model.total = 0

    def step(x):
        global COUNTER
        nonlocal counter
        counter += 1
        COUNTER += 1
        loss = model(x).sum()
        losses.append(loss)
        seen["n"] += 1
        options.count += 1
        options.last = loss
        model.total = counter
        step.calls = 1
        return loss
    step.calls = 0
    snapshot = guards.snapshot(step)
    step(ag.ones(1, 2))
    assert set(snapshot.changes()) == {
        "the global 'COUNTER' changed from 0 to 1",
        "the variable 'counter' of the enclosing function test_a_step_that_changes_what_it_reads changed from 0 to 1",
        "the list losses has 1 item instead of 0",
        "key 'n' of seen changed from 0 to 1",
        "attribute 'count' of options changed from 0 to 1",
        "attribute 'last' of options was set to a Tensor",
        "attribute 'total' of model changed from 0 to 1",
        "attribute 'calls' of step changed from 0 to 1",
    }


def test_a_training_step_changes_nothing_that_is_watched():
    for make in (lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: ag.optim.Adam(p), lambda p: ag.optim.RMSprop(p)):
        model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
        opt = make(model.parameters())
        x, y, criterion = ag.rand(4, 2), ag.rand(4, 1), nn.MSELoss()

        def step():
            opt.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            return loss
        snapshot = guards.snapshot(step)
        for _ in range(3):
            step()
            assert snapshot.changes() == []
            assert snapshot.check() is None
        assert snapshot.refusals() == []
        assert [name for name, _ in snapshot.tensors()] == [
            "x", "y", "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]
        assert snapshot.optimizers() == [("opt", opt)]


def test_a_scheduler_in_the_step():
    model = nn.Linear(2, 1)
    opt = ag.optim.SGD(model.parameters(), lr=0.1)
    scheduler = ag.optim.lr_scheduler.StepLR(opt, 10)

    def step(x):
        model(x).sum().backward()
        opt.step()
        scheduler.step()
    snapshot = guards.snapshot(step)
    step(ag.ones(1, 2))
    assert any(c.startswith("attribute 'last_epoch' of scheduler changed from 0 to 1") for c in snapshot.changes())


def test_random_sources_outside_the_package():
    rng, mine, generator = np.random.default_rng(0), random.Random(0), ag.Generator(0)

    def step():
        return rng.normal(), mine.gauss(0, 1), ag.rand(2, generator=generator)
    snapshot = guards.snapshot(step)
    assert snapshot.changes() == []
    step()
    assert snapshot.check() is None
    assert snapshot.changes() == ["random numbers were drawn from mine (Random)", "random numbers were drawn from rng (Generator)"]
    assert snapshot.generators() == [("generator", generator)]


def test_iterators_are_refused():
    batches, lines = iter([1, 2]), (x for x in range(3))

    def step():
        return next(batches), next(lines)
    assert guards.snapshot(step).refusals() == [
        "the variable 'batches' of the enclosing function test_iterators_are_refused is a list_iterator, which a replay can't advance",
        "the variable 'lines' of the enclosing function test_iterators_are_refused is a generator, which a replay can't advance"]


def test_large_arrays_are_listed():
    small, large = np.zeros(3), np.zeros(10_000)

    def step():
        return small, large
    assert guards.snapshot(step).arrays() == [("large", large)]


def test_loop_counter():
    def train():
        snapshots = []
        for epoch in range(3):
            def step():
                return epoch
            snapshots.append(guards.snapshot(step))
        return snapshots
    said = [s.check() for s in train()]
    assert said == ["the variable 'epoch' of the enclosing function train changed from 0 to 2",
                    "the variable 'epoch' of the enclosing function train changed from 1 to 2", None]


def test_arguments():
    options, model = Options(size=3), nn.Linear(2, 2)

    def step(x, options, pair, scale=2):
        return pair[0](x) * options.size
    snapshot = guards.snapshot(step, (ag.zeros(1, 2), options), {"pair": (model, ag.zeros(1))})
    assert [name for name, _ in snapshot.tensors()] == ["pair[0].weight", "pair[0].bias"]
    assert snapshot.check() is None
    options.size = 4
    assert snapshot.check() == "attribute 'size' of options changed from 3 to 4"


def test_code_met_while_running():
    class Strategy:
        def __init__(self):
            self.apply = None

    strategy = Strategy()
    namespace = {"__name__": "elsewhere", "FACTOR": 2.0}
    exec("def apply(x):\n    return x * FACTOR\n", namespace)
    table = types.MappingProxyType({"apply": namespace["apply"]})        # which isn't looked into

    def step(x):
        return table["apply"](x)
    snapshot = guards.snapshot(step)
    with watch_calls() as calls:
        step(1.0)
    namespace["FACTOR"] = 3.0
    assert snapshot.check() is None
    calls.extend(snapshot)
    assert snapshot.check() is None
    namespace["FACTOR"] = 4.0
    assert snapshot.check() == "the global 'FACTOR' of module elsewhere changed from 3.0 to 4.0"
    del strategy


# ---- the same places of another function

def factory(seed, scale=1.0, hidden=8, momentum=0.0, shared=False, extra=()):
    ag.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid())
    if shared:
        model[2].bias = nn.Parameter(ag.zeros(1))
        other = model[2].bias
    else:
        other = nn.Parameter(ag.zeros(1))
    opt = ag.optim.SGD([*model.parameters()], lr=0.1 * (seed + 1), momentum=momentum)
    x = ag.zeros(4, 2)
    generator = ag.Generator(seed)
    options = Options(extra=list(extra))

    def step():
        opt.zero_grad()
        loss = (model(x) * scale + other + ag.rand(1, generator=generator)).sum()
        loss.backward()
        opt.step()
        return loss, options.extra
    step.parts = model, opt, x, generator, other
    return step


def test_rebind():
    first, second = factory(0), factory(1)
    parts = second.parts
    del first.parts, second.parts
    snapshot = guards.snapshot(first)
    rebound = snapshot.rebind(second)
    model, opt, x, generator, other = parts
    assert [id(t) for t in rebound.tensors()] == [id(t) for t in (other, x, *model.parameters())]
    assert [name for name, _ in snapshot.tensors()] == [
        "other", "x", "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]
    assert rebound.optimizers() == [opt]
    assert rebound.generators() == [generator]
    assert [id(t) for t in snapshot.rebind(first).tensors()] == [id(t) for _, t in snapshot.tensors()]
    second()
    first()
    assert isinstance(snapshot.rebind(second), guards.Rebound)


VARIABLE = "the variable '{}' of the enclosing function factory"


@pytest.mark.parametrize(("options", "expected"), [
    ({"scale": 2.0}, VARIABLE.format("scale") + " is 2.0 instead of 1.0"),
    ({"hidden": 9}, "attribute 'out_features' of model.0 (Linear) is 9 instead of 8"),
    ({"momentum": 0.9}, "option 'momentum' of opt.param_groups[0] is 0.9 instead of 0.0"),
    ({"shared": True}, "model.2.bias is the same object as other"),
    ({"extra": (1,)}, "the list options.extra has 1 item instead of 0"),
])
def test_rebind_differs(options, expected):
    first, second = factory(0), factory(1, **options)
    del first.parts, second.parts
    assert guards.snapshot(first).rebind(second) == expected


def test_rebind_keeps_shared_objects_shared():
    first, second = factory(0, shared=True), factory(1)
    del first.parts, second.parts
    assert guards.snapshot(first).rebind(second) == "model.2.bias is another object than other"


def test_rebind_other_code():
    assert guards.snapshot(factory(0)).rebind(lambda: 1) == "the code of step is another"
    assert guards.snapshot(factory(0)).rebind(print) == "step is a builtin_function_or_method instead of a function"


def test_rebind_methods_and_arguments():
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(2, 1)

        def step(self, x, other):
            return self.model(x) + other(x)
    one, two, a, b = Trainer(), Trainer(), nn.Linear(2, 1), nn.Linear(2, 1)
    snapshot = guards.snapshot(one.step, (ag.zeros(1, 2), a))
    assert [n for n, _ in snapshot.tensors()] == ["self.model.weight", "self.model.bias", "other.weight", "other.bias"]
    rebound = snapshot.rebind(two.step, (ag.zeros(1, 2), b))
    assert [id(t) for t in rebound.tensors()] == [id(t) for t in (*two.model.parameters(), *b.parameters())]


# ---- life and limits

def test_nothing_is_kept_alive():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    opt = ag.optim.SGD(model.parameters(), lr=0.1)
    dead = weakref.ref(model), weakref.ref(model[0].weight), weakref.ref(opt)

    def step(x):
        return model(x), opt
    snapshot = guards.snapshot(step)
    model = opt = None
    gc.collect()
    assert [d() is None for d in dead] == [True, False, True]      # lists can't be held weakly, and there is one of parameters
    assert snapshot.check() == "the variable 'model' of the enclosing function test_nothing_is_kept_alive changed from a Sequential to None"
    del snapshot
    assert dead[1]() is None


def test_snapshots_leave_no_references():
    def once():
        step = factory(0)
        snapshot = guards.snapshot(step)
        step.snapshot = snapshot                      # a cycle
        step()
        snapshot.check()
        snapshot.rebind(factory(1))
        return weakref.ref(step.parts[0]), weakref.ref(snapshot)
    model, snapshot = once()
    gc.collect()
    assert model() is None and snapshot() is None


def test_addresses_are_not_mistaken():
    def step():
        return held
    held = ag.zeros(2)
    snapshot = guards.snapshot(step)
    for _ in range(50):
        address = id(held)
        held = None
        held = ag.zeros(2)                            # the free list gives the same memory again
        if id(held) == address:
            break
    assert snapshot.check() is not None


@pytest.mark.parametrize("n", [9_000, 10_001])
def test_limit_of_objects(n):
    data = {"rows": [[i] for i in range(n)]}

    def step():
        return data
    if n < 10_000:
        snapshot = guards.snapshot(step)
        assert snapshot.check() is None
        data["rows"][-1][0] = -1
        assert snapshot.check() == f"item 0 of data['rows'][{n - 1}] changed from {n - 1} to -1"
    else:
        with pytest.raises(CaptureError, match=r"more than 10,000 objects, the last in data\['rows'\]; pass the data"):
            guards.snapshot(step)


def test_limit_of_values():
    data = list(range(300_000))

    def step():
        return data
    with pytest.raises(CaptureError, match="more than 200,000 values, the last in data;"):
        guards.snapshot(step)


def test_threads_may_check_at_once():
    step = factory(0)
    snapshot = guards.snapshot(step)
    said = []
    threads = [threading.Thread(target=lambda: said.append([snapshot.check() for _ in range(200)])) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert said == [[None] * 200] * 4


def test_a_modules_attributes_stay_where_they_are():
    """Asking for __dict__ would slow down every access from then on; here its values still lie in the instance."""
    step = factory(0)
    model = step.parts[0]
    size = sys.getsizeof(model)
    guards.snapshot(step).check()
    assert sys.getsizeof(model) == size


# ---- calls

def _line(text):
    with open(__file__) as f:
        return next(i for i, line in enumerate(f, 1) if line.endswith(text + "\n"))


def say(_):
    print("a", end="")                                 # impure: print


def clock(_):
    return time.perf_counter()                         # impure: clock


def draw(_):
    return random.uniform(0, 1)                        # impure: random


def draw_method(_):
    return random.random()                             # impure: method


def draw_numpy(_):
    x = 1 + 1
    return np.random.rand() * x                        # impure: numpy


def today(_):
    return datetime.datetime.now()                     # impure: now


def entropy(_):
    return os.urandom(1)                               # impure: urandom


def read(_):
    with open(os.devnull) as f:                        # impure: open
        return f


def write(_):
    return sys.stdout.write("")                        # impure: write


def compute(_):
    return [ag.rand(2).sum() for _ in range(3)], sorted([2, 1]), sum([1]), "a".join("b"), np.zeros(2).sum()


@pytest.mark.parametrize(("function", "name", "where"), [
    (say, "print", "impure: print"), (clock, "time.perf_counter", "impure: clock"), (draw, "random.random", "impure: random"),
    (draw_method, "random.random", "impure: method"), (draw_numpy, "numpy.random", "impure: numpy"),
    (today, "datetime.now", "impure: now"), (entropy, "os.urandom", "impure: urandom"), (read, "open", "impure: open"),
    (compute, None, None)])
def test_impure_calls(function, name, where):
    ag.rand(1)                                         # imports numpy.random
    def step():
        return function(None)
    with watch_calls() as calls:
        step()
    if name is None:
        assert calls.impure == []
    else:
        assert calls.impure[0] == (name, __file__, _line("# " + where))
    assert (function.__code__, globals()) in calls.executed


def test_writing_is_noticed():
    with watch_calls() as calls:
        write(None)
    assert [c[2] for c in calls.impure] == [_line("# impure: write")]


def test_an_import_is_no_impure_call():
    code = ("import autograd_cy as ag\nfrom autograd_cy.graph.calls import watch_calls\n"
            "a = ag.ones(300, 300)\n"
            "def step():\n    import colorsys\n    return ag.rand(2), a @ a, colorsys\n"
            "with watch_calls() as calls:\n    step()\nassert calls.impure == [], calls.impure\n")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=os.path.dirname(ag.__file__) + "/..")


def test_profile_function_is_restored():
    seen = []

    def profile(frame, event, argument):
        seen.append(event)
    sys.setprofile(profile)
    try:
        with pytest.raises(ZeroDivisionError), watch_calls():
            1 / 0
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def test_user_line():
    filename, line, function = user_line()            # where we are
    assert (filename, function) == (__file__, "test_user_line")
    assert line == _line("# where we" + " are")


# ---- random graphs of objects against a plain walk

class Node:
    pass


class SlotNode:
    __slots__ = ("a", "b", "__weakref__")


def random_value(r, depth, pool):
    kind = r.randrange(14)
    if depth <= 0 or kind < 4:
        return r.choice([1, 2, 1.5, True, None, "a", b"x", (1, 2), float("nan"), 0.0, -0.0, 10**20])
    if kind == 4 and pool:
        return r.choice(pool)
    names = r.sample("abcd", r.randrange(4))
    if kind == 5:
        x = tuple(random_value(r, depth - 1, pool) for _ in range(r.randrange(3)))
    elif kind == 6:
        x = {n: random_value(r, depth - 1, pool) for n in names}
    elif kind == 7:
        x = Node()
        for n in names:
            setattr(x, n, random_value(r, depth - 1, pool))
    elif kind == 8:
        x = SlotNode()
        x.a = random_value(r, depth - 1, pool)
    elif kind == 9:
        x = ag.zeros(r.randrange(3))
    elif kind == 10:
        x = nn.Sequential(nn.Linear(1, 1), nn.LeakyReLU())
    elif kind == 11:
        x = np.zeros(r.randrange(4))
    elif kind == 12:
        x = {1, 2, r.randrange(5)}
    else:
        x = [random_value(r, depth - 1, pool) for _ in range(r.randrange(4))]
    pool.append(x)
    return x


def random_change(r, pool):
    x, v = r.choice(pool), random_value(r, 2, pool)
    kind = r.randrange(4)
    if type(x) is list:
        if kind == 0:
            x.append(v)
        elif x:
            x[r.randrange(len(x))] = v
    elif type(x) is dict:
        if kind == 0 and x:
            x.popitem()
        else:
            x[r.choice("abcd")] = v
    elif type(x) is Node:
        if kind == 0 and x.__dict__:
            delattr(x, next(iter(x.__dict__)))
        else:
            setattr(x, r.choice("abcd"), v)
    elif type(x) is SlotNode:
        setattr(x, r.choice("ab"), v)
    elif type(x) is nn.Sequential:
        if kind == 0:
            x.train(not x.training)
        elif kind == 1:
            x.append(nn.Tanh())
        elif kind == 2:
            x[0].weight = nn.Parameter(ag.zeros(1, 1))
        else:
            vars(x)
    elif type(x) is np.ndarray and x.size:
        x[0] = r.randrange(3)
    elif type(x) is set:
        x.add(r.randrange(9))
    elif type(x) is ag.Tensor:
        x.requires_grad_(not x.requires_grad)


def fingerprint(x, seen):
    """What a snapshot should see of a value; `seen` keeps everything alive, so that ids are unique."""
    if type(x) is float:
        return "float", x.hex()
    if x is None or isinstance(x, (int, str, bytes)):
        return type(x), x
    if type(x) is tuple:
        return "tuple", *(fingerprint(v, seen) for v in x)
    if id(x) in seen:
        return "again", id(x)
    seen[id(x)] = x
    head = type(x), id(x)
    if type(x) is list:
        return *head, *(fingerprint(v, seen) for v in x)
    if type(x) is dict:
        return *head, *((k, fingerprint(v, seen)) for k, v in x.items())
    if type(x) in (Node, SlotNode):
        return *head, *((n, fingerprint(getattr(x, n), seen)) for n in "abcd" if hasattr(x, n))
    if type(x) is set:
        return *head, *sorted(x)
    if type(x) is np.ndarray:
        return *head, x.tobytes()
    if isinstance(x, ag.Tensor):
        return *head, x.requires_grad, x.shape
    names = ("training", "_items", "weight", "bias", "negative_slope")
    return *head, *((n, fingerprint(getattr(x, n), seen)) for n in names if hasattr(x, n))


@pytest.mark.parametrize("block", range(4))
def test_random_objects(block):
    changed = 0
    for seed in range(100 * block, 100 * block + 100):
        r = random.Random(seed)
        pool = []
        root = [random_value(r, 5, pool) for _ in range(5)]

        def step():
            return root, root.a, root.b, root.c, root.d
        for _ in range(5):
            snapshot, other = guards.snapshot(step), guards.snapshot(step)
            rebound = snapshot.rebind(step)
            assert [id(t) for t in rebound.tensors()] == [id(t) for _, t in snapshot.tensors()]
            kept = {}
            before = fingerprint(root, kept)
            if pool:
                random_change(r, pool)
            same = fingerprint(root, {}) == before
            watch.set_shortcuts(False)
            try:
                slowly = other.check()
            finally:
                watch.set_shortcuts(True)
            assert snapshot.check() == slowly
            assert (slowly is None) == same == (not snapshot.changes()), (seed, slowly)
            changed += not same
            if r.random() < 0.3:
                pool = [x for x in pool if r.random() < 0.6]
                gc.collect(0)
    assert changed > 100
