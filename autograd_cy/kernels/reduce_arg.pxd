# argmax and argmin: the position of the first largest or smallest element, where a NaN is larger and smaller than anything.
#
# Relies on fold.pxd (the extreme of a block is folded first, then searched) and reduce_plan.pxd.  reduce.pyx relies on it.

from autograd_cy.array.dtype cimport MAX_NDIM
from autograd_cy.kernels.fold cimport OP_MAX, OP_MIN, acc_t, fold_contiguous, load
from autograd_cy.kernels.reduce_plan cimport FEW, Plan, advance, advance_pair
from autograd_cy.kernels.table cimport BLOCK, REDUCE_ARGMAX


cdef inline bint is_nan(acc_t a) noexcept nogil:
    if acc_t is float or acc_t is double:
        return a != a
    else:
        return False


cdef inline bint better(int op, acc_t a, acc_t b) noexcept nogil:
    """a replaces the earlier b"""
    if is_nan(a):
        return not is_nan(b)
    return a > b if op == OP_MAX else a < b


cdef inline Py_ssize_t find(const acc_t* x, Py_ssize_t n, acc_t value) noexcept nogil:
    """The first position of a value (or of a NaN) that is there: 64 elements at a time, so that gcc vectorises."""
    cdef Py_ssize_t i = 0, j
    cdef int hits
    while i + 64 <= n:
        hits = 0
        for j in range(64):
            hits |= (x[i + j] == value) | is_nan(x[i + j])
        if hits:
            break
        i += 64
    while not (x[i] == value or is_nan(x[i])):
        i += 1
    return i


cdef inline void arg_run(const Plan* p, const char* x, char* out, acc_t tag) noexcept nogil:
    """The reduced dims are in their own order, so that positions count in row-major order."""
    cdef acc_t block[BLOCK]
    cdef acc_t best
    cdef acc_t m
    cdef const acc_t* b
    cdef Py_ssize_t outputs = 1, inner = 1, stride = 1, outer = 1, _i, _j, k, at, n, position, where
    cdef Py_ssize_t offset = 0, out_offset = 0, roffset
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rindex[MAX_NDIM]
    cdef int d, op = OP_MAX if p.kind == REDUCE_ARGMAX else OP_MIN
    for d in range(p.nk):
        outputs *= p.kshape[d]
        index[d] = 0
    if p.nr:
        inner = p.rshape[p.nr - 1]
        stride = p.rx[p.nr - 1]
    for d in range(p.nr - 1):
        outer *= p.rshape[d]
    for _i in range(outputs):
        for d in range(p.nr):
            rindex[d] = 0
        roffset = position = where = 0
        load(&best, p.dtype, x + offset * p.itemsize, 1, 1)
        for _j in range(outer):
            at = 0
            while at < inner:
                n = min(inner - at, <Py_ssize_t> BLOCK)
                b = <const acc_t*> (x + (offset + roffset + at * stride) * p.itemsize)
                if not p.direct or stride != 1:
                    load(block, p.dtype, <const char*> b, n, stride)
                    b = block
                if n <= FEW:
                    for k in range(n):
                        if better(op, b[k], best):
                            best = b[k]
                            where = position + k
                    position += n
                    at += n
                    continue
                m = fold_contiguous(op, b, n)
                if better(op, m, best):
                    best = m
                    where = position + find(b, n, m)
                position += n
                at += n
            if outer > 1:
                advance(p.nr - 1, p.rshape, p.rx, rindex, &roffset)
        (<long long*> out)[out_offset] = where
        advance_pair(p.nk, p, index, &offset, &out_offset)


cdef inline void arg_columns(const Plan* p, const char* x, char* out, acc_t tag) noexcept nogil:
    """As arg_run, for a row of outputs at once: the innermost dim is kept."""
    cdef acc_t best[BLOCK]
    cdef acc_t block[BLOCK]
    cdef long long where[BLOCK]
    cdef const acc_t* b
    cdef bint swap
    cdef Py_ssize_t inner = p.kshape[p.nk - 1], column = p.kx[p.nk - 1], step = p.kout[p.nk - 1], outputs = 1, _i, j, k, w, r
    cdef Py_ssize_t offset = 0, out_offset = 0, roffset
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rindex[MAX_NDIM]
    cdef int d, op = OP_MAX if p.kind == REDUCE_ARGMAX else OP_MIN
    for d in range(p.nk - 1):
        outputs *= p.kshape[d]
        index[d] = 0
    for _i in range(outputs):
        j = 0
        while j < inner:
            w = min(inner - j, BLOCK)
            for d in range(p.nr):
                rindex[d] = 0
            roffset = 0
            for r in range(p.count):
                b = <const acc_t*> (x + (offset + j * column + roffset) * p.itemsize)
                if not p.direct or column != 1:
                    load(block, p.dtype, <const char*> b, w, column)
                    b = block
                if r == 0:
                    for k in range(w):
                        best[k] = b[k]
                        where[k] = 0
                elif op == OP_MAX:
                    for k in range(w):
                        swap = (b[k] > best[k]) | (is_nan(b[k]) & (not is_nan(best[k])))
                        best[k] = b[k] if swap else best[k]
                        where[k] = r if swap else where[k]
                else:
                    for k in range(w):
                        swap = (b[k] < best[k]) | (is_nan(b[k]) & (not is_nan(best[k])))
                        best[k] = b[k] if swap else best[k]
                        where[k] = r if swap else where[k]
                advance(p.nr, p.rshape, p.rx, rindex, &roffset)
            for k in range(w):
                (<long long*> out)[out_offset + (j + k) * step] = where[k]
            j += w
        advance_pair(p.nk - 1, p, index, &offset, &out_offset)
