"""The recursive and the iterative engine on the same graphs: equal gradients to the last bit, and where recursion ends.

Relies on the package only. `python -m bench graph` times the engines.
"""

import argparse

import autograd_cy as ag


def chain(x, size):
    for _ in range(size):
        x = x * 1.0001
    return x.sum()


def ladder(x, size):
    """Every rung uses the one before twice: 2 ** size paths, `size` nodes."""
    for _ in range(size):
        x = x + x
    return x.sum()


def fan_out(x, size):
    return sum((x * (k + 1) for k in range(size)), start=ag.zeros(3)).sum()


def network(x, size):
    w = ag.linspace(-1, 1, 3 * size).reshape(3, size)
    return (ag.tanh(x @ w) * ag.sigmoid(x @ w)).pow(2).mean()


def gradient(function, size, engine):
    """The gradient as bytes, or the name of the error."""
    x = ag.tensor([0.5, -1.0, 2.0], requires_grad=True)
    try:
        function(x, size).backward(engine=engine)
    except RecursionError:
        return "RecursionError"
    return x.grad.numpy().tobytes()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, default=100_000, help="length of the deep chain")
    args = parser.parse_args(argv)

    results = {}
    for name, function, size in (("chain", chain, 200), ("ladder", ladder, 60), ("fan-out", fan_out, 100),
                                 ("network", network, 16), ("deep chain", chain, args.depth)):
        recursive, iterative = (gradient(function, size, engine) for engine in ("recursive", "iterative"))
        if recursive == "RecursionError":
            results[name] = "too deep for the recursive engine, fine for the iterative one"
        else:
            results[name] = "equal bytes" if recursive == iterative else "DIFFERENT BYTES"
        print(f"{name:>10} {size:>7,}: {results[name]}")
    return results


if __name__ == "__main__":
    main()
