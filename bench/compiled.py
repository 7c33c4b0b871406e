"""Compiles limit.pyx on demand, with the directives and flags of setup.py, into build/bench, and imports it.

Relies on Cython, setuptools, setup.py and the package's .pxd files; iris and xor rely on it.
"""

import ast
import functools
import importlib.machinery
import importlib.util
import itertools
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def settings():
    """DIRECTIVES and FLAGS of setup.py: the part before its first function runs, which only imports and assigns."""
    path = ROOT / "setup.py"
    tree = ast.parse(path.read_text())
    tree.body = list(itertools.takewhile(lambda node: not isinstance(node, ast.FunctionDef), tree.body))
    names = {"__file__": str(path), "__name__": "setup"}
    exec(compile(tree, str(path), "exec"), names)
    return names["DIRECTIVES"], names["FLAGS"]


def build():
    """Compile limit.pyx unless that was done since it or the kernel table changed; returns the extension's path."""
    from setuptools import Distribution, Extension

    out = ROOT / "build" / "bench"
    package = Path(importlib.util.find_spec("autograd_cy").origin).parent      # the installed one has its .pxd files, too
    sources = [HERE / "limit.pyx", package / "kernels" / "table.pxd", ROOT / "setup.py"]
    newest = max(path.stat().st_mtime for path in sources)
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    target = out / f"limit{suffix}"
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    from Cython.Build import cythonize

    print("compiling the hand-written limit ...", file=sys.stderr)
    directives, flags = settings()
    extension = Extension("limit", [str(HERE / "limit.pyx")], extra_compile_args=["-O3", *flags],
                          include_dirs=[str(package / "kernels")])
    modules = cythonize([extension], compiler_directives=directives, include_path=[str(package.parent)], force=True, quiet=True,
                        build_dir=str(out / "c"))
    distribution = Distribution({"ext_modules": modules})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp, command.force = str(out), str(out / "temp"), True
    command.ensure_finalized()
    command.run()
    return target


@functools.cache
def limit():
    """The compiled module: iris(...) and xor(...)."""
    path = build()
    spec = importlib.util.spec_from_file_location("limit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
