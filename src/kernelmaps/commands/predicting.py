"""Predict the rows of a file with a saved model."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Rows, read_rows
from ..data.reading import CSV
from ..model_files import load, open_info

__all__ = ["Predictions", "predict_rows"]


@dataclass(frozen=True)
class Predictions:
    """Predictions with the names of their columns."""

    columns: list[str]
    values: list[list[Any]]

    def __len__(self) -> int:
        return len(self.values)

    def to_csv(self) -> str:
        """Text with one line per row."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.values)
        return stream.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": self.columns, "values": self.values}


def predict_rows(
    model: str | os.PathLike[str], data: str | os.PathLike[str], *, proba: bool = False
) -> Predictions:
    """Predict the rows of a file with a saved model, finding its columns by name."""
    metadata, fitted = open_info(model).metadata, load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{os.fspath(model)!r} holds a {type(fitted).__name__}, which does not predict: make "
            "a model with `kernelmaps fit`."
        )
    rows = _rows_for(data, metadata)
    if rows.X.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"{rows.name} has {rows.X.shape[1]} features, the model was fitted on "
            f"{fitted.n_features_in_}."
        )
    if not proba:
        name = metadata.get("target") or "prediction"
        return Predictions(
            [name], [[value] for value in np.asarray(fitted.predict(rows.X)).tolist()]
        )
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"a {type(fitted).__name__} has no probabilities; leave out --proba.")
    classes = [str(item) for item in fitted.classes_]
    return Predictions(classes, np.asarray(fitted.predict_proba(rows.X)).tolist())


def _rows_for(data: Any, metadata: dict[str, Any]) -> Rows:
    """The rows of new data with the columns that a model knows; the target may be absent."""
    columns, target = metadata.get("columns"), metadata.get("target")
    named = columns is not None and Path(data).suffix.lower() in (*CSV, ".parquet", ".pq")
    rows = read_rows(data, target=target, columns=columns if named else None, with_target=False)
    return rows.normalized(metadata.get("normalize", "none"))
