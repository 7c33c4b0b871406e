# The gradient of one node: its row's rules, as generated loops (first derivatives) or as tensor code (any order).
#
# Relies on dispatch, record, kernels and the table. backward calls `node_backward`; operations register C forms of their rules.

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from autograd_cy.array.dtype cimport FLOAT32, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    DENSE, Layout, broadcast_strides, layout_broadcast, layout_contiguous, layout_contiguous_like, layout_decref, layout_incref,
    same_layout, same_shape, shape_tuple, strides_of,
)
from autograd_cy.engine.node cimport (
    CUSTOM, MEAN_REDUCTION, NO_REDUCTION, Node, Saved, attributes_of, node_description, numbers_of, saved_at,
)
from autograd_cy.engine.operands cimport GRAIN, broadcasts_to, converted, set_to_zero
from autograd_cy.engine.read_table cimport MAX_RULE_INPUTS, OPS, OpInfo
from autograd_cy.engine.record cimport check_version, saved_or_raise, set_history, unpack
from autograd_cy.engine.tensor cimport Tensor, is_exclusive, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport (
    ALL_VECTORS, FIRST_SCALAR, K, LAST_SCALAR, REDUCE_SUM, Loop, Operand, recorder, recording, run_loop,
)

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.ops import TABLE, loop_id
from autograd_cy.ops.calling import plan_for

cdef int DIV_LOOP = loop_id("div")
cdef list ROWS = list(TABLE.values())
cdef bytes N_INPUTS = bytes([len(row.inputs) for row in ROWS])
FUNCTIONS = {}                # what rules call on tensors, by name; filled in by methods.py


cdef PyObject* sum_to_layout(Tensor g, Layout* target) except NULL:
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Layout* layout
    cdef PyObject* out
    if same_shape(g.layout, target):
        Py_INCREF(g)
        return <PyObject*> g
    if g.layout.numel and not broadcasts_to(target, g.layout):
        raise worded(ShapeError, "a gradient of shape {.shape} can't be summed to shape {}", g, shape_tuple(target))
    layout = layout_contiguous_like(target)
    out = tensor_new(layout, g.dtype_)
    layout_decref(layout)
    if g.layout.numel == 0:                     # also of a shape that does not broadcast: cat takes empty tensors of one dimension
        set_to_zero(<Tensor> out)
        return out
    broadcast_strides(layout, g.layout, strides)
    if g.layout.numel >= GRAIN:
        with nogil:
            K.reduce(REDUCE_SUM, g.dtype_, g.layout.ndim, g.layout.dims, g.data, strides_of(g.layout), (<Tensor> out).data, strides, 0)
    else:
        K.reduce(REDUCE_SUM, g.dtype_, g.layout.ndim, g.layout.dims, g.data, strides_of(g.layout), (<Tensor> out).data, strides, 0)
    return out


cdef PyObject* fit(PyObject* g, Node node, int i) except NULL:
    cdef PyObject* fitted
    if not same_shape((<Tensor> g).layout, node.edges[i].layout):
        fitted = sum_to_layout(<Tensor> g, node.edges[i].layout)
        Py_DECREF(<object> g)
        g = fitted
    if (<Tensor> g).dtype_ != node.edges[i].dtype:
        fitted = converted(<Tensor> g, node.edges[i].dtype)
        Py_DECREF(<object> g)
        g = fitted
    return g


cdef int node_backward(Node node, PyObject** grads, bint create_graph, PyObject** result, bint spare) except -1:
    if not create_graph:
        if OPS[node.opcode].loop >= 0:
            return elementwise_backward(node, grads[0], result, spare)
        if backwards[node.opcode] != NULL:
            return backwards[node.opcode](node, grads, result)
    if node.opcode == CUSTOM:
        return backwards[CUSTOM](node, grads, result)        # the user's code; it is recorded where the mode says so
    return rule_backward(node, grads, create_graph, result)


# ---- elementwise rows: one generated loop per input

cdef int elementwise_backward(Node node, PyObject* g, PyObject** result, bint spare) except -1:
    cdef PyObject* scaled
    if node.reduction != NO_REDUCTION and not recording() and loss_derivatives(node, <Tensor> g, result):
        return 0
    if node.reduction != MEAN_REDUCTION:
        return derivatives(node, g, result, spare and is_exclusive(g))
    scaled = scaled_by_count(node, <Tensor> g)           # the mean of n losses is their sum with g / n
    try:
        return derivatives(node, scaled, result, False)
    finally:
        Py_DECREF(<object> scaled)


cdef bint loss_derivatives(Node node, Tensor g, PyObject** result) except -1:
    """The usual loss: one gradient for the sum or mean of losses of two saved tensors of one dense layout. False: not that."""
    cdef OpInfo* info = &OPS[node.opcode]
    cdef Layout* layout = node.edges[0].layout
    cdef double factor, n = <double> layout.numel
    cdef float single = <float> n
    cdef char* p[4]
    cdef int i
    if node.edges[1].layout != layout or node.mask & 3 != 3 or node.released or info.n_attrs or not layout.flags & DENSE \
            or layout.numel >= GRAIN or g.layout.numel != 1 or node.edges[0].dtype != g.dtype_ or node.edges[1].dtype != g.dtype_ \
            or node.saved[0].storage == NULL or node.saved[1].storage == NULL \
            or node.saved[0].layout != layout or node.saved[1].layout != layout \
            or node.saved[0].version != node.saved[0].storage.version or node.saved[1].version != node.saved[1].storage.version:
        return False
    for i in range(2):
        if node.edges[i].target != NULL and (info.dloop[i] < 0 or info.n_rule_inputs[i] != 3 or info.rule_inputs[i][0] >= 0
                                             or info.rule_inputs[i][1] != 0 or info.rule_inputs[i][2] != 1
                                             or K.loops[info.dloop[i]][g.dtype_][FIRST_SCALAR] == NULL):
            return False
    p[0] = p[1] = g.data
    if node.reduction == MEAN_REDUCTION:
        p[0] = <char*> &factor
        p[2] = <char*> &single if g.dtype_ == FLOAT32 else <char*> &n
        K.loops[DIV_LOOP][g.dtype_][LAST_SCALAR](1, p, NULL)
    p[1], p[2], p[3] = p[0], node.saved[0].at.data, node.saved[1].at.data
    for i in range(2):
        if node.edges[i].target != NULL:
            result[i] = tensor_new(layout, g.dtype_)
            p[0] = (<Tensor> result[i]).data
            K.loops[info.dloop[i]][g.dtype_][FIRST_SCALAR](layout.numel, p, NULL)
    return True


cdef inline int derivatives(Node node, PyObject* g, PyObject** result, bint spare) except -1:
    cdef OpInfo* info = &OPS[node.opcode]
    cdef PyObject* r
    cdef int i
    for i in range(info.n_inputs):
        if node.edges[i].target == NULL or info.dloop[i] < 0:
            continue
        if info.identity[i] and node.reduction == NO_REDUCTION:
            Py_INCREF(<object> g)
            r = g
            spare = False
        else:
            # the last derivative may take the memory of g
            r = run_plain(node, info, i, <Tensor> g, spare and (i + 1 == info.n_inputs or i + 2 == info.n_inputs and (
                node.edges[i + 1].target == NULL or info.dloop[i + 1] < 0)))
        if (<Tensor> r).layout != node.edges[i].layout or (<Tensor> r).dtype_ != node.edges[i].dtype:
            r = fit(r, node, i)
        result[i] = r
    return 0


cdef inline PyObject* place_for(Tensor g, bint reuse) except NULL:
    if reuse:
        Py_INCREF(g)
        return <PyObject*> g
    return tensor_new(g.layout, g.dtype_)


cdef inline PyObject* run_plain(Node node, OpInfo* info, int i, Tensor g, bint reuse) except NULL:
    """The derivative loop for input i where g and at most one saved value share a dense layout; else run_derivative."""
    cdef int n = info.n_rule_inputs[i]
    cdef Saved* saved = NULL
    cdef PyObject* out
    cdef char* p[3]
    cdef double number
    cdef float single
    if n > 2 or not g.layout.flags & DENSE or node.reduction != NO_REDUCTION or g.layout.numel >= GRAIN \
            or info.rule_inputs[i][0] >= 0:
        return run_derivative(node, info, i, g)
    if n == 2:
        saved = saved_at(node, info.rule_inputs[i][1])
        if saved == NULL or node.released:
            return run_derivative(node, info, i, g)
        if saved.storage == NULL:
            out = place_for(g, reuse)
            number = saved.at.number
            single = <float> number
            p[0], p[1] = (<Tensor> out).data, g.data
            p[2] = <char*> &single if g.dtype_ == FLOAT32 else <char*> &number
            run_loop(info.dloop[i], g.dtype_, LAST_SCALAR, g.layout.numel, p, numbers_of(node, info.n_attrs))
            return out
        if saved.layout != g.layout or saved.storage.version != saved.version:
            return run_derivative(node, info, i, g)
        p[2] = saved.at.data
    out = place_for(g, reuse)
    p[0], p[1] = (<Tensor> out).data, g.data
    run_loop(info.dloop[i], g.dtype_, ALL_VECTORS, g.layout.numel, p, numbers_of(node, info.n_attrs))
    return out


cdef Py_ssize_t loss_count(Node node) except -2:
    """How many elementwise losses the node reduced."""
    cdef Layout* full = layout_broadcast(node.edges[0].layout, node.edges[1].layout)
    cdef Py_ssize_t n = full.numel
    layout_decref(full)
    return n


cdef PyObject* scaled_by_count(Node node, Tensor g) except NULL:
    """g / n, for the mean of n losses."""
    cdef double n = <double> loss_count(node)
    cdef float single = <float> n
    cdef PyObject* out = tensor_new(g.layout, g.dtype_)
    cdef char* p[3]
    p[0], p[1] = (<Tensor> out).data, g.data
    p[2] = <char*> &single if g.dtype_ == FLOAT32 else <char*> &n
    run_loop(DIV_LOOP, g.dtype_, LAST_SCALAR, 1, p, NULL)
    return out


cdef bint is_repeated(Layout* a) noexcept nogil:
    """Whether all elements are one place in memory."""
    cdef int i
    for i in range(a.ndim):
        if a.dims[i] != 1 and a.dims[a.ndim + i] != 0:
            return False
    return True


cdef PyObject* run_derivative(Node node, OpInfo* info, int i, Tensor g) except NULL:
    """The derivative loop for input i; the result has the shape of the operation's output."""
    cdef int n = info.n_rule_inputs[i]
    cdef const Loop* variants = &K.loops[info.dloop[i]][g.dtype_][0]
    cdef Saved* saved[MAX_RULE_INPUTS]
    cdef double numbers[MAX_RULE_INPUTS]
    cdef float singles[MAX_RULE_INPUTS]
    cdef const double* attrs = numbers_of(node, info.n_attrs)
    cdef char* p[MAX_RULE_INPUTS + 1]
    cdef Layout* layout = NULL
    cdef Layout* a
    cdef PyObject* out
    cdef int variant = ALL_VECTORS
    cdef bint direct = True
    cdef int k
    # The output lies as g does; or, where g is one repeated value, as the first saved value of the full shape.
    if g.layout.flags & DENSE and node.reduction == NO_REDUCTION:
        layout = g.layout
        layout_incref(layout)
    for k in range(n):
        if info.rule_inputs[i][k] < 0:
            continue
        saved[k] = saved_at(node, info.rule_inputs[i][k])
        if saved[k] == NULL or node.released:
            saved_or_raise(node, info.rule_inputs[i][k])
        if saved[k].storage != NULL and saved[k].storage.version != saved[k].version:
            check_version(node, saved[k])
        if layout == NULL and saved[k].layout != NULL and saved[k].layout.flags & DENSE \
                and (node.reduction != NO_REDUCTION or same_shape(saved[k].layout, g.layout)):
            layout = saved[k].layout
            layout_incref(layout)
    if node.reduction != NO_REDUCTION and not same_shape(node.edges[0].layout, node.edges[1].layout):
        if layout != NULL:
            layout_decref(layout)
        layout = layout_broadcast(node.edges[0].layout, node.edges[1].layout)
    if layout == NULL:
        layout = layout_contiguous(g.layout.ndim, g.layout.dims) if node.reduction == NO_REDUCTION \
            else layout_contiguous_like(node.edges[0].layout)
    out = tensor_new(layout, g.dtype_)
    layout_decref(layout)
    p[0] = (<Tensor> out).data
    for k in range(n):
        if info.rule_inputs[i][k] < 0:
            a = g.layout
            p[k + 1] = g.data
        elif saved[k].storage == NULL:
            numbers[k] = saved[k].at.number
            singles[k] = <float> numbers[k]
            p[k + 1] = <char*> &singles[k] if g.dtype_ == FLOAT32 else <char*> &numbers[k]
            a = NULL
        else:
            a = saved[k].layout
            p[k + 1] = saved[k].at.data
        if a != NULL and same_layout(a, layout):
            continue
        if a != NULL and not is_repeated(a):
            direct = False
        elif k == 0 and n >= 2:
            variant = FIRST_SCALAR
        elif k == 1 and n == 2 and variant == ALL_VECTORS:
            variant = LAST_SCALAR
        else:
            direct = False
    if direct and variants[variant] != NULL:
        if layout.numel >= GRAIN:
            with nogil:
                run_loop(info.dloop[i], g.dtype_, variant, layout.numel, p, attrs)
        else:
            run_loop(info.dloop[i], g.dtype_, variant, layout.numel, p, attrs)
    else:
        run_strided(variants, n, info.rule_inputs[i], layout, g, saved, p, attrs)
    return out


cdef void run_strided(const Loop* variants, int n, const signed char* rule_inputs, Layout* layout, Tensor g, Saved** saved, char** p,
                      const double* attrs) noexcept:
    cdef Py_ssize_t strides[MAX_RULE_INPUTS][MAX_NDIM]
    cdef Operand operands[MAX_RULE_INPUTS + 1]
    cdef int k
    operands[0].data = p[0]
    operands[0].strides = strides_of(layout)
    operands[0].itemsize = itemsize_of(g.dtype_)
    for k in range(n):
        operands[k + 1].data = p[k + 1]
        operands[k + 1].strides = strides[k]
        operands[k + 1].itemsize = itemsize_of(g.dtype_)
        if rule_inputs[k] < 0:
            broadcast_strides(g.layout, layout, strides[k])
        elif saved[k].storage == NULL:
            operands[k + 1].strides = NULL
        else:
            broadcast_strides(saved[k].layout, layout, strides[k])
            operands[k + 1].itemsize = itemsize_of(saved[k].dtype)
    if layout.numel >= GRAIN:
        with nogil:
            K.elementwise(variants, n, layout.ndim, layout.dims, operands, attrs)
    else:
        K.elementwise(variants, n, layout.ndim, layout.dims, operands, attrs)


# ---- rules as tensor code

# What a parameter of a rule is: one of these, plus a number (ops/calling.py).
cdef enum:
    OF_SAVED = 0
    OF_ATTRIBUTES = 16
    OF_EXTRA = 32
    OF_SHAPES = 48
    OF_GRADIENTS = 64         # the first; all, zeros where there is none; the outputs; all, None where there is none

cdef dict plans = {}          # MAX_RULE_INPUTS * opcode + number of the input -> plan_for


cdef object take(PyObject* o):
    result = <object> o
    Py_DECREF(result)
    return result


cdef int rule_backward(Node node, PyObject** grads, bint create_graph, PyObject** result) except -1:
    """Call the Python rules; with create_graph their operations are recorded."""
    cdef int i, rule
    cdef tuple plan
    g = <object> grads[0] if grads[0] != NULL else None
    if node.reduction != NO_REDUCTION:
        if node.reduction == MEAN_REDUCTION:
            g = g / loss_count(node)
        full = layout_broadcast(node.edges[0].layout, node.edges[1].layout)
        g = FUNCTIONS["expand"](g, shape_tuple(full))
        layout_decref(full)
    for i in range(node.n_edges):
        if node.edges[i].target == NULL:
            continue
        rule = MAX_RULE_INPUTS * node.opcode + (i if i < N_INPUTS[node.opcode] else N_INPUTS[node.opcode] - 1)
        plan = plans.get(rule)
        if plan is None:
            plan = plans[rule] = plan_for(ROWS[node.opcode], rule % MAX_RULE_INPUTS, FUNCTIONS)
        if not plan:
            continue
        value = call_rule(node, plan, grads, g, create_graph)
        if isinstance(value, (tuple, list)):
            return give_all(node, value, result)
        if not isinstance(value, Tensor):            # a constant
            value = FUNCTIONS["full_like"](g, value)
        if plan[1]:
            bad = FUNCTIONS["logical_and"](FUNCTIONS["isnan"](value), g == 0)
            if recording() or bad.any():         # a captured step may not look at values
                value = FUNCTIONS["where"](bad, 0, value)
        value = fit_recorded(value, node, i)
        Py_INCREF(value)
        result[i] = <PyObject*> value
    return 0


cdef int give_all(Node node, object values, PyObject** result) except -1:
    cdef int i
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            value = fit_recorded(values[i], node, i)
            Py_INCREF(value)
            result[i] = <PyObject*> value
    return 0


cdef object fit_recorded(Tensor value, Node node, int i):
    """As `fit`, by operations that can be differentiated again."""
    if not same_shape(value.layout, node.edges[i].layout):
        value = FUNCTIONS["sum_to"](value, shape_tuple(node.edges[i].layout))
    if value.dtype_ != node.edges[i].dtype:
        value = FUNCTIONS["convert"](value, node.edges[i].dtype)
    return value


cdef object call_rule(Node node, tuple plan, PyObject** grads, object g, bint create_graph):
    cdef const unsigned char* parameters = <bytes> plan[2]
    cdef Py_ssize_t i, n = len(<bytes> plan[2])
    cdef tuple args = PyTuple_New(n)
    cdef int kind, k
    for i in range(n):
        kind, k = parameters[i] & 240, parameters[i] & 15
        if kind == OF_SAVED:
            value = take(unpack(node, k, create_graph))
        elif kind == OF_ATTRIBUTES:
            value = attributes_of(node)[k]
        elif kind == OF_SHAPES:
            value = shape_tuple(node.edges[k].layout)
        elif kind == OF_EXTRA:
            if node.extra == NULL:
                saved_or_raise(node, 31)
            value = (<object> node.extra)[k]
        elif k == 0:
            value = g
        elif k == 1:
            value = all_grads(node, grads)
        elif k == 2:
            value = outputs_of(node, create_graph)
        else:
            value = [<object> grads[k] if grads[k] != NULL else None for k in range(node.n_outputs)]
        Py_INCREF(value)
        PyTuple_SET_ITEM(args, i, value)
    return plan[0](*args)


cdef list outputs_of(Node node, bint with_history):
    """The outputs of a node that keeps them all, with their versions, in `extra`."""
    cdef list outputs = []
    cdef PyObject* out
    cdef Tensor y
    cdef int k
    if node.released or node.extra == NULL:
        saved_or_raise(node, 31)
    for k in range(node.n_outputs):
        y = (<object> node.extra)[k]
        if y.storage.version != (<object> node.extra)[node.n_outputs + k] and not recorder.ignores_versions:
            raise worded(RuntimeError, "an output of {} that its gradient needs was changed in place afterwards; use an out-of-place "
                                       "operation, or clone() the value before changing it", node_description(node))
        layout_incref(y.layout)
        out = tensor_alias(y, y.layout, y.data)
        if with_history:
            Py_INCREF(node)
            set_history(out, <PyObject*> node, k)
        outputs.append(take(out))
    return outputs


cdef list all_grads(Node node, PyObject** grads):
    """The gradients of all outputs; zeros for outputs that were not used (their layouts are the last attribute)."""
    cdef int k
    shapes = FUNCTIONS["output_shapes"](attributes_of(node), shape_tuple(node.edges[0].layout))
    return [<object> grads[k] if grads[k] != NULL else FUNCTIONS["zeros"](shapes[k], node.edges[0].dtype)
            for k in range(node.n_outputs)]


# ---- for the C forms of rules that leave the odd case to tensor code

def rule_gradients(Node node not None, g):
    """The gradients of all inputs by the rules, as tensor code; None where none is needed."""
    cdef PyObject** result = <PyObject**> PyMem_Malloc(node.n_edges * sizeof(PyObject*))
    cdef PyObject* grads[1]
    cdef int i
    if result == NULL:
        raise MemoryError("out of memory during backward")
    for i in range(node.n_edges):
        result[i] = NULL
    grads[0] = <PyObject*> g
    try:
        rule_backward(node, grads, False, result)
        return [<object> result[i] if result[i] != NULL else None for i in range(node.n_edges)]
    finally:
        for i in range(node.n_edges):
            Py_XDECREF(result[i])
        PyMem_Free(result)


def rule_gradient(Node node not None, g):
    """As rule_gradients, for a single input."""
    return rule_gradients(node, g)[0]


def saved_value(Node node not None, int i):
    """The saved value of input i, as a tensor without history."""
    return take(unpack(node, i, False))
