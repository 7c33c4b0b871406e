/* What special functions of blocks of numbers are made of: polynomials, choices, numbers in and out. See special.h and special_gamma.h, which
 * rely on it; it relies on special_series.h (coefficients).
 */
#ifndef AG_SPECIAL_BLOCKS_H
#define AG_SPECIAL_BLOCKS_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "special_series.h"

typedef void (*AG_Loop)(ptrdiff_t, char **, const double *);
typedef struct { AG_Loop exp, log, sin, cos, expm1, erfcx; } AG_Loops;

#if defined(__GNUC__) || defined(__clang__)
#define AG_APART static __attribute__((noinline))
#else
#define AG_APART static
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE_SIZE__)
#define AG_UNROLLED _Pragma("GCC unroll 16")           /* so that the 16 numbers stay in registers */
#else
#define AG_UNROLLED
#endif

#define AG_PART 64                                     /* numbers of a block */
#define AG_ALONG(i) for (ptrdiff_t i = 0; i < (m & -16); i++)          /* so a compiler knows that nothing is left over */
#define AG_PI 0x1.921fb54442d18p+1

AG_APART void ag_map(AG_Loop loop, ptrdiff_t m, const double *x, double *y) {
    char *p[2] = {(char *)y, (char *)x};
    loop(m, p, NULL);
}
/* c[0] + c[1] y + ..., an even number of terms: those of even and of odd powers side by side, as each sum waits for its last term */
AG_APART void ag_polynomial(ptrdiff_t m, int terms, const double *c, const double *__restrict y, double *__restrict out) {
    for (ptrdiff_t i = 0; i < m; i += 16) {
        double z[16], even[16] = {0}, odd[16] = {0};
        AG_UNROLLED for (int j = 0; j < 16; j++) z[j] = y[i + j] * y[i + j];
        for (int k = terms - 2; k >= 0; k -= 2)
            AG_UNROLLED for (int j = 0; j < 16; j++) {
                even[j] = even[j] * z[j] + c[k];
                odd[j] = odd[j] * z[j] + c[k + 1];
            }
        AG_UNROLLED for (int j = 0; j < 16; j++) out[i + j] = even[j] + odd[j] * y[i + j];
    }
}
#define AG_POLYNOMIAL(c, y, out) ag_polynomial(m, (int)(sizeof(S->c) / sizeof(double)), S->c, y, out)
#define AG_EITHER(other, a, b, y, out) ag_polynomial(m, (int)(sizeof(S->a) / sizeof(double)), other ? S->a : S->b, y, out)

#define AG_GIVEN ptrdiff_t m, const AG_Series *S, const AG_Loops *f, int f32            /* f32: that accuracy is enough */
#define AG_PASSED m, S, f, f32

/* Whether some of the numbers, and whether all, are beyond a bound: most blocks need one of two series only. NaN is not. */
AG_APART int ag_beyond(ptrdiff_t m, const double *x, double bound, int *all) {
    double n = 0;
    AG_ALONG(i) n += x[i] > bound ? 1.0 : 0.0;
    *all = n == (double)m;
    return n > 0;
}
AG_APART void ag_choose(ptrdiff_t m, const double *x, double bound, const double *beyond, double *y) {
    AG_ALONG(i) y[i] = x[i] > bound ? beyond[i] : y[i];
}

/* `size` numbers as m doubles, a multiple of 16, and back */
#define AG_BLOCKS(T, D) \
AG_APART void ag_take_##D(ptrdiff_t size, ptrdiff_t m, const T *from, T fill, double *x) { \
    T part[AG_PART]; \
    if (size < m) { \
        AG_ALONG(i) part[i] = fill; \
        memcpy(part, from, (size_t)size * sizeof(T)); \
        from = part; } \
    AG_ALONG(i) x[i] = (double)from[i]; } \
AG_APART void ag_put_##D(ptrdiff_t size, ptrdiff_t m, const double *y, T *to) { \
    T part[AG_PART], *place = size < m ? part : to; \
    AG_ALONG(i) place[i] = (T)y[i]; \
    if (size < m) memcpy(to, part, (size_t)size * sizeof(T)); }
AG_BLOCKS(float, f32)
AG_BLOCKS(double, f64)

#endif
