"""How a tensor behaves as a Python object: printing, truth, iteration, hashing, copying, pickling, NumPy on either side.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from numeric import array, leaf

import autograd_cy as ag

REPR = [  # tensor, what its repr is
    (lambda: ag.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
    (lambda: ag.tensor(3), "tensor(3)"),
    (lambda: ag.tensor([1, 2]), "tensor([1, 2])"),
    (lambda: ag.tensor([True, False]), "tensor([ True, False])"),
    (lambda: ag.tensor([1.0, 2.0], requires_grad=True), "tensor([1., 2.], requires_grad=True)"),
    (lambda: ag.tensor([]), "tensor([])"),
]


@pytest.mark.parametrize("k", range(len(REPR)))
def test_repr(k):
    make, right = REPR[k]
    assert repr(make()).replace(" ", "") == right.replace(" ", "") == str(make()).replace(" ", "")


def test_repr_tells_dtype_gradient_and_size():
    assert "float64" in repr(ag.tensor([1.0], dtype=ag.float64))
    assert "int32" in repr(ag.tensor([1], dtype=ag.int32))
    assert "float32" not in repr(ag.tensor([1.0]))
    assert "int64" not in repr(ag.tensor([1]))
    x = leaf([1.0])
    assert "requires_grad=True" in repr(x)
    assert "grad_fn=" in repr(x * 2)
    big = repr(ag.zeros(1000, 1000))
    assert "..." in big
    assert len(big) < 2000
    assert "(0, 3)" in repr(ag.zeros(0, 3))
    text = repr(ag.tensor([math.nan, math.inf, -math.inf, 1e-30, 1e30]))
    assert "nan" in text
    assert "inf" in text
    assert "-inf" in text
    assert repr(ag.tensor([[1.0, 2.0], [3.0, 4.0]])).count("\n") == 1
    assert "1, 2" in repr(ag.tensor([[1, 2]]).expand(2, 2))
    assert "2, 1" in repr(ag.tensor([1, 2])[::-1])
    with ag.no_grad():
        assert "grad_fn" not in repr(x * 2)


def test_format():
    assert f"{ag.tensor(3.14159):.2f}" == "3.14"
    assert f"{ag.tensor(7):5d}" == "    7"
    assert f"{leaf(2.5):.1f}" == "2.5"
    assert f"{ag.tensor([1, 2])}" == str(ag.tensor([1, 2]))
    with pytest.raises((TypeError, RuntimeError)):
        f"{ag.tensor([1.0, 2.0]):.2f}"


def test_truth():
    """pytorch/pytorch#6318."""
    assert bool(ag.tensor(1.0))
    assert not bool(ag.tensor([0.0]))
    assert bool(ag.tensor([[math.nan]]))
    assert not ag.tensor(False)
    for t in (ag.tensor([1.0, 2.0]), ag.tensor([1.0, 2.0]) == ag.tensor([1.0, 2.0]), ag.zeros(0)):
        with pytest.raises(RuntimeError, match="(?i)bool|ambiguous"):
            bool(t)


def test_membership_and_identity():
    a, b = ag.tensor([1.0, 2.0]), ag.tensor([1.0, 2.0])
    assert a in [a]
    assert [a, b].index(a) == 0
    assert {a: 1}[a] == 1
    assert len({a, b, a}) == 2
    assert hash(a) == hash(a)
    assert hash(a) != hash(b)
    assert (a == None) is False  # noqa: E711
    assert (a != None) is True  # noqa: E711
    assert (a == "text") is False
    assert (a != object()) is True
    assert 1.0 in a
    assert 5.0 not in a
    with pytest.raises(TypeError):
        a < None  # noqa: B015
    with pytest.raises(TypeError):
        a < "text"  # noqa: B015


def test_numbers():
    assert (
        float(ag.tensor(2.5)) == 2.5
    )
    assert (
        int(ag.tensor(7)) == 7
    )
    assert (
        int(ag.tensor([3.9])) == 3
    )
    assert (
        complex(ag.tensor(2.0)) == 2 + 0j
    )
    assert float(ag.tensor(0.1)) == float(np.float32(0.1))
    assert ag.tensor(0.1, dtype=ag.float64).item() == 0.1
    assert operator.index(ag.tensor(3)) == 3
    assert [10, 20, 30][ag.tensor(1)] == 20
    assert list(range(ag.tensor(3))) == [0, 1, 2]
    assert (
        isinstance(ag.tensor(3).item(), int)
    )
    assert (
        isinstance(ag.tensor(True).item(), bool)
    )
    assert (
        isinstance(ag.tensor(1.0).item(), float)
    )
    for t in (ag.tensor([1.0, 2.0]), ag.zeros(0)):
        for f in (float, int, lambda t: t.item()):
            with pytest.raises((RuntimeError, ValueError, TypeError)):
                f(t)
    with pytest.raises(TypeError):
        operator.index(ag.tensor(1.0))
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        operator.index(ag.tensor([1, 2]))
    with pytest.raises((ValueError, OverflowError, RuntimeError)):
        int(ag.tensor(math.nan))
    assert math.sqrt(ag.tensor(4.0)) == 2.0
    assert round(float(ag.tensor(2.4))) == 2


def test_len_and_iteration():
    t = leaf([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [r.tolist() for r in t] == [[1.0, 2.0], [3.0, 4.0]]
    first, second = t
    (first * 2 + second).sum().backward()
    assert t.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert list(ag.zeros(0)) == []
    assert [v.item() for v in ag.tensor([1, 2])] == [1, 2]
    assert [r.item() for r in reversed(ag.tensor([1, 2]))] == [2, 1]
    for f in (len, iter, list):
        with pytest.raises(TypeError, match="0-d"):
            f(ag.tensor(1.0))
    assert max(ag.tensor([1.0, 3.0, 2.0])).item() == 3.0
    assert sum(ag.tensor([1.0, 2.0])).item() == 3.0
    assert sorted(ag.tensor([3, 1, 2]))[0].item() == 1
    x, (y, z) = ag.tensor(1), ag.tensor([2, 3])
    assert (x + y + z).item() == 6
    assert [tuple(v.item() for v in p) for p in zip(ag.tensor([1, 2]), ag.tensor([3, 4]), strict=True)] == [(1, 3), (2, 4)]


def test_tolist():
    assert ag.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert ag.tensor(1.5).tolist() == 1.5
    assert ag.tensor([True]).tolist() == [True]
    assert ag.zeros(2, 0).tolist() == [[], []]
    assert ag.tensor([[1, 2], [3, 4]]).t()[::-1].tolist() == [[2, 4], [1, 3]]
    assert leaf([1.0]).tolist() == [1.0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    for t in (
        ag.tensor([[1.0, 2.0], [3.0, 4.0]]),
        ag.tensor(3),
        ag.zeros(0, 2),
        ag.tensor([True, False]),
        ag.tensor([[1.0, 2.0]]).expand(3, 2),
        ag.tensor([1, 2, 3])[::-1],
        ag.tensor([[1.0, 2.0], [3.0, 4.0]]).t(),
        leaf([1.0, 2.0]),
    ):
        u = pickle.loads(pickle.dumps(t, protocol))
        assert (
            type(u) is type(t)
        )
        assert (
            u.dtype == t.dtype
        )
        assert (
            np.array_equal(array(u), array(t))
        )
        assert (
            u.requires_grad == t.requires_grad
        )
        assert u.shape == t.shape
        assert u.is_leaf


def test_pickled_dtype():
    assert pickle.loads(pickle.dumps(ag.float32)) is ag.float32
    assert copy.deepcopy(ag.int64) is ag.int64


def test_copy():
    x = leaf([1.0, 2.0])
    c = copy.copy(x)
    assert c is not x
    assert c.data_ptr() == x.data_ptr()
    assert c.requires_grad
    d = copy.deepcopy(x)
    assert d.data_ptr() != x.data_ptr()
    assert d.requires_grad
    assert d.is_leaf
    assert d.tolist() == x.tolist()


def test_deepcopy():
    """pytorch/pytorch#3307 and #54580."""
    a = leaf([1.0])
    (a * 3).sum().backward()
    b = copy.deepcopy(a)
    assert b.grad.tolist() == [3.0]
    assert b.grad is not a.grad
    with ag.no_grad():
        b.add_(1)
        b.grad.add_(1)
    assert a.tolist() == [1.0]
    assert a.grad.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="(?i)leaf|graph"):
        copy.deepcopy(a * 2)
    assert copy.deepcopy((a * 2).detach()).tolist() == [2.0]
    pair = copy.deepcopy([a, a])
    assert pair[0] is pair[1]
    base = ag.tensor([1.0, 2.0, 3.0])
    whole, part = copy.deepcopy((base, base[1:]))
    whole[1] = 9.0
    assert part[0].item() == 9.0  # what shared storage, shares it still


def test_attributes_and_subclass_free_use():
    t = ag.tensor([1.0])
    t.note = "kept"
    assert t.note == "kept"
    assert not hasattr(t, "other")
    with pytest.raises(AttributeError):
        t.shape_ = t.no_such_method()
    assert isinstance(t, ag.Tensor)
    assert type(t + 1) is ag.Tensor
    with pytest.raises(AttributeError):
        del t.shape


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", OPERATORS + COMPARISONS)
@pytest.mark.parametrize(
    "other",
    [np.float64(2.0), np.float32(2.0), np.int64(2), np.array([1.0, 2.0]), np.array([[2.0], [3.0]]), np.array(2.0), 2, 2.0, True],
    ids=lambda o: f"{type(o).__name__}{getattr(o, 'shape', '')}",
)
def test_numpy_and_numbers_on_either_side(op, other):
    """A tensor comes out whichever side it stands on, never an array of objects."""
    if op is operator.sub and other is True:
        pytest.skip("PyTorch refuses to subtract bools")
    a = np.array([3.0, 4.0])
    t = ag.tensor(a)
    for result, right in ((op(t, other), op(a, other)), (op(other, t), op(other, a))):
        assert isinstance(result, ag.Tensor)
        assert np.allclose(array(result), right, 1e-14, 0)


def test_matmul_with_arrays():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for result in (ag.tensor(a) @ b, a @ ag.tensor(b), ag.tensor(a) @ ag.tensor(b)):
        assert isinstance(result, ag.Tensor)
        assert np.array_equal(array(result), a @ b)


def test_gradient_with_arrays_on_the_left():
    x = leaf([1.0, 2.0])
    (np.array([3.0, 4.0]) * x + np.float64(1)).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_numpy_scalars():
    """pytorch/pytorch#29252: an int64 scalar keeps an int64 tensor; scalars do not widen."""
    t = ag.ones(1, dtype=ag.int64)
    assert (t + np.int64(1)).dtype == (np.int64(1) + t).dtype == ag.int64
    f = ag.ones(2)
    for s in (np.float64(0.1), np.float32(0.1), np.int64(2), np.bool_(True)):
        assert (f * s).dtype == (s * f).dtype == ag.float32


@pytest.mark.parametrize("other", ["text", None, [1.0], (1.0,), {}, object(), 1j])
def test_operands_that_make_no_sense(other):
    t = ag.tensor([1.0])
    for op in (operator.add, operator.mul, operator.matmul):
        with pytest.raises((TypeError, RuntimeError)):
            op(t, other)
        with pytest.raises((TypeError, RuntimeError)):
            op(other, t)


def test_reflected_operators_of_other_classes():
    class Mine:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

        def __rmatmul__(self, other):
            return "mine"

    assert ag.tensor([1.0]) + Mine() == "mine"
    assert ag.tensor([1.0]) @ Mine() == "mine"


def test_numpy_functions_of_tensors():
    t = ag.tensor([1.0, 4.0])
    assert np.allclose(np.asarray(np.sqrt(array(t))), [1.0, 2.0])
    assert np.array_equal(np.stack([t, t]), np.array([[1.0, 4.0]] * 2))
    assert np.mean(np.asarray(t)) == 2.5
    assert np.array_equal(np.arange(5)[np.asarray(ag.tensor([1, 3]))], [1, 3])


def test_chained_precedence():
    """Operator precedence as written; unary minus, powers, products."""
    x = ag.tensor(3.0)
    assert (-(x**2)).item() == -9.0
    assert (2**-x).item() == 0.125
    assert (1 / (1 + x)).item() == 0.25
    assert (x * 2**3).item() == 24.0
    assert (
        (+x).item() == 3.0
    )
    assert (
        (2 - x - 1).item() == -2.0
    )
    assert (
        (12 / x / 2).item() == 2.0
    )
    assert (
        (~ag.tensor([True])).tolist() == [False]
    )
    assert divmod(7, 3) == (2, 1)
    assert (7 // x).item() == 2.0
    assert (7 % x).item() == 1.0


def test_docstrings():
    """Every public function says what it does."""
    for n in ("tensor", "exp", "matmul", "where", "zeros", "cat", "no_grad", "manual_seed"):
        assert getattr(ag, n).__doc__, n
    for n in ("backward", "sum", "reshape", "exp", "detach", "numpy"):
        assert getattr(ag.Tensor, n).__doc__, n
