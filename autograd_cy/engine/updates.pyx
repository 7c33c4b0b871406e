# One call per optimiser step: walks parameter groups and state, checks, and runs the fused update kernels.
#
# Above 500 lines because the optimisers share states, checks and what is remembered of dicts, and are read side by side.
#
# Relies on tensor and on the kernels through `K`.  optim relies on it.
# Options and state are read from Python's own dicts at every step, because schedules and users change them (where CPython numbers the
# versions of its dicts, what was read from the same version is kept); the state of a parameter is an object with C fields, which a
# dict of boxed values would make three times as slow to read and write.
#
# Above 500 lines because each optimiser has its state, its options and its walk here, and they share the checks.

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memset

from autograd_cy.array.dtype cimport FLOAT64, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, OVERLAPPING, Layout, layout_contiguous, layout_decref, same_shape, shape_tuple, strides_of,
)
from autograd_cy.array.storage cimport Storage, pool, storage_decref, storage_new
from autograd_cy.engine.object cimport AG_TYPE, KNOWN_PLACES, Known, PyTypeObject, attribute_at
from autograd_cy.engine.operands cimport set_to_zero
from autograd_cy.engine.tensor cimport Tensor, is_tensor, set_grad, tensor_new
from autograd_cy.kernels.table cimport K, AdamNumbers, Moments, recorder, recording

from autograd_cy.array.errors import worded

from autograd_cy.engine.modes import enable_grad

cdef extern from *:
    """
    /* A number that no other state of any dict has; 0: unknown (deprecated from CPython 3.12 on). */
    #if PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
    #define ag_version_of(d) ((unsigned long long) ((PyDictObject*) (d))->ma_version_tag)
    #else
    #define ag_version_of(d) 0ULL
    #endif
    """
    unsigned long long ag_version_of(object d) noexcept
    PyObject* ag_item "PyList_GET_ITEM" (list items, Py_ssize_t i) noexcept

cdef enum:
    KNOWN_GROUPS = 8
    KNOWN_STATES = 256        # direct-mapped
    AT_ONCE = 32              # parameters of one call
    MANY = 32768              # elements (about 10 us) from which the interpreter lock is released; a release costs 39 ns

cdef Tensor new_state(Tensor p):
    """Zeros of the shape and dtype of p, contiguous."""
    cdef Layout* plain = layout_contiguous(p.layout.ndim, p.layout.dims)
    cdef unsigned long capturing = pool.capturing
    cdef Tensor made
    pool.capturing = 0                            # a captured step finds its state outside, as the next one will
    try:
        made = take(tensor_new(plain, p.dtype_))
    finally:
        pool.capturing = capturing
        layout_decref(plain)
    memset(made.data, 0, p.layout.numel * itemsize_of(p.dtype_))
    return made


cdef inline Tensor take(PyObject* o):
    """The object behind a new reference."""
    made = <Tensor> o
    Py_DECREF(made)
    return made


cdef class State:
    """State of one parameter; a mapping such as {"step": 3, "exp_avg": tensor, ...}, without what is not in use."""

    names = ()

    def keys(self):
        """Names of the values in use."""
        return [name for name in self.names if getattr(self, name) is not None]

    def values(self):
        """The values in use."""
        return [value for _, value in self.items()]

    def items(self):
        """(name, value) pairs in use."""
        return [(name, getattr(self, name)) for name in self.keys()]

    def get(self, name, default=None):
        """The value called `name`, or `default`."""
        value = getattr(self, name) if name in self.names else None
        return default if value is None else value

    def update(self, values):
        """Set several values from a mapping."""
        for name in values.keys():
            self[name] = values[name]

    def pop(self, name, *default):
        """Take a value out of use and return it."""
        value = self.get(name, *default) if default else self[name]
        if name in self:
            setattr(self, name, None)
        return value

    def __getitem__(self, name):
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name, value):
        if name not in self.names:
            raise worded(KeyError, "{} holds {}; got {!r}", type(self).__name__, ', '.join(self.names), name)
        setattr(self, name, value)

    def __delitem__(self, name):
        self.pop(name)

    def __contains__(self, name):
        return self.get(name) is not None

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def __repr__(self):
        return repr(dict(self.items()))

    def __reduce__(self):
        return type(self), (), dict(self.items())

    def __setstate__(self, values):
        self.update(values)


cdef class SGDState(State):
    names = ("momentum_buffer",)


cdef class CountedState(State):
    @property
    def step(self):
        """Number of updates so far; may be set from a number or a tensor of one element."""
        return self.steps

    @step.setter
    def step(self, value):
        self.steps = 0 if value is None else <long long> float(value)


cdef class AdamState(CountedState):
    names = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")


cdef class RMSpropState(CountedState):
    names = ("step", "square_avg", "momentum_buffer", "grad_avg")


cdef State adopt(type kind, PyObject* found, Tensor p, state):
    """A State for p in place of nothing, or of a plain mapping (a loaded state, or one that the user wrote)."""
    cdef State s = kind()
    if found != NULL:
        old = <object> found
        for name in old.keys():
            value = old[name]
            s[name] = value.detach().contiguous() if isinstance(value, Tensor) and name != "step" else value
    state[p] = s
    return s


cdef struct KnownState:       # an entry of a state dict
    unsigned long long version    # of the dict
    PyObject* parameter
    PyObject* state

cdef KnownState known_states[KNOWN_STATES]


cdef inline PyObject* state_of(type kind, state, Tensor p) except NULL:
    """The State of p, made if there is none (borrowed from the dict)."""
    cdef unsigned long long version = ag_version_of(state)
    cdef KnownState* known = &known_states[(<size_t> <PyObject*> p >> 4) & (KNOWN_STATES - 1)]
    cdef PyObject* found
    if version and known.version == version and known.parameter == <PyObject*> p and AG_TYPE(known.state) == <PyTypeObject*> kind:
        return known.state
    found = PyDict_GetItemWithError(state, p)
    if found == NULL or type(<object> found) is not kind:
        made = adopt(kind, found, p, state)
        found = <PyObject*> made
    known.version, known.parameter, known.state = ag_version_of(state), <PyObject*> p, found
    return found


cdef double option(dict group, str name) except? -1.0:
    cdef PyObject* found = PyDict_GetItemWithError(group, name)
    if found == NULL:
        raise worded(KeyError, "parameter group has no option {!r}", name)
    return <double> <object> found


cdef bint flag(dict group, str name) except -1:
    cdef PyObject* found = PyDict_GetItemWithError(group, name)
    return found != NULL and <bint> <object> found


cdef struct KnownGroup:
    unsigned long long version
    PyObject* params

cdef KnownGroup known_groups[KNOWN_GROUPS]


cdef inline list params_of(group):
    cdef unsigned long long version = ag_version_of(group) if type(group) is dict else 0
    cdef KnownGroup* known = &known_groups[version & (KNOWN_GROUPS - 1)]
    if version and known.version == version:
        return <list> known.params
    params = group["params"]
    if type(params) is not list:
        return list(params)
    known.version, known.params = version, <PyObject*> params
    return params


cdef inline int check_state(state) except -1:
    if not isinstance(state, dict):
        raise worded(TypeError, "optimizer.state must be a dict, got {}", type(state).__name__)
    return 0


cdef inline int check(Tensor t, Tensor p, str what) except -1:
    """What the kernels rely on: same shape and dtype as the parameter, contiguous."""
    if t is None or t.layout != p.layout or t.dtype_ != p.dtype_ or not t.layout.flags & CONTIGUOUS:
        check_closely(t, p, what)
    return 0


cdef int check_closely(Tensor t, Tensor p, str what) except -1:
    if t is None or t.dtype_ != p.dtype_ or not same_shape(t.layout, p.layout):
        found = "None" if t is None else f"shape {shape_tuple(t.layout)} and {t.dtype}"
        raise worded(RuntimeError, "optimizer: {} has {}, but its parameter has shape {} and {.dtype}",
                                   what, found, shape_tuple(p.layout), p)
    if not t.layout.flags & CONTIGUOUS:
        raise worded(RuntimeError, "optimizer: {} is not contiguous", what)
    return 0


cdef Tensor gradient(Tensor p):
    """p's gradient, checked and contiguous; None if it has none."""
    cdef Tensor g
    if recording():
        recorder.leaf(p, True)
    if p.grad_ == NULL:
        return None
    g = <Tensor> p.grad_
    if p.dtype_ > FLOAT64:
        raise worded(TypeError, "optimizer: parameters must be float32 or float64, got {.dtype}", p)
    if not g.layout.flags & CONTIGUOUS:
        g = g.detach().contiguous()
    check(g, p, "gradient")
    return g


cdef struct Values:           # the values of a parameter, contiguous
    char* data
    Storage* copy             # NULL, or the contiguous copy of a strided parameter


cdef inline int values_open(Tensor p, Values* v) except -1:
    v.data = p.data
    v.copy = NULL
    return 0 if p.layout.flags & CONTIGUOUS else values_copy(p, v)


cdef int values_copy(Tensor p, Values* v) except -1:
    cdef Layout* plain
    if p.layout.flags & OVERLAPPING:
        raise RuntimeError("optimizer: several elements of a parameter share memory (an expanded view); give its contiguous() "
                           "copy to the optimizer")
    plain = layout_contiguous(p.layout.ndim, p.layout.dims)
    try:
        v.copy = storage_new(p.layout.numel * itemsize_of(p.dtype_))
        v.data = v.copy.data
        K.copy(p.layout.ndim, p.layout.dims, p.dtype_, v.data, strides_of(plain), p.dtype_, p.data, strides_of(p.layout))
    finally:
        layout_decref(plain)
    return 0


cdef int values_close(Tensor p, Values* v) except -1:
    """Write a copy back, and note that the parameter changed."""
    cdef Layout* plain
    p.storage.version += 1
    if v.copy != NULL:
        plain = layout_contiguous(p.layout.ndim, p.layout.dims)
        K.copy(p.layout.ndim, p.layout.dims, p.dtype_, p.data, strides_of(p.layout), p.dtype_, v.data, strides_of(plain))
        layout_decref(plain)
        storage_decref(v.copy)
    return 0


cdef int sgd(groups, state) except -1:
    """One step of SGD for all groups; state: dict from parameter to its State or to a mapping."""
    cdef Tensor p, g, buf
    cdef SGDState s
    cdef dict group
    cdef list params
    cdef Py_ssize_t i, n
    cdef double lr, momentum, dampening, decay
    cdef bint nesterov, maximize, first
    cdef char* buffer
    cdef Values v
    check_state(state)
    for group in groups:
        lr = option(group, "lr")
        momentum = option(group, "momentum")
        dampening = option(group, "dampening")
        decay = option(group, "weight_decay")
        nesterov = flag(group, "nesterov")
        maximize = flag(group, "maximize")
        params = params_of(group)
        for i in range(len(params)):
            p = <Tensor?> params[i]
            g = gradient(p)
            if g is None:
                continue
            first = False
            buffer = NULL
            if momentum != 0.0:
                s = <SGDState> state_of(SGDState, state, p)
                buf = s.momentum_buffer
                if buf is None:
                    first = True
                    buf = s.momentum_buffer = new_state(p)
                check(buf, p, "momentum_buffer")
                buffer = buf.data
                buf.storage.version += 1
            values_open(p, &v)
            n = p.layout.numel
            if recording():
                recorder.update(group, state, s if momentum != 0.0 else None, p)
            if n < MANY:
                K.sgd(p.dtype_, n, v.data, g.data, buffer, lr, momentum, dampening, decay, nesterov, maximize, first)
            else:
                with nogil:
                    K.sgd(p.dtype_, n, v.data, g.data, buffer, lr, momentum, dampening, decay, nesterov, maximize, first)
            values_close(p, &v)


cdef struct AdamOptions:
    unsigned long long version    # of the group
    AdamNumbers numbers
    bint amsgrad

cdef AdamOptions adam_options[KNOWN_GROUPS]


cdef inline AdamOptions* options_of_adam(dict group) except NULL:
    cdef unsigned long long version = ag_version_of(group)
    cdef AdamOptions* o = &adam_options[version & (KNOWN_GROUPS - 1)]
    if not version or o.version != version:
        read_adam(group, o)
    return o


cdef int read_adam(dict group, AdamOptions* o) except -1:
    cdef AdamNumbers* numbers = &o.numbers
    o.version = 0
    betas = group["betas"]
    first, second = betas
    numbers.lr, numbers.beta1, numbers.beta2 = option(group, "lr"), first, second
    numbers.eps, numbers.decay = option(group, "eps"), option(group, "weight_decay")
    numbers.maximize, numbers.decoupled = flag(group, "maximize"), flag(group, "decoupled_weight_decay")
    o.amsgrad = flag(group, "amsgrad")
    if type(betas) is tuple and plain(first) and plain(second):
        for name in ("lr", "eps", "weight_decay", "amsgrad", "maximize", "decoupled_weight_decay"):
            if not plain(group.get(name)):
                return 0
        o.version = ag_version_of(group)
    return 0


cdef bint plain(x):
    """Whether an option can't change but by another value in its place."""
    return x is None or type(x) is float or type(x) is int or type(x) is bool


@cython.nonecheck(False)
cdef inline bint matches(PyObject* t, Layout* layout, int dtype) noexcept:
    return t != <PyObject*> None and (<Tensor> t).layout == layout and (<Tensor> t).dtype_ == dtype


cdef inline void changed(Storage* storage) noexcept:
    storage.version += 1


@cython.nonecheck(False)
cdef inline bint moments_at_once(PyObject* o, unsigned long long version, int* dtype, long long* steps, Moments* made) noexcept:
    """The usual parameter: its state was met in this version of the state dict, all is as expected. False: not that.

    dtype and steps: those of the parameters before, which this one must share; negative before the first.
    """
    cdef KnownState* known = &known_states[(<size_t> o >> 4) & (KNOWN_STATES - 1)]
    cdef PyObject* g
    cdef PyObject* m
    cdef PyObject* sq
    cdef Layout* layout
    cdef int kind
    if known.version != version or known.parameter != o or AG_TYPE(known.state) != <PyTypeObject*> AdamState:
        return False
    g = (<Tensor> o).grad_
    m = <PyObject*> (<AdamState> known.state).exp_avg
    sq = <PyObject*> (<AdamState> known.state).exp_avg_sq
    layout, kind = (<Tensor> o).layout, (<Tensor> o).dtype_
    if g == NULL or not layout.flags & CONTIGUOUS or layout.numel >= MANY or kind > FLOAT64 or not matches(g, layout, kind) \
            or not matches(m, layout, kind) or not matches(sq, layout, kind):
        return False
    if steps[0] < 0:
        steps[0], dtype[0] = (<AdamState> known.state).steps, kind
    elif (<AdamState> known.state).steps != steps[0] or kind != dtype[0]:
        return False
    (<AdamState> known.state).steps = steps[0] + 1
    changed((<Tensor> m).storage)
    changed((<Tensor> sq).storage)
    changed((<Tensor> o).storage)
    made.n, made.p, made.g = layout.numel, (<Tensor> o).data, (<Tensor> g).data
    made.m, made.v, made.vmax = (<Tensor> m).data, (<Tensor> sq).data, NULL
    return True


cdef int adam_at_once(list params, Py_ssize_t i, unsigned long long version, const AdamNumbers* numbers) noexcept:
    """Update the usual parameters from the i-th on, as many as follow each other, in one call: 10 ns each less. Returns how many."""
    cdef Moments found[AT_ONCE]
    cdef int count = 0, dtype = 0, room = min(<Py_ssize_t> AT_ONCE, len(params) - i)
    cdef long long steps = -1
    while count < room \
            and moments_at_once(ag_item(params, i + count), version, &dtype, &steps, &found[count]):
        count += 1
    if count:
        K.adam(dtype, count, found, numbers, steps + 1)
    return count


cdef int adam(groups, state) except -1:
    """One step of Adam or AdamW for all groups; state: dict from parameter to its State or to a mapping."""
    cdef Tensor p, g, m, sq
    cdef AdamState s
    cdef dict group
    cdef list params
    cdef Py_ssize_t i
    cdef int done
    cdef long long steps
    cdef unsigned long long version
    cdef AdamOptions o
    cdef Moments moments
    cdef Values v
    check_state(state)
    for group in groups:
        o = options_of_adam(group)[0]
        params = params_of(group)
        version = 0 if recording() or o.amsgrad else ag_version_of(state)
        i = 0
        while i < len(params):
            done = adam_at_once(params, i, version, &o.numbers) if version else 0
            i += done or 1
            if done:
                continue
            p = <Tensor?> params[i - 1]
            g = gradient(p)
            if g is None:
                continue
            s = <AdamState> state_of(AdamState, state, p)
            if s.exp_avg is None:
                s.exp_avg = new_state(p)
            if s.exp_avg_sq is None:
                s.exp_avg_sq = new_state(p)
            m, sq = s.exp_avg, s.exp_avg_sq
            check(m, p, "exp_avg")
            check(sq, p, "exp_avg_sq")
            moments.vmax = NULL
            if o.amsgrad:
                if s.max_exp_avg_sq is None:
                    s.max_exp_avg_sq = new_state(p)
                check(s.max_exp_avg_sq, p, "max_exp_avg_sq")
                s.max_exp_avg_sq.storage.version += 1
                moments.vmax = s.max_exp_avg_sq.data
            values_open(p, &v)
            s.steps += 1
            m.storage.version += 1
            sq.storage.version += 1
            moments.n, moments.p, moments.g, moments.m, moments.v = p.layout.numel, v.data, g.data, m.data, sq.data
            if recording():
                recorder.update(group, state, s, p)
            if moments.n < MANY:
                K.adam(p.dtype_, 1, &moments, &o.numbers, s.steps)
            else:
                steps = s.steps
                with nogil:
                    K.adam(p.dtype_, 1, &moments, &o.numbers, steps)
            values_close(p, &v)


cdef int rmsprop(groups, state) except -1:
    """One step of RMSprop for all groups; state: dict from parameter to its State or to a mapping."""
    cdef Tensor p, g, sq
    cdef RMSpropState s
    cdef dict group
    cdef list params
    cdef Py_ssize_t i, n
    cdef double lr, alpha, eps, decay, momentum
    cdef bint centered, maximize
    cdef char* buffer
    cdef char* mean
    cdef Values v
    check_state(state)
    for group in groups:
        lr = option(group, "lr")
        alpha = option(group, "alpha")
        eps = option(group, "eps")
        decay = option(group, "weight_decay")
        momentum = option(group, "momentum")
        centered = flag(group, "centered")
        maximize = flag(group, "maximize")
        params = params_of(group)
        for i in range(len(params)):
            p = <Tensor?> params[i]
            g = gradient(p)
            if g is None:
                continue
            s = <RMSpropState> state_of(RMSpropState, state, p)
            if s.square_avg is None:
                s.square_avg = new_state(p)
            sq = s.square_avg
            check(sq, p, "square_avg")
            buffer = NULL
            if momentum > 0.0:
                if s.momentum_buffer is None:
                    s.momentum_buffer = new_state(p)
                check(s.momentum_buffer, p, "momentum_buffer")
                s.momentum_buffer.storage.version += 1
                buffer = s.momentum_buffer.data
            mean = NULL
            if centered:
                if s.grad_avg is None:
                    s.grad_avg = new_state(p)
                check(s.grad_avg, p, "grad_avg")
                s.grad_avg.storage.version += 1
                mean = s.grad_avg.data
            values_open(p, &v)
            s.steps += 1
            sq.storage.version += 1
            n = p.layout.numel
            if recording():
                recorder.update(group, state, s, p)
            if n < MANY:
                K.rmsprop(p.dtype_, n, v.data, g.data, sq.data, buffer, mean, lr, alpha, eps, decay, momentum,
                          maximize)
            else:
                with nogil:
                    K.rmsprop(p.dtype_, n, v.data, g.data, sq.data, buffer, mean, lr, alpha, eps, decay, momentum,
                              maximize)
            values_close(p, &v)


# The methods of the optimisers: a Python frame around each would cost 40 ns more.

cdef Known group_places[KNOWN_PLACES]
cdef Known state_places[KNOWN_PLACES]


cdef object run(closure):
    """The closure's value, computed with gradients switched on; None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def sgd_step(self, closure=None):
    """Update the parameters once; `closure`, if given, is called first and its value returned."""
    loss = run(closure)
    sgd(attribute_at(self, "param_groups", group_places), attribute_at(self, "state", state_places))
    return loss


def adam_step(self, closure=None):
    """Update the parameters once; `closure`, if given, is called first and its value returned."""
    loss = run(closure)
    adam(attribute_at(self, "param_groups", group_places), attribute_at(self, "state", state_places))
    return loss


def rmsprop_step(self, closure=None):
    """Update the parameters once; `closure`, if given, is called first and its value returned."""
    loss = run(closure)
    rmsprop(attribute_at(self, "param_groups", group_places), attribute_at(self, "state", state_places))
    return loss


@cython.nonecheck(False)
cdef inline int drop_grad(PyObject* p) except -1:
    cdef PyObject* found
    if not is_tensor(p):
        raise TypeError(f"zero_grad: expected Tensors as parameters, got {type(<object> p).__name__}")
    found = (<Tensor> p).grad_
    if found != NULL:
        (<Tensor> p).grad_ = NULL
        Py_DECREF(<object> found)
    return 0


def zero_grad(self, bint set_to_none=True):
    """Drop the gradients of all parameters, or fill them with zeros if `set_to_none` is False."""
    cdef Tensor p, g
    cdef list params
    cdef Py_ssize_t i
    for group in attribute_at(self, "param_groups", group_places):
        params = params_of(group)
        i = 0
        while i < len(params):                    # dropping a gradient may run code that changes the list
            if recording():
                recorder.leaf(<Tensor?> params[i], not set_to_none)
            if set_to_none:
                drop_grad(ag_item(params, i))
            else:
                p = <Tensor?> params[i]
                if p.grad_ != NULL:
                    g = (<Tensor> p.grad_).detach()
                    set_grad(p, <PyObject*> g)
                    set_to_zero(g)
                    g.storage.version += 1
            i += 1
