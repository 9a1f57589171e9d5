"""Predict the rows of a file with a saved model, and score a model on rows with a target."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from ..data import Rows, read_rows
from ..data.kinds import Kind
from ..data.reading import column_names
from ..data.suffixes import data_suffix, is_csv, is_parquet, open_text
from ..data.table_files import TableBlocks
from ..display import two_columns
from ..evaluation.scoring import Judged
from ..exceptions import FileFormatError, UnreadableCellWarning
from ..maps.base import AdditiveMap
from ..model_files import load_with_metadata
from .exporting import AnyPath, feature_names, write_json

TABLE_SUFFIXES = (".csv", ".tsv", ".json")


def check_table_suffix(path: AnyPath) -> str:
    """The format of predictions that a suffix names: CSV and TSV (also compressed) or JSON."""
    suffix = data_suffix(path)
    if suffix not in TABLE_SUFFIXES:
        raise ValueError(
            f"cannot write {os.fspath(path)!r}: predictions are written as "
            f"{', '.join(TABLE_SUFFIXES)}, or compressed as .csv.gz, .csv.bz2, .csv.xz, .csv.zst."
        )
    return suffix


@dataclass
class Predictions:
    """Predictions with the names of their columns; IDs come first.

    Attributes
    ----------
    columns : list of str
    blocks : callable
        Reads and predicts the rows anew, and returns them some at a time.
    rows : int
        Predictions that were read last.
    """

    columns: list[str]
    blocks: Callable[[], Iterator[list[list[Any]]]]
    rows: int = 0

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[list[list[Any]]]:
        self.rows = 0
        for block in self.blocks():
            self.rows += len(block)
            yield block

    def lines(self, delimiter: str = ",") -> Iterator[str]:
        """Text with one line per row, some rows at a time."""
        for number, block in enumerate(self):
            stream = io.StringIO()
            writer = csv.writer(stream, lineterminator="\n", delimiter=delimiter)
            writer.writerows(block if number else [self.columns, *block])
            yield stream.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": self.columns, "values": [row for block in self for row in block]}

    def save(self, path: AnyPath) -> None:
        """Write the file that the suffix names."""
        suffix = check_table_suffix(path)
        if suffix == ".json":
            write_json(path, self.to_dict())
            return
        lines = self.lines("\t" if suffix == ".tsv" else ",")
        if Path(path).suffix.lower() == suffix:
            storage.write_file(path, (text.encode() for text in lines))
            return
        with open_text(path, write=True) as stream:
            stream.writelines(lines)


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

    data: str
    task: str
    rows: int
    scores: dict[str, float]
    classes: dict[str, dict[str, float]]

    def table(self) -> Any:
        """As a rich table."""
        shown: dict[str, Any] = {"rows": f"{self.rows:,}", **self.scores}
        for name, values in list(self.classes.items())[:20]:
            numbers = f"recall {values['recall']:.4g}, precision {values['precision']:.4g}"
            shown[f"class {name}"] = f"{numbers} ({int(values['rows'])} rows)"
        return two_columns(shown, f"{self.task} on {self.data}")


def predict_rows(
    model: AnyPath, data: AnyPath, *, proba: bool = False, keep: Sequence[str] | None = None
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
    fitted, metadata = _opened(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{_an(type(fitted).__name__)} has no probabilities; leave out --proba.")
    kept = _kept(data, metadata, keep)
    one = [metadata.get("target") or "prediction"]
    names = [str(item) for item in fitted.classes_] if proba else one

    def blocks() -> Iterator[list[list[Any]]]:
        for rows in blocks_for(data, metadata, fitted, keep=kept):
            found = np.asarray(fitted.predict_proba(rows.X) if proba else fitted.predict(rows.X))
            columns = [*rows.kept.values(), *(found.T.tolist() if proba else [found.tolist()])]
            yield [list(cells) for cells in zip(*columns)]

    return Predictions([*kept, *names], blocks)


def evaluate_file(model: AnyPath, data: AnyPath, *, target: str | None = None) -> Evaluation:
    """Score a saved model on the rows of a file with a target."""
    fitted, metadata = _opened(model)
    task = metadata.get("task") or ("classification" if hasattr(fitted, "classes_") else "")
    judged = Judged(fitted, os.fspath(data))
    for rows in blocks_for(data, metadata, fitted, target=target, with_target=True):
        judged.name = rows.name
        judged.add(rows.X, rows.y)
    classes = judged.class_scores() if task == "classification" else {}
    return Evaluation(judged.name, task or "regression", judged.rows, judged.scores(), classes)


def _opened(model: AnyPath) -> tuple[Any, dict[str, Any]]:
    fitted, metadata = load_with_metadata(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{os.fspath(model)!r} holds {_an(type(fitted).__name__)}, which does not predict: "
            "make a model with `kernelmaps fit`."
        )
    if names := feature_names(metadata):
        _tell_names(fitted, names)
    return fitted, metadata


def _tell_names(fitted: Any, columns: Sequence[str]) -> None:
    """Let the maps of a model, which was fitted on an array, speak of columns by name."""
    parts = getattr(getattr(fitted, "_fitted_maps", None), "parts", [])
    steps = [step for part in parts if part.columns is None for step in part.steps]
    for feature_map in [getattr(fitted, "feature_map_", None), *steps]:
        if isinstance(feature_map, AdditiveMap) and feature_map.n_features_in_ == len(columns):
            feature_map._known_names = columns


def blocks_for(
    data: Any,
    metadata: dict[str, Any],
    fitted: Any,
    *,
    keep: Sequence[str] = (),
    target: str | None = None,
    with_target: bool = False,
) -> Iterator[Rows]:
    """The rows of new data with the columns that a model knows; those of tables block by block."""
    columns: Any = metadata.get("columns")
    target = target or metadata.get("target")
    named = columns is not None and (is_csv(data) or is_parquet(data))
    if not metadata.get("kinds"):
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
        yield rows.normalized(metadata.get("normalize", "none"))
        return
    if not named:
        raise ValueError(
            f"{os.fspath(data)!r} has no names of columns, which a model of a table finds its "
            "columns by: use CSV or Parquet."
        )
    known = {name: Kind.of_dict(kind) for name, kind in metadata["kinds"].items()}
    if sorted(known) != sorted(columns):
        raise FileFormatError("the file of the model describes other columns than it names.")
    if not Path(data).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(data)!r}.")
    ordered = {name: known[name] for name in columns}
    blocks = TableBlocks(Path(data), ordered, target, keep, with_target)
    yield from blocks
    for remark in blocks.remarks:
        warnings.warn(f"{data}: {remark}.", UnreadableCellWarning, stacklevel=2)


def _kept(data: Any, metadata: dict[str, Any], keep: Sequence[str] | None) -> list[str]:
    """Columns to carry along: those asked for, else the IDs that the data have."""
    if keep is not None:
        return list(keep)
    there = column_names(data) if metadata.get("ids") and Path(data).exists() else None
    return [name for name in metadata.get("ids") or [] if name in (there or [])]


def _an(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
