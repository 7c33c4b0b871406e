"""PyTorch's public path torch.linalg, a thin list of names.

Relies on the engine. LinAlgError is what singular matrices and the like raise, a RuntimeError.
"""

from .array.errors import LinAlgError
from .engine.linear_algebra import (
    cholesky, det, eigh, eigvalsh, inv, lu_factor, lu_solve, matrix_exp, qr, slogdet, solve, solve_triangular, svd, svdvals,
)
from .engine.matrix_functions import (
    cholesky_ex, cond, diagonal, eig, eigvals, inv_ex, lstsq, lu, lu_factor_ex, matrix_norm, matrix_power, matrix_rank, norm, pinv,
    solve_ex, tensorinv, tensorsolve, vector_norm,
)
from .engine.matrix_products import linalg_cross as cross
from .engine.matrix_products import linalg_vander as vander
from .engine.matrix_products import multi_dot, vecdot
from .engine.products import matmul

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "inv_ex",
    "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve",
    "vander", "vecdot", "vector_norm",
]
