"""The formulas that loops compute: a row's rules as expressions of symbols, masked where a gradient of 0 must stay 0.

Relies on symbols.py and the table. codegen.py writes loops of them, chains.py actions; the engine asks which are masked.
"""

from .symbols import Expression, Symbol

# code, C type, suffix of the vecmath functions
DTYPES = (("float32", "float", "f32"), ("float64", "double", "f64"), ("int64", "int64_t", "i64"), ("int32", "int32_t", "i32"),
          ("uint8", "uint8_t", "u8"), ("bool", "uint8_t", "b8"))
FLOATS = DTYPES[:2]


def depends(expression, names):
    if isinstance(expression, Symbol):
        return expression.name in names
    return isinstance(expression, Expression) and any(depends(a, names) for a in expression.args)


def needs_mask(expression, names):
    """Whether g = 0 could meet an infinite factor: g is multiplied or divided by something that depends on the data."""
    if not isinstance(expression, Expression) or not expression.args:
        return False
    if expression.name in ("mul", "div") and any(depends(a, names) for a in expression.args):
        return True
    return any(needs_mask(a, names) for a in expression.args)


def is_masked(row, name):
    """Whether the derivative for input `name` is forced to 0 where g is 0 and the formula gives NaN."""
    expression = row.rules[name](*map(Symbol, row.parameters(name)))
    return needs_mask(expression, set(row.rule_inputs(name)) - {"g"})


def formula(row, name):
    """(inputs, expression) of the forward loop (name None) or of the derivative for input `name`."""
    if name is None:
        return row.inputs, row.forward(*map(Symbol, (*row.inputs, *row.attrs)))
    expression = row.rules[name](*map(Symbol, row.parameters(name)))
    return row.rule_inputs(name), masked(expression) if is_masked(row, name) else expression


def masked(expression):
    """0 where g is 0 and the expression NaN. A choice of 0 stays outermost: within, compilers make branches of it."""
    if expression.name == "where" and not isinstance(expression.args[1], Expression) and expression.args[1] == 0:
        return Expression("where", expression.args[0], 0, masked(expression.args[2]))
    return Expression("masked", Symbol("g"), expression)
