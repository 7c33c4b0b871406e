"""Layers of normalisation.

Relies on Module, Parameter, init and functional.  Models rely on it.
"""

import warnings

from ..array.dtypes import int64
from ..engine import creation
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "LocalResponseNorm", "RMSNorm",
]


class _Affine(Module):
    """A normalisation with one weight and bias per element of `shape`, which start as ones and zeros."""

    def _set_up(self, shape, weight, bias, dtype, device):
        for name, wanted in (("weight", weight), ("bias", bias)):
            if wanted:
                setattr(self, name, Parameter(creation.empty(shape, dtype=dtype, device=device)))
            else:
                self.register_parameter(name, None)

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _NormBase(_Affine):
    dims = ()                  # numbers of dimensions of an input
    names = ""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._set_up((num_features,), affine, affine and bias, dtype, device)
        self.register_buffer("running_mean", creation.zeros((num_features,), dtype=dtype, device=device) if track_running_stats else None)
        self.register_buffer("running_var", creation.ones((num_features,), dtype=dtype, device=device) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", creation.tensor(0, dtype=int64) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0 and variance 1, as at the start."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Ones and zeros; the running statistics as at the start."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input):
        if input.ndim not in self.dims:
            raise ValueError(f"expected {self.names} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:          # the mean of all batches so far; a tensor, so that a compiled step may run it
                share = 1.0 / self.num_batches_tracked.to(input.dtype)
        training = self.training or self.running_mean is None and self.running_var is None
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if tracked else None, self.running_var if tracked else None, self.weight, self.bias,
                            training, share, self.eps)


class BatchNorm1d(_BatchNorm):
    """F.batch_norm of (N, C) or (N, C, L), with running statistics for evaluation."""

    dims, names = (2, 3), "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """F.batch_norm of (N, C, H, W), with running statistics for evaluation."""

    dims, names = (4,), "4D"


class BatchNorm3d(_BatchNorm):
    """F.batch_norm of (N, C, D, H, W), with running statistics for evaluation."""

    dims, names = (5,), "5D"


class _InstanceNorm(_NormBase):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input):
        self._check_input_dim(input)
        single = input.ndim == self.dims[0]
        axis = 0 if single else 1
        if input.shape[axis] != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={axis} to match num_features ({self.num_features}), but got: "
                                 f"{input.shape[axis]}.")
            warnings.warn(f"input's size at dim={axis} does not match num_features. You can silence this warning by not passing in "
                          f"num_features, which is not used because affine=False", stacklevel=2)
        out = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
                              self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps)
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """F.instance_norm of (N, C, L) or (C, L)."""

    dims, names = (2, 3), "2D or 3D"


class InstanceNorm2d(_InstanceNorm):
    """F.instance_norm of (N, C, H, W) or (C, H, W)."""

    dims, names = (3, 4), "3D or 4D"


class InstanceNorm3d(_InstanceNorm):
    """F.instance_norm of (N, C, D, H, W) or (C, D, H, W)."""

    dims, names = (4, 5), "4D or 5D"


class GroupNorm(_Affine):
    """F.group_norm: num_groups groups of channels, normalised by themselves."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *,
                 bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._set_up((num_channels,), affine, affine and bias, dtype, device)
        self.reset_parameters()

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """F.layer_norm over the trailing dimensions normalized_shape."""

    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        self._set_up(self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype, device)
        self.reset_parameters()

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """F.rms_norm over the trailing dimensions normalized_shape."""

    def __init__(self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True, device=None, dtype=None) -> None:
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(creation.empty(self.normalized_shape, dtype=dtype, device=device))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """F.local_response_norm over `size` neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
