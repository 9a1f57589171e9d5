"""Additive models of real tables beside boosting, splines with a linear model, EBM and R's bam.

Scores are of held-out rows: 75 / 25, shuffled, ``random_state=0``, nothing tuned. EBM's are
recorded, since it takes minutes for each table; R's ``mgcv::bam(discrete = TRUE)`` is raced where
``Rscript`` is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import kernelmaps as km

from .harness import Bench

# Score and seconds of interpret's ExplainableBoosting models, without and with pairs. The first of
# both tables of classes are of this very split (interpret 0.7, one thread); the others were taken
# on another machine and may be of other rows.
EBM = {
    "telecom_churn": ((0.8529, 24.8), (0.849, 219.0)),
    "credit": ((0.8534, 23.7), (0.839, 206.0)),
    "diamonds": ((1023.0, 474.0), (603.0, 682.0)),
}
BAM = """
suppressMessages(library(mgcv))
d <- read.csv("{file}", stringsAsFactors = TRUE)
f <- target ~ s(carat, k=10) + s(depth, k=10) + s(table, k=10) + s(x, k=10) + s(y, k=10) +
  s(z, k=10) + cut + color + clarity
once <- function(i) system.time(bam(f, data = d, discrete = TRUE))[["elapsed"]]
cat(min(sapply(1:3, once)))
"""


def table(data: str, name: str) -> tuple[Any, np.ndarray, bool]:
    """Columns, targets, and whether these are classes."""
    import pandas as pd

    frame = pd.read_parquet(Path(data) / "tables" / f"{name}.parquet")
    y = frame.pop("target")
    classes = y.dtype.kind not in "fiu"
    return frame, (y.astype(str) if classes else y).to_numpy(), classes


def score(model: Any, X: Any, y: np.ndarray, classes: bool) -> float:
    """Area under the ROC curve, or root mean squared error."""
    from sklearn.metrics import roc_auc_score

    if not classes:
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return float(roc_auc_score(y == model.classes_[1], model.predict_proba(X)[:, 1]))


def ours(classes: bool, **options: Any) -> Any:
    if classes:
        return km.AdditiveClassifier(loss="log_loss", smoothing="auto", **options)
    return km.AdditiveRegressor(smoothing="auto", **options)


def boosting(classes: bool) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(categorical_features="from_dtype", random_state=0)


def splines(classes: bool, X: Any) -> Any:
    """SplineTransformer and one-hot columns before a linear model."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

    numbers = list(X.select_dtypes("number").columns)
    words = [name for name in X.columns if name not in numbers]
    columns = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(), StandardScaler(), SplineTransformer(10)), numbers),
            ("w", OneHotEncoder(handle_unknown="ignore"), words),
        ]
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000) if classes else Ridge())


def race_table(bench: Bench, name: str) -> None:
    from sklearn.model_selection import train_test_split

    X, y, classes = table(bench.data, name)
    a, b, ya, yb = train_test_split(X, y, test_size=0.25, random_state=0)
    unit = "AUC" if classes else "RMSE"
    alone = ours(classes).fit(a, ya)
    pairs = ours(classes, interactions="auto").fit(a, ya)
    peers = [("HistGradientBoosting", lambda: boosting(classes).fit(a, ya))]
    peers.append(("splines + linear", lambda: splines(classes, a).fit(a, ya)))
    for peer, fit in peers:
        found = score(fit(), b, yb, classes)
        bench.race(f"{name}, fit", lambda: ours(classes).fit(a, ya), fit, peer=peer)
        _compare(bench, f"{name}, score", unit, score(alone, b, yb, classes), peer, found)
    for k, (model, words, options) in enumerate(
        ((alone, "no pairs", {}), (pairs, "with pairs", {"interactions": "auto"}))
    ):
        found, seconds = EBM[name][k]
        peer = f"EBM {words} (recorded)"
        _compare(bench, f"{name}, {words}", unit, score(model, b, yb, classes), peer, found)
        used = _seconds(lambda options=options: ours(classes, **options).fit(a, ya))
        row = bench.measure(f"{name}, {words}, fit", used, "s", peer=peer, theirs=seconds)
        row.ratio, row.target = seconds / used, "≥ 100×"
        row.reached = row.ratio >= 100


def _seconds(call: Any) -> float:
    from .machine import best_seconds

    return best_seconds(call, 3)


def _compare(bench: Bench, what: str, unit: str, value: float, peer: str, found: float) -> None:
    row = bench.measure(what, value, unit, peer=peer, theirs=found)
    row.target = "not worse"
    row.reached = value >= found if unit == "AUC" else value <= found


def race_bam(bench: Bench) -> None:
    """The same table in R, smoothness chosen on both sides."""
    X, y, _ = table(bench.data, "diamonds")
    model = ours(False)
    used = _seconds(lambda: model.fit(X, y))
    bench.measure("diamonds, strengths chosen", used, "s", at_most=0.08)
    if shutil.which("Rscript") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "diamonds.csv"
        X.assign(target=y).to_csv(file, index=False)
        out = subprocess.run(
            ["Rscript", "-e", BAM.format(file=file)], capture_output=True, text=True, check=True
        )
    seconds = float(out.stdout.split()[-1])
    row = bench.measure("diamonds, fit", used, "s", peer="mgcv::bam(discrete)", theirs=seconds)
    row.ratio, row.target = seconds / used, "≥ 3×"
    row.reached = row.ratio >= 3


def run(bench: Bench) -> None:
    if bench.data is None or not (Path(bench.data) / "tables").is_dir():
        print("tables need --data FOLDER with a folder `tables` of Parquet files")
        return
    for name in EBM:
        race_table(bench, name)
    race_bam(bench)
