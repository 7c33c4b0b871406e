"""Which functions are methods of Tensor, and which serve the rules of the table.

Relies on every module of operations. The package's __init__ imports it; functions and methods are the same objects.
"""

from ..array.dtypes import DTYPES
from ..array.dtypes import bool as bool_dtype
from ..array.dtypes import float32, float64, int32, int64, uint8
from ..array.errors import ArgumentError
from ..ops import TABLE
from . import (
    arrange, backward, blocks, choose, composed, copies, creation, elementwise, gather, generators, hooks, index, indexing, joins,
    linear_names, making, manners, matrix_products, named_products, printing, products, reduce, scans, shape, sorting,
    statistics, types, windows,
)
from .arguments import need_tensor
from .devices import CPU
from .gradients import FUNCTIONS
from .choose import add, add_, clamp, clamp_, isclose, masked_fill, masked_fill_, pow, pow_, prelu, sub, sub_, where
from .tensor import Tensor, put_into_type


# ---- arithmetic with PyTorch's extra arguments

def div(input, other, *, rounding_mode=None):
    """a / b; rounding_mode "floor" or "trunc" rounds the quotient."""
    if rounding_mode is None:
        return elementwise.div(input, other)
    if rounding_mode == "floor":
        return elementwise.floor_divide(input, other)
    if rounding_mode == "trunc":
        quotient = elementwise.trunc(elementwise.div(input, other))
        integers = not any(isinstance(v, float) or (isinstance(v, Tensor) and v.is_floating_point()) for v in (input, other))
        return shape.convert(quotient, int64 if not isinstance(input, Tensor) else input.dtype) if integers else quotient
    raise ArgumentError(f"div: rounding_mode must be None, \"floor\" or \"trunc\", got {rounding_mode!r}")


def div_(input, other, *, rounding_mode=None):
    """In place: a / b; rounding_mode "floor" or "trunc" rounds the quotient."""
    if rounding_mode is None:
        return elementwise.div_(input, other)
    return copies.store_(input, div(input, other, rounding_mode=rounding_mode), "div_")


# ---- in place, filled

def uniform_(self, a=0.0, b=1.0, *, generator=None):
    """Every element drawn uniformly from [a, b)."""
    return generators.random_fill(self, generator, "uniform", a, b)


def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Every element drawn from the normal distribution."""
    return generators.random_fill(self, generator, "normal", mean, std)


def detach_(self):
    """Forget the history, in place: the tensor becomes a leaf that requires no gradient. RuntimeError for views."""
    return copies.drop_history(self)


# ---- conversions

def _converter(dtype):
    def convert(self, *, memory_format=None):
        return shape.convert(self, dtype)
    convert.__doc__ = f"In dtype {dtype.name}."
    return convert


def type_(self, dtype=None, non_blocking=False):
    """In another dtype, which an older script's type of tensors may name; without one, the name of its own: "torch.FloatTensor"."""
    return types.typename(self) if dtype is None else shape.convert(self, types.of_type(dtype))


def type_as(self, other):
    """In the dtype of `other`."""
    return shape.convert(self, other.dtype)


# ---- Python's protocols

def _copied(self):
    raise RuntimeError("only leaf tensors can be deep-copied or pickled, as a history can't be; use detach()")


def __deepcopy__(self, memo):
    if not self.is_leaf:
        _copied(self)
    if id(self) in memo:
        return memo[id(self)]
    made = _rebuild(type(self), copies.copied_with_storage(self, memo), self.requires_grad)
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = self.grad.__deepcopy__(memo)
    return made


def __copy__(self):
    return _rebuild(type(self), self, self.requires_grad) if self.is_leaf else shape.view(self, self.shape)


def _rebuild(cls, data, requires_grad):
    return Tensor._make_subclass(cls, data, requires_grad)


def _from_bytes(cls, data, sizes, dtype, requires_grad):
    import numpy as np
    values = creation.tensor(np.frombuffer(data, dtype=dtype).reshape(sizes))
    return _rebuild(cls, values, requires_grad)


def __reduce_ex__(self, protocol):
    if not self.is_leaf:
        _copied(self)
    creation.escapes("pickling")
    values = creation.numpy(shape.contiguous_tensor(shape.detach(self)))
    return _from_bytes, (type(self), values.tobytes(), self.shape, self.dtype.name, self.requires_grad)


def __dlpack__(self, **kwargs):
    creation.escapes("__dlpack__()")
    return creation.numpy(self).__dlpack__(**kwargs)


def __dlpack_device__(self):
    return (1, 0)


def from_dlpack(x):
    """A tensor on the memory of any object that offers DLPack on the CPU."""
    import numpy as np
    return creation.from_numpy(np.from_dlpack(x))


def __format__(self, spec):
    if not spec:
        return repr(self)
    if self.ndim:
        raise TypeError(f"a format applies to tensors of 0 dimensions, not to one of shape {self.shape}")
    creation.escapes("format()")
    return format(self.item(), spec)


def apply_named(name, args):
    """Run the operation that a rule calls on tensors."""
    return FUNCTIONS[name](*args)


def _linear(name):
    """A function of linear algebra, which is imported when first asked for, and then takes this one's place in FUNCTIONS."""
    def call(*args):
        from . import matrix_functions  # noqa: F401
        return FUNCTIONS[name](*args)
    return call


def _rule_where(condition, a, b):
    if isinstance(condition, bool):
        return a if condition else b
    return where(condition, a, b)


_ELEMENTWISE = [row.name for row in TABLE.values() if row.kind == "elementwise" and row.public]
UNARY = [name for name in _ELEMENTWISE if TABLE[name].inputs == ("x",) and TABLE[name].result == "same"]
METHODS = {name: getattr(elementwise, name) for name in _ELEMENTWISE}
METHODS |= {name + "_": getattr(elementwise, name + "_") for name in _ELEMENTWISE if TABLE[name].result == "same"}
METHODS |= {f.__name__: f for f in (
    add, sub, add_, sub_, pow, pow_, div, div_, copies.fill_, copies.zero_, uniform_, normal_, detach_, copies.to, type_as, shape.view_as,
    shape.reshape_as, shape.expand_as, shape.broadcast_to, __deepcopy__, __copy__, __reduce_ex__, __dlpack__, __dlpack_device__, __format__,
    clamp, clamp_, masked_fill, masked_fill_, choose.logit, choose.logit_, choose.nan_to_num, choose.nan_to_num_, choose.polygamma_,
    choose.round, choose.round_,
    isclose, composed.allclose, composed.ldexp, composed.ldexp_, composed.positive, prelu, composed.float_power,
    composed.angle, composed.frexp, composed.isreal, composed.renorm, composed.gcd, composed.lcm, types.equal,
    elementwise.i0, elementwise.i0_,
    shape.reshape, shape.view, shape.permute, shape.transpose, shape.t, shape.movedim, shape.flatten, shape.squeeze, shape.unsqueeze,
    shape.expand, shape.clone, shape.detach, copies.copy_, joins.split, joins.chunk, joins.unbind,
    reduce.sum, reduce.mean, reduce.prod, reduce.amax, reduce.amin, reduce.max, reduce.min, reduce.argmax, reduce.argmin, reduce.any,
    reduce.all, reduce.var, reduce.std, reduce.logsumexp, reduce.norm, reduce.softmax, reduce.log_softmax,
    products.matmul, named_products.mm, named_products.bmm, named_products.mv, named_products.dot,
    *(getattr(matrix_products, name) for name in matrix_products.__all__
      if name not in ("cdist", "chain_matmul", "einsum", "pdist", "tensordot", "vander")),
    *(getattr(linear_names, name) for name in linear_names.__all__ if name not in ("lu_unpack", "pca_lowrank", "svd_lowrank")),
    gather.gather, index.nonzero, creation.numpy, creation.__array__, creation.tolist,
    generators.bernoulli,
    scans.cumsum, scans.cumsum_, scans.cumprod, scans.cumprod_, scans.cummax, scans.cummin, scans.logcumsumexp,
    sorting.sort, sorting.argsort, sorting.msort, sorting.topk, sorting.kthvalue, sorting.median, sorting.nanmedian, sorting.mode,
    reduce.nansum, scans.nanmean, statistics.count_nonzero, scans.aminmax, sorting.quantile, sorting.nanquantile,
    statistics.unique, statistics.unique_consecutive, statistics.bincount, statistics.histc, statistics.histogram, statistics.argwhere,
    statistics.diff,
)}
METHODS |= {f.__name__: f for f in (hooks.register_hook, hooks.register_post_accumulate_grad_hook)}
METHODS |= {"contiguous": shape.contiguous_tensor, "swapaxes": shape.transpose, "expit": elementwise.sigmoid, "ger": matrix_products.outer,
            "polygamma": choose.polygamma_method, "mvlgamma": composed.multigammaln,
            "igamma": elementwise.gammainc, "igammac": elementwise.gammaincc,
            "igamma_": elementwise.gammainc_, "igammac_": elementwise.gammaincc_,
            "clip": clamp, "clip_": clamp_,
            "backward": backward.tensor_backward, "_repr": printing.tensor_repr,
            "T": property(shape.reversed_axes), "mT": property(shape.swap_axes),
            "data": property(shape.detach, lambda self, value: copies.set_data(self, value)),
            "device": property(lambda self: CPU), "is_cuda": property(lambda self: False), "is_cpu": property(lambda self: True),
            "type": type_, "pin_memory": lambda self: self,
            "get_device": lambda self: -1, "is_pinned": lambda self: False, "is_shared": lambda self: False,
            "share_memory_": lambda self: self,
            "narrow_copy": lambda self, dim, start, length: shape.narrow(self, dim, start, length).clone(),
            **{name: getattr(types, name) for name in (
                "is_complex", "is_conj", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed")},
            **dict.fromkeys(("conj", "conj_physical", "conj_physical_", "resolve_conj", "resolve_neg"), composed.real),
            "nelement": Tensor.numel, "ndimension": Tensor.dim,
            "cpu": lambda self: self, "where": lambda self, condition, other: where(condition, self, other),
            "float": _converter(float32), "double": _converter(float64), "long": _converter(int64), "int": _converter(int32),
            "byte": _converter(uint8), "bool": _converter(bool_dtype), "__apply__": staticmethod(apply_named)}


def _in_place(function, name):
    """The form in place of a function that has no loop for it; the result is written in the tensor's own dtype."""
    def in_place(self, *args, **options):
        before = indexing.kept_values(need_tensor(self, name + "_"), (*args, *options.values()))
        return copies.store_(self, function(before, *args, **options), name + "_")
    in_place.__name__ = in_place.__qualname__ = name + "_"
    in_place.__doc__, in_place.__wrapped__ = f"In place: {name}.", function
    return in_place


METHODS |= {name + "_": _in_place(METHODS[name], name) for name in (
    *(name for name in _ELEMENTWISE if TABLE[name].result == "bool" and TABLE[name].has_form_in_place),
    "float_power", "gcd", "lcm", "mvlgamma", "renorm", "addbmm", "addmm", "addmv", "addr", "baddbmm")}

METHODS |= {f.__name__: f for f in (
    shape.select, shape.narrow, shape.unflatten, shape.adjoint, windows.diagonal, windows.unfold, windows.as_strided,
    blocks.repeat, blocks.tile, blocks.repeat_interleave, blocks.flip, arrange.fliplr, arrange.flipud, blocks.roll, blocks.rot90,
    shape.ravel, joins.tensor_split, arrange.hsplit, arrange.vsplit, arrange.dsplit, windows.diag, windows.diag_embed, arrange.diagflat,
    windows.diagonal_scatter, windows.select_scatter, windows.slice_scatter, windows.tril, windows.triu, arrange.tril_, arrange.triu_,
    arrange.t_, arrange.transpose_, arrange.squeeze_, arrange.unsqueeze_, arrange.resize_,
    gather.index_select, gather.index_add, gather.index_add_, gather.index_copy, gather.index_copy_, gather.index_fill, gather.index_fill_,
    gather.scatter, gather.scatter_, gather.scatter_add, gather.scatter_add_, index.index_put_, index.index_put,
    indexing.scatter_reduce, indexing.scatter_reduce_, indexing.index_reduce, indexing.index_reduce_, index.take,
    gather.take_along_dim,
    index.put_, index.put, index.masked_select, index.masked_scatter, index.masked_scatter_,
    *making.METHODS, *manners.METHODS,
)}
METHODS |= {f.__name__: f for f in (
    composed.dist, choose.clamp_min, choose.clamp_max, composed.clamp_min_, composed.clamp_max_, composed.sum_to_size,
    composed.fill_diagonal_,
)}
METHODS |= {"moveaxis": shape.movedim, "swapdims": shape.transpose, "swapaxes_": arrange.transpose_, "swapdims_": arrange.transpose_,
            "split_with_sizes": joins.split, "H": property(shape.matrix_H), "mH": property(shape.adjoint)}

for _other, _name in {
        "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
        "arctanh": "atanh", "fix": "trunc", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "negative": "neg",
        "absolute": "abs", "sgn": "sign", "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne",
}.items():
    METHODS |= {_other: METHODS[_name], _other + "_": METHODS[_name + "_"]}

for _name, _function in METHODS.items():
    put_into_type(_name, _function)

FUNCTIONS.update({name: METHODS[name] for name in _ELEMENTWISE})
FUNCTIONS.update({name: getattr(elementwise, name) for name, row in TABLE.items() if row.rare})
FUNCTIONS.update({
    "where": _rule_where, "pow": choose.pow_row, "polygamma": choose.polygamma_row, "trigamma": choose.trigamma,
    "normal_cdf": choose.normal_cdf, "matmul": products.matmul, "cross_rows": named_products.cross_rows,
    "swap_axes": shape.swap_axes, "reshape": shape.reshape,
    "expand": shape.expand,
    "permute": shape.permute, "sum_to": shape.sum_to, "total": reduce.total, "spread": reduce.spread, "gather": gather.rule_gather,
    "put": gather.put_back, "slice": shape.slice_axes, "unslice": shape.unslice, "index": index.index, "index_back": index.index_back,
    "index_fill": index.put_number, "as_strided": windows.strided_copy, "as_strided_back": windows.as_strided_back,
    "fill_strided": windows.fill_strided, "concatenate": joins.cat, "pieces": joins.pieces,
    "cross_entropy_back": composed.cross_entropy_back, "output_shapes": arrange.output_shapes, "clone": shape.clone,
    "diagonal_back": windows.diagonal_back, "unfold_back": windows.unfold_back, "triangle": windows.triangle, "stack": joins.stack,
    "diagonal": windows.diagonal, "unbind": joins.unbind, "flip": blocks.flip, "roll": blocks.roll, "pad": blocks.padded,
    "scatter_kept": indexing.scatter_kept, "index_kept": indexing.index_kept, "scatter_zero": gather.scatter_zero,
    "scatter_dx": indexing.scatter_dx, "scatter_dv": indexing.scatter_dv,
    "embedding_back": indexing.embedding_back,
    "convert": lambda x, code: shape.convert(x, DTYPES[code]), "zeros": creation.zeros_code, "ones": creation.ones_code,
    "full_like": creation.full_like, "arange": creation.arange, "add_": elementwise.add_,
    "powers": named_products.powers, "cumulate": scans.cumulate, "cumprod": scans.cumprod, "recurrence": scans.recurrence,
})
FUNCTIONS.update({name: _linear(name) for name in (
    "band", "cofactor", "det", "inverse_or_inf", "matrix_exp", "permutation_matrix", "pinv", "solve_again", "solve_triangular", "svd")})
