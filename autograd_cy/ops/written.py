"""The derivatives of the table as text, the way they are written there.

Relies on the sources of the table. The reference (docs/make_reference.py) and graph/trace rely on it.
"""

import ast
from functools import cache
from inspect import getsource

from . import table
from .table import TABLE


@cache                        # parsed in about 10 ms, when first asked for
def _written_rules():
    """{(row, input): the expression in the table's source}; empty where there are no sources."""
    found = {}
    for module in vars(table).values():
        if getattr(module, "__package__", None) != table.__name__:
            continue
        try:
            tree = ast.parse(getsource(module))
        except OSError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("unary", "binary", "ternary", "op"):
                name = ast.literal_eval(node.args[0])
                found.update({(name, k.arg[1:]): k.value for k in node.keywords
                              if k.arg and k.arg[0] == "d" and k.arg[1:] in TABLE[name].inputs})
    return found


def rule_text(operation, input):
    """The derivative of a row by one input: its formula, or the name of the function and what that is given.

    >>> rule_text("mul", "a")
    'g * b'
    """
    rule = TABLE[operation].rules[input]
    written = _written_rules().get((operation, input))
    if isinstance(written, ast.Lambda):
        return ast.unparse(written.body)
    if rule.__name__ == "<lambda>":
        return f"the rule of {operation} for {input}"
    return f"{rule.__name__}({', '.join(TABLE[operation].parameters(input))})"
