"""A whole network in three lines: two layers of sigmoids, written out, and trained on Iris by hand.

Relies on the package only.
"""

import argparse

import autograd_cy as ag


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10_000)
    args = parser.parse_args(argv)

    ag.manual_seed(0)
    X, labels, names = ag.data.iris(dtype=ag.float64)
    y = ag.data.one_hot(labels, dtype=ag.float64)
    w1 = ((ag.rand(4, 10, dtype=ag.float64) * 2 - 1) * 0.01).requires_grad_()
    w2 = ((ag.rand(10, 3, dtype=ag.float64) * 2 - 1) * 0.01).requires_grad_()

    for epoch in range(args.epochs):
        sigm1 = 1 / (1 + ag.exp(-1 * (X @ w1)))
        sigm2 = 1 / (1 + ag.exp(-1 * (sigm1 @ w2)))
        loss = ag.sum(-1 * (y * ag.log(sigm2) + (1 - y) * ag.log(1 - sigm2)))

        loss.backward()
        with ag.no_grad():
            for w in (w1, w2):
                w -= 0.001 * w.grad
                w.grad = None
        if epoch % 1000 == 0:
            print(f"epoch {epoch:5d}  loss {loss.item():9.4f}")

    accuracy = (sigm2.argmax(1) == labels).double().mean().item()
    print(f"final loss {loss.item():.4f}, accuracy {accuracy:.3f}")
    return loss.item(), accuracy


if __name__ == "__main__":
    main()
