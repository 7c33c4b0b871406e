"""What code reads: the names in a code object's bytecode, and whose code it is - the user's or a library's.

Relies on CPython's bytecode (names of instructions only) and on sys.  guards.py and calls.py rely on it.
"""

import dis
import sys
import weakref
from types import CodeType, FunctionType

# Their code is taken to be the same throughout, and is not looked into; what they hold for the user is.
LIBRARIES = frozenset(sys.stdlib_module_names) | {"autograd_cy", "numpy", "scipy", "_pytest", "pluggy", "pytest"}
# With one of these, code may read a name that it doesn't spell: as globals, or as attributes.
DYNAMIC_GLOBALS = {"vars", "exec", "eval", "globals", "locals", "dir", "attrgetter", "methodcaller", "getattr_static"}
DYNAMIC_ATTRIBUTES = {"__dict__", "__getattribute__", "attrgetter", "methodcaller", "getattr_static", "getmembers"}
_BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}       # unless the name is written as a string


def _opcodes(*names):
    return {dis.opmap[name] for name in names if name in dis.opmap}


_GLOBAL = _opcodes("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL")
_LOAD_GLOBAL, _EXTENDED, _IMPORT = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"], dis.opmap["IMPORT_NAME"]
_CONST, _CALL = dis.opmap["LOAD_CONST"], dis.opmap["CALL"]
_ONE_VALUE = _opcodes("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_SMALL_INT")
_NO_STEP = _opcodes("CACHE", "PRECALL")


class Names:
    """The names of a code object and of those nested in it.

    globals: those it reads or assigns, in order; names: all attributes, globals and identifiers in strings; imports: modules it
    imports itself; dynamic: it may read others; nested: ids of all the code objects.
    """

    def __init__(self, code):
        found, imports, names, self.nested = {}, {}, set(), []
        self.dynamic = False
        codes = [code]
        for each in codes:                                    # grows as nested code objects are found
            self.nested.append(id(each))
            spelt = each.co_names
            names.update(spelt)
            steps = instructions(each.co_code)
            for i, (op, arg) in enumerate(steps):
                if op in _GLOBAL:
                    # LOAD_GLOBAL's lowest bit says whether a call follows
                    name = spelt[arg >> 1 if op == _LOAD_GLOBAL else arg]
                    found[name] = None
                    if name in _BY_NAME and not spells_name(steps, i + 1):
                        self.dynamic = True
                elif op == _IMPORT:
                    imports[spelt[arg]] = None
            for constant in each.co_consts:
                if isinstance(constant, CodeType):
                    codes.append(constant)
                elif type(constant) is str and constant.isidentifier():
                    names.add(constant)
        self.globals, self.imports, self.names = tuple(found), tuple(imports), frozenset(names)
        self.dynamic |= not (DYNAMIC_GLOBALS.isdisjoint(found) and DYNAMIC_ATTRIBUTES.isdisjoint(names))


def instructions(raw):
    """[(opcode, argument)] of a bytecode."""
    found, extended = [], 0
    for op, arg in zip(raw[::2], raw[1::2], strict=True):
        if op == _EXTENDED:
            extended = (arg | extended) << 8
            continue
        if op not in _NO_STEP:
            found.append((op, arg | extended))
        extended = 0
    return found


def spells_name(steps, i):
    """Whether the next call, `getattr(x, "name")` or `getattr(x, "name", default)`, is surely one with the name as a constant."""
    for j in range(i, len(steps)):
        op, arg = steps[j]
        if op == _CALL:
            name = steps[j - 1][0] if arg == 2 else steps[j - 2][0] if arg == 3 and steps[j - 1][0] in _ONE_VALUE else None
            return name == _CONST
    return False


_known = {}        # id of a code object -> (weak reference, Names)


def names_of(code):
    """The Names of a code object, found once."""
    known = _known.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    key = id(code)
    names = Names(code)
    _known[key] = weakref.ref(code, lambda _: _known.pop(key, None)), names
    return names


def is_library(module_name):
    """Whether a module of this name (None: no module) belongs to Python, NumPy, SciPy or this package."""
    return not isinstance(module_name, str) or module_name.partition(".")[0] in LIBRARIES and module_name != "__main__"


def is_user_function(f):
    """Whether f is a Python function that is written outside the libraries."""
    return type(f) is FunctionType and not is_library(f.__globals__.get("__name__", "__main__"))


def module_of(cls):
    """The name of the module that a class is defined in, whatever its metaclass makes of that name."""
    return type.__getattribute__(cls, "__module__")
