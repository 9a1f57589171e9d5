"""The count of kept promises goes on where it stopped, and counts what was not chosen apart."""

import json

import numpy as np

import kernelmaps as km
from benchmarks import bench_product, choose_promise
from benchmarks.harness import Bench


def test_parts_are_resumed_and_merged(tmp_path, monkeypatch):
    asked = []

    def stand_in(X, kernel, seed, rows):
        asked.append((kernel, seed))
        return {"held": {0: True, 1: False, 2: None}[seed], "seconds": 0.0}

    monkeypatch.setattr(choose_promise, "one_case", stand_in)
    monkeypatch.setattr(choose_promise, "rows_of", lambda name, folder: None)
    given = ["--parts", str(tmp_path / "parts"), "--out", str(tmp_path / "all.json")]
    one = ["--dataset", "usps", "--kernel", "chi2", *given]
    choose_promise.main([*one, "--seeds", "2"])
    choose_promise.main([*one, "--seeds", "3"])
    assert asked == [("chi2", 0), ("chi2", 1), ("chi2", 2)]
    assert not (tmp_path / "all.json").exists()
    monkeypatch.setattr(choose_promise, "CODE", "another version")
    choose_promise.main([*one, "--seeds", "3"])
    assert asked == 2 * [("chi2", 0), ("chi2", 1), ("chi2", 2)]
    choose_promise.main(["--merge", *given])
    found = json.loads((tmp_path / "all.json").read_text())
    assert (found["held"], found["of"], found["nothing_chosen"]) == (1, 2, 1)
    assert found["machine"]["threads"] >= 1

    monkeypatch.setattr(choose_promise, "SUMMARY", tmp_path / "all.json")
    bench = Bench("product")
    bench_product.promise(bench)
    assert bench.rows[0].ours == 50
    assert bench.rows[0].reached is False


def test_list_names_every_part(capsys):
    choose_promise.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(choose_promise.DATASETS) * len(choose_promise.TOLERANCES) >= 15
    assert "--dataset letter --kernel exp_chi2" in lines


def test_a_case_compares_fresh_rows_with_the_tolerance():
    X, _ = km.datasets.make_histograms(120, 6, random_state=0)
    found = choose_promise.one_case(np.round(1000 * X), "gaussian", seed=0, rows=30)
    assert found["held"] == (found["fresh_max"] <= choose_promise.TOLERANCES["gaussian"])
    assert found["bound"] >= found["held_out_max"] > 0
