"""Assertions for the tests of users: the name that torch.testing is used for.

Relies on tensors and composed functions. Users' tests rely on it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .engine.creation import as_tensor
from .engine.choose import isclose
from .engine.tensor import Tensor

_TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, msg: str | Callable[[str], str] | None = None) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere, in tensors, numbers, and sequences and mappings
    of them, of one shape and dtype. The tolerances depend on the dtype by default: 1.3e-6 and 1e-5 for float32, 1e-7 for float64, else 0.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got rtol={rtol} and atol={atol}")

    def fail(text):
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)

    def compare(a, b, where):
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if set(a) != set(b):
                fail(f"The keys of the mappings do not match{where}: {sorted(set(a) ^ set(b), key=str)} are in one only")
            for key in a:
                compare(a[key], b[key], f"{where}[{key!r}]")
        elif all(isinstance(v, Sequence) and not isinstance(v, str) for v in (a, b)):
            if len(a) != len(b):
                fail(f"The length of the sequences mismatch{where}: {len(a)} != {len(b)}")
            for k, pair in enumerate(zip(a, b, strict=True)):
                compare(*pair, f"{where}[{k}]")
        else:
            tensors = isinstance(a, Tensor) or isinstance(b, Tensor)
            one, other = (v.detach() if isinstance(v, Tensor) else as_tensor(v) for v in (a, b))
            if one.shape != other.shape:
                fail(f"The values for attribute 'shape' do not match{where}: {one.shape} != {other.shape}")
            if tensors and check_dtype and one.dtype != other.dtype:
                fail(f"The values for attribute 'dtype' do not match{where}: {one.dtype} != {other.dtype}")
            if check_stride and one.stride() != other.stride():
                fail(f"The values for attribute 'stride' do not match{where}: {one.stride()} != {other.stride()}")
            usual = _TOLERANCES.get(one.dtype.name if tensors else "float64", (0.0, 0.0))
            relative, absolute = (usual[0] if rtol is None else rtol), (usual[1] if atol is None else atol)
            same = isclose(one.double(), other.double(), relative, absolute, equal_nan)
            if not same.all():
                away = (one.double() - other.double()).abs()
                fail(f"Tensor-likes are not close{where}!\n\nMismatched elements: {int((~same).sum())} / {same.numel()}\n"
                     f"Greatest absolute difference: {away.max().item()} (up to {absolute} allowed)\n"
                     f"Greatest relative difference: {(away / other.double().abs()).max().item()} (up to {relative} allowed)")

    compare(actual, expected, "")
