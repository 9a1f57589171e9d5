"""The solvers of `AdditiveSVC` beside each other, on the tables of `bench_ordinary`.

    python -m benchmarks.svm_solvers --data FOLDER [--record] [TABLE …]

For every table, map, loss and C: processor times, in one thread, of coordinate descent ("dual") and
of Newton's method or, for losses with kinks, the interior-point method ("primal"), and of the one
that the rule of :func:`kernelmaps.models.svm.training.choose_solver` takes ("auto"), with what the
rule looks at: the number of weights and κ. The last line has the largest losses of time by that
rule, over the time of the faster solver and in milliseconds. ``--record`` writes all of it to
results/svm_solvers.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import kernelmaps as km
from benchmarks import bench_ordinary as bench
from kernelmaps.models.svm import training

RECORD = Path(__file__).parent / "results" / "svm_solvers.json"


def measure(model: Any, X: Any, y: Any) -> float:
    """Processor seconds of a fit: the least of three, or of fewer that take three seconds."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 3:
        begin = process_time()
        model.fit(X, y)
        times.append(process_time() - begin)
    return min(times)


def compare(feature_map: Any, loss: str, C: float, X: Any, y: Any) -> dict[str, Any]:
    """Times of a fit by both solvers and by the rule, and what the rule looks at."""
    figures: dict[str, Any] = {}
    for solver in ("dual", "primal", "auto"):
        settings = {"loss": loss, "solver": solver, "random_state": 0, "n_jobs": 1}
        model = km.AdditiveSVC(clone(feature_map).fit(X), C, **settings)
        clone(model).fit(X[::50], y[::50])  # compiles
        with patch.object(training, "choose_solver", wraps=training.choose_solver) as rule:
            figures[solver] = round(measure(model, X, y), 4)
    n_weights, _, kappa = rule.call_args.args
    return figures | {"n_weights": int(n_weights), "kappa": float(f"{kappa:.4g}"), "C": C}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(bench.TABLES)}; all by default")
    parser.add_argument("--data", help="folder of the datasets")
    parser.add_argument("--record", action="store_true", help="write the figures")
    options, rows = parser.parse_args(), []
    for name in options.tables or bench.TABLES:
        X, y = bench.TABLES[name](options)
        for key, loss, C in itertools.product(bench.MAPS, bench.LOSSES, bench.CS):
            figures = compare(bench.MAPS[key], loss, C, X, y)
            rows.append({"table": name, "map": key, "loss": loss, **figures})
            print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    times = [(row["auto"], min(row["dual"], row["primal"], row["auto"])) for row in rows]
    worst = {
        "ratio": round(max(rule / best for rule, best in times), 2),
        "milliseconds": round(1000 * max(rule - best for rule, best in times), 1),
    }
    print(f"largest loss of time by the rule: {worst['ratio']} times, {worst['milliseconds']} ms")
    if options.record:
        record = {"largest_loss": worst, "rows": rows}
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
