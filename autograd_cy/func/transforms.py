"""grad, vjp, jvp and what they stand on: the variables of one level of differentiation, and what its results depend on.

Relies on the engine's autograd.grad, and on graph for nested arguments (trees) and for the leaves behind a result (links).
jacobians.py and autograd.functional rely on it.

Levels. A transform calls the function with variables of its own in place of the arguments: an alias whose history leads to the
argument, where that one is differentiated by someone outside (an outer transform, or the user's requires_grad), and a fresh leaf
else. Gradients are taken with respect to these variables, so that `grad(lambda x: x * grad(lambda y: x + y)(x))` keeps x and y
apart, although both have the same memory. Outside, a result keeps its history only where it depends on something that is
differentiated there; recording of the pass itself (create_graph) is off where nobody outside could ask for it.
"""

from collections.abc import Callable
from typing import Any

from autograd_cy.array.dtypes import float32, float64
from autograd_cy.engine import creation
from autograd_cy.engine.backward import grad as pull
from autograd_cy.engine.modes import enable_grad, is_grad_enabled
from autograd_cy.engine.tensor import Tensor
from autograd_cy.graph.links import last_node, reaches_beyond
from autograd_cy.graph.trees import flatten, other_values, unflatten

FLOATS = (float32, float64)


class Level:
    """One level of differentiation: its variables, and what its results may keep of their history."""

    __slots__ = ("nodes", "since", "tracked", "variables")

    def __init__(self, tensors):
        self.tracked = is_grad_enabled()       # under no_grad, results are constants for everyone outside
        self.since = last_node()
        for t in tensors:
            if t.dtype not in FLOATS:
                raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {t.dtype.name}")
        with enable_grad():
            self.variables = [t.view_as(t) if self.tracked and t.requires_grad else t.detach().requires_grad_() for t in tensors]
        self.nodes = [v.grad_fn for v in self.variables]

    def check(self):
        """Refuse a function that changed its arguments in place: a leaf refuses by itself, an alias with a history does not."""
        for v, node in zip(self.variables, self.nodes, strict=True):
            if v.grad_fn is not node:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation: the function changes an "
                                   "argument that it is differentiated by; let it work on a clone()")

    def closed(self, tensors):
        """Whether the tensors' graph has no leaves but the variables."""
        return not reaches_beyond([t for t in tensors if t.requires_grad], self.since, self.variables)

    def depends_outside(self, tensors):
        """Whether someone outside could differentiate the tensors."""
        return self.tracked and not self.closed(tensors)

    def hand_out(self, t):
        """A result as the outside sees it."""
        return t if not t.requires_grad or self.depends_outside([t]) else t.detach()

    def hand_out_all(self, tree):
        """A nested result as the outside sees it; what is no tensor stays as it is."""
        tensors, shape = flatten(tree)
        return unflatten(shape, [self.hand_out(t) for t in tensors])

    def pull(self, outputs, seeds, create_graph, retain_graph=True):
        """The gradients of outputs by the variables, None where there is none."""
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs or not self.variables:
            return [None] * len(self.variables)
        return pull([o for o, _ in pairs], self.variables, [s for _, s in pairs], retain_graph, create_graph, allow_unused=True)

    def pull_closed(self, output, seed, retain_graph=True):
        """As pull, for a graph that is closed: a pass to all leaves needs no search for the way, which costs several times as much."""
        if not output.requires_grad:
            return [None] * len(self.variables)
        output.backward(seed, retain_graph)
        found = [v.grad for v in self.variables]
        for v in self.variables:
            v.grad = None
        return found

    def zeros_for(self, gradients):
        """Zeros in place of None."""
        return [creation.zeros_like(v.detach()) if g is None else g for g, v in zip(gradients, self.variables, strict=True)]


def tensors_only(tree, message, error=RuntimeError):
    """(tensors, description) of a nested structure that must hold nothing else."""
    tensors, shape = flatten(tree)
    for value in other_values(shape):
        raise error(f"{message} {type(value)}")
    return tensors, shape


def arguments_only(tree):
    """tensors_only, for what a user passes."""
    return tensors_only(tree, "Thing passed to transform API must be Tensor, got", ValueError)


def chosen(argnums, args):
    """argnums as a tuple of non-negative positions, checked against the arguments."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    found = []
    for n in argnums if isinstance(argnums, tuple) else (argnums,):
        if isinstance(n, bool) or not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        found.append(n % len(args))
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(found)}")
    return tuple(found)


class Call:
    """A call of a function at a level of its own: by the chosen arguments, or by all of them."""

    def __init__(self, func, args, kwargs, argnums, has_aux, who):
        self.single = not isinstance(argnums, tuple)
        which = tuple(range(len(args))) if argnums is None else chosen(argnums, args)
        tensors, self.inputs = arguments_only([args[n] for n in which])
        self.level = level = Level(tensors)
        args = list(args)
        for n, variable in zip(which, unflatten(self.inputs, level.variables), strict=True):
            args[n] = variable
        with enable_grad():
            result = func(*args, **kwargs)
        level.check()
        self.aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
            result, self.aux = result
        self.result = result

    def inputs_like(self, values):
        """Values, one for each variable, in the structure of the chosen arguments; of one argnum without the tuple around it."""
        values = tuple(unflatten(self.inputs, values))
        return values[0] if self.single else values


def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns (gradient, value) of `func`, a function to a scalar: (df/dx, f(x)).

    argnums: the positional argument(s) to differentiate by, nested structures of floating-point tensors; a tuple gives a tuple of
    gradients. has_aux: func returns (value, aux), and the result is (gradient, (value, aux)). What func does not depend on gets
    zeros. It works under no_grad, too, and its results then have no history.

    Raises RuntimeError where func returns no tensor of zero dims, for integer arguments and for arguments changed in place.
    """
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        who = "grad_and_value(f)(*args)"
        call = Call(func, args, kwargs, argnums, has_aux, who)
        level, value = call.level, call.result
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{who}: Expected f(*args) to return a Tensor, got {type(value)}")
        if value.ndim:
            raise RuntimeError(f"{who}: Expected f(*args) to return a scalar Tensor, got tensor with {value.ndim} dims. Maybe you "
                               "wanted to use the vjp or jacrev APIs instead?")
        closed = level.closed([value])
        outside = level.tracked and not closed
        value_out = value if outside else value.detach()
        aux = level.hand_out_all(call.aux) if has_aux else None
        # the graph is freed as the pass goes, unless a result still has it
        retain = outside or has_aux
        found = level.pull_closed(value, None, retain) if closed else level.pull([value], [None], outside, retain)
        gradients = level.zeros_for(found)
        gradients = call.inputs_like([level.hand_out(g) for g in gradients])
        return gradients, ((value_out, aux) if has_aux else value_out)

    return _named(wrapper, func)


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a function to a scalar: df/dx. Nest it for higher orders.

    Arguments and errors as of grad_and_value; with has_aux, where func returns (value, aux), the result is (gradient, aux).

        grad(lambda x: (x ** 3).sum())(x)                     # 3 x ** 2
        grad(grad(lambda x: x ** 3))(x)                       # 6 x
    """
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _named(wrapper, func)


def _named(wrapper, func):
    name = getattr(func, "__name__", None)
    if name is not None:
        wrapper.__name__ = wrapper.__qualname__ = name
    return wrapper


def float_outputs(call, who):
    """(tensors, description) of a function's outputs, which must be floating-point tensors."""
    outputs, shape = tensors_only(call.result, f"{who}(f, *primals): expected f(*primals) to return only tensors, got unsupported type")
    for o in outputs:
        if o.dtype not in FLOATS:
            raise RuntimeError(f"{who}(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                               f"{o.dtype.name}")
    return outputs, shape


def spec(shape):
    """A structure in words, each tensor as *."""
    return repr(unflatten(shape, [_Star() for _ in range(_holes(shape))]))


class _Star:
    def __repr__(self):
        return "*"


def _holes(shape):
    if len(shape) if isinstance(shape, tuple) else 0:
        return 0 if shape[0] is None else sum(_holes(part) for part in shape[-1])
    return 1


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(output, vjp_fn): func(*primals), and the function v -> v^T J of vectors that have the output's structure and shapes.

    vjp_fn(cotangents, retain_graph=True, create_graph=None) gives a tuple, an entry for each primal; it can be called repeatedly.
    primals and outputs: nested structures of floating-point tensors. has_aux: func returns (output, aux), the result is
    (output, vjp_fn, aux).

    Raises RuntimeError for outputs that are no floating-point tensors and cotangents of another structure or shape.
    """
    who = "vjp"
    call = Call(func, primals, {}, None, has_aux, "vjp(f, *primals)")
    call.single = False
    level = call.level
    outputs, shape = float_outputs(call, who)
    outside = level.depends_outside(outputs)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds, given_shape = flatten(given)
        if given_shape != shape:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                               f"cotangents: {spec(given_shape)}, primal output: {spec(shape)}")
        for k, (o, s) in enumerate(zip(outputs, seeds, strict=True)):
            if s.shape != o.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{k}] has a shape of {s.shape} and output[{k}] has a shape of "
                                   f"{o.shape}.")
        seeds = [s.to(o.dtype) for o, s in zip(outputs, seeds, strict=True)]
        record = is_grad_enabled() if create_graph is None else create_graph
        record = record and (outside or any(s.requires_grad for s in seeds))
        found = level.zeros_for(level.pull(outputs, seeds, record, retain_graph))
        return call.inputs_like([level.hand_out(g) for g in found])

    result = unflatten(shape, [level.hand_out(o) for o in outputs])
    return (result, vjp_fn, level.hand_out_all(call.aux)) if has_aux else (result, vjp_fn)


class Linear:
    """The derivative of a function at a point, t -> J t: J^T u is linear in u, so that its own vjp, by u, is J.

    That is forward mode by two passes of reverse mode. It needs second derivatives of the operations (all have them) and runs
    the first pass once for any number of tangents. u is 1, so that no gradient is masked for being 0.
    """

    def __init__(self, call, outputs, outside):
        self.level, self.outputs, self.outside = call.level, outputs, outside
        with enable_grad():
            self.seeds = [creation.ones_like(o.detach()).requires_grad_() if o.requires_grad else None for o in outputs]
            self.rows = self.level.pull(outputs, self.seeds, create_graph=True)
        self.known = [s for s in self.seeds if s is not None]

    def __call__(self, tangents, retain_graph=True):
        """The tangents of the outputs; a tangent None stands for zeros."""
        pairs = [(row, t.to(row.dtype)) for row, t in zip(self.rows, tangents, strict=True)
                 if t is not None and row is not None and row.requires_grad]
        found = []
        if pairs and self.known:
            record = is_grad_enabled() and (self.outside or any(t.requires_grad for _, t in pairs))
            found = pull([row for row, _ in pairs], self.known, [t for _, t in pairs], retain_graph, record, allow_unused=True)
        found = iter(found or [None] * len(self.known))
        found = [None if s is None else next(found) for s in self.seeds]
        return [creation.zeros_like(o.detach()) if t is None else self._hand_out(t) for o, t in zip(self.outputs, found, strict=True)]

    def _hand_out(self, t):
        keep = not t.requires_grad or reaches_beyond([t], self.level.since, (*self.level.variables, *self.known))
        return t if keep else t.detach()


def linear_part(call, who):
    """(outputs, their description, Linear) of a call, for forward mode: outputs may be of any dtype."""
    outputs, shape = tensors_only(call.result, f"{who}(f, primals, tangents): expected f(*primals) to return only tensors, got "
                                  "unsupported type")
    return outputs, shape, Linear(call, outputs, call.level.depends_outside(outputs))


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """(output, J t): func(*primals) and the derivative of its outputs along the tangents.

    primals, tangents: tuples of the same structure and shapes. strict: RuntimeError where an output does not depend on the primals
    (else its tangent is zeros). has_aux: func returns (output, aux), the result is (output, tangent, aux).

    Forward mode by two passes of reverse mode, see Linear: exact, for the price of a few calls of func in time and memory. So,
    other than in torch.func.jvp, func must not change its arguments in place.
    """
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, shape = arguments_only(primals)
    given, given_shape = arguments_only(tangents)
    if shape != given_shape:
        raise RuntimeError(f"{what}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
                           f"of 3 tensors, tangents also must be. Got primals with structure {spec(shape)} and tangents with structure "
                           f"{spec(given_shape)}")
    if not flat:
        raise RuntimeError(f"{what}: Expected primals to contain at least one Tensor.")
    _check_tangents(flat, given)
    call = Call(func, primals, {}, None, has_aux, what)
    outputs, shape, linear = linear_part(call, "jvp")
    if strict:
        for row in outputs:
            if not row.requires_grad or not any(g is not None for g in call.level.pull([row], [creation.ones_like(row.detach())], False)):
                raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                                   "allowed with strict=True.")
    tangent = unflatten(shape, linear(given))
    output = unflatten(shape, [call.level.hand_out(o) for o in outputs])
    return (output, tangent, call.level.hand_out_all(call.aux)) if has_aux else (output, tangent)


def _check_tangents(primals, tangents):
    for p, t in zip(primals, tangents, strict=True):
        if p.dtype not in FLOATS:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {p.dtype.name}")
        if p.shape != t.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                               f"supported. Tensor is of size {p.shape} while the given forward gradient is of size {t.shape}.")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(output, jvp_fn): func(*primals), and the function t -> J t of tangents, to be called as jvp_fn(*tangents), repeatedly.

    Raises RuntimeError for tangents of another structure or shape than the primals.
    """
    flat, inputs = arguments_only(primals)
    call = Call(func, primals, {}, None, False, "linearize(f, *primals)")
    outputs, shape, linear = linear_part(call, "linearize")

    def jvp_fn(*tangents: Any) -> Any:
        given, given_shape = flatten(tangents)
        if given_shape != inputs:
            raise RuntimeError(f"linearize: the tangents must have the structure of the primals, {spec(inputs)}, got {spec(given_shape)}")
        _check_tangents(flat, given)
        return unflatten(shape, linear(given))

    return unflatten(shape, [call.level.hand_out(o) for o in outputs]), jvp_fn
