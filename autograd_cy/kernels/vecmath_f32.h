/* Transcendental functions of float, included by vecmath.h. */
AG_INLINE float ag_exp_f32(float x) { return expf(x); }
AG_INLINE float ag_expm1_f32(float x) { return expm1f(x); }
AG_INLINE float ag_exp2_f32(float x) { return exp2f(x); }
AG_INLINE float ag_log_f32(float x) { return logf(x); }
AG_INLINE float ag_log2_f32(float x) { return log2f(x); }
AG_INLINE float ag_log10_f32(float x) { return log10f(x); }
AG_INLINE float ag_log1p_f32(float x) { return log1pf(x); }
AG_INLINE float ag_sin_f32(float x) { return sinf(x); }
AG_INLINE float ag_cos_f32(float x) { return cosf(x); }
AG_INLINE float ag_tan_f32(float x) { return tanf(x); }
AG_INLINE float ag_tanh_f32(float x) { return tanhf(x); }
AG_INLINE float ag_sinh_f32(float x) { return sinhf(x); }
AG_INLINE float ag_cosh_f32(float x) { return coshf(x); }
AG_INLINE float ag_asin_f32(float x) { return asinf(x); }
AG_INLINE float ag_acos_f32(float x) { return acosf(x); }
AG_INLINE float ag_atan_f32(float x) { return atanf(x); }
AG_INLINE float ag_erf_f32(float x) { return erff(x); }
AG_INLINE float ag_erfc_f32(float x) { return erfcf(x); }
AG_INLINE float ag_atan2_f32(float y, float x) { return atan2f(y, x); }
AG_INLINE float ag_pow_f32(float x, float y) { return powf(x, y); }
AG_INLINE float ag_sigmoid_f32(float x) {
    float e = ag_exp_f32(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}
AG_INLINE float ag_softplus_f32(float x) { return (x > 0 ? x : x != x ? x : 0) + ag_log1p_f32(ag_exp_f32(-fabsf(x))); }
AG_INLINE float ag_logsigmoid_f32(float x) { return (x < 0 ? x : x != x ? x : 0) - ag_log1p_f32(ag_exp_f32(-fabsf(x))); }
