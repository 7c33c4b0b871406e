"""Output of the benchmarks: aligned tables, a JSON file, a plot.

Relies on the standard library and, for plots, on matplotlib. Every benchmark relies on it.
"""

import importlib.metadata
import json
import os
import platform


def number(value):
    """Three significant digits without an exponent, for columns that are read downwards."""
    if value is None or value != value:
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.2f}"


def heading(text):
    print(f"\n{text}\n{'=' * len(text)}")


def table(header, rows):
    """Print rows of strings under a header: the first column to the left, the others to the right."""
    lines = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for count, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
        if count == 0:
            print("  ".join("-" * width for width in widths))


def environment():
    """What the figures depend on: interpreter, processor kind, versions."""
    versions = {}
    for name in ("autograd-cy", "numpy", "scipy", "torch", "jax", "autograd", "scikit-learn"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        from autograd_cy.kernels import level
    except ImportError:
        level = None
    return {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count(),
            "kernel_level": level, "versions": versions}


def write_json(path, results):
    with open(path, "w") as file:
        json.dump({"environment": environment(), "results": results}, file, indent=1)
        file.write("\n")
    print(f"figures written to {path}")


def write_plot(path, drawings):
    """One row of two panels per training: the loss curves, and the timings of every column."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(drawings), 2, figsize=(13, 4.2 * len(drawings)), squeeze=False, layout="constrained")
    for (left, right), drawing in zip(axes, drawings, strict=True):
        for count, (name, (epochs, losses)) in enumerate(drawing["curves"].items()):
            # the curves lie on each other, which is the point: a wide line below, narrower ones above
            left.plot(epochs, losses, label=name, linewidth=max(1.0, 6.0 - count), alpha=0.8)
        left.set(title=drawing["title"], xlabel="epoch", ylabel="loss", xscale="symlog", yscale="log")
        left.legend(fontsize=8)
        names = list(drawing["times"])[::-1]
        right.barh(names, [min(drawing["times"][name]) for name in names], color="tab:blue", label="minimum")
        for place, name in enumerate(names):
            right.plot(drawing["times"][name], [place] * len(drawing["times"][name]), "k.", markersize=4)
        right.set(xlabel="us per epoch (bar: minimum; dots: rounds)", xscale="log")
        right.tick_params(axis="y", labelsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"plot written to {path}")
