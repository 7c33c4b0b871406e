"""The table of operations against samples and documentation, its rules against its loops, one instruction set against another.

Relies on autograd_cy.ops (the table), the table of samples and tests/numeric.py; nothing relies on it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numeric import same_bytes
from samples import SAMPLES, outputs

import autograd_cy as ag
from autograd_cy.ops import LOOP_IDS, TABLE

# Rows that users reach under other names: row -> the samples' operation, or the test that covers it.
REACHED_BY = {
    "trigamma": "polygamma",
    "gamma_density": "gammainc",
    "normal_cdf": "gelu",
    "permute": "transpose",
    "slice": "index",
    "concatenate": "cat",
    "pieces": "split",
    "convert": "to",
    "sum_to": "expand",
    "unslice": "index",
    "index_back": "index",
    "put": "gather",
    "as_strided": "test_inplace.py",
    "as_strided_back": "test_inplace.py",
    "fill_strided": "test_inplace.py",
    "replace_strided": "test_inplace.py",
    "index_put": "test_inplace.py",
    "index_fill": "test_inplace.py",
    "copy": "test_inplace.py",
    "cofactor": "det",
    "logabsdet": "slogdet",
    "band": "cholesky",
    "recurrence": "cumprod",
    "median_of_all": "median",
    "captured": "test_compiled_functions.py",
    "custom": "test_custom_functions.py",
    "convolution_weight": "convolution",
    "put_planes": "max_pool",
    "sampled_input": "sampled",
    "sampled_weight": "sampled",
    "take_planes": "max_pool",
    "average_windows_back": "average_windows",
    "resample_back": "resample",
}
# Samples of names that are compositions of rows.
COMPOSED = {
    "tile",
    "rot90",
    "unflatten",
    "tensor_split",
    "block_diag",
    "hstack",
    "column_stack",
    "t",
    "transpose",
    "swapaxes",
    "movedim",
    "view",
    "squeeze",
    "unsqueeze",
    "broadcast_to",
    "flatten",
    "contiguous",
    "to",
    "split",
    "chunk",
    "cat",
    "isclose",
    "diff",
    "msort",
    "argsort",
    "count_nonzero",
    "aminmax",
    "var_mean",
    "std_mean",
    "unique",
    "unique_consecutive",
    "histc",
    "histogram",
    "searchsorted",
    "bucketize",
    "isin",
    "argwhere",
    "ldexp",
    *("matrix_norm", "matrix_power", "slogdet", "bmm", "mv", "dot", "outer", "addmm", "tensordot", "einsum"),
    "multigammaln",
    "float_power",
    *("angle", "frexp", "renorm", "gradient"),
    "rsub",
    "gcd",
    "lcm",
}
SAMPLED = {s.op for s in SAMPLES}
ELEMENTWISE = [r for r in TABLE.values() if r.kind == "elementwise"]


@pytest.mark.parametrize("name", TABLE)
def test_row_has_a_sample(name):
    here = Path(__file__).parent
    reached = REACHED_BY.get(name, name)
    assert reached in SAMPLED or (reached.endswith(".py") and (here / reached).exists()), f"row {name!r} has no sample"


@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_sample_has_a_row(name):
    assert name in TABLE or name in COMPOSED, f"samples of {name!r} have no row"


def test_lists_of_exceptions_are_not_stale():
    assert set(REACHED_BY) <= set(TABLE)
    assert COMPOSED <= SAMPLED


@pytest.mark.parametrize("name", TABLE)
def test_row_is_documented(name):
    row = TABLE[name]
    assert row.doc.strip()
    assert "\n" not in row.doc
    assert len(row.doc) < 120
    for rule in row.rules:
        known = {"g", "gs", "gys", "ys", "y", *row.inputs, *row.attrs, *row.aux, *(f"{i}_shape" for i in row.inputs)}
        assert set(row.parameters(rule)) <= known
        assert row.parameters(rule)[0] in ("g", "gs", "gys")


@pytest.mark.parametrize("name", TABLE)
def test_elementwise_row_has_its_loops(name):
    row = TABLE[name]
    expected = {name, *(f"{name}.d{i}" for i in row.rules)} if row.kind == "elementwise" else set()
    assert {k for k in LOOP_IDS if k.split(".")[0] == name} == expected


def test_differentiable_samples_have_rules():
    for s in SAMPLES:
        if s.op in TABLE and any(s.differentiable()):
            assert TABLE[s.op].rules, s.name


def run(sample, dtype, shapes, record):
    """Results and gradients of one sample."""
    tensors = [ag.tensor(a) for a in sample.arrays(dtype, shapes)]
    leaves = [t.requires_grad_(True) for t, flag in zip(tensors, sample.differentiable(), strict=True) if flag]
    outs = [o for o in outputs(sample.call(*tensors)) if o.requires_grad]
    seeds = [ag.tensor(np.linspace(0.5, 1.5, o.numel()).astype(dtype).reshape(o.shape)) for o in outs]
    return outs, ag.autograd.grad(outs, leaves, seeds, create_graph=record) if outs else ()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if any(s.differentiable()) and "float32" in s.dtypes], ids=lambda s: s.name
)
def test_loop_equals_rule(sample, dtype):
    """The generated loop of a derivative and the same rule run on tensors give the same bytes.

    A kernel row's rule is other arithmetic than its kernel where that saves work: cross entropy agrees to a few ULP, norms do
    in proportion to the largest gradient.
    """
    shapes = [(3, 37)] * len(sample.inputs) if sample.elementwise else None
    loops, rules = run(sample, dtype, shapes, False)[1], run(sample, dtype, shapes, True)[1]
    for a, b in zip(loops, rules, strict=True):
        if sample.op in ("cross_entropy", "nll_loss"):
            eps = np.finfo(dtype).eps
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 8 * eps, 4 * eps, err_msg=sample.name)
            continue
        if sample.op in ("normalize_rows", "normalize_channels", "scale_channels", "cdist", "pdist"):
            eps = 64 * np.finfo(dtype).eps
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), eps, eps, err_msg=sample.name)
            continue
        assert same_bytes(a, b), f"{sample.name}: largest difference {np.abs(a.detach().numpy() - b.detach().numpy()).max()}"


FORWARD = [
    s
    for s in SAMPLES
    if s.elementwise
    and s.name in TABLE
    and TABLE[s.name].kind == "elementwise"
    and not TABLE[s.name].attrs
    and s.dtypes[0] == "float32"
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sample", FORWARD, ids=lambda s: s.name)
def test_loop_equals_formula(sample, dtype):
    """The forward loop and the formula of the row evaluated on tensors give the same bytes."""
    tensors = [ag.tensor(a) for a in sample.arrays(dtype, [(3, 37)] * len(sample.inputs))]
    assert same_bytes(sample.call(*tensors), TABLE[sample.name].forward(*tensors))


LEVEL_SCRIPT = """
import hashlib, sys
sys.path.insert(0, TESTS)
import numpy as np
from samples import PRODUCTS, SAMPLES, outputs
from test_table import run
import autograd_cy as ag
for s in SAMPLES:
    if s.op in PRODUCTS or s.op in ("convolution", "convolution_input") or "float32" not in s.dtypes:
        continue
    h = hashlib.sha256()
    for dtype in ("float32", "float64"):
        for shapes in ([None] if not s.elementwise else [[(5, 67)] * len(s.inputs), [(9,)] * len(s.inputs)]):
            with ag.no_grad():
                for o in outputs(s.call(*[ag.tensor(a) for a in s.arrays(dtype, shapes)])):
                    h.update(o.contiguous().numpy().tobytes())
            if any(s.differentiable()):
                for g in run(s, dtype, shapes, False)[1]:
                    h.update(g.contiguous().numpy().tobytes())
    print(s.name, h.hexdigest()[:16])
"""


def test_instruction_sets_give_equal_bytes():
    """Every level that this processor runs: the same bits (products excepted: they may fuse)."""
    seen = {}
    for level in ("base", "v3", "v4"):
        code = LEVEL_SCRIPT.replace("TESTS", repr(str(Path(__file__).parent)))
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "AUTOGRAD_CY_LEVEL": level},
        )
        if done.returncode != 0:
            if "ImportError" in done.stderr and "this processor runs" in done.stderr:
                continue
            raise AssertionError(done.stderr[-3000:])
        seen[level] = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert "base" in seen
    for level, lines in seen.items():
        different = [name for name in lines if lines[name] != seen["base"][name]]
        assert not different, f"{level} differs from base in {different}"
