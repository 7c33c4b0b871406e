"""How a row of the table is written down: `unary`, `binary`, `ternary`, `op`.

Relies on nothing. table/ lists the rows with these; everyone else reads `Row`s.

A rule's parameters name what it needs: `g` is the incoming gradient, the inputs by their names, `y` the output, `x_shape`
the shape of input x, and attributes by theirs. What the rules of a row name is what its node saves.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One operation: its inputs and attributes, forward formula, derivatives, and what they hold for.

    kind: "elementwise" (loops are generated from `forward` and `rules`), "view" (shares its input's memory) or "kernel".
    dtypes: "float", "number" (not bool), "integer", "integral" (integers and bool) or "all": what the forward computes in; others are
    converted first.
    result: "same", "bool", or "int" where the output's dtype is not the one computed in.
    types: inputs whose dtype is fixed, e.g. {"c": "bool"}.
    ints: how many of its attributes are integers, if one before them, or none, is a tuple of such: nodes then keep integers only
    (node_with_ints); -1: otherwise.
    inplace: whether its function takes `inplace`, as those of torch.nn.functional do.
    rare: its loops call others, block by block, and are no code of their own (codegen.py); its function is no method of tensors.
    doc: one line with the formula. special: one line about points where the derivative is a convention.
    """

    name: str
    inputs: tuple
    attrs: tuple
    forward: object
    rules: dict
    doc: str
    kind: str = "elementwise"
    dtypes: str = "float"
    result: str = "same"
    types: dict = {}
    special: str = ""
    aux: tuple = ()
    defaults: tuple = ()
    public: bool = True
    inplace: bool = False
    rare: bool = False
    ints: int = -1

    @property
    def has_form_in_place(self):
        """Whether there is `name_`: for all but isnan and the like; the bools of comparisons are written in the tensor's own dtype."""
        return self.result == "same" or len(self.inputs) == 2 or self.name == "logical_not"

    def parameters(self, name):
        """The names that the rule for input `name` needs."""
        code = self.rules[name].__code__
        return code.co_varnames[:code.co_argcount]

    def rule_inputs(self, name):
        """The inputs of the derivative's loop for `name`: g first, then inputs and output that the rule names."""
        return tuple(p for p in self.parameters(name) if p not in self.attrs)

    @property
    def loops(self):
        """[(name of a generated loop, None or the input it differentiates by)]: the forward first."""
        if self.kind != "elementwise":
            return []
        return [(self.name, None), *((f"{self.name}.d{i}", i) for i in self.inputs if i in self.rules)]

    @property
    def saved(self):
        """Names of the inputs (and "y") whose values some rule needs, in the order of the inputs."""
        needed = {p for name in self.rules for p in self.parameters(name)}
        return tuple(n for n in (*self.inputs, "y") if n in needed)


TABLE = {}


def _row(name, inputs, forward, rules, **options):
    if name in TABLE:
        raise ValueError(f"two rows are named {name!r}")
    attrs = [a.partition("=") for a in options.pop("attrs", "").split()]
    options["defaults"] = tuple(float(value) for _, equals, value in attrs if equals)
    inputs = tuple(inputs.replace("*", "").split())
    options["aux"] = tuple(options.pop("aux", "").split())
    rules = {key[1:]: rule for key, rule in rules.items()}
    unknown = set(rules) - set(inputs)
    if unknown:
        raise ValueError(f"{name}: derivatives for {sorted(unknown)}, which are not inputs")
    TABLE[name] = Row(name, inputs, tuple(a for a, _, _ in attrs), forward, rules, **options)


def _rules(options):
    return {key: options.pop(key) for key in list(options) if key[0] == "d" and callable(options[key])}


def unary(name, forward, **options):
    """An elementwise operation of one input x."""
    _row(name, "x", forward, _rules(options), **options)


def binary(name, forward, **options):
    """An elementwise operation of two inputs a and b, broadcast against each other."""
    _row(name, options.pop("inputs", "a b"), forward, _rules(options), **options)


def ternary(name, inputs, forward, **options):
    """An elementwise operation of three inputs."""
    _row(name, inputs, forward, _rules(options), **options)


def op(name, inputs, kind="kernel", **options):
    """Any other operation: its forward is a kernel, its rules are tensor code."""
    _row(name, inputs, None, _rules(options), kind=kind, **options)
