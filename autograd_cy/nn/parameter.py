"""Parameter: the tensor that a Module counts as its own; and Buffer, which becomes part of its state.

Relies on the engine (Tensor).  Every module and the optimisers' users rely on it.
It adds no field to Tensor, so it costs nothing over a plain tensor.
"""

from autograd_cy.engine import creation
from autograd_cy.engine.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A leaf tensor that `Module.parameters()` finds; requires_grad is True unless told otherwise.

    `Parameter(data, requires_grad=True)` shares the memory of a tensor, and copies anything else.
    """

    __slots__ = ()

    def __new__(cls, data=None, requires_grad: bool = True):
        if data is None:
            data = creation.empty((0,))
        elif not isinstance(data, Tensor):
            data = creation.tensor(data)
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __deepcopy__(self, memo):
        known = memo.get(id(self))
        if known is not None:
            return known
        creation.escapes("deepcopy()")
        copy = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol):
        creation.escapes("pickling")
        return _rebuild, (type(self), self.detach().numpy(), self.requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module that it is made an attribute of; persistent: its state_dict has it, too."""

    persistent: bool = True

    def __new__(cls, data=None, *, persistent: bool = True):
        data = creation.empty((0,)) if data is None else creation.as_tensor(data)
        made = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        made.persistent = persistent
        return made


def _rebuild(cls, array, requires_grad):
    return cls(creation.tensor(array), requires_grad)
