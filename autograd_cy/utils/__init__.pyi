# Types of the names of torch.utils.
#
# Relies on data and func, whose checkpoint is imported when first used. Users' type checkers rely on it.

from . import checkpoint as checkpoint
from . import data as data

__all__ = ["checkpoint", "data"]
