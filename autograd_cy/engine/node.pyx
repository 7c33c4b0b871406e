# Node: one recorded operation of the graph - its memory, its release without recursion, and where it was made.
#
# Relies on array and on the table's names. dispatch makes nodes, backward walks them, tensors point to them as `grad_fn`.
#
# The type manages its own memory: Cython's freelists clear the whole struct and its deallocation recurses, which crashes on a
# chain of a million operations. So the slots tp_dealloc, tp_traverse and tp_clear are set by hand below.

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from cpython.ref cimport Py_INCREF, Py_DECREF, Py_XDECREF
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from autograd_cy.array.layout cimport Layout, layout_decref, shape_tuple, strides_tuple, tuple_of
from autograd_cy.engine.object cimport (
    MAX_FREE_NODES, PyObject_GC_Del, PyTypeObject, ag_gc_new_var, ag_line_of, ag_place, ag_set_itemsize, ag_set_slots, ag_track,
    ag_untrack, visitproc,
)

from autograd_cy._libraries import DIRECTORY
from autograd_cy.array.dtypes import DTYPES
from autograd_cy.ops import TABLE

NAMES = tuple(TABLE)
CUSTOM, AS_STRIDED, REPLACE_STRIDED = map(NAMES.index, ("custom", "as_strided", "replace_strided"))
NUMBERS = {SAVED_FLOAT: float, SAVED_INT: int, SAVED_BOOL: bool}

cdef enum:
    CODE_CACHE = 256
    FEW_OUTPUTS = 9           # for fewer, the array of incoming gradients comes from a free list

cdef PyObject** free_outputs[FEW_OUTPUTS]      # linked through the first element
cdef PyObject* doomed = NULL          # nodes whose last reference is gone, linked likewise
cdef bint draining = False
at_record.mode = RECORD_LINES
# Of every row: Row.ints, and whether a tuple comes before them; how many attributes an elementwise one has.
cdef signed char INTS[MAX_OPS]
cdef bint TUPLE_FIRST[MAX_OPS]
cdef signed char NUMBERS_IN[MAX_OPS]
for _i, _row in enumerate(TABLE.values()):
    INTS[_i], TUPLE_FIRST[_i] = _row.ints, len(_row.attrs) > _row.ints
    NUMBERS_IN[_i] = len(_row.attrs) if _row.kind == "elementwise" else 0
cdef int SLICE = NAMES.index("slice"), PAD = NAMES.index("pad")
cdef tuple WHOLE = (None, None, None)     # an axis that is not cut


cdef class Watchers:
    pass


cdef class Owned:
    pass


cdef Watchers watchers_of(Node node):
    """The node's, made if there are none."""
    cdef Watchers w
    if node.watchers == NULL:
        w = Watchers()
        Py_INCREF(w)
        node.watchers = <PyObject*> w
    return <Watchers> node.watchers


@cython.binding(False)                    # methods check the type of self only without it
cdef class Node:
    """A recorded operation; `tensor.grad_fn`. Nodes are made by operations only."""

    def name(self):
        """Name of the operation, as PyTorch spells it: "MulBackward"; of a Function, that of its class."""
        if self.opcode == CUSTOM and self.attrs != NULL:
            return (<object> self.attrs)[0].name + "Backward"
        return "".join([part.capitalize() for part in NAMES[self.opcode].split("_")]) + "Backward"

    @property
    def operation(self):
        """The row of the table: "mul"."""
        return NAMES[self.opcode]

    @property
    def next_functions(self):
        """A pair (node, output number) per input; leaves stand for themselves, None where no gradient is needed."""
        cdef int i
        return tuple([(None if self.edges[i].target == NULL else <object> self.edges[i].target, self.edges[i].output_nr)
                      for i in range(self.n_edges)])

    @property
    def inputs(self):
        """A pair (shape, dtype) per input; a number stands for itself, and None for one that no rule needs."""
        cdef Saved* saved
        cdef int i
        result = []
        for i in range(self.n_edges):
            saved = NULL if self.released else saved_at(self, i) if i < MAX_NAMED else NULL
            if self.edges[i].layout != NULL:
                result.append((shape_tuple(self.edges[i].layout), DTYPES[self.edges[i].dtype]))
            elif saved == NULL or saved.storage != NULL or saved.kind == SAVED_PACKED:
                result.append(None)
            else:
                result.append(NUMBERS[saved.kind](saved.at.number))
        return tuple(result)

    @property
    def attributes(self):
        """The operation's attributes by name; the reduction of an elementwise loss among them."""
        names = TABLE[NAMES[self.opcode]].attrs
        found = dict(zip(names, attributes_of(self)))
        if self.reduction != NO_REDUCTION:
            found["reduction"] = "mean" if self.reduction == MEAN_REDUCTION else "sum"
        return found

    @property
    def sequence_nr(self):
        """Its place in the order of recording: every input was made before, and backward visits the latest first."""
        return self.seq

    @property
    def line(self):
        """Where the user's code made it: "file:line", or None."""
        return node_line(self) or None

    def __repr__(self):
        return f"<{self.name()}>"


node_type = <PyTypeObject*> Node


cdef tuple geometry(Layout* layout):
    return shape_tuple(layout), strides_tuple(layout)


cdef tuple attributes_of(Node node):
    cdef tuple made = ()
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef int i, first, n = <int> (node.room - EDGE_WORDS * node.n_edges)
    if node.attrs == NULL:
        if NUMBERS_IN[node.opcode]:
            n = NUMBERS_IN[node.opcode]
            made = tuple([numbers_of(node, n)[i] for i in range(n)])
        elif INTS[node.opcode] < 0:
            return made
        elif node.opcode == AS_STRIDED:                   # sizes, strides, offset; the base is the input
            n //= 2
            made = (geometry(node.edges[0].layout), (tuple_of(n, ints), tuple_of(n, ints + n), ints[2 * n]))
        elif node.opcode == REPLACE_STRIDED:              # an offset; base and window are the inputs
            made = (geometry(node.edges[0].layout), (*geometry(node.edges[1].layout), ints[0]))
        elif node.opcode == SLICE:                        # start, length, step of each axis of the input; the shape
            first = 3 * node.edges[0].layout.ndim
            made = (tuple([tuple_of(3, ints + i) if ints[i + 1] >= 0 else WHOLE for i in range(0, first, 3)]),
                    tuple_of(n - first, ints + first))
        elif node.opcode == PAD:                          # numbers for all axes; the bits of the value
            made = (tuple_of(n - 1, ints),)
            if (<const double*> ints)[n - 1]:             # else it is left out
                made += ((<const double*> ints)[n - 1],)
        elif TUPLE_FIRST[node.opcode]:
            first = n - INTS[node.opcode]
            made = (tuple_of(first, ints),) + tuple_of(n - first, ints + first)
        else:
            made = tuple_of(n, ints)
        Py_INCREF(made)
        node.attrs = <PyObject*> made
    return <tuple> node.attrs


cdef PyObject* node_grow(Py_ssize_t room) except NULL:
    """Fresh memory for a node."""
    return ag_gc_new_var(node_type, room)


cdef bint node_set_outputs(Node node, int n) except False:
    """The operation has n outputs, hence n incoming gradients."""
    cdef PyObject** pending = NULL
    if n < FEW_OUTPUTS:
        pending = free_outputs[n]
    if pending != NULL:
        free_outputs[n] = <PyObject**> pending[0]
        memset(pending, 0, n * sizeof(PyObject*))
    else:
        pending = <PyObject**> calloc(n, sizeof(PyObject*))
        if pending == NULL:
            raise MemoryError("out of memory: no room for a node of the graph")
    node.pending = pending
    node.n_outputs = n
    return True


cdef void free_pending(Node node) noexcept:
    cdef PyObject** pending = node.pending
    node.pending = &node.pending_one
    if 0 < node.n_outputs < FEW_OUTPUTS and free_nodes.count < MAX_FREE_NODES:
        pending[0] = <PyObject*> free_outputs[node.n_outputs]
        free_outputs[node.n_outputs] = pending
    else:
        free(pending)


cdef void node_make_cyclic(Node node) noexcept:
    """From now on the collector looks at the node."""
    node.cyclic = 1
    ag_track(<void*> node)


cdef void node_empty(Node node) noexcept:
    """Let go of everything the node refers to."""
    cdef int i
    cdef int n_edges = node.n_edges
    cdef PyObject* o
    node_release_saved(node)
    node.n_edges = 0
    for i in range(n_edges):
        if node.edges[i].layout != NULL:
            layout_decref(node.edges[i].layout)
        o = node.edges[i].target
        if o != NULL:
            node.edges[i].target = NULL
            Py_DECREF(<object> o)
    o = node.code
    if o != NULL:
        node.code = NULL
        Py_DECREF(<object> o)
    if node.attrs != NULL:
        o = node.attrs
        node.attrs = NULL
        if node.opcode == CUSTOM:
            (<Owned> <object> PyTuple_GET_ITEM(<object> o, 0)).node = NULL
        Py_DECREF(<object> o)
    if node.watchers != NULL:
        o = node.watchers
        node.watchers = NULL
        Py_DECREF(<object> o)
    if node.pending != &node.pending_one:
        free_pending(node)


cdef void node_dealloc(PyObject* o) noexcept:
    """Release a node and all that only it keeps alive, with a list in place of recursion."""
    global doomed, draining
    cdef Py_ssize_t room
    if (<Node> o).cyclic:
        ag_untrack(o)
    if draining:
        (<Node> o).pending_one = doomed
        doomed = o
        return
    draining = True
    while True:
        node_empty(<Node> o)
        room = (<Node> o).room
        if room < FREE_ROOMS and free_nodes.count < MAX_FREE_NODES:
            (<Node> o).pending_one = free_nodes.first[room]
            free_nodes.first[room] = o
            free_nodes.count += 1
        else:
            PyObject_GC_Del(o)
        if doomed == NULL:
            break
        o = doomed
        doomed = (<Node> o).pending_one
    draining = False


cdef int node_traverse(PyObject* o, visitproc visit, void* arg) noexcept:
    return visit_node(<Node> o, visit, arg)


cdef int visit_node(Node node, visitproc visit, void* arg) noexcept:
    cdef int i, stop
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            stop = visit(node.edges[i].target, arg)
            if stop:
                return stop
    if node.attrs != NULL:
        stop = visit(node.attrs, arg)
        if stop:
            return stop
    if node.watchers != NULL:
        stop = visit(node.watchers, arg)
        if stop:
            return stop
    if node.extra != NULL:
        return visit(node.extra, arg)
    return 0


cdef int node_clear(PyObject* o) noexcept:
    node_empty(<Node> o)
    return 0


ag_set_itemsize(Node, 8)
ag_set_slots(Node, node_dealloc, node_traverse, node_clear, NULL, NULL, 0)


# ---- the line of the user's code that made a node

cdef PyObject* seen_code[CODE_CACHE]      # direct-mapped: code object -> whether it lies inside the package
cdef bint seen_inside[CODE_CACHE]


cdef int inside_package(PyObject* code) noexcept:
    cdef size_t place = (<size_t> code >> 5) & (CODE_CACHE - 1)
    cdef bint inside
    if seen_code[place] == code:
        return seen_inside[place]
    inside = (<object> code).co_filename.startswith(DIRECTORY)
    Py_INCREF(<object> code)                    # kept, so that the address is not reused for other code
    Py_XDECREF(seen_code[place])
    seen_code[place] = code
    seen_inside[place] = inside
    return inside


cdef int remember_line(Node node) except -1:
    """Note the innermost frame outside the package: 3 ns where frames can be read as they lie, else 5 and 25 more for each activation
    of a Python function. Let whoever wants to have a look at the node."""
    if at_record.mode & RECORD_LINES:
        node.code = ag_place(inside_package, &node.lasti)
    if at_record.mode > RECORD_LINES:
        return at_record.look(node)
    return 0


cdef str node_line(Node node):
    if node.code == NULL:
        return ""
    return f"{(<object> node.code).co_filename}:{ag_line_of(node.code, node.lasti)}"


cdef str node_description(Node node):
    """"mul of shapes (3,) and (4, 3), recorded at file:line"."""
    cdef int i
    shapes = [str(shape_tuple(node.edges[i].layout)) for i in range(node.n_edges) if node.edges[i].layout != NULL]
    text = NAMES[node.opcode]
    if node.opcode == CUSTOM and node.attrs != NULL:
        text = f"the function {(<object> node.attrs)[0].name}"
    if shapes:
        text += (" of shape " if len(shapes) == 1 else " of shapes ") + " and ".join(shapes[:4])
        if len(shapes) > 4:
            text += f" and {len(shapes) - 4} more"
    line = node_line(node)
    return f"{text}, recorded at {line}" if line else text


def set_record_lines(mode):
    """Whether operations remember the line that made them, for error messages (default True)."""
    at_record.mode = at_record.mode & ~RECORD_LINES | (RECORD_LINES if mode else 0)
