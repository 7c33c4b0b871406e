# Places: how to read what a container holds, and to compare values, without running code of the user's.
#
# Relies on the engine (Tensor) and on CPython's public structures. watch.pyx, guards.py and words.py rely on it.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memcmp

from autograd_cy.engine.object cimport AG_TYPE, PyTypeObject
from autograd_cy.engine.tensor cimport Tensor

import functools
from collections import deque
from types import MethodType

import numpy as np

KINDS = {"CELLS": CELLS, "FUNCTION": FUNCTION, "KEYS": KEYS, "FLAGS": FLAGS, "DICT": DICT, "ATTRS": ATTRS, "DICT_OF": DICT_OF,
         "ITEMS": ITEMS, "TUPLE": TUPLE, "PARTS": PARTS, "SET": SET, "DEQUE": DEQUE, "TYPE": TYPE, "TENSOR": TENSOR,
         "BUFFER": BUFFER}
globals().update(KINDS)

MISSING = type("Missing", (), {"__repr__": lambda self: "nothing", "__slots__": ()})()

cdef object PARTIAL = functools.partial
cdef object CACHED = functools.cached_property
cdef object NUMBER = np.generic
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range})
cdef tuple NUMERIC = (float, int, bool, type(None))


# ---- values

def is_value(x):
    """Whether x is plain: immutable, and compared by value."""
    cdef object t = type(x)
    if t in PLAIN:
        return True
    if t is tuple or t is frozenset:
        for item in x:
            if not is_value(item):
                return False
        return True
    if t is slice:
        return is_value(x.start) and is_value(x.stop) and is_value(x.step)
    return issubclass(t, NUMBER) and t.__module__ == "numpy"


cdef bint same_float(double a, double b) noexcept:
    if a != a:
        return b != b
    return memcmp(&a, &b, sizeof(double)) == 0


cpdef bint same_value(object a, object b) except -1:
    """Equal types and values, where values can be compared without running foreign code; the same object elsewhere."""
    cdef Py_ssize_t i
    if a is b:
        return True
    t = type(a)
    if t is not type(b):
        return False
    if t is float:
        return same_float(a, b)
    if t is complex:
        return same_float(a.real, b.real) and same_float(a.imag, b.imag)
    if t is int or t is str or t is bytes or t is range:
        return a == b
    if isinstance(a, tuple):
        if Py_SIZE(<PyObject*> a) != Py_SIZE(<PyObject*> b):
            return False
        for i in range(Py_SIZE(<PyObject*> a)):
            if not same_value((<tuple> a)[i], (<tuple> b)[i]):
                return False
        return True
    if t is slice:
        return same_value(a.start, b.start) and same_value(a.stop, b.stop) and same_value(a.step, b.step)
    if t is frozenset:
        return is_value(a) and is_value(b) and same_set(a, b)
    if issubclass(t, NUMBER) and t.__module__ == "numpy":
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return False


cdef bint same_set(a, b) except -1:
    """Equal sets of plain values; True is not 1."""
    return len(a) == len(b) and {(type(x), x) for x in a} == {(type(x), x) for x in b}


cdef bint same_truth(a, b) except -1:
    return type(a) in NUMERIC and type(b) in NUMERIC and bool(a) == bool(b)


# ---- reading

cdef PyObject* attribute(PyObject* o, PyObject* name) noexcept:
    """The instance's own attribute or the class's plain one (a new reference); NULL: none, or only code could tell."""
    cdef PyTypeObject* t
    cdef PyObject* found = _PyType_Lookup(AG_TYPE(o), name)
    if found != NULL:
        t = AG_TYPE(found)
        if (ag_descr_get(t) or ag_descr_set(t)) and (ag_type_is_heap(t) or ag_is_property(found)):
            return NULL
    found = _PyObject_GenericGetAttrWithDict(o, name, NULL, 1)
    if found != NULL and ag_refs(found) == 1:          # made for us: a bound method
        Py_DECREF(<object> found)
        return NULL
    return found


def read_attribute(o, str name):
    """As `attribute`, or MISSING."""
    cdef PyObject* found = attribute(<PyObject*> o, <PyObject*> name)
    if found == NULL:
        return MISSING
    result = <object> found
    Py_DECREF(result)
    return result


def read_class(t, str name):
    """What a class and its bases know under a name, or MISSING."""
    cdef PyObject* found = _PyType_Lookup(<PyTypeObject*> t, <PyObject*> name) if isinstance(t, type) else NULL
    return MISSING if found == NULL else <object> found


def read_dict(o):
    """The __dict__ of an object, whatever its class makes of that name; None if it has none."""
    cdef PyObject** place = _PyObject_GetDictPtr(<PyObject*> o)
    return None if place == NULL or place[0] == NULL else <object> place[0]


def make_dict(o):
    """As read_dict, but an instance of a Python class gets its dict if it hasn't asked for one yet."""
    cdef PyObject** place = _PyObject_GetDictPtr(<PyObject*> o)
    if place == NULL:
        return None
    if place[0] == NULL and ag_type_is_heap(AG_TYPE(<PyObject*> o)):
        return PyObject_GenericGetDict(o, NULL)
    return None if place[0] == NULL else <object> place[0]


cdef list parts(o):
    t = type(o)
    if t is MethodType:
        return [o.__func__, o.__self__]
    if t is PARTIAL:
        return [o.func, o.args, o.keywords]
    if t is staticmethod or t is classmethod:
        return [o.__func__]
    if t is CACHED:
        return [o.func]
    if t is property:
        return [o.fget]
    attributes = read_dict(o)
    return [MISSING if attributes is None else (<dict> attributes).get("__wrapped__", MISSING)]


cdef list read(int kind, object o, list keys):
    """What the places of a record show now, for a container of the record's type; MISSING where there is nothing."""
    cdef PyObject* c = <PyObject*> o
    cdef Py_ssize_t i
    cdef list out = []
    if kind == CELLS:
        if ag_closure(c) != NULL:
            for i in range(Py_SIZE(ag_closure(c))):
                out.append(MISSING if ag_cell(ag_closure(c), i) == NULL else <object> ag_cell(ag_closure(c), i))
        return out
    if kind == FUNCTION:
        return [<object> ag_code(c), None if ag_defaults(c) == NULL else <object> ag_defaults(c),
                None if ag_kwdefaults(c) == NULL else <object> ag_kwdefaults(c), o.__globals__]
    if kind == KEYS or kind == FLAGS:
        return [(<dict> o).get(k, MISSING) for k in keys]
    if kind == DICT:
        return list((<dict> o).values())
    if kind == ATTRS:
        return [read_attribute(o, k) for k in keys]
    if kind == DICT_OF:
        return [read_dict(o)]
    if kind == ITEMS:
        for i in range(Py_SIZE(c)):
            out.append((<list> o)[i])
        return out
    if kind == TUPLE:
        for i in range(Py_SIZE(c)):
            out.append((<tuple> o)[i])
        return out
    if kind == PARTS:
        return parts(o)
    if kind == SET:
        return list(set.__iter__(o)) if type(o) is set else list(frozenset.__iter__(o))
    if kind == DEQUE:
        return list(deque.__iter__(o))
    if kind == TYPE:
        return [read_class(o, k) for k in keys]
    return out


def read_container(kind, o, keys):
    """`read`, for those who make records."""
    return read(kind, o, keys)


cpdef list dict_keys(o):
    """The keys of a dict in order, whatever its class."""
    return list((<dict> o).keys())


cpdef tuple describe_tensor(Tensor t):
    """(shape, strides, dtype, requires_grad, is_leaf)."""
    return t.shape, t.stride(), t.dtype, bool(t.needs_grad), t.node == NULL


def contents(o):
    """(shape, format, bytes) of an object with a buffer."""
    view = memoryview(o)
    return view.shape, view.format, view.tobytes()
