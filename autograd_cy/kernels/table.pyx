# The home of the kernel table `K`, and the choice of the instruction-set level that fills it.
#
# Relies on array/dtype.  kernels/__init__.py, every module of loops and the engine rely on it.

from autograd_cy.array.errors import ShapeError

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


cdef int n_routines = 0
NUMBERS = {}                  # name of a routine -> its number
ERRORS = {}                   # number -> its error function, or an exception (None: ShapeError) and a text


cdef int add_routine(const char* name, const char* roles, Routine run, object error=None) except -1:
    global n_routines
    if n_routines == MAX_ROUTINES:
        raise RuntimeError("the table of routines is full: raise MAX_ROUTINES")
    routines[n_routines].run, routines[n_routines].name, routines[n_routines].roles = run, name, roles
    routines[n_routines].checks = error is not None
    NUMBERS[(<bytes> name).decode()] = n_routines
    if error is not None:
        ERRORS[n_routines] = error
    n_routines += 1
    return n_routines - 1


def routine_number(name):
    """The number of a routine in this process; its module is imported where it was not."""
    if name not in NUMBERS:
        __import__("autograd_cy.kernels." + name.partition(".")[0])
    return NUMBERS[name]


def routine_error(number, status, arrays, ints):
    """The exception that says what was wrong."""
    if status == OUT_OF_MEMORY:
        return MemoryError(f"out of memory for the workspace of {(<bytes> routines[<int> number].name).decode()}")
    error = ERRORS[number]
    if not isinstance(error, tuple):
        return error(status, arrays, ints)
    kind, text = error
    return (kind or ShapeError)(text.format(status=status, arrays=arrays, ints=ints))


cdef Py_ssize_t run_routine(int number, const Array* arrays, int n_ints, const Py_ssize_t* ints, int n_numbers,
                            const double* numbers) noexcept nogil:
    return routines[number].run(arrays, ints, numbers)


K.routine = run_routine
