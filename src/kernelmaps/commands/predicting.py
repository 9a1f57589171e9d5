"""Predict the rows of a file with a saved model, and score a model on rows with a target."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from ..data import Rows, read_rows
from ..data.reading import column_names
from ..data.suffixes import data_suffix, is_csv, is_parquet, open_text
from ..display import two_columns
from ..model_files import load, open_info

__all__ = ["Evaluation", "Predictions", "check_table_suffix", "evaluate_file", "predict_rows"]

TABLE_SUFFIXES = (".csv", ".tsv", ".json")


def check_table_suffix(path: str | os.PathLike[str]) -> str:
    """The format of predictions that a suffix names: CSV and TSV (also compressed) or JSON."""
    suffix = data_suffix(path)
    if suffix not in TABLE_SUFFIXES:
        raise ValueError(
            f"cannot write {os.fspath(path)!r}: predictions are written as "
            f"{', '.join(TABLE_SUFFIXES)}, or compressed as .csv.gz, .csv.bz2, .csv.xz, .csv.zst."
        )
    return suffix


@dataclass(frozen=True)
class Predictions:
    """Predictions with the names of their columns; IDs come first."""

    columns: list[str]
    values: list[list[Any]]

    def __len__(self) -> int:
        return len(self.values)

    def to_csv(self, delimiter: str = ",") -> str:
        """Text with one line per row."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n", delimiter=delimiter)
        writer.writerow(self.columns)
        writer.writerows(self.values)
        return stream.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": self.columns, "values": self.values}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that the suffix names."""
        suffix = check_table_suffix(path)
        if suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        else:
            text = self.to_csv("\t" if suffix == ".tsv" else ",")
        if Path(path).suffix.lower() == suffix:
            storage.write_file(path, text.encode())
            return
        with open_text(path, write=True) as stream:
            stream.write(text)


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on rows with known targets.

    Attributes
    ----------
    name : str
        The data.
    task : str
    rows : int
    scores : dict of str to float
    classes : dict
        Rows, recall and precision of each class.
    """

    name: str
    task: str
    rows: int
    scores: dict[str, float]
    classes: dict[str, dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "data": self.name,
            "task": self.task,
            "rows": self.rows,
            "scores": self.scores,
            "classes": self.classes,
        }

    def table(self) -> Any:
        """As a rich table."""
        shown: dict[str, Any] = {"rows": f"{self.rows:,}", **self.scores}
        for name, values in list(self.classes.items())[:20]:
            numbers = f"recall {values['recall']:.4g}, precision {values['precision']:.4g}"
            shown[f"class {name}"] = f"{numbers} ({int(values['rows'])} rows)"
        return two_columns(shown, f"{self.task} on {self.name}")


def predict_rows(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    proba: bool = False,
    keep: Sequence[str] | None = None,
) -> Predictions:
    """Predict the rows of a file with a saved model, finding its columns by name.

    Parameters
    ----------
    model, data : path
    proba : bool
        Whether to give probabilities of the classes.
    keep : sequence of str, optional
        Columns of the data to carry along; by default the IDs that were excluded from the fit,
        where the data have them.
    """
    metadata, fitted = _opened(model)
    rows = _rows_for(data, metadata, fitted, keep=keep)
    kept = list(rows.kept)
    if not proba:
        name = metadata.get("target") or "prediction"
        found = [[value] for value in np.asarray(fitted.predict(rows.X)).tolist()]
        return Predictions([*kept, name], _beside(rows, found))
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{_an(type(fitted).__name__)} has no probabilities; leave out --proba.")
    classes = [str(item) for item in fitted.classes_]
    found = np.asarray(fitted.predict_proba(rows.X)).tolist()
    return Predictions([*kept, *classes], _beside(rows, found))


def evaluate_file(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    target: str | None = None,
) -> Evaluation:
    """Score a saved model on the rows of a file with a target."""
    metadata, fitted = _opened(model)
    task = metadata.get("task") or ("classification" if hasattr(fitted, "classes_") else "")
    rows = _rows_for(data, metadata, fitted, target=target, with_target=True)
    found = np.asarray(fitted.predict(rows.X))
    if task == "classification":
        scores, classes = _classification_scores(fitted, rows, found)
    else:
        task = "regression"
        scores, classes = _regression_scores(rows.y, found), {}
    return Evaluation(rows.name, task, int(rows.X.shape[0]), scores, classes)


def _classification_scores(fitted: Any, rows: Rows, found: np.ndarray) -> tuple[Any, Any]:
    from sklearn.metrics import (
        accuracy_score,
        balanced_accuracy_score,
        log_loss,
        precision_recall_fscore_support,
    )

    truth, known = np.asarray(rows.y), fitted.classes_
    if truth.dtype.kind != np.asarray(known).dtype.kind:
        truth, found, known = truth.astype(str), found.astype(str), np.asarray(known).astype(str)
    strange = np.setdiff1d(truth, known)
    if strange.size:
        raise ValueError(
            f"{rows.name}: the target has the classes {strange[:5].tolist()}, which the model was "
            "not fitted on."
        )
    scores = {
        "accuracy": float(accuracy_score(truth, found)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, found)),
    }
    if hasattr(fitted, "predict_proba"):
        probabilities = np.asarray(fitted.predict_proba(rows.X), dtype=np.float64)
        scores["log_loss"] = float(log_loss(truth, probabilities, labels=known))
    precision, recall, _, support = precision_recall_fscore_support(
        truth, found, labels=known, zero_division=0
    )
    classes = {
        str(name): {"rows": int(n), "recall": float(r), "precision": float(p)}
        for name, n, r, p in zip(known, support, recall, precision)
    }
    return scores, classes


def _regression_scores(y: Any, found: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import mean_absolute_error, r2_score

    truth = np.asarray(y, dtype=np.float64)
    return {
        "r2": float(r2_score(truth, found)),
        "rmse": float(np.sqrt(np.mean((truth - found) ** 2))),
        "mean_absolute_error": float(mean_absolute_error(truth, found)),
    }


def _opened(model: str | os.PathLike[str]) -> tuple[dict[str, Any], Any]:
    metadata, fitted = open_info(model).metadata, load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{os.fspath(model)!r} holds {_an(type(fitted).__name__)}, which does not predict: "
            "make a model with `kernelmaps fit`."
        )
    return metadata, fitted


def _rows_for(
    data: Any,
    metadata: dict[str, Any],
    fitted: Any,
    *,
    keep: Sequence[str] | None = None,
    target: str | None = None,
    with_target: bool = False,
) -> Rows:
    """The rows of new data with the columns that a model knows."""
    columns, target = metadata.get("columns"), target or metadata.get("target")
    named = columns is not None and (is_csv(data) or is_parquet(data))
    if keep is None:
        there = column_names(data) if metadata.get("ids") and Path(data).exists() else None
        keep = [name for name in metadata.get("ids") or [] if name in (there or [])]
    rows = read_rows(
        data,
        target=target,
        columns=columns if named else None,
        keep=keep,
        need_target=with_target,
        with_target=with_target,
    )
    if rows.X.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"{rows.name} has {rows.X.shape[1]} features, the model was fitted on "
            f"{fitted.n_features_in_}."
        )
    return rows.normalized(metadata.get("normalize", "none"))


def _beside(rows: Rows, found: list[list[Any]]) -> list[list[Any]]:
    """Kept cells before the predictions of each row."""
    if not rows.kept:
        return found
    return [[*cells, *values] for cells, values in zip(zip(*rows.kept.values()), found)]


def _an(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
