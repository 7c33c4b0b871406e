"""PyTorch, eager, one thread: the very program that autograd_cy runs, with PyTorch's fastest update.

Relies on torch and on the programs in bench.iris and bench.xor; the peers' list relies on it.
"""

import torch

from .. import iris, xor
from ..training import Column

torch.set_num_threads(1)


def in_place(lib, weights, lr):
    """Gradient descent by hand: torch.optim.SGD costs several times more on two small weights."""
    def update():
        with lib.no_grad():
            for w in weights:
                w.sub_(w.grad, alpha=lr)
                w.grad = None
    return update


COLUMNS = {
    "iris": [Column("PyTorch, fused", iris.eager(torch, iris.fused, in_place), baseline="pytorch"),
             Column("PyTorch, op by op", iris.eager(torch, iris.op_by_op, in_place), "op by op", baseline="pytorch")],
    "xor": [Column("PyTorch", xor.eager(torch), baseline="pytorch"),
            Column("PyTorch, Adam(fused=True)", xor.eager(torch, adam={"fused": True}))],
}
