# Types of the package's public names.
#
# Relies on the stubs of the layers. Users' type checkers rely on it. The functions of elementwise rows are a section that
# ops/stubs.py writes; what is imported outside it is not written there.
#
# Above 500 lines because every public name has its line.

from builtins import float as _float
from builtins import str as _str

from . import autograd as autograd
from . import data as data
from . import func as func
from . import graph as graph
from . import linalg as linalg
from . import testing as testing
from . import random as random
from . import special as special
from . import nn as nn
from . import ops as ops
from . import optim as optim
from . import tools as tools
from . import utils as utils
from .array.dtypes import (
    DTYPES as DTYPES, bool as bool, double as double, float as float, float32 as float32, float64 as float64, int as int, int32 as int32,
    int64 as int64, long as long, uint8 as uint8,
)
from .array.dtypes import DType as _DType
from .array.storage import (
    empty_cache as empty_cache, memory_stats as memory_stats, set_cache_limit as set_cache_limit,
)
from .engine.backward import get_engine as get_engine, set_engine as set_engine
from .engine.function import custom_op as custom_op
from .engine.choose import (
    add as add, clamp as clamp, clamp_ as clamp_, clamp_max as clamp_max, clamp_min as clamp_min, isclose as isclose, logit as logit,
    logit_ as logit_, masked_fill as masked_fill, nan_to_num as nan_to_num, nan_to_num_ as nan_to_num_, polygamma as polygamma, pow as pow,
    prelu as prelu, round as round, round_ as round_, sub as sub, where as where,
)
from .engine.choose import clamp as _clamp
from .engine.composed import (
    fill as fill, allclose as allclose, angle as angle, clamp_max_ as clamp_max_, clamp_min_ as clamp_min_, dist as dist,
    float_power as float_power, frexp as frexp, gcd as gcd, gradient as gradient, isreal as isreal, lcm as lcm, ldexp as ldexp,
    ldexp_ as ldexp_, positive as positive, real as real, renorm as renorm, unravel_index as unravel_index, rsub as rsub,
)
from .engine.composed import multigammaln as _multigammaln
from .engine.creation import (
    arange as arange, as_tensor as as_tensor, asarray as asarray, empty as empty, empty_like as empty_like, eye as eye,
    from_numpy as from_numpy, full as full, full_like as full_like, linspace as linspace, ones as ones, ones_like as ones_like,
    tensor as tensor, zeros as zeros, zeros_like as zeros_like,
)
from .engine.devices import (
    get_num_interop_threads as get_num_interop_threads, set_flush_denormal as set_flush_denormal,
    set_num_interop_threads as set_num_interop_threads, accelerator as accelerator, backends as backends, cuda as cuda, device as device,
    get_default_device as get_default_device, mps as mps, set_default_device as set_default_device,
    set_float32_matmul_precision as set_float32_matmul_precision, use_deterministic_algorithms as use_deterministic_algorithms,
)
from .nn.functional import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, avg_pool1d as avg_pool1d, channel_shuffle as channel_shuffle, rrelu as rrelu,
    rrelu_ as rrelu_, batch_norm as batch_norm, bilinear as bilinear, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    cosine_similarity as cosine_similarity, group_norm as group_norm, instance_norm as instance_norm, kl_div as kl_div,
    layer_norm as layer_norm, max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d,
    pairwise_distance as pairwise_distance, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, rms_norm as rms_norm,
)
from .nn.front import (
    alpha_dropout as alpha_dropout, alpha_dropout_ as alpha_dropout_,
    constant_pad_nd as constant_pad_nd, dropout as dropout, dropout_ as dropout_, embedding as embedding,
    feature_alpha_dropout as feature_alpha_dropout, feature_alpha_dropout_ as feature_alpha_dropout_, feature_dropout as feature_dropout,
    feature_dropout_ as feature_dropout_,
)
from .engine.hooks import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled
from .engine.hooks import set_detect_anomaly as _set_detect_anomaly
from .engine.signals import (
    bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window, hann_window as hann_window,
    kaiser_window as kaiser_window,
)
from .func import vmap as vmap
from .serialization import load as load, save as save
from .engine.making import (
    binomial as binomial, BoolTensor as BoolTensor, ByteTensor as ByteTensor, DoubleTensor as DoubleTensor, FloatTensor as FloatTensor,
    IntTensor as IntTensor, LongTensor as LongTensor, empty_strided as empty_strided, frombuffer as frombuffer,
    get_rng_state as get_rng_state, initial_seed as initial_seed, logspace as logspace, multinomial as multinomial, normal as normal,
    poisson as poisson, randint_like as randint_like, scalar_tensor as scalar_tensor, seed as seed, set_rng_state as set_rng_state,
)
from .engine.operands import get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype
from .engine.gather import (
    gather as gather, index_add as index_add, index_copy as index_copy, index_fill as index_fill, index_select as index_select,
    scatter as scatter, scatter_add as scatter_add, take_along_dim as take_along_dim,
)
from .engine.index import (
    nonzero as nonzero, index_put as index_put, index_put_ as index_put_, masked_scatter as masked_scatter, masked_select as masked_select,
    put as put, take as take,
)
from .engine.joins import (
    block_diag as block_diag, cat as cat, chunk as chunk, split as split, stack as stack, unbind as unbind, atleast_1d as atleast_1d,
    atleast_2d as atleast_2d, atleast_3d as atleast_3d, broadcast_tensors as broadcast_tensors, cartesian_prod as cartesian_prod,
    column_stack as column_stack,
    dstack as dstack, hstack as hstack, meshgrid as meshgrid, tensor_split as tensor_split, vstack as vstack,
)
from .engine.joins import cat as _cat, split as _split, vstack as _vstack
from .engine.methods import div as div, from_dlpack as from_dlpack
from .engine.methods import div as _div
from .engine.shape import (
    broadcast_to as broadcast_to, clone as clone, detach as detach, expand as expand, flatten as flatten, movedim as movedim,
    permute as permute, reshape as reshape, squeeze as squeeze, t as t, transpose as transpose, unsqueeze as unsqueeze, ravel as ravel,
    adjoint as adjoint, unflatten as unflatten, narrow as narrow, select as select,
)
from .engine.shape import transpose as _transpose, movedim as _movedim
from .engine.printing import set_printoptions as set_printoptions
from .engine.linear_names import (
    cholesky as cholesky, cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, det as det, inverse as inverse,
    logdet as logdet, lu_solve as lu_solve, lu_unpack as lu_unpack, matrix_exp as matrix_exp, matrix_power as matrix_power,
    pca_lowrank as pca_lowrank, pinverse as pinverse, svd_lowrank as svd_lowrank, qr as qr, slogdet as slogdet, svd as svd,
    triangular_solve as triangular_solve,
)
from .engine.matrix_products import (
    addbmm as addbmm, addmv as addmv, addr as addr, baddbmm as baddbmm, cdist as cdist, chain_matmul as chain_matmul, corrcoef as corrcoef,
    cov as cov, cross as cross, ger as ger, inner as inner, pdist as pdist, tensordot as tensordot, vander as vander, vdot as vdot,
)
from .engine.named_products import (
    addmm as addmm, bmm as bmm, dot as dot, einsum as einsum, kron as kron, mm as mm, mv as mv, outer as outer, trace as trace,
)
from .engine.modes import (
    enable_grad as enable_grad, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)
from .engine.node import set_record_lines as set_record_lines
from .engine.products import linear as linear, matmul as matmul
from .engine.generators import (
    Generator as Generator, bernoulli as bernoulli, manual_seed as manual_seed, rand as rand, rand_like as rand_like, randint as randint,
    randn as randn, randn_like as randn_like, randperm as randperm,
)
from .engine.reduce import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, log_softmax as log_softmax,
    logsumexp as logsumexp, max as max, mean as mean, min as min, nansum as nansum, norm as norm, prod as prod, softmax as softmax,
    std as std, sum as sum, var as var,
)
from .engine.scans import (
    aminmax as aminmax, cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum, logcumsumexp as logcumsumexp,
    nanmean as nanmean, std_mean as std_mean, var_mean as var_mean,
)
from .engine.elementwise import i0 as i0
from .engine.elementwise import (
    gammainc as _gammainc, gammaincc as _gammaincc, mul as _mul, neg as _neg, abs as _abs, gt as _gt, lt as _lt, ne as _ne, asin as _asin,
    acos as _acos, atan as _atan, atan2 as _atan2, asinh as _asinh, acosh as _acosh, atanh as _atanh, trunc as _trunc, ge as _ge, le as _le,
    sign as _sign, sub as _sub,
)
from .engine.sorting import (
    argsort as argsort, bucketize as bucketize, kthvalue as kthvalue, median as median, mode as mode, msort as msort,
    nanmedian as nanmedian, searchsorted as searchsorted, sort as sort, topk as topk,
)
from .engine.statistics import (
    argwhere as argwhere, bincount as bincount, count_nonzero as count_nonzero, cumulative_trapezoid as cumulative_trapezoid, diff as diff,
    histc as histc, histogram as histogram, isin as isin, nanquantile as nanquantile, quantile as quantile, trapezoid as trapezoid,
    trapz as trapz, unique as unique, unique_consecutive as unique_consecutive,
)
from .engine.tensor import Tensor as Tensor
from .engine.types import (
    is_conj as is_conj, is_inference as is_inference, is_neg as is_neg, is_same_size as is_same_size, is_signed as is_signed,
    set_default_tensor_type as set_default_tensor_type, typename as typename, can_cast as can_cast, equal as equal, finfo as finfo,
    iinfo as iinfo, is_complex as is_complex, is_floating_point as is_floating_point, is_nonzero as is_nonzero, is_tensor as is_tensor,
    numel as numel, promote_types as promote_types, result_type as result_type,
)
from .graph import (
    compile as compile, cond as cond, scan as scan, while_loop as while_loop,
)
from .graph.explain import explain_grad as explain_grad
from .kernels.gemm import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from .engine.arrange import (
    broadcast_shapes as broadcast_shapes, combinations as combinations, diagflat as diagflat,
    dsplit as dsplit, fliplr as fliplr, flipud as flipud, hsplit as hsplit,
    tril_indices as tril_indices, triu_indices as triu_indices, vsplit as vsplit,
)
from .engine.windows import (
    diagonal_scatter as diagonal_scatter, select_scatter as select_scatter, slice_scatter as slice_scatter, diag as diag,
    diag_embed as diag_embed, tril as tril, triu as triu, as_strided as as_strided, diagonal as diagonal,
)
from .engine.blocks import (
    flip as flip, repeat_interleave as repeat_interleave, roll as roll, rot90 as rot90, tile as tile,
)
from .engine.indexing import index_reduce as index_reduce, scatter_reduce as scatter_reduce
# elementwise rows: begin (written by ops/stubs.py)
from .engine.elementwise import (
    mul as mul, floor_divide as floor_divide, remainder as remainder, fmod as fmod, neg as neg, abs as abs, sign as sign, square as square,
    sqrt as sqrt, rsqrt as rsqrt, reciprocal as reciprocal, deg2rad as deg2rad, rad2deg as rad2deg, hypot as hypot, lerp as lerp,
    addcmul as addcmul, addcdiv as addcdiv, exp as exp, expm1 as expm1, exp2 as exp2, log as log, log2 as log2, log10 as log10,
    log1p as log1p, sin as sin, cos as cos, tan as tan, sinh as sinh, cosh as cosh, tanh as tanh, asin as asin, acos as acos, atan as atan,
    asinh as asinh, acosh as acosh, atanh as atanh, sinc as sinc, logaddexp as logaddexp, logaddexp2 as logaddexp2, xlogy as xlogy,
    xlog1py as xlog1py, atan2 as atan2, erf as erf, erfc as erfc, erfinv as erfinv, lgamma as lgamma, digamma as digamma,
    sigmoid as sigmoid, logsigmoid as logsigmoid, relu as relu, leaky_relu as leaky_relu, elu as elu, selu as selu, celu as celu,
    relu6 as relu6, hardtanh as hardtanh, hardsigmoid as hardsigmoid, hardswish as hardswish, threshold as threshold,
    hardshrink as hardshrink, softshrink as softshrink, tanhshrink as tanhshrink, softsign as softsign, mish as mish, gelu as gelu,
    gelu_tanh as gelu_tanh, silu as silu, softplus as softplus, maximum as maximum, minimum as minimum, fmax as fmax, fmin as fmin,
    floor as floor, ceil as ceil, trunc as trunc, frac as frac, copysign as copysign, heaviside as heaviside, nextafter as nextafter,
    eq as eq, ne as ne, lt as lt, le as le, gt as gt, ge as ge, logical_and as logical_and, logical_or as logical_or,
    logical_xor as logical_xor, logical_not as logical_not, bitwise_and as bitwise_and, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, bitwise_not as bitwise_not, isnan as isnan, isinf as isinf, isfinite as isfinite, isposinf as isposinf,
    isneginf as isneginf, signbit as signbit, bitwise_left_shift as bitwise_left_shift, bitwise_right_shift as bitwise_right_shift,
    cbrt as cbrt, neg_ as neg_, abs_ as abs_, sign_ as sign_, square_ as square_, sqrt_ as sqrt_, rsqrt_ as rsqrt_,
    reciprocal_ as reciprocal_, deg2rad_ as deg2rad_, rad2deg_ as rad2deg_, exp_ as exp_, expm1_ as expm1_, exp2_ as exp2_, log_ as log_,
    log2_ as log2_, log10_ as log10_, log1p_ as log1p_, sin_ as sin_, cos_ as cos_, tan_ as tan_, sinh_ as sinh_, cosh_ as cosh_,
    tanh_ as tanh_, asin_ as asin_, acos_ as acos_, atan_ as atan_, asinh_ as asinh_, acosh_ as acosh_, atanh_ as atanh_, sinc_ as sinc_,
    erf_ as erf_, erfc_ as erfc_, erfinv_ as erfinv_, lgamma_ as lgamma_, digamma_ as digamma_, sigmoid_ as sigmoid_,
    logsigmoid_ as logsigmoid_, relu_ as relu_, leaky_relu_ as leaky_relu_, elu_ as elu_, selu_ as selu_, celu_ as celu_, relu6_ as relu6_,
    hardtanh_ as hardtanh_, hardsigmoid_ as hardsigmoid_, hardswish_ as hardswish_, threshold_ as threshold_, hardshrink_ as hardshrink_,
    softshrink_ as softshrink_, tanhshrink_ as tanhshrink_, softsign_ as softsign_, mish_ as mish_, gelu_ as gelu_,
    gelu_tanh_ as gelu_tanh_, silu_ as silu_, softplus_ as softplus_, floor_ as floor_, ceil_ as ceil_, trunc_ as trunc_, frac_ as frac_,
    bitwise_not_ as bitwise_not_, cbrt_ as cbrt_,
)
# elementwise rows: end

__version__: _str
inf: _float
nan: _float
pi: _float
e: _float

# other names
dtype = _DType
multiply = _mul
negative = _neg
absolute = _abs
arcsin = _asin
arccos = _acos
arctan = _atan
arctan2 = _atan2
arcsinh = _asinh
arccosh = _acosh
arctanh = _atanh
fix = _trunc
greater = _gt
greater_equal = _ge
less_equal = _le
sgn = _sign
mvlgamma = _multigammaln
igamma = _gammainc
igammac = _gammaincc
inference_mode = no_grad
newaxis: None
less = _lt
not_equal = _ne
subtract = _sub
divide = _div
true_divide = _div
swapaxes = _transpose
concat = _cat
concatenate = _cat
clip = _clamp
row_stack = _vstack
moveaxis = _movedim
swapdims = _transpose
split_with_sizes = _split
conj = real
conj_physical = real
conj_physical_ = real
resolve_conj = real
resolve_neg = real
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
clip_ = Tensor.clip_
detach_ = Tensor.detach_
fill_ = Tensor.fill_
fix_ = Tensor.fix_
gcd_ = gcd
i0_ = Tensor.i0_
lcm_ = lcm
negative_ = Tensor.negative_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_
set_anomaly_enabled = _set_detect_anomaly
Size = tuple
contiguous_format: _str
preserve_format: _str
channels_last: _str
