# One fused pass per parameter for each optimiser: SGD, Adam, AdamW, RMSprop; also gradient norms and scaling.
#
# Relies on fold.pxd (sums of squares).  optim relies on it, through K.
#
# Each formula is torch.optim's single-tensor one, operation for operation and in the same order; numbers are computed in
# double, as Python does, and rounded to the parameter's dtype where a tensor operation would take them.

from libc.math cimport pow, sqrt

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.fold cimport OP_SUM, fold_contiguous
from autograd_cy.kernels.table cimport BLOCK, K

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    #define AG_EXTENDED (LDBL_MANT_DIG == 64)   /* x87: 11 bits more than double, in hardware */
    """
    bint AG_EXTENDED
    float sqrtf(float x) noexcept nogil
    # Without restrict, gcc does not vectorise loops over this many pointers: too many overlaps to check for.
    ctypedef float* f32 "float* __restrict"
    ctypedef double* f64 "double* __restrict"

ctypedef fused real:
    float
    double


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrtf(x)
    else:
        return sqrt(x)


cdef double power(double base, long long n) noexcept nogil:
    """base ** n for n >= 0, as Python rounds it.

    Squaring in extended precision errs by n units of 2^-64, and n * base^n is at most 1 / (1 - base): 1 - base^n is right
    to the last bit for any base of use. libm's pow takes 20 ns, and an update of 48 elements 15.
    """
    cdef long double result = 1, square = base
    if not AG_EXTENDED:
        return pow(base, <double> n)
    while n > 0:
        if n & 1:
            result *= square
        square *= square
        n >>= 1
    return <double> result


cdef void sgd_loop(Py_ssize_t n, real* p, const real* g, real* buf, double lr, double momentum, double dampening,
                   double weight_decay, bint nesterov, bint maximize, bint first) noexcept nogil:
    cdef Py_ssize_t i
    cdef real d
    cdef real sign = -1 if maximize else 1
    cdef real decay = <real> weight_decay, mu = <real> momentum, rest = <real> (1 - dampening), step = <real> -lr
    if momentum == 0:
        if weight_decay == 0:
            for i in range(n):
                p[i] = p[i] + step * (sign * g[i])
        else:
            for i in range(n):
                p[i] = p[i] + step * (sign * g[i] + decay * p[i])
        return
    for i in range(n):
        d = sign * g[i]
        if weight_decay != 0:
            d = d + decay * p[i]
        buf[i] = d if first else mu * buf[i] + rest * d
        d = d + mu * buf[i] if nesterov else buf[i]
        p[i] = p[i] + step * d


cdef inline real lerp(real a, real b, real weight) noexcept nogil:
    """torch.lerp: exact at both ends"""
    return a + weight * (b - a) if weight < <real> 0.5 else b - (b - a) * (<real> 1 - weight)   # a bare 1 is a double in C


cdef void adam_loop(Py_ssize_t n, real* p, const real* g, real* m, real* v, real* vmax, double lr, double beta1,
                    double beta2, double eps, double weight_decay, bint decoupled, bint maximize,
                    long long step) noexcept nogil:
    cdef Py_ssize_t i
    cdef real d
    cdef real w
    cdef real x
    cdef real sign = -1 if maximize else 1
    cdef real decay = <real> weight_decay, shrink = <real> (1 - lr * weight_decay)
    cdef real weight1 = <real> (1 - beta1), b2 = <real> beta2, weight2 = <real> (1 - beta2), e = <real> eps
    cdef real size = <real> -(lr / (1 - power(beta1, step))), correction = <real> sqrt(1 - power(beta2, step))
    cdef bint adds = weight_decay != 0 and not decoupled, shrinks = weight_decay != 0 and decoupled
    for i in range(n):
        d = sign * g[i]
        x = p[i]
        if shrinks:
            x = x * shrink
        if adds:
            d = d + decay * x
        m[i] = lerp(m[i], d, weight1)
        w = v[i] * b2 + weight2 * d * d
        v[i] = w
        if vmax != NULL:
            w = w if w > vmax[i] or w != w else vmax[i]
            vmax[i] = w
        p[i] = x + size * m[i] / (root(w) / correction + e)


cdef void rmsprop_loop(Py_ssize_t n, real* p, const real* g, real* square_avg, real* buf, real* grad_avg, double lr,
                       double alpha, double eps, double weight_decay, double momentum, bint maximize) noexcept nogil:
    cdef Py_ssize_t i
    cdef real d
    cdef real avg
    cdef real sign = -1 if maximize else 1
    cdef real a = <real> alpha, rest = <real> (1 - alpha), e = <real> eps, decay = <real> weight_decay
    cdef real mu = <real> momentum, step = <real> -lr
    for i in range(n):
        d = sign * g[i]
        if weight_decay != 0:
            d = d + decay * p[i]
        avg = square_avg[i] * a + rest * d * d
        square_avg[i] = avg
        if grad_avg != NULL:
            grad_avg[i] = lerp(grad_avg[i], d, rest)
            avg = avg - grad_avg[i] * grad_avg[i]
        avg = root(avg) + e
        if momentum > 0:
            buf[i] = buf[i] * mu + d / avg
            p[i] = p[i] + step * buf[i]
        else:
            p[i] = p[i] + step * d / avg


cdef double squares(Py_ssize_t n, const real* x) noexcept nogil:
    """In double whatever the dtype: squares of float32 cannot overflow there, and their sum is exact to 1e-16."""
    cdef double block[BLOCK]
    cdef double total = 0
    cdef Py_ssize_t at = 0, i, m
    while at < n:
        m = min(n - at, <Py_ssize_t> BLOCK)
        for i in range(m):
            block[i] = <double> x[at + i] * <double> x[at + i]
        total += fold_contiguous(OP_SUM, block, m)
        at += m
    return total


# ---- the entries of K

cdef void sgd(int dtype, Py_ssize_t n, char* p, const char* g, char* buf, double lr, double momentum, double dampening,
              double weight_decay, int nesterov, int maximize, int first) noexcept nogil:
    if dtype == FLOAT32:
        sgd_loop(n, <float*> p, <const float*> g, <float*> buf, lr, momentum, dampening, weight_decay, nesterov, maximize, first)
    else:
        sgd_loop(n, <double*> p, <const double*> g, <double*> buf, lr, momentum, dampening, weight_decay, nesterov, maximize,
                 first)


cdef void adam(int dtype, Py_ssize_t n, char* p, const char* g, char* m, char* v, char* vmax, double lr, double beta1,
               double beta2, double eps, double weight_decay, int decoupled, int maximize, long long step) noexcept nogil:
    if dtype == FLOAT32:
        adam_loop(n, <float*> p, <const float*> g, <float*> m, <float*> v, <float*> vmax, lr, beta1, beta2, eps, weight_decay,
                  decoupled, maximize, step)
    else:
        adam_loop(n, <double*> p, <const double*> g, <double*> m, <double*> v, <double*> vmax, lr, beta1, beta2, eps,
                  weight_decay, decoupled, maximize, step)


cdef void rmsprop(int dtype, Py_ssize_t n, char* p, const char* g, char* square_avg, char* buf, char* grad_avg, double lr,
                  double alpha, double eps, double weight_decay, double momentum, int maximize) noexcept nogil:
    if dtype == FLOAT32:
        rmsprop_loop(n, <float*> p, <const float*> g, <float*> square_avg, <float*> buf, <float*> grad_avg, lr, alpha, eps,
                     weight_decay, momentum, maximize)
    else:
        rmsprop_loop(n, <double*> p, <const double*> g, <double*> square_avg, <double*> buf, <double*> grad_avg, lr, alpha, eps,
                     weight_decay, momentum, maximize)


cdef double sum_of_squares(int dtype, Py_ssize_t n, const char* x) noexcept nogil:
    if dtype == FLOAT32:
        return squares(n, <const float*> x)
    return squares(n, <const double*> x)


cdef void scale(int dtype, Py_ssize_t n, char* x, double factor) noexcept nogil:
    cdef Py_ssize_t i
    cdef float f = <float> factor
    if dtype == FLOAT32:
        for i in range(n):
            (<float*> x)[i] = (<float*> x)[i] * f
    else:
        for i in range(n):
            (<double*> x)[i] = (<double*> x)[i] * factor


K.sgd = sgd
K.adam = adam
K.rmsprop = rmsprop
K.sum_of_squares = sum_of_squares
K.scale = scale
