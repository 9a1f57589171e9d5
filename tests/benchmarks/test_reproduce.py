"""Reproductions: every entry has a script, every record becomes lines with differences."""

import json
from pathlib import Path

import pytest

from benchmarks import reproduce
from benchmarks.paper_tables import Line
from benchmarks.reproductions import ENTRIES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_names_a_script_that_exists(name):
    script = ROOT / "benchmarks" / f"{ENTRIES[name].module}.py"
    assert "def main(given" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ENTRIES)
def test_every_stored_record_can_be_told(name):
    if not reproduce._record_path(ENTRIES[name]).exists():
        with pytest.raises(FileNotFoundError, match="not been run yet"):
            reproduce.stored(name)
        return
    found = reproduce.stored(name)
    assert all(line.ours is not None for line in found.lines)
    assert found.table().row_count == len(found.lines)
    assert json.loads(found.to_json())["lines"] == found.to_dict()["lines"]
    assert found.markdown().count("\n|") == len(found.lines) + 2


def test_a_line_has_a_difference_where_both_sides_are_known():
    assert Line("x", 2.0, 3.5).difference == 1.5
    assert Line("x", None, 3.5).difference is None


def test_lines_of_additive_classifiers_are_read():
    kept = {
        "table 4, D0, linear, n=5": {"paper": None, "ours": 97.5, "note": "1.25 s"},
        "table 5, D0, linear, n=20": {"paper": 99.12, "ours": 99.02, "note": "3.10 s"},
    }
    lines = ENTRIES["additive-classifiers-tables-2-5"].lines({"lines": kept})
    assert [(line.what, line.ours, line.note) for line in lines] == [
        ("table 4, D0, linear, n=5", 97.5, "1.25 s"),
        ("table 5, D0, linear, n=20", 99.02, "3.10 s"),
    ]
    assert lines[0].difference is None
    assert lines[1].difference == pytest.approx(99.02 - 99.12)


def test_data_that_are_needed_are_asked_for(monkeypatch):
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="needs the datasets mnist"):
        reproduce.reproduce("annfm-tables-1-2")


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A checkout with two records: one that says where it was made, one that does not."""
    folder = tmp_path / "benchmarks" / "results" / "reproductions"
    folder.mkdir(parents=True)
    figures = {"17D harmonic": 0.007, "11D continuous": 0.0031}
    (folder / "low_dim_maps_figures.json").write_text(json.dumps(figures))
    machine = {"processor": "abacus", "threads": 3}
    line = {"data": "mnist", "kernel": "chi2", "method": "VZ", "size": 3, "accuracy": 93.0}
    line |= {"seconds": 1.0, "stored": 10}
    told = {"lines": [line], "machine": machine, "date": "2020-02-02"}
    (folder / "annfm.json").write_text(json.dumps(told))
    monkeypatch.setattr(reproduce, "RECORDS", folder)
    return folder


def test_the_page_has_a_section_per_entry_and_says_what_was_not_run(records, tmp_path):
    text = reproduce.write_page(tmp_path / "page.md").read_text(encoding="utf-8")
    assert text.count("\n## ") == len(ENTRIES)
    kept = {file.name for file in records.iterdir()}
    missing = [entry for entry in ENTRIES.values() if entry.record not in kept]
    assert text.count("Not run yet: `python -m benchmarks.reproduce ") == len(missing)
    assert "2020-02-02, 3 threads of abacus" in text
    assert "| chi2, VZ 3 % | 93.86 | 93 | -0.86 |" in text


def test_a_record_keeps_its_day_and_machine_until_it_changes(records, tmp_path):
    name, file = "low-dim-maps-figures-4-6", records / "low_dim_maps_figures.json"
    assert reproduce.stored(name).machine == "machine not recorded"
    reproduce.write_page(tmp_path / "page.md", machine="an abacus")
    reproduce.write_page(tmp_path / "page.md", machine="a slide rule")
    assert reproduce.stored(name).machine == "an abacus"
    file.write_text(json.dumps({"17D harmonic": 0.008}))
    reproduce.write_page(tmp_path / "page.md", machine="a slide rule")
    assert reproduce.stored(name).machine == "a slide rule"


def test_the_catalogue_says_what_was_computed(records):
    found = reproduce.catalogue().to_dict()
    assert found["annfm-tables-1-2"]["computed"] == "2020-02-02"
    assert found["chebyshev-table-3"]["computed"] is None


def test_the_command_line_lists_shows_and_refuses(capsys):
    reproduce.main(["--json"])
    assert set(json.loads(capsys.readouterr().out)) == set(ENTRIES)
    reproduce.main(["low-dim-maps-table-1", "--stored"])
    assert "difference" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        reproduce.main(["table-99"])
    assert "there is no table 'table-99'" in capsys.readouterr().err


def test_a_script_gets_its_arguments(monkeypatch):
    """What a script is given is passed to it, and no global state is changed."""
    from benchmarks import reproduce_low_dim_maps as script

    given = []
    monkeypatch.setattr(script, "main", given.append)
    reproduce._run_script("reproduce_low_dim_maps", ["--quick"])
    assert given == [["--quick"]]
