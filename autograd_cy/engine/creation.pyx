# Making tensors: from numbers, lists, arrays and memory; filled. And giving them back to NumPy and Python.
#
# Relies on array, operands, shape. random.pyx and everything that makes tensors by name rely on it.

import math

import numpy as np

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, UINT8, itemsize_of
from autograd_cy.array.layout cimport (
    Layout, broadcast_strides, layout_contiguous, layout_decref, layout_dense_like, layout_strided, strides_of,
)
from autograd_cy.array.storage cimport Storage, storage_foreign
from autograd_cy.engine.arguments cimport integer, need_tensor, on_cpu, read_shape, sizes_from
from autograd_cy.engine.node cimport SAVED_FLOAT, SAVED_INT
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport Operand_, copy_into, default_dtype, write_number
from autograd_cy.engine.tensor cimport Tensor, own_buffer, tensor_new, tensor_wrap
from autograd_cy.kernels.table cimport K, escape, recorder, recording

from autograd_cy.array.dtypes import DTYPES, DType, as_dtype
from autograd_cy.array.errors import ArgumentError, DTypeError, worded
from autograd_cy.engine.shape import clone, convert, detach

ctypedef void (*Copy)(int ndim, const Py_ssize_t* shape, int dst_dtype, char* dst, const Py_ssize_t* dst_strides, int src_dtype,
                      const char* src, const Py_ssize_t* src_strides) noexcept nogil

cdef Copy unnoticed_copy = K.copy         # the kernel itself, past any recorder: what it writes counts as a constant


# ---- what a capture has to know of computations in Python

def outside(function, list inputs, list outputs):
    """Compute outside the kernels: function(inputs, outputs) fills the tensors `outputs`, through array_of. A capture takes note of
    the call, and its replays repeat it on their own memory."""
    tell(function, inputs, outputs)
    function(inputs, outputs)


cdef int tell(object function, list inputs, list outputs) except -1:
    if recording():
        recorder.call(function, inputs, outputs)
    return 0


cpdef object array_of(Tensor t):
    """A NumPy array on the tensor's memory for the functions given to `outside`, of which a capture knows: no value escapes."""
    return np.asarray(own_buffer(t))


def write(Tensor t, values):
    """Fill t from an array of its shape, in a function that is given to `outside`."""
    np.copyto(array_of(t), values, casting="unsafe")


def escapes(what):
    """A value of a tensor is about to leave by way of `what`: an error in a captured step."""
    escape(what)


def capturing():
    """Whether a step is being captured."""
    return bool(recording())


cdef object finish(Tensor t, object requires_grad, object device=None):
    on_cpu(device)
    if requires_grad:
        t.requires_grad = True
    return t


cdef int code_of(object dtype, int otherwise) except -2:
    return otherwise if dtype is None else dtype.code if type(dtype) is DType else as_dtype(dtype).code


cdef Tensor allocate(object shape, int dtype, str name):
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* layout = layout_contiguous(read_shape(shape, sizes, name), sizes)
    try:
        return own(tensor_new(layout, dtype))
    finally:
        layout_decref(layout)


# ---- from data

def from_numpy(array):
    """A tensor on the memory of a NumPy array: a change of one is seen in the other.

    Raises TypeError for dtypes without a counterpart, ValueError for read-only arrays and strides that are no multiple of the item.
    """
    if not isinstance(array, np.ndarray):
        raise worded(TypeError, "from_numpy: expected a NumPy array, got {}", type(array).__name__)
    escape("from_numpy()")
    return shared_with(array)


cdef int code_of_format(const char* format, Py_ssize_t itemsize) noexcept:
    """The dtype of a buffer's elements; -1: none of ours, or not in this machine's order of bytes."""
    if format == NULL or format[0] == 0 or format[1] != 0:
        return -1
    if format[0] == b"f":
        return FLOAT32
    if format[0] == b"d":
        return FLOAT64
    if format[0] in b"ilq":
        return INT64 if itemsize == 8 else INT32
    return UINT8 if format[0] == b"B" else BOOL if format[0] == b"?" else -1


cdef Tensor seen(object array):
    """A tensor on the memory of an array; None where it has another dtype, isn't aligned, or has strides that no tensor has."""
    cdef Py_buffer view
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t lowest = 0, highest = 0, reach
    cdef bint fits
    cdef int dtype, i
    cdef Storage* storage
    try:
        PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT)
    except (ValueError, BufferError):             # of a dtype without a format
        return None
    try:
        if view.ndim > MAX_NDIM:
            raise worded(ValueError, "a tensor has at most {} dimensions, got an array of {}", MAX_NDIM, view.ndim)
        dtype = code_of_format(view.format, view.itemsize)
        fits = dtype >= 0 and (<uintptr_t> view.buf % itemsize_of(dtype) == 0 or view.len == 0)
        for i in range(view.ndim if fits else 0):
            strides[i] = view.strides[i] // view.itemsize
            fits = fits and view.strides[i] % view.itemsize == 0
            reach = (view.shape[i] - 1) * view.strides[i]
            lowest += min(reach, <Py_ssize_t> 0)
            highest += max(reach, <Py_ssize_t> 0)
        if not fits:
            return None
        # The memory is what the strides reach: view.len, shape times item, is something else where elements lie apart or coincide.
        if view.len == 0:
            lowest, highest = 0, -view.itemsize
        storage = storage_foreign(<char*> view.buf + lowest, highest - lowest + view.itemsize, array)
        return own(tensor_wrap(storage, layout_strided(view.ndim, view.shape, strides), <char*> view.buf, dtype))
    finally:
        PyBuffer_Release(&view)


cdef Tensor shared_with(object array):
    cdef Tensor t = None
    if not array.flags.writeable:
        raise ValueError("from_numpy: the array is read-only; copy it with tensor()")
    t = seen(array)
    if t is None:
        as_dtype(array.dtype)
        if array.flags.aligned:
            raise worded(ValueError, "from_numpy: strides {} are no multiples of the item size {}; copy the array first",
                                     array.strides, array.itemsize)
        raise ValueError("from_numpy: the array is not aligned; copy it first")
    return t


cdef Tensor constant(Tensor source, int dtype):
    """A copy in a dtype; in a captured step a constant."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Tensor out = allocate(source.shape, dtype, "tensor")
    if recording():
        broadcast_strides(source.layout, out.layout, strides)
        unnoticed_copy(out.layout.ndim, out.layout.dims, out.dtype_, out.data, strides_of(out.layout), source.dtype_, source.data, strides)
    else:
        copy_into(out, source)
    return out


cdef Tensor copied_from(object array, int dtype):
    """A contiguous tensor with the values of a NumPy array of any layout."""
    cdef Tensor source = seen(array)
    if source is None:
        source = seen(np.array(array, dtype=array.dtype.newbyteorder("=")))
    if source is None:
        raise worded(TypeError, "no dtype for NumPy's {.dtype}; the dtypes are {}", array, ', '.join([d.name for d in DTYPES]))
    return constant(source, source.dtype_ if dtype < 0 else dtype)


cdef set NUMPY_NAMES = {d.name for d in DTYPES}


cdef object array_from_sequence(object data):
    """Nested sequences of numbers (or tensors of one element) as a NumPy array."""
    data = plain(data)
    try:
        array = np.array(data)
    except ValueError:
        raise ValueError("tensor: the nested sequence is ragged: at some depth its parts differ in length") from None
    except OverflowError as error:
        raise ValueError(f"tensor: {error}") from None
    if array.dtype.kind == "O":
        if all([isinstance(v, int) for v in array.flat]):
            raise ValueError("tensor: an integer is too large for int64")
        raise worded(DTypeError, "tensor: can't make a number of {}",
                                 [type(v).__name__ for v in array.flat if not isinstance(v, (int, float))][0])
    if array.dtype.kind not in "fiub":
        raise worded(TypeError, "tensor: can't make numbers of {.dtype}", array)
    return array


cdef object plain(object data, int depth=0):
    """Nested sequences with the tensors in them made lists; ValueError where they are nested too deeply (or in themselves)."""
    if depth > MAX_NDIM:
        raise worded(ValueError, "tensor: the sequence is nested more than {} deep", MAX_NDIM)
    if isinstance(data, (Tensor, np.ndarray)):
        escape("tensor() of values of tensors or arrays")
        return data.detach().tolist() if isinstance(data, Tensor) else data
    if isinstance(data, (list, tuple)) and any([isinstance(v, (list, tuple, Tensor, np.ndarray)) for v in data]):
        return [plain(v, depth + 1) for v in data]
    return data


cdef bint holds_numpy_float64(object data):
    """Whether the first leaf is a NumPy number (which keeps its dtype) and not a Python float."""
    while isinstance(data, (list, tuple, range)) and len(data):    # plain() has bounded the depth
        data = data[0]
    return isinstance(data, (np.generic, np.ndarray)) or (isinstance(data, Tensor) and (<Tensor> data).dtype_ == FLOAT64)


def tensor(data, *, dtype=None, requires_grad=False, device=None):
    """A new tensor with a copy of `data`: a number, nested sequences, a NumPy array, a tensor, or anything array-like.

    dtype: by default that of arrays and tensors; float32 for Python floats (see set_default_dtype), int64 for integers, bool for
    bools. Raises ValueError for ragged sequences, TypeError for what is no number, RuntimeError for integers that should
    require gradients.
    """
    cdef int code
    cdef Tensor out
    on_cpu(device)
    if isinstance(data, Tensor):
        out = clone(detach(data))
        return finish(convert(out, dtype) if dtype is not None else out, requires_grad)
    if type(data) is float:
        return finish(number_of(data, code_of(dtype, default_dtype())), requires_grad)
    if type(data) is list:
        made = row_of(<list> data, code_of(dtype, -1))
        if made is not None:
            return finish(made, requires_grad)
    if isinstance(data, (np.ndarray, np.generic)) or (hasattr(data, "__array__") and not isinstance(data, (list, tuple))):
        if not isinstance(data, np.generic):
            escape("tensor() of an array")
        array = np.asarray(data)
        if array.dtype.name not in NUMPY_NAMES and array.dtype.kind not in "fiub":
            raise worded(TypeError, "tensor: no dtype for NumPy's {.dtype}; the dtypes are {}", array, ', '.join([d.name for d in DTYPES]))
        return finish(copied_from(array, code_of(dtype, -1)), requires_grad)
    if not isinstance(data, (int, float, list, tuple, range)):
        if isinstance(data, (str, bytes, dict, set)) or not hasattr(data, "__len__"):
            raise worded(TypeError, "tensor: can't make a tensor of {}", type(data).__name__)
        data = list(data)
    array = array_from_sequence(data)
    code = -1
    if dtype is not None:
        code = as_dtype(dtype).code
    elif array.dtype.kind == "f" and not holds_numpy_float64(data):
        code = default_dtype()
    elif array.dtype.kind in "iu" and array.dtype.name not in NUMPY_NAMES:
        code = INT64
    if array.dtype.name not in NUMPY_NAMES:
        if array.dtype.kind == "u":
            raise ValueError("tensor: an integer is too large for int64")
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return finish(copied_from(array, code), requires_grad)


cdef object row_of(list data, int dtype):
    """A list of nothing but Python floats, or nothing but ints, without the 10 us that NumPy takes; None for others, and where the
    numbers would have to be converted (dtype -1: the default of their kind)."""
    cdef Py_ssize_t n = len(data), k
    cdef Tensor t
    if n == 0:
        return None
    kind = type(data[0])
    if kind is not float and kind is not int:
        return None
    for item in data:
        if type(item) is not kind:
            return None
    if dtype < 0:
        dtype = default_dtype() if kind is float else INT64
    if dtype != INT64 and (kind is int or dtype > FLOAT64) or dtype == INT64 and kind is float:
        return None
    t = allocate((n,), dtype, "tensor")
    if len(data) != n:                            # Python's collector ran something
        return None
    for k in range(n):
        if dtype == INT64:
            if not -9223372036854775808 <= data[k] <= 9223372036854775807:
                return None
            (<long long*> t.data)[k] = data[k]
        elif dtype == FLOAT64:
            (<double*> t.data)[k] = data[k]
        else:
            (<float*> t.data)[k] = <float> <double> data[k]
    return t


cdef object number_of(object value, int dtype):
    cdef Operand_ x
    cdef Tensor t = allocate((), dtype, "tensor")
    x.number = value
    x.kind = SAVED_INT if isinstance(value, int) else SAVED_FLOAT
    x.integer = value if isinstance(value, int) else 0
    write_number(&x, dtype, t.data)
    return t


def as_tensor(data, dtype=None, device=None):
    """As tensor(), but tensors of the right dtype are returned as they are and NumPy arrays are shared where possible."""
    on_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else convert(data, dtype)
    if isinstance(data, np.ndarray) and data.dtype.name in NUMPY_NAMES and (dtype is None or as_dtype(dtype) is as_dtype(data.dtype.name)) \
            and data.flags.writeable and data.flags.aligned and data.dtype.isnative and not any([s % data.itemsize for s in data.strides]):
        escape("as_tensor() of an array")
        return shared_with(data)
    return tensor(data, dtype=dtype)


def asarray(data, *, dtype=None, copy=None, requires_grad=False, device=None):
    """As as_tensor; copy=True always copies."""
    out = tensor(data, dtype=dtype) if copy else as_tensor(data, dtype=dtype)
    return finish(out, requires_grad, device)


# ---- to NumPy and Python

def numpy(Tensor self, *, force=False):
    """A NumPy array on the tensor's memory. RuntimeError for tensors that require gradients: use detach() first."""
    if self.needs_grad:
        if not force:
            raise RuntimeError("numpy: the tensor requires gradients, which NumPy would lose; use detach().numpy()")
        self = detach(self)
    escape("numpy()")
    return np.asarray(own_buffer(self))


def __array__(Tensor self, dtype=None, copy=None):
    """The tensor as a NumPy array, for np.asarray and friends."""
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def tolist(Tensor self):
    """Nested lists of Python numbers; a number for a 0-d tensor."""
    escape("tolist()")
    return np.asarray(own_buffer(detach(self))).tolist()


# ---- filled

cdef Tensor fill(Tensor t, object value):
    """Every element set; no history."""
    copy_into(t, number_of(value, t.dtype_))
    return t


def empty(*sizes, size=None, dtype=None, requires_grad=False, device=None):
    """A tensor whose values are not set."""
    return finish(allocate(sizes_from(sizes, size), code_of(dtype, default_dtype()), "empty"), requires_grad, device)


def zeros(*sizes, size=None, dtype=None, requires_grad=False, device=None):
    """A tensor of zeros."""
    cdef Tensor t = allocate(sizes_from(sizes, size), code_of(dtype, default_dtype()), "zeros")
    memset(t.data, 0, t.layout.numel * itemsize_of(t.dtype_))
    return finish(t, requires_grad, device)


def ones(*sizes, size=None, dtype=None, requires_grad=False, device=None):
    """A tensor of ones."""
    return finish(fill(allocate(sizes_from(sizes, size), code_of(dtype, default_dtype()), "ones"), 1), requires_grad, device)


def full(size, fill_value, *, dtype=None, requires_grad=False, device=None):
    """A tensor of one value; the dtype follows the value by default (bool, int64, float32)."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    cdef int code = code_of(dtype, BOOL if isinstance(fill_value, (bool, np.bool_)) else
                            INT64 if isinstance(fill_value, (int, np.integer)) else default_dtype())
    size = (size,) if isinstance(size, int) else size
    return finish(fill(allocate(size, code, "full"), fill_value), requires_grad, device)


def zeros_code(shape, int dtype):
    """Zeros of a dtype code, for rules."""
    cdef Tensor t = allocate(shape, dtype, "zeros")
    memset(t.data, 0, t.layout.numel * itemsize_of(dtype))
    return t


def ones_code(shape, int dtype):
    """Ones of a dtype code, for rules."""
    return fill(allocate(shape, dtype, "ones"), 1)


cdef Tensor allocate_like(object x, object dtype, str name):
    """Of the shape of x and, where that is dense, with its strides."""
    cdef Tensor t = need_tensor(x, name)
    cdef Layout* layout = layout_dense_like(t.layout)
    try:
        return own(tensor_new(layout, code_of(dtype, t.dtype_)))
    finally:
        layout_decref(layout)


def empty_like(input, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As empty, with the shape and dtype of `input`."""
    return finish(allocate_like(input, dtype, "empty_like"), requires_grad, device)


def zeros_like(input, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As zeros, with the shape and dtype of `input`."""
    return finish(fill(allocate_like(input, dtype, "zeros_like"), 0), requires_grad, device)


def ones_like(input, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As ones, with the shape and dtype of `input`."""
    return finish(fill(allocate_like(input, dtype, "ones_like"), 1), requires_grad, device)


def full_like(input, fill_value, *, dtype=None, requires_grad=False, device=None, memory_format=None):
    """As full, with the shape and dtype of `input`."""
    return finish(fill(allocate_like(input, dtype, "full_like"), fill_value), requires_grad, device)


def arange(start=None, end=None, step=1, *, dtype=None, requires_grad=False, device=None):
    """start, start + step, ... below end: ceil((end - start) / step) values; arange(n) counts from 0.

    int64 for integers, else float32, by default. Raises ValueError where the step is 0 or leads away from the end.
    """
    cdef Tensor made
    cdef Py_ssize_t i
    cdef long long first, by
    cdef double number, distance
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange: end is required")
    start = 0 if start is None else start
    cdef bint integers = type(start) is int and type(end) is int and type(step) is int
    if not integers:
        start, end, step = [v.item() if isinstance(v, (Tensor, np.generic)) else v for v in (start, end, step)]
        integers = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    if step == 0:
        raise ArgumentError("arange: the step must not be 0")
    if not integers and not (math.isfinite(start) and math.isfinite(end)):
        raise worded(ArgumentError, "arange: the bounds must be finite, got {} and {}", start, end)
    if (end - start) / step < 0:
        raise worded(ArgumentError, "arange: a step of {} leads away from {} to {}", step, start, end)
    if integers and not -(1 << 63) <= start < 1 << 63:
        raise worded(ArgumentError, "arange: {} does not fit int64", start)
    made = allocate((-((start - end) // step) if integers else math.ceil((end - start) / step),), INT64 if integers else FLOAT64, "arange")
    if integers and made.layout.numel:
        first, by = start, step if made.layout.numel > 1 else 0
        for i in range(made.layout.numel):
            (<long long*> made.data)[i] = first + i * by
    elif made.layout.numel:
        number, distance = start, step
        for i in range(made.layout.numel):
            (<double*> made.data)[i] = number + i * distance
    return finish(constant(made, code_of(dtype, INT64 if integers else default_dtype())), requires_grad, device)


def linspace(start, end, steps, *, dtype=None, requires_grad=False, device=None):
    """`steps` equally spaced values from start to end, both included."""
    if steps < 0:
        raise worded(ArgumentError, "linspace: steps must be at least 0, got {}", steps)
    cdef double first = float(start), last = float(end)
    cdef Tensor made = allocate((int(steps),), FLOAT64, "linspace")
    cdef Py_ssize_t i, n = made.layout.numel
    for i in range(n):
        (<double*> made.data)[i] = first if i == 0 else last if i == n - 1 else i * ((last - first) / (n - 1)) + first
    return finish(constant(made, code_of(dtype, default_dtype())), requires_grad, device)


def eye(n, m=None, *, dtype=None, requires_grad=False, device=None):
    """Ones on the diagonal, zeros elsewhere, of shape (n, m or n)."""
    cdef Tensor made
    cdef Py_ssize_t i
    cdef Py_ssize_t rows = integer(n, "n", "eye"), columns = rows if m is None else integer(m, "m", "eye")
    if rows < 0 or columns < 0:
        raise worded(ArgumentError, "eye: sizes must be at least 0, got {} and {}", n, m)
    made = allocate((rows, columns), UINT8, "eye")
    memset(made.data, 0, made.layout.numel)
    for i in range(min(made.layout.dims[0], made.layout.dims[1])):
        made.data[i * (made.layout.dims[1] + 1)] = 1
    return finish(constant(made, code_of(dtype, default_dtype())), requires_grad, device)
