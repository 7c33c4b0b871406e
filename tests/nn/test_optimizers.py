"""Optimisers: each step against recorded PyTorch values and against NumPy; groups, state, saving, messages.

Relies on optim and engine/updates.
"""

import copy
import pickle

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn, optim

START = [[1.0, -2.0, 0.5], [0.0, 3.0, -0.25]]
GRADIENT = np.array([[0.5, -1.0, 0.0], [2.0, -0.125, 1e-3]])
FACTORS = (3.0, 1.0, -1.5, 0.01)

# float64 parameters after four steps with GRADIENT * FACTORS[t], from PyTorch 2.13 (foreach=False)
RECORDED = [
    ("SGD", {'lr': 0.1},
     [0.8744999999999999, -1.7489999999999999, 0.5,
      -0.502, 3.0313750000000006, -0.250251]),
    ("SGD", {'lr': 0.1, 'weight_decay': 0.05},
     [0.8570120193749999, -1.7140240387499999, 0.49007475031250003,
      -0.49254992500000006, 2.9712328721875, -0.24528365011875]),
    ("SGD", {'lr': 0.1, 'momentum': 0.9},
     [0.4906499999999999, -0.9812999999999998, 0.5,
      -2.0374000000000003, 3.1273375000000003, -0.2510187]),
    ("SGD", {'lr': 0.1, 'momentum': 0.9, 'dampening': 0.3},
     [0.48869999999999986, -0.9773999999999997, 0.5,
      -2.0452000000000004, 3.127825, -0.25102260000000004]),
    ("SGD", {'lr': 0.1, 'momentum': 0.9, 'nesterov': True, 'weight_decay': 0.01},
     [0.40727643571454697, -0.8145528714290939, 0.49394509205236603,
      -2.322454993560741, 3.108823989411743, -0.2481337735229634]),
    ("SGD", {'lr': 0.1, 'momentum': 0.5, 'maximize': True},
     [1.25675, -2.5135, 0.5,
      1.0270000000000001, 2.9358125, -0.2494865]),
    ("Adam", {'lr': 0.1},
     [0.7519195688975322, -1.751919567851609, 0.5,
      -0.24808043267135269, 3.248080424826928, -0.498079387275578]),
    ("Adam", {'lr': 0.01, 'betas': (0.8, 0.95), 'eps': 1e-06, 'weight_decay': 0.1},
     [0.9749280074940154, -1.9749125056732433, 0.4600806277040153,
      -0.022998475257690006, 2.9891394301504124, -0.20993954598179115]),
    ("Adam", {'lr': 0.1, 'betas': (0.9, 0.5), 'amsgrad': True},
     [0.7687298604607574, -1.7687298595711785, 0.5,
      -0.231270140873611, 3.2312701342017696, -0.4812692517428838]),
    ("Adam", {'lr': 0.1, 'maximize': True},
     [1.2480804311024678, -2.248080432148391, 0.5,
      0.24808043267135269, 2.751919575173072, -0.0019206127244219863]),
    ("AdamW", {'lr': 0.1},
     [0.7484328174242886, -1.7444388123813088, 0.4980029980005,
      -0.24757318014268132, 3.235591160315832, -0.4965736356895123]),
    ("AdamW", {'lr': 0.1, 'weight_decay': 0.3, 'amsgrad': True, 'maximize': True},
     [1.1184760864687802, -2.0037688974574466, 0.44264640499999997,
      0.23318327795178062, 2.422695159463222, 0.011859087283422613]),
    ("RMSprop", {'lr': 0.01},
     [0.911136374187449, -1.9111363710803475, 0.5,
      -0.08886363047320323, 3.088863607169947, -0.33886052503262487]),
    ("RMSprop", {'lr': 0.01, 'alpha': 0.9, 'weight_decay': 0.1},
     [0.9671039992771874, -1.967008484153202, 0.41200548044677143,
      -0.027481229869519695, 2.9563706099228804, -0.16213863434704653]),
    ("RMSprop", {'lr': 0.01, 'centered': True},
     [0.9104823726374395, -1.9104823694864392, 0.5,
      -0.08951763208906056, 3.0895176084565654, -0.3395144827740816]),
    ("RMSprop", {'lr': 0.01, 'momentum': 0.9},
     [0.6517890801687417, -1.651789068325431, 0.5,
      -0.34821093759622473, 3.34821084877141, -0.5981991006070105]),
    ("RMSprop", {'lr': 0.01, 'momentum': 0.9, 'centered': True, 'eps': 0.0001, 'maximize': True},
     [1.350195639347022, -2.3503154339628853, 0.5,
      0.3503753618791988, 2.6505214186320183, 0.011015056784874558]),
]
IDS = [f"{name}-{'-'.join(options)}" for name, options, _ in RECORDED]


def leaf(values, dtype=None):
    return ag.tensor(values, dtype=dtype or ag.float64).requires_grad_()


def array(t):
    return np.array(t.detach().numpy())


def set_grad(p, values):
    p.grad = ag.tensor(values, dtype=p.dtype)


def reference(name, options, p, gradients):
    """The formulas of PyTorch's documentation, in NumPy."""
    o = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.01 if name == "AdamW" else 0.0, "nesterov": False,
         "maximize": False, "betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False, "alpha": 0.99, "centered": False, **options}
    lr, decay, mu = o["lr"], o["weight_decay"], o["momentum"]
    buf, m, v, vmax, mean = None, np.zeros_like(p), np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    b1, b2 = o["betas"]
    for t, g in enumerate(gradients, 1):
        g = -g if o["maximize"] else g
        if name == "AdamW":
            p = p * (1 - lr * decay)
        else:
            g = g + decay * p
        if name == "SGD":
            if mu:
                buf = g if buf is None else mu * buf + (1 - o["dampening"]) * g
                g = g + mu * buf if o["nesterov"] else buf
            p = p - lr * g
        elif name == "RMSprop":
            v = o["alpha"] * v + (1 - o["alpha"]) * g * g
            mean = o["alpha"] * mean + (1 - o["alpha"]) * g
            step = g / (np.sqrt(v - mean * mean if o["centered"] else v) + o["eps"])
            buf = step if not mu else mu * (0 if buf is None else buf) + step
            p = p - lr * buf
        else:
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            vmax = np.maximum(vmax, v)
            p = p - lr * (m / (1 - b1 ** t)) / (np.sqrt((vmax if o["amsgrad"] else v) / (1 - b2 ** t)) + o["eps"])
        yield p


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=IDS)
def test_equals_recorded_pytorch(name, options, expected):
    p = leaf(START)
    opt = getattr(optim, name)([p], **options)
    for factor in FACTORS:
        set_grad(p, GRADIENT * factor)
        opt.step()
    np.testing.assert_allclose(array(p).reshape(-1), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=IDS)
def test_equals_numpy_step_by_step(name, options, expected):
    p = leaf(START)
    opt = getattr(optim, name)([p], **options)
    gradients = [GRADIENT * f for f in FACTORS]
    for g, right in zip(gradients, reference(name, options, np.array(START), gradients), strict=True):
        set_grad(p, g)
        assert opt.step() is None
        np.testing.assert_allclose(array(p), right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=IDS)
def test_strided_parameters_and_gradients(name, options, expected):
    values = np.array(START)
    p = ag.tensor(values.T.copy(), dtype=ag.float64).t().requires_grad_()
    assert not p.is_contiguous()
    opt = getattr(optim, name)([p], **options)
    for factor in FACTORS:
        p.grad = ag.tensor((GRADIENT * factor).T.copy(), dtype=ag.float64).t()
        opt.step()
    np.testing.assert_allclose(array(p).reshape(-1), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=IDS)
def test_saved_in_the_middle_and_loaded(name, options, expected):
    """State is the optimiser's own; saving and loading it continues exactly."""
    p = leaf(START)
    opt = getattr(optim, name)([p], **options)
    for k, factor in enumerate(FACTORS):
        if k == 2:
            saved = pickle.loads(pickle.dumps(opt.state_dict()))
            p = leaf(array(p))
            opt = getattr(optim, name)([p], **{**options, "lr": 123.0})
            opt.load_state_dict(saved)
            assert opt.param_groups[0]["lr"] == options["lr"]
        set_grad(p, GRADIENT * factor)
        opt.step()
    np.testing.assert_allclose(array(p).reshape(-1), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=IDS)
def test_equals_installed_pytorch(name, options, expected, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start = rng.standard_normal((17, 5)).astype(dtype)
    p = ag.tensor(start).requires_grad_()
    q = torch.tensor(start).requires_grad_()
    a, b = getattr(optim, name)([p], **options), getattr(torch.optim, name)([q], foreach=False, **options)
    for _ in range(20):
        g = rng.standard_normal((17, 5)).astype(dtype)
        p.grad, q.grad = ag.tensor(g), torch.tensor(g)
        a.step()
        b.step()
        tolerance = 2e-6 if dtype == "float32" else 2e-15
        np.testing.assert_allclose(array(p), q.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_s4_27_one_step():
    p = leaf([1.0, -2.0])
    set_grad(p, [0.5, -1.0])
    optim.SGD([p], lr=0.1).step()
    np.testing.assert_allclose(array(p), [0.95, -1.9], rtol=1e-15)
    p = leaf([1.0, -2.0])
    set_grad(p, [0.5, -1.0])
    optim.Adam([p], lr=0.1).step()
    np.testing.assert_allclose(array(p), [0.9, -1.9], rtol=1e-7)


def test_mlx_473_sgd_dampening_and_decay():
    """ml-explore/mlx#473: the first step is not dampened, and weight decay works without momentum."""
    p = leaf([1.0])
    opt = optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5)
    for right in (0.9, 0.76):
        set_grad(p, [1.0])
        opt.step()
        np.testing.assert_allclose(array(p), [right], rtol=1e-12)
    p = leaf([1.0])
    set_grad(p, [1.0])
    optim.SGD([p], lr=0.1, weight_decay=0.5).step()
    np.testing.assert_allclose(array(p), [0.85], rtol=1e-12)


def test_pytorch_2647_state_of_an_optimizer_that_never_stepped():
    p = leaf([1.0])
    opt = optim.Adam([p], lr=0.1)
    opt.load_state_dict(optim.Adam([p], lr=0.1).state_dict())
    set_grad(p, [1.0])
    opt.step()
    np.testing.assert_allclose(array(p), [0.9], rtol=1e-6)


def test_no_gradient_is_skipped():
    """Parameters without a gradient keep their values, and get no state."""
    p, q = leaf([1.0]), leaf([2.0])
    set_grad(p, [1.0])
    for opt in (optim.SGD([p, q], lr=0.1, momentum=0.9), optim.Adam([p, q]), optim.RMSprop([p, q])):
        opt.step()
        assert float(q[0]) == 2.0
        assert q not in opt.state
        assert p in opt.state


def test_s1_27_s4_24_gradients_add_up_until_zeroed():
    p = leaf([3.0])
    opt = optim.SGD([p], lr=0.1)
    (p * 2).sum().backward()
    (p * 2).sum().backward()
    assert float(p.grad[0]) == 4.0
    kept = p.grad
    opt.zero_grad(set_to_none=False)
    assert float(p.grad[0]) == 0.0
    assert float(kept[0]) == 0.0                      # in place
    opt.zero_grad()
    assert p.grad is None


def test_the_update_is_an_in_place_change():
    """A graph that still needs the old values must refuse to run backward."""
    p = leaf([2.0])
    y = (p * p).sum()
    set_grad(p, [1.0])
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError):
        y.backward()


def test_options_are_read_at_every_step():
    p = leaf([1.0])
    opt = optim.SGD([p], lr=0.1)
    for lr in (0.1, 0.01, ag.tensor(0.5)):
        before = float(p[0])
        opt.param_groups[0]["lr"] = lr
        set_grad(p, [1.0])
        opt.step()
        assert float(p[0]) == pytest.approx(before - float(lr))


def test_groups_have_their_own_options():
    p, q = leaf([1.0]), leaf([1.0])
    opt = optim.SGD([{"params": [p]}, {"params": q, "lr": 0.01}], lr=0.1)
    set_grad(p, [1.0])
    set_grad(q, [1.0])
    opt.step()
    assert float(p[0]) == pytest.approx(0.9)
    assert float(q[0]) == pytest.approx(0.99)
    r = leaf([1.0])
    opt.add_param_group({"params": [r], "lr": 1.0})
    set_grad(r, [1.0])
    opt.step()
    assert float(r[0]) == pytest.approx(0.0)


def test_closure():
    p = leaf([3.0])
    opt = optim.SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with ag.no_grad():
        loss = opt.step(closure)
    assert float(loss) == 9.0
    assert float(p[0]) == 1.5


def test_state_dict_has_pytorch_format():
    p, q = leaf([1.0, 2.0]), leaf([[1.0]])
    opt = optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    set_grad(p, [1.0, 1.0])
    set_grad(q, [[1.0]])
    opt.step()
    saved = opt.state_dict()
    assert set(saved) == {"state", "param_groups"}
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    assert saved["param_groups"][1]["lr"] == 0.5
    assert set(saved["state"]) == {0, 1}
    assert set(saved["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert float(saved["state"][0]["step"]) == 1.0
    assert opt.state[p]["exp_avg"] is saved["state"][0]["exp_avg"]
    assert list(opt.state[p]) == ["step", "exp_avg", "exp_avg_sq"]


def test_loaded_state_is_a_copy_in_the_parameters_dtype():
    p = leaf([1.0, 2.0])
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    set_grad(p, [1.0, 1.0])
    opt.step()
    saved = opt.state_dict()
    q = leaf([1.0, 2.0], ag.float32)
    other = optim.SGD([q], lr=0.1, momentum=0.9)
    other.load_state_dict(saved)
    set_grad(q, [1.0, 1.0])
    other.step()
    assert other.state[q]["momentum_buffer"].dtype == ag.float32
    np.testing.assert_allclose(array(other.state[q]["momentum_buffer"]), [1.9, 1.9], rtol=1e-6)
    np.testing.assert_allclose(array(opt.state[p]["momentum_buffer"]), [1.0, 1.0])


@pytest.mark.parametrize("step", [3, 3.0, "tensor"])
def test_step_may_be_a_number_or_a_tensor(step):
    p = leaf([1.0])
    opt = optim.Adam([p], lr=0.1)
    state = {"step": ag.tensor(3.0) if step == "tensor" else step, "exp_avg": ag.zeros(1, dtype=ag.float64),
             "exp_avg_sq": ag.zeros(1, dtype=ag.float64)}
    opt.load_state_dict({"state": {0: state}, "param_groups": opt.state_dict()["param_groups"]})
    set_grad(p, [1.0])
    opt.step()
    assert opt.state[p]["step"] == 4


def test_state_may_be_cleared_and_edited():
    p = leaf([1.0])
    opt = optim.Adam([p], lr=0.1)
    set_grad(p, [1.0])
    opt.step()
    opt.state.clear()
    opt.step()
    assert opt.state[p]["step"] == 1
    opt.state[p]["exp_avg"].zero_()
    opt.state[p]["step"] = 7
    opt.step()
    assert opt.state[p]["step"] == 8
    opt.state[p]["exp_avg"] = ag.zeros(5, dtype=ag.float64)
    with pytest.raises(RuntimeError, match="exp_avg"):
        opt.step()


def test_deepcopy_and_pickle():
    net = nn.Linear(2, 1)
    opt = optim.Adam(net.parameters(), lr=0.1)
    net(ag.ones(3, 2)).sum().backward()
    opt.step()
    both = copy.deepcopy((net, opt))
    again = pickle.loads(pickle.dumps((net, opt)))
    for n, o in (both, again):
        assert o.param_groups[0]["params"][0] is n.weight
        n(ag.ones(3, 2)).sum().backward()
        o.step()
    np.testing.assert_array_equal(array(both[0].weight), array(again[0].weight))
    assert both[1].state[both[0].weight]["step"] == 2
    assert opt.state[net.weight]["step"] == 1


def test_repr():
    assert repr(optim.RMSprop([leaf([1.0])], lr=0.1)) == """RMSprop (
Parameter Group 0
    alpha: 0.99
    capturable: False
    centered: False
    differentiable: False
    eps: 1e-08
    foreach: None
    lr: 0.1
    maximize: False
    momentum: 0.0
    weight_decay: 0.0
)"""


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda p: optim.SGD([p], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    (lambda p: optim.SGD([p], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
    (lambda p: optim.SGD([p], momentum=-0.1), ValueError, "Invalid momentum value: -0.1"),
    (lambda p: optim.SGD([p], weight_decay=-0.1), ValueError, "Invalid weight_decay value: -0.1"),
    (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
    (lambda p: optim.Adam([p], eps=-1.0), ValueError, "Invalid epsilon value: -1.0"),
    (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
    (lambda p: optim.AdamW([p], betas=(0.9, -0.1)), ValueError, "Invalid beta parameter at index 1: -0.1"),
    (lambda p: optim.RMSprop([p], alpha=-0.1), ValueError, "Invalid alpha value: -0.1"),
    (lambda p: optim.SGD([p], differentiable=True), ValueError, "differentiable"),
    (lambda p: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
    (lambda p: optim.SGD([p, p]), ValueError, "duplicate parameters"),
    (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "appear in more than one parameter group"),
    (lambda p: optim.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
    (lambda p: optim.SGD(p), TypeError, "should be an iterable of Tensors or dicts"),
    (lambda p: optim.SGD([1.0]), TypeError, "can only optimize Tensors, but one of the params is float"),
    (lambda p: optim.SGD([{"params": {p}}]), TypeError, "ordered collections"),
    (lambda p: optim.SGD([p]).add_param_group([p]), TypeError, "param_group must be a dict"),
    (lambda p: optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}), ValueError,
     "different number of parameter groups"),
    (lambda p: optim.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}), ValueError,
     "doesn't match the size of optimizer's group"),
])
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make(leaf([1.0]))


def test_an_optimizer_of_ones_own():
    class SignSGD(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with ag.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        state["count"] = state.get("count", 0) + 1
                        p -= group["lr"] * p.grad.sign()

    p = leaf([1.0, 2.0])
    opt = SignSGD([p], lr=0.5)
    set_grad(p, [3.0, -4.0])
    opt.step()
    opt.step()
    np.testing.assert_allclose(array(p), [0.0, 3.0])
    assert opt.state[p]["count"] == 2


def test_s1_29_regularisation_at_update_time():
    """L2 as weight_decay, L1 by hand between backward and step."""
    p = leaf([1.0, -2.0])
    set_grad(p, [0.0, 0.0])
    optim.SGD([p], lr=0.1, weight_decay=0.5).step()
    np.testing.assert_allclose(array(p), [0.95, -1.9])
    set_grad(p, [0.0, 0.0])
    p.grad += 0.5 * p.detach().sign()
    optim.SGD([p], lr=0.1).step()
    np.testing.assert_allclose(array(p), [0.90, -1.85])


def test_zero_size_and_scalar_parameters():
    p, q = leaf(np.zeros((0, 3))), leaf(2.0)
    for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop):
        p.grad, q.grad = ag.zeros((0, 3), dtype=ag.float64), ag.tensor(1.0, dtype=ag.float64)
        kind([p, q], lr=0.1).step()
    assert float(q) < 2.0


def test_large_parameters_take_the_path_without_the_lock():
    rng = np.random.default_rng(1)
    start, g = rng.standard_normal(40_000), rng.standard_normal(40_000)
    for name in ("SGD", "Adam", "RMSprop"):
        p = leaf(start)
        set_grad(p, g)
        getattr(optim, name)([p], lr=0.1).step()
        right, = reference(name, {"lr": 0.1}, start, [g])
        np.testing.assert_allclose(array(p), right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), [("SGD", {"momentum": 0.5}), ("SGD", {"momentum": 0.5, "nesterov": True}), ("Adam", {}),
                                           ("Adam", {"amsgrad": True}), ("RMSprop", {"momentum": 0.5, "centered": True, "alpha": 0.5})])
def test_the_means_of_a_dead_unit_become_zero(name, options, dtype):
    """Rounding would keep them at a subnormal number for ever, with which processors compute many times slower."""
    p = ag.zeros(37, dtype=getattr(ag, dtype)).requires_grad_()
    opt = getattr(optim, name)([p], lr=0.1, **options)
    p.grad = ag.full((37,), 1e-3, dtype=p.dtype)
    opt.step()
    p.grad = ag.zeros_like(p)
    smallest = np.finfo(dtype).tiny
    for _ in range(10_000):
        opt.step()
        for kept in opt.state[p].values():
            if isinstance(kept, ag.Tensor):
                magnitude = np.abs(kept.numpy())
                assert np.all((magnitude == 0) | (magnitude >= smallest))
    first = opt.state[p]["momentum_buffer" if "momentum" in options else "exp_avg"]
    assert not first.any()
    p.grad = ag.full((37,), float("nan"), dtype=p.dtype)
    opt.step()
    assert bool(first.isnan().all())             # the comparison with the smallest number keeps NaN


def test_parameters_of_several_numbers_of_steps_and_dtypes_in_one_optimizer():
    """Neighbours that share both are updated in one call; every order must give what each gives by itself."""
    rng = np.random.default_rng(7)
    starts = [rng.standard_normal(n).astype(kind) for n, kind in
              [(3, "f4"), (5, "f4"), (4, "f8"), (1, "f4"), (40, "f4"), (2, "f8"), *[(2, "f4")] * 40]]
    gradients = [[rng.standard_normal(s.shape).astype(s.dtype) for s in starts] for _ in range(6)]

    def has_gradient(step, k):
        return (step + k) % 3 != 0 or k < 2

    alone, together = [ag.tensor(s).requires_grad_() for s in starts], [ag.tensor(s).requires_grad_() for s in starts]
    ones, one = [optim.Adam([p], lr=0.1) for p in alone], optim.Adam(together, lr=0.1)
    for step, given in enumerate(gradients):
        for k, g in enumerate(given):
            alone[k].grad, together[k].grad = [ag.tensor(g) if has_gradient(step, k) else None for _ in range(2)]
        for opt in (*ones, one):
            opt.step()
    for p, q in zip(alone, together, strict=True):
        assert array(p).tobytes() == array(q).tobytes()
        assert ones[0].state[alone[0]]["step"] == 6
    assert [one.state[q]["step"] for q in together] == [opt.state[p]["step"] for opt, p in zip(ones, alone, strict=True)]
