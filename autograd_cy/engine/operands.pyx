# Operands and dtypes: what an operation accepts, promotion, conversion, copies.
#
# Relies on array, kernels (casts), tensor. dispatch and every module of operations rely on it.

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from libc.string cimport memset

from autograd_cy.array.dtype cimport BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_NDIM, UINT8, itemsize_of
from autograd_cy.array.layout cimport (
    CONTIGUOUS, Layout, broadcast_strides, layout_contiguous_like, layout_decref, layout_dense_like, layout_scalar, strides_of,
)
from autograd_cy.engine.node cimport SAVED_BOOL, SAVED_FLOAT, SAVED_INT
from autograd_cy.engine.tensor cimport Tensor, is_tensor, tensor_new
from autograd_cy.kernels.table cimport K, recording

from autograd_cy.array.errors import worded

from autograd_cy.array.dtypes import DTYPES, as_dtype

cdef int default_float = FLOAT32


# ---- dtypes

cdef int default_dtype() noexcept:
    return default_float


def get_default_dtype():
    """The dtype of tensors made from Python floats (float32 unless changed)."""
    return DTYPES[default_float]


def set_default_dtype(dtype):
    """Make tensors from Python floats float32 or float64."""
    global default_float
    dtype = as_dtype(dtype)
    if not dtype.is_floating_point:
        raise worded(TypeError, "set_default_dtype: expected a floating-point dtype, got {.name}", dtype)
    default_float = dtype.code


cdef str dtype_name(int dtype):
    return DTYPES[dtype].name


cdef int category(int dtype) noexcept nogil:
    """0 bool, 1 integer, 2 floating point; of no dtype (-1) likewise -1."""
    if dtype < 0:
        return -1
    return 2 if dtype <= FLOAT64 else 0 if dtype == BOOL else 1


cdef int promote(int a, int b) noexcept nogil:
    """The dtype that holds values of both (PyTorch's promote_types); -1 stands for none."""
    if a < 0:
        return b
    if b < 0 or a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if category(a) == 2:
        return FLOAT64
    return INT64 if a == INT64 or b == INT64 else INT32 if a == INT32 or b == INT32 else UINT8


cdef inline int combine(int higher, int lower) noexcept nogil:
    """PyTorch's rule: what ranks lower (0-d tensors, numbers) matters only by a higher category."""
    if category(higher) >= category(lower):
        return higher if higher != BOOL else promote(higher, lower)
    return promote(higher, lower)


cdef int common_dtype(int n, Operand_* args, int first) except -2:
    cdef int with_dims = -1
    cdef int zero_dims = -1
    cdef int numbers = -1
    cdef int i
    for i in range(first, n):
        if args[i].tensor == NULL:
            numbers = promote(numbers, default_float if args[i].kind == SAVED_FLOAT else INT64 if args[i].kind == SAVED_INT else BOOL)
        elif (<Tensor> args[i].tensor).layout.ndim:
            with_dims = promote(with_dims, (<Tensor> args[i].tensor).dtype_)
        else:
            zero_dims = promote(zero_dims, (<Tensor> args[i].tensor).dtype_)
    return combine(with_dims, combine(zero_dims, numbers))


# ---- operands

cdef int read_operand(PyObject* o, Operand_* operand) except -1:
    """0; 1 where the object is nothing that tensors combine with; 2 for an array, of which the caller makes a tensor."""
    cdef object x = <object> o
    operand.tensor = NULL
    if is_tensor(o):
        operand.tensor = o
    elif isinstance(x, bool):
        operand.kind = SAVED_BOOL
        operand.integer = x
        operand.number = x
    elif isinstance(x, float):
        operand.kind = SAVED_FLOAT
        operand.number = x
        operand.integer = 0
    elif isinstance(x, int):
        operand.kind = SAVED_INT
        operand.number = x
        operand.integer = x if -(1 << 63) <= x < 1 << 63 else 0
    elif isinstance(x, np.generic):
        return read_numpy_scalar(x, operand)
    elif hasattr(x, "__array__"):
        return 2
    else:
        return 1
    return 0


cdef int read_numpy_scalar(object x, Operand_* operand) except -1:
    kind = x.dtype.kind
    if kind == "f":
        operand.kind, operand.number = SAVED_FLOAT, float(x)
    elif kind in "iu":
        operand.kind, operand.integer = SAVED_INT, int(x)
        operand.number = operand.integer
    elif kind == "b":
        operand.kind, operand.integer = SAVED_BOOL, bool(x)
        operand.number = operand.integer
    else:
        return 1
    return 0


cdef bint broadcasts_to(Layout* a, Layout* full) noexcept nogil:
    cdef int d, lead = full.ndim - a.ndim
    for d in range(a.ndim):
        if lead < 0 or a.dims[d] != full.dims[lead + d] and a.dims[d] != 1:
            return False
    return True


cdef void write_number(Operand_* x, int dtype, char* place) noexcept:
    if dtype == FLOAT32:
        (<float*> place)[0] = <float> x.number
    elif dtype == FLOAT64:
        (<double*> place)[0] = x.number
    elif x.kind == SAVED_FLOAT:
        if dtype == INT64:
            (<long long*> place)[0] = <long long> x.number
        elif dtype == INT32:
            (<int*> place)[0] = <int> x.number
        elif dtype == UINT8:
            (<unsigned char*> place)[0] = <unsigned char> <long long> x.number
        else:
            (<unsigned char*> place)[0] = x.number != 0
    elif dtype == INT64:
        (<long long*> place)[0] = x.integer
    elif dtype == INT32:
        (<int*> place)[0] = <int> x.integer
    elif dtype == UINT8:
        (<unsigned char*> place)[0] = <unsigned char> x.integer
    else:
        (<unsigned char*> place)[0] = x.integer != 0


cdef PyObject* number_tensor(double value, int dtype) except NULL:
    """A 0-d tensor."""
    cdef Layout* layout = layout_scalar()
    cdef PyObject* o = tensor_new(layout, dtype)
    cdef Operand_ x
    layout_decref(layout)
    x.number, x.integer, x.kind = value, <long long> value, SAVED_FLOAT
    write_number(&x, dtype, (<Tensor> o).data)
    return o


cdef PyObject* as_operand_tensor(PyObject* o, int like_dtype) except NULL:
    cdef Operand_ x
    if is_tensor(o):
        Py_INCREF(<object> o)
        return o
    if like_dtype >= 0 and read_operand(o, &x) == 0 and x.tensor == NULL:
        if like_dtype > FLOAT64 and x.kind == SAVED_FLOAT:
            like_dtype = default_float
        result = <object> number_tensor(0, like_dtype)
        Py_DECREF(result)
        write_number(&x, like_dtype, (<Tensor> result).data)
    else:
        from autograd_cy.engine.creation import as_tensor
        result = as_tensor(<object> o)
    Py_INCREF(result)
    return <PyObject*> result


# ---- copies

cdef extern from *:
    """
    /* A few pieces of `size` bytes, from axis k on. Loads and stores of known sizes: a call of memcpy takes longer. */
    #define AG_PIECES(S) for (i = 0; i < m; i++) for (j = 0; j < n; j++) memcpy(to + i * c + j * a, from + i * d + j * b, S);
    static void ag_copy_few(int k, int last, const Py_ssize_t* dims, Py_ssize_t item, Py_ssize_t size, char* to, const Py_ssize_t* steps,
                            const char* from, const Py_ssize_t* from_steps) {
        Py_ssize_t i, j, l, m = 1, n = 1, a = 0, b = 0, c = 0, d = 0;
        if (last > k + 1) {
            for (i = 0; i < dims[k]; i++)
                ag_copy_few(k + 1, last, dims, item, size, to + i * steps[k] * item, steps, from + i * from_steps[k] * item, from_steps);
            return;
        }
        if (last >= k) { n = dims[last]; a = steps[last] * item; b = from_steps[last] * item; }
        if (last > k) { m = dims[k]; c = steps[k] * item; d = from_steps[k] * item; }
        if (size == 4) AG_PIECES(4)
        else if (size == 8) AG_PIECES(8)
        else if (size == 16) AG_PIECES(16)
        else
            for (i = 0; i < m; i++)
                for (j = 0; j < n; j++) {
                    for (l = 0; l + 16 <= size; l += 16) memcpy(to + i * c + j * a + l, from + i * d + j * b + l, 16);
                    for (; l + 4 <= size; l += 4) memcpy(to + i * c + j * a + l, from + i * d + j * b + l, 4);
                    for (; l < size; l++) to[i * c + j * a + l] = from[i * d + j * b + l];
                }
    }
    """
    void ag_copy_few(int k, int last, const Py_ssize_t* dims, Py_ssize_t item, Py_ssize_t size, char* to, const Py_ssize_t* steps,
                     const char* source, const Py_ssize_t* source_steps) noexcept


cdef void copy_elements(Py_ssize_t numel, int ndim, const Py_ssize_t* dims, int dtype, char* to, const Py_ssize_t* steps, int given,
                        const char* source, const Py_ssize_t* source_steps) noexcept:
    """numel elements, converted; the memory must not overlap. A few are copied on the spot: the kernel's plan takes longer."""
    cdef Py_ssize_t run = 1
    cdef int last = ndim - 1
    if 0 < numel <= FEW and dtype == given and not recording():
        while last >= 0 and (dims[last] == 1 or steps[last] == run and source_steps[last] == run):
            run *= dims[last]
            last -= 1
        ag_copy_few(0, last, dims, itemsize_of(dtype), run * itemsize_of(dtype), to, steps, source, source_steps)
    elif numel >= GRAIN:
        with nogil:
            K.copy(ndim, dims, dtype, to, steps, given, source, source_steps)
    else:
        K.copy(ndim, dims, dtype, to, steps, given, source, source_steps)


cdef int copy_into(Tensor dst, Tensor src) except -1:
    """dst = src, converted; shapes are equal or src broadcasts. The memory must not partly overlap."""
    cdef Py_ssize_t strides[MAX_NDIM]
    broadcast_strides(src.layout, dst.layout, strides)
    copy_elements(dst.layout.numel, dst.layout.ndim, dst.layout.dims, dst.dtype_, dst.data, strides_of(dst.layout), src.dtype_, src.data,
                  strides)
    return 0


cdef void set_to_zero(Tensor t) noexcept:
    """Every element 0, of a tensor whose memory may be in use; no history."""
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef double zero = 0
    cdef int i
    if t.layout.flags & CONTIGUOUS and not recording():
        memset(t.data, 0, t.layout.numel * itemsize_of(t.dtype_))
        return
    for i in range(t.layout.ndim):
        strides[i] = 0
    K.copy(t.layout.ndim, t.layout.dims, t.dtype_, t.data, strides_of(t.layout), FLOAT64, <char*> &zero, strides)


cdef PyObject* copy_of(Tensor x, Layout* layout) except NULL:
    """A copy with the given dense layout of the same shape."""
    cdef PyObject* o = tensor_new(layout, x.dtype_)
    copy_into(<Tensor> o, x)
    return o


cdef PyObject* contiguous_of(Tensor x) except NULL:
    cdef Layout* layout
    cdef PyObject* o
    if x.layout.flags & CONTIGUOUS:
        Py_INCREF(x)
        return <PyObject*> x
    layout = layout_contiguous_like(x.layout)
    o = copy_of(x, layout)
    layout_decref(layout)
    return o


cdef PyObject* converted(Tensor x, int dtype) except NULL:
    cdef Layout* layout
    cdef PyObject* o
    cdef char* p[2]
    if x.dtype_ == dtype:
        Py_INCREF(x)
        return <PyObject*> x
    layout = layout_dense_like(x.layout)
    o = tensor_new(layout, dtype)
    if layout == x.layout and layout.numel <= FEW and not recording():
        p[0], p[1] = (<Tensor> o).data, x.data
        K.casts[x.dtype_][dtype](layout.numel, p, NULL)
    else:
        copy_into(<Tensor> o, x)
    layout_decref(layout)
    return o
