# Small operands whose loop runs over the memory as it lies: mostly tensors of one dtype that share a dense layout; few elements of
# other layouts and dtypes, and numbers, are laid out on the stack to be such. And losses of such tensors with their reduction.
#
# Relies on operands, record, tensor and the table. dispatch and inplace ask it first, before they go the general way; losses as well.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport BOOL, FLOAT64, INT32, INT64, MAX_NDIM, UINT8, itemsize_of
from autograd_cy.array.layout cimport (
    DENSE, Layout, broadcast_strides, layout_decref, layout_dense_like, layout_incref, layout_scalar, strides_of,
)
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport MEAN_REDUCTION, SAVED_FLOAT, SAVED_INT, Node, node_bare, remember_line
from autograd_cy.engine.operands cimport FEW, GRAIN, Operand_, broadcasts_to, copy_elements, default_dtype, write_number
from autograd_cy.engine.read_table cimport OPS, OpInfo
from autograd_cy.engine.record cimport save_tensor, set_edge, set_history, wants_grad
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_new
from autograd_cy.kernels.table cimport ALL_VECTORS, K, REDUCE_MEAN, REDUCE_SUM, recording, run_loop


cdef void fill_place(const char* value, Py_ssize_t size, Py_ssize_t n, char* place) noexcept:
    """n times the same element."""
    cdef Py_ssize_t i
    cdef int two[2]
    if size == 4:
        two[0] = two[1] = (<const int*> value)[0]
        for i in range(n >> 1):
            memcpy(place + 8 * i, two, 8)
        if n & 1:
            (<int*> place)[n - 1] = two[0]
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
    if kind < 0 or d.dtype == BOOL or d.dtype > FLOAT64 and kind != SAVED_INT or d.dtype == UINT8 and given.number < 0:
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


# ---- losses

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
