# One fused pass per parameter for each optimiser: SGD, Adam, AdamW, RMSprop.
#
# Relies on nothing but the table.  optim relies on it, through K.
#
# Each formula is torch.optim's single-tensor one, operation for operation and in the same order; numbers are computed in
# double, as Python does, and rounded to the parameter's dtype where a tensor operation would take them.
#
# One thing is not as there: running means and momenta below the smallest normal number become 0 (`kept`). A unit that is dead gets
# gradients of 0, its means decay, and rounding keeps them at a subnormal number for ever (0.9 of 4 units rounds to 4), with which
# processors compute up to a hundred times slower: 6 dead elements of 65 made an update 60 ns longer.

from libc.math cimport pow, sqrt

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.table cimport BLOCK, K, AdamNumbers, Moments

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    #define AG_EXTENDED (LDBL_MANT_DIG == 64)   /* x87: 11 bits more than double, in hardware */
    typedef struct { long double value; double base, correction, root; long long n; } ag_power;
    /* The last correction of each beta: all parameters of a model share the step. */
    static _Thread_local ag_power ag_powers[2];     /* n = 0: none yet */
    /* Not inlined: gcc would look at thread-local memory, which is a call, for every field again. */
    static __attribute__((noinline)) ag_power *ag_last_powers(void) { return ag_powers; }
    """
    bint AG_EXTENDED
    ctypedef struct Power "ag_power":
        long double value
        double base
        double correction
        double root
        long long n
    Power* ag_last_powers() noexcept nogil
    float sqrtf(float x) noexcept nogil
    float fabsf(float x) noexcept nogil
    double fabs(double x) noexcept nogil
    float FLT_MIN
    double DBL_MIN
    # No two of an update's arrays share memory: without that word five of them are compared with each other at each call.
    ctypedef float* float_r "float* __restrict"
    ctypedef double* double_r "double* __restrict"

ctypedef fused real:
    float
    double

ctypedef fused array:
    float_r
    double_r


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrtf(x)
    else:
        return sqrt(x)


cdef inline real kept(real x) noexcept nogil:
    """x, or 0 in place of a subnormal number."""
    if real is float:
        return <float> 0 if fabsf(x) < FLT_MIN else x
    else:
        return <double> 0 if fabs(x) < DBL_MIN else x


cdef long double power(double base, long long n) noexcept nogil:
    """base ** n for n >= 0, as Python rounds it.

    Multiplying in extended precision, by squares or step by step, errs by n units of 2^-64, and n * base^n is at most
    1 / (1 - base): 1 - base^n is right to the last bit for any base of use. libm's pow takes 20 ns, and an update of 48
    elements 15.
    """
    cdef long double result = 1, square = base
    if not AG_EXTENDED:
        return pow(base, <double> n)
    while n > 0:
        if n & 1:
            result *= square
        square *= square
        n >>= 1
    return result


cdef inline void correct(Power* last, double beta, long long step) noexcept nogil:
    """Bring up to date: 1 - beta ** step and its root."""
    if last.n != step or last.base != beta:
        if AG_EXTENDED and last.base == beta and last.n == step - 1 and step > 1:
            last.value *= beta               # the next step of the same training
        else:
            last.value = power(beta, step)
        last.base = beta
        last.n = step
        last.correction = 1 - <double> last.value
        last.root = sqrt(last.correction)


cdef void sgd_loop(Py_ssize_t n, real* p, const real* g, real* buf, double lr, double momentum, double dampening,
                   double weight_decay, bint nesterov, bint maximize, bint first) noexcept nogil:
    """A loop per combination, so that each has no branch; weight_decay 0 adds 0 * p."""
    cdef Py_ssize_t i
    cdef real d
    cdef real b
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
    if first:
        for i in range(n):
            buf[i] = sign * g[i] + decay * p[i]
    elif not nesterov:
        for i in range(n):
            d = sign * g[i] + decay * p[i]
            b = kept(mu * buf[i] + rest * d)
            buf[i] = b
            p[i] = p[i] + step * b
        return
    else:
        for i in range(n):
            buf[i] = kept(mu * buf[i] + rest * (sign * g[i] + decay * p[i]))
    if nesterov:
        for i in range(n):
            d = sign * g[i] + decay * p[i]
            p[i] = p[i] + step * (d + mu * buf[i])
    else:
        for i in range(n):
            p[i] = p[i] + step * buf[i]


cdef inline void adam_loop(Py_ssize_t n, array p, array g, array m, array v, array vmax, real sign, real decay, real shrink,
                           real weight1, bint near, real b2, real weight2, real size, real scale2, real e) noexcept nogil:
    cdef Py_ssize_t i
    cdef real d
    cdef real k
    cdef real w
    cdef real x
    if vmax == NULL:
        for i in range(n):
            x = p[i] * shrink
            d = sign * g[i] + decay * x
            k = m[i]
            k = kept((k if near else d) + weight1 * (d - k))
            m[i] = k
            w = kept(v[i] * b2 + weight2 * d * d)
            v[i] = w
            p[i] = x + size * k / (root(w) / scale2 + e)
    else:
        for i in range(n):
            x = p[i] * shrink
            d = sign * g[i] + decay * x
            k = m[i]
            k = kept((k if near else d) + weight1 * (d - k))
            m[i] = k
            w = kept(v[i] * b2 + weight2 * d * d)
            v[i] = w
            d = vmax[i]
            w = d if d > w else w            # a NaN w stays; a NaN vmax came from a NaN v, which lasts
            vmax[i] = w
            p[i] = x + size * k / (root(w) / scale2 + e)


cdef void adam_all(int count, const Moments* at, array kind, const AdamNumbers* o, real e, long long step) noexcept nogil:
    """Options are numbers, not branches, so that gcc vectorises: a decay of 0 adds 0 * p, a shrink of 1 keeps p."""
    cdef int i
    cdef real sign = -1 if o.maximize else 1
    cdef real decay = <real> (0 if o.decoupled else o.decay), shrink = <real> (1 - o.lr * o.decay if o.decoupled else 1)
    cdef real b2 = <real> o.beta2, weight2 = <real> (1 - o.beta2)
    cdef real size, scale2
    cdef real weight1 = <real> (1 - o.beta1)
    cdef bint near = weight1 < <real> 0.5    # torch.lerp starts from the nearer end
    cdef Power* last = ag_last_powers()
    correct(last, o.beta1, step)
    correct(last + 1, o.beta2, step)
    size = <real> -(o.lr / last[0].correction)
    scale2 = <real> last[1].root
    if not near:
        weight1 = weight1 - <real> 1
    for i in range(count):
        adam_loop(at[i].n, <array> at[i].p, <array> at[i].g, <array> at[i].m, <array> at[i].v, <array> at[i].vmax, sign, decay, shrink,
                  weight1, near, b2, weight2, size, scale2, e)


cdef void rmsprop_loop(Py_ssize_t n, real* p, const real* g, real* square_avg, real* buf, real* grad_avg, double lr,
                       double alpha, double eps, double weight_decay, double momentum, bint maximize) noexcept nogil:
    """In blocks: what g is divided by, then the update."""
    cdef Py_ssize_t i, at = 0, m
    cdef real avg[BLOCK]
    cdef real d
    cdef real k
    cdef real sign = -1 if maximize else 1
    cdef real a = <real> alpha, rest = <real> (1 - alpha), e = <real> eps, decay = <real> weight_decay
    cdef real mu = <real> momentum, step = <real> -lr, weight = rest
    cdef bint near = rest < <real> 0.5
    if not near:
        weight = weight - <real> 1
    while at < n:
        m = min(n - at, <Py_ssize_t> BLOCK)
        for i in range(m):
            d = sign * g[i] + decay * p[i]
            k = kept(square_avg[i] * a + rest * d * d)
            square_avg[i] = k
            avg[i] = k
        if grad_avg != NULL:
            for i in range(m):
                d = sign * g[i] + decay * p[i]
                k = grad_avg[i]
                k = kept((k if near else d) + weight * (d - k))
                grad_avg[i] = k
                avg[i] = avg[i] - k * k
            grad_avg += m
        if momentum > 0:
            for i in range(m):
                d = sign * g[i] + decay * p[i]
                k = kept(buf[i] * mu + d / (root(avg[i]) + e))
                buf[i] = k
                p[i] = p[i] + step * k
            buf += m
        else:
            for i in range(m):
                d = sign * g[i] + decay * p[i]
                p[i] = p[i] + step * d / (root(avg[i]) + e)
        p += m
        g += m
        square_avg += m
        at += m


# ---- the entries of K

cdef void sgd(int dtype, Py_ssize_t n, char* p, const char* g, char* buf, double lr, double momentum, double dampening,
              double weight_decay, int nesterov, int maximize, int first) noexcept nogil:
    if dtype == FLOAT32:
        sgd_loop(n, <float*> p, <const float*> g, <float*> buf, lr, momentum, dampening, weight_decay, nesterov, maximize, first)
    else:
        sgd_loop(n, <double*> p, <const double*> g, <double*> buf, lr, momentum, dampening, weight_decay, nesterov, maximize,
                 first)


cdef void adam(int dtype, int count, const Moments* parameters, const AdamNumbers* numbers, long long step) noexcept nogil:
    if dtype == FLOAT32:
        adam_all(count, parameters, <float_r> NULL, numbers, <float> numbers.eps, step)
    else:
        adam_all(count, parameters, <double_r> NULL, numbers, numbers.eps, step)


cdef void rmsprop(int dtype, Py_ssize_t n, char* p, const char* g, char* square_avg, char* buf, char* grad_avg, double lr,
                  double alpha, double eps, double weight_decay, double momentum, int maximize) noexcept nogil:
    if dtype == FLOAT32:
        rmsprop_loop(n, <float*> p, <const float*> g, <float*> square_avg, <float*> buf, <float*> grad_avg, lr, alpha, eps,
                     weight_decay, momentum, maximize)
    else:
        rmsprop_loop(n, <double*> p, <const double*> g, <double*> square_avg, <double*> buf, <double*> grad_avg, lr, alpha, eps,
                     weight_decay, momentum, maximize)


K.sgd = sgd
K.adam = adam
K.rmsprop = rmsprop
