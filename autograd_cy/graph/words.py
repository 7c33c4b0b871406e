"""The words in which a Snapshot names what it watches, and says what changed.

Relies on places (values) and on the Snapshot it is given.  guards.py relies on it.
"""

from enum import EnumMeta
from types import BuiltinFunctionType, FunctionType, ModuleType

from autograd_cy.array.dtypes import DType
from autograd_cy.engine.tensor import Tensor

from .places import MISSING, describe_tensor, is_value, read_dict

# How the places of a record are phrased.
CELL, GLOBAL, FUNCTION, ATTRIBUTE, MODULE, DICT_OF, ITEM, KEY, OPTION, PART, CLASS, TENSOR = (
    "cell", "global", "function", "attribute", "module", "dict_of", "item", "key", "option", "part", "class", "tensor")
SELF = "the method"
LONGEST = 60


def name_of(fn):
    """The name of a function or of a callable object's class."""
    return fn.__name__ if type(fn) is FunctionType else type_name(fn).lower()


def type_name(o):
    """The name of an object's class."""
    return type(o).__name__


def article(o):
    """`a float`, `an Adam`."""
    return "None" if o is None else _an(o.name if isinstance(o, Dead) else type_name(o))


def _an(name):
    return ("an " if name[0] in "aeiouAEIOU" else "a ") + name


class Dead:
    """What is known of an object that is no more: the name of its class."""

    def __init__(self, name):
        self.name = name


def _key(snapshot, record, j):
    return snapshot.keys_of(record)[j]


def _is_dotted(snapshot, slot):
    """Whether items of a container are written with a dot, as in `model.layers.0`: what Modules hold."""
    origin = snapshot.origin(slot)
    while not isinstance(origin, str):
        style, slot = snapshot.style(origin[0]), snapshot.container(origin[0])
        if style == ATTRIBUTE:
            module = snapshot.module_class
            return bool(module) and isinstance(snapshot.object(slot), module)
        if style not in (ITEM, KEY):
            return False
        origin = snapshot.origin(slot)
    return False


def name(snapshot, record, j):
    """How users write what is at a place."""
    style, slot, key = snapshot.style(record), snapshot.container(record), _key(snapshot, record, j)
    if style in (CELL, GLOBAL):
        return key
    parent = snapshot.name(slot)
    if style == PART:
        if key == "__self__" and parent == SELF:
            return "self"
        return f"{parent}.{key}" if key in ("__self__", "args", "keywords") else parent
    if style == DICT_OF:
        return parent
    if style in (ITEM, KEY, OPTION):
        if key in ("param_groups",):
            return f"{parent}.{key}"
        return f"{parent}.{key}" if _is_dotted(snapshot, slot) else f"{parent}[{key!r}]" if is_value(key) else f"{parent}[...]"
    if style == ATTRIBUTE and key == "_items":
        return parent
    return f"{parent}.{key}"


def _owner(snapshot, slot):
    """`model`, or `model.0 (Dropout)`: the class is said where the name alone doesn't say much."""
    written = snapshot.name(slot)
    origin = snapshot.origin(slot)
    while not isinstance(origin, str) and snapshot.style(origin[0]) == DICT_OF:
        slot = snapshot.container(origin[0])
        origin = snapshot.origin(slot)
    o = snapshot.object(slot)
    return written if o is None or written.isidentifier() else f"{written} ({type_name(o)})"


def place(snapshot, record, j, value=None):
    """A place as the subject of a sentence."""
    style, slot, key = snapshot.style(record), snapshot.container(record), _key(snapshot, record, j)
    if style == CELL:
        qualified = snapshot.object(slot).__qualname__ if snapshot.object(slot) is not None else ""
        outer = qualified.rpartition(".<locals>")[0].rpartition(".")[2]
        return f"the variable '{key}' of the enclosing function {outer}" if outer else f"the variable '{key}'"
    if style == GLOBAL:
        module = snapshot.object(slot).get("__name__", "")
        own = snapshot.home
        return f"the global '{key}'" if module == own else f"the global '{key}' of module {module}"
    if isinstance(value, Tensor) or isinstance(value, Dead) and value.name in ("Tensor", "Parameter"):
        return name(snapshot, record, j)
    if style == FUNCTION:
        what = {"__code__": "the code", "__defaults__": "a default", "__kwdefaults__": "a default"}.get(key, key)
        return f"{what} of {snapshot.name(slot)}"
    if style == MODULE:
        return name(snapshot, record, j)
    if style == CLASS:
        what = "method" if type(value) is FunctionType or isinstance(value, Dead) and value.name == "function" else "attribute"
        return f"{what} '{key}' of class {snapshot.name(slot)}"
    if style == OPTION:
        return f"option '{key}' of {snapshot.name(slot)}"
    if style in (ITEM, KEY):
        if _is_dotted(snapshot, slot):
            return name(snapshot, record, j)
        return f"{'item' if style == ITEM else 'key'} {key!r} of {snapshot.name(slot)}"
    if style == ATTRIBUTE and key != "_items":
        return f"attribute '{key}' of {_owner(snapshot, slot)}"
    return name(snapshot, record, j)


def place_of(snapshot, slot):
    """The place that led to an object."""
    origin = snapshot.origin(slot)
    return origin if isinstance(origin, str) else place(snapshot, *origin)


def _named(value):
    """The text of a value that says which one it is; None for an object like any other."""
    if type(value) is DType:
        return value.name
    if isinstance(type(value), EnumMeta):
        return f"{type_name(value)}.{(read_dict(value) or {}).get('_name_', '...')}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if type(value) is FunctionType and value.__name__ != "<lambda>":
        return f"function {value.__name__}"
    if type(value) in (BuiltinFunctionType, ModuleType):
        return f"{'module' if type(value) is ModuleType else 'function'} {value.__name__}"
    if not is_value(value):
        return None
    text = repr(value)
    return text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."


def shown(value):
    """A value in a sentence."""
    return "nothing" if value is MISSING else _named(value) or article(value)


def _replaced(subject, before, now):
    if now is MISSING:
        return f"{subject} was removed"
    if before is MISSING:
        return f"{subject} was set to {shown(now)}"
    if shown(before) != shown(now):
        return f"{subject} changed from {shown(before)} to {shown(now)}"
    return f"{subject} changed" if is_value(now) else f"{subject} was replaced by another {type_name(now)}"


def _default(snapshot, record, before, now, key):
    """Which parameter's default changed."""
    f = snapshot.object(snapshot.container(record))
    before, now = before or (), now or ()
    if key == "__defaults__" and len(before) == len(now):
        code = f.__code__
        names = code.co_varnames[code.co_argcount - len(now):code.co_argcount]
        for parameter, a, b in zip(names, before, now, strict=True):
            if a is not b and shown(a) != shown(b) or type(a) is not type(b):
                return _replaced(f"the default of '{parameter}' in {snapshot.name(snapshot.container(record))}", a, b)
    return f"the defaults of {snapshot.name(snapshot.container(record))} changed"


def clause(snapshot, record, at, what, before, now):
    """What changed, as a clause: `attribute 'training' of model changed from True to False`."""
    slot = snapshot.container(record)
    if what == "value":
        j = at - snapshot.start_of(record)
        key = _key(snapshot, record, j)
        if before is None and snapshot.is_object(at):
            before = Dead(snapshot.class_name(at))
        if snapshot.style(record) == FUNCTION and key == "__defaults__":
            return _default(snapshot, record, before, now, key)
        if key == "__code__":
            return f"the code of {snapshot.name(slot)} changed"
        if snapshot.style(record) == DICT_OF:
            return f"the attributes of {_owner(snapshot, slot)} were replaced"
        return _replaced(place(snapshot, record, j, before if before is not MISSING else now), before, now)
    subject = snapshot.name(slot)
    if what == "size":
        if before == now:
            return f"the contents of {_where(snapshot, slot)} changed"
        return f"{_where(snapshot, slot)} has {_items(now)} instead of {before}"
    if what == "name":
        return f"attribute '{before}' of {_owner(snapshot, slot)} was set to {shown(now)}"
    if what == "contents":
        return f"the contents of {_where(snapshot, slot)} changed"
    if what == "class":
        return f"{subject} changed its class from {before.__name__} to {now.__name__}"
    if what == "gone":
        return f"{subject} does not exist any more"
    if before == "requires_grad":
        return f"requires_grad of {subject} changed from {not now} to {now}"
    if before == "leaf":
        return f"{subject} {'is now a leaf' if now else 'was changed in place by a recorded operation'}"
    if before == "memory":
        return f"the memory of {subject} was replaced"
    return f"the {before} of {subject} changed" if before != "attributes" else f"the attributes of {subject} changed"


def _items(n):
    return "1 item" if n == 1 else f"{n} items"


def _where(snapshot, slot):
    """A container with its class: `the list losses`."""
    o = snapshot.object(slot)
    return f"the {type_name(o)} {snapshot.name(slot)}" if o is not None else snapshot.name(slot)


def difference(snapshot, record, at, what, mine, other):
    """Where another function's objects differ, as a clause."""
    slot = snapshot.container(record)
    subject = snapshot.name(slot)
    if what in ("value", "other", "same"):
        j = at - snapshot.start_of(record)
        subject = place(snapshot, record, j, mine if what == "value" else other)
        if what == "other":
            return f"{subject} is another object than {snapshot.name(mine)}"
        if what == "same":
            return f"{subject} is the same object as {snapshot.name(mine)}"
        if snapshot.style(record) == FUNCTION and _key(snapshot, record, j) == "__code__":
            return f"the code of {snapshot.name(slot)} is another"
        return f"{subject} is {shown(other)} instead of {shown(mine)}"
    if what == "size":
        return f"{_where(snapshot, slot)} has {_items(other)} instead of {mine}" if mine != other else \
            f"{_where(snapshot, slot)} has other keys"
    if what == "class":
        return f"{subject} is a {other.__name__} instead of a {mine.__name__}"
    if what == "layout":
        names = ("shape", "strides", "dtype", "requires_grad", "is_leaf")
        for label, a, b in zip(names, describe_tensor(mine), describe_tensor(other), strict=True):
            if a != b:
                return f"the {label} of {subject} is {b} instead of {a}"
    return f"the contents of {subject} are others"
