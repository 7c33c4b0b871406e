# Windows that slide over the last one to three dims: convolution and its two adjoints, and the windows themselves as columns.
#
# Relies on table (routines) and on K.small_gemm. engine/convolve.py relies on it.
#
# A convolution is a matrix product of the weight and the columns of windows. The columns of all of an image would be kernel-size
# times as large as the image, so they are made and used in blocks that stay in the second-level cache. Where a window is one
# element (1x1), the image itself is the matrix. Depthwise convolutions, with products of one row, go tap by tap.
#
# Arrays are contiguous and of one dtype, float32 or float64. ints: the number of spatial dims d, then d each of: kernel, stride,
# padding before the first element, dilation; then groups. What lies outside the image is 0; how far windows reach behind the last
# element follows from the sizes of the arrays.

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, K, add_routine

ctypedef fused real:
    float
    double

cdef enum:
    CACHE = 192 * 1024        # bytes of a block of columns
    FEW = 64                  # positions of a block, at least

cdef enum Way:
    TAKE = 0                  # columns from the image
    ADD = 1                   # columns added to the image

cdef struct Windows:          # as three dims; missing ones come first, with sizes of 1
    Py_ssize_t size[3]        # of the image
    Py_ssize_t out[3]         # positions of the window
    Py_ssize_t kernel[3]
    Py_ssize_t stride[3]
    Py_ssize_t padding[3]
    Py_ssize_t dilation[3]
    Py_ssize_t groups
    Py_ssize_t plane, places, taps      # the products of the first three
    bint pointwise            # a window is the element at its position


cdef void read_windows(Windows* w, const Py_ssize_t* size, const Py_ssize_t* out, const Py_ssize_t* ints) noexcept nogil:
    """size, out: of the d spatial dims (NULL: as the windows' own positions are needed by nobody)."""
    cdef Py_ssize_t d = ints[0]
    cdef int i, k
    w.plane = w.places = w.taps = 1
    w.pointwise = True
    for i in range(3):
        k = i - 3 + <int> d
        w.size[i] = size[k] if k >= 0 else 1
        w.out[i] = out[k] if k >= 0 else 1
        w.kernel[i] = ints[1 + k] if k >= 0 else 1
        w.stride[i] = ints[1 + d + k] if k >= 0 else 1
        w.padding[i] = ints[1 + 2 * d + k] if k >= 0 else 0
        w.dilation[i] = ints[1 + 3 * d + k] if k >= 0 else 1
        w.plane *= w.size[i]
        w.places *= w.out[i]
        w.taps *= w.kernel[i]
        if w.kernel[i] != 1 or w.stride[i] != 1 or w.padding[i] != 0 or w.size[i] != w.out[i]:
            w.pointwise = False
    w.groups = ints[1 + 4 * d]


cdef inline Py_ssize_t ceiling(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The least integer from a / b on, and from 0."""
    return 0 if a <= 0 else (a + b - 1) // b


cdef void columns(const Windows* w, real* x, Py_ssize_t channels, Py_ssize_t first, Py_ssize_t last, real* cols, Py_ssize_t ld,
                  Way way) noexcept nogil:
    """Positions first to last of the window over each channel: a row of cols for every channel and tap, `ld` elements apart."""
    cdef Py_ssize_t _, a, b, e, p, n, i, low, high, row, line, from_, to, at0, at1
    cdef Py_ssize_t s = w.stride[2], row0 = (first // w.out[2]) // w.out[1], line0 = (first // w.out[2]) % w.out[1]
    cdef Py_ssize_t start0 = first % w.out[2]
    cdef real* place
    cdef real* src
    for _ in range(channels):
        for a in range(w.kernel[0]):
            for b in range(w.kernel[1]):
                for e in range(w.kernel[2]):
                    # positions along the last dim whose element is inside
                    low = ceiling(w.padding[2] - e * w.dilation[2], s)
                    high = ceiling(w.size[2] + w.padding[2] - e * w.dilation[2], s)
                    p, row, line, from_ = first, row0, line0, start0
                    place = cols
                    while p < last:
                        n = w.out[2] - from_
                        if n > last - p:
                            n = last - p
                        to = from_ + n
                        at0 = row * w.stride[0] - w.padding[0] + a * w.dilation[0]
                        at1 = line * w.stride[1] - w.padding[1] + b * w.dilation[1]
                        if 0 <= at0 < w.size[0] and 0 <= at1 < w.size[1]:
                            src = x + (at0 * w.size[1] + at1) * w.size[2] + e * w.dilation[2] - w.padding[2]
                            line_of(src, s, from_, to, low, high, place, way)
                        elif way == TAKE:
                            for i in range(n):
                                place[i] = 0
                        place += n
                        p += n
                        from_ = 0
                        line += 1
                        if line == w.out[1]:
                            line = 0
                            row += 1
                    cols += ld
        x += w.plane


cdef inline void line_of(real* src, Py_ssize_t s, Py_ssize_t first, Py_ssize_t last, Py_ssize_t low, Py_ssize_t high, real* place,
                         Way way) noexcept nogil:
    """Positions first to last along a line, of which low to high lie inside: place[i - first] and src[i * s]."""
    cdef Py_ssize_t i
    if low < first:
        low = first
    if high > last:
        high = last
    if high < low:
        low = high = last
    place -= first
    if way == ADD:
        if s == 1:
            for i in range(low, high):
                src[i] += place[i]
        else:
            for i in range(low, high):
                src[i * s] += place[i]
        return
    for i in range(first, low):
        place[i] = 0
    if s == 1:
        for i in range(low, high):
            place[i] = src[i]
    else:
        for i in range(low, high):
            place[i] = src[i * s]
    for i in range(high, last):
        place[i] = 0


cdef Py_ssize_t block_of(const Windows* w, Py_ssize_t rows, Py_ssize_t itemsize) noexcept nogil:
    """How many positions to handle at once: whole rows of vectors, in cache, of about equal size."""
    cdef Py_ssize_t most = CACHE // (rows * itemsize + 1) // 16 * 16
    cdef Py_ssize_t blocks
    if most < FEW:
        most = FEW
    if most >= w.places:
        return w.places
    blocks = (w.places + most - 1) // most
    return ((w.places + blocks - 1) // blocks + 15) // 16 * 16


# ---- tap by tap, for one channel in and few channels out of it

cdef void taps(const Windows* w, real* x, real* y, real* weight, int way) noexcept nogil:
    """One channel and one tap after the other: y += weight x (0), x += weight y (1), weight += x y (2)."""
    cdef Py_ssize_t a, b, e, i, low, high, row, line, at0, at1, s = w.stride[2]
    cdef real factor, total
    cdef real* src
    cdef real* out
    for a in range(w.kernel[0]):
        for b in range(w.kernel[1]):
            for e in range(w.kernel[2]):
                low = ceiling(w.padding[2] - e * w.dilation[2], s)
                high = min(ceiling(w.size[2] + w.padding[2] - e * w.dilation[2], s), w.out[2])
                factor, total = weight[0], 0
                for row in range(w.out[0]):
                    at0 = row * w.stride[0] - w.padding[0] + a * w.dilation[0]
                    if not 0 <= at0 < w.size[0]:
                        continue
                    for line in range(w.out[1]):
                        at1 = line * w.stride[1] - w.padding[1] + b * w.dilation[1]
                        if not 0 <= at1 < w.size[1]:
                            continue
                        src = x + (at0 * w.size[1] + at1) * w.size[2] + e * w.dilation[2] - w.padding[2]
                        out = y + (row * w.out[1] + line) * w.out[2]
                        if way == 0:
                            if s == 1:
                                for i in range(low, high):
                                    out[i] += factor * src[i]
                            else:
                                for i in range(low, high):
                                    out[i] += factor * src[i * s]
                        elif way == 1:
                            if s == 1:
                                for i in range(low, high):
                                    src[i] += factor * out[i]
                            else:
                                for i in range(low, high):
                                    src[i * s] += factor * out[i]
                        else:
                            total += dot(src + low * s, s, out + low, high - low)
                if way == 2:
                    weight[0] += total
                weight += 1


cdef inline real dot(const real* x, Py_ssize_t s, const real* y, Py_ssize_t n) noexcept nogil:
    """The sum of x[i * s] * y[i], in eight sums."""
    cdef real t[8]
    cdef Py_ssize_t i = 0
    cdef int k
    for k in range(8):
        t[k] = 0
    if s == 1:
        while i + 8 <= n:
            for k in range(8):
                t[k] += x[i + k] * y[i + k]
            i += 8
    while i < n:
        t[i & 7] += x[i * s] * y[i]
        i += 1
    return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))


# ---- the three products

cdef void start(real* out, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t plane, const real* bias) noexcept nogil:
    """Zeros, or the bias of each channel."""
    cdef Py_ssize_t n, c, i
    for n in range(images):
        for c in range(channels):
            for i in range(plane):
                out[i] = bias[c] if bias != NULL else 0
            out += plane


cdef Py_ssize_t forward(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    """out (N, M, *places) = weight (M, C / groups, *kernel) over x (N, C, *size), plus bias (M)."""
    cdef real* out = <real*> arrays[0].data
    cdef real* x = <real*> arrays[1].data
    cdef real* weight = <real*> arrays[2].data
    cdef real* bias = <real*> arrays[3].data
    cdef Windows w
    cdef Py_ssize_t images = arrays[0].shape[0], rows, channels, inner, _, n, g, i, m, p, block, width, ld
    cdef real* cols = NULL
    cdef real* b
    read_windows(&w, arrays[1].shape + 2, arrays[0].shape + 2, ints)
    rows, channels = arrays[0].shape[1] // w.groups, arrays[1].shape[1] // w.groups
    inner = channels * w.taps
    if images * rows * w.groups * w.places == 0:
        return -1
    if channels == 1 and rows <= 2 and not w.pointwise or inner == 0:
        start(out, images, rows * w.groups, w.places, bias)
        for n in range(images if inner else 0):
            for g in range(w.groups):
                for m in range(rows):
                    taps(&w, x + (n * w.groups + g) * w.plane, out + ((n * w.groups + g) * rows + m) * w.places,
                         weight + (g * rows + m) * w.taps, 0)
        return -1
    block = block_of(&w, inner, sizeof(real))
    if not w.pointwise:
        cols = <real*> malloc(inner * block * sizeof(real))
        if cols == NULL:
            return OUT_OF_MEMORY
    for _ in range(images):
        for g in range(w.groups):
            p = 0
            while p < w.places:
                width = min(block, w.places - p)
                if w.pointwise:
                    b, ld = x + p, w.places
                else:
                    b, ld = cols, width
                    columns(&w, x, channels, p, p + width, cols, width, TAKE)
                K.small_gemm(arrays[0].dtype, 0, 0, rows, width, inner, <char*> (weight + g * rows * inner), inner, <char*> b, ld,
                             <char*> (out + p), w.places)
                if bias != NULL:
                    for m in range(rows):
                        for i in range(p, p + width):
                            out[m * w.places + i] += bias[g * rows + m]
                p += width
            x += channels * w.plane
            out += rows * w.places
    free(cols)
    return -1


cdef Py_ssize_t backward(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    """x (N, C, *size) from out (N, M, *places) by the transposed product of `forward`, plus bias (C): a transposed convolution."""
    cdef real* x = <real*> arrays[0].data
    cdef real* out = <real*> arrays[1].data
    cdef real* weight = <real*> arrays[2].data
    cdef real* bias = <real*> arrays[3].data
    cdef Windows w
    cdef Py_ssize_t images = arrays[0].shape[0], rows, channels, inner, _, n, g, m, p, block, width
    cdef real* cols
    read_windows(&w, arrays[0].shape + 2, arrays[1].shape + 2, ints)
    rows, channels = arrays[1].shape[1] // w.groups, arrays[0].shape[1] // w.groups
    inner = channels * w.taps
    if not w.pointwise or bias != NULL or rows == 0:
        start(x, images, channels * w.groups, w.plane, bias)
    if images * rows * w.groups * w.places * inner == 0:
        return -1
    if channels == 1 and rows <= 2 and not w.pointwise:
        for n in range(images):
            for g in range(w.groups):
                for m in range(rows):
                    taps(&w, x + (n * w.groups + g) * w.plane, out + ((n * w.groups + g) * rows + m) * w.places,
                         weight + (g * rows + m) * w.taps, 1)
        return -1
    block = block_of(&w, inner, sizeof(real))
    cols = <real*> malloc(inner * block * sizeof(real))
    if cols == NULL:
        return OUT_OF_MEMORY
    for _ in range(images):
        for g in range(w.groups):
            p = 0
            while p < w.places:
                width = min(block, w.places - p)
                if w.pointwise and bias == NULL:
                    K.small_gemm(arrays[0].dtype, 1, 0, inner, width, rows, <char*> (weight + g * rows * inner), inner,
                                 <char*> (out + p), w.places, <char*> (x + p), w.places)
                else:
                    K.small_gemm(arrays[0].dtype, 1, 0, inner, width, rows, <char*> (weight + g * rows * inner), inner,
                                 <char*> (out + p), w.places, <char*> cols, width)
                    columns(&w, x, channels, p, p + width, cols, width, ADD)
                p += width
            x += channels * w.plane
            out += rows * w.places
    free(cols)
    return -1


cdef Py_ssize_t weights(real tag, const Array* arrays, const Py_ssize_t* ints) noexcept nogil:
    """weight (M, C / groups, *kernel) from out (N, M, *places) and x (N, C, *size): the gradient of `forward` by its weight."""
    cdef real* weight = <real*> arrays[0].data
    cdef real* out = <real*> arrays[1].data
    cdef real* x = <real*> arrays[2].data
    cdef Windows w
    cdef Py_ssize_t images = arrays[1].shape[0], rows, channels, inner, _, n, g, m, i, p, block, width, ld
    cdef real* cols
    cdef real* part
    cdef real* b
    cdef real* sum
    read_windows(&w, arrays[2].shape + 2, arrays[1].shape + 2, ints)
    rows, channels = arrays[1].shape[1] // w.groups, arrays[2].shape[1] // w.groups
    inner = channels * w.taps
    for i in range(rows * w.groups * inner):
        weight[i] = 0
    if images * rows * w.groups * w.places * inner == 0:
        return -1
    if channels == 1 and rows <= 2 and not w.pointwise:
        for n in range(images):
            for g in range(w.groups):
                for m in range(rows):
                    taps(&w, x + (n * w.groups + g) * w.plane, out + ((n * w.groups + g) * rows + m) * w.places,
                         weight + (g * rows + m) * w.taps, 2)
        return -1
    block = block_of(&w, inner, sizeof(real))
    cols = <real*> malloc((inner * block + rows * inner) * sizeof(real))
    if cols == NULL:
        return OUT_OF_MEMORY
    part = cols + inner * block
    for _ in range(images):
        for g in range(w.groups):
            sum = weight + g * rows * inner
            p = 0
            while p < w.places:
                width = min(block, w.places - p)
                if w.pointwise:
                    b, ld = x + p, w.places
                else:
                    b, ld = cols, width
                    columns(&w, x, channels, p, p + width, cols, width, TAKE)
                K.small_gemm(arrays[0].dtype, 0, 1, rows, inner, width, <char*> (out + p), w.places, <char*> b, ld, <char*> part, inner)
                for i in range(rows * inner):
                    sum[i] += part[i]
                p += width
            x += channels * w.plane
            out += rows * w.places
    free(cols)
    return -1


cdef Py_ssize_t convolve(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return forward[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else forward[double](0, arrays, ints)


cdef Py_ssize_t convolve_input(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return backward[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else backward[double](0, arrays, ints)


cdef Py_ssize_t convolve_weight(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    return weights[float](0, arrays, ints) if arrays[0].dtype == FLOAT32 else weights[double](0, arrays, ints)


# ---- the columns themselves: (N, C, *size) and (N, C, *kernel, *places)

cdef Py_ssize_t unfold(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Windows w
    cdef const Array* image = &arrays[1]
    cdef Py_ssize_t n = image.shape[0] * image.shape[1]
    read_windows(&w, image.shape + 2, arrays[0].shape + 2 + ints[0], ints)
    if arrays[0].dtype == FLOAT32:
        columns(&w, <float*> image.data, n, 0, w.places, <float*> arrays[0].data, w.places, TAKE)
    else:
        columns(&w, <double*> image.data, n, 0, w.places, <double*> arrays[0].data, w.places, TAKE)
    return -1


cdef Py_ssize_t fold(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    cdef Windows w
    cdef const Array* image = &arrays[0]
    cdef Py_ssize_t n = image.shape[0] * image.shape[1]
    read_windows(&w, image.shape + 2, arrays[1].shape + 2 + ints[0], ints)
    memset(image.data, 0, n * w.plane * (4 if image.dtype == FLOAT32 else 8))
    if image.dtype == FLOAT32:
        columns(&w, <float*> image.data, n, 0, w.places, <float*> arrays[1].data, w.places, ADD)
    else:
        columns(&w, <double*> image.data, n, 0, w.places, <double*> arrays[1].data, w.places, ADD)
    return -1


add_routine("windows.convolve", "wrrr", convolve)
add_routine("windows.convolve_input", "wrrr", convolve_input)
add_routine("windows.convolve_weight", "wrr", convolve_weight)
add_routine("windows.unfold", "wr", unfold)
add_routine("windows.fold", "wr", fold)
