"""PyTorch, one thread: the very program that autograd_cy runs, with PyTorch's fastest update; and with its forward compiled.

Relies on torch and on the programs of the trainings; the peers' list relies on it. Compilation is not timed.
"""

import functools
import sys

import torch

from .. import iris, mlp, synthetic, xor
from ..training import Column

torch.set_num_threads(1)


@functools.cache
def compiles():
    """Whether torch.compile works here: it needs a C++ compiler and a Python that it knows."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(2))
    except Exception as error:
        print(f"peer skipped: torch.compile: {type(error).__name__}: {str(error).splitlines()[0][:80]}", file=sys.stderr)
        return False
    return True


def in_place(lib, weights, lr):
    """Gradient descent by hand: torch.optim.SGD costs several times more on two small weights."""
    def update():
        with lib.no_grad():
            for w in weights:
                w.sub_(w.grad, alpha=lr)
                w.grad = None
    return update


FUSED = {"fused": True}
COLUMNS = {
    "iris": [Column("PyTorch, fused", iris.eager(torch, iris.fused, in_place), baseline="pytorch"),
             Column("PyTorch, op by op", iris.eager(torch, iris.op_by_op, in_place), "op by op", baseline="pytorch"),
             Column("torch.compile", iris.eager(torch, iris.fused, in_place, wrap=torch.compile), available=compiles)],
    "xor": [Column("PyTorch", xor.eager(torch), baseline="pytorch"),
            Column("PyTorch, Adam(fused=True)", xor.eager(torch, FUSED)),
            Column("torch.compile", xor.eager(torch, FUSED, wrap=torch.compile), available=compiles)],
    "mlp": [Column("PyTorch", mlp.eager(torch), baseline="pytorch"),
            Column("PyTorch, Adam(fused=True)", mlp.eager(torch, FUSED)),
            Column("torch.compile", mlp.eager(torch, FUSED, wrap=torch.compile), available=compiles)],
} | {
    name: [Column("PyTorch", synthetic.eager(torch, name), baseline="pytorch"),
           Column("torch.compile", synthetic.eager(torch, name, wrap=torch.compile), available=compiles)]
    for name in ("chain", "fan-out")
}
