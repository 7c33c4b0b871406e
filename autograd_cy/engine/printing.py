"""How tensors print: values as NumPy prints them, with dtype and history where they tell something.

Relies on creation. methods.py makes it Tensor's repr.
"""

import numpy as np

from .creation import numpy
from .shape import detach


def tensor_repr(self):
    """tensor([1., 2.], requires_grad=True)"""
    values = numpy(detach(self))
    prefix = "tensor("
    text = np.array2string(values, separator=", ", prefix=prefix, precision=4, suppress_small=False, threshold=1000, edgeitems=3)
    extra = []
    if values.size == 0 and self.shape != (0,):
        extra.append(f"size={self.shape}")
    if self.dtype.name not in ("float32", "int64", "bool") or values.size == 0 and self.dtype.name != "float32":
        extra.append(f"dtype={self.dtype!r}")
    if self.grad_fn is not None:
        extra.append(f"grad_fn={self.grad_fn!r}")
    elif self.requires_grad:
        extra.append("requires_grad=True")
    return prefix + ", ".join([text, *extra]) + ")"
