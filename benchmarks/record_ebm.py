"""Record scores and seconds of interpret's EBM, which takes minutes for each table.

``python -m benchmarks.record_ebm --data FOLDER [table ...]`` fits EBM's defaults with and without
pairs and writes what it finds to ``results/recorded/ebm.json``, beside what is there for other
tables.
"""

from __future__ import annotations

import argparse
import json
import os
from time import perf_counter
from typing import Any

from kernelmaps._util.threads import available_threads

from . import machine
from .harness import RESULTS
from .tables import COUNTS, NAMES, Table, load

__all__ = ["RECORD", "record", "recorded"]

RECORD = RESULTS / "recorded" / "ebm.json"


def recorded() -> dict[str, Any]:
    """What is on record: name of the table → settings → score, rmse, seconds, processes, load."""
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def record(table: Table, n_jobs: int = -1) -> dict[str, Any]:
    """Fit both of EBM's models to a table, and keep their figures."""
    import interpret

    n_jobs = available_threads() if n_jobs < 0 else n_jobs
    few = slice(None, None, max(1, len(table.y) // 400))  # its processes are started here
    _model(table, n_jobs, {"interactions": 0, "max_rounds": 1}).fit(table.X[few], table.y[few])

    found: dict[str, Any] = {"interpret": interpret.__version__, "machine": machine.description()}
    found["measure"] = table.measure
    for words, options in (("no pairs", {"interactions": 0}), ("pairs", {})):
        model = _model(table, n_jobs, options)
        row: dict[str, Any] = {"processes": n_jobs, "load": os.getloadavg()[0]}
        begin = perf_counter()
        model.fit(table.X, table.y)
        row |= {"seconds": perf_counter() - begin, "score": table.score(model)}
        if table.kind != "classes":
            row["rmse"] = table.rmse(model)
        found[words] = row
        print(f"{table.name}, EBM, {words}: {row}", flush=True)
    everything = recorded() | {table.name: found}
    text = json.dumps(everything, indent=1, ensure_ascii=False, sort_keys=True)
    RECORD.write_text(text + "\n", encoding="utf-8")
    return found


def _model(table: Table, n_jobs: int, options: dict[str, Any]) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    options = {**options, "n_jobs": n_jobs}
    if table.kind == "classes":
        return ExplainableBoostingClassifier(random_state=0, **options)
    if table.kind == COUNTS:
        options = {**options, "objective": "poisson_deviance"}
    return ExplainableBoostingRegressor(random_state=0, **options)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_ebm", description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"which to record; default: all of {NAMES}")
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None, required=False)
    parser.add_argument("--n-jobs", type=int, default=-1, help="processes; -1 for all cores")
    arguments = parser.parse_args()
    if unknown := set(arguments.tables) - {*NAMES, "flights"}:
        parser.error(f"no table named {sorted(unknown)}; there are {[*NAMES, 'flights']}")
    if arguments.data is None:
        parser.error("--data names the folder of datasets")
    for name in arguments.tables or NAMES:
        record(load(arguments.data, name), arguments.n_jobs)


if __name__ == "__main__":
    main()
