# A map from addresses to small integers, for one backward pass: open addressing, grown by doubling.
#
# Relies on the C library. backward keeps in it what it must not write into nodes that another pass may be using.

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

cdef struct PointerMap:
    void** keys
    Py_ssize_t* values
    size_t capacity           # a power of two, or 0
    size_t count


cdef inline void map_free(PointerMap* m) noexcept nogil:
    free(m.keys)
    free(m.values)
    m.keys = NULL
    m.values = NULL
    m.capacity = m.count = 0


cdef inline size_t map_place(PointerMap* m, void* key) noexcept nogil:
    """Where the key is, or the free place where it belongs."""
    cdef size_t place = (<uintptr_t> key >> 4) * <size_t> 0x9E3779B97F4A7C15 >> 20 & (m.capacity - 1)
    while m.keys[place] != NULL and m.keys[place] != key:
        place = (place + 1) & (m.capacity - 1)
    return place


cdef inline Py_ssize_t map_get(PointerMap* m, void* key, Py_ssize_t missing) noexcept nogil:
    cdef size_t place
    if m.capacity == 0:
        return missing
    place = map_place(m, key)
    return m.values[place] if m.keys[place] == key else missing


cdef inline bint map_grow(PointerMap* m) noexcept nogil:
    cdef PointerMap larger
    cdef size_t i, place
    larger.capacity = 64 if m.capacity == 0 else 4 * m.capacity
    larger.count = m.count
    larger.keys = <void**> calloc(larger.capacity, sizeof(void*))
    larger.values = <Py_ssize_t*> calloc(larger.capacity, sizeof(Py_ssize_t))
    if larger.keys == NULL or larger.values == NULL:
        free(larger.keys)
        free(larger.values)
        return False
    for i in range(m.capacity):
        if m.keys[i] != NULL:
            place = map_place(&larger, m.keys[i])
            larger.keys[place] = m.keys[i]
            larger.values[place] = m.values[i]
    free(m.keys)
    free(m.values)
    m[0] = larger
    return True


cdef inline int map_set(PointerMap* m, void* key, Py_ssize_t value) except -1:
    cdef size_t place
    if 2 * m.count >= m.capacity and not map_grow(m):
        raise MemoryError("out of memory during backward")
    place = map_place(m, key)
    if m.keys[place] == NULL:
        m.keys[place] = key
        m.count += 1
    m.values[place] = value
    return 0
