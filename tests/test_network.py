"""Convolutions, pooling, resampling, normalisation, attention and losses: NumPy's and PyTorch's numbers, errors, captures.

Relies on autograd_cy's public names, NumPy and, where it is installed, PyTorch.  The samples of the rows are in samples.py, the replays
of the layers in test_replay_layers.py.
"""

import random
import warnings

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F

try:
    import torch
except ImportError:
    torch = None

oracle = pytest.mark.oracle
needs_torch = pytest.mark.skipif(torch is None, reason="needs PyTorch")


def normal(*shape, seed=0, dtype="f8"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def differentiated(f, arrays):
    """The value of f, its gradients of a weighted sum, and the gradients of these."""
    inputs = [ag.tensor(a, requires_grad=True) for a in arrays]
    y = f(F, *inputs)
    if not y.requires_grad or y.numel() == 0:
        return [y.detach().numpy()]
    weights = ag.tensor(np.linspace(0.3, 1.7, y.numel()).reshape(y.shape))
    first = ag.autograd.grad((y * y * weights).sum(), inputs, create_graph=True)
    second = ag.autograd.grad(sum((g * g).sum() for g in first), inputs)
    return [t.detach().numpy() for t in (y, *first, *second)]


def expected(f, arrays):
    """The same by PyTorch; fewer values where it can't differentiate twice."""
    inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = f(torch.nn.functional, *inputs)
    found = [y]
    try:
        if y.requires_grad and y.numel():
            weights = torch.tensor(np.linspace(0.3, 1.7, y.numel()).reshape(y.shape))
            first = torch.autograd.grad((y * y * weights).sum(), inputs, create_graph=True)
            found += first
            found += torch.autograd.grad(sum((g * g).sum() for g in first), inputs)
    except RuntimeError:
        pass
    return [t.detach().numpy() for t in found]


def agree(f, arrays, what):
    """Equal to PyTorch in values and first and second gradients, or refused by both."""
    try:
        wanted = expected(f, arrays)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        with pytest.raises((RuntimeError, ValueError, NotImplementedError)):
            f(F, *[ag.tensor(a) for a in arrays])
        return type(error)
    for a, b in zip(differentiated(f, arrays), wanted):
        assert a.shape == b.shape, what
        scale = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * scale, err_msg=str(what))
    return None


# ---- against PyTorch, on random arguments


def several(rng, d, low, high):
    return rng.randint(low, high) if rng.random() < 0.4 else tuple(rng.randint(low, high) for _ in range(d))


def random_convolution(rng):
    d, groups, transposed = rng.choice([1, 2, 3]), rng.choice([1, 1, 2, 3]), rng.random() < 0.4
    c, m = groups * rng.choice([1, 1, 2]), groups * rng.choice([1, 2, 3])
    kernel = [rng.randint(1, 3) for _ in range(d)]
    options = {"stride": several(rng, d, 1, 3), "padding": several(rng, d, 0, 2), "dilation": several(rng, d, 1, 2), "groups": groups}
    if transposed:
        options["output_padding"] = several(rng, d, 0, 1)
    elif rng.random() < 0.3:
        options["padding"] = rng.choice(["same", "valid"])
        options["stride"] = 1
    shape = ([] if rng.random() < 0.2 else [rng.choice([1, 2, 9])]) + [c] + [rng.randint(1, 7) for _ in range(d)]
    name = f"conv{'_transpose' * transposed}{d}d"
    arrays = [normal(*shape), normal(*([c, m // groups] if transposed else [m, c // groups]), *kernel, seed=1)]
    if rng.random() < 0.5:
        arrays.append(normal(m, seed=2))
    return name, lambda where, *t: getattr(where, name)(*t, **options), arrays, (name, shape, kernel, options)


def random_pooling(rng):
    d = rng.choice([1, 2, 3])
    shape = [2, 2, *[rng.randint(2, 8) for _ in range(d)]][rng.random() < 0.2:]
    kind = rng.choice(["max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool", "max_unpool"])
    name = f"{kind}{d}d"
    x = normal(*shape, seed=rng.randint(0, 99))
    if kind == "max_unpool":
        def f(where, x):
            y, places = getattr(where, f"max_pool{d}d")(x, 2, return_indices=True)
            return getattr(where, name)(y, places, 2, output_size=x.shape[-d:])
    elif kind.startswith("adaptive"):
        size = several(rng, d, 1, 5)
        def f(where, x):
            return getattr(where, name)(x, size)
    elif kind == "lp_pool":
        x, kernel = np.abs(x) + 0.1, rng.randint(1, 3)
        p = rng.choice([1, 2, 2.5, float("inf")])
        def f(where, x):
            return getattr(where, name)(x, p, kernel if d == 1 else (kernel,) * d, ceil_mode=False)
    else:
        options = {"kernel_size": several(rng, d, 1, 3), "stride": rng.choice([None, several(rng, d, 1, 3)]), "padding": rng.choice([0, 1]),
                   "ceil_mode": rng.random() < 0.5}
        if kind == "avg_pool":
            options["count_include_pad"] = rng.random() < 0.5
        if kind == "avg_pool" and d > 1 and rng.random() < 0.3:
            options["divisor_override"] = 3
        def f(where, x):
            return getattr(where, name)(x, **options)
        shape = (shape, options)
    return name, f, [x], (name, shape)


def random_interpolation(rng):
    d = rng.choice([1, 2, 3])
    # The gradient of PyTorch's nearest modes is not that of its values, for scales that are no whole numbers.
    mode = rng.choice([["linear", "bilinear", "trilinear"][d - 1], "bicubic", "area", "nearest", "nearest-exact"])
    options = {"mode": mode}
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = rng.choice([None, False, True])
    if mode.startswith("nearest"):
        options["scale_factor"] = rng.choice([1, 2, 3])
    elif rng.random() < 0.5:
        options["size"] = several(rng, d, 1, 9)
    else:
        options |= {"scale_factor": rng.choice([0.5, 1.5, 2.3]), "recompute_scale_factor": rng.choice([None, True])}
    shape = [1, 2, *[rng.randint(2, 6) for _ in range(d)]]
    return "interpolate", lambda where, x: where.interpolate(x, **options), [normal(*shape)], (shape, options)


def random_norm(rng):
    kind = rng.choice(["batch", "running", "layer", "rms", "group", "instance", "response"])
    shape = [rng.choice([2, 3, 70]), rng.choice([2, 4]), *[rng.randint(1, 5) for _ in range(rng.choice([0, 1, 2]))]]
    shape = rng.choice([shape, shape, [2, 2, 1100], [3, 1030]])
    channels, tail = shape[1], shape[rng.randint(0, len(shape) - 1):]
    weight, bias = normal(*(tail if kind in ("layer", "rms") else [channels]), seed=1), normal(*(tail if kind == "layer" else [channels]), seed=2)
    arrays = [normal(*shape) * 2 + 3, weight, bias][:rng.randint(1, 3)]
    mean, var = normal(channels, seed=3), np.abs(normal(channels, seed=4)) + 0.5

    def f(where, x, w=None, b=None):
        make = torch.tensor if where is not F else ag.tensor
        if kind == "batch":
            return where.batch_norm(x, None, None, w, b, True, eps=1e-3)
        if kind == "running":
            return where.batch_norm(x, make(mean), make(var), w, b)
        if kind == "layer":
            return where.layer_norm(x, tail, w, b)
        if kind == "rms":
            return where.rms_norm(x, tail, w, 1e-3)
        if kind == "group":
            return where.group_norm(x, 2, w, b)
        if kind == "instance":
            return where.instance_norm(x, None, None, w, b)
        return where.local_response_norm(x, 3, 0.5)
    return kind, f, arrays[:2] if kind == "rms" else arrays[:1] if kind == "response" else arrays, (kind, shape, len(arrays))


@oracle
@needs_torch
@pytest.mark.parametrize("make", [random_convolution, random_pooling, random_interpolation, random_norm], ids=lambda f: f.__name__)
def test_random_arguments(make):
    rng = random.Random(make.__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(120):
            _, f, arrays, what = make(rng)
            if "smaller than kernel size" in str(agree(f, arrays, what)):
                continue


# ---- without PyTorch


def test_windows_of_every_size_by_hand():
    """A convolution of each kind of block: many images of few places, few of many, in both dtypes."""
    for n, c, m, size, kernel in ((70, 3, 4, 4, 3), (1, 40, 3, 40, 5), (2, 1, 1, 33, 3), (3, 2, 2, 17, 1)):
        x, w = normal(n, c, size, size), normal(m, c, kernel, kernel, seed=1)
        view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))
        wanted = np.einsum("nchwij,mcij->nmhw", view, w)
        np.testing.assert_allclose(F.conv2d(ag.tensor(x), ag.tensor(w)).numpy(), wanted, rtol=1e-9, atol=1e-9)
        found = F.conv2d(ag.tensor(x.astype("f4")), ag.tensor(w.astype("f4"))).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_max_pool_of_nan_ties_and_nothing():
    x = ag.tensor([[[1.0, 3.0, 3.0, float("nan"), 2.0]]], requires_grad=True)
    y, places = F.max_pool1d(x, 2, 1, return_indices=True)
    assert places.tolist() == [[[1, 1, 3, 3]]]
    assert np.isnan(y.tolist()[0][0][2:]).all() and y.tolist()[0][0][:2] == [3.0, 3.0]
    (g,) = ag.autograd.grad(y.sum(), x)
    assert g.tolist() == [[[0.0, 2.0, 0.0, 2.0, 0.0]]]
    assert F.max_pool2d(ag.tensor([[[1, 5], [7, 2]]]), 2).tolist() == [[[7]]]
    beyond, places = F.max_pool1d(ag.tensor([[[1.0]]]), 2, 1, 1, 2, return_indices=True)      # a window of padding only
    assert beyond.tolist() == [[[float("-inf")]]] and places.tolist() == [[[-1]]]


def test_batch_norm_follows_the_batches():
    x = ag.tensor(normal(5, 3, dtype="f4"))
    layer = nn.BatchNorm1d(3, momentum=0.25)
    layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * x.numpy().mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * x.numpy().var(0, ddof=1), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 1
    average = nn.BatchNorm1d(3, momentum=None)
    for k in range(3):
        average(x * k)
    np.testing.assert_allclose(average.running_mean.numpy(), x.numpy().mean(0), rtol=1e-5)
    layer.eval()
    before = layer.running_mean.tolist()
    y = layer(x)
    wanted = (x.numpy() - layer.running_mean.numpy()) / np.sqrt(layer.running_var.numpy() + 1e-5)
    np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-4, atol=1e-6)
    assert layer.running_mean.tolist() == before and layer.num_batches_tracked.item() == 1


def test_norms_of_large_numbers():
    """Mean 1e4, deviation 1: in float32 the square of the mean would swallow the variance."""
    x = (normal(4, 3000) + 1e4).astype("f4")
    wanted = (x - x.mean(1, keepdims=True, dtype="f8")) / x.std(1, keepdims=True, dtype="f8")
    np.testing.assert_allclose(F.layer_norm(ag.tensor(x), (3000,)).numpy(), wanted, atol=2e-3)
    found = F.batch_norm(ag.tensor(np.ascontiguousarray(x.T)), None, None, training=True).numpy().T
    np.testing.assert_allclose(found, wanted, atol=2e-3)


def test_attention_of_nothing_is_zero():
    q = ag.tensor(normal(2, 3, 4), requires_grad=True)
    mask = ag.tensor([[True, True, False], [False, False, False], [True, False, False]])
    y = F.scaled_dot_product_attention(q, q, q, mask)
    assert (y[:, 1] == 0).all() and not y.isnan().any()
    (g,) = ag.autograd.grad(y.sum(), q)
    assert not g.isnan().any()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("columns", [100, 300])
def test_attention_by_blocks(causal, columns):
    """More queries than a block has: as by a mask, which blocks know nothing of."""
    q, k, v = (ag.tensor(normal(2, n, 4), requires_grad=True) for n in (300, columns, columns))
    mask = ag.arange(columns) <= ag.arange(300).unsqueeze(1) if causal else ag.ones(300, columns, dtype=ag.bool)
    g = ag.tensor(normal(2, 300, 4))
    both = [F.scaled_dot_product_attention(q, k, v, m, is_causal=causal and m is None) for m in (None, mask)]
    np.testing.assert_allclose(both[0].detach().numpy(), both[1].detach().numpy(), atol=1e-12)
    for found, wanted in zip(*(ag.autograd.grad(y, (q, k, v), g) for y in both), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-12)
    with pytest.raises(RuntimeError, match=f"{columns} columns against {columns - 1} rows"):
        F.scaled_dot_product_attention(q, k, v[:, 1:], is_causal=causal)


def test_dropout_of_channels_and_moments():
    ag.manual_seed(0)
    y = F.dropout2d(ag.ones(40, 50, 2, 2), 0.3)
    assert set(np.unique(y.numpy())) == {np.float32(0), np.float32(1 / 0.7)}
    assert ((y == 0).sum((2, 3)) % 4 == 0).all()
    z = F.alpha_dropout(ag.randn(200, 500), 0.4, True)
    assert abs(z.mean().item()) < 0.02 and abs(z.std().item() - 1) < 0.02
    one = F.gumbel_softmax(ag.zeros(1000, 4), hard=True)
    assert (one.sum(1) == 1).all() and (abs(one.mean(0) - 0.25) < 0.06).all()


ERRORS = [
    (lambda: F.conv2d(ag.ones(1, 4, 5, 5), ag.ones(2, 3, 3, 3)), "to have 3 channels, but got 4 channels instead"),
    (lambda: F.conv2d(ag.ones(1, 3, 2, 2), ag.ones(2, 3, 3, 3)), "Kernel size can't be greater than actual input size"),
    (lambda: F.conv2d(ag.ones(3, 5), ag.ones(2, 3, 3, 3)), "Expected 3D .* or 4D"),
    (lambda: F.conv1d(ag.ones(1, 3, 5), ag.ones(2, 3, 3), ag.ones(3)), "expected bias to be 1-dimensional with 2 elements"),
    (lambda: F.conv1d(ag.ones(1, 3, 5), ag.ones(2, 3, 3), stride=0), "non-positive stride"),
    (lambda: F.conv1d(ag.ones(1, 3, 5), ag.ones(2, 3, 3), padding=-1), "negative padding"),
    (lambda: F.conv1d(ag.ones(1, 3, 5), ag.ones(2, 3, 3), padding="same", stride=2), "not supported for strided"),
    (lambda: F.conv1d(ag.ones(1, 3, 5), ag.ones(2, 3, 3), padding="full"), "Invalid padding string"),
    (lambda: F.conv1d(ag.ones(1, 3, 5, dtype=ag.int64), ag.ones(2, 3, 3)), "not implemented for int64"),
    (lambda: F.conv1d(ag.ones(1, 3, 5, dtype=ag.float64), ag.ones(2, 3, 3)), "should be the same"),
    (lambda: F.conv_transpose1d(ag.ones(1, 3, 5), ag.ones(3, 2, 3), output_padding=1), "must be smaller than either stride or dilation"),
    (lambda: F.conv_transpose1d(ag.ones(1, 3, 1), ag.ones(3, 2, 1), padding=3), "Output size is too small"),
    (lambda: F.max_pool2d(ag.ones(1, 3, 5, 5), 2, padding=2), "pad should be at most half"),
    (lambda: F.max_pool2d(ag.ones(1, 3, 1, 1), 2), "Output size is too small"),
    (lambda: F.avg_pool2d(ag.ones(1, 3, 4, 4), 2, divisor_override=0), "divisor must be not zero"),
    (lambda: F.max_unpool1d(ag.ones(1, 1, 2), ag.tensor([[[0, 9]]]), 2), "lies outside of its plane"),
    (lambda: F.fold(ag.ones(1, 5, 4), (3, 3), (2, 2)), "divisible by the product of kernel_size"),
    (lambda: F.interpolate(ag.ones(1, 1, 4), size=3, mode="bilinear"), "needs 4D input"),
    (lambda: F.interpolate(ag.ones(1, 1, 4)), "either size or scale_factor"),
    (lambda: F.batch_norm(ag.ones(1, 3), None, None, training=True), "more than 1 value per channel"),
    (lambda: F.batch_norm(ag.ones(2, 3), ag.ones(4), ag.ones(3)), "running_mean should contain 3 elements not 4"),
    (lambda: F.batch_norm(ag.ones(2, 3), None, None), "must be defined in evaluation mode"),
    (lambda: F.layer_norm(ag.ones(2, 3), (4,)), r"expected input with shape \[\*, 4\]"),
    (lambda: F.group_norm(ag.ones(2, 3, 2), 2), "divisible by num_groups"),
    (lambda: F.instance_norm(ag.ones(2, 3, 1)), "more than 1 spatial element"),
    (lambda: F.scaled_dot_product_attention(ag.ones(2, 3), ag.ones(2, 3), ag.ones(2, 3), ag.ones(2, 2), is_causal=True), "should not be set"),
    (lambda: F.smooth_l1_loss(ag.ones(2), ag.ones(2), beta=-1), "negative values for beta"),
    (lambda: F.huber_loss(ag.ones(2), ag.ones(2), delta=0), "non-positive values for delta"),
    (lambda: F.gaussian_nll_loss(ag.ones(2), ag.ones(2), ag.tensor([-1.0, 1.0])), "negative entry"),
    (lambda: F.multi_margin_loss(ag.ones(2, 3), ag.tensor([0, 1]), p=3), "only p == 1 and p == 2"),
    (lambda: F.triplet_margin_loss(ag.ones(2, 3), ag.ones(2, 3), ag.ones(2, 3), margin=0), "margin must be greater than 0"),
    (lambda: F.cosine_embedding_loss(ag.ones(2, 3), ag.ones(2, 3), ag.ones(2, 1)), "target tensor expects"),
    (lambda: F.hinge_embedding_loss(ag.ones(2), ag.ones(2), reduction="all"), "not a valid value for reduction"),
    (lambda: F.dropout1d(ag.ones(2)), "Expected 2D or 3D input"),
    (lambda: F.pixel_shuffle(ag.ones(3, 2, 2), 2), "divisible by the square"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda: nn.GroupNorm(2, 3), "must be divisible by num_groups"),
    (lambda: nn.BatchNorm2d(3)(ag.ones(2, 3)), r"expected 4D input \(got 2D input\)"),
    (lambda: nn.MultiheadAttention(5, 2), "embed_dim must be divisible by num_heads"),
    (lambda: nn.LSTM(3, 4)(ag.ones(5, 2, 4)), "must be equal to input_size"),
    (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(call, message):
    with pytest.raises((RuntimeError, ValueError, AssertionError), match=message):
        call()


@pytest.mark.parametrize("bad", [None, "x", 1.5, [], object()])
def test_what_is_no_tensor_is_refused(bad):
    for call in (lambda: F.conv2d(bad, ag.ones(1, 1, 1, 1)), lambda: F.max_pool2d(bad, 2), lambda: F.avg_pool1d(bad, 2),
                 lambda: F.layer_norm(bad, (2,)), lambda: F.batch_norm(bad, None, None), lambda: F.interpolate(bad, 2),
                 lambda: F.conv2d(ag.ones(1, 1, 2, 2), ag.ones(1, 1, 1, 1), stride=bad),
                 lambda: F.max_pool2d(ag.ones(1, 1, 2, 2), bad)):
        with pytest.raises((TypeError, RuntimeError, ValueError, AttributeError, IndexError)):
            call()


def test_what_follows_from_shapes_is_remembered_for_these_alone():
    """Arguments that equal earlier ones without being such integers, and tensors whose values count, are looked at every time."""
    x, w, k = ag.ones(1, 2, 6, 6), ag.ones(2, 2, 3, 3), ag.tensor(2)
    for _ in range(2):
        assert F.conv2d(x, w, stride=(2, 2)).shape == F.conv2d(x, w, stride=[2, 2]).shape == F.conv2d(x, w, stride=(k, k)).shape == (1, 2, 2, 2)
        assert F.max_pool2d(x, 2).shape == F.max_pool2d(x, (k, k)).shape == (1, 2, 3, 3)
        assert F.layer_norm(x, (6, 6)).shape == F.layer_norm(x.double(), [6, 6]).shape
        for call in (lambda: F.conv2d(x, w, stride=2.0), lambda: F.conv2d(x, w, stride=(2.0, 2.0)), lambda: F.conv2d(x, w, stride=True),
                     lambda: F.max_pool2d(x, 2.0), lambda: F.conv2d(x, w.double()), lambda: F.group_norm(x, None),
                     lambda: F.conv2d(x, w, padding="sane")):
            with pytest.raises((TypeError, RuntimeError)):
                call()
        F.conv2d(x, w, padding="same")
        k.fill_(2)
    k.fill_(3)
    assert F.conv2d(x, w, stride=(k, k)).shape == F.max_pool2d(x, (k, k)).shape == (1, 2, 2, 2)
    for factor in (2.0, 3.0, 2):
        assert F.interpolate(x, scale_factor=factor).shape == F.interpolate(x, scale_factor=ag.tensor([factor] * 2)).shape \
            == F.interpolate(x, scale_factor=(ag.tensor(factor), factor)).shape == (1, 2, 6 * factor, 6 * factor)
        assert F.interpolate(x, ag.tensor([3.0 * factor] * 2)).shape == (1, 2, 3 * factor, 3 * factor)
    for n in range(1, 600):                   # more than are remembered
        assert F.avg_pool1d(ag.ones(1, 1, n), 1).shape == (1, 1, n)


def test_graph_of_a_network_runs_again():
    """graph.of knows the rows: the same bytes from a Program as from the layers."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(8))
    x = ag.tensor(normal(3, 1, 4, 4, dtype="f4"), requires_grad=True)
    y = model(x)
    program = ag.graph.of(y)
    assert any("windows.convolve" in str(i) for i in program.instructions)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_depthwise_with_a_weight_that_is_not_finite(value):
    """Padding is no factor of it: the sum is over the elements of the image. Nor do gradients of other places become NaN."""
    rng = np.random.default_rng(0)
    for stride, padding, dilation in [(1, 0, 1), (1, 1, 1), (2, 2, 1), (1, 2, 2)]:
        x, w = leaf(rng.normal(size=(2, 3, 6, 5))), rng.normal(size=(3, 1, 3, 2))
        w[1, 0, 0, 1] = value
        y = F.conv2d(x, ag.tensor(w), stride=stride, padding=padding, dilation=dilation, groups=3)
        g = rng.normal(size=y.shape)
        right, dx = np.zeros(y.shape), np.zeros(x.shape)
        with np.errstate(invalid="ignore"):
            for n, c, p, q, a, b in np.ndindex(*y.shape, 3, 2):
                i, j = p * stride + a * dilation - padding, q * stride + b * dilation - padding
                if 0 <= i < 6 and 0 <= j < 5:
                    right[n, c, p, q] += w[c, 0, a, b] * array(x)[n, c, i, j]
                    dx[n, c, i, j] += w[c, 0, a, b] * g[n, c, p, q]
        close(y, right, 1e-12)
        close(ag.autograd.grad(y, x, ag.tensor(g))[0], dx, 1e-12)
