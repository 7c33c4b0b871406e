# The recursive engine: the textbook definition of reverse mode, memoised.
#
# Relies on passes (the state, and how gradients are added) and gradients. backward.pyx starts it.

import sys

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF

from autograd_cy.engine.gradients cimport node_backward
from autograd_cy.engine.hooks cimport after_rule, before_rule, switches
from autograd_cy.engine.node cimport Node, is_node, node_release_saved
from autograd_cy.engine.passes cimport Pass, add_to, arrived, contribute, drop, enter_rule, is_needed, leave_rule
from autograd_cy.engine.tensor cimport Tensor

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
        if is_node(target) and sum != NULL:
            Py_INCREF(<object> target)
            drop(&self.run.running)
            self.run.running = target            # for errors of its hooks
            try:
                arrived(self.run, <Node> target, output_nr, &sum)
            except BaseException:
                drop(&sum)
                raise
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
        if any([g is not None for g in totals]):
            Py_INCREF(node)
            Py_XDECREF(self.run.running)
            self.run.running = <PyObject*> node
            grads = <PyObject**> PyMem_Malloc((node.n_outputs + node.n_edges) * sizeof(PyObject*))
            if grads == NULL:
                raise MemoryError("out of memory during backward")
            result = grads + node.n_outputs
            for i in range(node.n_outputs):
                grads[i] = <PyObject*> totals[i] if totals[i] is not None else NULL
                Py_XINCREF(grads[i])
            for i in range(node.n_edges):
                result[i] = NULL
            try:
                enter_rule(self.run, node)
                if node.watchers == NULL or before_rule(node, grads):
                    node_backward(node, grads, self.run.create_graph, result, False)
                if node.watchers != NULL or switches.anomaly:
                    after_rule(node, grads, result, self.run.retain_graph)
                leave_rule(self.run, node)
                for i in range(node.n_edges):
                    if result[i] != NULL:
                        out[i] = <object> result[i]
            finally:
                for i in range(node.n_edges):
                    drop(&result[i])
                for i in range(node.n_outputs):
                    drop(&grads[i])
                PyMem_Free(grads)
            if not self.run.retain_graph and not node.users:
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
        for address, output_nr in list(run.captures):
            item = r.targets.get(address)
            if isinstance(item, Node):           # `arrived` puts it in
                r.total(<PyObject*> item, output_nr, 1)
    return 0
