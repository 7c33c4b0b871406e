# Watch: whether the values that a function could read are still what they were, at a few nanoseconds a container.
#
# Relies on the engine (Tensor) and on CPython's public structures. guards.py says what is watched and words the answers.
#
# A container (object, dict, list, closure, tensor) is a *slot*, and has one or more *records*, one kind each; a record covers
# *places*, the values it watches. Pointers are compared first, values only where pointers differ. Objects are held by weak
# references where they can be, so the pointers of a Watch hold only while none of these has died: see Deaths.
# Nothing here runs code of the user's: no property, no __eq__, no __getattr__.
#
# Above 500 lines because a Cython class cannot be divided.

cimport cython
from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp

from autograd_cy.array.layout cimport Layout, layout_decref, layout_incref, same_layout
from autograd_cy.engine.object cimport AG_TYPE, PyTypeObject
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.graph.places cimport (
    ATTRS, BUFFER, CELLS, DEQUE, DICT, DICT_OF, FLAGS, FUNCTION, ITEMS, KEYS, PARTS, SET, TENSOR, TUPLE, TYPE,
    PyDict_GetItemWithError, PyDict_Next, PyDict_Size, PyErr_Clear, Py_SIZE, _PyObject_GetDictPtr, _PyType_Lookup, ag_cell,
    ag_closure, ag_code, ag_defaults, ag_dict_version, ag_inline_count, ag_inline_index, ag_inline_values, ag_kwdefaults,
    ag_list_items, ag_version_tag, attribute, dict_keys, read, same_set, same_truth, same_value,
)

import weakref

from autograd_cy.graph.places import MISSING, contents, describe_tensor, is_value, read_attribute

cdef bint shortcuts = True
cdef str ORDER = "_order"           # where a Module lists the names of its attributes


def set_shortcuts(value):
    """Compare whole dicts and instances by CPython's versions and memory first (the default), or name by name: for tests."""
    global shortcuts
    shortcuts = value


cdef struct TensorSeen:
    char* data
    Layout* layout
    PyObject* attributes
    unsigned char dtype
    unsigned char needs_grad
    unsigned char leaf

cdef struct Attribute:
    int index
    PyObject* value

cdef struct Inline:           # the attributes of an instance as they lie in memory
    int n
    Attribute attributes[1]


# ---- watching

cdef class Deaths:
    """Notes that an object held by a weak reference has died, after which its address may belong to another."""

    def __call__(self, reference):
        self.any = True


@cython.binding(False)                    # methods check the type of self only without it
cdef class Watch:
    """Records of what containers held. `check` asks whether they still do; `differences` says what changed."""

    def __cinit__(self, *args, **kwargs):
        self.objects, self.weak, self.values, self.keys, self.record_of, self.class_names, self.extra = [], [], [], [], [], [], {}
        self.deaths = Deaths()

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_records):
            forget(&self.records[i])
        free(self.records)
        free(self.expected)
        free(self.key)
        free(self.child)

    def hold(self, o, strong=False):
        """Make an object a slot; returns its number. It is held by a weak reference where it can be, unless `strong`."""
        self.class_names.append(type(o).__name__)
        if not strong:
            try:
                self.objects.append(weakref.ref(o, self.deaths))
                self.weak.append(True)
                return len(self.objects) - 1
            except TypeError:
                pass
        self.objects.append(o)
        self.weak.append(False)
        return len(self.objects) - 1

    cdef int known(self, int number, Py_ssize_t count) except -1:
        if not 0 <= number < count:
            raise IndexError(f"a watch has no number {number} among {count}")
        return number

    cpdef object object(self, int slot):
        """The object of a slot; None if it has died."""
        self.known(slot, len(self.objects))
        return self.objects[slot]() if self.weak[slot] else self.objects[slot]

    def record(self, int kind, int slot, list keys, list values, list children, bint sized=False):
        """Watch what a container has at `keys`: `values`, of which those with a child >= 0 are slots. Returns its number."""
        cdef Record* r
        cdef int i
        cdef PyObject* c
        o = self.object(slot)
        c = <PyObject*> o
        if self.n_records == self.room_records:
            self.room_records = 2 * self.room_records + 16
            self.records = <Record*> realloc(self.records, self.room_records * sizeof(Record))
        while self.n_places + len(values) > self.room_places:
            self.room_places = 2 * self.room_places + 64
            self.expected = <PyObject**> realloc(self.expected, self.room_places * sizeof(void*))
            self.key = <PyObject**> realloc(self.key, self.room_places * sizeof(void*))
            self.child = <int*> realloc(self.child, self.room_places * sizeof(int))
        r = &self.records[self.n_records]
        r.kind, r.slot, r.start, r.n, r.size = kind, slot, self.n_places, len(values), -1
        r.container, r.type, r.version, r.more = c, AG_TYPE(c), 0, NULL
        for i in range(r.n):
            self.keys.append(keys[i])
            self.key[r.start + i] = <PyObject*> keys[i]
            self.values.append(values[i] if children[i] < 0 else None)
            self.expected[r.start + i] = NULL if values[i] is MISSING else <PyObject*> values[i]
            self.child[r.start + i] = children[i]
            self.record_of.append(self.n_records)
        self.n_places += r.n
        if sized:
            r.size = names_in(r)
        if kind == TENSOR:
            remember_tensor(r)
        elif kind == BUFFER:
            self.extra[self.n_records] = contents(o)
        else:
            remember(r)
        self.n_records += 1
        return self.n_records - 1

    def counts(self):
        """(slots, records, places)."""
        return len(self.objects), self.n_records, self.n_places

    def keys_of(self, int record):
        """The keys of a record's places."""
        self.known(record, self.n_records)
        return self.keys[self.records[record].start:self.records[record].start + self.records[record].n]

    def start_of(self, int record):
        """The first place of a record."""
        return self.records[self.known(record, self.n_records)].start

    def class_name(self, int place):
        """The name of the class of what was at a place, also when it has died."""
        return self.class_names[self.known(self.child[self.known(place, self.n_places)], len(self.class_names))]

    def is_object(self, int place):
        """Whether a place held a slot rather than a plain value."""
        return self.child[self.known(place, self.n_places)] >= 0

    def container(self, int record):
        """The slot of a record's container."""
        return self.records[self.known(record, self.n_records)].slot

    def check(self):
        """None while everything is as it was; else what `explain` makes of it."""
        if self.same():
            return None
        return self.explain()

    def explain(self):
        raise NotImplementedError

    # The fast way: pointers, in the order of the records. A container's records come after the place that led to it.

    cdef bint same(self) except -1:
        cdef Record* r
        cdef Record* end = self.records + self.n_records
        cdef PyObject** items
        cdef PyObject* closure
        cdef int i
        if self.deaths.any:
            return False
        r = self.records
        while r < end:
            if r.kind == TENSOR:
                if not same_tensor(r):
                    return False
            elif r.kind == ATTRS:
                if AG_TYPE(r.container) != r.type:
                    return False
                if not same_inline(r):
                    if not self.same_attributes(r):
                        return False
                    remember(r)
            elif r.kind == KEYS or r.kind == FLAGS or r.kind == DICT:
                if r.version == 0 or ag_dict_version(r.container) != r.version or not shortcuts:
                    if not (self.same_dict(r) if r.kind == DICT else self.same_keys(r)):
                        return False
                    remember(r)
            elif r.kind == TYPE:
                if r.version == 0 or ag_version_tag(r.container) != r.version or not shortcuts:
                    if not self.same_type(r):
                        return False
                    remember(r)
            elif r.kind == DICT_OF:
                if AG_TYPE(r.container) != r.type:
                    return False
                items = _PyObject_GetDictPtr(r.container)
                if items == NULL or items[0] != self.expected[r.start]:
                    return False
            elif r.kind == ITEMS:
                if Py_SIZE(r.container) != r.n:
                    return False
                items = ag_list_items(r.container)
                for i in range(r.n):
                    if items[i] != self.expected[r.start + i] and not self.accept(r, i, items[i]):
                        return False
            elif r.kind == CELLS:
                closure = ag_closure(r.container)
                for i in range(r.n):
                    if ag_cell(closure, i) != self.expected[r.start + i] and not self.accept(r, i, ag_cell(closure, i)):
                        return False
            elif r.kind == FUNCTION:
                if (ag_code(r.container) != self.expected[r.start]
                        or not self.same_part(r, 1, ag_defaults(r.container))
                        or not self.same_part(r, 2, ag_kwdefaults(r.container))):
                    return False
            elif r.kind == BUFFER:
                if not self.same_buffer(r):
                    return False
            elif r.kind == SET or r.kind == DEQUE:
                if self.compare(r, read(r.kind, <object> r.container, None), None, 1):
                    return False
            r += 1
        return True

    cdef bint accept(self, Record* r, int i, PyObject* now) except -1:
        """Whether another object at a place has the same value; it is expected from then on."""
        cdef int place = r.start + i
        cdef PyObject* before = self.expected[place]
        if now == NULL or before == NULL:
            return False
        if not (same_truth(<object> before, <object> now) if r.kind == FLAGS else same_value(<object> before, <object> now)):
            return False
        self.values[place] = <object> now
        self.expected[place] = now
        return True

    cdef bint same_part(self, Record* r, int i, PyObject* now) except -1:
        if now == NULL:
            now = <PyObject*> None
        return now == self.expected[r.start + i] or self.accept(r, i, now)

    cdef bint same_attributes(self, Record* r) except -1:
        cdef int i
        cdef PyObject* now
        for i in range(r.n):
            now = attribute(r.container, self.key[r.start + i])
            if now != self.expected[r.start + i] and not self.accept(r, i, now):
                Py_XDECREF(now)
                return False
            Py_XDECREF(now)
        return r.size < 0 or self.no_new_names(r)

    cdef bint same_keys(self, Record* r) except -1:
        cdef int i
        cdef PyObject* now
        for i in range(r.n):
            now = PyDict_GetItemWithError(r.container, self.key[r.start + i])
            if now == NULL:
                PyErr_Clear()
            if now != self.expected[r.start + i] and not self.accept(r, i, now):
                return False
        return r.size < 0 or self.no_new_names(r)

    cdef bint no_new_names(self, Record* r) except -1:
        cdef Py_ssize_t size = names_in(r)
        if r.size != size:
            if self.new_names(r):
                return False
            r.size = size
        return True

    cdef list new_names(self, Record* r):
        """The names that an instance has got since then and that code reads."""
        cdef int i
        known = set()
        for i in range(self.n_records):
            if self.records[i].slot == r.slot:
                known.update(self.keys_of(i))
        names = read_attribute(<object> r.container, ORDER) if r.kind == ATTRS else dict_keys(<object> r.container)
        return [k for k in names if type(k) is str and k not in known and (self.used is None or k in self.used)]

    cdef bint same_dict(self, Record* r) except -1:
        cdef int i = 0
        cdef Py_ssize_t position = 0
        cdef PyObject* k
        cdef PyObject* now
        if PyDict_Size(r.container) != r.n:
            return False
        while PyDict_Next(r.container, &position, &k, &now):
            if k != self.key[r.start + i] and not same_value(<object> self.key[r.start + i], <object> k):
                return False
            if now != self.expected[r.start + i] and not self.accept(r, i, now):
                return False
            i += 1
        return True

    cdef bint same_type(self, Record* r) except -1:
        cdef int i
        cdef PyObject* now
        for i in range(r.n):
            now = _PyType_Lookup(<PyTypeObject*> r.container, self.key[r.start + i])
            if now != self.expected[r.start + i] and not self.accept(r, i, now):
                return False
        return True

    cdef bint same_buffer(self, Record* r) except -1:
        cdef Py_buffer view
        cdef bint same
        shape, code, data = self.extra[r - self.records]
        PyObject_GetBuffer(<object> r.container, &view, PyBUF_FULL_RO)
        same = PyBuffer_IsContiguous(&view, b"C") and view.len == len(<bytes> data) and view.ndim == len(<tuple> shape)
        if same:
            same = memcmp(view.buf, <char*> <bytes> data, view.len) == 0
        PyBuffer_Release(&view)
        return same or contents(<object> r.container) == (shape, code, data)

    # The slow way: everything that differs.

    def differences(self, limit=None):
        """[(record, place or -1, what, before, now)]; what: value, size, name, tensor, contents, class, or gone."""
        cdef Record* r
        cdef int i
        cdef list found = [], now
        for i in range(self.n_records):
            r = &self.records[i]
            o = self.object(r.slot)
            if o is None:
                found.append((i, -1, "gone", None, None))
            elif r.kind == TENSOR:
                found += self.tensor_differs(r, o)
            elif r.kind == BUFFER:
                if contents(o) != self.extra[i]:
                    found.append((i, -1, "contents", None, None))
            elif AG_TYPE(<PyObject*> o) != r.type:
                found.append((i, -1, "class", <object> <PyObject*> r.type, type(o)))
            else:
                now = read(r.kind, o, self.keys[r.start:r.start + r.n])
                found += self.compare(r, now, dict_keys(o) if r.kind == DICT else None, limit)
                if r.size >= 0 and names_in(r) != r.size:
                    found += [(i, -1, "name", k, read_attribute(o, k) if r.kind == ATTRS else (<dict> o)[k])
                              for k in self.new_names(r)]
            if limit is not None and len(found) >= limit:
                break
        return found

    cdef list compare(self, Record* r, list now, list keys, object limit):
        """What differs between the places of a record and the values that are there now."""
        cdef int i, number = r - self.records
        cdef list found = []
        if r.kind == SET and r.n == len(now):
            expected = [self.value(r.start + i) for i in range(r.n)]
            if all([x is y for x, y in zip(expected, now)]) or (
                    all([is_value(x) for x in expected]) and all([is_value(x) for x in now]) and same_set(expected, now)):
                return found
            return [(number, -1, "size", r.n, r.n)]
        if r.kind not in (KEYS, FLAGS, ATTRS, TYPE, FUNCTION, PARTS) and r.n != len(now):
            return [(number, -1, "size", r.n, len(now))]
        for i in range(r.n):
            if keys is not None and not same_value(self.keys[r.start + i], keys[i]):
                return [(number, -1, "size", r.n, r.n)]
            value = self.value(r.start + i)
            dead = value is None and self.child[r.start + i] >= 0
            if not dead and (value is now[i] or value is not MISSING and now[i] is not MISSING
                             and (same_truth(value, now[i]) if r.kind == FLAGS else same_value(value, now[i]))):
                continue
            found.append((number, r.start + i, "value", value, now[i]))
            if limit is not None:
                break
        return found

    cpdef object value(self, int place):
        """What a place showed; None if that has died."""
        if self.expected[self.known(place, self.n_places)] == NULL:
            return MISSING
        return self.values[place] if self.child[place] < 0 else self.object(self.child[place])

    cdef list tensor_differs(self, Record* r, object o):
        cdef Tensor t = <Tensor> o
        cdef TensorSeen* seen = <TensorSeen*> r.more
        cdef int number = r - self.records
        if same_tensor(r):
            return []
        if not same_layout(seen.layout, t.layout):
            return [(number, -1, "tensor", "shape", None)]
        if seen.dtype != t.dtype_:
            return [(number, -1, "tensor", "dtype", None)]
        if seen.needs_grad != t.needs_grad:
            return [(number, -1, "tensor", "requires_grad", bool(t.needs_grad))]
        if seen.leaf != (t.node == NULL):
            return [(number, -1, "tensor", "leaf", t.node == NULL)]
        return [(number, -1, "tensor", "memory" if seen.data != t.data else "attributes", None)]

    # The same places of another function.

    def follow(self, dict roots, set shared):
        """The objects, by slot, that the same places lead to from other roots {slot: object}; `shared` slots must be the same.

        Or the first difference: (record, place or -1, what, here, there).
        """
        cdef Record* r
        cdef int i, j, child
        cdef list now, keys, objects = [None] * len(self.objects)
        cdef dict slot_of = {}
        for i in shared:
            objects[i] = self.object(i)
        for i, o in roots.items():
            objects[i] = o
        for i in range(self.n_records):
            r = &self.records[i]
            o = objects[r.slot]
            if o is None or r.kind == TYPE:
                continue
            if AG_TYPE(<PyObject*> o) != r.type:
                return i, -1, "class", <object> <PyObject*> r.type, type(o)
            if r.kind == TENSOR or r.kind == BUFFER:
                mine = self.object(r.slot)
                if mine is not None and mine is not o:
                    if r.kind == BUFFER and contents(o) != self.extra[i]:
                        return i, -1, "contents", None, None
                    if r.kind == TENSOR and describe_tensor(mine) != describe_tensor(o):
                        return i, -1, "layout", mine, o
                continue
            keys = self.keys_of(i)
            now = read(r.kind, o, keys)
            if r.kind == DICT and not (len(now) == r.n and all([same_value(x, y) for x, y in zip(keys, dict_keys(o))])):
                return i, -1, "size", r.n, len(now)
            if r.n != len(now) and r.kind in (ITEMS, TUPLE, SET, DEQUE, CELLS):
                return i, -1, "size", r.n, len(now)
            for j in range(r.n):
                child = self.child[r.start + j]
                if child < 0:
                    value = self.values[r.start + j]
                    if not (value is now[j] or (same_truth(value, now[j]) if r.kind == FLAGS else same_value(value, now[j]))):
                        return i, r.start + j, "value", value, now[j]
                elif objects[child] is None:
                    if now[j] is MISSING or type(now[j]) is not type(self.object(child)):
                        return i, r.start + j, "value", self.object(child), now[j]
                    if slot_of.setdefault(id(now[j]), child) != child and not isinstance(now[j], tuple):
                        return i, r.start + j, "same", slot_of[id(now[j])], now[j]
                    objects[child] = now[j]
                elif objects[child] is not now[j] and not (isinstance(now[j], tuple) and same_value(objects[child], now[j])):
                    if child in shared:
                        return i, r.start + j, "value", objects[child], now[j]
                    return i, r.start + j, "other", child, now[j]
        return objects


# ---- what whole containers look like

cdef Py_ssize_t names_in(Record* r) except -1:
    """How many attributes an instance has: entries of its __dict__, or names that a Module lists."""
    cdef PyObject* names
    cdef Py_ssize_t size
    if r.kind == KEYS:
        return PyDict_Size(r.container)
    names = attribute(r.container, <PyObject*> ORDER)
    size = Py_SIZE(names)
    Py_XDECREF(names)
    return size


cdef void forget(Record* r) noexcept:
    if r.more != NULL:
        if r.kind == TENSOR:
            layout_decref((<TensorSeen*> r.more).layout)
        free(r.more)
        r.more = NULL


cdef void remember_tensor(Record* r) noexcept:
    cdef TensorSeen* seen = <TensorSeen*> malloc(sizeof(TensorSeen))
    cdef Tensor t = <Tensor> r.container
    seen.data, seen.layout, seen.attributes = t.data, t.layout, t.attributes
    seen.dtype, seen.needs_grad, seen.leaf = t.dtype_, t.needs_grad, t.node == NULL
    layout_incref(seen.layout)
    r.more = seen


cdef inline bint same_tensor(Record* r) noexcept:
    cdef TensorSeen* seen = <TensorSeen*> r.more
    cdef PyObject* t = r.container
    return ((<Tensor> t).data == seen.data and (<Tensor> t).dtype_ == seen.dtype and (<Tensor> t).needs_grad == seen.needs_grad
            and ((<Tensor> t).node == NULL) == seen.leaf and (<Tensor> t).attributes == seen.attributes
            and ((<Tensor> t).layout == seen.layout or same_layout((<Tensor> t).layout, seen.layout)))


cdef void remember(Record* r) noexcept:
    """Note versions and memory of a container whose places are all right, so that the next look is a comparison or two."""
    cdef PyObject** values
    cdef Inline* seen
    cdef int i, n, index
    if r.kind == KEYS or r.kind == FLAGS or r.kind == DICT:
        r.version = ag_dict_version(r.container)
    elif r.kind == TYPE:
        r.version = ag_version_tag(r.container)
    elif r.kind == ATTRS:
        forget(r)
        values = ag_inline_values(r.container)
        if values == NULL:
            return
        n = ag_inline_count(values)
        seen = <Inline*> malloc(sizeof(Inline) + n * sizeof(Attribute))
        seen.n = n
        for i in range(n):
            index = ag_inline_index(values, i)
            seen.attributes[i].index = index
            seen.attributes[i].value = values[index]
        r.more = seen


cdef inline bint same_inline(Record* r) noexcept:
    cdef Inline* seen = <Inline*> r.more
    cdef PyObject** values
    cdef int i
    if seen == NULL or not shortcuts:
        return False
    values = ag_inline_values(r.container)
    if values == NULL or ag_inline_count(values) != seen.n:
        return False
    for i in range(seen.n):
        if values[seen.attributes[i].index] != seen.attributes[i].value:
            return False
    return True
