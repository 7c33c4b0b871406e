# Running one elementwise row: promotion, broadcasting, the loop, recording; out of place and in place.
#
# Relies on array, kernels, node, tensor, record, operands and the table. Operators and the generated functions call `unary`, `binary`,
# `elementwise` and `inplace`; the backward rules call them too.
#
# Above 500 lines because the forms in and out of place, fast and general, share their helpers and are read side by side.
#
# The fast path comes first: two tensors of one dtype that share a dense layout, or one and a number, go straight to their loop.

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT32, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, DENSE, OVERLAPPING, Layout, broadcast_strides, layout_broadcast, layout_contiguous_like, layout_decref,
    layout_dense_like, layout_incref, layout_scalar, same_layout, same_shape, shape_tuple, strides_of,
)
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport (
    MEAN_REDUCTION, NAMES, NO_REDUCTION, SAVED_FLOAT, SAVED_INT, Node, node_bare, node_new, node_with_numbers, remember_line,
)
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport (
    FEW, GRAIN, Operand_, broadcasts_to, category, common_dtype, converted, copy_elements, copy_into, copy_of, default_dtype, dtype_name,
    read_operand, write_number,
)
from autograd_cy.engine.record cimport (
    no_edge, refuse_inplace, rewrite_history, save_number, save_tensor, set_edge, set_history, wants_grad,
)
from autograd_cy.engine.routines cimport run_routine
from autograd_cy.engine.tensor cimport FLOOR_DIVIDE, MUL, POW, REMAINDER, SUB, Tensor, is_tensor, operators, tensor_new
from autograd_cy.kernels.table cimport (
    ALL_VECTORS, FIRST_SCALAR, K, LAST_SCALAR, REDUCE_MEAN, REDUCE_SUM, Loop, Operand, recording, run_loop,
)

from autograd_cy.array.errors import DTypeError, ShapeError
from autograd_cy.engine.tensor import OPCODES
from autograd_cy.kernels.index import division_error
from autograd_cy.kernels.table import routine_number
from autograd_cy.ops import TABLE

cdef int SQUARE = OPCODES["square"], SQRT = OPCODES["sqrt"], RECIPROCAL = OPCODES["reciprocal"], FMOD = OPCODES["fmod"]
cdef int DIVISORS = routine_number("index.divisors")
cdef tuple NAMES_IN_PLACE = tuple([name + "_" for name in TABLE])

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object n, int* overflow) noexcept


cdef int compute_dtype(int opcode, int dtype) except -1:
    """What the row computes in for operands of this common dtype."""
    if OPS[opcode].direct[dtype]:
        return dtype
    if OPS[opcode].direct[BOOL]:                 # "integral"
        raise DTypeError(f"{NAMES[opcode]}: defined for integers and bools, not for {dtype_name(dtype)}")
    if OPS[opcode].direct[INT64] and dtype <= FLOAT64:
        raise DTypeError(f"{NAMES[opcode]}: defined for integers, not for {dtype_name(dtype)}")
    if OPS[opcode].direct[INT64]:                # "number", "integer": not bool
        raise RuntimeError(f"{NAMES[opcode]}: not defined for bool tensors; use logical operations or convert to an integer dtype")
    return default_dtype()


# ---- the loop

cdef Layout* output_layout(int opcode, int n, Operand_* args) except NULL:
    """The broadcast shape, in the axis order of the first input that has it whole."""
    cdef Layout* full = NULL
    cdef Layout* wider
    cdef Layout* a
    cdef int i
    for i in range(n):
        if args[i].tensor == NULL:
            continue
        a = (<Tensor> args[i].tensor).layout
        if full == NULL:
            full = layout_contiguous_like(a) if not a.flags & CONTIGUOUS else a
            if a.flags & CONTIGUOUS:
                layout_incref(a)
        elif not same_shape(full, a):
            wider = layout_broadcast(full, a)
            layout_decref(full)
            if wider == NULL:
                raise_shapes(opcode, n, args)
            full = wider
    for i in range(n):
        if args[i].tensor != NULL:
            a = (<Tensor> args[i].tensor).layout
            if same_shape(a, full):
                if not a.flags & CONTIGUOUS and full.ndim > 1:
                    layout_decref(full)
                    return layout_dense_like(a)
                break
    return full


cdef int raise_shapes(int opcode, int n, Operand_* args) except -1:
    shapes = " and ".join([str((<object> args[i].tensor).shape) for i in range(n) if args[i].tensor != NULL])
    raise ShapeError(f"{NAMES[opcode]}: shapes {shapes} do not broadcast against each other")


cdef void run(int loop, int dtype, int n, Layout* out_layout, char* out, Py_ssize_t out_itemsize, Operand_* args, char* numbers,
              const double* attrs) noexcept:
    """Run a loop over operands that were converted already; numbers[8 * i] holds the value of number i."""
    cdef Py_ssize_t strides[MAX_INPUTS + 1][MAX_NDIM]
    cdef Operand operands[MAX_INPUTS + 1]
    cdef double few[MAX_INPUTS][FEW]
    cdef char* p[MAX_INPUTS + 1]
    cdef const Loop* variants = &K.loops[loop][dtype][0]
    cdef int variant = ALL_VECTORS
    cdef bint direct = out_layout.flags & DENSE != 0
    cdef Tensor t
    cdef int i
    p[0] = out
    for i in range(n):
        if args[i].tensor == NULL:
            p[i + 1] = numbers + 8 * i
        else:
            t = <Tensor> args[i].tensor
            p[i + 1] = t.data
            if same_layout(t.layout, out_layout):
                continue
            if t.layout.numel != 1 or out_layout.numel == 1:
                direct = direct and t.layout.numel == 1
                continue
        if n == 2 and i == 1 and variant == ALL_VECTORS:
            variant = LAST_SCALAR
        elif n >= 2 and i == 0:
            variant = FIRST_SCALAR
        else:
            direct = False
    if direct and variants[variant] != NULL:
        if out_layout.numel >= GRAIN:
            with nogil:
                run_loop(loop, dtype, variant, out_layout.numel, p, attrs)
        else:
            run_loop(loop, dtype, variant, out_layout.numel, p, attrs)
        return
    if 0 < out_layout.numel <= FEW and out_layout.flags & CONTIGUOUS and not recording():
        for i in range(n):
            if args[i].tensor == NULL:
                fill_place(numbers + 8 * i, itemsize_of(dtype), out_layout.numel, <char*> few[i])
            elif same_layout((<Tensor> args[i].tensor).layout, out_layout):
                continue
            else:
                t = <Tensor> args[i].tensor
                lay_out(t.data, t.layout, t.dtype_, out_layout, <char*> few[i])        # a mask keeps its dtype
            p[i + 1] = <char*> few[i]
        variants[ALL_VECTORS](out_layout.numel, p, attrs)
        return
    operands[0].data = out
    operands[0].strides = strides_of(out_layout)
    operands[0].itemsize = out_itemsize
    for i in range(n):
        operands[i + 1].data = p[i + 1]
        operands[i + 1].strides = NULL
        operands[i + 1].itemsize = itemsize_of(dtype)
        if args[i].tensor != NULL:
            operands[i + 1].itemsize = itemsize_of((<Tensor> args[i].tensor).dtype_)
            broadcast_strides((<Tensor> args[i].tensor).layout, out_layout, strides[i])
            operands[i + 1].strides = strides[i]
    if out_layout.numel >= GRAIN:
        with nogil:
            K.elementwise(variants, n, out_layout.ndim, out_layout.dims, operands, attrs)
    else:
        K.elementwise(variants, n, out_layout.ndim, out_layout.dims, operands, attrs)


cdef int convert_operands(int opcode, int n, Operand_* args, PyObject** kept) except -1:
    """Bring all operands to the dtype that the row computes in, which is returned; conversions are kept alive in `kept`."""
    cdef int first = 1 if OPS[opcode].bool_first else 0
    cdef int dtype = compute_dtype(opcode, common_dtype(n, args, first))
    cdef int i
    if first and (args[0].tensor == NULL or (<Tensor> args[0].tensor).dtype_ != BOOL):
        found = "a number" if args[0].tensor == NULL else dtype_name((<Tensor> args[0].tensor).dtype_)
        raise DTypeError(f"{NAMES[opcode]}: the condition must be a bool tensor, got {found}")
    for i in range(first, n):
        if args[i].tensor != NULL and (<Tensor> args[i].tensor).dtype_ != dtype:
            kept[i] = converted(<Tensor> args[i].tensor, dtype)
            args[i].tensor = kept[i]
        elif args[i].tensor == NULL and args[i].kind == SAVED_INT and args[i].integer == 0 and args[i].number != 0 and dtype > FLOAT64:
            raise OverflowError(f"{NAMES[opcode]}: {int(args[i].number)} does not fit into {dtype_name(dtype)}")
    if (opcode == FLOOR_DIVIDE or opcode == REMAINDER or opcode == FMOD) and dtype > FLOAT64:
        refuse_zero_divisor(opcode, &args[1])
    elif opcode == POW and dtype > FLOAT64 and args[1].tensor == NULL and args[1].number < 0:
        raise RuntimeError("pow: integers to negative integer powers are not integers; convert the base to a floating-point dtype")
    elif opcode == SUB and dtype == BOOL:
        raise RuntimeError("sub: not defined for bool tensors; use ^ or logical_not")
    return dtype


cdef int refuse_zero_divisor(int opcode, Operand_* divisor) except -1:
    cdef Py_ssize_t which = 0 if opcode == FLOOR_DIVIDE else 1 if opcode == REMAINDER else 2
    if divisor.tensor != NULL:
        return run_routine(DIVISORS, &divisor.tensor, 1, &which)
    if divisor.number == 0:
        raise division_error(0, None, (which,))
    return 0


cdef inline int plain_number(PyObject* o, double* value) noexcept:
    """The kind of a Python float, or of an int that a double holds; -1: something else."""
    cdef int overflow = 0
    cdef long long n
    if PyFloat_CheckExact(<object> o):
        value[0] = PyFloat_AS_DOUBLE(<object> o)
        return SAVED_FLOAT
    if PyLong_CheckExact(<object> o):
        n = PyLong_AsLongLongAndOverflow(<object> o, &overflow)
        if not overflow and -9007199254740992 <= n <= 9007199254740992:
            value[0] = <double> n
            return SAVED_INT
    return -1


cdef inline bint small_dense(OpInfo* info, Tensor x, double number) noexcept:
    """Whether the row computes in x's dtype, and its loop may run over the memory as it lies without ado; beside integers, a number
    above 0 may be a divisor or exponent."""
    return (x.dtype_ <= FLOAT64 or x.dtype_ != BOOL and (not info.careful or number > 0)) and info.direct[x.dtype_] \
        and x.layout.flags & DENSE and x.layout.numel < GRAIN


cdef struct Dense:            # operands whose loop runs over the memory as it lies
    Layout* full              # the layout that all have, and the result; a reference of its own
    int dtype                 # that the row computes in
    Operand_ given[MAX_INPUTS]
    char* p[MAX_INPUTS + 1]   # p[0] is for the output
    double spread[MAX_INPUTS][FEW]


cdef void fill_place(const char* value, Py_ssize_t size, Py_ssize_t n, char* place) noexcept:
    """n times the same element."""
    cdef Py_ssize_t i
    if size == 4:
        for i in range(n):
            (<int*> place)[i] = (<const int*> value)[0]
    elif size == 8:
        for i in range(n):
            (<long long*> place)[i] = (<const long long*> value)[0]
    else:
        for i in range(n):
            place[i] = value[0]


cdef bint lay_out(const char* source, Layout* layout, int dtype, Layout* full, char* place) noexcept:
    """Lay few elements out as `full` is; False if their layout does not broadcast to that."""
    cdef Py_ssize_t strides[MAX_NDIM]
    if not broadcasts_to(layout, full):
        return False
    if layout.numel == 1:
        fill_place(source, itemsize_of(dtype), full.numel, place)
        return True
    broadcast_strides(layout, full, strides)
    copy_elements(full.numel, full.ndim, full.dims, dtype, place, strides_of(full), dtype, source, strides)
    return True


cdef bint lay_out_number(Dense* d, int i, PyObject* o) noexcept:
    """Operand i is a number: everywhere in its place, if the row's dtype stays what it is."""
    cdef Operand_* given = &d.given[i]
    cdef double element
    cdef int kind = plain_number(o, &given.number)
    if kind < 0 or d.dtype == BOOL or d.dtype > FLOAT64 and kind != SAVED_INT:
        return False
    given.tensor, given.kind, given.integer = NULL, kind, <long long> given.number if kind == SAVED_INT else 0
    write_number(given, d.dtype, <char*> &element)
    d.p[i + 1] = <char*> d.spread[i]
    fill_place(<const char*> &element, itemsize_of(d.dtype), d.full.numel, d.p[i + 1])
    return True


cdef bint take_as(PyObject** like, Tensor t) noexcept:
    """Let the tensor of most elements, of these that of the dtype to which they are promoted, be `like`; False: not so easily."""
    cdef Layout* full
    if like[0] == NULL:
        like[0] = <PyObject*> t
        return True
    full = (<Tensor> like[0]).layout
    if t.layout.numel > full.numel:
        like[0] = <PyObject*> t
    elif t.dtype_ < (<Tensor> like[0]).dtype_ and t.layout.numel == full.numel:
        if t.layout != full:
            return False
        like[0] = <PyObject*> t
    return True


cdef bint all_dense(OpInfo* info, int n, PyObject** args, Dense* d) except -1:
    """Whether all operands are tensors of one small dense layout and one dtype that the row computes in (a mask that comes first aside,
    which is bool); among few elements also numbers, tensors that broadcast or have gaps, and lower dtypes, all of which are laid out in d.
    """
    cdef PyObject* like = NULL
    cdef Layout* layout
    cdef double number
    cdef int i, dtype, first = 1 if info.bool_first else 0
    cdef bint few
    if is_tensor(args[first]) and small_dense(info, <Tensor> args[first], 0):        # mostly they lie right
        d.full, d.dtype = (<Tensor> args[first]).layout, (<Tensor> args[first]).dtype_
        few = d.full.numel <= FEW and not recording()
        for i in range(n):
            if is_tensor(args[i]):
                layout = (<Tensor> args[i]).layout
                if (<Tensor> args[i]).dtype_ != (BOOL if i < first else d.dtype):
                    break
                d.given[i].tensor = args[i]
                d.p[i + 1] = (<Tensor> args[i]).data
                if layout == d.full:
                    continue
                if layout.numel != 1 or i < first or not few or layout.ndim > d.full.ndim:
                    break
                d.p[i + 1] = <char*> d.spread[i]
                fill_place((<Tensor> args[i]).data, itemsize_of(d.dtype), d.full.numel, d.p[i + 1])
            elif i < first or not few or not lay_out_number(d, i, args[i]):
                break
        else:
            layout_incref(d.full)
            return True
    for i in range(first, n):
        if is_tensor(args[i]) and not take_as(&like, <Tensor> args[i]):
            return False
    if like != NULL:
        dtype = (<Tensor> like).dtype_
    elif first and is_tensor(args[0]):                              # a choice between numbers
        like, dtype = args[0], INT64
        for i in range(first, n):
            if plain_number(args[i], &number) == SAVED_FLOAT:
                dtype = default_dtype()
    else:
        return False
    d.full = (<Tensor> like).layout
    few = d.full.numel <= FEW and not recording()
    if not few and (not d.full.flags & DENSE or d.full.numel >= GRAIN or info.careful and dtype > FLOAT64):
        return False
    d.dtype = dtype
    if not info.direct[dtype]:
        if info.direct[INT64] or not few:
            return False
        d.dtype = default_dtype()
    if d.full.flags & DENSE:
        layout_incref(d.full)
    else:
        d.full = layout_dense_like(d.full)
    if laid_out_all(first, n, args, d, dtype, few) and (not info.careful or d.dtype <= FLOAT64
                                                        or all_above_zero(d.p[2], d.dtype, d.full.numel)):
        return True
    layout_decref(d.full)
    return False


cdef bint laid_out_all(int first, int n, PyObject** args, Dense* d, int dtype, bint few) noexcept:
    cdef Tensor t
    cdef const char* source
    cdef double elements[FEW]
    cdef char* p[2]
    cdef int i, want
    for i in range(n):
        want = BOOL if i < first else d.dtype
        if is_tensor(args[i]):
            t = <Tensor> args[i]
            d.given[i].tensor = args[i]
            d.p[i + 1] = t.data
            if t.dtype_ == want and t.layout == d.full:
                continue
            if not few:
                return False
            source = t.data
            if t.dtype_ != want:
                if i < first or t.dtype_ < dtype or t.dtype_ <= FLOAT64 or not t.layout.flags & DENSE or t.layout.numel > FEW:
                    return False
                p[0], p[1] = <char*> elements, t.data
                if t.layout == d.full:
                    p[0] = d.p[i + 1] = <char*> d.spread[i]
                K.casts[t.dtype_][want](t.layout.numel, p, NULL)
                if t.layout == d.full:
                    continue
                source = p[0]
            if not lay_out(source, t.layout, want, d.full, <char*> d.spread[i]):
                return False
        else:
            if i < first or not few or not lay_out_number(d, i, args[i]):
                return False
        d.p[i + 1] = <char*> d.spread[i]
    return True


cdef bint all_above_zero(const char* data, int dtype, Py_ssize_t n) noexcept:
    """Whether integers may be divisors and exponents without a look at each."""
    cdef bint above = True
    cdef Py_ssize_t i
    for i in range(n):
        above &= (<const long long*> data)[i] > 0 if dtype == INT64 else (<const int*> data)[i] > 0 if dtype == INT32 else data[i] != 0
    return above


cdef PyObject* run_dense(int opcode, OpInfo* info, int n, Dense* d, const double* attrs) except NULL:
    """The fast path of rows with three operands, or with numbers in unusual places."""
    cdef PyObject* out
    try:
        out = tensor_new(d.full, BOOL if info.bool_result else d.dtype)
    finally:
        layout_decref(d.full)
    d.p[0] = (<Tensor> out).data
    run_loop(info.loop, d.dtype, ALL_VECTORS, (<Tensor> out).layout.numel, d.p, attrs)
    if not info.bool_result:
        record_elementwise(opcode, out, n, d.given, d.given, attrs, NO_REDUCTION)
    return out


cdef PyObject* elementwise(int opcode, int n, PyObject** args, const double* attrs, int reduction) except NULL:
    """Run a row on any operands; NotImplemented where one is nothing that tensors combine with.

    With a reduction (of a loss) the elementwise result is followed by a sum or mean in the same node.
    """
    cdef Dense d
    if reduction == NO_REDUCTION and all_dense(&OPS[opcode], n, args, &d):
        return run_dense(opcode, &OPS[opcode], n, &d, attrs)
    return elementwise_of_any(opcode, n, args, attrs, reduction)


cdef PyObject* elementwise_of_any(int opcode, int n, PyObject** args, const double* attrs, int reduction) except NULL:
    cdef OpInfo* info = &OPS[opcode]
    cdef Operand_ given[MAX_INPUTS]
    cdef Operand_ used[MAX_INPUTS]
    cdef PyObject* kept[MAX_INPUTS]
    cdef char numbers[8 * MAX_INPUTS]
    cdef tuple arrays = ()
    cdef Layout* layout
    cdef PyObject* out = NULL
    cdef PyObject* reduced
    cdef int dtype, i, status, tensors = 0
    for i in range(n):
        status = read_operand(args[i], &given[i])
        if status == 2:
            arrays += (owned_tensor(args[i]),)
            given[i].tensor = <PyObject*> arrays[len(arrays) - 1]
        elif status == 1:
            Py_INCREF(NotImplemented)
            return <PyObject*> NotImplemented
        used[i] = given[i]
        kept[i] = NULL
        tensors += given[i].tensor != NULL
    if not tensors:
        Py_INCREF(NotImplemented)
        return <PyObject*> NotImplemented
    try:
        dtype = convert_operands(opcode, n, used, kept)
        for i in range(n):
            if used[i].tensor == NULL:
                write_number(&used[i], dtype, numbers + 8 * i)
        layout = output_layout(opcode, n, used)
        try:
            out = tensor_new(layout, BOOL if info.bool_result else dtype)
        finally:
            layout_decref(layout)
        run(info.loop, dtype, n, layout, (<Tensor> out).data, itemsize_of((<Tensor> out).dtype_), used, numbers, attrs)
        if reduction != NO_REDUCTION:
            reduced = reduction_of_loss(<Tensor> out, reduction)
            Py_DECREF(<object> out)
            out = reduced
        if not info.bool_result:
            record_elementwise(opcode, out, n, given, used, attrs, reduction)
        return out
    except BaseException:
        Py_XDECREF(out)
        raise
    finally:
        for i in range(n):
            Py_XDECREF(kept[i])


def run_row(str name, inputs, attrs=(), int reduction=NO_REDUCTION):
    """Run an elementwise row by its name, on tensors and numbers; attrs in the row's order (recording it again)."""
    cdef PyObject* args[MAX_INPUTS]
    cdef PyObject* out
    cdef list given = list(inputs)
    cdef double values[4]
    cdef int opcode = OPCODES[name]
    cdef int i
    if OPS[opcode].loop < 0 or len(given) != OPS[opcode].n_inputs or len(attrs) != OPS[opcode].n_attrs:
        raise TypeError(f"{name}: not an elementwise row of {len(given)} inputs and {len(attrs)} attributes")
    for i in range(OPS[opcode].n_attrs):
        values[i] = attrs[i]
    for i in range(OPS[opcode].n_inputs):
        args[i] = <PyObject*> given[i]
    out = elementwise(opcode, OPS[opcode].n_inputs, args, values, reduction)
    result = <object> out
    Py_DECREF(result)
    return result


cdef PyObject* dense_loss(int opcode, Tensor x, Tensor t, int reduction) except NULL:
    """The fast path of a reduced loss: two tensors of one floating-point dtype and dense layout, of moderate size."""
    cdef OpInfo* info = &OPS[opcode]
    cdef PyObject* losses
    cdef PyObject* out
    cdef PyObject* node
    cdef unsigned int mask
    cdef char* p[3]
    cdef double few[FEW]
    p[1], p[2] = x.data, t.data
    if x.layout.numel <= FEW and not recording():
        p[0] = <char*> few
        K.loops[info.loop][x.dtype_][ALL_VECTORS](x.layout.numel, p, NULL)
        out = reduced_losses(x.layout, x.dtype_, p[0], reduction)
    else:
        losses = tensor_new(x.layout, x.dtype_)
        p[0] = (<Tensor> losses).data
        run_loop(info.loop, x.dtype_, ALL_VECTORS, x.layout.numel, p, NULL)
        try:
            out = reduction_of_loss(<Tensor> losses, reduction)
        finally:
            Py_DECREF(<object> losses)
    if (wants_grad(x) | wants_grad(t)) and grad_enabled():
        mask = (info.need[0] if x.needs_grad else 0) | (info.need[1] if t.needs_grad else 0)
        node = node_bare(opcode, 2, mask & 3)
        set_edge(&(<Node> node).edges[0], x)
        set_edge(&(<Node> node).edges[1], t)
        if mask & 1:
            save_tensor(<Node> node, 0, x)
        if mask & 2:
            save_tensor(<Node> node, 1, t)
        (<Node> node).reduction = reduction
        remember_line(<Node> node)
        set_history(out, node, 0)
    return out


cdef object owned_tensor(PyObject* o):
    from autograd_cy.engine.creation import as_tensor
    return as_tensor(<object> o)


cdef PyObject* reduction_of_loss(Tensor losses, int reduction) except NULL:
    """Sum or mean of all elements, 0-d; no history."""
    return reduced_losses(losses.layout, losses.dtype_, losses.data, reduction)


cdef PyObject* reduced_losses(Layout* layout, int dtype, char* losses, int reduction) except NULL:
    cdef Layout* scalar = layout_scalar()
    cdef PyObject* out = tensor_new(scalar, dtype)
    cdef Py_ssize_t zeros[MAX_NDIM]
    cdef int i
    layout_decref(scalar)
    for i in range(layout.ndim):
        zeros[i] = 0
    K.reduce(REDUCE_MEAN if reduction == MEAN_REDUCTION else REDUCE_SUM, dtype, layout.ndim, layout.dims, losses, strides_of(layout),
             (<Tensor> out).data, zeros, 0)
    return out


cdef int record_elementwise(int opcode, PyObject* out, int n, Operand_* given, Operand_* used, const double* attrs,
                            int reduction) except -1:
    """Make the node, unless no input requires gradients or recording is off."""
    cdef OpInfo* info = &OPS[opcode]
    cdef unsigned int mask = 0
    cdef bint needed = False
    cdef PyObject* node
    cdef PyObject* o
    cdef int i
    for i in range(n):
        if given[i].tensor != NULL and wants_grad(<Tensor> given[i].tensor) and info.dloop[i] >= 0:
            needed = True
            mask |= info.need[i]
    if not needed or not grad_enabled():
        return 0
    for i in range(n):
        if used[i].tensor == NULL:                # numbers are kept even where no rule needs them: the graph can be run again
            mask |= <unsigned int> 1 << i
    node = node_with_numbers(opcode, n, mask, info.n_attrs, attrs)
    for i in range(n):
        if given[i].tensor != NULL:
            set_edge(&(<Node> node).edges[i], <Tensor> given[i].tensor)
        else:
            no_edge(&(<Node> node).edges[i])
        if used[i].tensor == NULL:
            save_number(<Node> node, i, used[i].number, used[i].kind)
        elif mask >> i & 1:
            if (<Tensor> used[i].tensor).dtype_ == (<Tensor> out).dtype_ or i == 0 and info.bool_first:
                save_tensor(<Node> node, i, <Tensor> used[i].tensor)
            else:
                o = converted(<Tensor> used[i].tensor, (<Tensor> out).dtype_)
                save_tensor(<Node> node, i, <Tensor> o)
                Py_DECREF(<object> o)
    if mask >> n & 1:
        save_tensor(<Node> node, n, <Tensor> out)
    (<Node> node).reduction = reduction
    remember_line(<Node> node)
    set_history(out, node, 0)
    return 0


# ---- out of place

cdef object combined(str name, PyObject* result):
    """The result of a function (a new reference that is taken over); TypeError for NotImplemented."""
    made = <object> result
    Py_DECREF(made)
    if made is NotImplemented:
        raise TypeError(f"{name}: expected tensors (or a tensor and a number)")
    return made


cdef PyObject* unary(int opcode, PyObject* x) except NULL:
    return unary_with(opcode, x, NULL)


cdef PyObject* unary_with(int opcode, PyObject* x, const double* attrs) except NULL:
    """attrs: as many floats as the row has attributes."""
    cdef OpInfo* info = &OPS[opcode]
    cdef PyObject* out
    cdef PyObject* node
    cdef char* p[2]
    if not is_tensor(x):
        raise TypeError(f"{NAMES[opcode]}: expected a Tensor, got {type(<object> x).__name__}")
    if not ((<Tensor> x).layout.flags & DENSE and info.direct[(<Tensor> x).dtype_] and (<Tensor> x).layout.numel < GRAIN):
        return elementwise(opcode, 1, &x, attrs, NO_REDUCTION)
    out = tensor_new((<Tensor> x).layout, BOOL if info.bool_result else (<Tensor> x).dtype_)
    p[0], p[1] = (<Tensor> out).data, (<Tensor> x).data
    run_loop(info.loop, (<Tensor> x).dtype_, ALL_VECTORS, (<Tensor> x).layout.numel, p, attrs)
    if wants_grad(<Tensor> x) and info.dloop[0] >= 0 and grad_enabled():
        node = node_with_numbers(opcode, 1, info.need[0], info.n_attrs, attrs)
        set_edge(&(<Node> node).edges[0], <Tensor> x)
        if info.need[0] & 1:
            save_tensor(<Node> node, 0, <Tensor> x)
        if info.need[0] & 2:
            save_tensor(<Node> node, 1, <Tensor> out)
        remember_line(<Node> node)
        set_history(out, node, 0)
    return out


cdef PyObject* binary(int opcode, PyObject* a, PyObject* b) except NULL:
    cdef OpInfo* info = &OPS[opcode]
    cdef PyObject* args[2]
    cdef PyObject* out = NULL
    cdef double number
    cdef int kind
    if is_tensor(a):
        if is_tensor(b):
            if (<Tensor> a).layout == (<Tensor> b).layout and (<Tensor> a).dtype_ == (<Tensor> b).dtype_ \
                    and small_dense(info, <Tensor> a, 0):
                return binary_dense(opcode, info, <Tensor> a, <Tensor> b)
        else:
            if opcode == POW:
                out = power_of_number(a, b)
                if out != NULL:
                    return out
            kind = plain_number(b, &number)
            if kind >= 0 and small_dense(info, <Tensor> a, number):
                out = binary_number(opcode, info, <Tensor> a, 1, number, kind)
    elif is_tensor(b) and small_dense(info, <Tensor> b, 0):
        kind = plain_number(a, &number)
        if kind >= 0:
            out = binary_number(opcode, info, <Tensor> b, 0, number, kind)
    if out != NULL:
        return out
    args[0], args[1] = a, b
    return elementwise(opcode, 2, args, NULL, NO_REDUCTION)


cdef inline PyObject* binary_dense(int opcode, OpInfo* info, Tensor x, Tensor y) except NULL:
    """The fast path: two tensors of one floating-point dtype that share a dense layout."""
    cdef PyObject* out = tensor_new(x.layout, BOOL if info.bool_result else x.dtype_)
    cdef PyObject* node
    cdef unsigned int mask
    cdef char* p[3]
    p[0], p[1], p[2] = (<Tensor> out).data, x.data, y.data
    run_loop(info.loop, x.dtype_, ALL_VECTORS, x.layout.numel, p, NULL)
    if (wants_grad(x) | wants_grad(y)) and info.dloop[0] >= 0 and grad_enabled():
        mask = (info.need[0] if x.needs_grad else 0) | (info.need[1] if y.needs_grad else 0)
        node = node_bare(opcode, 2, mask)
        set_edge(&(<Node> node).edges[0], x)
        set_edge(&(<Node> node).edges[1], y)
        if mask & 1:
            save_tensor(<Node> node, 0, x)
        if mask & 2:
            save_tensor(<Node> node, 1, y)
        if mask & 4:
            save_tensor(<Node> node, 2, <Tensor> out)
        remember_line(<Node> node)
        set_history(out, node, 0)
    return out


cdef PyObject* binary_number(int opcode, OpInfo* info, Tensor x, int at, double number, int kind) except? NULL:
    """The fast path for a dense tensor and a Python number, which is operand `at`; NULL: not that way."""
    cdef PyObject* out
    cdef PyObject* node
    cdef Operand_ given
    cdef double element
    cdef int variant = LAST_SCALAR if at else FIRST_SCALAR
    cdef char* p[3]
    if x.dtype_ > FLOAT64 and kind != SAVED_INT or K.loops[info.loop][x.dtype_][variant] == NULL:
        return NULL
    given.number, given.integer, given.kind = number, <long long> number if kind == SAVED_INT else 0, kind
    write_number(&given, x.dtype_, <char*> &element)
    p[1 + at], p[2 - at] = <char*> &element, x.data
    out = tensor_new(x.layout, BOOL if info.bool_result else x.dtype_)
    p[0] = (<Tensor> out).data
    run_loop(info.loop, x.dtype_, variant, x.layout.numel, p, NULL)
    if wants_grad(x) and info.dloop[1 - at] >= 0 and grad_enabled():
        node = node_new(opcode, 2, info.need[1 - at] | 1 << at)
        set_edge(&(<Node> node).edges[1 - at], x)
        if at == 0:
            save_number(<Node> node, 0, number, kind)
        if info.need[1 - at] & 2 >> at:
            save_tensor(<Node> node, 1 - at, x)
        if at == 1:
            save_number(<Node> node, 1, number, kind)
        if info.need[1 - at] & 4:
            save_tensor(<Node> node, 2, <Tensor> out)
        remember_line(<Node> node)
        set_history(out, node, 0)
    return out


cdef PyObject* power_of_number(PyObject* a, PyObject* b) except? NULL:
    """x ** 2, x ** 0.5, x ** -1, x ** 3 and x ** -2 by cheaper rows; NULL: not one of them."""
    cdef double exponent
    cdef object first
    if not is_tensor(a) or not isinstance(<object> b, (float, int)) or isinstance(<object> b, bool):
        return NULL
    exponent = <object> b
    if exponent == 2 and (isinstance(<object> b, int) or (<Tensor> a).dtype_ <= FLOAT64) and (<Tensor> a).dtype_ != BOOL:
        return unary(SQUARE, a)
    if (<Tensor> a).dtype_ <= FLOAT64:
        if exponent == 0.5:
            return unary(SQRT, a)
        if exponent == -1:
            return unary(RECIPROCAL, a)
        if exponent == 3:
            first = own(unary(SQUARE, a))
            return (binary if wants_grad(<Tensor> first) else inplace)(MUL, <PyObject*> first, a)
        if exponent == -2:                        # in this order, so that neither loses the range of the other
            first = own(unary(RECIPROCAL, a))
            return unary(SQUARE, <PyObject*> first)
    return NULL


# ---- in place

cdef PyObject* inplace(int opcode, PyObject* a, PyObject* b) except NULL:
    cdef PyObject* args[2]
    args[0], args[1] = a, b
    return inplace_with(opcode, 2, args, NULL)


cdef bint inplace_dense(int opcode, OpInfo* info, int n, PyObject** args, const double* attrs) except -1:
    """The fast path, where nothing is recorded and the operands lie as args[0] does: whether it was taken."""
    cdef Dense d
    cdef Tensor x = <Tensor> args[0], t
    cdef int i
    if info.bool_result or not all_dense(info, n, args, &d):
        return False
    layout_decref(d.full)
    if x.layout != d.full or x.dtype_ != d.dtype:
        return False
    for i in range(n):
        if d.given[i].tensor != NULL:
            t = <Tensor> d.given[i].tensor
            if t.storage == x.storage and t.data != x.data or wants_grad(t) and grad_enabled():
                return False
    refuse_inplace(x, NAMES_IN_PLACE[opcode])
    d.p[0] = x.data
    run_loop(info.loop, x.dtype_, ALL_VECTORS, x.layout.numel, d.p, attrs)
    x.storage.version += 1
    return True


cdef PyObject* inplace_with(int opcode, int n, PyObject** args, const double* attrs) except NULL:
    """args[0] becomes the result of the row; a new reference to it is returned (or NotImplemented)."""
    cdef OpInfo* info = &OPS[opcode]
    cdef Operand_ given[MAX_INPUTS]
    cdef Operand_ used[MAX_INPUTS]
    cdef PyObject* kept[MAX_INPUTS]
    cdef PyObject* apart[MAX_INPUTS]
    cdef char numbers[8 * MAX_INPUTS]
    cdef tuple arrays = ()
    cdef Layout* layout
    cdef PyObject* o = NULL
    cdef PyObject* temporary = NULL
    cdef Tensor x = <Tensor> args[0]
    cdef Tensor t
    cdef str name = NAMES_IN_PLACE[opcode]
    cdef int dtype, i, status
    cdef bint recorded = False
    cdef unsigned int mask = 0
    if inplace_dense(opcode, info, n, args, attrs):
        Py_INCREF(x)
        return <PyObject*> x
    for i in range(n):
        status = read_operand(args[i], &given[i])
        if status == 2:
            arrays += (owned_tensor(args[i]),)
            given[i].tensor = <PyObject*> arrays[len(arrays) - 1]
        elif status == 1:
            Py_INCREF(NotImplemented)
            return <PyObject*> NotImplemented
        used[i] = given[i]
        kept[i] = apart[i] = NULL
    if x.layout.flags & OVERLAPPING:
        raise RuntimeError(f"{name}: several elements of the tensor share one memory location (it was expanded); clone() it first")
    for i in range(n):
        if given[i].tensor != NULL and wants_grad(<Tensor> given[i].tensor):
            recorded = True                     # where no rule exists too: the old value's history ends here
            if info.dloop[i] >= 0:
                mask |= info.need[i]
    recorded = recorded and grad_enabled()
    refuse_inplace(x, name)
    try:
        dtype = convert_operands(opcode, n, used, kept)
        if info.bool_result and x.dtype_ != BOOL or category(dtype) > category(x.dtype_):
            raise RuntimeError(f"{name}: the result has dtype {dtype_name(dtype)}, which can't be stored in a tensor of {x.dtype.name}")
        for i in range(n):
            if used[i].tensor == NULL:
                write_number(&used[i], dtype, numbers + 8 * i)
        layout = output_layout(opcode, n, used)
        if not same_shape(layout, x.layout):
            shape = shape_tuple(layout)
            layout_decref(layout)
            raise ShapeError(f"{name}: the result has shape {shape}, but the tensor has shape {x.shape}")
        layout_decref(layout)
        for i in range(n):
            if used[i].tensor == NULL:
                continue
            t = <Tensor> used[i].tensor
            # Old values that the gradient needs, and memory that partly overlaps the output, are copied first.
            if (recorded and mask >> i & 1 and t.data == x.data) or (
                    t.storage == x.storage and (t.data != x.data or not same_layout(t.layout, x.layout))):
                layout = layout_dense_like(t.layout)
                apart[i] = copy_of(t, layout)
                layout_decref(layout)
                used[i].tensor = apart[i]
        if dtype == x.dtype_:
            run(info.loop, dtype, n, x.layout, x.data, itemsize_of(dtype), used, numbers, attrs)
        else:
            layout = layout_dense_like(x.layout)
            temporary = tensor_new(layout, BOOL if info.bool_result else dtype)
            run(info.loop, dtype, n, layout, (<Tensor> temporary).data, itemsize_of((<Tensor> temporary).dtype_), used, numbers, attrs)
            layout_decref(layout)
            copy_into(x, <Tensor> temporary)
        x.storage.version += 1
        if recorded:
            o = node_with_numbers(opcode, n, mask, info.n_attrs, attrs)
            for i in range(n):
                if given[i].tensor != NULL:
                    set_edge(&(<Node> o).edges[i], <Tensor> given[i].tensor)
                else:
                    no_edge(&(<Node> o).edges[i])
                if mask >> i & 1:
                    if used[i].tensor != NULL:
                        save_tensor(<Node> o, i, <Tensor> used[i].tensor)
                    else:
                        save_number(<Node> o, i, used[i].number, used[i].kind)
            if mask >> n & 1:
                save_tensor(<Node> o, n, x)
            remember_line(<Node> o)
            rewrite_history(x, o)
        Py_INCREF(x)
        return <PyObject*> x
    finally:
        Py_XDECREF(temporary)
        for i in range(n):
            Py_XDECREF(kept[i])
            Py_XDECREF(apart[i])


operators.unary = unary
operators.binary = binary
operators.inplace = inplace
