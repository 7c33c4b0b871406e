"""The layers of the package: who may import whom, and how long a file may be.

Relies on the sources only (nothing is imported); `make check` runs it.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "autograd_cy"
BUDGET = 500      # lines; a longer file gives its reason at its head: a line with "500 lines" within the first 20

# Each layer imports only layers before it in this list, and itself.
LAYERS = ("_compiled", "_libraries", "_later", "array", "kernels", "engine", "graph", "func", "nn", "optim", "data", "tools")
# The table is data that everyone reads, and it reads nobody.
TABLE = "ops"
# Modules outside the layers are the package's front: __init__ and thin lists of names, which may import everything.
# From `func` on, layers are written as users write, with `import autograd_cy as ag`; then ag.optim counts as an import of it.
WRITTEN_AS_USERS_DO = LAYERS[LAYERS.index("func"):]

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="runs in a source tree only")

CYTHON_IMPORT = re.compile(r"^\s*(?:from\s+([.\w]+)\s+c?import\s+(.+)|c?import\s+([.\w, ]+))", re.MULTILINE)


def sources():
    return [path for pattern in ("*.py", "*.pyx", "*.pxd", "*.pyi") for path in sorted(PACKAGE.rglob(pattern))]


def module_of(path):
    """The dotted name of a source's module, and whether it is a package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return (parts[:-1], True) if parts[-1] == "__init__" else (parts, False)


def layer_of(parts):
    """The layer that a dotted name below the package belongs to; None outside the layers."""
    return parts[1] if len(parts) > 1 and parts[1] in (*LAYERS, TABLE) else None


def absolute(name, names, path):
    """The dotted names that `from name import names` refers to, as tuples."""
    module, is_package = module_of(path)
    dots = len(name) - len(name.lstrip("."))
    base = tuple(part for part in name.lstrip(".").split(".") if part)
    if dots:
        cut = dots - 1 if is_package else dots
        base = module[:len(module) - cut] + base
    # `from . import x` names a module x; elsewhere the names may be modules or not, which the layer does not depend on
    return [(*base, *each.split(".")) for each in names] if len(base) <= 1 and names else [base]


def imports(path):
    """Every module that a source imports or cimports, as tuples of names."""
    text = path.read_text()
    found = []
    if path.suffix in (".py", ".pyi"):
        tree, fronts = list(ast.walk(ast.parse(text))), set()
        for node in tree:
            if isinstance(node, ast.Import):
                found += [tuple(alias.name.split(".")) for alias in node.names]
                fronts |= {alias.asname or alias.name for alias in node.names if alias.name == PACKAGE.name}
            elif isinstance(node, ast.ImportFrom):
                found += absolute("." * node.level + (node.module or ""), [alias.name for alias in node.names], path)
        found += [(PACKAGE.name, node.attr) for node in tree if isinstance(node, ast.Attribute) and node.attr in LAYERS
                  and isinstance(node.value, ast.Name) and node.value.id in fronts]
        return found
    text = re.sub(r'"""[\s\S]*?"""', "", text)
    text = re.sub(r"#.*", "", text).replace("\\\n", " ")
    text = re.sub(r"\(([^()]*)\)", lambda match: " ".join(match[1].split()), text)
    for match in CYTHON_IMPORT.finditer(text):
        if match[1]:
            names = [name.split(" as ")[0].strip() for name in match[2].split(",")]
            found += absolute(match[1], [name for name in names if name], path)
        else:
            found += [tuple(name.split(" as ")[0].strip().split(".")) for name in match[3].split(",")]
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_directions(path):
    own = layer_of(module_of(path)[0])
    if own is None:
        return
    for target in imports(path):
        if not target or target[0] != PACKAGE.name:
            continue
        layer = layer_of(target)
        name = ".".join(target)
        if target == (PACKAGE.name,) and own in WRITTEN_AS_USERS_DO:
            continue
        assert layer is not None, f"{own} imports {name}, which is the package's front"
        if own == TABLE:
            assert layer == TABLE, f"the table of operations imports {name}; it is data and imports nobody"
        elif layer != TABLE:
            assert LAYERS.index(layer) <= LAYERS.index(own), f"{own} imports {name}, a later layer"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_size(path):
    lines = path.read_text().splitlines()
    reason = any(f"{BUDGET} lines" in line for line in lines[:20])
    assert len(lines) <= BUDGET or reason, f"{len(lines)} lines; divide it, or say why at its head ('{BUDGET} lines')"


def test_the_parser_sees_every_kind_of_import(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "autograd_cy")
    folder = tmp_path / "autograd_cy" / "engine"
    folder.mkdir(parents=True)
    (folder / "tensor.pyx").write_text(
        "from autograd_cy.array.storage cimport (Storage,\n    allocate)\nfrom ..nn import module\n"
        "from . cimport node  # from ..optim import sgd\ncimport autograd_cy.graph.plan as plan, cython\nimport numpy as np\n")
    (folder / "__init__.py").write_text(
        "from .tensor import Tensor\nfrom .. import func\n\ndef late():\n    import autograd_cy as ag\n    ag.data.iris()\n    ag.tensor(1)\n")
    cython = {".".join(name) for name in imports(folder / "tensor.pyx")}
    assert cython == {"autograd_cy.array.storage", "autograd_cy.nn", "autograd_cy.engine", "autograd_cy.graph.plan",
                      "cython", "numpy"}
    python = {".".join(name) for name in imports(folder / "__init__.py")}
    assert python == {"autograd_cy.engine.tensor", "autograd_cy.func", "autograd_cy", "autograd_cy.data"}
