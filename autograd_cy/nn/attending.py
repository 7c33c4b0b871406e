"""Attention as a function: softmax(q k') v.

Relies on the engine and noise.  functional.py re-exports it; the layers of attention.py rely on it.
"""

import math

from ..array.dtypes import bool as bool_dtype
from ..array.errors import ShapeError
from ..engine import creation
from ..engine.joins import cat
from ..engine.modes import no_grad
from ..engine.products import matmul
from ..engine.reduce import softmax
from ..engine.rows import planned
from ..engine.choose import where
from ..engine.shape import expand
from ..engine.tensor import Tensor
from .noise import dropout

INF = float("inf")
BLOCK = 128                                    # queries; without a mask, from four blocks on it is the products that take the time


def attention_weights(query, key, mask, scale):
    """softmax(query key' * scale + mask), mask bool (true: takes part) or numbers; zeros where nothing takes part."""
    scores = matmul(query * scale, key.transpose(-2, -1))
    if mask is None:
        return softmax(scores, -1)
    if mask.dtype != bool_dtype:
        scores = scores + mask
    elif planned(_covers, scores.shape, mask.shape):
        with no_grad():                        # unseen: what softmax makes 0 gets no gradient from it anyhow
            scores.masked_fill_(~mask, -INF)
    else:
        scores = where(mask, scores, -INF)
    nothing = (scores.detach() == -INF).all(-1, keepdim=True)          # a row that may look at nothing gets zeros
    return where(nothing, 0, softmax(where(nothing, 0, scores), -1))


def _covers(scores, mask):
    """Whether a mask of this shape is broadcast to that of the scores."""
    return len(mask) <= len(scores) and all(m in (1, n) for m, n in zip(reversed(mask), reversed(scores), strict=False))


def _later(shape):
    """What a place may not look at: what comes after it."""
    return creation.ones(shape, dtype=bool_dtype).triu(1)


def _causal_weights(query, key, scale):
    """The weights where a place may look at itself and what is before it."""
    scores = matmul(query * scale, key.transpose(-2, -1))
    later = _later(scores.shape[-2:])
    if scores.numel() < 4096:
        return softmax(scores.masked_fill(later, -INF), -1)
    with no_grad():                            # unseen: what softmax makes 0 gets no gradient from it anyhow
        scores.masked_fill_(later, -INF)
    return softmax(scores, -1)


def _by_blocks(query, key, value, scale, causal, dropout_p):
    """Attention without a mask, or with that of what comes later, by blocks of queries: the scores of one stay in the cache, and it
    leaves out the keys that all of it may not look at."""
    rows, columns, outs = query.shape[-2], key.shape[-2], []
    query, key = query * scale, key.transpose(-2, -1)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        seen = min(first + count, columns) if causal else columns
        scores = matmul(query.narrow(-2, first, count), key.narrow(-1, 0, seen))
        if causal and seen > first:
            with no_grad():
                scores.narrow(-1, first, seen - first).masked_fill_(_later((count, seen - first)), -INF)
        weights = softmax(scores, -1)
        outs.append(matmul(dropout(weights, dropout_p) if dropout_p else weights, value.narrow(-2, 0, seen)))
    return cat(outs, -2)


def _repeated(x, times):
    """Every head of (..., heads, length, size) `times` times in a row."""
    if times == 1:
        return x
    *lead, heads, length, size = x.shape
    return expand(x.unsqueeze(-3), (*lead, heads, times, length, size)).reshape(*lead, heads * times, length, size)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(query key' * scale + mask) value, for query (..., L, E), key (..., S, E), value (..., S, V).

    attn_mask: bool (true: takes part) or numbers to be added, broadcast to (..., L, S). scale: 1 / sqrt(E). is_causal: the mask of
    what comes later. enable_gqa: key and value have fewer heads (dimension -3), each shared by several of query.
    """
    usual = planned(_fit, query, key, value)
    if scale is None:
        scale = usual
    rows = query.shape[-2]
    if attn_mask is None and not is_causal and not dropout_p and not enable_gqa and rows <= BLOCK:
        return matmul(softmax(matmul(query * scale, key.transpose(-2, -1)), -1), value)
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        heads = query.shape[-3]
        if heads % key.shape[-3] or heads % value.shape[-3]:
            raise ShapeError(f"scaled_dot_product_attention: the number of heads in query ({heads}) must be divisible by those in key "
                             f"({key.shape[-3]}) and value ({value.shape[-3]})")
        key, value = _repeated(key, heads // key.shape[-3]), _repeated(value, heads // value.shape[-3])
    if attn_mask is None and key.shape[-2] == value.shape[-2] and rows > BLOCK and (is_causal or rows <= 4 * BLOCK):
        return _by_blocks(query, key, value, scale, is_causal, dropout_p)
    weights = _causal_weights(query, key, scale) if is_causal else attention_weights(query, key, attn_mask, scale)
    return matmul(dropout(weights, dropout_p) if dropout_p else weights, value)


def _fit(query, key, value):
    """Check the arguments of attention; the scale unless another one is given."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor):
            raise TypeError(f"scaled_dot_product_attention: expected {name} to be a Tensor, but got {type(x).__name__}")
        if x.ndim < 2:
            raise ShapeError(f"scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got "
                             f"{name} of {x.ndim} dimensions")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(f"scaled_dot_product_attention: Expected query, key, and value to have the same dtype, but got "
                           f"{query.dtype.name}, {key.dtype.name} and {value.dtype.name}")
    return 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else INF
