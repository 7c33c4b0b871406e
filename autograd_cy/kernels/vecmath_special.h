/* Functions that models use rarely: inverse error function, gamma and its derivatives, hypot, shifts, fmod of integers.
 * Included by vecmath.h, whose functions it uses; tests/ulp_table.py holds the accuracy that is promised.
 * The generated elementwise loops rely on it.
 *
 * ag_erfinv, ag_hypot, ag_lgamma, ag_digamma and ag_trigamma are branch-free. Polygamma and zeta take a number of steps
 * that depends on its data: it computes in double, in functions that are never inlined, and a loop over them is not vectorised.
 */

#if defined(__GNUC__) || defined(__clang__)
#define AG_CALLED static __attribute__((noinline))
#else
#define AG_CALLED static
#endif

/* ---- inverse error function: from w = -log(1 - a^2), after M. Giles, "Approximating the erfinv function" (GPU Computing Gems,
 * 2012), with own polynomials: erfinv(a) / a in w below 6.25, 2^-27.8; erfinv in sqrt(w) above, 2^-27.0, up to a = 1 - 2^-53. */

#define AG_ERFINV_START(T, D, C) \
AG_INLINE T ag_erfinv_start_##D(T a) { \
    T w = -ag_log_##D(((T)1 - a) * ((T)1 + a)), c = w - (T)3.125, s = sqrt##C(w) - (T)4.25; \
    T p = (T)0x1.68f8d8p-31, q = (T)-0x1.452b28p-23; \
    p = p * c + (T)-0x1.3d38c8p-28;  q = q * s + (T)0x1.3cd2bep-22; \
    p = p * c + (T)-0x1.a78208p-26;  q = q * s + (T)0x1.2373f4p-20; \
    p = p * c + (T)0x1.c93a3cp-22;   q = q * s + (T)-0x1.2e8e5cp-18; \
    p = p * c + (T)-0x1.74af5cp-20;  q = q * s + (T)0x1.c8567cp-17; \
    p = p * c + (T)-0x1.d20124p-17;  q = q * s + (T)-0x1.d61bcep-15; \
    p = p * c + (T)0x1.87b90ap-13;   q = q * s + (T)0x1.b4d50cp-13; \
    p = p * c + (T)-0x1.84569ep-11;  q = q * s + (T)-0x1.3debfcp-11; \
    p = p * c + (T)-0x1.8b6cfap-8;   q = q * s + (T)0x1.7509d4p-11; \
    p = p * c + (T)0x1.ebd80ep-3;    q = q * s + (T)0x1.028df6p+0; \
    p = p * c + (T)0x1.a755e8p+0;    q = q * s + (T)0x1.05e6fep+2; \
    return w < (T)6.25 ? a * p : q; }

AG_ERFINV_START(float, f32, f)
AG_ERFINV_START(double, f64, )

AG_INLINE float ag_erfinv_f32(float x) {
    float a = fabsf(x), y = ag_erfinv_start_f32(a);
    y = a < 1.0f ? y : a == 1.0f ? AG_INF_F32 : AG_NAN_F32;
    return copysignf(y, x);
}
/* One step of Halley's method, which cubes the error; the difference from erf below 1/2, from erfc (and the exact 1 - a) above. */
AG_INLINE double ag_erfinv_f64(double x) {
    double a = fabs(x), y = ag_erfinv_start_f64(a);
    double off = a < 0.5 ? ag_erf_core_f64(y) - a : (1.0 - a) - ag_erfc_f64(y);
    double d = off * (0x1.c5bf891b4ef6bp-1 * ag_exp_f64(y * y));            /* sqrt(pi) / 2 */
    y = y - d / (1.0 + y * d);
    y = a < 1.0 ? y : a == 1.0 ? AG_INF_F64 : AG_NAN_F64;
    return copysign(y, x);
}

/* ---- logarithm of |gamma(x)|, its derivative digamma, and the derivatives of that */

/* sin(pi r) / (pi r) in s = r^2, |r| <= 1/2 */
AG_INLINE double ag_sin_pi_f64(double s) {
    double q = -0x1.c371b5df4f488p-18;
    q = q * s + 0x1.371122be6fc8dp-13;
    q = q * s + -0x1.3380b47ce3fd9p-9;
    q = q * s + 0x1.ac68032530651p-6;
    q = q * s + -0x1.86a8e46ca22e0p-3;
    q = q * s + 0x1.9f9cb402b1714p-1;
    q = q * s + -0x1.a51a6625306cbp+0;
    q = q * s + 0x1.fffffffffffffp-1;
    return q;
}
/* Stirling's series (Abramowitz and Stegun, 6.1.41) in i = 1 / x, from 8 on */
AG_INLINE double ag_stirling_f64(double i) {
    double t = i * i, c = -3617.0 / 122400;
    c = c * t + 1.0 / 156;
    c = c * t - 691.0 / 360360;
    c = c * t + 1.0 / 1188;
    c = c * t - 1.0 / 1680;
    c = c * t + 1.0 / 1260;
    c = c * t - 1.0 / 360;
    c = c * t + 1.0 / 12;
    return c * i;
}
/* From y = 8 on Stirling's series; below it log gamma(2 + z) / z, |z| < 0.59, and the logarithm of y - 1, y - 2 ..., or of y, y + 1. Near 1,
 * z itself leaves that logarithm, so that the zeros at 1 and 2 are exact. Left of 0 by reflection: next to a zero there, a few 1e-16. */
AG_INLINE double ag_lgamma_f64(double x) {
    double y = fabs(x), k = ag_floor_f64(y - 0x1.6a09e667f3bcdp+0), r = x - ag_round_f64(x), sine = fabs(r) * ag_sin_pi_f64(r * r);
    int left = x < 0.0, large = y >= 8.0;
    double z = y - (k + 2.0), z2 = z * z, i = 1.0 / (large ? y : y + 1.0), up = k >= 1.0 ? z + 2.0 : 1.0;
    up *= k >= 2.0 ? z + 3.0 : 1.0;
    up *= k >= 3.0 ? z + 4.0 : 1.0;
    up *= k >= 4.0 ? z + 5.0 : 1.0;
    up *= k >= 5.0 ? z + 6.0 : 1.0;
    up *= k >= 6.0 ? z + 7.0 : 1.0;
    double down = k < -1.0 ? y * (y + 1.0) : y, v = k >= 0.0 ? up : down, w = k >= 0.0 ? up * y : 1.0;
    double sign = (k >= 0.0) | left ? 1.0 : -1.0;
    w = (k < -1.0 ? i : w) * sine;                          /* y sine / pi times up or divided by down, of which y is one */
    v = left ? w : v;
    v = large ? y : v;
    double e, f = ag_log_split_f64(v, &e), tail = ag_log_tail_f64(f) - e * AG_LN2_LO_F64;
    int near = (e == 0.0) & (sign < 0.0);                   /* f is z */
    f = near ? 0.0 : f;
    double log = e * AG_LN2_HI_F64 + (f - tail);
    /* 2^-55.3 */
    double q = 0x1.44df9fdcdb516p-23, qo = -0x1.f0e39d8bfb6e0p-25;
    q = q * z2 + 0x1.36b69f0907160p-23;
    qo = qo * z2 + -0x1.0857d0a9b0a72p-21;
    q = q * z2 + 0x1.051458f3244fep-20;
    qo = qo * z2 + -0x1.0f9df78acba0fp-19;
    q = q * z2 + 0x1.257410b9d37adp-18;
    qo = qo * z2 + -0x1.3cd5be14b724cp-17;
    q = q * z2 + 0x1.580e1fc89142ap-16;
    qo = qo * z2 + -0x1.78ddab09bf7dbp-15;
    q = q * z2 + 0x1.a127b301e7133p-14;
    qo = qo * z2 + -0x1.d3fd4f5651dc4p-13;
    q = q * z2 + 0x1.0b36af7e9141dp-11;
    qo = qo * z2 + -0x1.38ac5c2892b20p-10;
    q = q * z2 + 0x1.7add6eadc9116p-9;
    qo = qo * z2 + -0x1.e404fc2193762p-8;
    q = q * z2 + 0x1.51322ac7d83ffp-6;
    qo = qo * z2 + -0x1.13e001a5575ffp-4;
    q = q * z2 + 0x1.4a34cc4a60fa6p-2;
    q = (near ? 0x1.b0ee6072093cep-2 - 1.0 : 0x1.b0ee6072093cep-2) + z * (q + qo * z);
    double far = (y - 0.5) * (log - 1.0) + (0x1.acfe390c97d69p-2 + ag_stirling_f64(i));      /* log(2 pi) / 2 - 1 / 2 */
    double sum = z * q + sign * log + 0.0, both = ag_log_normal_f64(y * sine);
    sum = large ? far : sum;
    both = large ? -sum - both : -sum;
    sum = left ? both : sum;
    sum = (y < AG_INF_F64) & (y > 0.0) & ((x > 0.0) | (r != 0.0)) ? sum : AG_INF_F64;
    return x != x ? x : sum;
}
/* The same from 0 on as a float needs it */
AG_INLINE float ag_lgamma_fast_f32(float given) {
    double x = (double)given, k = ag_floor_f64(x - 0x1.6a09e667f3bcdp+0);
    int large = x >= 4.0;
    double z = x - (k + 2.0), z2 = z * z, i = 1.0 / x, t = i * i, up = k >= 1.0 ? z + 2.0 : 1.0;
    up *= k >= 2.0 ? z + 3.0 : 1.0;
    double sign = k >= 0.0 ? 1.0 : -1.0, v = k >= 0.0 ? up : k < -1.0 ? x * (x + 1.0) : x, e;
    uint64_t biased;
    double f = ag_split_f64(large ? x : v, &e, &biased), s = f / (2.0 + f), s2 = s * s, h = 0.5 * f * f, p = 0x1.ddcf66cb38974p-3;
    p = p * s2 + 0x1.245c40ded716cp-2;
    p = p * s2 + 0x1.9999eb637b16ap-2;
    p = p * s2 + 0x1.5555554bb1c3ep-1;
    h -= s * (h + s2 * p);
    int near = (e == 0.0) & (sign < 0.0);
    double log = e * 0x1.62e42fefa39efp-1 + ((near ? 0.0 : f) - h);
    /* 2^-29.9 */
    double q = 0x1.6648fb79dc0f1p-13, qo = -0x1.e9d5952fc89f4p-13;
    q = q * z2 + 0x1.f99f23037a17ep-12;
    qo = qo * z2 + -0x1.38ba2a9f23a6bp-10;
    q = q * z2 + 0x1.7b5d71de2e755p-9;
    qo = qo * z2 + -0x1.e402addddb95ap-8;
    q = q * z2 + 0x1.51314fbc08867p-6;
    qo = qo * z2 + -0x1.13e0031e739abp-4;
    q = q * z2 + 0x1.4a34cc7e39d6bp-2;
    q = (near ? 0x1.b0ee60726c95fp-2 - 1.0 : 0x1.b0ee60726c95fp-2) + z * (q + qo * z);
    double c = 1.0 / 1188;
    c = c * t - 1.0 / 1680;
    c = c * t + 1.0 / 1260;
    c = c * t - 1.0 / 360;
    c = c * t + 1.0 / 12;
    double far = (x - 0.5) * (log - 1.0) + (0x1.acfe390c97d69p-2 + c * i), sum = z * q + sign * log + 0.0;       /* +0 at 1 */
    sum = large ? far : sum;
    return (float)((x < AG_INF_F64) & (x > 0.0) ? sum : AG_INF_F64);
}
AG_INLINE float ag_lgamma_f32(float x) { return x >= 0.0f ? ag_lgamma_fast_f32(x) : (float)ag_lgamma_f64((double)x); }
/* The others, and NaN, are set aside before, for the loop of double, whose absolute error is small next to the zeros, too, as close as a float
 * can come to them. */
static ptrdiff_t ag_set_aside(ptrdiff_t n, const float *x, double *rest, short *at) {
    int32_t other = 0;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++) other |= !(x[i] >= 0.0f);
    for (ptrdiff_t i = 0; i < n && other; i++)
        if (!(x[i] >= 0.0f)) {
            rest[count] = (double)x[i];
            at[count++] = (short)i;
        }
    return count;
}

/* Digamma and its derivative: ten terms below 10, two with one division, then the asymptotic series (Abramowitz and Stegun, 6.3.5, 6.3.18
 * and 6.4.12; next term 7e-17); left of 0 and 1/2 by reflection. In double for both dtypes, branch-free. */
AG_INLINE double ag_digamma_f64(double x) {
    double y = x < 0.0 ? 1.0 - x : x, q = y * (y + 9.0), terms;
    /* 1 / (y + k) + 1 / (y + 9 - k) = (2 y + 9) / (q + k (9 - k)) */
    terms = 1.0 / q + (1.0 / (q + 8.0) + 1.0 / (q + 14.0)) + (1.0 / (q + 18.0) + 1.0 / (q + 20.0));
    terms = y < 10.0 ? terms * (2.0 * y + 9.0) : 0.0;
    double w = y < 10.0 ? y + 10.0 : y, v = 1.0 / w, z = v * v, p = 1.0 / 12;
    p = p * z - 691.0 / 32760;
    p = p * z + 1.0 / 132;
    p = p * z - 1.0 / 240;
    p = p * z + 1.0 / 252;
    p = p * z - 1.0 / 120;
    p = p * z + 1.0 / 12;
    double r = (x - ag_round_f64(x)) * 0x1.921fb54442d18p+1, left = -0x1.921fb54442d18p+1 / ag_tan_fast_f64(r);
    left = (r == 0.0) | (x == -AG_INF_F64) ? AG_NAN_F64 : left;
    double sum = ag_log_f64(w) - 0.5 * v - z * p - terms;
    sum = x < 0.0 ? sum + left : sum;
    return x == 0.0 ? copysign(AG_INF_F64, -x) : sum;
}
/* The same for float: divisions are most of the time, so that all terms have one denominator (in float64 that would cost a digit). */
AG_INLINE float ag_digamma_f32(float given) {
    double x = (double)given, y = x < 0.0 ? 1.0 - x : x, q = y * (y + 9.0), r = x - ag_round_f64(x), s = r * r;
    int left = x < 0.0, small = y < 10.0;
    double a = (q + 8.0) * (q + 14.0), b = (q + 18.0) * (q + 20.0), d = a * b;
    double n = (d + q * ((q + 11.0) * b + (q + 19.0) * a) * 2.0) * (2.0 * y + 9.0);
    d = small ? q * d : 1.0;
    n = small ? n : 0.0;
    /* cos(pi r), 2^-53 */
    double c = 0x1.1678f9078a9b3p-18;
    c = c * s + -0x1.b6957b54dd389p-14;
    c = c * s + 0x1.f9d254582ac30p-10;
    c = c * s + -0x1.a6d1efc8c38bep-6;
    c = c * s + 0x1.e1f506813a321p-3;
    c = c * s + -0x1.55d3c7e3bfbf5p+0;
    c = c * s + 0x1.03c1f081b5992p+2;
    c = c * s + -0x1.3bd3cc9be45dbp+2;
    c = c * s + 1.0;
    double sine = r * ag_sin_pi_f64(s);
    n = left ? n * sine + d * c : n;                          /* + pi cot(pi r) */
    d = left ? d * sine : d;
    double w = small ? y + 10.0 : y, v = 1.0 / w, z = v * v, p = 1.0 / 12;
    p = p * z - 691.0 / 32760;
    p = p * z + 1.0 / 132;
    p = p * z - 1.0 / 240;
    p = p * z + 1.0 / 252;
    p = p * z - 1.0 / 120;
    p = p * z + 1.0 / 12;
    double sum = (w < AG_INF_F64 ? ag_log_normal_f64(w) : w) - 0.5 * v - z * p - n / d;
    sum = left & (r == 0.0) ? AG_NAN_F64 : sum;
    return (float)(x == 0.0 ? copysign(AG_INF_F64, -x) : sum);
}

AG_INLINE double ag_square_pair_f64(double y) {        /* 1 / y^2 + 1 / (y + 1)^2 */
    double a = y * y, b = (y + 1.0) * (y + 1.0);
    return (a + b) / (a * b);
}
AG_INLINE double ag_trigamma_f64(double x) {
    double y = x < 0.5 ? 1.0 - x : x, terms = ag_square_pair_f64(y) + (ag_square_pair_f64(y + 2.0) + ag_square_pair_f64(y + 4.0))
                                              + (ag_square_pair_f64(y + 6.0) + ag_square_pair_f64(y + 8.0));
    terms = y < 10.0 ? terms : 0.0;
    double w = y < 10.0 ? y + 10.0 : y, v = 1.0 / w, z = v * v, p = 7.0 / 6;
    p = p * z - 691.0 / 2730;
    p = p * z + 5.0 / 66;
    p = p * z - 1.0 / 30;
    p = p * z + 1.0 / 42;
    p = p * z - 1.0 / 30;
    p = p * z + 1.0 / 6;
    double sum = terms + v * (1.0 + (0.5 * v + z * p));
    double s = ag_sin_fast_f64((x - ag_round_f64(x)) * 0x1.921fb54442d18p+1) * 0x1.45f306dc9c883p-2;           /* sin(pi x) / pi */
    double left = 1.0 / (s * s) - sum;
    left = x == -AG_INF_F64 ? AG_NAN_F64 : left;
    return x < 0.5 ? left : sum;
}
/* 1 / (y + k)^2 + 1 / (y + 9 - k)^2 = (2 q + 81 - 2 k (9 - k)) / (q + k (9 - k))^2, q = y (y + 9) */
AG_INLINE float ag_trigamma_f32(float given) {
    double x = (double)given, y = x < 0.5 ? 1.0 - x : x, q = y * (y + 9.0), r = x - ag_round_f64(x);
    int left = x < 0.5, small = y < 10.0;
    double a = (q + 8.0) * (q + 8.0), b = (q + 14.0) * (q + 14.0), c = (q + 18.0) * (q + 18.0), d = (q + 20.0) * (q + 20.0);
    double ab = a * b, cd = c * d, e = q + q;
    double n = ((e + 65.0) * b + (e + 53.0) * a) * cd + ((e + 45.0) * d + (e + 41.0) * c) * ab, m = ab * cd;
    n = (e + 81.0) * m + q * q * n;
    m = small ? q * q * m : 1.0;
    n = small ? n : 0.0;
    double sine = r * ag_sin_pi_f64(r * r), square = sine * sine;
    n = left ? m - n * square : n;                            /* 1 / sine^2 less the sum on the right */
    m = left ? m * square : m;
    double w = small ? y + 10.0 : y, v = 1.0 / w, z = v * v, p = 7.0 / 6;
    p = p * z - 691.0 / 2730;
    p = p * z + 5.0 / 66;
    p = p * z - 1.0 / 30;
    p = p * z + 1.0 / 42;
    p = p * z - 1.0 / 30;
    p = p * z + 1.0 / 6;
    double tail = v * (1.0 + (0.5 * v + z * p));
    return (float)(n / m + (left ? -tail : tail));
}

/* 1 / x^s, by squaring where that is short */
AG_CALLED double ag_inverse_power_f64(double x, double s) {
    double y = 1;
    if (s > 64 || s != ag_floor_f64(s)) return pow(x, -s);
    for (int n = (int)s; n; n >>= 1, x *= x)
        if (n & 1) y *= x;
    return 1 / y;
}
/* B_2k / (2k)! */
static const double ag_zeta_numbers[9] = {0x1.5555555555555p-4, -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15, -0x1.bbd779334ef0bp-21,
                                           0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31, 0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42,
                                           0x1.355871d652e9ep-47};
/* sum of 1 / (q + k)^s over k >= 0, divided by its first term, by Euler and Maclaurin's formula (Johansson, "Rigorous high-precision
 * computation of the Hurwitz zeta function", 2015, eq. 5) */
AG_CALLED double ag_zeta_tail_f64(double s, double q) {
    double tail = 0, factor = s / q, z = 1 / (q * q);      /* s (s + 1) ... (s + 2k - 2) / q^(2k - 1) */
    for (int k = 0; k < 9; k++) {
        tail += ag_zeta_numbers[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) * z;
    }
    return q / (s - 1) + 0.5 + tail;
}
/* sum of 1 / (q + k)^s over k >= 0 for q > 0, s > 1: terms up to s + 10, then the tail */
AG_CALLED double ag_zeta_sum_f64(double s, double q) {
    double sum = 0, first = ag_inverse_power_f64(q, s), t = first;
    while (q < s + 10) {
        sum += t;
        q += 1;
        t = ag_inverse_power_f64(q, s);
        if (t * q <= sum * 0x1p-60) return sum;      /* also where all terms are too small to be numbers */
    }
    return sum + t * ag_zeta_tail_f64(s, q);
}
/* The same for any q but 0, -1, -2 ..., s whole if q < 0: left of 0 the sum's terms are those of three sums on the right. */
AG_CALLED double ag_zeta_left_f64(double s, double q) {
    double f = -q - ag_floor_f64(-q), left;
    if (q > 0) return q > 1e16 ? pow(q, 1 - s) / (s - 1) : ag_zeta_sum_f64(s, q);
    left = ag_zeta_sum_f64(s, f) - ag_zeta_sum_f64(s, 1 - q);
    return ag_zeta_sum_f64(s, 1 - f) + (s != 2 * ag_floor_f64(s * 0.5) ? -left : left);
}
AG_CALLED double ag_zeta_f64(double s, double q) {
    if (s != s || q != q || s < 1) return AG_NAN_F64;
    if (s == 1 || (q <= 0 && q == ag_floor_f64(q))) return AG_INF_F64;
    if (q < 0 && s != ag_floor_f64(s)) return AG_NAN_F64;
    return ag_zeta_left_f64(s, q);
}
/* (-1)^(n + 1) n! sum of 1 / (x + k)^(n + 1), n >= 1 */
AG_CALLED double ag_polygamma_f64(double x, double n) {
    double s = n + 1, sum, factor = 1, odd = s - 2 * ag_floor_f64(s * 0.5);
    if (x != x || x == -AG_INF_F64) return AG_NAN_F64;
    for (double k = 2; k <= n && factor < AG_INF_F64; k += 1) factor *= k;
    if (x > 0) sum = x < AG_INF_F64 ? ag_zeta_sum_f64(s, x) : 0;
    else sum = x == ag_floor_f64(x) ? AG_INF_F64 : ag_zeta_left_f64(s, x);
    return odd ? -factor * sum : factor * sum;
}
AG_CALLED float ag_polygamma_f32(float x, float n) { return (float)ag_polygamma_f64((double)x, (double)n); }

/* ---- sqrt(a^2 + b^2) without overflow or underflow on the way */

AG_INLINE float ag_hypot_f32(float a, float b) {
    float y = (float)sqrt((double)a * (double)a + (double)b * (double)b);
    return (fabsf(a) == AG_INF_F32) | (fabsf(b) == AG_INF_F32) ? AG_INF_F32 : y;
}
AG_INLINE double ag_hypot_f64(double a, double b) {
    double p = fabs(a), q = fabs(b), m = p > q ? p : q;
    double scale = m > 0x1p500 ? 0x1p-600 : m < 0x1p-500 ? 0x1p600 : 1.0, back = m > 0x1p500 ? 0x1p600 : m < 0x1p-500 ? 0x1p-600 : 1.0;
    p *= scale;
    q *= scale;
    double y = sqrt(p * p + q * q) * back;
    return (fabs(a) == AG_INF_F64) | (fabs(b) == AG_INF_F64) ? AG_INF_F64 : y;
}

/* ---- the next number: that of the next larger or smaller bits, the sign aside */

#define AG_NEXTAFTER(T, D, INT, C, SMALLEST) \
AG_INLINE T ag_nextafter_##D(T a, T b) { \
    INT back = ag_bits_##D(ag_select_##D((a < b) == (a > 0), (T)0, ag_from_bits_##D(-1)));       /* 0, or -1: towards 0 */ \
    T y = ag_from_bits_##D(ag_bits_##D(a) + (back | 1)); \
    y = a == 0 ? copysign##C(SMALLEST, b) : y; \
    y = a == b ? b : y; \
    return (a != a) | (b != b) ? a + b : y; }
AG_NEXTAFTER(float, f32, int32_t, f, 0x1p-149f)
AG_NEXTAFTER(double, f64, int64_t, , 0x1p-1074)

/* ---- integers: a - b trunc(a / b); shifts by any number: what leaves at an end is lost, and a negative number counts as a large one */

#define AG_INTEGER_FMOD(T, D) \
AG_INLINE T ag_fmod_##D(T a, T b) { \
    T d = (b == 0) | ((b == (T)-1) & ((T)-1 < 0)) ? 1 : b; \
    return (T)(b == 0 ? 0 : a % d); }
#define AG_SHIFTS(T, U, D, BITS) \
AG_INLINE T ag_bitwise_left_shift_##D(T a, T n) { return (n < 0) | (n >= BITS) ? 0 : (T)((U)a << (n & (BITS - 1))); } \
AG_INLINE T ag_bitwise_right_shift_##D(T a, T n) { return (T)(a >> ((n < 0) | (n >= BITS) ? BITS - 1 : n)); }

AG_INTEGER_FMOD(int64_t, i64)
AG_INTEGER_FMOD(int32_t, i32)
AG_INTEGER_FMOD(uint8_t, u8)
AG_SHIFTS(int64_t, uint64_t, i64, 64)
AG_SHIFTS(int32_t, uint32_t, i32, 32)
/* by 1, 2 and 4 where n has that bit: processors know no shift of bytes by different numbers */
AG_INLINE uint8_t ag_bitwise_left_shift_u8(uint8_t a, uint8_t n) {
    a = n & 1 ? (uint8_t)(a << 1) : a;
    a = n & 2 ? (uint8_t)(a << 2) : a;
    a = n & 4 ? (uint8_t)(a << 4) : a;
    return n > 7 ? 0 : a;
}
AG_INLINE uint8_t ag_bitwise_right_shift_u8(uint8_t a, uint8_t n) {
    a = n & 1 ? (uint8_t)(a >> 1) : a;
    a = n & 2 ? (uint8_t)(a >> 2) : a;
    a = n & 4 ? (uint8_t)(a >> 4) : a;
    return n > 7 ? 0 : a;
}
