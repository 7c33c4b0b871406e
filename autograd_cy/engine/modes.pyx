# Whether operations are recorded, per thread: no_grad, enable_grad, set_grad_enabled.
#
# Relies on nothing. dispatch asks grad_enabled(); the backward pass switches the mode while it runs rules.

cimport cython

import functools
import inspect

cdef extern from *:
    """
    static __thread int ag_grad_mode = 1;      /* a new thread starts with gradients on */
    """
    int ag_grad_mode


cdef bint own_mode() noexcept:
    return ag_grad_mode


cdef bint swap_grad_mode(bint mode) noexcept:
    global ag_grad_mode
    cdef bint before = ag_grad_mode
    ag_grad_mode = mode
    modes.off += before - mode
    if modes.observer != NULL and before != mode:
        notice("mode", mode)
    return before


cdef void notice(str what, object o) noexcept:
    (<object> modes.observer)(what, o)


observing = None


def set_observer(observer):
    """Have observer(what, object) called where a history may end (graph/explain), in every thread; None: nobody."""
    global observing
    observing = observer
    modes.observer = NULL if observer is None else <PyObject*> observer


def is_grad_enabled():
    """Whether operations of this thread are recorded."""
    return bool(ag_grad_mode)


@cython.binding(False)                    # methods check the type of self only without it
cdef class GradMode:
    """A grad mode for a block (`with`), or for every call of a function or generator function (as a decorator).

    The mode before is restored at the end, after an exception too. Modes are per thread.
    """

    cdef bint mode
    cdef bint switched          # set_grad_enabled: its call already made the switch
    cdef list before

    def __cinit__(self):
        self.before = []

    def __enter__(self):
        self.before.append(swap_grad_mode(self.mode))
        return self

    def __exit__(self, *exception):
        swap_grad_mode(self.before.pop())

    def __call__(self, function):
        return decorated(function, self.mode)


def decorated(function, mode):
    """The function (or generator function) with the mode on while it runs."""
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return drive(function(*args, **kwargs), mode)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            before = swap_grad_mode(mode)
            try:
                return function(*args, **kwargs)
            finally:
                swap_grad_mode(before)
    return wrapper


def drive(generator, mode):
    """Run a generator with the mode on inside and the caller's mode outside, passing on what is sent and thrown."""
    step, value = generator.send, None
    try:
        while True:
            before = swap_grad_mode(mode)
            try:
                produced = step(value) if step != generator.throw else generator.throw(value)
            except StopIteration as stop:
                return stop.value
            finally:
                swap_grad_mode(before)
            try:
                value = yield produced
                step = generator.send
            except GeneratorExit:
                before = swap_grad_mode(mode)
                try:
                    generator.close()
                finally:
                    swap_grad_mode(before)
                raise
            except BaseException as error:
                step, value = generator.throw, error
    finally:
        generator.close()


class no_grad(GradMode):
    """Operations in the block (or decorated function) are not recorded: results do not require gradients."""

    def __new__(cls, function=None):
        if function is not None:                       # used as a bare decorator, without a call
            return no_grad()(function)
        return GradMode.__new__(cls)

    def __init__(self, function=None):
        set_mode(self, False)


class enable_grad(GradMode):
    """Operations in the block (or decorated function) are recorded, also inside no_grad."""

    def __new__(cls, function=None):
        if function is not None:
            return enable_grad()(function)
        return GradMode.__new__(cls)

    def __init__(self, function=None):
        set_mode(self, True)


class set_grad_enabled(GradMode):
    """Switch recording on or off: at once as a call, for a block with `with`, for a function as a decorator."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: expected a bool, got {type(mode).__name__}")
        set_mode(self, bool(mode))
        # The call itself switches, as a statement on its own must; `with` and decoration give back what was before.
        remember_switch(self, swap_grad_mode(bool(mode)))

    def __enter__(self):
        if not take_switch(self):
            return GradMode.__enter__(self)
        return self

    def __call__(self, function):
        if take_switch(self):
            GradMode.__exit__(self)
        return GradMode.__call__(self, function)


cdef int set_mode(GradMode self, bint mode) except -1:
    self.mode = mode
    return 0


cdef int remember_switch(GradMode self, bint before) except -1:
    self.before.append(before)
    self.switched = True
    return 0


cdef bint take_switch(GradMode self) except -1:
    """True the first time: the switch that the call made then counts as the entry."""
    cdef bint switched = self.switched
    self.switched = False
    return switched
