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
    /* out[i] = the sum over taps of weight[t] * x[offset[t] + i * s] */                                                  \
    static void ag_taps_##S(ptrdiff_t n, ptrdiff_t s, ptrdiff_t taps, const ptrdiff_t *offset, const T *weight, const T *x, T *out) { \
        for (ptrdiff_t i = 0; i < n; i += AG_PLACES) {                                                                    \
            T a[AG_PLACES] = {0};                                                                                         \
            if (s == 1)                                                                                                   \
                for (ptrdiff_t t = 0; t < taps; ++t) {                                                                    \
                    const T *from = x + offset[t] + i;                                                                    \
                    for (int j = 0; j < AG_PLACES; ++j) a[j] += weight[t] * from[j];                                      \
                }                                                                                                         \
            else                                                                                                          \
                for (ptrdiff_t t = 0; t < taps; ++t) {                                                                    \
                    const T *from = x + offset[t] + i * s;                                                                \
                    for (int j = 0; j < AG_PLACES && j < n - i; ++j) a[j] += weight[t] * from[j * s];                     \
                }                                                                                                         \
            memcpy(out + i, a, (size_t) (n - i < AG_PLACES ? n - i : AG_PLACES) * sizeof(T));                             \
        }                                                                                                                 \
    }                                                                                                                     \
    /* x[i * s] += factor * g[i] */                                                                                       \
    static void ag_add_line_##S(ptrdiff_t n, ptrdiff_t s, T factor, const T *__restrict g, T *__restrict x) {             \
        if (s == 1)                                                                                                       \
            for (ptrdiff_t i = 0; i < n; ++i) x[i] += factor * g[i];                                                      \
        else                                                                                                              \
            for (ptrdiff_t i = 0; i < n; ++i) x[i * s] += factor * g[i];                                                  \
    }                                                                                                                     \
    /* the sum of g[i] * x[i * s] over `lines` lines, whose starts are g_step and x_step apart */                         \
    static T ag_dot_lines_##S(ptrdiff_t lines, ptrdiff_t n, ptrdiff_t s, const T *g, ptrdiff_t g_step, const T *x, ptrdiff_t x_step) { \
        T a[AG_PLACES] = {0};                                                                                             \
        int w;                                                                                                            \
        for (; lines > 0; --lines, g += g_step, x += x_step) {                                                            \
            ptrdiff_t i = 0;                                                                                              \
            if (s == 1)                                                                                                   \
                for (; i + AG_PLACES <= n; i += AG_PLACES)                                                                \
                    for (int j = 0; j < AG_PLACES; ++j) a[j] += g[i + j] * x[i + j];                                      \
            for (; i < n; ++i) a[i % AG_PLACES] += g[i] * x[i * s];                                                       \
        }                                                                                                                 \
        for (w = AG_PLACES / 2; w > 0; w /= 2)                                                                            \
            for (int j = 0; j < w; ++j) a[j] += a[j + w];                                                                 \
        return a[0];                                                                                                      \
    }                                                                                                                     \
    /* out[i] = x[i * s]; with s = 1 up to AG_PLACES - 1 elements more are written */                                     \
    static inline __attribute__((always_inline)) void ag_copy_line_##S(ptrdiff_t n, ptrdiff_t s, const T *x, T *out) {    \
        if (s == 1)                                                                                                       \
            for (ptrdiff_t i = 0; i < n; i += AG_PLACES) memcpy(out + i, x + i, AG_PLACES * sizeof(T));                   \
        else                                                                                                              \
            for (ptrdiff_t i = 0; i < n; ++i) out[i] = x[i * s];                                                          \
    }

AG_DEFINE_WINDOWS(float, f32)
AG_DEFINE_WINDOWS(double, f64)

#endif
