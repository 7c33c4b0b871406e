/* Special functions by series: Bessel functions, Airy functions, erfcx, log_ndtr, ndtri. In double whatever the dtype, for blocks of
 * numbers: a polynomial of 12 to 32 terms is a loop over its coefficients with 16 numbers in registers, so that functions are little code.
 * It relies on special_blocks.h and on the elementwise loops of double for exp, log, sin and cos. ops/codegen.py puts it
 * into the modules of loops of the baseline and of v3 (v4 gains nothing); the loops of rows (ops/table/special.py) call it by K.special.
 */
#ifndef AG_SPECIAL_H
#define AG_SPECIAL_H

#include "special_blocks.h"

/* in the order of SERIES in ops/codegen.py */
enum { AG_I0, AG_I0E, AG_I1, AG_I1E, AG_J0, AG_J1, AG_Y0, AG_Y1, AG_K0, AG_K0E, AG_K1, AG_K1E, AG_AIRY, AG_AIRY_SLOPE, AG_ERFCX,
       AG_LOG_NDTR, AG_NDTRI };

/* Order 0 or 1, scaled: times e^-|x|. Up to 8 in (x / 2)^2; beyond e^-x sqrt(x) I(x) in 16 / x - 1. */
AG_APART void ag_bessel_i(AG_GIVEN, int order, int scaled, const double *__restrict x, double *__restrict y) {
    double a[AG_PART], s[AG_PART], e[AG_PART], far[AG_PART];
    int all, some;
    AG_ALONG(i) { a[i] = fabs(x[i]); s[i] = 0.25 * (x[i] * x[i]); }
    some = ag_beyond(m, a, 8.0, &all);
    if (some | scaled) {
        AG_ALONG(i) e[i] = scaled ? -a[i] : 0.5 * a[i];
        ag_map(f->exp, m, e, e);
    }
    if (!all) {
        ag_polynomial(m, f32 ? 16 : 24, order ? S->i1_near : S->i0_near, s, y);
        if (order | scaled) AG_ALONG(i) y[i] = y[i] * (order ? x[i] : 1.0) * (scaled ? e[i] : 1.0);
    }
    if (some) {
        AG_ALONG(i) s[i] = 16.0 / (a[i] < 8.0 ? 8.0 : a[i]) - 1.0;
        if (f32) AG_EITHER(order, i1_far_f32, i0_far_f32, s, far);
        else AG_EITHER(order, i1_far, i0_far, s, far);
        AG_ALONG(i) {
            double r = far[i] / sqrt(scaled | (a[i] < 1e300) ? a[i] : 1e300) * (scaled ? 1.0 : e[i]) * (scaled ? 1.0 : e[i]);
            far[i] = order & (x[i] < 0.0) ? -r : r;
        }
        ag_choose(m, a, 8.0, far, y);
    }
}

/* J (x of any sign) and Y, order 0 or 1. Up to 8 in x^2 / 32 - 1: J, or J / x; Y less (2 / pi) log(x) J, for order 1 plus 2 / (pi x).
 * Beyond sqrt(2 / (pi x)) times a sine and a cosine of x - pi / 4 and their factors, which are in 128 / x^2 - 1. */
AG_APART void ag_bessel_jy(AG_GIVEN, int order, int second, const double *__restrict x, double *__restrict y) {
    double a[AG_PART], s[AG_PART], p[AG_PART], q[AG_PART], u[AG_PART], v[AG_PART];
    int all, some;
    AG_ALONG(i) a[i] = fabs(x[i]);
    some = ag_beyond(m, a, 8.0, &all);
    if (!all) {
        AG_ALONG(i) s[i] = (x[i] * x[i]) * 0x1p-5 - 1.0;
        AG_EITHER(order, j1_near, j0_near, s, y);
        AG_ALONG(i) y[i] *= order ? x[i] : 1.0;
        if (second) {
            AG_EITHER(order, y1_near, y0_near, s, p);
            ag_map(f->log, m, a, u);
            AG_ALONG(i) y[i] = p[i] * (order ? x[i] : 1.0) + (2 / AG_PI) * (u[i] * y[i] - (order ? 1.0 / a[i] : 0.0));
        }
    }
    if (some) {
        AG_ALONG(i) s[i] = 128.0 / (x[i] * x[i]) - 1.0;
        AG_EITHER(order, p1, p0, s, p);
        AG_EITHER(order, q1, q0, s, q);
        ag_map(f->sin, m, a, u);
        ag_map(f->cos, m, a, v);
        AG_ALONG(i) {
            double c = v[i] + u[i], d = u[i] - v[i];               /* sqrt(2) cos and sin of x - pi / 4 */
            double cosine = order ? d : c, sine = order ? -c : d;
            double r = second ? p[i] * sine + q[i] * (8.0 / a[i]) * cosine : p[i] * cosine - q[i] * (8.0 / a[i]) * sine;
            r /= sqrt(AG_PI * a[i]);
            r = a[i] < INFINITY ? r : 0.0;
            u[i] = order & (x[i] < 0.0) ? -r : r;
        }
        ag_choose(m, a, 8.0, u, y);
    }
    if (second) AG_ALONG(i) y[i] = x[i] < 0.0 ? NAN : x[i] == 0.0 ? -INFINITY : y[i];
}

/* K, order 0 or 1, scaled: times e^x. Up to 2 K + log(x) I, or (K - log(x) I - 1 / x) / x, in x^2 / 2 - 1; beyond it e^x sqrt(x) K
 * in 4 / x - 1. */
AG_APART void ag_bessel_k(AG_GIVEN, int order, int scaled, const double *__restrict x, double *__restrict y) {
    double s[AG_PART], u[AG_PART], e[AG_PART];
    int all, some = ag_beyond(m, x, 2.0, &all);
    AG_ALONG(i) e[i] = !scaled ? -x[i] : x[i] < 2.0 ? x[i] : 2.0;
    if (some | scaled) ag_map(f->exp, m, e, e);
    if (!all) {
        AG_ALONG(i) s[i] = 0.25 * (x[i] * x[i]);
        ag_polynomial(m, 12, order ? S->i1_near : S->i0_near, s, y);
        ag_map(f->log, m, x, u);
        AG_ALONG(i) { y[i] *= order ? u[i] * x[i] : -u[i]; s[i] = 2.0 * s[i] - 1.0; }
        AG_EITHER(order, k1_near, k0_near, s, u);
        AG_ALONG(i) {
            double r = order ? y[i] + u[i] * x[i] + 1.0 / x[i] : y[i] + u[i];
            y[i] = (x[i] == 0.0 ? INFINITY : r) * (scaled ? e[i] : 1.0);
        }
    }
    if (some) {
        AG_ALONG(i) s[i] = 4.0 / (x[i] < 2.0 ? 2.0 : x[i]) - 1.0;
        AG_EITHER(order, k1_far, k0_far, s, u);
        AG_ALONG(i) u[i] = u[i] / sqrt(x[i]) * (scaled ? 1.0 : e[i]);
        ag_choose(m, x, 2.0, u, y);
    }
    AG_ALONG(i) y[i] = x[i] < 0.0 ? NAN : y[i];
}

/* Ai or its derivative. From -4 to 2 in (x + 1) / 3. Right of that 2 sqrt(pi) x^(1/4) e^z Ai in 2 z2 / z - 1, z = 2/3 x^(3/2), z2 = z(2);
 * left of it sqrt(pi) |x|^(1/4) Ai is P cos(z - pi/4) + Q sin(z - pi/4), where P and Q z / z4 are in 2 (z4 / z)^2 - 1. The derivative
 * likewise, with x^(-1/4), P sin - Q cos on the left and another sign on the right. */
AG_APART void ag_airy(AG_GIVEN, int slope, const double *__restrict x, double *__restrict y) {
    const double z2 = 0x1.e2b7dddfefa66p+0, z4 = 16.0 / 3;
    double a[AG_PART], s[AG_PART], z[AG_PART], u[AG_PART], v[AG_PART], w[AG_PART], q[AG_PART];
    int all;
    AG_ALONG(i) { s[i] = (x[i] + 1.0) * (1.0 / 3); a[i] = -x[i]; }
    AG_EITHER(slope, aip_mid, ai_mid, s, y);
    if (ag_beyond(m, x, 2.0, &all)) {
        AG_ALONG(i) {
            double c = x[i] < 2.0 ? 2.0 : x[i] < 1e4 ? x[i] : 1e4;
            z[i] = c * sqrt(c) * (2.0 / 3);
            s[i] = 2.0 * z2 / z[i] - 1.0;
            u[i] = -z[i];
            w[i] = sqrt(sqrt(c));
        }
        ag_map(f->exp, m, u, u);
        AG_EITHER(slope, aip_right, ai_right, s, v);
        AG_ALONG(i) v[i] = v[i] * u[i] * (slope ? -w[i] : 1.0 / w[i]) * 0x1.20dd750429b6dp-2;        /* 1 / (2 sqrt(pi)) */
        ag_choose(m, x, 2.0, v, y);
    }
    if (ag_beyond(m, a, 4.0, &all)) {
        AG_ALONG(i) {
            double c = a[i] < 4.0 ? 4.0 : a[i];
            z[i] = c * sqrt(c) * (2.0 / 3);
            u[i] = z4 / z[i];
            s[i] = 2.0 * (u[i] * u[i]) - 1.0;
            w[i] = sqrt(sqrt(c));
        }
        AG_EITHER(slope, aip_p, ai_p, s, v);
        AG_EITHER(slope, aip_q, ai_q, s, q);
        AG_ALONG(i) q[i] *= u[i];
        ag_map(f->sin, m, z, u);
        ag_map(f->cos, m, z, z);
        AG_ALONG(i) {
            double c = z[i] + u[i], d = u[i] - z[i];
            v[i] = (slope ? (v[i] * d - q[i] * c) * w[i] : (v[i] * c + q[i] * d) / w[i]) * 0x1.9884533d43651p-2;     /* 1 / sqrt(2 pi) */
        }
        ag_choose(m, a, 4.0, v, y);
    }
}

/* erfcx for x >= 0: (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75) */
AG_APART void ag_erfcx_right(AG_GIVEN, const double *__restrict x, double *__restrict y) {
    double s[AG_PART];
    AG_ALONG(i) { double c = x[i] > 1e30 ? 1e30 : x[i]; s[i] = (c - 3.75) / (c + 3.75); }
    if (f32) AG_POLYNOMIAL(erfcx_f32, s, y);
    else AG_POLYNOMIAL(erfcx, s, y);
    AG_ALONG(i) y[i] /= 1.0 + 2.0 * x[i];
}
/* left of 0: 2 e^(x^2) - erfcx(-x), with the rounding of x^2 made good */
AG_APART void ag_erfcx(AG_GIVEN, const double *__restrict x, double *__restrict y) {
    double a[AG_PART], u[AG_PART], v[AG_PART];
    int all;
    AG_ALONG(i) a[i] = fabs(x[i]);
    ag_erfcx_right(AG_PASSED, a, y);
    AG_ALONG(i) a[i] = x[i] < -30.0 ? 30.0 : -x[i];
    if (!ag_beyond(m, a, 0.0, &all)) return;
    AG_ALONG(i) {
        double high = (a[i] + 0x1.8p+46) - 0x1.8p+46;                 /* to 1 / 64: its square is exact */
        u[i] = (a[i] - high) * (a[i] + high);
        v[i] = high * high;
    }
    ag_map(f->exp, m, u, u);
    ag_map(f->exp, m, v, v);
    AG_ALONG(i) u[i] = 2.0 * u[i] * v[i] - y[i];
    ag_choose(m, a, 0.0, u, y);
}

/* log of the normal distribution function, t = erfcx(|x| / sqrt(2)) / 2: log(t) - x^2 / 2 left of 0, log(1 - t e^(-x^2 / 2)) right of it */
AG_APART void ag_log_ndtr(AG_GIVEN, const double *__restrict x, double *__restrict y) {
    double a[AG_PART], e[AG_PART], u[AG_PART];
    AG_ALONG(i) a[i] = fabs(x[i]) * 0x1.6a09e667f3bcdp-1;
    ag_erfcx_right(AG_PASSED, a, y);
    AG_ALONG(i) e[i] = -0.5 * (x[i] * x[i]);
    ag_map(f->exp, m, e, a);
    AG_ALONG(i) {
        double t = 0.5 * y[i];
        a[i] *= t;
        u[i] = x[i] < 0.0 ? t : 1.0 - a[i];
    }
    ag_map(f->log, m, u, y);
    AG_ALONG(i) y[i] += x[i] < 0.0 ? e[i] : ((1.0 - u[i]) - a[i]) / u[i];        /* what 1 - a was rounded by */
}

AG_APART void ag_ratio(ptrdiff_t m, const double *above, const double *below, const double *s, double *y) {
    double v[AG_PART];
    ag_polynomial(m, 8, above, s, y);
    ag_polynomial(m, 8, below, s, v);
    AG_ALONG(i) y[i] /= v[i];
}
/* near 1/2 in 0.425^2 - (x - 1/2)^2, in the tails in sqrt(-log) of what is less, x or 1 - x */
AG_APART void ag_ndtri(AG_GIVEN, const double *__restrict x, double *__restrict y) {
    double a[AG_PART], s[AG_PART], r[AG_PART], u[AG_PART];
    int all;
    AG_ALONG(i) { double q = x[i] - 0.5; a[i] = fabs(q); s[i] = 0.180625 - q * q; }
    ag_ratio(m, S->ndtri_above, S->ndtri_below, s, y);
    AG_ALONG(i) y[i] *= x[i] - 0.5;
    if (!ag_beyond(m, a, 0.425, &all)) return;
    AG_ALONG(i) u[i] = x[i] < 0.5 ? x[i] : 1.0 - x[i];
    ag_map(f->log, m, u, u);
    AG_ALONG(i) { r[i] = sqrt(-u[i]); s[i] = r[i] - 1.6; }
    ag_ratio(m, S->ndtri_tail_above, S->ndtri_tail_below, s, u);
    if (ag_beyond(m, r, 5.0, &all)) {
        double v[AG_PART];
        AG_ALONG(i) s[i] = r[i] - 5.0;
        ag_ratio(m, S->ndtri_far_above, S->ndtri_far_below, s, v);
        ag_choose(m, r, 5.0, v, u);
    }
    AG_ALONG(i) {
        double t = r[i] < INFINITY ? u[i] : r[i];
        u[i] = a[i] <= 0.5 ? (x[i] < 0.5 ? -t : t) : NAN;
    }
    ag_choose(m, a, 0.425, u, y);
}

AG_APART void ag_block(AG_GIVEN, int which, const double *__restrict x, double *__restrict y) {
    if (which <= AG_I1E) ag_bessel_i(AG_PASSED, which >> 1, which & 1, x, y);
    else if (which <= AG_Y1) ag_bessel_jy(AG_PASSED, which & 1, which >= AG_Y0, x, y);
    else if (which <= AG_K1E) ag_bessel_k(AG_PASSED, which >= AG_K1, which & 1, x, y);
    else if (which <= AG_AIRY_SLOPE) ag_airy(AG_PASSED, which == AG_AIRY_SLOPE, x, y);
    else if (which == AG_ERFCX) ag_erfcx(AG_PASSED, x, y);
    else if (which == AG_LOG_NDTR) ag_log_ndtr(AG_PASSED, x, y);
    else ag_ndtri(AG_PASSED, x, y);
}

/* Function number `which` of n numbers, p[0] from p[1]. What fills up a block is on the short way of each function. */
#define AG_SPECIAL(T, D) \
static void ag_special_##D(const AG_Series *S, const AG_Loops *f, int which, ptrdiff_t n, char **p) { \
    double x[AG_PART], y[AG_PART]; \
    for (ptrdiff_t start = 0; start < n; start += AG_PART) { \
        ptrdiff_t size = n - start < AG_PART ? n - start : AG_PART, m = (size + 15) & -16; \
        ag_take_##D(size, m, (const T *)p[1] + start, which == AG_NDTRI ? (T)0.5 : (T)1, x); \
        ag_block(m, S, f, sizeof(T) == 4, which, x, y); \
        ag_put_##D(size, m, y, (T *)p[0] + start); } }
AG_SPECIAL(float, f32)
AG_SPECIAL(double, f64)

#endif
