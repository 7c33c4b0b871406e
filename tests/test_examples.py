"""The examples run, and the trainings they show reach what they promise.

Relies on examples/ (loaded by path) and the package.
"""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_xor_learns(capsys):
    """2-8-2, relu, cross entropy, Adam 0.1, 1500 epochs."""
    losses, predictions, accuracy = load("xor").main([])
    assert accuracy == 1.0
    assert predictions == [0, 1, 1, 0]
    assert losses[-1] < 1e-4 < losses[0]
    assert "accuracy 1.0" in capsys.readouterr().out


def test_three_lines_learns():
    """The article's network reaches its loss."""
    loss, accuracy = load("three_lines").main([])
    assert 19.0 <= loss <= 19.3
    assert accuracy == pytest.approx(0.98, abs=1e-6)


def test_iris_learns(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "iris.png"
    loss, accuracy = load("iris").main(["--epochs", "200", "--plot", str(picture)])
    assert loss < 0.1
    assert accuracy >= 0.9
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_engines_agree():
    results = load("engines").main([])
    assert {results[name] for name in ("chain", "ladder", "fan-out", "network")} == {"equal bytes"}
    assert "iterative" in results["deep chain"]


def test_readme_runs(capsys):
    """The code that the README shows does what it says."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        names = {}
        exec(compile(block, "README.md", "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) < 1e-2
    assert (names["h"] - 6 * names["w"]).abs().max().item() < 1e-5


def test_compiled_ends_with_the_same_bytes():
    same, losses = load("compiled").main(["--epochs", "60", "--models", "3"])
    assert same and losses.shape == (3, 60) and (losses[:, -1] < losses[:, 0]).all()


def test_digits_learns_the_same_compiled():
    arguments = ["--images", "400", "--epochs", "5"]
    losses, accuracy = load("digits").main(arguments)
    assert losses[-1] < 0.6 * losses[0] and accuracy > 0.5
    assert load("digits").main([*arguments, "--eager"]) == (losses, accuracy)
