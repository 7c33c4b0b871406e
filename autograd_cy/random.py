"""The random numbers' state under the names of torch.random: `ag.random.fork_rng`, `ag.random.get_rng_state` ...

Relies on the engine; users rely on it.
"""

from .engine.making import fork_rng, get_rng_state, initial_seed, seed, set_rng_state
from .engine.generators import Generator, default_generator, manual_seed

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
