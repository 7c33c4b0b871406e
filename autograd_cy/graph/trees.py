"""Nested results and arguments - tuples, lists, dicts, named tuples - as flat lists of tensors and a description of the rest.

Relies on Tensor only. capture and compile rely on it.
"""

from autograd_cy.engine.tensor import Tensor


class _Hole:
    """Where a tensor stood."""

    __slots__ = ()

    def __repr__(self):
        return "tensor"


HOLE = _Hole()


def flatten(tree):
    """(tensors, description): the tensors in order, and the same structure with HOLE in their places (hashable where its values are)."""
    tensors = []
    return tensors, _describe(tree, tensors)


def _describe(tree, tensors):
    if isinstance(tree, Tensor):
        tensors.append(tree)
        return HOLE
    if isinstance(tree, (tuple, list)):
        return type(tree), tuple(_describe(value, tensors) for value in tree)
    if isinstance(tree, dict):
        return type(tree), tuple(tree), tuple(_describe(value, tensors) for value in tree.values())
    return None, tree, type(tree)            # the type, because 1, 1.0 and True are equal


def other_values(description):
    """What stands in a structure besides tensors."""
    if description is HOLE:
        return
    if description[0] is None:
        yield description[1]
        return
    for part in description[-1]:
        yield from other_values(part)


def unflatten(description, tensors):
    """The structure with tensors (an iterator or a list) in its places."""
    return _build(description, iter(tensors))


def _build(description, tensors):
    if description is HOLE:
        return next(tensors)
    kind = description[0]
    if kind is None:
        return description[1]
    if len(description) == 3:
        return kind(zip(description[1], [_build(d, tensors) for d in description[2]], strict=True))
    values = [_build(d, tensors) for d in description[1]]
    return kind(*values) if hasattr(kind, "_fields") else kind(values)
