"""What ordinary scripts call by a name of torch's own: functions in place, of nn.functional with other arguments, questions, windows.

Relies on autograd_cy's public names; nothing relies on it. Each row is a call with its value; where PyTorch is installed it gives the
same (pytest -m oracle).
"""

import importlib
import math
import subprocess
import sys

import numpy as np
import pytest

import autograd_cy as ag


def x(t):
    return t.tensor([[0.5, -1.5, 2.0], [math.nan, 0.25, -0.75]])


def seq(t):
    return t.tensor([[[3.0, 1.0, 2.0, 5.0, 4.0, 0.0]]])


def i(t):
    return t.tensor([12, 18])


def v(t):
    return t.tensor([1.0, -2.0, 3.0])


def w(t):
    return t.tensor([0.5, 0.5, -1.0])


def written(name, make, *args):
    """The function in place returns its first argument, changed."""
    def call(t):
        before = make(t)
        assert getattr(t, name)(before, *(a(t) if callable(a) else a for a in args)) is before
        return before
    return call


ROWS = [
    ("clamp_", written("clamp_", v, -1, 2), [1, -1, 2]), ("clip_", written("clip_", v, -1, 2), [1, -1, 2]),
    ("zero_", written("zero_", v), [0, 0, 0]), ("fill_", written("fill_", v, 2.5), [2.5] * 3), ("fill", lambda t: t.fill(i(t), 3), [3, 3]),
    ("detach_", written("detach_", v), [1, -2, 3]), ("negative_", written("negative_", v), [-1, 2, -3]),
    ("nan_to_num_", written("nan_to_num_", x, 9.0), [[0.5, -1.5, 2], [9, 0.25, -0.75]]), ("fix_", written("fix_", x), [[0, -1, 2], [math.nan, 0, 0]]),
    ("logit_", written("logit_", lambda t: t.tensor([0.25, 0.5, 1.5]), 0.25), [-math.log(3), 0, math.log(3)]),
    ("xlogy_", written("xlogy_", v, lambda t: t.tensor([1.0, math.e, 1.0])), [0, -2, 0]),
    ("ldexp_", written("ldexp_", v, lambda t: t.tensor([1, 2, -1])), [2, -8, 1.5]),
    ("gcd_", written("gcd_", i, lambda t: t.tensor([8, 27])), [4, 9]), ("lcm_", written("lcm_", i, lambda t: t.tensor([8, 27])), [24, 54]),
    ("i0_", written("i0_", v), np.i0([1, -2, 3])), ("arccos_", written("arccos_", w), np.arccos([0.5, 0.5, -1])),
    ("arcsin_", written("arcsin_", w), np.arcsin([0.5, 0.5, -1])), ("arctan_", written("arctan_", v), np.arctan([1, -2, 3])),
    ("arccosh_", written("arccosh_", lambda t: t.tensor([1.0, 2.0])), np.arccosh([1, 2])), ("arcsinh_", written("arcsinh_", v), np.arcsinh([1, -2, 3])),
    ("arctanh_", written("arctanh_", lambda t: t.tensor([0.5])), np.arctanh([0.5])),
    *((name, lambda t, name=name: getattr(t, name)(v(t)), [1, -2, 3]) for name in ("conj", "conj_physical", "conj_physical_", "resolve_conj", "resolve_neg")),
    *((f"Tensor.{name}", lambda t, name=name: getattr(v(t), name)(), [1, -2, 3]) for name in ("conj", "conj_physical", "conj_physical_", "resolve_conj", "resolve_neg")),
    ("embedding", lambda t: t.embedding(x(t), t.tensor([0, 0])), [[0.5, -1.5, 2]] * 2),
    ("avg_pool1d", lambda t: t.avg_pool1d(seq(t), 2), [[[2, 3.5, 2]]]), ("adaptive_avg_pool1d", lambda t: t.adaptive_avg_pool1d(seq(t), 2), [[[2, 3]]]),
    ("channel_shuffle", lambda t: t.channel_shuffle(seq(t).reshape(1, 6, 1, 1), 2).reshape(6), [3, 5, 1, 4, 2, 0]),
    ("constant_pad_nd", lambda t: t.constant_pad_nd(i(t), (1, 2), 7), [7, 12, 18, 7, 7]),
    ("dropout", lambda t: t.dropout(v(t), 0.5, train=False), [1, -2, 3]), ("dropout of all", lambda t: t.dropout(v(t), 1.0, True), [0, 0, 0]),
    ("dropout_", written("dropout_", v, 1.0, True), [0, 0, 0]), ("alpha_dropout", lambda t: t.alpha_dropout(v(t), 0.5, False), [1, -2, 3]),
    ("feature_dropout", lambda t: t.feature_dropout(x(t), 0.0, True), [[0.5, -1.5, 2], [math.nan, 0.25, -0.75]]),
    ("feature_alpha_dropout", lambda t: t.feature_alpha_dropout(v(t), 0.5, False), [1, -2, 3]),
    ("rrelu", lambda t: t.rrelu(v(t)), [1, -2 * 11 / 48, 3]), ("rrelu in training", lambda t: t.rrelu(v(t), 0.25, 0.25, True), [1, -0.5, 3]),
    ("rrelu_", written("rrelu_", v, 0.5, 0.5, True), [1, -1, 3]),
    *((name, lambda t, name=name: getattr(t, name)(v(t)), False) for name in ("is_conj", "is_neg", "is_inference", "is_complex")),
    *((f"Tensor.{name}", lambda t, name=name: getattr(v(t), name)(), False) for name in ("is_conj", "is_neg", "is_inference", "is_shared")),
    ("is_signed", lambda t: [t.is_signed(v(t)), t.is_signed(i(t)), i(t).to(t.uint8).is_signed(), t.is_signed(i(t) > 0)], [True, True, False, False]),
    ("is_same_size", lambda t: [t.is_same_size(v(t), w(t)), v(t).is_same_size(i(t))], [True, False]),
    ("is_anomaly_enabled", lambda t: [t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()], [False, True]),
    ("typename", lambda t: [t.typename(a) == b for a, b in ((v(t), "torch.FloatTensor"), (i(t), "torch.LongTensor"), (3, "int"), ([].append, "list.append"),
                                                             (importlib.import_module, "importlib.import_module"))], [True] * 5),
    ("new", lambda t: [v(t).new([2]), i(t).new([3.0]).long(), t.tensor(list(i(t).new(2, 3).shape)), t.tensor(list(v(t).new().shape))], [[2], [3], [2, 3], [0]]),
    ("narrow_copy", lambda t: v(t).narrow_copy(0, 1, 2), [-2, 3]),
    ("type of tensors", lambda t: [v(t).type(t.LongTensor), v(t).type("torch.IntTensor"), v(t).type(t.double)], [[1, -2, 3]] * 3),
    ("hann_window", lambda t: t.hann_window(4), [0, 0.5, 1, 0.5]), ("hann_window, not periodic", lambda t: t.hann_window(5, False), [0, 0.5, 1, 0.5, 0]),
    ("hamming_window", lambda t: t.hamming_window(4), [0.08, 0.54, 1, 0.54]), ("hamming_window, shares", lambda t: t.hamming_window(4, True, 0.5, 0.25), [0.25, 0.5, 0.75, 0.5]),
    ("blackman_window", lambda t: t.blackman_window(4), [0, 0.34, 1, 0.34]), ("bartlett_window", lambda t: t.bartlett_window(4), [0, 0.5, 1, 0.5]),
    ("kaiser_window", lambda t: t.kaiser_window(4), [5.2773e-05, 2.1567e-01, 1, 2.1567e-01]), ("kaiser_window, flat", lambda t: t.kaiser_window(4, True, 0.0), [1] * 4),
    ("windows of 1", lambda t: [getattr(t, f"{name}_window")(1, p) for name in ("hann", "hamming", "blackman", "bartlett", "kaiser") for p in (True, False)], [[1]] * 10),
    ("windows of 0", lambda t: t.hann_window(0), []), ("windows in float64", lambda t: str(t.bartlett_window(3, dtype=t.float64).dtype)[-7:] == "float64", True),
    ("binomial", lambda t: t.binomial(t.tensor([[3.0], [0.0]]), t.tensor([1.0, 0.0])), [[3, 0], [0, 0]]),
    ("interop threads", lambda t: t.get_num_interop_threads() >= 1, True), ("set_flush_denormal", lambda t: t.set_flush_denormal(False) in (False, True), True),
]   # fmt: skip


def close(found, expected):
    if isinstance(expected, tuple) or isinstance(found, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif isinstance(found, bool):
        assert found is expected
    else:
        np.testing.assert_allclose(np.asarray(found.detach() if hasattr(found, "detach") else found), expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize(("call", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_value(call, expected):
    close(call(ag), expected)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_value_in_pytorch(call, expected):
    close(call(pytest.importorskip("torch")), expected)


ERRORS = [
    (lambda: ag.hann_window(-1), RuntimeError, "hann_window.*-1"), (lambda: ag.kaiser_window(3, dtype=ag.int64), RuntimeError, "kaiser_window.*int64"),
    (lambda: ag.binomial(ag.tensor([1]), ag.tensor([0.5])), RuntimeError, "binomial.*int64"), (lambda: ag.set_num_interop_threads(0), RuntimeError, "positive"),
    (lambda: ag.set_default_tensor_type("torch.HalfTensor"), TypeError, "torch.HalfTensor"), (lambda: v(ag).type("torch.ShortTensor"), TypeError, "ShortTensor"),
    (lambda: v(ag).short(), AttributeError, "short"), (lambda: ag.float16, AttributeError, "float16"), (lambda: ag.rrelu(i(ag)), RuntimeError, "rrelu.*int64"),
    *((lambda name=name: getattr(ag, name)(None, 0.5, True), TypeError, name.strip("_") + ".*NoneType")
      for name in ("dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_", "feature_alpha_dropout")),
    (lambda: ag.feature_dropout(v(ag), 0.5, True), ValueError, "at least 2 dimensions"), (lambda: ag.embedding(None, i(ag)), TypeError, "embedding"),
]   # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_random_ones():
    ag.manual_seed(0)
    y = ag.dropout_(ag.ones(10_000), 0.25, True)
    assert set(y.tolist()) == {0.0, np.float32(1 / 0.75)} and abs(y.mean().item() - 1) < 0.03
    y = ag.feature_dropout(ag.ones(50, 40, 2), 0.25, True)
    assert (y[..., 0] == y[..., 1]).all() and abs(y.mean().item() - 1) < 0.05
    x = ag.full((10_000,), -1.0, requires_grad=True)
    y = ag.rrelu(x, training=True)
    y.sum().backward()
    assert (x.grad == -y).all() and 1 / 8 <= x.grad.min() < 0.126 and 0.332 < x.grad.max() <= 1 / 3
    y = ag.binomial(ag.full((10_000,), 10.0), ag.tensor(0.3))
    assert abs(y.mean().item() - 3) < 0.06 and abs(y.var().item() - 2.1) < 0.1


def test_settings():
    ag.set_default_tensor_type(ag.DoubleTensor)
    try:
        assert ag.zeros(1).dtype is ag.float64
    finally:
        ag.set_default_tensor_type("torch.FloatTensor")
    assert ag.zeros(1).dtype is ag.float32
    ag.set_anomaly_enabled(True, False)
    try:
        assert ag.is_anomaly_enabled() and not ag.is_anomaly_check_nan_enabled()
    finally:
        ag.set_anomaly_enabled(False)
    assert not ag.is_anomaly_enabled()


def test_names_import_little():
    code = ("import sys, autograd_cy as ag; loaded = [m for m in ('nn.functional', 'nn.front', 'engine.signals') if f'autograd_cy.{m}' in sys.modules]; "
            "assert not loaded, loaded; f = ag.dropout; f(ag.ones(2), 0.5, True); assert ag.dropout is not f and f(ag.ones(2), 0.5, False).sum() == 2")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_to_a_device_by_its_name():
    assert ag.ones(1).to(device="cpu", dtype=ag.float64).dtype == ag.float64
    with pytest.raises(RuntimeError):
        ag.ones(1).to(device="cuda")
