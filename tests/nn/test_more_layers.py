"""AdaptiveLogSoftmaxWithLoss, RReLU, DataParallel, Buffer, cells of one's own: values, state, copies, errors.

Relies on nn and tests/numeric.py; nothing relies on it.
"""

import copy
import io
import pickle

import numpy as np
import pytest
from numeric import array, close

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.array.errors import CaptureError

F = nn.functional


def adaptive(bias=False):
    ag.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 5], div_value=2.0, head_bias=bias).double()


def inputs():
    return ag.tensor(np.random.default_rng(0).normal(size=(9, 6)), requires_grad=True), ag.tensor([0, 1, 2, 3, 4, 5, 11, 7, 0])


@pytest.mark.parametrize("bias", [False, True])
def test_adaptive_softmax(bias):
    layer, (x, t) = adaptive(bias), inputs()
    assert layer.head_size == 5 and layer.cutoffs == [3, 5, 12] and [c[0].out_features for c in layer.tail] == [3, 1]
    probabilities = layer.log_prob(x)
    close(probabilities.exp().sum(1), np.ones(9))
    output, loss = layer(x, t)
    close(output, array(probabilities)[np.arange(9), array(t)])
    close(loss, -array(output).mean())
    assert layer.predict(x).tolist() == array(probabilities).argmax(1).tolist()
    wanted = ag.autograd.grad(-probabilities.gather(1, t.unsqueeze(1)).mean(), [x, *layer.parameters()])
    for g, h in zip(ag.autograd.grad(loss, [x, *layer.parameters()]), wanted, strict=True):
        close(g, array(h), 1e-9, 1e-14)
    one = layer(x[6], t[6])
    assert one.output.shape == () and one.output.item() == pytest.approx(output[6].item()) == pytest.approx(-one.loss.item())
    layer.zero_grad()
    layer(x[:3], t[:3]).loss.backward()
    assert layer.head.weight.grad is not None and layer.tail[0][0].weight.grad is None         # no target there
    assert ag.autograd.gradcheck(lambda x: layer(x, t), (x,))


def test_adaptive_softmax_is_kept_and_refuses():
    layer, (x, t) = adaptive(), inputs()
    state = layer.state_dict()
    assert list(state) == ["head.weight", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight", "tail.1.1.weight"]
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), adaptive(True)):
        other.load_state_dict(state, strict=False)
        if other.head.bias is None:
            assert other(x, t).loss.item() == layer(x, t).loss.item() and repr(other) == repr(layer)
    before = array(layer.head.weight).copy()
    layer.reset_parameters()
    assert (array(layer.head.weight) != before).all()
    for cutoffs in ([], [5, 3], [0, 3], [3, 12], [3, 3], [2.5]):
        with pytest.raises(ValueError, match="cutoffs should be"):
            nn.AdaptiveLogSoftmaxWithLoss(6, 12, cutoffs)
    for bad, message in [(ag.tensor([0] * 8 + [12]), r"\[0, 11\].*\[0, 12\]"), (ag.tensor([-1] * 9), "-1"), (t[:4], r"\(9, 6\).*\(4,\)"),
                         (t.reshape(9, 1), r"\(9, 1\)"), (t[0], r"\(\)")]:   # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            layer(x, bad)
    with pytest.raises(CaptureError):
        ag.compile(layer)(x, t)


@pytest.mark.oracle
@pytest.mark.parametrize("bias", [False, True])
def test_adaptive_softmax_equals_installed_pytorch(bias):
    torch = pytest.importorskip("torch")
    layer, (x, t) = adaptive(bias), inputs()
    other = torch.nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 5], div_value=2.0, head_bias=bias).double()
    other.load_state_dict({k: torch.tensor(v.numpy()) for k, v in layer.state_dict().items()})
    y, u = torch.tensor(array(x), requires_grad=True), torch.tensor(array(t))
    a, b = layer(x, t), other(y, u)
    a.loss.backward()
    b.loss.backward()
    for one, two in ((a.output, b.output), (a.loss, b.loss), (x.grad, y.grad), (layer.log_prob(x), other.log_prob(y)), (layer.predict(x), other.predict(y))):
        np.testing.assert_allclose(array(one), two.detach().numpy(), rtol=1e-12, atol=1e-14)
    for p, q in zip(layer.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(array(p.grad), q.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_rrelu():
    layer = nn.RReLU(0.25, 0.5)
    assert repr(layer) == "RReLU(lower=0.25, upper=0.5)" and repr(nn.RReLU(inplace=True)) == "RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)"
    x = ag.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    assert layer.eval()(x).tolist() == [-0.75, 0, 3]
    y = layer.train()(x)
    assert 0.5 <= -y[0].item() <= 1 and y[1:].tolist() == [0, 3]
    (g,) = ag.autograd.grad(y.sum(), x)
    assert g.tolist() == [y[0].item() / -2, 1, 1]
    y = x.detach().clone()
    assert F.rrelu_(y, 0.5, 0.5, True) is y and y.tolist() == [-1, 0, 3] and F.rrelu(y, training=False, inplace=True) is y


def test_data_parallel():
    inner = nn.Linear(2, 3)
    layer = nn.DataParallel(inner, device_ids=[0, 1])
    x = ag.randn(4, 2)
    assert layer(x).tolist() == inner(x).tolist() == layer(input=x).tolist() and layer.module is inner
    assert list(layer.state_dict()) == ["module.weight", "module.bias"] and list(layer.parameters())[0] is inner.weight


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(ag.ones(2))
        self.kept = nn.Buffer(ag.arange(3.0))
        self.passing = nn.Buffer(ag.zeros(1), persistent=False)
        self.plain = ag.ones(4)


def test_buffer():
    model = Buffered()
    for m in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(m.state_dict()) == ["weight", "kept"] and [n for n, _ in m.named_buffers()] == ["kept", "passing"]
        assert [n for n, _ in m.named_parameters()] == ["weight"] and isinstance(m.kept, nn.Buffer)
    model.kept += 1
    assert model.state_dict()["kept"].tolist() == [1, 2, 3] and model.double().kept.dtype is ag.float64
    file = io.BytesIO()
    ag.save(model.state_dict(), file)
    file.seek(0)
    other = Buffered().double()
    other.load_state_dict(ag.load(file))
    assert other.kept.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="as buffer 'kept'"):
        model.kept = 3
    model.kept = ag.zeros(2)
    assert model.state_dict()["kept"].tolist() == [0, 0]
    x = ag.tensor([1.0, 2.0])
    b = nn.Buffer(x)
    x.mul_(2)
    assert b.tolist() == [2, 4] and not b.requires_grad and type(b * 1) is ag.Tensor and nn.Buffer().shape == (0,)


def test_cell_of_ones_own():
    class Cell(nn.RNNCellBase):
        def __init__(self, n, h):
            super().__init__(n, h, bias=True, num_chunks=2)

        def forward(self, x, h):
            a, b = (F.linear(x, self.weight_ih, self.bias_ih) + F.linear(h, self.weight_hh, self.bias_hh)).chunk(2, 1)
            return h + a.sigmoid() * (b.tanh() - h)

    cell = Cell(3, 4)
    assert cell(ag.randn(2, 3), ag.zeros(2, 4)).shape == (2, 4) and cell.weight_ih.shape == (8, 3) and repr(cell) == "Cell(3, 4)"
    assert all(isinstance(c, nn.RNNCellBase) for c in (nn.RNNCell(2, 2), nn.LSTMCell(2, 2), nn.GRUCell(2, 2)))


def test_older_names_of_interpolate():
    x = ag.arange(4.0).reshape(1, 1, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        assert F.upsample_nearest(x, scale_factor=2)[0, 0, 0].tolist() == [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="deprecated"):
        np.testing.assert_allclose(array(F.upsample_bilinear(x, (3, 3)))[0, 0], [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]], atol=1e-6)
