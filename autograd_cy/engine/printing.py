"""How tensors print: as PyTorch's do, with dtype and history where they tell something.

Relies on creation, and on NumPy for the arrangement of rows and columns. methods.py makes it Tensor's repr.
"""

import numpy as np

from .creation import numpy
from .shape import detach


def _float_format(values):
    """Integers as "1.", wide ranges in scientific form, others with four decimals: PyTorch's choice."""
    finite = np.abs(values[np.isfinite(values)].astype(np.float64))
    nonzero = finite[finite != 0]
    if np.all(finite == np.ceil(finite)) and (nonzero.size == 0 or nonzero.max() < 1e8):
        form = "{:.0f}."
    elif nonzero.size and (nonzero.max() / nonzero.min() > 1000 or nonzero.max() > 1e8 or nonzero.min() < 1e-4):
        form = "{:.4e}"
    else:
        form = "{:.4f}"
    return lambda v: form.format(v) if np.isfinite(v) else str(v)


def tensor_repr(self):
    """tensor([1.0000, 2.5000], requires_grad=True)"""
    values = numpy(detach(self))
    shown = values
    prefix = "tensor("
    options = {}
    if self.is_floating_point():
        write = _float_format(shown)
        width = max((len(write(v)) for v in shown.flat[:2000]), default=0) if shown.ndim else 0
        options["formatter"] = {"float_kind": lambda v: write(v).rjust(width)}
    text = np.array2string(shown, separator=", ", prefix=prefix, threshold=1000, edgeitems=3, **options)
    extra = []
    if values.size == 0 and self.shape != (0,):
        extra.append(f"size={self.shape}")
    if self.dtype.name not in ("float32", "int64", "bool") or (values.size == 0 and self.dtype.name != "float32"):
        extra.append(f"dtype={self.dtype!r}")
    if self.grad_fn is not None:
        extra.append(f"grad_fn={self.grad_fn!r}")
    elif self.requires_grad:
        extra.append("requires_grad=True")
    return prefix + ", ".join([text, *extra]) + ")"
