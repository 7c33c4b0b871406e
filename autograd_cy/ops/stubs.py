"""The parts of the type stubs that follow from the table: functions and methods of elementwise rows.

Relies on the table. `python -m autograd_cy.ops.stubs` writes them, after a change of the table; tests/test_stubs.py fails while
the committed stubs differ. engine/elementwise.pyi is written whole; in engine/tensor.pyi and __init__.pyi a section between two
marks is, and what the rest of the file declares already is left out of it.
"""

import re
from pathlib import Path

from .wrappers import parameters
from .table import TABLE

PACKAGE = Path(__file__).resolve().parents[1]
BEGIN, END = "# elementwise rows: begin (written by ops/stubs.py)", "# elementwise rows: end"
HEAD = '''# Types of the functions of elementwise rows. Written by ops/stubs.py from the table: do not edit.
#
# Relies on tensor.pyi. __init__.pyi, nn and users' type checkers rely on it.

from .tensor import Tensor, _Operand

'''


def rows(rare=False):
    """The rows that have public functions; those of rare rows are no methods."""
    return [row for row in TABLE.values() if row.kind == "elementwise" and (row.public or rare and row.rare)]


def attributes(row):
    """Parameters of the row's attributes, with their defaults."""
    return "".join(f", {name}: float" + (f" = {value}" if value else "") for name, value in parameters(row))


def inputs_and_attributes(row):
    """The parameters of the row's function and of its form in place."""
    if len(row.inputs) == 1:
        return attributes(row) + (", inplace: bool = False" if row.inplace else ""), attributes(row)
    names = ("input", "other") if row.inputs == ("a", "b") else row.inputs
    more = "".join(f", {name}: _Operand" for name in names[1:]) + (", *" + attributes(row) if row.attrs else "")
    return more, more


def functions():
    """The text of engine/elementwise.pyi."""
    lines = []
    for row in rows(rare=True):
        first = "_Operand" if len(row.inputs) > 1 else "Tensor"
        more, in_place = inputs_and_attributes(row)
        lines += [f"def {row.name}(input: {first}{more}) -> Tensor: ...", f"def {row.name}_(input: Tensor{in_place}) -> Tensor: ..."]
    return HEAD + "\n".join(lines) + "\n"


def methods(declared):
    """Methods of Tensor, without those that are declared elsewhere."""
    lines = []
    for row in rows():
        # within Tensor, `float` and `bool` are methods
        more, in_place = (re.sub(r": (float|bool)\b", r": _\1", text) for text in inputs_and_attributes(row))
        lines.append((row.name, f"    def {row.name}(_self{more}) -> Tensor: ..."))
        if row.has_form_in_place:
            lines.append((row.name + "_", f"    def {row.name}_(_self{in_place}) -> Self: ..."))
    return "".join(line + "\n" for name, line in lines if not re.search(rf"\bdef {name}\(", declared))


def names(declared):
    """Imports of the package's front."""
    wanted = [row.name for row in rows()] + [f"{row.name}_" for row in rows() if row.inputs == ("x",) and row.result == "same"]
    wanted = [name for name in wanted if not re.search(rf"\bas {name}\b", declared)]
    return imported(".engine.elementwise", wanted)


def imported(module, names):
    """An import that makes the names public, in lines as long as they may be."""
    lines = [""]
    for name in names:
        if len(lines[-1]) + 2 * len(name) > 130:
            lines.append("")
        lines[-1] += f" {name} as {name},"
    return f"from {module} import (\n" + "".join(f"   {line}\n" for line in lines) + ")\n"


def with_section(path, write):
    """The text of a stub with its section brought up to date."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN + "\n")
    _, mark, after = rest.partition(END + "\n")
    if not mark:
        raise ValueError(f"{path.name}: the marks {BEGIN!r} and {END!r} are missing")
    indent = re.search(r"[ ]*\Z", before)[0]
    return before + BEGIN + "\n" + write(before + after) + indent + END + "\n" + after


def stubs():
    """{path: text} of all stubs that depend on the table."""
    return {
        PACKAGE / "engine" / "elementwise.pyi": functions(),
        PACKAGE / "engine" / "tensor.pyi": with_section(PACKAGE / "engine" / "tensor.pyi", methods),
        PACKAGE / "__init__.pyi": with_section(PACKAGE / "__init__.pyi", names),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
