"""Linear algebra: products of matrices, in the last two axes (the engine reshapes vectors and broadcast batches), and their inverse.

Relies on rows.py and functions.py only.
"""

from ..functions import matmul, swap_axes, total
from ..rows import op

op("matmul", "a b", da=lambda g, b: matmul(g, swap_axes(b)), db=lambda g, a: matmul(swap_axes(a), g), doc="matrix product a @ b")
op("inv", "x", dx=lambda g, y: -matmul(matmul(swap_axes(y), g), swap_axes(y)), doc="inverse of a square matrix, in the last two axes")
op("linear", "x w b", dx=lambda g, w: matmul(g, w), dw=lambda g, x: matmul(swap_axes(g), x), db=lambda g: total(g, (0,), False),
   doc="x @ w.T + b")
