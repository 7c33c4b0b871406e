"""How a call `net(x)` reaches `forward`: the metaclass of Module, which binds `__call__` of every class to it.

Relies on callable, the base of Module in C. module.py relies on it, and through Module all layers.
"""

from abc import ABCMeta

from .callable import call_directly

# A call `net(x)` should cost no more than `net.forward(x)`.  `def __call__(self, *args, **kwargs): return
# self.forward(*args, **kwargs)` takes 120-180 ns, `__call__ = forward` 45-65.  So the metaclass sets `__call__` of every
# class to the `forward` that its instances would find, and keeps that true when `forward` is assigned afterwards:
# - on the class (`Net.forward = f`): the class and its subclasses are bound anew;
# - on an instance (`net.forward = f`): its class goes back to the generic `__call__`, which looks forward up; so it does with
#   the first hook of an instance (hooks.py).
# A class that writes its own `__call__` keeps it, and its base classes go back to the generic one, because
# `super().__call__(x)` must reach the forward of the instance, not that of the base class.


def generic_call(self, *args, **kwargs):
    if self._hooks is not None:
        return self._hooks.call(self, args, kwargs)
    return self.forward(*args, **kwargs)


class ModuleType(ABCMeta):
    """The metaclass of Module: binds `__call__` to `forward`.  It derives from ABCMeta so that a model may also be an ABC."""

    def __init__(cls, name, bases, namespace, **kwargs):
        super().__init__(name, bases, namespace, **kwargs)
        _bind(cls)
        call_directly(cls)

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name in ("forward", "__call__"):
            if name == "__call__" and "_call_bound" in vars(cls):
                type.__delattr__(cls, "_call_bound")
            _bind_all(cls)

    def __delattr__(cls, name):
        super().__delattr__(name)
        if name in ("forward", "__call__"):
            _bind_all(cls)

    # ABCMeta's own checks, which serve virtual subclasses, cost several times as much.
    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _bind(cls):
    written = [base for base in cls.__mro__ if "__call__" in vars(base) and "_call_bound" not in vars(base)]
    if not written or "_call_generic" in vars(cls):
        return
    if len(written) > 1:                     # someone wrote a __call__ of their own; the last of the list is Module
        for base in cls.__mro__[1:]:
            if isinstance(base, ModuleType) and "_call_bound" in vars(base):
                bind_generic(base)
        if cls is not written[0]:
            _set_call(cls, vars(written[0])["__call__"])
        return
    for base in cls.__mro__:
        if "forward" in vars(base):
            if base is not written[0]:
                _set_call(cls, vars(base)["forward"])
            return


def _bind_all(cls):
    _bind(cls)
    call_directly(cls)
    for child in type.__subclasses__(cls):
        _bind_all(child)


def _set_call(cls, function):
    type.__setattr__(cls, "__call__", function)
    type.__setattr__(cls, "_call_bound", True)
    call_directly(cls)


def bind_generic(cls):
    """Let `__call__` of a class look `forward` up, since one of its instances has its own."""
    if "_call_bound" in vars(cls) and "_call_generic" not in vars(cls):
        _set_call(cls, generic_call)
        type.__setattr__(cls, "_call_generic", True)
