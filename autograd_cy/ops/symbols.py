"""Symbols and expressions: what a rule becomes when it is called on names instead of numbers.

Relies on nothing. The code generator (codegen.py) walks these expressions to write loops.
"""


class Expression:
    """An operation name and its operands; equal expressions are one object, so that repeated parts are computed once."""

    __slots__ = ("name", "args")
    _known = {}

    def __new__(cls, name, *args):
        key = (name, *(a if isinstance(a, Expression) else (type(a), a) for a in args))
        found = cls._known.get(key)
        if found is None:
            found = object.__new__(cls)
            found.name, found.args = name, args
            cls._known[key] = found
        return found

    @staticmethod
    def __apply__(name, args):
        return Expression(name, *args)

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("a rule must choose with where(condition, a, b), not with if")

    def __repr__(self):
        return f"{self.name}({', '.join(map(repr, self.args))})" if self.args else self.name


class Symbol(Expression):
    """An input, an output, a gradient or an attribute, by name."""

    __slots__ = ()


def _operator(name, reflected=False):
    if reflected:
        return lambda self, other: Expression(name, other, self)
    return lambda self, *other: Expression(name, self, *other)


for _method, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    setattr(Expression, f"__{_method}__", _operator(_name))
    setattr(Expression, f"__r{_method}__", _operator(_name, reflected=True))
for _method in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "and", "or"):
    setattr(Expression, f"__{_method}__", _operator(_method))
