# Products of matrices: matmul for 1 to n dimensions, linear.
#
# Relies on kernels/gemm, shape, record. Transposed operands go to the product as flags, without copies.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport BOOL, FLOAT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport CONTIGUOUS, Layout, layout_contiguous, layout_decref, layout_matrix, strides_of
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.gradients cimport backwards, sum_to_layout
from autograd_cy.engine.modes cimport grad_enabled
from autograd_cy.engine.node cimport Edge, Node, Saved, node_bare, remember_line
from autograd_cy.engine.object cimport KNOWN_PLACES, Known, attribute_at, own
from autograd_cy.engine.operands cimport GRAIN, as_operand_tensor, contiguous_of
from autograd_cy.engine.record cimport (
    any_wants_grad, no_edge, record, save_tensor, saved_or_raise, set_edge, set_history, wants_grad,
)
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport reshape_to
from autograd_cy.engine.tensor cimport Tensor, is_tensor, operators, tensor_new
from autograd_cy.kernels.gemm cimport batched_gemm, gemm
from autograd_cy.kernels.table cimport ALL_VECTORS, K, LAST_SCALAR, REDUCE_SUM, Loop, Operand, recording

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy import ops
from autograd_cy.engine.gradients import rule_gradients, saved_value
from autograd_cy.engine.shape import squeeze, unsqueeze

cdef int MATMUL = row_number("matmul"), LINEAR = row_number("linear")
cdef int ADD_LOOP = ops.loop_id("add")

cdef enum:
    FEW_ROWS = 16             # to which a bias is added by a loop each, 3 ns, where the general way takes 25


cdef struct Matrix:           # the last two axes of an operand, as a product takes them
    char* data
    Py_ssize_t rows, cols, ld
    bint transposed           # stored as its transpose


cdef bint as_matrix(Layout* a, char* data, Matrix* m) noexcept:
    """False where neither axis has unit stride, or rows would overlap: a copy is needed first."""
    cdef Py_ssize_t rows = a.dims[a.ndim - 2]
    cdef Py_ssize_t cols = a.dims[a.ndim - 1]
    cdef Py_ssize_t down = a.dims[2 * a.ndim - 2]
    cdef Py_ssize_t right = a.dims[2 * a.ndim - 1]
    m.data, m.rows, m.cols, m.transposed = data, rows, cols, False
    if rows == 0 or cols == 0:                  # contiguous, whatever the strides
        m.ld = max(cols, 1)
        return True
    if (right == 1 or cols <= 1) and (down >= cols or rows <= 1):
        m.ld = down if rows > 1 else max(cols, 1)
        if m.ld < 1:
            m.ld = 1
        return True
    if (down == 1 or rows <= 1) and (right >= rows or cols <= 1):
        m.transposed = True
        m.ld = right if cols > 1 else max(rows, 1)
        if m.ld < 1:
            m.ld = 1
        return True
    return False


cdef int multiply(int dtype, Matrix* a, bint flip_a, Matrix* b, bint flip_b, char* c, Py_ssize_t ldc) except -1:
    """C = op(A) op(B), where flip means the operand's transpose."""
    cdef Py_ssize_t m = a.cols if flip_a else a.rows
    cdef Py_ssize_t k = a.rows if flip_a else a.cols
    cdef Py_ssize_t n = b.rows if flip_b else b.cols
    return gemm(dtype, a.transposed != flip_a, b.transposed != flip_b, m, n, k, a.data, a.ld, b.data, b.ld, c, ldc)


cdef Tensor suitable(Tensor x, Matrix* m):
    """x, or a contiguous copy of it, described as a matrix."""
    if not as_matrix(x.layout, x.data, m):
        x = own(contiguous_of(x))
        as_matrix(x.layout, x.data, m)
    return x


cdef PyObject* product(Tensor a, bint flip_a, Tensor b, bint flip_b) except NULL:
    """op(a) @ op(b) for 2-d operands; no history."""
    cdef Matrix x
    cdef Matrix y
    if as_matrix(a.layout, a.data, &x) and as_matrix(b.layout, b.data, &y):
        return product_with(&x, flip_a, &y, flip_b, a.dtype_)
    a = suitable(a, &x)
    b = suitable(b, &y)
    return product_with(&x, flip_a, &y, flip_b, a.dtype_)


cdef object batched(Tensor a, Tensor b):
    """Products over broadcast leading axes; both operands have at least 2 dimensions. No history."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t lead_a[MAX_NDIM]
    cdef Py_ssize_t lead_b[MAX_NDIM]
    cdef Py_ssize_t counter[MAX_NDIM]
    cdef Matrix x
    cdef Matrix y
    cdef Tensor out
    cdef Layout* layout
    cdef int ndim = max(a.layout.ndim, b.layout.ndim)
    cdef int lead = ndim - 2
    cdef int i
    cdef Py_ssize_t m, size
    cdef char* place
    a, b = suitable(a, &x), suitable(b, &y)
    for i in range(lead):
        shape[i] = leading_size(a, b, i, ndim)
    shape[lead], shape[lead + 1] = x.rows, y.cols
    layout = layout_contiguous(ndim, shape)
    out = own(tensor_new(layout, a.dtype_))
    layout_decref(layout)
    if out.layout.numel == 0:
        return out
    for i in range(lead):
        lead_a[i] = lead_stride(a, i, ndim)
        lead_b[i] = lead_stride(b, i, ndim)
        counter[i] = 0
    size = itemsize_of(a.dtype_)
    # The innermost leading axis goes to the batched product, the others are counted through here.
    place = out.data
    m = shape[lead - 1]
    while True:
        batched_gemm(a.dtype_, x.transposed, y.transposed, m, x.rows, y.cols, x.cols, x.data, x.ld, lead_a[lead - 1], y.data, y.ld,
                     lead_b[lead - 1], place, y.cols, x.rows * y.cols)
        place += m * x.rows * y.cols * size
        i = lead - 2
        while i >= 0:
            counter[i] += 1
            x.data += lead_a[i] * size
            y.data += lead_b[i] * size
            if counter[i] < shape[i]:
                break
            x.data -= lead_a[i] * size * shape[i]
            y.data -= lead_b[i] * size * shape[i]
            counter[i] = 0
            i -= 1
        if i < 0:
            return out


cdef Py_ssize_t leading_size(Tensor a, Tensor b, int i, int ndim) except -1:
    cdef int p = i - ndim + a.layout.ndim
    cdef int q = i - ndim + b.layout.ndim
    cdef Py_ssize_t m = a.layout.dims[p] if p >= 0 else 1
    cdef Py_ssize_t n = b.layout.dims[q] if q >= 0 else 1
    if m != n and m != 1 and n != 1:
        raise worded(ShapeError, "matmul: the leading sizes of shapes {.shape} and {.shape} do not broadcast against each other", a, b)
    return n if m == 1 else m


cdef Py_ssize_t lead_stride(Tensor a, int i, int ndim) noexcept:
    cdef int p = i - ndim + a.layout.ndim
    return 0 if p < 0 or a.layout.dims[p] == 1 else strides_of(a.layout)[p]


cdef int check_operands(Tensor a, Tensor b, str name) except -1:
    if a.dtype_ != b.dtype_:
        raise worded(RuntimeError, "{}: operands must have one dtype, got {.dtype.name} and {.dtype.name}", name, a, b)
    if a.dtype_ == BOOL:
        raise worded(RuntimeError, "{}: not defined for bool tensors; convert them to a number dtype", name)
    if a.layout.ndim == 0 or b.layout.ndim == 0:
        raise worded(ShapeError, "{}: both operands need at least 1 dimension, got shapes {.shape} and {.shape}", name, a, b)
    return 0


cdef object matmul_recorded(Tensor a, Tensor b):
    """The row itself: operands of at least 2 dimensions."""
    cdef PyObject* inputs[2]
    cdef object out
    if a.layout.dims[a.layout.ndim - 1] != b.layout.dims[b.layout.ndim - 2]:
        raise worded(ShapeError, "matmul: shapes {.shape} and {.shape} do not fit: {} columns against {} rows",
                                 a, b, a.layout.dims[a.layout.ndim - 1], b.layout.dims[b.layout.ndim - 2])
    if a.layout.ndim == 2 and b.layout.ndim == 2:
        out = own(product(a, False, b, False))
    else:
        out = batched(a, b)
    inputs[0], inputs[1] = <PyObject*> a, <PyObject*> b
    if a.dtype_ <= FLOAT64 and any_wants_grad(2, inputs):
        record(MATMUL, <PyObject*> out, 2, inputs, NULL, NULL)
    return out


cdef Tensor factor(object x, str name):
    """A tensor, or one made of an array."""
    if x is None:
        need_tensor(x, name)
    return own(as_operand_tensor(<PyObject*> x, -1))


def matmul(input, other):
    """The matrix product over the last two axes.

    1-d operands count as a row (left) or column (right) and lose that axis in the result; leading axes broadcast.
    Raises ValueError where the shapes, RuntimeError where the dtypes do not fit.
    """
    cdef Tensor x = factor(input, "matmul"), y = factor(other, "matmul")
    cdef Tensor out
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t flat[2]
    cdef int i
    check_operands(x, y, "matmul")
    if x.layout.ndim == 2 and y.layout.ndim == 2:
        return matmul_recorded(x, y)
    if x.layout.ndim == 1:
        if x.layout.dims[0] != y.layout.dims[y.layout.ndim - 2 if y.layout.ndim > 1 else 0]:
            raise worded(ShapeError, "matmul: shapes {.shape} and {.shape} do not fit", x, y)
        if y.layout.ndim == 1:
            return reshape_to(matmul_recorded(unsqueeze(x, 0), unsqueeze(y, 1)), 0, NULL)
        return squeeze(matmul(unsqueeze(x, 0), y), -2)
    if y.layout.ndim == 1:
        if x.layout.dims[x.layout.ndim - 1] != y.layout.dims[0]:
            raise worded(ShapeError, "matmul: shapes {.shape} and {.shape} do not fit", x, y)
        return squeeze(matmul(x, unsqueeze(y, 1)), -1)
    if y.layout.ndim == 2 and x.layout.ndim > 2:
        # One large product instead of a batch, and no batch of gradients to sum for other.
        for i in range(x.layout.ndim - 1):
            shape[i] = x.layout.dims[i]
        flat[0], flat[1] = product_of(shape, x.layout.ndim - 1), x.layout.dims[x.layout.ndim - 1]
        out = matmul_recorded(reshape_to(x, 2, flat), y)
        shape[x.layout.ndim - 1] = out.layout.dims[1]
        return reshape_to(out, x.layout.ndim, shape)
    return matmul_recorded(x, y)


cdef PyObject* matmul_operator(PyObject* a, PyObject* b) except NULL:
    if not ((is_tensor(a) or hasattr(<object> a, "__array__")) and (is_tensor(b) or hasattr(<object> b, "__array__"))):
        Py_INCREF(NotImplemented)
        return <PyObject*> NotImplemented
    result = matmul(<object> a, <object> b)
    Py_INCREF(result)
    return <PyObject*> result


operators.matmul = matmul_operator


def linear(input, weight, bias=None):
    """x @ weight.T + bias, as one node: x (..., in), weight (out, in), bias (out,) or None.

    Raises ValueError where the shapes, RuntimeError where the dtypes do not fit.
    """
    return linear_checked(input, weight, bias)


cdef object linear_checked(object input, object weight, object bias):
    if is_tensor(<PyObject*> input) and is_tensor(<PyObject*> weight) and (bias is None or is_tensor(<PyObject*> bias)):
        return linear_any(<Tensor> input, <Tensor> weight, <PyObject*> bias if bias is not None else NULL)
    for name, value in (("weight", weight), ("bias", bias)):
        if not isinstance(value, Tensor) and (value is not None or name == "weight"):
            raise worded(TypeError, "linear: {} must be a Tensor, got {}", name, type(value).__name__)
    return linear_any(factor(input, "linear"), <Tensor> weight, <PyObject*> bias if bias is not None else NULL)


cdef Known weight_places[KNOWN_PLACES]
cdef Known bias_places[KNOWN_PLACES]


def linear_of(self, input):
    """input @ self.weight.T + self.bias."""
    return linear_checked(input, attribute_at(self, "weight", weight_places), attribute_at(self, "bias", bias_places))


cdef object linear_any(Tensor x, Tensor w, PyObject* bias):
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t flat[2]
    cdef Tensor out
    cdef int i
    if x.layout.ndim == 2 and w.layout.ndim == 2 and x.dtype_ == w.dtype_ and x.dtype_ <= FLOAT64 \
            and x.layout.dims[1] == w.layout.dims[1] and (bias == NULL or fits_bias(<Tensor> bias, w)):
        return own(linear_rows(x, w, bias))
    check_operands(x, w, "linear")
    if w.layout.ndim != 2 or x.layout.dims[x.layout.ndim - 1] != w.layout.dims[1]:
        raise worded(ShapeError, "linear: an input of shape {.shape} does not fit a weight of shape {.shape}; the last size of the input "
                                 "must be the second of the weight", x, w)
    if bias != NULL and not fits_bias(<Tensor> bias, w):
        raise ShapeError(f"linear: a bias of shape {(<Tensor> bias).shape} and dtype {(<Tensor> bias).dtype.name} does not fit "
                         f"a weight of shape {w.shape} and dtype {w.dtype.name}")
    if x.layout.ndim == 2:
        return own(linear_rows(x, w, bias))
    for i in range(x.layout.ndim):
        shape[i] = x.layout.dims[i]
    flat[0], flat[1] = product_of(shape, x.layout.ndim - 1), x.layout.dims[x.layout.ndim - 1]
    out = linear_any(reshape_to(x, 2, flat), w, bias)
    shape[x.layout.ndim - 1] = w.layout.dims[0]
    return reshape_to(out, x.layout.ndim, shape)


cdef bint fits_bias(Tensor bias, Tensor w) noexcept:
    return bias.layout.ndim == 1 and bias.layout.dims[0] == w.layout.dims[0] and bias.dtype_ == w.dtype_


cdef PyObject* linear_rows(Tensor x, Tensor w, PyObject* bias) except NULL:
    """x (rows, in): the product, the bias, the node."""
    cdef Py_ssize_t rows = x.layout.dims[0], inner = x.layout.dims[1], cols = w.layout.dims[0]
    cdef Layout* layout
    cdef PyObject* out
    cdef PyObject* node
    cdef bint for_x, for_w, for_bias
    if x.layout.flags & w.layout.flags & CONTIGUOUS and x.layout.numel and w.layout.numel:
        layout = layout_matrix(rows, cols)
        out = tensor_new(layout, x.dtype_)
        layout_decref(layout)
        gemm(x.dtype_, False, True, rows, cols, inner, x.data, inner, w.data, inner, (<Tensor> out).data, cols)
    else:
        out = product(x, False, w, True)
    if bias != NULL:
        add_bias(<Tensor> out, <Tensor> bias)
    for_x, for_w, for_bias = wants_grad(x), wants_grad(w), bias != NULL and wants_grad(<Tensor> bias)
    if x.dtype_ <= FLOAT64 and (for_x or for_w or for_bias) and grad_enabled():
        node = node_bare(LINEAR, 3, (1 if for_w else 0) | (2 if for_x else 0))
        set_edge(&(<Node> node).edges[0], x)
        set_edge(&(<Node> node).edges[1], w)
        if bias != NULL:
            set_edge(&(<Node> node).edges[2], <Tensor> bias)
        else:
            no_edge(&(<Node> node).edges[2])
        if for_w:
            save_tensor(<Node> node, 0, x)
        if for_x:
            save_tensor(<Node> node, 1, w)
        remember_line(<Node> node)
        set_history(out, node, 0)
    return out


cdef Py_ssize_t product_of(Py_ssize_t* shape, int n) noexcept:
    cdef Py_ssize_t p = 1
    cdef int i
    for i in range(n):
        p *= shape[i]
    return p


cdef void add_bias(Tensor out, Tensor bias) noexcept:
    """out += bias, a row at a time; out is contiguous."""
    cdef const Loop* loops = &K.loops[ADD_LOOP][out.dtype_][0]
    cdef Operand operands[3]
    cdef Py_ssize_t strides[2]
    cdef Py_ssize_t rows = out.layout.dims[0], cols = out.layout.dims[1], _
    cdef char* p[3]
    if rows <= FEW_ROWS and bias.layout.flags & CONTIGUOUS and not recording():
        p[0], p[1], p[2] = out.data, out.data, bias.data
        if cols == 1:
            loops[LAST_SCALAR](rows, p, NULL)
            return
        for _ in range(rows):
            loops[ALL_VECTORS](cols, p, NULL)
            p[0] += cols * itemsize_of(out.dtype_)
            p[1] = p[0]
        return
    strides[0], strides[1] = 0, strides_of(bias.layout)[0]
    operands[0].data = operands[1].data = out.data
    operands[0].strides = operands[1].strides = strides_of(out.layout)
    operands[2].data, operands[2].strides = bias.data, strides
    operands[0].itemsize = operands[1].itemsize = operands[2].itemsize = itemsize_of(out.dtype_)
    K.elementwise(loops, 2, 2, out.layout.dims, operands, NULL)


# ---- gradients, as single products

cdef Tensor saved_matrix(Node node, int i, Matrix* m):
    """Describe a saved 2-d value as a matrix; a tensor to keep alive is returned where a copy was needed."""
    cdef Saved* saved = saved_or_raise(node, i)
    if as_matrix(saved.layout, saved.at.data, m):
        return None
    return suitable(saved_value(node, i), m)


cdef PyObject* product_with(Matrix* x, bint flip_x, Matrix* y, bint flip_y, int dtype) except NULL:
    cdef Layout* layout = layout_matrix(x.cols if flip_x else x.rows, y.rows if flip_y else y.cols)
    cdef PyObject* out = tensor_new(layout, dtype)
    layout_decref(layout)
    multiply(dtype, x, flip_x, y, flip_y, (<Tensor> out).data, layout.dims[1] if layout.dims[1] else 1)
    return out


cdef int matmul_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Tensor g = <Tensor> grads[0]
    cdef Matrix x
    cdef Matrix y
    cdef Matrix d
    if node.edges[0].layout.ndim != 2 or node.edges[1].layout.ndim != 2:
        for i, value in enumerate(rule_gradients(node, g)):
            if value is not None:
                Py_INCREF(value)
                result[i] = <PyObject*> value
        return 0
    g = suitable(g, &d)
    if node.edges[0].target != NULL:
        _kept_b = saved_matrix(node, 1, &y)
        result[0] = product_with(&d, False, &y, True, g.dtype_)
    if node.edges[1].target != NULL:
        _kept_a = saved_matrix(node, 0, &x)
        result[1] = product_with(&x, True, &d, False, g.dtype_)
    return 0


cdef int linear_backward(Node node, PyObject** grads, PyObject** result) except -1:
    cdef Tensor g = <Tensor> grads[0]
    cdef Edge* edges = node.edges
    cdef Py_ssize_t rows = edges[0].layout.dims[0], inner = edges[0].layout.dims[1], cols = edges[1].layout.dims[0]
    cdef Py_ssize_t strides[2]
    cdef Saved* saved
    cdef Matrix x
    cdef Matrix w
    cdef Matrix d
    if g.layout.flags & edges[0].layout.flags & edges[1].layout.flags & CONTIGUOUS and edges[0].layout.numel and edges[1].layout.numel:
        # What is saved lies as the inputs do, and so do the gradients.
        if edges[0].target != NULL:
            saved = saved_or_raise(node, 1)
            result[0] = tensor_new(edges[0].layout, g.dtype_)
            gemm(g.dtype_, False, False, rows, inner, cols, g.data, cols, saved.at.data, inner, (<Tensor> result[0]).data, inner)
        if edges[1].target != NULL:
            saved = saved_or_raise(node, 0)
            result[1] = tensor_new(edges[1].layout, g.dtype_)
            gemm(g.dtype_, True, False, cols, inner, rows, g.data, cols, saved.at.data, inner, (<Tensor> result[1]).data, inner)
        if edges[2].target != NULL and g.layout.numel < GRAIN and edges[2].layout.flags & CONTIGUOUS:
            result[2] = tensor_new(edges[2].layout, g.dtype_)
            strides[0], strides[1] = 0, 1
            K.reduce(REDUCE_SUM, g.dtype_, 2, g.layout.dims, g.data, strides_of(g.layout), (<Tensor> result[2]).data, strides, 0)
        elif edges[2].target != NULL:
            result[2] = sum_to_layout(g, edges[2].layout)
        return 0
    g = suitable(g, &d)
    if node.edges[0].target != NULL:
        _kept_w = saved_matrix(node, 1, &w)
        result[0] = product_with(&d, False, &w, False, g.dtype_)
    if node.edges[1].target != NULL:
        _kept_x = saved_matrix(node, 0, &x)
        result[1] = product_with(&d, True, &x, False, g.dtype_)
    if node.edges[2].target != NULL:
        result[2] = sum_to_layout(g, node.edges[2].layout)
    return 0


backwards[MATMUL] = matmul_backward
backwards[LINEAR] = linear_backward
