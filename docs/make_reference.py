"""Write docs/reference/: every operation with its formula, derivatives and special points, every layer, and ag.graph.

Relies on the table of operations, and on the built package for the docstrings of what is made of rows. The pages are not committed.

    make reference        or        python docs/make_reference.py [FOLDER]
"""

import inspect
import re
import sys
from pathlib import Path

import autograd_cy as ag
from autograd_cy.ops import TABLE
from autograd_cy.ops.written import rule_text

FOLDER = Path(__file__).resolve().parent / "reference"
ELEMENTWISE = {row.name for row in TABLE.values() if row.kind == "elementwise" and row.public}
COMPUTED = {"float": "floating point; integers are converted", "number": "every dtype but bool", "all": "every dtype",
            "integral": "integers and bool", "integer": "integers"}
KINDS = {
    "elementwise": ("Elementwise", "Functions and methods of the same name; also in place (`name_`), unless the result is bool."),
    "kernel": ("Reductions, products, indexing, networks, copies", ""),
    "view": ("Views", "The result shares its input's memory."),
}


def plain(text):
    """Text in which Markdown sees no marks."""
    return text.replace("*", r"\*").replace("|", r"\|")


# ---- rows

def derivative(row, i):
    """A derivative as it is written; of a helper, also what it says of itself."""
    said = row.rules[i].__doc__
    return f"`{rule_text(row.name, i)}`" + (f": {said}" if said else "")


def entry(row):
    """The lines of one row."""
    defaults = dict(zip(row.attrs, row.defaults, strict=False))
    arguments = [*row.inputs, *(f"{a}={defaults[a]:g}" if a in defaults else a for a in row.attrs)]
    lines = [f"**{row.name}**({', '.join(arguments)}): {plain(row.doc)}", "", *(f"- d{i} = {derivative(row, i)}" for i in row.rules)]
    if not row.rules and not row.special:
        lines.append("- not differentiable")
    if row.special:
        lines.append(f"- special points: {row.special}")
    if row.kind == "elementwise":
        lines.append(f"- {COMPUTED[row.dtypes]}" + ("; the result is bool" if row.result == "bool" else ""))
    return [*lines, ""]


def operations():
    """The table of operations."""
    lines = ["# Operations", "", f"The {len(TABLE)} rows of `autograd_cy/ops/table`. In a derivative, `g` is the incoming gradient and "
             "`y` the output; broadcasting is undone by the engine, and a gradient of exactly zero stays zero. What is made of "
             "rows is in [functions.md](functions.md).", ""]
    for kind, (title, text) in KINDS.items():
        lines += [f"## {title}", "", *([text, ""] if text else [])]
        for row in TABLE.values():
            if row.kind == kind:
                lines += entry(row)
    return lines


def special_points():
    """Where the value or the derivative is a convention."""
    lines = ["# Special points", "", "Where a derivative is a convention, or a formula would give NaN where mathematics has a number; "
             "`tests/test_special_points.py` has the values. Everywhere: where the incoming gradient is 0, the gradient is 0, however "
             "large the local derivative, so that `where(x > 0, sqrt(x), 0)` has a gradient at 0.", "",
             "| operation | formula | at |", "|---|---|---|"]
    return lines + [f"| {row.name} | {plain(row.doc)} | {plain(row.special)} |" for row in TABLE.values() if row.special] + [""]


# ---- what has docstrings

def called(name, function):
    """A function with its parameters, without the annotations."""
    try:
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
        parameters = [p for p in parameters if p.name not in ("self", "_self", "cls")]
    except (TypeError, ValueError):
        return name
    return name + re.sub(r"<(class|function|object|built-in).*?>", "...", str(inspect.Signature(parameters)))


def documented(title, thing):
    """A heading, and a docstring as paragraphs; its examples as code."""
    lines, code = [f"**{plain(title)}**", ""], False
    text = re.sub(r"\A\w+\(.*\)( -> \S+)?\n*", "", inspect.getdoc(thing) or "")      # compiled functions begin with their signature
    for line in text.split("\n"):
        starts = line.startswith((">>>", "..."))
        if starts and not code:
            lines.append("```python")
        elif code and not line:
            lines.append("```")
        code = starts or (code and bool(line))
        lines.append(line.removeprefix(">>> ").removeprefix("... ") if starts else line if code else plain(line))
    return [*lines, *(["```"] if code else []), ""]


def public(space):
    """(name, thing) of what a namespace offers, without modules."""
    names = getattr(space, "__all__", None) or vars(space)
    found = ((n, getattr(space, n)) for n in sorted(names) if not n.startswith("_"))
    return [(n, thing) for n, thing in found if not inspect.ismodule(thing)]


def functions():
    """Functions that are no elementwise rows, by namespace; methods and forms in place have the same names."""
    lines = ["# Functions", "", "What is made of rows, creates tensors or asks about them; methods of tensors and forms in place "
             "(`name_`) are called like the functions.", ""]
    spaces = {"ag": ag, "ag.linalg": ag.linalg, "ag.special": ag.special, "ag.autograd": ag.autograd, "ag.nn.functional": ag.nn.functional,
              "ag.nn.init": ag.nn.init, "ag.nn.utils": ag.nn.utils}
    if hasattr(ag, "func"):
        spaces["ag.func"] = ag.func
    for path, space in spaces.items():
        lines += [f"## {path}", ""]
        for name, thing in public(space):
            if callable(thing) and not inspect.isclass(thing) and not name.endswith("_") and name not in ELEMENTWISE:
                lines += documented(called(f"{path}.{name}", thing), thing)
    methods = [n for n in sorted(dir(ag.Tensor)) if not n.startswith("_") and not hasattr(ag, n) and not n.endswith("_")]
    lines += ["## Methods of ag.Tensor that are no functions of ag", ""]
    for name in methods:
        thing = getattr(ag.Tensor, name)
        lines += documented(called(f"Tensor.{name}", thing) if callable(thing) else f"Tensor.{name}", thing)
    return lines


def classes(title, spaces):
    """Classes by namespace, with their public methods where they are few."""
    lines = [f"# {title}", ""]
    for path, space in spaces.items():
        lines += [f"## {path}", ""]
        for name, thing in public(space):
            if inspect.isclass(thing):
                lines += documented(called(f"{path}.{name}", thing), thing)
    return lines


def graph():
    """ag.compile and ag.graph; its classes with their methods."""
    lines = ["# ag.compile and ag.graph", "", "[compile.md](../compile.md) and [pictures.md](../pictures.md) introduce them.", ""]
    lines += documented(called("ag.compile", ag.compile), ag.compile)
    for name, thing in public(ag.graph):
        if not inspect.isclass(thing):
            if callable(thing):
                lines += documented(called(f"ag.graph.{name}", thing), thing)
            continue
        lines += documented(f"class ag.graph.{name}", thing)
        for method, value in vars(thing).items():
            if not method.startswith("_") and inspect.getdoc(value) and (callable(value) or isinstance(value, property)):
                lines += documented(f"{name}.{method}" if isinstance(value, property) else called(f"{name}.{method}", value), value)
    return lines


LAYERS = {"ag.nn": ag.nn, "ag.optim": ag.optim, "ag.optim.lr_scheduler": ag.optim.lr_scheduler, "ag.utils.data": ag.utils.data}
PAGES = {
    "operations": operations, "special_points": special_points, "functions": functions, "graph": graph,
    "layers": lambda: classes("Layers, optimisers and data", LAYERS),
}


def write(folder=FOLDER):
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in PAGES.items():
        (folder / f"{name}.md").write_text("\n".join(lines()).rstrip("\n") + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
