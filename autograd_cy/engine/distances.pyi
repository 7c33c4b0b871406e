# Types of rows of distances and covariances.
#
# Relies on tensor.pyi. matrix_products.py relies on it.

from typing import Any

from .tensor import Tensor

def cdist_row(a: Any, b: Any, p: float, anyway: bool) -> Tensor | None: ...
def pdist_row(a: Any, p: float) -> Tensor | None: ...
def cov_row(given: Any, correction: float, unit: bool) -> Tensor | None: ...
