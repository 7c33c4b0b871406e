"""Images sampled at places of a grid, and bags of embeddings: affine_grid, grid_sample, embedding_bag.

Relies on operations of tensors only, so that all have derivatives of any order. nn.functional and EmbeddingBag rely on it.
"""

from math import prod

from autograd_cy.array.errors import ShapeError
from autograd_cy.engine import creation
from autograd_cy.engine.arguments import need_tensor
from autograd_cy.engine.choose import clamp, where
from autograd_cy.engine.convolve import need_float
from autograd_cy.engine.elementwise import floor, round
from autograd_cy.engine.gather import embedding, index_add
from autograd_cy.engine.indexing import scatter_reduce
from autograd_cy.engine.joins import meshgrid, stack
from autograd_cy.engine.pooling import sampled
from autograd_cy.engine.sorting import searchsorted
from autograd_cy.engine.tensor import Tensor


def affine_grid(theta: Tensor, size, align_corners: bool | None = None) -> Tensor:
    """The places (N, H, W, 2) in [-1, 1] where the affine maps theta (N, 2, 3) take the pixels of images of size (N, C, H, W); of volumes
    (N, 3, 4) and (N, C, D, H, W). align_corners: -1 and 1 are the centres of the outer pixels, not their outer borders."""
    need_tensor(theta, "affine_grid")
    d = len(size) - 2
    if theta.ndim != 3 or d not in (2, 3) or theta.shape != (size[0], d, d + 1):
        raise ShapeError(f"affine_grid: expected theta of shape (N, d, d + 1) for a size (N, C, *) of d = 2 or 3 sizes, got {theta.shape} "
                         f"and {tuple(size)}")
    axes = []
    for n in size[2:]:
        places = creation.arange(n, dtype=theta.dtype)
        axes.append(places * (2 / max(n - 1, 1)) - 1 if align_corners and n > 1 else (places * 2 + 1) / n - 1)
    base = stack([*reversed(meshgrid(*axes, indexing="ij")), creation.ones(*size[2:], dtype=theta.dtype)], -1)
    return (base.reshape(1, -1, d + 1) @ theta.transpose(1, 2)).reshape(size[0], *size[2:], d)


def _reflected(x, sizes, align_corners):
    """Coordinates mirrored at the borders until they are within."""
    low, span = (0.0, sizes - 1) if align_corners else (-0.5, sizes)
    x, span = ((x - low) * (span > 0)).abs(), clamp(span, 1)
    turns = floor(x.detach() / span)
    rest = x - turns * span
    return where(turns % 2 == 0, rest, span - rest) + low


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Images (N, C, H, W) at the places (x, y) of a grid (N, H', W', 2) in [-1, 1], as (N, C, H', W'); volumes with (x, y, z).

    mode: "bilinear" or "nearest"; padding_mode: what is outside: "zeros", "border" or "reflection". align_corners as of affine_grid.
    """
    need_float(input, "grid_sample")
    d = input.ndim - 2
    need_float(grid, "grid_sample", "grid")
    if d not in (2, 3) or grid.ndim != input.ndim or grid.shape[0] != input.shape[0] or grid.shape[-1] != d:
        raise ShapeError(f"grid_sample: an input of shape {input.shape} and a grid of shape {grid.shape} do not fit")
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample: mode must be 'bilinear' or 'nearest', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', got {padding_mode!r}")
    n, places = input.shape[0], prod(grid.shape[1:-1])
    sizes = creation.tensor(input.shape[:1:-1], dtype=input.dtype).unsqueeze(1)
    x = grid.reshape(n, places, d).transpose(1, 2).contiguous()               # all of x, then all of y
    x = (x + 1) * ((sizes - 1) / 2) if align_corners else ((x + 1) * sizes - 1) / 2
    if padding_mode == "reflection":
        x = _reflected(x, sizes, align_corners)
    if padding_mode != "zeros":
        x = clamp(x, creation.zeros(1, dtype=input.dtype), sizes - 1)
    if mode == "nearest":
        low = round(x.detach())
        weight = creation.ones(n, 1, places, dtype=input.dtype)
    else:
        low = floor(x.detach())
        x = x - low
        shares = stack((1 - x, x), 2)
        weight = shares[:, 0]
        for k in range(1, d):
            weight = (shares[:, k].unsqueeze(2) * weight.unsqueeze(1)).reshape(n, 2 << k, places)
    return sampled(input, weight, low, 1 if mode == "nearest" else 2).reshape(*input.shape[:2], *grid.shape[1:-1])


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2.0,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima (mode) of rows of weight: of each row of input (B, N), or of the bags of a vector, which begin at offsets.

    per_sample_weights: factors of the rows, for sums. padding_idx: a row that counts for nothing. An empty bag gives zeros.
    """
    need_tensor(input, "embedding_bag")
    need_tensor(weight, "embedding_bag")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ShapeError(f"embedding_bag: per_sample_weights go with mode='sum' and the shape {input.shape} of the input")
    even = input.ndim == 2 and offsets is None
    if even:
        bags, each = input.shape
    elif input.ndim == 1 and offsets is not None and offsets.ndim == 1:
        bags = offsets.shape[0] - include_last_offset
        if bags and (int(offsets[0]) != 0 or int(offsets[-1]) > input.shape[0]):
            raise ValueError(f"embedding_bag: offsets must begin with 0 and end within the {input.shape[0]} elements of the input")
        bag = searchsorted(offsets[:bags].contiguous(), creation.arange(input.shape[0], dtype=offsets.dtype), right=True) - 1
    else:
        raise ValueError(f"embedding_bag: expected an input of two dimensions, or of one with offsets, got shape {input.shape}")
    chosen = input.reshape(-1)
    rows = embedding(chosen, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counted = None if padding_idx is None else (chosen != padding_idx % weight.shape[0]).unsqueeze(1)
    zeros = creation.zeros(bags, weight.shape[1], dtype=weight.dtype)
    if even and not each:
        return zeros
    if mode == "max":
        rows = rows if counted is None else where(counted, rows, float("-inf"))
        out = rows.reshape(bags, each, weight.shape[1]).max(1)[0] if even else scatter_reduce(
            zeros, 0, bag.unsqueeze(1).expand(-1, rows.shape[1]), rows, "amax", include_self=False)
        return out if counted is None else where(out == float("-inf"), 0, out)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if counted is not None:
        rows = where(counted, rows, 0)
    out = rows.reshape(bags, each, weight.shape[1]).sum(1) if even else index_add(zeros, 0, bag, rows)
    if mode == "sum":
        return out
    if counted is None and even:
        return out / each
    ones = creation.ones(len(chosen), 1, dtype=weight.dtype) if counted is None else counted.to(weight.dtype)
    return out / clamp(ones.reshape(bags, each, 1).sum(1) if even else index_add(zeros[:, :1], 0, bag, ones), 1)
