# A call of a compiled step with as little as possible around it: does the program fit, bind, run, hand over.
#
# Relies on machine (the instance that is run) and watch (whether what the step reads has changed). compile relies on it.


cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from libc.stdlib cimport calloc, free

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.array.layout cimport Layout, layout_decref, layout_incref, layout_strided, same_layout
from autograd_cy.array.storage cimport Storage, storage_incref
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.operands cimport default_dtype
from autograd_cy.engine.tensor cimport Tensor, is_tensor, set_grad, tensor_wrap
from autograd_cy.engine.updates cimport AdamState, RMSpropState, SGDState
from autograd_cy.graph.machine cimport Instance
from autograd_cy.graph.watch cimport Watch
from autograd_cy.kernels.table cimport recording

cdef enum:
    SHORT = 20000             # elements and multiply-adds below which a run keeps the interpreter's lock

cdef extern from *:
    """
    #define ag_count_of(o) Py_REFCNT((PyObject*) (o))
    """
    Py_ssize_t ag_count_of(PyObject* o) noexcept


# ---- gradients of leaves

def prepare_gradients(Instance instance not None, gradients):
    """Before a run: memory for the gradients. gradients: (leaf, view, buffer index) or (leaf, None, 0) where it is cleared.

    Where the leaf's gradient is what the last run left there and nobody else holds it, its memory serves again.
    """
    cdef Tensor leaf
    cdef Py_ssize_t index
    cdef PyObject* old
    for leaf, view, i in gradients:
        if view is None:
            continue
        index = i
        old = leaf.grad_
        if old != NULL and (<Tensor> old).storage == instance.storages[index] and ag_count_of(old) == 1 \
                and (<Tensor> old).storage.refs == 2:
            continue
        instance.fresh(index)


def clear_gradients(leaves):
    """After a run that failed: what it would have made is not there."""
    for leaf, _, _ in leaves:
        set_grad(<Tensor> leaf, NULL)


def bind_gradients(Instance instance not None, kept):
    """Let buffers be the memory of gradients that leaves have already: (leaf, buffer index) pairs."""
    cdef Tensor g
    for leaf, index in kept:
        g = <Tensor> (<Tensor> leaf).grad_
        instance.take(index, g.storage, g.storage.data)


def deliver_gradients(Instance instance not None, gradients):
    """After a run: the leaves' gradients are the tensors that the program made."""
    cdef Tensor leaf
    cdef Py_ssize_t index
    for leaf, view, i in gradients:
        if view is None:
            set_grad(leaf, NULL)
            continue
        index = i
        if leaf.grad_ == NULL or (<Tensor> leaf.grad_).storage != instance.storages[index]:
            made = instance.tensor(view)
            set_grad(leaf, <PyObject*> made)
        else:
            (<Tensor> leaf.grad_).storage.version += 1


cdef struct Place:
    Py_ssize_t index          # of the buffer
    Py_ssize_t offset         # of the first element, in bytes
    Layout* layout
    int dtype


@cython.binding(False)                    # methods check the type of self only without it
cdef class Replayer:
    """One run of a step's program with as little as possible around it: bind, run, hand over."""

    cdef Instance instance
    cdef object updates
    cdef Signature signature              # what must hold for a call to be replayed; None: whoever calls run() has looked
    cdef Watch watch
    cdef StateWatch states
    cdef object expected, leaves, kept, finish
    cdef readonly bint busy               # another thread runs it, without the interpreter's lock
    cdef Place* inputs
    cdef Place* outputs
    cdef Py_ssize_t* fresh                # buffers of results
    cdef Py_ssize_t* written              # EXTERNAL buffers that change
    cdef Py_ssize_t n_inputs, n_outputs, n_fresh, n_written

    def __cinit__(self, Instance instance not None, results):
        cdef object program = instance.machine.program
        self.instance, self.updates = instance, instance.machine.updates
        self.n_inputs, self.n_outputs = len(program.inputs), len(program.outputs)
        self.n_fresh, self.n_written = len(results), len(instance.machine.written)
        self.inputs = <Place*> calloc(self.n_inputs + 1, sizeof(Place))
        self.outputs = <Place*> calloc(self.n_outputs + 1, sizeof(Place))
        self.fresh = <Py_ssize_t*> calloc(self.n_fresh + 1, sizeof(Py_ssize_t))
        self.written = <Py_ssize_t*> calloc(self.n_written + 1, sizeof(Py_ssize_t))
        if self.inputs == NULL or self.outputs == NULL or self.fresh == NULL or self.written == NULL:
            raise MemoryError("out of memory for a replay")
        for i, view in enumerate(program.inputs):
            self.describe(&self.inputs[<Py_ssize_t> i], view)
        for i, view in enumerate(program.outputs):
            self.describe(&self.outputs[<Py_ssize_t> i], view)
        for i, index in enumerate(results):
            self.fresh[<Py_ssize_t> i] = index
        for i, index in enumerate(instance.machine.written):
            self.written[<Py_ssize_t> i] = index

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.outputs != NULL:
            for i in range(self.n_outputs):
                if self.outputs[i].layout != NULL:
                    layout_decref(self.outputs[i].layout)
        if self.inputs != NULL:
            for i in range(self.n_inputs):
                if self.inputs[i].layout != NULL:
                    layout_decref(self.inputs[i].layout)
        free(self.inputs)
        free(self.outputs)
        free(self.fresh)
        free(self.written)

    cdef int describe(self, Place* place, view) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef Py_ssize_t strides[MAX_NDIM]
        cdef int i
        for i in range(<int> len(view.shape)):
            shape[i], strides[i] = view.shape[i], view.strides[i]
        place.layout = layout_strided(<int> len(view.shape), shape, strides)
        place.index, place.offset, place.dtype = self.instance.machine.index.get(view.buffer, -1), view.offset, view.dtype
        return 0

    def arm(self, signature, watch, expected, states, leaves, kept, finish):
        """Let `call` decide by itself. finish: makes the result from the list of flat results and the arguments; None: it is the first."""
        self.signature, self.watch, self.states = signature, watch, states
        self.expected, self.leaves, self.kept, self.finish = expected, leaves, kept, finish

    cdef bint fits(self, tuple arguments) except -1:
        """Whether the program is right for this call."""
        return self.signature is not None and not self.busy and self.signature.matches(arguments) and self.watch.same() \
            and moved(self.expected) is None and self.states.changed() is None

    cpdef object run(self, tensors, leaves, kept):
        """Run once on these arguments; the flat results as a list. leaves, kept: as of prepare_gradients and bind_gradients."""
        cdef Instance instance = self.instance
        cdef Py_ssize_t i, done
        cdef Place* place
        cdef Storage* storage
        cdef PyObject* o
        for i in range(self.n_inputs):
            if self.inputs[i].index >= 0:
                instance.bind_input(self.inputs[i].index, <Tensor> tensors[i], self.inputs[i].offset)
        if self.updates:
            instance.refresh(self.updates)
        for i in range(self.n_fresh):
            storage = instance.storages[self.fresh[i]]
            if storage == NULL or storage.refs > 1:
                instance.fresh(self.fresh[i])
        if kept:
            bind_gradients(instance, kept)
        prepare_gradients(instance, leaves)
        if instance.machine.work < SHORT:
            done = instance.run_times(1, NULL, 0)
        else:
            self.busy = True
            with nogil:
                done = instance.run_times(1, NULL, 0)
            self.busy = False
        for i in range(self.n_written):
            instance.storages[self.written[i]].version += 1
        if done == 0:
            clear_gradients(leaves)
            instance.fail()
        deliver_gradients(instance, leaves)
        results = []
        for i in range(self.n_outputs):
            place = &self.outputs[i]
            storage = instance.storages[place.index]
            storage_incref(storage)
            layout_incref(place.layout)
            o = tensor_wrap(storage, place.layout, instance.bases[place.index] + place.offset, place.dtype)
            results.append(<object> o)
            Py_DECREF(<object> o)
        return results


cdef class Caller:
    """What is callable about a compiled function: the program used last where it fits, else `_call` of the subclass."""

    cdef public Replayer quick

    def __call__(self, *args, **kwargs):
        cdef Replayer last = self.quick
        if last is None or kwargs or not last.fits(args):
            return self._call(args, kwargs)
        made = last.run(args, last.leaves, last.kept)
        return (<list> made)[0] if last.finish is None else last.finish(made, args)


cdef bint is_plain_gradient(Tensor leaf) noexcept:
    cdef Tensor g = <Tensor> leaf.grad_
    return same_layout(g.layout, leaf.layout) and g.dtype_ == leaf.dtype_ and g.data == g.storage.data


def moved(expectations):
    """The first leaf whose gradient is not what the program expects; None where all are.

    expectations: (leaf, None: no gradient; 0: some gradient; 1: one laid out as the leaf, in memory of its own; else the address).
    """
    cdef Tensor leaf
    for leaf, address in expectations:
        if leaf.grad_ == NULL:
            if address is not None:
                return leaf
        elif address is None:
            return leaf
        elif address == 1:
            if not is_plain_gradient(leaf):
                return leaf
        elif address and <size_t> (<Tensor> leaf.grad_).data != address:
            return leaf
    return None


# ---- whether a program fits a call

@cython.binding(False)                    # methods check the type of self only without it
cdef class Signature:
    """The layouts, dtypes and needs of arguments that are all tensors, and the modes: compared in a few nanoseconds each."""

    cdef Layout** layouts
    cdef list kinds
    cdef Py_ssize_t n
    cdef bint grad_mode
    cdef int default

    def __cinit__(self, tensors):
        cdef Tensor t
        self.n = len(tensors)
        self.layouts = <Layout**> calloc(self.n + 1, sizeof(Layout*))
        if self.layouts == NULL:
            raise MemoryError("out of memory for a signature")
        self.kinds = []
        for k, o in enumerate(tensors):
            t = <Tensor?> o
            layout_incref(t.layout)
            self.layouts[<Py_ssize_t> k] = t.layout
            self.kinds.append(2 * t.dtype_ + t.needs_grad)
        self.grad_mode, self.default = grad_enabled(), default_dtype()

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.layouts != NULL:
            for i in range(self.n):
                if self.layouts[i] != NULL:
                    layout_decref(self.layouts[i])
            free(self.layouts)

    cpdef bint matches(self, tuple arguments):
        """Whether the arguments fit, share no memory among each other, and no capture is on."""
        cdef Py_ssize_t i, k
        cdef PyObject* o
        if recording() or len(arguments) != self.n or grad_enabled() != self.grad_mode or default_dtype() != self.default:
            return False
        for i in range(self.n):
            o = <PyObject*> arguments[i]
            if not is_tensor(o) or not same_layout((<Tensor> o).layout, self.layouts[i]) \
                    or 2 * (<Tensor> o).dtype_ + (<Tensor> o).needs_grad != <int> self.kinds[i]:
                return False
            for k in range(i):
                if (<Tensor> arguments[k]).storage == (<Tensor> o).storage:
                    return False
        return True


cdef void* address(Tensor t) noexcept:
    return NULL if t is None else <void*> t.data


@cython.binding(False)                    # methods check the type of self only without it
cdef class StateWatch:
    """Where the states of optimisers lie that a program updates: [(states, state, parameter)]."""

    cdef list entries
    cdef void** places

    def __cinit__(self, entries):
        self.entries = list(entries)
        self.places = <void**> calloc(3 * len(self.entries) + 1, sizeof(void*))
        if self.places == NULL:
            raise MemoryError("out of memory for the states of optimisers")
        for k, (_, state, _) in enumerate(self.entries):
            self.look(state, &self.places[3 * <Py_ssize_t> k])

    def __dealloc__(self):
        free(self.places)

    cdef void look(self, state, void** found) noexcept:
        found[0] = found[1] = found[2] = NULL
        if type(state) is AdamState:
            found[0], found[1] = address((<AdamState> state).exp_avg), address((<AdamState> state).exp_avg_sq)
            found[2] = address((<AdamState> state).max_exp_avg_sq)
        elif type(state) is SGDState:
            found[0] = address((<SGDState> state).momentum_buffer)
        elif type(state) is RMSpropState:
            found[0], found[1] = address((<RMSpropState> state).square_avg), address((<RMSpropState> state).momentum_buffer)
            found[2] = address((<RMSpropState> state).grad_avg)

    cpdef object changed(self):
        """A parameter whose state was replaced; None where all are in their places."""
        cdef void* now[3]
        cdef Py_ssize_t k = 0
        cdef PyObject* found
        for states, state, parameter in self.entries:
            if state is not None:
                found = PyDict_GetItemWithError(<PyObject*> states, <PyObject*> parameter)
                if found == NULL or <object> found is not state:
                    return parameter
                self.look(state, now)
                if now[0] != self.places[k] or now[1] != self.places[k + 1] or now[2] != self.places[k + 2]:
                    return parameter
            k += 3
        return None
