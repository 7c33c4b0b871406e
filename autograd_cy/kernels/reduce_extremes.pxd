# Extremes of bytes and 32-bit integers, and any and all of bytes, in their own type: as int64 an eighth or half of them fits into a vector.
#
# Relies on fold.h and reduce_plan.pxd.  reduce.pyx relies on it.
#
# The smallest element is the largest of the complements, complemented: one loop does for both.

from autograd_cy.array.dtype cimport INT32, MAX_NDIM
from autograd_cy.kernels.reduce_plan cimport Plan, advance, advance_pair
from autograd_cy.kernels.table cimport BLOCK, REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN

cdef extern from "fold.h" nogil:
    int ag_largest_i32(const int* x, Py_ssize_t n, int flip, int best) noexcept
    unsigned char ag_largest_u8(const unsigned char* x, Py_ssize_t n, unsigned char flip, unsigned char best) noexcept

cdef enum:
    SHORT_ROWS = 256

ctypedef fused small_t:
    int
    unsigned char


cdef inline bint is_extreme(const Plan* p) noexcept nogil:
    """Whether `extremes` is for it. Any and all are the extremes compared with 0, if there are no negative numbers."""
    return (p.itemsize == 1 and (p.kind == REDUCE_ANY or p.kind == REDUCE_ALL)
            or (p.itemsize == 1 or p.dtype == INT32) and (p.kind == REDUCE_MAX or p.kind == REDUCE_MIN))


cdef inline small_t largest(const small_t* x, Py_ssize_t n, Py_ssize_t stride, small_t flip, small_t best) noexcept nogil:
    cdef Py_ssize_t i
    cdef small_t v
    if stride == 1:
        if small_t is int:
            return ag_largest_i32(x, n, flip, best)
        else:
            return ag_largest_u8(x, n, flip, best)
    for i in range(n):
        v = x[i * stride] ^ flip
        best = v if v > best else best
    return best


cdef inline void larger(small_t* best, const small_t* x, Py_ssize_t n, Py_ssize_t stride, small_t flip) noexcept nogil:
    """best[j] = the larger one of best[j] and the element j of a row."""
    cdef Py_ssize_t j
    cdef small_t v
    if stride == 1:
        for j in range(n):
            v = x[j] ^ flip
            best[j] = v if v > best[j] else best[j]
    else:
        for j in range(n):
            v = x[j * stride] ^ flip
            best[j] = v if v > best[j] else best[j]


cdef inline void extremes(const Plan* p, const char* x, char* out, small_t tag) noexcept nogil:
    cdef small_t best[BLOCK]
    cdef small_t lowest = 0, most = 255, flip = 0
    cdef bint along = p.rows and p.nr > 0
    cdef Py_ssize_t width = 1, column = 0, step = 0, stride = 0, outer = 1, rows = 1, length = 1, _i, r, j, k, w
    cdef Py_ssize_t offset = 0, out_offset = 0, roffset, together = 1
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rindex[MAX_NDIM]
    cdef const small_t* row
    cdef small_t* to
    cdef int d, nk = p.nk, nr = p.nr
    if small_t is int:
        lowest = -0x7fffffff - 1
        most = 0x7fffffff
    if p.kind == REDUCE_ANY or p.kind == REDUCE_ALL:
        most = 1                                   # whether it is not 0
    if p.kind == REDUCE_MIN or p.kind == REDUCE_ALL:
        flip = ~flip
    if along:                                      # the innermost dim is reduced in one go, else a row of outputs at a time
        nr -= 1
        length, stride = p.rshape[nr], p.rx[nr]
    elif nk:
        nk -= 1
        width, column, step = p.kshape[nk], p.kx[nk], p.kout[nk]
    for d in range(nk):
        outer *= p.kshape[d]
        index[d] = 0
    for d in range(nr):
        rows *= p.rshape[d]
    if nr == 1 and not along and column == 1 and p.rx[0] == width and width * 2 <= SHORT_ROWS:
        together = max(min(SHORT_ROWS // width, rows // 8), 1)     # short rows, one behind the other
    for _i in range(outer):
        j = 0
        while j < width:
            w = min(width - j, <Py_ssize_t> BLOCK)
            to = <small_t*> out + out_offset + j * step
            roffset = 0
            for d in range(nr):
                rindex[d] = 0
            for k in range(w * together):
                best[k] = lowest
            r = 0
            while r < rows:
                row = <const small_t*> x + offset + j * column + roffset
                if along:
                    best[0] = largest(row, length, stride, flip, best[0])
                else:
                    larger(best, row, w * min(rows - r, together), column, flip)
                if together > 1:
                    roffset += together * width
                elif nr:
                    advance(nr, p.rshape, p.rx, rindex, &roffset)
                r += together
            for k in range(w, w * together):
                best[k % w] = max(best[k % w], best[k])
            if along:
                to[0] = min(best[0] ^ flip, most)
            elif step == 1:
                for k in range(w):
                    to[k] = min(best[k] ^ flip, most)
            else:
                for k in range(w):
                    to[k * step] = min(best[k] ^ flip, most)
            j += w
        advance_pair(nk, p, index, &offset, &out_offset)
