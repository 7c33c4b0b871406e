"""Step through a backward pass: what the engine does at every node, as a list and as a table.

Relies on the engine, which calls the observer given to `observed_backward`; on ops/written, the text of the table's rules; and on
live.py for names. Users who want to see how gradients come about rely on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograd_cy.engine.backward import observed_backward
from autograd_cy.engine.node import Node
from autograd_cy.engine.tensor import Tensor
from autograd_cy.ops import TABLE
from autograd_cy.ops.written import rule_text

from .live import Names, input_name, nodes_of, short_line

SHOWN = 4                   # elements of a gradient that a line shows; of larger ones it says the norm
LONG = 48                   # characters of a rule in the table


@dataclass(frozen=True)
class Contribution:
    """The gradient that a node's rule gives to one of its inputs, and where it goes."""

    input: str              # name in the table: "a"
    rule: str               # the derivative as the table has it: "g * b"
    gradient: Tensor        # a copy
    target: str             # "x", "leaf (3,)", "#2 mul"
    leaf: bool              # the target is a leaf, whose total goes into its `grad` at the end of the pass
    added: bool             # to what the target had; else it is the first that the target gets

    def __str__(self):
        return f"d{self.input} = {self.rule} = {gradient_text(self.gradient)} {self.destination()}"

    def destination(self):
        """ "first to #2 mul", "added to leaf x" """
        kind = "leaf " if self.leaf and not self.target.startswith("leaf ") else ""
        return f"{'added' if self.added else 'first'} to {kind}{self.target}"


@dataclass(frozen=True)
class Step:
    """What the engine did at one node: the gradients that had come together there, and those that its rules gave."""

    node: str               # "MulBackward"
    operation: str          # "mul", a row of the table
    number: int             # in the order of recording, from 1; pictures and targets have the same numbers
    line: str | None        # file:line of the forward operation
    gradients: tuple[Tensor | None, ...]            # of its outputs: copies; None for an output that nothing used
    contributions: tuple[Contribution, ...]         # to its inputs

    def __str__(self):
        incoming = ", ".join(gradient_text(g) for g in self.gradients)
        given = "; ".join(map(str, self.contributions)) or "nothing needs its gradient"
        return f"#{self.number} {self.operation}{f' at {short_line(self.line)}' if self.line else ''}: g = {incoming}: {given}"


class Trace(list):
    """The steps of a backward pass in their order; printed, a table."""

    def __str__(self):
        rows = [("", "node", "recorded at", "incoming gradient g", "rule", "gives", "goes")]
        for k, step in enumerate(self, 1):
            incoming = ", ".join(gradient_text(g) for g in step.gradients)
            head = (str(k), f"#{step.number} {step.operation}", short_line(step.line), incoming)
            for c in step.contributions:
                rows.append((*head, _short(f"d{c.input} = {c.rule}"), gradient_text(c.gradient), c.destination()))
                head = ("",) * 4
            if not step.contributions:
                rows.append((*head, "", "", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)

    __repr__ = __str__


def _short(text):
    return text if len(text) <= LONG else text[:LONG - 3] + "..."


def gradient_text(g):
    """Shape and values of a gradient in a few words; of many values the norm."""
    if g is None:
        return "none"
    values = g.numpy()
    if values.size > SHOWN:
        with np.errstate(all="ignore"):
            return f"{g.shape} of norm {np.sqrt((values.astype(np.float64) ** 2).sum()):.4g}"
    if values.ndim == 0:
        return f"{values:.4g}"
    flat = ", ".join(f"{value:.4g}" for value in values.ravel())
    return f"[{flat}]" if values.ndim == 1 else f"{g.shape} [{flat}]"


def _rule_at(node, i, gradient, incoming):
    """The rule that gave a gradient to input i of a node, and what the engine did around it."""
    row = TABLE[node.operation]
    name = row.inputs[min(i, len(row.inputs) - 1)]
    if name not in row.rules:
        return "?"
    text = rule_text(node.operation, name)
    reduction = node.attributes.get("reduction")
    if reduction:
        return text + (" with g / n for g" if reduction == "mean" else "")
    if row.kind == "elementwise" and incoming is not None and gradient.shape != incoming.shape:
        text += f", summed to {gradient.shape}"
    return text


# ---- the pass

def trace_backward(loss: Tensor, gradient: Tensor | None = None, *, retain_graph: bool = False,
                   show: Callable[[Step], Any] | None = None, names: Any = None, params: Any = None) -> Trace:
    """Run the backward pass of a tensor and return its steps, in the order in which the engine took them.

    It is the iterative engine's own pass: afterwards the leaves have the same gradients, byte for byte, as after
    `loss.backward(gradient, retain_graph)`.  The steps hold copies of all gradients, so a trace of a large model is large.

    gradient, retain_graph: as of `backward`.  show: called with every step as it is taken, e.g. `print`; recording is off then.
    names, params: what to call leaves, as of `of_tensor`.  Raises what `backward` and `show` raise; then no leaf's `grad` has
    changed.

    >>> x = ag.tensor(3.0, requires_grad=True)
    >>> y = ag.tensor(2.0, requires_grad=True)
    >>> print(trace_backward(x * y + x, names={"x": x, "y": y}))
       node    recorded at  incoming gradient g  rule        gives  goes
    1  #2 add  demo.py:3    1                    da = g      1      first to #1 mul
                                                 db = g      1      first to leaf x
    2  #1 mul  demo.py:3    1                    da = g * b  2      added to leaf x
                                                 db = g * a  3      first to leaf y
    """
    if not isinstance(loss, Tensor):
        raise TypeError(f"trace_backward: the loss must be a tensor, got {type(loss).__name__}")
    trace, called = Trace(), Names(names, params)
    numbers = {id(node): k for k, node in enumerate(nodes_of([loss])[0], 1)}
    reached = {(id(loss.grad_fn), loss.output_nr)}       # (node or leaf, output number) that have a gradient

    def node_text(node, output_nr):
        name = called.of_output(node, output_nr)
        text = f"#{numbers[id(node)]} {node.operation}" + (f" [{output_nr}]" if output_nr else "")
        return text + (f" ({name})" if name else "")

    def observer(node, gradients, results):
        row = TABLE[node.operation]
        contributions = []
        for i, ((target, output_nr), result) in enumerate(zip(node.next_functions, results, strict=True)):
            if result is None:
                continue
            leaf, place = type(target) is not Node, (id(target), output_nr)
            text = called.call(target) if leaf else node_text(target, output_nr)
            contributions.append(Contribution(input_name(row, i, len(results)), _rule_at(node, i, result, gradients[0]),
                                              result.clone(), text, leaf, place in reached))
            reached.add(place)
        step = Step(node.name(), node.operation, numbers[id(node)], node.line,
                    tuple([None if g is None else g.clone() for g in gradients]), tuple(contributions))
        trace.append(step)
        if show is not None:
            show(step)

    observed_backward(loss, gradient, retain_graph, observer)
    return trace
