"""The algebra that `simplify` knows: one line per rule.

Relies on Python's parser, which reads the rules; simplify.py relies on it.

In a rule `x`, `y`, `g` stand for any operand and `c`, `d` for constants of one value; a number stands for that constant, 0.0 and
-0.0 being two.  The right side is an operand (the left side's result is not computed at all), a part of the left side (likewise)
or one other loop; `[...]` is a new constant.  A third entry is a condition on the constants.
add, mul, maximum and minimum are tried with their operands in either order.
"""

import ast
from math import isfinite
from typing import NamedTuple


def power_of_two(c):
    """Whether dividing by c is the same as multiplying by 1 / c: both round one and the same real number."""
    m, e = float(c).as_integer_ratio() if isfinite(c) and c else (0, 1)
    m = abs(m)
    return m != 0 and m & (m - 1) == 0 and 2.0 ** -100 <= abs(c) <= 2.0 ** 100


def not_zero(c):
    """Whether a gradient that is c everywhere is masked nowhere."""
    return c != 0


def finite(c):
    """Whether c times a zero gradient is 0: nothing is left for the mask of a derivative to do (see ops/formulas.py)."""
    return isfinite(c)


# Every dtype, every bit, signs of zeros and NaNs included.
EXACT = (
    ("mul(x, 1)", "x"),
    ("div(x, 1)", "x"),
    ("sub(x, 0.0)", "x"),
    ("add(x, -0.0)", "x"),                      # x + 0.0 makes 0.0 of -0.0
    ("neg(neg(x))", "x"),
    ("mul.da(g, 1)", "g"),
    ("mul.da(1, x)", "x"),                      # masked where g is 0: it is 1
    ("mul.da(c, x)", "mul(c, x)", not_zero),
    ("div.da(g, 1)", "g"),
    ("mul.da(g, c)", "mul(g, c)", finite),      # the loop without a mask
    ("div(x, c)", "mul(x, [1 / c])", power_of_two),
    ("div.da(c, x)", "div(c, x)", not_zero),
    ("div.da(g, c)", "mul(g, [1 / c])", power_of_two),
    ("maximum(x, x)", "x"),
    ("minimum(x, x)", "x"),
    ("where(y, x, x)", "x"),
    ("where(1, x, y)", "x"),
    ("where(0, x, y)", "y"),
    ("abs(abs(x))", "abs(x)"),
    ("abs(neg(x))", "abs(x)"),
    ("relu(relu(x))", "relu(x)"),
    ("floor(floor(x))", "floor(x)"),
    ("ceil(ceil(x))", "ceil(x)"),
    ("round(round(x))", "round(x)"),
    ("trunc(trunc(x))", "trunc(x)"),
    ("bitwise_not(bitwise_not(x))", "x"),
    ("bitwise_and(x, x)", "x"),
    ("bitwise_or(x, x)", "x"),
)

# Integers and bools have no -0 and no NaN.
INTEGRAL = (
    ("add(x, 0)", "x"),
    ("floor_divide(x, 1)", "x"),
    ("bitwise_or(x, 0)", "x"),
    ("bitwise_xor(x, 0)", "x"),
)

# Floats, on demand: equal in real arithmetic, the last bits may differ (and what becomes of NaN, infinity and -0.0).
FAST = (
    ("add(x, 0)", "x"),
    ("sub(0, x)", "neg(x)"),
    ("add(x, neg(y))", "sub(x, y)"),
    ("sub(x, neg(y))", "add(x, y)"),
    ("add(x, x)", "mul(x, [2])"),
    ("add(mul(x, c), x)", "mul(x, [c + 1])"),
    ("add(mul(x, c), mul(x, d))", "mul(x, [c + d])"),
    ("mul(mul(x, c), d)", "mul(x, [c * d])"),
    ("mul.da(mul(g, c), d)", "mul(g, [c * d])", finite),
    ("add(add(x, c), d)", "add(x, [c + d])"),
    ("sub(x, c)", "add(x, [-c])"),
    ("mul(neg(x), c)", "mul(x, [-c])"),
    ("neg(mul(x, c))", "mul(x, [-c])"),
    ("mul(x, -1)", "neg(x)"),
    ("div(x, c)", "mul(x, [1 / c])"),
    ("exp(log(x))", "x"),
    ("log(exp(x))", "x"),
    ("square(sqrt(x))", "x"),
    ("sqrt(square(x))", "abs(x)"),
    ("square(neg(x))", "square(x)"),
    ("square(abs(x))", "square(x)"),
    ("neg(sub(x, y))", "sub(y, x)"),
    ("reciprocal(reciprocal(x))", "x"),
    ("div(1, x)", "reciprocal(x)"),
    ("pow(x, 1)", "x"),
    ("pow(x, 2)", "square(x)"),
    ("pow(x, 0.5)", "sqrt(x)"),
    ("pow(x, -1)", "reciprocal(x)"),
    ("pow(x, -0.5)", "rsqrt(x)"),
    ("pow.da(g, x, 1)", "g"),
    ("pow.da(g, x, 2)", "square.dx(g, x)"),
)

COMMUTATIVE = frozenset(("add", "mul", "maximum", "minimum"))


class Operand(NamedTuple):
    """Any operand."""

    name: str


class Constant(NamedTuple):
    """A constant of one value, whose number gets a name."""

    name: str


class Number(NamedTuple):
    """This constant."""

    value: float


class Computed(NamedTuple):
    """A new constant, from the numbers found."""

    code: object


class Call(NamedTuple):
    """A loop of operands."""

    name: str
    args: tuple


class Rule(NamedTuple):
    """`left` may be replaced by `right` where `condition` holds for the constants."""

    left: Call
    right: object
    condition: object
    text: str


def _pattern(node):
    """A parsed expression as a pattern."""
    if isinstance(node, ast.Call):
        return Call(ast.unparse(node.func), tuple(map(_pattern, node.args)))
    if isinstance(node, ast.Name):
        return (Constant if node.id in "cd" else Operand)(node.id)
    if isinstance(node, ast.List):
        return Computed(compile(ast.Expression(node.elts[0]), "<rule>", "eval"))
    return Number(ast.literal_eval(node))


def _orders(pattern):
    """The pattern with the operands of commutative loops in every order."""
    if not isinstance(pattern, Call):
        return [pattern]
    found = [()]
    for arg in pattern.args:
        found = [(*args, one) for args in found for one in _orders(arg)]
    if pattern.name in COMMUTATIVE:
        found += [args[::-1] for args in found if args[0] != args[1]]
    return [Call(pattern.name, args) for args in found]


def _parse(line):
    left, right, *condition = line
    left, right = (_pattern(ast.parse(side, mode="eval").body) for side in (left, right))
    for order in _orders(left):
        yield Rule(order, right, condition[0] if condition else None, " -> ".join(line[:2]))


def table(*lines):
    """Rules by the name of the loop that they start from."""
    rules = {}
    for line in lines:
        for rule in _parse(line):
            rules.setdefault(rule.left.name, []).append(rule)
    return rules


FOR_INTEGERS = table(*EXACT, *INTEGRAL)
FOR_FLOATS = table(*EXACT)
FOR_FLOATS_FAST = table(*EXACT, *FAST)
