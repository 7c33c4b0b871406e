"""Optimisers: the names of torch.optim.

Relies on the engine and on engine/updates.  Training loops rely on it. What few scripts use is imported when first named.
"""

from typing import TYPE_CHECKING

from .._later import later
from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

if TYPE_CHECKING:
    from . import swa_utils
    from .adaptive import ASGD, Adadelta, Adafactor, Adagrad, Adamax, Muon, NAdam, RAdam, Rprop
    from .lbfgs import LBFGS

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer", "RAdam",
           "RMSprop", "Rprop", "lr_scheduler", "swa_utils"]
__getattr__, __dir__ = later(__name__, {
    **dict.fromkeys(("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adamax", "Muon", "NAdam", "RAdam", "Rprop"), "adaptive"),
    "LBFGS": "lbfgs", "swa_utils": "swa_utils"})
