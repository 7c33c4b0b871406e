/* Transcendental functions of float, branch-free, in float arithmetic wherever that is accurate enough.
 * Included by vecmath.h, whose helpers it uses; tests/ulp_table.py holds the accuracy that is promised for each function.
 * The generated elementwise loops and the row kernels rely on it.
 *
 * Polynomials are minimax (Remez exchange at 160 bits, coefficients rounded to float); "2^-27" beside one is its largest
 * error relative to the function, after rounding of the coefficients. Constants with _HI have trailing zero bits, so that their
 * product with a small integer is exact; _LO is the rest.
 */

#define AG_INF_F32 ((float)INFINITY)
#define AG_NAN_F32 ((float)NAN)
#define AG_LN2_HI_F32 0x1.62e4p-1f
#define AG_LN2_LO_F32 0x1.7f7d1cp-20f
#define AG_LOG2E_F32 0x1.715476p+0f
/* x + 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the sum */
#define AG_SHIFT_F32 0x1.8p+23f

AG_INLINE float ag_clamp_f32(float x, float lo, float hi) {       /* keeps NaN */
    x = x > hi ? hi : x;
    return x < lo ? lo : x;
}
AG_INLINE float ag_pow2_f32(int32_t n) { return ag_from_bits_f32((int32_t)(((uint32_t)n + 127u) << 23)); }   /* -126 <= n <= 127 */

/* ---- exponentials: x = k ln 2 + r, |r| <= ln(2) / 2 */

/* (e^r - 1 - r) / r^2, 2^-28.7 relative to e^r - 1 */
AG_INLINE float ag_expm1_poly_f32(float r) {
    float q = 0x1.a032b2p-13f;
    q = q * r + 0x1.6d7298p-10f;
    q = q * r + 0x1.11118ap-7f;
    q = q * r + 0x1.5554b0p-5f;
    q = q * r + 0x1.555554p-3f;
    q = q * r + 0.5f;
    return q;
}
/* p * 2^n for 0.5 < p < 2, n in the low bits of a shifted float; down: the result is below 2^-125 or so, and may be subnormal:
 * the exponent is then set 64 too high, and one multiplication rounds it. (Two factors 2^(n/2) cost four instructions more.) */
AG_INLINE float ag_scale_f32(float p, float shifted, int down) {
    uint32_t n = (uint32_t)ag_bits_f32(shifted) << 23;
    return ag_from_bits_f32((int32_t)((uint32_t)ag_bits_f32(p) + n + (down ? 64u << 23 : 0u))) * (down ? 0x1p-64f : 1.0f);
}
/* e^(x + xlow) = p 2^k, p is returned and k stands in the low bits of *shifted */
AG_INLINE float ag_exp_core2_f32(float x, float xlow, float* shifted) {
    float t = x * AG_LOG2E_F32 + AG_SHIFT_F32, k = t - AG_SHIFT_F32;
    float hi = x - k * AG_LN2_HI_F32, lo = k * AG_LN2_LO_F32 - xlow, r = hi - lo;     /* hi is exact, r only enters the tail */
    /* 2^-26.8 relative to e^r */
    float q = 0x1.6bebe8p-10f;
    q = q * r + 0x1.1227f6p-7f;
    q = q * r + 0x1.555674p-5f;
    q = q * r + 0x1.5554b0p-3f;
    q = q * r + 0x1.fffffep-2f;
    *shifted = t;
    return 1.0f + (hi + (r * r * q - lo));
}
AG_INLINE float ag_exp_core_f32(float x, float* shifted) { return ag_exp_core2_f32(x, 0, shifted); }
AG_INLINE float ag_exp_f32(float x) {
    float t, p = ag_exp_core_f32(x, &t), y = ag_scale_f32(p, t, x < -86.0f);
    y = ag_keep_f32(x >= -104.0f, y);
    return x <= 0x1.62e42ep+6f ? y : x + AG_INF_F32;         /* infinity or NaN */
}
AG_INLINE float ag_exp_neg_f32(float a) {       /* e^-a for a >= 0; any value for NaN */
    float t, p = ag_exp_core_f32(-a, &t), y = ag_scale_f32(p, t, a > 86.0f);
    return ag_keep_f32(a <= 104.0f, y);
}

/* e^x - 1 for -18 <= x <= 89 in pieces: x = k ln 2 + hi - lo, e^(hi - lo) - 1 = hi + tail; the sign of zero is the caller's */
AG_INLINE float ag_expm1_core_f32(float x, float* k, float* hi, float* tail) {
    float t = x * AG_LOG2E_F32 + AG_SHIFT_F32;
    *k = t - AG_SHIFT_F32;
    *hi = x - *k * AG_LN2_HI_F32;
    float lo = *k * AG_LN2_LO_F32, r = *hi - lo;
    *tail = r * r * ag_expm1_poly_f32(r) - lo;
    float half = ag_pow2_f32(ag_bits_f32(t) - 0x4b400001);          /* 2^(k - 1): half, for k = 128 */
    return 2.0f * (half * (*hi + *tail) + (half - 0.5f));
}
AG_INLINE float ag_expm1_f32(float x) {
    float k, hi, tail, y = ag_expm1_core_f32(ag_clamp_f32(x, -18.0f, 89.0f), &k, &hi, &tail);
    return copysignf(k == 0.0f ? hi + tail : y, x);       /* halving would lose the last bit of a subnormal */
}
AG_INLINE float ag_exp2_f32(float x) {
    float t = x + AG_SHIFT_F32, r = x - (t - AG_SHIFT_F32);
    /* (2^r - 1) / r - 1, 2^-28.7 relative to 2^r */
    float r2 = r * r, q = 0x1.fde5eap-17f, qo = 0x1.445c86p-13f;
    q = q * r2 + 0x1.5d8a86p-10f;
    qo = qo * r2 + 0x1.3b29f4p-7f;
    q = q * r2 + 0x1.c6b08ap-5f;
    qo = qo * r2 + 0x1.ebfbe0p-3f;
    q = q * r2 + -0x1.3a37a0p-2f;
    q = qo * r + q;
    float y = ag_scale_f32(1.0f + (r + r * q), t, x < -124.0f);
    y = ag_keep_f32(x >= -150.0f, y);
    return x < 128.0f ? y : x + AG_INF_F32;
}
/* e^x / (1 + e^x), within the limits where it is 0 and 1. The factor 2^n is first 2^64 too large, because of subnormal results, and
 * multiplied, so that a NaN stays one. */
AG_INLINE float ag_sigmoid_f32(float x) {
    float t, p = ag_exp_core_f32(ag_clamp_f32(x, -104.0f, 40.0f), &t);
    float e = p * ag_from_bits_f32((int32_t)(((uint32_t)ag_bits_f32(t) << 23) + (191u << 23))) * 0x1p-64f;
    return e / (1.0f + e);
}
/* An odd polynomial where tanh is below 1/2, 1 - 2 / (e^2a + 1) above, where the errors of the quotient are halved. */
AG_INLINE float ag_tanh_f32(float x) {
    float a = fabsf(x), z = a * a, t, e = ag_exp_core_f32(a > 10.0f ? 20.0f : a + a, &t);
    e = ag_scale_f32(e, t, 0);
    /* (tanh a - a) / a^3 in a^2, a <= atanh(1/2): 2^-27.25 relative to tanh */
    float p = -0x1.9b881cp-8f;
    p = p * z + 0x1.594b9cp-6f;
    p = p * z + -0x1.b92a20p-5f;
    p = p * z + 0x1.110d30p-3f;
    p = p * z + -0x1.55554ap-2f;
    float y = a > 0x1.193ea8p-1f ? 1.0f - 2.0f / (e + 1.0f) : a + a * z * p;
    return copysignf(x != x ? x : y, x);
}

/* ---- logarithms: x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) */

AG_INLINE float ag_split_f32(float x, float* e) {   /* x > 0, normal; returns f */
    int32_t i = (int32_t)((uint32_t)ag_bits_f32(x) - 0x3f3504f3u);
    *e = (float)(i >> 23);
    return ag_from_bits_f32((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
}
/* f - log(1 + f) = f^2 / 2 - f^3 P(f), 2^-27.2 relative to log(1 + f) */
AG_INLINE float ag_log_tail_f32(float f) {
    float p = -0x1.38b380p-4f, z = f * f;
    p = p * f + 0x1.056f50p-3f;
    p = p * f + -0x1.0d8edap-3f;
    p = p * f + 0x1.22d820p-3f;
    p = p * f + -0x1.547126p-3f;
    p = p * f + 0x1.99a014p-3f;
    p = p * f + -0x1.00022ap-2f;
    p = p * f + 0x1.555554p-2f;
    return 0.5f * z - z * f * p;
}
AG_INLINE float ag_log_special_f32(float x, float y) {
    y = x < AG_INF_F32 ? y : x;
    return x > 0.0f ? y : x == 0.0f ? -AG_INF_F32 : AG_NAN_F32;
}
AG_INLINE float ag_log_split_f32(float x, float* e) {     /* with subnormal numbers brought into range */
    int tiny = x < 0x1p-126f;
    float f = ag_split_f32(tiny ? x * 0x1p25f : x, e);
    *e = tiny ? *e - 25.0f : *e;
    return f;
}
AG_INLINE float ag_log_f32(float x) {
    float e, f = ag_log_split_f32(x, &e);
    return ag_log_special_f32(x, e * AG_LN2_HI_F32 + (f - (ag_log_tail_f32(f) - e * AG_LN2_LO_F32)));
}
/* f log2(e) = f + f (log2(e) - 1): the exact f halves the rounding error; likewise f / 2 below */
AG_INLINE float ag_log2_f32(float x) {
    float e, f = ag_log_split_f32(x, &e);
    return ag_log_special_f32(x, e + (f + (f * 0x1.c551dap-2f - ag_log_tail_f32(f) * AG_LOG2E_F32)));
}
AG_INLINE float ag_log10_f32(float x) {
    float e, f = ag_log_split_f32(x, &e);
    float lo = e * 0x1.3509f8p-18f - (f * 0x1.0d2136p-4f + ag_log_tail_f32(f) * 0x1.bcb7b2p-2f);
    return ag_log_special_f32(x, e * 0x1.344p-2f + (0.5f * f + lo));
}
AG_INLINE float ag_log1p_f32(float x) {
    float u = 1.0f + x, e, g = ag_split_f32(u, &e), s = ag_pow2_f32(-(int32_t)e);
    float f = x * s + (s - 1.0f);                 /* exact where it matters: at e = 0 it is x itself */
    f = x > 0x1p26f ? g : f;
    float y = e * AG_LN2_HI_F32 + (f - (ag_log_tail_f32(f) - e * AG_LN2_LO_F32));
    return copysignf(ag_log_special_f32(u, y), u != u ? u : x);
}
/* log(1 + t) for 0 <= t <= 1 */
AG_INLINE float ag_log1p_unit_f32(float t) {
    float e = t > 0x1.a8279ap-2f ? 0.5f : 0.0f, f = t * (1.0f - e) - e;    /* one condition: two would double the code */
    return e * (2 * AG_LN2_HI_F32) + (f - (ag_log_tail_f32(f) - e * (2 * AG_LN2_LO_F32)));
}
AG_INLINE float ag_softplus_f32(float x) {
    return ag_maximum_f32(x, 0.0f) + ag_log1p_unit_f32(ag_exp_neg_f32(fabsf(x)));
}
AG_INLINE float ag_logsigmoid_f32(float x) { return -ag_softplus_f32(-x); }

/* ---- sine, cosine, tangent: x = k pi / 2 + r, |r| <= pi / 4.
 * ag_<f>_fast_f32 is branch-free, and right for |x| <= AG_TRIG_LIMIT_F32 (ag_within_f32 tests it for a whole array);
 * ag_<f>_f32 gives the same bits there and calls the C library beyond, at the price that gcc doesn't vectorise the loop. */

#define AG_TRIG_LIMIT_F32 0x1p+20f

/* In double, with pi / 2 in 33 + 53 bits and k in 20: r is right to float precision next to every multiple of pi / 2. */
AG_INLINE double ag_quadrant_f32(float x, double* k) {
    *k = ((double)x * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
    return ((double)x - *k * 0x1.921fb544p+0) - *k * 0x1.0b4611a626331p-34;
}
AG_INLINE float ag_sincos_f32(float x, uint32_t shift) {
    double k;
    float r = (float)ag_quadrant_f32(x, &k), z = r * r;
    uint32_t n = (uint32_t)ag_bits_f32((float)k + AG_SHIFT_F32) + shift;
    /* (sin r - r) / r^3: 2^-28.03 relative to sin */
    float p = 0x1.6cd1f4p-19f;
    p = p * z + -0x1.a00f8p-13f;
    p = p * z + 0x1.111108p-7f;
    p = p * z + -0x1.555556p-3f;
    /* (cos r - 1 + r^2 / 2) / r^4: 2^-32.43 relative to cos */
    float q = 0x1.99eba2p-16f;
    q = q * z + -0x1.6c0c34p-10f;
    q = q * z + 0x1.55554ap-5f;
    float y = n & 1 ? 1.0f - (0.5f * z - z * z * q) : r + r * z * p;
    return ag_from_bits_f32(ag_bits_f32(y) ^ (int32_t)((n & 2) << 30));
}
AG_INLINE float ag_sin_fast_f32(float x) {
    float y = ag_sincos_f32(x, 0);
    return x == 0.0f ? x : y;
}
AG_INLINE float ag_cos_fast_f32(float x) { return ag_sincos_f32(x, 1); }
AG_INLINE float ag_tan_fast_f32(float x) {
    double k, r = ag_quadrant_f32(x, &k), z = r * r;
    /* (tan r - r) / r^3: 2^-28 relative to tan; in double, because of the reciprocal */
    double z2 = z * z, p = 0x1.1ece44p-8, po = 0x1.7734aap-14;
    p = p * z2 + 0x1.631202p-7;
    po = po * z2 + 0x1.5cafd4p-6;
    p = p * z2 + 0x1.badbep-5;
    po = po * z2 + 0x1.110d8ep-3;
    p = p * z2 + 0x1.55556p-2;
    p = po * z + p;
    float t = (float)(r + r * z * p), u = -1.0f / t;
    return (ag_bits_f32((float)k + AG_SHIFT_F32) & 1) ? u : t;
}
AG_INLINE float ag_sin_f32(float x) { return AG_LIKELY(fabsf(x) <= AG_TRIG_LIMIT_F32) ? ag_sin_fast_f32(x) : sinf(x); }
AG_INLINE float ag_cos_f32(float x) { return AG_LIKELY(fabsf(x) <= AG_TRIG_LIMIT_F32) ? ag_cos_fast_f32(x) : cosf(x); }
AG_INLINE float ag_tan_f32(float x) { return AG_LIKELY(fabsf(x) <= AG_TRIG_LIMIT_F32) ? ag_tan_fast_f32(x) : tanf(x); }
AG_INLINE int ag_within_f32(ptrdiff_t n, const float* x, float limit) {       /* every |x| <= limit, and no NaN */
    int32_t outside = 0;
    for (ptrdiff_t i = 0; i < n; i++) outside |= !(fabsf(x[i]) <= limit);
    return !outside;
}

/* ---- inverse functions */

/* asin a for a <= 1/2; beyond, pi / 2 - 2 asin(sqrt((1 - a) / 2)) with the same polynomial, and the inner asin is returned */
AG_INLINE float ag_asin_core_f32(float a, int* high) {
    *high = a > 0.5f;
    float z = *high ? (1.0f - a) * 0.5f : a * a, s = *high ? sqrtf(z) : a;
    /* (asin s - s) / s^3: 2^-29.78 relative to asin */
    float p = 0x1.3355acp-5f;
    p = p * z + 0x1.d91fdcp-7f;
    p = p * z + 0x1.04919ep-5f;
    p = p * z + 0x1.6caed2p-5f;
    p = p * z + 0x1.33387cp-4f;
    p = p * z + 0x1.55554cp-3f;
    return s + s * z * p;
}
AG_INLINE float ag_asin_f32(float x) {
    int high;
    float y = ag_asin_core_f32(fabsf(x), &high);
    return copysignf(high ? 0x1.921fb6p+0f - (y + y - -0x1.777a5cp-25f) : y, x);
}
AG_INLINE float ag_acos_f32(float x) {
    int high;
    float y = ag_asin_core_f32(fabsf(x), &high), s = copysignf(y, x);
    float far = x < 0 ? 0x1.921fb6p+1f - (y + y - -0x1.777a5cp-24f) : y + y;
    return high ? far : 0x1.921fb6p+0f - (s - -0x1.777a5cp-25f);
}
/* atan(num / den) + turn pi / 4, the quotient within tan(pi / 8) */
AG_INLINE float ag_atan_core_f32(float num, float den, float turn) {
    float q = num / den, z = q * q;
    /* (atan q - q) / q^3: 2^-28.25 relative to atan */
    float p = -0x1.f1e3f8p-5f;
    p = p * z + 0x1.b1ea6cp-4f;
    p = p * z + -0x1.23b506p-3f;
    p = p * z + 0x1.999194p-3f;
    p = p * z + -0x1.55554ap-2f;
    return turn * 0x1.921fb6p-1f + (q + (q * z * p + turn * -0x1.777a5cp-26f));
}
AG_INLINE float ag_atan_f32(float x) {
    float a = fabsf(x);
    int big = a > 0x1.3504f3p+1f, mid = a > 0x1.a8279ap-2f;
    float one = ag_keep_f32(mid, 1.0f), num = big ? -1.0f : a - one, den = big ? a : 1.0f + ag_keep_f32(mid, a);
    float y = ag_atan_core_f32(num, den, one + ag_keep_f32(big, 1.0f));
    return copysignf(y, x);
}
/* In double: no overflow, no rounding of the sums, one rounding at the end. Infinity is a number above every float. */
AG_INLINE float ag_atan2_f32(float y, float x) {
    double a = fabsf(y), b = fabsf(x);
    a = a > 1e300 ? 1e300 : a;
    b = b > 1e300 ? 1e300 : b;
    int big = a > 0x1.3504f3p+1 * b, mid = a > 0x1.a8279ap-2 * b;
    double num = big ? -b : a - ag_keep_f64(mid, b), den = big ? a : b + ag_keep_f64(mid, a);
    double q = num / (den == 0.0 ? 1.0 : den), z = q * q, turn = ag_keep_f64(mid, 1.0) + ag_keep_f64(big, 1.0);
    /* the polynomial of atan */
    double p = -0x1.f1e3f8p-5;
    p = p * z + 0x1.b1ea6cp-4;
    p = p * z + -0x1.23b506p-3;
    p = p * z + 0x1.999194p-3;
    p = p * z + -0x1.55554ap-2;
    double r = turn * 0x1.921fb54442d18p-1 + (q + q * z * p);
    return copysignf((float)(copysignf(1.0f, x) < 0.0f ? 0x1.921fb54442d18p+1 - r : r), y);
}

/* ---- hyperbolic functions: e = e^a / 2, which overflows where they do */

AG_INLINE float ag_half_exp_f32(float a) {
    float t, p = ag_exp_core_f32(a, &t);
    return ag_scale_f32(p, t - 1.0f, 0);
}
AG_INLINE float ag_sinh_f32(float x) {
    float a = fabsf(x), z = a * a, e = ag_half_exp_f32(a);
    /* (sinh a - a) / a^3, a <= 1: 2^-27.251 relative to sinh */
    float p = 0x1.7a15aep-19f;
    p = p * z + 0x1.9ffe92p-13f;
    p = p * z + 0x1.111134p-7f;
    p = p * z + 0x1.555556p-3f;
    float y = a > 1.0f ? e - 0.25f / e : a + a * z * p;
    y = a > 0x1.65a9f8p+6f ? AG_INF_F32 : y;
    return copysignf(x != x ? x : y, x);
}
AG_INLINE float ag_cosh_f32(float x) {
    float a = fabsf(x), e = ag_half_exp_f32(a), y = e + 0.25f / e;
    return a > 0x1.65a9f8p+6f ? AG_INF_F32 : a != a ? a : y;
}

/* ---- error functions */

AG_INLINE float ag_erf_core_f32(float a) {           /* a <= 1 */
    float z = a * a;
    /* erf a / a - 1: 2^-28.71 relative to erf */
    float z2 = z * z, p = 0x1.496a42p-14f, po = -0x1.a3f706p-11f;
    p = p * z2 + 0x1.5405b2p-8f;
    po = po * z2 + -0x1.b7f90ep-6f;
    p = p * z2 + 0x1.ce2cf8p-4f;
    po = po * z2 + -0x1.81273ep-2f;
    p = p * z2 + 0x1.06eba8p-3f;
    p = po * z + p;
    return a + a * p;
}
AG_INLINE float ag_erf_f32(float x) {
    float a = fabsf(x), c = (a > 4.0f ? 4.0f : a) - 1.0f, t;
    /* log(erfc a) in a - 1, a >= 1: 2^-26.66 relative to erf */
    float c2 = c * c, q = -0x1.6c065ap-16f, qo = 0x1.2fa7fep-12f;
    q = q * c2 + -0x1.07bad2p-9f;
    qo = qo * c2 + 0x1.4934e6p-7f;
    q = q * c2 + -0x1.547d16p-5f;
    qo = qo * c2 + -0x1.afabbap-1f;
    q = q * c2 + -0x1.51c9bp+1f;
    qo = qo * c2 + -0x1.d97fcp+0f;
    q = q * c + qo;
    q = ag_exp_core_f32(q, &t);
    q = ag_scale_f32(q, t, 0);
    float y = a > 1.0f ? 1.0f - q : ag_erf_core_f32(a);
    return copysignf(x != x ? x : y, x);
}
/* The normal distribution function, by which gelu multiplies: an absolute error of 2.3e-7, with half of erf's instructions. A rational
 * approximation of (F(x) - 1/2) / x in x^2, 2^-26.4 times 1/2 + |x|; it is 1 from the limit on. */
AG_INLINE float ag_normal_cdf_f32(float x) {
    float c = ag_clamp_f32(x, -0x1.666666p+2f, 0x1.666666p+2f), z = c * c, z2 = z * z;
    float p = 0x1.a77c38p-18f, po = 0x1.7eb26p-26f, q = 0x1.35a712p-14f, qo = 0x1.3ce95cp-20f;
    p = p * z2 + 0x1.330cf2p-8f;
    po = po * z2 + 0x1.65012p-13f;
    q = q * z2 + 0x1.d6f7cp-6f;
    qo = qo * z2 + 0x1.f029b8p-10f;
    p = p * z2 + 0x1.988452p-2f;
    po = po * z2 + 0x1.16e3a8p-5f;
    q = q * z2 + 1.0f;
    qo = qo * z2 + 0x1.020cd4p-2f;
    return 0.5f + ag_clamp_f32(c * (po * z + p) / (qo * z + q), -0.5f, 0.5f);
}
/* erfc a = e^(-a^2) g(t) / (1 + 2 a), t = (a - K) / (a + K). a^2 = h^2 + (a - h)(a + h), where h^2 is exact: half of a's bits.
 * Below 1/2, 1 - erf a. */
AG_INLINE float ag_erfc_f32(float x) {
    float a = fabsf(x);
    a = a > 10.25f ? 10.25f : a;
    float h = ag_from_bits_f32(ag_bits_f32(a) & ~(int32_t)0xfff), z = (a - 2.0f) / (a + 2.0f), t;
    float e = ag_exp_core2_f32(-h * h, (h - a) * (h + a), &t);
    /* g for a >= 1/2: 2^-26.14 relative */
    float p = -0x1.d161e4p-13f;
    p = p * z + -0x1.4bd5bcp-10f;
    p = p * z + 0x1.2bc5dap-10f;
    p = p * z + 0x1.1bbf1cp-7f;
    p = p * z + -0x1.064db6p-7f;
    p = p * z + -0x1.bc193cp-5f;
    p = p * z + 0x1.4ff8bep-3f;
    p = p * z + -0x1.5407f8p-3f;
    p = p * z + -0x1.7bf5dap-4f;
    p = p * z + 0x1.46e80ep+0f;
    float y = ag_scale_f32(e * (p / (1.0f + 2.0f * a)), t, a > 8.75f);
    y = a < 0.5f ? 1.0f - ag_erf_core_f32(a) : y;
    y = x < 0 ? 2.0f - y : y;
    return x != x ? x : y;
}

/* ---- power: 2^(y log2 |x|) in double, with the cases of C's pow */

AG_INLINE float ag_pow_f32(float x, float y) {
    double a = fabsf(x);                            /* a subnormal float is a normal double */
    uint64_t i = (uint64_t)ag_bits_f64(a) - 0x3fe6a09e667f3bcdu + (1024ull << 52);
    double e = ag_from_bits_f64((int64_t)((i >> 52) | 0x4330000000000000u)) - (0x1p52 + 1024.0);
    double f = ag_from_bits_f64((int64_t)((i & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu)) - 1.0, s = f / (2.0 + f), z = s * s;
    /* log2((1 + s) / (1 - s)) / s: 2^-37.77 */
    double p = 0x1.5cf2ce471b011p-2;
    p = p * z + 0x1.a58cfe72e87p-2;
    p = p * z + 0x1.277781002c51ep-1;
    p = p * z + 0x1.ec709d116f96fp-1;
    p = p * z + 0x1.71547652beefdp+1;
    double log2 = e + s * p;
    log2 = a > 3.5e38 ? a : a == 0.0 ? -(double)AG_INF_F32 : log2;
    double w = log2 * (double)y;
    w = w > 200.0 ? 200.0 : w;
    w = w < -200.0 ? -200.0 : w;
    double t = w + 0x1.8p+52, r = w - (t - 0x1.8p+52);
    /* 2^r: 2^-29.00 */
    double r2 = r * r, q = 0x1.41d3467cfca09p-13, qo = 0x1.5f456cf6629fbp-10;
    q = q * r2 + 0x1.3b2dbba2649ffp-7;
    qo = qo * r2 + 0x1.c6aed4b2bacb5p-5;
    q = q * r2 + 0x1.ebfbdadcf8ba4p-3;
    qo = qo * r2 + 0x1.62e430c7f098dp-1;
    q = q * r2 + 0x1.0000000260906p+0;
    q = qo * r + q;
    double m = ag_from_bits_f64((int64_t)((uint64_t)ag_bits_f64(q) + ((uint64_t)ag_bits_f64(t) << 52)));
    float u = (float)m, whole = ag_trunc_f32(y), half = 0.5f * y;
    int odd = (whole == y) & (ag_trunc_f32(half) != half);
    u = (a == 1.0) ? 1.0f : u;                      /* 0 times infinity */
    u = (x < 0.0f) & (whole != y) & (a <= 3.5e38) ? AG_NAN_F32 : u;
    u = ag_from_bits_f32(ag_bits_f32(u) ^ (ag_bits_f32(x) & (int32_t)0x80000000u & -(int32_t)odd));
    u = (x != x) | (y != y) ? x + y : u;
    return (y == 0.0f) | (x == 1.0f) ? 1.0f : u;
}
