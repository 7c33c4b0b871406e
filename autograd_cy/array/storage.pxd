# Reference-counted, aligned memory from a pool of size classes: the C interface.
#
# Relies on nothing.  Every tensor holds one Storage; views share it.
#
# A Storage and its data are one block: a 32-byte header, then up to 32 bytes of data for tiny tensors (so that a
# scalar takes one cache line), or data aligned to 64 bytes.  All functions need the GIL: counts are plain integers.

cdef struct Storage:
    Py_ssize_t refs           # while the block lies in a free list: the next free block
    char* data
    size_t nbytes
    unsigned int version      # counts in-place changes; saved values remember it
    int size_class            # free list of the block; FOREIGN: memory that belongs to another object

cdef enum:
    N_CLASSES = 176
    FOREIGN = -1
    CAPTURED = -2             # made while a capture was on: a block of its own, never reused before the capture ends
    TINY = 32                 # bytes of data that fit beside the header in one cache line
    SMALL_CLASSES = 5         # classes 0..4 are carved from slabs:
    SMALL = 256               # up to so many bytes
    HEADER = 64               # bytes before the data of a block that is not tiny, and at the head of a slab

cdef struct Pool:
    Storage* free[N_CLASSES]
    size_t cached_bytes       # of the blocks above 256 bytes that lie in free lists
    size_t cache_limit
    size_t heap_calls         # how often memory was asked of the C library
    size_t heap_bytes         # held from the C library, in use or cached
    size_t slab_overhead      # of them in heads and ends of slabs
    unsigned long capturing   # the thread whose tensors are being captured; 0: none

cdef Pool pool

cdef extern from *:
    """
    /* Class of a size: 0 up to 32 bytes; then steps of 64 up to 256; then four steps per power of two. */
    static inline int ag_size_class(size_t nbytes) {
        if (nbytes <= 32) return 0;
        size_t n = nbytes - 1;
        if (n < 256) return 1 + (int)(n >> 6);
        int k = 63 - __builtin_clzll((unsigned long long)n);
        return 5 + (k - 8) * 4 + (int)((n >> (k - 2)) & 3);
    }

    /* Under AddressSanitizer (make asan): of a block in use only the bytes asked for may be touched, of a free one none. */
    #ifdef __SANITIZE_ADDRESS__
    #include <sanitizer/asan_interface.h>
    static inline void ag_lend(char* data, size_t nbytes, size_t capacity) {
        __asan_unpoison_memory_region(data, nbytes);
        __asan_poison_memory_region(data + nbytes, capacity - nbytes);
    }
    #else
    #define ag_lend(data, nbytes, capacity) ((void) 0)
    #endif
    """
    int ag_size_class(size_t nbytes) noexcept nogil
    void ag_lend(char* data, size_t nbytes, size_t capacity) noexcept nogil

cdef Storage* storage_any(size_t nbytes) except NULL
cdef void storage_free(Storage* s) noexcept
cdef void start_capture() noexcept
cdef void pause_capture() noexcept
cdef void end_capture() noexcept
cdef list linked_blocks()
cdef Storage* slab_block(size_t address) noexcept
cdef list captured_blocks()
cdef Storage* storage_foreign(void* data, size_t nbytes, object owner) except NULL


cdef inline Storage* storage_new(size_t nbytes) except NULL:
    """A new block of at least nbytes (uninitialised), with one reference."""
    cdef int size_class
    cdef Storage* s
    if nbytes <= SMALL and not pool.capturing:
        size_class = ag_size_class(nbytes)
        s = pool.free[size_class]
        if s != NULL:
            pool.free[size_class] = <Storage*> s.refs
            s.refs = 1
            s.nbytes = nbytes
            s.version = 0
            ag_lend(s.data, nbytes, class_capacity(size_class))
            return s
    return storage_any(nbytes)


cdef inline size_t class_capacity(int size_class) noexcept nogil:
    """Bytes of data that a block of the class holds."""
    if size_class == 0:
        return TINY
    if size_class < SMALL_CLASSES:
        return <size_t> size_class << 6
    return <size_t> (((size_class - 5) & 3) + 5) << (((size_class - 5) >> 2) + 6)


cdef inline void storage_incref(Storage* s) noexcept:
    s.refs += 1


cdef inline void storage_decref(Storage* s) noexcept:
    s.refs -= 1
    if s.refs == 0:
        if 0 <= s.size_class < SMALL_CLASSES:
            s.refs = <Py_ssize_t> pool.free[s.size_class]
            pool.free[s.size_class] = s
            ag_lend(s.data, 0, class_capacity(s.size_class))
        else:
            storage_free(s)


cdef class UntypedStorage:
    cdef Storage* storage
    cdef Py_ssize_t length

cdef UntypedStorage wrap_storage(Storage* s)
