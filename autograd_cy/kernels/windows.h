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
    /* out[i] = the sum over taps of weight[t] * x[offset[t] + i]; first two accumulators at once, as each addition takes four cycles */ \
    static void ag_taps_##S(ptrdiff_t n, ptrdiff_t taps, const ptrdiff_t *offset, const T *weight, const T *x, T *out) {  \
        ptrdiff_t i = 0;                                                                                                  \
        for (; i + 2 * AG_PLACES <= n; i += 2 * AG_PLACES) {                                                              \
            T a[AG_PLACES] = {0}, b[AG_PLACES] = {0};                                                                     \
            for (ptrdiff_t t = 0; t < taps; ++t) {                                                                        \
                const T *from = x + offset[t] + i;                                                                        \
                for (int j = 0; j < AG_PLACES; ++j) a[j] += weight[t] * from[j];                                          \
                for (int j = 0; j < AG_PLACES; ++j) b[j] += weight[t] * from[AG_PLACES + j];                              \
            }                                                                                                             \
            memcpy(out + i, a, sizeof(a));                                                                                \
            memcpy(out + i + AG_PLACES, b, sizeof(b));                                                                    \
        }                                                                                                                 \
        for (; i < n; i += AG_PLACES) {                                                                                   \
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
       behind a line is read, and not added. Three sums in three statements: in a loop over taps they would be in memory. */\
    static void ag_dot_lines_##S(ptrdiff_t lines, ptrdiff_t n, const T *g, const T *x, ptrdiff_t x_step, ptrdiff_t taps,  \
                                 const ptrdiff_t *offset, T *sums) {                                                      \
        T a[3][AG_PLACES] = {{0}};                                                                                        \
        const T *p = x + offset[0], *q = x + offset[taps > 1 ? 1 : 0], *r = x + offset[taps > 2 ? 2 : 0];                 \
        for (; lines > 0; --lines, g += n, p += x_step, q += x_step, r += x_step) {                                       \
            ptrdiff_t i = 0, rest;                                                                                        \
            for (; i + AG_PLACES <= n; i += AG_PLACES)                                                                    \
                for (int j = 0; j < AG_PLACES; ++j) {                                                                     \
                    a[0][j] += g[i + j] * p[i + j];                                                                       \
                    a[1][j] += g[i + j] * q[i + j];                                                                       \
                    a[2][j] += g[i + j] * r[i + j];                                                                       \
                }                                                                                                         \
            rest = n - i;                                                                                                 \
            if (rest && (lines - 1) * n >= AG_PLACES)                                                                     \
                for (int j = 0; j < AG_PLACES; ++j) {                                                                     \
                    a[0][j] += j < rest ? g[i + j] * p[i + j] : 0;                                                        \
                    a[1][j] += j < rest ? g[i + j] * q[i + j] : 0;                                                        \
                    a[2][j] += j < rest ? g[i + j] * r[i + j] : 0;                                                        \
                }                                                                                                         \
            else                                                                                                          \
                for (int j = 0; j < rest; ++j) {                                                                          \
                    a[0][j] += g[i + j] * p[i + j];                                                                       \
                    a[1][j] += g[i + j] * q[i + j];                                                                       \
                    a[2][j] += g[i + j] * r[i + j];                                                                       \
                }                                                                                                         \
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
