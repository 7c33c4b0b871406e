"""Every layer, loss and container, the examples, loaders and many models at once: the same bytes compiled as eager.

Relies on tests/replaying.py, on examples/ (loaded by path) and the package; nothing relies on it.
"""

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from replaying import Stories, batch, compare, network, seen, trainer

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F
from autograd_cy.array.errors import CaptureError
from autograd_cy.data import DataLoader, TensorDataset
from autograd_cy.engine.generators import default_generator

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def numbers(k, *shape):
    return ag.tensor(np.random.default_rng(300 + k).normal(size=shape).astype("f4"))


def classes(k, *shape):
    return ag.tensor(np.random.default_rng(400 + k).integers(0, 3, shape))


def odds(k, *shape):
    return ag.tensor(np.random.default_rng(500 + k).uniform(0.05, 0.95, shape).astype("f4"))


# ---- layers

LAYERS = {
    "ReLU": nn.ReLU, "ReLU inplace": lambda: nn.ReLU(inplace=True), "SiLU": nn.SiLU, "SiLU inplace": lambda: nn.SiLU(inplace=True),
    "Tanh": nn.Tanh, "Sigmoid": nn.Sigmoid, "LogSigmoid": nn.LogSigmoid, "LeakyReLU": lambda: nn.LeakyReLU(0.2),
    "LeakyReLU inplace": lambda: nn.LeakyReLU(0.1, inplace=True), "ELU": lambda: nn.ELU(0.7), "ELU inplace": lambda: nn.ELU(inplace=True),
    "GELU": nn.GELU, "GELU tanh": lambda: nn.GELU("tanh"), "Softplus": nn.Softplus, "Softplus beta": lambda: nn.Softplus(2, 1),
    "Softmax": lambda: nn.Softmax(1), "Softmax dim 0": lambda: nn.Softmax(dim=0), "LogSoftmax": lambda: nn.LogSoftmax(-1),
    "ReLU6": nn.ReLU6, "SELU": nn.SELU, "CELU": lambda: nn.CELU(0.7), "Hardtanh": lambda: nn.Hardtanh(-0.5, 0.7),
    "Hardsigmoid": nn.Hardsigmoid, "Hardswish": nn.Hardswish, "Mish": nn.Mish, "Softsign": nn.Softsign, "Tanhshrink": nn.Tanhshrink,
    "Threshold": lambda: nn.Threshold(0.1, -0.2), "Hardshrink": lambda: nn.Hardshrink(0.2), "Softshrink": lambda: nn.Softshrink(0.2),
    "PReLU": nn.PReLU, "PReLU of channels": lambda: nn.PReLU(4), "GLU": nn.GLU, "Softmin": lambda: nn.Softmin(1),
    "Dropout": lambda: nn.Dropout(0.4), "Dropout inplace": lambda: nn.Dropout(0.3, inplace=True), "Dropout 0": lambda: nn.Dropout(0.0),
    "Dropout 1": lambda: nn.Dropout(1.0), "Identity": nn.Identity, "Linear": lambda: nn.Linear(4, 4),
    "Linear without bias": lambda: nn.Linear(4, 4, bias=False), "Flatten": nn.Flatten, "Flatten all": lambda: nn.Flatten(0),
    "Bilinear": lambda: Pairs(nn.Bilinear(4, 4, 4)), "Bilinear without bias": lambda: Pairs(nn.Bilinear(4, 4, 2, bias=False)),
    "Sequential": lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.Dropout(0.2)), nn.Identity()),
    **{f"{cls.__name__}{more or ''}": lambda cls=cls, args=args, shape=shape, more=more: Shaped(cls(*args, **more), *shape)
       for cls, args, shape, more in (
        (nn.Conv1d, (3, 2, 3), (2, 3, 4), {"padding": 1}), (nn.Conv1d, (3, 2, 2), (2, 3, 4), {"padding": "same", "padding_mode": "circular"}),
        (nn.Conv2d, (2, 4, 2), (3, 2, 2, 2), {}), (nn.Conv2d, (2, 4, 2), (3, 2, 2, 2), {"groups": 2, "padding": 1, "stride": 2}),
        (nn.Conv2d, (2, 2, 2), (3, 2, 2, 2), {"groups": 2, "padding": 1, "padding_mode": "reflect"}),
        (nn.Conv2d, (6, 2, 1), (1, 6, 2, 2), {"bias": False}), (nn.Conv3d, (1, 2, 2), (3, 1, 2, 2, 2), {"padding": 1}),
        (nn.ConvTranspose1d, (3, 2, 3), (2, 3, 4), {"stride": 2}), (nn.ConvTranspose2d, (2, 4, 2), (3, 2, 2, 2), {"groups": 2}),
        (nn.ConvTranspose3d, (1, 2, 2), (3, 1, 2, 2, 2), {}), (nn.Unfold, (2,), (3, 2, 2, 2), {"padding": 1}),
        (nn.Fold, ((2, 3), 2), (3, 4, 2), {}),
        *((getattr(nn, f"{kind}Pad{n}d"), (1, 0.5) if kind == "Constant" else (1,), ((2, 3, 4), (3, 2, 2, 2), (3, 1, 2, 2, 2))[n - 1], {})
          for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)),
        (nn.MaxPool1d, (2,), (2, 3, 4), {}), (nn.MaxPool2d, (2, 1), (3, 1, 4, 2), {}), (nn.MaxPool3d, (2,), (3, 1, 2, 2, 2), {}),
        (nn.AvgPool1d, (2,), (2, 3, 4), {}), (nn.AvgPool2d, (2, 1, 1), (3, 1, 4, 2), {}), (nn.AvgPool3d, (2,), (3, 1, 2, 2, 2), {}),
        (nn.LPPool1d, (2, 2), (2, 3, 4), {}), (nn.LPPool2d, (2, 2), (3, 1, 4, 2), {}), (nn.LPPool3d, (2, 2), (3, 1, 2, 2, 2), {}),
        (nn.AdaptiveMaxPool1d, (3,), (2, 3, 4), {}), (nn.AdaptiveMaxPool2d, (1,), (3, 1, 4, 2), {}),
        (nn.AdaptiveMaxPool3d, (1,), (3, 1, 2, 2, 2), {}), (nn.AdaptiveAvgPool1d, (3,), (2, 3, 4), {}),
        (nn.AdaptiveAvgPool2d, (1,), (3, 1, 4, 2), {}), (nn.AdaptiveAvgPool3d, (1,), (3, 1, 2, 2, 2), {}),
        (nn.Upsample, (), (3, 1, 4, 2), {"scale_factor": 2}), (nn.Upsample, (), (3, 1, 4, 2), {"size": 3, "mode": "bicubic"}),
        (nn.UpsamplingNearest2d, (3,), (3, 1, 4, 2), {}), (nn.UpsamplingBilinear2d, (3,), (3, 1, 4, 2), {}),
        (nn.PixelShuffle, (2,), (1, 4, 3, 2), {}), (nn.PixelUnshuffle, (2,), (3, 1, 2, 4), {}), (nn.ChannelShuffle, (2,), (2, 4, 3), {}),
        (nn.BatchNorm1d, (4,), (6, 4), {}), (nn.BatchNorm1d, (3,), (2, 3, 4), {"momentum": None}),
        (nn.BatchNorm2d, (3,), (2, 3, 2, 2), {"affine": False}), (nn.BatchNorm3d, (1,), (3, 1, 2, 2, 2), {"track_running_stats": False}),
        (nn.InstanceNorm1d, (3,), (2, 3, 4), {}), (nn.InstanceNorm2d, (3,), (2, 3, 2, 2), {"affine": True, "track_running_stats": True}),
        (nn.InstanceNorm3d, (1,), (3, 1, 2, 2, 2), {}), (nn.GroupNorm, (2, 4), (3, 4, 2), {}), (nn.LayerNorm, (4,), (6, 4), {}),
        (nn.LayerNorm, ((2, 4),), (3, 2, 4), {"bias": False}), (nn.RMSNorm, (4,), (6, 4), {}), (nn.LocalResponseNorm, (2,), (2, 3, 4), {}))},
    "Dropout1d": lambda: Shaped(nn.Dropout1d(0.4), 2, 3, 4), "Dropout2d": lambda: Shaped(nn.Dropout2d(0.4), 3, 2, 2, 2),
    "Dropout3d": lambda: Shaped(nn.Dropout3d(0.4), 3, 1, 2, 2, 2), "Dropout1d inplace": lambda: nn.Dropout1d(0.4, inplace=True),
    "AlphaDropout": lambda: nn.AlphaDropout(0.3), "FeatureAlphaDropout": lambda: Shaped(nn.FeatureAlphaDropout(0.3), 2, 3, 4),
    "Embedding": lambda: Looked(nn.Embedding(5, 4)), "EmbeddingBag": lambda: Bagged(nn.EmbeddingBag(5, 4)),
    "Unflatten": lambda: nn.Unflatten(1, (2, 2)), "Softmax2d": lambda: Shaped(nn.Softmax2d(), 3, 2, 2, 2),
    "PairwiseDistance": lambda: Pairs(nn.PairwiseDistance()), "CosineSimilarity": lambda: Pairs(nn.CosineSimilarity()),
    "ParameterDict": lambda: Weights({"w": nn.Parameter(ag.randn(4, 4)), "b": nn.Parameter(ag.randn(4))}),
    "RNN": lambda: First(nn.RNN(4, 3, 2)), "GRU": lambda: First(nn.GRU(4, 3, bidirectional=True)), "RNNCell": lambda: nn.RNNCell(4, 3),
    "RNNBase": lambda: First(nn.RNNBase("GRU", 4, 3)), "LSTM": lambda: First(nn.LSTM(4, 3, 2, proj_size=2)),
    "LSTMCell": lambda: First(nn.LSTMCell(4, 3)), "GRUCell": lambda: nn.GRUCell(4, 3),
    "MultiheadAttention": lambda: First(nn.MultiheadAttention(4, 2, dropout=0.2), 3), "Attention by function": lambda: Attending(),
    "TransformerEncoder": lambda: Shaped(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2, nn.LayerNorm(4)), 2, 3, 4),
    "Transformer": lambda: Pairs(nn.Transformer(4, 2, 1, 1, 6)),
    "TransformerDecoder": lambda: Pairs(nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, norm_first=True), 1)),
    **{f"MaxUnpool{d}d": lambda d=d: Shaped(Unpooled(d), *(2, 3, 4) if d == 1 else (3, 2, 2, 2) if d == 2 else (3, 1, 2, 2, 2))
       for d in (1, 2, 3)},
    "ModuleList": lambda: Listed(4), "ModuleDict": lambda: Named(), "ParameterList": lambda: Weights(), "shared layer": lambda: Shared(),
    "RReLU": nn.RReLU, "DataParallel": lambda: nn.DataParallel(nn.Linear(4, 4)),
}


class Pairs(nn.Module):
    """A layer of two inputs on one."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x * 0.5 + 1)


class Shaped(nn.Module):
    """A layer on the same numbers in another shape."""

    def __init__(self, layer, *shape):
        super().__init__()
        self.layer, self.shape = layer, shape

    def forward(self, x):
        return self.layer(x.reshape(self.shape)).flatten(1)


class Unpooled(nn.Module):
    """The largest elements at their places, and zeros."""

    def __init__(self, dims):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
        self.unpool = getattr(nn, f"MaxUnpool{dims}d")(2)

    def forward(self, x):
        return self.unpool(*self.pool(x)) * 2


class Listed(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(n))

    def forward(self, x):
        for k, layer in enumerate(self.layers):
            x = layer(x).tanh() + x * k
        return x


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"in": nn.Linear(4, 6), "act": nn.SiLU(), "out": nn.Linear(6, 4)})
        self.order = ["in", "act", "out"]

    def forward(self, x):
        for name in self.order:
            x = self.layers[name](x)
        return x


class Weights(nn.Module):
    def __init__(self, named=None):
        super().__init__()
        if named:
            self.weights = nn.ParameterDict(named)
        else:
            self.weights = nn.ParameterList([nn.Parameter(ag.randn(4, 4)), nn.Parameter(ag.randn(4))])
        self.keys = list(named or range(2))

    def forward(self, x):
        return (x @ self.weights[self.keys[0]] + self.weights[self.keys[1]]).sigmoid()


class First(nn.Module):
    """The first result of a layer of one input, given several times."""

    def __init__(self, layer, times=1):
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, x):
        return self.layer(*[x] * self.times)[0]


class Looked(nn.Module):
    """A table of vectors, looked up where x is positive or not."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x):
        return self.table((x[:, 0] > 0).long()) * x


class Bagged(Looked):
    """The means of a table's vectors, as many as x has columns."""

    def forward(self, x):
        return self.table((x > 0).long()) * x


class Attending(nn.Module):
    def forward(self, x):
        q = x.reshape(2, 3, 4)
        mask = ag.tensor([[True, False, True], [False, False, False], [True, True, True]])
        parts = [F.scaled_dot_product_attention(q, q, q, mask), F.scaled_dot_product_attention(q, q * 2, q, is_causal=True, dropout_p=0.2)]
        return ag.cat(parts)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.out = nn.Linear(4, 4)
        self.out.weight = self.inner.weight

    def forward(self, x):
        return self.out(self.inner(self.inner(x).relu()))


def test_every_layer_is_here():
    made = [make() for make in LAYERS.values()]
    used = {type(m) for layer in made for m in layer.modules()} | {cls for cls, _, _ in LOSSES.values()} | {nn.Module, nn.RNNCellBase}
    everything = {cls for name in nn.__all__ if isinstance(cls := getattr(nn, name), type) and issubclass(cls, nn.Module)
                  and not name.startswith("Lazy")}              # which are other layers by the time they are compiled
    assert everything - used == {nn.AdaptiveLogSoftmaxWithLoss}       # whose parts depend on targets


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_training(name):
    """Between two linear layers; training, evaluation, training again; seeded in mid-sequence."""
    def tale(play):
        layer = LAYERS[name]()
        model = nn.Sequential(nn.Linear(4, 4), layer)
        optimizer = ag.optim.Adam(model.parameters(), lr=0.02)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) * weights).sum()
            loss.backward()
            optimizer.step()
            return loss
        weights = numbers(0, *model.eval()(numbers(1, 6, 4)).shape)
        model.train()
        step = play(step)
        for k in range(12):
            yield step(numbers(k, 6, 4)), model, optimizer
            if k == 3:
                ag.manual_seed(11)
            if k == 5:
                model.eval()
            if k == 8:
                model.train()
    compare(tale)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_by_themselves(name):
    """The layer itself compiled: its result is one node of an eager graph, with gradients or without."""
    def tale(play):
        layer = LAYERS[name]()
        forward = play(layer)
        for k in range(9):
            x = numbers(k, 6, 4).requires_grad_(k % 3 > 0) * 1         # not a leaf, which "in place" would not allow
            if k == 4:
                layer.eval()
            if k == 6:
                layer.train()
                ag.manual_seed(2)
            if k % 3 == 2:
                with ag.no_grad():
                    yield forward(x)
                continue
            y = forward(x)
            if y.requires_grad:
                (y * numbers(k, *y.shape)).sum().backward()
            yield y, layer
            layer.zero_grad()
    # The result may be the argument, a view of it, or written over it: right, or refused.
    special = "inplace" in name or "Dropout" in name or name.startswith(("Identity", "Flatten", "Unflatten"))
    with contextlib.suppress(CaptureError) if special else contextlib.nullcontext():
        compare(tale)


# ---- losses

WEIGHT = [0.5, 1.0, 2.0]
REAL, CLASS, ODDS = (lambda k: numbers(k + 9, 6, 3)), (lambda k: classes(k, 6)), (lambda k: odds(k, 6, 3))
SIGNS = lambda k: ag.tensor(np.random.default_rng(600 + k).choice([-1.0, 1.0], (6, 3)).astype("f4"))
LOSSES = {
    "MSELoss": (nn.MSELoss, {}, REAL), "L1Loss": (nn.L1Loss, {}, REAL), "BCELoss": (nn.BCELoss, {}, ODDS),
    "BCELoss weight": (nn.BCELoss, {"weight": WEIGHT}, ODDS), "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, {}, ODDS),
    "BCEWithLogitsLoss pos_weight": (nn.BCEWithLogitsLoss, {"pos_weight": WEIGHT, "weight": WEIGHT}, ODDS),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, {}, CLASS), "CrossEntropyLoss weight": (nn.CrossEntropyLoss, {"weight": WEIGHT}, CLASS),
    "CrossEntropyLoss ignored": (nn.CrossEntropyLoss, {"ignore_index": 1}, CLASS),
    "CrossEntropyLoss smoothing": (nn.CrossEntropyLoss, {"label_smoothing": 0.1}, CLASS),
    "CrossEntropyLoss probabilities": (nn.CrossEntropyLoss, {}, lambda k: odds(k, 6, 3).softmax(1)),
    "SmoothL1Loss": (nn.SmoothL1Loss, {"beta": 0.5}, REAL), "HuberLoss": (nn.HuberLoss, {"delta": 0.7}, REAL),
    "KLDivLoss": (nn.KLDivLoss, {}, ODDS), "PoissonNLLLoss": (nn.PoissonNLLLoss, {"full": True}, ODDS),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, {}, lambda k: (REAL(k), ODDS(k))), "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, {}, SIGNS),
    "MarginRankingLoss": (nn.MarginRankingLoss, {"margin": 0.1}, lambda k: (REAL(k), SIGNS(k))), "SoftMarginLoss": (nn.SoftMarginLoss, {}, SIGNS),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, {}, lambda k: (REAL(k), SIGNS(k)[:, 0])),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, {}, lambda k: classes(k, 6, 3) - 1), "MultiMarginLoss": (nn.MultiMarginLoss, {}, CLASS),
    "MultiMarginLoss weight": (nn.MultiMarginLoss, {"weight": WEIGHT, "p": 2}, CLASS),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, {"weight": WEIGHT}, ODDS),
    "TripletMarginLoss": (nn.TripletMarginLoss, {"swap": True}, lambda k: (REAL(k), ODDS(k))),
    "CTCLoss": (nn.CTCLoss, {}, lambda k: (classes(k, 2) % 2 + 1, (6,), (2,))),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, {}, lambda k: (REAL(k), ODDS(k))),
    "NLLLoss": (nn.NLLLoss, {}, CLASS), "NLLLoss weight": (nn.NLLLoss, {"weight": WEIGHT, "ignore_index": 2}, CLASS),
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    cls, options, target = LOSSES[name]

    def tale(play):
        criterion = cls(reduction=reduction, **{k: ag.tensor(v) if isinstance(v, list) else v for k, v in options.items()})
        model = network()
        optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)

        def step(x, y):
            optimizer.zero_grad()
            out = model(x)
            out = out.sigmoid() if cls is nn.BCELoss else out.log_softmax(1) if cls in (nn.NLLLoss, nn.CTCLoss) else out
            loss = criterion(out, *y if isinstance(y, tuple) else [y])
            loss.mean().backward()
            optimizer.step()
            return loss
        step, alone = play(step), play(criterion)
        for k in range(8):
            yield step(batch(k)[0], target(k)), model, optimizer
            out = (odds(k, 6, 3) if cls is nn.BCELoss else numbers(k, 6, 3)).requires_grad_()
            y = target(k)
            loss = alone(out, *y if isinstance(y, tuple) else [y])
            loss.backward(ag.ones_like(loss))
            yield loss, out
    compare(tale)


# ---- loaders

def test_over_a_shuffling_loader():
    """Other orders in each epoch, and a smaller last batch."""
    def train(compiled):
        ag.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 3))
        optimizer = ag.optim.Adam(model.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(*batch(0, 50)), batch_size=16, shuffle=True)
        step, shown = trainer(model, optimizer), []
        if compiled:
            step = ag.compile(step)
        for _ in range(5):
            shown.append(seen(step.over(loader) if compiled else [step(*b) for b in loader], model, optimizer))
        assert not compiled or len(step._entries) == 2
        return shown, seen(ag.rand(3))
    assert train(True) == train(False)


def test_over_single_tensors_and_progress(capsys):
    model = network()
    f = ag.compile(lambda x: model(x).argmax(1))
    loader = DataLoader(batch(0, 20)[0], batch_size=6)
    pieces = f.over(loader, progress=True)
    assert [len(p) for p in pieces] == [6, 6, 6, 2]
    with ag.no_grad():
        assert seen(*pieces) == seen(*[model(x).argmax(1) for x in loader])
    assert f.over([]) == []


# ---- examples

def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_xor(capsys):
    """The losses that the example prints, from one call of repeat."""
    example = load("xor")
    losses, predictions, _ = example.main(["--epochs", "400"])
    ag.manual_seed(0)
    x, y = ag.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), ag.tensor([0, 1, 1, 0])
    model = example.XOR()
    step = ag.compile(trainer(model, ag.optim.Adam(model.parameters(), lr=0.1)))
    assert step.repeat(400, x, y).tolist() == losses
    assert ag.compile(model)(x).argmax(1).tolist() == predictions


def test_example_iris():
    example = load("iris")
    x, y, _ = ag.data.iris()
    x = ag.data.standardise(x)
    ag.manual_seed(3)
    model, loss = example.train(x, y, 60)
    ag.manual_seed(3)
    other = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    step = ag.compile(trainer(other, ag.optim.Adam(other.parameters(), lr=0.02)))
    losses = step.repeat(60, x, y)
    assert losses[-1].item() == loss
    assert [p.detach().numpy().tobytes() for p in model.parameters()] == [p.detach().numpy().tobytes() for p in other.parameters()]
    right = ag.compile(lambda x, y: (model(x).argmax(1) == y).float().mean())
    assert [right(x, y).item() for _ in range(4)] == [example.accuracy(model, x, y)] * 4


def test_example_three_lines(capsys):
    """The article's step as a function: parameters written in place, gradients set to None."""
    expected, _ = load("three_lines").main(["--epochs", "300"])
    ag.manual_seed(0)
    X, labels, _ = ag.data.iris(dtype=ag.float64)
    y = ag.data.one_hot(labels, dtype=ag.float64)
    w1 = ((ag.rand(4, 10, dtype=ag.float64) * 2 - 1) * 0.01).requires_grad_()
    w2 = ((ag.rand(10, 3, dtype=ag.float64) * 2 - 1) * 0.01).requires_grad_()
    parameters = [w1, w2]

    @ag.compile
    def step():
        sigm1 = 1 / (1 + ag.exp(-1 * (X @ w1)))
        sigm2 = 1 / (1 + ag.exp(-1 * (sigm1 @ w2)))
        loss = ag.sum(-1 * (y * ag.log(sigm2) + (1 - y) * ag.log(1 - sigm2)))
        loss.backward()
        with ag.no_grad():
            for w in parameters:
                w.sub_(0.001 * w.grad)
                w.grad = None
        return loss
    assert step.repeat(300)[-1].item() == expected


@pytest.mark.parametrize("name", ["chain", "ladder", "fan_out", "network"])
def test_example_engines(name):
    example = load("engines")
    function, size = getattr(example, name), 40
    gradient = example.gradient(function, size, "iterative")
    compiled = ag.compile(lambda x: function(x, size))
    for k in range(4):
        x = ag.tensor([0.5, -1.0, 2.0], requires_grad=True)
        compiled(x).backward(engine=("iterative", "recursive")[k % 2])
        assert x.grad.numpy().tobytes() == gradient
    program = ag.graph.capture(lambda x: function(x, size), x, gradients=[x])
    for engine in ag.graph.ENGINES:
        assert program.run(x, engine=engine)[1][0].numpy().tobytes() == gradient


# ---- many models at once

def many(name):
    """make(seed) for models that differ in weights and learning rate; optimizers by name."""
    def make(seed):
        ag.manual_seed(seed)
        model = network()
        lr = 0.01 * (seed + 1)
        optimizer = {"sgd": lambda p: ag.optim.SGD(p, lr=lr), "momentum": lambda p: ag.optim.SGD(p, lr=lr, momentum=0.5 + 0.1 * seed),
                     "adam": lambda p: ag.optim.Adam(p, lr=lr, betas=(0.9, 0.99 - 0.1 * seed), weight_decay=0.01 * seed),
                     "amsgrad": lambda p: ag.optim.AdamW(p, lr=lr, amsgrad=True), "rmsprop": lambda p: ag.optim.RMSprop(p, lr=lr, momentum=0.1 + 0.1 * seed),
                     "two": lambda p: ag.optim.Adam([{"params": p[:2]}, {"params": p[2:], "lr": lr * 3}], lr=lr)}[name](list(model.parameters()))
        return trainer(model, optimizer), model, optimizer
    return make


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "amsgrad", "rmsprop", "two"])
def test_over_seeds(name, threads):
    """Each model as if it alone had been trained, by eager code; over several calls, with options changed between."""
    x, y = batch(0)
    make, seeds = many(name), range(4)
    models = ag.graph.over_seeds(make, seeds, threads=threads)
    found = []
    for times, change in ((20, 0.5), (1, 1), (2, 0.1), (30, 1), (0, 1)):
        found.append(models.repeat(times, x, y) if times else None)
        for _, _, optimizer in models.made:
            for group in optimizer.param_groups:
                group["lr"] *= change
    for k, seed in enumerate(seeds):
        step, model, optimizer = make(seed)
        for (times, change), losses in zip(((20, 0.5), (1, 1), (2, 0.1), (30, 1)), found):
            assert seen(losses[k]) == seen(ag.stack([step(x, y).detach() for _ in range(times)])), f"model {k}"
            for group in optimizer.param_groups:
                group["lr"] *= change
        assert seen(model, optimizer) == seen(*models.made[k][1:]), f"model {k}"
    assert len(models) == 4


def test_over_seeds_continues_by_hand():
    """Eager steps of one model between two calls."""
    x, y = batch(0)
    make = many("adam")
    models = ag.graph.over_seeds(make, 3, threads=2)
    models.repeat(10, x, y)
    models.made[1][0](x, y)
    models.made[0][0](x, y)
    models.repeat(10, x, y)
    for k, extra in enumerate((1, 1, 0)):
        step, model, optimizer = make(k)
        for _ in range(20 + extra):
            step(x, y)
        assert seen(model, optimizer) == seen(*models.made[k][1:]), f"model {k}"


def test_over_seeds_of_other_data():
    """Data in the closure differ, too; several results per step."""
    def make(seed):
        ag.manual_seed(seed)
        model, (x, y) = network(), batch(seed)
        step = trainer(model, ag.optim.SGD(model.parameters(), lr=0.1))
        return lambda: {"loss": step(x, y), "seen": x.sum()}, model
    models = ag.graph.over_seeds(make, [5, 1, 9])
    found = models.repeat(15)
    for k, seed in enumerate((5, 1, 9)):
        step, model = make(seed)
        expected = [step() for _ in range(15)]
        assert seen(found["loss"][k], found["seen"][k]) == seen(*[ag.stack([e[key].detach() for e in expected]) for key in ("loss", "seen")])
        assert seen(model) == seen(models.made[k][1])


def test_over_seeds_refuses_what_differs():
    def make(seed):
        model = network(hidden=5 + seed)
        return trainer(model, ag.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(CaptureError, match="share a program"):
        ag.graph.over_seeds(make, 2).repeat(9, *batch(0))
    with pytest.raises(ValueError, match="no seeds"):
        ag.graph.over_seeds(make, 0)
    with pytest.raises(TypeError, match="step function"):
        ag.graph.over_seeds(lambda seed: None, 2)


def with_dropout(seed):
    ag.manual_seed(seed)
    model, generator = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3)), ag.Generator().manual_seed(seed)
    step = trainer(model, ag.optim.SGD(model.parameters(), lr=0.1))
    return lambda x, y: step(x + ag.rand(4, generator=generator), y), model


def with_wall(seed):
    model, values = network(), []
    optimizer, show = ag.optim.SGD(model.parameters(), lr=0.1), ag.graph.wall(lambda x: values.append(x.item()))

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        show(loss)
        loss.backward()
        optimizer.step()
        return loss
    return step, model, values


def with_parameter(seed):
    model = network()
    step = trainer(model, ag.optim.SGD(model.parameters(), lr=0.1))
    return lambda x, y: (step(x, y), model[0].weight.detach().clone(), model[0].bias.grad), model


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [with_dropout, with_wall, with_parameter])
def test_over_seeds_one_after_another(make, threads):
    """Random numbers, Python in walls, results that are gradients: still as if each model were alone."""
    (x, y), seeds = batch(0), (3, 1, 2)

    def begin(seed):
        ag.manual_seed(seed + 10)
        return make(seed)
    models = ag.graph.over_seeds(begin, seeds, threads=threads)
    outside = str(default_generator.get_state())
    found = [models.repeat(n, x, y) for n in (12, 1, 5)]
    assert str(default_generator.get_state()) == outside
    for k, seed in enumerate(seeds):
        step, *rest = begin(seed)
        for n, results in zip((12, 1, 5), found):
            expected = [[t.detach().clone() for t in (r if isinstance(r, tuple) else (r,))] for r in (step(x, y) for _ in range(n))]
            parts = results if isinstance(results, tuple) else (results,)
            assert seen(*[p[k] for p in parts]) == seen(*[ag.stack(list(column)) for column in zip(*expected)]), f"model {k}"
        assert seen(*rest) == seen(*models.made[k][1:]), f"model {k}"


def test_over_seeds_sees_what_changes():
    """Memory replaced, gradients, options, training switched off: between two calls, of one model."""
    x, y = batch(0)

    def change(k, model, optimizer):
        if k == 1:
            model[0].weight.data = ag.ones(5, 4)
        if k == 2:
            optimizer.load_state_dict(optimizer.state_dict())
        if k == 3:
            model[2].bias = nn.Parameter(ag.zeros(3))           # the optimizer keeps the old one
    models = ag.graph.over_seeds(many("adam"), 4)
    for _ in range(3):
        models.repeat(6, x, y)
        for k in (1, 2):
            change(k, *models.made[k][1:])
    for k in range(4):
        step, model, optimizer = many("adam")(k)
        for _ in range(3):
            for _ in range(6):
                step(x, y)
            if k in (1, 2):
                change(k, model, optimizer)
        assert seen(model, optimizer) == seen(*models.made[k][1:]), f"model {k}"
    models.made[2][1].eval()
    with pytest.raises(CaptureError, match="training"):
        models.repeat(6, x, y)
    models.made[2][1].train()
    change(3, *models.made[3][1:])
    with pytest.raises(CaptureError, match="share a program"):
        models.repeat(6, x, y)


def test_over_seeds_of_views():
    """Parameters of several models in one tensor: refused, because each model would write where the first one is."""
    weights = ag.zeros(3, 3, 4)

    def make(seed):
        w = weights[seed].detach().requires_grad_()

        def step(x):
            w.grad = None
            loss = (x @ w.T).square().mean() + w.sum()
            loss.backward()
            with ag.no_grad():
                w.sub_(w.grad, alpha=0.1)
            return loss
        return step
    with pytest.raises(CaptureError, match="clone"):
        ag.graph.over_seeds(make, 3).repeat(10, batch(0)[0])


STORIES = Stories()


@STORIES
def layers_exchanged(play):
    """Containers changed between calls."""
    model = Listed(2)
    names = Named()
    optimizer = ag.optim.SGD([*model.parameters(), *names.parameters()], lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = names(model(x)).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    step = play(step)
    for k in range(16):
        yield step(numbers(k, 6, 4)), model, names
        if k == 3:
            model.layers.append(nn.Linear(4, 4))
        if k == 6:
            names.layers["act"] = nn.GELU()
        if k == 9:
            names.order.remove("act")
        if k == 11:
            del model.layers[0]
        if k == 13:
            names.layers["in"], names.layers["out"] = nn.Linear(4, 4), nn.Linear(4, 4)


@STORIES
def hooks_of_dropout(play):
    """Several dropouts under one seed, one of them in evaluation."""
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 8), nn.Dropout(0.2), nn.Tanh(), nn.Dropout(0.9), nn.Linear(8, 3))
    optimizer = ag.optim.RMSprop(model.parameters(), lr=0.01)
    step = play(trainer(model, optimizer))
    for k in range(14):
        yield step(*batch(k)), model, optimizer
        if k in (2, 9):
            ag.manual_seed(k)
        if k == 4:
            model[2].eval()
        if k == 6:
            model[0].p = 0.1
        if k == 11:
            model[2].train()
            yield ag.rand(1)


@pytest.mark.parametrize("name", STORIES)
def test_stories(name):
    compare(STORIES[name][0])
