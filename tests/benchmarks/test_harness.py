"""The harness is fair, counts bytes rightly, and renders what it measured."""

import json
import time

import numpy as np
import pytest
from scipy import sparse

from benchmarks import machine, memory, render
from benchmarks.__main__ import GOALS, ROOMS, races
from benchmarks.harness import Bench, Row


@pytest.fixture(autouse=True)
def any_machine(monkeypatch):
    """What is said of wide vectors and of threads holds on every machine that runs the tests."""
    monkeypatch.setattr(machine, "is_arm", lambda: False)
    for library in ("OMP", "OPENBLAS", "MKL"):  # the tests hold them to one thread
        monkeypatch.delenv(f"{library}_NUM_THREADS", raising=False)


LIMITS = {"copy": 2e10, "write": 2e10, "fresh_write": 1e10, "sgemm": 1e11, "dgemm": 5e10}


def test_race_takes_turns_and_reports_the_ratio():
    calls = []

    def ours():
        calls.append("ours")
        time.sleep(0.002)

    def theirs():
        calls.append("theirs")
        time.sleep(0.010)

    bench = Bench("test", limits=LIMITS)
    row = bench.race("sleep", ours, theirs, peer="slow", at_least=2, repeats=3, bytes_written=10**7)
    warm_up, rounds = calls[:2], [calls[i : i + 2] for i in (2, 4, 6)]
    assert sorted(warm_up) == ["ours", "theirs"]
    assert rounds == [["ours", "theirs"], ["theirs", "ours"], ["ours", "theirs"]]
    assert row.ours >= 0.002
    assert row.theirs >= 0.010
    assert row.ratio == row.theirs / row.ours
    assert row.reached is (row.ratio >= 2)
    assert row.limit == pytest.approx(1e-3)
    assert row.of_limit == pytest.approx(row.ours / 1e-3)


def test_race_stops_when_the_budget_is_spent():
    bench = Bench("test", limits=LIMITS)
    row = bench.race(
        "sleep", lambda: None, lambda: time.sleep(0.02), peer="p", repeats=99, budget=0
    )
    assert row.repeats == 2
    assert row.reached is None


def test_flops_give_the_limit_of_a_product():
    row = Bench("test", limits=LIMITS).race(
        "product", lambda: None, lambda: None, peer="p", repeats=2, flops=("sgemm", 1e9)
    )
    assert row.limit == pytest.approx(0.01)


def test_measure_holds_a_figure_to_its_bound():
    bench = Bench("test")
    assert bench.measure("a", 2.0, "s", at_most=2.5).reached
    assert not bench.measure("b", 3.0, "s", at_most=2.5).reached


def test_bytes_of_csr_count_all_three_arrays():
    matrix = sparse.eye(1000, format="csr")
    expected = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    assert memory.n_bytes(matrix) == expected
    assert memory.n_bytes(np.ones(3)) == 24


def test_a_failing_side_says_why():
    with pytest.raises(RuntimeError, match="No module named 'no_such_module'"):
        memory.in_subprocess("no_such_module:f")


def test_a_part_of_the_races_leaves_other_rows_as_they_were(tmp_path):
    bench = Bench("some_room", limits=LIMITS)
    bench.rows = [Row("a", "p", ratio=1.0), Row("a", "q", ratio=2.0), Row("b", ratio=3.0)]
    path = bench.save(tmp_path)
    before = json.loads(path.read_text("utf-8")) | {"date": "2001-02-03"}
    path.write_text(json.dumps(before), "utf-8")
    bench.rows = [Row("a", "q", ratio=4.0, date="2002-03-04")]
    assert bench.save(tmp_path, partly=True) == path
    rows = json.loads(path.read_text("utf-8"))["rows"]
    found = [(row["what"], row["peer"], row["ratio"], row["date"]) for row in rows]
    assert found == [
        ("a", "p", 1.0, "2001-02-03"), ("b", "", 3.0, "2001-02-03"), ("a", "q", 4.0, "2002-03-04"),
    ]  # fmt: skip
    assert "measured 2001-02-03" in render.page_text(tmp_path)
    bench.save(tmp_path)
    assert len(json.loads(path.read_text("utf-8"))["rows"]) == 1


def test_parts_of_rooms_are_run_by_name():
    assert races([]) == [(room, "") for room in ROOMS]
    assert races(["design", *GOALS])[:2] == [("design", ""), ("foundation", "maps")]
    with pytest.raises(ValueError, match="no benchmark named 'nothing'"):
        races(["nothing"])
    with pytest.raises(ValueError, match=r"no part 'nothing' of anchor; there are \['encode'"):
        races(["anchor:nothing"])
