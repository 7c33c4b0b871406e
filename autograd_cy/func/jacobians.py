"""jacrev, jacfwd, hessian, hvp: whole matrices of derivatives, a row or a column at a time.

Relies on transforms. Users of ag.func rely on it.
"""

from collections.abc import Callable
from math import prod
from typing import Any

from autograd_cy.engine import creation
from autograd_cy.engine.joins import stack
from autograd_cy.graph.trees import flatten, unflatten

from .transforms import Call, float_outputs, grad, linear_part


def unit_vectors(t):
    """The unit vectors of the space that t belongs to, in t's shape, one after the other."""
    for i in range(t.numel()):
        unit = creation.zeros(t.numel(), dtype=t.dtype)
        unit[i] = 1
        yield unit.reshape(t.shape)


def _check_chunk(chunk_size, who):
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{who}: `chunk_size` should be greater than 0.")


def matrix(parts, dim, shape, like):
    """Rows (dim 0) or columns (dim -1) as one tensor of the given shape."""
    return stack(parts, dim).reshape(shape) if parts and prod(shape) else creation.zeros(shape, dtype=like.dtype)


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by the chosen arguments, by reverse mode: a pass for each element of the outputs.

    For an output and an argument the result has the shape output.shape + argument.shape. With nested outputs and arguments it is the
    structure of the outputs, in each place the structure of the arguments. argnums, has_aux: as of grad. chunk_size has no effect,
    because rows are computed one after the other.

    Raises RuntimeError for outputs that are no floating-point tensors.
    """
    _check_chunk(chunk_size, "jacrev")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call(func, args, kwargs, argnums, has_aux, "jacrev(f)(*args)")
        level = call.level
        outputs, shape = float_outputs(call, "vjp")
        closed = level.closed(outputs)
        record = level.tracked and not closed
        blocks = []
        for o in outputs:
            rows = [level.pull_closed(o, unit) if closed else level.pull([o], [unit], record)
                    for unit in unit_vectors(o)] if o.requires_grad else []
            found = []
            for k, v in enumerate(level.variables):
                parts = [row[k] for row in rows]
                parts = [] if all(g is None for g in parts) else [creation.zeros_like(v.detach()) if g is None else g for g in parts]
                found.append(matrix(parts, 0, o.shape + v.shape, v))
            blocks.append(call.inputs_like([level.hand_out(m) for m in found]))
        result = unflatten(shape, blocks)
        return (result, level.hand_out_all(call.aux)) if has_aux else result

    return wrapper


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error",
           chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by the chosen arguments, by forward mode: a pass for each element of the arguments.

    Results as of jacrev; outputs may be integers, whose derivatives are zeros. Forward mode is two passes of reverse mode, of which
    the first is shared by all columns: cheaper than jacrev where there are fewer arguments than outputs, by more than about two
    times. randomness and chunk_size have no effect, because func is called once.
    """
    _check_chunk(chunk_size, "jacfwd")
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = Call(func, args, kwargs, argnums, has_aux, "jacfwd(f)(*args)")
        level = call.level
        outputs, shape, linear = linear_part(call, "jacfwd")
        n = len(level.variables)
        columns = [[linear([unit if j == k else None for j in range(n)]) for unit in unit_vectors(v)]
                   for k, v in enumerate(level.variables)]
        blocks = [call.inputs_like([matrix([c[i] for c in columns[k]], -1, o.shape + v.shape, o) for k, v in enumerate(level.variables)])
                  for i, o in enumerate(outputs)]
        result = unflatten(shape, blocks)
        return (result, level.hand_out_all(call.aux)) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func` by the chosen arguments: jacfwd(jacrev(func)).

    For a scalar output the shape is argument.shape + argument.shape; with several arguments, the structure of the arguments in each
    place of the same structure. It takes as many passes as the arguments have elements.
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of func, a function to a scalar, at primals, times tangents: H v, without forming H.

    primals: a tuple of arguments, or a tensor for a function of one; tangents has the same structure and shapes, and so has the
    result. H is symmetric, so H v is the gradient of <df/dx, v>: two passes of reverse mode. (torch.func writes it as
    jvp(grad(f), primals, tangents)[1]; autograd.functional.hvp returns the value, too.)

    Raises RuntimeError as grad does, and for tangents of another structure or shape.
    """
    single = not isinstance(primals, tuple)
    args, vectors = ((primals,), (tangents,)) if single else (primals, tangents)
    given, given_shape = flatten(vectors)
    flat, shape = flatten(args)
    if shape != given_shape or [v.shape for v in given] != [p.shape for p in flat]:
        raise RuntimeError(f"hvp(f, primals, tangents): Expected primals and tangents to have the same structure and shapes, got shapes "
                           f"{[p.shape for p in flat]} and {[v.shape for v in given]}")

    def inner(*args: Any) -> Any:
        gradients, _ = flatten(grad(func, tuple(range(len(args))))(*args))
        return sum([(g * v.to(g.dtype)).sum() for g, v in zip(gradients, given, strict=True)], creation.zeros(()))

    result = grad(inner, tuple(range(len(args))))(*args)
    return result[0] if single else result
