"""Iris flowers: train on two thirds, report the accuracy on the rest, and draw what the network decides.

Relies on the package; the picture (--plot FILE) needs matplotlib.
"""

import argparse

import autograd_cy as ag
from autograd_cy import nn


def train(x, y, epochs, lr=0.02):
    """A 16-unit network for the features of x; returns (model, last loss)."""
    model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.Tanh(), nn.Linear(16, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = ag.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return model, loss.item()


def accuracy(model, x, y):
    with ag.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def draw(path, x, y, names, epochs):
    """The decision of a network that sees the two petal features only."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    model, _ = train(x[:, 2:], y, epochs)
    points, labels = x[:, 2:].numpy(), y.numpy()
    low, high = points.min(0) - 0.3, points.max(0) + 0.3
    across, up = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    with ag.no_grad():
        grid = ag.tensor(np.stack([across.ravel(), up.ravel()], 1).astype(np.float32))
        decided = model(grid).argmax(1).numpy().reshape(across.shape)
    figure, axis = plt.subplots(figsize=(6.5, 5), layout="constrained")
    axis.contourf(across, up, decided, levels=[-0.5, 0.5, 1.5, 2.5], colors=("C0", "C1", "C2"), alpha=0.25)
    for kind, name in enumerate(names):
        axis.scatter(*points[labels == kind].T, s=18, color=f"C{kind}", label=name)
    axis.set(xlabel="petal length (standardised)", ylabel="petal width (standardised)", title="What the network decides")
    axis.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="save the decision picture")
    args = parser.parse_args(argv)

    ag.manual_seed(args.seed)
    x, y, names = ag.data.iris()
    x = ag.data.standardise(x)
    order = ag.randperm(len(x))
    train_rows, test_rows = order[:100], order[100:]

    model, loss = train(x[train_rows], y[train_rows], args.epochs)
    right = accuracy(model, x[test_rows], y[test_rows])
    print(f"loss {loss:.4f}, accuracy {accuracy(model, x[train_rows], y[train_rows]):.3f} on 100 training flowers, "
          f"{right:.3f} on 50 others")
    if args.plot:
        draw(args.plot, x, y, names, args.epochs)
        print(f"picture written to {args.plot}")
    return loss, right


if __name__ == "__main__":
    main()
