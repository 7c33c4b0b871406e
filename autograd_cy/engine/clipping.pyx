# Gradients limited to a joint norm: a few loops on single values, and one on each gradient.
#
# Relies on tensor and on the kernels through `K`. nn.utils relies on it.

from libc.math cimport INFINITY, isfinite

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport DENSE, Layout, layout_contiguous, layout_decref, layout_scalar, strides_of
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport converted, promote
from autograd_cy.engine.tensor cimport Tensor, tensor_new
from autograd_cy.kernels.table cimport (
    ALL_VECTORS, FIRST_SCALAR, K, LAST_SCALAR, REDUCE_NORM, escape, recording, run_loop,
)

from autograd_cy.array.errors import worded

from autograd_cy.ops import loop_id

cdef int ADD_LOOP = loop_id("add"), DIV_LOOP = loop_id("div"), MUL_LOOP = loop_id("mul"), CLAMP_LOOP = loop_id("clamp")


cdef Tensor joint_norm(list gradients, double p):
    """The p-norm of all elements of all gradients, 0-d: the norm of their norms."""
    cdef Py_ssize_t zeros[MAX_NDIM]
    cdef Py_ssize_t n = len(gradients), step = 1, i
    cdef Layout* layout
    cdef Tensor g, norms, total, one = None
    cdef int dtype = -1
    cdef char* place
    for item in gradients:
        g = <Tensor?> item
        if g.dtype_ > FLOAT64:
            raise worded(TypeError, "gradients must be float32 or float64, got {.dtype}", g)
        dtype = promote(dtype, g.dtype_)
    for i in range(MAX_NDIM):
        zeros[i] = 0
    layout = layout_scalar()
    total = own(tensor_new(layout, dtype))
    layout_decref(layout)
    layout = layout_contiguous(1, &n)
    norms = own(tensor_new(layout, dtype))
    layout_decref(layout)
    for i in range(n):
        g = <Tensor> gradients[i]
        place = norms.data + i * itemsize_of(dtype)
        if g.dtype_ != dtype:
            one = own(tensor_new(total.layout, g.dtype_))
            place = one.data
        K.reduce(REDUCE_NORM, g.dtype_, g.layout.ndim, g.layout.dims, g.data, strides_of(g.layout), place, zeros, p)
        if g.dtype_ != dtype:
            K.copy(0, NULL, dtype, norms.data + i * itemsize_of(dtype), NULL, g.dtype_, place, NULL)
    K.reduce(REDUCE_NORM, dtype, 1, &n, norms.data, &step, total.data, zeros, p)
    return total


cdef Tensor clip_factor(Tensor norm, double max_norm):
    """max_norm / (norm + 1e-6), at most 1; by loops, as the operators would take a microsecond."""
    cdef Tensor factor = own(tensor_new(norm.layout, norm.dtype_))
    cdef double[2] numbers
    cdef float[2] singles
    cdef double[2] bounds
    cdef char* p[3]
    cdef bint single = norm.dtype_ == FLOAT32
    numbers[0], numbers[1] = 1e-6, max_norm
    singles[0], singles[1] = 1e-6, <float> max_norm
    bounds[0], bounds[1] = -INFINITY, 1
    p[0], p[1], p[2] = factor.data, norm.data, <char*> &singles[0] if single else <char*> &numbers[0]
    run_loop(ADD_LOOP, norm.dtype_, LAST_SCALAR, 1, p, NULL)
    p[1], p[2] = <char*> &singles[1] if single else <char*> &numbers[1], factor.data
    run_loop(DIV_LOOP, norm.dtype_, FIRST_SCALAR, 1, p, NULL)
    p[1] = factor.data
    run_loop(CLAMP_LOOP, norm.dtype_, ALL_VECTORS, 1, p, bounds)
    return factor


cdef int scale_by(Tensor g, Tensor factor) except -1:
    """g *= factor, outside the graph."""
    cdef char* p[3]
    if g.dtype_ != factor.dtype_:
        factor = own(converted(factor, g.dtype_))
    if g.layout.flags & DENSE:
        p[0], p[1], p[2] = g.data, g.data, factor.data
        run_loop(MUL_LOOP, g.dtype_, LAST_SCALAR, g.layout.numel, p, NULL)
        g.storage.version += 1
    else:
        g.mul_(factor)
    return 0


def clip_norm(list gradients, double max_norm, double norm_type, error_if_nonfinite):
    """Scale gradients in place by max_norm / (norm + 1e-6), at most 1; returns the norm before that. Called without recording."""
    cdef Tensor total = joint_norm(gradients, norm_type)
    cdef Tensor factor
    cdef bint single = total.dtype_ == FLOAT32
    if error_if_nonfinite:
        escape("clip_grad_norm_(..., error_if_nonfinite=True)")
        if not isfinite((<float*> total.data)[0] if single else (<double*> total.data)[0]):
            raise worded(RuntimeError, "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be "
                                       "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                                       "`error_if_nonfinite=False`", norm_type)
    factor = clip_factor(total, max_norm)
    # Nothing is left to do where the factor is 1; a captured step may not look.
    if not recording() and ((<float*> factor.data)[0] if single else (<double*> factor.data)[0]) == 1:
        return total
    for item in gradients:
        scale_by(<Tensor> item, factor)
    return total
