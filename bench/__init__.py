"""Benchmarks of autograd_cy, and the comparison of its engines: `python -m bench --help`.

Relies on the package (as any user would) and on NumPy; tqdm, matplotlib and the peers are used where they are installed.
`make bench` and the README's table rely on it.
"""

import os

# One thread for everyone: the products of these networks are far too small to share, and a busy second core
# would decide the result. Both must be set before NumPy loads its BLAS.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# A forced BLAS core type would time kernels that no user of this processor runs.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)
