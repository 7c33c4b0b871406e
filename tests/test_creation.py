"""Creation functions, dtypes and their promotion, random numbers, and refusals of what cannot be a tensor.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import copy
import pickle

import numpy as np
import pytest
from numeric import array, close, leaf

import autograd_cy as ag

DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]


def name(t):
    return str(t.dtype).split(".")[-1]


# ---------------------------------------------------------------------------------------------------------------------
# tensor and its relatives

DATA = [  # data, dtype, list of numbers
    (1.5, "float32"),
    (2, "int64"),
    (True, "bool"),
    ([1, 2], "int64"),
    ([1, 2.5], "float32"),
    ([True, 2], "int64"),
    ([True, False], "bool"),
    ([[1.0], [2.0]], "float32"),
    (((1,), (2,)), "int64"),
    ([], "float32"),
    ([[], []], "float32"),
    (np.float64(2.5), "float64"),
    (np.float32(2.5), "float32"),
    (np.int64(3), "int64"),
    (np.bool_(True), "bool"),
    (np.array([1, 2], "i4"), "int32"),
    (np.array(1.0), "float64"),
    ([np.array([1.0, 2.0]), np.array([3.0, 4.0])], "float64"),
    (range(3), "int64"),
    (-(2**63), "int64"),
    (2**63 - 1, "int64"),
    (1e300, "float32"),
]


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@pytest.mark.parametrize(("data", "dtype"), DATA, ids=[str(k) for k in range(len(DATA))])
def test_tensor(data, dtype):
    t = ag.tensor(data)
    right = np.array(data)
    assert name(t) == dtype
    assert tuple(t.shape) == right.shape
    with np.errstate(over="ignore"):
        assert np.array_equal(array(t), right.astype(dtype))
    assert t.is_leaf
    assert not t.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_with_dtype(dtype):
    t = ag.tensor([[0, 1], [2, 3]], dtype=getattr(ag, dtype))
    assert name(t) == dtype
    assert np.array_equal(array(t), np.array([[0, 1], [2, 3]]).astype(dtype))
    assert name(ag.tensor(t.numpy(), dtype=ag.float64)) == "float64"
    assert repr(t.dtype) == str(t.dtype) == f"autograd_cy.{dtype}"
    assert (
        t.dtype is getattr(ag, dtype)
    )
    assert (
        t.dtype == getattr(ag, dtype)
    )
    assert (
        t.dtype != getattr(ag, "int64" if dtype != "int64" else "bool")
    )
    assert t.dtype.is_floating_point == dtype.startswith("float")
    assert t.dtype.itemsize == np.dtype(dtype).itemsize
    assert hash(t.dtype) == hash(getattr(ag, dtype))


def test_aliases_of_dtypes():
    assert ag.float is ag.float32
    assert ag.double is ag.float64
    assert ag.long is ag.int64
    assert ag.int is ag.int32


def test_tensor_copies():
    a = np.arange(3.0)
    t = ag.tensor(a)
    a[0] = 9.0
    assert t.tolist() == [0.0, 1.0, 2.0]
    x = leaf([1.0, 2.0])
    assert ag.as_tensor(x) is x and ag.asarray(x) is x or ag.asarray(x).data_ptr() == x.data_ptr()
    assert x.requires_grad  # pytorch/pytorch#170819
    assert name(ag.as_tensor(a, dtype=ag.float32)) == "float32"
    assert ag.as_tensor([1, 2]).tolist() == [1, 2]


def test_requires_grad_flag():
    x = ag.tensor([1.0], requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    for make in (
        lambda **k: ag.zeros(2, **k),
        lambda **k: ag.ones((2,), **k),
        lambda **k: ag.full((2,), 1.0, **k),
        lambda **k: ag.rand(2, **k),
        lambda **k: ag.randn(2, **k),
        lambda **k: ag.empty(2, **k),
        lambda **k: ag.linspace(0, 1, 3, **k),
        lambda **k: ag.eye(2, **k),
        lambda **k: ag.zeros_like(x, **k),
        lambda **k: ag.arange(3.0, **k),
    ):
        assert make(requires_grad=True).requires_grad
        assert not make().requires_grad


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_only_floats_require_grad(dtype):
    """tinygrad/tinygrad#9723."""
    dtype = getattr(ag, dtype)
    for attempt in (
        lambda: ag.tensor([1, 0], dtype=dtype, requires_grad=True),
        lambda: ag.zeros(2, dtype=dtype, requires_grad=True),
        lambda: ag.zeros(2, dtype=dtype).requires_grad_(True),
        lambda: setattr(ag.zeros(2, dtype=dtype), "requires_grad", True),
    ):
        with pytest.raises(RuntimeError, match="(?i)float"):
            attempt()
    assert not ag.zeros(2, dtype=dtype).requires_grad_(False).requires_grad


@pytest.mark.parametrize("data", [[[1, 2], [3]], [[1], 2], [[[1]], [[1, 2]]], [1, [2]], [[], [1]], [[1, 2], [3, 4, 5]]])
def test_ragged_lists(data):
    with pytest.raises(ValueError):
        ag.tensor(data)


@pytest.mark.parametrize(
    "data",
    [
        "abc",
        ["a"],
        [None],
        None,
        [1, "a"],
        {},
        object(),
        [object()],
        1 + 2j,
        [1j],
        np.array(["x"]),
        np.array([None]),
        {1: 2},
        b"ab",
        lambda: 0,
    ],
)
def test_not_numbers(data):
    with pytest.raises(TypeError):
        ag.tensor(data)


def test_numbers_out_of_range():
    with pytest.raises((OverflowError, RuntimeError, ValueError, TypeError)):
        ag.tensor(2**70)
    with pytest.raises((OverflowError, RuntimeError, ValueError)):
        ag.tensor([2**63])
    with pytest.raises((OverflowError, RuntimeError, ValueError)):
        ag.full((2,), 2**70, dtype=ag.int64)


def test_self_containing_and_deep_lists():
    loop = []
    loop.append(loop)
    with pytest.raises((ValueError, TypeError, RecursionError, RuntimeError)):
        ag.tensor(loop)
    deep = [1.0]
    for _ in range(100000):
        deep = [deep]
    with pytest.raises((ValueError, TypeError, RecursionError, RuntimeError)):
        ag.tensor(deep)
    while isinstance(deep, list):
        deep = deep.pop()


# ---------------------------------------------------------------------------------------------------------------------
# Filled tensors


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_filled(shape, dtype):
    d = getattr(ag, dtype)
    for make, value in ((ag.zeros, 0), (ag.ones, 1)):
        for t in (make(shape, dtype=d), make(list(shape), dtype=d), make(*shape, dtype=d) if shape else make((), dtype=d)):
            assert tuple(t.shape) == shape
            assert name(t) == dtype
            assert np.array_equal(array(t), np.full(shape, value, dtype))
    t = ag.full(shape, 1, dtype=d)
    assert np.array_equal(array(t), np.full(shape, 1, dtype))
    assert tuple(ag.empty(shape, dtype=d).shape) == shape
    for like, value in ((ag.zeros_like, 0), (ag.ones_like, 1)):
        assert np.array_equal(array(like(t)), np.full(shape, value, dtype))
        assert name(like(t)) == dtype
        assert name(like(t, dtype=ag.float64)) == "float64"
    assert np.array_equal(array(ag.full_like(t, 1)), array(t))
    assert ag.empty_like(t).shape == t.shape


def test_default_dtypes():
    assert [
        name(t) for t in (ag.zeros(2), ag.ones(2), ag.empty(2), ag.rand(2), ag.randn(2), ag.eye(2), ag.linspace(0, 1, 2))
    ] == ["float32"] * 7
    assert name(ag.full((2,), 1.0)) == "float32"
    assert name(ag.full((2,), 1)) == "int64"
    assert name(ag.full((2,), True)) == "bool"
    assert name(ag.arange(3)) == "int64"
    assert name(ag.arange(3.0)) == "float32"
    assert name(ag.arange(0, 1, 0.5)) == "float32"
    assert name(ag.randint(5, (2,))) == "int64"
    assert name(ag.randperm(3)) == "int64"
    assert name(ag.zeros_like(ag.tensor([1]))) == "int64"


ARANGE = [
    ((5,), [0, 1, 2, 3, 4]),
    ((2, 5), [2, 3, 4]),
    ((5, 0, -2), [5, 3, 1]),
    ((0, 1, 0.25), [0, 0.25, 0.5, 0.75]),
    ((9.7, 10), [9.7]),
    ((0, 0.5, 1), [0]),
    ((3, 3), []),
    ((0,), []),
    ((1, 2, 0.3), [1, 1.3, 1.6, 1.9]),
    ((0, -1, -0.25), [0, -0.25, -0.5, -0.75]),
    ((-2, 2), [-2, -1, 0, 1]),
]


@pytest.mark.parametrize(("args", "right"), ARANGE)
def test_arange(args, right):
    """IntelPython/dpctl#945: ceil((end - start) / step) values."""
    t = ag.arange(*args)
    close(t, np.array(right, "f8"), 1e-6, 1e-7)
    close(ag.arange(*args, dtype=ag.float64), np.arange(*args, dtype="f8"), 1e-15, 1e-16)


def test_arange_keywords_and_errors():
    assert ag.arange(start=1, end=7, step=3).tolist() == [1, 4]
    assert ag.arange(3, dtype=ag.float32).tolist() == [0.0, 1.0, 2.0]
    for bad in ((0, 1, 0), (0, 1, -1), (1, 0, 1), (0, float("inf")), (float("nan"), 1), (0, 1, float("nan"))):
        with pytest.raises((RuntimeError, ValueError, OverflowError)):
            ag.arange(*bad)


@pytest.mark.parametrize(
    ("start", "end", "steps"), [(0, 1, 5), (-1.5, 2.5, 9), (3, 3, 4), (1, 0, 3), (0, 1, 1), (0, 1, 0), (0, 1, 2), (-10, 10, 1001)]
)
def test_linspace(start, end, steps):
    t = ag.linspace(start, end, steps, dtype=ag.float64)
    right = np.linspace(start, end, steps)
    close(t, right, 1e-14, 1e-14)
    if steps > 1:
        assert t[0].item() == start
        assert t[-1].item() == end
    close(ag.linspace(start, end, steps), right, 1e-6, 1e-6)


def test_linspace_errors():
    with pytest.raises((RuntimeError, ValueError)):
        ag.linspace(0, 1, -1)


def test_eye():
    for args in ((3,), (2, 3), (3, 2), (0,), (2, 0)):
        assert np.array_equal(array(ag.eye(*args)), np.eye(*args))
    with pytest.raises((RuntimeError, ValueError)):
        ag.eye(-1)


SHAPED = [ag.zeros, ag.ones, ag.empty, ag.rand, ag.randn, lambda s: ag.full(s, 1.0)]


@pytest.mark.parametrize("k", range(len(SHAPED)))
def test_impossible_sizes(k):
    make = SHAPED[k]
    for bad in ((-1,), (2, -3), (-(2**62),)):
        with pytest.raises((RuntimeError, ValueError), match="(?i)negative|invalid|non-negative"):
            make(bad)
    for bad in ((2**62,), (2**61 + 1,), (2**63 - 1,), (2**62, 2**62), (2**40, 2**40), (2**60,), (2**63 - 1, 3), (2**31, 2**31)):
        with pytest.raises((RuntimeError, ValueError, MemoryError, OverflowError)):
            make(bad)
    for bad in ((2.5,), ("a",), (None,), (2**70,)):
        with pytest.raises((TypeError, OverflowError, RuntimeError, ValueError)):
            make(bad)
    assert tuple(make((0, 2**40)).shape) == (0, 2**40)  # empty, whatever the other sizes


def test_impossible_sizes_by_broadcasting():
    """The result of an operation may be too large, too."""
    a, b = ag.zeros(1, 1).expand(2**31, 1), ag.zeros(1, 1).expand(1, 2**31)
    with pytest.raises((RuntimeError, MemoryError, ValueError)):
        a + b
    with pytest.raises((RuntimeError, MemoryError, ValueError)):
        ag.zeros(1).expand(2**62).contiguous()
    with pytest.raises((RuntimeError, MemoryError, ValueError)):
        ag.zeros(1, 1).expand(2**30, 2**30) @ ag.zeros(1, 1).expand(2**30, 2**30)


# ---------------------------------------------------------------------------------------------------------------------
# Random numbers

RANDOM = [
    lambda: ag.rand(5),
    lambda: ag.randn(2, 3),
    lambda: ag.randint(0, 10, (5,)),
    lambda: ag.randperm(7),
    lambda: ag.rand(3, dtype=ag.float64),
    lambda: ag.rand_like(ag.zeros(4)),
    lambda: ag.randn_like(ag.zeros(4)),
]


@pytest.mark.parametrize("k", range(len(RANDOM)))
def test_seed_reproduces(k):
    ag.manual_seed(42)
    first, second = RANDOM[k](), RANDOM[k]()
    ag.manual_seed(42)
    again = RANDOM[k]()
    assert np.array_equal(array(first), array(again))
    assert not np.array_equal(array(first), array(second))
    ag.manual_seed(43)
    assert not np.array_equal(array(first), array(RANDOM[k]()))


@pytest.mark.parametrize("view", [lambda a: a[::-1], lambda a: a[1:-1:3], lambda a: a.reshape(2, -1).T[::-2], lambda a: np.lib.stride_tricks.as_strided(a, (3, 4), (0, 8))])
def test_copies_of_the_memory_behind_arrays(view):
    """Deep copies copy a storage: all of what the strides reach, and no more."""
    a = view(np.arange(100000.0))
    t = ag.from_numpy(a)
    np.testing.assert_array_equal(copy.deepcopy(t).numpy(), a)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(t)).numpy(), a)


def test_an_empty_buffer():
    assert ag.frombuffer(bytearray(), dtype=ag.float64).shape == ag.from_numpy(np.zeros(9, "u1")[1:1].view("f8")).shape == (0,)


def test_numpys_global_state_is_left_alone():
    np.random.seed(1)
    right = np.random.rand()
    np.random.seed(1)
    ag.manual_seed(5)
    ag.randn(100)
    assert np.random.rand() == right


def test_distributions():
    ag.manual_seed(0)
    u, n = array(ag.rand(200000)).astype("f8"), array(ag.randn(200000)).astype("f8")
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.004
    assert abs(u.var() - 1 / 12) < 0.002
    assert abs(n.mean()) < 0.01
    assert abs(n.std() - 1) < 0.01
    assert abs((n**3).mean()) < 0.05
    assert abs((n**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(n[:-1], n[1:])[0, 1]) < 0.01
    k = array(ag.randint(-3, 4, (70000,)))
    counts = np.bincount(k + 3, minlength=7)
    assert k.min() == -3
    assert k.max() == 3
    assert abs(counts - 10000).max() < 500
    p = array(ag.randperm(1000))
    assert np.array_equal(np.sort(p), np.arange(1000))
    assert not np.array_equal(p, np.arange(1000))
    assert ag.randperm(0).numel() == 0
    assert ag.randperm(1).tolist() == [0]
    assert array(ag.rand(1000, dtype=ag.float64)).dtype == np.float64


def test_random_errors():
    with pytest.raises((RuntimeError, ValueError)):
        ag.randint(5, 5, (2,))
    with pytest.raises((RuntimeError, ValueError)):
        ag.randperm(-1)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        ag.rand(2, dtype=ag.int64)


def test_generator():
    g = ag.Generator()
    g.manual_seed(3)
    a = ag.rand(4, generator=g)
    state = g.get_state()
    b = ag.rand(4, generator=g)
    g.set_state(state)
    assert ag.rand(4, generator=g).tolist() == b.tolist() != a.tolist()
    ag.manual_seed(1)
    c = ag.rand(4)
    ag.manual_seed(1)
    ag.rand(4, generator=g)
    assert ag.rand(4).tolist() == c.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_those_of_numpy(dtype):
    for n in (0, 1, 5, 1000):
        numbers = np.random.Generator(np.random.PCG64(7))
        g = ag.Generator(7)
        for _ in range(2):
            assert (ag.rand(n, generator=g, dtype=getattr(ag, dtype)).numpy() == numbers.random(n, dtype=dtype)).all()
            if dtype == "float64":
                assert (ag.randn(n, generator=g, dtype=ag.float64).numpy() == numbers.standard_normal(n)).all()


def test_normal_numbers_of_single_precision_are_pairs_of_the_sources_words():
    words = np.random.PCG64(7).random_raw(3000)
    u = ((words & 0xFFFFFFFF) >> 1).astype("f4") * np.float32(2.0**-31) + np.float32(2.0**-32)
    angle = (words >> 40).astype("f8") * (2 * np.pi / 2**24)
    want = np.stack([np.sqrt(-2 * np.log(u.astype("f8"))) * f(angle) for f in (np.cos, np.sin)], 1).ravel()
    for n in (0, 1, 2, 5, 2047, 2048, 2049, 5999):
        np.testing.assert_allclose(ag.randn(n, generator=ag.Generator(7)).numpy(), want[:n], 1e-5, 2e-6)


def test_in_place_random():
    x = ag.zeros(1000)
    assert x.uniform_(-1, 1) is x
    assert -1 <= x.amin().item() < -0.9
    assert 0.9 < x.amax().item() <= 1
    x.normal_(5, 0.1)
    assert abs(x.mean().item() - 5) < 0.05


# ---------------------------------------------------------------------------------------------------------------------
# Promotion

ORDER = ["bool", "uint8", "int32", "int64", "float32", "float64"]
CATEGORY = {"bool": 0, "uint8": 1, "int32": 1, "int64": 1, "float32": 2, "float64": 2}


def promoted(a, b):
    """Both with dimensions, or both without: the larger, in this order (uint8 with int32 is int32, and so on)."""
    return max(a, b, key=ORDER.index)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_promotion_of_tensors(a, b):
    x, y = ag.ones(2, dtype=getattr(ag, a)), ag.ones(2, dtype=getattr(ag, b))
    assert name(x + y) == name(x * y) == promoted(a, b)
    assert name(ag.where(ag.tensor([True, False]), x, y)) == name(ag.cat([x, y])) == promoted(a, b)
    if "bool" not in (a, b):
        assert name(x - y) == name(ag.maximum(x, y)) == promoted(a, b)
    quotient = promoted(a, b)
    assert name(x / y) == (quotient if quotient.startswith("float") else "float32")
    assert name(x == y) == "bool"
    assert name(ag.ones((), dtype=x.dtype) + ag.ones((), dtype=y.dtype)) == promoted(a, b)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_promotion_with_a_0d_tensor(a, b):
    """A 0-d tensor counts only if its category (bool, integer, float) is the higher one."""
    x, s = ag.ones(2, dtype=getattr(ag, a)), ag.ones((), dtype=getattr(ag, b))
    right = promoted(a, b) if CATEGORY[b] > CATEGORY[a] else a
    assert name(x + s) == name(s + x) == name(x * s) == right
    assert name(x[:0] + s) == right


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize(
    ("number", "category"), [(True, 0), (2, 1), (0.5, 2), (np.float64(0.5), 2), (np.int64(2), 1), (np.float32(0.5), 2)]
)
def test_promotion_with_a_number(a, number, category):
    """A Python number never widens a tensor; it changes the category only, and then to the default dtype."""
    x = ag.ones(2, dtype=getattr(ag, a))
    right = a if category <= CATEGORY[a] else ["bool", "int64", "float32"][category]
    if isinstance(number, np.generic) and category > CATEGORY[a]:
        return  # PyTorch: NumPy scalars act as Python numbers here; see test_numpy_scalars in test_python_manners
    assert name(x + number) == name(number + x) == name(x * number) == right
    assert name(ag.ones((), dtype=x.dtype) + number) == right
    if a != "bool" and category:
        assert name(number - x) == right
    assert (x + number).tolist() == [max(1, number) if right == "bool" else 1 + number] * 2


@pytest.mark.parametrize("a", ["int64", "int32", "uint8", "bool"])
def test_functions_of_integers_give_floats(a):
    x = ag.ones(2, dtype=getattr(ag, a))
    for f in ("exp", "sqrt", "sin", "tanh", "sigmoid", "log", "reciprocal", "erf"):
        assert name(getattr(ag, f)(x)) == "float32", f
    assert name(x / 2) == "float32"
    assert name(1 / x) == "float32"
    assert name(x.sum()) == "int64"
    assert name(x.prod()) == "int64"
    with pytest.raises(RuntimeError, match="(?i)float|dtype"):
        x.mean()
    if a != "bool":
        assert name(abs(x)) == name(-x if a != "uint8" else x) == name(x.square()) == name(x.clamp(0, 1)) == a
        assert name(x**2) == a
        assert name(x.floor()) == a


def test_bool_arithmetic():
    """Minus is refused as in PyTorch (and NumPy); plus is or, times is and."""
    t = ag.tensor([True, False])
    assert (t + t).tolist() == [True, False]
    assert (t * t).tolist() == [True, False]
    for f in (lambda: t - t, lambda: -t):
        with pytest.raises(RuntimeError, match="(?i)bool|logical"):
            f()
    assert (t + 1).tolist() == [2, 1]
    assert name(t + 1) == "int64"


def test_negative_integer_powers():
    with pytest.raises(RuntimeError, match="(?i)negative"):
        ag.tensor([2, 3]) ** -1
    assert (ag.tensor([2, 3]) ** 3).tolist() == [8, 27]
    assert (ag.tensor([2, 3]) ** 0.5).dtype == ag.float32


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_casts(a, b):
    values = np.array([0, 1, 2, 200]) if a != "bool" else np.array([False, True, True, False])
    x = ag.tensor(values.astype(a))
    y = x.to(getattr(ag, b))
    assert name(y) == b
    assert np.array_equal(array(y), values.astype(a).astype(b))
    assert name(x.type_as(y) if hasattr(x, "type_as") else y) == b
    short = {"float32": "float", "float64": "double", "int64": "long", "int32": "int", "bool": "bool"}.get(b)
    if short:
        assert name(getattr(x, short)()) == b
    assert (y is x) == (a == b)


def test_cast_gradient():
    x = ag.tensor([1.0, 2.0], requires_grad=True)
    y = x.double()
    (y * y).sum().backward()
    assert name(x.grad) == "float32"
    assert x.grad.tolist() == [2.0, 4.0]
    z = ag.tensor([1.0, 2.0], dtype=ag.float64, requires_grad=True)
    (x * z).sum().backward()
    assert name(z.grad) == "float64"
    assert name(x.grad) == "float32"
    assert not x.long().requires_grad


def test_float_to_integer_truncates():
    assert ag.tensor([1.9, -1.9, 0.5]).long().tolist() == [1, -1, 0]
    assert ag.tensor([0.0, -0.0, 0.5, float("nan")]).bool().tolist() == [False, False, True, True]


def test_default_dtype():
    try:
        ag.set_default_dtype(ag.float64)
        assert ag.get_default_dtype() == ag.float64
        assert name(ag.tensor([1.0])) == name(ag.zeros(1)) == name(ag.rand(1)) == name(ag.tensor([1]) * 0.5) == "float64"
    finally:
        ag.set_default_dtype(ag.float32)
    assert name(ag.tensor([1.0])) == "float32"
