# Hooks of tensors and nodes; saved_tensors_hooks, which puts saved values elsewhere; detect_anomaly.
#
# Relies on node, tensor and handles. The engines (passes, recursion) call the functions of hooks.pxd where a node has Watchers or a
# leaf is HOOKED, so that the others pay nothing: both are fields that they look at anyway. backward runs what leaves have.
#
# Hooks of an inner tensor belong to the node that made it, and so stay with the old value when the tensor is changed in place. A leaf
# has its own in its __dict__, which the cyclic collector sees.
#
# Above 500 lines because all that a node may have besides its rule is kept, and run, in one place.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

from autograd_cy.array.layout cimport (
    DENSE, Layout, layout_contiguous_like, layout_decref, layout_incref, same_layout, same_shape, shape_tuple,
)
from autograd_cy.array.storage cimport Storage, storage_decref, storage_incref
from autograd_cy.engine.modes cimport grad_enabled, notice
from autograd_cy.engine.node cimport (
    RECORD_NOTICE, RECORD_SAVED, RECORD_TRACES, SAVED_PACKED, SAVED_TENSOR, Node, Saved, Watchers, at_record, node_description, watchers_of,
)
from autograd_cy.engine.object cimport ag_set_in_type, ag_track, own
from autograd_cy.engine.operands cimport copy_of
from autograd_cy.engine.record cimport wants_grad
from autograd_cy.engine.tensor cimport HOOKED, TRACKED, Tensor, graph_make_cyclic, tensor_alias, tensor_wrap

from autograd_cy.array.errors import worded

from functools import partial
from _thread import get_ident                 # threading would take 0.6 ms of the import
from types import CellType, FunctionType, MethodType

from autograd_cy.engine.handles import Hooks, add_hook, describe
from autograd_cy.engine.modes import set_observer

registered = {"on leaves": 0}         # how many hooks leaves ever got: a captured step that this changes for is captured again
cdef str ON_GRADIENT = "_backward_hooks"
cdef str ON_ACCUMULATED = "_post_accumulate_grad_hooks"


# ---- registering

cdef int check_hook(object hook, str caller) except -1:
    if not callable(hook):
        raise worded(TypeError, "{}: a hook must be callable, got {}", caller, type(hook).__name__)
    return 0


cdef bint may_hold_tensors(object hook, int depth):
    """Whether a reference cycle could lead through a function: not if all that it holds are numbers, strings, and functions like it."""
    if hook is None or isinstance(hook, (int, float, str, bytes)):
        return False
    if isinstance(hook, Tensor):
        return True
    if isinstance(hook, FunctionType) and depth:
        parts = [*(hook.__closure__ or ()), *(hook.__defaults__ or ()), *(hook.__kwdefaults__ or {}).values(), *vars(hook).values()]
        for part in parts:
            if isinstance(part, CellType):
                try:
                    part = part.cell_contents
                except ValueError:
                    part = None
                if part is None:                 # assigned later, perhaps
                    return True
            if may_hold_tensors(part, depth - 1):
                return True
        return False
    return type(hook).__name__ not in ("builtin_function_or_method", "type") or isinstance(getattr(hook, "__self__", None), Tensor)


cdef int let_collector_see(object held, int depth) except -1:
    """Every tensor that a function leads to may lead back to it: through closures, bound objects, attributes and containers."""
    if isinstance(held, Tensor):
        graph_make_cyclic(<PyObject*> held)
    elif depth == 0 or held is None or isinstance(held, (int, float, str, bytes, type)):
        return 0
    elif isinstance(held, FunctionType):
        let_collector_see([*(held.__closure__ or ()), *(held.__defaults__ or ()), *vars(held).values()], depth)
    elif isinstance(held, CellType):
        try:
            held = held.cell_contents
        except ValueError:
            return 0
        let_collector_see(held, depth)
    elif isinstance(held, MethodType):
        let_collector_see([held.__self__, held.__func__], depth)
    elif isinstance(held, partial):
        let_collector_see([held.func, *held.args, *held.keywords.values()], depth)
    elif isinstance(held, dict):
        for item in list((<dict> held).values()):
            let_collector_see(item, depth - 1)
    elif isinstance(held, (list, tuple, set)):
        for item in list(held):
            let_collector_see(item, depth - 1)
    elif hasattr(held, "__dict__"):
        let_collector_see(list(vars(held).values()), depth - 1)
    return 0


cdef object add_to_node(Node node, object hooks, object hook):
    if may_hold_tensors(hook, 4):
        graph_make_cyclic(<PyObject*> node)
        let_collector_see(hook, 4)
    return add_hook(hooks, hook)


cdef object add_to_leaf(Tensor leaf, str name, object hook):
    cdef dict attributes
    if leaf.attributes == NULL:
        attributes = {}
        Py_INCREF(attributes)
        leaf.attributes = <PyObject*> attributes
    attributes = <dict> leaf.attributes
    hooks = attributes.get(name)
    if not isinstance(hooks, Hooks):
        hooks = attributes[name] = Hooks()
    if may_hold_tensors(hook, 4):
        graph_make_cyclic(<PyObject*> leaf)
        let_collector_see(hook, 4)
    else:                                        # what is computed from the leaf need not be looked at for its sake
        leaf.flags |= TRACKED
        ag_track(<void*> leaf)
    leaf.flags |= HOOKED
    switches.leaf_hooks += 1
    registered["on leaves"] += 1
    return add_hook(hooks, hook)


def register_hook(Tensor self not None, hook):
    """Call hook(gradient) whenever this tensor's gradient has been computed; what it returns, if not None, takes the gradient's place.

    The hook sees the whole gradient, before it goes on to what made the tensor, into `grad`, or out of `autograd.grad`. Hooks run in the
    order of their registration, each with what the one before returned. It must not change its argument in place. A replacement must be
    a tensor of the gradient's shape and dtype. The hook stays with the value that the tensor has now: in-place changes to the tensor
    come after it. An exception in it ends the pass; no `grad` has changed then.

    Returns a handle: handle.remove() takes the hook away, as does the end of `with x.register_hook(hook):`.
    Raises RuntimeError where the tensor requires no gradient.
    """
    cdef Watchers w
    check_hook(hook, "register_hook")
    if not wants_grad(self):
        raise RuntimeError("register_hook: the tensor does not require gradients, so that there is none to call a hook with")
    if self.node == NULL:
        return add_to_leaf(self, ON_GRADIENT, hook)
    w = watchers_of(<Node> self.node)
    if w.hooks is None:
        w.hooks = {}
    hooks = w.hooks.get(self.output_nr)
    if hooks is None:
        hooks = w.hooks[self.output_nr] = Hooks()
    return add_to_node(<Node> self.node, hooks, hook)


def register_post_accumulate_grad_hook(Tensor self not None, hook):
    """Call hook(tensor) after a backward pass has added to this leaf's `grad`: to step an optimizer there and then, for example.

    All leaves have their gradients by then, and hooks run in the order in which the pass reached the leaves. Returns a handle with
    remove(). `autograd.grad` does not touch `grad`, and calls no such hook. Raises RuntimeError for tensors that are no leaves, or
    require no gradient.
    """
    check_hook(hook, "register_post_accumulate_grad_hook")
    if not wants_grad(self):
        raise RuntimeError("register_post_accumulate_grad_hook: the tensor does not require gradients")
    if self.node != NULL:
        raise RuntimeError("register_post_accumulate_grad_hook: only leaves accumulate gradients, and an operation made this tensor; "
                           "use register_hook")
    return add_to_leaf(self, ON_ACCUMULATED, hook)


def hooks_of(Tensor self not None):
    """The hooks that a leaf has: a list of dicts that are not empty."""
    if not self.flags & HOOKED or self.attributes == NULL:
        return []
    return [hooks for hooks in ((<dict> self.attributes).get(ON_GRADIENT), (<dict> self.attributes).get(ON_ACCUMULATED)) if hooks]


def node_register_hook(Node self not None, hook):
    """Call hook(grad_inputs, grad_outputs) after this operation's gradient rule ran, with tuples of gradients (None where there is none).

    A tuple that it returns takes the place of grad_inputs, one entry for each of `next_functions`. Returns a handle with remove().
    """
    cdef Watchers w = watchers_of(self)
    check_hook(hook, "register_hook")
    if w.after is None:
        w.after = Hooks()
    return add_to_node(self, w.after, hook)


def node_register_prehook(Node self not None, hook):
    """Call hook(grad_outputs) before this operation's gradient rule runs, with a tuple of the gradients of its outputs.

    A tuple that it returns takes their place. Hooks of the tensors themselves come first. Returns a handle with remove().
    """
    cdef Watchers w = watchers_of(self)
    check_hook(hook, "register_prehook")
    if w.before is None:
        w.before = Hooks()
    return add_to_node(self, w.before, hook)


def node_metadata(Node self not None):
    """A dict for whatever the user wants to keep with the node."""
    cdef Watchers w = watchers_of(self)
    if w.notes is None:
        w.notes = {}
        graph_make_cyclic(<PyObject*> self)
    return w.notes


ag_set_in_type(Node, "register_hook", node_register_hook)
ag_set_in_type(Node, "register_prehook", node_register_prehook)
ag_set_in_type(Node, "metadata", property(node_metadata))


# ---- running them

cdef PyObject* given_gradient(Tensor g) except NULL:
    if g.needs_grad and not grad_enabled():
        layout_incref(g.layout)
        return tensor_alias(g, g.layout, g.data)
    Py_INCREF(g)
    return <PyObject*> g


cdef int put(PyObject** place, object new, int dtype, Layout* layout, object hook, str what) except -1:
    """Replace a gradient by what a hook returned."""
    cdef PyObject* old = place[0]
    if not isinstance(new, Tensor):
        raise worded(TypeError, "the hook {} must return {} or None, but returned {}", describe(hook), what, type(new).__name__)
    if not same_shape((<Tensor> new).layout, layout):
        raise worded(RuntimeError, "the hook {} has changed the shape of a gradient: from {} to {.shape}",
                                   describe(hook), shape_tuple(layout), new)
    if (<Tensor> new).dtype_ != dtype:
        raise worded(RuntimeError, "the hook {} has changed the dtype of a gradient to {.dtype.name}", describe(hook), new)
    place[0] = given_gradient(new)
    Py_XDECREF(old)
    return 0


cdef int run_all(object hooks, PyObject** g) except -1:
    for hook in list(hooks.values()):
        new = hook(<object> g[0])
        if new is not None:
            put(g, new, (<Tensor> g[0]).dtype_, (<Tensor> g[0]).layout, hook, "a tensor")
    return 0


cdef int run_output_hooks(Node node, int k, PyObject** g) except -1:
    cdef Watchers w = <Watchers> node.watchers
    if w.hooks is not None and g[0] != NULL:
        hooks = w.hooks.get(k)
        if hooks:
            run_all(hooks, g)
    return 0


cdef int run_leaf_hooks(Tensor leaf, PyObject** g) except -1:
    hooks = (<dict> leaf.attributes).get(ON_GRADIENT) if leaf.attributes != NULL else None
    if hooks:
        run_all(hooks, g)
    return 0


cdef int run_accumulated_hooks(Tensor leaf) except -1:
    hooks = (<dict> leaf.attributes).get(ON_ACCUMULATED) if leaf.attributes != NULL else None
    if hooks:
        for hook in list(hooks.values()):
            if hook(leaf) is not None:
                raise worded(RuntimeError, "the hook {} must return None: it runs when the gradient is in place already", describe(hook))
    return 0


cdef tuple gradients(PyObject** grads, int n):
    return tuple([<object> grads[k] if grads[k] != NULL else None for k in range(n)])


cdef tuple several(object found, int n, object hook, Node node):
    """What a hook of a node returned, one entry for each gradient."""
    if isinstance(found, Tensor) and n == 1:
        return (found,)
    if not isinstance(found, (tuple, list)) or len(found) != n:
        given = f"{len(found)} of them" if isinstance(found, (tuple, list)) else type(found).__name__
        raise worded(RuntimeError, "the hook {} must return None or a tuple of {} gradients for {}, but returned {}",
                                   describe(hook), n, node_description(node), given)
    return tuple(found)


cdef bint before_rule(Node node, PyObject** grads) except -1:
    cdef Watchers w = <Watchers> node.watchers
    cdef PyObject* old
    cdef int k
    if w.before:
        for hook in list(w.before.values()):
            found = hook(gradients(grads, node.n_outputs))
            if found is None:
                continue
            for k, new in enumerate(several(found, node.n_outputs, hook, node)):
                if new is None:
                    old = grads[k]
                    grads[k] = NULL
                    Py_XDECREF(old)
                elif grads[k] != NULL:
                    put(&grads[k], new, (<Tensor> grads[k]).dtype_, (<Tensor> grads[k]).layout, hook, "tensors")
                elif new is not None:
                    raise worded(RuntimeError, "the hook {} returned a gradient for output {} of {}, which had none",
                                               describe(hook), k, node_description(node))
    if w.packed is not None:
        unpack_saved(node, w)
    for k in range(node.n_outputs):
        if grads[k] != NULL:
            return True
    return False


cdef int after_rule(Node node, PyObject** grads, PyObject** result, bint retain_graph) except -1:
    cdef Watchers w
    cdef PyObject* old
    cdef int k
    if switches.anomaly:
        refuse_nan(node, result)
    if node.watchers == NULL:
        return 0
    w = <Watchers> node.watchers
    if w.after:
        for hook in list(w.after.values()):
            found = hook(gradients(result, node.n_edges), gradients(grads, node.n_outputs))
            if found is None:
                continue
            for k, new in enumerate(several(found, node.n_edges, hook, node)):
                if new is None:
                    old = result[k]
                    result[k] = NULL
                    Py_XDECREF(old)
                elif node.edges[k].target != NULL:
                    put(&result[k], new, node.edges[k].dtype, node.edges[k].layout, hook, "tensors")
    if w.packed is not None:
        drop_unpacked(node, w)
        if not retain_graph:
            w.packed = None
    return 0


# ---- saved values put elsewhere

cdef dict packers = {}        # thread -> list of (pack, unpack), the innermost last


cdef class Packed:
    """One saved value: what `pack` made of it."""

    cdef int number           # among the node's saved values
    cdef Layout* layout
    cdef object value, unpack
    cdef Storage* storage     # of the value if it is a tensor on the same memory: only then can its version be checked
    cdef unsigned int version
    cdef int dtype

    def __dealloc__(self):
        if self.layout != NULL:
            layout_decref(self.layout)
        if self.storage != NULL:
            storage_decref(self.storage)


cdef Packed packed_of(Tensor t, int number, object pack, object unpack):
    cdef Packed p = Packed()
    p.number, p.unpack, p.dtype = number, unpack, t.dtype_
    layout_incref(t.layout)
    p.layout = t.layout
    p.value = pack(t)
    if isinstance(p.value, Tensor) and (<Tensor> p.value).storage == t.storage:
        storage_incref(t.storage)
        p.storage, p.version = t.storage, t.storage.version
    return p


cdef Tensor unpacked(Packed p, str whose):
    found = p.unpack(p.value)
    if not isinstance(found, Tensor):
        raise worded(TypeError, "saved_tensors_hooks: unpack must return a tensor, but {} returned {}",
                                describe(p.unpack), type(found).__name__)
    if not same_shape((<Tensor> found).layout, p.layout) or (<Tensor> found).dtype_ != p.dtype:
        raise worded(RuntimeError, "saved_tensors_hooks: a tensor of shape {0} was packed for {1}, but {2} returned one of shape "
                                   "{3.shape} and dtype {3.dtype.name}", shape_tuple(p.layout), whose, describe(p.unpack), found)
    if p.storage != NULL and (<Tensor> found).storage == p.storage and p.storage.version != p.version:
        raise worded(RuntimeError, "a value that {} needs for its gradient was changed in place afterwards (version {}, saved at version "
                                   "{}); clone() it in pack", whose, p.storage.version, p.version)
    return found


cdef tuple hooks_of_this_thread():
    """(pack, unpack) that hold here, or None."""
    stack = packers.get(get_ident())
    return stack[len(stack) - 1] if stack else None


cdef int pack_saved(Node node) except -1:
    cdef tuple hooks = hooks_of_this_thread()
    cdef Watchers w
    cdef Saved* saved
    cdef int i
    if hooks is None:
        return 0
    for i in range(node.n_saved):
        saved = &node.saved[i]
        if saved.storage == NULL:
            continue
        storage_incref(saved.storage)
        layout_incref(saved.layout)
        t = own(tensor_wrap(saved.storage, saved.layout, saved.at.data, saved.dtype))
        packed = packed_of(t, i, hooks[0], hooks[1])
        w = watchers_of(node)
        if w.packed is None:
            w.packed = []
        w.packed.append(packed)
        drop_saved(saved)
    return 0


cdef void drop_saved(Saved* saved) noexcept:
    cdef Storage* storage = saved.storage
    cdef Layout* layout = saved.layout
    saved.storage, saved.layout, saved.at.data, saved.kind = NULL, NULL, NULL, SAVED_PACKED
    if storage != NULL:
        storage_decref(storage)
        layout_decref(layout)


cdef int unpack_saved(Node node, Watchers w) except -1:
    cdef Packed p
    cdef Saved* saved
    cdef Tensor t
    cdef Layout* layout
    cdef list packed = w.packed, found = [unpacked(p, node_description(node)) for p in packed]
    for p, t in zip(packed, found):
        if not same_layout(t.layout, p.layout) and not (t.layout.flags & DENSE and not p.layout.flags & DENSE):
            if p.layout.flags & DENSE:
                layout = p.layout
                layout_incref(layout)
            else:
                layout = layout_contiguous_like(p.layout)
            t = own(copy_of(t, layout))        # rules may rely on results lying as they were made
            layout_decref(layout)
        saved = &node.saved[p.number]
        drop_saved(saved)
        storage_incref(t.storage)
        layout_incref(t.layout)
        saved.storage, saved.layout, saved.at.data = t.storage, t.layout, t.data
        saved.version, saved.kind = t.storage.version, SAVED_TENSOR
    return 0


cdef void drop_unpacked(Node node, Watchers w) noexcept:
    cdef Packed p
    for p in w.packed:
        if p.number < node.n_saved:
            drop_saved(&node.saved[p.number])


class saved_tensors_hooks:
    """Within the block, values that operations save for their gradients go through `pack`, and through `unpack` when backward needs them.

    pack(tensor) is called when an operation is recorded, and may return anything: a file's name, a compressed copy. unpack gets
    what pack returned, and must return a tensor of the same shape and dtype, at each use. What pack returns is kept in place of the
    tensor. Values saved by autograd.Function go through them, too. Blocks nest (the innermost counts) and hold for their thread.

    >>> with ag.autograd.graph.saved_tensors_hooks(lambda x: x.numpy().copy(), ag.tensor):
    ...     y = x.exp().sum()
    """

    def __init__(self, pack_hook, unpack_hook):
        check_hook(pack_hook, "saved_tensors_hooks")
        check_hook(unpack_hook, "saved_tensors_hooks")
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self):
        packers.setdefault(get_ident(), []).append(self.hooks)
        at_record.mode |= RECORD_SAVED

    def __exit__(self, *exception):
        stack = packers[get_ident()]
        stack.pop()
        if not stack:
            del packers[get_ident()]
        if not packers:
            at_record.mode &= ~RECORD_SAVED


def packed_value(Tensor t not None):
    """(whether saved_tensors_hooks hold here, the value to keep in place of t)."""
    cdef tuple hooks = hooks_of_this_thread() if at_record.mode & RECORD_SAVED else None
    return None if hooks is None else packed_of(t, -1, hooks[0], hooks[1])


def unpacked_value(Packed p not None, str whose):
    """The tensor again."""
    return unpacked(p, whose)


# ---- anomalies

cdef bint looks_for_nan = True


cdef int refuse_nan(Node node, PyObject** result) except -1:
    cdef int k
    if not looks_for_nan:
        return 0
    for k in range(node.n_edges):
        if result[k] != NULL and (<object> result[k]).isnan().any():
            raise worded(RuntimeError, "Function '{}' returned nan values in its {}th output: the gradient of {}",
                                       node.name(), k, node_description(node))
    return 0


cdef int note_trace(Node node) except -1:
    cdef Watchers w = watchers_of(node)
    if w.notes is None:
        w.notes = {}
    from traceback import format_stack          # seldom needed, 1 ms to import

    w.notes["traceback_"] = format_stack()
    return 0


def trace_of(Node node not None):
    """The stack of the call that recorded the node, where detect_anomaly was on; else None."""
    cdef Watchers w
    if node.watchers == NULL:
        return None
    w = <Watchers> node.watchers
    return None if w.notes is None or "traceback_" not in w.notes else "".join(w.notes["traceback_"])


class set_detect_anomaly:
    """Look for NaN in every gradient, and let errors in backward show the stack of the forward call: at once as a call, or for a block.

    mode: on or off. check_nan: whether a NaN that an operation's gradient rule gives is an error that names the operation. Every
    operation and gradient costs microseconds more; for debugging.
    """

    def __init__(self, mode, check_nan=True):
        self.before = switch_anomaly(bool(mode), bool(check_nan))

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        mode, check_nan = self.before
        switch_anomaly(mode, check_nan)


class detect_anomaly(set_detect_anomaly):
    """set_detect_anomaly(True) for a block: `with ag.autograd.detect_anomaly():`."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan

    def __enter__(self):
        self.before = switch_anomaly(True, bool(self.check_nan))


cdef tuple switch_anomaly(bint mode, bint check_nan):
    """The state before."""
    global looks_for_nan
    before = (bool(switches.anomaly), bool(looks_for_nan))
    switches.anomaly, looks_for_nan = mode, check_nan
    if mode:
        at_record.mode |= RECORD_TRACES
    else:
        at_record.mode &= ~RECORD_TRACES
    return before


def is_anomaly_enabled():
    """Whether detect_anomaly is on."""
    return bool(switches.anomaly)


def is_anomaly_check_nan_enabled():
    """Whether detect_anomaly looks for NaN."""
    return bool(looks_for_nan)


def observe(observer):
    """As modes.set_observer; new nodes are shown, too."""
    set_observer(observer)
    at_record.mode = at_record.mode & ~RECORD_NOTICE | (0 if observer is None else RECORD_NOTICE)


cdef int look(Node node) except -1:
    try:
        if at_record.mode & RECORD_NOTICE:
            notice("record", node)
        if at_record.mode & RECORD_TRACES:
            note_trace(node)
        if at_record.mode & RECORD_SAVED:
            pack_saved(node)
    except BaseException:
        Py_DECREF(node)                          # nobody else will: recording it stops here
        raise
    return 0


at_record.look = look
