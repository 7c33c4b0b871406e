/* One element type (AG_REAL) and one vector width (AG_BYTES): the tile of a product and the loops over rows.
 *
 * Relies on the macros of micro.h, which includes it once per type and width.  Nothing else relies on it.
 *
 * A tile multiplies `mr` rows of A with `nv` vectors of columns of B, and keeps the mr * nv results in registers.
 * Vector v covers the columns v * LANES ..., except the last, which starts at `last` and may overlap the one before:
 * both compute the same numbers, so that no mask is needed for a number of columns that is no multiple of LANES.
 * Element (r, p) of A is a[r * am + p * ak], which is A or its transpose; B is row-major.
 */
#define LANES ((ag_size)(AG_BYTES / sizeof(AG_REAL)))
#define NAME(part) AG_NAME3(ag_##part##_, AG_TYPE, AG_BYTES)
#define AG_VEC NAME(vec)
#define AG_UVEC NAME(uvec)

typedef AG_REAL AG_VEC __attribute__((vector_size(AG_BYTES)));
typedef AG_REAL AG_UVEC __attribute__((vector_size(AG_BYTES), aligned(sizeof(AG_REAL)), may_alias));

AG_INLINE void NAME(tile)(const int mr, const int nv, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                          const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
{
    AG_VEC acc[8][3];
    /* Without `unroll` the accumulators live in memory: up to 3 times slower. */
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            acc[r][v] = (AG_VEC){0};
    for (ag_size p = 0; p < k; p++) {
        AG_VEC row[3];
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            row[v] = *(const AG_UVEC *)(b + (v == nv - 1 ? last : v * LANES));
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            AG_REAL x = a[r * am];
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                acc[r][v] += x * row[v];
        }
        a += ak;
        b += ldb;
    }
    if (add) {
        /* All loads come before all stores: columns of two overlapping vectors are added once. */
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                acc[r][v] += *(const AG_UVEC *)(c + r * ldc + (v == nv - 1 ? last : v * LANES));
    }
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            *(AG_UVEC *)(c + r * ldc + (v == nv - 1 ? last : v * LANES)) = acc[r][v];
}

#define AG_TILE_CASE(rows) \
    case rows: \
        NAME(tile)(rows, nv, k, a, am, ak, b, ldb, last, c, ldc, add); \
        break;

AG_INLINE void NAME(rows)(const int mr, const int nv, ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                          const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
{
    for (; m >= mr; m -= mr) {
        NAME(tile)(mr, nv, k, a, am, ak, b, ldb, last, c, ldc, add);
        a += mr * am;
        c += mr * ldc;
    }
    switch (m) {
        AG_TILE_CASE(1)
        AG_TILE_CASE(2)
        AG_TILE_CASE(3)
        AG_TILE_CASE(4)
        AG_TILE_CASE(5)
        AG_TILE_CASE(6)
        AG_TILE_CASE(7)
    }
}

static __attribute__((noinline)) void NAME(panel)(int nv, ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                                                  const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
{
    if (nv == 1)
        NAME(rows)(AG_ROWS_1, 1, m, k, a, am, ak, b, ldb, last, c, ldc, add);
    else if (nv == 2)
        NAME(rows)(AG_ROWS_2, 2, m, k, a, am, ak, b, ldb, last, c, ldc, add);
#if AG_MAX_VECTORS > 2
    else
        NAME(rows)(AG_ROWS_3, 3, m, k, a, am, ak, b, ldb, last, c, ldc, add);
#endif
}

/* The first `cols` lanes of v. */
AG_INLINE void NAME(store_part)(AG_REAL *c, AG_VEC v, ag_size cols)
{
#if AG_WIDEST == 64 && AG_BYTES == 64
    if (sizeof(AG_REAL) == 4)
        _mm512_mask_storeu_ps(c, (__mmask16)((1u << cols) - 1), (__m512)v);
    else
        _mm512_mask_storeu_pd(c, (__mmask8)((1u << cols) - 1), (__m512d)v);
#elif AG_WIDEST == 64 && AG_BYTES == 32
    if (sizeof(AG_REAL) == 4)
        _mm256_mask_storeu_ps(c, (__mmask8)((1u << cols) - 1), (__m256)v);
    else
        _mm256_mask_storeu_pd(c, (__mmask8)((1u << cols) - 1), (__m256d)v);
#else
    /* A masked store of AVX2 takes tens of cycles on some processors. */
    if (cols & 4) {
#if AG_BYTES > 16
        typedef AG_REAL quad __attribute__((vector_size(4 * sizeof(AG_REAL)), aligned(sizeof(AG_REAL)), may_alias));
        if (LANES > 4) {
            quad low = {v[0], v[1], v[2], v[3]};
            *(quad *)c = low;
            for (ag_size j = 4; j < cols; j++)
                c[j] = v[j & (LANES - 1)];
            return;
        }
#endif
    }
    c[0] = v[0];
    if (cols > 1) c[1] = v[1];
    if (cols > 2) c[2] = v[2 & (LANES - 1)];
#endif
}

AG_INLINE void NAME(narrow_tile)(const int mr, ag_size cols, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                                 const AG_REAL *b, AG_REAL *c, ag_size ldc, ag_size whole, int add)
{
    AG_VEC acc[8];
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++)
        acc[r] = (AG_VEC){0};
    for (ag_size p = 0; p < k; p++) {
        AG_VEC row = *(const AG_VEC *)b;
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            acc[r] += a[r * am] * row;
        a += ak;
        b += LANES;
    }
    if (add) {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            for (ag_size j = 0; j < cols; j++)
                c[r * ldc + j] += acc[r][j];
    } else if (whole >= mr) {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            *(AG_UVEC *)(c + r * ldc) = acc[r];
    } else {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            NAME(store_part)(c + r * ldc, acc[r], cols);
    }
}

#define AG_NARROW_CASE(rows) \
    case rows: \
        NAME(narrow_tile)(rows, cols, k, a, am, ak, b, c, ldc, whole, add); \
        break;

/* Where C is contiguous, whole vectors are stored, in the order of the rows: what a row writes behind its end belongs
 * to later rows, which overwrite it.  `whole` counts the rows from here whose vector ends inside C. */
static __attribute__((noinline)) void NAME(narrow)(ag_size cols, ag_size m, ag_size k, const AG_REAL *a, ag_size am,
                                                   ag_size ak, const AG_REAL *b, AG_REAL *c, ag_size ldc, int add)
{
    ag_size whole = ldc == cols && m * cols >= LANES ? (m * cols - LANES) / cols + 1 : 0;
    for (; m >= 8; m -= 8) {
        NAME(narrow_tile)(8, cols, k, a, am, ak, b, c, ldc, whole, add);
        a += 8 * am;
        c += 8 * ldc;
        whole -= 8;
    }
    switch (m) {
        AG_NARROW_CASE(1)
        AG_NARROW_CASE(2)
        AG_NARROW_CASE(3)
        AG_NARROW_CASE(4)
        AG_NARROW_CASE(5)
        AG_NARROW_CASE(6)
        AG_NARROW_CASE(7)
    }
}

#if AG_BYTES == AG_WIDEST
AG_INLINE AG_REAL NAME(sum)(AG_VEC v)
{
#if AG_BYTES == 64
    if (sizeof(AG_REAL) == 4)
        return (AG_REAL)_mm512_reduce_add_ps((__m512)v);
    return (AG_REAL)_mm512_reduce_add_pd((__m512d)v);
#else
    AG_REAL s = 0;
#pragma GCC unroll 8
    for (int j = 0; j < LANES; j++)
        s += v[j];
    return s;
#endif
}

AG_INLINE void NAME(dots_tile)(const int mr, const int nv, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                               AG_REAL *y, ag_size incy, int add)
{
    AG_VEC acc[4][4];
    AG_REAL s[4];
    ag_size p = 0;
#pragma GCC unroll 4
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
        for (int v = 0; v < nv; v++)
            acc[r][v] = (AG_VEC){0};
    for (; p + nv * LANES <= k; p += nv * LANES)
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
            for (int v = 0; v < nv; v++)
                acc[r][v] += *(const AG_UVEC *)(a + r * lda + p + v * LANES) * *(const AG_UVEC *)(x + p + v * LANES);
    if (nv > 1)
        for (; p + LANES <= k; p += LANES)
#pragma GCC unroll 4
            for (int r = 0; r < mr; r++)
                acc[r][0] += *(const AG_UVEC *)(a + r * lda + p) * *(const AG_UVEC *)(x + p);
#pragma GCC unroll 4
    for (int r = 0; r < mr; r++) {
#pragma GCC unroll 4
        for (int v = 1; v < nv; v++)
            acc[r][0] += acc[r][v];
        s[r] = NAME(sum)(acc[r][0]);
    }
    for (; p < k; p++)
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++)
            s[r] += a[r * lda + p] * x[p];
#pragma GCC unroll 4
    for (int r = 0; r < mr; r++)
        y[r * incy] = add ? y[r * incy] + s[r] : s[r];
}

static __attribute__((noinline)) void NAME(dots)(ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                                                 AG_REAL *y, ag_size incy, int add)
{
    for (; m >= 4; m -= 4) {
        NAME(dots_tile)(4, 1, k, a, lda, x, y, incy, add);
        a += 4 * lda;
        y += 4 * incy;
    }
    for (; m > 0; m--) {
        NAME(dots_tile)(1, 4, k, a, lda, x, y, incy, add);
        a += lda;
        y += incy;
    }
}
#endif

#undef LANES
#undef NAME
#undef AG_VEC
#undef AG_UVEC
#undef AG_TILE_CASE
#undef AG_NARROW_CASE
#undef AG_BYTES
