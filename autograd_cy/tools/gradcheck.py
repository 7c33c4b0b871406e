"""gradcheck and gradgradcheck: derivatives from backward against central differences, in float64.

Relies on the engine (autograd.grad) and NumPy.  The tests of every operation rely on it, and users with operations of their own.
The inputs are perturbed in place, so that a function may also reach them by other ways than its arguments (a module's
parameters); afterwards they hold their old values, bit for bit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograd_cy.array.dtypes import float32, float64
from autograd_cy.engine import creation
from autograd_cy.engine.backward import grad
from autograd_cy.engine.modes import enable_grad
from autograd_cy.engine.tensor import Tensor


class GradcheckError(RuntimeError):
    """Backward and central differences disagree; the message names the worst entry."""


def _as_tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _differentiable(inputs, name):
    """Positions of the inputs to differentiate; ValueError for what could not be checked honestly."""
    positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not positions:
        raise ValueError(f"{name} expects at least one input tensor to require gradient, but none of them has "
                         "requires_grad=True.")
    for i in positions:
        x = inputs[i]
        if x.dtype != float64:
            raise ValueError(f"{name}: input {i} is {x.dtype}. Central differences need float64 (in float32 they are wrong by "
                             "about 1e-3): pass x.double().detach().requires_grad_()")
        if x.numel() and any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride(), strict=True)):
            raise ValueError(f"{name}: input {i} has a dimension with stride 0, so one element in memory stands for several "
                             "and can't be perturbed alone. Call .contiguous() on the input before passing it.")
    return positions


def _call(func, inputs, name):
    outputs = _as_tuple(func(*inputs))
    for k, y in enumerate(outputs):
        if not isinstance(y, Tensor):
            raise ValueError(f"{name}: the function must return a tensor or a tuple of tensors; output {k} is "
                             f"{type(y).__name__}")
    return outputs


def _floating(outputs):
    return [k for k, y in enumerate(outputs) if y.dtype in (float32, float64)]


def _values(func, inputs, which, name):
    outputs = _call(func, inputs, name)           # recorded, since the function may ask for gradients itself
    return [np.array(outputs[k].detach().numpy(), dtype=np.float64).reshape(-1) for k in which]


def _numerical(func, inputs, i, which, eps, name):
    """One matrix (input elements, output elements) per output, by central differences on input i."""
    memory = inputs[i].detach().numpy()                   # shares the memory, whatever its strides
    columns = []
    for index in np.ndindex(memory.shape):
        old = memory[index].copy()
        try:
            memory[index] = above = old + eps
            plus = _values(func, inputs, which, name)
            memory[index] = below = old - eps
            minus = _values(func, inputs, which, name)
        finally:
            memory[index] = old
        # what was really added, not 2 * eps: old + eps is rounded
        columns.append([(p - m) / (above - below) for p, m in zip(plus, minus, strict=True)])
    if not columns:
        sizes = [v.size for v in _values(func, inputs, which, name)]
        return [np.zeros((0, size)) for size in sizes]
    return [np.stack([c[k] for c in columns]) for k in range(len(which))]


def _gradients(output, wanted, seed):
    found = grad(output, wanted, seed, retain_graph=True, allow_unused=True)
    result = []
    for x, g in zip(wanted, found, strict=True):
        if g is None:
            result.append(np.zeros(x.shape))
            continue
        if g.shape != x.shape:
            raise GradcheckError(f"backward gave a gradient of shape {g.shape} for an input of shape {x.shape}")
        if g.dtype != x.dtype:
            raise GradcheckError(f"backward gave a gradient of {g.dtype} for an input of {x.dtype}")
        result.append(np.array(g.detach().numpy()))
    return result


def _analytical(output, wanted):
    """One matrix (input elements, output elements) per wanted input, a row of outputs at a time."""
    size = output.numel()
    matrices = [np.zeros((x.numel(), size)) for x in wanted]
    if not output.requires_grad:
        return matrices
    shape = output.shape
    for j in range(size):
        seed = np.zeros(size)
        seed[j] = 1.0
        seed = creation.tensor(seed.reshape(shape), dtype=output.dtype)
        for matrix, g in zip(matrices, _gradients(output, wanted, seed), strict=True):
            matrix[:, j] = g.reshape(-1)
    return matrices


def _compare(analytical, numerical, atol, rtol, i, k, shapes):
    with np.errstate(invalid="ignore"):
        excess = np.abs(analytical - numerical) - (atol + rtol * np.abs(numerical))
        excess = np.where((analytical == numerical), -1.0, excess)           # equal infinities
    bad = ~(excess <= 0)
    if not bad.any():
        return
    worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    at_input = tuple(int(n) for n in np.unravel_index(worst[0], shapes[0])) if shapes[0] else ()
    at_output = tuple(int(n) for n in np.unravel_index(worst[1], shapes[1])) if shapes[1] else ()
    raise GradcheckError(
        f"Jacobian mismatch for output {k} with respect to input {i}: {int(bad.sum())} of {bad.size} entries differ by more "
        f"than atol={atol} + rtol={rtol} * |numerical|.\n"
        f"worst entry: d output{list(at_output)} / d input{list(at_input)}: numerical {float(numerical[worst])!r}, "
        f"analytical {float(analytical[worst])!r}\n"
        f"numerical:\n{np.array2string(numerical, threshold=100)}\nanalytical:\n{np.array2string(analytical, threshold=100)}\n"
        f"(rows: elements of the input, columns: elements of the output)")


def _check_zero_seed(outputs, which, wanted):
    """A zero incoming gradient must give zero gradients, of the inputs' shapes."""
    for k in which:
        if not outputs[k].requires_grad:
            continue
        for x, g in zip(wanted, _gradients(outputs[k], wanted, creation.zeros_like(outputs[k])), strict=True):
            if g.size and not (g == 0).all():
                raise GradcheckError(f"backward of output {k} gives non-zero gradients for a gradient of zeros "
                                     f"(input of shape {x.shape}: {g.reshape(-1)[np.argmax(g.reshape(-1) != 0)]!r})")


def gradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = True) -> bool:
    """Compare backward of func(*inputs) with central differences, for every input that requires gradients.

    func: any function of tensors (and other arguments) that returns a tensor or a tuple of tensors.
    inputs: float64 tensors where requires_grad is set; any shape and strides (0-d, zero-size, transposed), but no stride 0.
    check_undefined_grad: also check that a gradient of zeros gives zeros.
    nondet_tol: how far two backward passes over the same graph may differ.
    Gradient dtypes are always checked; `check_grad_dtypes` is accepted for PyTorch's sake.

    Returns True; else raises GradcheckError, or returns False if `raise_exception` is False.  ValueError for inputs that
    can't be checked (float32, none that requires gradients).

        x = ag.randn(3, dtype=ag.float64).requires_grad_()
        gradcheck(lambda x: x.exp().sum(), (x,))
    """
    inputs = _as_tuple(inputs)
    positions = _differentiable(inputs, "gradcheck")
    try:
        _check(func, inputs, positions, eps, atol, rtol, nondet_tol, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, positions, eps, atol, rtol, nondet_tol, check_undefined_grad):
    outputs = _call(func, inputs, "gradcheck")
    which = _floating(outputs)
    wanted = [inputs[i] for i in positions]
    numerical = [_numerical(func, inputs, i, which, eps, "gradcheck") for i in positions]
    for n, k in enumerate(which):
        analytical = _analytical(outputs[k], wanted)
        for m, i in enumerate(positions):
            if not outputs[k].requires_grad and (np.abs(numerical[m][n]) > atol).any():
                raise GradcheckError(f"output {k} does not require gradients, but it changes with input {i}: the graph was cut "
                                     "(detach, no_grad, numpy(), item()) inside the function")
            _compare(analytical[m], numerical[m][n], atol, rtol, i, k, (tuple(inputs[i].shape), tuple(outputs[k].shape)))
        again = _analytical(outputs[k], wanted)
        for i, first, second in zip(positions, analytical, again, strict=True):
            if not np.allclose(first, second, rtol=0.0, atol=nondet_tol, equal_nan=True):
                raise GradcheckError(f"backward is not deterministic: two passes over one graph differ by up to "
                                     f"{np.abs(first - second).max()!r} for output {k}, input {i}")
    if check_undefined_grad:
        _check_zero_seed(outputs, which, wanted)


def gradgradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Any],
                  grad_outputs: Tensor | Sequence[Tensor] | None = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
                  nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = True) -> bool:
    """Check the second derivatives: gradcheck of the gradient of func, as a function of its inputs and of grad_outputs.

    grad_outputs: one float64 tensor per differentiable output; by default pseudo-random ones that require gradients, strided
    if `gen_non_contig_grad_outputs`.  The rest as for gradcheck.
    """
    inputs = _as_tuple(inputs)
    positions = _differentiable(inputs, "gradgradcheck")
    outputs = _call(func, inputs, "gradgradcheck")
    which = [k for k in _floating(outputs) if outputs[k].requires_grad]
    if not which:
        raise ValueError("gradgradcheck: no output of the function requires gradients")
    if grad_outputs is None:
        random = np.random.default_rng(0)                 # the library's own generator is left alone
        seeds = []
        for k in which:
            shape = tuple(outputs[k].shape)
            values = random.standard_normal((*shape, 2) if gen_non_contig_grad_outputs else shape)
            seed = creation.tensor(values, dtype=outputs[k].dtype)
            seeds.append((seed[..., 0] if gen_non_contig_grad_outputs else seed).requires_grad_())
    else:
        seeds = list(_as_tuple(grad_outputs))
        if len(seeds) != len(which):
            raise ValueError(f"gradgradcheck: {len(which)} outputs are differentiable, got {len(seeds)} grad_outputs")
    n = len(inputs)

    def gradient(*args):
        ins, gs = args[:n], args[n:]
        outs = _call(func, ins, "gradgradcheck")
        with enable_grad():
            found = grad([outs[k] for k in which], [ins[i] for i in positions], list(gs), create_graph=True,
                                     allow_unused=True)
        return tuple(g for g in found if g is not None)

    def enabled(*args):
        with enable_grad():                            # differences are taken under no_grad
            return gradient(*args)

    if not any(g.requires_grad for g in enabled(*inputs, *seeds)):
        return True                                       # constant gradients that don't depend on the seeds either
    return gradcheck(enabled, (*inputs, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad)
