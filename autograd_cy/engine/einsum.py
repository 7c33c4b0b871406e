"""einsum: sums of products by the names of dimensions.

Relies on products, shape, elementwise; named_products runs what is planned here. An equation with shapes is planned once: which
dimensions to sum or take diagonals of, in which order to multiply (the cheapest, for up to five operands; greedily for more), and each
product as one batched matrix product of views.
"""

from functools import reduce
from itertools import combinations

from ..array.errors import ShapeError
from .elementwise import mul
from .named_products import trace
from .products import matmul
from .reduce import sum as sum_over
from .shape import permute, reshape, swap_axes
from .tensor import Tensor

_EXHAUSTIVE = 5               # operands up to which every order is tried
_SMALL = 4096                 # elements up to which sums of products are made of a product and a sum: two calls instead of four
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def operands_of(args):
    """(equation, operands) of a call that was given operands as a list, or lists of subscripts."""
    if not args:
        raise ShapeError("einsum: expected an equation and at least one operand")
    equation, operands = args[0], args[1:]
    if not isinstance(equation, str):
        equation, operands = _from_lists(args)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ShapeError("einsum: must provide at least one operand")
    return (equation, *operands)


def plan(equation, *shapes, sums=True):
    """[(function, the operand it takes, the second one or -1, what else it takes or None)]: each step adds its result to the operands.

    sums: whether a small sum of products may be a product and a sum, which for integers would be int64, other than matrix products.
    """
    return [(function, operands[0], operands[1] if len(operands) > 1 else -1, more or None)
            for function, operands, more in _Plan(equation, shapes, sums).steps]


def _from_lists(args):
    """The equation for einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    operands, lists = list(args[0:-1:2] if len(args) % 2 else args[::2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None
    if any(not isinstance(x, Tensor) for x in operands) or len(operands) != len(lists):
        raise TypeError("einsum: expected an equation, or tensors and lists of their subscripts in turn")
    return ",".join(map(_letters, lists)) + ("" if output is None else "->" + _letters(output)), operands


def _letters(subscripts):
    text = ""
    for s in subscripts:
        if s is Ellipsis:
            text += "..."
        elif isinstance(s, int) and 0 <= s < len(_LETTERS):
            text += _LETTERS[s]
        else:
            raise ShapeError(f"einsum: expected subscripts to be integers within the range [0, {len(_LETTERS)}) or Ellipsis, got {s!r}")
    return text


# ---- the equation

def _labels(term, what):
    """The letters of a term; an ellipsis is one Ellipsis among them."""
    text, labels = term.replace(" ", ""), []
    while text:
        if text.startswith("..."):
            if Ellipsis in labels:
                raise ShapeError(f"einsum: found \"...\" twice in {what}, {term!r}")
            labels.append(Ellipsis)
            text = text[3:]
            continue
        if text[0] not in _LETTERS:
            raise ShapeError(f"einsum: invalid subscript {text[0]!r} in {what}, {term!r}: subscripts are letters or \"...\"")
        labels.append(text[0])
        text = text[1:]
    return labels


def _parsed(equation, shapes):
    """([labels of each operand], labels of the result); the dimensions of an ellipsis are the integers -n to -1."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"einsum: the equation {equation!r} has {len(terms)} operands, but {len(shapes)} were given")
    inputs, longest = [], 0
    for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        labels, what = _labels(term, f"operand {k}"), f"operand {k} of shape {tuple(shape)}"
        named = len(labels) - (Ellipsis in labels)
        if named > len(shape) or named < len(shape) and Ellipsis not in labels:
            raise ShapeError(f"einsum: the number of subscripts in the equation ({named}) does not match the number of dimensions of {what}"
                             + (" and no ellipsis was given" if named < len(shape) else ""))
        if Ellipsis in labels:
            at, rest = labels.index(Ellipsis), len(shape) - named
            labels[at:at + 1] = range(-rest, 0)
            longest = max(longest, rest)
        inputs.append(labels)
    dots = list(range(-longest, 0))
    if not arrow:
        named = [c for labels in inputs for c in labels if isinstance(c, str)]
        return inputs, dots + sorted(c for c in set(named) if named.count(c) == 1)
    output = _labels(right, "the output")
    seen = {c for labels in inputs for c in labels}
    for c in output:
        if c is not Ellipsis and output.count(c) > 1:
            raise ShapeError(f"einsum: output subscript {c} appears more than once in {equation!r}")
        if c is not Ellipsis and c not in seen:
            raise ShapeError(f"einsum: output subscript {c} does not appear in the equation for any input operand, {equation!r}")
    if Ellipsis in output:
        at = output.index(Ellipsis)
        output[at:at + 1] = dots
    return inputs, output


# ---- the plan: a list of steps on a list of tensors

def _product(sizes):
    return reduce(lambda a, b: a * b, sizes, 1)


class _Plan:
    """Steps: (function, which operands it takes, what else it takes); each adds its result to the list, the last is the answer."""

    def __init__(self, equation, shapes, sums):
        inputs, output = _parsed(equation, shapes)
        self.steps, self.count, self.sums = [], len(inputs), sums
        sizes = {}
        for labels, shape in zip(inputs, shapes, strict=True):
            for c, n in zip(labels, shape, strict=True):
                if sizes.setdefault(c, n) == 1:
                    sizes[c] = n
                elif n not in (1, sizes[c]):
                    raise ShapeError(f"einsum: operands do not broadcast: a dimension {c if isinstance(c, str) else '...'!r} has sizes "
                                     f"{sizes[c]} and {n} in {equation!r} with shapes {', '.join(str(tuple(s)) for s in shapes)}")
        self.sizes = sizes
        terms = []
        # a size of 1 that broadcasts is dropped
        there = [{c for c, n in zip(labels, shape, strict=True) if n == sizes[c]} for labels, shape in zip(inputs, shapes, strict=True)]
        for k, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
            elsewhere = set(output).union(*(there[:k] + there[k + 1:]))
            terms.append(self.alone(k, list(labels), list(shape), elsewhere))
        while len(terms) > 1:
            i, j = self.next_pair(terms, output)
            b, a = terms.pop(j), terms.pop(i)
            wanted = set(output).union(*(labels for _, labels in terms))
            terms.append(self.pair(a, b, wanted, output if not terms else None))
        k, labels = terms[0]
        if labels != output:                                        # sizes of 1 that nobody gave are missing
            present = [c for c in output if c in labels]
            if labels != present:
                k = self.step(permute, (k,), tuple(labels.index(c) for c in present))
            if present != output:
                k = self.step(reshape, (k,), tuple(sizes[c] if c in present else 1 for c in output))
        if not self.steps:
            k = self.step(lambda x: x[...], (k,))

    def step(self, function, operands, *more):
        if function is permute and more[0] == (1, 0):
            function, more = swap_axes, ()
        self.steps.append((function, operands, more))
        self.count += 1
        return self.count - 1

    def sum(self, k, dims):
        return self.step(sum_over, (k,), tuple(dims), False)

    def alone(self, k, labels, shape, elsewhere):
        """An operand with each label once, without those that it alone has and without sizes of 1 that broadcast: (place, labels)."""
        if len(labels) == 2 and labels[0] == labels[1] and shape[0] == shape[1] and labels[0] not in elsewhere:
            return self.step(trace, (k,)), []
        for c in dict.fromkeys(labels):
            while labels.count(c) > 1:
                i = labels.index(c)
                j = labels.index(c, i + 1)
                if shape[i] != shape[j]:
                    raise ShapeError(f"einsum: dimension {c!r} is repeated in an operand with the sizes {shape[i]} and {shape[j]}")
                k = self.step(Tensor.diagonal, (k,), 0, i, j)
                n = shape[i]
                for at in (j, i):
                    del labels[at], shape[at]
                labels.append(c)
                shape.append(n)
        sums = tuple(i for i, c in enumerate(labels) if c not in elsewhere and shape[i] != 1)
        if sums:
            k = self.sum(k, sums)
        kept = [i for i in range(len(labels)) if i not in sums]
        short = [i for i in kept if shape[i] == 1 and (labels[i] not in elsewhere or self.sizes[labels[i]] != 1)]
        if short:
            kept = [i for i in kept if i not in short]
            k = self.step(reshape, (k,), tuple(shape[i] for i in kept))
        return k, [labels[i] for i in kept]

    # which two next

    def cost(self, labels):
        return _product(self.sizes[c] for c in labels)

    def next_pair(self, terms, output):
        n = len(terms)
        if n == 2:
            return 0, 1
        sets = [frozenset(labels) for _, labels in terms]
        if n <= _EXHAUSTIVE:
            return self.best(tuple(sets), frozenset(output), {})[1]

        def gain(pair):
            i, j = pair
            rest = set(output).union(*(s for k, s in enumerate(sets) if k not in pair))
            return self.cost((sets[i] | sets[j]) & rest) - self.cost(sets[i]) - self.cost(sets[j]), self.cost(sets[i] | sets[j])
        return min(combinations(range(n), 2), key=gain)

    def best(self, sets, output, known):
        """(the cost of multiplying all, the pair to begin with)."""
        if len(sets) == 1:
            return 0, None
        if sets not in known:
            options = []
            for i, j in combinations(range(len(sets)), 2):
                rest = tuple(s for k, s in enumerate(sets) if k not in (i, j))
                result = (sets[i] | sets[j]) & output.union(*rest)
                options.append((self.cost(sets[i] | sets[j]) + self.best((*rest, result), output, known)[0], (i, j)))
            known[sets] = min(options)
        return known[sets]

    # one product

    def arrange(self, k, labels, *groups):
        """A view with the groups of labels in turn, each as one dimension."""
        order = tuple(labels.index(c) for group in groups for c in group)
        if order != tuple(range(len(order))):
            k = self.step(permute, (k,), order)
        if any(len(group) != 1 for group in groups):
            k = self.step(reshape, (k,), tuple(self.cost(group) for group in groups))
        return k

    def pair(self, a, b, wanted, output):
        """The product of two terms, summed over labels that nobody else wants; in the order of the output, if that is given."""
        (ka, la), (kb, lb) = a, b
        batch = [c for c in la if c in lb and c in wanted]
        inner = [c for c in la if c in lb and c not in wanted]
        free_a, free_b = [c for c in la if c not in lb], [c for c in lb if c not in la]
        if output is not None:                                       # what comes first there is the left operand
            place = {c: i for i, c in enumerate(output)}
            first = min((place[c], side) for side in (0, 1) for c in (free_a, free_b)[side]) if free_a and free_b else (0, 0)
            if first[1] == 1:
                ka, la, kb, lb, free_a, free_b = kb, lb, ka, la, free_b, free_a
            for group in (batch, free_a, free_b):
                group.sort(key=place.__getitem__)
        if self.cost(lb) > self.cost(la):
            inner.sort(key=lb.index)
        if self.sums and not free_a and not free_b and inner and self.cost(la) <= _SMALL:
            k, labels = self.elementwise(ka, la, kb, lb, [*batch, *inner])
            return self.sum(k, range(len(batch), len(labels))), batch
        if not inner:
            return self.elementwise(ka, la, kb, lb, output if output is not None else [*batch, *free_a, *free_b])
        lead = [batch] if batch else []
        if not lead and len(free_a) == len(free_b) == len(inner) == 1:
            left = ka if la == [*free_a, *inner] else self.step(permute, (ka,), (1, 0))
            right = kb if lb == [*inner, *free_b] else self.step(permute, (kb,), (1, 0))
        else:
            left = self.arrange(ka, la, *lead, free_a, inner)
            right = self.arrange(kb, lb, *lead, inner, free_b)
        k = self.step(matmul, (left, right))
        labels = [*batch, *free_a, *free_b]
        if len(labels) != len(lead) + 2 or not free_a or not free_b:
            k = self.step(reshape, (k,), tuple(self.sizes[c] for c in labels))
        return k, labels

    def elementwise(self, ka, la, kb, lb, labels):
        """Nothing to sum: both as they broadcast against each other."""
        def fit(k, own):
            own_order = [c for c in labels if c in own]
            if own_order != own:
                k = self.step(permute, (k,), tuple(own.index(c) for c in own_order))
            if own_order != labels[len(labels) - len(own_order):]:
                first = labels.index(own_order[0]) if own_order else len(labels)
                k = self.step(reshape, (k,), tuple(self.sizes[c] if c in own else 1 for c in labels[first:]))
            return k
        labels = [c for c in labels if c in la or c in lb]
        return self.step(mul, (fit(ka, la), fit(kb, lb))), labels
