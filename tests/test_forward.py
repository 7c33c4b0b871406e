"""Forward values of every sample against its NumPy or SciPy reference, in every layout and dtype.

Relies on the table of samples; nothing relies on it.
"""

import numpy as np
import pytest
from numeric import array, close
from samples import INTS, KEYS, SAMPLES, outputs, tensor_key, variants
from scipy import special

import autograd_cy as ag

CASES = [(s, d) for s in SAMPLES for d in s.dtypes]


def reference(sample, arrays):
    with np.errstate(all="ignore"):
        wide = [a.astype("f8") if a.dtype.kind in "f" else a for a in arrays]
        return [np.asarray(r) for r in outputs(sample.ref(*wide))]


@pytest.mark.parametrize(("sample", "dtype"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_forward(sample, dtype):
    rtol, atol = sample.tolerance(dtype)
    for label, arrays, tensors in variants(sample, dtype):
        if dtype in INTS:
            arrays = [np.abs(a).astype(dtype) if dtype == "uint8" else a.astype(dtype) for a in sample.arrays()]
            tensors = [ag.tensor(a) for a in arrays]
        results = outputs(sample.call(*tensors))
        expected = reference(sample, arrays)
        assert len(results) == len(expected), label
        for result, right in zip(results, expected, strict=True):
            name = str(result.dtype).split(".")[-1]
            if right.dtype.kind == "f":
                assert name == dtype, f"{label}: dtype {name}"
            else:
                same = sample.op.startswith(("bitwise", "gcd", "lcm"))      # else integers come out as int64
                assert name == (right.dtype.name if same else {"b": "bool", "i": "int64"}[right.dtype.kind]), f"{label}: dtype {name}"
            close(result, right, rtol, atol, what=f"{sample.name}, {label}")
        for a, t in zip(arrays, tensors, strict=True):
            assert np.array_equal(array(t), a), f"{label}: an input was changed"


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum"])
def test_whole_numbers(name, dtype):
    """Arithmetic of integers stays in the integers' dtype, and equals the floats' on whole numbers."""
    a = np.array([[7, 3, 0, 9, 5], [4, 4, 8, 1, 6]], dtype=dtype)
    b = np.array([2, 3, 5, 4, 1], dtype=dtype)
    result = getattr(ag, name)(ag.tensor(a), ag.tensor(b))
    right = getattr(np, {"sub": "subtract", "mul": "multiply"}.get(name, name))(a, b)
    assert str(result.dtype).split(".")[-1] == dtype
    close(result, right, 0, 0)


def test_integer_wraps_and_signs():
    """Overflow wraps as in C; // floors and % takes the divisor's sign, as in Python."""
    big = ag.tensor([2**31 - 1], dtype=ag.int32)
    assert (big + 1).tolist() == [-(2**31)]
    a, b = ag.tensor([-7, 7, -7, 7]), ag.tensor([2, -2, -2, 2])
    assert (a // b).tolist() == [-4, -4, 3, 3]
    assert (a % b).tolist() == [1, -1, -1, 1]
    f, g = ag.tensor([-7.0, 7.0, -7.0, 7.0]), ag.tensor([2.0, -2.0, -2.0, 2.0])
    assert (f // g).tolist() == [-4.0, -4.0, 3.0, 3.0]
    assert (f % g).tolist() == [1.0, -1.0, -1.0, 1.0]


def test_clamp_bounds():
    """Crossed bounds give the upper one, infinite ones nothing, NaN stays; integers stay integers."""
    x = ag.tensor([-2.0, 0.0, 2.0])
    assert x.clamp(1, -1).tolist() == [-1.0, -1.0, -1.0]
    assert x.clamp(-np.inf, np.inf).tolist() == [-2.0, 0.0, 2.0]
    assert x.clamp(max=0).tolist() == [-2.0, 0.0, 0.0]
    t = ag.tensor([-2, 0, 2]).clamp(-1, 1)
    assert t.tolist() == [-1, 0, 1]
    assert t.dtype == ag.int64
    big = 2**62 + 1
    assert ag.tensor([big, 1]).clamp(min=0).tolist() == [big, 1]


def test_large_integers_are_exact():
    """64-bit integers never pass through a float."""
    big = 2**62 + 1
    x = ag.tensor([big, -big, 3])
    assert (x + 1).tolist() == [big + 1, 1 - big, 4]
    assert (x * 1).tolist() == x.tolist()
    assert (x // 1).tolist() == x.tolist()
    assert (x % 10).tolist() == [big % 10, -big % 10, 3]
    assert x.amax().item() == big
    assert x.abs().tolist() == [big, big, 3]
    assert x.sum().item() == 3
    assert ag.tensor([3037000499]).square().item() == 3037000499**2
    assert (ag.tensor([3]) ** 39).item() == 3**39
    assert (x == big).tolist() == [True, False, False]
    assert (x > big - 1).tolist() == [True, False, False]
    assert ag.full((1,), big).item() == big
    assert x.clone()[0].item() == big
    assert ag.where(x > 0, x, 0).tolist() == [big, 0, 3]
    assert ag.arange(big, big + 2).tolist() == [big, big + 1]


def test_integer_division_by_zero_is_an_error():
    """It would be a signal (SIGFPE) in C."""
    for f in (lambda a, b: a // b, lambda a, b: a % b):
        with pytest.raises((RuntimeError, ZeroDivisionError), match="(?i)zero"):
            f(ag.tensor([1, 2]), ag.tensor([1, 0]))
    low = ag.tensor([-(2**63)])
    assert (low // -1).tolist() in ([-(2**63)], [2**63 - 1])  # must not trap


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("sum", "int64"),
        ("prod", "int64"),
        ("amax", None),
        ("amin", None),
        ("argmax", "int64"),
        ("any", "bool"),
        ("all", "bool"),
        ("max", None),
        ("min", None),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integer_reductions(name, dtypes, dtype):
    a = np.array([[1, 2, 3], [4, 1, 0]]).astype(dtype)
    t = ag.tensor(a)
    result = getattr(t, name)()
    right = getattr(np, name)(a)
    expected = dtypes or dtype
    if name in ("any", "all") and dtype == "uint8":
        expected = str(result.dtype).split(".")[-1]  # PyTorch keeps uint8 here for history's sake: either will do
    assert str(result.dtype).split(".")[-1] == expected
    assert result.item() == right
    assert getattr(t.t(), name)().item() == getattr(np, name)(a.T)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 3e38, -3e38, 1e-38, 88.0, -88.0, 104.0, -104.0, 0.5, 710.0, -745.0]
)
UNARY = [
    "exp",
    "expm1",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "square",
    "reciprocal",
    "neg",
]
NUMPY = {"abs": "absolute", "neg": "negative"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, dtype):
    """Infinities, NaN, signed zeros, subnormals and the edges of exp, as NumPy has them; long enough for every vector path."""
    with np.errstate(all="ignore"):
        x = np.tile(SPECIAL.astype(dtype), 5)
        right = getattr(np, NUMPY.get(name, name))(x.astype("f8")).astype(dtype)
    if name in ("sin", "cos", "tan"):
        x, right = x[np.abs(x) < 1e6], right[np.abs(x) < 1e6]
    if name == "sign":
        x, right = x[~np.isnan(x)], right[~np.isnan(x)]  # PyTorch has 0 there, NumPy NaN
    result = array(getattr(ag, name)(ag.tensor(x)))
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(result, right, rtol=3e-6 if dtype == "float32" else 2e-13, atol=tiny, equal_nan=True)
    zero = (right == 0) & (x == 0)
    assert np.array_equal(np.signbit(result[zero]), np.signbit(right[zero])), "the sign of zero"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_wins_reductions_and_maximum(dtype):
    x = np.ones((3, 70), dtype=dtype)
    x[1, 45] = np.nan
    t = ag.tensor(x)
    for name in ("amax", "amin", "max", "min", "sum", "mean", "prod", "var", "std", "norm"):
        assert np.isnan(getattr(t, name)().item()), name
    assert t.argmax().item() == 70 + 45
    assert t.argmin().item() == 70 + 45
    values = t.amax(dim=1).tolist()
    assert np.isnan(values[1])
    assert values[0] == values[2] == 1.0
    one, nan = ag.tensor([1.0, np.nan]), ag.tensor([np.nan, 1.0])
    assert np.isnan(array(ag.maximum(one, nan))).all()
    assert np.isnan(array(ag.minimum(one, nan))).all()
    assert np.isnan(array(ag.relu(nan)))[0]
    assert np.isnan(array(nan.clamp(0, 1)))[0]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(
    ("name", "right"), [("sum", 0.0), ("prod", 1.0), ("mean", np.nan), ("var", np.nan), ("std", np.nan), ("norm", 0.0)]
)
def test_reductions_of_nothing(name, right):
    for shape in ((0,), (2, 0), (0, 3, 0)):
        close(getattr(ag.zeros(*shape), name)(), right)
    close(getattr(ag.zeros(2, 0), name)(dim=1), np.full(2, right))
    close(getattr(ag.zeros(0, 2), name)(dim=1), np.zeros(0))


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "argmin"])
def test_extremes_of_nothing_are_errors(name):
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        getattr(ag.zeros(0), name)()
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        getattr(ag.zeros(2, 0), name)(dim=1)
    result = getattr(ag.zeros(0, 3), name)(dim=1)
    assert tuple((result[0] if isinstance(result, tuple) else result).shape) == (0,)


@pytest.mark.parametrize("label", KEYS)
@pytest.mark.parametrize("kind", ["number", "array", "tensor", "row"])
def test_index_write(label, kind):
    """x[key] = value for every key of the table, a number, an array, a tensor, or something to broadcast."""
    key = KEYS[label]
    a = np.arange(24.0).reshape(3, 4, 2)
    values = -np.arange(1.0, a[key].size + 1).reshape(a[key].shape)
    t = ag.tensor(a)
    if kind == "number":
        value, given = -5.0, -5.0
    elif kind == "row":
        value = values[..., :1] if values.ndim else values
        given = ag.tensor(value)
    else:
        value = values
        given = values if kind == "array" else ag.tensor(values)
    arrays = key if isinstance(key, tuple) else (key,)
    repeated = any(
        isinstance(k, (np.ndarray, list)) and np.asarray(k).dtype.kind == "i" and len(np.unique(np.asarray(k))) < np.size(k)
        for k in arrays
    )
    if repeated and kind != "number":
        value = np.full_like(np.asarray(value), -3.0)  # which of several writes wins is not promised
        given = value if kind == "array" else ag.tensor(value)
    a[key] = value
    t[tensor_key(key)] = given
    close(t, a, 0, 0, label)


def test_long_float32_sums_are_accurate():
    """Pairwise or blocked accumulation: a naive float32 loop would be off by 1e-5 and more."""
    rng = np.random.default_rng(0)
    x = rng.random((257, 4099)).astype("f4")
    exact = x.astype("f8")
    t = ag.tensor(x)
    close(t.sum(), exact.sum(), 3e-7, 0)
    close(t.sum(0), exact.sum(0), 2e-6, 0)
    close(t.sum(1), exact.sum(1), 1e-6, 0)
    close(t.t().sum(0), exact.sum(1), 1e-6, 0)
    close(t.mean(1), exact.mean(1), 1e-6, 0)
    close((t + 1000).var(1), exact.var(1, ddof=1), 2e-3, 0)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 1025, 4099])
def test_every_tail_length(n):
    """Vector loops end in tails: every length must give every element, and touch nothing beyond."""
    x = np.linspace(-3, 4, n).astype("f4")
    t = ag.tensor(x)
    close(ag.exp(t), np.exp(x.astype("f8")), 1e-6, 0)
    close(t + t * 2, x * 3.0, 1e-6, 0)
    close(t.sum(), x.astype("f8").sum(), 1e-5, 1e-5)
    close(t.amax(), x.max(), 0, 0)
    assert t.argmax().item() == x.argmax()
    wide = ag.zeros(n + 2)
    wide[1:-1] += t
    assert wide[0].item() == 0.0
    assert wide[-1].item() == 0.0
    close(wide[1:-1], x, 0, 0)


def test_shifts_by_any_number():
    """What leaves at an end is lost; a negative number of bits counts as a large one, as in PyTorch."""
    a = ag.tensor([5, -5, 5, -5])
    n = ag.tensor([64, 64, -1, 63])
    assert (a << n).tolist() == [0, 0, 0, -(2**63)]
    assert (a >> n).tolist() == [0, -1, 0, -1]
    byte = ag.tensor([200, 200], dtype=ag.uint8)
    assert (byte >> ag.tensor([3, 8], dtype=ag.uint8)).tolist() == [25, 0]
    assert (byte << 1).tolist() == [144, 144]
    assert (1 << ag.tensor([3])).tolist() == [8]
    a <<= 1
    assert a.tolist() == [10, -10, 10, -10]


def test_gamma_family_at_special_values():
    inf, nan = np.inf, np.nan
    for values, name, right in [
        ([0.0, -0.0, -1.0, inf, -inf, nan], "digamma", [-inf, inf, nan, inf, nan, nan]),
        ([0.0, -1.0, 1.0, 2.0, inf, -inf], "lgamma", [inf, inf, 0.0, 0.0, inf, inf]),
        ([0.0, 1.0, -1.0, 1.5, nan], "erfinv", [0.0, inf, -inf, nan, nan]),
        ([0.0, 0.5, 1.0, 2.0], "acosh", [nan, nan, 0.0, np.arccosh(2.0)]),
        ([1.0, -1.0, 1.5, -0.0], "atanh", [inf, -inf, nan, -0.0]),
        ([inf, -inf, -0.0, 1e300], "asinh", [inf, -inf, -0.0, np.arcsinh(1e300)]),
    ]:
        result = array(getattr(ag.tensor(np.asarray(values)), name)())
        close(result, np.asarray(right), 1e-14, 0)
        assert np.array_equal(np.signbit(result[result == 0]), np.signbit(np.asarray(right)[result == 0]))
    for dtype, rtol in (("float64", 2e-14), ("float32", 2e-7)):
        x = np.concatenate([np.linspace(-30.3, 30.7, 200), [1e-3, 1e3, 1e6]]).astype(dtype)
        for n in (1, 2, 3, 7):
            wide = x.astype("f8")
            whole = np.concatenate([special.polygamma(n, wide[wide > 0])])
            close(array(ag.polygamma(n, ag.tensor(x)))[wide > 0], whole.astype(dtype), rtol, 0)
        # left of 0 by the reflection psi_1(x) = pi^2 / sin^2(pi x) - psi_1(1 - x)
        left = x.astype("f8")[x < 0]
        close(array(ag.polygamma(1, ag.tensor(x)))[x < 0], ((np.pi / np.sin(np.pi * left)) ** 2 - special.polygamma(1, 1 - left)).astype(dtype), 1e-6, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 16, 1000, 3000])
def test_large_arguments_do_not_change_their_neighbours(n, dtype):
    """sin and fmod and their like take another loop where a block holds a large argument; every other element keeps its bits."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-9, 9, (2, n)).astype(dtype)
    b += np.copysign(np.asarray(0.5, dtype), b)
    big = np.asarray(2e30 if dtype == "float32" else 2e300, dtype)
    for name in ("sin", "cos", "tan", "sinc"):
        f = getattr(ag, name)
        small, a_ = f(ag.tensor(a)).numpy(), a.copy()
        a_[-1] = big
        with_large = f(ag.tensor(a_)).numpy()
        assert with_large[:-1].tobytes() == small[:-1].tobytes(), name
        np.testing.assert_allclose(small, getattr(np, name)(a.astype("f8")), 1e-5 if dtype == "float32" else 1e-12, 1e-6 if dtype == "float32" else 1e-14)
        if name != "sinc":
            np.testing.assert_allclose(with_large[-1:], getattr(np, name)(big.astype("f8")), 1e-5)
    for name, ref in (("fmod", np.fmod), ("remainder", np.remainder), ("floor_divide", np.floor_divide)):
        f, a_ = getattr(ag, name), a.copy()
        small = f(ag.tensor(a), ag.tensor(b)).numpy()
        np.testing.assert_array_equal(small, ref(a, b), err_msg=name)
        a_[-1] = big
        with_large = f(ag.tensor(a_), ag.tensor(b)).numpy()
        np.testing.assert_array_equal(with_large, ref(a_, b), err_msg=name)
        for value in (0.0, np.inf, -np.inf, np.nan):
            with np.errstate(all="ignore"):
                c = np.full(n, value, dtype)
                if name != "floor_divide":                      # PyTorch's and NumPy's differ by infinities
                    np.testing.assert_array_equal(f(ag.tensor(a), ag.tensor(c)).numpy(), ref(a, c), err_msg=f"{name} by {value}")
