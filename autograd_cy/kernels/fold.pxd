# Folds of contiguous elements (sum, prod, max, min) and of rows into a row of accumulators, for the three types that
# reductions compute in: float, double and int64.
#
# Relies on fold.h, which also documents the order of addition.  reduce.pyx, rows.pyx and update.pyx rely on it.

cdef extern from "fold.h" nogil:
    float ag_sum_f32(const float* x, Py_ssize_t n) noexcept
    double ag_sum_f64(const double* x, Py_ssize_t n) noexcept
    long long ag_sum_i64(const long long* x, Py_ssize_t n) noexcept
    float ag_prod_block_f32(const float* x, Py_ssize_t n) noexcept
    double ag_prod_block_f64(const double* x, Py_ssize_t n) noexcept
    long long ag_prod_block_i64(const long long* x, Py_ssize_t n) noexcept
    float ag_max_block_f32(const float* x, Py_ssize_t n) noexcept
    double ag_max_block_f64(const double* x, Py_ssize_t n) noexcept
    long long ag_max_block_i64(const long long* x, Py_ssize_t n) noexcept
    float ag_min_block_f32(const float* x, Py_ssize_t n) noexcept
    double ag_min_block_f64(const double* x, Py_ssize_t n) noexcept
    long long ag_min_block_i64(const long long* x, Py_ssize_t n) noexcept

    void ag_sum_row_f32(float* acc, const float* x, Py_ssize_t n) noexcept
    void ag_sum_row_f64(double* acc, const double* x, Py_ssize_t n) noexcept
    void ag_sum_row_i64(long long* acc, const long long* x, Py_ssize_t n) noexcept
    void ag_prod_row_f32(float* acc, const float* x, Py_ssize_t n) noexcept
    void ag_prod_row_f64(double* acc, const double* x, Py_ssize_t n) noexcept
    void ag_prod_row_i64(long long* acc, const long long* x, Py_ssize_t n) noexcept
    void ag_max_row_f32(float* acc, const float* x, Py_ssize_t n) noexcept
    void ag_max_row_f64(double* acc, const double* x, Py_ssize_t n) noexcept
    void ag_max_row_i64(long long* acc, const long long* x, Py_ssize_t n) noexcept
    void ag_min_row_f32(float* acc, const float* x, Py_ssize_t n) noexcept
    void ag_min_row_f64(double* acc, const double* x, Py_ssize_t n) noexcept
    void ag_min_row_i64(long long* acc, const long long* x, Py_ssize_t n) noexcept

    void ag_sum_rows8_f32(float* acc, char** rows, Py_ssize_t n) noexcept
    void ag_sum_rows8_f64(double* acc, char** rows, Py_ssize_t n) noexcept
    void ag_sum_rows8_i64(long long* acc, char** rows, Py_ssize_t n) noexcept
    void ag_prod_rows8_f32(float* acc, char** rows, Py_ssize_t n) noexcept
    void ag_prod_rows8_f64(double* acc, char** rows, Py_ssize_t n) noexcept
    void ag_prod_rows8_i64(long long* acc, char** rows, Py_ssize_t n) noexcept
    void ag_max_rows8_f32(float* acc, char** rows, Py_ssize_t n) noexcept
    void ag_max_rows8_f64(double* acc, char** rows, Py_ssize_t n) noexcept
    void ag_max_rows8_i64(long long* acc, char** rows, Py_ssize_t n) noexcept
    void ag_min_rows8_f32(float* acc, char** rows, Py_ssize_t n) noexcept
    void ag_min_rows8_f64(double* acc, char** rows, Py_ssize_t n) noexcept
    void ag_min_rows8_i64(long long* acc, char** rows, Py_ssize_t n) noexcept

ctypedef fused acc_t:
    float
    double
    long long

cdef enum Op:
    OP_SUM
    OP_PROD
    OP_MAX
    OP_MIN


cdef inline acc_t fold_contiguous(int op, const acc_t* x, Py_ssize_t n) noexcept nogil:
    """The fold of n contiguous elements; the identity of op when n is 0."""
    if acc_t is float:
        if op == OP_SUM:
            return ag_sum_f32(x, n)
        if op == OP_PROD:
            return ag_prod_block_f32(x, n)
        return ag_max_block_f32(x, n) if op == OP_MAX else ag_min_block_f32(x, n)
    elif acc_t is double:
        if op == OP_SUM:
            return ag_sum_f64(x, n)
        if op == OP_PROD:
            return ag_prod_block_f64(x, n)
        return ag_max_block_f64(x, n) if op == OP_MAX else ag_min_block_f64(x, n)
    else:
        if op == OP_SUM:
            return ag_sum_i64(x, n)
        if op == OP_PROD:
            return ag_prod_block_i64(x, n)
        return ag_max_block_i64(x, n) if op == OP_MAX else ag_min_block_i64(x, n)


cdef inline void fold_row(int op, acc_t* acc, const acc_t* x, Py_ssize_t n) noexcept nogil:
    """acc[j] = acc[j] op x[j]"""
    if acc_t is float:
        if op == OP_SUM:
            ag_sum_row_f32(acc, x, n)
        elif op == OP_PROD:
            ag_prod_row_f32(acc, x, n)
        elif op == OP_MAX:
            ag_max_row_f32(acc, x, n)
        else:
            ag_min_row_f32(acc, x, n)
    elif acc_t is double:
        if op == OP_SUM:
            ag_sum_row_f64(acc, x, n)
        elif op == OP_PROD:
            ag_prod_row_f64(acc, x, n)
        elif op == OP_MAX:
            ag_max_row_f64(acc, x, n)
        else:
            ag_min_row_f64(acc, x, n)
    else:
        if op == OP_SUM:
            ag_sum_row_i64(acc, x, n)
        elif op == OP_PROD:
            ag_prod_row_i64(acc, x, n)
        elif op == OP_MAX:
            ag_max_row_i64(acc, x, n)
        else:
            ag_min_row_i64(acc, x, n)


cdef inline void fold_rows8(int op, acc_t* acc, char** rows, Py_ssize_t n) noexcept nogil:
    """acc[j] = acc[j] op (rows[0][j] op ... op rows[7][j], pairwise); the rows are contiguous acc_t."""
    if acc_t is float:
        if op == OP_SUM:
            ag_sum_rows8_f32(acc, rows, n)
        elif op == OP_PROD:
            ag_prod_rows8_f32(acc, rows, n)
        elif op == OP_MAX:
            ag_max_rows8_f32(acc, rows, n)
        else:
            ag_min_rows8_f32(acc, rows, n)
    elif acc_t is double:
        if op == OP_SUM:
            ag_sum_rows8_f64(acc, rows, n)
        elif op == OP_PROD:
            ag_prod_rows8_f64(acc, rows, n)
        elif op == OP_MAX:
            ag_max_rows8_f64(acc, rows, n)
        else:
            ag_min_rows8_f64(acc, rows, n)
    else:
        if op == OP_SUM:
            ag_sum_rows8_i64(acc, rows, n)
        elif op == OP_PROD:
            ag_prod_rows8_i64(acc, rows, n)
        elif op == OP_MAX:
            ag_max_rows8_i64(acc, rows, n)
        else:
            ag_min_rows8_i64(acc, rows, n)


cdef inline acc_t identity(int op, acc_t tag) noexcept nogil:
    return fold_contiguous(op, &tag, 0)
