"""PyTorch's public path torch.autograd.functional, a thin list of names.

Relies on func.  Scripts written for PyTorch rely on it.
"""

from ..func.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
