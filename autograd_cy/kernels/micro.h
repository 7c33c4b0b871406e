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
#define AG_WIDEST_CALL(call) call##64
#elif AG_WIDEST == 32
#define AG_DISPATCH(call, bytes, ...) \
    do { \
        if ((bytes) == 32) call##32(__VA_ARGS__); \
        else call##16(__VA_ARGS__); \
    } while (0)
#define AG_WIDEST_CALL(call) call##32
#else
#define AG_DISPATCH(call, bytes, ...) call##16(__VA_ARGS__)
#define AG_WIDEST_CALL(call) call##16
#endif

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

/* The same for fewer columns than one vector has; b is packed, padded to whole vectors. */
AG_INLINE void ag_narrow_f32(int bytes, ag_size cols, ag_size m, ag_size k, const float *a, ag_size am, ag_size ak,
                             const float *b, float *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_narrow_f32_, bytes, cols, m, k, a, am, ak, b, c, ldc, add);
}

AG_INLINE void ag_narrow_f64(int bytes, ag_size cols, ag_size m, ag_size k, const double *a, ag_size am, ag_size ak,
                             const double *b, double *c, ag_size ldc, int add)
{
    AG_DISPATCH(ag_narrow_f64_, bytes, cols, m, k, a, am, ak, b, c, ldc, add);
}

/* y[i * incy] (+)= dot(A[i, :], x) for all rows; x is contiguous. */
AG_INLINE void ag_dots_f32(ag_size m, ag_size k, const float *a, ag_size lda, const float *x, float *y, ag_size incy,
                           int add)
{
    AG_WIDEST_CALL(ag_dots_f32_)(m, k, a, lda, x, y, incy, add);
}

AG_INLINE void ag_dots_f64(ag_size m, ag_size k, const double *a, ag_size lda, const double *x, double *y, ag_size incy,
                           int add)
{
    AG_WIDEST_CALL(ag_dots_f64_)(m, k, a, lda, x, y, incy, add);
}

#endif
