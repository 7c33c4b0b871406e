"""One training step as eager code, compiled, and a thousand models at once; all end with the same bytes.

Relies on the package only.
"""

import argparse
import time

import autograd_cy as ag
from autograd_cy import graph, nn

X = ag.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = ag.tensor([[0.0], [1.0], [1.0], [0.0]])


def make(seed):
    """A step of a network of its own, and the network."""
    ag.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
    optimizer = ag.optim.Adam(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), Y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--models", type=int, default=1000)
    args = parser.parse_args(argv)

    step, model = make(0)
    start = time.perf_counter()
    for _ in range(args.epochs):
        loss = step()
    print(f"eager      {(time.perf_counter() - start) / args.epochs * 1e6:6.2f} us a step, loss {loss.item():.6f}")

    step, compiled_model = make(0)
    start = time.perf_counter()
    losses = ag.compile(step).repeat(args.epochs)
    print(f"compiled   {(time.perf_counter() - start) / args.epochs * 1e6:6.2f} us a step, loss {losses[-1].item():.6f}, captures included")
    same = all((a == b).all() for a, b in zip(model.parameters(), compiled_model.parameters(), strict=True))
    print("equal parameters:", same)

    models = graph.over_seeds(make, args.models)
    start = time.perf_counter()
    losses = models.repeat(args.epochs)
    taken = time.perf_counter() - start
    learned = int((losses[:, -1] < 0.02).sum())
    print(f"{args.models} models {taken / args.epochs / args.models * 1e6:6.2f} us a step, {learned} of them below 0.02")
    return same, losses


if __name__ == "__main__":
    main()
