"""Optimisers: the names of torch.optim.

Relies on the engine and on engine/updates.  Training loops rely on it. What few scripts use is imported when first named.
"""

from typing import TYPE_CHECKING

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

if TYPE_CHECKING:
    from . import swa_utils
    from .adaptive import ASGD, Adadelta, Adagrad, Adamax, NAdam, RAdam, Rprop
    from .lbfgs import LBFGS

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
           "lr_scheduler", "swa_utils"]
_LATER = dict.fromkeys(("ASGD", "Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "Rprop"), "adaptive") | {"LBFGS": "lbfgs"}


def __getattr__(name):
    from importlib import import_module
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    if name == "swa_utils":
        return import_module(f"{__name__}.swa_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
