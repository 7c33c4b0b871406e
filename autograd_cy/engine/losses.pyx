# Losses as single nodes: an elementwise row followed by its sum or mean, and the cross entropy of rows.
#
# Relies on dispatch (elementwise rows), kernels/rows, record. nn.functional re-exports the functions.

import warnings

from cpython.object cimport PyObject
from libc.math cimport NAN

from autograd_cy.array.dtype cimport FLOAT64, INT64
from autograd_cy.array.layout cimport DENSE, Layout, layout_broadcast, layout_contiguous, layout_decref, same_layout, same_shape
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.dense cimport dense_loss
from autograd_cy.engine.dispatch cimport elementwise
from autograd_cy.engine.node cimport MEAN_REDUCTION, NO_REDUCTION, SUM_REDUCTION
from autograd_cy.engine.object cimport KNOWN_PLACES, Known, attribute_at, own
from autograd_cy.engine.operands cimport GRAIN, contiguous_of, converted, number_tensor
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_new
from autograd_cy.kernels.table cimport K

from autograd_cy.array.errors import ArgumentError, ShapeError
from autograd_cy.engine.elementwise import exp
from autograd_cy.engine.gradients import FUNCTIONS
from autograd_cy.engine.reduce import log_softmax, mean, sum
from autograd_cy.engine.shape import movedim, reshape, unsqueeze

cdef int MSE = row_number("mse_loss"), L1 = row_number("l1_loss"), HUBER = row_number("huber_loss")
cdef int BCE = row_number("binary_cross_entropy"), BCE_LOGITS = row_number("binary_cross_entropy_with_logits")
cdef int CROSS_ENTROPY = row_number("cross_entropy")


cdef int reduction_code(object reduction, str name) except -1:
    if reduction == "mean":
        return MEAN_REDUCTION
    if reduction == "sum":
        return SUM_REDUCTION
    if reduction == "none":
        return NO_REDUCTION
    raise ValueError(f"{name}: reduction must be \"none\", \"mean\" or \"sum\", got {reduction!r}")


cdef object reduce_loss(object losses, int reduction):
    if reduction == NO_REDUCTION:
        return losses
    return mean(losses) if reduction == MEAN_REDUCTION else sum(losses)


cdef object pair_loss(int opcode, object x, object target, int reduction, str name, bint strict, const double* attrs=NULL):
    cdef PyObject* args[2]
    cdef Layout* layout
    if not is_tensor(<PyObject*> x) or not is_tensor(<PyObject*> target):
        raise TypeError(f"{name}: input and target must be tensors, got {type(x).__name__} and {type(target).__name__}")
    if not same_shape((<Tensor> x).layout, (<Tensor> target).layout):
        if strict:
            raise ShapeError(f"{name}: the target has shape {target.shape}, but the input has shape {x.shape}")
        layout = layout_broadcast((<Tensor> x).layout, (<Tensor> target).layout)
        if layout == NULL:
            raise ShapeError(f"{name}: shapes {x.shape} and {target.shape} do not broadcast against each other")
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
            raise ShapeError(f"binary_cross_entropy_with_logits: the target has shape {target.shape}, "
                             f"but the input has shape {input.shape}")
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
    cdef Tensor x = float_tensor(input)
    cdef Tensor t = <Tensor?> target
    cdef bint fits
    if weight is not None:
        weight = <Tensor?> weight
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy: label_smoothing must lie between 0 and 1, got {label_smoothing}")
    if x.layout.ndim == 0:
        raise ShapeError("cross_entropy: the input needs a class dimension, got a 0-d tensor")
    if weight is not None and weight.shape != (x.shape[1 if x.layout.ndim > 1 else 0],):
        raise ShapeError(f"cross_entropy: weight has shape {weight.shape}, but there are {x.shape[1 if x.layout.ndim > 1 else 0]} classes")
    if t.dtype_ <= FLOAT64:
        return soft_cross_entropy(x, t, weight, code, label_smoothing)
    fits = t.layout.ndim == x.layout.ndim - 1
    for i in range(t.layout.ndim if fits else 0):
        fits = fits and t.layout.dims[i] == x.layout.dims[i + 1 if i else 0]
    if not fits:
        raise ShapeError(f"cross_entropy: class targets of shape {t.shape} do not fit an input of shape {x.shape}")
    rows, flat = x, t
    if x.layout.ndim > 2:
        rows = reshape(movedim(x, 1, -1), (t.layout.numel, x.layout.dims[1]))
    elif x.layout.ndim == 1:
        rows = unsqueeze(x, 0)
    if t.layout.ndim != 1:
        flat = reshape(t, (-1,))
    losses, counted = row_losses(rows, flat, weight, ignore_index, label_smoothing, code == MEAN_REDUCTION)
    if code == NO_REDUCTION:
        return losses if t.layout.ndim == 1 else reshape(losses, t.shape)
    total = sum(losses)
    return total if code == SUM_REDUCTION else total / counted


cdef Tensor float_tensor(object x):
    if not isinstance(x, Tensor):
        raise TypeError(f"cross_entropy: expected a Tensor, got {type(x).__name__}")
    if (<Tensor> x).dtype_ > FLOAT64:
        raise RuntimeError(f"cross_entropy: the input must be floating point, got {x.dtype.name}")
    return x


cdef tuple row_losses(Tensor x, Tensor target, object weight, long long ignore_index, double smoothing, bint count):
    """Losses of the rows of x (N, C), and what their mean divides by (None unless `count`)."""
    cdef Py_ssize_t rows = x.layout.dims[0]
    cdef Py_ssize_t cols = x.layout.dims[1]
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t bad
    cdef Tensor values = own(contiguous_of(x))
    cdef Tensor classes = own(contiguous_of(own(converted(target, INT64))))
    cdef Tensor weights = None
    cdef Tensor prob
    cdef Tensor losses
    cdef Tensor counted = None
    cdef Layout* layout
    cdef PyObject* inputs[1]
    if classes.storage == target.storage:
        classes = classes.clone()               # the node keeps targets of its own
    if weight is not None:
        weights = own(contiguous_of(own(converted(weight, x.dtype_))))
    prob = own(tensor_new(values.layout, x.dtype_))
    shape[0] = rows
    layout = layout_contiguous(1, shape)
    losses = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    if count:
        counted = own(number_tensor(0, x.dtype_))
    bad = K.cross_entropy(x.dtype_, rows, cols, values.data, <const long long*> classes.data,
                          weights.data if weights is not None else NULL, ignore_index, smoothing, prob.data, losses.data,
                          counted.data if count else NULL)
    if bad >= 0:
        raise IndexError(f"cross_entropy: target {(<long long*> classes.data)[bad]} of row {bad} is not a class: there are {cols} "
                         f"classes, and ignore_index is {ignore_index}")
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (classes, weights, ignore_index, smoothing)
        aux = (prob,)
        record(CROSS_ENTROPY, <PyObject*> losses, 1, inputs, <PyObject*> attrs, <PyObject*> aux)
    return losses, counted


cdef object soft_cross_entropy(Tensor x, Tensor t, object weight, int code, double smoothing):
    """Targets that are probabilities."""
    if not same_shape(x.layout, t.layout):
        raise ShapeError(f"cross_entropy: probability targets of shape {t.shape} do not fit an input of shape {x.shape}")
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


def cross_entropy_back(Tensor g, Tensor x, Tensor prob, Tensor target, weight, ignore_index, smoothing):
    """The gradient of the row losses: from the saved softmax, or (to be differentiated again) from x by tensor code."""
    cdef Tensor out
    cdef Tensor rows
    if x.needs_grad or g.needs_grad:
        return cross_entropy_rule(g, x, target, weight, ignore_index, smoothing)
    rows = own(contiguous_of(g))
    out = own(tensor_new(prob.layout, prob.dtype_))
    K.cross_entropy_backward(prob.dtype_, prob.layout.dims[0], prob.layout.dims[1], rows.data, 1, prob.data,
                             <const long long*> target.data, (<Tensor> weight).data if weight is not None else NULL,
                             <long long> ignore_index, <double> smoothing, out.data)
    return out


cdef object cross_entropy_rule(Tensor g, Tensor x, Tensor target, object weight, object ignore_index, double smoothing):
    """g_i * (softmax(x_i) * sum_c q_ic - q_i), where q are the weighted, smoothed targets."""
    cdef Py_ssize_t classes = x.layout.dims[1]
    counts = target != ignore_index
    hot = FUNCTIONS["eq"](unsqueeze(FUNCTIONS["where"](counts, target, 0), 1), FUNCTIONS["arange"](classes))
    q = FUNCTIONS["convert"](hot, x.dtype_)
    if weight is not None:
        q = q * weight * (1 - smoothing) + FUNCTIONS["expand"](weight, (x.layout.dims[0], classes)) * (smoothing / classes)
    elif smoothing:
        q = q * (1 - smoothing) + smoothing / classes
    q = FUNCTIONS["where"](unsqueeze(counts, 1), q, 0)
    prob = exp(log_softmax(x, 1))
    return unsqueeze(g, 1) * (prob * sum(q, 1, True) - q)
