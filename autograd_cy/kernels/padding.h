/* What is left over of a loop of whole tiles (ops/codegen.py): it is computed in a padded tile.
 * It relies on C99 and on the macros that tell a compiler's target. The generated loops of floats rely on it.
 *
 * Long formulas are compiled for whole tiles, one vector, only: a compiler otherwise adds the formula for half a vector and for single
 * elements, two thirds of the code. If there was a tile before, the last elements make a full one with some of its elements; they
 * are copied before those are computed, as the output may be an input's memory. Costs 5 ns, and saves single elements: a
 * sigmoid of 30 values takes 30 ns less.
 */
#ifndef AG_PADDING_H
#define AG_PADDING_H

#include <stddef.h>
#include <string.h>

#if defined(__OPTIMIZE_SIZE__)                 /* no vectors: a tile is one element */
#define AG_TILE(T) 1
#elif defined(__AVX512F__)
#define AG_TILE(T) (64 / (ptrdiff_t)sizeof(T))
#elif defined(__AVX__)
#define AG_TILE(T) (32 / (ptrdiff_t)sizeof(T))
#else
#define AG_TILE(T) (16 / (ptrdiff_t)sizeof(T))
#endif
#define AG_TILE_f32 AG_TILE(float)
#define AG_TILE_f64 AG_TILE(double)

/* `size` bytes, a multiple of 4 and less than a tile, into a tile of zeros, and back: by a mask or as two pieces that may overlap */
#if defined(__AVX512F__)
#include <immintrin.h>
static inline void ag_load_rest(char *tile, const char *from, ptrdiff_t size) {
    _mm512_storeu_si512(tile, _mm512_maskz_loadu_epi32((__mmask16)((1u << (size >> 2)) - 1), from));
}
static inline void ag_store_rest(char *to, const char *tile, ptrdiff_t size) {
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << (size >> 2)) - 1), _mm512_loadu_si512(tile));
}
#else
#define AG_TWO_PIECES(S) { \
    char first[S], last[S]; \
    memcpy(first, from, S); memcpy(last, from + size - S, S); \
    memcpy(to, first, S); memcpy(to + size - S, last, S); }
static inline void ag_store_rest(char *to, const char *from, ptrdiff_t size) {
    if (size >= 16) AG_TWO_PIECES(16)
    else if (size >= 8) AG_TWO_PIECES(8)
    else memcpy(to, from, 4);
}
static inline void ag_load_rest(char *tile, const char *from, ptrdiff_t size) {
    memset(tile, 0, AG_TILE(char));
    ag_store_rest(tile, from, size);
}
#endif

/* The loop over all n elements, which are no whole number of tiles */
#define AG_PAD(T, D) \
static void ag_pad_##D(void (*loop)(ptrdiff_t, char **, const double *), int inputs, ptrdiff_t n, char **p, const double *attrs) { \
    T tiles[8][16]; \
    char *q[8]; \
    ptrdiff_t whole = n & -AG_TILE(T), last = (n - AG_TILE(T)) * (ptrdiff_t)sizeof(T), rest = n * (ptrdiff_t)sizeof(T); \
    q[0] = (char *)tiles[0]; \
    for (int k = 1; k <= inputs; k++) { \
        q[k] = (char *)tiles[k]; \
        if (whole) memcpy(q[k], p[k] + last, AG_TILE(T) * sizeof(T)); \
        else ag_load_rest(q[k], p[k], rest); } \
    if (whole) loop(whole, p, attrs); \
    loop(AG_TILE(T), q, attrs); \
    if (whole) memcpy(p[0] + last, q[0], AG_TILE(T) * sizeof(T)); \
    else ag_store_rest(p[0], q[0], rest); }
AG_PAD(float, f32)
AG_PAD(double, f64)

#endif
