"""Pictures of graphs and step-throughs of backward passes: exact small graphs, well-formed files, large graphs, the same bytes as backward.

Relies on autograd_cy.graph's picture, live and trace.
"""

import gc
import re
import time
import types
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.graph import picture as pictures
from autograd_cy.graph.live import of_tensor
from autograd_cy.graph.picture import Arrow, Box, Picture, dot, draw, svg
from autograd_cy.graph.trace import trace_backward
from autograd_cy.ops.written import rule_text
from autograd_cy.ops import TABLE

SVG = "{http://www.w3.org/2000/svg}"
HERE = __file__.replace("\\", "/").rsplit("/", 1)[1]
NASTY = 'a "quoted" <b>&amp;</b> \\N back\\slash\nand a {record|field} \u00e9\u4e2d \x00\ud800 ]]> -- {}'


def leaf(*values, **options):
    return ag.tensor(list(values), requires_grad=True, **options)


def box_of(picture, name):
    """The one box whose first line is `name`."""
    (found,) = [box for box in picture.boxes if box.label[0] == name]
    return found


def arrows_of(picture):
    """{(first line of the tail, first line of the head, label)}, sorted."""
    names = {box.id: box.label[0] for box in picture.boxes}
    return sorted((names[a.tail], names[a.head], a.label) for a in picture.arrows)


def texts(source):
    """The lines of text of an SVG."""
    return [t.text for t in ET.fromstring(source).iter(f"{SVG}text")]


# ---- a small reader of the DOT language, enough for what `dot` writes

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[\[\]{};=,]|[\w.#]+)', re.DOTALL)


def tokens(source):
    """The tokens of DOT source; fails at what is none."""
    position, found = 0, []
    source = source.rstrip()
    while position < len(source):
        match = TOKEN.match(source, position)
        assert match, f"no token at {source[position:position + 40]!r}"
        found.append(match[1])
        position = match.end()
    return found


def unquoted(token):
    """What Graphviz shows for a quoted string."""
    text = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)
    return text.replace("&amp;", "&")


def read_dot(source):
    """({node: label}, [(tail, head, label)]) of DOT source."""
    words = tokens(source)
    assert words[0] == "digraph" and words[2] == "{" and words[-1] == "}"
    nodes, edges, statement, depth = {}, [], [], 0
    for word in words[3:-1]:
        depth += (word == "[") - (word == "]")
        assert depth in (0, 1)
        if word != ";" or depth:
            statement.append(word)
            continue
        label = unquoted(statement[statement.index("label") + 2]) if "label" in statement else ""
        if statement[1:2] == ["->"]:
            edges.append((unquoted(statement[0]), unquoted(statement[2]), label))
        elif statement[0][0] == '"':
            nodes[unquoted(statement[0])] = label
        statement = []
    assert not statement and depth == 0
    return nodes, edges


# ---- the renderers

def example():
    return Picture("two & <two>", [Box("x", ["x", "(3,) float32"], "leaf"), Box("i", ["x"], "input"), Box("c", ["c"], "constant"),
                                   Box("f", ["mul"], "operation", "tip"), Box("u", ["sgd"], "update"), Box("o", ["y"], "output"),
                                   Box("n", ["more"], "note")],
                   [Arrow("x", "f", "a"), Arrow("c", "f", "b"), Arrow("f", "o"), Arrow("f", "u"), Arrow("u", "x"), Arrow("i", "f")])


def test_dot_of_a_picture():
    nodes, edges = read_dot(dot(example()))
    assert nodes == {"x": "x\n(3,) float32", "i": "x", "c": "c", "f": "mul", "u": "sgd", "o": "y", "n": "more"}
    assert edges == [("x", "f", "a"), ("c", "f", "b"), ("f", "o", ""), ("f", "u", ""), ("u", "x", ""), ("i", "f", "")]


def test_dot_of_hostile_text():
    picture = Picture(NASTY, [Box(NASTY, [NASTY, '"'], "leaf", NASTY), Box("\\", ["\\"])], [Arrow(NASTY, "\\", '\\"')])
    nodes, edges = read_dot(dot(picture))
    shown = NASTY.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert nodes == {shown: shown + '\n"', "\\": "\\"}
    assert edges == [(shown, "\\", '\\"')]
    dot(picture).encode()


def test_svg_of_hostile_text():
    picture = Picture(NASTY, [Box(NASTY, [NASTY, ""], "leaf", NASTY), Box("\\", [])], [Arrow(NASTY, "\\", "<a>")])
    source = svg(picture, "built-in")
    source.encode()
    shown = NASTY.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert texts(source)[0] == shown
    assert texts(source)[2:4] == shown.split("\n") and "<a>" in texts(source)


def test_svg_of_every_kind():
    root = ET.fromstring(svg(example(), "built-in"))
    assert {r.get("fill") for r in root.iter(f"{SVG}rect")} >= {fill for fill, _ in pictures.COLOURS.values()}
    assert sum(1 for p in root.iter(f"{SVG}path") if p.get("marker-end")) == 6
    assert "tip" in [t.text for t in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("boxes", [[], [Box("a", ["a"])], [Box("a", []), Box("b", [""])]], ids=["none", "one", "without text"])
def test_tiny_pictures(boxes):
    picture = Picture("", boxes)
    root = ET.fromstring(svg(picture, "built-in"))
    assert float(root.get("width")) > 0 and float(root.get("height")) > 0
    assert len(read_dot(dot(picture))[0]) == len(boxes)


def boxes_drawn(source):
    """[(x, y, width, height)] of the boxes of an SVG."""
    root = ET.fromstring(source)
    return [tuple(float(g.find(f"{SVG}rect").get(k)) for k in ("x", "y", "width", "height"))
            for g in root.iter(f"{SVG}g") if g.find(f"{SVG}rect") is not None]


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap_and_arrows_lead_down(seed):
    rng = np.random.default_rng(seed)
    boxes = [Box(str(i), [str(i) * int(rng.integers(1, 9))] * int(rng.integers(1, 4))) for i in range(40)]
    arrows = [Arrow(str(i), str(k)) for i, k in sorted({tuple(sorted(p)) for p in rng.integers(0, 40, (70, 2)).tolist()}) if i < k]
    source = svg(Picture("", boxes, arrows), "built-in")
    places = boxes_drawn(source)
    assert len(places) == 40
    assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if overlap(a, b)]
    assert all(places[int(a.tail)][1] + places[int(a.tail)][3] <= places[int(a.head)][1] for a in arrows)
    width, height = (float(ET.fromstring(source).get(k)) for k in ("width", "height"))
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in places)


def test_cycles_and_loops_are_drawn():
    picture = Picture("", [Box(c, [c]) for c in "abc"], [Arrow("a", "b"), Arrow("b", "c"), Arrow("c", "a"), Arrow("b", "b", "again")])
    source = svg(picture, "built-in")
    assert sum(1 for p in ET.fromstring(source).iter(f"{SVG}path") if p.get("marker-end")) == 4
    assert "again" in texts(source)
    a, b, c = boxes_drawn(source)
    assert a[1] < b[1] < c[1]


@pytest.mark.parametrize("render", [dot, svg])
def test_pictures_that_cannot_be_drawn(render):
    with pytest.raises(ValueError, match="no box 'b'"):
        render(Picture("", [Box("a", ["a"])], [Arrow("a", "b")]))
    with pytest.raises(ValueError, match="same id"):
        render(Picture("", [Box("a", ["a"]), Box("a", ["b"])]))
    with pytest.raises(ValueError, match="kinds are leaf, input"):
        render(Picture("", [Box("a", ["a"], "leave")]))


def test_the_layout_is_repeatable():
    assert svg(example(), "built-in") == svg(example(), "built-in")


def test_graphviz_draws_where_it_is_installed(monkeypatch):
    class Source:
        def __init__(self, source):
            self.source = source

        def pipe(self, format, encoding):
            return f"{format} {encoding} {self.source}"

    monkeypatch.setitem(__import__("sys").modules, "graphviz", types.SimpleNamespace(Source=Source))
    monkeypatch.setattr(pictures, "which", lambda name: "/bin/" + name)
    assert svg(example()) == "svg utf-8 " + dot(example()) == svg(example(), "graphviz")
    assert svg(example(), "built-in").startswith("<svg")
    monkeypatch.setattr(pictures, "GRAPHVIZ_BOXES", 3)
    assert svg(example()).startswith("<svg"), "too large for Graphviz"
    monkeypatch.setattr(pictures, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="needs the package graphviz"):
        svg(example(), "graphviz")
    assert svg(example()).startswith("<svg")
    with pytest.raises(ValueError, match="neato"):
        svg(example(), "neato")


# ---- draw

def test_draw_writes_files(tmp_path):
    x = leaf(1.0, 2.0)
    y = x * x
    assert draw(y, tmp_path / "graph.svg", names={"x": x}) is None
    assert draw(y, str(tmp_path / "graph.DOT"), names={"x": x}) is None
    ET.fromstring((tmp_path / "graph.svg").read_text("utf-8"))
    assert read_dot((tmp_path / "graph.DOT").read_text("utf-8"))[0]["leaf1"] == "x\n(2,) float32"
    for path in ("graph.png", "graph", "svg"):
        with pytest.raises(ValueError, match=r"ends in \.svg or \.dot"):
            draw(y, tmp_path / path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.DOT", "graph.svg"]


def test_draw_returns_text():
    picture = example()
    text = draw(picture, format="dot")
    assert text == dot(picture) and text._repr_svg_() is None
    assert draw(picture) == svg(picture) == draw(picture)._repr_svg_()
    assert draw(types.SimpleNamespace(picture=lambda: picture)) == svg(picture)
    with pytest.raises(ValueError, match="svg or dot"):
        draw(picture, format="png")
    with pytest.raises(TypeError, match="names can be given for tensors only"):
        draw(picture, names={})
    for wrong in (3, "x", None, [1], {"a": 2}):
        with pytest.raises(TypeError, match="drawn of"):
            draw(wrong)


# ---- live graphs

def test_a_small_graph():
    x, y, c = leaf([1.0, 2.0], [3.0, 4.0]), leaf(3.0, 4.0), ag.tensor([5.0, 6.0], dtype=ag.float64)
    z = (x * y + c).sum(dim=0) * 2.0
    picture = of_tensor(z, names={"x": x, "y": y}, title="t")
    line = f"{HERE}:{z.grad_fn.line.rsplit(':', 1)[1]}"
    assert picture.title == "t"
    assert [(b.kind, *b.label) for b in picture.boxes] == [
        ("operation", "mul", "(2, 2) float32", line), ("leaf", "y", "(2,) float32"), ("leaf", "x", "(2, 2) float32"),
        ("operation", "add", "(2, 2) float64", line), ("constant", "no gradient", "(2,) float64"),
        ("operation", "sum", "(2,) float64", "dim = (0,), keepdim = False", line),
        ("operation", "mul", "(2,) float64", "b = 2.0", line), ("output", "output", "(2,) float64")]
    ids = {b.id: b.label[0] for b in picture.boxes}
    assert [(a.tail, ids[a.head], a.label) for a in picture.arrows] == [
        ("leaf2", "mul", "b"), ("leaf1", "mul", "a"), ("op2.1", "add", "b"), ("op1", "add", "a"), ("op2", "sum", ""), ("op3", "mul", "a"),
        ("op4", "output", "")]
    tip = picture.boxes[0].tooltip
    assert tip.startswith("#1 mul: a * b") and tip.endswith(f"recorded at {z.grad_fn.line}")


def test_shared_nodes_and_leaves_are_drawn_once():
    x = leaf(1.0)
    y = x.exp()
    z = y * y + y * x
    picture = of_tensor(z)
    assert sorted(b.label[0] for b in picture.boxes) == ["add", "exp", "leaf", "mul", "mul", "output"]
    assert arrows_of(picture) == [("add", "output", ""), ("exp", "mul", "a"), ("exp", "mul", "a"), ("exp", "mul", "b"),
                                  ("leaf", "exp", ""), ("leaf", "mul", "b"), ("mul", "add", "a"), ("mul", "add", "b")]


def test_operations_with_several_outputs():
    x = leaf(1.0, 2.0, 3.0)
    a, b = x.split([1, 2])
    picture = of_tensor(ag.cat([b, a, b * 3]), names={"tail": b})
    assert box_of(picture, "pieces").label[1:3] == ["output 0: (1,) float32", "output 1: tail: (2,) float32"]
    assert arrows_of(picture) == [("concatenate", "output", ""), ("leaf", "pieces", ""), ("mul", "concatenate", "xs[2]"),
                                  ("pieces", "concatenate", "xs[0] [1]"), ("pieces", "concatenate", "xs[1]"), ("pieces", "mul", "a [1]")]


def test_several_outputs():
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sum()
    picture = of_tensor({"y": y, "z": z, "again": x})
    assert sorted(b.label[0] for b in picture.boxes if b.kind == "output") == ["again", "y", "z"]
    assert sum(b.label[0] == "exp" for b in picture.boxes) == 1
    assert ("leaf", "again", "") in arrows_of(picture) and ("exp", "y", "") in arrows_of(picture)
    first, second = x.split(1)
    picture = of_tensor([second, first])
    assert [b.label for b in picture.boxes if b.kind == "output"] == [["output", "(1,) float32"]] * 2
    assert arrows_of(picture) == [("leaf", "pieces", ""), ("pieces", "output", ""), ("pieces", "output", "[1]")]


def test_leaves_alone():
    picture = of_tensor(leaf(1.0))
    assert [(b.kind, *b.label) for b in picture.boxes] == [("leaf", "leaf", "(1,) float32")] and not picture.arrows
    picture = of_tensor(ag.tensor(1))
    assert [(b.kind, *b.label) for b in picture.boxes] == [("constant", "constant", "() int64")]


def test_scalars_and_empty_tensors():
    x, e = ag.tensor(2.0, requires_grad=True), ag.zeros(0, 3, requires_grad=True)
    z = x * x + e.sum()
    z.backward(retain_graph=True)
    picture = of_tensor(z, gradients=True)
    assert ["leaf", "() float32", "grad: 4"] in [b.label for b in picture.boxes]
    assert ["leaf", "(0, 3) float32", "grad: empty, (0, 3)"] in [b.label for b in picture.boxes]
    ET.fromstring(draw(z))


def test_names_of_parameters_and_gradients():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    loss = model(ag.ones(4, 2)).sum()
    kinds = {b.label[0]: b.kind for b in of_tensor(loss, params=model).boxes}
    assert {k for k, v in kinds.items() if v == "leaf"} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert "Parameter" in {b.label[0] for b in of_tensor(loss).boxes}
    loss.backward(retain_graph=True)
    model[2].bias.grad = ag.tensor([-4.0])
    model[2].weight.grad = ag.tensor([[3.0, -4.0, 0.0]])
    found = of_tensor(loss, params=dict(model.named_parameters()), names={"w": model[2].weight}, gradients=True)
    assert box_of(found, "2.bias").label[2] == "grad: -4"
    assert box_of(found, "w").label[2] == "grad: norm 5, from -4 to 3"
    assert not any("grad" in line for b in of_tensor(loss, params=model).boxes for line in b.label[1:])
    with pytest.raises(TypeError, match="'w' leads to a int"):
        of_tensor(loss, names={"w": 1})


def test_inner_names_and_numbers():
    x = leaf(1.0)
    h = 3 ** x
    picture = of_tensor((h + 1.5) * True, names={"h": h})
    assert box_of(picture, "pow").label[1:3] == ["h: (1,) float32", "a = 3"]
    assert box_of(picture, "add").label[2] == "b = 1.5"           # kept though its rule does not need it
    assert box_of(picture, "mul").label[2] == "b = True"
    loss = nn.functional.mse_loss(x, ag.ones(1))
    assert "reduction = mean" in box_of(of_tensor(loss), "mse_loss").label[2]
    loss.backward()
    assert box_of(of_tensor(loss), "mse_loss"), "also when its saved values are gone"


def test_nodes_say_what_they_are():
    x = leaf(1.0, 2.0)
    node = (x * 2.5).grad_fn
    assert node.inputs == (((2,), ag.float32), 2.5) and node.attributes == {}
    later = x.sum(dim=0).grad_fn
    assert later.attributes == {"dim": (0,), "keepdim": False} and later.sequence_nr > node.sequence_nr
    assert nn.functional.l1_loss(x, x, reduction="sum").grad_fn.attributes == {"reduction": "sum"}
    assert ag.cat([x] * 6).grad_fn.inputs == (((2,), ag.float32),) * 6


def test_lines_can_be_off():
    ag.set_record_lines(False)
    try:
        y = leaf(1.0).exp()
    finally:
        ag.set_record_lines(True)
    assert box_of(of_tensor(y), "exp").label == ["exp", "(1,) float32"]


# ---- large graphs

def chain(n, x, w):
    for _ in range(n):
        x = x * w
    return x


def test_a_long_chain():
    w = leaf(1.0)
    picture = of_tensor(chain(5000, w, w), limit=10**6)
    assert len(picture.boxes) == 5002 and len(picture.arrows) == 10001
    start = time.perf_counter()
    root = ET.fromstring(svg(picture, "built-in"))
    assert time.perf_counter() - start < 10
    assert sum(1 for p in root.iter(f"{SVG}path") if p.get("marker-end")) == 10001


def test_a_wide_fan_out():
    x = leaf(1.0)
    picture = of_tensor(ag.stack([x * i for i in range(1, 1001)]).sum(), limit=10**6)
    assert len(picture.boxes) == 1000 + 4
    start = time.perf_counter()
    assert len(boxes_drawn(svg(picture, "built-in"))) == len(picture.boxes)
    assert time.perf_counter() - start < 10


def test_long_arrows_from_many_boxes():
    boxes = [Box(str(i), [str(i)]) for i in range(1500)]
    arrows = [Arrow(str(i), str(i + 1)) for i in range(1499)] + [Arrow(str(i), str(1499 - i)) for i in range(700)]
    start = time.perf_counter()
    root = ET.fromstring(svg(Picture("", boxes, arrows), "built-in"))
    assert time.perf_counter() - start < 10
    assert sum(1 for p in root.iter(f"{SVG}path") if p.get("marker-end")) == len(arrows)


def test_large_graphs_are_cut():
    w, v = leaf(1.0), leaf(2.0)
    top = chain(99_990, v, v) * w
    z = chain(9, top, w)
    start = time.perf_counter()
    picture = of_tensor(z, names={"w": w}, limit=11)
    assert time.perf_counter() - start < 10
    more = box_of(picture, "99,990 more operations")
    assert more.kind == "note" and list(more.label[1:]) == ["and 1 more leaf", "not drawn"]
    assert [b.label[0] for b in picture.boxes] == ["99,990 more operations", *["mul"] * 9, "mul", "w", "output"]
    assert ("99,990 more operations", "mul", "a") not in arrows_of(picture)
    assert ("99,990 more operations", "mul", "") in arrows_of(picture)
    picture = of_tensor(chain(20, w, w), limit=5)
    assert ("leaf", "17 more operations", "") not in arrows_of(picture)
    assert ("leaf", "16 more operations", "") in arrows_of(picture), "w leads to what is left out, too"
    assert [b.label[0] for b in of_tensor(ag.cat([leaf(1.0) for _ in range(9)]).exp(), limit=1).boxes] \
        == ["1 more operation", "exp", "output"]
    with pytest.raises(ValueError, match="at least one"):
        of_tensor(z, limit=0)


# ---- step-throughs

def test_trace_equals_the_hand_worked_steps():
    x, y = ag.tensor(3.0, requires_grad=True), ag.tensor(2.0, requires_grad=True)
    seen = []
    trace = trace_backward(x * y + x, names={"x": x, "y": y}, show=seen.append)
    assert seen == trace and len(trace) == 2
    add, mul = trace
    assert (add.node, add.operation, add.number, mul.node, mul.operation, mul.number) == ("AddBackward", "add", 2, "MulBackward", "mul", 1)
    assert [g.item() for g in add.gradients + mul.gradients] == [1, 1]
    assert [(c.input, c.rule, c.gradient.item(), c.target, c.leaf, c.added) for s in trace for c in s.contributions] == [
        ("a", "g", 1, "#1 mul", False, False), ("b", "g", 1, "x", True, False),
        ("a", "g * b", 2, "x", True, True), ("b", "g * a", 3, "y", True, False)]
    assert (x.grad.item(), y.grad.item()) == (3, 3)
    line = f"{HERE}:{add.line.rsplit(':', 1)[1]}"
    assert str(add) == f"#2 add at {line}: g = 1: da = g = 1 first to #1 mul; db = g = 1 first to leaf x"
    lines = str(trace).splitlines()
    assert [re.split(r"  +", text.strip()) for text in lines] == [
        ["node", "recorded at", "incoming gradient g", "rule", "gives", "goes"],
        ["1", "#2 add", line, "1", "da = g", "1", "first to #1 mul"], ["db = g", "1", "first to leaf x"],
        ["2", "#1 mul", line, "1", "da = g * b", "2", "added to leaf x"], ["db = g * a", "3", "first to leaf y"]]
    assert str(trace) == repr(trace)


def mlp():
    ag.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    return nn.functional.cross_entropy(model(ag.rand(5, 4)), ag.tensor([0, 1, 2, 0, 1])), list(model.parameters())


def shared():
    ag.manual_seed(4)
    w = ag.rand(3, 4, requires_grad=True)
    b = ag.rand(4, requires_grad=True, dtype=ag.float64)
    h = (w + b).exp()
    a, c = h.split([1, 2])
    return (a * c).sum() + (h.T @ h).mean() + w.amax() + b[::2].prod() + h.sin().mean() + ag.cat([b, b]).logsumexp(dim=0), [w, b]


def inplace():
    ag.manual_seed(5)
    w = ag.rand(3, 4, requires_grad=True)
    h = w * 2
    h[1] = w[0].exp()
    h.relu_()
    return h.sum(dim=0).norm(), [w]


@pytest.mark.parametrize("graph", [mlp, shared, inplace])
@pytest.mark.parametrize("before", [False, True], ids=["fresh", "added to older gradients"])
def test_trace_gives_the_bytes_of_backward(graph, before):
    loss, leaves = graph()
    expected_loss, expected_leaves = graph()
    if before:
        for t in leaves + expected_leaves:
            t.grad = ag.full_like(t, 0.1).detach()
    trace = trace_backward(loss)
    expected_loss.backward()
    for got, expected in zip(leaves, expected_leaves):
        assert got.grad.numpy().tobytes() == expected.grad.numpy().tobytes() and got.grad.stride() == expected.grad.stride()
    assert [s.number for s in trace] == sorted((s.number for s in trace), reverse=True)
    assert all(isinstance(c.rule, str) and c.rule != "?" for s in trace for c in s.contributions)
    totals = {}
    for step in trace:
        for c in step.contributions:
            assert c.added == (c.target in totals)
            totals[c.target] = totals[c.target] + c.gradient if c.added else c.gradient
    for step in trace[1:]:
        for k, g in enumerate(step.gradients):
            name = f"#{step.number} {step.operation}" + (f" [{k}]" if k else "")
            assert g is None or g.numpy().tobytes() == totals[name].numpy().tobytes(), "what came in is the sum of what was given"
    str(trace)


def test_trace_takes_the_options_of_backward():
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(RuntimeError, match="pass gradient="):
        trace_backward(y)
    trace_backward(y, ag.tensor([1.0, 10.0]), retain_graph=True)
    assert x.grad.tolist() == [2, 40]
    trace = trace_backward(y, ag.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [4, 80] and trace[0].gradients[0].tolist() == [1, 10]
    with pytest.raises(RuntimeError, match="second time"):
        trace_backward(y, ag.tensor([1.0, 10.0]))
    with pytest.raises(TypeError, match="must be a tensor"):
        trace_backward(3.0)
    with pytest.raises(RuntimeError, match="does not require"):
        trace_backward(ag.tensor(1.0))


def test_trace_of_a_leaf():
    x = ag.tensor(1.0, requires_grad=True)
    assert trace_backward(x) == []
    assert x.grad.item() == 1


def test_copies_do_not_change_later():
    x = leaf(1.0, 2.0)
    y = x.exp()
    trace = trace_backward((y + y * 2).sum())
    assert [s.gradients[0].tolist() for s in trace if s.operation == "mul"] == [[1, 1]]
    assert trace[-1].gradients[0].tolist() == [3, 3] and trace[-1].contributions[0].gradient.tolist() == x.grad.tolist()
    x.grad.zero_()
    assert trace[-1].contributions[0].gradient.tolist() != [0, 0]
    assert not trace[-1].gradients[0].requires_grad


def test_trace_says_what_the_engine_does_around_rules():
    x, b = ag.ones(2, 3, requires_grad=True), ag.ones(3, requires_grad=True)
    mse, add = trace_backward(nn.functional.mse_loss(x + b, ag.zeros(2, 3)))
    assert mse.contributions[0].rule.endswith(" with g / n for g")
    assert [c.rule for c in add.contributions] == ["g", "g, summed to (3,)"]
    a, c = x.unbind()
    pieces = trace_backward(c.sum())[-1]
    assert pieces.gradients[0] is None and pieces.gradients[1].shape == (3,) and "none, " in str(pieces)


def test_retained_gradients_and_nested_passes_during_a_trace():
    x = leaf(1.0)
    y = x * 3
    y.retain_grad()
    other = leaf(5.0)

    def show(step):
        with ag.enable_grad():
            (other * other).backward()

    trace_backward(y * y, show=show)
    assert (x.grad.item(), y.grad.item(), other.grad.item()) == (18, 6, 20)


def test_what_show_raises_stops_the_pass():
    x = leaf(1.0)
    y = x.exp().exp()

    def show(step):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        trace_backward(y, retain_graph=True, show=show)
    assert x.grad is None
    assert len(trace_backward(y)) == 2, "the next pass starts clean"
    expected = leaf(1.0)
    expected.exp().exp().backward()
    assert x.grad.item() == expected.grad.item()


def test_traces_leave_nothing_behind():
    x = leaf(1.0, 2.0)
    gc.disable()
    try:
        trace_backward((x * x + x).sum())
        before = ag.memory_stats()["allocated_bytes"]
        for _ in range(20):
            trace_backward((x * x + x).sum())
        assert ag.memory_stats()["allocated_bytes"] == before
    finally:
        gc.enable()


def test_a_long_trace():
    w = leaf(1.0)
    assert len(trace_backward(chain(20_000, w, w))) == 20_000
    assert w.grad.item() == 20_001


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.name)
def test_every_rule_has_a_text(row):
    for name in row.rules:
        text = rule_text(row.name, name)
        assert text and "lambda" not in text and not text.startswith("the rule of")


def test_rules_without_sources(monkeypatch):
    monkeypatch.setattr("autograd_cy.ops.written._written_rules", dict)
    assert rule_text("mul", "a") == "the rule of mul for a"
    assert rule_text("amax", "x") == "_share(g, x, y, x_shape, dim, keepdim)"
