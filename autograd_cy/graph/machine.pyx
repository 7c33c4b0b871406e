# Running Programs: instructions bound to memory once, then called one after the other without the interpreter.
#
# Relies on kernels/table and program.py; a memory plan says where buffers lie. compile, run and the engines' comparison rely on it.
#
# A Machine is a Program made ready: kernels looked up, arguments unpacked.  An Instance is a Machine with memory of its own: several
# may exist (many models at once, results that must stay), each with addresses filled in, so that a run is a plain loop over calls.
#
# Above 500 lines because a Cython class cannot be divided, and what runs a step belongs to it.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport Layout, layout_strided
from autograd_cy.array.storage cimport (
    Storage, UntypedStorage, storage_decref, storage_incref, storage_new,
)
from autograd_cy.engine.tensor cimport Tensor, tensor_wrap
from autograd_cy.engine.updates cimport CountedState
from autograd_cy.kernels.gemm cimport bind_blas, gemm_run, needs_blas
from autograd_cy.kernels.table cimport BLOCK, K, MAX_ARRAYS, AdamNumbers, Array, Link, Moments, Operand

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.graph.lowering import lower
from autograd_cy.graph.program import CONSTANT, EXTERNAL, LOCAL
from autograd_cy.kernels.table import routine_error
from autograd_cy.ops.chains import LOAD, STORE

cdef enum:
    MAX_OPERANDS = 6          # of a map
    MAX_CHAIN = 32            # maps, as in lowering.py

cdef Py_ssize_t CHAIN_LOAD = LOAD, CHAIN_STORE = STORE

cdef enum CallKind:
    LOOP
    STRIDED
    ROWS
    COPY
    REDUCE
    GEMM
    SMALL_GEMM
    SOFTMAX
    SOFTMAX_BACKWARD
    OUTSIDE_UNIT
    INDEX_OFFSETS
    GATHER
    SCATTER
    SCATTER_ADD
    SGD
    ADAM
    RMSPROP
    CALL
    GROUP
    PART
    FILL
    ROUTINE

cdef dict CALL_KINDS = {
    "copy": COPY, "reduce": REDUCE, "gemm": GEMM, "softmax": SOFTMAX, "softmax_backward": SOFTMAX_BACKWARD,
    "outside_unit": OUTSIDE_UNIT,
    "index_offsets": INDEX_OFFSETS, "gather": GATHER, "scatter": SCATTER, "scatter_add": SCATTER_ADD, "sgd": SGD, "adam": ADAM,
    "rmsprop": RMSPROP, "call": CALL, "group": GROUP, "part": PART, "fill": FILL, "map": LOOP, "strided": STRIDED, "rows": ROWS,
    "small_gemm": SMALL_GEMM, "routine": ROUTINE, "checked_routine": ROUTINE,
}


def has_loop(int loop, int dtype, int variant):
    """Whether the table of kernels has this loop."""
    return K.loops[loop][dtype][variant] != NULL


def tile(int dtype):
    """Elements of a chain's tile; 0: no chains."""
    return K.chain_bytes // itemsize_of(dtype)


@cython.binding(False)                    # methods check the type of self only without it
cdef class Machine:
    """A Program made ready to run. `plan` says where LOCAL buffers lie: offsets {buffer id: byte}, nbytes."""

    def __init__(self, program, plan):
        self.program, self.plan = program, plan
        self.buffers = list(program.buffers)
        self.index = {b.id: i for i, b in enumerate(self.buffers)}
        self.index["scratch"] = len(self.buffers)
        self.written = sorted({self.index[v.buffer] for instruction in program.instructions for v in instruction.writes
                               if self.buffers[self.index[v.buffer]].kind == EXTERNAL})
        self.updates = []
        self.arena_bytes, self.n_steps = plan.nbytes, len(program.instructions)
        steps, inner = lower(program, has_loop, tile)
        self.sources = [step.source for step in steps]
        self.work = sum([step.work for step in steps])
        self.place_constants()
        self.load(steps + inner)

    cdef load(self, list steps):
        """Make C arrays of the steps."""
        cdef Py_ssize_t i, k, n_ints = 0, n_uses = 0
        cdef Py_ssize_t* ints
        cdef Step* step
        cdef list uses = [[] for _ in range(len(self.buffers) + 1)]
        self.n_all = len(steps)
        for given in steps:
            n_ints += len(given.ints)
            self.n_numbers += len(given.numbers)
            n_uses += len(given.addresses)
        self.steps = <Step*> calloc(self.n_all + 1, sizeof(Step))
        self.int_pool = <Py_ssize_t*> calloc(n_ints + 1, sizeof(Py_ssize_t))
        self.number_pool = <double*> calloc(self.n_numbers + 1, sizeof(double))
        self.all_uses = <Use*> calloc(n_uses + 1, sizeof(Use))
        self.first_use = <Py_ssize_t*> calloc(len(uses) + 1, sizeof(Py_ssize_t))
        if self.steps == NULL or self.int_pool == NULL or self.number_pool == NULL or self.all_uses == NULL or self.first_use == NULL:
            raise MemoryError("out of memory for the steps of a program")
        n_ints = self.n_numbers = 0
        for i, given in enumerate(steps):
            step = &self.steps[i]
            step.kind, step.n_operands, step.n = CALL_KINDS[given.kind], given.n_operands, given.n
            step.place, step.int_place, step.number_place, step.operand_place = self.n_addresses, n_ints, self.n_numbers, -1
            self.n_addresses += step.n_operands
            for value in given.ints:
                self.int_pool[n_ints] = value
                n_ints += 1
            for value in given.numbers:
                self.number_pool[self.n_numbers] = value
                self.n_numbers += 1
            for k, buffer, offset in given.addresses:
                (<list> uses[self.index[buffer]]).append((i, k, offset))
                if buffer == "scratch":
                    self.scratch_bytes = max(self.scratch_bytes, <Py_ssize_t> offset + BLOCK * 8)
            if given.strided:
                step.operand_place = self.n_operands
                self.n_operands += step.n_operands
            if given.loop is not None:
                loop, step.dtype, variant = given.loop
                step.variants = &K.loops[<int> loop][step.dtype][0]
                step.loop = step.variants[<int> variant]
                step.chained, step.action, step.other, step.stored = given.chained, given.action, given.other, given.stored
            ints = self.int_pool + step.int_place
            if step.kind == GEMM and needs_blas(<int> ints[0], ints[4], ints[5], ints[6]):
                bind_blas()
            elif step.kind in (SGD, ADAM, RMSPROP):
                self.updates.append((i, given.source.extra))
            elif step.kind == CALL:
                self.needs_interpreter = True
        k = 0
        for i, found in enumerate(uses):
            self.first_use[i] = k
            for number, operand, offset in found:
                self.all_uses[k].step, self.all_uses[k].operand, self.all_uses[k].offset = number, operand, offset
                k += 1
        self.first_use[len(uses)] = k

    def __dealloc__(self):
        free(self.steps)
        free(self.int_pool)
        free(self.number_pool)
        free(self.all_uses)
        free(self.first_use)
        if self.constants != NULL:
            storage_decref(self.constants)

    cdef place_constants(self):
        cdef Py_ssize_t total = 0
        cdef bytes content
        self.constant_places = {}
        for buffer in self.buffers:
            if buffer.kind == CONSTANT:
                self.constant_places[buffer.id] = total
                total += (buffer.nbytes + 15) // 16 * 16 if buffer.nbytes <= 32 else (buffer.nbytes + 63) // 64 * 64
        self.constants = storage_new(max(total, 1))
        for buffer in self.buffers:
            if buffer.kind == CONSTANT:
                content = buffer.content
                memcpy(self.constants.data + <Py_ssize_t> self.constant_places[buffer.id], <char*> content, buffer.nbytes)

    def instance(self):
        """Memory for one run at a time."""
        return Instance(self)


@cython.binding(False)                    # methods check the type of self only without it
cdef class Instance:
    """A Machine bound to memory. Not safe for use by two threads at once."""

    def __cinit__(self, Machine machine):
        cdef Py_ssize_t i, k, n
        cdef Step* step
        self.machine = machine
        self.failure.step = -1
        n = len(machine.buffers)
        self.steps = <Step*> calloc(max(machine.n_all, 1), sizeof(Step))
        self.addresses = <char**> calloc(machine.n_addresses + 1, sizeof(char*))
        self.numbers = <double*> calloc(machine.n_numbers + 1, sizeof(double))
        self.operands = <Operand*> calloc(machine.n_operands + 1, sizeof(Operand))
        self.storages = <Storage**> calloc(n + 1, sizeof(Storage*))
        self.bases = <char**> calloc(n + 1, sizeof(char*))
        if self.steps == NULL or self.addresses == NULL or self.numbers == NULL or self.operands == NULL or self.storages == NULL \
                or self.bases == NULL:
            raise MemoryError("out of memory for an instance of a program")
        memcpy(self.steps, machine.steps, machine.n_all * sizeof(Step))
        memcpy(self.numbers, machine.number_pool, machine.n_numbers * sizeof(double))
        for i in range(machine.n_all):
            step = &self.steps[i]
            step.p = self.addresses + step.place
            step.ints = machine.int_pool + step.int_place
            step.numbers = self.numbers + step.number_place
            if step.operand_place >= 0:
                step.operands = self.operands + step.operand_place
                for k in range(step.n_operands):
                    ints = step.ints[1 + step.ints[0] + k * (1 + step.ints[0])]
                    step.operands[k].itemsize = abs(ints)
                    step.operands[k].strides = step.ints + 2 + step.ints[0] + k * (1 + step.ints[0]) if ints > 0 else NULL
        self.arena = storage_new(max(machine.arena_bytes, 1))
        if machine.scratch_bytes:
            self.scratch = storage_new(machine.scratch_bytes)
            self.set_base(machine.index["scratch"], self.scratch.data)
        for i, buffer in enumerate(machine.buffers):
            if buffer.kind == CONSTANT:
                self.take(i, machine.constants, machine.constants.data + <Py_ssize_t> machine.constant_places[buffer.id])
            elif buffer.kind == EXTERNAL and buffer.owner is not None:
                self.bind_external(i, buffer.owner)
            elif buffer.kind == LOCAL and buffer.id in machine.plan.offsets:
                self.take(i, self.arena, self.arena.data + <Py_ssize_t> machine.plan.offsets[buffer.id])
        for i, (_, _, state, _) in machine.updates:
            self.bind_update(i, state)

    def __dealloc__(self):
        cdef Py_ssize_t i
        free(self.bases)
        if self.storages != NULL:
            for i in range(len(self.machine.buffers)):
                if self.storages[i] != NULL:
                    storage_decref(self.storages[i])
        if self.arena != NULL:
            storage_decref(self.arena)
        if self.scratch != NULL:
            storage_decref(self.scratch)
        free(self.steps)
        free(self.addresses)
        free(self.numbers)
        free(self.operands)
        free(self.storages)

    # ---- addresses

    cdef void set_base(self, Py_ssize_t index, char* base) noexcept:
        """Write the address of a buffer wherever it is used."""
        cdef Machine m = self.machine
        cdef Py_ssize_t k
        cdef Use* use
        cdef Step* step
        self.bases[index] = base
        for k in range(m.first_use[index], m.first_use[index + 1]):
            use = &m.all_uses[k]
            step = &self.steps[use.step]
            step.p[use.operand] = base + use.offset
            if step.operands != NULL:
                step.operands[use.operand].data = base + use.offset

    cdef void take(self, Py_ssize_t index, Storage* storage, char* base) noexcept:
        """Bind a buffer to memory that a storage keeps alive."""
        storage_incref(storage)
        if self.storages[index] != NULL:
            storage_decref(self.storages[index])
        self.storages[index] = storage
        self.set_base(index, base)

    cdef Py_ssize_t known(self, Py_ssize_t index) except -1:
        """The index of a buffer."""
        if not 0 <= index < len(self.machine.buffers):
            raise worded(IndexError, "an instance has {} buffers, got {}", len(self.machine.buffers), index)
        return index

    def bind_external(self, Py_ssize_t index, UntypedStorage owner):
        """Let a buffer that lives outside be the memory of `owner`."""
        if owner.storage == NULL:
            raise ValueError("an empty storage object has no memory")
        self.take(self.known(index), owner.storage, owner.storage.data)

    cdef void bind_input(self, Py_ssize_t index, Tensor tensor, Py_ssize_t offset) noexcept:
        """Let an INPUT buffer be the memory of a tensor whose first element stands at `offset`."""
        if self.storages[index] == tensor.storage and tensor.data - offset == self.bases[index]:
            return
        self.take(index, tensor.storage, tensor.data - offset)

    def bind_inputs(self, tensors):
        """Bind the arguments of a run."""
        cdef Machine m = self.machine
        for view, tensor in zip(m.program.inputs, tensors, strict=True):
            index = m.index.get(view.buffer)
            if index is not None:
                self.bind_input(index, tensor, view.offset)

    def share(self, Py_ssize_t index, Instance other not None, Py_ssize_t there):
        """Let a buffer be what it is in another instance."""
        if other.storages[other.known(there)] == NULL:
            raise worded(ValueError, "buffer {} has no memory yet", there)
        self.take(self.known(index), other.storages[there], other.bases[there])

    def fresh(self, Py_ssize_t index, Py_ssize_t times=1):
        """New memory for a result buffer (for `times` runs, one after the other)."""
        cdef Py_ssize_t nbytes = self.machine.buffers[self.known(index)].nbytes
        cdef Storage* storage = storage_new(max(nbytes * times, 1))
        self.take(index, storage, storage.data)
        storage_decref(storage)

    def is_shared(self, Py_ssize_t index):
        """Whether somebody else holds the memory of a buffer, or there is none yet."""
        return self.storages[self.known(index)] == NULL or self.storages[index].refs > 1

    def tensor(self, view, dims=None, Py_ssize_t step=0):
        """A tensor on the memory of a buffer; with dims=(n,), of n results that lie `step` bytes apart."""
        cdef Py_ssize_t shape[MAX_NDIM + 1]
        cdef Py_ssize_t strides[MAX_NDIM + 1]
        cdef Py_ssize_t index = self.machine.index[view.buffer]
        cdef Storage* storage = self.storages[index]
        cdef Layout* layout
        cdef PyObject* o
        cdef int n = 0
        if dims is not None:
            shape[0], strides[0], n = dims[0], step // itemsize_of(view.dtype), 1
        if len(view.shape) > MAX_NDIM:
            raise worded(ShapeError, "a tensor has at most {} dimensions, got {}", MAX_NDIM, len(view.shape))
        for size, stride in zip(view.shape, view.strides, strict=True):
            shape[n], strides[n] = size, stride
            n += 1
        layout = layout_strided(n, shape, strides)
        storage_incref(storage)
        o = tensor_wrap(storage, layout, self.bases[index] + <Py_ssize_t> view.offset, view.dtype)
        made = <object> o
        Py_DECREF(made)
        return made

    def content(self, view):
        """The bytes of a whole buffer, as they are now."""
        cdef Py_ssize_t index = self.machine.index[view.buffer]
        return self.bases[index][:<Py_ssize_t> self.machine.buffers[index].nbytes]

    # ---- options of optimisers

    def bind_update(self, Py_ssize_t i, state):
        """Let an update count in this state."""
        if isinstance(state, CountedState):
            self.steps[i].counter = &(<CountedState> state).steps

    def refresh(self, updates):
        """Read learning rates and the like, as they are now. `updates`: as Machine.updates."""
        cdef double* numbers
        seen = None
        for i, (group, _, _, _) in updates:
            numbers = self.steps[<Py_ssize_t> i].numbers
            if group is not seen:
                seen = group
                kind = self.steps[<Py_ssize_t> i].kind
                lr, decay = group["lr"], group["weight_decay"]
                if kind == SGD:
                    values = (lr, group["momentum"], group["dampening"], decay)
                elif kind == ADAM:
                    values = (lr, *group["betas"], group["eps"], decay)
                else:
                    values = (lr, group["alpha"], group["eps"], decay, group["momentum"])
            for k, value in enumerate(values):
                numbers[k] = value

    # ---- running

    def run(self, Py_ssize_t times=1, advancing=()):
        """Run the program `times` times; `advancing`: indices of result buffers that move on by their size after each run."""
        cdef Py_ssize_t done = 0, i
        cdef Machine m = self.machine
        cdef Py_ssize_t* moved = NULL
        cdef Py_ssize_t n_moved = len(advancing)
        moved = <Py_ssize_t*> calloc(2 * n_moved + 1, sizeof(Py_ssize_t))
        if moved == NULL:
            raise MemoryError("out of memory for a run")
        for i in range(n_moved):
            moved[2 * i], moved[2 * i + 1] = advancing[i], m.buffers[advancing[i]].nbytes
        try:
            if times == 1 and m.work < 20000:
                done = self.run_times(1, moved, n_moved)
            else:
                with nogil:
                    done = self.run_times(times, moved, n_moved)
        finally:
            free(moved)
            for index in m.written:
                self.storages[<Py_ssize_t> index].version += <unsigned int> (done + (self.failure.step >= 0))
        if self.failure.step >= 0:
            self.fail()

    def run_step(self, Py_ssize_t i):
        """Run one instruction."""
        if not 0 <= i < self.machine.n_steps:
            raise worded(IndexError, "a program of {} steps has no step {}", self.machine.n_steps, i)
        cdef Py_ssize_t bad = execute(self, &self.steps[i])
        if bad != -1:
            self.failure.step, self.failure.which = i, bad
            self.fail()

    cdef Py_ssize_t run_times(self, Py_ssize_t times, Py_ssize_t* moved, Py_ssize_t n_moved) noexcept nogil:
        cdef Py_ssize_t t, i, k, n = self.machine.n_steps
        cdef Py_ssize_t bad
        cdef Step* steps = self.steps
        for t in range(times):
            for i in range(n):
                bad = execute(self, &steps[i])
                if bad != -1:
                    self.failure.step, self.failure.which = i, bad
                    return t
            for k in range(n_moved):
                self.advance(moved[2 * k], moved[2 * k + 1])
        return times

    cdef void advance(self, Py_ssize_t index, Py_ssize_t nbytes) noexcept nogil:
        cdef Py_ssize_t k
        cdef Step* step
        cdef Use* use
        for k in range(self.machine.first_use[index], self.machine.first_use[index + 1]):
            use = &self.machine.all_uses[k]
            step = &self.steps[use.step]
            step.p[use.operand] += nbytes
            if step.operands != NULL:
                step.operands[use.operand].data += nbytes

    cdef fail(self):
        """Raise what eager code would have raised at the step that failed."""
        cdef Py_ssize_t i = self.failure.step
        cdef Py_ssize_t bad = self.failure.which
        cdef Step* step = &self.steps[i]
        cdef int k
        source = self.machine.sources[i]
        where = f", at {source.line[0]}:{source.line[1]}" if source.line else ""
        self.failure.step = -1
        if step.kind == CALL:
            error, self.error = self.error, None
            raise error
        if step.kind == ROUTINE:
            arrays = [None if view is None else (<uintptr_t> step.p[k], view.dtype, view.shape, view.strides)
                      for k, view in enumerate(source.operands)]
            error = routine_error(step.ints[0], bad, arrays, source.attrs)
            if error.args and isinstance(error.args[0], str):
                error.args = (error.args[0] + where, *error.args[1:])
            raise error
        if step.kind == OUTSIDE_UNIT:
            raise worded(RuntimeError, "binary_cross_entropy: all inputs must lie between 0 and 1; for logits use "
                                       "binary_cross_entropy_with_logits{}", where)
        for k in range(<int> step.ints[1]):
            size, value = step.ints[2 + k], (<long long*> step.p[1 + k])[bad]
            if not -size <= value < size:
                raise worded(IndexError, "index: index {} is out of range for a dim of size {}{}", value, size, where)

    cdef Py_ssize_t call(self, Step* step) noexcept:
        """Python at its place in the program; 0 where it raised."""
        cdef Py_ssize_t i = step - self.steps
        cdef int k
        try:
            source = self.machine.sources[i]
            tensors = [self.tensor(view) for view in source.operands]
            for k in range(step.n_operands):
                (<Tensor> tensors[k]).data = step.p[k]          # results of many runs move on
            n = source.attrs[0]
            source.extra(tensors[n:], tensors[:n])
            return -1
        except BaseException as error:
            self.error = error
            return 0


cdef Py_ssize_t call_python(Instance instance, Step* step) noexcept with gil:
    return instance.call(step)


cdef void run_part(Step* part, Py_ssize_t start, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """A map of a group on `size` elements, from element `at` of the block that begins at `start`."""
    cdef char* p[MAX_OPERANDS]
    cdef int k
    for k in range(part.n_operands):
        p[k] = part.p[k] + start * part.ints[k] + at * part.ints[part.n_operands + k]
    part.loop(size, p, part.numbers)


cdef Py_ssize_t run_chain(Step* head, Py_ssize_t start, Py_ssize_t size) noexcept nogil:
    """The maps from this one on as a chain, on the block's whole tiles; how many elements these are."""
    cdef Link links[2 * MAX_CHAIN + 1]
    cdef Py_ssize_t whole = size - size % (K.chain_bytes // head.ints[head.n_operands])
    cdef int i, n = 1
    cdef int first = 2 if head.other == 1 else 1       # the operand that the chain begins with
    cdef Step* part = head
    if whole == 0:
        return 0
    links[0].action, links[0].data = CHAIN_LOAD, head.p[first] + start * head.ints[first]
    for i in range(head.chained):
        part = head + i
        links[n].action = part.action
        if part.other:
            links[n].data = part.p[part.other] + start * part.ints[part.other]
        n += 1
        if part.stored:
            links[n].action, links[n].data = CHAIN_STORE, part.p[0] + start * part.ints[0]
            n += 1
    K.chains[head.dtype](whole, n, links)
    return whole


cdef void run_group(Instance instance, Step* group) noexcept nogil:
    """The maps of a group, block by block; first what fills rows with single values."""
    cdef Py_ssize_t n = group.ints[0], block = group.ints[1]
    cdef Step* parts = instance.steps + group.ints[2]
    cdef Step* end = parts + group.ints[3]
    cdef Step* part
    cdef Step* last
    cdef Py_ssize_t start = 0, size, whole, i, k
    for k in range(group.ints[4]):
        part = end + k
        for i in range(BLOCK):
            memcpy(part.p[0] + i * part.ints[0], part.p[1], part.ints[0])
    while start < n:
        size = min(n - start, block)
        part = parts
        while part < end:
            if part.chained == 0:
                run_part(part, start, 0, size)
                part += 1
                continue
            whole = run_chain(part, start, size)
            last = part + part.chained
            while part < last:
                if whole < size:
                    run_part(part, start, whole, size - whole)
                part += 1
        start += size


cdef void run_rows(Step* s) noexcept nogil:
    """A loop for each row: a bias, a column."""
    cdef char* p[MAX_OPERANDS]
    cdef Py_ssize_t _
    cdef int k
    for k in range(s.n_operands):
        p[k] = s.p[k]
    for _ in range(s.ints[0]):
        s.loop(s.n, p, s.numbers)
        for k in range(s.n_operands):
            p[k] += s.ints[1 + k]


cdef Py_ssize_t run_routine(Step* s) noexcept nogil:
    """ints: number, how many integers, numbers and arrays; dtype, ndim, shape and strides of each array; the integers."""
    cdef Array arrays[MAX_ARRAYS]
    cdef const Py_ssize_t* a = s.ints + 4
    cdef Py_ssize_t k
    for k in range(s.ints[3]):
        arrays[k].data = s.p[k]
        arrays[k].dtype, arrays[k].ndim = <int> a[0], <int> a[1]
        arrays[k].shape = a + 2
        arrays[k].strides = a + 2 + a[1]
        a += 2 + 2 * a[1]
    return K.routine(<int> s.ints[0], arrays, <int> s.ints[1], a, <int> s.ints[2], s.numbers)


cdef void run_adam(Step* s) noexcept nogil:
    cdef Moments moments = Moments(n=s.ints[1], p=s.p[0], g=s.p[1], m=s.p[2], v=s.p[3], vmax=s.p[4])
    cdef AdamNumbers numbers = AdamNumbers(lr=s.numbers[0], beta1=s.numbers[1], beta2=s.numbers[2], eps=s.numbers[3], decay=s.numbers[4],
                                           decoupled=<int> s.ints[2], maximize=<int> s.ints[3])
    s.counter[0] += 1
    K.adam(<int> s.ints[0], 1, &moments, &numbers, s.counter[0])


cdef inline Py_ssize_t execute(Instance instance, Step* s) noexcept nogil:
    """Run one step; -1, or what went wrong: the element that a check refused, the status of a routine."""
    cdef Py_ssize_t* a = s.ints
    cdef char** p = s.p
    cdef const long long* indices[MAX_NDIM]
    cdef Py_ssize_t k
    if s.kind == LOOP:
        s.loop(s.n, p, s.numbers)
    elif s.kind == SMALL_GEMM:
        K.small_gemm(<int> a[0], <int> a[1], <int> a[2], a[4], a[5], a[6], p[1], a[7], p[2], a[9], p[0], a[11])
    elif s.kind == ADAM:
        run_adam(s)
    elif s.kind == SGD:
        K.sgd(<int> a[0], a[1], p[0], p[1], p[2], s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3], <int> a[2], <int> a[3], 0)
    elif s.kind == ROWS:
        run_rows(s)
    elif s.kind == GROUP:
        run_group(instance, s)
    elif s.kind == STRIDED:
        K.elementwise(s.variants, s.n_operands - 1, <int> a[0], a + 1, s.operands, s.numbers)
    elif s.kind == REDUCE:
        K.reduce(<int> a[0], <int> a[1], <int> a[2], a + 3, p[1], a + 3 + a[2], p[0], a + 3 + 2 * a[2], s.numbers[0])
    elif s.kind == GEMM:
        gemm_run(<int> a[0], a[1], a[2], a[3], a[4], a[5], a[6], p[1], a[7], a[8], p[2], a[9], a[10], p[0], a[11], a[12])
    elif s.kind == COPY:
        K.copy(<int> a[0], a + 3, <int> a[1], p[0], a + 3 + a[0], <int> a[2], p[1], a + 3 + 2 * a[0])
    elif s.kind == SOFTMAX:
        K.softmax(<int> a[0], a[1], a[2], p[1], p[0], <int> a[3])
    elif s.kind == SOFTMAX_BACKWARD:
        K.softmax_backward(<int> a[0], a[1], a[2], p[1], p[2], p[0], <int> a[3])
    elif s.kind == RMSPROP:
        s.counter[0] += 1
        K.rmsprop(<int> a[0], a[1], p[0], p[1], p[2], p[3], p[4], s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3],
                  s.numbers[4], <int> a[3])
    elif s.kind == GATHER:
        K.gather(a[0], a[2], <const Py_ssize_t*> p[1], <int> a[3], a + 4, a + 4 + a[3], p[2], p[0])
    elif s.kind == SCATTER:
        K.scatter(a[0], a[2], <const Py_ssize_t*> p[1], <int> a[3], a + 4, a + 4 + a[3], p[2], p[0])
    elif s.kind == SCATTER_ADD:
        K.scatter_add(<int> a[1], a[2], <const Py_ssize_t*> p[1], <int> a[3], a + 4, a + 4 + a[3], p[2], p[0])
    elif s.kind == INDEX_OFFSETS:
        for k in range(a[1]):
            indices[k] = <const long long*> p[1 + k]
        return K.index_offsets(a[0], <int> a[1], indices, a + 2, a + 2 + a[1], <Py_ssize_t*> p[0])
    elif s.kind == ROUTINE:
        return run_routine(s)
    elif s.kind == OUTSIDE_UNIT:
        return K.outside_unit(<int> a[0], a[1], p[0])
    elif s.kind == CALL:
        return call_python(instance, s)
    return -1
