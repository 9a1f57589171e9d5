"""The harness is fair, counts bytes rightly, and renders what it measured."""

import time

import pytest

from benchmarks.harness import Bench

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
