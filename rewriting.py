"""Rewrites the C that Cython writes, at build time: which functions are compiled for speed and which for size, and what Cython writes
thousands of times, in shorter forms. What is not found, as another version of Cython may write something else, stays as it is.

Relies on the names that Cython gives to C functions and on the forms below. setup.py calls `rewritten`.
"""

import re
from pathlib import Path

from Cython.Compiler import ExprNodes

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


def functions(text):
    """The names of the functions in Cython's output that may be marked."""
    return {function_name(match[2]) for match in DECLARED.finditer(text)}


def marked(text):
    """The compiler is told which functions are to be small."""
    hot = set(HOT.read_text().split())
    return SMALL + DECLARED.sub(lambda m: m[0] if function_name(m[2]) in hot else f"static AG_SMALL {m[1]}", text)


# ---- shorter forms

# Twenty thousand places note the file and the line of an error that passes them: here, in one number. (By that number, and not by the line
# alone, Cython now also finds the code object that it made for a line of a traceback before: lines of different files were confused.)
NOTED = r"(#define __PYX_MARK_ERR_POS\(f_index, lineno\)) .*"
PLACES = [(NOTED, r"\1  { __pyx_lineno = lineno * 256 + f_index; (void) __pyx_filename; (void) __pyx_lineno; (void) __pyx_clineno; }", 2),
          (r"PyCode_NewEmpty\(filename, funcname, py_line\)", "PyCode_NewEmpty(__pyx_f[py_line & 255], funcname, py_line >> 8)", 1),
          (r"__Pyx_PyFrame_SetLineNumber\(py_frame, py_line\)", "__Pyx_PyFrame_SetLineNumber(py_frame, py_line >> 8)", 1)]
FILES = re.compile(r"(static const char\* const __pyx_f\[\] = \{\n)(.*?)(\};)", re.DOTALL)
# As Python has it, a traceback's line names file, line and function; no module.
TRACED = re.compile(r'(__Pyx_AddTraceback\(")autograd_cy\.(?:[a-z_0-9]+\.)*')
# A failing function drops what it holds; that need not be fast.
DROPPED = re.compile(r"__Pyx_XDECREF\((__pyx_t_\d+)\);$", re.MULTILINE)
DROP = r"Py_DecRef((PyObject *) \1);"
# A module's initialisation runs once.
INITIALISATION = re.compile(r"(__pyx_pymod_exec_\w+\(PyObject \*__pyx_pyinit_module\)\n(?:#endif\n)*\{\n)(.*?)(^\}\n)",
                            re.DOTALL | re.MULTILINE)
NOTING = re.compile(r"__PYX_ERR\(\d+, \d+, (\w+)\)")
DEFINED = re.compile(r"if \(PyDict_SetItem\(__pyx_mstate_global->__pyx_d, ([\w>.\[\]-]+), (__pyx_t_\d+)\) < \(?0\)?\) (__PYX_ERR\(.*?\))\n"
                     r" *__Pyx_DECREF\(\2\); ")
DEFINE = """CYTHON_UNUSED Py_NO_INLINE static int ag_define(PyObject* globals, PyObject* name, PyObject* value) {
    if (PyDict_SetItem(globals, name, value) < 0) return -1;
    Py_DECREF(value);
    return 0;
}
"""


def compact(text, folder, package):
    """Cython's output in shorter forms; sources below `folder` are called by their paths there. In a package, a module that can't be
    initialised does not say at which line, nor does it drop what it holds then: initialisations are an eighth of all code."""
    if [len(re.findall(pattern, text)) for pattern, _, _ in PLACES] == [count for _, _, count in PLACES]:
        for pattern, new, _ in PLACES:
            text = re.sub(pattern, new, text)
    text, found = FILES.subn(lambda m: DEFINE + m[1] + m[2].replace(f'"{folder}/', '"') + m[3], text)
    if package and found:
        text = INITIALISATION.sub(lambda m: m[1] + initialisation(m[2]) + m[3], text)
    return DROPPED.sub(DROP, TRACED.sub(r"\1", text))


def initialisation(body):
    body = DEFINED.sub(r"if (ag_define(__pyx_mstate_global->__pyx_d, \1, \2) < 0) \3\n  ", body)
    body = NOTING.sub(r"goto \1;", DROPPED.sub("", body))
    return re.sub(r"__Pyx_DECREF\((__pyx_t_\d+)\);", DROP, body)


def rewritten(module, text, folder, package):
    """The C that is compiled for a module instead of Cython's."""
    text = compact(text, folder, package)
    return marked(text) if module in FAST else text


# ---- less written by Cython itself

def lean_code_objects():
    """Of a function's code object what inspect.signature reads: the names of its arguments, and none of its other variables; no table of
    lines, which only monitors of single lines ask for (tracebacks have their own)."""
    node = getattr(ExprNodes, "CodeObjectNode", None)
    if node is None or not hasattr(ExprNodes, "build_line_table"):
        return
    started = node.__init__

    def start(self, def_node):
        started(self, def_node)
        stars = [star for star in (def_node.star_arg, def_node.starstar_arg) if star]
        self.varnames = self.varnames[:len(def_node.args) + len(stars)]
    node.__init__ = start
    ExprNodes.build_line_table = lambda positions, first: ""
