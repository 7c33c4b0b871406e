# Copies made of blocks of their input: turned, rolled, repeated, padded.
#
# Relies on array, shape, record. arrange.py adds what is made of these; rules call flip, roll and padded; methods.py makes most of them
# methods.
#
# Each is one node whose attributes are integers: composed of views and copies it would be four to ten.
#
# A little above 500 lines, as all share how blocks are copied and differentiated.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy, memset

from autograd_cy.array.dtype cimport FLOAT32, FLOAT64, MAX_NDIM, itemsize_of
from autograd_cy.array.layout cimport CONTIGUOUS, Layout, layout_contiguous, layout_decref, layout_dense_like, strides_of
from autograd_cy.engine.arguments cimport (
    axis_at, axis_of, integer, make_quick, need_tensor, plain_ints, read_dims, read_shape, sizes_from, unmoved,
)
from autograd_cy.engine.gradients cimport backwards, sum_to_layout
from autograd_cy.engine.node cimport EDGE_WORDS, Node
from autograd_cy.engine.object cimport own
from autograd_cy.engine.operands cimport Operand_, contiguous_of, read_operand, write_number
from autograd_cy.engine.record cimport made_of, wants_grad
from autograd_cy.engine.routines cimport row_number
from autograd_cy.engine.shape cimport copy_block, made, narrowed, reshape_to, transposed
from autograd_cy.engine.tensor cimport Tensor, operators, tensor_new

from autograd_cy.array.errors import ShapeError, worded
from autograd_cy.engine.shape import clone

cdef extern from *:
    """
    #define AG_MOST ((Py_ssize_t) 1 << 58)       /* elements of a tensor */
    """
    const Py_ssize_t MOST "AG_MOST"

cdef extern from "Python.h":
    bint PyIndex_Check(object o) noexcept
    bint PyLong_CheckExact(PyObject* o) noexcept

cdef int FLIP = row_number("flip"), ROLL = row_number("roll"), REPEAT = row_number("repeat"), INTERLEAVE = row_number("repeat_interleave")
cdef int PAD = row_number("pad"), BORDER = row_number("border")
cdef dict BORDERS = {"reflect": 0, "replicate": 1, "circular": 2}


# ---- turned

cdef object flip_dims(Tensor x, int n, Py_ssize_t* dims):
    cdef Layout* layout = layout_dense_like(x.layout)
    cdef Tensor out = own(tensor_new(layout, x.dtype_))
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t start = 0
    cdef int i
    layout_decref(layout)
    for i in range(x.layout.ndim):
        strides[i] = strides_of(x.layout)[i]
    for i in range(n if x.layout.ndim else 0):
        start += (x.layout.dims[dims[i]] - 1) * strides[dims[i]]
        strides[dims[i]] = -strides[dims[i]]
    copy_block(out, 0, x, start, x.layout.ndim, x.layout.dims, strides_of(out.layout), strides)
    return made_of(x, out, FLIP, n, dims)


cdef object flipped(Tensor x, int n, Py_ssize_t* dims):
    """None where dims are out of range or occur twice."""
    cdef unsigned long long seen = 0
    cdef int ndim = x.layout.ndim
    cdef int i
    for i in range(n):
        dims[i] += ndim if dims[i] < 0 else 0
        if not 0 <= dims[i] < ndim or seen >> dims[i] & 1:
            return None
        seen |= <unsigned long long> 1 << dims[i]
    return flip_dims(x, n, dims)


def flip(input, *axes, dims=None):
    """input with the order along dims reversed; a copy. Raises IndexError for dims out of range, RuntimeError for one that occurs twice."""
    cdef Tensor x = need_tensor(input, "flip")
    cdef Py_ssize_t found[MAX_NDIM]
    return flip_dims(x, read_dims(sizes_from(axes, dims), x.layout.ndim, found, "flip"), found)


def rot90(input, k=1, dims=(0, 1)):
    """input turned by k times 90 degrees from dims[0] towards dims[1]; a copy."""
    cdef Tensor x = need_tensor(input, "rot90")
    cdef Py_ssize_t axes[MAX_NDIM]
    cdef Py_ssize_t turns = k
    turns = (turns % 4 + 4) % 4
    if x.layout.ndim < 2 or read_dims(dims, x.layout.ndim, axes, "rot90") != 2:
        raise worded(RuntimeError, "rot90: expected 2 dims of a tensor of at least 2 dimensions, got {} and shape {.shape}", dims, x)
    if turns == 0:
        return clone(x)
    if turns == 2:
        return flip_dims(x, 2, axes)
    return transposed(flip_dims(x, 1, axes + (turns == 1)), <int> axes[0], <int> axes[1])


cdef object rolled(Tensor x, int n, const Py_ssize_t* shifts):
    """The row itself: x moved along every axis by a number from 0 on that is smaller than its size (or 0); with one shift for other than one
    axis, as if there were one."""
    cdef Tensor out = made(x.layout.ndim, x.layout.dims, x.dtype_), a = x
    cdef const Py_ssize_t* sizes = x.layout.dims
    cdef const Py_ssize_t* strides = strides_of(x.layout)
    cdef const Py_ssize_t* steps = strides_of(out.layout)
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int axes[MAX_NDIM]
    cdef Py_ssize_t to, start, shift, one = 1
    cdef Py_ssize_t block
    cdef int i, k = 0
    if n != x.layout.ndim:
        a = x if x.layout.flags & CONTIGUOUS else own(contiguous_of(x))
        sizes, strides, steps = &x.layout.numel, &one, &one
    for i in range(n):
        dims[i] = sizes[i]
        if shifts[i]:
            axes[k] = i
            k += 1
    if x.layout.numel:
        for block in range(<Py_ssize_t> 1 << k):          # along each axis: what stays (shifted), or what comes in at the other end
            to = start = 0
            for i in range(k):
                shift = shifts[axes[i]]
                if block >> i & 1:
                    dims[axes[i]] = shift
                    start += (sizes[axes[i]] - shift) * strides[axes[i]]
                else:
                    dims[axes[i]] = sizes[axes[i]] - shift
                    to += shift * steps[axes[i]]
            copy_block(out, to, a, start, n, dims, steps, strides)
    return made_of(x, out, ROLL, n, shifts)


cdef int numbers_in(object given, Py_ssize_t* numbers, str name) except -1:
    """Of a number or a sequence of them; how many."""
    if PyLong_CheckExact(<PyObject*> given) or PyIndex_Check(given):
        numbers[0] = given if PyLong_CheckExact(<PyObject*> given) else integer(given, "a number", name)
        return 1
    return read_shape(given, numbers, name)


cdef inline Py_ssize_t place_in(Py_ssize_t size, Py_ssize_t shift) noexcept:
    """The number from 0 to size - 1 that differs by a multiple of size."""
    if not -size <= shift < size:
        shift %= size
    return shift + size if shift < 0 else shift


def roll(input, shifts, dims=None):
    """input with its elements moved by shifts along dims, those that leave coming in at the other end; without dims: flattened.

    Raises IndexError for dims out of range, RuntimeError where shifts and dims are not as many.
    """
    cdef Tensor x = need_tensor(input, "roll")
    cdef Py_ssize_t by[MAX_NDIM]
    cdef Py_ssize_t moves[MAX_NDIM]
    cdef Py_ssize_t places[MAX_NDIM]
    cdef Py_ssize_t size
    cdef int n = numbers_in(shifts, by, "roll"), named = 0 if dims is None else numbers_in(dims, places, "roll"), axis, i
    if not named and n == 1:
        moves[0] = place_in(x.layout.numel, by[0]) if x.layout.numel else 0
        return rolled(x, 1, moves)
    if named != n:
        raise worded(RuntimeError, "roll: shifts {} and dims {} must be as many", shifts, dims)
    for i in range(x.layout.ndim):
        moves[i] = 0
    for i in range(n):
        axis = axis_at(places[i], x.layout.ndim, "roll")
        size = x.layout.dims[axis] if x.layout.ndim else 0
        if size:
            moves[axis] = place_in(size, moves[axis] + place_in(size, by[i]))
    return rolled(x, x.layout.ndim, moves)


# ---- repeated

cdef object copied_over(Tensor x, int n, Py_ssize_t* counts):
    """None for fewer counts than dimensions, negative ones, or too many elements."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t dims[MAX_NDIM]          # as they are copied: an axis that is repeated counts for two
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t size, stride
    cdef int i, m = 0, lead = n - x.layout.ndim
    cdef Tensor out
    if lead < 0:
        return None
    for i in range(n):
        size = x.layout.dims[i - lead] if i >= lead else 1
        if counts[i] < 0 or counts[i] > MOST // max(size, 1):
            return None
        shape[i] = counts[i] * size
    out = made(n, shape, x.dtype_)
    for i in range(n if out.layout.numel else 0):
        size, stride = 1, 0
        if i >= lead:
            size, stride = x.layout.dims[i - lead], strides_of(x.layout)[i - lead]
        if m + 2 > MAX_NDIM:
            return None
        if counts[i] != 1:
            dims[m], steps[m], strides[m] = counts[i], size * strides_of(out.layout)[i], 0
            m += 1
        if size != 1:
            dims[m], steps[m], strides[m] = size, strides_of(out.layout)[i], stride
            m += 1
    if out.layout.numel:
        copy_block(out, 0, x, 0, m, dims, steps, strides)
    return made_of(x, out, REPEAT, n, counts)


cdef object repeat_by(object input, object given, bint tiles, str name):
    cdef Tensor x = need_tensor(input, name)
    cdef Py_ssize_t counts[MAX_NDIM]
    cdef int n = read_shape(given, counts, name)
    result = tiled(x, n, counts) if tiles else copied_over(x, n, counts)
    if result is not None:
        return result
    raise worded(ShapeError, "{}: expected numbers from 0 on, one for each dimension of shape {.shape}, and a result of less than 2 ** "
                             "58 elements, got {}", name, x, tuple(given))


def repeat(input, *sizes, repeats=None):
    """input repeated sizes[i] times along dimension i; more sizes than dimensions add dimensions in front.

    Raises RuntimeError for fewer sizes than dimensions or negative ones.
    """
    return repeat_by(input, sizes_from(sizes, repeats), False, "repeat")


cdef object tiled(Tensor x, int n, Py_ssize_t* given):
    cdef Py_ssize_t counts[MAX_NDIM]
    cdef int lead = max(x.layout.ndim - n, 0)
    cdef int i
    for i in range(n + lead):
        counts[i] = given[i - lead] if i >= lead else 1
    return copied_over(x, n + lead, counts)


def tile(input, *sizes, dims=None):
    """As repeat; fewer numbers than dimensions repeat the last dimensions."""
    return repeat_by(input, sizes_from(sizes, dims), True, "tile")


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Every slice of dim (None: every element) repeated: `repeats` times, or as often as its element of a tensor says.

    repeat_interleave(repeats): number i as often as repeats[i] says. Raises RuntimeError for negative repeats or another length.
    """
    if type(repeats) is not int:
        from autograd_cy.engine.arrange import repeat_interleave_by
        return repeat_interleave_by(input, repeats, dim, output_size)
    cdef Tensor x = need_tensor(input, "repeat_interleave"), out, a = x
    cdef Py_ssize_t attrs[2]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t dims[MAX_NDIM + 1]
    cdef Py_ssize_t steps[MAX_NDIM + 1]
    cdef Py_ssize_t strides[MAX_NDIM + 1]
    cdef Py_ssize_t count = repeats, one = 1
    cdef const Py_ssize_t* sizes = x.layout.dims
    cdef const Py_ssize_t* given = strides_of(x.layout)
    cdef int axis = axis_of(dim, x.layout.ndim, "repeat_interleave") if dim is not None else -1
    cdef int i, at = axis, ndim = x.layout.ndim
    if count < 0:
        raise worded(RuntimeError, "repeat_interleave: repeats must not be negative, got {}", count)
    if dim is None or ndim == 0:                      # as if x were flat
        axis, at, ndim = -1, 0, 1
        sizes, given = &x.layout.numel, &one
        a = x if x.layout.flags & CONTIGUOUS else own(contiguous_of(x))
    if count > MOST // max(sizes[at], 1) or ndim == MAX_NDIM:
        raise worded(ShapeError, "repeat_interleave: {} times dim {} of shape {.shape} is more than a tensor can hold", count, at, x)
    for i in range(ndim):
        shape[i] = sizes[i] * (count if i == at else 1)
    out = made(ndim, shape, x.dtype_)
    for i in range(ndim):
        dims[i + (i > at)], strides[i + (i > at)] = sizes[i], given[i]
        steps[i + (i > at)] = strides_of(out.layout)[i]
    dims[at + 1], steps[at + 1], strides[at + 1] = count, steps[at], 0
    steps[at] *= count
    copy_block(out, 0, a, 0, ndim + 1, dims, steps, strides)
    attrs[0], attrs[1] = count, axis
    return made_of(x, out, INTERLEAVE, 2, attrs)


# ---- padded

cdef enum:
    CHUNK = 4096

cdef int set_all(Tensor out, object value) except -1:
    """Every element of new memory (in a capture, a constant); true where the value is no plain number of the dtype."""
    cdef Py_ssize_t i, n = out.layout.numel * itemsize_of(out.dtype_), done = min(n, <Py_ssize_t> CHUNK) & -8
    cdef Operand_ number
    cdef double element = 0
    if n and read_operand(<PyObject*> value, &number) == 0 and number.tensor == NULL and (out.dtype_ <= FLOAT64 or number.number == 0):
        write_number(&number, out.dtype_, <char*> &element)
        if (<long long*> &element)[0] == 0:       # not -0.0
            memset(out.data, 0, n)
            return 0
        if out.dtype_ == FLOAT32:
            (<float*> &element)[1] = (<float*> &element)[0]
        for i in range(done // 8):
            (<double*> out.data)[i] = element
        while done + 8 <= n:                       # copies from the cache: this module's loops have no vectors
            i = min(n - done, <Py_ssize_t> CHUNK)
            memcpy(out.data + done, out.data, i)
            done += i
        memcpy(out.data + done, &element, n - done)
        return 0
    return n != 0


cdef object pad_by(Tensor x, Py_ssize_t* pads, object value):
    """pads: before and after every axis, and room for the value (None: 0) as a double."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t before, after, to = 0, start = 0
    cdef unsigned long long moves
    cdef int ndim = x.layout.ndim
    cdef bint filled = True
    cdef Tensor out
    cdef int i
    for i in range(ndim):
        before, after, dims[i] = pads[2 * i], pads[2 * i + 1], x.layout.dims[i]
        if not -MOST < before < MOST or not -MOST < after < MOST:
            raise worded(ShapeError, "pad: {} and {} elements around dim {} of shape {.shape} are more than a tensor can hold",
                                     before, after, i, x)
        shape[i] = dims[i] + before + after
        if before < 0:
            dims[i] += before
            start -= before * strides_of(x.layout)[i]
        if after < 0:
            dims[i] += after
        if dims[i] < 0:
            raise worded(RuntimeError, "pad: {} and {} leave less than nothing of dim {} of shape {.shape}", before, after, i, x)
        filled &= max(before, after) <= 0
    out = made(ndim, shape, x.dtype_)
    for i in range(ndim):
        if pads[2 * i] > 0:
            to += pads[2 * i] * strides_of(out.layout)[i]
    pads[2 * ndim] = 0
    if value is None:
        if not filled:
            memset(out.data, 0, out.layout.numel * itemsize_of(out.dtype_))
    else:
        moves = operators.exchanges
        if not filled and set_all(out, value):
            from autograd_cy.engine.creation import full
            out = full(out.shape, value, dtype=x.dtype)
        if wants_grad(x):
            (<double*> pads)[2 * ndim] = value
        unmoved(moves, "pad")
    copy_block(out, to, x, start, ndim, dims, strides_of(out.layout), strides_of(x.layout))
    return made_of(x, out, PAD, 2 * ndim + 1, pads)


def padded(Tensor x, tuple pads, value=0):
    """x with pads[2 i] and pads[2 i + 1] elements of `value` before and after its axis i: the row `pad`."""
    cdef Py_ssize_t numbers[2 * MAX_NDIM + 1]
    cdef int i
    for i in range(2 * x.layout.ndim):
        numbers[i] = integer(pads[i], "a number of elements", "pad")
    return pad_by(x, numbers, value)


cpdef object bordered(Tensor x, int dim, Py_ssize_t before, Py_ssize_t after, int mode):
    """The row `border`: one axis with what it is mirrored (mode 0), repeated (1) or continued (2) by; numbers from 0 on that x can give."""
    cdef Py_ssize_t n = x.layout.dims[dim], stride = strides_of(x.layout)[dim]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t attrs[4]
    cdef Py_ssize_t starts[3]
    cdef Py_ssize_t to = 0
    cdef Tensor out
    cdef int i
    for i in range(x.layout.ndim):
        shape[i], strides[i] = x.layout.dims[i], strides_of(x.layout)[i]
    shape[dim] = n + before + after
    out = made(x.layout.ndim, shape, x.dtype_)
    attrs[0], attrs[1], attrs[2], attrs[3] = dim, before, after, mode
    starts[0] = before if mode == 0 else 0 if mode == 1 else n - before
    starts[1] = 0
    starts[2] = n - 2 if mode == 0 else n - 1 if mode == 1 else 0
    for i in range(3):
        shape[dim] = n if i == 1 else before if i == 0 else after
        strides[dim] = stride if i == 1 or mode == 2 else -stride if mode == 0 else 0
        copy_block(out, to * strides_of(out.layout)[dim], x, starts[i] * stride, x.layout.ndim, shape, strides_of(out.layout), strides)
        to += shape[dim]
    return made_of(x, out, BORDER, 4, attrs)


cdef object with_border(Tensor x, int axis, Py_ssize_t before, Py_ssize_t after, int mode):
    """One dimension with both borders; negative numbers cut, a circular border continues what is left after cutting."""
    cdef Py_ssize_t size = x.layout.dims[axis], most = max(before, after)
    cdef Py_ssize_t left = size + min(before, 0) + min(after, 0)
    cdef Py_ssize_t cut = max(-before, 0)
    if left < 0 or before < -size or after < -size:
        raise worded(RuntimeError, "pad: {} and {} leave less than nothing of dim {} of shape {.shape}", before, after, axis, x)
    if mode == 2:
        if left < size:
            x = narrowed(x, axis, cut, left)
        if most > left:
            raise worded(RuntimeError, "pad: circular needs padding up to the size {} of dim {} of shape {.shape}, got {} and {}",
                                       left, axis, x, before, after)
        return bordered(x, axis, max(before, 0), max(after, 0), 2) if most > 0 else x
    if mode == 0 and most >= size:
        raise worded(RuntimeError, "pad: reflect needs padding below the size {} of dim {} of shape {.shape}, got {} and {}",
                                   size, axis, x, before, after)
    if most > 0 and size == 0:
        raise worded(RuntimeError, "pad: replicate needs elements along dim {} of shape {.shape}", axis, x)
    if most > MOST - size:
        raise worded(ShapeError, "pad: {} and {} elements around dim {} of shape {.shape} are more than a tensor can hold",
                                 before, after, axis, x)
    if most > 0:
        x = bordered(x, axis, max(before, 0), max(after, 0), mode)
    return narrowed(x, axis, cut, size + before + after) if min(before, after) < 0 else x


def pad(input, pad, str mode="constant", value=None):
    """input with pad[0] elements before and pad[1] after its last dimension, pad[2], pad[3] for the one before, and so on.

    mode "constant": `value` (0); "reflect": mirrored without the edge; "replicate": the edge; "circular": from the other end.
    Negative numbers cut. Raises RuntimeError for an odd number, for more than there are dimensions, and for padding that the mode
    has no elements for.
    """
    cdef Tensor x = need_tensor(input, "pad"), out
    cdef Py_ssize_t numbers[2 * MAX_NDIM + 1]
    cdef Py_ssize_t given[2 * MAX_NDIM]
    cdef PyObject* plain = <PyObject*> pad
    cdef int n = -1 if PyLong_CheckExact(plain) else plain_ints(&plain, 1, given), ndim = x.layout.ndim
    cdef int i
    if n < 0:
        pad = tuple(pad)
        n = <int> len(pad)
        for i in range(min(n, 2 * MAX_NDIM)):
            given[i] = integer(pad[i], "a number of elements", "pad")
    if n % 2 or n > 2 * ndim:
        raise worded(RuntimeError, "pad: expected an even number of at most {} numbers for shape {.shape}, got {}", 2 * ndim, x, pad)
    for i in range(2 * ndim):
        numbers[i] = given[2 * (ndim - 1) - i + 2 * (i % 2)] if 2 * (ndim - 1 - i // 2) < n else 0
    if mode == "constant":
        return pad_by(x, numbers, value)
    border = BORDERS.get(mode)
    if border is None:
        raise worded(NotImplementedError, "pad: mode must be constant, reflect, replicate or circular, got {!r}", mode)
    if value:
        raise worded(ValueError, "pad: mode {!r} takes no value, got {}", mode, value)
    out = x
    for i in range(ndim - 1, ndim - 1 - n // 2, -1):
        out = with_border(out, i, numbers[2 * i], numbers[2 * i + 1], border)
    return clone(out) if out is x else out


make_quick(flip, flipped, NULL)
make_quick(repeat, copied_over, NULL)
make_quick(tile, tiled, NULL)


# ---- first derivatives, as the rules give them

cdef int turned_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """Those that are such an operation again."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* shape = node.edges[0].layout
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef Py_ssize_t back[2 * MAX_NDIM + 1]
    cdef int i, n = <int> node.room - EDGE_WORDS - (node.opcode == PAD)
    for i in range(n):
        back[i] = ints[i]
        if node.opcode == ROLL and ints[i]:
            back[i] = (shape.dims[i] if n == shape.ndim else shape.numel) - ints[i]
        elif node.opcode == PAD:
            back[i] = -ints[i]
    if node.opcode == FLIP:
        out = flip_dims(g, n, back)
    elif node.opcode == ROLL:
        out = rolled(g, n, back)
    else:
        out = pad_by(g, back, None)
    Py_INCREF(out)
    result[0] = <PyObject*> out
    return 0


cdef int repeated_backward(Node node, PyObject** grads, PyObject** result) except -1:
    """repeat and repeat_interleave: the sum of all copies. Counts and sizes are axes of their own; of repeat, but for those that are 1."""
    cdef Tensor g = <Tensor> grads[0]
    cdef Layout* shape = node.edges[0].layout
    cdef const Py_ssize_t* ints = <const Py_ssize_t*> node.saved
    cdef Py_ssize_t seen[2 * MAX_NDIM + 2]
    cdef Py_ssize_t kept[2 * MAX_NDIM + 2]
    cdef bint whole = node.opcode == REPEAT, flat = not whole and ints[1] < 0
    cdef int i, m = 0, n = <int> node.room - EDGE_WORDS if whole else 1 if flat else shape.ndim
    cdef int lead = 0 if flat else n - shape.ndim
    cdef Py_ssize_t size, count
    cdef Layout* layout
    for i in range(n):
        size = shape.numel if flat else shape.dims[i - lead] if i >= lead else 1
        count = ints[i if whole else 0]
        if count != 1 and whole:
            seen[m], kept[m] = count, 1
            m += 1
        if size != 1 or not whole:
            seen[m] = kept[m] = size
            m += 1
        if not whole and i == max(ints[1], 0):
            seen[m], kept[m] = count, 1
            m += 1
    g = reshape_to(g, m, seen)
    layout = layout_contiguous(m, kept)
    g = own(sum_to_layout(g, layout))
    layout_decref(layout)
    g = reshape_to(g, shape.ndim, shape.dims)
    Py_INCREF(g)
    result[0] = <PyObject*> g
    return 0


backwards[FLIP] = backwards[ROLL] = backwards[PAD] = turned_backward
backwards[REPEAT] = backwards[INTERLEAVE] = repeated_backward
