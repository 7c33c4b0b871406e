"""The optimisers without a kernel of their own, averaged models, packed sequences and computed weights, against PyTorch 2.13.

Relies on optim, nn and tests/numeric.py; nothing relies on it.
"""

import copy
import pickle

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag
from autograd_cy import nn, optim
from autograd_cy.nn.utils import rnn
from autograd_cy.optim import swa_utils

START = [[1.0, -2.0, 0.5], [0.0, 3.0, -0.25]]
GRADIENT = np.array([[0.5, -1.0, 0.0], [2.0, -0.125, 1e-3]])
FACTORS = (3.0, 1.0, -1.5, 0.01)

# float64 parameters after four steps with GRADIENT * FACTORS[t], from PyTorch 2.13 (foreach=False)
RECORDED = [
    ("Adagrad", {'lr': 0.1, 'lr_decay': 0.1, 'weight_decay': 0.05, 'initial_accumulator_value': 0.2},
     [0.9046392285838812, -1.9013000571131897, 0.48072475939968695, -0.0927927616121621, 2.9749660843229297, -0.24091139068622794]),
    ("Adadelta", {'lr': 0.5, 'rho': 0.8, 'weight_decay': 0.1},
     [0.9988296906788486, -1.9988295027341012, 0.4952408967983523, -0.0008687980685101449, 2.996138649461789, -0.2450461962694747]),
    ("Adamax", {'lr': 0.1, 'betas': (0.8, 0.9), 'weight_decay': 0.1, 'maximize': True},
     [1.184231545578514, -2.185520082266207, 0.11686352710491824, 0.20519183099592678, 2.68212229445967, 0.04687382612851524]),
    ("NAdam", {'lr': 0.1, 'weight_decay': 0.1},
     [0.8736439443669136, -1.8724619923019221, 0.20995535326757475, -0.10810439927511384, 2.837402595357682, -0.007657871611145088]),
    ("NAdam", {'lr': 0.1, 'weight_decay': 0.1, 'decoupled_weight_decay': True},
     [0.8554062800437476, -1.8160022897034471, 0.480298005, -0.10518973046670325, 2.986977757914449, -0.3453383928373815]),
    ("RAdam", {'lr': 0.1, 'betas': (0.9, 0.5)},
     [0.6947764356968954, -1.3895528713937908, 0.5, -1.2208942572124182, 3.0763058910757763, -0.2506104471286062]),
    ("RAdam", {'lr': 0.1, 'betas': (0.9, 0.99), 'weight_decay': 0.1, 'decoupled_weight_decay': True},
     [0.6621028656522266, -1.3242057313044533, 0.480298005, -1.1939725773910936, 2.956411316086943, -0.24074598878869555]),
    ("Rprop", {'lr': 0.1, 'etas': (0.4, 1.5), 'step_sizes': (0.01, 0.12)},
     [0.732, -1.7319999999999998, 0.5, -0.268, 3.2680000000000002, -0.518]),
    ("ASGD", {'lr': 0.1, 'lambd': 0.01, 't0': 1.0, 'weight_decay': 0.1},
     [0.8363524435814822, -1.6727048871629644, 0.47838423921663137, -0.4816641394071216, 2.9004094440127335, -0.2394329516780192]),
    ("Adafactor", {'lr': 0.1, 'weight_decay': 0.1, 'd': 1.5},
     [0.9080272636943599, -1.7061192695211964, 0.480298005, -0.11731836150134445, 2.896787426304234, -0.3610780015736098]),
    ("Adafactor", {'lr': 0.5, 'beta2_decay': -0.5, 'eps': (0.001, 0.1), 'maximize': True},
     [1.0816193496086295, -2.333926510450862, 0.5, 0.1821509744062984, 2.9767116194143988, -0.062243073178413724]),
]


CASES = pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=[f"{k}-{r[0]}" for k, r in enumerate(RECORDED)])


@CASES
def test_equals_recorded_pytorch(name, options, expected):
    p = leaf(START)
    opt = getattr(optim, name)([p], **options)
    for factor in FACTORS:
        p.grad = ag.tensor(GRADIENT * factor)
        assert opt.step(lambda: 7) == 7
    np.testing.assert_allclose(array(p).reshape(-1), expected, rtol=1e-7)      # mu_product, eta and mu are float32 in PyTorch, too


@CASES
def test_saved_in_the_middle_and_loaded(name, options, expected):
    p = leaf(START)
    opt = getattr(optim, name)([p], **options)
    for k, factor in enumerate(FACTORS):
        if k == 2:
            saved = pickle.loads(pickle.dumps(opt.state_dict()))
            assert saved["state"][0]["step"].item() == 2.0
            p = leaf(array(p))
            opt = getattr(optim, name)([p], **{**options, "lr": 123.0})
            opt.load_state_dict(saved)
        p.grad = ag.tensor(GRADIENT * factor)
        opt.step()
    np.testing.assert_allclose(array(p).reshape(-1), expected, rtol=1e-7)


def test_options_that_are_refused():
    p = leaf(START)
    assert optim.Adagrad([p], 0.5, 0.1).defaults["lr_decay"] == 0.1
    for make, message in [
        (lambda: optim.Adagrad([p], lr=-1), "learning rate"), (lambda: optim.Adamax([p], betas=(0.9, 1.0)), "beta parameter at index 1"),
        (lambda: optim.Adadelta([p], rho=1.5), "rho"), (lambda: optim.Rprop([p], etas=(1.5, 1.2)), "eta"),
        (lambda: optim.ASGD([p], weight_decay=-1), "weight_decay"), (lambda: optim.LBFGS([{"params": [p]}, {"params": [leaf(1.0)]}]), "per-parameter"),
        (lambda: optim.LBFGS([p], lr=-1), "learning rate"),
        (lambda: optim.Adafactor([p], beta2_decay=0.1), "beta2_decay"), (lambda: optim.Adafactor([p], eps=(-1.0, 0.1)), "epsilon1"),
        (lambda: optim.Adafactor([p], eps=(None, -1.0)), "epsilon2"), (lambda: optim.Adafactor([p], d=0.5), "clipping threshold"),
        (lambda: optim.Muon([p, leaf([1.0])]), r"only supports 2D parameters.*\(1,\)"), (lambda: optim.Muon([p], momentum=-1), "momentum"),
        (lambda: optim.Muon([p], ns_steps=100), "100"), (lambda: optim.Muon([p], ns_coefficients=(1.0, 2.0)), "3 coefficients"),
        (lambda: optim.Muon([p], adjust_lr_fn="other"), "other"),
    ]:   # fmt: skip
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="Adagrad"):
        optim.Adagrad([p], momentum=0.9)
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(AttributeError, match="Lion"):
        optim.Lion


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(), (5,), (4, 3), (3, 1, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adafactor_equals_installed_pytorch(shape, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape).astype(dtype)
    p, q = ag.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    a, b = (L.optim.Adafactor([t], 0.1, -0.7, weight_decay=0.1) for L, t in ((ag, p), (torch, q)))
    for k in range(8):
        g = np.asarray(rng.normal(size=shape) * 10.0 ** -k, dtype)
        p.grad, q.grad = ag.tensor(g), torch.tensor(g)
        a.step()
        b.step()
        np.testing.assert_allclose(array(p), q.detach().numpy(), rtol=1e-5 if dtype == "float32" else 1e-14)
        for key, value in b.state_dict()["state"][0].items():
            np.testing.assert_allclose(array(a.state_dict()["state"][0][key]), value, rtol=1e-5)
            assert a.state_dict()["state"][0][key].shape == value.shape


def orthogonal(x, steps, a, b, c):
    x = x / np.linalg.norm(x)
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x


@pytest.mark.parametrize(("shape", "options"), [
    ((4, 3), {}), ((3, 6), {"lr": 0.02, "nesterov": False}), ((6, 3), {"lr": 0.02, "adjust_lr_fn": "match_rms_adamw", "momentum": 0.5, "weight_decay": 0.0}),
    ((6, 3), {"lr": 0.02, "ns_steps": 1, "ns_coefficients": (2.0, -1.5, 0.5)}), ((1, 1), {"adjust_lr_fn": "original"}),
])
def test_muon(shape, options):
    """Against NumPy, and where it is installed PyTorch, which rounds to bfloat16 on the way."""
    try:
        import torch
    except ImportError:
        torch = None
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape)
    o = {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True, "ns_coefficients": (3.4445, -4.775, 2.0315), "ns_steps": 5} | options
    p, expected, mean = leaf(start), start, np.zeros(shape)
    opt = optim.Muon([p], **options)
    if torch:
        q = torch.tensor(start, requires_grad=True)
        other = torch.optim.Muon([q], **options)
    for k in range(6):
        if k == 3:
            saved, p = pickle.loads(pickle.dumps(opt.state_dict())), leaf(array(p))
            opt = optim.Muon([p], lr=5.0)
            opt.load_state_dict(saved)
        g = rng.normal(size=shape)
        p.grad = ag.tensor(g)
        opt.step()
        mean = mean * o["momentum"] + g * (1 - o["momentum"])
        m = g + (mean - g) * o["momentum"] if o["nesterov"] else mean
        tall = shape[0] > shape[1]
        m = orthogonal(m.T if tall else m, o["ns_steps"], *o["ns_coefficients"])
        ratio = 0.2 * max(shape) ** 0.5 if o.get("adjust_lr_fn") == "match_rms_adamw" else max(1, shape[0] / shape[1]) ** 0.5
        expected = expected * (1 - o["lr"] * o["weight_decay"]) - o["lr"] * ratio * (m.T if tall else m)
        close(p, expected, 1e-12)
        if torch:
            q.grad = torch.tensor(g)
            other.step()
            np.testing.assert_allclose(array(p), q.detach().numpy(), rtol=0, atol=0.03 * o["lr"] * (k + 1))
    close(opt.state[p]["momentum_buffer"], mean, 1e-12)


# ---- L-BFGS

def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum(search):
    x = leaf([-1.5, 2.0])
    opt = optim.LBFGS([x], lr=1 if search else 1e-3, max_iter=60, history_size=10, line_search_fn=search)
    calls = []

    def closure():
        opt.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        calls.append(loss.item())
        return loss

    first = opt.step(closure).item()
    assert first == calls[0]
    assert len(calls) == opt.state[x]["func_evals"] <= 75 + 25
    assert opt.state_dict()["state"][0]["n_iter"] <= 60
    if search:
        opt.step(closure)
        close(x, [1.0, 1.0], 1e-3)
    else:
        assert calls[-1] < first


@pytest.mark.oracle
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_equals_installed_pytorch(search):
    torch = pytest.importorskip("torch")
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, b, start = rng.normal(size=(8, 5)), rng.normal(size=8), rng.normal(size=5)
        found = []
        for L in (ag, torch):
            x = L.tensor(start, requires_grad=True)
            opt = L.optim.LBFGS([x], lr=0.7, max_iter=7, history_size=3, line_search_fn=search)

            def closure(L=L, x=x, opt=opt):
                opt.zero_grad()
                loss = ((L.tensor(a) @ x.sin() - L.tensor(b)) ** 2).sum() + (x ** 4).sum()
                loss.backward()
                return loss

            found.append([(opt.step(closure).item(), *x.tolist(), opt.state[x]["func_evals"]) for _ in range(4)])
        np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-8)


# ---- averages of models

def test_averaged_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    swa = swa_utils.AveragedModel(model)
    ema = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    own = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.9), use_buffers=True)
    values = []
    for k in range(4):
        with ag.no_grad():
            model[0].weight.fill_(float(k * k))
        values.append(k * k)
        for averaged in (swa, ema, own):
            averaged.update_parameters(model)
    assert swa.module[0].weight[0, 0].item() == pytest.approx(np.mean(values)) and swa.n_averaged.item() == 4
    right = 0.0
    for v in values[1:]:
        right = 0.9 * right + 0.1 * v
    assert ema.module[0].weight[0, 0].item() == pytest.approx(right) == own.module[0].weight[0, 0].item()
    x = ag.randn(16, 2)
    swa.eval()
    swa_utils.update_bn([(x[:8], None), (x[8:], None)], swa)
    assert swa.module[1].momentum == 0.1 and not swa.training and swa.module[1].num_batches_tracked.item() == 2
    hidden = swa.module[0](x).detach()
    close(swa.module[1].running_mean, array((hidden[:8].mean(0) + hidden[8:].mean(0)) / 2), 1e-5)
    with pytest.raises(AssertionError):
        swa_utils.AveragedModel(model, avg_fn=len, multi_avg_fn=len)


def test_swalr():
    opt = optim.SGD([leaf(1.0)], lr=0.1)
    schedule, rates = swa_utils.SWALR(opt, swa_lr=0.05, anneal_epochs=3), []
    for _ in range(5):
        rates.append(opt.param_groups[0]["lr"])
        schedule.step()
    np.testing.assert_allclose(rates, [0.1, 0.0875, 0.0625, 0.05, 0.05])


# ---- packed sequences

@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("both", [False, True])
def test_packed_sequences_one_by_one(kind, both):
    """As running the layer over every sequence alone: outputs, states at the ends, gradients."""
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=both).double()
    rng = np.random.default_rng(0)
    sequences = [leaf(rng.normal(size=(n, 3))) for n in (2, 5, 1, 5, 3)]
    states = [ag.tensor(rng.normal(size=(4 if both else 2, 5, 4))) for _ in range(2 if kind == "LSTM" else 1)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    out, last = layer(packed, tuple(states) if kind == "LSTM" else states[0])
    assert isinstance(out, rnn.PackedSequence)
    padded, lengths = rnn.pad_packed_sequence(out, total_length=6)
    assert lengths.tolist() == [2, 5, 1, 5, 3] and padded.shape[:2] == (6, 5)
    last = last if kind == "LSTM" else (last,)
    for k, s in enumerate(sequences):
        alone, end = layer(s, tuple(h[:, k] for h in states) if kind == "LSTM" else states[0][:, k])
        close(padded[:len(s), k], array(alone), 1e-12)
        assert not padded[len(s):, k].any()
        for h, e in zip(last, end if kind == "LSTM" else (end,), strict=True):
            close(h[:, k], array(e), 1e-12)
        (g,) = ag.autograd.grad((padded[:, k] ** 2).sum(), s, retain_graph=True)
        (h,) = ag.autograd.grad((alone ** 2).sum(), s)
        close(g, array(h), 1e-12)


def test_packing():
    x = ag.arange(24.0).reshape(4, 3, 2)
    packed = rnn.pack_padded_sequence(x, [4, 2, 1])
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices is None
    assert packed.data.tolist() == [x[t, k].tolist() for t, k in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (3, 0)]]
    again = rnn.pack_padded_sequence(x.transpose(0, 1), ag.tensor([2, 4, 1]), batch_first=True, enforce_sorted=False)
    assert again.sorted_indices.tolist() == [1, 0, 2] and again.to(ag.float64).data.dtype is ag.float64
    padded, lengths = rnn.pad_packed_sequence(again, batch_first=True, padding_value=-1)
    assert lengths.tolist() == [2, 4, 1] and padded[2].tolist() == [[4, 5], [-1, -1], [-1, -1], [-1, -1]]
    assert [len(s) for s in rnn.unpack_sequence(again)] == [2, 4, 1]
    for bad, message in [(lambda: rnn.pack_padded_sequence(x, [1, 2, 4]), "sorted"), (lambda: rnn.pack_padded_sequence(x, [4, 2]), "batch_size"),
                         (lambda: rnn.pack_padded_sequence(x, [5, 2, 1]), "greater than 0"), (lambda: rnn.pack_padded_sequence(x, [4, 2, 0]), "greater than 0"),
                         (lambda: nn.LSTM(3, 4)(packed), "input.size")]:   # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            bad()
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=2)
    assert nn.LSTM(2, 3).flatten_parameters() is None


# ---- weights that are computed

def test_weight_norm():
    layer = nn.Linear(3, 2)
    weight = array(layer.weight)
    assert nn.utils.weight_norm(layer) is layer
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight_g", "weight_v"]
    x = ag.randn(4, 3)
    close(layer(x), array(x) @ weight.T + array(layer.bias), 1e-6)
    with ag.no_grad():
        layer.weight_g.mul_(2)
    close(layer(x), array(x) @ weight.T * 2 + array(layer.bias), 1e-6)
    layer(x).sum().backward()
    assert layer.weight_g.grad.shape == (2, 1) and abs((layer.weight_v.grad * layer.weight_v).sum().item()) < 1e-5
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        nn.utils.weight_norm(layer)
    state = copy.deepcopy(layer.state_dict())
    nn.utils.remove_weight_norm(layer)
    assert list(layer.state_dict()) != list(state) and isinstance(layer.weight, nn.Parameter)
    close(layer(x), array(x) @ weight.T * 2 + array(layer.bias), 1e-6)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(layer)
    assert nn.utils.weight_norm(nn.Conv2d(2, 3, 2), dim=None).weight_g.shape == ()


@pytest.mark.parametrize("make", [lambda: nn.Linear(5, 4), lambda: nn.Conv2d(2, 3, 2), lambda: nn.ConvTranspose2d(2, 3, 2)])
def test_spectral_norm(make):
    layer = make()
    rows = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    nn.utils.spectral_norm(layer, n_power_iterations=50)
    matrix = np.moveaxis(array(layer.weight_orig), rows, 0).reshape(layer.weight_orig.shape[rows], -1)
    x = ag.randn(2, 5) if isinstance(layer, nn.Linear) else ag.randn(2, 2, 4, 4)
    layer(x)
    close(layer.weight * np.linalg.norm(matrix, 2), array(layer.weight_orig), 1e-3)
    layer.eval()
    u = array(layer.weight_u)
    layer(x)
    assert np.array_equal(u, array(layer.weight_u)) and layer.weight_u.shape == (matrix.shape[0],)
    layer(x).square().sum().backward()
    assert abs((layer.weight_orig.grad * layer.weight_orig).sum().item()) < 1e-2 * array(layer(x)).size      # scale is no matter
    nn.utils.remove_spectral_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="n_power_iterations"):
        nn.utils.spectral_norm(make(), n_power_iterations=0)
    with pytest.raises(AttributeError, match="quantile_norm"):
        nn.utils.quantile_norm


def test_list_of_equal_modules_prints_short():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)])
    assert repr(layers).split("\n")[1:3] == ["  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)", "  (2): ReLU()"]
    assert repr(nn.ModuleList()) == "ModuleList()"
