"""Padding: constants, mirrored, repeated or cyclic borders.

Relies on shape and joins: borders are slices, joined to what is between them. arrange.py and nn.functional rely on it.
"""

from operator import index as as_int

from . import joins, shape
from .tensor import Tensor


def need_tensor(x, name):
    """x, if it is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}")
    return x


def pad(input, pad, mode="constant", value=None):
    """input with pad[0] elements before and pad[1] after its last dimension, pad[2], pad[3] for the one before, and so on.

    mode "constant": `value` (0); "reflect": mirrored without the edge; "replicate": the edge; "circular": from the other end.
    Negative numbers cut. Raises RuntimeError for an odd number, for more than there are dimensions, and for padding that the mode
    has no elements for.
    """
    numbers = [as_int(p) for p in pad]
    ndim = need_tensor(input, "pad").ndim
    if len(numbers) % 2 or len(numbers) > 2 * ndim:
        raise RuntimeError(f"pad: expected an even number of at most {2 * ndim} numbers for shape {input.shape}, got {tuple(numbers)}")
    pairs = [(ndim - 1 - i // 2, numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
    if mode != "constant":
        if mode not in _BORDERS:
            raise NotImplementedError(f"pad: mode must be constant, reflect, replicate or circular, got {mode!r}")
        if value not in (None, 0):
            raise ValueError(f"pad: mode {mode!r} takes no value, got {value}")
        out = input
        for axis, before, after in pairs:
            out = _bordered(out, axis, before, after, mode)
        return shape.clone(out) if out is input else out
    sizes, index = list(input.shape), [(None, None, None)] * ndim
    for axis, before, after in pairs:
        size = sizes[axis]
        sizes[axis] = size + before + after
        left = size + min(before, 0) + min(after, 0)
        if left < 0:
            raise RuntimeError(f"pad: {before} and {after} leave less than nothing of dim {axis} of shape {input.shape}")
        if left < size:
            input = shape.narrow(input, axis, max(-before, 0), left)
        index[axis] = (max(before, 0), input.shape[axis], 1)
    return joins.padded(input, tuple(index), tuple(sizes), 0 if value is None else value)


def _reflected(x, axis, before, after, size):
    if max(before, after) >= size:
        raise RuntimeError(f"pad: reflect needs padding below the size {size} of dim {axis} of shape {x.shape}, got {before} and {after}")
    return ((before, before, -1) if before > 0 else None), ((size - 2, after, -1) if after > 0 else None)


def _wrapped(x, axis, before, after, size):
    if max(before, after) > size:
        raise RuntimeError(f"pad: circular needs padding up to the size {size} of dim {axis} of shape {x.shape}, got {before} and {after}")
    return ((size - before, before, 1) if before > 0 else None), ((0, after, 1) if after > 0 else None)


def _repeated(x, axis, before, after, size):
    if not size and max(before, after) > 0:
        raise RuntimeError(f"pad: replicate needs elements along dim {axis} of shape {x.shape}")
    return ((0, before, 0) if before > 0 else None), ((size - 1, after, 0) if after > 0 else None)


_BORDERS = {"reflect": _reflected, "circular": _wrapped, "replicate": _repeated}


def _bordered(x, axis, before, after, mode):
    """One dimension with both borders: slices of x itself, joined. A circular border continues what is left after cutting."""
    size = x.shape[axis]
    left = size + min(before, 0) + min(after, 0)
    if left < 0:
        raise RuntimeError(f"pad: {before} and {after} leave less than nothing of dim {axis} of shape {x.shape}")
    middle = shape.narrow(x, axis, max(-before, 0), left) if left < size else x
    if mode == "circular":
        x, size = middle, left
    whole = ((None, None, None),) * axis
    parts = []
    for cut in _BORDERS[mode](x, axis, before, after, size):
        if cut is not None and cut[2] == 0:
            one = shape.slice_axes(x, (*whole, (cut[0], 1, 1)))
            parts.append(shape.expand(one, (*x.shape[:axis], cut[1], *x.shape[axis + 1:])))
        else:
            parts.append(None if cut is None else shape.slice_axes(x, (*whole, cut)))
    joined = [p for p in (parts[0], middle, parts[1]) if p is not None]
    return middle if len(joined) == 1 else joins.cat(joined, axis)
