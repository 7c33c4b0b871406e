/* Lines of windows: the products of one channel, tap by tap, with the sums of sixteen places in registers.
 *
 * Relies on nothing; it is C because Cython can't say an array that stays in registers. windows.pyx relies on it.
 * Sources are readable for AG_PLACES elements behind what is asked for.
 */
#ifndef AG_WINDOWS_H
#define AG_WINDOWS_H

#include <stddef.h>
#include <string.h>

#define AG_PLACES 16

#define AG_DEFINE_WINDOWS(T, S)                                                                                           \
    /* out[i] = the sum over taps of weight[t] * x[offset[t] + i] */                                                      \
    static void ag_taps_##S(ptrdiff_t n, ptrdiff_t taps, const ptrdiff_t *offset, const T *weight, const T *x, T *out) {  \
        for (ptrdiff_t i = 0; i < n; i += AG_PLACES) {                                                                    \
            T a[AG_PLACES] = {0};                                                                                         \
            for (ptrdiff_t t = 0; t < taps; ++t) {                                                                        \
                const T *from = x + offset[t] + i;                                                                        \
                for (int j = 0; j < AG_PLACES; ++j) a[j] += weight[t] * from[j];                                          \
            }                                                                                                             \
            memcpy(out + i, a, (size_t) (n - i < AG_PLACES ? n - i : AG_PLACES) * sizeof(T));                             \
        }                                                                                                                 \
    }                                                                                                                     \
    /* x[i] += factor * g[i] */                                                                                           \
    static void ag_add_line_##S(ptrdiff_t n, T factor, const T *__restrict g, T *__restrict x) {                          \
        for (ptrdiff_t i = 0; i < n; ++i) x[i] += factor * g[i];                                                          \
    }                                                                                                                     \
    /* sums[t] += the sum of g[i] * x[offset[t] + i] over `lines` lines, whose starts are n and x_step apart, for 1 to 3 taps; what is\
       behind a line is read, and not added */                                                                            \
    static void ag_dot_lines_##S(ptrdiff_t lines, ptrdiff_t n, const T *g, const T *x, ptrdiff_t x_step, ptrdiff_t taps,  \
                                 const ptrdiff_t *offset, T *sums) {                                                      \
        T a[3][AG_PLACES] = {{0}};                                                                                        \
        const T *from[3];                                                                                                 \
        for (int t = 0; t < 3; ++t) from[t] = x + offset[t < taps ? t : 0];                                               \
        for (; lines > 0; --lines, g += n) {                                                                              \
            ptrdiff_t i = 0, rest;                                                                                        \
            for (; i + AG_PLACES <= n; i += AG_PLACES)                                                                    \
                for (int t = 0; t < 3; ++t)                                                                               \
                    for (int j = 0; j < AG_PLACES; ++j) a[t][j] += g[i + j] * from[t][i + j];                             \
            rest = n - i;                                                                                                 \
            if (rest && (lines - 1) * n >= AG_PLACES)                                                                     \
                for (int t = 0; t < 3; ++t)                                                                               \
                    for (int j = 0; j < AG_PLACES; ++j) a[t][j] += j < rest ? g[i + j] * from[t][i + j] : 0;              \
            else                                                                                                          \
                for (int t = 0; t < 3; ++t)                                                                               \
                    for (int j = 0; j < rest; ++j) a[t][j] += g[i + j] * from[t][i + j];                                  \
            for (int t = 0; t < 3; ++t) from[t] += x_step;                                                                \
        }                                                                                                                 \
        for (int t = 0; t < taps; ++t) {                                                                                  \
            for (int w = AG_PLACES / 2; w > 0; w /= 2)                                                                    \
                for (int j = 0; j < w; ++j) a[t][j] += a[t][j + w];                                                       \
            sums[t] += a[t][0];                                                                                           \
        }                                                                                                                 \
    }                                                                                                                     \
    /* out[i] = x[i]; up to AG_PLACES - 1 elements more are written */                                                    \
    static inline __attribute__((always_inline)) void ag_copy_line_##S(ptrdiff_t n, const T *x, T *out) {                 \
        for (ptrdiff_t i = 0; i < n; i += AG_PLACES) memcpy(out + i, x + i, AG_PLACES * sizeof(T));                       \
    }

AG_DEFINE_WINDOWS(float, f32)
AG_DEFINE_WINDOWS(double, f64)

#endif
