"""Chains: neighbouring cheap maps of a fused group that run on values in registers, without a trip to memory between them.

Relies on formulas.py and the table. codegen writes what `source` returns into the loops of floats; graph/lowering.py asks
`action_of` which maps can be part of a chain.

A loop of one cheap operation is bound by its loads and stores: 35 ns per 1024 float32 and map from the first-level cache. A chain
reads a tile of values once, lets one action after the other work on it, and writes it once: eight maps take 90 ns instead of 280.
An action is a formula of the table in which `a` is the value in the registers and `p` the other input, a vector or a single value.
The operations are those of the loops in their order, so the bits are the same.
"""

from functools import cache

from .formulas import FLOATS, formula
from .symbols import Expression, Symbol
from .table import TABLE

# What backward passes and hand-written formulas are made of. Each action takes 60 to 300 bytes per dtype and level.
CHAINED = ("add", "sub", "mul", "div", "neg", "square", "relu", "mul.da", "mul.db", "exp.dx", "div.da", "sub.db", "relu.dx", "square.dx",
           "tanh.dx", "sigmoid.dx")
LOAD, STORE, FIRST = 0, 1, 2              # numbers of actions: the first two move the values

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_COMMUTE = ("add", "mul")


def _renamed(e, names):
    """The expression with its symbols replaced; products and sums of `p` and `a` begin with `a`."""
    if isinstance(e, Symbol):
        return names[e.name]
    if not isinstance(e, Expression):
        return e
    args = [_renamed(a, names) for a in e.args]
    if e.name in _COMMUTE and args[0] is names.get("p"):
        args.reverse()
    return Expression(e.name, *args)


@cache
def _actions():
    """({(loop name, places of inputs that are the value, whether the other is single): action}, [(expression, single) of each])."""
    value, other = Symbol("a"), Symbol("p")
    known, listed, numbers = {}, [], {}
    for row in TABLE.values():
        for name, by in row.loops:
            if name not in CHAINED:
                continue
            inputs, expression = formula(row, by)
            if len(inputs) == 1:
                forms = [((1,), False)]
            elif by is None:
                forms = [((1,), False), ((1,), True), ((2,), False), ((2,), True), ((1, 2), False)]
            else:                             # a gradient comes through the registers
                forms = [((1,), False)]
            for places, single in forms:
                if len(places) == 2 and name not in _COMMUTE:
                    continue
                names = {n: value if k in places else other for k, n in enumerate(inputs, 1)}
                found = _renamed(expression, {**names, "p": other})
                key = id(found), single       # equal expressions are one object
                if key not in numbers:
                    numbers[key] = FIRST + len(listed)
                    listed.append((found, single))
                known[name, places, single] = numbers[key]
    return known, listed


def action_of(name, places, single):
    """The number of the action for a loop whose inputs in `places` (from 1) are the value; None if there is none."""
    return _actions()[0].get((name, places, single))


def _text(e, single):
    if isinstance(e, Symbol):
        return {"a": "a[j]", "p": "s" if single else "p[j]"}[e.name]
    if not isinstance(e, Expression):
        return f"(T) {float(e)!r}"
    if e.name == "where":
        condition, one, two = e.args
        if isinstance(one, Expression) or one != 0:
            raise NotImplementedError(f"a chain can't choose between two values: {e}")
        return f"AG_CLEAR({_text(condition, single)}, {_text(two, single)})"
    args = [_text(a, single) for a in e.args]
    if e.name == "neg":
        return f"(-{args[0]})"
    return f"({args[0]} {_INFIX[e.name]} {args[1]})"


def _case(number, expression, single):
    if expression.name == "masked":
        body = f"V r = {_text(expression.args[1], single)}; a[j] = AG_CLEAR((r != r) & ({_text(expression.args[0], single)} == 0), r)"
    else:
        body = f"a[j] = {_text(expression, single)}"
    return f"case {number}: {'{ T s = *q; ' if single else ''}AG_EACH({body}) {'} ' if single else ''}break;"


# Enough vectors to hide the latency of an addition and the choice of an action, and registers left for the other input.
_HEAD = """
#if !defined(__GNUC__)
#define AG_CHAIN_BYTES 0
#else
#if defined(__AVX512F__) && defined(__AVX512VL__)
#define AG_CHAIN_VECTOR 64
#define AG_CHAIN_VECTORS 8
#elif defined(__AVX__)
#define AG_CHAIN_VECTOR 32
#define AG_CHAIN_VECTORS 12
#else
#define AG_CHAIN_VECTOR 16
#define AG_CHAIN_VECTORS 8
#endif
#define AG_CHAIN_BYTES (AG_CHAIN_VECTOR * AG_CHAIN_VECTORS)
#define AG_EACH(E) { _Pragma("GCC unroll 16") for (int j = 0; j < AG_CHAIN_VECTORS; j++) { E; } }
#define AG_CLEAR(condition, x) ((V) (~(M) (condition) & (M) (x)))
typedef struct { ptrdiff_t action; char *data; } ag_link;
"""

_FUNCTION = """
static void ag_chain_{suffix}(ptrdiff_t n, int count, const void *given)
{{
    typedef {T} T;
    typedef T V __attribute__((vector_size(AG_CHAIN_VECTOR)));
    typedef {I} M __attribute__((vector_size(AG_CHAIN_VECTOR)));
    typedef T U __attribute__((vector_size(AG_CHAIN_VECTOR), aligned(sizeof(T)), may_alias));
    const ag_link *links = (const ag_link *) given;
    for (ptrdiff_t i = 0; i < n; i += AG_CHAIN_BYTES / sizeof(T)) {{
        V a[AG_CHAIN_VECTORS];
        for (int k = 0; k < count; k++) {{
            const T *q = (const T *) links[k].data;
            U *p = (U *) (q + i);
            switch (links[k].action) {{
            case {LOAD}: AG_EACH(a[j] = p[j]) break;
            case {STORE}: AG_EACH(p[j] = a[j]) break;
            {cases}
            }}
        }}
    }}
}}
"""


def source():
    """Cython source that declares and registers the chains of each dtype."""
    cases = "\n            ".join(_case(FIRST + k, *found) for k, found in enumerate(_actions()[1]))
    masks = {"float": "int32_t", "double": "int64_t"}
    text = _HEAD + "".join(_FUNCTION.format(suffix=suffix, T=ctype, I=masks[ctype], LOAD=LOAD, STORE=STORE, cases=cases)
                           for _, ctype, suffix in FLOATS) + "#endif\n"
    text += "#if AG_CHAIN_BYTES == 0\n" + "".join(f"#define ag_chain_{suffix} NULL\n" for _, _, suffix in FLOATS) + "#endif\n"
    lines = ["cdef extern from *:", '    """', *("    " + line if line else "" for line in text.strip().splitlines()), '    """',
             "    const int AG_CHAIN_BYTES"]
    lines += [f"    void ag_chain_{suffix}(Py_ssize_t n, int count, const void* links) noexcept nogil" for _, _, suffix in FLOATS]
    lines += ["", *(f"K.chains[{k}] = <Chain> <void*> ag_chain_{suffix}" for k, (_, _, suffix) in enumerate(FLOATS)),
              "K.chain_bytes = AG_CHAIN_BYTES"]
    return "\n".join(lines)
