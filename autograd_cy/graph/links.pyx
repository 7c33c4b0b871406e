# Where captured programs meet the live graph: what a result depends on, what its gradient may read, compiled calls as nodes.
#
# Relies on the engine's nodes and on machine. capture, compile and control rely on it.

import gc
from types import ModuleType

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memset

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport Layout, layout_incref, layout_strided
from autograd_cy.array.storage cimport Storage, storage_decref, storage_new
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Edge, Node, free_nodes, is_node, node_new, node_set_outputs, remember_line
from autograd_cy.engine.pointer_map cimport PointerMap, map_free, map_get, map_set
from autograd_cy.engine.record cimport saved_or_raise, set_edge, set_history
from autograd_cy.engine.tensor cimport Tensor, tensor_wrap
from autograd_cy.graph.machine cimport Instance

from autograd_cy.engine.tensor import OPCODES

cdef int CAPTURED = OPCODES["captured"]


cdef list only_tensors(given):
    cdef list found = list(given)
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"expected tensors, got {type(t).__name__}")
    return found


def last_node():
    """The sequence number of the newest node: later ones are larger."""
    return free_nodes.last_seq


def has_graph(Tensor t not None):
    """Whether an operation that can still be differentiated made the tensor."""
    return t.node != NULL and not (<Node> t.node).released


def has_graph_since(Tensor t not None, long long since):
    """Whether such an operation made it, or wrote into it, after `since`."""
    return has_graph(t) and (<Node> t.node).seq > since


def dependencies(outputs, long long since, known=()):
    """(leaves, older): the leaf tensors that the outputs' graph reaches, in a fixed order, and the first node it reaches that was
    made up to `since`. The graph behind the tensors in `known` is not entered."""
    cdef list stack = []
    cdef set seen = set()
    cdef list leaves = []
    cdef PyObject* target
    cdef int i
    older = None
    known, outputs = only_tensors(known), only_tensors(outputs)
    stops = {(<size_t> (<Tensor> t).node, (<Tensor> t).output_nr) for t in known if (<Tensor> t).node != NULL}
    for t in outputs:
        if (<Tensor> t).node != NULL and (<size_t> (<Tensor> t).node, (<Tensor> t).output_nr) not in stops:
            stack.append(<object> (<Tensor> t).node)
        elif (<Tensor> t).needs_grad and (<Tensor> t).node == NULL and id(t) not in seen:
            seen.add(id(t))
            leaves.append(t)
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        if (<Node> o).seq <= since:
            older = older if older is not None else o
            continue
        for i in range((<Node> o).n_edges):
            target = (<Node> o).edges[i].target
            if target == NULL or (<size_t> target, (<Node> o).edges[i].output_nr) in stops:
                continue
            if is_node(target):
                stack.append(<object> target)
            elif <size_t> target not in seen:
                seen.add(<size_t> target)
                leaves.append(<object> target)
    return leaves, older


cdef struct Walk:
    PointerMap seen
    PyObject** stack
    Py_ssize_t n, room


cdef int arrive(Walk* walk, PyObject* target, long long since) except -1:
    """1 at something that lies beyond; else the target, if it is new, waits for its turn."""
    cdef void* larger
    if map_get(&walk.seen, target, 0):
        return 0
    if not is_node(target) or (<Node> target).seq <= since:
        return 1
    map_set(&walk.seen, target, 1)
    if walk.n == walk.room:
        larger = PyMem_Realloc(walk.stack, (2 * walk.room + 32) * sizeof(PyObject*))
        if larger == NULL:
            raise MemoryError("out of memory in a walk over the graph")
        walk.stack, walk.room = <PyObject**> larger, 2 * walk.room + 32
    walk.stack[walk.n] = target
    walk.n += 1
    return 0


def reaches_beyond(outputs, long long since, own):
    """Whether the outputs' graph reaches a node made up to `since`, or a leaf that is not among the tensors in `own`."""
    cdef Walk walk
    cdef Node node
    cdef int i
    memset(&walk, 0, sizeof(Walk))
    outputs = only_tensors(outputs)
    try:
        for t in own:
            map_set(&walk.seen, <PyObject*> t, 1)
        for t in outputs:
            if (<Tensor> t).needs_grad and arrive(&walk, (<Tensor> t).node if (<Tensor> t).node != NULL else <PyObject*> t, since):
                return True
        while walk.n:
            walk.n -= 1
            node = <Node> walk.stack[walk.n]
            for i in range(node.n_edges):
                if node.edges[i].target != NULL and arrive(&walk, node.edges[i].target, since):
                    return True
        return False
    finally:
        PyMem_Free(walk.stack)
        map_free(&walk.seen)


def crossings(outputs, long long since):
    """A tensor for each value made up to `since` that the outputs' graph reaches, to differentiate by: its history, shape and dtype are
    the value's, its memory is not. An output that is older stands for itself."""
    cdef list stack = []
    cdef set seen = set()
    cdef dict found = {}
    cdef PyObject* target
    cdef Edge* edge
    cdef Storage* storage
    cdef int i
    for t in only_tensors(outputs):
        if (<Tensor> t).node != NULL:
            if (<Node> (<Tensor> t).node).seq > since:
                stack.append(<object> (<Tensor> t).node)
            else:
                found.setdefault((<size_t> (<Tensor> t).node, (<Tensor> t).output_nr), t)
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        for i in range((<Node> o).n_edges):
            edge = &(<Node> o).edges[i]
            target = edge.target
            if target == NULL or not is_node(target):
                continue
            if (<Node> target).seq > since:
                stack.append(<object> target)
            elif (<size_t> target, edge.output_nr) not in found:
                storage = storage_new(itemsize_of(edge.dtype))
                layout_incref(edge.layout)
                made = <object> tensor_wrap(storage, edge.layout, storage.data, edge.dtype)
                Py_DECREF(made)
                Py_INCREF(<object> target)
                set_history(<PyObject*> made, target, edge.output_nr)
                found[(<size_t> target, edge.output_nr)] = made
    return list(found.values())


def redirect(outputs, long long since, known, originals, aliases):
    """Let the outputs' graph, as far as it was made after `since`, lead to aliases in place of the originals: a backward pass to the
    aliases then ends there, and goes through nothing that lies behind. Returns the outputs, an original among them replaced by its
    alias, or None where the graph leads to something else than these and the tensors in `known`."""
    cdef dict places = {key_of(o): alias for o, alias in zip(only_tensors(originals), only_tensors(aliases))}
    cdef set allowed = {key_of(t) for t in only_tensors(known)}
    cdef set seen = set()
    cdef list stack = []
    cdef list found = []
    cdef PyObject* target
    cdef Edge* edge
    cdef int i
    for t in only_tensors(outputs):
        key = key_of(t)
        if (<Tensor> t).node != NULL and (<Node> (<Tensor> t).node).seq > since:
            stack.append(<object> (<Tensor> t).node)
        elif key in places:
            t = places[key]
        elif key not in allowed:
            return None
        found.append(t)
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        for i in range((<Node> o).n_edges):
            edge = &(<Node> o).edges[i]
            target = edge.target
            if target == NULL:
                continue
            if is_node(target) and (<Node> target).seq > since:
                stack.append(<object> target)
                continue
            key = (<size_t> target, edge.output_nr)
            alias = places.get(key)
            if alias is not None:
                Py_INCREF(<object> (<Tensor> alias).node)
                edge.target, edge.output_nr = (<Tensor> alias).node, (<Tensor> alias).output_nr
                Py_DECREF(<object> target)
            elif key not in allowed:
                return None
    return found


cdef tuple key_of(Tensor t):
    return (<size_t> (t.node if t.node != NULL else <PyObject*> t), t.output_nr if t.node != NULL else 0)


def saved_addresses(outputs, long long since):
    """Where the memory of every value lies that a backward pass from these outputs could read: addresses of storages."""
    cdef list stack = [<object> (<Tensor> t).node for t in only_tensors(outputs) if (<Tensor> t).node != NULL]
    cdef set seen = set()
    cdef set found = set()
    cdef PyObject* target
    cdef Node node
    cdef int i
    while stack:
        o = stack.pop()
        if id(o) in seen:
            continue
        seen.add(id(o))
        node = <Node> o
        if node.seq <= since:
            continue
        for i in range(node.n_saved):
            if node.saved[i].storage != NULL:
                found.add(<size_t> node.saved[i].storage.data)
        if node.attrs != NULL:
            add_tensors(<object> node.attrs, found, 4)
        if node.extra != NULL:
            add_tensors(<object> node.extra, found, 4)
        for i in range(node.n_edges):
            target = node.edges[i].target
            if target != NULL and is_node(target):
                stack.append(<object> target)
    return found


cdef add_tensors(o, set found, int depth):
    """The addresses of the tensors in an attribute: itself, in a tuple, held by an index."""
    if isinstance(o, Tensor):
        found.add(<size_t> (<Tensor> o).storage.data)
    elif depth and not isinstance(o, (str, int, float, type, ModuleType)):
        for part in gc.get_referents(o):
            add_tensors(part, found, depth - 1)


def versions(Instance instance not None, indices):
    """How often each of these buffers' memory was changed in place."""
    cdef Py_ssize_t i
    found = []
    for index in indices:
        i = index
        found.append(instance.storages[i].version)
    return found


def let_go(Instance instance not None, indices):
    """Leave the memory of results to the tensors that were made on it."""
    cdef Py_ssize_t i
    for index in indices:
        i = index
        if instance.storages[i] != NULL:
            storage_decref(instance.storages[i])
            instance.storages[i] = NULL


def strided(shape, strides, int dtype):
    """A tensor with these strides, whose values are not set; TypeError where several indices would name one element."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t lowest = 0, highest = 0
    cdef Layout* layout
    cdef Storage* storage
    cdef int i
    for i in range(<int> len(shape)):
        sizes[i], steps[i] = shape[i], strides[i]
        if sizes[i] == 0:
            lowest = highest = 0
            break
        if steps[i] < 0:
            lowest += (sizes[i] - 1) * steps[i]
        else:
            highest += (sizes[i] - 1) * steps[i]
    for i in range(<int> len(shape)):
        sizes[i], steps[i] = shape[i], strides[i]
    layout = layout_strided(<int> len(shape), sizes, steps)
    storage = storage_new(max((highest - lowest + 1) * itemsize_of(dtype), 1))
    made = <object> tensor_wrap(storage, layout, storage.data - lowest * itemsize_of(dtype), dtype)
    Py_DECREF(made)
    return made


def attach(list outputs, list inputs, call):
    """Make one node the history of all outputs; `call.backward(grads)` and `call.differentiate(grads)` give its gradients."""
    cdef PyObject* node = node_new(CAPTURED, <int> len(inputs), 0)
    cdef int k
    node_set_outputs(<Node> node, <int> len(outputs))
    for k, t in enumerate(inputs):
        set_edge(&(<Node> node).edges[k], <Tensor?> t)
    attrs, extra = (tuple([t.shape for t in outputs]),), (call,)
    Py_INCREF(attrs)
    (<Node> node).attrs = <PyObject*> attrs
    Py_INCREF(extra)
    (<Node> node).extra = <PyObject*> extra
    remember_line(<Node> node)
    for k, t in enumerate(outputs):
        Py_INCREF(<object> node)
        set_history(<PyObject*> <Tensor?> t, node, k)
    Py_DECREF(<object> node)


cdef int captured_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef int i
    if node.extra == NULL:
        saved_or_raise(node, 31)
    given = [<object> grads[i] if grads[i] != NULL else None for i in range(node.n_outputs)]
    needed = [node.edges[i].target != NULL for i in range(node.n_edges)]
    values = (<object> node.extra)[0].backward(given, needed)
    for i in range(node.n_edges):
        if node.edges[i].target != NULL and values[i] is not None:
            value = values[i]
            Py_INCREF(value)
            result[i] = <PyObject*> value
    return 0


backwards[CAPTURED] = captured_backward


def shares_memory(Tensor a not None, Tensor b not None):
    """Whether two tensors have one storage."""
    return a.storage == b.storage
