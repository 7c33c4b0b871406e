"""Layers of attention: MultiheadAttention, and the encoders and decoders of transformers.

Relies on Module, Parameter, init, attending and other layers.  Models rely on it.
"""

import math

from ..array.dtypes import bool as bool_dtype
from ..engine import creation
from ..engine.joins import cat
from ..engine.products import linear, matmul
from ..engine.choose import where
from ..engine.shape import expand
from . import functional as F
from . import init
from .attending import INF, attention_weights
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm
from .noise import dropout
from .parameter import Parameter

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]


class MultiheadAttention(Module):
    """Attention of several heads: out_proj(concatenated softmax(q k' / sqrt(d)) v), q, k and v projections of the inputs.

    Inputs (L, N, E), or (N, L, E) with batch_first, or without N. Returns the output and the weights (None unless need_weights).
    In masks of bools, true means: may not be looked at.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device=None,
                 dtype=None) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        shapes = {"in_proj_weight": (3 * embed_dim, embed_dim), "q_proj_weight": (embed_dim, embed_dim),
                  "k_proj_weight": (embed_dim, self.kdim), "v_proj_weight": (embed_dim, self.vdim)}
        for name, shape in shapes.items():
            if (name == "in_proj_weight") == self._qkv_same_embed_dim:
                setattr(self, name, Parameter(creation.empty(shape, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self._optional("in_proj_bias", bias, (3 * embed_dim,), dtype)
        self._optional("bias_k", add_bias_kv, (1, 1, embed_dim), dtype)
        self._optional("bias_v", add_bias_kv, (1, 1, embed_dim), dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype, device=device)
        self._reset_parameters()

    def _optional(self, name, wanted, shape, dtype):
        if wanted:
            setattr(self, name, Parameter(creation.empty(shape, dtype=dtype)))
        else:
            self.register_parameter(name, None)

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights: bool = True, attn_mask=None,
                average_attn_weights: bool = True, is_causal: bool = False):
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise AssertionError(f"query should be unbatched 2D or batched 3D tensor, as key and value, but received {query.ndim}-D query, "
                                 f"{key.ndim}-D key and {value.ndim}-D value tensors")
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        single = query.ndim == 2
        same = key is query and value is query
        if single:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        n, length = query.shape[:2]
        q, k, v = self._projected(query, key, value, same)
        if self.bias_k is not None:
            k, v = cat([k, expand(self.bias_k, (n, 1, self.embed_dim))], 1), cat([v, expand(self.bias_v, (n, 1, self.embed_dim))], 1)
        if self.add_zero_attn:
            nothing = creation.zeros((n, 1, self.embed_dim), dtype=q.dtype)
            k, v = cat([k, nothing], 1), cat([v, nothing], 1)
        mask = self._mask(attn_mask, key_padding_mask, n, length, key.shape[1], k.shape[1], q.dtype, single)
        q, k, v = [x.reshape(n, -1, self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v)]
        weights = attention_weights(q, k, mask, 1 / math.sqrt(self.head_dim))
        if self.training and self.dropout:
            weights = dropout(weights, self.dropout)
        out = self.out_proj(matmul(weights, v).transpose(1, 2).reshape(n, length, self.embed_dim))
        if need_weights and average_attn_weights:
            weights = weights.mean(1)
        if single:
            return out.squeeze(0), weights.squeeze(0) if need_weights else None
        return out if self.batch_first else out.transpose(0, 1), weights if need_weights else None

    def _projected(self, query, key, value, same):
        e, bias = self.embed_dim, self.in_proj_bias
        if same and self._qkv_same_embed_dim:
            return linear(query, self.in_proj_weight, bias).chunk(3, -1)
        weights = self.in_proj_weight.chunk(3) if self._qkv_same_embed_dim else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        parts = (None,) * 3 if bias is None else (bias[:e], bias[e:2 * e], bias[2 * e:])
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, parts, strict=True)]

    def _mask(self, attn_mask, padding, n, length, given, places, dtype, single):
        """What is added to the scores (n, heads, length, places), or None."""
        total = None
        if attn_mask is not None:
            if attn_mask.ndim == 3:
                if attn_mask.shape != (n * self.num_heads, length, given):
                    raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                                       f"{(n * self.num_heads, length, given)}.")
                attn_mask = attn_mask.reshape(n, self.num_heads, length, given)
            elif attn_mask.shape != (length, given):
                raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(length, given)}.")
            else:
                attn_mask = attn_mask.unsqueeze(0).unsqueeze(0)
            total = _additive(attn_mask, dtype)
        if padding is not None:
            padding = padding.unsqueeze(0) if single and padding.ndim == 1 else padding
            if padding.shape != (n, given):
                raise AssertionError(f"expecting key_padding_mask shape of {(n, given)}, but got {padding.shape}")
            padding = _additive(padding.reshape(n, 1, 1, given), dtype)
            total = padding if total is None else total + padding
        if total is not None and places > given:
            total = cat([total, creation.zeros((*total.shape[:-1], places - given), dtype=dtype)], -1)
        return total


def _additive(mask, dtype):
    return where(mask, creation.full((), -INF, dtype=dtype), creation.zeros((), dtype=dtype)) if mask.dtype == bool_dtype else mask


def _activation(activation):
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        return getattr(F, activation)
    return activation


class _TransformerLayer(Module):
    def _set_up(self, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype, device,
                decoder):
        attention = {"dropout": dropout, "batch_first": batch_first, "bias": bias, "dtype": dtype, "device": device}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if decoder:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        for i in range(3 if decoder else 2):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for i in range(3 if decoder else 2):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        self.activation = _activation(activation)

    def _attend(self, attention, x, memory, mask, padding, causal):
        return attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal)[0]

    def _feed(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _block(self, x, norm, drop, f):
        """x and f(x), with the norm before f or after the sum."""
        return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a network of two linear layers, each with dropout, added to its input, and normalised."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation="relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__()
        self._set_up(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype, device,
                     False)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        x = self._block(src, self.norm1, self.dropout1,
                        lambda x: self._attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal))
        return self._block(x, self.norm2, self.dropout2, self._feed)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's memory and two linear layers, as in TransformerEncoderLayer."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation="relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__()
        self._set_up(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, dtype, device,
                     True)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False):
        x = self._block(tgt, self.norm1, self.dropout1,
                        lambda x: self._attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._block(x, self.norm2, self.dropout2, lambda x: self._attend(self.multihead_attn, x, memory, memory_mask,
                                                                             memory_key_padding_mask, memory_is_causal))
        return self._block(x, self.norm3, self.dropout3, self._feed)


def _copies(layer, n):
    from copy import deepcopy                 # 0.25 ms of the package's import otherwise
    return ModuleList([deepcopy(layer) for _ in range(n)])


class TransformerEncoder(Module):
    """num_layers copies of an encoder layer, one after another, and a norm at the end."""

    def __init__(self, encoder_layer, num_layers: int, norm=None, enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal: bool | None = None):
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a decoder layer, one after another, and a norm at the end."""

    def __init__(self, decoder_layer, num_layers: int, norm=None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of src and a decoder of tgt that looks at the encoder's memory, each of several layers (Vaswani et al., 2017)."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation="relu", custom_encoder=None, custom_decoder=None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__()
        each = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*each), num_encoder_layers,
                                              LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*each), num_decoder_layers,
                                              LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False):
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        if src.ndim == 3 and src.shape[0 if self.batch_first else 1] != tgt.shape[0 if self.batch_first else 1]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None):
        """(sz, sz) numbers to be added: -inf for what comes later, 0 elsewhere."""
        later = creation.arange(sz) > creation.arange(sz).unsqueeze(1)
        return where(later, creation.full((), -INF, dtype=dtype, device=device), creation.zeros((), dtype=dtype))
