"""Merges the Cython modules of a layer into one compiled module, at build time.

A compiled module costs 10 kB and 0.1 ms of the import whatever is in it, and calls between modules go through pointers. So the sources
below, each with cimports of its own, are compiled as parts of one module, which _libraries.py makes known under all their names, too.

Relies on the sources' form: imports stand at the top, absolute, without `as` between parts of one module. setup.py calls `merge`.
"""

import builtins
import re
from pathlib import Path

# Parts in an order in which each comes after those that it imports; a module after those that its parts import. (kernels.table is for
# Cython modules of others, too, which know it by that name.)
MERGED = {
    "autograd_cy._kernels": [f"autograd_cy.kernels.{name}" for name in ("gemm", "integer_loops", "index")],
    "autograd_cy._routines": [f"autograd_cy.kernels.{name}" for name in ("moving", "pooling", "scans", "sorting", "counting", "distances")],
    "autograd_cy._core": ["autograd_cy.array.layout", "autograd_cy.array.storage", *(f"autograd_cy.engine.{name}" for name in (
        "modes", "node", "tensor", "operands", "record", "read_table", "routines", "dense", "dispatch", "inplace", "hooks", "gradients",
        "passes", "recursion", "backward"))],
    "autograd_cy._views": [f"autograd_cy.engine.{name}" for name in (
        "arguments", "shape", "slices", "copies", "joins", "windows", "blocks", "products", "updates")],
    "autograd_cy._calls": [f"autograd_cy.engine.{name}" for name in (
        "creation", "random", "rows", "clipping", "gather", "index_parts", "index", "named_products")],
    "autograd_cy._reductions": ["autograd_cy.engine.reduce", "autograd_cy.engine.losses"],
    "autograd_cy._selections": [f"autograd_cy.engine.{name}" for name in ("choose", "scans", "sorting", "counts", "distances")],
    "autograd_cy._lapack": ["autograd_cy.kernels.lapack", "autograd_cy.kernels.spectral"],
    "autograd_cy._capture": [f"autograd_cy.graph.{name}" for name in ("places", "recorder")],
    "autograd_cy._replay": [f"autograd_cy.graph.{name}" for name in ("watch", "machine", "replay", "links")],
}
MODULE_OF = {part: module for module, parts in MERGED.items() for part in parts}

NAMES = r"(\([^)]*\)|[^(\n]*)"
IMPORT = re.compile(rf"^( *)from (autograd_cy[\w.]*) (c?import) {NAMES}$", re.MULTILINE)
DEFINITION = re.compile(r"^(?:async )?(?:cp?def|def|class|cdef class) +(?!extern|enum|struct|union|packed)([^\n(:=]*\b)?(\w+) *[(:]"
                        r"|^(\w+) *(?:,[\w ,]*)?=[^=]", re.MULTILINE)


def redirected(text, module):
    """A source as it is a part of `module`: names of merged modules come from where these are now, its own need no import."""
    def place(match):
        indent, base, kind, names = match.groups()
        home = MODULE_OF.get(base)
        if home is None:
            return match[0]
        if home != module or indent:
            return f"{indent}from {home} {kind} {names}"
        if " as " in names:
            raise SystemExit(f"{module}: one part imports another's names under other names: {match[0]}")
        return "\n" * match[0].count("\n")          # lines keep their numbers
    return IMPORT.sub(place, text)


def check_names(module, texts):
    """No two parts may define one name, nor one a name that is a builtin where another uses it."""
    owner = {}
    for part, text in texts.items():
        for name in {match[2] or match[3] for match in DEFINITION.finditer(text)}:
            if owner.setdefault(name, part) != part:
                raise SystemExit(f"{module}: both {owner[name]} and {part} define {name}")
    for part, text in texts.items():
        imported = set(re.findall(r"\w+", " ".join(match[4] for match in IMPORT.finditer(text))))
        code = re.sub(r'"""[\s\S]*?"""|#.*|"[^"\n]*"', "", text)
        for name in owner.keys() & set(dir(builtins)) - imported:
            if owner[name] != part and re.search(rf"(?<![\w.]){name}\(", code):
                raise SystemExit(f"{module}: {part} uses {name}, which is no builtin there: {owner[name]} defines it")


def merge(package, folder, sources):
    """Write the sources (by the names of their modules), and the package's interfaces (.pxd), below `folder` as they are compiled;
    returns the names and paths of the modules."""
    def write(name, suffix, text):
        path = folder / Path(*name.split(".")).with_suffix(suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path

    interfaces = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in sorted(package.rglob("*.pxd"))}
    for name, path in interfaces.items():
        write(name, ".pxd", redirected(path.read_text(), MODULE_OF.get(name)))
    for name, text in sources.items():
        write(name, ".pyx", redirected(text, MODULE_OF.get(name)))
    for module, parts in MERGED.items():
        check_names(module, {part: sources[part] for part in parts})
        included = [(part, "/".join(part.split(".")[1:])) for part in parts]
        write(module, ".pxd", "".join(f'include "{path}.pxd"\n' for part, path in included if part in interfaces))
        write(module, ".pyx", "".join(f'include "{path}.pyx"\n' for part, path in included))
    return [(name, folder / Path(*name.split(".")).with_suffix(".pyx")) for name in (*MERGED, *(sources.keys() - MODULE_OF.keys()))]
