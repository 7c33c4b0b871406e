# Reference-counted, aligned memory from a pool of size classes: slabs, free lists, limits and statistics.
#
# Relies on the C library's allocator.  Tensors hold storages through storage.pxd; `memory_stats` and friends are public.

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport malloc, free
from libc.string cimport memset

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __linux__
    #include <sys/mman.h>
    #endif
    #define AG_HUGE ((size_t) 2 << 20)
    /* Memory of the C library; from 2 MB on mapped, in pages of that size where the system has them for those who ask: what does not fit
       into the caches is read and written at up to twice the speed. Not by posix_memalign: blocks of many sizes at such places leave holes
       in the heap that nothing else fits into, many times what is in use. The length of a mapping is at its start. */
    #if defined(MADV_HUGEPAGE) && !defined(__SANITIZE_ADDRESS__)
    #define AG_MAPS 1
    static void *ag_map_huge(size_t size) {
        char *start, *raw;
        size = (size + 65535) & ~(size_t) 65535;                   /* no page is larger */
        start = (char *) mmap(NULL, size + AG_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == (char *) MAP_FAILED) return NULL;
        raw = (char *) (((size_t) start + AG_HUGE - 1) & ~(AG_HUGE - 1));
        if (raw > start) munmap(start, (size_t) (raw - start));
        munmap(raw + size, AG_HUGE - (size_t) (raw - start));
        madvise(raw, size, MADV_HUGEPAGE);
        *(size_t *) raw = size;
        return raw;
    }
    #else
    #define AG_MAPS 0
    #define ag_map_huge malloc
    #endif
    static inline void *ag_large(size_t size, int mapped) { return AG_MAPS && mapped ? ag_map_huge(size) : malloc(size); }
    static inline void ag_release(void *raw, int mapped) {
    #if AG_MAPS
        if (mapped) munmap(raw, *(size_t *) raw);
        else
    #endif
            free(raw);
    }
    """
    const size_t HUGE_BYTES "AG_HUGE"
    void* ag_large(size_t size, bint mapped)
    void ag_release(void* raw, bint mapped) noexcept

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memptr, size_t alignment, size_t size)

# 4 MB temporaries cost 88 us cached, 363 with malloc and free, 1484 when mapped afresh: so what is freed is kept, up to this.
DEFAULT_CACHE_LIMIT = 512 << 20

cdef enum:
    SLAB_BYTES = 65536

cdef struct Slab:             # the first 64 bytes of a slab, which is aligned to its own size
    int size_class
    int blocks
    int free_blocks           # only meaningful during a sweep

cdef struct Linked:           # the head of every block that is not part of a slab
    Storage base
    Linked* previous
    Linked* following

cdef struct ForeignStorage:
    Linked base
    PyObject* owner

cdef Linked* first_linked = NULL          # all of them, so that the owner of an address can be found
cdef set slabs = set()                    # addresses
cdef list fresh = []                      # (address of the data, bytes, address of the Storage) of what the capture allocated

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

pool.cache_limit = DEFAULT_CACHE_LIMIT


cdef void link(Storage* s) noexcept:
    global first_linked
    cdef Linked* block = <Linked*> s
    block.previous = NULL
    block.following = first_linked
    if first_linked != NULL:
        first_linked.previous = block
    first_linked = block


cdef void unlink(Storage* s) noexcept:
    global first_linked
    cdef Linked* block = <Linked*> s
    if block.previous != NULL:
        block.previous.following = block.following
    else:
        first_linked = block.following
    if block.following != NULL:
        block.following.previous = block.previous


cdef inline size_t block_bytes(int size_class) noexcept nogil:
    return 64 if size_class == 0 else HEADER + class_capacity(size_class)


cdef Storage* prepare(char* block, int size_class, size_t nbytes) noexcept:
    cdef Storage* s = <Storage*> block
    s.refs = 1
    s.data = block + (TINY if size_class == 0 else HEADER)
    s.nbytes = nbytes
    s.version = 0
    s.size_class = size_class
    return s


cdef Storage* storage_any(size_t nbytes) except NULL:
    """As storage_new, for blocks that are not just taken from a list."""
    cdef int size_class
    cdef Storage* s
    if nbytes > <size_t> 1 << 46:
        raise MemoryError(f"cannot allocate {nbytes} bytes")
    if pool.capturing and pool.capturing == PyThread_get_thread_ident():
        return large_block(CAPTURED, nbytes)
    size_class = ag_size_class(nbytes)
    s = pool.free[size_class]
    if s == NULL:
        return storage_grow(size_class, nbytes)
    pool.free[size_class] = <Storage*> s.refs
    if size_class >= SMALL_CLASSES:
        pool.cached_bytes -= HEADER + class_capacity(size_class)
    s.refs = 1
    s.nbytes = nbytes
    s.version = 0
    ag_lend(s.data, nbytes, class_capacity(size_class))
    return s


cdef Storage* storage_grow(int size_class, size_t nbytes) except NULL:
    """A block from the C library: a slab's worth of small ones, or one large one."""
    cdef char* raw
    cdef Storage* s
    cdef Slab* slab
    cdef size_t size = block_bytes(size_class)
    cdef int i
    if size_class < SMALL_CLASSES:
        pool.heap_calls += 1
        if posix_memalign(<void**> &raw, SLAB_BYTES, SLAB_BYTES) != 0:
            raise MemoryError("out of memory: no further slab for small tensors")
        slabs.add(<uintptr_t> raw)
        pool.heap_bytes += SLAB_BYTES
        slab = <Slab*> raw
        slab.size_class = size_class
        slab.blocks = <int> ((SLAB_BYTES - HEADER) // size)
        pool.slab_overhead += SLAB_BYTES - slab.blocks * size
        # The list is filled from the back, so that blocks are taken in the order of their addresses.
        for i in range(slab.blocks - 1, 0, -1):
            s = prepare(raw + HEADER + i * size, size_class, 0)
            ag_lend(s.data, 0, class_capacity(size_class))
            s.refs = <Py_ssize_t> pool.free[size_class]
            pool.free[size_class] = s
        s = prepare(raw + HEADER, size_class, nbytes)
        ag_lend(s.data, nbytes, class_capacity(size_class))
        return s
    return large_block(size_class, nbytes)


cdef Storage* large_block(int size_class, size_t nbytes) except NULL:
    cdef char* raw
    cdef char* block
    cdef size_t size = block_bytes(size_class) if size_class != CAPTURED else HEADER + nbytes
    # Huge pages begin at the same lower bits, at which a copy to a place just behind its source takes ten times as long.
    cdef size_t shift = (pool.heap_calls & 7) * 512 if size >= HUGE_BYTES else 0
    pool.heap_calls += 1
    raw = <char*> ag_large(size + shift + 64 + sizeof(void*), size >= HUGE_BYTES)
    if raw == NULL:
        empty_cache()
        raw = <char*> ag_large(size + shift + 64 + sizeof(void*), size >= HUGE_BYTES)
        if raw == NULL:
            raise MemoryError(f"cannot allocate {nbytes} bytes for a tensor")
    pool.heap_bytes += size
    block = <char*> ((<uintptr_t> raw + shift + sizeof(void*) + 63) & ~<uintptr_t> 63)
    (<char**> block - 1)[0] = raw
    prepare(block, size_class, nbytes)
    ag_lend(block + HEADER, nbytes, size - HEADER)
    link(<Storage*> block)
    if size_class == CAPTURED:
        memset(block + HEADER, 0, nbytes)         # the same garbage each time, where somebody reads what nobody wrote
        fresh.append((<uintptr_t> block + HEADER, nbytes, <uintptr_t> block))
    return <Storage*> block


cdef void storage_free(Storage* s) noexcept:
    """The last reference of a large or foreign block is gone."""
    cdef PyObject* owner
    cdef size_t size
    if s.size_class == FOREIGN:
        owner = (<ForeignStorage*> s).owner
        unlink(s)
        free(s)
        Py_DECREF(<object> owner)
        return
    if s.size_class == CAPTURED:
        if not pool.capturing:
            release_large(s)
        return
    size = block_bytes(s.size_class)
    if pool.cached_bytes + size <= pool.cache_limit:
        s.refs = <Py_ssize_t> pool.free[s.size_class]
        pool.free[s.size_class] = s
        pool.cached_bytes += size
        ag_lend(s.data, 0, size - HEADER)
    else:
        release_large(s)


cdef void release_large(Storage* s) noexcept:
    cdef size_t size = block_bytes(s.size_class) if s.size_class != CAPTURED else HEADER + s.nbytes
    pool.heap_bytes -= size
    unlink(s)
    ag_release((<char**> s - 1)[0], size >= HUGE_BYTES)


# ---- captures

cdef void start_capture() noexcept:
    """From here on every new storage of this thread is a block of its own, so that an address names one value."""
    pool.capturing = PyThread_get_thread_ident()


cdef void pause_capture() noexcept:
    """Until start_capture is called again, storages come from the pool."""
    pool.capturing = 0


cdef void end_capture() noexcept:
    """Free the blocks of the capture that nobody refers to any more."""
    cdef Linked* block = first_linked
    cdef Linked* following
    pool.capturing = 0
    while block != NULL:
        following = block.following
        if block.base.size_class == CAPTURED and block.base.refs == 0:
            release_large(&block.base)
        block = following


cdef list captured_blocks():
    """What this capture has allocated since the last call."""
    global fresh
    found, fresh = fresh, []
    return found


cdef list linked_blocks():
    """(address of the data, bytes, address of the Storage) of every block that is not part of a slab, free ones included."""
    cdef Linked* block = first_linked
    cdef list found = []
    while block != NULL:
        found.append((<uintptr_t> block.base.data, block.base.nbytes, <uintptr_t> block))
        block = block.following
    return found


cdef Storage* slab_block(size_t address) noexcept:
    """The storage of a slab in which an address in use lies; NULL: none."""
    cdef size_t start = address & ~<size_t> (SLAB_BYTES - 1)
    cdef size_t size
    if start not in slabs or address < start + HEADER:
        return NULL
    size = block_bytes((<Slab*> start).size_class)
    return <Storage*> (start + HEADER + (address - start - HEADER) // size * size)


cdef Storage* storage_foreign(void* data, size_t nbytes, object owner) except NULL:
    """Memory that belongs to `owner`, which is kept alive as long as the storage."""
    cdef ForeignStorage* block = <ForeignStorage*> malloc(sizeof(ForeignStorage))
    cdef Storage* s = <Storage*> block
    if s == NULL:
        raise MemoryError("out of memory")
    s.refs = 1
    s.data = <char*> data
    s.nbytes = nbytes
    s.version = 0
    s.size_class = FOREIGN
    Py_INCREF(owner)
    block.owner = <PyObject*> owner
    link(s)
    return s


cdef inline Slab* slab_of(Storage* s) noexcept:
    return <Slab*> (<uintptr_t> s & ~<uintptr_t> (SLAB_BYTES - 1))


cdef void sweep_slabs(int size_class) noexcept:
    """Give back the slabs of which every block is free."""
    cdef Storage* s = pool.free[size_class]
    cdef Storage* following
    cdef Storage* kept = NULL
    cdef Storage* doomed = NULL
    cdef Slab* slab
    while s != NULL:
        slab_of(s).free_blocks = 0
        s = <Storage*> s.refs
    s = pool.free[size_class]
    while s != NULL:
        slab_of(s).free_blocks += 1
        s = <Storage*> s.refs
    s = pool.free[size_class]
    while s != NULL:
        following = <Storage*> s.refs
        slab = slab_of(s)
        if slab.free_blocks < slab.blocks:
            s.refs = <Py_ssize_t> kept
            kept = s
        elif <char*> s == <char*> slab + HEADER:      # one block of each free slab stands for it
            s.refs = <Py_ssize_t> doomed
            doomed = s
        s = following
    pool.free[size_class] = kept
    while doomed != NULL:
        following = <Storage*> doomed.refs
        pool.slab_overhead -= SLAB_BYTES - slab_of(doomed).blocks * block_bytes(size_class)
        slabs.discard(<uintptr_t> slab_of(doomed))
        free(slab_of(doomed))
        pool.heap_bytes -= SLAB_BYTES
        doomed = following


def empty_cache():
    """Give the memory that no tensor uses back to the C library."""
    cdef int size_class
    cdef Storage* s
    cdef Storage* following
    for size_class in range(SMALL_CLASSES):
        sweep_slabs(size_class)
    for size_class in range(SMALL_CLASSES, N_CLASSES):
        s = pool.free[size_class]
        pool.free[size_class] = NULL
        while s != NULL:
            following = <Storage*> s.refs
            release_large(s)
            s = following
    pool.cached_bytes = 0


def memory_stats():
    """Bytes and counts of the memory pool.

    Returns a dict: ``allocated_bytes`` (in use by tensors and saved values, as rounded to size classes),
    ``cached_bytes`` (free, kept for reuse), ``reserved_bytes`` (their sum and the heads of slabs: what is held from
    the C library), ``heap_calls`` (how often the C library was asked for memory so far) and ``cache_limit``.
    """
    cdef int size_class
    cdef size_t cached = pool.cached_bytes
    cdef Storage* s
    for size_class in range(SMALL_CLASSES):
        s = pool.free[size_class]
        while s != NULL:
            cached += block_bytes(size_class)
            s = <Storage*> s.refs
    return {"allocated_bytes": pool.heap_bytes - pool.slab_overhead - cached, "cached_bytes": cached,
            "reserved_bytes": pool.heap_bytes, "heap_calls": pool.heap_calls, "cache_limit": pool.cache_limit}


def set_cache_limit(limit):
    """Keep at most `limit` bytes of freed large blocks for reuse (default 512 MiB)."""
    if limit < 0:
        raise ValueError(f"set_cache_limit: expected a size in bytes of at least 0, got {limit}")
    pool.cache_limit = limit
    if pool.cached_bytes > pool.cache_limit:
        empty_cache()


@cython.binding(False)                    # methods check the type of self only without it
cdef class UntypedStorage:
    """The bytes that a tensor and its views share; offers the buffer protocol (read-only)."""

    def __cinit__(self):
        self.storage = NULL

    def __dealloc__(self):
        if self.storage != NULL:
            storage_decref(self.storage)

    def __len__(self):
        return self.length

    def nbytes(self):
        """Size in bytes."""
        return self.length

    def data_ptr(self):
        """Address of the first byte."""
        return <uintptr_t> self.storage.data if self.storage != NULL else 0

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.storage == NULL:
            raise BufferError("an empty storage object has no memory")
        PyBuffer_FillInfo(buffer, self, self.storage.data, self.length, 1, flags)

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self.storage == (<UntypedStorage> other).storage

    def __hash__(self):
        return hash(<uintptr_t> self.storage)


cdef UntypedStorage wrap_storage(Storage* s):
    cdef UntypedStorage wrapper = UntypedStorage.__new__(UntypedStorage)
    storage_incref(s)
    wrapper.storage = s
    wrapper.length = s.nbytes
    return wrapper
