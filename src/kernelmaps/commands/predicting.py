"""Predict the rows of a file with a saved model, and score a model on rows with a target."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from ..data import Rows, read_rows
from ..data.kinds import Kind
from ..data.reading import column_names
from ..data.suffixes import data_suffix, is_csv, is_parquet, open_text
from ..data.table_files import read_table
from ..display import two_columns
from ..evaluation.scoring import class_scores, scores_of
from ..exceptions import FileFormatError, UnreadableCellWarning
from ..maps.base import AdditiveMap
from ..model_files import load, open_info

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
    rows = rows_for(data, metadata, fitted, keep=keep)
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
    rows = rows_for(data, metadata, fitted, target=target, with_target=True)
    scores, classes = scores_of(fitted, rows.X, rows.y, rows.name), {}
    if task == "classification":
        classes = class_scores(fitted, rows.X, rows.y, rows.name)
    return Evaluation(rows.name, task or "regression", int(rows.X.shape[0]), scores, classes)


def _opened(model: str | os.PathLike[str]) -> tuple[dict[str, Any], Any]:
    metadata, fitted = open_info(model).metadata, load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{os.fspath(model)!r} holds {_an(type(fitted).__name__)}, which does not predict: "
            "make a model with `kernelmaps fit`."
        )
    if metadata.get("columns") and not metadata.get("kinds"):
        _tell_names(fitted, metadata["columns"])
    return metadata, fitted


def _tell_names(fitted: Any, columns: Sequence[str]) -> None:
    """Let the maps of a model, which was fitted on an array, speak of columns by name."""
    parts = getattr(getattr(fitted, "_fitted_maps", None), "parts", [])
    steps = [step for part in parts if part.columns is None for step in part.steps]
    for feature_map in [getattr(fitted, "feature_map_", None), *steps]:
        if isinstance(feature_map, AdditiveMap) and feature_map.n_features_in_ == len(columns):
            feature_map._known_names = columns


def rows_for(
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
    asked: dict[str, Any] = {
        "target": target,
        "columns": columns if named else None,
        "keep": keep,
        "need_target": with_target,
        "with_target": with_target,
    }
    if metadata.get("kinds"):
        return _table_for(data, metadata["kinds"], asked)
    rows = read_rows(data, **asked)
    if rows.X.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"{rows.name} has {rows.X.shape[1]} features, the model was fitted on "
            f"{fitted.n_features_in_}."
        )
    return rows.normalized(metadata.get("normalize", "none"))


def _table_for(data: Any, kinds: dict[str, Any], asked: dict[str, Any]) -> Rows:
    """New rows of a table, read as those of the fit were."""
    if asked["columns"] is None:
        raise ValueError(
            f"{os.fspath(data)!r} has no names of columns, which a model of a table finds its "
            "columns by: use CSV or Parquet."
        )
    known = {name: Kind.of_dict(kind) for name, kind in kinds.items()}
    if sorted(known) != sorted(asked["columns"]):
        raise FileFormatError("the file of the model describes other columns than it names.")
    table = read_table(data, kinds=known, **asked)
    for remark in table.remarks:
        warnings.warn(f"{table.rows.name}: {remark}.", UnreadableCellWarning, stacklevel=2)
    return replace(table.rows, X=table.frame())


def _beside(rows: Rows, found: list[list[Any]]) -> list[list[Any]]:
    """Kept cells before the predictions of each row."""
    if not rows.kept:
        return found
    return [[*cells, *values] for cells, values in zip(zip(*rows.kept.values()), found)]


def _an(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
