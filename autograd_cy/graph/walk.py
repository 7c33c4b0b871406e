"""The walk: what a function can reach - closures, globals, attributes, containers, tensors - is given to a Watch.

Relies on watch.Watch, which holds the values, on codes, which finds the names that code uses, and on words for the styles.
guards.Snapshot derives from Walk.

The walk goes depth first, and an object is named by the first way that reaches it; optimisers come last, so that parameters
have the names that models give them.  Instances are watched at the attributes whose names occur in the user's code: a list of
losses that a training loop keeps in the same object as the model is no reason to capture again.
"""

import random
import sys
from collections import deque
from functools import cached_property, partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType

import numpy as np

from autograd_cy.array.dtypes import DType
from autograd_cy.array.errors import CaptureError
from autograd_cy.engine.hooks import hooks_of, registered
from autograd_cy.engine.generators import Generator
from autograd_cy.engine.tensor import Tensor

from . import places, words
from .codes import is_library, is_user_function, module_of, names_of
from .places import MISSING, is_value, read_container, read_dict
from .watch import Watch

MAX_OBJECTS = 10_000
MAX_VALUES = 200_000
SMALL_ARRAY = 65536          # bytes up to which an array is compared by its contents: 3 us at every call

# Options of an optimizer that choose among kernels; the numbers (lr, betas, weight_decay ...) are read at every replay.
STRUCTURE = ("momentum", "nesterov", "amsgrad", "maximize", "centered", "decoupled_weight_decay")

_PARTS = {MethodType: ["__func__", "__self__"], partial: ["func", "args", "keywords"], staticmethod: ["__func__"],
          classmethod: ["__func__"], property: ["fget"], cached_property: ["func"]}
_TEMPORARY = {MethodType, partial, staticmethod, classmethod}          # that nobody else need hold
_FUNCTION_PARTS = ["__code__", "__defaults__", "__kwdefaults__", "__globals__"]
_FUNCTIONS = {"builtin_function_or_method", "method_descriptor", "wrapper_descriptor", "method-wrapper", "classmethod_descriptor",
              "cython_function_or_method", "fused_cython_function", "ufunc", "_lru_cache_wrapper"}
_HEAP = 1 << 9              # Py_TPFLAGS_HEAPTYPE
_CONSTRUCTORS = ("__new__", "__init__")
_NOT_RUN = {"__new__", "__init__", "__repr__", "__str__", "__del__", "__init_subclass__", "__class_getitem__", "__reduce__",
            "__reduce_ex__", "__getstate__", "__setstate__", "__dir__", "__format__", "__sizeof__"}


def loaded(module, name):
    """A class of a later layer, if somebody has imported it."""
    found = sys.modules.get(module)
    return () if found is None else getattr(found, name)


class Walk(Watch):
    """A Watch that is filled by walking from a function and from the objects among its arguments."""

    def __init__(self, fn, args=(), kwargs=None):
        self.names = self.used = set()        # names that code reads: None for any; and those that it spells
        self.module_class = loaded("autograd_cy.nn.module", "Module")
        self.optimizer_class = loaded("autograd_cy.optim.optimizer", "Optimizer")
        self._slot_of = {}          # id -> slot
        self._origin = []           # by slot: (record, index of the place), or a name
        self._style = []            # by record: how `words` phrases its places
        self._stack, self._late = [], []
        self._special = {}          # slot -> how it is looked into, if not by its class
        self._pending = []          # (slot, names not yet watched, kind, style, whether only spelt names count)
        self.shared = set()        # slots that must be the same objects in every step function
        self.opaque = set()        # slots that are not looked into
        self._codes, self._kept = set(), []         # ids of the code objects that are covered, and what keeps them theirs
        self._globals = {}          # slot of a module's dict -> names watched
        self.states = []           # (slot, state) of sources of random numbers that aren't ours
        self.iterators = []
        self.large = []            # slots of arrays that are watched by identity only
        self._constructed = set()   # slots of classes whose constructors code may call
        self._anything = False
        self._n_values = 0
        self._alive = []            # while walking: nothing dies, so ids are unique
        self.home = getattr(fn, "__module__", None) if type(fn) in (FunctionType, MethodType) else module_of(type(fn))
        self.roots = [self._slot(fn, words.SELF if type(fn) is MethodType else words.name_of(fn), strong=True)]
        self._walk()
        self.roots += [self._slot(value, name) for name, value in objects_among(fn, args, kwargs or {})]
        self.shared.add(self._slot(registered, "the number of hooks"))
        self._finish()

    def covers(self, code):
        """Whether the names that a code object reads are watched."""
        return id(code) in self._codes

    def reach(self, code, module_globals, functions):
        """Walk on from code that was met while the function ran."""
        self._alive.append(module_globals)
        self._read(code, module_globals)
        for f in functions:
            self._slot(f, words.name_of(f))
        self._finish()

    # ---- names

    def name(self, slot):
        """How users write an object: `model.0.weight`, `config['sizes']`."""
        origin = self._origin[slot]
        return origin if isinstance(origin, str) else words.name(self, *origin)

    def origin(self, slot):
        """(record, index of the place) that led to an object, or the name of a root."""
        return self._origin[slot]

    def style(self, record):
        """How a record's places are phrased."""
        return self._style[record]

    # ---- the walk

    def _slot(self, value, origin, strong=False):
        """The slot of an object, which is looked into later; -1 for a plain value."""
        known = self._slot_of.get(id(value))
        if known is not None and self.object(known) is value:
            if issubclass(type(value), type) and not isinstance(origin, str) and isinstance(self._origin[known], str):
                self._may_construct(known, value)
            return known
        if value is MISSING or type(value) in (DType, CodeType) or is_value(value):
            return -1
        slot = self.hold(value, strong or type(value) in _TEMPORARY)
        self._alive.append(value)
        self._slot_of[id(value)] = slot
        self._origin.append(origin)
        self._stack.append(slot)
        return slot

    def _record(self, kind, slot, keys, style, values=None, sized=False):
        """Watch places of a container, and look into what they hold."""
        if values is None:
            values = read_container(kind, self.object(slot), keys)
        number = len(self._style)
        self._style.append(style)
        self._n_values += len(values)
        if self._n_values > MAX_VALUES or len(self.objects) + sum(not is_value(v) for v in values) > MAX_OBJECTS:
            what = f"{MAX_VALUES:,} values" if self._n_values > MAX_VALUES else f"{MAX_OBJECTS:,} objects"
            raise CaptureError(f"compile: the step reaches more than {what}, the last in {self.name(slot)}; pass the data as "
                               "arguments instead, or as one tensor")
        depth = len(self._stack)
        children = [self._slot(value, (number, j)) for j, value in enumerate(values)]
        self._stack[depth:] = reversed(self._stack[depth:])          # the first is looked into first
        self.record(kind, slot, keys, values, children, sized)
        return children

    def _walk(self):
        while True:
            while self._stack:
                self._expand(self._stack.pop())
            self.used = None if self._anything else self.names
            if not self._examine() and not self._stack:
                if not self._late:
                    return
                self._optimizer(self._late.pop(0))

    def _finish(self):
        self._walk()
        self._alive.clear()

    def _examine(self):
        """Watch attributes whose names have been met since they were put off."""
        found = False
        pending, self._pending = self._pending, []
        for slot, names, kind, style, spelt in pending:
            used = self.names if spelt else self.used
            now = names if used is None else [n for n in names if n in used or n in _CONSTRUCTORS]
            if now:
                found = True
                names = [n for n in names if n not in now]
                self._record(kind, slot, now, style)
            if names:
                self._pending.append((slot, names, kind, style, spelt))
        return found

    def _expand(self, slot):
        if slot in self._special:
            self._special[slot](self, slot)
            return
        o = self.object(slot)
        t = type(o)
        if issubclass(t, Tensor):
            self._record(places.TENSOR, slot, [], words.TENSOR, [])
            for hooks in hooks_of(o):                        # that there are none yet is watched by their number
                self._slot(hooks, f"the hooks of {self.name(slot)}")
        elif t is FunctionType:
            self._function(slot, o)
        elif t in _PARTS:
            self._record(places.PARTS, slot, _PARTS[t], words.PART)
        elif issubclass(t, type):
            self.shared.add(slot)
            self._class(slot, o)
        elif issubclass(t, ModuleType):
            self.shared.add(slot)
            if not is_library(read_dict(o).get("__name__")):
                self._instance(slot, o, words.MODULE)
        elif self.module_class and issubclass(t, self.module_class):
            self._module(slot, o)
        elif self.optimizer_class and issubclass(t, self.optimizer_class):
            self._late.append(slot)
        elif issubclass(t, (list, tuple, dict, set, deque)):
            self._container(slot, o, t)
        elif issubclass(t, (np.ndarray, bytearray)) or t.__name__ == "array" and module_of(t) == "array":
            if _is_small(o):
                self._record(places.BUFFER, slot, [], words.TENSOR, [])
            else:
                self.opaque.add(slot)
                self.large.append(slot)
        elif t is Generator:
            self.opaque.add(slot)
        elif (state := state_of(o)) is not None:
            self.states.append((slot, state))
            self.opaque.add(slot)
        elif places.read_class(t, "__next__") is not MISSING:
            self.iterators.append(slot)
            self.opaque.add(slot)
        elif module_of(t).startswith("autograd_cy.graph"):
            self.opaque.add(slot)
        elif t.__name__ in _FUNCTIONS:
            self._wrapper(slot, o)
        else:
            if any(places.read_class(t, n) is not MISSING for n in ("__array__", "__array_interface__", "__dlpack__")):
                self.large.append(slot)
            self._instance(slot, o, words.ATTRIBUTE)

    def _container(self, slot, o, t):
        if issubclass(t, list):
            self._record(places.ITEMS, slot, list(range(list.__len__(o))), words.ITEM)
        elif issubclass(t, tuple):
            self._record(places.TUPLE, slot, list(range(tuple.__len__(o))), words.ITEM)
        elif issubclass(t, dict):
            self._record(places.DICT, slot, places.dict_keys(o), words.KEY)
        else:
            kind = places.SET if issubclass(t, set) else places.DEQUE
            self._record(kind, slot, list(range(len(read_container(kind, o, [])))), words.ITEM)
        if not is_library(module_of(t)):
            self._instance(slot, o, words.ATTRIBUTE)

    def _function(self, slot, f):
        if not is_user_function(f):
            self._wrapper(slot, f)
            return
        self._record(places.FUNCTION, slot, _FUNCTION_PARTS, words.FUNCTION)
        if f.__closure__:
            self._record(places.CELLS, slot, list(f.__code__.co_freevars), words.CELL)
        self._read(f.__code__, f.__globals__)
        if read_dict(f):
            self._instance(slot, f, words.ATTRIBUTE)

    def _wrapper(self, slot, f):
        """A function of a library: what it wraps may be the user's."""
        attributes = read_dict(f) or ()
        if "is_wall" in attributes:
            self.opaque.add(slot)
        elif "__wrapped__" in attributes:
            self._record(places.PARTS, slot, ["__wrapped__"], words.PART)
        else:
            self.shared.add(slot)

    def _read(self, code, module_globals):
        """Watch the globals that a code object reads or assigns, and note the names it uses."""
        if id(code) in self._codes:
            return
        names = names_of(code)
        self._codes.update(names.nested)
        self._kept.append(code)
        self._anything |= names.dynamic
        self.names |= names.names
        slot = self._slot(module_globals, "globals", strong=True)
        self._namespace(slot)
        fresh = [n for n in names.globals if n not in self._globals[slot]]
        if fresh:
            self._globals[slot].update(fresh)
            self._record(places.KEYS, slot, fresh, words.GLOBAL)
        for name in names.imports:
            module = sys.modules.get(name)
            if module is not None and not is_library(name):
                self._slot(module, name)

    def _namespace(self, slot):
        """Let the keys of a dict - of a module's globals, of an instance's attributes - be watched one by one."""
        if slot not in self._globals:
            self._globals[slot] = set()
            self._special[slot] = _nothing_more

    def _instance(self, slot, o, style):
        """Attributes in the __dict__ and the __slots__ of an object."""
        t = type(o)
        namespace = places.make_dict(o) if style == words.ATTRIBUTE else read_dict(o)
        looked_into = False
        if namespace is not None:
            looked_into = True
            inner, = self._record(places.DICT_OF, slot, ["__dict__"], words.DICT_OF, [namespace])
            if inner not in self._globals or style == words.MODULE:
                self._namespace(inner)
                names = [k for k in places.dict_keys(namespace) if type(k) is str and k not in self._globals[inner]]
                self._put_off(inner, names, places.KEYS, style, t)
        slots = [name for base in t.__mro__ if base.__flags__ & _HEAP for name, member in base.__dict__.items()
                 if type(member) is MemberDescriptorType]
        if slots:
            looked_into = True
            self._put_off(slot, slots, places.ATTRS, words.ATTRIBUTE, t)
        if style == words.ATTRIBUTE and t is not FunctionType:
            self._class_of(t)
        if not looked_into:
            self.opaque.add(slot)

    def _put_off(self, slot, names, kind, style, t):
        """Watch attributes as soon as code is met that uses their names; at once where it is ours, which is not looked into."""
        ours = module_of(t).startswith("autograd_cy.")
        if ours or kind == places.KEYS:                         # also when empty: it notices new names
            self._record(kind, slot, names if ours else [], style, sized=kind == places.KEYS)
        if not ours:
            spelt = is_library(module_of(t)) and t.__name__ not in ("Namespace", "SimpleNamespace")
            self._pending.append((slot, names, kind, style, spelt))

    def _module(self, slot, m):
        """A Module: its members, `training`, and the attributes that its class's code uses."""
        names = ["training", *(n for n in places.read_attribute(m, "_order") if n != "training")]
        if places.read_attribute(m, "_items") is not MISSING:
            names.append("_items")
        values = [places.read_attribute(m, n) for n in names]
        # Code of ours, which is not looked into, reads the attributes of our layers and of what derives from them.
        if any(base is not self.module_class and module_of(base).startswith("autograd_cy.") for base in type(m).__mro__):
            now = names
        else:
            now = [n for n, v in zip(names, values, strict=True) if n in ("training", "_items") or self._holds_members(v)]
        self._class_of(type(m))
        self._record(places.ATTRS, slot, now, words.ATTRIBUTE, sized=True)
        rest = [n for n in names if n not in now]
        if rest:
            self._pending.append((slot, rest, places.ATTRS, words.ATTRIBUTE, False))

    def _holds_members(self, value):
        members = (Tensor, self.module_class)
        t = type(value)
        if issubclass(t, dict):
            return any(issubclass(type(v), (*members, list, tuple, dict)) for v in dict.values(value))
        if issubclass(t, (list, tuple)):
            return any(issubclass(type(v), (*members, list, tuple, dict)) for v in read_container(
                places.ITEMS if issubclass(t, list) else places.TUPLE, value, []))
        return issubclass(t, members)

    def _optimizer(self, slot):
        """An optimizer: our updates in C read its options at each replay; code of tensor operations is watched like any other."""
        optimizer = self.object(slot)
        t = type(optimizer)
        step = places.read_class(t, "step")
        step = getattr(step, "__wrapped__", step)                    # under no_grad
        if not is_library(getattr(step, "__module__", None) if type(step) is not FunctionType else step.__globals__["__name__"]):
            self._instance(slot, optimizer, words.ATTRIBUTE)
            return
        self._class_of(t)
        groups, states = self._record(places.ATTRS, slot, ["param_groups", "state"], words.ATTRIBUTE)
        composed = type(step) is FunctionType
        self._special[groups] = partial(Walk._groups, composed=composed)
        if not composed:
            self._special[states] = lambda walk, slot: None      # which states it holds is StateWatch's to watch
        if not is_library(module_of(t)):
            self._instance(slot, optimizer, words.ATTRIBUTE)

    def _groups(self, slot, composed):
        for group in self._record(places.ITEMS, slot, list(range(len(self.object(slot)))), words.ITEM):
            self._special[group] = partial(Walk._options, composed=composed)

    def _options(self, slot, composed):
        """composed: the step is code of tensor operations, with numbers of the options in it, but for those that schedules change."""
        options = self.object(slot)
        self._record(places.KEYS, slot, ["params"], words.KEY)
        if composed or "param_groups" in self.names:      # the user's code may read lr, too
            read = ("params",) if "param_groups" in self.names else ("params", "lr", "betas")
            self._record(places.KEYS, slot, [k for k in options if k not in read], words.OPTION)
        else:
            self._record(places.FLAGS, slot, [k for k in STRUCTURE if k in options], words.OPTION)

    def _class_of(self, t):
        """Watch the class of an instance."""
        if t.__flags__ & _HEAP:                              # not built in
            self._slot(t, t.__name__)

    def _class(self, slot, cls):
        """A class: what the names that code uses mean in it.  Library classes are watched at what a call of a Module runs."""
        names = {}
        if self.module_class and issubclass(cls, self.module_class):
            names = dict.fromkeys(("forward", "__call__"))
        used = {}
        for base in cls.__mro__:
            if base.__flags__ & _HEAP and not is_library(module_of(base)):
                for name, value in base.__dict__.items():
                    if name.startswith("__") and name.endswith("__"):
                        if type(value) is FunctionType and name not in _NOT_RUN:
                            names[name] = None
                    elif type(name) is str:
                        used[name] = None
        if names:
            self._record(places.TYPE, slot, list(names), words.CLASS)
        if not isinstance(self._origin[slot], str):
            self._may_construct(slot, cls)
        rest = [n for n in used if n not in names]
        if rest:
            self._pending.append((slot, rest, places.TYPE, words.CLASS, False))

    def _may_construct(self, slot, cls):
        """Code names the class, and may make instances of it."""
        names = [n for n in _CONSTRUCTORS if is_user_function(places.read_class(cls, n))]
        if names and slot not in self._constructed:
            self._constructed.add(slot)
            self._pending.append((slot, names, places.TYPE, words.CLASS, False))


def _nothing_more(snapshot, slot):
    pass


def objects_among(fn, args, kwargs):
    """(name, object) of the arguments that are neither tensors nor plain values, in order; containers are looked through."""
    f = fn.__func__ if type(fn) is MethodType else fn
    names = f.__code__.co_varnames[type(fn) is MethodType:f.__code__.co_argcount] if type(f) is FunctionType else ()
    found = [(names[i] if i < len(names) else f"argument {i}", value) for i, value in enumerate(args)]
    found += kwargs.items()
    out = []
    for name, value in found:                                 # grows
        t = type(value)
        if t in (list, tuple) and len(found) < MAX_OBJECTS:
            found += [(f"{name}[{i}]", v) for i, v in enumerate(value)]
        elif t is dict and len(found) < MAX_OBJECTS:
            found += [(f"{name}[{k!r}]" if is_value(k) else name, v) for k, v in value.items()]
        elif not (issubclass(t, (Tensor, np.ndarray)) or t is DType or is_value(value)):
            out.append((name, value))
    return out


def _is_small(o):
    try:
        with memoryview(o) as view:
            return view.nbytes <= SMALL_ARRAY and view.format.strip("<>=@!|") != "O"
    except (TypeError, ValueError, BufferError):             # dtypes without a buffer: datetime64
        return False


def state_of(o):
    """The state of a source of random numbers of Python or NumPy as something comparable; None for anything else."""
    if type(o) is random.Random:
        return o.getstate()
    made = sys.modules.get("numpy.random")
    if made is None or not hasattr(made, "Generator") or type(o) not in (made.Generator, made.RandomState):
        return None
    return _frozen(o.bit_generator.state if type(o) is made.Generator else o.getstate_of())


def _frozen(x):
    if isinstance(x, dict):
        return tuple((k, _frozen(v)) for k, v in x.items())
    if isinstance(x, (tuple, list)):
        return tuple(map(_frozen, x))
    return x.tobytes() if isinstance(x, np.ndarray) else x
