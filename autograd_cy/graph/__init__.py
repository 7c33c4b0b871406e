"""The graph as a program: capture, passes, memory plan, replay; and pictures of graphs.

Relies on the engine. `ag.compile` is the usual way in; this package is imported when it is first asked for.
"""

from .capture import capture
from .compile import Compiled, compile
from .passes import PASSES, optimise
from .picture import draw
from .program import Buffer, Instruction, Program, View
from .trace import trace_backward

__all__ = ["Buffer", "Compiled", "Instruction", "PASSES", "Program", "View", "capture", "compile", "draw", "optimise", "trace_backward"]
