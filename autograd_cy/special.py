"""PyTorch's public path torch.special, a thin list of names.

Relies on the engine.
"""

from .engine.choose import logit, polygamma
from .engine.elementwise import digamma, erf, erfc, erfinv, exp2, expm1, log1p, round, sinc, xlog1py, xlogy
from .engine.elementwise import digamma as psi
from .engine.elementwise import lgamma as gammaln
from .engine.elementwise import sigmoid as expit
from .engine.reduce import log_softmax, logsumexp, softmax

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "log_softmax", "logit", "logsumexp",
           "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy"]
