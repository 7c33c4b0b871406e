/* Register-blocked tiles of a matrix product, written with GCC's vector extensions.
 *
 * Relies on micro_tile.h (the tile, for one element type and one vector width) and on a compiler with vector
 * extensions (GCC, Clang).  micro.pyx relies on it and holds the logic: blocking, packing and choice of a tile.
 */
#ifndef AG_MICRO_H
#define AG_MICRO_H

#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define AG_INLINE static inline __attribute__((always_inline))

typedef ptrdiff_t ag_size;

/* Bytes of the widest vector. A wider vector than the target has is emulated in memory, 10 times slower. */
#if defined(__AVX512F__) && defined(__AVX512VL__)
#define AG_WIDEST 64
#elif defined(__AVX__)
#define AG_WIDEST 32
#else
#define AG_WIDEST 16
#endif

/* Rows of a tile of 1, 2 and 3 vectors: as many accumulators as the registers hold beside the operands
 * (32 registers with AVX-512 and on ARM, 16 otherwise; without FMA one more is needed for the product). */
#if AG_WIDEST == 64 || defined(__aarch64__)
#define AG_ROWS_1 8
#define AG_ROWS_2 8
#define AG_ROWS_3 8
#define AG_MAX_VECTORS 3
#elif AG_WIDEST == 32
#define AG_ROWS_1 8
#define AG_ROWS_2 6
#define AG_ROWS_3 4
#define AG_MAX_VECTORS 3
#else
#define AG_ROWS_1 8
#define AG_ROWS_2 4
#define AG_ROWS_3 4
#define AG_MAX_VECTORS 2
#endif

/* Memory for packed operands: thread-local, because a thread's stack may be as small as 64 KB. */
#define AG_SCRATCH 65536
static __thread char ag_scratch_memory[AG_SCRATCH] __attribute__((aligned(64)));

AG_INLINE void *ag_scratch(void)
{
    return ag_scratch_memory;
}

/* Vectors of a panel whose products of up to 4 terms keep all of B in registers. */
#define AG_SHORT_VECTORS (AG_ROWS_3 == 8 ? 3 : 2)

#if AG_WIDEST >= 32
#define AG_MASKED_LOADS 1
/* ag_lane_masks + 32 - n has n bytes of ones in front, then zeros. */
static const char ag_lane_masks[64] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};
#else
#define AG_MASKED_LOADS 0
#endif

/* x, about which the compiler knows nothing more. */
AG_INLINE ag_size ag_opaque(ag_size x)
{
    __asm__("" : "+r"(x));
    return x;
}

#define AG_PASTE3(a, b, c) a##b##c
#define AG_NAME3(a, b, c) AG_PASTE3(a, b, c)

#define AG_REAL float
#define AG_TYPE f32_
#define AG_BYTES 16
#include "micro_tile.h"
#if AG_WIDEST >= 32
#define AG_BYTES 32
#include "micro_tile.h"
#endif
#if AG_WIDEST >= 64
#define AG_BYTES 64
#include "micro_tile.h"
#endif
#undef AG_REAL
#undef AG_TYPE

#define AG_REAL double
#define AG_TYPE f64_
#define AG_BYTES 16
#include "micro_tile.h"
#if AG_WIDEST >= 32
#define AG_BYTES 32
#include "micro_tile.h"
#endif
#if AG_WIDEST >= 64
#define AG_BYTES 64
#include "micro_tile.h"
#endif
#undef AG_REAL
#undef AG_TYPE

#if AG_WIDEST == 64
#define AG_DISPATCH(call, bytes, ...) \
    do { \
        if ((bytes) == 64) call##64(__VA_ARGS__); \
        else if ((bytes) == 32) call##32(__VA_ARGS__); \
        else call##16(__VA_ARGS__); \
    } while (0)
#define AG_DOTS_DISPATCH(call, bytes, ...) ((bytes) == 64 ? call##64(__VA_ARGS__) : call##32(__VA_ARGS__))
#elif AG_WIDEST == 32
#define AG_DISPATCH(call, bytes, ...) \
    do { \
        if ((bytes) == 32) call##32(__VA_ARGS__); \
        else call##16(__VA_ARGS__); \
    } while (0)
#define AG_DOTS_DISPATCH(call, bytes, ...) call##32(__VA_ARGS__)
#else
#define AG_DISPATCH(call, bytes, ...) call##16(__VA_ARGS__)
#define AG_DOTS_DISPATCH(call, bytes, ...) call##16(__VA_ARGS__)
#endif

/* Transpositions of square blocks, out[p * ldo + j] = in[j * ldi + p]: the packing of a transposed B. One element at a time,
 * packing costs a third of a 64 x 64 x 64 product. */
AG_INLINE void ag_transpose4_f32(const float *in, ag_size ldi, float *out, ag_size ldo)
{
#if defined(__SSE2__)
    __m128 r0 = _mm_loadu_ps(in), r1 = _mm_loadu_ps(in + ldi), r2 = _mm_loadu_ps(in + 2 * ldi), r3 = _mm_loadu_ps(in + 3 * ldi);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(out, r0);
    _mm_storeu_ps(out + ldo, r1);
    _mm_storeu_ps(out + 2 * ldo, r2);
    _mm_storeu_ps(out + 3 * ldo, r3);
#else
    for (int p = 0; p < 4; p++)
        for (int j = 0; j < 4; j++)
            out[p * ldo + j] = in[j * ldi + p];
#endif
}

AG_INLINE void ag_transpose4_f64(const double *in, ag_size ldi, double *out, ag_size ldo)
{
#if defined(__AVX__)
    __m256d lo[2], hi[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const double *row = in + i * ldi;
        lo[i] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(row)), _mm_loadu_pd(row + 2 * ldi), 1);
        hi[i] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(row + 2)), _mm_loadu_pd(row + 2 * ldi + 2), 1);
    }
    _mm256_storeu_pd(out, _mm256_unpacklo_pd(lo[0], lo[1]));
    _mm256_storeu_pd(out + ldo, _mm256_unpackhi_pd(lo[0], lo[1]));
    _mm256_storeu_pd(out + 2 * ldo, _mm256_unpacklo_pd(hi[0], hi[1]));
    _mm256_storeu_pd(out + 3 * ldo, _mm256_unpackhi_pd(hi[0], hi[1]));
#else
    for (int p = 0; p < 4; p++)
        for (int j = 0; j < 4; j++)
            out[p * ldo + j] = in[j * ldi + p];
#endif
}

AG_INLINE void ag_transpose8_f32(const float *in, ag_size ldi, float *out, ag_size ldo)
{
#if defined(__AVX__)
    __m256 half[2][4];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const float *row = in + i * ldi + 4 * h;
            half[h][i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row)), _mm_loadu_ps(row + 4 * ldi), 1);
        }
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256 lo01 = _mm256_unpacklo_ps(half[h][0], half[h][1]), hi01 = _mm256_unpackhi_ps(half[h][0], half[h][1]);
        __m256 lo23 = _mm256_unpacklo_ps(half[h][2], half[h][3]), hi23 = _mm256_unpackhi_ps(half[h][2], half[h][3]);
        float *row = out + 4 * h * ldo;
        _mm256_storeu_ps(row, _mm256_shuffle_ps(lo01, lo23, 0x44));
        _mm256_storeu_ps(row + ldo, _mm256_shuffle_ps(lo01, lo23, 0xee));
        _mm256_storeu_ps(row + 2 * ldo, _mm256_shuffle_ps(hi01, hi23, 0x44));
        _mm256_storeu_ps(row + 3 * ldo, _mm256_shuffle_ps(hi01, hi23, 0xee));
    }
#else
    for (int h = 0; h < 8; h += 4)
        for (int g = 0; g < 8; g += 4)
            ag_transpose4_f32(in + g * ldi + h, ldi, out + h * ldo + g, ldo);
#endif
}

/* C[0:m, columns of nv vectors] (+)= A B for all rows; see panel in micro_tile.h. */
AG_INLINE void ag_panel_f32(int bytes, int nv, ag_size m, ag_size k, const float *a, ag_size am, ag_size ak,
                            const float *b, ag_size ldb, ag_size last, float *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_panel_f32_, bytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add);
}

AG_INLINE void ag_panel_f64(int bytes, int nv, ag_size m, ag_size k, const double *a, ag_size am, ag_size ak,
                            const double *b, ag_size ldb, ag_size last, double *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_panel_f64_, bytes, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add);
}

/* The same for fewer columns than one vector has; without masked loads, the rows of b are padded to whole vectors. */
AG_INLINE void ag_narrow_f32(int bytes, ag_size cols, ag_size m, ag_size k, const float *a, ag_size am, ag_size ak,
                             const float *b, ag_size ldb, float *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_narrow_f32_, bytes, cols, m, k, a, am, ak, b, ldb, c, ldc, add);
}

AG_INLINE void ag_narrow_f64(int bytes, ag_size cols, ag_size m, ag_size k, const double *a, ag_size am, ag_size ak,
                             const double *b, ag_size ldb, double *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_narrow_f64_, bytes, cols, m, k, a, am, ak, b, ldb, c, ldc, add);
}

/* y[i * y_row + q * y_x] (+)= dot(A[i, :], x[q, :]) for all rows of A and nx rows of x, at most 3. */
AG_INLINE void ag_dots_f32(int bytes, int nx, ag_size m, ag_size k, const float *a, ag_size lda, const float *x, ag_size ldx,
                           float *y, ag_size y_row, ag_size y_x, int add)
{
    AG_DOTS_DISPATCH(ag_dots_f32_, bytes, nx, m, k, a, lda, x, ldx, y, y_row, y_x, add);
}

AG_INLINE void ag_dots_f64(int bytes, int nx, ag_size m, ag_size k, const double *a, ag_size lda, const double *x, ag_size ldx,
                           double *y, ag_size y_row, ag_size y_x, int add)
{
    AG_DOTS_DISPATCH(ag_dots_f64_, bytes, nx, m, k, a, lda, x, ldx, y, y_row, y_x, add);
}

#endif
