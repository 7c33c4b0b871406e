"""autograd_cy: PyTorch's habits at a hundredth of its overhead, on CPUs.

Relies on NumPy, and on SciPy's BLAS from the first large product on. Everything public is reachable from here.
"""

from importlib import import_module as _import

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
    add, celu, clamp, clamp_, clamp_max, clamp_min, isclose, logit, logit_, masked_fill, nan_to_num, nan_to_num_, polygamma, pow, prelu,
    round, round_, sub, where,
)
from .engine.composed import (
    allclose, angle, clamp_max_, clamp_min_, dist, fill, float_power, frexp, gcd, gradient, isreal, lcm, ldexp, ldexp_, positive, real,
    renorm, rsub, unravel_index,
)
from .engine.composed import multigammaln as mvlgamma
from .engine.convolve import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .engine.creation import (
    arange, as_tensor, asarray, empty, empty_like, eye, from_numpy, full, full_like, linspace, ones, ones_like, tensor, zeros, zeros_like,
)
from .engine.devices import (
    accelerator, backends, cuda, device, get_default_device, get_num_interop_threads, mps, set_default_device, set_float32_matmul_precision,
    set_flush_denormal, set_num_interop_threads, use_deterministic_algorithms,
)
from .engine.operands import get_default_dtype, set_default_dtype
from .engine.function import custom_op
from .engine.arrange import (
    broadcast_shapes, combinations, diagflat, fliplr, flipud,
    dsplit, hsplit, tril_indices, triu_indices, vsplit,
)
from .engine.blocks import flip, repeat_interleave, roll, rot90, tile
from .engine.gather import gather, index_add, index_copy, index_fill, index_select, scatter, scatter_add, take_along_dim
from .engine.hooks import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .engine.hooks import set_detect_anomaly as set_anomaly_enabled
from .engine.index import index_put, index_put_, masked_scatter, masked_select, nonzero, put, take
from .engine.indexing import index_reduce, scatter_reduce
from .engine.joins import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_tensors, cartesian_prod, cat, chunk, column_stack, dstack, hstack, meshgrid,
    split, stack, tensor_split, unbind, vstack,
)
from .engine.making import (
    BoolTensor, ByteTensor, DoubleTensor, FloatTensor, IntTensor, LongTensor,
    binomial, empty_strided, frombuffer, get_rng_state, initial_seed, logspace, multinomial, normal, poisson, randint_like, scalar_tensor,
    seed, set_rng_state,
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
from .engine.pooling import adaptive_avg_pool1d, avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from .engine.products import linear, matmul
from .engine.printing import set_printoptions
from .engine.generators import Generator, bernoulli, manual_seed, rand, rand_like, randint, randn, randn_like, randperm
from .engine.reduce import (
    all, amax, amin, any, argmax, argmin, log_softmax, logsumexp, max, mean, min, nansum, norm, prod, softmax, std, sum, var,
)
from .engine.resample import channel_shuffle, pixel_shuffle, pixel_unshuffle
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
    can_cast, equal, finfo, iinfo, is_complex, is_conj, is_floating_point, is_inference, is_neg, is_nonzero, is_same_size, is_signed,
    is_tensor, numel, promote_types, result_type, set_default_tensor_type, typename,
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
conj = conj_physical = conj_physical_ = resolve_conj = resolve_neg = real
for _name in (
        "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "clip", "detach", "fill", "fix", "gcd", "i0", "lcm", "negative",
        "xlogy", "zero"):
    globals()[f"{_name}_"] = _methods.METHODS[f"{_name}_"]
inf, nan, pi, e = 1e400, 1e400 - 1e400, 3.141592653589793, 2.718281828459045

Size = tuple
contiguous_format, preserve_format, channels_last = "contiguous_format", "preserve_format", "channels_last"


# Functions whose module is imported when the first of them is called.
def _from(module, name):
    def function(*args, **options):
        globals()[name] = found = getattr(_import(f"{__name__}.{module}"), name)
        return found(*args, **options)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{module}.{name}, of the same arguments."
    return function


for _module, _given in {
        "nn.functional": "bilinear cosine_similarity kl_div pairwise_distance rrelu rrelu_",
        "nn.front": "alpha_dropout alpha_dropout_ constant_pad_nd dropout dropout_ embedding feature_alpha_dropout "
                    "feature_alpha_dropout_ feature_dropout feature_dropout_",
        "serialization": "load save", "func": "vmap", "graph": "cond scan while_loop", "graph.explain": "explain_grad",
        "engine.signals": "bartlett_window blackman_window hamming_window hann_window kaiser_window"}.items():
    for _name in _given.split():
        globals()[_name] = _from(_module, _name)


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
