"""How a rule is called on tensors: with which of their functions, and with what of a node.

Relies on rows.py and functions.py. engine/gradients relies on it.
"""

from types import FunctionType

from . import is_masked
from .functions import __dict__ as ALIKE

# What a parameter of a rule is: one of these, plus a number. engine/gradients has the same numbers.
OF_SAVED, OF_ATTRIBUTES, OF_EXTRA, OF_SHAPES, OF_GRADIENTS = 0, 16, 32, 48, 64

_on_tensors: dict = {}        # name of a module of rules -> its names


def _names_on_tensors(module, functions):
    """The names of a module of rules, where the functions for tensors stand for those of functions.py, which look for the type of their
    arguments first, 250 ns a call."""
    names = _on_tensors.get(module["__name__"])
    if names is None:
        names = _on_tensors[module["__name__"]] = dict(module)
        for name, value in module.items():
            if isinstance(value, FunctionType):
                if value.__globals__ is module:
                    names[name] = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
                elif value.__globals__ is ALIKE:
                    names[name] = functions.get(value.__name__, value)
    return names


def plan_for(row, i, functions):
    """How to call the rule for input i: the function, whether its result is masked, a byte for each parameter; () without a rule."""
    name = row.inputs[i]
    rule = row.rules.get(name)
    if rule is None:
        return ()
    values = {n: OF_SAVED + k for k, n in enumerate((*row.inputs, "y"))}
    values |= {n: OF_ATTRIBUTES + k for k, n in enumerate(row.attrs)} | {n: OF_EXTRA + k for k, n in enumerate(row.aux)}
    values |= {n + "_shape": OF_SHAPES + k for k, n in enumerate(row.inputs)}
    values |= {n: OF_GRADIENTS + k for k, n in enumerate(("g", "gs", "ys", "gys"))}
    parameters = bytes([values[p] for p in row.parameters(name)])
    if row.kind == "elementwise":             # whose rules may be called on numbers
        return rule, is_masked(row, name), parameters
    names = _names_on_tensors(rule.__globals__, functions)
    return FunctionType(rule.__code__, names, rule.__name__, rule.__defaults__, rule.__closure__), False, parameters
