"""The benchmarks: short runs of each command, and that a disagreement is an error.

Relies on bench/ (a source tree or an sdist has it) and the package.
"""

import dataclasses
import json
import warnings

import numpy as np
import pytest

pytest.importorskip("bench")

from bench import __main__ as command
from bench import calls, ops_all, report, synthetic, timing, training, xor

from autograd_cy.ops import TABLE


def test_rounds_visit_every_name_once_and_start_elsewhere():
    pairs = list(timing.interleaved("abc", 3))
    assert [name for number, name in pairs if number == 0] == ["a", "b", "c"]
    assert [name for number, name in pairs if number == 1] == ["b", "c", "a"]
    assert sorted(pairs) == sorted((n, c) for n in range(3) for c in "abc")


def test_table_is_aligned(capsys):
    report.table(["", "one", "two"], [["a", "1", "22"], ["long name", "333", "4"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "           one  two"
    assert lines[2:] == ["a            1   22", "long name  333    4"]


@pytest.mark.parametrize("name", ["xor", "iris", "mlp"])
def test_training_runs(name, tmp_path, capsys):
    pytest.importorskip("Cython")
    figures = tmp_path / "figures.json"
    epochs = "4" if name == "mlp" else "30"
    assert command.main([name, "--epochs", epochs, "--rounds", "2", "--models", "3", "--json", str(figures)]) == 0
    out = capsys.readouterr().out
    assert "limit: by hand in Cython" in out
    assert "NumPy by hand" in out
    assert "replay and its capture" in out
    results = [result for result in json.loads(figures.read_text())["results"] if result["benchmark"] == name]
    losses = [result["loss"] for result in results]
    assert max(losses) - min(losses) < 1e-3
    assert all(len(result["us_per_epoch"]) == 2 for result in results)


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("Cython")
    picture = tmp_path / "xor.png"
    assert command.main(["xor", "--epochs", "20", "--rounds", "1", "--models", "2", "--dtype", "float32", "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_disagreement_is_an_error():
    described = xor.training()

    def still(training, dtype):
        return lambda epochs: training.arrays(dtype)[2]
    columns = [training.Column("by hand", xor.by_hand), training.Column("stands still", still)]
    outcomes = training.measure(described, columns, "float64", 200, 1)
    found = training.complaints(described, outcomes, 200)
    assert len(found) == 1
    assert "disagree" in found[0]
    nowhere = {"nan": training.Outcome(columns[0], [1.0], float("nan"), 0.0), **outcomes}
    assert training.complaints(described, nowhere, 200)


def test_a_whole_training_must_end_where_it_should():
    described = dataclasses.replace(xor.training(), epochs=10)
    outcomes = training.measure(described, [training.Column("by hand", xor.by_hand)], "float64", 10, 1)
    assert "0.02" in training.complaints(described, outcomes, 10)[0]


def test_numpy_by_hand_reaches_the_required_loss():
    described = xor.training()
    weights = xor.by_hand(described, "float64")(xor.EPOCHS)
    loss, accuracy = described.evaluate([np.asarray(w) for w in weights])
    assert loss < 1e-3
    assert accuracy == 1.0


def test_graphs(capsys):
    assert command.main(["graph", "--largest", "10000", "--rounds", "1", "--epochs", "4", "--dtype", "float32"]) == 0
    out = capsys.readouterr().out
    assert "RecursionError" in next(line for line in out.splitlines() if line.startswith("chain 10,000  recursive"))
    assert "signal" not in out
    for row in ("XOR 2-16-1", "MLP 784-256-128-10", "Chain of 200", "Fan-out into 200", "one tensor, 100,000", "plan"):
        assert any(line.startswith(row) for line in out.splitlines())


@pytest.mark.parametrize("name", ["chain", "fan-out"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_synthetic_trainings_end_where_they_should(name, dtype):
    pytest.importorskip("Cython")
    described = synthetic.training(name)
    outcomes = training.measure(described, synthetic.columns(name, ("iterative", "replay")), dtype, synthetic.EPOCHS, 1)
    assert training.complaints(described, outcomes, synthetic.EPOCHS) == []


def test_other_bits_are_an_error():
    described = xor.training()

    def nearly(training, dtype):
        run = xor.eager(xor.ag, engine="replay")(training, dtype)
        return lambda epochs: [w * (1 + 1e-6) for w in run(epochs)]
    columns = [*xor.columns(("iterative",))[:1], training.Column("nearly", nearly, engine="replay")]
    found = training.complaints(described, training.measure(described, columns, "float32", 50, 1), 50)
    assert len(found) == 1
    assert "bits" in found[0]


def test_calls(capsys, monkeypatch):
    monkeypatch.setattr(timing.Statement, "TARGET", 1e-6)
    monkeypatch.setattr(calls, "REASONS", {})
    monkeypatch.setitem(calls.BARS, "shape", 1)
    assert command.main(["calls", "--rounds", "1", "--only", "lib.cat([x, a]),network"]) == 1
    written = capsys.readouterr()
    lines = written.out.splitlines()
    assert any(line.startswith("lib.cat([x, a])  ") and line.endswith("NO REASON") for line in lines)
    assert any(line.startswith("F.layer_norm(wide, (8,), row8, row8)  ") for line in lines)
    assert "above the 1 ns of its kind" in written.err
    assert not any(line.startswith("x + a") for line in lines)


def test_every_call_runs_and_reasons_have_one():
    names = calls.operands(calls.ag)
    everything = list(calls.calls())
    assert len(set(everything)) == len(everything)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, call in everything:
            exec(call, dict(names))
    assert set(calls.REASONS) <= {call for _, call in everything}


def test_ops(capsys, monkeypatch):
    from bench import ops
    monkeypatch.setattr(ops, "SHAPES", ((4, 4),))
    monkeypatch.setattr(timing.Statement, "TARGET", 1e-4)
    assert command.main(["ops", "--rounds", "1", "--dtype", "float32"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("mul  (4, 4)", "softmax  (4, 4)", "recorded and freed"))


def test_every_row(tmp_path, capsys):
    figures = tmp_path / "figures.json"
    assert command.main(["ops", "--all", "--only", "add,sum,eq,transpose", "--rounds", "1", "--json", str(figures)]) == 0
    results = json.loads(figures.read_text())["results"]
    assert {(r["row"], r["measurement"]) for r in results} >= {("add", "small"), ("add", "backward"), ("sum", "forward"), ("eq", "forward")}
    assert "small ns" in capsys.readouterr().out


def test_reasons_belong_to_rows():
    names = {key if isinstance(key, str) else key[0] for key in ops_all.REASONS} | set(ops_all.SAMPLE)
    assert names <= set(TABLE)
