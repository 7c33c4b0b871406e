"""How tensors print: as PyTorch's do, with dtype and history where they tell something.

Relies on creation, and on NumPy for the arrangement of rows and columns. methods.py makes it Tensor's repr.
"""

import numpy as np

from .creation import numpy
from .shape import detach


USUAL = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_options = dict(USUAL)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors print: decimals, elements before the middle is left out and at each end then, characters in a line, and whether in
    scientific form (None: as the numbers need). profile: "default", "short" or "full", to begin with."""
    profiles = {"default": USUAL, "short": USUAL | {"precision": 2, "edgeitems": 2}, "full": USUAL | {"threshold": 1 << 62}, None: {}}
    if profile not in profiles:
        raise ValueError(f"set_printoptions: profile must be 'default', 'short' or 'full', got {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    if any(value is not None and value < 0 for value in given.values()):
        raise ValueError(f"set_printoptions: numbers must not be negative, got {given}")
    _options.update(profiles[profile] | {name: int(value) for name, value in given.items() if value is not None} | {"sci_mode": sci_mode})


def _float_format(values):
    """Integers as "1.", wide ranges in scientific form, others with four decimals: PyTorch's choice."""
    finite = np.abs(values[np.isfinite(values)].astype(np.float64))
    nonzero = finite[finite != 0]
    digits, forced = _options["precision"], _options["sci_mode"]
    if not forced and np.all(finite == np.ceil(finite)) and (nonzero.size == 0 or nonzero.max() < 1e8):
        form = "{:.0f}."
    elif forced or forced is None and nonzero.size and (
            nonzero.max() / nonzero.min() > 1000 or nonzero.max() > 1e8 or nonzero.min() < 1e-4):
        form = f"{{:.{digits}e}}"
    else:
        form = f"{{:.{digits}f}}"
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
    text = np.array2string(shown, separator=", ", prefix=prefix, threshold=_options["threshold"], edgeitems=_options["edgeitems"],
                           max_line_width=_options["linewidth"], **options).replace(", ...,", ",  ...,")
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
