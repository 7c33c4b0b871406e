/* Transcendental functions of double, included by vecmath.h. */
AG_INLINE double ag_exp_f64(double x) { return exp(x); }
AG_INLINE double ag_expm1_f64(double x) { return expm1(x); }
AG_INLINE double ag_exp2_f64(double x) { return exp2(x); }
AG_INLINE double ag_log_f64(double x) { return log(x); }
AG_INLINE double ag_log2_f64(double x) { return log2(x); }
AG_INLINE double ag_log10_f64(double x) { return log10(x); }
AG_INLINE double ag_log1p_f64(double x) { return log1p(x); }
AG_INLINE double ag_sin_f64(double x) { return sin(x); }
AG_INLINE double ag_cos_f64(double x) { return cos(x); }
AG_INLINE double ag_tan_f64(double x) { return tan(x); }
AG_INLINE double ag_tanh_f64(double x) { return tanh(x); }
AG_INLINE double ag_sinh_f64(double x) { return sinh(x); }
AG_INLINE double ag_cosh_f64(double x) { return cosh(x); }
AG_INLINE double ag_asin_f64(double x) { return asin(x); }
AG_INLINE double ag_acos_f64(double x) { return acos(x); }
AG_INLINE double ag_atan_f64(double x) { return atan(x); }
AG_INLINE double ag_erf_f64(double x) { return erf(x); }
AG_INLINE double ag_erfc_f64(double x) { return erfc(x); }
AG_INLINE double ag_atan2_f64(double y, double x) { return atan2(y, x); }
AG_INLINE double ag_pow_f64(double x, double y) { return pow(x, y); }
AG_INLINE double ag_sigmoid_f64(double x) {
    double e = ag_exp_f64(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}
AG_INLINE double ag_softplus_f64(double x) { return (x > 0 ? x : x != x ? x : 0) + ag_log1p_f64(ag_exp_f64(-fabs(x))); }
AG_INLINE double ag_logsigmoid_f64(double x) { return (x < 0 ? x : x != x ? x : 0) - ag_log1p_f64(ag_exp_f64(-fabs(x))); }
