# The home of the kernel table `K`, and the choice of the instruction-set level that fills it.
#
# Relies on array/dtype.  kernels/__init__.py, every module of loops and the engine rely on it.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    static int ag_cpu_level(void) {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return 2;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 1;
        return 0;
    }
    #else
    static int ag_cpu_level(void) { return 0; }
    #endif
    """
    int ag_cpu_level() noexcept nogil


def cpu_level():
    """The highest level this processor runs: 0 baseline, 1 x86-64-v3, 2 x86-64-v4."""
    return ag_cpu_level()
