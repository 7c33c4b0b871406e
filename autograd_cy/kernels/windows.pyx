# Windows that slide over the last one to three dims: convolution and its two adjoints, and the windows themselves as columns.
#
# Relies on table (routines), on windows.h and on K.small_gemm. engine/convolve.py relies on it.
#
# A convolution is a matrix product of the weight and the columns of windows. The columns of all of an image would be kernel-size
# times as large as the image, so they are made and used in blocks that stay in the second-level cache; several images share a block
# where they are small. They come from a copy of the image with its padding, so that no window has to look where it ends; with a
# stride s along the last dim, a line of the copy has first the elements 0, s, 2s ..., then 1, s + 1 ..., so that what neighbouring
# windows have at one place is contiguous. Where a window is one element (1x1), the image itself is the matrix. Depthwise convolutions,
# with products of one row, go tap by tap.
#
# Above 500 lines because all ways share the padded copies and the blocks.
#
# Arrays are contiguous and of one dtype, float32 or float64. ints: the number of spatial dims d, then d each of: kernel, stride,
# padding before the first element, dilation; then groups. What lies outside the image is 0; how far windows reach behind the last
# element follows from the sizes of the arrays.

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, K, add_routine

cdef extern from "windows.h" nogil:
    enum:
        PLACES "AG_PLACES"
    void ag_taps_f32(Py_ssize_t n, Py_ssize_t taps, const Py_ssize_t* offset, const float* weight, const float* x, float* out) noexcept
    void ag_taps_f64(Py_ssize_t n, Py_ssize_t taps, const Py_ssize_t* offset, const double* weight, const double* x, double* out) noexcept
    void ag_add_line_f32(Py_ssize_t n, float factor, const float* g, float* x) noexcept
    void ag_add_line_f64(Py_ssize_t n, double factor, const double* g, double* x) noexcept
    void ag_dot_lines_f32(Py_ssize_t lines, Py_ssize_t n, const float* g, const float* x, Py_ssize_t x_step, Py_ssize_t taps,
                          const Py_ssize_t* offset, float* sums) noexcept
    void ag_dot_lines_f64(Py_ssize_t lines, Py_ssize_t n, const double* g, const double* x, Py_ssize_t x_step, Py_ssize_t taps,
                          const Py_ssize_t* offset, double* sums) noexcept
    void ag_copy_line_f32(Py_ssize_t n, const float* x, float* out) noexcept
    void ag_copy_line_f64(Py_ssize_t n, const double* x, double* out) noexcept

ctypedef fused real:
    float
    double

cdef enum:
    CACHE = 192 * 1024        # bytes of a block of columns
    FEW = 64                  # positions of a block, at least
    FLAT = 512                # elements of several short lines

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
    Py_ssize_t padded[3]      # sizes of what the windows reach, the last a multiple of the stride
    Py_ssize_t phase          # elements of a line that are a stride apart
    Py_ssize_t groups
    Py_ssize_t plane, places, taps, full        # the products of size, out, kernel, padded
    Py_ssize_t images, rows, channels, inner    # of a group: rows of the weight, channels of the image, columns of the weight
    Py_ssize_t block          # positions handled at once
    Py_ssize_t together       # images handled at once
    bint pointwise            # a window is the element at its position
    bint depthwise            # one channel, few rows: tap by tap
    void* memory              # the padded image of a group, a block of columns, and a block of rows (or of the weight)


cdef inline Py_ssize_t ceiling(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline Py_ssize_t column(const Windows* w, Py_ssize_t i) noexcept nogil:
    """Where element i of a padded line is."""
    return i if w.stride[2] == 1 else i % w.stride[2] * w.phase + i // w.stride[2]


cdef Py_ssize_t prepare(Windows* w, const Py_ssize_t* size, const Array* out, Py_ssize_t channels, const Py_ssize_t* ints,
                        Py_ssize_t itemsize, Py_ssize_t spare) noexcept nogil:
    """size: of the d spatial dims of images with `channels`; out: (N, M, *places). spare: elements of another block, if any."""
    cdef Py_ssize_t d = ints[0], most, blocks
    cdef int i, k
    w.plane = w.places = w.taps = w.full = 1
    w.pointwise = True
    w.memory = NULL
    for i in range(3):
        k = i - 3 + <int> d
        w.size[i] = size[k] if k >= 0 else 1
        w.out[i] = out.shape[out.ndim - d + k] if k >= 0 else 1
        w.kernel[i] = ints[1 + k] if k >= 0 else 1
        w.stride[i] = ints[1 + d + k] if k >= 0 and w.out[i] > 1 else 1
        w.padding[i] = ints[1 + 2 * d + k] if k >= 0 else 0
        w.dilation[i] = ints[1 + 3 * d + k] if k >= 0 else 1
        w.padded[i] = max((w.out[i] - 1) * w.stride[i], 0) + w.dilation[i] * (w.kernel[i] - 1) + 1
        if i == 2:
            w.phase = ceiling(w.padded[2], w.stride[2])
            w.padded[2] = w.phase * w.stride[2]
        w.plane *= w.size[i]
        w.places *= w.out[i]
        w.taps *= w.kernel[i]
        w.full *= w.padded[i]
        if w.kernel[i] != 1 or w.stride[i] != 1 or w.padding[i] != 0 or w.size[i] != w.out[i]:
            w.pointwise = False
    w.groups = ints[1 + 4 * d]
    w.images, w.rows, w.channels = out.shape[0], out.shape[1] // w.groups, channels // w.groups
    w.inner = w.channels * w.taps
    w.together, w.block = 1, w.places
    w.pointwise = w.pointwise and w.places >= FEW
    w.depthwise = w.channels == 1 and w.rows <= 2 and not w.pointwise
    if w.images * w.rows * w.groups * w.places * w.inner == 0:
        return -1
    if w.places < FEW:
        w.together = min(w.images, FEW // w.places)
        w.block = w.together * w.places
    else:                     # whole rows of vectors, in cache, of about equal size
        most = max(CACHE // (w.inner * itemsize) // PLACES * PLACES, <Py_ssize_t> FEW)
        blocks = (w.places + most - 1) // most
        w.block = min(((w.places + blocks - 1) // blocks + PLACES - 1) // PLACES * PLACES, w.places)
    w.memory = malloc((w.channels * w.full + w.inner * w.block + max(spare, w.rows * w.block) + 3 * PLACES) * itemsize)
    return OUT_OF_MEMORY if w.memory == NULL else -1


cdef inline void padded_line(const Windows* w, real* x, real* line, real shift, Way way) noexcept nogil:
    """A line with its padding, in phases; ADD: a line of x from it, plus shift."""
    cdef Py_ssize_t s = w.stride[2], low = w.padding[2], high = min(low + w.size[2], w.padded[2]), f, q, first, last
    if way == TAKE:
        memset(line, 0, w.padded[2] * sizeof(real))
    if s == 1 and way == TAKE:
        if low < high:
            memcpy(line + low, x, (high - low) * sizeof(real))
        return
    for f in range(s):
        first = max(ceiling(low - f, s), <Py_ssize_t> 0)
        last = ceiling(high - f, s)
        if way == TAKE and s == 2:                # vectorised
            for q in range(first, last):
                line[f * w.phase + q] = x[q * 2 + f - low]
        elif way == TAKE:
            for q in range(first, last):
                line[f * w.phase + q] = x[q * s + f - low]
        else:
            for q in range(first, last):
                x[q * s + f - low] = line[f * w.phase + q] + shift
    if way == ADD:            # what no window reaches
        for q in range(max(high - low, <Py_ssize_t> 0), w.size[2]):
            x[q] = shift


cdef void with_padding(const Windows* w, real* x, Py_ssize_t channels, real* image, real* bias, Way way) noexcept nogil:
    """The image with its padding from x; ADD: x from the image, plus the bias of each channel."""
    cdef Py_ssize_t c, a, b, i, at0, at1
    cdef real* line
    cdef real* src
    cdef real shift
    for c in range(channels):
        shift = bias[c] if bias != NULL else 0
        if way == TAKE:
            for a in range(w.padded[0]):
                at0 = a - w.padding[0]
                for b in range(w.padded[1]):
                    at1 = b - w.padding[1]
                    line = image + (a * w.padded[1] + b) * w.padded[2]
                    if 0 <= at0 < w.size[0] and 0 <= at1 < w.size[1]:
                        padded_line(w, x + (at0 * w.size[1] + at1) * w.size[2], line, 0, TAKE)
                    else:
                        memset(line, 0, w.padded[2] * sizeof(real))
        else:
            for a in range(w.size[0]):
                at0 = a + w.padding[0]
                for b in range(w.size[1]):
                    at1 = b + w.padding[1]
                    src = x + (a * w.size[1] + b) * w.size[2]
                    if at0 < w.padded[0] and at1 < w.padded[1]:
                        padded_line(w, src, image + (at0 * w.padded[1] + at1) * w.padded[2], shift, ADD)
                    else:
                        for i in range(w.size[2]):
                            src[i] = shift
        x += w.plane
        image += w.full


cdef void columns(const Windows* w, real* image, Py_ssize_t channels, Py_ssize_t first, Py_ssize_t last, real* cols, Py_ssize_t ld,
                  Way way) noexcept nogil:
    """Positions first to last of the window over each padded channel: a row of cols for every channel and tap, `ld` elements apart."""
    cdef Py_ssize_t _, a, b, e, p, n, row, line, start
    cdef Py_ssize_t row0 = (first // w.out[2]) // w.out[1], line0 = (first // w.out[2]) % w.out[1], start0 = first % w.out[2]
    cdef real* place
    cdef real* src
    cdef real* tap
    for _ in range(channels):
        for a in range(w.kernel[0]):
            for b in range(w.kernel[1]):
                for e in range(w.kernel[2]):
                    tap = image + (a * w.dilation[0] * w.padded[1] + b * w.dilation[1]) * w.padded[2] + column(w, e * w.dilation[2])
                    p, row, line, start, place = first, row0, line0, start0, cols
                    while p < last:
                        n = min(w.out[2] - start, last - p)
                        src = tap + (row * w.stride[0] * w.padded[1] + line * w.stride[1]) * w.padded[2] + start
                        if way == TAKE:
                            if ld != last - first:          # what is behind the line belongs to another image
                                memcpy(place, src, n * sizeof(real))
                            elif real is float:
                                ag_copy_line_f32(n, src, place)
                            else:
                                ag_copy_line_f64(n, src, place)
                        elif real is float:
                            ag_add_line_f32(n, 1, place, src)
                        else:
                            ag_add_line_f64(n, 1, place, src)
                        place += n
                        p += n
                        start = 0
                        line += 1
                        if line == w.out[1]:
                            line = 0
                            row += 1
                    cols += ld
        image += w.full


# ---- tap by tap: one channel and its rows of the weight

cdef enum Product:
    FORWARD = 0               # out from image and weight
    BACKWARD = 1              # image += by out and weight
    WEIGHTS = 2               # weight += by image and out


cdef inline void taps_of_line(const Windows* w, Py_ssize_t n, const Py_ssize_t* offset, real* weight, real* x, real* out) noexcept nogil:
    if real is float:
        ag_taps_f32(n, w.taps, offset, weight, x, out)
    else:
        ag_taps_f64(n, w.taps, offset, weight, x, out)


cdef void tap_by_tap(const Windows* w, real* image, real* out, real* weight, const Py_ssize_t* offset, Product way) noexcept nogil:
    cdef Py_ssize_t row, line, t, i, lines, some, n = w.out[2], step = w.stride[1] * w.padded[2]
    cdef real flat[FLAT]
    cdef real* src
    if way == WEIGHTS:
        for row in range(w.out[0]):
            src = image + row * w.stride[0] * w.padded[1] * w.padded[2]
            t = 0
            while t < w.taps:
                some = min(<Py_ssize_t> 3, w.taps - t)
                if real is float:
                    ag_dot_lines_f32(w.out[1], n, out + row * w.out[1] * n, src, step, some, offset + t, weight + t)
                else:
                    ag_dot_lines_f64(w.out[1], n, out + row * w.out[1] * n, src, step, some, offset + t, weight + t)
                t += 3
        return
    for row in range(w.out[0]):
        line = 0
        while line < w.out[1]:
            src = image + row * w.stride[0] * w.padded[1] * w.padded[2] + line * step
            lines = min(FLAT // step, w.out[1] - line) if way == FORWARD and step < 2 * n else 1
            if lines > 1:                  # several lines, and what is between them, as one: short lines would leave vectors empty
                taps_of_line(w, (lines - 1) * step + n, offset, weight, src, flat)
                for i in range(lines):
                    memcpy(out + i * n, flat + i * step, n * sizeof(real))
            elif way == FORWARD:
                taps_of_line(w, n, offset, weight, src, out)
            else:
                for t in range(w.taps):
                    if real is float:
                        ag_add_line_f32(n, weight[t], out, src + offset[t])
                    else:
                        ag_add_line_f64(n, weight[t], out, src + offset[t])
            lines = max(lines, 1)
            out += lines * n
            line += lines


cdef bint finite(Py_ssize_t n, const real* weight) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if weight[i] - weight[i] != 0:
            return False
    return True


cdef void inside(const Windows* w, real* x, real* weight, real* out) noexcept nogil:
    """FORWARD from the elements of the image only: an infinite weight makes NaN of the zeros around it, which are no part of the sum."""
    cdef Py_ssize_t p, t, i, j, k
    cdef real total
    for p in range(w.places):
        total = 0
        for t in range(w.taps):
            i = p // (w.out[1] * w.out[2]) * w.stride[0] + t // (w.kernel[1] * w.kernel[2]) * w.dilation[0] - w.padding[0]
            j = p // w.out[2] % w.out[1] * w.stride[1] + t // w.kernel[2] % w.kernel[1] * w.dilation[1] - w.padding[1]
            k = p % w.out[2] * w.stride[2] + t % w.kernel[2] * w.dilation[2] - w.padding[2]
            if 0 <= i < w.size[0] and 0 <= j < w.size[1] and 0 <= k < w.size[2]:
                total += weight[t] * x[(i * w.size[1] + j) * w.size[2] + k]
        out[p] = total


cdef Py_ssize_t depthwise(const Windows* w, real* x, real* out, real* weight, real* bias, Product way) noexcept nogil:
    cdef real* image = <real*> w.memory
    cdef Py_ssize_t* offset = <Py_ssize_t*> malloc(w.taps * sizeof(Py_ssize_t))
    cdef Py_ssize_t a, b, e, t = 0, m, n, i
    if offset == NULL:
        return OUT_OF_MEMORY
    for a in range(w.kernel[0]):
        for b in range(w.kernel[1]):
            for e in range(w.kernel[2]):
                offset[t] = (a * w.dilation[0] * w.padded[1] + b * w.dilation[1]) * w.padded[2] + column(w, e * w.dilation[2])
                t += 1
    for n in range(w.images * w.groups):
        t = n % w.groups
        if way == BACKWARD:
            memset(image, 0, w.full * sizeof(real))
        else:
            with_padding(w, x + n * w.plane, 1, image, NULL, TAKE)
        for m in range(w.rows):
            if way == FORWARD and not finite(w.taps, weight + (t * w.rows + m) * w.taps):
                inside(w, x + n * w.plane, weight + (t * w.rows + m) * w.taps, out)
            else:
                tap_by_tap(w, image, out, weight + (t * w.rows + m) * w.taps, offset, way)
            if way == FORWARD and bias != NULL:
                for i in range(w.places):
                    out[i] += bias[t * w.rows + m]
            out += w.places
        if way == BACKWARD:
            with_padding(w, x + n * w.plane, 1, image, bias + t if bias != NULL else NULL, ADD)
    free(offset)
    return -1


cdef inline bint can_turn(const Windows* w) noexcept nogil:
    """Whether the image's gradient is a convolution of its own: every position reaches into the output, one step apart."""
    cdef int i
    cdef Py_ssize_t reach
    for i in range(3):
        reach = w.dilation[i] * (w.kernel[i] - 1)
        if w.stride[i] != 1 or w.padding[i] > reach or w.size[i] != w.out[i] + reach - 2 * w.padding[i]:
            return False
    return w.depthwise and w.rows == 1


cdef Py_ssize_t turned(Windows* w, real* x, real* out, real* weight, real* bias) noexcept nogil:
    """depthwise(BACKWARD) as the convolution of out and the reversed weight: sums in registers instead of memory."""
    cdef Py_ssize_t i, t, n = w.groups * w.taps, status = OUT_OF_MEMORY
    cdef real* reversed
    w.full = 1
    for i in range(3):
        w.padding[i] = w.dilation[i] * (w.kernel[i] - 1) - w.padding[i]
        w.size[i], w.out[i] = w.out[i], w.size[i]
        w.padded[i] = w.out[i] + w.dilation[i] * (w.kernel[i] - 1)
        w.full *= w.padded[i]
    w.plane, w.places, w.phase = w.places, w.plane, w.padded[2]
    free(w.memory)
    w.memory = malloc((w.full + 3 * PLACES + n) * sizeof(real))
    if w.memory != NULL:
        reversed = <real*> w.memory + w.full + 3 * PLACES
        for i in range(w.groups):
            for t in range(w.taps):
                reversed[i * w.taps + t] = weight[(i + 1) * w.taps - 1 - t]
        status = depthwise(w, out, x, reversed, bias, FORWARD)
    return status


# ---- the three products by columns

cdef inline void move(const Windows* w, real* out, Py_ssize_t n, Py_ssize_t count, real* part, Py_ssize_t width, bint back) noexcept nogil:
    """Rows of `count` images from n on, side by side in part (back: from there). out is at the group's first row of image 0."""
    cdef Py_ssize_t j, m
    cdef real* row
    for j in range(count):
        for m in range(w.rows):
            row = out + ((n + j) * w.groups * w.rows + m) * w.places
            if back:
                memcpy(row, part + m * width + j * w.places, w.places * sizeof(real))
            else:
                memcpy(part + m * width + j * w.places, row, w.places * sizeof(real))


cdef void group(Windows* w, int dtype, real* x, real* out, real* weight, real* bias, Product way) noexcept nogil:
    """One group of all images. x and out are at the group's first channel and row of image 0; bias is the group's, too."""
    cdef real* image = <real*> w.memory
    cdef real* cols = image + w.channels * w.full + PLACES
    cdef real* part = cols + w.inner * w.block + PLACES           # rows of several images, or the weight of one block
    cdef real* rows
    cdef real* b
    cdef Py_ssize_t n = 0, p, j, m, i, count, width, ld, ld_rows
    cdef Py_ssize_t step = w.groups * w.channels * w.plane
    while n < w.images:
        count = min(w.together, w.images - n)
        if way == BACKWARD:
            if not w.pointwise:
                memset(image, 0, w.channels * w.full * sizeof(real))
        elif not w.pointwise and count == 1:
            with_padding(w, x + n * step, w.channels, image, NULL, TAKE)
        p = 0
        while p < w.places:
            width = w.places * count if w.together > 1 else min(w.block, w.places - p)
            rows, ld_rows = out + n * w.groups * w.rows * w.places + p, w.places
            if count > 1:
                rows, ld_rows = part, width
                if way != FORWARD:
                    move(w, out, n, count, part, width, False)
            b, ld = cols, width
            if w.pointwise:
                b, ld = x + n * step + p, w.places
            elif way != BACKWARD:
                for j in range(count):
                    if count > 1:
                        with_padding(w, x + (n + j) * step, w.channels, image, NULL, TAKE)
                    columns(w, image, w.channels, p, min(p + width, w.places), cols + j * w.places, width, TAKE)
            if way == FORWARD:
                K.small_gemm(dtype, 0, 0, w.rows, width, w.inner, <char*> weight, w.inner, <char*> b, ld, <char*> rows, ld_rows)
                if bias != NULL:
                    for m in range(w.rows):
                        for i in range(width):
                            rows[m * ld_rows + i] += bias[m]
                if count > 1:
                    move(w, out, n, count, part, width, True)
            elif way == BACKWARD:
                K.small_gemm(dtype, 1, 0, w.inner, width, w.rows, <char*> weight, w.inner, <char*> rows, ld_rows, <char*> b, ld)
                if w.pointwise and bias != NULL:
                    for m in range(w.inner):
                        for i in range(width):
                            b[m * ld + i] += bias[m]
                for j in range(0 if w.pointwise else count):
                    if count > 1:
                        memset(image, 0, w.channels * w.full * sizeof(real))
                    columns(w, image, w.channels, p, min(p + width, w.places), cols + j * w.places, width, ADD)
                    if count > 1:
                        with_padding(w, x + (n + j) * step, w.channels, image, bias, ADD)
            else:
                part = part if count == 1 else part + w.rows * w.block
                K.small_gemm(dtype, 0, 1, w.rows, w.inner, width, <char*> rows, ld_rows, <char*> b, ld, <char*> part, w.inner)
                for i in range(w.rows * w.inner):
                    weight[i] += part[i]
                part = part if count == 1 else part - w.rows * w.block
            p += width
        if way == BACKWARD and not w.pointwise and count == 1:
            with_padding(w, x + n * step, w.channels, image, bias, ADD)
        n += count


cdef Py_ssize_t product(Windows* w, int dtype, real* x, real* out, real* weight, real* bias, Product way) noexcept nogil:
    cdef Py_ssize_t g, _, c, i, status = -1, channels, plane
    cdef real* empty
    if w.memory == NULL:              # nothing to multiply: zeros, or the bias
        empty = out if way == FORWARD else x if way == BACKWARD else weight
        channels, plane = (w.rows, w.places) if way == FORWARD else (w.channels, w.plane)
        for _ in range(w.images if way != WEIGHTS else 0):
            for c in range(channels * w.groups):
                for i in range(plane):
                    empty[i] = bias[c] if bias != NULL else 0
                empty += plane
    if way == WEIGHTS:
        memset(weight, 0, w.groups * w.rows * w.inner * sizeof(real))
    if w.memory == NULL:
        return -1
    if way == BACKWARD and can_turn(w):
        status = turned(w, x, out, weight, bias)
    elif w.depthwise:
        status = depthwise(w, x, out, weight, bias, way)
    else:
        for g in range(w.groups):
            group(w, dtype, x + g * w.channels * w.plane, out + g * w.rows * w.places, weight + g * w.rows * w.inner,
                  NULL if bias == NULL else bias + g * (w.rows if way == FORWARD else w.channels), way)
    free(w.memory)
    return status


cdef Py_ssize_t run(const Array* image, const Array* out, const Array* weight, const Array* bias, const Py_ssize_t* ints,
                    Product way) noexcept nogil:
    cdef Windows w
    cdef int dtype = image.dtype
    cdef Py_ssize_t spare = 0, i
    if way == WEIGHTS:
        spare = out.shape[1] // ints[1 + 4 * ints[0]]
        for i in range(1, weight.ndim):
            spare *= weight.shape[i]
        spare += out.shape[1] * FEW
    if prepare(&w, image.shape + 2, out, image.shape[1], ints, 4 if dtype == FLOAT32 else 8, spare) != -1:
        return OUT_OF_MEMORY
    if dtype == FLOAT32:
        return product(&w, dtype, <float*> image.data, <float*> out.data, <float*> weight.data,
                       <float*> bias.data if bias != NULL else NULL, way)
    return product(&w, dtype, <double*> image.data, <double*> out.data, <double*> weight.data,
                   <double*> bias.data if bias != NULL else NULL, way)


cdef Py_ssize_t convolve(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out (N, M, *places) = weight (M, C / groups, *kernel) over x (N, C, *size), plus bias (M)."""
    return run(&arrays[1], &arrays[0], &arrays[2], &arrays[3], ints, FORWARD)


cdef Py_ssize_t convolve_input(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """x from out and weight, plus bias (C): a transposed convolution."""
    return run(&arrays[0], &arrays[1], &arrays[2], &arrays[3], ints, BACKWARD)


cdef Py_ssize_t convolve_weight(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """weight from out and x: the gradient of `convolve` by its weight."""
    return run(&arrays[2], &arrays[1], &arrays[0], NULL, ints, WEIGHTS)


# ---- the columns themselves: (N, C, *size) and (N, C, *kernel, *places)

cdef Py_ssize_t each_window(real tag, const Array* image, const Array* windows, const Py_ssize_t* ints, Way way) noexcept nogil:
    cdef Windows w
    cdef real* x = <real*> image.data
    cdef real* cols = <real*> windows.data
    cdef real* padded
    cdef Py_ssize_t _
    if prepare(&w, image.shape + 2, windows, 1, ints, sizeof(real), 0) != -1:
        return OUT_OF_MEMORY
    padded = <real*> w.memory
    for _ in range(image.shape[0] * image.shape[1] if padded != NULL else 0):
        if way == TAKE:                # by way of a block with room behind it
            with_padding(&w, x, 1, padded, NULL, TAKE)
            all_columns(&w, padded, padded + w.full + PLACES, cols)
        else:
            memset(padded, 0, w.full * sizeof(real))
            columns(&w, padded, 1, 0, w.places, cols, w.places, ADD)
            with_padding(&w, x, 1, padded, NULL, ADD)
        x += w.plane
        cols += w.taps * w.places
    free(w.memory)
    return -1


cdef void all_columns(const Windows* w, real* padded, real* block, real* cols) noexcept nogil:
    cdef Py_ssize_t p = 0, t, width
    while p < w.places:
        width = min(w.block, w.places - p)
        columns(w, padded, 1, p, p + width, block, width, TAKE)
        for t in range(w.taps):
            memcpy(cols + t * w.places + p, block + t * width, width * sizeof(real))
        p += width


cdef Py_ssize_t unfold(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    if arrays[0].dtype == FLOAT32:
        return each_window[float](0, &arrays[1], &arrays[0], ints, TAKE)
    return each_window[double](0, &arrays[1], &arrays[0], ints, TAKE)


cdef Py_ssize_t fold(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    if arrays[0].dtype == FLOAT32:
        return each_window[float](0, &arrays[0], &arrays[1], ints, ADD)
    return each_window[double](0, &arrays[0], &arrays[1], ints, ADD)


add_routine("windows.convolve", "wrrr", convolve)
add_routine("windows.convolve_input", "wrrr", convolve_input)
add_routine("windows.convolve_weight", "wrr", convolve_weight)
add_routine("windows.unfold", "wr", unfold)
add_routine("windows.fold", "wr", fold)
