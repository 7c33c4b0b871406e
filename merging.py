"""Merges the Cython modules of a layer into one compiled module, at build time, and says which functions are compiled for speed.

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
    "autograd_cy._routines": [f"autograd_cy.kernels.{name}" for name in ("moving", "pooling", "scans", "sorting", "counting")],
    "autograd_cy._core": ["autograd_cy.array.layout", "autograd_cy.array.storage", *(f"autograd_cy.engine.{name}" for name in (
        "modes", "node", "tensor", "operands", "record", "routines", "dispatch", "read_table", "hooks", "gradients", "passes", "recursion",
        "backward"))],
    "autograd_cy._views": [f"autograd_cy.engine.{name}" for name in ("shape", "copies", "joins", "products", "updates")],
    "autograd_cy._calls": [f"autograd_cy.engine.{name}" for name in (
        "creation", "random", "rows", "clipping", "windows", "gather", "index", "blocks", "named_products")],
    "autograd_cy._reductions": ["autograd_cy.engine.reduce", "autograd_cy.engine.losses"],
    "autograd_cy._selections": [f"autograd_cy.engine.{name}" for name in ("choose", "scans", "sorting")],
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


# ---- what is compiled for speed

# Modules of which the functions in hot_functions.txt are compiled for speed and all others for size; bench/hot.py wrote the list.
FAST = {f"autograd_cy.{name}" for name in ("_core", "_views", "_reductions", "_replay")}
HOT = Path(__file__).with_name("hot_functions.txt")

# A function's name in C: each name before its own with its length; then, unless it is a C function, a number that tells functions of one
# name apart; its own name.
C_NAME = re.compile(r"__pyx_(f|pw|pf)_11autograd_cy_(\w+)")
DECLARED = re.compile(r"^static (?!CYTHON_)([^\n;={}()]*?\b(__pyx_(?:f|pw|pf)_\w+)\()", re.MULTILINE)
SMALL = """#if defined(__GNUC__)
#define AG_SMALL __attribute__((cold))
#else
#define AG_SMALL
#endif
"""


def function_name(c_name):
    """"_core.Tensor.dim" for the C name of a method, "_core.binary" for that of a function; None for all else."""
    match = C_NAME.match(c_name)
    if match is None:
        return None
    numbered, rest, names = match[1] != "f", match[2], []
    while part := re.match(r"(\d+)", rest):
        size, text = int(part[1]), rest[part.end():]
        if text[size:size + 1] == "_" and (not numbered or not names or text[size + 1:size + 2].isdigit()):
            names.append(text[:size])
            rest = text[size + 1:]
        else:
            rest = text
            break
    return ".".join([*names, rest])


def unmarked(path):
    """Cython's output as Cython wrote it."""
    return Path(path).read_text().replace(SMALL, "").replace("static AG_SMALL ", "static ")


def functions(path):
    """The names of the functions in Cython's output that may be marked."""
    return {function_name(match[2]) for match in DECLARED.finditer(unmarked(path))}


def mark(path):
    """Tell the compiler, in Cython's output, which functions are to be small."""
    hot = set(HOT.read_text().split())
    first, _, rest = unmarked(path).partition("\n")          # by the first line Cython knows what it may write again
    rest = DECLARED.sub(lambda m: m[0] if function_name(m[2]) in hot else f"static AG_SMALL {m[1]}", rest)
    text = f"{first}\n{SMALL}{rest}"
    if Path(path).read_text() != text:
        Path(path).write_text(text)
