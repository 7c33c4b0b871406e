/* Scalar mathematics for generated loops: every function is branch-free where it can be, so that gcc and clang vectorise the
 * loop around it, and gives the same bits at every instruction-set level.
 * It relies on C99, IEEE 754 and the flags of setup.py (-fno-math-errno -fno-trapping-math, and no contraction to fused
 * multiply-adds); vecmath_f32.h and vecmath_f64.h hold the transcendental functions of the two floating dtypes, and
 * vecmath_special.h the rare ones.
 * The generated elementwise loops and the row kernels (softmax, losses) rely on it.
 *
 * Naming: ag_<function>_<dtype>.  always_inline is not decoration: a plain `static inline` is no longer inlined once many
 * loops call it, and a loop over a called exp is ten times slower.
 *
 * Not vectorised, because exact results need a data-dependent number of steps: floordiv and remainder of int64, the integer powers, the
 * polygamma, and where arguments are large sin, cos, tan (beyond |x| = 2^20) and fmod, remainder, floordiv (large quotients), which
 * call the C library there: where ag_within or ag_small_quotients says that no element of an array is beyond, ag_sin_fast and the
 * rest give the same bits in a vectorised loop (ops/codegen.py writes both).
 */
#ifndef AG_VECMATH_H
#define AG_VECMATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__OPTIMIZE_SIZE__)          /* the baseline where there are better levels: once each, not in every loop, 80 kB less */
#define AG_INLINE static
#elif defined(__GNUC__) || defined(__clang__)
#define AG_INLINE static inline __attribute__((always_inline))
#else
#define AG_INLINE static inline
#endif
#if defined(__GNUC__) || defined(__clang__)
#define AG_LIKELY(c) __builtin_expect(!!(c), 1)
#else
#define AG_LIKELY(c) (c)
#endif

/* Where the processor rounds in one instruction, say so; elsewhere (SSE2) add and subtract 2^23 or 2^52. Both are exact. */
#if defined(__SSE4_1__) || defined(__aarch64__)
#define AG_HAS_ROUND 1
#else
#define AG_HAS_ROUND 0
#endif

/* ---- bits of floats: memcpy is the portable spelling, and compiles to nothing */

AG_INLINE int32_t ag_bits_f32(float x) { int32_t i; memcpy(&i, &x, 4); return i; }
AG_INLINE float ag_from_bits_f32(int32_t i) { float x; memcpy(&x, &i, 4); return x; }
AG_INLINE int64_t ag_bits_f64(double x) { int64_t i; memcpy(&i, &x, 8); return i; }
AG_INLINE double ag_from_bits_f64(int64_t i) { double x; memcpy(&x, &i, 8); return x; }

/* keep ? y : +0, by a mask: gcc follows a constant through a conditional expression into the code after it, and then computes
 * that code twice, once per path (softplus took 33 multiplications instead of 22) */
AG_INLINE float ag_keep_f32(int keep, float y) { return ag_from_bits_f32(ag_bits_f32(y) & -(int32_t)keep); }
AG_INLINE double ag_keep_f64(int keep, double y) {
    /* the mask is chosen as a double, all ones being a NaN: SSE2 has no conversion to 64-bit lanes */
    return ag_from_bits_f64(ag_bits_f64(y) & ag_bits_f64(keep ? ag_from_bits_f64(-1) : 0.0));
}
/* c ? x : y by masks, for scalar code whose condition is a coin toss (a mispredicted branch costs 6 ns) */
AG_INLINE float ag_select_f32(int c, float x, float y) {
    int32_t m = -(int32_t)c;
    return ag_from_bits_f32((ag_bits_f32(x) & m) | (ag_bits_f32(y) & ~m));
}
AG_INLINE double ag_select_f64(int c, double x, double y) {
    int64_t m = -(int64_t)c;
    return ag_from_bits_f64((ag_bits_f64(x) & m) | (ag_bits_f64(y) & ~m));
}

/* ---- a - b trunc(a / b), exact as C's fmod, from the nearest quotient when that is small (12 ns; fmod 19). ag_fmod_fast is
 * right where ag_small_quotient is true. The magic number rounds as rint does, on every processor. */

AG_INLINE int ag_small_quotient_f32(float a, float b) {
    float p = fabsf(a), q = fabsf(b);
    return ((p <= q * 0x1p27f) & (q <= 0x1p100f)) | (b == 0.0f);
}
AG_INLINE int ag_small_quotient_f64(double a, double b) {
    double p = fabs(a), q = fabs(b);
    return ((p <= q * 0x1p24) & (p < 0x1p1000) & (q < 0x1p1000)) | (b == 0.0);
}
AG_INLINE float ag_fmod_fast_f32(float a, float b) {
    double q = ((double)a / (double)b + 0x1.8p+52) - 0x1.8p+52, r = (double)a - q * (double)b;      /* both exact below 2^29 */
    r += ag_keep_f64((r != 0.0) & ((r < 0.0) != (a < 0.0f)), copysign((double)b, a));
    return copysignf((float)r, a);
}
AG_INLINE double ag_fmod_fast_f64(double a, double b) {
    double q = (a / b + 0x1.8p+52) - 0x1.8p+52, high = ag_from_bits_f64(ag_bits_f64(b) & ~(int64_t)0x7ffffff);
    double r = (a - q * high) - q * (b - high);                                     /* each step exact below 2^25 */
    r += ag_keep_f64((r != 0.0) & ((r < 0.0) != (a < 0.0)), copysign(b, a));
    return copysign(r, a);
}
AG_INLINE float ag_fmod_f32(float a, float b) {
    return AG_LIKELY(ag_small_quotient_f32(a, b)) ? ag_fmod_fast_f32(a, b) : fmodf(a, b);
}
AG_INLINE double ag_fmod_f64(double a, double b) {
    return AG_LIKELY(ag_small_quotient_f64(a, b)) ? ag_fmod_fast_f64(a, b) : fmod(a, b);
}
#define AG_SMALL_QUOTIENTS(T, D, INT) \
AG_INLINE int ag_small_quotients_##D(ptrdiff_t n, const T *a, const T *b) { \
    INT large = 0; \
    for (ptrdiff_t i = 0; i < n; i++) large |= !ag_small_quotient_##D(a[i], b[i]); \
    return !large; }
AG_SMALL_QUOTIENTS(float, f32, int32_t)
AG_SMALL_QUOTIENTS(double, f64, int64_t)

/* ---- functions whose result is exact or correctly rounded, once per floating dtype.
 * C is the C library's suffix, MAGIC the power of two above which every value is an integer. */

#define AG_EXACT_FUNCTIONS(T, D, C, MAGIC) \
AG_INLINE T ag_sqrt_##D(T x) { return sqrt##C(x); } \
AG_INLINE T ag_rsqrt_##D(T x) { return (T)1 / sqrt##C(x); } \
AG_INLINE T ag_abs_##D(T x) { return fabs##C(x); } \
AG_INLINE T ag_copysign_##D(T x, T s) { return copysign##C(x, s); } \
/* x + 0 turns -0 into +0 and keeps NaN */ \
AG_INLINE T ag_sign_##D(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x + (T)0; } \
AG_INLINE T ag_maximum_##D(T a, T b) { return (a > b) | (a != a) ? a : b; } \
AG_INLINE T ag_minimum_##D(T a, T b) { return (a < b) | (a != a) ? a : b; } \
AG_INLINE T ag_round_##D(T x) { \
    if (AG_HAS_ROUND) return rint##C(x); \
    T a = fabs##C(x), r = (a + MAGIC) - MAGIC; \
    return copysign##C(a < MAGIC ? r : a, x); } \
AG_INLINE T ag_floor_##D(T x) { \
    if (AG_HAS_ROUND) return floor##C(x); \
    T r = ag_round_##D(x); \
    return copysign##C(r > x ? r - 1 : r, x); } \
AG_INLINE T ag_ceil_##D(T x) { \
    if (AG_HAS_ROUND) return ceil##C(x); \
    T r = ag_round_##D(x); \
    return copysign##C(r < x ? r + 1 : r, x); } \
AG_INLINE T ag_trunc_##D(T x) { \
    if (AG_HAS_ROUND) return trunc##C(x); \
    T a = fabs##C(x), r = ag_round_##D(a); \
    return copysign##C(r > a ? r - 1 : r, x); }

/* KIND: empty, or fast_ */
#define AG_DIVISIONS(T, D, C, KIND) \
/* torch.remainder: the sign of the divisor */ \
AG_INLINE T ag_remainder_##KIND##D(T a, T b) { \
    T m = ag_fmod_##KIND##D(a, b); \
    return ag_select_##D((m != 0) & ((b < 0) != (m < 0)), m + b, m); } \
/* torch.floor_divide, including its zeros and its division by zero */ \
AG_INLINE T ag_floordiv_##KIND##D(T a, T b) { \
    T m = ag_fmod_##KIND##D(a, b), d = (a - m) / b; \
    d = ag_select_##D((m != 0) & ((b < 0) != (m < 0)), d - 1, d); \
    T f = ag_floor_##D(d); \
    f = ag_select_##D(d - f > (T)0.5, f + 1, f); \
    f = ag_select_##D(d == 0, copysign##C((T)0, a / b), f); \
    return ag_select_##D(b == 0, a / b, f); }

AG_EXACT_FUNCTIONS(float, f32, f, 8388608.0f)
AG_EXACT_FUNCTIONS(double, f64, , 4503599627370496.0)
AG_DIVISIONS(float, f32, f, )
AG_DIVISIONS(float, f32, f, fast_)
AG_DIVISIONS(double, f64, , )
AG_DIVISIONS(double, f64, , fast_)

/* ---- integers: wrap on overflow, never trap, divide like Python; a zero divisor gives 0 */

#define AG_SIGNED_FUNCTIONS(T, U, D) \
AG_INLINE T ag_abs_##D(T x) { return x < 0 ? (T)(0 - (U)x) : x; } \
AG_INLINE T ag_sign_##D(T x) { return (T)((x > 0) - (x < 0)); }

#define AG_INTEGER_FUNCTIONS(T, U, D) \
AG_INLINE T ag_maximum_##D(T a, T b) { return a > b ? a : b; } \
AG_INLINE T ag_minimum_##D(T a, T b) { return a < b ? a : b; } \
AG_INLINE T ag_pow_##D(T a, T n) { \
    /* unsigned arithmetic of the same width wraps; a negative power of an integer is 0 unless the base is 1 or -1 */ \
    U base = (U)a, result = 1, e = (U)n; \
    if ((T)-1 < 0 && n < 0) return a == 1 ? 1 : a == (T)-1 ? (n & 1 ? (T)-1 : 1) : 0; \
    for (; e; e >>= 1) { \
        if (e & 1) result = (U)(result * base); \
        base = (U)(base * base); } \
    return (T)result; }

AG_SIGNED_FUNCTIONS(int64_t, uint64_t, i64)
AG_SIGNED_FUNCTIONS(int32_t, uint32_t, i32)
AG_INTEGER_FUNCTIONS(int64_t, uint64_t, i64)
AG_INTEGER_FUNCTIONS(int32_t, uint32_t, i32)
/* uint32_t: the products of uint8_t are made in int by C's promotions, and would not overflow it either */
AG_INTEGER_FUNCTIONS(uint8_t, uint32_t, u8)
AG_INLINE uint8_t ag_abs_u8(uint8_t x) { return x; }
AG_INLINE uint8_t ag_sign_u8(uint8_t x) { return x != 0; }

AG_INLINE int64_t ag_floordiv_i64(int64_t a, int64_t b) {
    int64_t d = (b == 0) | (b == -1) ? 1 : b, q = a / d;
    q -= (q * d != a) & ((a < 0) != (d < 0));
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : q;
}
AG_INLINE int64_t ag_remainder_i64(int64_t a, int64_t b) {
    int64_t d = (b == 0) | (b == -1) ? 1 : b, m = a % d;
    m += (m != 0) & ((m < 0) != (d < 0)) ? d : 0;
    return m;
}
/* int32 and uint8 divide in floating point, which vectorises: the quotient of two integers below 2^31 that is not an integer
 * is at least 2^-31 (relative) away from one, so rounding to 53 bits never reaches it (8 and 24 bits for uint8). */
AG_INLINE int32_t ag_floordiv_i32(int32_t a, int32_t b) {
    int32_t d = (b == 0) | (b == -1) ? 1 : b, q = (int32_t)((double)a / (double)d);
    q -= (q * d != a) & ((a < 0) != (d < 0));
    return b == 0 ? 0 : b == -1 ? (int32_t)(0 - (uint32_t)a) : q;
}
AG_INLINE int32_t ag_remainder_i32(int32_t a, int32_t b) {
    int32_t d = (b == 0) | (b == -1) ? 1 : b, m = a - (int32_t)((double)a / (double)d) * d;
    m += (m != 0) & ((m < 0) != (d < 0)) ? d : 0;
    return m;
}
AG_INLINE uint8_t ag_floordiv_u8(uint8_t a, uint8_t b) {
    int32_t q = (int32_t)((float)a / (float)(b == 0 ? 1 : b));
    return (uint8_t)(b == 0 ? 0 : q);
}
AG_INLINE uint8_t ag_remainder_u8(uint8_t a, uint8_t b) {
    int32_t d = b == 0 ? 1 : b;
    return (uint8_t)(a - (int32_t)((float)a / (float)d) * d);
}

#include "vecmath_f32.h"
#include "vecmath_f64.h"
#include "vecmath_special.h"

#endif
