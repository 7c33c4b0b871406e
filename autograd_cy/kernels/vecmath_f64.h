/* Transcendental functions of double, branch-free; the same methods as vecmath_f32.h, with longer polynomials.
 * Included by vecmath.h, whose helpers it uses; tests/ulp_table.py holds the accuracy that is promised for each function.
 * The generated elementwise loops and the row kernels rely on it.
 *
 * Integer operations are limited to those that SSE2 and AVX2 have for 64-bit lanes: add, logical shift, and, or. (No comparison,
 * no arithmetic shift, no conversion: an integer becomes a double through the bits of 2^52.)
 */

#define AG_INF_F64 ((double)INFINITY)
#define AG_NAN_F64 ((double)NAN)
#define AG_LN2_HI_F64 0x1.62e42fefa2p-1
#define AG_LN2_LO_F64 0x1.9ef35793c7673p-41
#define AG_LOG2E_F64 0x1.71547652b82fep+0
#define AG_SHIFT_F64 0x1.8p+52

AG_INLINE double ag_clamp_f64(double x, double lo, double hi) {
    x = x > hi ? hi : x;
    return x < lo ? lo : x;
}

/* ---- exponentials */

AG_INLINE double ag_scale_f64(double p, double shifted, int down) {
    uint64_t n = (uint64_t)ag_bits_f64(shifted) << 52;
    double y = ag_from_bits_f64((int64_t)((uint64_t)ag_bits_f64(p) + n + (uint64_t)ag_bits_f64(down ? 0x1p-959 : 0.0)));
    return y * (down ? 0x1p-64 : 1.0);              /* the bits of 2^-959 are 64 << 52 */
}
AG_INLINE double ag_exp_core2_f64(double x, double xlow, double* shifted) {
    double t = x * AG_LOG2E_F64 + AG_SHIFT_F64, k = t - AG_SHIFT_F64;
    double hi = x - k * AG_LN2_HI_F64, lo = k * AG_LN2_LO_F64 - xlow, r = hi - lo;
    /* (e^r - 1 - r) / r^2, 2^-56 relative to e^r */
    double r2 = r * r, q = 0x1.ae6bc94c06300p-26, qo = 0x1.28a236893a2b3p-22;
    q = q * r2 + 0x1.71de883ca0ce4p-19;
    qo = qo * r2 + 0x1.a019a71caadbcp-16;
    q = q * r2 + 0x1.a01a0174e0829p-13;
    qo = qo * r2 + 0x1.6c16c17ef56dap-10;
    q = q * r2 + 0x1.1111111119082p-7;
    qo = qo * r2 + 0x1.555555555225bp-5;
    q = q * r2 + 0x1.5555555555539p-3;
    qo = qo * r2 + 0x1.0000000000005p-1;
    q = q * r + qo;
    *shifted = t;
    return 1.0 + (hi + (r * r * q - lo));
}
AG_INLINE double ag_exp_core_f64(double x, double* shifted) { return ag_exp_core2_f64(x, 0, shifted); }
AG_INLINE double ag_exp_f64(double x) {
    double t, p = ag_exp_core_f64(x, &t), y = ag_scale_f64(p, t, x < -707.0);
    y = ag_keep_f64(x >= -746.0, y);
    return x <= 0x1.62e42fefa39efp+9 ? y : x + AG_INF_F64;         /* infinity or NaN */
}
AG_INLINE double ag_exp_neg_f64(double a) {
    double t, p = ag_exp_core_f64(-a, &t), y = ag_scale_f64(p, t, a > 707.0);
    return ag_keep_f64(a <= 746.0, y);
}
AG_INLINE double ag_expm1_f64(double x) {
    double c = ag_clamp_f64(x, -40.0, 710.0), t = c * AG_LOG2E_F64 + AG_SHIFT_F64, k = t - AG_SHIFT_F64;
    double hi = c - k * AG_LN2_HI_F64, lo = k * AG_LN2_LO_F64, r = hi - lo;
    /* 2^-59.7 relative to e^r - 1 */
    double r2 = r * r, q = 0x1.1ee870fc52e2ep-29, qo = 0x1.af5ee80ca951fp-26;
    q = q * r2 + 0x1.27e53670b0a25p-22;
    qo = qo * r2 + 0x1.71ddf8422ea93p-19;
    q = q * r2 + 0x1.a01a017b8ce21p-16;
    qo = qo * r2 + 0x1.a01a01afe9912p-13;
    q = q * r2 + 0x1.6c16c16c1f187p-10;
    qo = qo * r2 + 0x1.111111110f6aap-7;
    q = q * r2 + 0x1.555555555553ep-5;
    qo = qo * r2 + 0x1.5555555555559p-3;
    q = q * r2 + 0.5;
    q = qo * r + q;
    double p = hi + (r * r * q - lo);
    double half = ag_from_bits_f64((int64_t)(((uint64_t)ag_bits_f64(t) + 1022) << 52));     /* 2^(k - 1): half, for k = 1024 */
    return copysign(k == 0.0 ? p : 2.0 * (half * p + (half - 0.5)), x);
}
AG_INLINE double ag_exp2_poly_f64(double r) {
    /* (2^r - 1) / r - 1, 2^-55.6 relative to 2^r */
    double r2 = r * r, q = 0x1.e79b7e473f7a2p-32, qo = 0x1.e61b5041a7464p-28;
    q = q * r2 + 0x1.b5267d0e3372cp-24;
    qo = qo * r2 + 0x1.62bfc79cec61cp-20;
    q = q * r2 + 0x1.ffcbfba9651ddp-17;
    qo = qo * r2 + 0x1.4309130ed8f01p-13;
    q = q * r2 + 0x1.5d87fe78cd745p-10;
    qo = qo * r2 + 0x1.3b2ab6fba0119p-7;
    q = q * r2 + 0x1.c6b08d7049fe8p-5;
    qo = qo * r2 + 0x1.ebfbdff82c5a4p-3;
    q = q * r2 + -0x1.3a37a020b8c21p-2;
    q = qo * r + q;
    return q;
}
AG_INLINE double ag_exp2_f64(double x) {
    double t = x + AG_SHIFT_F64, r = x - (t - AG_SHIFT_F64);
    double q = ag_exp2_poly_f64(r);
    double y = ag_scale_f64(1.0 + (r + r * q), t, x < -1020.0);
    y = ag_keep_f64(x >= -1076.0, y);
    return x < 1024.0 ? y : x + AG_INF_F64;
}
AG_INLINE double ag_sigmoid_f64(double x) {
    double t, p = ag_exp_core_f64(ag_clamp_f64(x, -746.0, 40.0), &t);
    double e = p * ag_from_bits_f64((int64_t)(((uint64_t)ag_bits_f64(t) << 52) + (1087ull << 52))) * 0x1p-64;
    return e / (1.0 + e);
}
AG_INLINE double ag_tanh_f64(double x) {
    double a = fabs(x), z = a * a, t, e = ag_exp_core_f64(a > 20.0 ? 40.0 : a + a, &t);
    e = ag_scale_f64(e, t, 0);
    /* 2^-57.7 relative to tanh */
    double z2 = z * z, p = -0x1.479ee40b2e97cp-16, po = 0x1.5dac5c94208a0p-14;
    p = p * z2 + -0x1.e982cf6acb638p-13;
    po = po * z2 + 0x1.348580ca72233p-11;
    p = p * z2 + -0x1.7d900acdcb73bp-10;
    po = po * z2 + 0x1.d6d29fc0573c4p-9;
    p = p * z2 + -0x1.226e2f2e19b58p-7;
    po = po * z2 + 0x1.664f485a32fadp-6;
    p = p * z2 + -0x1.ba1ba1b980d44p-5;
    po = po * z2 + 0x1.11111111107d7p-3;
    p = p * z2 + -0x1.555555555554fp-2;
    p = po * z + p;
    double y = a > 0x1.193ea7aad030bp-1 ? 1.0 - 2.0 / (e + 1.0) : a + a * z * p;
    return copysign(x != x ? x : y, x);
}

/* ---- logarithms */

AG_INLINE double ag_split_f64(double x, double* e, uint64_t* biased) {
    uint64_t i = (uint64_t)ag_bits_f64(x) - 0x3fe6a09e667f3bcdu + (1024ull << 52);
    *biased = i >> 52;                                           /* e + 1024, not negative */
    *e = ag_from_bits_f64((int64_t)(*biased | 0x4330000000000000u)) - (0x1p52 + 1024.0);
    return ag_from_bits_f64((int64_t)((i & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu)) - 1.0;
}
/* f - log(1 + f) = f^2 / 2 - s (f^2 / 2 + R), s = f / (2 + f), log((1 + s) / (1 - s)) = 2 s + s R(s^2): 2^-59 relative */
AG_INLINE double ag_log_tail_f64(double f) {
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f, p = 0x1.2f15be075da55p-3;
    p = p * z + 0x1.39a02e9cff3abp-3;
    p = p * z + 0x1.74664d79f170ep-3;
    p = p * z + 0x1.c71c51c658fcep-3;
    p = p * z + 0x1.249249423e715p-2;
    p = p * z + 0x1.999999997f8a5p-2;
    p = p * z + 0x1.5555555555593p-1;
    return h - s * (h + z * p);
}
AG_INLINE double ag_log_special_f64(double x, double y) {
    y = x < AG_INF_F64 ? y : x;
    return x > 0.0 ? y : x == 0.0 ? -AG_INF_F64 : AG_NAN_F64;
}
AG_INLINE double ag_log_split_f64(double x, double* e) {
    int tiny = x < 0x1p-1022;
    uint64_t biased;
    double f = ag_split_f64(tiny ? x * 0x1p54 : x, e, &biased);
    *e = tiny ? *e - 54.0 : *e;
    return f;
}
AG_INLINE double ag_log_f64(double x) {
    double e, f = ag_log_split_f64(x, &e);
    return ag_log_special_f64(x, e * AG_LN2_HI_F64 + (f - (ag_log_tail_f64(f) - e * AG_LN2_LO_F64)));
}
/* of a positive normal number */
AG_INLINE double ag_log_normal_f64(double x) {
    uint64_t biased;
    double e, f = ag_split_f64(x, &e, &biased);
    return e * AG_LN2_HI_F64 + (f - (ag_log_tail_f64(f) - e * AG_LN2_LO_F64));
}
AG_INLINE double ag_log2_f64(double x) {
    double e, f = ag_log_split_f64(x, &e);
    return ag_log_special_f64(x, e + (f + (f * 0x1.c551d94ae0bf8p-2 - ag_log_tail_f64(f) * AG_LOG2E_F64)));
}
AG_INLINE double ag_log10_f64(double x) {
    double e, f = ag_log_split_f64(x, &e);
    double lo = e * 0x1.9fef311f12b36p-42 - (f * 0x1.0d213ab646bc7p-4 + ag_log_tail_f64(f) * 0x1.bcb7b1526e50ep-2);
    return ag_log_special_f64(x, e * 0x1.34413509f6p-2 + (0.5 * f + lo));
}
AG_INLINE double ag_log1p_f64(double x) {
    uint64_t biased;
    double u = 1.0 + x, e, g = ag_split_f64(u, &e, &biased), s = ag_from_bits_f64((int64_t)((2047 - biased) << 52));
    double f = x * s + (s - 1.0);
    f = x > 0x1p54 ? g : f;
    double y = e * AG_LN2_HI_F64 + (f - (ag_log_tail_f64(f) - e * AG_LN2_LO_F64));
    return copysign(ag_log_special_f64(u, y), u != u ? u : x);
}
AG_INLINE double ag_log1p_unit_f64(double t) {
    double e = t > 0x1.a827999fcef32p-2 ? 0.5 : 0.0, f = t * (1.0 - e) - e;    /* one condition: two would double the code */
    return e * (2 * AG_LN2_HI_F64) + (f - (ag_log_tail_f64(f) - e * (2 * AG_LN2_LO_F64)));
}
AG_INLINE double ag_softplus_f64(double x) { return ag_maximum_f64(x, 0.0) + ag_log1p_unit_f64(ag_exp_neg_f64(fabs(x))); }
AG_INLINE double ag_logsigmoid_f64(double x) { return -ag_softplus_f64(-x); }

/* ---- sine, cosine, tangent: x = k pi / 2 + r, |r| <= pi / 4.
 * ag_<f>_fast_f64 is branch-free, and right for |x| <= AG_TRIG_LIMIT_F64 (ag_within_f64 tests it for a whole array);
 * ag_<f>_f64 gives the same bits there and calls the C library beyond, at the price that gcc doesn't vectorise the loop. */

#define AG_TRIG_LIMIT_F64 0x1p+20

/* pi / 2 in 33 + 33 + 53 bits: k times the first two is exact; r + *low has some 80 bits next to every multiple of pi / 2 */
AG_INLINE double ag_quadrant_f64(double x, double* low, uint64_t* n) {
    double t = x * 0x1.45f306dc9c883p-1 + AG_SHIFT_F64, k = t - AG_SHIFT_F64;
    double a = x - k * 0x1.921fb544p+0, w = k * 0x1.0b4611a6p-34, b = a - w;
    double c = ((a - b) - w) - k * 0x1.3198a2e037073p-69, r = b + c;
    *low = (b - r) + c;
    *n = (uint64_t)ag_bits_f64(t);
    return r;
}
AG_INLINE double ag_sincos_f64(double x, uint64_t shift) {
    double low;
    uint64_t n;
    double r = ag_quadrant_f64(x, &low, &n), z = r * r, h = 0.5 * z, w = 1.0 - h;
    n += shift;
    /* 2^-57.14 relative to sin */
    double p = -0x1.aaa2470fa704bp-41;
    p = p * z + 0x1.61208c47d0261p-33;
    p = p * z + -0x1.ae64528d7e7c7p-26;
    p = p * z + 0x1.71de3a53308bbp-19;
    p = p * z + -0x1.a01a01a018a6dp-13;
    p = p * z + 0x1.111111111110bp-7;
    p = p * z + -0x1.5555555555555p-3;
    /* 2^-59.55 relative to cos */
    double q = 0x1.aabd1a0051aabp-45;
    q = q * z + -0x1.9393242281ef5p-37;
    q = q * z + 0x1.1eed8c90cefb1p-29;
    q = q * z + -0x1.27e4fb75eb905p-22;
    q = q * z + 0x1.a01a01a018ccbp-16;
    q = q * z + -0x1.6c16c16c16c0fp-10;
    q = q * z + 0x1.5555555555555p-5;
    double s = r + (r * z * p + low * w), c = w + (((1.0 - w) - h) + (z * z * q - r * low));
    int64_t odd = (int64_t)(0 - (n & 1));
    return ag_from_bits_f64(((ag_bits_f64(c) & odd) | (ag_bits_f64(s) & ~odd)) ^ (int64_t)((n & 2) << 62));
}
AG_INLINE double ag_sin_fast_f64(double x) {
    double y = ag_sincos_f64(x, 0);
    return x == 0.0 ? x : y;
}
AG_INLINE double ag_cos_fast_f64(double x) { return ag_sincos_f64(x, 1); }
AG_INLINE double ag_tan_fast_f64(double x) {
    double low;
    uint64_t n;
    double r = ag_quadrant_f64(x, &low, &n), z = r * r;
    /* 2^-56.31 relative to tan */
    double z2 = z * z, p = 0x1.45d973b543636p-17, po = -0x1.90a400013f112p-16;
    p = p * z2 + 0x1.9157844cf03ep-15;
    po = po * z2 + -0x1.9e33a7a8006f8p-16;
    p = p * z2 + 0x1.16d36e72b830cp-14;
    po = po * z2 + 0x1.602e1908fe4aap-14;
    p = p * z2 + 0x1.fed9b6933393fp-13;
    po = po * z2 + 0x1.34c2028064334p-11;
    p = p * z2 + 0x1.7db0f890e23fbp-10;
    po = po * z2 + 0x1.d6d2f230e0556p-9;
    p = p * z2 + 0x1.226e3a4171e48p-7;
    po = po * z2 + 0x1.664f485f1bfcfp-6;
    p = p * z2 + 0x1.ba1ba1bab6141p-5;
    po = po * z2 + 0x1.111111111067dp-3;
    p = p * z2 + 0x1.555555555555dp-2;
    p = po * z + p;
    double t = r + (r * z * p + low * (1.0 + z)), u = -1.0 / t;
    int64_t odd = (int64_t)(0 - (n & 1));
    double y = ag_from_bits_f64((ag_bits_f64(u) & odd) | (ag_bits_f64(t) & ~odd));
    return x == 0.0 ? x : y;
}
AG_INLINE double ag_sin_f64(double x) { return AG_LIKELY(fabs(x) <= AG_TRIG_LIMIT_F64) ? ag_sin_fast_f64(x) : sin(x); }
AG_INLINE double ag_cos_f64(double x) { return AG_LIKELY(fabs(x) <= AG_TRIG_LIMIT_F64) ? ag_cos_fast_f64(x) : cos(x); }
AG_INLINE double ag_tan_f64(double x) { return AG_LIKELY(fabs(x) <= AG_TRIG_LIMIT_F64) ? ag_tan_fast_f64(x) : tan(x); }
AG_INLINE int ag_within_f64(ptrdiff_t n, const double* x, double limit) {       /* every |x| <= limit, and no NaN */
    int64_t outside = 0;
    for (ptrdiff_t i = 0; i < n; i++) outside |= !(fabs(x[i]) <= limit);
    return !outside;
}

/* ---- inverse functions */

/* asin a for a <= 1/2; beyond, pi / 2 - 2 asin(sqrt((1 - a) / 2)) with the same polynomial, and the inner asin is returned */
AG_INLINE double ag_asin_core_f64(double a, int* high) {
    *high = a > 0.5;
    double z = *high ? (1.0 - a) * 0.5 : a * a, s = *high ? sqrt(z) : a;
    /* (asin s - s) / s^3: 2^-59.01 relative to asin */
    double z2 = z * z, p = 0x1.0b4b01c9fa89bp-5, po = -0x1.580bd6fb6926bp-6;
    p = p * z2 + 0x1.63a72aa49cc9fp-6;
    po = po * z2 + 0x1.e5d0127d2c799p-9;
    p = p * z2 + 0x1.613f3382d2a58p-7;
    po = po * z2 + 0x1.758506f11512bp-7;
    p = p * z2 + 0x1.ca1f9edc229ddp-7;
    po = po * z2 + 0x1.1c49ef8f2d337p-6;
    p = p * z2 + 0x1.6e8bdeed251acp-6;
    po = po * z2 + 0x1.f1c71a946ba1ep-6;
    p = p * z2 + 0x1.6db6db7214182p-5;
    po = po * z2 + 0x1.333333332e103p-4;
    p = p * z2 + 0x1.5555555555577p-3;
    p = po * z + p;
    return s + s * z * p;
}
AG_INLINE double ag_asin_f64(double x) {
    int high;
    double y = ag_asin_core_f64(fabs(x), &high);
    return copysign(high ? 0x1.921fb54442d18p+0 - (y + y - 0x1.1a62633145c07p-54) : y, x);
}
AG_INLINE double ag_acos_f64(double x) {
    int high;
    double y = ag_asin_core_f64(fabs(x), &high), s = copysign(y, x);
    double far = x < 0 ? 0x1.921fb54442d18p+1 - (y + y - 0x1.1a62633145c07p-53) : y + y;
    return high ? far : 0x1.921fb54442d18p+0 - (s - 0x1.1a62633145c07p-54);
}
/* atan(num / den) + turn pi / 4, the quotient within tan(pi / 8) */
AG_INLINE double ag_atan_core_f64(double num, double den, double turn) {
    double q = num / den, z = q * q;
    /* (atan q - q) / q^3: 2^-58.44 relative to atan */
    double z2 = z * z, p = 0x1.f1cdd1476427p-7, po = -0x1.1230c3781c8eap-5;
    p = p * z2 + 0x1.70ea2115421fap-5;
    po = po * z2 + -0x1.ab7cb0bdd83fbp-5;
    p = p * z2 + 0x1.e171de760ad24p-5;
    po = po * z2 + -0x1.110c7108d1c56p-4;
    p = p * z2 + 0x1.3b136e0e59f6ap-4;
    po = po * z2 + -0x1.745d14b85484p-4;
    p = p * z2 + 0x1.c71c71b740b15p-4;
    po = po * z2 + -0x1.24924924755b3p-3;
    p = p * z2 + 0x1.9999999999649p-3;
    po = po * z2 + -0x1.5555555555554p-2;
    p = p * z + po;
    return turn * 0x1.921fb54442d18p-1 + (q + (q * z * p + turn * 0x1.1a62633145c07p-55));
}
AG_INLINE double ag_atan_f64(double x) {
    double a = fabs(x);
    int big = a > 0x1.3504f3p+1, mid = a > 0x1.a8279ap-2;
    double one = ag_keep_f64(mid, 1.0), num = big ? -1.0 : a - one, den = big ? a : (mid ? 1.0 + a : 1.0);
    double y = ag_atan_core_f64(num, den, one + ag_keep_f64(big, 1.0));
    return copysign(y, x);
}
AG_INLINE double ag_atan2_f64(double y, double x) {
    double a = fabs(y), b = fabs(x);
    int ya = a > 0x1.fffffffffffffp+1023, xb = b > 0x1.fffffffffffffp+1023;        /* infinite: only the ratio matters */
    double scale = (a > 0x1p1000) | (b > 0x1p1000) ? 0.25 : 1.0;
    double a1 = (xb ? 0.0 : a) * scale, b1 = (ya ? 0.0 : b) * scale;
    a1 = ya ? 1.0 : a1;
    b1 = xb ? 1.0 : b1;
    int big = a1 > 0x1.3504f3p+1 * b1, mid = a1 > 0x1.a8279ap-2 * b1;
    double num = big ? -b1 : a1 - ag_keep_f64(mid, b1), den = big ? a1 : b1 + ag_keep_f64(mid, a1);
    double r = ag_atan_core_f64(num, den == 0.0 ? 1.0 : den, ag_keep_f64(mid, 1.0) + ag_keep_f64(big, 1.0));
    r = copysign(1.0, x) < 0.0 ? 0x1.921fb54442d18p+1 - (r - 0x1.1a62633145c07p-53) : r;
    return copysign((y != y) | (x != x) ? x + y : r, y);
}

/* ---- hyperbolic functions: e = e^a / 2, which overflows where they do */

AG_INLINE double ag_half_exp_f64(double a) {
    double t, p = ag_exp_core_f64(a, &t);
    return ag_scale_f64(p, t - 1.0, 0);
}
AG_INLINE double ag_sinh_f64(double x) {
    double a = fabs(x), z = a * a, e = ag_half_exp_f64(a);
    /* (sinh a - a) / a^3, a <= 1: 2^-56.77 relative to sinh */
    double z2 = z * z, p = 0x1.9a794080483bdp-49, po = 0x1.ae756e9ad7e5dp-41;
    p = p * z2 + 0x1.61246afa2b05p-33;
    po = po * z2 + 0x1.ae6456741b936p-26;
    p = p * z2 + 0x1.71de3a5573f79p-19;
    po = po * z2 + 0x1.a01a01a019fc1p-13;
    p = p * z2 + 0x1.1111111111111p-7;
    po = po * z2 + 0x1.5555555555555p-3;
    p = p * z + po;
    double y = a > 1.0 ? e - 0.25 / e : a + a * z * p;
    y = a > 0x1.633ce8fb9f87dp+9 ? AG_INF_F64 : y;
    return copysign(x != x ? x : y, x);
}
AG_INLINE double ag_cosh_f64(double x) {
    double a = fabs(x), e = ag_half_exp_f64(a), y = e + 0.25 / e;
    return a > 0x1.633ce8fb9f87dp+9 ? AG_INF_F64 : a != a ? a : y;
}

/* ---- error functions */

AG_INLINE double ag_erf_core_f64(double a) {           /* a <= 1 */
    double z = a * a;
    /* erf a / a - 1: 2^-54.65 relative to erf */
    double z2 = z * z, p = -0x1.abae3e24f27d6p-31, po = 0x1.d71b0adc13f58p-27;
    p = p * z2 + -0x1.5c07263aba1bp-23;
    po = po * z2 + 0x1.b97fd3b72aaebp-20;
    p = p * z2 + -0x1.f4ca4d6b28512p-17;
    po = po * z2 + 0x1.f9a2baa8adc8dp-14;
    p = p * z2 + -0x1.c02db03dd2f9dp-11;
    po = po * z2 + 0x1.565bccf92b0cap-8;
    p = p * z2 + -0x1.b82ce311fa927p-6;
    po = po * z2 + 0x1.ce2f21a040d15p-4;
    p = p * z2 + -0x1.812746b0379bdp-2;
    po = po * z2 + 0x1.06eba8214db68p-3;
    p = p * z + po;
    return a + a * p;
}
AG_INLINE double ag_erf_f64(double x) {
    double a = fabs(x), c = (a > 6.0 ? 6.0 : a) - 1.0, t;
    /* log(erfc a) in a - 1, a >= 1: 2^-57.65 relative to erf */
    double c2 = c * c, q = 0x1.276220cad045p-40, qo = -0x1.ff44938fee31ap-36;
    q = q * c2 + 0x1.97d2a4a6ff216p-32;
    qo = qo * c2 + -0x1.8bff68e3503d2p-29;
    q = q * c2 + 0x1.017448a4445p-26;
    qo = qo * c2 + -0x1.c0f33804e34c1p-25;
    q = q * c2 + 0x1.a5208ec47bcfp-24;
    qo = qo * c2 + 0x1.310a9c4038c2cp-23;
    q = q * c2 + -0x1.1452402c41105p-19;
    qo = qo * c2 + 0x1.4263d40f57cfp-17;
    q = q * c2 + -0x1.c7a4cbc172eb4p-16;
    qo = qo * c2 + 0x1.b8dd48d6ec125p-16;
    q = q * c2 + 0x1.f1b398598dcaap-13;
    qo = qo * c2 + -0x1.033f65e8ef3e7p-9;
    q = q * c2 + 0x1.48c9d3ed52c22p-7;
    qo = qo * c2 + -0x1.5477f09c10734p-5;
    q = q * c2 + -0x1.afabc11a29555p-1;
    qo = qo * c2 + -0x1.51c9b0006c237p+1;
    q = q * c2 + -0x1.d97fbf27aa2a1p+0;
    q = qo * c + q;
    q = ag_exp_core_f64(q, &t);
    q = ag_scale_f64(q, t, 0);
    double y = a > 1.0 ? 1.0 - q : ag_erf_core_f64(a);
    return copysign(x != x ? x : y, x);
}
AG_INLINE double ag_normal_cdf_f64(double x) { return 0.5 * (1.0 + ag_erf_f64(x * 0x1.6a09e667f3bcdp-1)); }
/* erfc a = e^(-a^2) g(t) / (1 + 2 a), t = (a - K) / (a + K). a^2 = h^2 + (a - h)(a + h), where h^2 is exact: half of a's bits.
 * Below 1/2, 1 - erf a. */
AG_INLINE double ag_erfc_f64(double x) {
    double a = fabs(x);
    a = a > 27.25 ? 27.25 : a;
    double h = ag_from_bits_f64(ag_bits_f64(a) & ~(int64_t)0x7ffffff), z = (a - 4.0) / (a + 4.0), t;
    double e = ag_exp_core2_f64(-h * h, (h - a) * (h + a), &t);
    /* g, 2^-54.19 relative */
    double z2 = z * z, p = -0x1.205169673133cp-27, po = -0x1.14c90e4feffd8p-27;
    p = p * z2 + 0x1.b445fbaf02e68p-24;
    po = po * z2 + 0x1.dace08fe6a21fp-25;
    p = p * z2 + -0x1.b86464708ecbfp-21;
    po = po * z2 + 0x1.50d5f5b4829dcp-22;
    p = p * z2 + 0x1.7f2674b982d13p-18;
    po = po * z2 + -0x1.78f535dbd685ap-17;
    p = p * z2 + -0x1.995f2fba050fep-16;
    po = po * z2 + 0x1.3be2eae1aeedbp-13;
    p = p * z2 + -0x1.a1deb8d8b72bdp-13;
    po = po * z2 + -0x1.8d4ac3760d31fp-11;
    p = p * z2 + 0x1.49c6719c79da2p-8;
    po = po * z2 + -0x1.09623852d710cp-6;
    p = p * z2 + 0x1.3079edfab974ap-5;
    po = po * z2 + -0x1.0fb06dff665bep-4;
    p = p * z2 + 0x1.7fee004dea2fcp-4;
    po = po * z2 + -0x1.9ddb23c3dbf23p-4;
    p = p * z2 + 0x1.16ecefcfa689p-4;
    po = po * z2 + 0x1.f7f5df66fb93bp-7;
    p = p * z2 + -0x1.1df1ad154a2a7p-3;
    po = po * z2 + 0x1.3ba5916e9fd7fp+0;
    p = p * z + po;
    double y = ag_scale_f64(e * (p / (1.0 + 2.0 * a)), t, a > 26.0);
    y = a < 0.5 ? 1.0 - ag_erf_core_f64(a) : y;
    y = x < 0 ? 2.0 - y : y;
    return x != x ? x : y;
}

/* ---- power: 2^(y log2 |x|), with the cases of C's pow. log2 |x| is a sum of two doubles, 2^-64 relative: products are made
 * exact by cutting factors to 26 bits (ag_cut), since a fused multiply-add is not at hand at every level. */

AG_INLINE double ag_cut_f64(double x) { return ag_from_bits_f64(ag_bits_f64(x) & ~(int64_t)0x7ffffff); }

AG_INLINE double ag_pow_f64(double x, double y) {
    double a = fabs(x), e, f = ag_log_split_f64(a, &e);
    /* s = f / (2 + f) = sh + sl */
    double d = 2.0 + f, i = 1.0 / d, sh = ag_cut_f64(f * i), dh = ag_cut_f64(d);
    double sl = ((f - sh * dh) - sh * (f - (dh - 2.0))) * i;
    /* log(m) / 2 = s (1 + z / 3 + z^2 R(z)), z = s^2 = zh + zl; R: 2^-65 relative to the logarithm */
    double zh = sh * sh, zl = sl * (sh + sh + sl), z = zh + zl, third = ag_cut_f64(zh * 0x1.5555555555555p-2);
    double z2 = z * z, p = 0x1.eb31589c0b50fp-5, po = 0x1.de2f92ea0425fp-5;
    p = p * z2 + 0x1.1120cdffe5f90p-4;
    po = po * z2 + 0x1.3b136213f3031p-4;
    p = p * z2 + 0x1.745d1834b2ceep-4;
    po = po * z2 + 0x1.c71c71c57b741p-4;
    p = p * z2 + 0x1.249249249305fp-3;
    po = po * z2 + 0x1.9999999999995p-3;
    p = p * z + po;
    double w = ((zh - 3.0 * third) + zl) * 0x1.5555555555555p-2 + z2 * p, u = sh * third, h = sh + u;
    double l = (u - (h - sh)) + (sl + (sh * w + sl * (third + w)));
    /* times 2 / ln 2, plus e */
    double g = ag_cut_f64(h), gl = (h - g) + l, m = g * 0x1.715476p+1;
    double log2 = e + m, low = (m - (log2 - e)) + (gl * 0x1.71547652b82fep+1 + g * 0x1.4ae0bf85ddf44p-25);
    /* times y, which beyond 2^70 gives 0, 1 or infinity, as 2^70 does */
    double c = ag_clamp_f64(y, -0x1p70, 0x1p70), ch = ag_cut_f64(c), lh = ag_cut_f64(log2);
    double ph = ch * lh, pl = c * ((log2 - lh) + low) + (c - ch) * lh, power = ph + pl;
    double t = power + AG_SHIFT_F64, v = ph - (t - AG_SHIFT_F64), r = v + pl;
    double q = 1.0 + (r + (r * ag_exp2_poly_f64(r) + ((v - r) + pl) * 0x1.62e42fefa39efp-1));
    double result = ag_scale_f64(q, t, power < -1020.0);
    double beyond = copysign(2000.0, y);
    power = a == 0.0 ? -beyond : power;
    power = a > 0x1.fffffffffffffp+1023 ? beyond : power;
    result = ag_keep_f64(power >= -1076.0, result);
    result = power >= 1024.0 ? AG_INF_F64 : result;
    double whole = ag_trunc_f64(y), half = 0.5 * y;
    int odd = (whole == y) & (ag_trunc_f64(half) != half);
    result = (x < 0.0) & (whole != y) & (a <= 0x1.fffffffffffffp+1023) ? AG_NAN_F64 : result;
    result = odd ? copysign(result, x) : result;
    result = (x != x) | (y != y) ? x + y : result;
    return (y == 0.0) | (x == 1.0) ? 1.0 : result;
}
