"""Every row's samples compiled: results and gradients of replays byte for byte those of eager code, for all dtypes and layouts.

Relies on tests/samples.py and tests/numeric.py; nothing relies on it. By default two layouts per sample; `-m slow` runs them all.
"""

import zlib

import numpy as np
import pytest
from numeric import same_bytes
from samples import DOMAINS, FLOATS, INTEGERS, KEYS, LAYOUTS, SAMPLES, as_broadcast, as_contiguous, outputs, tensor_key

import autograd_cy as ag
from autograd_cy.array.errors import CaptureError

CALLS = 5                # two are captured, three replayed: once per kind of incoming gradient
EMPTY_AND_SMALL = ((), (0,), (2, 0, 3), (1,), (1, 1, 7), (3, 1, 2, 5))


def forms(sample):
    """(label, how arrays become tensors, shapes instead of the sample's own) for every layout and size that the sample allows."""
    for label, make in LAYOUTS.items():
        yield label, make, None
    if all(shape and shape[0] > 1 for shape, _ in sample.inputs) and sample.op != "cross_entropy":
        yield "broadcast", as_broadcast, None
    if sample.elementwise:
        for shape in EMPTY_AND_SMALL:
            yield f"shape {shape}", as_contiguous, [shape] * len(sample.inputs)


def fresh(sample, dtype, call, shapes):
    """Arrays that differ from call to call."""
    rng, made = np.random.default_rng(zlib.crc32(sample.name.encode()) + call), []
    for k, (shape, domain) in enumerate(sample.inputs):
        a = np.asarray(DOMAINS[domain](rng, shape if shapes is None else shapes[k]))
        made.append(a.astype(dtype) if a.dtype.kind == "f" else a)
    return made


def seeds_for(results, call):
    """Gradients that come in: laid out row by row, column by column, or as sums make them (expanded)."""
    rng, made = np.random.default_rng(call), []
    for t in results:
        shape = tuple(t.shape)
        if call % 3 == 0:
            made.append(ag.tensor(rng.normal(size=shape)).to(t.dtype))
        elif call % 3 == 1:
            made.append(ag.tensor(rng.normal(size=shape[::-1])).to(t.dtype).permute(*reversed(range(len(shape)))))
        else:
            made.append(ag.tensor(rng.normal()).to(t.dtype).expand(*shape))
    return made


def compare(function, compiled, inputs, flags, call, label):
    """One call of each on tensors made by `inputs`, and its gradients."""
    sides = []
    for run in (compiled, function):
        given = inputs()
        for t, flag in zip(given, flags):
            if flag:
                t.requires_grad_()
        results = outputs(run(*given))
        differentiable, leaves = [t for t in results if t.requires_grad], [t for t in given if t.requires_grad]
        gradients = ag.autograd.grad(differentiable, leaves, seeds_for(differentiable, call), allow_unused=True) if differentiable else ()
        sides.append((results, gradients))
    (results, gradients), (expected, its) = sides
    assert len(results) == len(expected)
    for k, (one, other) in enumerate(zip(results, expected)):
        assert same_bytes(one, other), f"{label}, call {call}: result {k} is {one}, eager {other}"
        assert one.stride() == other.stride() and one.requires_grad == other.requires_grad, f"{label}, call {call}: result {k}"
    for k, (one, other) in enumerate(zip(gradients, its, strict=True)):
        assert same_bytes(one, other), f"{label}, call {call}: gradient {k} is {one}, eager {other}"


def without_views(function):
    """The function, with its results cloned: a view of an argument that needs gradients is refused as a result."""
    return lambda *inputs: tuple(t.clone() for t in outputs(function(*inputs)))


def check(sample, chosen, dtypes):
    function = lambda *inputs: sample.call(*inputs)
    for dtype in dtypes:
        flags = sample.differentiable() if dtype in FLOATS else (False,) * len(sample.inputs)
        for label, make, shapes in chosen:
            compiled = ag.compile(function)
            try:
                compare(function, compiled, lambda: [make(a) for a in fresh(sample, dtype, 0, shapes)], flags, 0, f"{dtype}, {label}")
            except CaptureError as error:
                assert "return a clone()" in str(error)
                function = without_views(function)
                compiled = ag.compile(function)
            for call in range(CALLS):
                compare(function, compiled, lambda: [make(a) for a in fresh(sample, dtype, call, shapes)], flags, call, f"{dtype}, {label}")


READ_VALUES = ("index[masked_select]", "repeat_interleave[arranged 16]")


def makes_tensors_of_arrays(sample):
    """Samples whose index arrays become tensors inside of the call: refused, and tried below with indices from outside. And those whose
    shapes depend on values."""
    return sample.op in ("unique", "unique_consecutive", "argwhere") or sample.name in READ_VALUES or sample.op in ("index", "gather") and any(
        isinstance(k, np.ndarray) for key in sample.call.__defaults__ or () for k in (key if isinstance(key, tuple) else (key,)))


ROWS = [s for s in SAMPLES if not makes_tensors_of_arrays(s)]


@pytest.mark.parametrize("sample", ROWS, ids=lambda s: s.name)
def test_rows(sample):
    """The plain layout, and for one dtype one more that depends on the name."""
    (first, *others), number = forms(sample), zlib.crc32(sample.name.encode())
    check(sample, [first], sample.dtypes)
    check(sample, [others[number % len(others)]], [sample.dtypes[number // 7 % len(sample.dtypes)]])


@pytest.mark.slow
@pytest.mark.parametrize("sample", ROWS, ids=lambda s: s.name)
def test_rows_in_every_layout(sample):
    check(sample, list(forms(sample)), sample.dtypes)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if makes_tensors_of_arrays(s)], ids=lambda s: s.name)
def test_arrays_inside_are_refused(sample):
    """What tensor() copies from an array is not seen by a replay."""
    with pytest.raises(CaptureError, match="array|reads|value|unique|nonzero"):
        ag.compile(lambda *inputs: sample.call(*inputs))(*map(ag.tensor, sample.arrays()))


def reads_mask(key):
    return any(isinstance(k, np.ndarray) and k.dtype == bool for k in (key if isinstance(key, tuple) else (key,)))


@pytest.mark.parametrize("label", KEYS)
def test_indexing_with_tensors_from_outside(label):
    """Integers are read at every replay; how many rows a mask picks is a value, so that masks are refused."""
    key = tensor_key(KEYS[label])
    function = lambda x: x[key].clone()
    if reads_mask(KEYS[label]):
        with pytest.raises(CaptureError, match="mask|nonzero|value"):
            ag.compile(function)(ag.rand(3, 4, 2))
        return
    for make in LAYOUTS.values():
        compiled = ag.compile(function)
        for call in range(CALLS):
            values = np.random.default_rng(call).normal(size=(3, 4, 2))
            compare(function, compiled, lambda: [make(values)], (True,), call, label)


@pytest.mark.parametrize("label", [k for k, key in KEYS.items() if isinstance(key, np.ndarray) and key.dtype.kind == "i"])
def test_indexing_with_arguments(label):
    """Other indices at every call."""
    for function in (lambda x, i: x[i], lambda x, i: x[:, i, 0], lambda x, i: x[i, i], lambda x, i: x[i].sum(), lambda x, i: x[i] * x[0, 0], lambda x, i: x[1, i]):
        compiled = ag.compile(function)
        for call in range(CALLS):
            rng = np.random.default_rng(call)
            arrays = rng.normal(size=(3, 4, 2)), rng.integers(-3, 3, KEYS[label].shape)
            compare(function, compiled, lambda: list(map(ag.tensor, arrays)), (True, False), call, label)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather(dim):
    function = lambda x, i: x.gather(dim, i)
    compiled = ag.compile(function)
    for call in range(CALLS):
        rng = np.random.default_rng(call)
        arrays = rng.normal(size=(3, 4)), rng.integers(0, 3, (3, 2))
        compare(function, compiled, lambda: list(map(ag.tensor, arrays)), (True, False), call, f"dim {dim}")


IN_PLACE = [s for s in SAMPLES if s.elementwise and s.name == s.op and hasattr(ag.Tensor, f"{s.op}_") and s.op != "where"]


@pytest.mark.parametrize("sample", IN_PLACE, ids=lambda s: f"{s.name}_")
def test_in_place(sample):
    """The row over a copy of its first input, and over a half of it."""
    numbers = {"clamp": (-0.5, 1.0), "threshold": (0.5, 20.0), "polygamma": (2,)}.get(sample.op, ())
    run = lambda x, *others: getattr(x, f"{sample.op}_")(*others, *numbers)

    def half(x, *others):
        x = x.clone()
        run(x[1:], *[o[1:] for o in others])
        return x
    for called in (lambda x, *others: run(x.clone(), *others), half):
        for dtype in sample.dtypes:
            flags = sample.differentiable() if dtype in FLOATS else (False,) * len(sample.inputs)
            try:
                called(*[ag.tensor(a) for a in fresh(sample, dtype, 0, None)])
            except RuntimeError:                  # a comparison's result does not fit into numbers
                continue
            for label, make in (("contiguous", as_contiguous), ("transposed", LAYOUTS["transposed"])):
                compiled = ag.compile(called)
                for call in range(CALLS):
                    compare(called, compiled, lambda: [make(a) for a in fresh(sample, dtype, call, None)], flags, call, f"{dtype}, {label}")


ARITHMETIC = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "floor": lambda a, b: a // 3,
    "remainder": lambda a, b: a % 4, "power": lambda a, b: a ** 2 + b ** 3, "maximum": lambda a, b: ag.maximum(a, b),
    "minimum": lambda a, b: ag.minimum(a, b), "where": lambda a, b: ag.where(a > b, a, b), "neg": lambda a, b: -a, "abs": lambda a, b: abs(a),
    "sum": lambda a, b: a.sum(0), "prod": lambda a, b: a.prod(1), "mean": lambda a, b: a.float().mean(), "amax": lambda a, b: a.amax(1),
    "max": lambda a, b: a.max(0), "argmin": lambda a, b: a.argmin(0), "matmul": lambda a, b: a @ b.T, "clamp": lambda a, b: a.clamp(1, 3),
    "exp": lambda a, b: a.exp(), "mixed": lambda a, b: a + b.double(), "numbers": lambda a, b: a * 2.5 + 1, "to": lambda a, b: a.to(ag.uint8),
    "cat": lambda a, b: ag.cat([a, b]), "index": lambda a, b: a[b[:, 0] % 3], "in place": lambda a, b: a.clone().mul_(b).add_(2),
    "cumulated": lambda a, b: (a & b) | (a ^ 3), "shift": lambda a, b: a * 4 - b,
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_whole_numbers(name):
    """Rows on integers: the same bytes, or the same error."""
    function = ARITHMETIC[name]
    for dtype in INTEGERS:
        for make in LAYOUTS.values():
            compiled = ag.compile(function)
            for call in range(CALLS):
                rng = np.random.default_rng(call)
                inputs = lambda rng=rng: [make(rng.integers(1, 6, (3, 4)).astype(dtype)) for _ in range(2)]
                arrays = inputs()
                try:
                    function(*arrays)
                except (RuntimeError, TypeError) as error:
                    with pytest.raises(type(error)):
                        compiled(*arrays)
                    break
                compare(function, compiled, lambda: arrays, (False, False), call, f"{dtype}")


READERS = {
    "item": lambda x: x.sum().item(), "tolist": lambda x: x.tolist(), "float": lambda x: float(x[0, 0]), "int": lambda x: int(x[0, 0]),
    "bool": lambda x: bool(x[0, 0] > 0), "numpy": lambda x: x.detach().numpy(), "array": lambda x: np.array(x.detach()),
    "nonzero": lambda x: x.nonzero(), "mask": lambda x: x[x > 0], "equal": lambda x: ag.equal(x, x), "allclose": lambda x: ag.allclose(x, x),
    "where": lambda x: ag.where(x > 0), "masked_select": lambda x: ag.masked_select(x, x > 0), "unique": lambda x: ag.unique(x),
    "str": lambda x: str(x), "repr": lambda x: repr(x), "in": lambda x: 1.0 in x, "round": lambda x: round(x[0, 0].item()),
    "is_nonzero": lambda x: ag.is_nonzero(x[0, 0]), "bincount": lambda x: ag.bincount(x[0].long()),
    "repeat_interleave": lambda x: ag.repeat_interleave(x[0], x[0].long()), "written": lambda x: x.clone().__setitem__(x > 0, x[x > 0]),
}


@pytest.mark.parametrize("name", READERS)
def test_rows_that_read_values_are_refused(name):
    x = ag.rand(2, 3) + 1
    try:
        READERS[name](x)
    except AttributeError:
        pytest.skip("there is no such operation")
    with pytest.raises(CaptureError):
        ag.compile(READERS[name])(x)
