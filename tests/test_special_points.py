"""Gradients where calculus leaves a choice or the formula breaks: kinks, ties, zeros, infinities, masked values.

Relies on autograd_cy's public names, the table and tests/numeric.py; nothing relies on it.
The values are PyTorch's, except masked gradients: ours are 0 where PyTorch's are NaN (0 times infinity).
"""

import math

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag
from autograd_cy.ops import TABLE

INF, NAN = math.inf, math.nan


def grad_of(f, values, dtype="f8", weight=None):
    x = leaf(np.asarray(values, dtype=dtype))
    y = f(x)
    (y.sum() if weight is None else (y * ag.tensor(np.asarray(weight, dtype=dtype))).sum()).backward()
    assert x.grad.dtype == x.dtype
    return x.grad


def _rotation(u, s, vh):
    """U Vh, which does not depend on the choice of vectors for equal singular values."""
    return u @ vh


def _reduced(x, reduce):
    return ag.zeros(1, dtype=x.dtype).scatter_reduce(0, ag.tensor([0, 0]), x, reduce, include_self=False)


ONE_INPUT = [  # name, f, x, gradient of sum(f(x))
    ("relu at 0", lambda x: ag.relu(x), [-1.0, 0.0, -0.0, 1.0], [0, 0, 0, 1]),
    ("leaky_relu at 0", lambda x: ag.nn.functional.leaky_relu(x, 0.1), [-1.0, 0.0, 1.0], [0.1, 0.1, 1]),
    ("elu at 0", lambda x: ag.nn.functional.elu(x), [0.0, 1.0, -INF], [1, 1, 0]),
    ("log_ndtr far out", ag.special.log_ndtr, [-1e8, -1e4, 40.0, INF], [1e8, 1e4 + 1e-4, 0, 0]),
    ("pdist at distance 0", lambda x: ag.pdist(x), [[1.0, 2.0], [1.0, 2.0]], [[0, 0], [0, 0]]),
    ("gelu at 0", lambda x: ag.nn.functional.gelu(x), [0.0], [0.5]),
    ("silu at 0", lambda x: ag.nn.functional.silu(x), [0.0], [0.5]),
    ("abs at 0", lambda x: x.abs(), [-2.0, 0.0, -0.0, 2.0], [-1, 0, 0, 1]),
    ("sign", lambda x: x.sign(), [-2.0, 0.0, 2.0], [0, 0, 0]),
    ("clamp at its bounds", lambda x: x.clamp(-1, 1), [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 1, 1, 0]),
    ("clamp of crossed bounds", lambda x: x.clamp(1, -1), [-2.0, 0.0, 2.0], [0, 0, 0]),
    ("sqrt at 0", lambda x: x.sqrt(), [0.0, 4.0], [INF, 0.25]),
    ("sqrt of a square at 0", lambda x: (x * x).sqrt(), [3.0], [1]),
    ("log at 0", lambda x: x.log(), [0.0, 2.0], [INF, 0.5]),
    ("reciprocal at 0", lambda x: 1 / x, [0.0, 2.0], [-INF, -0.25]),
    ("pow 0 at 0", lambda x: x**0, [0.0, 2.0, -1.0], [0, 0, 0]),
    ("pow 0.0 at 0", lambda x: x**0.0, [0.0, 2.0], [0, 0]),
    ("pow 1 at 0", lambda x: x**1, [0.0, 2.0], [1, 1]),
    ("pow 2 at 0", lambda x: x**2, [0.0, 2.0, -3.0], [0, 4, -6]),
    ("pow 3 at 0", lambda x: x**3, [0.0, -2.0], [0, 12]),
    ("pow 0.5 at 0", lambda x: x**0.5, [0.0, 4.0], [INF, 0.25]),
    ("pow -1 at 0", lambda x: x**-1, [0.0, 2.0], [-INF, -0.25]),
    ("number to the power", lambda x: 0.0**x, [0.0, 1.0, 2.0], [0, 0, 0]),
    ("2 to the power", lambda x: 2.0**x, [0.0, 3.0], [math.log(2), 8 * math.log(2)]),
    ("tanh saturated", lambda x: x.tanh(), [-100.0, 0.0, 100.0], [0, 1, 0]),
    ("sigmoid saturated", lambda x: x.sigmoid(), [-800.0, 0.0, 800.0, -INF, INF], [0, 0.25, 0, 0, 0]),
    ("softplus", lambda x: ag.nn.functional.softplus(x), [-800.0, 0.0, 800.0], [0, 0.5, 1]),
    ("atan at infinity", lambda x: x.atan(), [-INF, INF], [0, 0]),
    ("floor", lambda x: x.floor(), [-1.0, 0.0, 1.5], [0, 0, 0]),
    ("ceil", lambda x: x.ceil(), [-1.0, 0.0, 1.5], [0, 0, 0]),
    ("round", lambda x: x.round(), [-0.5, 0.0, 1.5], [0, 0, 0]),
    ("trunc", lambda x: x.trunc(), [-1.0, 0.0, 1.5], [0, 0, 0]),
    ("i0e at 0", lambda x: ag.special.i0e(x), [0.0, -0.0], [0, 0]),
    ("entr at and below 0", lambda x: ag.special.entr(x), [-1.0, 0.0, -0.0], [0, 0, 0]),
    ("spherical_bessel_j0", lambda x: ag.special.spherical_bessel_j0(x), [0.0, -0.0, INF], [0, 0, 0]),
    ("ndtri at 0 and 1", lambda x: ag.special.ndtri(x), [0.0, 0.5, 1.0], [INF, math.sqrt(2 * math.pi), INF]),
    ("nansum", lambda x: x.nansum(), [1.0, NAN, 2.0], [1, 0, 1]),
    ("nanmean", lambda x: x.nanmean(), [1.0, NAN, 2.0], [0.5, 0, 0.5]),
    ("cumprod with a zero", lambda x: x.cumprod(0), [2.0, 0.0, 3.0], [1, 8, 0]),
    ("logcumsumexp that begins with -inf", lambda x: x.logcumsumexp(0), [-INF, -INF, 0.0], [0, 0, 1]),
    ("cummax of equal values", lambda x: x.cummax(0).values, [1.0, 1.0, 0.0], [1, 2, 0]),
    ("cummin of equal values", lambda x: x.cummin(0).values, [1.0, 1.0, 2.0], [1, 2, 0]),
    ("kthvalue", lambda x: x.kthvalue(2).values, [3.0, 1.0, 2.0], [0, 0, 1]),
    ("median along a dim", lambda x: x.median(0).values, [1.0, 3.0, 2.0, 9.0], [0, 0, 1, 0]),
    ("median of all, ties", lambda x: x.median(), [1.0, 2.0, 2.0, 5.0], [0, 0.5, 0.5, 0]),
    ("nanmedian along a dim", lambda x: x.nanmedian(0).values, [1.0, NAN, 3.0, 2.0], [0, 0, 0, 1]),
    ("mode of different values", lambda x: x.mode(0).values, [5.0, 1.0, 7.0], [0, 1, 0]),
    ("pinv of rank 1", lambda x: ag.linalg.pinv(x), [[1.0, 0.0], [0.0, 0.0]], [[-1, 1], [1, 0]]),
    ("det of a singular matrix", lambda x: ag.linalg.det(x), [[1.0, 2.0], [2.0, 4.0]], [[4, -2], [-2, 1]]),
    ("logabsdet of a singular matrix", lambda x: ag.linalg.slogdet(x)[1], [[1.0, 2.0], [2.0, 4.0]], [[INF, INF], [INF, INF]]),
    ("svd of equal singular values", lambda x: _rotation(*ag.linalg.svd(x))[0, 1], [[1.0, 0.0], [0.0, 1.0]], [[0, 0.5], [-0.5, 0]]),
    ("eigh of equal eigenvalues", lambda x: ag.linalg.eigh(x)[0], [[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]),
    ("max_pool of equal values", lambda x: ag.nn.functional.max_pool1d(x, 2, 1), [[1.0, 1.0, 0.0]], [[1, 1, 0]]),
    ("index_put twice in one place", lambda x: ag.zeros(3, dtype=x.dtype).index_put((ag.tensor([1, 1]),), x), [2.0, 3.0], [0, 1]),
    ("scatter twice to one place", lambda x: ag.zeros(3, dtype=x.dtype).scatter(0, ag.tensor([1, 1]), x), [2.0, 3.0], [0, 1]),
    ("scatter_reduce amax, ties", lambda x: _reduced(x, "amax"), [2.0, 2.0], [0.5, 0.5]),
    ("scatter_reduce prod with a zero", lambda x: _reduced(x, "prod"), [0.0, 3.0], [3, 0]),
    ("multilabel_margin_loss at the margin", lambda x: ag.nn.functional.multilabel_margin_loss(x, ag.tensor([1, -1, -1])), [0.0, 1.0, 3.0],
     [0, -1 / 3, 1 / 3]),
    ("l1_loss at equal values", lambda x: ag.nn.functional.l1_loss(x, ag.zeros_like(x), reduction="sum"), [-2.0, 0.0, 3.0], [-1, 0, 1]),
    ("expm1 at 0", lambda x: x.expm1(), [0.0, 1e-20], [1, 1]),
    ("log1p at 0", lambda x: x.log1p(), [0.0, 1e-20], [1, 1]),
    ("norm at 0", lambda x: x.norm(), [0.0, 0.0, 0.0], [0, 0, 0]),
    ("norm 1 at 0", lambda x: x.norm(1), [0.0, -2.0], [0, -1]),
    ("norm 3 at 0", lambda x: x.norm(3), [0.0, 0.0], [0, 0]),
    ("norm inf, ties", lambda x: x.norm(INF), [2.0, -2.0, 1.0], [0.5, -0.5, 0]),
    ("norm inf at 0", lambda x: x.norm(INF), [0.0, 0.0], [0, 0]),
    ("norm 0", lambda x: x.norm(0) + 0 * x.sum(), [0.0, 2.0], [0, 0]),
    ("norm 2, one axis", lambda x: x.norm(dim=1), [[0.0, 0.0], [3.0, 4.0]], [[0, 0], [0.6, 0.8]]),
    ("norm without overflow", lambda x: x.norm(), [3e200, 4e200], [0.6, 0.8]),
    ("norm squared at 0", lambda x: x.norm() ** 2, [0.0, 0.0], [0, 0]),
    ("amax, ties", lambda x: x.amax(), [3.0, 1.0, 3.0, 3.0], [1 / 3, 0, 1 / 3, 1 / 3]),
    ("amin, ties", lambda x: x.amin(), [1.0, 1.0, 3.0], [0.5, 0.5, 0]),
    ("max, ties", lambda x: x.max(), [3.0, 1.0, 3.0], [0.5, 0, 0.5]),
    ("min, ties", lambda x: x.min(), [[1.0, 2.0], [1.0, 1.0]], [[1 / 3, 0], [1 / 3, 1 / 3]]),
    ("amax of rows, ties", lambda x: x.amax(dim=1), [[2.0, 2.0], [1.0, 3.0]], [[0.5, 0.5], [0, 1]]),
    ("max of rows, first of ties", lambda x: x.max(dim=1)[0], [[2.0, 2.0], [1.0, 3.0]], [[1, 0], [0, 1]]),
    ("min of rows, first of ties", lambda x: x.min(dim=0)[0], [[2.0, 2.0], [2.0, 1.0]], [[1, 0], [0, 1]]),
    ("prod, one zero", lambda x: x.prod(), [2.0, 0.0, 3.0], [0, 6, 0]),
    ("prod, two zeros", lambda x: x.prod(), [2.0, 0.0, 3.0, 0.0], [0, 0, 0, 0]),
    ("prod, no zero", lambda x: x.prod(), [2.0, -1.0, 3.0], [-3, 6, -2]),
    ("prod of rows", lambda x: x.prod(dim=1), [[2.0, 0.0], [3.0, 4.0], [0.0, 0.0]], [[0, 2], [4, 3], [0, 0]]),
    ("prod of one", lambda x: x.prod(0), [0.0], [1]),
    ("prod of a number", lambda x: x.prod(), 0.0, 1),
    ("var of one", lambda x: x.var(), [2.0], [NAN]),
    ("std of equals", lambda x: x.std(), [2.0, 2.0, 2.0], [0, 0, 0]),
    ("std of equals, two axes", lambda x: x.std(dim=(0, 1)), [[2.0, 2.0], [2.0, 2.0]], [[0, 0], [0, 0]]),
    ("std of one", lambda x: x.std(), [2.0], [NAN]),
    ("var of one, correction 0", lambda x: x.var(correction=0), [2.0], [0]),
    ("var of equals", lambda x: x.var(), [2.0, 2.0, 2.0], [0, 0, 0]),
    ("logsumexp of -inf", lambda x: ag.logsumexp(x, 0), [-INF, 0.0], [0, 1]),
    ("logsumexp of large", lambda x: ag.logsumexp(x, 0), [1000.0, 1000.0, -1000.0], [0.5, 0.5, 0]),
    ("softmax overflow", lambda x: x.softmax(0)[0], [2000.0, 1000.0, 0.0], [0, 0, 0]),
    ("log_softmax overflow", lambda x: x.log_softmax(0), [2000.0, 1000.0, 0.0], [-2, 1, 1]),
    ("log_softmax with -inf", lambda x: x.log_softmax(0)[1], [-INF, 0.0, 0.0], [0, 0.5, -0.5]),
    ("atan2 number axis", lambda x: ag.atan2(x, ag.ones_like(x)), [0.0], [1]),
    ("remainder", lambda x: x % 2, [-1.0, 3.0], [1, 1]),
    ("relu6 at its bounds", lambda x: ag.nn.functional.relu6(x), [-1.0, 0.0, 3.0, 6.0, INF], [0, 0, 1, 0, 0]),
    ("hardtanh at its bounds", lambda x: ag.nn.functional.hardtanh(x), [-INF, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 0]),
    ("hardsigmoid", lambda x: ag.nn.functional.hardsigmoid(x), [-INF, -3.0, 0.0, 3.0, INF], [0, 0, 1 / 6, 0, 0]),
    ("hardswish", lambda x: ag.nn.functional.hardswish(x), [-INF, -3.0, 0.0, 3.0, INF], [0, 0, 0.5, 1, 1]),
    ("threshold at it", lambda x: ag.nn.functional.threshold(x, 1.0, 7.0), [0.0, 1.0, 2.0, INF], [0, 0, 1, 1]),
    ("hardshrink at lambd", lambda x: ag.nn.functional.hardshrink(x, 1.0), [-1.0, 0.0, 1.0, 2.0], [0, 0, 0, 1]),
    ("softshrink at lambd", lambda x: ag.nn.functional.softshrink(x, 1.0), [-1.0, 0.0, 1.0, -2.0], [0, 0, 0, 1]),
    ("softsign at infinity", lambda x: ag.nn.functional.softsign(x), [-INF, 0.0, INF], [0, 1, 0]),
    ("mish at infinity", lambda x: ag.nn.functional.mish(x), [-INF, 0.0, INF], [0, 0.6, 1]),
    ("silu at infinity", lambda x: ag.nn.functional.silu(x), [-INF, 0.0, INF], [0, 0.5, 1]),
    ("gelu at infinity", lambda x: ag.nn.functional.gelu(x), [-INF, 0.0, INF], [0, 0.5, 1]),
    ("gelu_tanh at infinity", lambda x: ag.nn.functional.gelu(x, approximate="tanh"), [-INF, 0.0, INF], [0, 0.5, 1]),
    ("celu at 0", lambda x: ag.nn.functional.celu(x, 2.0), [0.0, 1.0, -INF], [1, 1, 0]),
    ("selu at 0", lambda x: ag.nn.functional.selu(x), [0.0, -INF], [1.0507009873554805 * 1.6732632423543772, 0]),
    ("cbrt at 0", lambda x: ag.cbrt(x), [-0.0, 0.0, 8.0, -8.0, -INF], [INF, INF, 1 / 12, 1 / 12, 0]),
    ("sinc at 0 and infinity", lambda x: ag.sinc(x), [-INF, -0.0, 0.0, 1.0, INF], [0, 0, 0, -1, 0]),
    ("asinh", lambda x: ag.asinh(x), [-INF, 0.0, INF], [0, 1, 0]),
    ("acosh at 1", lambda x: ag.acosh(x), [1.0, 0.5, INF], [INF, NAN, 0]),
    ("atanh at 1", lambda x: ag.atanh(x), [0.0, 1.0, -1.0], [1, INF, INF]),
    ("erfinv at 1", lambda x: ag.erfinv(x), [0.0, 1.0, -1.0], [math.sqrt(math.pi) / 2, INF, INF]),
    ("erfc", lambda x: ag.erfc(x), [-INF, 0.0, INF], [0, -2 / math.sqrt(math.pi), 0]),
    ("lgamma at poles", lambda x: ag.lgamma(x), [0.0, -0.0, -1.0, INF], [-INF, INF, NAN, INF]),
    ("digamma at poles", lambda x: ag.digamma(x), [0.0, -1.0, 1.0, INF], [INF, INF, math.pi**2 / 6, 0]),
    ("logit", lambda x: ag.logit(x), [0.0, 0.5, 1.0, -1.0, 2.0], [INF, 4, INF, NAN, NAN]),
    ("logit outside of its limits", lambda x: ag.logit(x, 0.25), [0.0, 0.25, 0.5, 1.0], [0, 16 / 3, 4, 0]),
    ("nan_to_num", lambda x: ag.nan_to_num(x), [NAN, INF, -INF, 2.0], [0, 0, 0, 1]),
    ("frac", lambda x: x.frac(), [-1.0, 0.0, 1.5], [1, 1, 1]),
    ("nansum", lambda x: x.nansum(), [NAN, 1.0], [0, 1]),
    ("nanmean of nothing but NaN", lambda x: x.nanmean(), [NAN, NAN], [0, 0]),
    ("cumprod with zeros", lambda x: x.cumprod(0), [2.0, 0.0, 3.0, 0.0], [1, 8, 0, 0]),
    ("logcumsumexp of -inf", lambda x: x.logcumsumexp(0), [-INF, -INF, 0.0], [0, 0, 1]),
    ("cummax, latest of ties", lambda x: x.cummax(0)[0], [1.0, 1.0, 0.0], [1, 2, 0]),
    ("cummin, latest of ties", lambda x: x.cummin(0)[0], [1.0, 1.0, 2.0], [1, 2, 0]),
    ("kthvalue", lambda x: x.kthvalue(2)[0], [3.0, 1.0, 2.0], [0, 0, 1]),
    ("median of rows", lambda x: x.median(dim=0)[0], [3.0, 1.0, 2.0], [0, 0, 1]),
    ("median, ties", lambda x: x.median(), [2.0, 2.0, 1.0, 3.0], [0.5, 0.5, 0, 0]),
    ("nanmedian of rows", lambda x: x.nanmedian(dim=0)[0], [NAN, 1.0, 2.0], [0, 1, 0]),
    ("nanmedian, ties", lambda x: x.nanmedian(), [NAN, 1.0, 1.0], [0, 0.5, 0.5]),
    ("mode", lambda x: x.mode(0)[0], [2.0, 1.0, 2.0], [0, 0, 1]),
    ("det of a singular matrix", lambda x: ag.linalg.det(x), [[1.0, 2.0], [2.0, 4.0]], [[4, -2], [-2, 1]]),
    ("slogdet of a singular matrix", lambda x: ag.linalg.slogdet(x)[1], [[1.0, 0.0], [0.0, 0.0]], [[INF, INF], [INF, INF]]),
    ("pinv without full rank", lambda x: ag.linalg.pinv(x)[0, 0], [[2.0, 0.0], [0.0, 0.0]], [[-0.25, 0], [0, 0]]),
    ("svd, equal singular values", lambda x: ag.linalg.svd(x)[1], [[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]),
    ("eigh, equal eigenvalues", lambda x: ag.linalg.eigh(x)[0], [[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]),
    ("max_pool, first of ties", lambda x: ag.nn.functional.max_pool2d(x, (1, 2)), [[[[2.0, 2.0, 1.0, 3.0]]]], [[[[1, 0, 0, 1]]]]),
    ("index_put, duplicates", lambda x: ag.zeros(2, dtype=x.dtype).index_put((ag.tensor([0, 0]),), x), [1.0, 2.0], [0, 1]),
    ("scatter, duplicates", lambda x: ag.zeros(2, dtype=x.dtype).scatter(0, ag.tensor([0, 0]), x), [1.0, 2.0], [0, 1]),
    ("scatter_reduce, ties", lambda x: ag.ones(1, dtype=x.dtype).scatter_reduce(0, ag.tensor([0, 0]), x, "amax"), [2.0, 2.0], [0.5, 0.5]),
    ("scatter_reduce, zeros", lambda x: ag.ones(1, dtype=x.dtype).scatter_reduce(0, ag.tensor([0, 0]), x, "prod"), [0.0, 3.0], [3, 0]),
    ("prelu at 0", lambda x: ag.nn.functional.prelu(x, ag.tensor([0.25])), [-1.0, 0.0, 1.0], [0.25, 0.25, 1]),
]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(("name", "f", "values", "right"), ONE_INPUT, ids=[r[0] for r in ONE_INPUT])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_input(name, f, values, right, dtype):
    if name == "norm without overflow" and dtype == "float32":
        pytest.skip("numbers beyond float32")
    rtol = 1e-12 if dtype == "float64" else 1e-6
    if name == "logsumexp of large":
        rtol *= 100  # exp(x - y) with y rounded at 1000
    close(grad_of(f, values, dtype), np.asarray(right, dtype="f8"), rtol, 1e-300)


TWO_INPUTS = [  # name, f, a, b, gradients
    ("cdist at distance 0", lambda a, b: ag.cdist(a, b), [[3.0, 4.0]], [[3.0, 4.0], [0.0, 0.0]], [[0.6, 0.8]], [[0, 0], [-0.6, -0.8]]),
    ("maximum, ties", lambda a, b: ag.maximum(a, b), [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [0.5, 0, 1], [0.5, 1, 0]),
    ("minimum, ties", lambda a, b: ag.minimum(a, b), [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [0.5, 1, 0], [0.5, 0, 1]),
    ("clamp by a tensor, at the bound and at NaN", lambda a, b: ag.clamp(a, b), [1.0, 2.0, 3.0, NAN, 1.0], [2.0, 2.0, 2.0, 0.0, NAN],
     [0, 1, 1, 1, 0], [1, 0, 0, 0, 1]),
    ("clamp by crossed tensors", lambda a, b: ag.clamp(a, b, b - 1), [1.0, 9.0], [2.0, 2.0], [0, 0], [1, 1]),
    ("pow: exponent 0, base 0", lambda a, b: a**b, [0.0, 2.0], [0.0, 0.0], [0, 0], [0, math.log(2)]),
    ("pow: base 0, exponent above 0", lambda a, b: a**b, [0.0, 0.0], [2.0, 1.0], [0, 1], [0, 0]),
    ("pow: base above 0", lambda a, b: a**b, [3.0], [2.0], [6], [9 * math.log(3)]),
    ("pow: base below 0, whole exponent", lambda a, b: (a ** b.detach()) + 0 * b, [-2.0], [3.0], [12], [0]),
    ("atan2", lambda a, b: ag.atan2(a, b), [0.0, 1.0, 0.0], [1.0, 0.0, -1.0], [1, 0, -1], [0, -1, 0]),
    ("remainder", lambda a, b: a % b, [7.0, -7.0], [2.0, 2.0], [1, 1], [-3, 4]),
    ("division", lambda a, b: a / b, [1.0], [0.0], [INF], [-INF]),
    ("fmax, ties and NaN", lambda a, b: ag.fmax(a, b), [1.0, 2.0, NAN, 5.0], [1.0, 3.0, 4.0, NAN], [1, 0, 0, 1], [0, 1, 1, 0]),
    ("fmin, ties and NaN", lambda a, b: ag.fmin(a, b), [1.0, 2.0, NAN, 5.0], [1.0, 3.0, 4.0, NAN], [1, 1, 0, 1], [0, 0, 1, 0]),
    ("fmod", lambda a, b: ag.fmod(a, b), [7.0, -7.0], [2.0, 2.0], [1, 1], [-3, 3]),
    ("hypot", lambda a, b: ag.hypot(a, b), [0.0, 3e200, -INF, 1.0], [0.0, 4e200, 1.0, INF], [0, 0.6, -1, 0], [0, 0.8, 0, 1]),
    ("logaddexp of infinities", lambda a, b: ag.logaddexp(a, b), [-INF, -INF, INF, INF], [-INF, 0.0, INF, 0.0],
     [0, 0, 0.5, 1], [0, 1, 0.5, 0]),
    ("logaddexp2 of infinities", lambda a, b: ag.logaddexp2(a, b), [-INF, -INF, INF, INF], [-INF, 0.0, INF, 0.0],
     [0, 0, 0.5, 1], [0, 1, 0.5, 0]),
    ("xlogy at 0", lambda a, b: ag.xlogy(a, b), [0.0, 0.0, 2.0, 0.0], [0.0, 2.0, 4.0, -1.0], [0, math.log(2), math.log(4), 0],
     [0, 0, 0.5, 0]),
    ("xlog1py at 0", lambda a, b: ag.xlog1py(a, b), [0.0, 0.0, 2.0], [-1.0, 1.0, 3.0], [0, math.log(2), math.log(4)], [0, 0, 0.5]),
    ("copysign at 0", lambda a, b: ag.copysign(a, b), [0.0, -2.0, INF], [-1.0, 1.0, -1.0], [0, -1, -1], [0, 0, 0]),
    ("heaviside", lambda a, b: ag.heaviside(a, b), [-1.0, 0.0, 1.0], [5.0, 6.0, 7.0], [0, 0, 0], [0, 1, 0]),
    ("where takes one side", lambda a, b: ag.where(a > 0, a, b), [1.0, -1.0], [5.0, 6.0], [1, 0], [0, 1]),
]


@pytest.mark.parametrize(("name", "f", "a", "b", "da", "db"), TWO_INPUTS, ids=[r[0] for r in TWO_INPUTS])
def test_two_inputs(name, f, a, b, da, db):
    a, b = leaf(a), leaf(b)
    f(a, b).sum().backward()
    close(a.grad, np.asarray(da, dtype="f8"), 1e-12, 1e-15)
    close(b.grad, np.asarray(db, dtype="f8"), 1e-12, 1e-15)


MASKED = [  # f(x) whose derivative is infinite or NaN where the mask is off; the gradient must be exactly 0 there
    ("sqrt", lambda x: ag.where(x > 0, x.sqrt(), 0.0), [0.0, 4.0, -1.0], [0, 0.25, 0]),
    ("log", lambda x: ag.where(x > 0, x.log(), 0.0), [0.0, 2.0, -1.0], [0, 0.5, 0]),
    ("exp", lambda x: ag.where(x < 100, x.exp(), 0.0), [1e4, 0.0], [0, 1]),
    ("exp in the other branch", lambda x: ag.where(x <= 0, x.exp(), 1 + x), [1e4, 0.0], [1, 1]),
    ("reciprocal", lambda x: ag.where(x != 0, 1 / x, 0.0), [0.0, 2.0], [0, -0.25]),
    ("division", lambda x: ag.where(x != 0, (x + 1) / x, 0.0), [0.0, 2.0], [0, -0.25]),
    ("pow", lambda x: ag.where(x > 0, x**0.5, 0.0), [0.0, 4.0], [0, 0.25]),
    ("rsqrt", lambda x: ag.where(x > 0, x.rsqrt(), 0.0), [0.0, 4.0], [0, -0.0625]),
    ("asin", lambda x: ag.where(x.abs() < 1, x.asin(), 0.0), [1.0, 0.0], [0, 1]),
    ("log1p", lambda x: ag.where(x > -1, x.log1p(), 0.0), [-1.0, 0.0], [0, 1]),
    ("log of sigmoid", lambda x: ag.where(x > -700, x.sigmoid().log(), x), [-1e4, 0.0], [1, 0.5]),
    ("acosh", lambda x: ag.where(x > 1, x.acosh(), 0.0), [1.0, 0.5, math.sqrt(2)], [0, 0, 1]),
    ("atanh", lambda x: ag.where(x.abs() < 1, x.atanh(), 0.0), [1.0, 2.0, 0.0], [0, 0, 1]),
    ("erfinv", lambda x: ag.where(x.abs() < 1, x.erfinv(), 0.0), [1.0, 2.0, 0.0], [0, 0, math.sqrt(math.pi) / 2]),
    ("lgamma", lambda x: ag.where(x > 0, x.lgamma(), 0.0), [0.0, -1.0, -INF], [0, 0, 0]),
    ("logit", lambda x: ag.where((x > 0) & (x < 1), x.logit(), 0.0), [0.0, 1.0, 0.5, -1.0], [0, 0, 4, 0]),
    ("xlogy", lambda x: ag.where(x > 0, ag.xlogy(x, x), 0.0), [0.0, 1.0], [0, 1]),
    ("sqrt times zero", lambda x: x.sqrt() * 0.0, [0.0], [0]),
    ("sqrt of a masked square", lambda x: ag.where(x > 0, (x * x).sqrt(), x), [0.0, 2.0], [1, 1]),
    ("index instead of where", lambda x: x.sqrt()[1:], [0.0, 4.0], [0, 0.25]),
    ("boolean index", lambda x: x.log()[x > 0], [0.0, 2.0], [0, 0.5]),
    ("chain", lambda x: ag.where(x > 0, x.sqrt().log().exp(), 0.0), [0.0, 4.0], [0, 0.25]),
]


@pytest.mark.parametrize(("name", "f", "values", "right"), MASKED, ids=[r[0] for r in MASKED])
@pytest.mark.parametrize("engine", ["iterative", "recursive"])
@pytest.mark.parametrize("record", [False, True])
def test_masked_gradients_are_zero(name, f, values, right, engine, record):
    x = leaf(np.asarray(values))
    f(x).sum().backward(engine=engine, create_graph=record)
    close(x.grad, np.asarray(right, dtype="f8"), 1e-12, 0)
    x.grad = None


@pytest.mark.parametrize("n", [1, 3, 16, 17, 100, 1030])
def test_masked_gradients_in_every_lane(n):
    for dtype in ("f4", "f8"):
        values = np.where(np.arange(n) % 3 == 0, 0.0, 4.0).astype(dtype)
        g = array(grad_of(lambda x: ag.where(x > 0, x.sqrt(), 0.0), values, dtype))
        assert np.array_equal(g, np.where(values > 0, 0.25, 0.0).astype(dtype))


def test_logsumexp_of_only_minus_infinity():
    """PyTorch gives NaN; a program in log space needs something finite."""
    for f in (lambda x: ag.logsumexp(x, 0), lambda x: ag.logsumexp(x, 1).sum()):
        x = leaf(np.full((2, 2), -INF))
        y = f(x)
        assert (array(y) == -INF).all()
        y.sum().backward()
        assert np.isfinite(array(x.grad)).all()


def test_prod_second_order_with_zeros():
    for values in ([2.0, 3.0, 0.0], [2.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]):
        x = leaf(values)
        (g,) = ag.autograd.grad(x.prod(), x, create_graph=True)
        for i in range(len(values)):
            (h,) = ag.autograd.grad(g[i], x, retain_graph=True, allow_unused=True)
            right = [0.0 if j == i else np.prod([v for k, v in enumerate(values) if k not in (i, j)]) for j in range(len(values))]
            close(np.zeros(len(values)) if h is None else h, right, 1e-12, 1e-15)


def test_second_order_at_kinks():
    """No NaN in second derivatives where the first is well defined."""
    for f, right in [
        (lambda x: x**2, 2.0),
        (lambda x: x**3, 0.0),
        (lambda x: ag.relu(x) ** 2, 0.0),
        (lambda x: x * x.abs(), 0.0),
        (lambda x: ag.exp(-(x**2)), -2.0),
        (lambda x: x.cosh(), 1.0),
    ]:
        x = leaf([0.0])
        (g,) = ag.autograd.grad(f(x).sum(), x, create_graph=True)
        (h,) = ag.autograd.grad(g.sum(), x, allow_unused=True)
        close(h, [right], 1e-12, 1e-15)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_at_their_edges(reduction):
    F = ag.nn.functional
    x = leaf([0.0, 1.0])
    loss = F.binary_cross_entropy(x, ag.tensor([0.0, 1.0], dtype=ag.float64), reduction=reduction)
    close(loss.sum(), 0.0, 0, 1e-12)
    loss.sum().backward()
    assert np.isfinite(array(x.grad)).all()
    worst = F.binary_cross_entropy(leaf([0.0, 1.0]), ag.tensor([1.0, 0.0], dtype=ag.float64), reduction="none")
    close(worst, [100.0, 100.0])  # the logarithm is clamped at -100
    z = leaf([1000.0, -1000.0, 0.0])
    loss = F.binary_cross_entropy_with_logits(z, ag.tensor([1.0, 0.0, 1.0], dtype=ag.float64), reduction="none")
    close(loss, [0.0, 0.0, math.log(2)], 1e-12, 1e-300)
    loss.sum().backward()
    close(z.grad, [0.0, 0.0, -0.5], 1e-12, 1e-15)


def test_cross_entropy_edges():
    F = ag.nn.functional
    x = leaf([[1000.0, 0.0], [0.0, 1000.0]])
    loss = F.cross_entropy(x, ag.tensor([0, 0]), reduction="none")
    close(loss, [0.0, 1000.0], 1e-12, 1e-300)
    loss.sum().backward()
    close(x.grad, [[0, 0], [-1, 1]], 1e-12, 1e-15)
    y = leaf([[1.0, 2.0]])
    ignored = F.cross_entropy(y, ag.tensor([-100]))
    assert math.isnan(ignored.item())  # the mean of nothing
    total = F.cross_entropy(y, ag.tensor([-100]), reduction="sum")
    total.backward()
    assert total.item() == 0.0
    assert y.grad.tolist() == [[0.0, 0.0]]
    assert math.isnan(F.cross_entropy(ag.zeros(0, 3), ag.zeros(0, dtype=ag.int64)).item())


def test_max_gradient_of_many_ties():
    """The count of ties must not be kept in the gradient's own type."""
    x = ag.ones(70000, dtype=ag.float32).requires_grad_(True)
    x.max().backward()
    close(x.grad, np.full(70000, 1 / 70000), 1e-6, 0)


@pytest.mark.parametrize("op", ["max", "min"])
def test_nan_takes_the_gradient(op):
    x = leaf([1.0, NAN, 2.0])
    y = getattr(x, op)()
    assert math.isnan(y.item())
    y.backward()
    assert array(x.grad).tolist() == [0.0, 1.0, 0.0]


NO_GRADIENT = [  # rows that say of themselves that an input gets no gradient: row, what requires none
    ("floor_divide", lambda x: x // 2),
    ("nextafter", lambda x: ag.nextafter(x, x + 1)),
    ("zeta", lambda x: ag.special.zeta(x + 2, ag.tensor([1.0, 2.0], dtype=ag.float64))),
    ("gammainc", lambda x: ag.special.gammainc(x, ag.tensor([1.0, 2.0], dtype=ag.float64))),
    ("gammaincc", lambda x: ag.special.gammaincc(x, ag.tensor([1.0, 2.0], dtype=ag.float64))),
    ("gamma_density", lambda x: ag.engine.elementwise.gamma_density(x, ag.tensor([1.0, 2.0], dtype=ag.float64))),
]


@pytest.mark.parametrize(("name", "f"), NO_GRADIENT, ids=[r[0] for r in NO_GRADIENT])
def test_no_gradient(name, f):
    assert not f(leaf([0.5, 1.5])).requires_grad


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_at_minus_infinity(dtype):
    """0, where the formula has infinity times 0; at infinity infinity."""
    x = ag.tensor(np.array([-INF, INF, -1e30], dtype=dtype))
    F = ag.nn.functional
    for f in (F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.mish, F.hardswish):
        assert array(f(x)).tolist() == [0.0, INF, 0.0]


IN_OTHER_TESTS = {"binary_cross_entropy": test_losses_at_their_edges}


def rows_behind(y):
    """The rows in the graph of a result."""
    found, waiting = {}, [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and hasattr(node, "next_functions") and id(node) not in found:
            found[id(node)] = node
            waiting += [following for following, _ in node.next_functions]
    return {node.operation for node in found.values()}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_every_special_point_of_the_table_is_tested():
    """Docs list each row's `special`; a row that has one is part of a case above."""
    tested = set(IN_OTHER_TESTS) | {name for name, _ in NO_GRADIENT}
    for _, f, values, _ in ONE_INPUT:
        tested |= rows_behind(f(leaf(np.asarray(values))))
    for _, f, a, b, _, _ in TWO_INPUTS:
        tested |= rows_behind(f(leaf(a), leaf(b)))
    assert {row.name for row in TABLE.values() if row.special} <= tested
