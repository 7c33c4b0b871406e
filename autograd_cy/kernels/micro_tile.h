/* One element type (AG_REAL) and one vector width (AG_BYTES): the tile of a product and the loops over rows.
 *
 * Relies on the macros of micro.h, which includes it once per type and width.  Nothing else relies on it.
 * (Longer than 500 lines because all its parts are made once per type and width.)
 *
 * A tile multiplies `mr` rows of A with `nv` vectors of columns of B, and keeps the mr * nv results in registers.
 * Vector v covers the columns v * LANES ..., except the last, which starts at `last` and may overlap the one before:
 * both compute the same numbers, so that no mask is needed for a number of columns that is no multiple of LANES.
 * Element (r, p) of A lies r * am + p * ak BYTES behind a, which makes it A or its transpose; B is row-major. (GCC would
 * split off a loop for the stride 1, which is up to 20% slower than the general one: hence bytes, and ag_opaque.)
 */
#define LANES ((ag_size)(AG_BYTES / sizeof(AG_REAL)))
#define NAME(part) AG_NAME3(ag_##part##_, AG_TYPE, AG_BYTES)
#define AT(pointer, bytes) (*(const AG_REAL *)((const char *)(pointer) + (bytes)))
#define STEP(pointer, bytes) ((const AG_REAL *)((const char *)(pointer) + (bytes)))
#define AG_VEC NAME(vec)
#define AG_UVEC NAME(uvec)

typedef AG_REAL AG_VEC __attribute__((vector_size(AG_BYTES)));
typedef AG_REAL AG_UVEC __attribute__((vector_size(AG_BYTES), aligned(sizeof(AG_REAL)), may_alias));

AG_INLINE void NAME(tile)(const int mr, const int nv, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                          const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
{
    /* With few accumulators each addition would wait for the one before (4 cycles): sum several terms apart. */
    const int sets = mr * nv <= 2 ? 4 : mr * nv <= 4 ? 2 : 1;
    AG_VEC acc[4][8][3];
    ag_size p = 0;
    /* Without `unroll` the accumulators live in memory: up to 3 times slower. */
#pragma GCC unroll 4
    for (int s = 0; s < sets; s++)
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                acc[s][r][v] = (AG_VEC){0};
    for (; p + sets <= k; p += sets) {
#pragma GCC unroll 4
        for (int s = 0; s < sets; s++) {
            AG_VEC row[3];
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                row[v] = *(const AG_UVEC *)(b + (v == nv - 1 ? last : v * LANES));
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++) {
                AG_REAL x = AT(a, r * am);
#pragma GCC unroll 3
                for (int v = 0; v < nv; v++)
                    acc[s][r][v] += x * row[v];
            }
            a = STEP(a, ak);
            b += ldb;
        }
    }
    if (sets > 1) {
        for (; p < k; p++) {
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
                for (int v = 0; v < nv; v++)
                    acc[0][r][v] += AT(a, r * am) * *(const AG_UVEC *)(b + (v == nv - 1 ? last : v * LANES));
            a = STEP(a, ak);
            b += ldb;
        }
#pragma GCC unroll 4
        for (int s = 1; s < sets; s++)
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
                for (int v = 0; v < nv; v++)
                    acc[0][r][v] += acc[s][r][v];
    }
    if (add) {
        /* All loads come before all stores: columns of two overlapping vectors are added once. */
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                acc[0][r][v] += *(const AG_UVEC *)(c + r * ldc + (v == nv - 1 ? last : v * LANES));
    }
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            *(AG_UVEC *)(c + r * ldc + (v == nv - 1 ? last : v * LANES)) = acc[0][r][v];
}

/* k terms, at most 4: B stays in registers, and the rows of A run past it. */
AG_INLINE void NAME(short)(const int k, const int nv, ag_size m, const AG_REAL *a, ag_size am, ag_size ak,
                           const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc)
{
    AG_VEC row[4][3];
#pragma GCC unroll 4
    for (int p = 0; p < k; p++)
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            row[p][v] = *(const AG_UVEC *)(b + p * ldb + (v == nv - 1 ? last : v * LANES));
    for (; m > 0; m--) {
        AG_VEC acc[3];
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            acc[v] = a[0] * row[0][v];
#pragma GCC unroll 4
        for (int p = 1; p < k; p++)
#pragma GCC unroll 3
            for (int v = 0; v < nv; v++)
                acc[v] += AT(a, p * ak) * row[p][v];
#pragma GCC unroll 3
        for (int v = 0; v < nv; v++)
            *(AG_UVEC *)(c + (v == nv - 1 ? last : v * LANES)) = acc[v];
        a = STEP(a, am);
        c += ldc;
    }
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
        a = STEP(a, mr * am);
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

/* The functions that are called: short products and each number of vectors apart, because the addresses that a common
 * function prepares at its start cost several ns. */
#define AG_PANEL(name) \
    static __attribute__((noinline)) void name(ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak, \
                                               const AG_REAL *b, ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
#define AG_HIDE_STRIDES \
    am = ag_opaque(am * (ag_size)sizeof(AG_REAL)); \
    ak = ag_opaque(ak * (ag_size)sizeof(AG_REAL)); \
    ldb = ag_opaque(ldb); \
    ldc = ag_opaque(ldc);
#define AG_SHORT_CASE(terms, nv) \
    case terms: \
        NAME(short)(terms, nv, m, a, am, ak, b, ldb, last, c, ldc); \
        break;
#define AG_PANELS(nv, mr) \
    AG_PANEL(NAME(panel##nv)) \
    { \
        AG_HIDE_STRIDES \
        NAME(rows)(mr, nv, m, k, a, am, ak, b, ldb, last, c, ldc, add); \
    } \
    AG_PANEL(NAME(short##nv)) \
    { \
        AG_HIDE_STRIDES \
        (void)add; \
        switch (k) { \
            AG_SHORT_CASE(1, nv) \
            AG_SHORT_CASE(2, nv) \
            AG_SHORT_CASE(3, nv) \
            AG_SHORT_CASE(4, nv) \
        } \
    }
AG_PANELS(1, AG_ROWS_1)
#if AG_BYTES == AG_WIDEST           /* narrower vectors are chosen where one of them holds all columns */
AG_PANELS(2, AG_ROWS_2)
#if AG_MAX_VECTORS > 2
AG_PANELS(3, AG_ROWS_3)
#endif
#endif

AG_INLINE void NAME(panel)(int nv, ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak, const AG_REAL *b,
                           ag_size ldb, ag_size last, AG_REAL *c, ag_size ldc, int add)
{
    int few = k <= 4 && nv <= AG_SHORT_VECTORS && !add;
#if AG_BYTES == AG_WIDEST
    if (nv == 2) {
        (few ? NAME(short2) : NAME(panel2))(m, k, a, am, ak, b, ldb, last, c, ldc, add);
        return;
    }
#if AG_MAX_VECTORS > 2
    if (nv == 3) {
        (few ? NAME(short3) : NAME(panel3))(m, k, a, am, ak, b, ldb, last, c, ldc, add);
        return;
    }
#endif
#endif
    (few ? NAME(short1) : NAME(panel1))(m, k, a, am, ak, b, ldb, last, c, ldc, add);
}

/* The first `cols` elements, and 0 in the other lanes; where there is no masked load, b is padded to whole vectors. */
AG_INLINE AG_VEC NAME(load_part)(const AG_REAL *b, ag_size cols)
{
#if AG_WIDEST == 64 && AG_BYTES == 64
    if (sizeof(AG_REAL) == 4)
        return (AG_VEC)_mm512_maskz_loadu_ps((__mmask16)((1u << cols) - 1), b);
    return (AG_VEC)_mm512_maskz_loadu_pd((__mmask8)((1u << cols) - 1), b);
#elif AG_WIDEST == 64 && AG_BYTES == 32
    if (sizeof(AG_REAL) == 4)
        return (AG_VEC)_mm256_maskz_loadu_ps((__mmask8)((1u << cols) - 1), b);
    return (AG_VEC)_mm256_maskz_loadu_pd((__mmask8)((1u << cols) - 1), b);
#elif AG_WIDEST == 64
    if (sizeof(AG_REAL) == 4)
        return (AG_VEC)_mm_maskz_loadu_ps((__mmask8)((1u << cols) - 1), b);
    return (AG_VEC)_mm_maskz_loadu_pd((__mmask8)((1u << cols) - 1), b);
#elif AG_WIDEST == 32 && AG_BYTES == 32
    const char *mask = ag_lane_masks + 32 - cols * sizeof(AG_REAL);
    if (sizeof(AG_REAL) == 4)
        return (AG_VEC)_mm256_maskload_ps((const float *)b, _mm256_loadu_si256((const __m256i *)mask));
    return (AG_VEC)_mm256_maskload_pd((const double *)b, _mm256_loadu_si256((const __m256i *)mask));
#elif AG_WIDEST == 32
    const char *mask = ag_lane_masks + 32 - cols * sizeof(AG_REAL);
    if (sizeof(AG_REAL) == 4)
        return (AG_VEC)_mm_maskload_ps((const float *)b, _mm_loadu_si128((const __m128i *)mask));
    return (AG_VEC)_mm_maskload_pd((const double *)b, _mm_loadu_si128((const __m128i *)mask));
#else
    (void)cols;
    return *(const AG_UVEC *)b;
#endif
}

/* The same without padding. */
AG_INLINE AG_VEC NAME(load_edge)(const AG_REAL *c, ag_size cols)
{
#if AG_MASKED_LOADS
    return NAME(load_part)(c, cols);
#else
    AG_VEC v = {c[0]};
    if (LANES == 4 && cols > 1)
        v[1 & (LANES - 1)] = c[1];
    if (LANES == 4 && cols > 2)
        v[2 & (LANES - 1)] = c[2];
    return v;
#endif
}

/* The first `cols` lanes of v; at least a quarter of them, as narrower vectors take fewer. A masked store of AVX2
 * takes tens of cycles on some processors. */
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
    ag_size j = 0;
    if (AG_BYTES == 32) {
        memcpy(c, &v, 16);
        j = 16 / sizeof(AG_REAL);
    }
    if (sizeof(AG_REAL) == 4 && cols - j >= 2) {
        memcpy(c + j, (const AG_REAL *)&v + j, 8);
        j += 2;
    }
    if (j < cols)
        c[j] = v[j & (LANES - 1)];
#endif
}

AG_INLINE void NAME(narrow_tile)(const int mr, ag_size cols, ag_size k, const AG_REAL *a, ag_size am, ag_size ak,
                                 const AG_REAL *b, ag_size ldb, AG_REAL *c, ag_size ldc, ag_size whole, int add)
{
    const int sets = mr <= 2 ? 4 : mr <= 4 ? 2 : 1;
    AG_VEC acc[4][8];
    ag_size p = 0;
#pragma GCC unroll 4
    for (int s = 0; s < sets; s++)
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            acc[s][r] = (AG_VEC){0};
    for (; p + sets <= k; p += sets) {
#pragma GCC unroll 4
        for (int s = 0; s < sets; s++) {
            AG_VEC row = NAME(load_part)(b, cols);
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
                acc[s][r] += AT(a, r * am) * row;
            a = STEP(a, ak);
            b += ldb;
        }
    }
    if (sets > 1) {
        for (; p < k; p++) {
            AG_VEC row = NAME(load_part)(b, cols);
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
                acc[0][r] += AT(a, r * am) * row;
            a = STEP(a, ak);
            b += ldb;
        }
#pragma GCC unroll 4
        for (int s = 1; s < sets; s++)
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
                acc[0][r] += acc[s][r];
    }
    if (add) {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            NAME(store_part)(c + r * ldc, acc[0][r] + NAME(load_edge)(c + r * ldc, cols), cols);
    } else if (whole >= mr) {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            *(AG_UVEC *)(c + r * ldc) = acc[0][r];
    } else {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++)
            NAME(store_part)(c + r * ldc, acc[0][r], cols);
    }
}

AG_INLINE void NAME(narrow_short)(const int k, ag_size cols, ag_size m, const AG_REAL *a, ag_size am, ag_size ak,
                                  const AG_REAL *b, ag_size ldb, AG_REAL *c, ag_size ldc, ag_size whole)
{
    AG_VEC row[4];
#pragma GCC unroll 4
    for (int p = 0; p < k; p++)
        row[p] = NAME(load_part)(b + p * ldb, cols);
    for (ag_size i = 0; i < m; i++) {
        AG_VEC acc = a[0] * row[0];
#pragma GCC unroll 4
        for (int p = 1; p < k; p++)
            acc += AT(a, p * ak) * row[p];
        if (i < whole)
            *(AG_UVEC *)c = acc;
        else
            NAME(store_part)(c, acc, cols);
        a = STEP(a, am);
        c += ldc;
    }
}

#define AG_NARROW_CASE(rows) \
    case rows: \
        NAME(narrow_tile)(rows, cols, k, a, am, ak, b, ldb, c, ldc, whole, add); \
        break;

/* Fewer columns than lanes. Where C is contiguous, whole vectors are stored, in the order of the rows: what a row writes
 * behind its end belongs to later rows, which overwrite it. `whole` counts the rows from here whose vector ends inside C:
 * a vector is less than 4 rows, as narrower vectors take fewer columns. */
#define AG_NARROW(name) \
    static __attribute__((noinline)) void name(ag_size cols, ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak, \
                                               const AG_REAL *b, ag_size ldb, AG_REAL *c, ag_size ldc, int add)
AG_NARROW(NAME(narrow_long))
{
    ag_size whole = ldc == cols && !add && m > 3 ? m - 3 : 0;
    AG_HIDE_STRIDES
    for (; m >= 8; m -= 8) {
        NAME(narrow_tile)(8, cols, k, a, am, ak, b, ldb, c, ldc, whole, add);
        a = STEP(a, 8 * am);
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

#define AG_NARROW_SHORT_CASE(terms) \
    case terms: \
        NAME(narrow_short)(terms, cols, m, a, am, ak, b, ldb, c, ldc, whole); \
        break;

AG_NARROW(NAME(narrow_few))
{
    ag_size whole = ldc == cols && m > 3 ? m - 3 : 0;
    AG_HIDE_STRIDES
    (void)add;
    switch (k) {
        AG_NARROW_SHORT_CASE(1)
        AG_NARROW_SHORT_CASE(2)
        AG_NARROW_SHORT_CASE(3)
        AG_NARROW_SHORT_CASE(4)
    }
}

AG_INLINE void NAME(narrow)(ag_size cols, ag_size m, ag_size k, const AG_REAL *a, ag_size am, ag_size ak, const AG_REAL *b,
                            ag_size ldb, AG_REAL *c, ag_size ldc, int add)
{
    (k <= 4 && !add ? NAME(narrow_few) : NAME(narrow_long))(cols, m, k, a, am, ak, b, ldb, c, ldc, add);
}

/* The sums of groups of lanes, in a vector of 16 bytes. */
AG_INLINE AG_NAME3(ag_vec_, AG_TYPE, 16) NAME(fold)(AG_VEC v)
{
#if AG_BYTES == 64
    typedef AG_NAME3(ag_vec_, AG_TYPE, 32) half;
    return AG_NAME3(ag_fold_, AG_TYPE, 32)((half)_mm512_castps512_ps256((__m512)v) + (half)_mm512_extractf32x8_ps((__m512)v, 1));
#elif AG_BYTES == 32
    typedef AG_NAME3(ag_vec_, AG_TYPE, 16) half;
    return (half)_mm256_castps256_ps128((__m256)v) + (half)_mm256_extractf128_ps((__m256)v, 1);
#else
    return v;
#endif
}

#if AG_BYTES >= 32 || AG_BYTES == AG_WIDEST
/* Dot products of mr rows of A, 4 or 1, with nx rows of x; with one row of A, nv vectors of it are summed apart. */
AG_INLINE void NAME(dots_tile)(const int mr, const int nx, const int nv, ag_size k, const AG_REAL *a, ag_size lda,
                               const AG_REAL *x, ag_size ldx, AG_REAL *y, ag_size y_row, ag_size y_x, int add)
{
    AG_VEC acc[4][3][4];
    ag_size p = 0;
#pragma GCC unroll 4
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
        for (int q = 0; q < nx; q++)
#pragma GCC unroll 4
            for (int v = 0; v < nv; v++)
                acc[r][q][v] = (AG_VEC){0};
    for (; p + nv * LANES <= k; p += nv * LANES)
#pragma GCC unroll 4
        for (int v = 0; v < nv; v++) {
            AG_VEC part[3];
#pragma GCC unroll 3
            for (int q = 0; q < nx; q++)
                part[q] = *(const AG_UVEC *)(x + q * ldx + p + v * LANES);
#pragma GCC unroll 4
            for (int r = 0; r < mr; r++) {
                AG_VEC row = *(const AG_UVEC *)(a + r * lda + p + v * LANES);
#pragma GCC unroll 3
                for (int q = 0; q < nx; q++)
                    acc[r][q][v] += row * part[q];
            }
        }
    if (nv > 1)
        for (; p + LANES <= k; p += LANES)
#pragma GCC unroll 4
            for (int r = 0; r < mr; r++)
#pragma GCC unroll 3
                for (int q = 0; q < nx; q++)
                    acc[r][q][0] += *(const AG_UVEC *)(a + r * lda + p) * *(const AG_UVEC *)(x + q * ldx + p);
    if (p < k)
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++) {
            AG_VEC row = NAME(load_edge)(a + r * lda + p, k - p);
#pragma GCC unroll 3
            for (int q = 0; q < nx; q++)
                acc[r][q][0] += row * NAME(load_edge)(x + q * ldx + p, k - p);
        }
#pragma GCC unroll 3
    for (int q = 0; q < nx; q++) {
        AG_NAME3(ag_vec_, AG_TYPE, 16) folded[4];
        AG_REAL sums[4];
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++) {
#pragma GCC unroll 4
            for (int v = 1; v < nv; v++)
                acc[r][q][0] += acc[r][q][v];
            folded[r] = NAME(fold)(acc[r][q][0]);
        }
#if defined(__SSE2__)
        if (mr == 4 && sizeof(AG_REAL) == 4) {
            __m128 s0 = (__m128)folded[0], s1 = (__m128)folded[1], s2 = (__m128)folded[2], s3 = (__m128)folded[3];
            _MM_TRANSPOSE4_PS(s0, s1, s2, s3);
            _mm_storeu_ps((float *)sums, (s0 + s1) + (s2 + s3));
        } else if (mr == 4) {
            __m128d s0 = (__m128d)folded[0], s1 = (__m128d)folded[1], s2 = (__m128d)folded[2], s3 = (__m128d)folded[3];
            _mm_storeu_pd((double *)sums, _mm_unpacklo_pd(s0, s1) + _mm_unpackhi_pd(s0, s1));
            _mm_storeu_pd((double *)sums + 2, _mm_unpacklo_pd(s2, s3) + _mm_unpackhi_pd(s2, s3));
        } else
#endif
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++) {
            sums[r] = folded[r][0] + folded[r][1];
            if (sizeof(AG_REAL) == 4)
                sums[r] += folded[r][2 & (16 / sizeof(AG_REAL) - 1)] + folded[r][3 & (16 / sizeof(AG_REAL) - 1)];
        }
#pragma GCC unroll 4
        for (int r = 0; r < mr; r++)
            y[r * y_row + q * y_x] = add ? y[r * y_row + q * y_x] + sums[r] : sums[r];
    }
}

AG_INLINE void NAME(dots_rows)(const int nx, ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                               ag_size ldx, AG_REAL *y, ag_size y_row, ag_size y_x, int add)
{
    for (; m >= 4; m -= 4) {
        NAME(dots_tile)(4, nx, 1, k, a, lda, x, ldx, y, y_row, y_x, add);
        a += 4 * lda;
        y += 4 * y_row;
    }
    for (; m > 0; m--) {
#pragma GCC unroll 3
        for (int q = 0; q < nx; q++)
            NAME(dots_tile)(1, 1, 4, k, a, lda, x + q * ldx, ldx, y + q * y_x, y_row, y_x, add);
        a += lda;
        y += y_row;
    }
}

/* One function per number of rows of x: the addresses that a common one prepares at its start cost 8 ns. */
static __attribute__((noinline)) void NAME(dots1)(ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                                                  AG_REAL *y, ag_size y_row, int add)
{
    NAME(dots_rows)(1, m, k, a, lda, x, 0, y, y_row, 0, add);
}

static __attribute__((noinline)) void NAME(dots2)(ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                                                  ag_size ldx, AG_REAL *y, ag_size y_row, ag_size y_x, int add)
{
    NAME(dots_rows)(2, m, k, a, lda, x, ldx, y, y_row, y_x, add);
}

static __attribute__((noinline)) void NAME(dots3)(ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x,
                                                  ag_size ldx, AG_REAL *y, ag_size y_row, ag_size y_x, int add)
{
    NAME(dots_rows)(3, m, k, a, lda, x, ldx, y, y_row, y_x, add);
}

AG_INLINE void NAME(dots)(int nx, ag_size m, ag_size k, const AG_REAL *a, ag_size lda, const AG_REAL *x, ag_size ldx,
                          AG_REAL *y, ag_size y_row, ag_size y_x, int add)
{
    if (nx == 1)
        NAME(dots1)(m, k, a, lda, x, y, y_row, add);
    else if (nx == 2)
        NAME(dots2)(m, k, a, lda, x, ldx, y, y_row, y_x, add);
    else
        NAME(dots3)(m, k, a, lda, x, ldx, y, y_row, y_x, add);
}
#endif

#undef LANES
#undef NAME
#undef AT
#undef STEP
#undef AG_VEC
#undef AG_UVEC
#undef AG_TILE_CASE
#undef AG_NARROW_CASE
#undef AG_NARROW_SHORT_CASE
#undef AG_NARROW
#undef AG_PANEL
#undef AG_PANELS
#undef AG_SHORT_CASE
#undef AG_HIDE_STRIDES
#undef AG_BYTES
