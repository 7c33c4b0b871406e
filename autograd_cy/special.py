"""PyTorch's public path torch.special, a thin list of names.

Relies on the engine.
"""

from .engine.choose import logit, polygamma
from .engine.composed import multigammaln
from .engine.elementwise import (
    airy_ai, bessel_j0, bessel_j1, bessel_y0, bessel_y1, digamma, entr, erf, erfc, erfcx, erfinv, exp2, expm1, gammainc, gammaincc, i0, i0e,
    i1, i1e, log1p, log_ndtr, modified_bessel_k0, modified_bessel_k1, ndtr, ndtri, scaled_modified_bessel_k0, scaled_modified_bessel_k1,
    round, sinc, spherical_bessel_j0, xlog1py, xlogy, zeta,
)
from .engine.elementwise import digamma as psi
from .engine.elementwise import i0 as modified_bessel_i0
from .engine.elementwise import i1 as modified_bessel_i1
from .engine.elementwise import lgamma as gammaln
from .engine.elementwise import sigmoid as expit
from .engine.polynomials import (
    chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w, hermite_polynomial_h,
    hermite_polynomial_he, laguerre_polynomial_l, legendre_polynomial_p, shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v, shifted_chebyshev_polynomial_w,
)
from .engine.reduce import log_softmax, logsumexp, softmax

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1",
    "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
]
