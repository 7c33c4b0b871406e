# Elementwise rows in place: x.add_(y), x *= 2. Operators and the generated functions call `inplace` and `inplace_with`.
#
# Relies on dispatch (conversion, the loop) and dense; record rewrites the history of what is written.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from autograd_cy.array.dtype cimport BOOL, itemsize_of
from autograd_cy.array.layout cimport OVERLAPPING, Layout, layout_decref, layout_dense_like, same_layout, same_shape, shape_tuple
from autograd_cy.engine.dense cimport Dense, all_dense
from autograd_cy.engine.dispatch cimport convert_operands, output_layout, read_operands, run
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Node, node_with_numbers, remember_line
from autograd_cy.engine.operands cimport Operand_, category, copy_into, copy_of, dtype_name, write_number
from autograd_cy.engine.read_table cimport MAX_INPUTS, OPS, OpInfo
from autograd_cy.engine.record cimport no_edge, refuse_inplace, rewrite_history, save_number, save_tensor, set_edge, wants_grad
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_new
from autograd_cy.kernels.table cimport ALL_VECTORS, run_loop

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.ops import TABLE

cdef tuple NAMES_IN_PLACE = tuple([name + "_" for name in TABLE])


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
    cdef tuple arrays
    cdef Layout* layout
    cdef PyObject* o = NULL
    cdef PyObject* temporary = NULL
    cdef Tensor x = <Tensor> args[0]
    cdef Tensor t
    cdef str name = NAMES_IN_PLACE[opcode]
    cdef int dtype, i
    cdef bint recorded = False
    cdef unsigned int mask = 0
    if inplace_dense(opcode, info, n, args, attrs):
        Py_INCREF(x)
        return <PyObject*> x
    arrays = read_operands(n, args, given)
    if arrays is None:
        Py_INCREF(NotImplemented)
        return <PyObject*> NotImplemented
    for i in range(n):
        used[i] = given[i]
        kept[i] = apart[i] = NULL
    if x.layout.flags & OVERLAPPING:
        raise worded(RuntimeError, "{}: several elements of the tensor share one memory location (it was expanded); clone() it first", name)
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
            raise worded(RuntimeError, "{}: the result has dtype {}, which can't be stored in a tensor of {.dtype.name}",
                                       name, dtype_name(dtype), x)
        for i in range(n):
            if used[i].tensor == NULL:
                write_number(&used[i], dtype, numbers + 8 * i)
        layout = output_layout(opcode, n, used)
        if not same_shape(layout, x.layout):
            shape = shape_tuple(layout)
            layout_decref(layout)
            raise worded(ShapeError, "{}: the result has shape {}, but the tensor has shape {.shape}", name, shape, x)
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


operators.inplace = inplace
