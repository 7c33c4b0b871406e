"""Ordinary PyTorch scripts, as tutorials have them, with the import changed; each checks itself.

Relies on the package only. What PyTorch's users write around the computation - devices, files, samplers - is part of them.
"""

import io
import pickle

import numpy as np
import pytest

import autograd_cy as torch
import autograd_cy.nn as nn
import autograd_cy.nn.functional as F
from autograd_cy import optim
from autograd_cy.nn.utils.rnn import pad_sequence, unpad_sequence
from autograd_cy.utils.data import DataLoader, SubsetRandomSampler, TensorDataset, WeightedRandomSampler, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(4 * 4 * 4, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv(x))))
        return F.log_softmax(self.fc(self.drop(torch.flatten(x, 1))), dim=1)


def test_images():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False
    y = torch.arange(60) % 3
    x = torch.randn(60, 1, 8, 8, device=device) * 0.3
    for k in range(3):
        x[y == k, :, 2 * k:2 * k + 2] += 1
    train, valid = random_split(TensorDataset(x, y), [48, 12], generator=torch.Generator("cpu").manual_seed(1))
    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    losses = []
    for _ in range(10):
        model.train()
        for xb, yb in DataLoader(train, batch_size=16, shuffle=True):
            xb, yb = xb.to(device, non_blocking=True), yb.to(x.device, torch.long, True)
            optimizer.zero_grad()
            loss = F.nll_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    assert losses[-1] < 0.2 < losses[0]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0125)
    model.eval()
    with torch.no_grad():
        correct = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in DataLoader(valid, batch_size=5))
    assert correct == 12


def test_critic_with_gradient_penalty():
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.Softplus(), nn.Linear(8, 1)).double()
    optimizer = optim.RMSprop(critic.parameters(), lr=0.01)
    real, fake = torch.randn(6, 3).double(), torch.randn(6, 3).double() + 1

    def penalty(x):
        out = critic(x)
        g = torch.autograd.grad(outputs=out, inputs=x, grad_outputs=torch.ones(out.size(), dtype=out.dtype), create_graph=True,
                                retain_graph=True, only_inputs=True)[0]
        return ((g.view(g.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()

    losses = []
    for _ in range(40):
        mixed = torch.autograd.Variable(0.5 * real + 0.5 * fake, requires_grad=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(mixed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 5
    assert torch.autograd.gradcheck(penalty, (torch.randn(2, 3, requires_grad=True, dtype=torch.double),))
    with pytest.raises(ValueError, match="only_inputs"):
        torch.autograd.grad(mixed.sum(), mixed, only_inputs=False)


def test_saved_and_continued(tmp_path):
    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ELU(), nn.Linear(4, 1))

    def step(model, optimizer):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    torch.manual_seed(0)
    x, model = torch.randn(10, 3), make()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    epoch = [step(model, optimizer) for _ in range(3)]
    torch.save({"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": epoch}, tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", map_location="cpu")
    again = make()
    assert str(again.load_state_dict(saved["model"])) == "<All keys matched successfully>"
    other = optim.Adam(again.parameters())
    other.load_state_dict(saved["optimizer"])
    assert [step(again, other) for _ in range(3)] == [step(model, optimizer) for _ in range(3)]

    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        torch.load(file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False).eval()(x), model.eval()(x))
    with pytest.raises(RuntimeError, match="PyTorch's own format"):
        torch.load(io.BytesIO(b"PK\x03\x04..."))


def test_files_that_name_the_module_of_the_tensor(tmp_path):
    """As versions did in which each source was a compiled module of its own."""
    file = tmp_path / "old.pt"
    file.write_bytes(pickle.dumps({"kind": torch.Tensor}, 2).replace(b"cautograd_cy\nTensor", b"cautograd_cy.engine.tensor\nTensor"))
    assert b"engine.tensor" in file.read_bytes()
    assert torch.load(file) == {"kind": torch.Tensor}


def test_files_that_would_run_code():
    class Harmful:
        def __reduce__(self):
            return print, ("ran",)

    for protocol in (2, 4, 5):
        with pytest.raises(pickle.UnpicklingError, match="print"):
            torch.load(io.BytesIO(pickle.dumps({"w": Harmful()}, protocol)))


def test_devices():
    x = torch.zeros(2, device=torch.device("cpu", 0))
    assert x.device == torch.device("cpu") == "cpu" and x.device.type == "cpu" and not x.is_cuda and repr(x.device) == "device(type='cpu')"
    for ask in (lambda: torch.device("cuda:0"), lambda: x.to("cuda"), lambda: torch.set_default_device("mps")):
        with pytest.raises(RuntimeError, match="CPU only"):
            ask()
    assert not torch.backends.mps.is_available() and torch.cuda.device_count() == 0


MADE = [
    "zeros(2, {})", "ones(2, {})", "empty(2, {})", "full((2,), 1, {})", "arange(3, {})", "linspace(0, 1, 3, {})", "logspace(0, 1, 3, {})", "eye(2, {})",
    "tensor(1.0, {})", "tensor([1], {})", "as_tensor([1], {})", "asarray([1], {})", "scalar_tensor(1, {})", "empty_strided((2,), (1,), {})",
    "rand(2, {})", "randn(2, {})", "randint(0, 3, (2,), {})", "randperm(3, {})", "normal(0.0, 1.0, (2,), {})", "hann_window(3, {})",
    "tril_indices(2, 2, {})", "zeros_like(torch.ones(2), {})", "ones_like(torch.ones(2), {})", "empty_like(torch.ones(2), {})",
    "full_like(torch.ones(2), 3, {})", "rand_like(torch.ones(2), {})", "randn_like(torch.ones(2), {})",
    "randint_like(torch.ones(2), 3, {})", "ones(2).new_zeros(3, {})", "ones(2).new_full((2,), 1, {})", "ones(2).new_tensor(3, {})",
    "Generator({})",
    *(f"nn.{layer}, {{}})" for layer in (
        "Linear(2, 3", "Bilinear(2, 2, 2", "Conv2d(1, 1, 1", "ConvTranspose1d(1, 1, 1", "BatchNorm1d(2", "InstanceNorm2d(2, affine=True",
        "LayerNorm(2", "GroupNorm(1, 2", "RMSNorm(2", "LSTM(2, 2", "GRU(2, 2", "RNN(2, 2", "LSTMCell(2, 2", "GRUCell(2, 2", "RNNCell(2, 2",
        "Embedding(2, 2", "EmbeddingBag(2, 2", "MultiheadAttention(4, 2", "TransformerEncoderLayer(4, 2, 4", "TransformerDecoderLayer(4, 2, 4",
        "Transformer(4, 2, 1, 1, 4", "PReLU(1", "LazyLinear(2")),
    "nn.Transformer.generate_square_subsequent_mask(3, {})"]


@pytest.mark.parametrize("call", MADE)
def test_devices_where_something_is_made(call):
    for device in (None, "cpu", torch.device("cpu")):
        eval("torch." + call.format("device=device"), {"torch": torch, "device": device})
    with pytest.raises(RuntimeError, match="CPU"):
        eval("torch." + call.format("device='cuda'"), {"torch": torch})


def test_constructors_of_older_scripts():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor().shape == (0,) and torch.LongTensor(np.arange(3)).dtype == torch.int64
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0] and torch.Tensor([1, 2]).dtype == torch.float32
    for bad in ((1.5,), (2, [1]), ("a",), (None,), (-1,)):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            torch.Tensor(*bad)
    with pytest.raises(TypeError):
        torch.Tensor([1], dtype=torch.float64)
    x = torch.randn(2)
    assert x.type() == "torch.FloatTensor" and x.type(torch.float64).type() == "torch.DoubleTensor" and isinstance(x.shape, torch.Size)


def test_short_names():
    x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.dist(x, x * 2 + 1, 3) + x.clamp_min(-0.5).sum() + torch.clamp_max(x, 1).sum(), (x,))
    assert torch.autograd.gradcheck(lambda x: (x.sum_to_size(1, 2) * x.sum_to_size((2,))).sum() + (x * 1).fill_diagonal_(5).square().sum(), (x,))
    with pytest.raises(RuntimeError, match="sum_to_size"):
        x.sum_to_size(3)
    for shape, wrap in (((7, 3), True), ((7, 3), False), ((2, 5), True), ((3, 3, 3), False), ((0, 3), True), ((3, 0), True)):
        want = np.zeros(shape)
        np.fill_diagonal(want, 1, wrap=wrap) if want.size else None
        assert (torch.zeros(shape).fill_diagonal_(1, wrap).numpy() == want).all()
    rows = torch.ones(2, 2)
    assert torch.vmap(torch.dot)(rows, rows).tolist() == [2.0, 2.0]


def test_samplers_and_sequences():
    weights = torch.tensor([1.0] * 5 + [0.0] * 5)
    assert max(WeightedRandomSampler(weights, 50)) < 5 and sorted(WeightedRandomSampler(weights, 5, replacement=False)) == list(range(5))
    assert sorted(SubsetRandomSampler([1, 5, 7])) == [1, 5, 7]
    with pytest.raises(ValueError, match="num_samples"):
        WeightedRandomSampler(weights, 0)
    pieces = [torch.ones(n, 2) * n for n in (3, 1, 2)]
    padded = pad_sequence(pieces, batch_first=True, padding_value=-1)
    assert padded.shape == (3, 3, 2) and padded[1].tolist() == [[1, 1], [-1, -1], [-1, -1]]
    assert pad_sequence(pieces, padding_side="left")[0, 1].tolist() == [0, 0]
    assert all(torch.equal(a, b) for a, b in zip(pieces, unpad_sequence(padded, torch.tensor([3, 1, 2]), True), strict=True))
    with pytest.raises(RuntimeError, match="pad_sequence"):
        pad_sequence([])


def test_captured_step_of_newer_names():
    """The same bytes eager and replayed, of a step that uses what stands above."""
    def make():
        torch.manual_seed(0)
        w = nn.Parameter(torch.randn(4, 4))
        optimizer = optim.Adam([w], lr=0.1)

        def step(x):
            k = w * 1.0
            k.fill_diagonal_(0.0)
            y = (x @ k).to(x.device, torch.float32, True).contiguous(memory_format=torch.contiguous_format)
            loss = torch.dist(y, x) + y.clamp_min(0.1).sum_to_size(1, 4).sum() + torch.clamp_max(y, 1).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss
        return step

    x = torch.linspace(-1, 1, 20).view(5, 4)
    eager, compiled = make(), torch.compile(make())
    losses = [eager(x).item() for _ in range(4)]
    assert losses == [compiled(x).item() for _ in range(4)] and losses[-1] < losses[0]


def test_settings_and_assertions():
    x = torch.tensor([[1.0, 1e-5], [2.5, 3.0]])
    try:
        torch.set_printoptions(precision=2, sci_mode=False)
        assert repr(x) == "tensor([[1.00, 0.00],\n        [2.50, 3.00]])" and repr(torch.ones(2)) == "tensor([1., 1.])"
        torch.set_printoptions(sci_mode=True, edgeitems=1, threshold=3)
        assert repr(x[:, 0]) == "tensor([1.00e+00, 2.50e+00])" and repr(torch.arange(5)) == "tensor([0,  ..., 4])"
        with pytest.raises(ValueError, match="profile"):
            torch.set_printoptions(profile="long")
    finally:
        torch.set_printoptions(profile="default")
    assert repr(x[:, 0]) == "tensor([1.0000, 2.5000])"
    close = torch.testing.assert_close
    close({"a": [x, 1.0], "b": 2}, {"a": [x + 1e-7, 1.0], "b": 2})
    close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    close(x, x.double(), check_dtype=False)
    for a, b, message in [(x, x + 1, "Mismatched elements: 4 / 4"), (x, x[0], "shape"), (x, x.double(), "dtype"), ([x], [x, x], "length"),
                          ({"a": 1}, {"b": 1}, "keys"), (1.0, 1.1, "not close"), ([1, [x]], [1, [x + 1]], r"\[1\]\[0\]"), (x, x.t(), "not close")]:
        with pytest.raises(AssertionError, match=message):
            close(a, b)
    with pytest.raises(AssertionError, match="mine"):
        close(1, 2, msg="mine")
    with pytest.raises(ValueError, match="rtol"):
        close(1, 1, rtol=0.1)
    assert torch.real(x) is x and x.conj() is x and x.get_device() == -1 and x.is_signed() and not x.byte().is_signed() and x.is_same_size(x.t())
    assert [v.tolist() for v in torch.unravel_index(torch.tensor([5, 0]), (2, 3))] == [[1, 0], [2, 0]]
    with pytest.raises(ValueError, match="out of range"):
        torch.unravel_index(torch.tensor(6), (2, 3))


def test_round_to_decimals():
    x = torch.tensor([1.25, -2.346, 1234.5], dtype=torch.float64, requires_grad=True)
    assert torch.round(x, decimals=1).tolist() == [1.2, -2.3, 1234.5] and x.round(decimals=-2).tolist() == [0.0, 0.0, 1200.0]
    assert x.round().tolist() == [1.0, -2.0, 1234.0] and torch.autograd.grad(x.round(decimals=1).sum(), x)[0].tolist() == [0.0] * 3
    y = x.detach().clone()
    assert y.round_(decimals=2) is y and y.tolist() == pytest.approx([1.25, -2.35, 1234.5]) and y.round_().tolist() == [1.0, -2.0, 1234.0]
    assert torch.round(torch.tensor([15, 3]), decimals=0).tolist() == [15, 3]


def test_principal_components():
    torch.manual_seed(0)
    x = torch.randn(20, 4, dtype=torch.float64) @ torch.diag(torch.tensor([5.0, 2.0, 1.0, 0.1], dtype=torch.float64)) + 3
    u, s, v = torch.pca_lowrank(x, q=2)
    centred = x - x.mean(0)
    assert v.shape == (4, 2) and u.shape == (20, 2)
    assert torch.allclose(s, torch.linalg.svdvals(centred)[:2])
    assert torch.allclose(centred @ v, u * s)
    assert torch.allclose(torch.svd_lowrank(x, 2, M=x.mean(0))[1], s)
    with pytest.raises(ValueError, match="q = 5"):
        torch.svd_lowrank(x, 5)


def test_modules_looked_into():
    net = Net()
    net.register_parameter("none", None)
    assert set(net._modules) == {"conv", "bn", "pool", "drop", "fc"} and list(net._parameters) == ["none"] and "running_mean" in net.bn._buffers
    with pytest.raises(TypeError):
        net._modules["fc"] = nn.Identity()                      # would not be seen
    assert len(nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh(), nn.ReLU())) == 3
    assert nn.init._calculate_fan_in_and_fan_out(net.conv.weight) == (9, 36)


def test_loader_options_for_workers():
    loader = DataLoader(TensorDataset(torch.arange(4)), 2, num_workers=2, persistent_workers=True, prefetch_factor=4, pin_memory=True,
                        worker_init_fn=lambda k: None, timeout=3)
    assert [b.tolist() for (b,) in loader] == [[0, 1], [2, 3]]
    assert torch.utils.data.get_worker_info() is None


# Calls by PyTorch's names of arguments.
BY_NAME = [
    "torch.sum(input=x, dim=0, keepdim=True)", "torch.mean(input=x, dim=0)", "torch.prod(input=x, dim=0)", "torch.max(input=x, dim=1, keepdim=True)",
    "torch.min(input=x, dim=1)", "torch.amax(input=x, dim=1)", "torch.argmax(input=x, dim=1)", "torch.all(input=x, dim=1)", "torch.any(input=x)",
    "torch.std(input=x, dim=0)", "torch.var(input=x, dim=0, correction=0)", "torch.norm(input=x, p=2, dim=1)", "torch.nansum(input=x)",
    "torch.logsumexp(input=x, dim=1)", "torch.softmax(input=x, dim=-1)", "torch.nn.functional.softmax(input=x, dim=-1, dtype=torch.float64)",
    "torch.log_softmax(input=x, dim=-1)", "torch.matmul(input=x, other=x.T)", "torch.mm(input=x, mat2=x.T)", "torch.dot(input=x[0], tensor=x[1])",
    "torch.gather(input=x, dim=0, index=x.long())", "torch.nonzero(input=x, as_tuple=True)", "torch.where(condition=x > 0, input=x, other=x)",
    "torch.clamp(input=x, min=0, max=1)", "torch.topk(input=x, k=1, dim=1, largest=True, sorted=True)", "torch.pow(input=x, exponent=2)",
    "torch.reshape(input=x, shape=(-1,))", "torch.permute(input=x, dims=(1, 0))", "torch.transpose(input=x, dim0=0, dim1=1)", "torch.t(input=x)",
    "torch.squeeze(input=x)", "torch.unsqueeze(input=x, dim=0)", "torch.flatten(input=x, start_dim=0)", "torch.unflatten(input=x, dim=1, sizes=(3, 1))",
    "torch.flip(x, dims=(0,))", "torch.tile(input=x, dims=(2, 1))", "x.repeat(repeats=(2, 1))", "x.expand(size=(2, 3))", "x.view(size=(3, 2))",
    "x.permute(dims=(1, 0))", "x.reshape(shape=(6,))", "torch.roll(input=x, shifts=1, dims=0)", "torch.rot90(input=x, k=1, dims=(0, 1))",
    "torch.movedim(input=x, source=0, destination=1)", "torch.unbind(input=x, dim=0)", "torch.chunk(input=x, chunks=2)",
    "torch.split(tensor=x, split_size_or_sections=1)", "torch.clone(input=x, memory_format=torch.preserve_format)", "torch.detach(input=x)",
    "torch.cat(tensors=[x, x], dim=0)", "torch.stack(tensors=[x, x], dim=0)", "torch.atan2(input=x, other=x)", "torch.add(input=x, other=x, alpha=2)",
    "torch.zeros(size=(2, 3))", "torch.ones(size=(2, 3))", "torch.empty(size=(2,))", "torch.rand(size=(2,))", "torch.randn(size=(2,))",
    "torch.full(size=(2,), fill_value=1.0)", "torch.randint(high=3, size=(2,))", "torch.randint(low=1, high=3, size=(2,))",
    "torch.normal(mean=0.0, std=1.0, size=(2,))", "torch.arange(end=3)", "torch.arange(start=1, end=3, step=1)", "torch.arange(3)",
    "torch.linspace(start=0, end=1, steps=3)", "torch.eye(n=3, m=2)", "torch.zeros_like(input=x, memory_format=torch.preserve_format)",
    "x.to(memory_format=torch.contiguous_format)", "x.double(memory_format=torch.preserve_format)", "x.pow(exponent=2)",
    "x.is_contiguous(memory_format=torch.contiguous_format)", "x.masked_fill(mask=x > 0, value=1.0)", "x.repeat_interleave(repeats=2, dim=0)"]


@pytest.mark.parametrize("call", BY_NAME)
def test_names_of_arguments(call):
    found = eval(call, {"torch": torch, "x": torch.ones(2, 3)})
    assert found is not None


def test_an_end_is_required():
    with pytest.raises(TypeError, match="arange"):
        torch.arange()
