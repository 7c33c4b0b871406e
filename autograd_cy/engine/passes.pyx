# The state of a backward pass, adding gradients, and the iterative engine.
#
# Relies on node, tensor, gradients. backward.pyx starts passes and gives the leaves their gradients; the recursive engine is recursion.pyx.
#
# Above 500 lines because adding gradients and the state of a pass are one thing: who owns a gradient decides whether it is copied.
#
# One answer from every engine: contributions to a gradient are added in the order of their consumers' sequence numbers, latest
# first, and by input number within one consumer. The iterative engine gets this order from a heap of nodes keyed by sequence number:
# as every edge leads to a smaller number, a node that is taken from the heap has received all its contributions, without counting.
#
# Above 500 lines because the engine's inner loop and what it calls must be one module to be inlined.

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from autograd_cy.array.layout cimport DENSE, layout_contiguous_like, layout_decref, same_layout, same_shape
from autograd_cy.engine.dispatch cimport binary
from autograd_cy.engine.gradients cimport node_backward
from autograd_cy.engine.hooks cimport after_rule, before_rule, run_output_hooks, switches
from autograd_cy.engine.node cimport Node, Watchers, is_node, node_release_saved
from autograd_cy.engine.operands cimport GRAIN, copy_of
from autograd_cy.engine.pointer_map cimport PointerMap, map_free, map_get, map_set
from autograd_cy.engine.tensor cimport ADD, CYCLIC, Tensor, set_grad
from autograd_cy.kernels.table cimport ALL_VECTORS, recorder, recording, run_loop

from autograd_cy import ops
from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.gradients import FUNCTIONS

cdef int ADD_LOOP = ops.loop_id("add")
cdef bint fast_taken = False  # whether a running pass keeps its state in the nodes themselves
cdef Pass spare = None        # a pass that was given back, with its memory


# ---- adding gradients

cdef int add_to(PyObject** place, PyObject* contribution, bint create_graph) except -1:
    """place += contribution; takes over the reference to the contribution."""
    cdef PyObject* total = place[0]
    cdef PyObject* result
    cdef char* p[3]
    cdef Tensor a
    cdef Tensor b
    if total == NULL:
        place[0] = contribution
        return 0
    a, b = <Tensor> total, <Tensor> contribution
    if not create_graph and not recording() and same_layout(a.layout, b.layout) and a.layout.flags & DENSE and a.dtype_ == b.dtype_ \
            and a.layout.numel < GRAIN and ag_tensor_refs(total) == 2 and a.storage.refs == 1 and a.base == NULL:
        p[0], p[1], p[2] = a.data, a.data, b.data
        run_loop(ADD_LOOP, a.dtype_, ALL_VECTORS, a.layout.numel, p, NULL)
        Py_DECREF(<object> contribution)
        return 0
    try:
        result = binary(ADD, total, contribution)
    finally:
        Py_DECREF(<object> contribution)
    place[0] = result
    Py_DECREF(<object> total)
    return 0


cdef extern from *:
    """
    #define ag_tensor_refs(o) Py_REFCNT((PyObject*) (o))
    """
    Py_ssize_t ag_tensor_refs(PyObject* o) noexcept


cdef PyObject* private_copy(PyObject* g, Tensor leaf, bint create_graph, bint as_leaf) except NULL:
    """The gradient in memory of its own, laid out as the leaf, or (not as_leaf) as it is; takes over the reference to g."""
    cdef Tensor t = <Tensor> g
    cdef PyObject* copied
    if not same_shape(t.layout, leaf.layout):
        Py_DECREF(t)
        raise worded(ShapeError, "backward: the gradient of a tensor has shape {.shape}, but its memory was exchanged (x.data = ...) and "
                                 "the tensor has shape {.shape} now", t, leaf)
    if create_graph and t.needs_grad:            # a leaf too, where the gradient is a grad_output passed straight through
        if t.node != NULL and t.layout.flags & DENSE and ag_tensor_refs(g) == 2:
            return g
        result = FUNCTIONS["clone"](t)
        Py_INCREF(result)
        Py_DECREF(t)
        return <PyObject*> result
    as_leaf = as_leaf or not t.layout.flags & DENSE
    if t.storage.refs == 1 and t.base == NULL and ag_tensor_refs(g) == 2 \
            and (not as_leaf or same_layout(t.layout, leaf.layout) and t.layout.flags & DENSE):
        return g
    layout = t.layout if not as_leaf else leaf.layout if leaf.layout.flags & DENSE else NULL
    if layout != NULL:
        copied = copy_of(t, layout)
    else:
        layout = layout_contiguous_like(leaf.layout)
        copied = copy_of(t, layout)
        layout_decref(layout)
    Py_DECREF(t)
    return copied


cdef int give_grad(Tensor leaf, PyObject* total) except -1:
    """As `accumulate` without create_graph; the usual case first: the leaf's first gradient, which nobody else refers to."""
    if leaf.grad_ == NULL and ag_tensor_refs(total) == 1 and (<Tensor> total).layout == leaf.layout \
            and leaf.layout.flags & DENSE and (<Tensor> total).storage.refs == 1 and (<Tensor> total).base == NULL \
            and (<Tensor> total).node == NULL and not (<Tensor> total).flags & CYCLIC and not recording():
        leaf.grad_ = total
        return 0
    return accumulate(leaf, total, False)


cdef int accumulate(Tensor leaf, PyObject* total, bint create_graph) except -1:
    """leaf.grad += total; takes over the reference to total."""
    cdef Tensor grad
    cdef PyObject* result
    cdef char* p[3]
    if recording():
        recorder.leaf(leaf, True)
    if leaf.grad_ == NULL:
        result = private_copy(total, leaf, create_graph, True)
        set_grad(leaf, result)
        Py_DECREF(<object> result)
        return 0
    grad = <Tensor> leaf.grad_
    if create_graph or grad.needs_grad:
        try:
            result = binary(ADD, leaf.grad_, total)
        finally:
            Py_DECREF(<object> total)
        set_grad(leaf, result)
        Py_DECREF(<object> result)
        return 0
    if same_layout(grad.layout, (<Tensor> total).layout) and grad.layout.flags & DENSE and grad.dtype_ == (<Tensor> total).dtype_:
        p[0], p[1], p[2] = grad.data, grad.data, (<Tensor> total).data
        run_loop(ADD_LOOP, grad.dtype_, ALL_VECTORS, grad.layout.numel, p, NULL)
        grad.storage.version += 1
    else:
        FUNCTIONS["add_"](grad, <object> total)
    Py_DECREF(<object> total)
    return 0


# ---- the state of one pass

cdef class Pass:
    """One backward pass: the heap of nodes that have gradients, the leaves reached, what to capture."""

    def __dealloc__(self):
        drop_everything(self)
        PyMem_Free(self.heap)
        PyMem_Free(self.leaves)
        PyMem_Free(self.result)


cdef Pass take_pass(bint retain_graph, bint create_graph):
    """A pass without state: the one that was given back last, or a new one."""
    global spare, fast_taken
    cdef Pass run = spare
    if run is None:
        run = Pass.__new__(Pass)
    spare = None
    run.create_graph = create_graph
    run.retain_graph = retain_graph
    run.restricted = run.quiet = False
    if not fast_taken:
        fast_taken = run.fast = True
    return run


cdef void give_back(Pass run) noexcept:
    """Drop what is left (after an exception, a good deal) and keep the memory for the next pass."""
    global spare
    drop_everything(run)
    spare = run


cdef void drop_node(Pass run, PyObject* node) noexcept:
    """Release a node that the pass holds, and the gradients that wait in it."""
    cdef int k
    if run.fast:
        (<Node> node).queued = 0
        for k in range((<Node> node).n_outputs):
            drop(&(<Node> node).pending[k])
    Py_DECREF(<object> node)


cdef void drop_everything(Pass run) noexcept:
    cdef Py_ssize_t i
    cdef int k
    cdef Slot* slot
    cdef PyObject* o
    global fast_taken
    for k in range(run.n_result):
        drop(&run.result[k])
    run.n_result = 0
    if run.running != NULL:
        o = run.running
        run.running = NULL
        if run.at_rule:
            leave_rule(run, <Node> o)
        drop_node(run, o)
    while run.n_heap:
        run.n_heap -= 1
        o = run.heap[run.n_heap]
        drop_node(run, o)
    while run.n_leaves:
        run.n_leaves -= 1
        o = run.leaves[run.n_leaves]
        if o == NULL:                            # has its gradient
            continue
        if run.fast:
            (<Tensor> o).queued = 0
            drop(&(<Tensor> o).pending_one)
        Py_DECREF(<object> o)
    for i in range(<Py_ssize_t> run.slots.capacity):
        if run.slots.keys[i] != NULL:
            slot = <Slot*> run.slots.values[i]
            for k in range(slot.n):
                drop(&slot.grads[k])
            free(slot.grads)
            free(slot)
    if run.slots.capacity:
        map_free(&run.slots)
    if run.needed.capacity:
        map_free(&run.needed)
    run.captures = run.retained = None
    if run.fast:
        run.fast = False
        fast_taken = False


cdef Slot* slot_of(Pass run, PyObject* target, int n) except NULL:
    cdef Slot* slot = <Slot*> map_get(&run.slots, target, 0)
    if slot == NULL:
        slot = <Slot*> calloc(1, sizeof(Slot))
        if slot == NULL:
            raise MemoryError("out of memory during backward")
        slot.grads = <PyObject**> calloc(n, sizeof(PyObject*))
        slot.n = n if slot.grads != NULL else 0
        map_set(&run.slots, target, <Py_ssize_t> slot)
        if slot.grads == NULL:
            raise MemoryError("out of memory during backward")
    return slot


cdef bint is_needed(Pass run, PyObject* target) noexcept:
    return not run.restricted or map_get(&run.needed, target, 1) >= 2


cdef bint is_passed(Pass run, PyObject* node) noexcept:
    """Whether gradients go on from the node; one whose gradient was asked for, and nothing below, is not differentiated."""
    return not run.restricted or map_get(&run.needed, node, 1) != 3


cdef int contribute(Pass run, PyObject* target, int output_nr, PyObject* g) except -1:
    """Add a gradient to what the target has so far; takes over the reference to g."""
    if not run.fast or run.restricted:
        return contribute_anywhere(run, target, output_nr, g)
    if is_node(target):
        if (<Node> target).pending[output_nr] == NULL:
            (<Node> target).pending[output_nr] = g
            if not (<Node> target).queued:
                (<Node> target).queued = 1
                if run.n_heap == 0 and run.heap_room:        # as in a chain
                    Py_INCREF(<object> target)
                    run.heap[0] = target
                    run.n_heap = 1
                else:
                    heap_push(run, target)
            return 0
    elif not (<Tensor> target).queued and run.n_leaves < run.leaf_room:
        (<Tensor> target).queued = 1
        (<Tensor> target).pending_one = g
        Py_INCREF(<object> target)
        run.leaves[run.n_leaves] = target
        run.n_leaves += 1
        return 0
    return contribute_anywhere(run, target, output_nr, g)


cdef int contribute_anywhere(Pass run, PyObject* target, int output_nr, PyObject* g) except -1:
    cdef Slot* slot
    cdef PyObject** place
    cdef bint queued
    cdef bint node = is_node(target)
    if not is_needed(run, target):
        Py_DECREF(<object> g)
        return 0
    try:
        if run.fast:
            if node:
                place = &(<Node> target).pending[output_nr]
                queued = (<Node> target).queued
                (<Node> target).queued = 1
            else:
                place = &(<Tensor> target).pending_one
                queued = (<Tensor> target).queued
                (<Tensor> target).queued = 1
        else:
            slot = slot_of(run, target, (<Node> target).n_outputs if node else 1)
            place = &slot.grads[output_nr if node else 0]
            queued = slot.queued
            slot.queued = True
        if not queued:
            if node:
                heap_push(run, target)
            else:
                note_leaf(run, target)
    except BaseException:
        Py_DECREF(<object> g)
        raise
    return add_to(place, g, run.create_graph)


cdef int note_leaf(Pass run, PyObject* leaf) except -1:
    cdef void* larger
    if run.n_leaves == run.leaf_room:
        larger = PyMem_Realloc(run.leaves, (run.leaf_room * 2 + 16) * sizeof(PyObject*))
        if larger == NULL:
            (<Tensor> leaf).queued = 0
            raise MemoryError("out of memory during backward")
        run.leaves = <PyObject**> larger
        run.leaf_room = run.leaf_room * 2 + 16
    Py_INCREF(<object> leaf)
    run.leaves[run.n_leaves] = leaf
    run.n_leaves += 1
    return 0


cdef int heap_push(Pass run, PyObject* node) except -1:
    cdef void* larger
    cdef Py_ssize_t i, parent
    cdef long long seq = (<Node> node).seq
    if run.n_heap == run.heap_room:
        larger = PyMem_Realloc(run.heap, (run.heap_room * 2 + 16) * sizeof(PyObject*))
        if larger == NULL:
            (<Node> node).queued = 0
            raise MemoryError("out of memory during backward")
        run.heap = <PyObject**> larger
        run.heap_room = run.heap_room * 2 + 16
    Py_INCREF(<object> node)
    i = run.n_heap
    run.n_heap += 1
    if i == 0:
        run.heap[0] = node
        return 0
    while i:
        parent = (i - 1) >> 1
        if (<Node> run.heap[parent]).seq >= seq:
            break
        run.heap[i] = run.heap[parent]
        i = parent
    run.heap[i] = node
    return 0


cdef PyObject* heap_pop(Pass run) noexcept:
    """The node of the largest sequence number (with its reference)."""
    cdef PyObject* top = run.heap[0]
    cdef PyObject* last
    cdef Py_ssize_t i = 0, child, n
    run.n_heap -= 1
    n = run.n_heap
    if n == 1:
        run.heap[0] = run.heap[1]
    elif n:
        last = run.heap[n]
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and (<Node> run.heap[child + 1]).seq > (<Node> run.heap[child]).seq:
                child += 1
            if (<Node> run.heap[child]).seq <= (<Node> last).seq:
                break
            run.heap[i] = run.heap[child]
            i = child
        run.heap[i] = last
    return top


# ---- what both engines do at a node

cdef int arrived(Pass run, Node node, int k, PyObject** g) except -1:
    """The gradient of output k is complete: hooks may replace it; what they leave is kept by retain_grad() and captured by grad()."""
    cdef Watchers w
    if g[0] == NULL:
        return 0
    if node.watchers != NULL:
        run_output_hooks(node, k, g)
        w = <Watchers> node.watchers
        for reference in w.retained or ():
            tensor = reference()
            if tensor is not None and (<Tensor> tensor).node == <PyObject*> node and (<Tensor> tensor).output_nr == k:
                if run.retained is None:
                    run.retained = []
                run.retained.append((tensor, <object> g[0]))
    if run.captures is not None:
        key = (<size_t> <PyObject*> node, k)
        if key in run.captures:
            run.captures[key] = <object> g[0]
    return 0


cdef int apply_watched(Pass run, Node node, PyObject** grads, PyObject** result) except -1:
    """The rule of a node where somebody looks on: hooks before and after, gradients that are kept, a step-through."""
    cdef int k
    if run.captures is not None or node.watchers != NULL:
        for k in range(node.n_outputs):
            arrived(run, node, k, &grads[k])
    if not is_passed(run, <PyObject*> node):
        return 0
    if node.watchers == NULL or before_rule(node, grads):
        node_backward(node, grads, run.create_graph, result, False)
    if node.watchers != NULL or switches.anomaly:
        after_rule(node, grads, result, run.retain_graph)
    if run.observer is not None:
        run.observer(node, tensors_from(grads, node.n_outputs), tensors_from(result, node.n_edges))
    return 0


cdef list tensors_from(PyObject** grads, int n):
    """As a list, with None where there is none."""
    return [<object> grads[k] if grads[k] != NULL else None for k in range(n)]


cdef int run_iterative(Pass run) except -1:
    cdef PyObject* o
    cdef PyObject** grads
    cdef PyObject** result
    cdef Node node
    cdef int i, n
    cdef bint fast = run.fast
    cdef bint watched = recording() or run.captures is not None or switches.anomaly     # none changes while a pass runs
    while run.n_heap:
        if run.n_heap == 1:
            run.n_heap = 0
            o = run.heap[0]
        else:
            o = heap_pop(run)
        if run.running != NULL:
            Py_DECREF(<object> run.running)
        run.running = o                          # with the heap's reference; a failing pass names it
        node = <Node> o
        if watched and recording():
            recorder.node(node)
        n = node.n_edges
        if n > run.result_room:
            make_result_room(run, n)
        result = run.result
        run.n_result = n
        if fast:
            grads = node.pending
            node.queued = 0
        else:
            grads = slot_of(run, o, node.n_outputs).grads
        enter_rule(run, node)
        if watched or node.watchers != NULL:
            apply_watched(run, node, grads, result)
        else:
            node_backward(node, grads, run.create_graph, result, True)
        leave_rule(run, node)
        for i in range(node.n_outputs):
            drop(&grads[i])
        if not run.retain_graph and not node.users and (node.n_saved or node.extra != NULL) \
                and (not watched or is_passed(run, <PyObject*> node)):
            node_release_saved(node)
        for i in range(n):
            if result[i] != NULL:
                o = result[i]
                result[i] = NULL
                contribute(run, node.edges[i].target, node.edges[i].output_nr, o)
    return 0


cdef int make_result_room(Pass run, int n) except -1:
    """Room for the gradients of n inputs; it holds null pointers but while a node's are on their way."""
    cdef void* larger = PyMem_Realloc(run.result, n * sizeof(PyObject*))
    if larger == NULL:
        raise MemoryError("out of memory during backward")
    run.result = <PyObject**> larger
    run.result_room = n
    memset(run.result, 0, n * sizeof(PyObject*))
    return 0


cdef PyObject** pending_of(Pass run, PyObject* leaf) except NULL:
    return &(<Tensor> leaf).pending_one if run.fast else slot_of(run, leaf, 1).grads


# ---- paths to chosen inputs

cdef struct Frame:
    PyObject* node
    int edge                  # the next edge to look at
    bint needed

cdef enum:
    UNDECIDED = 4


cdef int find_needed(Pass run, list roots, list inputs) except -1:
    """Mark the nodes from which a chosen input can be reached (2), and chosen ones from which no other can (3): depth first, with a stack
    of our own."""
    cdef Frame* stack = NULL
    cdef Frame* frame
    cdef Py_ssize_t depth = 0, room = 0
    cdef PointerMap chosen
    cdef PyObject* target
    cdef Py_ssize_t state
    cdef Node node
    cdef void* larger
    run.restricted = True
    chosen.keys, chosen.values, chosen.capacity, chosen.count = NULL, NULL, 0, 0
    try:
        for t in inputs:
            target = (<Tensor> t).node if (<Tensor> t).node != NULL else <PyObject*> t
            map_set(&chosen, target, 1)
            if not is_node(target):
                map_set(&run.needed, target, 2)
        for root in roots:
            target = (<Tensor> root).node
            if target == NULL or map_get(&run.needed, target, 0):
                continue
            while True:
                if target != NULL:               # go down
                    if depth == room:
                        larger = PyMem_Realloc(stack, (2 * room + 32) * sizeof(Frame))
                        if larger == NULL:
                            raise MemoryError("out of memory during backward")
                        stack, room = <Frame*> larger, 2 * room + 32
                    map_set(&run.needed, target, UNDECIDED)
                    stack[depth].node, stack[depth].edge = target, 0
                    stack[depth].needed = False
                    depth += 1
                frame = &stack[depth - 1]
                node = <Node> frame.node
                target = NULL
                while frame.edge < node.n_edges:
                    target = node.edges[frame.edge].target
                    if target != NULL:
                        state = map_get(&run.needed, target, 0)
                        if state == 0 and is_node(target):
                            break
                        frame.needed = frame.needed or state == 2 or state == 3
                    target = NULL
                    frame.edge += 1
                if target == NULL:               # all inputs are decided
                    map_set(&run.needed, frame.node, 2 if frame.needed else 3 if map_get(&chosen, frame.node, 0) else 1)
                    depth -= 1
                    if depth == 0:
                        break
    finally:
        PyMem_Free(stack)
        map_free(&chosen)
    return 0
