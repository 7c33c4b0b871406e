"""autograd.functional: vjp, jvp, jacobian, hessian, vhp, hvp of functions of tensors, with create_graph and strict.

Relies on transforms. The older interface beside func: arguments are a tensor or a tuple of tensors, outputs too; results have a
history only with create_graph=True.
"""

from collections.abc import Callable
from typing import Any

from autograd_cy.engine import creation
from autograd_cy.engine.backward import grad as pull
from autograd_cy.engine.modes import enable_grad
from autograd_cy.engine.tensor import Tensor

from .jacobians import matrix, unit_vectors

NO_GRADIENT = ("Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable "
               "manner from the input when running in strict mode.")
INDEPENDENT = "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
CONSTANT_JACOBIAN = ("The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
                     "create_graph=True.")
CONSTANT_HESSIAN = ("The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
                    "create_graph=True.")
LINEAR = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of "
          "the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the "
          "jacobian depends on the inputs (this would be violated by a linear function for example).")


def _tuple(values, what, who):
    """(whether it was a tuple, the tuple) of a tensor or a tuple of tensors."""
    single = isinstance(values, Tensor)
    found = (values,) if single else values
    if not isinstance(found, tuple):
        raise TypeError(f"The {what} {who} must be either a Tensor or a tuple of Tensors but the given {what.removesuffix(' given to')} "
                        f"has type {type(values)}.")
    for k, t in enumerate(found):
        if not isinstance(t, Tensor):
            raise TypeError(f"The {what} {who} must be either a Tensor or a tuple of Tensors but the value at index {k} of the given "
                            f"{what.removesuffix(' given to')} has type {type(t)}.")
    return not single, found


class _Problem:
    """One call: variables, outputs, and how results leave."""

    def __init__(self, func, inputs, create_graph, strict, who):
        self.strict, self.create_graph, self.who = strict, create_graph, who
        self.several, given = _tuple(inputs, "inputs given to", who)
        self.variables = [t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in given]
        result = func(*self.variables)
        self.several_outputs, self.outputs = _tuple(result, "outputs of the user-provided function given to", who)
        if strict:
            for k, o in enumerate(self.outputs):
                if not o.requires_grad:
                    raise RuntimeError(NO_GRADIENT.format(k))

    def scalar(self):
        """The only output, of one element."""
        if self.several_outputs:
            raise RuntimeError(f"The function given to {self.who} should return a single Tensor")
        if self.outputs[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {self.who} should contain a single element")
        return self.outputs[0]

    def vectors(self, v, others, several, otherwise):
        """v, checked against the tensors it belongs to; ones where it is None and there is one element."""
        if v is None:
            if len(others) != 1 or others[0].numel() != 1:
                raise RuntimeError(f"The vector v can only be None if {otherwise} a single Tensor with a single element.")
            return [creation.ones_like(others[0].detach())]
        _, found = _tuple(v, "v given to", self.who)
        if len(found) != len(others):
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(found)}." if several else
                               "The given v should contain a single Tensor.")
        for k, (t, other) in enumerate(zip(found, others, strict=True)):
            if t.shape != other.shape:
                raise RuntimeError(f"{f'Entry {k} in v' if several else 'v'} has invalid size: should be {other.shape} but got {t.shape}.")
        return list(found)

    def pull(self, outputs, seeds, create_graph, wanted=None):
        """Gradients of the outputs that have a history, None where there is none."""
        wanted = self.variables if wanted is None else wanted
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o is not None and o.requires_grad]
        if not pairs:
            return [None] * len(wanted)
        return list(pull([o for o, _ in pairs], wanted, [s for _, s in pairs], True, create_graph, allow_unused=True))

    def refuse(self, gradients, missing, constant=None):
        """In strict mode: an error where a gradient is missing, or (constant) does not depend on anything."""
        if self.strict:
            for k, g in enumerate(gradients):
                if g is None and missing is not None:
                    raise RuntimeError(missing.format(k))
                if constant is not None and g is not None and not g.requires_grad:
                    raise RuntimeError(constant.format(k))

    def hand_out(self, values, several, like=None):
        """Results: zeros for None, without history unless asked for; a tuple or a tensor."""
        like = values if like is None else like
        values = [creation.zeros_like(t.detach()) if v is None else v for v, t in zip(values, like, strict=True)]
        values = tuple(v if self.create_graph else v.detach() for v in values)
        return values if several else values[0]



def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, v^T J): func(*inputs) and the product of a vector with its Jacobian.

    inputs, outputs, v: a tensor or a tuple of tensors, v as the outputs (None where they are one element). strict: RuntimeError
    where an output does not depend on an input, instead of zeros.
    """
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, strict, "vjp")
        v = problem.vectors(v, problem.outputs, problem.several_outputs, "the user-provided function returns")
        found = problem.pull(problem.outputs, v, create_graph)
        problem.refuse(found, INDEPENDENT, CONSTANT_JACOBIAN if create_graph else None)
    return (problem.hand_out(problem.outputs, problem.several_outputs), problem.hand_out(found, problem.several, problem.variables))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, J v): func(*inputs) and the product of its Jacobian with a vector, by two passes of reverse mode.

    inputs, outputs, v: a tensor or a tuple of tensors, v as the inputs (None where they are one element). strict: RuntimeError
    where an output does not depend on an input, instead of zeros.
    """
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, strict, "jvp")
        v = problem.vectors(v, problem.variables, problem.several, "the input to the user-provided function is")
        seeds = [creation.ones_like(o.detach()).requires_grad_() if o.requires_grad else None for o in problem.outputs]
        rows = problem.pull(problem.outputs, seeds, True)
        problem.refuse(rows, INDEPENDENT)
        known = [s for s in seeds if s is not None]
        found = iter(problem.pull(rows, v, create_graph, known) if known else ())
        found = [None if s is None else next(found) for s in seeds]
        problem.refuse(found, None, CONSTANT_JACOBIAN if create_graph else None)
    return (problem.hand_out(problem.outputs, problem.several_outputs),
            problem.hand_out(found, problem.several_outputs, problem.outputs))


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """The Jacobian of func: a tensor of shape output.shape + input.shape, in tuples for several outputs (outer) or inputs (inner).

    strict: RuntimeError where an output does not depend on an input, instead of zeros. strategy: "reverse-mode" takes a pass for
    each element of the outputs, "forward-mode" for each of the inputs. vectorize has no effect but the restrictions that PyTorch has.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
                             'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    for flag, with_what in ((vectorize, "`vectorized=True`"), (strategy == "forward-mode", '`strategy="forward-mode"`')):
        if strict and flag:
            raise RuntimeError(f"`strict=True` and {with_what} are not supported together")
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, strict, "jacobian")
        blocks = (_columns if strategy == "forward-mode" else _rows)(problem)
    blocks = tuple(problem.hand_out(b, problem.several) for b in blocks)
    return blocks if problem.several_outputs else blocks[0]


def _rows(problem):
    blocks = []
    for k, o in enumerate(problem.outputs):
        rows = [problem.pull([o], [unit], problem.create_graph) for unit in unit_vectors(o)] if o.requires_grad else []
        independent = f"Output {k} of the user-provided function is independent of input {{}}. This is not allowed in strict mode."
        for row in rows:
            problem.refuse(row, independent, CONSTANT_JACOBIAN if problem.create_graph else None)
        block = []
        for n, v in enumerate(problem.variables):
            parts = [creation.zeros_like(v.detach()) if row[n] is None else row[n] for row in rows]
            block.append(matrix(parts, 0, o.shape + v.shape, v))
        blocks.append(block)
    return blocks


def _columns(problem):
    seeds = [creation.ones_like(o.detach()).requires_grad_() for o in problem.outputs]
    rows = problem.pull(problem.outputs, seeds, True)
    blocks = [[] for _ in problem.outputs]
    for row, v in zip(rows, problem.variables, strict=True):
        columns = [problem.pull([row], [unit], problem.create_graph, seeds) for unit in unit_vectors(v)] if row is not None else []
        for k, o in enumerate(problem.outputs):
            parts = [creation.zeros_like(o.detach()) if c[k] is None else c[k] for c in columns]
            blocks[k].append(matrix(parts, -1, o.shape + v.shape, o))
    return blocks


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The second derivatives of func, a function to one element: a tensor of shape input.shape + input.shape; for several inputs a
    tuple of tuples. strict: RuntimeError where the first derivatives do not depend on an input, instead of zeros.
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    several, _ = _tuple(inputs, "inputs given to", "hessian")

    def gradient(*args):
        problem = _Problem(func, args, True, strict, "hessian")
        problem.scalar()
        found = problem.pull(problem.outputs, [creation.ones_like(problem.outputs[0].detach())], True)
        problem.refuse(found, INDEPENDENT, LINEAR)
        return problem.hand_out(found, True, problem.variables)

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if several else blocks[0]


def _second(func, inputs, v, create_graph, strict, who):
    """(problem, gradients, v) of vhp and hvp."""
    problem = _Problem(func, inputs, create_graph, strict, who)
    v = problem.vectors(v, problem.variables, problem.several, "the input to the user-provided function is")
    output = problem.scalar()
    gradients = problem.pull([output], [creation.ones_like(output.detach())], True)
    problem.refuse(gradients, INDEPENDENT, LINEAR)
    return problem, gradients, v


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, v^T H): func(*inputs), one element, and the product of a vector with its Hessian, by two passes of reverse mode.

    inputs, v: a tensor or a tuple of tensors. strict: RuntimeError where the output or its derivatives do not depend on an input,
    instead of zeros.
    """
    with enable_grad():
        problem, gradients, v = _second(func, inputs, v, create_graph, strict, "vhp")
        found = problem.pull(gradients, v, create_graph)
        problem.refuse(found, LINEAR, CONSTANT_HESSIAN if create_graph else None)
    return problem.hand_out(problem.outputs, False), problem.hand_out(found, problem.several, problem.variables)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, H v): func(*inputs), one element, and the product of its Hessian with a vector.

    The same as vhp (and as fast), since a Hessian of continuous second derivatives is symmetric.
    """
    with enable_grad():
        problem, gradients, v = _second(func, inputs, v, create_graph, strict, "hvp")
        found = problem.pull(gradients, v, create_graph)
        problem.refuse(found, LINEAR, CONSTANT_HESSIAN if create_graph else None)
    return problem.hand_out(problem.outputs, False), problem.hand_out(found, problem.several, problem.variables)
