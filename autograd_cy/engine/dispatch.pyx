# Running one elementwise row: promotion, broadcasting, the loop, recording. (inplace.pyx has the forms that write.)
#
# Relies on array, kernels, node, tensor, record, operands, dense and the table. Operators and the generated functions call `unary`,
# `binary` and `elementwise`; the backward rules call them too.
#
# The fast path comes first: two tensors of one dtype that share a dense layout, or one and a number, go straight to their loop.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, DENSE, Layout, broadcast_strides, layout_broadcast, layout_contiguous_like, layout_decref, layout_dense_among,
    layout_dense_like, layout_incref, same_layout, same_shape, strides_of,
)
from autograd_cy.engine.dense cimport Dense, all_dense, fill_place, lay_out, plain_number, reduction_of_loss, small_dense
from autograd_cy.engine.inplace cimport inplace
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport NAMES, NO_REDUCTION, SAVED_INT, Node, node_bare, node_new, node_with_numbers, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport (
    FEW, GRAIN, Operand_, common_dtype, converted, default_dtype, dtype_name, read_operand, write_number,
)
from autograd_cy.engine.read_table cimport MAX_INPUTS, OPS, OpInfo
from autograd_cy.engine.record cimport no_edge, save_number, save_tensor, set_edge, set_history, wants_grad
from autograd_cy.engine.routines cimport run_routine
from autograd_cy.engine.tensor cimport FLOOR_DIVIDE, MUL, POW, REMAINDER, SUB, Tensor, is_tensor, operators, tensor_new
from autograd_cy.kernels.table cimport ALL_VECTORS, FIRST_SCALAR, K, LAST_SCALAR, Loop, Operand, recording, run_loop

from autograd_cy.array.errors import DTypeError, ShapeError, worded
from autograd_cy.engine.tensor import OPCODES
from autograd_cy.kernels.index import division_error
from autograd_cy.kernels.table import routine_number

cdef int SQUARE = OPCODES["square"], SQRT = OPCODES["sqrt"], RECIPROCAL = OPCODES["reciprocal"], FMOD = OPCODES["fmod"]
cdef int DIVISORS = routine_number("index.divisors")


cdef int compute_dtype(int opcode, int dtype) except -1:
    """What the row computes in for operands of this common dtype."""
    if OPS[opcode].direct[dtype]:
        return dtype
    if OPS[opcode].direct[BOOL]:                 # "integral"
        raise worded(DTypeError, "{}: defined for integers and bools, not for {}", NAMES[opcode], dtype_name(dtype))
    if OPS[opcode].direct[INT64] and dtype <= FLOAT64:
        raise worded(DTypeError, "{}: defined for integers, not for {}", NAMES[opcode], dtype_name(dtype))
    if OPS[opcode].direct[INT64]:                # "number", "integer": not bool
        raise worded(RuntimeError, "{}: not defined for bool tensors; use logical operations or convert to an integer dtype", NAMES[opcode])
    return default_dtype()


# ---- the loop

cdef Layout* output_layout(int opcode, int n, Operand_* args) except NULL:
    """The broadcast shape, in the axis order of the first input that has it whole; if none has, of the first that tells."""
    cdef Layout* full = NULL
    cdef Layout* wider
    cdef Layout* a
    cdef Py_ssize_t strides[MAX_INPUTS * MAX_NDIM]
    cdef bint plain = True
    cdef int i, given = 0
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
                return full
            plain = plain and a.flags & CONTIGUOUS != 0
    if plain:
        return full
    for i in range(n):
        if args[i].tensor != NULL:
            broadcast_strides((<Tensor> args[i].tensor).layout, full, strides + given * MAX_NDIM)
            given += 1
    wider = layout_dense_among(full, given, strides)
    layout_decref(full)
    return wider


cdef int raise_shapes(int opcode, int n, Operand_* args) except -1:
    shapes = " and ".join([str((<object> args[i].tensor).shape) for i in range(n) if args[i].tensor != NULL])
    raise worded(ShapeError, "{}: shapes {} do not broadcast against each other", NAMES[opcode], shapes)


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
        raise worded(DTypeError, "{}: the condition must be a bool tensor, got {}", NAMES[opcode], found)
    for i in range(first, n):
        if args[i].tensor != NULL and (<Tensor> args[i].tensor).dtype_ != dtype:
            kept[i] = converted(<Tensor> args[i].tensor, dtype)
            args[i].tensor = kept[i]
        elif args[i].tensor == NULL and args[i].kind == SAVED_INT and args[i].integer == 0 and args[i].number != 0 and dtype > FLOAT64:
            raise worded(OverflowError, "{}: {} does not fit into {}", NAMES[opcode], int(args[i].number), dtype_name(dtype))
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


cdef tuple read_operands(int n, PyObject** args, Operand_* given):
    """The tensors made of arrays among the operands, to be kept as long as these are in use; None where one is nothing that tensors
    combine with."""
    cdef tuple arrays = ()
    cdef int i, status
    for i in range(n):
        status = read_operand(args[i], &given[i])
        if status == 2:
            from autograd_cy.engine.creation import as_tensor
            arrays += (as_tensor(<object> args[i]),)
            given[i].tensor = <PyObject*> arrays[len(arrays) - 1]
        elif status == 1:
            return None
    return arrays


cdef PyObject* elementwise_of_any(int opcode, int n, PyObject** args, const double* attrs, int reduction) except NULL:
    cdef OpInfo* info = &OPS[opcode]
    cdef Operand_ given[MAX_INPUTS]
    cdef Operand_ used[MAX_INPUTS]
    cdef PyObject* kept[MAX_INPUTS]
    cdef char numbers[8 * MAX_INPUTS]
    cdef tuple arrays = read_operands(n, args, given)
    cdef Layout* layout
    cdef PyObject* out = NULL
    cdef PyObject* reduced
    cdef int dtype, i, tensors = 0
    for i in range(n if arrays is not None else 0):
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
        raise worded(TypeError, "{}: not an elementwise row of {} inputs and {} attributes", name, len(given), len(attrs))
    for i in range(OPS[opcode].n_attrs):
        values[i] = attrs[i]
    for i in range(OPS[opcode].n_inputs):
        args[i] = <PyObject*> given[i]
    out = elementwise(opcode, OPS[opcode].n_inputs, args, values, reduction)
    result = <object> out
    Py_DECREF(result)
    return result


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
        raise worded(TypeError, "{}: expected tensors (or a tensor and a number)", name)
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
    if (wants_grad(x) & (info.dloop[0] >= 0) | wants_grad(y) & (info.dloop[1] >= 0)) and grad_enabled():
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
    """x ** 2, x ** 0.5, x ** -1, x ** 3, x ** 4 and x ** -2 by cheaper rows; NULL: not one of them."""
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
        if exponent == 4:
            first = own(unary(SQUARE, a))
            return unary(SQUARE, <PyObject*> first)
        if exponent == -2:                        # in this order, so that neither loses the range of the other
            first = own(unary(RECIPROCAL, a))
            return unary(SQUARE, <PyObject*> first)
    return NULL


operators.unary = unary
operators.binary = binary
