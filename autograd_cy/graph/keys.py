"""When two captures, or two sets of arguments, are alike; and where they differ, in words.

Relies on program.py and trees.py only. compile relies on it.
"""

from .program import EXTERNAL
from .trees import other_values


def sharing(tensors):
    """Which arguments share memory with an earlier one."""
    if len(tensors) < 2:
        return ()
    first = {}
    return tuple(first.setdefault(t.untyped_storage().data_ptr(), k) for k, t in enumerate(tensors))


def structure_of(found):
    """What two captures of one call must have in common."""
    kept = {buffer for _, buffer in found.kept}                    # gradients may be other memory at each call
    external = tuple(b.owner.data_ptr() for b in found.program.buffers if b.kind == EXTERNAL and b.id not in kept)
    return found.program.structure(), found.tree, external


def alike(structure, other):
    """Whether two captures for other shapes did the same with the same numbers: the step is the same from call to call."""
    return _without_shapes(structure) == _without_shapes(other)


def _without_shapes(structure):
    (_, body, _, buffers), tree, external = structure
    return [(kernel, name, roles, numbers) for kernel, name, _, roles, _, numbers in body], [b[3] for b in buffers], tree, external


def unhashable(description):
    """The kind of the first value in a description of arguments that can't be hashed."""
    for value in other_values(description):
        try:
            hash(value)
        except TypeError:
            return f"a {type(value).__name__}"
    return "a structure that can't be hashed"


def difference(before, now):
    """The first instruction in which two captures differ."""
    for k, (one, other) in enumerate(zip(before[0][1], now[0][1], strict=False)):
        if one != other:
            return f"instruction {k} was {one[1]} and then {other[1]}, or read other values"
    if len(before[0][1]) != len(now[0][1]):
        return f"{len(before[0][1])} instructions and then {len(now[0][1])}"
    if before[1] != now[1]:
        return "the result has another structure, or other numbers in it"
    return "a number that it made a tensor of, or memory that it used, was another one"


def key_difference(before, now):
    """How two sets of arguments differ, in words."""
    if before[0] != now[0]:
        return "an argument that is no tensor has another value, or the arguments another structure"
    for k, (one, other) in enumerate(zip(before[1], now[1], strict=True)):
        for part, what in enumerate(("shape", "strides", "dtype", "requires_grad")):
            if one[part] != other[part]:
                return f"tensor {k} among the arguments has {what} {other[part]} instead of {one[part]}"
    return "gradients were switched on or off" if before[2] != now[2] else "the default dtype changed" if before[3] != now[3] \
        else "arguments share memory in another way"
