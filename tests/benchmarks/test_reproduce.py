"""Parts of the reproductions: small cases with known answers."""

import json

import numpy as np
import pytest


def test_stored_tables_are_printed(capsys):
    from benchmarks.reproduce import main

    main(["chebyshev-figure-1", "--stored"])
    assert "C at x = 0.5" in capsys.readouterr().out


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


def test_exchanges_find_frequencies_of_a_grid():
    """As fine a grid as one likes reaches the continuous optimum; a coarse one cannot be better."""
    from benchmarks.reproduce_low_dim_maps import RBF, minimax_weights, on_a_grid

    free = np.array([0.0, 1.629643, 3.269270, 4.924294])
    lag = np.linspace(0, np.pi, 161)
    best = minimax_weights(free, RBF.signature(lag), lag)[1]
    assert best < 0.0522
    assert best <= on_a_grid(free, 0.025) < 0.0540


def test_notes_name_processors_that_are_not_those_of_most_lines():
    from benchmarks.paper_tables import Line
    from benchmarks.reproduce import _with_processors

    lines = [Line(str(n), None, 1.0, note="1 s", processor="A" if n else "B") for n in range(3)]
    noted, machine = _with_processors(lines)
    assert [line.note for line in noted] == ["1 s; on B", "1 s", "1 s"]
    assert machine == "1 thread of A unless a note names another"
    assert _with_processors([Line("x", None, 1.0)])[1] == ""


def test_a_line_that_is_computed_elsewhere_keeps_its_processor_and_that_of_the_others():
    from benchmarks import reproduce_annfm

    jobs = reproduce_annfm.jobs(["inria"], ["chi2"], ["linear", "exact"], (10, 10), 1)

    def results(jobs, processor):
        found = {"accuracy": 90.0, "seconds": 1.0, "stored": 8}
        return [{"job": j, "found": found, "machine": {"processor": processor}} for j in jobs]

    old = reproduce_annfm.record_of(results(jobs, "A"), {})
    new = reproduce_annfm.record_of(results(jobs[:1], "B"), old)
    assert sorted(line["processor"] for line in new["lines"]) == ["A", "B"]


def test_a_run_begins_without_the_lines_that_it_computes():
    from benchmarks.reproduce_low_dim_maps import without_lines

    rows = {"linear": 1, "chi2, exact": 2, "intersection, exact": 3}
    left = without_lines({"scenes": rows, "others": rows}, ["scenes"], ["chi2"])
    assert left == {"scenes": {"intersection, exact": 3}, "others": rows}


@pytest.mark.parametrize("resume", [False, True])
def test_known_lines_are_computed_again_unless_a_run_goes_on(resume, tmp_path, monkeypatch):
    from benchmarks import reproduce_additive_classifiers as script

    known = {"paper": None, "ours": 1.0, "note": "C=1"}
    path, what = tmp_path / "lines.json", "table 4, D0, cubic, n=5"
    path.write_text(json.dumps({"lines": {what: known}}), encoding="utf-8")
    monkeypatch.setattr(script, "split", lambda name, folder: (np.zeros((4, 1)),) * 4)
    monkeypatch.setattr(script, "lines_of", lambda cell, *_: {cell.what: {**known, "ours": 2.0}})
    options = ["--data", "x", "--tables", "4", "--only", "D0", "--output", str(path)]
    script.main(options + ["--resume"] * resume)
    lines = json.loads(path.read_text(encoding="utf-8"))["lines"]
    assert len(lines) == 2
    assert lines[what]["ours"] == (1.0 if resume else 2.0)


def test_only_tables_that_can_go_on_take_resume():
    from benchmarks.reproduce import reproduce

    with pytest.raises(ValueError, match="leave out --resume"):
        reproduce("chebyshev-figure-1", resume=True)


def test_all_lines_of_a_command_are_in_the_record_or_marked():
    from benchmarks.reproduce import stored
    from benchmarks.reproduce_additive_classifiers import cells

    lines = {line.what: line for line in stored("annfm-table-3").lines}
    assert lines["chi2, linear -"].ours is None
    assert lines["chi2, linear -"].note.startswith("not run; paper")
    assert {c.what for c in cells()} <= {
        line.what for line in stored("additive-classifiers-tables-2-5").lines
    }
