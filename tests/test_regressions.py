"""Public reports of wrong gradients, crashes and leaks, and worked examples of published systems, with the right values.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
A test's name cites the report, or the defect or line of a published system (a C++ lambda engine, tensort, autodiff, simplegrad).
"""

import copy
import gc
import math
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag

INF, NAN = math.inf, math.nan
ENGINES = pytest.mark.parametrize("engine", ["iterative", "recursive"])


def T(values, grad=False):
    return leaf(values, grad=grad)


# ---------------------------------------------------------------------------------------------------------------------
# Defects of the published systems


@ENGINES
def test_S3_B1_shared_intermediate_is_not_counted_twice(engine):
    x = T(2.0, True)
    b = x * x
    (b + b).backward(engine=engine)
    assert x.grad.item() == 8.0


@ENGINES
def test_S3_B2_node_with_a_consumer_outside_the_expression(engine):
    x = T(2.0, True)
    b = x * x
    other = b + 1
    root = 3 * b
    root.backward(engine=engine)
    assert x.grad.item() == 12.0
    assert other.item() == 5.0


def test_S3_B3_gradient_of_the_exponent():
    a, b = T(3.0, True), T(2.0, True)
    (a**b).backward()
    close(b.grad, 9 * math.log(3), 1e-14)
    close(a.grad, 6.0, 1e-14)
    assert abs(b.grad.item() - 9.8875) < 1e-4


def test_S3_B4_gradient_of_inverse():
    a = T([[2.0, 1.0], [0.5, 3.0]], True)
    g = np.array([[1.0, -2.0], [0.5, 4.0]])
    ag.linalg.inv(a).backward(T(g))
    i = np.linalg.inv(array(a))
    close(a.grad, -i.T @ g @ i.T, 1e-12)
    with pytest.raises(RuntimeError, match="singular"):
        ag.linalg.inv(ag.zeros(2, 2))
    with pytest.raises(ValueError, match="square"):
        ag.linalg.inv(ag.ones(2, 3))


@ENGINES
def test_S3_B5_ladder_of_60_is_linear(engine):
    x = T(1.0, True)
    t = x
    for _ in range(60):
        t = t + t
    t.backward(engine=engine)
    assert t.item() == 2.0**60
    assert x.grad.item() == 2.0**60


def test_S3_B6_leaf_does_not_remember_graphs():
    x = T(1.0, True)
    gone = weakref.ref(x * 2)
    assert gone() is None
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        x * 2
    assert len(gc.get_objects()) - before < 50


def test_S3_B7_comparisons_are_two_sided():
    """The tests' own comparison refuses a wrong sign."""
    with pytest.raises(AssertionError):
        close(T(-5.0), 5.0)
    with pytest.raises(AssertionError):
        close(T(4.0), 5.0)
    with pytest.raises(AssertionError):
        close(T([1.0]), 1.0)


@ENGINES
def test_S4_B1_no_aliased_gradient_buffers(engine):
    x, y = T([2.0], True), T([3.0], True)
    out = x * 3 + (x + y)
    out.retain_grad()
    out.backward(engine=engine)
    assert y.grad.tolist() == [1.0]
    assert out.grad.tolist() == [1.0]
    assert x.grad.tolist() == [4.0]
    assert len({t.grad.data_ptr() for t in (x, y, out)}) == 3


@ENGINES
def test_S4_B2_intermediates_start_clean(engine):
    x = T(2.0, True)
    y = x * x
    z = y * y
    for _ in range(2):
        x.grad = None
        z.backward(retain_graph=True, engine=engine)
        assert x.grad.item() == 32.0


def test_S4_B3_chain_of_2000():
    x = T(1.0, True)
    y = x
    for _ in range(2000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0


def test_S4_B4_constants_get_no_gradient():
    x, c = T([1.0, 2.0], True), T([3.0, 4.0])
    (x * c + c).sum().backward()
    assert c.grad is None
    assert x.grad.tolist() == [3.0, 4.0]


def test_S4_B5_grad_mode_is_per_thread():
    seen = []
    with ag.no_grad():
        thread = threading.Thread(target=lambda: seen.append(ag.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_S4_B6_modules_in_containers_and_shared_parameters():
    nn = ag.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.listed = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 2)])
            self.keyed = nn.ModuleDict({"a": nn.Linear(2, 2)})
            self.shared = self.listed[0]

    net = Net()
    assert len(list(net.parameters())) == 6
    assert len({id(p) for p in net.parameters()}) == 6


# ---------------------------------------------------------------------------------------------------------------------
# Worked examples and numbers of the published systems


def test_S1_10_worked_example():
    x, y, b = T(2.0, True), T(3.0, True), T(4.0, True)
    z = x * y + b
    assert z.item() == 10.0
    z.backward()
    assert (x.grad.item(), y.grad.item(), b.grad.item()) == (3.0, 2.0, 1.0)


def test_S1_06_requires_grad_is_the_or_of_the_inputs():
    a, b = T(1.0, True), T(1.0)
    assert (a + b).requires_grad
    assert (b + a).requires_grad
    assert not (b + b).requires_grad


def test_S1_09_changed_input_is_detected():
    x, w = T([1.0], True), T([2.0])
    y = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match="mul"):
        y.backward()


def test_S1_11_two_products():
    x, y, z = T(2.0, True), T(3.0), T(5.0)
    (x * y + x * z).backward()
    assert x.grad.item() == 8.0


def test_S1_12_root_without_gradient_is_an_error():
    with pytest.raises(RuntimeError, match="(?i)grad"):
        T(1.0).backward()


def test_S1_26_27_update_and_zeroing():
    w = T([1.0, -2.0], True)
    for _ in range(2):
        (w * w).sum().backward()
    assert w.grad.tolist() == [4.0, -8.0]
    w.grad.zero_()
    (w * w).sum().backward()
    with ag.no_grad():
        w -= 0.1 * w.grad
    close(w, [0.8, -1.6], 1e-15)


def test_S1_P09_output_numbers():
    x = T([3.0, 1.0, 2.0], True)
    values, indices = x.max(dim=0)
    assert values.item() == 3.0
    assert indices.item() == 0
    (values * 2).backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_S2_18_add_mul_sum():
    x, y = T([1.0, 2.0], True), T([3.0, 4.0], True)
    ((x + y) * y).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.tolist() == [7.0, 10.0]


def test_S2_32_33_losses():
    F = ag.nn.functional
    assert F.mse_loss(T([1.0, 4.0]), T([0.0, 2.0])).item() == 2.5
    x = T([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]], True)
    loss = F.cross_entropy(x, ag.tensor([1, 2]))
    loss.backward()
    s = np.exp(array(x))
    s /= s.sum(1, keepdims=True)
    close(loss, -(math.log(s[0, 1]) + math.log(s[1, 2])) / 2, 1e-12)
    close(x.grad, (s - np.eye(3)[[1, 2]]) / 2, 1e-12)


def test_S2_45_api_example():
    a, b = ag.randn(3, 4, requires_grad=True), ag.ones(4, 2)
    c = ag.relu(ag.matmul(a, b))
    assert tuple(c.shape) == (3, 2)
    loss = ag.mean(c)
    loss.backward()
    assert tuple(a.grad.shape) == (3, 4)
    alive = array(a).sum(1, keepdims=True) > 0
    close(a.grad, np.broadcast_to(alive / 3, (3, 4)), 1e-6)


def test_S2_40_dead_relu_saturated_sigmoid_long_chain():
    x = T([-1.0, -2.0], True)
    ag.relu(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    s = T([40.0, -40.0], True)
    ag.sigmoid(s).sum().backward()
    assert (array(s.grad) < 1e-16).all()
    assert (array(s.grad) >= 0).all()
    y = z = T(0.5, True)
    for _ in range(50):
        z = z * 1.1
    z.backward()
    close(y.grad, 1.1**50, 1e-12)


def test_S3_21_values_on_both_engines():
    a = [T(v) for v in (2.0, 4.0, 10.0, 16.0)]
    assert ((a[0] + a[1]) + (a[2] + a[3])).item() == 32.0
    assert (T(2.0) ** T(3.0) / T(8.0)).item() == 1.0
    close(ag.exp(T(3.0)) - 2.5, math.exp(3) - 2.5, 1e-15)


@ENGINES
@pytest.mark.parametrize("wanted", [[0], [1], [0, 3], [2], [0, 1, 2, 3, 4, 5, 6]])
def test_S3_29_30_restricted_backward_equals_the_full_one(engine, wanted):
    """exp(a) - b + c * d ** e + f - g: only the chosen leaves get gradients, the same ones."""
    values = [0.5, 2.0, 3.0, 1.5, 2.0, 7.0, 1.0]
    a, b, c, d, e, f, g = full = [T(v, True) for v in values]
    (ag.exp(a) - b + c * d**e + f - g).backward(engine=engine)
    right = [math.exp(0.5), -1.0, 1.5**2, 3 * 2 * 1.5, 3 * 1.5**2 * math.log(1.5), 1.0, -1.0]
    for t, r in zip(full, right, strict=True):
        close(t.grad, r, 1e-14)
    a, b, c, d, e, f, g = some = [T(v, True) for v in values]
    (ag.exp(a) - b + c * d**e + f - g).backward(inputs=[some[k] for k in wanted], engine=engine)
    for k, t in enumerate(some):
        assert (t.grad.item() == full[k].grad.item()) if k in wanted else t.grad is None


def test_S3_15_33_numbers_and_sigmoids():
    a = T([[0.3, 1.2, 2.0], [0.7, 0.1, 5.0], [1.0, 2.5, 0.9]], True)
    (ag.log(a) + 3 * ag.log(a)).sum().backward()
    close(a.grad, 4 / array(a), 1e-13)
    for values in (0.4, np.arange(9.0).reshape(3, 3) - 4):
        x = T(values, True)
        s = 1 / (1 + ag.exp(-1 * x))
        s.sum().backward()
        v = 1 / (1 + np.exp(-np.asarray(values)))
        close(s, v, 1e-13)
        close(x.grad, v * (1 - v), 1e-11)
    assert (15 + T(1.0)).item() == 16.0
    assert (T(1.0) + 15).item() == 16.0


def test_S3_34_linear_regression():
    X, w, y = T([[1.0, 2.0], [3.0, 4.0], [1.0, 3.0]]), T([[1.0], [3.0]], True), T([[2.0], [3.0], [2.0]])
    r = X @ w - y
    loss = (r.t() @ r).sum()
    loss.backward()
    x, v, t = array(X), array(w), array(y)
    assert np.array_equal(array(w.grad), 2 * x.T @ (x @ v - t))
    assert loss.item() == float(((x @ v - t) ** 2).sum())
    w.grad = None
    r = X @ w - y
    ((r.t() @ r).sum() / 3).backward()
    close(w.grad, 2 * x.T @ (x @ v - t) / 3, 1e-14)


def test_S3_35_logistic_regression():
    X, w, y = T([[1.0, 2.0], [3.0, -4.0], [1.0, 3.0]]), T([[0.1], [-0.3]], True), T([[1.0], [0.0], [1.0]])
    s = 1 / (1 + ag.exp(-1 * (X @ w)))
    (y * ag.log(s) + (1 - y) * ag.log(1 - s)).sum().backward()
    x, v, t = array(X), array(w), array(y)
    close(w.grad, x.T @ (t - 1 / (1 + np.exp(-x @ v))), 1e-12)


def test_S3_36_powers_of_exponentials():
    x = T(2.0)
    close(ag.exp(3 * x) ** 2 + 10, math.exp(12) + 10, 1e-13)
    x = T(0.5, True)
    (ag.exp(3 * x + 1) ** 2.5 / 10 + 10).backward()
    close(x.grad, 0.75 * math.exp(7.5 * 0.5 + 2.5), 1e-13)


def test_S3_32_network_in_three_lines():
    rng = np.random.default_rng(0)
    X, y = T(rng.normal(size=(5, 4))), T(np.eye(3)[[0, 1, 2, 0, 1]])
    w1, w2 = T(rng.normal(size=(4, 10)), True), T(rng.normal(size=(10, 3)), True)
    sigm1 = 1 / (1 + ag.exp(-1 * (X @ w1)))
    sigm2 = 1 / (1 + ag.exp(-1 * (sigm1 @ w2)))
    loss = (-1 * (y * ag.log(sigm2) + (1 - y) * ag.log(1 - sigm2))).sum()
    loss.backward()
    x, t, v1, v2 = array(X), array(y), array(w1), array(w2)
    s1 = 1 / (1 + np.exp(-x @ v1))
    s2 = 1 / (1 + np.exp(-s1 @ v2))
    close(loss, -(t * np.log(s2) + (1 - t) * np.log(1 - s2)).sum(), 1e-12)
    close(w2.grad, s1.T @ (s2 - t), 1e-10)
    close(w1.grad, x.T @ ((s2 - t) @ v2.T * s1 * (1 - s1)), 1e-10)


def test_S3_37_second_derivatives_exist():
    x = T(3.0, True)
    (g,) = ag.autograd.grad(x**3, x, create_graph=True)
    (h,) = ag.autograd.grad(g, x)
    assert h.item() == 18.0


def test_S4_26_example():
    x, y = T([2.0, -1.0], True), T([3.0, 4.0], True)
    z = (x + y) * x
    ag.relu(z).sum().backward()
    assert x.grad.tolist() == [7.0, 0.0]
    assert y.grad.tolist() == [2.0, 0.0]


def test_S4_27_numbers():
    F = ag.nn.functional
    x = T([2.0, -3.0], True)
    (x * x + x).sum().backward()
    assert x.grad.tolist() == [5.0, -5.0]
    b = T([1.0, 1.0], True)
    (ag.ones(2, 2, dtype=ag.float64) + b).sum().backward()
    assert b.grad.tolist() == [2.0, 2.0]
    p = T([3.0, -1.0], True)
    loss = F.mse_loss(p, T([1.0, 1.0]))
    loss.backward()
    assert loss.item() == 4.0
    assert p.grad.tolist() == [2.0, -2.0]
    logits = T([[1.0, 2.0, 3.0]], True)
    target = np.array([[0.0, 0.0, 1.0]])
    (-(T(target) * logits.log_softmax(-1)).sum(-1).mean()).backward()
    e = np.exp([[1.0, 2.0, 3.0]])
    close(logits.grad, e / e.sum() - target, 1e-14)


def test_S4_09_log_is_exact():
    assert T(0.0).log().item() == -INF
    assert T(1e-20).log().item() == math.log(1e-20)


def test_S4_13_14_no_grad_and_detach():
    x = T([1.0], True)
    with ag.no_grad():
        y = x * 2
    assert not y.requires_grad
    assert y.grad_fn is None
    d = (x * 2).detach()
    assert not d.requires_grad
    assert d.grad_fn is None
    assert d.tolist() == [2.0]


# ---------------------------------------------------------------------------------------------------------------------
# Public reports


def test_pytorch_68425_overflow_in_the_branch_not_taken():
    a = T(1000.0, True)
    ag.where(a <= 0, ag.exp(a), 1 + a).backward()
    assert a.grad.item() == 1.0


def test_jax_1052_pytorch_52248_sqrt_masked_at_zero():
    x = T([0.0, 4.0], True)
    ag.where(x > 0, ag.sqrt(x), 0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_pytorch_2421_norm_of_zero():
    x = T([0.0, 0.0, 0.0], True)
    x.norm().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_hips_586_norm_squared_at_zero():
    x = T([0.0, 0.0], True)
    (x.norm() ** 2).backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_pytorch_94184_var_of_one_element():
    x = T([[1.0]], True)
    y = x.var()
    y.backward()
    assert math.isnan(y.item())
    assert tuple(x.grad.shape) == (1, 1)
    assert math.isnan(x.grad.item())


def test_jax_6811_logsumexp_of_minus_infinity():
    x = T([-INF, -INF], True)
    ag.logsumexp(x, 0).backward()
    assert np.isfinite(array(x.grad)).all()


def test_pytorch_82644_prod_of_a_single_zero():
    t = T([0.0], True)
    t.prod(0).backward()
    assert t.grad.tolist() == [1.0]


def test_pytorch_106789_second_derivative_of_prod_with_two_zeros():
    x = T([2.0, 3.0, 0.0, 0.0], True)
    (g,) = ag.autograd.grad(ag.prod(x), x, create_graph=True)
    (h,) = ag.autograd.grad(g[2], x)
    assert h.tolist() == [0.0, 0.0, 0.0, 6.0]


@pytest.mark.parametrize("exponent", [0, 0.0, "0-d"])
def test_pytorch_8945_exponent_zero_at_zero(exponent):
    x = T([0.0, 1.0], True)
    x.pow(T(0.0) if exponent == "0-d" else exponent).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_hips_116_fourth_derivative_of_a_square():
    y = x = T(0.0, True)
    y = ag.exp(-(x**2))
    for right in (0.0, -2.0, 0.0, 12.0):
        (y,) = ag.autograd.grad(y, x, create_graph=True)
        close(y, right)


def test_pytorch_56734_maximum_of_equals():
    a, b = T([1.0, 2.0], True), T([1.0, 3.0], True)
    ag.maximum(a, b).sum().backward()
    assert a.grad.tolist() == [0.5, 0.0]
    assert b.grad.tolist() == [0.5, 1.0]


def test_tinygrad_12296_many_ties():
    x = ag.ones(70000).requires_grad_(True)
    x.max().backward()
    close(x.grad, np.full(70000, 1 / 70000), 1e-7)


@pytest.mark.parametrize(("target", "slope"), [(0.0, 0.5), (1.0, -0.5)])
def test_pytorch_1792_bce_of_a_zero_logit(target, slope):
    x = T([0.0], True)
    y = ag.nn.functional.binary_cross_entropy_with_logits(x, T([target]))
    y.backward()
    close(y, math.log(2), 1e-15)
    close(x.grad, [slope], 1e-15)


def test_pytorch_103316_log_of_sigmoid_in_the_tail():
    x = T([-50.0, -1000.0, 0.0], True)
    y = ag.nn.functional.logsigmoid(x)
    y.sum().backward()
    close(y, [-50.0, -1000.0, -math.log(2)], 1e-14)
    close(x.grad, [1.0, 1.0, 0.5], 1e-14)


def test_pytorch_89543_masked_squares():
    x, y = T([1.0, 2.0, 3.0], True), T([0.5, NAN, 1.0])
    m = y == y
    zero = ag.zeros_like(y)
    (ag.where(m, x - ag.where(m, y, zero), zero) ** 2).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 4.0]


def test_pytorch_1787_gradients_of_broadcast_inputs():
    a, b = T([2.0], True), T([[1.0] * 4] * 5, True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [20.0]
    assert b.grad.tolist() == [[2.0] * 4] * 5
    c, d = T([[1.0], [2.0], [3.0], [4.0]], True), T([[1.0, 2.0, 3.0, 4.0]], True)
    (c * d).sum().backward()
    assert c.grad.tolist() == [[10.0]] * 4
    assert d.grad.tolist() == [[10.0] * 4]


def test_mlx_610_unused_comparison():
    a = ag.ones((3, 3), dtype=ag.float64).requires_grad_(True)
    s = a + ag.ones((3, 3, 3), dtype=ag.float64)
    (s < 1).tolist()
    (s**2).backward(ag.ones((3, 3, 3), dtype=ag.float64))
    assert a.grad.tolist() == [[12.0] * 3] * 3


def test_hips_384_broadcast_to():
    x = T([1.0, 1.0, 1.0], True)
    ag.broadcast_to(x, (4, 3)).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_pytorch_15223_broadcast_against_nothing():
    e = ag.zeros((4, 0), dtype=ag.float64).requires_grad_(True)
    b, c = ag.ones(4, dtype=ag.float64).requires_grad_(True), ag.ones((4, 1), dtype=ag.float64).requires_grad_(True)
    (e + b.unsqueeze(1) * c).sum().backward()
    assert b.grad.tolist() == [0.0] * 4
    assert c.grad.tolist() == [[0.0]] * 4
    assert tuple(e.grad.shape) == (4, 0)


def test_burn_5287_selection_of_nothing():
    x = T([1.0, 2.0, 3.0], True)
    x[ag.tensor([], dtype=ag.int64)].sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t.sum(),
        lambda t: t.sum(0),
        lambda t: t.sum(-1),
        lambda t: t.mean(),
        lambda t: t.max(),
        lambda t: t.prod(),
        lambda t: t.amax(),
        lambda t: t.logsumexp(0),
        lambda t: t.norm(1),
    ],
)
def test_chainer_1152_reduction_of_a_number(f):
    x = T(3.0, True)
    f(x).backward()
    assert x.grad.item() == 1.0
    assert tuple(x.grad.shape) == ()


def test_pytorch_4664_in_place_on_expanded():
    a = T([[1.0]])
    with pytest.raises(RuntimeError):
        a.expand(4, 5).add_(1)
    assert a.tolist() == [[1.0]]


def test_pytorch_9634_bias_added_in_place():
    x, b = T([1.0, 2.0, 3.0], True), T(0.5, True)
    h = x * 1.0
    h += b
    h.sum().backward()
    assert b.grad.item() == 3.0
    assert x.grad.tolist() == [1.0] * 3


def test_pytorch_3313_write_to_a_view():
    a, y = T([1.0, 2.0, 3.0], True), T(5.0, True)
    base = a * 1.0
    base[1:].mul_(y)
    base.sum().backward()
    assert base.tolist() == [1.0, 10.0, 15.0]
    assert a.grad.tolist() == [1.0, 5.0, 5.0]
    assert y.grad.item() == 5.0


def test_pytorch_197887_saved_view_overwritten():
    w, x = T([[1.0, 2.0], [3.0, 4.0]], True), T([[1.0, 1.0]])
    y = x.view(1, 2) @ w
    x.add_(10.0)
    with pytest.raises(RuntimeError, match="matmul"):
        y.sum().backward()


def test_pytorch_79996_retain_grad_after_in_place():
    a = T([1.0], True).clone()
    a.retain_grad()
    a.mul_(2)
    (a.clone() + 1).sum().backward()
    assert a.grad.tolist() == [1.0]


def test_pytorch_1631_gather_with_repeated_indices():
    x = T([0.1], True)
    x.gather(0, ag.tensor([0, 0])).backward(T([0.2, 0.3]))
    close(x.grad, [0.5], 1e-15)


@pytest.mark.parametrize("dim", [0, 1])
def test_hips_349_sort_of_several_dimensions(dim):
    v, w = np.array([[3.0, 1.0, 2.0], [0.5, 0.7, 0.1]]), np.arange(6.0).reshape(2, 3)
    x = T(v, True)
    (ag.sort(x, dim=dim)[0] * T(w)).sum().backward()
    g = np.zeros_like(v)
    np.put_along_axis(g, np.argsort(v, axis=dim), w, dim)
    close(x.grad, g)


def test_pytorch_15056_integers_times_a_half():
    y = ag.tensor([1, 3]) * 0.5
    assert y.tolist() == [0.5, 1.5]
    assert y.dtype == ag.float32


def test_pytorch_29252_numpy_integer_scalar():
    t = ag.ones(1, dtype=ag.int64)
    assert (t + np.int64(1)).dtype == ag.int64
    assert (np.int64(1) + t).dtype == ag.int64


def test_pytorch_43874_floor_division_floors():
    assert (ag.tensor([-3, 3]) // 2).tolist() == [-2, 1]
    assert (T([-3.0, 3.0]) // 2).tolist() == [-2.0, 1.0]


def test_pytorch_1164_remainder_has_the_divisors_sign():
    assert (ag.tensor([0, -1, -2, 1]) % 3).tolist() == [0, 2, 1, 1]
    assert (T([-1.0, 1.0]) % 3).tolist() == [2.0, 1.0]


def test_dpctl_945_arange_of_fractions():
    close(ag.arange(9.7, 10), [9.7], 1e-6)
    assert ag.arange(0, 0.5, 1).tolist() == [0.0]
    assert ag.arange(0, 1, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert ag.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert ag.arange(3, 3).numel() == 0


def test_tinygrad_9723_integers_cannot_require_gradients():
    with pytest.raises(RuntimeError):
        ag.tensor([1, 2, 3], requires_grad=True)
    with pytest.raises(RuntimeError):
        ag.tensor([1, 2, 3]).requires_grad_(True)


def test_cupy_6439_long_float32_sum():
    x = ag.ones(17_000_000)
    assert abs(x.sum().item() - 17e6) <= 2
    assert abs(x.mean().item() - 1.0) < 1e-6


def run(code):
    """In a process of its own, as it might crash."""
    done = subprocess.run(
        [sys.executable, "-c", "import autograd_cy as ag\n" + code], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-400:]}"


def test_pytorch_5534_deep_graph_is_freed():
    run(
        "x = ag.tensor([1.0], requires_grad=True)\n"
        "y = x\nfor i in range(200000): y = y + 0.0\n"
        "del y\n"
        "y = x\nfor i in range(200000): y = y + 0.0\n"
        "y.sum().backward()\nassert x.grad.item() == 1.0\n"
    )


def test_micrograd_90_recursion_limit():
    y = x = T(2.0, True)
    for _ in range(20000):
        y = -y
    (g,) = ag.autograd.grad(y, x, create_graph=True)
    assert g.item() == 1.0


def test_pytorch_1288_second_backward():
    x = T([1.0, 2.0], True)
    y = (x.exp() * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_pytorch_113298_mode_as_decorator():
    @ag.set_grad_enabled(False)
    def f(t):
        return t * 2

    try:
        assert ag.is_grad_enabled()
        x = T([1.0], True)
        assert not f(x).requires_grad
        assert (x * 2).requires_grad
    finally:
        ag.set_grad_enabled(True)


def test_pytorch_20528_new_threads_record():
    seen = {}

    def work():
        seen["start"] = ag.is_grad_enabled()
        ag.set_grad_enabled(False)

    with ag.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert ag.is_grad_enabled()
    assert seen == {"start": True}


def test_mygrad_50_results_without_backward_are_freed():
    x = T([1.0, 2.0], True)
    gc.collect()
    gc.disable()
    try:
        y = (x * 2).exp().sum()
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_pytorch_11751_unused_sibling_output():
    a = T([1.0, 2.0], True)
    a0, a1 = a.unbind()
    a0.register_hook(lambda g: None)
    a1.backward()
    assert a.grad.tolist() == [0.0, 1.0]
    assert a0.item() == 1.0


def test_pytorch_3307_deepcopy_keeps_the_gradient():
    a = T([1.0], True)
    (a * 3).sum().backward()
    b = copy.deepcopy(a)
    assert b.requires_grad
    assert b.is_leaf
    assert b.grad.tolist() == [3.0]
    with ag.no_grad():
        b.add_(1)
        b.grad.add_(1)
    assert a.tolist() == [1.0]
    assert a.grad.tolist() == [3.0]


def test_pytorch_54580_deepcopy_of_an_inner_node():
    with pytest.raises(RuntimeError):
        copy.deepcopy(T([1.0], True) * 2)


def test_pytorch_6318_membership():
    a, b = T([1.0, 2.0]), T([1.0, 2.0])
    assert a in [a]
    assert {a: 1}[a] == 1
    assert len({a, b, a}) == 2
    with pytest.raises(RuntimeError):
        bool(a == b)
    assert bool(T(1.0))
    assert not bool(T([0.0]))
    assert (a == None) is False  # noqa: E711


@pytest.mark.parametrize("make", ["from_numpy", "tensor", "as_tensor"])
def test_pytorch_92680_negative_strides(make):
    for a in (np.arange(4.0)[::-1], np.arange(12.0).reshape(3, 4)[:, ::-2], np.arange(6.0).reshape(1, 6)[::-1]):
        t = getattr(ag, make)(a)
        assert np.array_equal(array(t), a)
        assert np.array_equal(array(t * 2), a * 2)


def test_dlpack_55_lifetime():
    n = T([1.0, 2.0]).numpy()
    gc.collect()
    junk = [T([5.0, 5.0]) for _ in range(50)]
    assert n.tolist() == [1.0, 2.0]
    assert len(junk) == 50
    t = T([[1.0, 2.0], [3.0, 4.0]])
    a = np.from_dlpack(t.t())
    t[0, 1] = 9.0
    del t
    gc.collect()
    junk = [T([5.0] * 4) for _ in range(50)]
    assert a.tolist() == [[1.0, 3.0], [9.0, 4.0]]


def test_pytorch_170819_asarray_keeps_the_flag():
    q = T([0.0, 1.0], True)
    ag.asarray(q)
    assert q.requires_grad


@pytest.mark.parametrize("target", [-4, 3, 5])
def test_pytorch_12670_target_out_of_range(target):
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        ag.nn.functional.cross_entropy(T([[1.0, 2.0, 3.0]]), ag.tensor([target]), ignore_index=-1)


def test_pytorch_59477_second_derivative_of_bce():
    x, y = np.array([0.2, 0.7]), np.array([1.0, 0.25])
    t = T(x, True)
    (g,) = ag.autograd.grad(ag.nn.functional.binary_cross_entropy(t, T(y), reduction="sum"), t, create_graph=True)
    (h,) = ag.autograd.grad(g.sum(), t)
    close(h, y / x**2 + (1 - y) / (1 - x) ** 2, 1e-7)


def test_pytorch_13669_used_once_alone_and_once_broadcast():
    z = T(1.0, True)
    ((z.exp() - 0).sum() + (z.exp() - ag.zeros(1000, dtype=ag.float64)).sum()).backward()
    close(z.grad, 1001 * math.e, 1e-12)


def test_thinc_214_rows_taken_several_times():
    w = T([[1.0, 2.0], [3.0, 4.0]], True)
    r = w[ag.tensor([[1, 0], [1, 1]])]
    assert tuple(r.shape) == (2, 2, 2)
    (r * T([[[1.0, 1.0], [2.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]]])).sum().backward()
    assert w.grad.tolist() == [[2.0, 2.0], [8.0, 8.0]]


def test_e3tools_3_softmax_of_large_logits():
    x = ag.tensor([2000.0, 1000.0, 0.0], requires_grad=True)
    assert x.softmax(-1).tolist() == [1.0, 0.0, 0.0]
    y = x.log_softmax(-1)
    assert y.tolist() == [0.0, -1000.0, -2000.0]
    y.sum().backward()
    close(x.grad, [-2.0, 1.0, 1.0], 1e-6)


# ---------------------------------------------------------------------------------------------------------------------
# Found by trying to break the library


def test_types_that_are_called():
    """Nodes are made by operations only; Tensor(...) makes tensors as in older scripts, and never one without memory."""
    for args in ((), ([1.0],), (2, 3)):
        with pytest.raises(TypeError):
            type((leaf([1.0]) * 2).grad_fn)(*args)
    assert ag.Tensor().shape == (0,)
    assert ag.Tensor([1.0]).tolist() == [1.0]
    assert ag.Tensor(2, 3).shape == (2, 3)
    assert (ag.Tensor(2, 3) + 1).shape == (2, 3)
    for args in (("a",), (1.5,), (None,), (-1,), (2**62, 2**62)):
        with pytest.raises((TypeError, ValueError, RuntimeError, MemoryError)):
            ag.Tensor(*args)


@pytest.mark.parametrize("through", [lambda a: a + 1, lambda a: a - 1, lambda a: a.clone(), lambda a: a])
def test_grad_outputs_pass_straight_through(through):
    """A gradient that is grad_outputs itself stays differentiable, and stays apart from it."""
    a, b, u = leaf([3.0]), leaf([5.0]), leaf([1.0])
    ga, gb = ag.autograd.grad(through(a) + b * b, [a, b], grad_outputs=u, create_graph=True)
    (gu,) = ag.autograd.grad((ga + gb).sum(), [u])
    assert gu.tolist() == [11.0]
    assert ga is not u
    assert ga.data_ptr() != u.data_ptr()


def test_view_made_without_recording_is_not_changed_with_it():
    x = leaf([1.0, 2.0])
    y = x * 1
    with ag.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(x[0])
    with ag.no_grad():
        v.mul_(3.0)
    assert y.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("name", ["max", "min"])
def test_extreme_along_a_dim_of_a_number(name):
    x = leaf(3.0)
    getattr(x, name)(dim=0)[0].backward()
    assert x.grad.item() == 1.0


@pytest.mark.parametrize(
    ("a", "b", "da", "db"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (1e-30, 1e-30, 5e29, -5e29),
        (1e25, 1e-5, 1e-55, -1e-25),
        (3.0, 4.0, 0.16, -0.12),
        (float("inf"), 1.0, 0.0, 0.0),
    ],
)
def test_atan2_at_extremes(a, b, da, db):
    x, y = ag.tensor(a, requires_grad=True), ag.tensor(b, requires_grad=True)
    ag.atan2(x, y).backward()
    assert x.grad.item() == pytest.approx(da, rel=1e-6, abs=1e-44)
    assert y.grad.item() == pytest.approx(db, rel=1e-6, abs=1e-44) or b == 1.0


@pytest.mark.parametrize("f", [ag.maximum, ag.minimum])
def test_nan_takes_the_gradient_of_both(f):
    a, b = leaf([float("nan"), 1.0]), leaf([1.0, float("nan")])
    f(a, b).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_dims_and_members_that_make_no_sense():
    x = ag.ones(3)
    for attempt in (lambda: x.select(2**31, 0), lambda: x.narrow(5, 0, 1), lambda: x.narrow(0, 2, 2), lambda: x.narrow(0, -1, 2)):
        with pytest.raises(IndexError):
            attempt()
    for value in ("a", None, [1.0], {}):
        with pytest.raises(TypeError):
            value in x  # noqa: B015
    assert 1.0 in x
    assert 2 not in x


def test_a_repeated_row_and_a_number():
    """The number was read past its end after the first pattern of rows."""
    row = np.arange(5000.0)
    for f in (lambda x: x + 1, lambda x: 1 - x, lambda x: x != 3.0):
        rows = ag.tensor(row).expand(7, 5000)
        np.testing.assert_array_equal(f(rows).numpy(), f(np.broadcast_to(row, (7, 5000))))


def test_pytorch_1381_batch_norm_of_one_value():
    """One value per channel has no variance to train with: an error, not NaN everywhere."""
    layer = ag.nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        layer(ag.ones(1, 2))
    assert layer.running_mean.tolist() == [0.0, 0.0]
    assert layer.eval()(ag.ones(1, 2)).tolist()[0] == pytest.approx([1.0, 1.0], rel=1e-4)


def test_functorch_45_compositions():
    """Nested transformations without confusion of their variables."""
    F, x = ag.func, ag.tensor(2.0, dtype=ag.float64)
    assert F.grad(F.grad(lambda t: t**3))(x).item() == 12.0
    assert F.vmap(F.grad(lambda t: t**3))(ag.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert [v.item() for v in F.jvp(F.grad(lambda t: t**3), (x,), (ag.tensor(1.0, dtype=ag.float64),))] == [12.0, 12.0]
    assert F.grad(lambda a: a * F.grad(lambda b: a + b)(a))(x).item() == 1.0


@pytest.mark.parametrize("record", [False, True])
def test_gradient_of_an_empty_part(record):
    """cat takes empty tensors of one dimension beside any others; their gradient was written as if it had the others' sizes."""
    x, y = leaf(np.zeros(0)), leaf(np.ones((2, 3)))
    gx, gy = ag.autograd.grad((ag.cat([x, y]) ** 2).sum(), (x, y), create_graph=record)
    assert gx.shape == (0,)
    assert gy.tolist() == [[2.0] * 3] * 2
    if record:
        second = ag.autograd.grad((gx * gx).sum() + (gy * gy).sum(), (x, y))
        assert [g.shape for g in second] == [(0,), (2, 3)]


def test_alpha_of_small_integers():
    """alpha * other was computed in the dtype of other, where it wraps, and not in that of the sum."""
    x, u = ag.tensor([1.0, 2.0]), ag.tensor([200, 100], dtype=ag.uint8)
    for result, expected in [
        (x.add(u, alpha=3), [601.0, 302.0]), (x.sub(u, alpha=3), [-599.0, -298.0]), (ag.rsub(u, x, alpha=3), [-599.0, -298.0]),
        (x.clone().add_(u, alpha=3), [601.0, 302.0]), (ag.rsub(u, 2.5, alpha=3), [-597.5, -297.5]), (u.add(u, alpha=3), [32, 144]),
    ]:  # fmt: skip
        assert result.tolist() == expected
    assert ag.rsub(u, 2.5, alpha=3).dtype == x.dtype


def test_masked_fill_keeps_the_dtype():
    mask = ag.tensor([True, False])
    for x in (mask, ag.tensor([1, 2]), ag.tensor([1, 2], dtype=ag.uint8), ag.tensor([1.0, 2.0])):
        for value in (3, 2.5, True, ag.tensor(2.0, dtype=ag.float64)):
            assert ag.masked_fill(x, mask, value).dtype == x.dtype


@pytest.mark.parametrize("index", [([0, 1], [1, 0]), (slice(None), [1]), (ag.tensor([[True, False], [True, True]]),)])
def test_second_derivative_of_a_value_with_leading_ones(index):
    x, v = leaf(np.ones((2, 2))), leaf(np.full((1, 1, 1), 2.0))
    y = x * 1
    y[index] = v
    (g,) = ag.autograd.grad((y**3).sum(), v, create_graph=True)
    (h,) = ag.autograd.grad(g.sum(), v)
    n = y[index].numel()
    assert (g.shape, g.item(), h.item()) == ((1, 1, 1), 12.0 * n, 12.0 * n)


@pytest.mark.parametrize("bounds", [{"min": NAN}, {"max": NAN}, {"min": 0.0, "max": NAN}])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_a_nan_bound_of_clamp_gives_nan(bounds, as_tensors):
    x = ag.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = x.clamp(**{name: ag.tensor(bound) for name, bound in bounds.items()} if as_tensors else bounds)
    assert bool(y.isnan().all())
    y.backward(ag.ones(3))
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    if not as_tensors:
        assert bool(ag.tensor([1.0, 2.0]).clamp_(**bounds).isnan().all())


def test_mvlgamma_of_many_terms():
    """A sum of p terms: one operation, and a bound, since a large p ran for ever."""
    x = ag.tensor([50000.0], dtype=ag.float64)
    assert ag.mvlgamma(x, 65536).shape == (1,)
    assert ag.mvlgamma(ag.tensor(4), 2).dtype is ag.float32
    for p in (0, 65537, 10 ** 30, 2.0):
        with pytest.raises(RuntimeError, match="mvlgamma: p has to be"):
            ag.mvlgamma(x, p)
