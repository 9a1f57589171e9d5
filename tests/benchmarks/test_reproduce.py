"""Reproductions: every entry has a script, every record becomes lines with differences."""

import json
from pathlib import Path

import numpy as np
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


def test_jobs_are_run_once_and_collected(tmp_path, monkeypatch):
    """Jobs leave files; those that are there are not run again, and failures leave none."""
    from benchmarks import parallel

    script = tmp_path / "counting_script.py"
    script.write_text(
        "ran = []\ndef run(job, folder):\n    ran.append(job)\n    return 1 / job['x']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    results, jobs = tmp_path / "out", [{"x": x} for x in (1, 2, 0)]
    parallel.compute("counting_script", jobs, None, results, 1)
    parallel.compute("counting_script", jobs, None, results, 1)
    import counting_script

    assert [job["x"] for job in counting_script.ran] == [1, 2, 0, 0]
    found = parallel.finished(results)
    assert sorted((item["job"]["x"], item["found"]) for item in found) == [(1, 1.0), (2, 0.5)]
    assert parallel.where(found)["threads"] >= 1
    parallel.compute("counting_script", [{"x": 4}], None, results, 0)
    assert len(parallel.finished(results)) == 2


def test_the_jobs_of_a_table_differ(tmp_path):
    """Each job has a file of its own, and every line of the paper's table is there."""
    from benchmarks import parallel, reproduce_annfm, reproduce_compressive_rf

    for script in (reproduce_annfm, reproduce_compressive_rf):
        jobs = script.jobs()
        assert len({parallel._file(tmp_path, job) for job in jobs}) == len(jobs)
    mnist = [job for job in reproduce_annfm.jobs(("mnist",)) if job["sample"] == 0]
    names = {(job["kernel"], f"{job['method']} {job['size']}") for job in mnist}
    from benchmarks.reproductions import _ANNFM_1

    assert {(k, name) for k, lines in _ANNFM_1.items() for name in lines} <= names


def test_samples_become_one_line_with_their_spread():
    from benchmarks import reproduce_annfm

    job = {"data": "mnist", "kernel": "chi2", "method": "VZ", "size": "3"}
    result = {"seconds": 1.0, "stored": 10, "c": 1.0, "validation": 90.0, "rows": [10, 10]}
    found = [
        {
            "job": {**job, "sample": s},
            "found": {**result, "accuracy": 93.0 + s},
            "machine": {"processor": "abacus"},
        }
        for s in range(3)
    ]
    (line,) = reproduce_annfm.record_of(found, {})["lines"]
    assert (line["accuracy"], line["sd"], line["samples"]) == (94.0, 1.0, 3)
    told = ENTRIES["annfm-tables-1-2"].lines({"lines": [line]})[0]
    assert told.difference == pytest.approx(94.0 - 93.86)
    assert told.note.startswith("± 1.00 over 3 samples")
    assert told.note.endswith("on abacus")


def test_votes_of_pairs_are_counted():
    from benchmarks.reproduce_compressive_rf import counted

    y = np.array([0, 1, 2])
    pairs = {(0, 1): "010", (0, 2): "001", (1, 2): "001"}
    items = [{"job": {"pair": list(pair)}, "found": votes} for pair, votes in pairs.items()]
    assert counted(items, (None, y, None, y)) == 100.0
    items[1]["found"] = "101"  # the first row now has one vote for each class: the first wins
    assert counted(items, (None, y, None, np.array([0, 1, 1]))) == pytest.approx(200 / 3)


def test_the_machine_of_crammer_and_singer_is_liblinears(seed):
    from benchmarks import crammer_singer

    rng = np.random.default_rng(seed)
    X = rng.random((300, 8)).astype(np.float32)
    y = (X[:, :4] + 0.2 * rng.random((300, 4))).argmax(axis=1)
    apart, largest = crammer_singer.difference(X, y)
    assert apart < 0.02 * largest


def test_aligned_scores_are_positive_for_as_many_rows_of_each_class(seed):
    from benchmarks.score_alignment import align_scores

    scores = np.random.default_rng(seed).normal(size=(200, 5)) + np.arange(5)
    aligned = align_scores(scores, 40)
    assert ((aligned > 0).sum(axis=0) == 39).all()
    # A shift of a class alone: its order of rows stays, and another shift of it does nothing.
    assert np.ptp(aligned - scores, axis=0) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(align_scores(scores + np.arange(5), 40), aligned, atol=1e-12)


def test_tables_without_jobs_say_so():
    with pytest.raises(ValueError, match="is one computation, without independent jobs"):
        reproduce.reproduce("low-dim-maps-table-1", jobs=2)


def test_exchanges_find_frequencies_of_a_grid():
    """As fine a grid as one likes reaches the continuous optimum; a coarse one cannot be better."""
    from benchmarks.reproduce_low_dim_maps import RBF, minimax_weights, on_a_grid

    free = np.array([0.0, 1.629643, 3.269270, 4.924294])
    lag = np.linspace(0, np.pi, 161)
    best = minimax_weights(free, RBF.signature(lag), lag)[1]
    assert best < 0.0522
    assert best <= on_a_grid(free, 0.025) < 0.0540
