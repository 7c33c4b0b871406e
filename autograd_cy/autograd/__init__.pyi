# Types of the names of torch.autograd.
#
# Relies on the engine's stubs and on tools, whose names are imported when first used. Users' type checkers rely on it.

from . import functional as functional
from ..engine.backward import backward as backward
from ..engine.backward import grad as grad
from ..engine.modes import enable_grad as enable_grad
from ..engine.modes import no_grad as no_grad
from ..engine.modes import set_grad_enabled as set_grad_enabled
from ..tools.gradcheck import GradcheckError as GradcheckError
from ..tools.gradcheck import gradcheck as gradcheck
from ..tools.gradcheck import gradgradcheck as gradgradcheck

__all__ = ["GradcheckError", "backward", "enable_grad", "functional", "grad", "gradcheck", "gradgradcheck", "no_grad", "set_grad_enabled"]
