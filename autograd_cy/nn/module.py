"""Module: the base of layers and models, which finds its parameters, buffers and submodules by itself.

Relies on the engine (Tensor, no_grad), Parameter and the calls' metaclass.  All layers, containers and losses rely on it.
Names, order of arguments and messages are PyTorch's; parameters come in definition order, depth first.
"""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from autograd_cy.array.dtypes import float32, float64
from autograd_cy.engine import creation
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.tensor import Tensor

from .calling import ModuleType, bind_generic, generic_call
from .hooks import Hooked
from .parameter import Buffer, Parameter

__all__ = ["Module"]

# Submodules and parameters are plain instance attributes: `self.fc1` costs one dictionary lookup, where a registry
# behind `__getattr__` costs a failed lookup and a Python call more.  They are found by looking through the attributes in the
# order of their assignment.


def _is_member(value):
    return isinstance(value, (Parameter, Module))


def _inside(prefix, value, seen):
    """Parameters and modules inside a list, tuple or dict, with names such as `layers.0`."""
    if id(value) in seen:
        return
    seen = seen | {id(value)}
    items = list(value.items()) if isinstance(value, dict) else enumerate(list(value))
    for key, item in items:
        if _is_member(item):
            yield f"{prefix}.{key}", item
        elif isinstance(item, (list, tuple, dict)):
            yield from _inside(f"{prefix}.{key}", item, seen)


def _walk(module, prefix, seen, shared):
    """(name, tensor, holder, local name) of parameters and buffers, depth first in definition order.

    With `shared`, what is held under several names comes under each of them, and only cycles are cut.
    """
    if id(module) in seen:
        return
    seen.add(id(module))
    for name, value in module._members():
        if isinstance(value, Module):
            yield from _walk(value, f"{prefix}{name}.", seen, shared)
        else:
            yield prefix + name, value, module, name
    if shared:
        seen.discard(id(module))


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found missing and unexpected."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


_BOOKKEEPING = ("_order", "_buffer_names", "_none_names", "_hooks", "_items")     # _items: of containers


class Module(Hooked, metaclass=ModuleType):
    """Base class of all layers and models: define `forward`, assign parameters and submodules as attributes.

    Parameters and modules inside lists, tuples and dicts held as attributes are found too.  `super().__init__()` need
    not be called, since nothing is registered.

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc1, self.fc2 = nn.Linear(2, 16), nn.Linear(16, 1)

            def forward(self, x):
                return self.fc2(ag.relu(self.fc1(x)))
    """

    training: bool = True
    _repr_names: str = ""
    _buffer_names: Mapping[str, bool] = MappingProxyType({})     # name -> persistent
    _order: tuple = ()                                           # names of the attributes, in the order of their first assignment
    _none_names: frozenset = frozenset()                         # parameters registered as None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            what = "positional argument" if args else f"keyword argument {next(iter(kwargs))!r}"
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected {what}")

    __call__ = generic_call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- attributes

    # `self.__dict__` is never asked for: from then on CPython 3.11 keeps the attributes in a real dict and every access costs
    # 16 ns more.  The names are kept in the order of their first assignment instead.

    def _put(self, name, value):
        """Set an attribute that is part of the module's contents."""
        if name not in self._order:
            object.__setattr__(self, "_order", (*self._order, name))
        object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        old = getattr(self, name) if name in self._order else None
        if old is None:
            if name == "forward":
                bind_generic(type(self))
            elif name in self._none_names and value is not None and not isinstance(value, Parameter):
                raise TypeError(_not_a_parameter(name, value))
            elif name in self._buffer_names and value is not None and not isinstance(value, Tensor):
                raise TypeError(_not_a_buffer(name, value))
            elif isinstance(value, Buffer):
                object.__setattr__(self, "_buffer_names", {**self._buffer_names, name: value.persistent})
        elif isinstance(old, Parameter):
            if value is None:
                object.__setattr__(self, "_none_names", self._none_names | {name})
            elif not isinstance(value, Parameter):
                raise TypeError(_not_a_parameter(name, value))
        elif name in self._buffer_names:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(_not_a_buffer(name, value))
        elif isinstance(old, Module) and value is not None and not isinstance(value, Module):
            raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' (nn.Module or None expected)")
        self._put(name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)
        object.__setattr__(self, "_order", tuple(n for n in self._order if n != name))
        if name in self._buffer_names:
            object.__setattr__(self, "_buffer_names", {k: v for k, v in self._buffer_names.items() if k != name})
        if name in self._none_names:
            object.__setattr__(self, "_none_names", self._none_names - {name})

    def __reduce_ex__(self, protocol):
        return super().__reduce_ex__(max(protocol, 2))       # protocols 0 and 1 can't make an instance of a base in C

    def __getstate__(self):
        own = {name: getattr(self, name) for name in _BOOKKEEPING
               if hasattr(self, name) and getattr(self, name) is not getattr(type(self), name, None)}
        return own | {name: getattr(self, name) for name in self._order}

    def __setstate__(self, state):
        for name, value in state.items():
            if name in _BOOKKEEPING:
                object.__setattr__(self, name, value)
            else:
                self._put(name, value)
        if "forward" in state or "_hooks" in state:
            bind_generic(type(self))

    def _check_new_name(self, name, kind):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{kind} name can't contain \".\", got: {name}")
        if name == "":
            raise KeyError(f"{kind} name can't be empty string \"\"")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` an attribute; None reserves the name for a Parameter."""
        self._check_new_name(name, "parameter")
        replaceable = name in self._none_names or name in self._order and isinstance(getattr(self, name), Parameter)
        if hasattr(self, name) and not replaceable:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                            "(nn.Parameter or None required)")
        if param is None:
            object.__setattr__(self, "_none_names", self._none_names | {name})
        self._put(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` part of the module's state without being a parameter; `persistent` puts it into state_dict."""
        self._check_new_name(name, "buffer")
        if hasattr(self, name) and name not in self._buffer_names:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)")
        object.__setattr__(self, "_buffer_names", {**self._buffer_names, name: persistent})
        self._put(name, tensor)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Make `module` an attribute called `name`."""
        self._check_new_name(name, "module")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        if hasattr(self, name) and not (name in self._order and isinstance(getattr(self, name), Module)):
            raise KeyError(f"attribute '{name}' already exists")
        setattr(self, name, module)

    register_module = add_module

    # ---- enumeration

    def _members(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of the parameters, buffers and modules that this module itself holds."""
        buffers = self._buffer_names
        for name in self._order:
            value = getattr(self, name)
            if _is_member(value):
                yield name, value
            elif name in buffers:
                if value is not None:
                    yield name, value
            elif isinstance(value, (list, tuple, dict)):
                yield from _inside(name, value, frozenset())

    @property
    def _parameters(self):
        """Its own parameters by name, to look at."""
        return MappingProxyType({name: getattr(self, name) for name in self._order
                                 if isinstance(getattr(self, name), Parameter) or name in self._none_names})

    @property
    def _buffers(self):
        """Its own buffers by name, to look at."""
        return MappingProxyType({name: getattr(self, name) for name in self._buffer_names})

    @property
    def _modules(self):
        """The modules that it holds itself by name, to look at."""
        return MappingProxyType({name: value for name, value in self._members() if isinstance(value, Module)})

    def _tensors(self, kind, prefix, recurse, remove_duplicate):
        """Named parameters (kind True) or buffers (kind False)."""
        prefix += "." if prefix else ""
        entries = (_walk(self, prefix, set(), not remove_duplicate) if recurse else
                   [(prefix + n, v, self, n) for n, v in self._members() if not isinstance(v, Module)])
        seen = set()
        for name, value, holder, local in entries:
            if isinstance(value, Parameter) is kind or (local in holder._buffer_names) is not kind:
                if remove_duplicate:
                    if id(value) in seen:
                        continue
                    seen.add(id(value))
                yield name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) in definition order, depth first; a shared parameter comes once."""
        return self._tensors(True, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters in definition order, depth first; a shared parameter comes once."""
        for _, value in self._tensors(True, "", recurse, True):
            yield value

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) in definition order, depth first."""
        return self._tensors(False, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers in definition order, depth first."""
        for _, value in self._tensors(False, "", recurse, True):
            yield value

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """(name, module) of the modules this one holds itself, each once."""
        seen = set()
        for name, value in self._members():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator["Module"]:
        """The modules this one holds itself, each once."""
        for _, value in self.named_children():
            yield value

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, "Module"]]:
        """(name, module) of this module (named '') and of all below it, depth first, each once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, value in self._members():
            if isinstance(value, Module):
                yield from value.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)
        if not remove_duplicate:
            memo.discard(id(self))

    def modules(self) -> Iterator["Module"]:
        """This module and all below it, depth first, each once."""
        for _, value in self.named_modules():
            yield value

    def _get(self, target, found, what):
        for name, value in found:
            if name == target:
                return value
        raise AttributeError(f"{type(self).__name__} has no {what} `{target}`")

    def get_submodule(self, target: str) -> "Module":
        """The module named `target`, such as `"encoder.0"`; AttributeError if there is none."""
        return self._get(target, self.named_modules(remove_duplicate=False), "submodule")

    def get_parameter(self, target: str) -> Parameter:
        """The parameter named `target`; AttributeError if there is none."""
        return self._get(target, self.named_parameters(remove_duplicate=False), "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer named `target`; AttributeError if there is none."""
        return self._get(target, self.named_buffers(remove_duplicate=False), "buffer")

    # ---- whole-model operations

    def apply(self, fn: Callable[["Module"], Any]) -> "Module":
        """Call `fn` on every submodule and then on this module; returns self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> "Module":
        """Set `training` here and below; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        """Set requires_grad of every parameter; returns self."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every parameter's gradient, or fill it with zeros if `set_to_none` is False."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad = p.grad.detach()
                p.grad.zero_()

    def _convert(self, dtype):
        floats = (float32, float64)
        if dtype not in floats:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}")
        for t in [*self.parameters(), *self.buffers()]:
            if t.dtype in floats and t.dtype != dtype:
                grad, t.grad = t.grad, None
                t.data = t.detach().to(dtype)
                if grad is not None:
                    t.grad = grad.detach().to(dtype)
        return self

    def to(self, *args: Any, **kwargs: Any) -> "Module":
        """`to(dtype)`, `to(tensor)` or `to("cpu")`: convert floating parameters and buffers in place; returns self."""
        dtype = kwargs.pop("dtype", None)
        device = kwargs.pop("device", None)
        kwargs.pop("non_blocking", None)
        if kwargs:
            raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
        for arg in args:
            if isinstance(arg, Tensor):
                dtype = arg.dtype
            elif isinstance(arg, bool) or arg is None:
                pass                                                # non_blocking
            elif isinstance(arg, str) or hasattr(arg, "index"):
                device = arg
            else:
                dtype = arg
        if device is not None and str(device).split(":")[0] != "cpu":
            raise RuntimeError(f"device {device!r} does not exist: autograd_cy computes on the CPU")
        return self if dtype is None else self._convert(dtype)

    def float(self) -> "Module":
        """Convert floating parameters and buffers to float32 in place."""
        return self._convert(float32)

    def double(self) -> "Module":
        """Convert floating parameters and buffers to float64 in place."""
        return self._convert(float64)

    def cpu(self) -> "Module":
        """Returns self: everything is on the CPU."""
        return self

    # ---- state

    def _state(self, prefix=""):
        for name, value, holder, local in _walk(self, prefix, set(), True):
            if holder._buffer_names.get(local, True):
                yield name, value

    def state_dict(self, destination: dict | None = None, prefix: str = "",
                   keep_vars: bool = False) -> "OrderedDict[str, Tensor]":
        """Name -> tensor of all parameters and persistent buffers; detached, sharing the module's memory."""
        state = OrderedDict() if destination is None else destination
        for name, value in self._state(prefix):
            state[name] = value if keep_vars else value.detach()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copy values into the parameters and buffers of the same names; nothing is changed if anything is wrong.

        Raises RuntimeError that lists every missing key, unexpected key (unless `strict` is False) and wrong shape.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own = dict(self._state())
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        errors, copies = [], []
        if strict and missing:
            errors.append("Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if strict and unexpected:
            errors.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
        for name, target in own.items():
            if name not in state_dict:
                continue
            value = state_dict[name]
            try:
                # A copy, since `value` may share memory with this module under another name.
                value = creation.tensor(value) if not isinstance(value, Tensor) else value.detach().clone()
            except (TypeError, ValueError) as error:
                errors.append(f'While copying the parameter named "{name}", expected a tensor or tensor-like object, '
                              f"but received {type(value)}: {error}")
                continue
            if value.shape != target.shape:
                errors.append(f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, "
                              f"the shape in current model is {target.shape}.")
            copies.append((target, value))
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        with no_grad():
            for target, value in copies:
                target.copy_(value)
        return IncompatibleKeys(missing, unexpected)

    # ---- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What is printed between the brackets: "name=value" for the attributes in `_repr_names`; layers override it."""
        return ", ".join([f"{name}={getattr(self, name)!r}" for name in self._repr_names.split()])

    def _shown(self):
        return [(name, repr(child)) for name, child in self._members() if isinstance(child, Module)]

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._shown()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _not_a_parameter(name, value):
    return (f"cannot assign '{type(value).__name__}' as parameter '{name}' (nn.Parameter or None expected); "
            f"to change its values write `with ag.no_grad(): module.{name}.copy_(value)`")


def _not_a_buffer(name, value):
    return f"cannot assign '{type(value).__name__}' as buffer '{name}' (Tensor or None expected)"
