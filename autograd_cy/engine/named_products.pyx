# Products with names and shapes of their own: mm, bmm, mv, dot, outer, addmm, kron, trace, cross; and the running of einsum.
#
# Relies on products, shape, record. matrix_products.py and methods.py rely on it.

from cpython.object cimport PyObject

from autograd_cy.array.dtype cimport FLOAT64, INT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport (
    Layout, layout_contiguous, layout_contiguous_like, layout_decref, layout_strided, same_shape, strides_of,
)
from autograd_cy.engine.arguments cimport need_tensor, read_shape
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport converted, copy_into, number_tensor
from autograd_cy.engine.products cimport check_operands, matmul_recorded
from autograd_cy.engine.record cimport any_wants_grad, record
from autograd_cy.engine.reduce cimport reduced
from autograd_cy.engine.routines cimport routine_of, row_number, run_routine
from autograd_cy.engine.shape cimport made, reshape_to
from autograd_cy.engine.tensor cimport Tensor, is_tensor, operators, tensor_alias, tensor_new
from autograd_cy.kernels.table cimport K, REDUCE_SUM

from autograd_cy.array.errors import DTypeError, ShapeError, worded
from autograd_cy.engine.products import matmul
from autograd_cy.engine.reduce import sum as sum_over
from autograd_cy.engine.shape import reshape
from autograd_cy.kernels.table import routine_number

cdef int ADD = row_number("add"), MUL = row_number("mul"), TRACE = row_number("trace"), CROSS = row_number("cross")
cdef int SUM = row_number("sum"), KRON = row_number("kron"), VANDER = row_number("vander")
cdef int RUNNING_PRODUCT = routine_of("scans.running_product")
cdef int R_CROSS = -1, R_KRON = -1        # routines, once they are needed
cdef object MATMUL_FUNCTION = matmul, RESHAPE_FUNCTION = reshape, SUM_FUNCTION = sum_over


cdef int check_dims(object a, int ndim_a, object b, int ndim_b, str name, bint any_dtype=False) except -1:
    """Two tensors of one number dtype and of so many dimensions."""
    for x in (a, b):
        if not is_tensor(<PyObject*> x):
            raise worded(TypeError, "{}: expected a Tensor, got {}", name, type(x).__name__)
    if (<Tensor> a).layout.ndim != ndim_a or (<Tensor> b).layout.ndim != ndim_b:
        raise worded(ShapeError, "{}: expected a {}-D and a {}-D tensor, but got shapes {.shape} and {.shape}", name, ndim_a, ndim_b, a, b)
    return 0 if any_dtype else check_operands(<Tensor> a, <Tensor> b, name)


cdef int unfit(object a, object b, str name) except -1:
    raise worded(ShapeError, "{}: shapes {.shape} and {.shape} do not fit", name, a, b)


def mm(input, mat2):
    """The product of two matrices (n, m) and (m, p). Nothing broadcasts: ValueError where the shapes do not fit."""
    check_dims(input, 2, mat2, 2, "mm")
    if (<Tensor> input).layout.dims[1] != (<Tensor> mat2).layout.dims[0]:
        unfit(input, mat2, "mm")
    return matmul_recorded(<Tensor> input, <Tensor> mat2)


def bmm(input, mat2):
    """The products of matrices (b, n, m) and (b, m, p), one by one. Nothing broadcasts: ValueError where the shapes do not fit."""
    check_dims(input, 3, mat2, 3, "bmm")
    if (<Tensor> input).layout.dims[0] != (<Tensor> mat2).layout.dims[0] \
            or (<Tensor> input).layout.dims[2] != (<Tensor> mat2).layout.dims[1]:
        unfit(input, mat2, "bmm")
    return matmul_recorded(<Tensor> input, <Tensor> mat2)


def mv(input, vec):
    """The product of a matrix (n, m) and a vector (m). ValueError where the shapes do not fit."""
    check_dims(input, 2, vec, 1, "mv")
    if (<Tensor> input).layout.dims[1] != (<Tensor> vec).layout.dims[0]:
        unfit(input, vec, "mv")
    return as_vector(matmul_recorded(<Tensor> input, as_column(<Tensor> vec)))


def dot(input, tensor):
    """The sum of input * tensor, for two vectors of one size. ValueError where they are not."""
    check_dims(input, 1, tensor, 1, "dot")
    if (<Tensor> input).layout.dims[0] != (<Tensor> tensor).layout.dims[0]:
        unfit(input, tensor, "dot")
    return reshape_to(matmul_recorded(as_row(<Tensor> input), as_column(<Tensor> tensor)), 0, NULL)


cdef object times(Tensor a, Tensor b):
    return own(operators.binary(MUL, <PyObject*> a, <PyObject*> b))


def outer(input, vec2):
    """input[i] * vec2[j], for two vectors. ValueError where they are not."""
    check_dims(input, 1, vec2, 1, "outer", True)
    return times(as_column(<Tensor> input), <Tensor> vec2)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), for matrices; input broadcasts. ValueError where the shapes do not fit."""
    check_dims(mat1, 2, mat2, 2, "addmm")
    if (<Tensor> mat1).layout.dims[1] != (<Tensor> mat2).layout.dims[0]:
        unfit(mat1, mat2, "addmm")
    return scaled_sum("addmm", input, matmul_recorded(<Tensor> mat1, <Tensor> mat2), beta, alpha)


def product_of_three(a, b, c):
    """a @ b @ c in the cheaper order; None where they are not three matrices of one dtype that fit."""
    cdef Py_ssize_t* p
    cdef Py_ssize_t* q
    cdef Py_ssize_t* r
    for x in (a, b, c):
        if not is_tensor(<PyObject*> x) or (<Tensor> x).layout.ndim != 2 or (<Tensor> x).dtype_ != (<Tensor> a).dtype_ \
                or (<Tensor> x).dtype_ == BOOL:
            return None
    p, q, r = (<Tensor> a).layout.dims, (<Tensor> b).layout.dims, (<Tensor> c).layout.dims
    if p[1] != q[0] or q[1] != r[0]:
        return None
    if <double> p[0] * q[1] * (p[1] + r[1]) <= <double> p[1] * r[1] * (q[1] + p[0]):
        return matmul_recorded(matmul_recorded(<Tensor> a, <Tensor> b), <Tensor> c)
    return matmul_recorded(<Tensor> a, matmul_recorded(<Tensor> b, <Tensor> c))


def kron(input, other):
    """The Kronecker product: every element of input times all of other, as blocks."""
    global R_KRON
    cdef Tensor a = need_tensor(input, "kron"), b = need_tensor(other, "kron")
    cdef int n = max(a.layout.ndim, b.layout.ndim), i, k
    cdef Py_ssize_t left[MAX_NDIM]
    cdef Py_ssize_t right[MAX_NDIM]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Layout* layout
    if a.layout.ndim == 2 == b.layout.ndim and a.dtype_ == b.dtype_ <= FLOAT64 and a.layout.numel * b.layout.numel <= SMALL_KRON:
        shape[0], shape[1] = a.layout.dims[0] * b.layout.dims[0], a.layout.dims[1] * b.layout.dims[1]
        layout = layout_contiguous(2, shape)
        out = own(tensor_new(layout, a.dtype_))
        layout_decref(layout)
        if R_KRON < 0:
            R_KRON = routine_number("lapack.kron")
        return pair_row(KRON, R_KRON, a, b, out)
    if 2 * n > MAX_NDIM:
        raise worded(ShapeError, "kron: shapes {.shape} and {.shape} have too many dimensions", a, b)
    for i in range(n):
        k = i - n + a.layout.ndim
        left[2 * i], left[2 * i + 1] = a.layout.dims[k] if k >= 0 else 1, 1
        k = i - n + b.layout.ndim
        right[2 * i], right[2 * i + 1] = 1, b.layout.dims[k] if k >= 0 else 1
        shape[i] = left[2 * i] * right[2 * i + 1]
    return reshape_to(times(reshape_to(a, 2 * n, left), reshape_to(b, 2 * n, right)), n, shape)


def trace(input):
    """The sum of a matrix's diagonal (int64 for integers). ValueError unless there are 2 dimensions."""
    cdef Tensor x = need_tensor(input, "trace")
    cdef Tensor out
    cdef PyObject* inputs[1]
    cdef Py_ssize_t size, step, zero = 0
    cdef Layout* layout
    if x.layout.ndim != 2:
        raise worded(ShapeError, "trace: expected a matrix, but got shape {.shape}", x)
    size, step = min(x.layout.dims[0], x.layout.dims[1]), strides_of(x.layout)[0] + strides_of(x.layout)[1]
    layout = layout_contiguous(0, &zero)
    out = own(tensor_new(layout, x.dtype_ if x.dtype_ <= FLOAT64 else INT64))
    layout_decref(layout)
    K.reduce(REDUCE_SUM, x.dtype_, 1, &size, x.data, &step, out.data, &zero, 0)
    inputs[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
        record(TRACE, <PyObject*> out, 1, inputs, NULL, NULL)
    return out


def cross_plainly(a, b):
    """Cross products along the last axis, of tensors of one shape and dtype; None where they are something else."""
    cdef Tensor x
    cdef Tensor y
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        x, y = a, b
        if x.dtype_ == y.dtype_ and x.layout.ndim and x.layout.dims[x.layout.ndim - 1] == 3 and same_shape(x.layout, y.layout):
            return cross_rows(x, y)
    return None


cpdef object cross_rows(Tensor a, Tensor b):
    """The row itself: cross products along the last axis, of size 3, of tensors of one shape and dtype."""
    global R_CROSS
    cdef Layout* layout = layout_contiguous_like(a.layout)
    out = own(tensor_new(layout, a.dtype_))
    layout_decref(layout)
    if R_CROSS < 0:
        R_CROSS = routine_number("lapack.cross")
    return pair_row(CROSS, R_CROSS, a, b, out)


cdef object pair_row(int opcode, int routine, Tensor a, Tensor b, object out):
    """out, as a routine fills it from a and b."""
    cdef PyObject* arrays[3]
    arrays[0], arrays[1], arrays[2] = <PyObject*> a, <PyObject*> b, <PyObject*> out
    run_routine(routine, arrays)
    if a.dtype_ <= FLOAT64 and any_wants_grad(2, arrays):
        record(opcode, <PyObject*> out, 2, arrays, NULL, NULL)
    return out


def powers(Tensor x, Py_ssize_t n, bint increasing):
    """The row itself: the powers 0 to n - 1, or n - 1 to 0, in a new last dimension, as running products."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t ints[2]
    cdef PyObject* tensors[3]
    cdef int ndim = x.layout.ndim, i
    cdef Tensor out, rest, wide
    cdef Py_ssize_t step
    if ndim == MAX_NDIM:
        raise worded(ShapeError, "vander: a tensor has at most {} dimensions", ndim)
    if x.dtype_ > INT64:
        x = own(converted(x, INT64))
    for i in range(ndim):
        shape[i] = x.layout.dims[i]
    shape[ndim] = n
    out = made(ndim + 1, shape, x.dtype_)
    if n:
        for i in range(ndim):
            steps[i] = strides_of(out.layout)[i]
        shape[ndim], steps[ndim] = 1, 1
        step = itemsize_of(x.dtype_) if increasing else -itemsize_of(x.dtype_)
        wide = own(tensor_alias(out, layout_strided(ndim + 1, shape, steps), out.data + (0 if increasing else -(n - 1) * step)))
        copy_into(wide, own(number_tensor(1, x.dtype_)))
        shape[ndim], steps[ndim] = n - 1, 1 if increasing else -1
        rest = own(tensor_alias(out, layout_strided(ndim + 1, shape, steps), wide.data + step))
        for i in range(ndim):
            steps[i] = strides_of(x.layout)[i]
        steps[ndim] = 0
        wide = own(tensor_alias(x, layout_strided(ndim + 1, shape, steps), x.data))
        tensors[0], tensors[1] = <PyObject*> rest, <PyObject*> wide
        ints[0], ints[1] = ndim, 0
        run_routine(RUNNING_PRODUCT, tensors, 2, ints)
    tensors[0] = <PyObject*> x
    if x.dtype_ <= FLOAT64 and any_wants_grad(1, tensors):
        attrs = (n, bool(increasing))
        record(VANDER, <PyObject*> out, 1, tensors, <PyObject*> attrs, NULL)
    return out


# ---- einsum: what einsum.py planned

cdef dict plans = {}          # equation -> [(the shapes of the operands, steps)]
cdef dict plans_of_integers = {}

cdef enum:
    SMALL_KRON = 4096                # elements of a Kronecker product that is a row of its own, without views
    MANY_SHAPES = 16          # of one equation


cdef bint have_shapes(list operands, tuple shapes) except -1:
    cdef Layout* layout
    cdef tuple shape
    cdef Py_ssize_t k
    cdef int i
    if len(operands) != len(shapes):
        return False
    for k in range(len(shapes)):
        layout, shape = (<Tensor> operands[k]).layout, shapes[k]
        if layout.ndim != len(shape):
            return False
        for i in range(layout.ndim):
            if layout.dims[i] != <Py_ssize_t> shape[i]:
                return False
    return True


cdef list steps_for(str equation, list operands):
    cdef bint integers = (<Tensor> operands[0]).dtype_ > FLOAT64
    cdef dict plans_ = plans_of_integers if integers else plans
    cdef list known = plans_.get(equation)
    if known is not None:
        for shapes, steps in known:
            if have_shapes(operands, shapes):
                return steps
    from autograd_cy.engine.einsum import plan
    shapes = tuple([x.shape for x in operands])
    steps = plan(equation, *shapes, sums=not integers)
    if known is None or len(known) >= MANY_SHAPES:
        if len(plans_) >= 1024:
            plans_.clear()
        known = plans_[equation] = []
    known.append((shapes, steps))
    return steps


def einsum(*args):
    """einsum(equation, *operands): sums of products over dimensions that an equation names, as einsum("ij,jk->ik", a, b) is a @ b.

    A letter that stands twice in one operand takes its diagonal; "..." stands for dimensions that broadcast; without "->" the result has
    the letters that occur once, in alphabetical order. Or with lists of integers: einsum(a, [0, 1], b, [1, 2], [0, 2]). Sizes of 1
    broadcast. Any number of operands, multiplied in the cheapest order.

    Raises ValueError where the equation is wrong or does not fit the shapes, RuntimeError for operands of several dtypes.
    """
    cdef list values
    cdef tuple step, more
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t n = len(args), i, second
    cdef PyObject* inputs[1]
    if n < 2 or type(args[0]) is not str or not is_tensor(<PyObject*> args[1]):
        from autograd_cy.engine.einsum import operands_of
        args = operands_of(args)
        n = len(args)
    for i in range(1, n):
        if not is_tensor(<PyObject*> args[i]):
            raise worded(TypeError, "einsum: expected tensors as operands, got {}", type(args[i]).__name__)
        if (<Tensor> args[i]).dtype_ != (<Tensor> args[1]).dtype_:
            raise worded(DTypeError, "einsum: expected operands of one dtype, got {} and {}", args[1].dtype.name, args[i].dtype.name)
    values = list(args[1:])
    for step in steps_for(args[0], values):
        function, a, second, more = step[0], values[<Py_ssize_t> step[1]], step[2], step[3]
        if second >= 0:
            b = values[second]
            out = matmul_recorded(<Tensor> a, <Tensor> b) if function is MATMUL_FUNCTION else times(<Tensor> a, <Tensor> b)
        elif function is RESHAPE_FUNCTION:
            out = reshape_to(<Tensor> a, read_shape(more[0], sizes, "einsum"), sizes)
        elif function is SUM_FUNCTION:                 # more: the dims, and False for keepdim
            out = own(reduced(REDUCE_SUM, <Tensor> a, <tuple> more[0], False, 0))
            inputs[0] = <PyObject*> a
            if (<Tensor> a).dtype_ <= FLOAT64 and any_wants_grad(1, inputs):
                record(SUM, <PyObject*> out, 1, inputs, <PyObject*> more, NULL)
        else:
            out = function(a) if more is None else function(a, *more)
        values.append(out)
    return values[len(values) - 1]


cdef Tensor as_column(Tensor x):
    cdef Py_ssize_t shape[2]
    shape[0], shape[1] = x.layout.dims[0], 1
    return reshape_to(x, 2, shape)


cdef Tensor as_row(Tensor x):
    cdef Py_ssize_t shape[2]
    shape[0], shape[1] = 1, x.layout.dims[0]
    return reshape_to(x, 2, shape)


cdef object as_vector(Tensor x):
    return reshape_to(x, 1, x.layout.dims)


# ---- sums with products

cpdef object scaled_sum(str name, object input, Tensor product, object beta, object alpha):
    """beta * input + alpha * product; with beta 0, NaNs of input do not count."""
    cdef Tensor x = need_tensor(input, name)
    if type(beta) is int and type(alpha) is int and beta == 1 and alpha == 1 and x.dtype_ == product.dtype_ \
            and same_shape(x.layout, product.layout):
        return own(operators.binary(ADD, <PyObject*> x, <PyObject*> product))
    if x.dtype_ != product.dtype_:
        raise worded(RuntimeError, "{}: operands must have one dtype, got {.dtype.name} and {.dtype.name}", name, x, product)
    if x.dtype_ > FLOAT64 and (isinstance(beta, float) or isinstance(alpha, float)):
        raise worded(RuntimeError, "{}: for integral input tensors, beta and alpha must not be floating point numbers", name)
    if not expands_to(x.layout, product.layout):
        raise worded(ShapeError, "{}: an input of shape {.shape} does not expand to the product's shape {.shape}", name, x, product)
    out = product if alpha == 1 else product * alpha
    if beta == 0:                                              # with a gradient of zeros
        return out + x.masked_fill(x == x, 0).masked_fill(x != x, 0) if x.requires_grad else out
    return (x if beta == 1 else x * beta) + out


cdef bint expands_to(Layout* a, Layout* full) noexcept:
    cdef int i, shift = full.ndim - a.ndim
    if shift < 0:
        return False
    for i in range(a.ndim):
        if a.dims[i] != 1 and a.dims[i] != full.dims[i + shift]:
            return False
    return True
