# What operations written in Python need of the engine: to be made and recorded, their inputs in contiguous memory, and what follows
# from shapes remembered.
#
# Relies on record, operands, creation, routines. The operations of networks and those that SciPy computes rely on it.

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Size
from cpython.tuple cimport PyTuple_GetSlice, PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp, memcpy

from autograd_cy.array.dtype cimport BOOL, FLOAT64, MAX_NDIM, N_DTYPES
from autograd_cy.array.layout cimport CONTIGUOUS, Layout, layout_contiguous, layout_decref, shape_tuple
from autograd_cy.engine.creation cimport allocate
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, copy_into
from autograd_cy.engine.record cimport any_wants_grad, record, saved_or_raise, unpack
from autograd_cy.engine.routines cimport routine_of, run_routine
from autograd_cy.engine.arguments cimport read_shape
from autograd_cy.engine.tensor cimport Tensor, is_tensor, operators, tensor_new
from autograd_cy.kernels.table cimport MAX_ARRAYS, routines

from autograd_cy.array.errors import worded

from autograd_cy.engine.shape import squeeze, unsqueeze
from autograd_cy.engine.tensor import OPCODES

cdef enum:
    MAX_OUTS = 4              # of a plan
    MAX_INTS = 24
    KEY = 64
    SLOTS = 256
    A_NUMBER = 0              # what a word of a key announces; the others are addresses of None, True and False
    SOME_ITEMS = 1
    A_TENSOR = 2
    A_TEXT = 3
    A_FLOAT = 7

cdef list remembered = [None] * SLOTS         # (key, result, plan), at places that follow from keys


def record_row(str name, Tensor out, tuple inputs, tuple attrs, object aux=None):
    """Make the row `name` the history of `out`, where an input (None: one not given) needs a gradient; returns out."""
    cdef PyObject* given[4]
    cdef int i
    if len(inputs) > 4:
        raise worded(ValueError, "{}: a row of {} inputs can't be recorded here", name, len(inputs))
    for i, value in enumerate(inputs):
        given[i] = NULL if value is None else <PyObject*> (<Tensor?> value)
    if out.dtype_ <= FLOAT64 and any_wants_grad(<int> len(inputs), given):
        record(OPCODES[name], <PyObject*> out, <int> len(inputs), given, <PyObject*> attrs, NULL if aux is None else <PyObject*> aux)
    return out


def make_row(int opcode, int routine, *args):
    """A new tensor for a row of at most 4 inputs (the last may be None), integers and a size: a routine fills it from all of them."""
    cdef PyObject* inputs[4]
    cdef PyObject* arrays[5]
    cdef Py_ssize_t ints[64]
    cdef Py_ssize_t i, n = len(args) - 2
    cdef tuple attrs = args[max(n, 0):], numbers = attrs[0] if n >= 0 else ()
    cdef Tensor out
    cdef Tensor x
    cdef object kept = None                   # contiguous copies, for as long as the routine runs
    if not 0 < n <= 4 or len(numbers) > 64:
        raise worded(ValueError, "a row of {} inputs and {} integers can't be made here", n, len(numbers))
    out = allocate(attrs[1], (<Tensor?> args[0]).dtype_, "empty")
    arrays[0] = <PyObject*> out
    for i in range(n):
        inputs[i] = arrays[i + 1] = NULL
        if args[i] is None:
            continue
        x = <Tensor?> args[i]
        inputs[i] = <PyObject*> x
        if not x.layout.flags & CONTIGUOUS:
            x = own(contiguous_of(x))
            kept = (kept, x)
        arrays[i + 1] = <PyObject*> x
    for i in range(len(numbers)):
        ints[i] = numbers[i]
    run_routine(routine, arrays, <int> len(numbers), ints)
    if any_wants_grad(<int> n, inputs):
        record(opcode, <PyObject*> out, <int> n, inputs, <PyObject*> attrs, NULL)
    return out


def empty_as(x, shape, str name="empty"):
    """A tensor of the dtype of x (or of this code) whose values are not set; name: for errors."""
    return allocate(shape, (<Tensor> x).dtype_ if is_tensor(<PyObject*> x) else <int> x, name)


cdef int write_key(Py_ssize_t* key, int n, tuple items, int highest) except -2:
    """What is to be remembered by, behind n words: how many there are then; -1: it can't be. highest: of the dtypes of tensors."""
    cdef int overflow = 0, i, k
    cdef double number
    cdef Tensor t
    for i in range(len(items)):
        a = items[i]
        if n + 2 > KEY:
            return -1
        n += 1
        if a is None or a is True or a is False:
            key[n - 1] = <Py_ssize_t> <PyObject*> a
        elif type(a) is int:
            key[n - 1], key[n] = A_NUMBER, PyLong_AsLongLongAndOverflow(a, &overflow)
            n = -1 if overflow else n + 1
        elif type(a) is float:
            number = a
            key[n - 1] = A_FLOAT
            memcpy(&key[n], &number, sizeof(number))
            n += 1
        elif type(a) is tuple or type(a) is list:
            key[n - 1] = SOME_ITEMS + 4 * PySequence_Size(a)
            n = write_key(key, n, <tuple> a if type(a) is tuple else tuple(a), -1)
        elif type(a) is str:
            key[n - 1], key[n] = A_TEXT, hash(a)
            n += 1
        elif is_tensor(<PyObject*> a):
            t = <Tensor> a
            if t.dtype_ > highest or n + t.layout.ndim > KEY:
                return -1                     # what a tensor of integers, or one among numbers, means may be its value
            key[n - 1] = A_TENSOR + 4 * (N_DTYPES * t.layout.ndim + t.dtype_)
            for k in range(t.layout.ndim):
                key[n + k] = t.layout.dims[k]
            n += t.layout.ndim
        else:
            return -1
        if n < 0:
            break
    return n


cdef object plan_of(object plan, tuple args, int highest):
    cdef Py_ssize_t key[KEY]
    cdef unsigned long long mixed = 0, other = 0
    cdef int i, n = write_key(key, 1, args, highest)
    cdef Py_ssize_t size = n * sizeof(Py_ssize_t)
    cdef tuple known
    if n < 0:
        return plan(*args)
    key[0] = <Py_ssize_t> <PyObject*> plan
    for i in range(0, n - 1, 2):              # in two chains: their products overlap
        mixed = (mixed ^ <unsigned long long> key[i]) * 0x9E3779B97F4A7C15ULL
        other = (other ^ <unsigned long long> key[i + 1]) * 0xD1B54A32D192ED03ULL
    if n % 2:
        mixed = (mixed ^ <unsigned long long> key[n - 1]) * 0x9E3779B97F4A7C15ULL
    mixed = (mixed ^ other >> 1) >> 24
    known = <tuple> remembered[mixed % SLOTS]
    if known is None or len(<bytes> known[0]) != size or memcmp(<const char*> <bytes> known[0], key, size):
        known = remembered[mixed % SLOTS] = ((<char*> key)[:size], plan(*args), plan)
    return known[1]


def planned(plan, *args):
    """plan(*args), remembered: for what follows from shapes and dtypes of tensors of floats, numbers, sequences of these, and texts."""
    return plan_of(plan, args, FLOAT64)


cdef class RowPlan:
    """How one routine makes a row, as follows from shapes, dtypes and numbers; `run_planned` runs it.

    row: its name, None: nothing is recorded. inputs: how many tensors (or None) that `run_planned` is given the routine takes, behind
    its outputs; `recorded` of them are the row's. outs: (shape, dtype code or -1: the first input's) of each output, of which `returned`
    are returned; aux: the range of outputs and inputs that is kept for the rules. attrs: of the row, None: what is kept. ones: (place,
    shape) of an input that is ones where it is not given. single: the first input lacks the batch dimension of 1 that the plan is for.
    lean: the routine for the first output only, where no gradient is wanted.
    """

    cdef Layout* outs[MAX_OUTS]
    cdef Layout* ones_layout
    cdef Py_ssize_t ints[MAX_INTS]
    cdef double numbers[2]
    cdef int dtypes[MAX_OUTS]
    cdef int opcode, routine, lean, inputs, recorded, n_outs, returned, aux_first, aux_last, ones, n_ints, n_numbers
    cdef bint single
    cdef object attrs

    def __init__(self, row, str routine, int inputs, tuple outs, tuple ints, tuple numbers=(), tuple attrs=None, *, tuple aux=(0, 0),
                 int returned=1, int recorded=4, tuple ones=None, bint single=False, str lean=None):
        cdef int i
        if self.n_outs or len(outs) > MAX_OUTS or len(ints) > MAX_INTS or len(numbers) > 2 or inputs + len(outs) > MAX_ARRAYS:
            raise worded(ValueError, "a plan of {} outputs and {} integers can't be made", len(outs), len(ints))
        self.opcode, self.routine = -1 if row is None else <int> OPCODES[row], routine_of(routine)
        self.lean = -1 if lean is None else routine_of(lean)
        self.inputs, self.recorded, self.returned, self.single = inputs, min(inputs, recorded), returned, single
        self.aux_first, self.aux_last = aux
        self.attrs, self.ones = attrs, -1
        if ones is not None:
            self.ones_layout, self.ones = layout_of(ones[1]), ones[0]
        for i in range(len(outs)):
            self.outs[i], self.dtypes[i] = layout_of(outs[i][0]), outs[i][1]
            self.n_outs += 1
        for i in range(len(ints)):
            self.ints[i] = ints[i]
        for i in range(len(numbers)):
            self.numbers[i] = numbers[i]
        self.n_ints, self.n_numbers = <int> len(ints), <int> len(numbers)

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_outs):
            layout_decref(self.outs[i])
        if self.ones_layout != NULL:
            layout_decref(self.ones_layout)


cdef Layout* layout_of(object shape) except NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    return layout_contiguous(read_shape(shape, sizes, "empty"), sizes)


cdef Tensor ones_as(Layout* layout, int dtype):
    cdef Tensor t = own(tensor_new(layout, dtype))
    cdef Py_ssize_t i
    for i in range(layout.numel):
        if dtype == FLOAT64:
            (<double*> t.data)[i] = 1
        else:
            (<float*> t.data)[i] = 1
    return t


def run_planned(plan, *args):
    """What the RowPlan that plan(*args) returns (which is remembered) makes of the tensors that args begin with: an output, or a tuple of
    several. Inputs that the routine updates are changed in place."""
    cdef unsigned long long before = operators.exchanges
    cdef RowPlan p = plan_of(plan, args, BOOL)
    cdef Py_ssize_t i
    for i in range(p.inputs, len(args)):
        if is_tensor(<PyObject*> args[i]):        # as a number, whose value matters
            p = plan(*args)
            break
    if operators.exchanges != before:             # by a value of the user's: what was checked is no longer so
        raise RuntimeError("an argument changed the memory or the shape of a tensor while it was read")
    if p.single:
        args = (unsqueeze(args[0], 0), *args[1:])
    out = run_plan(p, args)
    if not p.single:
        return out
    return squeeze(out, 0) if p.returned == 1 else tuple([squeeze(each, 0) for each in out])


cdef object run_plan(RowPlan p, tuple args):
    cdef PyObject* inputs[MAX_ARRAYS]
    cdef PyObject* arrays[MAX_ARRAYS]
    cdef tuple outs
    cdef list kept = None                     # copies, for as long as the routine runs
    cdef Tensor x
    cdef Tensor copy
    cdef int dtype = (<Tensor?> args[0]).dtype_, i, n = p.n_outs, routine = p.routine
    cdef bint wanted
    for i in range(p.inputs):
        inputs[i] = NULL
        if args[i] is not None:
            inputs[i] = <PyObject*> (<Tensor?> args[i])
        elif i == p.ones:
            copy = ones_as(p.ones_layout, dtype)
            kept = [copy]
            inputs[i] = <PyObject*> copy
    wanted = p.opcode >= 0 and any_wants_grad(p.recorded, inputs)
    if not wanted and p.lean >= 0:
        n, routine = 1, p.lean
    outs = PyTuple_New(n)
    for i in range(n):
        x = own(tensor_new(p.outs[i], dtype if p.dtypes[i] < 0 else p.dtypes[i]))
        arrays[i] = <PyObject*> x
        Py_INCREF(x)
        PyTuple_SET_ITEM(outs, i, x)
    for i in range(p.inputs):
        arrays[n + i] = inputs[i]
        if inputs[i] == NULL:
            continue
        if not (<Tensor> inputs[i]).layout.flags & CONTIGUOUS:
            copy = own(contiguous_of(<Tensor> inputs[i]))
            kept = kept or []
            kept.append(copy)
            arrays[n + i] = <PyObject*> copy
    run_routine(routine, arrays, p.n_ints, p.ints, p.n_numbers, p.numbers)
    for i in range(p.recorded, p.inputs):
        if inputs[i] != NULL and routines[routine].roles[n + i] == b"u":
            x = <Tensor> inputs[i]
            if arrays[n + i] != inputs[i]:
                copy_into(x, <Tensor> arrays[n + i])
            x.storage.version += 1
    if wanted:
        aux = None
        if p.aux_last:
            aux = PyTuple_New(p.aux_last - p.aux_first)
            for i in range(p.aux_first, p.aux_last):
                Py_INCREF(<object> arrays[i])
                PyTuple_SET_ITEM(aux, i - p.aux_first, <object> arrays[i])
        attrs = aux if p.attrs is None else p.attrs
        record(p.opcode, arrays[0], p.recorded, inputs, <PyObject*> attrs, NULL if aux is None or p.attrs is None else <PyObject*> aux)
    if p.returned == 1:
        return <object> arrays[0]
    return outs if p.returned >= n else PyTuple_GetSlice(outs, 0, p.returned)


cdef dict gradient_plans = {}             # opcode: of the gradients of all inputs, or of the only one


def backward_by(str row, plan):
    """Let the first derivative of a row be what plan(g, saved inputs ..., kept values ..., attributes ..., shape of the first input) makes:
    a tensor, or one for each input. The rule remains, for what is differentiated again."""
    cdef int opcode = OPCODES[row]
    gradient_plans[opcode] = plan
    backwards[opcode] = planned_backward


cdef int planned_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef list args = [<object> grads[0]]
    cdef Layout* layout = node.edges[0].layout
    cdef int i
    if node.released:
        saved_or_raise(node, 31)
    for i in range(node.n_edges):
        if node.mask >> i & 1:
            args.append(own(unpack(node, i, False)))
    if node.extra != NULL:
        args.extend(<tuple> <object> node.extra)
    args.extend(<tuple> <object> node.attrs)
    args.append(shape_tuple(layout))
    given = tuple(args)
    made = run_plan(plan_of(gradient_plans[node.opcode], given, BOOL), given)
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            value = (<tuple> made)[i] if type(made) is tuple else made
            Py_INCREF(value)
            result[i] = <PyObject*> value
    return 0


def packed(x):
    """x itself where it is contiguous, else a contiguous copy; without a history. None stays None."""
    if x is None or (<Tensor?> x).layout.flags & CONTIGUOUS:
        return x
    return own(contiguous_of(<Tensor> x))
