# Distances between rows, covariances and directions: cdist, pdist, cov, corrcoef, normalize, cosine_similarity.
#
# Relies on reduce, products, shape and the routines of kernels/distances. matrix_products.py has their names, nn.functional two of them.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, MAX_NDIM
from autograd_cy.array.layout cimport Layout, layout_contiguous_like, layout_decref, layout_incref, same_shape
from autograd_cy.engine.gradients cimport backwards
from autograd_cy.engine.node cimport Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport contiguous_of, promote
from autograd_cy.engine.products cimport matmul_recorded
from autograd_cy.engine.record cimport any_wants_grad, record, unpack
from autograd_cy.engine.reduce cimport dims_of, input_of, reduced
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport made, reshape_to, transposed
from autograd_cy.engine.tensor cimport DIV, MUL, SUB, Tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport REDUCE_MEAN, REDUCE_NORM, REDUCE_SUM

from autograd_cy.array.dtypes import DTYPES
from autograd_cy.array.errors import ShapeError
from autograd_cy.engine.choose import clamp, clamp_, where
from autograd_cy.engine.reduce import norm, sum
from autograd_cy.engine.shape import convert, expand

cdef int CDIST = row_number("cdist"), PDIST = row_number("pdist"), COV = row_number("cov")
cdef int NORMALIZE = row_number("normalize"), MAXIMUM = row_number("maximum"), SQRT = row_number("sqrt"), GT = row_number("gt")
cdef int DISTANCES = routine_of("distances.distances"), DISTANCES_BACK = routine_of("distances.back")


# ---- distances

# Whether the mode asks for a matrix product; False: where it pays.
cdef dict BY_PRODUCTS = {1: True, "use_mm_for_euclid_dist": True, None: False, 0: False, "use_mm_for_euclid_dist_if_necessary": False}


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norms of all differences between rows of x1 (..., P, M) and of x2 (..., R, M): (..., P, R). The gradient of a distance of 0
    is 0. Euclidean distances of more than 25 rows are made from a matrix product, unless compute_mode says "donot_use...".
    """
    cdef double power = p
    cdef Tensor a = input_of(x1, "cdist"), b = input_of(x2, "cdist")
    cdef int m = a.layout.ndim, n = b.layout.ndim, i, dtype
    cdef bint alike = m == n
    if m < 2 or n < 2 or a.layout.dims[m - 1] != b.layout.dims[n - 1]:
        raise ShapeError(f"cdist: expected rows of one length, got shapes {a.shape} and {b.shape}")
    if not power >= 0:
        raise ShapeError(f"cdist: p must be non-negative, got {power}")
    if a.dtype_ > FLOAT64 or b.dtype_ > FLOAT64:
        raise TypeError(f"cdist: expected floating-point tensors, got {a.dtype.name} and {b.dtype.name}")
    way = BY_PRODUCTS.get(compute_mode)
    if way is True or way is False and power == 2 and (a.layout.dims[m - 2] > 25 or b.layout.dims[n - 2] > 25):
        from autograd_cy.engine.matrix_products import euclidean
        return euclidean(a, b)
    dtype = promote(a.dtype_, b.dtype_)
    for i in range(m - 2 if alike else 0):
        alike = alike and a.layout.dims[i] == b.layout.dims[i]
    if not alike:
        from autograd_cy.engine.arrange import broadcast_shapes
        batch = broadcast_shapes(a.shape[:m - 2], b.shape[:n - 2])
        a, b = expand(a, (*batch, *a.shape[m - 2:])), expand(b, (*batch, *b.shape[n - 2:]))
    return cdist_row(convert(a, DTYPES[dtype]), convert(b, DTYPES[dtype]), power)


def cdist_row(Tensor a, Tensor b, p):
    """The row itself: tensors of one batch and dtype."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int i, n = a.layout.ndim
    for i in range(n - 1):
        shape[i] = a.layout.dims[i]
    shape[n - 1] = b.layout.dims[n - 2]
    return distances(CDIST, a, b, made(n, shape, a.dtype_), p)


def pdist(input, p=2.0):
    """The p-norms of the differences between all pairs of rows of a matrix, (0, 1), (0, 2) ... The gradient of a distance of 0 is 0."""
    cdef double power = p
    cdef Tensor x = input_of(input, "pdist")
    cdef Py_ssize_t n
    if x.layout.ndim != 2:
        raise ShapeError(f"pdist: expected 2-D tensors, but got shapes {x.shape}")
    if x.dtype_ > FLOAT64:
        raise TypeError(f"pdist: expected a floating-point tensor, got {x.dtype.name}")
    if not power >= 0:
        raise ShapeError(f"pdist: p must be non-negative, got {power}")
    n = x.layout.dims[0] * (x.layout.dims[0] - 1) // 2
    return distances(PDIST, x, x, made(1, &n, x.dtype_), power)


cdef object distances(int opcode, Tensor a, Tensor b, Tensor out, object p):
    cdef double power = p
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

def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of variables (rows) over observations (columns): divided by the (weighted) number of observations minus
    `correction`. fweights are how often each observation counts, aweights its weight. One variable gives a number.
    """
    cdef double less = correction
    cdef Tensor x = input_of(input, "cov")
    if x.layout.ndim > 2:
        raise ShapeError(f"cov: expected at most 2 dimensions, got shape {x.shape}")
    if fweights is not None or aweights is not None:
        from autograd_cy.engine.matrix_products import weighted_covariance
        return weighted_covariance(x, correction, fweights, aweights)
    return covariance(x, less, False)


def corrcoef(input):
    """The correlations of variables (rows) over observations (columns), clipped to [-1, 1]."""
    cdef Tensor x = input_of(input, "corrcoef")
    if x.layout.ndim > 2:
        raise ShapeError(f"corrcoef: expected at most 2 dimensions, got shape {x.shape}")
    return covariance(x, 0, True)


cdef object covariance(Tensor x, double less, bint unit):
    cdef Py_ssize_t shape[2]
    if x.dtype_ > FLOAT64:
        x = convert(x, DTYPES[FLOAT32])
    if x.layout.ndim != 2:
        shape[0], shape[1] = 1, x.layout.numel
        x = reshape_to(x, 2, shape)
    out = cov_row(x, max(<double> x.layout.dims[1] - less, 0.), unit)
    return out if x.layout.dims[0] != 1 else reshape_to(<Tensor> out, 0, NULL)


cdef object combined_by(int opcode, object a, object b):
    return own(operators.binary(opcode, <PyObject*> a, <PyObject*> b))


def cov_row(Tensor x, freedom, unit):
    """The row itself, of a matrix: divided by `freedom`; or, unit, of rows of length 1."""
    cdef PyObject* inputs[1]
    cdef Tensor a
    layout_incref(x.layout)
    a = own(tensor_alias(x, x.layout, x.data))
    a = combined_by(SUB, a, own(reduced(REDUCE_MEAN, a, (1,), True, 0)))
    if unit:
        a = combined_by(DIV, a, own(reduced(REDUCE_NORM, a, (1,), True, 2)))
    out = matmul_recorded(a, transposed(a, 0, 1))
    out = clamp_(out, -1, 1) if unit else combined_by(DIV, out, float(freedom))
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (freedom, bool(unit))
        record(COV, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


# ---- directions

def normalize(input, p=2.0, dim=1, eps=1e-12):
    """x / max(norm(x, p), eps) along dim."""
    cdef Tensor x = input_of(input, "normalize")
    cdef double order = p
    if order == 2 and x.dtype_ <= FLOAT64:
        return unit_row(x, dims_of(dim, x.layout.ndim, "normalize"), float(eps))
    return combined_by(DIV, x, clamp(norm(x, p, dim, True), eps))


def unit_row(Tensor x, tuple dims, eps):
    """The row itself."""
    cdef PyObject* inputs[1]
    cdef Tensor a
    layout_incref(x.layout)
    a = own(tensor_alias(x, x.layout, x.data))
    size = own(reduced(REDUCE_NORM, a, dims, True, 2))
    out = combined_by(DIV, a, combined_by(MAXIMUM, size, eps))
    inputs[0] = <PyObject*> x
    if any_wants_grad(1, inputs):
        attrs = (dims, eps)
        record(NORMALIZE, <PyObject*> out, 1, inputs, <PyObject*> attrs, NULL)
    return out


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


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim; x1 and x2 broadcast. Each is divided by its norm first."""
    cdef Tensor a = input_of(x1, "cosine_similarity"), b = input_of(x2, "cosine_similarity")
    if a.dtype_ > FLOAT64 and b.dtype_ > FLOAT64:
        raise RuntimeError(f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {a.dtype.name}")
    if not same_shape(a.layout, b.layout):
        from autograd_cy.engine.joins import broadcast_tensors
        a, b = broadcast_tensors(a, b)
    return sum(combined_by(MUL, normalize(a, 2.0, dim, eps), normalize(b, 2.0, dim, eps)), dim)
