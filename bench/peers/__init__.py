"""The same trainings in other systems, each written as its own users would write it well.

Relies on whichever of PyTorch, JAX, CasADi, HIPS autograd and scikit-learn are installed; `--peers` relies on it.
"""

import importlib
import sys

NAMES = ("pytorch", "jax_", "casadi_", "hips", "sklearn_")


def columns(training):
    """The peers' columns for the training of this name; a peer that is not installed is skipped, and said so."""
    made = []
    for name in NAMES:
        try:
            module = importlib.import_module(f".{name}", __name__)
        except ImportError as error:
            print(f"peer skipped: {error}", file=sys.stderr)
            continue
        made += [column for column in module.COLUMNS.get(training, []) if column.available is None or column.available()]
    return made


def libraries(own, wanted):
    """{label: library} of what the same calls can be asked of: ours, and PyTorch on one thread where it is wanted and installed."""
    found = {"autograd_cy": own}
    if wanted:
        try:
            import torch
        except ImportError:
            print("peer skipped: torch is not installed", file=sys.stderr)
        else:
            torch.set_num_threads(1)
            found["PyTorch"] = torch
    return found
