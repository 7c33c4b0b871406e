"""Extensions of autograd_cy and the directives they are compiled with; all other metadata is in pyproject.toml.

Modules of loops (LEVELLED) are compiled once per instruction-set level from the same source, under the names
`kernels._<level>_<module>`; `kernels/__init__.py` imports the level that fits the processor.
The elementwise loops are first generated from the table of operations (autograd_cy/ops).
Modules are linked into few libraries, `_compiled` and one per level (autograd_cy/library.h).

What keeps the installed size down, in kB: a package of 58 modules was 5,670 before, and 6,400 when it had grown by half.
First: loops for whole vectors only, with few variants (kernels/padding.h, ops/codegen.py) -750; few libraries instead of one per module
-680; functions of rows from a list -50; -fno-plt -40; no signatures in docstrings -30; -fno-tree-vectorize where there is nothing to
vectorise -20. Then: v4 only where it gains (WIDE) -430; a package optimised as a whole (WHOLE) -200; formulas once each in the baseline
(kernels/vecmath.h) -75; cold modules without short cuts (SHORT_CUTS_OFF) -60; the rest of loops by single elements (LEAN_LOOPS) -45;
no generators for messages -40; numbers of rows by a C function -40. Then: 15 modules instead of 58 (merging.py) -260; small functions,
unless they are named (hot_functions.txt) -190; tiles of products that were never called -55; packed tables of addresses -60; errors'
places and initialisations in shorter forms (rewriting.py) -100; words by zlib -27; lean code objects -45.
Tried, and not worth it: -fno-inline-functions and -fno-inline-small-functions (10 each), blocks in simple order (1); -Os for all modules
(350; a step of XOR 22 % slower); --param=inline-unit-growth=10 for joins, reductions, losses and the replay (75; a replay 9 % slower); no
small products with 512 bits (160; XOR 1.5 % slower here, and more where vectors of 512 bits are not two of 256); identical code folded
by gold (130 without WHOLE); no checks for None (40).
"""

import os
import platform
import re
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython import __version__ as CYTHON
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
import merging  # noqa: E402
import rewriting  # noqa: E402

rewriting.lean_code_objects()

GENERATED = Path("build") / "generated"
PACKAGE = Path("autograd_cy")

GCC = "clang" not in (os.environ.get("CC") or sysconfig.get_config_var("CC") or "gcc")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": False,                      # `binding` gives inspect and help() the signatures; 30 kB
    "binding": True,
    "always_allow_keywords": True,
    "allow_none_for_extension_args": False,       # None for a Tensor argument is a TypeError, not a null pointer
    "auto_pickle": False,                         # 1 to 3 kB per class; what may be pickled says so itself
}

# -ffp-contract=off: no fused multiply-add behind our back, so that every level gives the same bits.
# -DNDEBUG: whoever sets CFLAGS loses it, and gets 5 % more size for assertions of Python.h.
# -DCYTHON_COMPRESS_STRINGS=1: words by zlib, which NumPy imports as well.
# -fno-thread-jumps: gcc otherwise duplicates the arms of conditionals, a quarter more work in vectorised loops.
FLAGS = ["-fno-math-errno", "-fwrapv", *(["-fno-thread-jumps"] if GCC else []), "-fno-trapping-math", "-ffp-contract=off", "-g0",
         "-DNDEBUG", "-DCYTHON_COMPRESS_STRINGS=1", "-Wno-unused-function", "-Wno-unreachable-code", "-Wno-maybe-uninitialized",
         "-fvisibility=hidden"]
LINUX = sys.platform.startswith("linux")
if LINUX:
    FLAGS += ["-fno-asynchronous-unwind-tables", "-fno-plt"]          # a twentieth of the installed size, a hundredth
# Code, constants and tables of addresses share pages. Tables of addresses as differences (a fiftieth of the size) are understood from
# glibc 2.36 on; a package built here runs with this glibc or a newer one.
LINK = ["-Wl,-s,-z,noseparate-code,-z,norelro"] if LINUX else []
if LINUX and platform.libc_ver()[0] == "glibc" and tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 36):
    LINK += ["-Wl,-z,pack-relative-relocs"]
X86 = platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32"
LEVELS = {"base": []}
if X86:
    LEVELS["v3"] = ["-march=x86-64-v3"]
    LEVELS["v4"] = ["-march=x86-64-v4", "-mprefer-vector-width=512"]

# `make asan`: one level, without optimisation that hides what is read; -O1 and -g1 stand behind the others and so win.
SANITIZE = os.environ.get("AUTOGRAD_CY_SANITIZE")
if SANITIZE:
    FLAGS += [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-O1", "-g1"]
    LINK = [f"-fsanitize={SANITIZE}"]
    wanted = os.environ.get("AUTOGRAD_CY_LEVEL", "v3" if X86 else "base")
    LEVELS = {level: LEVELS[level] for level in (("v3", "v4") if wanted == "v4" else (wanted,))}

# `make hot`: every function by itself and with its name, for a profile.
PROFILE = os.environ.get("AUTOGRAD_CY_PROFILE")
if PROFILE:
    FLAGS += ["-O1", "-fno-inline"]
    LINK = []
    LEVELS = {"v3": LEVELS["v3"]}

HEADERS = [str(p) for p in sorted((PACKAGE / "kernels").glob("*.h"))]
INCLUDE = [str(PACKAGE / "kernels")]

LEVELLED = ["elementwise", "casts", "reduce", "rows", "update", "micro", "windows", "normalize"]
# What 512 bits speed up, by 10 to 100 %; v4 takes the other modules, and the loops of short formulas, from v3 (kernels/__init__.py).
WIDE = ["rows", "normalize", "micro", "casts"]
# The small products may fuse: they promise no bits across levels, as no BLAS does.
EXTRA_FLAGS = {"micro": ["-ffp-contract=fast"]}
# Plain loops have nothing to clone or unroll (micro.h says itself what to unroll): a fifth smaller than with -O3 and as fast;
# small products by a transposed matrix are up to 12 % faster.
PLAIN_LOOPS = ("loops", "casts", "update", "micro", "windows", "normalize")
LOOPS_LEVEL = ["-O2", "-ftree-vectorize", *(["-fvect-cost-model=dynamic"] if GCC else [])]
# What is left over of a loop goes by single elements, not by half a vector and then single elements: an eighth of the size. (Rows of
# ten elements would be normalised at half the speed.)
LEAN_LOOPS = ["--param=vect-epilogues-nomask=0", "-fno-align-functions", "-fno-align-jumps", "-fno-align-labels"] if GCC else []
# A vector takes up to 1.7 times as long in a loop of a few instructions that happens to straddle lines of the instruction cache; 12 kB.
# (v4 has the long loops only.)
ALIGNED_LOOPS = ["-falign-loops=32"] if GCC else []
# Rows: a third smaller than with -O3, as fast or faster (softmax of 10 columns by a fifth), but loops of a few rounds must be unrolled.
# Reductions need all of -O3 but what clones functions and loops, a third of the size; variance over the first axis loses a tenth.
# Inlined sparingly, they are a sixth smaller, and as fast where folds of rows are inlined (kernels/fold.h).
# Their short loops are up to a third slower where they happen to straddle lines of the instruction cache.
ALIGNED = ["-falign-functions=64", "-falign-loops=32"] if GCC else []
LEVEL_FLAGS = {"rows": [*LOOPS_LEVEL, *ALIGNED, *(["-fpeel-loops"] if GCC else [])],
               "reduce": ["-O3", *ALIGNED, *([f"-fno-{f}" for f in ("ipa-cp-clone", "unswitch-loops", "split-loops", "split-paths",
                                                         "version-loops-for-strides")] if GCC else []),
                          *(["--param=inline-unit-growth=5", "-DAG_INLINE_FOLDS"] if GCC else [])]}
VECTORISED = {"autograd_cy._kernels", "autograd_cy._routines"}
# Where better levels exist, the baseline serves processors without AVX2 only: a third of the size, without vector instructions.
BASE_LEVEL = ["-Os"] if X86 else None
# The tests' doors to raw kernels are part of a build in place, but not of an installed package.
PROBES = "--inplace" in sys.argv
# These take arguments from Python and objects that may be None where a Tensor should be; the others trust what these pass on.
CAREFUL = {f"autograd_cy.{name}" for name in (
    "_calls", "_reductions", "_selections", "_views", "engine.elementwise", "engine.function", "engine.linear_algebra")}
# They write sources and stubs.
NOT_INSTALLED = {f"autograd_cy.ops.{name}" for name in ("codegen", "rare", "wrappers", "stubs")}
# 5 % of a module; there is nothing to vectorise in these, and no loop long enough for memset and memcpy to pay (3 % of a step of XOR).
COMPACT = ["-fno-align-functions", "-fno-align-jumps", "-fno-align-labels", "-fno-tree-vectorize",
           "-fno-tree-loop-distribute-patterns"] if GCC else []
# Ordinary calls go through a hundred functions, none of them a loop: each begins a line of the instruction cache. Steps of XOR are 2 to 3 %
# faster, for 20 kB; with -O3 2 % faster, for 100.
ENTRIES = ["-falign-functions=64"] if GCC else []
# Mostly checks of arguments around calls that take a microsecond: -Os makes them a third smaller and 5 to 10 % slower than -O2.
COLD = {f"autograd_cy.{name}" for name in (
    "_calls", "_capture", "_lapack", "_selections", "engine.elementwise", "engine.function", "engine.linear_algebra", "kernels.table",
    "kernels._probe", "kernels._probe_strided")}
# Cython's shortcuts that save nanoseconds and are written out wherever they are used: remembered globals, bound methods taken apart, digits
# of integers. Of cold and warm modules a sixteenth.
SHORT_CUTS_OFF = [f"-DCYTHON_{name}=0" for name in ("USE_DICT_VERSIONS", "UNPACK_METHODS", "USE_PYLONG_INTERNALS")]
# A package (not a build in place, whose every link would take a minute) is optimised as a whole: functions that Cython writes into each
# module become one. In one piece, not in several at once, training steps are 3 % faster.
WHOLE = ["-flto", "-flto-partition=one"] if GCC and LINUX and not PROBES and not SANITIZE and not PROFILE else []


def optimisation(name, level=None):
    """The flags of a module that choose between speed and size; of a module of loops also its instruction-set level."""
    if level == "base" and BASE_LEVEL:
        return BASE_LEVEL
    if level and name in LEVEL_FLAGS:
        return LEVEL_FLAGS[name]
    if level and name in PLAIN_LOOPS:
        lean = LEAN_LOOPS if name in ("loops", "casts", "windows") else []
        return [*LOOPS_LEVEL, *lean, *(ALIGNED_LOOPS if name == "loops" and level != "v4" else [])]
    if name in VECTORISED:
        return LOOPS_LEVEL
    if name in COLD:
        return ["-Os", *SHORT_CUTS_OFF]
    if name in rewriting.FAST:
        return ["-O2", *COMPACT, *ENTRIES]
    return ["-O3"] if level else ["-O2", *COMPACT]


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generated_sources():
    """The sources of the levels' loops, of those that gain nothing from levels, and of the functions, from the table of operations."""
    sys.path.insert(0, str(ROOT / PACKAGE))
    try:
        from ops import codegen, wrappers   # they read the table only and need no built extension
        return (codegen.levelled_loops(), codegen.levelled_loops(long_only=True)), codegen.integer_loops(), wrappers.function_module()
    finally:
        sys.path.pop(0)


LEVELLED_LOOPS, INTEGER_LOOPS, FUNCTIONS = generated_sources()


def sources():
    """The text of every module, by its name: the package's own, the generated ones, and the loops once per level."""
    texts = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in sorted((ROOT / PACKAGE).rglob("*.pyx"))}
    levelled = {name: texts.pop(f"autograd_cy.kernels.{name}") for name in LEVELLED}
    texts |= {"autograd_cy.kernels.integer_loops": INTEGER_LOOPS, "autograd_cy.engine.elementwise": FUNCTIONS}
    for level in LEVELS:
        wide = level == "v4"
        parts = {"loops": LEVELLED_LOOPS[wide]} | {name: levelled[name] for name in (WIDE if wide else LEVELLED)}
        texts |= {f"autograd_cy.kernels._{level}_{name}": text for name, text in parts.items()}
    return {name: text for name, text in texts.items() if PROBES or "._probe" not in name}


def flags_of(name):
    """The flags of a module that choose between speed and size, those of all, and what the instruction-set level demands."""
    loops = re.fullmatch(r"autograd_cy\.kernels\._(base|v3|v4)_(\w+)", name)
    level, name = loops.groups() if loops else (None, name)
    return [*optimisation(name, level), *FLAGS, *LEVELS.get(level, []), *(EXTRA_FLAGS.get(name, []) if level else [])]


# Cython's function type and helpers, 18 kB in each module otherwise, exist once where Cython can do that.
UTILITIES, SHARED = [], {}
if tuple(map(int, CYTHON.split(".")[:2])) >= (3, 3):
    SHARED = {"shared_utility_qualified_name": "autograd_cy._cython_utilities",
              "shared_utility_features_disabled": ["MemoryView"]}
    UTILITIES = [Extension(SHARED["shared_utility_qualified_name"], [], extra_compile_args=["-O2", *FLAGS])]


def translated(extensions, **directives):
    """The extensions with Cython's output as their sources."""
    return cythonize(extensions, compiler_directives=DIRECTIVES | directives, build_dir="build/cython", include_path=[str(GENERATED)],
                     nthreads=os.cpu_count() or 1, **SHARED)


class Library(Extension):
    """A shared library with all the modules `parts`, each compiled with flags of its own (autograd_cy/library.h)."""

    def __init__(self, name, parts, flags=()):
        short = name.rpartition(".")[2]
        listed = " ".join(f'X("{part.name}", {self.function(part)})' for part in parts)
        merged = " ".join(f'X("{name}", "{part.name}")' for part in parts for name in merging.MERGED.get(part.name, ()))
        source = GENERATED / f"{short}.c"
        for part in parts:
            part.define_macros = [("PyInit_" + part.name.rpartition(".")[2], self.function(part))]
            part.extra_compile_args += flags
        write_if_changed(ROOT / source, f'#define LIBRARY {short}\n#define MODULES(X) {listed}\n#define MERGED(X) {merged}\n'
                                        '#include "library.h"\n')
        self.parts = [*parts, Extension(name, [str(source)], include_dirs=[str(PACKAGE)], depends=[str(PACKAGE / "library.h")],
                                        extra_compile_args=["-Os", *FLAGS])]
        super().__init__(name, [source for part in self.parts for source in part.sources], extra_link_args=[
            *LINK, *flags])

    @staticmethod
    def function(part):
        """The name of the module's initialisation function: with all of its name, as two modules may share the last part."""
        return "PyInit_" + part.name.replace(".", "__")


class InstalledModules(build_py):
    """All modules but those that only a source tree needs."""

    def find_package_modules(self, package, directory):
        return [found for found in super().find_package_modules(package, directory) if f"{package}.{found[1]}" not in NOT_INSTALLED]


class BuildLibraries(build_ext):
    """Compiles the parts of libraries, those that changed and several at a time."""

    def build_extension(self, library):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self.compiled, library.parts))
        path = self.get_ext_fullpath(library.name)
        if self.force or newer_group(objects, path):
            self.compiler.link_shared_object(objects, path, libraries=self.get_libraries(library), library_dirs=library.library_dirs,
                                             extra_postargs=library.extra_link_args, build_temp=self.build_temp, target_lang="c",
                                             export_symbols=self.get_export_symbols(library))

    def compiled(self, part):
        """The object file of a module; compiled only if something that it depends on is newer."""
        directory = os.path.join(self.build_temp, "parts")
        target, = self.compiler.object_filenames(part.sources, output_dir=directory)
        if self.force or newer_group([*part.sources, *part.depends], target):
            self.compiler.compile(part.sources, output_dir=directory, include_dirs=part.include_dirs,
                                  macros=part.define_macros, extra_postargs=part.extra_compile_args)
        return target


os.chdir(ROOT)
extensions = [Extension(name, [str(path)], include_dirs=INCLUDE, depends=HEADERS, extra_compile_args=flags_of(name))
              for name, path in merging.merge(ROOT / PACKAGE, GENERATED, sources())]
careful = [e for e in extensions if e.name in CAREFUL]
modules = [*translated([*UTILITIES, *(e for e in extensions if e not in careful)]), *translated(careful, nonecheck=True)]
for module in modules:
    source = Path("build/rewritten", *module.name.split(".")).with_suffix(".c")
    write_if_changed(ROOT / source, rewriting.rewritten(module.name, Path(module.sources[0]).read_text(), GENERATED.as_posix(), not PROBES))
    module.sources = [str(source)]
libraries = []
for level in LEVELS:
    libraries.append(Library(f"autograd_cy.kernels._{level}", [m for m in modules if m.name.startswith(f"autograd_cy.kernels._{level}_")]))
    modules = [m for m in modules if m not in libraries[-1].parts]
setup(ext_modules=[Library("autograd_cy._compiled", modules, WHOLE), *libraries],
      cmdclass={"build_ext": BuildLibraries, "build_py": InstalledModules})
