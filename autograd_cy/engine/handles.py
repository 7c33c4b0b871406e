"""Hooks and the handles that remove them: plain Python.

Relies on nothing. engine/hooks keeps hooks in these, and so may Modules.
"""

import weakref
from collections.abc import Callable
from typing import Any, Self


class Hooks(dict[int, Callable[..., Any]]):
    """Hooks by number, in the order of registration. Handles refer to it weakly: they keep neither hooks nor tensors alive."""

    __slots__ = ("__weakref__",)


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; so does the end of a `with` block."""

    next_id = 0

    def __init__(self, hooks: Hooks) -> None:
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self) -> None:
        """Take the hook away. A second time, or after the tensor is gone, nothing happens."""
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def add_hook(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook into Hooks; its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def describe(function: Any) -> str:
    """A function in words: its name, and where it was written."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"
