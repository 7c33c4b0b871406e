# The backward pass as users call it: Tensor.backward, autograd.backward, autograd.grad, and the choice of the engine.
#
# Relies on passes (state and iterative engine) and recursion. methods.py puts `backward` into Tensor.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from autograd_cy.array.dtype cimport FLOAT64
from autograd_cy.array.layout cimport same_shape
from autograd_cy.engine.modes cimport swap_grad_mode
from autograd_cy.engine.node cimport Node, node_description
from autograd_cy.engine.operands cimport number_tensor
from autograd_cy.engine.hooks cimport run_accumulated_hooks, run_leaf_hooks, switches
from autograd_cy.engine.passes cimport (
    Pass, accumulate, contribute, drop, find_needed, give_back, give_grad, pending_of, private_copy, run_iterative, take_pass,
)
from autograd_cy.engine.record cimport wants_grad
from autograd_cy.engine.recursion cimport run_recursive
from autograd_cy.engine.tensor cimport HOOKED, Tensor
from autograd_cy.kernels.table cimport recording

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.hooks import trace_of

cdef enum:
    ITERATIVE = 0
    RECURSIVE = 1

cdef int default_engine = ITERATIVE
ENGINES = ("iterative", "recursive")
cdef list ONES = [None, None]   # the gradient of a loss, by dtype; a tensor that has another owner is never written to


cdef int run_pass(Pass run, list roots, list seeds, list inputs, int engine) except -1:
    """Everything but what becomes of the leaves' gradients, which stay pending in `run.leaves`."""
    cdef Tensor root
    if inputs is not None:
        find_needed(run, roots, inputs)
    if engine == RECURSIVE:
        run_recursive(run, roots, seeds)
    else:
        for root, seed in zip(roots, seeds):
            Py_INCREF(seed)
            contribute(run, root.node if root.node != NULL else <PyObject*> root, root.output_nr, <PyObject*> seed)
        run_iterative(run)
    return 0


cdef int explain(Pass run, object error) except -1:
    """Say where the forward operation was made, unless the message does."""
    if run.running != NULL:
        description = node_description(<Node> run.running)
        if description not in str(error):
            error.add_note(f"in the backward pass of {description}")
        trace = trace_of(<Node> run.running)
        if trace is not None:
            error.add_note("the forward call was:\n" + trace)
    return 0


cdef int finish(Pass run) except -1:
    """Give the leaves their gradients: into `captures` where asked for, else into grad. All hooks that may fail come before."""
    cdef PyObject* leaf
    cdef PyObject* total
    cdef PyObject** place
    cdef Py_ssize_t i
    cdef list accumulated = None
    if switches.leaf_hooks and not run.quiet:
        accumulated = call_leaf_hooks(run)
    if run.retained is not None:
        keep_retained(run)
    for i in range(run.n_leaves):
        leaf = run.leaves[i]
        place = &(<Tensor> leaf).pending_one if run.fast else pending_of(run, leaf)
        total = place[0]
        place[0] = NULL
        if total == NULL:
            continue
        if run.captures is None and not run.create_graph:
            give_grad(<Tensor> leaf, total)
        elif run.captures is None:
            accumulate(<Tensor> leaf, total, True)
        else:
            if (<size_t> leaf, 0) in run.captures:
                run.captures[(<size_t> leaf, 0)] = <object> total
            Py_DECREF(<object> total)
        if run.fast:
            (<Tensor> leaf).queued = 0
            run.leaves[i] = NULL
            Py_DECREF(<object> leaf)
    if run.fast:
        run.n_leaves = 0
    if accumulated is not None:
        for t in accumulated:
            run_accumulated_hooks(<Tensor> t)
    return 0


cdef list call_leaf_hooks(Pass run):
    """Let hooks see, and replace, what leaves are about to get. The leaves with hooks, None if no `grad` is about to change."""
    cdef PyObject* leaf
    cdef PyObject** place
    cdef Py_ssize_t i
    cdef list found = []
    drop(&run.running)                           # errors are not that operation's
    for i in range(run.n_leaves):
        leaf = run.leaves[i]
        if (<Tensor> leaf).flags & HOOKED:
            place = &(<Tensor> leaf).pending_one if run.fast else pending_of(run, leaf)
            if place[0] != NULL:
                run_leaf_hooks(<Tensor> leaf, place)
                found.append(<object> leaf)
    return found if found and run.captures is None else None


cdef int keep_retained(Pass run) except -1:
    """Put the gradients of inner tensors that keep them into grad."""
    cdef list retained = run.retained
    run.retained = None
    for tensor, g in retained:
        Py_INCREF(g)
        accumulate(<Tensor> tensor, <PyObject*> g, run.create_graph)
    return 0


cdef int run_from(Tensor root, object seed, bint retain_graph) except -1:
    """The usual pass: one root, the iterative engine, first derivatives, every leaf."""
    cdef Pass run = take_pass(retain_graph, False)
    cdef bint before = swap_grad_mode(False)
    try:
        Py_INCREF(seed)
        contribute(run, root.node if root.node != NULL else <PyObject*> root, root.output_nr, <PyObject*> seed)
        run_iterative(run)
        finish(run)
    except Exception as error:
        explain(run, error)
        raise
    finally:
        swap_grad_mode(before)
        give_back(run)
    return 0


cdef object ones_like(Tensor root):
    cdef PyObject* o
    if root.layout.ndim == 0 and root.dtype_ <= FLOAT64 and not recording():
        if ONES[root.dtype_] is None:
            o = number_tensor(1, root.dtype_)
            ONES[root.dtype_] = <object> o
            Py_DECREF(<object> o)
        return ONES[root.dtype_]
    if root.layout.ndim == 0:
        o = number_tensor(1, root.dtype_)
        result = <object> o
        Py_DECREF(result)
        return result
    return FUNCTIONS["ones"](root.shape, root.dtype_)


cdef object seed_for(object start, object gradient, str caller, int k):
    """The gradient to start from at a root: the given one, checked, or 1 for a single element."""
    cdef Tensor root
    cdef Tensor g
    if not isinstance(start, Tensor):
        raise worded(TypeError, "{}: expected a Tensor, got {}", caller, type(start).__name__)
    root = start
    if not wants_grad(root):
        raise worded(RuntimeError, "{}: tensor {} does not require gradients and has no grad_fn: no operation on a tensor that requires "
                                   "gradients led to it, or recording was off (no_grad)", caller, k)
    if gradient is None:
        if root.layout.numel != 1:
            raise worded(RuntimeError, "{}: a gradient can be created implicitly only for outputs of one element, this one has shape "
                                       "{.shape}; pass gradient=", caller, root)
        return ones_like(root)
    if not isinstance(gradient, Tensor):
        raise worded(TypeError, "{}: gradients must be tensors or None, got {}", caller, type(gradient).__name__)
    g = gradient
    if not same_shape(g.layout, root.layout):
        raise worded(RuntimeError, "{}: the gradient has shape {.shape}, but the output has shape {.shape}", caller, g, root)
    if g.dtype_ != root.dtype_:
        raise worded(RuntimeError, "{}: the gradient has dtype {.dtype.name}, but the output has dtype {.dtype.name}", caller, g, root)
    return g


cdef int engine_code(object engine) except -1:
    if engine is None:
        return default_engine
    if engine not in ENGINES:
        raise worded(ValueError, "unknown engine {!r}; the engines are {}", engine, ', '.join(ENGINES))
    return ENGINES.index(engine)


def set_engine(engine):
    """Choose the engine of backward passes that name none: "iterative" (the default) or "recursive"."""
    global default_engine
    default_engine = engine_code(engine)


def get_engine():
    """The name of the engine of backward passes that name none."""
    return ENGINES[default_engine]


cdef list tensors_of(object value, str caller, str what):
    """A tensor or a sequence of tensors, as a list."""
    cdef list found = [value] if isinstance(value, Tensor) else list(value)
    for t in found:
        if not isinstance(t, Tensor):
            raise worded(TypeError, "{}: {} must be tensors, got {}", caller, what, type(t).__name__)
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None, engine=None):
    """Accumulate the gradients of the sum of `tensors` into the `grad` of leaves.

    tensors: the outputs, one tensor or a sequence. grad_tensors: a gradient (or None, for one element) for each.
    retain_graph: keep saved values for another pass (default: create_graph). create_graph: record the pass, so that gradients
    can be differentiated again. inputs: accumulate into these tensors only, visiting only what leads to them.
    engine: "iterative" or "recursive" (default: as set by set_engine).

    Raises RuntimeError where an output needs a gradient and none is given, where saved values are gone or were changed in
    place, RecursionError where the graph is too deep for the recursive engine. No `grad` changes if the pass fails.
    """
    cdef list roots = tensors_of(tensors, "backward", "outputs")
    cdef list given
    if grad_tensors is None:
        given = [None] * len(roots)
    else:
        given = [grad_tensors] if isinstance(grad_tensors, Tensor) else list(grad_tensors)
    if len(given) != len(roots):
        raise worded(ValueError, "backward: {} outputs but {} gradients", len(roots), len(given))
    run_backward(roots, [seed_for(t, g, "backward", k) for k, (t, g) in enumerate(zip(roots, given))],
                 retain_graph, create_graph, inputs, engine)


cdef int run_backward(list roots, list seeds, object retain_graph, bint create_graph, object inputs, object engine) except -1:
    cdef Pass run
    cdef list chosen = None
    cdef list inner = []
    cdef bint before
    if inputs is not None:
        chosen = tensors_of(inputs, "backward", "inputs")
        if not chosen:
            raise ShapeError("backward: inputs is empty; leave it out to reach every leaf")
        for k, t in enumerate(chosen):
            if not wants_grad(<Tensor> t):
                raise worded(RuntimeError, "backward: input {} does not require gradients", k)
        inner = [t for t in chosen if (<Tensor> t).node != NULL]
    run = take_pass(create_graph if retain_graph is None else retain_graph, create_graph)
    before = swap_grad_mode(create_graph)
    try:
        if inner:
            run.captures = {key_of(t): None for t in chosen}
        run_pass(run, roots, seeds, chosen, engine_code(engine))
        finish(run)
        if inner:
            for key, t in {key_of(t): t for t in chosen}.items():
                value = run.captures[key]
                if value is not None:
                    Py_INCREF(value)
                    accumulate(<Tensor> t, <PyObject*> value, create_graph)
            for t in chosen:
                if (<Tensor> t).node == NULL and (<Tensor> t).flags & HOOKED and run.captures[key_of(t)] is not None:
                    run_accumulated_hooks(<Tensor> t)
    except Exception as error:
        explain(run, error)
        raise
    finally:
        swap_grad_mode(before)
        give_back(run)
    return 0


cdef tuple key_of(Tensor t):
    if t.node != NULL:
        return (<size_t> t.node, t.output_nr)
    return (<size_t> <PyObject*> t, 0)


cdef bint captures_again(list wanted, Py_ssize_t k):
    """Whether the tensor at k is asked for again later."""
    cdef Py_ssize_t i
    for i in range(k + 1, len(wanted)):
        if wanted[i] is wanted[k]:
            return True
    return False


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False,
         is_grads_batched=False, materialize_grads=False, engine=None, only_inputs=True):
    """The gradients of the sum of `outputs` with respect to `inputs`, as a tuple; no `grad` is touched.

    Arguments as of `backward`; only_inputs is PyTorch's old argument, which must be True. An input that the outputs do not
    depend on is an error, unless allow_unused (then None) or materialize_grads (then zeros).
    """
    if is_grads_batched:
        raise ValueError("grad: is_grads_batched is not supported; call grad once per gradient")
    if not only_inputs:
        raise ValueError("grad: only_inputs=False is not supported; call backward to fill the gradients of all leaves")
    return gradients_of(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, engine, False)


def inner_grad(outputs, inputs, grad_outputs, create_graph=False, materialize_grads=False):
    """As grad, for a part of a graph that is kept: hooks of leaves are left to the pass that takes the results on to the leaves."""
    return gradients_of(outputs, inputs, grad_outputs, True, create_graph, True, materialize_grads, None, True)


cdef tuple gradients_of(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, engine, bint quiet):
    cdef list roots = tensors_of(outputs, "grad", "outputs")
    cdef list wanted = tensors_of(inputs, "grad", "inputs")
    cdef list given
    cdef PyObject* copied
    cdef bint before
    if grad_outputs is None:
        given = [None] * len(roots)
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    if len(given) != len(roots):
        raise worded(ValueError, "grad: {} outputs but {} gradients", len(roots), len(given))
    seeds = [seed_for(t, g, "grad", k) for k, (t, g) in enumerate(zip(roots, given))]
    if not wanted:
        raise ShapeError("grad: inputs is empty")
    for k, t in enumerate(wanted):
        if not wants_grad(<Tensor> t):
            raise worded(RuntimeError, "grad: input {} does not require gradients", k)
    cdef Pass run = take_pass(create_graph if retain_graph is None else retain_graph, create_graph)
    before = swap_grad_mode(create_graph)
    run.quiet = quiet
    try:
        run.captures = captures = {key_of(t): None for t in wanted}
        run_pass(run, roots, seeds, wanted, engine_code(engine))
        finish(run)
    except Exception as error:
        explain(run, error)
        raise
    finally:
        swap_grad_mode(before)
        give_back(run)
    del seeds, given
    results = []
    before = swap_grad_mode(create_graph)
    try:
        for k, t in enumerate(wanted):
            # the last to ask for it may have it without a copy
            value = captures[key_of(t)] if captures_again(wanted, k) else captures.pop(key_of(t))
            if value is None:
                if materialize_grads:
                    value = FUNCTIONS["zeros"](t.shape, (<Tensor> t).dtype_)
                elif not allow_unused:
                    raise worded(RuntimeError, "grad: the outputs do not depend on input {} (shape {.shape}); allow_unused=True gives "
                                               "None for it, materialize_grads=True gives zeros", k, t)
            else:
                Py_INCREF(value)
                copied = <PyObject*> value
                value = None
                copied = private_copy(copied, <Tensor> t, create_graph, False)
                value = <object> copied
                Py_DECREF(value)
            results.append(value)
    finally:
        swap_grad_mode(before)
    return tuple(results)


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None, engine=None):
    """Accumulate the gradient of this tensor into the `grad` of leaves.

    gradient: the gradient of this tensor (needed unless it has one element). retain_graph, create_graph, inputs, engine: as of
    `autograd.backward`.
    """
    seed = seed_for(self, gradient, "backward", 0)
    if inputs is None and not create_graph and (engine is None and default_engine == ITERATIVE or engine == "iterative"):
        run_from(self, seed, retain_graph is not None and retain_graph)
    else:
        run_backward([self], [seed], retain_graph, create_graph, inputs, engine)


def observed_backward(root, gradient, bint retain_graph, observer):
    """As root.backward(gradient), by the iterative engine, which calls observer(node, gradients, results) at every node: the
    gradients of the node's outputs and those its rules gave to its inputs, None where there is none. It must not keep them."""
    seed = seed_for(root, gradient, "backward", 0)
    cdef Pass run = take_pass(retain_graph, False)
    cdef bint before = swap_grad_mode(False)
    try:
        run.observer = observer
        run.captures = {}                        # captures nothing, but makes the engine stop at every node
        run_pass(run, [root], [seed], None, ITERATIVE)
        run.captures = None                      # the leaves' gradients go into grad
        finish(run)
    except Exception as error:
        explain(run, error)
        raise
    finally:
        run.observer = None
        swap_grad_mode(before)
        give_back(run)
