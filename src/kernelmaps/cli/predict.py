"""kernelmaps predict: predictions of a saved model for the rows of a file.

What is imported here is loaded with every call: neither scikit-learn nor pandas is.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._util import storage
from .._util.display import printable
from .._util.storage import AnyPath, write_json
from ..data.files import compressed, data_suffix, is_csv, is_parquet
from ..data.reading import column_names
from ..models.gam.predictor import warn_beyond
from ..models.saved_map import EstimatorNeeded
from . import application as cli
from .saved_model import SavedModel, add_article

TABLE_SUFFIXES = (".csv", ".tsv", ".json")


@partial(cli.command, fits=False)
def predict(
    model: cli.Model,
    data: cli.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .csv (also .csv.gz, …), .tsv or .json; default: print CSV.",
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns to carry along, separated by commas; default: IDs that were excluded "
            "with --drop in fit."
        ),
    ] = None,
    exposure: cli.Exposure = None,
    encoding: cli.Encoding = "utf-8",
    json: cli.AsJson = False,
) -> None:
    """Predict with a saved model; columns are found by their names.

    Examples:

    `kernelmaps predict model.kmap new.csv`

    `kernelmaps predict model.kmap new.csv.gz --proba --keep id --out predictions.csv`
    """
    cli.check_out(out)
    if out is not None:
        check_table_suffix(out)
    result = predict_rows(
        model, data, proba=proba, keep=cli.names(keep), exposure=exposure, encoding=encoding
    )
    if out is not None:
        result.save(out)
        if not json:
            cli.say(f"{len(result)} predictions: {out}")
    if json:
        cli.show(result, True)
    elif out is None:
        for text in result.lines():
            # A file or a pipe gets the labels as they are, a terminal none that it would obey.
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


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
        storage.write_file(path, compressed(path, (text.encode() for text in lines)))


def predict_rows(
    model: AnyPath, data: AnyPath, *, proba: bool = False, keep: Sequence[str] | None = None,
    exposure: str | None = None, encoding: str = "utf-8",
) -> Predictions:  # fmt: skip
    """Predict the rows of a file with a saved model, finding its columns by name.

    Parameters
    ----------
    model, data : path
    proba : bool
        Whether to give probabilities of the classes.
    keep : sequence of str, optional
        Columns of the data to carry along; by default the IDs that were excluded from the fit,
        where the data have them.
    exposure : str, optional
        Column of exposures; by default that of the fit.
    encoding : str
        Of CSV text.
    """
    # Rows of other files are arrays, which an estimator checks.
    saved = SavedModel.load(model, to_predict=is_csv(data) or is_parquet(data))
    fitted, metadata = saved.model, saved.metadata
    if proba and not hasattr(fitted, "predict_proba"):
        name = getattr(fitted, "estimator", type(fitted).__name__)
        raise ValueError(f"{add_article(name)} has no probabilities; leave out --proba.")
    carried = _carried_columns(data, metadata, keep, encoding)
    one = [metadata.get("target") or "prediction"]
    names = [str(item) for item in fitted.classes_] if proba else one

    def predict_with(loaded: Any) -> Callable[..., Any]:
        return loaded.predict_proba if proba else loaded.predict

    def blocks() -> Iterator[list[list[Any]]]:
        for rows in saved.blocks(data, keep=carried, exposure=exposure, encoding=encoding):
            options = {} if rows.exposure is None else {"exposure": rows.exposure}
            try:
                values = np.asarray(predict_with(saved.model)(rows.X, **options))
            except EstimatorNeeded:
                loaded = SavedModel.load(model)
                values = np.asarray(predict_with(loaded.model)(loaded.with_names(rows.X)))
            columns = [
                *rows.extra_columns.values(),
                *(values.T.tolist() if proba else [values.tolist()]),
            ]
            yield [list(cells) for cells in zip(*columns)]
        warn_beyond("predict", getattr(saved.model, "rows_beyond", {}), stacklevel=2)

    return Predictions([*carried, *names], blocks)


def _carried_columns(
    data: Any, metadata: dict[str, Any], keep: Sequence[str] | None, encoding: str
) -> list[str]:
    """Columns to carry along: those asked for, else the IDs that the data have."""
    if keep is not None:
        return list(keep)
    header = column_names(data, encoding) if metadata.get("ids") and Path(data).exists() else None
    return [name for name in metadata.get("ids") or [] if name in (header or [])]
