"""Initialisers: fill a tensor in place and return it, with the signatures of torch.nn.init.

Relies on the engine (in-place random fills, no_grad); random numbers come from the library's generator (ag.manual_seed).
Layers rely on it.
"""

import math

import numpy as np

from autograd_cy.array.dtypes import float64
from autograd_cy.engine import creation, generators
from autograd_cy.engine.elementwise import ndtri
from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.tensor import Tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor on the standard deviation that suits an activation, as PyTorch recommends."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                        "conv_transpose3d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans            # layers written for PyTorch copy calls of it


def _fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _fans(tensor)
    return fan_in if mode == "fan_in" else fan_out


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """N(mean, std^2)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator=None) -> Tensor:
    """N(mean, std^2) restricted to [a, b], by inversion of the distribution function."""
    low, high = (0.5 * math.erfc((mean - bound) / (std * math.sqrt(2))) for bound in (a, b))
    with no_grad():
        uniform = generators.rand(tensor.shape, generator=generator, dtype=float64)
        return tensor.copy_((ndtri(uniform * (high - low) + low) * std + mean).clamp(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Every element is val."""
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Every element is 0."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Every element is 1."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix; 2-D tensors only."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(creation.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights (3 to 5 dimensions) that hand each channel through, as far as there are as many, in every group."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    middle = tuple([n // 2 for n in tensor.shape[2:]])
    rows = tensor.shape[0] // groups
    with no_grad():
        tensor.fill_(0)
        for g in range(groups):
            for d in range(min(rows, tensor.shape[1])):
                tensor[(g * rows + d, d, *middle)] = 1
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator=None) -> Tensor:
    """N(0, std^2), with a share `sparsity` of every column set to 0; 2-D tensors only."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[generators.randperm(rows, generator=generator)[:math.ceil(sparsity * rows)], column] = 0
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor))) if tensor.numel() else 0.0
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """N(0, gain^2 * 2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))) if tensor.numel() else 0.0, generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator=None) -> Tensor:
    """U(-c, c), c = gain * sqrt(3 / fan) (He et al., 2015)."""
    if tensor.numel() == 0:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator=None) -> Tensor:
    """N(0, gain^2 / fan) (He et al., 2015); the gain of "leaky_relu" with a = 0 is sqrt(2)."""
    if tensor.numel() == 0:
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator=None) -> Tensor:
    """Rows (or columns, if there are fewer) orthonormal, times gain; dimensions after the first are joined."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        values = generators.randn((rows, columns), generator=generator, dtype=float64)

        def orthogonalise(inputs, outputs):
            flat = creation.array_of(inputs[0])
            q, r = np.linalg.qr(flat.T if rows < columns else flat)
            # The signs make the distribution uniform (Mezzadri, 2007).
            q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
            creation.write(outputs[0], gain * (q.T if rows < columns else q))

        matrix = creation.empty((rows, columns), dtype=tensor.dtype)
        creation.outside(orthogonalise, [values], [matrix])
        return tensor.copy_(matrix.reshape(tensor.shape))
