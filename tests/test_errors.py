"""Bad input: the kind of exception, and that its message names the operation, the shapes and the user's line.

Relies on autograd_cy's public names and tests/numeric.py; nothing relies on it.
"""

import inspect
import math
import os
import re
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import numpy as np
import pytest
from numeric import leaf

import autograd_cy as ag

HERE = os.path.basename(__file__)


def z(*shape, dtype=None):
    return ag.zeros(shape, dtype=dtype or ag.float32)


def F(name):
    return getattr(ag.nn.functional, name)


# What takes no tensor first: functions, files, sizes, texts.
FIRST_IS_NO_TENSOR = {"cond", "while_loop", "scan", "load", "save", "compile", "vmap", "from_dlpack", "custom_op", "broadcast_shapes", "einsum",
                      "tril_indices", "triu_indices", "empty_strided", "set_cache_limit", "arange", "frombuffer", "can_cast", "promote_types",
                      "result_type", "scalar_tensor", "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"}


def functions_of_tensors():
    """(name, function) of everything public whose first argument is a tensor, or some."""
    for module, prefix in ((ag, ""), (ag.nn.functional, "nn.functional."), (ag.linalg, "linalg."), (ag.special, "special.")):
        for name in getattr(module, "__all__", None) or dir(module):
            f = getattr(module, name)
            settings = name.startswith(("_", "set_", "use_", "enable_", "inference_", "no_grad", "manual_seed", "seed", "empty_cache"))
            if callable(f) and not isinstance(f, type) and not settings and name not in FIRST_IS_NO_TENSOR:
                yield prefix + name, f


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize(("name", "f"), list(functions_of_tensors()), ids=lambda v: v if isinstance(v, str) else "")
def test_none_where_a_tensor_belongs(name, f):
    """What a function forgot to return is named by whoever gets it, not by the first attribute that is missing."""
    try:
        needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except ValueError:
        needed = [None]
    try:
        f(None, *[z(2, 2)] * (len(needed) - 1))
    except Exception as error:
        assert isinstance(error, (TypeError, ValueError, RuntimeError)), repr(error)
        assert re.match(r"[\w.]+(\(\))?:? |Given groups|expected Tensor", str(error)), str(error)
        for raw in ("has no attribute", "object is not", "unsupported operand", "has no len", "not supported between", "Cannot convert"):
            assert raw not in str(error), str(error)


BAD = [  # name, what is done, kinds of exception, what the message must match (all of them)
    ("celu by 0", lambda: ag.celu(ag.rand(3), 0), RuntimeError, ["celu", "alpha"]),
    ("bytes to a negative power", lambda: ag.tensor([3], dtype=ag.uint8) ** -1, RuntimeError, ["pow", "negative"]),
    ("places that are no integers", lambda: ag.unravel_index(ag.rand(3), (2, 3)), TypeError, ["unravel_index", "float32"]),
    ("running statistics that are no tensors", lambda: ag.batch_norm(ag.rand(3, 4), 0, 1), TypeError, ["batch_norm", "int"]),
    ("pivots that are no tensor", lambda: ag.lu_unpack(ag.rand(3, 3), 0), TypeError, ["lu_unpack", "int"]),
    ("add shapes", lambda: z(2, 3) + z(4), ValueError, ["add", r"2, 3", r"\b4\b"]),
    ("mul shapes", lambda: z(2, 3) * z(3, 2), ValueError, ["mul", r"2, 3", r"3, 2"]),
    ("maximum shapes", lambda: ag.maximum(z(2), z(3)), ValueError, ["maximum", "2", "3"]),
    ("comparison shapes", lambda: z(2) < z(3), ValueError, ["lt", "2", "3"]),
    ("where shapes", lambda: ag.where(z(2) > 0, z(3), z(3)), ValueError, ["where", "2", "3"]),
    ("where condition", lambda: ag.where(z(2), z(2), z(2)), TypeError, ["where", "bool"]),
    ("matmul shapes", lambda: z(2, 3) @ z(4, 5), ValueError, ["matmul|mat1", r"2, 3|2x3", r"4, 5|4x5"]),
    ("matmul vectors", lambda: z(3) @ z(4), ValueError, ["matmul|dot|size", "3", "4"]),
    ("matmul batches", lambda: z(2, 3, 4) @ z(5, 4, 2), ValueError, ["matmul|bmm|size", r"2", r"5"]),
    ("matmul numbers", lambda: ag.tensor(1.0) @ z(3), ValueError, ["matmul", "0|1"]),
    (
        "matmul dtypes",
        lambda: z(2, 2) @ z(2, 2, dtype=ag.float64),
        RuntimeError,
        ["matmul|dtype", "float32|Float|float", "float64|Double|double"],
    ),
    ("logits that are no tensor", lambda: F("binary_cross_entropy_with_logits")(1.0, z(2), pos_weight=z(2)), TypeError, ["binary_cross", "float"]),
    ("einsum dtypes", lambda: ag.einsum("ij,jk->ik", z(2, 2), z(2, 2, dtype=ag.float64)), RuntimeError, ["einsum", "float32", "float64"]),
    ("tensordot dtypes", lambda: ag.tensordot(z(2, 2), z(2, 2, dtype=ag.uint8)), RuntimeError, ["dtype", "float32", "uint8"]),
    ("inner dtypes", lambda: ag.inner(z(2), z(2, dtype=ag.float64)), RuntimeError, ["dtype", "float32", "float64"]),
    ("linear shapes", lambda: F("linear")(z(4, 3), z(2, 5)), ValueError, ["linear|mat1", r"4, 3|4x3", r"2, 5|5x2|5, 2"]),
    ("linear bias", lambda: F("linear")(z(4, 3), z(2, 3), z(5)), ValueError, ["linear|add|expand", "5", "2"]),
    ("reshape", lambda: z(2, 3).reshape(4, 2), ValueError, ["reshape|shape", r"4, 2", "6|2, 3"]),
    ("reshape two -1", lambda: z(2, 3).reshape(-1, -1), ValueError, ["reshape|infer", "-1|one"]),
    ("reshape negative", lambda: z(2, 3).reshape(-2, 3), ValueError, ["reshape|shape|invalid", "-2"]),
    ("reshape -1 that does not divide", lambda: z(2, 3).reshape(-1, 4), ValueError, ["reshape|shape", "4", "6|2, 3"]),
    ("solve for a number", lambda: ag.linalg.solve(z(3, 3), z()), ValueError, ["linalg.solve", r"3, 3", r"\(\)"]),
    ("frexp", lambda: ag.frexp(z(2, dtype=ag.int64)), RuntimeError, ["frexp", "int64"]),
    ("renorm", lambda: ag.renorm(z(3), 2, 0, 1.0), RuntimeError, ["renorm", "2 dim", "1"]),
    ("renorm p", lambda: ag.renorm(z(3, 2), 0, 0, 1.0), RuntimeError, ["renorm", "p above 0"]),
    ("gradient", lambda: ag.gradient(z(3, 1)), RuntimeError, ["gradient", r"3, 1", "2"]),
    ("gradient order", lambda: ag.gradient(z(3), edge_order=3), RuntimeError, ["gradient", "edge_order", "3"]),
    ("gradient spacings", lambda: ag.gradient(z(3), spacing=(1.0, 2.0)), RuntimeError, ["gradient", "spacing", "2"]),
    ("gradient coordinates", lambda: ag.gradient(z(3), spacing=[z(2)]), RuntimeError, ["gradient", "3 coordinates", "2"]),
    ("expand", lambda: z(2, 3).expand(4, 3), ValueError, ["expand", r"4, 3|4", r"2, 3|2"]),
    ("expand fewer", lambda: z(2, 3).expand(3), ValueError, ["expand", "3", r"2, 3|2"]),
    ("broadcast_to", lambda: ag.broadcast_to(z(2), (3,)), ValueError, ["broadcast_to|expand", "2", "3"]),
    ("permute count", lambda: z(2, 3).permute(0), ValueError, ["permute", "1|0|2"]),
    ("permute twice", lambda: z(2, 3).permute(0, 0), ValueError, ["permute", "0"]),
    ("permute range", lambda: z(2, 3).permute(0, 2), IndexError, ["dim", "2"]),
    ("transpose range", lambda: z(2, 3).transpose(0, 5), IndexError, ["dim", "5"]),
    ("t of 3-D", lambda: z(2, 3, 4).t(), ValueError, [r"\bt\b", "3"]),
    ("sum dim", lambda: z(2, 3).sum(2), IndexError, ["dim", "2"]),
    ("sum dim negative", lambda: z(2, 3).sum(-3), IndexError, ["dim", "-3"]),
    ("sum dim twice", lambda: z(2, 3).sum((0, 0)), ValueError, ["dim", "0"]),
    ("softmax dim", lambda: z(2, 3).softmax(2), IndexError, ["dim", "2"]),
    ("argmax dim", lambda: z(2, 3).argmax(7), IndexError, ["dim", "7"]),
    ("unsqueeze dim", lambda: z(2).unsqueeze(3), IndexError, ["dim", "3"]),
    ("cat shapes", lambda: ag.cat([z(2, 3), z(2, 4)]), ValueError, ["cat", "3", "4"]),
    ("cat dims", lambda: ag.cat([z(2, 3), z(2, 3, 1)]), ValueError, ["cat", "2", "3"]),
    ("cat of nothing", lambda: ag.cat([]), (RuntimeError, ValueError), ["cat"]),
    ("cat of numbers", lambda: ag.cat([1.0, 2.0]), TypeError, ["cat|tensor"]),
    ("cat of 0-d", lambda: ag.cat([ag.tensor(1.0), ag.tensor(2.0)]), ValueError, ["cat|zero-dim|0"]),
    ("stack shapes", lambda: ag.stack([z(2), z(3)]), ValueError, ["stack", "2", "3"]),
    ("split sizes", lambda: z(5).split([1, 2]), ValueError, ["split", "5", r"1, 2|3"]),
    ("split size 0", lambda: z(5).split(0), (RuntimeError, ValueError), ["split", "0"]),
    ("chunk 0", lambda: z(5).chunk(0), (RuntimeError, ValueError), ["chunk", "0"]),
    ("unbind 0-d", lambda: ag.tensor(1.0).unbind(), (ValueError, IndexError), ["dim|unbind"]),
    ("index range", lambda: z(2, 3)[2], IndexError, ["2"]),
    ("index range negative", lambda: z(2, 3)[:, -4], IndexError, ["-4", "3"]),
    ("index too many", lambda: z(2, 3)[0, 0, 0], IndexError, ["too many|dim", "2|3"]),
    ("index two ellipses", lambda: z(2, 3)[..., ...], IndexError, ["ellips"]),
    ("index float", lambda: z(2, 3)[1.5], (IndexError, TypeError), ["int|index"]),
    ("index float tensor", lambda: z(2, 3)[ag.tensor([1.0])], IndexError, ["long|int"]),
    ("index string", lambda: z(2, 3)["a"], (IndexError, TypeError), ["int|index|str"]),
    ("index array range", lambda: z(2, 3)[ag.tensor([0, 2])], IndexError, ["2"]),
    ("index array negative range", lambda: z(2, 3)[:, np.array([-4])], IndexError, ["-4", "3"]),
    ("index arrays that differ", lambda: z(2, 3)[ag.tensor([0, 1]), ag.tensor([0, 1, 2])], IndexError, ["2", "3"]),
    ("mask shape", lambda: z(2, 3)[ag.tensor([True, False, True])], IndexError, ["3", "2"]),
    ("slice step 0", lambda: z(5)[::0], ValueError, ["step|zero"]),
    ("write shapes", lambda: z(2, 3).__setitem__(0, z(4)), ValueError, ["3", "4"]),
    ("write by array, shapes", lambda: z(5, 2).__setitem__(ag.tensor([0, 1]), z(3, 2)), ValueError, ["2", "3"]),
    (
        "write by mask, shapes",
        lambda: z(3).__setitem__(ag.tensor([True, False, True]), z(3)),
        ValueError,
        ["2|mask|index", "3"],
    ),
    ("write range", lambda: z(2).__setitem__(2, 1.0), IndexError, ["2"]),
    ("write string", lambda: z(2).__setitem__(0, "a"), (TypeError, ValueError), [""]),
    ("delete", lambda: z(2).__delitem__(0), (TypeError, NotImplementedError), [""]),
    ("mean of integers", lambda: ag.tensor([1, 2]).mean(), RuntimeError, ["mean", "int64|Long|float"]),
    ("var of integers", lambda: ag.tensor([1, 2]).var(), RuntimeError, ["var|std", "float"]),
    ("amax of nothing", lambda: z(0).amax(), ValueError, ["amax"]),
    ("argmax of nothing", lambda: z(0).argmax(), ValueError, ["argmax"]),
    ("clamp without bounds", lambda: z(2).clamp(), (RuntimeError, ValueError, TypeError), ["clamp|min|max"]),
    ("mse shapes", lambda: F("mse_loss")(z(2), z(3)), ValueError, ["2", "3"]),
    ("bce shapes", lambda: F("binary_cross_entropy")(z(2, 1), z(2)), (RuntimeError, ValueError), ["2, 1", "2"]),
    ("bce range", lambda: F("binary_cross_entropy")(ag.tensor([1.5]), ag.tensor([1.0])), RuntimeError, ["0", "1"]),
    ("bad reduction", lambda: F("mse_loss")(z(2), z(2), reduction="total"), ValueError, ["total", "reduction|mean|sum"]),
    (
        "cross entropy, target shape",
        lambda: F("cross_entropy")(z(2, 3), ag.tensor([0, 1, 2])),
        (RuntimeError, ValueError),
        ["2", "3"],
    ),
    ("cross entropy, target range", lambda: F("cross_entropy")(z(2, 3), ag.tensor([0, 3])), (RuntimeError, IndexError), ["3"]),
    (
        "cross entropy, target negative",
        lambda: F("cross_entropy")(z(2, 3), ag.tensor([-1, 0])),
        (RuntimeError, IndexError),
        ["-1"],
    ),
    (
        "cross entropy, weight",
        lambda: F("cross_entropy")(z(2, 3), ag.tensor([0, 1]), weight=z(2)),
        ValueError,
        ["weight", "3", "2"],
    ),
    (
        "cross entropy, smoothing",
        lambda: F("cross_entropy")(z(2, 3), ag.tensor([0, 1]), label_smoothing=1.5),
        (RuntimeError, ValueError),
        ["smoothing", "1.5"],
    ),
    ("unknown keyword", lambda: z(2).sum(dims=0), TypeError, ["dims"]),
    ("dim and axis", lambda: z(2).sum(dim=0, axis=0), TypeError, ["axis|dim"]),
    ("no argument", lambda: ag.exp(), TypeError, [""]),
    ("too many arguments", lambda: ag.exp(z(1), z(1), z(1)), TypeError, [""]),
    ("not a tensor", lambda: ag.exp("a"), TypeError, ["exp", "str"]),
    ("list for tensor", lambda: ag.exp([1.0]), TypeError, ["exp", "list"]),
    ("None for tensor", lambda: ag.add(None, z(1)), TypeError, ["add", "tensor"]),
    ("None for self", lambda: ag.Tensor.backward(None), TypeError, ["backward", "Tensor"]),
    ("None among outputs", lambda: ag.autograd.backward([z(), None]), (RuntimeError, TypeError), ["backward"]),
    ("None for self in place", lambda: ag.Tensor.gcd_(None, 2), TypeError, ["gcd_", "Tensor"]),
    ("item", lambda: z(2).item(), (RuntimeError, ValueError), ["item|element|scalar", "2"]),
    ("dtype", lambda: ag.zeros(2, dtype="float23"), TypeError, ["dtype"]),
    ("dtype of another library", lambda: z(2).to(np.complex128), TypeError, [""]),
    ("seed", lambda: ag.manual_seed("a"), (TypeError, ValueError, RuntimeError), [""]),
    ("backward of vector", lambda: (leaf([1.0, 2.0]) * 2).backward(), RuntimeError, ["scalar|one element", r"\(2,\)"]),
    ("backward gradient shape", lambda: (leaf([1.0, 2.0]) * 2).backward(z(3)), RuntimeError, ["3", "2"]),
    ("backward gradient type", lambda: (leaf([1.0, 2.0]) * 2).backward("a"), TypeError, ["tensor|str"]),
    ("backward of integers", lambda: ag.tensor(1).backward(), RuntimeError, ["grad"]),
    ("grad outputs", lambda: ag.autograd.grad(3.0, leaf(1.0)), (TypeError, AttributeError, RuntimeError), [""]),
    ("grad inputs empty", lambda: ag.autograd.grad(leaf(1.0) * 2, []), (RuntimeError, ValueError), [""]),
    ("grad_outputs count", lambda: ag.autograd.grad([leaf(1.0) * 2], leaf(1.0), grad_outputs=[z(), z()]), ValueError, [""]),
]


@pytest.mark.filterwarnings("ignore:mse_loss")
@pytest.mark.parametrize(("name", "attempt", "kinds", "words"), BAD, ids=[b[0] for b in BAD])
def test_bad_input(name, attempt, kinds, words):
    with pytest.raises(kinds) as error:
        attempt()
    for word in words:
        assert re.search(word, str(error.value), re.I), f"{word!r} not in: {error.value}"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_sizes_that_are_not_finite(value):
    for f in (
        lambda: ag.zeros(value),
        lambda: z(6).reshape(value),
        lambda: z(1).expand(value),
        lambda: ag.linspace(0, 1, value),
        lambda: z(3)[value],
    ):
        with pytest.raises((TypeError, ValueError, OverflowError, IndexError, RuntimeError)):
            f()


def line_of(marker):
    with open(__file__) as f:
        return next(k for k, text in enumerate(f, 1) if text.rstrip().endswith("# " + marker))


def test_second_backward_names_the_line():
    x = leaf([1.0, 2.0])
    y = x.exp().sum()  # the spent graph
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph") as error:
        y.backward()
    assert re.search(rf"{HERE}\D+{line_of('the spent graph')}\b", str(error.value)), str(error.value)


def test_depth_error_names_the_engine():
    y = leaf(1.0)
    for _ in range(200_000):
        y = -y
    with pytest.raises(RecursionError) as error:
        y.backward(engine="recursive")
    assert "iterative" in str(error.value)


def test_integer_gradient_request():
    with pytest.raises(RuntimeError) as error:
        ag.tensor([1, 2]).requires_grad_()
    assert "int64" in str(error.value)
    assert "float" in str(error.value)


@pytest.mark.filterwarnings("ignore:mse_loss")
def test_every_error_leaves_things_usable():
    x = leaf([1.0, 2.0])
    for _, attempt, kinds, _ in BAD:
        with pytest.raises(kinds):
            attempt()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


CRASHES = [  # each in a process of its own: an exception, never a signal
    "ag.Tensor.dim({})",
    "ag.Tensor.stride(None)",
    "ag.Tensor.__getitem__(3, 0)",
    "ag.Tensor.backward(None)",
    "ag.zeros(3).prod(dtype=-1)",
    "ag.zeros(3).sum(dtype=99)",
    "ag.zeros(3).to(99)",
    "ag.tensor([1, 2], dtype=77)",
    "ag.ones(2**62)",
    "ag.zeros(1, 1).expand(2**31, 1) + ag.zeros(1, 1).expand(1, 2**31)",
    "ag.zeros(1).expand(2**62).contiguous()",
    "ag.zeros(1, 1).expand(2**30, 2**30) @ ag.zeros(1, 1).expand(2**30, 2**30)",
    "ag.arange(2**62)",
    "ag.randperm(2**62)",
    "ag.eye(2**40)",
    "ag.cat([ag.zeros(1).expand(2**62)] * 3)",
    "ag.zeros(0).expand(2**40, 0).sum(0).reshape(2**70)",
    "ag.zeros(1).expand(2**62)[ag.zeros(2**20, dtype=ag.int64).unsqueeze(1).expand(2**20, 2**43)]",
    "ag.Tensor.__new__(ag.Tensor).item()",
    "repr(ag.Tensor.__new__(ag.Tensor))",
    "ag.Tensor.__new__(ag.Tensor) + 1",
    "type(ag.ones(1, requires_grad=True).exp().grad_fn)().next_functions",
    "type(ag.ones(1, requires_grad=True).exp().grad_fn).__new__(type(ag.ones(1, requires_grad=True).exp().grad_fn))",
    "type(ag.ones(1).untyped_storage())().data_ptr()",
    "ag.engine.tensor.put_into_type([], len)",
    "ag.graph.places.read_class('a', 'a')",
    "ag.engine.random.draw(ag.zeros(2**20, dtype=ag.uint8), 'random', None)",
    "ag.engine.random.draw(ag.zeros(1).expand(2**40), 'random', None)",
    "ag.graph.links.dependencies([None], 0)",
    "ag.graph.links.attach([None], [None], None)",
    "ag.graph.replay.Signature([None])",
    "ag.graph.watch.Watch().class_name(3)",
    "ag.engine.shape.slice_axes(ag.ones(2), (0, None))",
    "ag.zeros(2).__setstate__(())",
    "ag.zeros(2).__class__.__reduce_ex__(ag.zeros(2), 99)",
]


@pytest.mark.parametrize("expression", CRASHES)
def test_refused_without_a_crash(expression):
    code = f"""
import autograd_cy as ag
try:
    {expression}
except (SystemError, AssertionError):
    raise
except Exception:
    pass
"""
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-600:]


WRONG_SELF = """
import importlib, types
import autograd_cy as ag
import autograd_cy.graph, autograd_cy.nn

classes = set()
for name in list(ag._libraries._where):
    classes |= {c for c in vars(importlib.import_module(name)).values() if isinstance(c, type) and c.__module__ in ag._libraries._where}
calls = 0
for cls in sorted(classes, key=lambda c: c.__name__):
    for name, f in list(vars(cls).items()):
        f = getattr(f, "__get__", None) if isinstance(f, (types.GetSetDescriptorType, types.MemberDescriptorType)) else f
        if callable(f) and not isinstance(f, type):
            for wrong in (None, 3, object(), [], ag.ones(1)):
                for more in range(5):
                    print(cls, name, wrong, more)
                    calls += 1
                    try:
                        f(wrong, *[None] * more)
                    except SystemError:
                        raise
                    except Exception:
                        pass
assert calls > 3000
print("survived")
"""


def test_methods_with_a_wrong_self():
    """Of every class of the compiled modules; what was called last is in the output."""
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-u", "-c", WRONG_SELF], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-200:] + run.stderr[-600:]
    assert run.stdout.endswith("survived\n")


HOSTILE = """
import gc, warnings
import numpy as np
import autograd_cy as ag

nan, inf = float("nan"), float("inf")
junk = [
    None, True, -1, 0, 1, 2, 3.5, nan, inf, 2 ** 62, -(2 ** 63), 2 ** 80,
    "a", b"b", (), [], (1, 2), [[1], [2, 3]], {}, object(), int,
    ag.tensor(1.0), ag.tensor([1.0, 2.0]), ag.zeros(0), ag.zeros(2, 3), ag.tensor([0, 1]), ag.tensor([True, False]),
    ag.zeros(1).expand(5), ag.tensor([3, -9]), ag.tensor([1.0, 2.0], requires_grad=True), np.arange(3), np.zeros((2, 3)),
    slice(None), slice(0, 5, -1), Ellipsis, ag.float32, ag.int64,
]
skip = {"set_num_threads", "set_default_dtype", "set_engine", "set_grad_enabled", "set_record_lines", "set_cache_limit",
        "save", "load"}
rng = np.random.default_rng(SEED)
warnings.simplefilter("ignore")


def names(where):
    public = [n for n in dir(where) if not n.startswith("_") and n not in skip]
    return [n for n in public if callable(getattr(where, n)) and not isinstance(getattr(where, n), type)]


functions, methods = names(ag), names(ag.Tensor)
special = ["getitem", "setitem", "add", "matmul", "pow", "iadd", "rsub", "eq", "lt", "and", "len", "iter", "bool", "index",
           "reversed", "contains", "array", "format", "deepcopy", "setstate"]
methods += [f"__{n}__" for n in special if hasattr(ag.Tensor, f"__{n}__")] * 3
keywords = ["dim", "axis", "keepdim", "dtype", "requires_grad", "p", "correction", "gradient", "inputs", "min", "max", "size",
            "nonsense"]
tensors = [j for j in junk if isinstance(j, ag.Tensor)]


def pick(pool):
    return pool[rng.integers(len(pool))]


for _ in range(6000):
    if rng.random() < 0.5:
        f = getattr(ag, pick(functions))
        args = [pick(junk) for _ in range(rng.integers(0, 4))]
    else:
        f = getattr(ag.Tensor, pick(methods))
        own = pick(tensors) if rng.random() < 0.95 else pick(junk)
        if isinstance(own, ag.Tensor) and rng.random() < 0.5:
            own = own.clone()
        args = [own] + [pick(junk) for _ in range(rng.integers(0, 3))]
    attributes = {pick(keywords): pick(junk) for _ in range(rng.integers(0, 2))}
    try:
        r = f(*args, **attributes)
        for t in (r if isinstance(r, (tuple, list)) else [r])[:3]:
            if isinstance(t, ag.Tensor) and t.numel() < 10 ** 6:
                repr(t), t.tolist(), t.contiguous()
                if t.requires_grad:
                    t.sum().backward()
    except (SystemError, KeyboardInterrupt):
        raise
    except Exception:
        pass
    if not ag.is_grad_enabled():
        ag.set_grad_enabled(True)
gc.collect()
x = ag.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2.0, 4.0]
print("survived")
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_input_crashes_the_interpreter(seed):
    """Thousands of calls with nonsense: any Python exception will do, a crash or a SystemError will not."""
    code = HOSTILE.replace("SEED", str(seed))
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip().endswith("survived")


@pytest.mark.parametrize(("call", "kinds"), [
    (lambda x: x.gather(1, ag.tensor([[9], [0]])), (IndexError, RuntimeError)), (lambda x: x.scatter(0, ag.tensor([[9]]), 1.0), (IndexError, RuntimeError)),
    (lambda x: x.index_select(0, ag.tensor([5])), (IndexError, RuntimeError)), (lambda x: x.narrow(0, 1, 5), (IndexError, RuntimeError)),
    (lambda x: ag.arange(0, 1, 0), (ValueError, RuntimeError)), (lambda x: ag.linspace(0, 1, -1), (ValueError, RuntimeError)),
    (lambda x: ag.randint(5, 2, (2,)), (ValueError, RuntimeError)), (lambda x: x.clamp(), (ValueError, RuntimeError)),
    (lambda x: float(x), (ValueError, RuntimeError)), (lambda x: x.item(), (ValueError, RuntimeError)),
    (lambda x: ag.tensor([None]), (TypeError, RuntimeError)), (lambda x: ag.nn.functional.embedding(x, x), (TypeError, RuntimeError)),
    (lambda x: ag.div(x, x, rounding_mode="up"), (ValueError, RuntimeError)), (lambda x: ag.linalg.qr(x, "all"), (ValueError, RuntimeError)),
])   # fmt: skip
def test_errors_of_two_kinds(call, kinds):
    """What PyTorch raises as RuntimeError and NumPy as something else is both."""
    for kind in kinds:
        with pytest.raises(kind):
            call(ag.ones(2, 3))


@pytest.mark.parametrize("attempt", [
    lambda: ag.zeros(2, 3) @ ag.zeros(2, 3),
    lambda: ag.cat([1, 2]),
    lambda: ag.zeros(2).reshape(3),
    lambda: ag.einsum("ij,k", 3),
    lambda: ag.zeros(2).backward(),
    lambda: ag.zeros(2).mean(4),
])
def test_tracebacks_name_the_sources(attempt):
    """The package's own frames, too: files as they lie in the source tree, and lines of these (several files make one module)."""
    with pytest.raises(Exception) as caught:
        attempt()
    frames = [frame for frame in traceback.extract_tb(caught.tb) if frame.filename.endswith(".pyx")]
    sources = Path(__file__).parents[1]
    assert frames
    for frame in frames:
        assert frame.filename.startswith("autograd_cy/")
        if (sources / frame.filename).exists():
            lines = (sources / frame.filename).read_text().splitlines()[:frame.lineno]
            assert any(re.match(rf" *(cpdef|cdef|def) .*\b{frame.name.rpartition('.')[2]}\(", line) for line in lines)
            assert "raise" in lines[-1] if frame is frames[-1] else "(" in lines[-1]
