# Rows of distances, covariances and directions.
#
# Relies on reduce, products, shape and the routines of kernels/distances. matrix_products.py has cdist, pdist, cov and corrcoef,
# nn.functional normalize.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport FLOAT64, MAX_NDIM
from autograd_cy.array.layout cimport Layout, layout_contiguous_like, layout_decref, layout_incref, same_shape
from autograd_cy.engine.arguments cimport need_tensor
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of
from autograd_cy.engine.products cimport matmul_recorded
from autograd_cy.engine.record cimport any_wants_grad, record, unpack
from autograd_cy.engine.reduce cimport dims_of, reduced
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport made, transposed
from autograd_cy.engine.tensor cimport DIV, MUL, SUB, Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport REDUCE_MEAN, REDUCE_NORM, REDUCE_SUM

from autograd_cy.engine.choose import clamp_, where
from autograd_cy.engine.reduce import sum as sum_over

cdef int CDIST = row_number("cdist"), PDIST = row_number("pdist"), COV = row_number("cov")
cdef int NORMALIZE = row_number("normalize"), MAXIMUM = row_number("maximum"), SQRT = row_number("sqrt"), GT = row_number("gt")
cdef int DISTANCES = routine_of("distances.distances"), DISTANCES_BACK = routine_of("distances.back")
cdef int COVARIANCE = routine_of("distances.covariance")


# ---- distances

cdef enum:
    MANY_ROWS = 25                 # rows from which Euclidean distances and covariances are made from a matrix product
    FEW_NUMBERS = 512              # as in kernels/distances


def cdist_row(a, b, double p, bint anyway):
    """The row itself, where a and b are rows of floats in one batch and dtype; else None, or (not anyway) where there are many."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Tensor x
    cdef Tensor y
    cdef int i, n
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or not p >= 0:
        return None
    x, y, n = a, b, a.ndim
    if x.dtype_ != y.dtype_ or x.dtype_ > FLOAT64 or n < 2 or y.layout.ndim != n or x.layout.dims[n - 1] != y.layout.dims[n - 1] \
            or not anyway and p == 2 and (x.layout.dims[n - 2] > MANY_ROWS or y.layout.dims[n - 2] > MANY_ROWS):
        return None
    for i in range(n - 1):
        shape[i] = x.layout.dims[i]
        if i < n - 2 and shape[i] != y.layout.dims[i]:
            return None
    shape[n - 1] = y.layout.dims[n - 2]
    return distances(CDIST, x, y, made(n, shape, x.dtype_), p)


def pdist_row(a, double p):
    """The row itself, of a matrix of floats; None for anything else."""
    cdef Py_ssize_t n
    cdef Tensor x
    if not isinstance(a, Tensor) or not p >= 0:
        return None
    x = a
    if x.layout.ndim != 2 or x.dtype_ > FLOAT64:
        return None
    n = x.layout.dims[0] * (x.layout.dims[0] - 1) // 2
    return distances(PDIST, x, x, made(1, &n, x.dtype_), p)


cdef object distances(int opcode, Tensor a, Tensor b, Tensor out, double power):
    cdef PyObject* tensors[4]
    cdef Py_ssize_t pairs = opcode == PDIST
    first, second = own(contiguous_of(a)), own(contiguous_of(b))
    tensors[0], tensors[1], tensors[2] = <PyObject*> out, <PyObject*> first, <PyObject*> second
    if out.layout.numel:
        run_routine(DISTANCES, tensors, 1, &pairs, 1, &power)
    tensors[1], tensors[2] = <PyObject*> a, <PyObject*> b
    if any_wants_grad(1 if pairs else 2, tensors + 1):
        attrs = (power,)
        record(opcode, <PyObject*> out, 1 if pairs else 2, tensors + 1, <PyObject*> attrs, NULL)
    return out


cdef Tensor like(Tensor x):
    cdef Layout* layout = layout_contiguous_like(x.layout)
    out = own(tensor_new(layout, x.dtype_))
    layout_decref(layout)
    return out


cdef int distances_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """Both gradients at once; of pairs the one."""
    cdef Py_ssize_t pairs = node.opcode == PDIST
    cdef double power = (<tuple> node.attrs)[0]
    cdef Tensor g = own(contiguous_of(<Tensor> grads[0])), a = own(contiguous_of(own(unpack(node, 0, False))))
    cdef Tensor b = a if pairs else own(contiguous_of(own(unpack(node, 1, False)))), y = own(unpack(node, 2 - <int> pairs, False))
    cdef Tensor da = like(a), db = None if pairs else like(b)
    cdef PyObject* tensors[6]
    tensors[0], tensors[1], tensors[2], tensors[3] = <PyObject*> da, NULL if pairs else <PyObject*> db, <PyObject*> a, <PyObject*> b
    tensors[4], tensors[5] = <PyObject*> y, <PyObject*> g
    run_routine(DISTANCES_BACK, tensors, 1, &pairs, 1, &power)
    if node.edges[0].target != NULL:
        Py_INCREF(da)
        result[0] = <PyObject*> da
    if not pairs and node.edges[1].target != NULL:
        Py_INCREF(db)
        result[1] = <PyObject*> db
    return 0


backwards[CDIST] = backwards[PDIST] = distances_backward


# ---- covariances

cdef object combined_by(int opcode, object a, object b):
    return own(operators.binary(opcode, <PyObject*> a, <PyObject*> b))


def cov_row(given, double correction, bint unit):
    """The row itself, of a matrix of floats, None for anything else: divided by the number of columns less the correction; or, unit, of
    rows of length 1."""
    cdef PyObject* inputs[2]
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t as_unit
    cdef double freedom
    cdef Tensor x
    cdef Tensor a
    if not isinstance(given, Tensor):
        return None
    x = given
    if x.layout.ndim != 2 or x.dtype_ > FLOAT64:
        return None
    freedom = max(<double> x.layout.dims[1] - correction, 0.)
    if x.layout.numel <= FEW_NUMBERS and x.layout.dims[0] <= MANY_ROWS:
        a = own(contiguous_of(x))
        shape[0] = shape[1] = x.layout.dims[0]
        out = made(2, shape, x.dtype_)
        inputs[0], inputs[1], as_unit = <PyObject*> out, <PyObject*> a, unit
        run_routine(COVARIANCE, inputs, 1, &as_unit, 1, &freedom)
    else:
        layout_incref(x.layout)
        a = own(tensor_alias(x, x.layout, x.data))
        a = combined_by(SUB, a, own(reduced(REDUCE_MEAN, a, (1,), True, 0)))
        if unit:
            a = combined_by(DIV, a, own(reduced(REDUCE_NORM, a, (1,), True, 2)))
        out = matmul_recorded(a, transposed(a, 0, 1))
        out = clamp_(out, -1, 1) if unit else combined_by(DIV, out, freedom)
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (freedom, unit)
        record(COV, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


# ---- directions

def unit_row(given, dim, double eps):
    """The row itself, of floats; None of anything else."""
    cdef PyObject* inputs[1]
    cdef Tensor x
    cdef Tensor a
    if not isinstance(given, Tensor) or (<Tensor> given).dtype_ > FLOAT64:
        return None
    x = given
    cdef tuple dims = dims_of(dim, x.layout.ndim, "normalize")
    layout_incref(x.layout)
    a = own(tensor_alias(x, x.layout, x.data))
    limit = eps
    size = combined_by(MAXIMUM, own(reduced(REDUCE_NORM, a, dims, True, 2)), limit)
    out = combined_by(DIV, a, size)
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (dims, limit)
        record(NORMALIZE, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


def normalize(input, p=2.0, dim=1, double eps=1e-12):
    """x / max(norm(x, p), eps) along dim."""
    out = unit_row(input, dim, eps) if p == 2 else None
    if out is None:
        x = need_tensor(input, "normalize")
        out = x / x.norm(p, dim, True).clamp(eps)
    return out


def cosine_rows(first, second, dim, double eps):
    """The cosine similarity of floats of one shape; None of anything else."""
    if not isinstance(first, Tensor) or not isinstance(second, Tensor) or not same_shape((<Tensor> first).layout, (<Tensor> second).layout):
        return None
    a, b = unit_row(first, dim, eps), unit_row(second, dim, eps)
    return None if a is None or b is None else sum_over(combined_by(MUL, a, b), dim)


cdef int unit_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """The first derivative, as the rule gives it."""
    cdef Tensor g = <Tensor> grads[0], x = own(unpack(node, 0, False)), y = own(unpack(node, 1, False)), size, part
    cdef tuple attrs = <tuple> node.attrs
    size = own(reduced(REDUCE_SUM, combined_by(MUL, x, x), attrs[0], True, 0))
    size = own(operators.unary(SQRT, <PyObject*> size))
    part = combined_by(MUL, y, own(reduced(REDUCE_SUM, combined_by(MUL, g, y), attrs[0], True, 0)))
    g = combined_by(SUB, g, where(combined_by(GT, size, attrs[1]), part, 0))
    g = combined_by(DIV, g, combined_by(MAXIMUM, size, attrs[1]))
    Py_INCREF(g)
    result[0] = <PyObject*> g
    return 0


backwards[NORMALIZE] = unit_backward
