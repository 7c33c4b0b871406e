"""Write docs/reference.md: the table of operations (formula, derivatives as they stand there, dtypes, special points), and ag.graph.

Relies on autograd_cy/ops, by its source and as data, and on the sources of autograd_cy/graph: nothing has to be built. The page is
not committed.

    python docs/make_reference.py [FILE]
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "autograd_cy"))
from ops.table import TABLE  # noqa: E402  the table alone, without the package around it
from ops.written import rule_text  # noqa: E402


HEAD = """# Operations

Written by docs/make_reference.py from `autograd_cy/ops/table`; {count} rows. In a derivative, `g` is the incoming gradient and
`y` the output; broadcasting is undone by the engine, and a gradient of exactly zero stays zero.
"""
KINDS = {
    "elementwise": "Elementwise: functions and methods of the same name; also in place (`name_`), unless the result is bool",
    "kernel": "Reductions, products, indexing, losses of rows, copies",
    "view": "Views: the result shares its input's memory",
}


def derivative(row, i):
    """A derivative as it is written; of a helper, also what it says of itself."""
    said = row.rules[i].__doc__
    return f"`{rule_text(row.name, i)}`" + (f": {said}" if said else "")


def entry(row):
    """The lines of one row."""
    defaults = dict(zip(row.attrs, row.defaults, strict=False))
    arguments = [*row.inputs, *(f"{a}={defaults[a]:g}" if a in defaults else a for a in row.attrs)]
    doc = row.doc.replace("*", r"\*")
    lines = [f"**{row.name}**({', '.join(arguments)}): {doc}", ""]
    lines += [f"- d{i} = {derivative(row, i)}" for i in row.rules]
    if not row.rules and not row.special:
        lines.append("- not differentiable")
    if row.special:
        lines.append(f"- {row.special}")
    if row.kind == "elementwise":
        computed = {"float": "floating point; integers are converted", "number": "every dtype but bool", "all": "every dtype",
                    "integral": "integers and bool", "integer": "integers"}
        lines.append(f"- {computed[row.dtypes]}" + ("; the result is bool" if row.result == "bool" else ""))
    return [*lines, ""]


def signature(node):
    """The parameters of a function, as in its source."""
    node.args.args = [a for a in node.args.args if a.arg not in ("self", "cls")]
    return f"({ast.unparse(node.args)})"


def described(title, node):
    """A heading, and a docstring as paragraphs; its examples as code."""
    lines, code = ["**" + title.replace("*", r"\*") + "**", ""], False
    for line in (ast.get_docstring(node) or "").split("\n"):
        starts = line.startswith((">>>", "..."))
        if starts and not code:
            lines += ["```python"]
        elif code and not line:
            lines += ["```"]
        code = starts or (code and bool(line))
        lines.append(line.removeprefix(">>> ").removeprefix("... ") if starts else line if code else line.replace("*", r"\*"))
    return [*lines, *(["```"] if code else []), ""]


def graph():
    """The public names of ag.graph, in the order of their modules; `Compiled`, `Program` and `Models` with their methods."""
    folder = ROOT / "autograd_cy" / "graph"
    lines = ["## ag.compile and ag.graph", "", "[compile.md](compile.md) and [pictures.md](pictures.md) introduce them.", ""]
    for source in ast.parse((folder / "__init__.py").read_text()).body:
        if not isinstance(source, ast.ImportFrom):
            continue
        path = folder / f"{source.module}.py"
        if not path.exists():
            continue
        found = {n.name: n for n in ast.parse(path.read_text()).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        for name in [alias.name for alias in source.names if alias.name in found]:
            node = found[name]
            if isinstance(node, ast.FunctionDef):
                called = "ag.compile" if name == "compile" else f"ag.graph.{name}"
                lines += described(f"{called}{signature(node)}", node)
                continue
            lines += described(f"class ag.graph.{name}", node)
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method):
                    is_property = any(getattr(d, "id", "") == "property" for d in method.decorator_list)
                    lines += described(f"{name}.{method.name}{'' if is_property else signature(method)}", method)
    return lines


def page():
    """The text of the page."""
    lines = [HEAD.format(count=len(TABLE))]
    for kind, title in KINDS.items():
        head, _, text = title.partition(": ")
        lines += [f"## {head}", "", *([text[0].upper() + text[1:], ""] if text else [])]
        for row in TABLE.values():
            if row.kind == kind:
                lines += entry(row)
    lines += graph()
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "reference.md").write_text(page())
