# Drivers that run one elementwise loop, or a copy, over operands of any shape and strides.
#
# Relies on table (the loops' signature, the casts), plan (order of dims) and moves (packing, scratch memory).  The engine relies on it,
# through K.elementwise and K.copy.
#
# A loop handles contiguous elements only (or one repeated input).  So the driver orders the dims by the output's
# strides, merges those it can, and hands the loop the longest contiguous stretches there are.  What is not
# contiguous is packed into blocks of scratch memory that stay in the first-level cache; a packed block is kept for as
# long as its source address stays the same, so a broadcast operand is packed once.

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from autograd_cy.array.dtype cimport MAX_NDIM, itemsize_of
from autograd_cy.kernels.moves cimport (
    AG_SCRATCH_BYTES, MAX_OPERANDS, ag_copy_short, ag_repeat_row, ag_scratch, move_block, move_tile_of)
from autograd_cy.kernels.plan cimport Plan, advance, band_dim, make_plan, move_dim_inward
from autograd_cy.kernels.table cimport (
    K, Loop, Operand, BLOCK, ALL_VECTORS, LAST_SCALAR, FIRST_SCALAR, N_VARIANTS)

cdef enum:
    # Of each operand that is packed at a time: strided operands are then read side by side, as if each had a loop of its own. With
    # four times as much, sums of every second column of large arrays take twice as long.
    PACKED_BYTES = 2048
    APART = 192               # more than a multiple of 4096, or loads would wait for stores to the same place of another page
    SHORT_ROW = 64            # rows shorter than this are gathered into blocks of whole rows
    # A repeated row is written out to about so many elements, so that the loop runs on long stretches. Writing costs
    # some 0.1 ns per element and a call of the loop 4 ns, so that small operands do with less.
    PATTERN = 512
    SMALL_PATTERN = 160

cdef enum State:              # how the loop gets at an operand within a block
    DIRECT = 0
    REPEATED = 1              # one value, through a scalar variant
    PACKED = 2                # through scratch memory


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
    cdef int nops = plan.nops, k, d, inner_dims = plan.ndim - first
    cdef Py_ssize_t inner = 1, chunk, start = 0, count, size, step, limit = BLOCK, _
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t block_shape[MAX_NDIM]
    cdef char* data[MAX_OPERANDS]
    cdef char* base
    cdef char* held[MAX_OPERANDS]              # source address of what a slot holds
    cdef char* pointers[MAX_OPERANDS]
    cdef int state[MAX_OPERANDS]
    cdef bint packs = False
    cdef Py_ssize_t expected[MAX_OPERANDS]
    cdef Py_ssize_t differs[MAX_OPERANDS]
    cdef Py_ssize_t moves[MAX_OPERANDS]
    cdef Loop loop
    cdef char* scratch = NULL
    for k in range(MAX_OPERANDS):
        expected[k] = plan.itemsize[k]
        differs[k] = 0
        moves[k] = 0
        data[k] = plan.data[k]
        held[k] = NULL
    d = plan.ndim - 1
    while True:
        for k in range(MAX_OPERANDS):
            differs[k] |= plan.strides[d][k] ^ expected[k]
            moves[k] |= plan.strides[d][k]
        block_shape[d - first] = plan.shape[d]
        if d == first:
            break
        inner *= plan.shape[d]
        for k in range(MAX_OPERANDS):
            expected[k] = inner * plan.itemsize[k]
        d -= 1
    for k in range(nops):
        state[k] = DIRECT if differs[k] == 0 else (REPEATED if moves[k] == 0 and k > 0 else PACKED)
    loop = choose_variant(variants, nops, state)
    for k in range(nops):
        if state[k] == PACKED:
            packs = True
            if plan.itemsize[k] * limit > PACKED_BYTES:
                limit = PACKED_BYTES // plan.itemsize[k]
    chunk = plan.shape[first]
    if packs:
        scratch = ag_scratch()
        if chunk > limit // inner:
            chunk = limit // inner if inner < limit else 1
    for d in range(first):
        index[d] = 0
    if not packs:
        count = chunk * inner
        if first == 0:
            loop(count, data, attrs)
            return
        while True:
            for k in range(MAX_OPERANDS):
                pointers[k] = data[k]
            for _ in range(plan.shape[first - 1]):
                loop(count, pointers, attrs)
                for k in range(MAX_OPERANDS):
                    pointers[k] += plan.strides[first - 1][k]
            if not advance(plan, first - 1, index, data):
                return
    while True:
        start = 0
        while start < plan.shape[first]:
            count = plan.shape[first] - start
            if count > chunk:
                count = chunk
            block_shape[0] = count
            for k in range(nops):
                step = plan.strides[first][k]
                base = data[k] + start * step
                if state[k] != PACKED:
                    pointers[k] = base
                    continue
                pointers[k] = scratch + k * (4 * BLOCK + APART)
                if k == 0 or held[k] == base:
                    continue
                # What is held stays valid: a later chunk is never longer than the first.
                size = plan.itemsize[k]
                if step == 0 and inner_dims > 1:
                    if inner_dims > 2 or plan.strides[first + 1][k] != size:
                        move_block(size, inner_dims - 1, block_shape + 1, pointers[k], NULL, base,
                                   &plan.strides[first + 1][k])
                        ag_repeat_row(pointers[k] + inner * size, pointers[k], inner * size, count - 1)
                    else:
                        ag_repeat_row(pointers[k], base, inner * size, count)
                else:
                    move_block(size, inner_dims, block_shape, pointers[k], NULL, base, &plan.strides[first][k])
                held[k] = base
            loop(count * inner, pointers, attrs)
            if state[0] == PACKED:
                move_block(plan.itemsize[0], inner_dims, block_shape, data[0] + start * plan.strides[first][0],
                           &plan.strides[first][0], scratch, NULL)
            start += count
        if not advance(plan, first, index, data):
            return


cdef void run_bands(Plan* plan, const Loop* variants, const double* attrs) noexcept nogil:
    """The last two dims in tiles of few rows: for operands whose smallest stride is not along the rows."""
    cdef int nops = plan.nops, k, d, npacked = 0
    cdef int row_dim = plan.ndim - 2, col_dim = plan.ndim - 1
    cdef Py_ssize_t rows = plan.shape[row_dim], cols = plan.shape[col_dim]
    cdef Py_ssize_t width, slot_bytes, band, parts, pad, top, left, nrows, ncols, _, size = 1
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t step[MAX_OPERANDS]         # bytes from row to row
    cdef char* data[MAX_OPERANDS]
    cdef char* slot[MAX_OPERANDS]
    cdef char* base
    cdef char* pointers[MAX_OPERANDS]
    cdef int state[MAX_OPERANDS]
    cdef char* scratch = ag_scratch()
    cdef bint dense = True                     # may the loop run on over the end of a row?
    cdef const Py_ssize_t* by_row = plan.strides[row_dim]
    cdef const Py_ssize_t* by_col = plan.strides[col_dim]
    cdef Loop loop
    for k in range(nops):
        state[k] = DIRECT if by_col[k] == plan.itemsize[k] else (REPEATED if by_col[k] == 0 and k > 0 else PACKED)
    loop = choose_variant(variants, nops, state)
    for k in range(nops):
        if state[k] == PACKED:
            npacked += 1
            if plan.itemsize[k] > size:
                size = plan.itemsize[k]
        elif by_row[k] != (cols * plan.itemsize[k] if state[k] == DIRECT else 0):
            dense = False
    # As many rows as a line of the cache has elements, and as many columns as there is room for, in even parts: what is not packed is
    # read and written in long stretches.
    slot_bytes = AG_SCRATCH_BYTES // npacked // 64 * 64 - APART
    band = 64 // size
    width = (slot_bytes // band - 64) // size
    parts = (cols + width - 1) // width
    width = (cols + parts - 1) // parts
    npacked = 0
    for k in range(nops):
        slot[k] = scratch + npacked * slot_bytes
        npacked += state[k] == PACKED
    for k in range(MAX_OPERANDS):
        data[k] = plan.data[k]
        step[k] = by_row[k]
        pointers[k] = NULL
    for d in range(row_dim):
        index[d] = 0
    while True:
        top = 0
        while top < rows:
            nrows = band if top + band <= rows else rows - top
            left = 0
            while left < cols:
                ncols = width if left + width <= cols else cols - left
                pad = 0 if ncols * size & 2047 else 64         # or the rows would share lines of the first-level cache
                for k in range(nops):
                    pointers[k] = data[k] + top * by_row[k] + left * by_col[k]
                    if state[k] == PACKED:
                        base = pointers[k]
                        pointers[k] = slot[k]
                        step[k] = ncols * plan.itemsize[k] + pad
                        if k > 0:
                            move_tile_of(plan.itemsize[k], slot[k], step[k], plan.itemsize[k], base, by_row[k], by_col[k],
                                         nrows, ncols)
                if dense and ncols == cols and pad == 0:
                    loop(nrows * ncols, pointers, attrs)
                else:
                    for _ in range(nrows):
                        loop(ncols, pointers, attrs)
                        for k in range(MAX_OPERANDS):
                            pointers[k] += step[k]
                if state[0] == PACKED:
                    move_tile_of(plan.itemsize[0], data[0] + top * by_row[0] + left * by_col[0], by_row[0], by_col[0],
                                 slot[0], step[0], plan.itemsize[0], nrows, ncols)
                left += ncols
            top += nrows
        if not advance(plan, row_dim, index, data):
            return


cdef inline bint wider_block_packs_more(Plan* plan, int first, Py_ssize_t inner) noexcept nogil:
    """Would an input that is dense over the dims from `first` on be so no longer if the dim before joined them?"""
    cdef int k
    for k in range(1, plan.nops):
        if (plan.strides[plan.ndim - 1][k] == plan.itemsize[k]
                and plan.strides[first][k] * plan.shape[first] == inner * plan.itemsize[k]
                and plan.strides[first - 1][k] != inner * plan.itemsize[k]):
            return True
    return False


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
        inner *= plan.shape[first]
        while first > 0 and inner <= BLOCK // 2 and (inner < SHORT_ROW or not wider_block_packs_more(plan, first, inner)):
            first -= 1
            inner *= plan.shape[first]
    run_blocks(plan, first, variants, attrs)


cdef void run_strided(const Loop* variants, int nops, int ndim, const Py_ssize_t* shape, const Operand* operands,
                      const double* attrs) noexcept nogil:
    cdef Plan plan
    if make_plan(&plan, nops, ndim, shape, operands):
        run_plan(&plan, variants, attrs)


cdef inline Py_ssize_t repeated_row(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    """Size of the contiguous last dims, where all dims before are repeated: 1 for a single value; 0 for other strides."""
    cdef Py_ssize_t expected = 1
    cdef int d = ndim - 1
    while d >= 0 and (strides[d] == expected or shape[d] == 1):
        expected *= shape[d]
        d -= 1
    while d >= 0:
        if strides[d] != 0 and shape[d] != 1:
            return 0
        d -= 1
    return expected


cdef inline bint is_contiguous(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    cdef Py_ssize_t expected = 1
    cdef int d
    for d in range(ndim - 1, -1, -1):
        if shape[d] != 1 and strides[d] != expected:
            return False
        expected *= shape[d]
    return True


cdef void run_rows(Loop loop, int nops, char** data, const Operand* operands, int repeated, int scalars, Py_ssize_t inner,
                   Py_ssize_t rows, const double* attrs) noexcept nogil:
    """A bias: one operand is a row of `inner` elements that repeats, the others are contiguous or (bits of scalars) single values."""
    cdef Py_ssize_t group, step
    cdef uint64_t pattern[PATTERN]
    cdef char* pointers[MAX_OPERANDS]
    cdef int k
    for k in range(nops):
        pointers[k] = data[k]
    group = (PATTERN if rows * inner >= 8 * SMALL_PATTERN else SMALL_PATTERN) // inner
    if group >= 16:
        group -= group % 16                    # whole vectors
    if group > rows:
        group = rows
    if group > 1:
        ag_repeat_row(<char*> pattern, pointers[repeated], inner * operands[repeated].itemsize, group)
        pointers[repeated] = <char*> pattern
    else:
        group = 1
    while rows > 0:
        step = (group if group < rows else rows) * inner
        loop(step, pointers, attrs)
        for k in range(nops):
            if k != repeated and not scalars >> k & 1:
                pointers[k] += step * operands[k].itemsize
        rows -= group


cdef void elementwise(const Loop* variants, int nin, int ndim, const Py_ssize_t* shape, const Operand* operands,
                      const double* attrs) noexcept nogil:
    """The hot path: operands are contiguous, single values, or (one of them) a repeated row."""
    cdef char* pointers[MAX_OPERANDS]
    cdef const Py_ssize_t* strides
    cdef const Py_ssize_t* known = operands[0].strides
    cdef Py_ssize_t n = 1, row, inner = 0
    cdef int k, d, scalars = 0, repeated = 0
    cdef Loop loop = variants[<int> ALL_VECTORS]
    if known == NULL or not is_contiguous(ndim, shape, known):
        run_strided(variants, nin + 1, ndim, shape, operands, attrs)
        return
    for d in range(ndim):
        n *= shape[d]
    if n == 0:
        return
    pointers[0] = operands[0].data
    for k in range(1, nin + 1):
        pointers[k] = operands[k].data
        strides = operands[k].strides
        if strides == known:                   # operands often share one layout, hence one pointer
            continue
        row = repeated_row(ndim, shape, strides) if strides != NULL else 1
        if row == n:
            continue
        if row == 1:
            scalars |= 1 << k
        elif row > 1 and repeated == 0:
            repeated = k
            inner = row
        else:
            loop = NULL
    if scalars != 0:
        if scalars == 4 and nin == 2 and loop != NULL:
            loop = variants[<int> LAST_SCALAR]
        elif scalars == 2 and nin >= 2 and loop != NULL:
            loop = variants[<int> FIRST_SCALAR]
        else:
            loop = NULL
    if loop == NULL:
        run_strided(variants, nin + 1, ndim, shape, operands, attrs)
    elif repeated == 0:
        loop(n, pointers, attrs)
    else:
        run_rows(loop, nin + 1, pointers, operands, repeated, scalars, inner, n // inner, attrs)


# ---------------------------------------------------------------------------------------------- copies

cdef void copy(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides,
               int src_dtype, const char* src, const Py_ssize_t* src_strides) noexcept nogil:
    cdef Plan plan
    cdef Operand operands[2]
    cdef Loop variants[N_VARIANTS]
    cdef uint64_t value
    cdef char* pointers[2]
    cdef Py_ssize_t n
    cdef bint same = dst_dtype == src_dtype
    cdef int d, dim
    if is_contiguous(ndim, shape, dst_strides) and src_strides != NULL and is_contiguous(ndim, shape, src_strides):
        n = 1
        for d in range(ndim):
            n *= shape[d]
        pointers[0] = dst
        pointers[1] = <char*> src
        if same:
            ag_copy_short(dst, src, n * itemsize_of(dst_dtype))
        else:
            K.casts[src_dtype][dst_dtype](n, pointers, NULL)
        return
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
            if plan.strides[d][1] != 0:
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
    move_block(plan.itemsize[0], plan.ndim, plan.shape, plan.data[0], &plan.strides[0][0], plan.data[1], &plan.strides[0][1])


K.elementwise = elementwise
K.copy = copy
