# Noting every kernel that a thread runs, with the memory that it touches, as the instructions of a Program.
#
# Relies on kernels/table (whose entries lead through here while a capture is on), array/storage (which gives every tensor of a
# capture a block of its own, so that an address names one value) and program.py. capture.py drives it.
#
# Above 500 lines because each kernel of the table has its one function here that says what its arguments mean.

cimport cython
import sys
from bisect import bisect_right

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uintptr_t

from autograd_cy.array.dtype cimport BOOL, INT64, N_DTYPES, itemsize_of
from autograd_cy.array.layout cimport shape_tuple, strides_tuple
from autograd_cy.array.storage cimport (
    Storage, captured_blocks, end_capture, linked_blocks, pause_capture, slab_block, start_capture, wrap_storage,
)
from autograd_cy.engine.modes cimport modes, notice
from autograd_cy.engine.node cimport Node, node_line
from autograd_cy.engine.tensor cimport Tensor
from autograd_cy.kernels.table cimport (
    FIRST_SCALAR, K, LAST_SCALAR, N_VARIANTS, REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_PROD, REDUCE_SUM,
    AdamNumbers, Array, Kernels, Loop, Moments, Operand, recorder, routines,
)

from autograd_cy._libraries import DIRECTORY
from autograd_cy.array.errors import CaptureError, worded
from autograd_cy.graph.notes import LOOP_ATTRS, LOOP_BOOLS, LOOP_INPUTS, LOOP_NAMES, Block
from autograd_cy.graph.program import CONSTANT, EXTERNAL, INPUT, LOCAL, Instruction, View

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

make = tuple.__new__                      # of a named tuple, without its Python function

cdef unsigned long owner = 0              # the thread that is captured
cdef Notes active = None

REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "any", "all", "var", "logsumexp", "norm")


def user_line():
    """(file, line, function) of the innermost frame outside the package; None where there is none."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(DIRECTORY):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def is_capturing():
    """Whether this thread's computations are being captured."""
    return active is not None and PyThread_get_thread_ident() == owner


def place(line):
    """A line in a message."""
    return f"{line[0]}:{line[1]}, in {line[2]}" if line else "an unknown line"


@cython.binding(False)                    # methods check the type of self only without it
cdef class Notes:
    """What is noted during a capture (recording.Recording, its subclass, makes Programs of it).

    inputs: tensors that a run will bind anew. Only one capture may be on at a time.
    """

    cdef public list instructions, effects
    cdef list starts, blocks              # sorted by address, of equal length
    cdef public dict by_start                    # address of the data -> Block
    cdef dict constants                   # (bytes, dtype) -> Block
    cdef public list all_blocks
    cdef public object error
    cdef public dict leaves               # id(leaf) -> (leaf, its gradient before, whether that mattered)
    cdef public list pending_update
    cdef object node_place, node_frame
    cdef public list inputs
    cdef public Py_ssize_t mark           # where the second part begins: the backward pass of a compiled function
    cdef public bint went_back            # a backward pass ran
    cdef long long since                  # nodes up to this number are older than the capture: going back through them is an error
    cdef bint resumed

    def __init__(self, inputs=(), long long since=-1):
        self.since = since
        self.instructions, self.effects = [], []
        self.starts, self.blocks, self.by_start, self.constants, self.all_blocks = [], [], {}, {}, []
        self.error, self.leaves, self.pending_update = None, {}, None
        self.node_place = self.node_frame = None
        self.inputs = list(inputs)
        self.mark = -1

    def __enter__(self):
        global active, owner
        if active is not None:
            raise CaptureError("a capture is on already; captures do not nest and only one thread may capture at a time")
        captured = {storage for _, storage, captured in self.blocks if captured}
        self.starts, self.blocks = [], []
        for data, nbytes, storage in sorted(linked_blocks()):
            self.starts.append(data)
            self.blocks.append((nbytes, storage, storage in captured))
        captured_blocks()
        if not self.resumed:
            for k, tensor in enumerate(self.inputs):
                self.name_input(tensor, f"input{k}")
        self.resumed = True
        active, owner = self, PyThread_get_thread_ident()
        install()
        start_capture()
        return self

    def __exit__(self, kind, error, trace):
        global active, owner
        self.adopt_fresh()
        recorder.ignores_versions = False
        uninstall()
        active, owner = None, 0
        if kind is None and self.error is None:
            self.settle()
        self.forget_the_dead()
        end_capture()
        if kind is None and self.error is not None:
            raise self.error
        return False

    cdef forget_the_dead(self):
        """Captured memory that nobody holds any more will be given back: its addresses mean nothing from now on."""
        cdef Py_ssize_t i
        kept = []
        for i in range(len(self.starts)):
            storage = self.blocks[i][1]
            if self.blocks[i][2]:
                if (<Storage*> <uintptr_t> storage).refs == 0:
                    self.by_start.pop(self.starts[i], None)
                else:
                    kept.append((self.starts[i], self.blocks[i]))
        self.starts = [start for start, _ in kept]
        self.blocks = [block for _, block in kept]

    cdef name_input(self, Tensor tensor, str name):
        block = self.block_at(<uintptr_t> tensor.storage.data, INPUT)
        block.kind, block.name, block.touched, block.owner = INPUT, name, True, None

    def divide(self, tensors, names):
        """What follows is the second part, with `tensors` (made for this, untouched so far) as its inputs; values do not matter."""
        recorder.ignores_versions = True
        for tensor, name in zip(tensors, names, strict=True):
            self.name_input(<Tensor?> tensor, name)
        self.mark = len(self.instructions)

    cdef adopt_fresh(self):
        cdef Py_ssize_t i
        for data, nbytes, storage in captured_blocks():
            self.by_start.pop(data, None)
            i = bisect_right(self.starts, data)
            while i > 0 and self.starts[i - 1] == data:         # memory that was freed in the meantime
                i -= 1
                del self.starts[i], self.blocks[i]
            self.starts.insert(i, data)
            self.blocks.insert(i, (nbytes, storage, True))

    cdef look_again(self):
        """Learn of storages that came to life outside of the capture: an optimiser's state in its first step."""
        known = set(self.starts)
        for data, nbytes, storage in linked_blocks():
            if data not in known:
                i = bisect_right(self.starts, data)
                self.starts.insert(i, data)
                self.blocks.insert(i, (nbytes, storage, False))

    cdef object block_at(self, uintptr_t address, object kind=None):
        """The block that the address lies in; None where no storage has it."""
        cdef Py_ssize_t i
        cdef uintptr_t start
        cdef Storage* s
        self.adopt_fresh()
        s = slab_block(address)
        if s != NULL:
            start, nbytes, captured = <uintptr_t> s.data, s.nbytes, False
        else:
            i = bisect_right(self.starts, address) - 1
            if i < 0:
                return None
            start = self.starts[i]
            nbytes, storage, captured = self.blocks[i]
            s = <Storage*> <uintptr_t> storage
        if address >= start + max(nbytes, 1):
            return None
        block = self.by_start.get(start)
        if block is None:
            block = Block(len(self.all_blocks), kind or (LOCAL if captured else EXTERNAL), start, nbytes)
            if not captured:
                block.owner = wrap_storage(s)
            self.all_blocks.append(block)
            self.by_start[start] = block
        return block

    cpdef object constant(self, bytes content, int dtype):
        key = (content, dtype)
        block = self.constants.get(key)
        if block is None:
            block = Block(len(self.all_blocks), CONSTANT, 0, len(content))
            block.content = content
            self.all_blocks.append(block)
            self.constants[key] = block
        return block

    cdef object view(self, const char* data, int dtype, tuple shape, tuple strides, str role):
        """A view of the memory at `data`; a single number outside every storage is a constant."""
        cdef Py_ssize_t numel = 1
        for size in shape:
            numel *= <Py_ssize_t> size
        if not numel and role == "r":              # its address may be another tensor's: x[n:] begins where x ends
            return make(View, (self.constant(b"", dtype).id, 0, dtype, shape, strides))
        block = self.block_at(<uintptr_t> data)
        if block is None and (role != "r" or numel > 1):
            self.look_again()
            block = self.block_at(<uintptr_t> data)
        if block is None:
            if role != "r" or (numel != 1 and any([s for n, s in zip(shape, strides, strict=True) if n != 1])):
                if numel:
                    raise worded(CaptureError, "memory that belongs to no tensor is used at {}", place(user_line()))
                return make(View, (self.constant(b"", dtype).id, 0, dtype, shape, strides))
            block = self.constant(PyBytes_FromStringAndSize(data, itemsize_of(dtype)), dtype)
            return make(View, (block.id, 0, dtype, shape, strides))
        found = make(View, (block.id, <Py_ssize_t> (<uintptr_t> data - <uintptr_t> block.start), dtype, shape, strides))
        if block.kind == LOCAL and not block.touched:
            block.touched = True
            whole = found.offset == 0 and numel * itemsize_of(dtype) >= <Py_ssize_t> block.nbytes and strides == contiguous_strides(shape)
            if role != "w" or not (whole or found.covers(block)):           # what it holds was put there by no kernel
                self.keep_content(block)
        return found

    cdef keep_content(self, block):
        block.content = PyBytes_FromStringAndSize(<char*> <uintptr_t> block.start, block.nbytes)
        block.position = len(self.instructions)

    cdef note(self, str kernel, str name, tuple operands, str roles, tuple attrs=(), tuple numbers=(), object extra=None):
        line = user_line()
        if self.node_place is not None:
            if line == self.node_frame:
                line = self.node_place
            else:
                self.node_place = None
        self.instructions.append(make(Instruction, (kernel, name, operands, roles, attrs, numbers, line, extra)))

    def view_of(self, Tensor tensor):
        """The view that a tensor is of the program's memory (after the capture, too)."""
        block = self.by_start.get(<uintptr_t> tensor.storage.data)
        if block is None:
            block = self.block_at(<uintptr_t> tensor.storage.data)
            if block is None:
                raise CaptureError("a result is a tensor that the captured computation did not touch and that is gone")
            if block.kind == LOCAL:               # made, but no kernel touched it: a constant
                block.kind = CONSTANT
                block.touched = True
                block.content = PyBytes_FromStringAndSize(<char*> <uintptr_t> block.start, block.nbytes)
        return View(block.id, <Py_ssize_t> (<uintptr_t> tensor.data - <uintptr_t> tensor.storage.data), tensor.dtype_,
                    shape_tuple(tensor.layout), strides_tuple(tensor.layout))

    def give_names(self, names):
        """(name, tensor) pairs for memory that lives outside: the first name counts."""
        for name, tensor in names:
            block = self.by_start.get(<uintptr_t> (<Tensor> tensor).storage.data)
            if block is not None and not block.name:
                block.name = name

    def touches(self, Tensor tensor):
        """Whether the tensor's memory is part of the program."""
        return <uintptr_t> tensor.storage.data in self.by_start


class paused:
    """Within the block, computations of the captured thread are not noted: what a wall does at capture."""

    def __enter__(self):
        self.profile = sys.getprofile()
        sys.setprofile(None)
        uninstall()
        pause_capture()

    def __exit__(self, *exception):
        profile = self.profile                 # what was never entered has none
        start_capture()
        install()
        sys.setprofile(profile)


def note_call(function, inputs, outputs):
    """Have `function(inputs, outputs)` called at this place of every run; the caller runs it now."""
    on_call(function, list(inputs), list(outputs))


# ---- the functions that K leads through

cdef Kernels saved


cdef object sizes(int ndim, const Py_ssize_t* values):
    return tuple([values[i] for i in range(ndim)])


cdef object contiguous_strides(tuple shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


cdef object flat(Notes r, const char* data, int dtype, tuple shape, str role):
    return r.view(data, dtype, shape, contiguous_strides(shape), role)


cdef inline bint mine() noexcept nogil:
    return PyThread_get_thread_ident() == owner


cdef void on_loop(int loop, int dtype, int variant, Py_ssize_t n, char** p, const double* attrs) noexcept nogil:
    if mine():
        note_loop(loop, dtype, variant, n, p, attrs)


cdef void note_loop(int loop, int dtype, int variant, Py_ssize_t n, char** p, const double* attrs) noexcept with gil:
    cdef Notes r = active
    cdef int k, count = len(LOOP_INPUTS[loop])
    try:
        bools = LOOP_BOOLS[loop]
        operands = [None]
        for k in range(1, count + 1):
            alone = (variant == FIRST_SCALAR and k == 1) or (variant == LAST_SCALAR and k == count)
            operands.append(flat(r, p[k], BOOL if bools[k] else dtype, () if alone else (n,), "r"))
        operands[0] = flat(r, p[0], BOOL if bools[0] else dtype, (n,), "w")
        r.note("map", LOOP_NAMES[loop], tuple(operands), "w" + "r" * count, (dtype,),
               tuple([attrs[k] for k in range(<int> LOOP_ATTRS[loop])]) if attrs != NULL else ())
    except BaseException as error:
        r.error = r.error or error


cdef void on_elementwise(const Loop* variants, int nin, int ndim, const Py_ssize_t* shape, const Operand* operands,
                         const double* attrs) noexcept nogil:
    if mine():
        note_elementwise(variants, nin, ndim, shape, operands, attrs)
    saved.elementwise(variants, nin, ndim, shape, operands, attrs)


cdef void note_elementwise(const Loop* variants, int nin, int ndim, const Py_ssize_t* shape, const Operand* given,
                           const double* attrs) noexcept with gil:
    cdef Notes r = active
    cdef Py_ssize_t which = (variants - &K.loops[0][0][0]) // N_VARIANTS
    cdef int loop = which // N_DTYPES
    cdef int dtype = which % N_DTYPES
    cdef int k
    try:
        bools = LOOP_BOOLS[loop]
        dims = sizes(ndim, shape)
        operands = [None]
        for k in range(1, nin + 1):
            single = given[k].strides == NULL
            operands.append(r.view(given[k].data, BOOL if bools[k] else dtype, () if single else dims,
                                   () if single else sizes(ndim, given[k].strides), "r"))
        operands[0] = r.view(given[0].data, BOOL if bools[0] else dtype, dims, sizes(ndim, given[0].strides), "w")
        r.note("map", LOOP_NAMES[loop], tuple(operands), "w" + "r" * nin, (dtype,),
               tuple([attrs[k] for k in range(<int> LOOP_ATTRS[loop])]) if attrs != NULL else ())
    except BaseException as error:
        r.error = r.error or error


cdef void on_copy(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides, int src_dtype,
                  const char* src, const Py_ssize_t* src_strides) noexcept nogil:
    if mine():
        note_copy(ndim, shape, dst_dtype, dst, dst_strides, src_dtype, src, src_strides)
    saved.copy(ndim, shape, dst_dtype, dst, dst_strides, src_dtype, src, src_strides)


cdef void note_copy(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides, int src_dtype,
                    const char* src, const Py_ssize_t* src_strides) noexcept with gil:
    cdef Notes r = active
    try:
        dims = sizes(ndim, shape)
        source = r.view(src, src_dtype, dims, sizes(ndim, src_strides), "r")
        r.note("copy", "copy", (r.view(dst, dst_dtype, dims, sizes(ndim, dst_strides), "w"), source), "wr")
    except BaseException as error:
        r.error = r.error or error


cdef void on_reduce(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides, char* out,
                    const Py_ssize_t* out_strides, double param) noexcept nogil:
    if mine():
        note_reduce(kind, dtype, ndim, shape, x, x_strides, out, out_strides, param)
    saved.reduce(kind, dtype, ndim, shape, x, x_strides, out, out_strides, param)


cdef void note_reduce(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides, char* out,
                      const Py_ssize_t* out_strides, double param) noexcept with gil:
    cdef Notes r = active
    cdef int result = dtype
    if kind == REDUCE_ARGMAX or kind == REDUCE_ARGMIN or ((kind == REDUCE_SUM or kind == REDUCE_PROD) and dtype > 1):
        result = INT64
    elif kind == REDUCE_ANY or kind == REDUCE_ALL:
        result = BOOL
    try:
        dims = sizes(ndim, shape)
        source = r.view(x, dtype, dims, sizes(ndim, x_strides), "r")
        r.note("reduce", REDUCTIONS[kind], (r.view(out, result, dims, sizes(ndim, out_strides), "w"), source), "wr", (kind,), (param,))
    except BaseException as error:
        r.error = r.error or error


cdef void on_gemm(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a,
                  Py_ssize_t lda, Py_ssize_t a_batch, const char* b, Py_ssize_t ldb, Py_ssize_t b_batch, char* c, Py_ssize_t ldc,
                  Py_ssize_t c_batch) noexcept nogil:
    if mine():
        note_gemm(dtype, ta, tb, batch, m, n, k, a, lda, a_batch, b, ldb, b_batch, c, ldc, c_batch)


cdef void note_gemm(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a,
                    Py_ssize_t lda, Py_ssize_t a_batch, const char* b, Py_ssize_t ldb, Py_ssize_t b_batch, char* c, Py_ssize_t ldc,
                    Py_ssize_t c_batch) noexcept with gil:
    cdef Notes r = active
    try:
        lead, sa, sb, sc = ((batch,), (a_batch,), (b_batch,), (c_batch,)) if batch != 1 else ((), (), (), ())
        x = r.view(a, dtype, (*lead, m, k), (*sa, 1, lda) if ta else (*sa, lda, 1), "r")
        y = r.view(b, dtype, (*lead, k, n), (*sb, 1, ldb) if tb else (*sb, ldb, 1), "r")
        z = r.view(c, dtype, (*lead, m, n), (*sc, ldc, 1), "w")
        r.note("gemm", "matmul", (z, x, y), "wrr", (dtype, ta, tb, batch, m, n, k, lda, a_batch, ldb, b_batch, ldc, c_batch))
    except BaseException as error:
        r.error = r.error or error


cdef void on_softmax(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* x, char* out, int log) noexcept nogil:
    if mine():
        note_rows("softmax", "log_softmax" if log else "softmax", dtype, rows, cols, log, out, x, NULL)
    saved.softmax(dtype, rows, cols, x, out, log)


cdef void on_softmax_backward(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* g, const char* y, char* dx,
                              int log) noexcept nogil:
    if mine():
        note_rows("softmax_backward", "log_softmax.dx" if log else "softmax.dx", dtype, rows, cols, log, dx, g, y)
    saved.softmax_backward(dtype, rows, cols, g, y, dx, log)


cdef void note_rows(const char* kernel, const char* name, int dtype, Py_ssize_t rows, Py_ssize_t cols, int log, char* out,
                    const char* x, const char* y) noexcept with gil:
    cdef Notes r = active
    try:
        shape = (rows, cols)
        operands = [flat(r, x, dtype, shape, "r")]
        if y != NULL:
            operands.append(flat(r, y, dtype, shape, "r"))
        operands.insert(0, flat(r, out, dtype, shape, "w"))
        r.note((<bytes> kernel).decode(), (<bytes> name).decode(), tuple(operands), "w" + "r" * (len(operands) - 1),
               (dtype, rows, cols, log))
    except BaseException as error:
        r.error = r.error or error


cdef Py_ssize_t on_outside_unit(int dtype, Py_ssize_t n, const char* x) noexcept nogil:
    if mine():
        note_outside_unit(dtype, n, x)
    return saved.outside_unit(dtype, n, x)


cdef void note_outside_unit(int dtype, Py_ssize_t n, const char* x) noexcept with gil:
    cdef Notes r = active
    try:
        r.note("outside_unit", "check that 0 <= x <= 1", (flat(r, x, dtype, (n,), "r"),), "r", (dtype, n))
    except BaseException as error:
        r.error = r.error or error


cdef Py_ssize_t on_index_offsets(Py_ssize_t n, int nidx, const long long** idx, const Py_ssize_t* dims, const Py_ssize_t* strides,
                                 Py_ssize_t* offsets) noexcept nogil:
    if mine():
        note_index_offsets(n, nidx, idx, dims, strides, offsets)
    return saved.index_offsets(n, nidx, idx, dims, strides, offsets)


cdef void note_index_offsets(Py_ssize_t n, int nidx, const long long** idx, const Py_ssize_t* dims, const Py_ssize_t* strides,
                             Py_ssize_t* offsets) noexcept with gil:
    cdef Notes r = active
    try:
        read = [flat(r, <const char*> idx[i], INT64, (n,), "r") for i in range(nidx)]
        r.note("index_offsets", "places of indices", (flat(r, <const char*> offsets, INT64, (n,), "w"), *read), "w" + "r" * nidx,
               (n, nidx, *sizes(nidx, dims), *sizes(nidx, strides)))
    except BaseException as error:
        r.error = r.error or error


cdef void on_gather(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                    const Py_ssize_t* strides, const char* src, char* out) noexcept nogil:
    if mine():
        note_move("gather", itemsize, 0, n, offsets, ndim, shape, strides, out, src)
    saved.gather(itemsize, n, offsets, ndim, shape, strides, src, out)


cdef void on_scatter(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                     const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil:
    if mine():
        note_move("scatter", itemsize, 0, n, offsets, ndim, shape, strides, dst, src)
    saved.scatter(itemsize, n, offsets, ndim, shape, strides, src, dst)


cdef void on_scatter_add(int dtype, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                         const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil:
    if mine():
        note_move("scatter_add", itemsize_of(dtype), dtype, n, offsets, ndim, shape, strides, dst, src)
    saved.scatter_add(dtype, n, offsets, ndim, shape, strides, src, dst)


cdef int BY_SIZE[9]
BY_SIZE[1], BY_SIZE[4], BY_SIZE[8] = 4, 3, 2      # uint8, int32, int64: a dtype for elements that are only moved


cdef void note_move(const char* kernel, Py_ssize_t itemsize, int dtype, Py_ssize_t n, const Py_ssize_t* offsets, int ndim,
                    const Py_ssize_t* shape, const Py_ssize_t* strides, char* dst, const char* src) noexcept with gil:
    """Of the strided side only the first element is named: where the offsets lead is not known here, so the whole buffer counts."""
    cdef Notes r = active
    cdef str name = (<bytes> kernel).decode()
    cdef int code = dtype if name == "scatter_add" else BY_SIZE[itemsize]
    try:
        inner = sizes(ndim, shape)
        rows = (n, *inner)
        where = flat(r, <const char*> offsets, INT64, (n,), "r")
        attrs = (itemsize, code, n, ndim, *inner, *sizes(ndim, strides))
        if name == "gather":
            source = r.view(src, code, inner, sizes(ndim, strides), "r")
            r.note(name, "index", (flat(r, dst, code, rows, "w"), where, source), "wrr", attrs)
        else:
            source = flat(r, src, code, rows, "r")
            r.note(name, "put" if name == "scatter" else "put and add",
                   (r.view(dst, code, inner, sizes(ndim, strides), "u"), where, source), "urr", attrs)
    except BaseException as error:
        r.error = r.error or error


cdef Py_ssize_t on_routine(int number, const Array* arrays, int n_ints, const Py_ssize_t* ints, int n_numbers,
                           const double* numbers) noexcept nogil:
    if mine():
        note_routine(number, arrays, n_ints, ints, n_numbers, numbers)
    return saved.routine(number, arrays, n_ints, ints, n_numbers, numbers)


cdef void note_routine(int number, const Array* arrays, int n_ints, const Py_ssize_t* ints, int n_numbers,
                       const double* numbers) noexcept with gil:
    cdef Notes r = active
    cdef str roles = (<bytes> routines[number].roles).decode()
    cdef str role
    cdef int k
    try:
        operands = [None] * len(roles)
        for reading in (True, False):                # what is read first: its contents are older than this instruction
            for k, role in enumerate(roles):
                if arrays[k].data != NULL and (role == "r") == reading:
                    operands[k] = r.view(arrays[k].data, arrays[k].dtype, sizes(arrays[k].ndim, arrays[k].shape),
                                         sizes(arrays[k].ndim, arrays[k].strides), role)
        r.note("checked_routine" if routines[number].checks else "routine", (<bytes> routines[number].name).decode(),
               tuple(operands), roles, sizes(n_ints, ints), tuple([numbers[k] for k in range(n_numbers)]))
    except BaseException as error:
        r.error = r.error or error


cdef Py_ssize_t on_count_nonzero(int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* strides) noexcept nogil:
    if mine():
        note_refusal("the positions of non-zero elements")
    return saved.count_nonzero(dtype, ndim, shape, x, strides)


cdef void note_refusal(const char* what) noexcept with gil:
    try:
        refuse((<bytes> what).decode())
    except CaptureError as error:
        active.error = active.error or error


cdef void on_sgd(int dtype, Py_ssize_t n, char* p, const char* g, char* buf, double lr, double momentum, double dampening,
                 double weight_decay, int nesterov, int maximize, int first) noexcept nogil:
    if mine():
        # `first` is not noted: the buffer exists from the first step on
        note_update("sgd", dtype, n, p, g, buf, NULL, NULL, nesterov, maximize, 0, lr, momentum, dampening, weight_decay, 0)
    saved.sgd(dtype, n, p, g, buf, lr, momentum, dampening, weight_decay, nesterov, maximize, first)


cdef void on_adam(int dtype, int count, const Moments* at, const AdamNumbers* o, long long step) noexcept nogil:
    if mine():                  # one parameter: while something is recorded, each comes by itself
        note_update("adam", dtype, at.n, at.p, at.g, at.m, at.v, at.vmax, o.decoupled, o.maximize, 0, o.lr, o.beta1, o.beta2, o.eps,
                    o.decay)
    saved.adam(dtype, count, at, o, step)


cdef void on_rmsprop(int dtype, Py_ssize_t n, char* p, const char* g, char* square_avg, char* buf, char* grad_avg, double lr,
                     double alpha, double eps, double weight_decay, double momentum, int maximize) noexcept nogil:
    if mine():
        note_update("rmsprop", dtype, n, p, g, square_avg, buf, grad_avg, 0, maximize, 0, lr, alpha, eps, weight_decay, momentum)
    saved.rmsprop(dtype, n, p, g, square_avg, buf, grad_avg, lr, alpha, eps, weight_decay, momentum, maximize)


cdef object updated(Notes r, const char* data, int dtype, Py_ssize_t n):
    return flat(r, data, dtype, (n,), "u") if data != NULL else None


cdef void note_update(const char* kernel, int dtype, Py_ssize_t n, char* p, const char* g, char* first, char* second, char* third,
                      int a, int b, int c, double n0, double n1, double n2, double n3, double n4) noexcept with gil:
    """The numbers are those of this step: a run reads them anew from the optimiser's options."""
    cdef Notes r = active
    cdef str name = (<bytes> kernel).decode()
    try:
        if r.pending_update is None:
            raise worded(CaptureError, "{} was called by something else than an optimiser at {}", name, place(user_line()))
        gradient = flat(r, g, dtype, (n,), "r")
        r.note(name, name, (updated(r, p, dtype, n), gradient, updated(r, first, dtype, n), updated(r, second, dtype, n),
                            updated(r, third, dtype, n)), "uruuu", (dtype, n, a, b, c), (), tuple(r.pending_update))
        r.pending_update = None
    except BaseException as error:
        r.error = r.error or error


# ---- what is told with the interpreter at hand

cdef int refuse(object what) except -1:
    raise worded(CaptureError, "{} brings a tensor's value to Python inside a captured step, where a replay could not follow what the "
                               "program then does with it; at {}. Return the tensor and look at it after the step, use where() or "
                               "ag.cond() for a choice, or ag.graph.wall() for code that must run at its place", what, place(user_line()))


cdef int on_escape(object what) except -1:
    if mine() and modes.observer != NULL:
        notice("escape", what)                    # explain.py looks on: nothing will be replayed
    elif mine():
        return refuse(what)
    return 0


cdef str called(object function):
    """What a call is named in print: a function inside another, by that other one."""
    return getattr(function, "__qualname__", getattr(function, "__name__", type(function).__name__)).partition(".<locals>")[0]


cdef int on_call(object function, list inputs, list outputs) except -1:
    """A Python function that will be called at this place of every run: it reads the inputs and fills the outputs."""
    cdef Notes r = active
    cdef Tensor t
    if not mine():
        return 0
    read = [r.view(t.data, t.dtype_, shape_tuple(t.layout), strides_tuple(t.layout), "r") for t in inputs]
    wrote = [r.view(t.data, t.dtype_, shape_tuple(t.layout), strides_tuple(t.layout), "w") for t in outputs]
    r.note("call", called(function), (*wrote, *read), "w" * len(wrote) + "r" * len(read),
           (len(wrote),), (), function)
    return 0


cdef int on_update(object group, object states, object state, object parameter) except -1:
    if mine():
        active.pending_update = [group, states, state, parameter]
    return 0


cdef int on_leaf(object tensor, bint reads) except -1:
    cdef Tensor t = tensor
    if mine() and id(tensor) not in active.leaves:
        active.leaves[id(tensor)] = (tensor, None if t.grad_ == NULL else <object> t.grad_, reads)
    return 0


cdef int on_node(object node) except -1:
    if mine():
        active.went_back = True
        if (<Node> node).seq <= active.since:
            line = node_line(<Node> node) or "unknown line"
            raise worded(CaptureError, "backward goes through a graph that was made before the captured call ({}), at {}: make the graph "
                                       "inside the step, or detach() what comes from outside", line, place(user_line()))
        text = node_line(<Node> node).rpartition(":")
        active.node_place = (text[0], int(text[2]), "the gradient") if text[0] else None
        active.node_frame = user_line()
    return 0


cdef void install():
    """Lead the table's entries through the functions above."""
    saved.elementwise, K.elementwise = K.elementwise, on_elementwise
    saved.copy, K.copy = K.copy, on_copy
    saved.reduce, K.reduce = K.reduce, on_reduce
    saved.softmax, K.softmax = K.softmax, on_softmax
    saved.softmax_backward, K.softmax_backward = K.softmax_backward, on_softmax_backward
    saved.outside_unit, K.outside_unit = K.outside_unit, on_outside_unit
    saved.index_offsets, K.index_offsets = K.index_offsets, on_index_offsets
    saved.gather, K.gather = K.gather, on_gather
    saved.scatter, K.scatter = K.scatter, on_scatter
    saved.scatter_add, K.scatter_add = K.scatter_add, on_scatter_add
    saved.count_nonzero, K.count_nonzero = K.count_nonzero, on_count_nonzero
    saved.routine, K.routine = K.routine, on_routine
    saved.sgd, K.sgd = K.sgd, on_sgd
    saved.adam, K.adam = K.adam, on_adam
    saved.rmsprop, K.rmsprop = K.rmsprop, on_rmsprop
    recorder.gemm, recorder.escape, recorder.call, recorder.update = on_gemm, on_escape, on_call, on_update
    recorder.leaf, recorder.node = on_leaf, on_node
    recorder.loop = on_loop                       # last: it says that a capture is on


cdef void uninstall():
    recorder.loop = NULL
    K.elementwise, K.copy, K.reduce = saved.elementwise, saved.copy, saved.reduce
    K.softmax, K.softmax_backward = saved.softmax, saved.softmax_backward
    K.outside_unit, K.index_offsets = saved.outside_unit, saved.index_offsets
    K.gather, K.scatter, K.scatter_add, K.count_nonzero = saved.gather, saved.scatter, saved.scatter_add, saved.count_nonzero
    K.sgd, K.adam, K.rmsprop, K.routine = saved.sgd, saved.adam, saved.rmsprop, saved.routine
