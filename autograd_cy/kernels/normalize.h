/* The loops of normalisation: sums over a run with their accumulators in registers, and rows with a weight for each element.
 *
 * Relies on nothing; it is C because Cython can say neither __restrict nor an array that stays in registers. normalize.pyx and rows.pyx
 * rely on it.
 *
 * Order of addition: element i of a multiple of 16 into accumulator i % 8 or 16, these in turn, then what is left: the same at every level.
 */
#ifndef AG_NORMALIZE_H
#define AG_NORMALIZE_H

#include <stddef.h>

#define AG_RUN 16
/* One or two sums, of the terms FIRST and SECOND of element i + j, in T; then in double. */
#define AG_SUMS(T, FIRST, SECOND)                                                                                         \
    T a[AG_RUN] = {0}, b[AG_RUN] = {0};                                                                                   \
    double first = 0, second = 0;                                                                                         \
    ptrdiff_t i = 0;                                                                                                      \
    for (; i + AG_RUN <= n; i += AG_RUN)                                                                                  \
        for (int j = 0; j < AG_RUN; ++j) {                                                                                \
            T f = FIRST;                                                                                                  \
            a[j] += f;                                                                                                    \
            b[j] += SECOND;                                                                                               \
        }                                                                                                                 \
    for (int j = 0; j < AG_RUN / 2; ++j) {                                                                                \
        a[j] += a[j + AG_RUN / 2];                                                                                        \
        b[j] += b[j + AG_RUN / 2];                                                                                        \
    }                                                                                                                     \
    for (int j = 0; j < AG_RUN / 2; ++j) {                                                                                \
        first += a[j];                                                                                                    \
        second += b[j];                                                                                                   \
    }                                                                                                                     \
    for (int j = 0; i < n; ++i) {                                                                                         \
        T f = FIRST;                                                                                                      \
        first += f;                                                                                                       \
        second += SECOND;                                                                                                 \
    }

#define AG_NORMALIZE(T, S)                                                                                                \
    static double ag_run_sum_##S(ptrdiff_t n, const T *x) {                                                               \
        AG_SUMS(T, x[i + j], 0)                                                                                           \
        (void) second;                                                                                                    \
        return first;                                                                                                     \
    }                                                                                                                     \
    /* the sum of squares of x - middle */                                                                                \
    static double ag_run_squares_##S(ptrdiff_t n, const T *x, T middle) {                                                 \
        AG_SUMS(T, x[i + j] - middle, f * f)                                                                              \
        (void) first;                                                                                                     \
        return second;                                                                                                    \
    }                                                                                                                     \
    static double ag_run_dot_##S(ptrdiff_t n, const T *x, const T *y) {                                                   \
        AG_SUMS(T, x[i + j] * y[i + j], 0)                                                                                \
        (void) second;                                                                                                    \
        return first;                                                                                                     \
    }                                                                                                                     \
    /* sums[0] += the sum of g w, sums[1] += that of g w (x - mean) scale */                                              \
    static void ag_run_weighted_##S(ptrdiff_t n, const T *g, const T *x, const T *w, T mean, T scale, double *sums) {     \
        AG_SUMS(T, g[i + j] * w[i + j], f * ((x[i + j] - mean) * scale))                                                  \
        sums[0] += first;                                                                                                 \
        sums[1] += second;                                                                                                \
    }                                                                                                                     \
    static void ag_run_products_##S(ptrdiff_t n, const T *g, const T *x, T mean, T scale, double *sums) {                 \
        AG_SUMS(T, g[i + j], f * ((x[i + j] - mean) * scale))                                                             \
        sums[0] += first;                                                                                                 \
        sums[1] += second;                                                                                                \
    }                                                                                                                     \
    /* the gradients of a row, those of weight and bias added to what is there */                                         \
    static void ag_row_back_##S(ptrdiff_t n, const T *__restrict g, const T *__restrict x, const T *__restrict w, T mean, \
                                T scale, T a, T t, T *__restrict dx, T *__restrict dw, T *__restrict db) {                \
        for (ptrdiff_t i = 0; i < n; ++i) {                                                                               \
            T hat = (x[i] - mean) * scale;                                                                                \
            dw[i] += g[i] * hat;                                                                                          \
            db[i] += g[i];                                                                                                \
            dx[i] = (g[i] * w[i] - a - hat * t) * scale;                                                                  \
        }                                                                                                                 \
    }

AG_NORMALIZE(float, f32)
AG_NORMALIZE(double, f64)

#endif
