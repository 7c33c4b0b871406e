"""Layout: what never copies, the strides that PyTorch has, any number of dimensions, and memory shared with NumPy.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import functools

import numpy as np
import pytest
from numeric import array, leaf

import autograd_cy as ag


def fresh():
    return ag.tensor(np.arange(24.0).reshape(2, 3, 4))


VIEWS = [  # name, view of shape (2, 3, 4), the same of an array, strides and offset in elements
    ("transpose", lambda t: t.transpose(0, 2), lambda a: a.transpose(2, 1, 0), (1, 4, 12), 0),
    ("permute", lambda t: t.permute(1, 2, 0), lambda a: a.transpose(1, 2, 0), (4, 1, 12), 0),
    ("swapaxes", lambda t: t.swapaxes(-1, 0), lambda a: a.swapaxes(-1, 0), (1, 4, 12), 0),
    ("movedim", lambda t: t.movedim(2, 0), lambda a: np.moveaxis(a, 2, 0), (1, 12, 4), 0),
    ("mT", lambda t: t.mT, lambda a: a.swapaxes(1, 2), (12, 1, 4), 0),
    ("view", lambda t: t.view(6, 4), lambda a: a.reshape(6, 4), (4, 1), 0),
    ("view with -1", lambda t: t.view(-1, 2), lambda a: a.reshape(-1, 2), (2, 1), 0),
    ("reshape", lambda t: t.reshape(4, 6), lambda a: a.reshape(4, 6), (6, 1), 0),
    ("flatten", lambda t: t.flatten(), lambda a: a.reshape(24), (1,), 0),
    ("unsqueeze", lambda t: t.unsqueeze(1), lambda a: a[:, None], (12, 12, 4, 1), 0),
    ("unsqueeze last", lambda t: t.unsqueeze(-1), lambda a: a[..., None], (12, 4, 1, 1), 0),
    ("squeeze", lambda t: t[:, :1].squeeze(1), lambda a: a[:, 0], (12, 1), 0),
    ("expand", lambda t: t[:, :1].expand(2, 5, 4), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4)), (12, 0, 1), 0),
    ("expand in front", lambda t: t.expand(3, 2, 3, 4), lambda a: np.broadcast_to(a, (3, 2, 3, 4)), (0, 12, 4, 1), 0),
    ("broadcast_to", lambda t: ag.broadcast_to(t[0, 0], (2, 4)), lambda a: np.broadcast_to(a[0, 0], (2, 4)), (0, 1), 0),
    ("int", lambda t: t[1], lambda a: a[1], (4, 1), 12),
    ("negative int", lambda t: t[-1, :, -2], lambda a: a[-1, :, -2], (4,), 14),
    ("element", lambda t: t[1, 2, 3], lambda a: a[1, 2, 3], (), 23),
    ("slice", lambda t: t[:, 1:], lambda a: a[:, 1:], (12, 4, 1), 4),
    ("slice, step", lambda t: t[..., 1::2], lambda a: a[..., 1::2], (12, 4, 2), 1),
    ("reversed", lambda t: t[::-1], lambda a: a[::-1], (-12, 4, 1), 12),
    ("reversed, step", lambda t: t[:, :, ::-2], lambda a: a[:, :, ::-2], (12, 4, -2), 3),
    ("reversed twice", lambda t: t[::-1][::-1], lambda a: a, (12, 4, 1), 0),
    ("reversed, bounds", lambda t: t[:, 2:0:-1], lambda a: a[:, 2:0:-1], (12, -4, 1), 8),
    ("ellipsis and None", lambda t: t[..., None, 0], lambda a: a[..., None, 0], (12, 4, 0), 0),
    ("unbind", lambda t: t.unbind(1)[2], lambda a: a[:, 2], (12, 1), 8),
    ("split", lambda t: t.split(3, dim=2)[1], lambda a: a[..., 3:], (12, 4, 1), 3),
    ("chunk", lambda t: t.chunk(2)[1], lambda a: a[1:], (12, 4, 1), 12),
    ("detach", lambda t: t.detach(), lambda a: a, (12, 4, 1), 0),
    (
        "chain",
        lambda t: t.permute(2, 0, 1)[::2, :, 1:].unsqueeze(0),
        lambda a: a.transpose(2, 0, 1)[::2, :, 1:][None],
        (8, 2, 12, 4),
        4,
    ),
]


@pytest.mark.parametrize(("name", "view", "ref", "strides", "offset"), VIEWS, ids=[v[0] for v in VIEWS])
def test_view(name, view, ref, strides, offset):
    """No copy: the pointer is the base's plus the offset, and a write through the view is seen by the base."""
    t = fresh()
    v, a = view(t), ref(np.arange(24.0).reshape(2, 3, 4))
    assert tuple(v.shape) == a.shape
    assert np.array_equal(array(v), a)
    assert v.data_ptr() == t.data_ptr() + 8 * offset
    assert v.storage_offset() == offset
    sizes = [k for k, n in enumerate(v.shape) if n != 1 and name != "chain"]  # the stride of a size-1 axis is free
    assert [v.stride()[k] for k in sizes] == [strides[k] for k in sizes]
    assert [v.stride(k) for k in range(v.ndim)] == list(v.stride())
    if 0 not in [v.stride(k) for k in range(v.ndim) if v.shape[k] > 1]:
        v.zero_()
        assert t.sum().item() == 276 - a.sum()


def test_strides_of_new_tensors():
    """Shape (2, 3) has strides (3, 1); t() gives (3, 2) and (1, 3), the same storage."""
    t = ag.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert t.stride() == (3, 1)
    assert t.t().stride() == (1, 3)
    assert tuple(t.t().shape) == (3, 2)
    assert t.t().data_ptr() == t.data_ptr()
    assert t.t().contiguous().reshape(-1).tolist() == [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
    assert t.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert ag.zeros(2, 3, 4).stride() == (12, 4, 1)
    assert ag.tensor(1.0).stride() == ()
    assert ag.zeros(5).stride() == (1,)
    assert ag.zeros(2, 1, 3).stride() == (3, 3, 1)


def test_element_formula():
    """Offset + sum of index times stride; a[1][2] of shape (2, 3) is flat element 5."""
    t = ag.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert t[1][2].item() == t[1, 2].item() == t.view(-1)[5].item() == 6.0
    big = fresh().permute(2, 0, 1)[1:, :, ::2]
    flat = np.arange(24.0)
    for i in np.ndindex(*big.shape):
        assert big[i].item() == flat[big.storage_offset() + sum(a * b for a, b in zip(i, big.stride(), strict=True))]


def test_contiguous():
    """Itself when it can, a copy when it must."""
    t = fresh()
    assert t.contiguous() is t
    assert t.is_contiguous()
    assert t[1].contiguous().data_ptr() == t[1].data_ptr()
    v = t.permute(2, 0, 1)
    assert not v.is_contiguous()
    c = v.contiguous()
    assert c.is_contiguous()
    assert c.data_ptr() != t.data_ptr()
    assert np.array_equal(array(c), array(v))
    assert not t[::-1].is_contiguous()
    assert not t[..., ::2].is_contiguous()
    assert not t[:1].expand(3, 3, 4).is_contiguous()
    assert t[:, :1].is_contiguous() is False
    assert t[:1, 1:].is_contiguous() is True
    for shape in ((), (0,), (3, 0, 2), (1, 1)):
        assert ag.zeros(shape).is_contiguous()
    assert ag.zeros(3, 0).t().is_contiguous()


def test_reshape_copies_only_when_it_must():
    t = fresh()
    for view in (
        lambda: t.reshape(24),
        lambda: t.permute(1, 0, 2)[:, :1].reshape(3, 4),
        lambda: t.reshape(2, 1, 12, 1),
        lambda: t[:, :, ::2].reshape(6, 2),
        lambda: t.transpose(0, 1).reshape(3, 2, 2, 2),
        lambda: t[1].reshape(2, 6),
        lambda: t[..., :1].reshape(6),
        lambda: t.reshape(2, 3, 4),
    ):
        base = t.storage_offset() * 8 + t.data_ptr()
        assert base <= view().data_ptr() < base + 24 * 8
    for copy in (lambda: t.permute(1, 0, 2).reshape(6, 4), lambda: t.transpose(1, 2).reshape(24), lambda: t[:, :2].reshape(16)):
        v = copy()
        assert not t.data_ptr() <= v.data_ptr() < t.data_ptr() + 24 * 8
    assert t.permute(1, 0, 2).reshape(24).tolist() == np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2).reshape(24).tolist()
    with pytest.raises(ValueError, match="view.*reshape"):
        t.permute(1, 0, 2).view(6, 4)


def test_reshape_of_reversed():
    t = ag.tensor(np.arange(6.0))[::-1]
    assert t.reshape(2, 3).tolist() == [[5.0, 4.0, 3.0], [2.0, 1.0, 0.0]]
    assert t.reshape(3, 2)[1].tolist() == [3.0, 2.0]
    assert t.contiguous().tolist() == t.tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("ndim", [1, 5, 8, 9, 16, 17, 24, 32])
def test_many_dimensions(ndim):
    """At least 16, as the issue asks; NumPy's own limit is 32 in version 1."""
    shape = [1] * ndim
    shape[0], shape[ndim // 2], shape[-1] = 2, 3, 2
    a = np.arange(float(np.prod(shape))).reshape(shape)
    x = leaf(a)
    y = (x.permute(*reversed(range(ndim))) * 2).sum(0)
    assert tuple(y.shape) == tuple(reversed(shape))[1:]
    assert np.array_equal(array(y), (a.transpose() * 2).sum(0))
    y.sum().backward()
    assert np.array_equal(array(x.grad), np.full(shape, 2.0))
    z = x.detach() + ag.tensor(a.reshape([n for n in shape if n > 1] if ndim == 1 else shape))
    assert np.array_equal(array(z), a + a)


def test_too_many_dimensions():
    x = ag.zeros(1)
    with pytest.raises((RuntimeError, ValueError), match="(?i)dim"):
        functools.reduce(lambda t, _: t.unsqueeze(0), range(100), x)
    with pytest.raises((RuntimeError, ValueError), match="(?i)dim"):
        ag.zeros([1] * 100)


BROADCASTS = [
    ((3, 1, 4), (2, 4), (3, 2, 4)),
    ((), (2, 3), (2, 3)),
    ((1,), (5,), (5,)),
    ((2, 1), (1, 3), (2, 3)),
    ((0,), (1,), (0,)),
    ((3, 0), (1, 1), (3, 0)),
    ((4, 1, 0), (2, 0), (4, 2, 0)),
    ((1, 1, 1), (), (1, 1, 1)),
]


@pytest.mark.parametrize(("a", "b", "out"), BROADCASTS)
def test_broadcasting_shapes(a, b, out):
    """As NumPy's."""
    assert np.broadcast_shapes(a, b) == out
    for x, y in ((a, b), (b, a)):
        x, y = leaf(np.ones(x)), leaf(np.ones(y))
        z = x + y
        assert tuple(z.shape) == out
        z.sum().backward()
        n = float(np.prod(out))
        for t in (x, y):
            assert t.grad.shape == t.shape
            assert np.array_equal(array(t.grad), np.full(tuple(t.shape), n / max(t.numel(), 1)))


@pytest.mark.parametrize(("a", "b"), [((3,), (4,)), ((2, 3), (3, 2)), ((2, 3), (2,)), ((0,), (2,)), ((1, 0), (3, 2))])
def test_shapes_that_do_not_broadcast(a, b):
    for f in (lambda x, y: x + y, lambda x, y: ag.maximum(x, y), lambda x, y: x < y, lambda x, y: ag.where(x > 0, x, y)):
        with pytest.raises(ValueError, match="broadcast") as error:
            f(ag.zeros(a), ag.zeros(b))
        assert all(str(n) in str(error.value) for n in (*a, *b))


def test_scalar_gets_the_sum():
    """A scalar broadcast to (3, 4) gets the sum of the 12 entries."""
    s = leaf(2.0)
    (s * ag.tensor(np.arange(12.0).reshape(3, 4))).sum().backward()
    assert s.grad.item() == 66.0


def test_unbroadcast():
    """(3, 1) + (1, 3) gives (3, 3), and gradients return to (3, 1) and (1, 3)."""
    a, b = leaf(np.ones((3, 1))), leaf(np.ones((1, 3)))
    w = np.arange(9.0).reshape(3, 3)
    ((a + b) * ag.tensor(w)).sum().backward()
    assert a.grad.tolist() == w.sum(1, keepdims=True).tolist()
    assert b.grad.tolist() == w.sum(0, keepdims=True).tolist()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3, 0)])
def test_zero_size(shape):
    x = leaf(np.zeros(shape))
    assert x.numel() == 0
    assert x.tolist() == np.zeros(shape).tolist()
    y = (x * 2 + 1).exp().sum()
    assert y.item() == 0.0
    y.backward()
    assert tuple(x.grad.shape) == shape
    assert tuple(x.t().shape if x.ndim <= 2 else x.shape) == (shape[::-1] if len(shape) <= 2 else shape)
    assert tuple(x.reshape(0, 7).shape) == (0, 7)
    assert ag.cat([x, x]).numel() == 0
    with pytest.raises(ValueError, match="-1"):
        x.reshape(-1, 0)
    with pytest.raises(IndexError):
        x[(0,) * x.ndim]


def test_zero_dimensional():
    x = leaf(3.0)
    assert x.ndim == x.dim() == 0
    assert x.shape == ()
    assert x.numel() == 1
    assert x.item() == 3.0
    assert float(x) == 3.0
    for dim in (0, -1):
        assert tuple(x.sum(dim).shape) == ()
        assert tuple(x.softmax(dim).shape) == ()
    assert tuple(x.unsqueeze(0).shape) == (1,)
    assert tuple(x.reshape(1, 1).shape) == (1, 1)
    assert tuple(x[None].shape) == (1,)
    assert x[...].item() == 3.0
    assert x[()].item() == 3.0
    assert tuple(x.t().shape) == ()
    assert tuple(x.squeeze().shape) == ()
    assert tuple(x.flatten().shape) == (1,)
    with pytest.raises(IndexError):
        x[0]
    with pytest.raises(IndexError):
        x.sum(1)
    (x.expand(2, 3).sum() + x.unsqueeze(0)[0]).backward()
    assert x.grad.item() == 7.0


def test_size_and_shape():
    t = fresh()
    assert t.shape == (2, 3, 4)
    assert t.size() == (2, 3, 4)
    assert t.size(1) == t.size(-2) == 3
    assert t.dim() == t.ndim == 3
    assert t.numel() == 24
    assert len(t) == 2
    assert t.element_size() == 8
    assert t.nelement() == 24
    assert isinstance(t.shape, tuple)
    assert t.shape[0] == 2
    assert t.shape[1:] == (3, 4)
    with pytest.raises(IndexError):
        t.size(3)


# ---------------------------------------------------------------------------------------------------------------------
# NumPy and other libraries


def test_numpy_shares():
    t = fresh()
    a = t.numpy()
    assert a.dtype == np.float64
    assert a.shape == (2, 3, 4)
    a[0, 0, 0] = 77.0
    assert t[0, 0, 0].item() == 77.0
    t[1, 2, 3] = -1.0
    assert a[1, 2, 3] == -1.0
    v = t.permute(2, 0, 1)[::2].numpy()
    assert v.strides == (16, 96, 32)
    assert np.shares_memory(a, v)
    r = t[::-1].numpy()
    assert r.strides[0] == -96
    assert r[1, 0, 0] == 77.0
    e = t[:1].expand(5, 3, 4).numpy()
    assert e.strides[0] == 0
    assert ag.tensor(2.0).numpy().shape == ()
    assert ag.zeros(0, 2).numpy().shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_round_trip(dtype):
    a = np.array([[0, 1, 2], [3, 4, 250]]).astype(dtype)
    t = ag.from_numpy(a)
    assert t.dtype == getattr(ag, dtype)
    assert np.array_equal(t.numpy(), a)
    assert t.numpy().dtype == a.dtype
    assert np.shares_memory(t.numpy(), a)
    assert t.element_size() == a.itemsize
    assert ag.tensor(a).dtype == t.dtype
    assert not np.shares_memory(ag.tensor(a).numpy(), a)


def test_from_numpy_shares():
    a = np.arange(12.0).reshape(3, 4)
    for b in (a, a.T, a[:, ::2], a[1:], a[:, ::-1], a[::-1, 1::2]):
        t = ag.from_numpy(b)
        assert np.array_equal(array(t), b)
        assert np.shares_memory(t.numpy(), a)
        assert t.stride() == tuple(s // 8 for s in b.strides)
        assert np.array_equal(array(t * 2), b * 2)
    t = ag.from_numpy(a)
    a[0, 0] = 9.0
    assert t[0, 0].item() == 9.0
    t.add_(1)
    assert a[0, 0] == 10.0
    assert ag.as_tensor(a).data_ptr() == t.data_ptr()
    assert ag.asarray(a).data_ptr() == t.data_ptr()
    assert ag.as_tensor(t) is t


def test_from_numpy_of_strange_arrays():
    for bad in (np.array(["a"]), np.array([None]), np.array([1 + 2j])):
        with pytest.raises(TypeError):
            ag.from_numpy(bad)
    with pytest.raises(TypeError):
        ag.from_numpy([1.0, 2.0])
    swapped = np.arange(3.0).astype(">f8")
    with pytest.raises((TypeError, ValueError)):
        ag.from_numpy(swapped)
    record = np.zeros(4, dtype=[("a", "i1"), ("b", "f8")])
    with pytest.raises((TypeError, ValueError)):
        ag.from_numpy(record["b"])  # strides that are no multiple of the element's size


def test_read_only_array():
    """Its memory must not be written through a tensor."""
    a = np.arange(3.0)
    a.flags.writeable = False
    try:
        t = ag.from_numpy(a)
    except (ValueError, TypeError):
        return
    except UserWarning:
        return  # PyTorch warns
    with pytest.raises((RuntimeError, ValueError)):
        t.add_(1)
    assert a.tolist() == [0.0, 1.0, 2.0]


def test_array_protocols():
    t = fresh()
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert np.array_equal(np.asarray(t), array(t))
    assert np.asarray(t, dtype="f4").dtype == np.float32
    assert not np.shares_memory(np.array(t), t.numpy())
    assert np.array_equal(np.asarray(t.permute(2, 1, 0)), array(t).transpose())
    assert np.sum(array(t)) == 276.0
    view = memoryview(t)
    assert view.shape == (2, 3, 4)
    assert view.strides == (96, 32, 8)
    assert view.format == "d"
    assert view[1, 2, 3] == 23.0
    assert memoryview(t.permute(2, 0, 1)).strides == (8, 96, 32)
    with pytest.raises((BufferError, TypeError)):
        memoryview(t[..., ::2]).cast("B")
    assert np.asarray(ag.tensor([True, False])).dtype == bool
    assert memoryview(ag.tensor([1, 2])).format in ("l", "q")
    with pytest.raises(RuntimeError, match="(?i)detach|grad"):
        np.asarray(leaf([1.0]))


def test_dlpack():
    t = ag.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=ag.float64)
    a = np.from_dlpack(t.t())
    t[0, 1] = 9.0
    assert a.tolist() == [[1.0, 3.0], [9.0, 4.0]]
    b = np.arange(6.0).reshape(2, 3)
    u = ag.from_dlpack(b)
    b[0, 0] = 5.0
    assert u.tolist() == [[5.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises((RuntimeError, BufferError)):
        leaf([1.0]).__dlpack__()


def test_copies_do_not_share():
    t = fresh()
    for c in (t.clone(), ag.tensor(array(t)), t.contiguous().clone(), t + 0, t.to(ag.float32), t.reshape(2, 3, 4).clone()):
        assert c.data_ptr() != t.data_ptr()
    assert t.to(ag.float64) is t
    assert t.double() is t


def test_clone_keeps_dense_strides():
    """PyTorch's preserve_format: dense tensors keep their strides, others become row-major."""
    t = fresh().permute(2, 0, 1)
    assert t.clone().stride() == t.stride()
    assert (t * 2).stride() == t.stride() == (t.exp()).stride()
    assert fresh()[:, ::2].clone().is_contiguous()
    assert ag.zeros_like(t).stride() == t.stride()


def laid(shape, order):
    """Ones whose axes lie in memory in this order, the slowest first."""
    return ag.ones(*[shape[axis] for axis in order]).permute(*[order.index(axis) for axis in range(len(shape))])


@pytest.mark.parametrize(("a", "b", "strides"), [  # strides of a + b in PyTorch 2.13, where neither has the result's shape
    (((2, 1, 3), (2, 0, 1)), ((1, 4, 3), (1, 2, 0)), (1, 2, 8)),
    (((2, 1, 3), (2, 0, 1)), ((1, 4, 3), (2, 0, 1)), (4, 1, 8)),
    (((2, 1, 3), (0, 1, 2)), ((1, 4, 3), (0, 1, 2)), (12, 3, 1)),
    (((2, 1, 3), (2, 1, 0)), ((1, 4, 3), (0, 2, 1)), (4, 1, 8)),
    (((2, 1, 1), (0, 1, 2)), ((1, 4, 3), (2, 0, 1)), (12, 1, 4)),
    (((2, 1, 3), (1, 2, 0)), ((4, 1), (0, 1)), (1, 2, 8)),
    (((2, 3), (1, 0)), ((4, 1, 1), (0, 1, 2)), (6, 1, 2)),
])
def test_axis_order_of_what_is_broadcast(a, b, strides):
    """It decides whether a later reshape is a view, so whether a write to that is seen."""
    x, y = laid(*a), laid(*b)
    assert (x + y).stride() == strides
    assert ag.addcmul(x, y, ag.ones(())).stride() == strides
