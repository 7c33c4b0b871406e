# Sorting and selecting along an axis: sort, the smallest k, one order statistic, the most frequent value; binary search, runs, bins.
#
# Relies on table and lines. engine/sorting runs them, as routines.
#
# A line becomes words that hold an unsigned key (ordered as the elements are: -0.0 as 0.0, NaN last) and the place in the line.
# Words are all different, so every order below is the stable one. Keys of 32 bits share one word with their place; others have two.
# Long lines are sorted digit by digit, which takes 11 bits of a key at a time, and selected by looking into one bucket of digits only.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, INT32, INT64, itemsize_of
from autograd_cy.kernels.lines cimport Lines, next_line, start_lines
from autograd_cy.kernels.table cimport OUT_OF_MEMORY, Array, add_routine

ctypedef fused element:
    float
    double
    int64_t
    int32_t
    uint8_t

cdef struct Wide:
    uint64_t key
    uint64_t place

ctypedef fused word:
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


# ---- words

cdef inline uint64_t key_of(element x) noexcept nogil:
    cdef uint64_t bits = 0
    cdef uint32_t half
    if element is float:
        if x != x:
            return 0xFFFFFFFF
        if x == 0:
            return 0x80000000U
        memcpy(&half, &x, 4)
        return <uint32_t> (~half if half >> 31 else half | 0x80000000U)
    elif element is double:
        if x != x:
            return ~bits
        if x == 0:
            return <uint64_t> 1 << 63
        memcpy(&bits, &x, 8)
        return ~bits if bits >> 63 else bits | <uint64_t> 1 << 63
    elif element is int64_t:
        return <uint64_t> x ^ (<uint64_t> 1 << 63)
    elif element is int32_t:
        return <uint32_t> x ^ 0x80000000U
    else:
        return x


cdef inline void make_word(word* w, uint64_t key, uint64_t place) noexcept nogil:
    if word is Wide:
        w.key, w.place = key, place
    else:
        w[0] = key << 32 | place


cdef inline uint64_t place_of(word w) noexcept nogil:
    if word is Wide:
        return w.place
    else:
        return w & 0xFFFFFFFFU


cdef inline uint64_t key_in(word w) noexcept nogil:
    if word is Wide:
        return w.key
    else:
        return w >> 32


cdef inline bint comes_before(word a, word b) noexcept nogil:
    if word is Wide:
        return a.key < b.key or (a.key == b.key and a.place < b.place)
    else:
        return a < b


cdef inline int key_bits(word* unused) noexcept nogil:
    return 64 if word is Wide else 32


cdef void insertion_sort(word* w, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef word v
    for i in range(1, n):
        v = w[i]
        j = i
        while j > 0 and comes_before(v, w[j - 1]):
            w[j] = w[j - 1]
            j -= 1
        w[j] = v


cdef word* sort_words(word* w, word* spare, Py_ssize_t n) noexcept nogil:
    """The words in order, in one of the two places. The places of equal keys must ascend in w."""
    cdef Py_ssize_t counts[MAX_DIGITS][MAX_BUCKETS]
    cdef Py_ssize_t i, start, here
    cdef int d, b, size, digits, buckets
    cdef uint64_t key
    cdef word* other
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
        other, w, spare = w, spare, w
    return w


cdef word selected(word* w, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
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

cdef void fill(word* w, const element* x, Py_ssize_t step, Py_ssize_t n, uint64_t flip) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        make_word(&w[i], key_of(x[i * step]) ^ flip, i)


cdef word* smallest(word* w, word* spare, const element* x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t k, uint64_t flip) noexcept nogil:
    """The k smallest words in order, from w or spare."""
    cdef Py_ssize_t i, j, kept = 0, room
    cdef uint64_t key, limit = 0
    cdef bint limited = False
    cdef word border
    cdef word* best
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
                    memcpy(w, best, k * sizeof(word))
                kept = k
                limit, limited = key_in(w[k - 1]), True
        return sort_words(w, spare, kept)          # equal keys are still in the order of their places
    fill(w, x, step, n, flip)
    memcpy(spare, w, n * sizeof(word))
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


cdef Py_ssize_t middle(word* w, const element* x, Py_ssize_t step, Py_ssize_t n, bint skip) noexcept nogil:
    """The place of the lower median: of the first NaN, if there is one; skip: of the others."""
    cdef Py_ssize_t i, nans = 0
    for i in range(n):
        nans += is_nan(x[i * step])
    if nans and not skip:
        i = 0
        while not is_nan(x[i * step]):
            i += 1
        return i
    fill(w, x, step, n, 0)                         # NaNs come last
    return place_of(selected(w, n, max(n - nans - 1, 0) // 2))


cdef Py_ssize_t most_frequent(word* w, word* spare, const element* x, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """The last place of the most frequent value, of several the smallest; NaNs are not equal."""
    cdef Py_ssize_t i, start = 0, most = 0, found = 0
    fill(w, x, step, n, 0)
    w = sort_words(w, spare, n)
    for i in range(n):
        if i and (key_in(w[i]) != key_in(w[i - 1]) or is_nan(x[place_of(w[i]) * step])):
            start = i
        if i + 1 - start > most:
            most, found = i + 1 - start, place_of(w[i])
    if most == 1:                                  # all different: the first in order
        found = place_of(w[0])
    return found


cdef void run_line(Task task, const Py_ssize_t* ints, word* w, word* spare, const Lines* lines, const element* x, element* values,
                   int64_t* places, Py_ssize_t k) noexcept nogil:
    cdef uint64_t flip = 0
    cdef Py_ssize_t i, place, n = lines.n, step = lines.step[2]
    if task == SORT or task == TOP:
        if ints[2]:
            flip = ~flip if word is Wide else 0xFFFFFFFFU
        if task == TOP:
            w = smallest(w, spare, x, step, n, k, flip)
        else:
            fill(w, x, step, n, flip)
            w = sort_words(w, spare, n)
        for i in range(k):
            place = place_of(w[i])
            if places != NULL:
                places[i * lines.step[1]] = place
            if values != NULL:
                values[i * lines.step[0]] = x[place * step]
        return
    if task == KTH:
        fill(w, x, step, n, 0)
        place = place_of(selected(w, n, ints[3]))
    elif task == MODE:
        place = most_frequent(w, spare, x, step, n)
    else:
        place = middle(w, x, step, n, task == NANMEDIAN)
    values[0] = x[place * step]
    places[0] = place


cdef Py_ssize_t run_lines(const Array* arrays, const Py_ssize_t* ints, const element* x, word* room) noexcept nogil:
    cdef Lines lines
    cdef Py_ssize_t line, k
    cdef word* w = room
    start_lines(&lines, arrays, 3, 2, <int> ints[0])
    k = ints[3] if ints[1] == TOP else lines.n
    if lines.n == 0 or lines.count == 0:
        return -1
    if lines.n > ON_STACK:
        w = <word*> malloc(2 * lines.n * sizeof(word))
        if w == NULL:
            return OUT_OF_MEMORY
    for line in range(lines.count):
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


# ---- binary search

cdef inline Py_ssize_t found_at(const element* row, const int64_t* order, Py_ssize_t n, element v, bint right) noexcept nogil:
    """How many elements of the sorted row come before v: those below it, or, right, those up to it; all of them before NaN."""
    cdef Py_ssize_t start = 0, half
    cdef element x
    if n == 0 or is_nan(v):
        return n
    while n > 1:                                   # always the same number of rounds: nothing to foresee
        half = n >> 1
        x = row[start + half - 1] if order == NULL else row[order[start + half - 1]]
        start += half if (x <= v if right else x < v) else 0
        n -= half
    x = row[start] if order == NULL else row[order[start]]
    return start + (x <= v if right else x < v)


cdef void search_rows(const Array* arrays, const Py_ssize_t* ints, const element* v, const element* x) noexcept nogil:
    cdef Py_ssize_t i, place, n = arrays[2].shape[arrays[2].ndim - 1], count = 1, each
    cdef const int64_t* order = <const int64_t*> arrays[3].data
    cdef int d
    for d in range(arrays[1].ndim):
        count *= arrays[1].shape[d]
    each = arrays[1].shape[arrays[1].ndim - 1] if arrays[2].ndim > 1 else count
    for i in range(count):
        if i and i % each == 0:
            x += n
            if order != NULL:
                order += n
        place = found_at(x, order, n, v[i], ints[0])
        if arrays[0].dtype == INT32:
            (<int32_t*> arrays[0].data)[i] = <int32_t> place
        else:
            (<int64_t*> arrays[0].data)[i] = place


cdef Py_ssize_t search(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out (int64 or int32), values, sorted rows (one, or as many as values has), order of the rows or nothing; contiguous. ints: right.
    A place that `order` names outside its row is the status."""
    cdef char* v = arrays[1].data
    cdef char* x = arrays[2].data
    cdef Py_ssize_t i, n = arrays[2].shape[arrays[2].ndim - 1], count = 1
    if arrays[3].data != NULL:
        for i in range(arrays[3].ndim):
            count *= arrays[3].shape[i]
        for i in range(count):
            if not 0 <= (<int64_t*> arrays[3].data)[i] < n:
                return i
    if arrays[2].dtype == FLOAT32:
        search_rows(arrays, ints, <float*> v, <float*> x)
    elif arrays[2].dtype == FLOAT64:
        search_rows(arrays, ints, <double*> v, <double*> x)
    elif arrays[2].dtype == INT64:
        search_rows(arrays, ints, <int64_t*> v, <int64_t*> x)
    elif arrays[2].dtype == INT32:
        search_rows(arrays, ints, <int32_t*> v, <int32_t*> x)
    else:
        search_rows(arrays, ints, <uint8_t*> v, <uint8_t*> x)
    return -1


# ---- runs of equal elements, for unique

cdef Py_ssize_t find_runs(const element* x, Py_ssize_t n, element* values, int64_t* starts, int64_t* runs, const int64_t* order) noexcept nogil:
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        if i == 0 or x[i] != x[i - 1]:
            values[found] = x[i]
            if starts != NULL:
                starts[found] = i
            found += 1
        if runs != NULL:
            runs[i if order == NULL else order[i]] = found - 1
    return found


cdef Py_ssize_t runs_of(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """Of n contiguous elements x: the first of each run, where it starts (or NULL), the number of the run of each element (or NULL), and
    how many runs there are; an order (or NULL) says where each element of x came from, and the numbers go there."""
    cdef int64_t* starts = <int64_t*> arrays[1].data
    cdef int64_t* runs = <int64_t*> arrays[2].data
    cdef int64_t* order = <int64_t*> arrays[5].data
    cdef char* x = arrays[4].data
    cdef char* values = arrays[0].data
    cdef Py_ssize_t found, n = arrays[4].shape[0]
    if arrays[4].dtype == FLOAT32:
        found = find_runs(<float*> x, n, <float*> values, starts, runs, order)
    elif arrays[4].dtype == FLOAT64:
        found = find_runs(<double*> x, n, <double*> values, starts, runs, order)
    elif arrays[4].dtype == INT64:
        found = find_runs(<int64_t*> x, n, <int64_t*> values, starts, runs, order)
    elif arrays[4].dtype == INT32:
        found = find_runs(<int32_t*> x, n, <int32_t*> values, starts, runs, order)
    else:
        found = find_runs(<uint8_t*> x, n, <uint8_t*> values, starts, runs, order)
    (<int64_t*> arrays[3].data)[0] = found
    return -1


# ---- counting

ctypedef fused real:
    float
    double


cdef void count_into(real* out, const int64_t* x, const real* weights, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[x[i]] += weights[i]


cdef Py_ssize_t bincount(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out: how often each number from 0 on is in x (int64, contiguous, no number outside), or the sum of its weights."""
    cdef const int64_t* x = <const int64_t*> arrays[1].data
    cdef int64_t* counts = <int64_t*> arrays[0].data
    cdef Py_ssize_t i, n = arrays[1].shape[0]
    memset(arrays[0].data, 0, arrays[0].shape[0] * itemsize_of(arrays[0].dtype))
    if arrays[2].data == NULL:
        for i in range(n):
            counts[x[i]] += 1
    elif arrays[2].dtype == FLOAT32:
        count_into(<float*> arrays[0].data, x, <float*> arrays[2].data, n)
    else:
        count_into(<double*> arrays[0].data, x, <double*> arrays[2].data, n)
    return -1


cdef void bins_of(real* out, const real* x, const real* edges, const real* weights, Py_ssize_t n, Py_ssize_t bins, int mode) noexcept nogil:
    cdef Py_ssize_t i, place
    cdef real low = edges[0], high = edges[bins if mode else 1]
    for i in range(n):
        if not (x[i] >= low and x[i] <= high):
            continue
        if mode == 2:                              # edges of any widths
            place = found_at(edges, NULL, bins + 1, x[i], True) - 1
        else:
            place = <Py_ssize_t> ((x[i] - low) * bins / (high - low))
            if mode == 1:                          # equal widths, but the edges decide
                place = max(min(place, bins - 1), 0)
                while place > 0 and x[i] < edges[place]:
                    place -= 1
                while place + 1 < bins and x[i] >= edges[place + 1]:
                    place += 1
        out[max(min(place, bins - 1), 0)] += 1 if weights == NULL else weights[i]


cdef Py_ssize_t histogram(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil:
    """out: how many elements of x, or the sum of their weights (or NULL), lie in each bin; ints: 0: edges has the two ends of the range;
    1: all edges, at equal distances; 2: all edges. The last bin has its right edge, too. Contiguous, one dtype."""
    memset(arrays[0].data, 0, arrays[0].shape[0] * itemsize_of(arrays[0].dtype))
    if arrays[0].dtype == FLOAT32:
        bins_of(<float*> arrays[0].data, <float*> arrays[1].data, <float*> arrays[2].data, <float*> arrays[3].data, arrays[1].shape[0],
                arrays[0].shape[0], <int> ints[0])
    else:
        bins_of(<double*> arrays[0].data, <double*> arrays[1].data, <double*> arrays[2].data, <double*> arrays[3].data,
                arrays[1].shape[0], arrays[0].shape[0], <int> ints[0])
    return -1


def out_of_row(status, arrays, ints):
    """The error of a sorter that is no order."""
    return IndexError(f"searchsorted: element {status} of the sorter is out of range for rows of shape {arrays[2][2]}")


add_routine("sorting.along", "wwr", along)
add_routine("sorting.runs", "wwwwrr", runs_of)
add_routine("sorting.bincount", "wrr", bincount)
add_routine("sorting.histogram", "wrrr", histogram)
add_routine("sorting.search", "wrrr", search, out_of_row)
