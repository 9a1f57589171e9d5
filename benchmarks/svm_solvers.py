"""The solvers of `AdditiveSVC` beside each other, on the tables of `bench_ordinary`.

    python -m benchmarks.svm_solvers --data FOLDER [TABLE …]

For every table, map, loss and C: processor times, in one thread, of coordinate descent ("dual") and
of Newton's method or, for losses with kinks, the interior-point method ("primal"), and which of
them the rule of :func:`kernelmaps.models.svm.training.choose_solver` takes ("auto"). The last line
has the largest loss of time by that rule: its time over that of the faster solver.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from time import process_time

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import kernelmaps as km
from benchmarks import bench_ordinary as bench


def measure(model, X, y) -> float:
    """Processor seconds of a fit: the least of three, or of fewer that take three seconds."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 3:
        begin = process_time()
        model.fit(X, y)
        times.append(process_time() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(bench.TABLES)}; all by default")
    parser.add_argument("--data", help="folder of the datasets")
    options, worst = parser.parse_args(), 1.0
    for name in options.tables or bench.TABLES:
        X, y = bench.TABLES[name](options)
        for key, loss, C in itertools.product(bench.MAPS, bench.LOSSES, bench.CS):
            times = {}
            for solver in ("dual", "primal", "auto"):
                feature_map = clone(bench.MAPS[key]).fit(X)
                settings = {"loss": loss, "solver": solver, "random_state": 0, "n_jobs": 1}
                model = km.AdditiveSVC(feature_map, C, **settings)
                clone(model).fit(X[::50], y[::50])  # compiles
                times[solver] = round(measure(model, X, y), 4)
            worst = max(worst, times["auto"] / min(times.values()))
            print(json.dumps([name, key, loss, C, times]), flush=True)
    print(f"largest loss of time by the rule: {worst:.2f}")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
