# autograd.Function, and custom_op: operations with a gradient that the user wrote.
#
# Relies on node, record, gradients and hooks. `autograd` and the package show its names; nothing else relies on it.
#
# A Function is one node of the row `custom`, whose attribute is the context and whose `extra` holds what was saved. Neither may refer to
# the outputs, or every call would be a reference cycle: a saved tensor is kept as memory and a place in the graph (SavedTensor), and
# custom_op hands out other tensors than those its backward sees.
#
# Above 500 lines because both are one kind of node.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XINCREF

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.array.layout cimport layout_incref, same_layout, same_shape, shape_tuple
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.hooks cimport given_gradient, let_collector_see
from autograd_cy.engine.modes cimport grad_enabled, swap_grad_mode
from autograd_cy.engine.node cimport CUSTOM, Edge, Node, Owned, node_description, node_new, node_set_outputs, remember_line
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport broadcasts_to
from autograd_cy.engine.record cimport (
    link_through_conversion, refuse_inplace, rewrite_history_as, saved_or_raise, set_base, set_edge, set_history, wants_grad,
)
from autograd_cy.engine.tensor cimport CUSTOM_VIEW, Tensor, graph_make_cyclic, tensor_alias
from autograd_cy.kernels.table cimport recorder

from autograd_cy.array.errors import worded

import functools
import inspect

from autograd_cy.engine.closures import made_inside, tensors_in
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.hooks import packed_value, unpacked_value


cdef Tensor alias_of(Tensor t):
    """Another tensor on the same memory, without history."""
    layout_incref(t.layout)
    return own(tensor_alias(t, t.layout, t.data))


cdef int connect(Tensor t, Node node, int k) except -1:
    Py_INCREF(node)
    set_history(<PyObject*> t, <PyObject*> node, k)
    return 0


# ---- saved values

cdef class SavedTensor:
    """A saved value: a tensor on its memory without history, its version, and where it hangs in the graph."""

    cdef Tensor value         # None where saved_tensors_hooks made something else of it:
    cdef object packed
    cdef unsigned int version
    cdef int output           # it is this output of the function itself; -1: none
    cdef int output_nr
    cdef object target        # what made it, a Node, or the leaf itself; None: nothing to differentiate


cdef SavedTensor save(Tensor t, int output):
    cdef SavedTensor s = SavedTensor()
    s.output, s.output_nr, s.version = output, t.output_nr, t.storage.version
    if output < 0 and wants_grad(t):
        s.target = <object> t.node if t.node != NULL else t
    s.value = alias_of(t)
    s.packed = packed_value(s.value)
    if s.packed is not None:
        s.value = None
    return s


cdef Tensor restored(SavedTensor s, Node node):
    """The saved tensor, with its history."""
    cdef Tensor t
    cdef Edge edge
    if s.packed is not None:
        t = alias_of(unpacked_value(s.packed, node_description(node)))
    else:
        t = s.value
        if t.storage.version != s.version and not recorder.ignores_versions:
            raise worded(RuntimeError, "a tensor that {} saved for its backward was changed in place afterwards (version {}, saved at "
                                       "version {}); use an out-of-place operation, or save a clone()",
                                       node_description(node), t.storage.version, s.version)
        if isinstance(s.target, Tensor) and (<Tensor> s.target).data == t.data and same_layout((<Tensor> s.target).layout, t.layout):
            return s.target
        t = alias_of(t)
    if s.output >= 0:
        if t.dtype_ <= FLOAT64:
            connect(t, node, s.output)
    elif isinstance(s.target, Node):
        connect(t, s.target, s.output_nr)
    elif s.target is not None:
        edge.target, edge.layout, edge.output_nr, edge.dtype = <PyObject*> s.target, t.layout, 0, t.dtype_
        link_through_conversion(<PyObject*> t, &edge)
    return t


# ---- the context

@cython.binding(False)                    # methods check the type of self only without it
cdef class FunctionCtx(Owned):
    """What forward leaves for backward: the `ctx` of an autograd.Function. It takes any attributes.

    needs_input_grad: a bool for each argument of apply. saved_tensors: what save_for_backward was given.
    """

    cdef dict __dict__
    cdef readonly str name            # of the class
    cdef readonly tuple needs_input_grad
    cdef object function              # the class; None: a custom_op, whose backward is among the saved values
    cdef tuple to_save
    cdef tuple dirty, constant        # tensors that mark_dirty and mark_non_differentiable were given
    cdef tuple edge_of                # for each argument its edge, -1 if it is no tensor
    cdef list outputs                 # for each output (shape, dtype), None if it is no tensor
    cdef list linked                  # of a custom_op: (output number, tensor) of outputs that backward sees; -1: made on the way
    cdef bint materialize
    cdef bint open                    # forward is running

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward, which has them as ctx.saved_tensors. Inputs, outputs and others; call it once."""
        self.check_open("save_for_backward")
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise worded(TypeError, "save_for_backward: tensors or None are saved, got {}; keep other values as attributes of ctx",
                                        type(t).__name__)
        self.to_save = tensors

    def mark_dirty(self, *tensors):
        """Say which inputs forward changed in place. They must be among its results."""
        self.check_open("mark_dirty")
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Say which results have no gradient, such as indices; they will not require gradients."""
        self.check_open("mark_non_differentiable")
        self.constant = tensors

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (the default) or None as the gradient of a result that was not used."""
        self.check_open("set_materialize_grads")
        self.materialize = bool(value)

    @property
    def saved_tensors(self):
        """The tensors given to save_for_backward. RuntimeError where one was changed in place, or backward gave them back."""
        cdef Node node
        if self.open:
            return self.to_save or ()
        if self.node == NULL:
            raise worded(RuntimeError, "{}: saved_tensors are gone, as the graph that the call recorded is, if it recorded one", self.name)
        node = <Node> self.node
        if node.released:
            saved_or_raise(node, 31)
        if node.extra == NULL or self.function is None:
            return ()
        return tuple([None if s is None else restored(s, node) for s in <tuple> node.extra])

    cdef int check_open(self, str what) except -1:
        if not self.open:
            raise worded(RuntimeError, "{}: ctx.{} may be called in forward and setup_context only", self.name, what)
        return 0


cdef bint among(object t, tuple tensors):
    for each in tensors or ():
        if each is t:
            return True
    return False


cdef FunctionCtx context(str name, object function, tuple args):
    cdef FunctionCtx ctx = FunctionCtx.__new__(FunctionCtx)
    ctx.name, ctx.function, ctx.materialize, ctx.open = name, function, True, True
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and wants_grad(<Tensor> a) for a in args])
    return ctx


cdef Node make_node(FunctionCtx ctx, tuple args, int n_outputs):
    """The node of a call: edges and context; no saved values yet."""
    cdef list tensors = [a for a in args if isinstance(a, Tensor)]
    cdef list edges = []
    cdef PyObject* o
    cdef Node node
    cdef int i
    for a in args:
        edges.append(len(edges) - edges.count(-1) if isinstance(a, Tensor) else -1)
    ctx.edge_of = tuple(edges)
    o = node_new(CUSTOM, <int> len(tensors), 0)
    node = own(o)
    attrs = (ctx,)
    Py_INCREF(attrs)
    node.attrs = <PyObject*> attrs
    ctx.node = o
    if n_outputs != 1:
        node_set_outputs(node, max(n_outputs, 1))
    for i in range(node.n_edges):
        set_edge(&node.edges[i], <Tensor> tensors[i])
    Py_INCREF(node)
    remember_line(node)                          # takes the reference away if it fails
    Py_DECREF(node)
    return node


cdef Tensor view_with_history(Tensor t, Node node, int k):
    """Another tensor for output k, on the memory of one that others see: the function returned an input, say."""
    cdef Tensor made = alias_of(t)
    set_base(<PyObject*> made, t)
    made.flags |= CUSTOM_VIEW
    connect(made, node, k)
    return made


cdef Tensor constant_of(Tensor t, bint others_see_it):
    return alias_of(t) if t.needs_grad or others_see_it else t


# ---- autograd.Function

cdef object call(object cls, tuple args):
    cdef FunctionCtx ctx = context(cls.__name__, cls, args)
    cdef bint recorded = True in ctx.needs_input_grad and grad_enabled()
    cdef bint before = swap_grad_mode(False)
    cdef Tensor t
    try:
        if cls.setup_context is Function.setup_context:
            result = cls.forward(ctx, *args)
        else:
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)
    finally:
        swap_grad_mode(before)
        ctx.open = False
    for dirty in ctx.dirty or ():
        if not isinstance(dirty, Tensor) or not among(dirty, args):
            raise worded(RuntimeError, "{}: mark_dirty: only inputs of the function can be marked", ctx.name)
        t = dirty
        t.storage.version += 1
    if recorded:
        single = not isinstance(result, (tuple, list))
        outs = record_call(ctx, args, [result] if single else list(result))
        result = outs[0] if single else type(result)(outs) if type(result) in (tuple, list) else tuple(outs)
    ctx.to_save = ctx.dirty = ctx.constant = None
    return result


cdef list record_call(FunctionCtx ctx, tuple args, list outs):
    cdef Node node = make_node(ctx, args, <int> len(outs))
    cdef list saved
    cdef list made = []
    cdef Tensor t
    cdef bint given
    cdef int k
    for dirty in ctx.dirty or ():
        if not among(dirty, tuple(outs)):
            raise worded(RuntimeError, "{}: an input that is marked dirty must be among the function's results", ctx.name)
    if ctx.to_save:
        saved = []
        for value in ctx.to_save:
            k = -1
            for i, out in enumerate(outs):
                if out is value and (not among(out, args) or among(out, ctx.dirty)):
                    k = i
            saved.append(None if value is None else save(value, k))
        extra = tuple(saved)
        Py_INCREF(extra)
        node.extra = <PyObject*> extra
    ctx.outputs = [(o.shape, (<Tensor> o).dtype_) if isinstance(o, Tensor) else None for o in outs]
    for k, out in enumerate(outs):
        if not isinstance(out, Tensor):
            made.append(out)
            continue
        t = out
        given = among(t, args) or among(t, tuple(made))
        if t.dtype_ > FLOAT64 or among(t, ctx.constant):
            made.append(t if among(t, ctx.dirty) else constant_of(t, given))
        elif among(t, ctx.dirty) and not among(t, tuple(made)):
            refuse_inplace(t, ctx.name)
            Py_INCREF(node)
            rewrite_history_as(t, <PyObject*> node, k)
            made.append(t)
        elif given or t.needs_grad:
            made.append(view_with_history(t, node, k))
        else:
            if t.base != NULL:
                t.flags |= CUSTOM_VIEW
                t.view_version = t.storage.version
            connect(t, node, k)
            made.append(t)
    watch_attributes(ctx, node)
    return made


cdef int watch_attributes(FunctionCtx ctx, Node node) except -1:
    """What the user keeps in ctx may lead back to the node."""
    for value in vars(ctx).values():
        if value is not None and not isinstance(value, (int, float, str, bytes, tuple)) or isinstance(value, tuple) and not plain(value):
            graph_make_cyclic(<PyObject*> node)
            let_collector_see(list(vars(ctx).values()), 4)
            return 0
    return 0


cdef bint plain(tuple values):
    for v in values:
        if v is not None and not isinstance(v, (int, float, str)):
            return False
    return True


cdef int function_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef FunctionCtx ctx = (<tuple> node.attrs)[0]
    cdef list given = []
    cdef tuple found
    cdef int k, n, n_args
    for k in range(node.n_outputs):
        if grads[k] != NULL:
            given.append(<object> grads[k])
        elif ctx.materialize and ctx.outputs[k] is not None:
            shape, n = ctx.outputs[k]
            given.append(FUNCTIONS["zeros"](shape, n))
        else:
            given.append(None)
    if ctx.function is None:
        answer = call_closure(ctx, node, given)
    else:
        answer = ctx.function.backward(ctx, *given)
    found = tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)
    if ctx.function is None:
        n_args, what = node.n_edges, "one for each tensor among its arguments"
    else:
        n_args, what = <int> len(ctx.edge_of), "one for each argument, None where there is none"
        while len(found) > n_args and found[len(found) - 1] is None:
            found = found[:len(found) - 1]
    if len(found) != n_args:
        raise worded(RuntimeError, "the backward of {} returned an incorrect number of gradients (expected {}, {}, got {})",
                                   node_description(node), n_args, what, len(found))
    for k, g in enumerate(found):
        n = k if ctx.function is None else ctx.edge_of[k]
        if g is not None:
            take_gradient(ctx, node, k, n, g, result)
    watch_attributes(ctx, node)
    return 0


cdef int take_gradient(FunctionCtx ctx, Node node, int k, int edge, object g, PyObject** result) except -1:
    """Check the gradient for argument k, and put it where it belongs."""
    cdef tuple wanted
    if edge < 0:
        raise worded(RuntimeError, "the backward of {} returned a gradient for argument {}, which is no tensor; it must be None",
                                   node_description(node), k)
    if not isinstance(g, Tensor):
        raise worded(TypeError, "the backward of {} must return tensors or None, but argument {} got {}",
                                node_description(node), k, type(g).__name__)
    if node.edges[edge].target == NULL:
        return 0
    wanted = shape_tuple(node.edges[edge].layout)
    if not same_shape((<Tensor> g).layout, node.edges[edge].layout):
        if not broadcasts_to(node.edges[edge].layout, (<Tensor> g).layout):
            raise worded(RuntimeError, "the backward of {} returned a gradient of shape {.shape} for argument {}, which has shape {}",
                                       node_description(node), g, k, wanted)
        g = FUNCTIONS["sum_to"](g, wanted)
    if (<Tensor> g).dtype_ != node.edges[edge].dtype:
        g = FUNCTIONS["convert"](g, node.edges[edge].dtype)
    result[edge] = given_gradient(g)
    return 0


backwards[CUSTOM] = function_backward


class Function:
    """An operation with a gradient of the user's own: subclass it, with forward and backward as static methods, and call `apply`.

    forward(ctx, *args) returns a tensor, or a tuple of results. It runs unrecorded, on any code, and leaves in ctx what backward
    needs: tensors through ctx.save_for_backward(...), other values as attributes. Instead, forward(*args) may go with
    setup_context(ctx, inputs, output). backward(ctx, *gradients) gets a gradient for each result, and returns one for each argument
    of forward: a tensor of the argument's shape, or None. It is recorded where `create_graph` asks for it, so that one made of
    tensor operations can be differentiated again; mark others as `once_differentiable`.

    >>> class Cube(ag.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> y = Cube.apply(x)

    An input that forward returns as it is comes out as a view with its own history. Errors (a wrong number of gradients, or shape) name
    the class and the line that called `apply`.
    """

    def __init__(self, *args, **kwargs):
        raise worded(RuntimeError, "{0}: Functions are not instantiated; call {0}.apply(...)", type(self).__name__)

    @staticmethod
    def forward(*args, **kwargs):
        """The operation: forward(ctx, *args), or forward(*args) beside a setup_context."""
        raise NotImplementedError("an autograd.Function needs a static method forward")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Leave in ctx what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of the arguments, from those of the results."""
        raise NotImplementedError("an autograd.Function needs a static method backward to be differentiated")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run the operation and record it."""
        if kwargs:
            first = (None,) if cls.setup_context is Function.setup_context else ()
            bound = inspect.signature(cls.forward).bind(*first, *args, **kwargs)
            if bound.kwargs:
                raise worded(TypeError, "{}.apply: keyword-only arguments of forward are not supported", cls.__name__)
            args = bound.args[len(first):]
        return call(cls, args)


class _OnceDifferentiated(Function):
    """The history of gradients that can't be differentiated again."""

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Refuses."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn):
    """A backward that can't be differentiated again: it runs unrecorded, and a second derivative through it is an error.

    >>> @staticmethod
    ... @once_differentiable
    ... def backward(ctx, g):
    ...     return ag.from_numpy(g.numpy() * 2)
    """
    @functools.wraps(fn)
    def wrapper(ctx, *args):
        before = swap_grad_mode(False)
        try:
            found = fn(ctx, *args)
        finally:
            swap_grad_mode(before)
        return refuse_second(ctx, found) if before else found
    return wrapper


class _OnTheWay(Function):
    """The history of what a custom_op computed on the way."""

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Refuses."""
        raise worded(RuntimeError, "a second derivative of the custom_op {}: its backward uses a tensor of shape {} that was "
                                   "computed on the way, so that its own derivative is not known; compute it within backward, from the "
                                   "arguments", ctx.name, grad_outputs[0].shape)


cdef Node refusing_node(Node node, str name, object function, list outs):
    """A node that leads where another does, and refuses to be differentiated."""
    cdef FunctionCtx ctx = context(name, function, ())
    cdef PyObject* o = node_new(CUSTOM, node.n_edges, 0)
    cdef Node made = own(o)
    cdef int k
    attrs = (ctx,)
    Py_INCREF(attrs)
    made.attrs = <PyObject*> attrs
    ctx.node, ctx.open, ctx.edge_of = o, False, tuple(range(node.n_edges))
    ctx.outputs = [(g.shape, (<Tensor> g).dtype_) if isinstance(g, Tensor) else None for g in outs]
    node_set_outputs(made, max(<int> len(outs), 1))
    for k in range(node.n_edges):
        made.edges[k] = node.edges[k]
        Py_XINCREF(made.edges[k].target)
        if made.edges[k].layout != NULL:
            layout_incref(made.edges[k].layout)
    return made


cdef object refuse_second(FunctionCtx ctx, object found):
    """The gradients, with a node as their history that refuses."""
    cdef list outs = list(found) if isinstance(found, (tuple, list)) else [found]
    cdef Node made = refusing_node(<Node> ctx.node, ctx.name + "OnceDifferentiated", _OnceDifferentiated, outs)
    cdef int k
    for k in range(<int> len(outs)):
        if isinstance(outs[k], Tensor) and (<Tensor> outs[k]).dtype_ <= FLOAT64:
            outs[k] = alias_of(outs[k])
            connect(outs[k], made, k)
    return tuple(outs) if isinstance(found, (tuple, list)) else outs[0]


# ---- custom_op

cdef Tensor inner_argument(Tensor t):
    """An argument as the function may keep it: what is done in place to the caller's tensor does not change this one's history."""
    cdef Tensor made
    if not wants_grad(t) or t.node == NULL:
        return t
    made = alias_of(t)
    Py_INCREF(<object> t.node)
    set_history(<PyObject*> made, t.node, t.output_nr)
    return made


cdef object call_closure(FunctionCtx ctx, Node node, list given):
    """Run the backward of a custom_op. In a recorded pass the outputs that it sees have the node as their history meanwhile."""
    cdef Tensor t
    cdef PyObject* o
    if node.extra == NULL:
        saved_or_raise(node, 31)
    backward, versions = <tuple> node.extra
    for held, version in versions:
        t = held
        if t.storage.version != version and not recorder.ignores_versions:
            raise worded(RuntimeError, "a tensor of shape {.shape} that {} needs for its backward was changed in place afterwards "
                                       "(version {}, was {}); use an out-of-place operation, or a clone()",
                                       t, node_description(node), t.storage.version, version)
    linked = []
    if grad_enabled():
        linked = [(k, held) for k, held in ctx.linked if (<Tensor> held).node == NULL]      # else a pass around this one did it
    for k, held in linked:
        if k >= 0:
            connect(held, node, k)
        else:
            connect(held, refusing_node(node, ctx.name, _OnTheWay, [held]), 0)
    try:
        return backward(*given)
    finally:
        for _, held in linked:
            t = held
            o = t.node
            t.node = NULL
            t.needs_grad = 0
            Py_DECREF(<object> o)


cdef object call_custom(object function, str name, tuple args, dict kwargs):
    cdef FunctionCtx ctx
    cdef Node node
    cdef Tensor t
    cdef Tensor made
    cdef list outs
    cdef int k
    cdef bint before
    if kwargs:
        bound = inspect.signature(function).bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs
        for key, value in kwargs.items():
            if isinstance(value, Tensor):
                raise worded(TypeError, "{}: the tensor {!r} is a keyword-only argument; tensors must be positional parameters", name, key)
    args = tuple([inner_argument(a) if isinstance(a, Tensor) else a for a in args])
    ctx = context(name, None, args)
    before = swap_grad_mode(False)
    try:
        answer = function(*args, **kwargs)
    finally:
        swap_grad_mode(before)
        ctx.open = False
    if not isinstance(answer, tuple) or len(answer) != 2 or not callable(answer[1]):
        raise worded(TypeError, "custom_op: {} must return (output, backward), where backward is a function from the gradient of the "
                                "output to those of the tensors among the arguments", name)
    result, backward = answer
    single = not isinstance(result, (tuple, list))
    outs = [result] if single else list(result)
    for out in outs:
        if not isinstance(out, Tensor):
            raise worded(TypeError, "custom_op: the output of {} must be a tensor or a tuple of tensors, got {}", name, type(out).__name__)
    if not (True in ctx.needs_input_grad and grad_enabled()):
        return result
    results = tuple(outs)
    node = make_node(ctx, args, <int> len(outs))
    held = tensors_in(backward)
    versions = tuple([(t, (<Tensor> t).storage.version) for t in held.values()])
    extra = (backward, versions)
    Py_INCREF(extra)
    node.extra = <PyObject*> extra
    ctx.outputs = [(o.shape, (<Tensor> o).dtype_) for o in outs]
    ctx.linked = []
    for k in range(<int> len(outs)):
        t = outs[k]
        if t.dtype_ > FLOAT64:
            continue
        if t.needs_grad or t.base != NULL or among(t, args):
            outs[k] = view_with_history(t, node, k)
        else:
            made = alias_of(t)
            connect(made, node, k)
            if id(t) in held:
                ctx.linked.append((k, t))
            outs[k] = made
    for t in made_inside(function, backward, held).values():
        if t.dtype_ <= FLOAT64 and not t.needs_grad and not among(t, args) and not among(t, results):
            ctx.linked.append((-1, t))
    return outs[0] if single else tuple(outs)


def custom_op(function):
    """Make an operation of a function that returns its output together with the function's gradient: `(output, backward)`.

    backward(g) gets the gradient of the output (of several outputs: one argument for each) and returns the gradient of each tensor
    among the arguments, in order: a tensor of its shape or None; a single one need not be in a tuple. The function itself runs
    unrecorded, so it may use NumPy, loops, anything. backward simply uses the variables of the function around it:

    >>> @ag.custom_op
    ... def cube(x, scale=1.0):
    ...     y = scale * x ** 3
    ...     def backward(g):
    ...         return g * 3 * scale * x ** 2
    ...     return y, backward
    >>> cube(x, 2.0).sum().backward()

    If backward is made of tensor operations it can be differentiated again: the arguments, and the output, have their place in the
    graph there. A second derivative through a tensor that was computed on the way, neither argument nor output, is an error. Tensors
    that it uses must be variables of the function, or in lists, tuples and dicts of these; that one of them was changed in place before
    backward runs is an error. They are let go once backward has run (unless retain_graph). `gradcheck` checks both.
    """
    if not callable(function):
        raise worded(TypeError, "custom_op: expected a function, got {}", type(function).__name__)
    name = "".join([part[:1].upper() + part[1:] for part in getattr(function, "__name__", "custom").strip("<>").split("_")])

    @functools.wraps(function)
    def operation(*args, **kwargs):
        return call_custom(function, name, args, kwargs)
    return operation
