# The table of kernels: one global struct of C function pointers, `K`.
#
# Every module of loops is compiled once per instruction-set level (see setup.py); the level that fits
# the processor is imported and fills `K`.  The engine calls kernels through `K` only.
#
# Conventions of every kernel: raw pointers; shapes and strides in ELEMENTS, signed (a stride may be 0 or
# negative); dtype codes of array/dtype.pxd; `noexcept nogil`; arguments were checked by the caller;
# any size may be 0; an output never partly overlaps an input (it may be exactly the same memory, same strides).

from autograd_cy.array.dtype cimport N_DTYPES

cdef enum:
    MAX_LOOPS = 1024
    MAX_ROUTINES = 256
    MAX_ARRAYS = 8            # of a routine
    OUT_OF_MEMORY = -2
    BLOCK = 1024              # elements per block of scratch memory
    PANEL = 16                # columns of a panel of integers

cdef enum:                    # variants: which inputs of a loop are one repeated value (pointer to a single element)
    ALL_VECTORS = 0
    LAST_SCALAR = 1           # the last input; loops of exactly two inputs only
    FIRST_SCALAR = 2          # the first input; loops of two or more inputs
    N_VARIANTS = 3

cdef enum Reduction:
    REDUCE_SUM = 0            # integers and bool sum to int64
    REDUCE_MEAN = 1           # floats only
    REDUCE_PROD = 2           # integers and bool multiply to int64
    REDUCE_MAX = 3            # NaN wins
    REDUCE_MIN = 4
    REDUCE_ARGMAX = 5         # int64, index within the reduced elements in row-major order; first of equals, NaN wins
    REDUCE_ARGMIN = 6
    REDUCE_ANY = 7            # bool
    REDUCE_ALL = 8            # bool
    REDUCE_VAR = 9            # floats; two passes; param is the correction (ddof): sum((x - mean)^2) / max(n - param, 0)
    REDUCE_LOGSUMEXP = 10     # floats; -inf when every input is -inf
    REDUCE_NORM = 11          # floats; param is p: sum(|x|^p)^(1/p), no overflow for p = 2; 0 counts non-zeros; inf and -inf, too

# One elementwise loop over n contiguous elements: p[0] is the output, p[1..] the inputs.
ctypedef void (*Loop)(Py_ssize_t n, char** p, const double* attrs) noexcept nogil

# One action of a chain (ops/chains.py) and the vector or the single value that it needs.
cdef struct Link:
    Py_ssize_t action
    char* data

# Every action in turn on each tile of n elements, with the values in registers in between; n is a multiple of a tile.
ctypedef void (*Chain)(Py_ssize_t n, int count, const Link* links) noexcept nogil

cdef struct Operand:
    char* data
    const Py_ssize_t* strides     # ndim of them, 0 where the operand is repeated; NULL: a single value
    Py_ssize_t itemsize

# A parameter of Adam with n elements, its gradient, the means of gradients and of their squares; vmax: NULL without amsgrad.
cdef struct Moments:
    Py_ssize_t n
    char* p
    const char* g
    char* m
    char* v
    char* vmax

cdef struct AdamNumbers:
    double lr, beta1, beta2, eps, decay
    int decoupled, maximize

# What a routine works on: shape and strides in elements; data is NULL for an option that is not in use.
cdef struct Array:
    char* data
    int dtype
    int ndim
    const Py_ssize_t* shape
    const Py_ssize_t* strides

# A routine: a computation that is no loop (sorting, scans, factorisations, windows ...). It reads and fills its arrays and takes what
# workspace it needs with malloc. -1, OUT_OF_MEMORY, or from 0 on a number that tells its error function what was wrong.
ctypedef Py_ssize_t (*Routine)(const Array* arrays, const Py_ssize_t* ints, const double* numbers) noexcept nogil

cdef struct RoutineEntry:
    Routine run
    const char* name          # "module.function" of kernels/
    const char* roles         # what it does to each array, a letter each: (r)eads, (w)rites all of it without reading, (u)pdates
    bint checks               # it may fail: it has an error function

cdef struct Kernels:
    # loops[loop id][dtype][variant]; NULL where a loop has no such dtype or variant
    Loop loops[MAX_LOOPS][N_DTYPES][N_VARIANTS]
    Loop casts[N_DTYPES][N_DTYPES]            # [from][to], contiguous
    Loop exp[2]                               # of float32 and float64: loops for other kernels, which no capture notes
    Loop power[2]                             # x ** one value

    # special.h: special function number `which` of n contiguous floats, p[0] from p[1]; the coefficients that it takes
    void (*special)(int which, int dtype, Py_ssize_t n, char** p) noexcept nogil
    const void* series

    # elementwise.pyx: run a loop over any strides. operands[0] is the output, then nin inputs (nin <= 7).
    void (*elementwise)(const Loop* variants, int nin, int ndim, const Py_ssize_t* shape,
                        const Operand* operands, const double* attrs) noexcept nogil
    # dst = cast(src), any strides, any pair of dtypes; src strides may be 0
    void (*copy)(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides,
                 int src_dtype, const char* src, const Py_ssize_t* src_strides) noexcept nogil

    # index.pyx
    # offsets[j] = sum_k idx[k][j] * strides[k], negative indices wrapped once. Returns -1, or the first j out of range.
    Py_ssize_t (*index_offsets)(Py_ssize_t n, int nidx, const long long** idx, const Py_ssize_t* dims,
                                const Py_ssize_t* strides, Py_ssize_t* offsets) noexcept nogil
    # out[j, ...] = src[offsets[j] + ...]; the inner part has ndim dims of `shape` and `strides`; out is contiguous
    void (*gather)(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                   const Py_ssize_t* strides, const char* src, char* out) noexcept nogil
    # dst[offsets[j] + ...] = src[j, ...] (later j wins), and dst[...] += src[...] (duplicates add, in the order of j)
    void (*scatter)(Py_ssize_t itemsize, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                    const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil
    void (*scatter_add)(int dtype, Py_ssize_t n, const Py_ssize_t* offsets, int ndim, const Py_ssize_t* shape,
                        const Py_ssize_t* strides, const char* src, char* dst) noexcept nogil
    # number of non-zero elements of x (any strides), and their row-major positions: out has count rows of ndim int64
    Py_ssize_t (*count_nonzero)(int dtype, int ndim, const Py_ssize_t* shape, const char* x,
                                const Py_ssize_t* strides) noexcept nogil
    void (*nonzero)(int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* strides,
                    long long* out) noexcept nogil

    # reduce.pyx: out_strides has 0 on the reduced dims (out is then written once per remaining index).
    # Also unbroadcast (REDUCE_SUM). The caller has refused empty max/min/argmax/argmin. The result's dtype follows from kind.
    void (*reduce)(int kind, int dtype, int ndim, const Py_ssize_t* shape, const char* x, const Py_ssize_t* x_strides,
                   char* out, const Py_ssize_t* out_strides, double param) noexcept nogil

    # rows.pyx: float32 and float64; x, out ... are contiguous (rows, cols)
    void (*softmax)(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* x, char* out, int log) noexcept nogil
    # y is softmax(x) or log_softmax(x)
    void (*softmax_backward)(int dtype, Py_ssize_t rows, Py_ssize_t cols, const char* g, const char* y, char* dx,
                             int log) noexcept nogil

    # update.pyx: float32 and float64, contiguous, n elements; buffers that an option does not need are NULL.
    # Each equals torch.optim's single-tensor formula, operation for operation. step counts from 1 (this step included).
    void (*sgd)(int dtype, Py_ssize_t n, char* p, const char* g, char* buf, double lr, double momentum,
                double dampening, double weight_decay, int nesterov, int maximize, int first) noexcept nogil
    # A mean whose magnitude is below the smallest normal number becomes 0.
    void (*adam)(int dtype, int count, const Moments* parameters, const AdamNumbers* numbers, long long step) noexcept nogil
    void (*rmsprop)(int dtype, Py_ssize_t n, char* p, const char* g, char* square_avg, char* buf, char* grad_avg,
                    double lr, double alpha, double eps, double weight_decay, double momentum,
                    int maximize) noexcept nogil

    # micro.pyx: the small product C = op(A) op(B), row-major, ta/tb: the operand is stored transposed; C is (m, n).
    # lda etc. are row strides of the stored matrix. k = 0 gives zeros. Any positive sizes; meant for small ones.
    void (*small_gemm)(int dtype, int ta, int tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a,
                       Py_ssize_t lda, const char* b, Py_ssize_t ldb, char* c, Py_ssize_t ldc) noexcept nogil
    # sums[j] += sum_p a[p] * panel[p * step + j] for PANEL columns, for gemm.pyx
    void (*int_columns)(Py_ssize_t k, const long long* a, const long long* panel, Py_ssize_t step, long long* sums) noexcept nogil

    # -1, or the first of n contiguous elements that lies outside [0, 1]; NaN passes
    Py_ssize_t (*outside_unit)(int dtype, Py_ssize_t n, const char* x) noexcept nogil

    # runs a routine by its number, with as many arrays as it has roles
    Py_ssize_t (*routine)(int number, const Array* arrays, int n_ints, const Py_ssize_t* ints, int n_numbers,
                          const double* numbers) noexcept nogil

    Chain chains[2]                           # float32 and float64
    Py_ssize_t chain_bytes                    # of a tile; 0 where the compiler can't make chains

cdef Kernels K

cdef RoutineEntry routines[MAX_ROUTINES]
# Give a routine its number, when its module is imported. error(status, arrays, ints): the exception for a status from 0 on; arrays
# are (data address, dtype, shape, strides) tuples. Or (exception, text that names {status}, {arrays[0][2]} or the like): a kB less.
cdef int add_routine(const char* name, const char* roles, Routine run, object error=*) except -1

# What a capture (graph/recorder.pyx) sets while it is on, and NULL otherwise.  The entries of K that are not loops lead through
# the recorder then.  Everything that changes a tensor's memory outside K and `run_loop`, or that brings a value of it to Python,
# has to tell: through the functions below.
cdef struct Recorder:
    void (*loop)(int loop, int dtype, int variant, Py_ssize_t n, char** p, const double* attrs) noexcept nogil
    void (*gemm)(int dtype, bint ta, bint tb, Py_ssize_t batch, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                 Py_ssize_t a_batch, const char* b, Py_ssize_t ldb, Py_ssize_t b_batch, char* c, Py_ssize_t ldc,
                 Py_ssize_t c_batch) noexcept nogil
    int (*escape)(object what) except -1
    int (*call)(object function, list inputs, list outputs) except -1
    int (*update)(object group, object states, object state, object parameter) except -1     # an optimiser's kernel follows
    int (*leaf)(object tensor, bint reads) except -1     # its .grad is about to change; reads: and what it was so far matters
    int (*node)(object node) except -1                   # its gradient rule is about to run

    bint ignores_versions         # the values do not matter: a gradient is captured some time after its forward

cdef Recorder recorder


cdef inline bint recording() noexcept nogil:
    """Whether a capture is on (in some thread)."""
    return recorder.loop != NULL


cdef inline void run_loop(int loop, int dtype, int variant, Py_ssize_t n, char** p, const double* attrs) noexcept nogil:
    """A loop over n contiguous elements."""
    if recorder.loop != NULL:
        recorder.loop(loop, dtype, variant, n, p, attrs)
    K.loops[loop][dtype][variant](n, p, attrs)


cdef inline int escape(object what) except -1:
    """A value of a tensor goes to Python (`what`: "item()"): a captured step may not depend on it."""
    if recorder.loop != NULL:
        return recorder.escape(what)
    return 0
