/* Contiguous folds with their accumulators in registers, for float, double and int64.
 *
 * Relies on nothing; it is C because Cython can say neither __restrict nor an array that stays in registers.
 * fold.pxd gives these functions to reduce.pyx, rows.pyx and update.pyx.
 *
 * Order of addition: fixed by n alone, never by alignment, instruction set or thread.
 *   n < 8      one after another
 *   n < 64     8 accumulators, element i into accumulator i % 8, then halves, then what is left of a multiple of 8
 *   n <= 4096  64 accumulators, likewise: at most 64 + 6 roundings on the way of an element; what is left of a multiple of 64 as
 *              above (added to the accumulators, it would put them into memory: 10 ns)
 *   more       blocks of 4096, combined pairwise
 * Measured: 0.045 ns per element and a relative error of 3e-8, where one accumulator takes 0.48 ns and errs by 8e-6.
 */
#ifndef AG_FOLD_H
#define AG_FOLD_H

#include <stddef.h>
#include <string.h>

#define AG_LANES 64
#define AG_FOLD_BLOCK 4096

#define AG_ADD(U, T, S, a, x) ((T)((U)(a) + (U)(x)))
#define AG_MUL(U, T, S, a, x) ((T)((U)(a) * (U)(x)))
/* NaN wins: no comparison with a NaN a holds, so that it stays. Functions, not expressions: gcc vectorises a select only when
 * both of its values were loaded before. */
#define AG_DEFINE_EXTREMES(T, S)                                                                                          \
    static inline __attribute__((always_inline)) T ag_larger_##S(T a, T x) { T t = a > x ? a : x; return a != a ? a : t; }\
    static inline __attribute__((always_inline)) T ag_smaller_##S(T a, T x) { T t = a < x ? a : x; return a != a ? a : t; }
#define AG_MAX(U, T, S, a, x) ag_larger_##S(a, x)
#define AG_MIN(U, T, S, a, x) ag_smaller_##S(a, x)

/* Lanes begin as the first elements: their sums with a negative zero that the compiler does not know. It makes a copy of moves of 16
 * bytes, and the load of a longer vector over two of these waits for the cache: half of the time of 64 elements. */
#if defined(__GNUC__) && defined(__AVX__)
#define AG_UNKNOWN(z) __asm__("" : "+m"(z));
#else
#define AG_UNKNOWN(z)
#endif
#define AG_BEGIN(T, a, x, w) { T z_ = (T) -0.0; AG_UNKNOWN(z_) for (int j_ = 0; j_ < (w); ++j_) (a)[j_] = (x)[j_] + z_; }

/* Reductions (setup.py) have the parts of a fold in the loop over rows: as functions, they take a fifth longer for rows of ten. */
#if defined(AG_INLINE_FOLDS) && defined(__GNUC__)
#define AG_PART static inline __attribute__((always_inline))
#else
#define AG_PART static inline
#endif

/* Into lane j of `a`: the tail shorter than the lanes; then the halves. */
#define AG_HALVE(U, T, S, OP, a, w) for (int j = 0; j < (w); ++j) a[j] = OP(U, T, S, a[j], a[j + (w)]);

/* U is the type the arithmetic is done in: unsigned for integers, where overflow must wrap. TWICE: an element may be taken twice, so that
 * what is left of a multiple of 64 is the last 64 elements once more. */
#define AG_DEFINE_FOLD(T, U, S, NAME, OP, IDENTITY, TWICE)                                                                \
    static T ag_##NAME##64_##S(const T *x, ptrdiff_t n) {                                                                 \
        T a[AG_LANES];                                                                                                    \
        ptrdiff_t i = AG_LANES, j;                                                                                        \
        AG_BEGIN(T, a, x, AG_LANES)                                                                                       \
        for (; i + AG_LANES <= n; i += AG_LANES)                                                                          \
            for (j = 0; j < AG_LANES; ++j) a[j] = OP(U, T, S, a[j], x[i + j]);                                            \
        if (TWICE && i < n)                                                                                               \
            for (j = 0; j < AG_LANES; ++j) a[j] = OP(U, T, S, a[j], x[n - AG_LANES + j]);                                 \
        AG_HALVE(U, T, S, OP, a, 32) AG_HALVE(U, T, S, OP, a, 16) AG_HALVE(U, T, S, OP, a, 8)                             \
        AG_HALVE(U, T, S, OP, a, 4) AG_HALVE(U, T, S, OP, a, 2)                                                           \
        return OP(U, T, S, a[0], a[1]);                                                                                   \
    }                                                                                                                     \
    AG_PART T ag_##NAME##8_##S(const T *x, ptrdiff_t n) {                                                                 \
        T a[8], t;                                                                                                        \
        ptrdiff_t i = 8, j;                                                                                               \
        AG_BEGIN(T, a, x, 8)                                                                                              \
        for (; i + 8 <= n; i += 8)                                                                                        \
            for (j = 0; j < 8; ++j) a[j] = OP(U, T, S, a[j], x[i + j]);                                                   \
        AG_HALVE(U, T, S, OP, a, 4) AG_HALVE(U, T, S, OP, a, 2)                                                           \
        t = OP(U, T, S, a[0], a[1]);                                                                                      \
        for (; i < n; ++i) t = OP(U, T, S, t, x[i]);                                                                      \
        return t;                                                                                                         \
    }                                                                                                                     \
    AG_PART T ag_##NAME##_block_##S(const T *x, ptrdiff_t n) {                                                            \
        ptrdiff_t whole = TWICE && n >= AG_LANES ? n : n & -(ptrdiff_t) AG_LANES;                                         \
        T t, head = whole ? ag_##NAME##64_##S(x, whole) : (T) IDENTITY;                                                   \
        if (whole == n) return head;                                                                                      \
        x += whole;                                                                                                       \
        n -= whole;                                                                                                       \
        if (n >= 8) t = ag_##NAME##8_##S(x, n);                                                                           \
        else {                                                                                                            \
            t = x[0];                                                                                                     \
            for (ptrdiff_t i = 1; i < n; ++i) t = OP(U, T, S, t, x[i]);                                                   \
        }                                                                                                                 \
        return whole ? OP(U, T, S, head, t) : t;                                                                          \
    }                                                                                                                     \
    /* acc[j] = acc[j] OP row[j] */                                                                                       \
    static void ag_##NAME##_row_##S(T *__restrict acc, const T *__restrict x, ptrdiff_t n) {                              \
        for (ptrdiff_t j = 0; j < n; ++j) acc[j] = OP(U, T, S, acc[j], x[j]);                                             \
    }                                                                                                                     \
    /* acc[j] = (acc[j] OP) (the eight rows, pairwise): one load and store of acc for eight rows */                       \
    static inline __attribute__((always_inline)) void ag_##NAME##_eight_##S(T *__restrict acc, char **rows,               \
                                                                            ptrdiff_t n, int first) {                     \
        const T *__restrict a = (const T *)rows[0], *__restrict b = (const T *)rows[1];                                   \
        const T *__restrict c = (const T *)rows[2], *__restrict d = (const T *)rows[3];                                   \
        const T *__restrict e = (const T *)rows[4], *__restrict f = (const T *)rows[5];                                   \
        const T *__restrict g = (const T *)rows[6], *__restrict h = (const T *)rows[7];                                   \
        for (ptrdiff_t j = 0; j < n; ++j) {                                                                               \
            T ab = OP(U, T, S, a[j], b[j]), cd = OP(U, T, S, c[j], d[j]);                                                 \
            T ef = OP(U, T, S, e[j], f[j]), gh = OP(U, T, S, g[j], h[j]);                                                 \
            ab = OP(U, T, S, ab, cd);                                                                                     \
            ef = OP(U, T, S, ef, gh);                                                                                     \
            ab = OP(U, T, S, ab, ef);                                                                                     \
            acc[j] = first ? ab : OP(U, T, S, acc[j], ab);                                                                \
        }                                                                                                                 \
    }                                                                                                                     \
    static void ag_##NAME##_rows8_##S(T *acc, char **rows, ptrdiff_t n) { ag_##NAME##_eight_##S(acc, rows, n, 0); }       \
    /* acc[0:w] = the fold of 1 to 64 rows, `stride` elements apart */                                                    \
    static void ag_##NAME##_columns_##S(const T *x, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t w, T *acc) {              \
        ptrdiff_t i = 0, j;                                                                                               \
        char *r[8];                                                                                                       \
        for (; i + 8 <= rows; i += 8) {                                                                                   \
            for (j = 0; j < 8; ++j) r[j] = (char *)(x + (i + j) * stride);                                                \
            if (i == 0) ag_##NAME##_eight_##S(acc, r, w, 1);                                                              \
            else ag_##NAME##_eight_##S(acc, r, w, 0);                                                                     \
        }                                                                                                                 \
        if (i == 0) {                                                                                                     \
            for (j = 0; j < w; ++j) acc[j] = x[j];                                                                        \
            i = 1;                                                                                                        \
        }                                                                                                                 \
        for (; i < rows; ++i) ag_##NAME##_row_##S(acc, x + i * stride, w);                                                \
    }                                                                                                                     \
    /* out[i * step] = the fold of row i, for rows of n <= 4096 contiguous elements, `stride` elements apart */           \
    static __attribute__((noinline)) void ag_##NAME##_each_##S(const T *x, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t n, \
                                                               T *out, ptrdiff_t step) {                                  \
        if (n < 8)                                                                                                        \
            for (ptrdiff_t i = 0; i < rows; ++i, x += stride) {                                                           \
                T t = x[0];                                                                                               \
                for (ptrdiff_t j = 1; j < n; ++j) t = OP(U, T, S, t, x[j]);                                               \
                out[i * step] = t;                                                                                        \
            }                                                                                                             \
        else                                                                                                              \
            for (ptrdiff_t i = 0; i < rows; ++i, x += stride) out[i * step] = ag_##NAME##_block_##S(x, n);                \
    }

enum { AG_SUM, AG_PROD, AG_MAXIMUM, AG_MINIMUM };
/* `call` of the operation `op`, which is not AG_SUM */
#define AG_REST(before, call)                                                                                             \
    { if (op == AG_PROD) before ag_prod_##call;                                                                           \
      else if (op == AG_MAXIMUM) before ag_max_##call;                                                                    \
      else before ag_min_##call; }

#define AG_DEFINE_FOLDS(T, U, S, LOWEST, HIGHEST)                                                                         \
    AG_DEFINE_EXTREMES(T, S)                                                                                              \
    AG_DEFINE_FOLD(T, U, S, sum, AG_ADD, 0, 0)                                                                            \
    AG_DEFINE_FOLD(T, U, S, prod, AG_MUL, 1, 0)                                                                           \
    AG_DEFINE_FOLD(T, U, S, max, AG_MAX, LOWEST, 1)                                                                       \
    AG_DEFINE_FOLD(T, U, S, min, AG_MIN, HIGHEST, 1)                                                                      \
    /* The sum of squares of 64 elements and more, in 64 accumulators: without it a norm is half as fast. What is left of \
     * a multiple of 64 goes into 8. */                                                                                   \
    static T ag_squares_##S(const T *x, ptrdiff_t n) {                                                                    \
        T a[AG_LANES], t;                                                                                                 \
        ptrdiff_t i = AG_LANES, j;                                                                                        \
        for (j = 0; j < AG_LANES; ++j) a[j] = AG_MUL(U, T, S, x[j], x[j]);                                                \
        for (; i + AG_LANES <= n; i += AG_LANES)                                                                          \
            for (j = 0; j < AG_LANES; ++j) a[j] = AG_ADD(U, T, S, a[j], AG_MUL(U, T, S, x[i + j], x[i + j]));             \
        AG_HALVE(U, T, S, AG_ADD, a, 32) AG_HALVE(U, T, S, AG_ADD, a, 16) AG_HALVE(U, T, S, AG_ADD, a, 8)                 \
        for (; i + 8 <= n; i += 8)                                                                                        \
            for (j = 0; j < 8; ++j) a[j] = AG_ADD(U, T, S, a[j], AG_MUL(U, T, S, x[i + j], x[i + j]));                    \
        AG_HALVE(U, T, S, AG_ADD, a, 4) AG_HALVE(U, T, S, AG_ADD, a, 2)                                                   \
        t = AG_ADD(U, T, S, a[0], a[1]);                                                                                  \
        for (; i < n; ++i) t = AG_ADD(U, T, S, t, AG_MUL(U, T, S, x[i], x[i]));                                           \
        return t;                                                                                                         \
    }                                                                                                                     \
    /* A long sum: blocks, combined as a binary counter counts (a partial sum meets one of its own weight). */            \
    static T ag_sum_long_##S(const T *x, ptrdiff_t n) {                                                                   \
        T stack[64], s;                                                                                                   \
        int top = 0;                                                                                                      \
        size_t count, done = 0;                                                                                           \
        for (; n > 0; x += AG_FOLD_BLOCK, n -= AG_FOLD_BLOCK) {                                                           \
            s = ag_sum_block_##S(x, n < AG_FOLD_BLOCK ? n : AG_FOLD_BLOCK);                                               \
            for (count = done++; count & 1; count >>= 1) s = AG_ADD(U, T, S, stack[--top], s);                            \
            stack[top++] = s;                                                                                             \
        }                                                                                                                 \
        s = stack[--top];                                                                                                 \
        while (top > 0) s = AG_ADD(U, T, S, stack[--top], s);                                                             \
        return s;                                                                                                         \
    }                                                                                                                     \
    static inline T ag_sum_##S(const T *x, ptrdiff_t n) {                                                                 \
        return n <= AG_FOLD_BLOCK ? ag_sum_block_##S(x, n) : ag_sum_long_##S(x, n);                                       \
    }                                                                                                                     \
    static inline T ag_fold_##S(int op, const T *x, ptrdiff_t n) {                                                        \
        if (op == AG_SUM) return ag_sum_##S(x, n);                                                                        \
        AG_REST(return, block_##S(x, n))                                                                                  \
    }                                                                                                                     \
    static inline void ag_fold_row_##S(int op, T *acc, const T *x, ptrdiff_t n) {                                         \
        if (op == AG_SUM) ag_sum_row_##S(acc, x, n);                                                                      \
        else AG_REST(, row_##S(acc, x, n))                                                                                \
    }                                                                                                                     \
    static inline void ag_fold_rows8_##S(int op, T *acc, char **rows, ptrdiff_t n) {                                      \
        if (op == AG_SUM) ag_sum_rows8_##S(acc, rows, n);                                                                 \
        else AG_REST(, rows8_##S(acc, rows, n))                                                                           \
    }                                                                                                                     \
    static inline void ag_fold_columns_##S(int op, const T *x, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t w, T *acc) {   \
        if (op == AG_SUM) ag_sum_columns_##S(x, rows, stride, w, acc);                                                    \
        else AG_REST(, columns_##S(x, rows, stride, w, acc))                                                              \
    }                                                                                                                     \
    static inline void ag_fold_each_##S(int op, const T *x, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t n, T *out,        \
                                        ptrdiff_t step) {                                                                 \
        if (op == AG_SUM) ag_sum_each_##S(x, rows, stride, n, out, step);                                                 \
        else AG_REST(, each_##S(x, rows, stride, n, out, step))                                                           \
    }

AG_DEFINE_FOLDS(float, float, f32, -__builtin_inff(), __builtin_inff())
AG_DEFINE_FOLDS(double, double, f64, -__builtin_inf(), __builtin_inf())
AG_DEFINE_FOLDS(long long, unsigned long long, i64, (-0x7fffffffffffffffLL - 1), 0x7fffffffffffffffLL)

/* The larger one of `best` and the largest x[i] ^ flip, in 256 bytes of lanes; of what is left over some elements are taken twice. */
#define AG_DEFINE_LARGEST(T, S)                                                                                           \
    static T ag_largest_##S(const T *x, ptrdiff_t n, T flip, T best) {                                                    \
        enum { LANES = 256 / sizeof(T) };                                                                                 \
        T a[LANES], v;                                                                                                    \
        ptrdiff_t i = LANES, j;                                                                                           \
        if (n >= LANES) {                                                                                                 \
            for (j = 0; j < LANES; ++j) a[j] = x[j] ^ flip;                                                               \
            while (i < n) {                                                                                               \
                const T *next = x + (i + LANES <= n ? i : n - LANES);                                                     \
                for (j = 0; j < LANES; ++j) { v = next[j] ^ flip; a[j] = v > a[j] ? v : a[j]; }                           \
                i += LANES;                                                                                               \
            }                                                                                                             \
            x = a;                                                                                                        \
            n = LANES;                                                                                                    \
            flip = 0;                                                                                                     \
        }                                                                                                                 \
        for (i = 0; i < n; ++i) { v = x[i] ^ flip; best = v > best ? v : best; }                                          \
        return best;                                                                                                      \
    }
/* The sum of bytes: eight at a time, in lanes of 16 bits that 128 words can't fill. */
static long long ag_sum_u8(const unsigned char *x, ptrdiff_t n) {
    const unsigned long long even = 0x00FF00FF00FF00FFULL;
    long long total = 0;
    while (n >= 8) {
        unsigned long long lanes = 0, word;
        ptrdiff_t words = n < 1024 ? n / 8 : 128;
        for (ptrdiff_t i = 0; i < words; ++i) {
            memcpy(&word, x + 8 * i, 8);
            lanes += (word & even) + (word >> 8 & even);
        }
        lanes = (lanes & 0x0000FFFF0000FFFFULL) + (lanes >> 16 & 0x0000FFFF0000FFFFULL);
        total += (long long) ((lanes & 0xFFFFFFFFULL) + (lanes >> 32));
        x += 8 * words;
        n -= 8 * words;
    }
    for (ptrdiff_t i = 0; i < n; ++i) total += x[i];
    return total;
}
AG_DEFINE_LARGEST(int, i32)
AG_DEFINE_LARGEST(unsigned char, u8)

#endif
