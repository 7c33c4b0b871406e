"""The graph as a program: capture, passes, memory plan, replay; and pictures of graphs.

Relies on the engine. `ag.compile` is the usual way in; this package is imported when it is first asked for.
"""

from .again import of
from .capture import capture
from .compile import Compiled, compile
from .control import cond, scan, wall, while_loop
from .evaluate import ENGINES
from .files import from_json
from .live import of_tensor
from .passes import PASSES, optimise
from .picture import Arrow, Box, Picture, dot, draw, svg
from .program import Buffer, Instruction, Program, View
from .seeds import Models, over_seeds
from .trace import trace_backward

__all__ = ["Arrow", "Box", "Buffer", "Compiled", "ENGINES", "Instruction", "Models", "PASSES", "Picture", "Program", "View", "capture",
           "compile", "cond", "dot", "draw", "from_json", "of", "of_tensor", "optimise", "over_seeds", "scan", "svg", "trace_backward",
           "wall", "while_loop"]
