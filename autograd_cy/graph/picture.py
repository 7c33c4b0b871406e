"""Pictures of graphs: boxes and arrows, as Graphviz source and as SVG with a layout of our own.

Relies on nothing but Python, and on the `graphviz` package and its program where both are installed.  live.py turns the graph
of a tensor into a Picture, programs turn themselves into one; `draw` is what users call.

The built-in layout is Sugiyama's: layers by the longest path, dummy boxes where an arrow passes through layers, an order within
each layer by barycentres, and positions by least squares under the order.  Nothing in it recurses or is quadratic: arrows from
one box to far layers share one trunk of dummies, or a wide fan-out over a deep chain would need one for each layer and arrow.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from shutil import which
from typing import Any

# Fill and border by kind, light enough for black text.
COLOURS = {
    "leaf": ("#d5f0d8", "#3d8b47"),
    "input": ("#dcebfb", "#3b76b5"),
    "constant": ("#eeeeee", "#888888"),
    "operation": ("#fdfdfd", "#555555"),
    "output": ("#ffe3bf", "#c07a1a"),
    "update": ("#f7d6e4", "#b0487c"),
    "note": ("#ffffff", "#aaaaaa"),
}
DASHED = ("note", "constant")
ROUNDED = ("operation", "update")

GRAPHVIZ_BOXES = 1000       # Graphviz takes minutes for deep graphs of more
FONT = "Helvetica, Arial, sans-serif"
SIZE, LINE, PAD = 12, 15, 7           # of text, of a line of it, around it; all lengths are in pixels
GAP, LAYER_GAP, MARGIN = 22, 38, 14   # between boxes, between layers (more where arrows run far to the side), around all
DUMMIES = 30_000            # at most; the arrows that would need more are drawn straight
SWEEPS = 4                  # down and up, of ordering and of positions

NARROW, WIDE = frozenset("iljtfrI.,:;'|!()[]/ "), frozenset("mwMW@%")


@dataclass
class Box:
    """A box of a picture: `label` is its lines of text, `kind` one of COLOURS, `tooltip` what a pointer over it shows."""

    id: str
    label: Sequence[str]
    kind: str = "operation"
    tooltip: str = ""


@dataclass
class Arrow:
    """An arrow from the box whose id is `tail` to the one whose id is `head`."""

    tail: str
    head: str
    label: str = ""


@dataclass
class Picture:
    """A graph as boxes and arrows, to be rendered by `dot` or `svg`.

    >>> print(dot(Picture("", [Box("x", ["x"], "leaf"), Box("y", ["exp"])], [Arrow("x", "y")])))
    """

    title: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)


def _checked(picture):
    """The position of every box by its id; ValueError for what can't be drawn."""
    places = {box.id: i for i, box in enumerate(picture.boxes)}
    if len(places) < len(picture.boxes):
        raise ValueError("two boxes of a picture have the same id")
    for box in picture.boxes:
        if box.kind not in COLOURS:
            raise ValueError(f"box {box.id!r} is of kind {box.kind!r}; the kinds are {', '.join(COLOURS)}")
    for arrow in picture.arrows:
        for end in (arrow.tail, arrow.head):
            if end not in places:
                raise ValueError(f"an arrow leads from {arrow.tail!r} to {arrow.head!r}, but there is no box {end!r}")
    return places


def _plain(text):
    """The text without characters that XML can't hold: controls, surrogates."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", str(text))


# ---- Graphviz source

def _quoted(text):
    """A string of the DOT language: Graphviz reads entities as HTML does, and backslashes as commands."""
    text = _plain(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n") + '"'


def dot(picture: Picture) -> str:
    """The picture as Graphviz source (text), for `dot -Tsvg` and the like; needs nothing installed.

    >>> open("graph.dot", "w").write(dot(picture))
    """
    _checked(picture)
    lines = [f"digraph {_quoted(picture.title or 'graph')} {{",
             "  graph [rankdir=TB, labelloc=t, fontname=Helvetica, nodesep=0.3, ranksep=0.4"
             + (f", label={_quoted(picture.title)}];" if picture.title else "];"),
             "  node [shape=box, fontname=Helvetica, fontsize=11, margin=\"0.12,0.06\"];",
             "  edge [fontname=Helvetica, fontsize=9, color=\"#555555\", arrowsize=0.7];"]
    for box in picture.boxes:
        fill, border = COLOURS[box.kind]
        style = ",".join(["filled", *["rounded"] * (box.kind in ROUNDED), *["dashed"] * (box.kind in DASHED)])
        lines.append(f"  {_quoted(box.id)} [label={_quoted(chr(10).join(box.label))}, style=\"{style}\", fillcolor=\"{fill}\", "
                     f"color=\"{border}\", tooltip={_quoted(box.tooltip or ' '.join(box.label))}];")
    for arrow in picture.arrows:
        label = f" [label={_quoted(arrow.label)}]" if arrow.label else ""
        lines.append(f"  {_quoted(arrow.tail)} -> {_quoted(arrow.head)}{label};")
    return "\n".join([*lines, "}", ""])


# ---- the layout

def _width(text, size=SIZE):
    """About the width of a line of text in a proportional font, rather too much than too little."""
    return size * sum(0.38 if c in NARROW else 0.95 if c in WIDE else 0.72 if c.isupper() else 1.05 if ord(c) > 0x2e80 else 0.62
                      for c in text)


def _layers(n, arrows):
    """The layer of each of n boxes by the longest path to it, and which arrows lead downwards.

    Boxes without inputs, and trees of boxes that only such ones feed, stand just above the first box that they lead to.  Where
    arrows form a cycle, the first box of it in the list comes first, and the arrows back to it lead upwards.
    """
    out, into, layer = [[] for _ in range(n)], [[] for _ in range(n)], [0] * n
    for tail, head in arrows:
        if tail != head:
            out[tail].append(head)
            into[head].append(tail)
    missing = [len(tails) for tails in into]
    ready, done, order, position = [i for i in reversed(range(n)) if not missing[i]], [False] * n, [], 0
    while len(order) < n:
        if not ready:                            # a cycle
            while done[position]:
                position += 1
            ready.append(position)
        box = ready.pop()
        if done[box]:
            continue
        done[box] = True
        order.append(box)
        for head in out[box]:
            if not done[head]:
                layer[head] = max(layer[head], layer[box] + 1)
                missing[head] -= 1
                if not missing[head]:
                    ready.append(head)
    rank = [0] * n
    for i, box in enumerate(order):
        rank[box] = i
    loose = [False] * n                          # may move down without making an arrow longer, trunks from sources aside
    for box in order:
        loose[box] = all(not into[tail] or loose[tail] and len(out[tail]) == 1 for tail in into[box])
    for box in reversed(order):
        if loose[box]:
            layer[box] = max(layer[box], min((layer[head] for head in out[box] if rank[head] > rank[box]), default=1) - 1)
    return layer, [rank[tail] < rank[head] for tail, head in arrows]


class _Grid:
    """Boxes and dummies in layers: `rows` lists each layer from left to right; links lead from one layer to the next."""

    def __init__(self, widths, layer, arrows, downward):
        self.widths, self.layer = list(widths), list(layer)
        self.above, self.below = [[] for _ in widths], [[] for _ in widths]
        self.n = len(widths)
        self.last = [None] * len(arrows)         # where the last part of an arrow starts: its tail, or a dummy
        self._link(arrows, downward)
        self.rows = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for i in self._first_order():
            self.rows[self.layer[i]].append(i)
        self.place = [0] * len(self.widths)
        self.x = [0.0] * len(self.widths)

    def _link(self, arrows, downward):
        """Trunks of dummies: one for each box whose arrows pass through layers, shortest first while there is room."""
        depth = [0] * self.n
        for (tail, head), down in zip(arrows, downward, strict=True):
            if down:
                depth[tail] = max(depth[tail], self.layer[head] - self.layer[tail] - 1)
        trunks, room = {}, DUMMIES
        for tail in sorted(range(self.n), key=depth.__getitem__):
            room -= depth[tail]
            if room < 0:
                break
            trunks[tail] = [tail]
        for tail, trunk in trunks.items():
            for k in range(depth[tail]):
                self.widths.append(0)
                self.layer.append(self.layer[tail] + k + 1)
                self.above.append([trunk[-1]])
                self.below.append([])
                self.below[trunk[-1]].append(len(self.widths) - 1)
                trunk.append(len(self.widths) - 1)
        for k, ((tail, head), down) in enumerate(zip(arrows, downward, strict=True)):
            span = self.layer[head] - self.layer[tail]
            self.last[k] = tail
            if down and (span == 1 or tail in trunks):
                self.last[k] = trunks[tail][span - 1] if span > 1 else tail
                self.above[head].append(self.last[k])
                self.below[self.last[k]].append(head)

    def _first_order(self):
        """Depth first from the top, so that what belongs together starts together."""
        seen, order = [False] * len(self.widths), []
        for top in sorted(range(len(self.widths)), key=lambda i: (self.layer[i], i >= self.n, i)):
            stack = [top]
            while stack:
                i = stack.pop()
                if not seen[i]:
                    seen[i] = True
                    order.append(i)
                    stack += reversed(self.below[i])
        return order

    def _number(self, row):
        for place, i in enumerate(row):
            self.place[i] = place

    def order(self):
        """Sort each layer by the mean place of its neighbours, in the layer above on the way down, below on the way up."""
        for row in self.rows:
            self._number(row)
        for sweep in range(2 * SWEEPS):
            down = sweep % 2 == 0
            links = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                key = {i: sum(self.place[k] for k in links[i]) / len(links[i]) if links[i] else self.place[i] for i in row}
                row.sort(key=key.__getitem__)
                self._number(row)

    def spread(self):
        """Horizontal positions: each near the mean of its neighbours, as far as order and widths allow."""
        for row in self.rows:
            self._settle(row, [0.0] * len(row))
        for sweep in range(2 * SWEEPS):
            down = sweep % 2 == 0
            links = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                self._settle(row, [sum(self.x[k] for k in links[i]) / len(links[i]) if links[i] else self.x[i] for i in row])

    def _settle(self, row, wanted):
        """Least squares under the order: pools of boxes that touch move to the mean of what their members want."""
        offsets, offset = [], 0.0
        for k, i in enumerate(row):
            if k:
                gap = GAP if self.widths[i] or self.widths[row[k - 1]] else GAP / 2
                offset += (self.widths[row[k - 1]] + self.widths[i]) / 2 + gap
            offsets.append(offset)
        pools = []                               # [sum of wishes, weight, members]
        for k, i in enumerate(row):
            weight = 1 if self.widths[i] else 4  # straight trunks
            pools.append([weight * (wanted[k] - offsets[k]), weight, 1])
            while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
                total, weight, members = pools.pop()
                pools[-1][0] += total
                pools[-1][1] += weight
                pools[-1][2] += members
        k = 0
        for total, weight, members in pools:
            for _ in range(members):
                self.x[row[k]] = total / weight + offsets[k]
                k += 1

    def heights(self, heights):
        """(upper edge, lower edge) of every layer, further apart where links run far to the side; and the height of all."""
        edges, y = [], 0.0
        for row in self.rows:
            tall = max((heights[i] for i in row if i < self.n), default=0)
            edges.append((y, y + tall))
            far = max((abs(self.x[i] - self.x[k]) for i in row for k in self.below[i]), default=0)
            y += tall + LAYER_GAP + min(120.0, far * 0.08)
        return edges, edges[-1][1] if edges else 0


# ---- SVG

def _number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _curve(x, y, x2, y2):
    """From (x, y) down to (x2, y2)."""
    n = _number
    if abs(x - x2) < 0.5:
        return f"M{n(x)} {n(y)}L{n(x2)} {n(y2)}"
    middle = n((y + y2) / 2)
    return f"M{n(x)} {n(y)}C{n(x)} {middle} {n(x2)} {middle} {n(x2)} {n(y2)}"


def _aside(x, y, x2, y2):
    """From (x, y) up to (x2, y2), around to the right; also from a box to itself."""
    n, side = _number, max(x, x2) + 40
    return f"M{n(x)} {n(y)}C{n(side)} {n(y)} {n(side)} {n(y2)} {n(x2)} {n(y2)}"


def _built_in(picture, places):
    """The SVG by the layout above."""
    boxes = picture.boxes
    labels = [[line for text in box.label for line in _plain(text).splitlines() or [""]] or [""] for box in boxes]
    widths = [max(1.08 * _width(lines[0]), *map(_width, lines)) + 2 * PAD for lines in labels]      # the first is bold
    heights = [LINE * len(lines) + 2 * PAD for lines in labels]
    arrows = [(places[a.tail], places[a.head]) for a in picture.arrows]
    layer, downward = _layers(len(boxes), arrows)
    grid = _Grid(widths, layer, arrows, downward)
    grid.order()
    grid.spread()
    edges, height = grid.heights(heights)
    x = grid.x
    title = _plain(picture.title)
    top = MARGIN + (LINE + 8 if title else 0)
    left = min((x[i] - grid.widths[i] / 2 for i in range(len(x))), default=0)
    right = max((x[i] + grid.widths[i] / 2 for i in range(len(x))), default=0)
    right += 40 if not all(downward) else 0
    width = max(right - left, _width(title)) + 2 * MARGIN
    x = [value - left + MARGIN for value in x]
    y = [top + sum(edges[grid.layer[i]]) / 2 for i in range(len(x))]
    tall = [heights[i] if i < grid.n else edges[grid.layer[i]][1] - edges[grid.layer[i]][0] for i in range(len(x))]
    w, h = _number(width), _number(height + top + MARGIN)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="{FONT}" '
             f'font-size="{SIZE}">',
             f"<title>{escape(title or 'graph')}</title>",
             '<defs><marker id="ag-head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
             '<path d="M0 0.8L8 4L0 7.2z" fill="#555"/></marker></defs>',
             f'<rect width="{w}" height="{h}" fill="#fff"/>']
    if title:
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + SIZE}" font-weight="bold">{escape(title)}</text>')
    parts += ['<g fill="none" stroke="#555">', *_arrows(picture, grid, arrows, downward, x, y, tall), "</g>"]
    parts += ['<g font-size="10" fill="#555" stroke="#fff" stroke-width="3" paint-order="stroke">',
              *_labels(picture, grid, arrows, downward, x, y, tall), "</g>"]
    parts += [_box(box, labels[i], x[i], y[i], widths[i], heights[i]) for i, box in enumerate(boxes)]
    return "\n".join([*parts, "</svg>", ""])


def _box(box, lines, x, y, width, height):
    """A box with its text and tooltip."""
    fill, border = COLOURS[box.kind]
    n = _number
    shape = (f'<rect x="{n(x - width / 2)}" y="{n(y - height / 2)}" width="{n(width)}" height="{n(height)}" '
             f'fill="{fill}" stroke="{border}"' + (' rx="7"' if box.kind in ROUNDED else "")
             + (' stroke-dasharray="4 3"' if box.kind in DASHED else "") + "/>")
    first = y - height / 2 + PAD + SIZE - 1
    text = "".join(f'<text x="{n(x)}" y="{n(first + LINE * k)}" text-anchor="middle" '
                   f'{"fill=" if k else "font-weight="}"{"#444" if k else "bold"}">{escape(line)}</text>'
                   for k, line in enumerate(lines))
    return f"<g><title>{escape(_plain(box.tooltip or ' '.join(box.label)))}</title>{shape}{text}</g>"


def _heads(grid, arrows, downward, x):
    """Where on its box each arrow ends: side by side, in the order of where they come from."""
    coming = {}
    for k, (_, head) in enumerate(arrows):
        if downward[k]:
            coming.setdefault(head, []).append(k)
    ends = {}
    for head, those in coming.items():
        those.sort(key=lambda k: x[grid.last[k]])
        for place, k in enumerate(those):
            ends[k] = x[head] + grid.widths[head] * ((place + 1) / (len(those) + 1) - 0.5)
    return ends


def _arrows(picture, grid, arrows, downward, x, y, tall):
    """The lines: trunks first, each once, then every arrow's last part."""
    for i in range(grid.n, len(x)):
        above = grid.above[i][0]
        start = y[above] + tall[above] / 2
        curve = _curve(x[above], start, x[i], y[i] - tall[i] / 2)
        yield f'<path d="{curve}L{_number(x[i])} {_number(y[i] + tall[i] / 2)}"/>'
    ends = _heads(grid, arrows, downward, x)
    for k, (tail, head) in enumerate(arrows):
        start = grid.last[k]
        if downward[k]:
            curve = _curve(x[start], y[start] + tall[start] / 2, ends[k], y[head] - tall[head] / 2)
        else:
            shift = tall[tail] / 4 if tail == head else 0
            curve = _aside(x[tail] + grid.widths[tail] / 2, y[tail] + shift, x[head] + grid.widths[head] / 2, y[head] - shift)
        yield f'<path d="{curve}" marker-end="url(#ag-head)"/>'


def _labels(picture, grid, arrows, downward, x, y, tall):
    """The text beside the heads of arrows."""
    ends = _heads(grid, arrows, downward, x)
    for k, arrow in enumerate(picture.arrows):
        if arrow.label:
            head = arrows[k][1]
            right, up = (ends[k] + 5, tall[head] / 2 + 9) if downward[k] else (x[head] + grid.widths[head] / 2 + 12, 4)
            yield f'<text x="{_number(right)}" y="{_number(y[head] - up)}">{escape(_plain(arrow.label))}</text>'


def _graphviz():
    """The graphviz package, or None unless its program is there, too."""
    if which("dot") is None:
        return None
    try:
        return import_module("graphviz")
    except ImportError:
        return None


def svg(picture: Picture, layout: str | None = None) -> str:
    """The picture as SVG (text).

    layout: "graphviz" or "built-in"; by default Graphviz where its Python package and its program are both installed and the
    picture has at most 1000 boxes.  Raises ValueError for other names, RuntimeError where Graphviz is asked for and missing.

    >>> open("graph.svg", "w").write(svg(picture))
    """
    if layout not in (None, "graphviz", "built-in"):
        raise ValueError(f'svg: layout is "graphviz", "built-in" or None, not {layout!r}')
    places = _checked(picture)
    graphviz = None if layout == "built-in" else _graphviz()
    if layout == "graphviz" and graphviz is None:
        raise RuntimeError('svg: layout="graphviz" needs the package graphviz and the program dot; layout="built-in" does not')
    if graphviz is not None and (layout or len(picture.boxes) <= GRAPHVIZ_BOXES):
        return graphviz.Source(dot(picture)).pipe(format="svg", encoding="utf-8")
    return _built_in(picture, places)


# ---- what users call

class Drawing(str):
    """The text of an SVG or DOT file; notebooks show an SVG as the picture."""

    __slots__ = ()

    def _repr_svg_(self):
        return None if self.startswith("digraph") else str(self)


RENDERERS = {".svg": svg, ".dot": dot}


def picture_of(thing, **options):
    """The Picture of a tensor (or several), of what has a method `picture`, or of a Picture; options are those of `of_tensor`."""
    if isinstance(thing, Picture) or hasattr(thing, "picture"):
        if options:
            raise TypeError(f"draw: {', '.join(options)} can be given for tensors only, not for a {type(thing).__name__}")
        return thing if isinstance(thing, Picture) else thing.picture()
    from .live import of_tensor

    return of_tensor(thing, **options)


def draw(thing: Any, path: Any = None, *, format: str = "svg", **options: Any) -> Any:
    """Draw a graph: of a tensor (the operations that led to it), of a program, or a Picture.

    thing: a tensor, a sequence or dict of tensors, anything with a method `picture()`, or a Picture.  path: a file to write,
    ending in .svg or .dot; without it the text is returned (in a notebook, an SVG shows), in `format` "svg" or "dot".
    For tensors, options are `gradients`, `names`, `params` and `limit`, as of `of_tensor`.

    Raises ValueError for other endings or formats, TypeError for what can't be drawn.

    >>> draw(loss, "graph.svg", params=model, gradients=True)
    """
    suffix = "." + str(format) if path is None else os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in RENDERERS:
        raise ValueError(f"draw: format is svg or dot, not {format!r}" if path is None else
                         f"draw: the path ends in .svg or .dot, unlike {os.fspath(path)!r}")
    text = RENDERERS[suffix](picture_of(thing, **options))
    if path is None:
        return Drawing(text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return None
