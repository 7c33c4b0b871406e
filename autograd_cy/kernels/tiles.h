/* Register tiles that transpose elements, fills of short rows, and the scratch memory of one thread.
 *
 * Relies on the vector extensions of GCC and Clang (shuffles and fixed-size stores are what Cython cannot say).
 * elementwise.pyx relies on it.
 */
#ifndef AG_TILES_H
#define AG_TILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AG_SCRATCH_BYTES 65536

/* Not on the stack: a thread may have 64 KB of it. */
#if defined(_MSC_VER)
static __declspec(thread) __declspec(align(64)) char ag_scratch_memory[AG_SCRATCH_BYTES];
#else
static __thread char ag_scratch_memory[AG_SCRATCH_BYTES] __attribute__((aligned(64)));
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

/* 8 x 8 bytes in eight words: swap halves, quarters, bytes. Masks come transposed, too. */
#define AG_TILE8 8
static inline void ag_tile8(uint8_t *d, ptrdiff_t dp, const uint8_t *s, ptrdiff_t sp) {
    uint64_t x[8], t;
    for (int k = 0; k < 8; k++) memcpy(x + k, s + k * sp, 8);
#define AG_SWAP(a, b, shift, mask) t = ((x[a] >> shift) ^ x[b]) & mask; x[b] ^= t; x[a] ^= t << shift;
    for (int k = 0; k < 4; k++) { AG_SWAP(k, k + 4, 32, 0x00000000FFFFFFFFULL) }
    for (int k = 0; k < 8; k += 4) for (int h = 0; h < 2; h++) { AG_SWAP(k + h, k + h + 2, 16, 0x0000FFFF0000FFFFULL) }
    for (int k = 0; k < 8; k += 2) { AG_SWAP(k, k + 1, 8, 0x00FF00FF00FF00FFULL) }
#undef AG_SWAP
    for (int k = 0; k < 8; k++) memcpy(d + k * dp, x + k, 8);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the byte tile assumes little-endian words"
#endif

AG_TRANSPOSE(ag_transpose8, uint8_t, AG_TILE8, ag_tile8)
AG_TRANSPOSE(ag_transpose32, uint32_t, AG_TILE32, ag_tile32)
AG_TRANSPOSE(ag_transpose64, uint64_t, AG_TILE64, ag_tile64)

/* Fill row i with src[i * stride], for rows of 2 elements and 64 bytes at most: two stores of fixed size that overlap. */
#define AG_FILL_PAIR(T, W)                                                                               \
    for (ptrdiff_t i = 0; i < rows; i++) {                                                               \
        T value = src[i * stride], part[W / sizeof(T)];                                                  \
        for (size_t k = 0; k < W / sizeof(T); k++) part[k] = value;                                      \
        memcpy(dst + i * dst_stride, part, W);                                                           \
        memcpy(dst + i * dst_stride + cols - W / sizeof(T), part, W);                                    \
    }

#define AG_FILL_ROWS(NAME, T)                                                                            \
    static void NAME(ptrdiff_t rows, ptrdiff_t cols, T *dst, ptrdiff_t dst_stride, const T *src, ptrdiff_t stride) { \
        size_t size = (size_t)cols * sizeof(T);                                                          \
        if (size > 32) { AG_FILL_PAIR(T, 32) }                                                           \
        else if (size > 16) { AG_FILL_PAIR(T, 16) }                                                      \
        else if (size > 8 || sizeof(T) == 8) { AG_FILL_PAIR(T, 8) }                                      \
        else                                                                                             \
            for (ptrdiff_t i = 0; i < rows; i++)                                                         \
                for (ptrdiff_t j = 0; j < cols; j++) dst[i * dst_stride + j] = src[i * stride];          \
    }

AG_FILL_ROWS(ag_fill_rows8, uint8_t)
AG_FILL_ROWS(ag_fill_rows16, uint16_t)
AG_FILL_ROWS(ag_fill_rows32, uint32_t)
AG_FILL_ROWS(ag_fill_rows64, uint64_t)

/* memcpy without the call for the short rows of a block. */
static inline void ag_copy_short(char *dst, const char *src, ptrdiff_t size) {
    if (size >= 16 && size <= 128) {
        char last[16];
        memcpy(last, src + size - 16, 16);
        for (ptrdiff_t i = 0; i + 16 < size; i += 16) {
            char part[16];
            memcpy(part, src + i, 16);
            memcpy(dst + i, part, 16);
        }
        memcpy(dst + size - 16, last, 16);
    } else if (size >= 4 && size < 16) {
        uint32_t a, b, c, d;
        ptrdiff_t middle = size >= 8 ? 4 : 0;
        memcpy(&a, src, 4);
        memcpy(&b, src + middle, 4);
        memcpy(&c, src + size - 4 - middle, 4);
        memcpy(&d, src + size - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + middle, &b, 4);
        memcpy(dst + size - 4 - middle, &c, 4);
        memcpy(dst + size - 4, &d, 4);
    } else {
        memcpy(dst, src, size);
    }
}

/* dst = src, a row of `size` bytes, until `total`. Short rows: a line of whole rows is held in registers and stored over
 * and over (doubling what was just stored would wait for the stores each time). */
#define AG_REPEAT_LINE(LINE)                                                                             \
    do {                                                                                                 \
        char line[LINE];                                                                                 \
        for (; period + size <= LINE; period += size) ag_copy_short(line + period, src, size);           \
        for (; done + LINE <= total; done += period) memcpy(dst + done, line, LINE);                     \
        memcpy(dst + done, line, total - done);                                                          \
    } while (0)

static inline void ag_repeat_row(char *dst, const char *src, ptrdiff_t size, ptrdiff_t rows) {
    ptrdiff_t done = 0, total = size * rows, period = 0;
    if (size <= 24 && total > 64)
        AG_REPEAT_LINE(64);
    else if (size <= 128 && total > 256)
        AG_REPEAT_LINE(256);
    else
        for (; done < total; done += size) ag_copy_short(dst + done, src, size);
}

#endif
