"""The layers as functions, under the names of torch.nn.functional.

Relies on the engine.  Layers and losses rely on it, and users directly.
Whatever the engine has with the same signature is its own function here, not a wrapper: a Python frame costs 50 ns.
"""

from autograd_cy.engine import pooling
from autograd_cy.engine.arguments import need_tensor
from autograd_cy.engine.convolve import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold
from autograd_cy.engine.elementwise import (
    celu_, elu, elu_, hardshrink, hardsigmoid, hardswish, hardtanh_, leaky_relu, leaky_relu_, logsigmoid, mish, relu, relu6, relu_, selu,
    selu_, sigmoid, silu, softplus, softsign, tanh, tanhshrink, threshold, threshold_,
)
from autograd_cy.engine.elementwise import softshrink as softshrink_row
from autograd_cy.engine.distances import normalize
from autograd_cy.engine.gather import embedding, one_hot
from autograd_cy.engine.joins import chunk
from autograd_cy.engine.matrix_products import pdist
from autograd_cy.engine.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, huber_loss, l1_loss, mse_loss, nll_loss, smooth_l1_loss,
)
from autograd_cy.engine.blocks import pad
from autograd_cy.engine.normalize import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from autograd_cy.engine.pooling import *
from autograd_cy.engine.products import linear, matmul
from autograd_cy.engine.reduce import log_softmax, softmax
from autograd_cy.engine.resample import (
    channel_shuffle, interpolate, pixel_shuffle, pixel_unshuffle, upsample, upsample_bilinear, upsample_nearest,
)
from autograd_cy.engine.choose import celu, gelu, hardtanh, prelu
from autograd_cy.engine.tensor import Tensor

from . import losses, noise
from .attending import scaled_dot_product_attention
from .losses import *
from .noise import *
from .sampling import affine_grid, embedding_bag, grid_sample
from .sequences import ctc_loss

__all__ = [
    "affine_grid", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cross_entropy", "ctc_loss", "elu", "elu_",
    "embedding", "embedding_bag", "fold", "gelu", "glu", "grid_sample", "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "huber_loss", "instance_norm", "interpolate", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pdist",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "relu", "relu6", "relu_", "rms_norm", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "threshold_", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]
__all__ += losses.__all__
__all__ += noise.__all__
__all__ += pooling.__all__


def softmin(input: Tensor, dim: int) -> Tensor:
    """softmax(-x) along dim."""
    return softmax(-input, dim)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, but not beyond. Raises RuntimeError for lambd < 0."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd must be greater or equal to 0, but found to be {lambd}")
    return softshrink_row(input, lambd)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b) for the halves a and b of input along dim. Raises RuntimeError for an odd size."""
    need_tensor(input, "glu")
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.shape[dim] % 2:
        raise RuntimeError(f"glu: Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    a, b = chunk(input, 2, dim)
    return a * sigmoid(b)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[..., k] = sum_ij x1[..., i] W[k, i, j] x2[..., j] + b[k]."""
    need_tensor(input1, "bilinear")
    need_tensor(input2, "bilinear")
    need_tensor(weight, "bilinear")
    left = matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)         # (..., out, in2)
    out = matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias
