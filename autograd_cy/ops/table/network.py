"""What networks are made of, beside elementwise rows and products: losses of whole rows.

Relies on rows.py and functions.py only.
"""

from ..functions import cross_entropy_back
from ..rows import op

op("cross_entropy", "x", attrs="target weight ignore_index smoothing", aux="prob", doc="-log softmax(x)[target], a loss for each row",
   dx=lambda g, x, prob, target, weight, ignore_index, smoothing: cross_entropy_back(g, x, prob, target, weight, ignore_index, smoothing))
