# Types of the names of torch.autograd.
#
# Relies on the engine's stubs and on tools, whose names are imported when first used. Users' type checkers rely on it.

from ..engine.backward import backward as backward
from ..engine.backward import grad as grad
from ..engine.function import Function as Function
from ..engine.hooks import detect_anomaly as detect_anomaly
from ..engine.hooks import set_detect_anomaly as set_detect_anomaly
from ..engine.modes import enable_grad as enable_grad
from ..engine.modes import no_grad as no_grad
from ..engine.modes import set_grad_enabled as set_grad_enabled
from ..engine.tensor import Tensor as _Tensor
from ..tools.gradcheck import GradcheckError as GradcheckError
from ..tools.gradcheck import gradcheck as gradcheck
from ..tools.gradcheck import gradgradcheck as gradgradcheck
from . import function as function
from . import functional as functional
from . import graph as graph

def Variable(data: _Tensor, requires_grad: bool = False) -> _Tensor: ...

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad",
    "gradcheck",
    "gradgradcheck", "graph", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]
