"""Hooks of modules: functions that run before and after `forward`, and before and after a module's part of a backward pass.

Relies on engine/handles, autograd.Function and the calls' metaclass. Module derives from Hooked, which has the methods of PyTorch.

A module without hooks pays nothing: the first hook lets its class go back to the generic `__call__`, which looks at `_hooks`.
"""

import warnings
from collections.abc import Callable
from typing import Any

from autograd_cy.engine.function import Function
from autograd_cy.engine.handles import Hooks, RemovableHandle, add_hook
from autograd_cy.engine.tensor import Tensor

from .callable import Callable as CallableBase
from .calling import bind_generic


class _Border(Function):
    """Tensors as they are; hook(gradients) returns what their gradients become."""

    @staticmethod
    def forward(ctx, hook, *tensors):
        ctx.hook = hook
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.hook(gradients))


class _BackwardCall:
    """The backward hooks of one call of a module: a border around its arguments and one around its results."""

    def __init__(self, module, before, after):
        self.module, self.before, self.after = module, before, after
        self.grad_output, self.places, self.n_args = None, [], 0

    def enter(self, args):
        self.n_args = len(args)
        places = [k for k, value in enumerate(args) if isinstance(value, Tensor)]
        if any(args[k].requires_grad for k in places):
            self.places = places
            inside = dict(zip(places, _Border.apply(self.at_arguments, *(args[k] for k in places)), strict=True))
            args = tuple(inside.get(k, value) for k, value in enumerate(args))
        return args

    def leave(self, output):
        if isinstance(output, Tensor):
            return _Border.apply(self.at_results, output)[0] if output.requires_grad else output
        if not isinstance(output, (tuple, list)) or not any(isinstance(value, Tensor) and value.requires_grad for value in output):
            return output
        places = [k for k, value in enumerate(output) if isinstance(value, Tensor)]
        outside = dict(zip(places, _Border.apply(self.at_results, *(output[k] for k in places)), strict=True))
        values = [outside.get(k, value) for k, value in enumerate(output)]
        return type(output)(*values) if hasattr(output, "_fields") else type(output)(values)

    def at_results(self, gradients):
        for hook in tuple(self.before.values()):
            gradients = _replaced(gradients, hook(self.module, gradients), "full backward pre hook", self.module)
        self.grad_output = gradients
        if not self.places:                     # no argument requires a gradient: the module's part ends here
            self.finish((None,) * self.n_args)
        return gradients

    def at_arguments(self, gradients):
        found = dict(zip(self.places, gradients, strict=True))
        result = self.finish(tuple(found.get(k) for k in range(self.n_args)))
        return tuple(result[k] for k in self.places)

    def finish(self, grad_input):
        for hook in tuple(self.after.values()):
            grad_input = _replaced(grad_input, hook(self.module, grad_input, self.grad_output), "full backward hook", self.module)
        return grad_input


def _replaced(old, new, what, module):
    """What a hook returned in place of gradients: None leaves them."""
    if new is None:
        return old
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(old):
        raise RuntimeError(f"{what} of {type(module).__name__}: returned {len(new)} gradients in place of {len(old)}")
    return new


class ModuleHooks:
    """The hooks of one module, by kind."""

    def __init__(self):
        self.forward_pre, self.forward, self.backward_pre, self.backward = Hooks(), Hooks(), Hooks(), Hooks()

    def call(self, module, args, kwargs):
        """Run `forward` with everything around it."""
        for hook, with_kwargs, _ in tuple(self.forward_pre.values()):
            result = hook(module, args, kwargs) if with_kwargs else hook(module, args)
            if result is None:
                continue
            if not with_kwargs:
                args = result if isinstance(result, tuple) else (result,)
            elif isinstance(result, tuple) and len(result) == 2:
                args, kwargs = result
            else:
                raise RuntimeError(f"forward pre hook of {type(module).__name__}: with_kwargs=True wants None or a tuple of new "
                                   f"arguments and keywords, got {result!r}")
        backward = _BackwardCall(module, self.backward_pre, self.backward) if self.backward_pre or self.backward else None
        if backward is not None:
            args = backward.enter(args)
        waiting = dict(self.forward)
        try:
            output = module.forward(*args, **kwargs)
            for key, (hook, with_kwargs, _) in tuple(waiting.items()):
                del waiting[key]
                result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
                output = output if result is None else result
        except Exception:
            for hook, with_kwargs, always in waiting.values():
                if always:
                    _call_anyway(hook, module, args, (kwargs, None) if with_kwargs else (None,))
            raise
        return output if backward is None else backward.leave(output)


def _call_anyway(hook, module, args, rest):
    """A hook with always_call=True after an error: an error of its own is a warning."""
    try:
        hook(module, args, *rest)
    except Exception as error:
        warnings.warn(f"a forward hook with always_call=True of {type(module).__name__} raised {error!r}", stacklevel=4)


class Hooked(CallableBase):
    """What Module has of hooks. Each method returns a handle whose `remove()` takes the hook away."""

    _hooks: ModuleHooks | None = None

    def _add_hook(self, kind: str, hook: Any, prepend: bool) -> RemovableHandle:
        if self._hooks is None:
            object.__setattr__(self, "_hooks", ModuleHooks())
            bind_generic(type(self))
        hooks = getattr(self._hooks, kind)
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        handle = add_hook(hooks, hook)
        hooks.update(others)
        return handle

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """hook(module, args) runs before `forward` and may return new arguments; with_kwargs: hook(module, args, kwargs)."""
        return self._add_hook("forward_pre", (hook, with_kwargs, False), prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """hook(module, args, output) runs after `forward` and may return another output; with_kwargs: hook(module, args, kwargs, output).

        always_call: also when `forward` or an earlier hook raised, with None for the output.
        """
        return self._add_hook("forward", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) runs once the gradients of the results are known, and may return others."""
        return self._add_hook("backward_pre", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) runs once the gradients of the (positional) arguments are known, and may return others."""
        return self._add_hook("backward", hook, prepend)
