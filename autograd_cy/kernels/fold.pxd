# Folds of contiguous elements (sum, prod, max, min) and of rows into a row of accumulators, for the three types that
# reductions compute in: float, double and int64.
#
# Relies on fold.h, which also documents the order of addition.  reduce.pyx, rows.pyx and update.pyx rely on it.

from autograd_cy.array.dtype cimport INT32, INT64

cdef extern from "fold.h" nogil:
    enum:
        OP_SUM "AG_SUM"
        OP_PROD "AG_PROD"
        OP_MAX "AG_MAXIMUM"
        OP_MIN "AG_MINIMUM"
        FOLD_BLOCK "AG_FOLD_BLOCK"
    float ag_sum_f32(const float* x, Py_ssize_t n) noexcept
    double ag_sum_f64(const double* x, Py_ssize_t n) noexcept
    float ag_squares_f32(const float* x, Py_ssize_t n) noexcept
    double ag_squares_f64(const double* x, Py_ssize_t n) noexcept
    float ag_fold_f32(int op, const float* x, Py_ssize_t n) noexcept
    double ag_fold_f64(int op, const double* x, Py_ssize_t n) noexcept
    long long ag_fold_i64(int op, const long long* x, Py_ssize_t n) noexcept
    void ag_fold_row_f32(int op, float* acc, const float* x, Py_ssize_t n) noexcept
    void ag_fold_row_f64(int op, double* acc, const double* x, Py_ssize_t n) noexcept
    void ag_fold_row_i64(int op, long long* acc, const long long* x, Py_ssize_t n) noexcept
    void ag_fold_rows8_f32(int op, float* acc, char** rows, Py_ssize_t n) noexcept
    void ag_fold_rows8_f64(int op, double* acc, char** rows, Py_ssize_t n) noexcept
    void ag_fold_rows8_i64(int op, long long* acc, char** rows, Py_ssize_t n) noexcept
    void ag_fold_columns_f32(int op, const float* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t w, float* acc) noexcept
    void ag_fold_columns_f64(int op, const double* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t w, double* acc) noexcept
    void ag_fold_columns_i64(int op, const long long* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t w,
                             long long* acc) noexcept
    void ag_fold_each_f32(int op, const float* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n, float* out,
                          Py_ssize_t step) noexcept
    void ag_fold_each_f64(int op, const double* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n, double* out,
                          Py_ssize_t step) noexcept
    void ag_fold_each_i64(int op, const long long* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n, long long* out,
                          Py_ssize_t step) noexcept

ctypedef fused acc_t:
    float
    double
    long long


cdef inline acc_t fold_contiguous(int op, const acc_t* x, Py_ssize_t n) noexcept nogil:
    """The fold of n contiguous elements; the identity of op when n is 0."""
    if acc_t is float:
        return ag_fold_f32(op, x, n)
    elif acc_t is double:
        return ag_fold_f64(op, x, n)
    else:
        return ag_fold_i64(op, x, n)


cdef inline acc_t fold_squares(const acc_t* x, Py_ssize_t n) noexcept nogil:
    """The sum of squares of n contiguous floats, at least 64."""
    if acc_t is float:
        return ag_squares_f32(x, n)
    elif acc_t is double:
        return ag_squares_f64(x, n)
    else:
        return 0


cdef inline void fold_row(int op, acc_t* acc, const acc_t* x, Py_ssize_t n) noexcept nogil:
    """acc[j] = acc[j] op x[j]"""
    if acc_t is float:
        ag_fold_row_f32(op, acc, x, n)
    elif acc_t is double:
        ag_fold_row_f64(op, acc, x, n)
    else:
        ag_fold_row_i64(op, acc, x, n)


cdef inline void fold_rows8(int op, acc_t* acc, char** rows, Py_ssize_t n) noexcept nogil:
    """acc[j] = acc[j] op (rows[0][j] op ... op rows[7][j], pairwise); the rows are contiguous acc_t."""
    if acc_t is float:
        ag_fold_rows8_f32(op, acc, rows, n)
    elif acc_t is double:
        ag_fold_rows8_f64(op, acc, rows, n)
    else:
        ag_fold_rows8_i64(op, acc, rows, n)


cdef inline void fold_columns(int op, const acc_t* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t w,
                              acc_t* acc) noexcept nogil:
    """acc[0:w] = the fold of 1 to 64 rows of w contiguous elements, `stride` elements apart."""
    if acc_t is float:
        ag_fold_columns_f32(op, x, rows, stride, w, acc)
    elif acc_t is double:
        ag_fold_columns_f64(op, x, rows, stride, w, acc)
    else:
        ag_fold_columns_i64(op, x, rows, stride, w, acc)


cdef inline void fold_each(int op, const acc_t* x, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n, acc_t* out,
                           Py_ssize_t step) noexcept nogil:
    """out[i * step] = the fold of row i, for rows of 1 to FOLD_BLOCK contiguous elements, `stride` elements apart."""
    if acc_t is float:
        ag_fold_each_f32(op, x, rows, stride, n, out, step)
    elif acc_t is double:
        ag_fold_each_f64(op, x, rows, stride, n, out, step)
    else:
        ag_fold_each_i64(op, x, rows, stride, n, out, step)


cdef inline acc_t identity(int op, acc_t tag) noexcept nogil:
    return fold_contiguous(op, &tag, 0)


cdef inline void load(acc_t* dst, int dtype, const char* x, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """n elements, `stride` elements apart, as contiguous accumulators."""
    cdef Py_ssize_t i
    cdef const acc_t* own
    cdef const int* i32
    cdef const unsigned char* u8
    if acc_t is float or acc_t is double:
        own = <const acc_t*> x
        if stride == 1:
            for i in range(n):
                dst[i] = own[i]
        elif stride == 2:             # every other column, in vectors
            for i in range(n):
                dst[i] = own[2 * i]
        else:
            for i in range(n):
                dst[i] = own[i * stride]
    else:
        if dtype == INT64:
            own = <const acc_t*> x
            for i in range(n):
                dst[i] = own[i * stride]
        elif dtype == INT32:
            i32 = <const int*> x
            if stride == 1:
                for i in range(n):
                    dst[i] = i32[i]
            else:
                for i in range(n):
                    dst[i] = i32[i * stride]
        else:
            u8 = <const unsigned char*> x
            if stride == 1:
                for i in range(n):
                    dst[i] = u8[i]
            else:
                for i in range(n):
                    dst[i] = u8[i * stride]
