"""Which tensors a Python function holds: in its variables from around it, its defaults, and what functools.partial gave it.

Relies on tensor. function.pyx relies on it, for the backward of a custom_op.
"""

import functools

from .tensor import Tensor

DEPTH = 3                # of lists, tuples and dicts within each other


def _find(held, found, depth=DEPTH):
    if isinstance(held, Tensor):
        found[id(held)] = held
    elif depth and isinstance(held, (list, tuple, dict)):
        for part in held.values() if isinstance(held, dict) else held:
            _find(part, found, depth - 1)


def tensors_in(function):
    """The tensors in a function's variables, by id; in lists, tuples and dicts, too."""
    found = {}
    while isinstance(function, functools.partial):
        _find((function.args, function.keywords), found)
        function = function.func
    for cell in getattr(function, "__closure__", None) or ():
        try:
            _find(cell.cell_contents, found)
        except ValueError:               # an empty cell: a variable that has no value yet
            continue
    _find((getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)), found)
    return found


def made_inside(function, backward, held):
    """Those of the tensors that backward holds that are variables of the function's own, not from around it."""
    found = dict(held)
    outer = getattr(function, "__closure__", None) or ()
    for cell in getattr(backward, "__closure__", None) or ():
        if any(cell is known for known in outer):
            around = {}
            _find(cell.cell_contents, around)
            for key in around:
                found.pop(key, None)
    return found
