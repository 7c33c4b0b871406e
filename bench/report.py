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
    """Two panels in a row: of each drawing the loss curves ("curves"), the timings of columns ("times"), lines over sizes ("lines")."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(kind, drawing) for drawing in drawings for kind in PANELS if kind in drawing]
    rows = (len(panels) + 1) // 2
    figure, axes = plt.subplots(rows, 2, figsize=(13, 4.2 * rows), squeeze=False, layout="constrained")
    for panel, (kind, drawing) in zip(axes.flat, panels, strict=False):
        panel.set_title(drawing["title"], fontsize=10)
        PANELS[kind](panel, drawing[kind])
    for panel in axes.flat[len(panels):]:
        panel.set_axis_off()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"plot written to {path}")


def draw_curves(panel, curves):
    """{name: (epochs, losses)}. They lie on each other, which is the point: a wide line below, narrower ones above."""
    for count, (name, (epochs, losses)) in enumerate(curves.items()):
        panel.plot(epochs, losses, label=name, linewidth=max(1.0, 6.0 - count), alpha=0.8)
    panel.set(xlabel="epoch", ylabel="loss", xscale="symlog", yscale="log")
    panel.legend(fontsize=8)


def draw_times(panel, times):
    """{name: microseconds of each round}."""
    names = list(times)[::-1]
    least = [min(times[name]) for name in names]
    panel.barh(names, least, color="tab:blue")
    panel.set_yticks(range(len(names)), [f"{name}  {number(value)}" for name, value in zip(names, least, strict=True)])
    for place, name in enumerate(names):
        panel.plot(times[name], [place] * len(times[name]), "k.", markersize=4)
    panel.set(xlabel="us per epoch (bar: minimum; dots: rounds)", xscale="log", xlim=(min(least) / 2, max(map(max, times.values())) * 2))
    panel.tick_params(axis="y", labelsize=8)
    panel.tick_params(axis="x", which="minor", labelbottom=False)


def draw_lines(panel, lines):
    """{name: [(size, microseconds)]}."""
    for name, points in lines.items():
        panel.plot(*zip(*points, strict=True), "o-", label=name)
    panel.set(xlabel="numbers", ylabel="us", xscale="log", yscale="log")
    panel.legend(fontsize=8)


PANELS = {"curves": draw_curves, "times": draw_times, "lines": draw_lines}
