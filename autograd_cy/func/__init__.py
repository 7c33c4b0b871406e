"""Functions of functions, in the names of torch.func: gradients, Jacobians, batches, modules as functions; and checkpoints.

Relies on the engine, and on graph for what a result depends on and for nested arguments. `ag.func`, autograd.functional and
utils.checkpoint lead here; the package is imported when it is first asked for.
"""

from .batches import vmap
from .jacobians import hessian, hvp, jacfwd, jacrev
from .modules import functional_call, stack_module_state
from .recompute import CheckpointError, checkpoint, checkpoint_sequential
from .transforms import grad, grad_and_value, jvp, linearize, vjp

value_and_grad = grad_and_value

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "functional_call", "grad", "grad_and_value", "hessian", "hvp",
           "jacfwd", "jacrev", "jvp", "linearize", "stack_module_state", "value_and_grad", "vjp", "vmap"]
