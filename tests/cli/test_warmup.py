"""The command that compiles ahead runs every step and says how many there were."""

import json

from typer.testing import CliRunner

from kernelmaps.cli import app, warmup


def test_warmup_runs_every_step(monkeypatch):
    done = []
    steps = [lambda: done.append("a"), lambda: done.append("b")]
    monkeypatch.setattr(warmup, "_steps", lambda: iter(steps))
    result = CliRunner().invoke(app, ["warmup", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["steps"] == 2
    assert done == ["a", "b"]
    assert "2 loops are ready" in CliRunner().invoke(app, ["warmup"]).stdout


def test_steps_cover_every_kind_of_rows():
    """Maps on float64, float32, CSR and bytes; codes; both models, of arrays and of tables."""
    steps = list(warmup._steps())
    kinds = {(step.func.__name__, type(step.args[-1]).__name__) for step in steps}
    assert ("fit_transform", "csr_matrix") in kinds
    assert ("_encode", "ndarray") in kinds
    dtypes = {step.args[0].dtype.name for step in steps if step.func.__name__ == "fit_transform"}
    assert dtypes == {"float64", "float32", "uint8"}
    models = {
        (type(step.args[0]).__name__, step.args[-1].dtype.name)
        for step in steps
        if step.func.__name__ == "_predict"
    }
    machines = {
        (name, k) for name in ("AdditiveSVC", "AdditiveSVR") for k in ("float64", "float32")
    }
    gams = {(name, "object") for name in ("AdditiveClassifier", "AdditiveRegressor")}
    assert models == machines | gams
    maps = {type(step.func.__self__).__name__ for step in steps if hasattr(step.func, "__self__")}
    assert {"SplineMap", "RandomFourierMap", "ExponentialMap"} <= maps


def test_the_table_is_taken_as_one():
    steps = [step for step in warmup._steps() if step.func.__name__ == "_predict"]
    tables = [step for step in steps if step.args[-1].dtype == object]
    tables[-1]()
    kinds = [book.kind for book in tables[-1].args[0].predictor_.books]
    assert kinds == ["number"] * 4 + ["category"]
