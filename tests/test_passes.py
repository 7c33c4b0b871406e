"""Passes: whatever they do, every result keeps its bytes; and they do what they are for.

Relies on tests/interpreter.py and tests/random_programs.py; nothing relies on it.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interpreter import Interpreter, evaluate
from random_programs import F32, Maker

from autograd_cy.graph.passes.common_subexpressions import common_subexpressions
from autograd_cy.graph.passes.dead_code import dead_code
from autograd_cy.graph.passes.fold import fold
from autograd_cy.graph.passes.fuse import fuse
from autograd_cy.graph.passes.simplify import simplify

PASSES = {"fold": lambda p: fold(p, evaluate), "common_subexpressions": common_subexpressions, "dead_code": dead_code, "simplify": simplify,
          "fuse": lambda p: fuse(p, 8)}


def check(seed, n, chosen):
    maker = Maker(seed)
    program = maker.program(n)
    expected = Interpreter(program, maker.contents).run()
    for name in chosen:
        after = PASSES[name](program)
        result = Interpreter(after, maker.contents).run()
        assert result == expected, f"{name}\n{program}\n{after}"
        program = after


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10 ** 9), st.integers(1, 60), st.lists(st.sampled_from(sorted(PASSES)), min_size=1, max_size=6))
def test_results_keep_their_bytes(seed, n, chosen):
    check(seed, n, chosen)
