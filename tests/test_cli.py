"""Commands print what the library returns, and nothing else."""

import json

import pytest
from typer.testing import CliRunner

import kernelmaps
from kernelmaps.cli import app
from kernelmaps.evaluation import demo as demo_module

pytestmark = pytest.mark.usefixtures("two_maps")


@pytest.fixture
def two_maps(monkeypatch):
    """The demonstration with two quick maps, one of which does not exist."""
    candidates = [
        demo_module.Candidate("χ²", "HomogeneousMap", {"kernel": "chi2", "n_components": 3}),
        demo_module.Candidate("χ²", "NoSuchMap", {}),
    ]
    monkeypatch.setattr(demo_module, "CANDIDATES", candidates)


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "140", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_version():
    assert run("--version").strip() == f"kernelmaps {kernelmaps.__version__}"


def test_help_names_the_commands():
    assert "demo" in run("--help")
    assert "--json" in run("demo", "--help")


def test_demo_prints_a_table_and_writes_a_picture(tmp_path):
    text = run("demo", "--out", str(tmp_path / "new"))
    assert "plain linear SVM" in text
    assert "HomogeneousMap 3" in text
    picture = (tmp_path / "new" / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_demo_as_json_is_nothing_but_json(tmp_path):
    printed = json.loads(run("demo", "--out", str(tmp_path), "--json"))
    saved = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    assert printed == saved
    assert [row["kind"] for row in printed["rows"]] == ["linear", "exact", "map"]
    assert printed["missing"] == ["NoSuchMap"]


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    def no_matplotlib(self, path):
        raise ImportError("No module named 'matplotlib'")

    monkeypatch.setattr(demo_module.DemoResult, "plot", no_matplotlib)
    assert "pip install 'kernelmaps[plot]'" in run("demo", "--out", str(tmp_path))
