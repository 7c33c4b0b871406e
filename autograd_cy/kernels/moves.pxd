# Moves of elements between strided and dense memory, by size: rows, tiles of two dims, blocks of any number of dims.
#
# Relies on tiles.h (register tiles, scratch memory).  elementwise.pyx relies on it; a .pxd of inline functions, so that
# every instruction-set level compiles its own.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport MAX_NDIM

cdef extern from "tiles.h" nogil:
    const Py_ssize_t AG_SCRATCH_BYTES
    char* ag_scratch()
    void ag_transpose8(Py_ssize_t rows, Py_ssize_t cols, uint8_t* dst, Py_ssize_t dst_pitch,
                       const uint8_t* src, Py_ssize_t src_pitch)
    void ag_transpose32(Py_ssize_t rows, Py_ssize_t cols, uint32_t* dst, Py_ssize_t dst_pitch,
                        const uint32_t* src, Py_ssize_t src_pitch)
    void ag_transpose64(Py_ssize_t rows, Py_ssize_t cols, uint64_t* dst, Py_ssize_t dst_pitch,
                        const uint64_t* src, Py_ssize_t src_pitch)
    void ag_fill_rows8(Py_ssize_t rows, Py_ssize_t cols, uint8_t* dst, Py_ssize_t dst_stride,
                       const uint8_t* src, Py_ssize_t src_stride)
    void ag_fill_rows16(Py_ssize_t rows, Py_ssize_t cols, uint16_t* dst, Py_ssize_t dst_stride,
                        const uint16_t* src, Py_ssize_t src_stride)
    void ag_fill_rows32(Py_ssize_t rows, Py_ssize_t cols, uint32_t* dst, Py_ssize_t dst_stride,
                        const uint32_t* src, Py_ssize_t src_stride)
    void ag_fill_rows64(Py_ssize_t rows, Py_ssize_t cols, uint64_t* dst, Py_ssize_t dst_stride,
                        const uint64_t* src, Py_ssize_t src_stride)
    void ag_copy_short(char* dst, const char* src, Py_ssize_t size)
    void ag_repeat_row(char* dst, const char* src, Py_ssize_t size, Py_ssize_t rows)

cdef enum:
    MAX_OPERANDS = 8          # of an elementwise loop
    BAND = 16                 # rows transposed together: a cache line of float32

ctypedef fused word:          # elements are moved by size, not by dtype
    uint8_t
    uint16_t
    uint32_t
    uint64_t

cdef inline Py_ssize_t magnitude(Py_ssize_t x) noexcept nogil:
    return -x if x < 0 else x


cdef inline void move_row(word* dst, Py_ssize_t dst_stride, const word* src, Py_ssize_t src_stride,
                          Py_ssize_t n) noexcept nogil:
    """dst[i * dst_stride] = src[i * src_stride]; strides that compilers can vectorise are spelled out."""
    cdef Py_ssize_t i
    cdef word value
    if dst_stride == 1:
        if src_stride == 1:
            memcpy(dst, src, n * sizeof(word))
        elif src_stride == 0:
            value = src[0]
            for i in range(n):
                dst[i] = value
        elif src_stride == 2:
            for i in range(n):
                dst[i] = src[2 * i]
        elif src_stride == -1:
            for i in range(n):
                dst[i] = src[-i]
        else:
            for i in range(n):
                dst[i] = src[i * src_stride]
    elif src_stride == 1:
        for i in range(n):
            dst[i * dst_stride] = src[i]
    else:
        for i in range(n):
            dst[i * dst_stride] = src[i * src_stride]


cdef inline void move_tile(word* dst, Py_ssize_t dst_rows, Py_ssize_t dst_cols, const word* src, Py_ssize_t src_rows,
                           Py_ssize_t src_cols, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """dst[i * dst_rows + j * dst_cols] = src[i * src_rows + j * src_cols] for i < rows, j < cols."""
    cdef Py_ssize_t i, j, start, stop, size = cols * <Py_ssize_t> sizeof(word)
    if src_cols == 1 and dst_cols == 1:
        for i in range(rows):
            ag_copy_short(<char*> (dst + i * dst_rows), <const char*> (src + i * src_rows), size)
        return
    if src_cols == 0 and dst_cols == 1 and size <= 64 and rows > 1 and cols > 1:
        if word is uint8_t:
            ag_fill_rows8(rows, cols, dst, dst_rows, src, src_rows)
        elif word is uint16_t:
            ag_fill_rows16(rows, cols, dst, dst_rows, src, src_rows)
        elif word is uint32_t:
            ag_fill_rows32(rows, cols, dst, dst_rows, src, src_rows)
        else:
            ag_fill_rows64(rows, cols, dst, dst_rows, src, src_rows)
        return
    if src_rows != 0 and magnitude(src_rows) < magnitude(src_cols) and rows >= 4 and cols >= 4:
        start = 0
        if dst_cols == 1 and src_rows == 1:
            if word is uint8_t:
                ag_transpose8(rows, cols, dst, dst_rows, src, src_cols)
                start = rows
            elif word is uint32_t:
                ag_transpose32(rows, cols, dst, dst_rows, src, src_cols)
                start = rows
            elif word is uint64_t:
                ag_transpose64(rows, cols, dst, dst_rows, src, src_cols)
                start = rows
        while start < rows:
            stop = start + BAND if start + BAND < rows else rows
            for j in range(cols):
                for i in range(start, stop):
                    dst[i * dst_rows + j * dst_cols] = src[i * src_rows + j * src_cols]
            start = stop
        return
    for i in range(rows):
        move_row(dst + i * dst_rows, dst_cols, src + i * src_rows, src_cols, cols)


cdef inline void move_bytes(word* dst, Py_ssize_t dst_rows, Py_ssize_t dst_cols, const char* src, Py_ssize_t src_rows,
                            Py_ssize_t src_cols, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """The same with strides in bytes."""
    cdef Py_ssize_t size = sizeof(word)
    move_tile(dst, dst_rows // size, dst_cols // size, <const word*> src, src_rows // size, src_cols // size, rows, cols)


cdef inline void move_tile_of(Py_ssize_t itemsize, char* dst, Py_ssize_t dst_rows, Py_ssize_t dst_cols, const char* src,
                              Py_ssize_t src_rows, Py_ssize_t src_cols, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    if itemsize == 4:
        move_bytes(<uint32_t*> dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)
    elif itemsize == 8:
        move_bytes(<uint64_t*> dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)
    elif itemsize == 1:
        move_bytes(<uint8_t*> dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)
    else:
        move_bytes(<uint16_t*> dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)


cdef inline void move_block(Py_ssize_t itemsize, int ndim, const Py_ssize_t* shape, char* dst, const Py_ssize_t* dst_strides,
                            const char* src, const Py_ssize_t* src_strides) noexcept nogil:
    """Move ndim >= 1 non-empty dims: tiles of the last two, an odometer over the others.

    Strides are a column of a plan (MAX_OPERANDS apart, in bytes); NULL means dense.
    """
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int d, last = (ndim - 1) * MAX_OPERANDS
    cdef Py_ssize_t cols = shape[ndim - 1], rows = shape[ndim - 2] if ndim > 1 else 1
    cdef Py_ssize_t dst_cols = itemsize, dst_rows = cols * itemsize, src_cols = itemsize, src_rows = cols * itemsize
    if dst_strides != NULL:
        dst_cols = dst_strides[last]
        dst_rows = dst_strides[last - MAX_OPERANDS] if ndim > 1 else 0
    if src_strides != NULL:
        src_cols = src_strides[last]
        src_rows = src_strides[last - MAX_OPERANDS] if ndim > 1 else 0
    if ndim <= 2:
        move_tile_of(itemsize, dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)
        return
    for d in range(ndim - 2):
        index[d] = 0
    while True:
        move_tile_of(itemsize, dst, dst_rows, dst_cols, src, src_rows, src_cols, rows, cols)
        if dst_strides == NULL:
            dst += rows * cols * itemsize
        if src_strides == NULL:
            src += rows * cols * itemsize
        d = ndim - 3
        while d >= 0:
            index[d] += 1
            if dst_strides != NULL:
                dst += dst_strides[d * MAX_OPERANDS]
            if src_strides != NULL:
                src += src_strides[d * MAX_OPERANDS]
            if index[d] < shape[d]:
                break
            if dst_strides != NULL:
                dst -= dst_strides[d * MAX_OPERANDS] * shape[d]
            if src_strides != NULL:
                src -= src_strides[d * MAX_OPERANDS] * shape[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return
