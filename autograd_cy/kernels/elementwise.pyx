# Drivers that run one elementwise loop, or a copy, over operands of any shape and strides.
#
# Relies on table (the loops' signature) and transpose.h (register tiles, scratch memory).  The engine relies on it,
# through K.elementwise, K.copy and K.casts.
#
# A loop handles contiguous elements only (or one repeated input).  So the driver orders the dims by the output's
# strides, merges those it can, and hands the loop the longest contiguous stretches there are.  What is not
# contiguous is packed into blocks of scratch memory that stay in the first-level cache; a packed block is kept for as
# long as its source address stays the same, so a broadcast operand is packed once.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, int32_t, int64_t
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport (
    FLOAT32, FLOAT64, INT64, INT32, UINT8, BOOL, MAX_NDIM, itemsize_of)
from autograd_cy.kernels.table cimport (
    K, Loop, Operand, BLOCK, ALL_VECTORS, LAST_SCALAR, FIRST_SCALAR, N_VARIANTS)

cdef extern from "transpose.h" nogil:
    const Py_ssize_t AG_SCRATCH_BYTES, AG_SCRATCH_SLACK
    char* ag_scratch()
    void ag_transpose32(Py_ssize_t rows, Py_ssize_t cols, uint32_t* dst, Py_ssize_t dst_pitch,
                        const uint32_t* src, Py_ssize_t src_pitch)
    void ag_transpose64(Py_ssize_t rows, Py_ssize_t cols, uint64_t* dst, Py_ssize_t dst_pitch,
                        const uint64_t* src, Py_ssize_t src_pitch)

cdef enum:
    MAX_OPERANDS = 8
    SHORT_ROW = 64            # rows shorter than this are gathered into blocks of whole rows
    BAND = 16                 # rows transposed together: a cache line of float32

cdef enum State:              # how the loop gets at an operand within a block
    DIRECT = 0
    REPEATED = 1              # one value, through a scalar variant
    PACKED = 2                # through scratch memory

# The dims that remain, outermost first: no size 1, ordered by the output's strides (made positive), merged.
cdef struct Plan:
    int ndim
    int nops
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t strides[MAX_OPERANDS][MAX_NDIM]
    Py_ssize_t itemsize[MAX_OPERANDS]
    char* data[MAX_OPERANDS]

ctypedef fused word:          # elements are moved by size, not by dtype
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused from_t:
    float
    double
    int64_t
    int32_t
    uint8_t

ctypedef fused to_t:
    float
    double
    int64_t
    int32_t
    uint8_t


# ---------------------------------------------------------------------------------------------- moving elements

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


cdef inline void replicate(char* dst, Py_ssize_t size, Py_ssize_t total) noexcept nogil:
    """Repeat the first `size` bytes of dst up to `total` bytes, doubling what is there."""
    cdef Py_ssize_t done = size, step
    while done < total:
        step = done if done <= total - done else total - done
        memcpy(dst + done, dst, step)
        done += step


cdef inline void move_tile(word* dst, Py_ssize_t dst_rows, Py_ssize_t dst_cols, const word* src, Py_ssize_t src_rows,
                           Py_ssize_t src_cols, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """dst[i * dst_rows + j * dst_cols] = src[i * src_rows + j * src_cols] for i < rows, j < cols."""
    cdef Py_ssize_t i, j, start, stop
    if src_rows != 0 and magnitude(src_rows) < magnitude(src_cols) and rows >= 4 and cols >= 4:
        if dst_cols == 1 and src_rows == 1:
            if word is uint32_t:
                ag_transpose32(rows, cols, dst, dst_rows, src, src_cols)
                return
            elif word is uint64_t:
                ag_transpose64(rows, cols, dst, dst_rows, src, src_cols)
                return
        start = 0
        while start < rows:
            stop = start + BAND if start + BAND < rows else rows
            for j in range(cols):
                for i in range(start, stop):
                    dst[i * dst_rows + j * dst_cols] = src[i * src_rows + j * src_cols]
            start = stop
        return
    for i in range(rows):
        move_row(dst + i * dst_rows, dst_cols, src + i * src_rows, src_cols, cols)


cdef void move_tile_of(Py_ssize_t itemsize, char* dst, Py_ssize_t dst_rows, Py_ssize_t dst_cols, const char* src,
                       Py_ssize_t src_rows, Py_ssize_t src_cols, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    if itemsize == 4:
        move_tile(<uint32_t*> dst, dst_rows, dst_cols, <const uint32_t*> src, src_rows, src_cols, rows, cols)
    elif itemsize == 8:
        move_tile(<uint64_t*> dst, dst_rows, dst_cols, <const uint64_t*> src, src_rows, src_cols, rows, cols)
    elif itemsize == 1:
        move_tile(<uint8_t*> dst, dst_rows, dst_cols, <const uint8_t*> src, src_rows, src_cols, rows, cols)
    else:
        move_tile(<uint16_t*> dst, dst_rows, dst_cols, <const uint16_t*> src, src_rows, src_cols, rows, cols)


cdef void move_block(Py_ssize_t itemsize, int ndim, const Py_ssize_t* shape, char* dst, const Py_ssize_t* dst_strides,
                     const char* src, const Py_ssize_t* src_strides) noexcept nogil:
    """Move ndim >= 1 non-empty dims: tiles of the last two, odometer over the others."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef int d, outer = ndim - 2
    if ndim == 1:
        move_tile_of(itemsize, dst, 0, dst_strides[0], src, 0, src_strides[0], 1, shape[0])
        return
    for d in range(outer):
        index[d] = 0
    while True:
        move_tile_of(itemsize, dst, dst_strides[outer], dst_strides[outer + 1], src, src_strides[outer],
                     src_strides[outer + 1], shape[outer], shape[outer + 1])
        d = outer - 1
        while d >= 0:
            index[d] += 1
            dst += dst_strides[d] * itemsize
            src += src_strides[d] * itemsize
            if index[d] < shape[d]:
                break
            dst -= dst_strides[d] * itemsize * shape[d]
            src -= src_strides[d] * itemsize * shape[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return


# -------------------------------------------------------------------------------------------------- the plan

cdef bint make_plan(Plan* plan, int nops, int ndim, const Py_ssize_t* shape, const Operand* operands) noexcept nogil:
    """Fill the plan; False when there is nothing to do."""
    cdef int d, e, k, n = 0
    cdef Py_ssize_t size, stride, last
    if nops > MAX_OPERANDS:                    # never; but the compiler should know
        return False
    plan.nops = nops
    for k in range(nops):
        plan.data[k] = operands[k].data
        plan.itemsize[k] = operands[k].itemsize
    for d in range(ndim):
        size = shape[d]
        if size == 0:
            return False
        if size == 1:
            continue
        # insertion into the dims so far; equal strides keep their order
        stride = operands[0].strides[d] if operands[0].strides != NULL else 0
        e = n
        while e > 0 and plan.strides[0][e - 1] < magnitude(stride):
            plan.shape[e] = plan.shape[e - 1]
            for k in range(nops):
                plan.strides[k][e] = plan.strides[k][e - 1]
            e -= 1
        plan.shape[e] = size
        for k in range(nops):
            last = operands[k].strides[d] if operands[k].strides != NULL else 0
            if stride < 0:                     # walk the output forwards
                plan.data[k] += last * (size - 1) * operands[k].itemsize
                last = -last
            plan.strides[k][e] = last
        n += 1
    e = 0                                      # dims 0..e are merged; d is the next
    for d in range(1, n):
        for k in range(nops):
            if plan.strides[k][e] != plan.strides[k][d] * plan.shape[d]:
                break
        else:
            plan.shape[e] *= plan.shape[d]
            for k in range(nops):
                plan.strides[k][e] = plan.strides[k][d]
            continue
        e += 1
        plan.shape[e] = plan.shape[d]
        for k in range(nops):
            plan.strides[k][e] = plan.strides[k][d]
    plan.ndim = e + 1 if n else 0
    return True


cdef inline bint advance(Plan* plan, int ndim, Py_ssize_t* index, char** data) noexcept nogil:
    """Next position over the first ndim dims; False after the last."""
    cdef int d = ndim - 1, k
    while d >= 0:
        index[d] += 1
        if index[d] < plan.shape[d]:
            for k in range(plan.nops):
                data[k] += plan.strides[k][d] * plan.itemsize[k]
            return True
        for k in range(plan.nops):
            data[k] -= plan.strides[k][d] * plan.itemsize[k] * (plan.shape[d] - 1)
        index[d] = 0
        d -= 1
    return False


cdef inline Loop choose_variant(const Loop* variants, int nops, int* state) noexcept nogil:
    """The loop for these states; repeated inputs that it cannot take become packed."""
    cdef int k, scalar = 0
    cdef Loop loop = variants[<int> ALL_VECTORS]
    if nops == 3 and state[2] == REPEATED and variants[<int> LAST_SCALAR] != NULL:
        scalar = 2
        loop = variants[<int> LAST_SCALAR]
    elif nops >= 3 and state[1] == REPEATED and variants[<int> FIRST_SCALAR] != NULL:
        scalar = 1
        loop = variants[<int> FIRST_SCALAR]
    for k in range(1, nops):
        if state[k] == REPEATED and k != scalar:
            state[k] = PACKED
    return loop


# ------------------------------------------------------------------------------------------------- execution

cdef void run_blocks(Plan* plan, int first, const Loop* variants, const double* attrs) noexcept nogil:
    """Dims from `first` on make up a block, dim `first` in chunks; one call of the loop per block."""
    cdef int nops = plan.nops, ndim = plan.ndim, k, d
    cdef int inner_dims = ndim - first
    cdef Py_ssize_t inner = 1, chunk, start, count, slot_bytes, expected
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t block_shape[MAX_NDIM]
    cdef Py_ssize_t contiguous[MAX_NDIM]
    cdef char* data[MAX_OPERANDS]
    cdef char* base
    cdef char* slot[MAX_OPERANDS]
    cdef char* held[MAX_OPERANDS]              # source address of what a slot holds
    cdef char* pointers[MAX_OPERANDS]
    cdef int state[MAX_OPERANDS]
    cdef bint packs = False, all_zero
    cdef Loop loop
    cdef char* scratch
    for d in range(ndim - 1, first - 1, -1):
        block_shape[d - first] = plan.shape[d]
        contiguous[d - first] = inner
        if d > first:
            inner *= plan.shape[d]
    for k in range(nops):
        state[k] = DIRECT
        all_zero = True
        for d in range(first, ndim):
            expected = contiguous[d - first]
            if plan.strides[k][d] != expected:
                state[k] = PACKED
            if plan.strides[k][d] != 0:
                all_zero = False
        if all_zero and k > 0:
            state[k] = REPEATED
    loop = choose_variant(variants, nops, state)
    for k in range(nops):
        data[k] = plan.data[k]
        held[k] = NULL
        if state[k] == PACKED:
            packs = True
    chunk = plan.shape[first]
    if packs:
        scratch = ag_scratch()
        slot_bytes = BLOCK * 8 + AG_SCRATCH_SLACK
        for k in range(nops):
            slot[k] = scratch + k * slot_bytes
        if chunk > BLOCK // inner:
            chunk = BLOCK // inner
    for d in range(first):
        index[d] = 0
    while True:
        start = 0
        while start < plan.shape[first]:
            count = plan.shape[first] - start
            if count > chunk:
                count = chunk
            block_shape[0] = count
            for k in range(nops):
                base = data[k] + start * plan.strides[k][first] * plan.itemsize[k]
                if state[k] != PACKED:
                    pointers[k] = base
                    continue
                pointers[k] = slot[k]
                if k == 0 or held[k] == base:
                    continue
                # A later chunk is never longer than the first, so that what a slot holds is enough for it.
                if plan.strides[k][first] == 0 and inner_dims > 1:
                    move_block(plan.itemsize[k], inner_dims - 1, block_shape + 1, slot[k], contiguous + 1, base,
                               plan.strides[k] + first + 1)
                    replicate(slot[k], inner * plan.itemsize[k], count * inner * plan.itemsize[k])
                else:
                    move_block(plan.itemsize[k], inner_dims, block_shape, slot[k], contiguous, base,
                               plan.strides[k] + first)
                held[k] = base
            loop(count * inner, pointers, attrs)
            if state[0] == PACKED:
                base = data[0] + start * plan.strides[0][first] * plan.itemsize[0]
                move_block(plan.itemsize[0], inner_dims, block_shape, base, plan.strides[0] + first, slot[0], contiguous)
            start += count
        if not advance(plan, first, index, data):
            return


cdef void run_bands(Plan* plan, const Loop* variants, const double* attrs) noexcept nogil:
    """The last two dims in tiles of BAND rows: for operands whose smallest stride is not along the rows."""
    cdef int nops = plan.nops, k, d, npacked = 0
    cdef int row_dim = plan.ndim - 2, col_dim = plan.ndim - 1
    cdef Py_ssize_t rows = plan.shape[row_dim], cols = plan.shape[col_dim]
    cdef Py_ssize_t width, slot_bytes, top, left, nrows, ncols, i, size
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t step[MAX_OPERANDS]         # bytes from row to row
    cdef char* data[MAX_OPERANDS]
    cdef char* slot[MAX_OPERANDS]
    cdef char* base
    cdef char* pointers[MAX_OPERANDS]
    cdef int state[MAX_OPERANDS]
    cdef char* scratch = ag_scratch()
    cdef Loop loop
    for k in range(nops):
        data[k] = plan.data[k]
        state[k] = DIRECT if plan.strides[k][col_dim] == 1 else PACKED
        if k > 0 and plan.strides[k][col_dim] == 0:
            state[k] = REPEATED
    loop = choose_variant(variants, nops, state)
    size = 1
    for k in range(nops):
        if state[k] == PACKED:
            npacked += 1
            if plan.itemsize[k] > size:
                size = plan.itemsize[k]
    slot_bytes = AG_SCRATCH_BYTES // (npacked if npacked > 4 else 4) // 64 * 64      # 16 KB: half of a usual L1
    width = slot_bytes // (BAND * size)
    npacked = 0
    for k in range(nops):
        if state[k] == PACKED:
            slot[k] = scratch + npacked * slot_bytes
            npacked += 1
    for d in range(row_dim):
        index[d] = 0
    while True:
        top = 0
        while top < rows:
            nrows = BAND if top + BAND <= rows else rows - top
            left = 0
            while left < cols:
                ncols = width if left + width <= cols else cols - left
                for k in range(nops):
                    size = plan.itemsize[k]
                    base = data[k] + (top * plan.strides[k][row_dim] + left * plan.strides[k][col_dim]) * size
                    if state[k] != PACKED:
                        pointers[k] = base
                        step[k] = plan.strides[k][row_dim] * size
                        continue
                    pointers[k] = slot[k]
                    step[k] = ncols * size
                    if k > 0:
                        move_tile_of(size, slot[k], ncols, 1, base, plan.strides[k][row_dim], plan.strides[k][col_dim],
                                     nrows, ncols)
                for i in range(nrows):
                    loop(ncols, pointers, attrs)
                    for k in range(nops):
                        pointers[k] += step[k]
                if state[0] == PACKED:
                    size = plan.itemsize[0]
                    base = data[0] + (top * plan.strides[0][row_dim] + left * plan.strides[0][col_dim]) * size
                    move_tile_of(size, base, plan.strides[0][row_dim], plan.strides[0][col_dim], slot[0], ncols, 1,
                                 nrows, ncols)
                left += ncols
            top += nrows
        if not advance(plan, row_dim, index, data):
            return


cdef int band_dim(Plan* plan) noexcept nogil:
    """The dim along which an input that does not run along the rows has its smallest stride; -1 if there is none."""
    cdef int k, d, best
    cdef Py_ssize_t inner, least
    for k in range(1, plan.nops):
        inner = magnitude(plan.strides[k][plan.ndim - 1])
        if inner <= 1:
            continue
        best = -1
        least = inner
        for d in range(plan.ndim - 1):
            if plan.strides[k][d] != 0 and magnitude(plan.strides[k][d]) < least and plan.shape[d] >= 4:
                least = magnitude(plan.strides[k][d])
                best = d
        if best >= 0:
            return best
    return -1


cdef void move_dim_inward(Plan* plan, int dim) noexcept nogil:
    """Make `dim` the last but one."""
    cdef int d, k
    cdef Py_ssize_t saved
    saved = plan.shape[dim]
    for d in range(dim, plan.ndim - 2):
        plan.shape[d] = plan.shape[d + 1]
    plan.shape[plan.ndim - 2] = saved
    for k in range(plan.nops):
        saved = plan.strides[k][dim]
        for d in range(dim, plan.ndim - 2):
            plan.strides[k][d] = plan.strides[k][d + 1]
        plan.strides[k][plan.ndim - 2] = saved


cdef void run_plan(Plan* plan, const Loop* variants, const double* attrs) noexcept nogil:
    cdef int first, dim
    cdef Py_ssize_t inner
    if plan.ndim == 0:
        variants[<int> ALL_VECTORS](1, plan.data, attrs)
        return
    first = plan.ndim - 1
    if first == 0:
        run_blocks(plan, 0, variants, attrs)
        return
    inner = plan.shape[first]
    if inner >= SHORT_ROW:
        dim = band_dim(plan)
        if dim >= 0:
            move_dim_inward(plan, dim)
            run_bands(plan, variants, attrs)
            return
    else:
        first -= 1
        while first > 0 and inner * plan.shape[first] <= BLOCK // 2:
            inner *= plan.shape[first]
            first -= 1
    run_blocks(plan, first, variants, attrs)


cdef inline bint is_contiguous(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    cdef Py_ssize_t expected = 1
    cdef int d
    for d in range(ndim - 1, -1, -1):
        if shape[d] != 1:
            if strides[d] != expected:
                return False
            expected *= shape[d]
    return True


cdef void elementwise(const Loop* variants, int nin, int ndim, const Py_ssize_t* shape, const Operand* operands,
                      const double* attrs) noexcept nogil:
    cdef Plan plan
    cdef char* pointers[MAX_OPERANDS]
    cdef const Py_ssize_t* known = operands[0].strides
    cdef const Py_ssize_t* strides
    cdef Py_ssize_t n = 1
    cdef int k, d
    # The hot path: all operands contiguous. They often share one layout, hence one pointer to their strides.
    if known != NULL and is_contiguous(ndim, shape, known):
        for k in range(nin + 1):
            strides = operands[k].strides
            if strides != known and (strides == NULL or not is_contiguous(ndim, shape, strides)):
                break
            pointers[k] = operands[k].data
        else:
            for d in range(ndim):
                n *= shape[d]
            if n > 0:
                variants[<int> ALL_VECTORS](n, pointers, attrs)
            return
    if make_plan(&plan, nin + 1, ndim, shape, operands):
        run_plan(&plan, variants, attrs)


# ---------------------------------------------------------------------------------------------- copy and casts

# A Loop in all but its C type: the two fused types must occur among the arguments, so p and attrs carry them.
cdef void cast_loop(Py_ssize_t n, from_t** p, const to_t* attrs) noexcept nogil:
    cdef to_t* dst = <to_t*> p[0]
    cdef from_t* src = p[1]
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = <to_t> src[i]


cdef void truth_loop(Py_ssize_t n, from_t** p, const double* attrs) noexcept nogil:
    cdef uint8_t* dst = <uint8_t*> p[0]
    cdef from_t* src = p[1]
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = src[i] != 0


cdef void fill_casts(int dtype, from_t* of_this_type):
    K.casts[dtype][FLOAT32] = <Loop> cast_loop[from_t, float]
    K.casts[dtype][FLOAT64] = <Loop> cast_loop[from_t, double]
    K.casts[dtype][INT64] = <Loop> cast_loop[from_t, int64_t]
    K.casts[dtype][INT32] = <Loop> cast_loop[from_t, int32_t]
    K.casts[dtype][UINT8] = <Loop> cast_loop[from_t, uint8_t]
    K.casts[dtype][BOOL] = <Loop> truth_loop[from_t]


cdef void copy(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides,
               int src_dtype, const char* src, const Py_ssize_t* src_strides) noexcept nogil:
    cdef Plan plan
    cdef Operand operands[2]
    cdef Loop variants[N_VARIANTS]
    cdef uint64_t value
    cdef char* pointers[2]
    cdef bint same = dst_dtype == src_dtype
    cdef int d, dim
    operands[0].data = dst
    operands[0].strides = dst_strides
    operands[0].itemsize = itemsize_of(dst_dtype)
    operands[1].data = <char*> src
    operands[1].strides = src_strides
    operands[1].itemsize = itemsize_of(src_dtype)
    if not make_plan(&plan, 2, ndim, shape, operands):
        return
    if not same:
        for d in range(plan.ndim):
            if plan.strides[1][d] != 0:
                break
        else:                                  # one value: cast it once, then fill
            pointers[0] = <char*> &value
            pointers[1] = plan.data[1]
            K.casts[src_dtype][dst_dtype](1, pointers, NULL)
            plan.data[1] = <char*> &value
            plan.itemsize[1] = plan.itemsize[0]
            same = True
    if not same:
        variants[<int> ALL_VECTORS] = K.casts[src_dtype][dst_dtype]
        variants[<int> LAST_SCALAR] = NULL
        variants[<int> FIRST_SCALAR] = NULL
        run_plan(&plan, variants, NULL)
        return
    if plan.ndim == 0:
        memcpy(plan.data[0], plan.data[1], plan.itemsize[0])
        return
    if plan.ndim > 2:
        dim = band_dim(&plan)
        if dim >= 0:
            move_dim_inward(&plan, dim)
    move_block(plan.itemsize[0], plan.ndim, plan.shape, plan.data[0], plan.strides[0], plan.data[1], plan.strides[1])


fill_casts[float](FLOAT32, NULL)
fill_casts[double](FLOAT64, NULL)
fill_casts[int64_t](INT64, NULL)
fill_casts[int32_t](INT32, NULL)
fill_casts[uint8_t](UINT8, NULL)
fill_casts[uint8_t](BOOL, NULL)       # 0 and 1
K.elementwise = elementwise
K.copy = copy
