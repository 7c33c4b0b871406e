/* Incomplete gamma functions and Hurwitz' zeta function, in double whatever the dtype, for blocks of numbers.
 * It relies on special_blocks.h, on the elementwise loops of double for exp, expm1, log and erfcx, and on vecmath.h. The module of the
 * loops of rare rows has it, compiled for every processor alike (ops/rare.py).
 *
 * Each pair of arguments takes one of four ways; those that take the same are laid side by side. Formulas are those of the NIST Digital
 * Library of Mathematical Functions (dlmf.nist.gov): 8.7 the series, 8.9 the continued fraction, 8.12 the uniform expansion (N. Temme, "The
 * asymptotic expansion of the incomplete gamma functions", SIAM J. Math. Anal. 10, 1979). P + Q = 1; a way gives the one of them that has
 * all its digits.
 */
#ifndef AG_SPECIAL_GAMMA_H
#define AG_SPECIAL_GAMMA_H

#include "special_blocks.h"
#include "vecmath.h"

enum { AG_ZETA, AG_GAMMAINC, AG_GAMMAINCC };           /* in the order of OF_TWO in ops/rare.py */
enum { AG_SUM = 1, AG_FRACTION, AG_UNIFORM, AG_TAYLOR };

/* x^a e^-x / gamma(a + 1). Up to a = 1 by log(gamma(a + 1)) / a, in a / 0.61 - 1; beyond by Stirling's formula, of whose logarithm a times
 * the error is in 1 - 4 / (a + 1), and the exponent -a (q - 1 - log q), q = x / a: near a that difference is made first, far from it
 * a log q - (x - a), both with the roundings of quotients and differences made good. */
AG_APART void ag_gamma_front(AG_GIVEN, const double *__restrict a, const double *__restrict x, double *__restrict y) {
    double s[AG_PART], v[AG_PART];
    int all, some = ag_beyond(m, a, 1.0, &all);
    if (!all) {
        AG_ALONG(i) s[i] = a[i] * (1 / 0.61) - 1.0;
        AG_POLYNOMIAL(lgamma1p, s, v);
        ag_map(f->log, m, x, y);
        AG_ALONG(i) y[i] = a[i] * y[i] - (a[i] * v[i] + x[i]);
    }
    if (some) {
        AG_ALONG(i) s[i] = 1.0 - 4.0 / (a[i] + 1.0);
        AG_POLYNOMIAL(stirling, s, v);
        AG_ALONG(i) {
            double d = x[i] - a[i], q = x[i] / a[i], qh = ag_cut_f64(q), ah = ag_cut_f64(a[i]), k, t = ag_log_split_f64(q, &k);
            double rest = ((x[i] - qh * ah) - qh * (a[i] - ah)) - (q - qh) * a[i], low1 = x[i] - (d + a[i]), low2 = (x[i] - d) - a[i];
            double tail = ag_log_tail_f64(t) - k * AG_LN2_LO_F64, part = a[i] * (k * AG_LN2_HI_F64 + (t - tail)), far = part - d;
            double near = (((q - 1.0) - t) - k * AG_LN2_HI_F64) + (tail + (q - 1.0) * (rest / x[i]));
            low1 = ((part - far) - d) - low1;
            low2 = (part - (far + d)) - low2;
            rest /= q;
            rest = q > 1e-290 ? rest : 0.0;
            far += rest + (d < 0.0 ? low1 : low2);
            far = fabs(k) <= 1.0 ? -(a[i] * near) : far;
            y[i] = a[i] > 1.0 ? far - v[i] / a[i] : y[i];
        }
    }
    ag_map(f->exp, m, y, y);
    if (some) AG_ALONG(i) y[i] *= a[i] > 1.0 ? 1.0 / sqrt(2 * AG_PI * a[i]) : 1.0;
}

#define AG_LANES 8
#define AG_EACH_LANE(j) for (int j = 0; j < AG_LANES; j++)

/* 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., four terms for each division. What has converged stays, so that no result depends on its
 * neighbours. */
AG_APART void ag_gamma_sum(ptrdiff_t m, double enough, const double *a, const double *x, double *y) {
    for (ptrdiff_t i = 0; i < m; i += AG_LANES) {
        double term[AG_LANES], sum[AG_LANES], c[AG_LANES], z[AG_LANES], more = 1.0;
        AG_EACH_LANE(j) {
            term[j] = sum[j] = 1.0;
            c[j] = a[i + j];
            z[j] = x[i + j] < 1e30 ? x[i + j] : 1e30;                 /* what is beyond is times 0 */
        }
        for (int k = 0; k < 200 && more > 0.0; k++) {
            more = 0.0;
            AG_EACH_LANE(j) {
                double c1 = c[j] + 1.0, c2 = c[j] + 2.0, c3 = c[j] + 3.0, c4 = c[j] + 4.0, c34 = c3 * c4, c234 = c2 * c34;
                double live = term[j] > enough * sum[j] ? 1.0 : 0.0, part = term[j] / (c1 * c234) * (live * z[j]), z2 = z[j] * z[j];
                sum[j] += part * ((c234 + z[j] * c34) + z2 * (c4 + z[j]));
                term[j] = part * (z2 * z[j]);
                c[j] = c4;
                more += live;
            }
        }
        AG_EACH_LANE(j) y[i + j] = sum[j];
    }
}
/* 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))) as a sum of the differences of its convergents, by Steed's
 * method (A. Barnett, D. Feng, J. Steed and L. Goldfarb, Computer Physics Communications 8, 1974) */
AG_APART void ag_gamma_fraction(ptrdiff_t m, double enough, const double *a, const double *x, double *y) {
    for (ptrdiff_t i = 0; i < m; i += AG_LANES) {
        double sum[AG_LANES], step[AG_LANES], d[AG_LANES], b[AG_LANES], c[AG_LANES], more = 1.0;
        AG_EACH_LANE(j) {
            double z = x[i + j] < 1e30 ? x[i + j] : 1e30;
            c[j] = a[i + j];
            b[j] = z + 1.0 - c[j];
            sum[j] = step[j] = d[j] = 1.0 / b[j];
        }
        for (double k = 1.0; k < 800.0 && more > 0.0; k += 2.0) {
            more = 0.0;
            AG_EACH_LANE(j) {
                double live = fabs(step[j]) > enough * sum[j] ? 1.0 : 0.0, b1 = b[j] + 2.0, b2 = b[j] + 4.0;
                double d1 = 1.0 / (b1 + k * (c[j] - k) * d[j]), s1 = live * step[j] * (b1 * d1 - 1.0);
                d[j] = 1.0 / (b2 + (k + 1.0) * (c[j] - (k + 1.0)) * d1);
                step[j] = s1 * (b2 * d[j] - 1.0);
                sum[j] += s1 + step[j];
                b[j] = b2;
                more += live;
            }
        }
        AG_EACH_LANE(j) y[i + j] = sum[j];
    }
}
/* a >= 100, x within 0.3 a of it: Q where x >= a, otherwise P, e^(-a eta^2 / 2) (erfcx(|eta| sqrt(a / 2)) / 2 +- c(eta) / sqrt(2 pi a)),
 * where c = c0 + c1 / a + ... are polynomials of 16, 14, 12, 10, 8, 6 and 2 terms, one behind the other. */
AG_APART void ag_gamma_uniform(AG_GIVEN, const double *__restrict a, const double *__restrict x, double *__restrict y) {
    double eta[AG_PART], e[AG_PART], u[AG_PART], v[AG_PART];
    const double *c = S->uniform + sizeof(S->uniform) / sizeof(double);
    AG_ALONG(i) {
        double over = (x[i] - a[i]) / a[i], lost = ag_log_tail_f64(over);
        eta[i] = copysign(sqrt(2.0 * lost), over);
        e[i] = -(a[i] * lost);
        u[i] = sqrt(a[i] * lost);
        y[i] = 0.0;
    }
    for (int terms = 2; terms <= 16; terms += terms == 2 ? 4 : 2) {
        c -= terms;
        ag_polynomial(m, terms, c, eta, v);
        AG_ALONG(i) y[i] = y[i] / a[i] + v[i];
    }
    ag_map(f->erfcx, m, u, v);
    ag_map(f->exp, m, e, e);
    AG_ALONG(i) {
        double c = y[i] / sqrt(2 * AG_PI * a[i]);
        y[i] = e[i] * (0.5 * v[i] + (x[i] < a[i] ? -c : c));
    }
}
/* Q for small a and x: 1 - w - w a sum over n >= 1 of (-x)^n / (n! (a + n)), w = x^a / gamma(a + 1) */
AG_APART void ag_gamma_taylor(AG_GIVEN, const double *__restrict a, const double *__restrict x, double *__restrict y) {
    double s[AG_PART], u[AG_PART], v[AG_PART];
    AG_ALONG(i) s[i] = a[i] * (1 / 0.61) - 1.0;
    AG_POLYNOMIAL(lgamma1p, s, v);
    ag_map(f->log, m, x, u);
    AG_ALONG(i) {
        u[i] = a[i] * (u[i] - v[i]);
        s[i] = 1.0;
        y[i] = 0.0;
    }
    ag_map(f->expm1, m, u, u);
    for (double n = 1.0; n < (f32 ? 15.0 : 22.0); n += 1.0)
        AG_ALONG(i) {
            s[i] *= x[i] * (-1.0 / n);
            y[i] += s[i] / (a[i] + n);
        }
    AG_ALONG(i) y[i] = -u[i] - (1.0 + u[i]) * (a[i] * y[i]);
}

/* P, or the upper one, Q. Where a or x is 0 or infinite, and where there is no result, the way ends here. */
AG_APART void ag_gamma_block(AG_GIVEN, int upper, const double *__restrict a, const double *__restrict x, double *__restrict y) {
    const double enough = f32 ? 0x1p-30 : 0x1p-54;
    unsigned char at[AG_PART];
    double way[AG_PART], some_a[AG_PART], some_x[AG_PART], r[AG_PART], front[AG_PART];
    const double bound = upper ? 1.5 : 4.0, small = upper ? 1.2 : 0.0, below = upper ? 0.0 : 1.0;
    AG_ALONG(i) {                                      /* one comparison in each choice: so it is vectorised without SSE4 */
        double p = a[i], q = x[i], end = p < q ? below : 1.0 - below;
        double t = p >= 1.0 ? p + 1.0 : p, w = q <= t ? (double)AG_SUM : (double)AG_FRACTION;
        w = q <= bound ? (double)AG_SUM : w;
        t = q <= bound ? (double)AG_TAYLOR : w;
        w = p <= small ? t : w;
        w = p <= 1e20 ? w : 0.0;                       /* beyond, what is not near a is 0 or 1 */
        t = fabs(q - p) <= 0.3 * p ? (double)AG_UNIFORM : w;
        w = p >= 100.0 ? t : w;
        w = p > 0.0 ? w : 0.0;
        w = q > 0.0 ? w : 0.0;
        w = p < INFINITY ? w : 0.0;
        way[i] = q < INFINITY ? w : 0.0;
        end = p >= 0.0 ? end : NAN;
        end = q >= 0.0 ? end : NAN;
        y[i] = p == q ? NAN : end;
    }
    for (int w = AG_SUM; w <= AG_TAYLOR; w++) {
        const double *b = a, *z = x;
        ptrdiff_t n = m, count = 0, lanes = m;
        double these = 0.0;
        AG_ALONG(i) these += way[i] == (double)w ? 1.0 : 0.0;
        if (these == 0.0) continue;
        if (these < (double)m) {
            for (ptrdiff_t i = 0; i < m; i++)
                if (way[i] == w) {
                    some_a[count] = a[i];
                    some_x[count] = x[i];
                    at[count++] = (unsigned char)i;
                }
            for (n = count; n & 15; n++) {
                some_a[n] = some_a[0];
                some_x[n] = some_x[0];
            }
            b = some_a;
            z = some_x;
            lanes = (count + AG_LANES - 1) & -AG_LANES;
        }
        if (w == AG_SUM) ag_gamma_sum(lanes, enough, b, z, r);
        else if (w == AG_FRACTION) ag_gamma_fraction(lanes, enough, b, z, r);
        else if (w == AG_UNIFORM) ag_gamma_uniform(n, S, f, f32, b, z, r);
        else ag_gamma_taylor(n, S, f, f32, b, z, r);
        if (w <= AG_FRACTION) ag_gamma_front(n, S, f, f32, b, z, front);
        for (ptrdiff_t i = 0; i < (n & -16); i++) {
            double v = w == AG_SUM ? r[i] * front[i] : w == AG_FRACTION ? r[i] * (front[i] * b[i]) : r[i];
            int lower = w == AG_SUM || (w == AG_UNIFORM && z[i] < b[i]);
            r[i] = lower == upper ? 1.0 - v : v;
        }
        if (these == (double)m) AG_ALONG(i) y[i] = r[i];
        for (ptrdiff_t i = 0; i < count; i++) y[at[i]] = r[i];
    }
}

/* Sum of 1 / (q + k)^s over k >= 0: some terms e^(-s log(q + k)) and the tail, by Euler and Maclaurin's formula (see ag_zeta_tail_f64), of
 * which the error is less than 2^-52 (2^-29 for float) of the sum; what is not usual by itself. */
AG_APART void ag_zeta_block(AG_GIVEN, const double *__restrict s, const double *__restrict q, double *__restrict y) {
    double u[15 * AG_PART], terms[AG_PART], tail[AG_PART], factor[AG_PART], square[AG_PART], usual = 0.0;
    int all, most = ag_beyond(m, s, 4.0, &all) ? 14 : f32 ? 4 : 8;
    for (int k = 0; k <= most; k++) AG_ALONG(i) u[k * m + i] = q[i] + (double)k;
    ag_map(f->log, (most + 1) * m, u, u);
    for (int k = 0; k <= most; k++) AG_ALONG(i) u[k * m + i] *= -s[i];
    ag_map(f->exp, (most + 1) * m, u, u);
    AG_ALONG(i) {
        double n = s[i] > 4.0 ? 14.0 : f32 ? 4.0 : 8.0, end = q[i] + n;
        terms[i] = n;
        tail[i] = end / (s[i] - 1.0) + 0.5;
        factor[i] = s[i] / end;
        square[i] = 1.0 / (end * end);
        y[i] = 0.0;
    }
    for (int k = 0; k < (f32 ? 6 : 9); k++)
        AG_ALONG(i) {
            tail[i] += ag_zeta_numbers[k] * factor[i];
            factor[i] *= (s[i] + (double)(2 * k + 1)) * (s[i] + (double)(2 * k + 2)) * square[i];
        }
    for (int k = 0; k <= most; k++)
        AG_ALONG(i) {
            double last = (double)k == terms[i] ? tail[i] : 0.0;
            y[i] += u[k * m + i] * ((double)k < terms[i] ? 1.0 : last);
        }
    AG_ALONG(i) usual += (s[i] > 1.0) & (s[i] < 100.0) & (q[i] > 0.0) & (q[i] < 1e15) ? 1.0 : 0.0;
    for (ptrdiff_t i = 0; i < m && usual < (double)m; i++)
        if (!((s[i] > 1.0) & (s[i] < 100.0) & (q[i] > 0.0) & (q[i] < 1e15))) y[i] = ag_zeta_f64(s[i], q[i]);
}

/* Function number `which` of n pairs, p[0] from p[1] and p[2] */
#define AG_OF_TWO(T, D) \
static void ag_of_two_##D(const AG_Series *S, const AG_Loops *f, int which, ptrdiff_t n, char **p) { \
    double a[AG_PART], x[AG_PART], y[AG_PART]; \
    for (ptrdiff_t start = 0; start < n; start += AG_PART) { \
        ptrdiff_t size = n - start < AG_PART ? n - start : AG_PART, m = (size + 15) & -16; \
        ag_take_##D(size, m, (const T *)p[1] + start, which == AG_ZETA ? (T)2 : (T)1, a); \
        ag_take_##D(size, m, (const T *)p[2] + start, (T)1, x); \
        if (which == AG_ZETA) ag_zeta_block(m, S, f, sizeof(T) == 4, a, x, y); \
        else ag_gamma_block(m, S, f, sizeof(T) == 4, which == AG_GAMMAINCC, a, x, y); \
        ag_put_##D(size, m, y, (T *)p[0] + start); } }
AG_OF_TWO(float, f32)
AG_OF_TWO(double, f64)

#endif
