"""Passes: each a pure function from Program to Program that keeps every bit of every result (but where `fast` is asked for).

Relies on program.py; `ag.compile` relies on it.  `PASSES` names them in the order in which `optimise` applies them; each can be
left out by its name, and the program can be shown before and after each.
"""

from collections.abc import Sequence
from typing import Any

from autograd_cy.graph.program import Program

from .common_subexpressions import common_subexpressions
from .dead_code import dead_code
from .fold import fold
from .fuse import fuse
from .simplify import simplify

# Constants first, since rules look for them; what rules make equal is merged next; what nobody reads goes before groups are
# made, which would have to keep it.
PASSES = {"fold": fold, "simplify": simplify, "common_subexpressions": common_subexpressions, "dead_code": dead_code, "fuse": fuse}


def optimise(program: Program, *, fast: bool = False, without: Sequence[str] = (), evaluate: Any = None, show: Any = None) -> Program:
    """Apply all passes but those named in `without`.

    fast: also what holds in real arithmetic only; evaluate: how `fold` runs an instruction (see there), which is left out if
    that is None; show: True prints the program before and after each pass that changes it, a function gets (name, before, after).
    """
    unknown = set(without) - PASSES.keys()
    if unknown:
        raise ValueError(f"no pass is called {', '.join(sorted(unknown))}; there are {', '.join(PASSES)}")
    options = {"fold": {"evaluate": evaluate}, "simplify": {"fast": fast}}
    for name, apply in PASSES.items():
        if name in without:
            continue
        before, program = program, apply(program, **options.get(name, {}))
        if show is not None and program is not before:
            (show_changes if show is True else show)(name, before, program)
    return program


def show_changes(name, before, after):
    """Print a program before and after a pass."""
    print(f"---- before {name}\n{before}\n---- after {name}\n{after}")


__all__ = ["PASSES", "common_subexpressions", "dead_code", "fold", "fuse", "optimise", "show_changes", "simplify"]
