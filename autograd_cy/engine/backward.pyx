# The backward pass: the iterative and the recursive engine, accumulation into leaves, autograd.grad.
#
# Relies on node, tensor, gradients, modes. `Tensor.backward` and `autograd.grad` are made here.
#
# One answer from every engine: contributions to a gradient are added in the order of their consumers' sequence numbers, latest
# first, and by input number within one consumer. The iterative engine gets this order from a heap of nodes keyed by sequence number:
# as every edge leads to a smaller number, a node that is taken from the heap has received all its contributions, without counting.

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free

import sys

from autograd_cy.array.layout cimport DENSE, layout_contiguous_like, layout_decref, same_layout, same_shape
from autograd_cy.engine.dispatch cimport GRAIN, binary, copy_of, number_tensor
from autograd_cy.engine.gradients cimport node_backward
from autograd_cy.engine.modes cimport swap_grad_mode
from autograd_cy.engine.node cimport Node, is_node, node_description, node_release_saved
from autograd_cy.engine.pointer_map cimport PointerMap, map_free, map_get, map_set
from autograd_cy.engine.record cimport wants_grad
from autograd_cy.engine.tensor cimport RETAINS_GRAD, Tensor, is_exclusive, set_grad, tensor_new
from autograd_cy.kernels.table cimport ALL_VECTORS, K

from autograd_cy import ops
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.tensor import OPCODES

cdef int ADD = OPCODES["add"]
cdef int ADD_LOOP = ops.loop_id("add")
cdef bint fast_taken = False  # whether a running pass keeps its state in the nodes themselves

cdef enum:
    ITERATIVE = 0
    RECURSIVE = 1

cdef int default_engine = ITERATIVE
ENGINES = ("iterative", "recursive")

cdef extern from *:
    """
    #if defined(__linux__)
    #include <pthread.h>
    /* Bytes of stack left in this thread; a large number where it can't be told. */
    static size_t ag_stack_left(void) {
        static __thread char* lowest = 0;
        char here;
        if (!lowest) {
            pthread_attr_t attr;
            void* start; size_t size;
            if (pthread_getattr_np(pthread_self(), &attr)) return (size_t) 1 << 40;
            pthread_attr_getstack(&attr, &start, &size);
            pthread_attr_destroy(&attr);
            lowest = (char*) start;
        }
        return (size_t) (&here - lowest);
    }
    #else
    static size_t ag_stack_left(void) { return (size_t) 1 << 40; }
    #endif
    """
    size_t ag_stack_left() noexcept nogil


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
    if not create_graph and same_layout(a.layout, b.layout) and a.layout.flags & DENSE and a.dtype_ == b.dtype_ \
            and a.layout.numel < GRAIN and ag_tensor_refs(total) == 2 and a.storage.refs == 1 and a.base == NULL:
        p[0], p[1], p[2] = a.data, a.data, b.data
        K.loops[ADD_LOOP][a.dtype_][ALL_VECTORS](a.layout.numel, p, NULL)
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


cdef PyObject* private_copy(PyObject* g, Tensor leaf, bint create_graph) except NULL:
    """The gradient in memory of its own, laid out as the leaf; takes over the reference to g."""
    cdef Tensor t = <Tensor> g
    cdef PyObject* copied
    if create_graph and t.node != NULL:
        if t.layout.flags & DENSE and ag_tensor_refs(g) == 2:
            return g
        result = FUNCTIONS["clone"](t)
        Py_INCREF(result)
        Py_DECREF(t)
        return <PyObject*> result
    if t.storage.refs == 1 and t.base == NULL and ag_tensor_refs(g) == 2 and same_layout(t.layout, leaf.layout) and t.layout.flags & DENSE:
        return g
    layout = leaf.layout if leaf.layout.flags & DENSE else NULL
    if layout != NULL:
        copied = copy_of(t, layout)
    else:
        layout = layout_contiguous_like(leaf.layout)
        copied = copy_of(t, layout)
        layout_decref(layout)
    Py_DECREF(t)
    return copied


cdef int accumulate(Tensor leaf, PyObject* total, bint create_graph) except -1:
    """leaf.grad += total; takes over the reference to total."""
    cdef Tensor grad
    cdef PyObject* result
    cdef char* p[3]
    if leaf.grad_ == NULL:
        result = private_copy(total, leaf, create_graph)
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
        K.loops[ADD_LOOP][grad.dtype_][ALL_VECTORS](grad.layout.numel, p, NULL)
        grad.storage.version += 1
    else:
        FUNCTIONS["add_"](grad, <object> total)
    Py_DECREF(<object> total)
    return 0


# ---- the state of one pass

cdef struct Slot:             # of a node or leaf, where the fast fields of the object itself are taken by another pass
    PyObject** grads
    int n
    bint queued

cdef class Pass:
    """One backward pass: the heap of nodes that have gradients, the leaves reached, what to capture."""

    cdef bint fast            # the state is kept in the nodes themselves
    cdef bint create_graph
    cdef bint retain_graph
    cdef bint restricted      # only nodes on a path to the chosen inputs are visited
    cdef PyObject** heap
    cdef Py_ssize_t n_heap, heap_room
    cdef PyObject** leaves
    cdef Py_ssize_t n_leaves, leaf_room
    cdef PointerMap slots     # address -> Slot*, unless fast
    cdef PointerMap needed    # address -> 2: on a path to a chosen input, 1: not
    cdef dict captures        # (address of node, output number) or address of leaf -> gradient
    cdef PyObject* running    # the node at work, for error messages
    cdef PyObject** result    # the gradients that its rule gave
    cdef int n_result, result_room

    def __dealloc__(self):
        self.clear()

    cdef void clear(self) noexcept:
        """Drop what an exception left behind."""
        cdef Py_ssize_t i
        cdef int k
        cdef Slot* slot
        cdef PyObject* o
        global fast_taken
        for k in range(self.n_result):
            drop(&self.result[k])
        self.n_result = 0
        if self.running != NULL:
            o = self.running
            self.running = NULL
            if self.fast:
                (<Node> o).queued = 0
                for k in range((<Node> o).n_outputs):
                    drop(&(<Node> o).pending[k])
            Py_DECREF(<object> o)
        while self.n_heap:
            self.n_heap -= 1
            o = self.heap[self.n_heap]
            if self.fast:
                (<Node> o).queued = 0
                for k in range((<Node> o).n_outputs):
                    drop(&(<Node> o).pending[k])
            Py_DECREF(<object> o)
        while self.n_leaves:
            self.n_leaves -= 1
            o = self.leaves[self.n_leaves]
            if self.fast:
                (<Tensor> o).queued = 0
                drop(&(<Tensor> o).pending_one)
            Py_DECREF(<object> o)
        for i in range(<Py_ssize_t> self.slots.capacity):
            if self.slots.keys[i] != NULL:
                slot = <Slot*> self.slots.values[i]
                for k in range(slot.n):
                    drop(&slot.grads[k])
                free(slot.grads)
                free(slot)
        map_free(&self.slots)
        map_free(&self.needed)
        PyMem_Free(self.heap)
        PyMem_Free(self.leaves)
        PyMem_Free(self.result)
        self.heap = NULL
        self.leaves = NULL
        self.result = NULL
        self.heap_room = self.leaf_room = self.result_room = 0
        if self.fast:
            self.fast = False
            fast_taken = False


cdef inline void drop(PyObject** place) noexcept:
    cdef PyObject* o = place[0]
    place[0] = NULL
    Py_XDECREF(o)


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


cdef inline bint is_needed(Pass run, PyObject* target) noexcept:
    return not run.restricted or map_get(&run.needed, target, 1) == 2


cdef inline int contribute(Pass run, PyObject* target, int output_nr, PyObject* g) except -1:
    """Add a gradient to what the target has so far; takes over the reference to g."""
    if run.fast and not run.restricted and is_node(target) and (<Node> target).pending[output_nr] == NULL:
        (<Node> target).pending[output_nr] = g
        if not (<Node> target).queued:
            (<Node> target).queued = 1
            heap_push(run, target)
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
    if n:
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

cdef int observe(Pass run, Node node, PyObject** grads) except -1:
    """Gradients of inner tensors: those captured by grad(), and those kept by retain_grad()."""
    cdef int k
    if run.captures is not None:
        for k in range(node.n_outputs):
            key = (<size_t> <PyObject*> node, k)
            if key in run.captures and grads[k] != NULL:
                run.captures[key] = <object> grads[k]
    if node.watchers != NULL:
        for reference in <list> node.watchers:
            tensor = reference()
            if tensor is not None and (<Tensor> tensor).node == <PyObject*> node:
                k = (<Tensor> tensor).output_nr
                if grads[k] != NULL:
                    Py_INCREF(<object> grads[k])
                    accumulate(<Tensor> tensor, grads[k], run.create_graph)
    return 0


cdef int run_iterative(Pass run) except -1:
    cdef PyObject* o
    cdef PyObject** grads
    cdef PyObject** result
    cdef Node node
    cdef int i, n
    while run.n_heap:
        o = heap_pop(run)
        if run.running != NULL:
            Py_DECREF(<object> run.running)
        run.running = o                          # with the heap's reference; a failing pass names it
        node = <Node> o
        n = node.n_edges
        if n > run.result_room:
            make_result_room(run, n)
        result = run.result
        run.n_result = n
        for i in range(n):
            result[i] = NULL
        if run.fast:
            grads = node.pending
            node.queued = 0
        else:
            grads = slot_of(run, o, node.n_outputs).grads
        if run.captures is not None or node.watchers != NULL:
            observe(run, node, grads)
        node_backward(node, grads, run.create_graph, result)
        for i in range(node.n_outputs):
            drop(&grads[i])
        if not run.retain_graph and (node.n_saved or node.extra != NULL):
            node_release_saved(node)
        for i in range(n):
            if result[i] != NULL:
                o = result[i]
                result[i] = NULL
                contribute(run, node.edges[i].target, node.edges[i].output_nr, o)
    return 0


cdef int make_result_room(Pass run, int n) except -1:
    cdef void* larger = PyMem_Realloc(run.result, n * sizeof(PyObject*))
    if larger == NULL:
        raise MemoryError("out of memory during backward")
    run.result = <PyObject**> larger
    run.result_room = n
    return 0


# ---- the recursive engine: the textbook definition

cdef class Recursion:
    """grad(v) = the sum, over the consumers of v, of the consumer's rule applied to grad(consumer); each computed once."""

    cdef Pass run
    cdef dict consumers       # address of a node or leaf -> list of (sequence number, node, input number)
    cdef dict seeds           # (address, output number) -> list of gradients
    cdef dict contributions   # address of a node -> list of gradients, one per input
    cdef dict totals          # (address, output number) -> gradient
    cdef dict targets         # address -> node or leaf
    cdef Py_ssize_t limit

    cdef int enter(self, Py_ssize_t depth) except -1:
        if depth > self.limit or ag_stack_left() < 49152:
            raise RecursionError(
                f"the graph is deeper than the recursive engine can follow ({depth} levels; sys.getrecursionlimit() is {self.limit}); "
                f"use the iterative engine: backward(engine=\"iterative\") or set_engine(\"iterative\")")
        return 0

    cdef int discover(self, Node node, Py_ssize_t depth) except -1:
        """Note for everything below who consumes it."""
        cdef int i
        cdef PyObject* target
        self.enter(depth)
        for i in range(node.n_edges):
            target = node.edges[i].target
            if target == NULL or not is_needed(self.run, target):
                continue
            known = <size_t> target in self.consumers
            self.consumers.setdefault(<size_t> target, []).append((-node.seq, i, node))
            if not known:
                self.targets[<size_t> target] = <object> target
                if is_node(target):
                    self.discover(<Node> target, depth + 1)
        return 0

    cdef object total(self, PyObject* target, int output_nr, Py_ssize_t depth):
        """The whole gradient of a leaf, or of one output of a node; None where nothing reaches it."""
        cdef PyObject* sum = NULL
        cdef Node consumer
        cdef int i
        self.enter(depth)
        key = (<size_t> target, output_nr)
        if key in self.totals:
            return self.totals[key]
        for seed in self.seeds.get(key, ()):
            Py_INCREF(seed)
            add_to(&sum, <PyObject*> seed, self.run.create_graph)
        for _, i, consumer in sorted(self.consumers.get(<size_t> target, ()), key=first_two):
            if is_node(target) and consumer.edges[i].output_nr != output_nr:
                continue
            g = self.apply(consumer, depth + 1)[i]
            if g is not None:
                Py_INCREF(g)
                add_to(&sum, <PyObject*> g, self.run.create_graph)
        result = None
        if sum != NULL:
            result = <object> sum
            Py_DECREF(result)
        self.totals[key] = result
        return result

    cdef list apply(self, Node node, Py_ssize_t depth):
        """The gradients that a node's rule gives to its inputs."""
        cdef list known = self.contributions.get(<size_t> <PyObject*> node)
        cdef list totals
        cdef list out
        cdef PyObject** grads
        cdef PyObject** result
        cdef int i
        if known is not None:
            return known
        totals = [self.total(<PyObject*> node, i, depth) for i in range(node.n_outputs)]
        out = [None] * node.n_edges
        if any(g is not None for g in totals):
            Py_INCREF(node)
            Py_XDECREF(self.run.running)
            self.run.running = <PyObject*> node
            grads = <PyObject**> PyMem_Malloc((node.n_outputs + node.n_edges) * sizeof(PyObject*))
            if grads == NULL:
                raise MemoryError("out of memory during backward")
            result = grads + node.n_outputs
            for i in range(node.n_outputs):
                grads[i] = <PyObject*> totals[i] if totals[i] is not None else NULL
            for i in range(node.n_edges):
                result[i] = NULL
            try:
                observe(self.run, node, grads)
                node_backward(node, grads, self.run.create_graph, result)
                for i in range(node.n_edges):
                    if result[i] != NULL:
                        out[i] = <object> result[i]
            finally:
                for i in range(node.n_edges):
                    drop(&result[i])
                PyMem_Free(grads)
            if not self.run.retain_graph:
                node_release_saved(node)
        self.contributions[<size_t> <PyObject*> node] = out
        return out


def first_two(entry):
    return entry[:2]


cdef int run_recursive(Pass run, list roots, list seeds) except -1:
    cdef Recursion r = Recursion()
    cdef PyObject* target
    cdef int output_nr
    r.run = run
    r.consumers, r.seeds, r.contributions, r.totals, r.targets = {}, {}, {}, {}, {}
    r.limit = sys.getrecursionlimit()
    for root, seed in zip(roots, seeds):
        target = (<Tensor> root).node
        output_nr = (<Tensor> root).output_nr
        if target == NULL:
            target, output_nr = <PyObject*> root, 0
        if not is_needed(run, target):
            continue
        r.seeds.setdefault((<size_t> target, output_nr), []).append(seed)
        if <size_t> target not in r.targets:
            r.targets[<size_t> target] = <object> target
            if is_node(target):
                r.discover(<Node> target, 1)
    for item in list(r.targets.values()):
        if isinstance(item, Tensor):
            g = r.total(<PyObject*> item, 0, 1)
            if g is not None:
                r.totals.pop((<size_t> <PyObject*> item, 0))
                Py_INCREF(g)
                contribute(run, <PyObject*> item, 0, <PyObject*> g)
    if run.captures is not None:
        for address, output_nr in run.captures:
            item = r.targets.get(address)
            if isinstance(item, Node):
                run.captures[(address, output_nr)] = r.total(<PyObject*> item, output_nr, 1)
    return 0


# ---- passes

cdef struct Frame:
    PyObject* node
    int edge                  # the next edge to look at
    bint needed

cdef enum:
    UNDECIDED = 3


cdef int find_needed(Pass run, list roots, list inputs) except -1:
    """Mark the nodes from which a chosen input can be reached: depth first, with a stack of our own."""
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
                    stack[depth].needed = map_get(&chosen, target, 0)
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
                        frame.needed = frame.needed or state == 2
                    target = NULL
                    frame.edge += 1
                if target == NULL:               # all inputs are decided
                    map_set(&run.needed, frame.node, 2 if frame.needed else 1)
                    depth -= 1
                    if depth == 0:
                        break
    finally:
        PyMem_Free(stack)
        map_free(&chosen)
    return 0


cdef int run_pass(Pass run, list roots, list seeds, list inputs, int engine) except -1:
    """Everything but what becomes of the leaves' gradients, which stay pending in `run.leaves`."""
    global fast_taken
    cdef Tensor root
    cdef PyObject* target
    cdef bint before
    if not fast_taken:
        fast_taken = run.fast = True
    before = swap_grad_mode(run.create_graph)
    try:
        if inputs is not None:
            find_needed(run, roots, inputs)
        if engine == RECURSIVE:
            run_recursive(run, roots, seeds)
        else:
            for root, seed in zip(roots, seeds):
                target = root.node if root.node != NULL else <PyObject*> root
                Py_INCREF(seed)
                contribute(run, target, root.output_nr, <PyObject*> seed)
            run_iterative(run)
    except Exception as error:
        if run.running != NULL:
            description = node_description(<Node> run.running)
            if description not in str(error):
                error.add_note(f"in the backward pass of {description}")
        raise
    finally:
        swap_grad_mode(before)
    return 0


cdef PyObject** pending_of(Pass run, PyObject* leaf) except NULL:
    return &(<Tensor> leaf).pending_one if run.fast else slot_of(run, leaf, 1).grads


cdef int finish(Pass run) except -1:
    """Give the leaves their gradients: into `captures` where asked for, else into grad."""
    cdef PyObject* leaf
    cdef PyObject* total
    cdef PyObject** place
    cdef Py_ssize_t i
    cdef bint before = swap_grad_mode(run.create_graph)
    try:
        for i in range(run.n_leaves):
            leaf = run.leaves[i]
            place = pending_of(run, leaf)
            total = place[0]
            place[0] = NULL
            if total == NULL:
                continue
            if run.captures is None:
                accumulate(<Tensor> leaf, total, run.create_graph)
            else:
                if (<size_t> leaf, 0) in run.captures:
                    run.captures[(<size_t> leaf, 0)] = <object> total
                Py_DECREF(<object> total)
    finally:
        swap_grad_mode(before)
    return 0


cdef object ones_like(Tensor root):
    cdef PyObject* o
    if root.layout.ndim == 0:
        o = number_tensor(1, root.dtype_)
        result = <object> o
        Py_DECREF(result)
        return result
    return FUNCTIONS["ones"](root.shape, root.dtype_)


cdef object seed_for(Tensor root, object gradient, str caller, int k):
    """The gradient to start from at a root: the given one, checked, or 1 for a single element."""
    cdef Tensor g
    if not wants_grad(root):
        raise RuntimeError(f"{caller}: tensor {k} does not require gradients and has no grad_fn: no operation on a tensor that "
                           f"requires gradients led to it, or recording was off (no_grad)")
    if gradient is None:
        if root.layout.numel != 1:
            raise RuntimeError(f"{caller}: a gradient can be created implicitly only for outputs of one element, this one has shape "
                               f"{root.shape}; pass gradient=")
        return ones_like(root)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"{caller}: gradients must be tensors or None, got {type(gradient).__name__}")
    g = gradient
    if not same_shape(g.layout, root.layout):
        raise RuntimeError(f"{caller}: the gradient has shape {g.shape}, but the output has shape {root.shape}")
    if g.dtype_ != root.dtype_:
        raise RuntimeError(f"{caller}: the gradient has dtype {g.dtype.name}, but the output has dtype {root.dtype.name}")
    return g


cdef int engine_code(object engine) except -1:
    if engine is None:
        return default_engine
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
    return ENGINES.index(engine)


def set_engine(engine):
    """Choose the engine of backward passes that name none: "iterative" (the default) or "recursive"."""
    global default_engine
    default_engine = engine_code(engine)


def get_engine():
    """The name of the engine of backward passes that name none."""
    return ENGINES[default_engine]


cdef Pass new_pass(object retain_graph, bint create_graph):
    cdef Pass run = Pass.__new__(Pass)
    run.create_graph = create_graph
    run.retain_graph = create_graph if retain_graph is None else retain_graph
    return run


cdef list tensors_of(object value, str caller, str what):
    """A tensor or a sequence of tensors, as a list."""
    cdef list found = [value] if isinstance(value, Tensor) else list(value)
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"{caller}: {what} must be tensors, got {type(t).__name__}")
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None, engine=None):
    """Accumulate the gradients of the sum of `tensors` into the `grad` of leaves.

    tensors: the outputs, one tensor or a sequence. grad_tensors: a gradient (or None, for one element) for each.
    retain_graph: keep saved values for another pass (default: create_graph). create_graph: record the pass, so that gradients
    can be differentiated again. inputs: accumulate into these tensors only, visiting only what leads to them.
    engine: "iterative" or "recursive" (default: as set by set_engine).

    Raises RuntimeError where an output needs a gradient and none is given, where saved values are gone or were changed in
    place, RecursionError where the graph is too deep for the recursive engine. No `grad` changes if the pass fails.
    """
    cdef list roots = tensors_of(tensors, "backward", "outputs")
    cdef list given
    if grad_tensors is None:
        given = [None] * len(roots)
    else:
        given = [grad_tensors] if isinstance(grad_tensors, Tensor) else list(grad_tensors)
    if len(given) != len(roots):
        raise ValueError(f"backward: {len(roots)} outputs but {len(given)} gradients")
    run_backward(roots, [seed_for(t, g, "backward", k) for k, (t, g) in enumerate(zip(roots, given))],
                 retain_graph, create_graph, inputs, engine)


cdef int run_backward(list roots, list seeds, object retain_graph, bint create_graph, object inputs, object engine) except -1:
    cdef Pass run = new_pass(retain_graph, create_graph)
    cdef list chosen = None
    cdef list inner = []
    cdef PyObject* g
    if inputs is not None:
        chosen = tensors_of(inputs, "backward", "inputs")
        if not chosen:
            raise ValueError("backward: inputs is empty; leave it out to reach every leaf")
        for k, t in enumerate(chosen):
            if not wants_grad(<Tensor> t):
                raise RuntimeError(f"backward: input {k} does not require gradients")
        inner = [t for t in chosen if (<Tensor> t).node != NULL]
        if inner:
            run.captures = {key_of(t): None for t in chosen}
    try:
        run_pass(run, roots, seeds, chosen, engine_code(engine))
        finish(run)
        if inner:
            for key, t in {key_of(t): t for t in chosen}.items():
                value = run.captures[key]
                if value is not None:
                    Py_INCREF(value)
                    accumulate(<Tensor> t, <PyObject*> value, run.create_graph)
    finally:
        run.clear()
    return 0


cdef tuple key_of(Tensor t):
    if t.node != NULL:
        return (<size_t> t.node, t.output_nr)
    return (<size_t> <PyObject*> t, 0)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False,
         is_grads_batched=False, materialize_grads=False, engine=None):
    """The gradients of the sum of `outputs` with respect to `inputs`, as a tuple; no `grad` is touched.

    Arguments as of `backward`. An input that the outputs do not depend on is an error, unless allow_unused (then None) or
    materialize_grads (then zeros).
    """
    if is_grads_batched:
        raise ValueError("grad: is_grads_batched is not supported; call grad once per gradient")
    cdef list roots = tensors_of(outputs, "grad", "outputs")
    cdef list wanted = tensors_of(inputs, "grad", "inputs")
    cdef list given
    cdef Pass run = new_pass(retain_graph, create_graph)
    cdef PyObject* copied
    cdef bint before
    if grad_outputs is None:
        given = [None] * len(roots)
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    if len(given) != len(roots):
        raise ValueError(f"grad: {len(roots)} outputs but {len(given)} gradients")
    seeds = [seed_for(t, g, "grad", k) for k, (t, g) in enumerate(zip(roots, given))]
    for k, t in enumerate(wanted):
        if not wants_grad(<Tensor> t):
            raise RuntimeError(f"grad: input {k} does not require gradients")
    run.captures = {key_of(t): None for t in wanted}
    try:
        run_pass(run, roots, seeds, wanted, engine_code(engine))
        finish(run)
    finally:
        run.clear()
    del seeds, given
    results = []
    before = swap_grad_mode(create_graph)
    try:
        for k, t in enumerate(wanted):
            value = run.captures[key_of(t)]
            if value is None:
                if materialize_grads:
                    value = FUNCTIONS["zeros"](t.shape, (<Tensor> t).dtype_)
                elif not allow_unused:
                    raise RuntimeError(f"grad: the outputs do not depend on input {k} (shape {t.shape}); "
                                       f"allow_unused=True gives None for it, materialize_grads=True gives zeros")
            else:
                Py_INCREF(value)
                copied = private_copy(<PyObject*> value, <Tensor> t, create_graph)
                value = <object> copied
                Py_DECREF(value)
            results.append(value)
    finally:
        swap_grad_mode(before)
    return tuple(results)


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None, engine=None):
    """Accumulate the gradient of this tensor into the `grad` of leaves.

    gradient: the gradient of this tensor (needed unless it has one element). retain_graph, create_graph, inputs, engine: as of
    `autograd.backward`.
    """
    run_backward([self], [seed_for(self, gradient, "backward", 0)], retain_graph, create_graph, inputs, engine)
