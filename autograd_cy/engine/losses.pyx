# Losses as single nodes: an elementwise row followed by its sum or mean, and the cross entropy of rows.
#
# Relies on dispatch (elementwise rows), kernels/rows, record. nn.functional re-exports the functions.

import warnings

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport NAN
from libc.stdint cimport uintptr_t

from autograd_cy.array.dtype cimport FLOAT64, INT64
from autograd_cy.array.layout cimport (
    DENSE, Layout, layout_broadcast, layout_contiguous, layout_decref, layout_scalar, same_layout, same_shape,
)
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.dense cimport dense_loss
from autograd_cy.engine.dispatch cimport elementwise
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport MEAN_REDUCTION, NO_REDUCTION, SUM_REDUCTION, Node
from autograd_cy.engine.object cimport KNOWN_PLACES, Known, attribute_at, own
from autograd_cy.engine.operands cimport GRAIN, contiguous_of, converted, copy_of, number_tensor
from autograd_cy.engine.record cimport any_wants_grad, record, saved_or_raise
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_new
from autograd_cy.kernels.table cimport K

from autograd_cy.array.errors import ArgumentError, BoundsError, ShapeError, worded
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.reduce import log_softmax, mean, sum
from autograd_cy.engine.shape import reshape
from autograd_cy.kernels.table import ERRORS

cdef int MSE = row_number("mse_loss"), L1 = row_number("l1_loss"), HUBER = row_number("huber_loss")
cdef int BCE = row_number("binary_cross_entropy"), BCE_LOGITS = row_number("binary_cross_entropy_with_logits")
cdef int CROSS_ENTROPY = row_number("cross_entropy"), NLL = row_number("nll_loss")
cdef int ENTROPY = routine_of("rows.cross_entropy"), ENTROPY_BACK = routine_of("rows.cross_entropy_back")


cdef int reduction_code(object reduction, str name) except -1:
    if reduction == "mean":
        return MEAN_REDUCTION
    if reduction == "sum":
        return SUM_REDUCTION
    if reduction == "none":
        return NO_REDUCTION
    raise worded(ValueError, "{}: reduction must be \"none\", \"mean\" or \"sum\", got {!r}", name, reduction)


cdef object reduce_loss(object losses, int reduction):
    if reduction == NO_REDUCTION:
        return losses
    return mean(losses) if reduction == MEAN_REDUCTION else sum(losses)


cdef object pair_loss(int opcode, object x, object target, int reduction, str name, bint strict, const double* attrs=NULL):
    cdef PyObject* args[2]
    cdef Layout* layout
    if not is_tensor(<PyObject*> x) or not is_tensor(<PyObject*> target):
        raise worded(TypeError, "{}: input and target must be tensors, got {} and {}", name, type(x).__name__, type(target).__name__)
    if not same_shape((<Tensor> x).layout, (<Tensor> target).layout):
        if strict:
            raise worded(ShapeError, "{}: the target has shape {.shape}, but the input has shape {.shape}", name, target, x)
        layout = layout_broadcast((<Tensor> x).layout, (<Tensor> target).layout)
        if layout == NULL:
            raise worded(ShapeError, "{}: shapes {.shape} and {.shape} do not broadcast against each other", name, x, target)
        layout_decref(layout)
        warnings.warn(f"{name}: the target has shape {target.shape} and the input {x.shape}; they are broadcast, which is seldom meant",
                      stacklevel=2)
    if reduction != NO_REDUCTION and attrs == NULL and same_layout((<Tensor> x).layout, (<Tensor> target).layout) \
            and (<Tensor> x).layout.flags & DENSE and (<Tensor> x).dtype_ == (<Tensor> target).dtype_ and (<Tensor> x).dtype_ <= FLOAT64 \
            and (<Tensor> x).layout.numel < GRAIN:
        return own(dense_loss(opcode, <Tensor> x, <Tensor> target, reduction))
    args[0], args[1] = <PyObject*> x, <PyObject*> target
    return own(elementwise(opcode, 2, args, attrs, reduction))


def mse_loss(input, target, reduction="mean"):
    """The mean (or "sum", or "none") of (input - target)**2."""
    return pair_loss(MSE, input, target, reduction_code(reduction, "mse_loss"), "mse_loss", False)


cdef Known reduction_places[KNOWN_PLACES]


def mse_loss_of(self, input, target):
    """mse_loss(input, target, self.reduction)."""
    return pair_loss(MSE, input, target, reduction_code(attribute_at(self, "reduction", reduction_places), "mse_loss"), "mse_loss", False)


def l1_loss(input, target, reduction="mean"):
    """The mean (or "sum", or "none") of |input - target|."""
    return pair_loss(L1, input, target, reduction_code(reduction, "l1_loss"), "l1_loss", False)


def huber_loss(input, target, reduction="mean", double delta=1.0, weight=None):
    """d ** 2 / 2 where d = |input - target| <= delta, delta (d - delta / 2) elsewhere; mean, "sum" or "none".

    Raises RuntimeError for delta <= 0, ValueError where weight has another shape than the input.
    """
    cdef double[2] attrs = [delta, 1]
    cdef int code = reduction_code(reduction, "huber_loss")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    losses = pair_loss(HUBER, input, target, code if weight is None else NO_REDUCTION, "huber_loss", False, attrs)
    if weight is None:
        return losses
    if weight.shape != input.shape:
        raise ShapeError("Weights and input must have the same size.")
    return reduce_loss(losses * weight, code)


def smooth_l1_loss(input, target, reduction="mean", double beta=1.0):
    """d ** 2 / (2 beta) where d = |input - target| < beta, d - beta / 2 elsewhere; mean, "sum" or "none".

    Raises RuntimeError for beta < 0; beta = 0 (below 1e-38 is as good as that): l1_loss.
    """
    cdef double[2] attrs = [beta, 1 / beta]
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta < 1e-38:
        return l1_loss(input, target, reduction)
    return pair_loss(HUBER, input, target, reduction_code(reduction, "smooth_l1_loss"), "smooth_l1_loss", False, attrs)


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """The mean (or "sum", or "none") of -(t log x + (1 - t) log(1 - x)) for probabilities x, each logarithm at least -100.

    Raises ValueError where shapes differ, RuntimeError where an input lies outside [0, 1].
    """
    cdef int code = reduction_code(reduction, "binary_cross_entropy")
    cdef Tensor x
    if is_tensor(<PyObject*> input):
        x = own(contiguous_of(<Tensor> input))
        if x.dtype_ <= FLOAT64 and K.outside_unit(x.dtype_, x.layout.numel, x.data) >= 0:
            raise RuntimeError("binary_cross_entropy: all inputs must lie between 0 and 1; for logits use "
                               "binary_cross_entropy_with_logits")
    if weight is None:
        return pair_loss(BCE, input, target, code, "binary_cross_entropy", True)
    return reduce_loss(pair_loss(BCE, input, target, NO_REDUCTION, "binary_cross_entropy", True) * weight, code)


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """The binary cross entropy of sigmoid(input), without overflow: mean, "sum" or "none".

    pos_weight multiplies the term of positive targets. Raises ValueError where shapes differ.
    """
    cdef int code = reduction_code(reduction, "binary_cross_entropy_with_logits")
    if weight is None and pos_weight is None:
        return pair_loss(BCE_LOGITS, input, target, code, "binary_cross_entropy_with_logits", True)
    if pos_weight is None:
        losses = pair_loss(BCE_LOGITS, input, target, NO_REDUCTION, "binary_cross_entropy_with_logits", True)
    else:
        if not same_shape(need_tensor(input, "binary_cross_entropy_with_logits").layout,
                          need_tensor(target, "binary_cross_entropy_with_logits").layout):
            raise worded(ShapeError, "binary_cross_entropy_with_logits: the target has shape {.shape}, but the input has shape {.shape}",
                                     target, input)
        losses = (1 - target) * input + (1 + (pos_weight - 1) * target) * FUNCTIONS["softplus"](-input)
    if weight is not None:
        losses = losses * weight
    return reduce_loss(losses, code)


def cross_entropy(input, target, weight=None, long long ignore_index=-100, reduction="mean", double label_smoothing=0.0):
    """The cross entropy of softmax(input) over classes: dimension 1 of (N, C, ...), or 0 of (C,).

    target: class indices (integers, shape of the input without its class dimension), or probabilities (the input's shape).
    weight: one factor per class. Rows whose target is ignore_index count for nothing. label_smoothing: the share of a uniform
    distribution mixed into the target. reduction: "mean" (weighted, over the rows that count), "sum" or "none".

    Raises ValueError where shapes do not fit, IndexError where a target is no class.
    """
    cdef int code = reduction_code(reduction, "cross_entropy"), i
    cdef Tensor x = float_tensor(input, "cross_entropy")
    cdef Tensor t = <Tensor?> target
    cdef bint fits
    if weight is not None:
        weight = <Tensor?> weight
    if not 0 <= label_smoothing <= 1:
        raise worded(ArgumentError, "cross_entropy: label_smoothing must lie between 0 and 1, got {}", label_smoothing)
    if x.layout.ndim == 0:
        raise ShapeError("cross_entropy: the input needs a class dimension, got a 0-d tensor")
    if weight is not None and weight.shape != (x.shape[1 if x.layout.ndim > 1 else 0],):
        raise worded(ShapeError, "cross_entropy: weight has shape {.shape}, but there are {} classes",
                                 weight, x.shape[1 if x.layout.ndim > 1 else 0])
    if t.dtype_ <= FLOAT64:
        return soft_cross_entropy(x, t, weight, code, label_smoothing)
    fits = t.layout.ndim == x.layout.ndim - 1
    for i in range(t.layout.ndim if fits else 0):
        fits = fits and t.layout.dims[i] == x.layout.dims[i + 1 if i else 0]
    if not fits:
        raise worded(ShapeError, "cross_entropy: class targets of shape {.shape} do not fit an input of shape {.shape}", t, x)
    return losses_of_classes(CROSS_ENTROPY, x, t, weight, ignore_index, reduction, code, label_smoothing)


def nll_loss(input, target, weight=None, long long ignore_index=-100, reduction="mean"):
    """-weight[t] * input[..., t]: the cross entropy of what are logarithms already; int64 targets, the rest as in cross_entropy.

    The mean divides by the sum of the weights of the targets that count, as in PyTorch: NaN when none does.
    Raises ValueError where shapes do not fit, TypeError for other targets, IndexError where a target is neither a class nor ignore_index.
    """
    cdef int code = reduction_code(reduction, "nll_loss"), i
    cdef Tensor x = float_tensor(input, "nll_loss"), t = need_tensor(target, "nll_loss")
    cdef int ndim = x.layout.ndim
    cdef bint fits = t.layout.ndim == ndim - 1 or ndim == 1 and t.layout.ndim == 1 and t.layout.numel == 1
    if t.dtype_ != INT64:
        raise worded(TypeError, "nll_loss expects int64 targets, got {.dtype}", target)
    if ndim == 0:
        raise ShapeError("nll_loss expects input of shape (C,), (N, C) or (N, C, d1, ...), got a 0-d tensor")
    for i in range(ndim - 1 if fits else 0):
        fits = fits and t.layout.dims[i] == x.layout.dims[i + 1 if i else 0]
    if not fits:
        raise worded(ShapeError, "nll_loss expects targets of shape {} for input of shape {.shape}, got {.shape}",
                                 x.shape[:1] + x.shape[2:] if ndim > 1 else (), x, t)
    i = 1 if ndim > 1 else 0
    if weight is not None and (<Tensor?> weight).shape != (x.layout.dims[i],):
        raise worded(ShapeError, "nll_loss expects weight of shape {}, got {.shape}", (x.layout.dims[i],), weight)
    return losses_of_classes(NLL, x, t, weight, ignore_index, reduction, code, 0)


cdef Tensor float_tensor(object x, str name):
    if not isinstance(x, Tensor):
        raise worded(TypeError, "{}: expected a Tensor, got {}", name, type(x).__name__)
    if (<Tensor> x).dtype_ > FLOAT64:
        raise worded(RuntimeError, "{}: the input must be floating point, got {.dtype.name}", name, x)
    return x


cdef void sizes_of_classes(Layout* a, Py_ssize_t* ints) noexcept:
    """(outer, classes, step) of the input, as kernels/rows has it."""
    cdef int i, c = 1 if a.ndim > 1 else 0
    ints[0], ints[1], ints[2] = a.dims[0] if c else 1, a.dims[c], 1
    for i in range(2, a.ndim):
        ints[2] *= a.dims[i]


cdef object losses_of_classes(int opcode, Tensor x, Tensor target, object weight, long long ignore_index, object reduction, int code,
                              double smoothing):
    """The row: what fits was checked."""
    cdef Tensor values = own(contiguous_of(x)), classes = own(contiguous_of(own(converted(target, INT64))))
    cdef Tensor weights = None, prob = None, counted = own(number_tensor(0, x.dtype_)), out
    cdef Layout* layout
    cdef PyObject* arrays[6]
    cdef PyObject* inputs[1]
    cdef Py_ssize_t ints[5]
    if weight is not None:
        weights = own(contiguous_of(own(converted(weight, x.dtype_))))
        if weights.needs_grad:
            raise RuntimeError("cross_entropy, nll_loss: the derivative for 'weight' is not implemented; detach() it")
    layout = layout_scalar() if code != NO_REDUCTION or x.layout.ndim == 1 else layout_contiguous(target.layout.ndim, target.layout.dims)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    if opcode == CROSS_ENTROPY:
        prob = own(tensor_new(values.layout, x.dtype_))
    sizes_of_classes(x.layout, ints)
    ints[3], ints[4] = ignore_index, code
    arrays[0], arrays[1], arrays[3], arrays[4] = <PyObject*> out, <PyObject*> counted, <PyObject*> values, <PyObject*> classes
    arrays[2], arrays[5] = <PyObject*> prob if prob is not None else NULL, <PyObject*> weights if weights is not None else NULL
    run_routine(ENTROPY, arrays, 5, ints, 1, &smoothing)
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        if classes.storage == target.storage:
            classes = own(copy_of(classes, classes.layout))               # the node keeps targets of its own
        attrs = (classes, weights, ignore_index, smoothing, reduction)
        aux = (prob, counted)
        record(opcode, <PyObject*> out, 1, inputs, <PyObject*> attrs, <PyObject*> aux)
    return out


cdef int losses_of_classes_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The first derivative, from the softmax that was kept."""
    cdef Tensor g = own(contiguous_of(<Tensor> grads[0]))
    cdef Layout* layout = node.edges[0].layout
    cdef PyObject* arrays[6]
    cdef Py_ssize_t ints[5]
    cdef double smoothing
    cdef Tensor out
    if node.released or node.extra == NULL:
        saved_or_raise(node, 31)
    target, weight, ignore_index, share, reduction = <tuple> <object> node.attrs
    prob, counted = <tuple> <object> node.extra
    layout = layout_contiguous(layout.ndim, layout.dims)
    out = own(tensor_new(layout, g.dtype_))
    sizes_of_classes(layout, ints)
    layout_decref(layout)
    ints[3], ints[4], smoothing = ignore_index, reduction_code(reduction, "cross_entropy"), share
    arrays[0], arrays[1], arrays[3], arrays[5] = <PyObject*> out, <PyObject*> g, <PyObject*> target, <PyObject*> counted
    arrays[2], arrays[4] = <PyObject*> prob if prob is not None else NULL, <PyObject*> weight if weight is not None else NULL
    run_routine(ENTROPY_BACK, arrays, 5, ints, 1, &smoothing)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


backwards[CROSS_ENTROPY] = backwards[NLL] = losses_of_classes_backward


def no_class(Py_ssize_t status, arrays, ints):
    """The error of the routine."""
    target = (<long long*> <uintptr_t> arrays[4][0])[status]
    return BoundsError(f"{'nll_loss' if arrays[2] is None else 'cross_entropy'}: target {target} at {status} is out of range: "
                       f"there are {ints[1]} classes, and ignore_index is {ints[3]}")


ERRORS[ENTROPY] = no_class


cdef object soft_cross_entropy(Tensor x, Tensor t, object weight, int code, double smoothing):
    """Targets that are probabilities."""
    if not same_shape(x.layout, t.layout):
        raise worded(ShapeError, "cross_entropy: probability targets of shape {.shape} do not fit an input of shape {.shape}", t, x)
    classes = 1 if x.layout.ndim > 1 else 0
    if smoothing:
        t = t * (1 - smoothing) + smoothing / x.shape[classes]
    terms = log_softmax(x, classes) * t
    if weight is not None:
        terms = terms * reshape(weight, (-1, *[1] * (x.layout.ndim - classes - 1)))
    losses = -sum(terms, classes)
    if code == MEAN_REDUCTION:
        return sum(losses) / (losses.numel() or NAN)
    return reduce_loss(losses, code)
