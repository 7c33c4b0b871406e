"""A small convolutional network that reads handwritten-like digits, drawn here: no data to load.

Every digit is a path of strokes on a grid of 3 x 5 points, moved, turned, stretched and drawn with a pen of random width on 16 x 16
pixels, with noise. Run it: python examples/digits.py
"""

import argparse
import time

import numpy as np

import autograd_cy as ag
from autograd_cy import nn

# The strokes of each digit as points (column, row) of a grid, 0 to 2 and 0 to 4.
STROKES = {
    0: ["00 20 24 04 00"], 1: ["01 10 14", "04 24"], 2: ["01 00 20 22 04 24"], 3: ["00 20 12 22 24 04"], 4: ["10 03 23", "20 24"],
    5: ["20 00 02 22 24 04"], 6: ["20 00 04 24 22 02"], 7: ["00 20 14"], 8: ["00 20 24 04 00", "02 22"], 9: ["22 02 00 20 24 04"],
}
SIZE = 16


def draw(digit, rng):
    """One image of (SIZE, SIZE) numbers from 0 to about 1."""
    turn, scale, shift = rng.normal(0, 0.12), rng.uniform(2.0, 2.9, 2), rng.normal(0, 0.8, 2)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) * scale[:, None]
    ys, xs = np.mgrid[:SIZE, :SIZE]
    nearest = np.full((SIZE, SIZE), np.inf)
    for stroke in STROKES[digit]:
        points = [np.array([int(p[0]) - 1.0, int(p[1]) - 2.0]) @ matrix.T + SIZE / 2 + shift for p in stroke.split()]
        for a, b in zip(points, points[1:], strict=False):
            along = ((xs - a[0]) * (b[0] - a[0]) + (ys - a[1]) * (b[1] - a[1])) / max(((b - a) ** 2).sum(), 1e-9)
            along = np.clip(along, 0, 1)
            nearest = np.minimum(nearest, np.hypot(xs - a[0] - along * (b[0] - a[0]), ys - a[1] - along * (b[1] - a[1])))
    return np.exp(-((nearest / rng.uniform(0.7, 1.1)) ** 2)) + rng.normal(0, 0.08, (SIZE, SIZE))


def digits(n, seed):
    """n images (n, 1, SIZE, SIZE) and their classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, n)
    images = np.stack([draw(k, rng) for k in labels]).astype("f4")
    return ag.tensor(images[:, None]), ag.tensor(labels)


def network():
    """Two convolutions with batch norm and pooling, and a linear layer with dropout."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 4 * 4, 10))


def train(model, images, labels, epochs, batch=50, compiled=True):
    """The mean loss of every epoch."""
    optimizer, criterion = ag.optim.Adam(model.parameters(), lr=0.004), nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = ag.compile(step) if compiled else step
    losses = []
    for _ in range(epochs):
        order = ag.randperm(len(labels))
        each = [run(images[order[i:i + batch]], labels[order[i:i + batch]]).item() for i in range(0, len(labels), batch)]
        losses.append(sum(each) / len(each))
    return losses


def accuracy(model, images, labels):
    """The share of images that the model reads as what they are."""
    model.eval()
    with ag.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def main(arguments=None):
    """Train, print, and return the losses and the accuracy on images not seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--eager", action="store_true", help="without ag.compile")
    options = parser.parse_args(arguments)
    ag.manual_seed(0)
    model = network()
    images, labels = digits(options.images, 1)
    start = time.perf_counter()
    losses = train(model, images, labels, options.epochs, compiled=not options.eager)
    took = time.perf_counter() - start
    found = accuracy(model, *digits(500, 2))
    for k, loss in enumerate(losses):
        print(f"epoch {k + 1}: loss {loss:.4f}")
    print(f"{100 * found:.1f} % of 500 new digits are read correctly; trained in {took:.2f} s")
    return losses, found


if __name__ == "__main__":
    main()
