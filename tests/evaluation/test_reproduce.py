"""Reproductions: every entry has a script, every record becomes lines with differences."""

import json
from pathlib import Path

import pytest

from kernelmaps.evaluation import reproduce
from kernelmaps.evaluation.reproductions import ENTRIES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_names_a_script_that_exists(name):
    script = ROOT / "benchmarks" / f"{ENTRIES[name].module}.py"
    assert "def main()" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ENTRIES)
def test_every_stored_record_can_be_told(name):
    if not reproduce._record_path(ENTRIES[name]).exists():
        with pytest.raises(FileNotFoundError, match="not been computed yet"):
            reproduce.stored(name)
        return
    found = reproduce.stored(name)
    assert all(line.ours is not None for line in found.lines)
    assert found.table().row_count == len(found.lines)
    assert json.loads(found.to_json())["lines"] == found.to_dict()["lines"]
    assert found.markdown().count("\n|") == len(found.lines) + 2


def test_a_line_has_a_difference_where_both_sides_are_known():
    assert reproduce.Line("x", 2.0, 3.5).difference == 1.5
    assert reproduce.Line("x", None, 3.5).difference is None


def test_printed_tables_are_read():
    text = """
Table 2, 100 rows, C=1: splines

| bases | degree | D0 | D1 |
|---|---|---|---|
| 5 | 1 | 1.25 s (97.50 %) | 2.00 s (98.00 %) |

Table 5, 100 rows, C=1: digits

| method | accuracy | processor time |
|---|---|---|
| D0, linear, n=20 | 99.02 % | 3.10 s |"""
    lines = ENTRIES["additive-classifiers-tables-2-5"].lines({"text": text.split("\n")})
    assert [(line.what, line.ours, line.note) for line in lines] == [
        ("table 2, bases 5, degree 1, D0", 97.5, "1.25 s"),
        ("table 2, bases 5, degree 1, D1", 98.0, "2.00 s"),
        ("table 5, D0, linear, n=20", 99.02, "3.10 s"),
    ]
    assert lines[2].difference == pytest.approx(99.02 - 99.12)


def test_data_that_are_needed_are_asked_for(monkeypatch):
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="needs the datasets mnist"):
        reproduce.reproduce("annfm-tables-1-2")


def test_an_installation_without_scripts_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "__file__", str(tmp_path / "a/b/c/reproduce.py"))
    with pytest.raises(FileNotFoundError, match="source checkout"):
        reproduce.reproduce("low-dim-maps-table-1")


def test_the_page_has_a_section_per_entry(tmp_path):
    text = reproduce.write_page(tmp_path / "page.md").read_text(encoding="utf-8")
    assert text.count("\n## ") == len(ENTRIES)
