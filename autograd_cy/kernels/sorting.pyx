# Sorting and selecting along an axis: sort, the smallest k, one order statistic, the most frequent value.
#
# Relies on table and lines. engine/sorting runs them, as routines.
#
# A line becomes words that hold an unsigned key (ordered as the elements are: -0.0 as 0.0, NaN last) and the place in the line.
# Words are all different, so every order below is the stable one. Keys of 32 bits share one word with their place; others have two.
# Long lines are sorted digit by digit, which takes 11 bits of a key at a time, and selected by looking into one bucket of digits only.

from libc.math cimport ceil, floor, isinf, rint
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, element, real
from autograd_cy.kernels.lines cimport Lines, next_line, start_lines
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine

cdef struct Wide:
    uint64_t key
    uint64_t place

ctypedef fused keyed:
    uint64_t                  # key << 32 | place
    Wide

cdef enum:
    SHORT = 32                # words that are sorted by insertion
    LONG = 4096               # words for which buckets of 11 bits pay
    ON_STACK = 64             # words for which no memory is asked for
    MANY = 8                  # lines of so many times k elements are filtered against the k best so far
    MAX_DIGITS = 8
    MAX_BUCKETS = 2048

# What one routine does with each line.
cdef enum Task:
    SORT
    TOP                       # the smallest k
    KTH                       # ints[3]: which, counted from 0
    MEDIAN
    NANMEDIAN
    MODE

cdef enum:                    # what a quantile between two elements is
    STRAIGHT
    LOWER
    HIGHER
    MIDPOINT
    NEARER


# ---- words

cdef int64_t SIGN = <int64_t> (<uint64_t> 1 << 63)


cdef inline uint64_t key_of(element x) noexcept nogil:
    cdef int64_t wide, whole                       # the bits, and those of the absolute value
    cdef int32_t half, rest
    if element is float:                           # by integers and without branches: NaNs and zeros may be anywhere
        memcpy(&half, &x, 4)
        rest = half & 0x7FFFFFFF
        half = half ^ (half >> 31 | <int32_t> 0x80000000U)
        half = half if rest else <int32_t> 0x80000000U
        return <uint32_t> (half if rest <= 0x7F800000 else -1)
    elif element is double:
        memcpy(&wide, &x, 8)
        whole = wide & ~SIGN
        wide = wide ^ (wide >> 63 | SIGN)
        wide = wide if whole else SIGN
        return <uint64_t> (wide if whole <= <int64_t> 0x7FF << 52 else -1)
    elif element is int64_t:
        return <uint64_t> x ^ (<uint64_t> 1 << 63)
    elif element is int32_t:
        return <uint32_t> x ^ 0x80000000U
    else:
        return x


cdef inline element element_of(uint64_t key, uint64_t place, const element* x, Py_ssize_t step) noexcept nogil:
    """The element of that key, which was at that place: from the key, as long lines do not stay in the cache."""
    cdef element value
    cdef uint32_t half
    if element is float:
        if key == 0xFFFFFFFFU or key == 0x80000000U:
            return x[place * step]                 # a NaN or zero of any kind
        half = <uint32_t> (key ^ 0x80000000U if key >> 31 else ~key)
        memcpy(&value, &half, 4)
        return value
    elif element is double:
        if ~key == 0 or key == <uint64_t> 1 << 63:
            return x[place * step]
        key = key ^ <uint64_t> 1 << 63 if key >> 63 else ~key
        memcpy(&value, &key, 8)
        return value
    elif element is int64_t:
        return <int64_t> (key ^ (<uint64_t> 1 << 63))
    elif element is int32_t:
        return <int32_t> <uint32_t> (key ^ 0x80000000U)
    else:
        return <element> key


cdef inline void make_word(keyed* w, uint64_t key, uint64_t place) noexcept nogil:
    if keyed is Wide:
        w.key, w.place = key, place
    else:
        w[0] = key << 32 | place


cdef inline uint64_t place_of(keyed w) noexcept nogil:
    if keyed is Wide:
        return w.place
    else:
        return w & 0xFFFFFFFFU


cdef inline uint64_t key_in(keyed w) noexcept nogil:
    if keyed is Wide:
        return w.key
    else:
        return w >> 32


cdef inline bint comes_before(keyed a, keyed b) noexcept nogil:
    if keyed is Wide:
        return a.key < b.key or (a.key == b.key and a.place < b.place)
    else:
        return a < b


cdef inline int key_bits(keyed* unused) noexcept nogil:
    return 64 if keyed is Wide else 32


cdef void insertion_sort(keyed* w, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef keyed v
    for i in range(1, n):
        v = w[i]
        j = i
        while j > 0 and comes_before(v, w[j - 1]):
            w[j] = w[j - 1]
            j -= 1
        w[j] = v


cdef keyed* sort_words(keyed* w, keyed* spare, Py_ssize_t n) noexcept nogil:
    """The words in order, in one of the two places. The places of equal keys must ascend in w."""
    cdef Py_ssize_t counts[MAX_DIGITS][MAX_BUCKETS]
    cdef Py_ssize_t i, start, here
    cdef int d, b, size, digits, buckets
    cdef uint64_t key
    if n <= SHORT:
        insertion_sort(w, n)
        return w
    size = 11 if n >= LONG else 8
    buckets = 1 << size
    digits = (key_bits(w) + size - 1) // size
    for d in range(digits):
        memset(&counts[d][0], 0, buckets * sizeof(Py_ssize_t))
    for i in range(n):
        key = key_in(w[i])
        for d in range(digits):
            counts[d][key & (buckets - 1)] += 1
            key >>= size
    for d in range(digits):
        if counts[d][(key_in(w[0]) >> d * size) & (buckets - 1)] == n:
            continue                               # all have the same digit
        start = 0
        for b in range(buckets):
            here = counts[d][b]
            counts[d][b] = start
            start += here
        for i in range(n):
            b = <int> ((key_in(w[i]) >> d * size) & (buckets - 1))
            spare[counts[d][b]] = w[i]
            counts[d][b] += 1
        w, spare = spare, w
    return w


cdef keyed selected(keyed* w, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """The word that comes k-th in order; w is lost. The places of equal keys must ascend in w."""
    cdef Py_ssize_t counts[MAX_BUCKETS]
    cdef Py_ssize_t i, kept
    cdef int b, size, shift = key_bits(w)
    cdef uint64_t buckets
    while n > SHORT and shift > 0:
        size = min(11 if n >= LONG else 8, shift)
        shift -= size
        buckets = <uint64_t> 1 << size
        memset(counts, 0, buckets * sizeof(Py_ssize_t))
        for i in range(n):
            counts[(key_in(w[i]) >> shift) & (buckets - 1)] += 1
        b = 0
        while k >= counts[b]:
            k -= counts[b]
            b += 1
        if counts[b] == n:
            continue
        kept = 0
        for i in range(n):                         # without a branch that can't be foreseen
            w[kept] = w[i]
            kept += (key_in(w[i]) >> shift) & (buckets - 1) == <uint64_t> b
        n = kept
    if n <= SHORT:
        insertion_sort(w, n)
    return w[k]


# ---- tasks

cdef void fill_words(keyed* w, const element* x, Py_ssize_t step, Py_ssize_t n, uint64_t flip) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        make_word(&w[i], key_of(x[i * step]) ^ flip, i)


cdef keyed* smallest(keyed* w, keyed* spare, const element* x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t k, uint64_t flip) noexcept nogil:
    """The k smallest words in order, from w or spare."""
    cdef Py_ssize_t i, j, kept = 0, room
    cdef uint64_t key, limit = 0
    cdef bint limited = False
    cdef keyed border
    cdef keyed* best
    if k == 0:
        return w
    if k <= SHORT:                                 # the best so far, always in order
        for i in range(n):
            key = key_of(x[i * step]) ^ flip
            if kept == k:
                if key >= limit:                   # an equal key with a later place comes later
                    continue
                kept -= 1
            j = kept
            while j > 0 and key < key_in(w[j - 1]):
                w[j] = w[j - 1]
                j -= 1
            make_word(&w[j], key, i)
            kept += 1
            limit = key_in(w[kept - 1])
        return w
    if k * MANY <= n:                              # the best so far and the next that may be better
        room = 3 * k
        for i in range(n):
            key = key_of(x[i * step]) ^ flip
            if limited and key >= limit:
                continue
            make_word(&w[kept], key, i)
            kept += 1
            if kept == room:
                best = sort_words(w, spare, kept)
                if best != w:
                    memcpy(w, best, k * sizeof(keyed))
                kept = k
                limit, limited = key_in(w[k - 1]), True
        return sort_words(w, spare, kept)          # equal keys are still in the order of their places
    fill_words(w, x, step, n, flip)
    memcpy(spare, w, n * sizeof(keyed))
    border = selected(spare, n, k - 1)
    for i in range(n):
        if not comes_before(border, w[i]):
            w[kept] = w[i]
            kept += 1
    return sort_words(w, spare, k)


cdef inline bint is_nan(element x) noexcept nogil:
    if element is float or element is double:
        return x != x
    else:
        return False


cdef Py_ssize_t middle(keyed* w, const element* x, Py_ssize_t step, Py_ssize_t n, bint skip) noexcept nogil:
    """The place of the lower median: of the first NaN, if there is one; skip: of the others."""
    cdef Py_ssize_t i, nans = 0
    for i in range(n):
        nans += is_nan(x[i * step])
    if nans and not skip:
        i = 0
        while not is_nan(x[i * step]):
            i += 1
        return i
    fill_words(w, x, step, n, 0)                         # NaNs come last
    return place_of(selected(w, n, max(n - nans - 1, 0) // 2))


cdef Py_ssize_t most_frequent(keyed* w, keyed* spare, const element* x, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """The last place of the most frequent value, of several the smallest; NaNs are not equal."""
    cdef Py_ssize_t i, start = 0, most = 0, found = 0
    fill_words(w, x, step, n, 0)
    w = sort_words(w, spare, n)
    for i in range(n):
        if i and (key_in(w[i]) != key_in(w[i - 1]) or is_nan(x[place_of(w[i]) * step])):
            start = i
        if i + 1 - start > most:
            most, found = i + 1 - start, place_of(w[i])
    if most == 1:                                  # all different: the first in order
        found = place_of(w[0])
    return found


cdef void run_line(Task task, const Py_ssize_t* ints, keyed* w, keyed* spare, const Lines* lines, const element* x, element* values,
                   int64_t* places, Py_ssize_t k) noexcept nogil:
    cdef uint64_t flip = 0
    cdef Py_ssize_t i, place, n = lines.n, step = lines.step[2]
    if task == SORT or task == TOP:
        if ints[2]:
            flip = ~flip if keyed is Wide else 0xFFFFFFFFU
        if task == TOP:
            w = smallest(w, spare, x, step, n, k, flip)
        else:
            fill_words(w, x, step, n, flip)
            w = sort_words(w, spare, n)
        for i in range(k):
            place = place_of(w[i])
            if places != NULL:
                places[i * lines.step[1]] = place
            if values != NULL:
                values[i * lines.step[0]] = element_of(key_in(w[i]) ^ flip, place, x, step)
        return
    if task == KTH:
        fill_words(w, x, step, n, 0)
        place = place_of(selected(w, n, ints[3]))
    elif task == MODE:
        place = most_frequent(w, spare, x, step, n)
    else:
        place = middle(w, x, step, n, task == NANMEDIAN)
    values[0] = x[place * step]
    places[0] = place


cdef Py_ssize_t run_lines(const Array* arrays, const Py_ssize_t* ints, const element* x, keyed* room) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t _, k
    cdef keyed* w = room
    start_lines(&lines, arrays, 3, 2, <int> ints[0])
    k = ints[3] if ints[1] == TOP else lines.n
    if lines.n == 0 or lines.count == 0:
        return -1
    if lines.n > ON_STACK:
        w = <keyed*> malloc(2 * lines.n * sizeof(keyed))
        if w == NULL:
            return OUT_OF_MEMORY
    for _ in range(lines.count):
        run_line(<Task> ints[1], ints, w, w + lines.n, &lines, x + lines.at[2],
                 <element*> arrays[0].data + lines.at[0] if arrays[0].data != NULL else NULL,
                 <int64_t*> arrays[1].data + lines.at[1] if arrays[1].data != NULL else NULL, k)
        next_line(&lines)
    if w != room:
        free(w)
    return -1


cdef Py_ssize_t by_word(const Array* arrays, const Py_ssize_t* ints, const element* x) noexcept nogil:
    cdef Wide wide[2 * ON_STACK]
    cdef Py_ssize_t n = arrays[2].shape[ints[0]] if arrays[2].ndim else 1
    if element is double or element is int64_t:
        return run_lines(arrays, ints, x, wide)
    else:
        if n > <Py_ssize_t> 0xFFFFFFFF:
            return run_lines(arrays, ints, x, wide)
        return run_lines(arrays, ints, x, <uint64_t*> wide)


cdef Py_ssize_t along(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """values, indices (either may be missing where a task gives many) from x; ints: axis, task, descending, k."""
    cdef char* x = arrays[2].data
    if arrays[2].dtype == FLOAT32:
        return by_word(arrays, ints, <float*> x)
    if arrays[2].dtype == FLOAT64:
        return by_word(arrays, ints, <double*> x)
    if arrays[2].dtype == INT64:
        return by_word(arrays, ints, <int64_t*> x)
    if arrays[2].dtype == INT32:
        return by_word(arrays, ints, <int32_t*> x)
    return by_word(arrays, ints, <uint8_t*> x)


# ---- quantiles

cdef Py_ssize_t quantiles(const Array* arrays, const Py_ssize_t* ints, double level, const real* x) noexcept nogil:
    cdef const real* levels = <const real*> arrays[4].data
    cdef const int64_t* order
    cdef Py_ssize_t count = 1 if levels == NULL else arrays[4].shape[0], _, j, k, last, below, above, step, nan
    cdef int64_t places_here[SHORT]
    cdef uint64_t keys[SHORT]
    cdef uint64_t key
    cdef real* values = <real*> arrays[0].data
    cdef int64_t* places = <int64_t*> arrays[1].data
    cdef real* weights = <real*> arrays[5].data
    cdef Lines lines
    cdef real rank, t, a, b
    start_lines(&lines, arrays, 4, 3, <int> ints[0])
    for j in range(count):
        if levels != NULL and not 0 <= levels[j] <= 1:
            return j
    for _ in range(lines.count if lines.n else 0):
        last, order, step = lines.n - 1, places_here, 1
        if ints[3]:
            for k in range(lines.n):
                j, key = k, key_of(x[lines.at[3] + k * lines.step[3]])
                while j > 0 and key < keys[j - 1]:
                    keys[j], places_here[j] = keys[j - 1], places_here[j - 1]
                    j -= 1
                keys[j], places_here[j] = key, k
        else:
            order, step = <const int64_t*> arrays[2].data + lines.at[2], lines.step[2]
        nan = is_nan(x[lines.at[3] + order[last * step] * lines.step[3]])
        while nan and ints[2] and last and is_nan(x[lines.at[3] + order[last * step] * lines.step[3]]):
            last -= 1
        for j in range(count):
            rank = <real> ((level if levels == NULL else levels[j]) * <double> last)
            rank = <real> last if nan and not ints[2] or rank > last else rank
            if ints[1] == LOWER:
                rank = <real> floor(rank)
            elif ints[1] == HIGHER:
                rank = <real> ceil(rank)
            elif ints[1] == NEARER:
                rank = <real> rint(rank)
            below = <Py_ssize_t> rank
            t = rank - below
            above = order[(below + (t > 0)) * step]
            below = order[below * step]
            if t > 0 and ints[1] == MIDPOINT:
                t = 0.5
            a, b = x[lines.at[3] + below * lines.step[3]], x[lines.at[3] + above * lines.step[3]]
            if a == b and isinf(a):                # inf - inf is NaN
                t = 0
            if not (t == 0 and (isinf(a) or ints[1] != STRAIGHT and ints[1] != MIDPOINT)):
                a = a + t * (b - a) if t < 0.5 else b - (b - a) * (<real> 1 - t)       # as lerp has it, also for a zero's sign
            values[lines.at[0] + j * lines.step[0]] = a
            if weights != NULL:
                for k in range(2):
                    places[lines.at[1] + (j + k * count) * lines.step[1]] = above if k else below
                    weights[lines.at[1] + (j + k * count) * lines.step[1]] = t if k else <real> 1 - t
        next_line(&lines)
    return -1


cdef Py_ssize_t quantile(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """values, the places of the two elements that each is between, the order of x, x, levels (contiguous; or missing, and numbers[0] is the
    only one), the weights of the two places (of their layout; or both missing); ints: axis, how to interpolate, whether NaNs are left out,
    whether an axis of up to SHORT elements is put in order here (the order is not read). A level outside [0, 1] is the status."""
    if arrays[3].dtype == FLOAT64:
        return quantiles(arrays, ints, numbers[0], <double*> arrays[3].data)
    return quantiles(arrays, ints, <float> numbers[0], <float*> arrays[3].data)


# ---- the way back

cdef Py_ssize_t put_back(const Array* arrays, const Py_ssize_t* ints, real* out, const real* g) noexcept nogil:
    cdef const int64_t* places = <const int64_t*> arrays[2].data
    cdef Lines lines
    cdef Py_ssize_t _, j, k, at, n, line = 0, width = 1
    cdef const real* from_g
    cdef const int64_t* from_places
    cdef real* to
    cdef int last
    start_lines(&lines, arrays, 3, 0, <int> ints[0])
    last = lines.ndim - 1
    if last >= 0 and lines.strides[0][last] == 1 and lines.strides[1][last] == 1 and lines.strides[2][last] == 1:
        width = max(lines.shape[last], <Py_ssize_t> 1)      # lines side by side, in the order of memory
    n = arrays[1].shape[ints[0]] if arrays[0].ndim and arrays[1].ndim == arrays[0].ndim else 1
    memset(out, 0, lines.n * lines.count * sizeof(real))
    while line < lines.count:
        to, from_g, from_places = out + lines.at[0], g + lines.at[1], places + lines.at[2]
        for _ in range(n):
            for j in range(width):
                at = from_places[j]
                if not 0 <= at < lines.n:          # somebody wrote into the indices through NumPy
                    return 0
                if ints[1]:
                    to[at * lines.step[0] + j] += from_g[j]
                else:
                    to[at * lines.step[0] + j] = from_g[j]
            from_g += lines.step[1]
            from_places += lines.step[2]
        line += width
        if width > 1:                              # to the last of these lines
            lines.position[last] += width - 1
            for k in range(3):
                lines.at[k] += width - 1
        next_line(&lines)
    return -1


cdef Py_ssize_t placed(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out, contiguous: g at the places along axis, zeros elsewhere; ints: axis, whether places may be equal (then they add up). Status 0: a
    place is none."""
    if arrays[0].dtype == FLOAT32:
        return put_back(arrays, ints, <float*> arrays[0].data, <float*> arrays[1].data)
    return put_back(arrays, ints, <double*> arrays[0].data, <double*> arrays[1].data)


add_routine("sorting.along", "wwr", along)
add_routine("sorting.quantile", "wwrrrw", quantile, (None, "quantile: q must be in the range [0, 1], but element {status} is not"))
add_routine("sorting.placed", "wrr", placed, (
    IndexError, "an index that the gradient goes to was overwritten: it is out of range for shape {arrays[0][2]}"))
