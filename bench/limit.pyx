# The limit: the trainings written by hand with the library's own kernels, every buffer allocated once, one nogil loop.
# What an eager library could at best reach with these kernels: no tensors, no graph, no Python.
#
# Relies on the kernel table (autograd_cy/kernels/table.pxd), on gemm and on the names of the generated loops.
# bench/compiled.py builds it; the columns "limit" of the trainings rely on it.

import numpy as np

from libc.string cimport memcpy

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64
from autograd_cy.kernels.gemm cimport bind_blas, gemm_run
from autograd_cy.kernels.table cimport (
    ALL_VECTORS, FIRST_SCALAR, K, LAST_SCALAR, REDUCE_MEAN, REDUCE_SUM, AdamNumbers, Array, Loop, Moments,
)

from autograd_cy.kernels.table import routine_number
from autograd_cy.ops import loop_id


cdef Loop find(str name, int dtype, int variant=ALL_VECTORS) except NULL:
    """The loop of this name; a derivative is called "sigmoid.dx"."""
    cdef Loop loop = K.loops[<int>loop_id(name)][dtype][variant]
    if loop == NULL:
        raise LookupError(f"no loop {name!r} for dtype {dtype}, variant {variant}")
    return loop


cdef char* data(array) except NULL:
    """The first element of a C-contiguous array that the caller keeps alive."""
    if not array.flags.c_contiguous:
        raise ValueError("limit: arrays must be C-contiguous")
    return <char*><size_t>array.ctypes.data


cdef char* room(list keep, dtype, Py_ssize_t size) except NULL:
    """The first of `size` new elements, which live as long as `keep`."""
    made = np.empty(size, dtype)
    keep.append(made)
    return data(made)


cdef int code(array) except -1:
    return {"float32": FLOAT32, "float64": FLOAT64}[array.dtype.name]


cdef inline void unary(Loop loop, Py_ssize_t n, char* out, char* a) noexcept nogil:
    cdef char* p[2]
    p[0] = out
    p[1] = a
    loop(n, p, NULL)


cdef inline void binary(Loop loop, Py_ssize_t n, char* out, char* a, char* b) noexcept nogil:
    cdef char* p[3]
    p[0] = out
    p[1] = a
    p[2] = b
    loop(n, p, NULL)


cdef inline void ternary(Loop loop, Py_ssize_t n, char* out, char* a, char* b, char* c) noexcept nogil:
    cdef char* p[4]
    p[0] = out
    p[1] = a
    p[2] = b
    p[3] = c
    loop(n, p, NULL)


def iris(x, y, w1, w2, double lr, Py_ssize_t epochs):
    """Train w1 (4, 10) and w2 (10, 3) in place; returns the last loss."""
    cdef int dt = code(x)
    cdef Py_ssize_t n = x.shape[0], i = x.shape[1], h = w1.shape[1], o = w2.shape[1], epoch
    hidden, dhidden = np.empty((n, h), x.dtype), np.empty((n, h), x.dtype)
    out, work = np.empty((n, o), x.dtype), np.empty((n, o), x.dtype)
    dw1, dw2, total, unit = np.empty_like(w1), np.empty_like(w2), np.zeros(1, x.dtype), np.ones(1, x.dtype)
    cdef char* px = data(x)
    cdef char* py = data(y)
    cdef char* pw1 = data(w1)
    cdef char* pw2 = data(w2)
    cdef char* ph = data(hidden)
    cdef char* pdh = data(dhidden)
    cdef char* po = data(out)
    cdef char* pt = data(work)
    cdef char* pdw1 = data(dw1)
    cdef char* pdw2 = data(dw2)
    cdef char* ptotal = data(total)
    cdef char* pone = data(unit)
    cdef Loop sigmoid = find("sigmoid", dt), dsigmoid = find("sigmoid.dx", dt)
    cdef Loop bce = find("binary_cross_entropy_with_logits", dt)
    cdef Loop dbce = find("binary_cross_entropy_with_logits.dx", dt, FIRST_SCALAR)
    cdef Py_ssize_t size = n * o, one = 1, zero = 0
    with nogil:
        for epoch in range(epochs):
            K.small_gemm(dt, 0, 0, n, h, i, px, i, pw1, h, ph, h)
            unary(sigmoid, n * h, ph, ph)
            K.small_gemm(dt, 0, 0, n, o, h, ph, h, pw2, o, po, o)
            binary(bce, size, pt, po, py)
            K.reduce(REDUCE_SUM, dt, 1, &size, pt, &one, ptotal, &zero, 0)
            ternary(dbce, size, pt, pone, po, py)
            K.small_gemm(dt, 1, 0, h, o, n, ph, h, pt, o, pdw2, o)
            K.small_gemm(dt, 0, 1, n, h, o, pt, o, pw2, o, pdh, h)
            binary(dsigmoid, n * h, pdh, pdh, ph)
            K.small_gemm(dt, 1, 0, i, h, n, px, i, pdh, h, pdw1, h)
            K.sgd(dt, i * h, pw1, pdw1, NULL, lr, 0, 0, 0, 0, 0, epoch == 0)
            K.sgd(dt, h * o, pw2, pdw2, NULL, lr, 0, 0, 0, 0, 0, epoch == 0)
    return float(total[0])


def xor(x, y, w1, b1, w2, b2, mw1, vw1, mb1, vb1, mw2, vw2, mb2, vb2, double lr, long long done, Py_ssize_t epochs):
    """Train the four parameters (PyTorch's layout) and their moments in place, after `done` steps; returns the last loss."""
    cdef int dt = code(x)
    cdef Py_ssize_t n = x.shape[0], i = x.shape[1], h = w1.shape[0], o = 1, row, epoch
    cdef Py_ssize_t item = x.itemsize
    hidden, dhidden = np.empty((n, h), x.dtype), np.empty((n, h), x.dtype)
    out, error, work = np.empty((n, o), x.dtype), np.empty((n, o), x.dtype), np.empty((n, o), x.dtype)
    dw1, db1, dw2, db2 = np.empty_like(w1), np.empty_like(b1), np.empty_like(w2), np.empty_like(b2)
    total, factor = np.zeros(1, x.dtype), np.array([1.0 / n], x.dtype)
    cdef char* px = data(x)
    cdef char* py = data(y)
    cdef char* ph = data(hidden)
    cdef char* pdh = data(dhidden)
    cdef char* po = data(out)
    cdef char* pe = data(error)
    cdef char* pt = data(work)
    cdef char* ptotal = data(total)
    cdef char* pfactor = data(factor)
    cdef char* p[4]
    cdef char* g[4]
    cdef Moments moments[4]
    cdef AdamNumbers adam = AdamNumbers(lr=lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0, decoupled=0, maximize=0)
    cdef int k
    for k, (weight, gradient, first, second) in enumerate([(w1, dw1, mw1, vw1), (b1, db1, mb1, vb1), (w2, dw2, mw2, vw2),
                                                           (b2, db2, mb2, vb2)]):
        p[k], g[k] = data(weight), data(gradient)
        moments[k] = Moments(n=weight.size, p=p[k], g=g[k], m=data(first), v=data(second), vmax=NULL)
    cdef Loop add = find("add", dt), add_number = find("add", dt, LAST_SCALAR)
    cdef Loop mse = find("mse_loss", dt), dmse = find("mse_loss.dx", dt, FIRST_SCALAR)
    cdef Loop relu = find("relu", dt), drelu = find("relu.dx", dt)
    cdef Loop sigmoid = find("sigmoid", dt), dsigmoid = find("sigmoid.dx", dt)
    cdef Py_ssize_t matrix[2]
    cdef Py_ssize_t strides[2]
    cdef Py_ssize_t columns[2]
    cdef Py_ssize_t one = 1, zero = 0, size = n * o
    matrix[0], matrix[1] = n, h
    strides[0], strides[1] = h, 1
    columns[0], columns[1] = 0, 1
    with nogil:
        for epoch in range(epochs):
            K.small_gemm(dt, 0, 1, n, h, i, px, i, p[0], i, ph, h)
            for row in range(n):
                binary(add, h, ph + row * h * item, ph + row * h * item, p[1])
            unary(relu, n * h, ph, ph)
            K.small_gemm(dt, 0, 1, n, o, h, ph, h, p[2], h, po, o)
            binary(add_number, size, po, po, p[3])
            unary(sigmoid, size, po, po)
            binary(mse, size, pt, po, py)
            K.reduce(REDUCE_MEAN, dt, 1, &size, pt, &one, ptotal, &zero, 0)
            ternary(dmse, size, pe, pfactor, po, py)
            binary(dsigmoid, size, pe, pe, po)
            K.small_gemm(dt, 1, 0, o, h, n, pe, o, ph, h, g[2], h)
            K.reduce(REDUCE_SUM, dt, 1, &size, pe, &one, g[3], &zero, 0)
            K.small_gemm(dt, 0, 0, n, h, o, pe, o, p[2], h, pdh, h)
            binary(drelu, n * h, pdh, pdh, ph)
            K.small_gemm(dt, 1, 0, h, i, n, pdh, h, px, i, g[0], i)
            K.reduce(REDUCE_SUM, dt, 2, matrix, pdh, strides, g[1], columns, 0)
            K.adam(dt, 4, moments, &adam, done + epoch + 1)
    return float(total[0])


cdef enum:
    MAX_LAYERS = 8
    THEIR_MEAN = 1            # of losses, in the routine rows.cross_entropy

cdef struct Layer:
    Py_ssize_t i, o           # from i features to o
    char* w
    char* b
    char* dw
    char* db
    char* out
    char* dout


def mlp(x, labels, parameters, moments, double lr, long long done, Py_ssize_t epochs):
    """Train layers of (weight, bias) with relu between them, cross entropy and Adam, after `done` steps; returns the last loss.

    parameters: [weight, bias, weight, bias ...] in PyTorch's layout; moments: two arrays for each of them.
    """
    cdef int dt = code(x)
    cdef Py_ssize_t item = x.itemsize, n = x.shape[0], row, epoch
    cdef int k, count = len(parameters) // 2
    cdef Layer layers[MAX_LAYERS]
    cdef Moments updated[2 * MAX_LAYERS]
    cdef AdamNumbers adam = AdamNumbers(lr=lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0, decoupled=0, maximize=0)
    cdef Layer* at
    cdef Py_ssize_t one = 1
    if count > MAX_LAYERS:
        raise ValueError(f"limit: at most {MAX_LAYERS} layers")
    keep = []
    for k in range(count):
        at = &layers[k]
        at.o, at.i = parameters[2 * k].shape
        at.w, at.dw = data(parameters[2 * k]), room(keep, x.dtype, at.o * at.i)
        at.b, at.db = data(parameters[2 * k + 1]), room(keep, x.dtype, at.o)
        updated[2 * k] = Moments(n=at.o * at.i, p=at.w, g=at.dw, m=data(moments[4 * k]), v=data(moments[4 * k + 1]), vmax=NULL)
        updated[2 * k + 1] = Moments(n=at.o, p=at.b, g=at.db, m=data(moments[4 * k + 2]), v=data(moments[4 * k + 3]), vmax=NULL)
        at.out, at.dout = room(keep, x.dtype, n * at.o), room(keep, x.dtype, n * at.o)
    cdef char* px = data(x)
    at = &layers[count - 1]
    total, counted, ones = np.zeros(1, x.dtype), np.zeros(1, x.dtype), np.ones(1, x.dtype)
    cdef char* probabilities = room(keep, x.dtype, n * at.o)
    cdef int entropy = routine_number("rows.cross_entropy"), entropy_back = routine_number("rows.cross_entropy_back")
    cdef Array forward[6]
    cdef Array backward[6]
    cdef Py_ssize_t* rows = [n, at.o, 1, -100, THEIR_MEAN]
    cdef double smoothing = 0
    cdef char** taken = [data(total), data(counted), probabilities, at.out, data(labels), NULL]
    cdef char** given_back = [at.dout, data(ones), probabilities, data(labels), NULL, data(counted)]
    for k in range(6):
        forward[k] = Array(data=taken[k], dtype=dt, ndim=1, shape=&n, strides=&one)
        backward[k] = Array(data=given_back[k], dtype=dt, ndim=1, shape=&n, strides=&one)
    cdef char* below
    cdef Loop add = find("add", dt), relu = find("relu", dt), drelu = find("relu.dx", dt)
    cdef Py_ssize_t matrix[2]
    cdef Py_ssize_t strides[2]
    cdef Py_ssize_t columns[2]
    bind_blas()
    with nogil:
        for epoch in range(epochs):
            below = px
            for k in range(count):
                at = &layers[k]
                gemm_run(dt, 0, 1, 1, n, at.o, at.i, below, at.i, 0, at.w, at.i, 0, at.out, at.o, 0)
                for row in range(n):
                    binary(add, at.o, at.out + row * at.o * item, at.out + row * at.o * item, at.b)
                if k < count - 1:
                    unary(relu, n * at.o, at.out, at.out)
                below = at.out
            at = &layers[count - 1]
            K.routine(entropy, forward, 5, rows, 1, &smoothing)
            K.routine(entropy_back, backward, 5, rows, 1, &smoothing)
            for k in range(count - 1, -1, -1):
                at = &layers[k]
                below = px if k == 0 else layers[k - 1].out
                gemm_run(dt, 1, 0, 1, at.o, at.i, n, at.dout, at.o, 0, below, at.i, 0, at.dw, at.i, 0)
                matrix[0], matrix[1], strides[0], strides[1], columns[0], columns[1] = n, at.o, at.o, 1, 0, 1
                K.reduce(REDUCE_SUM, dt, 2, matrix, at.dout, strides, at.db, columns, 0)
                if k:
                    gemm_run(dt, 0, 0, 1, n, at.i, at.o, at.dout, at.o, 0, at.w, at.i, 0, layers[k - 1].dout, at.i, 0)
                    binary(drelu, n * at.i, layers[k - 1].dout, layers[k - 1].dout, below)
            K.adam(dt, 2 * count, updated, &adam, done + epoch + 1)
    return float(total[0])


def chain(x, a, double lr, Py_ssize_t length, Py_ssize_t epochs):
    """Descend from x along the sum of x * a * a ... (`length` products of equally large arrays); returns the last loss."""
    cdef int dt = code(x)
    cdef Py_ssize_t size = x.size, epoch, _, one = 1, zero = 0
    work, total, ones = np.empty_like(x), np.zeros(1, x.dtype), np.ones_like(x)
    cdef char* px = data(x)
    cdef char* pa = data(a)
    cdef char* pt = data(work)
    cdef char* ptotal = data(total)
    cdef char* pones = data(ones)
    cdef Loop mul = find("mul", dt)
    with nogil:
        for epoch in range(epochs):
            binary(mul, size, pt, px, pa)
            for _ in range(length - 1):
                binary(mul, size, pt, pt, pa)
            K.reduce(REDUCE_SUM, dt, 1, &size, pt, &one, ptotal, &zero, 0)
            binary(mul, size, pt, pones, pa)
            for _ in range(length - 1):
                binary(mul, size, pt, pt, pa)
            K.sgd(dt, size, px, pt, NULL, lr, 0, 0, 0, 0, 0, epoch == 0)
    return float(total[0])


def fan_out(x, a, double lr, Py_ssize_t epochs):
    """Descend from the number x along the sum in a balanced tree of its products with all of a; returns the last loss."""
    cdef int dt = code(x)
    cdef Py_ssize_t size = a.size, item = x.itemsize, epoch, k, left
    work, gradient = np.empty_like(a), np.zeros_like(x)
    cdef char* px = data(x)
    cdef char* pa = data(a)
    cdef char* pt = data(work)
    cdef char* pg = data(gradient)
    cdef Loop mul = find("mul", dt), add = find("add", dt)
    with nogil:
        for epoch in range(epochs):
            for k in range(size):
                binary(mul, 1, pt + k * item, px, pa + k * item)
            left = size
            while left > 1:
                for k in range(left // 2):
                    binary(add, 1, pt + k * item, pt + 2 * k * item, pt + (2 * k + 1) * item)
                if left % 2:          # the odd one comes first in the next level, as in graph.py; the order of a sum is free here
                    memcpy(pt + left // 2 * item, pt + (left - 1) * item, item)
                left = (left + 1) // 2
            memcpy(pg, pa, item)      # each product's gradient is that of the sum, 1
            for k in range(1, size):
                binary(add, 1, pg, pg, pa + k * item)
            K.sgd(dt, 1, px, pg, NULL, lr, 0, 0, 0, 0, 0, epoch == 0)
    return float(work[0])
