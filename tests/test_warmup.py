"""The command that compiles ahead runs every step and says how many there were."""

import json

from typer.testing import CliRunner

from kernelmaps.cli import app
from kernelmaps.commands import warming


def test_warmup_runs_every_step(monkeypatch):
    done = []
    steps = [lambda: done.append("a"), lambda: done.append("b")]
    monkeypatch.setattr(warming, "_steps", lambda: iter(steps))
    result = CliRunner().invoke(app, ["warmup", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["steps"] == 2
    assert done == ["a", "b"]
    assert "2 loops are ready" in CliRunner().invoke(app, ["warmup"]).stdout


def test_steps_cover_every_kind_of_rows():
    """Maps on float64, float32, CSR and bytes; codes; the classifier."""
    steps = list(warming._steps())
    kinds = {(step.func.__name__, type(step.args[-1]).__name__) for step in steps}
    assert ("fit_transform", "csr_matrix") in kinds
    assert ("_encode", "ndarray") in kinds
    assert sum(step.func.__name__ == "_predict" for step in steps) == 2
    dtypes = {step.args[0].dtype.name for step in steps if step.func.__name__ == "fit_transform"}
    assert dtypes == {"float64", "float32", "uint8"}
