/* Register tiles that transpose 4- and 8-byte elements, and the scratch memory of one thread.
 *
 * Relies on the vector extensions of GCC and Clang (shuffles are what Cython cannot say).
 * elementwise.pyx relies on it.
 */
#ifndef AG_TRANSPOSE_H
#define AG_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AG_SCRATCH_BYTES 65536
#define AG_SCRATCH_SLACK 64      /* fixed-size stores may run past the end of a slot by less than this */

/* Not on the stack: a thread may have 64 KB of it. */
#if defined(_MSC_VER)
static __declspec(thread) __declspec(align(64)) char ag_scratch_memory[AG_SCRATCH_BYTES + 8 * AG_SCRATCH_SLACK];
#else
static __thread char ag_scratch_memory[AG_SCRATCH_BYTES + 8 * AG_SCRATCH_SLACK] __attribute__((aligned(64)));
#endif

static inline char *ag_scratch(void) { return ag_scratch_memory; }

#define AG_SCALAR_TILE(T, rows, cols)                                                                    \
    for (ptrdiff_t i_ = 0; i_ < (rows); i_++)                                                            \
        for (ptrdiff_t j_ = 0; j_ < (cols); j_++) d[i_ * dp + j_] = s[j_ * sp + i_];

#if defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define AG_VECTORS 1
#endif
#endif

#ifdef AG_VECTORS

#define SHUFFLE __builtin_shufflevector
typedef uint32_t ag_u4 __attribute__((vector_size(16)));
typedef uint64_t ag_q2 __attribute__((vector_size(16)));

#ifdef __AVX__
/* 32-byte vectors only where they are registers: emulated ones cost several times as much. */
typedef uint32_t ag_u8 __attribute__((vector_size(32)));
typedef uint64_t ag_q4 __attribute__((vector_size(32)));
#define AG_TILE32 8
#define AG_TILE64 4

/* Rows k and k + 4 share a vector from the load on, so that two rounds of shuffles within 16 bytes suffice. */
static inline ag_u8 ag_pair32(const uint32_t *lo, const uint32_t *hi) {
    ag_u4 a, b;
    memcpy(&a, lo, 16);
    memcpy(&b, hi, 16);
    return SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}

static inline void ag_tile32(uint32_t *d, ptrdiff_t dp, const uint32_t *s, ptrdiff_t sp) {
    for (int h = 0; h < 8; h += 4) {
        ag_u8 r0 = ag_pair32(s + h, s + 4 * sp + h);
        ag_u8 r1 = ag_pair32(s + sp + h, s + 5 * sp + h);
        ag_u8 r2 = ag_pair32(s + 2 * sp + h, s + 6 * sp + h);
        ag_u8 r3 = ag_pair32(s + 3 * sp + h, s + 7 * sp + h);
        ag_u8 a = SHUFFLE(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13);
        ag_u8 b = SHUFFLE(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15);
        ag_u8 c = SHUFFLE(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
        ag_u8 e = SHUFFLE(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
        ag_u8 o0 = SHUFFLE(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
        ag_u8 o1 = SHUFFLE(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
        ag_u8 o2 = SHUFFLE(b, e, 0, 1, 8, 9, 4, 5, 12, 13);
        ag_u8 o3 = SHUFFLE(b, e, 2, 3, 10, 11, 6, 7, 14, 15);
        memcpy(d + (h + 0) * dp, &o0, 32);
        memcpy(d + (h + 1) * dp, &o1, 32);
        memcpy(d + (h + 2) * dp, &o2, 32);
        memcpy(d + (h + 3) * dp, &o3, 32);
    }
}

static inline ag_q4 ag_pair64(const uint64_t *lo, const uint64_t *hi) {
    ag_q2 a, b;
    memcpy(&a, lo, 16);
    memcpy(&b, hi, 16);
    return SHUFFLE(a, b, 0, 1, 2, 3);
}

static inline void ag_tile64(uint64_t *d, ptrdiff_t dp, const uint64_t *s, ptrdiff_t sp) {
    for (int h = 0; h < 4; h += 2) {
        ag_q4 r0 = ag_pair64(s + h, s + 2 * sp + h);
        ag_q4 r1 = ag_pair64(s + sp + h, s + 3 * sp + h);
        ag_q4 o0 = SHUFFLE(r0, r1, 0, 4, 2, 6);
        ag_q4 o1 = SHUFFLE(r0, r1, 1, 5, 3, 7);
        memcpy(d + (h + 0) * dp, &o0, 32);
        memcpy(d + (h + 1) * dp, &o1, 32);
    }
}

#else
#define AG_TILE32 4
#define AG_TILE64 2

static inline void ag_tile32(uint32_t *d, ptrdiff_t dp, const uint32_t *s, ptrdiff_t sp) {
    ag_u4 r0, r1, r2, r3;
    memcpy(&r0, s, 16);
    memcpy(&r1, s + sp, 16);
    memcpy(&r2, s + 2 * sp, 16);
    memcpy(&r3, s + 3 * sp, 16);
    ag_u4 a = SHUFFLE(r0, r1, 0, 4, 1, 5), b = SHUFFLE(r0, r1, 2, 6, 3, 7);
    ag_u4 c = SHUFFLE(r2, r3, 0, 4, 1, 5), e = SHUFFLE(r2, r3, 2, 6, 3, 7);
    ag_u4 o0 = SHUFFLE(a, c, 0, 1, 4, 5), o1 = SHUFFLE(a, c, 2, 3, 6, 7);
    ag_u4 o2 = SHUFFLE(b, e, 0, 1, 4, 5), o3 = SHUFFLE(b, e, 2, 3, 6, 7);
    memcpy(d, &o0, 16);
    memcpy(d + dp, &o1, 16);
    memcpy(d + 2 * dp, &o2, 16);
    memcpy(d + 3 * dp, &o3, 16);
}

static inline void ag_tile64(uint64_t *d, ptrdiff_t dp, const uint64_t *s, ptrdiff_t sp) {
    ag_q2 r0, r1;
    memcpy(&r0, s, 16);
    memcpy(&r1, s + sp, 16);
    ag_q2 o0 = SHUFFLE(r0, r1, 0, 2), o1 = SHUFFLE(r0, r1, 1, 3);
    memcpy(d, &o0, 16);
    memcpy(d + dp, &o1, 16);
}
#endif
#undef SHUFFLE

#else   /* no vector extensions: the compiler's own unrolling */
#define AG_TILE32 4
#define AG_TILE64 4
static inline void ag_tile32(uint32_t *d, ptrdiff_t dp, const uint32_t *s, ptrdiff_t sp) { AG_SCALAR_TILE(uint32_t, 4, 4) }
static inline void ag_tile64(uint64_t *d, ptrdiff_t dp, const uint64_t *s, ptrdiff_t sp) { AG_SCALAR_TILE(uint64_t, 4, 4) }
#endif

/* d[i * dp + j] = s[j * sp + i] for i < rows, j < cols.  The walk finishes a cache line of s before it leaves it. */
#define AG_TRANSPOSE(NAME, T, TILE, TILE_FUNCTION)                                                       \
    static void NAME(ptrdiff_t rows, ptrdiff_t cols, T *dst, ptrdiff_t dp, const T *src, ptrdiff_t sp) { \
        ptrdiff_t line = 64 / (ptrdiff_t)sizeof(T), whole = rows - rows % TILE;                          \
        ptrdiff_t i, j;                                                                                  \
        for (ptrdiff_t i0 = 0; i0 < whole; i0 += line) {                                                 \
            ptrdiff_t i1 = i0 + line < whole ? i0 + line : whole;                                        \
            for (j = 0; j + TILE <= cols; j += TILE)                                                     \
                for (i = i0; i < i1; i += TILE) TILE_FUNCTION(dst + i * dp + j, dp, src + j * sp + i, sp); \
            if (j < cols) {                                                                              \
                T *d = dst + i0 * dp + j;                                                                \
                const T *s = src + j * sp + i0;                                                          \
                AG_SCALAR_TILE(T, i1 - i0, cols - j)                                                     \
            }                                                                                            \
        }                                                                                                \
        if (whole < rows) {                                                                              \
            T *d = dst + whole * dp;                                                                     \
            const T *s = src + whole;                                                                    \
            AG_SCALAR_TILE(T, rows - whole, cols)                                                        \
        }                                                                                                \
    }

AG_TRANSPOSE(ag_transpose32, uint32_t, AG_TILE32, ag_tile32)
AG_TRANSPOSE(ag_transpose64, uint64_t, AG_TILE64, ag_tile64)

#endif
