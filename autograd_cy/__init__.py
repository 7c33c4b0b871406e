"""autograd_cy: PyTorch's habits at a hundredth of its overhead, on CPUs.

Relies on NumPy, and on SciPy's BLAS from the first large product on. Everything public is reachable from here.
"""

from . import _libraries  # tells where the compiled modules are
from . import kernels  # chooses and loads the loops before anything runs them
from ._later import Later as _Later
from .array.dtypes import DType as dtype
from .array.dtypes import DTYPES, bool, double, float, float32, float64, int, int32, int64, long, uint8
from .array.storage import empty_cache, memory_stats, set_cache_limit
from .engine import read_table as _read_table  # before anything runs
from .engine import elementwise as _elementwise
from .engine import methods as _methods
from .engine.backward import get_engine, set_engine
from .engine.choose import (
    add, clamp, clamp_max, clamp_min, isclose, logit, masked_fill, nan_to_num, polygamma, prelu, round, round_, sub, where,
)
from .engine.composed import (
    allclose, angle, clamp_max_, clamp_min_, dist, float_power, frexp, gcd, gradient, isreal, lcm, ldexp, positive, real, renorm, rsub,
    unravel_index,
)
from .engine.composed import multigammaln as mvlgamma
from .engine.convolve import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .engine.creation import (
    arange, as_tensor, asarray, empty, empty_like, eye, from_numpy, full, full_like, linspace, ones, ones_like, tensor, zeros, zeros_like,
)
from .engine.devices import (
    accelerator, backends, cuda, device, get_default_device, mps, set_default_device, set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from .engine.operands import get_default_dtype, set_default_dtype
from .engine.function import custom_op
from .engine.arrange import (
    broadcast_shapes, combinations, diagflat, fliplr, flipud,
    dsplit, hsplit, tril_indices, triu_indices, vsplit,
)
from .engine.blocks import flip, repeat_interleave, roll, rot90, tile
from .engine.gather import gather, index_add, index_copy, index_fill, index_select, scatter, scatter_add, take_along_dim
from .engine.index import index_put, index_put_, masked_scatter, masked_select, nonzero, put, take
from .engine.indexing import index_reduce, scatter_reduce
from .engine.joins import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_tensors, cartesian_prod, cat, chunk, column_stack, dstack, hstack, meshgrid, split,
    stack, tensor_split, unbind, vstack,
)
from .engine.making import (
    BoolTensor, ByteTensor, DoubleTensor, FloatTensor, IntTensor, LongTensor,
    empty_strided, frombuffer, get_rng_state, initial_seed, logspace, multinomial, normal, poisson, randint_like, scalar_tensor, seed,
    set_rng_state,
)
from .engine.methods import div, from_dlpack
from .engine.linear_names import (
    cholesky, cholesky_inverse, cholesky_solve, det, inverse, logdet, lu_solve, lu_unpack, matrix_exp, matrix_power, pca_lowrank, pinverse,
    qr, slogdet, svd, svd_lowrank, triangular_solve,
)
from .engine.matrix_products import (
    addbmm, addmm, addmv, addr, baddbmm, cdist, chain_matmul, corrcoef, cov, cross, einsum, ger, inner, kron, outer, pdist, tensordot,
    trace, vander, vdot,
)
from .engine.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .engine.node import set_record_lines
from .engine.named_products import bmm, dot, mm, mv
from .engine.normalize import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from .engine.pooling import max_pool1d, max_pool2d, max_pool3d
from .engine.products import linear, matmul
from .engine.printing import set_printoptions
from .engine.generators import Generator, bernoulli, manual_seed, rand, rand_like, randint, randn, randn_like, randperm
from .engine.reduce import (
    all, amax, amin, any, argmax, argmin, log_softmax, logsumexp, max, mean, min, nansum, norm, prod, softmax, std, sum, var,
)
from .engine.resample import pixel_shuffle, pixel_unshuffle
from .engine.elementwise import gammainc as igamma
from .engine.elementwise import gammaincc as igammac
from .engine.elementwise import i0
from .engine.scans import aminmax, cummax, cummin, cumprod, cumsum, logcumsumexp, nanmean, std_mean, var_mean
from .engine.shape import (
    adjoint, broadcast_to, clone, detach, expand, flatten, movedim, narrow, permute, ravel, reshape, select, squeeze, t, transpose,
    unflatten, unsqueeze,
)
from .engine.sorting import argsort, bucketize, kthvalue, median, mode, msort, nanmedian, searchsorted, sort, topk
from .engine.statistics import (
    argwhere, bincount, count_nonzero, cumulative_trapezoid, diff, histc, histogram, isin, nanquantile, quantile, trapezoid, trapz,
    unique, unique_consecutive,
)
from .engine.tensor import Tensor
from .engine.types import (
    can_cast, equal, finfo, iinfo, is_complex, is_floating_point, is_nonzero, is_tensor, numel, promote_types, result_type,
)
from .engine.windows import (
    as_strided, diag, diag_embed, diagonal, diagonal_scatter, select_scatter, slice_scatter, tril, triu,
)
from .kernels.gemm import get_num_threads, set_num_threads

__version__ = "0.1.0"

# The elementwise rows of the table, as functions: exp, tanh, maximum ...
_names = [n for n in _methods._ELEMENTWISE if n not in globals()]
globals().update({n: getattr(_elementwise, n) for n in _names})
globals().update({f"{n}_": getattr(_elementwise, f"{n}_") for n in _methods.UNARY if f"{n}_" not in globals()})
swapaxes, multiply, subtract, divide, true_divide, negative = transpose, _elementwise.mul, sub, div, div, _elementwise.neg
absolute, greater, less, not_equal, clip = _elementwise.abs, _elementwise.gt, _elementwise.lt, _elementwise.ne, clamp
concat = concatenate = cat
greater_equal, less_equal, sgn, inference_mode, newaxis = _elementwise.ge, _elementwise.le, _elementwise.sign, no_grad, None
row_stack, moveaxis, swapdims, split_with_sizes = vstack, movedim, transpose, split
arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh, fix = (
    _elementwise.asin, _elementwise.acos, _elementwise.atan, _elementwise.atan2, _elementwise.asinh, _elementwise.acosh, _elementwise.atanh,
    _elementwise.trunc)
inf, nan, pi, e = 1e400, 1e400 - 1e400, 3.141592653589793, 2.718281828459045

Size = tuple
contiguous_format, preserve_format, channels_last = "contiguous_format", "preserve_format", "channels_last"


def save(obj, f, *args, **options):
    """serialization.save: write tensors, state dictionaries or modules to a path or a file."""
    from .serialization import save

    globals()["save"] = save
    save(obj, f, *args, **options)


def load(f, *args, **options):
    """serialization.load: read what save wrote; weights_only=True (the default) reads no more than tensors and containers."""
    from .serialization import load

    globals()["load"] = load
    return load(f, *args, **options)


def vmap(func, *args, **options):
    """func.vmap: func over one more dimension of its arguments."""
    from .func import vmap

    globals()["vmap"] = vmap
    return vmap(func, *args, **options)


# Of torch.nn.functional, torch itself has these, too; nn is imported when the first of them is called.
def _of_functional(name):
    def function(*args, **options):
        from .nn import functional

        globals()[name] = found = getattr(functional, name)
        return found(*args, **options)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"nn.functional.{name}, of the same arguments."
    return function


for _name in ("bilinear", "cosine_similarity", "dropout", "kl_div", "pairwise_distance"):
    globals()[_name] = _of_functional(_name)


# What is seldom used is imported at its first use.
for _name in ("nn", "optim", "autograd"):
    globals()[_name] = _Later(f"{__name__}.{_name}")
__all__ = [n for n in dir() if not n.startswith("_")]
for _name in ("data", "utils", "tools", "testing", "linalg", "special", "random", "graph", "func"):
    if _name not in globals():
        globals()[_name] = _Later(f"{__name__}.{_name}")


def compile(step=None, *, fast=False, without=(), show=None):
    """graph.compile: make a function that replays `step` at the speed of the kernels in it."""
    from .graph import compile

    globals()["compile"] = compile
    return compile(step, fast=fast, without=without, show=show)


def explain_grad(loss, param):
    """graph.explain_grad: why `param` has no gradient, in a sentence; loss: the tensor, or a function that computes it."""
    from .graph.explain import explain_grad

    return explain_grad(loss, param)


def cond(pred, true_fn, false_fn, operands=()):
    """graph.cond: true_fn(*operands) if pred else false_fn(*operands), chosen anew at every replay of a captured step."""
    from . import graph

    return graph.cond(pred, true_fn, false_fn, operands)


def while_loop(cond_fn, body_fn, carried):
    """graph.while_loop: carried = body_fn(*carried) while cond_fn(*carried)."""
    from . import graph

    return graph.while_loop(cond_fn, body_fn, carried)


def scan(f, init, xs):
    """graph.scan: carry, y = f(carry, x) for every x along the first dimension of xs."""
    from . import graph

    return graph.scan(f, init, xs)
