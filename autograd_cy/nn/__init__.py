"""Modules, layers, losses, initialisers: the names of torch.nn.

Relies on the engine.  Models rely on it.
"""

from . import (
    activation, adaptive, attention, containers, conv, dropout, functional, init, lazy, linear, loss, module, normalization, padding,
    parameter, pooling, recurrent, sparse, utils,
)
from .activation import *
from .adaptive import *
from .attention import *
from .conv import *
from .containers import *
from .dropout import *
from .lazy import *
from .linear import *
from .loss import *
from .module import *
from .normalization import *
from .padding import *
from .parameter import *
from .pooling import *
from .recurrent import *
from .sparse import *

__all__ = ["functional", "init", "utils"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += attention.__all__
__all__ += conv.__all__
__all__ += containers.__all__
__all__ += dropout.__all__
__all__ += lazy.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += module.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += parameter.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += sparse.__all__
