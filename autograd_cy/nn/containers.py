"""Containers of modules and parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict.

Relies on Module and Parameter.  Models rely on it; plain lists and dicts of modules are found by Module as well.
"""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any

from ..engine.tensor import Tensor
from .module import Module, _is_member
from .parameter import Parameter

__all__ = ["DataParallel", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Container(Module):
    """Holds its items in one dict; their names have no prefix of their own, as in PyTorch (`0.weight`)."""

    _items: Mapping = MappingProxyType({})

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_items", {})

    def _members(self):
        for name, value in list(self._items.items()):
            if _is_member(value):
                yield name, value
        yield from super()._members()

    def __getattr__(self, name):           # reached only when ordinary lookup has failed: `seq.fc1`, getattr(seq, "0")
        if name in self._items:
            return self._items[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name in self._items:
            self._items[name] = self._check(value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        if name in self._items:
            del self._items[name]
        else:
            super().__delattr__(name)

    def _check(self, value):
        if not isinstance(value, Module):
            raise TypeError(f"{type(value).__name__} is not a Module subclass")
        return value

    def add_module(self, name: str, module: Module | None) -> None:
        self._check_new_name(name, "module")
        if name not in self._items and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        self._items[name] = self._check(module)

    register_module = add_module

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return True


class _Numbered(_Container):
    """A container whose items are numbered 0, 1, 2 ..."""

    def _key(self, index):
        n = len(self._items)
        index = operator.index(index)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of range")
        return list(self._items)[index]

    def _renumber(self, values):
        object.__setattr__(self, "_items", {str(i): v for i, v in enumerate(values)})

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._items.values())[index])
        return self._items[self._key(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._items[self._key(index)] = self._check(value)

    def __delitem__(self, index: int | slice) -> None:
        values = list(self._items.values())
        del values[index]
        self._renumber(values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __contains__(self, value: object) -> bool:
        return any(value is item for item in self._items.values())

    def append(self, value: Any) -> "_Numbered":
        """Add an item at the end; returns self."""
        number = len(self._items)
        while str(number) in self._items:
            number += 1
        self._items[str(number)] = self._check(value)
        return self

    def extend(self, values: Iterable[Any]) -> "_Numbered":
        """Add several items at the end; returns self."""
        for value in list(values):
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> "_Numbered":
        """Insert an item before `index`."""
        values = list(self._items.values())
        values.insert(index, self._check(value))
        self._renumber(values)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove an item and return it."""
        value = self[index]
        del self[index]
        return value


class Sequential(_Numbered):
    """Modules applied one after another: `Sequential(a, b)(x)` is `b(a(x))`.

    Takes modules, or one OrderedDict of names and modules.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def forward(self, input):
        for module in self._items.values():
            input = module(input)
        return input

    def __add__(self, other: "Sequential") -> "Sequential":
        return Sequential(*self, *other)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._items.items())[index]))
        return self._items[self._key(index)]

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._items)[index] if isinstance(index, slice) else [self._key(index)]
        values = [(k, v) for k, v in self._items.items() if k not in keys]
        if all(k.isdigit() for k in self._items):
            self._renumber(v for _, v in values)
        else:
            object.__setattr__(self, "_items", dict(values))


class ModuleList(_Numbered):
    """A list of modules that prints and indexes as one."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> "ModuleList":
        return self.extend(modules)

    def __add__(self, modules: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *modules])

    def _shown(self):
        """Neighbours that print alike as one: "(0-3): 4 x Linear(...)"."""
        shown = []
        for text, same in groupby(map(repr, self)):
            first, n = sum(k for k, _ in shown), len(list(same))
            shown.append((n, (str(first), text) if n == 1 else (f"{first}-{first + n - 1}", f"{n} x {text}")))
        return [line for _, line in shown]


class _Named(_Container):
    """A container whose items have names of the user's."""

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[Any]:
        """The items."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, item) pairs."""
        return self._items.items()

    def pop(self, key: str) -> Any:
        """Remove an item and return it."""
        return self._items.pop(key)

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace items."""
        for key, item in items.items() if isinstance(items, Mapping) else items:
            self[key] = item


class ModuleDict(_Named):
    """A dict of modules, in order of insertion."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)


class ParameterList(_Numbered):
    """A list of parameters; a tensor put into it becomes a Parameter."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values)

    def _check(self, value):
        return value if isinstance(value, Parameter) else Parameter(value)

    def extra_repr(self) -> str:
        return "\n".join(f"({name}): Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}]"
                         for name, p in self._items.items())


class ParameterDict(_Named):
    """A dict of parameters, in order of insertion; a tensor put into it becomes a Parameter."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.update(parameters)

    def _check(self, value):
        return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._items:
            self._check_new_name(key, "parameter")
        self._items[key] = self._check(value)

    def get(self, key: str, default: Any = None) -> Any:
        """The item, or the default."""
        return self._items.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The item; where there is none, the default becomes it."""
        if key not in self._items:
            self[key] = default
        return self._items[key]

    def extra_repr(self) -> str:
        return "\n".join(f"({name}): Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}]"
                         for name, p in self._items.items())


class DataParallel(Module):
    """Calls `module`, as PyTorch's does without GPUs; the state has its parameters as "module.name"."""

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
