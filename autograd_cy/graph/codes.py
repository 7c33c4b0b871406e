"""What code reads: the names in a code object's bytecode, and whose code it is - the user's or a library's.

Relies on CPython's bytecode (names of instructions only) and on sys.  guards.py and calls.py rely on it.
"""

import dis
import sys
import weakref
from types import CodeType, FunctionType

# Their code is taken to be the same throughout, and is not looked into; what they hold for the user is.
LIBRARIES = frozenset(sys.stdlib_module_names) | {"autograd_cy", "numpy", "scipy", "_pytest", "pluggy", "pytest"}
# With one of these, code may read a name that it doesn't spell.
DYNAMIC = frozenset({"getattr", "setattr", "hasattr", "delattr", "vars", "__dict__", "__getattribute__", "attrgetter", "exec", "eval",
                     "globals", "locals", "dir", "getattr_static", "methodcaller"})

_GLOBAL = {dis.opmap[name] for name in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL") if name in dis.opmap}
_LOAD_GLOBAL, _EXTENDED, _IMPORT = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"], dis.opmap["IMPORT_NAME"]
_SHIFT = 1 if sys.version_info >= (3, 11) else 0        # LOAD_GLOBAL's lowest bit says whether a call follows


class Names:
    """The names of a code object and of those nested in it.

    globals: those it reads or assigns, in order; names: all attributes, globals and identifiers in strings; imports: modules it
    imports itself; dynamic: it may read others; nested: ids of all the code objects.
    """

    def __init__(self, code):
        found, imports, names, self.nested = {}, {}, set(), []
        codes = [code]
        for each in codes:                                    # grows as nested code objects are found
            self.nested.append(id(each))
            local_names = each.co_names
            names.update(local_names)
            extended = 0
            raw = each.co_code
            for i in range(0, len(raw), 2):
                op, arg = raw[i], raw[i + 1] | extended
                extended = 0
                if op == _EXTENDED:
                    extended = arg << 8
                elif op in _GLOBAL:
                    found[local_names[arg >> _SHIFT if op == _LOAD_GLOBAL else arg]] = None
                elif op == _IMPORT:
                    imports[local_names[arg]] = None
            for constant in each.co_consts:
                if isinstance(constant, CodeType):
                    codes.append(constant)
                elif type(constant) is str and constant.isidentifier():
                    names.add(constant)
        self.globals, self.imports, self.names = tuple(found), tuple(imports), frozenset(names)
        self.dynamic = not DYNAMIC.isdisjoint(names)


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
