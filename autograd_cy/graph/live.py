"""The graph of a live tensor, read from its nodes: the operations that led to it, as a Picture.

Relies on the engine's Node and Tensor, the table, and picture.  `draw` uses it for tensors; trace.py numbers nodes and names
leaves with it.
"""

import os
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np

from autograd_cy.engine.node import Node
from autograd_cy.engine.tensor import Tensor
from autograd_cy.ops import TABLE

from .picture import Arrow, Box, Picture

LIMIT = 1000                # boxes of a picture
LONG = 36                   # characters of a line that describes attributes


class Names:
    """What to call tensors: by the names given, a Module's parameters first; leaves without a name by their type and shape."""

    def __init__(self, names=None, params=None):
        self.found = {}
        given = dict(names or {})
        if params is not None:
            given = dict(params.named_parameters() if hasattr(params, "named_parameters") else params) | given
        for name, tensor in given.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(f"names and params lead from names to tensors, but {name!r} leads to a {type(tensor).__name__}")
            node = tensor.grad_fn
            self.found[(id(tensor), 0) if node is None else (id(node), tensor.output_nr)] = str(name)

    def of_output(self, node, output_nr):
        """The name given to an output of a node, or None."""
        return self.found.get((id(node), output_nr))

    def of_leaf(self, tensor):
        """The name of a leaf, or None."""
        return self.found.get((id(tensor), 0))

    def call(self, tensor):
        """A leaf in words: "W", or "leaf (2, 3)"."""
        return self.of_leaf(tensor) or f"leaf {tensor.shape}"


def nodes_of(roots):
    """Every node that led to the given tensors, in the order of recording; and the distinct leaves, in the order of first use."""
    nodes, leaves, seen = [], {}, set()
    stack = [t.grad_fn for t in roots if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            nodes.append(node)
            stack += [target for target, _ in node.next_functions if type(target) is Node]
    nodes.sort(key=lambda node: node.sequence_nr)
    for node in nodes:
        leaves |= {id(target): target for target, _ in node.next_functions if isinstance(target, Tensor)}
    for root in roots:
        if root.grad_fn is None:
            leaves.setdefault(id(root), root)
    return nodes, list(leaves.values())


def input_name(row, i, n):
    """The name of input i of n in the table; where the row takes any number of inputs, numbered."""
    return row.inputs[i] if n <= len(row.inputs) else f"{row.inputs[0]}[{i}]"


def type_text(shape, dtype):
    """ "(2, 3) float32" """
    return f"{shape} {dtype.name}"


def short_line(line):
    """file:line without the directories."""
    return os.path.basename(line) if line else ""


def value_text(value):
    """An attribute, short: arrays and tensors by their types."""
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype.name} {value.shape}"
    if isinstance(value, (tuple, list)):
        text = ", ".join(map(value_text, value[:9])) + (", ..." if len(value) > 9 else "," if len(value) == 1 else "")
        return f"({text})" if isinstance(value, tuple) else f"[{text}]"
    return value if isinstance(value, str) else getattr(value, "name", None) or repr(value)


def gradient_text(grad):
    """A gradient in a line: a single element itself, else its norm and range."""
    values = grad.detach().numpy().astype(np.float64)
    if values.size == 0:
        return f"grad: empty, {values.shape}"
    if values.size == 1:
        return f"grad: {values.item():.4g}"
    with np.errstate(all="ignore"):
        return f"grad: norm {np.sqrt((values * values).sum()):.4g}, from {values.min():.4g} to {values.max():.4g}"


def _tensors(root):
    """[(name or None, tensor)] of a tensor, a sequence of tensors or a dict of them."""
    if isinstance(root, Tensor):
        pairs = [(None, root)]
    elif isinstance(root, Mapping):
        pairs = list(root.items())
    elif isinstance(root, (list, tuple)):
        pairs = [(None, t) for t in root]
    else:
        raise TypeError(f"a graph is drawn of a tensor, several tensors or a program, not of a {type(root).__name__}")
    for _, t in pairs:
        if not isinstance(t, Tensor):
            raise TypeError(f"a graph is drawn of tensors, not of a {type(t).__name__}")
    return pairs


class _Drawing:
    """Boxes and arrows as they are found; arrows are kept aside until every box has its name."""

    def __init__(self, nodes, leaves, names, gradients):
        self.numbers = {id(node): k for k, node in enumerate(nodes, 1)}
        self.names, self.gradients = names, gradients
        self.boxes, self.arrows = [], []
        self.leaves = {id(leaf): f"leaf{k}" for k, leaf in enumerate(leaves, 1)}
        self.drawn = set()                       # ids of leaves
        self.types = {}                          # (id of a node, output number) -> type, as its consumers saw it

    def leaf(self, tensor):
        """The id of the box of a leaf, which is drawn at its first use."""
        if id(tensor) not in self.drawn:
            self.drawn.add(id(tensor))
            name = self.names.of_leaf(tensor)
            kind = "leaf" if tensor.requires_grad else "constant"
            what = type(tensor).__name__ if type(tensor) is not Tensor else kind
            label = [name or what, type_text(tensor.shape, tensor.dtype)]
            if self.gradients and tensor.grad is not None:
                label.append(gradient_text(tensor.grad))
            self.boxes.append(Box(self.leaves[id(tensor)], label, kind, f"{what} {name or ''}".strip()))
        return self.leaves[id(tensor)]

    def operation(self, node):
        """The box of a node, and what leads to it."""
        row = TABLE[node.operation]
        number = self.numbers[id(node)]
        label, line = [node.operation], short_line(node.line)
        known = sorted((nr, text) for (owner, nr), text in self.types.get(id(node), {}).items() if owner == id(node))
        for nr, text in known:
            name = self.names.of_output(node, nr)
            several = f"output {nr}: " if nr or len(known) > 1 else ""
            label.append(several + (f"{name}: " if name else "") + text)
        attributes = [f"{name} = {value_text(value)}" for name, value in node.attributes.items()]
        inputs = node.inputs
        numbers = [f"{input_name(row, i, len(inputs))}" + (": a number" if value is None else f" = {value!r}")
                   for i, value in enumerate(inputs) if not isinstance(value, tuple)]
        label += wrap(", ".join(numbers + attributes), LONG, max_lines=3, placeholder=" ...")
        if line:
            label.append(line)
        tooltip = [f"#{number} {node.operation}: {row.doc}", *attributes]
        if node.line:
            tooltip.append(f"recorded at {node.line}")
        self.boxes.append(Box(f"op{number}", label, "operation", "\n".join(tooltip)))

    def note_type(self, target, output_nr, text):
        """What a consumer says of the type of a node's output."""
        self.types.setdefault(id(target), {})[id(target), output_nr] = text

    def inputs(self, node, left_out):
        """The arrows to a node, from nodes, leaves and constants; those from nodes that are left out are one arrow."""
        head, types, hidden = f"op{self.numbers[id(node)]}", node.inputs, 0
        for i, (target, output_nr) in enumerate(node.next_functions):
            name = input_name(TABLE[node.operation], i, len(types)) if len(types) > 1 else ""
            if target is None:
                if isinstance(types[i], tuple):
                    self.boxes.append(Box(f"{head}.{i}", ["no gradient", type_text(*types[i])], "constant", "needs no gradient"))
                    self.arrows.append(Arrow(f"{head}.{i}", head, name))
            elif isinstance(target, Tensor):
                self.arrows.append(Arrow(self.leaf(target), head, name))
            elif id(target) in left_out:
                hidden += 1
            else:
                self.note_type(target, output_nr, type_text(*types[i]))
                label = f"{name} [{output_nr}]".strip() if output_nr else name
                self.arrows.append(Arrow(f"op{self.numbers[id(target)]}", head, label))
        if hidden:
            self.arrows.append(Arrow("more", head, f"{hidden} inputs" if hidden > 1 else ""))


def of_tensor(root: Any, *, gradients: bool = False, names: Any = None, params: Any = None, limit: int = LIMIT,
              title: str = "") -> Picture:
    """The Picture of the graph that led to a tensor (or to several: a sequence, or a dict by name).

    A box for each operation (output's type, numbers, attributes, the user's line), for each leaf, and for each input that needs
    no gradient; every node and every leaf is drawn once.  Shapes of outputs are those that the operations after them saw.

    gradients: show the norm and range of leaves' `grad`.  names: {"W": tensor}, of leaves or inner tensors.  params: a Module
    (or a dict), whose parameters are called by their names.  limit: draw about so many boxes at most, the operations recorded
    last; one box says how many are left out.

    Raises TypeError for what is not a tensor, ValueError for a limit below 1.

    >>> picture = of_tensor(loss, params=model, gradients=True)
    """
    if limit < 1:
        raise ValueError(f"a picture has at least one box, but limit is {limit}")
    roots = _tensors(root)
    nodes, leaves = nodes_of([t for _, t in roots])
    drawing = _Drawing(nodes, leaves, Names(names, params), gradients)
    kept = _kept(nodes, limit)
    left_out = {id(node) for node in nodes[:len(nodes) - kept]}
    shown = nodes[len(nodes) - kept:]
    for k, (name, t) in enumerate(roots, 1):
        if t.grad_fn is None:
            tail = drawing.leaf(t)
        else:
            drawing.note_type(t.grad_fn, t.output_nr, type_text(t.shape, t.dtype))
            tail = "more" if id(t.grad_fn) in left_out else f"op{drawing.numbers[id(t.grad_fn)]}"
        if t.grad_fn is not None or name is not None:
            label = [name or drawing.names.of_output(t.grad_fn, t.output_nr) or "output", type_text(t.shape, t.dtype)]
            drawing.boxes.append(Box(f"output{k}", label, "output"))
            drawing.arrows.append(Arrow(tail, f"output{k}", f"[{t.output_nr}]" if t.output_nr else ""))
    for node in reversed(shown):                 # consumers first: they know the types
        drawing.inputs(node, left_out)
        drawing.operation(node)
    if left_out:
        _left_out(drawing, nodes[:len(nodes) - kept])
    return Picture(title, drawing.boxes[::-1], drawing.arrows[::-1])


def _kept(nodes, limit):
    """How many of the nodes recorded last fit with their leaves and constants into `limit` boxes; at least one."""
    seen, used = set(), 0
    for kept, node in enumerate(reversed(nodes)):
        found = {id(target) for target, _ in node.next_functions if isinstance(target, Tensor)} - seen
        constants = sum(target is None and isinstance(kind, tuple)
                        for (target, _), kind in zip(node.next_functions, node.inputs, strict=True))
        used += 1 + len(found) + constants
        if used > limit and kept:
            return kept
        seen |= found
    return len(nodes)


def _left_out(drawing, nodes):
    """The box that stands for all nodes that are not drawn, and arrows from leaves that are."""
    n, fewer = len(nodes), len(drawing.leaves) - len(drawing.drawn)
    label = [f"{n:,} more operation{'s' * (n > 1)}"] + [f"and {fewer:,} more lea{'ves' if fewer > 1 else 'f'}"] * (fewer > 0)
    drawing.boxes.append(Box("more", [*label, "not drawn"], "note", "recorded before the operations drawn; limit= draws more"))
    used = {id(target): None for node in nodes for target, _ in node.next_functions if isinstance(target, Tensor)}
    for known in used:
        if known in drawing.drawn:
            drawing.arrows.append(Arrow(drawing.leaves[known], "more"))
