"""Optimizer: parameter groups, state, and their saving and loading, with PyTorch's semantics and messages.

Relies on the engine (Tensor) and on engine/updates, which walks groups and state in one call per step.
The optimisers, the schedules and the users' own optimisers rely on it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from autograd_cy.array.dtypes import float32, float64
from autograd_cy.engine import creation
from autograd_cy.engine import updates
from autograd_cy.engine.tensor import Tensor

REQUIRED = object()        # the default of an option that every group must give


class Optimizer:
    """Base class of optimisers.

    `param_groups` is a list of dicts ("params" and the options) and `state` a dict from parameter to its state.  Both are
    read anew at every step, so that schedules and users may change them at any time.

    params: an iterable of leaf tensors, or of dicts {"params": ..., options}.  ValueError when it is empty, when a tensor is
    not a leaf, or when one is given twice; TypeError when it holds anything else.
    """

    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + type(params).__name__)
        self.state: dict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of its own; options it does not give take the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        param_group = dict(param_group)
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
                            "in sets will change between runs. Please use a list instead.")
        params = list(params)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        seen = set()
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            if id(p) in seen:
                raise ValueError("optimizer contains a parameter group with duplicate parameters")
            seen.add(id(p))
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is REQUIRED and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check(param_group)
        self.param_groups.append(param_group)

    def _check(self, group: dict[str, Any]) -> None:
        """Raise ValueError for an option out of its range; optimisers override it."""

    zero_grad = updates.zero_grad

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; `closure`, if given, is called first and its value returned."""
        raise NotImplementedError

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number: {...}}, "param_groups": [{..., "params": [numbers]}]}; the tensors are not copied."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {}
        for key, value in self.state.items():
            if isinstance(key, Tensor):
                entry = dict(value)
                if isinstance(entry.get("step"), (int, Tensor)):
                    entry["step"] = creation.tensor(float(entry["step"]))          # PyTorch's format
                if entry:
                    state[numbers.get(id(key), key)] = entry
            else:
                state[key] = value
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, copied; groups and their sizes must match (ValueError)."""
        saved = _deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        params = {number: p for g, s in zip(groups, saved, strict=True)
                  for number, p in zip(s["params"], g["params"], strict=True)}
        state: dict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            p = params.get(key)
            state[key if p is None else p] = _copy_state(value, p)
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            for name, default in self.defaults.items():                      # saved before the option existed
                if default is not REQUIRED:
                    new.setdefault(name, default)
            self._check(new)
        self.state = state
        self.param_groups = saved

    def __getstate__(self):
        return self.__dict__.copy()

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def _copy_state(value, p, key=None):
    """A deep copy; floating tensors take the dtype of their parameter, except the number of steps."""
    if isinstance(value, Tensor):
        if key == "step" and p is not None and value.numel() == 1:
            return int(value)               # as every step keeps it: a captured one could not read a tensor
        value = value.detach().clone()
        if p is not None and value.dtype in (float32, float64):
            value = value.to(p.dtype)
        return value
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {k: _copy_state(v, p, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copy_state(v, p, key) for v in value)
    return _deepcopy(value)


def _deepcopy(value):
    from copy import deepcopy                 # 0.25 ms of the package's import otherwise
    return deepcopy(value)


def check_range(group: Mapping[str, Any], **names: str) -> None:
    """ValueError unless each named option is at least 0 (NaN is refused too)."""
    for name, words in names.items():
        if not float(group[name]) >= 0.0:
            raise ValueError(f"Invalid {words}: {group[name]}")


def check_execution(differentiable: bool) -> None:
    """`foreach`, `fused` and `capturable` choose among PyTorch's implementations; here there is one, which is fused."""
    if differentiable:
        raise ValueError("differentiable=True is not supported: the update runs outside the graph; write the update with "
                         "tensor operations to differentiate through it")
